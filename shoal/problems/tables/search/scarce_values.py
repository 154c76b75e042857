"""Starts and moves for scarce sensitive values: the rows hardest to serve come first, and new groups are opened.

If one value makes up most of the table, each group needs a row of another value, and the order in which groups are made
decides the loss: the rows that must lose most go first, each with the scarce row that suits it best. Later, expensive
groups stay large because each has a single scarce row. The neighborhood search adds no group to a neighborhood that has
no scarce row to spare. So new groups are opened with rows of groups that have two (docs/search.md).
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.sweep import CHEAPEST
from shoal.model.task import Task
from shoal.problems.tables.bounds import SearchReport
from shoal.problems.tables.bounds.bounds import Sweeper
from shoal.problems.tables.groups import Rows, of_thread
from shoal.problems.tables.losses import ENUMERATED, Lattice
from shoal.problems.tables.search.cascade import guided
from shoal.problems.tables.search.neighborhood import looks, neighbor_graph, search, steps_of
from shoal.threads import SearchThreads, flag

LEAD = 2.0  # factor of the prices of common values
ROUGH = (-1.2, 0.2, 0.7)  # accepted loss per row above these prices, in mean prices
COARSE = (-2.4, -1.2, -0.5, 0.0, 0.7)
FINE = (-3.6, -2.4, -1.8, -1.2, -0.8, -0.5, -0.25, 0.0, 0.25, 0.7)
VISITS = (8_000_000, 20_000_000, 200_000_000)  # cells times nodes visited, by the time left
MOST = 48  # rows of a new group
LIST = 48  # rows near a seed that can join it
PULL = 0.5  # weight of a row's present loss against its distance from the seed
PART = 64  # seeds that a core tries at once
LOOKS = 30_000_000  # pairs of seed and row in a round of opening groups
ROUNDS = 4  # rounds of opening groups and searching, if the search counts steps
SHARE = 6.0  # seconds of search for each second of opening groups
PAIRS = 300_000_000  # limit of the pairs of row and group; above it only near groups are compared
BATCH = 2000  # rows placed until all groups are compared again
WIDTH = 8  # cheapest groups kept for each of them


def open_and_search(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    deadline: float | None = None,
    steps: int | None = None,
    near: np.ndarray | None = None,
) -> tuple[np.ndarray, SearchReport]:
    """Opening of groups and search in alternation; a grouping that loses no more than the one given, as by ``search``.

    If the search counts steps, the rounds are reproducible. With seconds, opening takes about a seventh of the time.
    """
    report = SearchReport(stopped="steps" if deadline is None else "seconds")
    n = group.size
    if steps is None:
        steps = steps_of(task)
    if not n or (deadline is None and not steps):
        return group, report
    if near is None:
        near = neighbor_graph(rows, task.seed, looks(rows, deadline, steps))
    scarce = _seeds(rows, np.random.default_rng([task.seed, 11]))
    each = max(1, LOOKS // n)
    turn, wait = 0, SHARE
    # A round opens groups around the next seeds, and searches. If no group opens, the search gets more of the time.
    while True:
        began = clock()
        if deadline is not None and began >= deadline:
            break
        seeds = np.take(scarce, np.arange(turn * each, turn * each + min(each, scarce.size)), mode="wrap")
        before = clock()
        group, opened = open_groups(rows, group, seeds, shift=turn * 7919, until=deadline)
        spent = clock() - before
        here = replace(task, seed=task.seed + 1_000_003 * turn)
        if deadline is None:
            group, part = search(here, rows, group, near=near,
                                 steps=steps // ROUNDS + (turn < steps % ROUNDS))  # fmt: skip
        else:
            stop = min(deadline, clock() + max(wait * spent, 1.0))
            group, part = search(here, rows, group, deadline=stop, near=near)
            wait = SHARE if opened else min(2 * wait, 60.0)
        report.steps += part.steps
        report.rounds += part.rounds
        turn += 1
        if deadline is None and turn == ROUNDS:
            break
    return group, report


def scarce_start(
    task: Task, rows: Rows, prices: np.ndarray | None, common: np.ndarray, until: float | None = None
) -> np.ndarray | None:
    """A group for every row, int64[n], by a cascade that publishes the hardest rows first; None as in ``guided``.

    prices  float64[m]  loss of each cell's cheapest node; computed here if the bounds did not
    common  bool[v]     values that are not scarce (``cascade.scarcity``)
    until   clock reading; with little time, or "fast", fewer nodes are visited

    The prices of the common values' rows are doubled, so that the hardest of them choose a scarce row first. Doubled
    prices prove nothing; they only set the order.
    """
    left = 0.0 if task.effort.name == "fast" else np.inf if until is None else until - clock()
    lattice = Lattice.of(task.recoding)
    if lattice.nodes > ENUMERATED:
        return None
    if prices is None:
        prices = Sweeper(task, lattice, LOOKS * 10).run(CHEAPEST, np.zeros(0), np.zeros(0, bool), until)
        if prices is None or not np.isfinite(prices).all():
            return None
    small = int(np.searchsorted((3, 20), left))
    lead = np.where(common[rows.sensitive[:, 0]], LEAD, 1.0) * prices
    unit = float(prices @ task.histogram.count) / max(task.histogram.rows, 1)
    return guided(
        task, rows, lead, until, allowances=[unit * a for a in (ROUGH, COARSE, FINE)[small]],
        most=max(1, VISITS[small] // max(task.histogram.cells, 1)),
        finish=lambda group: place_many(rows, group),
    )  # fmt: skip


def _seeds(rows: Rows, random: np.random.Generator) -> np.ndarray:
    """The rows of every value but the most frequent one of the first sensitive column, shuffled."""
    if not rows.frequency.size:
        return random.permutation(rows.cell.size)
    value = rows.sensitive[rows.cell, 0]
    return random.permutation(np.flatnonzero(value != np.bincount(value).argmax()))


def open_groups(
    rows: Rows, group: np.ndarray, seeds: np.ndarray, *, shift: int = 0, until: float | None = None
) -> tuple[np.ndarray, int]:
    """New groups opened around some rows if that lowers the loss: a group for every row, and the number of new groups.

    group  int64[n]  a grouping in which every group is eligible
    seeds  int64[r]  rows to try; those that their group needs are skipped
    until  clock reading at which proposals end
    The result does not depend on the number of cores. O(r n) time for r seeds.
    """
    from shoal.kernels.tables import scarce_values as kernels
    from shoal.kernels.tables.eligible import prices

    n = group.size
    if not n or not seeds.size:
        return group, 0
    leaf, value = leaves_and_values(rows)
    group = np.unique(group, return_inverse=True)[1].reshape(-1)
    member = np.argsort(group, kind="stable")
    size = np.bincount(group)
    start = np.concatenate([[0], np.cumsum(size)])
    state = rows.states(group)
    price = prices(rows.slots, state)
    table = kernels.ValuedRows(rows.slots, leaf, value, rows.k, rows.frequency, rows.distinct)
    groups = kernels.GroupMembers(group, start, member, price, np.ones(n, bool))
    kernels.spare(table, groups)
    seeds = seeds[groups.free[seeds]]
    widest, look = max(MOST, rows.k, *rows.frequency, *rows.distinct), kernels.SeedNeighborhood(PULL, shift % n, LIST)
    count = seeds.size
    made = kernels.Proposals(np.zeros((count, widest), np.int64), np.zeros(count, np.int64), np.zeros(count))
    stop = flag()

    def one(first: int) -> None:
        part = slice(first, first + PART)
        if not stop.is_set() and (until is None or clock() < until):
            kernels.propose(
                table._replace(slots=of_thread(rows.slots)),
                groups,
                seeds[part],
                look,
                kernels.Proposals(*(out[part] for out in made)),
            )

    with SearchThreads(os.cpu_count() or 1) as pool:
        list(pool.map(one, range(0, seeds.size, PART)))
    order = np.lexsort((np.arange(seeds.size), -made.gain))
    order = order[made.many[order] > 0]
    capacity = size.size + order.size
    head, following = np.full(capacity, -1, np.int64), np.full(n, -1, np.int64)
    head[: size.size] = member[start[:-1]]
    following[member[:-1]] = np.where(np.diff(group[member]) == 0, member[1:], -1)
    sizes, paid = np.zeros(capacity, np.int64), np.zeros(capacity)
    states = np.zeros((capacity, leaf.shape[1]), np.int64)
    sizes[: size.size], states[: size.size], paid[: size.size] = size, state, price
    chained = kernels.Chained(group, head, following, sizes, states, paid)
    return group, int(kernels.carry_out(table, chained, order, made))


def place_many(rows: Rows, group: np.ndarray) -> np.ndarray:
    """A grouping with every row labelled -1 placed where it adds least loss, labels from 0 without gaps; for many rows.

    Only for requirements that a group still meets after any row joins it: distinct values without frequencies. In
    contrast to ``Rows.place``, all cores compare many rows with every group at once, and each row then chooses among
    the few cheapest. O(rows left * groups).
    """
    from shoal.kernels import quick
    from shoal.kernels.tables.eligible import prices
    from shoal.kernels.tables.scarce_values import cheapest, place

    inside, waiting = np.flatnonzero(group >= 0), np.flatnonzero(group < 0)
    if not inside.size or not waiting.size:
        return rows.place(group)
    names, label = np.unique(group[inside], return_inverse=True)
    if waiting.size * names.size > PAIRS:
        return rows.place(group)
    group = np.full(group.size, -1, np.int64)
    group[inside] = label.reshape(-1)
    leaf, value = leaves_and_values(rows)
    state = rows.states(group)
    size = np.bincount(group[inside])
    price = quick(prices, state.size)(rows.slots, state)
    if value.shape[1]:
        held = value[waiting, 0]
        waiting = waiting[np.argsort(-np.bincount(held)[held], kind="stable")]
    workers = os.cpu_count() or 1
    step, stop = -(-BATCH // 8), flag()
    with SearchThreads(workers) as pool:
        for first in range(0, waiting.size, BATCH):
            part = waiting[first : first + BATCH]
            order = np.lexsort((size, *state.T, price))  # of groups with the same tuple the smallest loses least
            order = order[np.append(True, np.diff(state[order], axis=0).any(axis=1))]
            found = np.full((part.size, WIDTH), -1, np.int64)

            def one(a: int, part: np.ndarray = part, order: np.ndarray = order, found: np.ndarray = found) -> None:
                if not stop.is_set():
                    cheapest(
                        of_thread(rows.slots), leaf, part[a : a + step], state, size, price, order, found[a : a + step]
                    )

            list(pool.map(one, range(0, part.size, step)))
            put = quick(place, found.size * leaf.shape[1])
            put(rows.slots, leaf, part, found, group, state, size, price)
    return group


def leaves_and_values(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Slots int64[n, t] of every row, and its sensitive values int64[n, s], numbered from 0."""
    value = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in rows.sensitive.T]
    codes = np.stack(value, axis=1) if value else np.zeros((rows.sensitive.shape[0], 0), np.int64)
    return np.ascontiguousarray(rows.leaf[rows.cell]), np.ascontiguousarray(codes[rows.cell].astype(np.int64))
