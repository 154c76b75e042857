"""Names of areas in two files set against each other: leading zeros given back, what has no partner listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shoal.errors import InputError, PolicyError
from shoal.model.cards import several

UNMATCHED = ("refuse", "leave-out")
_SHOWN = 10


class Restored(NamedTuple):
    """New spellings: of names on the one side, of names on the other."""

    first: dict[str, str]
    second: dict[str, str]

    def words(self, first: str, second: str) -> list[str]:
        """What was done, a sentence for each side that was changed."""
        return [
            f"leading zeros of {len(spelled):,} ids of {what} restored, as {other} have them ({shown})"
            for spelled, what, other in ((self.first, first, second), (self.second, second, first))
            if spelled
            for shown in [", ".join(f"{a} is {b}" for a, b in list(spelled.items())[:3])]
        ]


def spelled(value: Any) -> str:
    """An id as text, without spaces around it: a number without a fraction, as spreadsheets hand ids over, loses its
    ``.0``."""
    if isinstance(value, str):
        return value.strip()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def restored(first: Iterable[str], second: Iterable[str]) -> Restored:
    """Names that differ from one name of the other side in leading zeros only, spelled as the side that has more.

    Only where it is one to one: a bare name that several unmatched names of a side share stays as it is.  O(names).
    """
    ours, theirs = set(first), set(second)
    bare: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for held, names in zip(bare, (sorted(ours - theirs), sorted(theirs - ours)), strict=True):
        for name in names:
            if name.lstrip("0"):
                held.setdefault(name.lstrip("0"), []).append(name)
    found = Restored({}, {})
    for key, one in bare[0].items():
        other = bare[1].get(key, [])
        if len(one) == len(other) == 1:
            if len(one[0]) < len(other[0]):
                found.first[one[0]] = other[0]
            else:
                found.second[other[0]] = one[0]
    return found


def listed(names: Sequence[str]) -> dict[str, Any]:
    """How many, and the first ten, for the record."""
    return {"count": len(names), "first": list(names[:_SHOWN])}


def shown(names: Sequence[str]) -> str:
    """The first ten names and how many more."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def partners(unmatched: str, sides: Mapping[tuple[str, str], Sequence[str]]) -> list[str]:
    """Sentences about the names without a partner; InputError with all of them unless they are to be left out.

    sides  what has none, and what it lacks -> the names: ("area", "without a polygon")
    """
    if unmatched not in UNMATCHED:
        raise PolicyError.unknown("way to treat ids without a partner", unmatched, UNMATCHED)
    said = [f"{several(len(names), what)} {lacks}: {shown(names)}" for (what, lacks), names in sides.items() if names]
    if said and unmatched == "refuse":
        raise InputError(
            "; ".join(said) + "; give both files the same ids, or leave these out with unmatched='leave-out'"
        )
    return said
