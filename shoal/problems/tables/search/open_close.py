"""Local search over the set of published tuples for k-anonymity, and the start by a minimum-cost flow (docs/search.md).

Groups that publish the same tuple are one class, at no cost, and a class with more than k rows can give any row to a
cheaper tuple that covers it. So the search opens and closes tuples. A tuple near an open one is opened with the rows
that gain, rows that lose least are added until it has k, and an open tuple left with fewer than k rows is closed.
Changes for the worse are accepted by the rule of Metropolis et al. (1953), with falling heat. In the end every class is
cut into groups. ``Candidates`` are tuples that are likely in a good partition: the classes that are nearly tight under
the prices of the bounds.

``flow_start`` makes a partition from Lagrange multipliers. With H the most rows that a value may have in a class, a
class is eligible if it has at most H rows of every value, and at least l H rows. With H fixed for each class, this is a
flow from cells through pairs (class, value) to classes, which has an integral optimum. H comes from the rows that the
averaged choices send to each class. If the flow leaves a class short, H is lowered and the flow is computed again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.kernels.tables.multipliers import Classes
from shoal.model.histogram import Partition
from shoal.model.recoding import FORBIDDEN
from shoal.model.task import Task
from shoal.problems.tables.bounds import SearchReport
from shoal.problems.tables.bounds.class_program import UNIT, ClassProgram, Multipliers, raised
from shoal.problems.tables.groups import Rows, groups_that_meet
from shoal.problems.tables.search.cascade import finished, rank
from shoal.problems.tables.search.neighborhood import deal
from shoal.threads import SearchThreads, flag

MOST = 10_000  # limit of the candidates


class Candidates(NamedTuple):
    """Tuples worth opening, the most likely first.

    state  int64[p, t] the tuples
    start  int64[p + 1], member int64[..]  cells that tuple c covers, rising: member[start[c] : start[c + 1]]
    """

    state: np.ndarray
    start: np.ndarray
    member: np.ndarray

    @classmethod
    def empty(cls, width: int) -> Candidates:
        return cls(np.zeros((0, width), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, rows: Rows, classes: Classes, price: np.ndarray) -> Candidates:
        """The least tuple that covers each class's members, in order of the slack of the class's k most expensive rows.

        price  float64[m] of the cells of the table.  O(members log members).
        """
        size, k = np.diff(classes.start), rows.k
        own = np.repeat(np.arange(size.size), size)
        order = np.lexsort((-price[classes.member], own))
        count = rows.histogram.count[classes.member[order]]
        ahead = np.cumsum(count) - count
        taken = np.clip(k - (ahead - ahead[classes.start[:-1]][own]), 0, count)
        paid = np.bincount(own, weights=taken * price[classes.member[order]], minlength=size.size)
        likely = np.argsort(k * classes.cost - paid, kind="stable")[:MOST]
        many = size[likely]
        start = np.append(0, np.cumsum(many)).astype(np.int64)
        member = classes.member[np.repeat(classes.start[likely] - start[:-1], many) + np.arange(start[-1])]
        return cls(rows.covers(member, start[:-1]), start, member.astype(np.int64))

    def among(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tuples that cover some of these cells (rising), int64[p', t], and the index of such a cell, int64[p']."""
        place = np.searchsorted(cells, self.member)
        place[place == cells.size] = 0
        found = np.flatnonzero(cells[place] == self.member)
        own = np.searchsorted(self.start, found, side="right") - 1
        some, first = np.unique(own, return_index=True)
        return self.state[some], place[found[first]]


BLOCK = 20_000  # rows of a block, which is searched alone
STEPS = {"fast": 0, "balanced": 15, "thorough": 200}  # tuples tried for each row
CAP = {"fast": 0, "balanced": 2_000_000, "thorough": 40_000_000}
ROUNDS = 24  # rounds, with falling heat; each deals the table into blocks
HEAT = (0.16, 0.02)  # first and last heat, relative to the mean loss of k rows
COLD = 2  # last rounds, without heat
LONGEST = 1.5  # limit of the seconds of a round
BYTES = 2**26  # limit of the bit sets of cells below each node
LISTED = 32  # open tuples that cover a cell: length of the list at first


def applies(task: Task) -> bool:
    """Whether the request is k alone with hierarchies, and the bit sets of cells below their nodes fit in memory."""
    columns, need = task.recoding.columns, task.requirement
    if need.sensitive_columns or need.rules or task.recoding.hierarchies is None or any(c.held for c in columns):
        return False
    nodes = sum(c.levels * c.size for c in columns)
    return nodes * min(task.histogram.cells, 2 * BLOCK) // 8 <= BYTES


def steps_of(task: Task) -> int:
    """Number of tuples that the effort allows to try; 0 for an effort in seconds."""
    name = task.effort.name
    return min(STEPS.get(name, 0) * task.histogram.rows, CAP.get(name, 0))


def open_close(
    task: Task,
    rows: Rows,
    group: np.ndarray,
    *,
    pool: Candidates | None = None,
    deadline: float | None = None,
    steps: int | None = None,
) -> tuple[np.ndarray, SearchReport]:
    """A grouping of rows that loses no more than the one given, int64[n], labels from 0 without gaps.

    pool      tuples worth opening, from the bounds
    deadline  clock reading (``shoal.clock``) at which to stop; otherwise ``steps`` tuples are tried (by default, by the
              effort), and the result is the same on any number of cores.  O(steps rows of a tuple).
    """
    report = SearchReport(stopped="steps" if deadline is None else "seconds")
    steps = steps_of(task) if steps is None else steps
    if not group.size or (deadline is None and not steps):
        return group, report
    count = max(1, round(group.size / BLOCK))
    began, pace = clock(), 5e3 * min(os.cpu_count() or 1, count)
    state, label = classes_of(rows, group)
    pool = pool or Candidates.empty(state.shape[1])
    heat = _mean_loss(rows, state, label)
    part = 0.0
    # A round deals the table into blocks, and has its own heat and as many steps as its time allows at the pace so far.
    while part < 1.0:
        since = clock()
        if deadline is None:
            now = -(-steps // ROUNDS)
            after = (report.rounds + 1) / ROUNDS
        else:
            span = min(max(deadline - began, 1e-3) / ROUNDS, LONGEST)
            now = int(pace * min(span, max(deadline - since, 0.0)))
            after = (since + span - began) / max(deadline - began, 1e-3)
            if now < count:
                break
        task.progress("open and close", part)
        hot = 0.0 if after > 1.0 - COLD / ROUNDS else heat * HEAT[0] * (HEAT[1] / HEAT[0]) ** part
        label, done = _round(task, rows, state, label, pool, -(-now // count), hot, report.rounds)
        state, label = classes_of(rows, label)
        report.steps, report.rounds, part = report.steps + done, report.rounds + 1, after
        pace = 0.5 * pace + 0.5 * done / max(clock() - since, 1e-3)
    found = rows.cut(label)
    return min((group, found), key=lambda labels: rank(task, rows.partition(labels))), report


def classes_of(rows: Rows, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct tuples that the groups publish, int64[v, t], and the tuple of each row."""
    state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
    return state, of.reshape(-1)[group]


def _mean_loss(rows: Rows, state: np.ndarray, label: np.ndarray) -> float:
    """The mean loss of k rows, without rows above a ceiling."""
    from shoal.kernels.tables.eligible import prices

    price = prices(rows.slots, state)[label]
    fair = price[price < FORBIDDEN]
    return rows.k * float(fair.mean()) if fair.size else 0.0


def _round(
    task: Task, rows: Rows, state: np.ndarray, label: np.ndarray, pool: Candidates, each: int, heat: float, turn: int
) -> tuple[np.ndarray, int]:
    """The class of each row after ``each`` steps in every block of one deal, and the number of steps done."""
    blocks = deal(rows, label, max(1, round(label.size / BLOCK)), [task.seed, turn, 19])
    numbers = np.random.SeedSequence([task.seed, turn, 23]).generate_state(len(blocks), np.uint64)
    stop = flag()

    def one(i: int) -> tuple[np.ndarray, int]:
        block = blocks[i]
        if stop.is_set():
            return label[block], 0
        return _block(rows, block, state, label[block], pool, each, heat, numbers[i])

    with SearchThreads(min(os.cpu_count() or 1, len(blocks))) as threads:
        found = list(threads.map(one, range(len(blocks))))
    out, shift = np.empty_like(label), 0
    for block, (here, _) in zip(blocks, found, strict=True):
        out[block] = here + shift
        shift += int(here.max()) + 1
    return np.unique(out, return_inverse=True)[1].reshape(-1), sum(done for _, done in found)


def _block(
    rows: Rows,
    block: np.ndarray,
    state: np.ndarray,
    label: np.ndarray,
    pool: Candidates,
    steps: int,
    heat: float,
    seed: np.uint64,
) -> tuple[np.ndarray, int]:
    """The class of every row of a block after some steps, and the number of steps done."""
    from shoal.kernels import quick
    from shoal.kernels.tables.open_close import Annealing, PublishedTable, TuplesToTry
    from shoal.kernels.tables.open_close import open_close as kernel

    cells, first, cell = np.unique(rows.cell[block], return_index=True, return_inverse=True)
    leaf = np.ascontiguousarray(rows.leaf[cells])
    first, cell = np.append(first, block.size).astype(np.int64), cell.reshape(-1).astype(np.int64)
    names, of = np.unique(label, return_inverse=True)
    of, capacity = of.reshape(-1).astype(np.int64), block.size // rows.k + 2
    tuples = np.zeros((capacity, leaf.shape[1]), np.int64)
    tuples[: names.size] = state[names]
    tried = TuplesToTry(*pool.among(cells))
    words, nodes, listed, done = -(-cells.size // 64), rows.slots.parent.size, LISTED, 0
    while done < steps:
        bits, cover = np.zeros((nodes, words), np.uint64), np.empty((cells.size, listed), np.int32)
        run = quick(kernel, float(steps - done) * (words * leaf.shape[1] + 5 * rows.k))
        table = PublishedTable(rows.slots, leaf, first, cell, bits, np.empty(words, np.uint64), rows.k)
        _, more, _ = run(table, of, tuples, cover, tried, Annealing(steps - done, seed + np.uint64(done), heat))
        done, listed = done + more, 4 * listed
    return of, done


CLOSE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # parts of l rows; classes that want fewer are closed
CLOSING = {"fast": 40, "balanced": 60, "thorough": 250}  # least subgradient steps after each
CLOSED = 0.6  # share of the seconds, if they are given, for all these steps
STEP = 0.1
ROUND = 0.45  # added to rows / l before H is rounded down
AT_TOP = 10  # least H of the class that covers every row
WORST = 0.3  # part of the short classes whose H is lowered
FLOW_ROUNDS = {"fast": 1, "balanced": 5, "thorough": 12}  # least number of flows
ARCS = {"fast": 2e7, "balanced": 2e8, "thorough": 0.0}  # examined in the steps after each closing
PER_ROUND = 60  # subgradient steps that take as long as one flow
ONE = 1e-7  # seconds of a flow for each arc, with the coarsest costs
FLOW, PLACED = 0.55, 1.5  # part of this for a hurried flow and the placing; flows that take as long as placing rows
HURRIED = 6  # with less time than for so many flows, the coarsest costs are used
FINE = {"fast": 64, "balanced": 128, "thorough": 1024}  # least number of integer costs up to the largest loss
PER_STEP = 3  # examinations of an arc for each such cost
OUT, BONUS = 6, 9  # costs of a row left over, and of a row that a class is short, relative to the largest loss
CLOSE_BY = 64  # the largest loss over the error of the potentials from the multipliers, about
NEAR = 0.15  # arcs so far above the cheapest, relative to the largest loss, are left out


@dataclass(frozen=True, eq=False)
class Filled:
    """A flow: cell, pair, rows int64[f] of its arcs; rows held int64[p] of the pairs, size int64[v] of the classes."""

    cell: np.ndarray
    pair: np.ndarray
    rows: np.ndarray
    held: np.ndarray
    size: np.ndarray


def flow_start(task: Task, rows: Rows, multipliers: Multipliers, until: float | None = None) -> Partition | None:
    """The partition of the last of some rounds of flows; None if flows don't apply or there is no time.

    The rounds are counted, or with ``until`` (``shoal.clock``), no round begins that might end after it.
    """
    if rows.frequency.size != 1 or not multipliers.program.plain:
        return None
    effort = "thorough" if task.effort.name == "seconds" else task.effort.name
    until = until if task.effort.name == "seconds" else None
    if until is not None and clock() + ONE * multipliers.program.arcs.pair.size > until:
        return None
    size = multipliers.program.arcs.pair.size
    began, hurried, stop = clock(), False, None
    if until is not None:
        hurried = began + HURRIED * ONE * size > until
        stop = until - FLOW * ONE * size if hurried else began + CLOSED * (until - began)
    passes = flows_within_effort(CLOSING, effort, size, 1.0)
    rounds = flows_within_effort(FLOW_ROUNDS, effort, size, PER_ROUND)
    fine = flows_within_effort(FINE, "fast" if hurried else effort if until is None else "balanced", size, PER_STEP)
    multipliers = closed(task, multipliers, passes, stop)
    program = multipliers.program
    l, share = program.arcs.l, multipliers.share
    most = np.floor(share / l + ROUND).astype(np.int64)
    most = np.where(program.widest, np.maximum(most, AT_TOP), most)
    filled, spent = None, 0.0
    for turn in range(rounds):
        began = clock()
        if turn and until is not None and began + (1 + PLACED) * spent > until:
            break
        filled = fill(task, rows.k, multipliers, most, fine)
        most, short = with_heights_adjusted(program, filled, most)
        task.progress("class program", None)
        spent = clock() - began
        if not short:
            break
    # Rows are placed after the last flow only. It leaves the fewest rows, and earlier flows were never cheaper.
    return None if filled is None else finished(task, rows, *trimmed(task, program, filled))


def flows_within_effort(least: dict[str, int], effort: str, arcs: int, each: float) -> int:
    """The number prescribed by the effort; for few arcs more, up to that of "thorough". Each examines ``each`` arcs."""
    return int(np.clip(ARCS[effort] / (each * max(arcs, 1)), least[effort], least["thorough"]))


def closed(task: Task, multipliers: Multipliers, passes: int, until: float | None) -> Multipliers:
    """The multipliers after classes that want too few rows were closed in steps, each followed by subgradient steps."""
    began = clock()
    for turn, part in enumerate(CLOSE, 1):
        program = multipliers.program
        wanted = (multipliers.share >= part * program.arcs.l) | program.widest  # which covers every row
        small, pairs = program.only(wanted)
        stop = None if until is None else began + turn / len(CLOSE) * (until - began)
        multipliers = raised(
            task, Multipliers(small, multipliers.multiplier[pairs], 0, multipliers.share[wanted]), passes, stop, STEP
        )
    return multipliers


def fill(task: Task, k: int, multipliers: Multipliers, most: np.ndarray, fine: int) -> Filled:
    """The cheapest flow of rows to classes with at most ``most`` int64[v] rows of each value.

    fine  number of integer costs up to the largest loss: the flow is the cheapest up to one such unit for each node
    """
    from shoal.kernels.tables.min_cost_flow import FlowNetwork, ship

    program, count = multipliers.program, task.histogram.count
    arcs, owner, cell = program.arcs, program.owner, program.cell
    largest_loss = float(program.loss.max()) or 1.0
    paid = program.reduced(multipliers.multiplier)[arcs.pair]
    near = paid - np.minimum.reduceat(paid, arcs.start[:-1])[cell] <= NEAR * largest_loss * UNIT
    use = near & (most[owner[arcs.pair]] > 0)
    cell, pair = cell[use], arcs.pair[use].astype(np.int64)
    m, v = count.size, most.size
    tight = np.bincount(pair, weights=count[cell], minlength=owner.size) > most[owner]
    node = np.where(tight, np.cumsum(tight) - 1 + m, owner + m + int(tight.sum()))
    own, sink = np.arange(v) + m + int(tight.sum()), m + int(tight.sum()) + v
    price = np.rint(program.loss * (fine / largest_loss)).astype(np.int64)
    none, needed = np.zeros(v, np.int64), np.where(most > 0, np.maximum(program.arcs.l * most, k), 0)
    tail = np.concatenate([cell, node[tight], own, own, np.arange(m)])
    head = np.concatenate([node[pair], own[owner[tight]], none + sink, none + sink, np.full(m, sink)])
    capacity = np.concatenate([count[cell], most[owner[tight]], needed, none + int(count.sum()), count])
    cost = np.concatenate([price[owner[pair]], np.zeros(int(tight.sum()), np.int64), none - BONUS * fine, none,
                           np.full(m, OUT * fine)])  # fmt: skip
    # The potentials of the flow start at the multipliers, which are close to its dual prices.
    unit = fine / largest_loss / UNIT
    back = np.minimum(np.rint(program.refund(multipliers.multiplier) * unit), BONUS * fine).astype(np.int64)
    through = back[owner[tight]] - np.rint(arcs.l * multipliers.multiplier[tight] * unit).astype(np.int64)
    potential = np.concatenate([np.full(m, -OUT * fine), through, back, [0]])
    np.maximum.at(potential, cell, potential[node[pair]] - price[owner[pair]])
    order = np.argsort(np.concatenate([tail, head]), kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    a = tail.size
    net = FlowNetwork(
        start=np.searchsorted(np.concatenate([tail, head])[order], np.arange(sink + 2)),
        to=np.concatenate([head, tail])[order].astype(np.int32),
        left=np.concatenate([capacity, np.zeros(a, np.int64)])[order],
        price=np.concatenate([cost, -cost])[order],
        back=np.concatenate([place[a:], place[:a]])[order].astype(np.int32),
    )
    excess = np.zeros(sink + 1, np.int64)
    excess[:m], excess[sink] = count, -int(count.sum())
    ship(net, excess, potential, max(fine // CLOSE_BY, 1), 4)
    sent = net.left[place[a : a + cell.size]]
    held = np.bincount(pair, weights=sent, minlength=owner.size).astype(np.int64)
    return Filled(cell, pair, sent, held, np.bincount(owner, weights=held, minlength=v).astype(np.int64))


def with_heights_adjusted(program: ClassProgram, filled: Filled, most: np.ndarray) -> tuple[np.ndarray, bool]:
    """H lowered in the classes that are shortest of rows, raised if there are rows for it; whether any was short."""
    l = program.arcs.l
    top = np.maximum.reduceat(filled.held, program.arcs.first[:-1])
    lack = l * top - filled.size
    short = np.flatnonzero(lack > 0)
    worst = short[np.argsort(-lack[short], kind="stable")][: int(np.ceil(WORST * short.size))]
    fits = filled.size // l
    new = np.where((lack <= 0) & (fits > most), fits, most)
    new[worst] = np.minimum(new[worst], fits[worst])
    return new, bool(short.size)


def trimmed(task: Task, program: ClassProgram, filled: Filled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples (cell, class, rows) without the rows that their class must give up to be eligible.

    A class keeps min(n, h) rows of each value, with the largest h for which these are at least l h rows. Their number
    less l h is concave in h, so such h form an interval from 0, and bisection finds its end.
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
    before = np.cumsum(sent) - sent  # rows of the same pair that precede
    before -= (np.cumsum(filled.held) - filled.held)[filled.pair[order]]
    stay = np.clip(kept[filled.pair[order]] - before, 0, sent)
    cell, group = filled.cell[order], owner[filled.pair[order]]
    good = groups_that_meet(task.histogram, task.requirement, cell, group, stay, filled.size.size)
    kept = (stay > 0) & good[group]
    return cell[kept], group[kept], stay[kept]


def _held_cells(columns: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of each column and how many of its rows are of each: those of column c from at[c] to at[c + 1] - 1.

    columns  int64[c, K], -1 where fewer;  m  cells of the table.  at int64[c + 1], cell int64[x], many int64[x]
    """
    of, place = np.nonzero(columns >= 0)
    key, many = np.unique(of * m + columns[of, place], return_counts=True)
    return np.searchsorted(key, np.arange(len(columns) + 1) * m), key % m, many


def columns_start(task: Task, rows: Rows, columns: np.ndarray) -> np.ndarray | None:
    """A grouping int64[rows] with eligible columns that share no row as groups; other rows go where they cost least.

    columns  int64[c, K] cells of each column, in order of preference, -1 for none; a column need not be eligible

    Labels are from 0 without gaps. None if no column becomes a group, or if the requirement is more than k and one
    share or number of values of one sensitive column, with l at most 2: rows left over would lose too much.

    Eligible rows of one tuple lose nothing, and hardly any column has such rows. So the rest of a tuple is a group as
    far as it is eligible, and a column is taken only if for each of its rows at most l rows of the tuple stop being
    eligible. O(c (K log K + cells of a tuple)).
    """
    h, need = task.histogram, task.requirement
    asked = need.sensitive_columns
    if need.rules or len(asked) > 1:
        return None
    l, distinct = (need.frequency[asked[0]], need.distinct[asked[0]]) if asked else (1, 1)
    if l > 2:
        return None
    value = h.sensitive[:, asked[0]].astype(np.int64) if asked else np.zeros(h.cells, np.int64)
    tuple_of = np.unique(h.quasi, axis=0, return_inverse=True)[1].reshape(-1)
    by = np.argsort(tuple_of, kind="stable")
    cells_of = np.split(by, np.flatnonzero(np.diff(tuple_of[by])) + 1)
    left, group = h.count.copy(), np.full(rows.cell.size, -1, np.int64)
    place, made = np.cumsum(left) - left, 0

    def eligible(cells: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The largest part of the rows of each cell that is eligible together, int64[..]; zeros if there is none."""
        kept = count
        if kept.sum() < need.smallest:
            return np.zeros_like(kept)
        if l > 1:
            held = np.bincount(value[cells], weights=count).astype(np.int64)
            most = int(held.max())
            while most and np.minimum(held, most).sum() < l * most:
                most -= 1
            kept, spare = count.copy(), np.maximum(held - most, 0)
            for x in np.flatnonzero(spare[value[cells]]):
                gone = min(int(spare[value[cells[x]]]), int(kept[x]))
                kept[x] -= gone
                spare[value[cells[x]]] -= gone
        values = np.unique(value[cells[kept > 0]]).size if distinct > 1 else 1
        return kept if kept.sum() >= need.k and values >= distinct else np.zeros_like(kept)

    def take(cells: np.ndarray, many: np.ndarray) -> None:
        for cell, count in zip(cells, many, strict=True):
            group[place[cell] : place[cell] + count] = made
        place[cells] += many

    whole = np.array([int(eligible(cells, left[cells]).sum()) for cells in cells_of])
    at, cell, many = _held_cells(columns, h.cells)
    for c in np.flatnonzero(
        groups_that_meet(h, need, cell, np.repeat(np.arange(len(columns)), np.diff(at)), many, len(columns))
    ):
        cells, count = cell[at[c] : at[c + 1]], many[at[c] : at[c + 1]]
        if (left[cells] < count).any():
            continue
        left[cells] -= count
        tuples, place_of = np.unique(tuple_of[cells], return_inverse=True)
        rest = np.array([int(eligible(cells_of[t], left[cells_of[t]]).sum()) for t in tuples])
        if (whole[tuples] - rest > l * np.bincount(place_of, weights=count)).any():
            left[cells] += count
            continue
        whole[tuples] = rest
        take(cells, count)
        made += 1
    if not made:
        return None
    for t in np.flatnonzero(whole):
        take(cells_of[t], eligible(cells_of[t], left[cells_of[t]]))
        made += 1
    return rows.place(group)
