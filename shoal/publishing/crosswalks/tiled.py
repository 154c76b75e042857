"""Tiles on their way out: a row per place with its tile, and the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.carried import refuse_pointing, singled_in_memory
from shoal.engines.files import column as column_of
from shoal.engines.files import integers, numbers
from shoal.engines.order import Lot, shuffled
from shoal.engines.store import store
from shoal.engines.targets import MAP, TABLE, TILES
from shoal.errors import InputError, PolicyError
from shoal.publishing.crosswalks.crosswalk import Crosswalk, Drawing
from shoal.publishing.crosswalks.judging import Sources


def tiles(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    x: str,
    y: str,
    weight: str | None = None,
    boundary: str | None = None,
    sensitive: str | None = None,
    person: str | None = None,
    household: str | None = None,
    codes_left_out: int = 0,
    secret: str | Path | bytes | None = None,
    keep_order: bool = False,
    identifiers: Sequence[str] = (),
    insensitive: Sequence[str] = (),
) -> Crosswalk:
    """``Tiles`` of the points in two columns, a row each.

    identifiers, insensitive  of the companion "table": columns left out of it, and those that are carried knowingly
    """
    columns = {"boundary": boundary, "sensitive": sensitive, "person": person, "household": household}
    _refuse_other_columns(answer, columns)
    points = np.stack([numbers(frame, x), numbers(frame, y)], axis=1)
    counts = [1] * len(points) if weight is None else integers(frame, weight)
    sums, held = _records(answer, counts), answer.labels >= 0
    if boundary is not None and not _of_these_sides(answer, frame[boundary].to_list()):
        raise InputError(f"the answer's tiles mix values of column {boundary!r}; hand over the column that was cut by")
    kept = [n for n in (x, y, boundary) if n is not None]
    _refuse_names(kept, tile_frame(answer, (x, y)).columns)
    own = tile_frame(answer, (x, y), boundary)
    labels = pl.Series("tile", answer.labels)
    places = frame.select(kept).with_columns(labels).filter(pl.col("tile") >= 0).unique().sort("tile", *kept)
    carried = _carried(frame, {x, y, weight, *columns.values()}, identifiers, insensitive, (person, household))
    left = {name: list(given) for name, given in (("identifiers", identifiers), ("insensitive", insensitive)) if given}
    facts = {
        "rows": places.height, "points": len(points), "records": int(sums.sum()), "groups": len(answer),
        "smallest_group": int(sums.min()), "largest_group": int(sums.max()), "codes_left_out": codes_left_out,
        "rows_left_out": int((~held).sum()), "center_decimals": _decimals(answer),
    }  # fmt: skip
    title = f"{len(answer):,} tiles of at least {answer.k:,} {' and '.join(answer.asked.units) or 'records'}"
    return Crosswalk(
        kind="tiles",
        content=places.join(own.drop(boundary or []), on="tile", how="left", maintain_order="left"),
        certificate=answer.certificate,
        method=answer.method,
        parameters={"x": x, "y": y, "weight": weight, **_settings(answer, columns), **left},
        facts=facts,
        sources=Sources(frame.select(list(dict.fromkeys(n for n in (*kept, weight, *columns.values()) if n)))),
        read=read,
        title=title,
        note=_note(answer, facts),
        groups=sums.tolist(),
        drawn_map=_drawing(answer, title, _note(answer, facts)),
        companions=_companions(answer, carried, own, (x, y), (secret, keep_order)),
    )


def _settings(answer: Any, columns: Mapping[str, str | None]) -> dict[str, Any]:
    """What the tiles were asked for besides their coordinates."""
    asked = answer.asked
    return {
        "k": answer.k, "objective": answer.objective, "coordinates": answer.coordinates, "seam": answer.seam, **columns,
        "l": asked.l, "distinct_l": asked.distinct_l, "max_width": asked.max_width, "grid": answer.grid,
        "extent": asked.extent, "center": asked.center, "sparse": "leave-out" if asked.leave_out else "refuse",
    }  # fmt: skip


def _records(answer: Any, counts: Sequence[int]) -> np.ndarray:
    """Records in each tile; InputError for an answer that was found for other points."""
    sums, held = np.zeros(len(answer), np.int64), answer.labels >= 0
    if len(counts) == len(answer.labels):
        np.add.at(sums, answer.labels[held], np.asarray(counts)[held])
    if not np.array_equal(sums, answer.counts):
        raise InputError("the answer does not belong to these points; hand over the table that was cut, row by row")
    return sums


def _carried(
    frame: pl.DataFrame,
    known: set[str | None],
    identifiers: Sequence[str],
    insensitive: Sequence[str],
    units: tuple[str | None, ...],
) -> Callable[[], pl.DataFrame]:
    """The table without what names people; InputError when it is asked for and a column would point at them."""
    _refuse_parts(frame, known, identifiers, insensitive)

    def table() -> pl.DataFrame:
        refuse_carried(frame, known, identifiers, insensitive)
        return frame.drop(*identifiers, *(c for c in units if c is not None))

    return table


def refuse_carried(
    frame: pl.DataFrame, known: set[str | None], identifiers: Sequence[str], insensitive: Sequence[str]
) -> None:
    """InputError for a column of the companion "table" that would point at people, before a point is cut where asked.

    known  the columns that have a part in the tiles; PolicyError where an identifier has another part too
    """
    _refuse_parts(frame, known, identifiers, insensitive)
    others = [c for c in frame.columns if c not in known and c not in identifiers]
    if others:
        refuse_pointing(singled_in_memory(frame.select(others)), insensitive, "")


def _refuse_parts(
    frame: pl.DataFrame, known: set[str | None], identifiers: Sequence[str], insensitive: Sequence[str]
) -> None:
    for name in (*identifiers, *insensitive):
        column_of(frame, name)
    if twice := sorted({*identifiers} & {*known, *insensitive}):
        raise PolicyError(f"column {twice[0]!r} is among the identifiers, which are left out, and has another part too")


def _note(answer: Any, facts: Mapping[str, Any]) -> str:
    """A line below the title: size, bound, and what was kept to."""
    asked, bound = answer.asked, answer.certificate.details["tiles_at_most"]
    said = [
        f"Largest {answer.cost:,}, no partition below {answer.certificate.lower_bound:,}; "
        f"at most {bound:,} tiles exist."
    ]
    if answer.boundary is not None:
        said.append("No tile mixes values of the boundary; tiles of different values may lie over each other.")
    if asked.l is not None:
        said.append(f"No sensitive value is in more than 1/{asked.l:g} of a tile's records.")
    if asked.distinct_l is not None:
        said.append(f"Each tile has at least {asked.distinct_l} different sensitive values.")
    if asked.max_width is not None:
        unit = " km" if answer.coordinates == "geographic" else ""
        said.append(f"No side is longer than {asked.max_width:g}{unit}.")
    if facts["rows_left_out"]:
        said.append(f"{facts['rows_left_out']:,} rows fit no tile and are left out.")
    return " ".join(said)


def _refuse_other_columns(answer: Any, columns: Mapping[str, str | None]) -> None:
    """PolicyError where the answer was found for columns that are not named, or the other way round."""
    asked = answer.asked
    needed = {
        "boundary": answer.boundary is not None,
        "sensitive": asked.l is not None or asked.distinct_l is not None,
        "person": "persons" in asked.units,
        "household": "households" in asked.units,
    }
    for name, wanted in needed.items():
        if wanted and columns[name] is None:
            raise PolicyError(f"the tiles were cut with {name}=; name its column, so that it can be judged")
        if not wanted and columns[name] is not None:
            raise PolicyError(f"the tiles were cut without {name}=; cut them with it, or leave it out here")


def _refuse_names(kept: list[str], added: list[str]) -> None:
    """A column that is named twice, or one of the crosswalk that would stand beside the tiles' own of its name."""
    for name in kept:
        if kept.count(name) > 1:
            raise PolicyError(f"column {name!r} is named twice among the coordinates and the boundary; name another")
        if name in added:
            raise InputError(f"column {name!r} would stand beside one of that name that tells of the tiles; rename it")


def _of_these_sides(answer: Any, sides: list[Any]) -> bool:
    """Has every row the value of its tile's boundary?"""
    return all(
        t < 0 or s == answer.boundary[t] or (answer.boundary[t] is None and (s is None or s != s))
        for t, s in zip(answer.labels.tolist(), sides, strict=True)
    )


def _drawing(answer: Any, title: str, note: str) -> Drawing:
    def fill(path: Path) -> None:
        from shoal.report.tile_map import draw

        how: dict[str, Any] = {"coordinates": answer.coordinates, "seam": answer.seam, "title": title, "note": note}
        draw(path, answer.bounds, answer.counts, **how)

    return Drawing(form=MAP, fill=fill)


def _companions(
    answer: Any, carried: Callable[[], pl.DataFrame], own: pl.DataFrame, names: tuple[str, str],
    order: tuple[Any, bool],
) -> dict[str, Drawing]:  # fmt: skip
    """The row per tile, its polygons, and the table: what can be written beside the crosswalk."""

    def rows(path: Path) -> None:
        store(own, path)

    def outlines(path: Path) -> None:
        from shoal.report.tile_geojson import geojson

        path.write_text(geojson(answer.bounds, own.to_dicts(), answer.coordinates), encoding="utf-8")

    def table(path: Path) -> None:
        secret, keep = order
        held = np.flatnonzero(answer.labels >= 0)
        bare = tile_frame(answer, names)  # the boundary stands in the table already
        made = replaced(carried()[held], bare, pl.Series("tile", answer.labels[held]), names)
        store(made if keep else made[shuffled(made.get_columns(), Lot.given(secret))], path)

    return {
        "tiles": Drawing(form=TABLE, fill=rows),
        "outlines": Drawing(form=TILES, fill=outlines),
        "table": Drawing(form=TABLE, fill=table),
    }


def replaced(frame: pl.DataFrame, own: pl.DataFrame, labels: pl.Series, names: tuple[str, str]) -> pl.DataFrame:
    """The table without its coordinates, with its tile's number, bounds and center in their place."""
    added = [c for c in own.columns if c not in ("records", "persons", "households")]
    taken = sorted(set(added) & (set(frame.columns) - set(names)))
    if taken:
        raise InputError(f"the table already has a column {taken[0]!r}, which the tiles would add; rename it")
    at = min(frame.columns.index(n) for n in names)
    recoded = pl.DataFrame([labels]).join(own.select(added), on="tile", how="left", maintain_order="left")
    left = [c for c in frame.columns[:at] if c not in names]
    right = [c for c in frame.columns[at:] if c not in names]
    return pl.concat([frame.select(left), recoded, frame.select(right)], how="horizontal")


def tile_frame(found: Any, names: tuple[str, str], boundary: str | None = None) -> pl.DataFrame:
    """A row per tile; a missing bound is no bound."""
    x, y = names
    columns: dict[str, Any] = {"tile": np.arange(len(found))}
    if boundary is not None:
        columns[boundary] = pl.Series(found.boundary, strict=False)
    for i, name in enumerate((f"{x}_low", f"{y}_low", f"{x}_high", f"{y}_high")):
        side = found.bounds[:, i]
        columns[name] = pl.Series(np.where(np.isfinite(side), side, np.nan)).fill_nan(None)
    columns["records"] = found.counts
    columns.update(found.units)
    columns[f"{x}_center"], columns[f"{y}_center"] = found.centers.T.round(_decimals(found))
    return pl.DataFrame(columns)


def _decimals(found: Any) -> int:
    """Digits for a center, about a thousandth of the smaller tiles' sides: more would single out the points summed."""
    sides = (found.boxes[:, 2:] - found.boxes[:, :2]) % (360 if found.coordinates == "geographic" else np.inf)
    typical = np.quantile(sides.max(axis=1), 0.1)
    return int(np.clip(np.ceil(2 - np.log10(max(typical, 1e-12))), 0, 12))
