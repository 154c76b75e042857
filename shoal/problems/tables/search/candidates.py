"""Tuples worth opening: the classes in which the prices of the bounds leave least.

A class in use of a partition of least loss slacks by no more than lies between that loss and the bound; so the classes
that a bound by subgradients has written down as nearly tight hold nearly all tuples of a good partition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.tables.tight import Classes
from shoal.problems.tables.search.row_groups import Rows

MOST = 10_000  # tuples in a pool


class Candidates(NamedTuple):
    """Tuples worth opening, the most likely first: state int64[p, t]; some cells that each covers, rising,
    member[start[c] : start[c + 1]]."""

    state: np.ndarray
    start: np.ndarray
    member: np.ndarray

    @classmethod
    def empty(cls, width: int) -> Candidates:
        """No tuples."""
        return cls(np.zeros((0, width), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, rows: Rows, classes: Classes, price: np.ndarray) -> Candidates:
        """Of each class the least tuple that covers its members; those first whose k dearest rows have least left.

        price  float64[m] of the cells of the whole table, which ``rows`` are of.  O(members log members).
        """
        size, k = np.diff(classes.start), rows.k
        own = np.repeat(np.arange(size.size), size)
        order = np.lexsort((-price[classes.member], own))
        count = rows.histogram.count[classes.member[order]]
        ahead = np.cumsum(count) - count
        taken = np.clip(k - (ahead - ahead[classes.start[:-1]][own]), 0, count)
        paid = np.bincount(own, weights=taken * price[classes.member[order]], minlength=size.size)
        likely = np.argsort(k * classes.cost - paid, kind="stable")[:MOST]
        many = size[likely]
        start = np.append(0, np.cumsum(many)).astype(np.int64)
        member = classes.member[np.repeat(classes.start[likely] - start[:-1], many) + np.arange(start[-1])]
        return cls(rows.covers(member, start[:-1]), start, member.astype(np.int64))

    def among(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(state int64[p', t], seat int64[p']) of those that cover some of these cells, rising: the place of one."""
        place = np.searchsorted(cells, self.member)
        place[place == cells.size] = 0
        found = np.flatnonzero(cells[place] == self.member)
        own = np.searchsorted(self.start, found, side="right") - 1
        some, first = np.unique(own, return_index=True)
        return self.state[some], place[found[first]]
