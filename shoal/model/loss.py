"""The measures of a release's loss, by their names in the literature and with the variant that is computed.

``measures`` computes all of them; each is also a function of a ``View``. A *class* is the set of all rows with equal
published values: groups with equal published values are one class, and so are all fully starred rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.model.histogram import Histogram, Partition, mixed_radix
from shoal.model.recoding import ColumnRecoding, PublishedCodes, PublishedColumn, Recoding

MOST_WORK = 2_000_000_000  # table look-ups above which ``measures`` omits the KL divergence


@dataclass(frozen=True, eq=False)
class View:
    """A partition as it is published. It caches what several measures need."""

    histogram: Histogram
    partition: Partition
    recoding: Recoding
    k: int = 1
    given: PublishedCodes | None = None

    @cached_property
    def published(self) -> PublishedCodes:
        """The published values of every group: ``given``, or by default the least common ones."""
        return self.given or self.recoding.publish(self.histogram, self.partition)

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64[g]: number of rows of every group."""
        return self.partition.sizes

    @cached_property
    def shown(self) -> list[PublishedColumn]:
        """The published values of each column."""
        known = self.histogram, self.partition, self.published
        return [self.recoding.shown(*known, j) for j in range(len(self.recoding.columns))]

    def each(self, ask: Callable[[ColumnRecoding, PublishedColumn], np.ndarray], kind: type = float) -> np.ndarray:
        """[g, d]: the result of ``ask`` for every column and group."""
        out: np.ndarray = np.zeros(self.published.first.shape, kind)
        for j, (column, shown) in enumerate(zip(self.recoding.columns, self.shown, strict=True)):
            out[:, j] = ask(column, shown)
        return out

    @cached_property
    def values(self) -> np.ndarray:
        """int64[g, d]: a number for every published value. Within a column, numbers are equal if and only if the values
        are."""
        return self.each(lambda column, shown: column.numbers(shown), np.int64)

    @cached_property
    def class_of(self) -> np.ndarray:
        """int64[g]: the class of every group."""
        values = self.values
        if not values.shape[0]:
            return np.zeros(0, np.int64)
        dense = [np.unique(v, return_inverse=True)[1].reshape(-1) for v in values.T]
        if not dense:
            return np.zeros(values.shape[0], np.int64)
        key = mixed_radix(np.stack(dense, axis=1), [int(v.max()) + 1 for v in dense])
        return np.unique(key, return_inverse=True)[1].reshape(-1)

    @cached_property
    def classes(self) -> np.ndarray:
        """int64[c]: number of rows of every class."""
        return np.bincount(self.class_of, weights=self.sizes).astype(np.int64)

    @cached_property
    def boxes(self) -> _Boxes:
        """The classes as boxes, for the KL divergence."""
        return _Boxes(self)

    @cached_property
    def exact(self) -> np.ndarray:
        """bool[g, d]: whether the value itself is published."""
        return self.each(lambda column, shown: column.exact(shown), bool)

    @cached_property
    def lost(self) -> np.ndarray:
        """float64[g, d]: the unweighted loss of a value in every group and column, 0 to 1."""
        plain = Recoding(tuple(replace(c, weight=1.0) for c in self.recoding.columns))
        return plain.losses(self.histogram, self.partition, self.published)

    def mean(self, per_value: np.ndarray) -> float:
        """The mean of float[g, d] over rows and columns."""
        total = float((per_value.sum(axis=1) * self.sizes).sum())
        return total / max(self.histogram.rows * len(self.recoding.columns), 1)


def stars(view: View) -> int:
    """Number of values published as ``*``: the root of a hierarchy, or a set of all values. Ranges are never stars."""
    starred = view.each(lambda column, shown: column.starred(shown), bool)
    return int((starred * view.sizes[:, None]).sum())


def suppressed_tuples(view: View) -> int:
    """Number of rows with at least one recoded value (Xiao, Yi, Tao 2010, Problem 2, for every way to publish)."""
    return int(view.sizes[~view.exact.all(axis=1)].sum())


def ncp(view: View) -> float:
    """Normalized certainty penalty: unweighted mean over rows and columns.

    Hierarchy: (leaves under the class - 1) / (leaves - 1). Set: (values - 1) / (values of the column - 1). Range:
    (high - low) / (max - min), at most 1. The leaves are those of the given hierarchy; for generated hierarchies, the
    values that occur. A missing value is not a leaf. A star counts 1, an unchanged value 0.
    """
    return view.mean(view.lost)


def precision(view: View) -> float:
    """Sweeney's Prec: 1 - mean of level / height. Sets and ranges have no level: 0 if unchanged, otherwise height 1 of
    1."""
    return 1 - view.mean(view.each(lambda column, shown: column.height(shown)))


def discernibility(view: View) -> int:
    """Discernibility metric DM of Bayardo and Agrawal: the sum of squared class sizes.

    Every row is published, so the fully starred rows are one class like any other, and no row counts as removed.
    """
    return int((view.classes.astype(object) ** 2).sum()) if view.classes.size else 0


def average_class_size(view: View) -> float:
    """The mean number of rows in a class."""
    return view.histogram.rows / max(view.classes.size, 1)


def normalized_class_size(view: View) -> float:
    """C_avg of LeFevre, DeWitt, Ramakrishnan: mean rows in a class, divided by k; at least 1."""
    return average_class_size(view) / view.k


def largest_class(view: View) -> int:
    """The max objective of Du, Eppstein, Goodrich, Lueker: the number of rows of the largest class."""
    return int(view.classes.max(initial=0))


def class_excess(view: View) -> int:
    """The sum objective of the same paper with error |E| - k for every row of class E: sum of |E| (|E| - k)."""
    return discernibility(view) - view.k * view.histogram.rows


def non_uniform_entropy(view: View) -> float:
    """Non-uniform entropy of Gionis and Tassa: the mean over rows and columns of -log2(n(a) / n(B)), in bits.

    a is the value, B the published class, set, or range, and n(.) the number of the table's rows with such a value.
    """
    histogram, partition = view.histogram, view.partition
    total = 0.0
    for j, column in enumerate(view.recoding.columns):
        code = histogram.quasi[:, j]
        held = np.bincount(code, weights=histogram.count, minlength=max(column.size, 1))
        inside = column.inside(view.shown[j], held)
        placed = histogram.quasi[partition.cell, j]
        total += float((np.log2(inside[partition.group] / held[placed]) * partition.count).sum())
    return max(total, 0.0) / max(histogram.rows * len(view.recoding.columns), 1)


def kl_divergence(view: View) -> float:
    """Kullback-Leibler divergence of the table from its release, in nats: Xiao, Yi, Tao 2010, equation (2).

    f is the share of each cell (quasi-identifiers and sensitive values together). f* spreads every published row evenly
    over the codes that it may stand for: those of its class, set, or range; of the whole column for a star. The result
    is the sum over the cells of f ln(f / f*); empty cells add nothing.

    The cheaper of two methods computes f*. The first compares cells with boxes within each sensitive value, by bit sets
    and a byte at a time, in O(cells boxes / 8); classes of unchanged values are found by a key instead. The second, for
    hierarchies, makes one pass for each combination of levels that occurs, each in O(cells d).
    """
    histogram, n = view.histogram, view.histogram.rows
    if n == 0:
        return 0.0
    boxes = view.boxes
    by_box, by_pattern = boxes.work()
    mixed = boxes.by_patterns() if by_pattern < by_box else boxes.by_bits()
    share = histogram.count / n
    return max(float((share * np.log(share / mixed)).sum()), 0.0)


MEASURES: dict[str, Callable[[View], float]] = {
    f.__name__: f
    for f in (
        stars,
        suppressed_tuples,
        ncp,
        precision,
        discernibility,
        average_class_size,
        normalized_class_size,
        largest_class,
        class_excess,
        non_uniform_entropy,
        kl_divergence,
    )
}


def measures(
    histogram: Histogram, partition: Partition, recoding: Recoding, k: int = 1, given: PublishedCodes | None = None
) -> dict[str, float]:
    """Every measure by name. Counts are ints.

    k is that of k-anonymity, for ``normalized_class_size`` and ``class_excess``. ``weighted_ncp`` is included if a
    column's weight differs from 1. ``kl_divergence`` is omitted if it would take more than two billion look-ups.
    Without it, the time is nearly linear in the cells.
    """
    view = View(histogram, partition, recoding, max(k, 1), given)
    out = {name: f(view) for name, f in MEASURES.items() if name != "kl_divergence"}
    if any(c.weight != 1 for c in recoding.columns):
        out["weighted_ncp"] = view.mean(recoding.losses(histogram, partition, view.published))
    if min(view.boxes.work()) <= MOST_WORK:
        out["kl_divergence"] = kl_divergence(view)
    return out


class _Boxes:
    """The classes of a release as boxes of codes with their sensitive values, for the KL divergence."""

    def __init__(self, view: View) -> None:
        histogram, partition = view.histogram, view.partition
        self.view = view
        self.codes = histogram.quasi
        self.columns, self.trees = view.recoding.columns, view.recoding.hierarchies
        sensitive = mixed_radix(histogram.sensitive, histogram.sensitive_sizes)
        self.kind = np.unique(sensitive, return_inverse=True)[1].reshape(-1)
        kinds = int(self.kind.max(initial=-1)) + 1
        # distinct pairs (sensitive value, class), with their number of published rows
        pair = self.kind[partition.cell] * np.int64(max(view.classes.size, 1)) + view.class_of[partition.group]
        found, inverse = np.unique(pair, return_inverse=True)
        rows = np.bincount(inverse.reshape(-1), weights=partition.count, minlength=found.size)
        self.box_kind, self.box = found // max(view.classes.size, 1), found % max(view.classes.size, 1)
        self.someone = np.zeros(view.classes.size, np.int64)  # one group of each class
        self.someone[view.class_of] = np.arange(partition.groups)
        volume = self._volume()[self.box]
        self.density = rows / histogram.rows / volume if rows.size else rows
        self.begin = np.searchsorted(self.box_kind, np.arange(kinds + 1))
        self.wide = np.flatnonzero(volume != 1)  # boxes that may stand for more than one tuple of codes
        self.wide_begin = np.searchsorted(self.box_kind[self.wide], np.arange(kinds + 1))

    def _volume(self) -> np.ndarray:
        """float64[c]: number of code tuples that each class may stand for."""
        one = [np.ones(c.size) for c in self.columns]
        volumes = [c.inside(shown, held) for c, shown, held in zip(self.columns, self.view.shown, one, strict=True)]
        return np.prod(volumes, axis=0)[self.someone] if volumes else np.ones(self.someone.size)

    def work(self) -> tuple[float, float]:
        """Number of look-ups of each method; inf if it doesn't apply."""
        cells = np.bincount(self.kind, minlength=self.begin.size - 1).astype(float)
        by_bits = float((cells * (np.diff(self.wide_begin) + 8)).sum()) / 8 * (1 + len(self.columns) / 8)
        by_bits += float(self.wide.size) * sum(c.size * max(c.levels, 1) for c in self.columns) / 8
        if self.trees is None:
            return by_bits, float("inf")
        patterns = len(np.unique(self.view.published.first, axis=0))
        return by_bits, float(patterns) * self.codes.shape[0] * (len(self.columns) + 8)

    def by_patterns(self) -> np.ndarray:
        """float64[m]: f* of every cell, computed for one combination of levels at a time."""
        trees = self.trees or ()
        out = np.zeros(self.codes.shape[0])
        first = self.view.published.first[self.someone]
        second = self.view.published.second[self.someone]
        patterns, inverse = np.unique(first[self.box], axis=0, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(inverse.reshape(-1)))[:-1])
        # Join cells and groups at these levels by a key of their nodes.
        for levels, part in zip(patterns, parts, strict=True):
            here = np.arange(out.size)
            boxes = [self.box_kind[part]]
            sizes = [self.begin.size]
            for j, column in enumerate(trees):
                node = column.node[levels[j]]
                width = int(node.max()) + 1
                used = np.zeros(width, bool)
                used[second[self.box[part], j]] = True
                if not used.all():
                    here = here[used[node[self.codes[here, j]]]]
                boxes.append(second[self.box[part], j])
                sizes.append(width)
            keys = [self.kind[here], *(c.node[levels[j]][self.codes[here, j]] for j, c in enumerate(trees))]
            both = np.concatenate([np.stack(boxes, axis=1), np.stack(keys, axis=1)])
            key = mixed_radix(both, sizes)
            table, asked = key[: part.size], key[part.size :]
            by_key = np.argsort(table)
            at = np.minimum(np.searchsorted(table[by_key], asked), part.size - 1)
            hit = table[by_key][at] == asked
            out[here[hit]] += self.density[part][by_key][at[hit]]
        return out

    def by_bits(self) -> np.ndarray:
        """float64[m]: f* of every cell, computed for one sensitive value and some boxes at a time."""
        out = self._by_key()
        order = np.argsort(self.kind, kind="stable")
        cell_begin = np.searchsorted(self.kind[order], np.arange(self.begin.size))
        # For each cell, one bit for each box states whether the box contains the cell. The bits of the columns are
        # combined by AND, and densities are summed for eight bits at a time.
        for kind in range(self.begin.size - 1):
            cells = order[cell_begin[kind] : cell_begin[kind + 1]]
            for at in _parts(self.wide_begin[kind], self.wide_begin[kind + 1], 2048):
                part = self.wide[at]
                inside = [self._members(j, self.box[part]) for j in range(len(self.columns))]
                weights = np.zeros((-(-part.size // 64) * 8, 8))
                weights.reshape(-1)[: part.size] = self.density[part]
                bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(float)
                table = weights @ bits.T  # [byte, 256]: sum of the densities of the set bits
                for some in _parts(0, cells.size, 1 << 11):
                    found = np.full((some.size, table.shape[0] // 8), -1, np.int64)
                    for j, member in enumerate(inside):
                        found &= member[self.codes[cells[some], j]]
                    row, word = np.nonzero(found)  # few words have a bit set
                    eight = found[row, word].view(np.uint8).reshape(-1, 8)
                    density = table[word[:, None] * 8 + np.arange(8), eight].sum(axis=1)
                    out[cells[some]] += np.bincount(row, weights=density, minlength=some.size)
        return out

    def _by_key(self) -> np.ndarray:
        """float64[m]: the part of f* from boxes that stand for a single tuple of codes."""
        partition = self.view.partition
        alone = np.ones(self.box.size, bool)
        alone[self.wide] = False
        held = np.zeros(max(partition.groups, 1), np.int64)  # one cell of each group
        held[partition.group] = partition.cell
        tuples = self.codes[held[self.someone[self.box[alone]]]]
        both = np.column_stack([np.append(self.kind, self.box_kind[alone]), np.concatenate([self.codes, tuples])])
        key = mixed_radix(both, [self.begin.size, *(c.size for c in self.columns)])
        cells, boxes = np.split(key, [self.codes.shape[0]])
        known, at = np.unique(boxes, return_inverse=True)
        if not known.size:
            return np.zeros(cells.size)
        density = np.bincount(at.reshape(-1), weights=self.density[alone])
        found = np.minimum(np.searchsorted(known, cells), known.size - 1)
        return np.where(known[found] == cells, density[found], 0.0)

    def _members(self, j: int, box: np.ndarray) -> np.ndarray:
        """int64[size, boxes / 64]: for every code of column j, the bits of the boxes that contain it."""
        column = self.columns[j]
        member = np.zeros((max(column.size, 1), -(-box.size // 64) * 64), bool)
        member[: column.size, : box.size] = column.members(self.view.shown[j], self.someone[box])
        return np.packbits(member, axis=1).view(np.int64)


def _parts(low: int, high: int, step: int) -> Iterator[np.ndarray]:
    for at in range(int(low), int(high), step):
        yield np.arange(at, min(at + step, int(high)))


def parts_bounds(weight: np.ndarray, number: int) -> tuple[int, int]:
    """Lower bounds over all partitions into at most ``number`` parts: the heaviest part, and the sum of squares.

    weight  int64[n] of the items

    The j heaviest parts weigh at least as much as the j heaviest items. Under these constraints and with the given
    total, both figures are least if each item above the level of the rest is a part of its own, and the remaining
    weight is distributed evenly over the other parts (all other loads majorize these).  O(n) for each such item.
    """
    rest, left, slots, heaviest, squares = weight, int(weight.sum()), number, 0, 0
    while slots > 1 and (alone := rest[rest > left // slots].tolist()):  # so w slots > left, without overflow
        rest = rest[rest <= left // slots]
        heaviest, squares = max(heaviest, *alone), squares + sum(w * w for w in alone)
        left, slots = left - sum(alone), slots - len(alone)
    level, above = divmod(left, slots)
    return max(heaviest, level + (above > 0)), squares + above * (level + 1) ** 2 + (slots - above) * level**2
