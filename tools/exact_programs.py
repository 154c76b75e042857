"""Every exact program for tables on the same small random tables: ``python tools/exact_programs.py [TABLES] [SEED]``.

Tables of up to 10 rows, 4 columns and alphabets of 2 to 4, with stars and with hierarchies; costs are compared as whole
numbers.  Prints how many tables every kind of request had and on how many two programs differ; exits 1 where any do.
"""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np

from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import ColumnRecoding, Levels, Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.tables.exact.optimal import by_vectors
from shoal.problems.tables.exact.pattern_model import row_classes_of
from shoal.problems.tables.exact.pattern_program import ProgramLimits, pattern_program
from shoal.problems.tables.exact.set_partition import solve
from shoal.problems.tables.exact.two_anonymity import simplex_matching
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.pattern_cover import whole_cost


def random_tree(rng: np.random.Generator, size: int) -> ColumnRecoding:
    """A hierarchy of two to four levels."""
    nodes = [np.arange(size)]
    for _ in range(rng.integers(0, 3)):
        width = int(nodes[-1].max()) + 1
        nodes.append(np.unique(rng.integers(0, width, width), return_inverse=True)[1].reshape(-1)[nodes[-1]])
    return Levels.tree(np.stack([*nodes, np.zeros(size, int)]))


def every_program(histogram: Histogram, need: Requirement, recoding: Recoding) -> list[int]:
    """The optimum as a whole number, by every program that applies."""
    costs, kinds = Costs.of(histogram, recoding), row_classes_of(histogram, need)
    task = Task(histogram, need, recoding)
    whole = Partition.of(np.arange(histogram.cells), np.zeros(histogram.cells), histogram.count)
    found = by_vectors(histogram, need, costs, kinds, 1e9, 2**60)
    assert found is not None
    out = [
        whole_cost(costs, task, found),
        whole_cost(costs, task, pattern_program(task, costs, kinds, whole, ProgramLimits(1e9))[0]),
    ]
    if need.k == 2 and not need.sensitive_columns:
        out.append(solve(costs).upper)
        vertex = np.repeat(np.arange(costs.types), costs.count)
        n = vertex.size
        if n <= 7:
            edges = {e: s * costs.loss(vertex[list(e)]) for s in (2, 3) for e in combinations(range(n), s)}
            out.append(simplex_matching(n, edges).cost)
    return out


def differing(k: int, l: int, trees: bool, tables: int, rng: np.random.Generator) -> int:
    """On how many random tables two programs differ; tables without an answer are skipped."""
    out = 0
    for _ in range(tables):
        n, d = int(rng.integers(max(k, 2), 11)), int(rng.integers(1, 5))
        quasi = rng.integers(0, rng.integers(2, 5), (n, d))
        histogram = Histogram.from_rows(quasi, rng.integers(0, 4, n))
        need = Requirement(k, (l,), (1,))
        recoding = Recoding.stars(histogram)
        if trees:
            recoding = Recoding(tuple(random_tree(rng, s) for s in histogram.quasi_sizes), "ncp")
        if shortfall(histogram, need) is None:
            out += len(set(every_program(histogram, need, recoding))) > 1
    return out


if __name__ == "__main__":
    asked = [int(x) for x in sys.argv[1:]]
    tables, seed = (*asked, *(500, 0)[len(asked) :])
    rng = np.random.default_rng(seed)
    wrong = 0
    for what, k, l in (("k = 2", 2, 1), ("k = 3", 3, 1), ("k = 4", 4, 1), ("3-diverse", 1, 3)):
        for trees in (False, True):
            found = differing(k, l, trees, tables, rng)
            wrong += found
            print(f"{what}, {'hierarchies' if trees else 'stars'}: {tables} tables, seed {seed}, {found} differ")
    sys.exit(wrong > 0)
