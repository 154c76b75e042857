"""The recoding of each quasi-identifier: hierarchies that are read, built, or generated from the table's counts.

A column of ranges may have a grid to which ranges are widened outward, so that their ends are no one's values:
multiples of a number, computed exactly in decimals; multiples of a number of days since 1970-01-01; or the first days
of months or years.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import Coded, as_numbers, as_text, mixed_radix_columns
from shoal.engines.prepared import coded_places
from shoal.engines.table import Counted, Replacement
from shoal.errors import InputError, PolicyError, Sentence
from shoal.judge.tables.covering import reader
from shoal.model import metric
from shoal.model.arguments import FAR
from shoal.model.certificate import tight
from shoal.model.hierarchy import GENERATED, REGIONS, Hierarchy
from shoal.model.histogram import Histogram, Partition, narrowest
from shoal.model.notation import MARKS, held_in, limits_of, numeral, of_limits, reader_of, writer_of
from shoal.model.policy import Policy
from shoal.model.privacy import PrivacyModel, TCloseness
from shoal.model.recoding import AREAS, ColumnRecoding, Levels, PublishedCodes, RangeGrid, Ranges, Recoding, Regions
from shoal.model.settings import RECODINGS, SETTINGS
from shoal.model.task import Grouping

_EPOCH = datetime.date(1970, 1, 1)
_DAY = {unit: 86_400 * 10**digits for unit, digits in (("ms", 3), ("us", 6), ("ns", 9))}


class _Ruler(NamedTuple):
    """A grid of integer marks: below and above give the marks around a value; place and text belong to a mark."""

    below: Callable[[str], int]
    above: Callable[[str], int]
    place: Callable[[int], float]
    text: Callable[[int], str]


def grid(column: Coded, position: np.ndarray | None, step: float | str) -> tuple[RangeGrid, list[str | None]]:
    """The possible ends of a column's ranges with their texts; a missing value is an end of its own, the last.

    position  float64[size] of the column's codes, None if they have none
    step      as in ``Policy.range_step``

    Raises PolicyError for a column of neither numbers nor dates, or a step that doesn't fit it. O(size log size).
    """
    ruler = _ruler(column, position, step)
    texts = [t for t in column.texts() if t is not None]
    assert position is not None
    try:
        side = [_side(t, column.notation) for t in texts]
        low = [(ruler.below(t), at) for t, at in zip(texts, side, strict=True)]
        high = [(ruler.above(t), at) for t, at in zip(texts, side, strict=True)]
        marks = sorted({*low, *high})
        names: list[str | None] = [ruler.text(mark) for mark, _ in marks]
        ends = np.array([ruler.place(mark) for mark, _ in marks], np.float64)
    except OverflowError:
        raise _no(column.name, step, "the dates around its values cannot be written") from None
    number = {mark: i for i, mark in enumerate(marks)}
    for code, (a, b) in enumerate(zip(low, high, strict=True)):
        if a == b:  # a value on the grid keeps its text and position
            names[number[a]], ends[number[a]] = texts[code], position[code]
    lows, highs = [number[a] for a in low], [number[b] for b in high]
    if len(texts) < column.size:
        lows, highs = [*lows, len(marks)], [*highs, len(marks)]
        names.append(None)
        ends = np.append(ends, max(position[-1], np.nextafter(ends[-1], np.inf)))
    rising = np.diff(ends)[[a != b for (a, _), (b, _) in pairwise(marks)] + [True] * (ends.size > len(marks))]
    if not np.isfinite(ends).all() or (rising <= 0).any():
        raise _no(column.name, step, "its multiples are too close together to be distinguished; take a larger one")
    return RangeGrid(ends, np.array(lows, np.int32), np.array(highs, np.int32)), names


def _side(text: str, notation: str | None) -> int:
    """1 for the text of all values from a top limit on, -1 for that of a bottom limit, 0 for other values.

    Such a text has the same position as the end of a range without these values; the side tells them apart.
    """
    return 0 if not of_limits(notation) or text not in str(notation).split() else 1 if text[0] == ">" else -1


_UNMEASURED = "numbers that are infinite, or too far apart or too close together for floating point"


def _ruler(column: Coded, position: np.ndarray | None, step: float | str) -> _Ruler:
    """The grid of a column with a step; PolicyError for a column or a step without a grid."""
    present = column.values.drop_nulls()
    kind = present.dtype
    number = not column.ordered and (kind.is_numeric() or (kind == pl.String and _of_numerals(column, present)))
    moment = isinstance(kind, pl.Datetime) and kind.time_zone is None
    day = not (column.ordered or column.banded) and (kind == pl.Date or moment or (kind == pl.String and not number))
    if position is None or not (number or day):
        what, mend = "times or zoned moments", "turn them into numbers or dates"
        if kind.is_numeric():
            what, mend = _UNMEASURED, "correct these numbers"
        elif not kind.is_temporal():
            what = "values that are neither numbers nor dates"
            mend = f"name their notation (⟨dates[{column.name!r}] = '%d.%m.%Y'⟩, ⟨decimal[{column.name!r}] = ','⟩)"
        raise _no(column.name, step, f"the column holds {what}; leave the step out, or {mend}")
    zero = 0
    if kind.is_integer() or moment:  # positions of large integers are relative to the lowest
        whole = present.to_physical().to_list()
        zero = min(whole) if max(map(abs, whole)) > 2**53 else 0
    if number and isinstance(step, str):
        raise _no(column.name, step, "the column holds numbers; give a number")
    for limit in limits_of(str(column.notation)) if of_limits(column.notation) else ():
        if np.isfinite(limit) and Fraction(str(limit)) % Fraction(str(step)):
            raise _no(column.name, step, f"the limit {limit:g} of the column is no multiple of it; take one that is")
    texts = as_text(present).to_list()
    if number and kind == pl.String and (column.notation is None or of_limits(column.notation)):
        own = [text for text in texts if not _side(text, column.notation)]
        return _of_numbers(
            kind, zero, Fraction(str(step)), _number_of(column.notation), partial(_padded, _decimals(own))
        )
    if number and column.notation is not None:
        plain = {text: Fraction(str(numeral(text, column.notation))) for text in texts}
        return _of_numbers(kind, zero, Fraction(str(step)), plain.__getitem__, writer_of(texts, column.notation))
    if number:
        return _of_numbers(kind, zero, Fraction(str(step)))
    if not isinstance(step, str) and step != int(step):
        raise _no(column.name, step, "the column holds dates; give a whole number of days, 'month' or 'year'")
    a_day, clock = (_DAY[kind.time_unit], " 00:00:00") if isinstance(kind, pl.Datetime) else (1, "")
    if kind == pl.String and column.notation is None:  # for text with a time, midnight in the same form
        clock = re.sub("[0-9]", "0", present[0][10:])
    first = partial(_month, {"month": 1, "year": 12}[step]) if isinstance(step, str) else partial(_day, int(step))
    if column.notation is None:
        return _of_days(first, a_day, zero, datetime.datetime.fromisoformat, lambda day: f"{day.isoformat()}{clock}")
    as_day = reader_of(column.notation)
    assert as_day is not None  # it can read all texts, because the column has positions
    write = writer_of(texts, column.notation)
    return _of_days(
        first, a_day, zero, lambda text: datetime.datetime.fromisoformat(str(as_day(text))), lambda day: write(str(day))
    )


def _number_of(notation: str | None) -> Callable[[str], Fraction]:
    """A function that reads a plain number, or one with limits."""
    return lambda text: Fraction(text if notation is None else str(numeral(text, notation)))


def _decimals(texts: Sequence[str]) -> int:
    """How many decimals every number has at least: as many have the ends of ranges, or 55 in place of 55.0 would tell
    that no row has this value."""
    return min((len(text.partition(".")[2]) for text in texts if "e" not in text), default=0)


def _padded(decimals: int, plain: str) -> str:
    """A number with at least so many decimals."""
    whole, _, part = plain.partition(".")
    return f"{whole}.{part.ljust(decimals, '0')}" if part or decimals else whole


def _no(name: str, step: float | str, why: str) -> PolicyError:
    return PolicyError(f"⟨range_step[{name!r}] = {step!r}⟩: {why}")


def _of_numerals(column: Coded, present: pl.Series) -> bool:
    """Whether a column's texts are numbers."""
    if column.notation is None:
        return as_numbers(present) is not None
    return column.notation in MARKS or of_limits(column.notation)


def _of_numbers(
    kind: pl.DataType, zero: int, step: Fraction,
    read: Callable[[str], Fraction] = Fraction, write: Callable[[str], str] = str,
) -> _Ruler:  # fmt: skip
    """A grid of multiples of a number. zero: the offset of all positions; read, write: for a column's own notation."""

    def text(mark: int) -> str:
        end = mark * step
        if kind.is_float():
            return str(as_text(pl.Series([float(end)], dtype=pl.Float64))[0])
        with localcontext() as exact:
            exact.prec = 200
            shown = f"{Decimal(end.numerator) / Decimal(end.denominator):f}"
        return write(shown.rstrip("0").rstrip(".") if "." in shown else shown)

    return _Ruler(
        below=lambda t: read(t) // step,
        above=lambda t: -(-read(t) // step),
        place=lambda mark: float(mark * step - zero),
        text=text,
    )


def _of_days(
    first: Callable[[int | datetime.date], Any], a_day: int, zero: int,
    read: Callable[[str], datetime.datetime], write: Callable[[datetime.date], str],
) -> _Ruler:  # fmt: skip
    """A grid of days.

    first  maps a mark to its day, and a day to the last mark at or before it
    a_day  length of a day in positions
    """

    def above(text: str) -> int:
        moment = read(text)
        mark = int(first(moment.date()))
        return mark + (datetime.datetime.combine(first(mark), datetime.time()) < moment)

    return _Ruler(
        below=lambda t: int(first(read(t).date())),
        above=above,
        place=lambda mark: float((first(mark) - _EPOCH).days * a_day - zero),
        text=lambda mark: write(first(mark)),
    )


def _day(step: int, at: int | datetime.date) -> int | datetime.date:
    if isinstance(at, datetime.date):
        return (at - _EPOCH).days // step
    return _EPOCH + datetime.timedelta(at * step)


def _month(months: int, at: int | datetime.date) -> int | datetime.date:
    if isinstance(at, datetime.date):
        return (12 * at.year + at.month - 1) // months
    year, month = divmod(at * months, 12)
    if year > datetime.MAXYEAR:
        raise OverflowError
    return datetime.date(year, month + 1, 1)


Labels = Sequence[Sequence[str | None]] | None


def recodings(
    asked: Policy, counted: Counted, texts: list[list[str | None]], smallest: int
) -> tuple[Recoding, list[Labels]]:
    """One ColumnRecoding for each quasi-identifier, with the labels of its levels from 1 on, or of a range's ends.

    texts     for each column, the text of every code
    smallest  minimum number of rows in a group; generated levels have at least this many rows, then 4, 16, ... times as
              many
    """
    reader(asked.publish)  # refuse a way to publish that the judge can't read
    columns: list[ColumnRecoding] = []
    labels: list[Labels] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        weight = float(asked.weights.get(column.name, 1.0))
        ceiling = asked.max_level.get(column.name)
        if asked.publish == "hierarchy" and column.name in asked.hierarchies:
            source = asked.hierarchies[column.name]
            # the height of generated hierarchies depends on the table
            given = not (isinstance(source, str) and source in GENERATED)
            if not given:
                held = np.bincount(
                    counted.histogram.quasi[:, j], weights=counted.histogram.count, minlength=column.size
                ).astype(np.int64)
                source = _generated_hierarchy(source, column, values, held, smallest, asked.coordinates)
            found = Hierarchy.of(source).resolve(values, column.name, reader_of(column.notation), column.notation)
            if given:
                _refuse_above(column.name, ceiling, found.node.shape[0] - 1)
            tree = Levels.tree(found.node, weight, ceiling, found.leaves)
            columns.append(_regions(asked, column.name, Hierarchy.of(source), values, tree))
            labels.append(found.labels[1:])
            continue
        step = asked.range_step.get(column.name)
        if step is not None:
            position = column.positions()
            ends, names = grid(column, position, step)
            assert position is not None  # otherwise, ``grid`` has raised an error
            columns.append(Ranges.of(position, weight, ends))
            labels.append([names])
            continue
        labels.append(None)
        _refuse_above(column.name, ceiling, 1)
        plain = RECODINGS[asked.publish].load().of_column(column.size, column.positions, weight)
        columns.append(plain if ceiling is None else replace(plain, ceiling=min(ceiling, 1)))
    stars_only = asked.publish == "stars" and not asked.weights
    return Recoding(tuple(columns), "stars" if stars_only else "ncp"), labels


def _regions(asked: Policy, name: str, hierarchy: Any, values: list[str | None], tree: Levels) -> ColumnRecoding:
    """Connected sets of a graph's areas, or the classes of its tree if levels are requested or there are many areas."""
    levels = asked.global_recoding or asked.coarsen or name in asked.max_level
    if hierarchy.kind != REGIONS or levels or len(hierarchy.steps[0]) > AREAS:
        return tree
    return Regions.of(hierarchy, values, tree)


def without_effect(recoding: Recoding, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each hierarchy that joins no two values below the star, so it has no effect."""
    return tuple(
        f"the hierarchy of {name!r} joins no two values below the star, so the column is published as without it"
        for name, column in zip(names, recoding.columns, strict=True)
        if column.levels > 2 and column.size > 1
        and np.unique(column.classes(column.levels - 2, np.arange(column.size))).size == column.size
    )  # fmt: skip


def by_classes(recoding: Recoding, names: Sequence[str], asked: Policy) -> tuple[str, ...]:
    """A sentence for each column of regions whose groups publish classes of a tree, on which the bound depends."""
    return tuple(
        f"the groups publish {name!r} by a hierarchy of its graph, and the lower bound counts only releases that do "
        "so; other connected sets may lose less"
        for name, column in zip(names, recoding.columns, strict=True)
        if getattr(asked.hierarchies.get(name), "kind", None) == REGIONS and not isinstance(column, Regions)
    )


def _refuse_above(name: str, ceiling: int | None, height: int) -> None:
    if ceiling is not None and ceiling > height:
        raise PolicyError(
            f"⟨max_level[{name!r}] = {ceiling}⟩: the column is published at levels 0 to {height}, where {height} is "
            "the star"
        )


def _generated_hierarchy(
    kind: str,
    column: Coded,
    values: list[str | None],
    held: np.ndarray,
    smallest: int,
    coordinates: tuple[str, str] | None,
) -> list[list[str]] | str:
    """Rows of a hierarchy from the table's counts: classes of at least ``smallest`` rows, then 4, 16, ... times as
    many; stars for a column without a value.

    coordinates  names of the columns of a place: longitude and latitude are tiled across the date line
    """
    present = [i for i, text in enumerate(values) if text is not None]
    if not present:
        return "stars"
    counts = held[present]
    ks: list[int] = []
    k = max(smallest, 2)
    while k <= int(counts.sum()) // 2 and len(ks) < 12:
        ks.append(k)
        k *= 4
    ks = ks or [max(smallest, 2)]
    if kind == "labels":
        from shoal.problems.labels import levels as label_levels

        return label_levels([values[i] for i in present], counts, ks)
    if kind == "intervals":
        from shoal.problems.intervals import levels as interval_levels

        position = None if column.banded else column.positions()
        if position is None and column.values.dtype.is_numeric():
            raise PolicyError(
                f"⟨hierarchies[{column.name!r}] = 'intervals'⟩: the column holds {_UNMEASURED}; correct these, or "
                "empty them if they stand for missing ones"
            )
        if position is None:
            raise PolicyError(
                f"⟨hierarchies[{column.name!r}] = 'intervals'⟩ needs numbers or dates; "
                "use 'labels' for unordered values"
            )
        rows = interval_levels([position[i] for i in present], counts, ks)
        words = column.values.drop_nulls()
        number = words.dtype.is_numeric() or (words.dtype == pl.String and as_numbers(words) is not None)
        own = {} if number else {row[0]: str(values[i]) for i, row in zip(present, rows, strict=True)}
        return [
            [str(values[i]), *(" .. ".join(own.get(end, end) for end in label.split(" .. ")) for label in row[1:])]
            for i, row in zip(present, rows, strict=True)
        ]
    from shoal.problems.tiles import kind_of
    from shoal.problems.tiles import levels as tile_levels

    points = np.array([_place(str(values[i]), column.name) for i in present])
    found = tile_levels(points, ks, counts, coordinates=kind_of(*coordinates) if coordinates else "projected")
    shown = found.labels
    return [[str(values[i]), *shown[p]] for i, p in zip(present, found.inverse.tolist(), strict=True)]


def _place(text: str, column: str) -> tuple[float, float]:
    """The two numbers of a place "x y"; InputError for other texts."""
    x, _, y = text.partition(" ")
    try:
        point = float(x), float(y)
    except ValueError:
        raise InputError(f"column {column!r} does not hold two numbers in every row; repair the coordinates") from None
    if not all(abs(at) <= FAR for at in point):  # so for no number, too
        raise InputError(f"column {column!r} holds a coordinate that is not finite, or beyond 1e150; repair it")
    return point


def shown(
    grouping: Grouping,
    histogram: Histogram,
    recoding: Recoding,
    asked: Policy,
    texts: Sequence[Sequence[str | None]],
    labels: Sequence[Labels],
) -> tuple[Grouping, PublishedCodes, list[ColumnText]]:
    """The published codes of the groups, and the texts of every column.

    texts   for each column, the text of every code
    labels  from ``recodings``
    """
    partition = grouping.partition
    if asked.global_recoding or asked.coarsen:
        grouping, shows = one_level_per_column(grouping, histogram, partition, recoding, texts, labels)
    elif grouping.shows is None:
        shows = recoding.publish(histogram, partition)
    else:
        shows = as_they_are(grouping.shows, recoding, texts, labels)
    return grouping, shows, column_texts(histogram, partition, recoding, shows, texts, labels, asked.star)


def one_level_per_column(
    grouping: Grouping,
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    texts: Sequence[Sequence[str | None]],
    labels: Sequence[Labels],
) -> tuple[Grouping, PublishedCodes]:
    """A global recoding, or coarsened columns with stars, as published; the certificate then has the published cost.

    texts   for each column, the text of every code
    labels  from ``recodings``

    The bound remains that for all releases; ``uniform_bound`` in the details is that for one level for each column.
    """
    facts = dict(grouping.certificate.details)
    if "levels" not in facts:
        raise PolicyError(f"method {grouping.method!r} does not take one level per column; leave the method out")
    found, cost = grouping.certificate, facts["uniform_cost"]
    lower = tight(found.lower_bound, cost, found.unit, found.bound or "")  # both sums are computed in different orders
    certificate = replace(found, cost=cost, lower_bound=lower)
    shows = recoding.at_levels(histogram, partition, facts["levels"], grouping.starred)
    return replace(grouping, certificate=certificate), as_they_are(shows, recoding, texts, labels)


def as_they_are(
    shows: PublishedCodes, recoding: Recoding, texts: Sequence[Sequence[str | None]], labels: Sequence[Labels]
) -> PublishedCodes:
    """Publish the value instead of a class of one value with the same name, because a text doesn't show its level."""
    first, second = shows.first.copy(), shows.second.copy()
    for j, (column, own, named) in enumerate(zip(recoding.columns, texts, labels, strict=True)):
        if named is None or not column.levels:
            continue
        for level in range(1, column.levels):
            codes, called = np.arange(column.size), named[level - 1]
            node, loss = column.classes(level, codes), column.lifted(level, codes)
            alone = np.bincount(node, minlength=len(called)) == 1
            for code in np.flatnonzero(alone[node] & (loss == 0)).tolist():
                if called[node[code]] == (own[code] or ""):  # the class of a missing value has the empty text
                    here = (shows.first[:, j] == level) & (shows.second[:, j] == node[code])
                    first[here, j], second[here, j] = 0, code
    return PublishedCodes(first, second)


@dataclass(frozen=True, eq=False)
class ColumnText:
    """The published texts of one quasi-identifier.

    texts    distinct published texts; None is an unchanged missing value
    index    int[groups]    text of each group, in the narrowest type
    code     int64[texts]   the code that a text publishes unchanged, -1 if the text is coarser
    starred  bool[texts]    whether the text is a star
    shows    int64[texts]   the code of the text's value, -1 if it is a star, a level, a set, or a range
    """

    name: str
    texts: list[str | None]
    index: np.ndarray
    code: np.ndarray
    starred: np.ndarray
    shows: np.ndarray


def column_text(
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    published: PublishedCodes,
    j: int,
    values: Sequence[str | None],
    labels: Sequence[Sequence[str | None]] | None = None,
    star: str = "*",
) -> ColumnText:
    """The texts of column j.

    values  text of each code, None for a missing value
    labels  for each level from 1 on, the text of each class (index 0 is level 1); for ranges on a grid one list, the
            texts of the ends; None for suppression alone and for other ranges
    """
    shown = recoding.shown(histogram, partition, published, j)
    index, texts, plain = recoding.columns[j].texts(shown, values, labels, star)
    code = np.array(plain, np.int64)
    starred = np.array([t == star and c < 0 for t, c in zip(texts, plain, strict=True)], bool)
    return ColumnText(histogram.quasi_names[j], texts, narrowest(index, len(texts)), code, starred, code)


def column_texts(
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    published: PublishedCodes,
    values: Sequence[Sequence[str | None]],
    labels: Sequence[Sequence[Sequence[str | None]] | None],
    star: str,
) -> list[ColumnText]:
    """The texts of every column; arguments by column as in ``column_text``."""
    made = (histogram, partition, recoding, published)
    return [column_text(*made, j, own, named, star) for j, (own, named) in enumerate(zip(values, labels, strict=True))]


def at_limits(columns: Sequence[ColumnText], sizes: np.ndarray, notation: str, name: str) -> dict[str, int]:
    """The number of rows that show a column's limits, alone or in a range or set: "rows_bottom", "rows_top".

    sizes     int64[groups]  number of rows of each group
    notation  the limits, such as ``<=18 >=90``
    """
    column = next(c for c in columns if c.name == name)
    rows = np.bincount(column.index, weights=sizes, minlength=len(column.texts))
    found = {"rows_bottom": 0, "rows_top": 0}
    for limit in notation.split():
        there = [text is not None and limit in held_in(text) for text in column.texts]
        found["rows_bottom" if limit[0] == "<" else "rows_top"] = int(rows[there].sum())
    return found


def replacement(column: ColumnText, coded: Any, numeric_stars: str, as_text: bool) -> Replacement:
    """The published values of a column: of its own type if all are its own values or missing, otherwise text.

    as_text  write stars as text in a column that also has missing values, so that the two differ
    """
    own = coded.values.dtype
    numeric = not (own == pl.String or isinstance(own, (pl.Categorical, pl.Enum)))
    coarser = (column.shows < 0) & ~column.starred
    null = numeric_stars == "null" and not (as_text and _both(column))
    if numeric and not coarser.any() and (null or not column.starred.any()):
        empty = coded.values.clear().extend_constant(None, 1)
        pool = pl.concat([coded.values, empty])
        values = pool.gather(np.where(column.shows < 0, len(coded.values), column.shows))
    else:
        values = pl.Series(column.name, column.texts, dtype=pl.String)
    return Replacement(column.name, values, column.index)


def _both(column: ColumnText) -> bool:
    """Whether a column has both stars and unchanged missing values."""
    return bool(column.starred.any()) and any(t is None for t in column.texts)


def stars_published_as_missing(columns: Sequence[ColumnText], replacements: Sequence[Replacement]) -> tuple[str, ...]:
    """A sentence for each column in which stars and missing values are published alike."""
    return tuple(
        Sentence(
            f"column {c.name!r}: stars and missing values are both published as missing, so nobody can distinguish "
            "them, and a CSV has empty fields for both; ⟨numeric_stars='text'⟩ writes stars"
        )
        for c, r in zip(columns, replacements, strict=True)
        if r.values.dtype != pl.String and not r.values.dtype.is_nested() and _both(c)
    )


def like_values(columns: Sequence[ColumnText], own: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """A sentence for each column with a published label that is also a value of the table.

    own  for each column, the texts of its values
    """
    both = {
        c.name: len({t for t, code in zip(c.texts, c.code, strict=True) if code < 0} & set(held) - {None})
        for c, held in zip(columns, own, strict=True)
    }
    return tuple(
        f"column {name!r}: labels of the hierarchy are values of the table too ({many:,} of those published), so "
        "nobody can tell such a value from its group; rename them in the hierarchy"
        for name, many in both.items()
        if many
    )


def coded_place(counted: Counted, own: Sequence[Sequence[str | None]], pair: tuple[str, str] | None) -> list[str]:
    """A sentence if longitudes and latitudes in the last quasi-identifier are codes. pair: their column names."""
    if pair is None or metric.kind_of(*pair) != "geographic":
        return []
    points = np.array([(text or "nan nan").split(" ") for text in own[-1]], np.float64)
    cells = counted.histogram
    return coded_places(points, np.bincount(cells.quasi[:, -1], weights=cells.count, minlength=len(points)))


def ordered_as_equal(columns: Sequence[Coded], models: Sequence[PrivacyModel]) -> tuple[str, ...]:
    """A sentence for each sensitive column of numbers or dates to which t-closeness by the equal distance applies."""
    equal = [m for m in models if isinstance(m, TCloseness) and m.distance == "equal"]
    return tuple(
        Sentence(
            f"column {c.name!r} holds numbers or dates, and t-closeness by the equal distance takes all of them for "
            "equally far apart; ⟨t_ordered=⟩ goes by their order and asks less"
        )
        for c in columns
        if any(m.column in (None, c.name) for m in equal) and c.size > 2 and c.positions() is not None
    )


def published_classes(replacements: list[Replacement]) -> int:
    """Number of published classes. A starred number and a missing one are published alike."""
    seen = [r.values.rank("dense").fill_null(0).to_numpy()[r.index] for r in replacements]
    sizes = [int(s.max(initial=0)) + 1 for s in seen]
    return int(np.unique(mixed_radix_columns(seen, sizes, seen[0].size)).size)


def _unused(counted: Counted, asked: Policy) -> tuple[str, ...]:
    """A sentence on settings that the way to publish doesn't use: on stars of centers, and on hierarchies."""
    if asked.publish == "centers":
        default, named = SETTINGS["star"].default, ["star", "numeric_stars", "max_suppressed"]
        if any(default in column.texts() for column in (*counted.quasi, *counted.sensitive)):
            named.remove("star")  # a value that the default would be taken for
        idle = [name for name in named if getattr(asked, name) != SETTINGS[name].default]
        return tuple(Sentence(f"⟨{name}⟩ has no effect, because centers have no stars") for name in idle)
    names = [name for name in asked.hierarchies if name not in asked.sensitive]
    if not names or asked.publish == "hierarchy":
        return ()
    what = f"the hierarch{'y' if len(names) == 1 else 'ies'} of {', '.join(map(repr, names))}"
    return (f"{what} ha{'s' if len(names) == 1 else 've'} no effect, because values are published as {asked.publish}",)


def _unmeasured(counted: Counted, asked: Policy) -> tuple[str, ...]:
    """A sentence for each column of numbers that is published without their order."""
    if asked.publish not in ("ranges", "centers"):
        return ()
    what = {"ranges": "as sets of values, not as ranges", "centers": "as if all its values were equally far apart"}
    return tuple(
        f"column {c.name!r} holds {_UNMEASURED}, "
        f"so it is published {what[asked.publish]}; correct these, or empty them if they stand for missing ones"
        for c in counted.quasi
        if c.values.dtype.is_numeric() and len(c.values.drop_nulls()) > 1 and c.name not in asked.hierarchies
        and c.positions() is None
    )  # fmt: skip


def of_columns(
    counted: Counted,
    columns: Sequence[ColumnText],
    own: Sequence[Sequence[str | None]],
    recoding: Recoding,
    asked: Policy,
) -> tuple[str, ...]:
    """Sentences on the recoded columns for the publisher; own as in ``like_values``."""
    alike = like_values(columns, own) if asked.publish == "hierarchy" else ()
    idle = without_effect(recoding, counted.histogram.quasi_names)
    trees = by_classes(recoding, counted.histogram.quasi_names, asked)
    return (
        *idle,
        *_unused(counted, asked),
        *trees,
        *alike,
        *_unmeasured(counted, asked),
        *coded_place(counted, own, asked.coordinates),
    )
