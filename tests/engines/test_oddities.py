"""Values that look alike, missing ones and codes for them are named by column and count, never shown."""

import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.engines.codes import as_text, encode
from shoal.engines.open import open_table
from shoal.engines.propose import propose
from shoal.engines.recognize import codes
from shoal.engines.store import read_table
from shoal.errors import InputError, MissingDependencyError, PolicyError
from tests.commands import run

ROWS = {
    "town": ["Bonn", "bonn ", "Köln", "Ko\u0308ln", "Ulm", "Ulm", "Jena", "Jena"],
    "age": ["20"] * 8,
    "d": ["flu", "Flu", "flu ", None, "gout", "cold", "cold", None],
}


def test_audit_and_report_name_values_that_look_alike(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS)
    found = shoal.audit(frame, quasi_identifiers=["town", "age"], sensitive=["d"])
    assert [note.split(";")[0] for note in found.notes] == [
        "column 'town': 4 values in 4 rows differ from another one only by case, outer blanks or Unicode normal form",
        "column 'd': 3 values in 3 rows differ from another one only by case, outer blanks or Unicode normal form",
        "column 'd': 2 missing values count as a sensitive value of their own",
    ]
    assert found.as_dict()["notes"] == list(found.notes)
    duckdb = pytest.importorskip("duckdb")
    lazy = duckdb.connect().from_arrow(frame.to_arrow())
    assert shoal.audit(lazy, quasi_identifiers=["town", "age"], sensitive=["d"]).notes == found.notes
    release = shoal.anonymize(frame, quasi_identifiers=["town", "age"], sensitive=["d"], k=2, effort="fast")
    assert tuple(release.facts.before["notes"]) == found.notes
    page = release.report(tmp_path / "r.html", internal=True).read_text()
    assert "2 missing values count as a sensitive value" in page
    assert not shoal.audit(frame.head(1), quasi_identifiers=["town"]).notes


def test_a_table_that_holds_stars_is_proposed_another_text_for_them(tmp_path: Path) -> None:
    rows = {"age": ["20", "*", "30", "31"] * 9, "town": ["Bonn", "Ulm", "hidden", "Bonn"] * 9, "ill": ["flu", "*"] * 18}
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "t.csv")
    told = run("init", tmp_path / "t.csv").ok().stdout
    assert "age (9 rows), ill (18 rows): these rows contain the text *, which releases show for a suppressed" in told
    assert tomllib.loads((tmp_path / "t.policy.toml").read_text())["star"] == "suppressed"
    run("anonymize", tmp_path / "t.csv", "--policy", tmp_path / "t.policy.toml", "--effort", "fast").ok()
    asked = shoal.roles(frame).settings()
    assert asked["star"] == "suppressed"
    assert shoal.anonymize(frame, **asked, effort="fast").audit.k >= 5
    with pytest.raises(InputError, match="such as star='suppressed'"):
        shoal.anonymize(frame, **{**asked, "star": "*"})
    assert "star" not in shoal.roles(frame.with_columns(age=1, ill=2)).settings()


def test_init_names_them_too(tmp_path: Path) -> None:
    pl.DataFrame(ROWS | {"lat": ["50.7", "77.7777", "50.9", "99.9999", "48.4", "48.4", "50.9", "NA"]}).rename(
        {"d": "disease"}
    ).write_csv(tmp_path / "t.csv")
    told = {p.name: " | ".join(p.warnings) for p in propose(tmp_path / "t.csv")}
    assert "4 values in 4 rows differ" in told["town"]
    assert "3 values in 3 rows differ" in told["disease"]
    assert "2 missing values, counted as one more sensitive value" in told["disease"]
    assert "2 rows contain a number that often means" in told["lat"]
    assert "1 row contains a text that often means" in told["lat"]
    assert not told["age"]
    for value in ("Bonn", "bonn", "flu", "gout"):
        assert value not in json.dumps(told)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (["NA", "x", "n/a", "#N/A", "NULL", "-", "?", "#REF!", " na "], 8),
        (["1", "2", "999"], 1),
        ([1, 2, 999, 999, -9], 3),
        ([990, 995, 999, 1000], 0),
        ([1.5, 77.7777, 99.9999], 2),
        (["Nancy", "x-y", "", None], 0),
        ([98, 99, 97], 0),
    ],
)
def test_codes_for_missing_values(values: list[object], rows: int) -> None:
    assert sum(count for count, _ in codes(pl.Series("c", values, strict=False))) == rows


BIG = [2**64 - 2] * 3 + [5] * 3


@pytest.mark.parametrize("kind", ["pandas", "nullable", "polars", "arrow"])
def test_unsigned_numbers_past_2_to_63_stay_as_they_are(kind: str) -> None:
    frame = pd.DataFrame({"a": pd.Series(BIG, dtype="uint64"), "b": list("xyxyxy")})
    made = {
        "pandas": lambda: frame,
        "nullable": lambda: frame.astype({"a": "UInt64"}),
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pa.Table.from_pandas(frame),
    }[kind]()
    out = shoal.anonymize(made, quasi_identifiers=["a"], k=3, effort="fast").table
    held = out["a"].to_pylist() if kind == "arrow" else out["a"].to_list()
    assert sorted(held) == sorted(BIG)
    coded = encode(pl.Series("a", [*BIG, None], dtype=pl.UInt64))
    assert [coded.values[c] for c in coded.codes.tolist()] == [*BIG, None]


@pytest.mark.parametrize(("top", "kind"), [(2**64, pl.UInt64), (2**63, pl.Int64), (2**100, pl.Int128)])
def test_numbers_that_floats_take_for_one_have_ranges_while_they_lie_close(top: int, kind: type[pl.DataType]) -> None:
    frame = pl.DataFrame({"a": pl.Series([top - 1, top - 3, top - 5, top - 7], dtype=kind)})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="ranges", seed=1)
    assert set(made.table["a"]) == {f"[{top - 3}, {top - 1}]", f"[{top - 7}, {top - 5}]"}
    assert made.certificate.cost == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.period_range("2020", periods=6, freq="M"), "pandas.period"),
        (pd.interval_range(0, 6), "pandas.interval"),
        (pd.arrays.SparseArray([1, 0, 0, 0, 1, 1]), "Sparse"),
        ([1j] * 6, "complex128"),
    ],
)
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_kinds_that_cannot_be_held_are_refused_by_name(values: object, kind: str, role: str) -> None:
    frame = pd.DataFrame({"when": values, "b": list("xxxyyy")})
    roles = {"quasi_identifiers": ["b"], "sensitive": []} | {role: ["when"]}
    with pytest.raises(InputError, match=rf"column 'when' holds values of type {kind}.*turn them into (text|dates)"):
        shoal.anonymize(frame, k=2, effort="fast", **roles)


@pytest.mark.parametrize("kind", ["varint", "bit", "interval", "blob", "hugeint"])
def test_kinds_of_duckdb_that_cannot_be_held_are_refused_by_name(kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    text = {"varint": "12", "bit": "101", "interval": "1 day", "blob": "x", "hugeint": "1" + "0" * 38}[kind]
    made = duckdb.connect().sql(f"select cast('{text}' as {kind}) as when, i as b from range(6) t(i)")
    with pytest.raises(InputError, match=r"column 'when' holds values of type .*turn them into text"):
        shoal.anonymize(made, quasi_identifiers=["b"], sensitive=["when"], k=2, effort="fast")


@pytest.mark.parametrize(("kind", "first"), [("hugeint", "17" + "0" * 37), ("uhugeint", "3" + "0" * 38)])
def test_numbers_of_more_digits_than_other_tables_hold_stay(kind: str, first: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    made = duckdb.connect().sql(
        f"select cast('{first}' as {kind}) + i::{kind} as code, i as age, 'x' as ill from range(6) t(i)"
    )
    asked = {"quasi_identifiers": ["code", "age"], "sensitive": ["ill"]}
    exact = {str(int(first) + i) for i in range(6)}
    assert set(as_text(open_table(made).polars(["code"])["code"])) == exact
    assert shoal.compare(made, {"m": made}, **asked).as_dict()["releases"]["m"]["loss"]["ncp"] == 0
    assert shoal.attack(made, made, **asked).findings[0].figure == 1, "each row is linked"
    release = shoal.anonymize(made, quasi_identifiers=["age"], insensitive=["code"], k=2, effort="fast")
    for ending in (".csv", ".parquet", ".xlsx"):
        record = release.write(tmp_path / f"r{ending}", tmp_path / f"r{ending}.json")
        assert set(as_text(read_table(tmp_path / f"r{ending}")["code"])) == exact
        assert shoal.verify(tmp_path / f"r{ending}", record, made).holds


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive"])
@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_floats_of_16_bits_keep_their_fractions(publish: str, role: str, tmp_path: Path) -> None:
    halves = pl.Series([1.5, 2.5, 0.1, -0.0], dtype=pl.Float16)
    table = pl.DataFrame({"v": pl.concat([halves] * 6), "s": ["x", "y"] * 12})
    asked = {"quasi_identifiers": ["s"], "sensitive": [], "k": 2, "publish": publish} | {role: ["v"]}
    asked["insensitive"] = ["s"] if role == "quasi_identifiers" else []
    shoal.anonymize(table, asked).write(tmp_path / "r.csv")
    assert set(pl.read_csv(tmp_path / "r.csv", infer_schema=False)["v"]) == {"1.5", "2.5", "0.099975586", "0"}
    assert shoal.verify(tmp_path / "r.csv", original=table).holds


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_refused_by_name_where_duckdb_reads(kind: Any, tmp_path: Path) -> None:
    table = pl.DataFrame({"q": ["a", "b"] * 4, "n": pl.Series([2**70, 5] * 4, dtype=kind)})
    path = tmp_path / "a b#[x]*?.parquet"
    with path.open("wb") as file:
        table.write_parquet(file)
    asked = {"quasi_identifiers": ["q"], "insensitive": ["n"], "k": 2}
    with pytest.raises(InputError, match=r"column 'n' holds integers of 128 bits, .* cast it to text or to a decimal"):
        shoal.anonymize(path, asked, engine="duckdb")
    assert shoal.anonymize(path, asked).audit.k >= 2


def test_a_proposed_policy_is_toml_whatever_columns_are_called(tmp_path):
    from shoal.engines.propose import looked_at, write_policy

    names = ['a\r\x01\x7f"\\\u00fc', "b\tc"]
    pl.DataFrame({name: [34, 41, 28] * 9 for name in names}).write_parquet(tmp_path / "t.parquet")
    look = looked_at(tmp_path / "t.parquet")
    look = look._replace(columns=[replace(c, role="quasi-identifier") for c in look.columns])
    assert tomllib.loads(write_policy("t.parquet", look, k=5, l=2))["quasi_identifiers"] == names


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, lambda d: pa.table(d)], ids=["polars", "pandas", "arrow"])
def test_a_carried_column_without_a_name_keeps_none(tmp_path: Path, kind: object) -> None:
    frame = kind({"q": ["a", "a", "b", "b"], "": ["n", "n", "m", "m"]})  # type: ignore[operator]
    release = shoal.anonymize(frame, quasi_identifiers=["q"], insensitive=[""], k=2, effort="fast")
    names = getattr(release.table, "column_names", None) or list(release.table.columns)
    assert names == ["q", ""]
    beside = release.write(tmp_path / "r.parquet")
    assert shoal.verify(tmp_path / "r.parquet", beside, original=frame).holds


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, -0.0]])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".xlsx", ".sav", ".dta", ".parquet"])
def test_both_zeros_are_one_value_in_a_file_too(tmp_path: Path, ending: str, zeros: list[float]) -> None:
    table = pl.DataFrame({"age": [1] * 4 + [2] * 4, "balance": [*zeros, 1.5, 1.5] * 2, "note": [-0.0, 0.0] * 4})
    release = shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["balance"], distinct_l=2, effort="fast")
    out = tmp_path / f"r{ending}"
    record = release.write(out)
    seen = shoal.audit(out, quasi_identifiers=["age"], sensitive=["balance"], k=1)
    assert seen.sensitive["balance"].distinct_l == 2
    assert shoal.verify(out, record, table).holds


NAN = float("nan")
NESTED = {
    "list": pl.Series([[0.0, NAN], [-0.0, -NAN], None, []]),
    "array": pl.Series([[0.0], [-0.0], None, [NAN]], dtype=pl.Array(pl.Float32, 1)),
    "struct": pl.Series([{"x": 0.0}, {"x": -0.0}, None, {"x": None}]),
    "deep": pl.Series([[{"x": [0.0]}], [{"x": [-0.0, None]}], None, []]),
}
if hasattr(pl, "Map"):
    NESTED["map"] = pl.Series([{"x": 0.0}, {"x": -0.0}, None, {}], dtype=pl.Map(pl.String, pl.Float64))


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_floats_within_a_value_are_one_zero_and_one_nan_too(tmp_path: Path, kind: str, engine: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    held = pl.concat([NESTED[kind]] * 6).alias("odd")
    table = pl.DataFrame({"age": [1, 2, 3] * 8}).with_columns(held)
    given = table if engine == "polars" else duckdb.connect().from_arrow(table.to_arrow())
    release = shoal.anonymize(given, quasi_identifiers=["age"], insensitive=["odd"], k=2, effort="fast")
    release.write(tmp_path / "r.parquet")
    assert shoal.verify(tmp_path / "r.parquet", original=given).holds
    assert shoal.attack(release, original=given).findings
    found = pl.read_parquet(tmp_path / "r.parquet")["odd"]
    assert found.dtype == held.dtype
    assert sorted(map(repr, found.to_list())) == sorted(repr(v).replace("-0.0", "0.0") for v in held.to_list())


DAY = 86_400_000_000
BEYOND = {  # infinite ones of DuckDB, a day after 9999, and a day before the year 1
    pl.Date: [2**31 - 1, 1 - 2**31, 2_932_897, -719_163],
    pl.Datetime("us"): [2**63 - 1, 1 - 2**63, 2_932_897 * DAY, -719_162 * DAY - 1],
    pl.Datetime("ms"): [2_932_897 * DAY // 1000, -719_162 * DAY // 1000 - 1],
}


@pytest.mark.parametrize(("kind", "day"), [(kind, day) for kind, days in BEYOND.items() for day in days])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_dates_that_no_text_has_are_refused(kind: Any, day: int, role: str, engine: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    days = pl.Series("day", [day, 0, None] * 8, dtype=pl.Int64).cast(pl.Int32 if kind == pl.Date else pl.Int64)
    table = pl.DataFrame({"age": [1, 1, 2, 2] * 6, "ill": list("abc") * 8}).with_columns(days.cast(kind))
    given = table if engine == "polars" else duckdb.connect().from_arrow(table.to_arrow())
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 2, "effort": "fast"}
    with pytest.raises(InputError, match="column 'day' holds dates before the year 1 or after 9999"):
        shoal.anonymize(given, **(asked | {role: ["day", *asked.get(role, [])]}))
    shoal.anonymize(given, identifiers=["day"], **asked).write(tmp_path / "r.parquet")
    assert shoal.verify(tmp_path / "r.parquet", original=given).holds
    ends = pl.Series("day", [-719_162, 2_932_896] * 12, dtype=pl.Int32).cast(pl.Date).cast(kind)
    table = table.with_columns(ends)
    given = table if engine == "polars" else duckdb.connect().from_arrow(table.to_arrow())
    shoal.anonymize(given, **(asked | {role: ["day", *asked.get(role, [])]})).write(tmp_path / "r.parquet")
    assert shoal.verify(tmp_path / "r.parquet", original=given).holds


def test_a_pandas_frame_names_the_package_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"age": pd.array([1, 1, 2, 2], dtype="Int64"), "sex": pd.Categorical(list("ffmm"))})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingDependencyError, match=r"pandas frame needs .* pyarrow; .* pip install 'shoal\[pandas\]'"
    ):
        shoal.anonymize(frame, quasi_identifiers=["age", "sex"], k=2, effort="fast")


def test_a_name_of_the_index_is_told_from_a_name_of_nothing() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "sex": list("ffmm")}).set_index("age")
    with pytest.raises(PolicyError, match=r"'age' is .*the index.* reset_index\(\)"):
        shoal.anonymize(frame, quasi_identifiers=["age", "sex"], k=2, effort="fast")


def test_verify_refuses_a_frame_and_names_the_audit() -> None:
    release = shoal.anonymize(pl.DataFrame({"age": [1, 1, 2, 2]}), quasi_identifiers=["age"], k=2, effort="fast")
    with pytest.raises(InputError, match=r"write\(\).* release\.audit"):
        shoal.verify(release.table, release.certificate)  # type: ignore[arg-type]
