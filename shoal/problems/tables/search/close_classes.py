"""The class program of t-closeness over few published tuples: those of a grouping, and those that multipliers price in.

Whole rows miss the table's shares in every class, however large, so a class of few rows has less of t than one of
many: in the program each is asked to be within t less ``SPARE`` rows.  The multipliers tell what each row pays.  In
every class of the lattice the dearest rows that are close to the shares together may pay less by themselves; where they
do, what they would publish is a class of the next program.

Simulated annealing of rows among published tuples, under t-closeness (equal distance).

Groups that publish the same tuple count as one class, and only of classes is it asked that they are within t: of many
rows together a few may deviate where of ten none may.  The class program (``close_classes``) says which tuples to
publish and where each row would go if rows could be split.  Then rows move between the classes that cover them, by the
rule of Metropolis, where rows beyond t are dear and grow ever dearer.  What a class has beyond t in the end is placed
row by row.  The classes are cut into groups, which search then makes narrower.  The first rounds begin at the cheapest
arcs.  After one in vain, two kinds of rounds take turns: all classes from where the rows are, among the tuples that the
groups publish; and a few near classes at a time by themselves, sometimes with a tuple widened or added, kept if they
lose no more.  The first pays where t is loose and classes are small, the second where t is strict.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.multipliers import Arcs
from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task, nothing
from shoal.problems.tables.bounds.certify import SearchReport
from shoal.problems.tables.bounds.class_program import FIRST_STEP, UNIT, ClassProgram, Multipliers, raised
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice
from shoal.problems.tables.search.cascade import rank
from shoal.problems.tables.search.neighborhood import deal, looks, neighbor_graph, search, steps_of
from shoal.problems.threads import SearchThreads, flag, threads

if TYPE_CHECKING:
    from shoal.kernels.tables.close_classes import ClassesAsked, OpenClasses, Published, SetRequest


ARCS = 12_000_000  # pairs of cell and class in a program, at most
LOOKS = 2_000_000_000  # pairs of cell and class looked at, at most
PASSES = 300  # of the multipliers, each time
TEMPER = -0.3  # multipliers of a class of r rows move in proportion to r to this power
WALKS = 6e8  # arcs looked at in these passes, at most
WANTS_CHANGED = 0.15  # first step of multipliers for classes whose wants have changed
SPARE = 1.2  # rows by which whole ones miss the shares of a class
LEAST = 0.4  # part of t that a class has however few rows it wants
PRICED = 0.7  # rows by which those of a set priced in may miss them
GROWTH = 1.25  # of the sizes of sets
LARGEST = 1200  # rows of a set
NODES = 3e7  # nodes times cells looked at in a round
CLOSE = np.arange(1, 6) / 5  # parts of the least rows that a class must want, one after another
CLOSING = 0.1  # first step of the multipliers after a closing
LAST = (0.1, 0.05)  # of those after the last, which tell how far from its cheapest classes a row may go
SETS = 200  # priced in at once, at most
FRESH = 0.6  # rows of a set that no better one holds
GAIN = 0.5  # of a set at least, by the dearest class
IDLE = 0.5  # rows: classes that want fewer make room
BATCH = 64  # nodes looked at by one core in turn


@dataclass(frozen=True, eq=False)
class Close:
    """A program of t-closeness and where its multipliers stand.

    multipliers  program, multipliers and the rows that each class wants
    state  int64[v, t] what each class publishes; the last covers everyone
    value  int64[p] sensitive value of each pair of class and value
    cells  int64[m] the cells of the table that it speaks of
    """

    multipliers: Multipliers
    state: np.ndarray
    value: np.ndarray
    cells: np.ndarray

    @property
    def program(self) -> ClassProgram:
        """What the multipliers belong to."""
        return self.multipliers.program

    @property
    def dearest(self) -> float:
        """The largest loss of a row in any class that may be published."""
        loss = self.program.loss
        return float(loss[loss < FORBIDDEN].max(initial=0.0)) or 1.0

    def only(self, keep: np.ndarray) -> Close:
        """Some classes bool[v], the last among them, and their multipliers."""
        small, pairs = self.program.only(keep)
        multipliers = Multipliers(small, self.multipliers.multiplier[pairs], 0, self.multipliers.share[keep])
        return Close(multipliers, self.state[keep], self.value[pairs], self.cells)

    def cheapest(self) -> tuple[np.ndarray, np.ndarray]:
        """The arc on which rows of each cell pay least, int64[m], and by how much each arc is above it, int64[a]."""
        program = self.program
        paid = program.reduced(self.multipliers.multiplier)[program.arcs.pair]
        above = paid - np.minimum.reduceat(paid, program.arcs.start[:-1])[program.cell]
        least = np.flatnonzero(above == 0)
        return least[np.searchsorted(least, program.arcs.start[:-1])], above

    def arcs_of(self, published: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The arc of every row to what it publishes, int64[n, t]; that in other, int64[n], where it has no class."""
        program = self.program
        names = {tuple(s): i for i, s in enumerate(self.state.tolist())}
        distinct, of = np.unique(published, axis=0, return_inverse=True)
        mine = np.array([names.get(tuple(s), -1) for s in distinct.tolist()])[of.reshape(-1)]
        v, cell = self.state.shape[0], program.cell
        place = cell * np.int64(v) + program.owner[program.arcs.pair]
        wanted = cell[other] * np.int64(v) + mine
        found = np.minimum(np.searchsorted(place, wanted), place.size - 1)
        return np.where((mine >= 0) & (place[found] == wanted), found, other)


@dataclass(frozen=True)
class Limit:
    """Shares of the values in the table float64[s], and t: how far, in equal distance, a group may be from them.

    spare  rows by which whole ones are thought to miss the shares of a class
    """

    share: np.ndarray
    t: float
    spare: float = SPARE

    def of(self, wanted: np.ndarray, rows: int) -> np.ndarray:
        """What the program asks of classes that want so many rows float64[v]: t of all rows, less for few; int64[v]."""
        t = np.maximum(self.t - self.spare / np.maximum(wanted, 1e-9), LEAST * self.t)
        t[-1] = self.t
        return np.ceil(t * rows).astype(np.int64)


def program_of(task: Task, rows: Rows, block: np.ndarray, state: np.ndarray, limit: Limit) -> Close | None:
    """The program of the rows of a block, int64[b], and of some tuples, after which comes what covers everyone.

    Every class wants all it can have.  None where there are too many pairs of cell and class.
    """
    from shoal.kernels.tables.close_classes import covering
    from shoal.kernels.tables.eligible import prices

    state = np.unique(state, axis=0)
    state = np.concatenate([state, rows.states(np.zeros(rows.cell.size, np.int64))])
    cells, count = np.unique(rows.cell[block], return_counts=True)
    leaf, v = np.ascontiguousarray(rows.leaf[cells]), state.shape[0]
    start, none = np.empty(cells.size + 1, np.int64), np.zeros(0, np.int32)
    if cells.size * v > LOOKS:
        return None
    arcs = covering(rows.slots, state, leaf, start, none)
    if arcs > ARCS:
        return None
    tuples = np.empty(arcs, np.int32)
    covering(rows.slots, state, leaf, start, tuples)
    value, all_rows, values = rows.sensitive[cells, 0].astype(np.int64), task.histogram.rows, limit.share.size
    key, pair = np.unique(tuples * np.int64(values) + np.repeat(value, np.diff(start)), return_inverse=True)
    owner, loss = key // values, prices(rows.slots, state)
    dearest = float(loss[loss < FORBIDDEN].max(initial=0.0)) or 1.0
    weight, top = np.rint(limit.share * all_rows).astype(np.int64), int(np.ceil(limit.t * all_rows))
    size = np.bincount(tuples, weights=np.repeat(count, np.diff(start)), minlength=v)
    made = Arcs(
        start=start,
        pair=pair.reshape(-1).astype(np.int32),
        count=count,
        owner=owner,
        first=np.searchsorted(owner, np.arange(v + 1)),
        cost=np.floor(np.minimum(loss, 8 * dearest) * UNIT).astype(np.int64),
        scale=size**TEMPER,
        l=all_rows,
        weight=weight[key % values],
        top=np.full(v, top),
        most=min(2**60 // (2 * all_rows * (all_rows + top)), 2**40),
    )
    begin = Multipliers(ClassProgram(made, loss, False), np.zeros(key.size, np.int64), 0, np.zeros(v))
    return Close(begin, state, key % values, cells)


def repriced(task: Task, close: Close, wanted: np.ndarray, limit: Limit, step: float, times: int = 1) -> Close:
    """The program after some passes for its multipliers (``times`` as many).

    wanted  float64[v]  rows that each class wanted, which say how near the shares it is asked to be
    """
    program = close.program
    arcs = program.arcs._replace(top=limit.of(wanted, task.histogram.rows))
    passes = times * int(np.clip(WALKS / (arcs.pair.size + arcs.owner.size), 1, PASSES))
    multipliers = replace(close.multipliers, program=replace(program, arcs=arcs))
    return replace(close, multipliers=raised(task, multipliers, passes, None, step))


def priced_in(
    task: Task, rows: Rows, block: np.ndarray, state: np.ndarray, limit: Limit, rounds: int, seed: list[int],
    until: float | None = None,
) -> Close | None:  # fmt: skip
    """The program of a block from some tuples int64[v, t], and rounds of those that multipliers price in.

    seed   of the nodes looked at
    until  clock reading (``shoal.clock``) by which the last round ends, if it takes as long as the one before
    None as for ``program_of``.
    """
    from shoal.clock import clock

    close = program_of(task, rows, block, state, limit)
    if close is None:
        return None
    random, pricing = np.random.default_rng(seed), _Pricing(task, rows, close.cells, close.program.arcs.count, limit)
    wanted, last = np.full(close.program.loss.size, np.inf), 0.0
    # Multipliers are moved twice, towards the rows that classes have; then nodes with sets of negative reduced cost
    # join, and classes that nobody chose leave.
    for turn in range(rounds + 1):
        began = clock()
        for step in (FIRST_STEP, WANTS_CHANGED):
            close = repriced(task, close, wanted, limit, step)
            share = close.multipliers.share
            wanted = np.where(np.isfinite(wanted), 0.5 * (wanted + share), share)
        if turn == rounds or (until is not None and last + 2 * clock() - began > until):
            break
        priced = clock()
        paid, arcs = close.program.reduced(close.multipliers.multiplier)[close.program.arcs.pair], close.program.arcs
        cells = np.minimum.reduceat(paid, arcs.start[:-1]) / UNIT
        more, sizes = pricing.sets(cells, GAIN * close.dearest, random)
        if not sizes.size:
            break
        task.progress("annealing", None)
        keep = close.multipliers.share > IDLE
        keep[-1] = True
        grown = program_of(task, rows, block, np.concatenate([close.state[keep][:-1], more]), limit)
        if grown is None:
            break
        close, wanted = _transferred(grown, close, wanted, more, sizes)
        last = clock() - priced
    return close


def without_small(task: Task, close: Close, least: float, limit: Limit) -> Close:
    """The program without classes that want fewer rows.

    They are closed step by step, each followed by some passes for the others, so that rows find them and they come to
    want more; more passes follow the last.
    """
    for part in CLOSE:
        keep = close.multipliers.share >= part * least
        keep[-1] = True  # that of all rows: everyone finds room at the top
        close = close.only(keep)
        close = repriced(task, close, close.multipliers.share, limit, CLOSING)
    for step in LAST:
        close = repriced(task, close, close.multipliers.share, limit, step, 3)
    return close


def _transferred(
    grown: Close, close: Close, wanted: np.ndarray, more: np.ndarray, sizes: np.ndarray
) -> tuple[Close, np.ndarray]:
    """A new program with the multipliers of the old one, and what its classes want: sets their rows at first."""
    old, values = {tuple(s): i for i, s in enumerate(close.state.tolist())}, int(grown.value.max()) + 1
    new = dict(zip(map(tuple, more.tolist()), sizes.tolist(), strict=True))
    place = np.array([old.get(tuple(s), -1) for s in grown.state.tolist()])
    known = place >= 0
    multipliers = np.zeros((close.state.shape[0] + 1, values), np.int64)
    multipliers[close.program.owner, close.value] = close.multipliers.multiplier
    rows = np.array([float(new.get(tuple(s), 0)) for s in grown.state.tolist()])
    share, want = rows.copy(), rows.copy()
    share[known], want[known] = close.multipliers.share[place[known]], wanted[place[known]]
    multiplier = multipliers[place[grown.program.owner], grown.value]
    return replace(grown, multipliers=replace(grown.multipliers, multiplier=multiplier, share=share)), want


class _Pricing:
    """Sets of rows that multipliers price in, from classes of the lattice drawn at random."""

    def __init__(self, task: Task, rows: Rows, cells: np.ndarray, count: np.ndarray, limit: Limit) -> None:
        from shoal.kernels.tables.lattice import GeneralizedCells

        self.rows, self.cells, self.count, self.limit = rows, cells, count, limit
        self.lattice = Lattice.of(task.recoding)
        up, at, size, exact = self.lattice.flat
        self.raised = GeneralizedCells(np.ascontiguousarray(task.histogram.quasi[cells]), up, at, size, exact)
        self.loss = np.concatenate([lost.reshape(-1) for lost in self.lattice.loss])
        sizes = np.unique(np.rint(rows.k * GROWTH ** np.arange(60)).astype(np.int64))
        sizes = sizes[sizes <= LARGEST]
        excess = limit.t * sizes - PRICED
        self.sizes, self.excess = sizes[excess >= 0], excess[excess >= 0]

    def sets(self, paid: np.ndarray, least: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What some sets would publish, int64[s, t], and how many rows they have; paid float64[m] by rows of each cell.

        least  gain that is worth a class
        """
        from shoal.kernels.tables.close_classes import SetRequest

        value = self.rows.sensitive[self.cells, 0].astype(np.int64)
        order = np.argsort(-paid, kind="stable")
        asked = SetRequest(paid, order, self.count, value, self.limit.share, self.sizes, self.excess, least)
        nodes = self._drawn(random)
        parts = np.array_split(nodes, max(1, len(nodes) // BATCH))
        with threads(len(parts)) as each:
            found = each(lambda part: self._found(part, asked), parts)
        gain, many, cell = (np.concatenate(a) for a in zip(*found, strict=True))
        end = np.cumsum(many)
        chosen, fresh = [], np.ones(self.cells.size, bool)
        for x in np.argsort(-gain, kind="stable"):
            held = cell[end[x] - many[x] : end[x]]
            if fresh[held].mean() >= FRESH:
                fresh[held] = False
                chosen.append(x)
                if len(chosen) == SETS:
                    break
        if not chosen:
            return np.zeros((0, self.rows.leaf.shape[1]), np.int64), many[:0]
        member = np.concatenate([self.cells[cell[end[x] - many[x] : end[x]]] for x in chosen])
        sizes = many[chosen]
        state, first = np.unique(self.rows.covers(member, np.cumsum(sizes) - sizes), axis=0, return_index=True)
        return state, sizes[first]

    def _drawn(self, random: np.random.Generator) -> np.ndarray:
        """Nodes to look at, int32[.., d], each at most once."""
        heights = np.array(self.lattice.heights)
        many = max(1, int(NODES / self.cells.size))
        if many >= self.lattice.nodes:
            return np.array(list(np.ndindex(*self.lattice.heights)), np.int32).reshape(-1, heights.size)
        return np.unique(random.integers(0, heights, (many, heights.size)).astype(np.int32), axis=0)

    def _found(self, nodes: np.ndarray, asked: SetRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gain and rows of the sets of some nodes, and their cells one after another."""
        from shoal.kernels.tables.close_classes import RowSets, close_sets

        total = int(self.count.sum())
        out = RowSets(np.empty(2 * total), np.empty(2 * total, np.int64), np.empty(2 * total, np.int64))
        gain, many, cell, done = [], [], [], 0
        while done < len(nodes):
            steps, sets = close_sets(self.raised, nodes[done:], self.loss, asked, out)
            done += steps
            gain.append(out.gain[:sets].copy())
            many.append(np.diff(out.end[:sets], prepend=0))
            cell.append(out.cell[: out.end[sets - 1] if sets else 0].copy())
        return np.concatenate(gain), np.concatenate(many), np.concatenate(cell)


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

    def weighed(labels: np.ndarray) -> tuple[tuple[int, float], np.ndarray]:
        return rank(task, rows.partition(labels)), labels

    best = weighed(group)
    rounds, anew, again, near_by = ROUNDS.get(task.effort.name, 1), "anew", "again", "near"
    spent = {anew: ANEW.pace * group.size, again: AGAIN.pace * group.size, near_by: PACE * group.size}
    kind, hot, rate, of_search = anew, AGAIN.hot, {anew: np.inf, again: np.inf, near_by: np.inf}, 0.0
    if deadline is not None and deadline - clock() <= HASTE * spent[anew]:
        kind, hot = again, 1.0
    # A round anneals all classes, from a new draw or from where rows are, or rearranges near ones.  What it took and
    # gained decides what the next one can be, and what pays most.
    while report.rounds < rounds if deadline is None else clock() < deadline:
        began = clock()
        left = np.inf if deadline is None else deadline - began
        if kind == anew and report.rounds and left <= spent[anew]:  # the next would end after the deadline
            kind = again
        if kind == again and left <= spent[again]:
            kind = near_by
        task.progress("annealing", None if deadline else report.rounds / rounds)
        if kind == near_by:
            end = None if deadline is None else began + min(spent[near_by], COOLING * left)
            made = weighed(rearranged(task, rows, best[1], report.rounds, end))
        else:
            plan = ANEW if kind == anew else AGAIN._replace(hot=hot)
            until, plan = Until(), plan._replace(sweeps=min(left / spent[kind], 1.0) * plan.sweeps)
            if deadline is not None:
                until = Until(began + PRICING * left, began + COOLING * left)
                plan = plan._replace(priced=LONG if plan.priced else 0)
            made = weighed(annealed(task, rows, best[1], report.rounds, plan, until))
        took, gained = clock() - began, made[0] < best[0]
        if kind != near_by:
            spent[kind] = 1.2 * took
        if kind == again and not gained:  # what is near the best that can be had, heat leads away from
            hot /= 2
        if kind != anew:
            rate[kind] = max(best[0][1] - made[0][1], 0.0) / max(took, 1e-9) if gained else 0.0
        wait = SHARE * took if gained and rate[kind] >= of_search else took
        # Other tuples are drawn for as long as these are better; for a short effort once.
        if kind != anew or not gained or task.effort.name == "balanced":
            other_kind = {anew: again, again: near_by, near_by: again}[kind]
            turned = kind == anew or deadline is None or rate[other_kind] >= rate[kind]
            kind = other_kind if turned else kind
        best = min(best, made, key=lambda pair: pair[0])
        report.rounds += 1
        if near is None:
            near = neighbor_graph(rows, task.seed, SHARE * looks(rows, deadline, steps))
        other = replace(task, seed=task.seed + report.rounds - 1)
        if deadline is None:
            group, searched = search(other, rows, best[1], steps=-(-steps // rounds), near=near)
        else:
            group, searched = search(other, rows, best[1], deadline=min(deadline, clock() + wait), near=near)
        narrowed = weighed(group)
        of_search = max(best[0][1] - narrowed[0][1], 0.0) / max(clock() - began - took, 1e-9)
        best = min(best, narrowed, key=lambda pair: pair[0])
        report.steps += searched.steps
    return best[1], report
