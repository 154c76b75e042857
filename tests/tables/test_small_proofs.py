"""The integer class program: never above the optimum of small tables, equal to it when it ends; it says when not."""

import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import combinations, combinations_with_replacement, pairwise, product
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

import shoal.problems.tables as tables
from shoal.clock import clock
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import DistinctLDiversity, KAnonymity, Requirement, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.tables import auto as small
from shoal.problems.tables.auto import auto
from shoal.problems.tables.exact import group_list, group_program
from shoal.problems.tables.exact import pattern_program as pattern_program_of
from shoal.problems.tables.exact.group_list import ListLimits
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    SharedPrices,
    ValueLimits,
    completed,
    conditions_of,
    least_groups,
    least_sizes,
    model_of,
    part_sizes,
    places_of,
    priced,
    row_classes_of,
)
from shoal.problems.tables.exact.pattern_program import ProgramLimits, decide, pattern_program, rows_by_place
from shoal.problems.tables.exact.pattern_relaxation import (
    ColumnProgram,
    bound_of_prices,
    crowded_set_cuts,
    least_additions,
    relaxation,
    separating_planes,
    shared,
    three_row_cuts,
)
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import patterns, whole_cost
from tests.amount import thinned
from tests.oracles.models import prices
from tests.oracles.tables import eligible, least_loss
from tests.tables.drawn import KINDS, assert_eligible, census_like, few, total
from tools import oracle_models


def drawn(random: np.random.Generator, most: int = 7) -> Task | None:
    """At most seven rows under k, frequency and distinct l of up to two columns."""

    def need(table: Histogram) -> Requirement:
        k, s = int(random.integers(1, 5)), len(table.sensitive_names)
        return Requirement(k, *(tuple(random.integers(1, 4, s).tolist()) for _ in range(2)))

    return few(random, (2, most + 1), (0, 3), 4, need)


def everyone(task: Task) -> Partition:
    h = task.histogram
    return Partition.of(np.arange(h.cells), np.zeros(h.cells, np.int64), h.count)


def test_the_program_ends_at_the_optimum_of_hundreds_of_small_tables():
    random = np.random.default_rng(33)
    tried = 0
    for task in filter(None, (drawn(random) for _ in range(thinned(260)))):
        best = least_loss(task.histogram, task.requirement, task.recoding)
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        partition, lower, stopped = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert stopped is None
        assert_eligible(task, partition)
        assert whole_cost(costs, task, partition) == lower == pytest.approx(best * costs.scale, abs=1e-6)
        tried += 1
    assert tried > thinned(110)


@pytest.mark.parametrize(
    ("looks", "groups", "cores"),
    [(group_program.LOOKS, 40_000, 1), (0, 40_000, 1), (30, 4, 1), (0, 40_000, 2), (group_program.LOOKS, 40_000, 2)],
)
def test_costs_rise_from_the_bound_to_the_optimum_and_no_bound_is_above_it(
    looks: int, groups: int, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups alone, from one class of all rows; without looks, at prices too low, and covers and branches may end."""
    random, tried, open_ones, steps = np.random.default_rng(34), 0, 0, 0
    search = pattern_program_of._PatternSearch
    monkeypatch.setattr(group_program, "LOOKS", looks)
    monkeypatch.setattr(group_program, "MOST_BRANCHED", groups)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    for name in ("_over_fewer_places", "_prove"):
        monkeypatch.setattr(search, name, lambda *_: None)
    nothing = pattern_program_of.ProgramResult([], -np.inf, SimpleNamespace(low=np.zeros(0)))
    monkeypatch.setattr(search, "_program", lambda *_: lambda _: nothing)
    groups_of = search._groups

    def poor(self):
        priced = groups_of(self)
        return priced and priced._replace(prices=priced.groups.proved(0.5 * self.price, self.shared))

    if not looks:
        monkeypatch.setattr(search, "_groups", poor)
    bounds, raise_bound = [], search._raise_bound

    def raised(self, bound: float) -> None:
        raise_bound(self, bound)
        bounds.append(self.lower)

    monkeypatch.setattr(search, "_raise_bound", raised)
    for task in filter(None, (drawn(random, 9) for _ in range(thinned(260)))):
        if len(conditions_of(task.requirement)) > 1:
            continue
        bounds.clear()
        best = least_loss(task.histogram, task.requirement, task.recoding)
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        partition, lower, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert_eligible(task, partition)
        assert max(bounds, default=0) <= lower <= best * costs.scale + 1e-6
        whole = whole_cost(costs, task, partition)
        assert whole >= lower
        open_ones, steps, tried = open_ones + (whole > lower), steps + (len(bounds) > 1), tried + 1
    assert tried > thinned(60)
    assert steps > 5
    assert open_ones == 0 if looks > 30 else open_ones < tried / 2


class Rising:
    """A search of costs 10 to 99 over groups that add these costs, in place of 0, 0.1, 0.2 and so on."""

    upper, lower, step, costs, deadline = 100, 10, 1, SimpleNamespace(scale=1), np.inf
    _cutoff = property(lambda self: self.upper - 1)

    def __init__(self, monkeypatch, groups: int, first: int, added: float | None = None) -> None:
        reduced = np.arange(groups) / 10 if added is None else np.full(groups, added)

        def listed(_, prices, slack, limits=ListLimits()):
            return SimpleNamespace(all=bool((reduced <= slack).sum() <= limits.groups))

        monkeypatch.setattr(pattern_program_of, "FIRST_LIST", ListLimits(groups=first))
        program = SimpleNamespace(listed=lambda *given: SimpleNamespace(reduced=reduced[reduced <= given[2] - 10]))
        monkeypatch.setattr(pattern_program_of, "GroupProgram", program)
        priced = SimpleNamespace(listed=lambda *given: listed(None, *given)), SimpleNamespace(proved=10.0)
        self.costs_of = pattern_program_of._PatternSearch._programs(self, priced)

    def next(self) -> float:
        return next(self.costs_of)[1]


def test_costs_rise_to_that_of_the_best_partition_and_fall_back_when_a_cheaper_one_is_found(monkeypatch) -> None:
    search = Rising(monkeypatch, 10_000, 40)
    assert search.next() == 12  # 29 groups add at most 2.78, the first half of 89 with 40 or fewer
    assert search.next() == 13  # 8 of 21 add at most 0.8, so the next step is 1.2
    search.lower = 20
    assert search.next() == 24  # 14, 16, and 19 are passed over
    search.upper = 22  # a search found a partition, and did not end
    assert search.next() == 21
    search.upper = 21
    assert search.next() == 20
    search.lower = 21
    assert not list(search.costs_of)


def test_the_last_cost_is_that_of_the_best_partition_and_comes_soon_if_it_is_near(monkeypatch) -> None:
    search = Rising(monkeypatch, 700, 350)
    costs = [cost for _, cost in search.costs_of]
    assert costs[0] == 32
    assert costs[-1] == 99
    assert all(a < b for a, b in pairwise(costs))
    assert costs[-1] - costs[-2] >= 0.5 * (costs[-2] - costs[-3])
    search = Rising(monkeypatch, 0, 350)
    assert [cost for _, cost in search.costs_of] == [99]
    search = Rising(monkeypatch, 0, 350)
    search.upper = 8  # the bound is above the best partition by a rounding error
    search.lower = 7
    assert [cost for _, cost in search.costs_of] == [7]
    search = Rising(monkeypatch, 700, 0)  # too many groups from the start
    assert search.next() == 10
    search = Rising(monkeypatch, 700, 350, added=8.0)  # equal groups, so that their number tells nothing
    search.upper = 27
    assert [search.next() for _ in range(3)] == [14, 18, 19]


def test_a_search_that_finds_a_partition_and_does_not_end_is_followed_by_one_below_it(monkeypatch) -> None:
    """Otherwise the partition is the optimum, and nothing proves it."""
    random, found_first = np.random.default_rng(35), 0
    search, covered = pattern_program_of._PatternSearch, group_program.GroupProgram.covered
    for name in ("_over_fewer_places", "_prove"):
        monkeypatch.setattr(search, name, lambda *_: None)
    nothing = pattern_program_of.ProgramResult([], -np.inf, SimpleNamespace(low=np.zeros(0)))
    monkeypatch.setattr(search, "_program", lambda *_: lambda _: nothing)

    def early(self, cutoff, unit):
        nonlocal found_first
        found, proved = covered(self, cutoff, unit)
        found_first += bool(found)
        return (found, self.proved) if found else (found, proved)

    monkeypatch.setattr(group_program.GroupProgram, "covered", early)
    for task in filter(None, (drawn(random, 9) for _ in range(thinned(200)))):
        if len(conditions_of(task.requirement)) > 1:
            continue
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        partition, lower, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert whole_cost(costs, task, partition) == lower
    assert found_first > 10


def test_where_no_list_is_possible_prices_begin_with_the_columns_of_the_linear_program(monkeypatch) -> None:
    random, tried, raised, fewer = np.random.default_rng(39), 0, 0, 0
    program, begun = group_program.GroupProgram, group_program.GroupProgram.of
    nothing = pattern_program_of.ProgramResult([], -np.inf, SimpleNamespace(low=np.zeros(0)))
    usable = pattern_program_of._PatternSearch._usable_columns

    def of(groups, prices, at):
        nonlocal tried
        tried += 1
        return begun(groups, prices, at)

    def without_dear(self, part):
        """No place of the best partition is left out where it is cheaper than the best known one."""
        nonlocal raised, fewer
        known, self.upper = self.upper, least + self.step
        kept = usable(self, 1.0)[0]
        self.upper = known
        x = pattern_program_of.rows_by_place(task, costs, kinds, self.found, self.places, optimum)
        assert kept[: self.model.n][x > 0].all()
        raised, fewer = raised + (len(self.proofs) > 1), fewer + (len(self.proofs) > 1 and not kept.all())
        return usable(self, part)

    for task in filter(None, (drawn(random, 9) for _ in range(thinned(300)))):
        if len(conditions_of(task.requirement)) > 1:
            continue
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        optimum, least, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        with monkeypatch.context() as patched:
            patched.setattr(program, "listed", lambda *_: None)
            patched.setattr(program, "of", of)
            patched.setattr(pattern_program_of._PatternSearch, "_usable_columns", without_dear)
            patched.setattr(pattern_program_of._PatternSearch, "_program", lambda *_, **__: lambda _: nothing)
            patched.setattr(pattern_program_of._PatternSearch, "_over_fewer_places", lambda *_: None)
            _, lower, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert lower <= least
    assert tried > 10
    assert raised > 5
    assert fewer > 3


def test_the_partition_is_the_same_whichever_search_has_ended_first(monkeypatch) -> None:
    """The branches alone, the long search first, and the long search after the branches."""
    random, tried, least = np.random.default_rng(37), 0, 0
    search = pattern_program_of._PatternSearch
    for name in ("_over_fewer_places", "_prove"):
        monkeypatch.setattr(search, name, lambda *_: None)
    nothing = pattern_program_of.ProgramResult([], -np.inf, SimpleNamespace(low=np.zeros(0)))
    monkeypatch.setattr(search, "_program", lambda *_: lambda _: nothing)
    monkeypatch.setattr(group_program, "LOOKS", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    told: list[float] = []

    @contextmanager
    def at_once(long):
        told.append(long(np.zeros(1, np.int64)))
        yield lambda _: told[-1]

    @contextmanager
    def too_late(long):
        yield lambda _: -np.inf

    for task in filter(None, (drawn(random, 9) for _ in range(thinned(120)))):
        if len(conditions_of(task.requirement)) > 1:
            continue
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        found = []
        for other in (too_late, at_once):
            monkeypatch.setattr(pattern_program_of, "on_another_core", other)
            partition, lower, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
            groups = [partition.cell, partition.group, partition.count]
            found.append((np.stack(groups).tolist(), lower))
        whole = whole_cost(costs, task, partition)
        least += whole == lower and whole < whole_cost(costs, task, everyone(task))
        assert found[0][1] <= found[1][1]  # alike rows can be no pair for branches
        assert found[0] == found[1] or found[0][1] < whole
        tried += 1
    assert tried > thinned(30)
    assert least > 5
    assert len(told) > 3


def test_bounds_by_covers_next_to_another_search_never_exceed_the_optimum(monkeypatch) -> None:
    """While the other search has no end, by long searches for covers."""
    random, tried, raised = np.random.default_rng(38), 0, 0
    search, seen = pattern_program_of._PatternSearch, threading.Event()
    rule_out, nothing = (
        search._rule_out,
        pattern_program_of.ProgramResult([], -np.inf, SimpleNamespace(low=np.zeros(0))),
    )
    for name in ("_over_fewer_places", "_prove"):
        monkeypatch.setattr(search, name, lambda *_: None)

    def other(stop):
        while not (stop.is_set() or seen.is_set()):
            time.sleep(0.001)
        return nothing

    def ruled_out(self, priced, _) -> None:
        nonlocal tried, raised
        before = self.lower
        rule_out(self, priced, Future())
        seen.set()
        assert self.lower <= best * self.costs.scale + 1e-6
        tried, raised = tried + 1, raised + (self.lower > before)

    monkeypatch.setattr(search, "_program", lambda *_: other)
    monkeypatch.setattr(search, "_rule_out", ruled_out)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("shoal.threads.LOOK", 0.002)
    monkeypatch.setattr(pattern_program_of, "GRACE", 0.002)
    monkeypatch.setattr(group_program, "LOOKS", 0)
    for task in filter(None, (drawn(random, 9) for _ in range(max(thinned(800), 500)))):
        if len(conditions_of(task.requirement)) > 1:
            continue
        seen.clear()
        best = least_loss(task.histogram, task.requirement, task.recoding)
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        partition, lower, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert whole_cost(costs, task, partition) >= lower
    assert tried > 5
    assert raised > 3


RULES = "EntropyLDiversity", "RecursiveLDiversity", "TCloseness", "BetaLikeness", "DeltaDisclosure", "AlphaKAnonymity"


@pytest.mark.parametrize("name", RULES)
def test_planes_keep_every_eligible_class_and_cut_off_what_is_not(name: str) -> None:
    random = np.random.default_rng(36)
    cut = kept = 0
    for _ in range(20):
        values = oracle_models.drawn(name, random)
        values = {n: 1 if n == "k" else v for n, v in values.items()}  # which is not the plane's to say
        whole = random.integers(1, 7, int(random.integers(2, 5)))
        if values.get("distance") == "hierarchical":
            continue
        model = oracle_models.made(name, values, whole.size)
        measure = model.measure(whole)
        classes = np.stack(np.meshgrid(*(range(min(c, 4) + 1) for c in whole)), axis=-1).reshape(-1, whole.size)[1:]
        good = np.array([model.holds(held, whole) for held in classes])
        for held, eligible_ in zip(classes, good, strict=True):
            found = separating_planes(measure, held, int(whole.sum()))
            assert (found @ classes[good].T >= -1e-9).all()
            assert (found @ held < -1e-4).any() == (not eligible_)
        cut, kept = cut + int((~good).sum()), kept + int(good.sum())
    assert min(cut, kept) > 100


@pytest.mark.parametrize("name", RULES)
def test_the_program_proves_tables_under_models_that_are_rules(name: str) -> None:
    proved = 0
    for seed in range(14):
        quasi, sensitive, _, _ = oracle_models.table(seed, "KAnonymity")
        values = oracle_models.drawn(name, np.random.default_rng(seed))
        if values.get("distance") == "hierarchical":
            continue
        histogram = Histogram.from_rows(np.array(quasi), np.array(sensitive))
        model = oracle_models.made(name, values, histogram.sensitive_sizes[0], "s0")
        need = requirement([KAnonymity(2), model], histogram.sensitive_names, histogram)
        best = prices(quasi, sensitive, [(name, values, 0), ("KAnonymity", {"k": 2}, 0)], [0] * len(quasi))[1]
        if best is None or not need.rules:
            continue
        task = Task(histogram, need, Recoding.stars(histogram))
        costs, kinds = Costs.of(histogram, task.recoding), row_classes_of(histogram, need)
        partition, lower, stopped = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        assert stopped is None
        assert lower == best * costs.scale == whole_cost(costs, task, partition)
        proved += 1
    assert proved > 2


def test_no_prices_prove_more_than_the_optimum_and_none_drop_a_place_that_an_optimum_may_use():
    random = np.random.default_rng(34)
    tried = sharp = 0
    for task in filter(None, (drawn(random) for _ in range(thinned(170)))):
        best = least_loss(task.histogram, task.requirement, task.recoding)
        costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, task.requirement)
        found = patterns(costs, task.recoding, task.requirement.smallest)
        places = places_of(kinds, found, task.requirement)
        model = model_of(kinds, places, task.requirement, found.loss / costs.scale)
        optimum, _, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        used = used_places(task, kinds, places, costs, found, optimum)
        best_price = relaxation(model, clock() + 60)[1]
        alone = decide(model, np.arange(model.cost.size), 60.0, None, 1e-6)[1]  # before anything is dropped
        assert alone == pytest.approx(best, abs=1e-4)
        line, single = model.owner >= 0, len(task.requirement.sensitive_columns) < 2
        fewest = least_sizes(kinds, places, task.requirement)
        for top in (0.0, 0.1, 0.5, 3.0):
            price = best_price + random.normal(0, top, best_price.size) * (random.random(best_price.size) < 0.2)
            value, spare = bound_of_prices(model, price)
            assert value <= best + 1e-9
            sharp += value > 0.3 * best > 0
            swung = np.where(line, best_price - 5.0 * (random.random(line.size) < 0.3), best_price + 5.0)
            assert bound_of_prices(model, swung)[0] <= best + 1e-9
            of_classes = priced(kinds, places, task.requirement, found.loss / costs.scale, price[~line])
            assert top or not single or of_classes[0] >= value - 1e-6  # no weaker than the linear program
            for proved, pattern, place in (of_classes, (value, *least_additions(places, kinds.count, fewest, spare))):
                assert proved <= best + 1e-9
                assert (proved + pattern[places.pattern[used]] <= best + 1e-9).all()
                assert (proved + place[used] <= best + 1e-9).all()
        tried += 1
    assert tried > thinned(70)
    assert sharp > thinned(40)


def by_sets(kinds, places, need, model, y):
    return crowded_set_cuts(kinds, places, model, need.smallest, y)


def by_threes(kinds, places, _, model, y):
    return three_row_cuts(kinds, places, model, y)


def class_program(task):
    """A task's costs, row classes, patterns, places, losses by pattern, and the program over them."""
    need = task.requirement
    costs, kinds = Costs.of(task.histogram, task.recoding), row_classes_of(task.histogram, need)
    found = patterns(costs, task.recoding, need.smallest)
    places, loss = places_of(kinds, found, need), found.loss / costs.scale
    return costs, kinds, found, places, loss, model_of(kinds, places, need, loss)


@pytest.mark.parametrize("sort", [by_sets, by_threes])
def test_lines_of_several_patterns_drop_no_optimum_and_their_prices_prove_no_more_than_it(sort):
    random = np.random.default_rng(35)
    added = raised = 0
    for task in filter(None, (drawn(random, 8) for _ in range(thinned(120)))):
        need = task.requirement
        costs, kinds, found, places, loss, model = class_program(task)
        every, seen = np.arange(model.cost.size), []
        best = decide(model, every, 60.0, None, 1e-6)[1]  # an optimum by the test above

        def violated(now, y, asked=(kinds, places, need), seen=seen):
            seen.append(sort(*asked, now, y))
            return seen[-1]

        plain, _, _ = relaxation(model, clock() + 60)
        tight, price, _ = relaxation(model, clock() + 60, violated)
        assert plain is model
        assert tight.low.size == model.low.size + sum(low.size for _, low in seen)
        raised += bound_of_prices(tight, price)[0] > bound_of_prices(model, price[: model.low.size])[0] + 1e-6
        for top in range(3):  # whatever the solution in hand
            lines, low = sort(kinds, places, need, model, random.integers(0, 2 + top, every.size) / 2)
            tight = tight.with_lines(lines, low)
            added += low.size
        assert decide(tight, every, 60.0, None, 1e-6)[1] == pytest.approx(best, abs=1e-4)
        optimum, _, _ = pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))
        x = rows_by_place(task, costs, kinds, found, places, optimum)
        if x is not None:
            assert (tight.lines @ completed(kinds, places, need, x) >= tight.low - 1e-9).all()
            for lines, low in seen:
                assert (lines @ completed(kinds, places, need, x) >= low - 1e-9).all()
        used, row = used_places(task, kinds, places, costs, found, optimum), tight.owner < 0
        price = np.append(price, np.zeros(tight.low.size - price.size))
        for top in (0.0, 0.2, 2.0):
            prices = price + random.normal(0, top, price.size) * (random.random(price.size) < 0.3)
            assert bound_of_prices(tight, prices)[0] <= best + 1e-6
            value, pattern, place = priced(kinds, places, need, loss, prices[row], shared(tight, prices))
            assert value <= best + 1e-6
            assert (value + pattern[places.pattern[used]] <= best + 1e-6).all()
            assert (value + place[used] <= best + 1e-6).all()
    assert added > thinned(200)
    assert raised > 0


def test_what_uses_and_rows_add_of_either_sign_is_counted_as_often_as_it_is_paid():
    random = np.random.default_rng(37)
    tried = paid_twice = 0
    for _ in range(thinned(200)):
        width = int(random.integers(1, 3))
        table = Histogram.from_rows(random.integers(0, 2, (10, 2)), random.integers(0, 4, (10, width)))
        asked = (random.random((2, width)) < [[0.8], [0.2]]) + 1
        task = Task(table, Requirement(int(random.integers(1, 4)), *map(tuple, asked.tolist())), Recoding.stars(table))
        if shortfall(table, task.requirement) is not None:
            continue
        need = task.requirement
        costs, kinds, found, places, loss, model = class_program(task)
        columns = model.uses.column.reshape(-1, places.patterns)
        uses = random.choice([1.0, 5.0]) * random.normal(-0.5, 1.0, columns.shape)
        added = SharedPrices(0.0, uses, random.normal(0.3, 0.5, model.n))
        price = random.normal(0.5, 0.5, kinds.count.size)
        value, pattern, place = priced(kinds, places, need, loss, price, added)
        for partition in (everyone(task), pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))[0]):
            x = rows_by_place(task, costs, kinds, found, places, partition)
            if x is None:
                continue
            y = completed(kinds, places, need, x)
            cost = model.cost @ y + (uses * y[columns]).sum() + added.rows @ x
            assert value <= cost + 1e-9
            assert (value + place[x > 0] <= cost + 1e-9).all()
            assert (value + pattern[places.pattern[x > 0]] <= cost + 1e-9).all()
            tried, paid_twice = tried + 1, paid_twice + (y[columns].sum(axis=0) > 1).any()
    assert tried > thinned(200)
    assert paid_twice > thinned(50)


def test_a_class_is_cut_into_parts_of_the_sizes_that_the_program_counts():
    """Every class of up to four values: it meets k and l where parts with at most g rows of each value make it up."""
    for k, l in product(range(1, 8), range(2, 5)):
        sizes = part_sizes(k, l).tolist()
        room = {(0, 0)}  # rows asked and cap, of some parts together
        for _ in range(14):
            room |= {(m + max(k, l * g), h + g) for m, h in room for g in sizes if m + max(k, l * g) <= 14}
        for held in combinations_with_replacement(range(8), 4):
            n, top = sum(held), max(held)
            if 0 < n <= 14:
                assert (n >= k and l * top <= n) == any(0 < m <= n and top <= h for m, h in room)


def test_the_least_sum_of_a_class_is_that_of_some_rows_of_it():
    """Every choice of rows of a pattern, of either of two sorts."""
    random, finite, second = np.random.default_rng(36), 0, 0
    for _ in range(120):
        n = int(random.integers(1, 8))
        value, spare = random.integers(0, 3, n), np.round(random.normal(0.3, 1.0, n), 1)
        rows, use = random.integers(1, 3, n), np.round(random.normal(0.0, 0.5, (2, 2)), 1)
        places = PatternFits(np.arange(n), np.sort(random.integers(0, 2, n)), 2)
        sorts = [ValueLimits(*map(int, random.integers(1, (4, 6, 4)))) for _ in range(2)]
        found = least_groups(places, rows, value, spare, sorts, use)
        for p in range(2):
            here = np.repeat(np.arange(n), rows * (places.pattern == p)).tolist()
            good = [
                spare[list(x)].sum() + use[g, p]
                for size in range(1, len(here) + 1)
                for x in combinations(here, size)
                for g, asked in enumerate(sorts)
                if size >= asked.rows
                and np.unique(value[list(x)]).size >= asked.values
                and np.bincount(value[list(x)]).max() <= asked.cap
            ]
            assert found.cost[p] == (pytest.approx(min(good)) if good else np.inf)
            taken, sort = found.rows * (places.pattern == p), found.sort[p]
            assert (taken <= rows).all()
            assert (sort < 0) == (not good) == (taken.sum() == 0)
            if good:
                held = np.bincount(value, weights=taken)
                assert taken.sum() >= sorts[sort].rows
                assert (held > 0).sum() >= sorts[sort].values
                assert held.max() <= sorts[sort].cap
                assert taken @ spare + use[sort, p] == pytest.approx(found.cost[p])
            finite, second = finite + bool(good), second + (sort == 1)
    assert finite > 60
    assert second > 20


def test_columns_prove_what_the_whole_linear_program_does():
    """Without cuts, on tables of which one thing is asked; with cuts no more than the optimum, also when cut short."""
    random = np.random.default_rng(38)
    tried = raised = 0
    for _ in range(thinned(200)):
        task = drawn(random, 9)
        if task is None or len(conditions_of(task.requirement)) > 1:
            continue
        need = task.requirement
        costs, kinds, found, places, loss, model = class_program(task)
        every = np.arange(model.cost.size)
        best = decide(model, every, 60.0, None, 1e-6)[1]

        def none(now, _):
            return csr_array((0, now.cost.size)), np.zeros(0)

        def cuts(now, y, asked=(kinds, places, need)):
            both = [sort(*asked, now, y) for sort in (by_sets, by_threes)]
            return csr_array(vstack([lines for lines, _ in both])), np.concatenate([low for _, low in both])

        value = {}
        for name, violated, until in ("plain", none, 60), ("cut", cuts, 60), ("short", cuts, -1):
            start = random.random(kinds.count.size)
            program = ColumnProgram(kinds, places, need, model)
            solved = program.solve(start, best + 1.0, clock() + until, violated)
            value[name], pattern, place = priced(kinds, places, need, loss, solved.price, solved.shared)
            assert value[name] <= best + 1e-6
            x = rows_by_place(
                task,
                costs,
                kinds,
                found,
                places,
                pattern_program(task, costs, kinds, everyone(task), ProgramLimits(60.0))[0],
            )
            if x is not None:
                assert (value[name] + place[x > 0] <= best + 1e-6).all()
                assert (value[name] + pattern[places.pattern[x > 0]] <= best + 1e-6).all()
        whole, price, _ = relaxation(model, clock() + 60)
        linear = bound_of_prices(whole, price)[0]
        assert value["plain"] >= linear - 1e-3 * abs(linear) - 1e-6
        tried, raised = tried + 1, raised + (value["cut"] > linear + 1e-3)
    assert tried > thinned(60)
    assert raised > 0


def test_the_least_size_of_a_pattern_is_that_of_some_rows_of_it():
    """Every choice of rows of a pattern, by the values that they hold."""
    random, more, tried = np.random.default_rng(35), 0, 0
    while tried < 80:
        s = int(random.integers(1, 3))
        table = Histogram.from_rows(random.integers(0, 3, (9, 2)), random.integers(0, 4, (9, s)) ** 2 // 3)
        need = Requirement(int(random.integers(3, 8)), tuple(random.integers(2, 4, s).tolist()), (1,) * s)
        if shortfall(table, need) is not None:
            continue
        costs, kinds = Costs.of(table, Recoding.stars(table)), row_classes_of(table, need)
        found = patterns(costs, Recoding.stars(table), need.smallest)
        places = places_of(kinds, found, need)
        least = least_sizes(kinds, places, need)
        for p in np.unique(places.pattern):
            rows = np.repeat(
                kinds.value[places.row_class], kinds.count[places.row_class] * (places.pattern == p), axis=0
            )
            values = [tuple(r) for r in rows.tolist()]
            sizes = range(1, len(values) + 1)
            good = [n for n in sizes if any(eligible(list(x), need.k, need.frequency, need.distinct)
                                            for x in combinations(values, n))]  # fmt: skip
            assert least[p] <= good[0] if good else s > 1 or least[p] > len(values)
            assert s > 1 or not good or least[p] == good[0]
            more += bool(good) and least[p] > need.smallest
        tried += 1
    assert more > 10


def used_places(task, kinds, places, costs, found, partition):
    """Places of an optimum, each group at the cheapest pattern that fits it; those that lose as much as they must."""
    out = []
    type_of = task.histogram.types[0]
    for g in range(partition.groups):
        here = set(partition.cell[partition.group == g].tolist())
        fits = [
            p
            for p in range(found.loss.size)
            if {int(type_of[c]) for c in here} <= set(found.member[found.start[p] : found.start[p + 1]].tolist())
        ]
        p = min(fits, key=lambda p: found.loss[p])
        for c in here:
            out += np.flatnonzero((places.pattern == p) & (places.row_class == kinds.of[c])).tolist()
    return np.array(sorted(set(out)), int)


def sixty() -> Histogram:
    random = np.random.default_rng(6)
    return Histogram.from_rows(random.integers(0, 4, (60, 3)), random.integers(0, 5, 60))


def test_sixty_rows_are_proved_at_the_default_effort():
    found = tables.group(sixty(), [KAnonymity(5), DistinctLDiversity(3)], seed=0)
    assert found.certificate.optimal
    assert found.certificate.details["proof"]["stopped"] is None
    assert "linear program" not in found.certificate.details["bounds"]  # it would prove less, in more time
    with mock.patch.object(small, "CELLS", 0):
        before = tables.group(sixty(), [KAnonymity(5), DistinctLDiversity(3)], seed=0).certificate
    assert before.ratio > 1.05


def test_a_proof_that_does_not_end_says_so_and_a_seed_still_gives_the_same():
    task = Task(census_like(180, 5), Requirement(5, (1,), (2,)), Recoding.stars(census_like(180, 5)))
    with mock.patch.dict(small.SECONDS, {"balanced": 0.01}):
        cut, again = auto(task), auto(task)
    assert cut.certificate.details["proof"]["stopped"] == "seconds"
    assert cut.certificate.lower_bound < cut.certificate.cost
    assert (cut.partition.group == again.partition.group).all()
    with mock.patch.object(small, "PLACES", 10):
        assert auto(task).certificate.details["proof"]["stopped"] != "memory"  # its program is easier
        both = Task(task.histogram, Requirement(1, (2,), (3,)), task.recoding)
        assert auto(both).certificate.details["proof"]["stopped"] == "memory"
    with mock.patch.object(small, "EASY", 10):
        assert auto(task).certificate.details["proof"]["stopped"] == "memory"
    near = mock.patch.multiple(pattern_program_of, FEW=0, SUPPORT=0.0)
    with mock.patch.dict(small.HOPELESS, {"balanced": 0.0}), near, mock.patch.object(group_list, "MOST_CLASSES", 0):
        assert auto(task).certificate.details["proof"]["stopped"] == "gap"


@pytest.mark.parametrize(("rows", "seed", "more", "gains"), [(180, 5, 4, True), (120, 6, 3, False)])
def test_if_a_proof_does_not_end_further_searches_lose_less(rows, seed, more, gains):
    """They end after three in a row that gain nothing."""
    table = census_like(rows, seed)
    task, answers = Task(table, Requirement(5, (1,), (2,)), Recoding.stars(table), seed=seed), []
    for restarts in (0, 6):
        with mock.patch.multiple(small, RESTARTS=restarts, SECONDS={"balanced": 0.01}):
            answers.append(auto(task))
    once, again = answers
    assert again.certificate.details["proof"]["stopped"] == "seconds"
    assert len(again.attempts) - len(once.attempts) == more
    assert (again.certificate.cost < once.certificate.cost) == gains
    assert again.certificate.cost == min(one["cost"] for one in again.attempts) >= again.certificate.lower_bound
    assert again.partition.sizes.min() >= 5


@pytest.mark.parametrize("cores", [1, 2])
def test_a_solver_that_does_not_look_at_its_clock_is_not_waited_for(cores, monkeypatch):
    """The clock of searches goes on only where they wait for it."""
    table = census_like(150, 4)
    end, asked, ended, begun, now = threading.Event(), [], [], set(), [100.0]

    def deaf(*given, **how):
        if not threading.current_thread().name.startswith("ThreadPool"):
            return decide(*given, **how)
        asked.append(how["improves"])
        end.wait(200)
        ended.append(how["improves"])
        return None, -np.inf

    def waits(_run, *futures, seconds=0.0):
        begun.update(future for future in futures if future is not None)
        while len(asked) < sum(not future.done() for future in begun):
            time.sleep(0.001)
        now[0] += max(seconds, 0.0)
        return next((future for future in futures if future is not None and future.done()), None)

    monkeypatch.setattr(pattern_program_of, "decide", deaf)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr(group_list, "MOST_CLASSES", 0)  # groups would end it before
    monkeypatch.setattr(pattern_program_of.BackgroundCalls, "first", waits)
    monkeypatch.setattr("shoal.clock._stood", 0.0)
    monkeypatch.setattr("shoal.clock.time", SimpleNamespace(monotonic=lambda: now[0]))
    try:
        stopped = auto(Task(table, Requirement(5, (1,), (3,)), Recoding.stars(table))).certificate.details["proof"]
        assert stopped["stopped"] == "seconds"
        assert sorted(asked) == ([True] if cores == 1 else [False, True, True, True])
        assert ended == []
    finally:
        end.set()


def test_what_is_not_small_or_not_of_levels_is_not_decided():
    table = sixty()
    task = Task(table, Requirement(3, (1,), (1,)), Recoding.stars(table))
    assert small.decidable(task)
    sets = Recoding(tuple(KINDS["set"]() for _ in range(3)), "ncp")
    assert not small.decidable(Task(table, task.requirement, sets))
    with mock.patch.object(small, "CELLS", 10):
        assert not small.decidable(task)
    assert total(task, 0.0) == 0
