"""The cascade: nobody is stranded, never dearer than the three-phase algorithm, ceilings are kept."""

import numpy as np
import pytest
from hypothesis import given, settings

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, Requirement
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice
from shoal.problems.tables.search.cascade import cascade, start
from shoal.problems.tables.three_phase import residue, split
from tests.tables.drawn import TREE, assert_eligible, census_like, lost, tasks, total


@settings(deadline=None, max_examples=100)
@given(task=tasks(least=3))
def test_everyone_is_placed_and_never_dearer_than_by_three_phase(task):
    found = cascade(task)
    assert_eligible(task, found.partition)
    three = split(task.histogram, residue(task.histogram, task.requirement)[0])
    assert total(task, found.certificate.cost) <= lost(task, three) + 1e-9


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=14, least=5))
def test_the_cascade_alone_strands_nobody(task):
    rows = Rows.of(task)
    assert_eligible(task, start(task, rows))


@pytest.mark.parametrize("l", [2, 4, 6])
def test_far_below_three_phase_on_a_census_like_table(l):
    histogram = census_like(4000, 1)
    task = Task(histogram, Requirement(1, (l,), (1,)), Recoding.stars(histogram))
    rows = Rows.of(task)
    found = start(task, rows)
    three = split(histogram, residue(histogram, task.requirement)[0])
    assert lost(task, found) < 0.6 * lost(task, three)


def test_a_scarce_value_is_lent_and_nobody_is_stranded():
    # One row in five has the rare value: whoever publishes all of them early strands the rest.
    random = np.random.default_rng(3)
    quasi = random.integers(0, 12, (3000, 3))
    histogram = Histogram.from_rows(quasi, (random.random(3000) < 0.21).astype(int))
    need = [KAnonymity(5), DistinctLDiversity(2)]
    found = group(histogram, need, "cascade", seed=0)
    task = Task(histogram, Requirement(5, (1,), (2,)), Recoding.stars(histogram))
    assert_eligible(task, found.partition)
    assert found.certificate.cost < 0.8 * 3 * 3000


def test_the_lattice_is_walked_by_rising_mean_loss():
    histogram = census_like(500, 2, columns=3)
    columns = (Levels.stars(40), Levels.stars(2), Ranges.of(np.arange(6.0)))
    task = Task(histogram, Requirement(2, (1,), (1,)), Recoding(columns))
    lattice = Lattice.of(task.recoding)
    nodes = lattice.ordered(task)
    assert len(nodes) == lattice.nodes == 2 * 2 * 4
    means = lattice.mean_loss(task)
    losses = [sum(means[j][level] for j, level in enumerate(node)) for node in nodes]
    assert (np.diff(losses) >= -1e-8).all()
    assert not nodes[0].any()


def test_a_ceiling_is_kept_or_named():
    histogram = Histogram.from_rows(np.array([[0], [1], [2], [3]]), quasi_names=["zip"])
    low = Recoding((Levels.tree(TREE, ceiling=1),))
    found = group(histogram, KAnonymity(2), "cascade", recoding=low, seed=0)
    assert found.certificate.cost == pytest.approx(1 / 3)
    with pytest.raises(InfeasibleError, match=r"4 rows .*'zip' at level 1 of 2.*raise its ceiling"):
        group(histogram, KAnonymity(3), "cascade", recoding=low, seed=0)


def test_a_left_over_row_avoids_a_cheaper_group_above_the_ceiling():
    # (2, 1) may join (3, 0) twice, at the price of a heavy star, or (0, 1) twice, cheaply but above the ceiling.
    histogram = Histogram.from_rows(np.array([[0, 1], [0, 1], [2, 1], [3, 0], [3, 0]]))
    recoding = Recoding((Levels.tree(TREE, ceiling=1), Levels.stars(2, weight=10.0)))
    found = group(histogram, KAnonymity(2), "cascade", recoding=recoding, seed=0)
    assert total_loss(found.certificate.cost) == pytest.approx(3 * (10 + 1 / 3))


def total_loss(mean: float) -> float:
    return mean * 5 * 2
