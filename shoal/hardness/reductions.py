"""Reductions to tables and to points: instances for which the least cost answers a hard question.

1-in-3 SAT is reduced to the partition of a graph's edges into 4-stars, and that to tables and their least number of
stars (Blocki and Williams 2010, Theorem 1.5). docs/hardness.md describes the trees of a variable and the vertices of a
clause, and shows that the graph needn't be bipartite, as the paper adds; the proof needs only that it has no triangle.

Clauses come in threes, so that the number of spare leaf edges of a tree is divisible by three; three spare edges each
end at a new vertex.

3-SAT is reduced to r-gather with radius 1 or 2, and dominating set to cellular clustering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError
from shoal.hardness.instances import (
    DominatingSet,
    Formula,
    Graph,
    Metric,
    Sizes,
    Table,
    ThreePartition,
    Tripartite,
    Triples,
    TwoPartition,
    exact_cover,
)


def anonymity_27(source: Triples) -> Table:
    """Max 3DM with at most three tuples per element to 3-anonymity over 27 columns.

    Blocki and Williams 2010, Theorem 1.2. A row per element, a column per (i, j, k) in 1..3 cubed. In that column, a
    row of the first set has its i-th tuple, one of the second its j-th, one of the third its k-th. Elements with fewer
    tuples are filled up with fresh symbols. Three rows share a symbol in exactly one column if they are a tuple, and in
    no column otherwise. So every tuple of a matching saves three stars: the least number is 81 n - 3 times the size of
    the largest matching. (The paper allows sets of different sizes and then has one or two rows left; here all have n
    elements.)
    """
    if source.dimension != 3:
        raise InputError(f"this reduction is from triples, not tuples of {source.dimension}")
    fresh = len(source.triples)
    rows = []
    for part in range(3):
        for element in range(source.n):
            own = source.occurrences(part, element)
            if len(own) > 3:
                raise InputError(f"element {element} of set {part} is in {len(own)} triples, more than three")
            while len(own) < 3:
                own.append(fresh)
                fresh += 1
            rows.append([own[(i, j, k)[part]] for i in range(3) for j in range(3) for k in range(3)])
    size = len(source.largest_matching())
    return Table(
        rows=np.array(rows, np.int64),
        sensitive=np.zeros((3 * source.n, 0), np.int64),
        k=3,
        target=78 * source.n,
        optimum=81 * source.n - 3 * size,
        answer=size == source.n,
        source=source,
    )


def incidence(edges: Sequence[tuple[int, int]], vertices: int) -> np.ndarray:
    """int64[m, n]: the incidence matrix, with a row per edge, a column per vertex, and 1 where the edge ends."""
    table = np.zeros((len(edges), vertices), np.int64)
    for row, (u, v) in enumerate(edges):
        table[row, [u, v]] = 1
    return table


def binary_anonymity(edges: Sequence[tuple[int, int]]) -> Table:
    """Partition of a graph's edges into triangles and 4-stars to 3-anonymity over binary columns.

    Blocki and Williams 2010, Appendix C, after Aggarwal et al. 2005: the incidence matrix. Three edges of a simple
    graph disagree on three vertices if they form a triangle or share one end (a 4-star has four vertices, three edges),
    and on more otherwise. Larger groups disagree on even more. So 3 m stars suffice if and only if the edges can be
    partitioned so.
    """
    listed = [(int(u), int(v)) for u, v in edges]
    if len({frozenset(e) for e in listed}) != len(listed) or any(u == v for u, v in listed):
        raise InputError("the graph must be simple: no loops and no edge twice")
    parts = exact_cover(len(listed), triples_of_edges(listed))
    return Table(
        rows=incidence(listed, 1 + max(max(e) for e in listed)),
        sensitive=np.zeros((len(listed), 0), np.int64),
        k=3,
        target=3 * len(listed),
        answer=parts is not None,
        source=tuple(listed),
    )


def triples_of_edges(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """All triples of edges (as indices) that share an end, and all that form a triangle."""
    at: dict[int, list[int]] = {}
    number = {frozenset(e): i for i, e in enumerate(edges)}
    for i, (u, v) in enumerate(edges):
        at.setdefault(u, []).append(i)
        at.setdefault(v, []).append(i)
    found: set[tuple[int, int, int]] = set()
    for own in at.values():
        for a, i in enumerate(own):
            for b, j in enumerate(own[a + 1 :], a + 1):
                found.update((i, j, k) for k in own[b + 1 :])
                third = number.get(frozenset(edges[i]) ^ frozenset(edges[j]))
                if third is not None:
                    found.add(tuple(sorted((i, j, third))))  # type: ignore[arg-type]
    return sorted(found)


def diversity_three_columns(source: Tripartite) -> Table:
    """Triangle partition of a tripartite graph to 2-diversity over binary columns with three binary sensitive columns.

    Blocki and Williams 2010, Theorem 1.6: the incidence matrix, where sensitive column j is whether the edge has an end
    in part j. Three stars a row suffice if and only if there is a triangle partition. The paper's Definition 1 requires
    that l rows of a group differ pairwise in all sensitive columns, which no triangle's rows do. The theorem holds if
    each sensitive column has l values in every group, and this is the model here.
    """
    has = [[int(j in (source.part[u], source.part[v])) for j in range(3)] for u, v in source.edges]
    return _by_triangles(source, np.array(has, np.int64).reshape(-1, 3), 2)


def diversity_one_column(source: Tripartite) -> Table:
    """Triangle partition of a tripartite graph to 3-diversity over binary columns with one ternary sensitive column.

    Blocki and Williams 2010, Theorem 1.7: as above, and the sensitive value is the part in which the edge has no end.
    """
    missed = [3 - source.part[u] - source.part[v] for u, v in source.edges]
    return _by_triangles(source, np.array(missed, np.int64).reshape(-1, 1), 3)


def _by_triangles(source: Tripartite, sensitive: np.ndarray, l: int) -> Table:
    return Table(
        rows=incidence(source.edges, len(source.part)), sensitive=sensitive, l=l, target=3 * len(source.edges),
        answer=source.triangles() is not None, source=source,
    )  # fmt: skip


def diversity_by_matching(source: Triples, m: int) -> Table:
    """l-dimensional matching to frequency l-diversity with m sensitive values, any l n >= m >= l >= 3.

    Xiao, Yi, Tao 2010, Theorem 4.7. A row per element and a column per tuple: 0 if the tuple contains the element,
    otherwise the row's sensitive value. Rows of different sets have different sensitive values. A column that a group
    keeps must be 0 in all its rows, so the group is one tuple: l n (d - 1) stars suffice if and only if there is a
    perfect matching. The paper gives the details for l = 3. Here set 1, then 2, ... gets as many values as m allows,
    and the rest of a set shares one.
    """
    l, n, d = source.dimension, source.n, len(source.triples)
    if not l <= m <= l * n:
        raise InputError(f"m is {m}; with {l} sets of {n} elements it must lie within {l}..{l * n}")
    rows, sensitive, used = [], [], 0
    for part in range(l):
        distinct = min(n, m - used - (l - 1 - part))
        for element in range(n):
            value = 1 + used + min(element, distinct - 1)
            sensitive.append(value)
            rows.append([0 if t[part] == element else value for t in source.triples])
        used += distinct
    return Table(
        rows=np.array(rows, np.int64),
        sensitive=np.array(sensitive, np.int64)[:, None],
        l=l,
        target=l * n * (d - 1),
        answer=len(source.largest_matching()) == n,
        source=source,
    )


def bin_covering(source: ThreePartition) -> Sizes:
    """3-Partition to min-max bin covering with k = B: Du, Eppstein, Goodrich, Lueker 2009, Theorem 5.

    If there is a partition, m bins of weight B exist; otherwise the largest bin is above B.
    """
    return Sizes(
        sizes=np.array(source.weights, np.int64),
        k=source.bound,
        target=source.bound,
        answer=source.solution() is not None,
        source=source,
    )


def bins_in_binary(source: TwoPartition) -> Sizes:
    """Partition to min-max bin covering with k half the sum: k if the weights can be halved, else one bin of 2 k.

    So a factor below 2 isn't polynomial if sizes are written in binary, unless P = NP: the first half of Theorem 6 of
    Du, Eppstein, Goodrich, Lueker 2009, which refers to a preprint for the proof. Two bins of at least half the sum
    have half the sum each.
    """
    k = sum(source.weights) // 2
    answer = source.solution() is not None
    return Sizes(
        sizes=np.array(source.weights, np.int64),
        k=k,
        target=k,
        answer=answer,
        optimum=k if answer else 2 * k,
        otherwise=2 * k,
        source=source,
    )


def bins_in_unary(source: ThreePartition, lift: int = 25) -> Sizes:
    """3-Partition to min-max bin covering with every weight increased by M = ``lift`` B, and k = 3 M + B.

    If there is a partition, the largest bin has k. Otherwise it has at least 4 M and the four least weights: 4 lift /
    (3 lift + 1) times k, which approaches 4/3. 3-Partition is strongly NP-hard, so no smaller factor is polynomial even
    if sizes are written in unary, unless P = NP: the second half of Theorem 6 of Du, Eppstein, Goodrich, Lueker 2009,
    which refers to a preprint for the proof. Two items never fill a bin: 2 M + B < k. So if no bin has four items, all
    have three. Then there are m bins with total m k, and each has at least k, so each has exactly k.
    """
    if lift < 1:
        raise InputError(f"lift is {lift}; two items must not fill a bin, so it is at least 1")
    high = lift * source.bound
    sizes = np.array(source.weights, np.int64) + high
    return Sizes(
        sizes=sizes,
        k=3 * high + source.bound,
        target=3 * high + source.bound,
        answer=source.solution() is not None,
        otherwise=int(np.sort(sizes)[:4].sum()),
        source=source,
    )


class _Builder:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.positions: list[tuple[float, float]] = []
        self.edges: list[tuple[int, int]] = []

    def vertex(self, name: str, x: float, y: float) -> int:
        self.names.append(name)
        self.positions.append((x, y))
        return len(self.names) - 1

    def join(self, u: int, v: int) -> None:
        self.edges.append((u, v))


def four_stars(formula: Formula) -> Graph:
    """1-in-3 SAT to a triangle-free graph whose edges are to be partitioned into 4-stars.

    The partition exists if and only if some assignment makes exactly one literal of each clause true. target and cost
    don't apply: ``answer`` is the whole question. O(clauses) vertices.
    """
    build = _Builder()
    slots: dict[int, list[int]] = {}  # literal -> parents of its free leaf edges, a parent once per edge
    offset = 0.0
    for v in formula.variables:
        most = max(sum(s * v in c for c in formula.clauses) for s in (1, -1))
        depth = 2
        while 3 * 2 ** (depth - 1) < 3 * (most + 1):
            depth += 1
        width = 3.0 * 2 ** (depth - 1)
        ends = {s: _tree(build, v, s, depth, offset, width) for s in (1, -1)}
        for top, bottom in zip(ends[1][0 :: _spread(depth)][:3], ends[-1][0 :: _spread(depth)][:3], strict=True):
            build.join(top, bottom)
            ends[1].remove(top)
            ends[-1].remove(bottom)
        slots[v], slots[-v] = ends[1], ends[-1]
        offset += width + 2.0
    for number, clause in enumerate(formula.clauses):
        for copy in range(3):
            high = sum(x > 0 for x in clause) >= 2
            x = offset * (number + 0.25 + 0.25 * copy) / len(formula.clauses)
            y = (9.0 if high else -9.0) + 0.6 * copy
            center = build.vertex(f"clause {number + 1}.{copy + 1}", x, y)
            leaf = build.vertex("", x, y + (1.2 if high else -1.2))
            build.join(center, leaf)
            for literal in clause:
                build.join(_take(slots[literal]), center)
    for literal, spare in slots.items():
        bundles = len(spare) // 3
        spare.sort()
        for b in range(bundles):  # a parent's two edges are neighbors in the list, so they go to different bundles
            own = spare[b::bundles]
            x = float(np.mean([build.positions[p][0] for p in own]))
            vertex = build.vertex("", x, 1.2 if literal > 0 else -1.2)
            for parent in own:
                build.join(parent, vertex)
    return Graph(
        edges=np.array(build.edges, np.int64),
        names=tuple(build.names),
        positions=np.array(build.positions),
        k=3,
        target=len(build.edges) // 3,
        unit="stars of three edges",
        answer=formula.one_in_three() is not None,
        source=formula,
    )


def _spread(depth: int) -> int:
    """The distance, in the list of leaf slots with two for each parent, between the three parents to join."""
    return 2 ** (depth - 1)


def _tree(build: _Builder, variable: int, sign: int, depth: int, left: float, width: float) -> list[int]:
    """A tree with inner vertices of degree three; returns the parents of its leaves, each twice."""
    name = f"{'' if sign > 0 else 'not '}x{variable}"
    level = [build.vertex(name, left + width / 2, sign * 6.5)]
    for d in range(1, depth):
        below = []
        step = 4.0 / max(depth - 1, 1)
        count = 3 * 2 ** (d - 1)
        for i, parent in enumerate(p for p in level for _ in range(3 if d == 1 else 2)):
            x = left + width * (i + 0.5) / count
            below.append(build.vertex("", x, sign * (6.5 - step * d)))
            build.join(parent, below[-1])
        level = below
    return [p for p in level for _ in range(2)]


def _take(slots: list[int]) -> int:
    """A parent with the most free leaf edges.

    Whole pairs are used first, so that the spare edges end at different parents.
    """
    parent = max(slots, key=lambda p: (slots.count(p), -p))
    slots.remove(parent)
    return parent


def gather(formula: Formula, r: int = 7) -> Metric:
    """3-SAT to r-gather with radius 1 or 2: a graph metric with clusters of at least r points, centered at points.

    Radius 1 is possible if and only if the formula can be satisfied. Radius 2 is always possible, so no factor below 2
    is polynomial unless P = NP.

    Aggarwal et al. 2006, section 2.1. Each variable has two vertices, joined to each other and to r - 2 further
    vertices. One of the two must be a center to reach these. Both can't be centers, because every literal is in at most
    three clauses, so at most r + 6 < 2 r points are near. A clause is a vertex joined to its literals. It has too few
    neighbors to be a center, so one of its literals must be. If there is no path, the distance is the number of points.
    """
    if r <= 6:
        raise InputError(f"r is {r}; the argument needs r > 6")
    for literal in {v for c in formula.clauses for v in c}:
        count = sum(literal in c for c in formula.clauses)
        if count > 3:
            raise InputError(f"literal {literal} is in {count} clauses, more than three")
    names: list[str] = []
    edges: list[tuple[int, int]] = []
    at: dict[int, int] = {}
    for v in formula.variables:
        at[v], at[-v] = len(names), len(names) + 1
        names += [f"x{v}", f"not x{v}"]
        edges.append((at[v], at[-v]))
        for _ in range(r - 2):
            edges += [(at[v], len(names)), (at[-v], len(names))]
            names.append("")
    for i, clause in enumerate(formula.clauses):
        edges += [(at[literal], len(names)) for literal in clause]
        names.append(f"clause {i + 1}")
    answer = formula.satisfying() is not None
    return Metric(
        distances=shortest_paths(len(names), np.array(edges, np.int64)),
        edges=np.array(edges, np.int64),
        names=tuple(names),
        r=r,
        target=1,
        optimum=1 if answer else 2,
        answer=answer,
        source=formula,
    )


def cellular(source: DominatingSet) -> Metric:
    """Dominating set to cellular clustering: distances 1 and 2, set-up cost 2.

    The optimum is 2 n + 2 t for the smallest dominating set of t vertices. Aggarwal et al. 2006, section 3, names the
    source problem and nothing else. Here every vertex has a copy with the same neighbors, joined to it. The distance of
    two joined vertices is 1, of others 2. A dominating set of t vertices gives t clusters of radius 1, with total cost
    2 t + 2 n. Conversely, a clustering can be changed into one of this kind at no cost. A point at distance 2 from its
    center pays 2 there, and no more if it is alone. Two clusters around one vertex cost less as one. A vertex that is
    alone joins its copy's cluster, where it is also within 1 of the center, for 1 instead of 2. If both are alone, the
    vertex makes one cluster with the copy for 4.
    """
    n = source.n
    joined = [(2 * v, 2 * v + 1) for v in range(n)]
    joined += [(2 * u + i, 2 * v + j) for u, v in source.edges for i in (0, 1) for j in (0, 1)]
    edges = np.array(joined, np.int64)
    distances = np.full((2 * n, 2 * n), 2, np.int64)
    np.fill_diagonal(distances, 0)
    distances[edges[:, 0], edges[:, 1]] = distances[edges[:, 1], edges[:, 0]] = 1
    fewest = len(source.smallest())
    return Metric(
        distances=distances,
        edges=edges,
        names=tuple(f"{v}{twin}" for v in range(n) for twin in ("", "'")),
        r=1,
        setup=2,
        unit="points x distance",
        target=2 * source.size + 2 * n,
        optimum=2 * fewest + 2 * n,
        answer=fewest <= source.size,
        source=source,
    )


def shortest_paths(n: int, edges: np.ndarray) -> np.ndarray:
    """int64[n, n]: distances in an unweighted graph, n if there is no path, by powers of the adjacency matrix."""
    near = np.eye(n, dtype=bool)
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    distances = np.full((n, n), n, np.int64)
    reached = np.eye(n, dtype=bool)
    step = 0
    while True:
        distances[reached] = np.minimum(distances[reached], step)
        further = (reached.astype(np.int64) @ near.astype(np.int64)) > 0
        if (further == reached).all():
            return distances
        reached = further
        step += 1
