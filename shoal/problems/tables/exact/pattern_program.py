"""An exact method for small tables: an integer program that assigns rows to published rows (*patterns*) at least loss.

Groups that publish the same row can be merged. So a partition is the number of rows of each class that are published as
each pattern, and the size of the program depends on row classes and patterns, not on rows. The program of Bredereck,
Nichterlein, Niedermeier, "Pattern-guided k-anonymity", Algorithms 2013, is similar. docs/exact.md states the conditions
of the program and the steps of the search, with proofs. HiGHS solves the programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event
from typing import NamedTuple

import highspy
import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from shoal.clock import clock
from shoal.model.histogram import Partition, distribute
from shoal.model.privacy import Requirement
from shoal.model.task import Task
from shoal.problems.programs import Solver
from shoal.problems.tables.exact.group_list import GroupList, GroupPrices, ListLimits, RowSet
from shoal.problems.tables.exact.group_program import MORE_LOOKS, GroupProgram, LongSearch
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
    bound_of_prices,
    crowded_set_cuts,
    least_additions,
    model_cuts,
    program_of,
    relaxation,
    rows_of,
    shared,
    three_row_cuts,
)
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import Patterns, patterns, whole_cost
from shoal.threads import BackgroundCalls

NEARBY = ("rins", "rens", "root_reduced_cost")  # HiGHS's searches near the solutions known


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
    """Solve the integer program over some of its columns: (best solution or None, lower bound).

    cols      int64[c] the columns
    begin     float64[c] a known solution, or None
    gap       the solver may stop if cost and bound differ by at most this much
    improves  whether the solver also searches near known solutions; without this, a proof takes about half as long
    seed      of the solver's random numbers
    stop      if set, the solver stops
    """
    part = csr_array(model.lines[:, cols])
    rows = np.flatnonzero((np.diff(part.indptr) > 0) & ((model.owner >= 0) | (model.low > 0)))
    if np.setdiff1d(np.flatnonzero((model.owner < 0) & (model.low > 0)), rows).size:
        return None, math.inf  # these columns leave some rows unpublished
    part = csr_array(part[rows])
    program = program_of(model, cols, part, rows, model.whole[cols])
    solver = Solver()
    solver.setOptionValue("mip_abs_gap", gap)
    solver.setOptionValue("mip_allow_restart", False)  # most proofs end at the root
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("random_seed", seed)
    if not seed:  # a second proof branches the other way, so that one of them may be quick
        solver.setOptionValue("mip_pscost_minreliable", 0)  # trials of branches took most of the time
    solver.setOptionValue("mip_pool_age_limit", 5)  # unused cuts make every node slower
    if not improves:
        solver.setOptionValue("mip_heuristic_effort", 0.0)
        for heuristic in NEARBY:
            solver.setOptionValue(f"mip_heuristic_run_{heuristic}", False)
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
    return with_whole_rows(model, program, cols, y), bound


def with_whole_rows(model: PatternModel, program: highspy.HighsLp, cols: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A solution with whole numbers of rows: with the integer columns fixed, the rest is a flow with whole corners."""
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
SUPPORT = 0.25  # share of the seconds for a program over the used patterns, and for one over fewer places
NARROWINGS, NARROWER = 2, 0.8  # how often places are left out, and the largest share of them that may then remain
NEAR = 0.4  # the first search uses patterns that add at most this share of cost minus bound
USED = 1e-7  # rows of a pattern that count as used
SECOND_SEED = 1  # of the second proof
GRACE = 0.1  # seconds after the deadline for which results are awaited: the solver reads its clock seldom
DIVING = 0.15  # share of the seconds for dives into the program over listed groups
TIGHTENING, BRANCHING = 0.4, 0.7  # shares of the seconds for the program over listed groups, and for its branches
LAST_BRANCHING = 0.9  # the same at the last cost
PRICING = 0.4  # the same for the prices of all groups
FIRST_LIST = ListLimits(groups=4_000, tried=1_000_000)  # of the first list of groups that are searched
GROWTH = 2.5  # about how many times as many groups the next list has: a search may take many times as long
LARGE, LARGE_GROWTH = 30_000, 5  # the same from so many groups on: there, making a list takes most of the time
LAST_STEP = 0.5  # the next cost is the last one, if it is higher by at most this share of the step before
FIRST_LOOKS = 300_000_000  # of the search for the first partition, if another one is known
FEW = 4_000  # with at most so many places, a proof is tried at any ratio of cost to bound
CAREFUL = 1e-6  # times the losses: a margin for rounding in bounds and in the columns that are left out


class ProgramLimits(NamedTuple):
    """When the search stops early: after some seconds, with more places than the limit, or if, after the program over
    the patterns that the linear program uses, the cost is more than ``largest_ratio`` times the bound."""

    seconds: float
    places: int = VARIABLES
    largest_ratio: float = math.inf


def pattern_program(
    task: Task, costs: Costs, row_classes: RowClasses, start: Partition, limits: ProgramLimits
) -> tuple[Partition, int, str | None]:
    """(best partition, lower bound in whole units, the limit that stopped the search or None).

    start  a partition to begin with
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
    stopped = search.run(limits.largest_ratio)
    return search.partition, search.lower, stopped


class ProgramResult(NamedTuple):
    """The result of an integer program over some columns.

    rows   the partitions found, each as int64[n], the rows of every place
    bound  a lower bound for partitions over these columns, in whole units; infinite if none of them is cheaper
    model  the program, with the lines that solutions violated and that were added
    """

    rows: list[np.ndarray]
    bound: float
    model: PatternModel


class _PricedGroups(NamedTuple):
    """The groups of a table, and the prices of the best bound."""

    groups: GroupList
    prices: GroupPrices


@contextmanager
def on_another_core(search: Callable[[np.ndarray], float]) -> Iterator[Callable[[float], float]]:
    """Run a search on another core, if there is one; the value is its result after some seconds at most.

    search  ends when its argument, int64[1], is set to 1.  Without a result, the value is minus infinity
    """
    stop = np.zeros(1, np.int64)
    with BackgroundCalls() as run:
        job = run.start(lambda _: search(stop)) if run.cores > 1 else None

        def result(seconds: float) -> float:
            if seconds > 0 and job is not None:
                run.first(job, seconds=seconds)
            return job.result() if job is not None and job.done() else -math.inf

        try:
            yield result
        finally:
            stop[0] = 1


class _PatternSearch:
    """A search for the partition of least loss: holds the best partition and the lower bound, in whole units.

    step  a number that divides every cost
    """

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
        """Take a partition as the best so far, and find the patterns of its groups."""
        self.partition, self.upper = partition, upper
        self.x = rows_by_place(self.task, self.costs, self.row_classes, self.found, self.places, partition)

    def lost(self) -> np.ndarray:
        """The mean loss of a row of each class in the best partition, float64[r]."""
        loss = self.found.loss[self.places.pattern] / self.costs.scale
        whole = np.bincount(self.places.row_class, weights=self._rows() * loss, minlength=self.row_classes.count.size)
        return whole / self.row_classes.count

    def run(self, largest_ratio: float) -> str | None:
        """Search until bound and cost are equal or a limit is reached; the limit, or None if they are equal."""
        # The dense cuts over three rows slow a program that isn't solved by columns: there, they follow later.
        rows = (
            self._linear_program(self._cuts_with_three_rows, FIRST)
            if self.by_columns
            else self._linear_program(self._cuts)
        )
        if rows is None:
            return "seconds"
        groups = self._from_both_sides(rows)
        if self.upper > self.lower and self.places.row_class.size > FEW and self.upper > largest_ratio * self.lower:
            return "gap"
        self._over_groups(groups)
        for turn in range(NARROWINGS):
            kept = self._usable_columns(1.0)[0][: self.model.n]
            if self.upper <= self.lower or (kept.sum() > NARROWER * kept.size and (turn or self.by_columns)):
                break
            rows = self._over_fewer_places(kept)
            if rows is None:
                break
            self._over_groups(self._from_both_sides(rows))
        if self.upper > self.lower:
            self._prove()
        return None if self.upper <= self.lower else "seconds"

    def _linear_program(self, violated: Violated, share: float = 1.0) -> np.ndarray | None:
        """Solve the linear program and raise the bound; its rows of every place, float64[n], or None without time."""
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
            tight = (model.low >= 0) | (price > USED)  # of the added lines, those that raised the bound
            model, price = model.with_only(tight), price[tight]
            value, reduced_cost = bound_of_prices(
                model, price
            )  # computed from the prices alone, without trust in the solver
            fewest = least_sizes(self.row_classes, self.places, self.need)
            use = reduced_cost[model.uses.column].reshape(-1, model.patterns).min(axis=0)
            pattern, place = least_additions(self.places, count, fewest, reduced_cost)
            self.proofs = [(value, pattern + use, place + use[self.places.pattern])]
            none = csc_array((model.n, 0))
            relaxed = Relaxed(model, price[model.owner < 0], shared(model, price), rows, none)
        self.model, self.price, self.shared = relaxed.model, relaxed.price, relaxed.shared
        self.groups = relaxed.groups
        self.proofs.append(priced(self.row_classes, self.places, self.need, loss, relaxed.price, relaxed.shared))
        for value, _, _ in self.proofs:
            self._raise_bound(min(value * self.costs.scale, self.upper))
        return relaxed.rows

    def _from_both_sides(self, rows: np.ndarray) -> _PricedGroups | None:
        """A better partition by an integer program; meanwhile, with a second core, a better bound by groups.

        The program is over the patterns of the best partition and of these rows, float64[n]. Its partition counts after
        the search for covers, in this order on any number of cores. Pricing finds no partitions.  Returns the groups
        """
        if self.upper <= self.lower:
            return None
        used = np.bincount(self.places.pattern, weights=rows + self._rows(), minlength=self.places.patterns) > USED
        work, until = self._program(used[self.model.pattern], SUPPORT), self._until(SUPPORT) + GRACE
        with BackgroundCalls() as run:
            job = run.start(work) if run.cores > 1 else None
            priced = self._groups()
            program = self._up_to_costs(priced, covers=True) if priced else None
            cutoff = self._cutoff
            if self.upper > self.lower and job is None:
                self._keep_result(work(Event()))

            def enough(proved: float) -> bool:
                """Keep the bound, and the result when it is there; whether no search has to follow."""
                nonlocal job
                self._raise_bound(min(proved * self.costs.scale, self.upper))
                if job is not None and job.done():
                    self._keep_result(job.result())
                    job = None
                return self.upper <= self.lower

            if priced and self.upper > self.lower:
                program = program or GroupProgram.of(*priced, priced.groups.small(self.groups))
                better = program.priced_out(priced.groups, cutoff, self._until(PRICING), enough)
                if better is not None and better.proved > priced.prices.proved:
                    priced = _PricedGroups(priced.groups, better)
                    self.proofs.append((better.proved, *priced.groups.additions(better)))
            if self.upper > self.lower and job is not None:
                if priced:
                    self._rule_out(priced, job)
                run.first(job, seconds=until - clock())
                enough(0.0)
        return priced

    def _groups(self) -> _PricedGroups | None:
        """All groups, with the prices of the linear program over patterns; None if they can't be listed."""
        if self.shared is None:
            return None
        loss = self.found.loss / self.costs.scale
        groups = GroupList.of(self.row_classes, self.places, self.found, self.need, loss, self.model)
        return None if groups is None else _PricedGroups(groups, groups.proved(self.price, self.shared))

    def _over_groups(self, priced: _PricedGroups | None) -> None:
        """Search over all groups of partitions up to a cost, which rises from the bound to that of the best partition.

        A partition of at most this cost has only groups that add at most this cost minus the bound. So if the search
        finds none, all partitions cost more; and otherwise the cheapest that it finds is the cheapest of all.
        """
        if priced is not None and self.upper > self.lower:
            self._up_to_costs(priced)

    def _up_to_costs(self, priced: _PricedGroups, covers: bool = False) -> GroupProgram | None:
        """The search of ``_over_groups``.

        covers  whether to end at the first cost that covers don't decide.  Returns the program of this cost
        """
        unit, sets = self.step / self.costs.scale, list[RowSet]()
        for program, most in self._programs(priced):
            found, proved = self._covered(program, most, further=not covers)
            if covers and proved <= most and not found:
                return program
            if proved <= most and not found:
                long = program.long_search(most, unit)
                with on_another_core(long.least) as least:
                    sets = program.tighten(most, self._until(TIGHTENING), sets, least)
                    program.remove_costly(most)
                    share = LAST_BRANCHING if most >= self._cutoff else BRANCHING
                    found, proved = program.branched(most, unit, self._until(share), least)
                    known = least(0.0) > -math.inf
                loss = self.found.loss[self.places.pattern] / self.costs.scale
                if proved <= most and (known or (found and proved > loss @ found[-1] - 0.5 * unit)):
                    # The same partition, whichever search has ended first
                    found = self._first(long, proved, FIRST_LOOKS) or found or self._first(long, proved)
            for x in found:
                self._keep_if_cheaper(x)
            self._raise_bound(min(proved * self.costs.scale, self.upper))
            if proved <= most and not found:
                for x in program.dives(self._cutoff, unit, self._until(DIVING)):
                    self._keep_if_cheaper(x)
                break
        return None

    def _rule_out(self, priced: _PricedGroups, job: Future[ProgramResult]) -> None:
        """Raise the bound by covers alone until a job ends, or a partition is found. Partitions are left to others."""
        unit = self.step / self.costs.scale
        for program, most in self._programs(priced):
            found, proved = self._covered(program, most)
            if proved <= most and not found and not job.done():
                program.tighten(most, self._until(TIGHTENING))
                with on_another_core(program.long_search(most, unit).least) as least, BackgroundCalls() as run:
                    while least(0.0) == -math.inf and run.first(job, seconds=GRACE) is None:
                        pass
                    proved = max(proved, least(0.0))
            self._raise_bound(min(proved * self.costs.scale, self.upper))
            if proved <= most or job.done():
                return

    def _first(self, long: LongSearch, cost: float, looks: int = MORE_LOOKS) -> list[np.ndarray]:
        """The first partition of at most a cost that the search finds, if it finds one in time and so many looks."""
        stop = np.zeros(1, np.int64)
        with BackgroundCalls() as run:
            job = run.start(lambda _: long.first(cost, looks, stop))
            run.first(job, seconds=self.deadline - clock())
            stop[0] = 1
            return run.result(job)

    def _covered(self, program: GroupProgram, most: float, further: bool = True) -> tuple[list[np.ndarray], float]:
        """Partitions of at most a cost by covers, and what is proved; with further bounds if they are necessary."""
        unit, found, proved = self.step / self.costs.scale, list[np.ndarray](), program.proved
        if program.cost.size < LARGE or not further:
            found, proved = program.covered(most, unit)
        if further and proved <= most and not found:
            program.add_bounds(most, self._until(TIGHTENING))
            found, proved = program.covered(most, unit)
        return found, proved

    def _programs(self, priced: _PricedGroups) -> Iterator[tuple[GroupProgram, float]]:
        """The programs up to rising costs, each with its cost, until one has too many groups.

        The first has few groups. The numbers of groups up to lower costs tell the cost up to which there are several
        times as many. If a search finds a partition but doesn't end, the next cost is below that of the partition.
        """
        (groups, prices), unit = priced, self.step / self.costs.scale
        before, slack = prices.proved, self._cutoff - prices.proved
        while slack > unit and not groups.listed(prices, slack, FIRST_LIST).all:
            slack /= 2
        while self.lower < self.upper and clock() < self.deadline:
            most = math.floor((prices.proved + slack) / unit) * unit
            if self._cutoff - most < max(LAST_STEP * (most - before), 0.5 * unit):
                most = self._cutoff
            program, upper = GroupProgram.listed(groups, prices, most), self.upper
            if program is None:
                return
            reduced = np.sort(program.reduced)
            if most * self.costs.scale >= self.lower or most == self._cutoff:
                yield program, most
            if self.upper < upper:
                continue
            if most == self._cutoff:
                return
            before, slack = most, most - prices.proved
            part = reduced.size // (GROWTH if reduced.size < LARGE else LARGE_GROWTH)
            slack += max(slack - reduced[int(part)], unit) if reduced.size else max(slack, unit)

    def _until(self, share: float) -> float:
        """The time after a share of the seconds left."""
        return clock() + share * (self.deadline - clock())

    @property
    def _cutoff(self) -> float:
        """The largest cost of a partition that is cheaper than the best one."""
        return (self.upper - self.step) / self.costs.scale

    def _usable_columns(self, part: float) -> tuple[np.ndarray, float]:
        """(columns bool[c] that add at most a part of cost minus bound, a bound for partitions with another column)."""
        kept, cost_of_others = np.ones(self.model.cost.size, bool), math.inf
        for value, pattern, place in self.proofs:
            slack = part * ((self.upper - self.step) / self.costs.scale - value)
            kept &= (pattern <= slack + CAREFUL)[self.model.pattern]
            kept[: self.model.n] &= place <= slack + CAREFUL
            cost_of_others = min(cost_of_others, (value + slack) * self.costs.scale)
        return kept, cost_of_others

    def _over_fewer_places(self, kept: np.ndarray) -> np.ndarray | None:
        """Solve the linear program over the places that a cheaper partition may use, with cuts over three rows.

        A partition that uses another place costs at least as much as the best one. So up to that cost, a bound over
        these places is a bound for all partitions.
        """
        self.places = PatternFits(self.places.row_class[kept], self.places.pattern[kept], self.places.patterns)
        self.model = model_of(self.row_classes, self.places, self.need, self.found.loss / self.costs.scale)
        self.hold(self.partition, self.upper)
        return self._linear_program(self._cuts_with_three_rows, SUPPORT)

    def _prove(self) -> None:
        """Search the columns that add little for a cheaper partition; with a second core, prove meanwhile that none is
        cheaper.

        Partitions come from the search alone, and the proof counts only if it finds none cheaper. So a seed gives the
        same partition for any number of cores. After the search, a second proof with other random numbers runs next to
        the first, and the faster one ends both.
        """
        (near, cost_of_others), everything = self._usable_columns(NEAR), self._usable_columns(1.0)[0]
        if near.sum() >= 0.5 * everything.sum():
            near, cost_of_others = everything, math.inf
        with BackgroundCalls() as run:
            proof = run.start(self._program(everything, 1.0, improves=False)) if run.cores > 1 else None
            search = run.start(self._program(near, 1.0 if math.isinf(cost_of_others) else 0.5))
            if self._proof_decides_first(run, search, proof):
                return
            if self._decides_in_time(run, search, cost_of_others):
                return
            last = run.start(self._program(self._usable_columns(1.0)[0], 1.0, improves=False, seed=SECOND_SEED))
            if self._proof_decides_first(run, last, proof):
                return
            if not self._decides_in_time(run, last) and proof is not None:
                self._decides_in_time(run, proof)

    @property
    def _seconds_left(self) -> float:
        """Seconds for which a running program is still awaited."""
        return self.deadline + GRACE - clock()

    def _proof_decides_first(
        self, run: BackgroundCalls, other: Future[ProgramResult], proof: Future[ProgramResult] | None
    ) -> bool:
        """Whether the proof ends before the other program, and makes bound and cost equal."""
        first = run.first(other, proof, seconds=self._seconds_left)
        return first is not None and first is not other and self._raised_to_cost(run.result(first))

    def _decides_in_time(
        self, run: BackgroundCalls, asked: Future[ProgramResult], cost_of_others: float = math.inf
    ) -> bool:
        """Keep what a program finds in time; whether this makes bound and cost equal."""
        in_time = run.first(asked, seconds=self._seconds_left) is not None
        return in_time and self._raised_to_cost(self._keep_result(run.result(asked)), cost_of_others)

    def _raised_to_cost(self, found: ProgramResult, cost_of_others: float = math.inf) -> bool:
        """Raise the bound to what a program proved, at most ``cost_of_others``; whether it then equals the cost."""
        self._raise_bound(min(found.bound, self.upper, cost_of_others))
        return self.upper <= self.lower

    def _cuts(self, model: PatternModel, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
        lines, low = crowded_set_cuts(self.row_classes, self.places, model, self.need.smallest, y)
        more, zero = model_cuts(self.row_classes, self.places, model, self.need, y)
        return csr_array(vstack([lines, more])), np.append(low, zero)

    def _cuts_with_three_rows(self, model: PatternModel, y: np.ndarray) -> tuple[csr_array, np.ndarray]:
        lines, low = self._cuts(model, y)
        more, one = three_row_cuts(self.row_classes, self.places, model, y)
        return csr_array(vstack([lines, more])), np.append(low, one)

    def _keep_if_cheaper(self, x: np.ndarray) -> None:
        """Keep these rows of every place, int64[n], if they are a cheaper partition."""
        if holds(x, self.row_classes, self.places, self.need):
            better = distribute(
                self.task.histogram.count, self.row_classes.of, self.places.row_class, self.places.pattern, x
            )
            cost = whole_cost(self.costs, self.task, better)
            if cost < self.upper:
                self.partition, self.upper, self.x = better, cost, x

    def _rows(self) -> np.ndarray:
        return np.zeros(self.places.row_class.size) if self.x is None else self.x

    def _raise_bound(self, bound: float) -> None:
        """Raise the lower bound to the next multiple of the step, with a margin for rounding."""
        if math.isfinite(bound):
            careful = CAREFUL * self.costs.scale + 1e-9 * abs(bound)
            self.lower = max(self.lower, math.ceil((bound - min(careful, 0.4 * self.step)) / self.step) * self.step)

    def _program(
        self, kept: np.ndarray, share: float, improves: bool = True, seed: int = 0
    ) -> Callable[[Event], ProgramResult]:
        """A call that solves the integer program over some columns, bool[c], in any thread, from what is known now."""
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
                lines, low = model_cuts(self.row_classes, self.places, lined, self.need, x)
                if not low.size:
                    break
                lined = lined.with_lines(lines, low)
            return ProgramResult(found, bound, lined)

        return solved

    def _keep_result(self, found: ProgramResult) -> ProgramResult:
        """Keep the partitions of a result that are cheaper, and its added lines."""
        for x in found.rows:
            self._keep_if_cheaper(x)
        if found.model.low.size > self.model.low.size:
            self.model = found.model
        return found


def rows_by_place(
    task: Task, costs: Costs, row_classes: RowClasses, found: Patterns, places: PatternFits, partition: Partition
) -> np.ndarray | None:
    """Rows of each place, int64[n], with each group at the cheapest pattern that fits it; None if a group has none."""
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
    """Whether rows of every place are a partition: each row has a place, and the rows of every pattern are eligible."""
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
