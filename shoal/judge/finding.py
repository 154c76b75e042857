"""The type of a judge's finding, and functions that all judges use to read and compare values.

The judge's reader of each privacy model and of each way to publish is found by its name.

The functions compare values of two tables so that equal values are equal in any type and any file format. A missing
value, NaN, and an empty text are equal, unless a column of the release has empty texts and missing values. If one side
has a type, the other side is read in that type. Two columns of text are compared unchanged. Only if that fails, and
only if no two values of one side would become equal, are they compared as booleans, numbers, or moments ("True" and
"true", "1.0" and "1").
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InputError, PolicyError
from shoal.model.notation import NUMBER, RangeOf, SetOf, parse

RECOMPUTED, CONSISTENT, STATED = "recomputed", "checked for consistency", "stated"


class Finding(NamedTuple):
    """The result of checking one statement of a certificate.

    check  the name of the check
    holds  nothing contradicts the statement
    found  the result, a sentence
    how    "recomputed" from the files; "checked for consistency": not contradicted by anything visible; "stated": only
           the maker of the certificate vouches for it
    """

    check: str
    holds: bool
    found: str
    how: str = RECOMPUTED


def reading(name: str, what: str, kind: str = "") -> Any:
    """The function ``found`` of a module of the judge, or its entry ``FOUND[kind]`` if the module reads several kinds.

    Raises PolicyError, which lists what the judge reads, if there is no such module.
    """
    try:
        module = vars(import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        module = {}
    found = module.get("FOUND", {}).get(kind) or module.get("found")
    if found is None:
        raise PolicyError(
            f"the judge has no reading of its own of {what}, and what it cannot judge is not published; put one into "
            f"{name}"
        )
    return found


_FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f")  # of days and moments, as other programs write them
_OFFSET = r"[+-]\d\d:?\d\d\b"
_PLAIN_NUMBER = r"^[+-]?\d+(\.\d*)?$"


def pair(before: pl.Series, after: pl.Series, sheet: bool = False) -> tuple[pl.Series, pl.Series]:
    """Both columns as text in one form, null if missing.

    sheet  ``after`` was read from an Excel sheet, which keeps 16 digits of a number, and all of a text
    """
    before, after = _flat(before), _flat(after)
    if before.dtype == pl.String and after.dtype == pl.String:
        if not has_both(after):  # otherwise, empty texts and missing values would mark rows
            before, after = _filled(before), _filled(after)
        form = text_form(before.unique(), after.unique())
        return (before, after) if form is None else (form(before), form(after))
    form = typed_form(before.dtype, after.dtype)
    if sheet and before.dtype.is_float() and after.dtype != pl.String:
        before = pl.Series([None if v is None else float(f"{v:.16G}") for v in before.to_list()], dtype=pl.Float64)
    return form(before), form(after)


def codes_of_both(before: pl.Series, after: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """int64 codes of both columns, equal exactly if the values are; 0 is missing."""
    both = pl.concat([before.rename("v"), after.rename("v")])
    if both.dtype == pl.String:
        both = both.cast(pl.Categorical(pl.Categories.random())).to_physical().cast(pl.Int64) + 1
    else:
        both = both.rank("dense").cast(pl.Int64)
    number = both.fill_null(0).to_numpy()
    return number[: len(before)], number[len(before) :]


def pair_codes(before: pl.Series, after: pl.Series, sheet: bool) -> tuple[np.ndarray, np.ndarray]:
    """``codes`` of ``pair``, but without conversion to text if both sides have one type."""
    kind = before.dtype
    if kind == after.dtype and (kind.is_integer() or kind.is_float() or kind == pl.Boolean) and not sheet:
        if kind.is_float():
            before, after = before.fill_nan(None) + 0.0, after.fill_nan(None) + 0.0
        return codes_of_both(before, after)
    return codes_of_both(*pair(before, after, sheet))


def typed_form(a: pl.DataType, b: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    """The function that formats a column for comparison if the sides have types a and b, not both text."""
    kinds = (a, b)
    if any(k.is_temporal() for k in kinds):
        day = any(k == pl.Date for k in kinds)
        return lambda s: _filled(_moment(s, day))
    if any(k == pl.Boolean for k in kinds):
        return _boolean
    if any(k.is_numeric() for k in kinds):
        narrow = any(k == pl.Float32 for k in kinds)
        inexact = any(k.is_float() for k in kinds)
        return lambda s: _number(s, inexact, narrow)
    return lambda s: _filled(s.cast(pl.String, strict=False))


def text_form(before: pl.Series, after: pl.Series) -> Callable[[pl.Series], pl.Series] | None:
    """A form under which two differing sets of texts become equal; None if they are equal, or if no form does it."""
    if set(before) == set(after):
        return None
    for form in (_boolean, lambda s: _number(s, True, False), lambda s: _filled(_moment(s, False))):
        a, b = form(before), form(after)
        if a.n_unique() == before.n_unique() and b.n_unique() == after.n_unique() and set(a) == set(b):
            return form
    return None


def typed_readings(column: pl.Series) -> list[pl.Series]:
    """A column of texts as booleans, integers, floats, days, and moments: each type that every text has, and in which
    no two texts are equal. A file can write 34 as 34.0 and true as True, because another program wrote it."""
    texts = _filled(column)
    truth = _boolean(texts)
    moments = texts.str.replace("T", " ", literal=True)
    readings = [
        (truth == "true").set(~truth.is_in(["true", "false"]), None),
        texts.cast(pl.Int64, strict=False),
        texts.cast(pl.Float64, strict=False),
        *(moments.str.to_datetime(form, time_unit="us", strict=False) for form in _FORMS),
    ]
    return [
        s.rename(column.name) for s in readings
        if s.null_count() == texts.null_count() < len(s) and s.n_unique() == texts.n_unique()
    ]  # fmt: skip


def shown(values: pl.Series) -> list[str | None]:
    """Values as a release writes them."""
    if isinstance(values.dtype, pl.Duration):
        return values.dt.to_string("iso").to_list()
    if values.dtype == pl.Time:
        return _moment(values, False).to_list()
    if isinstance(values.dtype, pl.Datetime):  # without trailing zeros in fractions of a second
        text = values.cast(pl.String).str.replace(r"(\.\d*?)0+(\D.*)?$", "$1$2")
        return text.str.replace(r"\.(\D.*)?$", "$1").to_list()
    if values.dtype.is_float():
        return _float_text(values, 2.0**53).to_list()
    return _flat(values).cast(pl.String, strict=False).to_list()


def in_time_zone_of(before: pl.Series, after: pl.Series) -> pl.Series:
    """Moments with a time zone in the zone of the release, because DuckDB and Spark only keep UTC."""
    if not isinstance(before.dtype, pl.Datetime) or before.dtype.time_zone is None:
        return before
    if isinstance(after.dtype, pl.Datetime) and after.dtype.time_zone is not None:
        return before.dt.convert_time_zone(after.dtype.time_zone)
    if after.dtype == pl.String:
        shown = after.str.extract_all(_OFFSET).explode(empty_as_null=True).drop_nulls().unique().to_list()
        if shown and all(text.strip("+-:0") == "" for text in shown):
            return before.dt.convert_time_zone("UTC")
    return before


def has_both(column: pl.Series) -> bool:
    """Whether a text column has both empty texts and missing values. In other columns the two are one."""
    text = column.dtype == pl.String or isinstance(column.dtype, pl.Categorical)
    return text and column.null_count() > 0 and bool((column.cast(pl.String) == "").any())


def has_two_kinds(column: pl.Series, typed: bool) -> bool:
    """Whether a judged column of a release has two kinds of missing values, which no release has.

    typed  whether the file has types, so that an empty text is a value
    """
    if column.dtype.is_float():
        return column.null_count() > 0 and bool(column.is_nan().any())
    return not typed and has_both(column)


def with_empty(raw: pl.Series, formed: pl.Series) -> pl.Series:
    """Formatted texts with the empty texts restored that formatting made missing."""
    return formed.set((raw == "").fill_null(False), "") if raw.dtype == pl.String and len(raw) else formed


def _flat(column: pl.Series) -> pl.Series:
    """Categories as text; lists, structures, bytes, and objects as Python's ``str`` writes them."""
    kind = column.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)) or kind == pl.Null:
        return column.cast(pl.String)
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        values = [None if v is None else repr(_positive_zeros(v)) for v in column.to_list()]
        return pl.Series(column.name, values, dtype=pl.String)
    return column.fill_nan(None) if kind.is_float() else column


def _positive_zeros(value: Any) -> Any:
    """A value in which a negative zero is the other zero, also within lists and structures."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [_positive_zeros(v) for v in value]
    return {name: _positive_zeros(v) for name, v in value.items()} if isinstance(value, dict) else value


def _filled(text: pl.Series) -> pl.Series:
    """The column with empty texts made missing."""
    return text.replace("", None)


def _boolean(column: pl.Series) -> pl.Series:
    text = _filled(column.cast(pl.String, strict=False))
    low = text.str.to_lowercase()
    return pl.select(pl.when(low.is_in(["true", "false"])).then(low).otherwise(text)).to_series()


def _number(column: pl.Series, inexact: bool, narrow: bool) -> pl.Series:
    """Numbers as text, whole ones without a point; cells that are no numbers stay unchanged."""
    wide = pl.Float32 if narrow else pl.Float64
    if column.dtype.is_float():
        return _float_text(column.cast(wide) if narrow else column)
    if column.dtype != pl.String:
        return _digits(column.cast(pl.String, strict=False)) if not narrow else _float_text(column.cast(wide))
    text = _filled(column)
    bare = text.str.strip_chars()
    plain = bare.str.contains(_PLAIN_NUMBER)
    number = bare.cast(wide, strict=False)
    missing = number.is_nan() & bare.str.to_lowercase().is_in(["nan"])
    floats = _float_text(number.fill_nan(None))
    exact = pl.select(pl.when(plain).then(_digits(bare)).otherwise(floats)).to_series()
    whole = bare.str.contains(r"^[+-]?\d+$")  # above 2^53, floats can't represent every whole number
    if inexact:
        exact = pl.select(pl.when(whole).then(exact).otherwise(floats)).to_series()
    out = pl.select(pl.when(missing.fill_null(False)).then(None).otherwise(pl.coalesce(exact, text))).to_series()
    return out.rename(column.name)


def _digits(text: pl.Series) -> pl.Series:
    """A decimal number without redundant zeros and signs."""
    text = text.str.replace(r"^\+", "").str.replace(r"^(-?)0+(\d)", "$1$2")
    text = text.str.replace(r"(\.\d*?)0+$", "$1").str.replace(r"\.$", "")
    return text.str.replace(r"^-0$", "0")


def _float_text(column: pl.Series, most: float = 2.0**63) -> pl.Series:
    """Floats as text; whole ones below ``most`` have no point."""
    column = column.fill_nan(None)
    whole = (column == column.round()) & (column.abs() < most)
    text = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(column.cast(pl.String))
    return pl.select(text).to_series().rename(column.name)


def _moment(column: pl.Series, day: bool) -> pl.Series:
    """Dates and times as text in one form: a blank before the time, no trailing zeros; a day has no time."""
    if isinstance(column.dtype, pl.Duration):
        return column.dt.to_string("iso")
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_unit != "ns":  # a cast would lose the nanoseconds
        column = column.cast(pl.Datetime("us", column.dtype.time_zone))
    # a cast would lose the fraction of a second of a time of day
    text = column.dt.to_string("%H:%M:%S%.f") if column.dtype == pl.Time else column.cast(pl.String)
    text = text.str.replace(r"^(\d{4}-\d\d-\d\d)T", "$1 ")
    text = text.str.replace(r"([+-]\d\d)(\d\d)$", "$1:$2").str.replace(r"(\.\d*?)0+([+-].*)?$", "$1$2")
    text = text.str.replace(r"\.([+-].*)?$", "$1")
    return text.str.replace(r" 00:00:00$", "") if day else text


def as_number(text: str, notation: str | None = None) -> float | None:
    """The finite number that a text means, or None. notation: the column's decimal mark, if it has one."""
    try:
        number = float(text if notation is None else unmarked(text, notation)) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_number(text: str, notation: str | None) -> bool:
    """Whether a text is a number, with a decimal mark if the notation has one."""
    return bool(re.search(NUMBER, text if notation is None else unmarked(text, notation)))


def unmarked(text: str, notation: str) -> str:
    """A number with a decimal mark in Python's notation; an empty text for other texts and for notations of dates.

    A separator of thousands must be before groups of three digits, and the same throughout. With limits, such as ``<=18
    >=90``, the text for values beyond a limit means the limit.
    """
    if notation[0] in "<>":
        return text[2:] if text in notation.split(" ") else text
    whole, mark, part = text.partition(notation)
    apart = {c for c in whole if not c.isdigit() and c != "-"}
    if notation not in (",", ".") or len(apart) > 1 or not apart <= set(".,\u0020\u0027\u2019\u00a0\u202f"):
        return ""
    first, *more = whole.split(apart.pop()) if apart else [whole]
    if any(len(three) != 3 for three in more) or (more and (not 1 <= len(first.lstrip("-")) <= 3)):
        return ""
    if mark and not part.isdecimal():  # as in 1.5e3
        return ""
    return "".join([first, *more]) + ("." if mark else "") + part


def moment_of(text: str, notation: str | None) -> datetime.datetime | None:
    """The moment that a text means, by a notation of dates or in ISO format (2024-12-31); None for other texts."""
    try:
        return datetime.datetime.fromisoformat(text) if notation is None else datetime.datetime.strptime(text, notation)
    except ValueError:
        return None


def place(text: str, notation: str) -> float | None:
    """The number, or the day since year 1, that a text in a notation means; None for other texts."""
    if notation[0] != "%":
        return as_number(text, notation)
    day = moment_of(text, notation)
    return None if day is None else float(day.toordinal())


def parsed(raw: str) -> str | SetOf | RangeOf | None:
    """A text of a column of sets or ranges, parsed; None if such a column can't contain it."""
    try:
        return parse(raw)
    except InputError:
        return None
