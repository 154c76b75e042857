"""The new values of a column, in the type in which it is published, and what they leave unsaid.

If a table is published as centers, rows are gathered by distance, and every row shows its cluster's center.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import Coded, mixed_radix_columns
from shoal.engines.table import Counted, Replacement
from shoal.engines.unassigned import coded_places
from shoal.errors import PolicyError, Sentence
from shoal.model import metric
from shoal.model.histogram import Partition
from shoal.model.metric import Category, Feature, Metric, Number
from shoal.model.notation import reader_of
from shoal.model.policy import Policy
from shoal.model.privacy import PrivacyModel, Requirement, TCloseness
from shoal.model.recoding import Ranges, Recoding
from shoal.model.task import Grouping
from shoal.publishing.recodings import ColumnText, by_classes, without_effect


def replacement(column: ColumnText, coded: Any, numeric_stars: str, as_text: bool) -> Replacement:
    """The new values of a column: its own type where every published value is its own or missing, else text.

    as_text  write stars as text in a column that also has missing values, so that the two differ
    """
    own = coded.values.dtype
    numeric = not (own == pl.String or isinstance(own, (pl.Categorical, pl.Enum)))
    coarser = (column.shows < 0) & ~column.starred
    null = numeric_stars == "null" and not (as_text and _both(column))
    if numeric and not coarser.any() and (null or not column.starred.any()):
        empty = coded.values.clear().extend_constant(None, 1)
        pool = pl.concat([coded.values, empty])
        values = pool.gather(np.where(column.shows < 0, len(coded.values), column.shows))
    else:
        values = pl.Series(column.name, column.texts, dtype=pl.String)
    return Replacement(column.name, values, column.index)


def _both(column: ColumnText) -> bool:
    """Whether stars stand beside missing values that are published as they are."""
    return bool(column.starred.any()) and any(t is None for t in column.texts)


def blurred_columns(columns: Sequence[ColumnText], replacements: Sequence[Replacement]) -> tuple[str, ...]:
    """A sentence for each column in which a star and a missing value are one."""
    return tuple(
        Sentence(
            f"column {c.name!r}: stars and missing values are both published as missing, so nobody can distinguish "
            "them, and a CSV has empty fields for both; ⟨numeric_stars='text'⟩ writes stars"
        )
        for c, r in zip(columns, replacements, strict=True)
        if r.values.dtype != pl.String and not r.values.dtype.is_nested() and _both(c)
    )


def like_values(columns: Sequence[ColumnText], own: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """A sentence for each column with a published label that is a value of the table too.

    own  per column, the texts of its values
    """
    both = {
        c.name: len({t for t, code in zip(c.texts, c.code, strict=True) if code < 0} & set(held) - {None})
        for c, held in zip(columns, own, strict=True)
    }
    return tuple(
        f"column {name!r}: labels of the hierarchy are values of the table too ({many:,} of those published), so "
        "nobody can tell such a value from its group; rename them in the hierarchy"
        for name, many in both.items()
        if many
    )


def coded_place(counted: Counted, own: Sequence[Sequence[str | None]], pair: tuple[str, str] | None) -> list[str]:
    """A sentence where longitudes and latitudes, joined as the last quasi-identifier, are codes; pair: their names."""
    if pair is None or metric.kind_of(*pair) != "geographic":
        return []
    points = np.array([(text or "nan nan").split(" ") for text in own[-1]], np.float64)
    cells = counted.histogram
    return coded_places(points, np.bincount(cells.quasi[:, -1], weights=cells.count, minlength=len(points)))


def ordered_as_equal(columns: Sequence[Coded], models: Sequence[PrivacyModel]) -> tuple[str, ...]:
    """A sentence for each sensitive column of numbers or dates whose values t-closeness takes for equally far apart."""
    equal = [m for m in models if isinstance(m, TCloseness) and m.distance == "equal"]
    return tuple(
        Sentence(
            f"column {c.name!r} holds numbers or dates, and t-closeness by the equal distance takes all of them for "
            "equally far apart; ⟨t_ordered=⟩ goes by their order and asks less"
        )
        for c in columns
        if any(m.column in (None, c.name) for m in equal) and c.size > 2 and c.positions() is not None
    )


def published_classes(replacements: list[Replacement]) -> int:
    """Number of classes as they will stand there: a starred number and a missing one are published alike."""
    seen = [r.values.rank("dense").fill_null(0).to_numpy()[r.index] for r in replacements]
    sizes = [int(s.max(initial=0)) + 1 for s in seen]
    return int(np.unique(mixed_radix_columns(seen, sizes, seen[0].size)).size)


def of_columns(
    counted: Counted,
    columns: Sequence[ColumnText],
    own: Sequence[Sequence[str | None]],
    recoding: Recoding,
    asked: Policy,
) -> tuple[str, ...]:
    """What whoever publishes should know of the columns as they are recoded; own as for ``like_values``."""
    alike = like_values(columns, own) if asked.publish == "hierarchy" else ()
    idle = without_effect(recoding, counted.histogram.quasi_names)
    trees = by_classes(recoding, counted.histogram.quasi_names, asked)
    return (*idle, *trees, *alike, *coded_place(counted, own, asked.coordinates))


def metric_of(
    asked: Policy, counted: Counted, texts: list[list[str | None]], cell: np.ndarray
) -> tuple[Metric, list[np.ndarray]]:
    """A Metric over the quasi-identifiers, and the position or code in each of a row of every ``cell``.

    Numbers and dates are scaled to a span of 1; other values are 1 apart, or as far as their hierarchy says.
    """
    features: list[Feature] = []
    columns: list[np.ndarray] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        codes = counted.histogram.quasi[cell, j]
        weight = float(asked.weights.get(column.name, 1.0))
        position = None if column.name in asked.hierarchies else column.positions()
        if position is not None:
            features.append(Number(column.name, scale=max(float(position[-1] - position[0]), 1e-12), weight=weight))
            columns.append(position[codes])
            continue
        levels = None
        if column.name in asked.hierarchies:
            from shoal.model.hierarchy import Hierarchy

            tree = Hierarchy.of(asked.hierarchies[column.name])
            levels = tree.resolve(values, column.name, reader_of(column.notation)).node.T
        features.append(Category(column.name, values=max(column.size, 1), weight=weight, levels=levels))
        columns.append(codes.astype(np.int64))
    return Metric(features=tuple(features)), columns


def _other_models(need: Requirement, counted: Counted) -> Callable[..., bool] | None:
    """Whether a cluster meets the models that shares and numbers of values do not say, from its counts by column."""
    if not need.rules:
        return None
    wanted = list(need.sensitive_columns)
    for rule in need.rules:
        if rule.model.speaks == "tuples":
            raise PolicyError(
                f"⟨publish='centers'⟩ cannot keep {rule.model.name}; publish stars, ranges or a hierarchy"
            )
    present = [np.unique(counted.histogram.sensitive[:, j]) for j in wanted]

    def holds(*counts: np.ndarray) -> bool:
        for rule in need.rules:
            at = wanted.index(rule.columns[0])
            full = np.zeros(len(rule.table), np.int64)
            full[present[at][: counts[at].size]] = counts[at]
            if not rule.model.holds(full, np.array(rule.table)):
                return False
        return True

    return holds


def by_centers(
    asked: Policy, counted: Counted, texts: list[list[str | None]], need: Requirement
) -> tuple[Grouping, Recoding, list[ColumnText]]:
    """Gather the rows, at least ``need.k`` in every cluster and diverse; publish each cluster's center record.

    The certificate counts the largest radius.  The recoding is that of ranges and sets, for the loss measures alone.
    """
    from shoal.problems.gathering import gather

    if asked.method not in ("auto", "local", "disjoint", "threshold"):
        raise PolicyError.unknown("method for ⟨publish='centers'⟩", asked.method, ["local", "disjoint", "threshold"])
    histogram = counted.histogram
    loss = Recoding(tuple(Ranges.of_column(c.size, c.positions, 1.0) for c in counted.quasi))
    cell = np.repeat(np.arange(histogram.cells), histogram.count)  # rows of a cell are the same point to every engine
    metric, columns = metric_of(asked, counted, texts, cell)
    if not histogram.rows:
        from shoal.model.certificate import Certificate

        nothing = Partition.of(*(np.zeros(0, np.int64),) * 3)
        empty = Grouping(nothing, Certificate(cost=0.0, lower_bound=0.0, unit="distance"), "gather")
        none = np.zeros(0, np.int64)
        return empty, loss, [ColumnText(c.name, [], none, none, none.astype(bool), none) for c in counted.quasi]
    wanted = list(need.sensitive_columns)
    found = gather(
        tuple(columns),
        r=max(need.smallest, 1),
        metric=metric,
        method=asked.method,
        effort=asked.effort,
        sensitive=histogram.sensitive[cell][:, wanted] if wanted else None,
        l=[need.frequency[j] for j in wanted] if wanted else None,
        distinct_l=[need.distinct[j] for j in wanted] if wanted else None,
        eligible=_other_models(need, counted),
    )
    partition = Partition.of(cell, found.labels, np.ones(found.labels.size, np.int64))
    out: list[ColumnText] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        code = histogram.quasi[cell[found.center_rows], j].astype(np.int64)
        mine = histogram.quasi[partition.cell, j]
        same = np.minimum.reduceat(mine == code[partition.group], partition.start)
        key = code * 2 + same
        distinct, index = np.unique(key, return_inverse=True)
        shown = [values[int(k) // 2] for k in distinct]
        plain = np.where(distinct % 2 == 1, distinct // 2, -1)
        stars = np.zeros(len(shown), bool)
        out.append(ColumnText(column.name, shown, index.reshape(-1), plain, stars, distinct // 2))
    return Grouping(partition, found.certificate, found.method), loss, out
