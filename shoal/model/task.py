"""What an algorithm on tables is handed, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.cards import several
from shoal.model.certificate import Certificate
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.privacy.base import said
from shoal.model.privacy.population import OfPersons
from shoal.model.recoding import Recoding


def nothing(_what: str, _share: float | None) -> None:
    """A progress callback that says nothing."""


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
    elsewhere: this excludes bounds by pairs of rows.
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


@dataclass(frozen=True, eq=False)
class Grouping:
    """A partition with its certificate, the method's name, and what each method tried got.

    starred  the last group is a block of rows starred whole, at the top of every hierarchy
    """

    partition: Partition
    certificate: Certificate
    method: str
    attempts: tuple[Mapping[str, Any], ...] = ()
    starred: bool = False


@dataclass(frozen=True)
class Shortfall:
    """Why no partition can exist: the whole table in one group does not meet the requirement.

    column   position of the sensitive column, or None when the table has too few rows
    code     the value in the way, where one value is
    share    its share of the rows
    largest  the largest parameter that would be possible
    asked    the parameter asked
    kind     "k", "frequency", "distinct", "model" or "persons"
    says     for "model": the reason in words; for "persons": the model, and the column that names them
    Of "persons" asked is how many have the value, largest how many rows lack it, share the least share possible.
    """

    kind: str
    asked: int
    largest: int
    column: int | None = None
    code: int | None = None
    share: float = 0.0
    says: str = ""


def shortfall(histogram: Histogram, requirement: Requirement) -> Shortfall | None:
    """None when some partition exists, or may: the whole table decides but of models that count persons.  O(m)."""
    rows = histogram.rows
    if rows == 0:
        return None
    for rule in requirement.rules:
        if rule.model.speaks != "persons" and not rule.holds(histogram.sensitive, histogram.count):
            named = " and ".join(histogram.sensitive_names[j] for j in rule.columns)
            counts = rule.counts(histogram.sensitive, histogram.count)
            says = rule.model.refusal(counts, named, np.array(rule.table, np.int64))
            return Shortfall("model", 0, 0, rule.columns[0], says=says)
    worst: tuple[float, Shortfall] | None = None
    for rule in requirement.rules:
        if not isinstance(rule.model, OfPersons):
            continue
        found = rule.model.most_common(
            histogram.sensitive, histogram.count, np.array(rule.table, np.int64), rule.columns
        )
        if found.impossible and (worst is None or found.reach / found.asked < worst[0]):
            short = Shortfall(
                "persons", found.persons, found.without, rule.columns[0], found.code, 1 / found.reach,
                f"{rule.model.short} by {histogram.sensitive_names[rule.columns[1]]!r}",
            )  # fmt: skip
            worst = (found.reach / found.asked, short)
    if worst is not None:
        return worst[1]
    if rows < requirement.k:
        return Shortfall("k", requirement.k, rows)
    for j, (frequency, distinct) in enumerate(zip(requirement.frequency, requirement.distinct, strict=True)):
        held = np.bincount(
            histogram.sensitive[:, j], weights=histogram.count, minlength=max(histogram.sensitive_sizes[j], 1)
        ).astype(np.int64)
        code = int(held.argmax())
        top = int(held[code])
        if frequency * top > rows:
            return Shortfall("frequency", frequency, rows // top, j, code, top / rows)
        present = int((held > 0).sum())
        if present < distinct:
            return Shortfall("distinct", distinct, present, j)
    return None


def refuse_infeasible(
    histogram: Histogram,
    requirement: Requirement,
    show: Callable[[int, int], str] = lambda _column, code: f"number {code}",
) -> None:
    """Raise InfeasibleError with the column, the value's share and the largest parameter possible.

    show(column, code) gives the text of a sensitive value.
    """
    found = shortfall(histogram, requirement)
    if found is None:
        return
    if found.kind == "model":
        raise InfeasibleError(found.says)
    if found.kind == "k":
        raise InfeasibleError(
            f"the table has {several(found.largest, 'row')}, so no group of k = {found.asked} exists; "
            f"the largest k possible is {found.largest}"
        )
    assert found.column is not None
    name = histogram.sensitive_names[found.column]
    if found.kind == "persons":
        assert found.code is not None
        value = repr(show(found.column, found.code)) if found.asked >= requirement.smallest else "has one value that"
        best = int(1 / found.share + 1e-9)
        raise InfeasibleError(
            f"{name} {value} is held by {several(found.asked, 'person')}, and the rows without it number "
            f"{found.largest:,}. Every group needs enough rows without it, so no release reaches this {found.says}. "
            f"By this count the largest l possible is {best}, the least alpha {said(found.share, up=True)}. Ask for "
            "less, remove the column from the sensitive columns, or merge its values"
        )
    if found.kind == "frequency":
        assert found.code is not None
        shared = round(found.share * histogram.rows) >= requirement.smallest  # or its few rows would be told apart
        value = repr(show(found.column, found.code)) if shared else "has one value that"
        raise InfeasibleError(
            f"{name} {value} is {100 * found.share:.1f} % of the rows, so no table with "
            f"l = {found.asked} exists; the largest l possible is {found.largest}, "
            f"the least alpha {said(found.share, up=True)}"
        )
    raise InfeasibleError(
        f"{name} has {found.largest} different values, so no table with {found.asked} different values in every group "
        f"exists; the largest possible is {found.largest}"
    )
