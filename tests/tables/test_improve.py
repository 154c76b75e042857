"""Neighborhood search: eligible, never dearer than its start, the same on any number of cores, stoppable."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from shoal.clock import clock
from shoal.model.histogram import Histogram
from shoal.model.privacy import BetaLikeness, LDiversity, Requirement, TCloseness
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Effort, Task
from shoal.problems.tables import group
from shoal.problems.tables.search import neighborhood as module
from shoal.problems.tables.search.cascade import rank, start
from shoal.problems.tables.search.row_groups import Rows
from tests.oracles.tables_loss import least_loss
from tests.tables.drawn import assert_eligible, census_like, tasks, total


@settings(deadline=None, max_examples=80)
@given(task=tasks(most=8, least=4))
def test_eligible_and_between_the_optimum_and_the_cascade(task):
    rows = Rows.of(task)
    before = rows.labels(start(task, rows))
    after, _ = module.search(task, rows, before, steps=40)
    partition = rows.partition(after)
    assert_eligible(task, partition)
    cost = total(task, task.recoding.cost(task.histogram, partition))
    assert least_loss(task.histogram, task.requirement, task.recoding) <= cost + 1e-9
    assert cost <= total(task, task.recoding.cost(task.histogram, rows.partition(before))) + 1e-9


def table(kind: str, need: Requirement, seed: int = 0) -> Task:
    histogram = census_like(900, 5)
    if not need.frequency:
        histogram = replace(
            histogram, sensitive=np.zeros((histogram.cells, 0), np.int32), sensitive_names=(), sensitive_sizes=()
        )
    make = {
        "stars": Levels.stars,
        "set": Sets.of,
        "range": lambda size: Ranges.of(np.arange(float(size))),
    }[kind]
    columns = tuple(make(size) for size in histogram.quasi_sizes)
    return Task(histogram, need, Recoding(columns, "stars" if kind == "stars" else "ncp"), Effort("balanced"), seed)


NEEDS = [Requirement(4), Requirement(3, (1,), (3,)), Requirement(1, (4,), (1,)), Requirement(6, (2,), (3,))]


@pytest.mark.parametrize("need", NEEDS, ids=str)
@pytest.mark.parametrize("kind", ["stars", "set", "range"])
def test_lower_than_the_cascade_on_a_census_like_table(kind, need):
    task = table(kind, need)
    rows = Rows.of(task)
    before = rows.labels(start(task, rows))
    after, told = module.search(task, rows, before, steps=600)
    assert told.stopped == "steps"
    partition = rows.partition(after)
    assert_eligible(task, partition)
    assert rank(task, partition) < rank(task, rows.partition(before))


def test_counted_in_steps_the_result_does_not_depend_on_the_cores(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 200)
    task = table("range", Requirement(3, (1,), (2,)), seed=4)
    rows = Rows.of(task)
    before = rows.labels(start(task, rows))
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        found.append(module.search(task, rows, before, steps=400)[0])
    assert np.array_equal(*found)


def test_an_interrupt_ends_the_search_without_an_answer(monkeypatch):
    monkeypatch.setattr(module, "ROUND", 50)
    task = table("set", Requirement(4))
    turns = []

    def interrupt(what: str, share: float | None) -> None:
        turns.append(share)
        if len(turns) == 3:
            raise KeyboardInterrupt

    rows = Rows.of(task)
    before = rows.labels(start(task, rows))
    with pytest.raises(KeyboardInterrupt):
        module.search(replace(task, progress=interrupt), rows, before, steps=100_000)
    assert len(turns) == 3


def test_a_budget_of_seconds_is_kept_roughly(ticking):
    task = replace(table("stars", Requirement(1, (3,), (1,))), effort=Effort("seconds", 0.5), started=clock())
    found = module.improve(task)
    assert_eligible(task, found.partition)
    rows = Rows.of(task)
    assert rank(task, found.partition) <= rank(task, start(task, rows))


def test_in_the_catalogue():
    histogram = census_like(300, 6, columns=2)
    found = [group(histogram, Requirement(3, (2,), (1,)), "improve", seed=9) for _ in range(2)]
    assert found[0].method == "improve"
    assert found[0].certificate.cost == found[1].certificate.cost


@pytest.mark.parametrize("other", [BetaLikeness(2.0, enhanced=False, column="s1"), TCloseness(0.5, column="s1")])
def test_shares_of_one_column_hold_while_another_is_completed(other):
    """A group that takes in rows for the model of one column must not take too many of a value of another."""
    quasi = np.array([(2, 0), (1, 1), (0, 0), (2, 0), (1, 2), (0, 2), (2, 2)])
    values = np.array([(3, 2), (2, 1), (0, 1), (3, 3), (3, 2), (0, 1), (2, 1)])
    histogram = Histogram.from_rows(quasi, values)
    for seed in range(10044340, 10044370):
        found = group(histogram, [LDiversity(2, column="s0"), other], "improve", effort="balanced", seed=seed)
        for g in range(found.partition.groups):
            here = found.partition.group == g
            cells = np.repeat(found.partition.cell[here], found.partition.count[here])
            assert 2 * np.bincount(histogram.sensitive[cells, 0]).max() <= cells.size
