"""Column generation over boxes where different values are asked of a group: every violated group is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Ranges, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables.bounds import bounds, boxes
from shoal.problems.tables.bounds import boxes as box_multipliers
from tests.oracles.tables import least_loss, row_loss
from tests.tables.drawn import KINDS, tasks


def completed(task: Task, p: boxes.Pairs, some: tuple[int, ...]) -> float:
    """What a box of these rows loses at least once it holds the values asked, one further row at a time."""
    quasi, value = task.histogram.quasi[p.order], p.cells.value
    rows = [tuple(map(int, quasi[c])) for c in some]
    held = {int(value[c]) for c in some}
    missing = p.cells.distinct - len(held)
    beside: dict[int, float] = {}
    for c in range(value.size):
        if int(value[c]) not in held:
            with_it = row_loss(task.recoding, [*rows, tuple(map(int, quasi[c]))])
            beside[int(value[c])] = min(beside.get(int(value[c]), np.inf), with_it)
    if missing > len(beside):
        return np.inf
    return max([row_loss(task.recoding, rows), *sorted(beside.values())[: max(missing, 0)]])


def anchored(task: Task, p: boxes.Pairs, at: np.ndarray) -> np.ndarray:
    """By how much the worst group of K rows exceeds K times its loss, for each anchor; every group is looked at."""
    group, count = task.requirement.smallest, p.cells.count
    place = np.empty(at.size, int)
    place[np.argsort(-at, kind="stable")] = np.arange(at.size)
    worst = np.zeros(at.size)
    for some in set(combinations(np.repeat(np.arange(at.size), count), group)):
        if np.bincount(p.cells.value[list(some)]).max() > p.cells.alike:
            continue
        first = min(some, key=lambda c: place[c])
        worst[first] = max(worst[first], float(at[list(some)].sum()) - group * completed(task, p, some))
    return worst


@settings(deadline=None, max_examples=200)
@given(
    task=tasks(most=8, sensitive=(1, 2), least=3),
    values=strategies.lists(strategies.floats(-0.5, 2.5), min_size=8, max_size=8),
    nodes=strategies.sampled_from((0, 1, 3, 2000)),
)
def test_the_most_violated_group_of_every_anchor(task, values, nodes):
    p = boxes.Pairs.of(task)
    if p.cells.group < 2:
        return
    at = np.array(values[: task.histogram.cells])
    expected = anchored(task, p, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_multipliers, "NODES", nodes)
        excess, found, groups, _ = box_multipliers._sweep(p, at, None)
    assert (excess >= expected - 1e-9).all()  # also where the nodes ran out
    if nodes == 2000:
        np.testing.assert_allclose(excess, expected, atol=1e-9)
    for cell in np.flatnonzero(found > 0):
        over = float(at[groups[cell]].sum()) - p.cells.group * completed(task, p, tuple(groups[cell]))
        assert over == pytest.approx(found[cell], abs=1e-9)
        assert (np.bincount(groups[cell], minlength=at.size) <= p.cells.count).all()
        assert np.bincount(p.cells.value[groups[cell]]).max() <= p.cells.alike


@pytest.mark.parametrize("seed", range(40))
def test_rows_passed_over_count_where_a_value_may_recur_only_so_often(seed):
    """Groups of four and five rows: in the place of another, a row passed over may be one too many of its value."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(8, 11)), int(random.integers(1, 3))
    drawn = Histogram.from_rows(random.integers(0, 4, (n, d)), random.permutation(np.arange(n) % 3))
    table = replace(drawn, quasi_sizes=(4,) * d)
    names = random.choice(["set", "range", "tree"], d)
    need = Requirement(int(random.integers(4, 6)), (2,), (1,))
    task = Task(table, need, Recoding(tuple(KINDS[x]() for x in names), "ncp"))
    p = boxes.Pairs.of(task)
    at = random.uniform(0.0, 2.0, table.cells)
    assert p.cells.alike < p.cells.group
    np.testing.assert_allclose(boxes._sweep(p, at, None)[0], anchored(task, p, at), atol=1e-9)


@settings(deadline=None, max_examples=150)
@given(
    task=tasks(most=9, kinds=("set", "range", "tree"), sensitive=(1, 2), least=4),
    values=strategies.lists(strategies.floats(-0.5, 2.5), min_size=9, max_size=9),
    sweeps=strategies.integers(1, 4),
    reach=strategies.floats(0.01, 4.0),
)
def test_what_is_proved_is_never_above_the_least_loss(task, values, sweeps, reach):
    p = boxes.Pairs.of(task)
    if p.cells.group < 2:
        return
    best = least_loss(task.histogram, task.requirement, task.recoding)
    near = (boxes.neighbors(task, None) - p.alone)[p.order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_multipliers, "REACH", reach)
        found = box_multipliers.raised(p, near, sweeps, None)
    if found is not None:
        assert float(p.cells.count @ near) < float(p.cells.count @ found[0]) <= best + 1e-9
    at = np.array(values[: task.histogram.cells])  # and whatever the multipliers
    excess, *_ = box_multipliers._sweep(p, at, None)
    assert float(p.cells.count @ (at - excess)) <= best + 1e-9


def test_scarce_values_are_proved_where_raised_prices_are_far():
    """One value in eight is rare: what a group of common rows lacks is far away."""
    drawn = np.random.default_rng(5)
    rows = np.stack([drawn.integers(0, 30, 120), drawn.integers(0, 4, 120), drawn.integers(0, 3, 120)], axis=1)
    rare = (drawn.random(120) < 0.12).astype(int)
    table = Histogram.from_rows(rows, rare)
    recoding = Recoding((Ranges.of(np.unique(rows[:, 0]).astype(float)), Sets.of(4), Sets.of(3)), "ncp")
    task = Task(table, Requirement(3, (1,), (2,)), recoding, Effort("thorough"))
    found = bounds.lower_bounds(task).values
    raised = boxes.box_prices(task, boxes.Pairs.of(task), (400, 60), 1, None)[2]
    assert found["columns of boxes"] > 1.05 * bounds.total(task, raised)
