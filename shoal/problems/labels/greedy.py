"""Fold and Spread: one pass, and what is left over is shared out.

Du, Eppstein, Goodrich, Lueker, "On the approximability of geometric and geographic generalization and the
min-max bin covering problem", arXiv:0904.3756: Fold is the algorithm of Theorem 7, Spread the simplified form of
Theorem 9's that their section 5 measures.

Departure: the paper merges Fold's leftover bin "with some other bin"; here it is the least loaded one, which the
bound allows and which Theorem 10's preprocessing needs.
"""

from __future__ import annotations

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.labels.bounds import lower_bound
from shoal.problems.labels.instance import Cover, Instance, finish

FACTOR_3 = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 7: at most max(k - 1 + largest item, 3k - 3)"


def bound_of_theorem_7(given: Instance) -> int:
    """max(k - 1 + largest item, 3k - 3)."""
    return max(given.k - 1 + int(given.sizes.max()), 3 * given.k - 3)


def cover_greedily(given: Instance) -> tuple[np.ndarray, int, int]:
    """Next Fit for covering: (bin of each item, bins closed, bins begun); the bin left open is the last."""
    from shoal.kernels.labels.bins import next_fit

    label = np.empty(len(given.sizes), np.int64)
    closed, begun, _ = given.run(next_fit, given.sizes, given.k, label)
    return label, closed, begun


def poured(given: Instance, label: np.ndarray, level: np.ndarray, most: int = -1) -> None:
    """The items of the bin left open go one by one to the least loaded of those closed, whose loads are ``level``.

    most  once the least load would pass it, the rest go to the bins in turn; -1: never.  Writes label, and level
    """
    from shoal.kernels.labels.bins import pour

    left = np.flatnonzero(label == len(level))
    place = np.empty(len(left), np.int64)
    placed = given.run(pour, given.sizes[left], level, place, most)
    place[placed:] = np.arange(len(left) - placed) % len(level)
    label[left] = place


def fold_labels(given: Instance) -> np.ndarray:
    """Greedy covering; the leftover joins the least loaded bin as a whole."""
    label, closed, begun = cover_greedily(given)
    if begun > closed:
        label[label == closed] = int(np.argmin(given.loads(label, begun)[:closed]))
    return label


def spread_labels(given: Instance) -> np.ndarray:
    """Greedy covering; the leftover items go one by one into the least loaded bin while the largest load
    does not grow, and after that to the bins in turn."""
    label, closed, begun = cover_greedily(given)
    if begun > closed:
        level = given.loads(label, begun)[:closed]
        poured(given, label, level, max(level.tolist()))
    return label


def fold(given: Instance) -> Cover:
    """Theorem 7: at most max(k - 1 + largest item, 3k - 3), hence 3 times the optimum; O(n) after ordering."""
    return _finish(given, fold_labels(given), "fold", FACTOR_3)


def spread(given: Instance) -> Cover:
    """The simplified Spread of section 5; O(n log n).

    Every bin gains at most the leftover, which is below k, so Fold's bound holds for it word by word.
    """
    return _finish(given, spread_labels(given), "spread", f"{FACTOR_3}, whose proof covers Spread")


def _finish(given: Instance, label: np.ndarray, method: str, theorem: str) -> Cover:
    bound = lower_bound(given.sizes, given.k)
    promise = Guarantee(factor=3, additive=0, theorem=theorem)
    details = {"theorem_at_most": bound_of_theorem_7(given)}
    return finish(given, label, method, promise, bound.value, bound.argument, details)
