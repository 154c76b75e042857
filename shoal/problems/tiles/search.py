"""Few tiles lost: cut where the rule of least waste says, solve small cells by dynamic programming, keep the best.

The plane is cut into blocks of some hundred tiles.  Every block is then cut by several strategies (how many records
to spare per tile, how large the cells for the dynamic program), and each keeps the strategy that served it best.
All of them end in cells that cannot be cut, so Theorem 4 of Du, Eppstein, Goodrich, Lueker 2009 holds for the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shoal.problems.tiles.bounds import least_of_all, most_of_all
from shoal.problems.tiles.cells import EDGES, LOW, WEIGHT, Cells, Parts, boxes_of, spans
from shoal.problems.tiles.places import Places
from shoal.watching import done

MOST, LEAST_HEAVIEST, PERIMETER, MOST_UNDER = 0, 1, 2, 3  # as in the kernels
BLOCK = 192  # a block weighs at most this many times k
PROGRAMS = (  # cells of at most so many times k, lines per axis, seconds for a cell that has all these lines (measured)
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
    """One way to cut a block.

    slack    records to spare, as a share of k, when the tiles that fit are counted
    balance  weight of balanced halves among the criteria of a cut
    cap      tiles should not be heavier; 0 for none
    cell     cells of at most this many times k go to the dynamic program; 0 for none
    lines    lines per axis there
    program  its objective: MOST tiles, LEAST_HEAVIEST, PERIMETER, or MOST_UNDER the ceiling that is good
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

    strategy: Strategy
    cells: Cells
    block: np.ndarray
    tiles: np.ndarray
    heaviest: np.ndarray
    size: np.ndarray


def plain(places: Places, k: int) -> Parts:
    """The rule of least waste by itself."""
    cells = _cut(places, Cells.sides(places), k, Strategy())
    return Parts.of(places, cells.labels, cells.cells[:, EDGES], cells.cuts)


def least_waste(
    places: Places, k: int, objective: str, *, effort: float = 4.0, start: Cells | None = None, **_: object
) -> tuple[Parts, dict]:
    """The best of several strategies in each block.

    effort  seconds that the dynamic programs may take, by estimate: the work is fixed beforehand, not by the clock
    start   cells to cut further, none across; the whole plane by default
    """
    good = least_of_all(places, k)[0]
    blocks = _cut(places, start or Cells.sides(places), k, Strategy(cap=good), BLOCK * k)
    best = Tournament(places, blocks, k, objective, good, {"max": 20, "perimeter": 8}.get(objective, 5))
    for balance in (0.0, 1.0):
        best.enter(Strategy(balance=balance, cap=good))
    if objective == "max":
        _lower(best, effort)
    else:
        programs = [PERIMETER, MOST] if objective == "perimeter" else [MOST]
        sizes = _affordable(places, blocks, k, effort / (3 if len(programs) == 1 else 8))
        for slack in (0.0, 0.05, 0.1) if sizes else ():
            for program in programs:
                best.enter(Strategy(slack=slack, program=program, **sizes))
    return best.result(), {"blocks": len(blocks.cells), "strategies": best.entered}


def proportional(places: Places, k: int, objective: str, **_: object) -> tuple[Parts, dict]:
    """Cut so that both sides hold a whole number of tiles of weight k..U, U as small as counting allows.

    Where all places weigh 1 and no two share an x (or no two a y) every such number can be cut off, and the heaviest
    tile reaches the bound.
    """
    good = least_of_all(places, k)[0]
    best = Tournament(places, Cells.sides(places), k, "max", good, 12)
    for cap in (good, -(-21 * k // 20), -(-6 * k // 5)):
        for balance in (1.0, 0.0, 0.3, 3.0):
            best.enter(Strategy(balance=balance, cap=max(cap, good)))
            if best.heaviest() <= good:
                return best.result(), {"window": [k, good]}
    return best.result(), {"window": [k, good], "window_kept": False}


def _lower(best: Tournament, effort: float) -> None:
    """Least heaviest tile: see how low each block can go, then make the most tiles under the ceiling that all reach."""
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
    sizes = _affordable(best.places, best.blocks, best.k, effort / 4)
    if not sizes:
        return
    # a window so narrow that hardly a cut fits leads astray where many coordinates are equal: leave a tenth
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
    for number in np.unique(best.winner):  # the same cells once more: most tiles in those that stay under the ceiling
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
    """Strategies, about so many as are expected, compete in every block; the better one keeps it."""

    def __init__(self, places: Places, blocks: Cells, k: int, objective: str, good: int, expected: int) -> None:
        self.expected = expected
        self.places, self.blocks, self.k, self.objective, self.good = places, blocks, k, objective, good
        self.outcomes: list[_Outcome] = []
        self.entered = 0
        q = len(blocks.cells)
        self.winner = np.full(q, -1)
        self.tiles, self.heavy, self.size = np.zeros(q, np.int64), np.full(q, 2**62), np.full(q, np.inf)

    def enter(self, strategy: Strategy, only: np.ndarray | None = None) -> None:
        """Let a strategy compete, in the given blocks only if any are given."""
        done(min(1.0, self.entered / self.expected))
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

    def result(self) -> Parts:
        """The winners' parts put together."""
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
        return Parts.of(self.places, labels, np.concatenate(edges), np.concatenate(cuts))

    def _outcome(self, strategy: Strategy, only: np.ndarray | None) -> _Outcome:
        which = np.arange(len(self.blocks.cells)) if only is None else only
        blocks = Cells(self.blocks.by_x, self.blocks.by_y, self.blocks.cells[which], self.blocks.cuts)
        made = _cut(self.places, blocks, self.k, strategy, 0, self.good)
        block = which[np.searchsorted(blocks.cells[:, LOW], made.cells[:, LOW], side="right") - 1]
        q = len(self.blocks.cells)
        heaviest, size = np.full(q, 2**62), np.full(q, np.inf)
        weight = made.cells[:, WEIGHT]
        heaviest[which] = 0
        np.maximum.at(heaviest, block, weight)
        sizes = weight * spans(boxes_of(self.places, made), self.places.geographic).sum(axis=1)
        size[which] = np.bincount(block, weights=sizes, minlength=q)[which]
        return _Outcome(strategy, made, block, np.bincount(block, minlength=q), heaviest, size)


def _affordable(places: Places, blocks: Cells, k: int, seconds: float) -> dict[str, int]:
    """The largest cells and finest lines whose dynamic programs take no longer, by estimate; empty if none."""
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


def _cut(places: Places, cells: Cells, k: int, s: Strategy, whole_weight: int = 0, good: int = 0) -> Cells:
    from shoal.kernels.tiles.cells import CutRule, finish_cells, least_waste
    from shoal.kernels.tiles.guillotine import Program
    from shoal.kernels.tiles.orders import Points

    by_x, by_y = cells.by_x.copy(), cells.by_y.copy()
    points = Points(places.x, places.y, places.weight, by_x, by_y, places.geographic)
    limits = CutRule(k, k * (1 + s.slack), int(s.cap), float(s.balance), max(whole_weight, s.cell * k))
    ended, gaps = least_waste(points, cells.cells, limits, len(cells.cuts))
    cuts = np.concatenate([cells.cuts, gaps])
    if s.cell and s.lines:
        room = Program.of(places.x.size, s.lines, s.lines)
        ended, gaps = finish_cells(points, ended, limits, room, s.program, max(good, k), len(cuts))
        cuts = np.concatenate([cuts, gaps])
    return Cells(by_x, by_y, ended, cuts)
