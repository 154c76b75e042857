"""Opening groups, placing many rows, and the start for scarce values: eligible, never dearer, the same on any cores."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from shoal import DistinctLDiversity, KAnonymity
from shoal.clock import clock
from shoal.kernels.tables import scarce_values as kernels
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import ColumnRecoding, Levels, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.bounds import bounds
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search import neighborhood
from shoal.problems.tables.search import scarce_values as module
from shoal.problems.tables.search.cascade import rank, scarcity, start
from tests.oracles.tables import eligible, least_loss
from tests.tables.drawn import assert_eligible, begun, census_like, interrupted, lost, tasks


def cost_of(task: Task, rows: Rows, labels: np.ndarray) -> float:
    return lost(task, rows.partition(labels))


def together(rows: Rows) -> np.ndarray:
    """One group of everybody: the start from which most can be opened."""
    return np.zeros(rows.cell.size, np.int64)


@settings(deadline=None, max_examples=120)
@given(task=tasks(most=8, least=4))
def test_opening_is_eligible_never_dearer_and_between_the_optimum_and_its_start(task):
    rows, first = begun(task)
    for before in (together(rows), first):
        after, opened = module.open_groups(rows, before, np.arange(before.size), shift=task.seed)
        assert_eligible(task, rows.partition(after))
        cost, old = cost_of(task, rows, after), cost_of(task, rows, before)
        assert least_loss(task.histogram, task.requirement, task.recoding) <= cost + 1e-9
        assert cost < old if opened else cost == old
        assert np.unique(after).size == np.unique(before).size + opened


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=8, least=3))
def test_spare_rows_are_those_whose_group_stays_eligible(task):
    rows, labels = begun(task)
    _, value = module.leaves_and_values(rows)
    member = np.argsort(labels, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    free = np.empty(labels.size, bool)
    need = (rows.k, rows.frequency, rows.distinct)
    groups = kernels.GroupMembers(labels, begin, member, np.zeros(begin.size - 1), free)
    kernels.spare(kernels.ValuedRows(rows.slots, np.zeros((labels.size, 0), np.int64), value, *need), groups)
    need = task.requirement
    for x in range(labels.size):
        others = [i for i in np.flatnonzero(labels == labels[x]) if i != x]
        values = [tuple(task.histogram.sensitive[rows.cell[i]]) for i in others]
        assert free[x] == (bool(others) and eligible(values, need.k, need.frequency, need.distinct))


@settings(deadline=None, max_examples=40)
@given(task=tasks(most=8, least=5))
def test_alternating_is_between_the_optimum_and_its_start(task):
    rows, before = begun(task)
    after, told = module.open_and_search(task, rows, before, steps=41)
    assert told.stopped == "steps"
    partition = rows.partition(after)
    assert_eligible(task, partition)
    cost = cost_of(task, rows, after)
    assert least_loss(task.histogram, task.requirement, task.recoding) <= cost + 1e-9
    assert cost <= cost_of(task, rows, before) + 1e-9


def table(kind: str = "tree", n: int = 1200, seed: int = 0, effort: str = "balanced") -> Task:
    """Two sensitive values, one of them scarce and mostly in one corner of the table."""
    found = census_like(n, 8, columns=4)
    random = np.random.default_rng(3)
    chance = np.where(found.quasi[:, 0] > 20, 0.6, 0.04)
    rare = random.binomial(found.count, chance)
    quasi = np.concatenate([np.repeat(found.quasi, found.count - rare, axis=0), np.repeat(found.quasi, rare, axis=0)])
    sensitive = np.repeat([0, 1], [int((found.count - rare).sum()), int(rare.sum())])
    histogram = Histogram.from_rows(quasi, sensitive)

    def tree(size: int) -> ColumnRecoding:
        codes = np.arange(size)
        return Levels.tree(np.stack([codes, codes // 3, codes // 9, codes * 0]))

    make = {"tree": tree, "set": Sets.of}[kind]
    recoding = Recoding(tuple(make(size) for size in histogram.quasi_sizes))
    return Task(histogram, Requirement(4, (1,), (2,)), recoding, Effort.of(effort), seed)


@pytest.mark.parametrize("kind", ["tree", "set"])
def test_groups_are_opened_where_a_value_is_scarce(kind):
    task = table(kind)
    assert scarcity(task).tolist() == [True, False]
    rows = Rows.of(task)
    before = together(rows)
    after, opened = module.open_groups(rows, before, np.flatnonzero(rows.sensitive[rows.cell, 0] == 1))
    assert opened > 20
    assert_eligible(task, rows.partition(after))
    assert rank(task, rows.partition(after)) < rank(task, rows.partition(before))


def test_the_start_for_scarce_values_beats_the_reserve_and_strands_nobody():
    task = table()
    rows = Rows.of(task)
    prices = lower_bounds(task).cheapest
    labels = module.scarce_start(task, rows, prices, scarcity(task))
    assert_eligible(task, rows.partition(labels))
    assert cost_of(task, rows, labels) < cost_of(task, rows, rows.labels(start(task, rows)))
    assert np.array_equal(labels, module.scarce_start(task, rows, None, scarcity(task)))
    assert module.scarce_start(task, rows, None, scarcity(task), clock() - 1) is None
    hurried = module.scarce_start(task, rows, prices, scarcity(task), clock() + 1e3)
    assert_eligible(task, rows.partition(hurried))


def test_fast_serves_rows_that_are_hard_to_serve_first():
    """As every longer effort does; what the cascade alone would cost stands on record beside it."""
    task = table(n=4000, effort="fast")
    found = group(task.histogram, [KAnonymity(4), DistinctLDiversity(2)], recoding=task.recoding, effort="fast", seed=1)
    cost = {attempt["method"]: attempt["cost"] for attempt in found.attempts}
    assert found.certificate.cost == min(cost.values()) <= cost["guided cascade"] < 0.9 * cost["cascade"]
    assert_eligible(task, found.partition)
    again = group(task.histogram, [KAnonymity(4), DistinctLDiversity(2)], recoding=task.recoding, effort="fast", seed=1)
    assert np.array_equal(again.partition.group, found.partition.group)


def test_placing_many_without_groups_or_beyond_its_size_is_placing(monkeypatch):
    task = table()
    rows = Rows.of(task)
    nobody = np.full(rows.cell.size, -1)
    assert_eligible(task, rows.partition(module.place_many(rows, nobody)))
    half = rows.labels(start(task, rows))
    half[half % 2 == 0] = -1
    placed_at_once = module.place_many(rows, half)
    monkeypatch.setattr(module, "PAIRS", 0)
    placed = module.place_many(rows, half)
    assert np.array_equal(placed, rows.place(half))
    for labels in (placed_at_once, placed):
        assert_eligible(task, rows.partition(labels))
    assert np.array_equal(placed_at_once >= 0, np.ones(placed_at_once.size, bool))
    kept = half >= 0
    assert np.unique(np.stack([half[kept], placed_at_once[kept]]), axis=1).shape[1] == np.unique(half[kept]).size


def test_the_result_does_not_depend_on_the_cores(monkeypatch):
    task = table()
    rows, before = begun(task)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        half = np.where(before % 3 == 0, -1, before)
        placed_at_once = module.place_many(rows, half)
        found.append((placed_at_once, module.open_and_search(task, rows, placed_at_once, steps=200)[0]))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


def test_an_interrupt_ends_it_without_an_answer():
    task = table()
    rows, before = begun(task)
    interrupted(task, 2, lambda heard: module.open_and_search(heard, rows, before, steps=400))


def test_auto_leads_the_cascade_and_reproduces_by_seed(monkeypatch):
    task = table(n=500)
    need, recoding = task.requirement, task.recoding
    monkeypatch.setattr(bounds, "SMALL", dict.fromkeys(bounds.SMALL, 0))  # sweeps alone
    monkeypatch.setitem(neighborhood.STEPS, "balanced", neighborhood.STEPS["balanced"] / 4)
    found = [group(task.histogram, need, recoding=recoding, effort="balanced", seed=5) for _ in range(2)]
    tried = {a["method"]: a["cost"] for a in found[0].attempts}
    assert tried["improve"] <= tried["guided cascade"] < tried["cascade"]
    assert found[0].certificate.lower_bound <= found[0].certificate.cost == found[1].certificate.cost
    assert np.array_equal(found[0].partition.group, found[1].partition.group)


def test_a_budget_of_seconds_ends(ticking):
    task = replace(table(), effort=Effort("seconds", 0.4), started=clock())
    rows, before = begun(task)
    after, told = module.open_and_search(task, rows, before, deadline=clock() + 0.3)
    assert told.stopped == "seconds"
    assert_eligible(task, rows.partition(after))
    assert rank(task, rows.partition(after)) <= rank(task, rows.partition(before))
