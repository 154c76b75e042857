"""What a table holds once its missing values are filled; shares no code with what filled them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl


def filled(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The frame with every missing value of some columns the column's most frequent one, and how many there were.

    Of values that are equally frequent the least counts: as numbers where all of them are, else as text.
    """
    new, gone = [], {}
    for name in names:
        column = frame[name].fill_nan(None) if frame[name].dtype.is_float() else frame[name]
        gone[name] = column.null_count()
        modes = column.drop_nulls().mode()
        if gone[name] and len(modes):
            at = min(range(len(modes)), key=_order(modes.cast(pl.String, strict=False).to_list()))
            column = column.fill_null(modes[at])
        new.append(column)
    return frame.with_columns(new), gone


def _order(texts: Sequence[str]) -> Callable[[int], tuple[float, str]]:
    numbers = pl.Series(texts, dtype=pl.String).cast(pl.Float64, strict=False)
    known = [0.0] * len(texts) if numbers.null_count() else numbers.to_list()
    return lambda at: (known[at], texts[at])
