"""Objective "count": no other objective's answer has more regions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from shoal.problems.regions import merge
from shoal.problems.regions.answer import OTHERS, most_regions
from shoal.problems.regions.packing import _Master
from shoal.problems.regions.task import Districting, Found

LABELS = {
    "count": [0, 0, 0, 1, 1, 1],
    "sumsq": [0, 0, 1, 1, 2, 2],
    "excess": [0, 0, 0, 0, 0, 0],
    "max": [0, 1, 1, 1, 2, 2],
}


def asked(limit: int, seconds: float | None = None) -> tuple[Found, list[tuple[str, int, float | None]]]:
    """The answer, and what the method was asked: objective, randomness, seconds."""
    calls = []

    def solve(task: Districting, _bound: object) -> Found:
        calls.append((task.objective[0], int(task.state[0]), task.seconds))
        task.state[0] += 1
        return Found(np.array(LABELS[task.objective[0]]), details={"of": task.objective[0]})

    none = np.zeros(0, np.int64)
    task = Districting(
        graph=None, features=np.ones((6, 1), np.int64), need=np.array([1]), l=1, geo=none, objective=("count",),
        start=None, effort=1.0, seconds=seconds, state=np.array([9], np.uint64),
    )  # type: ignore[arg-type]  # fmt: skip
    return most_regions(solve, task, SimpleNamespace(value=limit)), calls  # type: ignore[arg-type]


def test_the_answer_with_most_regions_is_taken_and_all_see_the_same_randomness():
    found, calls = asked(limit=6)
    assert found.label.tolist() == LABELS["sumsq"]
    assert found.details["found_for"] == "sumsq"
    assert calls == [(name, 9, None) for name in ("count", *OTHERS)]


@pytest.mark.parametrize(("limit", "calls"), [(2, 1), (3, 2), (4, 4)])
def test_it_ends_at_the_bound(limit, calls):
    assert len(asked(limit)[1]) == calls


def test_seconds_are_shared():
    assert [s for *_, s in asked(6, 8.0)[1]] == [2.0] * 4


@pytest.mark.parametrize("seed", [3])
def test_count_is_no_worse_than_the_others_on_a_map(seed):
    at = np.arange(49).reshape(7, 7)
    edges = np.concatenate(
        [np.stack([a.ravel(), b.ravel()], 1) for a, b in ((at[:, 1:], at[:, :-1]), (at[1:], at[:-1]))]
    )
    weights = (np.random.default_rng(seed).pareto(1.5, 49) * 20).astype(int) + 1
    k = int(weights.sum() // 12)
    regions = {
        name: len(merge(edges, weights, k, method="search", objective=name, seed=seed, effort="fast").sizes)
        for name in ("count", *OTHERS)
    }
    assert regions["count"] == max(regions.values())


def field(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A field of ten by ten areas, their weights, and a threshold for some thirty regions."""
    at = np.arange(100).reshape(10, 10)
    edges = np.concatenate(
        [np.stack([a.ravel(), b.ravel()], 1) for a, b in ((at[:, 1:], at[:, :-1]), (at[1:], at[:-1]))]
    )
    weights = np.random.default_rng(seed).integers(1, 60, 100)
    return edges, weights, int(weights.sum() // 30)


@pytest.mark.parametrize("seed", [8, 10])
def test_rows_of_three_settle_what_sets_alone_leave_open(seed):
    """28 regions are found at once; that there are no 29 the sets' program says only with subset-row cuts."""
    edges, weights, k = field(seed)
    found = merge(edges, weights, k, objective="count", seed=1)
    assert np.bincount(found.labels, weights=weights).min() >= k
    assert found.regions == found.upper_bound == 28
    assert "separator" not in found.certificate.details["upper_bounds"]  # which would be searched for in vain


def test_what_was_rounded_in_vain_is_not_rounded_for_every_objective(monkeypatch):
    dives, dive = [], _Master.dived
    monkeypatch.setattr(_Master, "dived", lambda *given: dives.append(given) or dive(*given))
    found = merge(*field(0), objective="count", seed=1)
    assert found.regions < found.upper_bound
    assert "separator" in found.certificate.details["upper_bounds"]
    assert len(dives) == 1
