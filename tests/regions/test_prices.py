"""Prices of areas against every connected set of small graphs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.regions.connected import light_sets
from shoal.problems.regions import answer, bounds, merge
from shoal.problems.regions import answer as auto
from shoal.problems.regions import bounds as prices
from shoal.problems.regions.bounds import count_bound, price_areas, priced
from shoal.problems.regions.packing import UNIT
from shoal.problems.regions.task import Districting, graph
from tests.amount import thinned
from tests.oracles import regions as oracle

QUICK = settings(deadline=None, max_examples=60)


@st.composite
def areas(draw, most=7):
    """A graph, weights by one or two thresholds, the thresholds, and how many sets are listed for an area."""
    n = draw(st.integers(1, most))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * n, unique=True)) if pairs else []
    need = draw(st.lists(st.integers(4, 12), min_size=1, max_size=2))
    weight = st.tuples(*(st.integers(0, 9) for _ in need))
    weights = draw(st.lists(weight, min_size=n, max_size=n))
    return n, edges, weights, need, draw(st.sampled_from([0, 1, 2, 3, 5, 8, 1_000]))


def connected_sets(n, edges):
    """All of them."""
    sets = (s for size in range(1, n + 1) for s in combinations(range(n), size))
    return [s for s in sets if oracle.connected(s, edges)]


def task_of(n, edges, weights, need):
    w = np.array(weights, np.int64).reshape(n, -1)
    g = graph(np.array(edges, np.int64).reshape(-1, 2), n)
    return Districting(g, w, np.array(need), 1, np.zeros((0, 4)), ("count",), None, 1.0, None, np.array([1], np.uint64))


@given(areas(), st.sampled_from([0, 1, 60]))
@QUICK
def test_every_connected_set_that_meets_the_thresholds_costs_one(instance, rounds):
    """Also where the program was stopped before it had seen every set."""
    n, edges, weights, need, few = instance
    light = [v for v in range(n) if not oracle.meets((v,), weights, need)]
    if not light:
        return
    new = {v: i for i, v in enumerate(light)}
    inner = [(new[a], new[b]) for a, b in edges if a in new and b in new]
    task = task_of(len(light), inner, [weights[v] for v in light], need)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prices, "_ROUNDS", rounds)
        price = priced(task.graph, task.weights, task.need, few)
    assert (price >= 0).all()
    for s in connected_sets(len(light), inner):
        if oracle.meets(s, task.weights.tolist(), need):
            assert sum(int(price[v]) for v in s) >= UNIT
    assert sum(price.tolist()) <= sum(prices.share(task.weights, task.need).tolist())


@given(areas())
@QUICK
def test_no_partition_has_more_regions_than_the_prices_allow(instance):
    n, edges, weights, need, few = instance
    task = task_of(n, edges, weights, need)
    bound = count_bound(task, steps=0)
    before, whole = bound.value, oracle.meets(tuple(range(n)), weights, need) and oracle.connected(range(n), edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prices, "_EACH", (few, few))
        price_areas(task, bound)
    assert bound.value <= before
    assert bound.value == int(bound.heavy.sum() + bound.capacity.sum())
    if whole:
        best = max(len(p) for p in oracle.partitions(n, edges, weights, need))
        assert best <= bound.value
        found = merge(edges, np.array(weights), need, objective="count", effort="fast", seed=1)
        assert found.regions <= best <= found.upper_bound


@pytest.mark.parametrize("seed", range(thinned(150)))
def test_the_sets_listed_are_all_that_were_promised(seed):
    rng = np.random.default_rng(seed)
    n, few = int(rng.integers(1, 9)), int(rng.choice([0, 1, 2, 3, 5, 8, 1_000]))
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 2.2 / n]
    need = rng.integers(4, 13, rng.integers(1, 3)).tolist()
    weights = rng.integers(0, 8, (n, len(need))).tolist()
    task = task_of(n, edges, weights, need)
    members, ends, full, listed = light_sets(
        task.graph.indptr, task.graph.indices, task.weights, task.need, few, 10_000
    )
    found = [tuple(sorted(s.tolist())) for s in np.split(members, ends)[:-1]]
    assert len(set(found)) == len(found)
    for s, meets in zip(found, full, strict=True):
        assert oracle.connected(s, edges)
        assert meets == oracle.meets(s, weights, need)
        assert listed[list(s)].all()
    known = set(found)
    for s in connected_sets(n, edges):
        if listed[list(s)].all():
            if oracle.meets(s, weights, need):
                assert any(set(t) <= set(s) for t, meets in zip(found, full, strict=True) if meets)
            else:
                assert s in known
    if few >= 1_000:
        assert listed.all()


def test_prices_rule_out_what_counting_cannot():
    """Areas of 6 on a path with k = 10: two make a region of 12, so nine have room for four, not five."""
    edges = [(i, i + 1) for i in range(8)]
    found = merge(edges, [6] * 9, 10, objective="count", seed=1)
    assert found.upper_bound == found.regions == 4
    task = task_of(9, edges, [(6,)] * 9, [10])
    bound = count_bound(task, steps=0)
    assert bound.value == bound.table["capped"] == 5
    price_areas(task, bound)
    assert bound.value == bound.table["prices"] == 4


@pytest.mark.parametrize("size", [8, 9])
def test_prices_stand_in_where_the_program_does_not_run(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The same path, of as many areas as the program is given at most, and of one more."""
    monkeypatch.setattr(bounds, "_PRICED", size)
    for module in (answer, auto):
        monkeypatch.setattr(module, "separated", lambda *_: None)
    found = merge([(i, i + 1) for i in range(8)], [6] * 9, 10, objective="count", seed=1)
    assert found.upper_bound == found.regions == 4
    assert ("prices" in found.certificate.details["upper_bounds"]) == (size < 9)


def test_where_sets_are_many_the_share_stays():
    task = task_of(9, [(i, i + 1) for i in range(8)], [(6,)] * 9, [10])
    assert priced(task.graph, task.weights, task.need, 0).tolist() == [6 * UNIT // 10] * 9
    assert sum(priced(task.graph, task.weights, task.need, 100).tolist()) < 5 * UNIT


def test_room_for_the_list_is_kept():
    task = task_of(9, [(i, i + 1) for i in range(8)], [(6,)] * 9, [10])
    members, ends, full, listed = light_sets(task.graph.indptr, task.graph.indices, task.weights, task.need, 100, 4)
    assert len(members) <= 4
    assert listed.any()
    assert not listed.all()
    assert len(ends) == len(full)
