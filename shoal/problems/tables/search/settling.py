"""Rows settled among published tuples, under t-closeness (equal distance).

Groups that publish the same tuple count as one class, and only of classes is it asked that they are within t: of many
rows together a few may deviate where of ten none may.  The class program (``close_classes``) says which tuples to
publish and where each row would go if rows could be split.  Then rows move between the classes that cover them, by the
rule of Metropolis, where rows beyond t are dear and grow ever dearer.  What a class has beyond t in the end is placed
row by row.  The classes are cut into groups, which search then makes narrower.  The first rounds settle anew; those
after one in vain begin where the rows are, among the tuples that the groups publish.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task, nothing
from shoal.problems.cores import threads
from shoal.problems.interrupts import Workers, flag
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.certified import Told
from shoal.problems.tables.search.class_program import UNIT
from shoal.problems.tables.search.close_classes import SPARE, Close, Limit, priced_in, without_small
from shoal.problems.tables.search.near_graph import deal, neighbor_graph
from shoal.problems.tables.search.neighborhood import looks, search, steps_of
from shoal.problems.tables.search.row_groups import Rows

if TYPE_CHECKING:
    from shoal.kernels.tables.settling import Classes

BLOCK = 40_000  # rows settled together
ROUNDS = {"balanced": 3, "thorough": 12}
HASTE = 0.6  # of the seconds of a round, with which one that settles anew can be begun, in fewer moves
LONG = 12  # times that tuples are priced in where there are seconds for it
PRICING, COOLING = 0.6, 0.85  # parts of the seconds left after which no more tuples are priced in, no row moves
TRIES = 2  # coolings of a single block, of which the better is kept: one would leave all cores but one idle
SHARE = 0.1  # seconds of search per second of settling, as long as settling helps; then as many


class Stage(NamedTuple):
    """Moves under a heat and a price of rows beyond t that change step by step, both by the dearest class.

    near   how far above a cell's cheapest arcs are looked at, by the dearest class
    moves  share of all moves
    heat, price  first and last;  turns  steps between them
    spare  rows by which classes keep below t, which lets later moves exchange values
    """

    near: float
    moves: float
    heat: tuple[float, float]
    price: tuple[float, float]
    spare: float
    turns: int


class Plan(NamedTuple):
    """How a round is settled.

    priced  times that tuples are priced in
    missed  rows by which whole ones are thought to miss the shares of a class
    wanted  the least rows that a class must want, by the least size of a group
    stay    whether rows begin where they are, or where tolls are least
    sweeps  moves tried for each row in all;  pace  seconds that this takes for a row, about
    hot     heat by that of the stages, and rows that classes must want by those wanted
    """

    priced: int
    missed: float
    wanted: float
    stay: bool
    sweeps: float
    pace: float
    stages: tuple[Stage, ...]
    hot: float = 1.0


ANEW = Plan(4, SPARE, 1.4, False, 1300.0, 5e-4, (
    Stage(0.015, 4, (0.01, 0.001), (0.6, 5.0), 0.2, 8),
    Stage(0.08, 7, (0.002, 0.0005), (5.0, 40.0), 0.2, 8),
    Stage(1.0, 2, (0.002, 0.0003), (40.0, 1e5), 0.0, 12),
))  # fmt: skip
AGAIN = Plan(0, 0.0, 2.0, True, 300.0, 1.2e-4, (
    Stage(0.3, 3, (0.004, 0.0006), (1.25, 7.5), 0.0, 12),
    Stage(0.3, 1, (1e-6, 1e-6), (1e5, 1e5), 0.0, 1),
), 0.25)  # fmt: skip


def close_rule(task: Task) -> Limit | None:
    """Shares in the table and t, where t-closeness of the one sensitive column is asked with equal distance."""
    if len(task.requirement.sensitive_columns) != 1:
        return None
    asked = [rule.measure for rule in task.requirement.rules if rule.measure.kind == "equal"]
    if not asked:
        return None
    nearest = min(asked, key=lambda measure: measure.number)
    return Limit(np.array(nearest.table), nearest.number)


class Until(NamedTuple):
    """Clock readings after which no more tuples are priced in, and after which no more rows move; None: never."""

    priced: float | None = None
    cooled: float | None = None


def settled(task: Task, rows: Rows, group: np.ndarray, turn: int, plan: Plan, until: Until = Until()) -> np.ndarray:
    """A group for every row after one round of settling, int64[n]; it may be dearer than the one given.

    turn   seeds the random numbers
    O(cells classes t + n sweeps values).
    """
    limit = close_rule(task)
    assert limit is not None
    n, limit = group.size, replace(limit, spare=plan.missed)
    blocks = deal(rows, group, max(1, round(n / BLOCK)), [task.seed, turn, 13])
    tries = TRIES if len(blocks) == 1 else 1
    numbers = np.random.SeedSequence([task.seed, turn, 17]).generate_state(tries * len(blocks), np.uint64)
    stop, quiet, state = flag(), replace(task, progress=nothing), rows.states(group)

    def one(i: int) -> np.ndarray | None:
        if stop.is_set():
            return None
        block, held = blocks[i], group[blocks[i]]
        seed, open_now = [task.seed, turn, i], state[np.unique(held)]
        close = priced_in(quiet, rows, block, open_now, limit, plan.priced, seed, until.priced)
        if close is None:
            return None
        close = without_small(quiet, close, plan.hot * plan.wanted * rows.k, limit)
        count = close.program.arcs.count
        at = close.cheapest()[0][np.repeat(np.arange(count.size), count)]
        if plan.stay:
            at = close.arcs_of(state[held], at)
        with threads(tries) as each:
            made = each(lambda x: _cooled(close, limit, rows.k, at, plan, x, until.cooled), numbers[i :: len(blocks)])
        return min(made, key=lambda label: np.where(label < 0, close.dearest, close.program.loss[label]).sum())

    with Workers(min(os.cpu_count() or 1, len(blocks))) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = group.copy(), int(group.max(initial=-1)) + 1
    for block, label in zip(blocks, found, strict=True):
        if label is not None:
            out[block] = np.where(label < 0, -1, label + shift)
            shift += int(label.max(initial=-1)) + 1
    good = rows.eligible(out, shift)
    return rows.place(rows.cut(np.where((out >= 0) & good[out], out, -1)))


def near_classes(
    close: Close, limit: Limit, k: int, near: float, spare: float, at: np.ndarray
) -> tuple[Classes, np.ndarray]:
    """What the kernel is told of arcs not far from a cell's cheapest or in at, and the arcs, int64[..].

    near  how far, by the dearest class;  spare  rows by which classes keep below t;  at int64[n] the arc of every row
    """
    from shoal.kernels.tables.settling import Classes

    program, arcs = close.program, close.program.arcs
    keep = close.cheapest()[1] <= near * close.dearest * UNIT
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
        share=limit.share[close.value],
        loss=program.loss,
        t=limit.t,
        spare=spare,
        k=k,
    )
    return classes, np.flatnonzero(keep)


def _cooled(
    close: Close, limit: Limit, k: int, at: np.ndarray, plan: Plan, seed: np.uint64, until: float | None = None
) -> np.ndarray:
    """Class of every row after cooling from the arcs int64[n], -1 for rows beyond t.

    until  clock reading by which rows have moved; where that is soon they make fewer moves under each heat
    """
    from shoal.kernels.tables.settling import settle

    v, dearest, random = close.program.loss.size, close.dearest, np.array([seed | np.uint64(1)], np.uint64)
    cell = close.program.cell[at]
    whole = sum(stage.moves for stage in plan.stages)
    all_moves, tried, planned, began, pace = cell.size * plan.sweeps, 0, 0.0, clock(), 1.0
    for stage in plan.stages:
        classes, kept = near_classes(close, limit, k, stage.near, stage.spare, at)
        here = np.searchsorted(kept, at)
        held = np.bincount(classes.pair[here], minlength=classes.owner.size).astype(np.int64)
        size = np.bincount(classes.owner, weights=held, minlength=v).astype(np.int64)
        each = all_moves * stage.moves / (whole * stage.turns)
        heats, prices = np.geomspace(*stage.heat, stage.turns), np.geomspace(*stage.price, stage.turns)
        for heat, price in zip(plan.hot * heats, prices, strict=True):
            moves = max(1, int(each * pace))
            settle(classes, cell, here, held, size, heat * dearest, price * dearest, moves, random)
            tried, planned = tried + moves, planned + each
            if until is not None:  # as fast as they went so far
                now = clock()
                pace = max(until - now, 0.0) * tried / max((now - began) * (all_moves - planned), 1e-9)
                pace = min(pace, 1.0)
        at = kept[here]
    pair, stay = classes.pair[here].astype(np.int64), trimmed(classes, held)
    order = np.argsort(pair, kind="stable")
    rank = np.arange(order.size) - (np.cumsum(held) - held)[pair[order]]
    out = np.empty(order.size, np.int64)
    out[order] = np.where(rank < stay[pair[order]], classes.owner[pair[order]], -1)
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
    rounds, plan, wait = ROUNDS.get(task.effort.name, 1), ANEW, 0.0
    if deadline is not None and deadline - clock() <= HASTE * plan.pace * group.size:
        plan = AGAIN._replace(hot=1.0)
    spent = plan.pace * group.size
    while told.rounds < rounds if deadline is None else clock() < deadline:
        began = clock()
        left = np.inf if deadline is None else deadline - began
        if plan is ANEW and told.rounds and left <= spent:  # the next would end after the deadline
            plan, spent = AGAIN, AGAIN.pace * group.size
        if left > (spent if plan.stay else HASTE * spent):
            task.progress("settling", None if deadline else told.rounds / rounds)
            until, now = Until(), plan._replace(sweeps=min(left / spent, 1.0) * plan.sweeps)
            if deadline is not None:
                until = Until(began + PRICING * left, began + COOLING * left)
                now = now._replace(priced=LONG if plan.priced else 0)
            made = weighed(settled(task, rows, best[1], told.rounds, now, until))
            spent = 1.2 * (clock() - began)
            gained = made[0] < best[0]
            wait = SHARE * spent if gained else spent
            if plan is ANEW:  # other tuples are drawn, for as long as these are better; for a short effort once
                plan = ANEW if gained and task.effort.name != "balanced" else AGAIN
            elif not gained:  # what is near the best that can be had, heat leads away from
                plan = plan._replace(hot=plan.hot / 2)
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
