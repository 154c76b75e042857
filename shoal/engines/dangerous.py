"""Which columns single people out together: distinction and separation of small sets of columns.

Motwani, Xu 2007, Efficient algorithms for masking and finding quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

LARGEST = 12  # columns of which all triples are looked at; beyond, triples grow from the pairs that separate most
KEPT = 5  # sets of each size that are named
DENSE = 1 << 24
NEAR = 1 << 17  # keys that are counted in a table rather than sorted


class Danger(NamedTuple):
    """Some columns together.

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
    beyond all pairs and the triples that hold one of the ``LARGEST`` worst pairs.  The growing set takes the column
    that separates most until none separates more.  O(n) for each set of few distinct tuples, O(n log n) otherwise.
    """
    many = np.ones(codes[0].size if codes else 0, np.int64) if count is None else np.asarray(count, np.int64)
    n = int(many.sum())
    if not n:
        return []
    dense = [_dense(np.asarray(c, np.int64)) for c in codes]
    known: dict[tuple[int, ...], np.ndarray] = {(j,): c for j, c in enumerate(dense)}

    def mixed(some: tuple[int, ...]) -> np.ndarray:
        left = known[some[:-1]] if some[:-1] in known else joined(some[:-1])
        last = known[some[-1:]]
        return left * (int(last.max(initial=0)) + 1) + last

    def joined(some: tuple[int, ...]) -> np.ndarray:
        return known[some] if some in known else _dense(mixed(some))

    def told(some: tuple[int, ...]) -> Danger:
        held = _held(known[some] if some in known else mixed(some), many if count is not None else None)
        pairs = n * (n - 1) / 2
        alike = float((held * (held - 1)).sum() / 2)
        named = tuple(names[j] for j in sorted(some))
        return Danger(named, held.size / n, 1 - alike / pairs if pairs else 1.0)

    def worst(found: list[tuple[tuple[int, ...], Danger]], most: int) -> list[tuple[tuple[int, ...], Danger]]:
        return sorted(found, key=lambda f: (-f[1].separation, -f[1].distinction, f[0]))[:most]

    d = len(dense)
    single = worst([((j,), told((j,))) for j in range(d)], d)
    two: list[tuple[tuple[int, ...], Danger]] = [(some, told(some)) for some in combinations(range(d), 2)]
    near = {some for some, _ in (two if d <= LARGEST else worst(two, LARGEST))}
    three: list[tuple[tuple[int, ...], Danger]] = []
    for first in sorted(near):
        known[first] = joined(first)
        rest = range(first[1] + 1, d) if d <= LARGEST else (j for j in range(d) if j not in first)
        three += [((*first, j), told((*first, j))) for j in rest]
        del known[first]
    out = [f[1] for f in single + worst(two, KEPT)]
    seen: dict[tuple[str, ...], Danger] = {}
    for _, danger in worst(three, KEPT * 3):
        seen.setdefault(danger.columns, danger)
    out += list(seen.values())[:KEPT]
    return out + _grown(worst(three, 1), d, told)


def _grown(start: list[Any], d: int, told: Any) -> list[Danger]:
    """The worst triple with a column more at a time, as long as that separates more; its last state."""
    if not start:
        return []
    some, best = start[0]
    grew = False
    while len(some) < d and best.separation < 1:
        tries = [((*some, j), told((*some, j))) for j in range(d) if j not in some]
        wider, found = max(tries, key=lambda f: (f[1].separation, f[1].distinction))
        if found.separation <= best.separation:
            break
        some, best, grew = wider, found, True
    return [best] if grew else []


def _held(key: np.ndarray, many: np.ndarray | None) -> np.ndarray:
    """int64: rows of each different key."""
    span = int(key.max(initial=0)) + 1
    if span <= max(NEAR, key.size // 8) or many is not None:
        group = key if span <= max(NEAR, key.size // 8) else _dense(key)
        rows = np.bincount(group, weights=many).astype(np.int64)
        return rows[rows > 0]
    ordered = np.sort(key)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1])
    return np.diff(ends, prepend=-1, append=key.size - 1)


def _dense(key: np.ndarray) -> np.ndarray:
    """Codes numbered 0, 1, 2, ... without a gap, in their order."""
    span = int(key.max(initial=0)) + 1
    if span <= max(DENSE, 4 * key.size):
        used = np.zeros(span, bool)
        used[key] = True
        return (np.cumsum(used) - 1)[key]
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def words(found: Danger, rows: int) -> str:
    """One set of columns in a sentence."""
    return (
        f"{' + '.join(found.columns)}: {round(found.distinction * rows):,} different combinations on {rows:,} rows "
        f"(distinction {found.distinction:.3f}), {100 * found.separation:.3f} % of the pairs of rows differ"
    )
