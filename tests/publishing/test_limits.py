"""Top and bottom coding: what lies beyond a limit is one value, on every kind of table, and its loss is counted."""

import datetime
import itertools
import json
import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines.codes import encode
from shoal.engines.open import open_table
from shoal.engines.prepared import beyond
from shoal.errors import PolicyError
from shoal.judge.composition import _overlap
from shoal.judge.tables.privacy import limited
from shoal.model.foreign import domain_of, spread
from shoal.model.members import meanings
from shoal.model.notation import held_in, limits_notation, within
from shoal.publishing.series.increment import ReleasedColumn
from shoal.publishing.verifying.own_rows import limits_kept
from tests.data import people as people_of
from tests.kept import holding, verify

LIMITS = {"top": {"age": 45}, "bottom": {"age": 25}}
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "k": 4, "l": 2, "seed": 1, "effort": "fast",
    "numeric_stars": "text",
}  # fmt: skip


def people() -> pl.DataFrame:
    return people_of(0.3).select("age", "zip", "ill")


def named(text: str | None) -> str | None:
    """What a release of the clipped ages shows, as the limits name it."""
    if text is None:
        return None
    parts = text.strip("[]").split(", ")
    new = ", ".join({"45": ">=45", "25": "<=25"}.get(part, part) for part in parts)
    return f"[{new}]" if text[0] == "[" else new


WAYS: list[dict[str, Any]] = [
    {}, {"publish": "ranges"}, {"publish": "centers"}, {"missing": "apart"}, {"method": "mondrian"},
    {"publish": "ranges", "range_step": {"age": 5}},
]  # fmt: skip


@pytest.mark.parametrize("more", WAYS)
def test_the_release_is_that_of_the_clipped_table_with_names_for_its_ends(more: dict, tmp_path: Path) -> None:
    before = people()
    release = shoal.anonymize(before, secret=b"s" * 16, **ASKED, **more, **LIMITS)
    clipped = shoal.anonymize(before.with_columns(pl.col("age").clip(25, 45)), secret=b"s" * 16, **ASKED, **more)
    assert release.certificate.cost == pytest.approx(clipped.certificate.cost)
    assert release.certificate.lower_bound == pytest.approx(clipped.certificate.lower_bound)
    if "range_step" not in more:  # where a range may end at a limit and hold nobody there
        plain = [(named(str(a) if a is not None else None), z, i) for a, z, i in clipped.table.rows()]
        assert sorted(map(str, release.table.rows())) == sorted(map(str, plain))
    for path in ("out.csv", "out.parquet"):
        release.write(tmp_path / path)
        paper = tmp_path / path.replace(path[3:], ".certificate.json")
        holding(verify(tmp_path / path, paper))
        verdict = holding(verify(tmp_path / path, tmp_path / "out.record.json", before))
        assert {"limits", "values at limits"} <= {f.check for f in verdict.findings if f.how == "recomputed"}
        other = before.with_columns(age=pl.when(pl.col("age") == 44).then(46).otherwise("age"))
        assert not verify(tmp_path / path, tmp_path / "out.record.json", other).holds
        for file in tmp_path.iterdir():
            file.unlink()


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 30), st.sampled_from("ab")), min_size=6, max_size=40),
    st.integers(0, 12),
    st.integers(13, 30),
)
def test_the_loss_with_limits_is_at_least_that_on_the_line_of_the_original(rows: list, low: int, high: int) -> None:
    """Every cell counted against the ages that it may hide, from the lowest to the highest of the table."""
    table = pl.DataFrame(rows, schema={"age": pl.Int64, "zip": pl.String}, orient="row")
    known = [a for a, _ in rows if a is not None]
    if len({*known}) < 2:
        return
    release = shoal.anonymize(
        table.drop_nulls(), quasi_identifiers=["age", "zip"], k=2, publish="ranges", seed=1, effort="fast",
        top={"age": high}, bottom={"age": low},
    ) if len(known) > 1 else None  # fmt: skip
    if release is None:
        return
    least, most = min(known), max(known)
    span = most - least
    lost = 0.0
    for text in release.table["age"]:
        ends = held_in(text)
        a = least if ends[0][0] == "<" else max(int(ends[0].strip("<>=")), least)
        b = most if ends[-1][0] == ">" else min(int(ends[-1].strip("<>=")), most)
        lost += (b - a) / span
    zips = table.drop_nulls()["zip"].n_unique()
    lost += sum((len(held_in(t)) - 1) / max(zips - 1, 1) if t != "*" else 1.0 for t in release.table["zip"])
    assert release.loss["ncp_with_limits"] >= lost / (2 * release.table.height) - 1e-9
    assert release.loss["ncp_with_limits"] >= release.loss["ncp"]


COLUMNS: list[tuple[list[Any], Any]] = [
    ([3, 20, None, 95, 90, 89], pl.Int64),
    ([3.5, float("nan"), 90.0, 1e9, 17.5, None], pl.Float64),
    (["3", "20", None, "95", "", "1000000"], pl.String),
    (["95", "90", "18"], pl.Categorical),
    ([200, 3, 250], pl.UInt8),
    ([None, None], pl.Int64),
    ([50, 60, 50], pl.Int64),
    ([float("inf"), 20.0, 30.0], pl.Float64),
    ([float("-inf"), 20.0, float("inf")], pl.Float64),
    ([95.5, 34.0, None, -0.0, 17.25, 90.0], pl.Float64),
    ([95.5, 34.5, 35.0], pl.Float64),
    ([16777217.0, 89.0, 1e30], pl.Float32),
    ([Decimal("34.00"), Decimal("95.50")], pl.Decimal(6, 2)),
    ([Decimal("34.10"), Decimal("95.50"), Decimal("35.00")], pl.Decimal(6, 2)),
]


@pytest.mark.parametrize(("low", "high"), [(18, 90), (None, 20), (-3.5, None)])
@pytest.mark.parametrize(("held", "kind"), COLUMNS)
def test_engine_and_judge_code_one_column_alike(held: list, kind: Any, low: float | None, high: float | None) -> None:
    frame = pl.DataFrame({"*": pl.Series(held, dtype=kind)})
    notation = limits_notation(low, high)
    if (low is None and float("-inf") in held) or (high is None and float("inf") in held):
        with pytest.raises(PolicyError, match=r"column '\*' has limits .* 1 value within them is infinite"):
            encode(frame["*"], notation)
        return
    coded = encode(frame["*"], notation)
    mine = [coded.texts()[c] for c in coded.codes]
    found, seen = limited(frame, {"*": notation})
    assert [t or None for t in mine] == [t or None for t in found["*"].to_list()]
    assert beyond(open_table(frame), {"*": notation})["*"] == pytest.approx(seen["*"])
    assert all(0 <= share <= 1 for share in (seen["*"]["below"], seen["*"]["above"]))
    line = coded.positions()
    assert line is None or (line[:-1] < line[1:]).all()


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("publish", ["stars", "ranges", "centers"])
@pytest.mark.parametrize("given", ["polars", "pandas", "duckdb"])
def test_no_byte_tells_what_lies_beyond_a_limit(publish: str, given: str, ending: str, tmp_path: Path) -> None:
    """Ages beyond the limits that are other numbers, of another type too: file, certificate, and page are the same."""
    seen: list[dict[str, bytes | dict[str, Any]]] = []
    for beyond_ in ({48: 48, 23: 20}, {48: 1e6, 23: -3.0}, {48: 45.25, 23: 24.5}):
        ages = people().with_columns(age=pl.col("age").clip(23, 48).replace_strict(beyond_, default=pl.col("age")))
        table: Any = ages.to_pandas() if given == "pandas" else ages
        if given == "duckdb":
            ages.write_parquet(tmp_path / "in.parquet")
            table = tmp_path / "in.parquet"
        more = {"engine": "duckdb"} if given == "duckdb" else {}
        release = shoal.anonymize(table, secret=b"s" * 16, **ASKED, **more, publish=publish, **LIMITS)
        release.write(tmp_path / f"out{ending}")
        told = json.loads((tmp_path / "out.certificate.json").read_text())
        page = json.loads(release.report(tmp_path / "page.html").with_suffix(".json").read_text())
        for changing in ("made_at", "seal"):
            told.pop(changing, None), page.pop(changing, None), page.get("certificate", {}).pop(changing, None)
        seen.append({"file": (tmp_path / f"out{ending}").read_bytes(), "told": told, "page": page})
        for file in tmp_path.iterdir():
            file.unlink()
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_rounded_range_ends_at_a_limit_only_with_who_is_beyond(seed: int, tmp_path: Path) -> None:
    """[40, 45] holds nobody of 45 and more, [40, >=45] may; rows can be matched, and numbers read, accordingly."""
    drawn = np.random.default_rng(seed)
    ages = drawn.integers(18, 60, 120)
    table = pl.DataFrame({"age": ages, "ill": drawn.choice(["flu", "gout"], 120)})
    asked = {
        "quasi_identifiers": ["age"],
        "sensitive": ["ill"],
        "publish": "ranges",
        "range_step": {"age": 5},
        "seed": 1,
    }
    release = shoal.anonymize(table, **asked, k=3, effort="fast", keep_order=True, **LIMITS)
    texts = release.table["age"].to_list()
    assert {"[40, 45]", "[25, 30]"} <= {*texts}
    for age, text, cell in zip(ages.tolist(), texts, release.members("age"), strict=True):
        assert str(age) in cell
        assert (age >= 45) <= (">=45" in text)
        assert (age <= 25) <= ("<=25" in text)
        if text == "[40, 45]":
            assert "45" not in cell
            assert ">=45" not in cell
        if text == "[25, 30]":
            assert "25" not in cell
            assert "<=25" not in cell
    ends = release.numeric().with_columns(text=release.table["age"])
    assert set(ends.filter(pl.col("text") == "[40, 45]").select("age_low", "age_high").rows()) == {(40.0, 44.0)}
    assert set(ends.filter(pl.col("text") == "[25, 30]").select("age_low", "age_high").rows()) == {(26.0, 30.0)}
    drawn_ages = release.sample(seed=seed)["age"].to_list()
    assert not [a for a, text in zip(drawn_ages, texts, strict=True) if text == "[40, 45]" and a > 44]
    release.write(tmp_path / "out.csv")
    holding(verify(tmp_path / "out.csv", tmp_path / "out.record.json", table))
    older = table.with_columns(age=pl.when(pl.col("age") == 44).then(50).otherwise("age"))
    found = verify(tmp_path / "out.csv", tmp_path / "out.record.json", older).findings
    assert [f.holds for f in found if f.check == "rows match"] == [False]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"top": {"age": "old"}}, "a limit is a number, of dates that of a year"),
    ({"top": {"zip": 1935}, "zips": [datetime.date(1930, 1, 1)]}, "publish the year of a date alone"),
    ({"top": {"zip": 1935}, "zips": ["1930-01-01"]}, "publish the year of a date alone"),
    ({"top": {"ill": 3}}, "quasi-identifier"),
    ({"top": {"age": 18}, "bottom": {"age": 18}}, "not below"),
    ({"top": {"age": 45}, "decimal": {"age": ","}}, "only plain numbers have limits"),
    ({"top": {"age": 45}, "publish": "hierarchy", "hierarchies": {"age": "prefixes:1"}}, "a class for the values"),
    ({"top": {"age": 45}, "publish": "hierarchy", "hierarchies": {"age": "intervals"}}, "a class for the values"),
    ({**LIMITS, "publish": "hierarchy", "hierarchies": {"age": "intervals:5,50"}}, "holds both its limits"),
    ({"top": {"age": 45}, "dates": {"age": "%d.%m.%Y"}}, "publish the year alone"),
    ({"top": {"age": 45}, "population": "town.csv", "k_map": 5}, "values that people have"),
    ({"top": {"zip": 60}, "publish": "ranges", "zips": ["a1"]}, "is no number"),
    ({"top": {"age": 44}, "publish": "ranges", "range_step": {"age": 5}}, "no multiple"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "says"), REFUSED)
def test_what_cannot_be_gets_one_sentence(more: dict, says: str) -> None:
    table = people()
    if zips := more.pop("zips", None):
        table = table.with_columns(zip=pl.lit(zips[0]))
    with pytest.raises(PolicyError, match=says):
        shoal.anonymize(table, **{**ASKED, **more})


def test_a_hierarchy_file_may_have_a_class_for_the_values_beyond() -> None:
    rows = [*([str(a), "young" if a < 40 else "old", "*"] for a in range(16, 45)), [">=45", "old", "*"]]
    table = people_of(0).select("age", "ill")
    asked = {**ASKED, "quasi_identifiers": ["age"], "publish": "hierarchy", "hierarchies": {"age": rows}}
    release = shoal.anonymize(table, **asked, top={"age": 45})
    assert set(release.table["age"]) <= {"young", "old", "*", ">=45", *map(str, range(16, 45))}


def test_a_hierarchy_made_from_counts_has_a_class_for_the_values_beyond() -> None:
    asked = {**ASKED, "quasi_identifiers": ["age"], "publish": "hierarchy", "hierarchies": {"age": "labels"}}
    release = shoal.anonymize(people_of(0).select("age", "ill"), **asked, top={"age": 45})
    assert release.audit.passes


def test_who_reads_a_release_knows_what_a_value_at_a_limit_may_be(tmp_path: Path) -> None:
    release = shoal.anonymize(people(), **ASKED, publish="ranges", **LIMITS)
    cells = dict(zip(release.table["age"], release.members("age"), strict=True))
    assert "95" in cells[">=45"]
    assert "44" not in cells[">=45"]
    open_above = next(c for t, c in cells.items() if t and t.endswith(", >=45]"))
    assert "95" in open_above
    assert "20" not in open_above
    ends = release.numeric().with_columns(release.table["age"])
    beyond_ = ends.filter(pl.col("age").str.contains(">=45"))
    assert beyond_.height
    assert beyond_["age_high"].null_count() == beyond_["age_mid"].null_count() == beyond_.height
    assert not beyond_["age_low"].null_count()
    drawn = release.sample(seed=1)["age"].drop_nulls()
    assert (drawn.min(), drawn.max()) == (25, 45)
    release.write(tmp_path / "out.csv")
    assert shoal.decode(tmp_path / "out.csv").numeric().equals(release.numeric())


def test_ranges_with_an_open_end_hold_all_values_beyond_for_comparisons() -> None:
    domain = domain_of([str(a) for a in range(10, 110, 10)])
    found = spread(["[40, >=90]", "[<=20, 30]", ">=90"], domain)
    assert found.unknown == 0
    assert found.size.tolist() == [7, 3, 2]


@pytest.mark.parametrize("mode", ["increment", "again", "views"])
def test_a_series_keeps_its_limits(mode: str, tmp_path: Path) -> None:
    def month(first: int) -> pl.DataFrame:
        table = pl.concat([people_of(0)] * 2).select("age", "zip", "ill")
        return table.with_columns(who=pl.Series([f"p{first + i}" for i in range(table.height)]))

    asked = {k: v for k, v in ASKED.items() if k not in ("numeric_stars", *(("k",) if mode == "again" else ()))}
    series = shoal.Series.start(
        tmp_path / "cases", shoal.Policy.of(**asked, publish="ranges", person="who", **LIMITS), mode=mode
    )
    series.add(month(0))
    if mode == "views":
        series.view(["age"])
    else:
        series.add(month(10_000) if mode == "increment" else pl.concat([month(0).head(200), month(10_000).head(60)]))
    assert series.verify().holds
    parts = [pl.read_csv(file, infer_schema=False)["age"] for file in (tmp_path / "cases").glob("**/*.csv")]
    shown = {end for part in parts for text in part.drop_nulls() for end in held_in(text)}
    assert {"<=25", ">=45"} <= shown
    assert all(25 < int(end) < 45 for end in shown - {"<=25", ">=45", None})


@pytest.mark.parametrize(
    ("shown", "good"),
    [
        ("[40, 45]", False),
        ("45", False),
        ("[44, 46]", False),
        ("25", False),
        (">=90", False),
        ("[26, >=45]", True),
        ("*", True),
    ],
)
def test_the_judge_sees_a_value_at_or_beyond_a_limit(shown: str, good: bool) -> None:
    policy = shoal.Policy.of(**ASKED, publish="ranges", **LIMITS)
    held: Any = SimpleNamespace(cells=pl.DataFrame({"age": [shown, ">=45", "<=25"]}), counts=np.ones(3, np.int64))
    record: Any = SimpleNamespace(policy=policy, private=False, release=SimpleNamespace(publish="ranges"))
    assert [f.holds for f in limits_kept(held, record)] == [good]


LEFT = ["95", "34", "[80, 92]", "*", "10"]
MEETS = {
    ">=90": [True, False, True, True, False], "34": [False, True, False, True, False],
    "[30, 40]": [False, True, False, True, False], "[85, >=90]": [True, False, True, True, False],
    "<=20": [False, False, False, True, True], "[<=20, 34]": [False, True, False, True, True],
}  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "good"),
    [
        ("[40, 45]", True),
        ("[25, 30]", True),
        ("[45, 50]", False),
        ("[20, 25]", False),
        ("45", False),
        ("25", False),
        ("[25, 45]", True),
        ("[45, >=45]", False),
    ],
)
def test_the_judge_takes_the_limit_as_the_end_of_a_rounded_range(shown: str, good: bool) -> None:
    policy = shoal.Policy.of(**ASKED, publish="ranges", range_step={"age": 5}, **LIMITS)
    held: Any = SimpleNamespace(cells=pl.DataFrame({"age": [shown, ">=45", "<=25"]}), counts=np.ones(3, np.int64))
    record: Any = SimpleNamespace(policy=policy, private=False, release=SimpleNamespace(publish="ranges"))
    assert [f.holds for f in limits_kept(held, record)] == [good]


def test_a_second_release_with_limits_is_set_against_one_without() -> None:
    notation = limits_notation(20, 90)
    right = meanings([*MEETS], "ranges", starred=True, notation=notation)
    met = _overlap(meanings(LEFT, "ranges", starred=True), right, None, notation)
    assert met.T.tolist() == [*MEETS.values()]
    assert _overlap(right, meanings(LEFT, "ranges", starred=True), notation, None).tolist() == [*MEETS.values()]
    other = limits_notation(None, 80)
    wide = _overlap(right, meanings([">=80", "[60, >=80]", "50"], "ranges", notation=other), notation, other)
    assert wide.tolist() == [[True, True, False], *[[False, False, False]] * 2, [True, True, False],
                             *[[False, False, False]] * 2]  # fmt: skip
    words = meanings(["old", "young"], "ranges", starred=True)
    assert _overlap(words, right, None, notation).all()


INTERVALS = [
    "intervals:5,10",
    "intervals:3,6,12",
    shoal.Hierarchy.intervals([[20, 30, 40], [30]]),
    shoal.Hierarchy.intervals([4, 8], origin=2),
]


@pytest.mark.diagonal
@pytest.mark.parametrize("tree", INTERVALS)
@pytest.mark.parametrize("more", [{}, {"global_recoding": True}, {"coarsen": "auto"}, {"missing": "apart"}])
@pytest.mark.parametrize("limits", [LIMITS, {"top": {"age": 41}}, {"bottom": {"age": 24}}])
def test_the_interval_at_a_limit_holds_all_beyond(tree: Any, more: dict, limits: dict, tmp_path: Path) -> None:
    """By each age and by what it is published as, read without the product."""
    table = people()
    asked: dict[str, Any] = {**ASKED, "quasi_identifiers": ["age"], "l": None, "hierarchies": {"age": tree}}
    asked["publish"] = "hierarchy"
    release = shoal.anonymize(table.select("age", "ill"), **asked, **limits, **more, keep_order=True)
    low, high = limits.get("bottom", {}).get("age", -99), limits.get("top", {}).get("age", 199)
    for age, text, cell in zip(table["age"], release.table["age"], release.members("age"), strict=True):
        assert age in cell
        if age is None or text == "*":
            continue
        found = re.fullmatch(r"(>=|<|<=)?(\d+)(?:-(\d+))?|\[(-?\d+), (\d+)\)", text)
        assert found is not None
        ends = {
            ">=": (int(found[2] or 0), 999), "<": (-999, int(found[2] or 0) - 1), "<=": (-999, int(found[2] or 0)),
        }.get(found[1] or "")  # fmt: skip
        if ends is None and found[4] is not None:
            ends = int(found[4]), int(found[5]) - 1
        first, last = ends or (int(found[2]), int(found[3] or found[2]))
        assert first <= age <= last
        assert last == 999 or last < high
        assert first == -999 or first > low
    release.write(tmp_path / "out.csv")
    given = {"hierarchies": {"age": tree}} if not isinstance(tree, str) else {}
    holding(verify(tmp_path / "out.csv", tmp_path / "out.record.json", table.select("age", "ill"), **given))


@given(st.lists(st.integers(10, 60), min_size=1, max_size=6))
def test_a_class_of_a_series_that_widens_holds_all_who_are_in_it_and_nobody_beyond(ages: list[int]) -> None:
    policy = shoal.Policy.of(**ASKED, publish="ranges", range_step={"age": 5}, **LIMITS)
    coded = [limit or str(age) for age in ages for _, limit in [within(age, policy.limits["age"])]]
    column = ReleasedColumn("age", policy, [*map(str, range(26, 45)), "<=25", ">=45"])
    text: Any = column.own(coded[0])
    for value in coded[1:]:
        text = column.widened(text, value)
    assert all(column.fits(text, value) for value in coded)
    ends = held_in(text)
    assert (">=45" in ends) == (max(ages) >= 45)
    assert ("<=25" in ends) == (min(ages) <= 25)
    assert column.fits(text, ">=45") == (">=45" in ends)
    assert column.fits(text, "<=25") == ("<=25" in ends)
    assert all(int(end.strip("<>=")) % 5 == 0 for end in ends if end and len(ends) > 1)


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive", "identifiers"])
@pytest.mark.parametrize(("limited", "beside"), [("age", "born"), ("birth_year", "Age"), ("age", "age_of_spouse")])
def test_a_column_that_tells_what_a_limit_hides_is_named(role: str, limited: str, beside: str) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({limited: rng.integers(20, 60, 60), beside: rng.integers(1, 5, 60)})
    asked: dict[str, Any] = {"quasi_identifiers": [limited], "k": 3, "effort": "fast", "seed": 1, "top": {limited: 50}}
    asked[role] = [*asked.get(role, []), beside]
    named = [n for n in shoal.anonymize(frame, **asked).facts.notes if f"column {beside!r} tells what the limit" in n]
    assert len(named) == (role != "identifiers" and beside != "age_of_spouse")
    if named:
        both = asked | {"top": {limited: 50, beside: 4}}
        notes = shoal.anonymize(frame, **both).facts.notes if role == "quasi_identifiers" else ()
        assert not any("tells what the limit" in n for n in notes)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
@pytest.mark.parametrize("what", ["beyond the limit", "in a removed column"])
def test_a_kept_order_tells_of_no_rows_that_they_are_equal(what: str, kind: str) -> None:
    """One of three rows of a tuple is published with the last row; which one depends on no value."""
    seen = set()
    for held in itertools.product((9.25, 10.0), repeat=3):
        rents = held if what == "beyond the limit" else (10.0,) * 3
        people = pl.DataFrame({"name": [str(v) for v in (*held, 7)], "rent": [*rents, 40.5]})
        given = people if kind == "polars" else people.to_pandas()
        made = shoal.anonymize(
            given, quasi_identifiers=["rent"], identifiers=["name"], k=2, bottom={"rent": 10}, publish="stars",
            keep_order=True, secret=b"kept by the steward", effort="fast",
        )  # fmt: skip
        shown = made.table if kind == "polars" else pl.from_pandas(made.table)
        seen.add(tuple(shown["rent"].to_list()))
    assert len(seen) == 1
    assert sorted(map(str, next(iter(seen)))).count("<=10") == 2
