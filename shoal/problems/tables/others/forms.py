"""Coarser forms of tuples, a level per column each, and the people of a population that they cover.

A group may be published wider than its rows ask: a star that none of them needs lets it cover more people.  So every
tuple has, for every choice of levels, a *form*; whoever publishes a form covers whom it covers, and a coarser form
covers them as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from shoal.model.histogram import merged, mixed_radix
from shoal.model.recoding import Levels, Published, Recoding
from shoal.model.task import Task
from shoal.problems.tables.search.coarsen import Coarse

LOOKS = 3e8  # nodes of the lattice times tuples that may be looked at
EDGES = 5_000_000  # pairs of a form and a tuple of the population in a flow
FLOWS = 400  # flows for one sharing out, and as many to lower its forms again
PART = 10_000  # the largest denominator that a share of people is counted in


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
        number = number.reshape(-1)
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

    def shared(self, codes: np.ndarray, rows: np.ndarray, least: np.ndarray, high: float) -> np.ndarray | None:
        """int64[x, d]: levels at or above ``least`` at which people can be shared out, rows / high each, at low loss.

        codes int[x, d], rows int64[x].  By Hall's theorem they can unless some set of tuples has more rows than the
        share ``high`` of the people it covers; a flow finds such a set, the tuple of it that gains people most cheaply
        is raised, and so on; then each is lowered again as far as it may.  None where no levels do, or where that would
        take too many flows.
        """
        share = _below(high)
        levels = self.cheapest(codes, least, np.ceil(rows / high - 1e-9).astype(np.int64))[1]
        for _ in range(FLOWS):
            found = self._wanting(codes, rows, levels, share)
            if found is None:
                return self._lowered(codes, rows, least, levels, share)
            short, wanting, reached = found
            if not self._raise(codes, rows, levels, wanting, np.where(reached, 0, self.people), short):
                return None
        return None

    def enough(self, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, high: float) -> bool:
        """Whether people can be shared out to tuples at levels int[x, d], rows / high to each."""
        return self._wanting(codes, rows, levels, _below(high)) is None

    def _wanting(
        self, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, share: Fraction
    ) -> tuple[float, np.ndarray, np.ndarray] | None:
        """(people lacking, bool[x] the tuples that lack them, bool[p] whom these cover); None where none lack any."""
        form, inside, of_form = np.zeros(len(codes), np.int64), [], []
        count = 0
        distinct, which = np.unique(levels, axis=0, return_inverse=True)
        for v, node in enumerate(distinct):
            here = np.flatnonzero(which.reshape(-1) == v)
            ours, theirs, size = self.numbers(codes[here], node)
            used = np.full(size, -1, np.int64)
            names = np.unique(ours)
            used[names] = count + np.arange(names.size)
            form[here] = used[ours]
            at = np.flatnonzero(used[theirs] >= 0)
            inside.append(at)
            of_form.append(used[theirs[at]])
            count += names.size
        who, whom = np.concatenate(of_form), np.concatenate(inside)
        need = np.bincount(form, weights=rows, minlength=count).astype(np.int64) * share.denominator
        room = self.people * share.numerator
        if who.size > EDGES or max(int(need.sum()), int(room.sum())) >= 2**31:
            return 0.0, np.zeros(len(codes), bool), np.zeros(self.people.size, bool)  # nothing to raise: given up
        p = self.people.size
        source, sink = count + p, count + p + 1
        start = np.concatenate([np.full(count, source), who, np.arange(count, count + p)])
        end = np.concatenate([np.arange(count), count + whom, np.full(p, sink)])
        most = np.concatenate([need, need[who], room]).astype(np.int32)
        graph = csr_matrix((most, (start, end)), shape=(count + p + 2, count + p + 2))
        flow = maximum_flow(graph, source, sink)
        if flow.flow_value == int(need.sum()):
            return None
        left = graph - flow.flow
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        seen = np.zeros(count + p + 2, bool)
        seen[breadth_first_order(left, source, return_predecessors=False)] = True
        reached = np.zeros(p, bool)
        reached[whom[seen[who]]] = True
        short = int(need[seen[:count]].sum()) - int(room[reached].sum())
        return short / share.numerator, seen[form], reached

    def _raise(
        self, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, wanting: np.ndarray, people: np.ndarray,
        short: float,
    ) -> bool:  # fmt: skip
        """Raise some wanting tuples in ``levels``, the cheapest beside what they gain; False where none gains any."""
        at = np.flatnonzero(wanting)
        ratio, gain, to = np.full(at.size, np.inf), np.zeros(at.size), levels[at].copy()
        now = self.loss(codes[at], levels[at])
        for node in self.lattice:
            tried = np.flatnonzero((levels[at] <= node).all(axis=1))
            new = np.minimum(self.covered(codes[at[tried]], node, people), short)
            tried, new = tried[new > 0], new[new > 0]
            price = (self.loss(codes[at[tried]], node) - now[tried]) * rows[at[tried]] / new
            better = price < ratio[tried]
            tried, new, price = tried[better], new[better], price[better]
            ratio[tried], gain[tried], to[tried] = price, new, node
        order = np.argsort(ratio, kind="stable")
        order = order[np.isfinite(ratio[order])]
        enough = int(np.searchsorted(np.cumsum(gain[order]), short)) + 1
        levels[at[order[:enough]]] = to[order[:enough]]
        return bool(order.size)

    def _lowered(
        self, codes: np.ndarray, rows: np.ndarray, least: np.ndarray, levels: np.ndarray, share: Fraction
    ) -> np.ndarray:
        """Levels at which every tuple is as low as it may be, the others as they are; within ``FLOWS`` flows."""
        left = FLOWS
        loss = self.loss(codes, levels)
        saved = (loss - self.loss(codes, least)) * rows
        for i in np.argsort(-saved, kind="stable").tolist():
            if saved[i] <= 0:
                break
            some = self.lattice[((least[i] <= self.lattice).all(axis=1))]
            price = self.loss(np.repeat(codes[i : i + 1], len(some), axis=0), some)
            for node in some[np.argsort(price, kind="stable")][: int((price < loss[i] - 1e-12).sum())]:
                if not left:
                    return levels
                left -= 1
                tried = levels.copy()
                tried[i] = node
                if self._wanting(codes, rows, tried, share) is None:
                    levels = tried
                    break
        return levels


def _below(high: float) -> Fraction:
    """The largest share of a small denominator that is at most ``high``."""
    share = Fraction(high).limit_denominator(PART)
    return share if share <= Fraction(high + 1e-9) else Fraction(math.floor(high * PART), PART)


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
