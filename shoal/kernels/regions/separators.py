"""Vertices that hold a map together: sets of them that bound the number of regions, and what hangs on single ones."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER, LEAN_INNER
from shoal.kernels.regions.areas import uniform


@njit(**INNER)
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


@njit(cache=True, nogil=True)
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
    queue = np.empty(n, np.int64)
    total = np.zeros(t, np.int64)
    mark = np.zeros(n, np.int64)
    stamp = 1
    value = 0
    for v in range(n):
        if out[v]:
            value += 1
        elif mark[v] < stamp:
            _component(indptr, indices, weights, out, v, mark, stamp, queue, total)
            value += _room(total, need)
    best = value
    kept = out.copy()
    pair = np.empty(2, np.int64)
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
def hanging(indptr, indices, weights, need):
    """For every vertex v: its weight and that of all components of G - v that miss a threshold.

    Such a component cannot hold a region, so all of it belongs to v's region, and the sum bounds that region from
    below.

    weights  int64[n, t], need int64[t]
    returns  int64[n]  in the first weight

    One depth-first search (Tarjan's low points): O(m + n t) time.
    """
    n, t = weights.shape
    disc = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    parent = np.full(n, -1, np.int64)
    sub = weights.copy()
    off = np.zeros((n, t), np.int64)  # weight of all components that v cuts off below itself
    held = weights[:, 0].copy()
    at = indptr[:-1].copy()
    stack = np.empty(n, np.int64)
    tree = np.empty(n, np.int64)
    clock = 0
    for root in range(n):
        if disc[root] >= 0:
            continue
        begin = clock
        top = 0
        stack[0] = root
        disc[root] = clock
        low[root] = clock
        tree[clock] = root
        clock += 1
        while top >= 0:
            v = stack[top]
            if at[v] < indptr[v + 1]:
                u = indices[at[v]]
                at[v] += 1
                if disc[u] < 0:
                    disc[u] = clock
                    low[u] = clock
                    tree[clock] = u
                    clock += 1
                    parent[u] = v
                    top += 1
                    stack[top] = u
                elif u != parent[v]:
                    low[v] = min(low[v], disc[u])
                continue
            top -= 1
            p = parent[v]
            if p >= 0:
                low[p] = min(low[p], low[v])
                light = False
                for j in range(t):
                    sub[p, j] += sub[v, j]
                    light = light or sub[v, j] < need[j]
                if low[v] >= disc[p]:
                    for j in range(t):
                        off[p, j] += sub[v, j]
                    if light:
                        held[p] += sub[v, 0]
        for i in range(begin + 1, clock):  # what lies above v; the root has nothing above
            v = tree[i]
            light = False
            for j in range(t):
                light = light or sub[root, j] - weights[v, j] - off[v, j] < need[j]
            if light:
                held[v] += sub[root, 0] - weights[v, 0] - off[v, 0]
    return held


@njit(cache=True)
def cut_vertex(indptr, indices, gone):
    """A vertex whose removal disconnects the graph without ``gone`` (bool[n]); -1 none, -2 it is apart already."""
    n = indptr.shape[0] - 1
    disc = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    parent = np.full(n, -1, np.int64)
    at = indptr[:-1].copy()
    stack = np.empty(n, np.int64)
    clock = 0
    left = 0
    root = -1
    for v in range(n):
        if not gone[v]:
            left += 1
            if root < 0:
                root = v
    if left == 0:
        return -1
    found = -1
    children = 0
    top = 0
    stack[0] = root
    disc[root] = 0
    clock = 1
    while top >= 0:
        v = stack[top]
        if at[v] < indptr[v + 1]:
            u = indices[at[v]]
            at[v] += 1
            if gone[u]:
                continue
            if disc[u] < 0:
                disc[u] = clock
                low[u] = clock
                clock += 1
                parent[u] = v
                top += 1
                stack[top] = u
            elif u != parent[v]:
                low[v] = min(low[v], disc[u])
            continue
        top -= 1
        p = parent[v]
        if p >= 0:
            low[p] = min(low[p], low[v])
            if p == root:
                children += 1
            elif low[v] >= disc[p]:
                found = p
    if clock < left:
        return -2
    return root if children > 1 else found
