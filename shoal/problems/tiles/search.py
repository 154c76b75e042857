"""The methods of tiles: least waste, kd-trees, Mondrian, the exact guillotine partition, and tiles under limits.

Least waste cuts where the fewest possible tiles are lost, solves small cells by dynamic programming, and keeps the best
result. The plane is cut into blocks of a few hundred tiles. Every block is cut by several strategies, which differ in
the records to spare per tile and in the size of cells for the dynamic program, and keeps the best one. All strategies
end in cells that can't be cut, so Theorem 4 of Du, Eppstein, Goodrich, Lueker 2009 holds for the result.

The paper's algorithm cuts as long as both sides keep at least k; Mondrian examines one cut per side. Du, Eppstein,
Goodrich, Lueker 2009, section 3. The proof of Theorem 4 doesn't depend on the order of the cuts, so the paper leaves
the rule open; here a cut is closest to the median. Not in the paper: cuts lie between distinct coordinates only.

Tiles under limits have more conditions than weight: different values, no frequent value, a longest side; records may be
left out. For places on few distinct coordinates, the best guillotine partition is computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.cells import (
    EDGES,
    LOW,
    WEIGHT,
    TileCells,
    TilePartition,
    boxes_of,
    least_of_all,
    most_of_all,
    spans,
)
from shoal.problems.tiles.places import PlaceContents, Places
from shoal.problems.tiles.result import TileTerms
from shoal.watching import done

MOST, LEAST_HEAVIEST, PERIMETER, MOST_UNDER, SQUARES = 0, 1, 2, 3, 4  # as in the kernels
BLOCK = 192  # largest weight of a block, as a multiple of k
PROGRAMS = (  # cells of at most this multiple of k, lines per axis, measured seconds for a cell with all these lines
    (48, 48, 60e-3),
    (32, 40, 16e-3),
    (24, 32, 3e-3),
    (12, 24, 5e-4),
    (8, 24, 25e-5),
    (6, 16, 6e-5),
    (4, 12, 2e-5),
)


@dataclass(frozen=True)
class Strategy:
    """Settings for cutting a block.

    slack    records to spare, as a share of k, when the tiles that fit are counted
    balance  weight of balanced halves among the criteria of a cut
    cap      desired largest weight of a tile; 0 for none
    cell     cells of at most this many times k go to the dynamic program; 0 for none
    lines    lines per axis in the dynamic program
    program  its objective: MOST tiles, LEAST_HEAVIEST, PERIMETER, SQUARES, or MOST_UNDER the target weight
    """

    slack: float = 0.0
    balance: float = 0.0
    cap: int = 0
    cell: int = 0
    lines: int = 0
    program: int = 0


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The result of a strategy: its cells, and per block number of tiles, heaviest, size (inf: not tried),
    and sum of squared weights."""

    strategy: Strategy
    cells: TileCells
    block: np.ndarray
    tiles: np.ndarray
    heaviest: np.ndarray
    size: np.ndarray
    squares: np.ndarray


def plain(places: Places, k: int) -> TilePartition:
    """The rule of least waste alone."""
    cells = _cut(places, TileCells.sides(places), k, Strategy())
    return TilePartition.of(places, cells.labels, cells.cells[:, EDGES], cells.cuts)


def least_waste(
    places: Places, k: int, objective: str, *, effort: float = 4.0, start: TileCells | None = None, **_: object
) -> tuple[TilePartition, dict]:
    """The best of several strategies in each block.

    effort  estimated seconds for the dynamic programs; the work is fixed in advance, and doesn't depend on the clock
    start   cells to cut further, without tiles across them; the whole plane by default
    """
    good = least_of_all(places, k)[0]
    blocks = _cut(places, start or TileCells.sides(places), k, Strategy(cap=good), BLOCK * k)
    best = Tournament(places, blocks, k, objective, good, {"max": 20, "perimeter": 8, "sumsq": 8}.get(objective, 5))
    for balance in (0.0, 1.0):
        best.enter(Strategy(balance=balance, cap=good))
    if objective == "max":
        _lower(best, effort)
    else:
        programs = {"perimeter": [PERIMETER, MOST], "sumsq": [SQUARES, MOST]}.get(objective, [MOST])
        sizes = _grids_within_time(places, blocks, k, effort / (3 if len(programs) == 1 else 8))
        for slack in (0.0, 0.05, 0.1) if sizes else ():
            for program in programs:
                best.enter(Strategy(slack=slack, program=program, **sizes))
    return best.result(), {"blocks": len(blocks.cells), "strategies": best.entered}


def proportional(places: Places, k: int, objective: str, **_: object) -> tuple[TilePartition, dict]:
    """Cut so that both sides contain a whole number of tiles of weight k..U, with U as small as counting allows.

    If all places have weight 1 and no two share an x (or no two share a y), every such cut exists, and the heaviest
    tile reaches the bound.
    """
    good = least_of_all(places, k)[0]
    best = Tournament(places, TileCells.sides(places), k, "max", good, 12)
    for cap in (good, -(-21 * k // 20), -(-6 * k // 5)):
        for balance in (1.0, 0.0, 0.3, 3.0):
            best.enter(Strategy(balance=balance, cap=max(cap, good)))
            if best.heaviest() <= good:
                return best.result(), {"window": [k, good]}
    return best.result(), {"window": [k, good], "window_kept": False}


def _lower(best: Tournament, effort: float) -> None:
    """Least heaviest tile: find how low each block can go, then the most tiles under the common ceiling."""
    for slack, balance in (
        (0.0, 0.3),
        (0.0, 3.0),
        (0.3, 0.0),
        (0.15, 1.0),
        (0.0, 0.1),
        (0.5, 0.0),
        (0.05, 0.0),
        (0.3, 1.0),
    ):
        above = np.flatnonzero(best.heavy > best.good)
        if above.size:
            best.enter(Strategy(slack=slack, balance=balance, cap=best.good), above)
    sizes = _grids_within_time(best.places, best.blocks, best.k, effort / 4)
    if not sizes:
        return
    # a window so narrow that hardly any cut fits gives bad results if many coordinates are equal, so widen it by a
    # tenth
    wide = max(best.good, best.k + best.k // 10)
    for slack, cap in ((0.0, best.good), (0.05, wide), (0.15, wide)):
        above = np.flatnonzero(best.heavy > best.good)
        if above.size:
            best.enter(Strategy(slack=slack, cap=cap, program=LEAST_HEAVIEST, **sizes), above)
    fine, more = {"cell": 6, "lines": 24}, {**sizes, "cell": 2 * sizes["cell"]}
    for slack, cap, size in ((0.0, best.good, fine), (0.1, wide, sizes), (0.3, wide, fine), (0.1, wide, more)):
        worst = np.flatnonzero(best.heavy >= best.heaviest())
        if best.heaviest() <= best.good or worst.size > max(4, len(best.heavy) // 10):
            break
        best.enter(Strategy(slack=slack, cap=cap, program=LEAST_HEAVIEST, **size), worst)
    best.good = best.heaviest()
    for number in np.unique(best.winner):  # the same cells again: most tiles in those that stay under the ceiling
        won = best.outcomes[number].strategy
        if won.program == LEAST_HEAVIEST:
            best.enter(replace(won, program=MOST_UNDER), np.flatnonzero(best.winner == number))
    if best.tiles.sum() == most_of_all(best.places, best.k):
        return
    best.enter(Strategy(cap=best.good, program=MOST_UNDER, **sizes))
    short = np.flatnonzero(best.tiles < best.blocks.cells[:, WEIGHT] // best.k)
    if short.size:
        best.enter(Strategy(slack=0.05, cap=best.good, program=MOST_UNDER, **sizes), short)


class Tournament:
    """A comparison of strategies, about ``expected`` of them, in every block; the best one wins the block."""

    def __init__(self, places: Places, blocks: TileCells, k: int, objective: str, good: int, expected: int) -> None:
        self.expected = expected
        self.places, self.blocks, self.k, self.objective, self.good = places, blocks, k, objective, good
        self.outcomes: list[_Outcome] = []
        self.entered = 0
        q = len(blocks.cells)
        self.winner = np.full(q, -1)
        self.tiles, self.heavy, self.size = np.zeros(q, np.int64), np.full(q, 2**62), np.full(q, np.inf)
        self.squares = np.full(q, np.inf)

    def enter(self, strategy: Strategy, only: np.ndarray | None = None) -> None:
        """Try a strategy in all blocks, or in the given ones."""
        done(min(1.0, self.entered / self.expected))
        self.entered += 1
        one = self._outcome(strategy, only)
        heavy, other = np.maximum(self.heavy, self.good), np.maximum(one.heaviest, self.good)
        smaller = one.size < self.size
        more = (one.tiles > self.tiles) | ((one.tiles == self.tiles) & smaller)
        if self.objective == "perimeter":
            better = smaller
        elif self.objective == "sumsq":
            better = (one.squares < self.squares) | ((one.squares == self.squares) & smaller)
        elif self.objective == "max":
            better = (other < heavy) | ((other == heavy) & more)
        else:
            better = more
        better &= np.isfinite(one.size)
        if not better.any():
            return
        for mine, new in ((self.tiles, one.tiles), (self.heavy, one.heaviest), (self.size, one.size),
                          (self.squares, one.squares)):  # fmt: skip
            mine[better] = new[better]
        self.winner[better] = len(self.outcomes)
        self.outcomes.append(one)

    def heaviest(self) -> int:
        """The weight of the heaviest tile so far."""
        return int(self.heavy.max())

    def result(self) -> TilePartition:
        """The parts of the winners, combined."""
        labels = np.empty(self.places.x.size, np.int64)
        edges, cuts, m, offset = [], [self.blocks.cuts], 0, len(self.blocks.cuts)
        base = offset
        for number, one in enumerate(self.outcomes):
            mine = self.winner[one.block] == number
            if not mine.any():
                continue
            index = np.cumsum(mine) - 1 + m
            own = one.cells.labels
            held = (own >= 0) & mine[own]
            labels[held] = index[own[held]]
            e = one.cells.cells[mine, EDGES]
            edges.append(np.where(e >= base, e - base + offset, e))
            cuts.append(one.cells.cuts[base:])
            offset += len(one.cells.cuts) - base
            m += int(mine.sum())
        return TilePartition.of(self.places, labels, np.concatenate(edges), np.concatenate(cuts))

    def _outcome(self, strategy: Strategy, only: np.ndarray | None) -> _Outcome:
        which = np.arange(len(self.blocks.cells)) if only is None else only
        blocks = TileCells(self.blocks.by_x, self.blocks.by_y, self.blocks.cells[which], self.blocks.cuts)
        made = _cut(self.places, blocks, self.k, strategy, 0, self.good)
        block = which[np.searchsorted(blocks.cells[:, LOW], made.cells[:, LOW], side="right") - 1]
        q = len(self.blocks.cells)
        heaviest, size = np.full(q, 2**62), np.full(q, np.inf)
        weight = made.cells[:, WEIGHT]
        heaviest[which] = 0
        np.maximum.at(heaviest, block, weight)
        sizes = weight * spans(boxes_of(self.places, made), self.places.geographic).sum(axis=1)
        size[which] = np.bincount(block, weights=sizes, minlength=q)[which]
        squares = np.bincount(block, weights=weight.astype(float) ** 2, minlength=q)
        return _Outcome(strategy, made, block, np.bincount(block, minlength=q), heaviest, size, squares)


def _grids_within_time(places: Places, blocks: TileCells, k: int, seconds: float) -> dict[str, int]:
    """The largest cells and finest lines whose dynamic programs fit in the time by estimate; empty if none do."""
    tiles = max(int(blocks.cells[:, WEIGHT].sum()) // k, 1)
    per_tile = places.x.size / tiles
    for cell, lines, each in PROGRAMS:
        rough = 1.5 * tiles / cell * each * min(1.0, cell * per_tile / lines) ** 5
        if rough > 50 * seconds:
            continue
        small = _cut(places, blocks, k, Strategy(), cell * k)
        nx, ny = (np.minimum(n, lines) for n in small.distinct(places))
        if float((nx**2.0 * ny**2.0 * (nx + ny)).sum()) / (2.0 * lines**5) * each <= seconds:
            return {"cell": cell, "lines": lines}
    return {}


def _cut(places: Places, cells: TileCells, k: int, s: Strategy, whole_weight: int = 0, good: int = 0) -> TileCells:
    from shoal.kernels.tiles.cells import CutRule, finish_cells, least_waste
    from shoal.kernels.tiles.guillotine import OrderedPoints, RectangleProgram

    by_x, by_y = cells.by_x.copy(), cells.by_y.copy()
    points = OrderedPoints(places.x, places.y, places.weight, by_x, by_y, places.geographic)
    limits = CutRule(k, k * (1 + s.slack), int(s.cap), float(s.balance), max(whole_weight, s.cell * k))
    ended, gaps = least_waste(points, cells.cells, limits, len(cells.cuts))
    cuts = np.concatenate([cells.cuts, gaps])
    if s.cell and s.lines:
        program = RectangleProgram.of(places.x.size, s.lines, s.lines)
        ended, gaps = finish_cells(points, ended, limits, program, s.program, max(good, k), len(cuts))
        cuts = np.concatenate([cuts, gaps])
    return TileCells(by_x, by_y, ended, cuts)


RULES = ("widest", "median", "least_waste")


def kd_tree(places: Places, k: int, objective: str, *, rule: str = "widest", **_: object) -> tuple[TilePartition, dict]:
    """Cut every cell that can be cut, closest to its weighted median.

    rule  "widest": the wider side first, the other if no cut leaves k on both sides; "median": the side with the more
          balanced cut, the wider one if they differ by at most a record; "least_waste": see ``least_waste``

    A cell is left whole only if no cut of either axis leaves k on both sides. Then fewer than k records lie on each of
    the four sides of its median point, so it has weight at most 4 (k - 1) plus the weight of that one place.
    O(n log(n / k)) expected time.
    """
    from shoal.kernels.tiles.guillotine import MEDIAN, WIDEST

    if rule == "least_waste":
        return plain(places, k), {"rule": rule}
    if rule not in RULES:
        raise PolicyError.unknown("cut rule", rule, RULES)
    return _select(places, k, WIDEST if rule == "widest" else MEDIAN), {"rule": rule}


def mondrian(places: Places, k: int, objective: str, **_: object) -> tuple[TilePartition, dict]:
    """Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), for comparison: cuts right above the median, wider side first.

    It stops at cells that other cuts could divide, so Theorem 4 doesn't apply to it.
    """
    from shoal.kernels.tiles.guillotine import MONDRIAN

    return _select(places, k, MONDRIAN), {}


def proportional_tree(places: Places, k: int) -> TilePartition:
    """The kd-tree with cuts as close as possible to a whole number of k on each side."""
    from shoal.kernels.tiles.guillotine import PROPORTIONAL

    return _select(places, k, PROPORTIONAL)


def _select(places: Places, k: int, rule: int) -> TilePartition:
    from shoal.kernels.tiles.guillotine import select_tree

    x, y, w = places.x.copy(), places.y.copy(), places.weight.copy()
    ids, starts, edges, axis, below, above = select_tree(x, y, w, k, rule, places.geographic)
    labels = np.empty(ids.size, np.int64)
    labels[ids] = np.repeat(np.arange(edges.shape[0]), np.diff(starts))
    at = starts[:-1]
    boxes = np.stack([f.reduceat(c, at) for f in (np.minimum, np.maximum) for c in (x, y)], axis=1)
    cuts = np.stack([axis.astype(np.float64), below, above], axis=1)
    return TilePartition(labels, np.add.reduceat(w, at), boxes, edges, cuts)


ALONE = {"tiles": MOST, "perimeter": PERIMETER, "sumsq": SQUARES}  # objectives that one dynamic program minimizes
RECTANGLES = 12_000_000  # 18 bytes each


def rectangles(places: Places) -> int:
    """The number of rectangles between distinct coordinates: the size of the dynamic program."""
    nx, ny = (np.unique(c).size for c in (places.x, places.y))
    return nx * (nx + 1) // 2 * (ny * (ny + 1) // 2)


def best_cuts(places: Places, k: int, objective: str, **_: object) -> tuple[TilePartition, dict]:
    """The best of all guillotine partitions: a straight cut across, then a cut of each part, and so on.

    objective  "tiles": most tiles, then least size; "max": least heaviest tile, then most tiles, then least size;
               "perimeter": least size; "sumsq": least sum of squared weights, then least size. Size is half perimeter
               times weight, summed over the tiles

    O(X^2 Y^2 (X + Y)) time for X and Y distinct coordinates; refuses more than twelve million rectangles. Partitions
    that no straight cut divides (such as five tiles around a pinwheel) aren't included.
    """
    size = rectangles(places)
    if size > RECTANGLES:
        raise PolicyError(
            f"method 'best_cuts' would look at {size:,} rectangles between the distinct coordinates, over its limit "
            f"of {RECTANGLES:,}; use method 'auto', or fewer points"
        )
    from shoal.kernels.tiles.guillotine import MAX, TILES

    if objective == "max":
        heaviest = _program(places, k, MAX, 0)[1]
        return _program(places, k, TILES, heaviest)[0], {"exact_among": "guillotine partitions"}
    found = _program(places, k, ALONE[objective], places.total)[0]
    return found, {"exact_among": "guillotine partitions"}


def _program(places: Places, k: int, objective: int, cap: int) -> tuple[TilePartition, int]:
    from shoal.kernels.tiles.guillotine import OrderedPoints, RectangleProgram, guillotine

    n = places.x.size
    nx, ny = (np.unique(c).size for c in (places.x, places.y))
    program = RectangleProgram.of(n, nx, ny)
    points = OrderedPoints(
        places.x, places.y, places.weight, np.arange(n), np.argsort(places.y, kind="stable"), places.geographic
    )
    m, nx, ny, heaviest, _ = guillotine(points, 0, n, k, cap, objective, max(nx, ny), program)
    ends = [program.ends[0, :nx], program.ends[1, :nx], program.ends[2, :ny], program.ends[3, :ny]]
    return TilePartition.of_bins(places, program.rects[:m], (program.bx, program.by), ends), int(heaviest)


WORK = 300_000_000  # most pairs of a rectangle and a value in the program over all rectangles
NEIGHBORS = 64
NO_CONTENTS = PlaceContents(
    np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64),
    np.zeros(0), np.zeros(0, np.bool_),
)  # fmt: skip


def limited(
    places: Places, k: int, objective: str, method: str, rule: str, asked: TileTerms
) -> tuple[TilePartition, dict, str]:
    """Eligible tiles of the places on one side of a boundary by one of the methods, with details and the method's name.

    Raises PolicyError for a method that doesn't support these limits, InfeasibleError if it finds no tiles.
    """
    if method == "proportional":
        raise PolicyError(
            f"method 'proportional' aims at multiples of k and does not know ⟨{asked.words()[0]}=⟩; use ⟨method='auto'⟩"
        )
    if asked.max_width is not None:
        if asked.max_width < 2 * np.spacing(max(np.abs(axis).max(initial=0.0) for axis in (places.x, places.y))):
            raise PolicyError(
                f"⟨max_width={asked.max_width:g}⟩ is less than floats distinguish at coordinates as large as these; "
                "raise it, or use a larger unit"
            )
        unfit = alone(places, k, asked.max_width)
        if unfit.any() and not asked.leave_out:
            raise InfeasibleError(
                f"{int(places.weight[unfit].sum()):,} records have fewer than k = {k:,} within ⟨max_width⟩ of them, so "
                "no such tile holds them; raise ⟨max_width⟩, lower k, or leave them out with ⟨sparse='leave-out'⟩"
            )
        if unfit.any():
            keep = np.flatnonzero(~unfit)
            if not keep.size:
                empty = np.zeros((0, 4), np.int64)
                return TilePartition.of(places, np.full(places.x.size, -1), empty, np.zeros((0, 3))), {}, method
            rest, details, method = _solved(places.some(keep), k, objective, method, rule, asked)
            return TilePartition.together(places, [rest], [keep]), details, method
    return _solved(places, k, objective, method, rule, asked)


def _solved(
    places: Places, k: int, objective: str, method: str, rule: str, asked: TileTerms
) -> tuple[TilePartition, dict, str]:
    size = rectangles(places) * (1 + (0 if places.held is None else places.held.column.size))
    if method == "auto":
        method = "best_cuts" if size <= WORK // 40 and rectangles(places) <= 300_000 else "least_waste"
    if method == "best_cuts":
        if size > WORK or rectangles(places) > 4_000_000:
            raise PolicyError(
                f"method 'best_cuts' would look at {size:,} rectangles and values, over its limit; use method 'auto'"
            )
        return _every_rectangle(places, k, objective, asked), {"exact_among": "guillotine partitions"}, method
    return (
        _cut_within_limits(places, k, objective, method, rule, asked),
        {"rule": rule} if method == "kd_tree" else {},
        method,
    )


def alone(places: Places, k: int, width: float) -> np.ndarray:
    """bool[p]: places that no tile can contain, because the places within reach weigh less than k.

    Repeated after each removal.

    Degrees are converted with the smallest cosine among the latitudes, so that no place within reach is missed.
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


def _cut_within_limits(
    places: Places, k: int, objective: str, method: str, rule: str, asked: TileTerms
) -> TilePartition:
    """Cuts by the rule of the method; least waste tries several strategies and keeps the best."""
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
    best: tuple[tuple[float, ...], TilePartition] | None = None
    for number, lam in ways:
        parts = _run(places, k, number, lam, asked)
        lost = int(places.weight[parts.labels < 0].sum())
        size = float((parts.weight * parts.sizes(places.geographic)).sum())
        many, heavy = -len(parts.weight), int(parts.weight.max(initial=0))
        squares = float((parts.weight.astype(float) ** 2).sum())
        order = {
            "tiles": (many, size), "max": (heavy, many, size), "perimeter": (size,), "sumsq": (squares, size),
        }[objective]  # fmt: skip
        merit = (lost, *order)
        if best is None or merit < best[0]:
            best = merit, parts
    assert best is not None
    if (best[0][0] and not asked.leave_out) or ((best[1].labels < 0).any() and not asked.leave_out):
        raise InfeasibleError(
            f"method {method!r} found no tiles within ⟨max_width⟩ for {int(best[0][0]):,} records, which is no proof "
            "that there are none; raise ⟨max_width⟩, lower k, or leave them out with ⟨sparse='leave-out'⟩"
        )
    return best[1]


def _run(places: Places, k: int, number: int, lam: float, asked: TileTerms) -> TilePartition:
    from shoal.kernels.tiles.guillotine import OrderedPoints
    from shoal.kernels.tiles.limited import PlaceValues
    from shoal.kernels.tiles.limited import limited as kernel

    held = _held(places)
    whole = TileCells.whole(places)
    by_x, by_y = whole.by_x.copy(), whole.by_y.copy()
    points = OrderedPoints(places.x, places.y, places.weight, by_x, by_y, places.geographic)
    values = PlaceValues(held.start, held.code, held.amount)
    cells, gaps = kernel(points, k, values, _columns(held), number, lam, _sides(places, asked))
    kept = cells[:, 7] == 1
    number_of = np.where(kept, np.cumsum(kept) - 1, -1)
    return TilePartition.of(places, number_of[TileCells(by_x, by_y, cells, gaps).labels], cells[kept][:, EDGES], gaps)


def _columns(held: PlaceContents) -> Any:
    from shoal.kernels.tiles.limited import ValueColumns

    return ValueColumns(held.column, held.need, held.share, held.unit)


def _sides(places: Places, asked: TileTerms) -> Any:
    from shoal.kernels.tiles.limited import Sides

    return Sides(asked.max_width or 0.0, places.step, places.geographic, asked.leave_out)


def _held(places: Places) -> PlaceContents:
    if places.held is not None:
        return places.held
    return NO_CONTENTS._replace(start=np.zeros(places.x.size + 1, np.int64))


def _every_rectangle(places: Places, k: int, objective: str, asked: TileTerms) -> TilePartition:
    from shoal.kernels.tiles.limited import MAX, NEVER, TILES, Corners, limited_guillotine

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
        lost, heaviest, rects = program(ALONE[objective], places.total)
    if lost >= NEVER:
        raise InfeasibleError(
            f"no guillotine partition into such tiles exists for {places.total:,} records; raise ⟨max_width⟩, lower k, "
            "or leave records out with ⟨sparse='leave-out'⟩"
        )
    return TilePartition.of_bins(places, rects[rects[:, 4] == 1][:, :4], (bx, by), (xs, xs, ys, ys))
