"""Lines for the class program from models that are more than size, shares and numbers of values.

The classes that meet a model form a convex cone in their rows by value (``docs/exact.md``), so a class that does not is
cut off by a plane through 0: a line over the rows of one pattern that every eligible class obeys.  As for crowded sets,
lines are looked for that the solution in hand violates.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from shoal.model.privacy import Requirement, Rule
from shoal.model.privacy.base import CLOSE, Measure
from shoal.problems.tables.exact.pattern_model import Kinds, Model, Places

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


def rows_of(kinds: Kinds, places: Places, need: Requirement, rule: Rule, x: np.ndarray) -> np.ndarray:
    """float64[q, v]: rows of each value that each pattern has."""
    out = np.zeros((places.patterns, len(rule.table)))
    np.add.at(out, (places.pattern, _values(kinds, places, need, rule)), x)
    return out


def _values(kinds: Kinds, places: Places, need: Requirement, rule: Rule) -> np.ndarray:
    """int64[n]: value of the rule's column at each place."""
    return kinds.value[places.kind, need.sensitive_columns.index(rule.columns[0])]


def ruled(kinds: Kinds, places: Places, model: Model, need: Requirement, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """(lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates; as in ``crowded``.

    O(patterns in use x values^2).
    """
    start = np.searchsorted(places.pattern, np.arange(places.patterns + 1))
    value: list[np.ndarray] = []
    column: list[np.ndarray] = []
    for rule in need.rules:
        measure, rows = rule.measure, sum(rule.table)
        own, held = _values(kinds, places, need, rule), rows_of(kinds, places, need, rule, y[: model.n])
        for p in np.flatnonzero(held.sum(axis=1) > CLEARLY):
            found = planes(measure, held[p], rows)
            here = np.arange(start[p], start[p + 1])
            for plane in found[found @ held[p] < -CLEARLY]:
                value.append(plane[own[here]])
                column.append(here)
    width = np.cumsum([0, *(c.size for c in column)])
    flat = (np.concatenate([*value, np.zeros(0)]), np.concatenate([*column, np.zeros(0, np.int64)]), width)
    return csr_array(flat, shape=(len(column), model.cost.size)), np.zeros(len(column))
