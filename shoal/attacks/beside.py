"""What lies beside a release: figures of the original in certificates, reports and pages, and what they pin down."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacks import originals
from shoal.attacks.finding import Finding
from shoal.attacks.reading import Reading

PRIVATE = frozenset(
    {
        "seed",
        "attempts",
        "dangerous",
        "separation",
        "distinct_values",
        "distinction",
        "uniques",
        "lower_bound",
        "before",
    }
)
"""Keys under which figures of the original, or of the search on it, are told."""
_OWN = frozenset({"audit", "policy", "criteria"})  # parts that speak of the published rows, or of what was asked
_FIGURES = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
_LARGEST = 64 << 20  # bytes of a file looked into
_STATES = 500_000
_LISTED = 1_000_000_000  # ways to fill a column that are said
PAPER = "Dinur, Nissim 2003 (totals tell cells); minimal recodings after Cohen 2022"


def neighbors(path: Path) -> list[tuple[Path, Any]]:
    """Files that lie beside a release and carry its name, with the JSON in each: STEM.*.json, STEM.*.html."""
    stem = path.name.split(".")[0]
    out = []
    for one in sorted(path.parent.glob(f"{_escaped(stem)}.*")):
        if one == path or one.suffix.lower() not in (".json", ".html", ".htm") or one.stat().st_size > _LARGEST:
            continue
        try:
            text = one.read_text(encoding="utf-8")
            if one.suffix.lower() == ".json":
                out.append((one, json.loads(text)))
            else:
                out += [(one, json.loads(held)) for held in _FIGURES.findall(text)]
        except (OSError, ValueError, RecursionError):
            continue
    return out


def _escaped(stem: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", stem)


def is_private(path: Path) -> bool:
    """Whether the name of a file says that it must not leave: NAME.record.json, NAME.internal.html."""
    return ".internal." in path.name or path.name.endswith((".record.json", ".policy.toml"))


def told(figures: Any, under: str = "") -> Iterator[str]:
    """Where figures of the original stand in a JSON value: "before.separation"."""
    if isinstance(figures, Mapping):
        for key, held in figures.items():
            if key in _OWN or held is None or held in ([], {}, ""):
                continue
            if key in PRIVATE:
                yield f"{under}{key}"
            else:
                yield from told(held, f"{under}{key}.")
    elif isinstance(figures, list):
        for held in figures:
            yield from told(held, under)


def found(reading: Reading, path: Path) -> list[Finding]:
    """Whether a public file beside the release tells figures of the original, and which hidden cells they pin down."""
    files = neighbors(path)
    leaks = {(one.name, key) for one, held in files if not is_private(one) for key in told(held)}
    internal = {one.name for one, held in files if not is_private(one) and isinstance(held, Mapping)
                and held.get("internal")}  # fmt: skip
    leaking = bool(leaks or internal)
    out = [
        Finding(
            "files", "what lies beside the release", PAPER,
            "the intruder has every file that carries the release's name and does not say that it is private",
            "1 where one tells figures of the original, 0 where none does", float(leaking), float(leaking),
            float(leaking), {"the release alone": 0.0}, None, reading.rows, float(leaking), None,
            "hand out the release and its certificate; keep records and internal pages",
            {"files": ", ".join(sorted({n for n, _ in leaks} | internal)) or "none",
             "figures": ", ".join(sorted({k for _, k in leaks})) or "none",
             "private_files_that_must_stay": ", ".join(sorted({o.name for o, _ in files if is_private(o)})) or "none"},
        )
    ]  # fmt: skip
    public = [held for one, held in files if not is_private(one)]
    out += originals.found(reading, public)
    pinned, hidden, ways = 0, 0, []
    for c, name in enumerate(reading.quasi):
        cells = _hidden(reading, c)
        if cells is None:
            continue
        shown, many = cells
        hidden += many
        before, after = fillings(shown, many, _totals(public, name, reading.domains[c].values), _pairs(public, name))
        after = before if after is None else after
        if before <= _LISTED:
            ways.append(f"{name} {before:,} to {after:,}")
        pinned += many if after == 1 and before > 1 else 0
    if hidden:
        share = pinned / hidden
        out.append(
            Finding(
                "files", "hidden cells that totals tell", PAPER,
                "the intruder has the release and the public files beside it, and knows the values of each column",
                "hidden cells of columns whose hidden counts are told exactly", share, share, share,
                {"the release alone": 0.0}, None, hidden, share, None,
                "withhold counts and figures of the original, or round them",
                {"ways_to_fill_a_column": "; ".join(ways) or "too many to list"},
            )
        )  # fmt: skip
    return out


def _hidden(reading: Reading, column: int) -> tuple[np.ndarray, int] | None:
    """(int64[values] rows that show each value, rows that are starred); None where cells are coarse in other ways."""
    s = reading.spreads[column]
    rows = np.bincount(reading.classes[:, column], weights=reading.size, minlength=s.size.size).astype(np.int64)
    if (~s.wild & (s.size > 1)).any() or not s.wild.any():
        return None
    shown = np.zeros(len(reading.domains[column].values), np.int64)
    single = ~s.wild[s.cell]
    np.add.at(shown, s.start[single], rows[s.cell[single]])
    return shown, int(rows[s.wild].sum())


def _totals(files: list[Any], name: str, values: tuple[str | None, ...]) -> np.ndarray | None:
    """int64[values]: how many rows of the original have each value, where a file tells it of every one."""
    for held in files:
        columns = held.get("columns") if isinstance(held, Mapping) else None
        for column in columns if isinstance(columns, list) else []:
            if not isinstance(column, Mapping) or column.get("name") != name or held.get("step"):
                continue
            said = {e.get("label"): e.get("before") for e in column.get("distribution", []) if isinstance(e, Mapping)}
            if all(isinstance(said.get(v), (int, float)) for v in values):
                return np.array([said[v] for v in values], np.float64).astype(np.int64)
    return None


def _pairs(files: list[Any], name: str) -> tuple[float, float] | None:
    """The share of pairs of rows that differ in a column, as its lowest and highest by the digits told."""
    for held in files:
        before = held.get("before") if isinstance(held, Mapping) else None
        for entry in before.get("dangerous", []) if isinstance(before, Mapping) else []:
            if isinstance(entry, Mapping) and entry.get("columns") == [name] and "separation" in entry:
                half = originals.slack(entry["separation"])
                return float(entry["separation"]) - half, float(entry["separation"]) + half
    return None


def fillings(
    shown: np.ndarray, hidden: int, totals: np.ndarray | None, pairs: tuple[float, float] | None
) -> tuple[int, int | None]:
    """(ways to fill a column's hidden cells by count, those that agree with what is told); None where nothing is.

    shown   int64[values] rows that show each value;  hidden: rows that show none
    totals  int64[values] of the original;  pairs: the share of pairs of rows that differ, lowest and highest
    """
    values = len(shown)
    every = math.comb(hidden + values - 1, values - 1) if values else 1
    if totals is not None:
        left = totals - shown
        return every, int(left.min() >= 0 and left.sum() == hidden)
    if pairs is None:
        return every, None
    rows = int(shown.sum()) + hidden
    whole = rows * (rows - 1) / 2
    lowest, highest = math.ceil((1 - pairs[1]) * whole - 1e-3), math.floor((1 - pairs[0]) * whole + 1e-3)
    states = {(0, 0): 1}  # (hidden rows given out, pairs alike) -> ways
    for i, held in enumerate(shown.tolist()):
        last = i == values - 1
        after: dict[tuple[int, int], int] = {}
        for (used, alike), ways in states.items():
            for more in (hidden - used,) if last else range(hidden - used + 1):
                pair = alike + (held + more) * (held + more - 1) // 2
                if pair <= highest:
                    after[used + more, pair] = after.get((used + more, pair), 0) + ways
        states = after
        if len(states) * hidden > _STATES * 20:
            return every, None
    return every, sum(ways for (_, alike), ways in states.items() if alike >= lowest)
