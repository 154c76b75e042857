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

LISTED, PLACED = 400_000, 5_000_000  # groups that are listed at most, and rows in them
KINDS = 1000  # row classes at most: cuts look at all three of them
BEGUN, ADDED = 1000, 400  # groups that the linear program begins with, and that it takes in at once
SEEN = 1e-7  # below 0, a reduced cost that counts
MET = 1.02  # what three rows must sum to, of the 1 allowed
LINES, OFTEN = 60, 5  # cuts added at once, and of those with one row
FEWER = 0.8  # share of the groups of which the others leave the program
CUTS, LITTLE, TURNS = 60, 5e-3, 4  # turns at most, or until so many gain less than this share of what is missing
COLUMNS = 40_000  # groups over which a search branches at most
DIVES, DEEP = 8, 3  # dives, and the depth up to which one differs from those before
TRIED, PARTLY, LEAST = 8, 1e-4, 1e-4  # pairs of rows whose branches are tried; how far from whole they are; least gain
CAREFUL = 1e-6  # of the losses, by which listing and fixing err to the safe side


def largest(need: Requirement, rows: int) -> int:
    """Rows that no group of some optimum exceeds, where one thing is asked: larger ones split (``part_sizes``)."""
    ((column, _, sorts),) = conditions_of(need)
    if column < 0:
        return min(2 * need.k - 1, rows)
    l = need.frequency[need.sensitive_columns[column]]
    return min(2 * l * -(-need.k // l) - 1, rows) if sorts[0].values == 1 else rows


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
        self.cost = loss[places.pattern[at.indices[at.indptr[:-1]]]] * self.size
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
    ) -> GroupProgram | None:
        """All groups that a cheaper partition may use; None where more than one thing is asked, or they are too many.

        losses  float64[q] of a row of each pattern, and the largest cost of a partition that is looked for
        prices  of the row classes float64[r], of any sign, and of lines over several patterns
        model   with lines over several patterns, which the groups keep to as well
        part    of what lies between the bound and that cost: with less than all, only groups that are nearer
        """
        from shoal.kernels.tables.subsets import GroupsAsked, PatternRows, few_groups

        if len(conditions_of(need)) > 1 or need.rules or row_classes.count.size > KINDS:
            return None
        ((column, _, sorts),) = conditions_of(need)
        (loss, enough), (price, shared), rows = losses, prices, row_classes.count[places.row_class]
        value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(rows.size, np.int64)
        spare = loss[places.pattern] - price[places.row_class] + shared.rows
        # A pattern may have several groups, each with a negative cost.
        size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
        least = least_groups(places, rows, value, spare, sorts, shared.uses).cost
        below = float((size // need.smallest) @ np.minimum(least, 0.0))
        proved = shared.proved + float(price @ row_classes.count) + below
        slack = part * (enough - proved) + CAREFUL
        rank = np.empty(places.patterns, np.int64)
        rank[np.argsort(loss, kind="stable")] = np.arange(places.patterns)
        order = np.lexsort((spare, rank[places.pattern]))
        start = np.searchsorted(rank[places.pattern][order], np.arange(places.patterns + 1))
        within = np.zeros((int(row_classes.type.max()) + 1, -(-places.patterns // 64)), np.uint64)
        bit = rank[np.repeat(np.arange(places.patterns), np.diff(found.start))]
        np.bitwise_or.at(within, (found.member, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
        several = need.frequency[need.sensitive_columns[column]] if column >= 0 and sorts[0].values == 1 else 1
        most = largest(need, int(row_classes.count.sum()))
        asked = GroupsAsked(need.smallest, most, sorts[0].values, several, slack)
        begin, place = np.zeros(LISTED + 1, np.int64), np.empty(PLACED, np.int32)
        uses = shared.uses.min(axis=0)[np.argsort(rank)]
        kind = row_classes.type[places.row_class]
        many = few_groups(PatternRows(start, order, rows, value, spare), asked, uses, kind, within, begin, place)
        if many < 0:
            return None
        place = place[: begin[many]]
        at = csc_array((np.ones(place.size), place, begin[: many + 1].astype(np.int32)), shape=(rows.size, many))
        at.sum_duplicates()
        out = cls(row_classes.count, at, places, loss)
        out.proved = proved
        out.spare = at.T @ spare + shared.uses.min(axis=0)[places.pattern[place[begin[:many]]]]
        several_of = np.flatnonzero(model.owner >= model.patterns)
        if several_of.size and many:
            lines, pattern = csc_array(model.lines[several_of]), places.pattern[at.indices[at.indptr[:-1]]]
            use = model.uses.column.reshape(-1, places.patterns)
            sort = out.size.astype(np.int64) // several - part_sizes(need.k, several)[0] if several > 1 else 0
            of_groups = lines[:, : model.n] @ at + lines[:, use[sort, pattern]]
            out.keep_to(csr_array(-of_groups), -model.low[several_of])
        return out

    def tighten(self, enough: float, until: float) -> None:
        """The linear program, with cuts, until the moment; what a partition of cost ``enough`` cannot use leaves."""
        before: list[float] = []
        while self.cost.size:
            solved = self._solved(None, until)
            if solved is None:
                return
            before.append(solved[0])
            three = self._met(self._x())
            self.leave(enough)
            slow = len(before) > TURNS and solved[0] - before[-1 - TURNS] < LITTLE * (enough - solved[0])
            if self.proved > enough or clock() > until or len(before) > CUTS or slow:
                return
            if not len(three) or not self.cost.size:
                return
            self._cut(three)

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
        has = self.rows.toarray() > 0
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
