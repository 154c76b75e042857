"""The judge of privacy: reads a published table and nothing else.

Shares no code with the solvers.  Everything is recomputed from the cells as they stand: a star is a value like any
other, a missing value is a value like any other, and a block of fully starred rows is a class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import PolicyError
from shoal.judge import models
from shoal.judge.models import (
    beta_likeness,
    delta_disclosure,
    distinct,
    entropy,
    frequency,
    recursive,
    share,
    t_closeness,
)
from shoal.judge.readings import reading
from shoal.judge.tables.counted import CLOSE, Column, number_of_rows
from shoal.judge.tables.units import by_persons, fewest
from shoal.judge.tuples import codes, number
from shoal.model.audit import Audit, Check, SensitiveLevels
from shoal.model.hierarchy import Hierarchy
from shoal.model.privacy import KAnonymity, Model
from shoal.model.privacy.persons import counts_rows


def judge(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    asked: Sequence[Model] = (),
    threshold: float = 0.2,
    persons: Sequence[str] = (),
    counts: np.ndarray | None = None,
    trees: Mapping[str, Hierarchy] | None = None,
) -> Audit:
    """Audit a table.

    frame      the published table; quasi, sensitive: column names
    asked      what should hold; each becomes a Check
    threshold  a record is at risk when 1 / (size of its class) is above it
    persons    columns that name who a row is about: k is judged on their different values as well, and what counts the
               rows of a value on the persons who have it
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
    sizes = number_of_rows(group, held) if n else np.zeros(0, np.int64)
    columns = {name: Column(group, frame[name], sizes, held, (trees or {}).get(name)) for name in sensitive}
    asked = [m for m in asked if m.speaks != "population"]  # judged beside a population
    of_rows = [m for m in asked if not (persons and counts_rows(m))]
    checks = tuple(c for m in of_rows for c in _checks(m, sizes, columns, group, frame))
    people = {name: fewest(frame, quasi, name) for name in persons}
    checks += tuple(c for m in asked for name in persons for c in _of_persons(m, frame, quasi, sensitive, name, trees))
    checks += tuple(
        Check(model=m.name, short=m.short, asked={"k": m.k}, column=name, level=f, passes=not n or (f or 0) >= m.k)
        for name, f in people.items()
        for m in asked
        if isinstance(m, KAnonymity)
    )
    distinct_sizes, how_many = np.unique(sizes, return_counts=True)
    smallest = int(sizes.min()) if n else 0
    return Audit(
        rows=n,
        classes=int(sizes.size),
        smallest_class=smallest,
        largest_class=int(sizes.max()) if n else 0,
        mean_class=n / sizes.size if n else 0.0,
        uniques=int((sizes == 1).sum()),
        k=smallest,
        sensitive={name: _levels(column) for name, column in columns.items()},
        sizes={int(s): int(c) for s, c in zip(distinct_sizes, how_many, strict=True)},
        risk=_risk(sizes, threshold),
        persons={name: found for name, found in people.items() if found is not None},
        checks=checks,
    )


def _risk(sizes: np.ndarray, threshold: float) -> dict[str, float]:
    """Risks of being found, without a population; of an empty table none."""
    n, smallest = int(sizes.sum()), int(sizes.min(initial=2**62))
    return {
        "threshold": threshold,
        "prosecutor_max": 1 / smallest if n else 0.0,
        "prosecutor_mean": sizes.size / n if n else 0.0,
        "journalist_max": 1 / smallest if n else 0.0,
        "marketer": sizes.size / n if n else 0.0,
        "records_at_risk": float(sizes[sizes * threshold < 1 - CLOSE].sum() / n) if n else 0.0,
    }


def _levels(column: Column) -> SensitiveLevels:
    if not column.sizes.size:
        return SensitiveLevels(**{f.name: None for f in fields(SensitiveLevels)})
    return SensitiveLevels(
        l=frequency.level(column),
        distinct_l=distinct.level(column),
        entropy_l=entropy.level(column),
        recursive_c=recursive.level(column, 2),
        alpha=share.level(column),
        t_equal=t_closeness.equal(column),
        t_ordered=t_closeness.ordered(column),
        t_hierarchical=None if column.node is None else t_closeness.by_tree(column),
        beta=beta_likeness.level(column),
        delta=delta_disclosure.level(column),
    )


def _checks(
    model: Model, sizes: np.ndarray, columns: Mapping[str, Column], group: np.ndarray, frame: pl.DataFrame
) -> list[Check]:
    """One Check per model and column it speaks of; an empty table meets everything."""
    asked = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "column"}  # type: ignore[arg-type]
    found = _reading(model)

    def check(seen: Any, column: str | None = None) -> Check:
        level, holds = found(model, seen) if sizes.size else (None, True)
        return Check(model=model.name, short=model.short, asked=asked, column=column, level=level, passes=holds)

    if model.speaks == "rows":
        return [check(sizes)]
    if not columns:
        raise PolicyError(f"{model.name} speaks of a sensitive column and none is given; say sensitive=[...]")
    if model.speaks == "tuples":
        return [check((np.column_stack([codes(frame[name]) for name in columns]), group))]
    if model.column is not None and model.column not in columns:
        raise PolicyError.unknown("sensitive column", model.column, columns)
    return [check(columns[name], name) for name in ([model.column] if model.column is not None else columns)]


def _of_persons(
    model: Model, frame: pl.DataFrame, quasi: Sequence[str], sensitive: Sequence[str], person: str,
    trees: Mapping[str, Hierarchy] | None,
) -> list[Check]:  # fmt: skip
    """The checks of a model whose level is another where each person counts once for each value."""
    tuples = model.speaks == "tuples"
    if not tuples and not counts_rows(model):
        return []
    named = sensitive if tuples or model.column is None else (model.column,)
    asked = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "column"}  # type: ignore[arg-type]
    found = []
    for columns in [named] if tuples else [(name,) for name in named]:
        level, holds = by_persons(frame, quasi, columns, person, model, (trees or {}).get(columns[0]))
        name = None if tuples else columns[0]
        found.append(Check(model=model.name, short=model.short, asked={**asked, "counted": person}, column=name,
                           level=level, passes=holds))  # fmt: skip
    return found


def _reading(model: Model) -> Callable[[Any, Any], tuple[float, bool]]:
    """The judge's own reading of a model, by the name of its file; PolicyError for a model that it does not know."""
    found = reading(f"{models.__name__}.{type(model).__module__.rpartition('.')[2]}", model.name)
    return found  # type: ignore[no-any-return]
