"""Which columns single people out together: distinction and separation of small sets of columns.

Source: Motwani, Xu 2007, Efficient algorithms for masking and finding quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from shoal.model.histogram import dense, narrowest

LARGEST = 12  # columns of which all triples are looked at; beyond, triples grow from the pairs that separate most
WIDEST = 100  # columns of which all pairs are looked at; beyond, those of the columns that separate most
SAMPLE = 10_000  # lines on which the sets of more columns than that are ranked
KEPT = 5  # sets of each size that are named
NEAR = 1 << 17  # keys that are counted in a table rather than sorted


class Danger(NamedTuple):
    """How far some columns single people out together.

    distinction  different tuples over the rows: 1 means that every row is alone
    separation   share of the pairs of rows that differ in one of the columns at least
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": list(self.columns), "distinction": self.distinction, "separation": self.separation}


def dangerous(codes: Sequence[np.ndarray], names: Sequence[str], count: np.ndarray | None = None) -> list[Danger]:
    """All single columns, then the worst pairs and triples, then the set that grows from the worst triple.

    codes  one int[n] per column, from 0; count int64[n] rows behind each line, 1 when None

    Worst is what separates most, then what distinguishes most.  All pairs and triples of up to ``LARGEST`` columns,
    beyond all pairs and the triples that hold one of the ``LARGEST`` worst pairs, of the ``WIDEST`` columns that
    separate most; the growing set takes the column that separates most until none separates more.  Which sets of more
    than ``LARGEST`` columns are named is decided on ``SAMPLE`` lines drawn with a fixed seed; what is said of them is
    counted on all.  O(n) for each set of few distinct tuples, O(n log n) otherwise.
    """
    table = _Table(codes, None if count is None else np.asarray(count, np.int64))
    if not table.rows:
        return []
    d, lines = len(codes), codes[0].size
    looked = table if d <= LARGEST or lines <= SAMPLE else table.sampled()
    looked.near = [j for (j,) in _worst(looked, ((j,) for j in range(d)), WIDEST)]
    named = _worst(looked, _pairs(looked), KEPT) + _worst(looked, dict.fromkeys(map(_sorted, _triples(looked))), KEPT)
    named += [grown] if (grown := _grown(looked)) else []
    single = _worst(table, ((j,) for j in range(d)), d)
    return [Danger(tuple(names[j] for j in some), *table.measured(some)) for some in single + named]


class _Table:
    """Codes numbered without gaps, and the rows behind each line."""

    def __init__(self, codes: Sequence[np.ndarray], many: np.ndarray | None) -> None:
        numbered = (dense(np.asarray(c)) for c in codes)
        self.codes = [narrowest(c, int(c.max(initial=0)) + 1) for c in numbered]
        self.sizes = [int(c.max(initial=0)) + 1 for c in self.codes]
        self.many = None if many is None else many.astype(np.float64)  # as they are added up; exact below 2^53 rows
        self.rows = int(many.sum()) if many is not None else codes[0].size if codes else 0
        self.near = [*range(len(self.codes))]
        self._left: tuple[tuple[int, ...], np.ndarray, int] = ((), np.zeros(0, np.int64), 0)
        self._known: dict[tuple[int, ...], tuple[float, float]] = {}

    def sampled(self) -> _Table:
        """Some of the lines, the same ones at every call."""
        drawn = np.random.default_rng(0).choice(self.codes[0].size, SAMPLE, replace=False)
        return _Table([c[drawn] for c in self.codes], None if self.many is None else self.many[drawn])

    def measured(self, some: tuple[int, ...]) -> tuple[float, float]:
        """Distinction and separation of some columns."""
        if some not in self._known:
            held = _held(*self._key(some), self.many)
            pairs = self.rows * (self.rows - 1) / 2
            alike = float((held * (held - 1)).sum() / 2)
            self._known[some] = held.size / self.rows, 1 - alike / pairs if pairs else 1.0
        return self._known[some]

    def _key(self, some: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """A number for each tuple of values, and one above all; the tuples of all columns but the last are kept."""
        last, size = self.codes[some[-1]], self.sizes[some[-1]]
        if len(some) == 1:
            return last.astype(np.int64), size
        if self._left[0] != some[:-1]:
            key, span = self._key(some[:-1])
            if span > NEAR:
                key = dense(key)
                span = int(key.max(initial=0)) + 1
            self._left = some[:-1], key, span
        _, key, span = self._left
        return key * size + last, span * size


def _worst(table: _Table, sets: Iterable[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """The sets of columns that separate most, then distinguish most."""
    return sorted(sets, key=lambda some: (*(-x for x in reversed(table.measured(some))), some))[:most]


def _pairs(table: _Table) -> Iterator[tuple[int, ...]]:
    return combinations(sorted(table.near), 2)


def _triples(table: _Table) -> Iterator[tuple[int, ...]]:
    """All triples of few columns; of many, each of the worst pairs with one column more."""
    d = len(table.codes)
    if d <= LARGEST:
        return combinations(range(d), 3)
    near = _worst(table, _pairs(table), LARGEST)
    return ((*pair, j) for pair in near for j in table.near if j not in pair)


def _sorted(some: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(some))


def _grown(table: _Table) -> tuple[int, ...]:
    """The worst triple with a column more at a time, as long as that separates more; () where none does."""
    worst = _worst(table, map(_sorted, _triples(table)), 1)
    some = worst[0] if worst else ()
    grew = False
    while some and len(some) < len(table.near) and table.measured(some)[1] < 1:
        wider = max(((*some, j) for j in table.near if j not in some), key=lambda s: table.measured(s)[::-1])
        if table.measured(wider)[1] <= table.measured(some)[1]:
            break
        some, grew = wider, True
    return _sorted(some) if grew else ()


def _held(key: np.ndarray, span: int, many: np.ndarray | None) -> np.ndarray:
    """int64: rows of each different key of at least 0 and below ``span``."""
    near = max(NEAR, key.size // 8)
    if span <= near or many is not None:
        rows = np.bincount(key if span <= near else dense(key), weights=many).astype(np.int64)
        return rows[rows > 0]
    ordered = np.sort(key)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1])
    return np.diff(ends, prepend=-1, append=key.size - 1)


def words(found: Danger, rows: int) -> str:
    """One set of columns in a sentence."""
    return (
        f"{' + '.join(found.columns)}: {round(found.distinction * rows):,} different combinations in {rows:,} rows; "
        f"{100 * found.separation:.3f} % of all pairs of rows differ"
    )


def foremost(found: Sequence[Danger]) -> list[Danger]:
    """The worst set of each size over one: what a person can take in."""
    first: dict[int, Danger] = {}
    for danger in found:
        first.setdefault(len(danger.columns), danger)
    return [danger for size, danger in sorted(first.items()) if size > 1]
