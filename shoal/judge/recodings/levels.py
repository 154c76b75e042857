"""The judge's parser of classes of a hierarchy: which values a published label means.

A hierarchy is given by its rows, or by a graph of areas whose regions must be connected, or is generated (labels,
intervals, tiles), so that the label itself lists its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.judge.finding import as_number
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.notation import MISSING, SetOf, parse


class AreaGraph:
    """Areas and their neighbors, without any hierarchy.

    weight  of every area by its name
    near    the neighbors of each area
    """

    def __init__(self, tree: Hierarchy) -> None:
        names, weights, first, second = tree.steps
        self.weight: dict[str, int] = dict(zip(names, weights, strict=True))
        self.near: dict[str, set[str]] = {name: set() for name in names}
        for a, b in zip(first, second, strict=True):
            self.near[a].add(b)
            self.near[b].add(a)

    def members(self, text: str) -> frozenset[str] | None:
        """The areas that a text lists; None if it has another name in it, or one area twice."""
        try:
            read = parse(text)
        except InputError:
            return None
        named = [v or "" for v in read.values] if isinstance(read, SetOf) else [text]
        found = frozenset(named)
        return found if len(found) == len(named) and found <= self.weight.keys() else None

    def lost(self, members: frozenset[str]) -> float:
        """0 for one area, otherwise the areas' share of the weight.

        Every unit of weight is a leaf, at least one for each area.
        """
        if len(members) < 2:
            return 0.0
        own, whole = (sum(max(self.weight[a], 1) for a in of) for of in (members, self.weight.keys()))
        return (own - 1) / max(whole - 1, 1)

    def connected(self, members: frozenset[str]) -> bool:
        """Whether the areas are connected by neighbors among them. O(areas and pairs inside)."""
        walk = [next(iter(members))]
        seen = set(walk)
        while walk:
            ahead = (self.near[walk.pop()] & members) - seen
            seen |= ahead
            walk += ahead
        return len(seen) == len(members)

    def wrong(self, texts: Iterable[str | None], star: str) -> str | None:
        """The first fault in the texts of a column, in words without values; None if all are regions or stars."""
        for text in texts:
            if text is None or text in ("", star):
                continue
            members = self.members(text)
            if members is None:
                return "a published value is no set of areas"
            if not self.connected(members):
                return "a published set of areas is not connected"
        return None


def _between(raw: str, values: Any) -> np.ndarray | None:
    """``18 .. 25``, ``2024-01-01 .. 2024-05-31``: all values in the closed interval."""
    low, dots, high = raw.partition(" .. ")
    if dots and low in values.by_text and high in values.by_text:
        return np.arange(values.by_text[low], values.by_text[high] + 1)
    a, b = as_number(low), as_number(high)
    if not dots or a is None or b is None or values.position is None:
        return None
    slack = 1e-14 * max(abs(a), abs(b))
    line = values.position[: values.size - values.missing]
    return np.flatnonzero((line >= a - slack) & (line <= b + slack))


def _alphabetic(raw: str, values: Any) -> np.ndarray:
    """``Adams .. Baker and 12 more``, ``Adams, Baker``: all values in the closed interval, in text order.

    The empty text and the text "missing" are in quotes. If two labels would have the same name, all labels have a
    number: ``Adams, Baker (group 3)``, also single values. A value can end like that too: both meanings count.
    """
    if raw.endswith(")") and raw not in values.by_text:
        bare, mark, number = raw[:-1].rpartition(" (group ")
        if mark and number.isdecimal():
            own = np.union1d(_joined(bare, values), _numbers(_named(bare, values), values))
            return np.union1d(own, _joined(raw, values))
    return _joined(raw, values)


def _joined(raw: str, values: Any) -> np.ndarray:
    """The values of a label without a number."""
    for mark in (" .. ", ", "):
        pieces = raw.split(mark)
        for cut in range(1, len(pieces)):
            low, high = mark.join(pieces[:cut]), mark.join(pieces[cut:])
            if mark == " .. ":
                high = high.rpartition(" and ")[0]
            first, last = _named(low, values), _named(high, values)
            if first and last:
                between = (t for t in values.by_text if min(first) <= t <= max(last))
                return _numbers(between if mark == " .. " else first + last, values)
    return _numbers((t for t in _named(raw, values) if t != raw), values)


def _named(shown: str, values: Any) -> list[str]:
    """The values that a label shows like this: the text itself, and the one that labels quote like this."""
    quoted = {'""': "", f'"{MISSING}"': MISSING}.get(shown, shown)
    return [t for t in {shown, quoted} if t in values.by_text]


def _numbers(texts: Iterable[str], values: Any) -> np.ndarray:
    return np.unique(np.array([values.by_text[t] for t in texts], np.int64))


def _tile(raw: str, values: Any) -> np.ndarray | None:
    """``x..x y..y``: places in a closed rectangle; an omitted side is open."""
    try:
        spans = [[float(v) if v else s for v, s in zip(p.split(".."), (-math.inf, math.inf), strict=True)]
                 for p in raw.split(" ")]  # fmt: skip
        (x0, x1), (y0, y1) = spans
    except ValueError:
        return None
    places = np.array([[float(v) for v in t.split(" ")] for t in values.texts if t])
    if not places.size:
        return None
    x, y = places[:, 0], places[:, 1]
    along = np.zeros(x.size, bool)
    for turn in (-360.0, 0.0, 360.0):
        along |= (x + turn >= x0) & (x + turn <= x1)
    return np.flatnonzero(along & (y >= y0) & (y <= y1))


GENERATED = {"labels": _alphabetic, "intervals": _between, "tiles": _tile}


def found(raw: str, column: Any) -> tuple[int, int, np.ndarray, list[float]] | None:
    """The values that a label means: its classes, or what a generated label lists, or the areas of a region."""
    tree = column.how.hierarchy
    if isinstance(tree, Hierarchy) and tree.kind == REGIONS:
        graph = AreaGraph(tree)
        members = graph.members(raw)
        if members is None or not graph.connected(members):
            return None
        known = [column.values.by_text[a] for a in members if a in column.values.by_text]
        return 0, -1, np.array(sorted(known), np.int64), [graph.lost(members)]
    if column.node is not None:
        classes = column.labels.get(raw, [])
        parts = [np.flatnonzero(column.node[level] == number) for level, number in classes]
        losses = [float(column.loss[level][p[0]]) for (level, _), p in zip(classes, parts, strict=True)]
        return (0, -1, np.unique(np.concatenate(parts)), losses) if parts else None
    if not isinstance(tree, str):
        return None
    column.certain = False
    inside = GENERATED[tree](raw, column.values)
    return None if inside is None or not inside.size else (0, -1, inside, [0.0, 1.0])
