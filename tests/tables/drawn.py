"""Small tables, requirements and recodings drawn by Hypothesis, shared by the tests of the cascade and the search."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from shoal.model.arguments import Effort
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Recoding, Regions, Sets
from shoal.model.task import Task, shortfall
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice
from shoal.problems.tables.search.cascade import start
from tests.oracles.regions import cheapest_connected
from tests.oracles.tables import eligible, held, least_total, paid, row_loss

TREE = np.array([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]])  # four leaves, two pairs, the root
EFFORTS = ("fast", "balanced", "thorough", 0.05)
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
    wide = replace(Histogram.from_rows(array[:, :d], array[:, d:]), quasi_sizes=(4,) * d, sensitive_sizes=(4,) * s)
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


TREES = ("stars", "tree", "heavy")


def few(
    random: np.random.Generator,
    rows: tuple[int, int],
    columns: tuple[int, int],
    values: int,
    need: Callable[[Histogram], Requirement],
    kinds: tuple[str, ...] = TREES,
) -> Task | None:
    """A task on a few rows of one to three quasi-identifiers; None where the table as a whole does not meet it.

    rows, columns  how many rows and sensitive columns, from the first number to below the second
    values         of a sensitive column
    """
    d, s, n = (int(random.integers(*between)) for between in ((1, 4), columns, rows))
    quasi = random.integers(0, 4, (n, d)) // random.integers(1, 3)
    found = Histogram.from_rows(quasi, random.integers(0, values, (n, s)))
    table = replace(found, quasi_sizes=(4,) * d, sensitive_sizes=(values,) * s)
    asked, names = need(table), random.choice(kinds, d).tolist()
    unit = "stars" if set(names) == {"stars"} else "ncp"
    recoding = Recoding(tuple(KINDS[name]() for name in names), unit)
    return None if shortfall(table, asked) is not None else Task(table, asked, recoding, seed=1)


class Graph(NamedTuple):
    """Areas, the first of them codes of a column, with weights and neighbors; missing: the last code has no area."""

    codes: int
    weights: list[int]
    edges: list[tuple[int, int]]
    missing: bool

    def column(self, weight: float = 1.0) -> Regions:
        """The column published as connected sets."""
        names = [f"{i:02}" for i in range(len(self.weights))]
        tree = Hierarchy.regions(names, [(names[a], names[b]) for a, b in self.edges], self.weights)
        values: list[str | None] = [*names[: self.codes]]
        if self.missing:
            values[-1] = None
        found = tree.resolve(values)
        return Regions.of(tree, values, Levels.tree(found.node, weight, None, found.leaves))

    def lost(self, codes: set[int]) -> float:
        """Loss of a group of some codes, by trying every set of areas."""
        if len(codes) == 1:
            return 0.0
        if self.missing and self.codes - 1 in codes:
            return 1.0
        return min((cheapest_connected(codes, self.weights, self.edges) - 1) / max(sum(self.weights) - 1, 1), 1.0)


def graph_task(random: np.random.Generator, most: int = 8) -> tuple[Task, list[Graph | None]] | None:
    """A task on a few rows, of which a column or two are areas, and the graph of each; None where nothing meets it."""
    d, s, n = int(random.integers(1, 4)), int(random.integers(0, 2)), int(random.integers(2, most + 1))
    graphs: list[Graph | None] = [None] * d
    for j in random.choice(d, int(random.integers(1, min(d, 2) + 1)), replace=False):
        areas = int(random.integers(4, 10))
        edges = [pair for pair in combinations(range(areas), 2) if random.random() < random.choice([0.2, 0.3, 0.5])]
        weights = [int(w) for w in random.integers(1, 10, areas)]
        graphs[j] = Graph(int(random.integers(2, areas + 1)), weights, edges, bool(random.random() < 0.2))
    sizes = tuple(4 if g is None else g.codes for g in graphs)
    found = Histogram.from_rows(random.integers(0, sizes, (n, d)), random.integers(0, 3, (n, s)))
    table = replace(found, quasi_sizes=sizes, sensitive_sizes=(3,) * s)
    plain, weight = list(KINDS), (1.0, 1.0, 2.5)
    columns = [KINDS[random.choice(plain)]() if g is None else g.column(float(random.choice(weight))) for g in graphs]
    several = tuple(int(x) for x in random.integers(1, 3, s)), tuple(int(x) for x in random.integers(1, 4, s))
    need = Requirement(int(random.integers(2, 6)), *several)
    if shortfall(table, need) is not None:
        return None
    effort = Effort.of([*EFFORTS][int(random.integers(len(EFFORTS)))])
    return Task(table, need, Recoding(tuple(columns), "ncp"), effort, seed=int(random.integers(4))), graphs


def lost_in(task: Task, graphs: list[Graph | None], cells: np.ndarray) -> float:
    """What a row of a group of cells loses, summed over the columns."""
    rows, columns = task.histogram.quasi[cells], task.recoding.columns
    plain = [j for j, graph in enumerate(graphs) if graph is None]
    others = Recoding(tuple(columns[j] for j in plain), "ncp")
    areas = [(j, graph) for j, graph in enumerate(graphs) if graph is not None]
    lost = row_loss(others, [tuple(map(int, row[plain])) for row in rows])
    return lost + sum(graph.lost(set(rows[:, j].tolist())) * columns[j].weight for j, graph in areas)


def least_of_graphs(task: Task, graphs: list[Graph | None]) -> float | None:
    """The least loss of all partitions, summed over rows and columns; None where there is none."""
    h, need = task.histogram, task.requirement
    cells = np.repeat(np.arange(h.cells), h.count)

    def price(group: list[int]) -> float | None:
        hidden = [tuple(map(int, h.sensitive[c])) for c in cells[group]]
        if not eligible(hidden, need.k, need.frequency, need.distinct):
            return None
        return len(group) * lost_in(task, graphs, cells[group])

    return least_total(cells.size, price)


def classes(task: Task, lattice: Lattice) -> Iterator[tuple[list[int], float]]:
    """The cells of every class of every node, and what a row of it loses there."""
    h = task.histogram
    for node in product(*map(range, lattice.heights)):
        held: dict[tuple[int, ...], list[int]] = {}
        for c in range(h.cells):
            key = tuple(int(lattice.up[j][level][h.quasi[c, j]]) for j, level in enumerate(node))
            held.setdefault(key, []).append(c)
        for inside in held.values():
            yield inside, sum(float(lattice.loss[j][level, h.quasi[inside[0], j]]) for j, level in enumerate(node))


def total(task: Task, cost: float) -> float:
    """A certificate's cost or bound as the sum over rows and columns."""
    return cost if task.recoding.unit == "stars" else cost * task.histogram.rows * len(task.recoding.columns)


def lost(task: Task, partition: Partition) -> float:
    """What a partition loses over rows and columns, priced by the oracle."""
    found = paid(task.histogram, task.recoding, partition)
    assert found is not None, "a group passes a ceiling"
    return found


def begun(task: Task) -> tuple[Rows, np.ndarray]:
    """The rows of a task, and the groups in which the searches find them, int64[n]."""
    rows = Rows.of(task)
    return rows, rows.labels(start(task, rows))


def interrupted(task: Task, turn: int, search: Callable[[Task], object]) -> None:
    """A search is interrupted the so-manieth time it says how far it is, and ends there without an answer."""
    turns = []

    def interrupt(what: str, share: float | None) -> None:
        turns.append(what)
        if len(turns) == turn:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(replace(task, progress=interrupt))
    assert len(turns) == turn


def assert_eligible(task: Task, partition: Partition) -> None:
    """Every row placed once, every group eligible, judged by the oracle."""
    need = task.requirement
    assert all(eligible(rows, need.k, need.frequency, need.distinct) for rows in held(task.histogram, partition))


def census_like(n: int, seed: int, columns: int = 5, values: int = 12) -> Histogram:
    """Skewed, correlated rows: a seed gives the same table everywhere."""
    random = np.random.default_rng(seed)
    sizes = [40, 2, 6, 9, 15, 8, 5][:columns]
    kind = random.integers(0, 30, n)
    quasi = [np.minimum((random.exponential(s / 5, n) + kind * s / 60).astype(int), s - 1) for s in sizes]
    sensitive = (kind // 3 + random.integers(0, values, n) ** 2 // values) % values
    found = Histogram.from_rows(np.stack(quasi, axis=1), sensitive)
    return found


def halved(size: int, weight: float = 1.0) -> ColumnRecoding:
    """Neighbors joined two by two."""
    levels = [np.arange(size)]
    while levels[-1].max() > 0:
        levels.append(levels[-1] // 2)
    return Levels.tree(np.stack(levels), weight=weight)
