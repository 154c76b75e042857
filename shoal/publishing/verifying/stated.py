"""What a certificate states that a release no longer shows: who stood behind the rows, and what their cells lacked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from shoal.judge.finding import STATED, Finding
from shoal.judge.tables.parts import Held, is_parquet
from shoal.model.audit import Audit
from shoal.model.missing import with_filled
from shoal.model.privacy import KAnonymity, KMap
from shoal.publishing.verifying.recorded import Record


def persons(record: Record) -> Finding:
    """Who stands behind the rows is not in the release; the certificate says what was counted."""
    found = record.raw.get("persons")
    asked = max((getattr(m, "k", 1) for m in record.policy.privacy if m.speaks != "population"), default=1)
    entry = found if isinstance(found, dict) else {}
    counts = {n: entry.get(n) for n in record.policy.units}
    good = all(isinstance(x, int) and not isinstance(x, bool) and asked <= x for x in counts.values())
    good = good or not record.rows
    named = ", ".join(f"{x} different values of {n!r}" for n, x in counts.items())
    text = f"{named} in the class with fewest, counted before the column left; {asked} asked"
    for model in record.policy.privacy:
        if model in record.policy.of_rows:
            continue
        wanted = getattr(model, fields(model)[0].name)  # type: ignore[arg-type]
        level = record.levels.get(model.short)
        kept = level is not None and (level >= wanted - 1e-9 if model.weaker is min else level <= wanted + 1e-9)
        good = good and (kept or not record.rows)
        text += f"; by persons {model.short} = {level}, {wanted} asked"
    return Finding("persons", good, text, STATED)


def incomplete(record: Record, shown: int = 0, original: pl.DataFrame | None = None) -> Finding:
    """Rows that lack a quasi-identifier, how many with the original; in which class each went the certificate says.

    shown  rows of the release that show a missing value: no more lack one than the certificate says
    """
    entry = record.raw.get("incomplete")
    said = dict(entry) if isinstance(entry, dict) else {}
    rows, own, others = (
        x if type(x) is int else -1 for x in (said.get(n) for n in ("rows", "smallest", "smallest_of_others"))
    )
    asked = max((m.k for m in record.policy.privacy if isinstance(m, KAnonymity)), default=1)
    columns = said.get("columns")
    parts = [(part, least) for part, least in ((rows, own), (record.rows - rows, others)) if part or least]
    good = shown <= rows and all(part >= least >= asked for part, least in parts)
    good = good and isinstance(columns, list) and bool(columns) == (rows > 0)
    if parts:  # a class holds rows of both parts or of one; where there is one, its classes are the release's
        least = min(least for _, least in parts)
        good = good and (least == record.smallest if len(parts) == 1 else least <= record.smallest)
    text = (
        f"{rows} rows lack a quasi-identifier and are grouped apart; in a class at least {own} of them, {others} others"
    )
    if original is None:
        return Finding("missing values", good, text, STATED)
    gone = {
        name: (column.fill_nan(None) if column.dtype.is_float() else column).is_null()
        for name, column in ((n, original[n]) for n in record.policy.quasi_identifiers)
    }
    there = pl.DataFrame(gone).filter(pl.any_horizontal(pl.all())).height
    same = good and there == rows and columns == [n for n, lacks in gone.items() if lacks.any()]
    return Finding("missing rows", same, f"{there} rows of the original lack a quasi-identifier")


def lacking(path: Path, held: Held, record: Record) -> int:
    """Rows at least that show a missing value which is no star; in a typed column stars are missing values as well.

    In a file of text a blank of a column that had no missing value is an empty text.
    """
    said = record.raw.get("incomplete")
    texts = None if is_parquet(path) or not isinstance(said, dict) else said.get("columns")
    lack = pl.Series([False]).new_from_index(0, held.cells.height)
    beyond = 0
    for name in record.policy.quasi_identifiers:
        column, stars = held.cells[name], record.said.stars[name]
        is_text = isinstance(column.dtype, (pl.String, pl.Categorical))  # a CSV's texts may come as categories
        if is_text and isinstance(texts, list) and name not in texts:
            continue
        if name in record.said.blanks or (not is_text and stars):
            beyond = max(beyond, int(held.counts[column.is_null().to_numpy()].sum()) - stars)
        else:
            lack = lack | column.is_null()
    return max(beyond, int(held.counts[lack.to_numpy()].sum()))


def filled_cells(record: Record, cells: Mapping[str, int] | None = None) -> Finding:
    """Cells filled before anything was counted; cells: those of the original, where it is at hand."""
    entry = record.raw.get("filled")
    said = dict(entry) if isinstance(entry, dict) else {}
    good = set(said) == set(record.policy.quasi_identifiers)
    good = good and all(type(x) is int and 0 <= x <= record.rows for x in said.values())
    total = with_filled((record.said.loss or {})["ncp"], said, record.rows)["ncp_with_filled"] if good else math.nan
    stated = record.raw["loss"].get("ncp_with_filled")
    good = good and isinstance(stated, (int, float)) and math.isclose(stated, total, rel_tol=1e-9, abs_tol=1e-12)
    if cells is None:
        text = f"{sum(said.values()) if good else 'no one knows how many'} missing values were filled and count as lost"
        return Finding("filled values", good, text, STATED)
    text = f"{sum(cells.values())} values of the original are missing, and were filled"
    return Finding("filled cells", good and dict(cells) == said, text)


def carried(record: Record, original: pl.DataFrame) -> Finding:
    """Rows that the columns carried along single out, counted again."""
    said = dict(record.raw["carried"])
    names = [n for n in said["columns"] if n in original.columns]
    alone = {name: _single([original[name]]) for name in names}
    found: dict[str, Any] = {"alone": alone, "together": _single([original[name] for name in names])}
    same = found == {name: said.get(name) for name in found}
    text = f"the columns carried along single out {found['together']} rows"
    return Finding("carried", same, text if same else f"{text}; the certificate says otherwise")


def _single(columns: Sequence[pl.Series]) -> int:
    """Rows whose values in some columns no other row holds; without columns none."""
    held = pl.DataFrame([column.alias(f"c{i}") for i, column in enumerate(columns)])
    return int((held.group_by(held.columns).len("n")["n"] == 1).sum()) if columns else 0


def _alike(stated: Any, found: Any) -> bool:
    """Whether two figures, or the figures of two mappings or lists, are the same."""
    if isinstance(found, Mapping):
        mine = isinstance(stated, Mapping) and set(stated) == set(map(str, found))
        return mine and all(_alike(stated[str(name)], value) for name, value in found.items())
    if isinstance(found, (list, tuple)):
        mine = isinstance(stated, (list, tuple)) and len(stated) == len(found)
        return mine and all(_alike(a, b) for a, b in zip(stated, found, strict=True))
    if isinstance(found, float) and type(stated) in (int, float):
        return math.isclose(stated, found, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == found)


def population_of(record: Record, audit: Audit) -> Finding:
    """What the population tells, counted again where it is at hand, and stated where it is not."""
    entry = record.raw.get("population")
    said = dict(entry) if isinstance(entry, dict) else {}
    if audit.population is not None:
        fits = f"every group fits at least {audit.population['k_map']} of {audit.population['rows']} people"
        same = all(_alike(said.get(name), value) for name, value in audit.population.items() if name != "from")
        return Finding("population", same, fits if same else f"{fits}; the certificate says otherwise")
    least, people = said.get("k_map"), said.get("rows")
    asked = max((m.k for m in record.policy.privacy if isinstance(m, KMap)), default=0)
    good = not record.rows or (type(least) is int and type(people) is int and asked <= least <= people)
    source = "the column of weights, which left" if record.policy.weighed else "the population, which is not at hand"
    return Finding("population", good, f"every group fits at least {least} of {people} people, by {source}", STATED)
