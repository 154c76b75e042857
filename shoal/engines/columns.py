"""Published columns in the kind of frame that was passed, with the original type if it can hold the published values.

Only published values are passed on, so that the levels of a category, enumeration, or dictionary never contain a
suppressed value. Unordered levels are sorted, because their original order often is that of their first occurrence, and
would reveal the order of the rows. The index of a pandas frame is kept only if the row order is kept.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.engines.order import quoted
from shoal.engines.recognize import DIRECT, by_name, by_values
from shoal.engines.unassigned import sample
from shoal.errors import InputError

__all__ = ["row_numbers"]


def used(values: pl.Series, index: np.ndarray) -> tuple[pl.Series, np.ndarray]:
    """The values that ``index`` refers to, and the index into these values alone. O(values + index)."""
    seen = np.zeros(len(values), bool)
    seen[index] = True
    held = np.flatnonzero(seen)
    if held.size == len(values):
        return values, index
    place = np.empty(len(values), np.int64)  # only the entries of used values are set and read
    place[held] = np.arange(held.size)
    return values.gather(held), place[index]


def empty_as_missing(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with missing values instead of empty texts, because text files don't distinguish the two. O(cells)."""
    # Columns, not expressions: an expression takes a column "*" for all columns.
    texts = [c for c in frame if isinstance(c.dtype, (pl.String, pl.Categorical, pl.Enum))]
    return frame.with_columns(c.set(c.cast(pl.String) == "", None) for c in texts)


def made_one(name: str) -> str:
    """How to replace the empty texts of a column by missing values, as the end of a sentence."""
    way = f"frame[{name!r}].replace('', None) in pandas and Polars, nullif({quoted(name)}, '') in SQL"
    return f"make both missing before: {way}"


def starred_text(
    frame: pl.DataFrame,
    stars: Mapping[str, int],
    unsuppressed: Mapping[str, frozenset[str | None]],
    star: str,
    sensitive: Sequence[str] = (),
) -> tuple[pl.DataFrame, dict[str, int]]:
    """A table for a text file: judged columns as text, with stars instead of missing values for suppressed numbers.

    stars         number of starred cells of each quasi-identifier
    unsuppressed  the texts that each publishes

    Also returns how many stars each column then shows. This is 0 if the column has missing values of its own, because
    these and starred cells are published alike.
    """
    made, shown = [], dict(stars)
    for name in [*stars, *sensitive]:
        column, count = frame[name], stars.get(name, 0)
        if column.dtype == pl.String or column.dtype.is_nested() or isinstance(column.dtype, (pl.Categorical, pl.Enum)):
            continue
        text = as_text(column.fill_nan(None) if column.dtype.is_float() else column)
        if count and None in unsuppressed[name]:
            shown[name] = 0
        elif count:
            text = text.fill_null(star)
        made.append(text)
    return frame.with_columns(made), shown


def flat(frame: pl.DataFrame, text: Callable[[pl.Series], bool] | None = None) -> pl.DataFrame:
    """Columns that text can hold: durations as ISO text; InputError for lists, structures, bytes, and objects.

    text  decides which further columns become text
    """
    refuse_nested(frame)
    if text is not None:
        frame = frame.with_columns(as_text(c) for c in frame if c.dtype != pl.Duration and text(c))
    return frame.with_columns(c.dt.to_string("iso") for c in frame if c.dtype == pl.Duration)


def begins_before(days: pl.Series, first: datetime.date) -> bool:
    """Whether a column has a day before the first one that a program supports."""
    least = days.min()
    return isinstance(least, datetime.date) and least < first


def refuse_nested(frame: pl.DataFrame) -> None:
    """InputError for a column with values that text can't hold."""
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Object, pl.Binary):
            raise InputError(f"column {name!r} holds {kind}, which has no place in CSV or Excel; write Parquet")


def polars_column(values: pl.Series, index: np.ndarray, like: pl.DataType) -> pl.Series:
    """``values`` at ``index``, which uses each of them. A category stays a category, with levels of its own."""
    if values.dtype == pl.String:
        if isinstance(like, pl.Categorical):
            values = values.cast(pl.Categorical(pl.Categories.random()))
        elif isinstance(like, pl.Enum):
            present = set(values.drop_nulls().to_list())
            levels = [c for c in like.categories.to_list() if c in present]
            values = values.cast(pl.Enum([*levels, *sorted(present - set(levels))]))
    return values.gather(index)


def without_levels(series: pl.Series) -> pl.Series:
    """A Polars column without levels that no row has; levels inside lists and structures become text."""
    kind = series.dtype
    if isinstance(kind, pl.Enum):
        present = set(series.unique().drop_nulls().to_list())
        return series.cast(pl.String).cast(pl.Enum([c for c in kind.categories.to_list() if c in present]))
    if isinstance(kind, pl.Categorical) and not kind.categories.is_global():
        # the name of a local set of categories is random and would make files differ
        return series.cast(pl.Categorical)
    return series.cast(_plain(kind)) if kind.is_nested() else series


def one_zero(frame: pl.DataFrame, judged: Sequence[str] = ()) -> pl.DataFrame:
    """The frame with one zero and one NaN in each column of floats, so that equal values have equal bits.

    judged  columns in which NaN is a missing value
    """
    floats = ((i, name, kind) for i, (name, kind) in enumerate(frame.schema.items()) if "Float" in str(kind))
    made = frame.with_columns(_one_zero(pl.nth(i), kind).alias(name) for i, name, kind in floats)
    return made.with_columns(made[n].fill_nan(None) for n in judged if made[n].dtype.is_float())


def _one_zero(column: pl.Expr, kind: Any) -> pl.Expr:
    """A column with one zero and one NaN, also inside lists and structures."""
    if kind.is_float():
        return pl.when(column == 0).then(0.0).otherwise(column.fill_nan(math.nan))
    if isinstance(kind, pl.List):
        return column.list.eval(_one_zero(pl.element(), kind.inner))
    if isinstance(kind, pl.Array):
        return _one_zero(column.arr.to_list(), pl.List(kind.inner)).list.to_array(kind.size)
    if isinstance(kind, pl.Struct):
        parts = (_one_zero(column.struct.field(f.name), f.dtype).alias(f.name) for f in kind.fields)
        return pl.when(column.is_not_null()).then(pl.struct(parts))
    if isinstance(kind, _MAP):
        return _one_zero(column.cast(_entries(kind)), _entries(kind)).cast(kind)
    return column


_MAP: Any = getattr(pl, "Map", ())  # older versions of Polars read lists of structures


def _entries(kind: Any) -> pl.List:
    return pl.List(pl.Struct({"key": kind.key, "value": kind.value}))


def _plain(kind: Any) -> Any:
    """A nested type with text instead of categories."""
    if isinstance(kind, (pl.Enum, pl.Categorical)):
        return pl.String()
    if isinstance(kind, pl.List):
        return pl.List(_plain(kind.inner))
    if isinstance(kind, pl.Array):
        return pl.Array(_plain(kind.inner), kind.size)
    if isinstance(kind, pl.Struct):
        return pl.Struct({field.name: _plain(field.dtype) for field in kind.fields})
    return _MAP(_plain(kind.key), _plain(kind.value)) if isinstance(kind, _MAP) else kind


def arrow_column(values: pl.Series, index: np.ndarray, like: Any) -> Any:
    """``values`` at ``index`` as a PyArrow array, of type ``like`` if it can hold them. An order of levels is kept."""
    import pyarrow as pa

    short = values.to_arrow()
    if pa.types.is_dictionary(like):
        held = np.flatnonzero(values.is_not_null().to_numpy())
        return _dictionary(_cast(short, like.value_type), index, held, like.ordered)
    return _cast(short, like).take(pa.array(index))


def arrow_without_levels(column: Any) -> Any:
    """A PyArrow column without dictionary entries that no row has; dictionaries inside other types become plain."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):
            whole = whole.unify_dictionaries().combine_chunks()
        index = whole.indices.cast(pa.int64()).fill_null(len(whole.dictionary)).to_numpy()
        held = np.unique(index)
        return _dictionary(whole.dictionary, index, held[held < len(whole.dictionary)], kind.ordered)
    plain = _arrow_plain(kind)
    return column if plain == kind else column.cast(plain)


def _dictionary(values: Any, index: np.ndarray, held: np.ndarray, ordered: bool) -> Any:
    """``values`` at ``index`` as a PyArrow dictionary of those at ``held``, sorted unless their order is kept.

    All others, and an index past the end, are missing.
    """
    import pyarrow as pa

    if not ordered:
        texts = values.take(pa.array(held)).to_pylist()
        held = held[_sorted(range(held.size), texts.__getitem__)]
    place = np.full(len(values) + 1, -1, np.int64)
    place[held] = np.arange(held.size)
    code = place[index]
    indices = pa.array(code, mask=code < 0).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values.take(pa.array(held)), ordered=ordered)


def _arrow_plain(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_arrow_plain(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_arrow_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _arrow_plain(f.type)) for f in kind])
    return kind


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _cast(array: Any, like: Any) -> Any:
    """An array cast to type ``like``. Text stays text, because a recoded text is no boolean, date, or number."""
    import pyarrow as pa

    if array.type == like:
        return array
    if _is_text(array.type) and not _is_text(like):
        return array.cast(pa.string())
    try:
        return array.cast(like)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def pandas_column(values: pl.Series, index: np.ndarray, like: Any) -> Any:
    """``values`` at ``index`` as a pandas Series; integers and booleans with a missing value are nullable.

    An ordered category stays ordered: its own values come first, coarser ones after them.
    """
    import pandas as pd

    if isinstance(like, pd.CategoricalDtype):
        present = set(values.drop_nulls().to_list())
        levels = [c for c in like.categories if c in present] if like.ordered else []
        more = _sorted(present - set(levels))
        kind = pd.CategoricalDtype([*levels, *more], ordered=like.ordered)
        short = pd.Series(pd.Categorical(values.to_list(), dtype=kind))
    elif isinstance(like, pd.ArrowDtype):
        made = arrow_column(values, index, like.pyarrow_dtype)
        return pd.Series(made, dtype=pd.ArrowDtype(made.type))
    elif isinstance(like, np.dtype) and like.kind in "Ob" and values.dtype in (pl.Boolean, pl.Null):
        short = _truth_values(values)
    elif isinstance(like, np.dtype) and like.kind == "O":
        short = pd.Series(values.to_list(), dtype=object)
    else:
        short = _pandas(values, like)
    return short.take(index).reset_index(drop=True)


def _sorted(given: Iterable[Any], value: Callable[[Any], Any] = lambda held: held) -> list[Any]:
    """Items sorted by their values if these have one type, otherwise by their values' text."""
    held = list(given)
    try:
        return sorted(held, key=value)
    except TypeError:
        return sorted(held, key=lambda one: str(value(one)))


def pandas_without_levels(column: Any) -> Any:
    """A pandas column without categories or dictionary entries that no row has."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        made = column.cat.remove_unused_categories()
        return made if made.cat.ordered else made.cat.reorder_categories(_sorted(made.cat.categories))
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        array = pa.array(column.array)
        made = arrow_without_levels(array)
        if made is not array:
            return pd.Series(made, dtype=pd.ArrowDtype(made.type), name=column.name)
    return column


def _truth_values(values: pl.Series) -> Any:
    """Booleans of a NumPy type as a pandas Series, with a type that depends only on the published values.

    pandas stores booleans as objects if one is missing. If the original's type were kept, it would reveal whether a
    hidden or filled value was missing.
    """
    import pandas as pd

    if not values.null_count():
        return pd.Series(values.to_list(), dtype=bool)
    nothing = values.null_count() == len(values)
    return pd.Series(values.to_list(), dtype=object if nothing else pd.BooleanDtype())


def _pandas(values: pl.Series, like: Any) -> Any:
    import pandas as pd

    if not len(values):
        return pd.Series([], dtype=like)
    if values.dtype == pl.String and not pd.api.types.is_string_dtype(like):
        return values.to_pandas()  # a recoded text is no boolean, date, or number
    whole = values.dtype.is_integer() or values.dtype == pl.Boolean
    if whole and isinstance(like, np.dtype) and values.null_count():
        if values.null_count() == len(values):  # pandas stores integers as floats if one is missing
            return pd.Series(np.full(len(values), np.nan))
        like = pd.api.types.pandas_dtype(_nullable(like))
    try:
        if whole and isinstance(like, np.dtype) and not values.null_count():
            return pd.Series(values.to_numpy().astype(like))  # pd.array changes unsigned integers above 2^63
        if whole:
            return pd.Series(pd.array([pd.NA if v is None else v for v in values.to_list()], dtype=like))
        return values.to_pandas().astype(like)
    except (TypeError, ValueError):
        return values.to_pandas()


def _nullable(like: np.dtype[Any]) -> str:
    """int64 -> Int64, uint8 -> UInt8; Int64 for types without a nullable form."""
    name = like.name
    return name.replace("uint", "UInt").replace("int", "Int") if name.startswith(("int", "uint")) else "Int64"


def row_numbers(data: Any) -> Any:
    """The index of a pandas frame; None for any other table.

    Raises InputError unless it only numbers the rows: unique integers that neither by name nor by form are identifiers.
    An age, a town, or a record number in the index would be published next to the rows that hide it. O(n).
    """
    frame = nw.to_native(data, pass_through=True)
    if not type(frame).__module__.startswith("pandas"):
        return None
    index = frame.index
    why = _why(index, [str(column) for column in frame.columns])
    if why:
        raise InputError(
            f"⟨keep_order⟩ keeps the index with the rows, and {why}, so it may identify people. Use "
            "reset_index(drop=True) to leave it out, or reset_index() to make it a column, which takes a role"
        )
    return index


def _why(index: Any, columns: list[str]) -> str:
    """The reason why an index may not be kept; "" if it may."""
    name = "" if index.name is None else str(index.name)
    if name in columns:
        return f"it has the name of column {name!r}"
    if index.nlevels > 1 or index.dtype.kind not in "iu" or not index.is_unique:
        return "it holds more than row numbers (whole numbers, each once)"
    texts = sample(pl.Series(index.to_numpy()))
    return next((found.reason for found in (by_name(name), by_values(texts)) if found and found.role == DIRECT), "")
