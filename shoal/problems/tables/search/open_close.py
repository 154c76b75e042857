"""Published tuples opened and closed, for k-anonymity: the search where groups are too large to be taken apart.

Groups that publish the same tuple are one class, at no cost, and of a class of k rows or more any row may leave for
a cheaper tuple that covers it.  So what is searched is the set of open tuples: a tuple near an open one is opened with
the rows that gain, tuples that would be left with fewer than k rows are closed and their rows go to the cheapest open
ones, and rows that lose are added while it has fewer than k.  Changes for the worse are carried out with the
probability of Metropolis et al. (1953), less and less of them.  In the end every class is cut into groups.
"""

from __future__ import annotations

import os

import numpy as np

from shoal.clock import clock
from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task
from shoal.problems.interrupts import Workers, flag
from shoal.problems.tables.search.candidates import Candidates
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.certified import Told
from shoal.problems.tables.search.near_graph import deal
from shoal.problems.tables.search.row_groups import Rows

BLOCK = 20_000  # rows searched together
STEPS = {"fast": 0, "balanced": 15, "thorough": 200}  # tuples tried per row
CAP = {"fast": 0, "balanced": 2_000_000, "thorough": 40_000_000}
ROUNDS = 24  # deals of the table, the heat falling from each to the next
HEAT = (0.16, 0.02)  # first and last, by what a class loses in the mean
COLD = 2  # rounds at the end without heat
LONGEST = 1.5  # seconds of a round, at most
BYTES = 2**26  # of the sets of cells below each node, at most
LISTED = 32  # open tuples that cover a cell there is room for at first


def applies(task: Task) -> bool:
    """Whether k alone is asked, hierarchies are published, and the sets of cells below their nodes fit in memory."""
    columns, need = task.recoding.columns, task.requirement
    if need.sensitive_columns or need.rules or task.recoding.hierarchies is None or any(c.held for c in columns):
        return False
    nodes = sum(c.levels * c.size for c in columns)
    return nodes * min(task.histogram.cells, 2 * BLOCK) // 8 <= BYTES


def steps_of(task: Task) -> int:
    """Tuples that the effort allows to try; 0 for one in seconds."""
    name = task.effort.name
    return min(STEPS.get(name, 0) * task.histogram.rows, CAP.get(name, 0))


def open_close(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    pool: Candidates | None = None,
    deadline: float | None = None,
    steps: int | None = None,
) -> tuple[np.ndarray, Told]:
    """A grouping of rows not dearer than the one given, int64[n], labels from 0 without gaps.

    pool      tuples worth a try, as the bounds have found them
    deadline  clock reading (``shoal.clock``) at which to stop; else ``steps`` tuples are tried (by the effort)
    Counted in steps the same on any number of cores.  O(steps rows of a tuple).
    """
    told = Told(stopped="steps" if deadline is None else "seconds")
    steps = steps_of(task) if steps is None else steps
    if not group.size or (deadline is None and not steps):
        return group, told
    count = max(1, round(group.size / BLOCK))
    began, pace = clock(), 5e3 * min(os.cpu_count() or 1, count)
    state, label = classes_of(rows, group)
    pool = pool or Candidates.empty(state.shape[1])
    heat = _mean_loss(rows, state, label)
    part = 0.0
    while part < 1.0:
        since = clock()
        if deadline is None:
            now = -(-steps // ROUNDS)
            after = (told.rounds + 1) / ROUNDS
        else:
            span = min(max(deadline - began, 1e-3) / ROUNDS, LONGEST)
            now = int(pace * min(span, max(deadline - since, 0.0)))
            after = (since + span - began) / max(deadline - began, 1e-3)
            if now < count:
                break
        task.progress("open and close", part)
        hot = 0.0 if after > 1.0 - COLD / ROUNDS else heat * HEAT[0] * (HEAT[1] / HEAT[0]) ** part
        label, done = _round(task, rows, state, label, pool, -(-now // count), hot, told.rounds)
        state, label = classes_of(rows, label)
        told.steps, told.rounds, part = told.steps + done, told.rounds + 1, after
        pace = 0.5 * pace + 0.5 * done / max(clock() - since, 1e-3)
    found = rows.cut(label)
    return min((group, found), key=lambda labels: rank(task, rows.partition(labels))), told


def classes_of(rows: Rows, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the groups publish, each tuple once, int64[v, t], and the tuple of each row."""
    state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
    return state, of.reshape(-1)[group]


def _mean_loss(rows: Rows, state: np.ndarray, label: np.ndarray) -> float:
    """What k rows of a class lose, in the mean, those above a ceiling left out."""
    from shoal.kernels.tables.slots import prices

    price = prices(rows.slots, state)[label]
    fair = price[price < FORBIDDEN]
    return rows.k * float(fair.mean()) if fair.size else 0.0


def _round(
    task: Task, rows: Rows, state: np.ndarray, label: np.ndarray, pool: Candidates, each: int, heat: float, turn: int
) -> tuple[np.ndarray, int]:
    """One deal of the table, ``each`` steps in every block; the class of each row and the steps done."""
    blocks = deal(rows, label, max(1, round(label.size / BLOCK)), [task.seed, turn, 19])
    numbers = np.random.SeedSequence([task.seed, turn, 23]).generate_state(len(blocks), np.uint64)
    stop = flag()

    def one(i: int) -> tuple[np.ndarray, int]:
        block = blocks[i]
        if stop.is_set():
            return label[block], 0
        return _block(rows, block, state, label[block], pool, each, heat, numbers[i])

    with Workers(min(os.cpu_count() or 1, len(blocks))) as threads:
        found = list(threads.map(one, range(len(blocks))))
    out, shift = np.empty_like(label), 0
    for block, (here, _) in zip(blocks, found, strict=True):
        out[block] = here + shift
        shift += int(here.max()) + 1
    return np.unique(out, return_inverse=True)[1].reshape(-1), sum(done for _, done in found)


def _block(
    rows: Rows,
    block: np.ndarray,
    state: np.ndarray,
    label: np.ndarray,
    pool: Candidates,
    steps: int,
    heat: float,
    seed: np.uint64,
) -> tuple[np.ndarray, int]:
    """The class of every row of a block after some steps, and how many were done."""
    from shoal.kernels.tables.open_close import open_close as kernel
    from shoal.kernels.uncompiled import quick

    cells, first, cell = np.unique(rows.cell[block], return_index=True, return_inverse=True)
    leaf = np.ascontiguousarray(rows.leaf[cells])
    first, cell = np.append(first, block.size).astype(np.int64), cell.reshape(-1).astype(np.int64)
    names, of = np.unique(label, return_inverse=True)
    of, room = of.reshape(-1).astype(np.int64), block.size // rows.k + 2
    tuples = np.zeros((room, leaf.shape[1]), np.int64)
    tuples[: names.size] = state[names]
    tried, seat = pool.among(cells)
    words, nodes, listed, done = -(-cells.size // 64), rows.slots.parent.size, LISTED, 0
    while done < steps:
        bits, cover = np.zeros((nodes, words), np.uint64), np.empty((cells.size, listed), np.int32)
        run = quick(kernel, float(steps - done) * (words * leaf.shape[1] + 5 * rows.k))
        _, more, _ = run(
            rows.slots, leaf, first, cell, bits, rows.k, of, tuples, cover, tried, seat, steps - done,
            seed + np.uint64(done), heat,
        )  # fmt: skip
        done, listed = done + more, 4 * listed
    return of, done
