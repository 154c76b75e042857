"""How many originals agree with a small release alone, and how many with all that lies beside it as well.

An original agrees with a release where every row's values lie in what its cells stand for.  Of the figures that public
files tell, those are held against it that follow from the rows: how many rows, classes, rows alone in theirs, different
values, the share of pairs of rows that differ in some columns (separation) and of different rows (distinction), and how
many rows have each value.  Tables with more originals than can be looked at are left to ``beside.fillings``, which
counts a column at a time.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.attacks.finding import Finding
from shoal.attacks.reading import Reading

PAPER = "Dinur, Nissim 2003; counted as in Cohen, Nissim 2020 (originals that agree with what is published)"
_ORIGINALS = 20_000  # that are looked at
_CELLS = 2_000_000  # values in all of them together
_EXACT = 1e-9

Row = tuple[int, ...]


def found(reading: Reading, files: Sequence[Any]) -> list[Finding]:
    """The count, where the table is small.  files: JSON values of public files beside the release"""
    counted = agreeing(reading, files)
    if counted is None or counted[0] < 2:
        return []
    before, after = counted
    taken = 1 - math.log(max(after, 1)) / math.log(before)
    return [
        Finding(
            "files", "originals that agree", PAPER,
            "the intruder has the release and every public file beside it, and knows the values of each column",
            "share of what the release leaves open that the files beside it tell, in bits", taken, taken, taken,
            {"the release alone": 0.0}, None, reading.rows, taken if after < before else 0.0, None,
            "withhold figures of the original, or round them",
            {"by_the_release_alone": before, "by_everything_beside_it": after,
             "bits_open": math.log2(before), "bits_left": math.log2(max(after, 1))},
        )
    ]  # fmt: skip


def agreeing(reading: Reading, files: Sequence[Any]) -> tuple[int, int] | None:
    """(originals that agree with the release, those that agree with the files too); None for too many to look at.

    An original is a multiset of rows of quasi-identifiers in every class and sensitive value.
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
    """Per class and sensitive value every way to fill its rows."""
    held = [reading.held(c, np.arange(len(d.values))) for c, d in enumerate(reading.domains)]
    told = np.column_stack([reading.group, *(reading.codes[n] for n in reading.sensitive)])
    parts, many = [], 1
    for (g, *_), count in sorted(Counter(map(tuple, told.tolist())).items()):
        cells = [np.flatnonzero(held[c][reading.classes[g, c]]).tolist() for c in range(len(reading.quasi))]
        many *= math.comb(math.prod(map(len, cells)) + count - 1, count)
        if many > _ORIGINALS:
            return None
        parts.append(list(itertools.combinations_with_replacement(list(itertools.product(*cells)), count)))
    return parts


def _figures(reading: Reading, files: Sequence[Any]) -> Iterator[tuple[str, tuple[int, ...], float, float]]:
    """(what, columns it is of, value, how far off it may be) of every figure told that follows from the rows."""
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


def slack(told: float) -> float:
    """How far from the truth a share may be that is told with so many digits."""
    digits = len(repr(float(told)).partition(".")[2])
    return float(0.5 * 10.0**-digits + 1e-12) if digits < 12 else 1e-12


def _holds(figure: tuple[str, tuple[int, ...], float, float], rows: Sequence[Row], reading: Reading) -> bool:
    what, columns, told, off = figure
    if what == "rows":
        return abs(len(rows) - told) <= off
    if what[0] == "=":
        return abs(sum(r[columns[0]] == int(what[1:]) for r in rows) - told) <= off
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
    return abs(mine - told) <= off
