"""Lower bounds on the loss of every eligible partition (docs/bounds.md has the proofs).

Each bound is a function of the task alone. Row prices are raised by dual ascent over all classes of the lattice, and
then moved along subgradients against the classes that are nearly tight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables import sweep
from shoal.kernels.tables.close_sweep import CloseShares, close_sweep
from shoal.kernels.tables.multipliers import BoundedRows, Classes, Tight
from shoal.model.privacy.base import CLOSE
from shoal.model.task import Task
from shoal.problems.tables.bounds.boxes import (
    SMALL_GROUP,
    Pairs,
    columns_of_boxes,
    first_part,
    sweeps_of,
    without_lattice,
)
from shoal.problems.tables.bounds.class_program import SLICE, Multipliers, price, shares_of
from shoal.problems.tables.bounds.pieces import ValueCuts
from shoal.problems.tables.losses import Lattice, steps_bound
from shoal.problems.tables.three_phase import WIDENED, plain_stars, residue
from shoal.threads import Each, cores, each, even, flag, in_turn, threads

FADE, PATIENCE = 0.7, 10.0  # part of the direction before that is kept; steps without gain until the length is cut
PARTS = 2  # parts of the classes, for cores to share


class Ascent(NamedTuple):
    """The state of a subgradient method for prices; all arrays are read and written.

    price, best, trend float64[m]  prices, those of the largest value so far, the smoothed direction
    state float64[3]  largest value so far, length of steps, steps since the value rose
    """

    price: np.ndarray
    best: np.ndarray
    trend: np.ndarray
    state: np.ndarray


def subgradient_steps(
    classes: Classes, asked: BoundedRows, most: np.ndarray, ascent: Ascent, passes: int, aim: float, gap: float,
    each: Each = in_turn,
) -> None:  # fmt: skip
    """Some steps of a subgradient method for the prices, at most ``most`` float64[m], that prove most.

    The value is the sum of all prices less, for each class, the most by which an eligible set of its rows exceeds its
    cost. A step of Polyak's rule along the smoothed subgradient has its target ``gap`` above the larger of the best
    value and ``aim``. The parts depend on the classes alone, so the result is the same on any number of cores. O(passes
    * members) if the order of the rows of a class changes little.
    """
    from shoal.kernels.tables.multipliers import taken
    from shoal.problems.programs import ascend

    price, best, trend, state = ascent
    parts, rows = even(classes.start, PARTS), np.zeros((PARTS, price.size), np.int64)

    def over(h: int) -> float:
        return float(taken(classes, asked, price, *parts[h], rows[h]))

    def proved() -> float:
        return float((asked.many * price).sum()) - sum(each(over, range(PARTS)))

    def direct(risen: bool) -> float:
        if risen:
            best[:] = price
        trend[:] = FADE * trend
        trend[:] += (1 - FADE) * (asked.many - rows.sum(axis=0))
        return float((trend**2 / asked.many).sum())

    def move(step: float) -> None:
        np.minimum(price + step * trend / asked.many, most, out=price)

    def reach(value: float) -> float:
        return float(max(state[0], aim)) + gap - value

    ascend(state, passes, PATIENCE, reach, value=proved, direct=direct, move=move)


QUICK = 3.0  # limit of the seconds for bounds at "fast", if a lattice is large
RAISED = 10  # time of a round of dual ascent with its check, in first sweeps, about
LOOKS = {"fast": 3e8, "balanced": 3e8, "thorough": 4e9}  # limit of the cells examined in a sweep over the lattice
PACE = 1e8  # limit of the cells that a core examines in a second
PASSED = 40  # cells of all classes for each one that a sweep examines, if it skips many
AT_ONCE = 2e7  # cells that a core examines between two readings of the clock, about
SWEEP = 0.7  # limit of the first sweep, as a share of the time
ROUNDS = {"fast": 3, "balanced": 3, "thorough": 8}  # rounds of dual ascent
SMALL = {"fast": 10_000, "balanced": 60_000, "thorough": 60_000}  # pairs of cell and node for the linear program
SOLVE = {"fast": 3.0, "balanced": 20.0, "thorough": 120.0}  # its limit in seconds, many times what such tables need
HALF, WHOLE = 3, 7  # time of half a first round of dual ascent, and of a whole one, in first sweeps
STEEP = 8  # subgradients are used from this least size on; below, dual ascent leaves little to gain
ASCENT = 0.5  # share of the seconds left for dual ascent if subgradients follow
SLACKS = (0.25, 0.05, 0.05)  # limits of the slack of the classes examined, round by round, in mean prices
MIXED = (0.4,) * 14 + (0.2,) * 4  # the same if groups need different values
DEAR = 3  # times K: rows of a class that are listed
SCARCE = 12  # the same if groups need different values and all rows are too many
LISTED = 20_000_000  # limit of the members listed in one sweep
PASSES, MEMBERS = (400, 100), (4e8, 1e9)  # limits of the steps and of the members examined; if groups need values
GAP = 0.05  # Polyak's target above the bound before, relative to it
NEARLY = 0.999  # share of the cost from which on no further bound is computed
ROUGHLY = 0.8  # the same for pieces: if all values are equally far apart, boxes take long and prove little
ENOUGH = 0.95  # and for least steps: below this share, columns of boxes may be the better start
CLOSENESS = {"fast": 1, "balanced": 2, "thorough": 40}  # limit of the sweeps for prices under conditions on shares
LITTLE = 5e-4  # relative gain below which a sweep is the last
FOR_MULTIPLIERS = (0.5, 0.9)  # share of their time for the multipliers with which they begin; for largest shares
AMPLE = 5.0  # seconds below which no sweep for largest shares is begun
COUNTED = 60  # groups of up to so many rows are examined one size at a time
VALUES = {"equal": 1000, "ordered": 40, "tree": 40}  # limit of the values of a sensitive column for these prices
NONE = Tight.empty(0, 0)
ARGUMENTS = {
    "nothing": "no loss is below 0",
    "alone": WIDENED,
    "tuples": "suppressed tuples: each has at least one star",
    "least steps": "suppressed tuples: each loses at least what its cheapest second value costs",
    "cheapest node": "per row the cheapest lattice node whose class can hold an eligible group with it",
    "dual ascent": "row prices that no eligible group of any lattice class exceeds, raised by dual ascent",
    "subgradients": "row prices that no eligible group of any lattice class exceeds, moved along subgradients",
    "linear program": "row prices that no eligible group of any lattice class exceeds, from the linear program's dual",
    "combined": "suppressed tuples, plus for every p >= 1 the rows that need more than p stars",
    "multipliers": "rows at their cheapest classes, where values too common for a class pay and scarce ones are paid",
    "integer program": "no assignment of rows to closed patterns, each eligible as a whole, costs less",
    "boxes": "per row the cheapest box of sets, ranges and nodes that holds it and as many rows as a group needs",
    "raised boxes": "row prices that no box with as many rows as a group needs exceeds, raised by dual ascent",
    "close classes": "row prices that no group of any lattice class exceeds whose sensitive values are within t",
    "limited shares": "row prices that no group of any lattice class exceeds in which no value is too common",
    "columns of boxes": "row prices that no box with as many rows as a group needs exceeds, by column generation",
    "neighbors": "per row what it loses together with its nearest rows, as many as the least group needs",
    "pieces": "the linear program of how values are cut into pieces, and how many pieces of each size meet in groups",
    "shards": "per row the less of what it loses with its nearest rows in its shard and with any tuple of another",
}


@dataclass
class Bounds:
    """Lower bounds by name, in the recoding's unit, rounded down, and the by-products of their proofs for the search.

    seconds      time of the proofs
    prices       float64[m] of the best bound by prices;  cheapest  float64[m] those of the cheapest node
    multipliers  of the class program
    classes      that are nearly tight if prices were moved along subgradients
    columns      int64[c, K] cells of groups whose loss is close to their prices, the closest first; only without sweeps
                 over a lattice
    pieces       the program of a table with one column of sets
    """

    values: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    prices: np.ndarray | None = None
    cheapest: np.ndarray | None = None
    multipliers: Multipliers | None = None
    classes: Classes | None = None
    columns: np.ndarray | None = None
    pieces: ValueCuts | None = None

    @property
    def best(self) -> tuple[str, float]:
        """Name and value of the largest bound."""
        if not self.values:
            return "none", 0
        name = max(self.values, key=lambda k: self.values[k])
        return name, self.values[name]


def lower_bounds(task: Task, *, until: float | None = None, program: bool = True, cost: float = math.inf) -> Bounds:
    """The bounds that fit the effort; with ``until`` (``shoal.clock``) no sweep starts that might end after it.

    program  whether small tables get the best prices by linear programming, instead of ascent
    cost     of the best answer known; if a bound is close to it, boxes are not examined

    A sweep over the lattice is O(nodes * cells) at worst; the bound by neighbors is O(cells^2).
    """
    began = clock()
    out = Bounds()
    if not task.histogram.cells or not task.recoding.columns:
        return out
    effort = "thorough" if task.effort.name == "seconds" else task.effort.name
    lattice = Lattice.of(task.recoding)
    some = task.recoding.hierarchies is not None and RAISED * lattice.nodes * task.histogram.cells > LOOKS["fast"]
    if task.effort.name == "fast" and some:  # other named efforts count work instead of time
        until = began + QUICK
    enough = NEARLY * cost * task.histogram.rows * len(task.recoding.columns)
    tuples = residue(task.histogram, task.requirement)[1]["bound"]
    if plain_stars(task.recoding):
        out.values["tuples"] = int(tuples)
    elif task.recoding.hierarchies is None and (steps := steps_bound(task, int(tuples))) > 0:
        out.values["least steps"] = steps
    out.pieces = ValueCuts.of_task(task)
    if out.pieces is not None:
        out.values["pieces"] = out.pieces.bound
        plain = not task.requirement.sensitive_columns and not task.requirement.rules
        roughly, nearly = (ROUGHLY, ENOUGH) if task.effort.name in ("fast", "balanced") else (NEARLY, NEARLY)
        # For k alone, boxes prove no more.
        if plain or out.pieces.bound >= roughly * cost or out.best[1] >= nearly * cost:
            out.seconds = clock() - began
            return out
    sweeper = None
    if task.recoding.hierarchies is not None and not sweep_takes_too_long(task, lattice, LOOKS[effort], until):
        sweeper = Sweeper(task, lattice, LOOKS[effort])
        since = clock()
        first = sweeper.run(
            sweep.CHEAPEST, np.zeros(0), np.zeros(0, bool), None if until is None else began + SWEEP * (until - began)
        )
        if first is not None and np.isfinite(first).all():
            _of_nodes(task, out, first, int(tuples))
            if program and lattice.nodes * task.histogram.cells <= SMALL[effort]:
                _by_program(task, out, sweeper, effort, until)
            else:
                # If sensitive values matter, multipliers and prices of either sign prove more in the same time. If
                # groups are large, subgradients do.
                steep = sweeper.group > SMALL_GROUP or (effort == "thorough" and sweeper.group >= STEEP)
                sweeps = 0 if task.part or sweeper.asked or steep else sweeps_of(task, until)
                _by_ascent(task, out, sweeper, effort, first_part(sweeps, until), clock() - since)
                if sweeps and out.prices is not None:
                    columns = columns_of_boxes(task, Pairs.of(task), out.prices, sweeps, until, None, enough)
                    if columns is not None:
                        out.values["columns of boxes"] = total(task, columns)
    if out.prices is None and not task.part:
        groups: list[np.ndarray] = []
        for name, found in without_lattice(task, effort, until, groups, enough).items():
            out.values[name] = total(task, found)
        out.columns = groups[-1] if groups else None
    alone = task.recoding.alone(task.histogram)
    if alone:
        out.values["alone"] = alone
    close = None if sweeper is None or out.prices is None else close_shares(task)
    if close is not None and close.whole and (effort == "fast" or (until is not None and until - clock() < AMPLE)):
        close = None
    end = until
    if until is not None and close is not None:
        end = clock() + FOR_MULTIPLIERS[close.whole > 0] * (until - clock())
    out.multipliers = price(task, until=end)
    if out.multipliers is not None:
        out.values["multipliers"] = out.multipliers.value(task)
    if close is not None and sweeper is not None:
        _by_closeness(task, out, sweeper, close, effort, until)
    out.seconds = clock() - began
    return out


def sweep_takes_too_long(task: Task, lattice: Lattice, looks: float, until: float | None) -> bool:
    """Whether a sweep over the lattice would probably not end in time, so that it is not begun."""
    work = lattice.nodes * task.histogram.cells
    if until is not None:
        looks = min(looks, SWEEP * PACE * cores(work) * max(until - clock(), 0.0))
    return work > PASSED * looks


def _of_nodes(task: Task, out: Bounds, first: np.ndarray, tuples: int) -> None:
    """Add the bounds of the first sweep: for each row, the cheapest node whose class can contain an eligible group."""
    out.prices = out.cheapest = first
    out.values["cheapest node"] = total(task, first)
    if plain_stars(task.recoding):
        columns = range(1, len(task.recoding.columns))
        out.values["combined"] = tuples + sum(int(task.histogram.count[first > p + 0.5].sum()) for p in columns)


def _by_program(task: Task, out: Bounds, sweeper: Sweeper, effort: str, until: float | None) -> None:
    """Add the bound of the best prices, from the dual of a linear program."""
    named = task.effort.seconds is None  # a seed must be reproducible, so the time limit is far above the need
    prices = sweeper.program(SOLVE[effort] if named or until is None else until - clock())
    fixed = None if prices is None else sweeper.feasible(prices, until)
    if fixed is not None:
        out.values["linear program"] = total(task, fixed)
        out.prices = fixed


def _by_ascent(task: Task, out: Bounds, sweeper: Sweeper, effort: str, until: float | None, spent: float) -> None:
    """Add the bound by dual ascent, then that by subgradients if they still gain; spent: seconds of one sweep."""
    assert out.cheapest is not None
    # Under diversity by frequency no cascade uses prices, and on stars they prove less than "combined".
    idle = sweeper.per_value and out.best[0] == "combined"
    close = close_shares(task)  # dual ascent ignores t-closeness
    idle = idle or (close is not None and close.apart.size == close.whole == 0)
    steep = effort == "thorough" and (sweeper.group >= STEEP or sweeper.mixed)
    rounds = 1 if steep and sweeper.mixed and until is not None else ROUNDS[effort]
    # Subgradients prove more in the same time than the later rounds.
    stop = until if until is None or not steep else clock() + ASCENT * (until - clock())
    raised = sweeper.ascend(out.cheapest, 0 if idle else rounds, stop, spent)
    if raised is None:
        return
    out.prices = raised
    out.values["dual ascent"] = total(task, raised)
    if not steep:
        return
    moved = sweeper.by_subgradients(raised, until)
    out.classes = None if sweeper.mixed else moved.classes
    if moved.over is not None and (least := total(task, moved.prices, moved.over)) > out.values["dual ascent"]:
        out.values["subgradients"] = least
    if moved.feasible is not None and (least := total(task, moved.feasible)) > out.values["dual ascent"]:
        out.prices = moved.feasible
        out.values["subgradients"] = max(least, out.values.get("subgradients", 0.0))


def close_shares(task: Task) -> CloseShares | None:
    """The condition on shares that bounds the prices of close classes: t-closeness by any distance, else the largest
    share of each value; None if there is none, or the column has too many values."""
    rules = [rule for rule in task.requirement.rules if rule.measure.kind in ("equal", "ordered", "tree")]
    rule = min(rules, key=lambda rule: (rule.measure.kind != "equal", rule.measure.number), default=None)
    if rule is None:
        return _largest_shares(task)
    if len(rule.table) > VALUES[rule.measure.kind]:
        return None
    share = np.array(rule.table, float) / max(sum(rule.table), 1)
    value = np.ascontiguousarray(task.histogram.sensitive[:, rule.columns[0]], dtype=np.int64)
    apart = np.zeros((0, 0))
    if rule.measure.kind == "ordered":
        place = (np.cumsum(share > 0) - 1.0) / rule.measure.whole
        apart = np.abs(place[:, None] - place)
    elif rule.measure.kind == "tree":  # distance: share of the levels at which they are in different classes
        levels = np.array(rule.measure.table[1 : 1 + rule.measure.whole * share.size]).reshape(-1, share.size)
        apart = (levels[:, :, None] != levels[:, None]).mean(axis=0) if len(levels) else np.zeros((share.size,) * 2)
    t, least = rule.measure.number + 2 * CLOSE, task.requirement.smallest
    return CloseShares(value, task.histogram.count, share, apart, t, least, COUNTED, np.zeros(0, np.int64), 0)


def _largest_shares(task: Task) -> CloseShares | None:
    """The condition that limits the share of each value, such as diversity by frequency."""
    asked = shares_of(task)
    if asked is None or asked.weight.size > VALUES["equal"]:
        return None
    value = np.ascontiguousarray(task.histogram.sensitive[:, asked.column], dtype=np.int64)
    share, least = np.minimum(asked.weight / asked.l, 1.0), task.requirement.smallest
    return CloseShares(
        value,
        task.histogram.count,
        share,
        np.zeros((0, 0)),
        0.0,
        least,
        COUNTED,
        asked.weight.astype(np.int64),
        asked.l,
    )


def _by_closeness(
    task: Task, out: Bounds, sweeper: Sweeper, close: CloseShares, effort: str, until: float | None
) -> None:
    """Add the bound of close classes, or of limited shares: prices raised in sweeps over the classes.

    They begin with those of the multipliers, if any.
    """
    prices = out.prices if out.multipliers is None else out.multipliers.prices
    assert prices is not None
    proved, seconds = 0.0, 0.0
    for _ in range(CLOSENESS[effort]):
        began = clock()
        found = None if until is not None and began + seconds > until else sweeper.close(close, prices, until)
        if found is None:
            break
        prices, seconds = found, clock() - began
        before, proved = proved, total(task, prices)
        if proved > max(out.values.values()):
            out.prices = prices
        out.values["limited shares" if close.whole else "close classes"] = max(proved, before)
        if proved < (1 + LITTLE) * before:
            break


def total(task: Task, prices: np.ndarray, over: float = 0.0) -> float:
    """The bound that row prices prove, in the recoding's unit, rounded down; an int for stars.

    over  the most by which all groups of a partition together can exceed their loss
    """
    exact = math.fsum(prices * task.histogram.count) - over
    lowered = exact - 1e-9 * math.fsum(np.abs(prices) * task.histogram.count) - 1e-9
    if task.recoding.unit == "stars":
        return max(math.ceil(lowered - 1e-6), 0)
    return max(lowered, 0.0) / max(task.histogram.rows * len(task.recoding.columns), 1)


class SubgradientPrices(NamedTuple):
    """Prices moved along subgradients; None for what a sweep had no time to find.

    prices    float64[m]  those of the largest value;  over  by how much all classes together exceed their cost there
    feasible  float64[m]  these prices lowered until no class exceeds its cost
    classes   those that were examined
    """

    prices: np.ndarray
    over: float | None = None
    feasible: np.ndarray | None = None
    classes: Classes | None = None


class Sweeper:
    """Sweeps over all nodes of a lattice, on all cores."""

    def __init__(self, task: Task, lattice: Lattice, looks: float = np.inf) -> None:
        need, histogram = task.requirement, task.histogram
        asked = sorted(need.sensitive_columns, key=lambda j: -max(need.frequency[j], need.distinct[j]))
        self.task, self.lattice, self.looks, self.asked = task, lattice, looks, asked
        self.up, self.at, self.size, self.exact = lattice.flat
        self.loss = np.concatenate([level.reshape(-1) for level in lattice.loss])
        self.sensitive = np.ascontiguousarray(histogram.sensitive[:, asked])
        self.values = np.array([max(histogram.sensitive_sizes[j], 1) for j in asked], np.int64)
        self.distinct = np.array([max(need.frequency[j], need.distinct[j]) for j in asked], np.int64)
        frequency = max((need.frequency[j] for j in asked), default=1)
        self.per_value = len(asked) == 1 and frequency > 1 and frequency == need.smallest
        self.mixed = bool(asked) and not self.per_value and int(self.distinct[0]) > 1
        self.group = need.smallest
        entropy = lattice.entropy(task)
        self.columns = np.array(sorted(range(len(entropy)), key=lambda j: float(entropy[j][0])), np.int64)
        self.height = np.array(lattice.heights, np.int64)

    @property
    def workers(self) -> int:
        """The number of cores for one sweep."""
        return cores(self.task.histogram.quasi.size * float(self.lattice.nodes))

    @property
    def table(self) -> sweep.CellsInLattice:
        """The cells in the lattice, for the kernels."""
        quasi = self.task.histogram.quasi
        return sweep.CellsInLattice(quasi, self.up, self.at, self.size, self.height, self.columns, self.loss)

    def _budget(self, until: float | None) -> list[np.int64]:
        """The number of cells that each worker may examine in one sweep."""
        most = self.looks / self.workers
        if until is not None:
            most = min(most, PACE * max(until - clock(), 0.0))
        return [np.int64(min(most, 2.0**62))] * self.workers

    def _dealt(self, one: Callable[[int, np.ndarray], bool], until: float | None) -> bool:
        """Run ``one`` for every part of the lattice on the workers; whether each part was done.

        one  processes a part, given the worker's number and the levels of the first columns int64[f]; whether to go on
        """
        workers, split = self.workers, 0
        parts_of = max(4 * workers, self.task.histogram.cells * float(self.lattice.nodes) / (PASSED * AT_ONCE))
        while split < self.columns.size and np.prod(self.height[self.columns[:split]]) < parts_of:
            split += 1
        left, lock, stop = iter(list(np.ndindex(*self.height[self.columns[:split]]))), Lock(), flag()

        def all_of(worker: int) -> bool:
            while True:
                with lock:
                    levels = next(left, None)
                if levels is None:
                    return True
                if stop.is_set() or (until is not None and clock() > until):
                    return False
                if not one(worker, np.array(levels, np.int64)):
                    return False

        done = all(each(all_of, range(workers), workers))
        self.task.progress("bound", None)
        return done

    def close(self, asked: CloseShares, price: np.ndarray, until: float | None) -> np.ndarray | None:
        """Prices float64[m] under which no group within t of any class exceeds its loss, made of any prices float64[m].

        None as in ``run``.
        """
        from shoal.kernels import quick

        out = [np.full(price.size, np.inf) for _ in range(self.workers)]
        looks, order, table = self._budget(until), np.argsort(-price, kind="stable"), self.table
        kernel = quick(close_sweep, self.task.histogram.quasi.size * float(self.lattice.nodes))

        def one(worker: int, fixed: np.ndarray) -> bool:
            looks[worker] = kernel(table, asked, price, order, fixed, looks[worker], out[worker])
            return bool(looks[worker] >= 0)

        done = self._dealt(one, until)
        found: np.ndarray = np.minimum.reduce(out)
        return found - 1e-12 * (1.0 + np.abs(found)) if done and np.isfinite(found).all() else None

    def run(
        self,
        mode: int,
        price: np.ndarray,
        active: np.ndarray,
        until: float | None,
        start: float = np.inf,
        tight: Sequence[Tight] = (),
    ) -> np.ndarray | None:
        """The least over all nodes for every cell, float64[m]; None if the time or the budget of cells is over.

        mode   as for the kernel ``sweep``;  tight  for TIGHT_CLASSES: where each core lists classes
        """
        from shoal.kernels import quick

        h = self.task.histogram
        workers = self.workers
        order = np.argsort(-price, kind="stable") if mode != sweep.CHEAPEST else np.arange(h.cells)
        prices = sweep.CellPrices(price if mode != sweep.CHEAPEST else np.zeros(h.cells), order, active)
        need = sweep.Need(
            self.sensitive,
            self.values,
            h.count,
            self.task.requirement.smallest,
            self.distinct,
            self.group,
            self.per_value,
        )
        found = [np.full(h.cells, start) for _ in range(workers)]
        at_node = [
            np.full(int(self.lattice.nodes) if mode == sweep.LEAST_AT_NODE else 0, np.inf) for _ in range(workers)
        ]
        if mode == sweep.EXCESS:
            at_node = [np.zeros(1) for _ in range(workers)]
        looks = self._budget(until)
        kernel = quick(sweep.sweep, h.quasi.size * float(self.lattice.nodes))

        def one(worker: int, fixed: np.ndarray) -> bool:
            least = sweep.SweepResult(found[worker], at_node[worker])
            room = tight[worker] if tight else NONE if mode == sweep.EXCESS else None
            looks[worker] = kernel(self.table, need, prices, fixed, mode, looks[worker], least, room)
            return bool(looks[worker] >= 0)

        done = self._dealt(one, until)
        if mode == sweep.EXCESS and done:
            return np.add.reduce(at_node)
        return np.minimum.reduce(at_node if mode == sweep.LEAST_AT_NODE else found) if done else None

    def excess(self, price: np.ndarray, allowance: float, until: float | None) -> np.ndarray | None:
        """For each node, the least over its classes of what the K most expensive rows cost above their prices, per row.

        float64[levels of each column]; infinite above the allowance. None as in ``run``.
        """
        found = self.run(sweep.LEAST_AT_NODE, price, np.zeros(0, bool), until, self.group * allowance + 1e-9)
        if found is None:
            return None
        return found.reshape(self.height[self.columns]).transpose(np.argsort(self.columns)) / self.group

    def ascend(self, price: np.ndarray, rounds: int, until: float | None, spent: float) -> np.ndarray | None:
        """Prices raised in some rounds and checked again; None if there was no time for a round and the check."""
        raised = None
        # A round raises each active price by its part of the slack in its tightest class. With little time, there is
        # one step that divides the slack by the least size.
        for _ in range(rounds):
            since, current = clock(), price if raised is None else raised
            left = np.inf if until is None else (until - since) / max(spent, 1e-9)
            if left < (HALF if raised is None else 4):
                break
            slack = self.run(sweep.LEAST_SLACK, current, np.zeros(0, bool), until)
            if slack is None:
                break
            if raised is None and left < WHOLE:
                raised = current + np.maximum(slack, 0.0) * (1 - 1e-12) / self.group
                break
            active = slack > 1e-9
            if not active.any():
                break
            step = self.run(sweep.SHARED_SLACK, current, active, until)
            if step is None:
                break
            spent = 0.5 * (clock() - since)
            new = current + np.where(active & np.isfinite(step), np.maximum(step, 0.0) * (1 - 1e-12), 0.0)
            gain = float(((new - current) * self.task.histogram.count).sum())
            raised = new
            if gain < 1e-3 * float((new * self.task.histogram.count).sum()):
                break
        return None if raised is None else self.feasible(raised, None)

    def tight(self, price: np.ndarray, allowance: float, until: float | None) -> Classes | None:
        """The classes whose K most expensive rows have less slack than the allowance, per row; None as in ``run``."""
        for rows in (self.task.histogram.rows, SCARCE * self.group) if self.mixed else (DEAR * self.group,):
            found = [Tight.empty(LISTED, rows) for _ in range(self.workers)]
            if (
                self.run(sweep.TIGHT_CLASSES, price, np.zeros(0, bool), until, self.group * allowance, found)
                is not None
            ):
                return Classes.of(found)
            if until is not None and clock() > until:
                break
        return None

    def by_subgradients(self, price: np.ndarray, until: float | None) -> SubgradientPrices:
        """Prices moved along subgradients of the bound by nearly tight classes, and what a sweep then proves.

        Under diversity by frequency, the prices stay as they are.
        """
        from shoal.problems.programs import state_of

        if self.per_value:
            return SubgradientPrices(price)
        count = self.task.histogram.count
        value = self.sensitive[:, 0].astype(np.int64) if self.mixed else np.zeros(count.size, np.int64)
        distinct = int(self.distinct[0]) if self.mixed else 1
        sum_of = float((price * count).sum())
        asked, known = BoundedRows(count, value, distinct, self.group), None
        best, trend = price.copy(), np.zeros(price.size)
        last, limit = np.inf, until
        top, step = sum(float(loss.max()) for loss in self.lattice.loss), 1.0
        # Each round adds the classes that are tight within its share, and moves the prices against all classes known.
        for share in MIXED if self.mixed else SLACKS:
            began = clock()
            if began > last:
                break
            new = self.tight(best, share * sum_of / float(count.sum()), limit)
            if new is None or not new.cost.size:  # the steps so far still count
                break
            if until is not None:  # each of the last sweeps takes about as long, at first up to three times
                last = limit = until - (4 if known is None else 3) * (clock() - began)
            known = new if known is None else new.joined(known)
            most = np.full(price.size, top)
            if self.mixed:  # so that no K rows of another class exceed its cost
                most = np.minimum(most, best + share * sum_of / float(count.sum()))
            ascent = Ascent(best.copy(), best, trend, state_of(step))
            done, passes = 0, int(min(PASSES[self.mixed], MEMBERS[self.mixed] / known.member.size))
            with threads(cores(known.member.size)) as some:
                while done < passes and clock() < last:
                    subgradient_steps(known, asked, most, ascent, SLICE, sum_of, GAP * sum_of, some)
                    done += SLICE
            step = max(ascent.state[1], 0.3 * step)
        if known is None:
            return SubgradientPrices(price)
        # For k alone, feasible prices prove nearly as much, and the search uses them, so they come first.
        feasible = None if self.mixed else self.feasible(best, until)
        over = self.run(sweep.EXCESS, best, np.zeros(0, bool), until, 0.0)
        feasible = self.feasible(best, until) if self.mixed else feasible
        return SubgradientPrices(best, None if over is None else float(over[0]), feasible, known)

    def feasible(self, price: np.ndarray, until: float | None) -> np.ndarray | None:
        """Prices lowered, row by row, until no group of any class exceeds its cost; None if the time is over."""
        slack = self.run(sweep.SLACK_WITH_VALUES, price, np.zeros(0, bool), until, 0.0)
        return None if slack is None else price + slack / self.group - 1e-12

    def program(self, seconds: float) -> np.ndarray | None:
        """Optimal prices by linear programming (HiGHS); None if it fails or takes longer than ``seconds``.

        Maximize the sum of prices so that in every class K t + sum of z <= K c and price <= t + z, z >= 0; this is
        equivalent to the K largest prices having at most the sum K c. One z per cell, or per sensitive value under
        diversity by frequency.
        """
        from scipy.sparse import csr_array

        from shoal.problems.programs import LinearConstraints, solve

        h = self.task.histogram
        m = column = h.cells
        row: list[int] = []
        col: list[int] = []
        val: list[float] = []
        limit: list[float] = []
        cost_of: list[float] = []
        # Each class that can contain an eligible group has one line for its K largest prices, and one for each cell.
        for node in self.lattice.ordered(self.task):
            keys = np.stack([self.lattice.up[j][node[j]][h.quasi[:, j]] for j in range(len(node))], axis=1)
            label = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
            for x in range(int(label.max()) + 1):
                here = np.flatnonzero(label == x)
                if h.count[here].sum() < self.task.requirement.smallest:
                    continue
                if any(np.unique(self.sensitive[here, j]).size < k for j, k in enumerate(self.distinct)):
                    continue
                c = sum(float(self.lattice.loss[j][node[j], h.quasi[here[0], j]]) for j in range(len(node)))
                t = column
                names, z = np.unique(self.sensitive[here, 0] if self.per_value else here, return_inverse=True)
                z = z.reshape(-1) + t + 1
                weight = np.ones(names.size) if self.per_value else np.minimum(h.count[here], self.group)
                line = len(limit)
                row += [line] * (names.size + 1)
                col += [t, *range(t + 1, t + 1 + names.size)]
                val += [float(self.group), *weight.tolist()]
                limit.append(self.group * c)
                for i, own in zip(here.tolist(), z.tolist(), strict=True):
                    line = len(limit)
                    row += [line] * 3
                    col += [i, t, own]
                    val += [1.0, -1.0, -1.0]
                    limit.append(0.0)
                column = t + 1 + names.size
                cost_of += [-1.0] + [0.0] * names.size
        if column > 4 * max(SMALL.values()):
            return None
        objective = np.zeros(column)
        objective[:m] = -h.count
        matrix = csr_array((val, (row, col)), shape=(len(limit), column))
        below = np.array([-np.inf] * m + [-np.inf if c < 0 else 0.0 for c in cost_of])
        limits = LinearConstraints(matrix, np.full(len(limit), -np.inf), np.array(limit))
        found = solve(objective, limits, below, np.full(column, np.inf), whole=False, seconds=seconds)
        return found.x[:m] if found.finished and found.x is not None else None
