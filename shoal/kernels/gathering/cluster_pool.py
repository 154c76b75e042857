"""Clusters in one array, for searches that rewrite a few of them at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit


class ClusterPool(NamedTuple):
    """Clusters as slices of one array, rewritten at its end and packed when that is reached.

    (1) a number in use has size > 0 and its points are arena[start : start + size]; (2) owner[i] is the number of the
    slice that holds i, -1 where none does; (3) tops = (end of the arena in use, numbers on the stack of unused ones).
    packed is room to pack in.
    """

    start: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    center: np.ndarray
    owner: np.ndarray
    arena: np.ndarray
    packed: np.ndarray
    unused: np.ndarray
    tops: np.ndarray


def make_pool(owner: np.ndarray, center: np.ndarray, r: int) -> ClusterPool:
    """A pool of the clusters in owner; costs are still 0."""
    n = owner.size
    slots = max(n // max(r, 1) + 1, int(owner.max(initial=-1)) + 1) + 1
    held = np.flatnonzero(owner >= 0)
    size = np.bincount(owner[held], minlength=slots)
    arena, unused, middle = np.empty(4 * n + 8, np.int64), np.empty(slots, np.int64), np.full(slots, -1)
    arena[: held.size] = held[np.argsort(owner[held], kind="stable")]
    used, spare = np.flatnonzero(size), np.flatnonzero(size == 0)[::-1]
    middle[used], unused[: spare.size] = center[used], spare
    tops = np.array([held.size, spare.size])
    return ClusterPool(
        size.cumsum() - size, size, np.zeros(slots), middle, owner, arena, np.empty_like(arena), unused, tops
    )


@njit(**LEAN_INNER)
def store(pool, c, rows, chosen, low, high, center, cost):
    """Cluster c becomes rows[chosen[low:high]]; returns c, or -1 where that is nothing."""
    k = high - low
    if pool.tops[0] + k > pool.arena.size:
        end = 0
        for s in range(pool.size.size):
            for e in range(pool.size[s]):
                pool.packed[end + e] = pool.arena[pool.start[s] + e]
            pool.start[s] = end
            end += pool.size[s]
        for e in range(end):
            pool.arena[e] = pool.packed[e]
        pool.tops[0] = end
    end = pool.tops[0]
    pool.start[c], pool.size[c], pool.cost[c], pool.center[c] = end, k, cost, center
    for e in range(k):
        i = rows[chosen[low + e]]
        pool.arena[end + e] = i
        pool.owner[i] = c
    pool.tops[0] = end + k
    if k == 0:
        pool.unused[pool.tops[1]] = c
        pool.tops[1] += 1
        return -1
    return c


@njit(**LEAN_INNER)
def fresh(pool):
    """A number not in use."""
    pool.tops[1] -= 1
    return pool.unused[pool.tops[1]]


@njit(**LEAN_INNER)
def fill(pool, c, rows, k):
    """Append cluster c to rows from place k on; returns the new length."""
    for e in range(pool.size[c]):
        rows[k + e] = pool.arena[pool.start[c] + e]
    return k + pool.size[c]
