"""Published tuples opened and closed, for k-anonymity: the search where groups are too large to be taken apart.

Groups that publish the same tuple are one class, at no cost, and of a class of k rows or more any row may leave for
a cheaper tuple that covers it.  So what is searched is the set of open tuples: a tuple near an open one is opened with
the rows that gain, tuples that would be left with fewer than k rows are closed and their rows go to the cheapest open
ones, and rows that lose are added while it has fewer than k.  Changes for the worse are carried out with the
probability of Metropolis et al. (1953), less and less of them.  In the end every class is cut into groups.

Tuples worth opening: the classes in which the prices of the bounds leave least.

A class in use of a partition of least loss slacks by no more than lies between that loss and the bound; so the classes
that a bound by subgradients has written down as nearly tight hold nearly all tuples of a good partition.

From multipliers to a partition: classes that few rows want are closed, the others filled by a minimum-cost flow.

With H the most rows that a value may have in a class, a class is eligible when it has at most H rows of every value
and at least l H rows.  With H fixed for every class this is a flow from cells through pairs (class, value) and
classes, and whole by itself.  H comes from the rows that the averaged choices send to each class; where the flow
leaves a class short, H is lowered and the flow run again."""

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
from shoal.problems.tables.bounds.certify import SearchReport
from shoal.problems.tables.bounds.class_program import UNIT, ClassProgram, Multipliers, raised
from shoal.problems.tables.groups import Rows, good_groups
from shoal.problems.tables.search.cascade import finished, rank
from shoal.problems.tables.search.neighborhood import deal
from shoal.problems.threads import SearchThreads, flag

MOST = 10_000  # tuples in a pool


class Candidates(NamedTuple):
    """Tuples worth opening, the most likely first: state int64[p, t]; some cells that each covers, rising,
    member[start[c] : start[c + 1]]."""

    state: np.ndarray
    start: np.ndarray
    member: np.ndarray

    @classmethod
    def empty(cls, width: int) -> Candidates:
        """No tuples."""
        return cls(np.zeros((0, width), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, rows: Rows, classes: Classes, price: np.ndarray) -> Candidates:
        """Of each class the least tuple that covers its members; those first whose k dearest rows have least left.

        price  float64[m] of the cells of the whole table, which ``rows`` are of.  O(members log members).
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
        """(state int64[p', t], seat int64[p']) of those that cover some of these cells, rising: the place of one."""
        place = np.searchsorted(cells, self.member)
        place[place == cells.size] = 0
        found = np.flatnonzero(cells[place] == self.member)
        own = np.searchsorted(self.start, found, side="right") - 1
        some, first = np.unique(own, return_index=True)
        return self.state[some], place[found[first]]


BLOCK = 20_000  # rows searched together
STEPS = {"fast": 0, "balanced": 15, "thorough": 200}  # tuples tried per row
CAP = {"fast": 0, "balanced": 2_000_000, "thorough": 40_000_000}
ROUNDS = 24  # deals of the table, the heat falling from each to the next
HEAT = (0.16, 0.02)  # first and last, by what a class loses in the mean
COLD = 2  # rounds at the end without heat
LONGEST = 1.5  # seconds of a round, at most
BYTES = 2**26  # of the sets of cells below each node, at most
LISTED = 32  # open tuples that cover a cell there is room for at first


def applies(task: Task) -> bool:
    """Whether k alone is asked, hierarchies are published, and the sets of cells below their nodes fit in memory."""
    columns, need = task.recoding.columns, task.requirement
    if need.sensitive_columns or need.rules or task.recoding.hierarchies is None or any(c.held for c in columns):
        return False
    nodes = sum(c.levels * c.size for c in columns)
    return nodes * min(task.histogram.cells, 2 * BLOCK) // 8 <= BYTES


def steps_of(task: Task) -> int:
    """Tuples that the effort allows to try; 0 for one in seconds."""
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
    """A grouping of rows not dearer than the one given, int64[n], labels from 0 without gaps.

    pool      tuples worth a try, as the bounds have found them
    deadline  clock reading (``shoal.clock``) at which to stop; else ``steps`` tuples are tried (by the effort)
    Counted in steps the same on any number of cores.  O(steps rows of a tuple).
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
    # A round has its heat and as many steps as its time allows at the pace so far; the table is dealt into blocks anew.
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
    """What the groups publish, each tuple once, int64[v, t], and the tuple of each row."""
    state, of = np.unique(rows.states(group), axis=0, return_inverse=True)
    return state, of.reshape(-1)[group]


def _mean_loss(rows: Rows, state: np.ndarray, label: np.ndarray) -> float:
    """What k rows of a class lose, in the mean, those above a ceiling left out."""
    from shoal.kernels.tables.eligible import prices

    price = prices(rows.slots, state)[label]
    fair = price[price < FORBIDDEN]
    return rows.k * float(fair.mean()) if fair.size else 0.0


def _round(
    task: Task, rows: Rows, state: np.ndarray, label: np.ndarray, pool: Candidates, each: int, heat: float, turn: int
) -> tuple[np.ndarray, int]:
    """One deal of the table, ``each`` steps in every block; the class of each row and the steps done."""
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
    """The class of every row of a block after some steps, and how many were done."""
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


CLOSE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # shares of l rows under which a class is closed, one by one
CLOSING = {"fast": 40, "balanced": 60, "thorough": 250}  # passes after each, at least
CLOSED = 0.6  # share of the seconds, if they are given, that the passes after closings take, the same each
STEP = 0.1
ROUND = 0.45  # added to rows / l before it is rounded down
AT_TOP = 10  # rows of a value that the class of everything may have at least
WORST = 0.3  # part of the short classes whose H is lowered
FLOW_ROUNDS = {"fast": 1, "balanced": 5, "thorough": 12}  # flows, at least
ARCS = {"fast": 2e7, "balanced": 2e8, "thorough": 0.0}  # looked at in the passes after each closing, if the most allows
PER_ROUND = 60  # passes that one round takes as long as
ONE = 1e-7  # seconds that one round takes for an arc, by the coarsest steps
FLOW, PLACED = 0.55, 1.5  # of it a hurried round and what follows takes; rounds that placing the rows takes as long as
HURRIED = 6  # such rounds; with less time than they take no finer steps are begun
FINE = {"fast": 64, "balanced": 128, "thorough": 1024}  # steps of cost between nothing and the dearest class, at least
PER_STEP = 3  # of those, more are taken where arcs are few
OUT, BONUS = 6, 9  # prices of a row left over, of a row that a class is short, by the dearest class
CLOSE_BY = 64  # part of the dearest class by which prices that multipliers say are off, about
NEAR = 0.15  # arcs this far above the cheapest are left out, by the dearest class


@dataclass(frozen=True, eq=False)
class Filled:
    """Rows of some arcs: cell int64[f], pair int64[f], rows int64[f]; held int64[p], size int64[v] of the classes."""

    cell: np.ndarray
    pair: np.ndarray
    rows: np.ndarray
    held: np.ndarray
    size: np.ndarray


def flow_start(task: Task, rows: Rows, multipliers: Multipliers, until: float | None = None) -> Partition | None:
    """The cheapest partition that some rounds of flows find.

    None where it does not apply or has no time.

    Named efforts count rounds; with ``until`` (``shoal.clock``) no round begins that might pass it.
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
    passes, rounds = afforded(CLOSING, effort, size, 1.0), afforded(FLOW_ROUNDS, effort, size, PER_ROUND)
    fine = afforded(FINE, "fast" if hurried else effort if until is None else "balanced", size, PER_STEP)
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


def closed(task: Task, multipliers: Multipliers, passes: int, until: float | None) -> Multipliers:
    """Classes that want too few rows closed step by step, each time followed by some passes for the others."""
    began = clock()
    for turn, part in enumerate(CLOSE, 1):
        program = multipliers.program
        wanted = (multipliers.share >= part * program.arcs.l) | program.widest  # everyone finds room at the top
        small, pairs = program.only(wanted)
        stop = None if until is None else began + turn / len(CLOSE) * (until - began)
        multipliers = raised(
            task, Multipliers(small, multipliers.multiplier[pairs], 0, multipliers.share[wanted]), passes, stop, STEP
        )
    return multipliers


def fill(task: Task, k: int, multipliers: Multipliers, most: np.ndarray, fine: int) -> Filled:
    """The cheapest way to send rows to classes with at most ``most`` int64[v] rows of a value each.

    fine  whole steps of cost between nothing and the dearest class: the flow is the cheapest to a step for each node
    """
    from shoal.kernels.tables.min_cost_flow import FlowNetwork, ship

    program, count = multipliers.program, task.histogram.count
    arcs, owner, cell = program.arcs, program.owner, program.cell
    dearest = float(program.loss.max()) or 1.0
    paid = program.reduced(multipliers.multiplier)[arcs.pair]
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
    capacity = np.concatenate([count[cell], most[owner[tight]], needed, none + int(count.sum()), count])
    cost = np.concatenate([price[owner[pair]], np.zeros(int(tight.sum()), np.int64), none - BONUS * fine, none,
                           np.full(m, OUT * fine)])  # fmt: skip
    # What multipliers make rows pay is nearly what the flow makes them pay, so its prices begin there.
    unit = fine / dearest / UNIT
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


def mended(program: ClassProgram, filled: Filled, most: np.ndarray) -> tuple[np.ndarray, bool]:
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


def trimmed(task: Task, program: ClassProgram, filled: Filled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def _held_cells(columns: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of each column and how many of its rows are of each: those of column c from at[c] to at[c + 1] - 1.

    columns  int64[c, K], -1 where fewer;  m  cells of the table.  at int64[c + 1], cell int64[x], many int64[x]
    """
    of, place = np.nonzero(columns >= 0)
    key, many = np.unique(of * m + columns[of, place], return_counts=True)
    return np.searchsorted(key, np.arange(len(columns) + 1) * m), key % m, many


def columns_start(task: Task, rows: Rows, columns: np.ndarray) -> np.ndarray | None:
    """Eligible columns that share no row as groups, the first ones first, and every other row where it costs least.

    columns  int64[c, K] cells each, -1 where fewer, of which a group need not be eligible
    int64[rows], labels from 0 without gaps; None where no column is a group, or the requirement is more than k and the
    values of one sensitive column, of which l = 2 at most: rows that fit into no group would lose too much together.

    Rows of one tuple that are eligible lose nothing, and hardly any column is of such rows.  So what is left of a tuple
    is a group as far as it is eligible, and a column leaves most of that: for each row that it takes, not more than l
    rows are eligible no longer.  O(c (K log K + cells of a tuple)).
    """
    h, need = task.histogram, task.requirement
    asked = need.sensitive_columns
    if need.rules or len(asked) > 1:
        return None
    l, distinct = (need.frequency[asked[0]], need.distinct[asked[0]]) if asked else (1, 1)
    if l > 2:
        return None
    value = h.sensitive[:, asked[0]].astype(np.int64) if asked else np.zeros(h.cells, np.int64)
    of = np.unique(h.quasi, axis=0, return_inverse=True)[1].reshape(-1)
    by = np.argsort(of, kind="stable")
    cells_of = np.split(by, np.flatnonzero(np.diff(of[by])) + 1)
    left, group = h.count.copy(), np.full(rows.cell.size, -1, np.int64)
    place, made = np.cumsum(left) - left, 0

    def eligible(cells: np.ndarray, count: np.ndarray) -> np.ndarray:
        """As many rows of each cell as are eligible together, most of all."""
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
        good_groups(h, need, cell, np.repeat(np.arange(len(columns)), np.diff(at)), many, len(columns))
    ):
        cells, count = cell[at[c] : at[c + 1]], many[at[c] : at[c + 1]]
        if (left[cells] < count).any():
            continue
        left[cells] -= count
        tuples, place_of = np.unique(of[cells], return_inverse=True)
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
