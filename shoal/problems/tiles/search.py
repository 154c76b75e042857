"""Few tiles lost: cut where the rule of least waste says, solve small cells by dynamic programming, keep the best.

The plane is cut into blocks of some hundred tiles.  Every block is then cut by several strategies (how many records
to spare per tile, how large the cells for the dynamic program), and each keeps the strategy that served it best.
All of them end in cells that cannot be cut, so Theorem 4 of Du, Eppstein, Goodrich, Lueker 2009 holds for the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.problems.tiles.bounds import least_largest
from shoal.problems.tiles.cells import EDGES, LOW, WEIGHT, Cells, boxes_of
from shoal.problems.tiles.places import Places

BLOCK = 192  # a block weighs at most this many times k
CELL_SECONDS = 4e-11  # of the dynamic program, times lines^5, measured


@dataclass(frozen=True)
class Strategy:
    """One way to cut a block.

    slack    records to spare, as a share of k, when the tiles that fit are counted
    balance  weight of balanced halves among the criteria of a cut
    cap      tiles should not be heavier; 0 for none
    cell     cells of at most this many times k go to the dynamic program; 0 for none
    lines    lines per axis there
    program  its objective: 0 most tiles, 1 least heaviest, 2 least half perimeter
    """

    slack: float = 0.0
    balance: float = 0.0
    cap: int = 0
    cell: int = 0
    lines: int = 0
    program: int = 0


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What a strategy made of the blocks it tried: its cells, and per block tiles, heaviest, size (inf: not tried)."""

    cells: Cells
    block: np.ndarray
    tiles: np.ndarray
    heaviest: np.ndarray
    size: np.ndarray


def plain(places: Places, k: int) -> Cells:
    """The rule of least waste by itself."""
    return _cut(places, Cells.whole(places), k, Strategy())


def least_waste(
    places: Places, k: int, objective: str, *, effort: float = 2.0, start: Cells | None = None, **_: object
) -> tuple[Cells, dict]:
    """The best of several strategies in each block.

    effort  seconds that the dynamic programs may take, by estimate: the work is fixed beforehand, not by the clock
    start   cells to cut further, none across; the whole plane by default
    """
    good = least_largest(places.weight, k)[0]
    whole = start or Cells.whole(places)
    blocks = _cut(places, whole, k, Strategy(cap=good if objective == "max" else 0), BLOCK * k)
    best = Tournament(places, blocks, k, objective, good)
    if objective == "max":
        _lower(best, k, good, effort)
    else:
        programs = [2, 0] if objective == "perimeter" else [0]
        sizes = _affordable(places, k, effort / 2 / len(programs))
        for slack in (0.0, 0.05, 0.1) if sizes else (0.0,):
            for program in programs:
                best.enter(Strategy(slack=slack, program=program, **sizes))
        best.enter(Strategy(balance=1.0))
    return best.result(), {"blocks": len(blocks.cells), "strategies": best.entered}


def proportional(places: Places, k: int, objective: str, **_: object) -> tuple[Cells, dict]:
    """Cut so that both sides hold a whole number of tiles of weight k..U, U as small as counting allows.

    With all coordinates distinct every such number can be cut off, and the heaviest tile reaches the bound.
    """
    good = least_largest(places.weight, k)[0]
    best = Tournament(places, Cells.whole(places), k, "max", good)
    for balance in (1.0, 0.0, 0.3, 3.0):
        for cap in (good, -(-21 * k // 20), -(-11 * k // 10), -(-5 * k // 4), 0):
            best.enter(Strategy(balance=balance, cap=max(cap, good) if cap else 0))
            if best.heaviest() <= good:
                return best.result(), {"window": [k, good]}
    return best.result(), {"window": [k, good], "window_kept": False}


def _lower(best: Tournament, k: int, good: int, effort: float) -> None:
    """Least heaviest tile: see how low each block can go, then make the most tiles under the ceiling that all reach."""
    places = best.places
    for balance in (0.0, 1.0):
        best.enter(Strategy(balance=balance, cap=good))
    sizes = _affordable(places, k, effort / 6)
    if not sizes:
        return
    for slack in (0.0, 0.15):
        if best.heaviest() > good:
            best.enter(Strategy(slack=slack, cap=good, program=1, **sizes))
    for slack, balance, cell in ((0.05, 0.0, 1), (0.3, 0.0, 1), (0.0, 1.0, 1), (0.15, 0.0, 2), (0.0, 0.0, 2)):
        worst = np.flatnonzero(best.heavy >= best.heaviest())
        if best.heaviest() <= good or worst.size > max(4, len(best.heavy) // 10):
            break
        more = {**sizes, "cell": cell * sizes["cell"]}
        best.enter(Strategy(slack=slack, balance=balance, cap=good, program=1, **more), worst)
    ceiling = best.heaviest()
    best.good = ceiling
    for slack in (0.0, 0.05, 0.15):
        best.enter(Strategy(slack=slack, cap=ceiling, program=0, **sizes))


class Tournament:
    """Strategies compete in every block; the better one keeps it."""

    def __init__(self, places: Places, blocks: Cells, k: int, objective: str, good: int) -> None:
        self.places, self.blocks, self.k, self.objective, self.good = places, blocks, k, objective, good
        self.outcomes: list[_Outcome] = []
        self.entered = 0
        q = len(blocks.cells)
        self.winner = np.full(q, -1)
        self.tiles, self.heavy, self.size = np.zeros(q, np.int64), np.full(q, 2**62), np.full(q, np.inf)

    def enter(self, strategy: Strategy, only: np.ndarray | None = None) -> None:
        """Let a strategy compete, in the given blocks only if any are given."""
        self.entered += 1
        one = self._outcome(strategy, only)
        heavy, other = np.maximum(self.heavy, self.good), np.maximum(one.heaviest, self.good)
        smaller = one.size < self.size
        more = (one.tiles > self.tiles) | ((one.tiles == self.tiles) & smaller)
        if self.objective == "perimeter":
            better = smaller
        elif self.objective == "max":
            better = (other < heavy) | ((other == heavy) & more)
        else:
            better = more
        better &= np.isfinite(one.size)
        if not better.any():
            return
        for mine, new in ((self.tiles, one.tiles), (self.heavy, one.heaviest), (self.size, one.size)):
            mine[better] = new[better]
        self.winner[better] = len(self.outcomes)
        self.outcomes.append(one)

    def heaviest(self) -> int:
        """The heaviest tile so far."""
        return int(self.heavy.max())

    def result(self) -> Cells:
        """The winners' cells put together."""
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
        return Cells.of(self.places, labels, np.concatenate(edges), np.concatenate(cuts))

    def _outcome(self, strategy: Strategy, only: np.ndarray | None) -> _Outcome:
        which = np.arange(len(self.blocks.cells)) if only is None else only
        blocks = Cells(self.blocks.by_x, self.blocks.by_y, self.blocks.cells[which], self.blocks.cuts)
        done = _cut(self.places, blocks, self.k, strategy, 0, self.good)
        block = which[np.searchsorted(blocks.cells[:, LOW], done.cells[:, LOW], side="right") - 1]
        q = len(self.blocks.cells)
        heaviest, size = np.full(q, 2**62), np.full(q, np.inf)
        weight = done.cells[:, WEIGHT]
        heaviest[which] = 0
        np.maximum.at(heaviest, block, weight)
        size[which] = np.bincount(block, weights=weight * half_perimeters(self.places, done), minlength=q)[which]
        return _Outcome(done, block, np.bincount(block, minlength=q), heaviest, size)


def half_perimeters(places: Places, cells: Cells) -> np.ndarray:
    """Width plus height of each cell's tight box: km where coordinates are geographic, else their own unit."""
    return spans(boxes_of(places, cells), places.geographic).sum(axis=1)


def spans(boxes: np.ndarray, geographic: bool) -> np.ndarray:
    """float64[m, 2]: width and height of boxes; degrees become km, at each box's middle latitude."""
    size = boxes[:, 2:] - boxes[:, :2]
    if geographic:
        from shoal.kernels.tiles_select import KM_PER_DEGREE

        size = size * KM_PER_DEGREE
        size[:, 0] *= np.cos(np.deg2rad((boxes[:, 1] + boxes[:, 3]) / 2))
    return size


def _affordable(places: Places, k: int, seconds: float) -> dict[str, int]:
    """The largest cells and finest lines whose dynamic programs take about that long; empty if none do."""
    tiles = max(places.total // k, 1)
    per_tile = places.x.size / tiles
    for cell, lines in ((48, 48), (32, 40), (24, 32), (12, 24), (6, 24), (6, 16), (4, 12)):
        real = min(lines, max(2.0, cell * per_tile))
        if 1.4 * tiles / cell * CELL_SECONDS * real**5 <= seconds:
            return {"cell": cell, "lines": lines}
    return {}


def _cut(places: Places, cells: Cells, k: int, s: Strategy, whole_weight: int = 0, good: int = 0) -> Cells:
    from shoal.kernels.tiles import least_waste, settle

    data = places.x, places.y, places.weight, cells.by_x.copy(), cells.by_y.copy()
    whole = max(whole_weight, s.cell * k)
    done, gaps = least_waste(
        *data, cells.cells, k, s.slack, s.cap, s.balance, places.geographic, 0, whole, len(cells.cuts)
    )
    cuts = np.concatenate([cells.cuts, gaps])
    if s.cell and s.lines:
        done, gaps = settle(
            *data, done, k, s.cap, s.balance, places.geographic, s.lines, s.program, max(good, k), len(cuts)
        )
        cuts = np.concatenate([cuts, gaps])
    return Cells(data[3], data[4], done, cuts)
