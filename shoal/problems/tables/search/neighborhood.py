"""Neighborhood search: near groups are taken apart and grouped anew, and what is not dearer is kept.

Works on any start and knows a recoding only by how values join and what they cost, so one kernel serves stars,
hierarchies, sets and ranges, and every requirement that is enforced.  The table is dealt into blocks of near groups,
a different deal each round; blocks are searched independently, on all cores.  Each block's random numbers depend on
the seed, the round and the block alone, so a search counted in steps gives the same result on any number of cores.

Which cells are near which, for a search to look for near groups, and blocks of near groups to search apart."""

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
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.bounds.certify import SearchReport, certify
from shoal.problems.tables.groups import Rows, of_thread
from shoal.problems.tables.search.cascade import best, start
from shoal.problems.threads import SearchThreads, flag

WIDTH = 24  # neighbors kept of every cell
REACH = (10, 24)  # least and most places looked at on each side in an order
ORDERS = (2, 8)  # least and most orders
PASSES = 2  # of the descent, at most
PART = 1000  # cells of a part, between two looks at the clock
GRAPH = 1 / 3  # share of the time left that it may take


def neighbor_graph(rows: Rows, seed: int, looks: float, deadline: float | None = None) -> np.ndarray:
    """Near cells of every cell, nearest first, int32[m, w], -1 after the last.

    deadline  of the search that asks: a third of what is left until then is taken at most, and cells that are not
              reached have no near ones
    looks  pairs of cells it should compare for every cell, about; at least those of two orders are

    Nearest neighbor descent (Dong, Moses, Li 2011) from cells that stand near each other when sorted by the columns
    in a few random orders.  O(m log m + m looks d).
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
    """Rows of each block, int64, rising: groups are halved by which of two random groups they are nearer to, again and
    again, until there are ``count`` blocks of about equal size."""
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


BLOCK = 4000  # rows searched together
MOST = 120  # rows taken apart at once, or four groups of the least size
WIDEST = 1200  # rows, or where groups are larger three of them
STEPS = {"fast": 0.0, "balanced": 0.3, "thorough": 12.0}  # neighborhoods tried per row
FEW = (50, 40_000)  # and at least, so many per row up to so many, of a small table whose rows are narrow
LONG, LONGEST = 2, 200_000  # and of a larger one of narrow rows, without a lattice to start from, so many per row
LONG_SHARES, LONG_RULED = 10, 5  # the same where shares of values are asked, and where further models are
FEW_RULED = (20, 40_000)  # the same where further models are asked, whose questions take longer
LEAST = (10, 9_000)  # and of any table, however wide its rows are
NARROW = 8  # slots of a row up to which they are; a step takes time by them
WARM = 5  # steps per row from which on a search of shares begins warm: it may become dearer by chance
HEAT, COLD = 0.4, 0.8  # of a group's loss at first, falling in a line to none after this share of the steps
ROUNDS = 20  # of such a search
PAIRS = 5 / 2  # times the least size to which a table can be dealt: rows taken apart, so that two such groups are
SLICE = 400  # neighborhoods between two looks at the clock
ROUND = 1500  # neighborhoods per block before the table is dealt anew
TURN = 0.1  # seconds for a block before the same: no group leaves its block, so a longer turn soon finds nothing
CAP = {"fast": 0, "balanced": 40_000, "thorough": 4_000_000}


def improve(task: Task) -> Grouping:
    """The cascade followed by neighborhood search for as long as the effort allows; never dearer than the cascade."""
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
    """Neighborhoods that the effort allows; 0 for one in seconds."""
    rows, name = task.histogram.rows, task.effort.name
    areas = any(isinstance(column, Regions) for column in task.recoding.columns)  # a join looks for a connected set
    width = 4 * NARROW if areas else sum(len(column.slots()) for column in task.recoding.columns)
    each, most = FEW_RULED if task.requirement.rules else FEW
    if task.recoding.hierarchies is None:
        need = task.requirement
        long = LONG_RULED if need.rules else LONG_SHARES if max(need.frequency, default=1) > 1 else LONG
        most = min(max(most, long * rows), LONGEST)
    few = max(min(each * rows, most) * min(1.0, NARROW / max(width, 1)), min(LEAST[0] * rows, LEAST[1]))
    few = few if name == "balanced" else 0
    slow = (MOST / most_of(task.requirement.smallest)) ** 2
    if not task.requirement.closed:  # each question about a group is asked once for each model that counts persons
        slow /= 1 + len(task.requirement.rules) / 2
    return int(max(min(STEPS.get(name, 0) * rows * slow, CAP.get(name, 0)), few * slow) + 0.5)


def most_of(need: int) -> int:
    """Rows taken apart at once, so that some groups of the least size are; a step takes time by its square."""
    return max(MOST, min(4 * need, WIDEST), min(3 * need, 2 * WIDEST))


def looks(rows: Rows, deadline: float | None, steps: int) -> float:
    """Pairs per cell worth comparing beforehand: about a sixth of the time the search will take."""
    if deadline is not None:
        steps = int(max(deadline - clock(), 0.0) * 5000 * (os.cpu_count() or 1))
    return 1500 * steps / max(rows.histogram.cells, 1)


class Searcher(NamedTuple):
    """What every thread needs to search a block of rows by itself; values int64[rows, columns], near int32[cells]."""

    rows: Rows
    values: np.ndarray
    near: np.ndarray
    most: int
    stop: threading.Event

    def improved(
        self, block: np.ndarray, labels: np.ndarray, number: int, each: int, until: float | None, heat: float
    ) -> tuple[np.ndarray, int]:
        """Labels of the block from 0 without gaps, and how many neighborhoods were tried: ``each``, until then."""
        from shoal.kernels.tables import neighborhood as kernel
        from shoal.kernels.tables.eligible import GroupRequirement

        rows = self.rows
        cell, first, of = np.unique(rows.cell[block], return_index=True, return_inverse=True)
        first, of = np.append(first, block.size), of.reshape(-1)
        place = np.searchsorted(cell, self.near[cell])
        place[place == cell.size] = 0
        here = np.where(cell[place] == self.near[cell], place, -1).astype(np.int32)
        cell = rows.cell[block]
        names, label = np.unique(labels[block], return_inverse=True)
        label = label.reshape(-1).astype(np.int64)
        table = kernel.RowsByCell(rows.leaf[cell], of, first, here, self.values[cell])
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
    """Sensitive values as the kernel counts them, int64[rows, columns]: numbered anew but where rules know them."""
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
    """A grouping of rows not dearer than the one given, int64[n], labels from 0 without gaps.

    deadline  clock reading (``shoal.clock``) at which to stop; else ``steps`` neighborhoods are tried (by the effort)

    Groups too large to be taken apart are dealt small first; a count of steps allows the search without that as well.
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
    if small is group or deadline is None:  # a count of steps allows both
        tried.append(_searched(task, rows, group, most, near, deadline, steps))
    return min(reversed(tried), key=lambda pair: _loss(task, rows, pair[0]))


def _searched(
    task: Task, rows: Rows, group: np.ndarray, most: int, near: np.ndarray, deadline: float | None, steps: int
) -> tuple[np.ndarray, SearchReport]:
    """The same with ``most`` rows taken apart at once; groups above that stay as they are."""
    report, n = SearchReport(), group.size
    count = max(1, round(n / BLOCK))
    workers = min(os.cpu_count() or 1, count)
    slow = (MOST / most) ** 2
    searcher = Searcher(rows, _values(rows), near, most, flag())
    # Where k alone is asked, starts by columns are so good that warmth loses more than it finds.
    shares = max(task.requirement.frequency, default=1) > 1 and not task.requirement.rules
    heated, given = deadline is None and shares and steps >= WARM * n, group
    with SearchThreads(workers) as pool:
        # A round deals the groups into blocks, and threads search the blocks by themselves; labels are put together
        # after it.
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
    """Groups of which at least two are taken apart at once, and how many rows that takes: ``most``, or more.

    Of a table that can only be dealt to larger pieces, groups are as small as these.
    """
    small = rows.dealt_small(group, most // 2)
    largest = int(np.bincount(group).max())
    if small is not group or largest <= most // 2:
        return small, most
    least = int(np.bincount(rows.cut(np.zeros_like(group))).max())
    wider = min(int(PAIRS * least), WIDEST)
    return (rows.dealt_small(group, least), wider) if least < largest and most < wider else (group, most)


def _loss(task: Task, rows: Rows, group: np.ndarray) -> float:
    """What a grouping loses, in the recoding's unit or, for a mean of cells, their sum."""
    many = task.histogram.rows * len(task.recoding.columns) if task.recoding.unit == "ncp" else 1
    return task.recoding.cost(task.histogram, rows.partition(group)) * many


def _heat(task: Task, rows: Rows, group: np.ndarray, done: float) -> float:
    """Loss by which a neighborhood may become dearer after a share ``done`` of the steps: a part of a group's."""
    return HEAT * max(1.0 - done / COLD, 0.0) * _loss(task, rows, group) / (int(group.max()) + 1)
