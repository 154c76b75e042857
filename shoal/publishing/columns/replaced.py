"""The new values of a column in the type that leaves, and what they leave unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import Coded
from shoal.engines.oddities import coded_places
from shoal.engines.table import Counted, Replacement
from shoal.model import coordinates
from shoal.model.policy import Policy
from shoal.model.privacy import PrivacyModel, TCloseness
from shoal.model.recoding import Recoding
from shoal.publishing.columns.recodings import without_effect
from shoal.publishing.columns.text import ColumnText


def replacement(column: ColumnText, coded: Any, numeric_stars: str, apart: bool) -> Replacement:
    """The new values of a column: its own type where every published value is its own or missing, else text.

    apart  where stars stand beside missing values, keep them apart: as text
    """
    own = coded.values.dtype
    numeric = not (own == pl.String or isinstance(own, (pl.Categorical, pl.Enum)))
    coarser = (column.shows < 0) & ~column.starred
    null = numeric_stars == "null" and not (apart and _both(column))
    if numeric and not coarser.any() and (null or not column.starred.any()):
        empty = coded.values.clear().extend_constant(None, 1)
        pool = pl.concat([coded.values, empty])
        values = pool.gather(np.where(column.shows < 0, len(coded.values), column.shows))
    else:
        values = pl.Series(column.name, column.texts, dtype=pl.String)
    return Replacement(column.name, values, column.index)


def _both(column: ColumnText) -> bool:
    """Whether stars stand beside missing values that are published as they are."""
    return bool(column.starred.any()) and any(t is None for t in column.texts)


def blurred_columns(columns: Sequence[ColumnText], replacements: Sequence[Replacement]) -> tuple[str, ...]:
    """A sentence for each column in which a star and a missing value are one."""
    return tuple(
        f"column {c.name!r}: stars and missing values are both published as missing, so nobody can tell them apart, "
        "and a CSV has empty fields for both; numeric_stars='text' writes stars"
        for c, r in zip(columns, replacements, strict=True)
        if r.values.dtype != pl.String and not r.values.dtype.is_nested() and _both(c)
    )


def like_values(columns: Sequence[ColumnText], own: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """A sentence for each column with a published label that is a value of the table too.

    own  per column, the texts of its values
    """
    both = {
        c.name: len({t for t, code in zip(c.texts, c.code, strict=True) if code < 0} & set(held) - {None})
        for c, held in zip(columns, own, strict=True)
    }
    return tuple(
        f"column {name!r}: labels of the hierarchy are values of the table too ({many:,} of those published), so "
        "nobody can tell such a value from its group; rename them in the hierarchy"
        for name, many in both.items()
        if many
    )


def coded_place(counted: Counted, own: Sequence[Sequence[str | None]], pair: tuple[str, str] | None) -> list[str]:
    """A sentence where longitudes and latitudes, joined as the last quasi-identifier, are codes; pair: their names."""
    if pair is None or coordinates.kind_of(*pair) != "geographic":
        return []
    points = np.array([(text or "nan nan").split(" ") for text in own[-1]], np.float64)
    cells = counted.histogram
    return coded_places(points, np.bincount(cells.quasi[:, -1], weights=cells.count, minlength=len(points)))


def ordered_as_equal(columns: Sequence[Coded], models: Sequence[PrivacyModel]) -> tuple[str, ...]:
    """A sentence for each sensitive column of numbers or dates whose values t-closeness takes for equally far apart."""
    equal = [m for m in models if isinstance(m, TCloseness) and m.distance == "equal"]
    return tuple(
        f"column {c.name!r} holds numbers or dates, and t-closeness by the equal distance takes all of them for "
        "equally far apart; t_ordered= goes by their order and asks less"
        for c in columns
        if any(m.column in (None, c.name) for m in equal) and c.size > 2 and c.positions() is not None
    )


def published_classes(replacements: list[Replacement]) -> int:
    """Number of classes as they will stand there: a starred number and a missing one are published alike."""
    seen = [r.values.rank("dense").fill_null(0).to_numpy()[r.index] for r in replacements]
    return int(np.unique(np.column_stack(seen), axis=0).shape[0])


def of_columns(
    counted: Counted,
    columns: Sequence[ColumnText],
    own: Sequence[Sequence[str | None]],
    recoding: Recoding,
    asked: Policy,
) -> tuple[str, ...]:
    """What whoever publishes should know of the columns as they are recoded; own as for ``like_values``."""
    alike = like_values(columns, own) if asked.publish == "hierarchy" else ()
    idle = without_effect(recoding, counted.histogram.quasi_names)
    return (*idle, *alike, *coded_place(counted, own, asked.coordinates))
