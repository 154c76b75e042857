"""A part is the same whether its table is a frame, a file in memory, or a table that an engine holds."""

from typing import Any

import polars as pl
import pytest

import shoal
from shoal.publishing.series_folder import open_series
from tests.commands import run
from tests.data import handed
from tests.series.common import policy

Q = ["age", "zip"]


def cases(month: int, count: int = 60) -> pl.DataFrame:
    """People whose person is a number; ``note`` is theirs alone, so that the ledger can be set against the release."""
    return pl.DataFrame(
        {
            "id": range(1000 * month, 1000 * month + count),
            "age": [str(30 + i * i % 7) for i in range(count)],
            "zip": ["12"[i // 2 % 2] if i % 9 else None for i in range(count)],
            "ill": ["abc"[i * 5 % 3] for i in range(count)],
            "note": [f"n{month}-{i}" for i in range(count)],
        }
    )


KINDS = ["polars", "csv", "csv in duckdb", "parquet in duckdb", "duckdb"]


@pytest.mark.parametrize("kind", KINDS[2:])
def test_an_engine_gives_the_parts_that_a_frame_gives(kind, tmp_path):
    pytest.importorskip("duckdb")
    asked = policy(insensitive="note", seed=3)
    shown = {}
    for own in ("polars", kind):
        series = shoal.Series.start(tmp_path / own, asked)
        for month in (1, 2):
            data, settings = handed(cases(month), own, tmp_path)
            assert series.add(data, person="id", **settings).rows == 60
        assert series.verify().holds, series.verify()
        tables = [pl.read_csv(tmp_path / own / f"000{i}" / "release.csv", infer_schema=False) for i in (1, 2)]
        shown[own] = [sorted(t.select(*Q, "ill").rows(), key=str) for t in tables]
        assert tables[0].columns == ["age", "zip", "ill", "note"]
        _everybody_is_where_the_ledger_says(series, tables)
    assert shown["polars"] == shown[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "pandas",
        "parquet in duckdb",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("polars", "parquet", "duckdb")),
    ],
)
def test_whole_floats_are_published_without_a_point(kind, tmp_path):
    """pandas stores a column of whole numbers as floats if one is missing."""
    pytest.importorskip("duckdb")
    shown = {}
    for floats in (False, True):
        series = shoal.Series.start(tmp_path / f"{floats}", policy(insensitive="note", seed=3))
        for month in (1, 2):
            columns = [pl.col("age", "ill", "note").cast(pl.Int64), pl.col("zip").cast(pl.Int64)]
            frame = cases(month).with_columns(
                ill=pl.col("ill").replace({"a": "1", "b": "2", "c": "3"}), note=pl.int_range(60)
            ).with_columns(columns)  # fmt: skip
            frame = frame.with_columns(pl.exclude("id").cast(pl.Float64)) if floats else frame
            data, settings = handed(frame, kind, tmp_path)
            series.add(data, person="id", **settings)
        assert series.verify().holds
        tables = [pl.read_csv(series.place / f"000{i}" / "release.csv", infer_schema=False) for i in (1, 2)]
        shown[floats] = [[sorted(t.select(*Q, "ill").rows(), key=str), t["note"].sort().to_list()] for t in tables]
    assert shown[True] == shown[False]


def _everybody_is_where_the_ledger_says(series: shoal.Series, tables: list[pl.DataFrame]) -> None:
    held = open_series(series.place)
    lines = {p: (part, t, v) for p, part, t, v, _ in held.ledger.persons.rows()}
    assert len(lines) == 120
    for month, table in enumerate(tables, start=1):
        of = {note: (age, code, ill) for age, code, ill, note in table.rows()}
        for person, note in cases(month).select("id", "note").rows():
            age, code, ill = of[note]
            here = month, held.keyed.one("tuple", [age, code]), held.keyed.one("value", [ill])
            assert lines[held.keyed.one("person", [str(person)])] == here


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_refuses_whom_a_frame_refuses(kind, tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(insensitive="note"))

    def add(table: pl.DataFrame, **more: Any) -> Any:
        data, settings = handed(table, kind, tmp_path)
        return series.add(data, **({"person": "id"} | settings | more))

    with pytest.raises(shoal.InputError, match="2 further rows of the same people"):
        add(pl.concat([cases(1), cases(1)[:2]]))
    with pytest.raises(shoal.InputError, match="'id' has no value in 1 row;"):
        add(cases(1).with_columns(pl.when(pl.col("id") > 1000).then("id")))
    with pytest.raises(shoal.InputError, match="no rows"):
        add(cases(1, 0))
    add(cases(1))
    with pytest.raises(shoal.InputError, match="60 people of this table are in an earlier part"):
        add(pl.concat([cases(1), cases(2)]))
    with pytest.raises(shoal.PolicyError, match="'nobody' is not a column"):
        add(cases(2), person="nobody")
    with pytest.raises(shoal.InputError, match="this table has the rows of part 1"):
        add(cases(3).drop("id"), person=None)
    assert add(cases(3, 63).drop("id"), person=None).rows == 63  # everybody is new
    assert series.verify().holds
    left = [p.name for p in (tmp_path / "s" / "private").iterdir()]
    assert sorted(left) == ["head.json", "key", "ledger-0001", "ledger-0002", "lock"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_wait_in_every_engine(kind, tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(insensitive="note"), wait=1, wait_above=0.4)
    odd = cases(5, 2).with_columns(age=pl.lit("99"), zip=pl.Series(["8", "9"]))
    data, settings = handed(pl.concat([cases(1), odd]), kind, tmp_path)
    part = series.add(data, person="id", **settings)
    assert part.waiting >= 2
    assert part.rows + part.waiting == 62
    data, settings = handed(pl.concat([cases(1), odd, cases(2)]), kind, tmp_path)
    with pytest.raises(shoal.InputError, match="people of this table are in an earlier part"):
        series.add(data, person="id", **settings)
    data, settings = handed(cases(2), kind, tmp_path)
    with pytest.raises(shoal.InputError, match="of an earlier table wait for this part"):
        series.add(data, person="id", **settings)
    assert series.add(data, person="id", without_waiting=True, **settings).rows > 0
    assert series.verify().holds


def test_a_database_at_the_command_line(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "cases.duckdb")) as made:
        arrow = cases(1).to_arrow()  # noqa: F841  (the query finds it by its name)
        made.execute("create table march as select * from arrow")
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["age", "zip"]\nsensitive = ["ill"]\ninsensitive = ["note"]\nk = 2\nl = 2\n'
    )
    assert run("series", "start", "s", "--policy", "p.toml", cwd=tmp_path).returncode == 0
    more = ("--person", "id", "--table", "march", "--memory", "1GB", "--json")
    facts = run("series", "add", "s", "cases.duckdb", *more, cwd=tmp_path).facts
    assert (facts["rows"], facts["people"]) == (60, 60)
    assert run("verify", "s", "--json", cwd=tmp_path).facts["holds"]


def test_a_month_too_large_for_mode_again_is_refused_at_once(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr("shoal.series.AGAIN_BYTES", 2_000_000)
    series = shoal.Series.start(tmp_path / "s", policy(), mode="again")
    data, settings = handed(cases(1).drop("note"), "parquet in duckdb", tmp_path)
    with pytest.raises(shoal.InputError, match=r"60 rows take about 0\.1 GB.*Allow as much, or start .*'increment'"):
        series.add(data, person="id", **(settings | {"memory": "100MB"}))
    assert series.parts == 0
    assert series.add(data, person="id", **(settings | {"memory": "120MB"})).rows == 60
