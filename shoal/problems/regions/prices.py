"""What an area is worth to a region: prices that bound the number of regions, and that tell surplus from waste.

Let every area of a light component (see ``bounds``) have a price so that every connected set which meets the
thresholds costs at least one.  Then at most so many disjoint ones exist as all prices together make.  The share
u(v) = w(v) / k is such a price; a linear program finds smaller ones.  Where areas are small beside k there are too many
connected sets to write down, and little to gain, for they add up to nearly k anyway.  So the sets are listed around
areas where they are few, and all other areas keep u:

    a listed set that meets the thresholds costs at least 1;
    a listed set that does not, and lies next to an area that keeps u, costs at least its own u.

That is enough.  A connected set R that meets the thresholds and has listed areas alone contains one of the first
kind.  Else each piece of listed areas that it falls into lies next to one that keeps u: either a piece contains one of
the first kind, or all cost their u at least, and R costs u(R) >= 1.  Prices are whole numbers and checked against every
listed set, so no rounding of the program's enters.  With several thresholds u is taken by the one that leaves least
room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.problems.regions.bounds import CountBound
from shoal.problems.regions.graph import Contiguity, graph, induced
from shoal.problems.regions.packing import UNIT
from shoal.problems.regions.task import Districting

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
    size = np.bincount(bound.nodes[light], minlength=len(bound.room))
    for c in np.flatnonzero((bound.room >= 2) & (size <= _LARGEST)):
        member = np.flatnonzero(bound.nodes == c)
        part, _ = induced(task.graph, bound.nodes == c)
        few = int(np.clip(_FEW * min(1.0, task.effort) / len(member), *_EACH))
        price[member] = priced(part, np.ascontiguousarray(task.weights[member]), task.need, few)
        bound.room[c] = min(int(bound.room[c]), sum(price[member].tolist()) // UNIT)
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
    from shoal.kernels.regions.light_sets import light_sets

    weights = np.ascontiguousarray(weights)
    members, ends, full, listed = light_sets(g.indptr, g.indices, weights, need, few, _ROOM)
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    beside = np.zeros(g.n, np.int64)
    beside[tail[~listed[g.indices]]] = 1
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
    sizes = ends - starts
    if not len(ends):
        return _Listed(members, starts, sizes, np.zeros(0, np.int64)), ~listed
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
    import highspy

    from shoal.problems.programs import Solver

    highs = Solver()
    column = np.cumsum(free) - 1
    count = int(free.sum())
    nothing = np.zeros(count, np.int32)
    highs.addCols(count, np.ones(count), np.zeros(count), np.ones(count), 0, nothing, nothing[:0], np.zeros(0))
    price = np.where(free, 0, own)
    added = np.zeros(len(sets.least), np.bool_)
    for _ in range(_ROUNDS):
        missed = _apart(sets, sets.short(price) / UNIT, added)
        if not len(missed):
            break
        added[missed] = True
        rows = [column[sets.of(s)] for s in missed]
        size = np.array([len(row) for row in rows])
        index = np.concatenate(rows).astype(np.int32)
        least = sets.least[missed] / UNIT
        begin = (np.cumsum(size) - size).astype(np.int32)
        highs.addRows(len(rows), least, np.full(len(rows), highspy.kHighsInf), len(index), begin, index,
                      np.ones(len(index)))  # fmt: skip
        highs.run()
        x = np.array(highs.getSolution().col_value)
        price[free] = np.clip(np.ceil((x + _SLACK) * UNIT), 0, UNIT).astype(np.int64)
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
