"""The linear relaxation of the integer program over patterns, solved directly or by column generation, and its cuts.

A *cut* is a line that no partition violates. docs/exact.md proves the cuts:

- of models that are more than sizes, shares, and numbers of values: the groups that meet such a model form a convex
  cone in their rows by value, so a plane through 0 cuts off a group that doesn't (``model_cuts``)
- of crowded sets: a set R of rows has at most as many groups as it has rows for. If a group needs r rows of its
  pattern, of which all but o are in R, then for every m > 0, the sum of floor(max(0, r - o) / m) over groups is at most
  floor(|R| / m) (``crowded_set_cuts``)
- over three rows: at most one group has two of them or all (``three_row_cuts``); the subset-row inequalities of Jepsen,
  Petersen, Spoorendonk and Pisinger 2008 for m = 2, over the rows of a group instead of columns

If a group must meet only one condition, the linear program is solved by columns, each a group of a pattern (Dantzig
and Wolfe 1960). This program has a line for each row class and each cut, not for each pattern. ``priced`` computes its
bound from the prices, also if time runs out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import highspy
import numpy as np
from scipy.sparse import coo_matrix, csc_array, csr_array, hstack, vstack

from shoal.clock import clock
from shoal.model.privacy import Requirement, Rule
from shoal.model.privacy.base import CLOSE, Measure
from shoal.problems.programs import LinearConstraints, Solver, written
from shoal.problems.tables.exact.pattern_model import (
    LeastGroups,
    PatternFits,
    PatternModel,
    RowClasses,
    SharedPrices,
    conditions_of,
    least_groups,
)

Violated = Callable[[PatternModel, np.ndarray], tuple[csr_array, np.ndarray]]

CLEARLY = 1e-4  # a cut is added if it is violated by more than this
SPREAD = 1e-3  # rows that every value has more where a plane touches the entropy, whose slope at 0 has no bound


def separating_planes(measure: Measure, held: np.ndarray, rows: int) -> np.ndarray:
    """Planes through 0, float64[p, v], that separate a group that violates a model from all groups that meet it.

    ``separating_planes @ group >= 0`` holds for the rows by value of every group that meets the model. If ``held``
    violates the model, it violates one of the planes, except where only a strict inequality is violated.

    held  float64[v] whole numbers: rows of the group by value
    rows  number of rows of the table
    """
    n, number = held.sum(), measure.number
    if measure.kind == "recursive":
        falling = np.argsort(-held, kind="stable")
        tail = np.arange(1, rows + 1)  # r1 < c tail of whole numbers: at most the next lower fraction
        plane = np.full(held.size, ((np.ceil((number - CLOSE / 2) * tail) - 1) / tail).max())
        plane[falling[: measure.whole - 1]] = 0.0
        plane[falling[0]] -= 1.0
        return plane[None]
    if measure.kind == "entropy":  # at most what it is by the logarithms of other shares
        share = (held + SPREAD) / (n + SPREAD * held.size)
        return (-np.log(share) - number + CLOSE)[None]
    table = np.array(measure.table)
    if measure.kind == "band":
        low, high = table[::2], table[1::2]
        asked = high > 0 if measure.whole else np.ones(held.size, bool)
        above = np.flatnonzero(asked & (held > (high + CLOSE) * n))
        below = np.flatnonzero(asked & (held < low * n))
        out = np.repeat(np.append(high[above] + CLOSE, -low[below])[:, None], held.size, axis=1)
        out[np.arange(out.shape[0]), np.append(above, below)] += np.repeat([-1.0, 1.0], [above.size, below.size])
        return out
    if measure.kind == "equal":
        over = held > table * n
        return (number + CLOSE + table[over].sum() - over)[None]
    asked = np.diff(table, prepend=0.0) > 0
    side = np.where(asked, np.sign(np.cumsum(held) - table * n), 0.0)
    return ((number + CLOSE) * measure.whole + side @ table - np.cumsum(side[::-1])[::-1])[None]


def rows_of(row_classes: RowClasses, places: PatternFits, need: Requirement, rule: Rule, x: np.ndarray) -> np.ndarray:
    """The rows of each value at each pattern, float64[q, v]. x: float64[n] rows of each place."""
    out = np.zeros((places.patterns, len(rule.table)))
    np.add.at(out, (places.pattern, _values(row_classes, places, need, rule)), x)
    return out


def _values(row_classes: RowClasses, places: PatternFits, need: Requirement, rule: Rule) -> np.ndarray:
    """int64[n]: value of the rule's column at each place."""
    return row_classes.value[places.row_class, need.sensitive_columns.index(rule.columns[0])]


def model_cuts(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, need: Requirement, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Cuts of models: (lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates.

    ``lines @ y >= low`` holds for every partition. O(patterns in use x values^2).
    """
    start = np.searchsorted(places.pattern, np.arange(places.patterns + 1))
    value: list[np.ndarray] = []
    column: list[np.ndarray] = []
    for rule in need.rules:
        measure, rows = rule.measure, sum(rule.table)
        own, held = _values(row_classes, places, need, rule), rows_of(row_classes, places, need, rule, y[: model.n])
        for p in np.flatnonzero(held.sum(axis=1) > CLEARLY):
            found = separating_planes(measure, held[p], rows)
            here = np.arange(start[p], start[p + 1])
            for plane in found[found @ held[p] < -CLEARLY]:
                value.append(plane[own[here]])
                column.append(here)
    width = np.cumsum([0, *(c.size for c in column)])
    flat = (np.concatenate([*value, np.zeros(0)]), np.concatenate([*column, np.zeros(0, np.int64)]), width)
    return csr_array(flat, shape=(len(column), model.cost.size)), np.zeros(len(column))


PAIRS = 20_000  # at most so many unions of two patterns are tried
LINES = 150  # at most so many cuts are added at once
CROWDED = 1e-3  # a cut of a crowded set is added if it is violated by more than this


def crowded_set_cuts(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, least: int, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Cuts of crowded sets: (lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates.

    ``lines @ y >= low`` holds for every partition. The sets R are all rows, the rows of a used pattern, and those of
    two used patterns that share rows. m is the least number with the same right side as ``least``, the smallest size of
    a group. O(sets x used patterns x row classes).
    """
    uses, count = model.uses, row_classes.count.astype(float)
    size = np.bincount(places.pattern, weights=count[places.row_class], minlength=places.patterns)
    own = model.pattern[uses.column]
    some = np.flatnonzero(y[uses.column] > CROWDED / LINES)
    used, of_used = np.unique(own[some], return_inverse=True)
    member = np.zeros((places.patterns, count.size), bool)
    member[places.pattern, places.row_class] = True
    member = member[used]
    sets = _unions_of_patterns(member)
    rows = sets @ count
    right = np.floor(rows / least)
    m = np.floor(rows / (right + 1)) + 1
    outside = (size[used] - (sets * count) @ member.T.astype(float))[:, of_used.reshape(-1)]
    broken = _whole_multiples(uses.rows[some], outside, m[:, None]) @ y[uses.column[some]] - right
    worst = np.argsort(-broken, kind="stable")[:LINES]
    lines = []
    for s in worst[broken[worst] > CROWDED]:
        inside = np.bincount(places.pattern, weights=(sets[s] * count)[places.row_class], minlength=places.patterns)
        lines.append(-_whole_multiples(uses.rows, (size - inside)[own], m[s]))
    full = np.zeros((len(lines), model.cost.size))
    full[:, uses.column] = np.reshape(lines, (len(lines), uses.column.size))
    return csr_array(full), -right[worst[: len(lines)]]


def _whole_multiples(rows: np.ndarray, outside: np.ndarray, m: np.ndarray | float) -> np.ndarray:
    """How many times m rows of a set each use of a pattern has at least."""
    return np.floor(np.maximum(rows - outside, 0.0) / m)


def _unions_of_patterns(member: np.ndarray) -> np.ndarray:
    """Sets of row classes that may be crowded, bool[s, r]: all, those of a used pattern, and unions of two of these."""
    one, other = np.triu_indices(member.shape[0], 1)
    near = (member.astype(float) @ member.T.astype(float))[one, other] > 0
    one, other = one[near], other[near]
    if one.size > PAIRS:
        some = np.random.default_rng(0).choice(one.size, PAIRS, replace=False)
        one, other = one[some], other[some]
    everyone = np.ones((1, member.shape[1]), bool)
    return np.concatenate([everyone, member, member[one] | member[other]])


# Weights of three rows in a cut; the largest of them is the weight of the use, which is subtracted.
FORMS = np.array([[0.5, 0.5, 0.5], [1, 1, 0], [1, 0, 1], [0, 1, 1]])
MET = 1.02  # a cut over three rows is added if its sum is above this; 1 is allowed
OFTEN = 12  # at most so many cuts at once contain the same row


def three_row_cuts(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Cuts over three rows: (lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates.

    ``lines @ y >= low`` holds for every partition: at most one group has two of three rows, or all. For each pattern,
    take half of (the sum of its rows among the three minus its use), or the sum of two of these rows minus its use,
    whichever is larger, or 0. In a partition, this is 1 if the group has two or three of the rows, and otherwise at
    most 0. O(rows^3) for each used pattern.
    """
    q, uses = places.patterns, model.uses.column.reshape(-1, places.patterns)
    use, single = y[uses].sum(axis=0), np.flatnonzero(row_classes.count == 1)
    at = np.full((q, row_classes.count.size), -1)
    at[places.pattern, places.row_class] = np.arange(model.n)
    at = at[:, single]
    x = np.where(at >= 0, y[at], 0.0)
    some = np.flatnonzero(use > CROWDED / LINES)
    found = _violated_triples(x[some], use[some])
    often = np.zeros(single.size, np.int64)
    kept: list[np.ndarray] = []
    for three in found:
        if len(kept) < LINES and often[three].max() < OFTEN:
            often[three] += 1
            kept.append(three)
    line, column, value = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for i, three in enumerate(kept):
        own = np.flatnonzero((at[:, three] >= 0).sum(axis=1) > 1)
        fits = ((at[own][:, three] < 0) @ FORMS.T) == 0
        worth = np.where(fits, (x[own][:, three] @ FORMS.T) - use[own, None] * FORMS.max(axis=1), -np.inf)
        best = worth.argmax(axis=1)
        good = worth[np.arange(own.size), best] >= 0
        own, form = own[good], FORMS[best[good]]
        p, j = np.nonzero(form)
        column += [at[own[p], three[j]], uses[:, own].reshape(-1)]
        value += [-form[p, j], np.tile(form.max(axis=1), uses.shape[0])]
        line.append(np.full(p.size + uses.shape[0] * own.size, i))
    entries = np.concatenate(value), (np.concatenate(line), np.concatenate(column))
    return csr_array(coo_matrix(entries, shape=(len(kept), model.cost.size))), -np.ones(len(kept))


def _violated_triples(x: np.ndarray, use: np.ndarray) -> np.ndarray:
    """Sets of three rows whose cut is violated most, int64[c, 3], in this order; x float64[p, r], use float64[p]."""
    pairs = np.zeros((x.shape[1], x.shape[1]))
    for own, once in zip(x, use, strict=True):
        here = np.flatnonzero(own)
        pairs[np.ix_(here, here)] += np.maximum(own[here][:, None] + own[here] - once, 0.0)
    sums, threes = [np.zeros(0)], [np.zeros((0, 3), np.int64)]
    for a in range(x.shape[1]):
        here = np.flatnonzero(x[:, a])
        others = a + 1 + np.flatnonzero(x[here, a + 1 :].any(axis=0))
        i, j = np.triu_indices(others.size, 1)
        b, c = others[i], others[j]
        total = pairs[b, c]
        for p in here:
            first, second, third = x[p, a], x[p, b], x[p, c]
            apart = np.maximum(second + third - use[p], 0.0)
            two = first + np.maximum(second, third) - use[p]
            total += np.maximum(np.maximum(apart, two), (first + second + third - use[p]) / 2) - apart
        bad = np.flatnonzero(total > MET)
        sums.append(total[bad])
        threes.append(np.column_stack([np.full(bad.size, a), b[bad], c[bad]]))
    order = np.argsort(-np.concatenate(sums), kind="stable")
    return np.concatenate(threes)[order]


def program_of(
    model: PatternModel, cols: np.ndarray, lines: csr_array, rows: np.ndarray, whole: bool | np.ndarray
) -> highspy.HighsLp:
    """The program over some columns and lines, for HiGHS; ``lines`` is the matrix of these columns and lines alone."""
    kept = LinearConstraints(lines, model.low[rows], model.high[rows])
    return written(model.cost[cols], kept, np.zeros(cols.size), model.most[cols], whole)


TURNS = 12  # at most so many linear programs are solved, with cuts added after each
CROWDING = 0.3  # share of the seconds after which no further one is solved,
QUICK = 0.5  # unless it takes less than this many seconds
NO_LINES = csr_array((0, 0)), np.zeros(0)


def relaxation(
    model: PatternModel, deadline: float, violated: Violated | None = None
) -> tuple[PatternModel, np.ndarray, np.ndarray] | None:
    """Solve the linear program: (model with the added cuts, prices of its lines float64[r], rows of the places
    float64[n]); None if time runs out first.

    violated  finds the cuts that a solution violates
    """
    solver = Solver()
    solver.passModel(program_of(model, np.arange(model.cost.size), model.lines, np.arange(model.owner.size), False))
    found, began = None, clock()
    for _ in range(TURNS):
        since = clock()
        if since >= deadline:
            break
        solver.limit(deadline - since)
        if not solver.solved():
            break
        found = solver.getSolution()
        lines, low = violated(model, np.array(found.col_value)) if violated is not None else NO_LINES
        if not low.size:
            break
        model, now = model.with_lines(lines, low), clock()
        if 2 * now - since > max(began + CROWDING * (deadline - began), now + QUICK):
            break
        none = np.full(low.size, np.inf)
        solver.addRows(low.size, low, none, lines.nnz, lines.indptr[:-1], lines.indices, lines.data)
    if found is None:
        return None
    price = np.array(found.row_dual)
    return model, np.append(price, np.zeros(model.low.size - price.size)), np.array(found.col_value)[: model.n]


def bound_of_prices(model: PatternModel, price: np.ndarray) -> tuple[float, np.ndarray]:
    """(lower bound that prices of the lines, float64[r], prove; the positive parts of the reduced costs, float64[c]).

    Any prices give a bound; negative prices of inequalities count as 0.
    """
    price = np.where(model.owner < 0, price, np.maximum(price, 0.0))
    reduced_cost = model.cost - model.lines.T @ price
    value = float(price @ model.low) + float(np.minimum(reduced_cost, 0.0) @ model.most)
    return value, np.maximum(reduced_cost, 0.0)


def shared(model: PatternModel, price: np.ndarray) -> SharedPrices:
    """What the prices of the cuts over several patterns add to the bound, and to each use and row."""
    several = np.flatnonzero(model.owner > model.pattern.max(initial=0))
    price = np.maximum(price[several], 0.0)
    added = -(model.lines[several].T @ price)
    uses = added[model.uses.column].reshape(-1, model.patterns)
    return SharedPrices(float(price @ model.low[several]), uses, added[: model.n])


def least_additions(
    places: PatternFits, count: np.ndarray, k: int | np.ndarray, reduced_cost: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least that a solution with each pattern, float64[q], or each place, float64[n], costs above a bound; infinite
    if the pattern has fewer than k rows.

    A solution costs at least the bound plus the reduced costs of what it uses. A used pattern has at least k rows, so
    it adds the k least reduced costs of its rows or more; a place adds its own and the k - 1 least, or more.

    count         int64[r] rows of each class
    k             int, or float64[q]
    reduced_cost  float64[c], at least 0
    """
    n = places.row_class.size
    order = np.lexsort((reduced_cost[:n], places.pattern))
    rows, own = count[places.row_class][order], places.pattern[order]
    start = np.searchsorted(own, np.arange(places.patterns + 1))
    before = np.concatenate([[0], np.cumsum(rows)])
    ahead = before[:-1] - before[start[own]]

    fewest = np.broadcast_to(np.asarray(k, float), (places.patterns,))

    def least(needed: np.ndarray) -> np.ndarray:
        take = np.clip(needed[own] - ahead, 0, rows)
        return np.bincount(own, weights=take * reduced_cost[:n][order], minlength=places.patterns)

    enough = np.diff(before[start]) >= fewest
    pattern = np.where(enough, least(fewest), np.inf)
    return pattern, np.where(enough, least(fewest - 1), np.inf)[places.pattern] + reduced_cost[:n]


CLOSE_ENOUGH = 5e-5  # cuts follow if the program over the columns is within this share of the bound
SMOOTH = 0.6  # columns are found at a mean of prices, in which the best prices have this share
ADDED = 150  # at most so many columns are added at once, or as many as there are row classes
CUTS = 40  # cuts are added at most so many times,
LITTLE = 0.004  # and while they gain at least this share of cost minus bound
TOLERANCE = (2e-7, 1e-6)  # of the solver: this, and this share of the largest loss
MOST_LOSSES = 1e4  # a row without a group costs at most so many times the largest loss
LEAST_PRICE = 1e-7  # a cut with a lower price is dropped


class Relaxed(NamedTuple):
    """The result of a linear program, solved or stopped by time.

    model   with the cuts that have a price
    price   float64[r] of the row classes
    shared  what the prices of cuts over several patterns prove
    rows    float64[n] of every place
    groups  csc_array[n, c]  the groups that are columns of the program: rows of every place
    """

    model: PatternModel
    price: np.ndarray
    shared: SharedPrices
    rows: np.ndarray
    groups: csc_array


class ColumnProgram:
    """The linear relaxation by column generation: columns are groups of a pattern, lines are row classes and cuts.

    If a group must meet only one condition, the corners of a pattern's lines are its groups, so this program and the
    relaxation of the model have the same solutions. A column costs the loss of its rows; a cut counts its rows and one
    use of its pattern.

    groups  csc_array[columns of the model, c]   rows and use of each column
    """

    def __init__(self, row_classes: RowClasses, places: PatternFits, need: Requirement, model: PatternModel) -> None:
        self.row_classes, self.places, self.need, self.model = row_classes, places, need, model
        ((column, several, self.sorts),) = conditions_of(need)
        self.value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(model.n, np.int64)
        self.count = row_classes.count[places.row_class]
        self.use = model.uses.column.reshape(-1, places.patterns)
        self.lines, self.low = csr_array((0, model.cost.size)), np.zeros(0)
        self.groups = csc_array((model.cost.size, 0))
        size = np.bincount(places.pattern, weights=self.count, minlength=places.patterns)
        self.most = np.maximum(size // self.sorts[0].rows, 1) if several else np.ones(places.patterns)
        # A row without a group costs more than any column, so that there is a solution before there are columns.
        self.solver, rows = Solver(solver="simplex", presolve="off"), row_classes.count.astype(float)
        self.solver.add_rows(rows, rows)
        self.penalty_columns = rows.size
        largest_loss = float(model.cost.max(initial=0.0))
        self.tolerance, penalty = (
            TOLERANCE[0] + TOLERANCE[1] * largest_loss,
            largest_loss * min(rows.sum(), MOST_LOSSES),
        )
        self.solver.add_columns(
            np.full(rows.size, penalty), np.full(rows.size, np.inf), list(np.arange(rows.size)[:, None])
        )

    def solve(self, price: np.ndarray, cost: float, deadline: float, violated: Violated) -> Relaxed:
        """Solve from prices of the row classes, float64[r], and the cost of a partition, until the deadline.

        Columns are found at means of the best known prices and the program's, which change less (Wentges 1997).
        """
        at = best = (price, np.zeros(0))
        proved = value = before = -np.inf
        turns, solved = 0, False
        # Prices give bounds and columns. If the program over these columns is near the bound, cuts follow.
        while True:
            for share in (SMOOTH, 0.0):
                mixed = share * best[0] + (1 - share) * at[0], share * best[1] + (1 - share) * at[1]
                found, bound = self._cheapest_groups(*mixed)
                if bound > proved:
                    proved, best = bound, mixed
                missing = self._improving_patterns(found, at)
                if missing.size:
                    break
            if clock() > deadline:
                break
            if solved and (value - proved <= CLOSE_ENOUGH * abs(value) + self.tolerance or not missing.size):
                if turns == CUTS or (value - before < LITTLE * (cost - value)):
                    break
                more, low = violated(self.model, self._model_solution())
                if not low.size:
                    break
                turns, before = turns + 1, value
                self._add_cuts(more, low)
                best = best[0], np.append(best[1], np.zeros(low.size))
            else:
                self._add_columns(found, missing)
            self.solver.limit(max(deadline - clock(), 0.0))
            solved = self.solver.solved()
            if not solved:
                break
            value, dual = float(self.solver.getInfo().objective_function_value), self.solver.duals
            at = dual[: price.size], np.maximum(dual[price.size :], 0.0)
        tight = best[1] > LEAST_PRICE
        model = self.model.with_lines(csr_array(self.lines[tight]), self.low[tight]) if tight.any() else self.model
        rows, groups = self._model_solution()[: self.model.n], csc_array(self.groups[: self.model.n])
        return Relaxed(model, best[0], self._proved_by_cuts(best[1]), rows, groups)

    def _proved_by_cuts(self, price: np.ndarray) -> SharedPrices:
        """What prices of the cuts add to the bound, and to each use and row."""
        added = -(self.lines.T @ price)
        return SharedPrices(float(price @ self.low), added[self.use], added[: self.model.n])

    def _cheapest_groups(self, price: np.ndarray, of_lines: np.ndarray) -> tuple[LeastGroups, float]:
        """(the cheapest group of each pattern at these prices, the lower bound that they prove)."""
        shared = self._proved_by_cuts(of_lines)
        reduced_cost = self.model.cost[: self.model.n] - price[self.places.row_class] + shared.rows
        found = least_groups(self.places, self.count, self.value, reduced_cost, self.sorts, shared.uses)
        below = float(self.most @ np.minimum(found.cost, 0.0))
        return found, shared.proved + float(price @ self.row_classes.count) + below

    def _improving_patterns(self, found: LeastGroups, at: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Patterns whose group has a negative reduced cost at the program's prices, the least first."""
        shared = self._proved_by_cuts(at[1])
        reduced_cost = self.model.cost[: self.model.n] - at[0][self.places.row_class] + shared.rows
        cost = np.bincount(self.places.pattern, weights=found.rows * reduced_cost, minlength=self.places.patterns)
        cost += shared.uses[np.maximum(found.sort, 0), np.arange(cost.size)]
        less = np.flatnonzero((found.sort >= 0) & (cost < -self.tolerance))
        return less[np.argsort(cost[less], kind="stable")][: max(ADDED, self.row_classes.count.size)]

    def _model_solution(self) -> np.ndarray:
        """The solution in the columns of the model, float64[c]; columns that count values remain 0."""
        x = self.solver.x[self.penalty_columns :]
        return self.groups[:, : x.size] @ x if x.size else np.zeros(self.model.cost.size)

    def _add_columns(self, found: LeastGroups, patterns: np.ndarray) -> None:
        """Add the groups of these patterns as columns."""
        at = np.full(self.places.patterns, -1)
        at[patterns] = np.arange(patterns.size)
        here = np.flatnonzero((at[self.places.pattern] >= 0) & (found.rows > 0))
        of = at[self.places.pattern[here]]
        row = np.append(here, self.use[found.sort[patterns], patterns])
        entries = np.append(found.rows[here], np.ones(patterns.size)).astype(float)
        shape = self.model.cost.size, patterns.size
        new = csc_array((entries, (row, np.append(of, np.arange(patterns.size)))), shape=shape)
        published = csc_array(
            (found.rows[here].astype(float), (self.places.row_class[here], of)),
            shape=(self.penalty_columns, patterns.size),
        )
        both = csc_array(vstack([published, self.lines @ new]))
        none, any_ = np.zeros(patterns.size), np.full(patterns.size, np.inf)
        self.solver.addCols(
            patterns.size, new.T @ self.model.cost, none, any_, both.nnz, both.indptr[:-1], both.indices, both.data
        )
        self.groups = csc_array(hstack([self.groups, new]))

    def _add_cuts(self, lines: csr_array, low: np.ndarray) -> None:
        """Add cuts."""
        self.lines, self.low = csr_array(vstack([self.lines, lines])), np.append(self.low, low)
        over = csr_array(lines @ self.groups)
        at = over.indices + self.penalty_columns
        self.solver.addRows(low.size, low, np.full(low.size, np.inf), over.nnz, over.indptr[:-1], at, over.data)
