"""What must stand in a release: every published tuple with its number of rows, computed from the partition alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.engines.codes import Coded
from shoal.engines.order import dealer, laid_out
from shoal.engines.table import Replacement
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """The published tuples of a partition.

    columns  per quasi-identifier what each group publishes, as values; texts: the same as text, for files of text
    starred  per quasi-identifier bool[texts];  plain: whether the text is the value as it came
    """

    histogram: Histogram
    partition: Partition
    columns: Sequence[Replacement]
    texts: Sequence[Sequence[str | None]]
    starred: Sequence[np.ndarray]
    sensitive: Sequence[Coded]
    plain: Sequence[np.ndarray] = ()

    def typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A published table in which a column of missing values alone has the type that its own values had.

        A frame of objects keeps none for what is starred whole, and how a star is written depends on it.
        """
        return frame.with_columns(
            frame[c.name].cast(c.values.dtype)
            for c in self.columns
            if frame.height and frame[c.name].null_count() == frame.height
        )

    def counts(self, *, text: Collection[str] = (), blank: Collection[str] = ()) -> tuple[pl.DataFrame, np.ndarray]:
        """One line per triple of the partition, and its rows.

        text   the columns that stand as text, in a file of text all of them
        blank  of these, the columns whose stars stand as missing values
        """
        cell, group = self.partition.cell, self.partition.group
        made: list[pl.Series] = []
        for j, column in enumerate(self.columns):
            values = column.values
            if column.name in text:
                hidden = column.name in blank
                shown = [None if hidden and s else t for t, s in zip(self.texts[j], self.starred[j], strict=True)]
                values = _categories(shown)
            made.append(values.gather(column.index[group]).alias(column.name))
        for j, coded in enumerate(self.sensitive):
            values = _categories(coded.texts()) if coded.name in text else coded.values
            made.append(values.gather(self.histogram.sensitive[cell, j]).alias(coded.name))
        return pl.DataFrame(made), self.partition.count

    def slices(self, columns: Sequence[str], key: bytes, rows: int) -> Iterator[pl.DataFrame]:
        """The published rows in an order of chance, in slices of about ``rows``; at least one slice.

        columns  those of the table, each a quasi-identifier or sensitive: with nothing else beside them, rows of a
                 cell are alike, and no row of the original is needed to write them
        key      fixes the order together with the published tuples, so that it tells nothing of who is behind them

        Every row falls into a slice by itself and slices are shuffled: each order of all rows is as likely as any.
        O(rows + slices * tuples) time, memory for the tuples and a slice.
        """
        frame, counts = self.counts()
        kinds = {c.name: c for c in self.sensitive}
        frame = frame.select(_plain(frame[n], kinds.get(n)) for n in columns)
        frame.columns = [f"c{i}" for i in range(frame.width)]  # "*" would stand for all columns
        held = frame.with_columns(pl.Series("rows", counts, dtype=pl.Int64))
        held = held.group_by(frame.columns, maintain_order=True).agg(pl.col("rows").sum())
        left, tuples = held["rows"].to_numpy(), held.drop("rows")
        tuples.columns = list(columns)
        line, own = laid_out(tuples.get_columns(), left, key)
        left, tuples, random = left[line], tuples[line], dealer(own)
        slices = max(1, round(int(left.sum()) / rows))
        for number_left in range(slices, 0, -1):
            here = random.binomial(left, 1 / number_left) if number_left > 1 else left.copy()
            left -= here
            index = np.repeat(np.arange(here.size, dtype=np.uint32), here)
            random.shuffle(index)
            yield tuples[index]


def _categories(texts: Sequence[str | None]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String).cast(pl.Categorical(pl.Categories.random()))


def _plain(column: pl.Series, coded: Coded | None) -> pl.Series:
    """A column whose type tells no level that no row holds."""
    if coded is not None and coded.ordered:
        return column.cast(pl.String).cast(pl.Enum([t for t in coded.texts() if t is not None]))
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Enum, pl.Categorical)) else column
