"""1-in-3 SAT to the partition of a graph's edges into 4-stars.

Blocki and Williams 2010, Theorem 1.5.  A 4-star is three edges at one center.  A variable is two trees, a top and a
bottom one, in which every inner vertex has three edges; three edges join a parent of leaves in one tree to one in the
other.  Whether a vertex is a center alternates from level to level, and the joining edges make the trees opposite: in
one tree all parents of leaves are centers and take the leaf edges, in the other none are.  Leaf edges of the top tree
end at clauses with the variable, those of the bottom tree at clauses with its negation.  A clause is three vertices,
each with a private edge to a leaf of its own and an edge from each literal: it must be a center, with the private edge
and two others, so one literal's tree takes its edge and two do not.

Clauses come in threes so that the spare leaf edges of a tree do too; they are bundled by threes at new vertices.

The paper adds that the graph is bipartite.  It need not be: leaf edges of the two trees leave from opposite sides, so a
clause with x and not y asks that their gadgets be colored oppositely, and clauses may ask for an odd circle of that
(the paper's own first example does).  The proof needs only that there is no triangle.
"""

from __future__ import annotations

import numpy as np

from shoal.hardness.instances import Graph
from shoal.hardness.sources import Formula


class _Builder:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.positions: list[tuple[float, float]] = []
        self.edges: list[tuple[int, int]] = []

    def vertex(self, name: str, x: float, y: float) -> int:
        self.names.append(name)
        self.positions.append((x, y))
        return len(self.names) - 1

    def join(self, u: int, v: int) -> None:
        self.edges.append((u, v))


def four_stars(formula: Formula) -> Graph:
    """A graph without triangles whose edges are disjoint 4-stars exactly if some assignment makes one literal of each
    clause true.

    target and cost do not apply: ``answer`` is the whole question.  O(clauses) vertices.
    """
    build = _Builder()
    slots: dict[int, list[int]] = {}  # literal -> parents of its free leaf edges, a parent once per edge
    offset = 0.0
    for v in formula.variables:
        most = max(sum(s * v in c for c in formula.clauses) for s in (1, -1))
        depth = 2
        while 3 * 2 ** (depth - 1) < 3 * (most + 1):
            depth += 1
        width = 3.0 * 2 ** (depth - 1)
        ends = {s: _tree(build, v, s, depth, offset, width) for s in (1, -1)}
        for top, bottom in zip(ends[1][0 :: _spread(depth)][:3], ends[-1][0 :: _spread(depth)][:3], strict=True):
            build.join(top, bottom)
            ends[1].remove(top)
            ends[-1].remove(bottom)
        slots[v], slots[-v] = ends[1], ends[-1]
        offset += width + 2.0
    for number, clause in enumerate(formula.clauses):
        for copy in range(3):
            high = sum(x > 0 for x in clause) >= 2
            x = offset * (number + 0.25 + 0.25 * copy) / len(formula.clauses)
            y = (9.0 if high else -9.0) + 0.6 * copy
            center = build.vertex(f"clause {number + 1}.{copy + 1}", x, y)
            leaf = build.vertex("", x, y + (1.2 if high else -1.2))
            build.join(center, leaf)
            for literal in clause:
                build.join(_take(slots[literal]), center)
    for literal, spare in slots.items():
        bundles = len(spare) // 3
        spare.sort()
        for b in range(bundles):  # a parent's two edges are neighbors in the list, so they go to different bundles
            own = spare[b::bundles]
            x = float(np.mean([build.positions[p][0] for p in own]))
            vertex = build.vertex("", x, 1.2 if literal > 0 else -1.2)
            for parent in own:
                build.join(parent, vertex)
    return Graph(
        edges=np.array(build.edges, np.int64),
        names=tuple(build.names),
        positions=np.array(build.positions),
        k=3,
        target=len(build.edges) // 3,
        unit="stars of three edges",
        answer=formula.one_in_three() is not None,
        source=formula,
    )


def _spread(depth: int) -> int:
    """How far apart in the list of leaf slots, two for each parent, the three parents to join are."""
    return 2 ** (depth - 1)


def _tree(build: _Builder, variable: int, sign: int, depth: int, left: float, width: float) -> list[int]:
    """A tree of three-edged inner vertices; returns the parents of its leaves, each twice."""
    name = f"{'' if sign > 0 else 'not '}x{variable}"
    level = [build.vertex(name, left + width / 2, sign * 6.5)]
    for d in range(1, depth):
        below = []
        step = 4.0 / max(depth - 1, 1)
        count = 3 * 2 ** (d - 1)
        for i, parent in enumerate(p for p in level for _ in range(3 if d == 1 else 2)):
            x = left + width * (i + 0.5) / count
            below.append(build.vertex("", x, sign * (6.5 - step * d)))
            build.join(parent, below[-1])
        level = below
    return [p for p in level for _ in range(2)]


def _take(slots: list[int]) -> int:
    """A parent with the most free leaf edges left; whole pairs go first, so that spares end at different parents."""
    parent = max(slots, key=lambda p: (slots.count(p), -p))
    slots.remove(parent)
    return parent
