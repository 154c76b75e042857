"""The judge of privacy: computes the privacy of a published table from the table alone.

It shares no code with the solvers. Everything is recomputed from the cells as published: a star and a missing value are
values like any other, and all fully starred rows form a class.

If rows name persons, the judge counts the different persons of each class, and the values that they have.

Other tools treat missing values and stars as wildcards that match every value (sdcMicro; ARX on request). A second set
of functions does the same. A row's frequency is then the number of rows that match it. Matching isn't an equivalence
relation, so there are no classes, and k is the least frequency. This k is optimistic: someone who knows the missing
values can distinguish rows that match only through them.

The module also fills missing values and applies limits to numbers, by other code than the code that makes releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import PolicyError
from shoal.judge import models
from shoal.judge.file import codes, number
from shoal.judge.finding import codes_of_both as codes_of
from shoal.judge.finding import reading, shown
from shoal.judge.models import CLOSE, ClassCounts, closeness, number_of_rows
from shoal.judge.models.size_and_diversity import (
    distinct_level,
    entropy_level,
    frequency_level,
    recursive_level,
    share_level,
)
from shoal.model.audit import Audit, Check, SensitiveLevels
from shoal.model.hierarchy import Hierarchy
from shoal.model.privacy import KAnonymity, Model
from shoal.model.privacy.population import counts_rows


def fewest(tuples: pl.DataFrame, quasi: Sequence[str], person: str) -> int | None:
    """The fewest different persons in a class; None for an empty table.

    tuples  published quasi-identifiers and the column of persons, each pair at least once; other columns are ignored. A
            missing person counts as no person. O(t log t).
    """
    short = pl.DataFrame([tuples[n].alias(f"c{i}") for i, n in enumerate([*quasi, person])])
    last = short.columns[-1]
    found = short.group_by(short.columns[:-1]).agg(pl.col(last).drop_nulls().n_unique())[last].min()
    return None if found is None else int(found)  # type: ignore[arg-type]


def by_persons(
    tuples: pl.DataFrame,
    quasi: Sequence[str],
    columns: Sequence[str],
    person: str,
    model: Model,
    tree: Any = None,
    notation: str | None = None,
) -> tuple[float | None, bool]:
    """The level of a model in some sensitive columns, if each person counts once for each of its values.

    Rows of a missing person are ignored. For l-diversity and alpha, a share is a share of the persons of a class.
    O(t log t).
    """
    held = tuples.filter(tuples[person].is_not_null())
    if not held.height:
        return None, True
    group = number([codes(held[c]) for c in quasi], held.height)
    who = codes(held[person])
    found = reading(f"shoal.judge.models.{type(model).__module__.rpartition('.')[2]}", model.name, type(model).__name__)
    if model.applies_to == "tuples":
        return found(model, (np.column_stack([who, *(codes(held[c]) for c in columns)]), group))  # type: ignore[no-any-return]
    name = columns[0]
    once = np.unique(number([group, who, codes(held[name])], held.height), return_index=True)[1]
    members = group[once]
    if model.short in ("l", "alpha"):
        members = group[np.unique(number([group, who], held.height), return_index=True)[1]]
    ever = np.unique(number([who, codes(held[name])], held.height), return_index=True)[1]
    none, all_of_them = np.zeros(ever.size, np.int64), np.array([ever.size])
    whole = ClassCounts(none, held[name].gather(ever), all_of_them, None, None, notation=notation).table
    # a person in several classes counts once in the table
    own = ClassCounts(group[once], held[name].gather(once), np.bincount(members), None, tree, whole, notation)
    return found(model, own)  # type: ignore[no-any-return]


def judge(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    asked: Sequence[Model] = (),
    threshold: float = 0.2,
    persons: Sequence[str] = (),
    counts: np.ndarray | None = None,
    trees: Mapping[str, Hierarchy] | None = None,
    notations: Mapping[str, str] | None = None,
) -> Audit:
    """Audit a table.

    frame      the published table; quasi, sensitive: column names
    asked      the models to check; each becomes a Check
    threshold  a record is at risk if 1 / (size of its class) is above it
    persons    columns that identify a row's person: k is also judged on their different values, and models on counts of
               a value are judged on the persons who have it
    counts     int64[lines]: the rows that each line of ``frame`` represents; None: one each
    trees      per sensitive column its hierarchy, for distances between values
    notations  per sensitive column of dates or numbers in a notation, which gives their order

    Raises PolicyError for a missing column, or for a value that the hierarchy lacks. O(n log n) for n lines.
    """
    for name in [*quasi, *sensitive, *persons]:
        if name not in frame.columns:
            raise PolicyError.unknown("column", name, frame.columns)
    lines = frame.height
    held = None if counts is None else np.asarray(counts, np.int64)
    n = lines if held is None else int(held.sum())
    group = number([codes(frame[c]) for c in quasi], lines)
    sizes = number_of_rows(group, held) if n else np.zeros(0, np.int64)
    tree, notation = (trees or {}).get, (notations or {}).get
    columns = {
        name: ClassCounts(group, frame[name], sizes, held, tree(name), notation=notation(name)) for name in sensitive
    }
    asked = [m for m in asked if m.applies_to != "population"]  # judged with a population
    of_rows = [m for m in asked if not (persons and counts_rows(m))]
    checks = tuple(c for m in of_rows for c in _checks(m, sizes, columns, group, frame))
    people = {name: fewest(frame, quasi, name) for name in persons}
    checks += tuple(
        c for m in asked for name in persons for c in _of_persons(m, frame, quasi, sensitive, name, trees, notations)
    )
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
    """Risks of re-identification without a population; none for an empty table."""
    n, smallest = int(sizes.sum()), int(sizes.min(initial=2**62))
    return {
        "threshold": threshold,
        "prosecutor_max": 1 / smallest if n else 0.0,
        "prosecutor_mean": sizes.size / n if n else 0.0,
        "journalist_max": 1 / smallest if n else 0.0,
        "marketer": sizes.size / n if n else 0.0,
        "records_at_risk": float(sizes[sizes * threshold < 1 - CLOSE].sum() / n) if n else 0.0,
    }


def _levels(column: ClassCounts) -> SensitiveLevels:
    if not column.sizes.size:
        return SensitiveLevels(**{f.name: None for f in fields(SensitiveLevels)})
    return SensitiveLevels(
        l=frequency_level(column),
        distinct_l=distinct_level(column),
        entropy_l=entropy_level(column),
        recursive_c=recursive_level(column, 2),
        alpha=share_level(column),
        t_equal=closeness.equal(column),
        t_ordered=closeness.ordered(column),
        t_hierarchical=None if column.node is None else closeness.by_tree(column),
        beta=closeness.beta_level(column),
        delta=closeness.delta_level(column),
    )


def _checks(
    model: Model, sizes: np.ndarray, columns: Mapping[str, ClassCounts], group: np.ndarray, frame: pl.DataFrame
) -> list[Check]:
    """One Check per model and column that it constrains; an empty table meets every model."""
    asked = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "column"}  # type: ignore[arg-type]
    found = _reading(model)

    def check(seen: Any, column: str | None = None) -> Check:
        level, holds = found(model, seen) if sizes.size else (None, True)
        return Check(model=model.name, short=model.short, asked=asked, column=column, level=level, passes=holds)

    if model.applies_to == "rows":
        return [check(sizes)]
    if not columns:
        raise PolicyError(f"{model.name} needs a sensitive column, and none is given; say ⟨sensitive=[...]⟩")
    if model.applies_to == "tuples":
        return [check((np.column_stack([codes(frame[name]) for name in columns]), group))]
    if model.column is not None and model.column not in columns:
        raise PolicyError.unknown("sensitive column", model.column, columns)
    return [check(columns[name], name) for name in ([model.column] if model.column is not None else columns)]


def _of_persons(
    model: Model, frame: pl.DataFrame, quasi: Sequence[str], sensitive: Sequence[str], person: str,
    trees: Mapping[str, Hierarchy] | None, notations: Mapping[str, str] | None,
) -> list[Check]:  # fmt: skip
    """The checks of a model that differs if each person counts once for each value."""
    tuples = model.applies_to == "tuples"
    if not tuples and not counts_rows(model):
        return []
    named = sensitive if tuples or model.column is None else (model.column,)
    asked = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "column"}  # type: ignore[arg-type]
    found = []
    for columns in [named] if tuples else [(name,) for name in named]:
        tree, notation = (trees or {}).get(columns[0]), (notations or {}).get(columns[0])
        level, holds = by_persons(frame, quasi, columns, person, model, tree, notation)
        name = None if tuples else columns[0]
        found.append(Check(model=model.name, short=model.short, asked={**asked, "counted": person}, column=name,
                           level=level, passes=holds))  # fmt: skip
    return found


def _reading(model: Model) -> Callable[[Any, Any], tuple[float, bool]]:
    """The judge's own check of a model, by the name of its module; PolicyError for a model without one."""
    found = reading(f"{models.__name__}.{type(model).__module__.rpartition('.')[2]}", model.name, type(model).__name__)
    return found  # type: ignore[no-any-return]


_PATTERNS = 512


def frequencies(frame: pl.DataFrame, quasi: Sequence[str], star: str = "*") -> np.ndarray | None:
    """int64[n]: the number of rows that match each row, including itself; None beyond 512 patterns of wildcards.

    Two rows match if they agree in every column in which neither has a wildcard: a missing value or a star.
    O(patterns^2 (t log t)) for t different tuples.
    """
    n = frame.height
    columns = []
    for name in quasi:
        series = frame[name]
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.dtype == pl.String:
            series = series.set((series == star).fill_null(False), None)
        columns.append(codes_of(series, series)[0])
    rows = np.column_stack(columns) if columns else np.zeros((n, 0), np.int64)
    tuples, of, held = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    wild = tuples == 0
    patterns, which = np.unique(wild, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) > _PATTERNS:
        return None
    found = np.zeros(len(tuples), np.int64)
    for p, here in enumerate(patterns):
        mine = np.flatnonzero(which == p)
        for q, there in enumerate(patterns):
            theirs = np.flatnonzero(which == q)
            known = ~(here | there)
            both = np.concatenate([tuples[mine][:, known], tuples[theirs][:, known]])
            number = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            total = np.bincount(number[mine.size :], weights=held[theirs], minlength=int(number.max(initial=0)) + 1)
            found[mine] += total[number[: mine.size]].astype(np.int64)
    out: np.ndarray = found[of.reshape(-1)]
    return out


def wildcards(frame: pl.DataFrame, quasi: Sequence[str], threshold: float, star: str = "*") -> dict[str, float] | None:
    """Risks with wildcards: "k" (the least frequency), "uniques", and the prosecutor's highest, mean, and share."""
    found = frequencies(frame, quasi, star)
    if found is None or not found.size:
        return None
    return {
        "k": int(found.min()),
        "uniques": int((found == 1).sum()),
        "prosecutor_max": float(1 / found.min()),
        "prosecutor_mean": float((1 / found).mean()),
        "records_at_risk": float((found * threshold < 1 - 1e-9).mean()),
    }


def filled(
    frame: pl.DataFrame, names: Sequence[str], notations: Mapping[str, str] | None = None
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The frame with missing values of some columns replaced by the column's mode, and the number of them per column.

    notations  column -> its limits, as in ``<=18 >=90``, if it has any: all values that reach one are one value

    Of equally frequent values, the least is used: by number if all are numbers, else by text.
    """
    new, gone = [], {}
    for name in names:
        column = frame[name].fill_nan(None) if frame[name].dtype.is_float() else frame[name]
        gone[name] = column.null_count()
        known = counted = column.drop_nulls()
        limits = (notations or {}).get(name, "")
        if limits:
            counted = limited(known.to_frame(), {name: limits})[0][name]
        modes = counted.mode()
        if gone[name] and len(modes):
            texts = modes.cast(pl.String, strict=False).to_list()
            at = min(range(len(modes)), key=_order([t[2:] if t in limits.split() else t for t in texts]))
            column = column.fill_null(known.filter(counted == modes[at])[0])
        new.append(column)
    return frame.with_columns(new), gone


def limited(frame: pl.DataFrame, notations: Mapping[str, str]) -> tuple[pl.DataFrame, dict[str, dict[str, float]]]:
    """The frame with numbers at or beyond a limit replaced by the limit's text, and figures about each column.

    notations  column -> its limits, as in ``<=18 >=90``

    For each column, the figures are the number of values at or beyond the limits, "bottom" and "top", and the shares of
    the column's span beyond them, "below" and "above".
    """
    new, seen = [], {}
    for name, notation in notations.items():
        column = (
            frame[name].cast(pl.String) if isinstance(frame[name].dtype, (pl.Categorical, pl.Enum)) else frame[name]
        )
        column = column.set(column == 0, 0.0) if column.dtype.is_float() else column  # minus zero is zero
        text = pl.Series(name, shown(column), dtype=pl.String)
        number = column.cast(pl.Float64, strict=False).fill_nan(None)
        limits = {limit[0]: (float(limit[2:]), limit) for limit in notation.split(" ")}
        least, most = float(number.min() or 0.0), float(number.max() or 0.0)  # type: ignore[arg-type]
        low, high = limits.get("<", (-math.inf, ""))[0], limits.get(">", (math.inf, ""))[0]
        nobody = pl.Series([False]).new_from_index(0, number.len())
        below = (number <= low).fill_null(False) if "<" in limits else nobody
        above = (number >= high).fill_null(False) if ">" in limits else nobody
        text = text.set(below, limits["<"][1]) if below.any() else text
        text = text.set(above, limits[">"][1]) if above.any() else text
        span = (most - least) or 1.0
        seen[name] = {
            "bottom": int(below.sum()), "top": int(above.sum()),
            "below": _share_of(span, min(low, most) - least) if below.any() else 0.0,
            "above": _share_of(span, most - max(high, least)) if above.any() else 0.0,
        }  # fmt: skip
        new.append(text)
    return frame.with_columns(new), seen


def _share_of(span: float, part: float) -> float:
    """The share of a span that a part of it has; all of it where both have no end."""
    return part / span if math.isfinite(part) else 1.0


def _order(texts: Sequence[str]) -> Callable[[int], tuple[bool, float, str]]:
    """The rank of a text: by number if all are numbers, of which "nan" is the last; else by text."""
    numbers = pl.Series(texts, dtype=pl.String).cast(pl.Float64, strict=False)
    known = [0.0] * len(texts) if numbers.null_count() else numbers.to_list()
    return lambda at: (math.isnan(known[at]), known[at], texts[at])
