"""The default method: runs the methods that fit the effort, returns the cheapest result, and reports every attempt.

On tables of a few hundred cells, the integer class program decides whether the current partition is optimal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.arguments import Effort
from shoal.model.certificate import tight
from shoal.model.histogram import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import certify
from shoal.problems.tables.bounds.bounds import Bounds, lower_bounds, sweep_takes_too_long
from shoal.problems.tables.bounds.class_program import shares_column, size_decides
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import WIDEST, Costs, Lattice
from shoal.problems.tables.methods.pattern_cover import pattern_cover, whole_cost
from shoal.problems.tables.search.cascade import Thinned, guided, rank, scarcity, start, thinned, within_ceilings
from shoal.problems.tables.search.close_classes import anneal_and_search
from shoal.problems.tables.search.close_program import close_rule
from shoal.problems.tables.search.neighborhood import STEPS, looks, neighbor_graph, search, steps_of
from shoal.problems.tables.search.open_close import Candidates, applies, columns_start, flow_start, open_close
from shoal.problems.tables.search.scarce_values import open_and_search, scarce_start
from shoal.problems.tables.separate import holding
from shoal.problems.tables.three_phase import residues
from shoal.threads import SearchThreads

KNOWN = ("band", "entropy", "recursive", "equal", "ordered")  # rules that the class program supports
CELLS, NODES, PLACES = 250, 10_000, 55_000  # cells, lattice nodes, pairs of kind and pattern
EASY = 150_000  # such pairs, if a class has one condition: the linear program uses column generation
SECONDS = {"balanced": 9.5, "thorough": 120.0}  # since the task began; at least half of them for the proof
# above this ratio of cost to the linear program's bound, no proof is tried
HOPELESS = {"balanced": 1.08, "thorough": 1.2}
SEARCHED = 0.3  # share of an effort in seconds that is left to the search


class Proof(NamedTuple):
    """The best partition known, a bound of its loss in the recoding's unit, and the limit that ended the proof."""

    partition: Partition
    bound: float
    stopped: str | None


def decidable(task: Task) -> bool:
    """Whether the table is small enough, and the effort isn't "fast"."""
    columns, need = task.recoding.columns, task.requirement
    if task.effort.name == "fast" or (task.effort.seconds or 2.0) < 2.0:
        return False
    if any(rule.measure.kind not in KNOWN or len(rule.table) > CELLS for rule in need.rules):
        return False
    if task.recoding.hierarchies is None or any(c.held for c in columns):
        return False
    return 0 < task.histogram.cells <= CELLS and math.prod(c.levels for c in columns) <= NODES


def decide_small(task: Task, start: Partition) -> Proof:
    """The optimum, or if time or size ends the proof, the best partition found with its bound (``pattern_program``)."""
    from shoal.problems.tables.exact.pattern_model import conditions_of, row_classes_of
    from shoal.problems.tables.exact.pattern_program import ProgramLimits, pattern_program
    from shoal.problems.tables.exact.two_anonymity import seconds_left

    try:
        costs = Costs.of(task.histogram, task.recoding)
    except PolicyError:
        return Proof(start, 0.0, "memory")
    effort = task.effort.name if task.effort.seconds is None else "thorough"
    spent, whole = clock() - task.started, SECONDS[effort]
    seconds = max(whole - spent, 0.5 * whole) if task.effort.seconds is None else seconds_left(task)
    need = task.requirement
    limits = ProgramLimits(seconds, EASY if len(conditions_of(need)) == 1 else PLACES, HOPELESS[effort])
    kinds = row_classes_of(task.histogram, need)
    partition, lower, stopped = pattern_program(task, costs, kinds, start, limits)
    _, bound, _ = costs.certified(task, partition, lower, whole_cost(costs, task, partition))
    return Proof(partition, bound, stopped)


SMALL = 16  # up to this many distinct tuples, an exact method is tried, for any model
SMALL_PAIRS = 1_000  # the same for k = 2 alone
PROOF = 10.0  # seconds it may take, many times what tables of this size need
CLEARLY = 1.02
NEAR = {"fast": 0.95, "balanced": 0.99}  # ratio of bound to cost above which no search follows if values are cut
# Neighborhoods for each row, and at most, if a proof is tried: the better the search, the shorter the proof.
PROVED = {"balanced": (100, 20_000), "thorough": (1_000, 200_000)}
RESTARTS = 6  # limit of further searches, with other seeds, if the proof of "balanced" does not end
IN_VAIN = 3  # searches in a row that gain nothing, after which no other follows
LARGE_ROWS = 100_000  # from this many rows on, the cascade and the bounds are computed in parallel
TWICE = 5_000  # up to this many rows, "balanced" searches from the cascade as well as from a better start
LARGE = 8  # from this k on, a cover by published rows may be the better start, and tuples are opened and closed
COVER = {"fast": 1e6, "balanced": 2e7, "thorough": 1e8}  # limit of nodes times cells times columns
COVER_PACE = 4e6  # and per second, at least
REST = 2.5  # share of the remaining seconds for the search of groups of k rows, times k
# with fewer seconds left, the class program, if it applies, takes most of them, because no search gets as close so
# quickly
SHORT = 10.0
ROUNDED = 5e-5  # seconds for each row below which columns are not rounded, because the search uses them better
PROGRAM = (0.5, 0.4)  # shares of such a time for its multipliers, and for its flow
TIGHT, AT_ONCE = 2.0, (0.4, 0.5)  # seconds left, and these shares, if building the program takes a large part of them
TRIAL = 0.06  # share of the remaining seconds for searching each of two starts before the better one is kept


def auto(task: Task) -> Grouping:
    """Three-phase, cascade, price-guided cascade, and search, as far as the effort allows; the best by the task's loss.

    A small enough table is solved exactly instead, unless the effort is "fast". A table of a few hundred cells is
    decided by an integer program if that ends in time (``decide_small``).

    When a cost equals its bound, no further method runs. If a table loses nothing, no bounds are computed.

    ``attempts`` has one line {"method", "cost", "seconds"} per method, with costs in the task's loss.
    """
    race = _PortfolioRun(task)
    race.begin()
    if min(race.first, race.order) == (0, 0):  # nothing is lost, so no search is necessary
        return race.lossless()
    bounds = race.bound()
    if race.met(bounds):
        return race.end(bounds)
    race.cut(bounds)
    if race.nearly(bounds):
        return race.end(bounds)
    proved = _proved(task, race.left)
    if proved is not None:
        cost = rank(task, proved.grouping.partition)[1]
        race.attempts.append({"method": proved.grouping.method, "cost": cost, "seconds": proved.seconds})
        return replace(proved.grouping, attempts=tuple(race.attempts))
    race.fill(bounds)
    race.round(bounds)
    if not race.met(bounds):
        race.cover()
    if race.met(bounds):
        return race.end(bounds)
    if task.effort.name == "fast":
        if race.common.size:
            race.scarce(bounds.cheapest)
        if not race.met(bounds):
            race.quick()
        return race.end(bounds)
    cheapest, prices = race.thinned(bounds)
    if race.common.size:
        race.scarce(cheapest)
    elif race.opens:
        race.open_close(bounds)
    else:
        race.guide(prices)
    if not race.met(bounds):
        race.search()
    return race.end(bounds)


class _Candidate(NamedTuple):
    """A partition, its rank, and the method that found it."""

    order: tuple[int, float]
    method: str
    partition: Partition


class _PortfolioRun:
    """One run of ``auto``: its attempts, the best of them, and the remaining time.

    best    the best partition so far, ``order``: its rank among partitions
    found   the candidates for the result, with their ranks and the methods that found them
    small   the task on the rows that are searched; ``thin`` maps back to all rows if there are fewer
    group   int64[rows]: the start of the search
    common  which sensitive values aren't scarce, empty if none is scarce (``scarcity``)
    long    whether the effort allows a long search
    deadline, left  when the search must end, and the seconds left after three-phase and cascade; None: no limit
    report, near    progress of the search, and its graph of near cells
    first   the rank of three-phase
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.thin: Thinned | None = None
        self.small = task
        self.rows = Rows.of(task)
        self.attempts: list[dict[str, Any]] = []
        self.found: list[_Candidate] = []
        self.common = scarcity(task)
        self.long = task.effort.name in ("seconds", "thorough")
        self.deadline: float | None = None
        self.left: float | None = None
        self.report: Any = None
        self.near: Any = None
        self.bounds: Bounds | None = None
        self.first: tuple[int, float]
        self.order: tuple[int, float] = (1, math.inf)
        self.best: Partition
        self.group: np.ndarray

    def whole(self, group: np.ndarray) -> Partition:
        """The partition of all rows, from the group of each row that is searched."""
        partition = self.rows.partition(group)
        return partition if self.thin is None else self.thin.back(partition)

    def attempt(self, method: str, partition: Partition, began: float) -> tuple[int, float]:
        """Record an attempt; returns its rank."""
        order = rank(self.task, partition)
        self.attempts.append({"method": method, "cost": order[1], "seconds": round(clock() - began, 3)})
        return order

    def choice(self, method: str, partition: Partition, began: float) -> tuple[int, float]:
        """Record a candidate for the result; returns its rank."""
        order = self.attempt(method, partition, began)
        self.found.append(_Candidate(order, method, partition))
        return order

    def offer(self, method: str, partition: Partition, began: float) -> bool:
        """Add a candidate; returns whether it is better than the best so far, which it then replaces."""
        order = self.choice(method, partition, began)
        better = order < self.order
        if better:
            self.order, self.best = order, partition
        return better

    def begin(self) -> None:
        """Run three-phase and the cascade, which are quick, and compute the remaining time."""
        began = clock()
        self.three = residues(self.task)[0]
        self.first = self.attempt("three_phase", self.three, began)
        if self.first == (0, 0):
            self.best, self.order = self.three, self.first
            return
        self.best, seconds = self.placed()
        self.plain, began = self.best, clock() - seconds
        counting = clock()
        self.order = self.choice("cascade", self.best, began)
        if self.task.effort.seconds is not None:
            # Reserve the time to compute the loss of the final answer: it takes as long again if connected sets are
            # searched for its groups.
            self.deadline = self.task.started + self.task.effort.seconds - (clock() - counting)
            self.left = max(self.deadline - clock(), 0.0)

    def placed(self) -> tuple[Partition, float]:
        """The cascade and its seconds; for a large table it runs on one core, while another computes the bounds."""

        def timed() -> tuple[Partition, float]:
            began = clock()
            return start(self.task, self.rows), clock() - began

        parallel = self.task.effort.seconds is None and self.task.histogram.rows >= LARGE_ROWS
        if not parallel:
            return timed()
        with SearchThreads(1) as pool:
            found = pool.submit(timed)
            self.bounds = self.bound()
            return found.result()

    def met(self, bounds: Bounds) -> bool:
        """Whether the best cost equals the lower bound, so that no search is necessary."""
        (name, value), (over, cost) = bounds.best, min(self.order, self.first)
        return not over and tight(value, cost, self.task.recoding.unit, name) >= cost

    def nearly(self, bounds: Bounds) -> bool:
        """Whether cutting values into pieces was so good that a named effort ends here."""
        (_, value), (over, cost) = bounds.best, self.order
        if bounds.pieces is None or self.task.histogram.cells <= SMALL or self.task.effort.name not in NEAR:
            return False
        return not over and value >= NEAR[self.task.effort.name] * cost

    def lossless(self) -> Grouping:
        """The answer without loss."""
        chosen = self.chosen()
        made = certify(self.task, chosen.partition, chosen.method, Bounds({"nothing": 0}))
        return replace(made, attempts=tuple(self.attempts))

    def chosen(self) -> _Candidate:
        """The cheapest candidate; of equals the first found, with three-phase last.

        If a union of eligible groups may be ineligible, groups that publish the same are merged first, and the cost
        after merging counts: merging can lose what a long search gained.
        """
        offered = [*self.found, _Candidate(self.first, "three_phase", self.three)]
        if not self.task.requirement.closed:
            offered.sort(key=lambda one: one.order)  # if the time is over, only the cheapest is merged
            merged = holding(self.task, [(one.method, one.partition) for one in offered])
            offered = [_Candidate(rank(self.task, made), method, made) for method, made in merged]
        cheapest = min(offered, key=lambda one: one.order)
        within_ceilings(self.task, cheapest.partition)
        return cheapest

    def bound(self) -> Bounds:
        """Lower bounds of the whole table, in a share of the time."""
        if self.bounds is not None:
            return self.bounds
        left = self.left
        boxed = self.task.recoding.hierarchies is None and self.task.requirement.smallest >= LARGE
        large = boxed or self.opens  # at large k the bound is the weak part
        part = 0.6 if left is None or left <= 3 else 0.5 if large else 0.3
        if left is not None and left > 3 and self.task.recoding.hierarchies is not None:
            # If no lattice is swept, all pairs are examined, and this is the only proof.
            lattice = Lattice.of(self.task.recoding)
            part = 0.45 if sweep_takes_too_long(self.task, lattice, np.inf, self.deadline) else part
        if left is not None and left <= SHORT and shares_column(self.task) is not None and not size_decides(self.task):
            part = (PROGRAM if left > TIGHT else AT_ONCE)[0]
        share = None if left is None else clock() + part * left
        over, cost = min(self.order, self.first)  # of a large table, three-phase alone is known by now
        cost = math.inf if over else cost
        return lower_bounds(self.task, until=share, program=not decidable(self.task), cost=cost)  # which proves more

    def cut(self, bounds: Bounds) -> None:
        """Values of the only column cut into pieces, which form groups of k rows."""
        need = self.task.requirement
        if bounds.pieces is None or need.sensitive_columns or need.rules:
            return
        began = clock()
        found = bounds.pieces.partition(self.task)
        if found is not None:
            self.offer("pieces", found, began)

    def fill(self, bounds: Bounds) -> None:
        """Tuples chosen by multipliers, filled by a minimum-cost flow."""
        multipliers, left = bounds.multipliers, self.left
        if multipliers is None or size_decides(self.task):
            return
        short = left is not None and left <= SHORT
        if short and bounds.best[0] != "multipliers":  # there was no time for enough passes, so they choose badly
            return
        began, part = clock(), (PROGRAM if left is None or left > TIGHT else AT_ONCE)[1] if short else 0.3
        until = None if left is None or self.deadline is None else min(began + part * left, self.deadline)
        filled = flow_start(self.task, self.rows, multipliers, until)
        if filled is not None:
            self.offer("class program", filled, began)

    def round(self, bounds: Bounds) -> None:
        """Disjoint columns of the bound's program, those with the best price first.

        Every other row goes where it costs least.
        """
        began = clock()
        late = self.deadline is not None and began > self.deadline
        hurried = self.left is not None and self.left < ROUNDED * self.task.histogram.rows
        if bounds.columns is None or late or hurried:
            return
        group = columns_start(self.task, self.rows, bounds.columns)
        if group is not None:
            self.offer("columns", self.whole(group), began)

    def cover(self) -> None:
        """A cover by published rows, for large k."""
        if covers(self.task, self.left):
            began = clock()
            self.offer("pattern_cover", pattern_cover(self.task).partition, began)

    def thinned(self, bounds: Bounds) -> tuple[Any, Any]:
        """From here on, only some rows of the best partition are searched.

        Returns their cheapest publication and their prices.
        """
        best, cheapest, prices = self.best, bounds.cheapest, bounds.prices
        self.thin = thinned(self.task, best.cell, best.group, best.count)
        if self.thin is None:
            self.group = self.rows.labels(best)
            return cheapest, prices
        self.small = self.thin.task
        self.rows = self.rows.of_cells(self.small.histogram, self.thin.cells)
        self.group = self.rows.cut(self.rows.spread(*self.thin.held.apart))
        cheapest, prices = (None if a is None else a[self.thin.cells] for a in (cheapest, prices))
        return cheapest, prices

    def scarce(self, cheapest: Any) -> None:
        """If sensitive values are scarce, place the rows that are hardest to place first."""
        began = clock()
        until = None if self.left is None else began + 0.6 * self.left
        cascaded = scarce_start(self.small, self.rows, cheapest, self.common, until)
        if cascaded is not None and self.offer("guided cascade", self.whole(cascaded), began):
            self.group = cascaded

    def guide(self, prices: Any) -> None:
        """The cascade guided by prices; if there is time, it and the start are both searched briefly."""
        if prices is None or (self.left is not None and self.left <= 5):
            return
        began = clock()
        cascaded = guided(self.small, self.rows, prices, None if self.left is None else began + 0.25 * self.left)
        if cascaded is None:
            return
        if not self.long:
            # Without time for a trial, the price-guided partition is the better start unless it costs clearly more.
            if self.attempt("guided cascade", self.whole(cascaded), began)[1] < CLEARLY * self.order[1]:
                self.group = cascaded
            return
        self.near = neighbor_graph(
            self.rows, self.task.seed, looks(self.rows, self.deadline, steps_of(self.small)), self.deadline
        )
        self.attempt("guided cascade", self.whole(cascaded), began)
        began = clock()
        tried = []
        for labels in (self.group, cascaded):
            given: dict[str, Any] = {"steps": int(STEPS["thorough"] * TRIAL * self.small.histogram.rows)}
            if self.deadline is not None:
                given = {"deadline": clock() + TRIAL * (self.deadline - began)}
            labels, self.report = search(self.small, self.rows, labels, near=self.near, **given)
            tried.append((rank(self.task, self.whole(labels)), labels))
        self.group = min(tried, key=lambda pair: pair[0])[1]

    @property
    def opens(self) -> bool:
        """Whether tuples are opened and closed: only k is required, and it is large."""
        if self.task.effort.name == "fast" or self.small.requirement.smallest < LARGE or decidable(self.task):
            return False
        return applies(self.small)

    def open_close(self, bounds: Bounds) -> None:
        """Open and close published tuples; the larger k, the less time remains for the search that dissolves groups."""
        began, pool = clock(), None
        if bounds.classes is not None and bounds.prices is not None and self.thin is None:
            pool = Candidates.of(self.rows, bounds.classes, bounds.prices)
        share = 1.0 - REST / self.small.requirement.smallest
        until = None if self.deadline is None else began + share * (self.deadline - began)
        found, self.report = open_close(self.small, self.rows, self.group, pool=pool, deadline=until)
        if self.offer("open and close", self.whole(found), began):
            self.group = found

    @property
    def steps(self) -> int:
        """The neighborhoods that a named effort searches: more if a proof follows, because good answers shorten it."""
        many = steps_of(self.small)
        if not many or not decidable(self.task):
            return many
        each, most = PROVED[self.task.effort.name]
        return max(many, min(each * self.small.histogram.rows, most))

    def search(self) -> None:
        """The search by moves between groups, from the best start."""
        if decidable(self.task) and self.deadline is not None:  # the rest of the time is for the proof
            self.deadline = clock() + SEARCHED * max(self.deadline - clock(), 0.0)
        small, rule = self.small, close_rule(self.small)
        done = False
        if self.task.effort.name == "balanced" and self.task.histogram.rows <= TWICE:
            # The result of "improve" too, so that "improve" is never the better choice.
            began, plain = clock(), self.rows.labels(self.plain)
            again, self.report = search(small, self.rows, plain, steps=self.steps)
            self.offer("improve", self.whole(again), began)
            done = np.array_equal(self.group, plain) and not self.common.size and rule is None
        if not done:
            self.group, self.report = self._searched(self.task.seed + 1)

    def quick(self) -> None:
        """A short search from the best partition, if the table has few rows.

        Nothing else at this effort uses a seed. So this one is fixed, and a table and a request have one partition.
        """
        began = clock()
        if not steps_of(self.task):
            return
        found, self.report = search(replace(self.task, seed=0), self.rows, self.rows.labels(self.best))
        self.offer("improve", self.whole(found), began)

    def _searched(self, seed: int) -> tuple[np.ndarray, Any]:
        """The result of the search that fits the models, from the current start, and its report."""
        began, small = clock(), replace(self.small, seed=seed)
        rule = close_rule(small)
        finish = open_and_search if self.common.size else anneal_and_search if rule is not None else search
        given = {"steps": self.steps} if finish is search else {}
        group, report = finish(small, self.rows, self.group, deadline=self.deadline, near=self.near, **given)
        self.offer("improve", self.whole(group), began)
        return group, report

    def restart(self) -> None:
        """Search again with other seeds, each time from the best partition so far, until some in a row gain nothing."""
        if self.thin is None:  # of a thinned table, only the last search has labels
            self.group = self.rows.labels(self.best)
        in_vain = 0
        for number in range(RESTARTS):
            before = self.order
            group, report = self._searched(self.task.seed + 2 + number)
            in_vain = 0 if self.order < before else in_vain + 1
            if not in_vain:
                self.group, self.report = group, report
            if in_vain == IN_VAIN:
                return

    def end(self, bounds: Bounds) -> Grouping:
        """The best candidate, proved by an integer program if possible, with its certificate."""
        task, (_, method, chosen) = self.task, self.chosen()
        proof_search = None
        if decidable(task) and not self.met(bounds):
            began = clock()
            proof = decide_small(task, chosen)
            proof_search = {"stopped": proof.stopped, "seconds": round(clock() - began, 3)}
            if proof.partition is not chosen and (proof.stopped is None or self.long):
                # If the clock ended the proof, the result of a named effort must still depend only on the seed.
                chosen, method = proof.partition, "optimal"
                self.attempt("optimal", chosen, began)
            elif proof.stopped is not None and not self.long:
                self.restart()
                _, method, chosen = self.chosen()
            bounds.values["integer program"] = proof.bound
        made = certify(task, chosen, method, bounds, self.report, proof_search)
        return replace(made, attempts=tuple(self.attempts))


def covers(task: Task, left: float | None) -> bool:
    """Whether a cover by published rows is a promising start: only large k is required, and the lattice is small."""
    columns, need, cells = task.recoding.columns, task.requirement, task.histogram.cells
    if need.sensitive_columns or need.rules or need.k < LARGE or cells <= CELLS:
        return False
    if task.recoding.hierarchies is None or any(c.held or c.size > WIDEST for c in columns):
        return False
    work = COVER_PACE * 0.2 * left if left is not None else COVER[task.effort.name]
    return math.prod(c.levels for c in columns) * cells * len(columns) <= work


@dataclass(frozen=True, eq=False)
class _ProvedGrouping:
    """The result of an exact method on a small table, and its seconds."""

    grouping: Grouping
    seconds: float


def _proved(task: Task, left: float | None) -> _ProvedGrouping | None:
    """The optimum if the table is small enough to prove one; None otherwise.

    Only a complete proof counts, and such tables need a small part of ``PROOF``, so the seed still determines the
    result.
    """
    from shoal.problems.tables.exact.optimal import optimal
    from shoal.problems.tables.exact.two_anonymity import two_anonymity

    need, cells = task.requirement, task.histogram.cells
    pairs = need.k == 2 and not need.sensitive_columns
    if task.effort.name == "fast" or not 0 < cells <= (SMALL_PAIRS if pairs else SMALL):
        return None
    began = clock()
    limit = Effort("seconds", PROOF if left is None else min(PROOF, 0.5 * left))
    try:
        found = (two_anonymity if pairs else optimal)(replace(task, effort=limit, started=began))
    except PolicyError:  # a ceiling, or sets and ranges of too many rows, which the exact methods don't support
        return None
    return _ProvedGrouping(found, round(clock() - began, 3)) if found.certificate.optimal else None
