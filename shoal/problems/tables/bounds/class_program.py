"""The class program of diversity by frequency: rows choose published tuples, eligibility is asked of whole classes.

Groups that publish the same tuple can be merged at no cost, so a partition is an assignment of rows to classes of the
generalization lattice.  A class of N rows is eligible when l n <= N for the n rows of every sensitive value.  Any
Lagrange multipliers of these inequalities prove a bound (``docs/bounds.md``).  The best of them say how many rows each
class wants; with that many rounded, the rest is a minimum-cost flow (``class_flow``).
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
from shoal.problems.threads import Each, even, in_turn, threads

UNIT = 2**24  # whole units of loss
LARGEST = 12_000_000  # pairs of cell and lattice node
ARCS = {"fast": 3e8, "balanced": 1.2e9, "thorough": 6e9}  # arcs looked at in all passes together
BUILD = 6e-8  # seconds that building the program takes for a pair, about
PASSES = 3000
SLICE, FIRST = 20, 4  # passes between two looks at the clock, and before the first or where time is short
PARTS, APART = 2, 400_000  # parts of a pass that cores may share, and the arcs from which on it has them
PATIENCE = 20.0  # passes in vain before steps are cut
GAP = 0.1  # steps aim at a bound so much above the best one
FIRST_STEP, LAST_STEP = 0.3, 1e-4
BOLD, FINE = 10.0, 0.02  # the first and the last step where the number of passes is known, and steps fall evenly
MIXING = 0.15  # share of the passes after those, with steps that let choices differ
SIZED = 2  # groups of so many times l rows: then no flow was seen to beat the cascade
TEMPER = -0.6  # multipliers of a class of r rows move in proportion to r to this power


class Chain(NamedTuple):
    """The lattice of the levels kept, and whether they are all."""

    lattice: Lattice
    whole: bool


class Shares(NamedTuple):
    """What a model asks of the shares in a class of N rows, n of them of each value of a column.

    For any z of at least 0 the sum of z (l n - weight N) is at most top N times the largest z.
    Frequency: weights 1, top 0.  A largest share for each value: l the rows of the table, weights those shares of them.
    t-closeness, equal distance: weights the rows of the values in the table, top t times all rows, for the rows of any
    set of values exceed their share by at most t N.
    """

    column: int
    l: int
    weight: np.ndarray
    top: int = 0

    @property
    def even(self) -> bool:
        """Whether it is diversity by frequency."""
        return self.top == 0 and bool((self.weight == 1).all())


def shares_of(task: Task) -> Shares | None:
    """The shares asked of one sensitive column: t-closeness before frequency before ceilings; None where none are."""
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
    """Classes that rows may be published as, each with the sensitive values of its rows.

    arcs   what the kernels need
    loss   float64[v] what a row of each class loses
    plain  whether it is diversity by frequency on all levels, which a flow can fill
    """

    arcs: Arcs
    loss: np.ndarray
    plain: bool = True

    @property
    def owner(self) -> np.ndarray:
        """Class of each pair (class, value), int64[p], rising."""
        return self.arcs.owner

    @property
    def widest(self) -> np.ndarray:
        """The class of every cell's last arc, bool[v]: those of the highest node, where there is room for everyone."""
        out = np.zeros(self.loss.size, bool)
        out[self.owner[self.arcs.pair[self.arcs.start[1:] - 1]]] = True
        return out

    @property
    def cell(self) -> np.ndarray:
        """Cell of each arc, int64[a]."""
        return np.repeat(np.arange(self.arcs.count.size), np.diff(self.arcs.start))

    def refund(self, multiplier: np.ndarray) -> np.ndarray:
        """What a row of each class gets back, int64[v] in whole units."""
        arcs, first = self.arcs, self.arcs.first[:-1]
        found: np.ndarray = np.add.reduceat(arcs.weight * multiplier, first) + arcs.top * np.maximum.reduceat(
            multiplier, first
        )
        return found

    def reduced(self, multiplier: np.ndarray) -> np.ndarray:
        """What a row of each pair pays with its multipliers, int64[p] in whole units."""
        return self.arcs.cost[self.owner] + self.arcs.l * multiplier - self.refund(multiplier)[self.owner]

    def bound(self, multiplier: np.ndarray) -> int:
        """What the multipliers prove, in whole units: any int64[p] from 0 to ``arcs.most`` are valid."""
        paid = self.reduced(multiplier)[self.arcs.pair]
        return int(np.minimum.reduceat(paid, self.arcs.start[:-1]) @ self.arcs.count)

    def only(self, kept: np.ndarray) -> tuple[ClassProgram, np.ndarray]:
        """The program of some classes bool[v], which every cell must still find one of; and its pairs bool[p]."""
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
    """The best multipliers found, int64[p]; what they prove in whole units; the rows that each class wants,
    float64[v]."""

    program: ClassProgram
    multiplier: np.ndarray
    proved: int
    share: np.ndarray

    @property
    def prices(self) -> np.ndarray:
        """What a row of each cell pays at least, float64[m]."""
        arcs = self.program.arcs
        paid: np.ndarray = np.minimum.reduceat(self.program.reduced(self.multiplier)[arcs.pair], arcs.start[:-1])
        return paid / UNIT

    def value(self, task: Task) -> float:
        """The bound in the recoding's unit, rounded down; an int, rounded up, where every loss is a whole number."""
        if task.recoding.unit == "stars":
            whole = not (self.program.arcs.cost % UNIT).any()
            return max(-(-self.proved // UNIT) if whole else self.proved // UNIT, 0)
        return max(self.proved / UNIT * (1 - 1e-9), 0.0) / max(task.histogram.rows * len(task.recoding.columns), 1)


def column(task: Task) -> int | None:
    """The sensitive column whose shares are asked, None where none is or even coarse lattices are too large."""
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


def idle(task: Task) -> bool:
    """Whether groups must be so large that their size, which the program does not see, decides and not the shares."""
    asked = shares_of(task)
    return asked is not None and asked.even and task.requirement.smallest >= SIZED * asked.l


def chain(task: Task) -> Chain:
    """The levels that the program has: all, or where that is too large those whose absence weakens the bound least."""
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
    )  # a class stands for those of the levels left out below it, and loses what the lowest of them does
    return Chain(Lattice(up, loss), all(len(k) == h for k, h in zip(kept, lattice.heights, strict=True)))


class _Classes(NamedTuple):
    """The classes of a node that can hold an eligible group, numbered from 0.

    cell, pair   a cell and the pair of class and value that its rows go to
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
    """The program of all classes that can hold an eligible group, less those that hold the rows of a cheaper class.

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
            if level:  # the same rows one level below: the class costs no less and can do no more
                new &= sizes[v] != sizes[v - stride[c]]
        inside = np.flatnonzero(new[kind])
        lost = np.zeros(int(key.max()) + 1)
        lost[key] = loss
        found.append(_classes(inside, key[kind[inside]], value[inside], weight, asked, lost, many))
    arcs, lost = _arcs(h, found, weight, asked)
    return ClassProgram(arcs, lost, whole_lattice and asked.even)


def _nodes(lattice: Lattice, code: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
    """For each choice of levels: what the types int[t, d] publish, numbered, and what that loses a row."""
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
    """The classes of a node whose values reach far enough; cells with the number of their class and their value."""
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
    """The classes of all nodes put together, and what a row of each loses."""
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
    """Multipliers as good as the effort allows; None where the program does not apply, is too large or has no time.

    Named efforts count passes, so that a seed gives the same again; with ``until`` (``shoal.clock``) the clock decides.
    """
    j, by_name = column(task), task.effort.seconds is None
    if j is None or (task.effort.name == "fast" and idle(task)):
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
    # Fine steps repeat the same choices; what each class wants is an average over choices that differ.
    return raised(task, multipliers, max(int(MIXING * passes), 1), until, FIRST_STEP)


def raised(
    task: Task, multipliers: Multipliers, passes: int, until: float | None, step: float, last: float | None = None
) -> Multipliers:
    """Multipliers after some passes from those given, and what they prove.

    last  the step of the last pass, to which steps fall evenly; without it they are cut where nothing is gained
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
            walk(program.arcs, ascent, now, gap, each, shrink)
            task.progress("bound", None)
            done, pace = done + now, max(clock() - began, 1e-9) / now
    return replace(multipliers, multiplier=ascent.best, proved=program.bound(ascent.best), share=ascent.share)


def walk(
    arcs: Arcs,
    ascent: MultiplierAscent,
    passes: int,
    least_gap: float,
    each: Each = in_turn,
    shrink: float | None = None,
) -> None:
    """Some passes of a subgradient method for the multipliers that prove most.

    least_gap  the least that steps aim above the best bound
    each       does some work on every part, in this thread or on other cores
    shrink     of the step in every pass; without it steps are cut after some passes in vain

    Bound: the sum over cells of count * least over their pairs of (cost + l multiplier - the refund of the class), in
    whole numbers; a refund is the sum of weight * multiplier, and top times the largest multiplier.  Steps follow
    Polyak's rule along the smoothed subgradient and are cut after some passes in vain.  The parts depend on the table
    alone, so any number of cores finds the same.  O(passes * (a + p)) time, of the pairs those of classes that do not
    rest.
    """
    from shoal.kernels.tables.multipliers import choose, follow, move
    from shoal.problems.programs import ascend

    parts = range(len(ascent.held))
    classes, cells = even(arcs.first, len(parts)), even(arcs.start, len(parts))

    def moved(step: float) -> None:
        each(lambda h: move(arcs, ascent, step, *classes[h]), parts)

    def followed(best: bool) -> float:
        return sum(each(lambda h: follow(arcs, ascent, best, *classes[h]), parts))

    def chosen() -> float:
        return sum(each(lambda h: choose(arcs, ascent, h, *cells[h]), parts))

    def reach(_: float) -> float:
        return float(max(GAP * ascent.state[0], least_gap))

    moved(0.0)  # which tells what rows pay
    patience = PATIENCE if shrink is None else None
    ascend(
        ascent.state, passes, patience, reach, value=chosen, direct=followed, move=moved,
        shrink=1.0 if shrink is None else shrink,
    )  # fmt: skip
