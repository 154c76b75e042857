"""Instances made by reductions, and the problems that the papers reduce from: formulas, triples, triangles, weights.

An instance has the cost that separates yes from no, and the answer if it is known. Each source is solved by
backtracking in exponential time, so that a reduction knows the answer of its instance. For large instances, plant a
solution and pass it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from operator import or_
from typing import Any

import numpy as np

from shoal.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance of a hard problem: some answer reaches ``target`` if and only if the source's answer is yes.

    target    the least cost if the answer is yes
    answer    the source's answer
    optimum   the least cost, if the reduction implies it for both answers; otherwise None
    unit      of the cost
    source    the problem from which it was reduced
    """

    target: int
    answer: bool
    optimum: int | None = None
    unit: str = "stars"
    source: Any = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Instance):
    """A table to anonymize by suppression.

    rows       int64[n, d]: quasi-identifiers
    sensitive  int64[n, s]: sensitive columns; s may be 0
    k, l       the requested k, and the requested l in every sensitive column; 1 for no request
    """

    rows: np.ndarray
    sensitive: np.ndarray
    k: int = 1
    l: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph(Instance):
    """A graph to partition: its edges into stars, or its vertices into connected regions of weight k.

    edges      int64[m, 2]
    names      the meaning of each vertex
    positions  float64[n, 2]: where to draw it
    k          least weight of a region, where every vertex has weight 1
    """

    edges: np.ndarray
    names: tuple[str, ...]
    positions: np.ndarray
    k: int = 3
    unit: str = "vertices in the largest region"


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(Instance):
    """Places in the plane to cut into rectangles of at least k.

    points     int64[p, 2]
    weights    int64[p]
    marks      places of interest by name, for drawing
    """

    points: np.ndarray
    weights: np.ndarray
    k: int = 3
    unit: str = "records in the largest tile"
    marks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes(Instance):
    """Labels to pack into bins of at least k.

    otherwise  if the answer is no, a lower bound of the largest bin
    """

    sizes: np.ndarray
    k: int
    otherwise: int = 0
    unit: str = "in the largest bin"


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(Instance):
    """Points of a metric to gather in clusters of at least r, with centers among the points.

    distances  int64[n, n]
    edges      int64[m, 2]: of the graph that defines the distances
    names      the meaning of each point
    setup      cost of opening a cluster, if the cost is the sum of size times radius and set-up costs
    """

    distances: np.ndarray
    edges: np.ndarray
    names: tuple[str, ...]
    r: int
    setup: int = 0
    unit: str = "radius"


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Instance):
    """A square array of weights to tile with at most ``most`` rectangles, of small maximum weight (RTILE).

    grid       int64[n, n]
    otherwise  if the answer is no, a lower bound of the heaviest rectangle
    """

    grid: np.ndarray
    most: int
    otherwise: int
    unit: str = "weight of the heaviest rectangle"


@dataclass(frozen=True)
class Formula:
    """A formula in conjunctive normal form, three literals per clause: +i is variable i, -i its negation, i from 1."""

    clauses: tuple[tuple[int, int, int], ...]

    def __post_init__(self) -> None:
        clauses = tuple(tuple(int(v) for v in c) for c in self.clauses)
        for c in clauses:
            if len(c) != 3 or 0 in c or len({abs(v) for v in c}) != 3:
                raise InputError(f"clause {c} must hold three literals of three different variables, +i or -i")
        object.__setattr__(self, "clauses", clauses)

    @property
    def variables(self) -> list[int]:
        """The variables that occur."""
        return sorted({abs(v) for c in self.clauses for v in c})

    def satisfying(self, counts: Sequence[int] = (1, 2, 3)) -> dict[int, bool] | None:
        """An assignment under which the number of true literals of every clause is among ``counts``, or None."""
        names = self.variables
        last = {c: max(names.index(abs(v)) for v in c) for c in self.clauses}

        def extend(i: int, chosen: dict[int, bool]) -> dict[int, bool] | None:
            if i == len(names):
                return dict(chosen)
            for value in (True, False):
                chosen[names[i]] = value
                full = (c for c in self.clauses if last[c] == i)
                if all(sum(chosen[abs(v)] == (v > 0) for v in c) in counts for c in full):
                    found = extend(i + 1, chosen)
                    if found is not None:
                        return found
                del chosen[names[i]]
            return None

        return extend(0, {})

    def one_in_three(self) -> dict[int, bool] | None:
        """An assignment under which every clause has exactly one true literal, or None."""
        return self.satisfying((1,))


@dataclass(frozen=True)
class Triples:
    """An instance of d-dimensional matching (d = 3 by default): tuples over d disjoint sets of n elements.

    triples   each (w, x, y) with 0 <= w, x, y < n. The question: do n of them contain every element exactly once?
    """

    n: int
    triples: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        triples = tuple(tuple(int(v) for v in t) for t in self.triples)
        if not triples or len({len(t) for t in triples}) != 1 or len(triples[0]) < 3:
            raise InputError("a matching problem needs tuples of one length, at least 3")
        if len(set(triples)) != len(triples) or any(not 0 <= v < self.n for t in triples for v in t):
            raise InputError(f"the tuples must differ and hold elements 0..{self.n - 1}")
        object.__setattr__(self, "triples", triples)

    @property
    def dimension(self) -> int:
        """The number of sets."""
        return len(self.triples[0])

    def occurrences(self, part: int, element: int) -> list[int]:
        """The tuples that contain an element of one of the sets."""
        return [i for i, t in enumerate(self.triples) if t[part] == element]

    def largest_matching(self) -> list[int]:
        """Indices of a largest set of tuples of which no two share an element."""
        best: list[int] = []

        def extend(i: int, chosen: list[int], used: frozenset[tuple[int, int]]) -> None:
            nonlocal best
            if len(chosen) > len(best):
                best = list(chosen)
            if len(best) == self.n or i == len(self.triples) or len(chosen) + len(self.triples) - i <= len(best):
                return
            own = frozenset(enumerate(self.triples[i]))
            if not own & used:
                extend(i + 1, [*chosen, i], used | own)
            extend(i + 1, chosen, used)

        extend(0, [], frozenset())
        return best

    @classmethod
    def random(cls, n: int, m: int, seed: int, dimension: int = 3, planted: bool = True) -> Triples:
        """m different tuples in random order, in which every element occurs; planted: with a perfect matching."""
        if m < n or m > n**dimension:
            raise InputError(f"{m} tuples do not cover {n} elements, or are more than there are")
        rng = np.random.default_rng(seed)
        for _ in range(10_000):
            found: set[tuple[int, ...]] = set()
            if planted:
                found = set(zip(*(rng.permutation(n).tolist() for _ in range(dimension)), strict=True))
            while len(found) < m:
                found.add(tuple(rng.integers(0, n, dimension).tolist()))
            if all(len({t[i] for t in found}) == n for i in range(dimension)):
                ordered = sorted(found)
                return cls(n, tuple(ordered[i] for i in rng.permutation(m)))
        raise InputError(f"no {m} tuples that hold all {n} elements were found; take more tuples")


@dataclass(frozen=True)
class Tripartite:
    """A graph with vertices in three parts and edges between different parts.

    The question: are its edges disjoint triangles?

    part    part 0, 1 or 2 of every vertex
    edges   pairs of vertices
    """

    part: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        edges = tuple((min(e), max(e)) for e in ((int(u), int(v)) for u, v in self.edges))
        if len(set(edges)) != len(edges) or any(self.part[u] == self.part[v] for u, v in edges):
            raise InputError("edges must differ and join vertices of different parts")
        object.__setattr__(self, "edges", edges)

    def triangles(self) -> list[tuple[int, ...]] | None:
        """Triangles, as indices of edges, that contain every edge once; None if there are none."""
        at = {e: i for i, e in enumerate(self.edges)}
        found = [
            (at[a, b], at[a, c], at[b, c])
            for a, b, c in combinations(range(len(self.part)), 3)
            if (a, b) in at and (a, c) in at and (b, c) in at
        ]
        return exact_cover(len(self.edges), found)

    @classmethod
    def random(cls, size: int, triangles: int, seed: int) -> Tripartite:
        """Edge-disjoint random triangles over three parts of ``size`` vertices, so the answer is yes.

        They are drawn from the size^2 triangles of a shuffled cyclic Latin square, of which no two share an edge;
        InputError if more are requested.
        """
        if not 0 <= triangles <= size * size:
            raise InputError(f"{triangles} disjoint triangles over parts of {size}: at most {size * size} are drawn")
        rng = np.random.default_rng(seed)
        first, second, third = (rng.permutation(size) + i * size for i in range(3))
        edges: list[tuple[int, int]] = []
        for pair in rng.choice(size * size, triangles, replace=False).tolist() if triangles else []:
            row, column = divmod(pair, size)
            a, b, c = int(first[row]), int(second[column]), int(third[(row + column) % size])
            edges += [(a, b), (a, c), (b, c)]
        return cls(tuple(i // size for i in range(3 * size)), tuple(sorted(edges)))


def exact_cover(size: int, sets: Iterable[Sequence[int]]) -> list[tuple[int, ...]] | None:
    """Sets among the given ones that contain each of 0 .. size - 1 exactly once, or None.

    The rarest element is covered first.
    """
    listed = [tuple(s) for s in sets]
    holding: list[list[int]] = [[] for _ in range(size)]
    for i, s in enumerate(listed):
        for v in s:
            holding[v].append(i)
    alive = [True] * len(listed)
    missing = set(range(size))

    def options() -> Iterator[int]:
        rarest = min(missing, key=lambda v: sum(alive[i] for i in holding[v]))
        return (i for i in holding[rarest] if alive[i])

    def extend() -> list[tuple[int, ...]] | None:
        if not missing:
            return []
        for i in list(options()):
            gone = {j for v in listed[i] for j in holding[v] if alive[j]}
            for j in gone:
                alive[j] = False
            missing.difference_update(listed[i])
            rest = extend()
            if rest is not None:
                return [listed[i], *rest]
            missing.update(listed[i])
            for j in gone:
                alive[j] = True
        return None

    return extend()


@dataclass(frozen=True)
class ThreePartition:
    """3 m weights strictly between B / 4 and B / 2 with sum m B: can they be split into m sets of sum B?"""

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        weights = tuple(int(w) for w in self.weights)
        object.__setattr__(self, "weights", weights)
        m, rest = divmod(len(weights), 3)
        if rest or not m or sum(weights) % m:
            raise InputError(
                f"{len(weights)} weights of sum {sum(weights)} are no instance: 3 m weights of sum m B are"
            )
        if any(not self.bound < 4 * w < 2 * self.bound for w in weights):
            raise InputError(f"weights must lie strictly between B / 4 and B / 2, B = {self.bound}")

    @property
    def bound(self) -> int:
        """The size of each bin, B."""
        return sum(self.weights) // (len(self.weights) // 3)

    def solution(self) -> list[tuple[int, ...]] | None:
        """Triples of indices, each of sum B, or None."""
        w = self.weights
        sets = [t for t in combinations(range(len(w)), 3) if sum(w[i] for i in t) == self.bound]
        return exact_cover(len(w), sets)

    @classmethod
    def random(cls, m: int, bound: int, seed: int) -> ThreePartition:
        """m random triples of sum B, shuffled, so the answer is yes."""
        if bound < 8:
            raise InputError("B must be at least 8, or hardly any weight lies between B / 4 and B / 2")
        rng = np.random.default_rng(seed)
        low, high = bound // 4 + 1, (bound - 1) // 2
        weights: list[int] = []
        while len(weights) < 3 * m:
            a, b = (int(v) for v in rng.integers(low, high + 1, 2))
            if low <= bound - a - b <= high:
                weights += [a, b, bound - a - b]
        return cls(tuple(weights[i] for i in rng.permutation(3 * m)))


@dataclass(frozen=True)
class TwoPartition:
    """Positive weights. The question: can they be split into two sets of equal sum? (Karp's Partition.)"""

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        weights = tuple(int(w) for w in self.weights)
        object.__setattr__(self, "weights", weights)
        if not weights or min(weights) < 1 or sum(weights) % 2:
            raise InputError(f"{len(weights)} weights of sum {sum(weights)}: positive ones of even sum are an instance")

    def solution(self) -> tuple[int, ...] | None:
        """Indices of one half, or None.

        By dynamic programming over reachable sums, O(n min(2^n, sum of the weights)).
        """
        half = sum(self.weights) // 2
        last = {0: -1}  # the weight with which each sum is first reached
        for i, w in enumerate(self.weights):
            for total in [t for t in last if t + w <= half]:
                last.setdefault(total + w, i)
        if half not in last:
            return None
        chosen: list[int] = []
        while half:
            chosen.append(last[half])
            half -= self.weights[chosen[-1]]
        return tuple(reversed(chosen))

    @classmethod
    def random(cls, n: int, largest: int, seed: int) -> TwoPartition:
        """Two sets of n random weights up to ``largest``, and a weight that equalizes their sums: the answer is yes."""
        rng = np.random.default_rng(seed)
        one, other = (rng.integers(1, largest + 1, n).tolist() for _ in range(2))
        gap = abs(sum(one) - sum(other))
        weights = [*one, *other, *([gap] if gap else [])]
        return cls(tuple(weights[i] for i in rng.permutation(len(weights))))


@dataclass(frozen=True)
class DominatingSet:
    """A graph on vertices 0 .. n - 1. The question: do ``size`` vertices have every other vertex as a neighbor?"""

    n: int
    edges: tuple[tuple[int, int], ...]
    size: int

    def __post_init__(self) -> None:
        edges = tuple(sorted({(min(u, v), max(u, v)) for u, v in self.edges}))
        object.__setattr__(self, "edges", edges)
        if self.n < 1 or not 1 <= self.size <= self.n:
            raise InputError(f"size {self.size} of {self.n} vertices: at least 1 and at most all")
        if any(u == v or not 0 <= u < v < self.n for u, v in edges):
            raise InputError(f"edges join two different vertices among 0 .. {self.n - 1}")

    def smallest(self) -> tuple[int, ...]:
        """A dominating set with the fewest vertices; sets are tried in order of size."""
        near = [1 << v for v in range(self.n)]
        for u, v in self.edges:
            near[u] |= 1 << v
            near[v] |= 1 << u
        every = (1 << self.n) - 1
        for size in range(1, self.n):
            for chosen in combinations(range(self.n), size):
                if reduce(or_, (near[v] for v in chosen)) == every:
                    return chosen
        return tuple(range(self.n))

    @classmethod
    def random(cls, n: int, size: int, seed: int, extra: int = 0) -> DominatingSet:
        """Every vertex joined to one of ``size`` planted ones, and ``extra`` random edges, so the answer is yes."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(n).tolist()
        edges = [(order[int(rng.integers(size))], v) for v in order[size:]]
        edges += [(int(u), int(v)) for u, v in rng.integers(0, n, (extra, 2)) if u != v]
        return cls(n, tuple(edges), size)
