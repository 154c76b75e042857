"""Tables with too many cells to search at once: cut into shards, each searched by itself, and a bound of the whole.

A k-d tree over the quasi-identifiers: the largest shard is cut where the fewest rows lose their nearest rows, and only
where both sides meet the requirement by themselves, so that nothing is left over.  A group of one shard is a group of
the table, so the shards' partitions together are one of the table, and its cost is counted on the whole table.

The bound is no sum of what the shards' optima cost: a better partition may have groups across shards.  It holds row by
row instead.  The group of a row either lies in the row's shard, and then the row loses at least what it loses together
with its nearest rows there, as many as the least group needs; or the group holds a row of another shard, and then the
row loses at least what it loses together with the nearest tuple that could be made of that shard's values.  The smaller
of the two bounds what the row loses in any partition of the table, and the sum over rows bounds the table.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.arguments import Effort
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Histogram, Partition
from shoal.model.task import Grouping, Task, shortfall
from shoal.problems.catalogue import algorithm
from shoal.problems.tables.bounds.bounds import Bounds, total
from shoal.problems.tables.bounds.boxes import neighbors
from shoal.problems.tables.bounds.certify import certify, refuse_ceiling
from shoal.problems.tables.groups import good_groups
from shoal.problems.tables.methods.hilbert import ranks
from shoal.problems.tables.separate import merged
from shoal.problems.tables.three_phase import ceiling_classes, plain_stars, residue

ASKED = 200  # cells whose nearest ones say where a cut does the least harm
AMONG = 3_000  # cells they are sought among
UNEVEN = 0.2  # of the rows, at least, that lie on each side of a cut
WHOLE = ("coarsen", "global_recoding")  # methods that recode the table as one


def sharded(task: Task, method: str, shards: int) -> Grouping | None:
    """The grouping of a task whose cells are cut into at most ``shards`` shards, one searched after the other.

    None where no cut leaves two sides that meet the requirement: the table is searched whole.  Seconds of the effort
    are dealt out by cells.  PolicyError for a method that recodes the whole table alike.

    O(shards * m) for the cuts; what the method takes for m / shards cells, in memory once and in time ``shards`` times.
    """
    if method in WHOLE:
        raise PolicyError(f"method {method!r} recodes the whole table alike, so it cannot be cut into shards")
    histogram, need, effort = task.histogram, task.requirement, task.effort
    parts = cut(task, shards)
    search = algorithm("tables", method)
    if len(parts) == 1:
        return None
    cells, groups, counts, held = [], [], [], 0
    methods: dict[str, int] = {}
    for number, part in enumerate(parts):
        task.progress(f"shard {number + 1} of {len(parts)}", number / len(parts))
        own = effort if effort.seconds is None else Effort("seconds", effort.seconds * part.size / histogram.cells)
        found = search(Task(_of(histogram, part), need, task.recoding, own, task.seed + number, part=True))
        methods[found.method] = methods.get(found.method, 0) + 1
        cells.append(part[found.partition.cell])
        groups.append(found.partition.group + held)
        counts.append(found.partition.count)
        held += found.partition.groups
    partition = Partition.of(np.concatenate(cells), np.concatenate(groups), np.concatenate(counts))
    partition.check(histogram)
    if not need.closed:
        partition = merged(task, partition)
    spent = clock() - task.started
    bounds = composed(task, parts, clock() + max(3.0, 0.5 * spent))
    made = certify(task, partition, max(methods, key=lambda name: methods[name]), bounds)
    details = {**made.certificate.details, "shards": len(parts), "shard_cells": [int(p.size) for p in parts]}
    certificate = replace(made.certificate, guarantee=Guarantee(), details=details)
    attempts = ({"method": f"{len(parts)} shards", "cost": certificate.cost},)
    grouping = Grouping(partition, certificate, made.method, attempts)
    refuse_ceiling(task, partition, made.method)
    return grouping


def _of(histogram: Histogram, cells: np.ndarray) -> Histogram:
    """Some cells of a histogram, their codes as they were."""
    return Histogram(
        quasi=histogram.quasi[cells],
        sensitive=histogram.sensitive[cells],
        count=histogram.count[cells],
        quasi_names=histogram.quasi_names,
        sensitive_names=histogram.sensitive_names,
        quasi_sizes=histogram.quasi_sizes,
        sensitive_sizes=histogram.sensitive_sizes,
    )


def cut(task: Task, shards: int) -> list[np.ndarray]:
    """int64 cells of each shard, rising: at most ``shards``, each eligible by itself."""
    whole = np.arange(task.histogram.cells)
    rank, _ = ranks(task.histogram, task.recoding)
    rng = np.random.default_rng(task.seed)
    open_, done = [(-whole.size, 0, whole)], list[np.ndarray]()
    made = 1
    while open_ and len(open_) + len(done) < shards:
        _, _, part = heapq.heappop(open_)
        sides = _sides(task, part, rank, rng)
        if sides is None:
            done.append(part)
            continue
        for side in sides:
            heapq.heappush(open_, (-side.size, made, side))
            made += 1
    return [*done, *(part for _, _, part in sorted(open_, key=lambda entry: entry[1]))]


def _sides(
    task: Task, part: np.ndarray, rank: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """A shard in two, where the fewest rows are parted from their nearest; None where no cut leaves both eligible."""
    count = task.histogram.count[part]
    cuts: list[tuple[float, np.ndarray]] = []
    asked = rng.choice(part.size, min(ASKED, part.size), replace=False)
    among = rng.choice(part.size, min(AMONG, part.size), replace=False)
    near = _nearest(task, part[asked], part[among])
    for j in range(rank.shape[1]):
        at = rank[part, j]
        held = np.cumsum(np.bincount(at, weights=count)) / count.sum()
        border = int(np.abs(held - 0.5).argmin())
        if not UNEVEN <= held[border] <= 1 - UNEVEN:
            continue
        left = at <= border
        parted = float((left[asked][:, None] != left[among][near]).mean())
        cuts.append((parted, left))
    for _, left in sorted(cuts, key=lambda pair: pair[0]):
        sides = part[left], part[~left]
        if all(_stands(task, side) for side in sides):
            return sides
    return None


def _stands(task: Task, side: np.ndarray) -> bool:
    """Whether some cells have an eligible partition of their own that heeds the ceilings.  O(m log m)."""
    part = _of(task.histogram, side)
    if shortfall(part, task.requirement) is not None:
        return False
    kind = ceiling_classes(replace(task, histogram=part))
    classes = int(kind.max(initial=0)) + 1
    return bool(good_groups(part, task.requirement, np.arange(part.cells), kind, part.count, classes).all())


def _nearest(task: Task, asked: np.ndarray, among: np.ndarray) -> np.ndarray:
    """int64[asked, least group]: the places in ``among`` of the cells with which each loses least."""
    lost = np.zeros((asked.size, among.size))
    for j, column in enumerate(task.recoding.columns):
        codes = task.histogram.quasi[:, j]
        lost += column.pair(codes[asked][:, None], codes[among]) * column.weight
    size = min(task.requirement.smallest, among.size - 1)
    return np.argpartition(lost, size, axis=1)[:, : size + 1]


def composed(task: Task, parts: list[np.ndarray], until: float) -> Bounds:
    """Lower bounds of the whole table from its shards; rows not reached in time count nothing."""
    began, h = clock(), task.histogram
    columns = task.recoding.columns
    out = Bounds()
    if plain_stars(task.recoding):
        out.values["tuples"] = int(residue(h, task.requirement)[1]["bound"])
    alone = task.recoding.alone(h)
    if alone:
        out.values["alone"] = alone
    held = np.zeros((len(parts), len(columns)), object)
    for j, column in enumerate(columns):
        for s, part in enumerate(parts):
            present = np.zeros(column.size, bool)
            present[h.quasi[part, j]] = True
            held[s, j] = column.beyond(present) * column.weight
    price = np.zeros(h.cells)
    for s, part in enumerate(parts):
        left = until - clock()
        if left <= 0:
            break
        mine = Task(_of(h, part), task.requirement, task.recoding, Effort("fast"), task.seed)
        own = neighbors(mine, clock() + left / (len(parts) - s))
        if own is None:
            continue
        for other in range(len(parts)):
            if other != s:
                away = sum((held[other, j][h.quasi[part, j]] for j in range(len(columns))), np.zeros(part.size))
                np.minimum(own, away, out=own)
        price[part] = own
    out.values["shards"] = total(task, price)
    out.seconds = clock() - began
    return out
