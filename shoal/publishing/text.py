"""From published codes to published text: one short list of texts per column, and an index into it per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.model.histogram import Histogram
from shoal.model.notation import range_text, set_text, single
from shoal.model.partition import Partition
from shoal.model.recoding import Published, Recoding


@dataclass(frozen=True, eq=False)
class ColumnText:
    """What one quasi-identifier publishes.

    texts    distinct published texts; None is a missing value published as it is
    index    int64[groups]  text of each group
    code     int64[texts]   the code a text publishes unchanged, -1 where it publishes something coarser
    starred  bool[texts]    whether the text is a star
    shows    int64[texts]   the code whose value the text is, -1 where it is a star, a level, a set or a range
    """

    name: str
    texts: list[str | None]
    index: np.ndarray
    code: np.ndarray
    starred: np.ndarray
    shows: np.ndarray


def column_text(
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    published: Published,
    j: int,
    values: Sequence[str | None],
    labels: Sequence[Sequence[str | None]] | None = None,
    star: str = "*",
) -> ColumnText:
    """Texts of column j.

    values  text of each code, None for a missing value
    labels  per level from 1 on: text of each class (index 0 is level 1); of a range widened to a grid one line, the
            texts of its ends; None for plain suppression and other ranges
    """
    column = recoding.columns[j]
    first, second = published.first[:, j].astype(np.int64), published.second[:, j].astype(np.int64)
    name = histogram.quasi_names[j]
    size = max(column.size, 1)

    texts: list[str | None] = []
    plain: list[int] = []
    if column.kind == "set":
        index, texts, plain = _sets(histogram, partition, j, size, values, star)
    else:
        width = max(size, int(second.max(initial=0)) + 1)
        ends: Sequence[str | None] = values if labels is None or column.kind != "range" else labels[0]
        at_end = {int(a): code for code, (a, b) in enumerate(zip(column.low, column.high, strict=True)) if a == b}
        distinct, inverse = np.unique(first * width + second, return_inverse=True)
        index = inverse.reshape(-1)
        for pair in distinct.tolist():
            a, b = divmod(pair, width)
            if column.kind == "levels":
                text = values[b] if a == 0 else labels[a - 1][b] if labels is not None else "*"
                texts.append(star if a and text == "*" else text)
                plain.append(b if a == 0 else -1)
            else:
                texts.append(single(ends[a]) if a == b else range_text(ends[a], ends[b]))
                plain.append(at_end[a] if a == b else -1)
    code = np.array(plain, np.int64)
    starred = np.array([t == star and c < 0 for t, c in zip(texts, plain, strict=True)], bool)
    return ColumnText(name, texts, index.astype(np.int64), code, starred, code)


def _sets(
    histogram: Histogram, partition: Partition, j: int, size: int, values: Sequence[str | None], star: str
) -> tuple[np.ndarray, list[str | None], list[int]]:
    """Each group's set of values, as ``model.notation`` writes it; the full set is a star."""
    pair = np.unique(partition.group * np.int64(size) + histogram.quasi[partition.cell, j])
    start = np.searchsorted(pair // size, np.arange(partition.groups))
    members = np.split(pair % size, start[1:]) if partition.groups else []
    known: dict[bytes, int] = {}
    texts: list[str | None] = []
    plain: list[int] = []
    index = np.zeros(partition.groups, np.int64)
    for g, codes in enumerate(members):
        key = codes.tobytes()
        if key not in known:
            known[key] = len(texts)
            if codes.size == 1:
                texts.append(single(values[int(codes[0])]))
                plain.append(int(codes[0]))
            else:
                texts.append(star if codes.size == size else set_text(values[c] for c in codes.tolist()))
                plain.append(-1)
        index[g] = known[key]
    return index, texts, plain
