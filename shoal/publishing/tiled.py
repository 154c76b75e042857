"""Tiles on their way out: a row per place with its tile, and the map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.files import integers, numbers
from shoal.engines.targets import MAP
from shoal.errors import InputError
from shoal.publishing.crosswalk import Crosswalk, Drawing
from shoal.publishing.judging import Sources


def tiles(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    x: str,
    y: str,
    weight: str | None = None,
    codes_left_out: int = 0,
) -> Crosswalk:
    """``Tiles`` of the points in two columns, a row each."""
    own = tile_frame(answer, (x, y))
    points = np.stack([numbers(frame, x), numbers(frame, y)], axis=1)
    counts = [1] * len(points) if weight is None else integers(frame, weight)
    sums = np.zeros(len(answer), np.int64)
    if len(points) == len(answer.labels):
        np.add.at(sums, answer.labels, counts)
    if not np.array_equal(sums, answer.counts):
        raise InputError("the answer does not belong to these points; hand over the table that was cut, row by row")
    places = frame.select(x, y).with_columns(pl.Series("tile", answer.labels)).unique(maintain_order=True)
    parameters = {
        "x": x, "y": y, "weight": weight, "k": answer.k, "objective": answer.objective,
        "coordinates": answer.coordinates, "seam": answer.seam,
    }  # fmt: skip
    facts = {
        "rows": places.height, "points": len(points), "records": int(sums.sum()), "groups": len(answer),
        "smallest_group": int(sums.min()), "largest_group": int(sums.max()), "codes_left_out": codes_left_out,
    }  # fmt: skip
    title = f"{len(answer):,} tiles of at least {answer.k:,} records"
    note = (
        f"Largest {answer.cost:,}, no partition below {answer.certificate.lower_bound:,}; "
        f"at most {answer.certificate.details['tiles_at_most']:,} tiles exist."
    )

    def fill(path: Path) -> None:
        from shoal.report.tile_map import draw

        how: dict[str, Any] = {"coordinates": answer.coordinates, "seam": answer.seam, "title": title, "note": note}
        draw(path, answer.bounds, answer.counts, **how)

    return Crosswalk(
        kind="tiles",
        content=places.join(own, on="tile", how="left", maintain_order="left"),
        certificate=answer.certificate,
        method=answer.method,
        parameters=parameters,
        facts=facts,
        sources=Sources(frame.select(list(dict.fromkeys(n for n in (x, y, weight) if n is not None)))),
        read=read,
        title=title,
        note=note,
        groups=sums.tolist(),
        drawn_map=Drawing(form=MAP, fill=fill),
    )


def tile_frame(found: Any, names: tuple[str, str]) -> pl.DataFrame:
    """A row per tile; a missing bound is no bound."""
    x, y = names
    columns: dict[str, Any] = {"tile": np.arange(len(found))}
    for i, name in enumerate((f"{x}_low", f"{y}_low", f"{x}_high", f"{y}_high")):
        side = found.bounds[:, i]
        columns[name] = pl.Series(np.where(np.isfinite(side), side, np.nan)).fill_nan(None)
    columns["records"] = found.counts
    columns[f"{x}_center"], columns[f"{y}_center"] = found.centers.T.round(_decimals(found))
    return pl.DataFrame(columns)


def _decimals(found: Any) -> int:
    """Digits for a center, about a thousandth of the smaller tiles' sides: more would single out the points summed."""
    sides = (found.boxes[:, 2:] - found.boxes[:, :2]) % (360 if found.coordinates == "geographic" else np.inf)
    typical = np.quantile(sides.max(axis=1), 0.1)
    return int(np.clip(np.ceil(2 - np.log10(max(typical, 1e-12))), 0, 12))
