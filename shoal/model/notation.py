"""How sets and ranges of values are written, and read back exactly, whatever the values hold.

::

    published = value | star | set | range
    set       = "{" element ", " element ... "}"       in the order of the values
    range     = "[" element ", " element "]"           lowest, highest
    element   = missing | bare text | JSON string

The bare word ``missing`` is a missing value.  A text is quoted as a JSON string where it could be read otherwise: when
it is empty, is the word ``missing``, has a blank at either end, or holds one of ``, { } [ ] " \\ *`` or a control
character.  In a column of sets or ranges a single value is published bare, but quoted where it begins like a quoted
text, or begins and ends like a set or a range (``[70-80)`` does not).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from shoal.errors import InputError

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
