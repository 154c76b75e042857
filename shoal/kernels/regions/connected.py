"""Connected sets of vertices: enumeration, the cheapest set of each vertex, separators, and cut vertices.

A set grows from its first vertex by vertices of a frontier, level by level, so that each set is found once. Around
vertices with few sets, sets below the thresholds are listed too, up to those that just meet them. A separator bounds
the number of regions. Components that a single vertex cuts off, and that can't be regions, must share its region.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.regions.areas import Areas, eligible, uniform


class Frontier(NamedTuple):
    """Vertices that may be added, for all levels, concatenated.

    place  int64[..]; those of a level are place[begin[level]:end[level]]
    stop   end of a level when it was created; vertices before it must still be unmarked
    fresh  number of vertices that a level marked, at its beginning
    """

    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    stop: np.ndarray
    fresh: np.ndarray


@njit(**STEP)
def opened(front, root):
    """The first level: only the root."""
    front.begin[0] = 0
    front.end[0] = 1
    front.stop[0] = 1
    front.fresh[0] = 0
    front.place[0] = root


@njit(**STEP)
def given_back(front, level, taken):
    """Unmark the vertices that a finished level had marked."""
    for i in range(front.fresh[level]):
        taken[front.place[front.begin[level] + i]] = False


@njit(**STEP)
def fits(indptr, front, level, u):
    """Whether there is room for another level if u is added."""
    most = front.end[level] - front.begin[level] + indptr[u + 1] - indptr[u]
    return front.stop[level] + most <= front.place.shape[0]


@njit(**STEP)
def grown(indptr, indices, front, level, u, taken):
    """The next level: the unmarked neighbors of u, which are unmarked again later, then the remaining vertices."""
    start = front.stop[level]
    k = start
    for e in range(indptr[u], indptr[u + 1]):
        x = indices[e]
        if not taken[x]:
            taken[x] = True
            front.place[k] = x
            k += 1
    front.fresh[level + 1] = k - start
    for i in range(front.begin[level], front.end[level]):
        front.place[k] = front.place[i]
        k += 1
    front.begin[level + 1] = start
    front.end[level + 1] = k
    front.stop[level + 1] = k


class SetPrices(NamedTuple):
    """The price of a set: that of its vertices, plus that of each cut of which it contains two of three vertices.

    price     int64[n]: at least 0
    cut_price     int64[c]: of each triple
    cut_start  int64[n + 1], cuts_of int64[3c]: the triples of v are cuts_of[cut_start[v]:cut_start[v + 1]]
    """

    price: np.ndarray
    cut_price: np.ndarray
    cut_start: np.ndarray
    cuts_of: np.ndarray


class Listing(NamedTuple):
    """Which sets are listed, int64 each.

    limit  only sets with a smaller price
    cap    only sets with a weight (first feature) of at most this
    every  2: all such sets.  1: only sets without an eligible connected subset of one vertex less.
           0: for each first vertex, sets of decreasing price; the last one is the cheapest
    nodes  most sets to examine
    capacity  most members to write
    """

    limit: int
    cap: int
    every: int
    nodes: int
    capacity: int


@njit(**LEAN_INNER)
def _minimal(areas, growing, size):
    """Whether no vertex can be removed from the first ``size`` chosen so that the rest is connected and eligible."""
    indptr, indices, features, need, l = areas
    chosen, spare, reached, queue = growing.chosen, growing.spare, growing.reached, growing.queue
    total = growing.total[size]
    width = features.shape[1]
    # If the rest without one vertex is eligible, a breadth-first search decides whether it is connected.
    for gone in range(size):
        for f in range(width):
            spare[f] = total[f] - features[chosen[gone], f]
        if not eligible(spare, need, l):
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
    """Connected eligible sets, each once; or, for every first vertex, the cheapest.

    areas    ``Areas``;  prices: ``SetPrices``;  listing: ``Listing``
    returns  members int64[], ends int64[], costs int64[], number of sets examined int64 (-1 if stopped early)

    A set is found from its vertex with the least number. Exponential time; O(n * depth) space.
    """
    (n, width), capacity = areas.features.shape, listing.capacity
    members, ends, costs = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    growing = _Growing(
        np.empty(n, np.bool_), np.empty(prices.cut_price.size, np.int64), np.empty(n + 1, np.int64),
        np.empty(n + 2, np.int64), np.empty((n + 2, width), np.int64), np.empty(width, np.int64), np.empty(n, np.bool_),
        np.empty(n, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    looked = _connected_sets(areas, prices, listing, members, ends, costs, front, growing)
    used, found = growing.made.tolist()
    return members[:used], ends[:found], costs[:found], looked


class _Growing(NamedTuple):
    """Working arrays for the growing sets, as wide as the deepest level.

    state bool[n], held int64[c], chosen int64[n + 1], cost int64[n + 2], total int64[n + 2, t + s]
    spare, reached, queue  for the connectedness of one set
    made  int64[2]: members and sets written
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
    """``connected_sets`` on arrays that Python allocated; returns the number of sets examined, -1 if stopped early."""
    indptr, indices, features, need, l = areas
    price, cut_price, cut_start, cuts_of = prices
    n, width = features.shape
    limit, cap, every, nodes, _ = listing
    state, held, chosen, cost, total, _, _, _, made = growing
    found = 0
    used = 0
    looked = 0
    # The sets whose least vertex is the root: smaller vertices are excluded. Depth first, each level adds a vertex of
    # the frontier. A vertex that a level skips stays excluded below it, so no set is found twice.
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
            if front.end[level] == front.begin[level]:
                level -= 1  # no vertex left to add: unmark, then remove the last vertex
                if level >= 0:
                    u = chosen[level]
                    given_back(front, level + 1, state)
                    for e in range(cut_start[u], cut_start[u + 1]):
                        held[cuts_of[e]] -= 1
                continue
            front.end[level] -= 1
            u = front.place[front.end[level]]
            looked += 1
            if looked > nodes:
                return -1
            z = cost[level] + price[u]
            for e in range(cut_start[u], cut_start[u + 1]):
                if held[cuts_of[e]] == 1:
                    z += cut_price[cuts_of[e]]
            if z >= bound or total[level, 0] + features[u, 0] > cap:
                continue
            for f in range(width):
                total[level + 1, f] = total[level, f] + features[u, f]
            chosen[level] = u
            if eligible(total[level + 1], need, l):
                if every == 1 and not _minimal(areas, growing, level + 1):
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
            for e in range(cut_start[u], cut_start[u + 1]):
                held[cuts_of[e]] += 1
            level += 1
    return looked


@njit(cache=True, nogil=True)
def light_sets(indptr, indices, weights, need, few, capacity):
    """Every connected set of listed vertices that doesn't meet the thresholds without its last vertex, each once.

    indptr, indices  the graph;  weights: int64[n, t], need: int64[t]
    few      int64: a vertex that is the last of more sets than this, among the listed ones before it, is not listed
    capacity int64: most members to write; after that, no vertex is listed
    returns  members int64[], ends int64[]: the sets, concatenated
             full bool[]: whether the set meets the thresholds
             listed bool[n]

    A set is found from its last vertex, so number the vertices by descending weight. A connected set of listed vertices
    that meets the thresholds contains a full set; one that doesn't is in the list itself.
    O(n few * depth * degree) time, O(n few * depth) space.
    """
    n, width = weights.shape
    members = np.empty(capacity, np.int64)
    ends = np.empty(capacity, np.int64)
    full = np.empty(capacity, np.bool_)
    found = 0
    used = 0
    listed = np.ones(n, np.bool_)
    taken = np.ones(n, np.bool_)  # after the last vertex, or not listed
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    chosen = np.empty(n + 1, np.int64)
    total = np.zeros((n + 2, width), np.int64)
    # As in ``_connected_sets``, from the last vertex of a set. If the root is in too many sets, its sets are removed
    # from the output.
    for root in range(n):
        found_before = found
        used_before = used
        level = 0
        opened(front, root)
        while level >= 0:
            if not listed[root] or front.end[level] == front.begin[level]:
                level -= 1  # no vertex left to add: unmark, then remove the last vertex
                if level >= 0:
                    given_back(front, level + 1, taken)
                continue
            front.end[level] -= 1
            u = front.place[front.end[level]]
            if found - found_before >= few or used + level + 1 > capacity or not fits(indptr, front, level, u):
                listed[root] = False
                continue
            chosen[level] = u
            for j in range(width):
                total[level + 1, j] = total[level, j] + weights[u, j]
            for i in range(level + 1):
                members[used + i] = chosen[i]
            used += level + 1
            ends[found] = used
            full[found] = eligible(total[level + 1], need, 1)
            found += 1
            if full[found - 1]:
                continue
            grown(indptr, indices, front, level, u, taken)
            level += 1
        taken[root] = not listed[root]
        if not listed[root]:
            found = found_before
            used = used_before
    return members[:used], ends[:found], full[:found], listed


@njit(**LEAN_INNER)
def _most_sets(total, need):
    """The largest number of sets that meet the thresholds with these sums in total."""
    most = total[0] // need[0]
    for j in range(1, need.shape[0]):
        most = min(most, total[j] // need[j])
    return most


class _Parts(NamedTuple):
    """Working arrays for the components of a graph without S.

    kept bool[n]: the best S;  queue, mark: int64[n];  total: int64[t] weights of a component;  pair: int64[2]
    """

    kept: np.ndarray
    queue: np.ndarray
    mark: np.ndarray
    total: np.ndarray
    pair: np.ndarray


@njit(**LEAN_INNER)
def _component(areas, out, first, stamp, parts):
    """Mark the component of a vertex outside S and sum its weights; returns its number of vertices."""
    indptr, indices, weights = areas.indptr, areas.indices, areas.features
    queue, mark, total = parts.queue, parts.mark, parts.total
    for j in range(total.shape[0]):
        total[j] = 0
    queue[0] = first
    mark[first] = stamp
    s = 1
    i = 0
    while i < s:
        x = queue[i]
        i += 1
        for j in range(total.shape[0]):
            total[j] += weights[x, j]
        for e in range(indptr[x], indptr[x + 1]):
            y = indices[e]
            if not out[y] and mark[y] != stamp:
                mark[y] = stamp
                queue[s] = y
                s += 1
    return s


def separator(areas: Areas, out: np.ndarray, search: tuple[int, int, float], state: np.ndarray) -> int:
    """Minimize |S| + sum over components D of G - S of (largest number of regions in D) over vertex sets S.

    For every S, the sum bounds the number of regions: a region contains a vertex of S, or lies in one component.

    areas    ``Areas`` with only weights as features
    out      bool[n]: the initial S; on return, the S with the least sum
    search   (steps, visits, temperature) of the annealing: one vertex, or two neighbors, change sides; it ends after so
             many visited vertices
    state    uint64[1]: random state
    returns  int64: the least sum

    O(size of the changed components) per step.
    """
    n, t = areas.features.shape
    queue, mark, pair = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(2, np.int64)
    parts = _Parts(out.copy(), queue, mark, np.zeros(t, np.int64), pair)
    return int(_separator(areas, out, search, state, parts))


@njit(**LEAN)
def _separator(areas, out, search, state, parts):
    """``separator`` on arrays that Python allocated."""
    indptr, indices, weights, need = areas.indptr, areas.indices, areas.features, areas.need
    steps, visits, temperature = search
    kept, _, mark, total, pair = parts
    n = weights.shape[0]
    stamp = 1
    value = 0
    for v in range(n):
        if out[v]:
            value += 1
        elif mark[v] < stamp:
            _component(areas, out, v, stamp, parts)
            value += _most_sets(total, need)
    best = value
    if n == 0:
        return best
    # Annealing: a vertex, or both ends of an edge, change sides. Only the adjacent components change their value.
    for _ in range(steps):
        if visits < 0:
            break
        pair[0] = int(uniform(state) * n)
        many = 1
        if uniform(state) < 0.5 and indptr[pair[0] + 1] > indptr[pair[0]]:
            v = pair[0]
            pair[1] = indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]
            many = 2
        before = 0
        after = 0
        for turn in range(2):  # components around the pair, before and after the change
            stamp += 1
            sum_ = 0
            for a in range(many):
                v = pair[a]
                sum_ += out[v]
                for e in range(indptr[v] - 1, indptr[v + 1]):
                    x = v if e < indptr[v] else indices[e]
                    if not out[x] and mark[x] != stamp:
                        visits -= _component(areas, out, x, stamp, parts)
                        sum_ += _most_sets(total, need)
            if turn == 0:
                before = sum_
                for a in range(many):
                    out[pair[a]] = not out[pair[a]]
            else:
                after = sum_
        if after <= before or uniform(state) < np.exp((before - after) / temperature):
            value += after - before
            if value < best:
                best = value
                for v in range(n):  # assigning whole arrays would compile shape errors, which takes a second or two
                    kept[v] = out[v]
        else:
            for a in range(many):
                out[pair[a]] = not out[pair[a]]
    for v in range(n):
        out[v] = kept[v]
    return best


@njit(cache=True, nogil=True)
def low_points(indptr, indices, gone):
    """Depth-first search of a graph without the vertices ``gone`` (bool[n]), with Tarjan's low points; O(m + n).

    returns  order int64[r]: vertices in discovery order; parent int64[n] (-1 at a root); disc int64[n]: discovery
             index; low int64[n]: the least disc reached by an edge from the vertex or its subtree
    """
    n = gone.size
    disc, low, parent = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    at, stack, order = indptr[:-1].copy(), np.empty(n, np.int64), np.empty(n, np.int64)
    clock = 0
    for root in range(n):
        if disc[root] >= 0 or gone[root]:
            continue
        top = 0
        stack[0], disc[root], low[root], order[clock] = root, clock, clock, root
        clock += 1
        # Follow the next edge of the vertex on top of the stack. If it has none left, its low point updates that of its
        # parent.
        while top >= 0:
            v = stack[top]
            if at[v] < indptr[v + 1]:
                u = indices[at[v]]
                at[v] += 1
                if gone[u]:
                    continue
                if disc[u] < 0:
                    disc[u], low[u], order[clock], parent[u] = clock, clock, u, v
                    clock += 1
                    top += 1
                    stack[top] = u
                elif u != parent[v]:
                    low[v] = min(low[v], disc[u])
                continue
            top -= 1
            if parent[v] >= 0:
                low[parent[v]] = min(low[parent[v]], low[v])
    return order[:clock], parent, disc, low


@njit(cache=True, nogil=True)
def dependent_weights(indptr, indices, weights, need):
    """For every vertex v: its weight plus that of all components of G - v that miss a threshold.

    Such a component can't contain a region, so it belongs to v's region, and the sum is a lower bound of that region's
    weight.

    weights  int64[n, t], need int64[t]
    returns  int64[n]: in the first weight. O(m + n t) time
    """
    n, t = weights.shape
    order, parent, disc, low = low_points(indptr, indices, np.zeros(n, np.bool_))
    sub = weights.copy()
    off = np.zeros((n, t), np.int64)  # weight of all components below v that v cuts off
    held = weights[:, 0].copy()
    root = np.arange(n)
    for i in range(n):
        v = order[i]
        if parent[v] >= 0:
            root[v] = root[parent[v]]
    for i in range(n - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        if p < 0:
            continue
        light = False
        for j in range(t):
            sub[p, j] += sub[v, j]
            light = light or sub[v, j] < need[j]
        if low[v] >= disc[p]:
            for j in range(t):
                off[p, j] += sub[v, j]
            if light:
                held[p] += sub[v, 0]
    for v in range(n):  # the component above v; a root has none
        light = False
        for j in range(t):
            light = light or sub[root[v], j] - weights[v, j] - off[v, j] < need[j]
        if light and parent[v] >= 0:
            held[v] += sub[root[v], 0] - weights[v, 0] - off[v, 0]
    return held
