"""What a table gives away as it came, which the report sets beside the release."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engines.dangerous import Danger, dangerous
from shoal.engines.oddities import notes
from shoal.engines.table import Counted
from shoal.publishing.tables.patterns import at_risk


def before(counted: Counted) -> dict[str, Any]:
    """Rows, classes, uniques and dangerous columns, from the cells of the table as it came.  O(m log m)."""
    of_type, first = counted.histogram.types
    sizes = np.bincount(of_type, weights=counted.histogram.count, minlength=first.size)
    return {
        "rows": counted.histogram.rows,
        "classes": int(first.size),
        "smallest_class": int(sizes.min()) if first.size else 0,
        "uniques": int((sizes == 1).sum()),
        "at_risk": _at_risk(sizes),
        "distinct_values": {c.name: c.size for c in [*counted.quasi, *counted.sensitive]},
        "notes": list(notes(counted)),
        "dangerous": [d.as_dict() for d in _dangerous(counted)],
    }


def _at_risk(sizes: np.ndarray) -> list[dict[str, float]]:
    """Shares of the rows at risk by threshold, to a thousandth: of one row or two nothing is told."""
    values, classes = np.unique(sizes.astype(np.int64), return_counts=True)
    found = at_risk(dict(zip(values.tolist(), classes.tolist(), strict=True)))
    return [{**one, "rows": round(one["rows"], 3)} for one in found]


def _dangerous(counted: Counted) -> list[Danger]:
    """What the quasi-identifiers single out together, from the table as it came."""
    of_type, first = counted.histogram.types
    held = np.bincount(of_type, weights=counted.histogram.count, minlength=first.size).astype(np.int64)
    return dangerous(list(counted.histogram.quasi[first].T), [c.name for c in counted.quasi], held)
