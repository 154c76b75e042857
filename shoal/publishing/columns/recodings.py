"""How each quasi-identifier of a table is recoded: read, built, or generated from the table's own counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.engines.codes import Coded
from shoal.engines.table import Counted
from shoal.errors import InputError, PolicyError
from shoal.judge.originals.covering import reader
from shoal.model.certificate import tight
from shoal.model.hierarchy import GENERATED
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.policy import Policy
from shoal.model.recoding import ColumnRecoding, Levels, Published, Ranges, Recoding
from shoal.model.task import Grouping
from shoal.model.ways import WAYS
from shoal.publishing.columns.grid import grid

Labels = Sequence[Sequence[str | None]] | None


def recodings(
    asked: Policy, counted: Counted, texts: list[list[str | None]], smallest: int
) -> tuple[Recoding, list[Labels]]:
    """One ColumnRecoding per quasi-identifier, and the labels of its levels from 1 on, or of a range's ends.

    texts     per column, the text of every code
    smallest  the least rows a group can have; generated levels hold at least this many rows, then 4, 16, ... times that
    """
    reader(asked.publish)  # what the judge cannot read is not begun
    columns: list[ColumnRecoding] = []
    labels: list[Labels] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        weight = float(asked.weights.get(column.name, 1.0))
        ceiling = asked.max_level.get(column.name)
        if asked.publish == "hierarchy" and column.name in asked.hierarchies:
            from shoal.model.hierarchy import Hierarchy

            source = asked.hierarchies[column.name]
            given = not (isinstance(source, str) and source in GENERATED)  # how high others grow follows from the table
            if not given:
                held = np.bincount(
                    counted.histogram.quasi[:, j], weights=counted.histogram.count, minlength=column.size
                ).astype(np.int64)
                source = _generate(source, column, values, held, smallest, asked.coordinates)
            found = Hierarchy.of(source).resolve(values, column.name)
            if given:
                _refuse_above(column.name, ceiling, found.node.shape[0] - 1)
            columns.append(Levels.tree(found.node, weight, ceiling, found.leaves))
            labels.append(found.labels[1:])
            continue
        step = asked.range_step.get(column.name)
        if step is not None:
            position = column.positions()
            ends, names = grid(column, position, step)
            assert position is not None  # or the grid has refused it
            columns.append(Ranges.of(position, weight, ends))
            labels.append([names])
            continue
        labels.append(None)
        _refuse_above(column.name, ceiling, 1)
        plain = WAYS[asked.publish].load().of_column(column.size, column.positions, weight)
        columns.append(plain if ceiling is None else replace(plain, ceiling=min(ceiling, 1)))
    stars_only = asked.publish == "stars" and not asked.weights
    return Recoding(tuple(columns), "stars" if stars_only else "ncp"), labels


def without_effect(recoding: Recoding, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for every hierarchy that joins no two values below the star, so that it might as well not be given."""
    return tuple(
        f"the hierarchy of {name!r} joins no two values below the star, so the column is published as without it"
        for name, column in zip(names, recoding.columns, strict=True)
        if column.levels > 2 and column.size > 1
        and np.unique(column.classes(column.levels - 2, np.arange(column.size))).size == column.size
    )  # fmt: skip


def _refuse_above(name: str, ceiling: int | None, height: int) -> None:
    if ceiling is not None and ceiling > height:
        raise PolicyError(
            f"max_level[{name!r}] = {ceiling}: the column is published at levels 0 to {height}, where {height} is the "
            "star"
        )


def _generate(
    kind: str,
    column: Coded,
    values: list[str | None],
    held: np.ndarray,
    smallest: int,
    coordinates: tuple[str, str] | None,
) -> list[list[str]]:
    """Rows of a hierarchy made from the table's counts: groups of at least ``smallest`` rows, then 4, 16, ... times.

    coordinates  names of the columns behind a place: longitude and latitude are tiled with the date line as no border
    """
    present = [i for i, text in enumerate(values) if text is not None]
    counts = held[present]
    ks: list[int] = []
    k = max(smallest, 2)
    while k <= int(counts.sum()) // 2 and len(ks) < 12:
        ks.append(k)
        k *= 4
    ks = ks or [max(smallest, 2)]
    if kind == "labels":
        from shoal.problems.labels import levels as label_levels

        return label_levels([values[i] for i in present], counts, ks)
    if kind == "intervals":
        from shoal.problems.intervals import levels as interval_levels

        position = None if column.banded else column.positions()
        if position is None:
            raise PolicyError(
                f"hierarchies[{column.name!r}] = 'intervals' needs numbers or dates; use 'labels' for unordered values"
            )
        rows = interval_levels([position[i] for i in present], counts, ks)
        return [[str(values[i]), *row[1:]] for i, row in zip(present, rows, strict=True)]
    from shoal.problems.tiles import kind_of
    from shoal.problems.tiles import levels as tile_levels

    points = np.array([_place(str(values[i]), column.name) for i in present])
    found = tile_levels(points, ks, counts, coordinates=kind_of(*coordinates) if coordinates else "projected")
    shown = found.labels
    return [[str(values[i]), *shown[p]] for i, p in zip(present, found.inverse.tolist(), strict=True)]


def _place(text: str, column: str) -> tuple[float, float]:
    """The two numbers of a place "x y"; InputError when they are not."""
    x, _, y = text.partition(" ")
    try:
        point = float(x), float(y)
    except ValueError:
        raise InputError(f"column {column!r} does not hold two numbers in every row; repair the coordinates") from None
    if not np.isfinite(point).all():
        raise InputError(f"column {column!r} holds a coordinate that is not finite; repair it")
    return point


def one_level_per_column(
    grouping: Grouping,
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    texts: Sequence[Sequence[str | None]],
    labels: Sequence[Labels],
) -> tuple[Grouping, Published]:
    """A global recoding, or one of coarsened columns with stars, as it is published; its certificate counts that cost.

    texts   per column, the text of every code
    labels  as from ``recodings``

    The bound stays that of all releases; ``uniform_bound`` among the details is that of one level per column.
    """
    facts = dict(grouping.certificate.details)
    if "levels" not in facts:
        raise PolicyError(f"method {grouping.method!r} does not take one level per column; leave the method out")
    found, cost = grouping.certificate, facts["uniform_cost"]
    lower = tight(found.lower_bound, cost, found.unit, found.bound or "")  # the two are added up in different orders
    certificate = replace(found, cost=cost, lower_bound=lower)
    shows = recoding.at_levels(histogram, partition, facts["levels"], grouping.starred)
    return replace(grouping, certificate=certificate), as_they_are(shows, recoding, texts, labels)


def as_they_are(
    shows: Published, recoding: Recoding, texts: Sequence[Sequence[str | None]], labels: Sequence[Labels]
) -> Published:
    """A class of one value that is called like the value publishes the value: nobody can tell a level by the text."""
    first, second = shows.first.copy(), shows.second.copy()
    for j, (column, own, named) in enumerate(zip(recoding.columns, texts, labels, strict=True)):
        if named is None or not column.levels:
            continue
        for level in range(1, column.levels):
            codes, called = np.arange(column.size), named[level - 1]
            node, loss = column.classes(level, codes), column.lifted(level, codes)
            alone = np.bincount(node, minlength=len(called)) == 1
            for code in np.flatnonzero(alone[node] & (loss == 0)).tolist():
                if called[node[code]] == (own[code] or ""):  # a missing value's class is called by the empty text
                    here = (shows.first[:, j] == level) & (shows.second[:, j] == node[code])
                    first[here, j], second[here, j] = 0, code
    return Published(first, second)
