"""Coarsening followed by suppression: each column is published at one level, with stars where that isn't enough.

Xiao, Yi, Tao (2010), section 5.6, proposes this and leaves open how much to coarsen: fine levels cost many stars, and
coarse levels lose information in cells without stars. Here the levels are searched by the total loss, and every choice
examined is a point of the curve of stars against width. Such a release looks like microdata with missing entries.

For a choice of levels, a lower bound of the loss is computed first: the level's loss for every value, and one star each
for as many rows as no group of equal tuples can contain. Only if that is below the best so far, the cascade computes
the actual loss. Where there are few choices, every one is examined, and those that their bound leaves open are solved:
then the levels are the best of all, and the details say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import inf, prod
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import Effort
from shoal.model.certificate import tight
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
MOST = 100_000  # choices of levels that are examined one by one
CLOSE = 1e-9  # differences in a loss that are rounding
# number of choices of levels that are also solved by the default method
FINALS = {"fast": 1, "balanced": 2, "thorough": 4}
FINAL = 30.0  # seconds for each further choice
PROOF = 2.5  # seconds in which a small table is decided
OPEN = {"fast": 1_000, "balanced": 5_000, "thorough": 50_000, "seconds": 10**9}  # cells of open choices that are solved
SHARE = 0.4  # share of the seconds for the search of the levels
SOLVED = 0.8  # share of the remaining seconds for the final choice; the rest is for the bounds


def coarsen(task: Task) -> Grouping:
    """Levels of all columns and a partition; groups show their column's level, or a star if rows differ there.

    ``details`` has the levels, ``uniform_cost`` (the loss as published), ``levels_bound`` (a lower bound of the loss at
    these levels), ``uniform_bound`` (a lower bound at any levels), ``uniform_optimal`` (whether that proves the cost
    least), ``curve``, and the number of choices examined. The certificate's own cost is that of the groups' common
    ancestors, which is never more; ``published`` has what the groups show.

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
    chosen, partition = walk.solve()
    made = certified(task, partition, "coarsen")
    bound = tight(max(walk.bound(), made.certificate.lower_bound), chosen.loss, task.recoding.unit, "all levels")
    facts: dict[str, Any] = {
        "levels": dict(zip(task.histogram.quasi_names, chosen.levels, strict=True)),
        "uniform_cost": chosen.loss,
        "levels_bound": walk.lower(chosen.levels),
        "uniform_bound": bound,
        "uniform_optimal": bound >= chosen.loss * (1 - CLOSE),
        "curve": [p.as_dict(task.histogram) for p in curve(walk.seen.values(), chosen)],
        "levels_looked_at": len(walk.seen),
    }
    if facts["uniform_optimal"]:
        facts["proved"] = "optimal among columns of one level with stars"
    return replace(made, certificate=replace(made.certificate, details={**made.certificate.details, **facts}))


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

    seen     examined choices, by levels
    lowest   a lower bound of the loss at the levels that were considered
    every    whether that is all of them
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.top = tuple(c.ceiling for c in task.recoding.hierarchies or ())
        self.seen: dict[tuple[int, ...], LevelChoice] = {}
        self.lowest: dict[tuple[int, ...], float] = {}
        self.every = False
        seconds = task.effort.seconds
        self.until = None if seconds is None else clock() + SHARE * (task.started + seconds - clock())

    @property
    def best(self) -> LevelChoice:
        return min(self.seen.values(), key=lambda p: p.order)

    def done(self) -> bool:
        """Whether the effort allows no further choice."""
        return bool(self.seen) and (self.late or len(self.seen) >= LOOKS[self.task.effort.name])

    @property
    def late(self) -> bool:
        """Whether the search of the levels has had its share of the seconds."""
        return self.until is not None and clock() > self.until

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
                break
            here = better
        if prod(x + 1 for x in self.top) <= min(LOOKS[self.task.effort.name], MOST):
            self.rest()

    def rest(self) -> None:
        """Every choice that wasn't examined, if its bound is good enough; there are no more than may be examined."""
        for levels in product(*(range(x + 1) for x in self.top)):
            if self.late:
                return
            low = self.lower(levels)
            if levels not in self.seen and (self.best.over or low < self.best.loss):
                self.look(levels)
        self.every = True

    def open(self, levels: tuple[int, ...]) -> bool:
        """Whether a partition at these levels may lose less than the best that is known."""
        return bool(self.best.over) or self.lower(levels) < self.best.loss * (1 - CLOSE)

    def bound(self) -> float:
        """A lower bound of the loss at any levels; 0 if some were not considered."""
        return min(self.lowest.values()) if self.every else 0.0

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

    def solve(self) -> tuple[LevelChoice, Partition]:
        """The best levels and a partition of the whole table.

        The choices with the least loss so far are solved fast, and the best of these with the whole effort. Then, while
        the effort allows it, the choice with the lowest bound is solved, until no bound is below the best loss.
        """
        seconds = self.task.effort.seconds
        finals = FINALS[self.task.effort.name] if seconds is None else 1 + int(seconds / FINAL)
        points = sorted((p for p in self.seen.values() if p.over == self.best.over), key=lambda p: p.order)[:finals]
        solved = [self._by_default(p.levels, Effort("fast")) for p in points] if len(points) > 1 else []
        points = sorted((s[0] for s in solved), key=lambda p: p.order) or points
        effort = self.task.effort
        if seconds is not None:
            others = self.every and any(self.open(x) for x in self.lowest if x != points[0].levels)
            share = SOLVED / 2 if others else SOLVED
            effort = Effort("seconds", max(share * (self.task.started + seconds - clock()), 0.1))
        found = min([*solved, self._by_default(points[0].levels, effort)], key=lambda s: s[0].order)
        tried = {points[0].levels}
        while self.every and len(tried) * self.task.histogram.cells <= OPEN[self.task.effort.name]:
            left = [x for x in self.lowest if x not in tried and self.open(x)]
            remaining = inf if seconds is None else SOLVED * (self.task.started + seconds - clock())
            if not left or remaining <= 0:
                break
            if seconds is not None:
                effort = Effort("seconds", min(remaining, max(remaining / len(left), PROOF)))
            levels = min(left, key=self.lower)
            tried.add(levels)
            with suppress(InfeasibleError):  # under a ceiling, stars are forbidden at some levels
                found = min([found, self._by_default(levels, effort)], key=lambda s: s[0].order)
        return found

    def _by_default(self, levels: tuple[int, ...], effort: Effort) -> tuple[LevelChoice, Partition]:
        coarse = GeneralizedTable.of(self.task, levels)
        found = auto(replace(coarse.task, effort=effort, started=clock()))
        self.seen[levels] = measured(self.task, coarse, levels, found.partition)
        self.lowest[levels] = max(self.lower(levels), float(found.certificate.lower_bound))
        return self.seen[levels], coarse.back(found.partition)


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
