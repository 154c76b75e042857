"""The set partitioning program over all groups that a partition cheaper than the best known one can contain.

The groups are listed by their reduced costs (``group_list``). Listed groups allow cuts over sets of rows S: at most
|S| / m groups, rounded down, can have m rows of S, where a row can count several times. After each solution of the
linear program the bound is higher, and groups with too large reduced costs are removed.

The bound over the list holds for partitions of groups in the list. For one that holds for all partitions, groups with
negative reduced costs join the program until there is none (``priced_out``). Its prices make the next list shorter.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from copy import copy
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from shoal.clock import clock
from shoal.problems.programs import Solver
from shoal.problems.tables.exact.group_list import (
    TINY,
    GroupList,
    GroupPrices,
    ListLimits,
    RowSet,
    below,
    counts_of,
    in_classes,
)
from shoal.problems.tables.exact.pattern_model import PatternFits

if TYPE_CHECKING:
    from shoal.kernels.tables.covers import CoverGroups

FIRST_GROUPS, MORE_GROUPS = 1000, 400  # groups in the first linear program, and the most that one round adds
JOINING = ListLimits(groups=1_000, each=5, tried=3_000_000)  # of the groups that join the program at a time
CROWDED, TIMES = range(2, 5), range(1, 5)  # sets of rows in which groups have m rows: m, and how often it is in the set
STARTS = 400  # searches, over m, m, and the number of times
VIOLATED = 0.02  # how much a solution exceeds the right side of an added cut at least
MOST_CUTS, CUTS_OF_ROW = 60, 5  # the most cuts that one round adds, and those of them with the same row
SLACK = 0.3  # distance of a constraint from its limit, from which on it is removed, if it has no price
REMOVED_FROM = 0.8  # groups are removed if at most this share of them remains
ROUNDS, LEAST_GAIN, LAST = 60, 1e-2, 4  # rounds of cuts; they end if the last ones close less of the gap
PRICED_GAIN = 0.003  # the same where all groups are priced
MOST_BRANCHED = 40_000  # limit of the groups for branch and bound
FEWER_ROWS = (0.1, 0.3)  # shares of rows without which the program is solved for further bounds
DIVES, DEPTH = 8, 3  # number of dives, and the depth to which one can differ from the dives before it
PAIRS, FRACTIONAL, LEAST_STEP = 4, 1e-4, 1e-4  # pairs of rows tried at a node; least distance from 0 and 1; least gain
LOOKS, STATES, WORD = 6_000_000, 2**16, 64  # looks at groups and classes; states remembered; bits of a word
SHORTENED, LISTS = 256, 6  # looks at groups of a class before its list is shortened; space for lists, times the first
MORE_LOOKS, MORE_STATES = 4_000_000_000, 2**18  # the same next to branch and bound
DUAL, PRIMAL = 1, 4  # HiGHS's numbers of the two algorithms
SAFETY = 1e-6  # of a loss: groups within it of the limit are kept


def unknown(seconds: float) -> float:
    """The result of a search that isn't run."""
    return -np.inf


class LongSearch(NamedTuple):
    """A search for the cheapest partition into listed groups, in any thread. It ends if ``stop``, int64[1], is 1.

    least(stop)               its cost; if none is below the limit, the limit and one unit; minus infinity if stopped
    first(cost, looks, stop)  the first partition of at most a cost, as rows of every place; empty if so many looks at
                              groups find none
    """

    least: Callable[[np.ndarray], float]
    first: Callable[[float, int, np.ndarray], list[np.ndarray]]


class GroupProgram:
    """The linear program of set partitioning: a column for each group, and each row in exactly one group.

    rows         csc_array[r, c]: rows of each row class in a group
    at           csc_array[n, c]: the same by place (row class and pattern)
    cost         float64[c]: cost of a group
    size         float64[c]: rows of a group
    most         float64[c]: how often a partition can use the group
    line_limits  float64[l]: limits of further constraints, whose coefficients are ``lines``
    line_prices  float64[l]: dual prices of these constraints, at most 0
    shared       int64[..]: which of the constraints over several patterns the first of these are
    sets         the sets of rows of the others, with their m (``_cut``)
    proved       lower bound on the cost of every partition
    reduced      float64[c]: reduced costs; a partition that uses the group costs at least ``proved`` and this
    bounds       further lower bounds, each with its reduced costs, float64[c]
    single       int64[..]: row classes with one row
    inside       int64[..]: groups that are in the solver
    """

    def __init__(self, count: np.ndarray, at: csc_array, places: PatternFits, loss: np.ndarray) -> None:
        self.count, self.at, self.rows = count.astype(float), at, in_classes(at, places, count.size)
        self.size = np.asarray(at.sum(axis=0)).reshape(-1)
        self.cost = loss[places.pattern[at.indices[at.indptr[:-1]]]] * self.size
        often = self.count[self.rows.indices] // self.rows.data
        self.most = np.minimum.reduceat(often, self.rows.indptr[:-1]) if often.size else np.zeros(0)
        self.proved, self.reduced = -np.inf, np.zeros(self.cost.size)
        self.bounds: list[tuple[float, np.ndarray]] = []
        self._counted: csc_array | None = None
        self.groups: GroupList | None = None
        self.line_limits, self.line_prices = np.zeros(0), np.zeros(0)
        self.shared, self.sets = np.zeros(0, np.int64), list[RowSet]()
        self.single, self.inside = np.flatnonzero(count == 1), np.zeros(0, np.int64)
        self.solver, n = Solver(solver="simplex", presolve="off"), count.size
        self.solver.add_rows(self.count, self.count)
        # A column for each row class lets rows stay without a group, at a cost above that of all groups together. So
        # the program has a solution before it has groups.
        dear = float(loss.max(initial=0.0)) * float(count.sum()) + 1.0
        self.solver.add_columns(np.full(n, dear), np.full(n, np.inf), list(np.arange(n)[:, None]))

    @classmethod
    def listed(cls, groups: GroupList, prices: GroupPrices, cutoff: float) -> GroupProgram | None:
        """All groups that a partition of cost ``cutoff`` can use; None if there are too many."""
        found = groups.listed(prices, cutoff - prices.proved + SAFETY)
        if not found.all:
            return None
        out = cls.of(groups, prices, found.at)
        out.reduced = found.reduced
        out.line_prices[out.line_prices.size - len(prices.sets) :] = -prices.of_sets
        return out

    @classmethod
    def of(cls, groups: GroupList, prices: GroupPrices, at: csc_array) -> GroupProgram:
        """Some groups, csc_array[n, c], with the constraints that have prices."""
        out = cls(groups.row_classes.count, at, groups.places, groups.loss)
        out.proved = prices.proved
        out._constrain(groups, prices.lines, prices.sets)
        return out

    def add_bounds(self, cutoff: float, until: float) -> None:
        """Find further bounds, and remove groups that no partition of cost ``cutoff`` uses by one of the bounds.

        The prices of a program with fewer rows to cover prove a bound for all rows, too. With fewer rows of the classes
        that are in many groups, these classes have lower prices, and their groups larger reduced costs.
        """
        for share in FEWER_ROWS:
            groups = self.rows @ self._usable(cutoff).astype(float)
            fewer = share * groups * np.min(self.count / np.maximum(groups, 1.0))
            self._cover(self.count - fewer)
            solved = self._solved(None, until)
            if solved is None:
                break
            self.bounds.append((solved[0], np.maximum(solved[1], 0.0)))
        self._cover(self.count)
        self.remove_costly(cutoff)

    def tighten(
        self, cutoff: float, until: float, sets: Sequence[RowSet] = (), least: Callable[[float], float] = unknown
    ) -> list[RowSet]:
        """Solve the linear program, add cuts, and remove groups that no partition of cost ``cutoff`` uses.

        sets   of cuts to begin with.  Returns those of the cuts that raise the bound
        least  the result of another search after some seconds at most (``LongSearch``); it ends this one
        """
        before: list[float] = []
        self._cut(sets)
        while self.cost.size and least(0.0) == -np.inf:
            solved = self._solved(None, until)
            if solved is None:
                break
            before.append(solved[0])
            violated = self._violated(self._x())
            slow = len(before) > LAST and solved[0] - before[-1 - LAST] < LEAST_GAIN * (cutoff - solved[0])
            done = self.proved > cutoff or clock() > until or len(before) > ROUNDS or slow or not violated
            if not done:
                self._drop_slack()
            self.remove_costly(cutoff)
            if done or not self.cost.size:
                break
            self._cut(violated)
        prices = self.line_prices[self.line_prices.size - len(self.sets) :]
        return [one for one, price in zip(self.sets, prices, strict=True) if price < -TINY]

    def priced_out(
        self, groups: GroupList, cutoff: float, until: float, enough: Callable[[float], bool] = lambda _: False
    ) -> GroupPrices | None:
        """Prices that prove a bound over all groups, in the list or not; None if the time is over before.

        Groups with a negative reduced cost join the program. When there is none, the program's value is a bound, and
        cuts follow. The bounds rise until the last ones close little of the gap to ``cutoff``, or they are ``enough``.
        """
        best: GroupPrices | None = None
        bounds: list[float] = []
        if self.cost.size > FIRST_GROUPS:  # the others join if they are needed
            self._keep(self.reduced <= np.partition(self.reduced, FIRST_GROUPS)[FIRST_GROUPS])
        while not enough(best.proved if best else -np.inf) and self._solved(None, until, keep=False) is not None:
            prices = self._prices(groups)
            found = groups.listed(prices, -TINY, JOINING)
            joined = self._join(groups, found.at)
            if not joined and not found.all:  # the uses of shared constraints cost more than the list knows
                found = groups.listed(prices, -TINY)
                joined = self._join(groups, found.at)
            if joined:
                continue
            if not found.all:
                break
            if best is None or prices.proved > best.proved:
                best = prices
            bounds.append(best.proved)
            slow = len(bounds) > LAST and bounds[-1] - bounds[-1 - LAST] < PRICED_GAIN * (cutoff - bounds[-1])
            violated = self._violated(self._x())
            if best.proved > cutoff or slow or not violated:
                break
            self._drop_slack()
            self._cut(violated)
        return best

    def _prices(self, groups: GroupList) -> GroupPrices:
        """The prices of the last solution, with the bound that they prove if no group has a negative reduced cost.

        A reduced cost may be negative by a rounding error, in each group of a partition.
        """
        n, first = self.count.size, self.shared.size
        row, lines = self.solver.duals[:n], np.maximum(-self.solver.duals[n:], 0.0)
        error = TINY * float(self.count.sum() // groups.need.smallest)
        proved = float(row @ self.count - lines @ self.line_limits) - error
        of_sets, shared = lines[first:], np.zeros(groups.number_of_lines)
        shared[self.shared] = lines[:first]
        sets = tuple(one for one, price in zip(self.sets, of_sets, strict=True) if price > 0.0)
        return GroupPrices(proved, row, groups.shared(shared), np.flatnonzero(shared), sets, of_sets[of_sets > 0.0])

    def _join(self, groups: GroupList, at: csc_array) -> int:
        """Add those of these groups, csc_array[n, c], that have a negative reduced cost; their number."""
        new = GroupProgram(groups.row_classes.count, at, groups.places, groups.loss)
        new._constrain(groups, self.shared, self.sets)
        dual, first = self.solver.duals, self.cost.size
        new._keep(new._reduced(dual) < -TINY)
        self.rows, self.at = csc_array(hstack([self.rows, new.rows])), csc_array(hstack([self.at, new.at]))
        self._counted = csc_array(hstack([self.counted, new.counted]))
        self.cost, self.most = np.append(self.cost, new.cost), np.append(self.most, new.most)
        self.size = np.append(self.size, new.size)
        self.reduced = np.append(self.reduced, np.full(new.cost.size, np.inf))  # above the cost of this list
        if new.cost.size:
            self._add(np.arange(first, self.cost.size))
        return int(new.cost.size)

    def dives(self, cutoff: float, unit: float, until: float) -> list[np.ndarray]:
        """Partitions of cost at most ``cutoff``, each cheaper than the one before by at least ``unit``: rows by place.

        A dive fixes the group with the largest fractional value and solves the linear program again, until its solution
        is integral. Later dives start with another group (Sadykov, Vanderbeck, Pessoa, Tahiri, Uchoa, "Primal
        heuristics for branch and price", INFORMS Journal on Computing 2019).
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
                if value > cutoff + SAFETY or self.solver.x[:n].max() > TINY:
                    break
                part = np.flatnonzero(np.abs(x - np.rint(x)) > TINY)
                if not part.size:
                    out.append(self._placed(x))
                    cutoff = value - unit + SAFETY
                    break
                part = part[np.argsort(-x[part], kind="stable")]
                if len(other) <= depth < DEPTH and part.size > 1:
                    waiting.append((*other, *[0] * (depth - len(other)), 1))
                group = part[min(other[depth] if depth < len(other) else 0, part.size - 1)]
                taken.append(int(n + group))
                self.solver.changeColBounds(taken[-1], float(np.floor(x[group]) + 1.0), np.inf)
                depth += 1
            for column in taken:
                self.solver.changeColBounds(column, 0.0, np.inf)
        return out

    def covered(self, cutoff: float, unit: float) -> tuple[list[np.ndarray], float]:
        """What ``branched`` returns, from a search over all groups without linear programs, which may end early."""
        used, ended = self._cover_search(self._packed(), np.ones(self.cost.size, bool), self._known, cutoff, unit)()
        found = [self._rows_of(used)] if used.size else []
        proved = cutoff + unit if not found else float(self.cost[used].sum())
        return found, proved if ended else min(self.proved, proved)

    def long_search(self, cutoff: float, unit: float) -> LongSearch:
        """The search of ``covered`` over the groups that are listed now, with many more looks."""
        now, packed = copy(self), self._packed()
        given = packed, np.ones(self.cost.size, bool), self._known
        search = now._cover_search(*given, cutoff, unit, (MORE_LOOKS, MORE_STATES))

        def least(stop: np.ndarray) -> float:
            used, ended = search(stop)
            if not ended:
                return -np.inf
            return float(now.cost[used].sum()) if used.size else cutoff + unit

        def first(cost: float, looks: int, stop: np.ndarray) -> list[np.ndarray]:
            used, _ = now._cover_search(*given, cost, np.inf, (looks, MORE_STATES))(stop)
            return [now._rows_of(used)] if used.size else []

        return LongSearch(least, first)

    def branched(
        self, cutoff: float, unit: float, until: float, least_of: Callable[[float], float] = unknown
    ) -> tuple[list[np.ndarray], float]:
        """Partitions like those of ``dives``, and a lower bound on the cost of every partition.

        The bound is at most ``cutoff + unit``.

        least_of  the result of another search after some seconds at most (``LongSearch``); it ends this one

        Branch and bound by Ryan and Foster ("An integer programming approach to scheduling", 1981): two rows that a
        solution groups together in part are together in one branch and apart in the other. The branch with the least
        bound is solved first.
        """
        found: list[np.ndarray] = []
        more, nothing = cutoff + unit, 0
        if self.cost.size > MOST_BRANCHED:
            return found, max(least_of(until - clock()), min(self.proved, more))
        waiting: list[tuple[float, int, np.ndarray]] = [(self.proved, 0, np.ones(self.cost.size, bool))]
        has, packed = self.rows.toarray() > 0, self._packed()
        while waiting:
            least, _, allowed = heapq.heappop(waiting)
            if least > cutoff + SAFETY:
                break
            if (known := least_of(0.0)) > -np.inf:
                return found, known
            solved = self._solved(allowed, until, cutoff)
            if solved is None:
                return found, min(least, more)
            bound = max(least, solved[0])
            if bound > cutoff + SAFETY:
                continue
            allowed &= solved[1] <= cutoff - solved[0] + SAFETY
            x = self._x()
            used = np.flatnonzero(x > TINY)
            if (np.abs(x[used] - np.rint(x[used])) <= TINY).all() and self.solver.x[: self.count.size].max() <= TINY:
                found.append(self._placed(x))
                more = float(self.cost[self.inside] @ np.rint(x))
                cutoff = more - unit
                continue
            used, ended = self._cover_search(packed, allowed, [solved, *self._known], cutoff, unit)()
            if used.size:
                found.append(self._rows_of(used))
                more = float(self.cost[used].sum())
                cutoff = more - unit
            if ended:
                continue
            halves = self._halves(x, has, allowed, cutoff, until)
            if halves is None:
                return found, min(least, more)
            for half in halves:
                nothing += 1
                heapq.heappush(waiting, (bound, nothing, half))
        return found, more

    def _packed(self) -> tuple[np.ndarray, CoverGroups]:
        """The rows to cover as packed words, uint64[w], with the groups, whose reduced costs and lists are empty."""
        from shoal.kernels.tables.covers import CoverGroups, packed_rows

        bits = np.ceil(np.log2(self.count + 1.0)).astype(np.uint64) + np.uint64(1)  # one of them is the guard
        word, shift = np.zeros(bits.size, np.int64), np.zeros(bits.size, np.uint64)
        for i in range(1, bits.size):
            word[i], shift[i] = word[i - 1], shift[i - 1] + bits[i - 1]
            if shift[i] + bits[i] > WORD:
                word[i], shift[i] = word[i] + 1, 0
        guard = np.uint64(1) << (shift + bits - np.uint64(1))
        guards, whole = np.zeros(word[-1] + 1, np.uint64), np.zeros(word[-1] + 1, np.uint64)
        np.bitwise_or.at(guards, word, guard)
        np.add.at(whole, word, self.count.astype(np.uint64) << shift)
        rows = np.empty((self.cost.size, whole.size), np.uint64)
        packed_rows(self.rows.indptr, self.rows.indices, self.rows.data, word, shift, rows)
        none = np.zeros((0, 1))
        return whole, CoverGroups(rows, guards, word, guard - (np.uint64(1) << shift), self.cost, none, none, none)

    def _cover_search(
        self,
        packed: tuple[np.ndarray, CoverGroups],
        allowed: np.ndarray,
        bounds: Sequence[tuple[float, np.ndarray]],
        cutoff: float,
        unit: float,
        limit: tuple[int, int] | None = None,
    ) -> Callable[..., tuple[np.ndarray, bool]]:
        """A search for the cheapest partition into allowed groups that costs at most ``cutoff``, in any thread.

        It returns the groups, int64[..], empty if no partition is found, and whether it has ended. If so, no other
        partition is cheaper.

        bounds  lower bounds, each with its reduced costs. A partition costs at least each bound and what the reduced
                costs of its groups add to it
        limit   looks at groups and classes, and states remembered
        """
        from shoal.kernels.tables.covers import CoverLimits, CoverSpace, cheapest_cover

        (whole, groups), (looks, states), n = packed, limit or (LOOKS, STATES), self.count.size
        reduced = np.maximum(np.stack([own for _, own in bounds], axis=1), 0.0)
        room = cutoff - np.array([bound for bound, _ in bounds]) + SAFETY
        few = np.flatnonzero(allowed & (reduced <= room).all(axis=1))
        few = few[np.argsort(reduced[few, 0], kind="stable")]
        of_class = csr_array(self.rows[:, few])
        groups = groups._replace(reduced=reduced, start=of_class.indptr, group=few[of_class.indices])
        limits = CoverLimits(cutoff + SAFETY, 0.5 * unit, looks, SHORTENED)
        left = np.zeros((int(self.count.sum()) + 1, whole.size), np.uint64)
        left[0] = whole

        def search(stop: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
            chosen, depths = np.full(len(left), -1), len(left)
            places = np.zeros((2, depths, n), np.int64)
            lists = np.empty(LISTS * groups.group.size, np.int32)
            seen, least = np.zeros((states, whole.size), np.uint64), np.full(states, np.inf)
            space = CoverSpace(left, np.zeros((depths, room.size)), places[0], places[1], lists, seen, least)
            told = np.zeros(1, np.int64) if stop is None else stop
            ended = cheapest_cover(groups, limits, room.copy(), space, chosen, told)
            return chosen[: int(np.argmin(chosen))], bool(ended)

        return search

    def _halves(
        self, x: np.ndarray, has: np.ndarray, allowed: np.ndarray, cutoff: float, until: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The groups of two branches, bool[c] each; None if no two rows are together in part, or the time is over.

        Of the pairs whose sum is nearest to a half, the pair whose branches raise the bound most, over the groups in
        the solver. One row of the pair is the only one of its class. The other can have equal rows, and some of these
        can be in other groups.
        """
        used, alone = np.flatnonzero(x > TINY), self.count == 1
        here = has[:, self.inside[used]] * 1.0
        together = (here[self.single] * x[used]) @ here.T
        partly = np.minimum(together, 1.0 - together) > FRACTIONAL
        partly &= (np.arange(alone.size) > self.single[:, None]) | ~alone
        one, other = np.nonzero(partly)
        near = np.argsort(np.abs(together[one, other] - 0.5), kind="stable")[:PAIRS]
        best, out = -np.inf, None
        before, basis = float(self.solver.getInfo().objective_function_value), self.solver.getBasis()
        for a, b in zip(self.single[one[near]], other[near], strict=True):
            joined = has[b] | ~has[a]  # the row of a is with one of b
            if alone[b]:
                joined &= has[a] | ~has[b]
            halves = allowed & joined, allowed & ~(has[a] & has[b])
            gains: list[float] = []
            if halves[0].sum() == allowed.sum():  # nothing to branch on: some of these rows have no group
                continue
            for half in halves:
                self._allow(half)
                self.solver.setBasis(basis)
                self.solver.limit(max(until - clock(), 0.0))
                if not self.solver.solved():
                    return None
                value = float(self.solver.getInfo().objective_function_value)
                gains.append(max(min(value, cutoff) - before, LEAST_STEP))
            if gains[0] * gains[1] > best:
                best, out = gains[0] * gains[1], halves
        return out

    def _solved(
        self, allowed: np.ndarray | None, until: float, cutoff: float = np.inf, keep: bool = True
    ) -> tuple[float, np.ndarray] | None:
        """The bound of the linear program and the reduced costs, float64[c]; None if the time is over.

        Groups outside the solver are priced here, and those with a negative reduced cost are added. The loop ends when
        no group is added, or the bound is above ``cutoff``.

        allowed  bool[c]: groups that can be used; None for all
        keep     whether the bound holds for all partitions; false while some groups are fixed
        """
        n = self.count.size
        if not self.inside.size:
            self._add(np.argsort(self.reduced, kind="stable")[:FIRST_GROUPS])
        if allowed is not None:
            self._allow(allowed)
        while True:
            self.solver.limit(max(until - clock(), 0.0))
            if not self.solver.solved():
                return None
            dual = self.solver.duals
            price, line_prices = dual[:n], np.minimum(dual[n:], 0.0)
            reduced = self._reduced(dual)
            below = np.minimum(reduced, 0.0) * self.most
            proved = float(
                price @ self.count
                + line_prices @ self.line_limits
                + (below if allowed is None else below[allowed]).sum()
            )
            if allowed is None and keep and proved > self.proved:
                self.proved, self.reduced, self.line_prices = proved, np.maximum(reduced, 0.0), line_prices
            if proved > cutoff + SAFETY:
                return proved, reduced
            out = reduced < -TINY
            out[self.inside] = False
            if allowed is not None:
                out &= allowed
            new = np.flatnonzero(out)
            if not new.size:
                return proved, reduced
            self._add(new[np.argsort(reduced[new], kind="stable")][:MORE_GROUPS])

    def _x(self) -> np.ndarray:
        """Values of the groups in the solver, float64[..]."""
        return self.solver.x[self.count.size :]

    def _placed(self, x: np.ndarray) -> np.ndarray:
        """Rows of each place, int64[n], of an integral solution."""
        return np.rint(self.at[:, self.inside] @ np.rint(x)).astype(np.int64)

    def _rows_of(self, groups: np.ndarray) -> np.ndarray:
        """Rows of each place, int64[n], in these groups."""
        return np.rint(self.at @ np.bincount(groups, minlength=self.cost.size)).astype(np.int64)

    def _allow(self, allowed: np.ndarray) -> None:
        """Allow only some groups, bool[c], in the solver."""
        here, zero = np.arange(self.inside.size) + self.count.size, np.zeros(self.inside.size)
        self.solver.setOptionValue("simplex_strategy", DUAL)
        self.solver.changeColsBounds(
            here.size, here.astype(np.int32), zero, np.where(allowed[self.inside], np.inf, 0.0)
        )

    @property
    def _known(self) -> list[tuple[float, np.ndarray]]:
        """All bounds, each with its reduced costs; the highest one first."""
        return [(self.proved, self.reduced), *self.bounds]

    def _usable(self, cutoff: float) -> np.ndarray:
        """The groups that a partition of cost ``cutoff`` can use by all bounds, bool[c]."""
        kept = np.ones(self.cost.size, bool)
        for bound, reduced in self._known:
            kept &= reduced <= cutoff - bound + SAFETY
        return kept

    def remove_costly(self, cutoff: float) -> None:
        """Remove the groups that no partition of cost ``cutoff`` uses, if they are many."""
        kept = self._usable(cutoff)
        if kept.sum() >= REMOVED_FROM * kept.size:
            return
        self._keep(kept)

    def _keep(self, kept: np.ndarray) -> None:
        """Keep some groups, bool[c]."""
        gone = np.flatnonzero(~kept[self.inside])
        self.solver.deleteCols(gone.size, (gone + self.count.size).astype(np.int32))
        self.inside = (np.cumsum(kept) - 1)[self.inside[kept[self.inside]]]
        self.rows, self.at = csc_array(self.rows[:, kept]), csc_array(self.at[:, kept])
        self._counted = None if self._counted is None else csc_array(self._counted[:, kept])
        self.cost, self.most, self.size = self.cost[kept], self.most[kept], self.size[kept]
        self.reduced = self.reduced[kept]
        self.bounds = [(bound, reduced[kept]) for bound, reduced in self.bounds]

    def _cover(self, count: np.ndarray) -> None:
        """Let the solver cover this number of rows of each class, float64[r]."""
        self.solver.setOptionValue("simplex_strategy", DUAL)
        for i, rows in enumerate(count.tolist()):
            self.solver.changeRowBounds(i, rows, rows)

    def _add(self, new: np.ndarray) -> None:
        """Add groups to the solver."""
        both = csc_array(vstack([self.rows[:, new], self.lines(new)]))
        none, any_ = np.zeros(new.size), np.full(new.size, np.inf)
        self.solver.addCols(new.size, self.cost[new], none, any_, both.nnz, both.indptr[:-1], both.indices, both.data)
        self.inside = np.append(self.inside, new)
        self.solver.setOptionValue("simplex_strategy", PRIMAL)  # the solution remains one

    def _violated(self, x: np.ndarray) -> list[RowSet]:
        """Sets of row classes whose constraint (``_cut``) the solution violates."""
        from shoal.kernels.tables.covers import CrowdedSet, GroupShares, crowded_set

        used = np.flatnonzero(x > TINY)
        here = csr_array(self.rows[:, self.inside[used]])
        here.sort_indices()
        count = self.count.astype(np.int64)
        shares = GroupShares(here.indptr, here.indices, here.data.astype(np.int64), x[used], count)
        held, of_row = np.empty(used.size, np.int64), np.empty(used.size)
        random, found = np.random.default_rng(len(self.sets)), {}
        for m, often in product(CROWDED, TIMES):
            for first in random.permutation(count.size)[: STARTS // (m * m * often)]:
                for most in sorted({1, m - 1}):
                    times = np.empty(count.size, np.int64)
                    crowding = crowded_set(shares, CrowdedSet(m, often * m + m - 1, most), first, held, of_row, times)
                    over = crowding - times @ count // m
                    if over > VIOLATED:
                        found[m, times.tobytes()] = (-over, m, times)
        cuts = np.zeros(count.size, np.int64)
        kept: list[RowSet] = []
        for _, m, times in sorted(found.values(), key=lambda one: one[0]):
            if len(kept) < MOST_CUTS and cuts[times > 0].max() < CUTS_OF_ROW:
                cuts += times > 0
                kept.append(RowSet(m, times))
        return kept

    def _cut(self, sets: Sequence[RowSet]) -> None:
        """Add the constraint of each set that has none: how many groups can have m of its rows."""
        known = {(one.m, one.times.tobytes()) for one in self.sets}
        new = [one for one in sets if (one.m, one.times.tobytes()) not in known]
        if new:
            lines = counts_of(self.rows, new)
            self._counted = below(self.counted, lines)
            self.sets += new
            self._limit(lines[:, self.inside], np.array([self.count @ one.times // one.m for one in new]))

    def _drop_slack(self) -> None:
        """Remove constraints without a price in the solution: programs with few lines are faster.

        Those over several patterns stay while they are nearly tight, because they are not found again.
        """
        n, first = self.count.size, self.shared.size
        kept = self.solver.duals[n:] < -TINY
        kept[:first] |= (self.line_limits - self.lines(self.inside) @ self._x())[:first] < SLACK
        gone = np.flatnonzero(~kept)
        self.solver.deleteRows(gone.size, (gone + n).astype(np.int32))
        self.shared = self.shared[kept[:first]]
        self.sets = [one for one, stays in zip(self.sets, kept[first:], strict=True) if stays]
        self._counted = csc_array(self.counted[kept[first:]])
        self.line_limits, self.line_prices = self.line_limits[kept], self.line_prices[kept]

    @property
    def counted(self) -> csc_array:
        """How often each group counts for each set, csc_array[s, c]. This is computed when a program is solved."""
        if self._counted is None:
            self._counted = counts_of(self.rows, self.sets)
        return self._counted

    def lines(self, some: np.ndarray) -> csc_array:
        """Coefficients of some groups in the further constraints, csc_array[l, ..]."""
        counted = csc_array(self.counted[:, some])
        if self.groups is None or not self.shared.size:
            return counted
        return below(self.groups.shared_lines(csc_array(self.at[:, some]), self.shared), counted)

    def _reduced(self, dual: np.ndarray) -> np.ndarray:
        """The reduced costs of the groups, float64[c], at prices of the rows and of the further constraints."""
        n, first = self.count.size, self.shared.size
        lines = np.minimum(dual[n:], 0.0)
        out: np.ndarray = self.cost - self.rows.T @ dual[:n] - self.counted.T @ lines[first:]
        if self.groups is not None and first:
            out += self.groups.shared_costs(self.at, self.shared, -lines[:first])
        return out

    def _constrain(self, groups: GroupList, shared: np.ndarray, sets: Sequence[RowSet]) -> None:
        """Add the first constraints, before groups are in the solver: those over several patterns, and of sets."""
        self.groups, self.shared, self.sets = groups, shared, list(sets)
        most = np.append(groups.line_limits(shared), [self.count @ one.times // one.m for one in sets])
        self._limit(csc_array((most.size, 0)), most)

    def _limit(self, lines: csc_array, most: np.ndarray) -> None:
        """Add constraints to the solver, with the coefficients of the groups in it, and right sides float64[l]."""
        self.line_limits = np.append(self.line_limits, most)
        self.line_prices = np.append(self.line_prices, np.zeros(most.size))
        here, at = csr_array(lines), self.count.size
        low = np.full(most.size, -np.inf)
        self.solver.setOptionValue("simplex_strategy", DUAL)  # the prices remain some
        self.solver.addRows(
            most.size, low, most, here.nnz, here.indptr[:-1], (here.indices + at).astype(np.int32), here.data
        )
