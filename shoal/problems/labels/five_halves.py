"""At most 5/2 times the optimum: greedy covering in decreasing order, its leftover spread, or Fold.

Du, Eppstein, Goodrich, Lueker 2009, Theorem 9 and Lemma 8.  The paper omits Lemma 8's proof and the case of at
most three bins, and misprints an inequality (Opt >= 6/5 for <=); docs/labels.md has the completed proof.

Kept from the paper: large (above k / 2, below k), small (at most k / 2), f (largest item of the last bin),
r (the rest of the last bin), x_1 (first large item).
Departure: leftover small items go one by one to the least loaded bin, which needs no Lemma 8 and no case
distinction on the number of bins; ``leftover="thirds"`` follows the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.labels.bounds import lower_bound
from shoal.problems.labels.greedy import cover_greedily, fold_labels, poured
from shoal.problems.labels.instance import Cover, Instance, finish

FACTOR_5_2 = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 9"


def three_parts(sizes: Sequence[int], k: int) -> list[int]:
    """Lemma 8: items of at most k / 2 with a sum of at most k in three parts of at most k / 2 each.

    returns  part of each item, 0, 1 or 2

    Fill part 0 until an item does not fit.  That item is part 1.  Both together exceed k / 2, so the rest,
    part 2, stays below.
    """
    parts, level, over = [], 0, False
    for x in sizes:
        if over:
            parts.append(2)
        elif 2 * (level + x) <= k:
            level += x
            parts.append(0)
        else:
            over = True
            parts.append(1)
    return parts


def five_halves_labels(given: Instance, leftover: str = "least loaded") -> np.ndarray:
    """The better of Fold and the completed Theorem 9, for an instance in decreasing order.

    leftover  "least loaded": one by one;  "thirds": by Lemma 8 to the first three bins, as in the paper
              (needs three closed bins, else one by one)
    """
    label, closed, begun = cover_greedily(given)
    if begun == closed:
        return label  # every bin is full and below 2k, or a single item
    folded = fold_labels(given)
    left = np.flatnonzero(label == closed)
    sizes = given.sizes
    f = left[0]
    if 2 * sizes[f] <= given.k:  # case 1: all of the last bin is small
        level = given.loads(label, begun)[:closed]
        if leftover == "thirds" and closed >= 3:
            label[left] = three_parts(sizes[left].tolist(), given.k)
        else:
            poured(given, label, level)
    else:  # case 2: one large item is left, with every small one
        large = np.flatnonzero(sizes < given.k)
        x_1 = large[0]
        r = sizes[left[1:]].sum()
        if x_1 == f or sizes[x_1] + r < given.k:
            return folded  # the only large item, or case 2.2: Opt > 3/2 k
        label[x_1], label[f] = label[f], label[x_1]  # case 2.1
    return min(label, folded, key=given.cost)


def five_halves(given: Instance) -> Cover:
    """Theorem 9, every case: at most 5/2 times the optimum; O(n log n)."""
    bound = lower_bound(given.sizes, given.k)
    promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    return finish(given, five_halves_labels(given), "five_halves", promise, bound.value, bound.argument)
