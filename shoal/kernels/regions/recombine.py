"""Simulated annealing over partitions of a graph into connected parts: parts are merged and recut, or areas move.

Parts are cut along a random spanning tree. An area moves across a border between two parts, or two areas are exchanged.
The objective has one of six forms, summed over the parts (``scale`` is k, or a unit of inertia):

    COUNT    0  maximizes the number of parts; among equals it maximizes the squares, so that surplus accumulates in
                one part
    SQUARES  1  (weight / scale)^2
    OVER     2  ((weight - target) / scale)^2 if positive, plus a small share of SQUARES
    EXCESS   3  (weight / max(scale, heaviest vertex))^8
    INERTIA  4  sum of mass * squared distance from the part's center, / scale, in coordinates or in other columns
    BORDER   5  edges between parts
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.regions.areas import Areas, cut_most, eligible, gather, long_tree, random_tree, uniform, workspace

COUNT, SQUARES, OVER, EXCESS, INERTIA, BORDER = range(6)
_FEW = 64  # most single cuts that are tried in pairs
_NEAR = 8_192  # window of vertex numbers of consecutive steps, so that their data stay in the cache


class ObjectiveAndLimits(NamedTuple):
    """The objective of a search over partitions, and its limits.

    form     int64: see above;  scale, target: float64
    moments  float64[n or 0, c + 2]: mass, mass times each of c columns, mass times the sum of their squares; used by
             INERTIA
    cap      int64: no part becomes heavier than this, or than the heaviest part that it replaces
    enough   int64: largest number of parts (COUNT stops there; OVER stops if no part is over the target)
    """

    form: int
    scale: float
    target: float
    moments: np.ndarray
    cap: int
    enough: int


class Cooling(NamedTuple):
    """An annealing schedule: int64 steps, float64 temperatures at the first and at the last step."""

    steps: int
    hot: float
    cold: float


@njit(**LEAN_INNER)
def value(aim, weight, heaviest):
    """The value of one part if it depends only on weight and heaviest vertex."""
    x = weight / aim.scale
    if aim.form == OVER:
        over = max(0.0, (weight - aim.target) / aim.scale)
        return over * over + 1e-3 * x * x
    if aim.form == EXCESS:
        x = weight / max(aim.scale, float(heaviest))
        return (x * x) ** 4
    return x * x


@njit(**LEAN_INNER)
def spread(of, less, more_less):
    """The moment of inertia about the center, from the moments of a set minus those of two subsets of it.

    of, less, more_less  float64[c + 2]: sums of mass, mass times each of c columns, mass times their squares
    """
    last = of.size - 1
    m = of[0] - less[0] - more_less[0]
    if m <= 0.0:
        return 0.0
    found = of[last] - less[last] - more_less[last]
    for f in range(1, last):
        x = of[f] - less[f] - more_less[f]
        found -= x * x / m
    return max(0.0, found)


@njit(**STEP)
def _tops(areas, aim, moments, d, s, m):
    """The positions where one cut leaves two eligible parts, in ``heads``, and their number.

    Also sums that the form needs.
    """
    features, spare = areas.features, d.spare
    few = 0
    for i in range(1, s):
        if eligible(d.sub[i], areas.need, areas.l):
            for f in range(spare.size):
                spare[f] = d.sub[0, f] - d.sub[i, f]
            if eligible(spare, areas.need, areas.l):
                d.heads[few] = i
                few += 1
    if moments is not None:
        if aim.form == EXCESS:
            d.ahead[0] = 0
            d.behind[s] = 0
            for i in range(s):
                d.ahead[i + 1] = max(d.ahead[i], features[d.node[d.at[i]], 0])
            for i in range(s - 1, -1, -1):
                d.behind[i] = max(d.behind[i + 1], features[d.node[d.at[i]], 0])
        elif aim.form == BORDER:
            for i in range(s):
                d.cross[i] = 0
            for e in range(m):
                a = d.rank[d.tail[e]]
                b = d.rank[d.head[e]]
                d.cross[a] += 1
                d.cross[b] += 1
                while a != b:
                    if a > b:
                        a = d.up[a]
                    else:
                        b = d.up[b]
                d.cross[a] -= 2
            for i in range(s - 1, 0, -1):
                d.cross[d.up[i]] += d.cross[i]
        elif aim.form == INERTIA:
            for i in range(s):
                for f in range(d.mass.shape[1]):
                    d.mass[i, f] = moments[d.node[d.at[i]], f]
            for i in range(s - 1, 0, -1):
                for f in range(d.mass.shape[1]):
                    d.mass[d.up[i], f] += d.mass[i, f]
    return few


@njit(**STEP)
def _cut_once(features, aim, moments, d, few, limit):
    """(value, position) of the best single cut."""
    best, one = np.inf, -1
    nothing, total = d.nothing, d.sub[0, 0]
    # A cut leaves a subtree and the rest. The worse of the two decides whether it is allowed, their sum is its value.
    for c in range(few):
        i = d.heads[c]
        a = d.sub[i, 0]
        b = total - a
        if a > limit or b > limit:
            continue
        inside, outside = 0, 0
        if moments is not None and aim.form == EXCESS:
            for j in range(i, i + d.size[i]):
                inside = max(inside, features[d.node[d.at[j]], 0])
            outside = max(d.ahead[i], d.behind[i + d.size[i]])
        found = value(aim, a, inside) + value(aim, b, outside)
        if moments is not None:
            if aim.form == BORDER:
                found = float(d.cross[i])
            elif aim.form == INERTIA:
                g = d.mass[i]
                found = (spread(g, nothing, nothing) + spread(d.mass[0], g, nothing)) / aim.scale
        if found < best:
            best = found
            one = i
    return best, one


@njit(**STEP)
def _cut_twice(areas, aim, moments, d, few, limit):
    """(value, position, position) of the best pair of cuts."""
    best, one, two = np.inf, -1, -1
    width, spare, nothing, total = d.sub.shape[1], d.spare, d.nothing, d.sub[0, 0]
    # Two cuts leave three parts: two subtrees and the rest, or a subtree inside another, the difference, and the rest.
    for c in range(few):
        i = d.heads[c]
        for e in range(c + 1, few):
            j = d.heads[e]
            nested = j < i + d.size[i]
            for f in range(width):
                spare[f] = d.sub[i, f] - d.sub[j, f] if nested else d.sub[0, f] - d.sub[i, f] - d.sub[j, f]
            if not eligible(spare, areas.need, areas.l):
                continue
            a = total - d.sub[i, 0] if nested else d.sub[i, 0]
            if max(spare[0], d.sub[j, 0], a) > limit:
                continue
            found = value(aim, spare[0], 0)
            found += value(aim, d.sub[j, 0], 0) + value(aim, a, 0)
            if moments is not None and aim.form == INERTIA:
                g, h = d.mass[i], d.mass[j]
                found = spread(h, nothing, nothing)
                if nested:
                    found += spread(g, h, nothing) + spread(d.mass[0], g, nothing)
                else:
                    found += spread(g, nothing, nothing) + spread(d.mass[0], g, h)
                found /= aim.scale
            if found < best:
                best = found
                one = i
                two = j
    return best, one, two


@njit(**LEAN_INNER)
def _least(areas, aim, moments, d, s, m, q, limit):
    """The least value of a cut of the tree into q = 2 or 3 parts, or inf; marks the tops in ``part``."""
    few = _tops(areas, aim, moments, d, s, m)
    if few == 0 or (q == 3 and few > _FEW):
        return np.inf
    two = -1
    if q == 2:
        best, one = _cut_once(areas.features, aim, moments, d, few, limit)
    else:
        best, one, two = _cut_twice(areas, aim, moments, d, few, limit)
    if one >= 0:
        for i in range(s):
            d.part[i] = 0
        d.part[0] = 1
        d.part[one] = 1
        if two >= 0:
            d.part[two] = 1
    return best


def recombine(areas: Areas, aim: ObjectiveAndLimits, cooling: Cooling, label: np.ndarray, state: np.ndarray) -> int:
    """Anneal a partition: merge two or three neighboring parts, draw a spanning tree of them, cut it again.

    areas.features  the objective uses the first weight
    label      int64[n]: 0..q-1, every part connected and eligible; changed in place, with the same properties
    state      uint64[1]: random state, advanced
    returns    int64: number of parts, never less than before

    A step takes time linear in the merged parts, plus at most 64^2 if three are cut by value. With many vertices, the
    steps go over them once in numerical order. Python allocates the working arrays, because a kernel without
    allocations compiles in three quarters of the time.
    """
    n, width = areas.features.shape
    places = n if aim.form == INERTIA else 0
    work = workspace(n, areas.indices.shape[0] // 2, width, places, aim.moments.shape[1])
    moments = None if aim.form in (COUNT, SQUARES, OVER) else aim.moments
    return _recombine(areas, aim, moments, cooling, label, state, work)


@njit(**STEP)
def _merged(areas, aim, label, state, v, u, d):
    """Gather the parts of v and u and, at random, a neighboring third; returns the number of parts and of vertices."""
    indptr, indices, ids = areas.indptr, areas.indices, d.ids
    ids[0] = label[v]
    ids[1] = label[u]
    d.node[0] = v
    d.place[v] = 0
    s = gather(indptr, indices, label, d, 0, 1, ids[0], ids[1])
    if aim.form != EXCESS and aim.form != BORDER and uniform(state) < 0.5:
        for _ in range(4):
            y = d.node[int(uniform(state) * s)]
            x = indices[indptr[y] + int(uniform(state) * (indptr[y + 1] - indptr[y]))]
            if d.place[x] < 0:
                ids[2] = label[x]
                d.place[x] = s
                d.node[s] = x
                return 3, gather(indptr, indices, label, d, s, s + 1, ids[2], ids[2])
    return 2, s


@njit(**STEP)
def _value_before(aim, moments, label, d, q, s, m):
    """The previous value of the q merged parts."""
    ids, sums, old = d.ids, d.sums, 0.0
    for j in range(q):
        old += value(aim, d.held[ids[j]], d.heaviest[ids[j]])
    if moments is not None:
        if aim.form == BORDER:
            old = 0.0
            for e in range(m):
                old += label[d.node[d.tail[e]]] != label[d.node[d.head[e]]]
        elif aim.form == INERTIA:
            wide = sums.shape[1]
            for j in range(3):
                for f in range(wide):
                    sums[j, f] = 0.0
            for i in range(s):
                j = 0
                while ids[j] != label[d.node[i]]:
                    j += 1
                for f in range(wide):
                    sums[j, f] += moments[d.node[i], f]
            old = 0.0
            for j in range(q):
                old += spread(sums[j], d.nothing, d.nothing) / aim.scale
    return old


@njit(**STEP)
def _weigh(features, d, s):
    """Number the new parts from their tops down, and sum their weights."""
    k = 0
    for i in range(s):
        x = features[d.node[d.at[i]], 0]
        if d.part[i]:
            d.part[i] = k
            d.weight[k] = x
            d.heavy[k] = x
            k += 1
        else:
            j = d.part[d.up[i]]
            d.part[i] = j
            d.weight[j] += x
            d.heavy[j] = max(d.heavy[j], x)


@njit(**STEP)
def _relabel(aim, label, d, q, g, s, count):
    """Replace q old parts with g new ones; returns the change in the number of parts over the target."""
    over = 0
    for j in range(q):
        over -= d.held[d.ids[j]] > aim.target
    for j in range(g):
        p = d.ids[j] if j < q else count + j - q
        d.held[p] = d.weight[j]
        d.heaviest[p] = d.heavy[j]
        over += d.weight[j] > aim.target
    for i in range(s):
        j = d.part[i]
        label[d.node[d.at[i]]] = d.ids[j] if j < q else count + j - q
    return over


@njit(**LEAN)
def _recombine(areas, aim, moments, cooling, label, state, d):
    """``recombine`` on arrays that Python allocated.

    If only weights count, ``moments`` is None, so that numba omits the code for the other forms.
    """
    indptr, indices, features = areas.indptr, areas.indices, areas.features
    n, form, (steps, hot, cold) = features.shape[0], aim.form, cooling
    count = 0
    for v in range(n):
        count = max(count, label[v] + 1)
    for v in range(n):
        d.held[label[v]] += features[v, 0]
        d.heaviest[label[v]] = max(d.heaviest[label[v]], features[v, 0])
    over = 0
    for p in range(count):
        over += d.held[p] > aim.target
    temperature = hot
    # A step merges the regions around a random edge, draws a spanning tree of them, and cuts it: into as many parts as
    # possible if their number counts or increases, else with the least value. Annealing decides whether it is accepted.
    for step in range(steps):
        if (form == COUNT and count >= aim.enough) or (form == OVER and over == 0):
            break
        if step & 255 == 0:
            temperature = hot * (cold / hot) ** (step / steps)
        if n > _NEAR:
            v = (step * (n // 256) // steps * 256 + int(uniform(state) * _NEAR)) % n
        else:
            v = int(uniform(state) * n)
        if indptr[v] == indptr[v + 1]:
            continue
        u = indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]
        if label[u] == label[v]:
            continue
        q, s = _merged(areas, aim, label, state, v, u, d)
        m = 0
        if moments is not None and form in (INERTIA, BORDER):  # compact or similar regions
            m = random_tree(indptr, indices, features, d, s, state)
        else:
            long_tree(indptr, indices, features, d, s, state)
        old = _value_before(aim, moments, label, d, q, s, m)
        limit = aim.cap
        for j in range(q):
            limit = max(limit, d.held[d.ids[j]])
        g = cut_most(d, s, areas.need, areas.l)
        new = np.inf
        if form != COUNT and (g <= q or count + g - q > aim.enough):
            g = q
            new = _least(areas, aim, moments, d, s, m, q, limit)
        take = g > q or (g == q and (form == COUNT or new <= old))
        if not take and new < np.inf:
            take = uniform(state) < np.exp((old - new) / temperature)
        if take:
            _weigh(features, d, s)
            new = 0.0
            for j in range(g):
                new += value(aim, d.weight[j], d.heavy[j])
                take = take and d.weight[j] <= limit
            if form == COUNT and g == q and new < old:
                take = take and uniform(state) < np.exp((new - old) / temperature)
        if take:
            over += _relabel(aim, label, d, q, g, s, count)
            count += g - q
        for i in range(s):
            d.place[d.node[i]] = -1
    return count


@njit(**LEAN_INNER)
def _joined(areas, label, start, around, part, stamp, work):
    """Whether all neighbors of ``around`` in ``part`` can be reached from ``start`` within the part."""
    indptr, indices, mark, queue = areas.indptr, areas.indices, work.mark, work.queue
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


def shift(areas: Areas, aim: ObjectiveAndLimits, cooling: Cooling, label: np.ndarray, state: np.ndarray) -> None:
    """Anneal a partition by single areas; the arguments are those of ``recombine``, any form except COUNT and EXCESS.

    A step moves one area into a neighboring part, or exchanges two areas of neighboring parts. The number of parts
    stays the same. O(size of the two parts) per step, and only if the value would be accepted.
    """
    (n, width), count, wide = areas.features.shape, int(label.max()) + 1, aim.moments.shape[1]
    work = Sums(
        np.zeros((count, width), np.int64), np.zeros((count, wide)), np.zeros(n, np.int64), np.empty(n, np.int64),
        np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(wide), np.zeros(wide), np.zeros(wide),
    )  # fmt: skip
    _shift(areas, aim, cooling, label, state, work)


class Sums(NamedTuple):
    """Working arrays for single moves, for n areas in c parts; sums begin at zero.

    sums, moments  int64[c, t + s], float64[c, w]: of every part
    mark, queue    int64[n]
    less, more     int64[t + s], and a, b float64[w]: two parts after a move
    nothing        float64[w]: zeros
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
    """The change of the border's number of edges if v moves to part q and x to p."""
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
def _inertia_change(aim, work, v, x, p, q):
    """The change of the inertia if v moves to part q and x to p; afterward a and b have their moments."""
    moments, geo, a, b, nothing = work.moments, aim.moments, work.a, work.b, work.nothing
    delta = -spread(moments[p], nothing, nothing) - spread(moments[q], nothing, nothing)
    for f in range(a.size):
        gone = geo[v, f] - (geo[x, f] if x >= 0 else 0.0)
        a[f] = moments[p, f] - gone
        b[f] = moments[q, f] + gone
    return (delta + spread(a, nothing, nothing) + spread(b, nothing, nothing)) / aim.scale


@njit(**STEP)
def _whole(areas, label, v, x, p, q, work, stamp):
    """Whether part p without v, and part q with it, are connected after v and x are exchanged."""
    indptr, indices = areas.indptr, areas.indices
    start = x
    if x < 0:
        for e in range(indptr[v], indptr[v + 1]):
            if label[indices[e]] == p:
                start = indices[e]
                break
    if start < 0 or not _joined(areas, label, start, v, p, stamp, work):
        return False
    return x < 0 or _joined(areas, label, v, x, q, stamp + 1, work)


@njit(**LEAN)
def _shift(areas, aim, cooling, label, state, work):
    """``shift`` on arrays that Python allocated."""
    indptr, indices, features = areas.indptr, areas.indices, areas.features
    (n, width), (steps, hot, cold) = features.shape, cooling
    sums, less, more = work.sums, work.less, work.more
    for v in range(n):
        for f in range(width):
            sums[label[v], f] += features[v, f]
        if aim.form == INERTIA:
            for f in range(work.a.size):
                work.moments[label[v], f] += aim.moments[v, f]
    stamp = 0
    temperature = hot
    # A step moves an area to the part of a neighbor, sometimes in exchange for another area. It checks sums first, then
    # the value, and last connectedness, which is the most expensive test.
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
        x = -1  # the area that moves in exchange
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
        if not (eligible(less, areas.need, areas.l) and eligible(more, areas.need, areas.l)):
            continue
        heavy = max(less[0], more[0])
        if heavy > aim.cap and heavy > max(sums[p, 0], sums[q, 0]):
            continue
        if aim.form == BORDER:
            delta = _border_change(areas, label, v, x, p, q)
        elif aim.form == INERTIA:
            delta = _inertia_change(aim, work, v, x, p, q)
        else:
            delta = value(aim, less[0], 0) + value(aim, more[0], 0)
            delta -= value(aim, sums[p, 0], 0) + value(aim, sums[q, 0], 0)
        if delta > 0 and uniform(state) >= np.exp(-delta / temperature):
            continue
        label[v] = q
        if x >= 0:
            label[x] = p
        stamp += 2
        if not _whole(areas, label, v, x, p, q, work, stamp):
            label[v] = p
            if x >= 0:
                label[x] = q
            continue
        for f in range(width):
            sums[p, f] = less[f]
            sums[q, f] = more[f]
        if aim.form == INERTIA:
            for f in range(work.a.size):
                work.moments[p, f] = work.a[f]
                work.moments[q, f] = work.b[f]
