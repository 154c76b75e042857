"""3DM to points in the plane: rectangles of weight exactly three.

Du, Eppstein, Goodrich, Lueker 2009, section 3, on the integer grid.  Kept from the paper: corridors with singles and
pairs in turn, triples as three singles that share a rectangle or go each its own way, choosers, cross-overs, and three
coincident points at every place outside the corridors.  The figures are not needed, and places are laid out so that
neighbors on a corridor touch, without empty stretches:

* Corridors are one cell wide and at least one cell apart.  A place (i, j) on them holds one point if i + j is even,
  two if it is odd.  A rectangle of weight 3 cannot hold an outside place with anything else, so on corridors it is a
  straight piece, and the straight pieces of weight 3 are a single and a neighboring pair.
* Chooser: a place with three or four neighbors on corridors; exactly one of them shares its rectangle.  Between two
  singles a corridor has an odd number of places, so it serves one of its two ends: a connector.
* Triple: singles at distance two in a row, empty cells between them, corridors leaving each.  The row is the only
  rectangle of weight 3 with three singles; it serves all three singles or none.
* Crossing: as for planar graphs, four triples around a chooser, and a chooser where each wire arrives.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from shoal.hardness.instances import Grid, Points
from shoal.hardness.sources import Triples
from shoal.hardness.wiring import wiring

TRACK, LEVEL = 20, 16  # columns from track to track, rows of a crossing
Cell = tuple[int, int]


class Drawing:
    """Cells of corridors (True) and empty cells (False), painted one after the other."""

    def __init__(self) -> None:
        self.cells: dict[Cell, bool] = {}
        self.marks: dict[str, list[Cell]] = {"triple": [], "crossing": [], "element": []}

    def corridor(self, *corners: Cell) -> None:
        """Straight pieces from corner to corner."""
        for (x0, y0), (x1, y1) in pairwise(corners):
            for x in range(min(x0, x1), max(x0, x1) + 1):
                for y in range(min(y0, y1), max(y0, y1) + 1):
                    self.cells[x, y] = True

    def triple(self, x: int, y: int, kind: str) -> None:
        """Three singles at x - 2, x and x + 2; corridors join them later."""
        for dx in (-2, 0, 2):
            self.cells[x + dx, y] = True
        for dx in (-1, 1):
            self.cells[x + dx, y] = False
        self.marks[kind].append((x, y))

    def crossing(self, x: int, y: int) -> None:
        """A cross-over: wires come down at (x, y + 8) and (x + 20, y + 8) and leave at the other side, at y - 8."""
        north, south, west, east, center = (
            (x + dx, y + dy) for dx, dy in ((10, 4), (10, -4), (2, 0), (18, 0), (10, 0))
        )
        left, right, up, down = x + 4, x + 16, y + 4, y - 4
        for column in (left, right):
            for row in (up, down):
                self.triple(column, row, "crossing")
        # each triple: its outer single to the wire at the side, its inner one to the wire above or below, the middle to
        # the center
        for column, row, side, end, turn in (
            (left, up, west, north, y), (right, up, east, north, y + 2),
            (right, down, east, south, y), (left, down, west, south, y - 2),
        ):  # fmt: skip
            sign = 1 if column == right else -1
            self.corridor((column + 2 * sign, row), side)
            self.corridor((column - 2 * sign, row), end)
            self.corridor((column, row), (column, turn), (center[0], turn), center)
        self.corridor((x, y + 8), (x, y), west)
        self.corridor((x + 20, y + 8), (x + 20, y + 6), (x + 10, y + 6), north)
        self.corridor(east, (x + 20, y), (x + 20, y - 8))
        self.corridor(south, (x + 10, y - 6), (x, y - 6), (x, y - 8))


def plane_tiles(source: Triples) -> Points:
    """Places in the plane that can be cut into rectangles of weight exactly 3 if and only if there is a perfect
    matching; otherwise some rectangle of weight at least 3 weighs 4 or more (``k`` = 3).

    O(triples) columns, O(triples squared) rows, a place at nearly every grid point.
    """
    diagram = wiring(source)
    drawing = Drawing()
    levels = len(diagram.swaps)
    top = LEVEL * levels + 2
    for i in range(len(source.triples)):
        x = TRACK * (3 * i + 1)
        drawing.triple(x, top + 4, "triple")
        drawing.corridor((x - 2, top + 4), (x - 2, top + 2), (x - TRACK, top + 2), (x - TRACK, top))
        drawing.corridor((x, top + 4), (x, top))
        drawing.corridor((x + 2, top + 4), (x + 2, top + 2), (x + TRACK, top + 2), (x + TRACK, top))
    for level, t in enumerate(diagram.swaps):
        y = top - LEVEL * level
        for track in range(len(diagram.wires)):
            if track not in (t, t + 1):
                drawing.corridor((TRACK * track, y), (TRACK * track, y - LEVEL))
        drawing.crossing(TRACK * t, y - LEVEL // 2)
    for _, tracks in diagram.bottom:
        for t in tracks:
            drawing.corridor((TRACK * t, 2), (TRACK * t, 0))
        drawing.corridor((TRACK * tracks[0], 0), (TRACK * tracks[-1], 0))
        drawing.marks["element"] += [(TRACK * t, 0) for t in tracks]
    free = np.array(list(drawing.cells))
    (x0, y0), (x1, y1) = free.min(axis=0) - 1, free.max(axis=0) + 1
    grid = np.full((x1 - x0 + 1, y1 - y0 + 1), 3, np.int64)
    for (x, y), filled in drawing.cells.items():
        grid[x - x0, y - y0] = 1 + (x + y) % 2 if filled else 0
    points = np.argwhere(grid > 0)
    return Points(
        points=points + np.array([x0, y0]),
        weights=grid[grid > 0],
        k=3,
        target=3,
        answer=len(source.largest_matching()) == source.n,
        source=source,
        marks=drawing.marks,
    )


def rtile(source: Triples) -> Grid:
    """3DM to RTILE: tile a square array with at most ``most`` rectangles so that the heaviest weighs little.

    The note after Theorem 4 of Du, Eppstein, Goodrich, Lueker 2009: nothing below 4/3 is polynomial unless P = NP.  The
    array is that of ``plane_tiles``, filled up to a square with threes, and ``most`` a third of its weight: if no
    rectangle weighs more than 3 all weigh exactly 3.  The cells of weight 0 are no obstacle to a tiling: inside a
    triple's rectangle or not, each has a three of its own above or below, which can take it in.
    """
    points = plane_tiles(source)
    at = points.points - points.points.min(axis=0)
    size = int(at.max()) + 1
    grid = np.full((size, size), 3, np.int64)
    wide, high = at.max(axis=0) + 1
    grid[:wide, :high] = 0
    grid[at[:, 0], at[:, 1]] = points.weights
    return Grid(
        grid=grid, most=int(grid.sum()) // 3, target=3, optimum=3 if points.answer else None, otherwise=4,
        answer=points.answer, source=source,
    )  # fmt: skip
