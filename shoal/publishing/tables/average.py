"""A limit on the mean risk of a table: the share of classes in its rows.

Met by asking every group for more rows; with one level per column the classes of a choice of levels are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.policy import Policy
from shoal.model.privacy import Requirement
from shoal.model.privacy.base import said
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping

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
            f"no groups were found with a mean risk within max_average_risk={limit}: the fewest found have "
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
    above = f"a mean risk of {groups / rows:.4g}, above max_average_risk={limit}"
    if groups == 1:
        raise InfeasibleError(f"{rows} rows in one group have {above}; {least}")
    raise InfeasibleError(
        f"rows that lack a value are grouped apart (missing='apart'), and {rows} rows in {groups} groups have {above}; "
        f"{least}, or {said(1 / rows, up=True)} with missing='category'"
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
