"""The readings of missing values in words: one each, named in the certificate."""

from __future__ import annotations

from collections.abc import Mapping

READINGS = {
    "category": "a missing value is a value of its own, never a wildcard",
    "apart": "rows with a missing quasi-identifier are grouped among themselves, never with rows without one; among "
    "them a missing value is a value of its own",
    "filled": "a missing quasi-identifier was filled with the most frequent value of its column before anything was "
    "counted, so cost, bound and levels are those of the filled table; a filled cell is no value of its row and counts "
    "as lost, whatever it shows",
}


def missing_words(reading: str) -> str:
    """A reading in one sentence."""
    return READINGS[reading]


def with_filled(ncp: float, cells: Mapping[str, int] | None, rows: int) -> dict[str, float]:
    """The NCP at most, a filled cell counted as lost whole beside what its value loses; {} where none was asked for.

    cells  filled in each quasi-identifier
    """
    return {} if cells is None else {"ncp_with_filled": ncp + sum(cells.values()) / max(rows * len(cells), 1)}


def filled_words(cells: Mapping[str, int] | None) -> list[str]:
    """A sentence on the cells that were filled, if any were."""
    filled = ", ".join(f"{count:,} of {name!r}" for name, count in (cells or {}).items() if count)
    words = f"missing values filled with the most frequent one of their column: {filled}; each counts as lost"
    return [words] if filled else []
