"""A CSV in which few different lines stand many times: lines are counted, and each different one is cut once.

Where every column has a role, rows of one line are alike to everybody: they are counted together and dealt out
together.  ``read_csv`` is what reads all other files, and what says why a file is none.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.csv import read_csv, sniff
from shoal.engines.frames import FrameTable
from shoal.engines.order import Lot
from shoal.engines.source import Source, is_latin
from shoal.engines.structure import examine
from shoal.engines.table import Counted, Placed, Replacement
from shoal.errors import InputError
from shoal.model.partition import Partition

LEAST = 1 << 21  # bytes of a file in which lines are counted
_SLICE = 1 << 20
_SAMPLE, _LINES, _SHARE = 1 << 19, 1 << 13, 0.9  # of so many lines at the beginning this share may differ
_NOWHERE = "\x01"  # between fields of no file: its lines are read whole


def read_repeated(
    source: Source, separator: str | None, encoding: str | None, coded: Sequence[str]
) -> RepeatedTable | None:
    """The table of a CSV whose columns are all ``coded``; None where it is read row by row.

    That is a small file, one whose lines differ or hold a quote or a carriage return, blank lines, another encoding,
    and every file with a mistake, for ``read_csv`` says where it is.  O(bytes) time, memory for the different lines.
    """
    if source.kind != "csv" or source.packed or is_latin(encoding) or source.state[2] < LEAST:
        return None
    with source.open() as stream:
        separator = separator or sniff(stream, source.name)
        stream.seek(0)
        sample = stream.read(_SAMPLE).split(b"\n", _LINES)
        names, lines = sample[0].decode("latin-1").split(separator), sample[1:-1]
        if len(names) < 2 or not set(names) <= set(coded) or len(set(lines)) > _SHARE * len(lines):
            return None
        stream.seek(0)
        feeds = _line_feeds(stream)
    if feeds is None:
        return None
    try:
        found = _counted(source, separator, sample[0])
    except (InputError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    if found is None or not feeds or int(found[1].sum()) != feeds:
        return None
    source.refuse_change()
    return RepeatedTable(*found, lambda: read_csv(source, separator, encoding, coded))


def _line_feeds(stream: Any) -> int | None:
    """Lines behind the first, the last one ended or not; None where a line may be no record as it stands."""
    feeds, last = -1, b"\n"
    while slice_ := stream.read(_SLICE):
        if any(mark in slice_ for mark in (b'"', b"\r", _NOWHERE.encode())):
            return None
        feeds, last = feeds + slice_.count(b"\n"), slice_[-1:]
    return feeds + (last != b"\n")


def _counted(source: Source, separator: str, head: bytes) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The different rows as categories, and how often each stands; None where the two readers do not agree on them."""
    query = pl.scan_csv(
        source.path, infer_schema=False, separator=_NOWHERE, quote_char=None, glob=False,
        with_column_names=lambda _: ["line"],
    )  # fmt: skip
    held = query.group_by("line").agg(pl.len().alias("n")).collect(engine="streaming")
    lines = io.BytesIO(head + b"\n")
    lines.seek(0, io.SEEK_END)
    held.select("line").write_csv(lines, include_header=False, quote_style="never")
    lines.seek(0)
    seen = examine(lines, separator, source.name)
    kinds = {name: pl.Categorical(pl.Categories.random()) for name in seen.names}
    frame = pl.read_csv(lines.getvalue(), separator=separator, quote_char=None, schema_overrides=kinds)
    agreed = tuple(frame.columns) == seen.names and frame.height == seen.records == held.height
    return (frame, held["n"].to_numpy()) if agreed else None


class RepeatedTable(FrameTable):
    """Such a file as a table; whoever asks for its rows by themselves makes it read them."""

    def __init__(self, tuples: pl.DataFrame, rows: np.ndarray, whole: Callable[[], pl.DataFrame]) -> None:
        self.lazy = False
        self.coded = frozenset(tuples.columns)
        self.columns = list(tuples.columns)
        self.rows = int(rows.sum())
        self._tuples, self._each, self._whole = FrameTable(tuples), rows, whole

    @cached_property
    def frame(self) -> Any:  # type: ignore[override]
        """All rows."""
        return nw.from_native(self._whole(), eager_only=True)

    def count(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Counted:
        """Group and count the different rows; ``cell`` is empty.  O(t log t) for t of them."""
        found = self._tuples.count(quasi, sensitive)
        many = np.bincount(found.cell, weights=self._each).astype(np.int64)  # exact below 2^53 rows
        return replace(found, histogram=replace(found.histogram, count=many), cell=found.cell[:0])

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples over some columns and how many rows hold each."""
        found = self.count(names, ())
        codes = found.histogram.quasi
        held = {c.name: c.values.gather(codes[:, j]) for j, c in enumerate(found.quasi)}
        return pl.DataFrame(held), found.histogram.count

    def place(
        self,
        counted: Counted,
        partition: Partition,
        replacements: Sequence[Replacement],
        drop: Sequence[str],
        aside: Sequence[str],
        lot: Lot,
        keep_order: bool,
    ) -> Placed:
        """Rows dealt out of the different ones; in the order of the file they are read for it, one by one."""
        asked = (partition, replacements, drop, aside, lot, keep_order)
        held = counted.histogram
        roles = {*(r.name for r in replacements), *held.sensitive_names, *drop}
        if not keep_order and set(self.columns) <= roles:
            return super().place(counted, *asked)
        whole = FrameTable(self.frame.to_native(), coded=tuple(self.coded))
        return whole.place(whole.count(held.quasi_names, held.sensitive_names), *asked)
