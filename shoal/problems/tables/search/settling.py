"""Rows settled among the published tuples there are, under t-closeness (equal distance).

Groups that publish the same tuple count as one class, and only of classes is it asked that they are within t: of many
rows together a few may deviate where of ten none may.  The tolls of the class program say how many rows each class
wants if rows could be split; classes that want few are closed, for whole rows miss the table's shares in every class
by about as much.  Then rows move between the classes that cover them, by the rule of Metropolis, where rows
beyond t are dear and grow ever dearer.  What a class has beyond t in the end is placed row by row.  The classes are
cut into groups, which search then makes narrower, and what these publish are the classes of the next round.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.tolls import Arcs
from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task, nothing
from shoal.problems.interrupts import Workers, flag
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.certified import Told
from shoal.problems.tables.search.class_program import FIRST_STEP, TEMPER, UNIT, Program, Tolls, raised
from shoal.problems.tables.search.near_graph import deal, neighbor_graph
from shoal.problems.tables.search.neighborhood import looks, search, steps_of
from shoal.problems.tables.search.row_groups import Rows

if TYPE_CHECKING:
    from shoal.kernels.tables.settling import Classes

BLOCK = 40_000  # rows settled together
ARCS = 12_000_000  # pairs of cell and class in a block, at most
LOOKS = 2_000_000_000  # pairs of cell and class looked at, at most
PASSES = 200  # of the tolls, at first and after each closing
WALKS = 4e8  # arcs looked at in these passes, at most
CLOSE = np.arange(1, 11) / 10  # parts of the least rows that a class must want, one after another
WANTED = 2.0  # the least rows that a class must want, by the least size of a group
CLOSING = 0.1  # first step of the tolls after a closing
NEAR = 0.3  # arcs this far above a cell's cheapest are left out, by the dearest class
HEAT = (0.004, 0.0006)  # first and last, by the dearest class
PRICE = (1.25, 7.5)  # first and last of a row beyond t, by the dearest class
LAST = 1e5  # price of the last sweeps
TURNS = 12  # steps of heat and price, and after them a third as many of the last
SWEEPS = 300.0  # moves for each row
ROUNDS = {"balanced": 3, "thorough": 12}
PACE = 1e-4  # seconds that a round takes for a row, at most
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

    sweeps  moves tried for each row in all; hot: how hot, and how many rows a class must want, by the usual; turn seeds
            the random numbers
    O(cells classes t + n sweeps values).
    """
    rule = close_rule(task)
    assert rule is not None
    n = group.size
    blocks = deal(rows, group, max(1, round(n / BLOCK)), [task.seed, turn, 13])
    numbers = np.random.SeedSequence([task.seed, turn, 17]).generate_state(len(blocks), np.uint64)
    stop, quiet = flag(), replace(task, progress=nothing)

    def one(i: int) -> np.ndarray | None:
        return None if stop.is_set() else _block(quiet, rows, blocks[i], group[blocks[i]], (sweeps, hot), numbers[i])

    with Workers(min(os.cpu_count() or 1, len(blocks))) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = group.copy(), int(group.max(initial=-1)) + 1
    for block, label in zip(blocks, found, strict=True):
        if label is not None:
            out[block] = np.where(label < 0, -1, label + shift)
            shift += int(label.max(initial=-1)) + 1
    good = rows.eligible(out, shift)
    return rows.place(rows.cut(np.where((out >= 0) & good[out], out, -1)))


def _block(
    task: Task, rows: Rows, block: np.ndarray, group: np.ndarray, pace: tuple[float, float], seed: np.uint64
) -> np.ndarray | None:
    """Class of every row of a block after settling, -1 for rows beyond t; None where there are too many pairs of cell
    and class.

    pace  sweeps and how hot, as in ``settled``
    """
    program, at = program_of(task, rows, block, group)
    if program is None:
        return None
    tolls, at = without_closed(task, program, at, pace[1] * WANTED * rows.k)
    classes, at = near_classes(task, tolls, at, rows.k)
    cell = np.repeat(np.arange(program.arcs.count.size), program.arcs.count)
    return _cooled(classes, cell, at, pace, seed)


def program_of(task: Task, rows: Rows, block: np.ndarray, group: np.ndarray) -> tuple[Program | None, np.ndarray]:
    """Classes of what the groups of a block publish, the last of which covers all, and the arc each row is on."""
    from shoal.kernels.tables.settling import covering
    from shoal.kernels.tables.slots import prices

    rule = close_rule(task)
    assert rule is not None
    share, t = rule
    names, label = np.unique(group, return_inverse=True)
    state, of = np.unique(_states(rows, block, label.reshape(-1), names.size), axis=0, return_inverse=True)
    state = np.concatenate([state, rows.states(np.zeros(rows.cell.size, np.int64))])
    cells, count = np.unique(rows.cell[block], return_counts=True)
    leaf, v = np.ascontiguousarray(rows.leaf[cells]), state.shape[0]
    start, none = np.empty(cells.size + 1, np.int64), np.zeros(0, np.int32)
    if cells.size * v > LOOKS:
        return None, none
    arcs = covering(rows.slots, state, leaf, start, none)
    if arcs > ARCS:
        return None, none
    tuples = np.empty(arcs, np.int32)
    covering(rows.slots, state, leaf, start, tuples)
    value, all_rows = rows.sensitive[cells, 0].astype(np.int64), task.histogram.rows
    pairs, pair = np.unique(tuples * np.int64(share.size) + np.repeat(value, np.diff(start)), return_inverse=True)
    owner, loss = pairs // share.size, prices(rows.slots, state)
    dearest = float(loss[loss < FORBIDDEN].max(initial=0.0)) or 1.0
    weight, top = np.rint(share * all_rows).astype(np.int64), int(np.ceil(t * all_rows))
    size = np.bincount(tuples, weights=np.repeat(count, np.diff(start)), minlength=v)
    most = min(2**60 // (2 * all_rows * (all_rows + top)), 2**40)
    made = Arcs(start, pair.reshape(-1).astype(np.int32), count, owner, np.searchsorted(owner, np.arange(v + 1)),
                np.floor(np.minimum(loss, 8 * dearest) * UNIT).astype(np.int64), size**TEMPER, all_rows,
                weight[pairs % share.size], top, most)  # fmt: skip
    place = np.repeat(np.arange(cells.size), np.diff(start)) * np.int64(v) + tuples
    cell = np.repeat(np.arange(cells.size), count)
    return Program(made, loss, False), np.searchsorted(place, cell * v + of.reshape(-1)[label.reshape(-1)])


def without_closed(task: Task, program: Program, at: np.ndarray, wanted: float) -> tuple[Tolls, np.ndarray]:
    """Tolls after classes that want fewer rows were closed, and the arc of every row in their program.

    Rows of a closed class go where they pay least.  Classes are closed step by step, each followed by some passes for
    the others, so that rows find them and they come to want more.
    """
    p, v = program.owner.size, program.loss.size
    passes = int(np.clip(WALKS / (program.arcs.pair.size + p), 1, PASSES))
    tolls = Tolls(program, np.zeros(p, np.int64), 0, np.zeros(v))
    tolls = raised(task, tolls, passes, None, FIRST_STEP)
    open_now = np.arange(v)
    for part in CLOSE:
        keep = tolls.share >= part * wanted
        keep[-1] = True  # that of all rows: everyone finds room at the top
        small, pairs = tolls.program.only(keep)
        tolls = Tolls(small, tolls.toll[pairs], 0, tolls.share[keep])
        tolls, open_now = raised(task, tolls, passes, None, CLOSING), open_now[keep]
    small, cell = tolls.program, program.cell
    place = small.cell * np.int64(v) + open_now[small.owner[small.arcs.pair]]
    mine = cell[at] * np.int64(v) + program.owner[program.arcs.pair[at]]
    found = np.minimum(np.searchsorted(place, mine), place.size - 1)
    return tolls, np.where(place[found] == mine, found, cheapest_classes(tolls)[0][cell[at]])


def cheapest_classes(tolls: Tolls) -> tuple[np.ndarray, np.ndarray]:
    """The arc on which the rows of each cell pay least, int64[m], and by how much each arc is above it, int64[a]."""
    program = tolls.program
    paid = program.reduced(tolls.toll)[program.arcs.pair]
    above = paid - np.minimum.reduceat(paid, program.arcs.start[:-1])[program.cell]
    least = np.flatnonzero(above == 0)
    return least[np.searchsorted(least, program.arcs.start[:-1])], above


def near_classes(task: Task, tolls: Tolls, at: np.ndarray, k: int) -> tuple[Classes, np.ndarray]:
    """What the kernel is told, without arcs far from a cell's cheapest; and the arc of every row among these."""
    from shoal.kernels.tables.settling import Classes

    rule = close_rule(task)
    assert rule is not None
    program, arcs = tolls.program, tolls.program.arcs
    dearest = float(program.loss[program.loss < FORBIDDEN].max(initial=0.0)) or 1.0
    keep = cheapest_classes(tolls)[1] <= NEAR * dearest * UNIT
    keep[at] = True
    pair, cell, v = arcs.pair[keep], program.cell[keep], program.loss.size
    into = program.owner[pair]
    order = np.argsort(into, kind="stable")
    classes = Classes(
        start=np.concatenate([[0], np.cumsum(keep)])[arcs.start],
        pair=pair,
        row=np.concatenate([[0], np.cumsum(arcs.count)]),
        come=np.searchsorted(into[order], np.arange(v + 1)),
        arc=order,
        cell=cell[order],
        owner=program.owner,
        first=arcs.first,
        share=arcs.weight / task.histogram.rows,
        loss=program.loss,
        t=rule[1],
        k=k,
    )
    return classes, (np.cumsum(keep) - 1)[at]


def _cooled(
    classes: Classes, cell: np.ndarray, at: np.ndarray, pace: tuple[float, float], seed: np.uint64
) -> np.ndarray:
    """Class of every row after cooling from the arcs given, -1 for rows beyond t."""
    from shoal.kernels.tables.settling import settle

    held = np.bincount(classes.pair[at], minlength=classes.owner.size).astype(np.int64)
    size = np.bincount(classes.owner, weights=held, minlength=classes.loss.size).astype(np.int64)
    random = np.array([seed | np.uint64(1)], np.uint64)
    dearest = float(classes.loss[classes.loss < FORBIDDEN].max(initial=0.0)) or 1.0
    moves = max(1, int(cell.size * pace[0] / (TURNS * 4 / 3)))
    for i in range(TURNS + TURNS // 3):
        part = min(i / (TURNS - 1), 1.0)
        heat = pace[1] * HEAT[0] * (HEAT[1] / HEAT[0]) ** part if i < TURNS else 0.0
        price = PRICE[0] * (PRICE[1] / PRICE[0]) ** part if i < TURNS else LAST
        settle(classes, cell, at, held, size, heat * dearest, price * dearest, moves, random)
    pair = classes.pair[at].astype(np.int64)
    kept = trimmed(classes, held)
    order = np.argsort(pair, kind="stable")
    rank = np.arange(order.size) - (np.cumsum(held) - held)[pair[order]]
    out = np.empty(order.size, np.int64)
    out[order] = np.where(rank < kept[pair[order]], classes.owner[pair[order]], -1)
    return out


def trimmed(classes: Classes, held: np.ndarray) -> np.ndarray:
    """Rows of each pair that stay, int64[p]: classes beyond t give up, one by one, rows of the value most above its
    share."""
    kept, first = held.copy(), classes.first[:-1]
    while True:
        size = np.add.reduceat(kept, first)
        over = kept - classes.share * size[classes.owner]
        beyond = np.add.reduceat(np.maximum(over, 0.0), first) > classes.t * size + 1e-9
        if not beyond.any():
            return kept
        top = np.flatnonzero((over == np.maximum.reduceat(over, first)[classes.owner]) & beyond[classes.owner])
        kept[top[np.unique(classes.owner[top], return_index=True)[1]]] -= 1


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
    rounds, heat, spent, wait = ROUNDS.get(task.effort.name, 1), 1.0, PACE * group.size, 0.0
    while told.rounds < rounds if deadline is None else clock() < deadline:
        began = clock()
        if deadline is None or began + spent < deadline:
            task.progress("settling", None if deadline else told.rounds / rounds)
            made = weighed(settled(task, rows, best[1], told.rounds, SWEEPS, heat))
            spent = 1.2 * (clock() - began)
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
            group, searched = search(other, rows, best[1], deadline=min(deadline, clock() + wait), near=near)
        best = min(best, weighed(group), key=lambda pair: pair[0])
        told.steps, told.rounds = told.steps + searched.steps, told.rounds + 1
    return best[1], told
