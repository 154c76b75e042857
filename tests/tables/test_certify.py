"""The tuple bound in the unit of the loss, against the optimum over all partitions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model.certificate import Certificate
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.tables import group
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.losses import bound_raised_to_step, least_steps, steps_bound
from shoal.problems.tables.three_phase import residue
from tests.oracles.tables import eligible, held, in_unit, partitions, row_loss
from tests.tables.checks import columns_of, forms, least_loss, tables


@settings(deadline=None, max_examples=120)
@given(histogram=tables(d=2, s=1, most=6, values=4), form=forms, k=st.integers(1, 4), l=st.integers(1, 3))
def test_never_above_the_optimum(histogram, form, k, l):
    need, recoding = Requirement(k, (l,), (1,)), columns_of(form, histogram.quasi_sizes)
    if shortfall(histogram, need) is None:
        fewest = residue(histogram, need)[1]["bound"]
        assert steps_bound(Task(histogram, need, recoding), fewest) <= least_loss(histogram, need, recoding) + 1e-12


def test_a_step_is_the_least_class_of_two():
    node = np.stack([np.arange(4), [0, 0, 1, 2], [0, 0, 0, 1], np.zeros(4, int)])
    histogram = Histogram.from_rows(np.arange(4))
    tree = Recoding((Levels.tree(node, weight=3.0),))
    assert least_steps(histogram, tree) == pytest.approx([1, 1, 2, 3])
    line = Recoding((Ranges.of(np.array([0.0, 1, 5, 10])),))
    assert least_steps(histogram, line) == pytest.approx([0.1, 0.1, 0.4, 0.5])
    assert steps_bound(Task(histogram, Requirement(2), tree), 3) == pytest.approx((1 + 1 + 2) / 4)
    turned = Recoding(
        (Levels.tree(np.stack([np.arange(4), [0, 1, 2, 2], [0, 1, 1, 1], np.zeros(4, int)]), weight=3.0),)
    )
    assert least_steps(histogram, turned) == pytest.approx([3, 2, 1, 1])
    assert steps_bound(Task(histogram, Requirement(2), turned), 3) == pytest.approx((1 + 1 + 2) / 4)


@settings(deadline=None, max_examples=100)
@given(histogram=tables(d=1, s=2, most=14), k=st.integers(1, 3), f=st.tuples(*[st.integers(1, 3)] * 2), data=st.data())
def test_good_groups_row_by_row(histogram, k, f, data):
    need = Requirement(k, f, (2, 1))
    label = np.array(data.draw(st.lists(st.integers(0, 2), min_size=histogram.cells, max_size=histogram.cells)))
    label = np.unique(label, return_inverse=True)[1]
    found = groups_that_meet(histogram, need, np.arange(histogram.cells), label)
    partition = Partition.of(np.arange(histogram.cells), label, histogram.count)
    assert found.tolist() == [eligible(rows, k, f, (2, 1)) for rows in held(histogram, partition)]


@pytest.mark.parametrize("method", ["hilbert", "three_phase_hilbert", "mondrian", "top_down", "global_recoding"])
def test_methods_without_a_bound_of_their_own_state_the_best_there_is(method):
    """The tuple bound knows one star a row; here every row that moves needs four."""
    rng = np.random.default_rng(4)
    value = np.repeat(rng.permutation(40), 3)
    histogram = Histogram.from_rows(np.stack([value] * 4 + [np.zeros(120, int)], axis=1), np.arange(120) % 3)
    need = Requirement(6, (3,), (1,))
    found = group(histogram, need, method, seed=0).certificate
    task = Task(histogram, need, Recoding.stars(histogram))
    best = lower_bounds(task)
    tuples = found.details["fewest_suppressed"]
    assert tuples < best.best[1] <= found.lower_bound
    assert found.bound.startswith(best.best[0])


def every_cost(task: Task) -> list[float]:
    """What the partitions of a table's rows cost, each cost once."""
    rows = [tuple(map(int, row)) for row in np.repeat(task.histogram.quasi, task.histogram.count, axis=0)]
    lost = lambda group: len(group) * row_loss(task.recoding, [rows[i] for i in group])  # noqa: E731
    found = [in_unit(sum(map(lost, p)), task.histogram, task.recoding) for p in partitions(len(rows))]
    costs = np.sort(found)
    return costs[np.append(True, np.diff(costs) > 1e-12)].tolist()


@pytest.mark.parametrize("form", ["tree", "set", "range", "line", "weighed"])
@pytest.mark.parametrize("seed", range(3))
def test_a_bound_is_the_cost_where_no_loss_lies_between(form: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    histogram = Histogram.from_rows(random.integers(0, 5, (5, 2)))
    size = histogram.quasi_sizes
    recoding = columns_of(form, size) if form in ("tree", "set", "range") else Recoding(
        tuple(Ranges.of(np.array([0.0, 1, 3, 7, 10])[:n]) for n in size) if form == "line"
        else (Levels.tree(np.stack([np.arange(size[0]), np.arange(size[0]) // 2, np.zeros(size[0], int)]), weight=0.3),
              Levels.stars(size[1])),
        "ncp",
    )  # fmt: skip
    task = Task(histogram, Requirement(2), recoding)
    costs = every_cost(task)
    for below, cost in pairwise(costs):
        assert not bound_raised_to_step(task, Certificate(cost=cost, lower_bound=below, unit="ncp")).optimal
        rounded = bound_raised_to_step(task, Certificate(cost=cost, lower_bound=cost * (1 - 1e-9), unit="ncp"))
        assert rounded.optimal or form == "range"  # of which the losses have no common denominator
