"""A text file in which nothing is carried along: its rows are dealt out of the tuples that are published."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.codes import Coded
from shoal.engines.frames import FrameTable
from shoal.engines.order import ShuffleKey
from shoal.engines.table import PlacementRequest, Replacement
from shoal.errors import ShoalError, VerificationError
from shoal.model.histogram import Partition
from shoal.publishing.tables.release import JudgedRelease, ReleasedRows

SECRET = b"sixteen bytes or more"
ASKED: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "k": 3, "effort": "fast", "seed": 1}


def people(n: int = 400) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "a": [None if i % 11 == 0 else "abcdef"[i * i % 6] for i in range(n)],
            "s": [["p", "q", None, "r"][i * i * i % 4] for i in range(n)],
            "b": [str(i * 7 % 13) for i in range(n)],
        }
    )


@pytest.mark.parametrize("publish", ["stars", "ranges", "centers"])
def test_the_rows_of_a_frame_in_another_order(tmp_path: Path, publish: str) -> None:
    path, frame = tmp_path / "t.csv", people()
    frame.write_csv(path)
    dealt = shoal.anonymize(path, secret=SECRET, publish=publish, **ASKED).table
    placed = shoal.anonymize(frame, secret=SECRET, publish=publish, **ASKED).table
    assert dealt.columns == placed.columns == ["a", "s", "b"]
    assert dealt.schema == dict.fromkeys("asb", pl.String)
    assert Counter(dealt.rows()) == Counter(placed.cast(pl.String).rows())
    again = shoal.anonymize(path, secret=SECRET, publish=publish, **ASKED).table
    assert again.rows() == dealt.rows(), "a secret fixes the order"
    fresh = shoal.anonymize(path, publish=publish, **ASKED).table
    assert fresh.rows() != dealt.rows()
    assert fresh.rows() != sorted(fresh.rows(), key=repr)


def test_an_order_that_is_kept_is_that_of_the_rows(tmp_path: Path) -> None:
    path, frame = tmp_path / "t.csv", people()
    frame.write_csv(path)
    kept = shoal.anonymize(path, keep_order=True, **ASKED).table
    for before, after in zip(frame.select("a", "b", "s").rows(), kept.select("a", "b", "s").rows(), strict=True):
        assert after[2] == before[2]
        assert all(shown in (own, "*") for own, shown in zip(before[:2], after[:2], strict=True))


def counted() -> tuple[FrameTable, Any]:
    table = FrameTable(pl.DataFrame({"a": ["x"] * 3, "s": ["p", "q", "r"]}), coded=["a", "s"])
    return table, table.count(["a"], ["s"])


def test_every_order_is_as_likely() -> None:
    table, cells = counted()
    star = [Replacement("a", pl.Series(["*"]), np.zeros(1, np.int64))]
    seen: Counter = Counter()
    for key in range(1200):
        shuffle_key = ShuffleKey(b"", key.to_bytes(32, "big"), True)
        partition = Partition.of(np.arange(3), np.zeros(3), np.ones(3))
        made = table.place(cells, PlacementRequest(partition, star, [], [], shuffle_key)).frame
        assert set(made["a"]) == {"*"}
        seen[tuple(made["s"])] += 1
    assert len(seen) == 6
    assert all(130 < n < 270 for n in seen.values()), seen


def test_a_partition_of_other_rows_deals_nothing() -> None:
    table, cells = counted()
    star = [Replacement("a", pl.Series(["*"]), np.zeros(1, np.int64))]
    other = Partition.of(np.array([0, 1]), np.zeros(2), np.array([2, 1]))
    with pytest.raises(ShoalError, match="the partition places"):
        table.place(cells, PlacementRequest(other, star, [], [], ShuffleKey.of(None)))
    assert isinstance(cells.quasi[0], Coded)


def test_what_it_is_dealt_out_of_is_judged_and_no_row_made(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    people().write_csv(path)
    release = shoal.anonymize(path, **ASKED)
    dealt = release._placement.rows.tuples
    assert dealt is not None
    assert "frame" not in vars(release._placement.rows), "the rows were made"
    assert not dealt.tuples.is_duplicated().any()
    release.write(tmp_path / "out.csv")
    assert "frame" not in vars(release._placement.rows), "the rows were made"
    assert Counter(release.table.rows()) == Counter(pl.read_csv(tmp_path / "out.csv", infer_schema=False).rows())
    for bent in (
        dealt._replace(rows=np.append(dealt.rows[1:], (dealt.rows[:1] + 1) % len(dealt.tuples))),
        dealt._replace(tuples=dealt.tuples.with_columns(dealt.tuples["s"].shift(1))),
    ):
        other = replace(
            release, _placement=replace(release._placement, rows=ReleasedRows(None, bent)), _judged=JudgedRelease()
        )
        with pytest.raises(VerificationError, match="differs from what was decided"):
            other.check()
        with pytest.raises(VerificationError):
            other.write(tmp_path / "other.csv")
        assert not (tmp_path / "other.csv").exists()
