"""Lower bounds never above the optimum, checked one by one; the price condition rechecked by plain enumeration."""

from itertools import combinations, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies

from shoal.clock import clock
from shoal.kernels.tables.multipliers import BoundedRows, Classes, Tight
from shoal.kernels.tables.near_cells import CellsByPrice, Nearest, far_slack
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.bounds import bounds as module
from shoal.problems.tables.bounds import boxes, near_cells
from shoal.problems.tables.bounds.bounds import Ascent, Sweeper, lower_bounds, subgradient_steps
from shoal.problems.tables.groups import least_rows
from shoal.problems.tables.losses import Lattice
from tests.amount import thinned
from tests.oracles.tables import eligible, least_loss, row_loss
from tests.tables.drawn import TREE, census_like, classes, halved, tasks, total


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=8, steps="thorough", least=3), program=strategies.booleans())
def test_no_bound_is_above_the_optimum(task, program):
    best = least_loss(task.histogram, task.requirement, task.recoding)
    found = lower_bounds(task, program=program)
    for value in found.values.values():
        assert total(task, value) <= best + 1e-9
    near = near_cells.neighbors(task, None)
    assert float(near @ task.histogram.count) <= best + 1e-9


@settings(deadline=None, max_examples=80)
@given(task=tasks(most=7, kinds=("stars", "tree", "heavy")))
def test_no_eligible_group_of_any_class_is_dearer_than_its_cost(task):
    lattice = Lattice.of(task.recoding)
    sweeper = Sweeper(task, lattice)
    first = sweeper.run(0, np.zeros(0), np.zeros(0, bool), None)
    raised = sweeper.ascend(first, 3, None, 0.0)
    half = sweeper.ascend(first, 3, clock() + 5e3, 1e3)
    for prices in (first, half, raised, sweeper.program(20.0)):
        if prices is not None:
            check_by_enumeration(task, lattice, sweeper.feasible(prices, None))
    for some in (half, raised):
        assert some is None or (some >= first - 1e-9).all()


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=7, kinds=("stars", "tree", "heavy")), seed=strategies.integers(0, 99))
def test_any_prices_are_lowered_to_prices_that_prove_and_climbed_prices_prove(task, seed):
    lattice = Lattice.of(task.recoding)
    sweeper, drawn = Sweeper(task, lattice), np.random.default_rng(seed)
    first = sweeper.run(0, np.zeros(0), np.zeros(0, bool), None)
    best = least_loss(task.histogram, task.requirement, task.recoding)
    moved = sweeper.by_subgradients(sweeper.feasible(first, None), None)
    anywhere = drawn.normal(1, 1, task.histogram.cells)
    for prices in (
        sweeper.feasible(anywhere, None),
        sweeper.feasible(first * drawn.uniform(0.5, 2, task.histogram.cells), None),
        moved.feasible,
    ):
        if prices is not None:
            check_by_enumeration(task, lattice, prices)
            assert float(prices @ task.histogram.count) <= best + 1e-9
    if not sweeper.per_value:
        for prices in (anywhere, first * drawn.uniform(0.5, 2, task.histogram.cells), moved.prices):
            over = sweeper.run(6, prices, np.zeros(0, bool), None, 0.0)[0]
            assert float(prices @ task.histogram.count) - over <= best + 1e-9


@settings(deadline=None, max_examples=40)
@given(task=tasks(most=8, kinds=("stars", "tree", "heavy")), seed=strategies.integers(0, 99))
def test_classes_written_down_are_those_that_looking_at_every_class_finds(task, seed):
    h, lattice = task.histogram, Lattice.of(task.recoding)
    sweeper, drawn = Sweeper(task, lattice), np.random.default_rng(seed)
    if sweeper.per_value:
        return
    price, left = drawn.integers(-2, 9, h.cells) / 4, 0.3001
    room = [Tight.empty(10_000, h.rows) for _ in range(sweeper.workers)]
    sweeper.run(4, price, np.zeros(0, bool), None, left, room)
    found = Classes.of(room)
    held = [frozenset(found.member[b:e].tolist()) for b, e in pairwise(found.start)]
    cost_of: dict[frozenset[int], float] = {}
    for some, cost in classes(task, lattice):
        cost_of[frozenset(some)] = min(cost, cost_of.get(frozenset(some), np.inf))
    wanted, above = set(), 0.0
    for inside, cost in cost_of.items():
        distinct = [np.unique(h.sensitive[list(inside), j]).size for j in sweeper.asked]
        if h.count[list(inside)].sum() >= task.requirement.smallest and all(
            n >= k for n, k in zip(distinct, sweeper.distinct, strict=True)
        ):
            choices = [(over / n, over) for n, over, _ in enough(sweeper, price, inside, cost)]
            if -sweeper.group * max(mean for mean, _ in choices) < left:
                wanted.add(inside)
            above += max(0.0, *(over for _, over in choices))
    assert set(held) == wanted
    with mock.patch.object(Sweeper, "workers", 3), mock.patch.object(module, "each", last_first):
        assert sweeper.run(6, price, np.zeros(0, bool), None, 0.0)[0] == pytest.approx(above)
    most, proved, distinct = (
        np.full(h.cells, 9.0),
        float(price @ h.count),
        int(sweeper.distinct[0]) if sweeper.mixed else 1,
    )
    value = sweeper.sensitive[:, 0].astype(np.int64) if sweeper.mixed else np.zeros(h.cells, np.int64)
    best, state = price.copy(), np.array([-np.inf, 0.0, 0.0])
    way = Ascent(price.copy(), best, np.zeros(h.cells), state)
    subgradient_steps(found, BoundedRows(h.count, value, distinct, sweeper.group), most, way, 1, 0.0, 1.0)
    for inside, cost in zip(held, found.cost.tolist(), strict=True):
        proved -= max(0.0, *(over for _, over, _ in enough(sweeper, price, inside, cost)))
    assert state[0] == pytest.approx(proved)


def last_first(work, items, _):
    """What several cores do, where the last finds all of it to do."""
    return [work(item) for item in reversed(items)]


def enough(sweeper: Sweeper, price: np.ndarray, inside: frozenset[int], cost: float):
    """Every choice of K rows or more of some cells with the values needed: rows, what they pay above, cells."""
    h = sweeper.task.histogram
    rows = [c for c in sorted(inside) for _ in range(int(h.count[c]))]
    for n in range(sweeper.group, len(rows) + 1):
        for chosen in combinations(rows, n):
            if not sweeper.mixed or len({int(h.sensitive[c, sweeper.asked[0]]) for c in chosen}) >= sweeper.distinct[0]:
                yield n, float(sum(price[c] - cost for c in chosen)), set(chosen)


def test_subgradients_take_the_most_that_a_class_can_be_above_its_cost():
    """One class of five cells against every choice of its rows, K and number of values."""
    random = np.random.default_rng(5)
    for _ in range(thinned(300)):
        count, value = random.integers(1, 3, 5), random.integers(0, 3, 5)
        price, cost = random.integers(-12, 12, 5) / 4.0, 1.0
        k, distinct = int(random.integers(1, 6)), int(random.integers(1, np.unique(value).size + 1))
        group_of = max(k, distinct)
        one = Classes(np.zeros((1, 2), np.int64), np.array([0, 5]), np.array([cost]), np.arange(5, dtype=np.int32))
        rows, over = np.repeat(np.arange(5), count), 0.0
        for n in range(group_of, rows.size + 1):
            for some in map(list, combinations(rows, n)):
                if np.unique(value[some]).size >= distinct:
                    over = max(over, float((price[some] - cost).sum()))
        state, room = np.array([-np.inf, 0.0, 0.0]), np.zeros(5)
        if rows.size >= group_of:
            way = Ascent(price.copy(), room, room + 0, state)
            subgradient_steps(one, BoundedRows(count, value, distinct, group_of), room + 9, way, 1, 0.0, 1.0)
            assert state[0] == pytest.approx(float(price @ count) - over)


@settings(deadline=None, max_examples=80)
@given(task=tasks(most=8, kinds=("stars", "tree", "heavy"), sensitive=(1, 2)), seed=strategies.integers(0, 99))
def test_a_sweep_finds_how_far_the_dearest_groups_are_above_their_cost(task, seed):
    """By the mean of any rows that could be a group, each row's own among them; prices of either sign."""
    h, lattice = task.histogram, Lattice.of(task.recoding)
    sweeper, drawn = Sweeper(task, lattice), np.random.default_rng(seed)
    if not sweeper.mixed:
        return
    price = drawn.integers(-12, 12, h.cells) / 4
    expected = np.zeros(h.cells)
    for inside, cost in classes(task, lattice):
        distinct = [np.unique(h.sensitive[inside, j]).size for j in sweeper.asked]
        if any(n < k for n, k in zip(distinct, sweeper.distinct, strict=True)):
            continue
        for n, over, chosen in enough(sweeper, price, frozenset(inside), cost):
            for c in chosen:
                expected[c] = min(expected[c], -sweeper.group * over / n)
    found = sweeper.run(5, price, np.zeros(0, bool), None, 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_prices_of_either_sign_prove_more_where_a_value_is_scarce(monkeypatch):
    monkeypatch.setattr(module, "SMALL", dict.fromkeys(module.SMALL, 0))
    table = census_like(900, 3, columns=4)
    scarce = (np.random.default_rng(2).random(table.cells) < 0.04).astype(np.int64)[:, None]
    table = Histogram.from_rows(
        np.repeat(table.quasi, table.count, axis=0), np.repeat(scarce, table.count, axis=0)[:, 0]
    )
    recoding = Recoding(tuple(halved(size) for size in table.quasi_sizes))
    task = Task(table, Requirement(4, (1,), (2,)), recoding, Effort("thorough"))
    found = lower_bounds(task)
    assert found.values["subgradients"] > 1.05 * found.values["dual ascent"]
    assert (found.prices < 0).any()


def test_subgradients_prove_more_than_dual_ascent(monkeypatch):
    monkeypatch.setattr(module, "SMALL", dict.fromkeys(module.SMALL, 0))
    histogram = census_like(1500, 3, columns=4)
    columns = tuple(halved(size) for size in histogram.quasi_sizes)
    for k in (10, 25):
        task = Task(histogram, Requirement(k, (1,), (1,)), Recoding(columns), Effort("thorough"))
        found = lower_bounds(task).values
        assert found["subgradients"] > 1.01 * found["dual ascent"]
    assert lower_bounds(task).values == found


def check_by_enumeration(task: Task, lattice: Lattice, prices: np.ndarray) -> None:
    h, need = task.histogram, task.requirement
    for cells, cost in classes(task, lattice):
        rows = np.repeat(cells, h.count[cells]).tolist()
        for n in range(1, len(rows) + 1):
            for chosen in combinations(rows, n):
                values = [tuple(h.sensitive[c]) for c in chosen]
                if eligible(values, need.k, need.frequency, need.distinct):
                    assert sum(prices[c] for c in chosen) <= n * cost + 1e-9


def swept(rows: int, need: Requirement) -> tuple[Histogram, Task, Sweeper]:
    """A table of a few rows with a sensitive value, a task on it, and its sweeps."""
    drawn = np.random.default_rng(3)
    found = Histogram.from_rows(drawn.integers(0, 4, (rows, 3)), drawn.integers(0, 3, (rows, 1)))
    task = Task(found, need, Recoding((Levels.tree(TREE),) * 3, "ncp"), Effort("thorough"))
    return found, task, Sweeper(task, Lattice.of(task.recoding))


@pytest.mark.parametrize("turns", [1, 2])
def test_steps_are_proved_though_there_is_no_time_for_the_classes_after_them(turns, monkeypatch):
    found, _, sweeper = swept(60, Requirement(8, (1,), (2,)))
    real, left = Sweeper.tight, iter([True] * turns)
    start = sweeper.feasible(np.full(found.cells, 0.5), None)
    monkeypatch.setattr(Sweeper, "tight", lambda *given: real(*given) if next(left, False) else None)
    moved = sweeper.by_subgradients(start, None)
    assert moved.classes is not None
    assert float(moved.feasible @ found.count) > float(start @ found.count)
    assert float(moved.prices @ found.count) - moved.over > float(start @ found.count)
    np.testing.assert_allclose(sweeper.feasible(moved.feasible, None), moved.feasible, atol=1e-9)


def test_what_classes_exceed_their_cost_by_is_taken_off_the_bound():
    found, task, sweeper = swept(90, Requirement(3, (1,), (3,)))
    first = sweeper.run(0, np.zeros(0), np.zeros(0, bool), None)
    moved = sweeper.by_subgradients(sweeper.ascend(first, module.ROUNDS["thorough"], None, 0.0), None)
    assert moved.over > 1e-3
    proved = float(moved.prices @ found.count) - moved.over
    value = lower_bounds(task, program=False).values["subgradients"]
    assert total(task, value) == pytest.approx(max(proved, float(moved.feasible @ found.count)))


def test_without_room_for_all_rows_of_a_class_its_dearest_are_written_down(monkeypatch):
    found, _, sweeper = swept(90, Requirement(2, (1,), (2,)))
    start = np.full(found.cells, 0.5)
    whole = sweeper.tight(start, 1.0, None)
    real = Tight.empty
    monkeypatch.setattr(module, "SCARCE", 1)
    monkeypatch.setattr(Tight, "empty", lambda members, rows: real(members if rows == 2 else 160, rows))
    part = sweeper.tight(start, 1.0, None)
    assert np.array_equal(part.name, whole.name)
    assert part.member.size < whole.member.size


def plainly(task: Task, sweeper: Sweeper, mode: int, price: np.ndarray, active: np.ndarray) -> np.ndarray:
    """What a sweep returns, by looking at every class of every node."""
    h, k = task.histogram, sweeper.group
    asked = sweeper.asked
    out = np.full(h.cells, np.inf)
    for inside, cost in classes(task, sweeper.lattice):
        if h.count[inside].sum() < task.requirement.smallest:
            continue
        distinct = [len({int(h.sensitive[c, j]) for c in inside}) for j in asked]
        if any(n < least for n, least in zip(distinct, sweeper.distinct, strict=True)):
            continue
        awake = sum(int(h.count[c]) for c in inside if active[c]) if mode == 2 else 0
        for c in inside:
            if mode == 0:
                out[c] = min(out[c], cost)
                continue
            if mode == 2 and not active[c]:
                continue
            if sweeper.per_value:
                best = {int(v): -np.inf for v in h.sensitive[inside, asked[0]]}
                for x in inside:
                    v = int(h.sensitive[x, asked[0]])
                    best[v] = max(best[v], price[x])
                del best[int(h.sensitive[c, asked[0]])]
                others = sorted(best.values(), reverse=True)[: k - 1]
            else:
                rows = [price[x] for x in inside for _ in range(int(h.count[x]) - (x == c))]
                others = sorted(rows, reverse=True)[: k - 1]
            slack = k * cost - price[c] - sum(others)
            out[c] = min(out[c], slack / (min(k, awake) if mode == 2 else 1))
    return out


@settings(deadline=None, max_examples=150)
@given(task=tasks(most=8, kinds=("stars", "tree", "heavy")), data=strategies.data())
def test_a_sweep_finds_what_looking_at_every_class_finds(task, data):
    sweeper = Sweeper(task, Lattice.of(task.recoding))
    m = task.histogram.cells
    price = np.array(data.draw(strategies.lists(strategies.integers(-2, 9), min_size=m, max_size=m))) / 4
    active = np.array(data.draw(strategies.lists(strategies.booleans(), min_size=m, max_size=m)), bool)
    for mode in (0, 1, 2):
        found = sweeper.run(mode, price, active, None)
        assert found == pytest.approx(plainly(task, sweeper, mode, price, active), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "need", [Requirement(4), Requirement(3, (1,), (3,)), Requirement(1, (3,), (1,)), Requirement(2, (4,), (1,))]
)
def test_a_sweep_of_a_census_like_table_finds_what_looking_at_every_class_finds(need, seed):
    histogram = census_like(70, seed, columns=4, values=5)
    task = Task(histogram, need, Recoding.stars(histogram), Effort("thorough"))
    sweeper = Sweeper(task, Lattice.of(task.recoding))
    random = np.random.default_rng(seed)
    price, active = random.exponential(1, histogram.cells) - 0.2, random.random(histogram.cells) < 0.5
    for mode in (0, 1, 2):
        found = sweeper.run(mode, price, active, None)
        assert found == pytest.approx(plainly(task, sweeper, mode, price, active), abs=1e-9)


def test_the_linear_program_proves_what_the_cheapest_node_cannot():
    # Three rows a, b, c of k = 2: each has a partner at one star, but one of them shares a group of two stars or three.
    h = Histogram.from_rows(np.array([[0, 0], [0, 1], [1, 1]]))
    task = Task(h, Requirement(2), Recoding.stars(h))
    found = lower_bounds(task).values
    assert found["cheapest node"] == 3
    assert found["linear program"] > 3
    assert least_loss(h, task.requirement, task.recoding) == 6


def test_dual_ascent_raises_the_bound_on_a_census_like_table(monkeypatch):
    monkeypatch.setattr(module, "SMALL", dict.fromkeys(module.SMALL, 0))
    histogram = census_like(1500, 3, columns=4)
    columns = tuple(Levels.stars(size) for size in histogram.quasi_sizes)
    for need in (Requirement(5, (1,), (1,)), Requirement(1, (4,), (1,)), Requirement(3, (1,), (3,))):
        task = Task(histogram, need, Recoding(columns), Effort("thorough"))
        found = lower_bounds(task).values
        assert found["dual ascent"] > 1.002 * found["cheapest node"]


def test_combined_is_at_least_both_of_its_parts():
    histogram = census_like(800, 4, columns=3)
    task = Task(histogram, Requirement(1, (4,), (1,)), Recoding.stars(histogram))
    found = lower_bounds(task).values
    assert found["combined"] >= max(found["tuples"], found["cheapest node"])


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_a_sweep_that_does_not_fit_is_left_out(effort, monkeypatch):
    monkeypatch.setattr(module, "LOOKS", {"fast": 10, "balanced": 10, "thorough": 10})
    h = Histogram.from_rows(np.arange(40) % 4)
    task = Task(h, Requirement(2), Recoding((Levels.tree(TREE),)), Effort(effort))
    assert lower_bounds(task).values.keys() <= {"neighbors", "boxes", "raised boxes", "columns of boxes"}


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=7, kinds=("stars",), steps="thorough", least=3))
def test_no_bound_on_stars_is_above_the_optimum(task):
    best = least_loss(task.histogram, task.requirement, task.recoding)
    for value in lower_bounds(task).values.values():
        assert value <= best


def cheapest_boxes(task: Task) -> np.ndarray:
    """Per cell, the least loss of any cells with it that hold enough rows and values: every choice."""
    h, need, rows = task.histogram, task.requirement, least_rows(task.histogram, task.requirement)
    distinct, column = max((max(f, u), -j) for j, (f, u) in enumerate(zip(need.frequency, need.distinct, strict=True)))
    best = np.full(h.cells, np.inf)
    for n in range(1, h.cells + 1):
        for chosen in map(list, combinations(range(h.cells), n)):
            if h.count[chosen].sum() >= rows and np.unique(h.sensitive[chosen, -column]).size >= distinct:
                loss = row_loss(task.recoding, [tuple(map(int, h.quasi[c])) for c in chosen])
                best[chosen] = np.minimum(best[chosen], loss)
    return best


def two_in_one_group() -> Task:
    """Each group has the last two rows, so with at most half of its rows of a value, it has four rows or more."""
    quasi, sensitive = [[0, 0, 0], [0, 0, 0], [0, 2, 0], [0, 2, 0], [0, 2, 1]], [[0, 1], [0, 3], [0, 3], [2, 1], [1, 1]]
    times = [1, 2, 1, 1, 1]
    table = Histogram.from_rows(np.repeat(quasi, times, axis=0), np.repeat(sensitive, times, axis=0))
    return Task(table, Requirement(1, (1, 2), (3, 1)), Recoding(tuple(Levels.stars(s) for s in table.quasi_sizes)))


@settings(deadline=None, max_examples=80)
@given(task=tasks(most=8, sensitive=(1, 2)), near=strategies.integers(1, 8), nodes=strategies.integers(1, 40))
@example(task=two_in_one_group(), near=1, nodes=1)
def test_every_row_has_its_cheapest_box_and_a_cut_search_never_more(task, near, nodes):
    plain, found, *_ = boxes.box_prices(task, near_cells.Pairs.of(task), (8, 400), 3, None)
    expected = cheapest_boxes(task)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    _, cut, *_ = boxes.box_prices(task, near_cells.Pairs.of(task), (near, nodes), 0, None)
    assert (cut <= expected + 1e-9).all()
    assert (cut >= 0).all()
    np.testing.assert_allclose(plain, near_cells.neighbors(task, None), atol=1e-12)
    assert (found >= plain - 1e-9).all()


def test_boxes_hold_as_many_rows_as_shares_make_of_a_group():
    """At most half of a group's rows have a value, and two values occur: three rows are none, four are one."""
    rows, values = np.array([[0, 0], [0, 0], [0, 0], [0, 1]]), np.array([[0, 0], [2, 0], [2, 0], [0, 0]])
    table = Histogram.from_rows(rows, values)
    task = Task(table, Requirement(3, (2, 1), (1, 1)), Recoding(tuple(Levels.stars(s) for s in table.quasi_sizes)))
    plain, found, *_ = boxes.box_prices(task, near_cells.Pairs.of(task), (8, 400), 3, None)
    assert (found == plain).all()
    assert table.count @ found == least_loss(table, task.requirement, task.recoding) == 4


def test_rows_that_share_a_new_value_share_its_price():
    """Boxes of four and five rows over sets, where several rows ask for the same."""
    random = np.random.default_rng(12)
    for k in (4, 5) * 15:
        table = Histogram.from_rows(random.integers(0, 4, (9, 3)), np.zeros(9, int))
        recoding = Recoding(tuple(Sets.of(s) for s in table.quasi_sizes), "ncp")
        task = Task(table, Requirement(k, (1,), (1,)), recoding)
        found = boxes.box_prices(task, near_cells.Pairs.of(task), (8, 400), 0, None)[1]
        np.testing.assert_allclose(found, cheapest_boxes(task), atol=1e-9)


@settings(deadline=None, max_examples=80)
@given(task=tasks(most=8), near=strategies.integers(1, 8), nodes=strategies.integers(1, 60))
def test_raised_prices_are_paid_by_every_eligible_group(task, near, nodes):
    """Any K rows of a box with an eligible group; no search is finished, or cells are not near, in most examples."""
    h, need = task.histogram, task.requirement
    _, first, *raised = boxes.box_prices(task, near_cells.Pairs.of(task), (near, nodes), 4, None)
    best = least_loss(h, need, task.recoding)
    cells = np.repeat(np.arange(h.cells), h.count)
    for prices in (first, *raised):
        assert float(prices @ h.count) <= best + 1e-9
        assert (prices >= first - 1e-12).all()
        for n in range(1, cells.size + 1):
            for some in map(list, combinations(cells, n)):
                values = [tuple(h.sensitive[c]) for c in some]
                if eligible(values, need.k, need.frequency, need.distinct):
                    loss = row_loss(task.recoding, [tuple(map(int, h.quasi[c])) for c in some])
                    assert prices[some].sum() <= n * loss + 1e-9


def test_boxes_that_are_not_near_leave_no_less_than_is_said():
    """Against every choice of K rows with a cell that is not near, at any prices."""
    random = np.random.default_rng(3)
    for _ in range(40):
        table = Histogram.from_rows(random.integers(0, 3, (8, 3)))
        task = Task(table, Requirement(3), Recoding(tuple(Sets.of(s) for s in table.quasi_sizes), "ncp"))
        p = near_cells.Pairs.of(task)
        near, far, _ = near_cells.nearest_cells(p, 2, None)
        price, found = random.random(table.cells) * 2, np.zeros(table.cells)
        order, base = np.argsort(-price), np.zeros(table.cells)
        by_price = CellsByPrice(price, base, order, p.columns(order))
        far_slack(p.cells, p.index.column, 0, table.cells, by_price, Nearest(near, far), found)
        rows = np.repeat(np.arange(table.cells), p.cells.count)
        for some in map(list, combinations(rows, 3)):
            quasi = [tuple(map(int, table.quasi[p.order[c]])) for c in some]
            left = 3 * row_loss(task.recoding, quasi) - price[some].sum()
            for i in some:
                if set(some) - {i, *near[i].tolist()}:
                    assert found[i] <= left + 1e-9


@pytest.mark.parametrize("wide", [True, False])
def test_near_cells_are_those_of_all_pairs(wide):
    """Every kind of column, in more blocks than one; cells that agree in first columns, and cells that do not."""
    random = np.random.default_rng(8)
    sizes = (300, 280, 400, 500, 350) if wide else (3, 2, 4, 60, 3)
    table = Histogram.from_rows(
        np.stack([random.integers(0, s, 2400) for s in sizes], axis=1), random.integers(0, 4, 2400)
    )
    columns = (
        halved(sizes[0]),
        Sets.of(sizes[1]),
        Ranges.of(random.random(sizes[2]).cumsum()),
        *map(halved, sizes[3:]),
    )
    task = Task(table, Requirement(4, (1,), (3,)), Recoding(columns, "ncp"))
    p = near_cells.Pairs.of(task)
    cells = p.cells
    for at, width in zip(cells.at[cells.shape == 0], cells.width[cells.shape == 0], strict=True):
        cells.losses[at : at + width * width : width + 1] = 0.5  # what a value loses by itself is no matter of two rows
    near, far, out = near_cells.nearest_cells(p, 6, None)
    for i in random.choice(table.cells, 40, replace=False):
        apart = np.zeros(table.cells)
        for j, (at, shape, width) in enumerate(zip(cells.at, cells.shape, cells.width, strict=True)):
            a, code, of = cells.code[i, j], cells.code[:, j], cells.losses[at:]
            loss = (
                of[a * width + code]
                if shape == 0
                else np.abs(of[code] - of[a])
                if shape == 1
                else np.full(code.size, of[0])
            )
            apart += np.where(code == a, 0.0, loss)
        others = np.delete(np.arange(table.cells), i)
        order = others[np.argsort(apart[others], kind="stable")]
        np.testing.assert_allclose(apart[near[i]], apart[order[:6]], atol=1e-12)
        assert i not in near[i]
        assert np.unique(near[i]).size == 6
        assert far[i] == pytest.approx(apart[order[5]], abs=1e-12)
        rows = cells.count[i] + np.cumsum(cells.count[order])
        values = [np.unique(cells.value[[i, *order[: y + 1]]]).size for y in range(60)]
        needed = max(apart[order[np.argmax(rows >= 4)]], apart[order[np.argmax(np.array(values) >= 3)]])
        assert out[i] == pytest.approx(needed, abs=1e-12)


def test_prices_whose_raise_was_cut_off_are_still_paid(ticking, monkeypatch):
    """The clock stops a raise among the cells: those it reached rose, and no more than if all had."""
    monkeypatch.setattr(near_cells, "AT_ONCE", 1)
    random, partly = np.random.default_rng(5), 0
    for _ in range(12):
        table = Histogram.from_rows(random.integers(0, 3, (7, 3)))
        task = Task(table, Requirement(2), Recoding(tuple(Sets.of(s) for s in table.quasi_sizes), "ncp"))
        best = least_loss(table, task.requirement, task.recoding)
        whole = boxes.box_prices(task, near_cells.Pairs.of(task), (4, 60), 1, None)
        for seconds in np.arange(0.0, 0.4, 0.01):
            found = boxes.box_prices(task, near_cells.Pairs.of(task), (4, 60), 1, clock() + seconds)
            for prices in found:
                assert float(prices @ table.count) <= best + 1e-9
            if len(found) == 3:
                assert (found[2] <= whole[2] + 1e-9).all()
                partly += bool((found[2] > found[1] + 1e-9).any() and (found[2] < whole[2] - 1e-9).any())
    assert partly


def sets_and_a_range(rows: int) -> Task:
    table = census_like(rows, 4, columns=5)
    columns = tuple(Sets.of(s) if j else Ranges.of(np.arange(s) * 1.0) for j, s in enumerate(table.quasi_sizes))
    return Task(table, Requirement(5, (1,), (3,)), Recoding(columns, "ncp"))


def test_boxes_prove_more_than_pairs_raised_ones_more_than_these_and_columns_most(ticking):
    task = sets_and_a_range(450)
    found = lower_bounds(task)
    assert found.best[0] == "columns of boxes"
    near, plain, raised = (
        module.total(task, some) for some in boxes.box_prices(task, near_cells.Pairs.of(task), (400, 60), 14, None)
    )
    assert near == found.values["neighbors"]
    assert plain > 1.15 * near
    assert raised > 1.005 * plain
    assert found.best[1] > raised
    assert boxes.box_search(task, "fast", None) == boxes.BOXES[-2]
    assert boxes.box_search(task, "fast", clock() + 60) == boxes.BOXES[-2]
    assert boxes.box_search(task, "thorough", None) == boxes.BOXES[0]
    assert boxes.box_search(task, "thorough", clock() + 0.02) in boxes.BOXES[1:]
    assert boxes.box_search(task, "fast", 0.0) is None
    assert boxes.box_search(task, "thorough", 0.0) is None
    assert boxes.without_lattice(task, "thorough", 0.0) == {}


def test_boxes_of_some_cells_leave_the_others_what_pairs_prove(ticking):
    task = sets_and_a_range(450)
    near = near_cells.neighbors(task, None)
    whole = boxes.box_prices(task, near_cells.Pairs.of(task), (16, 400), 0, None)[1]
    for seconds in (0.0, 0.02, 0.1):
        found = boxes.box_prices(task, near_cells.Pairs.of(task), (16, 16), 0, clock() + seconds)
        for some in found:
            assert (some >= found[0]).all()
            assert (some <= np.maximum(whole, near) + 1e-9).all()


def test_quick_answers_say_something_of_their_distance():
    table = census_like(1500, 7, columns=4)
    recoding = Recoding(tuple(halved(s) for s in table.quasi_sizes), "ncp")
    quick = group(table, KAnonymity(5), recoding=recoding, effort="fast", seed=1).certificate
    assert quick.ratio <= 1.5
    assert quick.lower_bound > 1.15 * quick.details["bounds"]["cheapest node"]
