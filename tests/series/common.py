"""Small series for tests."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl

import shoal

Row = tuple[str, str, str, str]  # person, two quasi-identifiers, a sensitive value
NAMES = ("id", "age", "zip", "ill")


def policy(**more: Any) -> shoal.Policy:
    """k = l = 2 over two quasi-identifiers."""
    asked = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "k": 2, "l": 2, "effort": "fast"}
    return shoal.Policy(**(asked | more))


def frame(rows: list[Row]) -> pl.DataFrame:
    """A table of people."""
    return pl.DataFrame(rows, schema=dict.fromkeys(NAMES, pl.String), orient="row")


def people(month: int, count: int = 8) -> pl.DataFrame:
    """New people of a month: two ages, two zip codes, two illnesses, in equal shares."""
    return frame([(f"{month}-{i}", "3" + "04"[i % 2], "12"[i // 2 % 2], "ab"[i // 4 % 2]) for i in range(count)])


def classes(table: pl.DataFrame) -> list[Counter[str]]:
    """The illnesses of each class."""
    found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for *quasi, value in table.select("age", "zip", "ill").rows():
        found[tuple(quasi)][value] += 1
    return list(found.values())


def meets(table: pl.DataFrame, k: int, l: int) -> bool:
    """Whether each class has k rows, and no illness more than one in l of them."""
    return all(c.total() >= k and max(c.values()) * l <= c.total() for c in classes(table))


def seen(place: Path) -> dict[str, bytes]:
    """Every file of a series and its bytes; locks and temporaries left out."""
    files = (p for p in place.rglob("*") if p.is_file() and ".shoal-" not in str(p) and p.name != "lock")
    return {str(p.relative_to(place)): p.read_bytes() for p in files}
