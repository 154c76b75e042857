"""A Hamiltonian path by rotations, insertions and exchanges."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.regions.areas import uniform


@njit(**LEAN_INNER)
def _turned(seq, pos, first, end):
    """The part seq[first:end] of a path turned around, and where its vertices are now."""
    i = first
    j = end - 1
    while i < j:
        x = seq[i]
        seq[i] = seq[j]
        seq[j] = x
        i += 1
        j -= 1
    for k in range(first, end):
        pos[seq[k]] = k


@njit(cache=True, nogil=True)
def long_path(indptr, indices, steps, state):
    """Grow one path until it visits every vertex, or the steps are used up.

    indptr, indices  a connected graph
    steps    int64, state uint64[1]
    returns  seq int64[], the vertices in order; a Hamiltonian path when all n are there

    A step, by what is possible: go on from an end to a vertex not visited; put such a vertex between two
    neighbors on the path that are both its own; rotate (Posa): from the end t to a neighbor u on the path, and
    turn around what comes after u, so that u's follower is the new end; or exchange a vertex inside for one
    not visited.  O(n) a step.
    """
    n = indptr.shape[0] - 1
    seq = np.empty(n, np.int64)
    pos = np.full(n, -1, np.int64)
    free = np.empty(n, np.int64)  # vertices not visited, in any order; where[v] is the place of v
    where = np.empty(n, np.int64)
    for v in range(n):
        free[v] = v
        where[v] = v
    left = n
    length = 0
    v = int(uniform(state) * n)
    at = 0
    for _ in range(steps + n):
        if v >= 0:  # put v at place ``at``
            for i in range(length, at, -1):
                seq[i] = seq[i - 1]
                pos[seq[i]] = i
            seq[at] = v
            pos[v] = at
            length += 1
            left -= 1
            x = free[left]
            free[where[v]] = x
            where[x] = where[v]
            v = -1
        if left == 0:
            break
        if uniform(state) < 0.5:  # either end in turn: turn the path around
            _turned(seq, pos, 0, length)
        tail = seq[length - 1]
        least = n + 1.0
        for e in range(indptr[tail], indptr[tail + 1]):
            u = indices[e]
            if pos[u] < 0:
                exits = 0.9 * uniform(state)
                for f in range(indptr[u], indptr[u + 1]):
                    exits += pos[indices[f]] < 0
                if exits < least:
                    least = exits
                    v = u
                    at = length
        if v >= 0:
            continue
        u = free[int(uniform(state) * left)]
        swap = -1
        many = 0
        for e in range(indptr[u], indptr[u + 1]):
            p = pos[indices[e]]
            if p < 0:
                continue
            for f in range(indptr[u], indptr[u + 1]):
                q = pos[indices[f]]
                if q == p + 1:
                    v = u
                    at = q
                elif q == p + 2:
                    many += 1
                    if uniform(state) * many < 1.0:
                        swap = p + 1
        if v >= 0:
            continue
        if swap >= 0 and uniform(state) < 0.5:
            x = seq[swap]
            seq[swap] = u
            pos[u] = swap
            pos[x] = -1
            free[where[u]] = x
            where[x] = where[u]
            continue
        turn, many = -1, 0
        for e in range(indptr[tail], indptr[tail + 1]):
            p = pos[indices[e]]
            if p < 0 or p >= length - 2:
                continue
            many += 1
            if uniform(state) * many < 1.0:
                turn = p
        for e in range(indptr[tail], indptr[tail + 1]):  # better: a new end that leads on
            p = pos[indices[e]]
            if p < 0 or p >= length - 2:
                continue
            x = seq[p + 1]
            for f in range(indptr[x], indptr[x + 1]):
                if pos[indices[f]] < 0:
                    turn = p
        if turn >= 0:
            _turned(seq, pos, turn + 1, length)
    return seq[:length]
