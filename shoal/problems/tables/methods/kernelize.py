"""Kernelization for k-anonymity: a table with few columns and values shrinks to a size that doesn't depend on its rows.

Blocki, Williams, "Resolving the complexity of some data privacy problems", ICALP 2010, Lemma 2 and Algorithm 1.

The paper prints three thresholds, k(2k-1)2^d, k(2k)2^d, and "more than" as well as "at least"; all are valid. ``paper``
below is Algorithm 1: while a row has more than T = 2 k^2 2^d copies, k of them leave as a group. ``linear`` is smaller
by a factor of about k, and is the default:

Theorem.  Let r be a type, and let p be the number of published rows other than r itself that cover r.  If r has more
          than T* = (2k - 2) p + 2k - 1 copies, some optimum has a group of at least 2k copies of r and nothing else. So
          k of them can leave as a group, and the optimum of the rest of the table stays the same.
Proof.  Take an optimum and merge groups that publish the same row, which changes no loss.  Consider a group that
        publishes r' != r and has a copies of r among s rows.  If a >= k and s >= 2k, let k copies of r leave as a
        group: neither they nor the s - k >= k rows that stay pay more.  Repeat. Every step takes k copies of r out of
        such groups, so it ends, and then a <= k - 1, or s <= 2k - 1 and a <= 2k - 2 (another row is there).  So at most
        (2k - 2) p copies are in groups that publish something other than r, and at least 2k are in the group that
        publishes r.  []
p is at most the product of the columns' levels minus one (2^d - 1 for stars).  Only closures count: published rows that
are the least cover of r and some other types of this table, so p may be counted on the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shoal.errors import PolicyError
from shoal.model.arguments import known
from shoal.model.certificate import tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping

COVERS = 1024  # up to this many, published rows that cover a type are counted on the table; beyond, p is bounded


@dataclass(frozen=True, eq=False)
class KernelizedTable:
    """A table's kernel, and the rows that left it.

    histogram  the kernel: the same columns, fewer rows; its cells are in the order of the original's
    cell       int64[c]: original cell of each cell of the kernel
    emitted    int64[m]: rows of each original cell that left, in groups of k equal rows
    threshold  int64[t]: a type above this was shrunk
    """

    original: Histogram
    histogram: Histogram
    cell: np.ndarray
    emitted: np.ndarray
    threshold: np.ndarray

    def replay(self, partition: Partition) -> Partition:
        """A partition of the kernel, extended to the original: emitted rows of a type form one group. O(m log m)."""
        of_type, _ = self.original.types
        out = np.flatnonzero(self.emitted)
        return Partition.of(
            np.concatenate([self.cell[partition.cell], out]),
            np.concatenate([partition.group, partition.groups + of_type[out]]),
            np.concatenate([partition.count, self.emitted[out]]),
        )

    def solution(self, grouping: Grouping, recoding: Recoding) -> Grouping:
        """A grouping of the kernel as one of the original; an optimal one stays optimal (Lemma 3).

        The rows that left are published unchanged in groups of k or more, and some optimum does so too. So cost and
        bound increase by the loss of these rows alone, which is 0 for stars. A guaranteed factor remains valid, because
        both sides increase by the same amount. O(m log m) for m cells.
        """
        if grouping.certificate.unit != recoding.unit:
            raise PolicyError(
                f"the grouping is certified in {grouping.certificate.unit}, the recoding counts {recoding.unit}"
            )
        partition = self.replay(grouping.partition)
        of_type, first = self.original.types
        level = [c.loss[0][self.original.quasi[first, j]] * c.weight for j, c in enumerate(recoding.hierarchies or ())]
        left = np.bincount(of_type, weights=self.emitted, minlength=first.size)
        aside = math.fsum(float(x) for column in level for x in (column * left).tolist())
        inner, cost = grouping.certificate, recoding.cost(self.original, partition)
        if inner.optimal:
            lower = cost
        elif recoding.unit == "stars":
            lower = tight(math.ceil(inner.lower_bound + aside - 1e-9), cost, recoding.unit, inner.bound)
        else:  # means over rows and columns: of the kernel, then of the original
            known = inner.lower_bound * self.histogram.rows * len(recoding.columns) + aside
            below = known / max(self.original.rows * len(recoding.columns), 1) * (1 - 1e-12)
            lower = tight(below, cost, recoding.unit, inner.bound)
        details = {**inner.details, "kernel_rows": self.histogram.rows}
        certificate = replace(inner, cost=cost, lower_bound=lower, details=details)
        return replace(grouping, partition=partition, certificate=certificate)


def kernelize(
    histogram: Histogram, k: int, recoding: Recoding | None = None, *, threshold: str = "linear"
) -> KernelizedTable:
    """Shrink a table; the least loss of k-anonymity changes only by the loss of the emitted groups alone.

    recoding   stars if None; hierarchies too; sets and ranges raise PolicyError
    threshold  "linear" ((2k-2) p + 2k - 1, see above) or "paper" (2 k^2 per published row)

    O(m d) for m cells; counting covers on the table takes at most O(t d) per type that may shrink.
    """
    recoding = recoding or Recoding.stars(histogram)
    known("threshold", threshold, ["linear", "paper"])
    for name, column in zip(histogram.quasi_names, recoding.columns, strict=True):
        if not column.levels:
            raise PolicyError(f"{name!r} is published as {column.kind}s; kernels are known for stars and hierarchies")
    of_type, first = histogram.types
    rows = np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64)
    covers = math.prod(column.levels for column in recoding.columns)
    if threshold == "paper":
        limit = np.full(first.size, min(2 * k * k * covers, 2**62), np.int64)
    else:
        limit = np.full(first.size, min((2 * k - 2) * (covers - 1) + 2 * k - 1, 2**62), np.int64)
        if covers <= COVERS:
            code = histogram.quasi[first]
            for t in np.flatnonzero(rows > 2 * k - 1).tolist():
                limit[t] = (2 * k - 2) * _covers(code, t, recoding) + 2 * k - 1
    groups = np.maximum(0, -(-(rows - limit) // k))
    give = (groups * k)[of_type]
    order = np.argsort(of_type, kind="stable")
    held = histogram.count[order]
    before = np.cumsum(held) - held
    start = np.searchsorted(of_type[order], np.arange(first.size)) if first.size else np.zeros(0, np.int64)
    before -= before[start][of_type[order]] if first.size else 0
    emitted = np.zeros(histogram.cells, np.int64)
    emitted[order] = np.clip(give[order] - before, 0, held)
    left = histogram.count - emitted
    cell = np.flatnonzero(left)
    kernel = Histogram(
        histogram.quasi[cell],
        histogram.sensitive[cell],
        left[cell],
        histogram.quasi_names,
        histogram.sensitive_names,
        histogram.quasi_sizes,
        histogram.sensitive_sizes,
    )
    return KernelizedTable(histogram, kernel, cell, emitted, limit)


def _covers(code: np.ndarray, t: int, recoding: Recoding) -> int:
    """The number of published rows other than type t that are the least cover of t and other types of the table.

    Each is a vector of levels; the closure of a set of types has the largest level of its members in every column.
    """
    levels = np.zeros(code.shape, np.int64)
    for j, column in enumerate(recoding.hierarchies or ()):
        unmet = np.ones(len(code), bool)
        for level in range(column.levels):
            unmet &= column.node[level][code[:, j]] != column.node[level][code[t, j]]
            levels[:, j] += unmet
    single = {tuple(v) for v in np.unique(levels, axis=0).tolist()}
    single.discard((0,) * code.shape[1])
    closed = set(single)
    fresh = closed
    while fresh:
        fresh = {tuple(map(max, a, b)) for a in fresh for b in single} - closed
        closed |= fresh
    return len(closed)
