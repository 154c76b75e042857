"""Column generation over boxes, also where different values are asked: every violated group is found, no bound lies.

A bound is never above the least loss, whatever the multipliers.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil, exp, floor, log
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings, strategies
from scipy.optimize import linprog

import shoal
from shoal.kernels.tables.eligible import stable_argsort
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import (
    AlphaKAnonymity,
    DeltaDisclosure,
    EntropyLDiversity,
    KAnonymity,
    Requirement,
    TCloseness,
    requirement,
)
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.recoding.ranges import RangeGrid
from shoal.model.task import Task, shortfall
from shoal.problems.tables.bounds import bounds, boxes, near_cells
from shoal.problems.tables.groups import least_rows
from tests.amount import ALL, thinned
from tests.oracles.tables import eligible, least_loss, least_total, row_loss
from tests.tables.drawn import KINDS, TREE, tasks


def completed(task: Task, p: near_cells.Pairs, some: tuple[int, ...], k: int) -> float:
    """What a box of these rows, of a group of k or more, loses at least with the values asked, one row at a time."""
    quasi, value = task.histogram.quasi[p.order], p.cells.value
    rows = [tuple(map(int, quasi[c])) for c in some]
    left = np.repeat(np.arange(value.size), p.cells.count - np.bincount(some, minlength=value.size))
    with_it = [(row_loss(task.recoding, [*rows, tuple(map(int, quasi[c]))]), int(value[c])) for c in left]
    held = {int(value[c]) for c in some}
    missing = p.sizes[0].distinct - len(held)
    beside = {v: min(loss for loss, w in with_it if w == v) for _, v in with_it if v not in held}
    if missing > len(beside):
        return np.inf
    out = max([row_loss(task.recoding, rows), *sorted(beside.values())[: max(missing, 0)]])
    for many, values in asked_by_shares(task, value[list(some)].tolist(), k):
        nearest = sorted(loss for loss, v in with_it if v in values)
        if many > len(nearest):
            return np.inf
        out = max([out, *nearest[:many]])
    return out


def asked_by_shares(task: Task, held: list[int], k: int) -> list[tuple[int, set[int]]]:
    """So many further rows of such values are in every eligible group that has rows of the values held."""
    need = task.requirement
    if not need.frequency:
        return []
    # The pairs look at one column of values: the first of those that ask for the most different values.
    column = max(range(len(need.frequency)), key=lambda j: max(need.frequency[j], need.distinct[j]))
    out: list[tuple[int, set[int]]] = []
    n, own, l = len(held), Counter(held), need.frequency[column]
    values = set(range(task.histogram.sensitive_sizes[column]))
    bands = {v: (Fraction(0), Fraction(1, l)) for v in values}
    for rule in task.requirement.rules:
        table, t = Counter(dict(enumerate(rule.table))), Fraction(str(getattr(rule.model, "t", 0)))
        q = {v: Fraction(table[v], table.total()) for v in values}
        if isinstance(rule.model, TCloseness) and rule.model.distance == "equal":
            bands = {v: (max(low, q[v] - t), min(high, q[v] + t)) for v, (low, high) in bands.items()}
            scarce = {v for v in values if own[v] < q[v] * n}
            over = sum(q[v] for v in scarce) * n - sum(own[v] for v in scarce) - t * n
            if over > 0:
                out.append((ceil(over / (1 + t - sum(q[v] for v in scarce))), scarce))
        elif isinstance(rule.model, AlphaKAnonymity):
            bands = {v: (low, min(high, Fraction(str(rule.model.alpha)))) for v, (low, high) in bands.items()}
        elif isinstance(rule.model, DeltaDisclosure):
            off = Fraction(exp(rule.model.delta))
            bands = {v: (max(low, q[v] / off), min(high, q[v] * off)) for v, (low, high) in bands.items() if q[v]}
        elif isinstance(rule.model, TCloseness):
            first = [v for v in sorted(values) if table[v]]
            sign = {v: 1 if sum(own[w] - q[w] * n for w in values if w <= v) >= -1e-6 else -1 for v in first}
            line = {
                v: sum(s * ((v <= w) - sum(q[x] for x in values if x <= w)) for w, s in sign.items()) for v in first
            }
            line = {v: x - t * (len(first) - 1) for v, x in line.items()}
            over = sum(line[v] for v in held)
            if over > 0:
                out.append((ceil(over / -min(line.values())), {v for v in first if line[v] < 0}))
        elif isinstance(rule.model, EntropyLDiversity):
            most, filled, many = max(own.values()), Counter(own), 0
            while entropy(filled) < log(rule.model.l) - 1e-9:
                filled[min((v for v in values if table[v]), key=lambda v: filled[v])] += 1
                many += 1
            if many:
                out.append((many, {v for v in values if own[v] < most}))
    more = [(ceil((own[v] - n * bands[v][1]) / bands[v][1]), values - {v}) for v in own]
    fewer = [(ceil(max(n, k) * low) - own[v], {v}) for v, (low, _) in bands.items()]
    return out + [(many, some) for many, some in more + fewer if many > 0]


def entropy(held: Counter[int]) -> float:
    """Of the shares of values."""
    shares = [many / held.total() for many in held.values() if many]
    return -sum(x * log(x) for x in shares)


def anchored(task: Task, p: near_cells.Pairs, at: np.ndarray) -> np.ndarray:
    """By how much the worst group exceeds its loss, for each anchor; every group of either size is looked at."""
    place = np.empty(at.size, int)
    place[np.argsort(-at, kind="stable")] = np.arange(at.size)
    worst = np.zeros(at.size)
    for cells in p.sizes:
        for some in set(combinations(np.repeat(np.arange(at.size), cells.count), cells.group)):
            if np.bincount(cells.value[list(some)]).max() > cells.alike:
                continue
            some = tuple(sorted(some, key=lambda c: place[c]))
            loss = max(completed(task, p, some[:n], cells.group) for n in range(2, cells.group + 1))
            worst[some[0]] = max(worst[some[0]], float(at[list(some)].sum()) - cells.group * loss)
    return np.maximum(worst, around_lone_rows(task, p, at)) if p.two_values else worst


def around_lone_rows(task: Task, p: near_cells.Pairs, at: np.ndarray) -> np.ndarray:
    """By how much the worst group exceeds its loss of which a row of each cell is the only one of its value."""
    quasi, value, k = [tuple(map(int, row)) for row in task.histogram.quasi[p.order]], p.cells.value, p.cells.group
    worst = np.zeros(at.size)
    for a in range(at.size):
        others = np.flatnonzero(value != value[a])
        others = np.repeat(others, p.cells.count[others]).tolist()
        for some in {some for size in range(k, len(others) + 1) for some in combinations(others, size)}:
            loss = row_loss(task.recoding, [quasi[a], *(quasi[c] for c in some)])
            if at[list(some)].min() > loss:  # without a cheaper row, it exceeds its loss by more
                worst[a] = max(worst[a], at[a] + at[list(some)].sum() - (1 + len(some)) * loss)
    return worst


def test_values_that_the_table_lacks_help_no_group():
    """Two rows of the lower value ask for two of the higher by the ordered distance, and only one is near."""
    table = replace(Histogram.from_rows([[0], [0], [0], [1], [1], [1]], [0, 1, 1, 0, 0, 1]), sensitive_sizes=(4,))
    need = requirement([KAnonymity(2), TCloseness(0.1, "ordered")], table.sensitive_names, table)
    p = near_cells.Pairs.of(task := Task(table, need, Recoding((Levels.stars(2),), "stars")))
    at = np.array([0.0, 0.0, 1.0, 0.0])
    excess = boxes._sweep(p, at, None)[0]
    np.testing.assert_allclose(excess, anchored(task, p, at), atol=1e-9)
    assert excess.max() < 1.5


@strategies.composite
def of_shares(draw, most=8):
    """A feasible task that asks for entropy, t-closeness by either distance, or shares from or up to some."""
    task = draw(tasks(most=most, sensitive=(1,), least=4))
    k, t = draw(strategies.integers(1, 4)), draw(strategies.sampled_from((0.1, 0.2, 0.3, 0.4)))
    l, share = draw(strategies.sampled_from((1.5, 2, 2.5))), draw(strategies.sampled_from((0.4, 0.6, 0.7)))
    close = [TCloseness(t), TCloseness(t, "ordered")]
    model = draw(
        strategies.sampled_from([*close, EntropyLDiversity(l), AlphaKAnonymity(share, k), DeltaDisclosure(2 * share)])
    )
    need = requirement([KAnonymity(k), model], task.histogram.sensitive_names, task.histogram)
    assume(shortfall(task.histogram, need) is None)
    return replace(task, requirement=need)


def of_two_columns() -> Task:
    """The first column limits shares, and the second asks for more different values."""
    sensitive = np.array([[0, 0], [0, 2], [1, 0], [1, 1], [2, 0], [3, 0], [0, 0]], np.int32)
    quasi, count = np.array([[0]] * 6 + [[3]], np.int32), np.array([1, 1, 1, 1, 1, 1, 2])
    histogram = Histogram(quasi, sensitive, count, ("q0",), ("s0", "s1"), (4,), (4, 4))
    stars = Recoding((Levels.tree(np.array([[0, 1, 2, 3], [0, 0, 0, 0]])),), "stars")
    return Task(histogram, Requirement(1, (2, 1), (1, 3)), stars)


@settings(deadline=None, max_examples=500)
@example(task=of_two_columns(), values=[0.0] * 6 + [2.0, 0.0], nodes=1, few=1)
@given(
    task=strategies.one_of(tasks(most=8, sensitive=(0, 1, 2), least=3), of_shares()),
    values=strategies.lists(strategies.floats(-0.5, 2.5), min_size=8, max_size=8),
    nodes=strategies.sampled_from((0, 1, 3, 2000)),
    few=strategies.sampled_from((1, near_cells.FEW)),
)
def test_the_most_violated_group_of_every_anchor(task, values, nodes, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_cells, "FEW", few)  # cells from which on they lie around several centers
        p = near_cells.Pairs.of(task)
    if p.cells.group < 2:
        return
    at = np.array(values[: task.histogram.cells])
    expected = anchored(task, p, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "NODES", nodes)
        excess, found, groups, lone, _ = boxes._sweep(p, at, None)
    assert (excess >= expected - 1e-9).all()  # also where the nodes ran out
    if nodes == 2000:
        np.testing.assert_allclose(excess, expected, atol=1e-9)
    for cell in np.flatnonzero(found > 0):
        some = groups[cell][groups[cell] >= 0]
        of = next(cells for cells in p.sizes if cells.group == some.size)
        over = float(at[some].sum()) - of.group * completed(task, p, tuple(some), of.group)
        assert over == pytest.approx(found[cell], abs=1e-9)
        assert (np.bincount(some, minlength=at.size) <= p.cells.count).all()
        assert np.bincount(p.cells.value[some]).max() <= of.alike
    for some, loss in lone:
        rows = [tuple(map(int, task.histogram.quasi[c])) for c in p.order[some]]
        assert some.size * row_loss(task.recoding, rows) == pytest.approx(loss, abs=1e-9)
        assert (np.bincount(some, minlength=at.size) <= p.cells.count).all()
        assert some.size > p.cells.group
        assert (p.cells.value[some[:-1]] != p.cells.value[some[-1]]).all()


@pytest.mark.parametrize("seed", range(thinned(70)))
def test_rows_passed_over_hide_no_group(seed):
    """Groups of four and five rows: a row passed over that the box holds later is in a group at least as violated.

    Where a value may recur only so often, a row passed over may be one too many of its value in the place of another.
    """
    random = np.random.default_rng(seed)
    alike, n, d = bool(seed % 2), int(random.integers(7, 11)), int(random.integers(1, 4))
    held = random.permutation(np.arange(n) * 2 // n) if alike else np.zeros((n, 0), np.int64)
    table = replace(Histogram.from_rows(random.integers(0, 4, (n, d)), held), quasi_sizes=(4,) * d)
    names = random.choice(["set", "range", "tree", "heavy"], d)
    need = Requirement(int(random.integers(4, 6)), (2,) * alike, (1,) * alike)
    p = near_cells.Pairs.of(task := Task(table, need, Recoding(tuple(KINDS[x]() for x in names), "ncp")))
    at = random.uniform(0.0, 2.0, table.cells)
    assert p.cells.alike < p.cells.group or not alike
    expected = anchored(task, p, at)
    for nodes in (0, 5, boxes.NODES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "NODES", nodes)
            excess = boxes._sweep(p, at, None)[0]
        assert (excess >= expected - 1e-9).all()
    np.testing.assert_allclose(excess, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(thinned(60)))
def test_groups_of_two_values_are_found_whole_around_the_only_row_of_a_value(seed):
    """One value is scarce, so that one of its rows serves many of the other; multipliers have either sign."""
    random = np.random.default_rng(seed)
    n, d, k = int(random.integers(6, 10)), int(random.integers(1, 4)), int(random.integers(2, 6))
    value = np.minimum(np.arange(n) // int(random.integers(1, 4)), int(random.integers(1, 3)))
    table = Histogram.from_rows(random.integers(0, 4, (n, d)), value)
    table = replace(table, quasi_sizes=(4,) * d)
    names = random.choice(["set", "range", "tree", "heavy"], d)
    p = near_cells.Pairs.of(
        task := Task(table, Requirement(k, (1,), (2,)), Recoding(tuple(KINDS[x]() for x in names), "ncp"))
    )
    assert p.two_values
    best, scarce = least_loss(table, task.requirement, task.recoding), p.cells.value == 0
    for _ in range(3):
        at = random.uniform(0.0, 1.6, table.cells) - scarce * random.uniform(0.0, 2.0, table.cells)
        expected = anchored(task, p, at)
        for nodes in (0, 2, 7, boxes.NODES):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(boxes, "NODES", nodes)
                excess = boxes._sweep(p, at, None)[0]
            assert (excess >= expected - 1e-9).all()
            assert float(p.cells.count @ (at - excess)) + float(p.alone @ table.count) <= best + 1e-9
        np.testing.assert_allclose(excess, expected, atol=1e-9)


def test_a_scarce_row_is_paid_for_by_the_large_group_that_it_serves():
    """One row of a value for eight of another: they are one group, and any five of them with it lose half as much."""
    table = Histogram.from_rows(np.arange(9)[:, None], (np.arange(9) == 4).astype(int))
    task = Task(table, Requirement(2, (1,), (2,)), Recoding((Ranges.of(np.arange(9.0)),), "ncp"), Effort("thorough"))
    p = near_cells.Pairs.of(task)
    proved = boxes.raised(p, near_cells.nearest_cells(p, 1, None)[2], 60, None)
    assert proved is not None
    assert float(p.cells.count @ proved[0]) == pytest.approx(9.0, rel=1e-3)


@pytest.mark.parametrize("kinds", [("set",), ("set", "set")])
def test_groups_of_rows_that_are_all_equally_far_apart_need_no_search(kinds, monkeypatch):
    """Every row adds a value to the sets of its group, so five rows lose four steps: the first node says so."""
    monkeypatch.setattr(boxes, "NODES", 0)
    n = 40
    table = Histogram.from_rows(np.repeat(np.arange(n)[:, None], len(kinds), axis=1), np.zeros((n, 0), np.int64))
    p = near_cells.Pairs.of(Task(table, Requirement(5, (), ()), Recoding(tuple(Sets.of(n) for _ in kinds), "ncp")))
    exact = np.full(n, 4 * len(kinds) / (n - 1))
    np.testing.assert_allclose(boxes._sweep(p, exact, None)[0], 0.0, atol=1e-9)
    assert boxes._sweep(p, 1.01 * exact, None)[0][0] >= 0.05 * exact[0] - 1e-9


@pytest.mark.parametrize("seed", range(thinned(60)))
def test_rows_that_shares_ask_for_are_in_every_eligible_group(seed):
    """No K rows are said to lose more than the cheapest eligible group that holds them, whatever else is in it."""
    random = np.random.default_rng(seed)
    n, v = int(random.integers(8, 11)), int(random.integers(2, 5))
    found = Histogram.from_rows(random.integers(0, 4, (n, 2)), random.integers(0, v, (n, 1)))
    table = replace(found, quasi_sizes=(4, 4), sensitive_sizes=(v,))
    t, k = float(random.choice([0.05, 0.1, 0.15, 0.2, 0.3, 0.4])), int(random.integers(2, 5))
    at, recoding = random.uniform(0.0, 2.5, table.cells), Recoding((Sets.of(4), Sets.of(4)), "ncp")
    row, distances = np.repeat(np.arange(table.cells), table.count), ("equal", "ordered")
    for model in (*(TCloseness(t, distance) for distance in distances), EntropyLDiversity(1.8), DeltaDisclosure(2 * t)):
        need = requirement([KAnonymity(k), model], table.sensitive_names, table)
        p = near_cells.Pairs.of(Task(table, need, recoding))
        if shortfall(table, need) is not None or p.cells.group < 2:
            continue
        value, excess = table.sensitive[row, 0], np.zeros(table.cells)
        excess[p.order] = boxes._sweep(p, at[p.order], None)[0]
        for some in (some for size in range(p.cells.group, n + 1) for some in combinations(range(n), size)):
            if not all(rule.holds(value[list(some), None], np.ones(len(some), np.int64)) for rule in need.rules):
                continue
            loss = row_loss(recoding, [tuple(map(int, table.quasi[row[i]])) for i in some])
            for cells, held in ((one, held) for one in p.sizes for held in combinations(some, one.group)):
                if np.bincount(value[list(held)]).max() <= cells.alike:  # no others are drawn from a group
                    over = float(at[row[list(held)]].sum()) - cells.group * loss
                    assert over <= excess[max(row[list(held)], key=at.__getitem__)] + 1e-9


@settings(deadline=None, max_examples=200)
@given(task=tasks(most=8, sensitive=(1, 2), least=3))
def test_the_least_group_has_as_many_rows_as_shares_ask(task):
    held, need = np.repeat(task.histogram.sensitive, task.histogram.count, axis=0), task.requirement
    sizes = [
        n
        for n in range(1, len(held) + 1)
        for some in combinations(range(len(held)), n)
        if eligible([tuple(row) for row in held[list(some)].tolist()], need.k, need.frequency, need.distinct)
    ]
    assert need.smallest <= least_rows(task.histogram, need) <= min(sizes)
    if need.frequency[1:] in ((), (1,)) and max(need.distinct) == 1:  # one condition alone decides
        assert least_rows(task.histogram, need) == min(sizes)


def test_five_rows_of_four_values_cannot_keep_to_thirds():
    table = Histogram.from_rows(np.zeros((12, 1), np.int64), np.arange(12)[:, None] % 4)
    assert least_rows(table, Requirement(5, (3,), (1,))) == 6
    assert least_rows(table, Requirement(5, (4,), (1,))) == 8
    assert least_rows(table, Requirement(5, (2,), (1,))) == 5


def test_scarce_rows_are_paid_for_where_a_value_may_have_half_of_a_group():
    """In both places one value is scarce, so most rows must find a group in the other place.

    With prices of 0 and more, a scarce row counts for every row that asks for it, and less than half is proved.
    """
    place, value = np.repeat([0, 1], 5), np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1])
    table = Histogram.from_rows(np.stack([place, np.array([0, 0, 1, 1, 0, 1, 0, 0, 1, 1])], axis=1), value[:, None])
    recoding = Recoding((Levels.stars(2), Levels.tree(np.array([[0, 1], [0, 0]]), weight=0.1)), "ncp")
    task = Task(table, Requirement(2, (2,), (1,)), recoding)
    p = near_cells.Pairs.of(task)
    proved = boxes.raised(p, (near_cells.neighbors(task, None) - p.alone)[p.order], 60, None)
    best = least_loss(table, task.requirement, recoding)
    assert proved is not None
    assert 0.9 * best <= float(p.cells.count @ proved[0]) <= best + 1e-9


@settings(deadline=None, max_examples=400)
@given(
    task=strategies.one_of(tasks(most=9, kinds=("set", "range", "tree"), sensitive=(0, 1, 2), least=4), of_shares(9)),
    values=strategies.lists(strategies.floats(-0.5, 2.5), min_size=9, max_size=9),
    sweeps=strategies.integers(1, 4),
    reach=strategies.floats(0.01, 4.0),
    nodes=strategies.sampled_from((0, 2, boxes.NODES)),
)
def test_what_is_proved_is_never_above_the_least_loss(task, values, sweeps, reach, nodes):
    p = near_cells.Pairs.of(task)
    if p.cells.group < 2:
        return
    best = least_loss(task.histogram, task.requirement, task.recoding)
    near = (near_cells.neighbors(task, None) - p.alone)[p.order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "REACH", reach)
        patch.setattr(boxes, "NODES", nodes)
        found = boxes.raised(p, near, sweeps, None)
    if found is not None:
        assert float(p.cells.count @ near) < float(p.cells.count @ found[0]) <= best + 1e-9
    at = np.array(values[: task.histogram.cells])  # and whatever the multipliers
    excess, *_ = boxes._sweep(p, at, None)
    assert float(p.cells.count @ (at - excess)) <= best + 1e-9


def in_threes(need: Requirement = Requirement(3)) -> Task:
    """Rows in threes on a line, beside two columns of sets; of a sensitive value, if one is asked of, one in eight."""
    drawn = np.random.default_rng(5)
    rows = np.stack([drawn.integers(0, 30, 120), drawn.integers(0, 4, 120), drawn.integers(0, 3, 120)], axis=1)
    rare = (drawn.random(120) < 0.12).astype(int)
    table = Histogram.from_rows(rows, rare) if need.distinct else Histogram.from_rows(rows)
    recoding = Recoding((Ranges.of(np.unique(rows[:, 0]).astype(float)), Sets.of(4), Sets.of(3)), "ncp")
    return Task(table, need, recoding, Effort("thorough"))


def test_scarce_values_are_proved_where_raised_prices_are_far():
    """One value in eight is rare: what a group of common rows lacks is far away."""
    task = in_threes(Requirement(3, (1,), (2,)))
    found = bounds.lower_bounds(task).values
    raised = boxes.box_prices(task, near_cells.Pairs.of(task), (400, 60), 1, None)[2]
    assert found["columns of boxes"] > 1.05 * bounds.total(task, raised)


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


@settings(deadline=None, max_examples=60)
@given(
    rows=strategies.lists(
        strategies.tuples(strategies.integers(0, 3), strategies.integers(0, 3)), min_size=4, max_size=8
    ),
    k=strategies.integers(2, 3),
    other=strategies.sampled_from(("set", "tree")),
)
def test_no_bound_is_above_the_least_loss_where_a_grid_costs_some_codes_more(rows, k, other):
    table = replace(Histogram.from_rows(np.array(rows)), quasi_sizes=(4, 4))
    second = Sets.of(4) if other == "set" else Levels.tree(TREE)
    task = Task(table, Requirement(k), Recoding((on_a_grid(), second), "ncp"), Effort("thorough"))

    def price(group: list[int]) -> float | None:
        if len(group) < k:
            return None
        here = [rows[i] for i in group]
        beside = row_loss(Recoding((second,), "ncp"), [(b,) for _, b in here])
        return len(group) * (loss_on_a_grid([a for a, _ in here]) + beside)

    best = least_total(len(rows), price)
    for name, prices in boxes.without_lattice(task, "thorough", None).items():
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
    task = in_threes()
    table = task.histogram
    found = boxes.without_lattice(task, "thorough", None)
    raised = boxes.box_prices(task, near_cells.Pairs.of(task), (400, 60), 1, None)[2]
    assert float(found["columns of boxes"] @ table.count) > 1.05 * float(raised @ table.count)


@settings(deadline=None, max_examples=thinned(150))
@given(task=tasks(most=8, least=3))
def test_no_bound_is_above_the_least_loss_where_columns_begin_from_raised_boxes(task):
    with mock.patch.object(boxes, "LARGE", 1):
        found = boxes.without_lattice(task, "thorough", None)
    best = least_loss(task.histogram, task.requirement, task.recoding)
    for name, prices in found.items():
        assert float(prices @ task.histogram.count) <= best + 1e-9, name


def in_fifteens(k: int) -> Task:
    """Fifteen rows near each of sixteen places, beside two columns of sets."""
    drawn = np.random.default_rng(8)
    place = np.repeat(np.arange(0, 1600, 100), 15)
    rows = np.stack([place + drawn.integers(0, 12, 240), drawn.integers(0, 3, 240), drawn.integers(0, 2, 240)], axis=1)
    recoding = Recoding((Ranges.of(np.unique(rows[:, 0]).astype(float)), Sets.of(3), Sets.of(2)), "ncp")
    codes = np.unique(rows[:, 0], return_inverse=True)[1]
    return Task(
        Histogram.from_rows(np.column_stack([codes, rows[:, 1:]])), Requirement(k), recoding, Effort("balanced")
    )


@pytest.mark.parametrize(("k", "large"), [(15, 20), (25, 20), (25, 30)])
def test_groups_of_many_rows_are_proved_where_raised_prices_are_far(k, large, monkeypatch):
    monkeypatch.setattr(boxes, "LARGE", large)
    task = in_fifteens(k)
    count, found = task.histogram.count, boxes.without_lattice(task, "balanced", None)
    raised = boxes.box_prices(task, near_cells.Pairs.of(task), (400, 60), 1, None)[2]
    assert ("raised boxes" in found) == (k > large)
    assert float(found["columns of boxes"] @ count) > 1.1 * float(raised @ count)
    assert "columns of boxes" not in boxes.without_lattice(in_fifteens(boxes.LARGEST + 1), "balanced", None)


def test_without_columns_the_multipliers_go_as_far_as_they_may():
    most = np.array([1.0, 2.0, 0.0])
    found = boxes.BoxColumns.none(3).multipliers(np.ones(3), np.zeros(3), most, 1e-3, None)
    assert found.tolist() == most.tolist()


def test_a_default_effort_too_short_for_one_sweep_takes_more_where_near_rows_prove_little(monkeypatch):
    """As large tables of many columns need: without columns of boxes, their ratio is 2 and not 1.3."""
    task = replace(in_threes(), effort=Effort.of("balanced"))
    count, whole = task.histogram.count, boxes.without_lattice(task, "balanced", None)
    near, proved = (float(whole[name] @ count) for name in ("neighbors", "columns of boxes"))
    monkeypatch.setitem(boxes.WORK, "balanced", 1.0)
    assert "columns of boxes" not in boxes.without_lattice(task, "balanced", None)
    monkeypatch.setitem(boxes.AMPLE, "balanced", 1e9)
    more = boxes.without_lattice(task, "balanced", None, None, (near + 1.0) / boxes.LOOSE[0])
    assert near < float(more["columns of boxes"] @ count) <= proved * (1 + 1e-9)
    assert "columns of boxes" not in boxes.without_lattice(task, "balanced", None, None, near)


@pytest.mark.parametrize("seed", range(6))
def test_the_multipliers_of_the_columns_known_are_about_the_best(seed):
    random = np.random.default_rng(seed)
    m, group = 60, 3
    cells = np.sort(random.integers(0, m, (150, group)), axis=1).astype(np.int32)
    columns = boxes.BoxColumns(cells, random.uniform(0.1, 1.0, len(cells)))
    count = random.integers(1, 9, m).astype(np.float64)
    least, most = np.full(m, -0.2 if seed % 2 else 0.0), np.full(m, 0.8)
    matrix = np.zeros((len(cells), m))
    np.add.at(matrix, (np.arange(len(cells))[:, None], cells), 1.0)
    best = linprog(-count, A_ub=matrix, b_ub=columns.loss, bounds=np.stack([least, most], axis=1))
    found = columns.multipliers(count, least, most, 1e-4, None)
    assert found is not None
    assert (found >= least).all()
    assert (found <= most).all()
    assert count @ found == pytest.approx(-best.fun, rel=2e-3)
    assert (matrix @ found <= columns.loss + 0.01).all()


def _noting(swept):
    """The sweep over all anchors, which notes what it is asked."""
    sweep = boxes._sweep

    def counted(*asked):
        swept.append(asked)
        return sweep(*asked)

    return counted


def test_a_named_effort_ends_where_sweeps_bring_little():
    """Half of the processor time of 1,240 records with dates as texts went into the last hundredth of the bound."""
    task, swept = in_threes(), []
    p = near_cells.Pairs.of(task)
    start, counted = (near_cells.neighbors(task, None) - p.alone)[p.order], _noting(swept)

    def proved(little: float) -> tuple[float, int]:
        swept.clear()
        found = boxes.raised(p, start, 60, None, np.inf, little)
        return float(p.cells.count @ found[0]), len(swept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "_sweep", counted)
        most, long = proved(0.0)
        least, short = proved(boxes.LITTLE["balanced"])
        patch.setattr(boxes, "LAST", 60)  # where the program goes on promising
        patch.setattr(boxes, "SLOW", 0.0)
        _, promised = proved(boxes.LITTLE["balanced"])
        patch.setattr(boxes, "SLOW", 0.6)
        slow, fewer = proved(boxes.LITTLE["balanced"])
    assert short < long
    assert boxes.LONG < fewer < promised
    assert min(least, slow) > 0.98 * most


def _begun(need: Requirement = Requirement(3)) -> tuple[near_cells.Pairs, np.ndarray]:
    """A table of 120 rows, and multipliers above those that are feasible."""
    task = in_threes(need)
    p = near_cells.Pairs.of(task)
    return p, 1.3 * (near_cells.neighbors(task, None) - p.alone)[p.order]


def test_few_anchors_are_looked_at_once_a_sweep(monkeypatch):
    """Asking a hundred of 120 anchors what the sweep will take took as long as the sweep."""
    p, start = _begun()
    swept = []
    monkeypatch.setattr(boxes, "_estimated", None)
    monkeypatch.setattr(boxes, "_sweep", _noting(swept))
    assert boxes.raised(p, start / 1.3, 4, None) is not None
    assert len(swept) == 4


def test_many_anchors_are_asked_before_a_sweep(monkeypatch):
    p, start = _begun()
    monkeypatch.setattr(boxes, "SAMPLED", 20)
    monkeypatch.setattr(boxes, "_sweep", None)
    assert boxes._sweep_within_limits(p, start, 10.0, None, boxes._sweep) == (None, True)


def test_a_sweep_ends_at_its_limit():
    p, start = _begun()
    *_, looked = boxes._sweep(p, start, None)
    assert boxes._sweep(p, start, None, looked)[-1] == looked
    assert boxes._sweep(p, start, None, looked - 1) is None
    assert boxes._sweep_within_limits(p, start, looked - 1, None, boxes._sweep) == (None, True)
    assert boxes._sweep_within_limits(p, 0.0 * start, 0.0, None, boxes._sweep_of_classes) == (
        None,
        False,
    )  # nothing is violated


@pytest.mark.parametrize("need", [Requirement(3), Requirement(3, (1,), (2,)), Requirement(3, (2,), (1,))])
def test_anchors_looked_at_together_have_the_groups_of_each(need, monkeypatch):
    p, start = _begun(need)
    anchors = np.random.default_rng(1).permutation(start.size)[:50]
    calls, one = [], boxes._separate
    monkeypatch.setattr(boxes, "_separate", lambda *given: calls.append(1) or one(*given))
    groups, loss, looks = boxes._at_some(p, start, anchors)
    assert len(calls) == -(-50 // boxes.TOGETHER)
    alone = [boxes._at_some(p, start, anchors[x : x + 1]) for x in range(50)]
    assert groups.tolist() == [group for some, _, _ in alone for group in some.tolist()]
    assert loss.tolist() == [lost for _, some, _ in alone for lost in some.tolist()]
    assert looks == sum(looked for _, _, looked in alone)
    assert len(groups)


def test_no_sweep_follows_once_enough_is_proved():
    rows = np.random.default_rng(5).integers(0, 30, (120, 2))
    recoding = Recoding((Ranges.of(np.arange(30.0)), Sets.of(30)), "ncp")
    task, swept = Task(Histogram.from_rows(rows), Requirement(3), recoding), []
    p = near_cells.Pairs.of(task)
    start, counted = (near_cells.neighbors(task, None) - p.alone)[p.order], _noting(swept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "_sweep", counted)
        most = float(p.cells.count @ boxes.raised(p, start, 60, None)[0])
        long, enough = len(swept), 0.9 * most
        found = boxes.raised(p, start, 60, None, np.inf, 0.0, enough)
    assert len(swept) - long < long / 2
    assert enough <= float(p.cells.count @ found[0]) < most


def test_programs_between_sweeps_save_sweeps_where_l_is_asked():
    """So many sweeps without them prove more, so they are for sweeps that take long."""
    drawn = np.random.default_rng(5)
    rows = np.stack([drawn.integers(0, 30, 200), drawn.integers(0, 4, 200)], axis=1)
    recoding = Recoding((Ranges.of(np.unique(rows[:, 0]).astype(float)), Sets.of(4)), "ncp")
    task, swept = Task(Histogram.from_rows(rows, drawn.integers(0, 4, 200)), Requirement(5, (3,), (1,)), recoding), []
    p = near_cells.Pairs.of(task)
    start, counted = (near_cells.neighbors(task, None) - p.alone)[p.order], _noting(swept)

    def proved(times: int) -> tuple[float, int]:
        swept.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "_sweep", counted)
            patch.setattr(boxes, "BETWEEN", times)
            patch.setattr(boxes, "DEAR", 0.0)
            found = boxes.raised(p, start, 60, None)
        return float(p.cells.count @ found[0]), len(swept)

    (most, long), (between, short) = proved(0), proved(boxes.BETWEEN)
    assert short <= long / 2
    assert between > 0.85 * most


@given(strategies.lists(strategies.integers(-3, 3) | strategies.floats(allow_nan=False), max_size=40))
def test_keys_are_put_in_rising_order_and_equal_ones_stay_in_place(keys):
    values = np.array(keys, np.float64)
    assert stable_argsort.py_func(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_cumulated_shares_that_are_equal_are_told_alike():
    """Of three rows, two values have together the share of the whole table but for rounding."""
    rows = [[0, 0], [0, 1], [0, 3], [1, 0], [1, 2], [1, 2], [1, 3], [3, 0], [3, 1], [3, 1]]
    value = np.array([1, 2, 0, 1, 1, 3, 1, 3, 0, 3])[:, None]
    table = replace(Histogram.from_rows(np.array(rows), value), quasi_sizes=(4, 4), sensitive_sizes=(4,))
    need = requirement([KAnonymity(5), TCloseness(0.05, "ordered")], table.sensitive_names, table)
    task = Task(table, need, Recoding((Sets.of(4), Sets.of(4)), "ncp"))
    p = near_cells.Pairs.of(task)
    for seed in range(20 if ALL else 4):
        at = np.random.default_rng(seed).uniform(0, 2.5, table.cells)
        assert boxes._sweep(p, at, None)[0] == pytest.approx(anchored(task, p, at), abs=1e-9)


def close_task(seed: int) -> tuple[Task, near_cells.Pairs, np.ndarray]:
    """A small table under t-closeness, what two rows lose, and multipliers drawn at random, some of them below 0."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(5, 10)), int(random.integers(1, 3))
    h = Histogram.from_rows(random.integers(0, 4, (n, d)), random.integers(0, int(random.integers(2, 5)), (n, 1)))
    names = random.choice(["set", "range", "tree"], d)
    recoding = Recoding(tuple(KINDS[name]() for name in names), "ncp")
    h = Histogram(h.quasi, h.sensitive, h.count, h.quasi_names, h.sensitive_names, (4,) * d, h.sensitive_sizes)
    models = [KAnonymity(int(random.integers(2, 5))), TCloseness(float(random.choice([0.1, 0.2, 0.3, 0.4])))]
    task = Task(h, requirement(models, h.sensitive_names, h), recoding, Effort.of("balanced"))
    p = near_cells.Pairs.of(task)
    return task, p, random.uniform(-0.3, 1.2 * d, h.cells)


def groups_of(task: Task, p: near_cells.Pairs):
    """Every eligible group of a small table: its cells in the order of the pairs, and what each of its rows loses."""
    h, need = task.histogram, task.requirement
    rows = np.repeat(np.arange(h.cells), h.count[p.order])
    seen = set()
    for size in range(need.k, rows.size + 1):
        for some in combinations(rows.tolist(), size):
            if some in seen:
                continue
            seen.add(some)
            cells = p.order[list(some)]
            if all(rule.holds(h.sensitive[cells], np.ones(size, np.int64)) for rule in need.rules):
                yield list(some), row_loss(task.recoding, [tuple(map(int, h.quasi[c])) for c in cells])


@pytest.mark.parametrize("seed", range(thinned(40)))
@pytest.mark.parametrize("nodes", [1, 3, 20_000])
def test_no_eligible_group_is_paid_more_than_it_loses_once_whole_classes_are_paid(seed, nodes, monkeypatch):
    monkeypatch.setattr(boxes, "NODES", nodes)
    task, p, at = close_task(seed)
    assert p.nested
    swept = boxes._sweep_of_classes(p, at, None)
    paid = at - (0.0 if swept is None else swept[0])
    assert (paid <= at).all()
    for some, loss in groups_of(task, p):
        assert paid[some].sum() <= len(some) * loss + 1e-9, (some, loss)


def most_of_a_class(p: near_cells.Pairs, at: np.ndarray, inside: np.ndarray) -> float:
    """The largest mean of multipliers over weights of the cells inside that t and K allow, by a program."""
    shares, value, m = p.cells.shares, p.cells.value[inside], inside.size
    limits, most = [], []
    for size in range(1, shares.table.size):
        for some in combinations(range(shares.table.size), size):
            limits.append(np.isin(value, some).astype(float))
            most.append(shares.table[list(some)].sum() + shares.number)
    found = linprog(
        -at[inside], A_ub=np.array(limits), b_ub=most, A_eq=np.ones((1, m)), b_eq=[1.0],
        bounds=[(0.0, c / p.cells.group) for c in p.cells.count[inside]],
    )  # fmt: skip
    return -found.fun if found.success else -np.inf


@pytest.mark.parametrize("seed", range(40, 40 + thinned(30)))
def test_rows_pay_no_more_than_the_most_that_a_class_of_a_box_exceeds(seed):
    """By every box that any rows of the table span, and a linear program for each."""
    task, p, at = close_task(seed)
    h, swept = task.histogram, boxes._sweep_of_classes(p, at, None)
    quasi = [tuple(map(int, h.quasi[c])) for c in p.order]
    expected = np.zeros(h.cells)
    for size in range(1, h.cells + 1):
        for some in combinations(range(h.cells), size):
            spanned = [quasi[i] for i in some]
            loss = row_loss(task.recoding, spanned)
            inside = np.array([
                i for i in range(h.cells) if abs(row_loss(task.recoding, [*spanned, quasi[i]]) - loss) < 1e-9
            ])  # fmt: skip
            expected[inside] = np.maximum(expected[inside], most_of_a_class(p, at, inside) - loss)
    assert (np.zeros(h.cells) if swept is None else swept[0]) == pytest.approx(expected, abs=1e-7)
    if swept is not None:  # the classes written down are as dear as they are said to be
        _, cells, weight, loss, _ = swept
        for c, w, lost in zip(cells, weight, loss, strict=True):
            held = c >= 0
            assert w[held].sum() == pytest.approx(1.0)
            assert w[held] @ at[c[held]] - lost > 0.0
            assert row_loss(task.recoding, [quasi[i] for i in c[held]]) <= lost + 1e-9


@pytest.mark.parametrize("t", [0.1, 0.2, 0.3, 1 / 7])
def test_a_class_has_no_rows_of_what_rounding_leaves_of_a_limit(t):
    """Each of the many rows of a value would take it again, and there would be no room to write them down."""
    random = np.random.default_rng(2)
    place = np.sort(random.integers(0, 60, 400))
    h = Histogram.from_rows(place[:, None], ((place // 20 + (random.random(400) < 0.3)) % 3)[:, None])
    need = requirement([KAnonymity(5), TCloseness(t)], h.sensitive_names, h)
    task = Task(h, need, Recoding((Ranges.of(np.arange(60.0)),), "ncp"), Effort.of("balanced"), seed=1)
    p = near_cells.Pairs.of(task)
    at = random.uniform(0.2, 1.0, h.cells)
    seen = 0
    for first in range(h.cells):
        out, _ = boxes._exceeded(p, first, first + 1, boxes._ranked(p, at))
        seen += int(out.found[0] > 0)
        held = out.weight[out.cell >= 0] if out.found[0] > 0 else np.ones(1)
        assert (held > 1e-13).all()
        assert held.sum() == pytest.approx(1.0)
    assert seen >= 3


def test_whole_classes_prove_more_where_values_go_with_places():
    """Rows of one value lie together, so groups within t take rows from far away, which K rows of them do not show."""
    random = np.random.default_rng(1)
    place = random.integers(0, 12, 160)
    sick = np.clip(place // 4 + (random.random(160) < 0.2), 0, 2)
    h = Histogram.from_rows(np.stack([place, random.integers(0, 4, 160)], axis=1), sick[:, None])
    columns = (Ranges.of(np.arange(12.0)), Ranges.of(np.arange(4.0)))
    need = requirement([KAnonymity(5), TCloseness(0.2)], h.sensitive_names, h)
    task = Task(h, need, Recoding(columns, "ncp"), Effort.of("balanced"), seed=1)
    p = near_cells.Pairs.of(task)
    start = near_cells.nearest_cells(p, p.cells.group - 1, None)[2]
    groups = boxes.raised(p, start, 60, None, 1e10, 5e-3)[0]
    classes = boxes.classes_of_boxes(p, groups, 60, None, 1e10, 5e-3, np.inf)
    assert p.cells.count @ classes > 1.2 * (p.cells.count @ groups)
    found = shoal.tables.group(h, [KAnonymity(5), TCloseness(0.2)], recoding=task.recoding, seed=1).certificate
    assert float(p.cells.count @ classes) / (2 * h.rows) <= found.cost
