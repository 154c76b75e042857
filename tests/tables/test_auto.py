"""The default method: the best of what it tried, every attempt told, the bound attached, guided starts eligible.

Every method of the catalogue on the same small tables: nothing false in any answer, refusal or certificate.
"""

from dataclasses import replace
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from shoal.clock import clock
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, LDiversity, Requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.auto import auto
from shoal.problems.tables.bounds import boxes
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search import neighborhood
from shoal.problems.tables.search.cascade import guided, start
from shoal.problems.tables.search.open_close import columns_start
from tests.oracles.tables import least_loss, least_stars
from tests.tables.drawn import assert_eligible, census_like, tasks, total


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
@settings(deadline=None, max_examples=40)
@given(task=tasks(most=7))
def test_the_best_of_its_attempts(effort, task):
    task = replace(task, effort=Effort.of(effort))
    found = auto(task)
    assert_eligible(task, found.partition)
    assert found.certificate.cost <= min(a["cost"] for a in found.attempts) + 1e-12
    best = least_loss(task.histogram, task.requirement, task.recoding)
    assert total(task, found.certificate.lower_bound) <= best + 1e-9
    assert best <= total(task, found.certificate.cost) + 1e-9


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=9, sensitive=(0, 1)))
def test_the_guided_cascade_strands_nobody(task):
    rows = Rows.of(task)
    prices = np.random.default_rng(task.seed).random(task.histogram.cells)
    found = guided(task, rows, prices)
    if found is not None:
        assert_eligible(task, rows.partition(found))


def test_prices_lead_to_an_eligible_partition_of_a_census_like_table():
    histogram = census_like(1500, 8, columns=4)
    task = Task(histogram, Requirement(4, (1,), (2,)), Recoding.stars(histogram), Effort.of("thorough"))
    rows = Rows.of(task)
    prices = lower_bounds(task).prices
    found = guided(task, rows, prices)
    assert_eligible(task, rows.partition(found))


def test_seconds_are_kept_and_every_attempt_is_told(ticking):
    histogram = census_like(1200, 8, columns=4)
    began = clock()
    found = group(histogram, [KAnonymity(3), LDiversity(2)], effort=1.0, seed=3)
    methods = [a["method"] for a in found.attempts if a["method"] != "class program"]  # where there was time for it
    assert methods == ["three_phase", "cascade", "improve"]
    assert found.certificate.details["bounds"]
    assert found.certificate.bound
    assert clock() - began < 1.5


def test_a_lattice_too_large_to_enumerate_is_walked_not_refused():
    random = np.random.default_rng(2)
    quasi = random.integers(0, 6, (160, 1)) + random.integers(0, 2, (160, 24))
    histogram = Histogram.from_rows(quasi)
    found = group(histogram, KAnonymity(4), seed=1)
    assert found.certificate.cost < 0.9 * 160 * 24
    assert found.certificate.lower_bound > 0


def test_wide_trees_and_large_sets():
    random = np.random.default_rng(2)
    codes = np.sort(random.integers(0, 500, 300))
    histogram = Histogram.from_rows(np.stack([codes, codes], axis=1))
    size = histogram.quasi_sizes[0]
    node = np.stack([np.arange(size), np.arange(size) // 5, np.arange(size) // 50, np.zeros(size, int)])
    recoding = Recoding((Levels.tree(node), Sets.of(size)))
    found = group(histogram, KAnonymity(3), recoding=recoding, seed=1)
    assert found.certificate.cost < 0.02
    task = Task(histogram, Requirement(3), recoding)
    assert Rows.of(task).labels(found.partition).min() == 0


def test_a_small_table_is_solved_to_proved_optimality():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (9, 3))
    histogram = Histogram.from_rows(codes)
    for privacy in (KAnonymity(2), KAnonymity(3)):
        found = group(histogram, privacy, seed=1)
        assert found.certificate.optimal
        assert found.certificate.cost == least_stars([tuple(r) for r in codes.tolist()], [()] * 9, privacy.k)
        assert found.attempts[-1]["cost"] == found.certificate.cost <= found.attempts[0]["cost"]


@pytest.mark.parametrize("recoded", [Sets.of, Levels.stars])
def test_a_named_effort_counts_work_so_a_clock_ten_times_as_fast_changes_nothing(recoded, monkeypatch):
    table = census_like(350, 3, columns=4)
    recoding = Recoding(tuple(recoded(s) for s in table.quasi_sizes), "ncp")
    answers = []
    for speed in (1, 10):
        monkeypatch.setattr("shoal.clock.time", SimpleNamespace(monotonic=lambda speed=speed: speed * monotonic()))
        answers.append(group(table, KAnonymity(5), recoding=recoding, effort="balanced", seed=1))
    slow, quick = answers
    assert slow.certificate.cost == quick.certificate.cost
    assert slow.certificate.details["bounds"] == quick.certificate.details["bounds"]
    for part in ("cell", "group", "count"):
        np.testing.assert_array_equal(getattr(slow.partition, part), getattr(quick.partition, part))


def test_nothing_lost_ends_the_search_at_once(monkeypatch):
    from shoal.problems.tables.exact import optimal

    def never(*_: object) -> None:
        raise AssertionError("a search begins although nothing is lost")

    monkeypatch.setattr(optimal, "by_vectors", never)
    table = Histogram.from_rows(np.zeros(40, int), np.arange(40) % 7)
    for method in ("auto", "optimal"):
        found = group(table, Requirement(3, (1,), (2,)), method, seed=0)
        assert found.certificate.cost == 0
        assert found.certificate.optimal


@pytest.mark.parametrize(("l", "distinct", "most"), [(1, 1, 0.38), (2, 1, 0.8), (1, 3, 0.43)])
def test_groups_of_the_bound_leave_rows_alike_together(l, distinct, most):
    """Most tuples are eligible, so they lose nothing: the start by columns leaves them so."""
    random = np.random.default_rng(4)
    place = np.stack(np.unravel_index(np.arange(120), (30, 4)), axis=1)
    rows = np.repeat(
        place, np.where(random.random(120) < 0.3, random.integers(1, 5, 120), random.integers(5, 9, 120)), axis=0
    )
    ill, other = np.arange(len(rows)) % 4, random.integers(0, 2, len(rows))
    ill[random.random(len(rows)) < 0.1] = 0
    recoding = Recoding((Ranges.of(np.arange(30.0)), Sets.of(4)), "ncp")
    table = Histogram.from_rows(rows, np.stack([ill, other], axis=1))
    task = Task(table, Requirement(5, (l, 1), (distinct, 1)), recoding, Effort.of("balanced"))
    columns: list[np.ndarray] = []
    boxes.without_lattice(task, "balanced", None, columns)
    held = Rows.of(task)
    found = held.partition(columns_start(task, held, columns[0]))
    assert_eligible(task, found)
    assert recoding.cost(table, found) < most * recoding.cost(table, start(task, held))


@pytest.mark.parametrize("recoded", [Sets.of, Levels.stars])
@pytest.mark.parametrize("need", [Requirement(5), Requirement(4, (3,), (1,))])
def test_fast_searches_a_table_of_few_rows_and_no_larger_one(recoded, need, monkeypatch):
    table = census_like(200, 3, columns=4)
    task = Task(table, need, Recoding(tuple(recoded(s) for s in table.quasi_sizes), "ncp"), Effort.of("fast"))
    found = auto(task)
    constructed = min(line["cost"] for line in found.attempts if line["method"] != "improve")
    assert total(task, found.certificate.cost) < total(task, constructed)
    assert_eligible(task, found.partition)
    assert np.array_equal(found.partition.group, auto(replace(task, seed=7)).partition.group)
    monkeypatch.setattr(neighborhood, "QUICK_ROWS", 199)
    assert auto(task).certificate.cost == constructed
