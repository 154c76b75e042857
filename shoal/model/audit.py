"""The results of an audit: ``Audit`` of one table, ``Composition`` of several releases of overlapping people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from shoal.model.cards import Shown, audit_rows, number


@dataclass(frozen=True)
class Worst:
    """The people about whom a further release reveals the most. The adversary can't distinguish them from each other.

    people     number of these people
    values     number of sensitive values that remain possible; None without a sensitive column
    posterior  the largest posterior probability of a value; None if it was not computed
    rows       for each release, the number of the first published row of their group; None if groups are unknown or
               these people are not in that release
    """

    people: int
    values: int | None
    posterior: float | None
    rows: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Learned:
    """What one adversary learns about the people who are in at least two releases.

    fewer_than_k  people who share all their groups with fewer than k people; None if groups are unknown
    one_value     people for whom exactly one sensitive value occurs in all groups that may contain them
    contradicted  people for whom no value does: the value changed between releases, or a cell doesn't cover the
                  original
    above         people with a value of posterior above 1/l; alone: the largest such number for one release alone
    right         the share of ``above`` for whom the likeliest value is the true one; None if ``above`` is 0
    highest       the highest posterior
    truth         mean posterior of the true value; truth_alone: the highest such mean for one release alone
    worst         the people about whom the releases reveal the most

    Figures that need a sensitive column or l are None without it.
    """

    fewer_than_k: int | None = None
    one_value: int | None = None
    contradicted: int | None = None
    above: int | None = None
    alone: int | None = None
    right: float | None = None
    highest: float | None = None
    truth: float | None = None
    truth_alone: float | None = None
    worst: Worst | None = None


@dataclass(frozen=True)
class RowsAlone:
    """What two releases reveal without their originals: rows of the last one, by the groups that may contain one
    person.

    rows       rows that may be of a person in an earlier release: some combination of groups has a value in common
    may_tell   of these, rows for which at least one such combination leaves exactly one sensitive value
    tell       of these, rows for which all such combinations together leave exactly one value
    """

    rows: int
    may_tell: int | None
    tell: int | None


@dataclass(frozen=True)
class Composition:
    """The figures of two or more releases, compared with each other.

    people     people in at least two releases
    rows       rows of each release
    k, l       the thresholds for the figures
    sensitive  the sensitive column; None without one
    known      what an adversary learns who knows the groups of all people
    unknown    what an adversary learns who knows only quasi-identifiers
    placed     for each release, how each person's group was found. "given"; "order": the release keeps the original's
               row order; "matched": an assignment of original rows to published rows that agrees with the release, one
               of several; "assumed": every person of the other originals whom the release covers may be in it;
               "unasked": it has an original, but groups are not compared because another release has none; "none": no
               release has an original
    unplaced   people whose row no published row of their release covers
    rows_alone what the releases reveal without any original; None with one

    ``known`` is None if the people of a release are only assumed. ``known`` and ``unknown`` are None without any
    original.
    """

    people: int
    rows: tuple[int, ...]
    k: int
    l: float | None
    sensitive: str | None
    known: Learned | None
    unknown: Learned | None
    placed: tuple[str, ...]
    unplaced: int
    rows_alone: RowsAlone | None = None

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON."""
        return asdict(self)

    @property
    def share(self) -> float:
        """The share of people in several releases for whom composition breaks a promise; 0 if there are no such people.

        A promise is broken if a sensitive value is likelier than 1/l or, without l, is the only possible one. Without a
        sensitive column, it is broken if fewer than k people share all groups. The share is the larger one of the two
        adversaries. Without an original, it is the share of rows that reveal a value.
        """
        if self.rows_alone is not None:
            return (self.rows_alone.tell or 0) / max(self.rows_alone.rows, 1)
        broken = [0]
        for learned in (self.known, self.unknown):
            if learned is not None:
                broken.append(learned.above if learned.above is not None else learned.one_value or 0)
                broken.append(learned.one_value or 0)
                broken.append(0 if self.sensitive else learned.fewer_than_k or 0)
        return max(broken) / max(self.people, 1)

    @property
    def sentence(self) -> str:
        """The figures as one sentence, which contains no value of a table."""
        of = f" of {self.sensitive}" if self.sensitive else ""
        if self.rows_alone is not None:
            alone = self.rows_alone
            told = "" if alone.tell is None else f"; {alone.tell:,} tell one value{of}, {alone.may_tell:,} may"
            return f"{alone.rows:,} of {self.rows[-1]:,} rows may be about people of an earlier release{told}"
        parts = []
        who = "may be" if "assumed" in self.placed else "are"
        best = self.known or self.unknown
        if self.known is not None:
            parts.append(f"{self.known.fewer_than_k:,} of them share all their groups with fewer than k = {self.k}")
        for learned, how in ((self.known, "knows their groups"), (self.unknown, "has a register")):
            if learned is None or learned.one_value is None:
                continue
            over = "" if learned.above is None else f", and with one likelier than 1/{self.l:g} for {learned.above:,}"
            parts.append(f"someone who {how} is left with one value{of} for {learned.one_value:,} of them{over}")
        if best is None:
            parts.append("no more is counted without a sensitive column in both, or a table of the people of each")
        return f"{self.people:,} people {who} in several of the releases; {'; '.join(parts)}"


def finite(value: float | None) -> float | None:
    """The value; None if it is infinite or not a number."""
    return value if value is None or math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One requested model: its parameters, the level reached, and whether it holds in every class."""

    model: str
    short: str
    asked: Mapping[str, Any]
    column: str | None
    level: float | None
    passes: bool


@dataclass(frozen=True, kw_only=True)
class SensitiveLevels:
    """Levels of one sensitive column over all classes; None if the table is empty.

    l            largest l such that no value has more than 1/l of a class (real-valued)
    distinct_l   smallest number of different values in a class
    entropy_l    exponential of the smallest entropy of a class
    recursive_c  smallest c for which (c, 2)-diversity would hold with <=; infinite if a class has one value
    alpha        largest share of a value in a class
    t_equal      largest distance from the table's distribution: half the sum of differences
    t_ordered    the same with the earth mover's distance over the order of the values
    t_hierarchical  the same with the distance of the values in their hierarchy; None without one
    beta         largest relative gain (p - q) / q of a value in a class over the table
    delta        largest |log(p / q)|; infinite if a class lacks a value of the table
    """

    l: float | None
    distinct_l: int | None
    entropy_l: float | None
    recursive_c: float | None
    alpha: float | None
    t_equal: float | None
    t_ordered: float | None
    t_hierarchical: float | None
    beta: float | None
    delta: float | None


def largest_share(audit: Audit) -> float:
    """The largest share of a sensitive value in a class; 0 of an empty table."""
    return max((found.alpha or 0.0 for found in audit.sensitive.values()), default=0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit(Shown):
    """Privacy levels and risks of a table, counted from its rows alone.

    A class is a set of rows with equal quasi-identifiers. A star is a value.

    sizes  class size -> number of classes
    risk   "prosecutor_max", "prosecutor_mean", "journalist_max", "marketer", "records_at_risk" (share above the
           threshold), "threshold". Without a population table, the prosecutor's risk bounds the journalist's. With one,
           there are also "journalist_mean" and "journalist_at_risk"; with weights, "individual_max" and
           "individual_mean"
    population  with a population: "from" ("table", "weights", or "size"), its "rows", "uniques" (people who are unique
           in it, estimated in four ways). With a table or weights also "k_map" (the fewest people that a class fits),
           "presence" (least and largest share of a class in them), "unique" (classes that fit at most one person)
    persons  for each column that identifies persons, the fewest different persons in a class
    wildcards  if you request them, the risks if missing values and stars match every value, as in other tools
    exposed  for each column published as ranges, sets, or regions, the share of the classes that show a value of one
           row only; exposed_classes: the share of classes that any such column exposes. Only a release that shoal made
           has these figures. For another table, no one can see them, so they are None
    composition  with earlier releases, what all of them reveal together, for each sensitive column
    notes  sentences about values that look alike and missing values that count as a value; they show no value
    """

    rows: int
    classes: int
    smallest_class: int
    largest_class: int
    mean_class: float
    uniques: int
    k: int
    sensitive: Mapping[str, SensitiveLevels]
    sizes: Mapping[int, int]
    risk: Mapping[str, float]
    persons: Mapping[str, int] = field(default_factory=dict)
    population: Mapping[str, Any] | None = None
    wildcards: Mapping[str, float] | None = None
    checks: tuple[Check, ...] = field(default_factory=tuple)
    notes: tuple[str, ...] = ()
    exposed: Mapping[str, float] = field(default_factory=dict)
    exposed_classes: float | None = None
    composition: tuple[Composition, ...] = ()
    IN_A_LINE: ClassVar[int] = 3

    @property
    def passes(self) -> bool | None:
        """Whether every requested model holds; None if no model was requested."""
        return all(c.passes for c in self.checks) if self.checks else None

    def _lines(self) -> list[str]:
        return ["Audit", *(f"{name}: {number(value)}" for name, value in audit_rows(self.as_dict()))]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. An infinite level, which JSON can't represent, becomes None."""
        out = asdict(self)
        if not self.composition:
            del out["composition"]
        out["sizes"] = {str(size): number for size, number in sorted(self.sizes.items())}
        out["sensitive"] = {
            name: {level: finite(value) for level, value in asdict(found).items()}
            for name, found in self.sensitive.items()
        }
        out["checks"] = [asdict(c) | {"level": finite(c.level)} for c in self.checks]
        out["notes"] = list(self.notes)
        out["passes"] = self.passes
        return out
