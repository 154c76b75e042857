"""Row prices where there is no lattice to sweep: by near rows, by boxes, and raised until every box is paid.

``docs/bounds.md`` has the proofs.

Multipliers of rows by column generation over boxes, and over whole classes of boxes: the best bound for ranges, sets
and nodes without a lattice.

The program: columns are groups T of K rows, each row is in one, and the columns chosen lose least.  A group of K rows
or more is covered by its K dearest rows and others, so K rows are enough.  A multiplier u for every row is feasible
where no T has u(T) > K c(T), and then the sum of u is a lower bound.  ``docs/bounds.md`` has the proofs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.clock import clock
from shoal.model.privacy.base import CLOSE
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Regions, Sets
from shoal.model.task import Task
from shoal.problems.tables.groups import ancestors, least_rows
from shoal.problems.threads import cores, each, flag

if TYPE_CHECKING:
    from shoal.kernels.tables.box_separation import RowMultipliers, Violated
    from shoal.kernels.tables.boxes import ClassesExceeded
    from shoal.kernels.tables.connected_sets import AreaColumn
    from shoal.kernels.tables.near_cells import CellTable, CenterIndex, ValueShares


BOXES = ((400, 60), (192, 60), (96, 60), (48, 60), (24, 60), (16, 16))  # cells near to each, nodes of its search
PLACES = 200  # pairs of cells that are looked at while one near cell is
BOX_PACE = 2e9  # pairs times columns that a core looks at in a second
BOX_PART = 1 / 2  # of the time, for the first looks; the others raise
BOX_WORK = {"fast": 3e9, "balanced": 7e9, "thorough": 9e10}  # pairs times columns that named efforts may look at
RAISES = {"fast": 2, "balanced": 2, "thorough": 14}
GAIN = 1e-3  # share of the bound that a raise has to bring, or it is the last
LARGE = 2000  # codes of a column above which its pairs have no table
VALUES = 200  # of a sensitive column, above which their shares are not looked at
FEW = 1500  # cells below which every pair is looked at
CENTERS, MOST_CENTERS = 4, 2000  # centers for the root of the number of cells, and at most
PART, STEPS = 20, 3  # cells for each center from which it is found, in so many steps
INDEX_PACE = 8e8  # look-ups of a second that sort cells around centers


def box_search(task: Task, effort: str, until: float | None) -> tuple[int, int] | None:
    """Near cells and nodes for each cell's cheapest box that the effort allows; None for pairs alone.

    An effort in seconds takes the last for as many cells as they suffice for.
    """
    cells, d = task.histogram.cells, len(task.recoding.columns)
    left = None if until is None else BOX_PART * BOX_PACE * (os.cpu_count() or 1) * (until - clock())
    for near, nodes in BOXES if effort == "thorough" else BOXES[-2:]:
        least = max(near, 2 * task.requirement.smallest)
        work = float(cells) * d * (cells + PLACES * least)
        if work <= (BOX_WORK[effort] if left is None else left):
            return least, nodes
    return None if left is None or effort == "fast" or work > 2 * left else (least, nodes)


@dataclass(frozen=True, eq=False)
class Pairs:
    """What two rows lose together, as the kernels ask it; cells sorted around centers.

    order int64[m]  the cells of the table;  alone float64[m]  what a row of each loses whatever its group
    uneven          whether a step of a grid costs some codes more than others by themselves
    areas           the dearest column of areas, None without any
    even            the same cells for groups whose size the share divides; None where it divides the least size
    nested          whether a box is the same from each of its rows
    """

    cells: CellTable
    index: CenterIndex
    order: np.ndarray
    alone: np.ndarray
    uneven: bool
    areas: AreaColumn | None = None
    even: CellTable | None = None
    nested: bool = False

    @classmethod
    def of(cls, task: Task, *, of_one: bool = False) -> Pairs:
        """O(m log m), and the square of every column's number of codes.

        of_one  what a row of the first code loses beyond what it loses by itself, which is no bound for other rows of
                its group; without it, what every row of a box with both codes loses at least beyond that
        """
        from shoal.kernels.tables.near_cells import CellTable

        h, need = task.histogram, task.requirement
        parts, at, kind, width, code = [], [], [], [], []
        place, alone, uneven, metric = 0, np.zeros(h.cells), False, True
        for j, column in enumerate(task.recoding.columns):
            values, small = np.unique(h.quasi[:, j], return_inverse=True)
            n = values.size
            at.append(place)
            kind.append(0)
            if isinstance(column, Ranges):
                pure = column.pure
                if pure.any() and n <= LARGE:
                    # A box is paid for by all its rows alike, also by those that a step of the grid costs most.
                    low, high = np.minimum(values[:, None], values), np.maximum(values[:, None], values)
                    own = pure[values]
                    uneven |= bool(np.ptp(own) > 0)
                    metric = False  # a step that two ranges share is paid for once
                    beyond = column.width(low, high) - (own[:, None] if of_one else own.max())
                    flat = np.maximum(beyond, 0.0).reshape(-1) * column.weight
                    alone += (pure * column.weight)[h.quasi[:, j]]
                else:
                    kind[-1] = 1
                    flat = column.position[values] * (column.weight / column.span)
            elif isinstance(column, Regions):
                flat = (column.near[np.ix_(values, values)] * column.weight).reshape(-1)
            elif not isinstance(column, Levels) or n > LARGE:
                # one price for every pair of different values; for large trees the least loss of any node above a leaf
                kind[-1] = 2
                low = 0.0 if column.size < 2 else float(column.steps()[values].min()) * column.weight
                flat = np.array([low])
            else:
                parent, loss, of = column.nodes()
                metric &= bool((loss[parent] >= loss).all())
                leaf = of[values]
                flat = loss[ancestors(parent)[np.ix_(leaf, leaf)]].reshape(-1)
            width.append(n)
            parts.append(flat)
            code.append(small)
            place += flat.size
        group = least_rows(h, need)
        distinct, share, value = 1, 1, np.zeros(h.cells, np.int64)
        shares = _nothing_of_shares()
        for j in need.sensitive_columns:
            asked = max(need.frequency[j], need.distinct[j])
            found = _shares(task, j) if asked > distinct or not shares.high.size else shares
            if asked > distinct or (distinct == 1 and found.high.size and not shares.high.size):
                distinct, share, shares = asked, need.frequency[j], found
                value = h.sensitive[:, j].astype(np.int64)
        codes, sets = np.stack(code, axis=1), [isinstance(c, Sets) for c in task.recoding.columns]
        dear = np.array([_mean(*of, codes[:, j]) for j, of in enumerate(zip(parts, kind, width, strict=True))])
        by = np.argsort(-dear, kind="stable")
        order = np.lexsort(codes[:, by[::-1]].T)
        codes = np.ascontiguousarray(codes[order][:, by], dtype=np.int32)
        cells = CellTable(
            losses=np.concatenate(parts),
            at=np.array(at)[by],
            shape=np.array(kind)[by],
            width=np.array(width)[by],
            code=codes,
            sets=np.array(sets)[by],
            count=h.count[order],
            value=value[order],
            distinct=distinct,
            group=group,
            alike=group // share,
            shares=shares,
        )
        index, sort = center_index(cells, metric)
        cells = cells._replace(code=cells.code[sort], count=cells.count[sort], value=cells.value[sort])
        columns = [_areas(task.recoding.columns[j], h.quasi[:, j], place) for place, j in enumerate(by)]
        areas = next((found for found in columns if found is not None), None)
        most = -(-group // share)
        even = cells._replace(group=share * most, alike=most) if group % share else None
        return cls(cells, index, order[sort], alone, uneven, areas, even, metric and areas is None)

    @property
    def sizes(self) -> tuple[CellTable, ...]:
        """The cells for groups of each size that is looked at, the least first."""
        return (self.cells,) if self.even is None else (self.cells, self.even)

    def columns(self, order: np.ndarray) -> np.ndarray:
        """The codes of the cells int64[m] in this order, a column together, uint32[d, m]."""
        return np.ascontiguousarray(self.cells.code[order].T, dtype=np.uint32)

    def back(self, prices: np.ndarray) -> np.ndarray:
        """Prices in the order of the table's cells, with what rows lose whatever their group."""
        out = np.zeros(prices.size)
        out[self.order] = prices
        return out + self.alone


def _nothing_of_shares() -> ValueShares:
    """Shares of a column of which nothing is asked."""
    from shoal.kernels.tables.near_cells import NOTHING, ValueShares

    return ValueShares(np.empty(0), np.empty(0), np.empty(0, np.int64), NOTHING, 0.0, np.empty(0))


def _shares(task: Task, j: int) -> ValueShares:
    """What every eligible group keeps of the shares of sensitive column j's values."""
    from shoal.kernels.tables.near_cells import ENTROPY, EQUAL, NOTHING, ORDERED, ValueShares

    need, v = task.requirement, max(task.histogram.sensitive_sizes[j], 1)
    high, low, kind, number, table = np.full(v, 1 / need.frequency[j]), np.zeros(v), NOTHING, 0.0, np.zeros(v)
    if v > VALUES:
        return _nothing_of_shares()
    for rule in need.rules:
        if rule.columns != (j,):
            continue
        asked = rule.measure
        if asked.kind == "band":
            least, most = np.array(asked.table).reshape(-1, 2).T
            low, high = np.maximum(low, least - CLOSE), np.minimum(high, most + CLOSE)
        elif asked.kind == "equal":
            kind, number, table = EQUAL, asked.number + CLOSE, np.array(asked.table)
            low, high = np.maximum(low, table - number), np.minimum(high, table + number)
        elif asked.kind == "ordered":
            kind, number, table = ORDERED, asked.whole * (asked.number + CLOSE), np.array(asked.table)
        elif asked.kind == "entropy":
            kind, number, table = ENTROPY, asked.number - CLOSE, (np.array(rule.table) > 0).astype(float)
        elif asked.kind == "recursive" and asked.whole > 1:  # the commonest has at most c times what all others have
            high = np.minimum(high, asked.number / (1.0 + asked.number) + CLOSE)
    high, low = np.maximum(high, CLOSE), np.where(low > CLOSE, low, 0.0)
    if kind == NOTHING and (high >= 1).all() and not low.any():
        return _nothing_of_shares()
    return ValueShares(high, low, np.flatnonzero(low), kind, number, table)


def _areas(column: ColumnRecoding, code: np.ndarray, place: int) -> AreaColumn | None:
    """A column of areas as the kernels take it; None of another one.

    code int[m]  of the cells, in the column;  place  of the column among those of the kernels
    """
    from shoal.kernels.tables.connected_sets import AreaColumn

    if not isinstance(column, Regions) or column.unit <= 0.0:
        return None
    area, apart, _ = column.numbered
    return AreaColumn(place, area[np.unique(code)], apart, column.unit, column.weight)


def center_index(cells: CellTable, metric: bool) -> tuple[CenterIndex, np.ndarray]:
    """The cells around centers, and in which order, int64[m]; all around one where these are few or no metric.

    metric  whether losses keep to the triangle inequality
    Some steps of a search for medians (Lloyd 1982, column by column) over part of the cells, the same on any number of
    cores.  O(m c d) for c centers.
    """
    from shoal.kernels.tables.near_cells import CenterIndex, nearest_centers, next_centers, recentered

    column = np.ascontiguousarray(cells.code.T, dtype=np.uint32)
    m, metric = column.shape[1], metric and column.shape[1] >= FEW
    many = _centers(m) if metric else 1
    center = np.ascontiguousarray(column[:, np.linspace(0, max(m - 1, 0), many).astype(np.int64)])

    def nearest(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, far = np.zeros(column.shape[1], np.int32), np.zeros(column.shape[1])
        if metric:
            over_cells(own.size, None, lambda a, b: nearest_centers(cells, column, center, a, b, own, far))
        return own, far

    some = np.ascontiguousarray(column[:, :: max(m // (PART * many), 1)])
    for _ in range(STEPS if metric else 0):
        own, _ = nearest(some)
        member = np.argsort(own, kind="stable")
        recentered(cells, some, np.searchsorted(own[member], np.arange(many + 1)), member, center)
    own, far = nearest(column)
    order = np.lexsort((far, own))
    own, far = own[order], far[order]
    rim, following = np.full(many, -1.0), np.zeros((many, many), np.int32)
    np.maximum.at(rim, own, far)
    if metric:
        over_cells(many, None, lambda a, b: next_centers(cells, center, a, b, following))
    start = np.searchsorted(own, np.arange(many + 1))
    return CenterIndex(np.ascontiguousarray(column[:, order]), center, start, far, own, rim, following, metric), order


def _centers(cells: int) -> int:
    """Centers that so many cells are sorted around."""
    return max(1, min(int(CENTERS * np.sqrt(cells)), MOST_CENTERS))


def _index_looks(task: Task) -> float:
    """Look-ups that sorting a task's cells around centers takes at most."""
    m, many = task.histogram.cells, _centers(task.histogram.cells)
    return float(m >= FEW) * len(task.recoding.columns) * many * (m + STEPS * min(m, PART * many))


def _mean(losses: np.ndarray, shape: int, width: int, code: np.ndarray) -> float:
    """What cells lose in a column together with others, in the mean."""
    other = np.roll(code, code.size // 2)
    if shape == 2:
        return float(losses[0]) * float((code != other).mean())
    return float((losses[code * width + other] if shape == 0 else np.abs(losses[code] - losses[other])).mean())


def over_cells(cells: int, until: float | None, one: Callable[[int, int], None], *, whole: bool = False) -> bool:
    """Slices of the cells on all cores; whether any was reached before time ran out, or all where ``whole``."""
    workers = cores(float(cells) ** 2)
    # Handing out one cell takes longer than its search, so up to sixteen go together.  A large table has many slices,
    # so that time is looked at often.
    step, stop = max(1, min(16, cells // (workers * 40)), cells // (workers * 400)), flag()

    def slice_from(first: int) -> bool:
        if _late(stop, until):
            return False
        one(first, min(first + step, cells))
        return True

    return (all if whole else any)(each(slice_from, range(0, cells, step), workers))


def _late(stop: Event, until: float | None) -> bool:
    return stop.is_set() or (until is not None and clock() > until)


def neighbors(task: Task, until: float | None) -> np.ndarray | None:
    """Per cell, what a row of it loses at least together with its nearest rows, float64[m]; None when time ran out.

    Cells not reached keep the bound 0.  Where sorting the cells around centers would take all the time, nothing begins.
    """
    if until is not None and _index_looks(task) / INDEX_PACE > until - clock():
        return None
    p = Pairs.of(task, of_one=True)
    found = nearest_cells(p, p.cells.group - 1, until)
    task.progress("bound", None)
    return None if found is None else p.back(found[2])


def nearest_cells(p: Pairs, most: int, until: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """So many cells near each, how far the others are, and what the nearest prove; None when time ran out."""
    from shoal.kernels.tables.near_cells import near_cells

    m = p.order.size
    near, far, out = np.full((m, most), -1, np.int32), np.zeros(m), np.zeros(m)
    done = over_cells(m, until, lambda a, b: near_cells(p.cells, p.index, a, b, near, far, out))
    return (near, far, out) if done else None


def box_prices(task: Task, p: Pairs, boxed: tuple[int, int], rounds: int, until: float | None) -> list[np.ndarray]:
    """What near rows prove, the cheapest box of every row, and prices raised from there, float64[m] each.

    What time ran out for is left out.
    boxed  near cells and nodes of the search for each cell; a row without the time for it keeps what near rows
           prove
    """
    from shoal.kernels.tables.boxes import Prices, raises
    from shoal.kernels.tables.near_cells import Falling, Nearest, far_slack

    m, group = task.histogram.cells, p.cells.group
    looked = nearest_cells(p, max(boxed[0], group - 1), until)
    if looked is None:
        return []
    near, far, base = looked
    price, active = np.zeros(m), np.ones(m, bool)
    found = [p.back(base)]
    for turn in range(rounds + 1):
        rise, order, prices = np.zeros(m), np.argsort(-price, kind="stable"), Prices(price, base, active, np.zeros(m))
        falling = Falling(price, base, order, p.columns(order))

        def one(first: int, last: int, falling: Falling = falling, prices: Prices = prices, rise: Any = rise) -> None:
            some, limit = slice(first, last), prices.limit
            far_slack(p.cells, p.index.column, first, last, falling, Nearest(near, far), limit)
            limit[some] = np.maximum(limit[some] * (1 - 1e-12), 0.0) / group
            raises(p.cells, near, first, last, boxed[1], prices, rise)

        done = over_cells(m, until, one)
        task.progress("bound", None)
        rise = np.maximum(rise * (1 - 1e-12) - 1e-15, 0.0)
        if (
            turn == 0
        ):  # from prices of 0 a raise is the cheapest box; what it had no time for keeps what near rows prove
            base = price = np.maximum(base, rise)
        else:
            price = price + rise
        found = [*found[: 1 + (turn > 0)], p.back(price)]
        active = active & (rise > 1e-9)
        if not done or (turn and float((rise * p.cells.count).sum()) < GAIN * float((price * p.cells.count).sum())):
            break
    return found


LARGEST = 12  # rows of a group
SWEEPS = 60  # at most; looking at some anchors between two of them, in all, counts as one
BETWEEN = 3  # times, where l is asked, that anchors of violated groups are looked at between two sweeps
DEAR = 1e7  # look-ups of a sweep from which on they are: so many cheap sweeps prove more
SOME = (0.05, 0.5)  # shares of the anchors: fewer bring little, and for more a sweep takes hardly longer
WORK = {"fast": 4e8, "balanced": 2.5e9, "thorough": 2e11}  # look-ups of all sweeps, and of the programs between them
TIED = 1 / 5  # share of them where two different rows of a table always lose the same
OF_ROW = 8e6  # of them for each row, at most: on few rows with many ties, the last ones take long and bring little
LAST, LITTLE = 6, {"fast": 5e-3, "balanced": 5e-3}  # where so many sweeps gain less than this share, none follows
LONG, SLOW = 12, 0.6  # nor where so many gain less than this part of the share, whatever the program promises
OF_COLUMN = 1.25e3  # look-ups that take as long as a column in a program
LOOKS = {"fast": 2e9, "balanced": 2e10, "thorough": 1e11}  # look-ups for the nearest cells
PAIRS = {"fast": 3e10, "balanced": 2e11, "thorough": 4e11}  # pairs of cells times columns beyond which nothing begins
PACE = 3.5e-9  # seconds of a look-up for the nearest cells, above which these leave no time for sweeps
FEWEST, WORTH = 8, 1.15  # sweeps; fewer are begun where the first may prove so many times as much
FIRST = 1 / 4  # of the time, for the feasible multipliers to begin with
REACH = 0.1  # share by which multipliers may rise above the best that are proved, between two sweeps, at first
FURTHER = ((0.8, 2.0), (0.5, 1.3))  # times the reach after a sweep that proves such a share of what they have more
NEARER = 0.7  # after any other
DAMPING = 0.5  # share of the way to the best multipliers for the columns known that they go
NODES = 20_000  # of the search of one anchor
SAMPLED = 100  # anchors that tell what a sweep will take
SPENT = 0.8  # share of what is left that it may take
ENOUGH = 2e-4  # share that the columns promise above what is proved at which nothing is left to gain
NEAR = 1e-3  # tolerance of the program, relative to the reach: what multipliers gain is a share of that
NEAREST = 1e-9  # the smallest that the solver takes, about
MOST = 400_000  # columns kept
ASKED = 250  # anchors that tell what a factor would prove
ASKING = 0.2  # share of the time in which they are asked
FACTORS = tuple(1.0 + 0.05 * i for i in range(41))  # by which the first multipliers are raised
MORE = 1.2  # times as much as the last sweep the next one takes, about


def without_lattice(
    task: Task,
    effort: str,
    until: float | None,
    columns: list[np.ndarray] | None = None,
    enough: float = np.inf,
) -> dict[str, np.ndarray]:
    """Prices by the name of their argument, float64[m] each; empty where time ran out before the first.

    columns  out: the columns over boxes, int64[c, K] cells each, those first whose price comes nearest to their loss
    enough   the loss of all rows from which on no more is proved

    Near rows first, then columns over boxes, from there.  Boxes of as many near cells as there is time for where groups
    are too large for columns, sweeps would take too long, or nothing came of them.
    """
    m, d = task.histogram.cells, len(task.recoding.columns)
    if float(m) * m * d > PAIRS[effort]:
        return {}
    p, sweeps = Pairs.of(task), sweeps_of(task, until)
    looks, out = _near_looks(p), {}
    if until is None and looks > LOOKS[effort]:
        return {}
    if until is not None and PACE * looks > until - clock():
        sweeps = 0
    boxed = None if sweeps else box_search(task, effort, until)
    if boxed is None:
        looked = nearest_cells(p, p.cells.group - 1, until)
        if looked is None:
            return {}
        out["neighbors"] = p.back(looked[2])
        prices = columns_of_boxes(task, p, out["neighbors"], sweeps, until, columns, enough)
        if prices is not None:
            out["columns of boxes"] = prices
        elif sweeps:
            boxed = box_search(task, effort, until)
    if boxed is not None:
        found = box_prices(task, p, boxed, RAISES[effort], until)
        out |= dict(zip(("neighbors", "boxes", "raised boxes"), found, strict=False))
    if p.uneven and (near := neighbors(task, until)) is not None:
        out["neighbors"] = near
    return out


def _near_looks(p: Pairs) -> float:
    """Look-ups for the nearest cells of all, about: those of some cells at even distances tell."""
    from shoal.kernels.tables.near_cells import near_cells

    m, most = p.order.size, max(p.cells.group - 1, 0)
    some = np.linspace(0, m - 1, min(ASKED, m)).astype(np.int64)
    near, far, out = np.full((m, most), -1, np.int32), np.zeros(m), np.zeros(m)
    return float(sum(near_cells(p.cells, p.index, x, x + 1, near, far, out) for x in some)) * m / some.size


def first_part(sweeps: int, until: float | None) -> float | None:
    """Until when the feasible multipliers are sought from which the columns begin."""
    return until if until is None or not sweeps else clock() + FIRST * (until - clock())


def columns_of_boxes(
    task: Task,
    p: Pairs,
    start: np.ndarray,
    sweeps: int,
    until: float | None,
    columns: list[np.ndarray] | None = None,
    enough: float = np.inf,
) -> np.ndarray | None:
    """What column generation from feasible prices float64[m] proves for each row in the mean, float64[m].

    sweeps  over all anchors at most, as ``sweeps_of`` says
    columns, enough  as ``without_lattice`` has them
    None where there is none, or none proved more.
    """
    if not sweeps:
        return None
    from shoal.kernels.tables.near_cells import EQUAL

    name = task.effort.name
    looks = np.inf if task.effort.seconds is not None else WORK[name]
    looks = min(looks, OF_ROW * task.histogram.rows) if name in LITTLE else looks
    vary = np.ptp(p.cells.code, axis=0) > 0
    if vary.sum() == 1 and (p.cells.shape[vary] == 2).all():  # all are as near: sweeps are dear and find little
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
    """Sweeps over all anchors that the effort affords, at most; ``raised`` sees how many that are.

    Groups of more than ``LARGEST`` rows have too many nodes.
    """
    late = until is not None and clock() > until
    return 0 if late or not 1 < task.requirement.smallest <= LARGEST else SWEEPS


@dataclass(frozen=True, eq=False)
class BoxColumns:
    """Groups of up to K rows, each with the loss of its box times its rows; or classes, with the weights of their rows.

    cells int32[c, K], -1 where a group has fewer;  loss float64[c];  weight float64[c, K], None where all are 1
    """

    cells: np.ndarray
    loss: np.ndarray
    weight: np.ndarray | None = None

    @classmethod
    def none(cls, group: int) -> BoxColumns:
        """No columns."""
        return cls(np.empty((0, group), np.int32), np.empty(0))

    def joined(self, cells: np.ndarray, loss: np.ndarray) -> BoxColumns:
        """With more groups, each once; the last ``MOST``.  O(c K log c)."""
        cells = np.concatenate([self.cells, np.sort(cells, axis=1)])
        _, first = np.unique(cells, axis=0, return_index=True)
        first = np.sort(first)[-MOST:]
        return BoxColumns(cells[first], np.concatenate([self.loss, loss])[first])

    def with_classes(self, cells: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> BoxColumns:
        """With more classes; the last ``MOST``."""
        if self.weight is not None:
            cells, weight = np.concatenate([self.cells, cells]), np.concatenate([self.weight, weight])
            loss = np.concatenate([self.loss, loss])
        return BoxColumns(cells[-MOST:], loss[-MOST:], weight[-MOST:])

    def multipliers(
        self, count: np.ndarray, least: np.ndarray, most: np.ndarray, near: float, seconds: float | None
    ) -> np.ndarray | None:
        """The multipliers float64[m] of largest sum, from ``least`` to ``most`` each, that no column forbids.

        count  int64[m] or float64[m] rows of each cell;  near  relative tolerance
        None where the program took longer than the seconds.  About the best: a sweep proves what they are worth.
        """
        from scipy.sparse import csr_array

        from shoal.problems.programs import LinearConstraints, solve

        if seconds is not None and seconds <= 0.0:
            return None
        c, held = len(self.cells), self.cells >= 0
        start = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int32)
        cells = self.cells[held]  # a copy: the matrix sums in place
        weight = np.ones(cells.size) if self.weight is None else self.weight[held]
        matrix = csr_array((weight, cells, start), shape=(c, most.size))
        matrix.sum_duplicates()  # several rows of a cell
        limits = LinearConstraints(matrix, np.full(c, -np.inf), self.loss)
        found = solve(-count, limits, least, most, whole=False, seconds=seconds, tolerance=near)
        if found.x is None or not np.isfinite(found.x).all():
            return None
        return np.clip(found.x, least, most)  # also where the last steps gain too little to be called the best


def raised(
    p: Pairs,
    start: np.ndarray,
    sweeps: int,
    until: float | None,
    looks: float = np.inf,
    little: float = 0.0,
    enough: float = np.inf,
) -> tuple[np.ndarray, np.ndarray] | None:
    """What each row is proved to lose in the mean over the table, float64[m] in the order of ``p``; and its columns,
    int32[c, K], by how much of their loss this leaves unpaid.

    start   float64[m] feasible multipliers
    sweeps  over all anchors, at most;  until  moment at which the last one ends;  looks  look-ups of all, about
    little  share of what is proved: none follows where ``LAST`` sweeps bring less more, and the program promises less
    enough  no sweep follows once as much is proved
    None where time or look-ups did not suffice for a sweep that proves more than ``start``.
    A sweep takes O(m^2 d) at worst and the search of each ball.
    """
    count, group = p.cells.count.astype(np.float64), p.cells.group
    shares = p.cells.shares.high.size > 0
    free = (p.cells.count < group) | (p.cells.distinct > 1) | shares  # K rows alike lose nothing
    best = np.where(free, start, 0.0)
    signed = p.cells.alike < group or shares
    mean = float(count @ best) / max(float(count.sum()), 1.0)
    proved = first = float(count @ best)
    # Far from what is proved the columns known say little, so multipliers move within a reach that follows success.
    shown, reach = None, REACH
    columns, seconds = BoxColumns.none(p.sizes[-1].group), np.inf if until is None else until - clock()
    history, promised = [proved], np.inf
    scale, gain, next_looks, next_seconds = _scale(p, best, looks, 0.9 * seconds)
    if gain < WORTH and (FEWEST * next_looks > looks or FEWEST * next_seconds > seconds):
        return None  # others prove more in the time, or no factor was known in time
    at = scale * best
    while sweeps > 0:
        sweeps -= 1
        began, violated = clock(), np.empty(0, np.int64)
        if next_looks > looks or (until is not None and began + next_seconds > until):
            break
        looked, took = _estimated(p, at, SPENT * looks, np.inf if until is None else SPENT * (until - began))
        looks -= OF_COLUMN * columns.loss.size
        if looked <= SPENT * looks and (until is None or took <= SPENT * (until - began)):
            swept = _sweep(p, at, until)
            if swept is None:
                break
            excess, found, groups, looked = swept
            total = float(count @ at) - float(count @ excess)
            more = float(count @ at) - proved
            reach *= next((times for share, times in FURTHER if total > proved + share * more), NEARER)
            if total > proved:
                best, proved, shown = at, total, at - excess
            new = violated = np.flatnonzero(found > 0.0)
            columns = columns.joined(groups[new], _paid(groups[new], at) - found[new])
            looks -= looked
            next_looks, next_seconds = MORE * looked, MORE * (clock() - began)
            history.append(proved)
            if proved >= enough or _slow(history, promised, proved, little):
                break
        else:  # the dearer multipliers are, the more rows are around them
            reach *= NEARER**2
        # A program that leaves no time for the next sweep is of no use.
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
            looks -= looked + OF_COLUMN * columns.loss.size
            columns = columns.joined(groups, loss)
            moved = columns.multipliers(count, least, most, near, left)
        # Within a short reach the program promises little; further on, in proportion.
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
    """What each row is proved to lose in the mean by whole classes of boxes, float64[m] in the order of ``p``.

    As ``raised``, from multipliers float64[m] that prove their sum; None where no sweep proved more.  What it takes is
    like a sweep of ``raised``, with all boxes around each anchor for the groups in its ball.
    """
    count = p.cells.count.astype(np.float64)
    mean = float(count @ start) / float(count.sum())
    # What classes prove for the first multipliers may be a little less than these: the reach follows their own success.
    at, best, proved, reach = start, start, -np.inf, REACH
    columns, promised = BoxColumns.none(0), np.inf
    history: list[float] = []
    next_looks, next_seconds = 0.0, 0.0
    for _ in range(sweeps):
        began = clock()
        if next_looks > looks or (until is not None and began + next_seconds > until):
            break
        looked, took = _estimated(p, at, SPENT * looks, np.inf if until is None else SPENT * (until - began), True)
        if looked > SPENT * looks or (until is not None and took > SPENT * (until - began)):
            reach *= NEARER**2
        else:
            swept = _sweep_of_classes(p, at, until)
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
    """Whether no sweep follows, where the last ones brought little and the program promises little."""
    if len(history) > LAST and max(proved - history[-1 - LAST], promised) < little * proved:
        return True
    return len(history) > LONG and proved - history[-1 - LONG] < SLOW * little * proved


def _scale(p: Pairs, start: np.ndarray, looks: float, seconds: float) -> tuple[float, float, float, float]:
    """By how much feasible multipliers are best multiplied before the first sweep.

    And about how many times as much that proves, its look-ups and its seconds.

    looks, seconds  that the sweep may take: dearer multipliers have more rows around them
    Anchors at even distances among the dear and the cheap tell what each factor would prove.  Whatever they tell, only
    a sweep over all anchors proves.
    """
    count = p.cells.count.astype(np.float64)
    anchors = int((start > 0.0).sum())
    some = np.unique(np.linspace(0, max(anchors - 1, 0), min(ASKED, anchors)).astype(np.int64))
    best, most, spent = 1.0, 0.0, (np.inf, np.inf)
    last = clock() + ASKING * seconds
    for factor in FACTORS if anchors else ():
        asked, out = _asked(factor * start), _nothing(p)
        began, here = clock(), asked.order[some]
        share = anchors / some.size
        looked = 0.0
        for x in some:
            looked += share * _separate(p, x, x + 1, asked, out)
            if looked > looks or clock() > last:
                return best, most / max(float(count @ start), 1e-300), *spent
        took = share * (clock() - began) / cores(float(start.size) ** 2)
        proved = factor * float(count @ start) - share * float(count[here] @ _worse(out).excess[here])
        if proved <= most or (factor > 1.0 and took > seconds):
            break
        best, most, spent = factor, proved, (looked, took)
    return best, most / max(float(count @ start), 1e-300), *spent


def _asked(at: np.ndarray) -> RowMultipliers:
    """The multipliers as the kernels take them."""
    from shoal.kernels.tables.box_separation import RowMultipliers

    order = np.argsort(-at, kind="stable")
    rank = np.empty(at.size, np.int64)
    rank[order] = np.arange(at.size)
    return RowMultipliers(at, order, rank)


def _nothing(p: Pairs) -> tuple[Violated, ...]:
    """Nothing found yet, for groups of each size; places that smaller groups leave free are -1."""
    from shoal.kernels.tables.box_separation import Violated

    m, most = p.order.size, p.sizes[-1].group
    return tuple(Violated(np.zeros(m), np.full(m, -1.0), np.full((m, most), -1, np.int32)) for _ in p.sizes)


def _separate(p: Pairs, first: int, last: int, asked: RowMultipliers, out: tuple[Violated, ...]) -> float:
    """The most violated group of each of these anchors, of each size; the look-ups."""
    from shoal.kernels.tables.box_separation import separate

    looks = 0.0
    for cells, found in zip(p.sizes, out, strict=True):
        looks += separate(cells, p.index, first, last, asked, NODES, p.areas, found)
    return looks


def _worse(out: tuple[Violated, ...]) -> Violated:
    """Of each anchor the more violated group of either size."""
    first, last = out[0], out[-1]
    other = last.found > first.found
    return first._replace(
        excess=np.maximum(first.excess, last.excess),
        found=np.maximum(first.found, last.found),
        group=np.where(other[:, None], last.group, first.group),
    )


def _estimated(p: Pairs, at: np.ndarray, looks: float, seconds: float, classes: bool = False) -> tuple[float, float]:
    """Look-ups and seconds that a sweep takes, about, as anchors at even distances tell; infinite above the limits.

    classes  whether the sweep is over whole classes
    """
    asked, out, began, looked = _asked(at), _nothing(p), clock(), 0.0
    anchors, took = int((at > 0.0).sum()), 0.0
    some = np.unique(np.linspace(0, max(anchors - 1, 0), min(SAMPLED, anchors)).astype(np.int64))
    share, workers = anchors / max(some.size, 1), cores(float(at.size) ** 2)
    for x in some:
        looked += share * (_exceeded(p, x, x + 1, asked)[1] if classes else _separate(p, x, x + 1, asked, out))
        took = share * (clock() - began) / workers
        if looked > looks or took > seconds:
            return np.inf, np.inf
    return looked, took


def _at_some(p: Pairs, at: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Violated groups of some anchors int64[x], what each loses times K, and the look-ups; which proves nothing."""
    asked, out = _asked(at), _nothing(p)
    places = asked.rank[anchors]
    looks = sum(_separate(p, x, x + 1, asked, out) for x in places)
    found = _worse(out)
    new = anchors[found.found[anchors] > 0.0]
    return found.group[new], _paid(found.group[new], at) - found.found[new], looks


def _sweep(p: Pairs, at: np.ndarray, until: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, float] | None:
    """The most violated group of every anchor, and the look-ups; None when time ran out before the last."""
    asked, out, looks = _asked(at), _nothing(p), []
    anchors = int((at > 0.0).sum())  # the others anchor nothing: no multiplier is below 0

    def some(first: int, last: int) -> None:
        looks.append(_separate(p, first, last, asked, out))

    done = over_cells(anchors, until, some, whole=True)
    found = _worse(out)
    # rounding may have hidden as much
    return (found.excess + 1e-12 * (1.0 + np.abs(at)), found.found, found.group, sum(looks)) if done else None


def _exceeded(p: Pairs, first: int, last: int, asked: RowMultipliers) -> tuple[ClassesExceeded, float]:
    """What the boxes of each of these anchors exceed, and the look-ups."""
    from shoal.kernels.tables.boxes import ClassesExceeded, exceeded

    n, most = last - first, p.cells.group + p.cells.shares.high.size + 1
    cells, weight = np.full((n, most), -1, np.int32), np.zeros((n, most))
    out = ClassesExceeded(np.zeros(p.order.size), np.full(n, -1.0), np.zeros(n), cells, weight)
    return out, exceeded(p.cells, p.index, first, last, asked, NODES, out)


def _sweep_of_classes(
    p: Pairs, at: np.ndarray, until: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float] | None:
    """What each row pays for the classes of the boxes that hold it, the worst class of every anchor, with its weights
    and the loss of its box, and the look-ups; None when time ran out before the last."""
    asked, excess, found, lock = _asked(at), np.zeros(at.size), [], Lock()

    def some(first: int, last: int) -> None:
        out, looked = _exceeded(p, first, last, asked)
        new = out.found > 0.0
        with lock:
            np.maximum(excess, out.excess, out=excess)
            found.append((first, out.cell[new], out.weight[new], out.loss[new], looked))

    if not over_cells(int((at > 0.0).sum()), until, some, whole=True) or not found:
        return None
    _, cells, weight, loss, looked = zip(*sorted(found, key=lambda of: of[0]), strict=True)
    # rounding may have hidden as much
    excess += 1e-11 * (1.0 + np.abs(at))
    return excess, np.concatenate(cells), np.concatenate(weight), np.concatenate(loss), float(sum(looked))


def _paid(groups: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The multipliers of the groups int32[c, K], -1 where a group has fewer rows; float64[c]."""
    return np.append(at, 0.0)[groups].sum(axis=1)
