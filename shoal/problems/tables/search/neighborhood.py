"""Neighborhood search: near groups are taken apart and grouped again; a result that is not more expensive is kept.

The search uses only the join and the cost of a recoding, so it is the same for stars, hierarchies, sets, and ranges,
from any start, under every model. In each round, the table is dealt into blocks of near groups, which all cores search
independently. A block's random numbers depend only on the seed, the round, and the block, so a search counted in steps
gives the same result on any number of cores (docs/search.md).
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.model.recoding import Regions
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import SearchReport, certify
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.groups import Rows, of_thread
from shoal.problems.tables.search.cascade import best, start
from shoal.threads import SearchThreads, flag

WIDTH = 24  # neighbors of a cell in the graph
REACH = (10, 24)  # least and most cells examined on each side in an order
ORDERS = (2, 8)  # least and most orders
PASSES = 2  # limit of the passes of the descent
PART = 1000  # cells of a part, between two readings of the clock
GRAPH = 1 / 3  # share of the time left that the graph may take


def neighbor_graph(rows: Rows, seed: int, looks: float, deadline: float | None = None) -> np.ndarray:
    """The nearest cells of every cell, nearest first, int32[m, w]; -1 after the last.

    looks     pairs to compare for every cell, about; at least those of two orders are compared
    deadline  clock reading at which the search ends; the graph takes at most a third of the time until then, and cells
              not reached have no neighbors

    Nearest neighbor descent (Dong, Moses, Li 2011) from cells that are adjacent when sorted by the columns in a few
    random orders. O(m log m + m looks d).
    """
    from shoal.kernels.tables.near_cells import Orders, descend, windows

    leaf, quasi = rows.leaf, rows.histogram.quasi
    m, d = quasi.shape
    if not m:
        return np.zeros((0, 0), np.int32)
    random = np.random.default_rng([seed, 11])
    orders = int(np.clip(looks / (4 * REACH[1]), *ORDERS))
    reach = int(np.clip(looks / (2 * orders), *REACH))
    passes = int(np.clip((looks - 2 * reach * orders) / (WIDTH * WIDTH / 2), 0, PASSES))
    order = np.stack([np.lexsort([quasi[:, j] for j in random.permutation(d)]) for _ in range(orders)])
    rank = np.empty_like(order)
    for o in range(orders):
        rank[o, order[o]] = np.arange(m)
    near, far = np.full((m, WIDTH), -1, np.int32), np.full((m, WIDTH), np.inf)
    workers = os.cpu_count() or 1
    many = int(np.clip(m // PART, 4 * workers, 32 * workers))
    parts = list(pairwise(np.linspace(0, m, many + 1).astype(np.int64)))
    until = np.inf if deadline is None else clock() + GRAPH * (deadline - clock())
    stop = flag()

    def start(part: tuple[int, int]) -> None:
        if not stop.is_set() and clock() < until:
            windows(of_thread(rows.slots), leaf, Orders(order, rank, reach), part[0], part[1], near, far)

    def better(part: tuple[int, int]) -> None:
        if not stop.is_set() and clock() < until:
            descend(of_thread(rows.slots), leaf, old, part[0], part[1], near, far, np.full(m, -1, np.int32))

    with SearchThreads(workers) as pool:
        list(pool.map(start, parts))
        for _ in range(passes):
            old = near.copy()
            list(pool.map(better, parts))
    return near


def deal(rows: Rows, group: np.ndarray, count: int, seed: list[int]) -> list[np.ndarray]:
    """The rows of each block, int64, rising, for about ``count`` blocks of near groups of about equal size.

    The groups are halved, by which of two random groups is nearer, and the halves are halved again.
    """
    from shoal.kernels.tables.near_cells import between

    if count == 1:
        return [np.arange(group.size)]
    random = np.random.default_rng(seed)
    state = rows.states(group)
    size = np.bincount(group, minlength=state.shape[0])
    block = np.empty(state.shape[0], np.int64)
    waiting, made = [(np.arange(state.shape[0]), count)], 0
    while waiting:
        groups, pieces = waiting.pop()
        if pieces == 1 or groups.size < 2:
            block[groups] = made
            made += 1
            continue
        one, other = random.choice(groups.size, 2, replace=False)
        nearer = between(rows.slots, state[groups], one, other)
        order = np.lexsort((random.random(groups.size), nearer))
        left = pieces // 2
        filled = np.cumsum(size[groups[order]])
        cut = int(np.clip(1 + np.searchsorted(filled, filled[-1] * left / pieces), 1, groups.size - 1))
        waiting.append((groups[order[:cut]], left))
        waiting.append((groups[order[cut:]], pieces - left))
    of_row = block[group]
    by_block = np.argsort(of_row, kind="stable")
    edges = np.searchsorted(of_row[by_block], np.arange(made + 1))
    return [by_block[a:b] for a, b in pairwise(edges) if b > a]


BLOCK = 4000  # rows of a block, which is searched alone
MOST = 120  # rows taken apart in a step, or four groups of the least size
WIDEST = 1200  # the same at most, or three groups of the least size
STEPS = {"fast": 0.0, "balanced": 0.3, "thorough": 12.0}  # steps for each row
FEW = (50, 40_000)  # at least so many for each row, up to so many in all, if rows are narrow
LONG, LONGEST = 2, 200_000  # the same for a larger table without hierarchies, or under limits of shares
LONG_SHARES, LONG_RULED = 10, 5  # the same under limits of shares, and under further models
FEW_RULED = (20, 40_000)  # as FEW, under further models, where a step takes longer
LEAST = (10, 9_000)  # as FEW, for rows of any width
QUICK, QUICK_ROWS = (10, 3_000), 5_000  # as FEW, for "fast"; a larger table isn't searched
NARROW = 8  # limit of the slots of a narrow row; a step takes time in proportion to the slots
WARM = 5  # steps for each row from which on a search under limits of shares anneals
HEAT, COLD = 0.4, 0.8  # first heat, by a group's loss; share of the steps after which it is 0
ROUNDS = 20  # rounds of annealing
PAIRS = 5 / 2  # rows taken apart, so that they include two groups of the least size that can be dealt
SLICE = 400  # steps between two readings of the clock
ROUND = 1500  # steps in each block until the table is dealt again
TURN = 0.1  # the same in seconds: no group leaves its block, so a longer turn finds little
CAP = {"fast": 0, "balanced": 40_000, "thorough": 4_000_000}


def improve(task: Task) -> Grouping:
    """The cascade, then the neighborhood search as long as the effort allows; never costs more than the cascade."""
    rows = Rows.of(task)
    first = start(task, rows)
    until = None
    deadline = None if task.effort.seconds is None else task.started + task.effort.seconds
    if deadline is not None:
        until = clock() + 0.3 * max(deadline - clock(), 0.0)
    bounds = lower_bounds(task, until=until)
    group, report = search(task, rows, rows.labels(first), deadline=deadline)
    return certify(task, best(task, rows.partition(group), first), "improve", bounds, report)


def steps_of(task: Task) -> int:
    """Steps that the effort allows; 0 for an effort in seconds."""
    rows, name = task.histogram.rows, task.effort.name
    areas = any(isinstance(column, Regions) for column in task.recoding.columns)  # a join computes a connected set
    width = 4 * NARROW if areas else sum(len(column.slots()) for column in task.recoding.columns)
    each, most = FEW_RULED if task.requirement.rules else FEW
    need = task.requirement
    shares = max(need.frequency, default=1) > 1
    if task.recoding.hierarchies is None or (shares and not need.rules):
        long = LONG_RULED if need.rules else LONG_SHARES if shares else LONG
        most = min(max(most, long * rows), LONGEST)
    narrow = min(1.0, NARROW / max(width, 1))
    few = 0.0
    if name == "balanced":
        few = max(min(each * rows, most) * narrow, min(LEAST[0] * rows, LEAST[1]))
    elif name == "fast" and rows <= QUICK_ROWS:
        few = min(QUICK[0] * rows, QUICK[1]) * narrow
    slow = (MOST / most_of(task.requirement.smallest)) ** 2
    if not task.requirement.closed:  # eligibility is computed once for each model that counts persons
        slow /= 1 + len(task.requirement.rules) / 2
    return int(max(min(STEPS.get(name, 0) * rows * slow, CAP.get(name, 0)), few * slow) + 0.5)


def most_of(need: int) -> int:
    """Rows taken apart in a step: some groups of the least size. A step takes time by the square of this number."""
    return max(MOST, min(4 * need, WIDEST), min(3 * need, 2 * WIDEST))


def looks(rows: Rows, deadline: float | None, steps: int) -> float:
    """Pairs for each cell that the neighbor graph compares: about a sixth of the time of the search."""
    if deadline is not None:
        steps = int(max(deadline - clock(), 0.0) * 5000 * (os.cpu_count() or 1))
    return 1500 * steps / max(rows.histogram.cells, 1)


class Searcher(NamedTuple):
    """The data that every thread needs to search a block of rows.

    values  int64[rows, columns];  near  int32[cells, w] neighbor graph;  most  rows taken apart in a step
    """

    rows: Rows
    values: np.ndarray
    near: np.ndarray
    most: int
    stop: threading.Event

    def improved(
        self, block: np.ndarray, labels: np.ndarray, number: int, each: int, until: float | None, heat: float
    ) -> tuple[np.ndarray, int]:
        """The labels of the rows of a block, from 0 without gaps, and the number of steps done.

        number  seed;  each  steps, repeated until ``until`` if it is given;  heat  of annealing
        """
        from shoal.kernels.tables import neighborhood as kernel
        from shoal.kernels.tables.eligible import GroupRequirement

        rows = self.rows
        cell, first, cell_of = np.unique(rows.cell[block], return_index=True, return_inverse=True)
        first, cell_of = np.append(first, block.size), cell_of.reshape(-1)
        place = np.searchsorted(cell, self.near[cell])
        place[place == cell.size] = 0
        near = np.where(cell[place] == self.near[cell], place, -1).astype(np.int32)
        cell = rows.cell[block]
        names, label = np.unique(labels[block], return_inverse=True)
        label = label.reshape(-1).astype(np.int64)
        table = kernel.RowsByCell(rows.leaf[cell], cell_of, first, near, self.values[cell])
        asked = GroupRequirement(rows.k, rows.frequency, rows.distinct, rows.rules)
        done, slots = 0, of_thread(rows.slots)
        while not self.stop.is_set():
            turns = kernel.Turns(each, np.uint64(number + done), self.most, heat)
            kernel.improve(slots, table, asked, label, names.size, turns)
            done += each
            if until is None or clock() >= until:
                return label, done
            names, label = np.unique(label, return_inverse=True)
            label = label.reshape(-1).astype(np.int64)
        return label, done


def _values(rows: Rows) -> np.ndarray:
    """Sensitive values for the kernel, int64[rows, columns]: numbered from 0, unless rules refer to their codes."""
    if rows.need.rules or not rows.sensitive.shape[1]:
        return rows.sensitive.astype(np.int64)
    return np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in rows.sensitive.T], axis=1)


def search(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    deadline: float | None = None,
    steps: int | None = None,
    near: np.ndarray | None = None,
) -> tuple[np.ndarray, SearchReport]:
    """A grouping of rows that loses no more than the one given, int64[n], labels from 0 without gaps.

    deadline  clock reading (``shoal.clock``) at which to stop; otherwise ``steps`` are tried, or those of the effort

    Groups too large to be taken apart are first dealt into small ones. If steps are counted, the search also runs
    without that, and the cheaper grouping is returned.
    """
    n = group.size
    if steps is None:
        steps = steps_of(task)
    if n == 0 or rows.leaf.shape[1] > 512 or (deadline is None and steps == 0):
        return group, SearchReport()
    most = most_of(rows.k)
    if near is None:
        near = neighbor_graph(rows, task.seed, looks(rows, deadline, steps), deadline)
    small, wider = _dealt_small(rows, group, most)
    tried = [(group, SearchReport())]
    if small is not group:
        fewer = int(steps * (most / wider) ** 2 + 0.5)
        tried.append(_searched(task, rows, small, wider, near, deadline, fewer))
    if small is group or deadline is None:
        tried.append(_searched(task, rows, group, most, near, deadline, steps))
    return min(reversed(tried), key=lambda pair: _loss(task, rows, pair[0]))


def _searched(
    task: Task, rows: Rows, group: np.ndarray, most: int, near: np.ndarray, deadline: float | None, steps: int
) -> tuple[np.ndarray, SearchReport]:
    """The grouping of ``search``, with ``most`` rows taken apart in a step; larger groups stay as they are."""
    report, n = SearchReport(), group.size
    count = max(1, round(n / BLOCK))
    workers = min(os.cpu_count() or 1, count)
    slow = (MOST / most) ** 2
    searcher = Searcher(rows, _values(rows), near, most, flag())
    # Under k alone, the starts by columns are so good that annealing loses more than it gains.
    shares = max(task.requirement.frequency, default=1) > 1 and not task.requirement.rules
    heated, given = deadline is None and shares and steps >= WARM * n, group
    with SearchThreads(workers) as pool:
        # A round deals the groups into blocks, which threads search independently, and then combines the labels.
        while True:
            each, until = max(1, int(SLICE * slow)), None
            if deadline is None:
                left = steps - report.steps
                if left <= 0:
                    break
                each = max(1, min(-(-left // count), -(-steps // (count * ROUNDS)) if heated else ROUND))
            elif clock() >= deadline:
                report.stopped = "seconds"
                break
            blocks = deal(rows, group, count, [task.seed, report.rounds, 7])
            numbers = np.random.SeedSequence([task.seed, report.rounds]).generate_state(count, np.uint32)
            waves = -(-len(blocks) // workers)
            waiting: list[Future[tuple[np.ndarray, int]]] = []
            now = clock()
            turn = 0.0 if deadline is None else min(TURN, max(deadline - now, 0.0) / waves)
            heat = _heat(task, rows, group, report.steps / steps) if heated else 0.0
            task.progress("search", None if deadline else report.steps / steps)
            for i, block in enumerate(blocks):
                if deadline is not None:
                    until = now + turn * (i // workers + 1)
                waiting.append(pool.submit(searcher.improved, block, group, int(numbers[i]) << 20, each, until, heat))
            found = [w.result() for w in waiting]
            group = group.copy()
            shift = 0
            for block, (label, done) in zip(blocks, found, strict=True):
                group[block] = label + shift
                shift += int(label.max()) + 1
                report.steps += done
            report.rounds += 1
    if heated and _loss(task, rows, group) > _loss(task, rows, given):
        group = given
    return np.unique(group, return_inverse=True)[1].reshape(-1), report


def _dealt_small(rows: Rows, group: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """Groups small enough that a step takes at least two apart, and the rows that this takes: ``most``, or more.

    If the table can be dealt only into larger pieces, the groups get the least size of these.
    """
    small = rows.dealt_small(group, most // 2)
    largest = int(np.bincount(group).max())
    if small is not group or largest <= most // 2:
        return small, most
    least = int(np.bincount(rows.cut(np.zeros_like(group))).max())
    wider = min(int(PAIRS * least), WIDEST)
    return (rows.dealt_small(group, least), wider) if least < largest and most < wider else (group, most)


def _loss(task: Task, rows: Rows, group: np.ndarray) -> float:
    """The loss of a grouping in the recoding's unit; for a mean over cells, the sum."""
    many = task.histogram.rows * len(task.recoding.columns) if task.recoding.unit == "ncp" else 1
    return task.recoding.cost(task.histogram, rows.partition(group)) * many


def _heat(task: Task, rows: Rows, group: np.ndarray, done: float) -> float:
    """The rise of the loss that annealing accepts with a probability of 1/e after a share ``done`` of the steps."""
    return HEAT * max(1.0 - done / COLD, 0.0) * _loss(task, rows, group) / (int(group.max()) + 1)
