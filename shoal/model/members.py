"""``Members``: the values that a published cell may stand for, from its text and the recoding of its column."""

from __future__ import annotations

import datetime
import math
import re
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.arguments import spanned
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.notation import (
    MARKS,
    NUMBER,
    RangeOf,
    SetOf,
    day_of,
    ends,
    in_order,
    limits_of,
    numeral,
    of_days,
    of_limits,
    of_numbers,
    parse,
    within,
)
from shoal.model.settings import RECODINGS

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?\Z")
_NUMBER = re.compile(NUMBER)
_SPAN = re.compile(r"\[(-?[\d.e+-]+), (-?[\d.e+-]+)\)\Z|(-?[\d.e+]+) ?(?:-|\.\.) ?(-?[\d.e+]+)\Z")
_END = re.compile(r"(<|>=)(-?[\d.e+-]+)\Z")


@dataclass(frozen=True)
class Members:
    """The values that a published cell may stand for. ``value in members`` tests one value.

    named       values as text; None is a missing value
    low, high   ends of a range of numbers, or of days since 1970
    open, begins_after  whether high is excluded, and whether low is excluded
    ruler       the scale of low and high: "number", "date", "moment", "band", or a notation; None if there is no range
    pattern     a regular expression that matches values completely
    everything  a star: any value, including values that don't occur in the release
    """

    named: frozenset[str | None] = frozenset()
    low: float | None = None
    high: float | None = None
    open: bool = False
    begins_after: bool = False
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
        above = (at > self.low) if self.begins_after else (at >= self.low)
        return above & ((at < self.high) if self.open else (at <= self.high))

    def held(self, known: Sequence[str | None], at: np.ndarray) -> np.ndarray:
        """bool[known]: whether each known value is a member. at: float64[known], their positions on the ruler, NaN for
        none."""
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
    """A value as a table writes it; None if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # as a release writes it, without a point
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)


def place(text: str, ruler: str | None) -> float | None:
    """The position of a text on a ruler: a number, days since 1970, or a band's low end; None if it has none."""
    try:
        if ruler == "band":
            found = ends(text)
            return None if found is None else found[0]
        if ruler == "number":
            return float(text)
        if ruler is not None and ruler[0] == "%":
            return day_of(text, ruler)
        if ruler in MARKS or of_limits(ruler):
            plain = numeral(text, ruler)  # type: ignore[arg-type]
            if plain is None:
                return None
            return within(float(plain), ruler)[0] if of_limits(ruler) else float(plain)  # type: ignore[arg-type]
        if ruler in ("date", "moment") and _ISO.match(text):
            moment = datetime.datetime.fromisoformat(text)
            return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    except ValueError:
        pass
    return None


def places(texts: Sequence[str | None], ruler: str | None) -> np.ndarray:
    """float64[texts]: the positions, NaN for a text without one."""
    found = [None if t is None else place(t, ruler) for t in texts]
    return np.array([math.nan if x is None else x for x in found], dtype=np.float64)


def ruler_of(texts: Iterable[str | None]) -> str | None:
    """The common type of all texts, "number", "date", or "moment"; None if there is none, or if numbers are too far
    apart to be measured."""
    present = [t for t in texts if t is not None]
    if not present:
        return None
    if all(_NUMBER.match(t) for t in present):
        numbers = [float(t) for t in present]
        return "number" if spanned(min(numbers), max(numbers)) else None
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
    """The values that the distinct texts of a published column stand for.

    publish    a way to publish of ``shoal.model.settings``
    hierarchy  an argument of ``Hierarchy.of``, or the name of a generated hierarchy
    starred    whether a missing cell may be a star, as in columns of numbers
    notation   notation of the column's dates or numbers, if it has one

    A text that its column's recoding doesn't explain stands for everything, so the result never excludes a true value.
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
    if of_limits(notation):
        found = {t: _at_limit(t, m, notation) for t, m in found.items()}
    known = {**found, star: Members(everything=True)}
    return [missing if t is None else known.get(t, known[star]) for t in texts]


def _at_limit(text: str, found: Members, notation: str | None) -> Members:
    """For a text that stands for all numbers beyond a limit, the limit itself; otherwise the given members."""
    at = place(text, notation) if notation is not None and text in notation.split() else None
    return found if at is None else replace(found, low=at, high=at, ruler=notation)


def of_ranges(shown: Sequence[str], notation: str | None = None) -> dict[str, Members]:
    """Members of the texts of a column of ranges or sets. notation: of the column's dates or numbers, if it has one."""
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
    """The members of a range. A missing value is above all others. Without a ruler, any value may lie between the
    ends."""
    low, high = at[found.low], math.inf if found.high is None else at[found.high]
    if low is None or high is None:
        return Members(everything=True)
    named = frozenset([None, found.low, found.high] if found.high is None else [found.low, found.high])
    if not of_limits(ruler):
        return Members(named=named, low=low, high=high, ruler=ruler)
    # 90 as an end of a range rounded outwards, where 90 and all above are written >=90
    least, most = limits_of(str(ruler))
    plain = {end for end in (found.low, found.high) if end is not None} - {*str(ruler).split()}
    past, before = found.low in plain and low <= least, found.high in plain and high >= most
    outside = {found.low} if past else set()
    outside |= {found.high} if before else set()
    return Members(named=named - outside, low=low, high=high, open=before, begins_after=past, ruler=ruler)


def meanings_of_classes(shown: Sequence[str], source: Any, notation: str | None = None) -> dict[str, Members]:
    """Members of the labels of a hierarchy. For a generated one, only labels that are intervals of numbers are
    readable.

    notation  of the column's dates or numbers; periods such as 2024-03 and intervals such as [2.5, 5) have the same
              form in every notation
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
    return found if notation is None else {t: _by_notation(t, m, notation) for t, m in found.items()}


def _by_notation(text: str, found: Members, notation: str) -> Members:
    """The members of a label or value in a column with a notation."""
    at = place(text, notation)
    if at is not None:
        return Members(named=frozenset([text]), low=at, high=at, ruler=notation)
    if ends := from_to(text, notation):
        return Members(low=ends[0], high=ends[1], ruler=notation)
    alike = of_days(notation) if found.ruler == "moment" else of_numbers(notation) if found.ruler == "number" else False
    return replace(found, ruler=notation, pattern=None) if alike else found


def from_to(text: str, ruler: str) -> tuple[float, float] | None:
    """The ends of a text such as ``2024-01-01 .. 2024-05-31``; None for other texts."""
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
    """The members of ``20``, ``20-24``, ``18 .. 25``, ``[20, 25)``, ``<18``, and ``>=65``; None for other texts."""
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
    """The members of a prefix, for every possible length of the fill, because a value may itself end in the fill
    character."""
    if not rule.fill:
        return Members(pattern=re.escape(text) + ".*")
    left = text
    while left.endswith(rule.fill):
        left = left[: -len(rule.fill)]
    more = (len(text) - len(left)) // len(rule.fill)
    return Members(named=frozenset([text]), pattern=re.escape(left) + f".{{{more}}}")


def _period(text: str) -> Members:
    """The members of a period: its days, and the text itself, which may be a date that is less exact than the
    period."""
    low, high = (place(day, "date") for day in _days(text) or ("", ""))
    if low is None or high is None:  # no period, or one that isn't in the calendar
        return Members(named=frozenset([text]))
    return Members(named=frozenset([text]), low=low, high=high + 1, open=True, ruler="moment", pattern=_shorter(text))


def _shorter(text: str) -> str | None:
    """A pattern of the dates in a period that are known only to the month or the year."""
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
    """The first and last day of a period such as 2024-03-05, 2024-03, 2024-Q1, 2024, 2020s, or 2000-2099."""
    if _ISO.match(text):
        return text[:10], text[:10]
    if found := re.fullmatch(r"(\d{4})-Q([1-4])", text):
        last = 3 * int(found[2])
        return f"{found[1]}-{last - 2:02d}-01", f"{found[1]}-{last:02d}-{30 + (last in (3, 12))}"
    if re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text):
        return f"{text}-01", f"{text}-{monthrange(int(text[:4]), int(text[5:]))[1]}"
    if re.fullmatch(r"\d{4}", text):
        return f"{text}-01-01", f"{text}-12-31"
    if re.fullmatch(r"\d{4}s", text):
        return f"{text[:4]}-01-01", f"{int(text[:4]) + 9:04d}-12-31"
    if re.fullmatch(r"\d{4}-\d{4}", text):
        return f"{text[:4]}-01-01", f"{text[5:]}-12-31"
    return None


def known_values(cells: Iterable[Members]) -> tuple[str | None, ...]:
    """All values that cells name: numbers and dates in order, a missing value last. O(m log m)."""
    named: set[str | None] = set()
    for cell in cells:
        named |= cell.named
    present = sorted(v for v in named if v is not None)
    ruler = ruler_of(present)
    if ruler is not None:
        present.sort(key=lambda v: place(v, ruler) or 0.0)
    return (*present, *([None] if None in named else []))
