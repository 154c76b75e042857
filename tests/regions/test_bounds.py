"""Bounds against exhaustive counts: connected sets, separators, the linear program and its cuts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.kernels.regions.areas import Areas
from shoal.kernels.regions.connected import Listing, SetPrices, connected_sets, separator
from shoal.problems.regions.packing import pack
from shoal.problems.regions.task import graph
from tests.data import squares
from tests.oracles import regions as oracle

QUICK = settings(deadline=None, max_examples=30)
NONE = np.zeros(0, np.int64)


@st.composite
def weighted(draw, most=8):
    n = draw(st.integers(1, most))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * n, unique=True)) if pairs else []
    weights = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    return n, edges, weights, draw(st.integers(1, 12))


def sets_of(n, edges, weights, k):
    """Connected sets of weight at least k, smallest first."""
    return [
        set(s)
        for size in range(1, n + 1)
        for s in combinations(range(n), size)
        if sum(weights[v] for v in s) >= k and oracle.connected(s, edges)
    ]


def listed(n, edges, weights, k, every, price=None, limit=1, cap=2**62, cut_price=NONE, at=None, of=NONE):
    g = graph(np.array(edges).reshape(-1, 2), n)
    price = np.zeros(n, np.int64) if price is None else np.array(price)
    at = np.zeros(n + 1, np.int64) if at is None else at
    areas = Areas(g.indptr, g.indices, np.array(weights)[:, None], np.array([k]), 1)
    listing = Listing(limit, cap, every, 10**6, 10**6)
    members, ends, costs, looked = connected_sets(areas, SetPrices(price, cut_price, at, of), listing)
    assert looked >= 0
    return [set(s.tolist()) for s in np.split(members, ends)[:-1]], costs.tolist()


@given(weighted(), st.integers(1, 30))
@QUICK
def test_every_connected_set_is_listed_once(instance, cap):
    n, edges, weights, k = instance
    found, _ = listed(n, edges, weights, k, 2, cap=cap)
    expected = [s for s in sets_of(n, edges, weights, k) if sum(weights[v] for v in s) <= cap]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@given(weighted())
@QUICK
def test_minimal_sets_lose_no_vertex_and_stay_connected(instance):
    n, edges, weights, k = instance
    found, _ = listed(n, edges, weights, k, 1)
    every = sets_of(n, edges, weights, k)
    expected = [s for s in every if not any(s - {v} in every for v in s)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@given(weighted(), st.data())
@QUICK
def test_the_cheapest_set_is_found_cuts_included(instance, data):
    n, edges, weights, k = instance
    price = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    triples = data.draw(st.lists(st.sampled_from(list(combinations(range(n), 3))), max_size=3)) if n > 2 else []
    cut_price = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(triples), max_size=len(triples))), np.int64)
    flat = np.array(triples, np.int64).reshape(-1)
    at = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(flat, minlength=n), out=at[1:])
    of = np.argsort(flat, kind="stable") // 3
    _, costs = listed(n, edges, weights, k, 0, price, 10**6, cut_price=cut_price, at=at, of=of)

    def cost(s):
        cuts = sum(int(t) for t, triple in zip(cut_price, triples, strict=True) if len(s & set(triple)) >= 2)
        return sum(price[v] for v in s) + cuts

    expected = [cost(s) for s in sets_of(n, edges, weights, k)]
    assert min(costs, default=None) == min(expected, default=None)


def most_disjoint(sets):
    if not sets:
        return 0
    first = min(min(s) for s in sets)
    rest = [s for s in sets if first not in s]
    with_first = [1 + most_disjoint([t for t in rest if not t & s]) for s in sets if first in s]
    return max([most_disjoint(rest), *with_first])


@pytest.mark.parametrize(("cuts", "integer"), [(0, False), (40, False), (40, True)])
@given(weighted(most=8))
@QUICK
def test_packing_bounds_hold_and_the_integer_program_closes_them(cuts, integer, instance):
    n, edges, weights, k = instance
    g = graph(np.array(edges).reshape(-1, 2), n)
    minimal, _ = listed(n, edges, weights, k, 1)
    most = most_disjoint(minimal)
    found = pack(g, np.array(weights)[:, None], np.array([k]), bound=n, cuts=cuts, integer=integer)
    assert len(found.sets) <= most <= found.bound
    for s in found.sets:
        assert sum(weights[v] for v in s) >= k
        assert oracle.connected(s.tolist(), edges)
    assert len(set().union(*map(set, found.sets))) == sum(map(len, found.sets))
    if integer:
        assert found.proved
        assert found.bound == most


def test_rows_of_three_close_a_gap_of_the_linear_program():
    # a cycle of five light areas, any two neighbors make a region: the program packs 5/2, the truth is 2
    cycle = [(i, (i + 1) % 5) for i in range(5)]
    weights = np.full((5, 1), 3)
    g = graph(np.array(cycle), 5)
    assert pack(g, weights, np.array([6]), bound=9, cuts=0).bound == 2
    loose = pack(g, weights, np.array([6]), bound=9, cuts=40)
    assert loose.bound == 2
    assert loose.proved


@given(weighted(most=9), st.integers(0, 200))
@QUICK
def test_a_separator_bounds_every_packing(instance, steps):
    n, edges, weights, k = instance
    g = graph(np.array(edges).reshape(-1, 2), n)
    out = np.zeros(n, np.bool_)
    state = np.array([12345], np.uint64)
    column = np.array(weights)[:, None]
    value = separator(Areas(g.indptr, g.indices, column, np.array([k]), 1), out, (steps, 10**6, 0.15), state)
    rest, _ = listed(n, edges, weights, k, 1)
    assert most_disjoint(rest) <= value
    left = [v for v in range(n) if not out[v]]
    reach = {frozenset(u for u in left if _together(edges, out, u, v)) for v in left}
    assert value == out.sum() + sum(sum(weights[v] for v in piece) // k for piece in reach)


def _together(edges, out, u, v):
    seen, queue = {u}, [u]
    for x in queue:
        for a, b in edges:
            for p, q in ((a, b), (b, a)):
                if p == x and not out[q] and q not in seen:
                    seen.add(q)
                    queue.append(q)
    return v in seen


def test_the_program_proves_what_counting_cannot():
    # a path of nine areas of weight 3 with k = 5 has room for 27 // 5 = 5 regions by counting, 4 in truth
    path = [(i, i + 1) for i in range(8)]
    result = shoal.regions.merge(path, [3] * 9, 5, objective="count", seed=1)
    assert result.certificate.details["upper_bounds"]["total"] == 5
    assert result.regions == result.upper_bound == 4
    assert result.certificate.optimal


def test_rounding_the_program_finds_packings_and_proves_nothing_more():
    edges, weights = squares(6), np.random.default_rng(2).integers(1, 9, 36)
    g = graph(edges, 36)
    plain = pack(g, weights[:, None], np.array([12]), bound=99, cuts=0)
    rounded = pack(g, weights[:, None], np.array([12]), bound=99, cuts=0, rounding=True)
    assert rounded.bound == plain.bound
    assert len(plain.sets) < len(rounded.sets) <= rounded.bound
    assert len(np.unique(np.concatenate(rounded.sets))) == sum(map(len, rounded.sets))
    for s in rounded.sets:
        assert weights[s].sum() >= 12
        assert oracle.connected(s.tolist(), edges)
