"""Least-loss partition of rows into pairs and triples: column generation, odd sets, and fixing (docs/exact.md).

Variables count how often a pair or a triple of types is used, and every type is an equation. The linear program is
solved over few columns, and a scan that stops early prices all O(t^3) others. Odd sets raise its value. Its dual
prices, rounded to a grid, are checked against every pair and triple in exact integers, so the bound does not depend on
floating point. Let L be that bound and U the cost of a known partition. A partition that costs less than U has no
column with a reduced cost above U - 1 - L, because its cost is at least L plus the reduced costs of its columns, and
none is negative. So an integer program over the columns that remain decides over all of them.

The inequalities of odd sets: a set of types with an odd number of rows has no partition into groups that all contain an
even number of its rows, so every partition uses at least one pair or triple with an odd number of rows inside:

    sum of x_e over columns e with |e in S| odd  >=  1        for every S with an odd number of rows.

This is the blossom inequality of matching for triples (a triple with two rows inside does not count). Without it, three
halves of pairs are a solution for three equally distant rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from shoal.clock import clock
from shoal.problems.programs import Solver
from shoal.problems.tables.losses import Costs

UNLIMITED = float("inf")
THRESHOLDS = (1e-6, 0.15, 0.26, 0.34, 0.51, 0.7)


def charge(costs: Costs, columns: np.ndarray) -> np.ndarray:
    """int64[c]: cost of each pair or triple, summed over its rows. columns int32[c, 3], -1 as third of a pair."""
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
    """The matrix of the program by columns (starts, rows, values): t equations, then one row for each odd set.

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
    s = len(member)
    model.add_rows(np.append(costs.count, np.ones(s)), np.append(costs.count, np.full(s, np.inf)))
    add_columns(model, costs, columns, member)
    return model


def add_columns(model: Solver, costs: Costs, columns: np.ndarray, member: np.ndarray) -> None:
    """Variables for these columns, at least 0."""
    n = len(columns)
    start, row, value = entries(columns, costs.types, member)
    top = np.full(n, np.inf)
    model.addCols(n, charge(costs, columns) / costs.scale, np.zeros(n), top, row.size, start, row, value)


class Relaxation:
    """The linear program over the columns and odd sets found so far.

    Invariants: (1) columns are distinct and ordered; (2) the model's variables are the columns, its rows the t
    equations and the odd sets; (3) price and bonus belong to the last optimal solution x, and bonus is not negative.
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
        """Add new columns; False if all are known."""
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
        """Solve to optimality; False if the time is over. Prices are rounded to 1 / (scale * fine)."""
        left = deadline - clock()
        if left <= 0:
            return False
        if left < UNLIMITED:
            self.model.limit(left)
        if not self.model.solved():
            return False
        self.x = self.model.x
        dual = np.rint(self.model.duals * (self.costs.scale * self.fine)).astype(np.int64)
        self.price, self.bonus = dual[: self.costs.types], np.maximum(dual[self.costs.types :], 0)
        return True

    @property
    def value(self) -> float:
        """The objective of the last solution, in the recoding's unit."""
        return float(self.model.getObjectiveValue())

    def cut(self) -> int:
        """Add odd sets whose inequality the last solution violates; their number.

        Candidates are the components of the columns in use above several thresholds. This is a heuristic: only the
        strength of the bound depends on it.
        """
        used = self.x > 1e-6
        found = broken(self.columns[used], self.x[used], self.costs.count)
        if len(found) and len(self.member):
            known = {m.tobytes() for m in self.member}
            found = found[[m.tobytes() not in known for m in found]]
        if not len(found):
            return 0
        a, b, c = self.columns.T
        odd = [np.flatnonzero(m[a] ^ m[b] ^ np.where(c < 0, 0, m[c])) for m in found]
        self.model.add_rows(np.ones(len(odd)), np.full(len(odd), np.inf), odd)
        self.member = np.concatenate([self.member, found])
        return len(found)


def broken(columns: np.ndarray, x: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Odd sets, uint8[s, t], whose inequality x violates; x has only the columns with x > 0."""
    t = count.size
    out: dict[bytes, np.ndarray] = {}
    triple = columns[:, 2] >= 0
    # Candidates are components of the columns above a threshold: odd ones with a sum below 1 violate their
    # inequality.
    for threshold in THRESHOLDS:
        use = x >= threshold
        a = np.concatenate([columns[use, 0], columns[use & triple, 1]])
        b = np.concatenate([columns[use, 1], columns[use & triple, 2]])
        parts, label = connected_components(coo_matrix((np.ones(a.size), (a, b)), shape=(t, t)), directed=False)
        la, lb = label[columns[:, 0]], label[columns[:, 1]]
        lc = np.where(triple, label[columns[:, 2]], -1)
        inside = np.zeros(parts)
        # an entry counts if it is the first of its label, which occurs an odd number of times in the column
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


FINE = 2**20  # prices are rounded to this fraction of the smallest loss
PER_TYPE = 4  # pairs and triples added for every type and round
FIRST = 65_536  # first size of the array of reported columns, which grows eightfold
MOST = 2_000_000  # up to this many
ROUNDS = 60  # rounds of odd sets
HOPS = 3  # size of the neighborhood of fractional columns, in steps
PIECE = 1500  # types placed again at once
MEND = 20.0  # seconds for each piece

Uses = tuple[np.ndarray, np.ndarray]


@dataclass(eq=False)
class PairsAndTriples:
    """A partition into pairs and triples of types, and its lower bound.

    columns  int32[c, 3]   types in rising order, -1 as third of a pair
    uses     int64[c]      how often each is used, at least 1
    upper    its cost; lower: a bound on the cost of every partition (integers, in 1 / costs.scale)
    stopped  None, or the limit that ended the search before upper = lower: "seconds" or "memory"
    facts    figures for the certificate's details
    """

    columns: np.ndarray
    uses: np.ndarray
    upper: int
    lower: int
    stopped: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def solve(
    costs: Costs, seconds: float = UNLIMITED, progress: Callable[[str, float | None], None] = lambda _w, _s: None
) -> PairsAndTriples:
    """The cheapest partition of at least two rows into pairs and triples, or the best found with its bound.

    Every round solves a linear program of t equations and scans O(t^2 d) pairs; then at most three integer programs.
    """
    deadline = clock() + seconds
    search = _SetSearch(costs, deadline, progress)
    search.bound()
    best = search.rounded()
    upper = int(charge(costs, best[0]) @ best[1])
    stopped = search.stopped
    step = math.gcd(*np.unique(costs.pair).tolist()) or 1
    whole = -(-max(search.lower, 0) // FINE)
    whole = -(-whole // step) * step
    # Widen the window of reduced costs until nothing outside it can be part of a better partition.
    window = FINE * step // 16
    if upper > whole and stopped is None and (columns := search.within(window)) is not None:
        best, upper = search.mended(columns, best, upper, whole, step)
    while upper > whole and stopped is None:
        needed = FINE * (upper - step) - search.lower
        window = min(window, needed)
        columns = search.within(window)
        if columns is None:
            stopped = "memory"
            break
        progress(f"deciding over {len(columns):,} columns", None)
        found, bound, stopped = integer(costs, columns, search.master.member, best, step, whole, deadline)
        if found is not None and (cost := int(charge(costs, found[0]) @ found[1])) < upper:
            best, upper = found, cost
        needed = FINE * (upper - step) - search.lower
        beyond = -(-(search.lower + window + 1) // FINE)  # least cost with a column outside the window
        beyond = -(-beyond // step) * step
        whole = max(whole, min(bound, upper, beyond))
        if window >= needed:
            break
        window = min(needed, max(FINE * step, 2 * window))
    if upper == whole:
        stopped = None
    return PairsAndTriples(best[0], best[1], upper, whole, stopped, search.facts)


class _SetSearch:
    """The relaxation with its best bound: lower is in 1 / (scale * FINE), proved by (price, bonus, member)."""

    def __init__(self, costs: Costs, deadline: float, progress: Callable[[str, float | None], None]) -> None:
        self.costs, self.deadline, self.progress = costs, deadline, progress
        columns, closest = first_columns(costs)
        self.master = Relaxation(costs, FINE, columns)
        self.price = FINE * closest  # the loss of a row with the nearest other row
        self.lower = int(self.price @ costs.count)
        self.bonus = np.zeros(0, np.int64)
        self.stopped: str | None = None
        self.facts: dict[str, Any] = {}

    def bound(self) -> None:
        """Add columns and odd sets until neither changes the solution."""
        master, rounds, cutting = self.master, 0, 0
        # Prices are shifted until no column has a negative reduced cost, which proves a bound. Missing columns are
        # added first, and odd sets when there are none.
        while True:
            if not master.solve(self.deadline):
                self.stopped = "seconds"
                break
            rounds += 1
            self.progress(f"bounding, round {rounds}: {len(master.columns):,} columns", None)
            columns, least = priced_sets(self.costs, master.price, master.bonus, master.member, 0, PER_TYPE)
            shift = max(0, -(int(least[0]) // 2), -(int(least[1]) // 3))
            proved = int(master.price @ self.costs.count) + int(master.bonus.sum()) - shift * self.costs.rows
            if proved > self.lower:
                self.lower, self.price, self.bonus = proved, master.price - shift, master.bonus
            if len(columns) and shift * self.costs.rows >= FINE // 4 and master.add(columns):
                continue
            if cutting == 0:
                self.facts["linear_program"] = round(master.value, 6)
            if cutting == ROUNDS or not master.cut():
                break
            cutting += 1
        self.facts |= {"rounds": rounds, "columns": len(master.columns), "odd_sets": len(master.member)}
        if master.x.size:
            self.facts["with_odd_sets"] = round(master.value, 6)

    def within(self, window: int) -> np.ndarray | None:
        """All columns of reduced cost at most ``window``; None if there are too many."""
        member = self.master.member[: self.bonus.size]
        columns, _ = priced_sets(self.costs, self.price, self.bonus, member, window + 1, 0)
        self.facts["columns_within_the_gap"] = -1 if columns is None else len(columns)
        return columns

    def mended(self, columns: np.ndarray, best: Uses, upper: int, whole: int, step: int) -> tuple[Uses, int]:
        """Improve a partition in growing neighborhoods where the relaxation is not integral: (partition, its cost).

        columns  the candidates. A step frees the types that share a candidate with a free type. If many types are free,
                 they are placed again piece by piece, each with near types
        """
        costs = self.costs
        split = np.abs(self.master.x - np.rint(self.master.x)) > 1e-6
        free = np.zeros(costs.types + 1, bool)  # the last entry is for the -1 of pairs
        free[self.master.columns[split]] = True
        near = _near_order(columns, costs.types)
        # Each step places the free types again, piece by piece. In every second step the pieces are shifted by half, so
        # that their borders differ.
        for hop in range(HOPS):
            free[-1] = False
            order = near[free[near]]
            shift = PIECE // 2 * (hop % 2)
            pieces = np.split(order, np.arange(PIECE - shift, max(order.size, 1), PIECE))
            for piece in pieces:
                best = self._again(best, np.bincount(piece, minlength=free.size) > 0, columns, step)
                upper = int(charge(costs, best[0]) @ best[1])
                if upper <= whole or clock() > self.deadline:
                    return best, upper
                self.progress(f"mending, {upper - whole:,} above the bound", None)
            if free[:-1].all():
                break
            if order.size <= PIECE:
                free[best[0][free[best[0]].any(axis=1)]] = True
                free[-1] = False
                free[columns[free[columns].any(axis=1)]] = True
        return best, upper

    def _again(self, best: Uses, free: np.ndarray, columns: np.ndarray, step: int) -> Uses:
        """Place again the rows that share a pair or triple with a free type; all others stay."""
        costs = self.costs
        loose = free[best[0]].any(axis=1)
        left = np.zeros(costs.types + 1, np.int64)
        for place in range(3):
            np.add.at(left, best[0][loose, place], best[1][loose])
        left[-1] = 1
        inside = columns[(left[columns] > 0).all(axis=1)]
        if not loose.any() or not len(inside):
            return best
        part, small = (best[0][loose], best[1][loose]), costs.with_count(left[:-1])
        limit = min(self.deadline, clock() + MEND)
        found, _, _ = integer(small, inside, self.master.member[:0], part, step, 0, limit)
        if found is None:
            return best
        both = np.concatenate([best[0][~loose], found[0]])
        uses = np.concatenate([best[1][~loose], found[1]])
        distinct, which = np.unique(both, axis=0, return_inverse=True)
        return distinct, np.bincount(which.reshape(-1), weights=uses).astype(np.int64)

    def rounded(self) -> Uses:
        """A partition near the relaxation's solution: its largest variables first, then the rest in order."""
        costs, master = self.costs, self.master
        left = costs.count.copy()
        chosen: list[tuple[int, int, int]] = []
        x = master.x
        if not x.size:  # time ran out before the first solution: cheap columns first
            x = 1 / (1 + charge(costs, master.columns) / np.where(master.columns[:, 2] < 0, 2, 3))
        for e in np.argsort(-x, kind="stable"):
            if x[e] < 1e-6:
                break
            column = master.columns[e][master.columns[e] >= 0]
            for _ in range(max(1, int(x[e] + 1e-6))):
                np.subtract.at(left, column, 1)
                if (left[column] < 0).any():
                    np.add.at(left, column, 1)
                    break
                chosen.append((int(column[0]), int(column[1]), int(column[2]) if column.size == 3 else -1))
        rest = np.repeat(np.arange(costs.types), left).tolist()
        rest.sort(key=lambda v: costs.code[v].tolist())
        if len(rest) % 2:
            single = rest.pop(len(rest) // 2)
            pairs = [c for c in chosen if c[2] < 0]
            if pairs:
                options = np.array([(a, b, single) for a, b, _ in pairs], np.int32)
                gain = charge(costs, options) - charge(costs, np.array(pairs, np.int32))
                at = int(gain.argmin())
                chosen.remove(pairs[at])
                chosen.append((*pairs[at][:2], single))
            elif rest:
                chosen.append((rest.pop(), rest.pop(), single))
            else:
                a, b, c = chosen.pop()
                chosen += [(a, b, -1), (c, single, -1)]
        chosen += [(a, b, -1) for a, b in zip(rest[::2], rest[1::2], strict=True)]
        columns, uses = np.unique(ordered(np.array(chosen, np.int32)), axis=0, return_counts=True)
        return columns.astype(np.int32), uses.astype(np.int64)


def first_columns(costs: Costs) -> tuple[np.ndarray, np.ndarray]:
    """Pairs and triples of near types, and others so that they contain a partition.

    Returns columns int32[c, 3], and int64[t]: loss of a row of each type together with the nearest other row.
    """
    from shoal.kernels.tables.multipliers import nearest

    t, m = costs.types, min(6, max(costs.types - 1, 1))
    index, distance = np.full((t, m), -1, np.int32), np.zeros((t, m), np.int64)
    nearest(costs.in_kernels(), index, distance)
    own = np.arange(t, dtype=np.int32)
    none = np.full(t, -1, np.int32)
    parts = [np.column_stack([own, own, none])[costs.count >= 2], np.column_stack([own, own, own])[costs.count >= 3]]
    for x in range(m):
        there = index[:, x] >= 0
        parts.append(np.column_stack([own, index[:, x], none])[there])
        parts.append(np.column_stack([own, own, index[:, x]])[there & (costs.count >= 2)])
        later = range(x + 1, min(m, 3))
        parts += [np.column_stack([own, index[:, x], index[:, y]])[index[:, y] >= 0] for y in later]
    row = np.repeat(own, costs.count)
    parts.append(np.column_stack([row[:-1], row[1:], np.full(row.size - 1, -1)]))
    if row.size > 2:
        parts.append(row[None, -3:])
    pure = charge(costs, np.column_stack([own, own, none])) // 2
    closest = np.where((costs.count >= 2) | (index[:, 0] < 0), pure, distance[:, 0])
    return np.concatenate(parts).astype(np.int32), closest


def _near_order(columns: np.ndarray, types: int) -> np.ndarray:
    """All types, ordered so that types that share columns are close to each other."""
    triple = columns[:, 2] >= 0
    a = np.concatenate([columns[:, 0], columns[triple, 1]])
    b = np.concatenate([columns[:, 1], columns[triple, 2]])
    graph = coo_matrix((np.ones(a.size), (a, b)), shape=(types, types)).tocsr()
    return reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True).astype(np.int64)


def priced_sets(
    costs: Costs, price: np.ndarray, bonus: np.ndarray, member: np.ndarray, under: int, least: int
) -> tuple[Any, np.ndarray]:
    """Columns whose reduced cost is below ``under``, and the least reduced costs; None if there are too many."""
    from shoal.kernels.tables.multipliers import ColumnPrices
    from shoal.kernels.tables.multipliers import price as scan

    reduced, types = np.zeros(2, np.int64), costs.in_kernels()
    most = 2 * least * costs.types if least else FIRST
    of_type, of_set = np.nonzero(member.T)
    start = np.searchsorted(of_type, np.arange(costs.types + 1)).astype(np.int64)
    prices = ColumnPrices(FINE, price, start, of_set.astype(np.int64), np.ascontiguousarray(member), bonus)
    while True:
        out = np.empty((most, 3), np.int32)
        found = scan(types, prices, under, least, out, reduced)
        if found >= 0:
            return out[:found], reduced
        if most >= MOST:
            return None, reduced
        most *= 8


def integer(
    costs: Costs, columns: np.ndarray, member: np.ndarray, best: Uses, step: int, lower: int, deadline: float
) -> tuple[Uses | None, int, str | None]:
    """Least-cost partition by these columns and those of ``best``: (solution, its lower bound, limit reached)."""
    columns = np.unique(np.concatenate([columns, best[0]]), axis=0)
    model = program(costs, columns, member)
    n = len(columns)
    model.make_whole()
    model.setOptionValue("mip_abs_gap", 0.5 * step / costs.scale)
    if deadline - clock() < UNLIMITED:
        model.limit(max(0.1, deadline - clock()))
    held = {tuple(c): u for c, u in zip(best[0].tolist(), best[1].tolist(), strict=True)}
    model.start_from([float(held.get(tuple(c), 0)) for c in columns.tolist()])
    ended = None if model.solved() else "seconds"
    bound = lower
    dual = model.getInfo().mip_dual_bound
    if math.isfinite(dual):
        bound = max(lower, math.ceil((dual * costs.scale - 1e-4) / step) * step)
    x = model.x
    uses = np.rint(x).astype(np.int64)
    covered = np.zeros(costs.types + 1, np.int64)
    if x.size == n:
        for place in range(3):
            np.add.at(covered, columns[:, place], uses)
    if (covered[:-1] != costs.count).any() or (uses < 0).any():
        return None, bound, ended or "seconds"
    return (columns[uses > 0], uses[uses > 0]), bound, ended
