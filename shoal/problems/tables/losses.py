"""Losses as integers, so that bounds and optima can be compared exactly, and the generalization lattice.

An exact method uses *types* (distinct quasi-identifier tuples) and the loss per row of any group of types. Stars are
integers already. Other losses are read as fractions (a loss of 0.142857142857 is 1/7) and multiplied by their common
denominator. If it exceeds the limit, they are rounded down to a fine grid, so that every bound remains valid and only
optimality can't be claimed (``exact`` is False).

All recodings have these properties, and the proofs of these methods need no others:
(1) a group's loss per row never decreases when rows join it;
(2) if two groups have a tuple in common, the union loses per row at most the sum of both losses;
(3) for levels and ranges, a group's loss in a column is that of its worst pair.

``Lattice`` is the generalization lattice of a table: one level for each column, with the loss of each level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.recoding import ColumnRecoding, Recoding
from shoal.model.task import Grouping, Task

if TYPE_CHECKING:
    from shoal.kernels.tables.multipliers import Types


SHAPES = {"tree": 0, "line": 1, "set": 2}
DENOMINATOR = 10**5  # losses of levels and weights are read as fractions with at most this denominator
NARROW, WIDE = 2**30, 2**56  # largest loss of a pair as an int32; as an int64 without overflow of prices
LARGEST = 10**7  # largest common denominator of group losses, which are sums of many
WIDEST = 4096  # largest number of codes of a column, whose table of pairs has the square of this as its size


class WholeLosses(NamedTuple):
    """Losses as integers, in units of 1 / scale.

    exact    whether they are the exact losses; otherwise every pair's loss is rounded, by half a unit in each column
    columns  int64 per column: levels [h, size], range [3, size] (lower ends, upper ends, the largest loss), set [1]
             (any two values); floats, the losses themselves, if not exact
    most     upper bound of the loss of a pair
    """

    scale: int
    exact: bool
    columns: tuple[np.ndarray, ...]
    most: int


def whole_losses(recoding: Recoding, most: int = WIDE) -> WholeLosses:
    """Losses of pairs in integers of at most ``most``; exact if all columns have one denominator within the limit."""
    fractions = [_fractions(column) for column in recoding.columns]
    known = [found for found in fractions if found is not None]
    scale = 1
    for f in (f for found in known for f in found):
        scale = math.lcm(scale, f.denominator)
        if scale > 2 * most * DENOMINATOR:  # fractions without a small denominator
            known = []
            break
    if len(known) == len(recoding.columns):
        top = sum(int(max(found, default=Fraction(0)) * scale) for found in known)
        if top <= most:
            tables = []
            for column, found in zip(recoding.columns, known, strict=True):
                table = np.array([int(f * scale) for f in found], np.int64)
                tables.append(table.reshape(column.pair_table().shape))
            return WholeLosses(scale, True, tuple(tables), top)
    heaviest = max(sum(c.weight for c in recoding.columns), 1e-9)
    scale = max(int(NARROW / heaviest), 1)
    return WholeLosses(scale, False, tuple(c.pair_table() for c in recoding.columns), NARROW)


def _fractions(column: ColumnRecoding) -> list[Fraction] | None:
    """The numbers of ``pair_table`` as fractions; None if the floats aren't short decimals or simple fractions.

    Positions are read as the decimals that they print as; weights and losses of levels as fractions of small
    denominator (0.142857142857 is 1/7), or as decimals.
    """
    weight, found = _read(column.weight), column.pair_fractions(_read)
    if found is None:
        return None
    out = [fraction * weight for fraction in found]
    near = np.abs(np.array([float(f) for f in out]) - column.pair_table().reshape(-1))
    return out if near.max(initial=0.0) <= 1e-12 * max(float(weight), 1.0) else None


def _read(value: float) -> Fraction:
    small = Fraction(value).limit_denominator(DENOMINATOR)
    return small if abs(float(small) - value) <= 1e-12 * abs(value) else Fraction(repr(value))


def pair_losses(recoding: Recoding, a: np.ndarray, b: np.ndarray, whole: WholeLosses | None = None) -> np.ndarray:
    """[x, y]: the loss of a row if code tuples a int[x, d] and b int[y, d] are published together.

    float64, or int64 in integer units if ``whole`` is given.
    """
    tables = [c.pair_table() for c in recoding.columns] if whole is None else whole.columns
    out = np.zeros((a.shape[0], b.shape[0]), np.float64 if whole is None else np.int64)
    for j, column in enumerate(recoding.columns):
        x, y, table = a[:, j], b[:, j], tables[j]
        part = column.paired(table, x[:, None], y)
        out += part if whole is None or whole.exact else np.rint(part * whole.scale).astype(np.int64)
    return out


@dataclass(frozen=True, eq=False)
class Costs:
    """The losses of groups of types.

    code    int32[t, d]: the types
    count   int64[t]: rows of each
    pair    int64[...]: loss of publishing two codes of a column as one: pair[start[j] + a * size[j] + b]
    start   int64[d], size int64[d]
    kind    int64[d]: 0 tree, 1 line, 2 set: ``ColumnRecoding.shape``
    scale   a row's loss in the recoding's unit is its integer loss / scale
    exact   whether the integers are the exact losses, or rounded down
    unit    the recoding's unit; "ncp" is a mean over rows and columns
    """

    code: np.ndarray
    count: np.ndarray
    pair: np.ndarray
    start: np.ndarray
    size: np.ndarray
    kind: np.ndarray
    scale: int
    exact: bool
    unit: str

    def in_kernels(self) -> Types:
        """These types in the form of the kernels."""
        from shoal.kernels.tables.multipliers import Types

        return Types(self.code, self.count, self.pair, self.start, self.size, self.kind)

    @property
    def types(self) -> int:
        """The number of types, t."""
        return int(self.count.size)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @classmethod
    def of(cls, histogram: Histogram, recoding: Recoding) -> Costs:
        """The types and losses of a table. O(m log m), plus the square of every column's number of codes.

        Raises PolicyError for a column with more than 4,096 codes, or a level that may not be published.
        """
        of_type, first = histogram.types
        for name, column in zip(histogram.quasi_names, recoding.columns, strict=True):
            if column.held:
                raise PolicyError(
                    f"exact methods publish {name!r} up to its root; lift its ceiling or choose another method"
                )
            if column.shape is None:
                raise PolicyError(
                    f"{name!r} is published as a {column.kind}, whose loss exact methods cannot compute from pairs of "
                    "values; choose another method, for example 'auto'"
                )
            if column.size > WIDEST:
                raise PolicyError(
                    f"column {name!r} has {column.size} values; exact methods take at most {WIDEST}, so band it first"
                )
        pieces, scale, exact = _pairs(recoding)
        start = np.cumsum([0, *(piece.size for piece in pieces)])
        return cls(
            code=np.ascontiguousarray(histogram.quasi[first], dtype=np.int32),
            count=np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64),
            pair=np.concatenate([*pieces, np.zeros(1, np.int64)]),
            start=start[:-1].astype(np.int64),
            size=np.array([c.size for c in recoding.columns], np.int64),
            kind=np.array([SHAPES[c.shape or ""] for c in recoding.columns], np.int64),
            scale=scale,
            exact=exact,
            unit=recoding.unit,
        )

    def with_count(self, count: np.ndarray) -> Costs:
        """These types with other numbers of rows, at least 1 each."""
        values = {f: getattr(self, f) for f in self.__dataclass_fields__}
        return Costs(**{**values, "count": np.asarray(count, np.int64)})

    def loss(self, types: Sequence[int] | np.ndarray) -> int:
        """Integer loss per row of a group of these types."""
        total = 0
        codes = self.code[np.asarray(types, np.int64)]
        for j in range(codes.shape[1]):
            a, s = int(self.start[j]), int(self.size[j])
            here = codes[:, j].astype(np.int64)
            if self.kind[j] == 2:
                total += int(self.pair[a + 1]) * (np.unique(here).size - 1) if s > 1 else 0
            else:
                low = here.min() if self.kind[j] == 1 else here[0]
                total += int(self.pair[a + low * s + here].max())
        return total

    def bound(self, whole: int, cost: float, rows: int) -> int | float:
        """An integer lower bound in the certificate's unit, rounded down; CertificateError if it exceeds the cost."""
        exact = Fraction(whole, self.scale)
        if self.unit == "stars":
            return tight(math.ceil(exact), cost, self.unit, "whole-number losses")
        below = np.nextafter(float(exact / max(rows * self.code.shape[1], 1)) * (1 - 1e-12), 0)
        return tight(float(below), cost, self.unit, "whole-number losses")

    def certified(
        self, task: Task, partition: Partition, lower: int, whole: int
    ) -> tuple[int | float, int | float, bool]:
        """(cost, lower bound, optimal) of a partition of all rows for its certificate.

        lower, whole  lower bound and cost as integers; if they are equal and exact, the cost is the bound

        Raises CertificateError for a bound above the cost.
        """
        cost = task.recoding.cost(task.histogram, partition)
        lower = int(tight(lower, whole, f"1/{self.scale} of the loss", "whole-number losses"))
        if self.exact and lower == whole:
            return cost, cost, True
        bound = self.bound(max(lower, 0), cost, task.histogram.rows)
        return cost, bound, bound == cost

    def grouping(
        self, task: Task, partition: Partition, method: str, ends: tuple[int, int], promise: Guarantee, argument: str,
        details: Mapping[str, Any],
    ) -> Grouping:  # fmt: skip
        """A method's answer with its certificate; ends: lower bound and cost, as for ``certified``.

        If the bound is reached, the guarantee is optimality.
        """
        cost, bound, optimal = self.certified(task, partition, *ends)
        certificate = Certificate(
            cost=cost, lower_bound=bound, unit=task.recoding.unit, bound=argument, details=details,
            guarantee=promise if optimal or promise.factor != 1 else Guarantee(),
        )  # fmt: skip
        return Grouping(partition, certificate, method)


def bound_raised_to_step(task: Task, certificate: Certificate) -> Certificate:
    """The certificate with its bound raised to the cost, if all losses are multiples of a step and none lies between.

    A bound of floats is lowered by their rounding error, so without this the proof couldn't be stated.
    """
    recoding = task.recoding
    rows = task.histogram.rows * max(len(recoding.columns), 1)
    gap = (certificate.cost - certificate.lower_bound) * rows
    rounding = certificate.cost * rows * 1e-12
    if certificate.unit != "ncp" or not 0 < gap < 1 or not certificate.lower_bound:
        return certificate
    whole = whole_losses(recoding)
    if not whole.exact:
        return certificate
    step = math.gcd(*(int(np.gcd.reduce(table, axis=None)) for table in whole.columns)) / whole.scale
    return replace(certificate, lower_bound=certificate.cost) if gap + rounding < step / 2 else certificate


def _pairs(recoding: Recoding) -> tuple[list[np.ndarray], int, bool]:
    """Per column the losses of pairs of codes int64[size * size], their common denominator, whether they are exact.

    The denominator is the least. If it is too large, the losses are rounded down.
    """
    losses = [column.together() * column.weight for column in recoding.columns]
    if any(np.isnan(loss).any() for loss in losses):
        raise PolicyError("a hierarchy has no common root, so some rows cannot be published together")
    whole = whole_losses(recoding)
    if whole.exact:
        codes = [np.arange(column.size) for column in recoding.columns]
        found = [
            column.paired(table, code[:, None], code).reshape(-1)
            for column, table, code in zip(recoding.columns, whole.columns, codes, strict=True)
        ]
        common = math.gcd(whole.scale, *(int(np.gcd.reduce(pairs)) for pairs in found if pairs.size))
        if whole.scale // common <= LARGEST:
            return [pairs // common for pairs in found], whole.scale // common, True
    return [np.floor(loss * 2**20).astype(np.int64).reshape(-1) for loss in losses], 2**20, False


ENUMERATED = 1_000_000


@dataclass(frozen=True, eq=False)
class Lattice:
    """For each column, a chain of increasingly coarse classes of its codes.

    up    per column int32[h, size]: class of a code at a level, classes numbered 0 ..
    loss  per column float64[h, size]: weighted loss of publishing a code's class at a level, nondecreasing in the level
    """

    up: tuple[np.ndarray, ...]
    loss: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, recoding: Recoding) -> Lattice:
        """Columns with levels: the levels up to the ceiling.

        Ranges: halves, quarters, ... of the codes. Sets: one value or all.

        For ranges and sets, the loss is that of the whole class, an upper bound of what its rows publish.
        """
        ladders = [(*column.ladder(), column.weight) for column in recoding.columns]
        return cls(tuple(up.astype(np.int32) for up, *_ in ladders), tuple(loss * w for _, loss, w in ladders))

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The number of levels of each column."""
        return tuple(int(u.shape[0]) for u in self.up)

    @cached_property
    def nodes(self) -> float:
        """The number of nodes; a float, because it may exceed any integer type."""
        return float(np.prod(np.array(self.heights, float)))

    @cached_property
    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """up int32[..], at int64[d], size int64[d], exact, in the form of the kernels."""
        size = np.array([u.shape[1] for u in self.up], np.int64)
        at = np.concatenate([[0], np.cumsum([u.size for u in self.up])])[:-1].astype(np.int64)
        exact = float(np.prod(size.astype(float))) < 2.0**62
        return np.concatenate([u.reshape(-1) for u in self.up]).astype(np.int32), at, size, exact

    def mean_loss(self, task: Task) -> list[np.ndarray]:
        """For each column and level, the mean loss of the table's rows."""
        out = []
        for j, loss in enumerate(self.loss):
            held = np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=loss.shape[1])
            out.append(loss @ held / max(held.sum(), 1))
        return out

    def entropy(self, task: Task) -> list[np.ndarray]:
        """For each column and level, the entropy of the table's rows over the classes, in nats."""
        out = []
        for j, up in enumerate(self.up):
            share = np.zeros(up.shape[0])
            for level in range(up.shape[0]):
                held = np.bincount(up[level][task.histogram.quasi[:, j]], weights=task.histogram.count)
                held = held[held > 0] / held.sum()
                share[level] = -(held * np.log(held)).sum()
            out.append(share)
        return out

    def chain(self, task: Task) -> np.ndarray:
        """int32[v, d]: one path from the bottom to the top; each step lowers the entropy most per added loss."""
        means, shares = self.mean_loss(task), self.entropy(task)
        node = np.zeros(len(self.up), np.int32)
        path = [node.copy()]
        while True:
            open_columns = [j for j, h in enumerate(self.heights) if node[j] + 1 < h]
            if not open_columns:
                return np.stack(path)

            def entropy_per_loss(j: int) -> float:
                level = int(node[j])
                return float((shares[j][level] - shares[j][level + 1]) / (means[j][level + 1] - means[j][level] + 1e-9))

            node[max(open_columns, key=entropy_per_loss)] += 1
            path.append(node.copy())

    def ordered(self, task: Task) -> np.ndarray:
        """int32[v, d]: all nodes, by mean loss on the table's marginals, then by the entropy over classes."""
        total, detail = np.zeros(1), np.zeros(1)
        digits = []
        means, shares = self.mean_loss(task), self.entropy(task)
        for mean, share in zip(means, shares, strict=True):
            total = (total[:, None] + mean[None, :]).reshape(-1)
            detail = (detail[:, None] + share[None, :]).reshape(-1)
            digits.append(len(mean))
        order = np.lexsort((detail, np.round(total, 9)))
        return np.stack(np.unravel_index(order, digits), axis=1).astype(np.int32)


LOOKED_AT = {"fast": 1e8, "balanced": 3e8, "thorough": 1e9, "seconds": 8e7}  # cells, in all visits; about 30 ns each
PER_SECOND = 6e6  # of an effort in seconds, if that is more
DENSE = 0.25  # share of these cells before which no node is passed over


class NodesToVisit:
    """The nodes of a lattice in rising order of mean loss: all of them while that is affordable, later every few.

    A visit looks at every cell that is left.  On most tables the first nodes publish nearly all cells, so all nodes can
    be visited.  If hardly any two rows are alike, or if groups must be large, the cells stay, and visiting 100,000
    nodes would take minutes.  Once a quarter of the affordable looks is spent, the remaining nodes are therefore cut
    into runs of consecutive ones, as many as the other looks allow.  Of each run, which differ little in loss, the node
    that merges most is visited.

    every    int32[v, d]  the nodes; one path to the top if the lattice is too large to list
    merging  float64[v]   entropy of the table's rows over the classes of each node's levels: the less, the more merge
    spent    cells looked at
    """

    def __init__(self, task: Task, lattice: Lattice, cost: float = 1.0) -> None:
        """cost  how long a look takes, relative to one of the compiled cascade"""
        self.every = lattice.ordered(task) if lattice.nodes <= ENUMERATED else lattice.chain(task)
        self.merging = np.zeros(len(self.every))
        for level, entropy in zip(self.every.T, lattice.entropy(task), strict=True):
            self.merging += entropy[level]
        seconds = task.effort.seconds
        looks = LOOKED_AT[task.effort.name] if seconds is None else max(PER_SECOND * seconds, LOOKED_AT["seconds"])
        self.looks, self.spent, self.done = looks / cost, 0, 0

    @property
    def left(self) -> int:
        """How many nodes are neither visited nor passed over."""
        return len(self.every) - self.done

    @property
    def share(self) -> float:
        """Share of the nodes that are visited or passed over."""
        return self.done / max(len(self.every), 1)

    def take(self, cells: int, most: int = 1) -> np.ndarray:
        """The next nodes to visit with so many cells left, int32[1 to most, d].  The top node is never passed over."""
        run, cells = 1, max(cells, 1)
        if self.spent < DENSE * self.looks:
            most = max(min(most, int(DENSE * self.looks / cells)), 1)
        else:
            run = max(math.ceil(self.left * cells / max(self.looks - self.spent, cells)), 1)
        begin = np.arange(self.done, min(self.done + run * most, len(self.every)), run)
        chosen = [at + int(self.merging[at : at + run].argmin()) for at in begin]
        self.done = min(int(begin[-1]) + run, len(self.every))
        self.spent += cells * len(chosen)
        return self.every[chosen]


def least_steps(histogram: Histogram, recoding: Recoding) -> np.ndarray:
    """The least loss of a row of each cell if its group contains another quasi-identifier tuple, float64[m].

    In some column the group then has a second value, so the row loses at least the cheapest class, set, or range with
    its code and another code.
    """
    out = np.full(histogram.cells, np.inf)
    for j, column in enumerate(recoding.columns):
        if column.size < 2:
            continue
        out = np.minimum(out, (column.steps() * column.weight)[histogram.quasi[:, j]])
    return out


def least_sum(step: np.ndarray, count: np.ndarray, rows: int) -> float:
    """What the cheapest ``rows`` rows cost together, if ``count`` int64[m] rows cost ``step`` float64[m] each."""
    order = np.argsort(step)
    upto = np.cumsum(count[order])
    here = np.clip(rows - (upto - count[order]), 0, count[order])
    kept = here > 0
    return float(step[order][kept] @ here[kept])


def steps_bound(task: Task, fewest: int) -> float:
    """A lower bound on the loss if at least ``fewest`` rows are in a group with different rows.

    An int for stars. For NCP a float, lowered by a billionth, so that rounding cannot raise it above the true bound.
    """
    histogram, recoding = task.histogram, task.recoding
    if fewest <= 0 or not recoding.columns:
        return 0
    step = least_steps(histogram, recoding)
    total = least_sum(step, histogram.count, fewest)
    if not np.isfinite(total):
        return 0
    if recoding.unit == "stars":
        return int(np.floor(total + 1e-6))
    return total / (histogram.rows * len(recoding.columns)) * (1 - 1e-9)
