"""A first look at a table: a proposed role for every column, with the reason and warnings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from shoal.engines.carried import SHARE, counts_of, sample
from shoal.engines.codes import Coded, encode
from shoal.engines.dangerous import Danger, dangerous, words
from shoal.engines.files import read_table
from shoal.engines.going_around import period_of
from shoal.engines.oddities import alike, codes
from shoal.engines.open import open_table
from shoal.engines.recognize import DIRECT, FEW, by_name, named_words, recognize

_PERSONS = 0.9  # different values per row from which on a column of names may as well hold a few namesakes


@dataclass(frozen=True)
class Proposal:
    """One column: role "identifier", "quasi-identifier", "sensitive" or "insensitive", and why.

    measured  a quasi-identifier of numbers or dates in an order of their own, more than a list of codes would have
    person    an identifier whose values stand in many rows, each row having one: k should count them
    """

    name: str
    role: str
    reason: str
    distinct: int
    missing: int
    warnings: tuple[str, ...] = ()
    measured: bool = False
    person: bool = False


def propose(
    path: str | Path, *, l: int = 2, separator: str | None = None, encoding: str | None = None
) -> list[Proposal]:
    """Proposals for every column of a file, in the file's order.  O(n) per column."""
    return looked_at(path, l=l, separator=separator, encoding=encoding)[0]


def looked_at(
    path: str | Path, *, l: int = 2, separator: str | None = None, encoding: str | None = None
) -> tuple[list[Proposal], list[Danger], int]:
    """Proposals, what columns that stay single out together, and the number of rows."""
    if Path(path).is_dir():
        parts = open_table(path, separator=separator, encoding=encoding)
        frame = parts.polars(parts.columns)
    else:
        frame = read_table(path, separator=separator, encoding=encoding)
    found = _as_tiles([_column(frame[name], frame.height, l) for name in frame.columns], frame)
    stay = [c.name for c in found if c.role != DIRECT and c.distinct > 1]
    coded = {name: encode(frame[name]) for name in stay}
    found = [_with_order(c, coded[c.name]) if c.name in coded else c for c in found]
    return found, dangerous([coded[name].codes for name in stay], stay), frame.height


def _with_order(column: Proposal, coded: Coded) -> Proposal:
    """Whether a quasi-identifier's values lie on a line; a few whole numbers may as well be codes, which is said."""
    if column.role != "quasi-identifier" or column.distinct < 3 or coded.positions() is None:
        return column
    if column.distinct > FEW and not named_words(column.name) & _CODES:
        return replace(column, measured=True)
    note = f"as ranges its {column.distinct:,} numbers stand in their order; are they codes, put words in their place"
    return replace(column, warnings=(*column.warnings, note))


_CODES = {"id", "ids", "code", "codes", "type", "class", "category"}  # numbers of such columns stand for something else


def publishing(found: Sequence[Proposal]) -> tuple[str, str]:
    """The proposed way to publish and why: what loses least for what the quasi-identifiers are."""
    measured = [quoted(c.name) for c in found if c.measured]
    if not measured:
        why = "no quasi-identifier holds numbers or dates alone: values stay words that can be counted, or are hidden"
        return "stars", why
    named = ", ".join(measured[:3]) + (f" and {len(measured) - 3} more" if len(measured) > 3 else "")
    are = "is a number or a date" if len(measured) == 1 else "are numbers or dates"
    return "ranges", f"{named} {are}: a range such as [30, 34] keeps what a star would hide; other columns show sets"


_X, _Y = {"lon", "lng", "long", "longitude"}, {"lat", "latitude"}


def _as_tiles(found: list[Proposal], frame: pl.DataFrame) -> list[Proposal]:
    """Numbers that are longitude and latitude are better tiles than stars: their warnings say how to ask for that."""
    names = [c.name for c in found if c.role == "quasi-identifier"]
    x, y = ([n for n in names if named_words(n) & words] for words in (_X, _Y))
    if len(x) != 1 or len(y) != 1 or any(_has_words(frame[n]) for n in (x[0], y[0])):
        return found
    hint = (
        f"as tiles {x[0]} and {y[0]} lose less than as stars: name them in coordinates = [{quoted(x[0])}, "
        f'{quoted(y[0])}] instead of here, with publish = "hierarchy"'
    )
    return [
        replace(c, warnings=(*(w for w in c.warnings if "coarsen" not in w), hint)) if c.name in (x[0], y[0]) else c
        for c in found
    ]


def _has_words(series: pl.Series) -> bool:
    """Whether a value is no number; a CSV's are texts here."""
    return series.cast(pl.Float64, strict=False).null_count() > series.null_count()


def _column(series: pl.Series, rows: int, l: int) -> Proposal:
    name = series.name
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        why = f"holds {series.dtype}, which cannot be grouped; it could hold anything about a person"
        return Proposal(name, DIRECT, why, 0, 0)
    alone, distinct = counts_of(series)
    missing = series.null_count()
    texts = sample(series)
    role, reason, repeats = _role(series, rows, alone, distinct, texts)
    warnings: list[str] = []
    if "free text" in reason:
        warnings.append("free text; read it before you publish any of it")
    if repeats:
        warnings.append(
            f"{repeats:,} of its values stand in more than one row: if it names a person, people have several rows and "
            f"k counts rows, not people, unless the policy says person = {quoted(name)}"
        )
    if role == "quasi-identifier" and rows > 20 and distinct > rows / 2:
        share = 100 * distinct / rows
        warnings.append(f"{share:.0f} % of its values are different; coarsen it, or expect little of it to be left")
    if role == "sensitive" and rows:
        top = int(series.value_counts(sort=True)["count"][0]) if distinct else 0
        if top * l > rows:
            warnings.append(
                f"one value is {100 * top / rows:.1f} % of the rows, too frequent for l = {l}; "
                f"the largest l possible is {rows // top}"
            )
    period = None if role == DIRECT else period_of(series)
    if period:
        warnings.append(
            f"goes around, by name and {distinct:,} different numbers within {period}: clusters where its last value "
            f"is next to its first take --cyclic {quoted(f'{name}={period}')}"
        )
    warnings += codes(series)
    if role in ("quasi-identifier", "sensitive") and series.dtype == pl.String and distinct < rows:
        counts = series.value_counts()
        found_alike = alike(series.name, counts[series.name].to_list(), counts["count"].to_list(), role == "sensitive")
        warnings += [sentence.split(": ", 1)[1] for sentence in found_alike]
    if missing and role == "sensitive":
        warnings.append(f"{missing:,} missing values; they count as a sensitive value of their own")
    elif missing:
        warnings.append(f"{missing:,} missing values; each counts as a value of its own")
    person = repeats > 0 and not missing and distinct <= _PERSONS * rows
    return Proposal(name, role, reason, distinct, missing, tuple(warnings), person=person)


def _role(series: pl.Series, rows: int, alone: int, distinct: int, texts: Sequence[str]) -> tuple[str, str, int]:
    """Role, reason, and for an identifier how many of its values stand in several rows."""
    free = bool(texts) and series.dtype == pl.String and sum(map(len, texts)) > 40 * len(texts) and distinct * 2 > rows
    found = recognize(series.name, texts, distinct, rows)
    single = f"{100 * alone / rows:.1f} % of the rows hold a value that no other row holds" if rows else ""
    if found is not None and found.role == DIRECT:
        return DIRECT, found.reason, distinct - alone if alone < distinct and distinct * 20 > rows else 0
    if free:
        return DIRECT, "free text: it can name people, so it leaves the table", 0
    if found is not None:
        return found.role, found.reason, 0
    if distinct <= 1:
        return "insensitive", "one value only", 0
    if rows > 20 and distinct > 0.95 * rows:
        return DIRECT, f"{single}: it points at one row each", 0
    if alone > SHARE * rows:
        return "quasi-identifier", single, 0
    few = "; its name is that of a number of people, of which it has too few" if _named(series.name) else ""
    return "insensitive", f"nothing in its name or values says otherwise; decide yourself{few}", 0


def _named(name: str) -> bool:
    said = by_name(name)
    return said is not None and said.role == DIRECT


def quoted(text: str) -> str:
    """A text as TOML has it; JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_policy(
    file: str, found: Sequence[Proposal], *, k: int, l: int, together: Sequence[Danger] = (), rows: int = 0
) -> str:
    """A commented TOML policy; columns without a role stand in a comment, as does what columns single out together."""

    def block(title: str, role: str, comment: str) -> list[str]:
        lines = [f"# {comment}", f"{title} = ["]
        for c in found:
            if c.role == role:
                lines.append(f"    {quoted(c.name)},  # {c.distinct:,} values; {c.reason}")
                lines += [f"    #   warning: {w}" for w in c.warnings]
        return [*lines, "]", ""]

    who = max((c for c in found if c.person), key=lambda c: c.distinct, default=None)
    sensitive = [c for c in found if c.role == "sensitive"]
    blocked = any("too frequent" in w for c in sensitive for w in c.warnings)
    lines = [
        f"# Policy for {file}: a proposal from names and numbers of values. Read it: you know what others may know.",
        "",
        *block(
            "quasi_identifiers", "quasi-identifier", "Columns that others may know about a person; they are recoded."
        ),
        *block("sensitive", "sensitive", "Columns that nobody may learn about a person; published as they are."),
        *block("identifiers", "identifier", "Columns that leave the table."),
        "# Carried along unchanged, row by row; insensitive = [...] carries one that would be refused:",
        *[f"#   {quoted(c.name)}  {c.distinct:,} values; {c.reason}" for c in found if c.role == "insensitive"],
        "",
        *(["# What columns single out together, the worst sets of one, two, three and more:"] if together else []),
        *[f"#   {words(d, rows)}".replace("\n", " ") for d in together],
        *([""] if together else []),
        *([] if who is None else [f"person = {quoted(who.name)}  # k counts its different values, not rows"]),
        f"k = {k}  # at least {k} rows in every group",
    ]
    if sensitive and who is not None:
        off = "# " if any(c.distinct < l for c in sensitive) else ""
        more = f"l = {l}: no more than 1/{l} of its persons share one"
        lines.append(f"{off}distinct_l = {l}  # at least {l} sensitive values in a group; {more}")
    elif sensitive:
        off = "# " if blocked else ""
        why = "; a sensitive column above is too unequal for it" if blocked else ""
        lines.append(f"{off}l = {l}  # at most 1/{l} of a group share a sensitive value{why}")
    way, why = publishing(found)
    round_ends = "; range_step = {age = 5} rounds the ends of ranges" if way == "ranges" else ""
    other = "stars" if way == "ranges" else "ranges"
    lines += [
        f"# {why}".replace("\n", " "),
        f'publish = "{way}"  # or "{other}", or "hierarchy" with [hierarchies]{round_ends}', 'effort = "balanced"', "",
    ]  # fmt: skip
    return "\n".join(lines)
