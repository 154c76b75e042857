"""What an independent look at a table found: levels of every privacy model, risks, class sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shoal.model.composition import Composition


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


def told_at_most(audit: Audit) -> float:
    """The largest share of a sensitive value in a class; 0 of an empty table."""
    return max((found.alpha or 0.0 for found in audit.sensitive.values()), default=0.0)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A table judged by its own rows; a class is a set of rows with equal quasi-identifiers, a star being a value.

    sizes  class size -> number of classes
    risk   "prosecutor_max", "prosecutor_mean", "journalist_max", "marketer", "records_at_risk" (share above the
           threshold), "threshold"; without a population table the journalist's risk is bounded by the prosecutor's,
           with one "journalist_mean" and "journalist_at_risk" are there too, with weights "individual_max" and
           "individual_mean"
    population  beside a population: "from" ("table", "weights" or "size"), "rows" of it, "uniques" (people alone in it,
           estimated four ways); but from its size alone also "k_map" (the fewest people a class covers), "presence"
           (least and largest share of a class in them), "unique" (classes that cover at most one)
    persons  per column that names persons, the fewest different ones in a class
    wildcards  where asked for, the risks with missing values and stars alike to every value, as other tools count
    exposed  per column published as ranges or sets, the share of the classes that show a value which only one of their
           rows holds; exposed_classes: the share that any such column exposes.  A release knows it of itself; of
           another table it cannot be seen, and is None
    composition  beside earlier releases, what they tell together, per sensitive column
    notes  sentences on values that look alike and missing ones that count as a value; they show no value
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
        """Every model asked for holds; None where none was asked for."""
        return all(c.passes for c in self.checks) if self.checks else None

    def __repr__(self) -> str:
        from shoal.model.cards import in_one_line

        return in_one_line(self._lines(), 3)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        from shoal.model.cards import audit_rows, number

        return ["Audit", *(f"{name}: {number(value)}" for name, value in audit_rows(self.as_dict()))]

    def _repr_html_(self) -> str:
        from shoal.model.cards import audit_card

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
