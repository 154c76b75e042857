"""Top-down specialization: one partition of every column's domain, refined from the root while groups stay eligible.

Fung, Wang, Yu, "Top-down specialization for information and privacy preservation", ICDE 2005, made l-diverse as in
Xiao, Yi, Tao 2010, section 6.2.  Single-dimensional: a value is recoded alike in all rows.

Kept from the paper: a cut through every column's hierarchy, refined class by class; continuous columns (ranges, sets)
are cut in two.
Departure: the paper's score needs a class label; here a refinement is worth the loss it saves over the bits by which it
tells rows apart.  That score does not change as other columns are refined, and a refinement that leaves an ineligible
group leaves one for good (a union of eligible groups is eligible).  So each is tried once, in falling order.
"""

from __future__ import annotations

import heapq

import numpy as np

from shoal.errors import PolicyError
from shoal.model.partition import Partition
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import certified, good_groups

MOST_CUTS = 31


def top_down(task: Task) -> Grouping:
    """TDS.  No promise: a heuristic with the tuple bound.  ``details`` has the number of classes of every column.

    A column whose limit forbids its upper levels starts at the highest level allowed.
    O(m log m) for each refinement tried, at most two per value.
    """
    label, cuts = specialize(task)
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    classes = {name: int(np.unique(c).size) for name, c in zip(task.histogram.quasi_names, cuts, strict=True)}
    return certified(task, partition, "top_down", details={"classes": classes})


def as_published(cuts: list[np.ndarray]) -> Recoding:
    """The single-dimensional recoding itself: every value published as its class, whatever its group holds.

    For measuring: level 0 are the classes of the cut, level 1 is the root.
    """
    return Recoding(tuple(Levels.tree(np.stack([cut, np.zeros_like(cut)])) for cut in cuts))


def specialize(task: Task) -> tuple[np.ndarray, list[np.ndarray]]:
    """(group of every cell, class of every code of every column)."""
    histogram, columns = task.histogram, task.recoding.columns
    label = np.zeros(histogram.cells, np.int64)
    cuts: list[np.ndarray] = []
    heap: list[tuple[float, int, int, int, np.ndarray]] = []
    order = 0
    for j, column in enumerate(columns):
        highest, top = column.top()
        cuts.append(top)
        _, label = np.unique(label * (int(top.max(initial=0)) + 1) + top[histogram.quasi[:, j]], return_inverse=True)
        for name in np.unique(top):
            codes = np.flatnonzero(top == name)
            heap.append((-_worth(task, j, codes, highest), order, j, highest, codes))
            order += 1
    held = [histogram.quasi_names[j] for j, c in enumerate(columns) if c.held]
    if held and not good_groups(histogram, task.requirement, np.arange(label.size), label).all():
        raise PolicyError(
            f"with the highest levels allowed for {', '.join(held)} some groups stay too small when every value is "
            "recoded alike; allow higher levels"
        )
    heapq.heapify(heap)
    while heap:
        worth, _, j, level, codes = heapq.heappop(heap)
        if worth == 0:
            continue
        inside = np.isin(histogram.quasi[:, j], codes)
        cells = np.flatnonzero(inside)
        for below, part in refinements(task, j, level, codes):
            child = part[np.searchsorted(codes, histogram.quasi[cells, j])]
            _, new = np.unique(label[cells] * np.int64(codes.size + 1) + child, return_inverse=True)
            if not good_groups(histogram, task.requirement, cells, new).all():
                continue
            label[cells] = int(label.max()) + 1 + new
            fresh = int(cuts[j].max()) + 1
            for name in np.unique(part):
                some = codes[part == name]
                cuts[j][some] = fresh + name
                heapq.heappush(heap, (-_worth(task, j, some, below), order, j, below, some))
                order += 1
            label = np.unique(label, return_inverse=True)[1].reshape(-1)
            task.progress("specializing", None)
            break
    return label, [np.unique(c, return_inverse=True)[1].reshape(-1) for c in cuts]


def _held(task: Task, j: int) -> np.ndarray:
    column = task.recoding.columns[j]
    return np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=max(column.size, 1))


def refinements(task: Task, j: int, level: int, codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The ways to refine a class: (level below, part of each of its codes), the preferred one first."""
    column = task.recoding.columns[j]
    if codes.size < 2:
        return []
    if column.levels:
        while level > 0:
            level -= 1
            _, part = np.unique(column.classes(level, codes), return_inverse=True)
            if int(part.max()) > 0:
                return [(level, part.reshape(-1))]
        return []
    held = np.cumsum(_held(task, j)[codes])
    points = np.arange(1, codes.size)
    if points.size > MOST_CUTS:
        points = np.unique(np.searchsorted(held, held[-1] * np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1)) + 1)
        points = points[points < codes.size]
    nearest = np.argsort(np.abs(2 * held[points - 1] - held[-1]), kind="stable")
    return [(0, (np.arange(codes.size) >= p).astype(np.int64)) for p in points[nearest]]


def _worth(task: Task, j: int, codes: np.ndarray, level: int) -> float:
    """Loss saved by the preferred refinement, per bit by which it tells rows apart; 0 when there is none."""
    column = task.recoding.columns[j]
    ways = refinements(task, j, level, codes)
    if not ways:
        return 0.0
    below, part = ways[0]
    held = _held(task, j)[codes]
    rows = np.bincount(part, weights=held)
    if not held.sum():
        return 0.0

    def loss(some: np.ndarray, at: int) -> float:
        return float(column.lifted(at, some[0]) if column.levels else column.spread(some[0], some[-1]))

    after = sum(rows[p] * loss(codes[part == p], below) for p in range(rows.size))
    share = rows[rows > 0] / rows.sum()
    bits = float(-(share * np.log2(share)).sum() * rows.sum())
    return max(column.weight * (held.sum() * loss(codes, level) - after), 1e-12) / max(bits, 1e-9)
