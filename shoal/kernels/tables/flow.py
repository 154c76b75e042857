"""Minimum-cost flow by cost scaling, push and relabel (Goldberg, Tarjan 1990), with global updates of the prices
(Goldberg 1997), in whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit

FAR = 8192  # steps of error to a deficit, beyond which nodes are not told apart
OFTEN = 0.5  # relabels for each node between two looks at all of them


class Net(NamedTuple):
    """A network of n nodes; the arcs of node u, reverse ones among them, are start[u] .. start[u + 1] - 1.

    start int64[n + 1]; to int32[a], price int64[a], back int32[a]  head, cost and reverse arc of each
    left int64[a]  what an arc can still take; reverse arcs take 0 at first and have the cost negated
    """

    start: np.ndarray
    to: np.ndarray
    left: np.ndarray
    price: np.ndarray
    back: np.ndarray


class Room(NamedTuple):
    """What ``ship`` works in.

    queue int32[n + 1], waiting bool[n], at int64[n]  nodes with an excess; the next arc of each
    dist int64[n], head int32[FAR], after, before int32[n]  nodes by their distance to a deficit, as lists
    """

    queue: np.ndarray
    waiting: np.ndarray
    at: np.ndarray
    dist: np.ndarray
    head: np.ndarray
    after: np.ndarray
    before: np.ndarray


def ship(net: Net, excess: np.ndarray, potential: np.ndarray, error: int, shrink: int) -> None:
    """Carry every excess to the deficits; the cost is at most the number of nodes above the least.

    excess int64[n]     in and out: what is to leave a node, below 0 what is to arrive; sums to 0; zeros at the end
    potential int64[n]  in and out: arcs that take something should cost at least -error with them, else they are filled
    error, shrink       first error (the largest cost, or less where the potentials are nearly right), and what it is
                        divided by from scale to scale, until 1

    A flow that carries everything must exist.  O(n^2 a log(error)) at worst, nearly linear as a rule.
    """
    from shoal.kernels.uncompiled import quick

    n = excess.size
    lists = [np.empty(size, np.int32) for size in (n + 1, FAR, n, n)]
    room = Room(lists[0], np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64), *lists[1:])
    quick(_ship, 30 * net.to.size)(net, excess, potential, error, shrink, max(int(OFTEN * n), 1), room)


@njit(**LEAN_INNER)
def _moved(room, u, d):
    """Node u put where nodes d steps from a deficit are, out of where it was."""
    if room.dist[u] < FAR:
        if room.before[u] >= 0:
            room.after[room.before[u]] = room.after[u]
        else:
            room.head[room.dist[u]] = room.after[u]
        if room.after[u] >= 0:
            room.before[room.after[u]] = room.before[u]
    room.dist[u], room.before[u], room.after[u] = d, -1, room.head[d]
    if room.head[d] >= 0:
        room.before[room.head[d]] = u
    room.head[d] = u


@njit(**LEAN_INNER)
def _update(net, excess, potential, error, room):
    """Potentials lowered by the distance to a deficit: arcs that take something cost at least -error after as before.

    An arc is as long as the errors that fit into its cost, and one more: lists of nodes by distance (Dial 1969), until
    no node with an excess is left; what is farther goes down as far as the last one.  O(a + FAR).
    """
    n = excess.size
    todo = 0
    for d in range(FAR):
        room.head[d] = -1
    for u in range(n):
        room.dist[u] = FAR
        todo += excess[u] > 0
        if excess[u] < 0:
            _moved(room, u, 0)
    d = 0
    while d < FAR - 1 and todo > 0:
        v = room.head[d]
        if v < 0:
            d += 1
            continue
        room.head[d] = room.after[v]
        if room.after[v] >= 0:
            room.before[room.after[v]] = -1
        potential[v] -= error * d
        room.dist[v] = -1  # done
        todo -= excess[v] > 0
        for e in range(net.start[v], net.start[v + 1]):
            u, r = net.to[e], net.back[e]
            if room.dist[u] > d and net.left[r] > 0:
                far = d + (net.price[r] + potential[u] - potential[v] - error * d) // error + 1
                if far < room.dist[u]:
                    _moved(room, u, far)
    for u in range(n):
        room.at[u] = net.start[u]
        if room.dist[u] >= 0:
            potential[u] -= error * d


@njit(**LEAN)
def _ship(net, excess, potential, error, shrink, often, room):
    """The same; relabels between two global updates int64 often."""
    start, to, left, price, back = net
    queue, waiting, at = room.queue, room.waiting, room.at
    n = excess.size
    while True:
        for u in range(n):
            for e in range(start[u], start[u + 1]):
                if left[e] > 0 and price[e] + potential[u] - potential[to[e]] < 0:
                    excess[u] -= left[e]
                    excess[to[e]] += left[e]
                    left[back[e]] += left[e]
                    left[e] = 0
        first, end = 0, 0
        for u in range(n):
            at[u] = start[u]
            waiting[u] = excess[u] > 0
            if waiting[u]:
                queue[end] = u
                end += 1
        relabels = often
        while first != end:
            if relabels >= often:
                _update(net, excess, potential, error, room)
                relabels = 0
            u = queue[first]
            first = first + 1 if first < n else 0
            waiting[u] = False
            while excess[u] > 0:
                if at[u] == start[u + 1]:
                    best = -(np.int64(1) << 60)
                    for e in range(start[u], start[u + 1]):
                        if left[e] > 0:
                            best = max(best, potential[to[e]] - price[e])
                    potential[u] = best - error
                    at[u] = start[u]
                    relabels += 1
                e = at[u]
                v = to[e]
                if left[e] > 0 and price[e] + potential[u] - potential[v] < 0:
                    some = min(excess[u], left[e])
                    excess[u] -= some
                    left[e] -= some
                    left[back[e]] += some
                    excess[v] += some
                    if excess[v] > 0 and not waiting[v]:
                        waiting[v] = True
                        queue[end] = v
                        end = end + 1 if end < n else 0
                    if excess[u] == 0:
                        break
                at[u] += 1
        if error <= 1:
            return
        error = max(error // shrink, 1)
