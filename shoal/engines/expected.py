"""What must stand in a release: every published tuple with its number of rows, computed from the partition alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.engines.codes import Coded
from shoal.engines.frames import Replacement
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """The published tuples of a partition.

    columns  per quasi-identifier what each group publishes, as values; texts: the same as text, for files of text
    starred  per quasi-identifier bool[texts]
    """

    histogram: Histogram
    partition: Partition
    columns: Sequence[Replacement]
    texts: Sequence[Sequence[str | None]]
    starred: Sequence[np.ndarray]
    sensitive: Sequence[Coded]

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
                values = pl.Series(shown, dtype=pl.String)
            made.append(values.gather(column.index[group]).alias(column.name))
        for j, coded in enumerate(self.sensitive):
            values = pl.Series(coded.texts(), dtype=pl.String) if coded.name in text else coded.values
            made.append(values.gather(self.histogram.sensitive[cell, j]).alias(coded.name))
        return pl.DataFrame(made), self.partition.count
