"""Large k: groups of any size are searched, and the default is never dearer than a method of the catalogue."""

from unittest import mock

import pytest

from shoal.errors import PolicyError
from shoal.model.arguments import Effort
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.catalogue import names
from shoal.problems.tables import auto, bounds, coarsen, group
from shoal.problems.tables.search import neighborhood
from shoal.problems.tables.search.cascade import rank
from tests.tables.drawn import assert_eligible, begun, census_like, halved


def large(k: int, rows: int = 700) -> Task:
    table = census_like(rows, 2, columns=4)
    return Task(table, Requirement(k, (1,), (1,)), Recoding(tuple(halved(s) for s in table.quasi_sizes), "ncp"), seed=3)


def test_groups_of_large_k_are_searched():
    task = large(60)
    rows, group_of = begun(task)
    found, told = neighborhood.search(task, rows, group_of, steps=90)
    assert told.steps >= 90
    assert_eligible(task, rows.partition(found))
    assert rank(task, rows.partition(found)) < rank(task, rows.partition(group_of))
    with mock.patch.object(neighborhood, "most_of", return_value=neighborhood.MOST):  # groups above it are left alone
        idle, _ = neighborhood.search(task, rows, group_of, steps=90)
    assert rank(task, rows.partition(idle)) == rank(task, rows.partition(group_of))


def test_a_step_takes_apart_more_than_one_group_of_the_least_size_for_any_k():
    for need in range(1, 801):
        assert neighborhood.most_of(need) >= min(3 * need, 2400)
    named = [neighborhood.steps_of(large(k)) for k in (5, 20, 50, 200)]
    assert named == sorted(named, reverse=True)  # each step takes longer, the whole does not


@pytest.mark.parametrize("effort", ["fast", pytest.param("balanced", marks=pytest.mark.slow)])
def test_the_default_is_never_dearer_than_a_method_of_the_catalogue(effort, monkeypatch):
    task = large(12, 330)
    with mock.patch.dict(auto.COVER, {"fast": 1e9, "balanced": 1e9}):
        best = group(task.histogram, task.requirement, recoding=task.recoding, effort=effort, seed=1)
    monkeypatch.setitem(coarsen.LOOKS, "balanced", 6)
    monkeypatch.setitem(coarsen.FINALS, "balanced", 1)
    for module in (bounds.bounds, bounds):  # what the others prove is no matter here
        monkeypatch.setattr(module, "lower_bounds", lambda *_, **__: bounds.Bounds())
    assert task.histogram.cells > auto.CELLS
    tried = 0
    for method in names("tables"):
        if method in ("auto", "optimal"):
            continue
        try:
            other = group(task.histogram, task.requirement, method, recoding=task.recoding, effort=effort, seed=1)
        except PolicyError:
            continue
        assert best.certificate.cost <= task.recoding.cost(task.histogram, other.partition) + 1e-12, method
        tried += 1
    assert tried > 5


def test_a_cover_is_tried_where_there_is_time():
    task = large(12, 500)
    assert auto.covers(task, None)
    assert not auto.covers(task, 0.01)
    assert auto.covers(task, 100.0)
    assert not auto.covers(Task(task.histogram, Requirement(3, (1,), (1,)), task.recoding), None)
    with mock.patch.dict(auto.COVER, {"fast": 10}):
        assert not auto.covers(Task(task.histogram, task.requirement, task.recoding, Effort.of("fast")), None)
