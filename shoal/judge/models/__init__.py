"""The judge's own check of each privacy model, and the equivalence classes that it needs.

Nothing is shared with solvers.

The check of a model is in a module named like the model's. ``found``, or ``FOUND`` by class name if the module checks
several models, takes the model and a second argument. By what the model constrains, the argument is int64 sizes of
classes, a ``ClassCounts``, or (codes int64[n, s] of all sensitive columns, classes int64[n]). The result is the level
that the table reaches, and whether the model holds. An empty table meets every model and is never passed.

The hierarchical distance of t-closeness is computed here, as its paper defines it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from shoal.judge.file import codes
from shoal.judge.finding import pair, place, shown
from shoal.model.hierarchy import Hierarchy
from shoal.model.notation import NUMBER, in_order, reader_of


def classes(values: pl.Series, tree: Hierarchy, notation: str | None = None) -> np.ndarray:
    """int64[h, m]: the hierarchy class of every distinct value at every level, from the value itself to the root.

    notation  that of the column's dates or numbers

    A value that occurs in the hierarchy in another form ("1.0" and "1") is the same value.
    Raises PolicyError if a value isn't in the hierarchy.
    """
    texts = shown(values)
    if tree.kind == "rows":
        known = [row[0] for row in tree.rows]
        lost = {t for t in texts if t is not None} - set(known)
        if lost:
            theirs, mine = pair(pl.Series(known, dtype=pl.String), values)
            if theirs.n_unique() == len(known):
                number = dict(zip(theirs.to_list(), known, strict=True))
                texts = [t if t not in lost else number.get(m, t) for t, m in zip(texts, mine.to_list(), strict=True)]
    return tree.resolve(texts, values.name, reader_of(notation), notation).node.astype(np.int64)


def hierarchical(
    group: np.ndarray, value: np.ndarray, count: np.ndarray, sizes: np.ndarray, share: np.ndarray, node: np.ndarray
) -> float:
    """Largest earth mover's distance between the value distribution of an equivalence class and that of the table.

    group, value, count  int64[pairs]: rows of each value in each equivalence class, nonzero entries only
    sizes                int64[classes]
    share                float64[m]: share of every value in the table
    node                 as returned by ``classes``

    The paper's formula: the excess of a node is the sum of p - q over its leaves. Below a node of height x, the moved
    mass is the lesser of its children's total surplus and total deficit, and moving it costs x / height. If an
    equivalence class has no rows under a node, no mass moves below that node. O(pairs h log pairs).
    """
    height = node.shape[0] - 1
    total = np.zeros(sizes.size)
    owner, at, held = group, node[0][value], count / sizes[group]
    whole = np.bincount(node[0], weights=share)
    for level in range(1, height + 1):
        parent = np.zeros(whole.size, np.int64)
        parent[node[level - 1]] = node[level]
        above = np.bincount(node[level], weights=share)
        extra = held - whole[at]
        pairs, of = np.unique(owner * above.size + parent[at], return_inverse=True)
        held = np.bincount(of, weights=held)
        owner, at, whole = pairs // above.size, pairs % above.size, above
        much = np.bincount(of, weights=np.maximum(extra, 0.0))
        little = much - (held - whole[at])
        total += np.bincount(owner, weights=np.minimum(much, little), minlength=sizes.size) * level / height
    return float(np.clip(total, 0, 1).max())


CLOSE = 1e-9  # levels closer than this are equal


def number_of_rows(key: np.ndarray, held: np.ndarray | None, span: int = 0) -> np.ndarray:
    """int64: the number of rows with each key; exact below 2^53 rows."""
    if held is None:
        return np.bincount(key, minlength=span)
    return np.bincount(key, weights=held, minlength=span).astype(np.int64)


class ClassCounts:
    """Sparse counts of one sensitive column's values in each class, with the values' order and their hierarchy.

    group, value, count  int64[pairs]: rows of each value in each class, nonzero entries only
    start                the first pair of each class
    sizes                int64[classes]
    whole                float64[values], or None: the share of each value in the table if it isn't that of the counted
                         rows
    """

    def __init__(
        self, group: np.ndarray, series: pl.Series, sizes: np.ndarray, held: np.ndarray | None, tree: Hierarchy | None,
        whole: np.ndarray | None = None, notation: str | None = None,
    ) -> None:  # fmt: skip
        self.whole = whole
        raw = codes(series)
        first = np.full(int(raw.max()) + 2 if raw.size else 1, -1, np.int64)
        first[raw[::-1]] = np.arange(raw.size - 1, -1, -1)
        seen = np.flatnonzero(first >= 0)
        order = _natural_order(series.gather(first[seen]), notation)
        rank = np.zeros(first.size, np.int64)
        rank[seen[order]] = np.arange(seen.size)
        self.values = int(seen.size)
        self.node = None if tree is None else classes(series.gather(first[seen][order]), tree, notation)
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


def _natural_order(values: pl.Series, notation: str | None = None) -> np.ndarray:
    """The order of distinct values: that of an enumeration, else by number or band if all are, else by text.

    An empty text, which is a missing value in text files, and a missing value come last.
    """
    missing = values.is_null()
    if isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    if isinstance(values.dtype, pl.Categorical):
        values = values.cast(pl.String)
    if values.dtype == pl.String:
        values = values.set(values == "", None)
    if values.dtype == pl.String and notation is not None:
        values = pl.Series([None if t is None else place(t, notation) for t in values.to_list()], dtype=pl.Float64)
    elif values.dtype == pl.String and values.str.contains(NUMBER).all():  # missing values are ignored
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
