"""Small tables, requirements and recodings drawn by Hypothesis, shared by the tests of the cascade and the search."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Recoding, Sets
from shoal.model.task import Task, shortfall
from tests.oracles.tables import eligible

TREE = np.array([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]])  # four leaves, two pairs, the root
KINDS = {
    "stars": lambda: Levels.stars(4),
    "tree": lambda: Levels.tree(TREE),
    "heavy": lambda: Levels.tree(TREE, weight=2.5),
    "set": lambda: Sets.of(4),
    "range": lambda: Ranges.of(np.array([0.0, 1.0, 4.0, 9.0])),
}


@st.composite
def tasks(draw, most=8, kinds=tuple(KINDS), sensitive=(0, 1, 2), steps="balanced", least=1):
    """A feasible task on a table of a few rows."""
    d, s = draw(st.integers(1, 3)), draw(st.sampled_from(sensitive))
    rows = draw(st.lists(st.tuples(*[st.integers(0, 3)] * (d + s)), min_size=least, max_size=most))
    array = np.array(rows)
    found = Histogram.from_rows(array[:, :d], array[:, d:])
    wide = Histogram(
        found.quasi, found.sensitive, found.count, found.quasi_names, found.sensitive_names, (4,) * d, (4,) * s
    )
    names = draw(st.lists(st.sampled_from(kinds), min_size=d, max_size=d))
    need = Requirement(
        draw(st.integers(1, 3)),
        tuple(draw(st.integers(1, 3)) for _ in range(s)),
        tuple(draw(st.integers(1, 3)) for _ in range(s)),
    )
    if shortfall(wide, need) is not None:
        need = Requirement(1, (1,) * s, (1,) * s)
    unit = "stars" if set(names) == {"stars"} else "ncp"
    recoding = Recoding(tuple(KINDS[name]() for name in names), unit)
    return Task(wide, need, recoding, Effort.of(steps), seed=draw(st.integers(0, 3)))


def total(task: Task, cost: float) -> float:
    """A certificate's cost or bound as the sum over rows and columns."""
    return cost if task.recoding.unit == "stars" else cost * task.histogram.rows * len(task.recoding.columns)


def assert_eligible(task: Task, partition: Partition) -> None:
    """Every row placed once, every group eligible, judged by the oracle."""
    partition.check(task.histogram)
    for g in range(partition.groups):
        here = partition.group == g
        values = np.repeat(task.histogram.sensitive[partition.cell[here]], partition.count[here], axis=0)
        assert eligible(
            [tuple(v) for v in values], task.requirement.k, task.requirement.frequency, task.requirement.distinct
        )


def census_like(n: int, seed: int, columns: int = 5, values: int = 12) -> Histogram:
    """Skewed, correlated rows: a seed gives the same table everywhere."""
    random = np.random.default_rng(seed)
    sizes = [40, 2, 6, 9, 15, 8, 5][:columns]
    kind = random.integers(0, 30, n)
    quasi = [np.minimum((random.exponential(s / 5, n) + kind * s / 60).astype(int), s - 1) for s in sizes]
    sensitive = (kind // 3 + random.integers(0, values, n) ** 2 // values) % values
    found = Histogram.from_rows(np.stack(quasi, axis=1), sensitive)
    return found


def halved(size: int) -> ColumnRecoding:
    """Neighbors joined two by two."""
    levels = [np.arange(size)]
    while levels[-1].max() > 0:
        levels.append(levels[-1] // 2)
    return Levels.tree(np.stack(levels))
