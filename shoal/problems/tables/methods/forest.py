"""k-anonymity within a factor of 3k - 3 by a forest of small weight that is cut into groups.

Aggarwal, Feder, Kenthapadi, Motwani, Panigrahy, Thomas, Zhu, "Approximation algorithms for k-anonymity" (Anonymizing
tables, ICDT 2005): a forest whose trees have k rows or more and weigh no more than the optimum, cut into groups.

Not in the paper: equal rows are one vertex with a weight; the cutting below, which gives 3k - 3 for every k >= 2 and
needs only a property of all recodings: a group loses per row at most the weight of any tree that spans it.

Theorem.  The partition costs at most (3k - 3) times the optimum.
Proof.  (Weight.)  If a tree has fewer than k rows, some row of it has chosen no edge yet, and one of that row's k - 1
        nearest other rows is outside; the row chooses the cheapest such edge. So every row chooses at most one edge,
        which costs no more than its distance to its (k-1)-th nearest other row. In an optimum, a row pays at least
        that, because its group contains k - 1 others.
(Cutting.)  From the leaves up, every vertex receives bundles of fewer than k rows, each with the part of the tree that
connects it to the vertex. Whole bundles are packed until k rows are reached: a group of at most 2k - 2 rows, connected
at the vertex. The remainder and the vertex's own rows form a group if they have k rows; otherwise they are the bundle
that is passed up. The used parts of the tree are disjoint except for shared vertices. At the root, a bundle of fewer
than k rows may remain. It joins a group of its tree that its part touches, which then has at most 3k - 3 rows; any
group that costs less to join is as good. Every group costs at most its rows times the weight of its part, so the total
is at most 3k - 3 times the weight of the forest.  []
"""

from __future__ import annotations

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.model.histogram import Partition, distribute
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import NEAREST, k_only, kth, neighbors, whole_cost

Group = dict[int, int]  # type -> rows


def forest(task: Task) -> Grouping:
    """Groups from a forest of nearest neighbors; at most 3k - 3 times the optimum, for every recoding.

    k-anonymity alone; PolicyError otherwise. The instance bound: a row pays at least its loss in a group with its
    (k-1)-th nearest other row. O(t^2 d) for t types.
    """
    histogram, k = task.histogram, task.requirement.k
    k_only(task.requirement, "forest")
    refuse_infeasible(histogram, task.requirement)
    costs = Costs.of(histogram, task.recoding)
    index, distance = neighbors(costs, k)
    edges = grow(costs, k, index, distance)
    groups = cut_trees(costs, k, edges)
    partition = _placed(task, groups)
    lower = int(kth(costs, k, index, distance) @ costs.count)
    theorem = "Aggarwal et al. 2005, forest algorithm: 3k - 3"
    promise = Guarantee(factor=max(3 * k - 3, 1), additive=0, theorem=theorem)
    ends = (lower, whole_cost(costs, task, partition))
    return costs.grouping(task, partition, "forest", ends, promise, NEAREST, {"edges": len(edges)})


def grow(costs: Costs, k: int, index: np.ndarray, distance: np.ndarray) -> list[tuple[int, int]]:
    """Edges of a forest whose trees have k rows or more; each type chooses at most one.

    A tree of fewer than k rows has m types and m - 1 edges, so exactly one of its types hasn't chosen: ``free``.
    """
    parent = list(range(costs.types))
    rows = costs.count.tolist()
    free = list(range(costs.types))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    edges = []
    small = sorted((t for t in range(costs.types) if rows[t] < k), key=lambda t: (int(distance[t, 0]), t))
    while small:
        waiting = []
        for tree in small:
            if parent[tree] != tree or rows[tree] >= k:
                continue
            a = free[tree]
            b = next(b for b in index[a].tolist() if b >= 0 and root(b) != tree)
            other = root(b)
            edges.append((a, b))
            parent[tree] = other
            rows[other] += rows[tree]
            if rows[other] < k:
                waiting.append(other)
        small = waiting
    return edges


def cut_trees(costs: Costs, k: int, edges: list[tuple[int, int]]) -> list[Group]:
    """Groups of at least k rows from the trees of the forest."""
    t = costs.types
    adjacent: list[list[int]] = [[] for _ in range(t)]
    for a, b in edges:
        adjacent[a].append(b)
        adjacent[b].append(a)
    seen = [False] * t
    out: list[Group] = []
    # Each tree from its leaves up: a vertex gets the rows that its children couldn't place, and closes groups of k with
    # them; the rest goes to its parent.
    for top in range(t):
        if seen[top]:
            continue
        order, above = [top], {top: -1}
        seen[top] = True
        for x in order:
            for y in adjacent[x]:
                if not seen[y]:
                    seen[y] = True
                    above[y] = x
                    order.append(y)
        bundles: dict[int, list[Group]] = {x: [] for x in order}
        groups: list[Group] = []
        for x in reversed(order):
            left = _pack(bundles.pop(x), k, groups)
            own, held = int(costs.count[x]), sum(left.values())
            if held + own >= k:
                if held:
                    groups.append({**left, x: k - held})
                    own -= k - held
                if own >= k:
                    groups.append({x: own})
                    own = 0
                left = {x: own} if own else {}
            else:
                left[x] = own
            if above[x] >= 0:
                if left:
                    bundles[above[x]].append(left)
            elif left:
                _join(costs, k, left, groups)
        out += groups
    return out


def _pack(bundles: list[Group], k: int, groups: list[Group]) -> Group:
    """Pack whole bundles into groups of k .. 2k - 2 rows; returns the remainder of fewer than k rows."""
    left: Group = {}
    for bundle in bundles:
        for x, rows in bundle.items():
            left[x] = left.get(x, 0) + rows
        if sum(left.values()) >= k:
            groups.append(left)
            left = {}
    return left


def _join(costs: Costs, k: int, left: Group, groups: list[Group]) -> None:
    """Put the root's bundle of fewer than k rows where it costs least.

    A sufficiently large group of equal rows gives only as many rows as the bundle lacks.
    """
    missing = k - sum(left.values())
    best, choice, giving = 0, -1, False
    for g, group in enumerate(groups):
        size, now = sum(group.values()), costs.loss(list(group))
        together = costs.loss([*group, *left])
        gives = len(group) == 1 and size - missing >= k
        added = (k if gives else size + k - missing) * together - (missing if gives else size) * now
        if choice < 0 or added < best:
            best, choice, giving = added, g, gives
    group = groups[choice]
    if giving:
        (x,) = group
        group[x] -= missing
        left[x] = left.get(x, 0) + missing
        groups.append(left)
    else:
        for x, rows in left.items():
            group[x] = group.get(x, 0) + rows


def _placed(task: Task, groups: list[Group]) -> Partition:
    found = [(x, g, rows) for g, held in enumerate(groups) for x, rows in held.items()]
    kind, group, rows = np.array(found, np.int64).reshape(-1, 3).T
    return distribute(task.histogram.count, task.histogram.types[0], kind, group, rows)
