"""Tuples priced in under t-closeness: sets that are close and gain what they say, programs that lose nothing known."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from shoal.kernels.tables.close_classes import RowSets, SetRequest, close_sets
from shoal.kernels.tables.lattice import GeneralizedCells
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice
from shoal.problems.tables.search import close_program
from shoal.problems.tables.search.cascade import start
from shoal.problems.tables.search.close_program import (
    Close,
    Limit,
    close_rule,
    priced_in,
    program_of,
    repriced,
    without_small,
)
from tests.tables.test_close_classes import made


def beyond(value: np.ndarray, share: np.ndarray) -> float:
    """Rows by which the values of some rows exceed their shares."""
    return float(np.maximum(np.bincount(value, minlength=share.size) - share * value.size, 0.0).sum())


def first(seed: int, kind: str = "levels") -> tuple[Close, Limit, tuple]:
    task, rows = made(seed, 200, kind)
    limit, group = close_rule(task), rows.labels(start(task, rows))
    assert limit is not None
    close = program_of(task, rows, np.arange(group.size), rows.states(group), limit)
    assert close is not None
    return close, limit, (task, rows, group)


def test_sets_are_in_one_class_close_and_gain_what_they_say() -> None:
    random, several = np.random.default_rng(3), 0
    for seed in range(6):
        _, limit, (task, rows, _) = first(seed)
        h, lattice = task.histogram, Lattice.of(task.recoding)
        up, at, size, exact = lattice.flat
        loss = np.concatenate([lost.reshape(-1) for lost in lattice.loss])
        paid = random.random(h.cells) * 4
        sizes = np.array([3, 5, 8, 13])
        room = limit.t * sizes - 0.4
        value = rows.sensitive[:, 0].astype(np.int64)
        asked = SetRequest(paid, np.argsort(-paid), h.count, value, limit.share, sizes, room, 0.5)
        nodes = np.array(list(product(*map(range, lattice.heights))), np.int32)
        out = RowSets(np.empty(2 * h.rows), np.empty(2 * h.rows, np.int64), np.empty(2 * h.rows, np.int64))
        done = 0
        while done < len(nodes):
            steps, sets = close_sets(GeneralizedCells(h.quasi, up, at, size, exact), nodes[done:], loss, asked, out)
            assert steps > 0  # however little room is left, there was some for one node
            for x in range(sets):
                cell = out.cell[out.end[x - 1] if x else 0 : out.end[x]]
                assert (np.bincount(cell, minlength=h.cells) <= h.count).all()
                assert cell.size in sizes
                assert beyond(value[cell], limit.share) <= limit.t * cell.size - 0.4 + 1e-9
                fitting = [
                    node for node in nodes[done : done + steps]
                    if all(np.unique(lattice.up[j][node[j]][h.quasi[cell, j]]).size == 1 for j in range(4))
                    and abs(paid[cell].sum() - cell.size * sum(
                        lattice.loss[j][node[j]][h.quasi[cell[0], j]] for j in range(4)) - out.gain[x]) < 1e-9
                ]  # fmt: skip
                assert fitting
                assert out.gain[x] > 0.5
                several += 1
            done += steps
    assert several > 100


def test_a_class_that_pays_is_found() -> None:
    _, limit, (task, rows, _) = first(1)
    h, lattice = task.histogram, Lattice.of(task.recoding)
    up, at, size, exact = lattice.flat
    loss = np.concatenate([lost.reshape(-1) for lost in lattice.loss])
    value, top = rows.sensitive[:, 0].astype(np.int64), np.array([[x - 1 for x in lattice.heights]], np.int32)
    rich = np.full(h.cells, 100.0)  # everyone gains at the top, where all rows are exactly the table
    asked = SetRequest(rich, np.arange(h.cells), h.count, value, limit.share, np.array([h.rows]), np.array([1e-6]), 0.0)
    out = RowSets(np.empty(9), np.empty(9, np.int64), np.empty(h.rows, np.int64))
    assert close_sets(GeneralizedCells(h.quasi, up, at, size, exact), top, loss, asked, out) == (1, 1)
    assert np.isclose(out.gain[0], h.rows * (100.0 - sum(lost[-1][0] for lost in lattice.loss)))
    assert (np.bincount(out.cell, minlength=h.cells) == h.count).all()


def test_few_rows_have_less_of_t_and_everyones_class_has_all() -> None:
    limit = Limit(np.array([0.5, 0.5]), 0.2)
    found = limit.of(np.array([0.0, 12.0, 1e3, np.inf, 0.0]), 10_000)
    assert (np.abs(found - [800, 1208, 1990, 2000, 2000]) <= 1).all()


@pytest.mark.parametrize("kind", ["stars", "levels", "sets", "ranges"])
def test_priced_in_tuples_make_the_program_cheaper(kind: str) -> None:
    better = 0
    for seed in range(3):
        close, limit, (task, rows, group) = first(seed, kind)
        block, limit = np.arange(group.size), replace(limit, spare=0.0)
        before = repriced(task, repriced(task, close, np.full(close.program.loss.size, np.inf), limit, 0.3),
                     np.full(close.program.loss.size, np.inf), limit, 0.15)  # fmt: skip
        after = priced_in(task, rows, block, rows.states(group), limit, 3, [seed])
        assert after is not None
        again = priced_in(task, rows, block, rows.states(group), limit, 3, [seed])
        assert again is not None
        assert (after.state == again.state).all()
        assert (after.multipliers.multiplier == again.multipliers.multiplier).all()
        new = {tuple(s) for s in after.state.tolist()} - {tuple(s) for s in close.state.tolist()}
        better += bool(new) and after.multipliers.proved < before.multipliers.proved
        assert (after.state[-1] == rows.states(np.zeros(group.size, np.int64))[0]).all()
        check_program(after, rows)
    assert better or kind in ("sets", "ranges")  # whose lattices know few of the tuples there are


def check_program(close: Close, rows: Rows) -> None:
    """Arcs lead to tuples that cover their cells, all of them, with the cell's own value."""
    program = close.program
    for i, cell in enumerate(close.cells):
        arcs = np.arange(program.arcs.start[i], program.arcs.start[i + 1])
        pairs = program.arcs.pair[arcs]
        assert (close.value[pairs] == rows.sensitive[cell, 0]).all()
        assert program.owner[pairs[-1]] == program.loss.size - 1


def test_classes_that_want_too_few_are_closed() -> None:
    _, limit, (task, rows, group) = first(2)
    found = priced_in(task, rows, np.arange(group.size), rows.states(group), limit, 2, [1])
    assert found is not None
    small = without_small(task, found, 9.0, limit)
    assert 1 < small.program.loss.size < found.program.loss.size
    check_program(small, rows)
    names = {tuple(s): x for s, x in zip(found.state.tolist(), found.program.loss.tolist(), strict=True)}
    assert [names[tuple(s)] for s in small.state.tolist()] == small.program.loss.tolist()


def test_without_time_or_gain_or_room_the_program_is_that_of_the_tuples_given(monkeypatch: pytest.MonkeyPatch) -> None:
    close, limit, (task, rows, group) = first(4)
    block, state = np.arange(group.size), rows.states(group)
    late = priced_in(task, rows, block, state, limit, 3, [1], until=-np.inf)
    assert late is not None
    assert (late.state == close.state).all()
    monkeypatch.setattr(close_program, "GAIN", 1e9)
    none = priced_in(task, rows, block, state, limit, 3, [1])
    assert none is not None
    assert (none.state == close.state).all()
    monkeypatch.setattr(close_program, "ARCS", 1)
    assert priced_in(task, rows, block, state, limit, 3, [1]) is None


def test_multipliers_of_known_classes_are_kept_and_prove_the_same() -> None:
    close, limit, (task, rows, group) = first(5)
    wanted = np.full(close.program.loss.size, np.inf)
    stood = repriced(task, close, wanted, limit, 0.3)
    more = rows.covers(np.arange(6), np.array([0, 3]))
    grown = program_of(task, rows, np.arange(group.size), np.concatenate([close.state[:-1], more]), limit)
    assert grown is not None
    carried, want = close_program._transferred(
        grown, stood, np.arange(wanted.size, dtype=float), more, np.array([3, 3])
    )
    place = {tuple(s): i for i, s in enumerate(close.state.tolist())}
    for c, state in enumerate(map(tuple, carried.state.tolist())):
        pairs = np.flatnonzero(carried.program.owner == c)
        if state in place:
            old = np.flatnonzero(close.program.owner == place[state])
            assert (carried.multipliers.multiplier[pairs] == stood.multipliers.multiplier[old]).all()
            assert want[c] == place[state]
        else:
            assert (carried.multipliers.multiplier[pairs] == 0).all()
            assert want[c] == carried.multipliers.share[c] == 3


def test_no_round_begins_that_would_end_late(monkeypatch: pytest.MonkeyPatch) -> None:
    close, limit, (task, rows, group) = first(4)
    block, state = np.arange(group.size), rows.states(group)
    for until, same in ((101.5, True), (900.0, False)):  # every look at the clock takes a second
        now = iter(range(100, 1000))
        monkeypatch.setattr(close_program, "clock", lambda now=now: float(next(now)))
        found = priced_in(task, rows, block, state, limit, 1, [1], until=until)
        assert found is not None
        assert (found.state.shape == close.state.shape) == same
