"""The front door of the regions problem: arrays in, regions with a certificate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.problems.interrupts import heard
from shoal.problems.regions.answer import answer
from shoal.problems.regions.contract import contract, expanded, maxima, soften
from shoal.problems.regions.graph import Graph, coded, components, graph, induced, without_crossings
from shoal.problems.regions.join import join_light
from shoal.problems.regions.result import Nested, Regions
from shoal.problems.regions.task import CHAINS, OBJECTIVES, Task, eligible_rows, relabelled

_EFFORT = {"fast": 0.1, "balanced": 1.0, "thorough": 8.0}
_TOTAL = 2**53  # sums of squares are compared as float64 in the search


@heard
def merge(
    edges: Any,
    weights: Any,
    k: int | Sequence[int],
    method: str = "auto",
    *,
    objective: str | Sequence[str] = "max",
    boundaries: Sequence[Any] | None = None,
    sensitive: Any = None,
    l: int = 1,
    coordinates: Any = None,
    geographic: bool = True,
    light: str = "leave",
    start: Any = None,
    exclude: Any = None,
    fixed: Sequence[Any] | None = None,
    soft_boundaries: Sequence[Any] | None = None,
    at_most: Mapping[str, tuple[Any, int]] | None = None,
    apart: Sequence[Any] | None = None,
    effort: str | float = "balanced",
    seed: int | None = None,
    unit: str = "people",
) -> Regions:
    """Merge areas into connected regions of weight at least k.

    edges        int[m, 2]  pairs of neighbouring areas, numbered 0..n-1
    weights      int[n], or int[n, t] with k a sequence of t thresholds, all to be met by every region
    method       "tree", "search", "exact" or "auto"
    objective    what to lower first: "max" heaviest region (then number of regions, then squares), "count" areas
                 merged away (then squares), "sumsq" sum of squares, "excess" weight over max(k, heaviest area),
                 "compact" (most regions, then moment of inertia, or border edges where no coordinates are given); or
                 an order of your own
    boundaries   n labels (states, say) that no region may mix
    sensitive    int[n, s]  how often each sensitive value occurs in each area, with l: in every region no value has
                 more than 1/l of the records
    coordinates  float[n, 2]  longitude and latitude (or x and y with ``geographic=False``) of each area's center
    light        what becomes of a component that is too light alone: "leave" it out (label -1), or "nearest": make
                 its area that lies nearest another component a neighbour there, within ``boundaries``; needs
                 coordinates
    start        int[n]  a valid partition to begin the search with
    exclude      bool[n]  areas that go to no region (label -1)
    fixed        n labels: areas of one label go to the same region; None or "" where an area is free
    soft_boundaries  n labels that a region mixes only for the sake of a set of areas too light to be a region inside
    at_most      name -> (int[n], largest sum over a region of several areas); areas that no region can take under it
                 are left out, least weight first; not with "tree"
    apart        n labels: no two areas of one label in a region; None or "" where it does not matter; not with "tree"
    effort       "fast", "balanced", "thorough", or seconds
    seed         int for the same answer again; None for fresh randomness
    unit         what the weights count

    Raises InputError for arrays that do not fit together, PolicyError for a request that contradicts itself,
    InfeasibleError when no component reaches the thresholds.

    Cost and certificate are in the first objective; see ``Regions`` for the rest.
    """
    features, need, ways = _features(weights, k, sensitive, l)
    n = len(features)
    limits = maxima(at_most, apart, n)
    if limits is not None and method == "tree":
        raise PolicyError("method 'tree' keeps no maximum; use 'search', 'exact' or 'auto' with at_most and apart")
    if any(asked is not None for asked in (exclude, fixed, soft_boundaries)):
        if start is not None:
            raise PolicyError("start goes with none of exclude, fixed and soft_boundaries; leave it out")
        ends = graph(edges, n).edges()
        held = contract(ends, n, exclude, fixed, boundaries)
        if (held.unit < 0).all():
            raise InfeasibleError("every area is excluded, so there is none to merge")
        if soft_boundaries is not None:
            both = soft_boundaries if boundaries is None else list(zip(soft_boundaries, boundaries, strict=True))
            held = soften(held, both, lambda piece: _sets_eligible(held.summed(features), piece, need, ways))
        found = merge(
            held.edges, held.summed(features[:, : len(need)]), need.tolist(), method, objective=objective,
            boundaries=None if boundaries is None else held.first(list(boundaries)),
            sensitive=None if ways == 1 else held.summed(features[:, len(need) :]), l=l,
            coordinates=None if coordinates is None else held.centers(np.asarray(coordinates, float), features[:, 0]),
            geographic=geographic, light=light, effort=effort, seed=seed, unit=unit,
            at_most=None if limits is None else {
                str(j): (held.summed(limits.values[:, j]), int(most)) for j, most in enumerate(limits.most.tolist())
            },
        )  # fmt: skip
        return expanded(found, held, soft_boundaries, n)
    g = graph(edges, n)
    chain = _chain(objective)
    places = _places(coordinates, n)
    border = None if boundaries is None else coded(boundaries, n, "boundaries")
    if border is not None:
        g = without_crossings(g, border)
    joined = np.empty((0, 2), np.int64)
    if light == "nearest":
        if places is None:
            raise PolicyError("light='nearest' needs coordinates; give them, or light='leave'")
        g, joined = join_light(g, features, need, ways, places, border, geographic)
    elif light != "leave":
        raise PolicyError.unknown("way to treat light components", light, ("leave", "nearest"))
    keep = _eligible_components(g, features, need, ways)
    if not keep.any():
        raise InfeasibleError(_why_not(g, features, need, ways, border is not None))
    sub, nodes = induced(g, keep)
    begin = _begin(start, keep, sub, features[nodes], need, ways)
    relative, seconds = _worked(effort)
    task = Task(
        graph=sub,
        features=np.ascontiguousarray(features[nodes]),
        need=need,
        ways=ways,
        geo=_moments(places, features[:, 0], geographic)[nodes]
        if places is not None and "compact" in chain
        else _NOWHERE,
        objective=chain,
        start=begin,
        effort=relative,
        seconds=seconds,
        state=_randomness(seed),
    )
    return answer(task, method, keep, joined, unit, None if limits is None else limits.of(nodes))


def nested(edges: Any, weights: Any, ks: Sequence[int], method: str = "auto", **options: Any) -> Nested:
    """Regions at rising thresholds, each level merging the regions of the one before: a hierarchy.

    ks       thresholds (or sequences of thresholds, as for ``merge``), rising
    options  as for ``merge``; ``start`` excepted

    Areas left out at one level stay out above it.
    """
    w = np.asarray(weights)
    held: dict[str, Any] = {}
    for name in ("boundaries", "sensitive", "coordinates"):
        if options.get(name) is not None:
            held[name] = np.asarray(options.pop(name))
    ends = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    label = np.arange(len(w))
    levels, labels = [], []
    last = None
    for k in ks:
        level = tuple(np.atleast_1d(k).tolist())
        if last is not None and any(a < b for a, b in zip(level, last, strict=True)):
            raise PolicyError(f"thresholds must rise from level to level, but {level} comes after {last}")
        last = level
        found = merge(ends, w, k, method, **held, **options)
        levels.append(found)
        label = np.where(label >= 0, found.labels[label], -1)
        labels.append(label)
        kept = found.labels >= 0
        both = np.concatenate([ends, found.joined])
        both = both[kept[both].all(axis=1)]
        ends = found.labels[both]
        part = found.labels[kept]
        mass = np.bincount(part, weights=np.maximum(w if w.ndim == 1 else w[:, 0], 1e-9)[kept])
        for name, values in list(held.items()):
            if name == "boundaries":
                held[name] = values[kept][np.unique(part, return_index=True)[1]]
            elif name == "sensitive":
                held[name] = _summed(part, values[kept])
            else:
                lift = np.maximum(w if w.ndim == 1 else w[:, 0], 1e-9)[kept]
                held[name] = np.column_stack(
                    [np.bincount(part, weights=lift * values[kept, j]) / mass for j in range(2)]
                )
        w = _summed(part, w[kept])
    return Nested(tuple(levels), np.column_stack(labels) if labels else np.empty((len(w), 0), np.int64))


def _summed(part: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.zeros((int(part.max(initial=-1)) + 1, *values.shape[1:]), np.int64)
    np.add.at(found, part, values.astype(np.int64))
    return found


_NOWHERE = np.zeros((0, 4))


def _features(weights: Any, k: Any, sensitive: Any, l: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Weights and sensitive counts side by side, thresholds, l."""
    need = np.atleast_1d(np.asarray(k))
    if need.ndim != 1 or not len(need):
        raise PolicyError("k must be one threshold, or one for each column of weights")
    columns = _whole(weights, "weights")
    if columns.ndim == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or columns.shape[1] != len(need):
        raise PolicyError(f"there are {len(need)} thresholds for {columns.shape[1]} columns of weights; give as many")
    if not all(float(x) == int(x) and x >= 1 for x in need.tolist()):
        raise PolicyError(f"k must be a whole number of at least 1, not {need.tolist()}")
    if not isinstance(l, (int, np.integer)) or l < 1:
        raise PolicyError(f"l must be a whole number of at least 1, not {l!r}")
    if l > 1 and sensitive is None:
        raise PolicyError("l-diversity needs sensitive=: how often each sensitive value occurs in each area")
    if sensitive is not None and l > 1:
        counts = _whole(sensitive, "sensitive counts")
        if counts.ndim != 2 or len(counts) != len(columns):
            raise InputError(
                f"sensitive counts have shape {counts.shape}; give one row for each of {len(columns)} areas"
            )
        columns = np.concatenate([columns, counts], axis=1)
    return np.ascontiguousarray(columns), need.astype(np.int64), int(l)


def _whole(values: Any, what: str) -> np.ndarray:
    """Values as int64; InputError for negative, fractional or missing ones."""
    found = np.asarray(values)
    if found.dtype == object or not np.issubdtype(found.dtype, np.number):
        try:
            found = found.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{what} are not numbers; give whole numbers of at least 0") from None
    if np.issubdtype(found.dtype, np.floating):
        bad = ~np.isfinite(found) | (found != np.floor(found))
        if bad.any():
            raise InputError(
                f"{what} hold {found[bad][0]!s}, which is not a whole number ({int(bad.sum())} such values); "
                "round them, or multiply them and k by a power of ten"
            )
    if found.size and found.min() < 0:
        raise InputError(f"{what} hold {found.min()!s}; they must be at least 0")
    if found.size and float(found.astype(np.float64).sum(axis=0).max()) >= _TOTAL:
        raise InputError(f"{what} add up to 2^53 or more; count them in larger units")
    return np.ascontiguousarray(found.astype(np.int64))


def _chain(objective: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(objective, str):
        if objective not in CHAINS:
            raise PolicyError.unknown("regions objective", objective, OBJECTIVES)
        return CHAINS[objective]
    chain = tuple(objective)
    for name in chain:
        if name not in OBJECTIVES:
            raise PolicyError.unknown("regions objective", name, OBJECTIVES)
    if not chain or len(set(chain)) != len(chain):
        raise PolicyError("objectives in an order of your own must be named once each")
    if chain[0] == "compact":
        raise PolicyError("one region of everything is the most compact; put 'count' or 'max' before 'compact'")
    return chain


def _places(coordinates: Any, n: int) -> np.ndarray | None:
    if coordinates is None:
        return None
    found = np.asarray(coordinates, dtype=np.float64)
    if found.shape != (n, 2) or not np.isfinite(found).all():
        raise InputError(f"coordinates must be {n} pairs of finite numbers, not an array of shape {found.shape}")
    return found


def _moments(places: np.ndarray, weight: np.ndarray, geographic: bool) -> np.ndarray:
    """Mass, mass x, mass y, mass (x^2 + y^2) of every area, in km around the middle when geographic."""
    xy = places - places.mean(axis=0)
    if geographic:
        turned = np.where(xy[:, 0] > 180, xy[:, 0] - 360, np.where(xy[:, 0] < -180, xy[:, 0] + 360, xy[:, 0]))
        xy = np.column_stack([turned * np.cos(np.radians(places[:, 1])), xy[:, 1]]) * 111.195
    mass = np.maximum(weight, max(1.0, float(weight.mean())) * 1e-6).astype(np.float64)
    return np.ascontiguousarray(np.column_stack([mass, mass * xy[:, 0], mass * xy[:, 1], mass * (xy**2).sum(axis=1)]))


def _worked(effort: str | float) -> tuple[float, float | None]:
    if isinstance(effort, str):
        if effort not in _EFFORT:
            raise PolicyError.unknown("effort", effort, [*_EFFORT, "a number of seconds"])
        return _EFFORT[effort], None
    if not effort > 0:
        raise PolicyError(f"effort in seconds must be above 0, not {effort!r}")
    return 1.0, float(effort)


def _randomness(seed: int | None) -> np.ndarray:
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return state | np.uint64(1)


def _eligible_components(g: Graph, features: np.ndarray, need: np.ndarray, ways: int) -> np.ndarray:
    """bool[n]: the areas whose component is eligible as a whole."""
    count, component = components(g)
    total = np.zeros((count, features.shape[1]), np.int64)
    np.add.at(total, component, features)
    return eligible_rows(total, need, ways)[component]


def _sets_eligible(features: np.ndarray, piece: np.ndarray, need: np.ndarray, ways: int) -> np.ndarray:
    """bool per set: whether its members' sums are eligible."""
    total = np.zeros((int(piece.max(initial=-1)) + 1, features.shape[1]), np.int64)
    np.add.at(total, piece, features)
    return eligible_rows(total, need, ways)


def _why_not(g: Graph, features: np.ndarray, need: np.ndarray, ways: int, bounded: bool) -> str:
    count, component = components(g)
    within = "inside the boundaries " if bounded else ""
    if not len(features):
        return "there are no areas"
    for j, least in enumerate(need.tolist()):
        weight = np.bincount(component, weights=features[:, j])
        if weight.max() < least:
            return (
                f"the heaviest set of areas connected {within}weighs {int(weight.max())}, below k = {least}; "
                "lower k, or join what is apart with light='nearest'"
            )
    if ways > 1:
        return (
            f"no connected set of areas {within}({count} in all) meets every threshold and has each sensitive value at "
            f"most 1/{ways} of its records; lower l or k"
        )
    return f"no connected set of areas {within}({count} in all) meets all thresholds {need.tolist()} at once; lower one"


def _begin(
    start: Any, keep: np.ndarray, g: Graph, features: np.ndarray, need: np.ndarray, ways: int
) -> np.ndarray | None:
    """The given start on the areas kept, checked."""
    from shoal.problems.regions.graph import connected_parts

    if start is None:
        return None
    given = np.asarray(start)
    if given.shape != keep.shape:
        raise InputError(f"start has shape {given.shape}; give one region for each of {len(keep)} areas")
    label = relabelled(given[keep].astype(np.int64))
    total = np.zeros((int(label.max()) + 1, features.shape[1]), np.int64)
    if (label < 0).any() or not connected_parts(g, label):
        raise InputError("start leaves an area out, or has a region that is not connected")
    np.add.at(total, label, features)
    if not eligible_rows(total, need, ways).all():
        raise InputError("start has a region that does not meet the thresholds")
    return label
