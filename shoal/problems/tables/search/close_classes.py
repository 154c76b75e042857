"""Simulated annealing of rows among published tuples, under t-closeness (equal distance).

Groups that publish the same tuple count as one class, and only of classes is it asked that they are within t: of many
rows together a few may deviate where of ten none may.  The class program (``close_program``) says which tuples to
publish and where each row would go if rows could be split.  Then rows move between the classes that cover them, by the
rule of Metropolis, where rows beyond t are dear and grow ever dearer.  What a class has beyond t in the end is placed
row by row.  The classes are cut into groups, which search then makes narrower.  The first rounds begin at the cheapest
arcs.  After one in vain, two kinds of rounds take turns: all classes from where the rows are, among the tuples that the
groups publish; and a few near classes at a time by themselves, sometimes with a tuple widened or added, kept if they
lose no more.  The first pays where t is loose and classes are small, the second where t is strict.
"""

from __future__ import annotations

import os
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task, nothing
from shoal.problems.tables.bounds.certify import SearchReport
from shoal.problems.tables.bounds.class_program import UNIT
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.close_program import SPARE, Close, Limit, close_rule, priced_in, without_small
from shoal.problems.tables.search.neighborhood import deal, looks, neighbor_graph, search, steps_of
from shoal.problems.threads import SearchThreads, flag, threads

if TYPE_CHECKING:
    from shoal.kernels.tables.close_classes import ClassesAsked, OpenClasses, Published


BLOCK = 40_000  # rows annealed together
ROUNDS = {"balanced": 3, "thorough": 12}
HASTE = 0.6  # of the seconds of a round, with which one from a new start can be begun, in fewer moves
LONG = 12  # times that tuples are priced in where there are seconds for it
PRICING, COOLING = 0.6, 0.85  # parts of the seconds left after which no more tuples are priced in, no row moves
TRIES = 2  # coolings of a single block, of which the better is kept: one would leave all cores but one idle
SHARE = 0.1  # seconds of search per second of annealing, as long as annealing helps; then as many


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


class RoundPlan(NamedTuple):
    """How a round of annealing goes.

    priced  times that tuples are priced in
    missed  rows by which whole ones are thought to miss the shares of a class
    wanted  the least rows that a class must want, by the least size of a group
    stay    whether rows begin where they are, or where multipliers are least
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


ANEW = RoundPlan(4, SPARE, 1.4, False, 1300.0, 5e-4, (
    Stage(0.015, 4, (0.01, 0.001), (0.6, 5.0), 0.2, 8),
    Stage(0.08, 7, (0.002, 0.0005), (5.0, 40.0), 0.2, 8),
    Stage(1.0, 2, (0.002, 0.0003), (40.0, 1e5), 0.0, 12),
))  # fmt: skip
AGAIN = RoundPlan(0, 0.0, 2.0, True, 300.0, 1.2e-4, (
    Stage(0.3, 3, (0.004, 0.0006), (1.25, 7.5), 0.0, 12),
    Stage(0.3, 1, (1e-6, 1e-6), (1e5, 1e5), 0.0, 1),
), 0.25)  # fmt: skip
NEAR_BLOCK = 4000  # rows whose classes are rearranged by one core in turn
DEALS = 4  # of classes to blocks in a round
MOVES = 5000.0  # tried for each row in a round, about
PACE = 1e-4  # seconds of a round for each row
AT_ONCE = 200_000  # moves between two looks at the clock
TAKEN = (300, 6)  # rows of a region at least, or those of so many classes
SPARE_NAMES = 32  # classes that may be open beside those of a block


class Until(NamedTuple):
    """Clock readings after which no more tuples are priced in, and after which no more rows move; None: never."""

    priced: float | None = None
    cooled: float | None = None


def annealed(
    task: Task, rows: Rows, group: np.ndarray, turn: int, plan: RoundPlan, until: Until = Until()
) -> np.ndarray:
    """A group for every row after one round of annealing, int64[n]; it may be dearer than the one given.

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

    with SearchThreads(min(os.cpu_count() or 1, len(blocks))) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = group.copy(), int(group.max(initial=-1)) + 1
    for block, label in zip(blocks, found, strict=True):
        if label is not None:
            out[block] = np.where(label < 0, -1, label + shift)
            shift += int(label.max(initial=-1)) + 1
    return cut_and_placed(rows, out)


def cut_and_placed(rows: Rows, label: np.ndarray) -> np.ndarray:
    """A group for every row, int64[n]: eligible classes cut into groups, the rows of others and those of none, -1,
    placed one by one."""
    good = rows.eligible(label, int(label.max(initial=-1)) + 1)
    return rows.place(rows.cut(np.where((label >= 0) & good[label], label, -1)))


def near_classes(
    close: Close, limit: Limit, k: int, near: float, spare: float, at: np.ndarray
) -> tuple[OpenClasses, np.ndarray]:
    """What the kernel is told of arcs not far from a cell's cheapest or in at, and the arcs, int64[..].

    near  how far, by the dearest class;  spare  rows by which classes keep below t;  at int64[n] the arc of every row
    """
    from shoal.kernels.tables.close_classes import OpenClasses

    program, arcs = close.program, close.program.arcs
    keep = close.cheapest()[1] <= near * close.dearest * UNIT
    keep[at] = True
    pair, cell, v = arcs.pair[keep], program.cell[keep], program.loss.size
    into = program.owner[pair]
    order = np.argsort(into, kind="stable")
    classes = OpenClasses(
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
    close: Close, limit: Limit, k: int, at: np.ndarray, plan: RoundPlan, seed: np.uint64, until: float | None = None
) -> np.ndarray:
    """Class of every row after cooling from the arcs int64[n], -1 for rows beyond t.

    until  clock reading by which rows have moved; where that is soon they make fewer moves under each heat
    """
    from shoal.kernels.tables.close_classes import RowsOnArcs, anneal

    v, dearest, random = close.program.loss.size, close.dearest, np.array([seed | np.uint64(1)], np.uint64)
    cell = close.program.cell[at]
    whole = sum(stage.moves for stage in plan.stages)
    all_moves, tried, planned, began, pace = cell.size * plan.sweeps, 0, 0.0, clock(), 1.0
    # A stage has its own near classes, heats, and prices of what is lacking, which rise while the heat falls.
    for stage in plan.stages:
        classes, kept = near_classes(close, limit, k, stage.near, stage.spare, at)
        here = np.searchsorted(kept, at)
        held = np.bincount(classes.pair[here], minlength=classes.owner.size).astype(np.int64)
        size = np.bincount(classes.owner, weights=held, minlength=v).astype(np.int64)
        placed, each = RowsOnArcs(cell, here, held, size), all_moves * stage.moves / (whole * stage.turns)
        heats, prices = np.geomspace(*stage.heat, stage.turns), np.geomspace(*stage.price, stage.turns)
        for heat, price in zip(heats, prices, strict=True):
            moves = max(1, int(each * pace))
            anneal(classes, placed, plan.hot * heat * dearest, price * dearest, moves, random)
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


def trimmed(classes: OpenClasses, held: np.ndarray) -> np.ndarray:
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


def rearranged(task: Task, rows: Rows, group: np.ndarray, turn: int, until: float | None = None) -> np.ndarray:
    """A group for every row after few near classes at a time were annealed by themselves, int64[n].

    turn   seeds the random numbers
    until  clock reading at which it ends; None: after ``MOVES`` for each row
    Where nothing but size and t is asked, classes lose no more than the groups given.
    """
    began = clock()
    for part in range(DEALS):
        end = None if until is None else began + (until - began) * (part + 1) / DEALS
        if end is None or clock() < end:
            group = _dealt_and_rearranged(task, rows, group, [task.seed, turn, part], end)
    return cut_and_placed(rows, group)


def _dealt_and_rearranged(
    task: Task, rows: Rows, group: np.ndarray, seed: list[int], until: float | None
) -> np.ndarray:
    """The class of every row, int64[n], after one deal of the classes to blocks that cores take in turn."""
    state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
    label = of.reshape(-1)[group]
    blocks = deal(rows, label, max(1, round(group.size / NEAR_BLOCK)), [*seed, 19])
    numbers = np.random.SeedSequence([*seed, 23]).generate_state(len(blocks), np.uint64)
    stop, cores = flag(), min(os.cpu_count() or 1, len(blocks))

    def one(i: int) -> np.ndarray:
        random, end, now = np.array([numbers[i] | np.uint64(1)], np.uint64), until, clock()
        if until is not None:  # the blocks that a core has still to take share what is left
            end = now + (until - now) / -(-(len(blocks) - i) // cores)
        return _rearranged(task, rows, blocks[i], label, state, random, end, stop)

    with SearchThreads(cores) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = np.empty_like(label), 0
    for block, name in zip(blocks, found, strict=True):
        out[block] = name + shift
        shift += int(name.max(initial=-1)) + 1
    return out


def _rearranged(
    task: Task, rows: Rows, block: np.ndarray, label: np.ndarray, state: np.ndarray, random: np.ndarray,
    until: float | None, stop: Event,
) -> np.ndarray:  # fmt: skip
    """The class of every row of a block, int64[b], from 0, every one used; at first it is that in label, int64[n],
    which publishes a line of state."""
    from shoal.kernels.tables.close_classes import rearrange

    asked, kept = classes_of(task, rows, block, label, state)
    most = max(TAKEN[0], TAKEN[1] * block.size // max(int((kept.size > 0).sum()), 1))
    moves = MOVES / DEALS * block.size if until is None else np.inf
    while moves > 0 and not stop.is_set() and (until is None or clock() < until):
        now = int(min(moves, AT_ONCE)) + 1
        rearrange(rows.slots, asked, kept, most, now, random)
        moves -= now
    found: np.ndarray = np.unique(kept.of, return_inverse=True)[1].reshape(-1)
    return found


def classes_of(
    task: Task, rows: Rows, block: np.ndarray, label: np.ndarray, state: np.ndarray
) -> tuple[ClassesAsked, Published]:
    """What the kernel is told of the rows of a block, int64[b], and of their classes, some of label, int64[n]."""
    from shoal.kernels.tables.close_classes import ClassesAsked, Published
    from shoal.kernels.tables.eligible import prices

    limit = close_rule(task)
    assert limit is not None
    name, of = np.unique(label[block], return_inverse=True)
    of, v = of.reshape(-1).astype(np.int64), name.size + SPARE_NAMES
    size, order = np.bincount(of, minlength=v), np.argsort(of, kind="stable")
    following, head = np.full(block.size, -1), np.full(v, -1)
    following[order[:-1]] = np.where(np.diff(of[order]) == 0, order[1:], -1)
    head[: name.size] = order[np.cumsum(size)[: name.size] - size[: name.size]]
    tuples = np.concatenate([state[name], np.repeat(state[:1], SPARE_NAMES, axis=0)])
    kept = Published(of, head, following, size, tuples, prices(rows.slots, tuples))
    cell, all_rows = rows.cell[block], task.histogram.rows
    leaf, value = np.ascontiguousarray(rows.leaf[cell]), rows.sensitive[cell, 0].astype(np.int64)
    weight = np.rint(limit.share * all_rows).astype(np.int64)
    dearest = float(prices(rows.slots, rows.states(np.zeros(rows.cell.size, np.int64)))[0]) or 1.0
    return ClassesAsked(leaf, value, weight, all_rows, limit.t * all_rows, rows.k, dearest), kept


NEXT = {"anew": "again", "again": "near", "near": "again"}  # the kind of round that follows each


class Turn(NamedTuple):
    """The next round, and what those before it took and saved.

    kind   "anew": all classes, among other tuples too; "again": all classes, from where rows are; "near": few near ones
    hot    heat of a round again, as in ``RoundPlan``
    spent  seconds that a round of each kind takes, about
    rates  loss that the last round of each kind saved in a second; inf before the first, and for "anew"
    """

    kind: str
    hot: float
    spent: dict[str, float]
    rates: dict[str, float]

    def within(self, left: float, first: bool) -> Turn:
        """This round, or a shorter one where the seconds left ask for it."""
        kind, hot = self.kind, self.hot
        if kind == "anew" and left <= (HASTE if first else 1.0) * self.spent[kind]:
            kind, hot = "again", 1.0 if first else hot
        if kind == "again" and left <= self.spent[kind]:
            kind = "near"
        return self._replace(kind=kind, hot=hot)

    def following(self, took: float, saved: float, once: bool, clocked: bool) -> Turn:
        """The next round, where this one took so many seconds and saved so much loss.

        once     tuples are drawn anew once; else for as long as that saves loss
        clocked  the kind that saves more in a second goes on; else kinds take turns
        """
        kind, hot, spent, rates = self
        if kind != "near":
            spent = spent | {kind: 1.2 * took}
        if kind != "anew":
            rates = rates | {kind: saved / max(took, 1e-9)}
        if kind == "again" and not saved:  # what is near the best that can be had, heat leads away from
            hot /= 2
        goes_on = saved > 0 and not once if kind == "anew" else clocked and rates[kind] > rates[NEXT[kind]]
        return Turn(kind if goes_on else NEXT[kind], hot, spent, rates)


def anneal_and_search(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    deadline: float | None = None,
    steps: int | None = None,
    near: np.ndarray | None = None,
) -> tuple[np.ndarray, SearchReport]:
    """Anneal, search, and again; the cheapest grouping met, as ``search`` returns it.

    Counted in steps the rounds are always the same.  Against the clock the kind of round that gains more in a second
    goes on, and searching gets a tenth of its time, or as much where the round gained nothing, or less than the search.
    """
    report = SearchReport(stopped="steps" if deadline is None else "seconds")
    if steps is None:
        steps = steps_of(task)
    if not group.size or (deadline is None and not steps):
        return group, report
    rounds, once, least = ROUNDS.get(task.effort.name, 1), task.effort.name == "balanced", _rank(task, rows, group)
    spent = {"anew": ANEW.pace * group.size, "again": AGAIN.pace * group.size, "near": PACE * group.size}
    turn, searched = Turn("anew", AGAIN.hot, spent, dict.fromkeys(NEXT, np.inf)), 0.0  # loss saved in a second

    def better(made: np.ndarray) -> float:
        """The loss that a grouping saves, which is kept if it does; inf where fewer rows are above a ceiling."""
        nonlocal group, least
        before, found = least, _rank(task, rows, made)
        if not found < before:
            return 0.0
        group, least = made, found
        return before[1] - found[1] if found[0] == before[0] else np.inf

    while report.rounds < rounds if deadline is None else clock() < deadline:
        began = clock()
        left = np.inf if deadline is None else deadline - began
        turn = turn.within(left, not report.rounds)
        task.progress("annealing", None if deadline else report.rounds / rounds)
        saved = better(_round(task, rows, group, report.rounds, turn, deadline))
        took, kind = clock() - began, turn.kind
        turn = turn.following(took, saved, once, deadline is not None)
        report.rounds += 1
        if near is None:
            near = neighbor_graph(rows, task.seed, SHARE * looks(rows, deadline, steps))
        other = replace(task, seed=task.seed + report.rounds - 1)
        if deadline is None:
            made, found = search(other, rows, group, steps=-(-steps // rounds), near=near)
        else:
            wait = SHARE * took if saved and turn.rates[kind] >= searched else took
            made, found = search(other, rows, group, deadline=min(deadline, clock() + wait), near=near)
        searched = better(made) / max(clock() - began - took, 1e-9)
        report.steps += found.steps
    return group, report


def _rank(task: Task, rows: Rows, group: np.ndarray) -> tuple[int, float]:
    """What to compare groupings by."""
    return rank(task, rows.partition(group))


def _round(task: Task, rows: Rows, group: np.ndarray, number: int, turn: Turn, deadline: float | None) -> np.ndarray:
    """A group for every row after a round, int64[n]."""
    began = clock()
    left = np.inf if deadline is None else deadline - began
    if turn.kind == "near":
        end = None if deadline is None else began + min(turn.spent["near"], COOLING * left)
        return rearranged(task, rows, group, number, end)
    plan, until = ANEW if turn.kind == "anew" else AGAIN._replace(hot=turn.hot), Until()
    plan = plan._replace(sweeps=min(left / turn.spent[turn.kind], 1.0) * plan.sweeps)
    if deadline is not None:
        plan = plan._replace(priced=LONG if plan.priced else 0)
        until = Until(began + PRICING * left, began + COOLING * left)
    return annealed(task, rows, group, number, plan, until)
