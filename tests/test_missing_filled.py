"""Missing values filled with the most frequent one: every recoding and engine, loss, certificate and verdict."""

import datetime
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines.open import open_table
from shoal.engines.prepared import filled
from shoal.errors import InputError, PolicyError
from shoal.judge.tables.privacy import filled as judged
from tests.data import TREES
from tests.data import people as people_of
from tests.kept import holding, verify, write_sealed

QUASI = ["age", "zip"]
ASKED: dict[str, Any] = {
    "quasi_identifiers": QUASI, "sensitive": ["ill"], "k": 4, "l": 2, "missing": "filled", "seed": 1, "effort": "fast",
}  # fmt: skip


def people() -> pl.DataFrame:
    return people_of(0.3).select("age", "zip", "ill")


def by_hand(rows: list[Any]) -> list[Any]:
    """A column filled; the least of several that are as frequent."""
    held = Counter(r for r in rows if r is not None)
    value = min(v for v, n in held.items() if n == max(held.values()))
    return [value if r is None else r for r in rows]


def whole(before: pl.DataFrame) -> pl.DataFrame:
    return before.with_columns(pl.Series(n, by_hand(before[n].to_list()), before[n].dtype) for n in QUASI)


WAYS: list[dict[str, Any]] = [
    {},
    {"publish": "ranges"},
    {"publish": "hierarchy", "hierarchies": TREES},
    {"publish": "hierarchy", "hierarchies": TREES, "coarsen": "auto", "l": None},
    {"publish": "centers"},
    {"global_recoding": True, "max_suppressed": 0.3},
    {"method": "mondrian"},
    {"max_average_risk": 0.1},
]  # fmt: skip


@pytest.mark.parametrize("more", WAYS)
def test_the_release_is_that_of_the_table_filled_by_hand_and_says_so(more: dict, tmp_path: Path) -> None:
    before = people()
    asked = {name: value for name, value in {**ASKED, **more}.items() if value is not None}
    release = shoal.anonymize(before, secret=b"s" * 16, **asked)
    plain = shoal.anonymize(whole(before), secret=b"s" * 16, **{**asked, "missing": "category"})
    assert release.certificate.cost == plain.certificate.cost
    assert release.certificate.lower_bound == plain.certificate.lower_bound
    assert sorted(map(str, release.table.rows())) == sorted(map(str, plain.table.rows()))
    assert release.facts.missing.filled == {n: before[n].null_count() for n in QUASI}
    share = sum(release.facts.missing.filled.values()) / (2 * before.height)
    assert release.loss["ncp_with_filled"] == pytest.approx(release.loss["ncp"] + share)
    assert any("counts as lost" in note for note in release.audit.notes)
    out = tmp_path / "out.parquet"
    release.write(out)
    verdict = holding(verify(out, tmp_path / "out.record.json", before))
    assert "filled cells" in {f.check for f in verdict.findings if f.how == "recomputed"}
    other = before.with_columns(zip=pl.col("zip").fill_null("94999"))
    assert not verify(out, tmp_path / "out.record.json", other).holds


DAY = datetime.date(2020, 1, 1)
COLUMNS: list[tuple[list[Any], Any, Any]] = [
    ([3, 20, None, 3, 20], 3, pl.Int64),  # a tie goes by number, 20 stands before 3 as text
    (["3", "20", None], "3", pl.String),
    (["b", "a", None, "c", "a", "b"], "a", pl.String),
    *((["nan", "-0", *more, None], "-0", pl.String) for more in ([], ["7"], ["1e3", "7"], ["1.5", "1e3", "7"])),
    ([1.5, float("nan"), 2.5, 2.5], 2.5, pl.Float64),
    ([DAY, None], DAY, pl.Date),
    ([True, False, None], False, pl.Boolean),
    (["x", "y", None, "y"], "y", pl.Enum(["y", "x"])),
    (["x", "y", None, "y"], "y", pl.Categorical),
    ([None, 2], 2, pl.Int8),
    ([datetime.time(9, 30), None, datetime.time(1, 2, 3, 4)], datetime.time(1, 2, 3, 4), pl.Time),
    ([datetime.datetime(2020, 1, 1, 9), None], datetime.datetime(2020, 1, 1, 9), pl.Datetime("ms")),
    ([Decimal("1.50"), None], Decimal("1.50"), pl.Decimal(10, 2)),
    ([None, None, 5, None, 4, 5], 5, pl.Int64),  # blanks are no value, however many
]


@pytest.mark.parametrize(("held", "wanted", "kind"), COLUMNS)
@pytest.mark.parametrize("engine", ["polars", "duckdb", "duckdb's parquet"])
def test_the_most_frequent_value_and_of_several_the_least(
    held: list, wanted: Any, kind: Any, engine: str, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"*": pl.Series(held, dtype=kind)})
    gone = [v is None or v != v for v in held]
    expected = [wanted if g else v for v, g in zip(held, gone, strict=True)]
    if engine != "polars":
        import duckdb

        frame = frame.rename({"*": "x"})
        data: Any = duckdb.connect().from_arrow(frame.to_arrow())
        if engine != "duckdb":
            frame.write_parquet(tmp_path / "t.parquet")
            data = duckdb.read_parquet(str(tmp_path / "t.parquet"))
    else:
        data = frame
    name = frame.columns[0]
    made, cells = filled(open_table(data), [name])
    assert cells == {name: sum(gone)}
    assert made.polars([name])[name].to_list() == expected
    look, seen = judged(frame, [name])
    assert (look[name].to_list(), seen) == (expected, cells)


LIMITED: list[tuple[list[Any], list[Any], str, Any]] = [  # two columns that are one table where limits are coded
    ([30, 30, 95, 95, 95, None], [30, 30, 91, 92, 93, None], ">=90", pl.Int64),
    ([30, 30, 0, 0, 0, None], [30, 30, 20, 19, -7, None], "<=20", pl.Int64),
    ([30.5, 30.5, 95.5, 95.5, 95.5, None], [30.5, 30.5, 91.0, 92.25, 1e300, None], ">=90", pl.Float64),
    (["30", "30", "95", "95", "95", None], ["30", "30", "91", "92.50", "93", None], ">=90", pl.String),
    ([30, 30, 95, 95, 19, None], [30, 30, 91, 92, 5, None], "30", pl.Int64),  # a tie goes to the lower
    ([8, 8, 95, 95, None], [8, 9, 91, 92, None], "<=20", pl.Int64),
    ([100, 100, 9, 9, None], [101, 102, 9, 9, None], "<=20", pl.Int64),
]


@pytest.mark.parametrize(("one", "other", "wanted", "kind"), LIMITED)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_filled_value_does_not_tell_which_values_beyond_a_limit_are_equal(
    one: list, other: list, wanted: str, kind: Any, engine: str, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"k": 1, "missing": "filled", "bottom": {"age": 20}, "top": {"age": 90}}
    shown = []
    for held in (one, other):
        frame = pl.DataFrame({"age": pl.Series(held, dtype=kind), "ill": "flu"})
        frame.write_parquet(tmp_path / "in.parquet")
        release = shoal.anonymize(
            tmp_path / "in.parquet", engine=engine, quasi_identifiers=["age"], insensitive=["ill"],
            secret=b"s" * 16, seed=1, effort="fast", **asked,
        )  # fmt: skip
        release.write(tmp_path / "out.csv")
        holding(verify(tmp_path / "out.csv", tmp_path / "out.record.json", frame))
        shown.append((tmp_path / "out.csv").read_text())
        assert _coded(judged(frame, ["age"], {"age": "<=20 >=90"})[0]["age"][-1]) == wanted
    assert shown[0] == shown[1]
    assert shown[0].split().count(f"{wanted},flu") == 1 + sum(_coded(v) == wanted for v in one)


def _coded(value: Any) -> str:
    if value is None:
        return ""
    return "<=20" if float(value) <= 20 else ">=90" if float(value) >= 90 else str(value)


def test_an_audit_counts_the_table_filled() -> None:
    seen = shoal.audit(people(), quasi_identifiers=QUASI, sensitive=["ill"], missing="filled")
    full = shoal.audit(whole(people()), quasi_identifiers=QUASI, sensitive=["ill"])
    assert (seen.k, seen.classes) == (full.k, full.classes)


REFUSED = [
    ({"population": "town.csv", "k_map": 5}, PolicyError, "values that are not theirs"),
    ({"population_weights": "w", "k_map": 5}, PolicyError, "values that are not theirs"),
    ({"quasi_identifiers": ["ill"], "coordinates": ("x", "y"), "sensitive": []}, PolicyError, "without a place"),
]


@pytest.mark.parametrize(("more", "kind", "says"), REFUSED)
def test_what_cannot_be_gets_one_sentence(more: dict, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        shoal.Policy.of(**{**ASKED, **more})


def test_a_column_without_any_value_cannot_be_filled() -> None:
    table = people().with_columns(zip=pl.lit(None, pl.String))
    with pytest.raises(InputError, match="column 'zip' has no value"):
        shoal.anonymize(table, **ASKED)


@pytest.mark.parametrize("bent", [-1, 121, 1.5])
def test_no_column_has_fewer_filled_cells_than_none_or_more_than_rows(bent: float, tmp_path: Path) -> None:
    """Of two columns as many cells together, so that the loss stays what it is."""
    shoal.anonymize(people(), **ASKED).write(tmp_path / "out.csv")
    record = tmp_path / "out.record.json"
    facts = json.loads(record.read_text())
    first, second = QUASI
    both = facts["filled"][first] + facts["filled"][second]
    for cells, holds in (({first: 0, second: both}, True), ({first: bent, second: both - bent}, False)):
        told = {n: v for n, v in facts.items() if n != "seal"} | {"filled": cells}
        write_sealed(record, told)
        found = {f.check: f.holds for f in verify(tmp_path / "out.csv", record).findings}
        assert found["filled values"] is holds


def test_the_type_of_a_column_of_pandas_does_not_tell_that_one_of_its_booleans_was_filled() -> None:
    import pandas as pd

    def published(smokes: list[bool | None]) -> pd.DataFrame:
        table = pd.DataFrame({"smokes": smokes, "ill": ["a", "b", "a", "b"]})
        asked = {"quasi_identifiers": ["smokes"], "sensitive": ["ill"], "k": 4, "publish": "stars"}
        return shoal.anonymize(table, missing="filled", seed=1, secret=b"the same for both", **asked).table

    pd.testing.assert_frame_equal(published([True, None, True, True]), published([True, True, True, True]))
