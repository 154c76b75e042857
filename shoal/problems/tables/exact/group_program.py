"""The last program of a small table: over all groups that a partition cheaper than the known one may still use.

Prices of the rows that prove a bound say what each group costs beyond them.  A cheaper partition has no group that
costs as much beyond its prices as lies between the bound and the known cost.  If that is little, few groups are left,
and all of them are listed (Baldacci, Christofides, Mingozzi, "An exact algorithm for the vehicle routing problem based
on the set partitioning formulation with additional cuts", Mathematical Programming 2008, lists routes in this way).

Over listed groups, cuts over three rows are as sharp as they can be: a group counts 1 if it has two of them or all.
Each turn of the linear program raises the bound, and leaves out what costs too much at the new prices.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from shoal.clock import clock
from shoal.model.privacy import Requirement
from shoal.problems.programs import Solver
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    PatternModel,
    RowClasses,
    SharedPrices,
    conditions_of,
    least_groups,
    part_sizes,
)
from shoal.problems.tables.methods.pattern_cover import Patterns

LISTED, PLACED = 400_000, 5_000_000  # groups that are listed at most, and rows in them
KINDS = 1000  # row classes at most: cuts look at all three of them
BEGUN, ADDED = 1000, 400  # groups that the linear program begins with, and that it takes in at once
SEEN = 1e-7  # below 0, a reduced cost that counts
MET = 1.02  # what three rows must sum to, of the 1 allowed
LINES, OFTEN = 60, 5  # cuts added at once, and of those with one row
FEWER = 0.8  # share of the groups of which the others leave the program
CUTS, LITTLE, TURNS = 60, 5e-3, 4  # turns at most, or until so many gain less than this share of what is missing
COLUMNS = 100_000  # groups over which a search branches at most
DIVES, DEEP = 8, 3  # dives, and the depth up to which one differs from those before
TRIED, PARTLY, LEAST = 8, 1e-4, 1e-4  # pairs of rows whose branches are tried; how far from whole they are; least gain
CAREFUL = 1e-6  # of the losses, by which listing and fixing err to the safe side
TRIED_FOR_EACH = 100  # rows for each group that there is room for, at most
CHEAP = 1e-9  # price of a cut that counts
# For prices of groups that are not listed:
ROUNDS, LPS = 80, 60  # rounds of cuts at most, and linear programs in each
MIXED = 0.5  # share of the best prices in those that groups are looked for at
ROOM, TRIED_IN_ONE, TAKEN = 50_000, 20_000, 200  # groups found at once, rows tried for a pattern, groups taken in
CLOSE = 2e-5  # share by which the groups found may cost more than is proved before cuts follow
WIDE = 0.3  # part of what lies between bound and cost, beyond which groups leave
PATIENCE, GAINED = 4, 0.012  # rounds that gain less than this share of what is missing: the last ones
SHRUNK, BRANCHED = 0.75, 40_000  # what is missing, of what was when groups were last listed; so many groups suffice
STARTS, STEPS, ABOVE = 24, 40, 0.02  # sets to begin with, classes that enter or leave, by how much a cut is violated


def largest(need: Requirement, rows: int) -> int:
    """Rows that no group of some optimum exceeds, where one thing is asked: larger ones split (``part_sizes``)."""
    ((column, _, sorts),) = conditions_of(need)
    if column < 0:
        return min(2 * need.k - 1, rows)
    l = need.frequency[need.sensitive_columns[column]]
    return min(2 * l * -(-need.k // l) - 1, rows) if sorts[0].values == 1 else rows


def listable(row_classes: RowClasses, need: Requirement) -> bool:
    """Whether one thing is asked of a group, and the row classes are few."""
    return len(conditions_of(need)) == 1 and not need.rules and row_classes.count.size <= KINDS


def pattern_of(at: csc_array, places: PatternFits) -> np.ndarray:
    """int64[c]: the pattern of each group, csc_array[n, c] of rows by place."""
    return np.asarray(places.pattern[at.indices[at.indptr[:-1]]])


class SetCuts(NamedTuple):
    """The sum over groups of floor(rows in a set of row classes / every) is at most ``most`` in every partition.

    has bool[c, r] the sets;  every int64[c];  most float64[c];  price float64[c] at least 0
    """

    has: np.ndarray
    every: np.ndarray
    most: np.ndarray
    price: np.ndarray

    @classmethod
    def of(cls, has: np.ndarray, every: np.ndarray, count: np.ndarray) -> SetCuts:
        """Cuts without prices.

        Each row is in one group, so all groups together have the rows of the set, and the sum of their numbers divided
        by ``every``, each rounded down, is at most that of the set (Chvatal 1973; Gomory 1958).
        """
        return cls(has, every, np.floor(has @ count / every), np.zeros(every.size))

    def also(self, other: SetCuts) -> SetCuts:
        """These cuts and others."""
        return SetCuts(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def only(self, some: np.ndarray) -> SetCuts:
        """Some of them, bool[c]."""
        return SetCuts(*(field[some] for field in self))

    def counted(self, rows: csc_array) -> csr_array:
        """csr_array[c, g]: what groups, csc_array[r, g] of rows by class, count in each cut."""
        out = csr_array(csr_array(self.has.astype(float)) @ rows)
        out.data = np.floor(out.data / np.repeat(self.every, np.diff(out.indptr)))
        out.eliminate_zeros()
        return out


def no_cuts(row_classes: RowClasses) -> SetCuts:
    return SetCuts.of(np.zeros((0, row_classes.count.size), bool), np.zeros(0, np.int64), row_classes.count)


class Listed(NamedTuple):
    """Groups csc_array[n, c] of rows by place, what each costs at the prices float64[c], and what no group of a pattern
    costs less than, float64[q] by rising loss."""

    at: csc_array
    cost: np.ndarray
    least: np.ndarray


class GroupSearch:
    """Finds groups that cost little at given prices, where one thing is asked of a group.

    rank int64[q]  place of each pattern by rising loss;  sorts, share, value  what is asked, as kernels take it
    """

    def __init__(
        self, row_classes: RowClasses, places: PatternFits, found: Patterns, need: Requirement, loss: np.ndarray
    ) -> None:
        self.row_classes, self.places, self.need = row_classes, places, need
        ((column, _, self.sorts),) = conditions_of(need)
        self.rows = row_classes.count[places.row_class]
        self.value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(self.rows.size, np.int64)
        of_values = column >= 0 and self.sorts[0].values == 1
        self.share = need.frequency[need.sensitive_columns[column]] if of_values else 1
        self.rank = np.empty(places.patterns, np.int64)
        self.rank[np.argsort(loss, kind="stable")] = np.arange(places.patterns)
        self.order = np.argsort(self.rank[places.pattern], kind="stable")
        self.start = np.searchsorted(self.rank[places.pattern][self.order], np.arange(places.patterns + 1))
        self.within = np.zeros((int(row_classes.type.max()) + 1, -(-places.patterns // 64)), np.uint64)
        bit = self.rank[np.repeat(np.arange(places.patterns), np.diff(found.start))]
        np.bitwise_or.at(self.within, (found.member, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))

    def below(
        self, spare: np.ndarray, use: np.ndarray, cuts: SetCuts, dearest: float, capacity: int = LISTED, tried: int = 0
    ) -> Listed | None:
        """Groups that cost ``dearest`` at most; None where there is no room for all.

        spare float64[n], use float64[q]  what a row of each place and a use of each pattern cost, cuts apart
        tried  if not 0, only groups that are cheaper than those before of their pattern, for which so many rows are
               tried
        """
        from shoal.kernels.tables.subsets import CutPrices, GroupsAsked, GroupsListed, PatternRows, few_groups

        need, places, cuts = self.need, self.places, cuts.only(cuts.price > CHEAP)
        of_class = csr_array(cuts.has.T)
        paid = CutPrices(
            places.row_class,
            of_class.indptr.astype(np.int64),
            of_class.indices.astype(np.int64),
            np.ascontiguousarray(cuts.has),
            cuts.every,
            cuts.price,
        )
        out = GroupsListed(
            np.zeros(capacity + 1, np.int64),
            np.empty(PLACED * capacity // LISTED, np.int32),
            np.empty(capacity),
            np.empty(places.patterns),
        )
        most = largest(need, int(self.row_classes.count.sum()))
        least, values = need.smallest, self.sorts[0].values
        asked = GroupsAsked(least, most, values, self.share, dearest, tried > 0, tried or TRIED_FOR_EACH * capacity)
        fits = PatternRows(self.start, self.order, self.rows, self.value, spare)
        by_rank = use[np.argsort(self.rank)]
        kind = self.row_classes.type[places.row_class]
        many = few_groups(fits, asked, by_rank, kind, self.within, paid, out)
        if many < 0:
            return None
        start = out.start[: many + 1].astype(np.int32)
        place = out.place[: start[-1]]
        at = csc_array((np.ones(place.size), place, start), shape=(self.rows.size, many))
        at.sum_duplicates()
        return Listed(at, out.cost[:many], out.least)


class PricedGroups:
    """The linear program over all groups, with cuts over sets of rows; groups enter it where its prices ask for them.

    proved  what no partition costs less than;  price float64[r] of the row classes and ``cuts`` with those that prove
    it;  at csc_array[n, c], rows csc_array[r, c], cost float64[c]  the groups in it
    """

    def __init__(self, search: GroupSearch, loss: np.ndarray, at: csc_array) -> None:
        self.search, self.loss = search, loss
        places, count = search.places, search.row_classes.count
        self.count, n = count.astype(float), count.size
        self.kinds = csr_array(
            (np.ones(search.rows.size), (places.row_class, np.arange(search.rows.size))), shape=(n, search.rows.size)
        )
        size = np.bincount(search.rank[places.pattern], weights=search.rows, minlength=places.patterns)
        self.most, self.groups = size // search.need.smallest, self.count.sum() // search.need.smallest
        self.proved, self.price = -np.inf, np.zeros(n)
        self.values: list[float] = []
        self.missing, self.random = np.inf, np.random.default_rng(0)
        self.solver = Solver(solver="simplex", presolve="off")
        self.solver.add_rows(self.count, self.count)
        # A row without a group costs more than all rows in groups: there is a solution before there are columns.
        dear = float(loss.max(initial=0.0)) * float(count.sum()) + 1.0
        self.solver.add_columns(np.full(n, dear), np.full(n, np.inf), list(np.arange(n)[:, None]))
        self.cuts = self.lines = no_cuts(search.row_classes)
        self.at, self.rows, self.cost = csc_array((search.rows.size, 0)), csc_array((n, 0)), np.zeros(0)
        self._into(at)
        everyone = np.ones((1, n), bool), np.array([search.need.smallest])
        self._keep_to(SetCuts.of(*everyone, self.count))

    def solve(self, enough: float, until: float) -> bool:
        """Rounds of cuts until what is missing to ``enough`` is a share smaller; False: more would gain little.

        Prices between the best known and the program's move less (Wentges 1997).  Each round ends after ``LPS`` linear
        programs at most, and there are ``ROUNDS`` rounds at most.
        """
        while len(self.values) <= ROUNDS:
            value = self._priced(until)
            if value is None or self.proved > enough or clock() > until:
                return False
            self.values.append(value)
            before = self.values[-1 - PATIENCE] if len(self.values) > PATIENCE else -np.inf
            x, least = self.solver.x[self.count.size :], self.search.need.smallest
            more = crowded_cuts(self.rows, x, self.count, least, self.random)
            if more is None or value - before < GAINED * (enough - value):
                return False
            self._leave(enough)
            self._keep_to(more)
            if enough - self.proved < SHRUNK * self.missing:
                self.missing = enough - self.proved
                return True
        return False

    def listed(self, enough: float, part: float, capacity: int) -> GroupProgram | None:
        """All groups that a partition of cost ``enough`` may use, or those up to a part of what is left to it."""
        found = self._below(self.price, self.cuts, part * (enough - self.proved) + CAREFUL, capacity)
        if found is None:
            return None
        out = GroupProgram(self.search.row_classes.count, found.at, self.search.places, self.loss)
        out.proved, out.spare = self.proved, found.cost
        priced = self.cuts.only(self.cuts.price > CHEAP)
        if priced.every.size and out.cost.size:
            out.keep_to(priced.counted(out.rows), priced.most)
        return out

    def _below(self, price: np.ndarray, cuts: SetCuts, dearest: float, capacity: int, tried: int = 0) -> Listed | None:
        places = self.search.places
        spare = self.loss[places.pattern] - price[places.row_class]
        return self.search.below(spare, np.zeros(places.patterns), cuts, dearest, capacity, tried)

    def _priced(self, until: float) -> float | None:
        """The value of the linear program over all groups, about; None: no time."""
        grown = False
        for _ in range(LPS):
            # With new columns the last solution is still one; with new lines, its prices still are.
            self.solver.setOptionValue("simplex_strategy", 4 if grown else 1)
            self.solver.limit(max(until - clock(), 0.0))
            if not self.solver.solved():
                return None
            value, dual = float(self.solver.getInfo().objective_function_value), self.solver.duals
            n = self.count.size
            price, cuts = dual[:n], self.lines._replace(price=np.maximum(-dual[n:], 0.0))
            grown = False
            for share in (MIXED, 0.0) if np.isfinite(self.proved) else (0.0,):
                at = share * self.price + (1 - share) * price
                mixed = cuts._replace(price=share * self.cuts.price + (1 - share) * cuts.price)
                found = self._below(at, mixed, -SEEN, ROOM, TRIED_IN_ONE)
                if found is None:
                    return None
                low = np.minimum(found.least, 0.0)
                below = max(float(self.most @ low), float(self.groups * low.min(initial=0.0)))
                proved = float(at @ self.count - mixed.price @ mixed.most) + below
                if proved > self.proved:
                    self.proved, self.price, self.cuts = proved, at, mixed
                if self._into(found.at, price, cuts):
                    grown = True
                    break
            if not grown or value - self.proved < CLOSE * abs(value):
                break
        return value

    def _into(self, at: csc_array, price: np.ndarray | None = None, cuts: SetCuts | None = None) -> int:
        """Groups into the program; with prices, only the cheapest of those that cost less than nothing."""
        rows = csc_array(self.kinds @ at)
        cost = self.loss[pattern_of(at, self.search.places)] * np.asarray(at.sum(axis=0)).reshape(-1)
        if price is not None and cuts is not None:
            spare = cost - rows.T @ price + cuts.counted(rows).T @ cuts.price
            less = np.flatnonzero(spare < -SEEN)
            less = less[np.argsort(spare[less], kind="stable")][:TAKEN]
            at, rows, cost = csc_array(at[:, less]), csc_array(rows[:, less]), cost[less]
        many = cost.size
        if many:
            both = csc_array(vstack([rows, self.lines.counted(rows)]))
            none, any_ = np.zeros(many), np.full(many, np.inf)
            self.solver.addCols(many, cost, none, any_, both.nnz, both.indptr[:-1], both.indices, both.data)
            self.at, self.rows = csc_array(hstack([self.at, at])), csc_array(hstack([self.rows, rows]))
            self.cost = np.append(self.cost, cost)
        return int(many)

    def _keep_to(self, more: SetCuts) -> None:
        lines, many, at = more.counted(self.rows), more.every.size, self.count.size
        low = np.full(many, -np.inf)
        self.solver.addRows(
            many, low, more.most, lines.nnz, lines.indptr[:-1], (lines.indices + at).astype(np.int32), lines.data
        )
        self.lines, self.cuts = self.lines.also(more), self.cuts.also(more)

    def _leave(self, enough: float) -> None:
        """Groups leave that cost much, and cuts without a price."""
        n, x = self.count.size, self.solver.x[self.count.size :]
        spare = self.cost - self.rows.T @ self.price + self.cuts.counted(self.rows).T @ self.cuts.price
        kept = (spare <= WIDE * (enough - self.proved)) | (x > SEEN)
        if kept.sum() < FEWER * kept.size:
            gone = np.flatnonzero(~kept) + n
            self.solver.deleteCols(gone.size, gone.astype(np.int32))
            self.at, self.rows, self.cost = csc_array(self.at[:, kept]), csc_array(self.rows[:, kept]), self.cost[kept]
        tight = (-self.solver.duals[n:] > CHEAP) | (self.cuts.price > CHEAP)
        if not tight.all():
            gone = np.flatnonzero(~tight) + n
            self.solver.deleteRows(gone.size, gone.astype(np.int32))
            self.lines, self.cuts = self.lines.only(tight), self.cuts.only(tight)


def crowded_cuts(
    rows: csc_array, x: np.ndarray, count: np.ndarray, least: int, random: np.random.Generator
) -> SetCuts | None:
    """Cuts that a solution violates, those most violated; None if none are found.

    rows csc_array[r, c], x float64[c]  of the groups, and how often the solution uses each
    count float64[r] rows of each class;  least  rows of the smallest group
    """
    from shoal.kernels.tables.subsets import crowded_set

    used = np.flatnonzero(x > SEEN)
    partly = used[np.abs(x[used] - np.rint(x[used])) > SEEN]
    if not partly.size:
        return None
    by_class = csr_array(rows[:, used])
    of_classes = by_class.indptr.astype(np.int64), by_class.indices.astype(np.int64), by_class.data
    has = rows[:, partly].toarray() > 0
    sets = [np.ones(count.size, bool)]
    for _ in range(STARTS):
        some = random.choice(partly.size, min(int(random.integers(1, 4)), partly.size), replace=False)
        sets.append(has[:, some].any(axis=1))
    found: dict[tuple[int, bytes], float] = {}
    for begin in sets:
        for every in range(2, max(least, 2) + 1):
            inside = begin.copy()
            above = crowded_set(of_classes, x[used], count, every, inside, STEPS)
            if above > ABOVE:
                found[every, inside.tobytes()] = above
    best = sorted(found, key=lambda key: (-found[key], key))[:LINES]
    if not best:
        return None
    sets = [np.frombuffer(inside, bool) for _, inside in best]
    return SetCuts.of(np.array(sets), np.array([every for every, _ in best]), count)


class GroupProgram:
    """Groups as columns, each row in one; what they cost is at least ``proved``, and more by the ``spare`` of each.

    rows   csc_array[r, c]  rows of each class that a group has;  at csc_array[n, c] the same by place
    cost, size  float64[c] of a group, and its rows;  most float64[c] how often it can be used
    lines  csr_array[l, c]  at most ``most_of`` float64[l] in every partition;  tight float64[l] their prices, 0 or less
    single int64[..]  classes of one row;  inside int64[..] groups in the solver
    """

    def __init__(self, count: np.ndarray, at: csc_array, places: PatternFits, loss: np.ndarray) -> None:
        kinds = csr_array(
            (np.ones(places.row_class.size), (places.row_class, np.arange(places.row_class.size))),
            shape=(count.size, places.row_class.size),
        )
        self.count, self.at, self.rows = count.astype(float), at, csc_array(kinds @ at)
        self.size = np.asarray(at.sum(axis=0)).reshape(-1)
        self.cost = loss[pattern_of(at, places)] * self.size
        often = self.count[self.rows.indices] // self.rows.data
        self.most = np.minimum.reduceat(often, self.rows.indptr[:-1]) if often.size else np.zeros(0)
        self.proved, self.spare = -np.inf, np.zeros(self.cost.size)
        self.lines, self.most_of, self.tight = csr_array((0, self.cost.size)), np.zeros(0), np.zeros(0)
        self.single, self.inside = np.flatnonzero(count == 1), np.zeros(0, np.int64)
        self.solver, n = Solver(solver="simplex", presolve="off"), count.size
        self.solver.add_rows(self.count, self.count)
        # A row without a group costs more than all rows in groups: there is a solution before there are columns.
        dear = float(loss.max(initial=0.0)) * float(count.sum()) + 1.0
        self.solver.add_columns(np.full(n, dear), np.full(n, np.inf), list(np.arange(n)[:, None]))

    @classmethod
    def listed(
        cls,
        row_classes: RowClasses,
        places: PatternFits,
        found: Patterns,
        need: Requirement,
        losses: tuple[np.ndarray, float],
        prices: tuple[np.ndarray, SharedPrices],
        model: PatternModel,
        part: float = 1.0,
        capacity: int = LISTED,
    ) -> GroupProgram | None:
        """All groups that a cheaper partition may use; None where more than one thing is asked, or they are too many.

        losses  float64[q] of a row of each pattern, and the largest cost of a partition that is looked for
        prices  of the row classes float64[r], of any sign, and of lines over several patterns
        model   with lines over several patterns, which the groups keep to as well
        part    of what lies between the bound and that cost: with less than all, only groups that are nearer
        """
        if not listable(row_classes, need):
            return None
        (loss, enough), (price, shared), rows = losses, prices, row_classes.count[places.row_class]
        search = GroupSearch(row_classes, places, found, need, loss)
        spare = loss[places.pattern] - price[places.row_class] + shared.rows
        # A pattern may have several groups, each with a negative cost.
        size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
        least = least_groups(places, rows, search.value, spare, search.sorts, shared.uses).cost
        below = float((size // need.smallest) @ np.minimum(least, 0.0))
        proved = shared.proved + float(price @ row_classes.count) + below
        once = shared.uses.min(axis=0)
        listed = search.below(spare, once, no_cuts(row_classes), part * (enough - proved) + CAREFUL, capacity)
        if listed is None:
            return None
        out = cls(row_classes.count, listed.at, places, loss)
        out.proved, out.spare = proved, listed.cost
        several_of = np.flatnonzero(model.owner >= model.patterns)
        if several_of.size and out.cost.size:
            lines, pattern = csc_array(model.lines[several_of]), pattern_of(listed.at, places)
            use, share = model.uses.column.reshape(-1, places.patterns), search.share
            sort = out.size.astype(np.int64) // share - part_sizes(need.k, share)[0] if share > 1 else 0
            of_groups = lines[:, : model.n] @ listed.at + lines[:, use[sort, pattern]]
            out.keep_to(csr_array(-of_groups), -model.low[several_of])
        return out

    def tighten(self, enough: float, until: float) -> None:
        """The linear program, with cuts, until the moment; what a partition of cost ``enough`` cannot use leaves."""
        before: list[float] = []
        random = np.random.default_rng(0)
        while self.cost.size:
            solved = self._solved(None, until)
            if solved is None:
                return
            before.append(solved[0])
            three = self._met(self._x())
            inside, least = csc_array(self.rows[:, self.inside]), int(self.size.min())
            crowded = crowded_cuts(inside, self._x(), self.count, least, random)
            self.leave(enough)
            slow = len(before) > TURNS and solved[0] - before[-1 - TURNS] < LITTLE * (enough - solved[0])
            if self.proved > enough or clock() > until or len(before) > CUTS or slow:
                return
            if (not len(three) and crowded is None) or not self.cost.size:
                return
            self._cut(three)
            if crowded is not None:
                self.keep_to(crowded.counted(self.rows), crowded.most)

    def dives(self, enough: float, unit: float, until: float) -> list[np.ndarray]:
        """Partitions of cost ``enough`` at most, each cheaper than the one before by ``unit`` or more: rows by place.

        Of the linear program's solution the group that is used most is taken, again and again.  Later dives take
        another one first (Sadykov, Vanderbeck, Pessoa, Tahiri, Uchoa, "Primal heuristics for branch and price",
        INFORMS Journal on Computing 2019).
        """
        out: list[np.ndarray] = []
        waiting: list[tuple[int, ...]] = [()]
        n = self.count.size
        for done in range(DIVES):
            if done >= len(waiting) or not self.cost.size or clock() > until:
                break
            other, taken, depth = waiting[done], [], 0
            while self._solved(None, until, keep=False) is not None:
                value, x = self.solver.getInfo().objective_function_value, self._x()
                if value > enough + CAREFUL or self.solver.x[:n].max() > SEEN:
                    break
                part = np.flatnonzero(np.abs(x - np.rint(x)) > SEEN)
                if not part.size:
                    out.append(self._placed(x))
                    enough = value - unit + CAREFUL
                    break
                part = part[np.argsort(-x[part], kind="stable")]
                if len(other) <= depth < DEEP and part.size > 1:
                    waiting.append((*other, *[0] * (depth - len(other)), 1))
                group = part[min(other[depth] if depth < len(other) else 0, part.size - 1)]
                taken.append(int(n + group))
                self.solver.changeColBounds(taken[-1], float(np.floor(x[group]) + 1.0), np.inf)
                depth += 1
            for column in taken:
                self.solver.changeColBounds(column, 0.0, np.inf)
        return out

    def branched(self, enough: float, unit: float, until: float) -> tuple[list[np.ndarray], float]:
        """Partitions as of ``dives``, and what none costs less than, or ``enough`` and a unit where it is more.

        Two rows of which a solution publishes a part together are together in one branch and apart in the other (Ryan,
        Foster, "An integer programming approach to scheduling", 1981).  The branch with the least bound goes first.
        """
        found: list[np.ndarray] = []
        more, nothing = enough + unit, 0
        if self.cost.size > COLUMNS:
            return found, min(self.proved, more)
        waiting: list[tuple[float, int, np.ndarray]] = [(self.proved, 0, np.ones(self.cost.size, bool))]
        has = self.rows.astype(bool).toarray()
        while waiting:
            least, _, allowed = heapq.heappop(waiting)
            if least > enough + CAREFUL:
                break
            solved = self._solved(allowed, until, enough)
            if solved is None:
                return found, min(least, more)
            bound, spare = max(least, solved[0]), solved[1]
            if bound > enough + CAREFUL:
                continue
            allowed &= spare <= enough - bound + CAREFUL
            x = self._x()
            used = np.flatnonzero(x > SEEN)
            if (np.abs(x[used] - np.rint(x[used])) <= SEEN).all() and self.solver.x[: self.count.size].max() <= SEEN:
                found.append(self._placed(x))
                more = float(self.cost[self.inside] @ np.rint(x))
                enough = more - unit
                continue
            halves = self._halves(x, has, allowed, enough, until)
            if halves is None:
                return found, min(least, more)
            for half in halves:
                nothing += 1
                heapq.heappush(waiting, (bound, nothing, half))
        return found, more

    def _halves(
        self, x: np.ndarray, has: np.ndarray, allowed: np.ndarray, enough: float, until: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Groups, bool[c] each, with two rows together and apart; None where no two are partly together, or no time.

        Of some pairs that are about half together, the one whose branches prove most over the groups in the solver.
        One of a pair differs from all other rows; if the other has rows alike, some of these may be elsewhere.
        """
        used, alone = np.flatnonzero(x > SEEN), self.count == 1
        here = has[:, self.inside[used]] * 1.0
        together = (here[self.single] * x[used]) @ here.T
        partly = np.minimum(together, 1.0 - together) > PARTLY
        partly &= (np.arange(alone.size) > self.single[:, None]) | ~alone
        one, other = np.nonzero(partly)
        near = np.argsort(np.abs(together[one, other] - 0.5), kind="stable")[:TRIED]
        best, out = -np.inf, None
        before = float(self.solver.getInfo().objective_function_value)
        for a, b in zip(self.single[one[near]], other[near], strict=True):
            joined = has[b] | ~has[a]  # the row of a is with one of b
            if alone[b]:
                joined &= has[a] | ~has[b]
            halves = allowed & joined, allowed & ~(has[a] & has[b])
            gains: list[float] = []
            if halves[0].sum() == allowed.sum():  # the rest of these rows is without a group
                continue
            for half in halves:
                self._allow(half)
                self.solver.limit(max(until - clock(), 0.0))
                if not self.solver.solved():
                    return None
                value = float(self.solver.getInfo().objective_function_value)
                gains.append(max(min(value, enough) - before, LEAST))
            if gains[0] * gains[1] > best:
                best, out = gains[0] * gains[1], halves
        return out

    def _solved(
        self, allowed: np.ndarray | None, until: float, enough: float = np.inf, keep: bool = True
    ) -> tuple[float, np.ndarray] | None:
        """What the linear program over some groups, bool[c], proves, and the reduced costs float64[c]; None: no time.

        Groups are taken in where their reduced cost is below 0; those that are not in the solver are priced beside it.
        It ends when more than ``enough`` is proved.
        keep  whether the bound is one of all partitions; not while some groups are fixed
        """
        n = self.count.size
        if not self.inside.size:
            self._into(np.argsort(self.spare, kind="stable")[:BEGUN])
        if allowed is not None:
            self._allow(allowed)
        while True:
            self.solver.limit(max(until - clock(), 0.0))
            if not self.solver.solved():
                return None
            dual = self.solver.duals
            price, tight = dual[:n], np.minimum(dual[n:], 0.0)
            spare = self.cost - self.rows.T @ price - self.lines.T @ tight
            below = np.minimum(spare, 0.0) * self.most
            proved = float(
                price @ self.count + tight @ self.most_of + (below if allowed is None else below[allowed]).sum()
            )
            if allowed is None and keep and proved > self.proved:
                self.proved, self.spare, self.tight = proved, np.maximum(spare, 0.0), tight
            if proved > enough + CAREFUL:
                return proved, spare
            out = spare < -SEEN
            out[self.inside] = False
            if allowed is not None:
                out &= allowed
            new = np.flatnonzero(out)
            if not new.size:
                return proved, spare
            self._into(new[np.argsort(spare[new], kind="stable")][:ADDED])

    def _x(self) -> np.ndarray:
        """How often the solution uses each group in the solver, float64[..]."""
        return self.solver.x[self.count.size :]

    def _placed(self, x: np.ndarray) -> np.ndarray:
        """Rows of each place, int64[n], of a whole solution."""
        return np.rint(self.at[:, self.inside] @ np.rint(x)).astype(np.int64)

    def _allow(self, allowed: np.ndarray) -> None:
        """Only some groups, bool[c], in the solver may be used."""
        here, zero = np.arange(self.inside.size) + self.count.size, np.zeros(self.inside.size)
        self.solver.changeColsBounds(
            here.size, here.astype(np.int32), zero, np.where(allowed[self.inside], np.inf, 0.0)
        )

    def leave(self, enough: float) -> None:
        """Groups leave that a partition of cost ``enough`` cannot use, where they are many."""
        kept = self.spare <= enough - self.proved + CAREFUL
        if kept.sum() >= FEWER * kept.size:
            return
        gone = np.flatnonzero(~kept[self.inside])
        self.solver.deleteCols(gone.size, (gone + self.count.size).astype(np.int32))
        self.inside = (np.cumsum(kept) - 1)[self.inside[kept[self.inside]]]
        self.rows, self.at = csc_array(self.rows[:, kept]), csc_array(self.at[:, kept])
        self.lines = csr_array(csc_array(self.lines)[:, kept])
        self.cost, self.most, self.size = self.cost[kept], self.most[kept], self.size[kept]
        self.spare = self.spare[kept]

    def _into(self, new: np.ndarray) -> None:
        """Groups into the solver."""
        both = csc_array(vstack([self.rows[:, new], csc_array(self.lines)[:, new]]))
        none, any_ = np.zeros(new.size), np.full(new.size, np.inf)
        self.solver.addCols(new.size, self.cost[new], none, any_, both.nnz, both.indptr[:-1], both.indices, both.data)
        self.inside = np.append(self.inside, new)

    def _met(self, x: np.ndarray) -> np.ndarray:
        """Sets of three rows, int64[c, 3], of which the solution has more than one group with two or all of them."""
        used = np.flatnonzero(x > SEEN)
        single = self.single
        has, often = self.rows[:, self.inside[used]].toarray()[single], x[used]
        pairs = (has * often) @ has.T
        found: list[tuple[float, int, int, int]] = []
        for a in range(single.size - 2):
            others = np.arange(a + 1, single.size)
            with_a = has[a] > 0
            all_three = (has[others][:, with_a] * often[with_a]) @ has[others][:, with_a].T
            total = pairs[a, others][:, None] + pairs[a, others] + pairs[np.ix_(others, others)] - 2 * all_three
            for i, j in zip(*np.nonzero(np.triu(total, 1) > MET), strict=True):
                found.append((-total[i, j], a, int(others[i]), int(others[j])))
        times = np.zeros(single.size, np.int64)
        kept: list[np.ndarray] = []
        for _, *three in sorted(found):
            if len(kept) < LINES and times[three].max() < OFTEN:
                times[three] += 1
                kept.append(single[three])
        return np.reshape(kept, (-1, 3)).astype(np.int64)

    def _cut(self, three: np.ndarray) -> None:
        """A line for every three rows: at most one group has two or all of them."""
        ones = csr_array(
            (np.ones(three.size), (np.repeat(np.arange(len(three)), 3), three.reshape(-1))),
            shape=(len(three), self.count.size),
        )
        lines = csr_array(ones @ self.rows)
        lines.data = (lines.data >= 2).astype(float)
        lines.eliminate_zeros()
        self.keep_to(lines, np.ones(len(three)))

    def keep_to(self, lines: csr_array, most: np.ndarray) -> None:
        """More lines: csr_array[l, c] times how often groups are used is at most float64[l] in every partition."""
        self.lines = csr_array(vstack([self.lines, lines]))
        self.most_of, self.tight = np.append(self.most_of, most), np.append(self.tight, np.zeros(most.size))
        here, at = csr_array(csc_array(lines)[:, self.inside]), self.count.size
        low = np.full(most.size, -np.inf)
        self.solver.addRows(
            most.size, low, most, here.nnz, here.indptr[:-1], (here.indices + at).astype(np.int32), here.data
        )
