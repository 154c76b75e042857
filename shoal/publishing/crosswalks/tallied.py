"""A column's values and the records of each."""

from __future__ import annotations

from typing import Any

import polars as pl

from shoal.errors import InputError


def tally(frame: pl.DataFrame, name: str, count: str | None = None) -> tuple[list[Any], Any]:
    """Distinct values, and the records of each: of counts in order of appearance, of records, which tell it, by value.

    count  column of the records of each row, whole numbers of at least 0; None: every row is one record

    Returns (values, int64[n], or Python integers where 64 bits do not hold them).
    """
    from shoal.engines.files import column, integers

    values = column(frame, name).alias("value")
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
    for value, number in zip(values.to_list(), integers(frame, count), strict=True):
        if number < 0:
            raise InputError(f"column {count!r} has a number below 0; a count is at least 0")
        sums[value] = sums.get(value, 0) + number
    return list(sums), list(sums.values())
