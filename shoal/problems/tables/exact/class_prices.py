"""What prices of the rows prove: a bound, and what every class adds to it that is used all the same.

Let u be a price for each row of a kind, of either sign.  A solution costs the sum of u over all rows and, for every
class that it uses, the sum of (loss - u) over the class's rows.  So with the least of these sums for every pattern, a
bound is the sum of u plus those least sums that are negative; and a solution that uses a pattern, or a row of a kind
in it, costs at least that bound plus the least sum over the pattern's classes, or over those with such a row.

The least sums are found by taking rows in order: the first of as many values as are asked, then the cheapest others up
to the rows asked and while they are negative, of each value at most as many as may be (an exchange argument).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.model.privacy import Requirement
from shoal.problems.tables.exact.pattern_model import Kinds, Places, part_sizes

ANY = np.iinfo(np.int64).max // 4  # as a cap: none


class Asked(NamedTuple):
    """At least some rows and different values of a sensitive column, at most ``cap`` rows of each value."""

    cap: int
    rows: int
    values: int


class Shared(NamedTuple):
    """What prices of at least 0 of lines over several patterns prove, and what a use adds to it, float64[u, q] >= 0:
    u = 1, a pattern in use, or one part of each size."""

    proved: float
    added: np.ndarray


def priced(
    kinds: Kinds, places: Places, need: Requirement, loss: np.ndarray, price: np.ndarray, shared: Shared | None = None
) -> tuple[float, np.ndarray, np.ndarray]:
    """(bound, what the use of each pattern float64[q] and of each place float64[n] adds to it); infinite: none may.

    loss  float64[q] of a row of each pattern; price  float64[r] of a row of each kind.  O(n log n) for each part size.
    """
    spare = loss[places.pattern] - price[places.kind]
    rows = kinds.count[places.kind]
    size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
    shared = shared or Shared(0.0, np.zeros((1, places.patterns)))
    once = shared.added.min(axis=0)  # whatever use it is
    below, patterns, taking = [], [], []
    for column, several, classes in _conditions(need):
        value = kinds.value[places.kind, column] if column >= 0 else np.zeros(places.kind.size, np.int64)
        table = (places, rows, value, spare)
        whole = np.min([cheapest(*table, c) for c in classes], axis=0)
        rest = np.min([cheapest(*table, Asked(c.cap, c.rows - 1, c.values - 1)) for c in classes], axis=0)
        most = np.maximum(size // classes[0].rows, 1) if several else np.ones(places.patterns)
        more = (most - 1) * np.minimum(whole, 0.0) + once
        below.append(np.minimum(whole + more, 0.0))
        patterns.append(whole + more)
        taking.append((rest + more)[places.pattern] + spare)
    least = np.max(below, axis=0)
    pattern = np.max(patterns, axis=0) - least
    place = np.maximum(np.max(taking, axis=0) - least[places.pattern], pattern[places.pattern])
    return shared.proved + float(price @ kinds.count) + float(least.sum()), pattern, place


def _conditions(need: Requirement) -> list[tuple[int, bool, list[Asked]]]:
    """(sensitive column or -1, whether a pattern may hold several, what one of them is) of each thing asked."""
    out: list[tuple[int, bool, list[Asked]]] = []
    for i, j in enumerate(need.sensitive_columns):
        l, u = need.frequency[j], need.distinct[j]
        if l > 1:
            out.append((i, True, [Asked(g, max(need.k, l * g), 1) for g in part_sizes(need.k, l).tolist()]))
        if u > l:
            out.append((i, False, [Asked(ANY, max(need.k, u), u)]))
    return out or [(-1, False, [Asked(ANY, need.k, 1)])]


def cheapest(places: Places, rows: np.ndarray, value: np.ndarray, spare: np.ndarray, asked: Asked) -> np.ndarray:
    """float64[q]: the least sum of ``spare`` over classes of each pattern that are as asked; infinite where none is."""
    order = np.lexsort((spare, value, places.pattern))
    own, cost, value = places.pattern[order], spare[order], value[order]
    head = (np.diff(own, prepend=-1) != 0) | (np.diff(value, prepend=-1) != 0)
    left = np.clip(asked.cap - _ahead(rows[order], head), 0, rows[order])
    total = np.bincount(own, weights=left, minlength=places.patterns)
    values = np.bincount(own[head], minlength=places.patterns)

    first = np.flatnonzero(head)
    first = first[np.lexsort((cost[first], own[first]))]
    new = np.diff(own[first], prepend=-1) != 0
    first = first[_ahead(np.ones(first.size, np.int64), new) < asked.values]
    out = np.bincount(own[first], weights=cost[first], minlength=places.patterns)
    left[first] -= 1

    order = np.lexsort((cost, own))
    own, cost, left = own[order], cost[order], left[order]
    missing = max(asked.rows - asked.values, 0) - _ahead(left, np.diff(own, prepend=-1) != 0)
    taken = np.where(cost < 0, left, np.clip(missing, 0, left))
    out = out + np.bincount(own, weights=taken * cost, minlength=places.patterns)
    return np.where((total >= asked.rows) & (values >= asked.values), out, np.inf)


def _ahead(rows: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Rows before each entry since the last one that begins something."""
    before = np.cumsum(rows) - rows
    return before - before[begins][np.cumsum(begins) - 1] if rows.size else before
