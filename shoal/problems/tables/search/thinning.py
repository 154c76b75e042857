"""A large table made small before it is searched: rows that stand in eligible groups of their own type are set aside.

Rows with equal quasi-identifiers that meet the requirement among themselves are published as they are, at no loss,
and equal rows are interchangeable; so a search needs only as many of them as others may want to join or to borrow.
What a search costs then follows the number of cells, not of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shoal.model.partition import Partition
from shoal.model.task import Task
from shoal.problems.tables.papers.three_phase import ceiling_classes, residue

LARGE = 20_000  # rows below which nothing is set aside
WORTH = 0.75  # part of the rows that may be left, or it is not worth it
PIECES = 4  # least groups of every type that stay
STAY = 40_000  # rows of whole groups that stay, at least
HELPERS = 4  # times as many as would make all other rows eligible


@dataclass(frozen=True, eq=False)
class Thinned:
    """A table without the rows set aside.

    task   the same request of the rows that stay
    cells  int64[m'] the cells of the whole table that have some, rising
    aside  int64[m]  rows of each cell of the whole table set aside; those of a type are an eligible group
    whole  the request of the whole table
    """

    task: Task
    cells: np.ndarray
    aside: np.ndarray
    whole: Task

    def back(self, partition: Partition) -> Partition:
        """A partition of the rows that stay as one of the whole table.  O(p log p) for p triples."""
        gone = np.flatnonzero(self.aside)
        return Partition.of(
            np.concatenate([self.cells[partition.cell], gone]),
            np.concatenate([partition.group, self.whole.histogram.types[0][gone] + partition.groups]),
            np.concatenate([partition.count, self.aside[gone]]),
        )


def thinned(task: Task) -> Thinned | None:
    """The table thinned; None where that is not worth it, or the requirement is more than k and one share of 1/l.

    The rows that a type can publish by itself are dealt in turn into eligible pieces, sorted by sensitive value; some
    pieces stay and the others are set aside, so that both are eligible (a union of eligible groups is).
    O(m log m), whatever the rows.
    """
    h, need = task.histogram, task.requirement
    asked = need.sensitive_columns
    if h.rows < LARGE or need.rules or len(asked) > 1 or any(u > 1 for u in need.distinct):
        return None
    if ceiling_classes(task).any():  # what stays of a class might not be eligible by itself
        return None
    taken = residue(h, need)[0]
    kind, first = h.types
    keys = [h.sensitive[:, asked[0]], kind] if asked else [kind]
    order = np.lexsort(keys)
    own, kind = (h.count - taken)[order], kind[order]
    rows = np.bincount(kind, weights=own, minlength=first.size).astype(np.int64)
    l = need.frequency[asked[0]] if asked else 1
    top = np.zeros(first.size, np.int64)
    if asked:
        new = np.ones(order.size, bool)
        new[1:] = (np.diff(kind) != 0) | (np.diff(h.sensitive[order, asked[0]]) != 0)
        begin = np.flatnonzero(new)
        np.maximum.at(top, kind[begin], np.add.reduceat(own, begin))
    pieces = np.maximum(rows // need.smallest, 1)
    while True:
        bad = (pieces > 1) & (-(-top // pieces) * l > rows // pieces)
        if not bad.any():
            break
        pieces = np.where(bad, pieces - np.maximum(pieces // 64, 1), pieces)
    stay = _staying(rows, pieces, max(STAY, HELPERS * l * int(taken.sum())))
    if int(taken.sum()) + int((rows * stay / pieces).sum()) > WORTH * h.rows:
        return None
    start = np.cumsum(rows) - rows
    rank = np.cumsum(own) - own - start[kind]  # of the first row of each cell within its type
    here = _dealt(rank + own, pieces[kind], stay[kind]) - _dealt(rank, pieces[kind], stay[kind])
    aside = np.empty(h.cells, np.int64)
    aside[order] = own - here
    left = h.count - aside
    cells = np.flatnonzero(left)
    small = replace(h, quasi=h.quasi[cells], sensitive=h.sensitive[cells], count=left[cells])
    return Thinned(replace(task, histogram=small), cells, aside, task)


def _staying(rows: np.ndarray, pieces: np.ndarray, wanted: int) -> np.ndarray:
    """How many pieces of each type stay, int64[t]: alike for all types, and ``wanted`` rows together if there are."""
    low, high = PIECES, max(int(pieces.max(initial=1)), PIECES)
    while low < high:
        middle = (low + high) // 2
        if int((rows * np.minimum(pieces, middle) // pieces).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return np.minimum(pieces, low)


def _dealt(rank: np.ndarray, pieces: np.ndarray, some: np.ndarray) -> np.ndarray:
    """How many of the first ``rank`` rows, dealt in turn, come to the first ``some`` pieces."""
    return rank // pieces * some + np.minimum(rank % pieces, some)
