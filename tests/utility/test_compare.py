"""Comparing: cells of other tools are read right, and every figure is one that can be counted by hand.

What ``compare`` says a release lost is what the release says: constants, orders, stars beside missing values.
"""

import itertools
import json
import sys
from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.model.foreign import Spread, domain_of, spread
from shoal.utility import compare
from shoal.utility.compare import wildcard_k
from tests.commands import run


def members(text, values, **more):
    domain = domain_of(values)
    found = spread([text], domain, **more)
    return [v for i, v in enumerate(domain.values) if found.share(i, i + 1)[0] > 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[20, 25[", ["20", "24"]),  # ARX
        ("[20, 25]", ["20", "24", "25"]),  # shoal
        ("]20, 30]", ["24", "25", "30"]),
        ("20-25", ["20", "24", "25"]),  # anonypy, and intervals of shoal
        ("['20-25']", ["20", "24", "25"]),  # the same, written by pandas
        ('["9", "20"]', ["9", "20"]),  # no list of one
        ("20 .. 25", ["20", "24", "25"]),
        ("<24", ["9", "20"]),
        (">=25", ["25", "30"]),
        ("24.0", ["24"]),
        ("2*", ["20", "24", "25"]),  # ARX masks
        ("{9, 30}", ["9", "30"]),
        ("9,30", ["9", "30"]),
        ("*", ["9", "20", "24", "25", "30"]),
        (None, ["9", "20", "24", "25", "30"]),  # sdcMicro
    ],
)
def test_cells_of_numbers(text, expected):
    assert members(text, ["30", "9", "20", "24", "25"]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        ("{a, c}", ["a", "c"]),
        ('{a, "x, y"}', ["a", "x, y"]),
        ("x, y", ["x, y"]),
        ("['a,b']", ["a", "b"]),
        ('{"a", "x, y"}', ["a", "x, y"]),
        ("**", ["a", "b", "c", "x, y", None]),
        (None, [None]),
    ],
)
def test_cells_of_names(text, expected):
    assert members(text, ["a", "b", "c", "x, y", None]) == expected


def test_labels_need_their_hierarchy_and_what_is_unknown_is_a_star():
    domain = domain_of(["a", "b", "c"])
    assert spread(["north"], domain).unknown == 1
    assert spread(["north"], domain).wild.all()
    assert members("north", ["a", "b", "c"], hierarchy={"north": ["a", "b"], "south": ["c"]}) == ["a", "b"]


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=9), st.data())
@settings(max_examples=60, deadline=None)
def test_k_by_wildcards_is_that_of_every_pair(rows, data):
    wild = np.array(data.draw(st.lists(st.tuples(*[st.booleans()] * 3), min_size=len(rows), max_size=len(rows))))
    cells = np.array(rows)

    def alike(i, j):
        return all(wild[i][c] or wild[j][c] or cells[i][c] == cells[j][c] for c in range(3))

    n = range(len(rows))
    assert wildcard_k(cells, wild) == min(sum(alike(i, j) for j in n) for i in n)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    age = rng.integers(20, 60, 600)
    return pl.DataFrame(
        {
            "age": age,
            "hours": age // 2 + rng.integers(0, 20, 600),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], 600),
            "ill": np.where(age + rng.integers(-8, 8, 600) > 40, "gout", "flu"),
        }
    )


QUASI = ["age", "hours", "town"]


def compared(people, releases, **more):
    return shoal.compare(people, releases, quasi_identifiers=QUASI, sensitive=["ill"], **more).as_dict()["releases"]


def test_the_original_has_a_line_of_its_own(people, tmp_path):
    half = people.with_columns(town=pl.lit("*"))
    found = shoal.compare(people, {"half": half, "itself": people}, quasi_identifiers=QUASI, sensitive=["ill"])
    first, _, itself = found.table.rows()
    assert first[0] == "the original"
    assert first[1:] == itself[1:]
    shown = found.report(tmp_path / "c.html").read_text()
    assert "Do not publish" in shown
    assert "the original" in shown
    assert json.loads((tmp_path / "c.json").read_text())["internal"] is True
    assert ((tmp_path / "c.html").stat().st_mode & 0o077, (tmp_path / "c.json").stat().st_mode & 0o077) == (0, 0)


def test_the_original_against_itself_and_against_nothing(people):
    empty = people.with_columns(pl.lit("*").alias(n) for n in QUASI)
    found = compared(
        people, {"same": people, "stars": empty, "missing": empty.with_columns(pl.lit(None).alias("town"))}
    )
    same, stars = found["same"], found["stars"]
    assert (same["loss"]["ncp"], same["utility"]["query_error"]["p90"]) == (0, 0)
    assert same["utility"]["marginal_distance"]["mean"] == same["utility"]["correlation_change"] == 0
    assert same["privacy"]["strict"]["k"] == people.group_by(QUASI).len()["len"].min()
    assert stars["loss"]["ncp"] == stars["loss"]["hidden"] == 1
    assert stars["privacy"]["strict"]["k"] == stars["privacy"]["wildcard"]["k"] == 600
    assert stars["privacy"]["without_suppressed"] == {"k": None, "rows_left_out": 600}
    age = people["age"].value_counts()
    share = 0.5 * (age["count"] / 600 - 1 / age.height).abs().sum()
    assert stars["utility"]["marginal_distance"]["columns"]["age"] == pytest.approx(share + 0)
    whole = np.corrcoef(people["age"], people["hours"])[0, 1]
    assert stars["utility"]["correlation_change"] == pytest.approx(abs(whole))
    assert found["missing"]["loss"] == stars["loss"]


def test_rows_that_a_release_lacks_are_said(people):
    found = shoal.compare(people, {"all": people, "some": people.head(590)}, quasi_identifiers=QUASI)
    assert [n for n in found.notes if "rows" in n] == [
        "some: 10 of 600 rows of the original are not in it; they count as lost"
    ]
    assert found.as_dict()["releases"]["some"]["loss"]["ncp"] == pytest.approx(10 / 600)


@pytest.mark.parametrize(
    "values",
    [list(range(40)), [i / 7 for i in range(40)], [date(1950 + i, 1, 1) for i in range(40)], list("abcdefgh") * 5],
)
def test_a_table_beside_itself_has_no_error_with_one_column_either(values):
    frame = pl.DataFrame({"x": values * 10})
    found = shoal.compare(frame, {"it": frame}, quasi_identifiers=["x"]).releases["it"]["utility"]["query_error"]
    assert (found["median"], found["p90"]) == (0, 0)
    assert found["queries"] > 300


def test_one_query_error_by_hand():
    original = pl.DataFrame({"a": [0, 1] * 20, "b": ["x"] * 40})
    release = pl.DataFrame({"a": ["[0, 1]"] * 20 + ["0"] * 20, "b": ["x"] * 40})
    found = shoal.compare(original, {"r": release}, quasi_identifiers=["a", "b"]).as_dict()["releases"]["r"]
    # any query is a = 0 or a = 1: 20 truly, 30 and 10 in the release; both are wrong by a half
    assert found["utility"]["query_error"]["median"] == pytest.approx(0.5)
    assert found["utility"]["marginal_distance"]["columns"] == {"a": pytest.approx(0.25), "b": 0}
    assert found["loss"]["columns"] == {"a": 0.5, "b": 0}


def test_shoal_and_other_tools_side_by_side(people, tmp_path):
    ours = shoal.anonymize(
        people, quasi_identifiers=QUASI, sensitive=["ill"], k=5, publish="ranges", effort="fast", seed=1
    )
    tens = (people["age"] // 10 * 10).cast(pl.String)
    arx = people.with_columns(
        (pl.lit("[") + tens + ", " + (people["age"] // 10 * 10 + 10).cast(pl.String) + "[").alias("age"),
        pl.lit("*").alias("hours"),
    )
    sdc = people.with_columns(pl.when(pl.int_range(600) % 3 == 0).then(None).otherwise(pl.col("hours")).alias("hours"))
    found = shoal.compare(
        people, {"ours": ours, "arx": arx, "sdc": sdc}, quasi_identifiers=QUASI, sensitive=["ill"], seed=3
    )
    facts = found.as_dict()["releases"]
    assert facts["ours"]["privacy"]["strict"]["k"] >= 5
    assert facts["ours"]["loss"]["ncp"] == pytest.approx(ours.facts.cost["ncp"])
    assert facts["arx"]["loss"]["columns"]["hours"] == 1
    assert 0.15 < facts["arx"]["loss"]["columns"]["age"] < 0.3
    assert facts["sdc"]["privacy"]["wildcard"]["k"] >= facts["sdc"]["privacy"]["strict"]["k"]
    assert facts["sdc"]["loss"]["hidden"] == pytest.approx(200 / 600 / 3)
    assert not any("not understood" in note for note in found.notes)
    assert found.table.height == 4  # the original, and three releases
    assert found._repr_html_().startswith("<table>")
    assert "k-map" not in found._repr_html_()  # no population was given
    assert set(json.loads(json.dumps(found.as_dict()))["releases"]["arx"]) == {"privacy", "loss", "utility"}


def test_the_command_gives_the_same(people, tmp_path):
    people.write_csv(tmp_path / "t.csv")
    people.with_columns(pl.lit("*").alias("hours")).write_csv(tmp_path / "a.csv")
    quasi = ("--quasi", ",".join(QUASI), "--sensitive", "ill")
    found = run("compare", tmp_path / "t.csv", tmp_path / "a.csv", *quasi, "--json").facts["releases"]["a.csv"]
    assert found["loss"] == compared(people, {"a": people.with_columns(pl.lit("*").alias("hours"))})["a"]["loss"]
    run("compare", tmp_path / "t.csv", tmp_path / "b.csv", *quasi).refused(2, "b.csv")
    assert "query error, median" in run("compare", tmp_path / "t.csv", tmp_path / "a.csv", *quasi).stdout


def test_roles_and_hierarchies_come_from_a_policy_or_a_certificate(people, tmp_path):
    tree = tmp_path / "town.csv"
    tree.write_text("Ulm;South;*\nBonn;North;*\nKiel;North;*\n")
    people.write_csv(tmp_path / "t.csv")
    asked = shoal.Policy.of(
        quasi_identifiers=QUASI, sensitive=["ill"], k=5, publish="hierarchy", hierarchies={"town": tree}, effort="fast"
    )
    release = people.with_columns(town=pl.col("town").replace({"Ulm": "South", "Bonn": "North", "Kiel": "North"}))
    release.write_csv(tmp_path / "r.csv")
    trees = {"town": tree}
    wanted = shoal.compare(people, {"r": release}, quasi_identifiers=QUASI, sensitive=["ill"], hierarchies=trees)
    loss = wanted.as_dict()["releases"]["r"]["loss"]
    assert 0 < loss["columns"]["town"] < 1
    mapped = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "publish": "hierarchy", "hierarchies": trees}
    for policy in (asked, mapped):
        assert shoal.compare(people, {"r": release}, policy).as_dict() == wanted.as_dict()
    fewer = shoal.compare(people, {"r": release}, asked, quasi_identifiers=["town"], sensitive=["age"]).as_dict()
    assert set(fewer["releases"]["r"]["loss"]["columns"]) == {"town"}
    certificate = shoal.anonymize(tmp_path / "t.csv", asked).write(tmp_path / "own.csv")
    words = ("compare", tmp_path / "t.csv", tmp_path / "r.csv", "--policy", certificate, "--json")
    assert run(*words).facts["releases"]["r.csv"]["loss"] == loss
    run("compare", tmp_path / "t.csv", tmp_path / "r.csv").refused(2, "say --quasi")


def test_what_rounding_leaves_is_no_change_of_a_correlation():
    days = pl.Series([19_000.25 + 0.1 * (i * 7919 % 1009) for i in range(400)])
    frame = pl.DataFrame({"a": days, "b": days.sqrt(), "c": [i * 37 % 101 for i in range(400)]})
    found = shoal.compare(frame, {"same": frame}, quasi_identifiers=["a", "b", "c"]).as_dict()["releases"]["same"]
    assert found["utility"]["correlation_change"] == 0


@pytest.mark.parametrize("block", [7, 1 << 14])
def test_correlations_of_all_pairs_are_those_of_each_pair(block, monkeypatch):
    monkeypatch.setattr(compare, "BLOCK", block)
    random = np.random.default_rng(3)
    values = [random.normal(1e4, 1, 9), random.integers(0, 5, 9) + 0.0, np.full(9, 0.1), random.normal(size=9)]
    codes = [random.integers(0, 9, 50) for _ in values]
    codes[3] = np.full(50, 4)  # one value of many is a constant, too
    known = np.corrcoef([at[code] for at, code in zip(values[:2], codes[:2], strict=True)])
    found = compare.correlations(values, codes)
    assert found[:2, :2] == pytest.approx(known, abs=1e-9)
    assert not found[2:].any()
    assert not found[:, 2:].any()


def test_a_wide_table_has_each_column_read_once(monkeypatch):
    """The pairs of 300 columns are 45,000."""
    random = np.random.default_rng(4)
    wide = pl.DataFrame({f"c{j}": random.integers(0, 9, 40) for j in range(30)})
    read, means = [], Spread.means
    monkeypatch.setattr(Spread, "means", lambda *given: read.append(1) or means(*given))
    monkeypatch.setattr(compare, "classifier", lambda *_: None)
    shoal.compare(wide, {"same": wide}, quasi_identifiers=wide.columns)
    assert len(read) == 2 * 30  # of the original, and of the release


def test_wrong_requests_say_what_is_wrong(people):
    with pytest.raises(shoal.PolicyError, match="no release"):
        shoal.compare(people, {}, quasi_identifiers=QUASI)
    with pytest.raises(shoal.ShoalError, match="tow"):
        shoal.compare(people, {"a": people}, quasi_identifiers=["tow"])
    with pytest.raises(shoal.InputError, match="more rows"):
        shoal.compare(people.head(9), {"a": people}, quasi_identifiers=QUASI)


def classified(people):
    hidden = people.with_columns(pl.lit("*").alias(n) for n in QUASI)
    held = people.sample(200, seed=1)
    return shoal.compare(
        people, {"same": people, "stars": hidden}, quasi_identifiers=QUASI, sensitive=["ill"], held_out=held
    )


def test_a_classifier_learns_from_the_release(people):
    found = classified(people)
    same, stars = (found.releases[n]["utility"]["classifier"] for n in ("same", "stars"))
    assert same["accuracy"] > 0.85
    assert same["auc"] > 0.9
    assert stars["accuracy"] == pytest.approx(stars["majority"])
    assert stars["auc"] == pytest.approx(0.5)
    assert list(itertools.islice(found.notes, 1)) == []


def test_without_scikit_learn_no_classifier_is_trained_and_a_note_says_so(people, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)  # importing it fails
    found = classified(people)
    assert any("shoal[learn]" in note for note in found.notes)
    assert all(r["utility"]["classifier"] is None for r in found.releases.values())


def test_what_hangs_together_and_whom_a_release_fits(tmp_path) -> None:
    """Simultaneous l, k-map and presence beside the other levels, counted by hand."""
    original = pl.DataFrame({
        "zip": ["a", "a", "b", "b"], "s": ["x", "y", "x", "x"], "t": ["u", "v", "u", "u"],
    })  # fmt: skip
    population = pl.DataFrame({"zip": ["a"] * 5 + ["b"] * 3})
    releases = {"as it is": original, "starred": original.with_columns(zip=pl.lit("*"))}
    asked = {"quasi_identifiers": ["zip"], "sensitive": ["s", "t"]}
    found = shoal.compare(original, releases, **asked, population=population).table
    rows = found.select("release", "simultaneous l", "k-map", "presence").rows()
    # the two b are alike in both; of all rows each has one that differs in both
    assert rows == [("the original", 1, 3, 2 / 3), ("as it is", 1, 3, 2 / 3), ("starred", 2, 8, 0.5)]
    plain = shoal.compare(original, releases, quasi_identifiers=["zip"], sensitive=["s"]).table
    assert plain["simultaneous l"].null_count() == plain["k-map"].null_count() == 3
    third = original.with_columns(w=pl.Series(["1", "2", "1", "2"]))
    three = shoal.compare(third, {"it": third}, quasi_identifiers=["zip"], sensitive=["s", "t", "w"]).table
    assert three["simultaneous l"].to_list() == [1, 1]
    for name, frame in {"original": original, "all": population, "it": original}.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    files = [tmp_path / f"{name}.csv" for name in ("original", "it", "all")]
    words = ["compare", *files[:2], "--quasi", "zip", "--sensitive", "s", "--population", files[2], "--json"]
    told = run(*words).facts["releases"]["it.csv"]["privacy"]["strict"]["population"]
    assert (told["k_map"], told["presence"]) == (3, [0.4, 2 / 3])


def both(frame: pl.DataFrame, given: object, made: shoal.Release, **more: object) -> tuple[float, tuple[str, ...]]:
    found = shoal.compare(frame, {"it": given}, quasi_identifiers=made.policy.quasi_identifiers, **more)
    return found.releases["it"]["loss"]["ncp"], found.notes


@pytest.mark.parametrize(("value", "step", "loss"), [(0.25, 0.5, 0.5), (1.0, 4, 1.0), (1.0, 0.3, 0.3)])
def test_a_column_of_one_value_widened_to_a_grid(value, step, loss):
    frame = pl.DataFrame({"a": [value] * 4, "b": [1, 2, 3, 4]})
    made = shoal.anonymize(frame, quasi_identifiers=["a", "b"], k=4, publish="ranges", range_step={"a": step})
    assert made.facts.cost["ncp"] == pytest.approx((loss + 1) / 2)
    assert both(frame, made.table, made)[0] == pytest.approx((loss + 1) / 2)


@pytest.mark.parametrize("missing", [False, True])
def test_a_column_with_an_order_of_its_own(missing):
    kind = pl.Enum(["lo", "mid", "hi", "top"])
    values = ["hi", "lo", "mid", "lo", "top", "hi", *([None, None, None] if missing else [])]
    frame = pl.DataFrame({"a": pl.Series(values, dtype=kind)})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=3, publish="ranges")
    assert 0 < made.facts.cost["ncp"] < 1
    assert both(frame, made.table, made)[0] == pytest.approx(made.facts.cost["ncp"])


def test_stars_beside_missing_values_are_counted_or_named(tmp_path):
    frame = pl.DataFrame({"a": [1, 1, 2, None, None, 3], "b": [True] * 6})
    made = shoal.anonymize(frame, quasi_identifiers=["a", "b"], k=2)
    assert made.facts.stars["a"] == 2
    assert both(frame, made, made)[0] == pytest.approx(made.facts.cost["ncp"])
    made.write(tmp_path / "r.parquet")
    assert "'a' has more missing values" in both(frame, tmp_path / "r.parquet", made)[1][0]
    plain = shoal.anonymize(frame.drop_nulls(), quasi_identifiers=["a", "b"], k=2)
    assert not any("missing" in note for note in both(frame.drop_nulls(), plain.table, plain)[1])


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_empty_texts_that_a_file_shows_as_missing_are_no_loss(ending, tmp_path):
    """A comparison and an intruder read a release in a text file as they read it in memory."""
    frame = pl.DataFrame({"q": ["", "a", "b", "c"] * 4, "s": ["", "flu", "gout", "flu"] * 4})
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"]}
    release = shoal.anonymize(frame, k=6, publish="ranges", effort="fast", **asked)
    release.write(tmp_path / f"r{ending}")
    told = shoal.compare(frame, {"file": tmp_path / f"r{ending}", "frame": release}, **asked, seed=1).as_dict()
    file, memory = told["releases"]["file"], told["releases"]["frame"]
    assert file == memory
    assert file["loss"]["hidden"] == 0
    found = [
        {f.name: f.figure for f in shoal.attack(given, frame, seed=1, **asked).findings if f.attack != "files"}
        for given in (release, tmp_path / f"r{ending}")
    ]
    assert found[0] == found[1]


def test_a_generated_hierarchy_is_no_hierarchy_to_read():
    frame = pl.DataFrame({"a": [1, 2, 3, 4, 5, 6]})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": "intervals"})
    plain = both(frame, made.table, made)
    assert both(frame, made.table, made, hierarchies={"a": "intervals"}) == plain


@pytest.mark.parametrize("unit", [2.0**-1040, 2.0**-100, 2.0**1016])
def test_figures_do_not_depend_on_the_unit_of_numbers(unit):
    """Neither near the largest number, whose square is none, nor near the smallest."""

    def told(of):
        draw = np.random.default_rng(3)
        a, b = draw.integers(0, 99, 60), draw.integers(0, 99, 60)
        frame = pl.DataFrame({"a": (a - 50) * of, "b": b * of, "s": ["x" if v > 49 else "y" for v in b]})
        other = frame.with_columns(a=pl.col("a").abs(), b=pl.when(pl.col("b") < 40 * of).then(0).otherwise(pl.col("b")))
        asked = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "target": "s", "seed": 1}
        found = shoal.compare(frame, {"x": other}, **asked).as_dict()["releases"]["x"]
        return [found["loss"], found["utility"]["correlation_change"], found["utility"]["classifier"]]

    assert told(unit) == told(1.0)


def test_infinite_numbers_are_categories():
    """As in a release, which publishes such a column as sets."""
    assert domain_of(["1", "2", "inf"]).ruler is None
    assert domain_of(["1", "2"]).ruler == "number"
    table = pl.DataFrame(
        {"ratio": [1.0, 2.0, float("inf"), 4.0] * 15, "town": list("ab") * 30, "ill": list("xxy") * 20}
    )
    asked = {"quasi_identifiers": ["ratio", "town"], "sensitive": ["ill"]}
    made = shoal.anonymize(table, publish="ranges", k=20, effort="fast", seed=1, **asked)
    found = shoal.compare(table, {"same": table, "ours": made}, **asked).releases
    assert found["same"]["loss"]["ncp"] == 0
    assert found["ours"]["loss"]["ncp"] == pytest.approx(made.loss["ncp"])
