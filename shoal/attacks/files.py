"""What the files tell: the order of rows, levels and metadata, and whatever lies beside the release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.attacks import beside
from shoal.attacks.finding import Finding, wilson
from shoal.attacks.linkage import same_order
from shoal.attacks.reading import People, Reading
from shoal.attacks.residue import residue
from shoal.engines.codes import encode

_ROWS = 100_000  # compared with the rows at other places
_SHIFTS = (1, 2, 5, 11, 23, 47, 101)


def found(reading: Reading, table: Any, people: People | None, separator: str | None = None) -> list[Finding]:
    """Every finding about files.  table: the release as it came, a path or a frame"""
    path = Path(table) if isinstance(table, (str, Path)) else None
    out = [_against_itself(reading)]
    if (held := _beside_rows(reading, table, separator)) is not None:
        out.append(held)
    if path is not None:
        out += beside.found(reading, path)
    if people is not None and people.rows == reading.rows:
        out.append(_against_original(reading, people))
    return out


def _beside_rows(reading: Reading, table: Any, separator: str | None) -> Finding | None:
    """Values and orders held beside the rows; None where the form of the table has none."""
    held = residue(table, reading.frame, separator)
    if held is None:
        return None
    leaks = float(held.leaks)
    unseen = [f"{name} ({len(values):,} values)" for name, values in sorted(held.values.items())]
    return Finding(
        "files", "levels and metadata", "seen in tools of several kinds",
        "the intruder looks at what a file holds beside its rows: dictionaries, statistics, levels, metadata, hidden "
        "parts", "1 where it tells what no row shows, 0 where it does not", leaks, leaks, leaks, {"the rows": 0.0},
        None, reading.rows, leaks, None, "write a new file with new columns, from published values only",
        {"columns": ", ".join(unseen) or "none", "order": "; ".join(held.order) or "none",
         "others": "; ".join(held.said) or "none"},
    )  # fmt: skip


def _against_itself(reading: Reading) -> Finding:
    """Whether rows follow the order of a column, or equal values stand together: a test per column."""
    frame, rows = reading.frame, reading.rows
    worst, name_of, tests = 0.0, "", 0
    for name in frame.columns if rows >= 20 else ():
        coded = encode(frame[name].cast(pl.String) if frame[name].dtype.is_nested() else frame[name])
        codes = coded.codes.astype(np.int64)
        if coded.size < 2:
            continue
        for said, z in (("order", _rank_test(codes)), ("runs", _runs_test(codes))):
            tests += 1
            if abs(z) > abs(worst):
                worst, name_of = z, f"{name} ({said})"
    limit = 5.0 + np.log10(max(tests, 1))  # of a normal deviate: by chance once in a million releases
    leaks = abs(worst) > limit
    return Finding(
        "files", "order of the rows", "folklore; statistical agencies randomize the order",
        "the intruder looks at the rows in the order of the file", "1 where rows follow a column or values stand "
        "together, 0 where the order is random", float(leaks), float(leaks), float(leaks), {"a random order": 0.0},
        None, rows, float(leaks), (f"column {name_of}", float(leaks)) if leaks else None,
        "shuffle the rows by a secret", {"deviate": float(worst), "limit": float(limit)},
    )  # fmt: skip


def _rank_test(codes: np.ndarray) -> float:
    """Spearman's correlation of a column with the row's number, as a normal deviate.  codes: int64, in their order"""
    count = np.bincount(codes)
    rank = (np.cumsum(count) - (count - 1) / 2)[codes]  # the mean of equal ones
    place = np.arange(len(codes), dtype=float)
    return float(np.corrcoef(rank, place)[0, 1] * np.sqrt(len(codes) - 1)) if np.ptp(rank) else 0.0


def _runs_test(codes: np.ndarray) -> float:
    """Neighbors that are equal against those expected of a random order, as a normal deviate."""
    n = len(codes)
    count = np.bincount(codes).astype(float)
    pairs = (count * (count - 1)).sum() / (n * (n - 1))  # chance that two rows are equal
    if pairs in (0.0, 1.0):
        return 0.0
    triples = (count * (count - 1) * (count - 2)).sum() / (n * (n - 1) * (n - 2))
    crossed = ((count * (count - 1)).sum() ** 2 - (count * (count - 1) * (4 * count - 6)).sum()) / (
        n * (n - 1) * (n - 2) * (n - 3)
    )
    mean = (n - 1) * pairs
    variance = (n - 1) * pairs + 2 * (n - 2) * triples + (n - 2) * (n - 3) * crossed - mean**2
    return float(((codes[1:] == codes[:-1]).sum() - mean) / np.sqrt(max(variance, 1e-9)))


def _against_original(reading: Reading, people: People) -> Finding:
    """How many rows may be the original's row at the same place, against other places."""
    fits = same_order(reading, people)
    assert fits is not None  # the numbers of rows are the same
    shifts = [shift for shift in _SHIFTS if shift < reading.rows]
    rows = np.arange(min(reading.rows, _ROWS))
    shifted = [same_order(reading, people, shift, rows) for shift in shifts]
    chance = max((wilson(float(s.sum()), len(rows))[1] for s in shifted if s is not None), default=1.0)
    low, high = wilson(float(fits.sum()), reading.rows)
    return Finding(
        "files", "order against the original", "folklore; statistical agencies randomize the order",
        "the intruder knows the order of the original, as by the time of an entry or by name",
        "rows that may be the original's row at the same place", float(fits.mean()), low, high,
        {"the original's row at another place, at most": chance}, None, reading.rows,
        float(fits.mean()) if low > chance else 0.0, None, "shuffle the rows by a secret", {},
    )  # fmt: skip
