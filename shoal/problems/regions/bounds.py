"""Bounds on every partition into eligible connected regions: how many regions at most, how heavy at least.

All bounds look at the thresholds alone, so they hold with l-diversity as well.  H is the set of areas that meet every
threshold alone, the light components are those of G - H.  Every region holds an area of H or lies in one light
component; so at most |H| + (sum over the light components of the disjoint eligible sets they have room for) regions
exist, and where only thresholds count some partition attains it: H's areas alone, the sets, everything else joined
to a neighbor.

Dual prices of areas bound the number of regions, and tell surplus from waste.  Let every area of a light component have
a price so that every connected set which meets the thresholds costs at least one.  Then at most so many disjoint ones
exist as all prices together make.  The share u(v) = w(v) / k is such a price; a linear program finds smaller ones.
Where areas are small beside k there are too many connected sets to write down, and little to gain, for they add up to
nearly k anyway.  So the sets are listed around areas where they are few, and all other areas keep u:

    a listed set that meets the thresholds costs at least 1;
    a listed set that does not, and lies next to an area that keeps u, costs at least its own u.

That is enough.  A connected set R that meets the thresholds and has listed areas alone contains one of the first
kind.  Else each piece of listed areas that it falls into lies next to one that keeps u: either a piece contains one of
the first kind, or all cost their u at least, and R costs u(R) >= 1.  Prices are whole numbers and checked against every
listed set, so no rounding of the program's enters.  With several thresholds u is taken by the one that leaves least
room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.problems.regions.packing import UNIT, Packing, pack
from shoal.problems.regions.task import Contiguity, Districting, SearchClock, components, graph, induced, summed, sums

_PRICED = 400  # light components of so many areas at most are given to the linear program
_VISITS = 10_000_000  # areas looked at by the annealing over separators


@dataclass(slots=True)
class CountBound:
    """An upper bound on the number of regions, with its parts.

    value      the bound
    argument   which argument gave it
    table      every bound computed, by name
    component  int64[n]  component of the graph of each area
    heavy      bool[n]   H
    capacity       int64[c]  bound on the sets in each light component
    home       int64[c]  component of the graph each light component lies in
    nodes      int64[n]  light component of each area, -1 in H
    packings   what the linear program found, by light component
    price      int64[n]  what every area costs a region at least, once ``prices`` has said so
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
        """Add up the capacities; the argument counts where the bound fell."""
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
    """floor(min over thresholds of weight / need), row by row."""
    return (weights // need).min(axis=-1)


def count_bound(task: Districting, *, steps: int) -> CountBound:
    """Counting and separators: quick at any size.

    steps  of the annealing over separators; 0 leaves it out

    O(n + m) time, and the annealing.
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
    """Lower the bound by areas taken out of the light components, in place; not twice.

    steps  of the annealing over them, 20,000 at the default effort, which also ends by the areas it has looked at
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
    """Whether every light component that may hold two sets is small enough for the linear program."""
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
    """Lower the bound by linear programs over the light components, in place.

    label   int64[n]  a partition: its regions without an area of H are the sets known
    nodes, cuts, rounding, integer  as for ``pack``; what was rounded once, in vain, is not rounded again
    more    connected sets of areas that meet the thresholds, worth a column each where no area of H is among them
    """
    holds = np.zeros(int(label.max()) + 1, np.bool_)
    holds[label[bound.heavy]] = True
    fits = np.asarray((sums(task, label)[:, : len(task.need)] >= task.need).all(axis=1))
    others: dict[int, list[np.ndarray]] = {}
    for s in more:
        if not bound.heavy[s].any():  # connected, so in one light component
            others.setdefault(int(bound.nodes[s[0]]), []).append(s)
    # Each light component by itself, with the regions in it as first columns.
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
    """The heaviest region weighs at least this much, and why."""
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
    """The sum of squared region weights is at least this.

    In a component with at most P regions without an area of H, split every region with several such areas between them:
    the squares only fall.  That leaves one part for each area h of H, of weight at least w(h), and P more; the
    squares are then least when everything else is poured where the level is lowest.
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
        while floor and left < floor[-1] * (len(floor) + int(free[c])):  # the heaviest stand above the level
            left -= floor[-1]
            squares += floor.pop() ** 2
        slots = len(floor) + int(free[c])
        least += squares + (-(-left * left // slots) if slots else left * left)
    return least


def best_packing(task: Districting, bound: CountBound, label: np.ndarray) -> np.ndarray | None:
    """The partition that the packings give where they hold more sets than ``label`` does; None otherwise.

    Every area of H alone, every set found, everything else joined, layer by layer, to the lightest neighboring region.
    Only where nothing but thresholds counts.
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
    """Areas of label -1 joined, the ones next to a region first, to its lightest neighboring region."""
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


_LARGEST = 5_000  # a component of more areas is left as it is
_FEW = 2_500_000  # so many sets are listed for all areas of a component together,
_EACH = 20, 3_000  # at least and at most so many for one
_ROOM = 8_000_000  # members of the listed sets
_OVERLAP = 3  # rows added at a time that share an area
_TRIED = 5_000  # of so many sets that cost too little, the worst
_ROUNDS = 60
_SLACK = 1e-6


def price_areas(task: Districting, bound: CountBound) -> None:
    """Lower the bound, in place, by prices of the areas in light components with room for two regions or more.

    ``bound.price`` is then int64[n], in ``UNIT``: areas of H cost one.
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
    """w / k in ``UNIT``, rounded up and at most one, by the threshold that leaves least room."""
    parts = np.minimum(UNIT, -(-weights.astype(object) * UNIT // need))
    return parts[:, int(np.argmin(parts.sum(axis=0)))].astype(np.int64)


class _Listed(NamedTuple):
    """Sets of areas with what each must cost at least.

    members, starts, sizes  the sets, one after the other
    least    int64[s]
    """

    members: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    least: np.ndarray

    def short(self, price: np.ndarray) -> np.ndarray:
        """How much too little each set costs; int64[s], negative where it costs more than it must."""
        return np.asarray(self.least - np.add.reduceat(price[self.members], self.starts))

    def of(self, s: int) -> np.ndarray:
        """The areas of a set."""
        return self.members[self.starts[s] : self.starts[s] + self.sizes[s]]


def priced(g: Contiguity, weights: np.ndarray, need: np.ndarray, few: int) -> np.ndarray:
    """Prices in ``UNIT`` at which every connected set that meets the thresholds costs one or more; int64[n].

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
    """The sets that say something, and the areas that keep their share."""
    from shoal.kernels.regions.connected import light_sets

    weights = np.ascontiguousarray(weights)
    members, ends, full, listed = light_sets(g.indptr, g.indices, weights, need, few, _ROOM)
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    beside = np.zeros(g.n, np.int64)
    beside[tail[~listed[g.indices]]] = 1
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
    sizes = ends - starts
    if not len(ends):
        return _Listed(members, starts, sizes, ends), ~listed
    says = full | (np.add.reduceat(beside[members], starts) > 0)
    least = np.where(full, UNIT, np.minimum(UNIT, np.add.reduceat(own[members], starts)))
    members = members[np.repeat(says, sizes)]
    sizes = sizes[says]
    starts = np.cumsum(sizes) - sizes
    return _Listed(members, starts, sizes, least[says]), ~listed


def _cheapest(sets: _Listed, own: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Prices of the areas that may have one, by a linear program whose rows are added as they are missed.

    A little too high, so that what is left short is what no row was added for.
    """
    from shoal.problems.programs import Solver

    highs = Solver()
    column = np.cumsum(free) - 1
    count = int(free.sum())
    highs.add_columns(np.ones(count), np.ones(count))
    price = np.where(free, 0, own)
    added = np.zeros(len(sets.least), np.bool_)
    for _ in range(_ROUNDS):
        missed = _apart(sets, sets.short(price) / UNIT, added)
        if not len(missed):
            break
        added[missed] = True
        rows = [column[sets.of(s)] for s in missed]
        highs.add_rows(sets.least[missed] / UNIT, np.full(len(rows), np.inf), rows)
        highs.run()
        price[free] = np.clip(np.ceil((highs.x + _SLACK) * UNIT), 0, UNIT).astype(np.int64)
    return price[free]


def _apart(sets: _Listed, short: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Sets that cost too little, the worst first, of which at most ``_OVERLAP`` share an area."""
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
