"""Rows settled among the published tuples there are, under t-closeness (equal distance).

Groups that publish the same tuple count as one class, and only of classes is it asked that they are within t: of many
rows together a few may deviate where of ten none may.  Single rows move between the classes that cover them, by the
rule of Metropolis, where rows beyond t are dear and grow ever dearer.  Classes that are not within t in the end are
given up, and their rows placed one by one.  The others are cut into groups, which search then makes narrower, and
what these publish are the classes of the next round.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task
from shoal.problems.interrupts import flag
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.certified import Told
from shoal.problems.tables.search.near_graph import deal, neighbor_graph
from shoal.problems.tables.search.neighborhood import looks, search, steps_of
from shoal.problems.tables.search.row_groups import Rows

BLOCK = 40_000  # rows settled together
ARCS = 12_000_000  # pairs of cell and class in a block, at most
LOOKS = 2_000_000_000  # pairs of cell and class looked at, at most
HEAT = (0.006, 0.0006)  # first and last, by the dearest class
PRICE = (1.25, 7.5)  # first and last of a row beyond t, by the dearest class
LAST = 1e5  # price of the last sweeps
TURNS = 12  # steps of heat and price, and after them a third as many of the last
SWEEPS = 300.0  # moves for each row
ROUNDS = {"balanced": 3, "thorough": 12}
SHARE = 0.1  # seconds of search per second of settling, as long as settling helps; then as many


def close_rule(task: Task) -> tuple[np.ndarray, float] | None:
    """Shares in the table and t, where t-closeness of the one sensitive column is asked with equal distance."""
    if len(task.requirement.sensitive_columns) != 1:
        return None
    asked = [rule.measure for rule in task.requirement.rules if rule.measure.kind == "equal"]
    if not asked:
        return None
    nearest = min(asked, key=lambda measure: measure.number)
    return np.array(nearest.table), nearest.number


def settled(task: Task, rows: Rows, group: np.ndarray, turn: int, sweeps: float, hot: float = 1.0) -> np.ndarray:
    """A group for every row after one round of settling, int64[n]; it may be dearer than the one given.

    sweeps  moves tried for each row in all; hot: how hot, by the usual; turn seeds the random numbers
    O(cells classes t + n sweeps values).
    """
    rule = close_rule(task)
    assert rule is not None
    n = group.size
    blocks = deal(rows, group, max(1, round(n / BLOCK)), [task.seed, turn, 13])
    numbers = np.random.SeedSequence([task.seed, turn, 17]).generate_state(len(blocks), np.uint64)
    stop = flag()

    def one(i: int) -> np.ndarray | None:
        return None if stop.is_set() else _block(rows, blocks[i], group[blocks[i]], rule, (sweeps, hot), numbers[i])

    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(blocks))) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = group.copy(), int(group.max(initial=-1)) + 1
    for block, label in zip(blocks, found, strict=True):
        if label is not None:
            out[block] = label + shift
            shift += int(label.max()) + 1
    out = np.unique(out, return_inverse=True)[1].reshape(-1)
    good = rows.eligible(out, int(out.max(initial=-1)) + 1)
    return rows.place(rows.cut(np.where(good[out], out, -1)))


def _block(
    rows: Rows,
    block: np.ndarray,
    group: np.ndarray,
    rule: tuple[np.ndarray, float],
    pace: tuple[float, float],
    seed: np.uint64,
) -> np.ndarray | None:
    """Class of every row of a block after settling; None where there are too many pairs of cell and class.

    pace  sweeps and how hot, as in ``settled``
    """
    from shoal.kernels.tables.settling import Classes, covering, settle
    from shoal.kernels.tables.slots import prices

    share, t = rule
    names, label = np.unique(group, return_inverse=True)
    label = label.reshape(-1)
    state, of = np.unique(_states(rows, block, label, names.size), axis=0, return_inverse=True)
    cells, cell = np.unique(rows.cell[block], return_inverse=True)
    leaf, v = np.ascontiguousarray(rows.leaf[cells]), state.shape[0]
    if cells.size * v > LOOKS:
        return None
    start, none = np.empty(cells.size + 1, np.int64), np.zeros(0, np.int32)
    arcs = covering(rows.slots, state, leaf, start, none)
    if arcs > ARCS:
        return None
    tuples = np.empty(arcs, np.int32)
    covering(rows.slots, state, leaf, start, tuples)
    value = rows.sensitive[cells, 0].astype(np.int64)
    key = tuples * np.int64(share.size) + np.repeat(value, np.diff(start))
    pairs, pair = np.unique(key, return_inverse=True)
    owner = pairs // share.size
    classes = Classes(start, pair.reshape(-1).astype(np.int32), owner, np.searchsorted(owner, np.arange(v + 1)),
                      share[pairs % share.size], prices(rows.slots, state), t, rows.k)  # fmt: skip
    cell = cell.reshape(-1).astype(np.int64)
    place = np.repeat(np.arange(cells.size), np.diff(start)) * np.int64(v) + tuples
    at = np.searchsorted(place, cell * np.int64(v) + of.reshape(-1)[label])
    held = np.bincount(classes.pair[at], minlength=owner.size).astype(np.int64)
    size = np.bincount(owner, weights=held, minlength=v).astype(np.int64)
    random = np.array([seed | np.uint64(1)], np.uint64)
    dearest = float(classes.loss[classes.loss < FORBIDDEN].max(initial=0.0)) or 1.0
    moves = max(1, int(block.size * pace[0] / (TURNS * 4 / 3)))
    for i in range(TURNS + TURNS // 3):
        part = min(i / (TURNS - 1), 1.0)
        heat = pace[1] * HEAT[0] * (HEAT[1] / HEAT[0]) ** part if i < TURNS else 0.0
        price = PRICE[0] * (PRICE[1] / PRICE[0]) ** part if i < TURNS else LAST
        settle(classes, cell, at, held, size, heat * dearest, price * dearest, moves, random)
    return np.asarray(owner[classes.pair[at]])


def _states(rows: Rows, block: np.ndarray, label: np.ndarray, groups: int) -> np.ndarray:
    """What the groups of a block publish, int64[g, t]; labels 0 .. g - 1."""
    apart = np.full(rows.cell.size, groups)  # the other rows share a label, which is left out
    apart[block] = label
    return rows.states(apart)[:groups]


def approach(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    deadline: float | None = None,
    steps: int | None = None,
    near: np.ndarray | None = None,
) -> tuple[np.ndarray, Told]:
    """Settle, search, and again; the cheapest grouping met, as ``search`` returns it.

    Counted in steps the rounds are always the same; against the clock searching gets a tenth of the time, more where
    settling no longer helps.
    """
    told = Told(stopped="steps" if deadline is None else "seconds")
    if steps is None:
        steps = steps_of(task)
    if not group.size or (deadline is None and not steps):
        return group, told

    def weighed(labels: np.ndarray) -> tuple[tuple[int, float], np.ndarray]:
        return rank(task, rows.partition(labels)), labels

    best = weighed(group)
    rounds, heat, spent, wait = ROUNDS.get(task.effort.name, 1), 1.0, 0.0, 0.0
    while told.rounds < rounds if deadline is None else time.monotonic() < deadline:
        began = time.monotonic()
        if deadline is None or began + spent < deadline:
            task.progress("settling", None if deadline else told.rounds / rounds)
            made = weighed(settled(task, rows, best[1], told.rounds, SWEEPS, heat))
            spent = 1.2 * (time.monotonic() - began)
            gained = made[0] < best[0]
            wait = SHARE * spent if gained else spent
            if not gained:  # what is near the best that can be had, heat leads away from
                heat /= 2
            best = min(best, made, key=lambda pair: pair[0])
        else:
            wait = np.inf
        if near is None:
            near = neighbor_graph(rows, task.seed, SHARE * looks(rows, deadline, steps))
        other = replace(task, seed=task.seed + told.rounds)
        if deadline is None:
            group, searched = search(other, rows, best[1], steps=-(-steps // rounds), near=near)
        else:
            group, searched = search(other, rows, best[1], deadline=min(deadline, time.monotonic() + wait), near=near)
        best = min(best, weighed(group), key=lambda pair: pair[0])
        told.steps, told.rounds = told.steps + searched.steps, told.rounds + 1
    return best[1], told
