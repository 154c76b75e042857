"""Lines for the class program: no more classes in a set of rows than find room there.

Let R be a set of rows and m > 0.  A class in use needs r rows of its pattern (a class of several parts the sum of
theirs); all but o rows of the pattern lie in R, so it holds r - o rows of R or more, and r - o for every part.  Every
row is published once, so over the classes in use, or over their parts,

    sum of floor(max(0, r - o) / m) <= floor(|R| / m).

Without these lines a linear program opens two and a half classes of k rows over 2.5 k rows.  As for odd sets
(``odd_sets``), lines are looked for that the solution in hand violates.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from shoal.problems.tables.exact.pattern_model import Kinds, Model, Places

PAIRS = 20_000  # unions of two patterns looked at
LINES = 150  # added at once
CLEARLY = 1e-3  # by which a line must be violated


def crowded(kinds: Kinds, places: Places, model: Model, least: int, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """(lines csr_array[c, columns], low float64[c]) that y, float64[columns], violates: lines @ y >= low holds for
    every solution.

    R is all rows, those of a pattern in use, or of two that share some.  m is the least number for which the right side
    is that of ``least``, the rows of the least class.  O(R * used * kinds).
    """
    uses, count = model.uses, kinds.count.astype(float)
    size = np.bincount(places.pattern, weights=count[places.kind], minlength=places.patterns)
    own = model.pattern[uses.column]
    some = np.flatnonzero(y[uses.column] > CLEARLY / LINES)
    used, of_used = np.unique(own[some], return_inverse=True)
    member = np.zeros((places.patterns, count.size), bool)
    member[places.pattern, places.kind] = True
    member = member[used]
    sets = _sets(member)
    rows = sets @ count
    right = np.floor(rows / least)
    m = np.floor(rows / (right + 1)) + 1
    outside = (size[used] - (sets * count) @ member.T.astype(float))[:, of_used.reshape(-1)]
    broken = _times(uses.rows[some], outside, m[:, None]) @ y[uses.column[some]] - right
    worst = np.argsort(-broken, kind="stable")[:LINES]
    lines = []
    for s in worst[broken[worst] > CLEARLY]:
        inside = np.bincount(places.pattern, weights=(sets[s] * count)[places.kind], minlength=places.patterns)
        lines.append(-_times(uses.rows, (size - inside)[own], m[s]))
    full = np.zeros((len(lines), model.cost.size))
    full[:, uses.column] = np.reshape(lines, (len(lines), uses.column.size))
    return csr_array(full), -right[worst[: len(lines)]]


def _times(rows: np.ndarray, outside: np.ndarray, m: np.ndarray | float) -> np.ndarray:
    """How often m rows of a set are in a use at least."""
    return np.floor(np.maximum(rows - outside, 0.0) / m)


def _sets(member: np.ndarray) -> np.ndarray:
    """Sets of kinds that may be crowded, bool[s, kinds], from those of the patterns in use."""
    one, other = np.triu_indices(member.shape[0], 1)
    near = (member.astype(float) @ member.T.astype(float))[one, other] > 0
    one, other = one[near], other[near]
    if one.size > PAIRS:
        some = np.random.default_rng(0).choice(one.size, PAIRS, replace=False)
        one, other = one[some], other[some]
    everyone = np.ones((1, member.shape[1]), bool)
    return np.concatenate([everyone, member, member[one] | member[other]])
