"""Search over partitions of a graph into connected parts: neighboring parts are merged and cut anew along a random
tree.

What a search lowers is one of six forms, summed over the parts (``scale`` is k, or a unit of inertia):

    COUNT    0  raises the number of parts; among equals it raises the squares too, so that what is over gathers in
             one part
    SQUARES  1  (weight / scale)^2
    OVER     2  ((weight - target) / scale)^2 where that is positive, and a little of SQUARES
    EXCESS   3  (weight / max(scale, heaviest vertex))^8
    INERTIA  4  sum of mass * squared distance from the part's center, / scale, in places or in any other columns
    BORDER   5  edges between parts
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import LEAN, LEAN_INNER
from shoal.kernels.regions.spanning import eligible, uniform
from shoal.kernels.regions.tree_workspace import gather, most, random_tree, workspace

COUNT, SQUARES, OVER, EXCESS, INERTIA, BORDER = range(6)
_FEW = 64  # so many cuts at most are tried in pairs


@njit(**LEAN_INNER)
def _value(form, weight, heaviest, scale, target):
    """Value of one part where its weight and heaviest vertex decide."""
    x = weight / scale
    if form == OVER:
        over = max(0.0, (weight - target) / scale)
        return over * over + 1e-3 * x * x
    if form == EXCESS:
        x = weight / max(scale, float(heaviest))
        return (x * x) ** 4
    return x * x


@njit(**LEAN_INNER)
def spread(of, less, more_less):
    """Moment of inertia about the center, from the moments of a set less those of two subsets of it.

    of, less, more_less  float64[c + 2]  sums of mass, mass times each of c columns, mass times their squares
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


@njit(**LEAN_INNER)
def _least(features, need, ways, geo, d, s, m, q, form, scale, target, limit):
    """The cut of the tree into q = 2 or 3 parts of least value; marks the tops in ``part``, returns it or inf."""
    width, wide = d.sub.shape[1], d.mass.shape[1]
    spare = d.spare
    few = 0
    for i in range(1, s):
        if eligible(d.sub[i], need, ways):
            for f in range(width):
                spare[f] = d.sub[0, f] - d.sub[i, f]
            if eligible(spare, need, ways):
                d.heads[few] = i
                few += 1
    best = np.inf
    one = -1
    two = -1
    if few == 0 or (q == 3 and few > _FEW):
        return best
    if form == EXCESS:
        d.ahead[0] = 0
        d.behind[s] = 0
        for i in range(s):
            d.ahead[i + 1] = max(d.ahead[i], features[d.node[d.at[i]], 0])
        for i in range(s - 1, -1, -1):
            d.behind[i] = max(d.behind[i + 1], features[d.node[d.at[i]], 0])
    if form == BORDER:
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
    if form == INERTIA:
        for i in range(s):
            for f in range(wide):
                d.mass[i, f] = geo[d.node[d.at[i]], f]
        for i in range(s - 1, 0, -1):
            for f in range(wide):
                d.mass[d.up[i], f] += d.mass[i, f]
    total = d.sub[0, 0]
    nothing = d.nothing
    all_of = d.mass[0] if form == INERTIA else nothing
    if q == 2:
        for c in range(few):
            i = d.heads[c]
            a = d.sub[i, 0]
            b = total - a
            if a > limit or b > limit:
                continue
            if form == BORDER:
                value = float(d.cross[i])
            elif form == INERTIA:
                g = d.mass[i]
                value = (spread(g, nothing, nothing) + spread(all_of, g, nothing)) / scale
            elif form == EXCESS:
                inside = 0
                for j in range(i, i + d.size[i]):
                    inside = max(inside, features[d.node[d.at[j]], 0])
                outside = max(d.ahead[i], d.behind[i + d.size[i]])
                value = _value(form, a, inside, scale, target) + _value(form, b, outside, scale, target)
            else:
                value = _value(form, a, 0, scale, target) + _value(form, b, 0, scale, target)
            if value < best:
                best = value
                one = i
    else:
        for c in range(few):
            i = d.heads[c]
            for e in range(c + 1, few):
                j = d.heads[e]
                nested = j < i + d.size[i]
                for f in range(width):
                    spare[f] = d.sub[i, f] - d.sub[j, f] if nested else d.sub[0, f] - d.sub[i, f] - d.sub[j, f]
                if not eligible(spare, need, ways):
                    continue
                a = total - d.sub[i, 0] if nested else d.sub[i, 0]
                if max(spare[0], d.sub[j, 0], a) > limit:
                    continue
                if form == INERTIA:
                    g = d.mass[i]
                    h = d.mass[j]
                    value = spread(h, nothing, nothing)
                    if nested:
                        value += spread(g, h, nothing) + spread(all_of, g, nothing)
                    else:
                        value += spread(g, nothing, nothing) + spread(all_of, g, h)
                    value /= scale
                else:
                    value = _value(form, spare[0], 0, scale, target)
                    value += _value(form, d.sub[j, 0], 0, scale, target) + _value(form, a, 0, scale, target)
                if value < best:
                    best = value
                    one = i
                    two = j
    if one >= 0:
        for i in range(s):
            d.part[i] = 0
        d.part[0] = 1
        d.part[one] = 1
        if two >= 0:
            d.part[two] = 1
    return best


def recombine(
    indptr, indices, features, need, ways, geo, label, form, scale, target, cap, enough, steps, hot, cold, state
):
    """Anneal a partition: merge two or three neighboring parts, draw a spanning tree of them, cut it anew.

    indptr, indices  the graph
    features   int64[n, t + s]  weights (the first is the one valued), then counts of sensitive values
    need       int64[t]    thresholds;  ways int64: l of l-diversity, 1 asks nothing
    geo        float64[n or 0, c + 2]  mass, mass times each of c columns, mass times the sum of their squares; used
               by INERTIA
    label      int64[n]    0..q-1, every part connected and eligible; changed in place and stays so
    form       int64       what to lower, as above;  scale, target float64
    cap        int64       no part is made heavier than this, or than the heaviest it replaces
    enough     int64       no form makes more parts than this (COUNT stops there, OVER when no part is over the target)
    steps      int64;  hot, cold float64: temperature at the first and the last step
    state      uint64[1]   randomness, advanced
    returns    int64       number of parts, never less than before

    A step takes time linear in the parts merged, and at most 64^2 more where three are cut by value.  Python makes the
    room: a kernel that makes none compiles in three quarters of the time.
    """
    n = features.shape[0]
    room = workspace(n, indices.shape[0] // 2, features.shape[1], n if form == INERTIA else 0, geo.shape[1])
    return _recombine(
        indptr, indices, features, need, ways, geo, label, form, scale, float(target), cap, enough, steps, hot, cold,
        state, room,
    )  # fmt: skip


@njit(**LEAN)
def _recombine(
    indptr, indices, features, need, ways, geo, label, form, scale, target, cap, enough, steps, hot, cold, state, d
):
    """The same, in the room d."""
    n, wide = features.shape[0], geo.shape[1]
    count = 0
    for v in range(n):
        count = max(count, label[v] + 1)
    weight, heaviest, ids, sums, nothing = d.held, d.heaviest, d.ids, d.sums, d.nothing
    for v in range(n):
        weight[label[v]] += features[v, 0]
        heaviest[label[v]] = max(heaviest[label[v]], features[v, 0])
    over = 0
    for p in range(count):
        over += weight[p] > target
    temperature = hot
    for step in range(steps):
        if (form == COUNT and count >= enough) or (form == OVER and over == 0):
            break
        if step & 255 == 0:
            temperature = hot * (cold / hot) ** (step / steps)
        v = int(uniform(state) * n)
        if indptr[v] == indptr[v + 1]:
            continue
        u = indices[indptr[v] + int(uniform(state) * (indptr[v + 1] - indptr[v]))]
        if label[u] == label[v]:
            continue
        ids[0] = label[v]
        ids[1] = label[u]
        q = 2
        d.node[0] = v
        d.place[v] = 0
        s = gather(indptr, indices, label, d, 0, 1, ids[0], ids[1])
        if form != EXCESS and form != BORDER and uniform(state) < 0.5:
            for _ in range(4):
                y = d.node[int(uniform(state) * s)]
                x = indices[indptr[y] + int(uniform(state) * (indptr[y + 1] - indptr[y]))]
                if d.place[x] < 0:
                    ids[2] = label[x]
                    q = 3
                    d.place[x] = s
                    d.node[s] = x
                    s = gather(indptr, indices, label, d, s, s + 1, ids[2], ids[2])
                    break
        m = random_tree(indptr, indices, features, d, s, state)
        old = 0.0
        limit = cap
        for j in range(q):
            limit = max(limit, weight[ids[j]])
            old += _value(form, weight[ids[j]], heaviest[ids[j]], scale, target)
        if form == BORDER:
            old = 0.0
            for e in range(m):
                old += label[d.node[d.tail[e]]] != label[d.node[d.head[e]]]
        elif form == INERTIA:
            for j in range(3):
                for f in range(wide):
                    sums[j, f] = 0.0
            for i in range(s):
                j = 0
                while ids[j] != label[d.node[i]]:
                    j += 1
                for f in range(wide):
                    sums[j, f] += geo[d.node[i], f]
            old = 0.0
            for j in range(q):
                old += spread(sums[j], nothing, nothing) / scale
        g = most(d, s, need, ways)
        new = np.inf
        if form != COUNT and (g <= q or count + g - q > enough):
            g = q
            new = _least(features, need, ways, geo, d, s, m, q, form, scale, target, limit)
        take = g > q or (g == q and (form == COUNT or new <= old))
        if not take and new < np.inf:
            take = uniform(state) < np.exp((old - new) / temperature)
        if take:
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
            new = 0.0
            for j in range(g):
                new += _value(form, d.weight[j], d.heavy[j], scale, target)
                take = take and d.weight[j] <= limit
            if form == COUNT and g == q and new < old:
                take = take and uniform(state) < np.exp((new - old) / temperature)
        if take:
            for j in range(q):
                over -= weight[ids[j]] > target
            for j in range(g):
                p = ids[j] if j < q else count + j - q
                weight[p] = d.weight[j]
                heaviest[p] = d.heavy[j]
                over += d.weight[j] > target
            for i in range(s):
                j = d.part[i]
                label[d.node[d.at[i]]] = ids[j] if j < q else count + j - q
            count += g - q
        for i in range(s):
            d.place[d.node[i]] = -1
    return count
