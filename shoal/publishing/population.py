"""A sample beside its population: what the search asks of a group, and what any release must lose to hide in it.

What a group publishes covers rows of the population, and how many depends on how it is published.  The search asks for
something stricter that it can ask quickly: the population of the group's own different tuples (k-map), or the part of
it that falls to the group's rows (delta-presence).  Where not even the whole table meets that, one group of all rows
decides: it publishes values that stand for all that any groups' values stand for, so it covers whomever they cover
together.  Of k-map no group covers more; of delta-presence all rows over all whom the groups cover is one of the shares
to be kept, and that of the one group is no larger.  The judge counts what is covered; so does the lower bound, row by
row: whatever group a row lies in publishes a coarser form of its tuple, which covers enough people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.table import Counted
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.judge.population import Census, check_of, covered, lacks, numbers, reading_of
from shoal.model.audit import Audit
from shoal.model.certificate import Guarantee, tight
from shoal.model.hierarchy import GENERATED
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.policy import Policy
from shoal.model.privacy import Charge, DeltaPresence, KMap, Model, Requirement, Rule
from shoal.model.privacy.requirement import refuse_unenforced
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Effort, Grouping, Task
from shoal.publishing.text import ColumnText

LOOKS = 3e8  # nodes of the lattice times tuples of the population that the bound may look at
ARGUMENT = "population: per row the cheapest coarser form of its tuple that covers enough people"
TUPLE = "__population_tuple__"


@dataclass(frozen=True, eq=False)
class Study:
    """A sample with its population, ready for the search.

    histogram  the sample's, with the number of its tuple as one more column where the population is a table
    need       what the search asks of every group; free: the same without the population
    census     the population; codes int64[p, d] its tuples in the sample's codes, new values after them
    values     per column the texts of those codes; fewest: people that every group has to cover
    apart      int64[cells]  cells of different numbers never share a group; None: any may
    """

    histogram: Histogram
    need: Requirement
    free: Requirement
    census: Census | None = None
    codes: np.ndarray | None = None
    values: tuple[Sequence[str | None], ...] = ()
    fewest: int = 0
    apart: np.ndarray | None = None

    @property
    def asked(self) -> bool:
        """Whether a model of a population table is to be kept."""
        return self.census is not None and len(self.need.rules) > len(self.free.rules)

    @property
    def strict(self) -> bool:
        """Whether the whole table, or each part kept apart, meets what is asked; else one group of it decides."""
        h, new = self.histogram, self.need.rules[len(self.free.rules) :]
        parts = [np.ones(h.cells, bool)] if self.apart is None else [self.apart == n for n in np.unique(self.apart)]
        return not h.rows or all(rule.holds(h.sensitive[p], h.count[p]) for rule in new for p in parts)

    def solve(self, one: Callable[[Requirement], Grouping], holds: Callable[[Grouping], bool]) -> Grouping:
        """A grouping by what the search asks; where not even the whole table meets that, by larger and larger groups.

        one    solves for a requirement; holds whether what the grouping publishes covers enough people
        The last try is one group of all rows, which covers most.  O(log rows) searches.
        """
        if self.strict:
            return one(self.need)
        k = 2 * max(self.free.smallest, 1)
        while k < self.histogram.rows:
            found = one(replace(self.free, k=k))
            if holds(found):
                return found
            k *= 2
        return one(replace(self.free, k=max(self.histogram.rows, 1)))

    def holds(self, asked: Policy, columns: Sequence[ColumnText], sizes: np.ndarray) -> bool:
        """Whether groups of int64 sizes that publish some texts cover enough people of the population."""
        assert self.census is not None
        shown = {c.name: pl.Series(c.texts, dtype=pl.String).gather(c.index) for c in columns}
        read = reading_of(asked, asked.publish, asked.hierarchies, {}, ())
        found = covered(pl.DataFrame(shown), asked.grouped, self.census, read, sizes)
        return all(check_of(m, found).passes for m in asked.privacy if m.speaks == "population")


def study(
    asked: Policy, counted: Counted, need: Requirement, census: Census | None, apart: np.ndarray | None = None
) -> Study:
    """Bind the models of a population to a sample; the need has an entry for every column counted beside the sensitive.

    Raises PolicyError for a model that cannot be enforced; InputError where the sample is no part of the population,
    or for a weight that is none.
    """
    models = [m for m in asked.privacy if m.speaks == "population"]
    for model in models:
        refuse_unenforced(model)
    histogram = counted.histogram
    if asked.weighed:
        place = len(asked.sensitive) + len(asked.units)
        weight = numbers(counted.sensitive[place].values, asked.weighed[0]).to_numpy()
        free = replace(need, frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
        rules = [Rule(Charge(m, tuple(weight.tolist()), float(_k(m)), once=False), (place,), (1,) * weight.size)
                 for m in models]  # fmt: skip
        return Study(histogram, replace(free, rules=(*free.rules, *rules)), free, apart=apart)
    if census is None:
        return Study(histogram, need, need, apart=apart)
    values, codes = _in_codes(counted, census)
    people = _people(histogram, codes, census, asked.grouped)
    of_type, first = histogram.types
    searched = replace(
        histogram,
        sensitive=np.column_stack([histogram.sensitive, of_type]).astype(np.int32),
        sensitive_names=(*histogram.sensitive_names, TUPLE),
        sensitive_sizes=(*histogram.sensitive_sizes, int(first.size)),
    )
    free = replace(need, frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
    rows = np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64)
    where = (len(histogram.sensitive_names),)
    rules = [Rule(m.charge(rows, people), where, tuple(rows.tolist())) for m in models
             if isinstance(m, (KMap, DeltaPresence))]  # fmt: skip
    least = max((_fewest(m, need.smallest) for m in models), default=0)
    return Study(searched, replace(free, rules=(*free.rules, *rules)), free, census, codes, values, least, apart)


def _k(model: Model) -> int:
    return model.k if isinstance(model, KMap) else 1


def _fewest(model: Model, rows: int) -> int:
    """People that a group of at least so many rows has to cover."""
    if isinstance(model, DeltaPresence):
        return math.ceil(rows / model.high - 1e-9)
    return _k(model)


def _in_codes(counted: Counted, census: Census) -> tuple[tuple[list[str | None], ...], np.ndarray]:
    """The population's tuples in the sample's codes, matched by text; values the sample lacks get codes after its."""
    out, values = [], []
    for column in counted.quasi:
        texts = column.texts()
        known: dict[str | None, int] = {t: i for i, t in enumerate(texts)}
        theirs = encode(census.tuples[column.name])
        number = np.array([known.setdefault(t, len(known)) for t in theirs.texts()], np.int64)
        out.append(number[theirs.codes] if len(number) else np.zeros(0, np.int64))
        values.append(list(known))
    return tuple(values), np.column_stack(out) if out else np.zeros((census.rows.size, 0), np.int64)


def _people(histogram: Histogram, codes: np.ndarray, census: Census, names: Sequence[str]) -> np.ndarray:
    """int64[types]: rows of the population with the tuple of each type."""
    if census.size < histogram.rows:
        raise InputError(
            f"the population has {census.size:,} rows and the sample {histogram.rows:,}; hand over the table that the "
            "sample was drawn from"
        )
    of_type, first = histogram.types
    mine = histogram.quasi[first].astype(np.int64)
    both = np.concatenate([mine, codes])
    key = mixed_radix(both, (both.max(axis=0) + 1).tolist() if both.size else [1] * both.shape[1])
    distinct, number = np.unique(key, return_inverse=True)
    number = number.reshape(-1)
    held = np.bincount(number[first.size :], weights=census.rows, minlength=distinct.size)
    people = held[number[: first.size]].astype(np.int64)
    rows = np.bincount(of_type, weights=histogram.count, minlength=first.size)
    lacking = int((people < rows).sum())
    if lacking:
        new = [n for j, n in enumerate(names) if not np.isin(mine[:, j], codes[:, j]).all()]
        hint = f"column {new[0]!r} has values that the population lacks" if new else "a population holds its sample"
        raise InputError(
            f"{lacking:,} of the {first.size:,} combinations of quasi-identifiers in the sample stand in the "
            f"population less often than in the sample ({hint}); both tables must write values alike"
        )
    return people


def certified(found: Grouping, told: Study, histogram: Histogram, recoding: Recoding, asked: Policy) -> Grouping:
    """The grouping with a bound on every release that the population allows: the search's own asked for more.

    The bound is the larger of the one without the population and of the cheapest coarser forms that cover enough.
    """
    if not told.asked or not histogram.rows:
        return found
    from shoal.problems.tables.certify import certified as without
    from shoal.problems.tables.search.bounds import total

    task = Task(histogram, _cut(told.free, len(histogram.sensitive_names)), recoding, Effort.of(asked.effort))
    free = without(task, found.partition, found.method, starred=found.starred).certificate
    details = {n: v for n, v in found.certificate.details.items() if n not in ("proved", "bounds", "search")}
    lower, argument = free.lower_bound, f"without the population: {free.bound}"
    # one group of all rows is not known to be feasible before the judge has counted
    prices = _cheapest(told, histogram, recoding, asked) if told.strict or found.partition.groups > 1 else None
    if prices is not None:
        own = total(task, prices)
        details["bounds"] = {**dict(free.details.get("bounds", {})), "population": own}
        if own > lower:
            lower, argument = own, ARGUMENT
    if "uniform_bound" in details:
        details["uniform_bound"] = lower
        details["uniform_optimal"] = bool(lower >= details["uniform_cost"])
    certificate = replace(
        free,
        lower_bound=tight(lower, free.cost, free.unit, argument),
        bound=argument,
        guarantee=Guarantee(),
        details=details,
    )
    return replace(found, certificate=certificate)


def _cut(need: Requirement, columns: int) -> Requirement:
    """A requirement without the entries of columns that were added at the end."""
    return replace(need, frequency=need.frequency[:columns], distinct=need.distinct[:columns])


def _cheapest(told: Study, histogram: Histogram, recoding: Recoding, asked: Policy) -> np.ndarray | None:
    """float64[m]: per cell the least loss of a coarser form that covers enough people; None where none is known.

    O(nodes of the lattice * tuples of the population); beyond ``LOOKS`` only that rare tuples must join others.
    """
    assert told.census is not None
    assert told.codes is not None
    nodes = _nodes(told, recoding, asked)
    of_type, first = histogram.types
    mine = histogram.quasi[first].astype(np.int64)
    if nodes is None or math.prod(n.shape[0] for n in nodes) * (told.census.rows.size + first.size) > LOOKS:
        if asked.global_recoding or asked.range_step or (nodes is None and asked.publish == "hierarchy"):
            return None
        from shoal.problems.tables.certify import least_steps

        rare = _people(histogram, told.codes, told.census, asked.grouped) < told.fewest
        steps = least_steps(histogram, recoding)
        return np.where(rare[of_type] & np.isfinite(steps), steps, 0.0)
    best, trees = np.full(first.size, np.inf), recoding.hierarchies or ()
    for levels in product(*(range(n.shape[0]) for n in nodes)):
        loss = np.zeros(first.size)
        classes = []
        for j, level in enumerate(levels):
            loss += trees[j].loss[level][mine[:, j]] * trees[j].weight
            classes.append(nodes[j][level])
        better = loss < best
        if not better.any():
            continue
        theirs = np.column_stack([c[told.codes[:, j]] for j, c in enumerate(classes)]).astype(np.int64)
        ours = np.column_stack([c[mine[better, j]] for j, c in enumerate(classes)]).astype(np.int64)
        key = mixed_radix(np.concatenate([theirs, ours]), [int(c.max(initial=0)) + 1 for c in classes])
        distinct, number = np.unique(key, return_inverse=True)
        number = number.reshape(-1)
        held = np.bincount(number[: len(theirs)], weights=told.census.rows, minlength=distinct.size)
        enough = held[number[len(theirs) :]] >= told.fewest
        at = np.flatnonzero(better)[enough]
        best[at] = loss[at]
    return np.where(np.isfinite(best), best, 0.0)[of_type]


def _nodes(told: Study, recoding: Recoding, asked: Policy) -> list[np.ndarray] | None:
    """Per column int64[levels, values] classes of all values, the population's too; None for other recodings."""
    out = []
    for j, (name, column) in enumerate(zip(asked.grouped, recoding.columns, strict=True)):
        values = told.values[j]
        if not isinstance(column, Levels):
            return None
        source = asked.hierarchies.get(name) if asked.publish == "hierarchy" else None
        if source is None:
            out.append(np.stack([np.arange(len(values)), np.zeros(len(values), np.int64)]))
            continue
        if isinstance(source, str) and source in GENERATED:
            return None
        from shoal.model.hierarchy import Hierarchy

        try:
            node = Hierarchy.of(source).resolve(values, name).node.astype(np.int64)
        except PolicyError:
            raise lacks(name) from None
        if node.shape[0] != column.levels:
            return None
        out.append(node)
    return out


def refuse_uncovered(audit: Audit) -> None:
    """InfeasibleError where one group of all rows does not meet a model of the population."""
    for check in audit.checks:
        if not check.passes and check.short == KMap.short:
            raise InfeasibleError(
                f"all rows in one group cover {check.level} rows of the population, so no group of k_map = "
                f"{check.asked['k']} exists; the largest k_map possible is {check.level}"
            )
        if not check.passes and check.short == DeltaPresence.short:
            raise InfeasibleError(
                f"no table with presence at most {check.asked['high']} was found: all rows in one group are the share "
                f"{check.level:.6g} of the population that they cover, and whether smaller groups whose values overlap "
                f"could do is not known; ask for {check.level:.6g} at the least"
            )
