"""From published codes to published text: one short list of texts per column, and an index into it per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.model.histogram import Histogram, Partition
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
    shown = recoding.shown(histogram, partition, published, j)
    index, texts, plain = recoding.columns[j].texts(shown, values, labels, star)
    code = np.array(plain, np.int64)
    starred = np.array([t == star and c < 0 for t, c in zip(texts, plain, strict=True)], bool)
    return ColumnText(histogram.quasi_names[j], texts, index.astype(np.int64), code, starred, code)


def column_texts(
    histogram: Histogram,
    partition: Partition,
    recoding: Recoding,
    published: Published,
    values: Sequence[Sequence[str | None]],
    labels: Sequence[Sequence[Sequence[str | None]] | None],
    star: str,
) -> list[ColumnText]:
    """Texts of every column; arguments by column as of ``column_text``."""
    made = (histogram, partition, recoding, published)
    return [column_text(*made, j, own, named, star) for j, (own, named) in enumerate(zip(values, labels, strict=True))]
