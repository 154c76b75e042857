"""Minimum-cost flow and transportation with integer costs.

The flow uses cost scaling with push and relabel (Goldberg, Tarjan 1990), with global updates of the prices (Goldberg
1997); transportation uses shortest augmenting paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit

FAR = 8192  # largest distance to a deficit, in units of the error, that is distinguished
OFTEN = 0.5  # relabels per node between two global updates


class FlowNetwork(NamedTuple):
    """A network of n nodes; the arcs of node u, including reverse ones, are start[u] .. start[u + 1] - 1.

    start int64[n + 1]; to int32[a], price int64[a], back int32[a]: head, cost, and reverse arc of each
    left int64[a]: residual capacity; reverse arcs begin with 0 and have the negative cost
    """

    start: np.ndarray
    to: np.ndarray
    left: np.ndarray
    price: np.ndarray
    back: np.ndarray


class FlowWorkspace(NamedTuple):
    """Working arrays of ``ship``.

    queue int32[n + 1], waiting bool[n], at int64[n]: nodes with an excess; the current arc of each
    dist int64[n], head int32[FAR], after, before int32[n]: nodes by their distance to a deficit, as linked lists
    """

    queue: np.ndarray
    waiting: np.ndarray
    at: np.ndarray
    dist: np.ndarray
    head: np.ndarray
    after: np.ndarray
    before: np.ndarray


def ship(net: FlowNetwork, excess: np.ndarray, potential: np.ndarray, error: int, shrink: int) -> None:
    """Send every excess to the deficits; the cost is at most the optimum plus the number of nodes.

    excess int64[n]: in and out: flow that must leave a node, below 0 flow that must arrive; sums to 0; zeros at the end
    potential int64[n]: in and out: reduced costs of arcs with residual capacity should be at least -error; other arcs
    are saturated
    error, shrink       initial error (the largest cost, or less if the potentials are nearly optimal), and the factor
                        by which it is divided in each scale, until 1

    A feasible flow must exist. O(n^2 a log(error)) at worst, usually nearly linear.
    """
    from shoal.kernels import quick

    n = excess.size
    lists = [np.empty(size, np.int32) for size in (n + 1, FAR, n, n)]
    work = FlowWorkspace(lists[0], np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64), *lists[1:])
    quick(_ship, 30 * net.to.size)(net, excess, potential, error, shrink, max(int(OFTEN * n), 1), work)


@njit(**LEAN_INNER)
def _moved(work, u, d):
    """Move node u from its list to the list of nodes with distance d from a deficit."""
    if work.dist[u] < FAR:
        if work.before[u] >= 0:
            work.after[work.before[u]] = work.after[u]
        else:
            work.head[work.dist[u]] = work.after[u]
        if work.after[u] >= 0:
            work.before[work.after[u]] = work.before[u]
    work.dist[u], work.before[u], work.after[u] = d, -1, work.head[d]
    if work.head[d] >= 0:
        work.before[work.head[d]] = u
    work.head[d] = u


@njit(**LEAN_INNER)
def _update(net, excess, potential, error, work):
    """Lower potentials by the distance to a deficit; reduced costs of residual arcs stay at least -error.

    The length of an arc is its reduced cost in units of the error, rounded down, plus one. Nodes are in lists by
    distance (Dial 1969), until no node with an excess remains. Nodes farther away are lowered by the largest distance.
    O(a + FAR).
    """
    n = excess.size
    todo = 0
    for d in range(FAR):
        work.head[d] = -1
    for u in range(n):
        work.dist[u] = FAR
        todo += excess[u] > 0
        if excess[u] < 0:
            _moved(work, u, 0)
    d = 0
    # Dijkstra's algorithm from the deficits backward, with a list of nodes for each distance.
    while d < FAR - 1 and todo > 0:
        v = work.head[d]
        if v < 0:
            d += 1
            continue
        work.head[d] = work.after[v]
        if work.after[v] >= 0:
            work.before[work.after[v]] = -1
        potential[v] -= error * d
        work.dist[v] = -1  # done
        todo -= excess[v] > 0
        for e in range(net.start[v], net.start[v + 1]):
            u, r = net.to[e], net.back[e]
            if work.dist[u] > d and net.left[r] > 0:
                far = d + (net.price[r] + potential[u] - potential[v] - error * d) // error + 1
                if far < work.dist[u]:
                    _moved(work, u, far)
    for u in range(n):
        work.at[u] = net.start[u]
        if work.dist[u] >= 0:
            potential[u] -= error * d


@njit(**LEAN)
def _ship(net, excess, potential, error, shrink, often, work):
    """Push excess along admissible arcs, and relabel nodes; a global update after every ``often`` relabels."""
    start, to, left, price, back = net
    queue, waiting, at = work.queue, work.waiting, work.at
    n = excess.size
    # A scale: saturate every arc of negative reduced cost, then discharge nodes until no excess remains.
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
                _update(net, excess, potential, error, work)
                relabels = 0
            u = queue[first]
            first = first + 1 if first < n else 0
            waiting[u] = False
            # Push along admissible arcs. After the last arc, relabel the node so that one becomes admissible.
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


@njit(cache=True, nogil=True)
def prices(cost, u, v):
    """Initial prices, below every cost: v is the least of each column, then u the least of the remainder of each row.

    cost  int32[a, b];  u: int64[a], v: int64[b], out, u[i] + v[j] <= cost[i, j].  O(a b).
    """
    a, b = cost.shape
    for j in range(b):
        v[j] = cost[0, j]
    for i in range(1, a):
        for j in range(b):
            v[j] = min(v[j], cost[i, j])
    for i in range(a):
        least = cost[i, 0] - v[0]
        for j in range(1, b):
            least = min(least, cost[i, j] - v[j])
        u[i] = least


class Parcels(NamedTuple):
    """The shipments of a transportation problem, where p is the total supply.

    head int64[b]: first parcel of each column, -1 for none; after int64[p]: the next one
    source, amount int64[p]: row and size of each parcel
    """

    head: np.ndarray
    after: np.ndarray
    source: np.ndarray
    amount: np.ndarray


@njit(**LEAN_INNER)
def _added(j, r, some, parcels, used):
    """Ship more of row r to column j, in its existing parcel there or in a free or new one.

    Returns the parcels in use.
    """
    head, after, source, amount = parcels
    p = head[j]
    free = -1
    while p >= 0 and source[p] != r:
        if amount[p] == 0:
            free = p
        p = after[p]
    if p >= 0:
        amount[p] += some
    elif free >= 0:
        source[free], amount[free] = r, some
    else:
        source[used], amount[used], after[used] = r, some, head[j]
        head[j] = used
        used += 1
    return used


@njit(cache=True, nogil=True)
def ship_by_paths(cost, supply, demand, dual, parcels, used, low, high):
    """Ship the supply of rows low .. high - 1 by shortest augmenting paths; the prices remain feasible throughout.

    cost    int32[a, b]
    supply  int64[a], demand int64[b]: what isn't shipped yet; both sums are equal at the start
    dual    u int64[a], v int64[b]: prices, u[i] + v[j] <= cost[i, j], with equality for shipments
    parcels ``Parcels``
    used    int64: parcels in use;  low, high: int64, rows

    Returns the parcels in use; parcels may have size 0. O(a b) time for each path.
    """
    (u, v), (head, after, source, amount) = dual, parcels
    a, b = cost.shape
    dist = np.empty(b, np.int64)
    through = np.empty(b, np.int64)  # row from which a column was reached
    done = np.empty(b, np.bool_)
    reached = np.empty(a, np.int64)  # distance of a row, -1 if not reached
    parcel = np.empty(a, np.int64)  # parcel along which a row was reached
    came = np.empty(a, np.int64)  # and its column
    todo = np.empty(a, np.int64)
    far = np.int64(1) << 60
    for i in range(low, high):  # arcs with reduced cost 0 are used first
        for j in range(b):
            if supply[i] == 0:
                break
            if demand[j] > 0 and cost[i, j] == u[i] + v[j]:
                some = min(supply[i], demand[j])
                supply[i] -= some
                demand[j] -= some
                source[used], amount[used], after[used] = i, some, head[j]
                head[j] = used
                used += 1
    for i in range(low, high):
        # Dijkstra's algorithm from row i until a column with demand is reached; prices change by the distances, and the
        # parcels along the path are exchanged.
        while supply[i] > 0:
            dist[:] = far
            done[:] = False
            reached[:] = -1
            reached[i] = 0
            todo[0] = i
            waiting = 1
            # The rows reached last lower the distances of columns. The closest column is done, and the rows that ship
            # to it are reached.
            while True:
                for x in range(waiting):
                    r = todo[x]
                    base = reached[r] - u[r]
                    for j in range(b):
                        d = base + cost[r, j] - v[j]
                        if d < dist[j]:
                            dist[j] = d
                            through[j] = r
                end = -1
                best = far
                for j in range(b):
                    if not done[j] and (dist[j] < best or (dist[j] == best and demand[j] > 0 and demand[end] == 0)):
                        best = dist[j]
                        end = j
                done[end] = True
                if demand[end] > 0:
                    break
                waiting = 0
                p = head[end]
                while p >= 0:
                    r = source[p]
                    if amount[p] > 0 and reached[r] < 0:
                        reached[r] = best
                        parcel[r] = p
                        came[r] = end
                        todo[waiting] = r
                        waiting += 1
                    p = after[p]
            for r in range(a):
                if reached[r] >= 0:
                    u[r] += best - reached[r]
            for j in range(b):
                if done[j]:
                    v[j] -= best - dist[j]
            some = min(supply[i], demand[end])
            r = through[end]
            while r != i:
                some = min(some, amount[parcel[r]])
                r = through[came[r]]
            supply[i] -= some
            demand[end] -= some
            j = end
            while True:
                r = through[j]
                used = _added(j, r, some, parcels, used)
                if r == i:
                    break
                amount[parcel[r]] -= some
                j = came[r]
    return used
