"""The class program of a small table as a matrix, and the bound that prices of its rows prove.

A solution states how many rows of which row class are published as which pattern.

Columns  x  rows of a row class published as a pattern, for every row class that fits it
         z  whether a pattern is used: then it has at least k rows, otherwise none
         a  number of parts of a pattern with at most g rows of any value: each has at least k and l g rows
            (``part_sizes``)
         w  whether a value is present in a pattern: at least u are, if it is used
With integral z, a, and w, the rest is a flow from row classes through pairs (pattern, value) to patterns, which is
integral: only z, a, and w are declared integer. Every line but "each row is published" belongs to one pattern.

Let u be a price for each row of a row class, of either sign. A solution costs the sum of u over all rows plus, for each
class of rows published as a pattern, the sum of (loss - u) over its rows. Take the least such sum of each pattern. A
bound is the sum of u plus the negative ones of these least sums. A solution that uses a pattern, or a row of a row
class in it, costs at least this bound plus the least sum over the pattern's classes, or over those with such a row.

The least sums are found greedily: the cheapest row of as many values as needed, then the cheapest others, up to the
least size and as long as they are negative, with at most the allowed number of each value (an exchange argument).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csr_array, vstack

from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.privacy import Requirement
from shoal.problems.tables.methods.pattern_cover import Patterns

if TYPE_CHECKING:
    from shoal.kernels.tables.subsets import GroupSorts


@dataclass(frozen=True, eq=False)
class RowClasses:
    """Rows with the same type, and the same values of the sensitive columns with conditions.

    of     int64[m]     row class of each cell
    type   int64[r]     type of each row class
    value  int64[r, s]  its value in each of those columns
    count  int64[r]
    """

    of: np.ndarray
    type: np.ndarray
    value: np.ndarray
    count: np.ndarray


def row_classes_of(histogram: Histogram, need: Requirement) -> RowClasses:
    """The row classes of a table. O(m log m)."""
    of_type, _ = histogram.types
    columns = list(need.sensitive_columns)
    value = histogram.sensitive[:, columns].astype(np.int64)
    both = np.column_stack([of_type, value])
    key = mixed_radix(both, [int(c.max(initial=0)) + 1 for c in both.T])
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    of = of.reshape(-1).astype(np.int64)
    count = np.bincount(of, weights=histogram.count, minlength=first.size).astype(np.int64)
    return RowClasses(of, of_type[first], value[first], count)


@dataclass(frozen=True, eq=False)
class PatternFits:
    """Which row class fits which pattern: row_class int64[n], pattern int64[n], rising.

    Patterns without eligible groups have no entries.
    """

    row_class: np.ndarray
    pattern: np.ndarray
    patterns: int


def places_of(row_classes: RowClasses, found: Patterns, need: Requirement) -> PatternFits:
    """The pairs of row class and pattern, from the types that fit each pattern. O(n log n) for n pairs."""
    types = int(row_classes.type.max()) + 1
    by_type = np.argsort(row_classes.type, kind="stable")
    begin = np.searchsorted(row_classes.type[by_type], np.arange(types))
    each = np.bincount(row_classes.type, minlength=types)[found.member]
    pattern = np.repeat(np.repeat(np.arange(found.loss.size), np.diff(found.start)), each)
    inside = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    row_class = by_type[np.repeat(begin[found.member], each) + inside]
    good = np.ones(found.loss.size, bool)
    for i, j in enumerate(need.sensitive_columns):
        key = np.unique(pattern * (int(row_classes.value[:, i].max()) + 1) + row_classes.value[row_class, i])
        values = np.bincount(key // (int(row_classes.value[:, i].max()) + 1), minlength=good.size)
        good &= values >= max(need.frequency[j], need.distinct[j])
    return PatternFits(row_class[good[pattern]], pattern[good[pattern]], found.loss.size)


class PatternUses(NamedTuple):
    """Columns that count how often a pattern is used: column int64[u], and the rows that one use needs float64[u]."""

    column: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class PatternModel:
    """An integer program: least cost y with low <= lines y <= high and 0 <= y <= most.

    lines  csr_array[r, c], low, high  float64[r]; owner  int64[r] pattern of each line, or -1 for "each row is
           published"; the other sums are at least ``low``, which is 0 except for lines of several patterns, whose owner
           is above all others
    cost   float64[c], most  float64[c], pattern  int64[c], whole  bool[c]; the first n columns are x
    """

    lines: csr_array
    low: np.ndarray
    high: np.ndarray
    owner: np.ndarray
    cost: np.ndarray
    most: np.ndarray
    pattern: np.ndarray
    whole: np.ndarray
    n: int
    uses: PatternUses

    @property
    def patterns(self) -> int:
        """The number of patterns; each has a column of every kind of use."""
        return int(self.pattern.max(initial=-1)) + 1

    def with_lines(self, lines: csr_array, low: np.ndarray) -> PatternModel:
        """This model with more conditions, ``lines @ y >= low``."""
        return replace(
            self,
            lines=csr_array(vstack([self.lines, lines])),
            low=np.concatenate([self.low, low]),
            high=np.concatenate([self.high, np.full(low.size, np.inf)]),
            owner=np.concatenate([self.owner, np.full(low.size, self.patterns)]),
        )

    def with_only(self, some: np.ndarray) -> PatternModel:
        """This model with some of its lines, bool[r]."""
        return replace(
            self, lines=csr_array(self.lines[some]), low=self.low[some], high=self.high[some], owner=self.owner[some]
        )


class _Lines:
    """Lines and columns of a program, collected piece by piece."""

    def __init__(self) -> None:
        self.row: list[np.ndarray] = []
        self.col: list[np.ndarray] = []
        self.value: list[np.ndarray] = []
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []
        self.owner: list[np.ndarray] = []
        self.most: list[np.ndarray] = []
        self.pattern: list[np.ndarray] = []
        self.height = self.width = 0

    def columns(self, most: np.ndarray, pattern: np.ndarray) -> np.ndarray:
        """Add columns with their upper bounds and their patterns; returns their numbers."""
        self.most.append(most.astype(float))
        self.pattern.append(pattern)
        self.width += most.size
        return np.arange(self.width - most.size, self.width)

    def lines(self, owner: np.ndarray, *terms: tuple[np.ndarray, np.ndarray, np.ndarray | float]) -> None:
        """Add lines with sums of at least 0, one for each owner; a term is (line, column, factor)."""
        for row, col, value in terms:
            self.row.append(row + self.height)
            self.col.append(col)
            self.value.append(np.broadcast_to(np.asarray(value, float), row.shape))
        self.low.append(np.zeros(owner.size))
        self.high.append(np.full(owner.size, np.inf))
        self.owner.append(owner)
        self.height += owner.size


class _SensitiveLimits:
    """The conditions of each sensitive column (number, l, u), and what its parts imply.

    The parts of one column can imply that k rows are present and that all other u are met.
    """

    def __init__(self, need: Requirement) -> None:
        self.columns = [(i, need.frequency[j], need.distinct[j]) for i, j in enumerate(need.sensitive_columns)]
        self.plain = any(
            l > 1 and u <= l and all(v == 1 for j, _, v in self.columns if j != i) for i, l, u in self.columns
        )


def part_sizes(k: int, l: int) -> np.ndarray:
    """int64[p] rising: numbers g; an eligible class has eligible parts with at most one of these g rows of each value.

    The rows of a class of n rows, sorted by value and dealt to n // l buckets, form buckets of at least l rows with
    different values. As many buckets as surely contain k rows, or fewer than twice as many, form a part; a class of
    fewer buckets is one part.
    """
    return np.arange(max(k // l, 1), 2 * max(-(-k // l), 1))


def _pairs(row_classes: RowClasses, places: PatternFits, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The pattern of each pair (pattern, value) that occurs, and the pair of each place."""
    base = int(row_classes.value[:, i].max()) + 1
    pair, which = np.unique(places.pattern * base + row_classes.value[places.row_class, i], return_inverse=True)
    return pair // base, which.reshape(-1)


def least_sizes(row_classes: RowClasses, places: PatternFits, need: Requirement) -> np.ndarray:
    """float64[q]: the least number of rows of a used pattern; more than all rows that fit it if no set is eligible.

    n rows with at most n / l of each value exist if the rows of the values, each counted up to n // l times, are at
    least n. If not, they don't exist for any n with the same n // l either. O(n) for each n // l examined.
    """
    q, count = places.patterns, row_classes.count[places.row_class].astype(float)
    out = np.full(q, need.smallest)
    size = np.bincount(places.pattern, weights=count, minlength=q)
    for i, j in enumerate(need.sensitive_columns):
        l = need.frequency[j]
        if l < 2:
            continue
        own, which = _pairs(row_classes, places, i)
        held = np.bincount(which, weights=count, minlength=own.size)
        while True:
            most = out // l
            there = np.bincount(own, weights=np.minimum(held, most[own]), minlength=q)
            short = (there < out) & (out <= size)
            if not short.any():
                break
            out = np.where(short, l * (most + 1), out)
    return out.astype(float)


def model_of(row_classes: RowClasses, places: PatternFits, need: Requirement, loss: np.ndarray) -> PatternModel:
    """The program, with cost loss float64[q] for a row of each pattern. O(n) lines and columns a sensitive column."""
    n, q, out, asked = places.row_class.size, places.patterns, _Lines(), _SensitiveLimits(need)
    count = row_classes.count[places.row_class].astype(float)
    x = out.columns(count, places.pattern)
    out.lines(np.full(row_classes.count.size, -1), (places.row_class, x, 1.0))
    out.low[0] = out.high[0] = row_classes.count.astype(float)
    every = np.arange(q)
    z = np.zeros(0, np.int64)
    if not asked.plain:
        z, fewest = out.columns(np.ones(q), every), least_sizes(row_classes, places, need)
        out.lines(every, (places.pattern, x, 1.0), (every, z, -fewest))
        out.lines(places.pattern, (x, z[places.pattern], count), (x, x, -1.0))
        uses = PatternUses(z, fewest)
    size = np.bincount(places.pattern, weights=count, minlength=q)
    # Lines for one sensitive column: shares by how many groups of each size a pattern has, then different values.
    for i, l, u in asked.columns:
        own, which = _pairs(row_classes, places, i)
        each = np.arange(own.size)
        if l > 1:
            held = np.bincount(which, weights=count)
            parts, of_parts = part_sizes(need.k, l), []
            for g in parts.tolist():
                rows = max(need.k, l * g)
                there = np.bincount(own, weights=np.minimum(held, g), minlength=q)
                of_parts.append((g, rows, out.columns(np.where(there < rows, 0, size // rows), every)))
            out.lines(every, (places.pattern, x, 1.0), *((every, a, -float(rows)) for _, rows, a in of_parts))
            out.lines(own, (which, x, -1.0), *((each, a[own], np.minimum(held, g)) for g, _, a in of_parts))
            few = np.flatnonzero((count < parts[-1]) & (count < held[which]))
            at = np.arange(few.size)
            most = [(at, a[places.pattern[few]], np.minimum(count[few], g)) for g, _, a in of_parts]
            out.lines(places.pattern[few], (at, x[few], -1.0), *most)
            if asked.plain:
                least = np.repeat([float(rows) for _, rows, _ in of_parts], q)
                uses = PatternUses(np.concatenate([a for _, _, a in of_parts]), least)
        if u > l:  # otherwise l different values are implied
            w = out.columns(np.ones(own.size), own)
            out.lines(own, (which, x, 1.0), (each, w, -1.0))
            out.lines(own, (each, z[own], 1.0), (each, w, -1.0))
            out.lines(every, (own, w, 1.0), (every, z, -float(u)))
    entries = (np.concatenate(out.value), (np.concatenate(out.row), np.concatenate(out.col)))
    cost = np.zeros(out.width)
    cost[:n] = loss[places.pattern]
    return PatternModel(
        lines=csr_array(coo_matrix(entries, shape=(out.height, out.width))),
        low=np.concatenate(out.low),
        high=np.concatenate(out.high),
        owner=np.concatenate(out.owner),
        cost=cost,
        most=np.concatenate(out.most),
        pattern=np.concatenate(out.pattern),
        whole=(np.arange(out.width) >= n) | (len(asked.columns) > 1) | bool(need.rules),
        n=n,
        uses=uses,
    )


def completed(row_classes: RowClasses, places: PatternFits, need: Requirement, x: np.ndarray) -> np.ndarray:
    """All columns of a solution whose rows are x, float64[n]."""
    q, asked = places.patterns, _SensitiveLimits(need)
    parts = [x.astype(float)]
    if not asked.plain:
        parts.append((np.bincount(places.pattern, weights=x, minlength=q) > 0).astype(float))
    for i, l, u in asked.columns:
        own, which = _pairs(row_classes, places, i)
        held = np.bincount(which, weights=x, minlength=own.size)
        if l > 1:
            sizes = part_sizes(need.k, l)
            hands = np.bincount(places.pattern, weights=x, minlength=q).astype(np.int64) // l
            low = -(-need.k // l)
            equal = np.where(hands > sizes[-1], hands // low - 1, 0)  # parts of the fewest hands, and one of the rest
            parts += [(hands - low * equal == g) + np.where(g == low, equal, 0.0) for g in sizes.tolist()]
        if u > l:
            parts.append((held > 0).astype(float))
    return np.concatenate(parts)


ANY = np.iinfo(np.int64).max // 4  # as a cap: none


class ValueLimits(NamedTuple):
    """Conditions of a class: least numbers of rows and of different values, and at most ``cap`` rows of each value."""

    cap: int
    rows: int
    values: int


class SharedPrices(NamedTuple):
    """The bound that lines over several patterns prove with prices of at least 0, and what they add to costs.

    uses  float64[u, q]  for a pattern in use, u = 1, or for one part of each size; of either sign
    rows  float64[n]     for a row of each place; of either sign
    """

    proved: float
    uses: np.ndarray
    rows: np.ndarray


def priced(
    row_classes: RowClasses,
    places: PatternFits,
    need: Requirement,
    loss: np.ndarray,
    price: np.ndarray,
    shared: SharedPrices | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:
    """The bound, and the least increase by the use of each pattern float64[q] and place float64[n], or infinity.

    loss  float64[q] of a row of each pattern;  price  float64[r] of a row of each row class
    O(n log n) for each part size.
    """
    reduced = loss[places.pattern] - price[places.row_class]
    rows = row_classes.count[places.row_class]
    size = np.bincount(places.pattern, weights=rows, minlength=places.patterns)
    uses, conditions, asked = np.zeros((1, places.patterns)), conditions_of(need), _SensitiveLimits(need)
    own = max((i for i, l, _ in asked.columns if l > 1), default=-1)  # whose parts are uses
    if shared is not None:
        reduced, uses = reduced + shared.rows, shared.uses
    parts, once = shared is not None and asked.plain, uses.min(axis=0)
    if parts:  # as many parts as possible, if their cost is negative
        fewest = next(classes[0].rows for column, _, classes in conditions if column == own)
        once = np.minimum(once, once * np.maximum(size // fewest, 1))
    below, patterns, taking = [], [], []
    for column, several, classes in conditions:
        value = (
            row_classes.value[places.row_class, column] if column >= 0 else np.zeros(places.row_class.size, np.int64)
        )
        alike = parts and several and column == own
        table, each = (places, rows, value, reduced), uses if alike else np.zeros((len(classes), places.patterns))
        less = [ValueLimits(c.cap, c.rows - 1, c.values - 1) for c in classes]
        whole, rest = least_groups(*table, classes, each).cost, least_groups(*table, less, each).cost
        most = np.maximum(size // classes[0].rows, 1) if several else np.ones(places.patterns)
        more = (most - 1) * np.minimum(whole, 0.0) + (0.0 if alike else once)
        below.append(np.minimum(whole + more, 0.0))
        patterns.append(whole + more)
        taking.append((rest + more)[places.pattern] + reduced)
    least = np.max(below, axis=0)
    pattern = np.max(patterns, axis=0) - least
    place = np.maximum(np.max(taking, axis=0) - least[places.pattern], pattern[places.pattern])
    proved = 0.0 if shared is None else shared.proved
    return proved + float(price @ row_classes.count) + float(least.sum()), pattern, place


def conditions_of(need: Requirement) -> list[tuple[int, bool, list[ValueLimits]]]:
    """(sensitive column or -1, whether a pattern can have several, the condition of one) for each kind of use."""
    out: list[tuple[int, bool, list[ValueLimits]]] = []
    for i, j in enumerate(need.sensitive_columns):
        l, u = need.frequency[j], need.distinct[j]
        if l > 1:
            out.append((i, True, [ValueLimits(g, max(need.k, l * g), 1) for g in part_sizes(need.k, l).tolist()]))
        if u > l:
            out.append((i, False, [ValueLimits(ANY, max(need.k, u), u)]))
    return out or [(-1, False, [ValueLimits(ANY, need.k, 1)])]


def group_sorts(sorts: list[ValueLimits]) -> GroupSorts:
    """The sorts of groups as kernels read them."""
    from shoal.kernels.tables.subsets import GroupSorts

    return GroupSorts(*(np.array(column, np.int64) for column in zip(*sorts, strict=True)))


class LeastGroups(NamedTuple):
    """The cheapest group of each pattern.

    Its cost float64[q], infinite if there is none; its sort int64[q]; its rows of every place int64[n].
    """

    cost: np.ndarray
    sort: np.ndarray
    rows: np.ndarray


def least_groups(
    places: PatternFits,
    rows: np.ndarray,
    value: np.ndarray,
    reduced: np.ndarray,
    sorts: list[ValueLimits],
    use: np.ndarray,
) -> LeastGroups:
    """The classes of each pattern whose rows have the least sum, of one of several sorts.

    rows, value int64[n], reduced float64[n]  of each place: number of rows, value, and cost of one row
    use  float64[g, q]  cost of a class of each sort in addition to its rows; O(n log n + g n)
    """
    from shoal.kernels.tables.subsets import PatternRows
    from shoal.kernels.tables.subsets import least_groups as least

    if use.shape != (len(sorts), places.patterns):  # compiled code would read beyond the array: a bound of any size
        raise ValueError(f"costs of {use.shape} classes, not {(len(sorts), places.patterns)}")
    order = np.lexsort((reduced, places.pattern))
    start = np.searchsorted(places.pattern, np.arange(places.patterns + 1))
    out = LeastGroups(np.empty(places.patterns), np.empty(places.patterns, np.int64), np.empty(rows.size, np.int64))
    least(PatternRows(start, order, rows, value, reduced), group_sorts(sorts), use, *out)
    return out
