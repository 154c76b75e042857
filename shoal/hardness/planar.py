"""3DM to the partition of a planar graph, all vertices of weight 1, into connected regions of three.

Du, Eppstein, Goodrich, Lueker 2009, section 2.  Kept from the paper: triples as triangles, connectors, a cross-over
with choice vertices, caps that make the graph 3-regular.  The paper draws its gadgets; those here are stated in words:

* Choice vertex: must be taken by exactly one of its connectors.  Elements are choice vertices.
* Connector between u and v: a vertex joined to u, to v and to a leaf.  The leaf can only be with the connector, so
  their region takes u or v as its third vertex: one of the two, never both.
* Triple: a triangle, each corner with a connector.  Corners that no connector takes can only form a region together:
  all three connectors take their corners (the triple is not chosen), or none does (it is, and takes its elements).
* Crossing: four triangles, one for each pair of states of the two wires, around a choice vertex that takes exactly
  one of them.  Between neighboring triangles, which agree on one wire's state, stands a choice vertex where one end of
  that wire arrives.  The chosen triangle takes two of these four, and the wires outside take the other two:
  opposite ends get opposite answers, whatever the other wire does.
"""

from __future__ import annotations

import numpy as np

from shoal.hardness.instances import Graph
from shoal.hardness.sources import Triples
from shoal.hardness.wiring import wiring

WIDE, HIGH = 10.0, 12.0  # of a track, of a crossing


class Plan:
    """A graph under construction, drawn as it grows."""

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
        """A triangle; its corners in the order given."""
        own = [self.vertex(x, y, name) for x, y in corners]
        self.edges += [(own[0], own[1]), (own[1], own[2]), (own[0], own[2])]
        return own

    def crossing(self, x: float, y: float) -> tuple[int, int, int, int]:
        """A cross-over around (x, y); the choice vertices at its west, north, east and south.

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
        """Caps on all vertices of degree one and two, so that every vertex has degree three.

        A cap is joined to its vertex alone and has a multiple of three vertices, so no region holds part of it only.
        """
        degree = np.bincount(np.array(self.edges).ravel(), minlength=len(self.names))
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
    """A planar graph that has a partition into connected regions of exactly three vertices if and only if there is a
    perfect matching; otherwise some region of weight at least 3 weighs 4 or more.

    regular  add the caps that make it 3-regular; without them it is a fifth of the size, of degree at most four

    41 vertices for each crossing before the caps; O(triples squared) crossings.
    """
    diagram = wiring(source)
    plan = Plan()
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
        for t in tracks:  # an element of several wires is a row of choice vertices, of which one is taken from above
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


def _around(plan: Plan) -> list[list[int]]:
    """Neighbors of every vertex."""
    found: list[list[int]] = [[] for _ in plan.names]
    for u, v in plan.edges:
        found[u].append(v)
        found[v].append(u)
    return found


def _split(plan: Plan, v: int, around: list[int]) -> None:
    """A choice vertex of degree four, as two of degree three with a connector between: one of the two takes inside."""
    x, y = plan.positions[v]
    angle = {u: np.arctan2(plan.positions[u][1] - y, plan.positions[u][0] - x) for u in around}
    moved = set(sorted(around, key=lambda u: angle[u])[:2])  # neighbors in the drawing, so it stays planar
    other = plan.vertex(x + 0.3, y - 0.3, plan.names[v])
    plan.edges = [(other if u == v and w in moved else u, other if w == v and u in moved else w) for u, w in plan.edges]
    plan.connect(v, other)
