"""Changes to columns before the rows are counted, and notes on their values.

Two kinds of columns are changed: those that HIPAA's Safe Harbor restricts, which are found by name and form and
recoded, and those with missing values, which are filled with the column's most frequent value. The notes are about
values that look alike, missing sensitive values, and codes for unknown places. They name columns and count rows, and
never show a value.
"""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from shoal.engines.codes import as_text, encode
from shoal.engines.frames import FrameTable
from shoal.engines.recognize import AGES, DIRECT, ODD_CODES, by_name, by_values, identifies_nobody
from shoal.engines.table import Counted, Table
from shoal.engines.unassigned import sample
from shoal.errors import InputError, PolicyError
from shoal.model import metric
from shoal.model.cards import several
from shoal.model.notation import limits_of
from shoal.model.rule_books import OLDEST, RESTRICTED, SafeHarbor

UNREAD = 0.05  # largest share of rows with a value that is no zip, age, or date; it becomes missing
WORDS = {"zip": "zip codes", "age": "ages", "birth": "dates or years of birth", "date": "dates"}
# words for places that are not smaller than a state
_WIDE = ("state", "province", "country", "nation", "region", "nationality")


def safe_harbor(table: Table, columns: Sequence[str], known: Collection[str]) -> tuple[Table, SafeHarbor]:
    """The table with zips, ages, and dates recoded as the rule allows, and a description of what was done.

    columns  columns that are published;  known: columns that the user chose to carry along, whose names are not refused

    Raises InputError that names every column to be removed, and PolicyError for an engine without a frame in memory.
    """
    if not isinstance(table, FrameTable):
        raise PolicyError("hipaa-safe-harbor recodes columns in memory; read the table with the Polars engine")
    frame = pl.DataFrame([_plain(c) for c in table.polars(list(columns))])
    found: dict[str, str] = {}
    refused: list[str] = []
    for name in columns:
        rule, why = _rule(frame[name], name in known)
        if rule:
            found[name] = rule
        elif why:
            refused.append(f"{name!r}: {why}")
    if refused:
        raise InputError(
            f"the Safe Harbor allows no column that names people or places below a state ({'; '.join(refused)}); "
            "name each in ⟨identifiers=[...]⟩, which leaves it out, or, where it is nothing of the kind, in insensitive"
        )
    harbor = SafeHarbor(found, datetime.datetime.now(datetime.UTC).year - OLDEST - 1)
    new = []
    for name, rule in found.items():
        new.append(recoded(frame[name], rule, harbor.born))
        lost = new[-1].null_count() - frame[name].null_count()
        if lost > UNREAD * table.rows:
            raise InputError(
                f"column {name!r} was taken for {WORDS[rule]}, and {lost:,} of its values are none; repair or rename "
                "it, or leave it out with ⟨identifiers=[...]⟩"
            )
    return table.replaced(new), harbor


def _plain(column: pl.Series) -> pl.Series:
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column


def _rule(column: pl.Series, known: bool) -> tuple[str, str]:
    """(the rule for a column, why the column is refused); one of them is empty, and both if the column is not
    restricted."""
    texts = sample(column)
    held, recognized = by_values(texts), by_name(column.name)
    dates = column.dtype in (pl.Date, pl.Datetime) or (held is not None and held.what == "dates")
    if held is not None and held.role == DIRECT:
        return "", held.reason
    if dates:
        return ("birth" if recognized is not None and recognized.what == AGES else "date"), ""
    if recognized is None:
        return "", ""
    if recognized.role == DIRECT and not known and not identifies_nobody(column.n_unique(), len(column)):
        return "", recognized.reason
    if recognized.what == "a zip code":
        return "zip", ""
    if recognized.what == AGES:
        return _age_or_year(column), ""
    wide = any(word in column.name.lower() for word in _WIDE)
    if recognized.what == "a place" and not known and not wide:
        return "", "its name says a place below a state"
    return "", ""


def _age_or_year(column: pl.Series) -> str:
    numbers = as_text(column.drop_nulls()).cast(pl.Float64, strict=False).drop_nulls()
    return "birth" if len(numbers) and float(numbers.median()) > 1000 else "age"  # type: ignore[arg-type]


def recoded(column: pl.Series, rule: str, born: int) -> pl.Series:
    """A column of text, recoded as the rule allows. Values that cannot be read become missing. O(n)."""
    text = as_text(_plain(column))
    if rule == "zip":
        # integers have lost leading zeros
        text = text.str.zfill(5) if column.dtype.is_integer() else text.str.strip_chars()
        digits = text.str.extract(r"^(\d{3})(?:\d{2}(?:-?\d{4})?)?$")
        return digits.set(digits.is_in(list(RESTRICTED)).fill_null(False), "000")
    if rule == "age":
        number = text.cast(pl.Float64, strict=False)
        return text.set((number > OLDEST).fill_null(False), f"{OLDEST + 1}+").set(number.is_null(), None)
    year = text.str.extract(r"(?:^|\D)(\d{4})(?:\D|$)")
    if rule == "birth":
        early = (year.cast(pl.Int64) <= born).fill_null(False)
        return year.set(early, f"{born} or earlier")
    return year


def filled(table: Table, names: Sequence[str], limits: Mapping[str, str] | None = None) -> tuple[Table, dict[str, int]]:
    """The table with some columns filled, and for each of them the number of cells that were filled.

    limits  column -> as in ``<=18 >=90``; None: no column has any

    All values that reach a limit are one value. Otherwise the filled value would tell whether they are equal. Among
    equally frequent values, the smallest is taken: by number if all of these are numbers, otherwise by text.
    Raises InputError for a column without values. One group-by per column.
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
            raise InputError(f"column {name!r} has no value to fill its rows with (⟨missing='filled'⟩); leave it out")
        if limits and name in limits:
            column, counts = column.filter(pl.Series(there)), counts[there]
            code = encode(column, limits[name]).codes  # in the order of the numbers
            values[name] = column[int((code == np.bincount(code, weights=counts).argmax()).argmax())]
            continue
        if getattr(column.dtype, "time_unit", "") == "ns" and bool((column.to_physical() % 1000 != 0).any()):
            raise InputError(
                f"column {name!r} has parts of a microsecond, which ⟨missing='filled'⟩ does not keep; round its "
                "values, or take another way with missing values"
            )
        often = column.filter(pl.Series(there & (counts == counts[there].max())))
        text = as_text(often)
        number = text.cast(pl.Float64, strict=False)
        order = pl.DataFrame({"number": number if not number.null_count() else None, "text": text})
        values[name] = often[order.select(pl.arg_sort_by("number", "text")).to_series()[0]]
    return (table.filled(values) if values else table), cells


def beyond(table: Table, limits: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """For each column with limits, the values that reach them and the shares of its span that lie beyond them.

    limits  column -> as in ``<=18 >=90``

    "bottom" and "top" are counts, "below" and "above" the shares.  One grouping per column.
    """
    found = {}
    for name, notation in limits.items():
        held, counts = table.counts([name])
        column = held[name].cast(pl.String) if isinstance(held[name].dtype, (pl.Categorical, pl.Enum)) else held[name]
        number = column.cast(pl.Float64, strict=False).fill_nan(None).fill_null(np.nan).to_numpy()
        low, high = limits_of(notation)
        there = ~np.isnan(number)
        least, most = (float(number[there].min()), float(number[there].max())) if there.any() else (low, high)
        span = (most - least) or 1.0
        below, above = number <= low, number >= high
        found[name] = {
            "bottom": int(counts[below].sum()) if low > -math.inf else 0,
            "top": int(counts[above].sum()) if high < math.inf else 0,
            "below": _share(min(low, most) - least, span) if below.any() and low > -math.inf else 0.0,
            "above": _share(most - max(high, least), span) if above.any() and high < math.inf else 0.0,
        }  # fmt: skip
    return found


def _share(part: float, span: float) -> float:
    """A part as a share of a span; an infinite part is all of it."""
    return 1.0 if math.isinf(part) else part / span


def notes(counted: Counted) -> tuple[str, ...]:
    """Sentences about a counted table.

    They name the quasi-identifiers and sensitive columns with values that differ only by case, surrounding blanks, or
    Unicode normal form, with the number of rows concerned, and the sensitive columns where missing values count as a
    separate value. O(distinct values + cells).
    """
    found: list[str] = []
    columns = [
        *((c, counted.histogram.quasi[:, j], False) for j, c in enumerate(counted.quasi)),
        *((c, counted.histogram.sensitive[:, j], True) for j, c in enumerate(counted.sensitive)),
    ]
    many = counted.histogram.count.astype(np.float64)  # bincount adds floats
    for column, codes, sensitive in columns:
        rows = np.bincount(codes, weights=many, minlength=column.size)
        missing = int(rows[column.values.is_null().to_numpy()].sum()) if column.size else 0
        if column.values.dtype == pl.String:
            found += alike(column.name, column.texts(), rows.tolist(), sensitive)
        found += _missing(column.name, missing) if sensitive else []
    return tuple(found)


def codes_for_missing(counted: Counted) -> tuple[str, ...]:
    """Sentences about quasi-identifiers with texts such as NA, which often mean a missing value. O(values + cells)."""
    found: list[str] = []
    for j, column in enumerate(counted.quasi):
        if column.values.dtype != pl.String:
            continue
        odd = column.values.str.strip_chars().str.to_lowercase().is_in(list(ODD_CODES)).fill_null(False).to_numpy()
        number = int(counted.histogram.count[odd[counted.histogram.quasi[:, j]]].sum())
        if number:
            found.append(
                f"column {column.name!r}: {several(number, 'row')} with a text such as NA or ?, which counts as a "
                "value and not as missing; empty these cells if the value is missing"
            )
    return tuple(found)


def starred_whole(counted: Counted, star: str) -> tuple[str, ...]:
    """A sentence if k is larger without the rows that have a star in every quasi-identifier. O(cells)."""
    cells = counted.histogram.quasi
    whole = np.ones(len(cells), bool)
    for j, column in enumerate(counted.quasi):
        whole &= np.array([text == star for text in column.texts()], bool)[cells[:, j]]
    if not cells.shape[1] or not whole.any() or whole.all():
        return ()
    rows = counted.histogram.count
    _, group = np.unique(cells[~whole], axis=0, return_inverse=True)
    starred, others = int(rows[whole].sum()), int(np.bincount(group.reshape(-1), weights=rows[~whole]).min())
    if starred >= others:
        return ()
    has, are = ("1 row has", "is") if starred == 1 else (f"{starred:,} rows have", "are")
    return (f"{has} a star in every quasi-identifier and {are} a group; without them, as ARX counts, k is {others:,}",)


def sensitive_notes(frame: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Notes on a frame's sensitive columns: values that look alike, and missing values."""
    found: list[str] = []
    for column in (frame[name] for name in names):
        if column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum)):
            held, rows = column.cast(pl.String).alias("text").value_counts()
            found += alike(column.name, held.to_list(), rows.to_list(), True)
        found += _missing(column.name, column.null_count())
    return tuple(found)


def coded_places(points: np.ndarray, rows: np.ndarray | None = None) -> list[str]:
    """A sentence if longitudes and latitudes, float64[n, 2], are codes for unknown places; rows: the number of each."""
    found = metric.codes(points)
    number = int(found.sum() if rows is None else rows[found].sum())
    if not number:
        return []
    return [
        f"{several(number, 'row')} with codes for coordinates (0 and 0, or repeated digits such as 77.7777), which are "
        "no place; repair them or leave them out"
    ]


def _missing(name: str, rows: int) -> list[str]:
    """A sentence if a sensitive column has missing values."""
    note = "missing values count as a sensitive value of their own; l counts them as one more"
    return [f"column {name!r}: {rows:,} {note}"] if rows else []


def alike(name: str, values: Sequence[str | None], rows: Sequence[float], sensitive: bool) -> list[str]:
    """A sentence if values differ only by case, surrounding blanks, or Unicode normal form.

    values  distinct values;  rows: the number of rows with each
    """
    first: dict[str, int] = {}
    held: dict[str, float] = {}
    for value, count in zip(values, rows, strict=True):
        if value is not None:
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", value).strip().casefold())
            first[folded] = first.get(folded, 0) + 1
            held[folded] = held.get(folded, 0) + count
    doubled = [folded for folded, number in first.items() if number > 1]
    if not doubled:
        return []
    number = sum(first[folded] for folded in doubled)
    total = int(sum(held[folded] for folded in doubled))
    counts = "l counts them apart" if sensitive else "they are kept apart"
    return [
        f"column {name!r}: {number:,} values in {total:,} rows differ from another one only by case, outer blanks or "
        f"Unicode normal form; {counts}"
    ]
