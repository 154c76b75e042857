"""Tiles that must meet more than a weight: different values, no frequent one, a longest side; records left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.best_cuts import rectangles
from shoal.problems.tiles.cells import EDGES, Cells, Parts
from shoal.problems.tiles.conditions import Terms
from shoal.problems.tiles.places import Held, Places

WORK = 300_000_000  # rectangles times values that the program over all of them may look at
NEIGHBORS = 64
NOTHING = Held(
    np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64),
    np.zeros(0), np.zeros(0, np.bool_),
)  # fmt: skip


def limited(places: Places, k: int, objective: str, method: str, rule: str, asked: Terms) -> tuple[Parts, dict, str]:
    """Eligible tiles of the places of one side of a boundary by one of the methods, its facts and its name.

    PolicyError for a method that does not know these limits; InfeasibleError where it finds no tiles.
    """
    if method == "proportional":
        raise PolicyError(
            f"method 'proportional' aims at multiples of k and does not know {asked.words()[0]}=; use method='auto'"
        )
    if asked.max_width is not None:
        unfit = alone(places, k, asked.max_width)
        if unfit.any() and not asked.leave_out:
            raise InfeasibleError(
                f"{int(places.weight[unfit].sum()):,} records have fewer than k = {k:,} within max_width of them, so "
                "no such tile holds them; raise max_width, lower k, or leave them out with sparse='leave-out'"
            )
        if unfit.any():
            keep = np.flatnonzero(~unfit)
            if not keep.size:
                empty = np.zeros((0, 4), np.int64)
                return Parts.of(places, np.full(places.x.size, -1), empty, np.zeros((0, 3))), {}, method
            rest, details, method = _solved(places.some(keep), k, objective, method, rule, asked)
            return Parts.together(places, [rest], [keep]), details, method
    return _solved(places, k, objective, method, rule, asked)


def _solved(places: Places, k: int, objective: str, method: str, rule: str, asked: Terms) -> tuple[Parts, dict, str]:
    size = rectangles(places) * (1 + (0 if places.held is None else places.held.column.size))
    if method == "auto":
        method = "best_cuts" if size <= WORK // 40 and rectangles(places) <= 300_000 else "least_waste"
    if method == "best_cuts":
        if size > WORK or rectangles(places) > 4_000_000:
            raise PolicyError(
                f"method 'best_cuts' would look at {size:,} rectangles and values, over its limit; use method 'auto'"
            )
        return _every_rectangle(places, k, objective, asked), {"exact_among": "guillotine partitions"}, method
    return _cut(places, k, objective, method, rule, asked), {"rule": rule} if method == "kd_tree" else {}, method


def alone(places: Places, k: int, width: float) -> np.ndarray:
    """Places that no tile can hold: those within reach of them weigh less than k, one after the other.  bool[p].

    Degrees count by the smallest cosine among the latitudes, so that nothing within reach is missed.
    """
    from scipy.spatial import cKDTree

    xy = np.stack([places.x, places.y], axis=1)
    if places.geographic:
        far = np.abs(places.y).max() + places.step
        xy = xy * KM_PER_DEGREE
        xy[:, 0] *= max(0.0, float(np.cos(np.deg2rad(min(far, 90.0)))))
    out = np.zeros(places.x.size, np.bool_)
    while not out.all():
        left = np.flatnonzero(~out)
        count = min(NEIGHBORS, left.size)
        distance, near = cKDTree(xy[left]).query(
            xy[left], k=range(1, count + 1), p=np.inf, distance_upper_bound=width * (1 + 1e-9)
        )
        found = np.isfinite(distance)
        weight = np.append(places.weight[left], 0)[np.where(found, near, left.size)].sum(axis=1)
        lone = (weight < k) & ~found.all(axis=1) if count < left.size else weight < k
        if not lone.any():
            break
        out[left[lone]] = True
    return out


def _cut(places: Places, k: int, objective: str, method: str, rule: str, asked: Terms) -> Parts:
    """Cuts by the rule of the method; least waste tries several and keeps the best."""
    from shoal.kernels.tiles import limited as kernel

    if method == "mondrian":
        ways = [(kernel.MONDRIAN, 0.0)]
    elif method == "kd_tree" and rule != "least_waste":
        ways = [(kernel.WIDEST if rule == "widest" else kernel.MEDIAN, 0.0)]
    elif method == "kd_tree":
        ways = [(kernel.WASTE, 0.0)]
    else:
        ways = [(kernel.WASTE, 0.0), (kernel.WASTE, 1.0), (kernel.WASTE, 0.3), (kernel.WIDEST, 0.0)]
        ways += [(kernel.WASTE, 3.0), (kernel.MEDIAN, 0.0)] if objective == "max" else []
    best: tuple[tuple[float, ...], Parts] | None = None
    for number, lam in ways:
        parts = _run(places, k, number, lam, asked)
        lost = int(places.weight[parts.labels < 0].sum())
        size = float((parts.weight * parts.sizes(places.geographic)).sum())
        many, heavy = -len(parts.weight), int(parts.weight.max(initial=0))
        order = {"tiles": (many, size), "max": (heavy, many, size), "perimeter": (size,)}[objective]
        merit = (lost, *order)
        if best is None or merit < best[0]:
            best = merit, parts
    assert best is not None
    if (best[0][0] and not asked.leave_out) or ((best[1].labels < 0).any() and not asked.leave_out):
        raise InfeasibleError(
            f"method {method!r} found no tiles within max_width for {int(best[0][0]):,} records, which is no proof "
            "that there are none; raise max_width, lower k, or leave them out with sparse='leave-out'"
        )
    return best[1]


def _run(places: Places, k: int, number: int, lam: float, asked: Terms) -> Parts:
    from shoal.kernels.tiles.limited import PlaceValues
    from shoal.kernels.tiles.limited import limited as kernel
    from shoal.kernels.tiles.orders import Points

    held = _held(places)
    whole = Cells.whole(places)
    by_x, by_y = whole.by_x.copy(), whole.by_y.copy()
    points = Points(places.x, places.y, places.weight, by_x, by_y, places.geographic)
    values = PlaceValues(held.start, held.code, held.amount)
    cells, gaps = kernel(points, k, values, _columns(held), number, lam, _sides(places, asked))
    kept = cells[:, 7] == 1
    number_of = np.where(kept, np.cumsum(kept) - 1, -1)
    return Parts.of(places, number_of[Cells(by_x, by_y, cells, gaps).labels], cells[kept][:, EDGES], gaps)


def _columns(held: Held) -> Any:
    from shoal.kernels.tiles.limited import ValueColumns

    return ValueColumns(held.column, held.need, held.share, held.unit)


def _sides(places: Places, asked: Terms) -> Any:
    from shoal.kernels.tiles.limited import Sides

    return Sides(asked.max_width or 0.0, places.step, places.geographic, asked.leave_out)


def _held(places: Places) -> Held:
    if places.held is not None:
        return places.held
    return NOTHING._replace(start=np.zeros(places.x.size + 1, np.int64))


def _every_rectangle(places: Places, k: int, objective: str, asked: Terms) -> Parts:
    from shoal.kernels.tiles.limited_guillotine import MAX, NEVER, PERIMETER, TILES, Corners, limited_guillotine

    held = _held(places)
    xs, bx = np.unique(places.x, return_inverse=True)
    ys, by = np.unique(places.y, return_inverse=True)
    bx, by = bx.reshape(-1), by.reshape(-1)
    shape = (xs.size + 1, ys.size + 1)
    sums, there = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(sums, (bx + 1, by + 1), places.weight)
    np.add.at(there, (bx + 1, by + 1), 1)
    tallies = np.zeros((held.column.size, *shape), np.int64)
    at = np.repeat(np.arange(places.x.size), np.diff(held.start))
    np.add.at(tallies, (held.code, bx[at] + 1, by[at] + 1), held.amount)
    sums, there = (a.cumsum(axis=0).cumsum(axis=1) for a in (sums, there))
    lattice = Corners(xs, ys, sums, there, tallies.cumsum(axis=1).cumsum(axis=2))

    def program(goal: int, cap: int) -> tuple[int, int, np.ndarray]:
        return limited_guillotine(lattice, _columns(held), k, cap, _sides(places, asked), goal)  # type: ignore[no-any-return]

    if objective == "max":
        lost, heaviest, rects = program(MAX, places.total)
        if lost < NEVER:
            lost, heaviest, rects = program(TILES, max(heaviest, k))
    else:
        lost, heaviest, rects = program(TILES if objective == "tiles" else PERIMETER, places.total)
    if lost >= NEVER:
        raise InfeasibleError(
            f"no guillotine partition into such tiles exists for {places.total:,} records; raise max_width, lower k, "
            "or leave records out with sparse='leave-out'"
        )
    return Parts.of_bins(places, rects[rects[:, 4] == 1][:, :4], (bx, by), (xs, xs, ys, ys))
