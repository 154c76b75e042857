"""Public files next to a release: figures of the original in certificates, reports, and pages, and what they reveal.

How many originals agree with a small release alone, and how many also agree with the files next to it? An original
agrees with a release if every row's values are covered by its cells. Of the figures in public files, the ones that
follow from the rows are checked: the number of rows, of classes, of unique rows, and of different values, the share of
pairs of rows that differ in some columns (separation), the share of distinct rows (distinction), and the number of rows
with each value. If a table has too many originals to enumerate, ``fillings`` counts them column by column.
"""

from __future__ import annotations

import glob
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacks.reading import Figure, Reading
from shoal.paths import certificate_path, certified_name, is_json, is_page, is_private

PAPER_ON_ORIGINALS = (
    "Dinur, Nissim 2003; counted as in Cohen, Nissim 2020 (originals that agree with what is published)"
)
_ORIGINALS = 20_000  # most originals that are enumerated
_CELLS = 2_000_000  # most values in all of them together
_EXACT = 1e-9

Row = tuple[int, ...]


def found(reading: Reading, files: Sequence[Any]) -> list[Figure]:
    """The finding, if the table is small. files: JSON values of public files next to the release"""
    counted = agreeing(reading, files)
    if counted is None or counted[0] < 2:
        return []
    before, after = counted
    taken = 1 - math.log(max(after, 1)) / math.log(before)
    return [
        Figure(
            "files", "originals that agree", PAPER_ON_ORIGINALS,
            "the intruder has the release and every public file next to it, and knows the values of each column",
            "share of what the release leaves open that the files next to it tell, in bits", taken, taken, taken,
            {"the release alone": 0.0}, None, reading.rows, taken if after < before else 0.0, None,
            "withhold figures of the original, or round them",
            {"by_the_release_alone": before, "by_everything_beside_it": after,
             "bits_open": math.log2(before), "bits_left": math.log2(max(after, 1))},
        )
    ]  # fmt: skip


def agreeing(reading: Reading, files: Sequence[Any]) -> tuple[int, int] | None:
    """(originals that agree with the release, those that also agree with the files); None if there are too many.

    An original is a multiset of rows of quasi-identifiers for every class and sensitive value.
    """
    parts = _parts(reading) if reading.rows * len(reading.quasi) <= _CELLS // 100 else None
    if parts is None:
        return None
    many = math.prod(len(p) for p in parts)
    if many > _ORIGINALS or many * reading.rows * len(reading.quasi) > _CELLS:
        return None
    asked = list(_figures(reading, files))
    left = sum(
        all(_holds(figure, rows, reading) for figure in asked)
        for chosen in itertools.product(*parts)
        for rows in [[row for part in chosen for row in part]]
    )
    return many, left


def _parts(reading: Reading) -> list[list[tuple[Row, ...]]] | None:
    """For each class and sensitive value, all ways to fill its rows."""
    held = [reading.held(c, np.arange(len(d.values))) for c, d in enumerate(reading.domains)]
    codes = np.column_stack([reading.group, *(reading.codes[n] for n in reading.sensitive)])
    parts, many = [], 1
    for (g, *_), count in sorted(Counter(map(tuple, codes.tolist())).items()):
        cells = [np.flatnonzero(held[c][reading.classes[g, c]]).tolist() for c in range(len(reading.quasi))]
        many *= math.comb(math.prod(map(len, cells)) + count - 1, count)
        if many > _ORIGINALS:
            return None
        parts.append(list(itertools.combinations_with_replacement(list(itertools.product(*cells)), count)))
    return parts


def _figures(reading: Reading, files: Sequence[Any]) -> Iterator[tuple[str, tuple[int, ...], float, float]]:
    """(name, columns, value, tolerance) of every stated figure that follows from the rows."""
    place = {n: c for c, n in enumerate(reading.quasi)}
    for held in files:
        before = held.get("before") if isinstance(held, Mapping) else None
        if isinstance(before, Mapping):
            whole = tuple(range(len(reading.quasi)))
            for name in ("rows", "classes", "uniques", "smallest_class"):
                if _is_number(before.get(name)):
                    yield name, whole, before[name], _EXACT
            values = before.get("distinct_values")
            for name, count in values.items() if isinstance(values, Mapping) else ():
                if name in place and _is_number(count):
                    yield "classes", (place[name],), count, _EXACT
            for entry in before.get("dangerous") or ():
                if isinstance(entry, Mapping) and set(entry.get("columns", ())) <= set(place):
                    columns = tuple(place[n] for n in entry["columns"])
                    for name in ("separation", "distinction"):
                        if _is_number(entry.get(name)):
                            yield name, columns, entry[name], slack(entry[name])
        listed = held.get("columns") if isinstance(held, Mapping) and not held.get("step") else None
        for column in listed if isinstance(listed, list) else ():
            if not isinstance(column, Mapping) or column.get("name") not in place:
                continue
            c = place[column["name"]]
            for entry in column.get("distribution") or ():
                value = entry.get("label") if isinstance(entry, Mapping) else None
                if value in reading.domains[c].values and _is_number(entry.get("before")):
                    yield f"={reading.domains[c].values.index(value)}", (c,), entry["before"], _EXACT


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def slack(share: float) -> float:
    """The rounding tolerance of a share that is stated with so many digits."""
    digits = len(repr(float(share)).partition(".")[2])
    return float(0.5 * 10.0**-digits + 1e-12) if digits < 12 else 1e-12


def _holds(figure: tuple[str, tuple[int, ...], float, float], rows: Sequence[Row], reading: Reading) -> bool:
    """Whether rows of the original have a figure as stated."""
    what, columns, stated, off = figure
    if what == "rows":
        return abs(len(rows) - stated) <= off
    if what[0] == "=":
        return abs(sum(r[columns[0]] == int(what[1:]) for r in rows) - stated) <= off
    count = Counter(tuple(r[c] for c in columns) for r in rows)
    if what == "classes":
        mine = float(len(count))
    elif what == "uniques":
        mine = float(sum(n == 1 for n in count.values()))
    elif what == "smallest_class":
        mine = float(min(count.values()))
    elif what == "distinction":
        mine = len(count) / len(rows)
    else:
        pairs = len(rows) * (len(rows) - 1)
        mine = 1 - sum(n * (n - 1) for n in count.values()) / pairs if pairs else 0.0
    return abs(mine - stated) <= off


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
"""Keys of figures about the original, or about the search on it."""
_OWN = frozenset({"audit", "policy", "criteria"})  # parts about the published rows, or about the request
_FIGURES = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
_LARGEST = 64 << 20  # bytes of the largest file that is examined
_STATES = 500_000
_LISTED = 1_000_000_000  # largest number of ways to fill a column that is reported
PAPER = "Dinur, Nissim 2003 (totals tell cells); minimal recodings after Cohen 2022"


def neighbors(path: Path) -> list[tuple[Path, Any]]:
    """Files next to a release that carry its name, with the JSON in each: STEM.*.json, STEM.*.html.

    The stem of visits.2024-01.release.csv is visits.2024-01, so the files of another month don't count.
    """
    stem = certified_name(certificate_path(path)).removesuffix(".release")
    out = []
    for one in sorted(path.parent.glob(f"{glob.escape(stem)}.*")):
        if one == path or not (is_json(one) or is_page(one)) or one.stat().st_size > _LARGEST:
            continue
        try:
            text = one.read_text(encoding="utf-8")
            if is_json(one):
                out.append((one, json.loads(text)))
            else:
                out += [(one, json.loads(held)) for held in _FIGURES.findall(text)]
        except (OSError, ValueError, RecursionError):
            continue
    return out


def figure_keys(figures: Any, under: str = "") -> Iterator[str]:
    """The paths of figures of the original in a JSON value: "before.separation"."""
    if isinstance(figures, Mapping):
        for key, held in figures.items():
            if key in _OWN or held is None or held in ([], {}, ""):
                continue
            if key in PRIVATE:
                yield f"{under}{key}"
            else:
                yield from figure_keys(held, f"{under}{key}.")
    elif isinstance(figures, list):
        for held in figures:
            yield from figure_keys(held, under)


def figures_in_public_files(reading: Reading, path: Path) -> list[Figure]:
    """Whether a public file next to the release states figures of the original, and the hidden cells they determine."""
    files = neighbors(path)
    leaks = {(one.name, key) for one, held in files if not is_private(one) for key in figure_keys(held)}
    internal = {one.name for one, held in files if not is_private(one) and isinstance(held, Mapping)
                and held.get("internal")}  # fmt: skip
    leaking = bool(leaks or internal)
    out = [
        Figure(
            "files", "what is next to the release", PAPER,
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
    out += found(reading, public)
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
            Figure(
                "files", "hidden cells that totals tell", PAPER,
                "the intruder has the release and the public files next to it, and knows the values of each column",
                "hidden cells of columns whose hidden counts follow exactly", share, share, share,
                {"the release alone": 0.0}, None, hidden, share, None,
                "withhold counts and figures of the original, or round them",
                {"ways_to_fill_a_column": "; ".join(ways) or "too many to list"},
            )
        )  # fmt: skip
    return out


def _hidden(reading: Reading, column: int) -> tuple[np.ndarray, int] | None:
    """(int64[values] rows that show each value, number of starred rows); None if cells are coarse in other ways."""
    s = reading.spreads[column]
    rows = np.bincount(reading.classes[:, column], weights=reading.size, minlength=s.size.size).astype(np.int64)
    if (~s.wild & (s.size > 1)).any() or not s.wild.any():
        return None
    shown = np.zeros(len(reading.domains[column].values), np.int64)
    single = ~s.wild[s.cell]
    np.add.at(shown, s.start[single], rows[s.cell[single]])
    return shown, int(rows[s.wild].sum())


def _totals(files: list[Any], name: str, values: tuple[str | None, ...]) -> np.ndarray | None:
    """int64[values]: how many rows of the original have each value, if a file states it for every value."""
    for held in files:
        columns = held.get("columns") if isinstance(held, Mapping) else None
        for column in columns if isinstance(columns, list) else []:
            if not isinstance(column, Mapping) or column.get("name") != name or held.get("step"):
                continue
            before = {e.get("label"): e.get("before") for e in column.get("distribution", []) if isinstance(e, Mapping)}
            if values and all(isinstance(before.get(v), (int, float)) for v in values):
                return np.array([before[v] for v in values], np.float64).astype(np.int64)
    return None


def _pairs(files: list[Any], name: str) -> tuple[float, float] | None:
    """The lowest and highest share of pairs of rows that differ in a column, by the stated digits."""
    for held in files:
        before = held.get("before") if isinstance(held, Mapping) else None
        for entry in before.get("dangerous", []) if isinstance(before, Mapping) else []:
            if isinstance(entry, Mapping) and entry.get("columns") == [name] and "separation" in entry:
                half = slack(entry["separation"])
                return float(entry["separation"]) - half, float(entry["separation"]) + half
    return None


def fillings(
    shown: np.ndarray, hidden: int, totals: np.ndarray | None, pairs: tuple[float, float] | None
) -> tuple[int, int | None]:
    """(ways to fill a column's hidden cells, by counts; those that agree with the stated figures).

    None if none are stated.

    shown   int64[values]: rows that show each value
    hidden  rows that show none
    totals  int64[values] of the original
    pairs   the lowest and highest share of pairs of rows that differ
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
    states = {(0, 0): 1}  # (hidden rows assigned, equal pairs) -> ways
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
