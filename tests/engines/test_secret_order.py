"""Two releases of the same people under one secret: nobody can lay them side by side, row by row."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import shoal
from shoal.engines import order
from shoal.engines.order import ShuffleKey, row_hashes, shuffled
from shoal.errors import InputError
from tests.data import as_polars

SECRET = b"sixteen bytes or more"
N = 120
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age"], "sensitive": ["s"], "k": 3, "publish": "ranges", "effort": "fast", "seed": 1,
    "secret": SECRET,
}  # fmt: skip


def people(shift: int, carried: str = "") -> pl.DataFrame:
    """The same persons every time; ``s`` says which one a row is, spelled so that both tables sort alike."""
    of = np.random.default_rng(0).permutation(N)
    frame = pl.DataFrame({"age": [str(100 + i) for i in of], "s": [f"p{shift + i}" for i in of]})
    return frame.with_columns(pl.Series(carried, [str(i % 5) for i in of])) if carried else frame


def duck(frame: pl.DataFrame) -> Any:
    import duckdb

    connection = duckdb.connect()
    return connection.from_arrow(frame.to_arrow())


MADE: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda f: f, "lazy": lambda f: f.lazy(), "pandas": lambda f: f.to_pandas(),
    "pyarrow": lambda f: f.to_arrow(), "duckdb": duck,
}  # fmt: skip


def who(column: Any, shift: int) -> list[int]:
    return [int(str(s)[1:]) - shift for s in column]


def sensitive(table: Any) -> list[Any]:
    return as_polars(table)["s"].to_list()


def meet(first: list[int], second: list[int]) -> int:
    """Rows at the same place in both that are one person's: of unrelated orders about one, ten with odds of 10^-7."""
    assert sorted(first) == sorted(second) == list(range(N))
    return sum(a == b for a, b in zip(first, second, strict=True))


@pytest.mark.diagonal
@pytest.mark.parametrize("carried", [("", ""), ("work", "rent"), ("", "rent")])
@pytest.mark.parametrize("kind", MADE)
def test_releases_of_frames_are_unrelated(kind: str, carried: tuple[str, str]) -> None:
    tables = [MADE[kind](people(shift, name)) for shift, name in zip((1000, 5000), carried, strict=True)]
    orders = [who(sensitive(shoal.anonymize(t, **ASKED).table), s) for t, s in zip(tables, (1000, 5000), strict=True)]
    assert meet(*orders) < 10
    again = who(sensitive(shoal.anonymize(tables[0], **ASKED).table), 1000)
    assert again == orders[0], "a secret and a seed give the same release again"


@pytest.mark.parametrize("carried", [("", ""), ("work", "rent")])
@pytest.mark.parametrize(("engine", "ending"), [("polars", "csv"), ("duckdb", "parquet"), ("duckdb", "csv")])
def test_releases_of_files_are_unrelated(tmp_path: Path, engine: str, ending: str, carried: tuple[str, str]) -> None:
    orders, written = [], []
    for shift, name in zip((1000, 5000), carried, strict=True):
        source = tmp_path / f"{shift}.csv"
        people(shift, name).write_csv(source)
        for turn in range(2):
            out = tmp_path / f"{shift}_{turn}.{ending}"
            shoal.anonymize(source, engine=engine, **ASKED).write(out)
            written.append(out.read_bytes())
        made = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
        orders.append(who(made["s"], shift))
    assert meet(*orders) < 10
    assert written[0] == written[1], "the same bytes"
    assert written[2] == written[3], "the same bytes"


def points(shift: int, carried: str) -> pl.DataFrame:
    of = np.random.default_rng(0).permutation(N)
    return pl.DataFrame({"x": of % 12 * 1.0, "y": of // 12 * 1.0, carried: [f"p{shift + i}" for i in of]})


def test_the_tables_of_tiles_are_unrelated(tmp_path: Path) -> None:
    secret, orders = tmp_path / "secret", []
    secret.write_bytes(SECRET)
    for shift, name in ((1000, "a"), (5000, "b")):
        frame = points(shift, name)
        answer = shoal.tiles.split(frame.select("x", "y").to_numpy(), 10, coordinates="projected")
        made = shoal.release(answer, frame, x="x", y="y", secret=secret, insensitive=[name])
        out = tmp_path / f"{name}.csv"
        made.write(tmp_path / f"{name}_tiles.csv", also={"table": out})
        orders.append(who(pl.read_csv(out)[name], shift))
    assert meet(*orders) < 10


def test_the_rows_of_clusters_are_unrelated() -> None:
    orders = []
    for shift, name in ((1000, "a"), (5000, "b")):
        frame = points(shift, name)
        answer = shoal.gathering.gather(frame.select("x", "y").to_numpy(), r=6)
        held = shoal.release(answer, frame, columns=["x", "y"], sensitive=[name], secret=SECRET).assignments
        orders.append(who(held[name], shift))
    assert meet(*orders) < 10


def test_records_assigned_to_a_former_answer_are_unrelated(tmp_path: Path) -> None:
    secret, orders = tmp_path / "secret", []
    secret.write_bytes(SECRET)
    base = pl.DataFrame({"v": [f"v{i % 6}" for i in range(N)]})
    counts = base.group_by("v").len().sort("v")
    answer = shoal.labels.cover(counts["len"].to_list(), 40)
    held = shoal.release(answer, base, label="v")
    for shift in (1000, 5000):
        frame = base.with_columns(s=pl.Series([f"p{shift + i}" for i in range(N)]))
        shoal.assign(held, frame, column="v", secret=secret).write(tmp_path / f"{shift}.csv")
        orders.append(who(pl.read_csv(tmp_path / f"{shift}.csv")["s"], shift))
    assert meet(*orders) < 10


def test_the_order_hangs_on_nothing_but_what_is_shown() -> None:
    """Rows that came in another order leave in the same one; another row, name or secret draws all anew."""
    frame, shuffle_key = people(1000, "work"), ShuffleKey.of(SECRET)
    shown = frame[shuffled(frame.get_columns(), shuffle_key)].rows()
    turned = frame.reverse()
    assert turned[shuffled(turned.get_columns(), shuffle_key)].rows() == shown
    for other in (frame.rename({"work": "rent"}), frame.with_columns(work=pl.lit("1")), frame[:-1]):
        moved = other[shuffled(other.get_columns(), shuffle_key)]
        assert sum(a == b for a, b in zip(moved["s"], (r[1] for r in shown), strict=False)) < 10
    other_secret = frame[shuffled(frame.get_columns(), ShuffleKey.of(SECRET * 2))]
    assert sum(a == b for a, b in zip(other_secret.rows(), shown, strict=True)) < 10


@pytest.mark.diagonal
@pytest.mark.parametrize("setting", ["person", "household"])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("source", ["frame", "csv", "parquet", "duckdb"])
def test_the_order_does_not_hang_on_who_is_behind_the_rows(
    tmp_path: Path, source: str, carried: bool, setting: str
) -> None:
    """Persons and households count and are not published: whoever they are, the file is the same."""
    written = set()
    for turn, who_has in enumerate((["n", "n", "c", "c"], ["n", "c", "d", "e"], ["n", "c", "n", "c"])):
        frame = pl.DataFrame({"born": ["1990"] * 8, "ill": ["flu", "flu", "gout", "gout"] * 2})
        frame = frame.with_columns(job=pl.Series(who_has + [f"{w}2" for w in who_has]))
        if carried:
            frame = frame.with_columns(note=pl.Series([str(i % 4) for i in range(8)]))
        given: Any = frame
        if source != "frame":
            given = tmp_path / f"in{turn}.{'csv' if source == 'csv' else 'parquet'}"
            frame.write_csv(given) if source == "csv" else frame.write_parquet(given)
        engine: Any = "duckdb" if source == "duckdb" else None
        made = shoal.anonymize(
            given, quasi_identifiers=["born"], sensitive=["ill"], k=2, secret=SECRET, engine=engine,
            **{setting: "job"},  # type: ignore[arg-type]
        )  # fmt: skip
        made.write(tmp_path / f"out{turn}.csv")
        written.add((tmp_path / f"out{turn}.csv").read_bytes())
    assert len(written) == 1


def test_equal_rows_are_scattered() -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 200})
    made = frame[shuffled(frame.get_columns(), ShuffleKey.of(SECRET))]["a"].to_list()
    assert 120 < sum(a != b for a, b in itertools.pairwise(made)) < 280


@pytest.mark.parametrize("held", [0, 6_000, 10**9])
@pytest.mark.parametrize("rows", [0, 1, 700])
def test_rows_in_memory_and_on_disk_are_laid_in_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, held: int
) -> None:
    """The order is that of the numbers alone, however the rows come, and nothing is left on disk."""
    monkeypatch.setattr(order, "_FINE", 16)
    random = np.random.default_rng(3)
    at = pl.Series("at", random.integers(0, 2**64, rows, dtype=np.uint64))
    frame = pl.DataFrame({"note": [f"a longer text {i}" for i in range(rows)], "at": at, "n": range(rows)})
    sorted_ = frame.sort("at").drop("at")
    for table, batch in ((frame, 70), (frame.reverse(), 3), (frame.sample(fraction=1.0, shuffle=True, seed=1), 701)):
        frames = iter([table.slice(i, batch) for i in range(0, rows, batch)] or [table])
        bounds = order.MemoryBounds(held, 2_000)
        got = list(order.laid_in_order(frames, "at", rows, tmp_path, bounds))
        assert_frame_equal(pl.concat(got), sorted_)
        assert rows < 100 or len(got) > 10, "in slices"
        assert max(f.height for f in got) < 200
        assert not list(tmp_path.iterdir())


def test_short_texts_take_the_memory_that_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of texts takes 16 bytes a row beside its letters, and so many more rows lie on disk."""
    rows, held, aside = 2_000, 64_000, list[int]()
    frame = pl.DataFrame({f"t{i}": ["ab"] * rows for i in range(10)})
    frame = frame.with_columns(at=pl.Series(np.random.default_rng(1).integers(0, 2**64, rows, dtype=np.uint64)))
    put = order._put_aside
    monkeypatch.setattr(order, "_put_aside", lambda laid, *more: (aside.append(laid.height), put(laid, *more)))
    frames = iter([frame.slice(i, 50) for i in range(0, rows, 50)])
    got = pl.concat(order.laid_in_order(frames, "at", rows, tmp_path, order.MemoryBounds(held, 16_000)))
    assert got.height == rows
    assert (rows - sum(aside)) * 10 * 16 <= held


def _late(tag: np.ndarray, most: int = 100) -> order.LatePlacement:
    """Of two split cells: 3 and 4 rows of cell 6 go to the groups 2 and 5, 2 and 1 rows of cell 7 to 0 and 2."""
    cell, rows, to = (np.array(v) for v in ([6, 6, 7, 7], [3, 4, 2, 1], [2, 5, 0, 2]))
    names = {"x": "x", "name": "name_beside", "note": "note"}
    return order.LatePlacement(
        "group", "at", names, b"key", cell, rows, to, tag, lambda tag, hashed: hashed + tag.astype("u8"), most
    )


@pytest.mark.parametrize("most", [1, 7, 9, 10])
@pytest.mark.parametrize("batch", [1, 4, 40])
def test_rows_of_split_cells_are_placed_once_all_have_passed(tmp_path: Path, batch: int, most: int) -> None:
    """They get the groups that their hashes give them, however they come; the others pass as they are."""
    group = [-7] * 7 + [3, 4] * 6 + [-8] * 3
    n = len(group)
    x = pl.Series("x", [*(2.0 ** (60 + i) for i in range(7)), *map(float, range(n - 7))])  # seven have one hash
    names = [*"aaaaaaa", *(f"n{i}" for i in range(n - 7))]
    notes = [*[None] * 7, *(f"{i}" * 20 for i in range(n - 7))]
    hashed = pl.Series("at", np.arange(n), dtype=pl.UInt64)
    frame = pl.DataFrame([x, pl.Series("note", notes), pl.Series("group", group, dtype=pl.Int32), hashed])
    frame = frame.with_columns(
        pl.Series("name_beside", [v if g < 0 else None for v, g in zip(names, group, strict=True)])
    )
    late = _late(np.arange(6) * 1000, most)
    hashes = row_hashes([x, pl.Series("name", names), frame["note"]], b"key")
    expected = {i: (g, i) for i, g in enumerate(group) if g >= 0}
    for cell, to in ((-7, [2, 2, 2, 5, 5, 5, 5]), (-8, [0, 0, 2])):
        held = sorted((i for i in range(n) if group[i] == cell), key=lambda i: (hashes[i], x[i]))
        expected |= {i: (g, i + 1000 * g) for i, g in zip(held, to, strict=True)}
    for table in (frame, frame.reverse(), frame.sample(fraction=1.0, shuffle=True, seed=1)):
        frames = iter([table.slice(i, batch) for i in range(0, n, batch)])
        got = pl.concat(late.through(frames, tmp_path))
        assert got.columns == ["x", "note", "group", "at"]
        assert not list(tmp_path.iterdir())
        assert {x.to_list().index(v): (g, at) for v, g, at in got.select("x", "group", "at").rows()} == expected
        assert dict(got.select("x", "note").rows()) == dict(frame.select("x", "note").rows())


@pytest.mark.parametrize("most", [1, 100])
def test_a_table_that_changed_since_it_was_counted_is_refused(tmp_path: Path, most: int) -> None:
    columns: dict[str, Any] = {"x": pl.Float64, "note": pl.String, "group": pl.Int32, "at": pl.UInt64}
    for group in ([-7] * 7 + [-8] * 2, [-7] * 7 + [-8] * 3 + [-3], [-7] * 8 + [-8] * 2, [-7] * 7 + [-5] * 3, [3], []):
        lines = [(1.0, "", g, 1, "") for g in group]
        frame = pl.DataFrame(lines, schema=columns | {"name_beside": pl.String}, orient="row")
        with pytest.raises(InputError, match="changed while it was read"):
            list(_late(np.arange(6), most).through(iter([frame]), tmp_path))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=12),
    st.integers(1, 40),
)
def test_lots_hold_whole_cells_and_as_many_as_they_may(cells: list[tuple[int, int]], most: int) -> None:
    """cells: the rows that each piece of a cell has, and its pieces."""
    cell = np.repeat(np.arange(len(cells)) * 3, [pieces for _, pieces in cells])
    rows = np.repeat([rows for rows, _ in cells], [pieces for _, pieces in cells])
    lots = order._batches(cell, rows, most)
    assert [i for lot in lots for i in range(cell.size)[lot]] == list(range(cell.size))
    held = [(set(cell[lot].tolist()), int(rows[lot].sum())) for lot in lots]
    assert all(one.isdisjoint(other) for (one, _), (other, _) in itertools.pairwise(held))
    assert all(taken <= most or len(own) == 1 for own, taken in held)
    for (_, taken), lot in zip(held, lots[1:], strict=False):
        assert taken + rows[lot][cell[lot] == cell[lot][0]].sum() > most, "the next cell had room"
