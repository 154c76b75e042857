"""What an independent look at published tables found.

``Audit`` has the levels of every privacy model, risks and class sizes of one table.  ``Composition`` has what releases
of overlapping people tell together, as ``shoal.judge.composition`` finds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shoal.model.cards import audit_card, in_one_line


@dataclass(frozen=True)
class Worst:
    """The people for whom a release more tells most; alike in all that the adversary knows of them.

    people     how many they are;  values: sensitive values that remain possible, None without a sensitive column
    posterior  of the likeliest value, None where it was not asked for
    rows       per release the number of the first published row of their group, None where groups are unknown or the
               people are not in that release
    """

    people: int
    values: int | None
    posterior: float | None
    rows: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Learned:
    """What one adversary learns of the people who stand in two releases or more.

    fewer_than_k  people who share all their groups with fewer than k; None where groups are unknown
    one_value     people for whom exactly one sensitive value is common to the groups they may stand in
    contradicted  people for whom none is: the value changed between the releases, or a cell is not what it covers
    above         people for whom some value's posterior is above 1/l; alone: the most of them by one release alone
    right         of those above, the share for whom the likeliest value is the true one; None where nobody is
    highest       the highest posterior
    truth         mean posterior of the true value;  truth_alone: the highest such mean by one release alone
    worst         the people for whom it tells most

    What needs a sensitive column, or l, is None without it.
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
    """What two releases tell without their originals: rows of the last one, by the groups that may hold one person.

    rows       that may be about somebody of an earlier release: some group of it may mean a value in common everywhere
    may_tell   of these, rows for which some such group leaves exactly one sensitive value
    tell       of these, rows for which all such groups together leave exactly one
    """

    rows: int
    may_tell: int | None
    tell: int | None


@dataclass(frozen=True)
class Composition:
    """The figures of two or more releases set against each other.

    people     who stand in two releases or more;  rows: of each release
    k, l       what the figures are held against;  sensitive: the column, None without one
    known      what an adversary learns who knows everybody's groups;  unknown: one who knows quasi-identifiers
    placed     per release how the group of each person was found: "given"; "order", the rows stand in the original's;
               "matched", one placement of the original's rows that agrees with the release, among several; "assumed",
               everybody of the other releases' originals whom it covers may be in it, and then "unasked" of those;
               "none", there is no original
    unplaced   people whose row no published row of their release covers
    rows_alone what the releases tell without any original; None with one

    ``known`` is None where some release's people are only assumed, both are where there is no original at all.
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
        """The figures as JSON takes them."""
        return asdict(self)

    @property
    def share(self) -> float:
        """The share of the people in several releases for whom composition breaks a promise, 0 where there are none.

        A sensitive value likelier than 1/l, or without an l told; without a sensitive column fewer than k people in
        all their groups.  The larger of what the two adversaries learn; without an original, of the rows that may be
        about such people those that tell a value.
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
        """The figures in one sentence, without a value of any table."""
        of = f" of {self.sensitive}" if self.sensitive else ""
        if self.rows_alone is not None:
            alone = self.rows_alone
            told = "" if alone.tell is None else f"; {alone.tell:,} tell one value{of}, {alone.may_tell:,} may"
            return f"{alone.rows:,} of {self.rows[-1]:,} rows may be about people of an earlier release{told}"
        parts = []
        who = "may be" if "assumed" in self.placed else "are"
        best = self.known or self.unknown
        if self.known is not None:
            parts.append(f"{self.known.fewer_than_k:,} share all their groups with fewer than k = {self.k}")
        for learned, how in ((self.known, "someone who knows their groups"), (self.unknown, "a register")):
            if learned is None or learned.one_value is None:
                continue
            over = "" if learned.above is None else f", for {learned.above:,} one is likelier than 1/{self.l:g}"
            parts.append(f"to {how} one value{of} is left for {learned.one_value:,}{over}")
        if best is None:
            parts.append("without a sensitive column in both, or a table of the people of each, no more is counted")
        return f"{self.people:,} people {who} in several of the releases: {'; '.join(parts)}"


def finite(value: float | None) -> float | None:
    """The value, or None where it is infinite or not a number."""
    return value if value is None or math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One model asked for: what was asked, the level reached, and whether it holds in every class."""

    model: str
    short: str
    asked: Mapping[str, Any]
    column: str | None
    level: float | None
    passes: bool


@dataclass(frozen=True, kw_only=True)
class SensitiveLevels:
    """Levels of one sensitive column over all classes; None where the table is empty.

    l            largest l with at most 1/l of every class sharing a value (real-valued)
    distinct_l   fewest different values in a class
    entropy_l    exponential of the least entropy
    recursive_c  least c for which (c, 2)-diversity would hold with <=; infinite when a class has one value
    alpha        largest share of a value in a class
    t_equal      largest distance from the table's distribution: half the sum of differences
    t_ordered    the same by the earth mover's distance over the values' order
    t_hierarchical  the same by how far the values are apart in their hierarchy; None without one
    beta         largest relative gain (p - q) / q of a value in a class over the table
    delta        largest |log(p / q)|; infinite when a class lacks a value of the table
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


@dataclass(frozen=True, kw_only=True)
class Audit:
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

    @property
    def passes(self) -> bool | None:
        """Whether every requested model holds; None if no model was requested."""
        return all(c.passes for c in self.checks) if self.checks else None

    def __repr__(self) -> str:
        return in_one_line(self._lines(), 3)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        from shoal.model.cards import audit_rows, number

        return ["Audit", *(f"{name}: {number(value)}" for name, value in audit_rows(self.as_dict()))]

    def _repr_html_(self) -> str:
        return audit_card(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON; None for an infinite level, which JSON cannot hold."""
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
