"""Groups along a space-filling curve, and the three-phase algorithm refined by them.

Ghinita, Karras, Kalnis, Mamoulis, "Fast data anonymization with low information loss", VLDB 2007: rows that are close
on a Hilbert curve have similar quasi-identifiers, so groups are formed in one dimension.

From the paper: one queue per sensitive value, where rows without which the rest would be ineligible are taken first;
for k-anonymity an optimal cut of the sequence by dynamic programming.
Differences: the loss of groups is that of their published form; a minimum size k and a least number of distinct values
may be requested too; for several sensitive columns, the sequence is cut when a group is eligible; several curves are
tried and the best is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import certified
from shoal.problems.tables.groups import encode, joining, rules_of
from shoal.problems.tables.three_phase import in_stars, plain_stars, residue, split

MOST_STEPS = 4_000_000_000
MORE = {"fast": 0, "balanced": 0, "thorough": 60, "seconds": 1000}
WINDOW = 100


def hilbert(task: Task) -> Grouping:
    """The grouping with the least loss over several curves.

    effort "fast" tries two curves, "balanced" six, "thorough" 60 more orders of the columns that depend on the seed,
    and seconds as many as possible. O(n v) time per curve for v sensitive values; O(n k d) without.
    """
    partition, facts = along_curves(task)
    return certified(task, partition, "hilbert", details=facts)


def three_phase_hilbert(task: Task) -> Grouping:
    """TP+: the three-phase algorithm, with its residue grouped along a curve instead of published as one group.

    The guarantee of the three-phase algorithm holds: no more tuples are suppressed, and each has at most d stars.
    """
    histogram, need = task.histogram, task.requirement
    taken, facts = residue(histogram, need)
    promise: Guarantee = facts["guarantee"]
    partition = split(histogram, taken)
    details: dict[str, Any] = {
        k: facts[k] for k in ("phase", "residue_after_phase_one", "height_after_phase_one") if k in facts
    }
    if taken.any():
        here = np.flatnonzero(taken)
        rest = replace(histogram.part(here), count=taken[here])
        of_type, first = histogram.types
        inner, found = along_curves(
            Task(rest, need, task.recoding, task.effort, task.seed, task.progress, task.started)
        )
        details |= found
        partition = Partition.of(
            np.concatenate([np.arange(histogram.cells), here[inner.cell]]),
            np.concatenate([of_type, first.size + inner.group]),
            np.concatenate([histogram.count - taken, inner.count]),
        )
    details |= {"rows_moved": int(taken.sum()), "suppressed_tuples_promised": promise.theorem}
    stars = in_stars(promise, len(task.recoding.columns)) if plain_stars(task.recoding) else Guarantee()
    return certified(task, partition, "three_phase_hilbert", stars, details)


def along_curves(task: Task) -> tuple[Partition, dict[str, str]]:
    """The best grouping over the curves tried, and the name of its curve."""
    histogram, recoding = task.histogram, task.recoding
    best: tuple[float, Partition, str] | None = None

    def better(name: str, order: np.ndarray) -> bool:
        nonlocal best
        task.progress(f"grouping along the curve: {name}", None)
        before = best
        for way, partition in _cuts(task, order):
            cost = recoding.cost(histogram, partition)
            if best is None or cost < best[0]:
                best = (cost, partition, f"{name}, {way}")
        return best is not before

    def late() -> bool:
        seconds = task.effort.seconds
        return seconds is not None and clock() - task.started > seconds

    for number, (name, order) in enumerate(curves(histogram, recoding)):
        if number >= 2 and (task.effort.name == "fast" or late()):
            break
        better(name, order)
    code, sizes = ranks(histogram, recoding)
    columns = np.argsort(sizes, kind="stable")
    rng = np.random.default_rng(task.seed)
    for _ in range(MORE[task.effort.name] if sizes.size > 2 else 0):  # snake orders over other orders of the columns
        if late():
            break
        now = columns.copy()
        i, j = rng.choice(sizes.size, 2, replace=False)
        now[[i, j]] = now[[j, i]]
        if better("snake over " + ", ".join(histogram.quasi_names[j] for j in now), _snake(code[:, now])):
            columns = now
    assert best is not None
    return best[1], {"space_filling_curve": best[2]}


def ranks(histogram: Histogram, recoding: Recoding) -> tuple[np.ndarray, np.ndarray]:
    """(int64[m, d] codes renumbered so that those of one class are adjacent, number of codes of each column)."""
    code = np.zeros((histogram.cells, len(recoding.columns)), np.int64)
    for j, column in enumerate(recoding.columns):
        code[:, j] = column.order()[histogram.quasi[:, j]]
    return code, np.array(histogram.quasi_sizes, np.int64).reshape(code.shape[1])


def curves(histogram: Histogram, recoding: Recoding) -> Iterator[tuple[str, np.ndarray]]:
    """Orders of the cells: Hilbert curves over codes unchanged and stretched, then lexicographic orders."""
    d = len(recoding.columns)
    code, sizes = ranks(histogram, recoding)
    bits = max(int(max(sizes.max(initial=1) - 1, 0)).bit_length(), 1)
    stretched = (code << bits) // np.maximum(sizes, 1)
    narrow_first = np.argsort(sizes, kind="stable")
    orders = (
        ("stretched Hilbert", lambda: hilbert_order(stretched, bits)),
        ("Hilbert", lambda: hilbert_order(code, bits)),
        ("narrow first", lambda: np.lexsort(code[:, narrow_first[::-1]].T) if d else np.arange(histogram.cells)),
        ("stretched Hilbert, narrow first", lambda: hilbert_order(stretched[:, narrow_first], bits)),
        ("Hilbert, wide last", lambda: hilbert_order(code[:, narrow_first], bits)),
        ("snake", lambda: _snake(code[:, narrow_first])),
    )
    for name, make in orders:
        yield name, make()


def _snake(code: np.ndarray) -> np.ndarray:
    """Lexicographic order in which every column reverses its direction after each change of the columns before it."""
    if not code.shape[1]:
        return np.arange(code.shape[0])
    code = code.copy()
    turn = code[:, 0] % 2
    for j in range(1, code.shape[1]):
        plain = code[:, j].copy()
        code[turn == 1, j] *= -1
        turn = (turn + plain) % 2
    return np.lexsort(code.T[::-1])


def hilbert_order(point: np.ndarray, bits: int) -> np.ndarray:
    """int64[m]: points int[m, d], 0 <= coordinate < 2**bits, in the order of the d-dimensional Hilbert curve.

    Skilling, "Programming the Hilbert curve" (2004): coordinates are converted to the transposed index by undoing one
    rotation per bit. O(m d bits).
    """
    m, d = point.shape
    if not d:
        return np.arange(m)
    x = [point[:, j].astype(np.int64) for j in range(d)]
    for b in range(bits - 1, 0, -1):
        low = (1 << b) - 1
        for j in range(d):
            flip = (x[j] >> b) & 1 == 1
            swap = np.where(flip, 0, (x[0] ^ x[j]) & low)
            x[0] = np.where(flip, x[0] ^ low, x[0] ^ swap)
            if j:
                x[j] = x[j] ^ swap
    for j in range(1, d):
        x[j] = x[j] ^ x[j - 1]
    turn = np.zeros(m, np.int64)
    for b in range(bits - 1, 0, -1):
        turn ^= np.where((x[-1] >> b) & 1 == 1, (1 << b) - 1, 0)
    words: list[np.ndarray] = []
    used = 62
    for b in range(bits - 1, -1, -1):
        for j in range(d):
            if used == 62:
                words.append(np.zeros(m, np.int64))
                used = 0
            words[-1] = words[-1] * 2 + (((x[j] ^ turn) >> b) & 1)
            used += 1
    return np.lexsort(words[::-1])


def _cuts(task: Task, order: np.ndarray) -> Iterator[tuple[str, Partition]]:
    """The ways to cut one order into groups that suit the requirement."""
    histogram, need = task.histogram, task.requirement
    columns = need.sensitive_columns
    d, h = len(task.recoding.columns), max((c.levels for c in task.recoding.columns), default=0)
    if not columns and histogram.rows * 2 * need.k * max(d, 1) * max(h, 1) <= MOST_STEPS:
        yield "least cuts", best_cut(histogram, task.recoding, need.k, order)
        return
    if (
        len(columns) == 1
        and not need.rules
        and histogram.rows * np.unique(histogram.sensitive[:, columns[0]]).size <= MOST_STEPS
    ):
        yield "queues", along_queues(histogram, need, columns[0], order)
        if task.effort.name == "fast":
            return
    yield "runs", _runs(histogram, need, order)


def best_cut(histogram: Histogram, recoding: Recoding, k: int, order: np.ndarray) -> Partition:
    """The cheapest groups of k to 2k - 1 rows that are consecutive in an order of the cells, int[m]."""
    from shoal.kernels.tables.hilbert import least_cuts

    slots, leaf = encode(recoding, histogram)
    rows = np.repeat(order, histogram.count[order])
    best, back = np.empty(rows.size + 1), np.zeros(rows.size + 1, np.int64)
    least_cuts(rows, leaf, slots, k, best, back)
    cuts = np.zeros(rows.size + 1, np.int64)
    at = rows.size
    while at > 0:
        at = int(back[at])
        cuts[at] = 1
    return Partition.of(rows, np.cumsum(cuts)[:-1], np.ones(rows.size, np.int64))


def _runs(histogram: Histogram, need: Requirement, order: np.ndarray) -> Partition:
    from shoal.kernels.tables.eligible import GroupRequirement, GroupTriples
    from shoal.kernels.tables.hilbert import runs

    columns, out = list(need.sensitive_columns), GroupTriples.empty(histogram.rows)
    frequency = np.array([need.frequency[j] for j in columns], np.int64)
    distinct = np.array([need.distinct[j] for j in columns], np.int64)
    required = GroupRequirement(need.k, frequency, distinct, rules_of(need, histogram.sensitive_sizes))
    sensitive = np.ascontiguousarray(histogram.sensitive[order][:, columns])
    widest = max((histogram.sensitive_sizes[j] for j in columns), default=1)
    used, _ = runs(histogram.count[order], sensitive, required, widest, out)
    return Partition.of(order[out.cell[:used]], out.group[:used], out.count[:used])


def along_queues(histogram: Histogram, need: Requirement, column: int, order: np.ndarray) -> Partition:
    """Groups of max(k, l) rows, rounded up to a multiple of l, from the queues of a sensitive column's values.

    column  the sensitive column
    order   int64[m]: the cells along the curve

    O(m log m + rows)
    """
    from shoal.kernels.tables.hilbert import CurveGroups, Queues, append, queues

    l, distinct = need.frequency[column], need.distinct[column]
    size = -(-max(need.smallest, 1) // l) * l
    _, value = np.unique(histogram.sensitive[order, column], return_inverse=True)
    by_value = np.argsort(value, kind="stable")
    cells, value = order[by_value], value[by_value]
    held = np.bincount(value, weights=histogram.count[cells]).astype(np.int64)
    groups = histogram.rows // size
    if distinct > 1:  # as many groups as possible with this number of values each
        low, high = 0, groups
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if np.minimum(held, middle).sum() >= distinct * middle else (low, middle - 1)
        groups = low
    start = np.searchsorted(value, np.arange(held.size + 1)).astype(np.int64)
    place, left = by_value.astype(np.int64), histogram.count[cells].copy()
    rows, begin = np.empty(histogram.rows, np.int64), np.zeros(groups + 1, np.int64)
    waiting, found = Queues(start, place, left), CurveGroups(rows, begin)
    made = int(queues(waiting, size, l, distinct, groups, found))
    over = int(left.sum())
    more_cell, more_group = np.empty(over, np.int64), np.empty(over, np.int64)
    if over and made:
        placed = int(append(value.astype(np.int64), waiting, l, found, made, WINDOW, more_cell, more_group))
    else:
        placed = 0
    cell = np.concatenate([rows[: begin[made]], more_cell[:placed]])
    group = np.concatenate([np.repeat(np.arange(made), np.diff(begin[: made + 1])), more_group[:placed]])
    partition = Partition.of(cells[cell], group, np.ones(cell.size, np.int64))
    if left.any():
        pool = np.zeros(histogram.cells, np.int64)
        pool[cells] = left
        partition = with_pool(histogram, need, partition, pool)
    return partition


def with_pool(histogram: Histogram, need: Requirement, partition: Partition, pool: np.ndarray) -> Partition:
    """The rows pool int64[m] without a group as one more group, with the fewest others that make it eligible."""
    joined = joining(histogram, need, partition.cell, partition.group, partition.count, pool)
    rest, last = np.flatnonzero(pool), joined.size
    return Partition.of(
        np.concatenate([partition.cell, rest]),
        np.concatenate([np.where(joined[partition.group], last, partition.group), np.full(rest.size, last)]),
        np.concatenate([partition.count, pool[rest]]),
    )
