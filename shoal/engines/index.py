"""The index of a pandas frame: it stays where the rows stay in their order, and says no more than that order."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from shoal.engines.carried import sample
from shoal.engines.recognize import DIRECT, by_name, by_values
from shoal.errors import InputError

__all__ = ["row_numbers"]


def row_numbers(data: Any) -> Any:
    """The index of a pandas frame; None of any other table.

    Raises InputError unless it numbers the rows: whole numbers, each once, that neither its name nor their form calls
    somebody's.  An age, a town or a record number in it would stand beside the rows that hide them.  O(n).
    """
    frame = nw.to_native(data, pass_through=True)
    if not type(frame).__module__.startswith("pandas"):
        return None
    index = frame.index
    why = _why(index, [str(column) for column in frame.columns])
    if why:
        raise InputError(
            f"keep_order leaves the index beside the rows, and {why}, so it may point at people. Use "
            "reset_index(drop=True) to leave it out, or reset_index() to make it a column, which takes a role"
        )
    return index


def _why(index: Any, columns: list[str]) -> str:
    """Why an index may not stay; empty when it may."""
    name = "" if index.name is None else str(index.name)
    if name in columns:
        return f"it has the name of column {name!r}"
    if index.nlevels > 1 or index.dtype.kind not in "iu" or not index.is_unique:
        return "it holds more than row numbers (whole numbers, each once)"
    texts = sample(pl.Series(index.to_numpy()))
    return next((said.reason for said in (by_name(name), by_values(texts)) if said and said.role == DIRECT), "")
