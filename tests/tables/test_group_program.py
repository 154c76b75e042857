"""Groups that a cheaper partition may use: all are listed and no other, and their program proves no more than is so."""

from collections import Counter
from itertools import combinations, combinations_with_replacement, pairwise, product
from unittest import mock

import numpy as np
import pytest

from shoal.clock import clock
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.problems.tables.exact import group_program
from shoal.problems.tables.exact.group_program import GroupProgram, largest
from shoal.problems.tables.exact.pattern_model import SharedPrices, conditions_of, model_of, places_of, row_classes_of
from shoal.problems.tables.exact.pattern_relaxation import crowded_set_cuts, three_row_cuts
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import patterns
from tests.amount import thinned
from tests.oracles.tables import eligible, least_loss
from tests.tables.drawn import few


def drawn(random: np.random.Generator, most: int):
    """A task that asks one thing of up to one sensitive column; None where the table does not meet it."""

    def need(table: Histogram) -> Requirement:
        k, s = int(random.integers(1, 4)), len(table.sensitive_names)
        what = int(random.integers(3))
        l, u = (int(x) for x in random.integers(1, 4, 2) * [what == 1, what == 2] + [what != 1, what != 2])
        return Requirement(k, (l,) * s, (u,) * s)

    task = few(random, (2, most + 1), (0, 2), 4, need)
    return None if task is None or len(conditions_of(task.requirement)) > 1 else task


def parts_of(task):
    """What ``GroupProgram.listed`` takes: row classes, places, patterns, and the loss of each."""
    costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
    found = patterns(costs, task.recoding, task.requirement.smallest)
    return kinds, places_of(kinds, found, task.requirement), found, found.loss / costs.scale


def may_be(need, kinds, some):
    """Whether rows of these classes are eligible."""
    asked = [(need.frequency[j], need.distinct[j]) for j in need.sensitive_columns]
    return eligible(
        [tuple(kinds.value[t].tolist()) for t in some], need.k, *(zip(*asked, strict=True) if asked else ((), ()))
    )


def no_lines(places):
    return SharedPrices(0.0, np.zeros((1, places.patterns)), np.zeros(places.row_class.size))


def test_all_groups_up_to_a_cost_are_listed_once_and_no_other():
    random, tried, partly = np.random.default_rng(41), 0, 0
    for task in filter(None, (drawn(random, 7) for _ in range(thinned(220)))):
        need, (kinds, places, found, loss) = task.requirement, parts_of(task)
        sorts = len(conditions_of(need)[0][2])
        price = random.normal(0.5, 0.5, kinds.count.size)
        added = SharedPrices(
            0.1, np.tile(random.normal(0, 0.2, loss.size), (sorts, 1)), random.normal(0, 0.2, places.pattern.size)
        )
        rows = np.repeat(np.arange(kinds.count.size), kinds.count).tolist()
        where = {(int(t), int(p)): i for i, (t, p) in enumerate(zip(places.row_class, places.pattern, strict=True))}
        cheapest = np.argsort(loss, kind="stable").tolist()
        every, loses = {}, {}
        for n in range(1, min(len(rows), largest(need, len(rows))) + 1):
            for some in set(combinations(rows, n)):
                if not may_be(need, kinds, some):
                    continue
                p = next(p for p in cheapest if all((t, p) in where for t in some))
                loses[some] = loss[p] * n
                every[some] = added.uses[:, p].min() + sum(loss[p] - price[t] + added.rows[where[t, p]] for t in some)
        below = sum(
            kinds.count[places.row_class[places.pattern == p]].sum() // need.smallest * min(least, 0.0)
            for p in range(loss.size)
            if (least := least_of(p, kinds, places, need, loss, price, added)) is not None
        )
        base = added.proved + price @ kinds.count + below
        for enough in (*(base + np.quantile(list(every.values()), [0.2, 0.6])), np.inf):
            program = GroupProgram.listed(
                kinds, places, found, need, (loss, enough), (price, added), model_of(kinds, places, need, loss)
            )
            listed = [tuple(np.repeat(c.indices, c.data.astype(int)).tolist()) for c in columns(program.rows)]
            good = {some for some, cost in every.items() if cost <= enough - base + 1e-6}
            near = {some for some, cost in every.items() if abs(cost - enough + base - 1e-6) < 1e-7}
            assert max(Counter(listed).values(), default=1) == 1
            assert set(listed) - near == good - near
            assert [loses[some] for some in listed] == pytest.approx(program.cost.tolist())
            tried, partly = tried + 1, partly + (0 < len(good) < len(every))
    assert tried > thinned(200)
    assert partly > thinned(80)


def least_of(p, kinds, places, need, loss, price, added):
    """The least cost of a group of any size in a pattern beyond its prices; None where it has none."""
    here = np.flatnonzero(places.pattern == p)
    every = np.repeat(here, kinds.count[places.row_class[here]]).tolist()
    costs = [
        added.uses[:, p].min() + sum(loss[p] - price[places.row_class[x]] + added.rows[x] for x in some)
        for n in range(1, len(every) + 1)
        for some in set(combinations(every, n))
        if may_be(need, kinds, [places.row_class[x] for x in some])
    ]
    return min(costs, default=None)


@pytest.mark.parametrize(("k", "l"), [(1, 2), (2, 2), (3, 2), (5, 2), (1, 3), (3, 3), (4, 3), (2, 4)])
def test_a_group_above_the_largest_size_is_two_groups(k: int, l: int) -> None:
    """Every choice of rows of up to five values, as many as there can be."""
    most = largest(Requirement(k, (l,), (1,)), 100)

    def good(held: tuple[int, ...]) -> bool:
        return sum(held) >= k and l * max(held) <= sum(held)

    tried = 0
    for held in combinations_with_replacement(range(most + 2), 5):
        if not most <= sum(held) <= most + 2 or not good(held):
            continue
        splits = any(
            good(some) and good(tuple(a - b for a, b in zip(held, some, strict=True)))
            for some in product(*(range(n + 1) for n in held))
        )
        assert splits or sum(held) == most
        tried += sum(held) > most
    assert tried > 2


def test_the_search_over_listed_groups_ends_at_the_optimum_and_bounds_never_exceed_it():
    random, tried, cheaper, cut, branched, short = np.random.default_rng(42), 0, 0, 0, 0, 0
    for task in filter(None, (drawn(random, 9) for _ in range(thinned(260)))):
        need, (kinds, places, found, loss) = task.requirement, parts_of(task)
        best = least_loss(task.histogram, need, task.recoding)
        unit = 1 / Costs.of(task.histogram, task.recoding).scale
        price = random.uniform(0.2, 1.0) * best / task.histogram.rows * np.ones(kinds.count.size)
        for enough in (best - unit, best, best + 0.4, 2.0 * best + 1.0):
            program = GroupProgram.listed(
                kinds,
                places,
                found,
                need,
                (loss, enough),
                (price, no_lines(places)),
                model_of(kinds, places, need, loss),
            )
            program.tighten(enough, clock() + 60)
            assert enough < best or program.proved <= best + 1e-6
            dived = program.dives(enough, unit, clock() + 60)
            costs = [cost_of(x, task, kinds, places, loss) for x in dived]
            assert all(best - 1e-6 <= cost <= enough + 1e-6 for cost in costs)
            assert all(b <= a - unit + 1e-6 for a, b in pairwise(costs))
            most = min([enough, *(cost - unit for cost in costs)])
            program.remove_costly(most)
            lines = program.lines.shape[0]
            answers, proved = program.branched(most, unit, clock() + 60)
            costs += [cost_of(x, task, kinds, places, loss) for x in answers]
            assert proved <= best + 1e-6
            if enough < best - 1e-9:
                assert not costs
                stuck = proved <= enough
            else:
                stuck = min([np.inf, *costs]) > best + 1e-6 or proved < best - 1e-4
            short += stuck
            assert not stuck or (kinds.count > 1).any()  # rows alike are no pair that a search can branch over
            tried, cheaper, cut, branched = tried + 1, cheaper + len(costs), cut + (lines > 0), branched + len(answers)
    assert tried > thinned(300)
    assert cheaper > thinned(180)
    assert cut > thinned(30)
    assert branched > thinned(12)
    assert short < tried / 3


def test_pairs_of_rows_together_and_apart_hold_every_partition():
    """Without cuts and dives, so that the search has to branch; on rows that all differ."""
    random, tried, halved = np.random.default_rng(44), 0, []
    halves = GroupProgram._halves

    def counted(program, *given):
        halved.append(halves(program, *given))
        return halved[-1]

    with mock.patch.object(group_program, "VIOLATED", np.inf), mock.patch.object(GroupProgram, "_halves", counted):
        while tried < thinned(150):
            task = drawn(random, 9)
            if task is None or task.histogram.rows < 7:
                continue
            need, (kinds, places, found, loss) = task.requirement, parts_of(task)
            if (kinds.count > 1).any():
                continue
            tried += 1
            best = least_loss(task.histogram, need, task.recoding)
            unit = 1 / Costs.of(task.histogram, task.recoding).scale
            price = best / task.histogram.rows * np.ones(kinds.count.size)
            program = GroupProgram.listed(
                kinds,
                places,
                found,
                need,
                (loss, best + 1.0),
                (price, no_lines(places)),
                model_of(kinds, places, need, loss),
            )
            program.tighten(best + 1.0, clock() + 60)
            answers, proved = program.branched(best + 1.0, unit, clock() + 60)
            assert min(cost_of(x, task, kinds, places, loss) for x in answers) == pytest.approx(best, abs=1e-6)
            assert proved == pytest.approx(best, abs=1e-4)
    assert len(halved) > thinned(40)
    assert all(together.any() and apart.any() for together, apart in halved)


def test_lines_over_several_patterns_keep_an_optimum_among_the_groups():
    """Whatever solution they were made for, which they cut off or not."""
    random, tried, added, raised = np.random.default_rng(45), 0, 0, 0
    while tried < max(thinned(150), 50):
        task = drawn(random, 9)
        if task is None or (row_classes_of(task.histogram, task.requirement).count > 1).any():
            continue
        tried += 1
        need, (kinds, places, found, loss) = task.requirement, parts_of(task)
        best, plain = least_loss(task.histogram, need, task.recoding), model_of(kinds, places, need, loss)
        unit, model = 1 / Costs.of(task.histogram, task.recoding).scale, plain
        price = best / task.histogram.rows * np.ones(kinds.count.size)
        for top in (1, 2, 3):
            y = random.integers(0, 1 + top, model.cost.size) / 2
            for lines, low in (
                crowded_set_cuts(kinds, places, model, need.smallest, y),
                three_row_cuts(kinds, places, model, y),
            ):
                model = model.with_lines(lines, low)
        first = []
        for with_lines in (plain, model):
            program = GroupProgram.listed(
                kinds, places, found, need, (loss, best + 1.0), (price, no_lines(places)), with_lines
            )
            first.append(program._solved(None, clock() + 60)[0])
            program.tighten(best + 1.0, clock() + 60)
            assert program.proved <= best + 1e-6
            answers, proved = program.branched(best + 1.0, unit, clock() + 60)
            assert min(cost_of(x, task, kinds, places, loss) for x in answers) == pytest.approx(best, abs=1e-6)
            assert proved == pytest.approx(best, abs=1e-4)
        added, raised = added + model.low.size - plain.low.size, raised + (first[1] > first[0] + 1e-6)
    assert added > thinned(200)
    assert raised > 10


def cost_of(x, task, kinds, places, loss):
    """What rows of each place lose; every row is placed, and each pattern's rows are eligible."""
    assert (np.bincount(places.row_class, weights=x, minlength=kinds.count.size) == kinds.count).all()
    for p in np.unique(places.pattern[x > 0]):
        here = places.pattern == p
        assert may_be(task.requirement, kinds, np.repeat(places.row_class[here], x[here]).tolist())
    return float(loss[places.pattern] @ x)


def columns(matrix):
    """The columns of a matrix, each with sorted indices."""
    matrix = matrix.copy()
    matrix.sort_indices()
    return [matrix[:, [c]] for c in range(matrix.shape[1])]
