"""Simplex matching against every perfect matching there is, and against proved 2-anonymity."""

import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError, InputError, MissingDependencyError
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity
from shoal.model.recoding import Recoding
from shoal.problems.tables import group
from shoal.problems.tables.exact.two_anonymity import checked, descend, scaled, simplex_matching
from shoal.problems.tables.losses import Costs
from tests.oracles.exact import perfect_matchings, recodings, rows_of


@st.composite
def hypergraphs(draw):
    """Instances that meet both conditions, edges missing at random."""
    n = draw(st.integers(1, 7))
    top = draw(st.sampled_from([3, 10, 1000]))
    edges = {}
    for pair in combinations(range(n), 2):
        if draw(st.integers(0, 9)) < 8:
            edges[pair] = draw(st.integers(0, top))
    for triple in combinations(range(n), 3):
        pairs = list(combinations(triple, 2))
        if all(p in edges for p in pairs) and draw(st.booleans()):
            edges[triple] = (sum(edges[p] for p in pairs) + 1) // 2 + draw(st.sampled_from([0, 0, 1, top]))
    return n, edges


@settings(deadline=None, max_examples=200)
@given(hypergraphs())
def test_against_every_perfect_matching(instance):
    n, edges = instance
    best = perfect_matchings(n, edges)
    if best == float("inf"):
        with pytest.raises(InfeasibleError):
            simplex_matching(n, edges)
        return
    found = simplex_matching(n, edges)
    assert found.cost == best
    assert sum(edges[e] for e in found.edges) == best
    assert sorted(v for e in found.edges for v in e) == list(range(n))


@settings(deadline=None, max_examples=40)
@given(data=st.data(), rows=rows_of(3, 8, values=3))
def test_a_table_is_a_simplex_matching(data, rows):
    # Blocki and Williams, Theorems 1.1 and 3.1: rows are vertices, all pairs and triples are edges.
    histogram = Histogram.from_rows(np.array(rows))
    recoding = data.draw(st.one_of(st.just(Recoding.stars(histogram)), recodings(histogram.quasi_sizes)))
    costs = Costs.of(histogram, recoding)
    vertex = np.repeat(np.arange(costs.types), costs.count)
    edges = {}
    for size in (2, 3):
        for some in combinations(range(len(rows)), size):
            edges[some] = size * costs.loss(vertex[list(some)])
    found = simplex_matching(len(rows), edges)
    certificate = group(histogram, KAnonymity(2), "two_anonymity", recoding=recoding, seed=0).certificate
    scale = costs.scale if recoding.unit == "stars" else costs.scale * len(rows) * 3
    assert found.cost / scale == pytest.approx(certificate.cost, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(hypergraphs(), st.integers(0, 6))
def test_scaling_keeps_both_conditions(instance, bit):
    n, edges = instance
    checked(n, scaled(edges, bit))


def test_two_triples_leave_when_pairs_are_cheaper():
    edges = dict.fromkeys(combinations(range(6), 2), 0) | {(0, 1, 2): 9, (3, 4, 5): 9}
    triples = [(0, 1, 2), (3, 4, 5)]
    assert descend(6, edges, 1000, triples, frozenset(triples)) == (frozenset(), 1)


def test_conditions_are_checked():
    with pytest.raises(InputError, match=r"condition 1 .*\(0, 1, 2\).*\(0, 2\)"):
        simplex_matching(3, {(0, 1): 1, (1, 2): 1, (0, 1, 2): 5})
    with pytest.raises(InputError, match="condition 2"):
        simplex_matching(3, {(0, 1): 1, (1, 2): 1, (0, 2): 1, (0, 1, 2): 1})


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({(0, 0): 1}, "different vertices"),
        ({(0, 1, 2, 3): 1}, "two or three"),
        ({(0, 9): 1}, "outside 0..3"),
        ({(0, 1): -1}, "at least 0"),
        ({(0, 1): 0.5}, "whole numbers"),
        ({(0, 1): 1, (1, 0): 2}, "twice"),
    ],
)
def test_what_is_no_hypergraph_is_refused(edges, message):
    with pytest.raises(InputError, match=message):
        simplex_matching(4, edges)


def test_without_networkx_it_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'shoal\[graph\]'"):
        simplex_matching(2, {(0, 1): 1})


def test_no_perfect_matching():
    with pytest.raises(InfeasibleError, match="odd"):
        simplex_matching(3, {(0, 1): 1})
    with pytest.raises(InfeasibleError, match="exactly once"):
        simplex_matching(4, {(0, 1): 1, (0, 2): 1, (0, 3): 1})
    assert simplex_matching(0, {}).cost == 0


def test_costs_over_many_scales():
    rng = np.random.default_rng(2)
    for _ in range(5):
        point = rng.integers(0, 10**6, 7)
        edges = {p: int(abs(point[p[0]] - point[p[1]])) for p in combinations(range(7), 2)}
        edges |= {t: int(np.ptp(point[list(t)])) for t in combinations(range(7), 3)}
        assert simplex_matching(7, edges).cost == perfect_matchings(7, edges)
