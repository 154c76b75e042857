"""Multipliers never prove more than the optimum, whatever they are; flows are cheapest; what they place is eligible."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.clock import clock
from shoal.kernels.tables.min_cost_flow import FlowNetwork, ship
from shoal.kernels.tables.multipliers import CHOOSE, FOLLOW, MOVE, REST, run_part, start_ascent
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import LDiversity, Requirement, TCloseness, requirement
from shoal.model.recoding import Levels, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.programs import ascend
from shoal.problems.tables.auto import auto
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.bounds.class_program import (
    BOLD,
    FINE,
    FIRST_STEP,
    GAP,
    PATIENCE,
    UNIT,
    Multipliers,
    build,
    price,
    raised,
    shares_column,
    subgradient_steps,
)
from shoal.problems.tables.groups import Rows, groups_that_meet
from shoal.problems.tables.losses import Lattice
from shoal.problems.tables.search.open_close import Filled, fill, flow_start, trimmed
from shoal.threads import in_turn
from tests.amount import thinned
from tests.oracles.tables import least_loss
from tests.tables.drawn import TREE, TREES, assert_eligible, census_like, classes, few, tasks, total


def small(random: np.random.Generator) -> Task | None:
    """At most six rows with diversity by frequency in the first sensitive column."""

    def need(table: Histogram) -> Requirement:
        s = len(table.sensitive_names)
        frequency = (int(random.integers(2, 4)), *random.integers(1, 3, s - 1).tolist())
        return Requirement(int(random.integers(1, 4)), frequency, tuple(random.integers(1, 4, s).tolist()))

    return few(random, (2, 7), (1, 3), 6, need)


def test_no_multipliers_prove_more_than_the_optimum_of_hundreds_of_small_tables():
    random = np.random.default_rng(20)
    tried = tight = 0
    for task in filter(None, (small(random) for _ in range(thinned(400)))):
        best = least_loss(task.histogram, task.requirement, task.recoding)
        program = build(task, shares_column(task))
        walked = price(task)
        draws = [walked.multiplier, 0 * walked.multiplier]
        for top in (0.3, 2.0, 40.0):
            draws.append(random.integers(0, int(top * UNIT), walked.multiplier.size))
            draws.append(draws[-1] * (random.random(walked.multiplier.size) < 0.2))
            draws.append(
                np.clip(walked.multiplier + random.integers(-1, 2, walked.multiplier.size) * draws[-2] // 4, 0, None)
            )
        draws.append(np.full(walked.multiplier.size, program.arcs.most))
        for multiplier in draws:
            assert program.bound(multiplier) <= best * UNIT + 1e-6 * UNIT
            value = Multipliers(program, multiplier, program.bound(multiplier), np.zeros(0)).value(task)
            assert total(task, value) <= best + 1e-9
        tried += 1
        tight += total(task, walked.value(task)) >= best - 1e-5
    assert tried > thinned(160)
    assert tight > 0.3 * tried


def plainly(task: Task, j: int, multiplier: dict) -> Fraction:
    """The bound of the multipliers {(rows of a class, value): w} with fractions, each set of rows at its cheapest
    class."""
    h, lattice, l = task.histogram, Lattice.of(task.recoding), task.requirement.frequency[j]
    cheapest: dict[frozenset[int], Fraction] = {}
    for some, lost in classes(task, lattice):
        inside, loss = frozenset(some), Fraction(lost)
        cheapest[inside] = min(loss, cheapest.get(inside, loss))
    paid: list[list[Fraction]] = [[] for _ in range(h.cells)]
    for inside, loss in cheapest.items():
        values = {int(h.sensitive[i, j]) for i in inside}
        if len(values) >= l and h.count[list(inside)].sum() >= task.requirement.smallest:
            taken = sum(multiplier[inside, v] for v in values)
            for i in inside:
                paid[i].append(loss + l * multiplier[inside, int(h.sensitive[i, j])] - taken)
    return sum((int(n) * min(p) for n, p in zip(h.count, paid, strict=True)), Fraction(0))


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=8, kinds=TREES, sensitive=(1,)), seed=st.integers(0, 1000))
def test_the_bound_is_the_formula_of_the_proof(task, seed):
    j = shares_column(task)
    if j is None:
        return
    program = build(task, j)
    multiplier = np.random.default_rng(seed).integers(0, 4, program.owner.size) * (UNIT // 4)
    named = {}
    for p in range(program.owner.size):
        pairs = np.flatnonzero(program.owner == program.owner[p])
        members = frozenset(program.cell[np.isin(program.arcs.pair, pairs)].tolist())
        own = int(program.cell[program.arcs.pair == p][0])
        named[members, int(task.histogram.sensitive[own, j])] = Fraction(int(multiplier[p]), UNIT)
    expected, found = plainly(task, j, named), Fraction(program.bound(multiplier), UNIT)
    assert float(found) == pytest.approx(float(expected), abs=1e-6)
    assert found <= expected + Fraction(1, 10**12)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_flow_is_as_cheap_as_the_cheapest(data):
    n = data.draw(st.integers(2, 7))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 5), st.integers(-4, 9))
    arcs = [a for a in data.draw(st.lists(ends, max_size=18)) if a[0] < a[1]]  # no circle, so none of negative cost
    arcs += [(u, n, 50, 60) for u in range(n)]
    supply = np.array([*data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), 0])
    supply[n] = -supply.sum()
    graph = nx.MultiDiGraph()
    graph.add_nodes_from((u, {"demand": -int(supply[u])}) for u in range(n + 1))
    graph.add_edges_from((u, v, {"capacity": room, "weight": cost}) for u, v, room, cost in arcs)
    best = nx.network_simplex(graph)[0]
    exact = n + 2  # costs this much finer than the last error
    tail, head = np.array([a[0] for a in arcs]), np.array([a[1] for a in arcs])
    cost = np.array([a[3] for a in arcs]) * exact
    order = np.argsort(np.concatenate([tail, head]), kind="stable")
    place = np.argsort(order)
    a = tail.size
    left = np.concatenate([[x[2] for x in arcs], np.zeros(a, int)])[order].astype(np.int64)
    guess = st.lists(st.integers(-40, 40), min_size=n + 1, max_size=n + 1)
    excess, potential = supply.astype(np.int64), np.array(data.draw(guess)) * exact
    start = np.searchsorted(np.concatenate([tail, head])[order], np.arange(n + 2))
    net = FlowNetwork(
        start,
        np.concatenate([head, tail])[order].astype(np.int32),
        left,
        np.concatenate([cost, -cost])[order],
        np.concatenate([place[a:], place[:a]])[order].astype(np.int32),
    )
    error, shrink = data.draw(st.sampled_from([60 * exact, exact, 5, 1])), data.draw(st.sampled_from([2, 8]))
    ship(net, excess, potential, error, shrink)  # whatever the first prices, and however right they are
    sent = left[place[a:]]
    assert not excess.any()
    assert (left >= 0).all()
    assert int(sent @ cost) == best * exact
    tail = np.repeat(np.arange(n + 1), np.diff(start))
    assert (net.price + potential[tail] - potential[net.to])[left > 0].min(initial=0) >= -1


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=10, kinds=TREES, sensitive=(1,), steps="fast"))
def test_what_the_flow_places_is_eligible(task):
    rows = Rows.of(task)
    multipliers = price(task)
    if multipliers is None:
        return
    assert_eligible(task, flow_start(task, rows, multipliers))
    filled = fill(
        task, rows.k, multipliers, np.floor(multipliers.share / multipliers.program.arcs.l + 0.5).astype(np.int64), 1024
    )
    cell, group, count = trimmed(task, multipliers.program, filled)
    assert groups_that_meet(task.histogram, task.requirement, cell, group, count, multipliers.program.loss.size)[
        group
    ].all()


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_a_class_keeps_the_largest_part_that_is_eligible(data):
    held = np.array(data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=7)))
    random = np.random.default_rng(0)
    histogram = Histogram.from_rows(
        np.repeat(random.integers(0, 1, held.size), held), np.repeat(np.arange(held.size), held)
    )
    task = Task(histogram, Requirement(1, (3,), (1,)), Recoding.stars(histogram))
    program = build(task, 0)
    assert program.loss.tolist() == [0.0]
    order = np.argsort(program.arcs.pair)
    filled = Filled(program.cell[order], program.arcs.pair[order].astype(np.int64), held, held, np.array([held.sum()]))
    kept = int(trimmed(task, program, filled)[2].sum())
    eligible = [sum(np.minimum(held, h)) for h in range(1, 10) if sum(np.minimum(held, h)) >= 3 * min(h, max(held))]
    assert kept == max(eligible)


def test_multipliers_prove_more_than_the_other_bounds_and_lead_to_a_cheaper_partition():
    histogram = census_like(3000, 3, columns=5)
    task = Task(histogram, Requirement(1, (6,), (1,)), Recoding.stars(histogram), Effort("fast"), seed=1)
    found = auto(task)
    values = found.certificate.details["bounds"]
    assert values["multipliers"] > 1.02 * max(v for name, v in values.items() if name != "multipliers")
    assert found.certificate.lower_bound == values["multipliers"]
    assert found.certificate.bound.startswith("multipliers: ")
    cost = {a["method"]: a["cost"] for a in found.attempts}
    assert found.certificate.cost == min(cost.values()) <= cost["class program"] < 0.96 * cost["cascade"]
    assert_eligible(task, found.partition)


def test_multipliers_that_rest_are_those_that_the_bound_counts():
    histogram = census_like(1500, 4, columns=5)
    task = Task(histogram, Requirement(1, (6,), (1,)), Recoding.stars(histogram))
    program = build(task, shares_column(task))
    v = program.loss.size
    ascent = start_ascent(np.zeros(program.owner.size, np.int64), np.zeros(v), 0.3)
    woken, before = 0, np.zeros(v, np.bool_)
    for _ in range(120):
        subgradient_steps(program.arcs, ascent, 1, 1e-3 * UNIT)
        resting = ascent.still > REST
        woken += int((before & ~resting).sum())
        before = resting
        assert ascent.state[0] == program.bound(ascent.best)
    assert before.any()
    assert woken > 5


def test_steps_that_fall_evenly_prove_more_in_as_many_passes():
    histogram = census_like(3000, 3, columns=5)
    task = Task(histogram, Requirement(1, (6,), (1,)), Recoding.stars(histogram))
    program = build(task, shares_column(task))
    begin = Multipliers(program, np.zeros(program.owner.size, np.int64), 0, np.zeros(program.loss.size))
    level = raised(task, begin, 100, None, FIRST_STEP)
    falling = raised(task, begin, 100, None, BOLD, FINE)
    assert falling.proved == program.bound(falling.multiplier)
    assert falling.proved > 1.01 * level.proved
    soon = raised(task, begin, 100, clock() + 1e-9, BOLD, FINE)  # a clock that has run out leaves what is proved
    assert soon.proved == program.bound(soon.multiplier)


def test_a_pass_in_parts_is_the_same_on_any_number_of_cores_and_that_of_one_part():
    histogram = census_like(1500, 4, columns=5)
    task = Task(histogram, Requirement(1, (6,), (1,)), Recoding.stars(histogram))
    program = build(task, shares_column(task))
    p, v = program.owner.size, program.loss.size

    def after(parts: int, each: Any) -> Any:
        ascent = start_ascent(np.zeros(p, np.int64), np.zeros(v), 0.3, parts)
        for _ in range(6):
            subgradient_steps(program.arcs, ascent, 5, 1e-3 * UNIT, each)
        return ascent

    whole, apart = after(1, in_turn), after(3, in_turn)
    with ThreadPoolExecutor(3) as pool:
        beside = after(3, lambda work, items: list(pool.map(work, items)))
    for a, b in zip(apart, beside, strict=True):
        assert np.array_equal(a, b)
    # Only the length of a step is summed otherwise, to the last digit of a float.
    assert apart.state[0] == pytest.approx(whole.state[0], rel=1e-6)
    assert np.abs(apart.best - whole.best).max() <= 1e-6 * whole.best.max()
    assert whole.state[0] > 0


@pytest.mark.parametrize("shrink", [None, 0.97])
@pytest.mark.parametrize(("model", "gap"), [(LDiversity(6), 79.0), (TCloseness(0.2), 110.0)])
def test_an_ascent_in_one_call_is_that_of_its_rule(model, gap, shrink):
    """The least gap is between the tenth of the first bound and that of the last, so each of the two counts."""
    histogram = census_like(600, 4, columns=4)
    need = requirement([model], histogram.sensitive_names, histogram)
    task = Task(histogram, need, Recoding.stars(histogram))
    arcs = build(task, shares_column(task)).arcs
    whole, ruled = (start_ascent(np.zeros(arcs.weight.size, np.int64), np.zeros(arcs.top.size), 0.3) for _ in range(2))
    subgradient_steps(arcs, whole, 90, gap * UNIT, shrink=shrink)
    classes, cells = (0, arcs.top.size), (0, arcs.count.size)
    run_part(arcs, ruled, MOVE, 0.0, 0, *classes)
    ascend(
        ruled.state, 90, PATIENCE if shrink is None else None, lambda _: max(GAP * ruled.state[0], gap * UNIT),
        value=lambda: run_part(arcs, ruled, CHOOSE, 0.0, 0, *cells),
        direct=lambda risen: run_part(arcs, ruled, FOLLOW, float(risen), 0, *classes),
        move=lambda step: run_part(arcs, ruled, MOVE, step, 0, *classes), shrink=shrink or 1.0,
    )  # fmt: skip
    for one, other in zip(whole, ruled, strict=True):
        assert np.array_equal(one, other)
    assert whole.state[0] > 0
    assert whole.state[1] < 0.3  # the step was shortened by either rule


def test_the_same_seed_gives_the_same_start_and_bound():
    histogram = census_like(1500, 5, columns=4)
    columns = tuple(Levels.stars(size, 0.7) for size in histogram.quasi_sizes)
    task = Task(histogram, Requirement(8, (4,), (1,)), Recoding(columns), Effort("balanced"), seed=3)
    one, two = price(task), price(task)
    assert (one.multiplier == two.multiplier).all()
    assert one.proved == two.proved
    rows = Rows.of(task)
    first, second = flow_start(task, rows, one), flow_start(task, rows, two)
    assert (first.group == second.group).all()
    assert (first.cell == second.cell).all()
    assert_eligible(task, first)


def test_a_budget_in_seconds_is_heeded(ticking):
    histogram = census_like(3000, 6, columns=4)
    task = Task(histogram, Requirement(1, (5,), (1,)), Recoding.stars(histogram), Effort("seconds", 5.0))
    rows = Rows.of(task)
    assert "multipliers" not in lower_bounds(task, until=0.0).values
    multipliers = price(task, until=clock() + 1.0)
    assert multipliers.proved > 0
    assert flow_start(task, rows, multipliers, 0.0) is None
    assert flow_start(task, rows, multipliers, clock() + 2.0) is not None


def test_where_nothing_is_asked_by_frequency_or_columns_are_sets_there_are_no_multipliers():
    histogram = census_like(200, 7, columns=2)
    stars = Recoding.stars(histogram)
    sets = Recoding(tuple(Sets.of(size) for size in histogram.quasi_sizes))
    for need, recoding in ((Requirement(5, (1,), (1,)), stars), (Requirement(1, (1,), (3,)), stars),
                           (Requirement(1, (3,), (1,)), sets)):  # fmt: skip
        assert price(Task(histogram, need, recoding)) is None


def test_rows_above_a_ceiling_have_no_class_and_there_are_no_multipliers():
    histogram = Histogram.from_rows(np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 2, 3, 0, 0]))
    task = Task(histogram, Requirement(1, (2,), (1,)), Recoding((Levels.tree(TREE, ceiling=1),)))
    assert price(task) is None


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_where_size_decides_no_flow_is_run_and_fast_leaves_the_program_out(effort):
    histogram = census_like(400, 3, columns=3)
    for k, runs in ((5, True), (6, False)):
        task = Task(histogram, Requirement(k, (3,), (1,)), Recoding.stars(histogram), Effort.of(effort))
        found = auto(task)
        assert ("class program" in [line["method"] for line in found.attempts]) == runs
        assert ("multipliers" in found.certificate.details["bounds"]) == (runs or effort != "fast")
        assert_eligible(task, found.partition)


def test_cascade_and_bounds_side_by_side_are_what_they_are_in_turn(monkeypatch):
    histogram = census_like(3000, 3, columns=4)
    task = Task(histogram, Requirement(1, (3,), (1,)), Recoding.stars(histogram), Effort("fast"))
    alone = auto(task)
    monkeypatch.setattr("shoal.problems.tables.auto.LARGE_ROWS", 1)
    beside = auto(task)
    assert beside.certificate.details["bounds"] == alone.certificate.details["bounds"]
    assert [(a["method"], a["cost"]) for a in beside.attempts] == [(a["method"], a["cost"]) for a in alone.attempts]
    assert np.array_equal(beside.partition.group, alone.partition.group)
