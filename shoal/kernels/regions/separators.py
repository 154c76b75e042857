"""Vertices that hold a map together: sets of them that bound the number of regions, and what hangs on single ones."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit
from shoal.kernels.regions.areas import uniform


@njit(**LEAN_INNER)
def _room(total, need):
    """How many sets that meet the thresholds the given sums could make at most."""
    most = total[0] // need[0]
    for j in range(1, need.shape[0]):
        most = min(most, total[j] // need[j])
    return most


@njit(**LEAN_INNER)
def _component(indptr, indices, weights, out, first, mark, stamp, queue, total):
    """Mark the component of a vertex outside S and add up its weights; how many vertices it has."""
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


def separator(indptr, indices, weights, need, out, steps, visits, temperature, state):
    """Search for a vertex set S with |S| + sum over the components D of G - S of (how many regions D has room for)
    small.

    For every S that sum bounds the number of regions: a region meets S, or lies in one component.

    weights  int64[n, t], need int64[t]
    out      bool[n]  S to start from; the S of least sum on return
    steps    int64, temperature float64, state uint64[1]   annealing: one vertex, or two neighbors, change sides
    visits   int64    and stop after so many vertices looked at
    returns  int64    the least sum

    O(size of the components touched) a step.
    """
    n, t = weights.shape
    room = out.copy(), np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(t, np.int64), np.empty(2, np.int64)
    return _separator(indptr, indices, weights, need, out, steps, visits, temperature, state, *room)


@njit(**LEAN)
def _separator(indptr, indices, weights, need, out, steps, visits, temperature, state, kept, queue, mark, total, pair):
    """The same, in this room."""
    n = weights.shape[0]
    stamp = 1
    value = 0
    for v in range(n):
        if out[v]:
            value += 1
        elif mark[v] < stamp:
            _component(indptr, indices, weights, out, v, mark, stamp, queue, total)
            value += _room(total, need)
    best = value
    if n == 0:
        return best
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
                        visits -= _component(indptr, indices, weights, out, x, mark, stamp, queue, total)
                        sum_ += _room(total, need)
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
def hanging(indptr, indices, weights, need):
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
