"""A column's values before and after in a few bars, without telling whose value was hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.engines.recognize import CODES, named_words
from shoal.model.meaning import Members, places
from shoal.utility.decode import Column

BINS = 12
Bin = tuple[str, Any, Any]  # label; a value and None, or low and high (without it) of a span


def distribution(
    column: Column, rows: np.ndarray, own: tuple[Sequence[str | None], np.ndarray], least: int, step: int
) -> list[dict[str, Any]]:
    """Bars over what the release itself names: {"label", "before", "after"}, and one for all other values.

    rows   of each cell of the release; own: the original's values and their rows
    least  values that the release shows on fewer rows are among the others
    step   counts of the original are rounded to its multiples, so that no difference tells whose value was hidden, and
           None below it; 0: None everywhere, for a column of which so little is hidden that a difference would tell

    ``after`` spreads a cell over its members; stars are left out, a report counts them apart.
    """
    bins = bins_of(column, rows, least)
    after = rows @ shares_of(column, bins)
    surely, maybe = (rows @ known for known in possible(column, bins))
    counted = np.bincount(places_in(own[0], bins, column), weights=own[1], minlength=len(bins) + 1).astype(np.int64)
    out = [
        {"label": label, "before": disclosed(int(n), int(low), int(high), step), "after": round(float(a), 3)}
        for (label, *_), n, a, low, high in zip(
            [*bins, ("all other values",)], counted, after, surely, maybe, strict=True
        )
    ]
    return out if out[-1]["after"] or counted[-1] else out[:-1]


def pictured(column: Column, name: str) -> Column:
    """The column as its bars show it: codes are labels, each with a bar of its own, and never a span of numbers.

    Codes are the values of a hierarchy of labels, numbers whose column's name says so, and few whole numbers published
    one by one that lie too far apart to stand in a row.
    """
    if column.ruler is None:
        return column
    present = column.at[~np.isnan(column.at)]
    lone = all(c.everything or (c.low is None and len(c.named) == 1) for c in column.cells)
    few = column.whole and lone and present.size <= BINS < present.max() - present.min() + 1
    coded = column.ruler == "number" and ((column.whole and bool(named_words(name) & CODES)) or few)
    return replace(column, ruler=None) if column.classes or coded else column


def bins_of(column: Column, rows: np.ndarray, least: int, most: int = BINS) -> list[Bin]:
    """At most about ``most`` bins of what the release itself names on ``least`` rows or more."""
    return _spans(column, rows, least, most) if column.ruler is not None else _names(column, rows, least, most)


def shares_of(column: Column, bins: Sequence[Bin]) -> np.ndarray:
    """float64[cells, bins + 1]: the share of each cell in each bin, the last one all others; a star has none."""
    shares = np.zeros((len(column.cells), len(bins) + 1))
    if column.ruler is None and all(_listed(c) or c.everything for c in column.cells):
        at, into = _named_in(column, bins)
        sizes = np.array([max(len(c.named), 1) for c in column.cells])
        shares[at, into] = 1 / sizes[at]
        shares[:, -1] = np.where([c.everything for c in column.cells], 0.0, np.maximum(1 - shares.sum(axis=1), 0.0))
        return shares
    if column.ruler is not None:
        shares[:, :-1] = _spread(column, bins)
    else:
        for i, cell in enumerate(column.cells):
            if not cell.everything:
                shares[i, :-1] = [_share(cell, b[1], column) for b in bins]
    shares[:, -1] = np.where([c.everything for c in column.cells], 0.0, np.maximum(1 - shares.sum(axis=1), 0.0))
    return shares


def _spread(column: Column, bins: Sequence[Bin]) -> np.ndarray:
    """float64[cells, bins]: the share of each cell's span in each bin's; whole numbers and days reach to the next."""
    wide = 1.0 if column.whole or column.ruler == "date" else 0.0
    low, high = column.ends[:, :1], column.ends[:, 1:2] + wide
    first, last = _edges(bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.maximum(np.minimum(high, last) - np.maximum(low, first), 0.0) / (high - low)
    part = np.where(high == low, (first <= low) & (low < last), part)
    return np.where(np.isfinite(low + high), part, 0.0)


def _edges(bins: Sequence[Bin]) -> np.ndarray:
    """float64[2, bins]: where spans begin and end."""
    return np.array([b[1:] for b in bins], np.float64).reshape(-1, 2).T


def places_in(values: Sequence[str | None], bins: Sequence[Bin], column: Column) -> np.ndarray:
    """int64[values]: the bin of each value of the original; the last one where it is in none."""
    if column.ruler is None:
        into = {b[1]: j for j, b in enumerate(bins)}
        return np.array([into.get(v, len(bins)) for v in values], np.int64)
    at, (first, last) = places(values, column.ruler), _edges(bins)
    found = np.searchsorted(first, at, "right") - 1  # spans lie in order, one beginning where the last ends
    inside = (found >= 0) & (at < np.append(last, -np.inf)[found])
    return np.where(inside, found, len(bins))


def possible(column: Column, bins: Sequence[Bin]) -> tuple[np.ndarray, np.ndarray]:
    """bool[cells, bins + 1] twice: whether a row of a cell is surely in a bin, and whether it may be."""
    maybe = np.zeros((len(column.cells), len(bins) + 1), bool)
    if column.ruler is None and all(_listed(c) or c.everything for c in column.cells):
        maybe[_named_in(column, bins)] = True
        maybe[:, -1] = maybe.sum(axis=1) < [len(c.named) for c in column.cells]
        maybe[[c.everything for c in column.cells]] = True
        return maybe & (maybe.sum(axis=1) == 1)[:, None], maybe
    if column.ruler is not None:
        low, high = column.ends[:, :1], column.ends[:, 1:2]
        first, last = _edges(bins)
        maybe[:, :-1] = (high >= first) & (low < last)
        maybe[:, -1] = [None in c.named for c in column.cells]
        maybe[:, -1] |= ~((low >= first[0]) & (high < last[-1]))[:, 0] if bins else True
        maybe[[c.low is not None for c in column.cells] & ~np.isfinite(low + high)[:, 0]] = True
    else:
        inside = {b[1] for b in bins}
        for i, cell in enumerate(column.cells):
            maybe[i, :-1] = [b[1] in cell for b in bins]
            maybe[i, -1] = cell.pattern is not None or cell.low is not None or bool(cell.named - inside)
    maybe[[c.everything for c in column.cells]] = True
    return maybe & (maybe.sum(axis=1) == 1)[:, None], maybe


def _listed(cell: Members) -> bool:
    """Whether a cell stands for the values that it names, and no others."""
    return not cell.everything and cell.low is None and cell.pattern is None


def _named_in(column: Column, bins: Sequence[Bin]) -> tuple[list[int], list[int]]:
    """(cell, bin) wherever a cell names the value of a bin.  O(values named)."""
    into = {b[1]: j for j, b in enumerate(bins)}
    known = into.keys()
    found = [(i, into[v]) for i, cell in enumerate(column.cells) for v in known & cell.named]
    return [i for i, _ in found], [j for _, j in found]


def disclosed(n: int, surely: int, maybe: int, step: int) -> int | None:
    """A count of the original as it may be told beside the release; None where it is not.

    surely, maybe  the least and the most that it can be, by the release

    Rounded to a multiple of ``step``, and so far inside of both that what is told always leaves a step of numbers: the
    nearest multiple may be one that only the least or the most is rounded to, and tells that none, or all, of the
    hidden values are this one.
    """
    if surely == maybe:
        return round_to(n, step)
    least = 2 * step if 0 < surely < step else step  # below it nothing is said, which must say little as well
    if not step or n < least or (surely < least and maybe < least + step):
        return None
    low = max(least, -(-(2 * surely + step) // (2 * step)) * step) if surely else least
    high = (2 * maybe - step) // (2 * step) * step
    return None if high < low else min(max(round_to(n, step) or step, low), high)


def round_to(n: int, step: int) -> int | None:
    """The nearest multiple, halves up; None for fewer than ``step``, nothing included, and where there is no step."""
    return None if not step or n < step else (2 * n + step) // (2 * step) * step


def _names(column: Column, rows: np.ndarray, least: int, most: int) -> list[Bin]:
    """The values that most rows of the release show or may show."""
    weight = dict.fromkeys(column.known, 0.0)
    for cell, n in zip(column.cells, rows.tolist(), strict=True):
        if not cell.everything and cell.named:
            for value in cell.named:
                weight[value] += n / len(cell.named)
    often = sorted((v for v, w in weight.items() if w >= least), key=lambda v: (-weight[v], str(v)))
    at = dict(zip(column.known, column.at.tolist(), strict=True))  # where codes are numbers they stand in their order
    shown = often[:most] if any(at[v] != at[v] for v in often[:most]) else sorted(often[:most], key=at.__getitem__)
    return [("missing" if v is None else v, v, None) for v in shown]


def _spans(column: Column, rows: np.ndarray, least: int, most: int) -> list[Bin]:
    """Round steps over what the release shows, wide as 1, 2 or 5 times a power of ten; days in steps alike."""
    ends = column.ends[rows >= least, :2]
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not ends.size:
        return []
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    exact = column.whole or column.ruler == "date"
    step = round_step((high - low) / most)
    step = max(step, 1.0) if exact else step
    start = math.floor(low / step)
    stop = math.floor(high / step) + 1
    return [(_named(i * step, (i + 1) * step, column, exact), i * step, (i + 1) * step) for i in range(start, stop)]


def round_step(least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is no less, in the unit of ``least``; 1 for nothing."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def _named(low: float, high: float, column: Column, exact: bool) -> str:
    if column.ruler in ("date", "moment"):
        return str(np.datetime64(math.floor(low), "D"))  # a step may begin before the year 1 or end after 9999
    if exact:
        return f"{low:.0f}" if high - low == 1 else f"{low:.0f} to {high - 1:.0f}"
    return f"{low:.6g} up to {high:.6g}"


def _share(cell: Members, value: str | None, column: Column) -> float:
    """The share of a value among a cell's members, where no span tells it."""
    if cell.low is None and cell.pattern is None:
        return float(value in cell.named) / max(len(cell.named), 1)
    return float(value in cell) / max(int(cell.held(column.known, column.at).sum()), 1)
