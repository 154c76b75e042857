"""Figures and pictures of the report on a crosswalk: from the written files, the certificate, and the groups'
counts."""

from __future__ import annotations

import base64
import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.judge.places.clusters import published_values
from shoal.model import certificate
from shoal.model.metric import KM_PER_DEGREE
from shoal.publishing.crosswalks.centers import multiset
from shoal.publishing.documents import made_now
from shoal.publishing.tables.figures import COLUMN_BINS, ROWS, round_step


def pictures(made: Any) -> list[tuple[str, str]]:
    """(title, SVG or image data) of the map, the scatter plot, or the bars, as far as each can be drawn.

    made  a ``Crosswalk``. Without matplotlib, the text of a map or a scatter plot is empty, and the page says so.
    """
    wanted = [(f"Map: {made.title}", made.drawn_map), (f"Groups: {made.title}", made.picture)]
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for what, drawing in wanted:
            if drawing is None or not made.groups:
                continue
            ending = ".png" if ".png" in drawing.form.endings else ".svg"
            place = Path(folder) / f"drawn{ending}"
            try:
                drawing.fill(place)
            except MissingDependencyError:
                out.append((what, ""))
                continue
            data = place.read_bytes()
            shown = data.decode() if ending == ".svg" else f"data:image/png;base64,{base64.b64encode(data).decode()}"
            out.append((what, shown))
    return out


def tally(frame: pl.DataFrame, name: str, count: str | None = None) -> tuple[list[Any], Any]:
    """Distinct values, and the number of records of each, in order of appearance if there is a count column, else by
    value.

    count  column with the number of records of each row, whole numbers of at least 0; None: every row is one record

    Returns (values, int64[n], or Python integers if 64 bits are too few).
    """
    from shoal.engines.codes import refuse_opaque
    from shoal.engines.store import column, integers

    refuse_opaque(column(frame, name))
    values = frame[name].alias("value")
    if values.dtype.is_float():
        # the two zeros are one value, and so are NaN and null
        values = values.set(values == 0, 0.0).fill_nan(None)
    if count is None:
        found = values.to_frame().group_by("value").len().sort("value")
        return found["value"].to_list(), found["len"].cast(pl.Int64).to_numpy()
    weights = column(frame, count)
    if weights.dtype == pl.String:
        weights = weights.str.strip_chars()
    numbers = weights.cast(pl.Int64, strict=False)
    exact = not numbers.is_null().any() and not (weights.dtype.is_float() and (weights != numbers).any())
    if exact and not (numbers < 0).any() and not (numbers > (1 << 62) // max(len(numbers), 1)).any():
        both = pl.DataFrame({"value": values, "count": numbers})
        found = both.group_by("value", maintain_order=True).agg(pl.col("count").sum())
        return found["value"].to_list(), found["count"].to_numpy()
    sums: dict[Any, int] = {}
    for row, (value, number) in enumerate(zip(values.to_list(), integers(frame, count), strict=True), 1):
        if number < 0:
            raise InputError(f"column {count!r} has a number below 0 in row {row:,}; a count is at least 0")
        sums[value] = sums.get(value, 0) + number
    return list(sums), list(sums.values())


THRESHOLD = 0.2  # risk above which a record counts as at risk, as in audits
# the page shows rows of these and of tiles; other groups have names that consist of values
CLUSTERS = ("gather", "cellular")


def figures(made: Any) -> dict[str, Any]:
    """Plain values for the page and for JSON. The source contributes only the number of records of its values. O(n log
    n).

    made  a ``Crosswalk``
    """
    least, before = least_of(made.kind, made.parameters), sizes_before(made.kind, made.sources.table, made.parameters)
    return _shown_figures(made) | {
        "internal": True,
        "source": ", ".join(dict.fromkeys(Path(p).name for p in made.read)) or None,
        "written": made.written or None,
        "title": made.title,
        "method": made.method,
        "parameters": dict(made.parameters),
        "facts": dict(made.facts),
        "hierarchies": made.parameters.get("hierarchies") or {},
        "warnings": list(made.warnings),
        "certificate": made.certificate.as_dict(),
        "before": None if before is None else {**size_figures(before, least), **risk(before)},
    }


def public_figures(made: Any) -> dict[str, Any]:
    """Figures from the written files and the certificate file alone, so that they reveal nothing about the source.

    Raises PolicyError if the written files don't show the group sizes that a page states.
    """
    if {about.get("part") for about in made.written.get("also", ())} == {"hierarchy"} and "file" not in made.written:
        raise PolicyError(
            "a public page states the weight of each region, which a hierarchy alone does not show; write the "
            "crosswalk too, or ask for an internal page (⟨internal=True⟩)"
        )
    written = {name: held for name, held in made.written.items() if name != "record"}
    whole = not made.written or "file" in made.written  # whether the crosswalk itself can be read
    content = certificate.content(made.record(None, None), made.certificate, (), whole, True)
    content = json.loads(json.dumps(content, default=str))
    return _shown_figures(made) | {
        "internal": False,
        "source": "not stated",
        "written": written or None,
        "title": f"{len(made.groups):,} groups of at least {least_of(made.kind, made.parameters):,}",
        "method": None,
        "parameters": content["parameters"],
        "facts": content["facts"],
        "hierarchies": content["parameters"].get("hierarchies") or {},
        "warnings": [],
        "certificate": content["certificate"],
        "before": None,
    }


def _shown_figures(made: Any) -> dict[str, Any]:
    """The figures of both kinds of report, which the written files show."""
    sizes, least = [int(n) for n in made.groups], least_of(made.kind, made.parameters)
    return {
        **made_now(),
        "kind": made.kind,
        "k": least,
        "columns": list(made.content.columns),
        "after": {**size_figures(sizes, least), **risk(sizes)},
        "sizes": {str(s): n for s, n in sorted(counted(sizes).items())},
        "loss": losses(made.kind, made.content, made.parameters),
        "shown": shown(made.kind, made.content, made.parameters),
    }


def least_of(kind: str, parameters: Mapping[str, Any]) -> int:
    """The minimum size of a group: k, that of the first weight if there are several, or r."""
    asked = parameters["r"] if kind in CLUSTERS else parameters["k"]
    return int(asked[0] if isinstance(asked, (list, tuple)) else asked)


def counted(sizes: list[int]) -> dict[int, int]:
    """Size -> number of groups of this size."""
    values, often = np.unique(np.array(sizes, object), return_counts=True) if sizes else ((), ())
    return {int(v): int(n) for v, n in zip(values, often, strict=True)}


def sizes_before(kind: str, frame: pl.DataFrame | None, parameters: Mapping[str, Any]) -> list[int] | None:
    """Number of records of each original value, area, place, or record; None if the table isn't available."""
    if frame is None:
        return None
    if kind in ("labels", "intervals"):
        return [int(n) for n in tally(frame, parameters["column"], parameters["count"])[1]]
    if kind == "regions":
        weights = frame[parameters["weight"][0]].cast(pl.Float64, strict=False).fill_null(0.0)
        return [int(w) for w in weights.to_list()]
    if kind == "tiles":
        return _places(frame, parameters)
    if kind not in CLUSTERS:
        return None
    names = [*parameters["columns"], *(parameters["place"] or ())]
    return [int(n) for n in frame.group_by(names).len("__shoal_n")["__shoal_n"].to_list()]


def _places(frame: pl.DataFrame, parameters: Mapping[str, Any]) -> list[int]:
    """The number of units that k counts at each place: persons, households, or records by their weights."""
    at = [parameters["x"], parameters["y"]]
    one = next((parameters[name] for name in ("person", "household") if parameters.get(name)), None)
    if one is not None:
        count = pl.col(one).n_unique()
    elif parameters["weight"] is not None:
        count = pl.col(parameters["weight"]).cast(pl.Float64, strict=False).sum().cast(pl.Int64)
    else:
        count = pl.len()
    return [int(n) for n in frame.group_by(at).agg(count.alias("__shoal_n"))["__shoal_n"].to_list()]


def size_figures(sizes: list[int], k: int) -> dict[str, Any]:
    """Figures on the sizes of groups."""
    return {
        "groups": len(sizes),
        "records": sum(sizes),
        "smallest": min(sizes, default=0),
        "median": int(np.median(np.array(sizes, np.float64))) if sizes else 0,
        "largest": max(sizes, default=0),
        "below": sum(0 < n < k for n in sizes),
        "below_records": sum(n for n in sizes if n < k),
        "alone": sum(n == 1 for n in sizes),
    }


def risk(sizes: list[int]) -> dict[str, float]:
    """The risk of being found by someone who knows only the group: maximum, mean, and the share of records at risk."""
    held = [n for n in sizes if n > 0]
    records = sum(held)
    if not held:
        return {"prosecutor_max": 0.0, "marketer": 0.0, "records_at_risk": 0.0, "threshold": THRESHOLD}
    return {
        "prosecutor_max": 1 / min(held),
        "marketer": len(held) / records,
        "records_at_risk": sum(n for n in held if 1 / n > THRESHOLD) / records,
        "threshold": THRESHOLD,
    }


def losses(kind: str, content: pl.DataFrame, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The distribution of the groups' losses: {"what", "unit", quantiles, "bars": [{"label", "groups"}]}."""
    what, unit, values, without = _lost(kind, content, parameters)
    if not values.size:
        return None
    cuts = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    names = ("least", "quarter", "half", "three_quarters", "most")
    return {
        "what": what,
        "unit": unit,
        **{name: round(float(cut), 6) for name, cut in zip(names, cuts, strict=True)},
        "mean": round(float(values.mean()), 6),
        "unbounded": without,
        "bars": spread(values),
    }


def _lost(kind: str, content: pl.DataFrame, parameters: Mapping[str, Any]) -> tuple[str, str, np.ndarray, int]:
    """The kind of loss, its unit, a number for each group, and the number of groups without one."""
    if kind in ("labels", "intervals"):
        return "values that became one", "values in a group", content.group_by("group").len()["len"].to_numpy(), 0
    if kind == "regions":
        inside = content.filter(pl.col("region") != "*")
        return "areas that became one", "areas in a region", inside.group_by("region").len()["len"].to_numpy(), 0
    if kind == "tiles":
        spans, without = _half_perimeters(content, parameters)
        geographic = parameters["coordinates"] == "geographic"
        return "width plus height of a tile", "km" if geographic else "units of the coordinates", spans, without
    if kind not in CLUSTERS:
        return "", "", np.zeros(0), 0
    return "radius of a cluster", str(parameters["unit"]), content["distance"].cast(pl.Float64).to_numpy(), 0


def tiles_of(content: pl.DataFrame) -> pl.DataFrame:
    """One row for each tile, from a crosswalk with one row for each place."""
    return content.unique("tile", keep="first", maintain_order=True).sort("tile")


def _half_perimeters(content: pl.DataFrame, parameters: Mapping[str, Any]) -> tuple[np.ndarray, int]:
    """Width plus height of the tiles with four sides, and the number of the other tiles."""
    x, y = parameters["x"], parameters["y"]
    own = tiles_of(content).select(f"{x}_low", f"{y}_low", f"{x}_high", f"{y}_high").cast(pl.Float64).to_numpy()
    whole = own[np.isfinite(own).all(axis=1)]
    wide, tall = whole[:, 2] - whole[:, 0], whole[:, 3] - whole[:, 1]
    if parameters["coordinates"] == "geographic":
        wide = wide % 360 * np.cos(np.radians((whole[:, 1] + whole[:, 3]) / 2)) * KM_PER_DEGREE
        tall = tall * KM_PER_DEGREE
    return wide + tall, len(own) - len(whole)


def spread(values: np.ndarray) -> list[dict[str, Any]]:
    """The number of groups in each of at most a dozen round intervals."""
    whole = bool((values == np.floor(values)).all())
    low, high = float(values.min()), float(values.max())
    step = round_step((high - low) / COLUMN_BINS)
    step = max(step, 1.0) if whole else step
    first = np.floor(low / step)
    at = (np.floor(values / step + 1e-9) - first).astype(np.int64)
    numbers = np.bincount(np.maximum(at, 0))
    return [
        {"label": _span((first + i) * step, (first + i + 1) * step, whole), "groups": int(n)}
        for i, n in enumerate(numbers.tolist())
    ]


def _span(low: float, high: float, whole: bool) -> str:
    if not whole:
        return f"{low:.4g} up to {high:.4g}"
    return f"{low:,.0f}" if high - low == 1 else f"{low:,.0f} to {high - 1:,.0f}"


def shown(kind: str, content: pl.DataFrame, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Ten published rows of tiles or clusters, one for each group.

    A sensitive value that fewer records have in total than the minimum size of a group isn't shown.
    """
    if kind != "tiles" and kind not in CLUSTERS:
        return {"columns": [], "rows": []}
    rows = content
    if kind == "tiles":
        own = tiles_of(content)
        rows = own.select(own.columns[own.columns.index("tile") :])
    else:
        least = least_of(kind, parameters)
        rows = rows.with_columns(_common(rows[name], least) for name in parameters["sensitive"])
    rows = rows.gather_every(max(1, rows.height // ROWS)).head(ROWS)
    return {"columns": rows.columns, "rows": [[_plain(v) for v in row] for row in rows.iter_rows()]}


def _common(column: pl.Series, least: int) -> pl.Series:
    """Multisets of values as published for clusters, in which values of fewer than ``least`` records are combined."""
    held = [published_values(text, column.name) for text in column.to_list()]
    total: Counter[str | None] = Counter()
    for counts in held:
        total.update(counts)
    lines = []
    for counts in held:
        line: Counter[str | None] = Counter()
        for value, n in counts.items():
            line[value if total[value] >= least else "held by few"] += n
        lines.append(multiset(line))
    return pl.Series(column.name, lines, dtype=pl.String)


def _plain(value: Any) -> Any:
    if value is None:
        return "none"
    return value if isinstance(value, (int, float)) else str(value)
