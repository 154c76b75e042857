"""Reductions to tables and bins, against the least number of stars over all partitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import hardness
from shoal.errors import InputError
from shoal.hardness import Formula, ThreePartition, Tripartite, Triples
from shoal.hardness.reductions import triples_of_edges
from tests.oracles import hardness as oracle
from tests.oracles.labels import least_largest

seeds = st.integers(0, 10_000)
modest = settings(deadline=None, max_examples=25)


@st.composite
def triples(draw, most=3, dimension=3, limit=None):
    """All elements occur, each in at most ``limit`` tuples."""
    n = draw(st.integers(1, most))
    everything = list(np.ndindex(*([n] * dimension)))
    chosen = draw(st.lists(st.sampled_from(everything), unique=True, min_size=1, max_size=3 * n))
    kept = []
    for t in chosen:
        if limit is None or all(sum(u[i] == v for u in kept) < limit for i, v in enumerate(t)):
            kept.append(t)
    for part in range(dimension):  # complete: every element in some tuple
        for e in range(n):
            if not any(t[part] == e for t in kept):
                free = [t for t in everything if t[part] == e and t not in kept]
                if limit is not None:
                    free = [t for t in free if all(sum(u[i] == v for u in kept) < limit for i, v in enumerate(t))]
                if free:
                    kept.append(free[0])
    return Triples(n, tuple(kept))


@modest
@given(triples(limit=3))
def test_27_columns(source):
    table = hardness.anonymity_27(source)
    assert table.rows.shape == (3 * source.n, 27)
    least = oracle.least_stars(table.rows, lambda group: len(group) >= 3)
    assert least == table.optimum
    assert (least == table.target) == table.answer


def test_27_columns_save_three_stars_a_triple():
    # two triples that share an element: only one of them can be a group
    table = hardness.anonymity_27(Triples(2, ((0, 0, 0), (0, 1, 1), (1, 1, 1))))
    assert table.answer
    assert table.optimum == 81 * 2 - 3 * 2
    table = hardness.anonymity_27(Triples(2, ((0, 0, 0), (0, 1, 1), (1, 0, 1))))
    assert not table.answer
    assert table.optimum == 81 * 2 - 3


@st.composite
def graphs(draw):
    """Simple graphs of at most eleven edges, often made of triangles and stars."""
    n = draw(st.integers(3, 7))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    edges: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, 3))):
        a, b, c, d = (draw(st.integers(0, n - 1)) for _ in range(4))
        piece = [(a, b), (b, c), (a, c)] if draw(st.booleans()) else [(d, a), (d, b), (d, c)]
        piece = [(max(e), min(e)) for e in piece]
        if len(set(piece)) == 3 and all(u != v for u, v in piece) and not set(piece) & set(edges):
            edges += piece
    more = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3))
    edges += [e for e in more if e not in edges][: 11 - len(edges)]
    return edges or [pairs[0]]


@modest
@given(graphs())
def test_binary_anonymity(edges):
    table = hardness.binary_anonymity(edges)
    assert set(np.unique(table.rows)) <= {0, 1}
    least = oracle.least_stars(table.rows, lambda group: len(group) >= 3)
    assert (least == table.target) == table.answer
    assert least is None or least >= table.target
    assert table.answer == oracle.can_be_covered(len(edges), triples_of_edges(edges))


def test_the_complete_graph_on_four_vertices():
    # a triangle and the star of the fourth vertex
    table = hardness.binary_anonymity([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    assert table.answer
    assert oracle.least_stars(table.rows, lambda group: len(group) >= 3) == 18


@st.composite
def tripartite(draw):
    """At most eleven edges; planted triangles, then perhaps an edge more, less or moved."""
    size = draw(st.integers(1, 3))
    source = Tripartite.random(size, draw(st.integers(1, min(3, size * size))), draw(seeds)) if size else None
    edges = list(source.edges)
    part = source.part
    other = [(u, v) for v in range(len(part)) for u in range(v) if part[u] != part[v] and (u, v) not in edges]
    if other and draw(st.booleans()):
        edges.append(draw(st.sampled_from(other)))
    if len(edges) > 1 and draw(st.booleans()):
        edges.remove(draw(st.sampled_from(edges)))
    return Tripartite(part, tuple(edges[:11]))


@modest
@given(tripartite())
def test_two_diversity_with_three_sensitive_columns(source):
    table = hardness.diversity_three_columns(source)
    least = oracle.least_stars(table.rows, oracle.distinct_diverse(table.sensitive, 2))
    assert (least == table.target) == table.answer
    assert least is None or least >= table.target


@modest
@given(tripartite())
def test_three_diversity_with_one_sensitive_column(source):
    table = hardness.diversity_one_column(source)
    for allowed in (oracle.distinct_diverse(table.sensitive, 3), oracle.frequency_diverse(table.sensitive, 3)):
        least = oracle.least_stars(table.rows, allowed)
        assert (least == table.target) == table.answer
        assert least is None or least >= table.target


def test_no_two_rows_are_diverse_nor_a_star():
    table = hardness.diversity_three_columns(Tripartite((0, 1, 2, 2), ((0, 1), (0, 2), (1, 2), (0, 3))))
    allowed = oracle.distinct_diverse(table.sensitive, 2)
    assert not any(allowed((i, j)) for i in range(4) for j in range(i))
    assert not allowed((0, 1, 3))  # edges at vertex 0
    assert allowed((0, 1, 2))


@modest
@given(triples(), st.data())
def test_l_diversity_for_every_number_of_sensitive_values(source, data):
    m = data.draw(st.integers(3, 3 * source.n))
    table = hardness.diversity_by_matching(source, m)
    assert len(np.unique(table.sensitive)) == m
    assert ((table.rows == 0).sum(axis=0) == 3).all()  # the paper's Property 1
    least = oracle.least_stars(table.rows, oracle.frequency_diverse(table.sensitive, 3))
    assert (least == table.target) == table.answer
    assert least >= table.target


@settings(deadline=None, max_examples=10)
@given(triples(most=2, dimension=4), st.data())
def test_four_diversity(source, data):
    m = data.draw(st.integers(4, 4 * source.n))
    table = hardness.diversity_by_matching(source, m)
    least = oracle.least_stars(table.rows, oracle.frequency_diverse(table.sensitive, 4))
    assert (least == table.target) == table.answer


def test_the_sensitive_values_of_the_papers_example():
    # n = 4, m = 8: rows 1..6 have values of their own, 7 and 8 share value 7, the third set shares value 8
    source = Triples(4, ((0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)))
    table = hardness.diversity_by_matching(source, 8)
    assert table.sensitive[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 8, 8]
    assert table.rows[2].tolist() == [3, 3, 0, 3]


def partition(m: int, bound: int, seed: int, spoil: bool) -> ThreePartition:
    """Numbers in threes; of one that is spoiled, a unit is moved between two numbers, within the limits."""
    weights = list(ThreePartition.random(m, bound, seed).weights)
    for i, j in [(0, 1), (1, 2), (0, 2)] if spoil else []:
        a, b = weights[i] + 1, weights[j] - 1
        if bound < 4 * b and 2 * a < bound:
            weights[i], weights[j] = a, b
            break
    return ThreePartition(tuple(weights))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 3), st.integers(12, 60), seeds, st.booleans())
def test_bin_covering(m, bound, seed, spoil):
    source = partition(m, bound, seed, spoil)
    found = hardness.bin_covering(source)
    least = least_largest(found.sizes.tolist(), found.k)
    assert (least == found.target) == found.answer
    assert least >= found.target


def test_both_answers_occur_for_bins():
    assert hardness.bin_covering(ThreePartition((26, 33, 41, 30, 34, 36))).answer
    # every three sum to 93, 94, 106, 107 or 120
    assert not hardness.bin_covering(ThreePartition((26, 27, 27, 40, 40, 40))).answer


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Formula(((1, 2, 2),)), "three literals"),
        (lambda: Formula(((1, 2, -2),)), "three literals"),
        (lambda: Formula(((1, 2),)), "three literals"),
        (lambda: Triples(2, ((0, 0, 2),)), "hold elements"),
        (lambda: Triples(2, ((0, 0, 1), (0, 0, 1))), "must differ"),
        (lambda: Triples(2, ((0, 0),)), "one length"),
        (lambda: Triples.random(3, 2, 0), "do not cover"),
        (lambda: Tripartite((0, 0, 1), ((0, 1),)), "different parts"),
        (lambda: ThreePartition((1, 2)), "no instance"),
        (lambda: ThreePartition((10, 10, 40)), "strictly between"),
        (lambda: ThreePartition.random(2, 5, 0), "at least 8"),
        (
            lambda: hardness.anonymity_27(Triples(2, tuple((0, i, j) for i in (0, 1) for j in (0, 1)))),
            "more than three",
        ),
        (lambda: hardness.anonymity_27(Triples.random(2, 3, 0, dimension=4)), "from triples"),
        (lambda: hardness.binary_anonymity([(0, 1), (1, 0)]), "simple"),
        (lambda: hardness.diversity_by_matching(Triples(1, ((0, 0, 0),)), 4), "must lie within"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InputError, match=says):
        call()


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 4), seeds)
def test_planted_sources_have_their_solution(n, seed):
    source = Triples.random(n, n + 1 if n > 1 else 1, seed)
    chosen = [source.triples[i] for i in source.largest_matching()]
    assert len(chosen) == n
    assert all(len({t[i] for t in chosen}) == n for i in range(3))
    assert ThreePartition.random(n, 40, seed).solution() is not None
    assert Tripartite.random(3, n, seed).triangles() is not None
