"""Coarser forms of tuples (one level per column), and the people of a population that they cover.

A group may be published coarser than its rows require: an additional star lets it cover more people. So every tuple has
a *form* for every choice of levels. A published form covers certain people, and a coarser form covers them too.

``least_forms`` finds the forms with the least loss for a small table with a population, by an integer program. A
release is a choice of forms, and of how many rows of every cell take each form. A form that is used has the rows that
the models require. It covers k people; or it is assigned the people that its rows need among those it covers, nobody
twice.

``Sharing`` assigns the people of a population to the groups of a sample, nobody twice, as delta-presence counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from shoal.model.histogram import Histogram, Partition, merged, mixed_radix
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, PublishedCodes, Recoding
from shoal.model.task import Task
from shoal.problems.tables.coarsen import GeneralizedTable

LOOKS = 3e8  # nodes of the lattice times tuples that may be examined


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a sample's tuples, with a population.

    columns  how each column is recoded
    nodes    per column int64[levels, values]: classes of the sample's codes, followed by those of the population
    codes    int64[p, d]: the population's tuples;  people: int64[p], rows of each
    tops     int64[d]: the highest level that may be published
    exact    whether the counts include everyone covered; otherwise values that only the population has are in no class
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
        """Whether there are few enough forms of this many tuples to examine all."""
        return math.prod(int(t) + 1 for t in self.tops) * (self.people.size + tuples) <= LOOKS

    @cached_property
    def lattice(self) -> np.ndarray:
        """int64[nodes, d]: every choice of levels."""
        return np.array(list(product(*(range(int(t) + 1) for t in self.tops))), np.int64).reshape(-1, self.tops.size)

    def number(self, levels: np.ndarray) -> np.ndarray:
        """int64[x]: index in the lattice of levels int64[x, d]."""
        key = np.zeros(len(levels), np.int64)
        for j, top in enumerate(self.tops.tolist()):
            key = key * (top + 1) + levels[:, j]
        return key

    def loss(self, codes: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """float64[x]: weighted loss of one row of tuples int[x, d] at levels int[d] or int[x, d]."""
        at = np.broadcast_to(levels, codes.shape)
        return sum((c.loss[at[:, j], codes[:, j]] * c.weight for j, c in enumerate(self.columns)), np.zeros(len(codes)))

    def numbers(self, codes: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """(int64[x]: number of each tuple's form at levels int[d]; int64[p]: of the population's; count of forms)."""
        classes = [n[h] for n, h in zip(self.nodes, levels.tolist(), strict=True)]
        both = np.concatenate([codes, self.codes])
        at = [c[both[:, j]] for j, c in enumerate(classes)]
        if not at:
            return np.zeros(len(codes), np.int64), np.zeros(self.people.size, np.int64), 1
        key = mixed_radix(np.column_stack(at).astype(np.int64), [int(c.max(initial=0)) + 1 for c in classes])
        distinct, number = np.unique(key, return_inverse=True)
        return number[: len(codes)], number[len(codes) :], int(distinct.size)

    def covered(self, codes: np.ndarray, levels: np.ndarray, people: np.ndarray | None = None) -> np.ndarray:
        """int64[x]: the number of people, or of those given, that each tuple covers at levels int[d].

        O((x + p) log(x + p)).
        """
        ours, theirs, size = self.numbers(codes, levels)
        held = np.bincount(theirs, weights=self.people if people is None else people, minlength=size)
        return held.astype(np.int64)[ours]

    def cheapest(self, codes: np.ndarray, least: np.ndarray, fewest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(float64[x] loss, int64[x, d] levels) of the cheapest form at or above ``least`` that covers enough people.

        codes int[x, d], least int[x, d], fewest int64[x]; infinite if no form does. O(nodes (x + p) log(x + p)).
        """
        best, levels = np.full(len(codes), np.inf), np.tile(self.tops, (len(codes), 1))
        for node in self.lattice:
            loss = self.loss(codes, node)
            tried = np.flatnonzero((loss < best) & (least <= node).all(axis=1))
            if tried.size:
                enough = tried[self.covered(codes[tried], node) >= fewest[tried]]
                best[enough], levels[enough] = loss[enough], node
        return best, levels

    def published(self, codes: np.ndarray, levels: np.ndarray) -> PublishedCodes:
        """Groups published with codes int[g, d] at levels int[g, d]."""
        second = [c.node[levels[:, j], codes[:, j]] for j, c in enumerate(self.columns)]
        wide = np.stack(second, axis=1) if second else np.zeros(levels.shape)
        return PublishedCodes(levels.astype(np.int32), wide.astype(np.int32))


def raised(task: Task, levels: np.ndarray) -> GeneralizedTable:
    """A table whose cells are published at levels int64[m, d] or above: the same request for coarser cells."""
    h = task.histogram
    made = [_raised(c, h.quasi[:, j], levels[:, j]) for j, c in enumerate(task.recoding.hierarchies or ())]
    quasi = np.stack([codes for _, codes in made], axis=1)
    columns = tuple(column for column, _ in made)
    small, first, of_cell = merged(h, quasi, tuple(c.size for c in columns), task.apart)
    apart = None if task.apart is None else task.apart[first]
    return GeneralizedTable(replace(task, histogram=small, recoding=Recoding(columns), apart=apart), of_cell, h)


def _raised(column: Levels, codes: np.ndarray, levels: np.ndarray) -> tuple[Levels, np.ndarray]:
    """(a column with a code for every value and for every class to which some cell is raised, the cells' codes)."""
    width = max(column.size, int(column.node.max(initial=0)) + 1)
    pair = levels.astype(np.int64) * width + column.node[levels, codes]
    _, first, number = np.unique(pair, return_index=True, return_inverse=True)
    own, representative = levels[first], codes[first]
    node, loss = column.node[:, representative].copy(), column.loss[:, representative].copy()
    for level in range(column.levels):
        below = own > level  # a separate class, up to the level at which it is a class of the hierarchy
        node[level, below] = width + np.flatnonzero(below)
        loss[level, below] = column.loss[own[below], representative[below]]
    return replace(column, size=first.size, node=node, loss=loss), number.reshape(-1)


CELLS, PLACES = 60, 20_000  # cells; pairs of a form with a cell or with a tuple of the population
SECONDS = {"balanced": 3.0, "thorough": 60.0}


class LeastLoss(NamedTuple):
    """A partition, int64[g, d] levels of its groups, its loss, and a lower bound, both summed over rows."""

    partition: Partition
    levels: np.ndarray
    loss: float
    bound: float


class _FormProgram(NamedTuple):
    """Forms int64[f, d] as levels; pairs (cell, form) and (tuple of the population, form)."""

    levels: np.ndarray
    cell: np.ndarray
    form: np.ndarray
    person: np.ndarray
    covers: np.ndarray


def least_forms(
    forms: Forms, histogram: Histogram, need: Requirement, k: int, high: float | None, seconds: float
) -> LeastLoss | None:
    """The release of least loss within some seconds.

    None if the table is large, or if the request has other conditions.

    k     people that every form must cover;  high: largest share of people that are rows, or None
    need  only k and frequency
    """
    if need.rules or max(need.distinct, default=1) > 1 or not 0 < histogram.cells <= CELLS or not forms.few(CELLS):
        return None
    held = _program(forms, histogram, k)
    if held is None:
        return None
    from shoal.problems.programs import LinearConstraints, solve  # importing these takes as long as many a table

    codes, count, f = histogram.quasi.astype(np.int64), histogram.count, len(held.levels)
    x, y, shared = held.cell.size, f, held.person.size if high is not None else 0
    paid = forms.loss(codes[held.cell], held.levels[held.form])
    ones, at = np.ones(x), np.arange(x)
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # row, variable, factor
    lows, tops = np.zeros(0), np.zeros(0)

    def add(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], size: int, low: ArrayLike, top: ArrayLike) -> None:
        """Add rows low <= .. <= top. Parts: (row, variable, factor)."""
        nonlocal lows, tops
        entries.extend((lows.size + row, column, factor) for row, column, factor in parts)
        lows, tops = (np.append(old, np.broadcast_to(new, size)) for old, new in ((lows, low), (tops, top)))

    add([(held.cell, at, ones)], count.size, count, count)
    add([(at, at, ones), (at, x + held.form, -count[held.cell])], x, -np.inf, 0)
    add([(held.form, at, ones), (np.arange(f), x + np.arange(f), -np.full(f, float(need.smallest)))], f, 0, np.inf)
    for j, l in enumerate(need.frequency):
        for value in range(histogram.sensitive_sizes[j] if l > 1 else 0):
            add([(held.form, at, 1 - l * (histogram.sensitive[held.cell, j] == value))], f, 0, np.inf)
    if high is not None:
        people = x + y + np.arange(shared)
        add([(held.covers, people, np.full(shared, high)), (held.form, at, -ones)], f, 0, np.inf)
        add([(held.person, people, np.ones(shared))], forms.people.size, -np.inf, forms.people)
    top = np.concatenate([count[held.cell], np.ones(y), np.full(shared, np.inf)])
    price = np.concatenate([paid, np.zeros(y + shared)])
    row, column, factor = (np.concatenate([part[i] for part in entries]) for i in range(3))
    rows = LinearConstraints(coo_array((factor, (row, column)), shape=(lows.size, price.size)).tocsr(), lows, tops)
    whole = np.arange(price.size) < x + y
    found = solve(price, rows, np.zeros(price.size), top, whole=whole, seconds=seconds)
    if found.x is None:
        return None
    taken = np.round(found.x[:x]).astype(np.int64)
    kept = taken > 0
    used, group = np.unique(held.form[kept], return_inverse=True)
    partition = Partition.of(held.cell[kept], group.reshape(-1), taken[kept])
    return LeastLoss(partition, held.levels[used], float(paid @ taken), max(found.bound, 0.0))


def _program(forms: Forms, histogram: Histogram, k: int) -> _FormProgram | None:
    """The forms of the cells that cover k people; None if there are too many."""
    codes = histogram.quasi.astype(np.int64)
    parts: list[tuple[np.ndarray, ...]] = []
    count = places = 0
    for node in forms.lattice:
        ours, theirs, size = forms.numbers(codes, node)
        enough = np.bincount(theirs, weights=forms.people, minlength=size) >= k
        names = np.unique(ours[enough[ours]])
        number = np.full(size, -1, np.int64)
        number[names] = count + np.arange(names.size)
        cell, person = np.flatnonzero(number[ours] >= 0), np.flatnonzero(number[theirs] >= 0)
        parts.append((np.tile(node, (names.size, 1)), cell, number[ours[cell]], person, number[theirs[person]]))
        count, places = count + names.size, places + cell.size + person.size
        if places > PLACES:
            return None
    return _FormProgram(*(np.concatenate(p) for p in zip(*parts, strict=True)))


EDGES = 5_000_000  # pairs of a form and a tuple of the population in a flow
FLOWS = 400  # most flows for one assignment, and as many again to lower its forms
PART = 10_000  # largest denominator of a share of people
KEPT = 20_000_000  # entries of forms that are cached between flows


def shared(forms: Forms, codes: np.ndarray, rows: np.ndarray, least: np.ndarray, high: float) -> np.ndarray | None:
    """int64[x, d]: levels from ``least`` on at which people can be assigned, rows / high per tuple, at low loss.

    codes int[x, d], rows int64[x]. By Hall's theorem, an assignment exists unless some set of tuples has more rows than
    the share ``high`` of the people it covers. A flow finds such a set; the tuples of it that gain people most cheaply
    are raised, and so on. Then each is lowered as far as possible. None if no levels work, or if too many flows would
    be necessary.
    """
    levels = forms.cheapest(codes, least, np.ceil(rows / high - 1e-9).astype(np.int64))[1]
    sharing = Sharing(forms, codes, rows, _below(high))
    for _ in range(FLOWS):
        lack = sharing.lack(levels)
        if lack is None:
            return sharing.lowered(least, levels)
        if not sharing.raised(levels, lack):
            return None
    return None


def enough(forms: Forms, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, high: float) -> bool:
    """Whether people can be assigned to tuples at levels int[x, d], rows / high to each."""
    return Sharing(forms, codes, rows, _below(high)).lack(levels) is None


@dataclass(frozen=True, eq=False)
class UncoveredTuples:
    """A set of tuples with more rows than their share of the people they cover.

    people   float: how many more people they need
    wanting  bool[x]: the tuples
    covered  bool[p]: the people they cover
    """

    people: float
    wanting: np.ndarray
    covered: np.ndarray


@dataclass(frozen=True, eq=False)
class Sharing:
    """Assignment of people to tuples int[x, d] of int64[x] rows.

    Rows may be at most a share of the people of each tuple.
    """

    forms: Forms
    codes: np.ndarray
    rows: np.ndarray
    share: Fraction
    kept: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, int]] = field(default_factory=dict)

    def numbers(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The forms of all tuples at levels int[d], as ``Forms.numbers`` returns them; cached if there is room."""
        key = tuple(node.tolist())
        if key not in self.kept:
            found = self.forms.numbers(self.codes, node)
            if (len(self.kept) + 1) * (found[0].size + found[1].size) > KEPT:
                return found
            self.kept[key] = found
        return self.kept[key]

    def lack(self, levels: np.ndarray) -> UncoveredTuples | None:
        """A set of tuples that lacks people at levels int[x, d]; None if people can be assigned."""
        form, inside, of_form = np.zeros(len(self.codes), np.int64), [], []
        count, p = 0, self.forms.people.size
        number = self.forms.number(levels)
        for v in np.flatnonzero(np.bincount(number)).tolist():
            here = np.flatnonzero(number == v)
            ours, theirs, size = self.numbers(self.forms.lattice[v])
            used = np.full(size, -1, np.int64)
            names = np.flatnonzero(np.bincount(ours[here], minlength=size))
            used[names] = count + np.arange(names.size)
            form[here] = used[ours[here]]
            at = np.flatnonzero(used[theirs] >= 0)
            inside.append(at)
            of_form.append(used[theirs[at]])
            count += names.size
        who, whom = np.concatenate(of_form), np.concatenate(inside)
        need = np.bincount(form, weights=self.rows, minlength=count).astype(np.int64) * self.share.denominator
        capacity = self.forms.people * self.share.numerator
        if who.size > EDGES or max(int(need.sum()), int(capacity.sum())) >= 2**31:
            return UncoveredTuples(0.0, np.zeros(len(self.codes), bool), np.zeros(p, bool))  # nothing to raise: give up
        reached = _cut(who, whom, need, capacity)
        if reached is None:
            return None
        covered = np.zeros(p, bool)
        covered[whom[reached[who]]] = True
        short = int(need[reached].sum()) - int(capacity[covered].sum())
        return UncoveredTuples(short / self.share.numerator, reached[form], covered)

    def raised(self, levels: np.ndarray, lack: UncoveredTuples) -> bool:
        """Raise some wanting tuples in ``levels``, the cheapest in relation to their gain.

        False if none gains any people.

        A tuple gains at most the people it needs, because the people it leaves to the others are those it had.
        """
        at = np.flatnonzero(lack.wanting)
        need = np.minimum(self.rows[at] / float(self.share), lack.people)
        free = np.where(lack.covered, 0, self.forms.people)
        ratio, gain, to = np.full(at.size, np.inf), np.zeros(at.size), levels[at].copy()
        now = self.forms.loss(self.codes[at], levels[at])
        for node in self.forms.lattice:
            tried = np.flatnonzero((levels[at] <= node).all(axis=1))
            ours, theirs, size = self.numbers(node)
            new = np.minimum(np.bincount(theirs, weights=free, minlength=size)[ours[at[tried]]], need[tried])
            tried, new = tried[new > 0], new[new > 0]
            price = (self.forms.loss(self.codes[at[tried]], node) - now[tried]) * self.rows[at[tried]] / new
            better = price < ratio[tried]
            tried, new, price = tried[better], new[better], price[better]
            ratio[tried], gain[tried], to[tried] = price, new, node
        order = np.argsort(ratio, kind="stable")
        order = order[np.isfinite(ratio[order])]
        enough = int(np.searchsorted(np.cumsum(gain[order]), lack.people)) + 1
        levels[at[order[:enough]]] = to[order[:enough]]
        return bool(order.size)

    def lowered(self, least: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Levels at which every tuple is as low as possible, given the others; within ``FLOWS`` flows."""
        left = FLOWS
        loss = self.forms.loss(self.codes, levels)
        saved = (loss - self.forms.loss(self.codes, least)) * self.rows
        lattice = self.forms.lattice
        for i in np.argsort(-saved, kind="stable").tolist():
            if saved[i] <= 0:
                break
            some = lattice[((least[i] <= lattice).all(axis=1))]
            price = self.forms.loss(np.repeat(self.codes[i : i + 1], len(some), axis=0), some)
            for node in some[np.argsort(price, kind="stable")][: int((price < loss[i] - 1e-12).sum())]:
                if not self._has_capacity(i, node, levels):
                    continue
                if not left:
                    return levels
                left -= 1
                tried = levels.copy()
                tried[i] = node
                if self.lack(tried) is None:
                    levels = tried
                    break
        return levels

    def _has_capacity(self, i: int, node: np.ndarray, levels: np.ndarray) -> bool:
        """Whether a form covers enough people for its tuples and one more, if no other tuple needed any of them."""
        ours, theirs, _ = self.numbers(node)
        form = ours[i]
        rows = self.rows[i] + self.rows[(ours == form) & (levels == node).all(axis=1)].sum()
        people = self.forms.people[theirs == form].sum()
        return bool(rows * self.share.denominator <= people * self.share.numerator)


def _cut(who: np.ndarray, whom: np.ndarray, need: np.ndarray, capacity: np.ndarray) -> np.ndarray | None:
    """bool[f]: forms on the source side of a minimum cut; None if a flow gives every form what it needs.

    who, whom int64[e]: pairs of a form and a tuple of the population that it covers; need int64[f], capacity int64[p]
    """
    count, p = need.size, capacity.size
    source, sink = count + p, count + p + 1
    start = np.concatenate([np.full(count, source), who, np.arange(count, count + p)])
    end = np.concatenate([np.arange(count), count + whom, np.full(p, sink)])
    most = np.concatenate([need, need[who], capacity]).astype(np.int32)
    graph = csr_matrix((most, (start, end)), shape=(count + p + 2, count + p + 2))
    flow = maximum_flow(graph, source, sink)
    if flow.flow_value == int(need.sum()):
        return None
    left = graph - flow.flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    seen = np.zeros(count + p + 2, bool)
    seen[breadth_first_order(left, source, return_predecessors=False)] = True
    return np.asarray(seen[:count])


def _below(high: float) -> Fraction:
    """The largest fraction with a small denominator that is at most ``high``."""
    share = Fraction(high).limit_denominator(PART)
    return share if share <= Fraction(high + 1e-9) else Fraction(math.floor(high * PART), PART)
