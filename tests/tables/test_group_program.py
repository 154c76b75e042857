"""Groups that a cheaper partition may use: all are listed and no other, and their program proves no more than is so."""

import threading
from collections import Counter
from itertools import combinations, combinations_with_replacement, pairwise, product
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from shoal.clock import clock
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.problems.tables.exact import group_program
from shoal.problems.tables.exact.group_list import GroupList, Listed, ListLimits, RowSet, largest
from shoal.problems.tables.exact.group_program import GroupProgram
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    SharedPrices,
    conditions_of,
    model_of,
    places_of,
    row_classes_of,
)
from shoal.problems.tables.exact.pattern_program import on_another_core
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
    """What ``GroupList.of`` takes: row classes, places, patterns, and the loss of each."""
    costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
    found = patterns(costs, task.recoding, task.requirement.smallest)
    return kinds, places_of(kinds, found, task.requirement), found, found.loss / costs.scale


def may_be(need, kinds, some):
    """Whether rows of these classes are eligible."""
    asked = [(need.frequency[j], need.distinct[j]) for j in need.sensitive_columns]
    return eligible(
        [tuple(kinds.value[t].tolist()) for t in some], need.k, *(zip(*asked, strict=True) if asked else ((), ()))
    )


def splits(need, kinds, some):
    """Whether these rows are two eligible groups."""
    return any(
        may_be(need, kinds, [some[i] for i in part])
        and may_be(need, kinds, [t for i, t in enumerate(some) if i not in part])
        for n in range(1, len(some))
        for part in combinations(range(len(some)), n)
    )


def no_lines(need, places):
    sorts = len(conditions_of(need)[0][2])
    return SharedPrices(0.0, np.zeros((sorts, places.patterns)), np.zeros(places.row_class.size))


def listed(task, price, enough, model=None):
    """All groups of a table, and the program over those up to a cost at these prices of rows."""
    need, (kinds, places, found, loss) = task.requirement, parts_of(task)
    groups = GroupList.of(kinds, places, found, need, loss, model or model_of(kinds, places, need, loss))
    return groups, GroupProgram.listed(groups, groups.proved(price, no_lines(need, places)), enough)


def sets_of(random, kinds, many):
    """Some sets of row classes."""
    return tuple(RowSet(int(m), random.integers(0, 3, kinds.count.size)) for m in random.integers(1, 4, many))


def times(one, kinds, some):
    """How often a group of rows counts for a set."""
    return sum(one.times[t] for t in some) // one.m


def test_all_groups_up_to_a_cost_are_listed_once_and_no_other():
    random, tried, partly, priced, cut, exact = np.random.default_rng(41), 0, 0, 0, 0, 0
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
        least_in, least_with = np.full(loss.size, np.inf), np.full(places.pattern.size, np.inf)
        for n in range(1, min(len(rows), largest(need, len(rows))) + 1):
            for some in set(combinations(rows, n)):
                if not may_be(need, kinds, some):
                    continue
                for q in (q for q in cheapest if all((t, q) in where for t in some)):
                    cost = sum(loss[q] - price[t] + added.rows[where[t, q]] for t in some) + added.uses[:, q].min()
                    least_in[q] = min(least_in[q], cost)
                    for x in {where[t, q] for t in some}:
                        least_with[x] = min(least_with[x], cost)
                if max(need.distinct, default=1) > 1 and splits(need, kinds, some):
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
        groups = GroupList.of(kinds, places, found, need, loss, model_of(kinds, places, need, loss))
        first = groups.proved(price, added)
        assert first.proved == pytest.approx(base)
        of_pattern, of_place = groups.additions(first)
        assert (of_pattern <= least_in + 1e-9).all()
        assert (of_place <= least_with + 1e-9).all()
        exact += np.isclose(of_place, least_with).sum()
        most = largest(need, len(rows))
        sizes = csc_array(np.eye(1, places.pattern.size).T * np.array([[most, most + 1, 1]]))
        assert groups.small(sizes).sum(axis=0).tolist() == [most, 1]
        sets = sets_of(random, kinds, int(random.integers(0, 5)))
        of_sets = random.uniform(0.01, 0.5, len(sets))
        prices = first._replace(sets=sets, of_sets=of_sets)
        for some in every:
            every[some] += sum(c * times(one, kinds, some) for one, c in zip(sets, of_sets, strict=True))
        for enough in (*(base + np.quantile(list(every.values()), [0.2, 0.6])), np.inf):
            program = GroupProgram.listed(groups, prices, enough)
            names = [tuple(np.repeat(c.indices, c.data.astype(int)).tolist()) for c in columns(program.rows)]
            good = {some for some, cost in every.items() if cost <= enough - base + 1e-6}
            near = {some for some, cost in every.items() if abs(cost - enough + base - 1e-6) < 1e-7}
            assert max(Counter(names).values(), default=1) == 1
            assert set(names) - near == good - near
            assert [loses[some] for some in names] == pytest.approx(program.cost.tolist())
            assert [every[some] for some in names] == pytest.approx(program.reduced.tolist())
            tried, partly, priced = tried + 1, partly + (0 < len(good) < len(every)), priced + bool(sets)
            whole = groups.listed(prices, enough - base)
            short = groups.listed(prices, enough - base, ListLimits(each=1))
            assert whole.all
            assert short.all or short.at.shape[1] <= loss.size
            many = whole.at.shape[1]
            assert many < 2 or not groups.listed(prices, enough - base, ListLimits(groups=many - 1)).all
            assert many < 1 or not groups.listed(prices, enough - base, ListLimits(tried=0)).all
            cut += not short.all
    assert tried > thinned(200)
    assert partly > thinned(80)
    assert priced > thinned(150)
    assert cut > thinned(100)
    assert exact > thinned(1000)


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


@pytest.mark.parametrize("looks", [group_program.LOOKS, 40, 0])
def test_the_search_over_listed_groups_ends_at_the_optimum_and_bounds_never_exceed_it(
    looks: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(group_program, "LOOKS", looks)
    random, tried, cheaper, cut, branched, short = np.random.default_rng(42), 0, 0, 0, 0, 0
    for task in filter(None, (drawn(random, 9) for _ in range(thinned(260)))):
        need, (kinds, places, _, loss) = task.requirement, parts_of(task)
        best = least_loss(task.histogram, need, task.recoding)
        unit = 1 / Costs.of(task.histogram, task.recoding).scale
        price = random.uniform(0.2, 1.0) * best / task.histogram.rows * np.ones(kinds.count.size)
        for enough in (best - unit, best, best + 0.4, 2.0 * best + 1.0):
            _, program = listed(task, price, enough)
            program.tighten(enough, clock() + 60)
            assert enough < best or program.proved <= best + 1e-6
            dived = program.dives(enough, unit, clock() + 60) if tried % 2 else []
            costs = [cost_of(x, task, kinds, places, loss) for x in dived]
            assert all(best - 1e-6 <= cost <= enough + 1e-6 for cost in costs)
            assert all(b <= a - unit + 1e-6 for a, b in pairwise(costs))
            most = min([enough, *(cost - unit for cost in costs)])
            program.remove_costly(most)
            lines = program.line_limits.size
            first, sure = program.covered(most, unit)
            assert sure <= best + 1e-6
            for cost in (cost_of(x, task, kinds, places, loss) for x in first):
                assert best - 1e-6 <= cost <= most + 1e-6
                assert cost <= best + 1e-6 or sure <= program.proved + 1e-6
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
    assert branched > thinned(40)
    assert short == 0 if looks > 40 else short < tried / 3


def test_pairs_of_rows_together_and_apart_hold_every_partition():
    """Without cuts, dives, and covers, so that the search has to branch; on rows that all differ."""
    random, tried, halved = np.random.default_rng(44), 0, []
    halves = GroupProgram._halves

    def counted(program, *given):
        halved.append(halves(program, *given))
        return halved[-1]

    off = mock.patch.multiple(group_program, VIOLATED=np.inf, LOOKS=0)
    with off, mock.patch.object(GroupProgram, "_halves", counted):
        while tried < thinned(150):
            task = drawn(random, 9)
            if task is None or task.histogram.rows < 7:
                continue
            need, (kinds, places, _, loss) = task.requirement, parts_of(task)
            if (kinds.count > 1).any():
                continue
            tried += 1
            best = least_loss(task.histogram, need, task.recoding)
            unit = 1 / Costs.of(task.histogram, task.recoding).scale
            price = best / task.histogram.rows * np.ones(kinds.count.size)
            _, program = listed(task, price, best + 1.0)
            program.tighten(best + 1.0, clock() + 60)
            answers, proved = program.branched(best + 1.0, unit, clock() + 60)
            assert min(cost_of(x, task, kinds, places, loss) for x in answers) == pytest.approx(best, abs=1e-6)
            assert proved == pytest.approx(best, abs=1e-4)
    assert len(halved) > thinned(40)
    assert all(together.any() and apart.any() for together, apart in halved)


def random_cover(random: np.random.Generator) -> tuple[GroupProgram, PatternFits, np.ndarray]:
    """Groups of up to 36 classes of up to 5 rows, in several words, some of them a partition; places, losses."""
    count = random.choice([1, 1, 1, 2, 3, 5], int(random.integers(3, 36)))
    rows = np.repeat(np.arange(count.size), count)
    parts = [np.split(random.permutation(rows), np.arange(3, rows.size, 4)) for _ in range(3)]
    groups = [np.unique(g, return_counts=True) for part in parts for g in part]
    groups += [np.unique(random.choice(rows, 3, replace=False), return_counts=True) for _ in range(count.size)]
    pattern = np.repeat(np.arange(len(groups)), [len(g) for g, _ in groups])
    places = PatternFits(np.concatenate([g for g, _ in groups]), pattern, len(groups))
    held = np.concatenate([n for _, n in groups]).astype(float)
    at = csc_array((held, (np.arange(held.size), pattern)), shape=(held.size, len(groups)))
    loss = random.integers(1, 12, len(groups)) / 4
    return GroupProgram(count, at, places, loss), places, loss


def best_of(program: GroupProgram, cost: np.ndarray) -> float:
    """The least cost of a partition, by an integer program over all groups."""
    exact = LinearConstraint(program.rows, program.count, program.count)
    return float(milp(cost, constraints=exact, integrality=1, bounds=Bounds(0, np.inf)).fun)


def bound_of(program: GroupProgram, price: np.ndarray) -> tuple[float, np.ndarray]:
    """What prices of rows prove, and the reduced costs."""
    reduced = program.cost - program.rows.T @ price
    return float(price @ program.count + np.minimum(reduced, 0.0) @ program.most), np.maximum(reduced, 0.0)


@pytest.mark.parametrize(("shortened", "lists"), [(256, 6), (1, 6), (2, 6), (3, 1), (2, 2)])
def test_the_cheapest_cover_is_that_of_an_integer_program(shortened: int, lists: int, monkeypatch: pytest.MonkeyPatch):
    """With equal rows, and rows in several words; at the best prices, at others, and at several, within a cost."""
    for name, value in {"LOOKS": 300_000, "SHORTENED": shortened, "LISTS": lists}.items():
        monkeypatch.setattr(group_program, name, value)
    random, empty, early = np.random.default_rng(46), 0, 0
    for number in range(thinned(200 if shortened == 256 else 60)):
        program, places, loss = random_cover(random)
        least = best_of(program, program.cost)
        program._solved(None, clock() + 60)
        duals, n = program.solver.duals, program.count.size
        first, *others = (
            bound_of(program, duals + size * random.normal(size=n))
            for size in random.choice([0.0, 0.02, 0.2], 1 + number % 4)
        )
        (program.proved, program.reduced), program.bounds = first, others
        for most in (least - 0.25, least, least + 2.0):
            found, proved = program.covered(most, 0.25)
            early += proved == program.proved
            if proved == program.proved:
                continue
            assert len(found) == (most >= least)
            assert proved == pytest.approx(least if found else most + 0.25)
            for x in found:
                assert (np.bincount(places.row_class, weights=x) == program.count).all()
                assert loss[places.pattern] @ x == pytest.approx(least)
            empty += not found
    assert empty > thinned(150 if shortened == 256 else 45) / 2
    assert early < thinned(200 if shortened == 256 else 60)


def test_bounds_at_fewer_rows_hold_for_every_partition_and_keep_the_best_one():
    """With and without constraints of sets of rows: a bound and what a partition's groups add to it is never above its
    cost."""
    random, tried, left, gone = np.random.default_rng(54), 0, 0, 0
    for number in range(thinned(80)):
        program, _, _ = random_cover(random)
        least = best_of(program, program.cost)
        for _ in range(number % 3):
            program._solved(None, clock() + 60)
            program._cut(program._violated(program._x()))
        value = program._solved(None, clock() + 60)[0]
        known = program._usable(least).sum()
        program.add_bounds(least, clock() + 60)
        for bound, reduced in program._known:
            assert best_of(program, program.cost - reduced) >= bound - 1e-6
            tried += 1
        assert len(program.bounds) == len(group_program.FEWER_ROWS)
        assert best_of(program, program.cost) == pytest.approx(least)
        assert value - 1e-6 <= program._solved(None, clock() + 60)[0] <= least + 1e-6
        program._keep(program._usable(least))
        assert best_of(program, program.cost) == pytest.approx(least)
        left, gone = left + program.cost.size, gone + int(known) - program.cost.size
    assert tried > thinned(200)
    assert left > thinned(80)
    assert gone > left / 20


def test_no_partition_violates_the_constraint_of_a_crowded_set_and_fractions_do():
    """Whatever the set: of a partition's groups, only so many can have m of its rows."""
    random, violated, whole, several = np.random.default_rng(47), 0, 0, 0
    for _ in range(thinned(100)):
        program, places, _ = random_cover(random)
        program._solved(None, clock() + 60)
        sets = program._violated(program._x())
        violated, several = violated + len(sets), several + sum(one.times.max() > 1 for one in sets)
        assert all(one.times.max() < one.m for one in sets)
        before, x = program.line_limits.size, program._x()
        if not sets:
            continue
        program._cut(sets)
        left = program.lines(program.inside) @ x - program.line_limits
        assert (left[before:] > group_program.VIOLATED).all()
        for answer, _ in [program.covered(float(program.cost.sum()), 0.25)]:
            for rows in answer:
                groups = np.unique(places.pattern[rows > 0])
                times = [round(rows[places.pattern == g].sum() / program.size[g]) for g in groups]
                assert (program.lines(np.array(groups)) @ np.array(times) <= program.line_limits + 1e-9).all()
                whole += 1
    assert violated > thinned(100)
    assert several > thinned(20)
    assert whole > thinned(20)


def test_lines_over_several_patterns_keep_an_optimum_among_the_groups():
    """Whatever solution they were made for, which they cut off or not."""
    random, tried, added, raised = np.random.default_rng(45), 0, 0, 0
    while tried < max(thinned(150), 50):
        task = drawn(random, 9)
        if task is None or (row_classes_of(task.histogram, task.requirement).count > 1).any():
            continue
        tried += 1
        need, (kinds, places, _, loss) = task.requirement, parts_of(task)
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
            groups, program = listed(task, price, best + 1.0, with_lines)
            every, some = np.arange(groups.number_of_lines), np.flatnonzero(random.random(groups.number_of_lines) < 0.5)
            whole = groups.shared_lines(program.at, every).toarray()
            assert (groups.shared_lines(program.at, some).toarray() == whole[some]).all()
            assert (groups.line_limits(some) == groups.line_limits(every)[some]).all()
            paid = random.uniform(0, 1, some.size)
            assert groups.shared_costs(program.at, some, paid) == pytest.approx(paid @ whole[some])
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


def optimum(task, kinds, places, loss):
    """The least cost of a partition, by an integer program over all groups."""
    groups = list(cheapest_groups(task, kinds, places, loss))
    held = np.stack([np.bincount(some, minlength=kinds.count.size) for some, _ in groups], axis=1)
    exactly = LinearConstraint(held, kinds.count, kinds.count)
    return milp(
        np.array([cost for _, cost in groups]), constraints=exactly, integrality=1, bounds=Bounds(0, np.inf)
    ).fun


def cheapest_groups(task, kinds, places, loss):
    """Every group of up to the largest size as rows of each class, with its cost in the cheapest pattern that fits."""
    need = task.requirement
    where = {(int(t), int(p)) for t, p in zip(places.row_class, places.pattern, strict=True)}
    rows, cheapest = np.repeat(np.arange(kinds.count.size), kinds.count).tolist(), np.argsort(loss, kind="stable")
    for n in range(1, min(len(rows), largest(need, len(rows))) + 1):
        for some in set(combinations(rows, n)):
            if may_be(need, kinds, some):
                yield some, n * next(loss[p] for p in cheapest.tolist() if all((t, p) in where for t in some))


@pytest.mark.parametrize("joining", [ListLimits(1_000, 5), ListLimits(2, 1, 30)])
def test_prices_of_all_groups_prove_no_more_than_the_optimum_and_keep_it_in_their_list(
    joining: ListLimits, monkeypatch: pytest.MonkeyPatch
):
    """From a program with few groups, and with lines over several patterns; no group has a negative reduced cost."""
    monkeypatch.setattr(group_program, "JOINING", joining)
    random, tried, raised, with_sets, lined = np.random.default_rng(48), 0, 0, 0, 0
    while tried < max(thinned(120), 40):
        task = drawn(random, 13)
        if task is None or task.histogram.rows < 8:
            continue
        need, (kinds, places, _, loss) = task.requirement, parts_of(task)
        best, model = optimum(task, kinds, places, loss), model_of(kinds, places, need, loss)
        if tried % 2:
            y = random.integers(0, 4, model.cost.size) / 2
            model = model.with_lines(*crowded_set_cuts(kinds, places, model, need.smallest, y))
            model = model.with_lines(*three_row_cuts(kinds, places, model, y))
        unit = 1 / Costs.of(task.histogram, task.recoding).scale
        price = random.uniform(0.2, 1.0) * best / task.histogram.rows * np.ones(kinds.count.size)
        groups, program = listed(task, price, random.uniform(0.5, 1.0) * best, model)
        first = groups.proved(price, no_lines(need, places))
        prices = program.priced_out(groups, best + 1.0, clock() + 60)
        assert prices is not None
        tried += 1
        assert prices.proved <= best + 1e-9
        raised += prices.proved > first.proved + 1e-6
        lines = bool(prices.shared.rows.any() or prices.shared.uses.any())
        with_sets, lined = with_sets + bool(prices.sets), lined + lines
        negative = groups.listed(prices, -1e-6).at
        exact = GroupProgram(kinds.count, negative, places, loss)
        if not lines:  # a group pays for the use of its own size, and the list for the cheapest
            assert not exact.cost.size
            paid = {
                some: cost - prices.row[list(some)].sum()
                + sum(c * times(one, kinds, some) for one, c in zip(prices.sets, prices.of_sets, strict=True))
                for some, cost in cheapest_groups(task, kinds, places, loss)
            }  # fmt: skip
            assert min(paid.values()) >= -2e-7
            sure = prices.row @ kinds.count - sum(
                c * ((kinds.count @ one.times) // one.m) for one, c in zip(prices.sets, prices.of_sets, strict=True)
            )
            assert prices.proved <= sure <= prices.proved + 1e-4
        again = GroupProgram.listed(groups, prices, best)
        answers, proved = again.branched(best, unit, clock() + 60)
        if (kinds.count == 1).all():
            assert min(cost_of(x, task, kinds, places, loss) for x in answers) == pytest.approx(best, abs=1e-6)
            assert proved == pytest.approx(best, abs=1e-4)
    assert raised > tried / 2
    assert with_sets > 5
    assert lined > 5


def test_a_list_that_is_not_complete_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(51)
    task = next(filter(None, (drawn(random, 9) for _ in range(50))))
    groups, program = listed(task, np.zeros(row_classes_of(task.histogram, task.requirement).count.size), np.inf)
    assert program.priced_out(groups, np.inf, clock() + 60) is not None
    assert program.priced_out(groups, np.inf, clock() + 60, lambda _: True) is None
    none = csc_array((groups.value.size, 0))
    monkeypatch.setattr(GroupList, "listed", lambda *_: Listed(none, np.zeros(0), False))
    assert program.priced_out(groups, np.inf, clock() + 60) is None


def test_a_program_without_its_slack_constraints_has_the_same_value():
    random, dropped = np.random.default_rng(49), 0
    for _ in range(thinned(60)):
        program, _, _ = random_cover(random)
        for _ in range(3):
            program._solved(None, clock() + 60)
            program._cut(program._violated(program._x()))
        value, lines = program._solved(None, clock() + 60)[0], program.line_limits.size
        program._drop_slack()
        assert program.counted.shape[0] == len(program.sets) == program.line_limits.size == program.line_prices.size
        assert program._solved(None, clock() + 60)[0] == pytest.approx(value, abs=1e-6)
        dropped += lines - program.line_limits.size
    assert dropped > thinned(30)


def test_a_longer_search_knows_the_least_cost_unless_it_is_stopped_and_finds_partitions_of_each_cost():
    random, told = np.random.default_rng(50), 0
    for _ in range(thinned(100)):
        state = random.bit_generator.state

        def again(state=state):
            random.bit_generator.state = state
            made = random_cover(random)
            made[0].proved = made[0]._solved(None, clock() + 60)[0] - 1.0
            return made

        program, places, loss = again()
        least = best_of(program, program.cost)
        for most in (least - 0.25, least, least + 1.0):
            long = program.long_search(most, 0.25)
            assert long.least(np.ones(1, np.int64)) == -np.inf
            assert long.first(most, 10**9, np.ones(1, np.int64)) == []
            program._keep(np.arange(program.cost.size) % 2 > 0)  # what is removed later is still searched
            stop = np.zeros(1, np.int64)
            assert long.least(stop) == pytest.approx(max(least, most + 0.25) if most < least else least)
            for cost in (least - 0.25, least, most):
                found = long.first(cost, 10**9, stop)
                assert len(found) == (cost >= least)
                for x in found:
                    assert (np.bincount(places.row_class, weights=x) == program.count).all()
                    assert loss[places.pattern] @ x <= cost + 1e-9
            told += most < least
            program, _, _ = again()
    assert told == thinned(100)


def test_too_many_groups_for_branches_prove_what_another_search_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_program, "MOST_BRANCHED", 0)
    program, _, _ = random_cover(np.random.default_rng(55))
    program.tighten(1e9, clock() + 60)
    most = program.proved + 10.0
    for told in (most + 0.25, most, most - 0.25):
        assert program.branched(most, 0.25, clock() + 60, lambda _, told=told: told) == ([], told)
    assert program.branched(most, 0.25, clock() + 60, lambda _: -np.inf) == ([], program.proved)


def test_branches_end_when_another_search_knows_the_least_cost():
    program, _, _ = random_cover(np.random.default_rng(55))
    program.tighten(1e9, clock() + 60)
    assert program.branched(program.proved + 10.0, 0.25, clock() + 60, lambda _: 7.0) == ([], 7.0)


def test_a_search_that_has_ended_elsewhere_ends_the_tightening():
    program, _, _ = random_cover(np.random.default_rng(56))
    assert program.tighten(1e9, clock() + 60, least=lambda _: 1.0) == []
    assert program.proved == -np.inf


@pytest.mark.parametrize("cores", [1, 2])
def test_a_search_on_another_core_counts_when_it_has_ended_and_is_stopped_otherwise(
    cores: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    ended, stopped = threading.Event(), threading.Event()

    def search(stop):
        ended.wait(200)
        return 3.0

    def endless(stop):
        while not stop[0]:
            pass
        stopped.set()
        return 3.0

    with on_another_core(search) as result:
        assert result(0.0) == result(0.01) == -np.inf
        ended.set()
        assert result(200.0) == result(0.0) == (3.0 if cores > 1 else -np.inf)
    with on_another_core(endless) as result:
        assert result(0.0) == -np.inf
    assert cores == 1 or stopped.wait(200)
