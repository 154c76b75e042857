"""A budget of rows starred whole, held by every recoding: whatever stars them, they are counted as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.policy import Policy
from shoal.model.task import Grouping
from shoal.publishing.columns.text import ColumnText


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
            f"max_suppressed={asked.max_suppressed:g} allows {allowed:,}; hierarchies and "
            "ranges hide less, as a lower k does"
        )
    facts = {"suppressed_rows": found, "max_suppressed_rows": allowed}
    certificate = replace(grouping.certificate, details={**grouping.certificate.details, **facts})
    return replace(grouping, certificate=certificate)
