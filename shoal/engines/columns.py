"""A published column in the kind of frame it came from: of its own type where that can hold it.

Only the values that stand in the new column are ever handed over, so that a category's levels, an enumeration or a
dictionary cannot carry a suppressed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import as_text


def used(values: pl.Series, index: np.ndarray) -> tuple[pl.Series, np.ndarray]:
    """The values that ``index`` points at, and the index into them alone.  O(values + index)."""
    seen = np.zeros(len(values), bool)
    seen[index] = True
    place = np.cumsum(seen) - 1
    return values.gather(np.flatnonzero(seen)), place[index]


def starred_text(
    frame: pl.DataFrame, stars: Mapping[str, int], unsuppressed: Mapping[str, frozenset[str | None]], star: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """A table for a file of text: quasi-identifiers as text, with stars where a suppressed number is a missing value.

    stars         starred cells of each quasi-identifier
    unsuppressed  the texts each publishes

    Returns also how many stars each column then shows: none where the column has missing values of its own, since
    starred cells and these are published alike and cannot be told apart.
    """
    made, shown = [], dict(stars)
    for name, count in stars.items():
        column = frame[name]
        if column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum)):
            continue
        text = as_text(column.fill_nan(None) if column.dtype.is_float() else column)
        if count and None in unsuppressed[name]:
            shown[name] = 0
        elif count:
            text = text.fill_null(star)
        made.append(text)
    return frame.with_columns(made), shown


def polars_column(values: pl.Series, index: np.ndarray, like: pl.DataType) -> pl.Series:
    """``values`` at ``index``, each of which is used; a category stays one, with levels of its own."""
    if values.dtype == pl.String:
        if isinstance(like, pl.Categorical):
            values = values.cast(pl.Categorical(pl.Categories.random()))
        elif isinstance(like, pl.Enum):
            present = set(values.drop_nulls().to_list())
            levels = [c for c in like.categories.to_list() if c in present]
            values = values.cast(pl.Enum([*levels, *sorted(present - set(levels))]))
    return values.gather(index)


def arrow_column(values: pl.Series, index: np.ndarray, like: Any) -> Any:
    """The same as a PyArrow array of type ``like`` where that can hold it."""
    import pyarrow as pa

    short = values.to_arrow()
    if pa.types.is_dictionary(like):
        held = np.flatnonzero(values.is_not_null().to_numpy())
        place = np.full(max(len(values), 1), -1, np.int64)
        place[held] = np.arange(held.size)
        code = place[index]
        indices = pa.array(code, mask=code < 0).cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, _cast(short.take(pa.array(held)), like.value_type))
    return _cast(short, like).take(pa.array(index))


def _cast(array: Any, like: Any) -> Any:
    import pyarrow as pa

    if array.type == like:
        return array
    try:
        return array.cast(like)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def pandas_column(values: pl.Series, index: np.ndarray, like: Any) -> Any:
    """The same as a pandas Series; whole numbers and booleans with a missing value take the nullable type."""
    import pandas as pd

    if isinstance(like, pd.CategoricalDtype):
        present = set(values.drop_nulls().to_list())
        levels = [c for c in like.categories if c in present]
        more = sorted(present - set(levels))
        kind = pd.CategoricalDtype([*levels, *more], ordered=bool(like.ordered) and not more)
        short = pd.Series(pd.Categorical(values.to_list(), dtype=kind))
    elif getattr(like, "kind", None) == "O" and isinstance(like, np.dtype):
        short = pd.Series(values.to_list(), dtype=object)
    else:
        short = _pandas(values, like)
    return short.take(index).reset_index(drop=True)


def _pandas(values: pl.Series, like: Any) -> Any:
    import pandas as pd

    if not len(values):
        return pd.Series([], dtype=like)
    whole = values.dtype.is_integer() or values.dtype == pl.Boolean
    if whole and isinstance(like, np.dtype) and values.null_count():
        like = pd.BooleanDtype() if values.dtype == pl.Boolean else pd.api.types.pandas_dtype(_nullable(like))
    try:
        if whole and isinstance(like, np.dtype) and not values.null_count():
            return pd.Series(values.to_numpy().astype(like))  # pd.array changes unsigned numbers past 2^63
        if whole:
            return pd.Series(pd.array([pd.NA if v is None else v for v in values.to_list()], dtype=like))
        return values.to_pandas().astype(like)
    except (TypeError, ValueError):
        return values.to_pandas()


def _nullable(like: np.dtype[Any]) -> str:
    """int64 -> Int64, uint8 -> UInt8; Int64 for what has no such form."""
    name = like.name
    return name.replace("uint", "UInt").replace("int", "Int") if name.startswith(("int", "uint")) else "Int64"
