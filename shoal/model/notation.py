"""How sets and ranges of values are written and read back exactly, and which values a published cell may hide.

::

    published = value | star | set | range
    set       = "{" element ", " element ... "}"       in the order of the values
    range     = "[" element ", " element "]"           lowest, highest
    element   = missing | bare text | JSON string

The bare word ``missing`` is a missing value.  A text is quoted as a JSON string where it could be read otherwise: when
it is empty, is the word ``missing``, has a blank at either end, or holds one of ``, { } [ ] " \\ *`` or a control
character.  In a column of sets or ranges a single value is published bare, but quoted where it begins like a quoted
text, or begins and ends like a set or a range (``[70-80)`` does not).

``Members`` are the values that a published cell may hide, read from its text and the way it was recoded.  Texts can
also be bands of numbers, such as ``[70-80)``, ``65-69``, or ``85+``; ``in_order`` gives the order in which they lie.
They can be dates or numbers in a notation: ``%d.%m.%Y`` reads 31.12.2024, and the decimal mark ``,`` reads 1.234,5.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.settings import RECODINGS

MISSING = "missing"
NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-][0-9]+)?$"
"""Texts that may be taken for numbers: no leading zeros, signs or blanks, which codes such as ZIPs have."""

_BARE = re.compile(r'[^\x00-\x1f\x7f,{}\[\]"\\*]*\Z')
_NEXT = re.compile(r", |\Z")


@dataclass(frozen=True)
class SetOf:
    """The values a set stands for, None for a missing one, as written."""

    values: tuple[str | None, ...]


@dataclass(frozen=True)
class RangeOf:
    """Lowest and highest value of a range; None is a missing value, which lies beyond all others."""

    low: str | None
    high: str | None


def element(text: str | None) -> str:
    """One value inside a set or a range."""
    if text is None:
        return MISSING
    plain = text and text != MISSING and text == text.strip() and _BARE.match(text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def single(text: str | None) -> str | None:
    """One value by itself in a column of sets or ranges; None stays None."""
    return json.dumps(text, ensure_ascii=False) if text and (text[0] == '"' or _closed(text)) else text


def _closed(text: str) -> bool:
    """Whether a text begins and ends as a set or a range does."""
    return len(text) > 1 and text[0] + text[-1] in ("{}", "[]")


def set_text(values: Iterable[str | None]) -> str:
    """A set of two or more values."""
    return "{" + ", ".join(element(v) for v in values) + "}"


def range_text(low: str | None, high: str | None) -> str:
    """A range from one value to another."""
    return f"[{element(low)}, {element(high)}]"


def parse(text: str | None) -> str | SetOf | RangeOf | None:
    """The inverse: a value as text (None where missing), a SetOf or a RangeOf.  A star is a value here.

    Raises InputError, without the text, for what this notation never writes.  O(length).
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
    """Lowest and highest number of one band, a number alone being a band of one; None for another text.  O(length)."""
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
    """The positions of different texts in the order of their bands; None unless all are bands that do not overlap.

    At least three are needed, and one of two ends: fewer have no order that matters, and numbers alone are numbers.
    Bands may share an end, as 10-20 and 20-30 do.  O(v log v).
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
_FIRST = 1969  # the years of two digits are those from this one on, as POSIX and Python have it
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
    """Whether a text says how dates are written: day, month and year once each, the same mark between them."""
    found = _NOTATION.match(text)
    return found is not None and {found[1], found[3], found[4]} in ({"%d", "%m", "%Y"}, {"%d", "%m", "%y"})


@cache
def _reads(notation: str) -> re.Pattern[str]:
    found = _NOTATION.match(notation)
    assert found is not None
    return re.compile(re.escape(found[2]).join(_PARTS[found[i]] for i in (1, 3, 4)))


def day_of(text: str, notation: str) -> int | None:
    """The days since 1970 of a date that is written so, with or without zeros in front; None for another text."""
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
    """Whether a ruler is of whole days: dates as 2024-12-31, or in a notation."""
    return ruler is not None and (ruler == "date" or ruler[0] == "%")


def in_notation(day: datetime.date, notation: str, zeros: bool) -> str:
    """A date as a notation writes it; zeros: in front of days and months of one digit.

    Raises OverflowError for a year that two digits do not tell.
    """
    if "%y" in notation and not _FIRST <= day.year < _FIRST + 100:
        raise OverflowError
    two = "02d" if zeros else "d"
    written = {"%d": format(day.day, two), "%m": format(day.month, two), "%Y": format(day.year, "04d")}
    written["%y"] = written["%Y"][2:]
    return re.sub("%[dmYy]", lambda part: written[part[0]], notation)


def notations_of(texts: Iterable[str]) -> list[str]:
    """The notations under which every text is a date; several where no day is above 12.  O(texts)."""
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
    """A number with a decimal mark, as Python writes it: ``1.234,50`` is ``1234.50``; None for another text.

    Thousands may be separated by the other mark, a blank or an apostrophe, the same one throughout.
    """
    found = _NUMERALS[mark].fullmatch(text)
    if found is None:
        return None
    whole = found[1].replace(found[2], "") if found[2] else found[1]
    return whole if found[3] is None else f"{whole}.{found[3]}"


def marks_of(texts: Sequence[str]) -> list[str]:
    """The decimal marks under which all texts are numbers; one of two that read the same numbers.  O(texts)."""
    read = {mark: [numeral(text, mark) for text in texts] for mark in MARKS}
    found = [mark for mark, numbers in read.items() if None not in numbers]
    return found[:1] if len(found) > 1 and read[found[0]] == read[found[1]] else found


def writer_of(texts: Sequence[str], notation: str) -> Callable[[str], str]:
    """A function that writes a date given as 2024-12-31, or a number given as 1234.5, as a column's texts are written.

    Of dates, zeros stand in front where all texts have them. Of numbers, it takes over what separates thousands, and
    the number of decimals where all texts have as many. OverflowError for a date that the notation cannot write.
    """
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
    """A function that writes a column's dates as 2024-12-31 and its numbers as 1234.5; None where they are."""
    if notation is None:
        return None
    if notation in MARKS:
        return partial(numeral, mark=notation)

    def as_day(text: str) -> str | None:
        days = day_of(text, notation)
        return None if days is None else str(datetime.date.fromordinal(days + 719163))

    return as_day


def named_notations(asked: Mapping[str, Any]) -> dict[str, str]:
    """Column -> the notation of its dates or numbers, of what a certificate says was asked."""
    return {**asked.get("dates", {}), **asked.get("decimal", {})}


def of_numbers(ruler: str | None) -> bool:
    """Whether a ruler is of numbers: plain ones, or with a decimal mark."""
    return ruler == "number" or ruler in MARKS


_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?\Z")
_NUMBER = re.compile(NUMBER)
_SPAN = re.compile(r"\[(-?[\d.e+-]+), (-?[\d.e+-]+)\)\Z|(-?[\d.e+]+) ?(?:-|\.\.) ?(-?[\d.e+]+)\Z")
_END = re.compile(r"(<|>=)(-?[\d.e+-]+)\Z")


@dataclass(frozen=True)
class Members:
    """The values a published cell may stand for.  ``value in members`` asks for one of them.

    named       values by name, as text; None is a missing value
    low, high   ends of a range of numbers, or of days since 1970; both belong to it unless ``open``, then high does not
    ruler       "number", "date", "moment", "band", or a notation: what low and high are; None where there is
                no range
    pattern     a regular expression that every value matches entirely
    everything  a star: any value at all, those that stand nowhere in the release included
    """

    named: frozenset[str | None] = frozenset()
    low: float | None = None
    high: float | None = None
    open: bool = False
    ruler: str | None = None
    pattern: str | None = None
    everything: bool = False

    def __contains__(self, value: Any) -> bool:
        text = as_text(value)
        if self.everything or text in self.named:
            return True
        if text is None:
            return False
        if self.pattern is not None and re.fullmatch(self.pattern, text, re.DOTALL):
            return True
        at = place(text, self.ruler) if self.low is not None else None
        return at is not None and bool(self._spans(np.array([at]))[0])

    def _spans(self, at: np.ndarray) -> np.ndarray:
        if self.low is None or self.high is None:
            return np.zeros(at.shape, bool)
        return (at >= self.low) & ((at < self.high) if self.open else (at <= self.high))

    def held(self, known: Sequence[str | None], at: np.ndarray) -> np.ndarray:
        """bool[known]: which of some values belong.  at: float64[known], their places on the ruler, NaN for none."""
        if self.everything:
            return np.ones(len(known), bool)
        out = self._spans(at)
        if self.named:
            out |= np.fromiter((v in self.named for v in known), bool, len(known))
        if self.pattern is not None:
            rule = re.compile(self.pattern, re.DOTALL)
            out |= np.fromiter((v is not None and rule.fullmatch(v) is not None for v in known), bool, len(known))
        return out


def as_text(value: Any) -> str | None:
    """A value as a table writes it; None where it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)


def place(text: str, ruler: str | None) -> float | None:
    """Where a text lies: itself as a number, as days since 1970, a band at its low end; None where it is none."""
    try:
        if ruler == "band":
            found = ends(text)
            return None if found is None else found[0]
        if ruler == "number":
            return float(text)
        if ruler is not None and ruler[0] == "%":
            return day_of(text, ruler)
        if ruler in MARKS:
            plain = numeral(text, ruler)
            return None if plain is None else float(plain)
        if ruler in ("date", "moment") and _ISO.match(text):
            moment = datetime.datetime.fromisoformat(text)
            return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    except ValueError:
        pass
    return None


def places(texts: Sequence[str | None], ruler: str | None) -> np.ndarray:
    """float64[texts], NaN where a text has no place."""
    found = [None if t is None else place(t, ruler) for t in texts]
    return np.array([math.nan if x is None else x for x in found], dtype=np.float64)


def ruler_of(texts: Iterable[str | None]) -> str | None:
    """What all texts are: numbers, dates or moments; None where there is none or they are of several kinds."""
    present = [t for t in texts if t is not None]
    if not present:
        return None
    if all(_NUMBER.match(t) for t in present):
        return "number"
    if all(_ISO.match(t) for t in present):
        return "date" if all(len(t) == 10 for t in present) else "moment"
    return None


def meanings(
    texts: Sequence[str | None],
    publish: str,
    hierarchy: Any = None,
    star: str = "*",
    starred: bool = False,
    notation: str | None = None,
) -> list[Members]:
    """What the distinct texts of a published column stand for.

    publish    a word of ``shoal.model.settings``
    hierarchy  what ``Hierarchy.of`` takes, or the name of a generated one
    starred    whether a missing cell may be a star, as in columns of numbers
    notation   of the column's dates or numbers, where it has one

    A text that its column's recoding does not explain stands for everything: never less than the truth.
    O(texts + size of the hierarchy).
    """
    missing = Members(everything=True) if starred else Members(named=frozenset([None]))
    shown = [t for t in texts if t is not None and t != star]
    if publish == "hierarchy" and hierarchy is not None:
        found = meanings_of_classes(shown, hierarchy, notation)
    elif RECODINGS[publish].file:
        read = RECODINGS[publish].load().meanings
        found = read(shown) if notation is None else read(shown, notation)
    else:
        found = {t: Members(named=frozenset([t])) for t in shown}
    known = {**found, star: Members(everything=True)}
    return [missing if t is None else known.get(t, known[star]) for t in texts]


def of_ranges(shown: Sequence[str], notation: str | None = None) -> dict[str, Members]:
    """Texts of a column of ranges or sets; notation: of the column's dates or numbers, where it has one."""
    parsed: dict[str, Any] = {}
    for text in shown:
        try:
            parsed[text] = parse(text)
        except InputError:
            parsed[text] = ...
    ends = {
        e
        for p in parsed.values()
        for e in ((p.low, p.high) if isinstance(p, RangeOf) else [p] if isinstance(p, str) else [])
    }
    ruler = notation or ruler_of(ends)
    members = [p.values if isinstance(p, SetOf) else () for p in parsed.values()]
    known = {e for e in ends.union(*members) if e is not None}
    if ruler is None and in_order([*known]) is not None:
        ruler = "band"
    at = {e: None if e is None else place(e, ruler) for e in ends}
    out = {}
    for text, p in parsed.items():
        if isinstance(p, SetOf):
            out[text] = Members(named=frozenset(p.values))
        elif isinstance(p, RangeOf):
            found = _between(p, at, ruler)
            inside = frozenset(e for e in known if e in found) if ruler == "band" else frozenset()
            out[text] = replace(found, named=found.named | inside)
        else:
            out[text] = Members(everything=True) if p is ... else Members(named=frozenset([p]))
    return out


def _between(found: RangeOf, at: Mapping[str | None, float | None], ruler: str | None) -> Members:
    """A missing value lies beyond all others; an order that no ruler knows may hold anything between its ends."""
    low, high = at[found.low], math.inf if found.high is None else at[found.high]
    if low is None or high is None:
        return Members(everything=True)
    none = frozenset([None]) if found.high is None else frozenset()
    return Members(named=none | {found.low, found.high}, low=low, high=high, ruler=ruler)


def meanings_of_classes(shown: Sequence[str], source: Any, notation: str | None = None) -> dict[str, Members]:
    """Labels of a hierarchy; of a generated one only intervals of numbers can be told from their names.

    notation  of the column's dates or numbers; periods are written 2024-03 and intervals [2.5, 5) in any
    """
    if isinstance(source, str) and source in ("labels", "tiles"):
        return {t: Members(everything=True) for t in shown}
    rule = None if isinstance(source, str) and source == "intervals" else Hierarchy.of(source)
    if rule is not None and rule.kind == "rows":
        below: dict[str, set[str | None]] = {}
        for row in rule.rows:
            for label in set(row):
                below.setdefault(label, set()).add(row[0])
        return {t: Members(named=frozenset(below[t])) if t in below else Members(everything=True) for t in shown}
    if rule is not None and rule.kind == REGIONS:
        read = {t: parse(t) for t in shown}
        return {t: Members(named=frozenset(p.values if isinstance(p, SetOf) else [t])) for t, p in read.items()}
    found = {t: _label(t, rule) for t in shown}
    return found if notation is None else {t: _noted(t, m, notation) for t, m in found.items()}


def _noted(text: str, found: Members, notation: str) -> Members:
    """What a label or a value stands for in a column whose values are written in a notation."""
    at = place(text, notation)
    if at is not None:
        return Members(named=frozenset([text]), low=at, high=at, ruler=notation)
    if ends := from_to(text, notation):
        return Members(low=ends[0], high=ends[1], ruler=notation)
    alike = of_days(notation) if found.ruler == "moment" else of_numbers(notation) if found.ruler == "number" else False
    return replace(found, ruler=notation, pattern=None) if alike else found


def from_to(text: str, ruler: str) -> tuple[float, float] | None:
    """The ends of ``2024-01-01 .. 2024-05-31``; None for another text."""
    low, dots, high = text.partition(" .. ")
    first, last = place(low, ruler), place(high, ruler)
    return (first, last) if dots and first is not None and last is not None else None


def _label(text: str, rule: Hierarchy | None) -> Members:
    if rule is not None and rule.kind == "prefixes":
        return _prefix(text, rule)
    if rule is not None and rule.kind == "dates":
        return _period(text)
    if rule is not None and rule.kind == "stars":
        return Members(named=frozenset([text]))
    if ends := from_to(text, "moment"):
        return Members(low=ends[0], high=ends[1], ruler="moment" if len(text) > 24 else "date")
    return span(text) or Members(everything=True)


def span(text: str) -> Members | None:
    """``20``, ``20-24``, ``18 .. 25``, ``[20, 25)``, ``<18`` and ``>=65``; None for another text."""
    try:
        if found := _SPAN.match(text):
            half = found[1] is not None
            low, high = float(found[1] or found[3]), float(found[2] or found[4])
            return Members(low=low, high=high, open=half, ruler="number")
        if found := _END.match(text):
            at, below = float(found[2]), found[1] == "<"
            low, high = (-math.inf, at) if below else (at, math.inf)
            return Members(low=low, high=high, open=below, ruler="number")
        at = float(text)
    except ValueError:
        return None
    return Members(named=frozenset([text]), low=at, high=at, ruler="number")


def _prefix(text: str, rule: Hierarchy) -> Members:
    """Every way in which the end may be filled: a value may itself end in the filling."""
    if not rule.fill:
        return Members(pattern=re.escape(text) + ".*")
    left = text
    while left.endswith(rule.fill):
        left = left[: -len(rule.fill)]
    more = (len(text) - len(left)) // len(rule.fill)
    return Members(named=frozenset([text]), pattern=re.escape(left) + f".{{{more}}}")


def _period(text: str) -> Members:
    """The days of a period; a date known less exactly than the period stands for itself too."""
    bounds = _days(text)
    if bounds is None:
        return Members(named=frozenset([text]))
    low, high = (place(d, "date") for d in bounds)
    assert low is not None and high is not None  # noqa: PT018
    return Members(named=frozenset([text]), low=low, high=high + 1, open=True, ruler="moment", pattern=_shorter(text))


def _shorter(text: str) -> str | None:
    """Dates known to the month or the year that lie in the period."""
    if found := re.fullmatch(r"(\d{4})-Q([1-4])", text):
        months = "|".join(f"{m:02d}" for m in range(3 * int(found[2]) - 2, 3 * int(found[2]) + 1))
        return f"{found[1]}-(?:{months})"
    if re.fullmatch(r"\d{4}", text):
        return f"{text}-\\d\\d"
    if re.fullmatch(r"\d{4}s", text):
        return f"{text[:3]}\\d(?:-\\d\\d)?"
    if re.fullmatch(r"\d{4}-\d{4}", text):
        return f"{text[:2]}\\d\\d(?:-\\d\\d)?"
    return None


def _days(text: str) -> tuple[str, str] | None:
    """First and last day of 2024-03-05, 2024-03, 2024-Q1, 2024, 2020s and 2000-2099."""
    if _ISO.match(text):
        return text[:10], text[:10]
    if found := re.fullmatch(r"(\d{4})-Q([1-4])", text):
        last = 3 * int(found[2])
        return f"{found[1]}-{last - 2:02d}-01", _month_end(int(found[1]), last)
    if re.fullmatch(r"\d{4}-\d\d", text):
        return f"{text}-01", _month_end(int(text[:4]), int(text[5:]))
    if re.fullmatch(r"\d{4}", text):
        return f"{text}-01-01", f"{text}-12-31"
    if re.fullmatch(r"\d{4}s", text):
        return f"{text[:4]}-01-01", f"{int(text[:4]) + 9:04d}-12-31"
    if re.fullmatch(r"\d{4}-\d{4}", text):
        return f"{text[:4]}-01-01", f"{text[5:]}-12-31"
    return None


def _month_end(year: int, month: int) -> str:
    after = datetime.date(year + (month == 12), month % 12 + 1, 1) if year < 9999 else datetime.date(year, 12, 31)
    return str(after - datetime.timedelta(days=1) if year < 9999 else after)


def known_values(cells: Iterable[Members]) -> tuple[str | None, ...]:
    """Every value that some cell names, numbers and dates in their order, a missing one last.  O(m log m)."""
    named: set[str | None] = set()
    for cell in cells:
        named |= cell.named
    present = sorted(v for v in named if v is not None)
    ruler = ruler_of(present)
    if ruler is not None:
        present.sort(key=lambda v: place(v, ruler) or 0.0)
    return (*present, *([None] if None in named else []))
