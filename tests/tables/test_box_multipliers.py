"""Column generation over boxes: every violated group is found, and no bound is above the least loss."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import ceil, floor

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies

import shoal
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.recoding.ranges import RangeGrid
from shoal.model.task import Task
from shoal.problems.tables.bounds import bounds, boxes
from shoal.problems.tables.bounds import boxes as box_multipliers
from tests.oracles.tables import least_loss, least_total, row_loss
from tests.tables.drawn import KINDS, TREE, tasks

STEP, POSITION = 5.0, np.array([0.0, 2.0, 10.0, 13.0])


def on_a_grid() -> Ranges:
    """Ranges that end at multiples of ``STEP``: two codes lie on an end, two between."""
    ends = np.arange(0.0, 20.0, STEP)
    low, high = np.floor(POSITION / STEP).astype(np.int32), np.ceil(POSITION / STEP).astype(np.int32)
    return Ranges.of(POSITION, grid=RangeGrid(ends, low, high))


def loss_on_a_grid(values: list[int]) -> float:
    """From the definition: the ends around the least and the greatest, over the span, 1 at most."""
    least, most = POSITION[min(values)], POSITION[max(values)]
    return float(min((ceil(most / STEP) - floor(least / STEP)) * STEP / (POSITION[-1] - POSITION[0]), 1.0))


def anchored(task: Task, p: boxes.Pairs, at: np.ndarray) -> np.ndarray:
    """By how much the worst group of K rows exceeds K times its loss, for each anchor; every group is looked at."""
    h, group = task.histogram, task.requirement.smallest
    place = np.empty(h.cells, int)
    place[np.argsort(-at, kind="stable")] = np.arange(h.cells)
    worst = np.zeros(h.cells)
    for some in set(combinations(np.repeat(np.arange(h.cells), h.count), group)):
        first = min(some, key=lambda c: place[c])
        rows = [tuple(map(int, h.quasi[p.order[c]])) for c in some]
        over = float(at[list(some)].sum()) - group * row_loss(task.recoding, rows)
        worst[first] = max(worst[first], over)
    return worst


@settings(deadline=None, max_examples=150)
@given(
    task=tasks(most=8, sensitive=(0,), least=2),
    values=strategies.lists(strategies.floats(0.0, 2.5), min_size=8, max_size=8),
    nodes=strategies.sampled_from((0, 1, 3, 2000)),
    few=strategies.sampled_from((1, boxes.FEW)),
)
def test_the_most_violated_group_of_every_anchor(task, values, nodes, few):
    if task.requirement.smallest < 2:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "FEW", few)  # cells from which on they lie around several centers
        p = boxes.Pairs.of(task)
    at = np.array(values[: task.histogram.cells])
    ordered = Task(
        Histogram(
            task.histogram.quasi, task.histogram.sensitive, p.cells.count, task.histogram.quasi_names,
            task.histogram.sensitive_names, task.histogram.quasi_sizes, task.histogram.sensitive_sizes,
        ),
        task.requirement, task.recoding, task.effort,
    )  # fmt: skip
    expected = anchored(ordered, p, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_multipliers, "NODES", nodes)
        excess, found, groups, _ = box_multipliers._sweep(p, at, None)
    assert (excess >= expected - 1e-9).all()  # also where the nodes ran out
    if nodes == 2000:
        np.testing.assert_allclose(excess, expected, atol=1e-9)
    for cell in np.flatnonzero(found > 0):
        rows = [tuple(map(int, task.histogram.quasi[p.order[c]])) for c in groups[cell]]
        over = float(at[groups[cell]].sum()) - len(rows) * row_loss(task.recoding, rows)
        assert over == pytest.approx(found[cell], abs=1e-9)
        assert (np.bincount(groups[cell], minlength=at.size) <= p.cells.count).all()


@pytest.mark.parametrize("seed", range(30))
def test_rows_passed_over_hide_no_group(seed):
    """Groups of four and five rows: a row passed over that the box holds later is in a group at least as violated."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(7, 11)), int(random.integers(1, 4))
    rows = random.integers(0, 4, (n, d))
    names = random.choice(["set", "range", "tree", "heavy"], d)
    table = replace(Histogram.from_rows(rows), quasi_sizes=(4,) * d)
    task = Task(table, Requirement(int(random.integers(4, 6))), Recoding(tuple(KINDS[x]() for x in names), "ncp"))
    p = boxes.Pairs.of(task)
    at = random.uniform(0.0, 2.0, table.cells)
    expected = anchored(replace(task, histogram=replace(table, count=p.cells.count)), p, at)
    for nodes in (0, 5, boxes.NODES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "NODES", nodes)
            excess = boxes._sweep(p, at, None)[0]
        assert (excess >= expected - 1e-9).all()
    np.testing.assert_allclose(excess, expected, atol=1e-9)


@settings(deadline=None, max_examples=120)
@given(
    task=tasks(most=9, kinds=("set", "range", "tree"), sensitive=(0,), least=4),
    sweeps=strategies.integers(1, 4),
    reach=strategies.floats(0.01, 4.0),
    nodes=strategies.sampled_from((0, 2, boxes.NODES)),
)
def test_what_is_proved_is_never_above_the_least_loss(task, sweeps, reach, nodes):
    p = boxes.Pairs.of(task)
    if p.cells.group < 2:
        return
    best = least_loss(task.histogram, task.requirement, task.recoding)
    near = (boxes.neighbors(task, None) - p.alone)[p.order]  # feasible: each row's own loss at least
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "REACH", reach)
        patch.setattr(boxes, "NODES", nodes)
        found = box_multipliers.raised(p, near, sweeps, None)
    if found is not None:
        assert float(p.cells.count @ near) < float(p.cells.count @ found[0]) <= best + 1e-9


@settings(deadline=None, max_examples=60)
@given(
    rows=strategies.lists(
        strategies.tuples(strategies.integers(0, 3), strategies.integers(0, 3)), min_size=4, max_size=8
    ),
    k=strategies.integers(2, 3),
    other=strategies.sampled_from(("set", "tree")),
)
def test_no_bound_is_above_the_least_loss_where_a_grid_costs_some_codes_more(rows, k, other):
    found = Histogram.from_rows(np.array(rows))
    table = Histogram(found.quasi, found.sensitive, found.count, found.quasi_names, found.sensitive_names, (4, 4), ())
    second = Sets.of(4) if other == "set" else Levels.tree(TREE)
    task = Task(table, Requirement(k), Recoding((on_a_grid(), second), "ncp"), Effort("thorough"))

    def price(group: list[int]) -> float | None:
        if len(group) < k:
            return None
        here = [rows[i] for i in group]
        beside = row_loss(Recoding((second,), "ncp"), [(b,) for _, b in here])
        return len(group) * (loss_on_a_grid([a for a, _ in here]) + beside)

    best = least_total(len(rows), price)
    for name, prices in box_multipliers.without_lattice(task, "thorough", None).items():
        assert float(prices @ table.count) <= best + 1e-9, name
    for value in bounds.lower_bounds(task).values.values():
        assert value * len(rows) * 2 <= best + 1e-6


def test_a_step_that_some_values_lie_on_does_not_raise_the_bound_above_the_cost():
    """Rows 50 i and 50 i + 2 are published as [50 i, 50 i + 5]: the grid costs one of them by itself, the other not."""
    table = pl.DataFrame({"x": [50 * i + d for i in range(250) for d in (0, 2)]})
    for effort in ("fast", "balanced"):
        made = shoal.anonymize(
            table, quasi_identifiers=["x"], k=2, publish="ranges", range_step={"x": 5}, effort=effort, seed=1,
        )  # fmt: skip
        assert made.certificate.cost == pytest.approx(5 / 12452)
        assert made.certificate.lower_bound <= made.certificate.cost


def test_the_program_over_boxes_is_proved_where_raised_prices_are_far():
    """Rows in threes on a line: the bound meets the cost."""
    drawn = np.random.default_rng(5)
    rows = np.stack([drawn.integers(0, 30, 120), drawn.integers(0, 4, 120), drawn.integers(0, 3, 120)], axis=1)
    table = Histogram.from_rows(rows)
    recoding = Recoding((Ranges.of(np.unique(rows[:, 0]).astype(float)), Sets.of(4), Sets.of(3)), "ncp")
    task = Task(table, Requirement(3), recoding, Effort("thorough"))
    found = box_multipliers.without_lattice(task, "thorough", None)
    raised = boxes.box_prices(task, boxes.Pairs.of(task), (400, 60), 1, None)[2]
    assert float(found["columns of boxes"] @ table.count) > 1.05 * float(raised @ table.count)
