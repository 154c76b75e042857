"""Columns that name or single out people: single columns, which is why a column without a role may be refused, and
small sets of columns, by distinction and separation.

Messages name columns and count rows; no value is shown. Source of the sets: Motwani, Xu 2007, Efficient algorithms for
masking and finding quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import refuse_dates
from shoal.engines.recognize import DIRECT, REMARKS, Kind, by_name, by_values, free_text, identifies_nobody
from shoal.engines.table import SingledOut, Table
from shoal.errors import InputError
from shoal.model.histogram import dense, narrowest

if TYPE_CHECKING:
    from shoal.model.policy import Policy

SHARE = 0.05  # share of the rows that a column without a role may single out
_SAMPLE = 5_000
_AT_ONCE = 50  # counts in one query; for many more, DuckDB refuses the plan, which becomes too deep
_MANY = 4  # a column with different values in a quarter of the sample has too many values to group quickly
_PROTECT = "in ⟨quasi_identifiers=[...]⟩ or ⟨sensitive=[...]⟩ to protect it, "


@dataclass(frozen=True)
class Unassigned:
    """The insensitive columns, and the number of rows that they single out.

    columns   the insensitive columns, in the table's order
    named     those of them that the policy names insensitive
    alone     for each column, the number of rows with a value that no other row has
    together  the number of rows whose values in all these columns together no other row has
    rows      number of rows of the table
    """

    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    alone: Mapping[str, int] = field(default_factory=dict)
    together: int = 0
    rows: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "columns": list(self.columns),
            "insensitive": list(self.named),
            "alone": dict(self.alone),
            "together": self.together,
        }

    @property
    def warning(self) -> str:
        """A sentence if the columns single people out; otherwise ""."""
        if not self.together:
            return ""
        share = 100 * self.together / self.rows
        more = f" and {len(self.columns) - 10} more" if len(self.columns) > 10 else ""
        return (
            f"warning: the insensitive columns ({', '.join(self.columns[:10])}{more}) single out {self.together:,} of "
            f"{self.rows:,} rows ({share:.1f} %): someone who knows their values finds these people despite the groups"
        )


def look(table: Table, policy: Policy) -> Unassigned:
    """Examine every column that will be published without a role or as insensitive.

    Raises InputError with each column without a role that is a direct identifier by its name or its values, or whose
    values single out more than 5 % of the rows. O(n) for each such column.
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
    refuse_identifying(found, policy.insensitive)
    named = tuple(c for c in columns if c in policy.insensitive)
    return Unassigned(tuple(columns), named, found.alone, found.together, found.rows)


def refuse_identifying(found: SingledOut, known: Sequence[str], protect: str = _PROTECT) -> None:
    """InputError with each column that identifies or singles out people, except those ``known`` to be published.

    protect  another way to publish the column; "" if there is none
    """
    refused = {}
    for name in found.alone:
        why = _why(name, found.alone[name], found.distinct[name], found.rows, found.texts.get(name, ()))
        if why and name not in known:
            refused[name] = why
    if refused:
        raise InputError(_refusal(refused, protect))


def named_sensitive(names: Sequence[str]) -> list[str]:
    """A sentence for each sensitive column whose name indicates names of people, because it is published unchanged."""
    recognized = ((name, by_name(name)) for name in names)
    return [
        f"warning: the sensitive column {name!r} is published as it is, and {found.reason}; name it among the "
        "identifiers to leave it out"
        for name, found in recognized
        if found is not None and found.role == DIRECT
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
    """The reason why a column may not be published; "" if it may."""
    held: Kind | None = by_values(texts)
    if held is not None and held.role == DIRECT:
        return held.reason
    recognized = by_name(name)
    repeated = (
        recognized is not None and recognized.what == REMARKS and not alone
    )  # if a few remarks repeat, it isn't free text
    if recognized is not None and recognized.role == DIRECT and not repeated and not identifies_nobody(distinct, rows):
        return recognized.reason
    if alone and free_text(texts):
        return "it holds free text, which can name people"
    if alone > SHARE * rows:
        return f"{100 * alone / rows:.1f} % of the rows hold a value that no other row holds"
    return ""


def singled_in_memory(columns: Iterable[pl.Series]) -> SingledOut:
    """How far the columns of a table, at least one, single rows out, by 64-bit hashes of values and of rows."""
    alone: dict[str, int] = {}
    distinct: dict[str, int] = {}
    texts: dict[str, Sequence[str]] = {}
    joined = np.zeros(1, np.uint64)
    for column in columns:
        name = column.name
        refuse_dates(column)
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
    """(number of rows with a value that no other row has, number of different values); a missing value is a value. O(n
    log n)."""
    return _counted(_hashed(column))


def _counted(hashed: np.ndarray) -> tuple[int, int]:
    """(number of values that occur once, number of different values), by sorting, which is fastest for 64-bit
    numbers."""
    if not hashed.size:
        return 0, 0
    ordered = np.sort(hashed)
    edge = np.ones(ordered.size + 1, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=edge[1:-1])
    return int((edge[1:] & edge[:-1]).sum()), int(edge.sum()) - 1


def _hashed(column: pl.Series) -> np.ndarray:
    """uint64[n], equal if values are equal; -0.0 equals 0.0, and NaN equals NaN."""
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
    """How far columns single rows out, counted in an engine: only numbers and a sample of values are fetched.

    few     gives this number of rows as values, if the frame has them in another form
    hashed  gives 64-bit hashes of some columns in lots, with equal ones in one lot. If most values differ, they are
            sorted here, in a third of the time that an engine takes to group them
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

    def counted(sets: Mapping[int, Sequence[str]]) -> dict[int, tuple[int, int, int]]:
        assert hashed is not None
        told: dict[int, list[tuple[int, Future[tuple[int, int]]]]] = {i: [] for i in sets}
        # sorts one lot while the engine hashes the next, and never holds more lots
        with ThreadPoolExecutor(1) as thread:
            sorting: Future[tuple[int, int]] | None = None
            for i, names in sets.items():
                for lot in hashed(names):
                    if sorting is not None:
                        sorting.result()
                    sorting = thread.submit(_counted, lot)
                    told[i].append((lot.size, sorting))
                    del lot
        found = {}
        for i, lots in told.items():
            n, alone, distinct = map(sum, zip(*((rows, *of.result()) for rows, of in lots), strict=True))
            found[i] = n, alone, distinct
        return found

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
        found |= counted({i: [name] for i, name in enumerate(columns) if name in many}) if many else {}
        if last not in found:
            # if one column singles out all rows, so do all columns together
            whole = next((of for of in found.values() if of[1] == of[0]), None)
            found |= {last: whole} if whole is not None else counted({last: every})
    except Exception as error:
        both = lambda i: (numbers(query(i, [columns[i]])), first([columns[i]]))  # noqa: E731
        raise InputError(_uncounted(columns, both, error)) from None
    alone = {name: found[i][1] for i, name in enumerate(columns)}
    distinct = {name: found[i][2] for i, name in enumerate(columns)}
    texts = {name: sample(head[name]) for name in columns}
    return SingledOut(found[0][0], alone, found[last][1], distinct, texts)


def _is_many(some: pl.Series) -> bool:
    """Whether a sample of a column suggests that most values differ."""
    plain = not some.dtype.is_nested() and some.dtype not in (pl.Object, pl.Unknown)
    return plain and _MANY * _counted(_hashed(some))[1] > len(some)


def _uncounted(columns: Sequence[str], count: Callable[[int], Any], error: Exception) -> str:
    """Why columns could not be counted, with the first one that can't be counted alone."""
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


# up to this many columns, all triples are examined; above, only those that extend the most separating pairs
LARGEST = 12
WIDEST = 100  # up to this many columns, all pairs are examined; above, only those of the most separating columns
RANKED = 10_000  # number of lines on which the sets of more than ``LARGEST`` columns are ranked
MANY = 1 << 20  # number of lines above which the sets of fewer columns are ranked on a sample
SOME = 1 << 17  # the size of this sample
KEPT = 5  # number of sets of each size that are reported
NEAR = 1 << 17  # number of keys up to which they are counted in a table rather than sorted


class SingledColumns(NamedTuple):
    """How far some columns single people out together.

    distinction  number of different tuples divided by the rows: 1 means that every row is unique
    separation   share of the pairs of rows that differ in at least one of the columns
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"columns": list(self.columns), "distinction": self.distinction, "separation": self.separation}


def dangerous(
    codes: Sequence[np.ndarray], names: Sequence[str], count: np.ndarray | None = None
) -> list[SingledColumns]:
    """All single columns, then the worst pairs and triples, then the set that grows from the worst triple.

    codes  one int[n] for each column, from 0
    count  int64[n], number of rows of each line; None: 1

    The worst sets separate most, and among these distinguish most. For up to ``LARGEST`` columns, all pairs and triples
    are examined. Above, all pairs of the ``WIDEST`` columns that separate most are examined, and the triples that
    contain one of the ``LARGEST`` worst pairs. The growing set adds the column that separates most while this increases
    the separation. For more than ``LARGEST`` columns, sets are ranked on ``RANKED`` lines drawn with a fixed seed; for
    fewer columns and more than ``MANY`` lines, on ``SOME`` lines. Their figures are counted on all lines. O(n) for each
    set of few distinct tuples, otherwise O(n log n).
    """
    table = _Table(codes, None if count is None else np.asarray(count, np.int64))
    if not table.rows:
        return []
    d, lines = len(codes), codes[0].size
    drawn = (SOME if lines > MANY else lines) if d <= LARGEST else RANKED
    looked = table if lines <= drawn else table.sampled(drawn)
    looked.near = [j for (j,) in _worst(looked, ((j,) for j in range(d)), WIDEST)]
    named = _worst(looked, _pairs(looked), KEPT) + _worst(looked, dict.fromkeys(map(_sorted, _triples(looked))), KEPT)
    named += [grown] if (grown := _grown(looked)) else []
    single = _worst(table, ((j,) for j in range(d)), d)
    return [SingledColumns(tuple(names[j] for j in some), *table.measured(some)) for some in single + named]


class _Table:
    """Codes numbered without gaps, and the number of rows of each line."""

    def __init__(self, codes: Sequence[np.ndarray], many: np.ndarray | None) -> None:
        numbered = (dense(np.asarray(c)) for c in codes)
        self.codes = [narrowest(c, int(c.max(initial=0)) + 1) for c in numbered]
        self.sizes = [int(c.max(initial=0)) + 1 for c in self.codes]
        self.rows = int(many.sum()) if many is not None else codes[0].size if codes else 0
        if many is not None and codes and self.rows <= 2 * codes[0].size:  # counting single rows is faster
            self.codes, many = [np.repeat(c, many) for c in self.codes], None
        # the type in which they are summed; exact below 2^53 rows
        self.many = None if many is None else many.astype(np.float64)
        self.near = [*range(len(self.codes))]
        self._left: tuple[tuple[int, ...], np.ndarray, int] = ((), np.zeros(0, np.int64), 0)
        self._known: dict[tuple[int, ...], tuple[float, float]] = {}

    def sampled(self, some: int) -> _Table:
        """A sample of the lines, the same at every call."""
        drawn = np.random.default_rng(0).choice(self.codes[0].size, some, replace=False)
        return _Table([c[drawn] for c in self.codes], None if self.many is None else self.many[drawn])

    def measured(self, some: tuple[int, ...]) -> tuple[float, float]:
        """Distinction and separation of some columns."""
        if some not in self._known:
            held = _held(*self._key(some), self.many)
            pairs = self.rows * (self.rows - 1) / 2
            alike = float((held * (held - 1)).sum() / 2)
            self._known[some] = held.size / self.rows, 1 - alike / pairs if pairs else 1.0
        return self._known[some]

    def _key(self, some: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """A number for each tuple of values, and an upper bound; the numbers for all columns except the last are
        cached."""
        last, size = self.codes[some[-1]], self.sizes[some[-1]]
        if len(some) == 1:
            return last.astype(np.int64), size
        if self._left[0] != some[:-1]:
            key, span = self._key(some[:-1])
            # renumbering many keys takes longer than sorting them
            if span > NEAR and (key.size <= MANY or span * size > 2**62):
                key = dense(key)
                span = int(key.max(initial=0)) + 1
            self._left = some[:-1], key, span
        _, key, span = self._left
        return key * size + last, span * size


def _worst(table: _Table, sets: Iterable[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """The sets of columns that separate most, and among these distinguish most."""
    return sorted(sets, key=lambda some: (*(-x for x in reversed(table.measured(some))), some))[:most]


def _pairs(table: _Table) -> Iterator[tuple[int, ...]]:
    return combinations(sorted(table.near), 2)


def _triples(table: _Table) -> Iterator[tuple[int, ...]]:
    """All triples of few columns; of many columns, each of the worst pairs with one further column."""
    d = len(table.codes)
    if d <= LARGEST:
        return combinations(range(d), 3)
    near = _worst(table, _pairs(table), LARGEST)
    return ((*pair, j) for pair in near for j in table.near if j not in pair)


def _sorted(some: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(some))


def _grown(table: _Table) -> tuple[int, ...]:
    """The worst triple, extended by one column at a time while this increases the separation; () if it never does."""
    worst = _worst(table, map(_sorted, _triples(table)), 1)
    some = worst[0] if worst else ()
    grew = False
    while some and len(some) < len(table.near) and table.measured(some)[1] < 1:
        wider = max(((*some, j) for j in table.near if j not in some), key=lambda s: table.measured(s)[::-1])
        if table.measured(wider)[1] <= table.measured(some)[1]:
            break
        some, grew = wider, True
    return _sorted(some) if grew else ()


def _held(key: np.ndarray, span: int, many: np.ndarray | None) -> np.ndarray:
    """int64: number of rows of each different key, which is at least 0 and below ``span``."""
    near = max(NEAR, key.size // 8)
    if span <= near or many is not None:
        rows = np.bincount(key if span <= near else dense(key), weights=many).astype(np.int64)
        return rows[rows > 0]
    ordered = np.sort(key)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1])
    return np.diff(ends, prepend=-1, append=key.size - 1)


def words(found: SingledColumns, rows: int) -> str:
    """A sentence about a set of columns."""
    return (
        f"{' + '.join(found.columns)}: {round(found.distinction * rows):,} different combinations in {rows:,} rows; "
        f"{100 * found.separation:.3f} % of all pairs of rows differ"
    )


def worst_sets(found: Sequence[SingledColumns]) -> list[SingledColumns]:
    """The worst set of each size above one, so that the list is short."""
    first: dict[int, SingledColumns] = {}
    for danger in found:
        first.setdefault(len(danger.columns), danger)
    return [danger for size, danger in sorted(first.items()) if size > 1]
