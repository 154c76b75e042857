"""Single areas moved across a border between regions, or exchanged across it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.regions.areas import Areas, eligible, uniform
from shoal.kernels.regions.recombine import BORDER, INERTIA, Aim, Cooling, spread, value


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


def shift(areas: Areas, aim: Aim, cooling: Cooling, label: np.ndarray, state: np.ndarray) -> None:
    """Anneal a partition by single areas; the arguments are those of ``recombine``, any form but COUNT and EXCESS.

    A step moves one area into a neighboring part, or exchanges two areas of neighboring parts.  The number of
    parts stays.  O(size of the two parts) a step, and only where the value would be accepted.
    """
    (n, width), count, wide = areas.features.shape, int(label.max()) + 1, aim.moments.shape[1]
    room = Sums(
        np.zeros((count, width), np.int64), np.zeros((count, wide)), np.zeros(n, np.int64), np.empty(n, np.int64),
        np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(wide), np.zeros(wide), np.zeros(wide),
    )  # fmt: skip
    _shift(areas, aim, cooling, label, state, room)


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


@njit(**STEP)
def _border_change(areas, label, v, x, p, q):
    """By how many edges the border grows when v goes to part q and x to p."""
    delta = 0.0
    for turn in range(2):
        sign = 1 if turn else -1
        for w in (v, x):
            if w < 0:
                continue
            for e in range(areas.indptr[w], areas.indptr[w + 1]):
                y = areas.indices[e]
                if w == x and y == v:
                    continue
                delta += sign * (label[y] != label[w])
        label[v] = p if turn else q
        if x >= 0:
            label[x] = q if turn else p
    return delta


@njit(**STEP)
def _inertia_change(aim, room, v, x, p, q):
    """By how much the inertia grows when v goes to part q and x to p; their moments then are in a and b."""
    moments, geo, a, b, nothing = room.moments, aim.moments, room.a, room.b, room.nothing
    delta = -spread(moments[p], nothing, nothing) - spread(moments[q], nothing, nothing)
    for f in range(a.size):
        gone = geo[v, f] - (geo[x, f] if x >= 0 else 0.0)
        a[f] = moments[p, f] - gone
        b[f] = moments[q, f] + gone
    return (delta + spread(a, nothing, nothing) + spread(b, nothing, nothing)) / aim.scale


@njit(**STEP)
def _whole(areas, label, v, x, p, q, room, stamp):
    """Whether what stays of part p, and what q becomes, hang together; v and x have changed places."""
    indptr, indices = areas.indptr, areas.indices
    start = x
    if x < 0:
        for e in range(indptr[v], indptr[v + 1]):
            if label[indices[e]] == p:
                start = indices[e]
                break
    if start < 0 or not _joined(indptr, indices, label, start, v, p, room.mark, stamp, room.queue):
        return False
    return x < 0 or _joined(indptr, indices, label, v, x, q, room.mark, stamp + 1, room.queue)


@njit(**LEAN)
def _shift(areas, aim, cooling, label, state, room):
    """The same, in this room."""
    indptr, indices, features = areas.indptr, areas.indices, areas.features
    (n, width), (steps, hot, cold) = features.shape, cooling
    sums, less, more = room.sums, room.less, room.more
    for v in range(n):
        for f in range(width):
            sums[label[v], f] += features[v, f]
        if aim.form == INERTIA:
            for f in range(room.a.size):
                room.moments[label[v], f] += aim.moments[v, f]
    stamp = 0
    temperature = hot
    for step in range(steps):
        if step & 255 == 0:
            temperature = hot * (cold / hot) ** (step / steps)
        v = int(uniform(state) * n)
        if indptr[v] == indptr[v + 1]:
            continue
        p = label[v]
        q = label[indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]]
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
        if not (eligible(less, areas.need, areas.ways) and eligible(more, areas.need, areas.ways)):
            continue
        heavy = max(less[0], more[0])
        if heavy > aim.cap and heavy > max(sums[p, 0], sums[q, 0]):
            continue
        if aim.form == BORDER:
            delta = _border_change(areas, label, v, x, p, q)
        elif aim.form == INERTIA:
            delta = _inertia_change(aim, room, v, x, p, q)
        else:
            delta = value(aim, less[0], 0) + value(aim, more[0], 0)
            delta -= value(aim, sums[p, 0], 0) + value(aim, sums[q, 0], 0)
        if delta > 0 and uniform(state) >= np.exp(-delta / temperature):
            continue
        label[v] = q
        if x >= 0:
            label[x] = p
        stamp += 2
        if not _whole(areas, label, v, x, p, q, room, stamp):
            label[v] = p
            if x >= 0:
                label[x] = q
            continue
        for f in range(width):
            sums[p, f] = less[f]
            sums[q, f] = more[f]
        if aim.form == INERTIA:
            for f in range(room.a.size):
                room.moments[p, f] = room.a[f]
                room.moments[q, f] = room.b[f]
