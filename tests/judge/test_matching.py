"""The flow that decides an assignment, against all orders of the rows."""

from __future__ import annotations

import itertools
import random

import numpy as np

from shoal.judge.matching import leaves_matched, saturates
from tests.amount import thinned


def test_a_flow_exists_exactly_when_some_order_of_the_rows_fits() -> None:
    seen = set()
    for seed in range(thinned(600)):
        rng = random.Random(seed)
        left = [rng.randrange(3) for _ in range(6)]
        right = [rng.randrange(3) for _ in range(6)]
        fits = {(a, b) for a in range(3) for b in range(3) if rng.random() < 0.6}
        possible = any(
            all(p in fits for p in zip(order, right, strict=True)) for order in set(itertools.permutations(left))
        )
        i, k = (np.array([p[s] for p in sorted(fits)], np.int64) for s in (0, 1))
        supply, demand = np.bincount(left, minlength=3), np.bincount(right, minlength=3)
        assert saturates(i, k, supply, demand) == possible
        settled = leaves_matched(i, k, supply.copy(), demand.copy())
        assert (settled is not None and saturates(*settled)) == possible
        seen.add(possible)
    assert seen == {True, False}
