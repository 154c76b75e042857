"""A limit on the mean risk of a table: the share of classes in its rows.

Met by asking every group for more rows; with one level per column the classes of a choice of levels are counted.

A budget of rows starred whole, held by every recoding: whatever stars them, they are counted as published.

Which groups show a value that only one of their rows holds: as an end of a range, or in a set.

The hierarchical distance of t-closeness, bound to a table: every column its hierarchy, every value its classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.engines.codes import Coded
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.certificate import Guarantee
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Histogram, Partition, mixed_radix
from shoal.model.policy import Policy
from shoal.model.privacy import Model, OfPersons, Requirement, TCloseness
from shoal.model.privacy.base import said
from shoal.model.recoding import ColumnRecoding, Recoding
from shoal.model.task import Grouping
from shoal.publishing.columns.text import ColumnText

CLOSE = 1e-9


def within(
    asked: Policy, histogram: Histogram, recoding: Recoding, apart: np.ndarray | None, need: Requirement,
    solve: Callable[..., Grouping],
) -> Grouping:  # fmt: skip
    """A grouping whose mean prosecutor risk, classes over rows, is at most what is asked; nothing may be asked.

    apart  int64[cells]  cells of different numbers never share a group; None: any may

    One level per column: the limit is asked of every choice of levels, and so is what is proved.  Else, and beside a
    budget of rows starred whole, every group is asked for more rows.
    Raises InfeasibleError where a group of every part, or of all rows, is above the limit.
    """
    limit, rows = asked.max_average_risk, histogram.rows
    if limit is None or not rows:
        return solve(need)
    few = few_classes(limit, histogram, recoding) if asked.global_recoding else None
    if few is not None and not asked.max_suppressed:
        refuse_above(limit, rows)
        return solve(need, few=few)
    parts = np.zeros(histogram.cells, np.int64) if apart is None else apart
    held = np.bincount(parts, weights=histogram.count).astype(np.int64)
    try:
        return _by_larger(limit, held[held > 0].tolist(), need, solve)
    except InfeasibleError:
        if few is None or limit * rows + CLOSE < 1:
            raise
        found = solve(need, few=few)  # a part may have fewer rows than the groups were asked for
    # what is starred whole could have made other choices of levels few enough
    facts = {n: v for n, v in found.certificate.details.items() if n != "proved"}
    certificate = replace(found.certificate, details=facts | {"uniform_bound": 0, "uniform_optimal": False})
    return replace(found, certificate=certificate)


def _by_larger(limit: float, parts: list[int], need: Requirement, solve: Callable[..., Grouping]) -> Grouping:
    """Groups of more rows, until they are few enough for the rows.  Up to three searches.

    A row in a group of n is found with chance 1/n, so the mean over the rows is the number of groups over the rows.
    Merging groups lowers it: one group of all rows, or of each part where rows are kept apart, has the least.  Groups
    of 1/limit rows suffice where nothing is apart; a smaller size, guessed from the mean size reached without the
    limit, is tried first.  The lower bound is the one without the limit, which every release within it keeps as well.
    """
    rows = sum(parts)
    refuse_above(limit, rows, len(parts))
    allowed = limit * rows + CLOSE
    first = found = solve(need)
    enough = math.ceil(1 / limit - CLOSE)
    while sum(max(n // enough, 1) for n in parts) > allowed:
        enough += 1
    guess = math.ceil(need.smallest * found.partition.groups / (limit * rows) - CLOSE)
    for k in sorted({min(max(guess, need.k), enough), enough}):
        if found.partition.groups <= allowed:
            break
        found = solve(replace(need, k=max(need.k, k)))
    if found.partition.groups > allowed:
        raise InfeasibleError(
            f"no groups were found with a mean risk within ⟨max_average_risk={limit}⟩: the fewest found have "
            f"{said(found.partition.groups / rows, up=True)}; ask for that, or leave out what keeps rows apart"
        )
    if found is first:
        return found
    before, after = first.certificate, found.certificate
    same = before.unit == after.unit
    details = {name: fact for name, fact in after.details.items() if name != "proved"}  # proved of larger groups only
    if "uniform_bound" in details:
        details["uniform_bound"] = before.details["uniform_bound"]
        details["uniform_optimal"] = bool(details["uniform_bound"] >= details["uniform_cost"])
    certificate = replace(
        after,
        lower_bound=before.lower_bound if same else 0,
        bound=f"without the limit on the mean risk: {before.bound}" if same else "none: another unit without the limit",
        guarantee=Guarantee(),
        details={**details, "max_average_risk": limit},
    )
    return replace(found, certificate=certificate)


def refuse_above(limit: float, rows: int, groups: int = 1) -> None:
    """InfeasibleError where so many groups, the fewest there can be, have a mean risk above the limit."""
    if limit * rows + CLOSE >= groups:
        return
    least = f"the least possible is {said(groups / rows, up=True)}"
    above = f"a mean risk of {groups / rows:.4g}, above ⟨max_average_risk={limit}⟩"
    if groups == 1:
        raise InfeasibleError(f"{rows} rows in one group have {above}; {least}")
    raise InfeasibleError(
        f"rows that lack a value are grouped apart (⟨missing='apart'⟩), and {rows} rows in {groups} groups "
        f"have {above}; "
        f"{least}, or {said(1 / rows, up=True)} with ⟨missing='category'⟩"
    )


def few_classes(limit: float, histogram: Histogram, recoding: Recoding) -> Callable[[np.ndarray], np.ndarray]:
    """Whether one level int64[d] for each column leaves few enough classes, bool[cells] and alike for all cells."""
    columns, codes = recoding.hierarchies or (), histogram.quasi

    def admits(levels: np.ndarray) -> np.ndarray:
        shown = [c.node[h][codes[:, j]] for j, (c, h) in enumerate(zip(columns, levels, strict=True))]
        sizes = [int(c.max(initial=0)) + 1 for c in shown]
        classes = np.unique(mixed_radix(np.stack(shown, 1), sizes)).size
        return np.full(histogram.cells, classes <= limit * histogram.rows + CLOSE)

    return admits


Admits = Callable[[np.ndarray], np.ndarray]


def both(one: Admits | None, other: Admits | None) -> Admits | None:
    """Two things asked of a choice of levels as one."""
    if one is None or other is None:
        return one or other
    return lambda levels: np.asarray(one(levels) & other(levels))


def within_budget(grouping: Grouping, columns: Sequence[ColumnText], asked: Policy) -> Grouping:
    """The grouping with its rows starred whole counted; InfeasibleError where they are more than ``max_suppressed``.

    Global recoding spends the budget in its own search, which counts its block alone; a column at its highest level, or
    a label that is the star, may star more rows whole.  O(groups x columns).
    """
    if not asked.max_suppressed:
        return grouping
    sizes = grouping.partition.sizes
    whole = np.all([c.starred[c.index] for c in columns], axis=0)
    found, allowed = int(sizes[whole].sum()), int(asked.max_suppressed * sizes.sum() + 1e-9)
    if found > allowed:
        raise InfeasibleError(
            f"the release that was found stars {found:,} of {int(sizes.sum()):,} rows whole, and "
            f"⟨max_suppressed={asked.max_suppressed:g}⟩ allows {allowed:,}; hierarchies and "
            "ranges hide less, as a lower k does"
        )
    facts = {"suppressed_rows": found, "max_suppressed_rows": allowed}
    certificate = replace(grouping.certificate, details={**grouping.certificate.details, **facts})
    return replace(grouping, certificate=certificate)


class Exposed(NamedTuple):
    """Shares of the groups, from 0 to 1: per column of ranges or sets, and of those that any such column exposes."""

    columns: Mapping[str, float]
    groups: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"columns": dict(self.columns), "groups": self.groups}


def exposed(
    histogram: Histogram, partition: Partition, columns: Sequence[ColumnRecoding], widened: Collection[str]
) -> Exposed:
    """Groups that show a value which one row of theirs holds.

    partition  its groups are the classes of rows published alike
    columns    those that are recoded
    widened    names of those whose ranges end on a grid, at which somebody's value may lie but need not

    Ranges and sets alone: any other form shows what at least k rows share.  O(p d log p) for p triples.
    """
    shares: dict[str, float] = {}
    anywhere = np.zeros(partition.groups, bool)
    for j, column in enumerate(columns):
        size = np.int64(max(column.size, 1))
        key = partition.group * size + histogram.quasi[partition.cell, j]
        order = np.argsort(key)
        start = np.flatnonzero(np.diff(key[order], prepend=-1))
        pair, held = key[order[start]], np.add.reduceat(partition.count[order], start)
        group = pair // size
        border = np.flatnonzero(np.diff(group, prepend=-1, append=partition.groups))
        shown = column.bared(group, pair % size, border)
        if shown is None:
            continue
        shown &= histogram.quasi_names[j] not in widened
        alone = np.zeros(partition.groups, bool)
        alone[group[shown & (held == 1)]] = True
        anywhere |= alone
        shares[histogram.quasi_names[j]] = float(alone.mean()) if alone.size else 0.0
    return Exposed(shares, (float(anywhere.mean()) if anywhere.size else 0.0) if shares else None)


def trees_of(policy: Policy) -> dict[str, Hierarchy]:
    """The hierarchies of sensitive columns; PolicyError or InputError for one that cannot be read."""
    return {name: Hierarchy.of(policy.hierarchies[name]) for name in policy.sensitive if name in policy.hierarchies}


def on_trees(models: Sequence[Model], policy: Policy, sensitive: Sequence[Coded]) -> list[Model]:
    """The models with the hierarchical distance bound to every column that they speak of.

    Raises PolicyError for a value that the hierarchy of its column lacks.
    """
    out: list[Model] = []
    coded = {column.name: column for column in sensitive}
    for model in models:
        if isinstance(model, OfPersons):
            out += [replace(model, asked=bound) for bound in on_trees([model.asked], policy, sensitive)]
            continue
        if not isinstance(model, TCloseness) or model.unbound is None:
            out.append(model)
            continue
        trees = trees_of(policy)
        for name in policy.sensitive if model.column is None else (model.column,):
            if name not in trees:
                raise PolicyError(f"{model.unbound}; say ⟨hierarchies={{column: ...}}⟩")
            out.append(model.on(trees[name].resolve(coded[name].texts(), name).node, name))
    return out
