"""Releases of labels, intervals, and tiles: each value, or each place, with its group."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import closed_to, publish_file
from shoal.engines.codes import encode
from shoal.engines.order import ShuffleKey, shuffled
from shoal.engines.store import column as column_of
from shoal.engines.store import in_plain, integers, numbers, store
from shoal.engines.unassigned import refuse_identifying, singled_in_memory
from shoal.errors import InputError, PolicyError
from shoal.judge.crosswalk import judge_hierarchy
from shoal.model.cards import several
from shoal.model.conditions import TILE_CONDITIONS
from shoal.model.notation import reader_of, refuse_notations
from shoal.paths import DRAWING, MAP, TABLE, TILES
from shoal.publishing.crosswalks.answer_figures import tally
from shoal.publishing.crosswalks.crosswalk import KEPT, Crosswalk, Drawing, refuse_unless
from shoal.publishing.sources import Sources

SHORT = (
    "groups of method 'bicriteria' may be below k: not k-anonymous, so no crosswalk or hierarchy is written; "
    "use ⟨method='auto'⟩"
)


def in_order(
    frame: pl.DataFrame, name: str, count: str | None = None, notation: str | None = None
) -> tuple[list[Any], Any, list[Any]]:
    """Distinct values in order, the number of records of each, and its position (a number, a date, or the value
    itself).

    notation  of a column of texts that are dates or numbers
    """
    from shoal.problems.intervals import from_texts

    values, counts = tally(frame, name, count)
    if any(v is None or v != v or v == "" for v in values):  # an empty text is a missing value in text files
        raise InputError(f"column {name!r} has missing values, which have no place in an order; fill or drop them")
    if any(isinstance(v, datetime.timedelta) for v in values):
        raise InputError(
            f"column {name!r} holds durations, whose order no text shows; turn them into numbers, such as hours"
        )
    texts = values if notation is None else _plain(frame, name, notation, values)
    ordered = from_texts(texts, f"column {name!r}") if all(isinstance(v, str) for v in texts) else texts
    rank = np.argsort(ordered, kind="stable").tolist()
    return [values[i] for i in rank], [counts[i] for i in rank], [ordered[i] for i in rank]


def _plain(frame: pl.DataFrame, name: str, notation: str, values: list[Any]) -> list[str]:
    """Values in a notation, as 2024-12-31 and 1234.5; PolicyError if it can't read all of them unambiguously."""
    encode(column_of(frame, name), notation)
    read = reader_of(notation)
    assert read is not None
    return [str(read(value)) for value in values]


def notation_of(column: str, dates: Mapping[str, str], decimal: Mapping[str, str]) -> str | None:
    """The notation of a column; PolicyError if another column is named."""
    refuse_notations(dates, decimal)
    for name in (*dates, *decimal):
        if name != column:
            raise PolicyError.unknown("column of the intervals", name, [column])
    return {**dates, **decimal}.get(column)


def labels(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    label: str,
    count: str | None = None,
    naming: str = "ends",
    names: Sequence[str] | None = None,
) -> Crosswalk:
    """A crosswalk of a ``Cover`` of the labels in a column, in their order of appearance."""
    from shoal.problems.labels import group_labels

    if names is not None and naming != "ends":
        raise PolicyError(f"⟨naming={naming!r}⟩ has no effect, because ⟨names⟩ are your own; leave one of them out")
    values, counts = tally(frame, label, count)
    _belongs(answer.labels, counts, answer.loads, label)
    shown = _names(names, len(answer.loads)) or group_labels(values, answer.labels, counts, naming)
    content = _content(column_of(frame, label), values, answer.labels, shown, answer.loads).sort("group", "value")
    asked = {"column": label, "count": count, "k": int(answer.k), "objective": answer.objective}
    bound = int(answer.certificate.lower_bound) if answer.objective == "max" else None
    title = f"{label} in groups of {answer.k:,}"
    made = _made("labels", answer, answer.method, content, asked, frame, read, title, bound)
    return replace(made, refused=SHORT) if answer.method == "bicriteria" else made


def intervals(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    value: str,
    count: str | None = None,
    names: Sequence[str] | None = None,
    dates: Mapping[str, str] | None = None,
    decimal: Mapping[str, str] | None = None,
) -> Crosswalk:
    """A crosswalk of a ``Cut`` of the values in a column."""
    from shoal.problems.intervals import distinct, interval_labels

    notation = notation_of(value, dates or {}, decimal or {})
    values, counts, ordered = in_order(frame, value, count, notation)
    found, _, index = distinct(ordered)
    try:
        group = np.searchsorted(answer.lows, found, side="right") - 1
        inside = bool((group >= 0).all()) and bool((found <= answer.highs[group]).all())
    except TypeError:
        inside = False
    if not inside:
        raise InputError(f"the answer is none of column {value!r} of these data; pass what was cut")
    group = group[index]  # equal values in several spellings have one interval
    _belongs(group, counts, answer.loads, value)
    shown = _names(names, len(answer.loads)) or interval_labels(answer.lows, answer.highs)
    content = _content(column_of(frame, value), values, group, shown, answer.loads).sort("group", maintain_order=True)
    k = int(answer.certificate.details["k"])
    asked = {"column": value, "count": count, "k": k, "objective": answer.objective}
    asked |= {} if notation is None else {"notation": notation}
    bound = int(answer.certificate.lower_bound) if answer.objective == "max" else None
    method = f"dynamic program for {answer.objective}"
    return _made("intervals", answer, method, content, asked, frame, read, f"{value} in intervals of {k:,}", bound)


def _belongs(group: np.ndarray, counts: Any, loads: np.ndarray, name: str) -> None:
    """InputError unless the answer's groups count these records."""
    sums = [0] * len(loads)
    if len(group) == len(counts):
        for g, n in zip(group.tolist(), np.asarray(counts).tolist(), strict=True):
            sums[g] += n
    if len(group) != len(counts) or sums != [int(x) for x in loads.tolist()]:
        raise InputError(
            f"the answer does not belong to column {name!r}: its groups count other records; pass the table whose "
            "values were grouped, in their order of appearance"
        )


def _names(names: Sequence[str] | None, groups: int) -> list[str]:
    if names is None:
        return []
    if len(names) < groups or len(set(names[:groups])) < groups:
        raise InputError(
            f"⟨names⟩ holds {several(len(set(names)), 'different name')}, and {several(groups, 'group')} need one "
            "each; name all of them, or leave it out"
        )
    return list(names[:groups])


def _content(
    column: pl.Series, values: list[Any], group: np.ndarray, shown: list[str], loads: np.ndarray
) -> pl.DataFrame:
    """A row for each value, with the type of its column."""
    held: list[Any] = loads.tolist()
    if max(held) >= 1 << 63:
        held = [str(load) for load in held]
    index = pl.Series("group", group, dtype=pl.Int64)
    return pl.DataFrame(
        {
            "value": pl.Series(values, dtype=column.dtype),
            "group": index,
            "group_label": pl.Series(shown, dtype=pl.String).gather(index),
            "group_count": pl.Series(held).gather(index),
        }
    )


def _made(
    kind: str, answer: Any, method: str, content: pl.DataFrame, asked: dict[str, Any], frame: pl.DataFrame,
    read: tuple[str | Path, ...], title: str, bound: int | None,
) -> Crosswalk:  # fmt: skip
    """A crosswalk of labels or of intervals."""
    loads = [int(x) for x in answer.loads.tolist()]
    facts = {
        "rows": content.height,
        "records": sum(loads),
        "groups": len(loads),
        "smallest_group": min(loads),
        "largest_group": max(loads),
    }

    def draw(path: Path) -> None:
        from shoal.report.pictures import as_svg

        path.write_text(as_svg(loads, asked["k"], bound, title), encoding="utf-8")

    needed = [name for name in (asked["column"], asked["count"]) if name is not None]
    again = frame.height - content.height if asked["count"] is not None else 0
    repeated = (
        f"column {asked['column']!r} names {again:,} of its {frame.height:,} values again on a later line; their "
        "counts are added up",
    )
    return Crosswalk(
        kind=kind,
        content=content,
        certificate=answer.certificate,
        method=method,
        parameters=asked,
        facts=facts,
        sources=Sources(frame.select(list(dict.fromkeys(needed)))),
        read=read,
        title=title,
        groups=loads,
        picture=Drawing(form=DRAWING, fill=draw),
        warnings=repeated if again else (),
    )


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
    decimal: Mapping[str, str] | None = None,
) -> Crosswalk:
    """A crosswalk of ``Tiles`` of the points in two columns, one row each.

    identifiers, insensitive  of the companion "table": columns to remove, and columns to publish although they may
                              identify people
    decimal   column of coordinates that are texts -> its decimal mark; the crosswalk has them as plain numbers
    """
    frame = in_plain(frame, marks_of_points(decimal, (x, y)))
    columns = {"boundary": boundary, "sensitive": sensitive, "person": person, "household": household}
    _refuse_other_columns(answer, columns)
    points = np.stack([numbers(frame, x, {}), numbers(frame, y, {})], axis=1)
    counts = [1] * len(points) if weight is None else integers(frame, weight)
    sums, held = _records(answer, counts), answer.labels >= 0
    if boundary is not None and not _of_these_sides(answer, frame[boundary].to_list()):
        raise InputError(f"the answer's tiles mix values of column {boundary!r}; pass the column that was cut by")
    kept = [n for n in (x, y, boundary) if n is not None]
    needed = list(dict.fromkeys(n for n in (*kept, weight, *columns.values()) if n is not None))
    used = pl.DataFrame([column_of(frame, n) for n in needed])
    _refuse_names(kept, tile_frame(answer, (x, y)).columns)
    own = tile_frame(answer, (x, y), boundary)
    labels = pl.Series("tile", answer.labels)
    places = used.select(kept).with_columns(labels).filter(pl.col("tile") >= 0).unique().sort("tile", *kept)
    carried = _unassigned(frame, {x, y, weight, *columns.values()}, identifiers, insensitive, (person, household))
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
        parameters={
            "x": x,
            "y": y,
            "weight": weight,
            **_settings(answer, columns),
            **left,
            **({"decimal": dict(decimal)} if decimal else {}),
        },
        facts=facts,
        sources=Sources(used),
        read=read,
        title=title,
        note=_note(answer, facts),
        groups=sums.tolist(),
        drawn_map=_drawing(answer, title, " ".join([f"{_largest(answer)}.", *_kept(answer)])),
        companions=_companions(answer, carried, own, (x, y), (secret, keep_order)),
    )


def marks_of_points(decimal: Mapping[str, str] | None, axes: tuple[str, str]) -> dict[str, str]:
    """The decimal marks of coordinates; PolicyError for another column, and for a mark that is none."""
    refuse_notations({}, decimal or {})
    for name in decimal or {}:
        if name not in axes:
            raise PolicyError.unknown("column of coordinates", name, axes)
    return dict(decimal or {})


def _settings(answer: Any, columns: Mapping[str, str | None]) -> dict[str, Any]:
    """The request for the tiles, without their coordinates."""
    sparse = "leave-out" if answer.asked.leave_out else "refuse"
    held = {**answer.asked._asdict(), **columns, "grid": answer.grid, "sparse": sparse}
    return {
        "k": answer.k, "objective": answer.objective, "coordinates": answer.coordinates, "seam": answer.seam,
        **{entry.key: held[name] for name, entry in TILE_CONDITIONS.items() if entry.setting.stated == "always"},
    }  # fmt: skip


def as_split(asked: Mapping[str, Any], frame: pl.DataFrame) -> dict[str, Any]:
    """Conditions as arguments of ``shoal.tiles.split``. asked: by name, or as in the certificate of a crosswalk."""
    held = {name: (entry, asked.get(entry.key)) for name, entry in TILE_CONDITIONS.items()}
    return {
        entry.keyword: column_of(frame, value).to_list() if entry.read == "texts" else value
        for entry, value in held.values()
        if value is not None
    }


def _records(answer: Any, counts: Sequence[int]) -> np.ndarray:
    """The number of records in each tile; InputError for an answer to other points."""
    sums, held = np.zeros(len(answer), np.int64), answer.labels >= 0
    if len(counts) == len(answer.labels):
        np.add.at(sums, answer.labels[held], np.asarray(counts)[held])
    if not np.array_equal(sums, answer.counts):
        raise InputError("the answer does not belong to these points; pass the table that was cut, row by row")
    return sums


def _unassigned(
    frame: pl.DataFrame,
    known: set[str | None],
    identifiers: Sequence[str],
    insensitive: Sequence[str],
    units: tuple[str | None, ...],
) -> Callable[[], pl.DataFrame]:
    """A function that gives the table without columns that name people; it raises InputError if a column identifies
    people."""
    _refuse_parts(frame, known, identifiers, insensitive)

    def table() -> pl.DataFrame:
        refuse_unassigned(frame, known, identifiers, insensitive)
        return frame.drop(*identifiers, *(c for c in units if c is not None))

    return table


def refuse_unassigned(
    frame: pl.DataFrame, known: set[str | None], identifiers: Sequence[str], insensitive: Sequence[str]
) -> None:
    """InputError for a column of the companion "table" that would identify people; can be called before the search.

    known  the columns with another role in the tiles; PolicyError if an identifier has another role
    """
    _refuse_parts(frame, known, identifiers, insensitive)
    others = [c for c in frame.columns if c not in known and c not in identifiers]
    if others:
        refuse_identifying(singled_in_memory(frame.select(others).iter_columns()), insensitive, "")


def _refuse_parts(
    frame: pl.DataFrame, known: set[str | None], identifiers: Sequence[str], insensitive: Sequence[str]
) -> None:
    for name in (*identifiers, *insensitive):
        column_of(frame, name)
    if twice := sorted({*identifiers} & {*known, *insensitive}):
        raise PolicyError(
            f"column {twice[0]!r} is among ⟨identifiers⟩, which are left out, and is named elsewhere too; take it out "
            "of one of them"
        )


def _note(answer: Any, facts: Mapping[str, Any]) -> str:
    """A note for the owner of the table: size, bounds, and conditions."""
    proof, left = answer.certificate, facts["rows_left_out"]
    sentences = [
        f"{_largest(answer)}, no partition below {proof.lower_bound:,}; at most {proof.details['tiles_at_most']:,} "
        "tiles exist.",
        *_kept(answer),
    ]
    if left:
        sentences.append(f"{left:,} rows fit no tile and are left out.")
    return " ".join(sentences)


def _largest(answer: Any) -> str:
    return f"Largest {answer.cost:,}"


def _kept(answer: Any) -> list[str]:
    """The conditions that every tile meets, as sentences."""
    asked, sentences = answer.asked, list[str]()
    if answer.boundary is not None:
        sentences.append("No tile mixes values of the boundary; tiles of different values may lie over each other.")
    if asked.l is not None:
        sentences.append(f"No sensitive value is in more than 1/{asked.l:g} of a tile's records.")
    if asked.distinct_l is not None:
        sentences.append(f"Each tile has at least {asked.distinct_l} different sensitive values.")
    if asked.max_width is not None:
        unit = " km" if answer.coordinates == "geographic" else ""
        sentences.append(f"No side is longer than {asked.max_width:g}{unit}.")
    return sentences


def _refuse_other_columns(answer: Any, columns: Mapping[str, str | None]) -> None:
    """PolicyError if the named columns aren't those for which the answer was found."""
    asked = answer.asked
    needed = {
        "boundary": answer.boundary is not None,
        "sensitive": asked.l is not None or asked.distinct_l is not None,
        "person": "persons" in asked.units,
        "household": "households" in asked.units,
    }
    for name, wanted in needed.items():
        if wanted and columns[name] is None:
            raise PolicyError(f"the tiles were cut with ⟨{name}=⟩; name its column, so that it can be judged")
        if not wanted and columns[name] is not None:
            raise PolicyError(f"the tiles were cut without ⟨{name}=⟩; cut them with it, or leave it out here")


def _refuse_names(kept: list[str], added: list[str]) -> None:
    """Refuse a column that is named twice, and one with the name of a column that describes the tiles."""
    for name in kept:
        if kept.count(name) > 1:
            raise PolicyError(f"column {name!r} is named twice among the coordinates and the boundary; name another")
        if name in added:
            raise InputError(f"column {name!r} has the name of a column that describes the tiles; rename it")


def _of_these_sides(answer: Any, sides: list[Any]) -> bool:
    """Whether every row has the boundary value of its tile."""
    return all(
        t < 0 or s == answer.boundary[t] or (answer.boundary[t] is None and (s is None or s != s))
        for t, s in zip(answer.labels.tolist(), sides, strict=True)
    )


def _drawing(answer: Any, title: str, note: str) -> Drawing:
    def fill(path: Path) -> None:
        from shoal.report.maps import draw_tiles

        how: dict[str, Any] = {"coordinates": answer.coordinates, "seam": answer.seam, "title": title, "note": note}
        draw_tiles(path, answer.bounds, answer.counts, **how)

    return Drawing(form=MAP, fill=fill)


def _companions(
    answer: Any, carried: Callable[[], pl.DataFrame], own: pl.DataFrame, names: tuple[str, str],
    order: tuple[Any, bool],
) -> dict[str, Drawing]:  # fmt: skip
    """The outputs that can be written with the crosswalk: a row for each tile, its polygons, and the table."""

    def rows(path: Path) -> None:
        store(own, path)

    def outlines(path: Path) -> None:
        from shoal.report.maps import geojson

        path.write_text(geojson(answer.bounds, own.to_dicts(), answer.coordinates), encoding="utf-8")

    shuffle_key = ShuffleKey.unless_kept(*order)

    def table(path: Path) -> None:
        held = np.flatnonzero(answer.labels >= 0)
        bare = tile_frame(answer, names)  # the table already has the boundary
        made = replaced(carried()[held], bare, pl.Series("tile", answer.labels[held]), names)
        store(made if shuffle_key is None else made[shuffled(made.get_columns(), shuffle_key)], path)

    return {
        "tiles": Drawing(form=TABLE, fill=rows),
        "outlines": Drawing(form=TILES, fill=outlines),
        "table": Drawing(form=TABLE, fill=table, order=KEPT if shuffle_key is None else shuffle_key.words),
    }


def replaced(frame: pl.DataFrame, own: pl.DataFrame, labels: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """The table with the line of its tile or cluster instead of some columns. labels: the number of its group, named
    as in own."""
    added = [c for c in own.columns if c not in ("records", "persons", "households")]
    taken = sorted(set(added) & (set(frame.columns) - set(names)))
    if taken:
        raise InputError(f"the table already has a column {taken[0]!r}, which the {labels.name}s would add; rename it")
    at = min(frame.columns.index(n) for n in names)
    recoded = pl.DataFrame([labels]).join(own.select(added), on=labels.name, how="left", maintain_order="left")
    left = [c for c in frame.columns[:at] if c not in names]
    right = [c for c in frame.columns[at:] if c not in names]
    return pl.concat([frame.select(left), recoded, frame.select(right)], how="horizontal")


def tile_frame(found: Any, names: tuple[str, str], boundary: str | None = None) -> pl.DataFrame:
    """A row for each tile; a missing bound means that there is none."""
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
    """Decimals of a center, about a thousandth of a small tile's side, because more would reveal the sum of the
    points."""
    sides = (found.boxes[:, 2:] - found.boxes[:, :2]) % (360 if found.coordinates == "geographic" else np.inf)
    typical = np.quantile(sides.max(axis=1), 0.1)
    return int(np.clip(np.ceil(2 - np.log10(max(typical, 1e-12))), 0, 12))


def write_hierarchy(made: Crosswalk, path: Path, rows: Iterable[list[str]], counts: Mapping[str, int]) -> None:
    """Write a hierarchy in ARX's format, value;group;...;*, and judge its bytes before the file gets its name."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(sorted(rows))
    publish_file(
        path, lambda temporary: temporary.write_text(text.getvalue(), encoding="utf-8", newline=""),
        lambda temporary: refuse_unless(judge_hierarchy(temporary, counts, int(made.parameters["k"]))),
        closed=closed_to(made.read),
    )  # fmt: skip
