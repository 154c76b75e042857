"""Cuts: lines of the class program that no whole solution violates, looked for where a linear one does.

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

import numpy as np
from scipy.sparse import coo_matrix, csr_array

from shoal.model.privacy import Requirement, Rule
from shoal.model.privacy.base import CLOSE, Measure
from shoal.problems.tables.exact.pattern_model import PatternFits, PatternModel, RowClasses

KNOWN = ("band", "entropy", "recursive", "equal", "ordered")
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
