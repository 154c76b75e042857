"""The cascade: publish every row at the cheapest lattice node where it finds an eligible class, strand nobody.

Walks the generalization lattice from the values themselves upwards, in order of mean loss.  At each node the rows not
yet published fall into classes, and the largest eligible part of each class is published (for l-diversity by
frequency the closed form of the three-phase algorithm's phase one).  Groups are then cut as small as dealing allows,
which costs nothing, and rows left over join the piece where they cost least.  Where a sensitive value is scarce its
spare rows stay on loan: a later class that lacks it may borrow one.  The three-phase algorithm is run as well and the
better of the two is returned, so its promise holds here too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError
from shoal.model.partition import Partition
from shoal.model.task import Grouping, Task, shortfall
from shoal.problems.tables.eligible import rules_of
from shoal.problems.tables.papers.three_phase import residues
from shoal.problems.tables.search.certified import certify
from shoal.problems.tables.search.lattice import ENUMERATED, Lattice
from shoal.problems.tables.search.quotas import by_quotas
from shoal.problems.tables.search.row_groups import Rows
from shoal.problems.tables.search.thinning import finished

BATCH = 256
SPENT = 0.01  # of the rows left: where persons are counted a node costs much, and nodes that place fewer are the last
HURRY = 0.05  # share of the seconds after which the other cascade is left out where t-closeness has one of its own


def cascade(task: Task) -> Grouping:
    """Cascade through the lattice, groups cut small, leftover rows placed; never dearer than ``three_phase``.

    Near-linear in the number of cells for each lattice node it visits.
    Raises InfeasibleError when rows cannot be placed under a column's ceiling.
    """
    rows = Rows.of(task)
    return certify(task, best(task, start(task, rows)), "cascade")


def start(task: Task, rows: Rows) -> Partition:
    """The cascade cut into pieces, with everyone placed."""
    if not task.histogram.cells:
        return rows.partition(np.zeros(0, np.int64))
    began = clock()
    quotas = by_quotas(task, rows)
    small = None if quotas is None else rows.partition(rows.place(quotas))
    if small is not None:
        seconds = task.effort.seconds
        if seconds is not None and clock() - began > HURRY * seconds:  # better spent on settling
            return small
    found = finished(task, rows, *walk(task))
    if small is not None:
        found = min((found, small), key=lambda partition: rank(task, partition))
    easier = task.requirement.stand_in if task.requirement.rules else None
    if easier is None or shortfall(task.histogram, easier) is not None:
        return found
    # Frequencies have a cascade of their own, so a stricter requirement may start better than the one asked.
    strict = replace(task, requirement=easier)
    return min((found, start(strict, Rows.of(strict))), key=lambda partition: rank(task, partition))


def walk(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples (cell, group, rows) published by the cascade; rows left over are in none."""
    from shoal.kernels.tables.lattice import Loans, Raised, Triples, publish
    from shoal.kernels.uncompiled import quick

    histogram, need = task.histogram, task.requirement
    lattice = Lattice.of(task.recoding)
    nodes = lattice.ordered(task) if lattice.nodes <= ENUMERATED else lattice.chain(task)
    up, at, size, exact = lattice.flat
    asked = list(need.sensitive_columns)
    sensitive = np.ascontiguousarray(histogram.sensitive[:, asked])
    values = np.array([max(histogram.sensitive_sizes[j], 1) for j in asked], np.int64)
    frequency = np.array([need.frequency[j] for j in asked], np.int64)
    distinct = np.array([need.distinct[j] for j in asked], np.int64)
    rules = rules_of(need, histogram.sensitive_sizes)
    common = scarcity(task)
    left = histogram.count.copy()
    raised = Raised(histogram.quasi, up, at, size, exact)
    loans = Loans(common, np.zeros_like(left), np.zeros_like(left))
    room = 4 * histogram.cells + 16
    out = Triples(*(np.empty(room, np.int64) for _ in range(3)))
    found: list[tuple[np.ndarray, ...]] = []
    done, group = 0, 0
    while done < len(nodes) and left.any():
        task.progress("cascade", done / len(nodes))
        before = int(left.sum())
        batch = nodes[done : done + BATCH]
        steps, written, group = quick(publish, np.inf if rules is not None else histogram.quasi.size * len(batch))(
            raised, batch, sensitive, values, left, need.smallest if not asked else need.k, frequency, distinct, rules,
            loans, group, out,
        )  # fmt: skip
        done += steps
        found.append(tuple(a[:written].copy() for a in out))
        if not need.closed and left.sum() > (1 - SPENT) * before:
            break
    kept = np.flatnonzero(loans.spare)
    found.append((kept, loans.home[kept], loans.spare[kept]))
    cell, group_of, count = (np.concatenate(a) for a in zip(*found, strict=True))
    return cell, group_of, count


def scarcity(task: Task) -> np.ndarray:
    """bool per sensitive value: the values that are not scarce; empty where no value is.

    Only for distinct diversity of one column: of every u - 1 values, each group needs a row of another.  Where the
    u - 1 most frequent values are more than half of the table, all others are scarce.
    """
    histogram, need = task.histogram, task.requirement
    none = np.zeros(0, bool)
    asked = need.sensitive_columns
    if len(asked) != 1 or need.frequency[asked[0]] > 1 or need.rules:
        return none
    j = asked[0]
    held = np.bincount(histogram.sensitive[:, j], weights=histogram.count, minlength=histogram.sensitive_sizes[j])
    order = np.argsort(-held, kind="stable")[: need.distinct[j] - 1]
    if held[order].sum() <= held.sum() / 2:
        return none
    out = np.zeros(held.size, bool)
    out[order] = True
    return out


def forbidden(task: Task, partition: Partition) -> np.ndarray:
    """Rows published above the ceiling of each column, int64[d]."""
    out = np.zeros(len(task.recoding.columns), np.int64)
    held = [(j, c) for j, c in enumerate(task.recoding.columns) if c.held]
    if held:
        published = task.recoding.publish(task.histogram, partition)
        for j, column in held:
            out[j] = partition.sizes[column.above(published.first[:, j])].sum()
    return out


def rank(task: Task, partition: Partition) -> tuple[int, float]:
    """What to compare partitions by: rows above a ceiling first, then the loss."""
    return int(forbidden(task, partition).sum()), task.recoding.cost(task.histogram, partition)


def best(task: Task, *partitions: Partition) -> Partition:
    """The cheapest of some partitions and the three-phase one; refuses when all break a ceiling."""
    candidates = [*partitions, residues(task)[0]]
    return within_ceilings(task, min(candidates, key=lambda p: rank(task, p)))


def within_ceilings(task: Task, chosen: Partition) -> Partition:
    """The same partition; InfeasibleError where it breaks a ceiling."""
    over = forbidden(task, chosen)
    if over.any():
        j = int(over.argmax())
        level, name = task.recoding.columns[j].limit, task.histogram.quasi_names[j]
        raise InfeasibleError(
            f"{int(over[j])} rows cannot be placed with {name!r} at {level} or below; "
            "raise its ceiling or leave the column out"
        )
    return chosen
