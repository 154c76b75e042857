"""Bounds on partitions into eligible connected regions: the largest number of regions, and the least heaviest weight.

All bounds use only the thresholds, so they hold with l-diversity as well. docs/regions.md ("The bounds") proves them. H
is the set of areas that meet every threshold alone. The light components are those of G - H. The number of regions is
at most |H| plus the disjoint eligible sets that fit in the light components.

Prices of areas bound these sets: if every connected set that meets the thresholds costs at least one, at most the sum
of all prices are disjoint. The share u(v) = w(v) / k is such a price; a linear program lowers it for areas around which
few connected sets are too light. Prices are whole numbers and are checked against every listed set, so the bound
doesn't depend on the program's rounding. With several thresholds, u is that of the threshold with the lowest bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.problems.regions.packing import UNIT, Packing, pack
from shoal.problems.regions.task import Contiguity, Districting, SearchClock, components, graph, induced, summed, sums

_PRICED = 400  # largest light component that is given to the linear program, in areas
_VISITS = 10_000_000  # areas that the annealing over separators may visit


@dataclass(slots=True)
class CountBound:
    """An upper bound on the number of regions, with its parts.

    value      the bound
    argument   name of the argument that gave it
    table      every bound computed, by name
    component  int64[n]: component of the graph of each area
    heavy      bool[n]: H
    capacity       int64[c]: bound on the sets in each light component
    home       int64[c]: component of the graph of each light component
    nodes      int64[n]: light component of each area, -1 in H
    packings   results of the linear program, by light component
    price      int64[n]: what every area costs a region at least; None before ``price_areas``
    """

    value: int
    argument: str
    table: dict[str, int]
    component: np.ndarray
    heavy: np.ndarray
    capacity: np.ndarray
    home: np.ndarray
    nodes: np.ndarray
    packings: dict[int, Packing] = field(default_factory=dict)
    price: np.ndarray | None = None

    def lower(self, name: str, argument: str) -> None:
        """Add up the capacities; record the argument if the bound decreased."""
        value = int(self.heavy.sum() + self.capacity.sum())
        self.table[name] = value
        if value < self.value:
            self.value, self.argument = value, argument

    def per_component(self) -> np.ndarray:
        """The bound for each component of the graph."""
        count = int(self.component.max()) + 1 if len(self.component) else 0
        found = np.bincount(self.component[self.heavy], minlength=count)
        np.add.at(found, self.home, self.capacity)
        return found


def how_many(weights: np.ndarray, need: np.ndarray) -> np.ndarray:
    """floor(min over thresholds of weight / need), for each row."""
    return (weights // need).min(axis=-1)


def count_bound(task: Districting, *, steps: int) -> CountBound:
    """The bound by counting and separators, which is quick at any size.

    steps  of the annealing over separators; 0 omits it

    O(n + m) time, plus the annealing.
    """
    weights, need, g = task.weights, task.need, task.graph
    _, component = components(g)
    total, capped = summed(weights, component), summed(np.minimum(weights, need), component)
    heavy = np.asarray((weights >= need).all(axis=1))
    light, inside = induced(g, ~heavy)
    many, label = components(light)
    capacity = how_many(summed(weights[inside], label, many), need)
    home = np.zeros(many, np.int64)
    home[label] = component[inside]
    nodes = np.full(g.n, -1, np.int64)
    nodes[inside] = label
    table = {
        "total": int(how_many(total, need).sum()),
        "capped": int(how_many(capped, need).sum()),
        "heavy": int(heavy.sum() + capacity.sum()),
    }
    arguments = {
        "total": "each region weighs at least k",
        "capped": "each region holds at least k of min(weight, k)",
        "heavy": "areas heavy enough alone, and what the components between them have room for",
    }
    name = min(table, key=lambda key: (table[key], list(table).index(key)))
    bound = CountBound(table[name], arguments[name], table, component, heavy, capacity, home, nodes)
    separated(task, bound, steps)
    return bound


def separated(task: Districting, bound: CountBound, steps: int | None = None) -> None:
    """Lower the bound, in place, by removing separators from the light components; repeated calls do nothing.

    steps  of the annealing, 20,000 at the default effort; it also ends after a number of visited areas
    """
    steps = int(20_000 * min(1.0, task.effort)) if steps is None else steps
    open_ = bound.capacity >= 2
    if not steps or "separator" in bound.table or not open_.any():
        return
    from shoal.kernels.regions.areas import Areas
    from shoal.kernels.regions.connected import separator

    busy, members = induced(task.graph, (bound.nodes >= 0) & open_[bound.nodes])
    need, weights, lies = task.need, np.ascontiguousarray(task.weights[members]), bound.nodes[members]
    out = np.zeros(busy.n, np.bool_)
    separator(Areas(busy.indptr, busy.indices, weights, need, 1), out, (steps, _VISITS, 0.15), task.state)
    better = np.bincount(lies[out], minlength=len(open_))
    rest, stay = induced(busy, ~out)
    pieces, piece = components(rest)
    owner = np.zeros(pieces, np.int64)
    owner[piece] = lies[stay]
    np.add.at(better, owner, how_many(summed(weights[stay], piece, pieces), need))
    bound.capacity = np.where(open_, np.minimum(bound.capacity, better), bound.capacity)
    bound.lower("separator", "areas heavy enough alone, further areas taken out, and what is left between them")


def programmable(bound: CountBound) -> bool:
    """Whether every light component that may contain two sets is small enough for the linear program."""
    size = np.bincount(bound.nodes[bound.nodes >= 0], minlength=len(bound.capacity))
    return bool((size[bound.capacity >= 2] <= _PRICED).all())


def price_out(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    *,
    nodes: int,
    clock: SearchClock,
    cuts: int = 0,
    rounding: bool = False,
    integer: bool = False,
    more: Iterable[np.ndarray] = (),
) -> None:
    """Lower the bound, in place, by linear programs over the light components.

    label   int64[n]: a partition; its regions without an area of H are the initial sets
    nodes, cuts, rounding, integer  as for ``pack``; after an unsuccessful rounding, a component isn't rounded again
    more    further connected sets that meet the thresholds; those without areas of H become columns
    """
    holds = np.zeros(int(label.max()) + 1, np.bool_)
    holds[label[bound.heavy]] = True
    fits = np.asarray((sums(task, label)[:, : len(task.need)] >= task.need).all(axis=1))
    others: dict[int, list[np.ndarray]] = {}
    for s in more:
        if not bound.heavy[s].any():  # connected, so in one light component
            others.setdefault(int(bound.nodes[s[0]]), []).append(s)
    # Solve each light component separately, with the regions in it as initial columns.
    for c in np.flatnonzero(bound.capacity >= 2):
        member = np.flatnonzero(bound.nodes == c)
        if len(member) > _PRICED or clock.left <= 0:
            continue
        before = bound.packings.get(int(c))
        mask = np.zeros(task.n, np.bool_)
        mask[member] = True
        part, _ = induced(task.graph, mask)
        inside = label[member]
        known = [np.flatnonzero(inside == p) for p in np.unique(inside) if not holds[p] and fits[p]]
        packing = pack(
            part,
            np.ascontiguousarray(task.weights[member]),
            task.need,
            known=known,
            bound=int(bound.capacity[c]),
            nodes=nodes,
            clock=clock,
            cuts=cuts,
            rounding=rounding and before is None,
            more=[np.searchsorted(member, s) for s in others.get(int(c), ())],
            integer=integer,
        )
        packing.sets = [member[s] for s in packing.sets]
        bound.capacity[c] = packing.bound
        if before is None or len(packing.sets) > len(before.sets):
            bound.packings[int(c)] = packing
    if bound.packings:
        bound.lower(
            "program",
            "areas heavy enough alone, and a linear program over all connected sets of the components between them, "
            "rounded down component by component",
        )


def largest_bound(task: Districting, bound: CountBound) -> tuple[int, str]:
    """A lower bound of the heaviest region's weight, and its argument."""
    from shoal.kernels import quick
    from shoal.kernels.regions.connected import dependent_weights

    if not task.n:
        return 0, "nothing to place"
    first = task.weights[:, 0]
    shared = -(-summed(first, bound.component) // np.maximum(bound.per_component(), 1))
    held = quick(dependent_weights, 2 * len(task.graph.indices))(
        task.graph.indptr, task.graph.indices, task.weights, task.need
    )
    found = [
        (int(first.max()), "the heaviest area"),
        (task.k, "the threshold"),
        (int(held.max()), "an area and what hangs on it alone, too light to be a region"),
        (int(shared.max()), "the weight of a component shared among the most regions it can have"),
    ]
    return max(found, key=lambda pair: pair[0])


def squares_bound(task: Districting, bound: CountBound) -> int:
    """A lower bound of the sum of squared region weights.

    In a component with at most P regions without an area of H, split every region with several areas of H between them.
    This only lowers the squares. Then there is one part for each area h of H, of weight at least w(h), and P more
    parts. The squares are least if the remaining weight is distributed so that the lowest parts are filled first.
    """
    first = task.weights[:, 0]
    least = 0
    count = int(bound.component.max()) + 1 if task.n else 0
    free = summed(bound.capacity, bound.home, count)
    order = np.argsort(bound.component, kind="stable")
    for c, members in enumerate(np.split(order, np.cumsum(np.bincount(bound.component, minlength=count))[:-1])):
        floor = sorted(first[members[bound.heavy[members]]].tolist())
        left = int(first[members].sum())
        squares = 0
        while floor and left < floor[-1] * (len(floor) + int(free[c])):  # the heaviest parts are above the level
            left -= floor[-1]
            squares += floor.pop() ** 2
        slots = len(floor) + int(free[c])
        least += squares + (-(-left * left // slots) if slots else left * left)
    return least


def best_packing(task: Districting, bound: CountBound, label: np.ndarray) -> np.ndarray | None:
    """The partition that the packings imply if they have more sets than ``label``; None otherwise.

    Every area of H is a region, every packed set is one, and everything else is joined, layer by layer, to the lightest
    neighboring region. Valid only if nothing but thresholds counts.
    """
    if not task.thresholds_only or not bound.packings:
        return None
    holds = np.zeros(int(label.max()) + 1, np.bool_)
    holds[label[bound.heavy]] = True
    new = np.full(task.n, -1, np.int64)
    new[bound.heavy] = np.arange(int(bound.heavy.sum()))
    count = int(bound.heavy.sum())
    for c in range(len(bound.capacity)):
        if c in bound.packings:
            sets = bound.packings[c].sets
        else:
            member = np.flatnonzero(bound.nodes == c)
            sets = [member[label[member] == p] for p in np.unique(label[member]) if not holds[p]]
            sets = sets or [member] * int(bound.capacity[c] > 0)
        for members in sets:
            new[members] = count
            count += 1
    if count <= int(label.max()) + 1:
        return None
    return joined(task.graph, task.weights[:, 0], new, count)


def joined(g: Contiguity, weight: np.ndarray, label: np.ndarray, count: int) -> np.ndarray:
    """Areas with label -1 joined to their lightest neighboring region, those next to a region first."""
    label = label.copy()
    load = np.bincount(label[label >= 0], weights=weight[label >= 0], minlength=count)
    queue = [int(v) for v in np.flatnonzero(label < 0)]
    while queue:
        later = []
        for v in queue:
            near = label[g.indices[g.indptr[v] : g.indptr[v + 1]]]
            near = near[near >= 0]
            if len(near):
                label[v] = near[np.argmin(load[near])]
                load[label[v]] += weight[v]
            else:
                later.append(v)
        if len(later) == len(queue):
            break
        queue = later
    return label


_LARGEST = 5_000  # larger components keep their shares as prices
_FEW = 2_500_000  # most sets that are listed for all areas of a component together
_EACH = 20, 3_000  # fewest and most sets for one area
_ROOM = 8_000_000  # total size of the listed sets
_OVERLAP = 3  # among rows added at a time, most that share an area
_TRIED = 5_000  # of the sets that cost too little, how many of the worst are considered
_ROUNDS = 60
_SLACK = 1e-6


def price_areas(task: Districting, bound: CountBound) -> None:
    """Lower the bound, in place, by prices of the areas in light components that may contain two or more regions.

    ``bound.price`` is then int64[n], in ``UNIT``; areas of H cost one.
    """
    price = np.full(task.n, UNIT, np.int64)
    light = bound.nodes >= 0
    price[light] = share(task.weights[light], task.need)
    size = np.bincount(bound.nodes[light], minlength=len(bound.capacity))
    for c in np.flatnonzero((bound.capacity >= 2) & (size <= _LARGEST)):
        member = np.flatnonzero(bound.nodes == c)
        part, _ = induced(task.graph, bound.nodes == c)
        few = int(np.clip(_FEW * min(1.0, task.effort) / len(member), *_EACH))
        price[member] = priced(part, np.ascontiguousarray(task.weights[member]), task.need, few)
        bound.capacity[c] = min(int(bound.capacity[c]), sum(price[member].tolist()) // UNIT)
    bound.price = price
    bound.lower(
        "prices",
        "areas heavy enough alone, and a linear program over the connected sets of the components between them "
        "where these are few, rounded down component by component",
    )


def share(weights: np.ndarray, need: np.ndarray) -> np.ndarray:
    """w / k in ``UNIT``, rounded up and at most one, for the threshold with the lowest bound."""
    parts = np.minimum(UNIT, -(-weights.astype(object) * UNIT // need))
    return parts[:, int(np.argmin(parts.sum(axis=0)))].astype(np.int64)


class _Listed(NamedTuple):
    """Sets of areas with the least price of each.

    members, starts, sizes  the sets, concatenated
    least    int64[s]
    """

    members: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    least: np.ndarray

    def short(self, price: np.ndarray) -> np.ndarray:
        """int64[s]: the amount by which each set costs too little; negative if it costs more than necessary."""
        return np.asarray(self.least - np.add.reduceat(price[self.members], self.starts))

    def of(self, s: int) -> np.ndarray:
        """The areas of a set."""
        return self.members[self.starts[s] : self.starts[s] + self.sizes[s]]


def priced(g: Contiguity, weights: np.ndarray, need: np.ndarray, few: int) -> np.ndarray:
    """int64[n]: prices in ``UNIT`` at which every connected set that meets the thresholds costs at least one.

    g, weights, need  a graph, int64[n, t], int64[t]; no vertex meets all thresholds alone
    few               as for ``light_sets``
    """
    order = np.argsort(-weights[:, 0], kind="stable")
    rank = np.empty(g.n, np.int64)
    rank[order] = np.arange(g.n)
    own = share(weights, need)[order]
    sets, kept = _listed(graph(rank[g.edges()], g.n), weights[order], need, few, own)
    price = own.copy()
    if len(sets.least):
        price[~kept] = _cheapest(sets, own, ~kept)
        short = sets.short(price)
        held = np.zeros(g.n, np.bool_)
        held[sets.members[np.repeat(short > 0, sets.sizes)]] = True
        price[held] = np.maximum(price, own)[held]
    return price[rank] if sum(price.tolist()) < sum(own.tolist()) else own[rank]


def _listed(
    g: Contiguity, weights: np.ndarray, need: np.ndarray, few: int, own: np.ndarray
) -> tuple[_Listed, np.ndarray]:
    """The sets that constrain prices, and the areas that keep their share."""
    from shoal.kernels.regions.connected import light_sets

    weights = np.ascontiguousarray(weights)
    members, ends, full, listed = light_sets(g.indptr, g.indices, weights, need, few, _ROOM)
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    borders_unlisted = np.zeros(g.n, np.int64)
    borders_unlisted[tail[~listed[g.indices]]] = 1
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
    sizes = ends - starts
    if not len(ends):
        return _Listed(members, starts, sizes, ends), ~listed
    says = full | (np.add.reduceat(borders_unlisted[members], starts) > 0)
    least = np.where(full, UNIT, np.minimum(UNIT, np.add.reduceat(own[members], starts)))
    members = members[np.repeat(says, sizes)]
    sizes = sizes[says]
    starts = np.cumsum(sizes) - sizes
    return _Listed(members, starts, sizes, least[says]), ~listed


def _cheapest(sets: _Listed, own: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Prices of the free areas, by a linear program to which violated rows are added.

    The right-hand sides are slightly increased, so that only sets without a row can remain violated.
    """
    from shoal.problems.programs import Solver

    highs = Solver()
    column = np.cumsum(free) - 1
    count = int(free.sum())
    highs.add_columns(np.ones(count), np.ones(count))
    price = np.where(free, 0, own)
    added = np.zeros(len(sets.least), np.bool_)
    for _ in range(_ROUNDS):
        missed = _nearly_disjoint(sets, sets.short(price) / UNIT, added)
        if not len(missed):
            break
        added[missed] = True
        rows = [column[sets.of(s)] for s in missed]
        highs.add_rows(sets.least[missed] / UNIT, np.full(len(rows), np.inf), rows)
        highs.run()
        price[free] = np.clip(np.ceil((highs.x + _SLACK) * UNIT), 0, UNIT).astype(np.int64)
    return price[free]


def _nearly_disjoint(sets: _Listed, short: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Violated sets, the worst first, of which at most ``_OVERLAP`` share an area."""
    bad = np.flatnonzero((short > 0) & ~added)
    bad = bad[np.argsort(-short[bad] / np.sqrt(sets.sizes[bad]), kind="stable")[:_TRIED]]
    used = np.zeros(int(sets.members.max()) + 1, np.int64)
    chosen = []
    for s in bad.tolist():
        members = sets.of(s)
        if used[members].max() < _OVERLAP:
            used[members] += 1
            chosen.append(s)
    return np.array(chosen, np.int64)
