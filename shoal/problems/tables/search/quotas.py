"""The cascade for t-closeness: a class publishes small groups whose values come near the table's shares.

The largest part of a class that is within t of the table uses up all of t, and can hardly be cut after that.  So the
groups are made small at once: each follows the shares of its class as far as t allows, and the table's beyond that.
"""

from __future__ import annotations

import numpy as np

from shoal.model.task import Task
from shoal.problems.tables.search.lattice import ENUMERATED, Lattice
from shoal.problems.tables.search.row_groups import Rows

MOST = 3  # times the least size: the most rows of a group


def by_quotas(task: Task, rows: Rows) -> np.ndarray | None:
    """A group for every row, int64[n]; -1 for rows in none, and None where no t-closeness of the one column is asked.

    Classes are visited as by the cascade.  O(nodes * cells * log(cells)).
    """
    from shoal.kernels.tables.quotas import deal

    h, need = task.histogram, task.requirement
    close = [rule for rule in need.rules if rule.measure.kind == "equal"]
    if not close or len(need.sensitive_columns) != 1:
        return None
    rule = min(close, key=lambda rule: rule.measure.number)
    lattice = Lattice.of(task.recoding)
    nodes = lattice.ordered(task) if lattice.nodes <= ENUMERATED else lattice.chain(task)
    share, t = np.array(rule.measure.table), rule.measure.number
    value, left = rows.sensitive[:, 0].astype(np.int64), h.count.copy()
    room = int(left.sum())
    out = tuple(np.empty(room, np.int64) for _ in range(3))
    found: list[tuple[np.ndarray, ...]] = []
    group = 0
    for done, node in enumerate(nodes):
        cells = np.flatnonzero(left > 0)
        if not cells.size:
            break
        if done % 64 == 0:
            task.progress("cascade", done / len(nodes))
        key = np.zeros(cells.size, np.int64)
        for j, level in enumerate(node):
            up = lattice.up[j][level].astype(np.int64)
            width = int(up.max(initial=0)) + 1
            if int(key.max(initial=0)) >= 2**62 // width:
                key = np.unique(key, return_inverse=True)[1].reshape(-1)
            key = key * width + up[h.quasi[cells, j]]
        order = np.argsort(key, kind="stable")
        start = np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), cells.size)
        group, written = deal(cells[order], start, value, left, share, t, rows.k, MOST * rows.k, group, *out)
        if written:
            found.append(tuple(a[:written].copy() for a in out))
    if not found:
        return np.full(rows.cell.size, -1, np.int64)
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    labels = rows.spread(cell, label, count)
    good = rows.eligible(labels, group)  # the other models asked for
    return np.where((labels >= 0) & good[labels], labels, -1)
