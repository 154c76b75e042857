"""Sums over groups: most groups, and squared sizes, of labels and of intervals, against every grouping there is."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError
from shoal.problems.labels import covering
from shoal.problems.labels.instance import instance
from tests.commands import run
from tests.oracles.labels import cheapest_cut, loads_of, partitions

SIZES = st.lists(st.integers(0, 14), min_size=1, max_size=8)
cover = shoal.labels.cover


def least(sizes, k, objective):
    """The optimum over all groupings."""
    every = (loads_of(sizes, groups) for groups in partitions(len(sizes)))
    good = [loads for loads in every if min(loads) >= k]
    if objective == "count":
        return min(sum(load - k for load in loads) for loads in good)
    return min(sum(load**2 for load in loads) for loads in good)


@pytest.mark.parametrize("objective", ["count", "squares"])
@settings(deadline=None, max_examples=60)
@given(sizes=SIZES, k=st.integers(1, 20), searched=st.booleans())
def test_small_lists_are_optimal_and_the_search_keeps_its_bound(objective, sizes, k, searched):
    assume(sum(sizes) >= k)
    best = least(sizes, k, objective)
    with pytest.MonkeyPatch.context() as patch:
        if searched:
            patch.setattr(covering, "SMALL", 0)
        found = cover(sizes, k, objective=objective)
    loads = loads_of(sizes, found.labels.tolist())
    assert found.loads.tolist() == loads
    assert min(loads) >= k
    assert found.objective == objective
    paid = sum(load - k for load in loads) if objective == "count" else sum(load**2 for load in loads)
    assert found.cost == paid >= best >= found.certificate.lower_bound
    if not searched:
        assert found.certificate.optimal
        assert found.cost == best == cover(sizes, k, "exact", objective=objective).cost


def test_the_bound_on_squares_levels_what_the_large_labels_leave():
    # k = 10: at most three groups, one of them with the 30; 25 more in two
    assert covering.least_sum(instance([30, 10, 8, 7], 10), "squares")[0] == 30**2 + 12**2 + 13**2
    assert covering.least_sum(instance([30, 10, 8, 7], 10), "count")[0] == 55 - 30
    assert covering.least_sum(instance([5, 5, 5], 4), "squares")[0] == 75


def test_real_lists_are_met_or_nearly_so():
    sizes = (np.random.default_rng(2).pareto(1.1, 400) * 20).astype(int) + 1
    for objective in ("count", "squares"):
        found = cover(sizes, 200, objective=objective)
        assert float(found.certificate.ratio) < 1.01
    assert cover(sizes, 200, objective="count").cost <= cover(sizes, 200).loads.sum() - 200 * len(
        cover(sizes, 200).loads
    )


def test_sizes_of_any_length():
    found = cover([10**30, 10**30, 7], 10**30, objective="squares")
    assert found.cost == 10**60 + (10**30 + 7) ** 2
    many = cover([10**30] * 14, 2 * 10**30, objective="count")
    assert many.cost == many.certificate.lower_bound == 0


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ({"objective": "counts"}, "counts"),
        ({"objective": "count", "method": "fold"}, "'fold' lowers the largest group"),
        ({"objective": "squares", "method": "exact"}, "13 labels are too many"),
    ],
)
def test_refusals(ask, says):
    with pytest.raises(PolicyError, match=says):
        cover([3] * 13, 6, **ask)


@settings(deadline=None, max_examples=60)
@given(weights=st.lists(st.integers(0, 9), min_size=1, max_size=9), k=st.integers(1, 12))
def test_the_most_intervals(weights, k):
    assume(sum(weights) >= k)
    found = shoal.intervals.cut(range(len(weights)), weights, k, "count")
    assert found.loads.min() >= k
    assert found.certificate.optimal
    assert found.cost == sum(found.loads - k) == cheapest_cut(weights, k, lambda i, j: sum(weights[i:j]) - k)


@pytest.mark.parametrize("objective", ["count", "squares"])
def test_released_judged_and_refused_when_bent(tmp_path, objective):
    frame = pl.DataFrame({"job": [f"job {i % 9}" for i in range(90)], "age": [20 + i % 17 for i in range(90)]})
    people = tmp_path / "people.csv"
    frame.write_csv(people)
    for command, column, flag in (("labels", "job", "--label"), ("intervals", "age", "--value")):
        out, proof = tmp_path / f"{command}.csv", tmp_path / f"{command}.json"
        asked = [command, people, flag, column, "--k", 12, "--objective", objective, "-o", out, "--certificate", proof]
        assert run(*asked).returncode == 0
        verdict = shoal.verify(out, proof, people)
        assert verdict.holds
        assert {f.check: f.how for f in verdict.findings}["cost"] == "recomputed"
        bent = json.loads(proof.read_text())
        bent["certificate"]["cost"] += 1
        proof.write_text(json.dumps(bent))
        assert {f.check: f.holds for f in shoal.verify(out, proof, people).findings}["cost"] is False
