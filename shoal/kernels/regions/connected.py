"""Connected sets of vertices: all of them, or the cheapest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.regions.areas import eligible
from shoal.kernels.regions.frontier import Frontier, fits, given_back, grown, opened


class SetPrices(NamedTuple):
    """What a set costs: its vertices' prices, and a toll once it holds two of the three vertices of a triple.

    price    int64[n]      at least 0
    toll     int64[c]      of each triple
    toll_at  int64[n + 1], tolls_of int64[3c]   the triples of v: tolls_of[toll_at[v]:toll_at[v + 1]]
    """

    price: np.ndarray
    toll: np.ndarray
    toll_at: np.ndarray
    tolls_of: np.ndarray


class Listing(NamedTuple):
    """Which sets are listed, int64 each.

    limit  only sets that cost less
    cap    only sets of weight (first feature) at most this
    every  2: all such sets.  1: only those no smaller one of which (a vertex less) is eligible and connected.
           0: per first vertex some of falling cost, the last of which is the cheapest
    nodes  stop after so many sets looked at;  room  stop after so many members written
    """

    limit: int
    cap: int
    every: int
    nodes: int
    room: int


@njit(**INNER)
def _minimal(indptr, indices, features, need, ways, chosen, size, total):
    """Whether no vertex can go from chosen[:size] and leave a set that is connected and eligible."""
    width = features.shape[1]
    spare = np.empty(width, np.int64)
    reached = np.empty(size, np.bool_)
    queue = np.empty(size, np.int64)
    for gone in range(size):
        for f in range(width):
            spare[f] = total[f] - features[chosen[gone], f]
        if not eligible(spare, need, ways):
            continue
        reached[:] = False
        reached[gone] = True
        queue[0] = 1 if gone == 0 else 0
        reached[queue[0]] = True
        s = 1
        i = 0
        while i < s:
            x = chosen[queue[i]]
            i += 1
            for e in range(indptr[x], indptr[x + 1]):
                for j in range(size):
                    if chosen[j] == indices[e] and not reached[j]:
                        reached[j] = True
                        queue[s] = j
                        s += 1
        if s == size - 1:
            return False
    return True


@njit(cache=True, nogil=True)
def connected_sets(areas, prices, listing):
    """Connected sets that are eligible, each once; or, for every first vertex, the cheapest.

    areas    ``Areas``;  prices ``SetPrices``;  listing ``Listing``
    returns  members int64[], ends int64[], costs int64[], looked int64 (-1 when stopped before the end)

    Vertices are ranked by number: a set is found from its lowest vertex.  Exponential time; O(n * depth) space.
    """
    indptr, indices, features, need, ways = areas
    price, toll, toll_at, tolls_of = prices
    limit, cap, every, nodes, room = listing
    n, width = features.shape
    members = np.empty(room, np.int64)
    ends = np.empty(room, np.int64)
    costs = np.empty(room, np.int64)
    found = 0
    used = 0
    looked = 0
    state = np.zeros(n, np.bool_)
    held = np.zeros(toll.shape[0], np.int64)
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    chosen = np.empty(n + 1, np.int64)
    cost = np.zeros(n + 2, np.int64)
    total = np.zeros((n + 2, width), np.int64)
    for root in range(n):
        bound = limit
        level = 0
        state[:] = False
        state[:root] = True
        state[root] = True
        held[:] = 0
        opened(front, root)
        cost[0] = 0
        total[0, :] = 0
        while level >= 0:
            if (
                front.end[level] == front.begin[level]
            ):  # nothing left to add: give back the marks, then drop the last vertex
                level -= 1
                if level >= 0:
                    u = chosen[level]
                    given_back(front, level + 1, state)
                    for e in range(toll_at[u], toll_at[u + 1]):
                        held[tolls_of[e]] -= 1
                continue
            front.end[level] -= 1
            u = front.place[front.end[level]]
            looked += 1
            if looked > nodes:
                return members[:used], ends[:found], costs[:found], -1
            z = cost[level] + price[u]
            for e in range(toll_at[u], toll_at[u + 1]):
                if held[tolls_of[e]] == 1:
                    z += toll[tolls_of[e]]
            if z >= bound or total[level, 0] + features[u, 0] > cap:
                continue
            for f in range(width):
                total[level + 1, f] = total[level, f] + features[u, f]
            chosen[level] = u
            if eligible(total[level + 1], need, ways):
                if every == 1 and not _minimal(
                    indptr, indices, features, need, ways, chosen, level + 1, total[level + 1]
                ):
                    continue
                if used + level + 1 > room:
                    return members[:used], ends[:found], costs[:found], -1
                for i in range(level + 1):
                    members[used + i] = chosen[i]
                used += level + 1
                ends[found] = used
                costs[found] = z
                found += 1
                if every == 0:
                    bound = z
                if every < 2:
                    continue
            if not fits(indptr, front, level, u):
                return members[:used], ends[:found], costs[:found], -1
            grown(indptr, indices, front, level, u, state)
            cost[level + 1] = z
            for e in range(toll_at[u], toll_at[u + 1]):
                held[tolls_of[e]] += 1
            level += 1
    return members[:used], ends[:found], costs[:found], looked
