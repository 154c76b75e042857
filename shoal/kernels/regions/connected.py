"""Connected sets of vertices, listed or the cheapest of them, and the vertices that hold a graph together.

A set grows from its first vertex by vertices of a frontier, level by level, so that each is met once.  Sets that do not
meet the thresholds are listed with those that just do, around vertices where they are few.  A separator bounds the
number of regions; what a single vertex cuts off must share its region.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.regions.areas import Areas, eligible, uniform


class Frontier(NamedTuple):
    """Vertices that may be added, of all levels one after the other.

    place  int64[..]; those of a level are place[begin[level]:end[level]]
    stop   end of a level when it was made: what lies before still has to be given back
    fresh  how many of a level, at its beginning, that level marked
    """

    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    stop: np.ndarray
    fresh: np.ndarray


@njit(**STEP)
def opened(front, root):
    """The first level: the root alone."""
    front.begin[0] = 0
    front.end[0] = 1
    front.stop[0] = 1
    front.fresh[0] = 0
    front.place[0] = root


@njit(**STEP)
def given_back(front, level, taken):
    """Free what a level that is left had marked."""
    for i in range(front.fresh[level]):
        taken[front.place[front.begin[level] + i]] = False


@njit(**STEP)
def fits(indptr, front, level, u):
    """Whether there is room for a level below this one, when u is added."""
    most = front.end[level] - front.begin[level] + indptr[u + 1] - indptr[u]
    return front.stop[level] + most <= front.place.shape[0]


@njit(**STEP)
def grown(indptr, indices, front, level, u, taken):
    """The next level: first the neighbors of u that nobody took, so that they can be given back, then what is left."""
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
    """What a set costs: its vertices' prices, and that of a cut once it holds two of the three vertices of a triple.

    price    int64[n]      at least 0
    cut_price     int64[c]      of each triple
    cut_start  int64[n + 1], cuts_of int64[3c]   the triples of v: cuts_of[cut_start[v]:cut_start[v + 1]]
    """

    price: np.ndarray
    cut_price: np.ndarray
    cut_start: np.ndarray
    cuts_of: np.ndarray


class Listing(NamedTuple):
    """Which sets are listed, int64 each.

    limit  only sets that cost less
    cap    only sets of weight (first feature) at most this
    every  2: all such sets.  1: only those no smaller one of which (a vertex less) is eligible and connected.
           0: per first vertex some of falling cost, the last of which is the cheapest
    nodes  stop after so many sets looked at;  capacity  stop after so many members written
    """

    limit: int
    cap: int
    every: int
    nodes: int
    capacity: int


@njit(**LEAN_INNER)
def _minimal(areas, growing, size):
    """Whether no vertex can go from the first ``size`` chosen and leave a set that is connected and eligible."""
    indptr, indices, features, need, l = areas
    chosen, spare, reached, queue = growing.chosen, growing.spare, growing.reached, growing.queue
    total = growing.total[size]
    width = features.shape[1]
    # If the rest without one vertex is eligible, a breadth-first search tells whether it is connected.
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
    """Connected sets that are eligible, each once; or, for every first vertex, the cheapest.

    areas    ``Areas``;  prices ``SetPrices``;  listing ``Listing``
    returns  members int64[], ends int64[], costs int64[], looked int64 (-1 when stopped before the end)

    Vertices are ranked by number: a set is found from its lowest vertex.  Exponential time; O(n * depth) space.
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
    """``connected_sets`` in arrays that Python made; how many sets it looked at, -1 when stopped before the end."""
    indptr, indices, features, need, l = areas
    price, cut_price, cut_start, cuts_of = prices
    n, width = features.shape
    limit, cap, every, nodes, _ = listing
    state, held, chosen, cost, total, _, _, _, made = growing
    found = 0
    used = 0
    looked = 0
    # The sets whose lowest vertex is the root: vertices up to it are closed. Depth first, each level adds a vertex of
    # the frontier, and what a level leaves out stays out below it, so that no set comes twice.
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
                level -= 1  # nothing left to add: give back the marks, then drop the last vertex
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
    """Every connected set of listed vertices up to the one vertex by which it meets the thresholds, each once.

    indptr, indices  the graph;  weights int64[n, t], need int64[t]
    few      int64    a vertex that is the last of more sets than this, among the listed ones before it, is not listed
    capacity int64    no more members are written than this; from there on nothing is listed
    returns  members int64[], ends int64[]  the sets, one after the other
             full bool[]                    whether the set meets the thresholds
             listed bool[n]

    A set is found from its last vertex, so that number the vertices by falling weight.  A connected set of listed
    vertices that meets the thresholds contains a full one, and one that does not is there itself.
    O(n few * depth * degree) time, O(n few * depth) space.
    """
    n, width = weights.shape
    members = np.empty(capacity, np.int64)
    ends = np.empty(capacity, np.int64)
    full = np.empty(capacity, np.bool_)
    found = 0
    used = 0
    listed = np.ones(n, np.bool_)
    taken = np.ones(n, np.bool_)  # or later than the last vertex, or not listed
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    chosen = np.empty(n + 1, np.int64)
    total = np.zeros((n + 2, width), np.int64)
    # As in ``_connected_sets``, from the last vertex of a set. If the root is in too many sets, what was written for it
    # is taken back.
    for root in range(n):
        found_before = found
        used_before = used
        level = 0
        opened(front, root)
        while level >= 0:
            if not listed[root] or front.end[level] == front.begin[level]:
                level -= 1  # nothing left to add: give back the marks, then drop the last vertex
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
    """How many sets that meet the thresholds the given sums could make at most."""
    most = total[0] // need[0]
    for j in range(1, need.shape[0]):
        most = min(most, total[j] // need[j])
    return most


class _Parts(NamedTuple):
    """What the components of a graph without S are found in.

    kept bool[n] the best S;  queue, mark int64[n];  total int64[t] weights of a component;  pair int64[2]
    """

    kept: np.ndarray
    queue: np.ndarray
    mark: np.ndarray
    total: np.ndarray
    pair: np.ndarray


@njit(**LEAN_INNER)
def _component(areas, out, first, stamp, parts):
    """Mark the component of a vertex outside S and add up its weights; how many vertices it has."""
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
    """Search for a vertex set S with |S| + sum over the components D of G - S of (how many regions D has room for)
    small.

    For every S that sum bounds the number of regions: a region meets S, or lies in one component.

    areas    ``Areas`` whose features are weights alone
    out      bool[n]  S to start from; the S of least sum on return
    search   (steps, visits, temperature)   annealing: one vertex, or two neighbors, change sides; it ends after so many
             vertices looked at
    state    uint64[1]  randomness
    returns  int64    the least sum

    O(size of the components touched) a step.
    """
    n, t = areas.features.shape
    queue, mark, pair = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(2, np.int64)
    parts = _Parts(out.copy(), queue, mark, np.zeros(t, np.int64), pair)
    return int(_separator(areas, out, search, state, parts))


@njit(**LEAN)
def _separator(areas, out, search, state, parts):
    """``separator`` in arrays that Python made."""
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
    # Annealing: a vertex, or an edge's two ends, changes sides. Only the components that touch them change their value.
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
        for turn in range(2):  # components around the pair, before and after it changes sides
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
                for v in range(n):  # a whole array at once compiles what its errors would say, a second or two
                    kept[v] = out[v]
        else:
            for a in range(many):
                out[pair[a]] = not out[pair[a]]
    for v in range(n):
        out[v] = kept[v]
    return best


@njit(cache=True, nogil=True)
def low_points(indptr, indices, gone):
    """A depth-first search of a graph without the vertices ``gone`` (bool[n]), and Tarjan's low points; O(m + n).

    returns  order int64[r] the vertices as they are reached, parent int64[n] (-1 of a root), disc int64[n] when each is
             reached, low int64[n] the earliest that it or what lies below it has an edge to
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
        # Follow the next edge of the vertex on top of the stack; when it has none left, its low point goes to its
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
    """For every vertex v: its weight and that of all components of G - v that miss a threshold.

    Such a component cannot hold a region, so all of it belongs to v's region, and the sum bounds that region from
    below.

    weights  int64[n, t], need int64[t]
    returns  int64[n]  in the first weight.  O(m + n t) time.
    """
    n, t = weights.shape
    order, parent, disc, low = low_points(indptr, indices, np.zeros(n, np.bool_))
    sub = weights.copy()
    off = np.zeros((n, t), np.int64)  # weight of all components that v cuts off below itself
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
    for v in range(n):  # what lies above v; a root has nothing above
        light = False
        for j in range(t):
            light = light or sub[root[v], j] - weights[v, j] - off[v, j] < need[j]
        if light and parent[v] >= 0:
            held[v] += sub[root[v], 0] - weights[v, 0] - off[v, 0]
    return held
