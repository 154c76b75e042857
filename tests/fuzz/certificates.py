"""Bent certificates without end: values, types, keys and depth of a genuine one changed at random.

``bent(record, rng)`` gives the bytes of one; a longer tool may call it as often as it likes.
"""

import copy
import json
import random
from collections.abc import Container, Iterator
from typing import Any

from shoal.judge.file import seal

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "*", "x",
    "0", "\u0000", "\ud800", "é" * 50, [], {}, [[]], [None], {"": None}, [1, 2], {"k": 1}, "../../etc/passwd", "labels",
    "intervals:5", "centers", "ranges", "hierarchy", "stars", "ncp", "suppressed tuples",
]  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a record."""
    if isinstance(value, dict):
        for key in value:
            yield (*way, key)
            yield from places(value[key], (*way, key))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield (*way, at)
            yield from places(value[at], (*way, at))


def each_entry(record: dict[str, Any], without: Container[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Copies of a record with one entry dropped, changed, or added, and what was changed: all of them, not at random.

    without  entries of the record that stay as they are
    """
    for way in [(), *places(record)]:
        if way and way[0] in without:
            continue
        held: Any = record
        for step in way:
            held = held[step]
        named = ".".join(map(str, way))
        for how, value in _changed(held):
            yield f"{named} {how}", put(record, way, value)
        if way:
            yield f"{named} dropped", put(record, way, _DROPPED)


_DROPPED = object()
_OTHERS: list[Any] = [None, True, False, 0, 1, "x", [], {}]


def _changed(held: Any) -> Iterator[tuple[str, Any]]:
    """Other values for an entry: one a little different, and one of each type."""
    if isinstance(held, dict):
        yield "with a key more", {**held, "who": "Ann"}
    elif isinstance(held, list):
        yield "with an item more", [*held, "Ann"]
        if held:
            yield "with an item twice", [*held, held[-1]]
        if held != held[::-1]:
            yield "in another order", held[::-1]
    elif isinstance(held, str):
        yield "with a letter more", held + "x"
    elif type(held) in (int, float):
        for by in (-1, 1):
            yield f"{by:+}", held + by
        yield "and a half", held + 0.5
    for other in _OTHERS:
        if other != held or isinstance(other, bool) is not isinstance(held, bool):  # 1.0 and 1 are the same in JSON
            yield f"= {other!r}", other


def put(record: Any, way: tuple[Any, ...], value: Any) -> Any:
    """A copy of a record with another value at one place."""
    if not way:
        return value
    made = copy.deepcopy(record)
    held = made
    for step in way[:-1]:
        held = held[step]
    if value is _DROPPED:
        del held[way[-1]]
    else:
        held[way[-1]] = value
    return made


def bend(record: dict[str, Any], rng: random.Random) -> None:
    """Change one part of a record."""
    ways = list(places(record))
    if not ways:
        return
    *above, last = rng.choice(ways)
    parent: Any = record
    for step in above:
        parent = parent[step]
    what = rng.choice(["odd", "odd", "nudge", "drop", "rename", "swap", "deep", "wrap"])
    if what == "odd":
        parent[last] = rng.choice(ODD)
    elif what == "nudge" and isinstance(parent[last], (int, float)):
        parent[last] = parent[last] + rng.choice([-1, 1, 0.5, -parent[last]])
    elif what == "drop":
        del parent[last]
    elif what == "rename" and isinstance(parent, dict):
        parent[rng.choice(["", "x", str(last) + " ", str(last).upper()])] = parent.pop(last)
    elif what == "swap":
        *others, other = rng.choice(ways)
        held: Any = record
        try:
            for step in others:
                held = held[step]
            parent[last] = copy.deepcopy(held[other])
        except (KeyError, IndexError, TypeError):
            parent[last] = None
    elif what == "deep":
        inside: Any = 1
        for _ in range(rng.choice([5, 60])):
            inside = [inside] if rng.random() < 0.5 else {"a": inside}
        parent[last] = inside
    else:
        parent[last] = [parent[last]]


def bent(record: dict[str, Any], rng: random.Random) -> bytes:
    """A genuine record with one to three parts bent, most of them sealed again, some with bytes of their own."""
    facts = copy.deepcopy(record)
    for _ in range(rng.choice([1, 1, 2, 3])):
        bend(facts, rng)
    if rng.random() < 0.8:
        try:
            facts["seal"] = seal(facts)
        except (ValueError, TypeError):
            facts["seal"] = "0" * 64
    text = json.dumps(facts)
    how = rng.random()
    if how < 0.03:
        text = text.replace('"cost":', '"cost": 0, "cost":', 1)
    elif how < 0.05:
        text = text[: rng.randrange(len(text))]
    elif how < 0.06:
        text = '{"a":' * 5000 + "1" + "}" * 5000
    elif how < 0.07:
        text = "[" * 100_000
    raw = text.encode("utf-8", "surrogatepass")
    if 0.07 <= how < 0.1:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    return raw
