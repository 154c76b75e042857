"""How many different persons stand in a class, counted from the tuples themselves."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def fewest(tuples: pl.DataFrame, quasi: Sequence[str], person: str) -> int | None:
    """The fewest different persons in a class; None for an empty table.

    tuples  published quasi-identifiers and the column that names persons, each pair at least once; other columns are
            not looked at.  A missing person is nobody.  O(t log t).
    """
    short = pl.DataFrame([tuples[n].alias(f"c{i}") for i, n in enumerate([*quasi, person])])
    last = short.columns[-1]
    found = short.group_by(short.columns[:-1]).agg(pl.col(last).drop_nulls().n_unique())[last].min()
    return None if found is None else int(found)  # type: ignore[arg-type]
