"""The judge of privacy: reads a published table and nothing else.

Shares no code with the solvers.  Everything is recomputed from the cells as they stand: a star is a value like any
other, a missing value is a value like any other, and a block of fully starred rows is a class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import PolicyError
from shoal.judge.closeness import classes, hierarchical
from shoal.judge.simultaneous import simultaneous
from shoal.judge.tuples import codes, number
from shoal.judge.units import fewest
from shoal.model.audit import Audit, Check, SensitiveLevels
from shoal.model.hierarchy import Hierarchy
from shoal.model.notation import NUMBER
from shoal.model.privacy import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    Model,
    RecursiveLDiversity,
    SimultaneousLDiversity,
    TCloseness,
)

_TOLERANCE = 1e-9


def judge(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    models: Sequence[Model] = (),
    threshold: float = 0.2,
    persons: Sequence[str] = (),
    counts: np.ndarray | None = None,
    trees: Mapping[str, Hierarchy] | None = None,
) -> Audit:
    """Audit a table.

    frame      the published table; quasi, sensitive: column names
    models     what should hold; each becomes a Check
    threshold  a record is at risk when 1 / (size of its class) is above it
    persons    columns that name who a row is about: k is judged on their different values as well
    counts     int64[lines]  how many rows each line of ``frame`` stands for; None: each is a row
    trees      per sensitive column the hierarchy by which its values are far apart, where it has one

    Raises PolicyError for a column that is not there, for a value that its hierarchy lacks.  O(n log n) for n lines.
    """
    for name in [*quasi, *sensitive, *persons]:
        if name not in frame.columns:
            raise PolicyError.unknown("column", name, frame.columns)
    lines = frame.height
    held = None if counts is None else np.asarray(counts, np.int64)
    n = lines if held is None else int(held.sum())
    group = number([codes(frame[c]) for c in quasi], lines)
    sizes = _rows(group, held) if n else np.zeros(0, np.int64)
    tables = {name: _Table(group, frame[name], held, (trees or {}).get(name)) for name in sensitive}
    levels = {name: _levels(table, sizes, n) for name, table in tables.items()}
    models = [m for m in models if m.speaks != "population"]  # judged beside a population
    checks = tuple(c for m in models for c in _checks(m, sizes, tables, group, frame, n))
    people = {name: fewest(frame, quasi, name) for name in persons}
    checks += tuple(
        Check(
            model=m.name, short=m.short, asked={"k": m.k}, column=name, level=found, passes=not n or (found or 0) >= m.k
        )
        for name, found in people.items()
        for m in models
        if isinstance(m, KAnonymity)
    )
    distinct_sizes, how_many = np.unique(sizes, return_counts=True)
    smallest = int(sizes.min()) if n else 0
    risk = {
        "threshold": threshold,
        "prosecutor_max": 1 / smallest if n else 0.0,
        "prosecutor_mean": sizes.size / n if n else 0.0,
        "journalist_max": 1 / smallest if n else 0.0,
        "marketer": sizes.size / n if n else 0.0,
        "records_at_risk": float(sizes[sizes * threshold < 1 - _TOLERANCE].sum() / n) if n else 0.0,
    }
    return Audit(
        rows=n,
        classes=int(sizes.size),
        smallest_class=smallest,
        largest_class=int(sizes.max()) if n else 0,
        mean_class=n / sizes.size if n else 0.0,
        uniques=int((sizes == 1).sum()),
        k=smallest,
        sensitive=levels,
        sizes={int(s): int(c) for s, c in zip(distinct_sizes, how_many, strict=True)},
        risk=risk,
        persons={name: found for name, found in people.items() if found is not None},
        checks=checks,
    )


def _rows(key: np.ndarray, held: np.ndarray | None, span: int = 0) -> np.ndarray:
    """int64: how many rows have each key; exact below 2^53 rows."""
    if held is None:
        return np.bincount(key, minlength=span)
    return np.bincount(key, weights=held, minlength=span).astype(np.int64)


class _Table:
    """Sparse class-by-value counts of one sensitive column, the values for their order, and their classes in a tree."""

    def __init__(
        self, group: np.ndarray, series: pl.Series, held: np.ndarray | None = None, tree: Hierarchy | None = None
    ) -> None:
        raw = codes(series)
        first = np.full(int(raw.max()) + 2 if raw.size else 1, -1, np.int64)
        first[raw[::-1]] = np.arange(raw.size - 1, -1, -1)
        seen = np.flatnonzero(first >= 0)
        order = _natural_order(series.gather(first[seen]))
        rank = np.zeros(first.size, np.int64)
        rank[seen[order]] = np.arange(seen.size)
        self.values = int(seen.size)
        self.node = None if tree is None else classes(series.gather(first[seen][order]), tree, series.name)
        key = group * max(self.values, 1) + rank[raw]
        span = (int(group.max()) + 1 if group.size else 0) * max(self.values, 1)
        if 0 < span <= max(1 << 24, 4 * key.size):
            counted = _rows(key, held, span)
            pair = np.flatnonzero(counted)
            self.count = counted[pair]
        else:
            pair, where = np.unique(key, return_inverse=True)
            self.count = _rows(where.reshape(-1), held)
        self.group = pair // max(self.values, 1)
        self.value = pair % max(self.values, 1)
        self.start = np.searchsorted(self.group, np.arange(int(group.max()) + 1 if group.size else 0))


def _natural_order(values: pl.Series) -> np.ndarray:
    """Order of distinct values: an enumeration's own; by number where all are one, else by text.

    Last an empty text, which is a missing value in files of text, and then the missing one.
    """
    missing = values.is_null()
    if isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    if isinstance(values.dtype, pl.Categorical):
        values = values.cast(pl.String)
    if values.dtype == pl.String:
        values = values.set(values == "", None)
    if values.dtype == pl.String and values.str.contains(NUMBER).all():  # missing ones left aside
        numbers = values.cast(pl.Float64, strict=False)
        if numbers.drop_nulls().n_unique() == values.count():
            values = numbers
    if values.dtype.is_nested() or values.dtype == pl.Object:
        return np.arange(len(values))
    both = pl.DataFrame({"value": values, "missing": missing})
    return both.select(pl.arg_sort_by("value", "missing", nulls_last=True)).to_series().to_numpy()


def _levels(table: _Table, sizes: np.ndarray, n: int) -> SensitiveLevels:
    if not n:
        return SensitiveLevels(**{f.name: None for f in fields(SensitiveLevels)})
    top = np.maximum.reduceat(table.count, table.start)
    return SensitiveLevels(
        l=float((sizes / top).min()),
        distinct_l=int(np.bincount(table.group).min()),
        entropy_l=math.exp(max(_entropy(table, sizes), 0.0)),
        recursive_c=_recursive(table, sizes, 2),
        alpha=float((top / sizes).max()),
        t_equal=_t_equal(table, sizes, n),
        t_ordered=_t_ordered(table, sizes, n),
        t_hierarchical=None if table.node is None else _t_hierarchical(table, sizes, n),
        beta=_beta(table, sizes, n),
        delta=_delta(table, sizes, n, True),
    )


def _entropy(table: _Table, sizes: np.ndarray) -> float:
    """Least entropy of a class, in nats."""
    share = table.count / sizes[table.group]
    return float(-np.add.reduceat(share * np.log(share), table.start).max())


def _beta(table: _Table, sizes: np.ndarray, n: int) -> float:
    """Largest relative gain (p - q) / q of a value in a class over the table."""
    gain = table.count / sizes[table.group] / _global(table, n)[table.value] - 1
    return max(float(gain.max()), 0.0)


def _delta(table: _Table, sizes: np.ndarray, n: int, absent: bool) -> float:
    """Largest |log(p / q)| of a value in a class; with absent, infinite where a class lacks a value of the table."""
    if absent and (np.bincount(table.group) < table.values).any():
        return math.inf
    share = table.count / sizes[table.group]
    return float(np.abs(np.log(share / _global(table, n)[table.value])).max())


def _recursive(table: _Table, sizes: np.ndarray, l: int) -> float:
    """Largest r1 / (r_l + ... + r_m) over the classes; infinite where the sum is empty."""
    order = np.lexsort((-table.count, table.group))
    falling = table.count[order]
    place = np.arange(falling.size) - table.start[table.group]
    tail = np.bincount(table.group, weights=np.where(place >= l - 1, falling, 0), minlength=sizes.size)
    top = falling[table.start]
    with np.errstate(divide="ignore"):
        return float(np.where(tail > 0, top / np.maximum(tail, 1), np.inf).max())


def _global(table: _Table, n: int) -> np.ndarray:
    return np.bincount(table.value, weights=table.count, minlength=table.values) / n


def _t_equal(table: _Table, sizes: np.ndarray, n: int) -> float:
    """Half the sum of |p - q| over values: present ones directly, absent ones through what is left of q."""
    q = _global(table, n)
    p = table.count / sizes[table.group]
    at = q[table.value]
    present = np.bincount(table.group, weights=np.abs(p - at), minlength=sizes.size)
    absent = 1 - np.bincount(table.group, weights=at, minlength=sizes.size)
    return float(np.clip((present + absent) / 2, 0, 1).max())


def _t_ordered(table: _Table, sizes: np.ndarray, n: int) -> float:
    """Earth mover's distance on ranks, 1/(m-1) times the sum of |P - Q| of the cumulated shares; O(pairs log m)."""
    m = table.values
    if m < 2:
        return 0.0
    cumulated = np.concatenate([[0.0], np.cumsum(_global(table, n))])  # Q before value v
    area = np.concatenate([[0.0], np.cumsum(cumulated[1:])])  # sum of Q(0..v) for v < index
    p = table.count / sizes[table.group]
    run = np.cumsum(p)
    run -= np.repeat((run - p)[table.start], np.diff(np.append(table.start, table.group.size)))  # P up to this value
    # between one present value and the next, P is constant: sum |P - Q(v)| over v in [a, b)
    a = table.value
    b = np.append(table.value[1:], m)
    last = np.append(table.group[1:] != table.group[:-1], True)
    b = np.where(last, m, b)
    cross = np.clip(np.searchsorted(cumulated[1:], run, side="left"), a, b)  # Q < P before it
    part = run * (cross - a) - (area[cross] - area[a]) + (area[b] - area[cross]) - run * (b - cross)
    total = np.bincount(table.group, weights=part, minlength=sizes.size)
    total += area[table.value[table.start]]  # before the first present value P is 0
    return float(np.clip(total / (m - 1), 0, 1).max())


def _t_hierarchical(table: _Table, sizes: np.ndarray, n: int) -> float:
    if table.node is None:
        raise PolicyError("t-closeness by the hierarchical distance needs the hierarchy of its column; hand it over")
    return hierarchical(table.group, table.value, table.count, sizes, _global(table, n), table.node)


def _checks(
    model: Model,
    sizes: np.ndarray,
    tables: dict[str, _Table],
    group: np.ndarray,
    frame: pl.DataFrame,
    n: int,
) -> list[Check]:
    """One Check per model and column it speaks of; an empty table meets everything."""
    asked = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "column"}  # type: ignore[arg-type]

    def check(level: float | None, passes: bool, column: str | None = None) -> Check:
        holds = passes or n == 0
        return Check(model=model.name, short=model.short, asked=asked, column=column, level=level, passes=holds)

    if isinstance(model, KAnonymity):
        smallest = int(sizes.min()) if n else 0
        return [check(smallest if n else None, smallest >= model.k)]
    if not tables:
        raise PolicyError(f"{model.name} speaks of a sensitive column and none is given; say sensitive=[...]")
    if isinstance(model, SimultaneousLDiversity):
        values = np.column_stack([codes(frame[name]) for name in tables])
        level = simultaneous(values, group, model.l) if n else None
        return [check(level, level is None or level >= model.l)]
    column = model.column
    if column is not None and column not in tables:
        raise PolicyError.unknown("sensitive column", column, tables)
    out = []
    for name in [column] if column is not None else list(tables):
        found, good = _FOUND[type(model)](model, tables[name], sizes, n) if n else (None, True)
        out.append(check(found, good, name))
    return out


def _found_l(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    top = np.maximum.reduceat(table.count, table.start)
    return float((sizes / top).min()), bool((model.l * top <= sizes).all())


def _found_distinct(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    found = int(np.bincount(table.group).min())
    return found, found >= model.l


def _found_entropy(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    least = _entropy(table, sizes)
    return math.exp(max(least, 0.0)), least >= math.log(model.l) - _TOLERANCE


def _found_recursive(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    found = _recursive(table, sizes, model.l)
    return found, found < model.c - _TOLERANCE


def _found_alpha(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    found = float((np.maximum.reduceat(table.count, table.start) / sizes).max())
    return found, bool(sizes.min() >= model.k and found <= model.alpha + _TOLERANCE)


def _found_t(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    distance = {"equal": _t_equal, "ordered": _t_ordered, "hierarchical": _t_hierarchical}[model.distance]
    found = distance(table, sizes, n)
    return found, found <= model.t + _TOLERANCE


def _found_beta(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    q = _global(table, n)[table.value]
    gain = table.count / sizes[table.group] / q - 1
    limit = np.minimum(model.beta, -np.log(q)) if model.enhanced else np.full(q.size, float(model.beta))
    return _beta(table, sizes, n), bool((gain <= limit + _TOLERANCE / q).all())


def _found_delta(model: Any, table: _Table, sizes: np.ndarray, n: int) -> tuple[float, bool]:
    found = _delta(table, sizes, n, model.absent == "infinite")
    return found, found < model.delta - _TOLERANCE


_FOUND: dict[type, Any] = {
    LDiversity: _found_l,
    DistinctLDiversity: _found_distinct,
    EntropyLDiversity: _found_entropy,
    RecursiveLDiversity: _found_recursive,
    AlphaKAnonymity: _found_alpha,
    TCloseness: _found_t,
    BetaLikeness: _found_beta,
    DeltaDisclosure: _found_delta,
}
