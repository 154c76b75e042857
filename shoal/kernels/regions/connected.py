"""Connected sets of vertices: all of them, or the cheapest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit
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


@njit(**LEAN_INNER)
def _minimal(indptr, indices, features, need, ways, chosen, size, total, spare, reached, queue):
    """Whether no vertex can go from chosen[:size] and leave a set that is connected and eligible."""
    width = features.shape[1]
    for gone in range(size):
        for f in range(width):
            spare[f] = total[f] - features[chosen[gone], f]
        if not eligible(spare, need, ways):
            continue
        for j in range(size):
            reached[j] = False
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


def connected_sets(areas, prices, listing):
    """Connected sets that are eligible, each once; or, for every first vertex, the cheapest.

    areas    ``Areas``;  prices ``SetPrices``;  listing ``Listing``
    returns  members int64[], ends int64[], costs int64[], looked int64 (-1 when stopped before the end)

    Vertices are ranked by number: a set is found from its lowest vertex.  Exponential time; O(n * depth) space.
    """
    (n, width), room = areas.features.shape, listing.room
    members, ends, costs = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    growing = _Growing(
        np.empty(n, np.bool_), np.empty(prices.toll.size, np.int64), np.empty(n + 1, np.int64),
        np.empty(n + 2, np.int64), np.empty((n + 2, width), np.int64), np.empty(width, np.int64), np.empty(n, np.bool_),
        np.empty(n, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    looked = _connected_sets(areas, prices, listing, members, ends, costs, front, growing)
    used, found = growing.made.tolist()
    return members[:used], ends[:found], costs[:found], looked


class _Growing(NamedTuple):
    """What the sets are grown in: as wide as the deepest level.

    state bool[n], held int64[c], chosen int64[n + 1], cost int64[n + 2], total int64[n + 2, t + s]; spare, reached,
    queue for one set's connectedness; made int64[2] members and sets written
    """

    state: np.ndarray
    held: np.ndarray
    chosen: np.ndarray
    cost: np.ndarray
    total: np.ndarray
    spare: np.ndarray
    reached: np.ndarray
    queue: np.ndarray
    made: np.ndarray


@njit(**LEAN)
def _connected_sets(areas, prices, listing, members, ends, costs, front, growing):
    """The same, in this room; how many sets it looked at, -1 when stopped before the end."""
    indptr, indices, features, need, ways = areas
    price, toll, toll_at, tolls_of = prices
    n, width = features.shape
    limit, cap, every, nodes, _ = listing
    state, held, chosen, cost, total, spare, reached, queue, made = growing
    found = 0
    used = 0
    looked = 0
    for root in range(n):
        bound = limit
        level = 0
        for v in range(n):
            state[v] = v <= root
        for e in range(held.shape[0]):
            held[e] = 0
        opened(front, root)
        cost[0] = 0
        for f in range(width):
            total[0, f] = 0
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
                return -1
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
                    indptr, indices, features, need, ways, chosen, level + 1, total[level + 1], spare, reached, queue
                ):
                    continue
                if used + level + 1 > members.shape[0]:
                    return -1
                for i in range(level + 1):
                    members[used + i] = chosen[i]
                used += level + 1
                ends[found] = used
                costs[found] = z
                found += 1
                made[0], made[1] = used, found
                if every == 0:
                    bound = z
                if every < 2:
                    continue
            if not fits(indptr, front, level, u):
                return -1
            grown(indptr, indices, front, level, u, state)
            cost[level + 1] = z
            for e in range(toll_at[u], toll_at[u + 1]):
                held[tolls_of[e]] += 1
            level += 1
    return looked
