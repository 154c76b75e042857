"""Intervals: ordered values, cut at the least cost, with the fastest algorithm for each cost.

Input     values with an order and how many records each has, and k >= 1
Feasible  a partition of the values into intervals with a count of at least k each, equal values together; one exists
          if and only if the total is at least k
Cost      the largest interval; or the sum over intervals of count squared, of range times count, or of any cost that
          a caller gives for an interval
Known     solved exactly by dynamic programming: O(n log T) for the largest interval (T the total), O(n log n) for
          squares and for range times count, O(n^2) for a caller's cost
Source    the remark in section 4 of Du, Eppstein, Goodrich, Lueker, arXiv:0904.3756, that ordered labels are
          polynomial; Galil and Park 1992 for programs with concave and convex costs
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError, within
from shoal.model.arguments import (
    FAR,
    WIDE,
    Effort,
    array_of,
    known,
    missing,
    no_effect,
    suggesting,
    threshold,
    too_few,
    whole,
)
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.threads import interruptible
from shoal.watching import watched

__all__ = ["Cut", "cut", "distinct", "interval_labels", "levels"]


UNITS = {
    "max": "records in the largest group",
    "count": "records above k, summed over groups",
    "squares": "squared records, summed over groups",
    "range": "range times records, summed over groups",
}
DECIMALS = 6  # numbers with at most this many decimals are scaled to integers
OPTIMAL = "optimal by dynamic programming over all cuts"
ROUNDED = Guarantee(factor=1 + 1e-6, additive=0, theorem=f"{OPTIMAL}, up to the rounding of floats")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cut(Shown):
    """Ordered values grouped into intervals.

    labels       int64[n]: interval of each value, 0 .. m - 1, ascending with the values
    loads        int64[m] (object[m] beyond 64 bits): records of each interval
    lows, highs  [m]: least and largest value of each interval
    cost         int or float, in the objective's unit
    certificate  Certificate, optimal up to the rounding of floats
    objective    str
    """

    labels: np.ndarray
    loads: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    cost: float
    certificate: Certificate
    objective: str

    @property
    def cuts(self) -> np.ndarray:
        """The first value of every interval except the first: an interval ends before the next cut."""
        return self.lows[1:]

    def _lines(self) -> list[str]:
        asked = f"at least k = {self.certificate.details['k']:,} asked"
        return [
            f"{several(len(self.labels), 'value')} in {several(len(self.loads), 'interval')}",
            sizes_line("records in an interval", self.loads.tolist(), asked),
            *proof_lines(self.certificate),
        ]

    def intervals(self) -> list[tuple[Any, Any]]:
        """(least, largest) value of each interval, both inclusive."""
        return list(zip(self.lows.tolist(), self.highs.tolist(), strict=True))


def distinct(values: Iterable[Any], weights: Iterable[Any] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct values in ascending order, the records of each, and the index of each given value among them.

    values   numbers, dates, or text; anything that numpy sorts. Texts that are all numbers, or all dates, are read as
             ``from_texts`` does
    weights  records of each, default 1

    Raises InputError for missing values (which have no order) and for weights that aren't counts.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"the values are one {type(values).__name__}; pass one list")
    wide = str(getattr(values, "dtype", "")) in ("Int128", "UInt128")  # numpy has no such type
    given = np.asarray(values.to_numpy()) if hasattr(values, "to_numpy") and not wide else values
    given = given if isinstance(given, np.ndarray) else _listed([*given])
    if given.ndim != 1:
        raise InputError(f"the values have {given.ndim} dimensions; pass one list")
    if given.dtype == object and any(missing(v) for v in given.tolist()):
        raise InputError("a value is missing; missing values have no place in an order, group them by themselves")
    if len(given) and given.dtype.kind in "OUT":
        listed = given.tolist()
        if all(isinstance(v, date) for v in listed):
            given = _listed(listed)
        elif all(isinstance(v, str) for v in listed) and (plain := from_texts(listed)) is not listed:
            given = _listed(plain)
    if given.dtype.kind in "fmM" and (np.isnan(given) if given.dtype.kind == "f" else np.isnat(given)).any():
        raise InputError("a value is missing; missing values have no place in an order, group them by themselves")
    given = given + 0.0 if given.dtype.kind == "f" else given  # negative zero becomes zero
    records = np.ones(len(given), np.int64) if weights is None else whole(weights, "weight")
    if len(records) != len(given):
        raise InputError(f"there are {len(given)} values and {len(records)} weights")
    try:
        found, index = np.unique(given, return_inverse=True)
    except TypeError:
        raise InputError("the values mix kinds that have no common order, such as numbers and text") from None
    sums = np.zeros(len(found), records.dtype)
    np.add.at(sums, index, records)
    return found, sums, index


def _listed(values: list[Any]) -> np.ndarray:
    """A list as an array; numbers stay numbers, integers stay integers, and moments are in UTC."""
    if values and all(isinstance(v, date) for v in values):
        values = [v.astimezone(UTC).replace(tzinfo=None) if getattr(v, "tzinfo", None) else v for v in values]
        return np.array(
            values, dtype="datetime64[us]" if any(isinstance(v, datetime) for v in values) else "datetime64[D]"
        )
    found = array_of(values, "the list", "one value after the other")
    mixed = found.dtype.kind == "U" and not all(isinstance(v, str) for v in values)
    if mixed or (found.dtype.kind == "f" and any(isinstance(v, int) and abs(v) > 1 << 53 for v in values)):
        return np.array(values, dtype=object)
    return found


def from_texts(texts: list[str], what: str = "the list") -> list[Any]:
    """Texts as numbers, days, or moments (in UTC) if all of them are; otherwise the list itself.

    what  how messages call the texts: "column 'age'"

    Raises InputError if most of the texts are numbers or dates, but not all, and if only some moments have a time zone.
    """
    readers: list[tuple[str, Callable[[str], Any]]] = [
        ("numbers", int), ("numbers", _finite), ("dates", _day), ("dates", datetime.fromisoformat)
    ]  # fmt: skip
    for kind, reader in readers:
        found, odd = [], []
        for text in texts:
            try:
                found.append(reader(text))
            except (ValueError, OverflowError):
                odd.append(text)
        if not odd:
            return _in_utc(found, what) if reader == datetime.fromisoformat else found
        like = sum(_infinite(text) for text in odd) if reader == _finite else 0  # "nan" and "inf", next to numbers
        if found and reader is not int and len(found) + like > len(odd) - like:
            raise InputError(
                f"{what} holds {kind}, and {len(set(odd)):,} of its {len(set(texts)):,} different values are none; "
                "repair them or leave their rows out"
            )
    return texts


def _finite(text: str) -> float:
    """A number; ValueError for other texts and for infinite numbers."""
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number + 0.0  # negative zero becomes zero


def _infinite(text: str) -> bool:
    """Whether a text is a number that is not finite."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _day(text: str) -> np.datetime64:
    """A day, the first of a month, or of a year; ValueError for other texts."""
    if not re.fullmatch(r"\s*[0-9]{4}(-[0-9]{2}){0,2}\s*", text):
        raise ValueError
    return np.datetime64(text.strip(), "D")


def _in_utc(moments: list[datetime], what: str) -> list[datetime]:
    """Moments in UTC, without their zones; InputError if only some have a zone."""
    zoned = sum(moment.tzinfo is not None for moment in moments)
    if 0 < zoned < len(moments):
        raise InputError(
            f"{what} holds times with a time zone and times without one, which have no common order; write all of them "
            "in one way"
        )
    return [moment.astimezone(UTC).replace(tzinfo=None) for moment in moments] if zoned else moments


@watched
@suggesting
@interruptible
def cut(
    values: Iterable[Any],
    weights: Iterable[Any] | None,
    k: int,
    objective: str | Callable[[int, int], float] = "max",
    combine: str = "sum",
    *,
    effort: str | float = "balanced",
) -> Cut:
    """Intervals of ordered values, with at least k records each, at the least cost.

    values     [n]  numbers, dates, or text, in any order, with repeats; equal values stay together
    weights    [n]  records of each value: whole numbers of at least 0; None counts each value once
    k          least records of an interval
    objective  "max": the largest interval (and among those cuts the most intervals);
               "count": the most intervals, counted as the sum of the records above k;
               "squares": sum of squared counts; "range": sum of (largest - least value) times count;
               or a function of (i, j) that returns the cost of the interval from the i-th to the (j-1)-th of
               ``distinct(values)``, inf if it is not allowed
    combine    how a function's costs add up, "sum" or "max"
    effort     accepted as for every problem; it changes neither the answer nor the time

    Raises InfeasibleError if all weights together are below k or a function forbids every cut, InputError for
    missing or unordered values, PolicyError for an unknown objective.

    Returns a ``Cut``, proved optimal: O(n log T) for "max" and a total of T, O(n log n) for "squares" and "range", O(n)
    for "count", and O(n^2) for a function, after sorting. Source: Du, Eppstein, Goodrich, Lueker 2009, the remark in
    section 4; docs/intervals.md.

    Examples:
        >>> found = cut([1, 2, 3, 10, 11, 30], None, k=2, objective="range")
        >>> found.labels.tolist(), found.cost, found.certificate.optimal
        ([0, 0, 1, 1, 2, 2], 54, True)
    """
    k, _ = threshold(k), Effort.of(effort)
    if not callable(objective):
        known("objective", objective, UNITS)
    known("way to combine costs", combine, ("sum", "max"))
    if combine != "sum" and not callable(objective):
        raise no_effect(f"combine={combine!r}", "a function as ⟨objective=⟩")
    found, records, index = distinct(values, weights)
    total = np.concatenate([np.zeros(1, records.dtype), np.cumsum(records)])
    if int(total[-1]) < k:
        raise too_few("values", int(total[-1]), k, "interval")
    if callable(objective):
        name, unit, own = getattr(objective, "__name__", "own"), "the given cost", {"combine": combine}
        parent, cost, bound = _by_own(total, k, objective, combine)
    else:
        name, unit, own = objective, UNITS[objective], {}
        column = getattr(values, "name", None)
        with nullcontext() if column is None else within(f"column {column!r}", InputError):
            parent, cost, bound = solve(found, found, total, k, objective)
    starts, ends = np.array(spans_of(parent)).T
    loads = total[ends] - total[starts]
    sizes = loads.tolist()
    details = {"k": k, **own, "groups": len(sizes), "smallest_group": min(sizes), "largest_group": max(sizes)}
    certificate = Certificate(
        cost=cost, lower_bound=tight(bound, cost, unit, OPTIMAL), unit=unit, details=details,
        guarantee=Guarantee(factor=1, additive=0, theorem=OPTIMAL) if bound == cost else ROUNDED,
        bound=OPTIMAL if bound == cost else f"{OPTIMAL}, less what rounding may have added",
    )  # fmt: skip
    labels = (np.searchsorted(starts, np.arange(len(found)), side="right") - 1)[index]
    return Cut(labels, loads, found[starts], found[ends - 1], certificate.cost, certificate, name)


def _by_own(
    total: np.ndarray, k: int, objective: Callable[[int, int], float], combine: str
) -> tuple[np.ndarray, float, float]:
    """(starts, cost, lower bound) for a cost function of the caller."""
    parent = _by_function(total, k, objective, combine)
    costs = [float(objective(i, j)) for i, j in spans_of(parent)]
    cost = math.fsum(costs) if combine == "sum" else max(costs)
    if cost < 0:
        raise PolicyError(f"the given cost adds up to {cost}; a cost is at least 0")
    return parent, cost, _safely_below(cost, len(total) - 1) if combine == "sum" else cost


def spans_of(parent: np.ndarray) -> list[tuple[int, int]]:
    """Intervals as (start, end) over the distinct values, ascending, from the chain of starts."""
    spans, end = [], len(parent) - 1
    while end > 0:
        spans.append((int(parent[end]), end))
        end = int(parent[end])
    return spans[::-1]


def solve(
    lows: np.ndarray, highs: np.ndarray, total: np.ndarray, k: int, objective: str
) -> tuple[np.ndarray, float, float]:
    """(starts, cost, lower bound) for ordered items that span lows..highs; total[i] counts the first i of them."""
    if objective == "max":
        parent, cost = _smallest_largest(total, k)
        return parent, cost, cost
    if objective == "count":
        parent, cost = _most(total, k)
        return parent, cost, cost
    return _cheapest(lows, highs, total, k, objective)


def _for(kernel: Any, numbers: np.ndarray) -> Any:
    """The compiled kernel, or its Python code if the numbers don't fit in 64 bits."""
    return getattr(kernel, "py_func", kernel) if numbers.dtype == object else kernel


def _most(total: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """The most intervals of at least k, which minimizes the records above k. One pass."""
    from shoal.kernels.labels import cut_within

    run = _for(cut_within, total)
    parent = np.empty(len(total), np.int64)
    return parent, int(total[-1]) - k * int(run(total, k, int(total[-1]), parent))


def _smallest_largest(total: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Bisection on the largest interval; each test is one pass."""
    from shoal.kernels.labels import cut_within

    run = _for(cut_within, total)
    parent = np.empty(len(total), np.int64)
    low = max(k, max(np.diff(total).tolist()))
    high = int(total[-1])
    while low < high:
        middle = (low + high) // 2
        if run(total, k, middle, parent):
            high = middle
        else:
            low = middle + 1
    run(total, k, high, parent)
    return parent, high


def _cheapest(
    lows: np.ndarray, highs: np.ndarray, total: np.ndarray, k: int, objective: str
) -> tuple[np.ndarray, float, float]:
    """(starts, cost, lower bound) for squares and range times count; exact unless values have many decimals."""
    from shoal.kernels.labels import cut_cheapest

    by_range = objective == "range"
    low, high, scale = total[1:], total[1:], 1
    if by_range:
        both, scale = _as_whole(np.concatenate([lows, highs]))
        low, high = np.split(both, 2)
    if low.dtype.kind != "f":
        span = int(high[-1]) - int(low[0]) if by_range else int(total[-1])
        if max(span, 1) * int(total[-1]) >= WIDE:
            low, high, total = low.astype(object), high.astype(object), total.astype(object)
    elif total.dtype == object:  # counts that floats can't represent: use fractions
        low, high = (np.array([Fraction(x) for x in side.tolist()], dtype=object) for side in (low, high))
    parent = np.empty(len(total), np.int64)
    run = _for(cut_cheapest, low)
    run(total, low, high, k, by_range, parent)
    costs = []
    for i, j in spans_of(parent):
        weight = total[j] - total[i]
        costs.append((high[j - 1] - low[i]) * weight if by_range else weight * weight)
    if low.dtype.kind == "f":
        cost = math.fsum(costs)
        return parent, cost, _safely_below(cost, len(low))
    exact = Fraction(sum(costs)) / scale
    if exact.denominator == 1 and scale == 1:
        return parent, int(exact), int(exact)
    try:
        return parent, float(exact), float(exact)
    except OverflowError:
        raise InputError(
            "range times weight is beyond the largest float; give the weights or the values in a larger unit"
        ) from None


def _as_whole(found: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers as integers of 1/scale if few decimals suffice; dates as their ticks; else floats unchanged."""
    if found.dtype.kind in "mM":
        return found.astype(np.int64), 1
    if found.dtype.kind in "iub":
        return (found.astype(np.int64) if max(found.tolist()) < WIDE else found.astype(object)), 1
    if found.dtype == object and all(isinstance(v, int) for v in found.tolist()):
        return found, 1
    try:
        numbers = found.astype(float)
    except (TypeError, ValueError):
        raise PolicyError("objective 'range' needs numbers or dates; use 'max' or 'squares' for text") from None
    if found.dtype.kind in "US" or not np.isfinite(numbers).all():
        raise PolicyError("objective 'range' needs finite numbers or dates; use 'max' or 'squares' for text")
    if np.abs(numbers).max(initial=0.0) > FAR:
        raise InputError("objective 'range' needs numbers up to 1e150; use a larger unit, or 'max' or 'squares'")
    for decimals in range(DECIMALS + 1):
        scale = 10**decimals
        shifted = np.rint(numbers * scale)
        if (np.abs(shifted) < 2.0**53).all() and (shifted / scale == numbers).all():
            return shifted.astype(np.int64), scale
    return numbers, 1


def _safely_below(cost: float, n: int) -> float:
    """A bound below the true optimum: a sum of n nonnegative floats errs by less than n + 4 units in the last place."""
    return max(0.0, math.nextafter(cost * (1 - 4 * (n + 4) * 2.0**-53), 0.0))


def _by_function(total: np.ndarray, k: int, cost: Callable[[int, int], float], combine: str) -> np.ndarray:
    """Dynamic programming over every start for every end, O(n^2) calls of the cost."""
    weight = total.tolist()
    n = len(weight) - 1
    best = [math.inf] * (n + 1)
    best[0] = 0.0
    parent = np.full(n + 1, -1)
    for i in range(1, n + 1):
        for j in range(i):
            if weight[i] - weight[j] < k:
                break
            if best[j] == math.inf:
                continue
            here = float(cost(j, i))
            if math.isnan(here) or here < 0:
                raise PolicyError(f"the given cost of values {j} to {i - 1} is {here}; a cost is at least 0")
            here = best[j] + here if combine == "sum" else max(best[j], here)
            if here < best[i]:
                best[i], parent[i] = here, j
    if best[n] == math.inf:
        raise InfeasibleError("the given cost forbids every cut into intervals of at least k")
    return parent


def interval_labels(lows: Sequence[Any] | np.ndarray, highs: Sequence[Any] | np.ndarray) -> list[str]:
    """ "18 .. 25" for each interval, or the value itself if there is only one."""
    texts = _texts([*np.asarray(lows).tolist(), *np.asarray(highs).tolist()])
    pairs = zip(texts[: len(lows)], texts[len(lows) :], strict=True)
    return [low if low == high else f"{low} .. {high}" for low, high in pairs]


def _texts(values: Sequence[Any] | np.ndarray) -> list[str]:
    """Each value as text, a float by 15 digits, or by all that distinguish it if 15 merge two of them."""
    held = np.asarray(values).tolist() if isinstance(values, np.ndarray) else [*values]
    short = [f"{v:.15g}" if isinstance(v, float) else str(v) for v in held]
    return short if len({*short}) == len({*held}) else [repr(v) if isinstance(v, float) else str(v) for v in held]


@suggesting
def levels(
    values: Sequence[Any],
    counts: Sequence[int] | np.ndarray,
    ks: Sequence[int],
    objective: str = "max",
    names: Sequence[str] | None = None,
) -> list[list[str]]:
    """A generalization hierarchy of intervals: cut at each k, and join those at the next.

    values     distinct values of the column, numbers, dates, or text; with names, values can be equal
    counts     records of each
    ks         increasing; every level joins intervals of the level below to at least its k
    objective  "max", "count", "squares", or "range", at every level
    names      how each value is written in the table, by default its own text

    Returns one row for each value, in the order given: [name, interval at ks[0], ..., "*"], the form of an ARX
    hierarchy file. The last level is one group. Levels that the total cannot fill are left out.

    Raises InputError for repeated values (with names, for repeated names) or lengths that differ, PolicyError for ks
    that do not increase or an unknown objective.
    """
    known("objective", objective, UNITS)
    steps = [int(k) for k in ks]
    if any(b <= a for a, b in pairwise(steps)):
        raise PolicyError(f"the levels' k are {steps}; give them in increasing order")
    found, records, index = distinct(values, counts)
    texts = [v if isinstance(v, str) else t for v, t in zip(values, _texts(found[index]), strict=True)]
    shown = texts if names is None else [str(name) for name in names]
    if len(shown) != len(index):
        raise InputError(f"there are {len(index)} values and {len(shown)} names")
    if len(set(shown)) < len(shown) or (names is None and len(found) < len(index)):
        raise InputError("the values of a hierarchy must all differ; add up the counts of equal ones first")
    columns = [shown]
    total = sum(records.tolist())
    place, lows, highs = np.arange(len(found)), found, found  # the level's interval of each value, ascending
    named = dict(zip(index.tolist(), shown, strict=True))  # a single value keeps its text from the table
    for k in steps:
        if k > total:
            break
        running = np.concatenate([np.zeros(1, records.dtype), np.cumsum(records)])
        first, end = np.array(spans_of(solve(lows, highs, running, k, objective)[0])).T
        place = np.searchsorted(first, place, side="right") - 1
        lows, highs, records = lows[first], highs[end - 1], running[end] - running[first]
        texts = interval_labels(lows, highs)
        members = np.bincount(place[index])
        column = [named[v] if members[place[v]] == 1 else texts[place[v]] for v in index.tolist()]
        columns.append(column)
        if len(lows) == 1:
            break
    columns.append(["*"] * len(index))
    return [list(row) for row in zip(*columns, strict=True)]
