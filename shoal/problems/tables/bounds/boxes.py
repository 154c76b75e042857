"""Row prices without a sweep over a lattice: boxes of near rows, and column generation over boxes (docs/boxes.md).

A box is a range, a set, or a node for each column, and contains the rows whose values are in it. In the linear program
of ``raised``, a column is a set T of K rows, with K times the loss of a row in the smallest box c(T) as its cost. Every
row is in one column, and the columns chosen lose least. Numbers u with u(T) <= K c(T) for every T are feasible in the
dual, so their sum is a lower bound. If t-closeness is required, the columns of ``classes_of_boxes`` are all rows of a
box together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task
from shoal.problems.tables.bounds.near_cells import Pairs, near_looks, nearest_cells, neighbors, over_cells
from shoal.threads import cores

if TYPE_CHECKING:
    from shoal.kernels.tables.box_separation import RowMultipliers, Violated
    from shoal.kernels.tables.boxes import ClassesExceeded


BOXES = ((400, 60), (192, 60), (96, 60), (48, 60), (24, 60), (16, 16))  # near cells of each cell, nodes of its search
PLACES = 200  # pairs of cells that take as long as one near cell
BOX_PACE = 2e9  # pairs times columns that a core examines in a second
BOX_PART = 1 / 2  # share of the time for the cheapest boxes; the rest is for raises
BOX_WORK = {"fast": 3e9, "balanced": 7e9, "thorough": 9e10}  # limit of the pairs times columns examined
RAISES = {"fast": 2, "balanced": 2, "thorough": 14}  # limit of the raises
GAIN = 1e-3  # relative gain below which a raise is the last


def box_search(task: Task, effort: str, until: float | None) -> tuple[int, int] | None:
    """Number of near cells, and nodes, for the search of each cell's cheapest box; None if only pairs are affordable.

    With an effort in seconds, the smallest search may run for a part of the cells.
    """
    cells, d = task.histogram.cells, len(task.recoding.columns)
    left = None if until is None else BOX_PART * BOX_PACE * (os.cpu_count() or 1) * (until - clock())
    for near, nodes in BOXES if effort == "thorough" else BOXES[-2:]:
        least = max(near, 2 * task.requirement.smallest)
        work = float(cells) * d * (cells + PLACES * least)
        if work <= (BOX_WORK[effort] if left is None else left):
            return least, nodes
    return None if left is None or effort == "fast" or work > 2 * left else (least, nodes)


def box_prices(task: Task, p: Pairs, boxed: tuple[int, int], rounds: int, until: float | None) -> list[np.ndarray]:
    """The bound by neighbors, the cheapest box of every row, and prices raised from there, float64[m] each.

    boxed  near cells and nodes of the search for each cell; a row without time for it keeps the bound by neighbors
    The list is shorter if the time is over.
    """
    from shoal.kernels.tables.boxes import Prices, raises
    from shoal.kernels.tables.near_cells import CellsByPrice, Nearest, far_slack

    m, group = task.histogram.cells, p.cells.group
    looked = nearest_cells(p, max(boxed[0], group - 1), until)
    if looked is None:
        return []
    near, far, base = looked
    price, active = np.zeros(m), np.ones(m, bool)
    found = [p.back(base)]
    # The first raise, from prices of 0, is the cheapest box of every cell. The others divide the slack of active cells.
    for turn in range(rounds + 1):
        rise, order, prices = np.zeros(m), np.argsort(-price, kind="stable"), Prices(price, base, active, np.zeros(m))
        by_price = CellsByPrice(price, base, order, p.columns(order))

        def one(
            first: int, last: int, by_price: CellsByPrice = by_price, prices: Prices = prices, rise: Any = rise
        ) -> None:
            some, limit = slice(first, last), prices.limit
            far_slack(p.cells, p.index.column, first, last, by_price, Nearest(near, far), limit)
            limit[some] = np.maximum(limit[some] * (1 - 1e-12), 0.0) / group
            raises(p.cells, near, first, last, boxed[1], prices, rise)

        done = over_cells(m, until, one)
        task.progress("bound", None)
        rise = np.maximum(rise * (1 - 1e-12) - 1e-15, 0.0)
        if turn == 0:
            base = price = np.maximum(base, rise)
        else:
            price = price + rise
        found = [*found[: 1 + (turn > 0)], p.back(price)]
        active = active & (rise > 1e-9)
        if not done or (turn and float((rise * p.cells.count).sum()) < GAIN * float((price * p.cells.count).sum())):
            break
    return found


SMALL_GROUP = 12  # rows of a group up to which the search may take longer, and also runs beside a lattice
LARGE = 20  # for larger groups it begins from raised boxes, because few sweeps are possible
LARGEST = 100  # limit of the rows of a group
SWEEPS = 60  # limit of the sweeps; all searches from some anchors between two of them count as one
BETWEEN = 3  # searches between two sweeps from the anchors of violated groups, if groups need l values
DEAR = 1e7  # least look-ups of a sweep for such searches; after cheaper sweeps, another sweep proves more
SOME = (0.05, 0.5)  # their anchors as shares of all: fewer gain little, and with more a sweep takes hardly longer
WORK = {"fast": 4e8, "balanced": 5e9, "thorough": 2e11}  # look-ups of all sweeps and programs
AMPLE = {"balanced": 10}  # factor of them if little is proved
LOOSE = (0.8, 0.33)  # a smaller share of what is enough is little, if they are too few for a sweep, and otherwise
TIED = 1 / 5  # factor of them if any two different rows lose the same
OF_ROW = 8e6  # limit of them for each row: with few rows and many ties, the last ones gain little
LAST, LITTLE = 6, {"fast": 5e-3, "balanced": 5e-3}  # no sweep follows if so many gain less than this share
LONG, SLOW = 12, 0.6  # nor if so many gain less than this part of it, for any optimum of the program
OF_COLUMN = 1.25e3  # look-ups that take as long as a column of the program
LOOKS = {"fast": 2e9, "balanced": 2e10, "thorough": 1e11}  # look-ups for the nearest cells
PAIRS = {"fast": 3e10, "balanced": 2e12, "thorough": 4e12}  # limit of the pairs of cells times columns
PACE = 3.5e-9  # seconds of a look-up for the nearest cells
FEWEST, WORTH = 8, 1.15  # least sweeps, unless the first may prove so many times as much
FIRST = 1 / 4  # share of the time for the feasible multipliers at the start
REACH = 0.1  # first radius of the trust region, relative to the best multipliers
FURTHER = ((0.8, 2.0), (0.5, 1.3))  # factors of the radius after a sweep that proves such a share of the gain
NEARER = 0.7  # factor after any other sweep
DAMPING = 0.5  # step toward the optimal multipliers of the program, as a share
NODES = 20_000  # limit of the nodes of the search from an anchor
SAMPLED = 100  # anchors from which the time of a sweep is estimated, if there are more than twice as many
TOGETHER = 8  # anchors between two readings of the clock
SPENT = 0.8  # limit of a sweep, as a share of what is left
ENOUGH = 2e-4  # relative gap between the program's optimum and the bound at which sweeps end
NEAR = 1e-3  # tolerance of the program, relative to the radius
NEAREST = 1e-9  # the smallest tolerance that the solver accepts, about
MOST = 400_000  # limit of the columns kept
ASKED = 250  # anchors from which the bound of a factor is estimated
ASKING = 0.2  # share of the time for these estimates
FACTORS = tuple(1.0 + 0.05 * i for i in range(41))  # factors tried for the first multipliers
MORE = 1.2  # time of a sweep relative to the one before, about
WIDEST = 1000  # limit of the rows of a column around a lone row


def without_lattice(
    task: Task,
    effort: str,
    until: float | None,
    columns: list[np.ndarray] | None = None,
    enough: float = np.inf,
) -> dict[str, np.ndarray]:
    """Prices by the name of their argument, float64[m] each; empty if the time is over before the first.

    columns  out: the columns over boxes, int64[c, K] cells each, in order of their reduced cost
    enough   the loss of all rows at which no further bound is computed

    First the bound by neighbors, then column generation from there. If groups are too large for it, sweeps take too
    long, or they prove nothing, the cheapest boxes of near cells instead.
    """
    m, d = task.histogram.cells, len(task.recoding.columns)
    if float(m) * m * d > PAIRS[effort]:
        return {}
    p, sweeps = Pairs.of(task), sweeps_of(task, until)
    looks, out = near_looks(p), {}
    if until is None and looks > LOOKS[effort]:
        return {}
    if until is not None and PACE * looks > until - clock():
        sweeps = 0
    group = p.cells.group
    boxed = box_search(task, effort, until) if group > LARGE or not sweeps else None
    if boxed is not None:
        out = _of_boxes(task, p, boxed, effort, first_part(sweeps, until))
    elif (looked := nearest_cells(p, group - 1, until)) is not None:
        out = {"neighbors": p.back(looked[2])}
    if not out:
        return {}
    known = list(out.values())[-1]
    prices = columns_of_boxes(task, p, known, sweeps, until, columns, enough)
    known = known if prices is None else prices
    little = LOOSE[prices is not None] * enough
    name, shares = task.effort.name, p.cells.shares.high.size > 0  # under limits of shares, sweeps take too long
    if name in AMPLE and group <= SMALL_GROUP and not shares and float(task.histogram.count @ known) < little:
        more = columns_of_boxes(task, p, known, sweeps, until, columns, enough, AMPLE[name])
        prices = prices if more is None else more
    if prices is not None:
        out["columns of boxes"] = prices
    elif boxed is None and sweeps and (boxed := box_search(task, effort, until)) is not None:
        out |= _of_boxes(task, p, boxed, effort, until)
    if p.uneven and (near := neighbors(task, until)) is not None:
        out["neighbors"] = near
    return out


def _of_boxes(task: Task, p: Pairs, boxed: tuple[int, int], effort: str, until: float | None) -> dict[str, np.ndarray]:
    """The prices of ``box_prices`` by the name of their argument."""
    found = box_prices(task, p, boxed, RAISES[effort], until)
    return dict(zip(("neighbors", "boxes", "raised boxes"), found, strict=False))


def first_part(sweeps: int, until: float | None) -> float | None:
    """The clock reading until which the feasible multipliers for the start of column generation are computed."""
    return until if until is None or not sweeps else clock() + FIRST * (until - clock())


def columns_of_boxes(
    task: Task,
    p: Pairs,
    start: np.ndarray,
    sweeps: int,
    until: float | None,
    columns: list[np.ndarray] | None = None,
    enough: float = np.inf,
    times: float = 1.0,
) -> np.ndarray | None:
    """The bound of each row by column generation from feasible prices float64[m]; None if it proves no more.

    sweeps  limit of the sweeps over all anchors, from ``sweeps_of``
    columns, enough  as for ``without_lattice``;  times  factor of the look-ups of a named effort
    """
    if not sweeps:
        return None
    from shoal.kernels.tables.near_cells import EQUAL

    name = task.effort.name
    looks = np.inf if task.effort.seconds is not None else times * WORK[name]
    looks = min(looks, OF_ROW * task.histogram.rows) if name in LITTLE else looks
    vary = np.ptp(p.cells.code, axis=0) > 0
    if vary.sum() == 1 and (p.cells.shape[vary] == 2).all():  # all pairs lose the same
        looks *= TIED
    rest = enough - float(p.alone @ task.histogram.count)
    feasible, little = (start - p.alone)[p.order], LITTLE.get(name, 0.0)
    classes = p.nested and p.cells.shares.kind == EQUAL
    halfway = until if until is None or not classes else (clock() + until) / 2
    found = raised(p, feasible, sweeps, halfway, looks, little, rest)
    task.progress("bound", None)
    if found is not None and columns is not None:
        columns.append(np.where(found[1] < 0, -1, p.order[found[1]]))
    prices = feasible if found is None else found[0]
    whole = classes_of_boxes(p, prices, sweeps, until, looks, little, rest) if classes else None
    task.progress("bound", None)
    return None if found is None and whole is None else p.back(prices if whole is None else whole)


def sweeps_of(task: Task, until: float | None) -> int:
    """Limit of the sweeps over all anchors; 0 for groups of more than ``LARGEST`` rows, where it proves little."""
    late = until is not None and clock() > until
    return 0 if late or not 1 < task.requirement.smallest <= LARGEST else SWEEPS


LoneGroups = tuple[tuple[np.ndarray, float], ...]  # cells int32[..] of each, and what its rows lose in all


@dataclass(frozen=True, eq=False)
class BoxColumns:
    """Columns of the program: groups of up to K rows with the loss of their box times K, or classes with weighted rows.

    cells int32[c, K], -1 for none;  loss float64[c];  weight float64[c, K], None if all are 1
    lone, lone_loss  larger groups around a lone row: cells int32[..] and loss of each
    """

    cells: np.ndarray
    loss: np.ndarray
    weight: np.ndarray | None = None
    lone: tuple[np.ndarray, ...] = ()
    lone_loss: tuple[float, ...] = ()

    @classmethod
    def none(cls, group: int) -> BoxColumns:
        return cls(np.empty((0, group), np.int32), np.empty(0))

    @property
    def many(self) -> int:
        """The number of columns."""
        return self.loss.size + len(self.lone)

    def joined(self, cells: np.ndarray, loss: np.ndarray, lone: LoneGroups = ()) -> BoxColumns:
        """These columns and further groups, each once; the last ``MOST`` of them. O(c K log c)."""
        further = {some.tobytes(): (some, lost) for some, lost in (*zip(self.lone, self.lone_loss, strict=True), *lone)}
        groups, losses = zip(*list(further.values())[-MOST:], strict=True) if further else ((), ())
        cells = np.concatenate([self.cells, np.sort(cells, axis=1)])
        _, first = np.unique(cells, axis=0, return_index=True)
        first = np.sort(first)[-MOST:]
        return BoxColumns(cells[first], np.concatenate([self.loss, loss])[first], None, groups, losses)

    def with_classes(self, cells: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> BoxColumns:
        """These columns and further classes; the last ``MOST`` of them."""
        if self.weight is not None:
            cells, weight = np.concatenate([self.cells, cells]), np.concatenate([self.weight, weight])
            loss = np.concatenate([self.loss, loss])
        return BoxColumns(cells[-MOST:], loss[-MOST:], weight[-MOST:])

    def multipliers(
        self, count: np.ndarray, least: np.ndarray, most: np.ndarray, near: float, seconds: float | None
    ) -> np.ndarray | None:
        """Dual solution: the multipliers float64[m] of largest sum, within ``least`` and ``most``, for these columns.

        count  int64[m] or float64[m] rows of each cell;  near  relative tolerance
        None if the program takes longer than ``seconds``. The solution is approximate, because a sweep proves its
        bound.
        """
        from scipy.sparse import csr_array

        from shoal.problems.programs import LinearConstraints, solve

        if seconds is not None and seconds <= 0.0:
            return None
        if not self.many:
            return most
        c, held = self.many, self.cells >= 0
        sizes = np.concatenate([[0], held.sum(axis=1), [some.size for some in self.lone]])
        start = np.cumsum(sizes).astype(np.int32)
        cells = np.concatenate([self.cells[held], *self.lone])  # a copy: the matrix sums in place
        weight = np.ones(cells.size) if self.weight is None else self.weight[held]
        matrix = csr_array((weight, cells, start), shape=(c, most.size))
        matrix.sum_duplicates()  # several rows of a cell
        limits = LinearConstraints(matrix, np.full(c, -np.inf), np.concatenate([self.loss, self.lone_loss]))
        found = solve(-count, limits, least, most, whole=False, seconds=seconds, tolerance=near)
        if found.x is None or not np.isfinite(found.x).all():
            return None
        return np.clip(found.x, least, most)  # also if the solver ends before its tolerance is reached


def raised(
    p: Pairs,
    start: np.ndarray,
    sweeps: int,
    until: float | None,
    looks: float = np.inf,
    little: float = 0.0,
    enough: float = np.inf,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The bound of each row by column generation, float64[m] in the order of ``p``, and its columns, int32[c, K].

    The columns are in order of their reduced cost.

    start   float64[m] feasible multipliers
    sweeps  limit of the sweeps over all anchors;  until  clock reading at which the last one ends
    looks   limit of the look-ups of all sweeps, about
    little  relative gain: no sweep follows if ``LAST`` sweeps gain less, and the program's optimum is not far above
    enough  no sweep follows once so much is proved
    None if no sweep proves more than ``start`` in time. A sweep takes O(m^2 d) at worst, and the search in each ball.
    """
    count, group = p.cells.count.astype(np.float64), p.cells.group
    shares = p.cells.shares.high.size > 0
    free = (p.cells.count < group) | (p.cells.distinct > 1) | shares  # K equal rows lose nothing
    best = np.where(free, start, 0.0)
    signed = p.cells.alike < group or shares or p.two_values
    mean = float(count @ best) / max(float(count.sum()), 1.0)
    proved = first = float(count @ best)
    # Far from the best multipliers the columns known say little, so there is a trust region around them.
    shown, reach = None, REACH
    columns, seconds = BoxColumns.none(p.sizes[-1].group), np.inf if until is None else until - clock()
    history, promised = [proved], np.inf
    scale, gain, next_looks, next_seconds = _scale(p, best, looks, 0.9 * seconds)
    if gain < WORTH and (FEWEST * next_looks > looks or FEWEST * next_seconds > seconds):
        return None  # other bounds prove more in the time
    at = scale * best
    # Column generation: a sweep finds columns that the multipliers violate, and the program over all columns moves the
    # multipliers within the trust region, whose radius changes with the share of the gain that the next sweep proves.
    while sweeps > 0:
        sweeps -= 1
        began, violated = clock(), np.empty(0, np.int64)
        if next_looks > looks or (until is not None and began + next_seconds > until):
            break
        looks -= OF_COLUMN * columns.loss.size
        swept, dear = _sweep_within_limits(p, at, SPENT * looks, until, _sweep)
        if not dear:
            if swept is None:
                break
            excess, found, groups, lone, looked = swept
            total = float(count @ at) - float(count @ excess)
            more = float(count @ at) - proved
            reach *= next((times for share, times in FURTHER if total > proved + share * more), NEARER)
            if total > proved:
                best, proved, shown = at, total, at - excess
            new = violated = np.flatnonzero(found > 0.0)
            columns = columns.joined(groups[new], _paid(groups[new], at) - found[new], lone)
            looks -= looked
            next_looks, next_seconds = MORE * looked, MORE * (clock() - began)
            history.append(proved)
            if proved >= enough or _slow(history, promised, proved, little):
                break
        else:  # smaller multipliers have fewer rows around them
            reach *= NEARER**2
        # Without time for another sweep, the program would prove nothing.
        if next_looks > looks:
            break
        left = None if until is None else until - clock() - next_seconds
        room = reach * (np.abs(best) + mean)
        least = np.minimum(best, 0.0) - room if signed else np.zeros(best.size)
        near = max(NEAR * min(reach, 1.0), NEAREST)
        least, most = np.where(free, least, 0.0), np.where(free, best + room, 0.0)
        moved = columns.multipliers(count, least, most, near, left)
        few, many = (share * int((at > 0.0).sum()) for share in SOME)
        dear = next_looks > MORE * DEAR
        between = BETWEEN if p.cells.alike < group and dear and few < violated.size < many else 0
        sweeps -= between > 0
        for _ in range(between):
            left = None if until is None else until - clock() - next_seconds
            if moved is None or (left is not None and left < 0.0):
                break
            groups, loss, looked = _at_some(p, DAMPING * moved + (1 - DAMPING) * best, violated)
            looks -= looked + OF_COLUMN * columns.many
            columns = columns.joined(groups, loss)
            moved = columns.multipliers(count, least, most, near, left)
        # The program's gain grows about in proportion to the radius.
        promised = 0.0 if moved is None else (float(count @ moved) - proved) / min(reach, 1.0)
        if moved is None or promised < ENOUGH * proved:
            break
        at = DAMPING * moved + (1 - DAMPING) * best
    if shown is None or proved <= first:
        return None
    unpaid = columns.loss - _paid(columns.cells, shown)
    return shown, columns.cells[np.argsort(unpaid, kind="stable")]


def classes_of_boxes(
    p: Pairs, start: np.ndarray, sweeps: int, until: float | None, looks: float, little: float, enough: float
) -> np.ndarray | None:
    """The bound of each row by whole classes of boxes, float64[m] in the order of ``p``; None if no sweep proves more.

    The steps are those of ``raised``, from multipliers float64[m] that prove their sum. A sweep examines all boxes
    around each anchor, as ``raised`` examines the groups in its ball.
    """
    count = p.cells.count.astype(np.float64)
    mean = float(count @ start) / float(count.sum())
    # The first sweep can prove less than ``start``, so the bound begins at -inf.
    at, best, proved, reach = start, start, -np.inf, REACH
    columns, promised = BoxColumns.none(0), np.inf
    history: list[float] = []
    next_looks, next_seconds = 0.0, 0.0
    # The same loop as in ``raised``, with the classes of largest excess as columns.
    for _ in range(sweeps):
        began = clock()
        if next_looks > looks or (until is not None and began + next_seconds > until):
            break
        swept, dear = _sweep_within_limits(p, at, SPENT * looks, until, _sweep_of_classes)
        if dear:
            reach *= NEARER**2
        else:
            if swept is None:
                break
            excess, cells, weight, loss, looked = swept
            total, more = float(count @ (at - excess)), float(count @ at) - proved
            if history:
                reach *= next((times for share, times in FURTHER if total > proved + share * more), NEARER)
            if total > proved:
                best, proved = at - excess, total
            columns = columns.with_classes(cells, loss, weight)
            looks -= looked + OF_COLUMN * columns.loss.size
            next_looks, next_seconds = MORE * looked, MORE * (clock() - began)
            history.append(proved)
            if proved >= enough or _slow(history, promised, proved, little):
                break
        if next_looks > looks:
            break
        room = reach * (np.abs(best) + mean)
        left = None if until is None else until - clock() - next_seconds
        near = max(NEAR * min(reach, 1.0), NEAREST)
        moved = (
            columns.multipliers(count, best - 2 * room, best + room, near, left) if columns.loss.size else best + room
        )
        promised = 0.0 if moved is None else (float(count @ moved) - proved) / min(reach, 1.0)
        if moved is None or promised < ENOUGH * proved:
            break
        at = DAMPING * moved + (1 - DAMPING) * best
    return best if proved > float(count @ start) else None


def _slow(history: list[float], promised: float, proved: float, little: float) -> bool:
    """Whether no sweep follows: the last ones gained little, and the program's optimum is not far above."""
    if len(history) > LAST and max(proved - history[-1 - LAST], promised) < little * proved:
        return True
    return len(history) > LONG and proved - history[-1 - LONG] < SLOW * little * proved


def _scale(p: Pairs, start: np.ndarray, looks: float, seconds: float) -> tuple[float, float, float, float]:
    """The best factor for feasible multipliers before the first sweep, its estimated gain, look-ups, and seconds.

    looks, seconds  limits of the sweep: larger multipliers have more rows around them
    The bound of each factor is estimated from anchors at even distances in the order of their multipliers. Only a sweep
    over all anchors proves it.
    """
    count = p.cells.count.astype(np.float64)
    anchors = _anchors(p, start)
    some = np.unique(np.linspace(0, max(anchors - 1, 0), min(ASKED, anchors)).astype(np.int64))
    best, most, spent = 1.0, 0.0, (np.inf, np.inf)
    last = clock() + ASKING * seconds
    for factor in FACTORS if anchors else ():
        asked, out = _ranked(p, factor * start), _no_violation(p)
        began, here = clock(), asked.order[some]
        share = anchors / some.size
        looked = 0.0
        for more in _looked(p, here, asked, out):
            looked += share * more
            if looked > looks or clock() > last:
                return best, most / max(float(count @ start), 1e-300), *spent
        took = share * (clock() - began) / cores(float(start.size) ** 2)
        proved = factor * float(count @ start) - share * float(count[here] @ _more_violated(out).excess[here])
        if proved <= most or (factor > 1.0 and took > seconds):
            break
        best, most, spent = factor, proved, (looked, took)
    return best, most / max(float(count @ start), 1e-300), *spent


def _ranked(p: Pairs, at: np.ndarray) -> RowMultipliers:
    """The multipliers for the kernels."""
    from shoal.kernels.tables.box_separation import RowMultipliers

    order = np.argsort(-at, kind="stable")
    rank = np.empty(at.size, np.int64)
    rank[order] = np.arange(at.size)
    largest_price = np.zeros(p.index.center.shape[1])
    np.maximum.at(largest_price, p.index.own, at)
    return RowMultipliers(at, order, rank, largest_price)


def _no_violation(p: Pairs) -> tuple[Violated, ...]:
    """Empty results for groups of each size; smaller groups are padded with -1."""
    from shoal.kernels.tables.box_separation import Violated

    m, most = p.order.size, p.sizes[-1].group
    none = np.empty((0, 0), np.int32), np.empty(0)
    return tuple(Violated(np.zeros(m), np.full(m, -1.0), np.full((m, most), -1, np.int32), *none) for _ in p.sizes)


def _anchors(p: Pairs, at: np.ndarray, classes: bool = False) -> int:
    """The number of anchors: cells with multipliers above 0, or all cells if a group can have a lone row."""
    return at.size if p.two_values and not classes else int((at > 0.0).sum())


def _separate(
    p: Pairs, first: int, last: int, asked: RowMultipliers, out: tuple[Violated, ...]
) -> tuple[float, LoneGroups]:
    """Write the most violated group of each anchor and size to ``out``; look-ups, and the groups around lone rows."""
    from shoal.kernels.tables.box_separation import separate, separate_around_lone

    looks, lone = 0.0, np.full((last - first, WIDEST if p.two_values else 0), -1, np.int32)
    more = np.full(last - first, -1.0)
    for cells, found in zip(p.sizes, out, strict=True):
        here = found._replace(lone=lone, more=more)
        looks += separate(cells, p.index, first, last, asked, NODES, p.areas, here)
        if cells.lone:
            looks += separate_around_lone(cells, p.index, first, last, asked, NODES, here)
    groups = []
    for x in np.flatnonzero(more > 0.0):
        some = np.append(lone[x][lone[x] >= 0], asked.order[first + x]).astype(np.int32)
        groups.append((some, float(asked.price[some].sum() - more[x])))
    return looks, tuple(groups)


def _looked(p: Pairs, anchors: np.ndarray, asked: RowMultipliers, out: tuple[Violated, ...] | None) -> Iterator[float]:
    """The look-ups of the anchors int64[x], ``TOGETHER`` of them in each call, which takes longer than one search.

    out  the violated groups found; None: whole classes are examined, and none are kept
    """
    for at in range(0, anchors.size, TOGETHER):
        some = asked._replace(order=anchors[at : at + TOGETHER])
        many = some.order.size
        yield _exceeded(p, 0, many, some)[1] if out is None else _separate(p, 0, many, some, out)[0]


def _more_violated(out: tuple[Violated, ...]) -> Violated:
    """The more violated group of each anchor, of either size."""
    first, last = out[0], out[-1]
    other = last.found > first.found
    return first._replace(
        excess=np.maximum(first.excess, last.excess),
        found=np.maximum(first.found, last.found),
        group=np.where(other[:, None], last.group, first.group),
    )


def _sweep_within_limits(
    p: Pairs, at: np.ndarray, looks: float, until: float | None, sweep: Callable[..., Any]
) -> tuple[Any, bool]:
    """A sweep over all anchors, ``_sweep`` or ``_sweep_of_classes``, and whether it exceeds its limits.

    looks  limit of its look-ups; its limit of the time left is the share ``SPENT``

    If there are many anchors, some of them show whether a sweep would exceed the limits. If there are few, the sweep
    begins and ends at the limit, because an estimate would take as long. The sweep is None if it did not end.
    """
    began, classes = clock(), sweep is _sweep_of_classes
    if _anchors(p, at, classes) > 2 * SAMPLED:
        looked, took = _estimated(p, at, looks, np.inf if until is None else SPENT * (until - began), classes)
        if looked > looks or (until is not None and took > SPENT * (until - began)):
            return None, True
        return sweep(p, at, until), False
    swept = sweep(p, at, until if until is None else began + SPENT * (until - began), looks)
    return swept, swept is None and _anchors(p, at, classes) > 0


def _estimated(p: Pairs, at: np.ndarray, looks: float, seconds: float, classes: bool = False) -> tuple[float, float]:
    """The look-ups and seconds of a sweep, estimated from anchors at even distances; infinite above the limits.

    classes  whether the sweep is over whole classes
    """
    asked, out, began, looked = _ranked(p, at), _no_violation(p), clock(), 0.0
    anchors, took = _anchors(p, at), 0.0
    some = np.unique(np.linspace(0, max(anchors - 1, 0), min(SAMPLED, anchors)).astype(np.int64))
    share, workers = anchors / max(some.size, 1), cores(float(at.size) ** 2)
    for more in _looked(p, asked.order[some], asked, None if classes else out):
        looked += share * more
        took = share * (clock() - began) / workers
        if looked > looks or took > seconds:
            return np.inf, np.inf
    return looked, took


def _at_some(p: Pairs, at: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Violated groups of some anchors int64[x], K times the loss of each, and the look-ups; they prove nothing."""
    asked, out = _ranked(p, at), _no_violation(p)
    looks = sum(_looked(p, anchors, asked, out))
    found = _more_violated(out)
    new = anchors[found.found[anchors] > 0.0]
    return found.group[new], _paid(found.group[new], at) - found.found[new], looks


class _Limit:
    """The look-ups of a sweep on all its cores, and whether they are ``over`` the limit ``most``.

    The sum over all anchors decides, so the result does not depend on which core takes which anchors.
    """

    def __init__(self, most: float) -> None:
        self.most, self.taken, self._lock = most, 0.0, Lock()

    def take(self, looked: float) -> None:
        """Count the look-ups of some anchors."""
        with self._lock:
            self.taken += looked

    @property
    def over(self) -> bool:
        """Whether the sweep ends here."""
        return self.taken > self.most


def _sweep(
    p: Pairs, at: np.ndarray, until: float | None, most: float = np.inf
) -> tuple[np.ndarray, np.ndarray, np.ndarray, LoneGroups, float] | None:
    """The violation and the most violated group of every anchor, groups around lone rows, and the look-ups; or None.

    None if the time, or ``most`` look-ups, are used up before the last anchor.
    """
    asked, out, parts, limit = _ranked(p, at), _no_violation(p), [], _Limit(most)

    def some(first: int, last: int) -> None:
        if not limit.over:
            looked, groups = _separate(p, first, last, asked, out)
            limit.take(looked)
            parts.append((first, groups))

    if not over_cells(_anchors(p, at), until, some, whole=True) or limit.over:
        return None
    found, parts = _more_violated(out), sorted(parts, key=lambda of: of[0])
    lone = tuple(group for _, groups in parts for group in groups)
    excess = found.excess + 1e-12 * (1.0 + np.abs(at))  # at least the rounding error
    return excess, found.found, found.group, lone, limit.taken


def _exceeded(p: Pairs, first: int, last: int, asked: RowMultipliers) -> tuple[ClassesExceeded, float]:
    """The excess of the boxes of each of these anchors, and the look-ups."""
    from shoal.kernels.tables.boxes import ClassesExceeded, exceeded

    n, most = last - first, p.cells.group + p.cells.shares.high.size + 1
    cells, weight = np.full((n, most), -1, np.int32), np.zeros((n, most))
    out = ClassesExceeded(np.zeros(p.order.size), np.full(n, -1.0), np.zeros(n), cells, weight)
    return out, exceeded(p.cells, p.index, first, last, asked, NODES, out)


def _sweep_of_classes(
    p: Pairs, at: np.ndarray, until: float | None, most: float = np.inf
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float] | None:
    """What each row pays for the classes of its boxes; the worst classes (cells, weights, loss); look-ups; or None.

    None if the time, or ``most`` look-ups, are used up before the last anchor.
    """
    asked, excess, found, limit = _ranked(p, at), np.zeros(at.size), [], _Limit(most)
    lock = Lock()

    def some(first: int, last: int) -> None:
        if limit.over:
            return
        out, looked = _exceeded(p, first, last, asked)
        limit.take(looked)
        new = out.found > 0.0
        with lock:
            np.maximum(excess, out.excess, out=excess)
            found.append((first, out.cell[new], out.weight[new], out.loss[new]))

    whole = over_cells(_anchors(p, at, True), until, some, whole=True)
    if not whole or not found or limit.over:
        return None
    _, cells, weight, loss = zip(*sorted(found, key=lambda of: of[0]), strict=True)
    # at least the rounding error
    excess += 1e-11 * (1.0 + np.abs(at))
    return excess, np.concatenate(cells), np.concatenate(weight), np.concatenate(loss), limit.taken


def _paid(groups: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The sum of the multipliers of each group int32[c, K], padded with -1; float64[c]."""
    return np.append(at, 0.0)[groups].sum(axis=1)
