"""What is said of columns before they are published.

Columns that are carried along unchanged: none may slip through that names or singles out people.  Values that look
alike, missing sensitive values, and codes for places nobody knows are told: columns are named and rows counted, and no
value is ever shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.recognize import DIRECT, REMARKS, Kind, by_name, by_values, numbers_nobody
from shoal.engines.table import Counted, SingledOut, Table
from shoal.errors import InputError
from shoal.model import metric
from shoal.model.cards import several

if TYPE_CHECKING:
    from shoal.model.policy import Policy

SHARE = 0.05  # of the rows that a column without a role may single out
_SAMPLE = 5_000
_AT_ONCE = 50  # counts in one query: of many more DuckDB refuses the plan, which is as deep as they are many
_MANY = 4  # a column of which a quarter of the sample differs has too many values to be grouped quickly
_PROTECT = "in ⟨quasi_identifiers=[...]⟩ or ⟨sensitive=[...]⟩ to protect it, "


@dataclass(frozen=True)
class Unassigned:
    """What is carried along, and how many rows it singles out.

    columns   the columns carried, in the table's order
    named     those of them the policy names insensitive
    alone     per column, the rows whose value no other row holds
    together  the rows whose values in all these columns together no other row holds
    rows      of the table
    """

    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    alone: Mapping[str, int] = field(default_factory=dict)
    together: int = 0
    rows: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "columns": list(self.columns),
            "insensitive": list(self.named),
            "alone": dict(self.alone),
            "together": self.together,
        }

    @property
    def warning(self) -> str:
        """One sentence where the columns single people out; empty otherwise."""
        if not self.together:
            return ""
        share = 100 * self.together / self.rows
        more = f" and {len(self.columns) - 10} more" if len(self.columns) > 10 else ""
        return (
            f"warning: the insensitive columns ({', '.join(self.columns[:10])}{more}) single out {self.together:,} of "
            f"{self.rows:,} rows ({share:.1f} %): someone who knows their values finds these people despite the groups"
        )


def look(table: Table, policy: Policy) -> Unassigned:
    """Look at every column that will be carried.

    Raises InputError naming each column without a role that is a direct identifier by its name or its values, or whose
    values single out more than 5 % of the rows.  O(n) per carried column; nothing where there is none.
    """
    roles = {*policy.grouped, *policy.sensitive, *policy.identifiers, *(policy.coordinates or ())}
    columns = [c for c in table.columns if c not in roles]
    if not columns:
        return Unassigned()
    if policy.strict_roles and (unnamed := [c for c in columns if c not in policy.insensitive]):
        shown = ", ".join(repr(c) for c in unnamed[:10]) + (f" and {len(unnamed) - 10} more" * (len(unnamed) > 10))
        raise InputError(
            f"⟨strict_roles=True⟩ asks for a role of every column, and {shown} "
            f"{'has' if len(unnamed) == 1 else 'have'} none; name each among the quasi-identifiers, sensitive, "
            "identifiers or insensitive"
        )
    found = table.singled(columns)
    refuse_pointing(found, policy.insensitive)
    named = tuple(c for c in columns if c in policy.insensitive)
    return Unassigned(tuple(columns), named, found.alone, found.together, found.rows)


def refuse_pointing(found: SingledOut, known: Sequence[str], protect: str = _PROTECT) -> None:
    """InputError naming each column that is or singles out people, but for the ones ``known`` to be published.

    protect  how a column can be published otherwise; empty where it cannot
    """
    refused = {}
    for name in found.alone:
        why = _why(name, found.alone[name], found.distinct[name], found.rows, found.texts.get(name, ()))
        if why and name not in known:
            refused[name] = why
    if refused:
        raise InputError(_refusal(refused, protect))


def named_sensitive(names: Sequence[str]) -> list[str]:
    """A sentence for each sensitive column that names people by its own name: it is published as it is."""
    recognized = ((name, by_name(name)) for name in names)
    return [
        f"warning: the sensitive column {name!r} is published as it is, and {said.reason}; name it among the "
        "identifiers to leave it out"
        for name, said in recognized
        if said is not None and said.role == DIRECT
    ]


def _refusal(refused: Mapping[str, str], protect: str) -> str:
    shown = "; ".join(f"{name!r}: {why}" for name, why in list(refused.items())[:10])
    more = f"; and {len(refused) - 10} more" if len(refused) > 10 else ""
    one = len(refused) == 1
    return (
        f"{'a column has' if one else f'{len(refused)} columns have'} no role, and published as "
        f"{'it is, it' if one else 'they are, they'} would identify people ({shown}{more}). Name "
        f"{'it' if one else 'each'} in ⟨identifiers=[...]⟩ to leave it out, {protect}or in ⟨insensitive=[...]⟩ to "
        "publish it knowingly"
    )


def _why(name: str, alone: int, distinct: int, rows: int, texts: Sequence[str]) -> str:
    """Why a column may not be carried; empty when it may."""
    held: Kind | None = by_values(texts)
    if held is not None and held.role == DIRECT:
        return held.reason
    said = by_name(name)
    repeated = said is not None and said.what == REMARKS and not alone  # a few words again and again: no free text
    if said is not None and said.role == DIRECT and not repeated and not numbers_nobody(distinct, rows):
        return said.reason
    if alone > SHARE * rows:
        return f"{100 * alone / rows:.1f} % of the rows hold a value that no other row holds"
    return ""


def singled_in_memory(columns: Iterable[pl.Series]) -> SingledOut:
    """How the columns of a table, at least one, single rows out, by 64-bit hashes of values and of rows."""
    alone: dict[str, int] = {}
    distinct: dict[str, int] = {}
    texts: dict[str, Sequence[str]] = {}
    joined = np.zeros(1, np.uint64)
    for column in columns:
        name = column.name
        if column.dtype == pl.Object:
            raise InputError(f"column {name!r} holds objects of no kind a table has; name it in ⟨identifiers=[...]⟩")
        if isinstance(column.dtype, pl.BaseExtension):
            raise InputError(
                f"column {name!r} holds values of type {column.dtype.ext_name()}, which no other table holds; turn "
                "them into text or numbers, or name it in ⟨identifiers=[...]⟩"
            )
        hashed = _hashed(column)
        joined = joined * np.uint64(0x9E3779B97F4A7C15) + hashed
        alone[name], distinct[name] = _counted(hashed)
        texts[name] = sample(column)
    rows, together = joined.size, max(alone.values())
    if len(alone) > 1 and together < rows:
        together = _counted(joined)[0]
    return SingledOut(rows, alone, together, distinct, texts)


def counts_of(column: pl.Series) -> tuple[int, int]:
    """(rows whose value no other row holds, different values); a missing value is a value.  O(n log n)."""
    return _counted(_hashed(column))


def _counted(hashed: np.ndarray) -> tuple[int, int]:
    """(values that stand once, different values) by sorting, which for 64-bit numbers is the quickest way."""
    if not hashed.size:
        return 0, 0
    ordered = np.sort(hashed)
    edge = np.ones(ordered.size + 1, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=edge[1:-1])
    return int((edge[1:] & edge[:-1]).sum()), int(edge.sum()) - 1


def _hashed(column: pl.Series) -> np.ndarray:
    """uint64[n], equal where values are: -0.0 is 0.0, and NaN is NaN."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        column = column.to_physical()
    if column.dtype.is_float():
        column = column + 0.0
    return column.to_frame().hash_rows().to_numpy()


def sample(column: pl.Series) -> list[str]:
    """Values as text, spread evenly over those that are not missing."""
    if column.dtype == pl.Binary:
        marks = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM")
        return ["x.png" if b[:4].startswith(marks) else "" for b in column.drop_nulls().head(200).to_list()]
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum) and not column.dtype.is_integer():
        return []
    spread = column.gather_every(max(1, len(column) // _SAMPLE)).drop_nulls()
    if len(spread) < 100:
        spread = column.drop_nulls()
        spread = spread.gather_every(max(1, len(spread) // _SAMPLE))
    return spread.cast(pl.String).to_list()


def singled_elsewhere(
    frame: nw.LazyFrame[Any],
    columns: Sequence[str],
    few: Callable[[int], Any] | None = None,
    hashed: Callable[[Sequence[str]], Iterable[np.ndarray]] | None = None,
) -> SingledOut:
    """How columns single rows out, counted inside an engine: only numbers and a sample of values come back.

    few     gives so many rows as values, where the frame has them in another form
    hashed  gives 64-bit hashes of some columns in lots, all that are alike in one: where most values differ they are
            sorted here, in a third of the time that an engine takes to group as many
    """
    number, which = "__shoal_number", "__shoal_which"

    def query(i: int, names: Sequence[str]) -> Any:
        grouped = frame.group_by(list(names)).agg(nw.len().alias(number))
        single = nw.when(nw.col(number) == 1).then(nw.lit(1)).otherwise(nw.lit(0))
        sums = grouped.select(nw.col(number).sum().alias("n"), single.sum().alias("u"), nw.len().alias("d"))
        return sums.with_columns(nw.lit(i).alias(which))

    def numbers(asked: Any) -> dict[int, tuple[int, int, int]]:
        rows = asked.collect(backend="polars").to_native().select(which, "n", "u", "d").rows()
        return {int(i): (int(n or 0), int(u or 0), int(d or 0)) for i, n, u, d in rows}

    def counted(i: int, names: Sequence[str]) -> dict[int, tuple[int, int, int]]:
        assert hashed is not None
        lots = [(lot.size, *_counted(lot)) for lot in hashed(names)]
        n, alone, distinct = map(sum, zip(*lots, strict=True))
        return {i: (n, alone, distinct)}

    def first(names: Sequence[str]) -> pl.DataFrame:
        held = frame.select(*names).head(_SAMPLE) if few is None else nw.from_native(few(_SAMPLE)).select(*names)
        found: pl.DataFrame = held.collect(backend="polars").to_native()
        return found

    every, last = list(columns), len(columns) - 1 if len(columns) == 1 else len(columns)
    try:
        head = first(columns)
        many = {n for n in columns if hashed is not None and _is_many(head[n])}
        sets = [[name] for name in columns] + ([every] if last == len(columns) and not many else [])
        asked = [query(i, names) for i, names in enumerate(sets) if not many.intersection(names)]
        found: dict[int, tuple[int, int, int]] = {}
        for start in range(0, len(asked), _AT_ONCE):
            found |= numbers(nw.concat(asked[start : start + _AT_ONCE]))
        for i, name in enumerate(columns):
            if name in many:
                found |= counted(i, [name])
        if last not in found:
            whole = next((of for of in found.values() if of[1] == of[0]), None)  # where one singles all out, so do all
            found |= {last: whole} if whole is not None else counted(last, every)
    except Exception as error:
        both = lambda i: (numbers(query(i, [columns[i]])), first([columns[i]]))  # noqa: E731
        raise InputError(_uncounted(columns, both, error)) from None
    alone = {name: found[i][1] for i, name in enumerate(columns)}
    distinct = {name: found[i][2] for i, name in enumerate(columns)}
    texts = {name: sample(head[name]) for name in columns}
    return SingledOut(found[0][0], alone, found[last][1], distinct, texts)


def _is_many(some: pl.Series) -> bool:
    """Whether some values of a column say that most differ."""
    plain = not some.dtype.is_nested() and some.dtype not in (pl.Object, pl.Unknown)
    return plain and _MANY * _counted(_hashed(some))[1] > len(some)


def _uncounted(columns: Sequence[str], count: Callable[[int], Any], error: Exception) -> str:
    """Why columns could not be counted, by the first that cannot be by itself."""
    named = "the insensitive columns"
    for i, name in enumerate(columns):
        try:
            count(i)
        except Exception as own:
            named, error = f"column {name!r}", own
            break
    return (
        f"{named} cannot be counted here ({type(error).__name__}), so shoal cannot tell whom they single out; list a "
        "column whose values cannot be compared in ⟨identifiers=[...]⟩, or cast it to text"
    )


def notes(counted: Counted) -> tuple[str, ...]:
    """Sentences on a counted table.

    Names the quasi-identifiers and sensitive columns in which values differ only by case, outer blanks or Unicode
    normal form, with the rows that hold them, and the sensitive columns in which missing values count as a value of
    their own.  O(distinct values + cells).
    """
    found: list[str] = []
    columns = [
        *((c, counted.histogram.quasi[:, j], False) for j, c in enumerate(counted.quasi)),
        *((c, counted.histogram.sensitive[:, j], True) for j, c in enumerate(counted.sensitive)),
    ]
    many = counted.histogram.count.astype(np.float64)  # as they are added up
    for column, codes, sensitive in columns:
        rows = np.bincount(codes, weights=many, minlength=column.size)
        missing = int(rows[column.values.is_null().to_numpy()].sum()) if column.size else 0
        if column.values.dtype == pl.String:
            found += alike(column.name, column.texts(), rows.tolist(), sensitive)
        found += _missing(column.name, missing) if sensitive else []
    return tuple(found)


def sensitive_notes(frame: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Notes on the sensitive columns of a frame: values that look alike, and missing ones."""
    found: list[str] = []
    for column in (frame[name] for name in names):
        if column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum)):
            held, rows = column.cast(pl.String).value_counts()
            found += alike(column.name, held.to_list(), rows.to_list(), True)
        found += _missing(column.name, column.null_count())
    return tuple(found)


def coded_places(points: np.ndarray, rows: np.ndarray | None = None) -> list[str]:
    """A sentence when longitudes and latitudes, float64[n, 2], are codes for places nobody knows; rows: of each."""
    found = metric.codes(points)
    number = int(found.sum() if rows is None else rows[found].sum())
    if not number:
        return []
    return [
        f"{several(number, 'row')} with codes for coordinates (0 and 0, or repeated digits such as 77.7777), which are "
        "no place; repair them or leave them out"
    ]


def _missing(name: str, rows: int) -> list[str]:
    """A sentence when values of a sensitive column are missing."""
    note = "missing values count as a sensitive value of their own; l counts them as one more"
    return [f"column {name!r}: {rows:,} {note}"] if rows else []


def alike(name: str, values: Sequence[str | None], rows: Sequence[float], sensitive: bool) -> list[str]:
    """A sentence when values differ only by case, outer blanks or Unicode normal form.

    values  distinct; rows: how many rows hold each
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
