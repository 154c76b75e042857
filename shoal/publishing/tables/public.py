"""The figures of a public report: what a released table and its certificate file show, and nothing else.

``public_figures`` gets the published rows, the content of the certificate file and an audit of these rows.  It cannot
know the original, so no page made of it can tell anything about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from shoal.model.audit import Audit
from shoal.publishing.bins import distribution, pictured
from shoal.publishing.tables import statement
from shoal.publishing.tables.figures import least_rows, shown_rows
from shoal.publishing.tables.patterns import at_risk
from shoal.utility.decode import Decoded


def public_figures(
    frame: pl.DataFrame, certificate: Mapping[str, Any], audit: Audit, models: Sequence[Any], file: Mapping[str, Any]
) -> dict[str, Any]:
    """Plain values for the page and for JSON.  O(rows).

    frame        the released rows
    certificate  the content of the certificate file;  models: the privacy models that it asks for
    audit        of the released rows;  file: what is known of the file that was written, {} before it is
    """
    asked = certificate["policy"]
    names = tuple(asked["quasi_identifiers"])
    # labels of a hierarchy are shown as they stand; the files they come from need not be here
    form = "stars" if asked["publish"] == "hierarchy" else asked["publish"]
    reading: Any = SimpleNamespace(
        grouped=names, sensitive=tuple(asked["sensitive"]), star=asked["star"], publish=form, hierarchies={},
        privacy=tuple(models),
    )  # fmt: skip
    stars = certificate["stars"]
    release = SimpleNamespace(policy=reading, audit=audit, stars=stars)
    decoded = Decoded.shown(frame, reading, stars)
    least = least_rows(release)
    facts = [name for name in (*statement.RECORDED, "certificate") if name in certificate]
    return {
        "internal": False,
        "made_by": certificate["made_by"],
        "made_at": certificate["made_at"],
        "source": "not told",
        "written": dict(file) or None,
        "release": {**{name: certificate[name] for name in facts}, "rows": audit.rows, "attempts": []},
        "audit": {**audit.as_dict(), "exposed": {}, "exposed_classes": None, "notes": []},
        "policy": asked,
        "hierarchies": certificate.get("hierarchies"),
        "before": {},
        "least": least,
        "step": 0,
        "columns": [_column(decoded, name, certificate, least) for name in names],
        "together": None,
        "by_loss": None,
        "at_risk": at_risk(audit.sizes),
        "pairs": [],
        "shown": shown_rows(release, decoded.table, least),
    }


def _column(decoded: Decoded, name: str, certificate: Mapping[str, Any], least: int) -> dict[str, Any]:
    column, asked = pictured(decoded.columns[name], name), certificate["policy"]
    rows = np.bincount(column.where, minlength=len(column.cells))
    nothing: tuple[Sequence[str | None], np.ndarray] = ((), np.zeros(0, np.int64))
    return {
        "name": name,
        "before_shown": False,
        "before": None,
        "after": len(column.cells),
        "changed": certificate["changed"][name],
        "hidden": certificate["stars"][name],
        "loss": None,
        "weight": float(asked["weights"].get(name, 1.0)),
        "ceiling": asked["max_level"].get(name),
        "distribution": distribution(column, rows, nothing, least, 0),
    }
