"""A limit on the mean risk of a table: the share of classes in its rows, met by asking every group for more rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from shoal.errors import InfeasibleError
from shoal.model.certificate import Guarantee
from shoal.model.privacy import Requirement
from shoal.model.privacy.base import said
from shoal.model.task import Grouping

CLOSE = 1e-9


def within(limit: float | None, rows: int, need: Requirement, solve: Callable[[Requirement], Grouping]) -> Grouping:
    """A grouping whose mean prosecutor risk, groups over rows, is at most ``limit``; None asks nothing.

    A row in a group of n is found with chance 1/n, so the mean over the rows is the number of groups over the rows.
    Merging groups lowers it: one group of all rows has the least, 1/rows, and a release exists exactly when that is
    allowed.  Groups of 1/limit rows always suffice; a smaller size, guessed from the mean size reached without the
    limit, is tried first.  The lower bound is the one without the limit, which every release within it keeps as well.

    Raises InfeasibleError where 1/rows is above the limit.  Up to three searches.
    """
    if limit is None or not rows:
        return solve(need)
    if limit * rows + CLOSE < 1:
        raise InfeasibleError(
            f"{rows} rows in one group have a mean risk of {1 / rows:.4g}, above max_average_risk={limit}; the least "
            f"possible is {said(1 / rows, up=True)}"
        )
    first = found = solve(need)
    enough = math.ceil(1 / limit - CLOSE)
    guess = math.ceil(need.smallest * found.partition.groups / (limit * rows) - CLOSE)
    for k in sorted({min(max(guess, need.k), enough), enough}):
        if found.partition.groups <= limit * rows + CLOSE:
            break
        found = solve(replace(need, k=max(need.k, k)))
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
