"""Least loss as an integer program over closed patterns: its size depends on row classes and patterns, not on rows.

Groups that publish the same row may be merged, so a partition is how many rows of each class are published as each
pattern.  A pattern in use holds k rows; at most 1/l of them share a value; l values are present.  A close relative is
the program of Bredereck, Nichterlein, Niedermeier, "Pattern-guided k-anonymity", Algorithms 2013.

First the linear program with its cuts (``pattern_relaxation``).  Then the whole numbers over the patterns that it and
the partition in hand use.  What then lies between bound and cost says which patterns and places
can still be part of a cheaper partition, and the last program decides over those (``docs/exact.md``).
HiGHS solves these programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import NamedTuple

import highspy
import numpy as np
from scipy.sparse import csr_array, vstack

from shoal.clock import clock
from shoal.model.histogram import Partition, distribute
from shoal.model.privacy import Requirement
from shoal.model.task import Task
from shoal.problems.programs import Solver
from shoal.problems.tables.exact.group_program import GroupProgram
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    PatternModel,
    RowClasses,
    SharedPrices,
    completed,
    conditions_of,
    least_sizes,
    model_of,
    places_of,
    priced,
)
from shoal.problems.tables.exact.pattern_relaxation import (
    ColumnProgram,
    Relaxed,
    Violated,
    counted,
    crowded,
    meeting,
    paid,
    program_of,
    relaxation,
    rows_of,
    ruled,
    shared,
)
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import Patterns, patterns, whole_cost
from shoal.problems.threads import BackgroundCalls

NEARBY = ("rins", "rens", "root_reduced_cost")  # programs of their own around the solutions known


def decide(
    model: PatternModel,
    cols: np.ndarray,
    seconds: float,
    begin: np.ndarray | None,
    gap: float,
    *,
    improves: bool = True,
    seed: int = 0,
    stop: Event | None = None,
) -> tuple[np.ndarray | None, float]:
    """(solution over these columns or None, bound on all of them) of the integer program within some seconds.

    improves  whether time goes into better solutions near those known; without it a proof takes about half as long
    seed      of the solver's random numbers
    stop      ends the search when set
    """
    part = csr_array(model.lines[:, cols])
    rows = np.flatnonzero((np.diff(part.indptr) > 0) & ((model.owner >= 0) | (model.low > 0)))
    if np.setdiff1d(np.flatnonzero((model.owner < 0) & (model.low > 0)), rows).size:
        return None, math.inf  # some rows could not be published at all
    part = csr_array(part[rows])
    program = program_of(model, cols, part, rows, model.whole[cols])
    solver = Solver()
    solver.setOptionValue("mip_abs_gap", gap)
    solver.setOptionValue("mip_allow_restart", False)  # most proofs end at the root
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("random_seed", seed)
    if not seed:  # a second proof branches the other way, so that one of them may be quick
        solver.setOptionValue("mip_pscost_minreliable", 0)  # trials of branches took most of the time
    solver.setOptionValue("mip_pool_age_limit", 5)  # cuts that have not cut lately make every node slower
    if not improves:
        solver.setOptionValue("mip_heuristic_effort", 0.0)
        for part_of_it in NEARBY:
            solver.setOptionValue(f"mip_heuristic_run_{part_of_it}", False)
    if stop is not None:
        solver.cbMipInterrupt += lambda event: event.interrupt() if stop.is_set() else None
    solver.passModel(program)
    if begin is not None:
        solver.start_from(begin.tolist())
    optimal, info = solver.solved(), solver.getInfo()
    if solver.infeasible:
        return None, math.inf
    bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else -math.inf
    if not solver.feasible:
        return None, bound
    y = solver.x
    if optimal:
        bound = max(bound, float(info.objective_function_value) - gap)
    return flowed(model, program, cols, y), bound


def flowed(model: PatternModel, program: highspy.HighsLp, cols: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A solution whose rows are whole: with the integers fixed a corner of what is left, which is a flow."""
    if np.abs(y - np.rint(y)).max(initial=0.0) < 1e-6:
        return y
    fixed = model.whole[cols]
    low, high = np.zeros(cols.size), model.most[cols].copy()
    low[fixed] = high[fixed] = np.rint(y[fixed])
    program.col_lower_, program.col_upper_ = low, high
    program.integrality_ = []
    solver = Solver(solver="simplex")
    solver.passModel(program)
    solver.run()
    return solver.x


VARIABLES = 400_000
FIRST = 0.4  # share of the seconds for the first linear program
SUPPORT = 0.25  # share of the seconds for the patterns that the linear program uses, and for one over fewer places
NARROWINGS, NARROWER = 2, 0.8  # times that places are left out, while at most this share of them would stay
NEAR = 0.4  # part of what lies between bound and cost, within which patterns are looked at first
USED = 1e-7  # rows of a pattern that count as used
LAST = 1  # seed of the second proof
LATE = 0.1  # seconds after the last ones that it is waited for: the solver does not always look at its clock
LISTING = 0.15  # share of the seconds for the linear program over listed groups, and for dives
PARTS = (1.0, 0.5, 0.25, 0.125)  # of what lies between bound and cost, up to which groups are listed
FEW = 4_000  # places up to which a proof is tried however far the bound is
CAREFUL = 1e-6  # of the losses, by which bound and fixing err to the safe side


class ProgramLimits(NamedTuple):
    """Where to stop: "seconds"; "memory" above so many places; "gap" when, after the patterns of the linear program are
    decided, the cost is more than ``hopeless`` times its bound."""

    seconds: float
    places: int = VARIABLES
    hopeless: float = math.inf


def pattern_program(
    task: Task, costs: Costs, row_classes: RowClasses, start: Partition, limits: ProgramLimits
) -> tuple[Partition, int, str | None]:
    """(best partition, whole-number lower bound, limit reached); start is a partition to begin with.

    Linear and integer programs by HiGHS.
    """
    deadline = clock() + limits.seconds
    need = task.requirement
    found = patterns(costs, task.recoding, need.smallest)
    upper = whole_cost(costs, task, start)
    least = found.least(costs.types)
    lower = int(np.maximum(least, 0) @ costs.count) if found.all else 0
    if lower == upper:
        return start, lower, None
    if not found.all:
        return start, lower, "memory"
    places = places_of(row_classes, found, need)
    if places.row_class.size > limits.places:
        return start, lower, "memory"
    task.progress(f"deciding over {found.loss.size:,} patterns", None)
    search = _PatternSearch(task, costs, row_classes, found, places, deadline)
    search.hold(start, upper)
    search.lower, search.price = lower, search.lost()
    stopped = search.run(limits.hopeless)
    return search.partition, search.lower, stopped


class ProgramResult(NamedTuple):
    """What a program came to.

    rows   of every place, int64[n] each, of the partitions found
    bound  what no partition over its columns costs less than, in whole numbers; infinite when they hold none cheaper
    model  with the lines that solutions on the way violated
    """

    rows: list[np.ndarray]
    bound: float
    model: PatternModel


class _PatternSearch:
    """Bound and best partition in whole numbers; ``step`` divides every cost."""

    def __init__(
        self, task: Task, costs: Costs, row_classes: RowClasses, found: Patterns, places: PatternFits, deadline: float
    ) -> None:
        self.task, self.costs, self.row_classes, self.found, self.places = task, costs, row_classes, found, places
        self.deadline, self.need = deadline, task.requirement
        self.model = model_of(row_classes, places, self.need, found.loss / costs.scale)
        self.step = math.gcd(*np.unique(found.loss).tolist()) or 1
        self.lower, self.price = 0, np.zeros(row_classes.count.size)
        self.by_columns = len(conditions_of(self.need)) == 1
        self.shared: SharedPrices | None = None

    def hold(self, partition: Partition, upper: int) -> None:
        """The best partition so far, whose patterns are looked up."""
        self.partition, self.upper = partition, upper
        self.x = published(self.task, self.costs, self.row_classes, self.found, self.places, partition)

    def lost(self) -> np.ndarray:
        """What a row of each class loses in the best partition, float64[r]."""
        loss = self.found.loss[self.places.pattern] / self.costs.scale
        whole = np.bincount(self.places.row_class, weights=self._rows() * loss, minlength=self.row_classes.count.size)
        return whole / self.row_classes.count

    def run(self, hopeless: float) -> str | None:
        """Search until bound and cost meet or a limit is reached; returns the limit, None if they met."""
        # As one program it is slower with the dense lines of three rows, which wait for fewer places.
        rows = self._relaxed(self._broken_or_met, FIRST) if self.by_columns else self._relaxed(self._broken)
        if rows is None:
            return "seconds"
        if self.upper > self.lower:
            self._supported(rows, SUPPORT)
        if self.upper > self.lower and self.places.row_class.size > FEW and self.upper > hopeless * self.lower:
            return "gap"
        self._by_groups()
        for turn in range(NARROWINGS):
            kept = self._within(1.0)[0][: self.model.n]
            if self.upper <= self.lower or (kept.sum() > NARROWER * kept.size and (turn or self.by_columns)):
                break
            rows = self._narrowed(kept)
            if rows is None:
                break
            if self.upper > self.lower:
                self._supported(rows, SUPPORT)
            self._by_groups()
        if self.upper > self.lower:
            self._prove()
        return None if self.upper <= self.lower else "seconds"

    def _relaxed(self, violated: Violated, share: float = 1.0) -> np.ndarray | None:
        """Rows of every place, float64[n], of the linear program, whose prices prove what they can; None: no time."""
        until, loss = clock() + share * (self.deadline - clock()), self.found.loss / self.costs.scale
        count, self.proofs = self.row_classes.count, []
        if self.by_columns:
            program = ColumnProgram(self.row_classes, self.places, self.need, self.model)
            relaxed = program.solve(self.price, self.upper / self.costs.scale, until, violated)
        else:
            solved = relaxation(self.model, until, violated)
            if solved is None:
                return None
            model, price, rows = solved
            tight = (model.low >= 0) | (price > USED)  # of the lines added, those that raised the bound
            model, price = model.with_only(tight), price[tight]
            value, spare = counted(model, price)  # does not rest on the solver, nor do the others
            fewest = least_sizes(self.row_classes, self.places, self.need)
            use = spare[model.uses.column].reshape(-1, model.patterns).min(axis=0)
            pattern, place = paid(self.places, count, fewest, spare)
            self.proofs = [(value, pattern + use, place + use[self.places.pattern])]
            relaxed = Relaxed(model, price[model.owner < 0], shared(model, price), rows)
        self.model, self.price, self.shared = relaxed.model, relaxed.price, relaxed.shared
        self.proofs.append(priced(self.row_classes, self.places, self.need, loss, relaxed.price, relaxed.shared))
        for value, _, _ in self.proofs:
            self._raise(min(value * self.costs.scale, self.upper))
        return relaxed.rows

    def _supported(self, rows: np.ndarray, share: float) -> None:
        """What the patterns of the linear program, by its rows of every place, and of the best partition make."""
        used = np.bincount(self.places.pattern, weights=rows + self._rows(), minlength=self.places.patterns) > USED
        self._take(self._program(used[self.model.pattern], share)(Event()))

    def _by_groups(self) -> None:
        """A search over all groups that something cheaper may use, where these can be listed.

        Where they are too many, dives into part of them may find a cheaper partition, below which they are fewer.
        """
        part = 0
        while self.shared is not None and part < len(PARTS) and self.lower < self.upper and clock() < self.deadline:
            enough, unit = (self.upper - self.step) / self.costs.scale, self.step / self.costs.scale
            losses = self.found.loss / self.costs.scale, enough
            groups = GroupProgram.listed(
                self.row_classes,
                self.places,
                self.found,
                self.need,
                losses,
                (self.price, self.shared),
                self.model,
                PARTS[part],
            )
            if groups is None:
                part += 1
                continue
            upper, whole = self.upper, part == 0
            groups.tighten(enough, clock() + LISTING * (self.deadline - clock()))
            for x in groups.dives(enough, unit, clock() + LISTING * (self.deadline - clock())):
                self._keep(x)
            if self.upper < upper:
                part = 0
                if not whole:
                    continue
            elif not whole:
                return
            enough = (self.upper - self.step) / self.costs.scale
            groups.leave(enough)
            found, proved = groups.branched(enough, unit, self.deadline)
            for x in found:
                self._keep(x)
            self._raise(min(proved * self.costs.scale, self.upper))
            return

    def _within(self, part: float) -> tuple[np.ndarray, float]:
        """Columns that may be used below a part of what lies between each bound and cost; what others cost."""
        kept, beyond = np.ones(self.model.cost.size, bool), math.inf
        for value, pattern, place in self.proofs:
            slack = part * ((self.upper - self.step) / self.costs.scale - value)
            kept &= (pattern <= slack + CAREFUL)[self.model.pattern]
            kept[: self.model.n] &= place <= slack + CAREFUL
            beyond = min(beyond, (value + slack) * self.costs.scale)
        return kept, beyond

    def _narrowed(self, kept: np.ndarray) -> np.ndarray | None:
        """The linear program over the places that something cheaper may use, with more lines, as ``_relaxed``.

        What uses another place costs as much as the best partition, so a bound of these is one of all up to there.
        """
        self.places = PatternFits(self.places.row_class[kept], self.places.pattern[kept], self.places.patterns)
        self.model = model_of(self.row_classes, self.places, self.need, self.found.loss / self.costs.scale)
        self.hold(self.partition, self.upper)
        return self._relaxed(self._broken_or_met, SUPPORT)

    def _prove(self) -> None:
        """Looks nearby for what is cheaper, and proves beside it, where there is a core for it, that nothing is.

        The proof counts where it finds nothing cheaper than what is known.  What is found nearby is published where it
        can be, so a seed gives the same however fast either is, and on one core, where they follow each other.  After
        the looks nearby a second proof, of other random numbers, runs beside the first: the luckier one ends both.
        """
        (near, beyond), everything = self._within(NEAR), self._within(1.0)[0]
        if near.sum() >= 0.5 * everything.sum():
            near, beyond = everything, math.inf
        with BackgroundCalls() as run:
            proof = run.start(self._program(everything, 1.0, improves=False)) if run.cores > 1 else None
            search = run.start(self._program(near, 1.0 if math.isinf(beyond) else 0.5))
            if self._outrun(run, search, proof):
                return
            if self._ends(run, search, beyond):
                return
            last = run.start(self._program(self._within(1.0)[0], 1.0, improves=False, seed=LAST))
            if self._outrun(run, last, proof):
                return
            if not self._ends(run, last) and proof is not None:
                self._ends(run, proof)

    @property
    def _late(self) -> float:
        """Seconds for which what runs is still waited for."""
        return self.deadline + LATE - clock()

    def _outrun(self, run: BackgroundCalls, other: Future[ProgramResult], proof: Future[ProgramResult] | None) -> bool:
        """Whether the proof ends before the other program, and bound and cost meet then."""
        first = run.first(other, proof, seconds=self._late)
        return first is not None and first is not other and self._raised_to_cost(run.result(first))

    def _ends(self, run: BackgroundCalls, asked: Future[ProgramResult], beyond: float = math.inf) -> bool:
        """What a program has found in time is kept; whether bound and cost meet then."""
        in_time = run.first(asked, seconds=self._late) is not None
        return in_time and self._raised_to_cost(self._take(run.result(asked)), beyond)

    def _raised_to_cost(self, found: ProgramResult, beyond: float = math.inf) -> bool:
        """The bound raised to what a program proved, others costing ``beyond`` at least; whether it meets the cost."""
        self._raise(min(found.bound, self.upper, beyond))
        return self.upper <= self.lower

    def _broken(self, model: PatternModel, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
        lines, low = crowded(self.row_classes, self.places, model, self.need.smallest, y)
        more, zero = ruled(self.row_classes, self.places, model, self.need, y)
        return csr_array(vstack([lines, more])), np.append(low, zero)

    def _broken_or_met(self, model: PatternModel, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
        lines, low = self._broken(model, y)
        more, one = meeting(self.row_classes, self.places, model, y)
        return csr_array(vstack([lines, more])), np.append(low, one)

    def _keep(self, x: np.ndarray) -> None:
        """The rows of every place, if they are a cheaper partition."""
        if holds(x, self.row_classes, self.places, self.need):
            better = distribute(
                self.task.histogram.count, self.row_classes.of, self.places.row_class, self.places.pattern, x
            )
            cost = whole_cost(self.costs, self.task, better)
            if cost < self.upper:
                self.partition, self.upper, self.x = better, cost, x

    def _rows(self) -> np.ndarray:
        return np.zeros(self.places.row_class.size) if self.x is None else self.x

    def _raise(self, bound: float) -> None:
        """A bound in whole numbers: every cost is a multiple of the step, and floats are not trusted to the last."""
        if math.isfinite(bound):
            careful = CAREFUL * self.costs.scale + 1e-9 * abs(bound)
            self.lower = max(self.lower, math.ceil((bound - min(careful, 0.4 * self.step)) / self.step) * self.step)

    def _program(
        self, kept: np.ndarray, share: float, improves: bool = True, seed: int = 0
    ) -> Callable[[Event], ProgramResult]:
        """The integer program over some columns, bool[c], and what is known now, to be solved in any thread."""
        cols, model, begin = np.flatnonzero(kept), self.model, None
        if self.x is not None and not self._rows()[~kept[: model.n]].any():
            begin = completed(self.row_classes, self.places, self.need, self.x)[cols]
        gap = 0.98 * self.step / self.costs.scale

        def solved(stop: Event) -> ProgramResult:
            found, bound, lined = [], -math.inf, model
            while (seconds := share * (self.deadline - clock())) > 0:
                y, proved = decide(lined, cols, seconds, begin, gap, improves=improves, seed=seed, stop=stop)
                bound = max(bound, proved * self.costs.scale)
                if y is None:
                    break
                x = np.zeros(lined.n)
                inside = cols[cols < x.size]
                x[inside] = np.rint(y[: inside.size])
                found.append(x.astype(np.int64))
                lines, low = ruled(self.row_classes, self.places, lined, self.need, x)
                if not low.size:
                    break
                lined = lined.with_lines(lines, low)
            return ProgramResult(found, bound, lined)

        return solved

    def _take(self, found: ProgramResult) -> ProgramResult:
        """Its partitions are kept where they are cheaper, and its lines."""
        for x in found.rows:
            self._keep(x)
        if found.model.low.size > self.model.low.size:
            self.model = found.model
        return found


def published(
    task: Task, costs: Costs, row_classes: RowClasses, found: Patterns, places: PatternFits, partition: Partition
) -> np.ndarray | None:
    """Rows of each place, int64[n], each group under the cheapest pattern that fits it; None where one has none."""
    out = np.zeros(places.row_class.size, np.int64)
    of_type = task.histogram.types[0]
    member = np.zeros((found.loss.size, costs.types), bool)
    member[np.repeat(np.arange(found.loss.size), np.diff(found.start)), found.member] = True
    best = np.argsort(found.loss, kind="stable")
    where = {(int(t), int(p)): i for i, (t, p) in enumerate(zip(places.row_class, places.pattern, strict=True))}
    for g in range(partition.groups):
        here = partition.group == g
        fits = np.flatnonzero(member[best][:, np.unique(of_type[partition.cell[here]])].all(axis=1))
        p = int(best[fits[0]])
        for cell, rows in zip(partition.cell[here].tolist(), partition.count[here].tolist(), strict=True):
            place = where.get((int(row_classes.of[cell]), p))
            if place is None:
                return None
            out[place] += rows
    return out


def holds(x: np.ndarray, row_classes: RowClasses, places: PatternFits, need: Requirement) -> bool:
    """Whether every row is placed and every pattern's rows are eligible, checked in whole numbers."""
    placed = np.bincount(places.row_class, weights=x, minlength=row_classes.count.size)
    if (x < 0).any() or (placed != row_classes.count).any():
        return False
    size = np.bincount(places.pattern, weights=x, minlength=places.patterns)
    if ((size > 0) & (size < need.k)).any():
        return False
    for i, j in enumerate(need.sensitive_columns):
        held = np.zeros((size.size, int(row_classes.value[:, i].max(initial=0)) + 1))
        np.add.at(held, (places.pattern, row_classes.value[places.row_class, i]), x)
        few = (size > 0) & ((held > 0).sum(axis=1) < need.distinct[j])
        if (need.frequency[j] * held.max(axis=1) > size).any() or few.any():
            return False
    return all(
        rule.model.holds(held.astype(np.int64), np.array(rule.table))
        for rule in need.rules
        for held in rows_of(row_classes, places, need, rule, x)[size > 0]
    )
