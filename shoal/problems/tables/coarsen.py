"""Coarsening followed by suppression: each column is published at one level, with stars where that isn't enough.

Xiao, Yi, Tao (2010), section 5.6, proposes this and leaves open how much to coarsen: fine levels cost many stars, and
coarse levels lose information in cells without stars. Here the levels are searched by the total loss, and every choice
examined is a point of the curve of stars against width. Such a release looks like microdata with missing entries.

For a choice of levels, a lower bound of the loss is computed first: the level's loss for every value, and one star each
for as many rows as no group of equal tuples can contain. Only if that is below the best so far, the cascade computes
the actual loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram, Partition, merged
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.auto import auto
from shoal.problems.tables.bounds import certified
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.losses import Lattice, least_sum
from shoal.problems.tables.methods import global_recoding
from shoal.problems.tables.search.cascade import rank, start
from shoal.problems.tables.three_phase import residue

LOOKS = {"fast": 12, "balanced": 60, "thorough": 400, "seconds": 10**9}
# number of choices of levels that are also solved by the default method
FINALS = {"fast": 1, "balanced": 2, "thorough": 4}
FINAL = 30.0  # seconds for each further choice
SHARE = 0.4  # share of the seconds for the search of the levels
SOLVED = 0.8  # share of the remaining seconds for the final choice; the rest is for the bounds


def coarsen(task: Task) -> Grouping:
    """Levels of all columns and a partition; groups show their column's level, or a star if rows differ there.

    ``details`` has the levels, ``uniform_cost`` (the loss as published), ``levels_bound`` (a lower bound of the loss at
    these levels), ``curve``, and the number of choices examined. The certificate's own cost is that of the groups'
    common ancestors, which is never more; ``published`` has what the groups show.

    The curve has a point for every choice of levels that was solved and isn't dominated in stars and width: {"levels",
    "stars", "width", "loss"}, where width is the mean loss of a value without a star; in order of increasing stars.

    The effort bounds the number of choices examined, each a cascade over 2^d nodes.
    """
    for name, column in zip(task.histogram.quasi_names, task.recoding.columns, strict=True):
        if not isinstance(column, Levels):
            raise PolicyError(
                f"coarsening puts every column at one level of a hierarchy, and {name!r} is published as a "
                f"{column.kind}; give it a hierarchy, or leave coarsen out"
            )
    if not task.histogram.cells or not task.recoding.columns:
        everybody = np.zeros(task.histogram.cells, np.int64)
        return certified(task, Partition.of(np.arange(everybody.size), everybody, task.histogram.count), "coarsen")
    walk = _LevelSearch(task)
    walk.run()
    chosen, partition, bound = walk.solve()
    facts = {
        "levels": dict(zip(task.histogram.quasi_names, chosen.levels, strict=True)),
        "uniform_cost": chosen.loss,
        "levels_bound": bound,
        "curve": [p.as_dict(task.histogram) for p in curve(walk.seen.values(), chosen)],
        "levels_looked_at": len(walk.seen),
    }
    return certified(task, partition, "coarsen", details=facts)


@dataclass(frozen=True, eq=False)
class GeneralizedTable:
    """A table in which every column is published at one level or as a star.

    task     the same request for the coarser table
    of_cell  int64[m]: the coarser table's cell of every cell
    whole    the original table
    """

    task: Task
    of_cell: np.ndarray
    whole: Histogram

    @classmethod
    def of(cls, task: Task, levels: Sequence[int]) -> GeneralizedTable:
        """The table at these levels. O(m log m)."""
        h = task.histogram
        codes, columns = [], []
        for j, (column, level) in enumerate(zip(task.recoding.hierarchies or (), levels, strict=True)):
            _, representative, number = np.unique(column.node[level], return_index=True, return_inverse=True)
            codes.append(number.reshape(-1)[h.quasi[:, j]])
            columns.append(_column(column, level, representative))
        quasi = np.stack(codes, axis=1)
        small, _, of_cell = merged(h, quasi, [c.size for c in columns])
        return cls(replace(task, histogram=small, recoding=Recoding(tuple(columns), task.recoding.unit)), of_cell, h)

    def back(self, partition: Partition) -> Partition:
        """Map a partition of the coarser table to the original table; merged cells are distributed in order.

        O(m log m + p log p) for p triples.
        """
        cells = np.argsort(self.of_cell, kind="stable")
        triples = np.argsort(partition.cell, kind="stable")
        ends, cuts = np.cumsum(self.whole.count[cells]), np.cumsum(partition.count[triples])
        upto = np.unique(np.concatenate([ends, cuts]))
        upto = upto[upto > 0]
        return Partition.of(
            cells[np.searchsorted(ends, upto)],
            partition.group[triples[np.searchsorted(cuts, upto)]],
            np.diff(upto, prepend=0),
        )


def _column(column: Levels, level: int, representative: np.ndarray) -> Levels:
    """Classes of a level, or a star. If the star is forbidden, or is the level itself, the classes alone."""
    top = column.levels - 1
    node, loss = [np.arange(representative.size)], [column.loss[level][representative]]
    if level < top:
        node.append(np.unique(column.node[top][representative], return_inverse=True)[1].reshape(-1))
        loss.append(column.loss[top][representative])
    return replace(
        column,
        size=representative.size,
        node=np.stack(node).astype(np.int32),
        loss=np.stack(loss),
        ceiling=int(level < top <= column.ceiling),
    )


@dataclass(frozen=True)
class LevelChoice:
    """The loss of a choice of levels.

    over   rows above a column's ceiling
    loss   in the recoding's unit; stars: values at the top; width: mean loss of a value below it
    """

    levels: tuple[int, ...]
    over: int
    loss: float
    stars: int
    width: float

    @property
    def order(self) -> tuple[int, float]:
        return self.over, self.loss

    def as_dict(self, histogram: Histogram) -> dict[str, Any]:
        """Plain values, for a certificate."""
        levels = dict(zip(histogram.quasi_names, self.levels, strict=True))
        return {"levels": levels, "stars": self.stars, "width": round(self.width, 12), "loss": self.loss}


def measured(task: Task, coarse: GeneralizedTable, levels: tuple[int, ...], partition: Partition) -> LevelChoice:
    """A partition of a coarser table as a point of the curve."""
    shows = coarse.task.recoding.publish(coarse.task.histogram, partition)
    losses = coarse.task.recoding.losses(coarse.task.histogram, partition, shows)
    whole = [c.levels > 1 and x == c.levels - 1 for c, x in zip(task.recoding.hierarchies or (), levels, strict=True)]
    starred = (shows.first > 0) | np.array(whole)
    weight = np.array([c.weight for c in task.recoding.columns])
    rows = partition.sizes[:, None]
    shown = int((~starred * rows).sum())
    width = float((np.where(starred, 0.0, losses / weight) * rows).sum()) / max(shown, 1)
    over, loss = rank(coarse.task, partition)
    return LevelChoice(levels, over, loss, int((starred * rows).sum()), width)


def curve(points: Any, chosen: LevelChoice) -> list[LevelChoice]:
    """The points that aren't dominated in stars and width, in order of increasing stars, and always the chosen one."""
    out: list[LevelChoice] = []
    held = [p for p in points if not p.over and p.levels != chosen.levels]
    for p in sorted([chosen, *held], key=lambda p: (p.stars, p.width)):
        if p is chosen or not out or p.width < min(x.width for x in out):
            out.append(p)
    return out


class _LevelSearch:
    """The search of the levels.

    seen   solved choices, by levels
    cost   float64[h] per column: the loss of the whole table at each level
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.top = tuple(c.ceiling for c in task.recoding.hierarchies or ())
        self.seen: dict[tuple[int, ...], LevelChoice] = {}
        self.lowest: dict[tuple[int, ...], float] = {}
        seconds = task.effort.seconds
        self.until = None if seconds is None else clock() + SHARE * (task.started + seconds - clock())

    @property
    def best(self) -> LevelChoice:
        return min(self.seen.values(), key=lambda p: p.order)

    def done(self) -> bool:
        """Whether the effort allows no further choice."""
        late = self.until is not None and clock() > self.until
        return bool(self.seen) and (late or len(self.seen) >= LOOKS[self.task.effort.name])

    def run(self) -> None:
        """Search a chain from the values to the stars, the best single levels, then around the best of these."""
        self.look(self.top)  # feasible under every ceiling
        chain = [tuple(int(x) for x in node) for node in Lattice.of(self.task.recoding).chain(self.task)]
        step = -(-len(chain) // max(LOOKS[self.task.effort.name] // 3, 1))
        for levels in (self.alone(), (0,) * len(self.top), *chain[::-1][::step]):
            if levels is not None and not self.done():
                self.look(levels)
        here = self.best
        while not self.done():
            better = next((p for p in self.near(here.levels) if p.order < here.order), None)
            if better is None:
                return
            here = better

    def alone(self) -> tuple[int, ...] | None:
        """The best levels without stars that a short search finds."""
        try:
            found = global_recoding.search(replace(self.task, effort=Effort("fast"), spare=0))[0]
        except InfeasibleError:
            return None
        return tuple(int(x) for x in found)

    def near(self, levels: tuple[int, ...]) -> Iterator[LevelChoice]:
        """Levels one step away, then those with one column up and another down, if their bound is good enough."""
        d = len(levels)
        single = [_moved(levels, {j: s}) for j in range(d) for s in (-1, 1)]
        double = [_moved(levels, {i: 1, j: -1}) for i, j in permutations(range(d), 2)]
        for some in (single, double):
            inside = [x for x in some if all(0 <= a <= t for a, t in zip(x, self.top, strict=True))]
            for new in sorted((x for x in inside if x not in self.seen), key=self.lower):
                if self.done():
                    return
                if self.best.over or self.lower(new) < self.best.loss:
                    yield self.look(new)

    def look(self, levels: tuple[int, ...]) -> LevelChoice:
        """The loss of the cascade at these levels."""
        if levels not in self.seen:
            coarse = GeneralizedTable.of(self.task, levels)
            partition = start(coarse.task, Rows.of(coarse.task))
            self.seen[levels] = measured(self.task, coarse, levels, partition)
            self.task.progress("choosing levels", None)
        return self.seen[levels]

    def lower(self, levels: tuple[int, ...]) -> float:
        """A lower bound of the loss at these levels, in the recoding's unit."""
        if levels not in self.lowest:
            self.lowest[levels] = least(GeneralizedTable.of(self.task, levels).task)
        return self.lowest[levels]

    def solve(self) -> tuple[LevelChoice, Partition, float]:
        """The best levels, a partition of the whole table, and a lower bound of the loss at these levels."""
        seconds = self.task.effort.seconds
        finals = FINALS[self.task.effort.name] if seconds is None else 1 + int(seconds / FINAL)
        points = sorted(self.seen.values(), key=lambda p: p.order)[:finals]
        solved = [self._by_default(p.levels, Effort("fast")) for p in points] if len(points) > 1 else []
        points = sorted((s[0] for s in solved), key=lambda p: p.order) or points
        effort = self.task.effort
        if seconds is not None:
            left = self.task.started + seconds - clock()
            effort = Effort("seconds", max(SOLVED * left, 0.1))
        solved.append(self._by_default(points[0].levels, effort))
        chosen, partition, bound = min(solved, key=lambda s: s[0].order)
        bound = max(s[2] for s in solved if s[0].levels == chosen.levels)
        self.seen[chosen.levels] = chosen
        return chosen, partition, bound

    def _by_default(self, levels: tuple[int, ...], effort: Effort) -> tuple[LevelChoice, Partition, float]:
        coarse = GeneralizedTable.of(self.task, levels)
        found = auto(replace(coarse.task, effort=effort, started=clock()))
        self.seen[levels] = measured(self.task, coarse, levels, found.partition)
        return self.seen[levels], coarse.back(found.partition), float(found.certificate.lower_bound)


def _moved(levels: tuple[int, ...], steps: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(x + steps.get(j, 0) for j, x in enumerate(levels))


def least(coarse: Task) -> float:
    """A lower bound of the loss of every partition of a coarser table, in the recoding's unit.

    Every value loses at least what its level does. A row in a group with another tuple has a star in some column. For
    the least number of such rows, each counts its cheapest star. O(m log m).
    """
    h, columns = coarse.histogram, coarse.recoding.hierarchies or ()
    base, star = np.zeros(h.cells), np.full(h.cells, np.inf)
    for j, column in enumerate(columns):
        lost = column.loss[0][h.quasi[:, j]] * column.weight
        base += lost
        if column.levels > 1 and column.size > 1:
            star = np.minimum(star, column.loss[1][h.quasi[:, j]] * column.weight - lost)
    fewest = int(residue(h, coarse.requirement)[1]["bound"])
    can = np.isfinite(star)
    total = float(base @ h.count) + least_sum(star[can], h.count[can], fewest)
    scale = 1 if coarse.recoding.unit == "stars" else max(h.rows * len(columns), 1)
    return total / scale * (1 - 1e-9)
