"""Reductions to cellular clustering, to bins in binary and unary, and to RTILE, against searches."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import gathering, hardness, labels
from shoal.errors import InputError
from shoal.hardness import DominatingSet, ThreePartition, Triples, TwoPartition
from tests.hardness.test_reductions import partition
from tests.oracles import hardness as oracle
from tests.oracles.gathering import cellular_optimum
from tests.oracles.labels import least_largest


@st.composite
def graphs(draw):
    """Graphs of up to five vertices and a size to ask for."""
    n = draw(st.integers(1, 5))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return DominatingSet(n, tuple(edges), draw(st.integers(1, n)))


@settings(deadline=None, max_examples=25)
@given(graphs())
def test_cellular_costs_two_for_every_dominator_and_one_for_every_point(source):
    found = hardness.cellular(source)
    n = 2 * source.n
    graph = nx.Graph(found.edges.tolist())
    near = [set(graph[v]) | {v} for v in range(n)]
    assert all(near[2 * v] == near[2 * v + 1] for v in range(source.n))
    plain = nx.empty_graph(source.n)
    plain.add_edges_from(source.edges)
    subsets = (c for size in range(1, source.n + 1) for c in combinations(range(source.n), size))
    fewest = min(len(c) for c in subsets if nx.is_dominating_set(plain, c))
    assert found.optimum == 2 * fewest + n
    assert found.answer == (fewest <= source.size)
    best = cellular_optimum(found.distances.astype(float), setup=np.full(n, float(found.setup)))
    assert best == found.optimum
    assert (best <= found.target) == found.answer


def test_the_solver_meets_a_planted_dominating_set():
    found = hardness.cellular(DominatingSet.random(9, 3, 1, extra=2))
    assert found.answer
    g = gathering.cellular(found.distances, setup_costs=found.setup, metric="precomputed", method="exact")
    assert g.cost == pytest.approx(found.optimum)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=7).filter(lambda w: sum(w) % 2 == 0))
def test_bins_in_binary_are_half_or_whole(weights):
    found = hardness.bins_in_binary(TwoPartition(tuple(weights)))
    assert least_largest(weights, found.k) == found.optimum
    assert (found.optimum == found.target) == found.answer
    assert found.otherwise == 2 * found.k


@settings(deadline=None, max_examples=25)
@given(
    m=st.integers(2, 3),
    bound=st.integers(12, 60),
    seed=st.integers(0, 10**6),
    lift=st.integers(1, 30),
    spoil=st.booleans(),
)
def test_bins_in_unary_leave_a_gap_of_nearly_a_third(m, bound, seed, lift, spoil):
    source = partition(m, bound, seed, spoil)
    found = hardness.bins_in_unary(source, lift)
    least = least_largest(found.sizes.tolist(), found.k)
    assert (least == found.target == found.k) == found.answer
    if not found.answer:
        assert least >= found.otherwise > 4 * lift / (3 * lift + 1) * found.k


def test_both_answers_occur_for_bins_in_unary_and_the_least_four_can_be_met():
    no = hardness.bins_in_unary(ThreePartition((26, 27, 27, 40, 40, 40)))
    assert not no.answer
    assert labels.cover(no.sizes, no.k).cost >= no.otherwise >= 1.31 * no.k


@pytest.mark.parametrize(
    "triples", [((0, 0, 0),), ((0, 0, 0), (1, 1, 1), (0, 1, 1)), ((0, 0, 0), (0, 1, 1), (1, 0, 1))]
)
def test_rtile_is_the_plane_made_square_and_its_zeros_can_be_taken_in(triples):
    source = Triples(max(t[0] for t in triples) + 1, triples)
    plane, found = hardness.plane_tiles(source), hardness.rtile(source)
    assert found.grid.shape[0] == found.grid.shape[1]
    assert found.most * 3 == found.grid.sum()
    assert found.answer == plane.answer
    weights = sorted(plane.weights.tolist())
    assert sorted(found.grid[(found.grid > 0) & (found.grid < 3)].tolist()) == [w for w in weights if w < 3]
    # every cell of weight 0 has a neighbor of weight 3 for itself, so a partition into triples covers the array
    graph = nx.Graph()
    zeros = [tuple(z) for z in np.argwhere(found.grid == 0).tolist()]
    for x, y in zeros:
        for a, b in ((x, y + 1), (x, y - 1)):
            if found.grid[a, b] == 3:
                graph.add_edge(("zero", x, y), (a, b))
    matched = nx.bipartite.maximum_matching(graph, [("zero", *z) for z in zeros])
    assert all(("zero", *z) in matched for z in zeros)


def test_a_small_rtile_by_an_integer_program_over_rectangles():
    for triples in (((0, 0, 0),), ((0, 0, 0), (0, 1, 1), (1, 0, 1))):
        found = hardness.rtile(Triples(max(t[0] for t in triples) + 1, triples))
        points = np.argwhere(found.grid > 0)
        cells, three = oracle.rectangles_of(points, found.grid[found.grid > 0], 3)
        assert cells == found.grid.size
        assert oracle.can_be_covered(cells, three) == found.answer


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TwoPartition((1, 2)), "even sum"),
        (lambda: TwoPartition((0, 2)), "positive"),
        (lambda: DominatingSet(3, ((0, 3),), 1), "different vertices"),
        (lambda: DominatingSet(3, ((0, 0),), 1), "different vertices"),
        (lambda: DominatingSet(3, (), 4), "at most all"),
        (lambda: hardness.bins_in_unary(ThreePartition((10, 10, 10)), 0), "at least 1"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InputError, match=says):
        call()


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_planted_sources_have_their_solution(n, seed):
    source = TwoPartition.random(n, 50, seed)
    half = source.solution()
    assert half is not None
    assert 2 * sum(source.weights[i] for i in half) == sum(source.weights)
    assert len(DominatingSet.random(n + 2, 2, seed, 3).smallest()) <= 2
