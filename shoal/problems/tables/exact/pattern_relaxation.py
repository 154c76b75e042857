"""The linear program of the class program, and cuts: lines that no whole solution violates, where a linear one does.

Where one thing is asked of a group, the linear program goes by columns: a column is a group of a pattern, and prices of
the rows and lines find the columns that are missing, pattern by pattern (Dantzig and Wolfe 1960).  It has a line for
each row class and each cut, not for each pattern, and its bound is the one of ``priced``, whenever it ends.

Cuts for models that are more than size, shares and numbers of values.  The classes that meet a model form a convex cone
in their rows by value (``docs/exact.md``), so a class that does not is cut off by a plane through 0: a line over the
rows of one pattern that every eligible class obeys.

Cuts for crowded sets: no more classes in a set of rows than find room there.  Let R be a set of rows and m > 0.  A
class in use needs r rows of its pattern (a class of several parts the sum of theirs); all but o rows of the pattern lie
in R, so it holds r - o rows of R or more, and r - o for every part.  Every row is published once, so over the classes
in use, or over their parts,

    sum of floor(max(0, r - o) / m) <= floor(|R| / m).

Without these lines a linear program opens two and a half classes of k rows over 2.5 k rows.

Cuts over three rows, of which two or all three meet in at most one class: subset-row inequalities of Jepsen, Petersen,
Spoorendonk and Pisinger 2008 for m = 2, over the rows of a class in place of columns.
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

CLEARLY = 1e-4  # by which a line must be violated
SPREAD = 1e-3  # rows that every value has more where a plane touches the entropy, whose slope at 0 has no bound


def planes(measure: Measure, held: np.ndarray, rows: int) -> np.ndarray:
    """float64[p, v]: planes with ``planes @ class >= 0`` for the rows by value of every class that meets a model; held
    float64[v], in whole numbers, violates one of them where it does not, shares that are met by strictness apart.

    rows  of the whole table
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
    """float64[q, v]: rows of each value that each pattern has."""
    out = np.zeros((places.patterns, len(rule.table)))
    np.add.at(out, (places.pattern, _values(row_classes, places, need, rule)), x)
    return out


def _values(row_classes: RowClasses, places: PatternFits, need: Requirement, rule: Rule) -> np.ndarray:
    """int64[n]: value of the rule's column at each place."""
    return row_classes.value[places.row_class, need.sensitive_columns.index(rule.columns[0])]


def ruled(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, need: Requirement, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """(lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates; as in ``crowded``.

    O(patterns in use x values^2).
    """
    start = np.searchsorted(places.pattern, np.arange(places.patterns + 1))
    value: list[np.ndarray] = []
    column: list[np.ndarray] = []
    for rule in need.rules:
        measure, rows = rule.measure, sum(rule.table)
        own, held = _values(row_classes, places, need, rule), rows_of(row_classes, places, need, rule, y[: model.n])
        for p in np.flatnonzero(held.sum(axis=1) > CLEARLY):
            found = planes(measure, held[p], rows)
            here = np.arange(start[p], start[p + 1])
            for plane in found[found @ held[p] < -CLEARLY]:
                value.append(plane[own[here]])
                column.append(here)
    width = np.cumsum([0, *(c.size for c in column)])
    flat = (np.concatenate([*value, np.zeros(0)]), np.concatenate([*column, np.zeros(0, np.int64)]), width)
    return csr_array(flat, shape=(len(column), model.cost.size)), np.zeros(len(column))


PAIRS = 20_000  # unions of two patterns looked at
LINES = 150  # added at once
CROWDED = 1e-3  # by which a line must be violated


def crowded(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, least: int, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """(lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates: lines @ y >= low holds for
    every solution.

    R is all rows, those of a pattern in use, or of two that share some.  m is the least number for which the right side
    is that of ``least``, the rows of the least class.  O(R * used * classes).
    """
    uses, count = model.uses, row_classes.count.astype(float)
    size = np.bincount(places.pattern, weights=count[places.row_class], minlength=places.patterns)
    own = model.pattern[uses.column]
    some = np.flatnonzero(y[uses.column] > CROWDED / LINES)
    used, of_used = np.unique(own[some], return_inverse=True)
    member = np.zeros((places.patterns, count.size), bool)
    member[places.pattern, places.row_class] = True
    member = member[used]
    sets = _sets(member)
    rows = sets @ count
    right = np.floor(rows / least)
    m = np.floor(rows / (right + 1)) + 1
    outside = (size[used] - (sets * count) @ member.T.astype(float))[:, of_used.reshape(-1)]
    broken = _times(uses.rows[some], outside, m[:, None]) @ y[uses.column[some]] - right
    worst = np.argsort(-broken, kind="stable")[:LINES]
    lines = []
    for s in worst[broken[worst] > CROWDED]:
        inside = np.bincount(places.pattern, weights=(sets[s] * count)[places.row_class], minlength=places.patterns)
        lines.append(-_times(uses.rows, (size - inside)[own], m[s]))
    full = np.zeros((len(lines), model.cost.size))
    full[:, uses.column] = np.reshape(lines, (len(lines), uses.column.size))
    return csr_array(full), -right[worst[: len(lines)]]


def _times(rows: np.ndarray, outside: np.ndarray, m: np.ndarray | float) -> np.ndarray:
    """How often m rows of a set are in a use at least."""
    return np.floor(np.maximum(rows - outside, 0.0) / m)


def _sets(member: np.ndarray) -> np.ndarray:
    """Sets of row classes that may be crowded, bool[s, r], from those of the patterns in use."""
    one, other = np.triu_indices(member.shape[0], 1)
    near = (member.astype(float) @ member.T.astype(float))[one, other] > 0
    one, other = one[near], other[near]
    if one.size > PAIRS:
        some = np.random.default_rng(0).choice(one.size, PAIRS, replace=False)
        one, other = one[some], other[some]
    everyone = np.ones((1, member.shape[1]), bool)
    return np.concatenate([everyone, member, member[one] | member[other]])


FORMS = np.array([[0.5, 0.5, 0.5], [1, 1, 0], [1, 0, 1], [0, 1, 1]])  # of three rows, less as much of the use
MET = 1.02  # what a line must sum to, of the 1 allowed
OFTEN = 12  # lines added at once for a row


def meeting(
    row_classes: RowClasses, places: PatternFits, model: PatternModel, y: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """(lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates; as in ``crowded``.

    Of three rows, at most one class holds two or all.  A class in use holds so many if half the sum of its rows among
    the three less its use, or the sum of two of them less its use, is 1, and neither is ever more; a class not in use
    counts 0.  For every pattern the line has the larger one, or nothing.  O(rows^3) for a pattern in use.
    """
    q, uses = places.patterns, model.uses.column.reshape(-1, places.patterns)
    use, single = y[uses].sum(axis=0), np.flatnonzero(row_classes.count == 1)
    at = np.full((q, row_classes.count.size), -1)
    at[places.pattern, places.row_class] = np.arange(model.n)
    at = at[:, single]
    x = np.where(at >= 0, y[at], 0.0)
    some = np.flatnonzero(use > CROWDED / LINES)
    found = _meetings(x[some], use[some])
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


def _meetings(x: np.ndarray, use: np.ndarray) -> np.ndarray:
    """Sets of three rows that meet more than once, int64[c, 3], the worst first; x float64[p, r], use float64[p]."""
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
    """Some columns and lines for HiGHS; ``lines`` is the matrix of just these."""
    kept = LinearConstraints(lines, model.low[rows], model.high[rows])
    return written(model.cost[cols], kept, np.zeros(cols.size), model.most[cols], whole)


TURNS = 12  # linear programs, lines added after each
CROWDING = 0.3  # share of the seconds after which no other is solved,
QUICK = 0.5  # but where it takes less seconds than that
NO_LINES = csr_array((0, 0)), np.zeros(0)


def relaxation(
    model: PatternModel, deadline: float, violated: Violated | None = None
) -> tuple[PatternModel, np.ndarray, np.ndarray] | None:
    """(model, prices of its lines float64[r], rows of the places float64[n]) of the linear program; None when time ran
    out.

    violated  lines that a solution violates; the model comes back with those added, turn by turn
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


def counted(model: PatternModel, price: np.ndarray) -> tuple[float, np.ndarray]:
    """What prices of the lines, float64[r], prove, and the reduced costs that are left, float64[c].

    Prices may be anything; those of lines that ask for at least something are taken as 0 where they are negative.
    """
    price = np.where(model.owner < 0, price, np.maximum(price, 0.0))
    spare = model.cost - model.lines.T @ price
    value = float(price @ model.low) + float(np.minimum(spare, 0.0) @ model.most)
    return value, np.maximum(spare, 0.0)


def shared(model: PatternModel, price: np.ndarray) -> SharedPrices:
    """What the prices of lines of several patterns prove, and what one use of a column adds there."""
    several = np.flatnonzero(model.owner > model.pattern.max(initial=0))
    price = np.maximum(price[several], 0.0)
    added = -(model.lines[several].T @ price)
    uses = added[model.uses.column].reshape(-1, model.patterns)
    return SharedPrices(float(price @ model.low[several]), uses, added[: model.n])


def paid(
    places: PatternFits, count: np.ndarray, k: int | np.ndarray, spare: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the use of each pattern float64[q] and of each place float64[n] adds to a bound; infinite without k rows.

    count  int64[r] rows of each class; spare  float64[c] reduced costs of at least 0; k may be float64[q]

    A solution costs the bound and the reduced costs of what it uses.  A pattern in use holds k rows, so at least k
    times a reduced cost of its places is paid; a row in it pays its own and k - 1 of them.
    """
    n = places.row_class.size
    order = np.lexsort((spare[:n], places.pattern))
    rows, own = count[places.row_class][order], places.pattern[order]
    start = np.searchsorted(own, np.arange(places.patterns + 1))
    before = np.concatenate([[0], np.cumsum(rows)])
    ahead = before[:-1] - before[start[own]]

    fewest = np.broadcast_to(np.asarray(k, float), (places.patterns,))

    def least(needed: np.ndarray) -> np.ndarray:
        take = np.clip(needed[own] - ahead, 0, rows)
        return np.bincount(own, weights=take * spare[:n][order], minlength=places.patterns)

    enough = np.diff(before[start]) >= fewest
    pattern = np.where(enough, least(fewest), np.inf)
    return pattern, np.where(enough, least(fewest - 1), np.inf)[places.pattern] + spare[:n]


CLOSE_ENOUGH = 5e-5  # share by which the columns found may cost more than is proved
SMOOTH = 0.6  # share of the best prices in those that groups are looked for at
ADDED = 150  # columns at once, or as many as there are row classes
CUTS = 40  # times that lines are added at most,
LITTLE = 0.004  # until this share of what lies between bound and cost is gained by them
SEEN = (2e-7, 1e-6)  # what the solver tells apart for certain: this, and this share of the largest loss
MOST_DEAR = 1e4  # losses of a row that a row without a group costs, at most
DEAR = 1e-7  # price of a line that counts


class Relaxed(NamedTuple):
    """A linear program as far as it was solved.

    model with the lines that have a price;  price float64[r] of the row classes
    shared  what the prices of lines of several patterns prove;  rows float64[n] of every place
    """

    model: PatternModel
    price: np.ndarray
    shared: SharedPrices
    rows: np.ndarray


class ColumnProgram:
    """The linear program over groups of one pattern, a column each: every row class is published, and the cuts hold.

    Where one thing is asked of a group, the lines of a pattern have no other corners than its groups, so this is the
    whole linear program.  A column costs what its rows lose; a cut counts its rows and one use of its pattern.

    groups  csc_array[columns of the model, c]   rows and use of each
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
        # A row may be published for a price above all others, so that there is a solution before there are columns.
        self.solver, rows = Solver(solver="simplex", presolve="off"), row_classes.count.astype(float)
        self.solver.add_rows(rows, rows)
        self.spares = rows.size
        dearest = float(model.cost.max(initial=0.0))
        self.seen, dear = SEEN[0] + SEEN[1] * dearest, dearest * min(rows.sum(), MOST_DEAR)
        self.solver.add_columns(
            np.full(rows.size, dear), np.full(rows.size, np.inf), list(np.arange(rows.size)[:, None])
        )

    def solve(self, price: np.ndarray, cost: float, deadline: float, violated: Violated) -> Relaxed:
        """From prices of the row classes float64[r], and the cost of a partition, until the deadline.

        Columns are found at prices between the best known and the program's, which move less (Wentges 1997).
        """
        at = best = (price, np.zeros(0))
        proved = value = before = -np.inf
        turns, solved = 0, False
        # Prices bound and find columns; when the program over them is nearly at the bound, cuts follow.
        while True:
            for share in (SMOOTH, 0.0):
                mixed = share * best[0] + (1 - share) * at[0], share * best[1] + (1 - share) * at[1]
                found, bound = self._least(*mixed)
                if bound > proved:
                    proved, best = bound, mixed
                missing = self._missing(found, at)
                if missing.size:
                    break
            if clock() > deadline:
                break
            if solved and (value - proved <= CLOSE_ENOUGH * abs(value) + self.seen or not missing.size):
                if turns == CUTS or (value - before < LITTLE * (cost - value)):
                    break
                more, low = violated(self.model, self._rows())
                if not low.size:
                    break
                turns, before = turns + 1, value
                self._cut(more, low)
                best = best[0], np.append(best[1], np.zeros(low.size))
            else:
                self._add(found, missing)
            self.solver.limit(max(deadline - clock(), 0.0))
            solved = self.solver.solved()
            if not solved:
                break
            value, dual = float(self.solver.getInfo().objective_function_value), self.solver.duals
            at = dual[: price.size], np.maximum(dual[price.size :], 0.0)
        tight = best[1] > DEAR
        model = self.model.with_lines(csr_array(self.lines[tight]), self.low[tight]) if tight.any() else self.model
        return Relaxed(model, best[0], self._shared(best[1]), self._rows()[: self.model.n])

    def _shared(self, price: np.ndarray) -> SharedPrices:
        """What prices of the cuts prove, and what they add to uses and rows."""
        added = -(self.lines.T @ price)
        return SharedPrices(float(price @ self.low), added[self.use], added[: self.model.n])

    def _least(self, price: np.ndarray, of_lines: np.ndarray) -> tuple[LeastGroups, float]:
        """The cheapest group of each pattern at these prices, and what they prove."""
        shared = self._shared(of_lines)
        spare = self.model.cost[: self.model.n] - price[self.places.row_class] + shared.rows
        found = least_groups(self.places, self.count, self.value, spare, self.sorts, shared.uses)
        below = float(self.most @ np.minimum(found.cost, 0.0))
        return found, shared.proved + float(price @ self.row_classes.count) + below

    def _missing(self, found: LeastGroups, at: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Patterns whose group would make the program's solution cheaper, which has these prices."""
        shared = self._shared(at[1])
        spare = self.model.cost[: self.model.n] - at[0][self.places.row_class] + shared.rows
        cost = np.bincount(self.places.pattern, weights=found.rows * spare, minlength=self.places.patterns)
        cost += shared.uses[np.maximum(found.sort, 0), np.arange(cost.size)]
        less = np.flatnonzero((found.sort >= 0) & (cost < -self.seen))
        return less[np.argsort(cost[less], kind="stable")][: max(ADDED, self.row_classes.count.size)]

    def _rows(self) -> np.ndarray:
        """The solution in the columns of the model, float64[c]; those that count values are left at 0."""
        x = self.solver.x[self.spares :]
        return self.groups[:, : x.size] @ x if x.size else np.zeros(self.model.cost.size)

    def _add(self, found: LeastGroups, patterns: np.ndarray) -> None:
        """The groups of these patterns as columns."""
        at = np.full(self.places.patterns, -1)
        at[patterns] = np.arange(patterns.size)
        here = np.flatnonzero((at[self.places.pattern] >= 0) & (found.rows > 0))
        of = at[self.places.pattern[here]]
        row = np.append(here, self.use[found.sort[patterns], patterns])
        entries = np.append(found.rows[here], np.ones(patterns.size)).astype(float)
        shape = self.model.cost.size, patterns.size
        new = csc_array((entries, (row, np.append(of, np.arange(patterns.size)))), shape=shape)
        published = csc_array(
            (found.rows[here].astype(float), (self.places.row_class[here], of)), shape=(self.spares, patterns.size)
        )
        both = csc_array(vstack([published, self.lines @ new]))
        none, any_ = np.zeros(patterns.size), np.full(patterns.size, np.inf)
        self.solver.addCols(
            patterns.size, new.T @ self.model.cost, none, any_, both.nnz, both.indptr[:-1], both.indices, both.data
        )
        self.groups = csc_array(hstack([self.groups, new]))

    def _cut(self, lines: csr_array, low: np.ndarray) -> None:
        """More lines that every partition keeps to."""
        self.lines, self.low = csr_array(vstack([self.lines, lines])), np.append(self.low, low)
        over = csr_array(lines @ self.groups)
        at = over.indices + self.spares
        self.solver.addRows(low.size, low, np.full(low.size, np.inf), over.nnz, over.indptr[:-1], at, over.data)
