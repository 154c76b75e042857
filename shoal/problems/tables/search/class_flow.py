"""From tolls to a partition: classes that few rows want are closed, the others filled by a minimum-cost flow.

With H the most rows that a value may have in a class, a class is eligible when it has at most H rows of every value
and at least l H rows.  With H fixed for every class this is a flow from cells through pairs (class, value) and
classes, and whole by itself.  H comes from the rows that the averaged choices send to each class; where the flow
leaves a class short, H is lowered and the flow run again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.clock import clock
from shoal.model.partition import Partition
from shoal.model.task import Task
from shoal.problems.tables.eligible import good_groups
from shoal.problems.tables.search.class_program import UNIT, Program, Tolls, raised
from shoal.problems.tables.search.row_groups import Rows
from shoal.problems.tables.search.thinning import finished

CLOSE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # shares of l rows under which a class is closed, one by one
CLOSING = {"fast": 40, "balanced": 60, "thorough": 250}  # passes after each, at least
CLOSED = 0.6  # share of the seconds, if they are given, that the passes after closings take, the same each
STEP = 0.1
ROUND = 0.45  # added to rows / l before it is rounded down
AT_TOP = 10  # rows of a value that the class of everything may have at least
WORST = 0.3  # part of the short classes whose H is lowered
ROUNDS = {"fast": 1, "balanced": 5, "thorough": 12}  # flows, at least
ARCS = {"fast": 2e7, "balanced": 2e8, "thorough": 0.0}  # looked at in the passes after each closing, if the most allows
PER_ROUND = 60  # passes that one round takes as long as
ONE = 1e-7  # seconds that one round takes for an arc, by the coarsest steps
FLOW, PLACED = 0.55, 1.5  # of it a hurried round and what follows takes; rounds that placing the rows takes as long as
HURRIED = 6  # such rounds; with less time than they take no finer steps are begun
FINE = {"fast": 64, "balanced": 128, "thorough": 1024}  # steps of cost between nothing and the dearest class, at least
PER_STEP = 3  # of those, more are taken where arcs are few
OUT, BONUS = 6, 9  # prices of a row left over, of a row that a class is short, by the dearest class
CLOSE_BY = 64  # part of the dearest class by which prices that tolls say are off, about
NEAR = 0.15  # arcs this far above the cheapest are left out, by the dearest class


@dataclass(frozen=True, eq=False)
class Filled:
    """Rows of some arcs: cell int64[f], pair int64[f], rows int64[f]; held int64[p], size int64[v] of the classes."""

    cell: np.ndarray
    pair: np.ndarray
    rows: np.ndarray
    held: np.ndarray
    size: np.ndarray


def flow_start(task: Task, rows: Rows, tolls: Tolls, until: float | None = None) -> Partition | None:
    """The cheapest partition that some rounds of flows find.

    None where it does not apply or has no time.

    Named efforts count rounds; with ``until`` (``shoal.clock``) no round begins that might pass it.
    """
    if rows.frequency.size != 1 or not tolls.program.plain:
        return None
    effort = "thorough" if task.effort.name == "seconds" else task.effort.name
    until = until if task.effort.name == "seconds" else None
    if until is not None and clock() + ONE * tolls.program.arcs.pair.size > until:
        return None
    size = tolls.program.arcs.pair.size
    began, hurried, stop = clock(), False, None
    if until is not None:
        hurried = began + HURRIED * ONE * size > until
        stop = until - FLOW * ONE * size if hurried else began + CLOSED * (until - began)
    passes, rounds = afforded(CLOSING, effort, size, 1.0), afforded(ROUNDS, effort, size, PER_ROUND)
    fine = afforded(FINE, "fast" if hurried else effort if until is None else "balanced", size, PER_STEP)
    tolls = closed(task, tolls, passes, stop)
    program = tolls.program
    l, share = program.arcs.l, tolls.share
    most = np.floor(share / l + ROUND).astype(np.int64)
    most = np.where(program.widest, np.maximum(most, AT_TOP), most)
    filled, spent = None, 0.0
    for turn in range(rounds):
        began = clock()
        if turn and until is not None and began + (1 + PLACED) * spent > until:
            break
        filled = fill(task, rows.k, tolls, most, fine)
        most, short = mended(program, filled, most)
        task.progress("class program", None)
        spent = clock() - began
        if not short:
            break
    # Rows are placed after the last flow alone, which leaves fewest of them: those before it were never cheaper.
    return None if filled is None else finished(task, rows, *trimmed(task, program, filled))


def afforded(least: dict[str, int], effort: str, arcs: int, each: float) -> int:
    """At least as many as the effort has, up to those of "thorough" where arcs are few, each looking ``each`` times."""
    return int(np.clip(ARCS[effort] / (each * max(arcs, 1)), least[effort], least["thorough"]))


def closed(task: Task, tolls: Tolls, passes: int, until: float | None) -> Tolls:
    """Classes that want too few rows closed step by step, each time followed by some passes for the others."""
    began = clock()
    for turn, part in enumerate(CLOSE, 1):
        program = tolls.program
        wanted = (tolls.share >= part * program.arcs.l) | program.widest  # everyone finds room at the top
        small, pairs = program.only(wanted)
        stop = None if until is None else began + turn / len(CLOSE) * (until - began)
        tolls = raised(task, Tolls(small, tolls.toll[pairs], 0, tolls.share[wanted]), passes, stop, STEP)
    return tolls


def fill(task: Task, k: int, tolls: Tolls, most: np.ndarray, fine: int) -> Filled:
    """The cheapest way to send rows to classes with at most ``most`` int64[v] rows of a value each.

    fine  whole steps of cost between nothing and the dearest class: the flow is the cheapest to a step for each node
    """
    from shoal.kernels.tables.flow import Net, ship

    program, count = tolls.program, task.histogram.count
    arcs, owner, cell = program.arcs, program.owner, program.cell
    dearest = float(program.loss.max()) or 1.0
    paid = program.reduced(tolls.toll)[arcs.pair]
    near = paid - np.minimum.reduceat(paid, arcs.start[:-1])[cell] <= NEAR * dearest * UNIT
    use = near & (most[owner[arcs.pair]] > 0)
    cell, pair = cell[use], arcs.pair[use].astype(np.int64)
    m, v = count.size, most.size
    tight = np.bincount(pair, weights=count[cell], minlength=owner.size) > most[owner]
    node = np.where(tight, np.cumsum(tight) - 1 + m, owner + m + int(tight.sum()))
    own, sink = np.arange(v) + m + int(tight.sum()), m + int(tight.sum()) + v
    price = np.rint(program.loss * (fine / dearest)).astype(np.int64)
    none, needed = np.zeros(v, np.int64), np.where(most > 0, np.maximum(program.arcs.l * most, k), 0)
    tail = np.concatenate([cell, node[tight], own, own, np.arange(m)])
    head = np.concatenate([node[pair], own[owner[tight]], none + sink, none + sink, np.full(m, sink)])
    room = np.concatenate([count[cell], most[owner[tight]], needed, none + int(count.sum()), count])
    cost = np.concatenate([price[owner[pair]], np.zeros(int(tight.sum()), np.int64), none - BONUS * fine, none,
                           np.full(m, OUT * fine)])  # fmt: skip
    # What tolls make rows pay is nearly what the flow makes them pay, so its prices begin there.
    unit = fine / dearest / UNIT
    back = np.minimum(np.rint(program.refund(tolls.toll) * unit), BONUS * fine).astype(np.int64)
    through = back[owner[tight]] - np.rint(arcs.l * tolls.toll[tight] * unit).astype(np.int64)
    potential = np.concatenate([np.full(m, -OUT * fine), through, back, [0]])
    np.maximum.at(potential, cell, potential[node[pair]] - price[owner[pair]])
    order = np.argsort(np.concatenate([tail, head]), kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    a = tail.size
    net = Net(
        start=np.searchsorted(np.concatenate([tail, head])[order], np.arange(sink + 2)),
        to=np.concatenate([head, tail])[order].astype(np.int32),
        left=np.concatenate([room, np.zeros(a, np.int64)])[order],
        price=np.concatenate([cost, -cost])[order],
        back=np.concatenate([place[a:], place[:a]])[order].astype(np.int32),
    )
    excess = np.zeros(sink + 1, np.int64)
    excess[:m], excess[sink] = count, -int(count.sum())
    ship(net, excess, potential, max(fine // CLOSE_BY, 1), 4)
    sent = net.left[place[a : a + cell.size]]
    held = np.bincount(pair, weights=sent, minlength=owner.size).astype(np.int64)
    return Filled(cell, pair, sent, held, np.bincount(owner, weights=held, minlength=v).astype(np.int64))


def mended(program: Program, filled: Filled, most: np.ndarray) -> tuple[np.ndarray, bool]:
    """H lowered in the classes that are shortest of rows and raised where there is room; whether any was short."""
    l = program.arcs.l
    top = np.maximum.reduceat(filled.held, program.arcs.first[:-1])
    lack = l * top - filled.size
    short = np.flatnonzero(lack > 0)
    worst = short[np.argsort(-lack[short], kind="stable")][: int(np.ceil(WORST * short.size))]
    fits = filled.size // l
    new = np.where((lack <= 0) & (fits > most), fits, most)
    new[worst] = np.minimum(new[worst], fits[worst])
    return new, bool(short.size)


def trimmed(task: Task, program: Program, filled: Filled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples (cell, class, rows) without the rows that their class must give up to be eligible.

    A class keeps min(n, h) rows of every value, with the largest h for which these are at least l h rows: the excess
    of the rows over l h is concave in h, so the h that do are an interval from 0, and bisection finds its end.
    """
    owner, first, l = program.owner, program.arcs.first, program.arcs.l
    low, high = np.zeros(filled.size.size, np.int64), filled.size // l
    while (low < high).any():
        middle = (low + high + 1) // 2
        fine = np.add.reduceat(np.minimum(filled.held, middle[owner]), first[:-1]) >= l * middle
        low, high = np.where(fine, middle, low), np.where(fine, high, middle - 1)
    kept = np.minimum(filled.held, low[owner])
    order = np.argsort(filled.pair, kind="stable")
    sent = filled.rows[order]
    before = np.cumsum(sent) - sent  # rows of the same pair that come first: those stay
    before -= (np.cumsum(filled.held) - filled.held)[filled.pair[order]]
    stay = np.clip(kept[filled.pair[order]] - before, 0, sent)
    cell, group = filled.cell[order], owner[filled.pair[order]]
    good = good_groups(task.histogram, task.requirement, cell, group, stay, filled.size.size)
    kept = (stay > 0) & good[group]
    return cell[kept], group[kept], stay[kept]
