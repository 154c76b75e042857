"""The set partitioning program over all groups that a partition cheaper than the best known one can contain.

The dual prices of the rows give each group a reduced cost. If the reduced cost is above the gap between the bound and
the best known cost, no cheaper partition contains the group. If the gap is small, few groups remain, and all of them
are listed (Baldacci, Christofides, Mingozzi, "An exact algorithm for the vehicle routing problem based on the set
partitioning formulation with additional cuts", Mathematical Programming 2008, lists routes in this way).

Listed groups allow cuts over three rows with the largest possible coefficients: 1 for each group that has at least two
of the three rows. After each solution of the linear program the bound is higher, and groups with too large reduced
costs are removed.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

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

if TYPE_CHECKING:
    from shoal.kernels.tables.subsets import CoverGroups

MOST_GROUPS, MOST_ROWS = 400_000, 5_000_000  # limits of the list: groups, and rows in all of them together
MOST_CLASSES = 1000  # limit of the row classes, because cuts are searched among all triples
FIRST_GROUPS, MORE_GROUPS = 1000, 400  # groups in the first linear program, and the most that one round adds
TINY = 1e-7  # reduced costs and values within it of 0 count as 0
CROWDED, TIMES = range(2, 5), range(1, 5)  # sets of rows in which groups have m rows: m, and how often it is in the set
STARTS = 400  # searches, over m, m, and the number of times
VIOLATED = 0.02  # how much a solution exceeds the right side of an added cut at least
MOST_CUTS, CUTS_OF_ROW = 60, 5  # the most cuts that one round adds, and those of them with the same row
REMOVED_FROM = 0.8  # groups are removed if at most this share of them remains
ROUNDS, LEAST_GAIN, LAST = 60, 1e-3, 4  # rounds of cuts; they end if the last ones close less of the gap
MOST_BRANCHED = 40_000  # limit of the groups for covers, and for branch and bound
DIVES, DEPTH = 8, 3  # number of dives, and the depth to which one can differ from the dives before it
PAIRS, FRACTIONAL, LEAST_STEP = 4, 1e-4, 1e-4  # pairs of rows tried at a node; least distance from 0 and 1; least gain
LOOKS, STATES, WORD = 20_000_000, 2**16, 64  # looks at groups and classes; states remembered; bits of a word
SAFETY = 1e-6  # of a loss: groups within it of the limit are kept


def largest(need: Requirement, rows: int) -> int:
    """A number of rows that no group of some optimal partition exceeds, for a single condition.

    Larger groups can be split without loss (``part_sizes``).
    """
    ((column, _, sorts),) = conditions_of(need)
    if column < 0:
        return min(2 * need.k - 1, rows)
    l = need.frequency[need.sensitive_columns[column]]
    return min(2 * l * -(-need.k // l) - 1, rows) if sorts[0].values == 1 else rows


def proved_by_prices(
    row_classes: RowClasses,
    places: PatternFits,
    need: Requirement,
    loss: np.ndarray,
    prices: tuple[np.ndarray, SharedPrices],
) -> tuple[float, np.ndarray]:
    """A lower bound on the cost of every partition, and what a row of each place adds, float64[n]; for one condition.

    A pattern can have several groups, each with a negative reduced cost.
    """
    ((column, _, sorts),) = conditions_of(need)
    (price, shared), rows = prices, row_classes.count[places.row_class]
    value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(rows.size, np.int64)
    reduced = loss[places.pattern] - price[places.row_class] + shared.rows
    size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
    least = least_groups(places, rows, value, reduced, sorts, shared.uses).cost
    below = float((size // need.smallest) @ np.minimum(least, 0.0))
    return shared.proved + float(price @ row_classes.count) + below, reduced


class GroupProgram:
    """The linear program of set partitioning: a column for each group, and each row in exactly one group.

    rows         csc_array[r, c]: rows of each row class in a group
    at           csc_array[n, c]: the same by place (row class and pattern)
    cost         float64[c]: cost of a group
    size         float64[c]: rows of a group
    most         float64[c]: how often a partition can use the group
    lines        csr_array[l, c]: coefficients of further constraints, which are at most ``line_limits``, float64[l]
    line_prices  float64[l]: dual prices of these constraints, at most 0
    sets         the sets of rows of the last of these constraints, with their m (``_cut``)
    proved       lower bound on the cost of every partition
    reduced      float64[c]: reduced costs; a partition that uses the group costs at least ``proved`` and this
    single       int64[..]: row classes with one row
    inside       int64[..]: groups that are in the solver
    """

    def __init__(self, count: np.ndarray, at: csc_array, places: PatternFits, loss: np.ndarray) -> None:
        kinds = csr_array(
            (np.ones(places.row_class.size), (places.row_class, np.arange(places.row_class.size))),
            shape=(count.size, places.row_class.size),
        )
        self.count, self.at, self.rows = count.astype(float), at, csc_array(kinds @ at)
        self.size = np.asarray(at.sum(axis=0)).reshape(-1)
        self.cost = loss[places.pattern[at.indices[at.indptr[:-1]]]] * self.size
        often = self.count[self.rows.indices] // self.rows.data
        self.most = np.minimum.reduceat(often, self.rows.indptr[:-1]) if often.size else np.zeros(0)
        self.proved, self.reduced = -np.inf, np.zeros(self.cost.size)
        self.lines, self.line_limits, self.line_prices = csr_array((0, self.cost.size)), np.zeros(0), np.zeros(0)
        self.sets: list[tuple[int, np.ndarray]] = []
        self.single, self.inside = np.flatnonzero(count == 1), np.zeros(0, np.int64)
        self.solver, n = Solver(solver="simplex", presolve="off"), count.size
        self.solver.add_rows(self.count, self.count)
        # A column for each row class lets rows stay without a group, at a cost above that of all groups together. So
        # the program has a solution before it has groups.
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
    ) -> GroupProgram | None:
        """All groups that a cheaper partition can use; None for several conditions, or if there are too many groups.

        losses  float64[q]: loss of a row in each pattern; and the largest cost of a partition that is searched
        prices  float64[r]: dual prices of the row classes, of any sign; and those of constraints over several patterns
        model   the program over patterns, whose constraints over several patterns hold for the groups, too
        """
        from shoal.kernels.tables.subsets import GroupsAsked, PatternRows, few_groups

        if len(conditions_of(need)) > 1 or need.rules or row_classes.count.size > MOST_CLASSES:
            return None
        ((column, _, sorts),) = conditions_of(need)
        (loss, cutoff), shared, rows = losses, prices[1], row_classes.count[places.row_class]
        value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(rows.size, np.int64)
        proved, reduced = proved_by_prices(row_classes, places, need, loss, prices)
        slack = cutoff - proved + SAFETY
        rank = np.empty(places.patterns, np.int64)
        rank[np.argsort(loss, kind="stable")] = np.arange(places.patterns)
        order = np.lexsort((reduced, rank[places.pattern]))
        start = np.searchsorted(rank[places.pattern][order], np.arange(places.patterns + 1))
        within = np.zeros((int(row_classes.type.max()) + 1, -(-places.patterns // 64)), np.uint64)
        bit = rank[np.repeat(np.arange(places.patterns), np.diff(found.start))]
        np.bitwise_or.at(within, (found.member, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
        several = need.frequency[need.sensitive_columns[column]] if column >= 0 and sorts[0].values == 1 else 1
        most = largest(need, int(row_classes.count.sum()))
        asked = GroupsAsked(need.smallest, most, sorts[0].values, several, slack)
        begin, place = np.zeros(MOST_GROUPS + 1, np.int64), np.empty(MOST_ROWS, np.int32)
        uses = shared.uses.min(axis=0)[np.argsort(rank)]
        kind = row_classes.type[places.row_class]
        many = few_groups(PatternRows(start, order, rows, value, reduced), asked, uses, kind, within, begin, place)
        if many < 0:
            return None
        place = place[: begin[many]]
        at = csc_array((np.ones(place.size), place, begin[: many + 1].astype(np.int32)), shape=(rows.size, many))
        at.sum_duplicates()
        out = cls(row_classes.count, at, places, loss)
        out.proved = proved
        out.reduced = at.T @ reduced + shared.uses.min(axis=0)[places.pattern[place[begin[:many]]]]
        several_of = np.flatnonzero(model.owner >= model.patterns)
        if several_of.size and many:
            lines, pattern = csc_array(model.lines[several_of]), places.pattern[at.indices[at.indptr[:-1]]]
            use = model.uses.column.reshape(-1, places.patterns)
            sort = out.size.astype(np.int64) // several - part_sizes(need.k, several)[0] if several > 1 else 0
            of_groups = lines[:, : model.n] @ at + lines[:, use[sort, pattern]]
            out.constrain(csr_array(-of_groups), -model.low[several_of])
        return out

    def tighten(
        self, cutoff: float, until: float, sets: Sequence[tuple[int, np.ndarray]] = ()
    ) -> list[tuple[int, np.ndarray]]:
        """Solve the linear program, add cuts, and remove groups that no partition of cost ``cutoff`` uses.

        sets  of cuts to begin with.  Returns those of the cuts that raise the bound
        """
        before: list[float] = []
        self._cut(sets)
        while self.cost.size:
            solved = self._solved(None, until)
            if solved is None:
                break
            before.append(solved[0])
            violated = self._violated(self._x())
            self.remove_costly(cutoff)
            slow = len(before) > LAST and solved[0] - before[-1 - LAST] < LEAST_GAIN * (cutoff - solved[0])
            done = self.proved > cutoff or clock() > until or len(before) > ROUNDS or slow
            if done or not violated or not self.cost.size:
                break
            self._cut(violated)
        prices = self.line_prices[self.line_prices.size - len(self.sets) :]
        return [one for one, price in zip(self.sets, prices, strict=True) if price < -TINY]

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
        if self.cost.size > MOST_BRANCHED:
            return [], min(self.proved, cutoff + unit)
        used, ended = self._covered(
            self._packed(), np.ones(self.cost.size, bool), (self.proved, self.reduced), cutoff, unit
        )
        found = [self._rows_of(used)] if used.size else []
        proved = cutoff + unit if not found else float(self.cost[used].sum())
        return found, proved if ended else min(self.proved, proved)

    def branched(self, cutoff: float, unit: float, until: float) -> tuple[list[np.ndarray], float]:
        """Partitions like those of ``dives``, and a lower bound on the cost of every partition.

        The bound is at most ``cutoff + unit``.

        Branch and bound by Ryan and Foster ("An integer programming approach to scheduling", 1981): two rows that a
        solution groups together in part are together in one branch and apart in the other. The branch with the least
        bound is solved first.
        """
        found: list[np.ndarray] = []
        more, nothing = cutoff + unit, 0
        if self.cost.size > MOST_BRANCHED:
            return found, min(self.proved, more)
        waiting: list[tuple[float, int, np.ndarray]] = [(self.proved, 0, np.ones(self.cost.size, bool))]
        has, packed = self.rows.toarray() > 0, self._packed()
        while waiting:
            least, _, allowed = heapq.heappop(waiting)
            if least > cutoff + SAFETY:
                break
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
            used, ended = self._covered(packed, allowed, solved, cutoff, unit)
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
        from shoal.kernels.tables.subsets import CoverGroups

        bits = np.ceil(np.log2(self.count + 1.0)).astype(np.uint64) + np.uint64(1)  # one of them is the guard
        word, shift = np.zeros(bits.size, np.int64), np.zeros(bits.size, np.uint64)
        for i in range(1, bits.size):
            word[i], shift[i] = word[i - 1], shift[i - 1] + bits[i - 1]
            if shift[i] + bits[i] > WORD:
                word[i], shift[i] = word[i] + 1, 0
        guard = np.uint64(1) << (shift + bits - np.uint64(1))

        def packed(of: np.ndarray, row_class: np.ndarray, rows: np.ndarray, lines: int) -> np.ndarray:
            out = np.zeros((lines, word[-1] + 1), np.uint64)
            np.add.at(out, (of, word[row_class]), rows.astype(np.uint64) << shift[row_class])
            return out

        one = np.zeros(bits.size, np.int64)
        every, group = np.arange(bits.size), np.repeat(np.arange(self.cost.size), np.diff(self.rows.indptr))
        guards = np.zeros(word[-1] + 1, np.uint64)
        np.bitwise_or.at(guards, word, guard)
        rows = packed(group, self.rows.indices, self.rows.data, self.cost.size)
        none = np.zeros(0)
        groups = CoverGroups(rows, guards, word, guard - (np.uint64(1) << shift), self.cost, none, none, none)
        return packed(one, every, self.count, 1)[0], groups

    def _covered(
        self,
        packed: tuple[np.ndarray, CoverGroups],
        allowed: np.ndarray,
        solved: tuple[float, np.ndarray],
        cutoff: float,
        unit: float,
    ) -> tuple[np.ndarray, bool]:
        """The cheapest partition into allowed groups that costs at most ``cutoff``, and whether its search has ended.

        The groups, int64[..], are empty if no partition is found. If the search has ended, no other is cheaper.

        solved  the bound of the linear program, and the reduced costs. A partition costs the bound at least, and what
                the reduced costs of its groups add to it
        """
        from shoal.kernels.tables.subsets import CoverLimits, cheapest_cover

        (whole, groups), (bound, reduced) = packed, solved
        few = np.flatnonzero(allowed)
        few = few[np.argsort(reduced[few], kind="stable")]
        of_class = csr_array(self.rows[:, few])
        groups = groups._replace(reduced=np.maximum(reduced, 0.0), start=of_class.indptr, group=few[of_class.indices])
        limits = CoverLimits(cutoff + SAFETY, cutoff - bound + SAFETY, 0.5 * unit, LOOKS)
        left = np.zeros((int(self.count.sum()) + 1, whole.size), np.uint64)
        left[0] = whole
        chosen = np.full(len(left), -1)
        seen, least = np.zeros((STATES, whole.size), np.uint64), np.full(STATES, np.inf)
        ended = cheapest_cover(groups, limits, left, seen, least, chosen)
        return chosen[: int(np.argmin(chosen))], bool(ended)

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
            reduced = self.cost - self.rows.T @ price - self.lines.T @ line_prices
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
        self.solver.changeColsBounds(
            here.size, here.astype(np.int32), zero, np.where(allowed[self.inside], np.inf, 0.0)
        )

    def remove_costly(self, cutoff: float) -> None:
        """Remove the groups that no partition of cost ``cutoff`` uses, if they are many."""
        kept = self.reduced <= cutoff - self.proved + SAFETY
        if kept.sum() >= REMOVED_FROM * kept.size:
            return
        gone = np.flatnonzero(~kept[self.inside])
        self.solver.deleteCols(gone.size, (gone + self.count.size).astype(np.int32))
        self.inside = (np.cumsum(kept) - 1)[self.inside[kept[self.inside]]]
        self.rows, self.at = csc_array(self.rows[:, kept]), csc_array(self.at[:, kept])
        self.lines = csr_array(csc_array(self.lines)[:, kept])
        self.cost, self.most, self.size = self.cost[kept], self.most[kept], self.size[kept]
        self.reduced = self.reduced[kept]

    def _add(self, new: np.ndarray) -> None:
        """Add groups to the solver."""
        both = csc_array(vstack([self.rows[:, new], csc_array(self.lines)[:, new]]))
        none, any_ = np.zeros(new.size), np.full(new.size, np.inf)
        self.solver.addCols(new.size, self.cost[new], none, any_, both.nnz, both.indptr[:-1], both.indices, both.data)
        self.inside = np.append(self.inside, new)

    def _violated(self, x: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Sets of row classes, bool[n], with the m for which the solution violates the constraint of ``_cut``."""
        from shoal.kernels.tables.subsets import GroupShares, crowded_set

        used = np.flatnonzero(x > TINY)
        here = csr_array(self.rows[:, self.inside[used]])
        here.sort_indices()
        count = self.count.astype(np.int64)
        shares = GroupShares(here.indptr, here.indices, here.data.astype(np.int64), x[used], count)
        held, random, found = np.empty(used.size, np.int64), np.random.default_rng(len(self.sets)), {}
        for m, often in product(CROWDED, TIMES):
            for first in random.permutation(count.size)[: STARTS // (m * m * often)]:
                inside = np.empty(count.size, bool)
                crowding = crowded_set(shares, m, often * m + m - 1, first, held, inside)
                over = crowding - count[inside].sum() // m
                if over > VIOLATED:
                    found[m, inside.tobytes()] = (-over, m, inside)
        times = np.zeros(count.size, np.int64)
        kept: list[tuple[int, np.ndarray]] = []
        for _, m, inside in sorted(found.values(), key=lambda one: one[0]):
            if len(kept) < MOST_CUTS and times[inside].max() < CUTS_OF_ROW:
                times += inside
                kept.append((m, inside))
        return kept

    def _cut(self, sets: Sequence[tuple[int, np.ndarray]]) -> None:
        """Add the constraint of each set: how many groups can have m of its rows; a group with 2m counts twice."""
        if not sets:
            return
        self.sets += sets
        held = self.rows.T @ np.stack([inside for _, inside in sets], axis=1).astype(float)
        m = np.array([m for m, _ in sets], float)
        most = self.count @ np.stack([inside for _, inside in sets], axis=1)
        self.constrain(csr_array(np.floor(held / m).T), np.floor(most / m))

    def constrain(self, lines: csr_array, most: np.ndarray) -> None:
        """Add constraints that every partition meets: ``lines``, csr_array[l, c], with right sides float64[l]."""
        self.lines = csr_array(vstack([self.lines, lines]))
        self.line_limits = np.append(self.line_limits, most)
        self.line_prices = np.append(self.line_prices, np.zeros(most.size))
        here, at = csr_array(csc_array(lines)[:, self.inside]), self.count.size
        low = np.full(most.size, -np.inf)
        self.solver.addRows(
            most.size, low, most, here.nnz, here.indptr[:-1], (here.indices + at).astype(np.int32), here.data
        )
