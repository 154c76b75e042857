"""Mode increment: everybody once, each part and all together meet the models, rows wait and are never lost."""

import json
import sys
from collections import Counter

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines import store
from shoal.judge.tables import large
from shoal.publishing.series_folder import Keyed
from tests.commands import run
from tests.kept import holding
from tests.series.common import Row, frame, meets, people, policy, seen

Q = ["age", "zip"]


def published(series: shoal.Series, number: int) -> pl.DataFrame:
    return pl.read_csv(series.place / f"{number:04d}" / "release.csv", infer_schema=False)


def test_each_part_and_all_together_meet_the_models(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy())
    for month in range(3):
        part = series.add(people(month), person="id")
        assert part.rows == 8
    parts = [published(series, i) for i in (1, 2, 3)]
    assert all(meets(p, 2, 2) for p in [*parts, pl.concat(parts)])
    assert all("id" not in p.columns for p in parts)
    holding(series.verify())
    assert series.status()["people"] == 24


def test_who_was_published_is_refused_and_nothing_is_written(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(people(1), person="id")
    with pytest.raises(shoal.InputError, match="8 people of this table are in an earlier part"):
        series.add(pl.concat([people(1), people(2)]), person="id")
    with pytest.raises(shoal.InputError, match="1 person of this table is in an earlier part"):
        series.add(pl.concat([people(1).head(1), people(2)]), person="id")
    assert series.parts == 1
    assert series.verify().holds


def test_two_rows_of_a_person_are_refused(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy())
    with pytest.raises(shoal.InputError, match="1 further row of the same people"):
        series.add(pl.concat([people(1), people(1)[:1]]), person="id")


ODD = [("x1", "90", "9", "a"), ("x2", "91", "8", "b")]  # they share nothing, so both columns are starred


def test_rows_that_lose_too_much_wait_and_must_come_again(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(), wait=1, wait_above=0.6)
    first = pl.concat([people(1), frame(ODD)])
    part = series.add(first, person="id")
    assert (part.rows, part.waiting) == (8, 2)
    with pytest.raises(shoal.InputError, match="2 rows of an earlier table wait"):
        series.add(people(2), person="id")
    part = series.add(pl.concat([people(2), frame(ODD)]), person="id")  # they waited once, which is all they may
    assert (part.rows, part.waiting) == (10, 0)
    assert series.status()["people"] == 18
    assert series.verify().holds


def test_rows_that_wait_find_a_group_in_the_next_part(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(), wait=2, wait_above=0.6)
    series.add(pl.concat([people(1), frame(ODD)]), person="id")
    alike = [("y1", "90", "9", "b"), ("y2", "91", "8", "a")]
    part = series.add(pl.concat([people(2), frame(ODD), frame(alike)]), person="id")
    assert (part.rows, part.waiting, part.loss["stars"]) == (12, 0, 0)


def test_who_waits_may_be_let_go_by_name_alone(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(), wait=1, wait_above=0.6)
    series.add(pl.concat([people(1), frame(ODD)]), person="id")
    assert series.add(people(2), person="id", without_waiting=True).waiting == 0


def test_an_option_without_effect_is_refused(tmp_path):
    start = shoal.Series.start
    with pytest.raises(shoal.PolicyError, match=r"wait_above= counts only if rows may wait; .* wait=2"):
        start(tmp_path / "s", policy(), wait_above=0.3)
    for name, value in (("wait", 1), ("wait_above", 0.6)):
        with pytest.raises(shoal.PolicyError, match=f"no row waits; leave {name}= out of mode 'views'"):
            start(tmp_path / "s", policy(), mode="views", **{name: value})
    assert not (tmp_path / "s").exists()
    for mode, wait, why in (
        ("increment", {}, "a series that was started without wait="),
        ("again", {"wait": 1}, "mode 'again', where people who wait may leave"),
        ("views", {}, "mode 'views', as no row waits"),
    ):
        made = start(tmp_path / mode, policy(), mode=mode, **wait)
        with pytest.raises(shoal.PolicyError, match=f"without_waiting= has no effect in {why}.*leave it out"):
            made.add(people(1), person="id", without_waiting=True)
    with pytest.raises(shoal.PolicyError, match="other_people= has no effect in mode 'views'"):
        made.add(people(1), person="id", other_people=True)
    for mode in ("increment", "again", "views"):
        assert shoal.Series(tmp_path / mode).add(people(1), person="id").rows == 8


def test_no_value_of_the_table_stands_in_the_ledger(tmp_path):
    rows: list[Row] = [(f"name{i}", f"age{i % 2}", f"zip{i // 2 % 2}", f"ill{i // 4}") for i in range(8)]
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(frame(rows), person="id")
    private = [p.read_bytes() for p in (tmp_path / "s" / "private").rglob("*") if p.is_file()]
    assert len(private) >= 4
    for row in rows:
        assert not any(text.encode() in data for text in row for data in private)
    for path in [tmp_path / "s" / "private", *(tmp_path / "s" / "private").rglob("*")]:
        assert not path.stat().st_mode & 0o077, path


@given(texts=st.lists(st.none() | st.text(max_size=4) | st.text('a"\\\n\x1f', max_size=3), max_size=6))
def test_a_column_is_hashed_as_its_texts(texts):
    keyed = Keyed(bytes(32))
    column = keyed.column("person", pl.Series(texts, dtype=pl.String))
    assert column.to_list() == [keyed.one("person", [t]) for t in texts]


people_of = st.lists(st.tuples(st.sampled_from("12"), st.sampled_from("xy"), st.sampled_from("ab")), max_size=7)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(months=st.lists(people_of, min_size=1, max_size=3), wait=st.integers(0, 1))
def test_whoever_sees_all_parts_is_left_with_groups_that_meet_the_models(tmp_path_factory, months, wait):
    """An intruder who knows when everybody came in, and one who does not; both see every published class."""
    series = shoal.Series.start(
        tmp_path_factory.mktemp("s") / "s", policy(), wait=wait, wait_above=0.4 if wait else None
    )
    carried: list[Row] = []
    everybody: set[str] = set()
    for month, rows in enumerate(months):
        new = carried + [(f"{month}-{i}", *row) for i, row in enumerate(rows)]
        try:
            part = series.add(frame(new), person="id")
        except (shoal.InfeasibleError, shoal.InputError):
            carried = new
            continue
        everybody |= {row[0] for row in new}
        carried = waiting_of(series, new)
        assert part.waiting == len(carried)
    parts = [published(series, i + 1) for i in range(series.parts)]
    assert all(meets(p, 2, 2) for p in parts)
    if parts:
        assert meets(pl.concat(parts), 2, 2)
        assert sum(p.height for p in parts) + len([r for r in carried if r[0] in everybody]) == len(everybody)
        assert series.verify().holds


def waiting_of(series: shoal.Series, rows: list[Row]) -> list[Row]:
    """The rows whose people the ledger says wait."""
    from shoal.publishing.series_folder import open_series

    held = open_series(series.place)
    return [row for row in rows if held.keyed.one("person", [row[0]]) in held.ledger.waiting]


def test_the_command_line_makes_the_same_series(tmp_path):
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["age", "zip"]\nsensitive = ["ill"]\nk = 2\nl = 2\neffort = "fast"\n'
    )
    for month in (1, 2):
        people(month).write_csv(tmp_path / f"{month}.csv")
    assert run("series", "start", "s", "--policy", "p.toml", cwd=tmp_path).returncode == 0
    for month in (1, 2):
        facts = run("series", "add", "s", f"{month}.csv", "--person", "id", "--json", cwd=tmp_path).facts
        assert (facts["rows"], facts["parts"], facts["made_up"]) == (8, month, 0)
    assert run("series", "status", "s", "--json", cwd=tmp_path).facts["people"] == 16
    assert run("verify", "s", "--json", cwd=tmp_path).facts["holds"]
    assert run("series", "add", "s", "1.csv", "--person", "id", cwd=tmp_path).returncode == 2
    again = run("series", "start", "s", "--policy", "p.toml", cwd=tmp_path)
    assert again.returncode == 4


def test_a_start_says_which_rows_wait(tmp_path):
    (tmp_path / "p.toml").write_text('quasi_identifiers = ["age"]\nk = 2\n')
    start = ("series", "start", "s", "--policy", "p.toml")
    alone = run(*start, "--wait-above", "0.5", cwd=tmp_path)
    alone.refused(2, "--wait-above counts only if rows may wait; say for how many parts, such as --wait 2")
    told = run(*start, "--wait", "2", cwd=tmp_path).ok().stdout
    assert "wait    rows that would lose more than 0.3, for at most 2 parts" in told
    facts = run("series", "status", "s", "--json", cwd=tmp_path).facts
    assert (facts["wait"], facts["wait_above"]) == (2, 0.3)


@pytest.mark.parametrize(
    "rows", ["30;30s;*\n34;30s;*\n41;40s;*\n", "30;*\n34;*\n41;*\n", '30;"3;";*\n34;"3;";*\n41;4"0;*\n']
)
def test_hierarchies_stand_beside_the_series(tmp_path, rows):
    tree = tmp_path / "age.csv"
    tree.write_text(rows)
    asked = policy(publish="hierarchy", hierarchies={"age": str(tree)})
    series = shoal.Series.start(tmp_path / "s", asked)
    tree.unlink()
    series = shoal.Series(tmp_path / "s")
    series.add(people(1), person="id")
    assert series.verify().holds


def test_rows_that_wait_are_found_again(tmp_path):
    """The ledger knows persons alone; whoever has the table gets the rows that the next part must hold."""
    series = shoal.Series.start(tmp_path / "s", policy(), wait=1, wait_above=0.3)
    rare = frame([("r1", "99", "7", "a"), ("r2", "98", "8", "b")])
    assert series.add(pl.concat([people(1), rare]), person="id").waiting == 2
    pl.concat([people(1), rare]).write_csv(tmp_path / "1.csv")
    assert series.waiting(pl.concat([people(1), rare]), person="id").equals(rare)
    for table, error in ((people(1), shoal.InputError), (people(1).drop("id"), shoal.PolicyError)):
        with pytest.raises(error):
            series.waiting(table, person="id")
    asked = ("series", "waiting", "s", "1.csv", "--person", "id")
    assert run(*asked, cwd=tmp_path).returncode == 2
    assert run(*asked, "-o", "w.csv", cwd=tmp_path).returncode == 0
    assert (tmp_path / "w.csv").stat().st_mode & 0o077 == 0
    assert run(*asked, "-o", "w.csv", cwd=tmp_path).returncode == 4
    series.add(pl.concat([people(2), pl.read_csv(tmp_path / "w.csv", infer_schema=False)]), person="id")
    assert series.waiting(people(1), person="id").is_empty()


@pytest.mark.parametrize("mode", ["increment", "again"])
def test_all_parts_have_the_same_columns(tmp_path, mode):
    series = shoal.Series.start(tmp_path / "s", policy(), mode=mode)
    series.add(people(1), person="id")
    more = people(2).with_columns(note=pl.lit("x"))
    with pytest.raises(shoal.InputError, match="'note' is not in the part before"):
        series.add(more, person="id")
    series.add(more, person="id", identifiers="note")
    more.with_columns(id="3" + pl.col("id")).write_csv(tmp_path / "3.csv")
    asked = ("series", "add", "s", "3.csv", "--person", "id")
    assert run(*asked, cwd=tmp_path).returncode == 2
    assert run(*asked, "--identifiers", "note", cwd=tmp_path).returncode == 0
    assert {tuple(published(series, n).columns) for n in (1, 2, 3)} == {("age", "zip", "ill")}


def test_a_carried_column_stays(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(insensitive=["note"]))
    series.add(people(1).with_columns(note=pl.lit("x")), person="id")
    with pytest.raises(shoal.PolicyError, match="'note'"):
        series.add(people(2), person="id")
    free = shoal.Series.start(tmp_path / "t", policy())
    free.add(people(1).with_columns(note=pl.lit("x")), person="id")
    with pytest.raises(shoal.InputError, match="'note' is in the part before"):
        free.add(people(2), person="id")


@pytest.mark.parametrize(("engine", "hashes"), [(None, 1 << 24), (None, 1), (None, 30), ("duckdb", 1 << 24)])
def test_sample_uniques_are_those_of_the_rows_published(tmp_path, monkeypatch, engine, hashes):
    if engine:
        pytest.importorskip("duckdb")
    monkeypatch.setattr(large, "_HASHES", hashes)
    texts = ["a", "a", "", None, "-0.0", "0.0", "b", "c"]
    table = pl.concat([people(1), people(2)]).with_columns(
        pl.Series("note", [*texts, *"ddeeffgg"]), pl.Series("shop", list("xxyyzzxx") + list("xyxyxyxy"))
    )
    table[0, "zip"] = "9"  # a row that loses much
    table.write_parquet(tmp_path / "t.parquet")
    series = shoal.Series.start(tmp_path / "s", policy(insensitive=["note", "shop"]), wait=1, wait_above=0.4)
    part = series.add(tmp_path / "t.parquet", person="id", engine=engine)
    rows = published(series, 1).select("note", "shop").rows()
    assert part.waiting
    assert len(rows) < table.height  # those who wait leave no trace
    one = {name: Counter(row[i] for row in rows) for i, name in enumerate(("note", "shop"))}
    alone = {name: sum(n == 1 for n in of.values()) for name, of in one.items()}
    certificate = tmp_path / "s" / "0001" / "release.certificate.json"
    said = json.loads(certificate.read_text())["carried"]
    assert said["alone"] == alone
    assert said["together"] == sum(n == 1 for n in Counter(rows).values())

    def wrong(*args, **more):
        found = large.sample_uniques(*args, **more)
        return found._replace(together=found.together + 1)

    for module in [m for m in sys.modules.values() if getattr(m, "sample_uniques", None) is large.sample_uniques]:
        if module is not large:
            monkeypatch.setattr(module, "sample_uniques", wrong)
    with pytest.raises(shoal.VerificationError, match="singled out"):  # so the judge has a count of its own
        shoal.Series.start(tmp_path / "t", policy(insensitive=["note", "shop"])).add(table, person="id")


def test_texts_of_any_script_verify(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy())
    assert series.status()["people"] == 0
    told = {"a": "Grippe, größer", "b": "インフルエンザ"}
    table = people(1).with_columns(ill=pl.col("ill").replace(told), zip="ü" + pl.col("zip"))
    series.add(table, person="id")
    assert series.verify().holds
    assert series.status()["people"] == table.height


def test_a_series_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(shoal.InputError, match=r"no folder .*gone"):
        shoal.Series.start(tmp_path / "gone" / "s", policy())


def test_slices_are_all_rows_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "BATCH", 3)
    for rows in (0, 1, 3, 7):
        table = pl.DataFrame({"x": range(rows)}, schema={"x": pl.Int64})
        table.write_parquet(tmp_path / "t.parquet")
        for kept in (table.lazy(), pl.scan_parquet(tmp_path / "t.parquet")):
            found = [*store.sliced(kept)]
            assert pl.concat(found).equals(table)
            assert [part.height for part in found[:-1]] == [3] * (len(found) - 1)


@pytest.mark.parametrize("named", ["policy", "part"])
def test_all_parts_together_are_judged_by_every_model(named, tmp_path, monkeypatch):
    """Also by those that need a hierarchy, and by those that would count persons."""
    import shoal.judge.series

    asked = {"l": None, "t_hierarchical": 0.6, "hierarchies": {"ill": {"lungs": ["a"], "stomach": ["b"]}}}
    held = policy(**asked, **({"person": "id"} if named == "policy" else {}))
    series = shoal.Series.start(tmp_path / "s", held, mode="increment")
    for month in (1, 2):
        series.add(people(month, 16), person="id")
    found = []
    judged = shoal.judge.series.judge

    def noted(*given, **more):
        found.append(judged(*given, **more))
        return found[-1]

    monkeypatch.setattr(shoal.judge.series, "judge", noted)
    assert series.verify().holds
    assert [[check.model for check in audit.checks] for audit in found] == [["k-anonymity", "t-closeness"]]


@pytest.mark.parametrize(
    ("model", "missed", "met"),
    [("t", 0.1, 0.3), ("beta", 0.4, 0.6), ("beta_basic", 0.4, 0.6), ("delta", 0.6, 0.7)],
)
def test_parts_that_are_close_to_their_own_table_alone_are_refused_together(model, missed, met, tmp_path):
    """Each part has one class, of shares 3/4 and 1/4; the second has them the other way round, and together both have
    1/2.  So t is 1/4, p is 1.5 q at most, and the logarithm of p / q is -0.69 at least."""
    series = shoal.Series.start(tmp_path / "s", policy(l=None, person="id", **{model: missed}), mode="increment")
    series.add(frame([(f"p{i}", "30", "1", "aaab"[i % 4]) for i in range(8)]))
    before = seen(tmp_path / "s")
    with pytest.raises(
        shoal.InfeasibleError,
        match=r"all parts together: (t-cl|.*beta|delta).* of 'ill' is not met \(\S+ = [0-9.]+ reached\), .*new series",
    ):
        series.add(frame([(f"q{i}", "50", "2", "abbb"[i % 4]) for i in range(8)]))
    assert seen(tmp_path / "s") == before
    wide = shoal.Series.start(tmp_path / "wide", policy(l=None, person="id", **{model: met}), mode="increment")
    for part, values in enumerate(("aaab", "abbb")):
        wide.add(frame([(f"{part}-{i}", str(30 + part), "1", values[i % 4]) for i in range(8)]))
    assert wide.parts == 2
    series.add(frame([(f"r{i}", "50", "2", "aaab"[i % 4]) for i in range(8)]))
    assert series.verify().holds


@pytest.mark.parametrize("kind", ["polars", "pandas", "duckdb"])
def test_persons_as_floats_are_those_of_a_file(kind, tmp_path):
    """A column of ids is one of floats as soon as pandas has read a table in which a row lacks its id."""
    ids = pl.Series([float(i) for i in range(10, 18)])
    table = people(1).with_columns(id=ids)
    table.with_columns(id=ids.cast(pl.Int64)).write_csv(tmp_path / "t.csv")
    rare = frame([("1", "99", "7", "a"), ("2", "98", "8", "b")]).with_columns(id=pl.Series([1.0, 2.0]))
    series, given = shoal.Series.start(tmp_path / "s", policy(), wait=1, wait_above=0.3), pl.concat([table, rare])
    if kind == "duckdb":
        given = pytest.importorskip("duckdb").from_arrow(given.to_arrow())
    given = given.to_pandas() if kind == "pandas" else given
    assert series.add(given, person="id").waiting == 2
    assert series.waiting(given, person="id").height == 2
    before = shoal.Series(tmp_path / "s").status()["people"]
    with pytest.raises(shoal.ShoalError) as refused:  # nobody in this file is new
        series.add(tmp_path / "t.csv", person="id")
    assert "spelling" not in str(refused.value)
    assert shoal.Series(tmp_path / "s").status()["people"] == before


@pytest.mark.parametrize("mode", ["increment", "again"])
@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_people_in_another_spelling_are_not_new(mode, engine, tmp_path):
    """After a spreadsheet, "00123" is "123", and with a missing value in the column, a number is "123.0"."""
    if engine is not None:
        pytest.importorskip("duckdb")
    series = shoal.Series.start(tmp_path / "s", policy(), mode=mode)
    first = people(1)
    series.add(first.with_columns(id=pl.Series([f"{i:05}" for i in range(10, 18)])), person="id")
    before = seen(tmp_path / "s")
    for spelled in ("{}", "{}.0", "{:03}", "{:05} "):
        first.with_columns(id=pl.Series([spelled.format(i) for i in range(10, 18)])).write_csv(tmp_path / "t.csv")
        with pytest.raises(shoal.InputError, match=r"column 'id' has 8 people who seem new, .* another spelling"):
            series.add(tmp_path / "t.csv", person="id", engine=engine)
        assert seen(tmp_path / "s") == before
    sevens = first.with_columns(id=pl.Series([str(i) for i in range(10, 18)]))
    known = shoal.Series.start(tmp_path / "known", policy(), mode=mode)
    known.add(first.with_columns(id=pl.Series([f"{i:05}" for i in range(10, 18)])), person="id")
    sevens.write_csv(tmp_path / "t.csv")
    known.add(tmp_path / "t.csv", person="id", engine=engine, other_people=True)
    assert known.status()["people"] == 16
    # a person with another spelling of an id that someone still has is someone else
    mixed = [f"{i:05}" for i in range(10, 18)] + [str(i) for i in range(10, 18)]
    if mode == "again":
        part = series.add(pl.concat([first, first]).with_columns(id=pl.Series(mixed)), person="id", engine=engine)
        assert part.rows == 16
    others = people(2).with_columns(id=pl.Series([str(i) for i in range(21, 29)]))
    assert series.add(others, person="id", engine=engine).rows >= 8


@pytest.mark.parametrize("mode", ["increment", "again"])
@pytest.mark.parametrize("numbers_first", [True, False])
def test_a_column_of_another_kind_than_before_is_named(tmp_path, mode, numbers_first):
    ages = ["30", "32", "60", "62"]  # k asks for two ages in each class, so that classes have ranges or sets
    rows = [[(f"{n}-{i}", ages[i % 4], "1", "ab"[i // 4 % 2]) for i in range(16)] for n in (1, 2, 3)]
    asked = policy(quasi_identifiers=["age"], publish="ranges", k=8, seed=1, effort="balanced")
    tables = [frame(held) for held in rows]
    words = [table.with_columns(pl.col("age") + " years") for table in tables]
    first, second, third = (tables[0], words[1], words[2]) if numbers_first else (words[0], tables[1], tables[2])
    series = shoal.Series.start(tmp_path / "s", asked, mode=mode)
    parts = [series.add(table, person="id", identifiers="zip") for table in (first, second, third)]
    assert [part.other_kind for part in parts] == [(), ("age",), ()]
    assert any("'age' has ranges in one of" in text for text in parts[1].as_dict()["warnings"])


@pytest.mark.parametrize("mode", ["increment", "again"])
def test_a_value_that_the_hierarchies_of_a_series_lack_has_a_way_out(tmp_path, mode):
    tree = pl.DataFrame({"age": ["30", "34"], "class": ["low", "high"]})
    tree.write_csv(tmp_path / "age.csv", include_header=False)
    asked = policy(publish="hierarchy", hierarchies={"age": str(tmp_path / "age.csv")})
    series = shoal.Series.start(tmp_path / "s", asked, mode=mode)
    series.add(people(1), person="id")
    older = people(2).with_columns(age=pl.lit("77"))
    (tmp_path / "age.csv").write_text("30,low\n34,high\n77,high\n")
    before = seen(tmp_path / "s")
    with pytest.raises(shoal.PolicyError, match="keeps the hierarchies with which it was started") as found:
        series.add(older, person="id")
    assert "77" not in str(found.value)
    assert seen(tmp_path / "s") == before


@pytest.mark.parametrize("kind", ["polars", "pandas", "duckdb", "csv"])
def test_the_rows_of_an_earlier_part_are_refused_where_no_column_tells_who_they_are(kind, tmp_path):
    def given(table: pl.DataFrame) -> dict:
        if kind == "csv":
            table.write_csv(tmp_path / "t.csv")
        held = {
            "polars": lambda: table, "pandas": table.to_pandas, "csv": lambda: tmp_path / "t.csv",
            "duckdb": lambda: pytest.importorskip("duckdb").connect().from_arrow(table.to_arrow()),
        }  # fmt: skip
        return held[kind]()

    january, february = people(0).drop("id"), people(1, 16).drop("id")
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(given(january))
    series.add(given(february))
    before = seen(tmp_path / "s")
    for again, number in ((january, 1), (february.reverse(), 2)):
        with pytest.raises(shoal.InputError, match=rf"has the rows of part {number}, .*person=COLUMN"):
            series.add(given(again))
    assert seen(tmp_path / "s") == before
    assert series.add(given(people(2, 24).drop("id"))).rows == 24  # other rows
    assert series.verify().holds


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_the_rows_of_a_part_without_persons_are_refused_with_persons_too(engine, tmp_path):
    """Nobody in that part is known again, so only the caller can know that these are other people."""
    if engine is not None:
        pytest.importorskip("duckdb")
    people(0).write_csv(tmp_path / "t.csv")
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(tmp_path / "t.csv", identifiers="id", engine=engine)
    before = seen(tmp_path / "s")
    with pytest.raises(shoal.InputError, match=r"has the rows of part 1, which had no column of .*other_people"):
        series.add(tmp_path / "t.csv", person="id", engine=engine)
    with pytest.raises(shoal.InputError, match=r"has the rows of part 1, .*or if they are others, say other_people"):
        series.add(tmp_path / "t.csv", identifiers="id", engine=engine)
    assert seen(tmp_path / "s") == before
    assert series.add(people(1, 16), person="id").rows == 16  # other rows
    assert series.add(tmp_path / "t.csv", person="id", engine=engine, other_people=True).rows == 8
    assert series.add(tmp_path / "t.csv", identifiers="id", engine=engine, other_people=True).rows == 8
    with pytest.raises(shoal.InputError, match="8 people of this table are in an earlier part"):
        series.add(tmp_path / "t.csv", person="id", engine=engine, other_people=True)
    assert series.status()["people"] == 40
    assert series.verify().holds


def test_the_same_rows_of_other_persons_are_a_part(tmp_path):
    """Where a column tells who they are, they are known to be others; without it, the same rows are refused."""
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(people(0), person="id")
    series.add(people(0).with_columns(id="other " + pl.col("id")), person="id")
    with pytest.raises(shoal.InputError, match="has the rows of part 1"):
        series.add(people(0).drop("id"))
    assert series.parts == 2
