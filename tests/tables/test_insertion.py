"""Rows without a group, and tables too large to be searched row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.experiments.census_like import census_like
from shoal.kernels.tables.insertion import Hosts, insert
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.task import Effort, Task
from shoal.problems.tables import auto as automatic
from shoal.problems.tables import group
from shoal.problems.tables.search import thinning
from shoal.problems.tables.search.row_groups import Rows
from tests.oracles.tables import eligible
from tests.oracles.tables_loss import row_loss
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
        hosts = Hosts(member[start].copy(), following.copy(), size.copy(), state.copy(), order)
        none = np.zeros(0, np.int64)
        begin, candidate = (
            (np.arange(waiting.size + 1) * groups, np.tile(order, waiting.size)) if candidates else (none, none)
        )
        sensitive = np.ascontiguousarray(frame.sensitive[frame.cell]) if l > 1 else frame.sensitive[:0]
        done = insert(frame.slots, frame.leaf, frame.cell, sensitive, frame.frequency, frame.rules, hosts, waiting,
                      begin, candidate)  # fmt: skip
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
    hosts = Hosts(member[::3].copy(), following, np.full(3, 3), frame.states(label), np.arange(3))
    none = np.zeros(0, np.int64)
    sensitive = np.ascontiguousarray(frame.sensitive[frame.cell])
    done = insert(frame.slots, frame.leaf, frame.cell, sensitive, frame.frequency, frame.rules, hosts,
                  np.flatnonzero(label < 0), none, none)  # fmt: skip
    assert done.tolist() == [True, True, True, False]
    assert hosts.size.tolist() == [4, 4, 4]
    assert hosts.head.tolist() == np.flatnonzero(label < 0)[:3].tolist()


def census(rows, columns=("Gender", "Race", "MaritalStatus")):
    drawn = census_like(rows, seed=3)
    codes = np.stack(
        [np.unique(drawn[c], return_inverse=True)[1].reshape(-1) for c in (*columns, "Occupation")], axis=1
    )
    return Histogram.from_rows(codes[:, :-1], codes[:, -1])


@pytest.mark.parametrize("need", [Requirement(1, (6,), (1,)), Requirement(9, (4,), (1,)), Requirement(25, (1,), (1,))])
def test_what_is_set_aside_is_eligible_and_every_row_comes_back(need, monkeypatch):
    monkeypatch.setattr(thinning, "STAY", 500)
    h = census(30_000)
    task = Task(h, need, columns_of("stars", h.quasi_sizes))
    thin = thinning.thinned(task)
    assert thin is not None
    assert thin.task.histogram.rows < 0.75 * h.rows
    kind = h.types[0]
    gone = np.bincount(kind, weights=thin.aside).astype(int)
    for t in np.flatnonzero(gone):
        here = kind == t
        rows = np.repeat(h.sensitive[here], thin.aside[here], axis=0)
        assert eligible([tuple(r) for r in rows], need.k, need.frequency, need.distinct)
    whole = thin.back(group(thin.task.histogram, need, "three_phase", seed=1).partition)
    assert all_eligible(h, need, whole)


@pytest.mark.parametrize("l", [2, 4])
def test_a_thinned_table_loses_no_more(l, monkeypatch):
    h = census(25_000, ("Age", "Gender", "MaritalStatus"))
    task = Task(h, Requirement(1, (l,), (1,)), columns_of("stars", h.quasi_sizes), Effort("fast"), seed=1)
    monkeypatch.setattr(thinning, "STAY", 2000)
    assert thinning.thinned(task) is not None
    thin = automatic.auto(task)
    assert all_eligible(h, task.requirement, thin.partition)
    monkeypatch.setattr(thinning, "LARGE", 10**9)
    whole = automatic.auto(replace(task))
    assert thin.certificate.cost <= whole.certificate.cost * 1.01
    assert thin.certificate.lower_bound == whole.certificate.lower_bound


def test_what_stays_does_not_grow_with_the_rows():
    h = census(30_000)
    many = replace(h, count=h.count * 40)
    need = Requirement(1, (6,), (1,))
    sizes = [
        thinning.thinned(Task(t, need, columns_of("stars", h.quasi_sizes)))
        for t in (many, replace(many, count=many.count * 10))
    ]
    rows = [thin.task.histogram.rows for thin in sizes if thin is not None]
    taken = 10 * 40 * 6 * thinning.HELPERS
    assert len(rows) == 2
    assert rows[1] < 0.2 * 10 * many.rows or rows[1] < taken * h.cells
