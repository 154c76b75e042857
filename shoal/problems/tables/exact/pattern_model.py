"""The class program of a small table as a matrix: which rows of which kind are published as which pattern.

Columns  x  rows of a kind published as a pattern, for every kind that fits it
         z  whether a pattern is used: it then holds k rows, otherwise none
         a  how many parts of a pattern have at most g rows of any value: each holds k and l g rows (``part_sizes``)
         w  whether a value is present in a pattern: u of them are, where it is used
With whole z, a and w the rest is a flow from kinds through pairs (pattern, value) to patterns, whole by itself: only
these are declared integer.  Every line but "each row is published" belongs to one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csr_array, vstack

from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.privacy import Requirement
from shoal.problems.tables.others.pattern_cover import Patterns


@dataclass(frozen=True, eq=False)
class Kinds:
    """Rows alike in all that matters: the type, and the values of the sensitive columns of which anything is asked.

    of     int64[m]     kind of each cell
    type   int64[r]     type of each kind
    value  int64[r, s]  its value in each of those columns
    count  int64[r]
    """

    of: np.ndarray
    type: np.ndarray
    value: np.ndarray
    count: np.ndarray


def kinds_of(histogram: Histogram, need: Requirement) -> Kinds:
    """O(m log m)."""
    of_type, _ = histogram.types
    columns = list(need.sensitive_columns)
    value = histogram.sensitive[:, columns].astype(np.int64)
    both = np.column_stack([of_type, value])
    key = mixed_radix(both, [int(c.max(initial=0)) + 1 for c in both.T])
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    of = of.reshape(-1).astype(np.int64)
    count = np.bincount(of, weights=histogram.count, minlength=first.size).astype(np.int64)
    return Kinds(of, of_type[first], value[first], count)


@dataclass(frozen=True, eq=False)
class Places:
    """Which kind fits which pattern: kind int64[n], pattern int64[n] rising; patterns without an eligible group have
    none."""

    kind: np.ndarray
    pattern: np.ndarray
    patterns: int


def places_of(kinds: Kinds, found: Patterns, need: Requirement) -> Places:
    """O(n log n) for n pairs."""
    types = int(kinds.type.max()) + 1
    by_type = np.argsort(kinds.type, kind="stable")
    begin = np.searchsorted(kinds.type[by_type], np.arange(types))
    each = np.bincount(kinds.type, minlength=types)[found.member]
    pattern = np.repeat(np.repeat(np.arange(found.loss.size), np.diff(found.start)), each)
    inside = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    kind = by_type[np.repeat(begin[found.member], each) + inside]
    good = np.ones(found.loss.size, bool)
    for i, j in enumerate(need.sensitive_columns):
        key = np.unique(pattern * (int(kinds.value[:, i].max()) + 1) + kinds.value[kind, i])
        values = np.bincount(key // (int(kinds.value[:, i].max()) + 1), minlength=good.size)
        good &= values >= max(need.frequency[j], need.distinct[j])
    return Places(kind[good[pattern]], pattern[good[pattern]], found.loss.size)


class Uses(NamedTuple):
    """Columns that count how often a pattern is used: column int64[u], the rows that one use needs float64[u]."""

    column: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Model:
    """Least cost y with low <= lines y <= high and 0 <= y <= most.

    lines  csr_array[r, c], low, high  float64[r]; owner  int64[r] pattern of each line, -1: each row is published, else
           the sum is at least ``low``, which is 0 but for lines of several patterns (their owner is above all others)
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
    uses: Uses

    @property
    def patterns(self) -> int:
        """How many there are; each has a column of every sort of use."""
        return int(self.pattern.max(initial=-1)) + 1

    def with_lines(self, lines: csr_array, low: np.ndarray) -> Model:
        """And lines @ y >= low."""
        return replace(
            self,
            lines=csr_array(vstack([self.lines, lines])),
            low=np.concatenate([self.low, low]),
            high=np.concatenate([self.high, np.full(low.size, np.inf)]),
            owner=np.concatenate([self.owner, np.full(low.size, self.patterns)]),
        )


class _Lines:
    """Lines and columns gathered piece by piece."""

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
        """New columns."""
        self.most.append(most.astype(float))
        self.pattern.append(pattern)
        self.width += most.size
        return np.arange(self.width - most.size, self.width)

    def lines(self, owner: np.ndarray, *terms: tuple[np.ndarray, np.ndarray, np.ndarray | float]) -> None:
        """New lines of sums at least 0, one for each owner; a term is (line, column, factor)."""
        for row, col, value in terms:
            self.row.append(row + self.height)
            self.col.append(col)
            self.value.append(np.broadcast_to(np.asarray(value, float), row.shape))
        self.low.append(np.zeros(owner.size))
        self.high.append(np.full(owner.size, np.inf))
        self.owner.append(owner)
        self.height += owner.size


class _Asked:
    """What is asked of each sensitive column (number, l, u); whether the parts of one of them say that k rows are there
    and all other u are met."""

    def __init__(self, need: Requirement) -> None:
        self.columns = [(i, need.frequency[j], need.distinct[j]) for i, j in enumerate(need.sensitive_columns)]
        self.plain = any(
            l > 1 and u <= l and all(v == 1 for j, _, v in self.columns if j != i) for i, l, u in self.columns
        )


def part_sizes(k: int, l: int) -> np.ndarray:
    """int64[p] rising: an eligible class is cut into eligible parts whose n // l rows of a value at most are of these.

    Its rows, sorted by value and dealt to n // l hands, make hands of l rows or more whose values differ.  As many
    hands as hold k rows for certain, or up to twice that, are a part; a class of fewer hands is one by itself.
    """
    return np.arange(max(k // l, 1), 2 * max(-(-k // l), 1))


def _pairs(kinds: Kinds, places: Places, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Pattern of each pair (pattern, value) that occurs, and the pair of each place."""
    base = int(kinds.value[:, i].max()) + 1
    pair, which = np.unique(places.pattern * base + kinds.value[places.kind, i], return_inverse=True)
    return pair // base, which.reshape(-1)


def least_sizes(kinds: Kinds, places: Places, need: Requirement) -> np.ndarray:
    """float64[q]: the fewest rows that a used pattern holds; more than fit it where no eligible set does.

    n rows with at most n / l of each value exist where the values, each counted up to n // l times, make up n.  Where
    they do not, they do not for any n of the same n // l either.  O(n) for each n // l looked at.
    """
    q, count = places.patterns, kinds.count[places.kind].astype(float)
    out = np.full(q, need.smallest)
    size = np.bincount(places.pattern, weights=count, minlength=q)
    for i, j in enumerate(need.sensitive_columns):
        l = need.frequency[j]
        if l < 2:
            continue
        own, which = _pairs(kinds, places, i)
        held = np.bincount(which, weights=count, minlength=own.size)
        while True:
            most = out // l
            there = np.bincount(own, weights=np.minimum(held, most[own]), minlength=q)
            short = (there < out) & (out <= size)
            if not short.any():
                break
            out = np.where(short, l * (most + 1), out)
    return out.astype(float)


def model_of(kinds: Kinds, places: Places, need: Requirement, loss: np.ndarray) -> Model:
    """The program, cost loss float64[q] for each row of a pattern.  O(n) lines and columns for each column asked."""
    n, q, out, asked = places.kind.size, places.patterns, _Lines(), _Asked(need)
    count = kinds.count[places.kind].astype(float)
    x = out.columns(count, places.pattern)
    out.lines(np.full(kinds.count.size, -1), (places.kind, x, 1.0))
    out.low[0] = out.high[0] = kinds.count.astype(float)
    every = np.arange(q)
    z = np.zeros(0, np.int64)
    if not asked.plain:
        z, fewest = out.columns(np.ones(q), every), least_sizes(kinds, places, need)
        out.lines(every, (places.pattern, x, 1.0), (every, z, -fewest))
        out.lines(places.pattern, (x, z[places.pattern], count), (x, x, -1.0))
        uses = Uses(z, fewest)
    size = np.bincount(places.pattern, weights=count, minlength=q)
    for i, l, u in asked.columns:
        own, which = _pairs(kinds, places, i)
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
                uses = Uses(np.concatenate([a for _, _, a in of_parts]), least)
        if u > l:  # l different values are there otherwise
            w = out.columns(np.ones(own.size), own)
            out.lines(own, (which, x, 1.0), (each, w, -1.0))
            out.lines(own, (each, z[own], 1.0), (each, w, -1.0))
            out.lines(every, (own, w, 1.0), (every, z, -float(u)))
    entries = (np.concatenate(out.value), (np.concatenate(out.row), np.concatenate(out.col)))
    cost = np.zeros(out.width)
    cost[:n] = loss[places.pattern]
    return Model(
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


def completed(kinds: Kinds, places: Places, need: Requirement, x: np.ndarray) -> np.ndarray:
    """All columns of a solution whose rows are x, float64[n]."""
    q, asked = places.patterns, _Asked(need)
    parts = [x.astype(float)]
    if not asked.plain:
        parts.append((np.bincount(places.pattern, weights=x, minlength=q) > 0).astype(float))
    for i, l, u in asked.columns:
        own, which = _pairs(kinds, places, i)
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
