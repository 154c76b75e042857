"""The input and the output of algorithms on tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, InputError
from shoal.model.arguments import Effort
from shoal.model.cards import several
from shoal.model.certificate import Certificate
from shoal.model.histogram import Histogram, Partition, mixed_radix
from shoal.model.privacy import DeltaPresence, KMap, Model, Requirement, Rule
from shoal.model.privacy.base import level_text
from shoal.model.privacy.population import OfPersons
from shoal.model.recoding import PublishedCodes, Recoding


def nothing(_what: str, _share: float | None) -> None:
    """A progress callback without effect."""


TUPLE = "__population_tuple__"  # the column with the number of each row's tuple in a sample


@dataclass(frozen=True, eq=False)
class Population:
    """The population from which the rows of a table were drawn, and how many of its people every group must cover.

    models   k-map, delta-presence, or both
    codes    int64[p, d]  the population's tuples in the table's codes; values that the table lacks have further codes
    people   int64[p]     number of rows of each tuple
    classes  per column int64[levels, codes]  the classes of those codes in the column's hierarchy; None if a column is
             not recoded by levels
    exact    whether the classes cover only people who are counted
    covers   whether the published classes of a partition's groups cover enough people
    """

    models: tuple[Model, ...]
    codes: np.ndarray
    people: np.ndarray
    classes: tuple[np.ndarray, ...] | None = None
    exact: bool = True
    covers: Callable[[Partition], bool] = lambda partition: False

    @property
    def k(self) -> int:
        """Number of people that every group must cover under k-map, at least 1."""
        return max((m.k for m in self.models if isinstance(m, KMap)), default=1)

    @property
    def shares(self) -> bool:
        """Whether delta-presence is requested."""
        return any(isinstance(m, DeltaPresence) for m in self.models)

    @property
    def high(self) -> float:
        """The largest share of the covered people that delta-presence allows, at most 1."""
        return min((m.high for m in self.models if isinstance(m, DeltaPresence)), default=1.0)

    def fewest(self, rows: int) -> int:
        """Number of people that a group of at least this many rows must cover."""
        return max(self.k, math.ceil(rows / self.high - 1e-9) if self.shares else 0)

    def of_tuples(self, histogram: Histogram) -> np.ndarray:
        """int64[types]: population count of each tuple of a sample; InputError if the table isn't a sample of the
        population."""
        of_type, first = histogram.types
        mine = histogram.quasi[first].astype(np.int64)
        both = np.concatenate([mine, self.codes])
        key = mixed_radix(both, (both.max(axis=0) + 1).tolist() if both.size else [1] * both.shape[1])
        distinct, number = np.unique(key, return_inverse=True)
        held = np.bincount(number[first.size :], weights=self.people, minlength=distinct.size)
        people = held[number[: first.size]].astype(np.int64)
        rows = np.bincount(of_type, weights=histogram.count, minlength=first.size)
        lacking = int((people < rows).sum())
        if lacking:
            new = [n for j, n in enumerate(histogram.quasi_names) if not np.isin(mine[:, j], self.codes[:, j]).all()]
            hint = f"column {new[0]!r} has values that the population lacks" if new else "a population holds its sample"
            raise InputError(
                f"{lacking:,} of the {first.size:,} combinations of quasi-identifiers in the sample occur in the "
                f"population less often than in the sample ({hint}); both tables must write values alike"
            )
        return people

    def stricter(self, histogram: Histogram, need: Requirement) -> tuple[Histogram, Requirement]:
        """A condition on a group's own rows that implies that the group covers enough people.

        The histogram has one more sensitive column, the number of its tuple; the requirement has a rule for each model.
        For k-map, the rule counts the people of the group's own tuples. For delta-presence, it counts the part of them
        that falls to the group's rows.
        """
        people = self.of_tuples(histogram)
        of_type, first = histogram.types
        searched = replace(
            histogram,
            sensitive=np.column_stack([histogram.sensitive, of_type]).astype(np.int32),
            sensitive_names=(*histogram.sensitive_names, TUPLE),
            sensitive_sizes=(*histogram.sensitive_sizes, int(first.size)),
        )
        rows = np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64)
        where = (len(histogram.sensitive_names),)
        rules = [Rule(m.charge(rows, people), where, tuple(rows.tolist())) for m in self.models
                 if isinstance(m, (KMap, DeltaPresence))]  # fmt: skip
        wants = replace(need, frequency=(*need.frequency, 1), distinct=(*need.distinct, 1), rules=(*need.rules, *rules))
        return searched, wants

    def decides(self, histogram: Histogram, need: Requirement, apart: np.ndarray | None) -> bool:
        """Whether the whole table, or each part of ``apart``, meets ``stricter``. If not, one group decides
        feasibility."""
        if not histogram.rows:
            return True
        searched, wants = self.stricter(histogram, need)
        parts = [np.ones(searched.cells, bool)] if apart is None else [apart == n for n in np.unique(apart)]
        new = wants.rules[len(need.rules) :]
        return all(rule.holds(searched.sensitive[p], searched.count[p]) for rule in new for p in parts)


Claimed = Callable[[Partition], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Decoys:
    """A limit on what the grouping reveals: no sensitive value of a person with a chance above ``most``.

    deal     random generator that no one else can reproduce
    claimed  function that gives the inferences of an attack on a partition with a chance above ``most``: int64[n, 2],
             the number of each inference in rising order from 0, with a group that contains people concerned; None if
             the attack can't run
    """

    most: float
    deal: np.random.Generator
    claimed: Claimed


Answers = Iterator[tuple[int, bytes]]
Spread = Callable[[Callable[[bytes], Answers], Iterable[bytes], None], Answers]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Conditions on a release other than the requirement for each group. No method handles them.

    ``shoal.problems.tables.constraints`` reduces each to tasks that methods can solve.

    population        the people from which the rows were drawn
    max_average_risk  upper limit of groups divided by rows
    decoys            the grouping itself reveals no sensitive value
    levels            the known level of every column, so that nothing is searched
    shards            the cells are divided into at most this many parts, which are searched separately
    workers           ``workers(each, tasks, None)`` runs a function on every task in other processes
    """

    population: Population | None = None
    max_average_risk: float | None = None
    decoys: Decoys | None = None
    levels: Mapping[str, int] | None = None
    shards: int | None = None
    workers: Spread | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One problem for a method: histogram, condition on every group, recoding, and effort.

    progress(what, share) can be called at any time with a few words and a share 0..1 or None. spare is how many rows
    may be starred completely in addition to the groups; only global recoding has such a budget. apart int64[m], or
    None: cells with different numbers never share a group. Only global recoding gets it; for other methods, every part
    is a task of its own. admits maps levels int64[d] to bool[m]: whether the class at these levels also keeps a
    condition that does not depend on its rows (the people of a population that it fits). If it does, so do the classes
    above it. None: no condition. Only global recoding gets it. started is the clock reading (``shoal.clock``) from
    which the effort's seconds count. part means that the table is one part of another, whose bound is computed
    elsewhere: this excludes bounds by pairs of rows. constraints are met before a method runs, and the method gets a
    task without them.
    """

    histogram: Histogram
    requirement: Requirement
    recoding: Recoding
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    progress: Callable[[str, float | None], None] = nothing
    started: float = field(default_factory=clock)
    spare: int = 0
    apart: np.ndarray | None = None
    part: bool = False
    admits: Callable[[np.ndarray], np.ndarray] | None = None
    constraints: Constraints = field(default_factory=Constraints)

    def again(self, **changes: Any) -> Task:
        """The task with some changes. Its seconds count from now."""
        return replace(self, started=clock(), **changes)


@dataclass(frozen=True, eq=False)
class Grouping:
    """A partition with its certificate, the method's name, and the results of each method that was tried.

    starred  whether the last group is a block of completely starred rows, at the root of every hierarchy
    shows    the published codes of the groups, if they are wider than their rows need, to cover more people
    """

    partition: Partition
    certificate: Certificate
    method: str
    attempts: tuple[Mapping[str, Any], ...] = ()
    starred: bool = False
    shows: PublishedCodes | None = None


@dataclass(frozen=True)
class Shortfall:
    """Why no partition can exist: the whole table in one group doesn't meet the requirement.

    column   position of the sensitive column; None if the table has too few rows
    code     the value that is too frequent, if there is one
    share    its share of the rows
    largest  the largest parameter that is possible
    asked    the requested parameter
    kind     "k", "frequency", "distinct", "model", or "persons"
    says     for "model": the reason as text; for "persons": the model, and the column that identifies persons

    For "persons", ``asked`` is the number of persons with the value, ``largest`` the number of rows without it, and
    ``share`` the smallest possible share.
    """

    kind: str
    asked: int
    largest: int
    column: int | None = None
    code: int | None = None
    share: float = 0.0
    says: str = ""


def shortfalls(histogram: Histogram, requirement: Requirement) -> list[Shortfall]:
    """The reasons why no partition exists, the worst first; empty if a partition exists or may exist.

    The whole table decides, except for models that count persons. All reasons are of one cause: the models, the
    persons, the number of rows, or the values. O(m) for each column.
    """
    rows = histogram.rows
    if rows == 0:
        return []
    found = _by_models(histogram, requirement) or _by_persons(histogram, requirement)
    if not found and rows < requirement.k:
        return [Shortfall("k", requirement.k, rows)]
    return found or _by_values(histogram, requirement)


def shortfall(histogram: Histogram, requirement: Requirement) -> Shortfall | None:
    """The worst reason why no partition exists; None if a partition exists or may exist."""
    return next(iter(shortfalls(histogram, requirement)), None)


def _by_models(histogram: Histogram, requirement: Requirement) -> list[Shortfall]:
    """Models that the whole table as one group breaks. For one model of several columns, only the first is
    described."""
    found: list[Shortfall] = []
    told: list[Model] = []
    for rule in requirement.rules:
        if rule.model.applies_to != "persons" and not rule.holds(histogram.sensitive, histogram.count):
            named = " and ".join(histogram.sensitive_names[j] for j in rule.columns)
            counts = rule.counts(histogram.sensitive, histogram.count)
            before = rule.model.compares and rule.model in told
            says = (rule.model.reached if before else rule.model.refusal)(counts, named, np.array(rule.table, np.int64))
            told.append(rule.model)
            found.append(Shortfall("model", 0, 0, rule.columns[0], says=says))
    return found


def _by_persons(histogram: Histogram, requirement: Requirement) -> list[Shortfall]:
    found = []
    for rule in requirement.rules:
        if not isinstance(rule.model, OfPersons):
            continue
        most = rule.model.most_common(
            histogram.sensitive, histogram.count, np.array(rule.table, np.int64), rule.columns
        )
        if most.impossible:
            short = Shortfall(
                "persons", most.persons, most.without, rule.columns[0], most.code, 1 / most.reach,
                f"{rule.model.short} by {histogram.sensitive_names[rule.columns[1]]!r}",
            )  # fmt: skip
            found.append((most.reach / most.asked, short))
    return [short for _, short in sorted(found, key=lambda one: one[0])]


def _by_values(histogram: Histogram, requirement: Requirement) -> list[Shortfall]:
    """Shortfalls of columns whose most frequent value is too frequent; if there are none, of columns with too few
    values."""
    rows, frequent, few = histogram.rows, [], []
    for j, (frequency, distinct) in enumerate(zip(requirement.frequency, requirement.distinct, strict=True)):
        held = np.bincount(
            histogram.sensitive[:, j], weights=histogram.count, minlength=max(histogram.sensitive_sizes[j], 1)
        ).astype(np.int64)
        code = int(held.argmax())
        top = int(held[code])
        if frequency * top > rows:
            frequent.append(Shortfall("frequency", frequency, rows // top, j, code, top / rows))
        present = int((held > 0).sum())
        if present < distinct:
            few.append(Shortfall("distinct", distinct, present, j))
    return sorted(frequent, key=lambda one: -one.share) + sorted(few, key=lambda one: one.largest)


def refuse_infeasible(
    histogram: Histogram,
    requirement: Requirement,
    show: Callable[[int, int], str] = lambda _column, code: f"number {code}",
) -> None:
    """Raise InfeasibleError with every column at fault, its value's share, and the largest possible parameter.

    show(column, code) gives the text of a sensitive value.
    """
    found = shortfalls(histogram, requirement)
    if found:
        reasons = dict.fromkeys(_reason(one, histogram, requirement, show) for one in found)
        column = "the column" if len(reasons) == 1 else "these columns"
        way = f". Ask for less, or remove {column} from the sensitive columns"
        raise InfeasibleError(". Also, ".join(reasons) + (way if found[0].kind == "persons" else ""))


def _reason(found: Shortfall, histogram: Histogram, requirement: Requirement, show: Callable[[int, int], str]) -> str:
    """Why no partition exists, in one or more sentences."""
    if found.kind == "model":
        return found.says
    if found.kind == "k":
        return (
            f"the table has {several(found.largest, 'row')}, so no group of k = {found.asked} exists; "
            f"the largest k possible is {found.largest}"
        )
    assert found.column is not None
    name = histogram.sensitive_names[found.column]
    if found.kind == "persons":
        assert found.code is not None
        value = _quoted(show(found.column, found.code)) if found.asked >= requirement.smallest else "has one value that"
        best = int(1 / found.share + 1e-9)
        return (
            f"{name} {value} is held by {several(found.asked, 'person')}, and the rows without it number "
            f"{found.largest:,}, too few for this {found.says}; by this count the largest l possible is {best}, the "
            f"least alpha {level_text(found.share, up=True)}"
        )
    if found.kind == "frequency":
        assert found.code is not None
        # otherwise the message would show a value of few rows
        shared = round(found.share * histogram.rows) >= requirement.smallest
        value = _quoted(show(found.column, found.code)) if shared else "has one value that"
        return (
            f"{name} {value} is {100 * found.share:.1f} % of the rows, so no table with "
            f"l = {found.asked} exists; the largest l possible is {found.largest}, "
            f"the least alpha {level_text(found.share, up=True)}"
        )
    return (
        f"{name} has {found.largest} different values, so no table with {found.asked} different values in every group "
        f"exists; the largest possible is {found.largest}"
    )


def _quoted(value: Any) -> str:
    """A value in quotes; of a long text, the beginning."""
    return repr(value[:57] + "..." if isinstance(value, str) and len(value) > 60 else value)


def uncovered(short: str, widest: str, asked: float, level: float) -> InfeasibleError:
    """Why even the widest groups that can be published break a model of the population."""
    if short == KMap.short:
        return InfeasibleError(
            f"{widest} cover {level} rows of the population, so no group of ⟨k_map⟩ = {asked} exists; the largest "
            f"⟨k_map⟩ possible is {level}"
        )
    text = level_text(level, up=True)
    return InfeasibleError(
        f"{widest} are the share {text} of the rows of the population that they cover, so no table with presence at "
        f"most {asked} exists; ask for {text} at the least"
    )
