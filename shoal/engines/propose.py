"""Analysis of a table before any settings are known: a role for every column with its reason, and a policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import Coded, as_numbers, count_keys, encode, mixed_radix_columns, on_a_line
from shoal.engines.lazy import LazyTable
from shoal.engines.open import open_table
from shoal.engines.prepared import alike
from shoal.engines.recognize import (
    CODES,
    DIRECT,
    FEW,
    HOMES,
    REMARKS,
    Kind,
    among_numbers,
    by_name,
    codes,
    decimal_mark,
    free_text,
    local_dates,
    moments,
    named_words,
    period_of,
    recognize,
    survey_weights,
)
from shoal.engines.source import Scope
from shoal.engines.statistics import column_labels
from shoal.engines.store import unread_sheets
from shoal.engines.table import require
from shoal.engines.unassigned import SHARE, SingledColumns, counts_of, dangerous, sample, words, worst_sets
from shoal.errors import InputError, Sentence
from shoal.model.arguments import suggesting
from shoal.model.cards import Shown, several
from shoal.model.notation import MARKS, reader_of
from shoal.model.refusals import STARS, free_star
from shoal.paths import is_remote

SHARES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)  # largest shares of one value that are proposed if l cannot be reached
NOTED = ("quasi-identifier", "sensitive")  # roles with values that are read in their notation
SAMPLED = 1_000_000  # size of the random sample of a larger table that is not in memory
TEXTS = 0.5  # distinct texts per row; above this share, the sets of a release would list most of them
SHARING = 5  # rows that should share the rounded value of a range's end; equals the proposed k
ROUNDED = "rounds the ends of ranges outward; unrounded, they would be values of single rows"
_CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f]")  # characters that TOML does not allow in comments
_PERSONS = 0.9  # distinct values per row; above this share, repeated names can be a few people with equal names


@dataclass(frozen=True)
class Proposal:
    """One column: its role ("identifier", "quasi-identifier", "sensitive" or "insensitive"), and why.

    notes     (rows, what they contain) for each warning; with 0 rows, a sentence about the column
    measured  quasi-identifier of numbers, dates, or bands of numbers: its values are ordered, and are no codes
    ordered   quasi-identifier that ranges treat as ordered: a measured one, or one of few numbers that may be codes
    dated     measured quasi-identifier of dates, with or without a time
    person    identifier that has a value in every row and repeats values: k should count its values
    share     of a sensitive column: lower bound on the largest share of one value in any grouping of all rows
    dates     of texts that a single notation reads as dates: that notation
    decimal   of texts that a single decimal mark reads as numbers: that mark
    step      of a measured column with range ends that would be values of single rows: the step to round them to
    stars     those of its values that a release could show for a suppressed value
    """

    name: str
    role: str
    reason: str
    distinct: int
    missing: int
    notes: tuple[tuple[int, str], ...] = ()
    measured: bool = False
    ordered: bool = False
    dated: bool = False
    person: bool = False
    share: float = 0.0
    dates: str | None = None
    decimal: str | None = None
    step: int | float | str | None = None
    stars: frozenset[str] = frozenset()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes as sentences."""
        return tuple(
            f"{several(rows, 'row')} contain{'s' * (rows == 1)} {what}" if rows else what for rows, what in self.notes
        )

    @property
    def notation(self) -> str | None:
        """The notation of dates, or the decimal mark of numbers."""
        return self.dates or self.decimal

    @property
    def read(self) -> Callable[[str], str | None] | None:
        """A function that writes dates as 2024-12-31 and numbers as 1234.5; None if they are written so already."""
        return reader_of(self.notation)


def propose(
    path: str | Path, *, l: int = 2, separator: str | None = None, encoding: str | None = None
) -> list[Proposal]:
    """Proposals for every column of a file, in the file's order.  O(n) per column."""
    return looked_at(path, l=l, separator=separator, encoding=encoding).columns


class FirstLook(NamedTuple):
    """The results of the first analysis of a table.

    columns   a proposal for each column;  together: sets of the published columns that single out rows together
    rows      number of rows analyzed;  of: number of rows in the table
    """

    columns: list[Proposal]
    together: list[SingledColumns]
    rows: int
    of: int

    @property
    def sampled(self) -> tuple[str, ...]:
        """A sentence that the figures are from a sample, if they are."""
        sentence = (
            f"the figures are of {self.rows:,} rows drawn at random from {self.of:,}; of all rows, fewer are unique"
        )
        return (sentence,) if self.rows < self.of else ()


def looked_at(
    path: str | Path | pl.DataFrame, *, l: int = 2, separator: str | None = None, encoding: str | None = None,
    scope: Scope = Scope(),
) -> FirstLook:  # fmt: skip
    """Proposals for a file, a folder, a frame, or a database table. Large tables are sampled."""
    if isinstance(path, pl.DataFrame):
        frame, of, labels = path, path.height, dict[str, str]()
    else:
        opened = open_table(path, separator=separator, encoding=encoding, scope=scope)
        if isinstance(opened, LazyTable):
            frame, of = opened.sample(SAMPLED)
            if not of:
                raise InputError("the table has no rows, so there is nothing to look at")
        else:
            frame = opened.polars(opened.columns)
            of = frame.height
        labels = {} if is_remote(path) else column_labels(Path(path), encoding)
    found = _as_tiles([_column(frame[name], frame.height, l, labels.get(name)) for name in frame.columns], frame)
    stay = {c.name: c.notation for c in found if c.role != DIRECT and c.distinct > 1}
    coded = {name: encode(frame[name], notation) for name, notation in stay.items()}
    found = [_with_order(c, coded[c.name]) if c.name in coded else c for c in found]
    found = [_with_share(c, frame, person_of(found), coded) for c in found]
    found = _without_pointing(found, {name: column.codes for name, column in coded.items()}, frame.height)
    return FirstLook(found, dangerous([column.codes for column in coded.values()], [*stay]), frame.height, of)


def proposed_share(least: float) -> float:
    """The largest share of a value to propose if every release has at least the share ``least``.

    If the limit equals the share in the whole table, groups are large, because every group must have almost that share.
    If the limit is a third of the way from there to 1, groups are nearly as small as without a limit.
    """
    return next((share for share in SHARES if share >= least + (1 - least) / 3), SHARES[-1])


def person_of(found: Sequence[Proposal]) -> str | None:
    """The column that identifies people with several rows; None if there is none."""
    who = max((c for c in found if c.person), key=lambda c: c.distinct, default=None)
    return None if who is None else who.name


def _with_share(column: Proposal, frame: pl.DataFrame, person: str | None, coded: Mapping[str, Coded]) -> Proposal:
    """A sensitive column with its lower bound on the largest share. If even the largest proposed limit is below that,
    the column is removed."""
    if column.role != "sensitive" or not frame.height or column.name not in coded:
        return column
    values = coded[column.name].codes.astype(np.int64)
    rows = np.bincount(values)
    share = float(rows.max()) / frame.height
    if person is not None:
        who = encode(frame[person]).codes.astype(np.int64)
        held = np.bincount(np.unique(np.stack([values, who], axis=1), axis=0)[:, 0])
        # share of people with a value: among all people, and among these people and the rows without the value
        share = max(share, float(held.max()) / np.unique(who).size, float((held / (frame.height - rows + held)).max()))
    if share <= SHARES[-1]:
        return replace(column, share=share)
    why = f"people keep it private, and {100 * share:.1f} % have the same value, so no group can hide it"
    return replace(column, role=DIRECT, reason=why, notes=())


def _without_pointing(found: list[Proposal], codes: Mapping[str, np.ndarray], rows: int) -> list[Proposal]:
    """Proposals in which the columns published unchanged do not, in combination, single out more than 5 % of the rows.

    Greedy, from the column with the fewest values: a column stays if it and the columns that stay do not single out
    more. O(n log n) per column.
    """
    carried = sorted((c for c in found if c.role == "insensitive" and c.name in codes), key=lambda c: c.distinct)
    key, leave = np.zeros(rows, np.int64), set()
    for column in carried:
        both = key * (int(codes[column.name].max()) + 2) + codes[column.name] + 1
        _, index, count = np.unique(both, return_inverse=True, return_counts=True)
        if (count == 1).sum() > SHARE * rows:
            leave.add(column.name)
        else:
            key = index.reshape(-1).astype(np.int64)
    why = "with the insensitive columns, it would single out more than 5 % of the rows"
    return [replace(c, role=DIRECT, reason=why) if c.name in leave else c for c in found]


def _with_order(column: Proposal, coded: Coded) -> Proposal:
    """Whether a quasi-identifier's values are ordered. If it has few whole numbers, which can be codes, a note says
    so."""
    if column.role != "quasi-identifier" or column.distinct < 3 or coded.positions() is None:
        return column
    if coded.banded:
        return replace(column, measured=True, ordered=True, reason=f"{column.reason}; its bands of numbers are ordered")
    if (column.distinct > FEW and not named_words(column.name) & CODES) or not _holds_numbers(coded):
        dated = not coded.ordered and not _holds_numbers(coded)
        return replace(column, measured=True, ordered=True, dated=dated, step=_step(coded))
    note = "few different numbers, which ranges treat as amounts; if they are codes, replace them with labels"
    return replace(column, ordered=True, notes=(*column.notes, (0, note)))


def _step(coded: Coded) -> int | float | str | None:
    """The smallest step with which at least 95 % of the rows share their rounded value with four others.

    Steps are month and year, or 1, 2, and 5 times powers of ten. None if few rows have a unique value, and for values
    that no step rounds, such as moments with a time zone. O(n + v log v) for v distinct values.
    """
    position, present = coded.positions(), coded.values.drop_nulls()
    rows = np.bincount(coded.codes, minlength=coded.size)[: len(present)]
    zoned = isinstance(present.dtype, pl.Datetime) and present.dtype.time_zone is not None
    other = coded.ordered or present.dtype in (pl.Time, pl.Duration) or zoned

    def shared(marks: np.ndarray) -> bool:
        held = np.bincount(np.unique(marks, return_inverse=True)[1], weights=rows)
        return float(held[held < SHARING].sum()) <= SHARE * coded.codes.size

    if position is None or other or coded.codes.size <= 20 or int((rows == 1).sum()) <= SHARE * coded.codes.size:
        return None
    line = position[: len(present)]
    if present.dtype.is_temporal() or not _holds_numbers(coded):
        days = present.dt.epoch("d").to_numpy() if present.dtype.is_temporal() else line
        months = days.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        return "month" if shared(months) else "year"
    span = float(line[-1] - line[0])
    first = int(np.floor(np.log10(span / coded.codes.size)))
    steps = [float(f"{digit}e{power}") for power in range(first, first + 20) for digit in (1, 2, 5)]
    usable = [step for step in steps if step <= span / 2]
    found = next((step for step in usable if shared(np.floor(line / step))), usable[-1])
    return int(found) if found >= 1 else found


def _holds_numbers(coded: Coded) -> bool:
    """Whether ordered values are numbers, which can be codes, and neither dates nor ordered levels."""
    present = coded.values.drop_nulls()
    if present.dtype != pl.String:
        return present.dtype.is_numeric()
    return not coded.ordered and (coded.notation in MARKS if coded.notation else as_numbers(present) is not None)


def publishing(found: Sequence[Proposal]) -> tuple[str, str]:
    """The proposed kind of recoding and why: the one with the least loss for these quasi-identifiers."""
    varied = [c for c in found if c.role == "quasi-identifier" and c.distinct > 2]
    if not any(c.role == "quasi-identifier" for c in found):
        return "stars", "no column is a quasi-identifier yet"
    if not varied:
        return "stars", "no quasi-identifier has more than two values, so a set would tell no more than a star"
    ordered = [c for c in varied if c.ordered]
    named = ", ".join(quoted(c.name) for c in ordered[:3]) + (f" and {len(ordered) - 3} more" if ordered[3:] else "")
    example = "[2024-03-01, 2024-06-01]" if all(c.dated for c in ordered[:3]) else "[30, 34]"
    ranges = f"ranges of {named} such as {example}" if ordered else ""
    sets = "sets such as {Bonn, Ulm}" if len(ordered) < len(varied) else ""
    return "ranges", f"{' and '.join(filter(None, (ranges, sets)))} keep what a star would hide"


def star_of(found: Sequence[Proposal]) -> str:
    """The proposed text of a suppressed value: * unless a column holds it."""
    return free_star(text for c in found for text in c.stars)


def rounding(found: Sequence[Proposal]) -> dict[str, int | float | str]:
    """The proposed ``range_step``: columns with range ends that would be values of single rows, and their steps."""
    return {c.name: c.step for c in found if c.step is not None}


def rounding_words(found: Sequence[Proposal]) -> str:
    """The proposed rounding in words: to months, years, or multiples of a number."""
    return ", ".join(
        f"{quoted(name)} to {f'{step}s' if isinstance(step, str) else f'multiples of {step}'}"
        for name, step in rounding(found).items()
    )


_X, _Y = {"lon", "lng", "long", "longitude"}, {"lat", "latitude"}


def _as_tiles(found: list[Proposal], frame: pl.DataFrame) -> list[Proposal]:
    """Proposals where the warnings of longitude and latitude say how to publish them as tiles, which keep more than
    stars."""
    names = [c.name for c in found if c.role == "quasi-identifier"]
    x, y = ([n for n in names if named_words(n) & words] for words in (_X, _Y))
    if len(x) != 1 or len(y) != 1 or any(_has_words(frame[n]) for n in (x[0], y[0])):
        return found
    hint = (
        f"{x[0]} and {y[0]} lose less as tiles than as stars: list them in coordinates = [{quoted(x[0])}, "
        f'{quoted(y[0])}] instead of here, with publish = "hierarchy"'
    )
    return [
        replace(c, notes=(*(n for n in c.notes if "coarsen" not in n[1]), (0, hint))) if c.name in (x[0], y[0]) else c
        for c in found
    ]


def _has_words(series: pl.Series) -> bool:
    """Whether a value is not a number. Numbers from a CSV file are still texts here."""
    return series.cast(pl.Float64, strict=False).null_count() > series.null_count()


def _column(series: pl.Series, rows: int, l: int, label: str | None) -> Proposal:
    """The proposal for one column, from its name, its values, and its label in the file."""
    name = series.name
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        why = f"holds {series.dtype}, which cannot be grouped and could contain anything about a person"
        return Proposal(name, DIRECT, why, 0, 0)
    alone, distinct = counts_of(series)
    missing = series.null_count()
    texts = sample(series)
    found = recognize(name, texts, distinct, rows, label)
    role, reason, repeats = _role(series, found, rows, alone, distinct, texts)
    numeric = series.dtype.is_numeric() or (series.dtype == pl.String and not _has_words(series))
    weights = survey_weights(name, label) if numeric and role != DIRECT and distinct > 1 else None
    if weights:
        role, reason, repeats = DIRECT, f"{weights}, which can single people out", 0
    home = found is not None and found.what in HOMES
    warnings: list[str] = []
    if "free text" in reason:
        warnings.append("free text: read it before you publish any of it")
    if repeats:
        whom, setting = ("homes", "household") if home else ("persons", "person")
        warnings.append(
            f"{repeats:,} of its values occur in more than one row: if it identifies {whom}, "
            f"{setting} = {quoted(name)} makes k count {whom} and not rows"
        )
    if weights:
        warnings.append(
            f"population_weights = {quoted(name)} counts risks by it; if readers need it, round it until few rows have "
            "a value alone, and name it in insensitive"
        )
    if role == "quasi-identifier" and rows > 20 and distinct > rows / 2:
        share = 100 * distinct / rows
        warnings.append(f"{share:.0f} % of its values are different: coarsen it, or the release keeps little of it")
    if role == "sensitive" and rows:
        top = int(series.alias("text").value_counts(sort=True)["count"][0]) if distinct else 0
        if top * l > rows:
            warnings.append(
                f"{100 * top / rows:.1f} % of the rows have the same value, too many for l = {l}; "
                f"the largest possible l is {rows // top}"
            )
    period = None if role == DIRECT else period_of(series)
    if period:
        warnings.append(
            f"its name and {distinct:,} numbers within {period} suggest a cycle: for clusters in which the last value "
            f"is next to the first, use --cyclic {quoted(f'{name}={period}')}"
        )
    dates = decimal = None
    if series.dtype == pl.String:
        ranged = role != "sensitive"
        dates, date_warnings = local_dates(series, texts, ranged)
        decimal, more = decimal_mark(series, texts, ranged) if dates is None else (None, [])
        if role in NOTED:
            warnings += [*date_warnings, *more]
        elif role == "insensitive" and (dates or decimal):
            needed = f"{'dates' if dates else 'decimal'} = {{{quoted(name)} = {quoted(dates or str(decimal))}}}"
            warnings.append(f"as a quasi-identifier or sensitive, it needs {needed}, or its values count as texts")
    if role in ("quasi-identifier", "sensitive") and series.dtype == pl.String and distinct < rows:
        held, many = series.alias("text").value_counts()
        found_alike = alike(series.name, held.to_list(), many.to_list(), role == "sensitive")
        warnings += [sentence.split(": ", 1)[1] for sentence in found_alike]
    if missing and role == "sensitive":
        warnings.append(f"{several(missing, 'missing value')}, counted as one more sensitive value")
    elif missing and role != DIRECT:
        warnings.append(f"{several(missing, 'missing value')}, counted as one more value")
    sure = found is not None and found.role == DIRECT  # an unrecognized column can also be a number of employers
    person = sure and not home and repeats > 0 and not missing and distinct <= _PERSONS * rows
    odd = codes(series)
    if role == "quasi-identifier" and (rows_of_text := among_numbers(series)):
        odd.append(
            (rows_of_text, "a text, or a day that doesn't exist, among numbers or dates, so all values count as texts, "
             "and a range of them is a set that lists each; if they are amounts or dates, correct or empty these cells")
        )  # fmt: skip
    stars = _stars(series)
    if STARS[0] in stars and role in NOTED:
        what = "the text *, which releases show for a suppressed value; the policy names another text for that"
        odd.append((stars[STARS[0]], what))
    notes = (*odd, *((0, sentence) for sentence in warnings))
    reason += f" ({quoted(label)})" if label else ""
    return Proposal(
        name,
        role,
        reason,
        distinct,
        missing,
        notes,
        person=person,
        dates=dates,
        decimal=decimal,
        stars=frozenset(stars),
    )


def _stars(series: pl.Series) -> dict[str, int]:
    """The texts of a column that releases show for a suppressed value, with the number of rows of each."""
    if series.dtype != pl.String and not isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        return {}
    text = series.cast(pl.String)
    return dict(text.filter(text.is_in(list(STARS))).alias("text").value_counts().iter_rows())


def _role(
    series: pl.Series, found: Kind | None, rows: int, alone: int, distinct: int, texts: Sequence[str]
) -> tuple[str, str, int]:
    """Role, reason, and for an identifier the number of its values that occur in several rows.

    found  the kind of column that was recognized
    """
    free = series.dtype == pl.String and free_text(texts)
    single = f"{100 * alone / rows:.1f} % of the rows hold a value that no other row holds" if rows else ""
    if found is not None and found.role == DIRECT:
        numbers = found.what != REMARKS and distinct * 20 > rows
        return DIRECT, found.reason, distinct - alone if numbers and alone < distinct else 0
    if free:
        return DIRECT, "free text, which can name people, so it is removed", 0
    filled, different = _filled(series)
    listed = series.dtype == pl.String and rows > 20 and different > TEXTS * filled and moments(texts)
    if listed and not on_a_line(series.drop_nulls().unique()):
        why = (
            "its moments are texts in several forms or with zones, and each group would list them: write all of them "
            "as 2024-12-31 23:59, in one zone, or keep the date alone"
        )
        return DIRECT, why, 0
    if found is not None:
        return found.role, found.reason, 0
    if distinct <= 1:
        return "insensitive", "one value only", 0
    if rows > 20 and distinct > 0.95 * rows and not _measured(series, texts):
        return DIRECT, f"{single}, so it identifies rows", 0
    if rows > 20 and different > max(TEXTS * filled, FEW) and _of_letters(texts):
        share = f"{100 * different / filled:.0f} % of its values are different texts"
        return DIRECT, f"{share}: as a quasi-identifier, each group would list them, or hide them all", distinct - alone
    if alone > SHARE * rows:
        return "quasi-identifier", single, 0
    if _named(series.name):
        return "insensitive", "its name suggests an identifier, but it has too few values: you decide", 0
    return "insensitive", "its name and values suggest no other role: you decide", 0


def _measured(series: pl.Series, texts: Sequence[str]) -> bool:
    """Whether a column has numbers with digits after the decimal mark: amounts or measurements, not numbers of rows."""
    if series.dtype == pl.String:
        numbers = series.cast(pl.Float64, strict=False)
        if numbers.null_count() > series.null_count():
            return decimal_mark(series, texts)[0] is not None
        series = numbers
    if not series.dtype.is_numeric():
        return False
    wide = series.cast(pl.Float64)  # Polars doesn't round floats of 16 bits down
    return bool((wide != wide.floor()).any())


def _filled(series: pl.Series) -> tuple[int, int]:
    """The number of rows with a value other than a blank text, and the number of distinct ones."""
    held = series.drop_nulls()
    if held.dtype == pl.String:
        held = held.filter(held.str.strip_chars() != "")
    return len(held), held.n_unique()


def _of_letters(texts: Sequence[str]) -> bool:
    """Whether most of the texts that are not blank contain a letter, so that they are not numbers or, mostly, dates."""
    told = [text for text in texts if text.strip()]
    return sum(any(map(str.isalpha, text)) for text in told) > 0.8 * len(told)


def _named(name: str) -> bool:
    recognized = by_name(name)
    return recognized is not None and recognized.role == DIRECT


def quoted(text: str) -> str:
    """A text as a TOML string. JSON's escapes are valid in TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _diversity(sensitive: Sequence[Proposal], l: int, whose: str) -> Iterator[str]:
    """Models for the sensitive columns: l for those that can reach it, a largest share of one value for the others.

    The k of a share model is 1, so that only the policy's own k counts, or the --k that replaces it.
    """
    if all(c.share * l <= 1 for c in sensitive):
        if sensitive:
            yield f"l = {l}  # at most 1/{l} of a group{whose} share a sensitive value"
        return
    yield f"privacy = [  # some columns cannot have l = {l}, because one value is too common"
    for c in sensitive:
        if c.share * l <= 1:
            yield f'    {{model = "LDiversity", l = {l}, column = {quoted(c.name)}}},'
            continue
        most = proposed_share(c.share)
        yield f'    {{model = "AlphaKAnonymity", alpha = {most}, k = 1, column = {quoted(c.name)}}},'
        what = f"at most {100 * most:g} % of a group{whose} share a value"
        yield f"    #   {what}; nearer to {100 * c.share:.1f} %, the least possible, protects more and costs much more"
    yield "]"


def write_policy(file: str, look: FirstLook, *, k: int, l: int) -> str:
    """A commented TOML policy; columns without a role, or that single out rows together, are comments."""
    found, together, rows, _ = look
    worst = list(worst_sets(together))

    def block(title: str, role: str, comment: str) -> list[str]:
        lines = [f"# {comment}", f"{title} = ["]
        for c in found:
            if c.role == role:
                lines.append(f"    {quoted(c.name)},  # {several(c.distinct, 'value')}; {c.reason}")
                lines += [f"    #   warning: {w}" for w in c.warnings]
        return [*lines, "]", ""]

    who = person_of(found)
    lines = [
        f"# Policy for {file}: a proposal from column names and values. Check it: only you know what others may know.",
        "# The comments contain figures of the table: remove them before you pass this file on.",
        *(f"# {sentence}" for sentence in look.sampled),
        "",
        *block(
            "quasi_identifiers", "quasi-identifier", "Columns that others may know about a person; they are recoded."
        ),
        *block(
            "sensitive",
            "sensitive",
            "Columns that no one may learn about a person; published unchanged, protected by the models below.",
        ),
        *block("identifiers", "identifier", "Columns that are removed."),
        *block("insensitive", "insensitive", "Columns that are published unchanged."),
        "strict_roles = true  # a column in none of these lists is refused, so that none is published by accident",
        "",
        *(["# Columns that together identify rows, the worst sets of two, three, and more:"] if worst else []),
        *[f"#   {words(d, rows)}" for d in worst],
        *([""] if worst else []),
        *([] if who is None else [f"person = {quoted(who)}  # k counts persons, not rows"]),
        f"k = {k}  # at least {k} {'rows' if who is None else 'persons'} in every group",
        *_diversity([c for c in found if c.role == "sensitive"], l, "" if who is None else "'s persons"),
    ]
    way, why, star = *publishing(found), star_of(found)
    steps = ", ".join(f"{quoted(name)} = {json.dumps(step)}" for name, step in rounding(found).items())
    round_ends = "; range_step = {age = 5} rounds the ends of ranges" if way == "ranges" and not steps else ""
    other = "stars" if way == "ranges" else "ranges"
    lines += [
        f"# {why}",
        f'publish = "{way}"  # or "{other}", or "hierarchy", with [hierarchies] at the end of the file{round_ends}',
        *([f"range_step = {{{steps}}}  # {ROUNDED}; only with ranges"] if steps else []),
        *(
            [f"star = {quoted(star)}  # a suppressed value, because a column holds {STARS[0]}"]
            if star != STARS[0]
            else []
        ),
        *_open_ranges(found, way),
        'effort = "balanced"',
    ]
    keys = [c for c in found if c.role in NOTED]
    if dates := [f"{quoted(c.name)} = {quoted(c.dates)}" for c in keys if c.dates is not None]:
        lines.append(f"dates = {{{', '.join(dates)}}}  # %d is the day, %m the month, %Y the year")
    if marks := [f"{quoted(c.name)} = {quoted(c.decimal)}" for c in keys if c.decimal is not None]:
        lines.append(f"decimal = {{{', '.join(marks)}}}  # the decimal mark of numbers such as 1.234,5")
    lines.append("")
    return "\n".join(_CONTROL.sub(" ", line) for line in lines)  # in names in comments; in values they are escaped


def _open_ranges(found: Sequence[Proposal], way: str) -> list[str]:
    """A line about missing values in columns published as ranges, if there are any."""
    named = [quoted(c.name) for c in found if c.role == "quasi-identifier" and c.ordered and c.missing]
    if way != "ranges" or not named:
        return []
    text = f"a missing value of {', '.join(named)} opens the range of its group, as in [60, missing]"
    return [f'# missing = "apart"  # {text}; this groups rows with missing values among themselves']


_KEYWORDS = {
    "quasi-identifier": "quasi_identifiers",
    "sensitive": "sensitive",
    "identifier": "identifiers",
    "insensitive": "insensitive",
}


@dataclass(frozen=True, eq=False, repr=False)
class Roles(Shown):
    """The roles that ``shoal init`` proposes for a table.

    columns    a ``Proposal`` for each column, in the table's order
    dangerous  sets of columns that together single people out: the worst set of one, two, three, and more columns
    rows       number of rows;  table: the table that was read, as a Polars frame
    notes      remarks on the file: sheets of an Excel file that were not read
    """

    columns: tuple[Proposal, ...]
    dangerous: tuple[SingledColumns, ...]
    rows: int
    table: pl.DataFrame
    notes: tuple[Sentence, ...] = ()

    def _lines(self) -> list[str]:
        named = [f"{c.name}: {c.role}, {'; '.join((c.reason, *c.warnings))}" for c in self.columns]
        together = [f"together: {sentence}" for sentence in self.sentences]
        first = [f"Roles proposed for {self.rows:,} rows", *self.notes]
        return [*first, *named, *together, f"publish {': '.join(self.publish)}"]

    @property
    def person(self) -> str | None:
        """The column that identifies people with several rows; None if there is none."""
        return person_of(self.columns)

    @property
    def publish(self) -> tuple[str, str]:
        """The proposed kind of recoding, and why."""
        return publishing(self.columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The worst sets of two, three, and more columns, one sentence each."""
        return tuple(words(danger, self.rows) for danger in worst_sets(self.dangerous))

    def settings(self, *, k: int = 5, l: int = 2) -> dict[str, Any]:
        """The proposal as settings of a ``Policy``: roles, the way to publish, the person's column, and the models.

        Only k if no column is sensitive. Otherwise also l, if every sensitive column can reach it; if not, a largest
        share of one value (alpha_k, see ``proposed_share``).
        """
        named: dict[str, Any] = {key: [c.name for c in self.columns if c.role == r] for r, key in _KEYWORDS.items()}
        if self.person is not None:
            named["person"] = self.person
        shares = [c.share for c in self.columns if c.role == "sensitive"]
        models: dict[str, Any] = {"k": k}
        if shares and max(shares) * l <= 1:
            models["l"] = l
        elif shares:
            models["alpha_k"] = [proposed_share(max(shares)), k]
        keys = [c for c in self.columns if c.role in NOTED]
        dates = {c.name: c.dates for c in keys if c.dates is not None}
        decimal = {c.name: c.decimal for c in keys if c.decimal is not None}
        settings = {"dates": dates, "decimal": decimal, "range_step": rounding(self.columns)}
        noted = {name: held for name, held in settings.items() if held}
        star = star_of(self.columns)
        return {**named, **models, "publish": self.publish[0], **noted, **({"star": star} if star != STARS[0] else {})}

    def singled_out(self, columns: Sequence[str]) -> dict[str, int]:
        """How well columns identify rows in combination: "combinations", "smallest" class, and rows that are "alone".

        Raises PolicyError for a missing column. O(n) for few combinations, O(n log n) otherwise. The codes of a column
        are computed once.
        """
        require(self.table.columns, columns)
        if not columns or not self.rows:
            return {"combinations": min(1, self.rows), "smallest": self.rows, "alone": int(self.rows == 1)}
        held = [self._codes(name) for name in columns]
        key = mixed_radix_columns([codes for codes, _ in held], [many for _, many in held], self.rows)
        rows = count_keys(key)[2]
        return {"combinations": rows.size, "smallest": int(rows.min()), "alone": int((rows == 1).sum())}

    def counts(self, column: str) -> list[tuple[str | None, int]]:
        """Every value of a column as text, in order, with its number of rows. A missing value is None."""
        require(self.table.columns, [column])
        notation = next((c.notation for c in self.columns if c.name == column), None)
        coded = encode(self.table[column], notation)
        rows = np.bincount(coded.codes, minlength=coded.size)
        return list(zip(coded.texts(), rows.tolist(), strict=True))

    @cached_property
    def _coded(self) -> dict[str, tuple[np.ndarray, int]]:
        return {}

    def _codes(self, name: str) -> tuple[np.ndarray, int]:
        if name not in self._coded:
            codes = encode(self.table[name]).codes
            self._coded[name] = codes.astype(np.int64), int(codes.max(initial=0)) + 1
        return self._coded[name]


@suggesting
def roles(
    data: Any, *, l: int = 2, separator: str | None = None, encoding: str | None = None, table: str | None = None,
    query: str | None = None,
) -> Roles:  # fmt: skip
    """A proposed role for each column of a table, with its reason, as ``shoal init`` writes it into a policy.

    data       a path or a frame, as for ``anonymize``; table, query: the part of a DuckDB or SQLite file
    l          the l for which sensitive columns are tested
    separator, encoding  of a CSV; detected if None

    Raises InputError for a file that cannot be read or a table without columns. O(n) for each column, and for each
    small set of columns.

    Examples:
        >>> import polars as pl
        >>> found = roles(pl.DataFrame({"name": ["Ann", "Bo", "Cy"], "age": [34, 34, 61], "flu": ["y", "n", "n"]}))
        >>> [(c.name, c.role) for c in found.columns][:2], found.singled_out(["age"])["alone"]
        ([('name', 'identifier'), ('age', 'quasi-identifier')], 1)
    """
    if table is not None or query is not None:
        opened = open_table(data, scope=Scope(table=table, query=query))
    else:
        opened = open_table(data, separator=separator, encoding=encoding)
    frame = opened.polars(opened.columns)
    if not frame.width:
        what = f"{Path(data).name!r}" if isinstance(data, (str, Path)) else "the table"
        raise InputError(f"{what} has no column")
    found = looked_at(frame, l=l)
    return Roles(tuple(found.columns), tuple(found.together), found.rows, frame, tuple(unread_sheets(data, table)))
