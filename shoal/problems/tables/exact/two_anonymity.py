"""2-anonymity at the least loss, proved (docs/exact.md), and simplex matching.

Blocki, Williams, "Resolving the complexity of some data privacy problems", ICALP 2010, Theorems 1.1 and 3.1.

As in the paper, groups of four or more split into pairs and triples without cost, so the question is which pairs and
triples contain every row once. The paper refers to simplex matching in O(n^8). Here, a linear program over few pairs
and triples, tightened by odd sets, is solved and checked against all of them (``set_partition``). Before that, a type
with six rows or more is reduced to four or five, and the others form pairs of equal rows: some optimum has at most two
rows of a type in groups with another type (docs/exact.md has the proof).

The second part of the module is simplex matching, the cheapest perfect matching of a hypergraph with edges of size two
and three (Anshelevich, Karagiozova, "Terminal backup, 3D matching, and covering cubic graphs", STOC 2007, SIAM J.
Comput. 2011; Definition 8 and Theorem 1.1 of Blocki, Williams 2010 reduce 2-anonymity to it). No method here uses it.

Two conditions make the problem polynomial: (1) the three pairs of each triple are edges, and (2) they cost at most
twice the triple. For a set A of disjoint triples, let f(A) be their cost plus that of a cheapest perfect matching of
the other vertices by pairs. The algorithm changes one or two triples of A while that lowers f. The cited theorem, which
is not proved here, says that a local minimum is a global one; the tests compare with every perfect matching. Departure:
the number of steps is polynomial by scaling. Costs are read bit by bit, as c // 2^b, rounded down for pairs and up for
triples, which keeps condition (2). The minimum for b + 1 is above that for b by at most one for each edge of the
matching, so O(n) steps lead from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from numbers import Integral

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, InputError, MissingDependencyError, PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import distribute
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.tables.exact.set_partition import PairsAndTriples, solve
from shoal.problems.tables.losses import Costs

SECONDS = {"fast": 30.0, "balanced": 600.0, "thorough": 86_400.0}


def seconds_left(task: Task) -> float:
    """Wall-clock seconds an exact method may still use."""
    if task.effort.seconds is not None:
        return max(0.0, task.effort.seconds - (clock() - task.started))
    return SECONDS[task.effort.name]


def two_anonymity(task: Task) -> Grouping:
    """The partition into groups of two or more with the least loss, for stars, hierarchies, sets, and ranges.

    PolicyError for a requirement other than k = 2. If the time of the effort ends first (30 s, 10 min, a day, or the
    seconds given), the best partition found with its bound, and ``details["stopped"]`` is set.
    Polynomial in theory (Theorem 1.1); in practice a few linear programs over t types and scans of O(t^2 d).
    """
    need = task.requirement
    if need.k != 2 or need.sensitive_columns:
        raise PolicyError(
            "two_anonymity answers k = 2 without sensitive columns; "
            f"for {'sensitive columns' if need.sensitive_columns else f'k = {need.k}'} choose the method optimal"
        )
    refuse_infeasible(task.histogram, need)
    costs = Costs.of(task.histogram, task.recoding)
    thinned = costs.count - np.maximum(0, (costs.count - 4) // 2 * 2)
    kernel = costs.with_count(thinned)
    removed = costs.count - thinned
    if costs.types:
        found = solve(kernel, seconds_left(task), task.progress)
    else:
        found = PairsAndTriples(np.empty((0, 3), np.int32), np.empty(0, np.int64), 0, 0)
    pure = np.array([costs.loss([t]) for t in range(costs.types)], np.int64)
    aside = int(pure @ removed)
    width = (found.columns >= 0).sum(axis=1)
    group = np.repeat(np.arange(len(width)), width)
    alone = np.all((found.columns == found.columns[:, :1]) | (found.columns < 0), axis=1)
    group = np.where(alone[group], found.columns[group, 0], costs.types + group)  # pure rows of a type: one group
    partition = distribute(
        task.histogram.count,
        task.histogram.types[0],
        np.concatenate([found.columns[found.columns >= 0], np.flatnonzero(removed)]),
        np.concatenate([group, np.flatnonzero(removed)]),
        np.concatenate([np.repeat(found.uses, width), removed[removed > 0]]),
    )
    cost, bound, optimal = costs.certified(task, partition, found.lower + aside, found.upper + aside)
    proved = found.upper == found.lower
    details = {**found.facts, "kernel_rows": int(thinned.sum()), "types": costs.types, "stopped": found.stopped}
    if proved and not optimal:
        details["rounding"] = "losses have no common denominator; optimal up to rounding them down"
    return Grouping(
        partition,
        Certificate(
            cost=cost,
            lower_bound=bound,
            unit=task.recoding.unit,
            guarantee=Guarantee(
                factor=1, additive=0, theorem="Blocki, Williams 2010, Theorems 1.1 and 3.1: 2-anonymity is in P"
            )
            if optimal
            else Guarantee(),
            bound="linear program over all pairs and triples with odd sets; search over those of small reduced cost",
            details=details,
        ),
        "two_anonymity",
    )


Edge = tuple[int, ...]


@dataclass(frozen=True)
class Matching:
    """The edges of a perfect matching, rising, with its certificate; steps is the number of changes of A."""

    edges: tuple[Edge, ...]
    certificate: Certificate
    steps: int

    @property
    def cost(self) -> int:
        """The sum of the edges' costs."""
        return int(self.certificate.cost)


def checked(vertices: int, edges: Mapping[Edge, int]) -> dict[Edge, int]:
    """The edges with rising vertices; InputError if a condition of Definition 8 is violated."""
    out: dict[Edge, int] = {}
    for edge, cost in edges.items():
        key = tuple(sorted(int(v) for v in edge))
        if len(key) not in (2, 3) or len(set(key)) != len(key):
            raise InputError(f"edge {edge} must hold two or three different vertices")
        if key[0] < 0 or key[-1] >= vertices:
            raise InputError(f"edge {edge} names a vertex outside 0..{vertices - 1}")
        if isinstance(cost, bool) or not isinstance(cost, Integral) or cost < 0:
            raise InputError(f"edge {edge} costs {cost!r}; costs are whole numbers, at least 0")
        if out.get(key, cost) != cost:
            raise InputError(f"edge {key} is given twice, at {out[key]} and at {cost}")
        out[key] = int(cost)
    for key, cost in out.items():
        if len(key) == 3:
            missing = [pair for pair in combinations(key, 2) if pair not in out]
            if missing:
                raise InputError(f"condition 1 is violated: triple {key} is an edge and its pair {missing[0]} is not")
            pairs = sum(out[pair] for pair in combinations(key, 2))
            if pairs > 2 * cost:
                raise InputError(
                    f"condition 2 is violated: the pairs of {key} cost {pairs}, more than twice its {cost}"
                )
    return out


def simplex_matching(vertices: int, edges: Mapping[Edge, int]) -> Matching:
    """The cheapest set of edges that contains each of the vertices 0 to vertices - 1 exactly once.

    edges  {(u, v): cost, (u, v, w): cost}, costs whole numbers

    Raises InputError if a condition of Definition 8 is violated, InfeasibleError if there is no perfect matching,
    MissingDependencyError without networkx, which matches pairs.
    With m edges and costs under C: O(log C) scales of O(n) steps, each at most O(m^2) matchings of O(n^3). For small
    hypergraphs and for checking other methods; use ``two_anonymity`` for tables.
    """
    MissingDependencyError.unless("networkx", "simplex matching", "graph")
    known = checked(vertices, edges)
    triples: list[Edge] = [e for e in known if len(e) == 3]
    missing = sum(known.values()) + 1  # the cost of an absent pair, above that of all edges
    start: frozenset[Edge] = frozenset()
    if vertices % 2:
        if not triples:
            raise InfeasibleError(f"{vertices} vertices are odd in number and there is no edge of three")
        start = frozenset([triples[0]])
    chosen, steps = start, 0
    for bit in range(max((missing).bit_length() - 1, 0), -1, -1):
        chosen, changed = descend(vertices, scaled(known, bit), missing >> bit, triples, chosen)
        steps += changed
    pairs = _pairs(frozenset(range(vertices)) - {v for t in chosen for v in t}, known, missing)
    found = tuple(sorted([*chosen, *pairs]))
    if any(e not in known for e in found):
        raise InfeasibleError(f"no set of these edges holds each of the {vertices} vertices exactly once")
    cost = sum(known[e] for e in found)
    least = [min(Fraction(c, len(e)) for e, c in known.items() if v in e) for v in range(vertices)]
    below = math.ceil(sum(least, Fraction(0)))
    certificate = Certificate(
        cost=cost,
        lower_bound=tight(max(below, 0), cost, "cost", "cheapest shares"),
        unit="cost",
        guarantee=Guarantee(factor=1, additive=0, theorem="Anshelevich, Karagiozova 2007: simplex matching is in P"),
        bound="every vertex pays its cheapest share of an edge at least; that none is cheaper rests on the theorem",
        details={"steps": steps, "local optimum": "no exchange of at most two triples lowers the cost"},
    )
    return Matching(found, certificate, steps)


def scaled(edges: Mapping[Edge, int], bit: int) -> dict[Edge, int]:
    """Costs divided by 2^bit, rounded down for pairs and up for triples: both conditions still hold."""
    return {e: (c >> bit) if len(e) == 2 else -((-c) >> bit) for e, c in edges.items()}


def _pairs(free: frozenset[int], cost: Mapping[Edge, int], missing: int) -> list[Edge]:
    """A cheapest perfect matching by pairs of an even number of vertices, with absent pairs at the cost ``missing``."""
    import networkx as nx

    graph = nx.Graph()
    for pair in combinations(sorted(free), 2):
        graph.add_edge(*pair, weight=-cost.get(pair, missing))
    found = nx.max_weight_matching(graph, maxcardinality=True)
    return [(min(pair), max(pair)) for pair in found]


def descend(
    vertices: int, cost: Mapping[Edge, int], missing: int, triples: list[Edge], chosen: frozenset[Edge]
) -> tuple[frozenset[Edge], int]:
    """Change one or two triples while that lowers f: (set of triples, steps)."""
    everyone = frozenset(range(vertices))

    @cache
    def paired(free: frozenset[int]) -> int:
        return sum(cost.get(pair, missing) for pair in _pairs(free, cost, missing))

    def f(some: frozenset[Edge]) -> int:
        return sum(cost[t] for t in some) + paired(everyone - {v for t in some for v in t})

    steps, now = 0, f(chosen)
    while True:
        better = next((some for some in _near(chosen, triples) if f(some) < now), None)
        if better is None:
            return chosen, steps
        chosen, now, steps = better, f(better), steps + 1


def _near(chosen: frozenset[Edge], triples: list[Edge]) -> Iterator[frozenset[Edge]]:
    """Sets of disjoint triples that differ in at most two: one exchanged, two fewer, or two more (equal parity)."""
    for out in sorted(chosen):
        rest = chosen - {out}
        held = {v for t in rest for v in t}
        yield from (rest | {t} for t in triples if t != out and held.isdisjoint(t))
    yield from (chosen - set(two) for two in combinations(sorted(chosen), 2))
    held = {v for t in chosen for v in t}
    free = [t for t in triples if held.isdisjoint(t)]
    yield from (chosen | set(two) for two in combinations(free, 2) if set(two[0]).isdisjoint(two[1]))
