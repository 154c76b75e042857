"""The last program of a small table: over all groups that a partition cheaper than the known one may still use.

Prices of the rows that prove a bound say what each group costs beyond them.  A cheaper partition has no group that
costs as much beyond its prices as lies between the bound and the known cost.  If that is little, few groups are left,
and all of them are listed (Baldacci, Christofides, Mingozzi, "An exact algorithm for the vehicle routing problem based
on the set partitioning formulation with additional cuts", Mathematical Programming 2008, lists routes in this way).

Over listed groups, cuts over three rows are as sharp as they can be: a group counts 1 if it has two of them or all.
Each turn of the linear program raises the bound, and leaves out what costs too much at the new prices.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from shoal.clock import clock
from shoal.model.privacy import Requirement
from shoal.problems.programs import Solver
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    PatternModel,
    PatternUses,
    RowClasses,
    SharedPrices,
    conditions_of,
    least_groups,
)
from shoal.problems.tables.methods.pattern_cover import Patterns

LISTED, PLACED = 400_000, 5_000_000  # groups that are listed at most, and rows in them
BEGUN, ADDED = 1000, 400  # groups that the linear program begins with, and that it takes in at once
SEEN = 1e-7  # below 0, a reduced cost that counts
MET = 1.02  # what three rows must sum to, of the 1 allowed
LINES, OFTEN = 60, 5  # cuts added at once, and of those with one row
FEWER = 0.8  # share of the groups of which the others leave the program
CUTS, LITTLE, TURNS = 60, 5e-3, 4  # turns at most, or until so many gain less than this share of what is missing
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
    cost   float64[c] of a group;  most float64[c] how often it can be used;  pattern int64[c]
    """

    def __init__(self, count: np.ndarray, at: csc_array, places: PatternFits, loss: np.ndarray) -> None:
        kinds = csr_array(
            (np.ones(places.row_class.size), (places.row_class, np.arange(places.row_class.size))),
            shape=(count.size, places.row_class.size),
        )
        self.count, self.at, self.rows = count.astype(float), at, csc_array(kinds @ at)
        self.pattern = places.pattern[at.indices[at.indptr[:-1]]]
        self.cost = loss[self.pattern] * np.asarray(at.sum(axis=0)).reshape(-1)
        often = self.count[self.rows.indices] // self.rows.data
        self.most = np.minimum.reduceat(often, self.rows.indptr[:-1]) if often.size else np.zeros(0)
        self.proved, self.spare = -np.inf, np.zeros(self.cost.size)
        self.threes, self.lines, self.tight = np.zeros((0, 3), np.int64), csr_array((0, self.cost.size)), np.zeros(0)

    @classmethod
    def listed(
        cls,
        row_classes: RowClasses,
        places: PatternFits,
        found: Patterns,
        need: Requirement,
        losses: tuple[np.ndarray, float],
        prices: tuple[np.ndarray, SharedPrices],
    ) -> GroupProgram | None:
        """All groups that a cheaper partition may use; None where more than one thing is asked, or they are too many.

        losses  float64[q] of a row of each pattern, and the largest cost of a partition that is looked for
        prices  of the row classes float64[r], of any sign, and of lines over several patterns
        """
        from shoal.kernels.tables.subsets import GroupsAsked, PatternRows, few_groups

        if len(conditions_of(need)) > 1 or need.rules:
            return None
        ((column, _, sorts),) = conditions_of(need)
        (loss, enough), (price, shared), rows = losses, prices, row_classes.count[places.row_class]
        value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(rows.size, np.int64)
        spare = loss[places.pattern] - price[places.row_class] + shared.rows
        # A pattern may have several groups, each with a negative cost.
        size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
        least = least_groups(places, rows, value, spare, sorts, shared.uses).cost
        below = float((size // need.smallest) @ np.minimum(least, 0.0))
        slack = enough - (shared.proved + float(price @ row_classes.count) + below) + CAREFUL
        rank = np.empty(places.patterns, np.int64)
        rank[np.argsort(loss, kind="stable")] = np.arange(places.patterns)
        order = np.lexsort((spare, rank[places.pattern]))
        start = np.searchsorted(rank[places.pattern][order], np.arange(places.patterns + 1))
        within = np.zeros((int(row_classes.type.max()) + 1, -(-places.patterns // 64)), np.uint64)
        bit = rank[np.repeat(np.arange(places.patterns), np.diff(found.start))]
        np.bitwise_or.at(within, (found.member, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
        within = within[row_classes.type[places.row_class]]
        several = need.frequency[need.sensitive_columns[column]] if column >= 0 and sorts[0].values == 1 else 1
        most = largest(need, int(row_classes.count.sum()))
        asked = GroupsAsked(need.smallest, most, sorts[0].values, several, slack)
        begin, place = np.zeros(LISTED + 1, np.int64), np.empty(PLACED, np.int32)
        uses = shared.uses.min(axis=0)[np.argsort(rank)]
        many = few_groups(PatternRows(start, order, rows, value, spare), asked, uses, within, begin, place)
        if many < 0:
            return None
        place = place[: begin[many]]
        at = csc_array((np.ones(place.size), place, begin[: many + 1].astype(np.int32)), shape=(rows.size, many))
        at.sum_duplicates()
        return cls(row_classes.count, at, places, loss)

    def solve(self, enough: float, until: float) -> None:
        """The linear program, with cuts, until the moment; groups leave that a partition of cost ``enough`` cannot use.

        Groups are taken in where their reduced cost is below 0; those that are not in the solver are priced beside it.
        """
        n, before, single = self.count.size, [], np.flatnonzero(self.count == 1)
        solver = Solver(solver="simplex", presolve="off")
        solver.add_rows(self.count, self.count)
        dear = 5.0 * float(self.cost.max(initial=0.0)) + 1.0  # a row without a group: there is a solution without any
        solver.add_columns(np.full(n, dear), np.full(n, np.inf), list(np.arange(n)[:, None]))
        inside = np.zeros(0, np.int64)
        new = np.argsort(self.cost / np.asarray(self.rows.sum(axis=0)).reshape(-1), kind="stable")[:BEGUN]
        while self.cost.size:
            self._into(solver, new)
            inside = np.append(inside, new)
            solver.limit(max(until - clock(), 0.0))
            if not solver.solved():
                return
            dual = solver.duals
            price, tight = dual[:n], np.minimum(dual[n:], 0.0)
            spare = self.cost - self.rows.T @ price - self.lines.T @ tight
            proved = float(price @ self.count + tight.sum() + np.minimum(spare, 0.0) @ self.most)
            if proved > self.proved:
                self.proved, self.spare, self.tight = proved, np.maximum(spare, 0.0), tight
            out = np.ones(self.cost.size, bool)
            out[inside] = False
            new = np.flatnonzero(out & (spare < -SEEN))
            new = new[np.argsort(spare[new], kind="stable")][:ADDED]
            if new.size:
                continue
            before.append(proved)
            kept = self.spare <= enough - self.proved + CAREFUL
            if kept.sum() < FEWER * kept.size:
                leaves = np.flatnonzero(~kept[inside])
                solver.deleteCols(leaves.size, (leaves + n).astype(np.int32))
                number = np.cumsum(kept) - 1
                inside = number[inside[kept[inside]]]
                self._leave(kept)
            slow = len(before) > TURNS and proved - before[-1 - TURNS] < LITTLE * (enough - proved)
            if self.proved > enough or clock() > until or len(before) > CUTS or slow:
                return
            solver.solved()
            three = self._met(solver.x[n:], inside, single)
            if not len(three):
                return
            self._cut(solver, three, inside)

    def _into(self, solver: Solver, new: np.ndarray) -> None:
        """Groups into the solver."""
        both = csc_array(vstack([self.rows[:, new], csc_array(self.lines)[:, new]]))
        none, any_ = np.zeros(new.size), np.full(new.size, np.inf)
        solver.addCols(
            new.size, self.cost[new], none, any_, both.nnz, both.indptr[:-1], both.indices, both.data
        )

    def _leave(self, kept: np.ndarray) -> None:
        """The groups bool[c] stay."""
        self.rows, self.at = csc_array(self.rows[:, kept]), csc_array(self.at[:, kept])
        self.lines = csr_array(csc_array(self.lines)[:, kept])
        self.cost, self.most, self.pattern = self.cost[kept], self.most[kept], self.pattern[kept]
        self.spare = self.spare[kept]

    def _met(self, x: np.ndarray, inside: np.ndarray, single: np.ndarray) -> np.ndarray:
        """Sets of three rows, int64[c, 3], of which the solution has more than one group with two or all of them."""
        used = np.flatnonzero(x > SEEN)
        has, often = self.rows[:, inside[used]].toarray()[single], x[used]
        pairs = (has * often) @ has.T
        found: list[tuple[float, int, int, int]] = []
        for a in range(single.size - 2):
            others = np.arange(a + 1, single.size)
            with_a = has[a] > 0
            all_three = (has[others][:, with_a] * often[with_a]) @ has[others][:, with_a].T
            total = pairs[a, others][:, None] + pairs[a, others] + pairs[np.ix_(others, others)] - 2 * all_three
            for i, j in zip(*np.nonzero(np.triu(total, 1) > MET), strict=True):
                found.append((-total[i, j], a, int(others[i]), int(others[j])))
        times, kept = np.zeros(single.size, np.int64), []
        for _, *three in sorted(found):
            if len(kept) < LINES and times[three].max() < OFTEN:
                times[three] += 1
                kept.append(single[three])
        return np.reshape(kept, (-1, 3)).astype(np.int64)

    def _cut(self, solver: Solver, three: np.ndarray, inside: np.ndarray) -> None:
        """A line for every three rows: at most one group has two or all of them."""
        ones = csr_array(
            (np.ones(three.size), (np.repeat(np.arange(len(three)), 3), three.reshape(-1))),
            shape=(len(three), self.count.size),
        )
        lines = csr_array(ones @ self.rows)
        lines.data = (lines.data >= 2).astype(float)
        lines.eliminate_zeros()
        self.lines, self.tight = csr_array(vstack([self.lines, lines])), np.append(self.tight, np.zeros(len(three)))
        here, at = csr_array(csc_array(lines)[:, inside]), self.count.size
        solver.addRows(
            len(three), np.full(len(three), -np.inf), np.ones(len(three)), here.nnz, here.indptr[:-1],
            (here.indices + at).astype(np.int32), here.data,
        )  # fmt: skip

    @property
    def model(self) -> PatternModel:
        """The integer program over the groups, with the cuts that have a price."""
        lines, c = self.lines[self.tight < -SEEN], self.cost.size
        cuts, r = lines.shape[0], self.count.size
        return PatternModel(
            lines=csr_array(vstack([csr_array(self.rows), -lines])),
            low=np.append(self.count, np.full(cuts, -1.0)),
            high=np.append(self.count, np.full(cuts, np.inf)),
            owner=np.append(np.full(r, -1), np.full(cuts, int(self.pattern.max(initial=-1)) + 1)),
            cost=self.cost,
            most=self.most,
            pattern=self.pattern,
            whole=np.ones(c, bool),
            n=c,
            uses=PatternUses(np.zeros(0, np.int64), np.zeros(0)),
        )
