"""The class program: assign rows to classes of the lattice at least loss, under conditions on shares of values.

Groups that publish the same tuple can be merged at no cost, so a partition is an assignment of rows to classes. Under
diversity by frequency, a class of N rows is eligible if l n <= N for the n rows of every sensitive value. Any Lagrange
multipliers of these inequalities prove a bound (docs/bounds.md). The best multipliers also determine how many rows each
class wants; with these numbers rounded, the rest is a minimum-cost flow (``open_close.flow_start``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.multipliers import Arcs, MultiplierAscent
from shoal.model.histogram import Histogram, dense
from shoal.model.privacy.base import CLOSE
from shoal.model.task import Task
from shoal.problems.tables.losses import Lattice
from shoal.threads import Each, even, in_turn, threads

UNIT = 2**24  # integer units of a loss of 1
LARGEST = 12_000_000  # limit of the pairs of cell and lattice node
ARCS = {"fast": 3e8, "balanced": 1.2e9, "thorough": 6e9}  # limit of the arcs examined in all steps
BUILD = 6e-8  # seconds for a pair when the program is built, about
PASSES = 3000  # limit of the subgradient steps
SLICE, FIRST = 20, 4  # steps between two readings of the clock; if time is short
PARTS, APART = 2, 400_000  # parts of a step that cores share, if it has at least so many arcs
PATIENCE = 20.0  # steps without gain until the step length is cut
GAP = 0.1  # Polyak's target above the best bound, relative to it
FIRST_STEP, LAST_STEP = 0.3, 1e-4  # step lengths
BOLD, FINE = 10.0, 0.02  # first and last length if the number of steps is known and the length falls evenly
MIXING = 0.15  # share of the steps after those, with longer steps, so that choices differ
SIZED = 2  # from this multiple of l on as the least size, no flow was cheaper than the cascade in measurements
TEMPER = -0.6  # the step of a class of r rows is in proportion to r to this power


class Chain(NamedTuple):
    """The lattice of the levels that the program keeps, and whether these are all levels."""

    lattice: Lattice
    whole: bool


class Shares(NamedTuple):
    """The condition of a model on the shares of one column's values in a class of N rows, with n rows of each value.

    For any z >= 0: the sum of z (l n - weight N) is at most top N times the largest z.
    Frequency: weights 1, top 0. A largest share for each value: l is the number of rows of the table, the weights are
    those shares times l. t-closeness with the equal distance: l as before, the weights are the rows of each value in
    the table, and top is t l, because the rows of any set of values exceed their share by at most t N.
    """

    column: int
    l: int
    weight: np.ndarray
    top: int = 0

    @property
    def even(self) -> bool:
        """Whether the condition is diversity by frequency."""
        return self.top == 0 and bool((self.weight == 1).all())


def shares_of(task: Task) -> Shares | None:
    """The condition on shares of one sensitive column: t-closeness before frequency before largest shares, or None."""
    need, rows = task.requirement, task.histogram.rows
    close = [rule for rule in need.rules if rule.measure.kind == "equal"]
    if close:
        rule = min(close, key=lambda rule: rule.measure.number)
        top = int(np.ceil((rule.measure.number + 2 * CLOSE) * rows))
        return Shares(rule.columns[0], rows, np.array(rule.table, np.int64), top) if top < rows else None
    j = max(need.sensitive_columns, key=lambda j: need.frequency[j], default=None)
    if j is not None and need.frequency[j] > 1:
        return Shares(j, need.frequency[j], np.ones(max(task.histogram.sensitive_sizes[j], 1), np.int64))
    for rule in need.rules:
        if rule.measure.kind == "band":
            most = np.array(rule.measure.table, float).reshape(-1, 2)[:, 1]
            weight = np.ceil(np.minimum(most + 2 * CLOSE, 1.0) * rows).astype(np.int64)
            if (weight < rows).any():
                return Shares(rule.columns[0], rows, weight)
    return None


@dataclass(frozen=True, eq=False)
class ClassProgram:
    """Classes to which rows can be assigned, each with the sensitive values of its rows.

    arcs   the data for the kernels
    loss   float64[v] loss of a row of each class
    plain  whether the condition is diversity by frequency on all levels, so that a flow can fill the classes
    """

    arcs: Arcs
    loss: np.ndarray
    plain: bool = True

    @property
    def owner(self) -> np.ndarray:
        """The class of each pair (class, value), int64[p], rising."""
        return self.arcs.owner

    @property
    def widest(self) -> np.ndarray:
        """bool[v], the classes of the highest node: the class of every cell's last arc."""
        out = np.zeros(self.loss.size, bool)
        out[self.owner[self.arcs.pair[self.arcs.start[1:] - 1]]] = True
        return out

    @property
    def cell(self) -> np.ndarray:
        """The cell of each arc, int64[a]."""
        return np.repeat(np.arange(self.arcs.count.size), np.diff(self.arcs.start))

    def refund(self, multiplier: np.ndarray) -> np.ndarray:
        """What a row of each class is paid by the multipliers, int64[v] in integer units."""
        arcs, first = self.arcs, self.arcs.first[:-1]
        found: np.ndarray = np.add.reduceat(arcs.weight * multiplier, first) + arcs.top * np.maximum.reduceat(
            multiplier, first
        )
        return found

    def reduced(self, multiplier: np.ndarray) -> np.ndarray:
        """The reduced cost of a row of each pair, int64[p] in integer units."""
        return self.arcs.cost[self.owner] + self.arcs.l * multiplier - self.refund(multiplier)[self.owner]

    def bound(self, multiplier: np.ndarray) -> int:
        """The bound that the multipliers prove, in integer units; any int64[p] from 0 to ``arcs.most`` are valid."""
        paid = self.reduced(multiplier)[self.arcs.pair]
        return int(np.minimum.reduceat(paid, self.arcs.start[:-1]) @ self.arcs.count)

    def only(self, kept: np.ndarray) -> tuple[ClassProgram, np.ndarray]:
        """The program of the classes ``kept`` bool[v], which must include one for every cell; its pairs, bool[p]."""
        arcs, pairs = self.arcs, kept[self.owner]
        held = pairs[arcs.pair]
        owner = (np.cumsum(kept) - 1)[self.owner[pairs]]
        small = arcs._replace(
            start=np.concatenate([[0], np.cumsum(held)])[arcs.start],
            pair=(np.cumsum(pairs) - 1)[arcs.pair[held]].astype(np.int32),
            owner=owner,
            first=np.searchsorted(owner, np.arange(int(kept.sum()) + 1)),
            cost=arcs.cost[kept],
            scale=arcs.scale[kept],
            weight=arcs.weight[pairs],
            top=arcs.top[kept],
        )
        return ClassProgram(small, self.loss[kept], self.plain), pairs


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The best multipliers, int64[p]; the bound ``proved`` in integer units; rows that each class wants, float64[v]."""

    program: ClassProgram
    multiplier: np.ndarray
    proved: int
    share: np.ndarray

    @property
    def prices(self) -> np.ndarray:
        """The least reduced cost of a row of each cell, float64[m]."""
        arcs = self.program.arcs
        paid: np.ndarray = np.minimum.reduceat(self.program.reduced(self.multiplier)[arcs.pair], arcs.start[:-1])
        return paid / UNIT

    def value(self, task: Task) -> float:
        """The bound in the recoding's unit, rounded down; an int, rounded up, if every loss is an integer."""
        if task.recoding.unit == "stars":
            whole = not (self.program.arcs.cost % UNIT).any()
            return max(-(-self.proved // UNIT) if whole else self.proved // UNIT, 0)
        return max(self.proved / UNIT * (1 - 1e-9), 0.0) / max(task.histogram.rows * len(task.recoding.columns), 1)


def shares_column(task: Task) -> int | None:
    """The sensitive column with a condition on shares; None without one, or if even coarse lattices are too large."""
    if task.recoding.hierarchies is None or not task.histogram.cells:
        return None
    asked = shares_of(task)
    if asked is None:
        return None
    lattice, cells = Lattice.of(task.recoding), task.histogram.cells
    if lattice.nodes * cells <= LARGEST:
        return asked.column
    coarse = task.effort.name != "fast" and (2.0 ** len(lattice.up)) * cells <= LARGEST
    return asked.column if coarse else None


def size_decides(task: Task) -> bool:
    """Whether the least size of groups, which the program ignores, decides the loss rather than the shares."""
    asked = shares_of(task)
    return asked is not None and asked.even and task.requirement.smallest >= SIZED * asked.l


def chain(task: Task) -> Chain:
    """The levels of the program: all of them, or, if that is too large, those whose absence weakens the bound least."""
    lattice, cells = Lattice.of(task.recoding), task.histogram.cells
    kept = [list(range(h)) for h in lattice.heights]
    means = lattice.mean_loss(task)
    while float(np.prod([float(len(k)) for k in kept])) * cells > LARGEST:
        _, j, x = min(
            ((means[j][k[x] + 1] - means[j][k[x - 1] + 1 if x else 0]) / np.log(len(k) / (len(k) - 1)), j, x)
            for j, k in enumerate(kept)
            for x in range(len(k) - 1)
        )
        del kept[j][x]
    up = tuple(u[k] for u, k in zip(lattice.up, kept, strict=True))
    loss = tuple(
        lost[[0, *(x + 1 for x in k[:-1])]] for lost, k in zip(lattice.loss, kept, strict=True)
    )  # a class also represents those of the levels left out below it, and has the least loss of these
    return Chain(Lattice(up, loss), all(len(k) == h for k, h in zip(kept, lattice.heights, strict=True)))


class _Classes(NamedTuple):
    """The classes of a node that can contain an eligible group, numbered from 0.

    cell, pair   of every arc: a cell, and the pair of class and value of its rows
    value, owner of every pair: its sensitive value and its class
    lost, size   of every class: loss of a row, and rows
    """

    cell: np.ndarray
    pair: np.ndarray
    value: np.ndarray
    owner: np.ndarray
    lost: np.ndarray
    size: np.ndarray


def build(task: Task, j: int) -> ClassProgram:
    """The program of all classes that can contain an eligible group, less those with the rows of a cheaper class.

    O(nodes * cells * log(cells)).
    """
    h, asked = task.histogram, shares_of(task)
    assert asked is not None
    lattice, whole_lattice = chain(task)
    kind, someone = h.types
    names, value = np.unique(h.sensitive[:, j], return_inverse=True)
    value, weight = value.reshape(-1).astype(np.int64), asked.weight[names]
    rows = np.bincount(kind, weights=h.count).astype(np.int64)
    stride = np.append(np.cumprod(np.array(lattice.heights[:0:-1], np.int64))[::-1], 1)
    sizes = np.empty((int(lattice.nodes), someone.size), np.int32)
    found = []
    for v, (levels, key, loss) in enumerate(_nodes(lattice, h.quasi[someone])):
        many = np.bincount(key, weights=rows)
        sizes[v] = many[key]
        new = sizes[v] >= task.requirement.smallest
        for c, level in enumerate(levels):
            if level:  # a class with the same rows one level below is no more expensive
                new &= sizes[v] != sizes[v - stride[c]]
        inside = np.flatnonzero(new[kind])
        lost = np.zeros(int(key.max()) + 1)
        lost[key] = loss
        found.append(_classes(inside, key[kind[inside]], value[inside], weight, asked, lost, many))
    arcs, lost = _arcs(h, found, weight, asked)
    return ClassProgram(arcs, lost, whole_lattice and asked.even)


def _nodes(lattice: Lattice, code: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
    """For each node: its levels, the number of the class of each type int[t, d], and the loss of a row of each type."""
    prefix = [(np.zeros(len(code), np.int64), np.zeros(len(code)))]  # by the first columns alone
    before: tuple[int, ...] = ()
    for levels in np.ndindex(*lattice.heights):
        kept = next((c for c, (a, b) in enumerate(zip(levels, before, strict=False)) if a != b), 0)
        del prefix[kept + 1 :]
        for c in range(kept, len(levels)):
            up, level = lattice.up[c], levels[c]
            key = dense(prefix[c][0] * up.shape[1] + up[level][code[:, c]])
            prefix.append((key, prefix[c][1] + lattice.loss[c][level][code[:, c]]))
        before = levels
        yield levels, *prefix[-1]


def _classes(
    cell: np.ndarray, key: np.ndarray, value: np.ndarray, weight: np.ndarray, asked: Shares, lost: np.ndarray,
    many: np.ndarray,
) -> _Classes:  # fmt: skip
    """The classes of a node with enough values, from the cell, the class (key), and the sensitive value of each arc."""
    values = weight.size
    at = dense(key * values + value)
    pair = np.empty(int(at.max(initial=-1)) + 1, np.int64)
    pair[at] = key * values + value
    name, held = np.unique(pair // values, return_counts=True)
    reach = np.bincount(np.repeat(np.arange(name.size), held), weights=weight[pair % values], minlength=name.size)
    good = reach + asked.top >= asked.l
    use = np.repeat(good, held)
    taken = use[at]
    owner = np.repeat(np.arange(int(good.sum())), held[good])
    pairs = (np.cumsum(use) - 1)[at][taken].astype(np.int32)
    return _Classes(cell[taken], pairs, (pair % values)[use], owner, lost[name[good]], many[name[good]])


def _arcs(h: Histogram, found: list[_Classes], weight: np.ndarray, asked: Shares) -> tuple[Arcs, np.ndarray]:
    """The arcs of the classes of all nodes, and the loss of a row of each class."""
    lost, size = np.concatenate([c.lost for c in found]), np.concatenate([c.size for c in found])
    first = np.cumsum([0, *(c.lost.size for c in found)])
    owner = np.concatenate([c.owner + at for c, at in zip(found, first, strict=False)])
    start = np.zeros(h.cells + 1, np.int64)
    for c in found:
        start[c.cell + 1] += 1
    np.cumsum(start, out=start)
    pair, end, known = np.empty(int(start[-1]), np.int32), start[:-1].copy(), 0
    for c in found:  # a node has one class at most for a cell
        pair[end[c.cell]] = c.pair + known
        end[c.cell] += 1
        known += c.value.size
    whole = np.where(lost == np.rint(lost), lost * UNIT, lost * UNIT * (1 - 1e-12))
    most = min(2**60 // (h.rows * max(int(weight.sum()) + asked.top, asked.l)), 2**40)
    arcs = Arcs(start, pair, h.count, owner, np.searchsorted(owner, np.arange(lost.size + 1)),
                np.floor(whole).astype(np.int64), size**TEMPER, asked.l,
                weight[np.concatenate([c.value for c in found])], np.full(lost.size, asked.top), most)  # fmt: skip
    return arcs, lost


def price(task: Task, *, until: float | None = None) -> Multipliers | None:
    """The best multipliers that the effort allows; None if the program does not apply, is too large, or has no time.

    If the effort is a word, steps are counted, so a seed is reproducible; with ``until`` (``shoal.clock``) the clock
    ends them.
    """
    j, by_name = shares_column(task), task.effort.seconds is None
    if j is None or (task.effort.name == "fast" and size_decides(task)):
        return None
    building = BUILD * chain(task).lattice.nodes * task.histogram.cells
    if not by_name and until is not None and clock() + building > until:
        return None
    program = build(task, j)
    if not np.diff(program.arcs.start).all():  # a ceiling leaves rows without any class
        return None
    p, v = program.owner.size, program.loss.size
    begin = Multipliers(program, np.zeros(p, np.int64), 0, np.zeros(v))
    passes = PASSES
    if by_name:
        passes = int(min(passes, max(ARCS[task.effort.name] / (program.arcs.pair.size + p), SLICE)))
    until = None if by_name else until
    fine = None if until is None else clock() + (1 - MIXING) * (until - clock())
    multipliers = raised(task, begin, max(passes - int(MIXING * passes), 1), fine, BOLD, FINE)
    # Short steps repeat the same choices, but the rows that a class wants are an average over different choices.
    return raised(task, multipliers, max(int(MIXING * passes), 1), until, FIRST_STEP)


def raised(
    task: Task, multipliers: Multipliers, passes: int, until: float | None, step: float, last: float | None = None
) -> Multipliers:
    """The multipliers after subgradient steps, and the bound that they prove.

    last  length of the last step, to which lengths fall evenly; None: the length is cut after steps without gain
    """
    from shoal.kernels.tables.multipliers import start_ascent

    program = multipliers.program
    parts = 1 if program.arcs.pair.size < APART else PARTS
    ascent = start_ascent(multipliers.multiplier, multipliers.share, step, parts)
    gap = 1e-3 * float(program.loss.max()) * task.histogram.rows * UNIT
    done, pace = 0, np.inf
    with threads(parts) as each:
        while done < passes and ascent.state[1] > LAST_STEP:
            began, now = clock(), min(SLICE, passes - done)
            if until is not None:
                if began > until:
                    break
                now = min(now, max(int((until - began) / pace), FIRST))
            shrink = None
            if last is not None:
                left = passes - done if until is None else min(passes - done, max((until - began) / pace, now))
                shrink = (last / ascent.state[1]) ** (1 / left) if pace < np.inf or until is None else 1.0
            subgradient_steps(program.arcs, ascent, now, gap, each, shrink)
            task.progress("bound", None)
            done, pace = done + now, max(clock() - began, 1e-9) / now
    return replace(multipliers, multiplier=ascent.best, proved=program.bound(ascent.best), share=ascent.share)


def subgradient_steps(
    arcs: Arcs,
    ascent: MultiplierAscent,
    passes: int,
    least_gap: float,
    each: Each = in_turn,
    shrink: float | None = None,
) -> None:
    """Some steps of a subgradient method for the multipliers with the largest bound.

    least_gap  least distance of Polyak's target above the best bound
    each       runs some work for every part, in this thread or on other cores
    shrink     factor of the step length in every step; None: the length is cut after some steps without gain

    The bound is the sum over cells of count * the least over their pairs of (cost + l multiplier - refund of the
    class), in integers. A refund is the sum of weight * multiplier, plus top times the largest multiplier. The steps
    follow Polyak's rule along the smoothed subgradient. The parts depend on the table alone, so the result is the same
    on any number of cores. O(passes * (a + p)) time; pairs of resting classes take none.
    """
    from shoal.kernels.tables.multipliers import CHOOSE, FOLLOW, MOVE, AscentRule, ascend_whole, run_part
    from shoal.problems.programs import CUT, NOWHERE, ascend

    patience, shrink = (PATIENCE, 1.0) if shrink is None else (None, shrink)
    if len(ascent.held) == 1:
        waits = np.inf if patience is None else patience
        ascend_whole(arcs, ascent, AscentRule(passes, waits, CUT, shrink, GAP, float(least_gap), NOWHERE))
        return
    parts = range(len(ascent.held))
    classes, cells = even(arcs.first, len(parts)), even(arcs.start, len(parts))

    def moved(step: float) -> None:
        each(lambda h: run_part(arcs, ascent, MOVE, step, h, *classes[h]), parts)

    def followed(best: bool) -> float:
        return sum(each(lambda h: run_part(arcs, ascent, FOLLOW, float(best), h, *classes[h]), parts))

    def chosen() -> float:
        return sum(each(lambda h: run_part(arcs, ascent, CHOOSE, 0.0, h, *cells[h]), parts))

    def reach(_: float) -> float:
        return float(max(GAP * ascent.state[0], least_gap))

    moved(0.0)  # computes the reduced costs
    ascend(ascent.state, passes, patience, reach, value=chosen, direct=followed, move=moved, shrink=shrink)
