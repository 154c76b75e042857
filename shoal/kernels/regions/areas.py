"""The graph of areas for the kernels of regions, the conditions on its parts, and spanning trees of merged parts.

A graph is two arrays in compressed rows: the neighbors of v are ``indices[indptr[v]:indptr[v + 1]]``, and each edge is
in both rows. A search over partitions merges parts, draws a random spanning tree of them, and cuts it where both sides
are eligible. Its working arrays are here, as is the generator of random numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit


class Areas(NamedTuple):
    """A graph with features of vertices, and the conditions on every part.

    indptr    int64[n + 1], indices int64[2m]
    features  int64[n, t + s]: weights, then counts of sensitive values
    need      int64[t]: thresholds;  l: int64, of l-diversity, 1 requires nothing
    """

    indptr: np.ndarray
    indices: np.ndarray
    features: np.ndarray
    need: np.ndarray
    l: int


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
def eligible(total, need, l):
    """Whether sums over a part meet every threshold and, if ``l`` > 1, the frequency form of l-diversity.

    total  int64[t + s]: sums of the t weights, then of the s sensitive values
    need   int64[t]: thresholds
    l      int64: no value may have more than 1/l of the records; 1 requires nothing
    """
    t = need.shape[0]
    for i in range(t):
        if total[i] < need[i]:
            return False
    if l > 1:
        records = 0
        tallest = 0
        for i in range(t, total.shape[0]):
            records += total[i]
            tallest = max(tallest, total[i])
        return records >= l * tallest
    return True


class Workspace(NamedTuple):
    """Working arrays of one search.

    A *place* is an index in ``node``; a *position* is a rank in the random tree's preorder.
    """

    place: np.ndarray  # int64[n] vertex -> place, -1 outside the merged parts
    node: np.ndarray  # int64[n] place -> vertex
    tail: np.ndarray  # int64[m + 1] ends of the edges inside, as places
    head: np.ndarray
    union: np.ndarray  # int64[n] disjoint sets of places
    first: np.ndarray  # tree neighbors of a place: links[first[i]:first[i + 1]]
    links: np.ndarray  # int64[2n]
    stack: np.ndarray  # int64[n]
    at: np.ndarray  # int64[n] position -> place
    rank: np.ndarray  # int64[n] place -> position
    up: np.ndarray  # int64[n] position -> position of the parent, -1 at the root
    size: np.ndarray  # int64[n] position -> vertices in its subtree
    sub: np.ndarray  # int64[n, t + s] position -> sums over its subtree
    rest: np.ndarray  # position -> sums over the part of its subtree that isn't cut off
    mass: np.ndarray  # float64[n, c + 2] position -> geometric sums over its subtree
    part: np.ndarray  # int64[n] position -> new part; while cutting, its top
    cross: np.ndarray  # int64[n] position -> edges that leave its subtree
    ahead: np.ndarray  # heaviest vertex at smaller positions
    behind: np.ndarray  # heaviest vertex at this or a larger position
    heads: np.ndarray  # int64[n] positions where one cut is possible
    weight: np.ndarray  # int64[n] weight of a new part
    heavy: np.ndarray  # int64[n] heaviest vertex of a new part
    spare: np.ndarray  # int64[t + s]
    held: np.ndarray  # weight of a part, initially 0
    heaviest: np.ndarray  # heaviest vertex of a part, initially 0
    ids: np.ndarray  # the merged parts
    sums: np.ndarray  # their moments
    nothing: np.ndarray  # float64[c + 2] zeros


def workspace(n: int, m: int, width: int, places: int, wide: int) -> Workspace:
    """Working arrays for n vertices and m edges.

    ``width`` features per vertex, ``wide`` moments of ``places`` vertices.
    """

    def ints(*shape: int) -> np.ndarray:
        return np.empty(shape, np.int64)

    return Workspace(
        place=np.full(n, -1, np.int64), node=ints(n), tail=ints(m + 1), head=ints(m + 1), union=ints(n),
        first=ints(n + 1), links=ints(2 * n), stack=ints(n), at=ints(n), rank=ints(n), up=ints(n), size=ints(n),
        sub=ints(n, width), rest=ints(n, width), mass=np.empty((places, wide)), part=ints(n), cross=ints(n),
        ahead=ints(n + 2), behind=ints(n + 2), heads=ints(n), weight=ints(n), heavy=ints(n), spare=ints(width),
        held=np.zeros(n + 1, np.int64), heaviest=np.zeros(n + 1, np.int64), ids=ints(3), sums=np.empty((3, wide)),
        nothing=np.zeros(wide),
    )  # fmt: skip


@njit(**LEAN_INNER)
def gather(indptr, indices, label, d, i, s, p, q):
    """Append the vertices of part p or q that neighbor the gathered ones, from place i on.

    Returns the new number gathered.
    """
    while i < s:
        v = d.node[i]
        for e in range(indptr[v], indptr[v + 1]):
            x = indices[e]
            if d.place[x] < 0 and (label[x] == p or label[x] == q):
                d.place[x] = s
                d.node[s] = x
                s += 1
        i += 1
    return s


@njit(**LEAN_INNER)
def _summed(d, s):
    """Sizes and sums of the subtrees, from those of the single vertices, in preorder."""
    for i in range(s - 1, 0, -1):
        d.size[d.up[i]] += d.size[i]
        for f in range(d.sub.shape[1]):
            d.sub[d.up[i], f] += d.sub[i, f]


@njit(**LEAN_INNER)
def root_of(union, v):
    """The root of the set that contains v, with path compression; union int64[n] is the parent of each."""
    while union[v] != v:
        union[v] = union[union[v]]
        v = union[v]
    return v


@njit(**LEAN_INNER)
def _visited(features, d, x, above, done):
    """Append vertex x to the tree below position ``above``; returns the number of vertices so far."""
    d.at[done] = x
    d.up[done] = above
    d.rank[x] = done
    d.size[done] = 1
    for f in range(features.shape[1]):
        d.sub[done, f] = features[d.node[x], f]
        d.rest[done, f] = features[d.node[x], f]
    return done + 1


@njit(**LEAN_INNER)
def random_tree(indptr, indices, features, d, s, state):
    """A uniformly shuffled spanning tree of the gathered vertices, in preorder from a random root.

    Fills at, rank, up, size, sub; returns the number of edges inside.
    """
    m = 0
    for i in range(s):
        d.union[i] = i
        d.first[i] = 0
        v = d.node[i]
        for e in range(indptr[v], indptr[v + 1]):
            j = d.place[indices[e]]
            if j > i:
                d.tail[m] = i
                d.head[m] = j
                m += 1
    d.first[s] = 0
    kept = 0
    i = m
    # Kruskal's algorithm with a shuffle: draw an edge that wasn't drawn yet, and keep it if it joins two trees.
    while kept < s - 1:
        j = int(uniform(state) * i)
        i -= 1
        a = d.tail[j]
        b = d.head[j]
        d.tail[j] = d.tail[i]
        d.head[j] = d.head[i]
        d.tail[i] = a
        d.head[i] = b
        x = root_of(d.union, a)
        y = root_of(d.union, b)
        if x != y:
            d.union[x] = y
            d.stack[kept] = i
            kept += 1
            d.first[a] += 1
            d.first[b] += 1
    total = 0
    for i in range(s + 1):
        total += d.first[i]
        d.first[i] = total
    for i in range(kept):
        a = d.tail[d.stack[i]]
        b = d.head[d.stack[i]]
        d.first[a] -= 1
        d.links[d.first[a]] = b
        d.first[b] -= 1
        d.links[d.first[b]] = a
    root = int(uniform(state) * s)
    d.stack[0] = root
    d.rank[root] = -1  # before the visit: the position of its parent
    depth = 1
    done = 0
    while depth > 0:
        depth -= 1
        x = d.stack[depth]
        above = d.rank[x]
        done = _visited(features, d, x, above, done)
        for e in range(d.first[x], d.first[x + 1]):
            y = d.links[e]
            if above < 0 or y != d.at[above]:
                d.rank[y] = done - 1
                d.stack[depth] = y
                depth += 1
    _summed(d, s)
    return m


@njit(**LEAN_INNER)
def long_tree(indptr, indices, features, d, s, state):
    """A depth-first spanning tree of the gathered vertices from a random root, with neighbors in rotated order.

    Fills the same arrays as ``random_tree``, in half its time. Long paths can be cut into more parts than branched
    trees, and into less compact parts. O(edges of the gathered vertices).
    """
    for i in range(s):
        d.rank[i] = -1
    x = int(uniform(state) * s)
    above = -1
    depth = 0
    done = 0
    # Visit x, then continue from the deepest vertex of the path that has an unvisited neighbor.
    while True:
        v = d.node[x]
        done = _visited(features, d, x, above, done)
        d.first[x] = int(uniform(state) * (indptr[v + 1] - indptr[v]))
        d.union[x] = 0  # number of neighbors examined
        d.stack[depth] = x
        depth += 1
        if done == s:
            break
        y = -1
        while y < 0:
            x = d.stack[depth - 1]
            v = d.node[x]
            degree = indptr[v + 1] - indptr[v]
            while y < 0 and d.union[x] < degree:
                e = d.first[x] + d.union[x]
                d.union[x] += 1
                j = d.place[indices[indptr[v] + (e if e < degree else e - degree)]]
                if j >= 0 and d.rank[j] < 0:
                    y = j
            if y < 0:
                depth -= 1
        above = d.rank[x]
        x = y
    _summed(d, s)


@njit(**LEAN_INNER)
def cut_most(d, s, need, l):
    """Cut off every eligible subtree, from the leaves up.

    Marks the tops of the parts in ``part``, returns their number.
    """
    width = d.sub.shape[1]
    g = 0
    for i in range(s - 1, -1, -1):
        d.part[i] = 0
        if eligible(d.rest[i], need, l):
            d.part[i] = 1
            g += 1
        elif i:
            for f in range(width):
                d.rest[d.up[i], f] += d.rest[i, f]
    i = 1
    while not d.part[0] and i < s:  # the remainder at the root joins the parts attached to it
        if d.part[i]:
            d.part[i] = 0
            g -= 1
            for f in range(width):
                d.rest[0, f] += d.rest[i, f]
            if eligible(d.rest[0], need, l):
                d.part[0] = 1
                g += 1
        i += 1
    return g
