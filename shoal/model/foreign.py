"""Cells in the notations of other tools, interpreted with the original's values.

ARX writes stars, masks such as ``476**``, sets ``{a, b}``, and intervals ``[20, 25[``. sdcMicro writes missing values.
anonypy writes ``20-25`` for numbers and ``a,b`` for other values, each as a list of one, which pandas writes as
``['a,b']``. shoal's own notation is defined by ``model.notation`` and the hierarchies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError
from shoal.model.cards import several
from shoal.model.hierarchy import Hierarchy
from shoal.model.members import from_to, place, places
from shoal.model.notation import RangeOf, SetOf, in_order, marks_of, notations_of, parse, reader_of

_INTERVAL = re.compile(r"([\[\]\(])\s*(-?[\d.e+]+)\s*[,;]\s*(-?[\d.e+]+)\s*([\[\]\)])\Z")
_DASH = re.compile(r"(-?[\d.]+) ?(?:-|\.\.) ?(-?[\d.]+)\Z")
_END = re.compile(r"(<=?|>=?)\s*(-?[\d.]+)\Z")
_ALONE = re.compile(r"\[(['\"])((?:(?!\1).)*)\1\]\Z", re.DOTALL)
STARS = ("*", "NULL", "NA", "?")
ORDER = "order"  # the ruler of a column with an explicit order of values


class Domain(NamedTuple):
    """The distinct values of a column of the original: numbers and dates in order, a missing value last.

    at  float64[values]  positions of the values, NaN for a missing value; None if the values are neither numbers nor
        dates
    """

    values: tuple[str | None, ...]
    ruler: str | None
    at: np.ndarray | None
    number: dict[str | None, int]

    @property
    def scaled(self) -> np.ndarray | None:
        """``at`` times the power of two that brings the largest position near 1, so that no sum of squares overflows or
        vanishes."""
        if self.at is None or not self.at.size or np.isnan(self.at).all():
            return self.at
        return np.ldexp(self.at, -np.frexp(np.nanmax(np.abs(self.at)))[1])

    def place(self, text: str) -> float | None:
        """The position of a value, or of a text that is written like one; None if it has none."""
        if self.ruler != ORDER or self.at is None:
            return place(text, self.ruler)
        return float(self.at[self.number[text]]) if text in self.number else None


class Spread(NamedTuple):
    """The values that the distinct cells of a column stand for, as runs of the domain. Within a cell, all are equally
    likely.

    cell, start, stop  int64[runs]  domain[start:stop] belongs to the cell
    size               int64[cells] number of values that each cell stands for
    wild               bool[cells]  whether it is a star, or a missing value if the original has none
    unknown            number of cells that no notation explains; they count as stars
    stated             float64[cells]  loss of labels of a hierarchy, ranges, and sets, which follows from their text;
                       or NaN
    """

    cell: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    size: np.ndarray
    wild: np.ndarray
    unknown: int
    stated: np.ndarray

    def share(self, low: int, high: int) -> np.ndarray:
        """float64[cells]: the share of each cell's values in domain[low:high]."""
        inside = np.clip(np.minimum(self.stop, high) - np.maximum(self.start, low), 0, None)
        return np.bincount(self.cell, weights=inside, minlength=self.size.size) / self.size

    def marginal(self, rows: np.ndarray, values: int) -> np.ndarray:
        """float64[values]: the expected number of rows of each value. rows: number of rows of each cell."""
        weight = (rows / self.size)[self.cell]
        edges = np.zeros(values + 1)
        np.add.at(edges, self.start, weight)
        np.add.at(edges, self.stop, -weight)
        return np.cumsum(edges)[:-1]

    def means(self, at: np.ndarray) -> np.ndarray:
        """float64[cells]: the mean position of each cell's values. A missing value counts as the mean of all values."""
        filled = np.where(np.isnan(at), np.nanmean(at) if not np.isnan(at).all() else 0.0, at)
        upto = np.concatenate([[0.0], np.cumsum(filled)])
        return np.bincount(self.cell, weights=upto[self.stop] - upto[self.start], minlength=self.size.size) / self.size

    def loss(self, domain: Domain) -> np.ndarray:
        """float64[cells]: 0 for a value, 1 for a star, NCP for labels, sets, and ranges of shoal's notation.

        For other notations: the share of the column's span for numbers, otherwise (values - 1) / (all values - 1).
        """
        line = domain.scaled
        if line is None or np.isnan(line).all():
            held = (self.size - 1) / max(len(domain.values) - 1, 1)
            return np.where(self.wild, 1.0, np.where(np.isnan(self.stated), held, self.stated))
        at = np.where(np.isnan(line), np.nanmax(line), line)
        low, high = np.full(self.size.size, np.inf), np.full(self.size.size, -np.inf)
        np.minimum.at(low, self.cell, at[self.start])
        np.maximum.at(high, self.cell, at[self.stop - 1])
        span = (high - low) / max(float(at.max() - at.min()), 1e-300)
        return np.where(self.wild, 1.0, np.where(np.isnan(self.stated), span, self.stated))


def domain_of(texts: Sequence[str | None], order: Sequence[str] | None = None, notation: str | None = None) -> Domain:
    """The domain of a column, from its distinct values.

    order     order of the values, if the column has one
    notation  of its dates or numbers; None: the only notation that fits every value, if there is exactly one
    """
    present = [t for t in texts if t is not None]
    if order is None and (bands := in_order(present)) is not None:
        order = [present[i] for i in bands]
    if order is not None:
        rank = {t: i for i, t in enumerate(t for t in order if t in set(present))}
        values = (*rank, *([None] if len(present) < len(texts) else []))
        line = np.array([np.nan if v is None else rank[v] for v in values], float)
        return Domain(values, ORDER, line, {v: i for i, v in enumerate(values)})
    lines = ((r, places(present, r)) for r in ("number", "date"))
    ruler = next((r for r, line in lines if line.size and np.isfinite(line).all()), None)  # infinite: no number
    if ruler is None and present:
        found = [notation] if notation is not None else notations_of(present) or marks_of(present)
        ruler = found[0] if len(found) == 1 and all(place(t, found[0]) is not None for t in present) else None
    key: Any = (lambda t: place(t, ruler)) if ruler else None
    values = (*sorted(present, key=key), *([None] if len(present) < len(texts) else []))
    at = places(values, ruler) if ruler else None
    return Domain(values, ruler, at, {v: i for i, v in enumerate(values)})


def spread(texts: Sequence[str | None], domain: Domain, hierarchy: Any = None, column: str = "") -> Spread:
    """The values that distinct cells of a column stand for. O(texts values) for masks, otherwise O(texts log values).

    Raises PolicyError for a hierarchy that doesn't cover the domain.
    """
    below, paid = _labels(hierarchy, domain, column)
    texts = [t if t is None or t in domain.number else _ALONE.sub(r"\2", t) for t in texts]
    stated = np.array([np.nan if t is None else paid[t] if t in paid else _stated_loss(t, domain) for t in texts])
    runs: list[tuple[int, int, int]] = []
    wild = np.zeros(len(texts), bool)
    unknown = 0
    for i, text in enumerate(texts):
        found = None if _starred(text, domain) else _runs(text, domain, below)
        if found is None:
            wild[i] = True
            unknown += not _starred(text, domain)
            found = [(0, len(domain.values))]
        runs += [(i, a, b) for a, b in found]
    cell, start, stop = np.array(runs, np.int64).reshape(-1, 3).T
    size = np.bincount(cell, weights=stop - start, minlength=len(texts)).astype(np.int64)
    return Spread(cell, start, stop, np.maximum(size, 1), wild, unknown, stated)


def lost_cells(column: str, found: Spread, hierarchy: Any) -> str:
    """A note on the cells of a column that nothing explains, or an empty text if there are none."""
    if not found.unknown:
        return ""
    why = "pass its hierarchy" if hierarchy is None else "its hierarchy does not have them"
    return f"column {column!r}: {several(found.unknown, 'different cell')} not understood, and counted as stars; {why}"


def unfit_hierarchy(column: str, texts: Iterable[str | None], hierarchy: Any) -> str:
    """A note on a hierarchy that has none of the distinct cells of a column, or an empty text if it has one.

    Built hierarchies, such as intervals, list no cells, and refuse values that they can't read.
    """
    cells = {t for t in texts if t is not None and t not in STARS and set(t) != {"*"} and t}
    rule = Hierarchy.of(hierarchy)
    if not cells or rule.kind != "rows" or any(not cells.isdisjoint(row) for row in rule.rows):
        return ""
    return f"the hierarchy of {column!r} has none of the column's values, so it explains none; check the file"


def _starred(text: str | None, domain: Domain) -> bool:
    return text not in domain.number and (text is None or text in STARS or not text or set(text) == {"*"})


def _runs(text: str | None, domain: Domain, below: Mapping[str, list[int]]) -> list[tuple[int, int]] | None:
    """Runs of the domain that a cell stands for; None if no notation explains the cell, or no value is in it."""
    if text in domain.number:
        return [(domain.number[text], domain.number[text] + 1)]
    assert text is not None  # ``_starred`` and the domain cover missing cells
    if text in below:
        return _joined(below[text])
    return _numbers(text, domain) or _sets(text, domain) or _mask(text, domain)


def _numbers(text: str, domain: Domain) -> list[tuple[int, int]] | None:
    """The run of the domain in an interval of numbers or dates; None if the text is no interval, or no value is in
    it."""
    if domain.at is None:
        return None
    at = domain.at[~np.isnan(domain.at)]
    low, high, left, right = -np.inf, np.inf, True, True  # both ends are included
    alone, numbers = domain.place(text), domain.ruler in (None, "number")  # 31.12.2024 and 1.234 only look like numbers
    if numbers and (found := _INTERVAL.match(text)):
        low, high, left, right = float(found[2]), float(found[3]), found[1] == "[", found[4] == "]"
    elif numbers and (found := _DASH.match(text)):
        low, high = float(found[1]), float(found[2])
    elif numbers and (found := _END.match(text)):
        low, high = (-np.inf, float(found[2])) if found[1][0] == "<" else (float(found[2]), np.inf)
        left = right = "=" in found[1]
    elif domain.ruler is not None and (between := from_to(text, domain.ruler)):
        low, high = between
    elif alone is not None:  # 20.0 for 20
        low = high = alone
    else:
        ends = parsed(text)
        if not isinstance(ends, RangeOf) or ends.low is None:
            return None
        first, last = _end(ends.low, domain), None if ends.high is None else _end(ends.high, domain)
        if first is None or (last is None and ends.high is not None):
            return None
        start = int(np.searchsorted(at, first, "left"))
        stop = len(domain.values) if last is None else int(np.searchsorted(at, last, "right"))
        return [(start, stop)] if start < stop else None
    start = int(np.searchsorted(at, low, "left" if left else "right"))
    stop = int(np.searchsorted(at, high, "right" if right else "left"))
    return [(start, stop)] if start < stop else None


def _end(text: str, domain: Domain) -> float | None:
    """The position of the end of a range. ``>=90`` and ``<=18`` stand for all numbers beyond."""
    at = domain.place(text)
    if at is None and domain.ruler == "number" and (found := _END.match(text)) and "=" in found[1]:
        return -np.inf if found[1][0] == "<" else np.inf
    return at


def parsed(text: str) -> Any:
    """A text of shoal's notation, as ``notation.parse`` reads it; None for other texts."""
    try:
        return parse(text)
    except InputError:
        return None


def _sets(text: str, domain: Domain) -> list[tuple[int, int]] | None:
    found = parsed(text)
    if isinstance(found, str):
        parts: Sequence[str | None] = [found]
    elif isinstance(found, SetOf):
        parts = [None if p == "" and p not in domain.number else p for p in found.values]
    else:
        parts = []
    for candidate in (parts, text.strip("{}[]()").split(", "), text.strip("{}[]()").split(",")):
        if candidate and all(p in domain.number for p in candidate):
            return _joined([domain.number[p] for p in candidate])
    return None


def _mask(text: str, domain: Domain) -> list[tuple[int, int]] | None:
    """The values that a mask such as 476** or **6 stands for: of the same length, and equal at all other characters."""
    if "*" not in text:
        return None
    rule = re.compile("".join("." if c == "*" else re.escape(c) for c in text))
    return _joined([i for i, v in enumerate(domain.values) if v is not None and rule.fullmatch(v)]) or None


def _joined(codes: Sequence[int]) -> list[tuple[int, int]]:
    """Codes as runs of consecutive codes."""
    out: list[tuple[int, int]] = []
    for code in sorted(set(codes)):
        if out and out[-1][1] == code:
            out[-1] = (out[-1][0], code + 1)
        else:
            out.append((code, code + 1))
    return out


def _stated_loss(text: str, domain: Domain) -> float:
    """The loss of a value, of a set by its members, and of a range by its ends; NaN for other texts."""
    if text in domain.number:
        return 0.0
    found = parsed(text)
    if isinstance(found, SetOf):
        return (len(found.values) - 1) / max(len(domain.values) - 1, 1)
    if not isinstance(found, RangeOf) or domain.at is None or found.low is None:
        return np.nan
    present = domain.at[~np.isnan(domain.at)]
    if not present.size:
        return np.nan
    least, most = float(present.min()), float(present.max())
    beyond = most + max(most - least, 1.0, abs(most) * 1e-9)  # the position of a missing value
    low = domain.place(found.low)
    high = beyond if found.high is None else domain.place(found.high)
    if low is None or high is None:
        return np.nan
    span = (beyond if present.size < domain.at.size else most) - least
    return min((high - low) / (span or 1.0), 1.0)  # a domain of one value has length 1, as in the release's own loss


def _labels(hierarchy: Any, domain: Domain, column: str) -> tuple[dict[str, list[int]], dict[str, float]]:
    """For each label of a hierarchy, the codes below it and its loss."""
    if hierarchy is None:
        return {}, {}
    present = [v for v in domain.values if v is not None]
    notation = None if domain.ruler in (None, ORDER, "number", "date") else domain.ruler
    resolved = Hierarchy.of(hierarchy).resolve(present, column, reader_of(notation))
    out: dict[str, list[int]] = {}
    paid = dict.fromkeys(present, 0.0)
    for level, labels, leaves in zip(resolved.node[1:-1], resolved.labels[1:-1], resolved.leaves[1:-1], strict=True):
        for i, node in enumerate(level.tolist()):
            out.setdefault(labels[node], []).append(domain.number[present[i]])
            paid.setdefault(labels[node], float(leaves[i] - 1) / max(int(resolved.leaves[-1, 0]) - 1, 1))
    return out, paid
