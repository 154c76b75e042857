"""k-anonymity within O(log k) by covering the rows with published rows.

Based on Park, Shim, "Approximate algorithms for k-anonymity", SIGMOD 2007: published rows are the closed patterns of
the table that fit at least k rows, a greedy weighted set cover chooses among them, and the cover is turned into a
partition. Not from the paper: the cost of a pick below, and the way in which groups are filled up. Together they give
(2 - 1/k) H(k), where H are the harmonic numbers, hierarchies included.

Theorem.  The partition costs at most (2 - 1/k) H(k) times the optimum.
Proof.  A pick with n new rows pays loss x max(n, k), and every new row its share.  Take a group of an optimum with s >=
        k rows and loss c.  Its least cover is one of the published rows.  While m rows of the group are uncovered, that
        row would cover n >= m rows newly at c max(n, k) / n <= c max(m, k) / m each, and the greedy choice costs no
        more.  So the rows of the group, in the order in which they are covered, pay at most c (s - k) while more than k
        were uncovered, and c (k/k + ... + k/1) = c k H(k) afterward: at most s c H(k), and all picks together at most
        H(k) times the optimum.  A pick with n >= k new rows is a group.  One with fewer pays for k.  It then takes k -
        n rows from groups that can spare them. If the groups of its pattern can spare fewer in total, its n rows join
        one group of fewer than 2k - n rows with a row that fits. There is one: a group with fewer rows to spare than
        fitting ones has fewer than k + (k - n).  It has fewer than 2k rows afterward, and loses per row at most the sum
        of both losses.  So a group of rows from several picks has at most 2k - 1 rows and pays at most the sum of their
        losses, each of which was paid for k rows: a factor of (2k - 1) / k.  []

``nearest_bound`` bounds the loss of every k-anonymous partition by the distances of each row to its nearest other rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Partition, distribute, mixed_radix
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.tables.losses import Costs

WORK = 10**8  # limit of lattice nodes x types x columns
PLACES = 10**7  # limit of the members of all patterns in total
CANDIDATES = 64  # groups compared when new rows join one


@dataclass(frozen=True, eq=False)
class Patterns:
    """Closed patterns that fit at least k rows: published rows that are the least cover of what they fit.

    start   int64[q + 1], member int64[...]: types that fit each
    loss    int64[q]: integer loss of a row published so
    all     False if the lattice was too large and only its cheapest nodes were examined
    """

    start: np.ndarray
    member: np.ndarray
    loss: np.ndarray
    all: bool

    def least(self, types: int) -> np.ndarray:
        """int64[t]: least loss at which a row of each type can be published; -1 if no pattern fits."""
        out = np.full(types, np.iinfo(np.int64).max)
        np.minimum.at(out, self.member, np.repeat(self.loss, np.diff(self.start)))
        return np.where(out == np.iinfo(np.int64).max, -1, out)


def _levels_only(task: Task) -> None:
    """Raise PolicyError if a column is published as a set or a range."""
    for name, column in zip(task.histogram.quasi_names, task.recoding.columns, strict=True):
        if not column.levels:
            raise PolicyError(
                f"pattern_cover publishes stars and hierarchies; {name!r} is to be published as {column.kind}s"
            )


def k_only(need: Requirement, method: str) -> None:
    """Raise PolicyError if the requirement has more than k rows per group."""
    if need.sensitive_columns:
        raise PolicyError(f"{method} answers k-anonymity alone; for sensitive columns choose another method")


def patterns(costs: Costs, recoding: Recoding, k: int, work: int = WORK, places: int = PLACES) -> Patterns:
    """All closed patterns that fit at least k rows. O(nodes x t x d) with one node per vector of levels."""
    (t, d), columns = costs.code.shape, recoding.hierarchies or ()
    nodes = list(product(*(range(column.levels) for column in columns)))

    def price(node: tuple[int, ...]) -> float:
        return sum(c.weight * float(c.loss[v].sum()) / max(c.size, 1) for c, v in zip(columns, node, strict=True))

    top = nodes[-1]
    most = max(1, work // max(t * d, 1))
    complete = len(nodes) <= most
    # cheap nodes first, but before all of them the one that fits every row
    nodes = [top, *(n for n in sorted(nodes, key=price)[:most] if n != top)]
    lengths, members, losses = [], [], []
    held = 0
    # The classes of a node that have k rows, each once: at the lowest node at which its members agree.
    for node in nodes:
        classes = np.zeros((t, d), np.int64)
        for j, column in enumerate(columns):
            classes[:, j] = column.node[node[j]][costs.code[:, j]]
        key = mixed_radix(classes, [int(c.max(initial=0)) + 1 for c in classes.T])
        order = np.argsort(key, kind="stable")
        begin = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0])) if t else np.zeros(0, np.int64)
        good = np.add.reduceat(costs.count[order], begin) >= k if t else np.zeros(0, bool)
        length = np.diff(np.append(begin, t))
        loss = np.zeros(begin.size, np.int64)
        for j, column in enumerate(columns):
            code = costs.code[order, j].astype(np.int64)
            if node[j]:  # closed: the members differ one level below
                below = column.node[node[j] - 1][code]
                good &= np.minimum.reduceat(below, begin) != np.maximum.reduceat(below, begin)
            representative = np.repeat(code[begin], length)
            loss += np.maximum.reduceat(costs.pair[costs.start[j] + representative * costs.size[j] + code], begin)
        keep = np.repeat(good, length)
        held += int(keep.sum())
        if held > places:
            complete = False
            break
        lengths.append(length[good])
        members.append(order[keep])
        losses.append(loss[good])
    none = np.zeros(0, np.int64)
    length = np.concatenate(lengths) if lengths else none
    return Patterns(
        np.concatenate([[0], np.cumsum(length)]).astype(np.int64),
        np.concatenate(members).astype(np.int64) if members else none,
        np.concatenate(losses) if losses else none,
        complete,
    )


def pattern_cover(task: Task) -> Grouping:
    """Groups by greedy cover with published rows; at most (2 - 1/k) H(k) times the optimum.

    Stars and hierarchies, k-anonymity alone; PolicyError otherwise. The lattice of levels is enumerated: 2^d nodes for
    stars. If it is too large, only its cheapest nodes are used, without the guarantee.
    """
    histogram, k = task.histogram, task.requirement.k
    k_only(task.requirement, "pattern_cover")
    _levels_only(task)
    refuse_infeasible(histogram, task.requirement)
    costs = Costs.of(histogram, task.recoding)
    found = patterns(costs, task.recoding, k)
    least = found.least(costs.types)
    partition = _covered(task, costs, found, k)
    if found.all:
        lower = int(least @ costs.count)
        argument = "every row pays at least its cheapest published row that fits k rows"
        factor = (2 - 1 / k) * math.fsum(1 / i for i in range(1, k + 1))
        promise = Guarantee(
            factor=factor,
            additive=0,
            theorem="greedy set cover (Chvatal 1979) over published rows after Park, Shim 2007: (2 - 1/k) H(k)",
        )
    else:
        lower, promise, argument = nearest_bound(costs, k), Guarantee(), NEAREST
    details = {"patterns": int(found.loss.size), "all_patterns": found.all}
    ends = (lower, whole_cost(costs, task, partition))
    return costs.grouping(task, partition, "pattern_cover", ends, promise, argument, details)


def whole_cost(costs: Costs, task: Task, partition: Partition) -> int:
    """The cost of a partition as an integer."""
    of_type = task.histogram.types[0]
    parts = np.split(of_type[partition.cell], partition.start[1:]) if partition.groups else []
    return sum(int(size) * costs.loss(np.unique(part)) for size, part in zip(partition.sizes, parts, strict=True))


def _covered(task: Task, costs: Costs, found: Patterns, k: int) -> Partition:
    """The greedy cover as a partition."""
    from shoal.kernels.tables.subsets import cover

    t = costs.types
    by_type = np.argsort(found.member, kind="stable")
    of = np.repeat(np.arange(found.loss.size), np.diff(found.start))[by_type]
    of_start = np.searchsorted(found.member[by_type], np.arange(t + 1)).astype(np.int64)
    pick = np.full(t, -1, np.int64)
    picks = cover(found.start, found.member, found.loss, of_start, of, costs.count, k, pick)
    order = np.argsort(pick, kind="stable")
    ends = np.searchsorted(pick[order], np.arange(len(picks) + 1))
    made = _Groups(costs, k, [], [], [], defaultdict(set))
    for number, p in enumerate(picks.tolist()):
        new = {x: int(costs.count[x]) for x in order[ends[number] : ends[number + 1]].tolist()}
        fits = found.member[found.start[p] : found.start[p + 1]].tolist()
        spare = [(-made.loss[g], g, x) for x in fits for g in made.where[x]] if sum(new.values()) < k else []
        if not made.joined(new, spare):
            made.opened(new, spare, int(found.loss[p]))
    rows_of = [(x, g, rows) for g, held in enumerate(made.rows) for x, rows in held.items()]
    kind, group, number_of = np.array(rows_of, np.int64).reshape(-1, 3).T
    return distribute(task.histogram.count, task.histogram.types[0], kind, group, number_of)


class _Groups(NamedTuple):
    """Groups so far. Invariant: every group has at least k rows.

    rows   of each group: rows by type;  size, loss: of each group
    where  the groups that contain rows of a type
    """

    costs: Costs
    k: int
    rows: list[dict[int, int]]
    size: list[int]
    loss: list[int]
    where: dict[int, set[int]]

    def put(self, g: int, kind: int, rows: int) -> None:
        """Put rows of a type into a group."""
        self.rows[g][kind] = self.rows[g].get(kind, 0) + rows
        self.size[g] += rows
        self.where[kind].add(g)

    def joined(self, new: dict[int, int], spare: list[tuple[int, int, int]]) -> bool:
        """Put the rows of a pattern into an existing group if too few others can be spared to fill it up.

        Returns whether it did.

        spare  (-loss of a group, the group, a type that fits) for all groups with rows that fit the pattern
        """
        missing = self.k - sum(new.values())
        if missing <= 0:
            return False
        fitting: dict[int, int] = defaultdict(int)
        for _, g, x in spare:
            fitting[g] += self.rows[g][x]
        if sum(min(self.size[g] - self.k, rows) for g, rows in fitting.items()) >= missing:
            return False
        # some group has fewer rows to spare than fitting ones, so it has fewer than k + missing rows
        small = sorted((self.loss[g], g) for g in fitting if self.size[g] < self.k + missing)

        def price(loss: int, g: int) -> int:
            size = self.size[g]
            return (size + self.k - missing) * self.costs.loss([*self.rows[g], *new]) - size * loss

        best = min(small[:CANDIDATES], key=lambda e: price(*e))[1]
        for x, rows in new.items():
            self.put(best, x, rows)
        self.loss[best] = self.costs.loss(list(self.rows[best]))
        return True

    def opened(self, new: dict[int, int], spare: list[tuple[int, int, int]], loss: int) -> None:
        """Open a group of a pattern's rows, filled up with rows that the groups with the largest loss can spare."""
        missing, here = self.k - sum(new.values()), len(self.rows)
        self.rows.append({})
        self.size.append(0)
        self.loss.append(loss)
        for x, rows in new.items():
            self.put(here, x, rows)
        for _, g, x in sorted(spare):
            rows = min(missing, self.size[g] - self.k, self.rows[g].get(x, 0))
            if rows > 0:
                self.rows[g][x] -= rows
                self.size[g] -= rows
                missing -= rows
                if not self.rows[g][x]:
                    del self.rows[g][x]
                    self.where[x].discard(g)
                self.put(here, x, rows)


NEAREST = "every row pays at least its loss in a group with its (k-1)-th nearest other row"


def nearest_bound(costs: Costs, k: int) -> int:
    """An integer lower bound of the cost of every partition: see NEAREST. O(t^2 d)."""
    return int(kth(costs, k, *neighbors(costs, k)) @ costs.count)


def neighbors(costs: Costs, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k - 1 nearest other types of each type, int32[t, m] and int64[t, m]; -1 if there are fewer."""
    from shoal.kernels.tables.multipliers import nearest

    m = max(1, min(k - 1, costs.types - 1))
    index, distance = np.full((costs.types, m), -1, np.int32), np.zeros((costs.types, m), np.int64)
    nearest(costs.in_kernels(), index, distance)
    return index, distance


def kth(costs: Costs, k: int, index: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """int64[t]: loss with the (k-1)-th nearest other row, where a type's own other rows are nearest."""
    pure = np.array([costs.loss([t]) for t in range(costs.types)], np.int64)
    out = pure.copy()
    near = costs.count - 1
    for x in range(index.shape[1]):
        further = (near < k - 1) & (index[:, x] >= 0)
        out[further] = distance[further, x]
        near = near + np.where(index[:, x] >= 0, costs.count[index[:, x]], 0)
    return out
