"""Rows without a group, and tables too large to be searched row by row."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.experiments.l_diversity import census_like
from shoal.kernels.tables.insertion import JoinableGroups, RowModels, UngroupedRows, insert
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.task import Task, shortfall
from shoal.problems.tables import auto as automatic
from shoal.problems.tables import groups
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search import cascade
from shoal.problems.tables.search.cascade import publish_classes, start
from tests.oracles.tables import eligible, row_loss
from tests.tables.checks import all_eligible, columns_of


def naive(task, label, waiting, order):
    """Every group tried for every row, losses and eligibility by the oracles; of equal places the first of an order."""
    h = task.histogram
    cell = np.repeat(np.arange(h.cells), h.count)
    quasi = [tuple(int(v) for v in h.quasi[c]) for c in cell]
    value = [tuple(int(v) for v in h.sensitive[c]) for c in cell]
    members = {int(g): [int(x) for x in np.flatnonzero(label == g)] for g in order}
    went = []
    for x in waiting:
        best, least = -1, np.inf
        for g in order:
            now = members[g]
            if not eligible([value[y] for y in [*now, x]], 1, task.requirement.frequency, task.requirement.distinct):
                continue
            before = len(now) * row_loss(task.recoding, [quasi[y] for y in now])
            rise = (len(now) + 1) * row_loss(task.recoding, [quasi[y] for y in [*now, x]]) - before
            if rise < least:
                best, least = g, rise
        went.append(best)
        if best >= 0:
            members[best].append(int(x))
    return went


@settings(max_examples=60, deadline=None)
@given(data=st.data(), form=st.sampled_from(["stars", "tree"]), l=st.integers(1, 3))
def test_every_row_goes_where_trying_all_groups_sends_it(data, form, l):
    n, most = data.draw(st.integers(8, 26)), data.draw(st.integers(1, 2))  # few codes: many rows of a cell
    rows = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, most)] * 3), min_size=n, max_size=n)))
    rows[0] = 4  # five codes everywhere: losses are quarters, so sums are exact and ties are ties
    h = Histogram.from_rows(rows[:, :2], rows[:, 2])
    task = Task(h, Requirement(1, (l,), (1,)), columns_of(form, h.quasi_sizes))
    frame = Rows.of(task)
    label = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)))
    label[np.flatnonzero(label >= 0)] = np.unique(label[label >= 0], return_inverse=True)[1].reshape(-1)
    for g in range(int(label.max()) + 1):  # groups are eligible, rows join them
        if not eligible([tuple(h.sensitive[frame.cell[y]]) for y in np.flatnonzero(label == g)], 1, (l,), (1,)):
            label[label == g] = -1
    label[np.flatnonzero(label >= 0)] = np.unique(label[label >= 0], return_inverse=True)[1].reshape(-1)
    waiting, groups = np.flatnonzero(label < 0), int(label.max()) + 1
    if not groups or not waiting.size or frame.frequency.size != (l > 1):
        return
    member = np.flatnonzero(label >= 0)[np.argsort(label[label >= 0], kind="stable")]
    size = np.bincount(label[member])
    start = np.cumsum(size) - size
    following = np.full(n, -1)
    following[member[:-1]] = np.where(np.diff(label[member]) == 0, member[1:], -1)
    state = frame.states(label)
    price = [row_loss(task.recoding, [tuple(h.quasi[frame.cell[y]]) for y in member[label[member] == g]])
             for g in range(groups)]  # fmt: skip
    order = np.lexsort((size, *state.T, np.array(price)))
    expected = naive(task, label, waiting, [int(g) for g in order])
    for candidates in (False, True):
        hosts = JoinableGroups(member[start].copy(), following.copy(), size.copy(), state.copy(), order)
        none = np.zeros(0, np.int64)
        begin, candidate = (
            (np.arange(waiting.size + 1) * groups, np.tile(order, waiting.size)) if candidates else (none, none)
        )
        sensitive = np.ascontiguousarray(frame.sensitive[frame.cell]) if l > 1 else frame.sensitive[:0]
        models = RowModels(sensitive, frame.frequency, frame.rules)
        done = insert(frame.slots, frame.leaf, frame.cell, models, hosts, UngroupedRows(waiting, begin, candidate))
        went = np.full(n, -1)
        for g in range(groups):
            y = hosts.head[g]
            while y >= 0:
                went[y] = g
                y = hosts.following[y]
        assert went[waiting].tolist() == expected
        assert done.tolist() == [g >= 0 for g in expected]


def test_copies_of_a_row_go_to_as_many_groups_as_it_takes():
    """Groups of three values each take one row of a fourth under l = 3: the cheapest first, what is left waits."""
    quasi = np.array([[g] for g in range(3) for _ in range(3)] + [[0]] * 4)
    h = Histogram.from_rows(quasi, np.array([*range(3)] * 3 + [3] * 4))
    frame = Rows.of(Task(h, Requirement(1, (3,), (1,)), columns_of("stars", h.quasi_sizes)))
    label = np.where(h.sensitive[frame.cell, 0] == 3, -1, h.quasi[frame.cell, 0])
    member = np.flatnonzero(label >= 0)[np.argsort(label[label >= 0], kind="stable")]
    following = np.full(label.size, -1)
    following[member[:-1]] = np.where(np.diff(label[member]) == 0, member[1:], -1)
    hosts = JoinableGroups(member[::3].copy(), following, np.full(3, 3), frame.states(label), np.arange(3))
    none = np.zeros(0, np.int64)
    sensitive = np.ascontiguousarray(frame.sensitive[frame.cell])
    models, waiting = RowModels(sensitive, frame.frequency, frame.rules), np.flatnonzero(label < 0)
    done = insert(frame.slots, frame.leaf, frame.cell, models, hosts, UngroupedRows(waiting, none, none))
    assert done.tolist() == [True, True, True, False]
    assert hosts.size.tolist() == [4, 4, 4]
    assert hosts.head.tolist() == np.flatnonzero(label < 0)[:3].tolist()


def census(rows, columns=("Gender", "Race", "MaritalStatus")):
    drawn = census_like(rows, seed=3)
    codes = np.stack(
        [np.unique(drawn[c], return_inverse=True)[1].reshape(-1) for c in (*columns, "Occupation")], axis=1
    )
    return Histogram.from_rows(codes[:, :-1], codes[:, -1])


@pytest.mark.parametrize("until", [np.inf, 1e18, -1.0])
def test_rows_are_placed_in_turns_and_beside_near_groups_once_the_time_is_over(until, monkeypatch):
    monkeypatch.setattr(groups, "TURN", 4)
    h = census(300)
    task = Task(h, Requirement(3, (2,), (1,)), columns_of("stars", h.quasi_sizes))
    rows = replace(Rows.of(task), until=until)
    label = rows.cut(np.zeros(h.rows, np.int64))
    label = np.where(label % 3 == 0, -1, label)
    kept = np.unique(label[label >= 0])
    waiting, asked = int((label < 0).sum()), []

    def seen(*given):
        asked.append((given[5].rows.size, given[5].start.size > 0))
        return insert(*given)

    monkeypatch.setattr(groups, "insert", seen)
    placed = rows.place(label)
    assert rows.eligible(placed, kept.size).all()
    assert np.unique(placed).tolist() == list(range(kept.size))
    for g in kept:
        assert np.unique(placed[label == g]).size == 1
    each = {np.inf: waiting, 1e18: max(4, -(-waiting // groups.TURNS)), -1.0: waiting}[until]
    assert [near for _, near in asked] == [until < 0] * -(-waiting // each)
    assert sum(many for many, _ in asked) == waiting > each * (until == 1e18)


def cells_of(h, cell, group, count):
    """The cells of each group's rows, by group."""
    return {
        int(g): sorted(np.repeat(cell[group == g], count[group == g]).tolist()) for g in np.unique(group[count > 0])
    }


@settings(max_examples=60, deadline=None)
@given(data=st.data(), l=st.integers(1, 4), each=st.integers(1, 3))
def test_what_stays_and_what_is_set_aside_is_eligible_and_every_row_comes_back(data, l, each):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LARGE", 0), ("STAY", 4), ("WORTH", 1.0)):
            patch.setattr(cascade, name, value)
        n = data.draw(st.integers(4, 12))
        codes = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=n, max_size=n)))
        h = Histogram.from_rows(codes[:, :2], codes[:, 2])
        h = replace(h, count=np.array(data.draw(st.lists(st.integers(1, 40), min_size=h.cells, max_size=h.cells))))
        need = Requirement(2, (l,), (1,))
        task = Task(h, need, columns_of("stars", h.quasi_sizes))
        whole = data.draw(st.booleans())
        held = h.count.copy() if whole else np.array([data.draw(st.integers(0, int(c))) for c in h.count])
        label = np.array(data.draw(st.lists(st.integers(0, 2), min_size=h.cells, max_size=h.cells)))

        def good(rows):
            return eligible([tuple(h.sensitive[c]) for c in rows], need.k, need.frequency, need.distinct)

        found = cells_of(h, np.arange(h.cells), label, held)
        held[~np.isin(label, [g for g, rows in found.items() if good(rows)])] = 0
        thin = cascade.thinned(task, np.arange(h.cells), label, held, each if l > 1 else 1)
        if thin is None or not held.any():
            return
        assert all(good(rows) for rows in cells_of(h, *thin.aside).values())
        cell, group, count = thin.held.apart if l > 1 else thin.held.together
        assert all(good(rows) for rows in cells_of(h, thin.cells[cell], group, count).values())
        small = thin.task.histogram
        whole = thin.back(Partition.of(np.arange(small.cells), np.zeros(small.cells, np.int64), small.count))
        placed = np.bincount(whole.cell, weights=whole.count, minlength=h.cells)
        assert (placed == h.count - (h.count - held) % thin.each).all()
        if shortfall(h, need) is None:
            assert all_eligible(h, need, cascade.finished(task, Rows.of(task), np.arange(h.cells), label, held))


def test_equal_pieces_are_what_dealing_the_rows_makes():
    """Each row dealt in turn to as many pieces as fit, by value and cell, the pieces told apart one by one."""
    h = census(6_000)
    task = Task(h, Requirement(1, (4,), (1,)), columns_of("stars", h.quasi_sizes))
    cell, group, count = publish_classes(task)
    rows = Rows.of(task)
    label = rows.cut(rows.spread(cell, group, count))
    expected = sorted(tuple(sorted(rows.cell[label == p].tolist())) for p in range(int(label.max()) + 1))
    runs = cascade.equal_pieces(task, 0, cell, group, count)
    found = cells_of(h, runs.cell, runs.run, runs.rows)
    assert sorted(tuple(found[g]) for g, times in enumerate(runs.times) for _ in range(times)) == expected
    assert runs.times.size < 0.8 * len(expected)


@pytest.mark.parametrize("l", [2, 4])
def test_a_thinned_table_loses_no_more(l, monkeypatch):
    h = census(5_000, ("Age", "Gender", "MaritalStatus"))
    h = replace(h, count=h.count * 8)
    task = Task(h, Requirement(1, (l,), (1,)), columns_of("stars", h.quasi_sizes), Effort("fast"), seed=1)
    monkeypatch.setattr(cascade, "STAY", 2000)
    assert cascade.thinned(task, *publish_classes(task)) is not None
    thin = automatic.auto(task)
    assert all_eligible(h, task.requirement, thin.partition)
    monkeypatch.setattr(cascade, "LARGE", 10**9)
    whole = automatic.auto(replace(task))
    assert thin.certificate.cost <= whole.certificate.cost * 1.01
    assert thin.certificate.lower_bound == whole.certificate.lower_bound


@pytest.mark.parametrize("need", [Requirement(1, (6,), (1,)), Requirement(25, (1,), (1,))])
def test_what_is_placed_row_by_row_does_not_grow_with_the_rows(need, monkeypatch):
    """A hundred times the rows of every cell: as many groups, and the same loss by row."""
    h, placed, kept = census(30_000), [], Rows.place
    monkeypatch.setattr(Rows, "place", lambda rows, group: placed[-1].append(group.size) or kept(rows, group))
    loss = []
    for times in (30, 3000):
        many = replace(h, count=h.count * times)
        task = Task(many, need, columns_of("stars", h.quasi_sizes))
        placed.append([])
        loss.append(task.recoding.cost(many, start(task, Rows.of(task))) / times)
    assert max(placed[1]) <= 1.5 * max(placed[0])
    assert loss[1] <= 1.02 * loss[0]
