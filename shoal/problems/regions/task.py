"""The types of the regions problem: the graph of areas, what a method receives and returns, and the caller's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.errors import InputError
from shoal.model.arguments import array_of, missing
from shoal.model.cards import Shown, number, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate, Guarantee

NO_CAP = 2**62  # above the weight of every region
_TESTED = 3000  # 3- and 4-connectivity are decided up to this many vertices
_FEW = 2_000  # with fewer vertices, Python is faster than importing compiled code for components


@dataclass(frozen=True, slots=True, eq=False)
class Contiguity:
    """An undirected graph without loops or double edges.

    indptr   int64[n + 1]
    indices  int64[2m]: the neighbors of v are indices[indptr[v]:indptr[v + 1]], ascending
    """

    indptr: np.ndarray
    indices: np.ndarray

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.indptr) - 1

    def edges(self) -> np.ndarray:
        """int64[m, 2]: every edge once, the smaller end first."""
        tail = np.repeat(np.arange(self.n), np.diff(self.indptr))
        once = tail < self.indices
        return np.column_stack([tail[once], self.indices[once]])


def graph(edges: Any, n: int) -> Contiguity:
    """The graph on 0..n-1 with the given pairs as edges; loops and duplicates are dropped.

    edges  integer pairs, any array-like of shape [m, 2]; InputError if a number is outside 0..n-1

    O(m log m) time.
    """
    pairs = array_of(edges, "edges", "pairs of area numbers")
    if pairs.size == 0:
        pairs = np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges must be pairs of area numbers, not an array of shape {pairs.shape}")
    whole = np.issubdtype(pairs.dtype, np.integer)
    if not whole and not (np.issubdtype(pairs.dtype, np.floating) and (pairs == np.floor(pairs)).all()):
        raise InputError(
            "edges must be whole numbers, the positions of the areas in the array of weights; "
            "shoal.engines.geography.read turns names of areas into these positions"
        )
    pairs = pairs.astype(np.int64)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        wrong = int(pairs.min() if pairs.min() < 0 else pairs.max())
        raise InputError(f"an edge names area number {wrong}, but the areas are numbered 0 to {n - 1}")
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    key = np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
    key.sort()
    key = key[np.diff(key, prepend=-1) > 0]  # np.unique hashes first, which is many times slower for so many keys
    tail, head = np.divmod(key, max(n, 1))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=n), out=indptr[1:])
    return Contiguity(indptr, head)


def components(g: Contiguity) -> tuple[int, np.ndarray]:
    """The number of components, and the component of every vertex, numbered by first vertex."""
    if g.n <= _FEW:
        return _components_of_few(g)
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    links = csr_matrix((np.ones(len(g.indices), np.int8), g.indices, g.indptr), shape=(g.n, g.n))
    count, label = connected_components(links, directed=False)
    return int(count), label.astype(np.int64)


def _components_of_few(g: Contiguity) -> tuple[int, np.ndarray]:
    """``components`` of a small graph, in pure Python."""
    begin, head, label, count = g.indptr.tolist(), g.indices.tolist(), [-1] * g.n, 0
    for root in range(g.n):
        if label[root] >= 0:
            continue
        label[root] = count
        stack = [root]
        while stack:
            v = stack.pop()
            for u in head[begin[v] : begin[v + 1]]:
                if label[u] < 0:
                    label[u] = count
                    stack.append(u)
        count += 1
    return count, np.array(label, np.int64)


def induced(g: Contiguity, keep: np.ndarray) -> tuple[Contiguity, np.ndarray]:
    """The subgraph induced by the vertices with ``keep`` (bool[n]), and their old numbers."""
    nodes = np.flatnonzero(keep)
    if len(nodes) == g.n:
        return g, nodes
    new = np.full(g.n, -1, np.int64)
    new[nodes] = np.arange(len(nodes))
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    both = keep[tail] & keep[g.indices]
    indptr = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(new[tail[both]], minlength=len(nodes)), out=indptr[1:])
    return Contiguity(indptr, new[g.indices[both]]), nodes


def without_crossings(g: Contiguity, boundaries: np.ndarray) -> Contiguity:
    """The graph without the edges whose ends differ in ``boundaries`` (int64[n])."""
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    inside = boundaries[tail] == boundaries[g.indices]
    indptr = np.zeros(g.n + 1, np.int64)
    np.cumsum(np.bincount(tail[inside], minlength=g.n), out=indptr[1:])
    return Contiguity(indptr, g.indices[inside])


def coded(values: Any, n: int, what: str) -> np.ndarray:
    """Labels as int64[n] codes, equal if the labels are; missing labels are equal. InputError if there aren't n."""
    listed: Sequence[Any] = [None if missing(value) else value for value in values]
    if len(listed) != n:
        raise InputError(f"{what} has {len(listed)} entries for {n} areas; give one for each")
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(v, len(seen)) for v in listed), np.int64, n)


def unlabelled(labels: Sequence[Any]) -> np.ndarray:
    """bool[labels]: whether the label is missing or ""."""
    return np.array([missing(label) or label == "" for label in labels], np.bool_)


def connected_parts(g: Contiguity, label: np.ndarray) -> bool:
    """Whether every part is connected in g; a part is the vertices with the same label of at least 0."""
    _, piece = components(without_crossings(g, label))
    held = label >= 0
    return len(np.unique(piece[held])) == len(np.unique(label[held]))


@dataclass(frozen=True, slots=True)
class GraphStructure:
    """Known properties of a connected graph.

    connectivity  the least number of vertices whose removal disconnects it: 0, 1, 2, 3, or 4 for four and more
    planar        whether it is planar
    """

    connectivity: int
    planar: bool


def to_networkx(g: Contiguity) -> Any:
    """The graph as a networkx graph."""
    import networkx as nx

    drawing = nx.empty_graph(g.n)
    drawing.add_edges_from(g.edges().tolist())
    return drawing


def structure(g: Contiguity) -> GraphStructure | None:
    """Planarity, and connectivity up to 4 for planar graphs (3 for others).

    None if g is too large, or networkx isn't installed.

    In a 3-connected plane graph, any two vertices of a 3-cut lie on a common face, so only such pairs are removed to
    find a third vertex. O(n m) for 3-connectivity, O(m * pairs on a common face) for 4-connectivity.
    """
    if g.n > _TESTED or g.n < 2:
        return None
    try:
        import networkx as nx
    except ImportError:
        return None

    planar, embedding = nx.check_planarity(to_networkx(g))
    gone = np.zeros(g.n, np.bool_)

    def disconnects(*taken: int) -> bool:
        gone[list(taken)] = True
        found = _cut(g, gone)
        gone[list(taken)] = False
        return found < 2

    least = int(np.diff(g.indptr).min())
    whole = _cut(g, gone)
    if whole < 2 or least < 2 or g.n < 3:
        return GraphStructure(min(whole, 1), planar)
    if least < 3 or g.n < 4 or any(disconnects(v) for v in range(g.n)):
        return GraphStructure(2, planar)
    if not planar or least < 4 or g.n < 6:
        return GraphStructure(3, planar)
    pairs = {
        (min(u, v), max(u, v)) for face in _faces(embedding) for i, u in enumerate(face) for v in face[:i] if u != v
    }
    return GraphStructure(3 if any(disconnects(*pair) for pair in sorted(pairs)) else 4, planar)


def _cut(g: Contiguity, gone: np.ndarray) -> int:
    """0: the graph without the vertices ``gone`` (bool[n]) is disconnected; 1: removing one more disconnects it.

    2: neither.
    """
    from shoal.kernels.regions.connected import low_points

    order, parent, disc, low = low_points(g.indptr, g.indices, gone)
    above = parent[order]
    if (above < 0).sum() > 1:
        return 0
    # children of a vertex other than the root
    inner = order[(above >= 0) & (above != order[:1])] if order.size else order
    several = order.size - inner.size > 2  # the root has more than one child
    return 1 if several or (low[inner] >= disc[parent[inner]]).any() else 2


def _faces(embedding: Any) -> list[list[int]]:
    marked: set[tuple[int, int]] = set()
    return [embedding.traverse_face(u, v, marked) for u, v in embedding.edges() if (u, v) not in marked]


OBJECTIVES = ("max", "count", "sumsq", "excess", "compact", "similar")
CHAINS = {
    "max": ("max", "count", "sumsq"),
    "count": ("count", "sumsq"),
    "sumsq": ("sumsq",),
    "excess": ("excess", "count", "sumsq"),
    "compact": ("count", "compact"),
    "similar": ("count", "similar"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Districting:
    """A task: a graph in which each component is eligible as a whole.

    graph      the graph of areas
    features   int64[n, t + s]: weights (the objectives use the first), then counts of sensitive values
    need       int64[t]: thresholds, each at least 1
    l          l of frequency l-diversity; 1 requires nothing
    geo        float64[n or 0, 4]: mass, mass x, mass y, mass (x^2 + y^2)
    objective  what to minimize, most important first
    start      int64[n] or None: a valid starting partition
    effort     multiple of the usual number of steps
    seconds    time limit instead, or None
    state      uint64[1]: random state, advanced by each draw
    alike      float64[n or 0, c + 2]: mass, mass times each of the c ``similar`` columns, mass times their squares
    regions    the exact number of regions; None if the objectives determine it
    """

    graph: Contiguity
    features: np.ndarray
    need: np.ndarray
    l: int
    geo: np.ndarray
    objective: tuple[str, ...]
    start: np.ndarray | None
    effort: float
    seconds: float | None
    state: np.ndarray
    alike: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    regions: int | None = None

    @property
    def n(self) -> int:
        """The number of areas."""
        return len(self.features)

    def on(self, g: Contiguity, nodes: np.ndarray) -> Districting:
        """This task restricted to some of the areas, without a starting partition."""
        geo, alike = (np.ascontiguousarray(m[nodes]) if len(m) else m for m in (self.geo, self.alike))
        features = np.ascontiguousarray(self.features[nodes])
        return replace(self, graph=g, features=features, geo=geo, alike=alike, start=None)

    def moments(self, name: str) -> np.ndarray:
        """The moments that objective "compact" or "similar" sums; empty if border edges are counted instead."""
        return self.alike if name == "similar" else self.geo

    @property
    def k(self) -> int:
        """The first threshold."""
        return int(self.need[0])

    @property
    def weights(self) -> np.ndarray:
        """int64[n, t]: the features that have a threshold."""
        return np.ascontiguousarray(self.features[:, : len(self.need)])

    @property
    def plain(self) -> bool:
        """Whether there is one threshold and no other condition: the problem of the paper."""
        return len(self.need) == 1 and self.l == 1

    @property
    def thresholds_only(self) -> bool:
        """Whether every superset of an eligible set of areas is eligible."""
        return self.l == 1


@dataclass(frozen=True, slots=True, eq=False)
class RegionsFound:
    """A partition and its proved bounds.

    label      int64[n]: region of every area, 0..q-1
    guarantee  the promise of the method for the heaviest region
    most       proved upper bound of the number of regions, or None if the method proves none
    least      proved lower bound of the heaviest region, or None
    squares    proved lower bound of the sum of squares, or None
    details    further details for the certificate
    """

    label: np.ndarray
    guarantee: Guarantee = field(default_factory=Guarantee)
    most: int | None = None
    least: int | None = None
    squares: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SearchClock:
    """The remaining time of a search with a time limit."""

    end: float | None

    @classmethod
    def of(cls, seconds: float | None) -> SearchClock:
        """A clock that starts now; with None it never ends."""
        return cls(None if seconds is None else clock() + seconds)

    @property
    def left(self) -> float:
        """Seconds left; infinite without a limit."""
        return float("inf") if self.end is None else self.end - clock()

    def part(self, share: float) -> SearchClock:
        """A clock that ends after a share of the time left."""
        return self if self.end is None else SearchClock.of(max(0.0, self.left) * share)


def summed(values: np.ndarray, part: np.ndarray, parts: int | None = None) -> np.ndarray:
    """Sums of values[n, ...] over every part.

    part   int64[n]: 0..parts-1
    parts  their number; None: the largest part plus one
    """
    found = np.zeros((int(part.max(initial=-1)) + 1 if parts is None else parts, *values.shape[1:]), values.dtype)
    np.add.at(found, part, values)
    return found


def sums(task: Districting, label: np.ndarray) -> np.ndarray:
    """int64[q, t + s]: features summed over every region."""
    return summed(task.features, label)


def heaviest(task: Districting, label: np.ndarray) -> np.ndarray:
    """int64[q]: the heaviest area of every region, by the first weight."""
    found = np.zeros(int(label.max()) + 1 if len(label) else 0, np.int64)
    np.maximum.at(found, label, task.features[:, 0])
    return found


def relabelled(label: np.ndarray) -> np.ndarray:
    """Parts renumbered by their first area; negative labels become -1."""
    held = np.flatnonzero(label >= 0)
    out = np.full(len(label), -1, np.int64)
    if len(held):
        _, first, inverse = np.unique(label[held], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        out[held] = rank[inverse.ravel()]
    return out


def eligible_rows(total: np.ndarray, need: np.ndarray, l: int) -> np.ndarray:
    """bool per row of sums: thresholds are met and, with l > 1, no sensitive value has more than 1/l of the records."""
    t = len(need)
    ok = np.asarray((total[:, :t] >= need).all(axis=1))
    if l > 1:
        values = total[:, t:]
        ok &= values.sum(axis=1) >= l * values.max(axis=1, initial=0)
    return ok


def costs_in(task: Districting, label: np.ndarray, objective: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of the objectives in order, all minimized; exact integers if units are counted."""
    return tuple(cost_in(task, label, name) for name in objective)


def cost_in(task: Districting, label: np.ndarray, name: str) -> Any:
    """The value of one objective, by name.

    "max": the heaviest region; "count": areas minus regions; "sumsq": the sum of squared weights; "excess": the largest
    weight over max(k, heaviest area); "compact": the moment of inertia or, without coordinates, border edges;
    "similar": the same moment in the ``similar`` columns.
    """
    if name == "count":
        return len(label) - (int(label.max()) + 1 if len(label) else 0)
    weight = sums(task, label)[:, 0]
    if name == "max":
        return int(weight.max(initial=0))
    if name == "sumsq":
        return sum(w * w for w in weight.tolist())
    if name == "excess":
        return float((weight / np.maximum(heaviest(task, label), task.k)).max(initial=1.0))
    moments = task.moments(name)
    return inertia(moments, label) if len(moments) else border(task, label)


def inertia(areas: np.ndarray, label: np.ndarray) -> float:
    """The sum over the regions of mass times squared distance from the region's center; areas: float64[n, c + 2]."""
    return float(squares_about_means(summed(areas, label)).sum())


def on_the_globe(places: np.ndarray) -> np.ndarray:
    """Longitude and latitude in degrees as points on the unit sphere.

    Nearest neighbors are the same as on the ground.
    """
    lng, lat = np.radians(places[:, 0]), np.radians(places[:, 1])
    return np.column_stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])


def squares_about_means(moments: np.ndarray) -> np.ndarray:
    """Sums of squares about the means, for sets of areas with moments float64[..., c + 2].

    See ``Districting.moments``.
    """
    mass = np.maximum(moments[..., 0], 1e-300)
    return np.maximum(moments[..., -1] - (moments[..., 1:-1] ** 2).sum(axis=-1) / mass, 0.0)


def border(task: Districting, label: np.ndarray) -> int:
    """The number of edges between different regions."""
    ends = task.graph.edges()
    return int((label[ends[:, 0]] != label[ends[:, 1]]).sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regions(Shown):
    """A partition of areas into connected regions.

    labels       int64[n]: region of every area, 0..regions-1 by first area; -1 if left out
    cost         value of the first objective
    certificate  cost, bound, and the promise of the method
    weights      int64[q] or int64[q, t]: summed weights of every region, one column for each threshold
    sizes        int64[q]: areas of every region
    upper_bound  no partition (of the areas that aren't left out) has more regions
    largest      weight of the heaviest region, by the first weight;  largest_bound: no partition has a lighter heaviest
                 region
    squares      sum of squared weights;  squares_bound: no partition has less
    excess       largest weight over max(k, heaviest area in the region)
    method       the algorithm that was run
    joined       int64[j, 2]: pairs of areas that were made neighbors to save components too light alone
    k            the thresholds
    """

    labels: np.ndarray
    cost: float
    certificate: Certificate
    weights: np.ndarray
    sizes: np.ndarray
    upper_bound: int
    largest: int
    largest_bound: int
    squares: int
    squares_bound: int
    excess: float
    method: str
    joined: np.ndarray
    k: tuple[int, ...]

    @property
    def regions(self) -> int:
        """The number of regions."""
        return len(self.sizes)

    @property
    def left_out(self) -> np.ndarray:
        """int64[]: areas in no region, because their component is too light."""
        return np.flatnonzero(self.labels < 0)

    def _lines(self) -> list[str]:
        inside = len(self.labels) - len(self.left_out)
        lines = [
            f"{several(inside, 'area')} in {several(self.regions, 'region')}; "
            f"more than {self.upper_bound:,} cannot exist",
            *(
                sizes_line(f"weight {j}" if len(self.k) > 1 else "weight", held.tolist(), f"at least {number(k)} asked")
                for j, (held, k) in enumerate(zip(self.weights.reshape(self.regions, -1).T, self.k, strict=True), 1)
            ),
            *proof_lines(self.certificate, self.method),
        ]
        return [*lines, f"left out: {several(len(self.left_out), 'area')}"] if len(self.left_out) else lines


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nested(Shown):
    """Nested regions: every level merges those of the level below.

    levels  the result at each threshold, the finest first
    labels  int64[n, levels]: region of each area at each level; -1 if left out
    most    for each level, an upper bound of the number of regions over all partitions of the areas that aren't left
            out; ``levels[i].upper_bound`` is the bound for unions of the regions below
    """

    levels: tuple[Regions, ...]
    labels: np.ndarray = field(repr=False)
    most: tuple[int, ...]

    def _lines(self) -> list[str]:
        return [
            f"{several(len(self.labels), 'area')} in regions of {several(len(self.levels), 'level')}",
            *(
                f"at least {' and '.join(map(number, level.k))}: {several(level.regions, 'region')}; "
                f"more than {most:,} cannot exist"
                for level, most in zip(self.levels, self.most, strict=True)
            ),
        ]

    def rows(self, ids: Sequence[Any], names: Sequence[Sequence[str]] | None = None) -> list[list[str]]:
        """One row per area for a hierarchy in ARX's format: value; region at each level; ...; *.

        names  region names per level, by label; by default ``region_names`` of the members' ids
        """
        return hierarchy_rows(ids, list(self.labels.T), names)


def region_names(ids: Sequence[Any], labels: np.ndarray) -> list[str]:
    """A name for every region: its first member and the number of others ("06001+3"), unique because members are."""
    found: dict[int, list[str]] = {}
    for area, label in zip(ids, labels.tolist(), strict=True):
        if label >= 0:
            found.setdefault(label, []).append(str(area))
    return [
        min(found[r]) + (f"+{len(found[r]) - 1}" if len(found[r]) > 1 else "")
        for r in range(max(found, default=-1) + 1)
    ]


def hierarchy_rows(
    ids: Sequence[Any], levels: Sequence[np.ndarray], names: Sequence[Sequence[str]] | None = None
) -> list[list[str]]:
    """Rows "value; region at k1; region at k2; ...; *", each level a coarsening of the one before.

    ids     n distinct values
    levels  int64[n] labels, -1 for "left out", which becomes * from that level on

    Raises InputError if a level splits a region of the level before, which a hierarchy can't represent.
    """
    if len(set(map(str, ids))) != len(ids):
        raise InputError("area names repeat, so they cannot be the values of a hierarchy; make them unique")
    rows = [[str(area)] for area in ids]
    starred = np.zeros(len(ids), np.bool_)
    before: np.ndarray | None = None
    for i, labels in enumerate(levels):
        labels = np.where(starred, -1, labels)
        if before is not None:
            for region in np.unique(before[before >= 0]):
                if len(np.unique(labels[before == region])) > 1:
                    raise InputError(
                        f"level {i + 1} splits a region of level {i}; merge regions, not areas, level by level"
                    )
        starred |= labels < 0
        called = names[i] if names is not None else region_names(ids, labels)
        for row, label in zip(rows, labels.tolist(), strict=True):
            row.append("*" if label < 0 else called[label])
        before = labels
    return [[*row, "*"] for row in rows]


def crosswalk(
    ids: Sequence[Any],
    result: Regions,
    names: Sequence[str] = (),
    sums: Mapping[str, np.ndarray] | None = None,
    means: Mapping[str, np.ndarray] | None = None,
    by: np.ndarray | None = None,
) -> dict[str, list[Any]]:
    """Columns area, region (name), region_weight, region_areas; areas left out have region "*" and weight 0.

    names  of the weights: with several, a column region_NAME for each after the first, and bound_by, the weight whose
           sum is closest to its threshold
    sums, means   name -> float64[n]: values that are summed or averaged over each region (sum_NAME, mean_NAME)
    by     float64[n]: weights of the averages, 1 by default
    """
    called = region_names(ids, result.labels)
    held = result.labels.tolist()
    found: dict[str, list[Any]] = {"area": [str(area) for area in ids]}
    found["region"] = ["*" if r < 0 else called[r] for r in held]
    for name, values in of_regions(result, names, sums, means, by).items():
        nothing: Any = 0 if name in ("region_weight", "region_areas") else None
        found[name] = [nothing if r < 0 else values[r] for r in held]
    return found


def of_regions(
    result: Regions,
    names: Sequence[str] = (),
    sums: Mapping[str, np.ndarray] | None = None,
    means: Mapping[str, np.ndarray] | None = None,
    by: np.ndarray | None = None,
) -> dict[str, list[Any]]:
    """The columns of ``crosswalk`` that describe regions, one value for each region."""
    weights = result.weights.reshape(result.regions, -1)
    found: dict[str, list[Any]] = {"region_weight": weights[:, 0].tolist(), "region_areas": result.sizes.tolist()}
    if len(names) > 1:
        for j, name in enumerate(names[1:], 1):
            found[f"region_{name}"] = weights[:, j].tolist()
        nearest = (weights / np.array(result.k)).argmin(axis=1)
        found["bound_by"] = [names[j] for j in nearest.tolist()]
    inside = result.labels >= 0
    label = result.labels[inside]
    for name, values in (sums or {}).items():
        found[f"sum_{name}"] = np.bincount(label, weights=values[inside], minlength=result.regions).tolist()
    mass = np.ones(len(inside)) if by is None else np.asarray(by, np.float64)
    total = np.bincount(label, weights=mass[inside], minlength=result.regions)
    for name, values in (means or {}).items():
        lifted = np.bincount(label, weights=(values * mass)[inside], minlength=result.regions)
        found[f"mean_{name}"] = [x / m if m > 0 else None for x, m in zip(lifted.tolist(), total.tolist(), strict=True)]
    return found
