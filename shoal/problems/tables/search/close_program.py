"""The class program of t-closeness for few published tuples: those of a grouping, and those that pricing adds.

In every class whole rows miss the table's shares by about the same number of rows, so a class of few rows must stay
further below t: the program requires t less ``SPARE`` rows of each class. The Lagrange multipliers determine what each
row pays. In a class of the lattice, take the rows that pay most and that are close to the shares together. If they
would pay less in a class of their own, the tuple that covers them joins the program (column generation).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.multipliers import Arcs
from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task
from shoal.problems.tables.bounds.class_program import FIRST_STEP, UNIT, ClassProgram, Multipliers, raised
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice
from shoal.threads import threads

if TYPE_CHECKING:
    from shoal.kernels.tables.close_classes import SetRequest


ARCS = 12_000_000  # limit of the pairs of cell and class in a program
LOOKS = 2_000_000_000  # limit of the pairs of cell and class that are examined
PASSES = 300  # limit of the subgradient steps, each time
TEMPER = -0.3  # the step of a class of r rows is in proportion to r to this power
WALKS = 6e8  # limit of the arcs examined in these steps
WANTS_CHANGED = 0.15  # first step of the multipliers after the rows that classes want have changed
SPARE = 0.95  # rows by which whole ones miss the shares of a class
LEAST = 0.4  # least limit of a class, as a part of t
PRICED = 0.3  # rows by which the sets of the pricing stay below t
GROWTH = 1.25  # ratio of one size of these sets to the one before
LARGEST = 1200  # limit of the rows of a set
NODES = 3e7  # nodes times cells examined in a round of pricing
CLOSE = np.arange(1, 16) / 15  # limits of the rows wanted below which classes are closed, relative to the last one
CLOSING = 0.1  # first step of the multipliers after classes are closed
LAST = (0.1, 0.05)  # the same after the last classes are closed
SETS = 200  # limit of the sets that a round of pricing adds
FRESH = 0.6  # part of a set's rows that must be in no better set
GAIN = 0.5  # least gain of a set, relative to the largest loss of a class
IDLE = 0.5  # classes that want fewer rows leave the program
BATCH = 64  # nodes that a core examines at once


@dataclass(frozen=True, eq=False)
class Close:
    """A program of t-closeness and its multipliers.

    multipliers  program, multipliers, and the rows that each class wants
    state  int64[v, t] what each class publishes; the last class covers every row
    value  int64[p] sensitive value of each pair of class and value
    cells  int64[m] the cells of the table whose rows the program assigns
    """

    multipliers: Multipliers
    state: np.ndarray
    value: np.ndarray
    cells: np.ndarray

    @property
    def program(self) -> ClassProgram:
        return self.multipliers.program

    @property
    def largest_loss(self) -> float:
        """The largest loss of a row in a class that is allowed."""
        loss = self.program.loss
        return float(loss[loss < FORBIDDEN].max(initial=0.0)) or 1.0

    def only(self, keep: np.ndarray) -> Close:
        """The program of the classes ``keep`` bool[v], which include the last, with their multipliers."""
        small, pairs = self.program.only(keep)
        multipliers = Multipliers(small, self.multipliers.multiplier[pairs], 0, self.multipliers.share[keep])
        return Close(multipliers, self.state[keep], self.value[pairs], self.cells)

    def cheapest(self) -> tuple[np.ndarray, np.ndarray]:
        """The arc of least reduced cost of each cell, int64[m], and how much each arc is above it, int64[a]."""
        program = self.program
        paid = program.reduced(self.multipliers.multiplier)[program.arcs.pair]
        above = paid - np.minimum.reduceat(paid, program.arcs.start[:-1])[program.cell]
        least = np.flatnonzero(above == 0)
        return least[np.searchsorted(least, program.arcs.start[:-1])], above

    def arcs_of(self, published: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The arc of every row to the class of its tuple, int64[n, t]; the arc in ``other`` if there is none."""
        program = self.program
        names = {tuple(s): i for i, s in enumerate(self.state.tolist())}
        distinct, back = np.unique(published, axis=0, return_inverse=True)
        class_of = np.array([names.get(tuple(s), -1) for s in distinct.tolist()])[back.reshape(-1)]
        v, cell = self.state.shape[0], program.cell
        place = cell * np.int64(v) + program.owner[program.arcs.pair]
        wanted = cell[other] * np.int64(v) + class_of
        found = np.minimum(np.searchsorted(place, wanted), place.size - 1)
        return np.where((class_of >= 0) & (place[found] == wanted), found, other)


@dataclass(frozen=True)
class Limit:
    """The condition of t-closeness: shares of the values in the table float64[s], and t, in the equal distance.

    spare  rows by which whole rows are assumed to miss the shares of a class
    """

    share: np.ndarray
    t: float
    spare: float = SPARE

    def of(self, wanted: np.ndarray, rows: int) -> np.ndarray:
        """The limit of each class in the program, int64[v]: t of all rows, less if it wants few rows, float64[v]."""
        t = np.maximum(self.t - self.spare / np.maximum(wanted, 1e-9), LEAST * self.t)
        t[-1] = self.t
        return np.ceil(t * rows).astype(np.int64)


def close_rule(task: Task) -> Limit | None:
    """The strictest t-closeness with the equal distance of the one sensitive column; None if there is none."""
    if len(task.requirement.sensitive_columns) != 1:
        return None
    asked = [rule.measure for rule in task.requirement.rules if rule.measure.kind == "equal"]
    if not asked:
        return None
    nearest = min(asked, key=lambda measure: measure.number)
    return Limit(np.array(nearest.table), nearest.number)


def program_of(task: Task, rows: Rows, block: np.ndarray, state: np.ndarray, limit: Limit) -> Close | None:
    """The program of the rows of a block, int64[b], with some tuples and, last, the tuple that covers every row.

    None if it has too many pairs of cell and class.
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
    largest_loss = float(loss[loss < FORBIDDEN].max(initial=0.0)) or 1.0
    weight, top = np.rint(limit.share * all_rows).astype(np.int64), int(np.ceil(limit.t * all_rows))
    size = np.bincount(tuples, weights=np.repeat(count, np.diff(start)), minlength=v)
    made = Arcs(
        start=start,
        pair=pair.reshape(-1).astype(np.int32),
        count=count,
        owner=owner,
        first=np.searchsorted(owner, np.arange(v + 1)),
        cost=np.floor(np.minimum(loss, 8 * largest_loss) * UNIT).astype(np.int64),
        scale=size**TEMPER,
        l=all_rows,
        weight=weight[key % values],
        top=np.full(v, top),
        most=min(2**60 // (2 * all_rows * (all_rows + top)), 2**40),
    )
    begin = Multipliers(ClassProgram(made, loss, False), np.zeros(key.size, np.int64), 0, np.zeros(v))
    return Close(begin, state, key % values, cells)


def repriced(task: Task, close: Close, wanted: np.ndarray, limit: Limit, step: float, times: int = 1) -> Close:
    """The program after subgradient steps for its multipliers, ``times`` as many as usual.

    wanted  float64[v]  rows that each class wanted before, which determine its limit
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
    """The program of a block with tuples int64[v, t], after so many rounds of pricing.

    seed   of the nodes drawn
    until  clock reading (``shoal.clock``) by which the last round ends, if it takes as long as the one before
    None as for ``program_of``.
    """
    close = program_of(task, rows, block, state, limit)
    if close is None:
        return None
    random, pricing = np.random.default_rng(seed), _Pricing(task, rows, close.cells, close.program.arcs.count, limit)
    wanted, last = np.full(close.program.loss.size, np.inf), 0.0
    # A round moves the multipliers twice. Then sets of negative reduced cost join, and classes that want no row leave.
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
        more, sizes = pricing.sets(cells, GAIN * close.largest_loss, random)
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
    """The program without classes that want fewer than ``least`` rows.

    They are closed in steps. After each, subgradient steps move the multipliers of the others, which then want more
    rows.
    """
    for part in CLOSE:
        keep = close.multipliers.share >= part * least
        keep[-1] = True  # the class that covers every row
        close = close.only(keep)
        close = repriced(task, close, close.multipliers.share, limit, CLOSING)
    for step in LAST:
        close = repriced(task, close, close.multipliers.share, limit, step, 3)
    return close


def _transferred(
    grown: Close, close: Close, wanted: np.ndarray, more: np.ndarray, sizes: np.ndarray
) -> tuple[Close, np.ndarray]:
    """A new program with the multipliers of the old one, and the rows that its classes want."""
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
    """Pricing: sets of rows of negative reduced cost, from classes of nodes drawn at random."""

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
        """What the best sets would publish, int64[s, t], and how many rows they have.

        paid   float64[m] what a row of each cell pays
        least  gain from which on a set is added
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
        """Nodes to examine, int32[.., d], each at most once."""
        heights = np.array(self.lattice.heights)
        many = max(1, int(NODES / self.cells.size))
        if many >= self.lattice.nodes:
            return np.array(list(np.ndindex(*self.lattice.heights)), np.int32).reshape(-1, heights.size)
        return np.unique(random.integers(0, heights, (many, heights.size)).astype(np.int32), axis=0)

    def _found(self, nodes: np.ndarray, asked: SetRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gains and sizes of the sets of some nodes, and their cells, set by set."""
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
