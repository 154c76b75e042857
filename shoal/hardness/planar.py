"""Reductions of three-dimensional matching (3DM) to planar graphs, and to points in the plane.

docs/hardness.md describes both (Du, Eppstein, Goodrich, Lueker 2009, sections 2 and 3): connectors, triples, elements
as choosers, and cross-overs. The paper draws its gadgets. Here they are in words:

* Crossing: four triangles, one for each pair of states of the two wires, around a choice vertex that takes exactly one
  of them. Two neighboring triangles agree on one wire's state. Between them is a choice vertex, at which one end of
  that wire arrives. The chosen triangle takes two of these four vertices, and the wires outside take the other two.
* Corridors of points are one cell wide and at least one cell apart. A place (i, j) on them has one point if i + j is
  even, two if it is odd. A rectangle of weight 3 can't contain an outside place and anything else. Between two singles,
  a corridor has an odd number of places, so it serves one of its two ends: it is a connector.

Both draw a matching as wires from triples to elements. Triples are in a row above, each with three wires, one per
element; elements are in a row below. The wires run straight down in tracks. Neighboring tracks are swapped, one pair at
a time, until the wires of every element are adjacent. Each swap is a crossing. Each reduction draws this diagram with
its own gadgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shoal.errors import InputError
from shoal.hardness.instances import Graph, Grid, Points, Triples


@dataclass(frozen=True)
class Wiring:
    """A wiring diagram.

    wires   the (triple, part) of each track at the top
    swaps   tracks t at which wires t and t + 1 cross, from the top
    bottom  for each element (part, element) its tracks at the bottom, all adjacent
    """

    wires: tuple[tuple[int, int], ...]
    swaps: tuple[int, ...]
    bottom: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]


def wiring(source: Triples) -> Wiring:
    """The diagram of an instance.

    Elements are ordered by the mean track of their wires, which keeps the crossings few.
    """
    if source.dimension != 3:
        raise InputError(f"this reduction is from triples, not tuples of {source.dimension}")
    wires = [(i, part) for i in range(len(source.triples)) for part in range(3)]
    tracks: dict[tuple[int, int], list[int]] = {}
    for track, (i, part) in enumerate(wires):
        tracks.setdefault((part, source.triples[i][part]), []).append(track)
    missing = [(part, e) for part in range(3) for e in range(source.n) if (part, e) not in tracks]
    if missing:
        raise InputError(f"element {missing[0][1]} of set {missing[0][0]} is in no triple, so there is no matching")
    order = sorted(tracks, key=lambda e: sum(tracks[e]) / len(tracks[e]))
    goal, bottom, at = {}, [], 0
    for element in order:
        for track in tracks[element]:
            goal[wires[track]] = at
            at += 1
        bottom.append((element, tuple(range(at - len(tracks[element]), at))))
    swaps = []
    now = list(wires)
    for end in range(len(now) - 1, 0, -1):
        for t in range(end):
            if goal[now[t]] > goal[now[t + 1]]:
                now[t], now[t + 1] = now[t + 1], now[t]
                swaps.append(t)
    return Wiring(tuple(wires), tuple(swaps), tuple(bottom))


WIDE, HIGH = 10.0, 12.0  # of a track, of a crossing


class GraphDrawing:
    """A graph under construction, with the positions of its vertices."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.positions: list[tuple[float, float]] = []
        self.edges: list[tuple[int, int]] = []

    def vertex(self, x: float, y: float, name: str = "") -> int:
        """A new vertex."""
        self.names.append(name)
        self.positions.append((x, y))
        return len(self.names) - 1

    def connect(self, u: int, v: int) -> None:
        """A connector between u and v."""
        (a, b), (c, d) = self.positions[u], self.positions[v]
        x, y = (a + c) / 2, (b + d) / 2
        middle = self.vertex(x, y)
        size = max(np.hypot(c - a, d - b), 1e-9)
        leaf = self.vertex(x + 0.5 * (b - d) / size, y + 0.5 * (c - a) / size, "leaf")
        self.edges += [(u, middle), (middle, v), (middle, leaf)]

    def triple(self, corners: list[tuple[float, float]], name: str = "") -> list[int]:
        """A triangle; returns its corners in the given order."""
        own = [self.vertex(x, y, name) for x, y in corners]
        self.edges += [(own[0], own[1]), (own[1], own[2]), (own[0], own[2])]
        return own

    def crossing(self, x: float, y: float) -> tuple[int, int, int, int]:
        """A cross-over around (x, y); returns the choice vertices at its west, north, east, and south.

        One wire runs from west to east, the other from north to south.
        """
        center = self.vertex(x, y, "choice")
        ends = [self.vertex(x + 3 * dx, y + 3 * dy, "end") for dx, dy in ((-1, 0), (0, 1), (1, 0), (0, -1))]
        for i, (dx, dy) in enumerate(((-1, 1), (1, 1), (1, -1), (-1, -1))):
            first, second = ends[i], ends[(i + 1) % 4]
            corners = [(x + 1.2 * dx, y + 1.2 * dy)]
            for end in (first, second):
                near_x, near_y = self.positions[end]
                corners.append((0.35 * near_x + 0.65 * (x + 2 * dx), 0.35 * near_y + 0.65 * (y + 2 * dy)))
            inner, one, two = self.triple(corners)
            self.connect(inner, center)
            self.connect(one, first)
            self.connect(two, second)
        return ends[0], ends[1], ends[2], ends[3]

    def regular(self) -> None:
        """Add caps to all vertices of degree one and two, so that every vertex has degree three.

        A cap is joined only to its vertex and has a multiple of three vertices, so no region contains only a part of
        it.
        """
        degree = np.bincount(np.array(self.edges).ravel(), minlength=len(self.names))
        # Caps are drawn near their vertex, so the graph stays planar.
        for v in np.flatnonzero(degree < 3).tolist():
            x, y = self.positions[v]
            if degree[v] == 1:  # six vertices: a square, and two more joined to two of its corners each and to v
                u, w, *square = (
                    self.vertex(x + dx, y + dy)
                    for dx, dy in ((-0.3, 0.2), (0.3, 0.2), (-0.4, 0.5), (-0.2, 0.4), (0.2, 0.4), (0.4, 0.5))
                )
                a, b, c, d = square
                self.edges += [(v, u), (v, w), (u, a), (u, b), (w, c), (w, d), (a, b), (b, c), (c, d), (a, d)]
            else:  # nine vertices: a cube with a vertex on one edge, which is joined to v
                cap = [
                    self.vertex(x + 0.4 * np.cos(t), y - 0.6 + 0.4 * np.sin(t)) for t in np.arange(4) * np.pi / 2
                ] + [self.vertex(x + 0.2 * np.cos(t), y - 0.6 + 0.2 * np.sin(t)) for t in np.arange(4) * np.pi / 2]
                on = self.vertex(x, y - 0.3)
                for ring in (cap[:4], cap[4:]):
                    self.edges += [(ring[i], ring[(i + 1) % 4]) for i in range(4)]
                self.edges += [(cap[i], cap[i + 4]) for i in range(4)]
                self.edges.remove((cap[0], cap[1]))
                self.edges += [(cap[0], on), (on, cap[1]), (v, on)]


def planar_regions(source: Triples, regular: bool = True) -> Graph:
    """3DM to a planar graph that can be partitioned into connected regions of exactly three vertices.

    The partition exists if and only if there is a perfect matching. Otherwise, some region of weight at least 3 has
    weight 4 or more.

    regular  add the caps that make it 3-regular; without them the graph has a fifth of the size, and degree at most
             four

    41 vertices for each crossing before the caps; O(triples squared) crossings.
    """
    diagram = wiring(source)
    plan = GraphDrawing()
    lines: list[int] = []
    levels = len(diagram.swaps)
    for i, triple in enumerate(source.triples):
        x, y = WIDE * 3 * i, HIGH * (levels + 0.5)
        name = f"triple {','.join(map(str, triple))}"
        lines += plan.triple([(x + 6, y), (x + 10, y - 2), (x + 14, y)], name)
    for level, t in enumerate(diagram.swaps):
        x, y = WIDE * (t + 0.5), HIGH * (levels - level - 0.75)
        west, north, east, south = plan.crossing(x, y)
        plan.connect(lines[t], west)
        plan.connect(lines[t + 1], north)
        lines[t], lines[t + 1] = south, east
    for (part, element), tracks in diagram.bottom:
        before = None
        # an element with several wires is a row of choice vertices, exactly one of which is taken from above
        for t in tracks:
            here = plan.vertex(WIDE * t, -HIGH / 2, f"{'wxy'[part]}{element}")
            plan.connect(lines[t], here)
            if before is not None:
                plan.connect(before, here)
            before = here
    if regular:
        for v, around in enumerate(_around(plan)):
            if len(around) > 3:
                _split(plan, v, around)
        plan.regular()
    return Graph(
        edges=np.array(plan.edges, np.int64),
        names=tuple(plan.names),
        positions=np.array(plan.positions),
        k=3,
        target=3,
        answer=len(source.largest_matching()) == source.n,
        source=source,
    )


def _around(plan: GraphDrawing) -> list[list[int]]:
    """The neighbors of every vertex."""
    found: list[list[int]] = [[] for _ in plan.names]
    for u, v in plan.edges:
        found[u].append(v)
        found[v].append(u)
    return found


def _split(plan: GraphDrawing, v: int, around: list[int]) -> None:
    """Split a choice vertex of degree four into two of degree three, with a connector that takes one of them."""
    x, y = plan.positions[v]
    angle = {u: np.arctan2(plan.positions[u][1] - y, plan.positions[u][0] - x) for u in around}
    moved = set(sorted(around, key=lambda u: angle[u])[:2])  # neighbors in the drawing, so the graph stays planar
    other = plan.vertex(x + 0.3, y - 0.3, plan.names[v])
    plan.edges = [(other if u == v and w in moved else u, other if w == v and u in moved else w) for u, w in plan.edges]
    plan.connect(v, other)


TRACK, LEVEL = 20, 16  # columns between tracks, rows of a crossing
Cell = tuple[int, int]


class CorridorMap:
    """Cells of corridors (True) and empty cells (False), drawn one after the other."""

    def __init__(self) -> None:
        self.cells: dict[Cell, bool] = {}
        self.marks: dict[str, list[Cell]] = {"triple": [], "crossing": [], "element": []}

    def corridor(self, *corners: Cell) -> None:
        """Draw straight pieces from corner to corner."""
        for (x0, y0), (x1, y1) in pairwise(corners):
            for x in range(min(x0, x1), max(x0, x1) + 1):
                for y in range(min(y0, y1), max(y0, y1) + 1):
                    self.cells[x, y] = True

    def triple(self, x: int, y: int, kind: str) -> None:
        """Draw three singles at x - 2, x, and x + 2; corridors join them later."""
        for dx in (-2, 0, 2):
            self.cells[x + dx, y] = True
        for dx in (-1, 1):
            self.cells[x + dx, y] = False
        self.marks[kind].append((x, y))

    def crossing(self, x: int, y: int) -> None:
        """Draw a cross-over: wires arrive at (x, y + 8) and (x + 20, y + 8) and leave on the other side, at y - 8."""
        north, south, west, east, center = (
            (x + dx, y + dy) for dx, dy in ((10, 4), (10, -4), (2, 0), (18, 0), (10, 0))
        )
        left, right, up, down = x + 4, x + 16, y + 4, y - 4
        for column in (left, right):
            for row in (up, down):
                self.triple(column, row, "crossing")
        # for each triple, the outer single is joined to the wire at the side, the inner one to the wire above or below,
        # the middle one to the center
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
    """3DM to places in the plane that can be cut into rectangles of weight exactly 3 (``k`` = 3).

    The rectangles exist if and only if there is a perfect matching. Otherwise, some rectangle of weight at least 3 has
    weight 4 or more.

    O(triples) columns, O(triples squared) rows, a place at nearly every grid point.
    """
    diagram = wiring(source)
    drawing = CorridorMap()
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
    """3DM to RTILE: tile a square array with at most ``most`` rectangles so that the maximum weight is small.

    Source: the note after Theorem 4 of Du, Eppstein, Goodrich, Lueker 2009: a factor below 4/3 isn't polynomial unless
    P = NP. The array is that of ``plane_tiles``, extended to a square with threes, and ``most`` is a third of its
    weight: if no rectangle has weight above 3, all have weight 3. Cells of weight 0 don't prevent a tiling: each has a
    three above or below it, whose rectangle can be extended to it.
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
