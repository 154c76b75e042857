"""Simulated annealing of rows among published tuples, under t-closeness with the equal distance (docs/search.md).

Groups that publish the same tuple are one class, and only the class must be within t: sixty rows together can deviate
where ten cannot. The class program (``close_program``) determines which tuples to publish, and where each row goes if
rows can be split. Then rows move between the classes that cover them, by the rule of Metropolis et al. (1953), with a
price for each row beyond t that rises from step to step. Rows that are beyond t at the end are placed one by one, and
the classes are cut into groups.

The first rounds start at the arcs of least reduced cost. After one without gain, two kinds of rounds alternate: all
classes, from where the rows are; and a few near classes at a time, sometimes with a tuple widened or added, which are
kept if they lose no more.
"""

from __future__ import annotations

import os
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task, nothing
from shoal.problems.tables.bounds import SearchReport
from shoal.problems.tables.bounds.class_program import UNIT
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.close_program import SPARE, Close, Limit, close_rule, priced_in, without_small
from shoal.problems.tables.search.neighborhood import deal, looks, neighbor_graph, search, steps_of
from shoal.threads import SearchThreads, flag, threads

if TYPE_CHECKING:
    from shoal.kernels.tables.close_classes import ClassConditions, OpenClasses, Published


BLOCK = 40_000  # rows of a block, which is annealed alone
ROUNDS = {"balanced": 3, "thorough": 12}
TRIAL = 10.0  # moves for each row that show how fast annealing is, if it ends by the clock
HASTE = 0.6  # part of the seconds of a first round with which one, of fewer moves, is still begun
LONG = 9  # rounds of pricing, at most, if the effort is in seconds
PRICING, LASTING, COOLING = 0.6, 0.6, 0.85  # parts of the seconds left after which pricing, a longer round, or any ends
# Parts of the plan's ``wanted`` below which classes are closed. If there is one block, which would leave all cores but
# one idle, each part is tried, and the better result is kept; of several blocks, each has the first part.
TRIES = (1.0, 0.85)
RARELY = 10  # a round over all classes is begun if the time left suffices for so many
SHARE = 0.1  # seconds of search for each second of annealing while annealing gains; 1 afterwards


class Stage(NamedTuple):
    """A stage of annealing, in which the heat falls and the price of rows beyond t rises, in units of the largest loss.

    near   limit of an arc's reduced cost above the cell's least, in the same unit
    moves  weight of this stage in the number of all moves
    heat, price  first and last value;  turns  number of values
    spare  rows by which classes stay below t, so that later moves can exchange values
    """

    near: float
    moves: float
    heat: tuple[float, float]
    price: tuple[float, float]
    spare: float
    turns: int


class RoundPlan(NamedTuple):
    """The parameters of a round of annealing.

    priced  rounds of pricing
    missed  rows by which whole rows are assumed to miss the shares of a class
    wanted  least rows that a class must want, relative to the least size of a group
    stay    whether rows start where they are; otherwise at the arc of least reduced cost
    sweeps  moves tried for each row;  pace  seconds for each row, about
    hot     factor of the stages' heat and of ``wanted``
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
NEAR_BLOCK = 4000  # rows of a block whose near classes are annealed alone
DEALS = 4  # times in a round that classes are dealt into such blocks
MOVES = 5000.0  # moves tried for each row in such a round, about
PACE = 1e-4  # seconds of such a round for each row
AT_ONCE = 200_000  # moves between two readings of the clock
TAKEN = (300, 6)  # a step takes at least so many rows, or those of so many classes
SPARE_NAMES = 32  # classes that can be opened in addition to those of a block


class Until(NamedTuple):
    """Clock readings at which pricing and annealing end; None: no limit."""

    priced: float | None = None
    cooled: float | None = None


def annealed(
    task: Task, rows: Rows, group: np.ndarray, turn: int, plan: RoundPlan, until: Until = Until()
) -> np.ndarray:
    """A group for every row, int64[n], after one round of annealing; it can lose more than the grouping given.

    turn   number of the round, which seeds the random numbers
    O(cells classes t + n sweeps values).
    """
    limit = close_rule(task)
    assert limit is not None
    n, limit = group.size, replace(limit, spare=plan.missed)
    blocks = deal(rows, group, max(1, round(n / BLOCK)), [task.seed, turn, 13])
    tries = TRIES if len(blocks) == 1 else TRIES[:1]
    numbers = np.random.SeedSequence([task.seed, turn, 17]).generate_state(len(tries) * len(blocks), np.uint64)
    stop, quiet, state = flag(), replace(task, progress=nothing), rows.states(group)

    def one(i: int) -> np.ndarray | None:
        if stop.is_set():
            return None
        block, label_before = blocks[i], group[blocks[i]]
        seed, open_now = [task.seed, turn, i], state[np.unique(label_before)]
        close = priced_in(quiet, rows, block, open_now, limit, plan.priced, seed, until.priced)
        if close is None:
            return None
        before = state[label_before] if plan.stay else None

        def tried(x: int) -> tuple[float, np.ndarray]:
            """The loss and the class of every row, int64[n], if classes are closed as in ``TRIES[x]``."""
            small = without_small(quiet, close, tries[x] * plan.hot * plan.wanted * rows.k, limit)
            count = small.program.arcs.count
            at = small.cheapest()[0][np.repeat(np.arange(count.size), count)]
            if before is not None:
                at = small.arcs_of(before, at)
            label = _cooled(small, limit, rows.k, at, plan, numbers[x * len(blocks) + i], until.cooled)
            return np.where(label < 0, small.largest_loss, small.program.loss[label]).sum(), label

        with threads(len(tries)) as each:
            return min(each(tried, range(len(tries))), key=lambda found: found[0])[1]

    with SearchThreads(min(os.cpu_count() or 1, len(blocks))) as pool:
        found = list(pool.map(one, range(len(blocks))))
    out, shift = group.copy(), int(group.max(initial=-1)) + 1
    for block, label in zip(blocks, found, strict=True):
        if label is not None:
            out[block] = np.where(label < 0, -1, label + shift)
            shift += int(label.max(initial=-1)) + 1
    return cut_and_placed(rows, out)


def cut_and_placed(rows: Rows, label: np.ndarray) -> np.ndarray:
    """A group for every row, int64[n]: eligible classes cut into groups, all other rows placed one by one."""
    good = rows.eligible(label, int(label.max(initial=-1)) + 1)
    return rows.place(rows.cut(np.where((label >= 0) & good[label], label, -1)))


def near_classes(
    close: Close, limit: Limit, k: int, near: float, spare: float, at: np.ndarray
) -> tuple[OpenClasses, np.ndarray]:
    """The classes and arcs for the kernel, and the index of each arc in the program, int64[..].

    The arcs are those near a cell's least reduced cost, and those in ``at``.

    near  limit above the least, relative to the largest loss;  spare  rows by which classes stay below t
    at    int64[n] the arc of every row
    """
    from shoal.kernels.tables.close_classes import OpenClasses

    program, arcs = close.program, close.program.arcs
    keep = close.cheapest()[1] <= near * close.largest_loss * UNIT
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
    """The class of every row after annealing from the arcs ``at`` int64[n]; -1 for rows beyond t.

    until  clock reading at which annealing ends; the number of moves at each heat is adjusted to it
    """
    from shoal.kernels.tables.close_classes import RowsOnArcs, anneal

    v, largest_loss, random = close.program.loss.size, close.largest_loss, np.array([seed | np.uint64(1)], np.uint64)
    cell = close.program.cell[at]
    whole = sum(stage.moves for stage in plan.stages)
    all_moves, tried, planned, began, pace = cell.size * plan.sweeps, 0, 0.0, clock(), 1.0
    # Each stage has its own arcs. While its heat falls, its price of rows beyond t rises.
    for stage in plan.stages:
        classes, kept = near_classes(close, limit, k, stage.near, stage.spare, at)
        here = np.searchsorted(kept, at)
        held = np.bincount(classes.pair[here], minlength=classes.owner.size).astype(np.int64)
        size = np.bincount(classes.owner, weights=held, minlength=v).astype(np.int64)
        placed, each = RowsOnArcs(cell, here, held, size), all_moves * stage.moves / (whole * stage.turns)
        heats, prices = np.geomspace(*stage.heat, stage.turns), np.geomspace(*stage.price, stage.turns)
        for heat, price in zip(heats, prices, strict=True):
            trial = min(TRIAL * cell.size / each, 1.0) if until is not None and not tried else 0.0
            for part in (trial, 1.0 - trial) if trial else (1.0,):
                moves = max(1, int(part * each * pace))
                anneal(classes, placed, plan.hot * heat * largest_loss, price * largest_loss, moves, random)
                tried, planned = tried + moves, planned + part * each
                if until is not None:  # the moves left take as long as those so far
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
    """Rows of each pair that stay, int64[p]: classes beyond t give up rows of the value most above its share."""
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
    """A group for every row, int64[n], after few near classes at a time were annealed alone.

    turn   number of the round, which seeds the random numbers
    until  clock reading at which annealing ends; None: after ``MOVES`` for each row
    If the models are only k and t, the classes lose no more than the groups given.
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
    """The class of every row, int64[n], after one deal of the classes into blocks."""
    state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
    label = of.reshape(-1)[group]
    blocks = deal(rows, label, max(1, round(group.size / NEAR_BLOCK)), [*seed, 19])
    numbers = np.random.SeedSequence([*seed, 23]).generate_state(len(blocks), np.uint64)
    stop, cores = flag(), min(os.cpu_count() or 1, len(blocks))

    def one(i: int) -> np.ndarray:
        random, end, now = np.array([numbers[i] | np.uint64(1)], np.uint64), until, clock()
        if until is not None:  # the blocks left for a core share the time left
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
    """The class of every row of a block, int64[b], numbered from 0 without gaps, after annealing.

    label  int64[n] class of every row before;  state  int64[v, t] what each class publishes
    """
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
) -> tuple[ClassConditions, Published]:
    """The rows of a block, int64[b], and their classes, for the kernel.

    label  int64[n] class of every row;  state  int64[v, t] what each class publishes
    """
    from shoal.kernels.tables.close_classes import ClassConditions, Published
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
    largest_loss = float(prices(rows.slots, rows.states(np.zeros(rows.cell.size, np.int64)))[0]) or 1.0
    return ClassConditions(leaf, value, weight, all_rows, limit.t * all_rows, rows.k, largest_loss), kept


NEXT = {"anew": "again", "again": "near", "near": "again"}  # the kind of round that follows each


class Turn(NamedTuple):
    """The next round, and the time and gain of earlier ones.

    kind   "anew": all classes, also other tuples; "again": all classes, from where rows are; "near": few near classes
    hot    heat of a round "again", as in ``RoundPlan``
    spent  seconds that a round of each kind takes, about
    rates  loss saved per second in the last round of each kind; inf before the first
    """

    kind: str
    hot: float
    spent: dict[str, float]
    rates: dict[str, float]

    def within(self, left: float, first: bool) -> Turn:
        """This round, or a shorter kind if it does not fit the seconds left."""
        kind, hot = self.kind, self.hot
        if kind == "anew" and left <= (HASTE if first else 1.0) * self.spent[kind]:
            kind, hot = "again", 1.0 if first else hot
        if kind == "again" and left <= (1.0 if first else RARELY) * self.spent[kind]:
            kind = "near"
        return self._replace(kind=kind, hot=hot)

    def following(self, took: float, saved: float, once: bool, clocked: bool) -> Turn:
        """The next round, if this one took so many seconds and saved so much loss.

        once     only one round is "anew"; otherwise these go on while they save loss, and the other kinds alternate
        clocked  the kind that saved most per second follows instead
        """
        kind, hot, spent, rates = self
        if kind != "near":
            spent = spent | {kind: 1.2 * took}
        rates = rates | {kind: saved / max(took, 1e-9)}
        if kind == "again" and not saved:  # near a local optimum, too much heat raises the loss
            hot /= 2
        if clocked:
            most = max(rates, key=lambda one: (rates[one], one == NEXT[kind]))
            return Turn(most, hot, spent, rates)
        goes_on = kind == "anew" and saved > 0 and not once
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
    """Annealing and search in alternation; returns the cheapest grouping found, as ``search`` does.

    If the effort counts steps, the rounds are reproducible. With seconds, the kind of round that gains more per second
    goes on, and the search gets a tenth of a round's time, or as much time if the round gained nothing or less than the
    search.
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
        """The loss that a grouping saves; 0 if it is not kept, inf if fewer rows are above a ceiling."""
        nonlocal group, least
        before, found = least, _rank(task, rows, made)
        if not found < before:
            return 0.0
        group, least = made, found
        return before[1] - found[1] if found[0] == before[0] else np.inf

    # Each turn is a round of annealing and a search; what loses less is kept, and the next kind of round is chosen.
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
        ends = COOLING * left
        if turn.kind == "anew" and round(group.size / BLOCK) <= 1:  # no other block waits for its turn
            ends = max(min(ends, turn.spent["anew"]), LASTING * left)
        plan = plan._replace(priced=LONG if plan.priced else 0)
        until = Until(began + PRICING * left, began + ends)
    return annealed(task, rows, group, number, plan, until)
