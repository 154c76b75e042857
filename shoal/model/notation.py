"""How values, sets, and ranges are written and read back exactly.

::

    published = value | star | set | range
    set       = "{" element ", " element ... "}"       in the order of the values
    range     = "[" element ", " element "]"           lowest, highest
    element   = missing | bare text | JSON string

The bare word ``missing`` is a missing value.  A text is quoted as a JSON string if it would be ambiguous: if it is
    empty, is the word ``missing``, begins or ends with a blank, or contains one of ``, { } [ ] " \\ *`` or a control
character.  In a column of sets or ranges, a single value is published bare. It is quoted if it begins with a quotation
            mark, or begins and ends like a set or a range (``[70-80)`` doesn't).

Texts can also be bands of numbers, such as ``[70-80)``, ``65-69``, or ``85+``; ``in_order`` sorts them. They can be
dates or numbers in a notation: ``%d.%m.%Y`` for 31.12.2024, the decimal mark ``,`` for 1.234,5, and the limits ``<=18
>=90`` for top and bottom coding, where ``>=90`` stands for 90 and all numbers above.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise
from typing import Any

from shoal.errors import InputError, PolicyError

MISSING = "missing"
NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-][0-9]+)?$"
"""Texts that may be taken for numbers: no leading zeros, signs or blanks, which codes such as ZIPs have."""

_BARE = re.compile(r'[^\x00-\x1f\x7f,{}\[\]"\\*]*\Z')
_NEXT = re.compile(r", |\Z")


@dataclass(frozen=True)
class SetOf:
    """The values of a set as they are written; None is a missing value."""

    values: tuple[str | None, ...]


@dataclass(frozen=True)
class RangeOf:
    """Lowest and highest value of a range. None is a missing value, which is above all others."""

    low: str | None
    high: str | None


def element(text: str | None) -> str:
    """The text of one value inside a set or a range."""
    if text is None:
        return MISSING
    plain = text and text != MISSING and text == text.strip() and _BARE.match(text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def single(text: str | None) -> str | None:
    """The text of a single value in a column of sets or ranges; None stays None."""
    return json.dumps(text, ensure_ascii=False) if text and (text[0] == '"' or _closed(text)) else text


def _closed(text: str) -> bool:
    """Whether a text begins and ends like a set or a range."""
    return len(text) > 1 and text[0] + text[-1] in ("{}", "[]")


def set_text(values: Iterable[str | None]) -> str:
    """The text of a set of at least two values."""
    return "{" + ", ".join(element(v) for v in values) + "}"


def range_text(low: str | None, high: str | None) -> str:
    """The text of a range from one value to another."""
    return f"[{element(low)}, {element(high)}]"


def parse(text: str | None) -> str | SetOf | RangeOf | None:
    """The inverse: a value as text (None if it is missing), a SetOf, or a RangeOf. A star is read as a value.

    Raises InputError, without the text, for texts that this notation never writes. O(length).
    """
    if not text or not (text[0] == '"' or _closed(text)):
        return text
    if text[0] == '"':
        value, end = _quoted(text, 0)
        if end != len(text):
            raise InputError("a quoted value goes on after its closing quote")
        return value
    values = _elements(text[1:-1])
    if text[0] == "[" and len(values) == 2:
        return RangeOf(*values)
    if text[0] == "{" and len(values) > 1:
        return SetOf(tuple(values))
    raise InputError("a set or a range is not written as it should be")


def held_in(text: str) -> tuple[str | None, ...]:
    """The values in a text of a column of sets or ranges: the value, the ends of a range, or the members of a set."""
    try:
        found = parse(text)
    except InputError:
        return (text,)
    return (
        found.values
        if isinstance(found, SetOf)
        else (found.low, found.high)
        if isinstance(found, RangeOf)
        else (found,)
    )


def _quoted(text: str, start: int) -> tuple[str, int]:
    try:
        value, end = json.JSONDecoder(strict=True).raw_decode(text, start)
    except ValueError:
        raise InputError("a quoted value has no closing quote, or a wrong escape") from None
    return str(value), end


def _elements(inside: str) -> list[str | None]:
    values: list[str | None] = []
    at = 0
    words = [] if '"' in inside else inside.split(", ")
    if words and all(w == MISSING or element(w) == w for w in words):
        return [None if w == MISSING else w for w in words]
    while True:
        if inside.startswith('"', at):
            value, at = _quoted(inside, at)
            values.append(value)
        else:
            end = inside.find(", ", at)
            end = len(inside) if end < 0 else end
            word, at = inside[at:end], end
            if element(word) != word and word != MISSING:
                raise InputError("a value in a set or a range should be quoted")
            values.append(None if word == MISSING else word)
        step = _NEXT.match(inside, at)
        if step is None:
            raise InputError("a set or a range is not written as it should be")
        if step.end() == step.start():
            return values
        at = step.end()


_N = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_TWO = re.compile(rf"[\[(]?({_N}) ?(?:-|–|,|\.\.|to) ?({_N})[\])]?\Z")
_BELOW = re.compile(rf"<=? ?({_N})\Z")
_ABOVE = re.compile(rf"(?:>=? ?({_N})|({_N}) ?\+)\Z")
_ONE = re.compile(rf"({_N})\Z")


def ends(text: str) -> tuple[float, float] | None:
    """Lowest and highest number of a band; a single number is a band of one. None for other texts. O(length)."""
    if found := _TWO.match(text):
        low, high = float(found[1]), float(found[2])
        return (low, high) if low < high and (text[0] in "[(") == (text[-1] in ")]") else None
    if found := _BELOW.match(text):
        return -math.inf, float(found[1])
    if found := _ABOVE.match(text):
        return float(found[1] or found[2]), math.inf
    if found := _ONE.match(text):
        return float(found[1]), float(found[1])
    return None


def in_order(texts: Sequence[str]) -> list[int] | None:
    """The positions of distinct texts in the order of their bands; None unless all are bands that don't overlap.

    At least three texts are needed, one of them with two ends: order doesn't matter for fewer, and texts that are all
    single numbers are numbers. Bands may share an end, such as 10-20 and 20-30. O(v log v).
    """
    known: list[tuple[float, float]] = []
    for text in texts:
        found = ends(text)
        if found is None:
            return None
        known.append(found)
    if len(known) < 3 or not any(-math.inf < low < high < math.inf for low, high in known):
        return None
    order = sorted(range(len(known)), key=known.__getitem__)
    line = [known[i] for i in order]
    apart = all(a[0] < b[0] and a[1] <= b[0] for a, b in pairwise(line))
    return order if apart else None


_PARTS = {
    "%d": r"(?P<d>[0-9]{1,2})", "%m": r"(?P<m>[0-9]{1,2})", "%Y": r"(?P<Y>[0-9]{4})", "%y": r"(?P<y>[0-9]{2})",
}  # fmt: skip
_NOTATION = re.compile(r"(%[dmYy])([./ -]+)(%[dmYy])\2(%[dmYy])\Z")
_FIRST = 1969  # years of two digits are 1969 to 2068, as in POSIX and Python
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?\Z")


def in_one_form(text: str, lengths: Collection[int], marks: Collection[str]) -> bool:
    """Whether texts are dates with a time, such as 2024-12-31 23:59, all in one form, so that text order is time order.

    text     one of them
    lengths  the different lengths of all texts
    marks    the different characters between date and time
    """
    return len(lengths) == 1 and len(marks) == 1 and _MOMENT.match(text) is not None


NOTATIONS = tuple(
    mark.join(parts)
    for parts in (("%d", "%m", "%Y"), ("%m", "%d", "%Y"), ("%Y", "%m", "%d"), ("%d", "%m", "%y"), ("%m", "%d", "%y"))
    for mark in "./-"
    if (parts[0], mark) != ("%Y", "-")
)
"""The notations of dates that are looked for, without the one that needs no notation."""
MARKS = (",", ".")
"""The decimal marks of numbers; what is none separates thousands."""


def is_notation(text: str) -> bool:
    """Whether a text is a notation of dates: day, month, and year once each, with the same mark between them."""
    found = _NOTATION.match(text)
    return found is not None and {found[1], found[3], found[4]} in ({"%d", "%m", "%Y"}, {"%d", "%m", "%y"})


@cache
def _reads(notation: str) -> re.Pattern[str]:
    found = _NOTATION.match(notation)
    assert found is not None
    return re.compile(re.escape(found[2]).join(_PARTS[found[i]] for i in (1, 3, 4)))


def day_of(text: str, notation: str) -> int | None:
    """The days since 1970 of a date in a notation, with or without leading zeros; None for other texts."""
    found = _reads(notation).fullmatch(text)
    if found is None:
        return None
    held = found.groupdict()
    year = int(held["Y"]) if "Y" in held else _FIRST + (int(held["y"]) - _FIRST) % 100
    try:
        return datetime.date(year, int(held["m"]), int(held["d"])).toordinal() - 719163
    except ValueError:
        return None


def of_days(ruler: str | None) -> bool:
    """Whether a ruler consists of whole days: ISO dates, or dates in a notation."""
    return ruler is not None and (ruler == "date" or ruler[0] == "%")


def in_notation(day: datetime.date, notation: str, zeros: bool) -> str:
    """A date as text in a notation. zeros: whether days and months of one digit get a leading zero.

    Raises OverflowError for a year that two digits can't express.
    """
    if "%y" in notation and not _FIRST <= day.year < _FIRST + 100:
        raise OverflowError
    two = "02d" if zeros else "d"
    written = {"%d": format(day.day, two), "%m": format(day.month, two), "%Y": format(day.year, "04d")}
    written["%y"] = written["%Y"][2:]
    return re.sub("%[dmYy]", lambda part: written[part[0]], notation)


def notations_of(texts: Iterable[str]) -> list[str]:
    """The notations in which every text is a date; several if no day is above 12. O(texts)."""
    found = list(NOTATIONS)
    for text in texts:
        found = [notation for notation in found if day_of(text, notation) is not None]
        if not found:
            break
    return found


_THOUSANDS = {
    mark: rf"[{re.escape(other)} '\u2019\u00a0\u202f]" for mark, other in zip(MARKS, MARKS[::-1], strict=True)
}
_NUMERALS = {
    mark: re.compile(
        rf"(-?(?:0|[1-9][0-9]*|[1-9][0-9]{{0,2}}({apart})[0-9]{{3}}(?:\2[0-9]{{3}})*))(?:{re.escape(mark)}([0-9]+))?"
    )
    for mark, apart in _THOUSANDS.items()
}


def numeral(text: str, mark: str) -> str | None:
    """A number with a decimal mark, as Python writes it: ``1.234,50`` is ``1234.50``; None for other texts.

    Thousands may be separated by the other mark, a blank, or an apostrophe, always the same one. If ``mark`` has limits
    instead, ``>=90`` is 90.
    """
    if of_limits(mark):
        plain = text[2:] if text in mark.split() else text
        return plain if re.match(NUMBER, plain) else None
    found = _NUMERALS[mark].fullmatch(text)
    if found is None:
        return None
    whole = found[1].replace(found[2], "") if found[2] else found[1]
    return whole if found[3] is None else f"{whole}.{found[3]}"


def numerals(texts: Iterable[Any], mark: str) -> list[str | None]:
    """The numbers of a column with a decimal mark, as Python writes them; None for other texts and other values.

    Blanks around a text don't count. O(n), and each distinct text is read once.
    """
    given = list(texts)
    read = {text: numeral(text.strip(), mark) for text in {t for t in given if isinstance(t, str)}}
    return [read[t] if isinstance(t, str) else None for t in given]


def limits_notation(bottom: float | None, top: float | None) -> str:
    """The notation of a column with limits: the texts for all values beyond each limit, such as ``<=18 >=90``."""
    ends_ = (("<=", bottom), (">=", top))
    return " ".join(f"{mark}{Decimal(repr(limit)):f}" for mark, limit in ends_ if limit is not None)


def of_limits(ruler: str | None) -> bool:
    """Whether a ruler is that of numbers with limits."""
    return ruler is not None and ruler[0] in "<>"


def limits_of(notation: str) -> tuple[float, float]:
    """The limits in a notation; infinite if there is none."""
    found = {text[0]: float(text[2:]) for text in notation.split()}
    return found.get("<", -math.inf), found.get(">", math.inf)


def within(number: float, notation: str) -> tuple[float, str | None]:
    """The position of a number in a column with limits, and the text that replaces it if it reaches a limit."""
    for text in notation.split():
        limit = float(text[2:])
        if number <= limit if text[0] == "<" else number >= limit:
            return limit, text
    return number, None


def marks_of(texts: Sequence[str]) -> list[str]:
    """The decimal marks with which all texts are numbers; of two that read them alike, the first. O(texts)."""
    read = {mark: [numeral(text, mark) for text in texts] for mark in MARKS}
    found = [mark for mark, numbers in read.items() if None not in numbers]
    return found[:1] if len(found) > 1 and read[found[0]] == read[found[1]] else found


def writer_of(texts: Sequence[str], notation: str) -> Callable[[str], str]:
    """A function that converts a date such as 2024-12-31, or a number such as 1234.5, to the form of a column's texts.

    Dates get leading zeros if all texts have them. Numbers get the texts' separator of thousands, and the number of
    decimals if it is the same in all texts. Raises OverflowError for a date that the notation can't express.
    """
    if of_limits(notation):
        return str
    if notation in MARKS:
        return _writing(texts, notation)
    full = len(in_notation(datetime.date(1970, 1, 1), notation, zeros=True))
    zeros = all(len(text) == full for text in texts)
    return lambda day: in_notation(datetime.date.fromisoformat(day), notation, zeros)


def _writing(texts: Iterable[str], mark: str) -> Callable[[str], str]:
    found = [read for text in texts if (read := _NUMERALS[mark].fullmatch(text)) is not None]
    each = {len(read[3] or "") for read in found}
    decimals = each.pop() if len(each) == 1 else 0
    apart = next((read[2] for read in found if read[2]), "")

    def written(plain: str) -> str:
        whole, _, part = format(Decimal(plain), "f").partition(".")
        sign, part = "-" if whole[0] == "-" else "", part.ljust(decimals, "0")
        whole = sign + f"{int(whole.lstrip('-')):,}".replace(",", apart)
        return f"{whole}{mark}{part}" if part else whole

    return written


def reader_of(notation: str | None) -> Callable[[str], str | None] | None:
    """A function that converts a column's dates to 2024-12-31 and its numbers to 1234.5; None if they have this
    form."""
    if notation is None:
        return None
    if notation in MARKS or of_limits(notation):
        return partial(numeral, mark=notation)

    def as_day(text: str) -> str | None:
        days = day_of(text, notation)
        return None if days is None else str(datetime.date.fromordinal(days + 719163))

    return as_day


def named_notations(asked: Mapping[str, Any]) -> dict[str, str]:
    """Column -> notation of its dates or numbers, from the settings of a policy or a certificate."""
    bottom, top = asked.get("bottom", {}), asked.get("top", {})
    limits = {name: limits_notation(bottom.get(name), top.get(name)) for name in (*bottom, *top)}
    return {**asked.get("dates", {}), **asked.get("decimal", {}), **limits}


def of_numbers(ruler: str | None) -> bool:
    """Whether a ruler is that of numbers: plain, with a decimal mark, or with limits."""
    return ruler == "number" or ruler in MARKS or of_limits(ruler)


def refuse_notations(dates: Mapping[str, Any], decimal: Mapping[str, Any]) -> None:
    """PolicyError for an invalid notation of dates or decimal mark, and for a column that has both."""
    for name, notation in dates.items():
        if not isinstance(notation, str) or not is_notation(notation):
            raise PolicyError(
                f"⟨dates[{name!r}] = {notation!r}⟩: write %d, %m and %Y once each, with a mark between them, as in "
                "%d.%m.%Y; %y is a year of two digits"
            )
    for name, mark in decimal.items():
        if mark not in MARKS:
            raise PolicyError(
                f"⟨decimal[{name!r}] = {mark!r}⟩: a decimal mark is ',' or '.'; the other one separates thousands"
            )
        if name in dates:
            raise PolicyError(f"column {name!r} is in both ⟨dates⟩ and ⟨decimal⟩; take it out of one of them")
