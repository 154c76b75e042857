"""Groups by shares where the commonest value is near its limit, and how many lattice nodes a cascade visits."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels import njit
from shoal.kernels.tables import lattice as kernels
from shoal.kernels.tables.eligible_parts import CommonValues, balance
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import (
    AlphaKAnonymity,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    requirement,
)
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Task, shortfall
from shoal.problems.tables import losses
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice, NodesToVisit
from shoal.problems.tables.search.cascade import (
    SORT_SETUP,
    SORTED,
    by_shares,
    finished,
    near_limits,
    publish_classes,
    rank,
    start,
)
from tests.tables.drawn import TREE, assert_eligible, census_like

COLUMNS = {"tree": lambda: Levels.tree(TREE), "set": lambda: Sets.of(4), "range": lambda: Ranges.of(np.arange(4.0))}


def task_of(quasi, sensitive, models, columns=None) -> Task:
    histogram = Histogram.from_rows(quasi, sensitive)
    need = requirement(models, histogram.sensitive_names, histogram)
    recoding = Recoding.stars(histogram) if columns is None else Recoding(columns)
    return Task(histogram, need, recoding, seed=1)


def skewed(n: int, shares: tuple[float, ...], seed: int = 5) -> Task:
    """Rows of six columns, with values other than the commonest in one corner; alpha is a little above its share."""
    random = np.random.default_rng(seed)
    quasi = random.integers(0, 8, (n, 6))
    odds = np.where(quasi[:, 0] < 4, 1.8, 0.2)[:, None] * np.array(shares)
    sensitive = (random.random((n, len(shares))) < odds).astype(int)
    names = Histogram.from_rows(quasi, sensitive).sensitive_names
    models = [KAnonymity(5)]
    for j, name in enumerate(names):
        models.append(AlphaKAnonymity(1 - 0.9 * sensitive[:, j].mean(), 1, column=name))
    return task_of(quasi, sensitive, models, (Ranges.of(np.arange(8.0)),) * 3 + (Sets.of(8),) * 3)


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 10**6), n=st.integers(6, 90), columns=st.integers(1, 2),
    slack=st.sampled_from([0.0, 0.01, 0.1]), kind=st.sampled_from(sorted(COLUMNS)),
)  # fmt: skip
def test_all_rows_are_in_eligible_groups_and_in_no_two(seed, n, columns, slack, kind) -> None:
    random = np.random.default_rng(seed)
    quasi = random.integers(0, 4, (n, 2))
    sensitive = (random.random((n, columns)) < random.uniform(0.05, 0.45, columns)).astype(int)
    sensitive[:, 0] *= random.integers(1, 4, n)  # up to three rarer values
    models = [KAnonymity(2)]
    for j, name in enumerate(Histogram.from_rows(quasi, sensitive).sensitive_names):
        share = np.bincount(sensitive[:, j]).max() / n
        models.append(AlphaKAnonymity(min(share + slack, 1.0), 1, column=name))
    task = task_of(quasi, sensitive, models, (COLUMNS[kind](), COLUMNS[kind]()))
    if shortfall(task.histogram, task.requirement) is not None:
        return
    found = by_shares(task)
    limits = near_limits(task)
    assert found is None or limits
    if found is None:
        return
    cell, group, count = found
    h = task.histogram
    assert (count > 0).all()
    placed = np.bincount(cell, weights=count, minlength=h.cells)
    assert (placed <= h.count).all()
    for g in np.unique(group):
        own = np.bincount(cell[group == g], weights=count[group == g], minlength=h.cells)
        assert own.sum() >= 2
        for j, model in enumerate(models[1:]):
            held = np.bincount(h.sensitive[:, j], weights=own)
            assert held.max() <= model.alpha * own.sum() + 1e-9
    if len(limits) == columns and columns == 1 and sensitive.max() < 2:
        assert n - placed.sum() < 2  # what no node published is one group at the top, if it has k rows
    rows = Rows.of(task)
    assert_eligible(task, finished(task, rows, *found))
    assert_eligible(task, start(task, rows))


def test_the_share_that_stays_never_rises_so_nobody_is_stranded() -> None:
    for shares in ((0.06,), (0.2,), (0.06, 0.1), (0.3, 0.1, 0.05)):
        task = skewed(3000, shares)
        assert len(near_limits(task)) == len(shares)
        h = task.histogram
        cell, _, count = by_shares(task)
        left = h.count - np.bincount(cell, weights=count, minlength=h.cells)
        assert (left >= 0).all()
        assert left.sum() < 5  # too few for a group
        for limit in near_limits(task):
            assert left[h.sensitive[:, limit.column] == limit.value].sum() <= limit.most * left.sum() + 1e-9


@pytest.mark.parametrize("shares", [(0.06,), (0.3,), (0.06, 0.08)])
def test_they_lose_less_than_the_cascade_which_strands_rows(shares) -> None:
    task = skewed(4000, shares)
    rows = Rows.of(task)
    published = publish_classes(task)
    assert published[2].sum() < 0.9 * 4000
    before, now = finished(task, rows, *published), finished(task, rows, *by_shares(task))
    assert_eligible(task, now)
    assert rank(task, now)[1] < 0.92 * rank(task, before)[1]
    assert rank(task, start(task, rows)) == min(rank(task, now), rank(task, before))


@njit(cache=True)
def balanced(parts, common, share):
    """Each row of ``parts`` int64[n, kinds] reduced in place; their rows, int64[n]."""
    rows = np.zeros(len(parts), np.int64)
    for i in range(len(parts)):
        rows[i] = balance(parts[i], common, share)
    return rows


@pytest.mark.parametrize(("most", "share"), [(0.95, 0.94), (0.76, 0.755), (0.5, 0.45), (0.9, 0.9)])
def test_of_one_column_a_class_publishes_the_largest_part_within_both_shares(most, share) -> None:
    held = np.array(list(np.ndindex(13, 45)))[:, ::-1]  # rows with the commonest value, and others
    common = CommonValues(np.zeros(1, np.int64), np.array([[False], [True]]), np.array([most]), 1)
    part = held.copy()
    rows = balanced(part, common, np.array([share]))
    for (many, few), found, size in zip(held.tolist(), part.tolist(), rows.tolist(), strict=True):
        best = max(
            (a + b for a in range(many + 1) for b in range(few + 1)
             if share * (a + b) - 1e-9 <= a <= most * (a + b) + 1e-9), default=0
        )  # fmt: skip
        assert size == best, (many, few)
        assert size in (0, sum(found))
        assert found[0] <= many
        assert found[1] <= few


def plainly(task: Task) -> list[tuple[int, int, int]]:
    """What ``by_shares`` finds, from its definition: the triples (cell, group, rows) in their order."""
    h, limits, lattice = task.histogram, near_limits(task), Lattice.of(task.recoding)
    left = dict(enumerate(h.count.tolist()))
    kinds = [tuple(bool(row[limit.column] != limit.value) for limit in limits) for row in h.sensitive]
    turn = sorted(set(kinds), key=lambda kind: (sum(kind), kind[::-1]))

    def without_excess(part: Counter, j: int, other: bool, most: float) -> None:
        """At most so many rows stay that have another value in column j, or of those that don't."""
        excess = sum(rows for kind, rows in part.items() if kind[j] == other) - math.floor(most + 1e-9)
        for kind in turn:
            if kind[j] == other:
                out = max(min(part[kind], excess), 0)
                part[kind] -= out
                excess -= out

    def rows_of(part: Counter, j: int, other: bool) -> int:
        return sum(rows for kind, rows in part.items() if kind[j] == other)

    triples, group = [], 0
    nodes = NodesToVisit(task, lattice, SORTED)
    while nodes.left and left:
        node = nodes.take(len(left) + SORT_SETUP)[0]
        classes = defaultdict(list)
        for cell in left:
            codes = zip(lattice.up, node, h.quasi[cell], strict=True)
            classes[tuple(int(up[level, code]) for up, level, code in codes)].append(cell)
        total = sum(left.values())
        share = [1 - sum(left[c] for c in left if kinds[c][j]) / total for j in range(len(limits))]
        least = max(task.requirement.smallest, math.ceil(1 / max(1 - max(share), 1e-9) - 1e-6))
        for _, cells in sorted(classes.items()):
            if sum(left[cell] for cell in cells) < least:
                continue
            part = Counter()
            for cell in cells:
                part[kinds[cell]] += left[cell]
            for _ in range(12):
                for j, limit in enumerate(limits):
                    without_excess(part, j, False, rows_of(part, j, True) * limit.most / (1 - limit.most))
                    without_excess(part, j, True, rows_of(part, j, False) * (1 - share[j]) / max(share[j], 1e-9))
            rows = sum(part.values())
            for j, limit in enumerate(limits):
                many = rows_of(part, j, False)
                if not (share[j] - 1e-9) * rows <= many <= (limit.most + 1e-9) * rows:
                    rows = 0
            if rows < least:
                continue
            for cell in sorted(cells, key=lambda cell: (kinds[cell][::-1], cell)):
                given = min(left[cell], part[kinds[cell]])
                part[kinds[cell]] -= given
                left[cell] -= given
                if given:
                    triples.append((cell, group, given))
            left = {cell: rows for cell, rows in left.items() if rows}
            group += 1
    return triples


@settings(deadline=None, max_examples=45)
@given(
    seed=st.integers(0, 10**6), n=st.integers(20, 70), columns=st.integers(1, 3), codes=st.sampled_from([4, 500]),
    kind=st.sampled_from(sorted(COLUMNS)),
)  # fmt: skip
def test_they_are_those_of_the_definition_in_its_order(seed, n, columns, codes, kind) -> None:
    random = np.random.default_rng(seed)
    wide = codes > 4  # so many codes of seven columns that the keys of classes are hashes
    quasi = random.integers(0, 4, (n, 7 if wide else 2)) * ((codes - 1) // 3)
    sensitive = (random.random((n, columns)) < random.uniform(0.05, 0.45, columns)).astype(int)
    models = [KAnonymity(2)]
    for j, name in enumerate(Histogram.from_rows(quasi, sensitive).sensitive_names):
        models.append(AlphaKAnonymity(min(np.bincount(sensitive[:, j]).max() / n + 0.03, 0.99), 1, column=name))
    task = task_of(quasi, sensitive, models, None if wide else (COLUMNS[kind](), COLUMNS[kind]()))
    if wide:
        task = replace(task, histogram=replace(task.histogram, quasi_sizes=(codes,) * 7))
        task = replace(task, recoding=Recoding.stars(task.histogram))
        assert not Lattice.of(task.recoding).flat[3]
    found = by_shares(task)
    if not near_limits(task):
        assert found is None
        return
    groups = defaultdict(list)
    for cell, group, rows in plainly(task):
        groups[group].append((cell, rows))
    triples, number = [], 0
    for own in groups.values():
        held = np.repeat(*np.array(own).T)
        most = [np.bincount(column).max() / held.size for column in task.histogram.sensitive[held].T]
        if all(share <= model.alpha + 1e-9 for share, model in zip(most, models[1:], strict=True)):
            triples += [(cell, number, rows) for cell, rows in own]
            number += 1
    assert found is None or list(zip(*(a.tolist() for a in found), strict=True)) == triples
    assert found is not None or not groups


def test_a_kernel_that_stops_early_is_called_again_with_the_nodes_left(monkeypatch) -> None:
    task, publish = skewed(400, (0.2,)), kernels.publish
    whole = [a.tolist() for a in publish_classes(task)]
    monkeypatch.setattr("shoal.kernels.quick", lambda kernel, steps: kernel)
    monkeypatch.setattr(
        kernels, "publish", lambda rules, raised, nodes, *more: publish(rules, raised, nodes[:3], *more)
    )
    assert [a.tolist() for a in publish_classes(task)] == whole


def test_which_values_are_near_their_limits() -> None:
    def limits(held: list[int], *models, second: list[int] | None = None):
        columns = [np.repeat(np.arange(len(x)), x) for x in (held, second) if x is not None]
        task = task_of(np.zeros((sum(held), 1), int), np.column_stack(columns), models)
        return [(limit.column, limit.value, limit.most) for limit in near_limits(task)]

    def alpha(most: float, column: str = "s0") -> AlphaKAnonymity:
        return AlphaKAnonymity(most, 1, column=column)

    names = Histogram.from_rows(np.zeros((2, 1), int), np.zeros((2, 2), int)).sensitive_names
    first, second = names
    one = Histogram.from_rows(np.zeros((2, 1), int), np.zeros((2, 1), int)).sensitive_names[0]
    assert limits([6, 94], alpha(0.95, one)) == [(0, 1, 0.95)]
    assert limits([94, 6], LDiversity(1), KAnonymity(2), alpha(0.95, one)) == [(0, 0, 0.95)]
    assert limits([40, 60], alpha(0.95, one)) == []  # far from its limit
    assert limits([49, 51], alpha(0.52, one)) == []  # two values are near
    assert limits([48, 20, 20, 12], LDiversity(2)) == [(0, 0, 0.5)]
    assert limits([6, 94], KAnonymity(5)) == []  # nothing is asked of the column
    assert limits([6, 94], alpha(0.95, first), alpha(0.8, second), second=[79, 21]) == [(0, 1, 0.95), (1, 0, 0.8)]
    assert limits([6, 94], alpha(0.95, first), alpha(0.99, second), second=[50, 50]) == [(0, 1, 0.95)]


def test_the_three_nearest_of_many_limits_are_kept_and_all_models_hold() -> None:
    task = skewed(1500, (0.1, 0.08, 0.12, 0.1, 0.09))
    kept = near_limits(task)
    assert len(kept) == 3
    h, rows = task.histogram, Rows.of(task)
    most = [rule.measure.table[1] for rule in task.requirement.rules]
    near = [h.count[h.sensitive[:, j] == 0].sum() / h.rows / most[j] for j in range(5)]
    assert {limit.column for limit in kept} == set(np.argsort(near)[-3:].tolist())
    assert_eligible(task, start(task, rows))


def test_groups_that_another_model_refuses_are_left_out() -> None:
    random = np.random.default_rng(2)
    quasi, value = random.integers(0, 5, (900, 3)), random.random(900)
    sensitive = np.where(value < 0.7, 0, np.where(value < 0.95, 1, 2))
    asked = [AlphaKAnonymity(0.72, 4), EntropyLDiversity(1.9)]
    task = task_of(quasi, sensitive, asked)
    found, rows = by_shares(task), Rows.of(task)
    assert near_limits(task)
    assert found[2].sum() <= 900
    if found[2].size:
        labels = rows.spread(*found)
        assert rows.eligible(labels, int(labels.max()) + 1).all()
    assert_eligible(task, start(task, rows))


def nodes_of(task: Task, looks: float, monkeypatch: pytest.MonkeyPatch) -> NodesToVisit:
    monkeypatch.setattr(losses, "LOOKED_AT", dict.fromkeys(losses.LOOKED_AT, looks))
    return NodesToVisit(task, Lattice.of(task.recoding))


def test_all_nodes_are_visited_in_their_order_while_that_is_affordable(monkeypatch) -> None:
    task = skewed(300, (0.1,))
    lattice = Lattice.of(task.recoding)
    nodes = nodes_of(task, 1e12, monkeypatch)
    visited = []
    while nodes.left:
        visited.append(nodes.take(300, 17))
    assert (np.concatenate(visited) == lattice.ordered(task)).all()
    assert nodes.share == 1
    assert nodes.spent == 300 * lattice.nodes


@pytest.mark.parametrize(("cells", "most"), [(1000, 1), (1000, 64), (90_000, 8)])
def test_later_one_node_of_a_run_is_visited_the_one_that_merges_most(cells, most, monkeypatch) -> None:
    task = skewed(300, (0.1,))
    looks = 1e5
    nodes = nodes_of(task, looks, monkeypatch)
    every, merging = nodes.every, nodes.merging
    place = {tuple(node): i for i, node in enumerate(every.tolist())}
    done, visited = 0, []
    while nodes.left:
        visited += [place[tuple(node)] for node in nodes.take(cells, most).tolist()]
        if nodes.left:
            assert merging[done : nodes.done].min() in merging[visited]  # of what is done since, the best is visited
        done = nodes.done
    assert visited == sorted(set(visited))
    assert len(visited) < len(every) / 2
    assert visited[-1] == len(every) - 1
    assert nodes.spent <= looks + cells
    dense = int(losses.DENSE * looks / cells)
    assert visited[:dense] == list(range(dense))


def test_a_visit_that_costs_more_counts_more_and_seconds_buy_visits(monkeypatch) -> None:
    task = skewed(300, (0.1,))
    lattice = Lattice.of(task.recoding)
    monkeypatch.setattr(losses, "LOOKED_AT", {"fast": 1e5, "balanced": 3e5, "thorough": 1e6, "seconds": 5e4})
    asked = {"fast": 1e5, "balanced": 3e5, "thorough": 1e6, 0.001: 5e4, 2.0: 2 * losses.PER_SECOND}
    for effort, looks in asked.items():
        of = replace(task, effort=Effort.of(effort))
        assert NodesToVisit(of, lattice).looks == looks
        assert NodesToVisit(of, lattice, 4.0).looks == looks / 4


def test_a_cascade_visits_few_nodes_of_a_table_of_nearly_unique_rows(monkeypatch) -> None:
    monkeypatch.setattr(losses, "LOOKED_AT", dict.fromkeys(losses.LOOKED_AT, 2e5))
    looked_at, publish = [], kernels.publish

    def counted(rules, raised, nodes, stock, *more):
        cells = int(np.count_nonzero(stock.left))
        done = publish(rules, raised, nodes, stock, *more)
        looked_at.append(cells * done[0])
        return done

    monkeypatch.setattr(kernels, "publish", counted)
    monkeypatch.setattr("shoal.kernels.quick", lambda kernel, steps: kernel)
    task = skewed(2000, (0.06, 0.06))
    rows = Rows.of(task)
    assert_eligible(task, finished(task, rows, *publish_classes(task)))
    assert sum(looked_at) <= 2e5 + 2000
    assert Lattice.of(task.recoding).nodes * 2000 > 3e5


def test_a_table_whose_rows_are_published_at_once_keeps_all_its_nodes() -> None:
    histogram = census_like(2000, 3, columns=3)
    task = Task(
        histogram, requirement([KAnonymity(5)], histogram.sensitive_names, histogram), Recoding.stars(histogram)
    )
    nodes = NodesToVisit(task, Lattice.of(task.recoding))
    assert len(nodes.take(histogram.cells, 10**6)) == len(nodes.every)
