"""A cutting stock program for one column published as sets: values are cut into pieces, and pieces form groups.

A group of n rows and m values loses n (m - 1) steps, for any values. So an answer is how often values of c rows are cut
in each way, and how often pieces of each size meet in a group: a cutting stock problem (Gilmore, Gomory, "A linear
programming approach to the cutting-stock problem", 1961) with cuts on both sides. The program has a line for each
number of rows of a value, and one for each size of a piece, for any number of values.

A group of 2k rows or more splits without loss, so pieces that meet have at most 2k - 2 rows (proof in docs/boxes.md).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.model.histogram import Partition, distribute
from shoal.model.recoding import Sets
from shoal.model.task import Task
from shoal.problems.tables.groups import least_rows

if TYPE_CHECKING:
    from shoal.problems.programs import Solver

LARGEST = 40  # limit of the rows of the least group, because rounds take longer with it
ROUNDS = 400  # limit of the rounds of column generation; each proves a bound
TINY = 1e-7
BEYOND = 0.5  # values; columns for the integer program lose at most so much per row beyond their price
NODES = {"fast": 20, "balanced": 200, "thorough": 5_000}  # limit of the integer program's nodes
GAP = 1e-4  # relative gap at which it ends
PLENTY = 4  # times k: a value with so many rows is assumed to give any number of pieces
GROUP = -1


class Column(NamedTuple):
    """A column of the program, by the sizes of its pieces: the pieces of a group, or those that are cut from a value.

    of      number of rows of the value; 0 for a value with PLENTY times k rows; GROUP for a group
    pieces  sizes of at most 2k - 2; the rest of a value, no row or at least k, is a group alone
    """

    of: int
    pieces: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """The linear program and the bound that it proves.

    steps    lower bound on the loss of every partition into groups of at least k rows, in rows times further values
    columns  those of ``master``, the solver
    """

    steps: int
    columns: list[Column]
    master: Solver

    @classmethod
    def of(cls, rows: np.ndarray, k: int) -> Program:
        """The program of values with so many rows int64[v], by column generation.

        O(k^3) for each round, and a linear program with up to 6k lines: sizes of pieces, and numbers of rows below 4k.
        """
        from shoal.problems.programs import Solver

        many = Counter(rows[rows < PLENTY * k].tolist())
        kinds, plenty = sorted(many), int(rows[rows >= PLENTY * k].sum())
        line, size = {c: at for at, c in enumerate(kinds)}, np.arange(1, 2 * k - 1)
        columns: list[Column] = []
        new, known, best, master = _first(kinds, k, plenty > 0), set[Column](), 0.0, Solver()
        price = np.zeros(size.size)
        sides = np.array([*(float(many[c]) for c in kinds), *np.zeros(size.size)])
        master.add_rows(sides, sides)
        for _ in range(ROUNDS):
            _add(master, new, line)
            columns += new
            known.update(new)
            if not new or not master.solved():
                break
            price = -master.duals[len(kinds) :]
            proved, found = worth(price, many, plenty, k)
            best = max(best, proved)
            new = [column for column in found if column not in known]
        new = [column for column in most_violated_groups(price, k, BEYOND)[1] if column not in known]
        _add(master, new, line)
        return cls(max(math.ceil(best * (1 - 1e-9) - 1e-6), 0), columns + new, master)

    def used(self, nodes: int) -> np.ndarray | None:
        """How often each column occurs in an integer solution, int64[c]; None if the tree ends without one."""
        self.master.make_whole()
        self.master.setOptionValue("mip_rel_gap", GAP)
        self.master.setOptionValue("mip_max_nodes", nodes)
        self.master.run()
        return np.rint(self.master.x).astype(np.int64) if self.master.feasible else None


def worth(price: np.ndarray, many: dict[int, int], plenty: int, k: int) -> tuple[float, list[Column]]:
    """The bound in steps that any prices of pieces prove, and the columns of negative reduced cost under these prices.

    price   float64[2k - 2] of a piece of each size;  many  number of values with each number of rows
    plenty  rows of the other values
    """
    excess, dear = most_violated_groups(price, k)
    size, kinds = np.arange(1, 2 * k - 1), sorted(many)
    paid = price - excess * size / k  # so that no group exceeds its loss
    least, cheap = cheapest_cuts(paid, kinds, k)
    given = plenty * min(0.0, float((paid / size).min()))
    return sum(many[c] * float(w) for c, w in zip(kinds, least, strict=True)) + given, [*cheap, *dear]


def _first(kinds: list[int], k: int, plenty: bool) -> list[Column]:
    """Columns with which every table has a solution; they include all pieces of one row."""
    most = 2 * k - 2
    out = {Column(0, (e,)) for e in range(1, most + 1) if plenty}
    for c in kinds:
        out |= {Column(c, (1,) * c), *(Column(c, some) for some in ((c,), ()) if (c >= k if not some else c <= most))}
        out |= {Column(c, (c - e, e)) for e in range(1, c // 2 + 1) if c - e <= most}
        out |= {Column(c, (e,)) for e in range(1, min(c - k, most) + 1)}
    out |= {Column(GROUP, (e, 1)) for e in range(k, most + 1)}
    for e in range(1, k):
        out |= {Column(GROUP, (e,) * -(-k // e)), Column(GROUP, (e, *(1,) * (k - e)))}
    return sorted(out | {Column(GROUP, (1,) * n) for n in range(k, 2 * k)})


def _add(master: Solver, new: list[Column], line: dict[int, int]) -> None:
    """Add columns: a line for their value, and one for each size of a piece, which a cut gives or a group uses."""
    rows, values, cost, before = [], [], [], len(line) - 1
    for of, pieces in new:
        held = Counter(pieces)
        rows.append(np.array([*([line[of]] if of > 0 else []), *(before + e for e in held)], np.int32))
        values += [*([1.0] if of > 0 else []), *(-float(n) if of == GROUP else float(n) for n in held.values())]
        cost.append(float(sum(pieces) * (len(pieces) - 1)) if of == GROUP else 0.0)
    if new:
        master.add_columns(np.array(cost), np.full(len(new), np.inf), rows, np.array(values))


def most_violated_groups(price: np.ndarray, k: int, beyond: float = -TINY) -> tuple[float, list[Column]]:
    """The most by which the prices of a group's pieces exceed its loss, and the groups that exceed it.

    price  float64[2k - 2] of a piece of each size
    beyond  limit of a group's loss beyond its price, per row; for each number of rows and pieces, the best group counts
    """
    sizes, most = np.arange(1, 2 * k - 1), 2 * k
    place = np.arange(most)[:, None] - sizes
    best = np.full(most, -np.inf)  # of so many rows, in as many pieces as there are so far
    best[0] = 0.0
    taken, excess, out = [], 0.0, []
    for pieces in range(1, most):
        sums = np.where(place >= 0, best[np.maximum(place, 0)] + price, -np.inf)
        taken.append(sums.argmax(axis=1))
        best = sums.max(axis=1)
        over = best - np.arange(most) * (pieces - 1.0)
        excess = max(excess, float(over[k:].max()))
        for n in k + np.flatnonzero(over[k:] > -beyond * np.arange(k, most)):
            group, left = [], int(n)
            for step in reversed(taken):
                group.append(int(step[left]) + 1)
                left -= group[-1]
            out.append(Column(GROUP, tuple(sorted(group, reverse=True))))
    return excess, out


def cheapest_cuts(price: np.ndarray, kinds: list[int], k: int) -> tuple[np.ndarray, list[Column]]:
    """The least cost of the pieces of a value with each number of rows, float64[kinds], and these pieces."""
    most = max(kinds, default=0)
    least, taken = np.zeros(most + 1), np.zeros(most + 1, np.int64)
    for c in range(1, most + 1):
        upto = min(c, price.size)
        sums = price[:upto] + least[c - upto : c][::-1]
        at = int(sums.argmin())
        whole = c >= k and sums[at] >= 0.0  # a group alone
        least[c], taken[c] = (0.0, 0) if whole else (sums[at], at + 1)
    out = []
    for c in kinds:
        cut, left = [], c
        while taken[left]:
            cut.append(int(taken[left]))
            left -= cut[-1]
        out.append(Column(c, tuple(sorted(cut, reverse=True))))
    return least[np.array(kinds, np.int64)], out


@dataclass(frozen=True, eq=False)
class ValueCuts:
    """The cutting stock program of a table.

    rows   int64[v]  rows of each value;  of  int64[m]  the value of each cell;  k  rows of the least group
    step   loss of a row for one further value, in the recoding's unit
    """

    rows: np.ndarray
    of: np.ndarray
    k: int
    step: float
    program: Program

    @classmethod
    def of_task(cls, task: Task) -> ValueCuts | None:
        """The program of a table in which one column varies and is published as sets; None for other tables.

        It ignores sensitive values, so its bound is valid under every model.
        """
        h, columns = task.histogram, task.recoding.columns
        vary = [j for j in range(len(columns)) if np.ptp(h.quasi[:, j]) > 0]
        if len(vary) != 1 or not isinstance(columns[vary[0]], Sets) or task.part or task.recoding.alone(h):
            return None
        column, k = columns[vary[0]], least_rows(h, task.requirement)
        if not 1 < k <= min(LARGEST, h.rows):
            return None
        of = np.unique(h.quasi[:, vary[0]], return_inverse=True)[1].reshape(-1)
        rows = np.bincount(of, weights=h.count).astype(np.int64)
        step = float(column.steps()[0]) * column.weight / (h.rows * len(columns))
        return cls(rows, of, k, step, Program.of(rows, k))

    @property
    def bound(self) -> float:
        """The lower bound on the loss of every partition, in the recoding's unit."""
        return self.program.steps * self.step

    def partition(self, task: Task) -> Partition | None:
        """The partition of an integer solution, for k alone; None if the integer program's tree ends without one."""
        used = self.program.used(NODES.get(task.effort.name, NODES["thorough"]))
        if used is None:
            return None
        left, cut = self.rows.copy(), [np.zeros(0, np.int64) for _ in range(2 * self.k - 1)]
        free = {c: np.flatnonzero(left == c) for c in np.unique(left).tolist()}
        plenty = np.flatnonzero(left >= PLENTY * self.k)
        columns = sorted((column, int(many)) for column, many in zip(self.program.columns, used, strict=True) if many)
        for (of, pieces), many in columns:
            if of == GROUP:
                continue
            if of:
                some, free[of] = np.split(free[of], [many])
            else:
                some = self._given(left, plenty, pieces[0], many)
            if some.size < many:
                return None
            for e in pieces:
                cut[e] = np.concatenate([cut[e], some])
                left[some] -= e if of else 0
        parts, made = [], 0
        for (of, pieces), many in columns:
            for e in pieces if of == GROUP else ():
                some, cut[e] = np.split(cut[e], [many])
                parts.append((some, made + np.arange(many), np.full(many, e)))
            made += many
        alone = np.flatnonzero(left)
        parts.append((alone, made + np.arange(alone.size), left[alone]))
        value, group, count = (np.concatenate(part) for part in zip(*parts, strict=True))
        return distribute(task.histogram.count, self.of, value, group, count)

    def _given(self, left: np.ndarray, plenty: np.ndarray, e: int, many: int) -> np.ndarray:
        """Values with plenty of rows that give ``many`` pieces of e rows, once for each piece; lowers ``left``."""
        spare = np.maximum((left[plenty] - self.k) // e, 0)
        gives = np.diff(np.minimum(np.cumsum([0, *spare]), many))
        left[plenty] -= gives * e
        return np.repeat(plenty, gives)
