"""Reductions to graphs, to the plane and to metrics, against integer programs over all groups."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import hardness
from shoal.errors import InputError
from shoal.hardness import Formula, Triples
from shoal.hardness.planar import CorridorMap, GraphDrawing
from tests.oracles import hardness as oracle

SOURCES = [
    Triples(1, ((0, 0, 0),)),
    Triples(2, ((0, 0, 0), (1, 1, 1))),
    Triples(2, ((0, 0, 0), (1, 1, 1), (0, 1, 1))),
    Triples(2, ((0, 0, 0), (0, 1, 1), (1, 0, 1))),  # no perfect matching
    Triples(2, ((0, 1, 0), (1, 0, 1), (0, 0, 1), (1, 0, 0))),
    Triples(2, ((0, 1, 0), (0, 0, 1), (0, 0, 0), (1, 1, 1))),
    Triples(2, ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0))),  # none, though every element is in two
]


@st.composite
def formulas(draw, most=4, each=4):
    """Clauses over up to four variables, so many of them at most, and so many with each literal."""
    n = draw(st.integers(3, 4))
    clauses = []
    for _ in range(draw(st.integers(1, most))):
        chosen = draw(st.permutations(range(1, n + 1)))[:3]
        clause = tuple(v * draw(st.sampled_from([1, -1])) for v in chosen)
        if all(sum(v in c for c in clauses) < each for v in clause):
            clauses.append(clause)
    return Formula(tuple(clauses))


@settings(deadline=None, max_examples=25)
@given(formulas())
def test_four_stars(formula):
    graph = hardness.four_stars(formula)
    simple = nx.Graph(graph.edges.tolist())
    assert simple.number_of_edges() == len(graph.edges)
    assert not sum(nx.triangles(simple).values())
    assert oracle.can_be_covered(len(graph.edges), oracle.four_star_sets(graph.edges)) == graph.answer


def test_the_papers_two_formulas():
    yes = hardness.four_stars(Formula(((-1, 2, 3), (1, -2, 3))))
    no = hardness.four_stars(Formula(((1, 2, 3), (-1, -2, -3))))
    assert yes.answer
    assert not no.answer
    for graph in (yes, no):
        assert oracle.can_be_covered(len(graph.edges), oracle.four_star_sets(graph.edges)) == graph.answer
    # the first has two solutions; the paper says that the graph is bipartite, which this one is not
    assert not nx.is_bipartite(nx.Graph(yes.edges.tolist()))


def test_stars_become_a_binary_table():
    graph = hardness.four_stars(Formula(((1, 2, 3), (-1, -2, -3))))
    table = hardness.binary_anonymity([tuple(e) for e in graph.edges.tolist()])
    assert not table.answer
    assert table.rows.shape == (len(graph.edges), len(graph.names))


def crossing_states(build):
    """The states (west, north, east, south) a crossing allows: True where the outside takes the place at that end."""
    return {state for state in product((False, True), repeat=4) if build(state)}


OPPOSITE = {s for s in product((False, True), repeat=4) if s[0] != s[2] and s[1] != s[3]}


def test_a_planar_crossing_passes_both_wires():
    def fits(state):
        plan = GraphDrawing()
        ends = plan.crossing(0, 0)
        gone = {v for v, taken in zip(ends, state, strict=True) if taken}
        kept = [v for v in range(len(plan.names)) if v not in gone]
        number = {v: i for i, v in enumerate(kept)}
        edges = [(number[u], number[v]) for u, v in plan.edges if u in number and v in number]
        return oracle.can_be_covered(len(kept), oracle.connected_triples(len(kept), edges))

    assert crossing_states(fits) == OPPOSITE


def test_a_crossing_in_the_plane_passes_both_wires():
    def fits(state):
        drawing = CorridorMap()
        drawing.crossing(0, 0)
        # wires arrive at (0, 8) and (20, 8); the one from the west leaves at (20, -8), the other at (0, -8)
        grid = np.full((23, 19), 3)
        for (x, y), filled in drawing.cells.items():
            grid[x + 1, y + 9] = 1 + (x + y) % 2 if filled else 0
        for (x, y), taken in zip([(0, 8), (20, 8), (20, -8), (0, -8)], state, strict=True):
            if taken:
                grid[x + 1, y + 9] = 3
        points = np.argwhere(grid > 0)
        return oracle.can_be_covered(*oracle.rectangles_of(points, grid[grid > 0], 3))

    assert crossing_states(fits) == OPPOSITE


LARGE = [pytest.param(source, marks=pytest.mark.slow) for source in SOURCES[4:]]  # the others have both answers, too


@pytest.mark.parametrize("source", [*SOURCES[:4], *LARGE])
@pytest.mark.parametrize("regular", [False, True])
def test_planar_regions(source, regular):
    graph = hardness.planar_regions(source, regular)
    simple = nx.Graph(graph.edges.tolist())
    n = len(graph.names)
    assert simple.number_of_edges() == len(graph.edges)
    assert simple.number_of_nodes() == n
    assert nx.check_planarity(simple)[0]
    if regular:
        assert {d for _, d in simple.degree} == {3}
    assert oracle.can_be_covered(n, oracle.connected_triples(n, graph.edges.tolist())) == graph.answer


@pytest.mark.parametrize("source", SOURCES[:4])
def test_plane_tiles(source):
    found = hardness.plane_tiles(source)
    assert oracle.can_be_covered(*oracle.rectangles_of(found.points, found.weights, 3)) == found.answer


def test_plane_tiles_without_a_matching_need_a_tile_of_four():
    found = hardness.plane_tiles(SOURCES[3])
    assert not found.answer
    cells, three = oracle.rectangles_of(found.points, found.weights, 3)
    assert not oracle.can_be_covered(cells, three)
    assert found.weights.sum() >= 3 * len(found.points) - 10_000


@settings(deadline=None, max_examples=12)
@given(formulas(most=8, each=3))
def test_gather(formula):
    metric = hardness.gather(formula)
    graph = nx.Graph(metric.edges.tolist())
    paths = dict(nx.all_pairs_shortest_path_length(graph))
    n = len(metric.names)
    assert all(metric.distances[u, v] == paths[u].get(v, n) for u in range(n) for v in range(n))
    assert oracle.can_gather(metric.distances, metric.r, 1) == metric.answer
    assert oracle.can_gather(metric.distances, metric.r, metric.optimum)


def test_gather_knows_a_formula_that_cannot_be_satisfied():
    # five variables, ten clauses, every literal in three of them at most; found by annealing
    formula = Formula(
        (
            (2, -4, 1), (5, 3, 4), (-5, 3, -2), (2, 4, 1), (-4, 5, -2),
            (-1, 5, 2), (-1, 3, -5), (-3, 1, -2), (-3, -5, -4), (-1, -3, 4),
        )
    )  # fmt: skip
    metric = hardness.gather(formula)
    assert not metric.answer
    assert metric.optimum == 2
    assert not oracle.can_gather(metric.distances, metric.r, 1)
    assert oracle.can_gather(metric.distances, metric.r, 2)


def test_a_literal_in_four_clauses_is_refused():
    signs = [(s, 2 * t, 3 * u) for s in (1, -1) for t in (1, -1) for u in (1, -1)]
    assert Formula(tuple(signs)).satisfying() is None
    with pytest.raises(InputError, match="more than three"):
        hardness.gather(Formula(tuple(signs)))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hardness.planar_regions(Triples(2, ((0, 0, 0), (1, 0, 1)))), "is in no triple"),
        (lambda: hardness.plane_tiles(Triples.random(2, 3, 0, dimension=4)), "from triples"),
        (lambda: hardness.gather(Formula(((1, 2, 3),)), r=6), "r > 6"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InputError, match=says):
        call()
