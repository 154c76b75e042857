"""Values that a hierarchy of rows does not list, and the class that each is put into."""

from __future__ import annotations

import contextlib

import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.model.hierarchy import Hierarchy
from shoal.model.meaning import place, ruler_of, span


def placed(frame: pl.DataFrame, name: str, tree: Hierarchy, level: int) -> tuple[pl.DataFrame, int, int]:
    """The table with every unlisted value of a column replaced by a listed one of the class it is published as.

    tree   a hierarchy of rows;  level: at which the column is published
    A value without such a class becomes a missing one.  So does every unlisted value at level 0, where the listed one
    would be false, and at the top, where all are starred.
    Returns the table, the rows placed and the rows without a class.  O(n + new values listed).
    """
    texts = as_text(frame[name])
    listed = {row[0]: row for row in tree.rows}
    new = [v for v in texts.unique(maintain_order=True).drop_nulls().to_list() if v not in listed]
    if not new:
        return frame, 0, 0
    plain = level in (0, len(tree.rows[0]))  # published as it is, or starred
    known = {v: None if plain else near(v, tree) for v in new}
    lost = [v for v, found in known.items() if found is None]
    rows, without = int(texts.is_in(new).sum()), int(texts.is_in(lost).sum()) if lost else 0
    if plain:
        return frame.with_columns(frame[name].set(texts.is_in(new).fill_null(False), None)), 0, rows
    out = texts.replace_strict(new, [known[v] for v in new], default=texts, return_dtype=pl.String)
    with contextlib.suppress(pl.exceptions.PolarsError):  # of the kind that it was, where that holds the listed values
        out = out.cast(frame.schema[name])
    return frame.with_columns(out.alias(name)), rows - without, without


def near(value: str, tree: Hierarchy) -> str | None:
    """A listed value of the class that an unlisted one belongs to; None where there is none.

    A class whose text is a range that holds it, the finest first; else the nearest number or date; else a value written
    alike but for blanks and case.
    """
    ruler = ruler_of(row[0] for row in tree.rows)
    at = place(value, "number")
    if at is not None:
        for level in range(1, len(tree.rows[0])):
            for row in tree.rows:
                found = span(row[level])
                if found is not None and value in found:
                    return row[0]
    here = place(value, ruler)
    if here is not None and np.isfinite(here):
        places = np.array([place(row[0], ruler) for row in tree.rows], float)
        return tree.rows[int(np.nanargmin(np.abs(places - here)))][0]
    bare = value.strip().casefold()
    return next((row[0] for row in tree.rows if row[0].strip().casefold() == bare), None)
