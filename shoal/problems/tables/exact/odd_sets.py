"""The linear program over pairs and triples, with the inequalities of odd sets.

A set of types with an odd number of rows cannot be cut into groups that all hold an even number of its rows, so every
partition uses at least one pair or triple with an odd number of rows inside:

    sum of x_e over columns e with |e in S| odd  >=  1        for every S with an odd number of rows.

This is the blossom inequality of matching carried over to triples (a triple with two rows inside does not count).
Without it a ring of three equally distant rows is served by three halves of pairs.
"""

from __future__ import annotations

import highspy
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from shoal.clock import clock
from shoal.problems.programs import Solver
from shoal.problems.tables.costs import Costs

UNLIMITED = float("inf")
THRESHOLDS = (1e-6, 0.15, 0.26, 0.34, 0.51, 0.7)


def charge(costs: Costs, columns: np.ndarray) -> np.ndarray:
    """int64[c]: cost of each pair or triple, all its rows together.  columns int32[c, 3], -1 as third of a pair."""
    a, b, c = columns[:, 0], columns[:, 1], columns[:, 2]
    third = np.where(c < 0, b, c)
    total = np.zeros(len(columns), np.int64)
    for j in range(costs.code.shape[1]):
        x, y, z = (costs.code[v, j].astype(np.int64) for v in (a, b, third))
        at, s = costs.start[j], costs.size[j]
        worst = np.maximum(
            np.maximum(costs.pair[at + x * s + y], costs.pair[at + x * s + z]), costs.pair[at + y * s + z]
        )
        if costs.kind[j] == 2:
            worst = np.where((x != y) & (y != z) & (x != z), 2 * worst, worst)
        total += worst
    return total * np.where(c < 0, 2, 3)


def ordered(columns: np.ndarray) -> np.ndarray:
    """Each column's types in rising order, -1 last."""
    big = np.iinfo(np.int32).max
    out = np.sort(np.where(columns < 0, big, columns), axis=1)
    return np.where(out == big, -1, out).astype(np.int32)


def entries(columns: np.ndarray, types: int, member: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix of the program by columns (starts, rows, values): t equations, then one row per odd set.

    member  uint8[s, t]
    """
    n = len(columns)
    real = columns >= 0
    at = np.broadcast_to(np.arange(n)[:, None], columns.shape)[real]
    place = np.where(real, columns, 0)
    odd = (member[:, place[:, 0]] ^ member[:, place[:, 1]] ^ (member[:, place[:, 2]] & real[:, 2])) if n else None
    row, col = np.nonzero(odd) if odd is not None and len(member) else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    matrix = coo_matrix(
        (np.ones(at.size + col.size), (np.concatenate([columns[real], types + row]), np.concatenate([at, col]))),
        shape=(types + len(member), n),
    ).tocsc()
    return matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32), matrix.data


def program(costs: Costs, columns: np.ndarray, member: np.ndarray) -> Solver:
    """The program over these columns and odd sets, costs in the recoding's unit; variables are at least 0."""
    model = Solver()
    t, s = costs.types, len(member)
    low = np.concatenate([costs.count, np.ones(s)]).astype(float)
    high = np.concatenate([costs.count, np.full(s, highspy.kHighsInf)])
    model.addRows(t + s, low, high, 0, np.zeros(t + s, np.int32), np.empty(0, np.int32), np.empty(0))
    add_columns(model, costs, columns, member)
    return model


def add_columns(model: Solver, costs: Costs, columns: np.ndarray, member: np.ndarray) -> None:
    """Variables for these columns, at least 0."""
    n = len(columns)
    start, row, value = entries(columns, costs.types, member)
    top = np.full(n, highspy.kHighsInf)
    model.addCols(n, charge(costs, columns) / costs.scale, np.zeros(n), top, row.size, start, row, value)


class Relaxation:
    """The linear program over the columns and odd sets found so far.

    Invariants: (1) columns are distinct and ordered; (2) the model's variables are the columns, its rows the t
    equations and the odd sets; (3) price and bonus belong to the last optimal solution x, bonus is not negative.
    """

    def __init__(self, costs: Costs, fine: int, columns: np.ndarray) -> None:
        self.costs, self.fine = costs, fine
        self.columns = np.empty((0, 3), np.int32)
        self.known = np.empty(0, np.int64)
        self.member = np.zeros((0, costs.types), np.uint8)
        self.x = np.empty(0)
        self.price = np.zeros(costs.types, np.int64)
        self.bonus = np.zeros(0, np.int64)
        self.model = program(costs, self.columns, self.member)
        self.model.setOptionValue("dual_feasibility_tolerance", 1e-9)
        self.add(columns)

    def add(self, columns: np.ndarray) -> bool:
        """Add those not there yet; False when all were."""
        columns = ordered(columns)
        t = self.costs.types + 1
        key = (columns[:, 0].astype(np.int64) * t + columns[:, 1]) * t + columns[:, 2] + 1
        key, first = np.unique(key, return_index=True)
        new = ~np.isin(key, self.known)
        if not new.any():
            return False
        columns = columns[first[new]]
        self.known = np.concatenate([self.known, key[new]])
        add_columns(self.model, self.costs, columns, self.member)
        self.columns = np.concatenate([self.columns, columns])
        return True

    def solve(self, deadline: float) -> bool:
        """Solve to optimality; False when time ran out.  Prices are rounded to 1 / (scale * fine)."""
        left = deadline - clock()
        if left <= 0:
            return False
        if left < UNLIMITED:
            self.model.setOptionValue("time_limit", self.model.getRunTime() + left)
        self.model.run()
        if self.model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        solution = self.model.getSolution()
        self.x = np.array(solution.col_value)
        dual = np.rint(np.array(solution.row_dual) * (self.costs.scale * self.fine)).astype(np.int64)
        self.price, self.bonus = dual[: self.costs.types], np.maximum(dual[self.costs.types :], 0)
        return True

    @property
    def value(self) -> float:
        """Objective of the last solution, in the recoding's unit."""
        return float(self.model.getObjectiveValue())

    def cut(self) -> int:
        """Add odd sets whose inequality the last solution breaks; how many.

        Candidates are the components of the columns in use above several thresholds: a heuristic, since nothing but
        the strength of the bound depends on it.
        """
        used = self.x > 1e-6
        found = broken(self.columns[used], self.x[used], self.costs.count)
        if len(found) and len(self.member):
            known = {m.tobytes() for m in self.member}
            found = found[[m.tobytes() not in known for m in found]]
        if not len(found):
            return 0
        for m in found:
            a, b, c = self.columns.T
            odd = np.flatnonzero(m[a] ^ m[b] ^ np.where(c < 0, 0, m[c])).astype(np.int32)
            self.model.addRow(1.0, highspy.kHighsInf, odd.size, odd, np.ones(odd.size))
        self.member = np.concatenate([self.member, found])
        return len(found)


def broken(columns: np.ndarray, x: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Odd sets, uint8[s, t], whose inequality x breaks; columns with x > 0 only."""
    t = count.size
    out: dict[bytes, np.ndarray] = {}
    triple = columns[:, 2] >= 0
    for threshold in THRESHOLDS:
        use = x >= threshold
        a = np.concatenate([columns[use, 0], columns[use & triple, 1]])
        b = np.concatenate([columns[use, 1], columns[use & triple, 2]])
        parts, label = connected_components(coo_matrix((np.ones(a.size), (a, b)), shape=(t, t)), directed=False)
        la, lb = label[columns[:, 0]], label[columns[:, 1]]
        lc = np.where(triple, label[columns[:, 2]], -1)
        inside = np.zeros(parts)
        # a place counts when its label occurs an odd number of times in the column, at its first occurrence
        for mine, counts in (
            (la, (la != lb) ^ (la == lc)),
            (lb, (la != lb) & (lb != lc)),
            (lc, triple & (la != lc) & (lb != lc)),
        ):
            inside += np.bincount(mine[counts], weights=x[counts], minlength=parts)
        rows = np.bincount(label, weights=count, minlength=parts).astype(np.int64)
        for part in np.flatnonzero((rows % 2 == 1) & (inside < 1 - 1e-4)):
            m = (label == part).astype(np.uint8)
            out[m.tobytes()] = m
    return np.array(list(out.values()), np.uint8).reshape(-1, t)
