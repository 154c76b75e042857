"""Missing values filled with what their column has most often, before anything is counted."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from shoal.engines.codes import as_text
from shoal.engines.table import Table
from shoal.errors import InputError


def filled(table: Table, names: Sequence[str]) -> tuple[Table, dict[str, int]]:
    """The table with some columns filled, and how many cells of each were.

    Of values that are equally frequent the least is taken: by number where all of them are numbers, else by their text.
    Raises InputError for a column without any value.  One grouping per column.
    """
    values, cells = {}, {}
    for name in names:
        held, counts = table.counts([name])
        column = held[name].fill_nan(None) if held[name].dtype.is_float() else held[name]
        there = column.is_not_null().to_numpy()
        cells[name] = int(counts[~there].sum())
        if not cells[name]:
            continue
        if not there.any():
            raise InputError(f"column {name!r} has no value to fill its rows with (missing='filled'); leave it out")
        often = column.filter(pl.Series(there & (counts == counts[there].max())))
        text = as_text(often)
        number = text.cast(pl.Float64, strict=False)
        order = pl.DataFrame({"number": number if not number.null_count() else None, "text": text})
        values[name] = often[order.select(pl.arg_sort_by("number", "text")).to_series()[0]]
    return (table.filled(values) if values else table), cells
