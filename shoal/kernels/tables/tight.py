"""Classes of a lattice written down with their dearest cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Tight(NamedTuple):
    """Room for classes: used int64[1] how many there are; name int64[t, 2] the node of each and its first cell;
    cost float64[t] what a row loses; its dearest cells, those of ``rows`` rows or all, are
    member[start[t] : start[t + 1]]."""

    used: np.ndarray
    name: np.ndarray
    start: np.ndarray
    cost: np.ndarray
    member: np.ndarray
    rows: int

    @classmethod
    def empty(cls, members: int, rows: int) -> Tight:
        """Room for so many members."""
        many = members // 16
        return cls(np.zeros(1, np.int64), np.empty((many, 2), np.int64), np.zeros(many + 1, np.int64), np.empty(many),
                   np.empty(members, np.int32), rows)  # fmt: skip


class Classes(NamedTuple):
    """Classes in the order of their names, each once; fields as in ``Tight``."""

    name: np.ndarray
    start: np.ndarray
    cost: np.ndarray
    member: np.ndarray

    @classmethod
    def of(cls, found: Sequence[Tight]) -> Classes:
        """Those that a sweep has found."""
        used = [int(t.used[0]) for t in found]
        parts = [
            (t.name[:n], np.diff(t.start[: n + 1]), t.cost[:n], t.member[: t.start[n]])
            for t, n in zip(found, used, strict=True)
        ]
        name, size, cost, member = (np.concatenate([part[y] for part in parts]) for y in range(4))
        return _once(name, size, cost, member)

    def joined(self, other: Classes) -> Classes:
        """Both; of a class that both have, this one's members."""
        return _once(
            np.concatenate([self.name, other.name]),
            np.concatenate([np.diff(self.start), np.diff(other.start)]),
            np.concatenate([self.cost, other.cost]),
            np.concatenate([self.member, other.member]),
        )


def _once(name: np.ndarray, size: np.ndarray, cost: np.ndarray, member: np.ndarray) -> Classes:
    """The first of each name."""
    kept = np.unique(name, axis=0, return_index=True)[1]
    at, many = (np.cumsum(size) - size)[kept], size[kept]
    start = np.append(0, np.cumsum(many)).astype(np.int64)
    return Classes(name[kept], start, cost[kept], member[np.repeat(at - start[:-1], many) + np.arange(start[-1])])
