"""The pattern cover: its promise against the optimum, its patterns, its bound."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement
from shoal.model.recoding import Recoding
from shoal.problems.tables import group
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods import pattern_cover
from tests.oracles.exact import recodings, rows_of
from tests.tables.checks import least_loss


def test_the_promise_is_two_less_a_kth_times_a_harmonic_number():
    found = group(Histogram.from_rows(np.zeros((9, 1), int)), KAnonymity(3), "pattern_cover").certificate
    assert found.guarantee.factor == pytest.approx((2 - 1 / 3) * (1 + 1 / 2 + 1 / 3))


def test_for_k_two_the_promise_is_met_exactly():
    rows = [(0, 0, 1)] * 3 + [(0, 1, 1), (1, 1, 0)]
    histogram = Histogram.from_rows(np.array(rows))
    found = group(histogram, KAnonymity(2), "pattern_cover").certificate
    best = least_loss(histogram, Requirement(2), Recoding.stars(histogram))
    assert (found.cost, best, found.guarantee.factor) == (9, 4, 9 / 4)


def covered(histogram, k):
    """What the greedy cover pays in stars, and the pick that covered each type."""
    from shoal.kernels.tables.subsets import cover

    costs = Costs.of(histogram, Recoding.stars(histogram))
    closed = pattern_cover.patterns(costs, Recoding.stars(histogram), k)
    by_type = np.argsort(closed.member, kind="stable")
    of = np.repeat(np.arange(closed.loss.size), np.diff(closed.start))[by_type]
    of_start = np.searchsorted(closed.member[by_type], np.arange(costs.types + 1)).astype(np.int64)
    pick = np.full(costs.types, -1, np.int64)
    picks = cover(closed.start, closed.member, closed.loss, of_start, of, costs.count, k, pick)
    new = np.bincount(pick, weights=costs.count, minlength=len(picks))
    assert (new > 0).all()
    return (closed.loss[picks] * np.maximum(new, k)).sum(), pick


@settings(deadline=None, max_examples=30)
@given(rows=rows_of(4, 60, least=30), k=st.integers(2, 9))
def test_groups_of_several_picks_stay_within_the_proof(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    found = group(histogram, KAnonymity(k), "pattern_cover")
    assert (found.partition.sizes >= k).all()
    # (2 - 1/k) times what the greedy cover itself pays, which is what the proof bounds
    paid, pick = covered(histogram, k)
    assert found.certificate.cost <= (2 - 1 / k) * paid
    partition, of_type = found.partition, histogram.types[0]
    for g in np.flatnonzero(partition.sizes >= 2 * k):
        assert len(set(pick[of_type[partition.cell[partition.group == g]]].tolist())) == 1


@settings(deadline=None, max_examples=60)
@given(rows=rows_of(4, 8, values=2, least=4), k=st.integers(2, 4))
def test_the_cover_itself_is_within_a_harmonic_number(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    paid, _ = covered(histogram, k)
    best = least_loss(histogram, Requirement(k), Recoding.stars(histogram))
    assert paid <= sum(1 / i for i in range(1, k + 1)) * best + 1e-9


@settings(deadline=None, max_examples=50)
@given(data=st.data(), rows=rows_of(2, 8, values=4, least=3), k=st.integers(1, 3))
def test_patterns_are_the_closures_of_sets_of_types(data, rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    recoding = data.draw(recodings(histogram.quasi_sizes, ("stars", "tree")))
    costs = Costs.of(histogram, recoding)
    found = pattern_cover.patterns(costs, recoding, k)
    listed = {frozenset(found.member[a:b].tolist()) for a, b in zip(found.start, found.start[1:], strict=False)}
    assert len(listed) == found.loss.size
    expected = {}
    for size in range(1, costs.types + 1):
        for some in combinations(range(costs.types), size):
            levels = []
            for j, column in enumerate(recoding.columns):
                codes = costs.code[list(some), j]
                levels.append(next(i for i in range(column.levels) if len(set(column.node[i][codes].tolist())) == 1))
            fits = frozenset(
                x
                for x in range(costs.types)
                if all(
                    c.node[v][costs.code[x, j]] == c.node[v][costs.code[some[0], j]]
                    for j, (c, v) in enumerate(zip(recoding.columns, levels, strict=True))
                )
            )
            if costs.count[list(fits)].sum() >= k:
                expected[fits] = costs.loss(sorted(fits))
    assert listed == set(expected)
    for (a, b), loss in zip(zip(found.start, found.start[1:], strict=False), found.loss.tolist(), strict=True):
        assert expected[frozenset(found.member[a:b].tolist())] == loss


@pytest.mark.parametrize("limits", [(40 * 5 * 4, 10**7), (10**8, 60)])
def test_a_lattice_too_large_drops_the_promise(monkeypatch, limits):
    rows = np.random.default_rng(0).integers(0, 3, (40, 5))
    monkeypatch.setattr(pattern_cover.patterns, "__defaults__", limits)
    found = group(Histogram.from_rows(rows), KAnonymity(3), "pattern_cover")
    assert (found.partition.sizes >= 3).all()
    assert found.certificate.guarantee.factor is None
    whole = group(Histogram.from_rows(rows), KAnonymity(3), "forest").certificate
    assert found.certificate.lower_bound == whole.lower_bound > 0
