"""What every kernel of regions stands on: the areas with what a part must hold, and chance.

A graph is two arrays in compressed rows: the neighbors of v are ``indices[indptr[v]:indptr[v + 1]]``,
each edge stands in both rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit


class Areas(NamedTuple):
    """A graph whose vertices carry features, and what every part of it must hold.

    indptr    int64[n + 1], indices int64[2m]
    features  int64[n, t + s]  weights, then counts of sensitive values
    need      int64[t]    thresholds;  ways int64: l of l-diversity, 1 asks nothing
    """

    indptr: np.ndarray
    indices: np.ndarray
    features: np.ndarray
    need: np.ndarray
    ways: int


@njit(**LEAN_INNER)
def uniform(state: np.ndarray) -> float:
    """One draw from [0, 1) by xorshift64*; ``state`` uint64[1], not 0, is advanced."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit(**LEAN_INNER)
def eligible(total, need, ways):
    """Whether sums over a part meet every threshold and, when ``ways`` > 1, the frequency form of l-diversity.

    total  int64[t + s]  sums of the t weights, then of the s sensitive values
    need   int64[t]      thresholds
    ways   int64         l: no value may have more than 1/l of the records; 1 asks nothing
    """
    t = need.shape[0]
    for i in range(t):
        if total[i] < need[i]:
            return False
    if ways > 1:
        records = 0
        tallest = 0
        for i in range(t, total.shape[0]):
            records += total[i]
            tallest = max(tallest, total[i])
        return records >= ways * tallest
    return True
