"""Single areas moved across a border between regions, or exchanged across it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import LEAN, LEAN_INNER
from shoal.kernels.regions.recombine import BORDER, INERTIA, _value, spread
from shoal.kernels.regions.spanning import eligible, uniform


@njit(**LEAN_INNER)
def _joined(indptr, indices, label, start, around, part, mark, stamp, queue):
    """Whether all neighbors of ``around`` that lie in ``part`` are reached from ``start`` inside the part."""
    wanted = 0
    for e in range(indptr[around], indptr[around + 1]):
        wanted += label[indices[e]] == part and indices[e] != start
    mark[start] = stamp
    queue[0] = start
    s = 1
    i = 0
    while i < s and wanted > 0:
        x = queue[i]
        i += 1
        for e in range(indptr[x], indptr[x + 1]):
            y = indices[e]
            if label[y] == part and mark[y] != stamp:
                mark[y] = stamp
                queue[s] = y
                s += 1
                for f in range(indptr[y], indptr[y + 1]):
                    if indices[f] == around:
                        wanted -= 1
                        break
    return wanted == 0


def shift(indptr, indices, features, need, ways, geo, label, form, scale, target, cap, steps, hot, cold, state):
    """Anneal a partition by single areas; the arguments are those of ``recombine``, any form but COUNT and EXCESS.

    A step moves one area into a neighboring part, or exchanges two areas of neighboring parts.  The number of
    parts stays.  O(size of the two parts) a step, and only where the value would be accepted.
    """
    (n, width), count, wide = features.shape, int(label.max()) + 1, geo.shape[1]
    room = Sums(
        np.zeros((count, width), np.int64), np.zeros((count, wide)), np.zeros(n, np.int64), np.empty(n, np.int64),
        np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(wide), np.zeros(wide), np.zeros(wide),
    )  # fmt: skip
    _shift(indptr, indices, features, need, ways, geo, label, form, scale, float(target), cap, steps, hot, cold, state,
           room)  # fmt: skip


class Sums(NamedTuple):
    """What single moves work in, for n areas in c parts; zeros where it is summed.

    sums int64[c, t + s], moments float64[c, w] of every part; mark, queue int64[n]; less, more int64[t + s],
    a, b float64[w] two parts after a move; nothing float64[w]
    """

    sums: np.ndarray
    moments: np.ndarray
    mark: np.ndarray
    queue: np.ndarray
    less: np.ndarray
    more: np.ndarray
    a: np.ndarray
    b: np.ndarray
    nothing: np.ndarray


@njit(**LEAN)
def _shift(indptr, indices, features, need, ways, geo, label, form, scale, target, cap, steps, hot, cold, state, room):
    """The same, in this room."""
    n, width = features.shape
    wide = geo.shape[1]
    sums, moments, mark, queue, less, more, a, b, nothing = room
    for v in range(n):
        for f in range(width):
            sums[label[v], f] += features[v, f]
        if form == INERTIA:
            for f in range(wide):
                moments[label[v], f] += geo[v, f]
    stamp = 0
    temperature = hot
    for step in range(steps):
        if step & 255 == 0:
            temperature = hot * (cold / hot) ** (step / steps)
        v = int(uniform(state) * n)
        if indptr[v] == indptr[v + 1]:
            continue
        u = indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]
        p = label[v]
        q = label[u]
        if p == q:
            continue
        x = -1  # the area that comes back in exchange
        if uniform(state) < 0.5:
            y = indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]
            if label[y] == p:
                x = indices[indptr[y] + int(uniform(state) * (indptr[y + 1] - indptr[y]))]
                if label[x] != q:
                    x = -1
        for f in range(width):
            change = features[v, f] - (features[x, f] if x >= 0 else 0)
            less[f] = sums[p, f] - change
            more[f] = sums[q, f] + change
        if not (eligible(less, need, ways) and eligible(more, need, ways)):
            continue
        heavy = max(less[0], more[0])
        if heavy > cap and heavy > max(sums[p, 0], sums[q, 0]):
            continue
        if form == BORDER:
            delta = 0.0
            for turn in range(2):
                sign = 1 if turn else -1
                for w in (v, x):
                    if w < 0:
                        continue
                    for e in range(indptr[w], indptr[w + 1]):
                        y = indices[e]
                        if w == x and y == v:
                            continue
                        delta += sign * (label[y] != label[w])
                label[v] = p if turn else q
                if x >= 0:
                    label[x] = q if turn else p
        elif form == INERTIA:
            delta = -spread(moments[p], nothing, nothing) - spread(moments[q], nothing, nothing)
            for f in range(wide):
                gone = geo[v, f] - (geo[x, f] if x >= 0 else 0.0)
                a[f] = moments[p, f] - gone
                b[f] = moments[q, f] + gone
            delta = (delta + spread(a, nothing, nothing) + spread(b, nothing, nothing)) / scale
        else:
            delta = _value(form, less[0], 0, scale, target) + _value(form, more[0], 0, scale, target)
            delta -= _value(form, sums[p, 0], 0, scale, target) + _value(form, sums[q, 0], 0, scale, target)
        if delta > 0 and uniform(state) >= np.exp(-delta / temperature):
            continue
        # what stays of p, and what q becomes, must hang together
        start = x
        if x < 0:
            for e in range(indptr[v], indptr[v + 1]):
                if label[indices[e]] == p:
                    start = indices[e]
                    break
        label[v] = q
        if x >= 0:
            label[x] = p
        stamp += 1
        whole = start >= 0 and _joined(indptr, indices, label, start, v, p, mark, stamp, queue)
        if whole and x >= 0:
            stamp += 1
            whole = _joined(indptr, indices, label, v, x, q, mark, stamp, queue)
        if not whole:
            label[v] = p
            if x >= 0:
                label[x] = q
            continue
        for f in range(width):
            sums[p, f] = less[f]
            sums[q, f] = more[f]
        if form == INERTIA:
            for f in range(wide):
                moments[p, f] = a[f]
                moments[q, f] = b[f]
