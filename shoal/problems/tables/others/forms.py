"""Coarser forms of tuples, a level per column each, and the people of a population that they cover.

A group may be published wider than its rows ask: a star that none of them needs lets it cover more people.  So every
tuple has, for every choice of levels, a *form*; whoever publishes a form covers whom it covers, and a coarser form
covers them as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from shoal.model.histogram import merged, mixed_radix
from shoal.model.recoding import Levels, Published, Recoding
from shoal.model.task import Task
from shoal.problems.tables.search.coarsen import Coarse

LOOKS = 3e8  # nodes of the lattice times tuples that may be looked at


@dataclass(frozen=True, eq=False)
class Forms:
    """Forms of the tuples of a sample beside a population.

    columns  how each column is recoded
    nodes    per column int64[levels, values]  classes of the sample's codes and, after them, of the population's
    codes    int64[p, d]  the population's tuples;  people  int64[p]  rows of each
    tops     int64[d]  the highest level that may be published
    exact    whether nobody is covered beyond those counted; else values that only the population has are in no class
             below the star
    """

    columns: tuple[Levels, ...]
    nodes: tuple[np.ndarray, ...]
    codes: np.ndarray
    people: np.ndarray
    tops: np.ndarray
    exact: bool = True

    @property
    def whole(self) -> bool:
        """Whether the highest levels cover the whole population."""
        return all((n[t] == n[t, :1]).all() for n, t in zip(self.nodes, self.tops.tolist(), strict=True))

    def few(self, tuples: int) -> bool:
        """Whether all forms of so many tuples may be looked at."""
        return math.prod(int(t) + 1 for t in self.tops) * (self.people.size + tuples) <= LOOKS

    @cached_property
    def lattice(self) -> np.ndarray:
        """int64[nodes, d]: every choice of levels."""
        return np.array(list(product(*(range(int(t) + 1) for t in self.tops))), np.int64).reshape(-1, self.tops.size)

    def number(self, levels: np.ndarray) -> np.ndarray:
        """int64[x]: place in the lattice of levels int64[x, d]."""
        key = np.zeros(len(levels), np.int64)
        for j, top in enumerate(self.tops.tolist()):
            key = key * (top + 1) + levels[:, j]
        return key

    def loss(self, codes: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """float64[x]: weighted loss of one row of tuples int[x, d] at levels int[d] or int[x, d]."""
        at = np.broadcast_to(levels, codes.shape)
        return sum((c.loss[at[:, j], codes[:, j]] * c.weight for j, c in enumerate(self.columns)), np.zeros(len(codes)))

    def numbers(self, codes: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """(int64[x] number of the form of each tuple at levels int[d], int64[p] of the population's, how many)."""
        classes = [n[h] for n, h in zip(self.nodes, levels.tolist(), strict=True)]
        both = np.concatenate([codes, self.codes])
        at = [c[both[:, j]] for j, c in enumerate(classes)]
        if not at:
            return np.zeros(len(codes), np.int64), np.zeros(self.people.size, np.int64), 1
        key = mixed_radix(np.column_stack(at).astype(np.int64), [int(c.max(initial=0)) + 1 for c in classes])
        distinct, number = np.unique(key, return_inverse=True)
        return number[: len(codes)], number[len(codes) :], int(distinct.size)

    def covered(self, codes: np.ndarray, levels: np.ndarray, people: np.ndarray | None = None) -> np.ndarray:
        """int64[x]: people, or of those given, whom each tuple covers at levels int[d].  O((x + p) log(x + p))."""
        ours, theirs, size = self.numbers(codes, levels)
        held = np.bincount(theirs, weights=self.people if people is None else people, minlength=size)
        return held.astype(np.int64)[ours]

    def cheapest(self, codes: np.ndarray, least: np.ndarray, fewest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(float64[x] loss, int64[x, d] levels) of the cheapest form at or above ``least`` that covers enough people.

        codes int[x, d], least int[x, d], fewest int64[x]; infinite where no form does.  O(nodes (x + p) log(x + p)).
        """
        best, levels = np.full(len(codes), np.inf), np.tile(self.tops, (len(codes), 1))
        for node in self.lattice:
            loss = self.loss(codes, node)
            tried = np.flatnonzero((loss < best) & (least <= node).all(axis=1))
            if tried.size:
                enough = tried[self.covered(codes[tried], node) >= fewest[tried]]
                best[enough], levels[enough] = loss[enough], node
        return best, levels

    def published(self, codes: np.ndarray, levels: np.ndarray) -> Published:
        """Groups of somebody's codes int[g, d] at levels int[g, d]."""
        second = [c.node[levels[:, j], codes[:, j]] for j, c in enumerate(self.columns)]
        wide = np.stack(second, axis=1) if second else np.zeros(levels.shape)
        return Published(levels.astype(np.int32), wide.astype(np.int32))


def raised(task: Task, levels: np.ndarray) -> Coarse:
    """A table whose cells are published at levels int64[m, d] or above: the same request of coarser cells."""
    h = task.histogram
    made = [_raised(c, h.quasi[:, j], levels[:, j]) for j, c in enumerate(task.recoding.hierarchies or ())]
    quasi = np.stack([codes for _, codes in made], axis=1)
    columns = tuple(column for column, _ in made)
    small, first, of_cell = merged(h, quasi, tuple(c.size for c in columns), task.apart)
    apart = None if task.apart is None else task.apart[first]
    return Coarse(replace(task, histogram=small, recoding=Recoding(columns), apart=apart), of_cell, h)


def _raised(column: Levels, codes: np.ndarray, levels: np.ndarray) -> tuple[Levels, np.ndarray]:
    """(a column with a code for every value and for every class that some cell is raised to, the cells' codes)."""
    width = max(column.size, int(column.node.max(initial=0)) + 1)
    pair = levels.astype(np.int64) * width + column.node[levels, codes]
    _, first, number = np.unique(pair, return_index=True, return_inverse=True)
    own, someone = levels[first], codes[first]
    node, loss = column.node[:, someone].copy(), column.loss[:, someone].copy()
    for level in range(column.levels):
        below = own > level  # a class of its own up to where it is one of the hierarchy
        node[level, below] = width + np.flatnonzero(below)
        loss[level, below] = column.loss[own[below], someone[below]]
    return replace(column, size=first.size, node=node, loss=loss), number.reshape(-1)
