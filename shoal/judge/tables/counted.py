"""A table as the judge counts it: rows of each sensitive value in each class."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from shoal.judge.tables.closeness import classes
from shoal.judge.tuples import codes
from shoal.model.bands import in_order
from shoal.model.hierarchy import Hierarchy
from shoal.model.notation import NUMBER

CLOSE = 1e-9  # two levels nearer than this are one


def number_of_rows(key: np.ndarray, held: np.ndarray | None, span: int = 0) -> np.ndarray:
    """int64: how many rows have each key; exact below 2^53 rows."""
    if held is None:
        return np.bincount(key, minlength=span)
    return np.bincount(key, weights=held, minlength=span).astype(np.int64)


class Column:
    """Sparse class-by-value counts of one sensitive column, the values for their order, and their classes in a tree.

    group, value, count  int64[pairs]: rows of each value in each class, those there are; start, of each class
    sizes                int64[classes]
    whole                float64[values] or None: the share of a value in the table where it is none of the rows counted
    """

    def __init__(
        self, group: np.ndarray, series: pl.Series, sizes: np.ndarray, held: np.ndarray | None, tree: Hierarchy | None,
        whole: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.whole = whole
        raw = codes(series)
        first = np.full(int(raw.max()) + 2 if raw.size else 1, -1, np.int64)
        first[raw[::-1]] = np.arange(raw.size - 1, -1, -1)
        seen = np.flatnonzero(first >= 0)
        order = _natural_order(series.gather(first[seen]))
        rank = np.zeros(first.size, np.int64)
        rank[seen[order]] = np.arange(seen.size)
        self.values = int(seen.size)
        self.node = None if tree is None else classes(series.gather(first[seen][order]), tree, series.name)
        key = group * max(self.values, 1) + rank[raw]
        span = (int(group.max()) + 1 if group.size else 0) * max(self.values, 1)
        if 0 < span <= max(1 << 24, 4 * key.size):
            counted = number_of_rows(key, held, span)
            pair = np.flatnonzero(counted)
            self.count = counted[pair]
        else:
            pair, where = np.unique(key, return_inverse=True)
            self.count = number_of_rows(where.reshape(-1), held)
        self.group = pair // max(self.values, 1)
        self.value = pair % max(self.values, 1)
        self.start = np.searchsorted(self.group, np.arange(int(group.max()) + 1 if group.size else 0))
        self.sizes = sizes

    @cached_property
    def share(self) -> np.ndarray:
        """float64[pairs]: the share of a value in its class."""
        return self.count / self.sizes[self.group]  # type: ignore[no-any-return]

    @cached_property
    def table(self) -> np.ndarray:
        """float64[values]: the share of a value in the whole table."""
        if self.whole is not None:
            return self.whole
        return np.bincount(self.value, weights=self.count, minlength=self.values) / self.sizes.sum()  # type: ignore[no-any-return]


def _natural_order(values: pl.Series) -> np.ndarray:
    """Order of distinct values: an enumeration's own; by number or band where all are one, else by text.

    Last an empty text, which is a missing value in files of text, and then the missing one.
    """
    missing = values.is_null()
    if isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    if isinstance(values.dtype, pl.Categorical):
        values = values.cast(pl.String)
    if values.dtype == pl.String:
        values = values.set(values == "", None)
    if values.dtype == pl.String and values.str.contains(NUMBER).all():  # missing ones left aside
        numbers = values.cast(pl.Float64, strict=False)
        if numbers.drop_nulls().n_unique() == values.count():
            values = numbers
    elif values.dtype == pl.String and (bands := in_order(values.drop_nulls().to_list())) is not None:
        rank = dict(zip(values.drop_nulls().gather(bands).to_list(), range(len(bands)), strict=True))
        values = values.replace_strict(rank, return_dtype=pl.Int64)
    if values.dtype.is_nested() or values.dtype == pl.Object:
        return np.arange(len(values))
    both = pl.DataFrame({"value": values, "missing": missing})
    return both.select(pl.arg_sort_by("value", "missing", nulls_last=True)).to_series().to_numpy()
