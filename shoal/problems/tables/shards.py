"""Large tables cut into shards that are searched separately, with a bound of the whole table.

Shards are searched one after the other here, or at the same time by the workers of an engine: with the same code and
the same seeds, so with the same groups. The results are checked here like any partition.

A k-d tree over the quasi-identifiers: the largest shard is cut where the fewest rows are separated from their nearest
rows, and only if both sides meet the requirement, so that no rows are left over. A group of one shard is a group of the
table. So the shards' partitions together are one of the table, and its cost is computed on the whole table. The bound
is a sum over rows, which also counts groups across shards (docs/bounds.md, "Shards").
"""

from __future__ import annotations

import ctypes
import heapq
import io
import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError, VerificationError
from shoal.model.arguments import Effort
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Partition, dense, narrowest
from shoal.model.task import Grouping, Spread, Task, shortfall
from shoal.problems.catalogue import algorithm
from shoal.problems.tables.bounds import certify, refuse_ceiling
from shoal.problems.tables.bounds.bounds import Bounds, total
from shoal.problems.tables.bounds.near_cells import neighbors
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.separate import merged
from shoal.problems.tables.three_phase import ceiling_classes, plain_stars, residue

ASKED = 200  # cells whose nearest neighbors determine the cut
AMONG = 3_000  # number of cells among which the neighbors are searched
MIDDLE = 50_000  # sample of cells that determines the median of a column
UNEVEN = 0.2  # least share of the rows on each side of a cut
BOUND = 3.0  # least seconds for the bound of all shards; more if the search took more than twice as long
WHOLE = ("coarsen", "global_recoding")  # methods that recode the table as a whole


def sharded(task: Task, method: str, shards: int) -> Grouping | None:
    """The grouping of a task whose cells are cut into at most ``shards`` shards, searched one after the other.

    None if no cut leaves two eligible sides: the table is then searched as a whole. Seconds of the effort are divided
    by cells. PolicyError for a method that recodes the whole table equally.

    If the task has workers, they search the shards at the same time.

    O(shards * m) for the cuts; the method's time for m / shards cells, once in memory and ``shards`` times in time.
    """
    if method in WHOLE:
        raise PolicyError(f"method {method!r} recodes the whole table in one way, so it cannot be cut into shards")
    histogram, need = task.histogram, task.requirement
    parts = cut(task, shards)
    if len(parts) == 1:
        return None
    orders = (_ShardTask(number, len(parts), method, _task(task, part, number)) for number, part in enumerate(parts))
    spread = task.constraints.workers
    found = (
        _searched_locally(task, orders) if spread is None else _searched_by_workers(task, orders, spread, len(parts))
    )
    partition, methods, alone = _combined(parts, found)
    partition.check(histogram)
    if not need.closed:
        partition = merged(task, partition)
    elif not groups_that_meet(
        histogram, need, partition.cell, partition.group, partition.count, partition.groups
    ).all():
        raise VerificationError("a shard came back with a group that does not meet the models; nothing comes of it")
    spent = clock() - task.started
    bounds = composed(task, parts, clock() + max(BOUND, 0.5 * spent), alone)
    made = certify(task, partition, max(methods, key=lambda name: methods[name]), bounds)
    details = {**made.certificate.details, "shards": len(parts), "shard_cells": [int(p.size) for p in parts]}
    certificate = replace(made.certificate, guarantee=Guarantee(), details=details)
    attempts = ({"method": f"{len(parts)} shards", "cost": certificate.cost},)
    grouping = Grouping(partition, certificate, made.method, attempts)
    refuse_ceiling(task, partition, made.method)
    _release_memory()
    return grouping


def _combined(
    parts: Sequence[np.ndarray], found: Iterator[_SearchedShard]
) -> tuple[Partition, dict[str, int], dict[int, np.ndarray]]:
    """(the shards' partitions as one, how many each method made, by shard what its nearest rows prove)."""
    cells, groups, counts, held = [], [], [], 0
    methods: dict[str, int] = {}
    alone: dict[int, np.ndarray] = {}
    for (number, part), one in zip(enumerate(parts), found, strict=True):
        if int(one.cell.max(initial=0)) >= part.size:
            raise VerificationError("a shard came back with cells of another; nothing comes of it")
        methods[one.method] = methods.get(one.method, 0) + 1
        cells.append(_narrow(part[one.cell]))
        groups.append(one.group.astype(np.int64) + held)
        counts.append(one.rows)
        held = int(groups[-1].max(initial=held - 1)) + 1
        if one.price is not None:
            alone[number] = one.price
        _release_memory()
    return Partition.of(*map(np.concatenate, (cells, groups, counts))), methods, alone


def _narrow(held: np.ndarray) -> np.ndarray:
    return narrowest(held, int(held.max(initial=0)) + 1)


def _release_memory() -> None:
    """Return free memory to the system, if the C library has a function for it.

    Small arrays of each shard leave gaps between the arrays that are kept; without this, the gaps doubled the memory.
    """
    with suppress(AttributeError, OSError, TypeError):  # a library without this function
        ctypes.CDLL(None).malloc_trim(0)


class _ShardTask(NamedTuple):
    """A shard to search, its number and their count, and the method."""

    number: int
    shards: int
    method: str
    task: Task


class _SearchedShard(NamedTuple):
    """A shard's partition, its method, and for each cell what its nearest rows prove (empty: not computed)."""

    method: str
    cell: np.ndarray
    group: np.ndarray
    rows: np.ndarray
    price: np.ndarray | None = None


def _searched_locally(task: Task, orders: Iterator[_ShardTask]) -> Iterator[_SearchedShard]:
    """Search the shards one after the other."""
    for order in orders:
        task.progress(f"shard {order.number + 1} of {order.shards}", order.number / order.shards)
        yield _searched(order)


def _searched(order: _ShardTask) -> _SearchedShard:
    """Search one shard."""
    found = algorithm("tables", order.method)(order.task.again())
    made: Partition = found.partition
    return _SearchedShard(found.method, made.cell, made.group, made.count)


def _searched_by_workers(
    task: Task, orders: Iterator[_ShardTask], spread: Spread, shards: int
) -> Iterator[_SearchedShard]:
    """The shards as searched by workers, in order; VerificationError unless each comes back exactly once."""
    task.progress(f"{shards} shards on the workers", None)
    received = list(spread(_search_in_worker, map(_serialized, orders), None))
    answers = dict(received)
    if sorted(number for number, _ in received) != list(range(shards)):
        raise VerificationError("the workers did not search each shard once; nothing comes of it")
    for number in range(shards):
        with np.load(io.BytesIO(zlib.decompress(answers.pop(number))), allow_pickle=False) as held:
            yield _SearchedShard(str(held["method"]), *(held[name] for name in ("cell", "group", "rows", "price")))


def _serialized(order: _ShardTask) -> bytes:
    """A serialized shard task, with codes in the narrowest type, which is faster than compression."""
    held = order.task.histogram
    narrow = replace(held, quasi=_narrow(held.quasi), sensitive=_narrow(held.sensitive), count=_narrow(held.count))
    return pickle.dumps(order._replace(task=replace(order.task, histogram=narrow)))


def _deserialized(sent: bytes) -> _ShardTask:
    """The shard task from its serialized form."""
    order: _ShardTask = pickle.loads(sent)
    held = order.task.histogram
    quasi, sensitive = held.quasi.astype(np.int32), held.sensitive.astype(np.int32)
    whole = replace(held, quasi=quasi, sensitive=sensitive, count=held.count.astype(np.int64))
    return order._replace(task=replace(order.task, histogram=whole))


def _search_in_worker(sent: bytes) -> Iterator[tuple[int, bytes]]:
    """A worker's answer to a task: the partition of a shard, and what it proves for each cell."""
    order = _deserialized(sent)
    began = clock()
    found = _searched(order)
    spent, alone = clock() - began, replace(order.task, effort=Effort("fast"), part=False)
    price = neighbors(alone, clock() + max(BOUND / order.shards, 0.5 * spent))
    cell, group, rows = map(_narrow, found[1:4])
    out = io.BytesIO()
    proved = np.zeros(0) if price is None else price
    np.savez(out, method=np.array(found.method), cell=cell, group=group, rows=rows, price=proved)
    yield order.number, zlib.compress(out.getvalue(), 1)


def _task(task: Task, cells: np.ndarray, number: int) -> Task:
    """The search task of some cells alone, which can be sent to workers; it gets its share of the seconds."""
    seconds = task.effort.seconds
    own = task.effort if seconds is None else Effort("seconds", seconds * cells.size / task.histogram.cells)
    return Task(task.histogram.part(cells), task.requirement, task.recoding, own, task.seed + number, part=True)


def cut(task: Task, shards: int) -> list[np.ndarray]:
    """Cells of each shard, ascending, in the narrowest type: at most ``shards``, each eligible."""
    whole = narrowest(np.arange(task.histogram.cells), task.histogram.cells)
    kind = ceiling_classes(task)
    kind = narrowest(kind, int(kind.max(initial=0)) + 1)
    places = (column.order() for column in task.recoding.columns)
    rank = [
        narrowest(place, int(place.max(initial=0)) + 1)[task.histogram.quasi[:, j]] for j, place in enumerate(places)
    ]
    rng = np.random.default_rng(task.seed)
    open_, done = [(-whole.size, 0, whole)], list[np.ndarray]()
    made = 1
    while open_ and len(open_) + len(done) < shards:
        _, _, part = heapq.heappop(open_)
        sides = _sides(task, part, rank, kind, rng)
        if sides is None:
            done.append(part)
            continue
        for side in sides:
            heapq.heappush(open_, (-side.size, made, side))
            made += 1
    return [*done, *(part for _, _, part in sorted(open_, key=lambda entry: entry[1]))]


def _sides(
    task: Task, part: np.ndarray, rank: Sequence[np.ndarray], kind: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """A shard cut in two where the fewest rows are separated from their nearest.

    None if no cut leaves both sides eligible.
    """
    cuts = list[tuple[float, int, int]]()
    asked = rng.choice(part.size, min(ASKED, part.size), replace=False)
    among = rng.choice(part.size, min(AMONG, part.size), replace=False)
    near = _nearest(task, part[asked], part[among])
    some = part if part.size <= MIDDLE else part[rng.choice(part.size, MIDDLE, replace=False)]
    count = task.histogram.count[some]
    for j, of_column in enumerate(rank):
        held = np.cumsum(np.bincount(of_column[some], weights=count)) / count.sum()
        border = int(np.abs(held - 0.5).argmin())
        if not UNEVEN <= held[border] <= 1 - UNEVEN:
            continue
        left, others = of_column[part[asked]] <= border, of_column[part[among]] <= border
        parted = float((left[:, None] != others[near]).mean())
        cuts.append((parted, j, border))
    for _, j, border in sorted(cuts, key=lambda cut: cut[0]):
        left = rank[j][part] <= border
        sides = part[left], part[~left]
        if all(_can_be_grouped(task, side, kind) for side in sides):
            return sides
    return None


def _can_be_grouped(task: Task, side: np.ndarray, kind: np.ndarray) -> bool:
    """Whether some cells have an eligible partition of their own that meets the ceilings. O(m log m).

    kind  of every cell of the table: cells that the ceilings allow in one group have the same kind
    """
    h, need = task.histogram, task.requirement
    alone = replace(h, quasi=np.zeros((side.size, 0), np.int32), sensitive=h.sensitive[side], count=h.count[side],
                    quasi_names=(), quasi_sizes=())  # fmt: skip
    if shortfall(alone, need) is not None:
        return False
    group = dense(kind[side]) if kind.any() else np.zeros(side.size, np.int64)
    cells = side.astype(np.int64) if need.rules else side
    return bool(groups_that_meet(h, need, cells, group).all())


def _nearest(task: Task, asked: np.ndarray, among: np.ndarray) -> np.ndarray:
    """int64[asked, least group]: indexes in ``among`` of the cells with which each cell loses least."""
    lost = np.zeros((asked.size, among.size))
    for j, column in enumerate(task.recoding.columns):
        codes = task.histogram.quasi[:, j]
        there, place = np.unique(codes[among], return_inverse=True)
        lost += np.take(column.pair(codes[asked][:, None], there) * column.weight, place, axis=1)
    size = min(task.requirement.smallest, among.size - 1)
    return np.argpartition(lost, size, axis=1)[:, : size + 1]


def composed(
    task: Task, parts: list[np.ndarray], until: float, alone: Mapping[int, np.ndarray] = MappingProxyType({})
) -> Bounds:
    """Lower bounds of the whole table from its shards; rows not processed in time count as 0.

    alone  by shard, what its nearest rows prove, float64[cells], if a worker has computed it
    """
    began, h = clock(), task.histogram
    columns = task.recoding.columns
    out = Bounds()
    if plain_stars(task.recoding):
        out.values["tuples"] = int(residue(h, task.requirement)[1]["bound"])
    single = task.recoding.alone(h)
    if single:
        out.values["alone"] = single
    held: np.ndarray | None = None
    price = np.zeros(h.cells)
    # The loss of a row in its shard, unless it is nearer to another shard than to its own rows.
    for s, part in enumerate(parts):
        own = alone.get(s)
        if own is None:
            left = until - clock()
            if left <= 0:
                continue
            mine = Task(h.part(part), task.requirement, task.recoding, Effort("fast"), task.seed)
            own = neighbors(mine, clock() + left / (len(parts) - s))
        if own is None or not own.any():
            continue
        held = _losses_to_shards(task, parts) if held is None else held
        for other in range(len(parts)):
            if other != s:
                away = sum((held[other, j][h.quasi[part, j]] for j in range(len(columns))), np.zeros(part.size))
                np.minimum(own, away, out=own)
        price[part] = own
        _release_memory()
    out.values["shards"] = total(task, price)
    out.seconds = clock() - began
    return out


def _losses_to_shards(task: Task, parts: list[np.ndarray]) -> np.ndarray:
    """object[shard, column]: float64[codes], the least loss of each code with a row of the shard. O(m) per column."""
    columns = task.recoding.columns
    held = np.zeros((len(parts), len(columns)), object)
    for j, column in enumerate(columns):
        for s, part in enumerate(parts):
            present = np.zeros(column.size, bool)
            present[task.histogram.quasi[part, j]] = True
            held[s, j] = column.beyond(present) * column.weight
    return held
