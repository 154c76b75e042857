"""The graph of near cells and the blocks of near groups that a search works on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search.neighborhood import WIDTH, deal, neighbor_graph
from tests.tables.drawn import census_like, tasks


def distances(rows: Rows) -> np.ndarray:
    """Loss of publishing any two cells together, float64[m, m], by the recoding of each column alone."""
    h = rows.histogram
    total = np.zeros((h.cells, h.cells))
    for j, column in enumerate(rows.recoding.columns):
        a, b = h.quasi[:, j][:, None], h.quasi[:, j][None, :]
        if column.kind == "levels":
            here = np.full((h.cells, h.cells), np.inf)
            for level in range(column.levels):
                same = column.node[level][a] == column.node[level][b]
                loss = column.weight * column.loss[level][a]
                here = np.where(same & (loss < here), loss, here)
        elif column.kind == "set":
            here = column.weight * (a != b) / max(column.size - 1, 1)
        else:
            here = column.weight * np.abs(column.position[a] - column.position[b]) / column.span
        total += here
    return total


@settings(deadline=None, max_examples=60)
@given(task=tasks(most=10), looks=strategies.sampled_from([0, 100, 2000]), seed=strategies.integers(0, 3))
def test_neighbors_are_other_cells_nearest_first(task, looks, seed):
    rows = Rows.of(task)
    near, far = neighbor_graph(rows, seed, looks), distances(Rows.of(task))
    m = task.histogram.cells
    assert near.shape == (m, WIDTH)
    for a in range(m):
        some = near[a][near[a] >= 0]
        assert (near[a][some.size :] == -1).all()
        assert sorted(some) == sorted(set(range(m)) - {a})  # so few cells all see each other
        assert (np.diff(far[a, some]) >= -1e-12).all()


@pytest.mark.parametrize("kind", ["stars", "set", "range"])
def test_the_descent_finds_most_of_the_nearest(kind):
    histogram = census_like(3000, 5, columns=5)
    columns = [
        Levels.stars(size)
        if kind == "stars"
        else Sets.of(size)
        if kind == "set"
        else Ranges.of(np.arange(size, dtype=float))
        for size in histogram.quasi_sizes
    ]
    rows = Rows.of(Task(histogram, Requirement(3), Recoding(tuple(columns), "stars" if kind == "stars" else "ncp")))
    far = distances(rows)
    np.fill_diagonal(far, np.inf)
    bar = np.sort(far, axis=1)[:, WIDTH - 1]
    share = []
    for looks in (0, 5000):
        near = neighbor_graph(rows, 1, looks)
        share.append(float((np.take_along_axis(far, near.astype(np.int64), axis=1) <= bar[:, None] + 1e-12).mean()))
    assert share[1] > 0.9 > share[0]
    assert (neighbor_graph(rows, 1, 5000) == neighbor_graph(rows, 1, 5000)).all()


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_blocks_hold_whole_groups_and_about_as_many_rows(count):
    histogram = census_like(2000, 3, columns=4)
    rows = Rows.of(Task(histogram, Requirement(3), Recoding.stars(histogram)))
    group = np.arange(2000) // 4
    blocks = deal(rows, group, count, [3, 1])
    assert len(blocks) == count
    assert (np.sort(np.concatenate(blocks)) == np.arange(2000)).all()
    for block in blocks:
        assert (np.diff(block) > 0).all()
        assert np.isin(np.flatnonzero(np.isin(group, group[block])), block).all()
        assert abs(block.size - 2000 / count) < 40


def test_blocks_of_one_group_and_of_equal_groups():
    histogram = Histogram.from_rows(np.zeros((12, 2), int))
    rows = Rows.of(Task(histogram, Requirement(3), Recoding.stars(histogram)))
    assert [b.size for b in deal(rows, np.zeros(12, np.int64), 4, [1])] == [12]
    assert sorted(b.size for b in deal(rows, np.arange(12) // 3, 4, [1])) == [3, 3, 3, 3]
