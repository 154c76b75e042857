"""Rows annealed among published tuples: every class within t, nothing lost on the way, never dearer."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from shoal import threads
from shoal.kernels.tables.close_classes import OpenClasses, RowsOnArcs, anneal, covering, rearrange
from shoal.kernels.tables.eligible import prices
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, TCloseness, requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables.bounds.class_program import UNIT
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search import close_classes
from shoal.problems.tables.search.cascade import start
from shoal.problems.tables.search.close_classes import (
    AGAIN,
    ANEW,
    TRIAL,
    RoundPlan,
    anneal_and_search,
    annealed,
    classes_of,
    near_classes,
    rearranged,
    trimmed,
)
from shoal.problems.tables.search.close_program import (
    Close,
    Limit,
    close_rule,
    program_of,
    repriced,
    without_small,
)
from tests.oracles.labels import partitions
from tests.oracles.models import meets
from tests.tables.drawn import TREE

T = 0.35
Round = Callable[[Task, Rows, np.ndarray, int], np.ndarray]


def made(seed: int, n: int, kind: str = "stars", more: tuple = ()) -> tuple[Task, Rows]:
    """A table of n rows whose sensitive value leans on its quasi-identifiers, as a task under k = 3 and t."""
    random = np.random.default_rng(seed)
    quasi = random.integers(0, 4, (n, 4))
    sensitive = (quasi[:, 0] + random.geometric(0.5, n)) % 4
    histogram = Histogram.from_rows(quasi, sensitive[:, None])
    column = {
        "stars": Levels.stars(4), "levels": Levels.tree(TREE), "sets": Sets.of(4),
        "ranges": Ranges.of(np.arange(4.0)),
    }[kind]  # fmt: skip
    models = [KAnonymity(3), TCloseness(T), *more]
    need = requirement(models, list(histogram.sensitive_names), histogram)
    task = Task(histogram, need, Recoding((column,) * 4), seed=seed, effort=Effort.of("balanced"))
    return task, Rows.of(task)


def program(seed: int) -> tuple[Close, Limit]:
    """The program of the tuples that the cascade publishes, some passes done."""
    task, rows = made(seed, 150, "levels")
    group, limit = rows.labels(start(task, rows)), close_rule(task)
    assert limit is not None
    every = program_of(task, rows, np.arange(group.size), rows.states(group), limit)
    assert every is not None
    wanted = np.full(every.program.loss.size, np.inf)
    return repriced(task, every, wanted, limit, 0.3), limit


def groups_meet(rows: Rows, group: np.ndarray) -> bool:
    """Whether every group has 3 rows and is within t, asked of the oracle."""
    column = [(int(v),) for v in rows.sensitive[rows.cell, 0]]
    ends = np.unique(group)
    return all(
        (group == g).sum() >= 3
        and meets(
            "TCloseness", {"t": T, "distance": "equal"}, [column[x] for x in np.flatnonzero(group == g)], column, 0
        )
        for g in ends
    )


def anew(task: Task, rows: Rows, group: np.ndarray, turn: int) -> np.ndarray:
    """A short round over all classes."""
    return annealed(task, rows, group, turn, ANEW._replace(sweeps=60.0))


def again(task: Task, rows: Rows, group: np.ndarray, turn: int) -> np.ndarray:
    """A short round over all classes."""
    return annealed(task, rows, group, turn, AGAIN._replace(sweeps=60.0))


@pytest.mark.diagonal
@pytest.mark.parametrize("one", [anew, again, rearranged])
@pytest.mark.parametrize("kind", ["stars", "levels", "sets", "ranges"])
def test_every_group_is_within_t_and_no_row_is_lost(kind: str, one: Round) -> None:
    for seed in range(4):
        task, rows = made(seed, 150, kind)
        group = rows.labels(start(task, rows))
        found = one(task, rows, group, 0)
        assert found.shape == group.shape
        assert found.min() >= 0
        assert groups_meet(rows, found)
        assert (found == one(task, rows, group, 0)).all()


@pytest.mark.parametrize("one", [anew, again, rearranged])
def test_blocks_anneal_by_themselves(monkeypatch: pytest.MonkeyPatch, one: Round) -> None:
    monkeypatch.setattr(close_classes, "BLOCK", 60)
    monkeypatch.setattr(close_classes, "NEAR_BLOCK", 60)
    task, rows = made(5, 240, "levels")
    found = one(task, rows, rows.labels(start(task, rows)), 1)
    assert found.min() >= 0
    assert groups_meet(rows, found)


def test_what_the_kernel_is_told_are_arcs_of_the_program() -> None:
    for seed, wanted in ((0, 0.0), (1, 9.0), (2, 1e9)):
        every, limit = program(seed)
        close = without_small(made(seed, 150, "levels")[0], every, wanted, limit)
        found = close.program
        assert (found.loss.size == 1) == (wanted == 1e9)  # the last, which covers everyone, is never closed
        least, above = close.cheapest()
        cell = np.repeat(np.arange(found.arcs.count.size), found.arcs.count)
        assert (found.cell[least] == np.arange(found.arcs.count.size)).all()
        assert (above[least] == 0).all()
        classes, kept = near_classes(close, limit, 3, 0.1, 0.2, least[cell])
        far = np.setdiff1d(np.arange(above.size), kept)
        assert (above[far] > 0.1 * close.largest_loss * UNIT).all()
        assert np.isin(least, kept).all()
        assert (classes.pair == found.arcs.pair[kept]).all()
        into = classes.owner[classes.pair]
        for c in range(found.loss.size):
            here = classes.arc[classes.come[c] : classes.come[c + 1]]
            assert sorted(here) == np.flatnonzero(into == c).tolist()
            cells = classes.cell[classes.come[c] : classes.come[c + 1]]
            assert ((classes.start[cells] <= here) & (here < classes.start[cells + 1])).all()


def test_rows_begin_where_they_are_published_if_there_is_such_a_class() -> None:
    for seed in range(3):
        task, rows = made(seed, 150, "levels")
        group, limit = rows.labels(start(task, rows)), close_rule(task)
        assert limit is not None
        state = rows.states(group)
        close = program_of(task, rows, np.arange(group.size), state[::2], limit)
        assert close is not None
        count = close.program.arcs.count
        least = close.cheapest()[0][np.repeat(np.arange(count.size), count)]
        at = close.arcs_of(state[group], least)
        assert (close.program.cell[at] == close.program.cell[least]).all()
        there = close.state[close.program.owner[close.program.arcs.pair[at]]]
        mine, open_now = (there == state[group]).all(axis=1), {tuple(s) for s in close.state.tolist()}
        known = np.array([tuple(s) in open_now for s in state[group].tolist()])
        assert (mine == known)[at != least].all()
        assert mine[known].all()
        assert (at == least)[~known].all()
        assert known.any()
        assert not known.all()


def test_classes_beyond_t_give_up_rows_until_they_are_within_it() -> None:
    random = np.random.default_rng(4)
    for _ in range(50):
        share = random.dirichlet(np.ones(5))
        held = random.integers(0, 9, 15)
        first, owner, none = np.array([0, 5, 10, 15]), np.repeat(np.arange(3), 5), np.zeros(0, np.int64)
        classes = OpenClasses(
            none, none, none, none, none, none, owner, first, np.tile(share, 3), np.zeros(3), T, 0.0, 3
        )
        kept = trimmed(classes, held)
        assert ((kept >= 0) & (kept <= held)).all()
        for c in range(3):
            before, after = held[5 * c : 5 * c + 5], kept[5 * c : 5 * c + 5]
            assert not after.sum() or np.abs(after / after.sum() - share).sum() / 2 <= T + 1e-9
            if before.sum() and np.abs(before / before.sum() - share).sum() / 2 <= T:
                assert (before == after).all()


@pytest.mark.parametrize("one", [anew, again, rearranged])
def test_models_asked_for_beside_it_hold_too(one: Round) -> None:
    task, rows = made(3, 120, more=(DistinctLDiversity(4),))
    found = one(task, rows, rows.labels(start(task, rows)), 0)
    value = rows.sensitive[rows.cell, 0]
    assert all(np.unique(value[found == g]).size == 4 for g in np.unique(found))
    assert groups_meet(rows, found)


def test_never_dearer_and_often_cheaper() -> None:
    gains = []
    for seed in range(2):
        task, rows = made(seed, 240, "levels")
        group = rows.labels(start(task, rows))
        before = task.recoding.cost(task.histogram, rows.partition(group))
        found, told = anneal_and_search(task, rows, group, steps=40)
        gains.append(before - task.recoding.cost(task.histogram, rows.partition(found)))
        assert told.rounds == 3
        assert told.steps >= 40
        assert groups_meet(rows, found)
    assert min(gains) >= 0
    assert max(gains) > 0


def test_what_the_kernel_counts_is_what_stands_there() -> None:
    task, rows = made(7, 200)
    group = rows.labels(start(task, rows))
    state = np.unique(rows.states(group), axis=0)
    cells = np.arange(task.histogram.cells)
    first = np.empty(cells.size + 1, np.int64)
    tuples = np.empty(covering(rows.slots, state, rows.leaf, first, np.zeros(0, np.int32)), np.int32)
    covering(rows.slots, state, rows.leaf, first, tuples)
    star = state > 3  # nodes of a column of stars: its four codes, then the star
    for i in cells:
        quasi = task.histogram.quasi[i]
        expected = [c for c in range(len(state)) if all(star[c] | (state[c] == rows.leaf[i]))]
        assert tuples[first[i] : first[i + 1]].tolist() == expected, quasi
    limit, spare = close_rule(task), 0.4
    assert limit is not None
    share = limit.share
    value = np.repeat(rows.sensitive[:, 0].astype(np.int64), np.diff(first))
    key, pair = np.unique(tuples * np.int64(4) + value, return_inverse=True)
    pair = pair.reshape(-1).astype(np.int32)
    order = np.argsort(tuples, kind="stable")
    classes = OpenClasses(first, pair, np.concatenate([[0], np.cumsum(task.histogram.count)]),
                      np.searchsorted(tuples[order], np.arange(len(state) + 1)), order,
                      np.repeat(cells, np.diff(first))[order], key // 4,
                      np.searchsorted(key // 4, np.arange(len(state) + 1)), share[key % 4],
                      prices(rows.slots, state), limit.t, spare, 3)  # fmt: skip
    at = first[1:][rows.cell] - 1
    held = np.bincount(classes.pair[at], minlength=key.size).astype(np.int64)
    size = np.bincount(key // 4, weights=held, minlength=len(state)).astype(np.int64)
    cell = rows.cell.astype(np.int64)
    placed = RowsOnArcs(cell, at, held, size)
    beyond = anneal(classes, placed, 0.3, 1.0, 20_000, np.array([5], np.uint64))
    assert ((first[cell] <= at) & (at < first[cell + 1])).all()
    assert (held == np.bincount(classes.pair[at], minlength=key.size)).all()
    total = 0.0
    for c in range(len(state)):
        here = rows.sensitive[rows.cell, 0][(key // 4)[classes.pair[at]] == c]
        assert here.size == size[c]
        if here.size:
            over = sum(max(0.0, (here == v).sum() - share[v] * here.size) for v in range(4))
            total += max(0.0, over - limit.t * here.size + spare) + max(0, 3 - here.size)
    assert abs(beyond - total) < 1e-6
    for turn in range(300):  # few moves at a time: what one of them leaves wrong no later one covers up
        told = anneal(classes, placed, 0.3, 1.0, 10, np.array([turn + 1], np.uint64))
        again = anneal(classes, placed, 0.0, 1.0, 0, np.array([1], np.uint64))
        assert abs(told - again) < 1e-6
    cold = anneal(classes, placed, 0.0, 1e6, 20_000, np.array([6], np.uint64))
    assert cold <= beyond + 1e-6


def lacking(rows: Rows, cells: np.ndarray, share: np.ndarray) -> bool:
    """Whether some rows are fewer than 3 or beyond t."""
    held = np.bincount(rows.sensitive[cells, 0], minlength=share.size)
    return bool(cells.size < 3 or np.maximum(held - share * cells.size, 0).sum() > T * cells.size + 1e-9)


@pytest.mark.parametrize("kind", ["stars", "levels", "sets", "ranges"])
def test_what_near_classes_become_is_within_t_and_saves_what_is_told(kind: str) -> None:
    saved, opened, widened = 0.0, 0, 0
    for seed in range(4):
        task, rows = made(seed, 200, kind)
        limit, group = close_rule(task), rows.labels(start(task, rows))
        assert limit is not None
        state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
        label = of.reshape(-1)[group]
        block = np.sort(np.random.default_rng(seed).permutation(len(state))[: 2 + len(state) // 2])
        inside = np.flatnonzero(np.isin(label, block))
        asked, kept = classes_of(task, rows, inside, label, state)
        random, cells = np.array([seed + 1], np.uint64), rows.cell[inside]
        for turn in range(60):  # few moves at a time: what one of them leaves wrong no later one covers up
            loss, names = (kept.loss * kept.size).sum(), {tuple(s) for s in kept.state[kept.size > 0].tolist()}
            told = rearrange(rows.slots, asked, kept, 60, 1 if turn < 40 else 30_000, random)
            assert told >= 0
            assert told == pytest.approx(loss - (kept.loss * kept.size).sum(), abs=1e-9)
            saved += told
            assert (kept.size == np.bincount(kept.of, minlength=kept.size.size)).all()
            for c in range(kept.size.size):
                here, x = [], kept.head[c]
                while x >= 0:
                    here.append(x)
                    x = kept.next[x]
                assert sorted(here) == np.flatnonzero(kept.of == c).tolist()
                if here:
                    narrow = rows.covers(cells[np.sort(here)], np.array([0]))
                    assert (kept.state[c] == narrow[0]).all()
                    assert kept.loss[c] == prices(rows.slots, narrow)[0]
                    assert not lacking(rows, cells[here], limit.share)
            now = {tuple(s) for s in kept.state[kept.size > 0].tolist()}
            opened += len(now) > len(names)
            widened += len(now) == len(names) and now != names
    assert saved > 0
    assert opened + widened > 0


def test_near_classes_end_at_the_least_loss_of_all_partitions() -> None:
    reached, worse = 0, 0
    for seed in range(12):
        task, rows = made(seed, 9, ("stars", "levels", "sets", "ranges")[seed % 4])
        limit = close_rule(task)
        assert limit is not None
        group = np.zeros(9, np.int64)
        least = np.inf
        for label in map(np.array, partitions(9)):
            if all(not lacking(rows, rows.cell[label == g], limit.share) for g in range(label.max() + 1)):
                least = min(least, prices(rows.slots, rows.states(label))[label].sum())
        asked, kept = classes_of(task, rows, np.arange(9), group, rows.states(group))
        whole = float((kept.loss * kept.size).sum())
        rearrange(rows.slots, asked, kept, 300, 200_000, np.array([seed + 1], np.uint64))
        found = float((kept.loss * kept.size).sum())
        assert found >= least - 1e-9
        reached += found <= least + 1e-9
        worse += whole > least + 1e-9
    assert worse >= 6
    assert reached >= 9


def test_only_where_equal_distance_of_one_column_is_asked() -> None:
    task, _ = made(0, 60)
    histogram = task.histogram
    names = list(histogram.sensitive_names)
    other = requirement([KAnonymity(3), TCloseness(0.5, "ordered")], names, histogram)
    assert close_rule(task) is not None
    assert close_rule(Task(histogram, other, task.recoding, seed=0, effort=Effort.of("balanced"))) is None


@pytest.mark.parametrize("name", ["balanced", "thorough"])
def test_rounds_anneal_anew_until_one_is_in_vain_and_a_short_effort_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, rows = made(3, 120, "levels")
    task = replace(task, effort=Effort.of(name))
    group = rows.labels(start(task, rows))
    rounds, hot, whole = [], [], np.zeros_like(group)

    def noted(task: Task, rows: Rows, group: np.ndarray, turn: int, plan: RoundPlan, until: object) -> np.ndarray:
        rounds.append("again" if plan.stay else "anew")
        hot.extend([plan.hot] * plan.stay)
        return whole

    def near(task: Task, rows: Rows, group: np.ndarray, turn: int, until: None) -> np.ndarray:
        rounds.append("near")
        assert until is None  # a word counts moves
        return whole

    def kept(task: Task, rows: Rows, group: np.ndarray, **given: object) -> tuple[np.ndarray, object]:
        return group, SimpleNamespace(steps=0)

    losses = iter([(0, 9.0), *((0, 8.0 - i / 9) for i in range(4)), *[(0, 9.5)] * 99])
    monkeypatch.setattr(close_classes, "rank", lambda task, partition: next(losses))
    monkeypatch.setattr(close_classes, "annealed", noted)
    monkeypatch.setattr(close_classes, "rearranged", near)
    monkeypatch.setattr(close_classes, "search", kept)
    anneal_and_search(task, rows, group, steps=40)
    turns = ["again", "near"]
    assert rounds == (["anew", *turns] if name == "balanced" else ["anew"] * 3 + turns * 4 + turns[:1])
    assert hot == sorted(hot, reverse=True)
    assert name == "balanced" or hot[-1] < hot[0]


def rounds_of(
    monkeypatch: pytest.MonkeyPatch, seconds: float, gains: dict[str, float], later: float = 0.0
) -> list[str]:
    """The rounds against a clock on which each takes a second; what each kind gains, of the search too.

    later  what "anew" gains after the first time
    """
    task, rows = made(3, 120, "levels")
    group, rounds, now = rows.labels(start(task, rows)), [], [0.0]
    loss = [(0, 1000.0)]

    def took(kind: str, group: np.ndarray) -> np.ndarray:
        now[0] += 1.0
        gain = later if kind == "anew" and kind in rounds else gains.get(kind, 0.0)
        loss.append((0, min(loss)[1] - gain))
        rounds.append(kind)
        return group

    def all_of_them(task: Task, rows: Rows, group: np.ndarray, turn: int, plan: RoundPlan, until: object) -> np.ndarray:
        return took("again" if plan.stay else "anew", group)

    def near(task: Task, rows: Rows, group: np.ndarray, turn: int, until: float) -> np.ndarray:
        return took("near", group)

    def search(task: Task, rows: Rows, group: np.ndarray, deadline: float, near: None) -> tuple[np.ndarray, object]:
        spent, now[0] = deadline - now[0], deadline
        rounds.append("long" if spent > 0.5 else "short")
        loss.append((0, min(loss)[1] - gains.get("search", 0.0) * spent))
        return group, SimpleNamespace(steps=0)

    monkeypatch.setattr(close_classes, "rank", lambda task, partition: loss[-1])
    for name, made_up in (("annealed", all_of_them), ("rearranged", near), ("search", search)):
        monkeypatch.setattr(close_classes, name, made_up)
    monkeypatch.setattr(close_classes, "clock", lambda: now[0])
    monkeypatch.setattr(close_classes, "neighbor_graph", lambda *given: None)
    monkeypatch.setattr(close_classes, "looks", lambda *given: 0.0)
    anneal_and_search(replace(task, effort=Effort.of("balanced")), rows, group, deadline=seconds)
    return rounds


def test_against_the_clock_the_rounds_that_gain_most_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rounds_of(monkeypatch, 12.0, {"anew": 9.0, "again": 1.0, "near": 2.0})
    assert found[:8] == ["anew", "short", "again", "short", "near", "short", "anew", "long"]
    assert set(found[8::2]) == {"near"}
    found = rounds_of(monkeypatch, 12.0, {"anew": 9.0, "near": 1.0}, later=2.0)
    assert set(found[8:-2:2]) == {"anew"}  # and near ones once there is no time for more
    found = rounds_of(monkeypatch, 24.0, {"anew": 9.0, "again": 2.0, "near": 1.0})
    assert set(found[8:14:2]) == {"again"}
    assert found[-4::2] == ["near", "near"]  # there is no time for ten more of the others
    found = rounds_of(monkeypatch, 50.0, {"anew": 9.0})  # all in vain: they take turns, and search has as long as they
    assert found[2:14:2] == ["again", "near", "anew", "again", "near", "again"]
    assert set(found[3:-1:2]) == {"long"}
    found = rounds_of(monkeypatch, 30.0, {"anew": 9.0, "again": 1.0, "near": 1.0, "search": 5.0})
    assert set(found[5:-1:2]) == {"long"}


def test_only_a_round_of_one_block_lasts_longer_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several blocks, some begin when others have ended, so that each has its share of the time and no more."""
    task, rows = made(3, 120, "levels")
    group, asked = rows.labels(start(task, rows)), []

    def noted(task: Task, rows: Rows, group: np.ndarray, turn: int, plan: RoundPlan, until: object) -> np.ndarray:
        asked.append((plan.sweeps, until.cooled, until.priced))
        return group

    monkeypatch.setattr(close_classes, "annealed", noted)
    monkeypatch.setattr(close_classes, "clock", lambda: 100.0)
    turn = close_classes.Turn("anew", 1.0, {"anew": 20.0, "again": 1.0, "near": 1.0}, {})
    for block, seconds in ((40_000, 100.0), (40, 100.0), (40, 10.0), (40_000, 10.0)):
        monkeypatch.setattr(close_classes, "BLOCK", block)
        close_classes._round(task, rows, group, 0, turn, 100.0 + seconds)
    assert asked[0] == (ANEW.sweeps, 160.0, 160.0)
    assert asked[1] == (ANEW.sweeps, 185.0, 160.0)
    assert asked[2] == (ANEW.sweeps / 2, 108.5, 106.0)
    assert asked[3] == (ANEW.sweeps / 2, 108.5, 106.0)


def test_with_little_time_rounds_are_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 120 * ANEW.pace
    assert rounds_of(monkeypatch, 0.1 * seconds, {})[0] == "near"
    assert rounds_of(monkeypatch, 0.3 * seconds, {})[0] == "again"
    assert rounds_of(monkeypatch, 1.0, {})[0] == "anew"


@pytest.mark.parametrize("one", [anew, again, rearranged])
def test_rows_anneal_alike_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch, one: Round) -> None:
    monkeypatch.setattr(close_classes, "NEAR_BLOCK", 40)
    task, rows = made(6, 150, "levels")
    group, found = rows.labels(start(task, rows)), []
    for many in (1, 2, 5):
        monkeypatch.setattr("os.cpu_count", lambda many=many: many)
        found.append(one(task, rows, group, 0))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize("worse", [0, 1])
def test_of_two_coolings_the_better_is_kept(monkeypatch: pytest.MonkeyPatch, worse: int) -> None:
    task, rows = made(6, 150, "levels")
    group, cooled, seen = rows.labels(start(task, rows)), close_classes._cooled, []

    def noted(close: Close, *given: object) -> np.ndarray:
        seen.append(cooled(close, *given))
        everyone = np.full_like(seen[-1], close.program.loss.size - 1)
        return everyone if len(seen) == worse + 1 else seen[-1]

    monkeypatch.setattr(close_classes, "_cooled", noted)
    monkeypatch.setattr(close_classes, "threads", lambda most: threads.threads(1))  # in turn
    found = annealed(task, rows, group, 0, ANEW._replace(sweeps=40.0))
    top = rows.place(rows.cut(np.zeros_like(group)))
    assert len(seen) == 2
    assert not (found == top).all()
    assert task.recoding.cost(task.histogram, rows.partition(found)) < task.recoding.cost(
        task.histogram, rows.partition(top)
    )


@pytest.mark.parametrize("each", [1e-9, 1e-4])
def test_rows_have_moved_when_the_clock_says_so(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    close, limit = program(2)
    count, now, moved = close.program.arcs.count, [100.0], []

    def anneal(classes: OpenClasses, *given: object) -> float:
        moved.append(int(given[-2]))
        now[0] += each * moved[-1]
        return 0.0

    monkeypatch.setattr(close_classes, "clock", lambda: now[0])
    monkeypatch.setattr("shoal.kernels.tables.close_classes.anneal", anneal)
    at, asked = close.cheapest()[0][np.repeat(np.arange(count.size), count)], ANEW._replace(sweeps=2000.0)
    close_classes._cooled(close, limit, 3, at, asked, np.uint64(1), 104.0)
    turns, all_moves = sum(stage.turns for stage in ANEW.stages), 2000.0 * at.size
    assert len(moved) == turns + 1
    assert moved[0] == TRIAL * at.size  # they show how fast rows move
    if each * all_moves < 4.0:
        assert all_moves - turns <= sum(moved) <= all_moves
    else:  # after the first moves it is known how fast they go: the later turns are as long as planned, in proportion
        assert 103.5 < now[0] < 104.1
        of_turns = [stage.moves / stage.turns for stage in ANEW.stages for _ in range(stage.turns)]
        assert np.ptp(np.array(moved[2:]) / of_turns[1:]) < 0.05 * max(moved[2:])


def test_rows_of_classes_that_lack_something_move_first() -> None:
    # Of 400 pairs of classes only the first class has a value too often; its rows and those of the second can change.
    pairs, t = 400, 0.1
    cells = 4 * pairs  # two values in each of the two classes of a pair, a row each
    owner = np.repeat(np.arange(2 * pairs), 2)
    value = np.arange(cells) % 2
    start_of = 2 * np.arange(cells + 1)
    mine = np.arange(cells) // 2
    other = mine ^ 1
    pair = np.stack([2 * mine + value, 2 * other + value], axis=1).reshape(-1).astype(np.int32)
    into = owner[pair]
    order = np.argsort(into, kind="stable")
    classes = OpenClasses(
        start_of, pair, np.arange(cells + 1), np.searchsorted(into[order], np.arange(2 * pairs + 1)), order,
        np.repeat(np.arange(cells), 2)[order], owner, np.arange(0, cells + 1, 2), np.full(cells, 0.5),
        np.zeros(2 * pairs), t, 0.0, 1,
    )  # fmt: skip
    mended = 0
    for seed in range(1, 11):
        at = start_of[:-1].copy()
        at[0], at[3] = 1, 7  # a row of value 0 and one of value 1 have changed sides
        held = np.bincount(pair[at], minlength=cells).astype(np.int64)
        size = np.bincount(owner, weights=held, minlength=2 * pairs).astype(np.int64)
        placed = RowsOnArcs(np.arange(cells), at, held, size)
        left = anneal(classes, placed, 1e-9, 1e5, 100, np.array([seed], np.uint64))
        mended += left == 0
    assert mended >= 8


def test_one_block_is_closed_at_two_sizes_and_several_blocks_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    task, rows = made(6, 150, "levels")
    group, closed, least = rows.labels(start(task, rows)), close_classes.without_small, []

    def noted(task: Task, close: Close, size: float, limit: Limit) -> Close:
        least.append(size)
        return closed(task, close, size, limit)

    monkeypatch.setattr(close_classes, "without_small", noted)
    anew(task, rows, group, 0)
    assert sorted(least) == sorted(part * ANEW.wanted * rows.k for part in (0.85, 1.0))
    least.clear()
    monkeypatch.setattr(close_classes, "BLOCK", 75)
    anew(task, rows, group, 0)
    assert least == 2 * [ANEW.wanted * rows.k]
