"""Global recoding at levels that were chosen before: groups, and a block of rows starred whole within a budget.

What is asked is only whether the groups at these levels meet the requirement.  Where they do not, the refusal says how
many rows are in the way, the least budget that would pass and the least change of one level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.partition import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import certified, good_groups
from shoal.problems.tables.others.outliers import Look, Nodes


def at_levels(task: Task, levels: Mapping[str, int]) -> Grouping:
    """The groups of a table when every column stands at its level, rows that meet no requirement starred whole.

    levels  of every quasi-identifier, at most the top of its hierarchy
    ``task.spare`` is the budget of starred rows; ``task.admits`` may say of cells that they are to be starred.
    Raises InfeasibleError beyond the budget.  O(m log m).
    """
    names, columns = task.histogram.quasi_names, task.recoding.hierarchies or ()
    chosen = np.array([min(levels[n], c.ceiling) for n, c in zip(names, columns, strict=True)], np.int64)
    nodes = Nodes(task)
    look = nodes.look(chosen)
    if not np.isfinite(look.cost):
        raise InfeasibleError(_refusal(task, chosen))
    label = nodes.label(chosen)
    label[look.block] = task.histogram.cells  # behind every other number
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    rows, starred = task.histogram.rows, int(task.histogram.count[look.block].sum())
    unit = task.recoding.unit
    facts = {
        "levels": {n: int(h) for n, h in zip(names, chosen, strict=True)},
        "uniform_cost": round(look.cost) if unit == "stars" else look.cost / max(rows * len(columns), 1),
        "uniform_bound": 0,
        "uniform_optimal": False,
    }
    if task.spare:
        facts |= {"suppressed_rows": starred, "max_suppressed_rows": task.spare}
    return certified(task, partition, "global_recoding", details=facts, starred=bool(starred))


def _refusal(task: Task, levels: np.ndarray) -> str:
    rows = task.histogram.rows
    nodes = Nodes(task)
    label = nodes.label(levels)
    bad = ~good_groups(task.histogram, task.requirement, np.arange(label.size), label)
    if task.admits is not None:
        bad[label[~task.admits(levels)]] = True
    few = int(task.histogram.count[bad[label]].sum())
    plain = (
        nodes.by_size or not (np.bincount(label, weights=task.histogram.count)[bad] >= task.requirement.smallest).any()
    )
    why = f"groups of fewer than k = {task.requirement.smallest}" if plain else "groups that do not meet the models"
    allowed = f", and {task.spare:,} may be starred whole" if task.spare else ""
    return f"{few:,} of {rows:,} rows would stand in {why}{allowed}{_ways_out(task, levels)}"


def _ways_out(task: Task, levels: np.ndarray) -> str:
    """The least budget, and the least change of one level, that would pass; "" where neither would."""
    rows, ways = task.histogram.rows, []
    starred = _least_block(task, levels)
    if starred is not None and starred < rows:
        ways.append(f"max_suppressed={_up(starred / rows)} would pass, with {starred:,} rows starred whole")
    found = _raised(task, levels)
    if found is not None:
        name, level = found
        ways.append(f"level {level} of {name!r} would pass")
    return f"; {', or '.join(ways)}" if ways else ""


def _least_block(task: Task, levels: np.ndarray) -> int | None:
    """Rows starred whole under the least budget that passes, found by bisection; None where none does."""

    def block(spare: int) -> int | None:
        look = Nodes(replace(task, spare=spare)).look(levels)
        return int(task.histogram.count[look.block].sum()) if np.isfinite(look.cost) else None

    low, high, least = task.spare, task.histogram.rows, block(task.histogram.rows)
    while least is not None and low + 1 < high:
        middle = (low + high) // 2
        found = block(middle)
        if found is None:
            low = middle
        else:
            high, least = middle, found
    return least


def _up(share: float) -> float:
    """A share rounded up to four digits."""
    return float(np.ceil(share * 10_000 - 1e-9) / 10_000)


def _raised(task: Task, levels: np.ndarray) -> tuple[str, int] | None:
    """The column and level whose change alone passes, the cheapest of them."""
    nodes, best, least = Nodes(task), None, np.inf
    for j, column in enumerate(task.recoding.hierarchies or ()):
        for level in range(int(levels[j]) + 1, column.ceiling + 1):
            tried = levels.copy()
            tried[j] = level
            look: Look = nodes.look(tried)
            if np.isfinite(look.cost):
                if look.cost < least:
                    best, least = (task.histogram.quasi_names[j], level), look.cost
                break
    return best
