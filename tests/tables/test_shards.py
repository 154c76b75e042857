"""Shards: every group meets what was asked, and the bound of the whole is never above the optimum of the whole."""

import io
import pickle
import zlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies

import shoal
from shoal.clock import clock
from shoal.errors import PolicyError, ShoalError
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement, requirement
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.model.task import Constraints, Task
from shoal.problems.tables import group
from shoal.problems.tables import shards as shards_of_tables
from shoal.problems.tables.bounds import near_cells
from shoal.problems.tables.shards import composed, cut
from tests.oracles.tables import least_loss, row_loss
from tests.tables.drawn import TREE, assert_eligible, tasks, total


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=8), draw=strategies.data())
def test_the_bound_is_never_above_the_optimum_of_the_whole(task, draw):
    """For shards of any cells: it is what groups across them could save that a sum of the shards' optima leaves out."""
    of = draw.draw(
        strategies.lists(strategies.integers(0, 2), min_size=task.histogram.cells, max_size=task.histogram.cells)
    )
    parts = [np.flatnonzero(np.array(of) == s) for s in sorted(set(of))]
    best = least_loss(task.histogram, task.requirement, task.recoding)
    for value in composed(task, parts, clock() + 60).values.values():
        assert total(task, value) <= best + 1e-9


def in_shards(table, need, method, shards, *, recoding=None, seed=1):
    how = {"recoding": recoding, "effort": "fast", "seed": seed}
    return group(table, need, method, **how, constraints=Constraints(shards=shards))


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=8), shards=strategies.integers(2, 4))
def test_a_certificate_does_not_tell_how_many_shards_there_are(task, shards):
    """A table that cannot be cut is certified by its loss too, and no theorem promises more of it."""
    found = in_shards(task.histogram, task.requirement, "three_phase", shards, recoding=task.recoding)
    assert found.certificate.unit == task.recoding.unit
    best = least_loss(task.histogram, task.requirement, task.recoding)
    assert total(task, found.certificate.lower_bound) <= best + 1e-9 <= total(task, found.certificate.cost) + 2e-9
    assert found.certificate.guarantee == Guarantee()


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=8), shards=strategies.integers(2, 4))
def test_shards_are_eligible_and_so_is_every_group(task, shards):
    parts = cut(replace(task, seed=1), shards)
    assert len(parts) <= shards
    assert sorted(np.concatenate(parts).tolist()) == list(range(task.histogram.cells))
    found = in_shards(task.histogram, task.requirement, "auto", shards, recoding=task.recoding)
    assert_eligible(task, found.partition)
    best = least_loss(task.histogram, task.requirement, task.recoding)
    assert total(task, found.certificate.lower_bound) <= best + 1e-9 <= total(task, found.certificate.cost) + 2e-9
    shard_of = {int(c): s for s, part in enumerate(parts) for c in part}
    if len(parts) > 1 and found.certificate.details.get("shards") == len(parts):
        for g in range(found.partition.groups):
            inside = {shard_of[int(c)] for c in found.partition.cell[found.partition.group == g]}
            assert len(inside) == 1


@settings(deadline=None, max_examples=100)
@given(task=tasks(most=6), draw=strategies.data())
def test_what_lies_beyond_is_the_least_of_all_pairs(task, draw):
    for j, column in enumerate(task.recoding.columns):
        codes = np.arange(column.size)
        present = np.array(
            draw.draw(strategies.lists(strategies.booleans(), min_size=column.size, max_size=column.size))
        )
        present[draw.draw(strategies.integers(0, column.size - 1))] = True
        pairs = column.pair(codes[:, None], codes[None, :]) * column.weight
        alone = Recoding((column,), "ncp")
        for a in codes:
            for b in codes:
                assert pairs[a, b] == pytest.approx(row_loss(alone, [(int(a),), (int(b),)])), j
        least = np.where(present, 0.0, np.where(present[None, :], pairs, np.inf).min(axis=1))
        assert column.beyond(present) * column.weight == pytest.approx(least)


def test_a_large_table_in_shards_loses_a_little_more():
    quasi = np.random.default_rng(0).integers(0, 40, (2000, 3))
    table = Histogram.from_rows(quasi)
    need = requirement([KAnonymity(5)], (), table)

    recoding = Recoding(tuple(Ranges.of(np.arange(40.0)) for _ in range(3)))
    whole = group(table, need, "auto", recoding=recoding, effort="balanced", seed=1)
    parts = in_shards(table, need, "auto", 8, recoding=recoding)
    assert parts.certificate.details["shards"] == 8
    assert whole.certificate.cost < parts.certificate.cost < 1.25 * whole.certificate.cost
    assert 0 < parts.certificate.lower_bound <= whole.certificate.cost
    with pytest.raises(PolicyError, match="recodes the whole table in one way"):
        in_shards(table, need, "global_recoding", 2)


def test_a_value_that_only_one_side_has_keeps_the_table_whole():
    """Half the rows have one sensitive value and lie on one side: no cut there leaves both sides eligible."""
    table = Histogram.from_rows(np.arange(40)[:, None], np.repeat([0, 1], 20)[:, None])
    assert len(cut_of(table, Requirement(k=2, frequency=(2,), distinct=(1,)))) == 1
    assert len(cut_of(table, Requirement(k=2, frequency=(1,), distinct=(1,)))) == 4


def test_ceilings_are_heeded_by_every_shard():
    """No cut parts rows that only each other can be grouped with, and no method passes a level that is forbidden."""
    recoding, need = Recoding((Levels.tree(TREE, ceiling=1),) * 2), Requirement(k=3)
    several = 0
    for seed in range(25):
        quasi = np.random.default_rng(seed).integers(0, 4, (24, 2))
        table = Histogram.from_rows(quasi)
        if any(0 < np.all(quasi // 2 == pair, axis=1).sum() < 3 for pair in np.ndindex(2, 2)):
            continue  # no table exists
        found = in_shards(table, need, "cascade", 3, recoding=recoding, seed=seed)
        assert recoding.publish(table, found.partition).first.max() <= 1
        several += "shards" in found.certificate.details
    assert several > 4
    with pytest.raises(PolicyError, match="recodes the whole table in one way"):
        in_shards(table, Requirement(k=2), "coarsen", 2)


def cut_of(table, need):
    return cut(Task(table, need, Recoding.stars(table)), 4)


def test_the_middle_of_a_sample_cuts_nearly_in_half(monkeypatch):
    table = nearly_unique(4_000)
    heavy = table.quasi[:, 0] > np.median(table.quasi[:, 0])
    table = replace(table, count=np.where(heavy, 9, 1))  # the middle of the rows, not of the cells
    tasks = [Task(table, Requirement(k=4), Recoding.stars(table), seed=seed) for seed in range(6)]
    exact = [cut(task, 2) for task in tasks]
    monkeypatch.setattr(shards_of_tables, "MIDDLE", 400)
    sampled = [cut(task, 2) for task in tasks]
    other = 0
    for task, whole, some in zip(tasks, exact, sampled, strict=True):
        assert sorted(np.concatenate(some).tolist()) == list(range(table.cells))
        assert [p.tolist() for p in some] == [p.tolist() for p in cut(task, 2)]
        other += [p.tolist() for p in some] != [p.tolist() for p in whole]
        for parts, uneven in ((whole, 1.3), (some, 1.6)):
            rows = [int(table.count[p].sum()) for p in parts]
            assert max(rows) < uneven * min(rows)
    assert other  # a sample of few cells has the same middle by chance


def test_what_cannot_be_cut_into_shards():
    frame = pl.DataFrame({"a": range(40), "s": ["p", "q", "r", "s"] * 10})
    asked = {"quasi_identifiers": ["a"], "sensitive": ["s"], "k": 4, "publish": "ranges"}
    for wrong in ({"shards": 0}, {"shards": True}, {"shards": 2, "publish": "stars", "global_recoding": True}):
        with pytest.raises(PolicyError, match="shards"):
            shoal.anonymize(frame, **(asked | wrong))


def workers(each, tasks, together):
    """Workers of this process: orders and answers go through bytes, and the last order is answered first."""
    assert together is None
    each = pickle.loads(pickle.dumps(each))
    return iter([answer for sent in reversed(list(tasks)) for answer in each(sent)])


def nearly_unique(rows: int = 400) -> Histogram:
    rng = np.random.default_rng(3)
    points = rng.normal(size=(rows, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(rows, 4))
    return Histogram.from_rows(np.round(points * 8 - (points * 8).min(axis=0)).astype(int).tolist())


def by_workers(table, spread, shards=4, need=KAnonymity(4), **how):
    recoding = Recoding.stars(table)
    asked = Constraints(shards=shards, workers=spread)
    return group(table, need, "auto", recoding=recoding, effort="fast", seed=3, constraints=asked, **how)


@settings(deadline=None, max_examples=30)
@given(task=tasks(most=8), shards=strategies.integers(2, 4))
def test_workers_make_the_groups_that_are_made_here(task, shards):
    how = {"recoding": task.recoding, "effort": "fast", "seed": 1}
    made = [
        group(task.histogram, task.requirement, "auto", **how, constraints=Constraints(shards=shards, workers=spread))
        for spread in (None, workers)
    ]
    here, there = (found.partition for found in made)
    assert all(np.array_equal(getattr(here, x), getattr(there, x)) for x in ("cell", "group", "count"))
    assert_eligible(task, there)
    assert made[0].certificate.cost == made[1].certificate.cost
    least = least_loss(task.histogram, task.requirement, task.recoding)
    assert total(task, made[1].certificate.lower_bound) <= least + 1e-9


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=8), many=strategies.sampled_from([1, 300, 70_000]))
def test_an_order_arrives_as_it_was_sent(task, many):
    h = task.histogram
    task = replace(task, histogram=replace(h, count=h.count * many, quasi=h.quasi * many))
    order = shards_of_tables._ShardTask(1, 2, "auto", task)
    found = shards_of_tables._deserialized(shards_of_tables._serialized(order))
    assert found[:3] == order[:3]
    for name in ("quasi", "sensitive", "count"):
        here, there = getattr(task.histogram, name), getattr(found.task.histogram, name)
        assert np.array_equal(here, there)
        assert here.dtype == there.dtype


def test_workers_prove_what_is_proved_here():
    table = nearly_unique()
    here, there = (by_workers(table, spread).certificate for spread in (None, workers))
    assert (here.cost, here.lower_bound) == (there.cost, there.lower_bound)
    assert there.lower_bound > 0
    assert there.details["shards"] == here.details["shards"] == 4


def _changed(sent: bytes, change):
    """What a worker finds, its arrays changed."""
    for number, held in shards_of_tables._search_in_worker(sent):
        with np.load(io.BytesIO(zlib.decompress(held))) as found:
            arrays = change(dict(found))
        out = io.BytesIO()
        np.savez(out, **arrays)
        yield number, zlib.compress(out.getvalue())


def _parted(sent: bytes):
    """A worker that takes a row out of every group it can."""
    return _changed(sent, lambda found: found | {"group": np.arange(found["cell"].size)})


def _short(sent: bytes):
    """A worker that loses a row."""
    rows = ("cell", "group", "rows")
    return _changed(sent, lambda found: {n: a[1:] if n in rows else a for n, a in found.items()})


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        (lambda each, tasks, _: workers(each, [*tasks][1:], None), "each shard once"),
        (lambda each, tasks, _: workers(each, [*(held := [*tasks])[1:], held[1]], None), "each shard once"),
        (lambda each, tasks, _: workers(each, [*(held := [*tasks]), held[1]], None), "each shard once"),
        (lambda each, tasks, _: ((n + 1, held) for n, held in workers(each, tasks, None)), "each shard once"),
        (
            lambda each, tasks, _: ((3 - n, held) for n, held in workers(each, tasks, None)),
            "cells of another|placed|row",
        ),
        (lambda _, tasks, together: workers(_parted, tasks, together), "does not meet the models"),
        (lambda _, tasks, together: workers(_short, tasks, together), "row"),
    ],
)
def test_workers_that_err_are_seen(spread, said):
    with pytest.raises(ShoalError, match=said):
        by_workers(nearly_unique(), spread)


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=8), draw=strategies.data())
def test_the_nearest_cells_of_a_sample_are_those_of_all_pairs(task, draw):
    cells = strategies.lists(strategies.integers(0, task.histogram.cells - 1), min_size=2, max_size=6)
    asked, among = (np.array(draw.draw(cells)) for _ in range(2))
    lost = sum(
        column.pair(task.histogram.quasi[asked, j][:, None], task.histogram.quasi[among, j]) * column.weight
        for j, column in enumerate(task.recoding.columns)
    )
    near = shards_of_tables._nearest(task, asked, among)
    found = np.sort(np.take_along_axis(lost, near, axis=1), axis=1)
    assert np.allclose(found, np.sort(lost, axis=1)[:, : near.shape[1]])


def test_a_bound_that_workers_had_no_time_for_is_not_sought_again_here(monkeypatch):
    """The sorting of cells around centers is not begun where it would take all the time, there or here."""
    asked = []
    monkeypatch.setattr(shards_of_tables, "neighbors", lambda task, until: asked.append(task))
    by_workers(nearly_unique(), workers)
    assert len(asked) == 4


def test_the_nearest_rows_of_more_cells_than_there_is_time_for_are_not_sought(monkeypatch):
    table = nearly_unique(2000)
    task = Task(table, requirement([KAnonymity(4)], (), table), Recoding.stars(table))
    monkeypatch.setattr(near_cells.Pairs, "of", lambda *_, **__: pytest.fail("it was begun"))
    monkeypatch.setattr(near_cells, "INDEX_PACE", 1.0)  # look-ups of a second
    assert near_cells.neighbors(task, clock() + 60) is None
