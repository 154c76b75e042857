"""Lower bounds against exhaustive search: ``python tools/oracle_bounds.py TABLES [SEED] [regions]``.

Random tables of 2 to 8 rows, one to three quasi-identifiers, each recoded in one of five ways, k with distinct values
or frequencies of none, one or two sensitive columns, or with another model of shares.  For each table: no bound of any
effort is above the least loss of all partitions, nor is what a sweep over columns of boxes proves for multipliers drawn
at random, of either sign, whether its search ends or is cut off, or over all classes of a lattice; under t-closeness
none, some or all of their groups have whole rows counted.  With ``regions``, a column or two of each table are areas of
a random graph, and k is up to 5.

Prints the seed of every failure and exits 1 when there is one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.tables.bounds import boxes, near_cells
from shoal.problems.tables.bounds.bounds import Sweeper, close_shares, lower_bounds
from shoal.problems.tables.losses import Lattice
from tests.oracles.tables import least_loss
from tests.tables.drawn import KINDS, graph_task, least_of_graphs

EFFORTS = ("fast", "balanced", "thorough", 0.05)
NODES = (0, 2, 20_000)
COUNTED = (0, 2, 4, 60)


def drawn(random: np.random.Generator) -> Task | None:
    """A task on a few rows; None where no partition meets it."""
    d, s, n = int(random.integers(1, 4)), int(random.integers(0, 3)), int(random.integers(2, 9))
    found = Histogram.from_rows(random.integers(0, 4, (n, d)), random.integers(0, 4, (n, s)))
    table = Histogram(
        found.quasi, found.sensitive, found.count, found.quasi_names, found.sensitive_names, (4,) * d, (4,) * s
    )
    names = random.choice(list(KINDS), d)
    unit = "stars" if set(names) == {"stars"} else "ncp"
    recoding = Recoding(tuple(KINDS[name]() for name in names), unit)
    several = tuple(int(x) for x in random.integers(1, 4, s)), tuple(int(x) for x in random.integers(1, 4, s))
    need = Requirement(int(random.integers(1, 4)), *several)
    if s == 1 and random.random() < 0.5:
        t, l, share = (float(random.choice(x)) for x in ((0.1, 0.2, 0.3, 0.5), (1.5, 2, 2.5), (0.4, 0.5, 0.7)))
        of_shares = (
            shoal.TCloseness(t),
            shoal.TCloseness(t, "ordered"),
            shoal.EntropyLDiversity(l),
            shoal.RecursiveLDiversity(l, int(random.integers(1, 4))),
            shoal.AlphaKAnonymity(share, need.k),
            shoal.BetaLikeness(2 * share),
            shoal.DeltaDisclosure(2 * share),
        )
        models = [shoal.KAnonymity(need.k), of_shares[int(random.integers(len(of_shares)))]]
        need = requirement(models, table.sensitive_names, table)
    effort = EFFORTS[int(random.integers(len(EFFORTS)))]
    if shortfall(table, need) is not None:
        return None
    return Task(table, need, recoding, Effort.of(effort), seed=int(random.integers(4)))


def wrong(task: Task, best: float, random: np.random.Generator) -> list[str]:
    """The bounds that are above the least loss."""
    h, out = task.histogram, []
    scale = 1.0 if task.recoding.unit == "stars" else h.rows * len(task.recoding.columns)
    for name, value in lower_bounds(task, program=bool(random.integers(2))).values.items():
        if value * scale > best + 1e-6:
            out.append(f"{name} {value * scale} > {best}")
    p = near_cells.Pairs.of(task)
    if p.cells.group > 1:
        at = random.uniform(-0.5, 2.5, h.cells)
        boxes.NODES = int(random.choice(NODES))
        proved = float(p.cells.count @ (at - boxes._sweep(p, at, None)[0])) + float(p.alone @ h.count)
        if proved > best + 1e-9:
            out.append(f"sweep {proved} > {best}")
        if p.nested and p.cells.shares.high.size:
            swept = boxes._sweep_of_classes(p, at, None)
            proved = float(p.cells.count @ (at - swept[0])) + float(p.alone @ h.count) if swept else 0.0
            if proved > best + 1e-9:
                out.append(f"sweep of classes {proved} > {best}")
        boxes.NODES = NODES[-1]
    if task.recoding.hierarchies is not None:
        sweeper, at = Sweeper(task, Lattice.of(task.recoding)), random.uniform(-0.5, 2.5, h.cells)
        over = None if sweeper.per_value else sweeper.run(6, at, np.zeros(0, bool), None, 0.0)
        if over is not None and float(h.count @ at) - float(over[0]) > best + 1e-9:
            out.append(f"classes {float(h.count @ at) - float(over[0])} > {best}")
        close = close_shares(task)
        if close is not None:
            counted = int(random.choice(COUNTED))
            prices = sweeper.close(close._replace(counted=counted), at, None)
            if prices is not None and float(h.count @ prices) > best + 1e-9:
                out.append(f"close classes, {counted} rows counted, {float(h.count @ prices)} > {best}")
    return out


def main(tables: int, seed: int, regions: bool = False) -> int:
    """So many feasible tables; the number of failures."""
    near_cells.FEW = 1  # also few cells lie around several centers
    began, tried, failures = time.perf_counter(), 0, 0
    while tried < tables:
        random = np.random.default_rng(seed)
        drawing = graph_task(random) if regions else drawn(random)
        if drawing is not None:
            task = drawing[0] if isinstance(drawing, tuple) else drawing
            best = (
                least_of_graphs(*drawing)
                if isinstance(drawing, tuple)
                else least_loss(task.histogram, task.requirement, task.recoding)
            )
            tried += 1
            for failure in wrong(task, best, random) if best is not None else ():
                failures += 1
                print(f"seed {seed}: {failure}", flush=True)
        seed += 1
    print(f"{tried} tables, {failures} failures, {time.perf_counter() - began:.0f} s")
    return failures


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "regions"]
    sys.exit(main(int(words[0]), int(words[1]) if len(words) > 1 else 0, "regions" in sys.argv) > 0)
