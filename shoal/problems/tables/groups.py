"""Groups of cells: which groups meet a requirement, and how rows without a group are placed.

``groups_that_meet`` is the only function of tables that decides whether groups are eligible. ``Rows`` expands a
histogram to single rows, cuts groups into small ones, and places rows without a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.clock import clock
from shoal.kernels import quick
from shoal.kernels.tables.connected_sets import AreaSets
from shoal.kernels.tables.eligible import Rules, Slots, prices
from shoal.kernels.tables.eligible import good as rules_hold
from shoal.kernels.tables.insertion import JoinableGroups, RowModels, UngroupedRows, insert
from shoal.model.histogram import Histogram, Partition, mixed_radix
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding, Slot
from shoal.model.task import Task

# as numbered in kernels.eligible
_KINDS = ("band", "entropy", "recursive", "equal", "ordered", "tuples", "charge", "tree")
RULE_KINDS = (*_KINDS, *(f"persons' {kind}" for kind in _KINDS))


def rules_of(need: Requirement, sizes: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """The rules of a requirement for the kernels, with columns numbered among ``need.sensitive_columns``.

    None without any.

    sizes  number of codes of every sensitive column of the table
    """
    if not need.rules:
        return None
    asked = list(need.sensitive_columns)
    measures = [rule.measure for rule in need.rules]
    lengths = [len(m.table) for m in measures]
    return Rules(
        kind=np.array([RULE_KINDS.index(m.kind) for m in measures], np.int64),
        column=np.array(
            [-1 if r.model.applies_to == "tuples" else asked.index(r.columns[0]) for r in need.rules], np.int64
        ),
        person=np.array([asked.index(r.columns[1]) if r.model.applies_to == "persons" else -1 for r in need.rules]),
        number=np.array([m.number for m in measures], np.float64),
        whole=np.array([m.whole for m in measures], np.int64),
        at=np.cumsum([0, *lengths])[:-1].astype(np.int64),
        table=np.array([v for m in measures for v in m.table], np.float64),
        size=np.array([max(sizes[j], 1) for j in asked], np.int64),
    )


def groups_that_meet(
    histogram: Histogram,
    need: Requirement,
    cells: np.ndarray,
    group: np.ndarray,
    count: np.ndarray | None = None,
    groups: int | None = None,
) -> np.ndarray:
    """bool[groups]: which groups meet the requirement; rows ``count`` int64[x] of ``cells`` int64[x] in group int64[x].

    count, groups  None: all rows of the cells; the groups that occur.  O(x log x).
    """
    count = histogram.count[cells] if count is None else count
    groups = int(group.max(initial=-1)) + 1 if groups is None else groups
    rows = np.bincount(group, weights=count, minlength=groups)
    good = rows >= need.k
    here = np.flatnonzero(count > 0)
    if here.size < cells.size:
        cells, group, count = cells[here], group[here], count[here]
    # If it is small, a table of groups times values; otherwise pairs by sorting.
    for j in need.sensitive_columns:
        if need.frequency[j] <= 1 and need.distinct[j] <= 1:
            continue
        size = np.int64(max(histogram.sensitive_sizes[j], 1))
        key = group * size + histogram.sensitive[cells, j]
        if groups * int(size) <= 4 * cells.size + 1024:
            held = np.bincount(key, weights=count, minlength=groups * int(size)).reshape(groups, int(size))
            top, different = held.max(axis=1, initial=0), (held > 0).sum(axis=1)
        else:
            pair, inverse = np.unique(key, return_inverse=True)
            held = np.bincount(inverse.reshape(-1), weights=count, minlength=pair.size)
            owner = pair // size
            top = np.zeros(groups)
            np.maximum.at(top, owner, held)
            different = np.bincount(owner, minlength=groups)
        good &= (need.frequency[j] * top <= rows) & (different >= need.distinct[j])
    if need.rules and good.any():
        kept = np.flatnonzero(good[group])
        order = kept[np.argsort(group[kept], kind="stable")]
        start = np.searchsorted(group[order], np.arange(groups + 1))
        values = np.ascontiguousarray(histogram.sensitive[:, list(need.sensitive_columns)])
        rules = rules_of(need, histogram.sensitive_sizes)
        good &= rules_hold(rules, values, cells[order], count[order].astype(np.int64), start)
    return good


def by_spare(
    histogram: Histogram, need: Requirement, cell: np.ndarray, group: np.ndarray, count: np.ndarray, pool: np.ndarray
) -> np.ndarray:
    """Groups by how much they help other rows: least share of these rows' most frequent values, then fewest rows.

    cell, group, count  triples int64[p] of the groups
    pool  int64[m]: the other rows of each cell

    O(p log p).
    """
    groups = int(group.max(initial=-1)) + 1
    crowded = np.zeros(histogram.cells, bool)
    for j in need.sensitive_columns:
        held = np.bincount(histogram.sensitive[:, j], weights=pool, minlength=1)
        crowded |= (held == held.max())[histogram.sensitive[:, j]]
    rows = np.bincount(group, weights=count, minlength=groups)
    share = np.bincount(group, weights=count * crowded[cell], minlength=groups) / np.maximum(rows, 1)
    return np.lexsort((rows, share))


def joining(
    histogram: Histogram, need: Requirement, cell: np.ndarray, group: np.ndarray, count: np.ndarray, pool: np.ndarray
) -> np.ndarray:
    """bool[groups]: the fewest first groups of an order that, with the rows without a group, form an eligible group.

    cell, group, count  triples int64[p] of the groups, each eligible
    pool  int64[m]: the rows of each cell without a group

    The order is that of ``by_spare``. An eligible pool stays eligible when eligible groups join it, so bisection finds
    the number. At the latest, the whole table is eligible. O(p log(groups)).
    """
    groups = int(group.max(initial=-1)) + 1
    rank = np.empty(groups, np.int64)
    rank[by_spare(histogram, need, cell, group, count, pool)] = np.arange(groups)
    every, one = np.arange(histogram.cells), np.zeros(histogram.cells, np.int64)
    low, high = 0, groups
    while low < high:
        middle = (low + high) // 2
        joined = rank[group] < middle
        held = pool + np.bincount(cell[joined], weights=count[joined], minlength=histogram.cells).astype(np.int64)
        if groups_that_meet(histogram, need, every, one, held, 1)[0]:
            high = middle
        else:
            low = middle + 1
    return rank < low


# numbers of the slots in the kernels; 1 is a tree too large for a table of pairs
SLOT_KINDS = {"tree": 0, "set": 2, "line": 3, "areas": 4, "further areas": 5}
AREA_SLOTS = ("areas", "further areas")
SMALL_TREE = 600  # nodes
LOOKS = 120_000_000  # up to this many cells times groups, every group is examined for every row
PLACING = 0.5  # with an effort in seconds, share of the time up to which every group is examined
NEXT = 0.9  # with further models, if a number of pieces isn't eligible, this share of it is tried next
LARGEST_PIECE = 200  # up to this many rows of the most frequent value in a piece, all sizes are tried
MANY = 2  # if cutting by nearness gives this many times fewer pieces than possible, rows are also dealt in turn
TURN, TURNS = 256, 32  # least rows placed between two checks of the clock, and largest number of such turns


def least_rows(histogram: Histogram, need: Requirement) -> int:
    """A lower bound of the size of a group: no value may exceed its share.

    Of n rows, a value has at most n / l, rounded down, and at most the rows in the table. Five rows with at most a
    third of each value need five values; six rows need three. O(values) for each size that is impossible.
    """
    n = most = need.smallest
    for j in need.sensitive_columns:
        held, l = np.bincount(histogram.sensitive[:, j], weights=histogram.count), need.frequency[j]
        while l > 1 and np.minimum(held, n // l).sum() < n:
            n += 1
            if n > 2 * (most + l):  # no table with these values can be eligible; other code refuses it
                return most
    return n


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table with their cells, and the kernels' input for its recoding and its requirement.

    k         rows of the least group, which shares may increase
    cell      int64[n]: cell of each row, ascending
    leaf      int64[m, t]: slots of each cell
    frequency, distinct    int64[s], of the s sensitive columns with a condition
    rules     the models that these don't express, for the kernels; None without any
    sensitive int32[m, s]: codes of each cell in these columns
    until     clock reading after which only near groups are examined for rows without a group
    """

    histogram: Histogram
    recoding: Recoding
    k: int
    frequency: np.ndarray
    distinct: np.ndarray
    sensitive: np.ndarray
    slots: Slots
    leaf: np.ndarray
    need: Requirement
    rules: Rules | None
    until: float = np.inf

    @classmethod
    def of(cls, task: Task) -> Rows:
        need = task.requirement
        asked = list(need.sensitive_columns)
        slots, leaf = encode(task.recoding, task.histogram)
        return cls(
            histogram=task.histogram,
            recoding=task.recoding,
            k=least_rows(task.histogram, need),
            frequency=np.array([need.frequency[j] for j in asked], np.int64),
            distinct=np.array([need.distinct[j] for j in asked], np.int64),
            sensitive=np.ascontiguousarray(task.histogram.sensitive[:, asked]),
            slots=slots,
            leaf=leaf,
            need=need,
            rules=rules_of(need, task.histogram.sensitive_sizes),
            until=np.inf if task.effort.seconds is None else task.started + PLACING * task.effort.seconds,
        )

    def of_cells(self, histogram: Histogram, cells: np.ndarray) -> Rows:
        """This request for some of the cells: ``histogram`` has those numbered in ``cells``, int64[m']."""
        return replace(self, histogram=histogram, sensitive=self.sensitive[cells], leaf=self.leaf[cells])

    @cached_property
    def cell(self) -> np.ndarray:
        return np.repeat(np.arange(self.histogram.cells), self.histogram.count)

    def spread(self, partition_cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> np.ndarray:
        """int64[n]: group of every row, -1 if the triples place none."""
        order = np.argsort(partition_cell, kind="stable")
        out = np.full(self.cell.size, -1, np.int64)
        cell, copies = partition_cell[order], count[order]
        first = np.cumsum(self.histogram.count) - self.histogram.count
        before = np.cumsum(copies) - copies
        new = np.ones(cell.size, bool)
        new[1:] = np.diff(cell) != 0
        before -= np.repeat(before[new], np.diff(np.append(np.flatnonzero(new), cell.size)))
        begin = first[cell] + before
        place = np.repeat(begin - (np.cumsum(copies) - copies), copies) + np.arange(copies.sum())
        out[place] = np.repeat(group[order], copies)
        return out

    def labels(self, partition: Partition) -> np.ndarray:
        """int64[n]: the group of every row of a partition, as the start of a search."""
        return self.spread(partition.cell, partition.group, partition.count)

    def partition(self, group: np.ndarray) -> Partition:
        """The partition of labeled rows; groups that publish the same stay separate."""
        return Partition.of(self.cell, group, np.ones(group.size, np.int64))

    def states(self, group: np.ndarray) -> np.ndarray:
        """int64[g, t]: what each group publishes; labels 0 .. g-1, every one used."""
        order = np.argsort(group, kind="stable")
        order = order[group[order] >= 0]
        start = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1))
        return self.covers(self.cell[order], start)

    def covers(self, cell: np.ndarray, start: np.ndarray) -> np.ndarray:
        """int64[g, t]: the least tuple over the cells from each start to the next."""
        out = np.empty((start.size, self.leaf.shape[1]), np.int64)
        leaf, here = self.leaf[cell], np.repeat(np.arange(start.size), np.diff(np.append(start, cell.size)))
        for t in range(out.shape[1]):
            kind, base = self.slots.kind[t], self.slots.base[t]
            a = leaf[:, t]
            if kind in (2, 4, 5):
                out[:, t] = np.bitwise_or.reduceat(a, start) if start.size else 0
            elif kind == 3:
                low, high = np.minimum.reduceat(a & 0xFFFFFFFF, start), np.maximum.reduceat(a >> 32, start)
                out[:, t] = low | (high << 32)
            else:
                low, high = np.minimum.reduceat(a, start), np.maximum.reduceat(a, start)
                out[:, t] = low
                mixed, of = np.flatnonzero(low != high), here
                while mixed.size:  # nodes of a mixed group are on one level, and go up together
                    rise = (low != high)[of]
                    a, of = self.slots.parent[base + a[rise]].astype(np.int64), of[rise]
                    begin = np.flatnonzero(np.diff(of, prepend=-1))
                    low, high = np.minimum.reduceat(a, begin), np.maximum.reduceat(a, begin)
                    out[mixed, t] = low
                    of = np.repeat(np.arange(mixed.size), np.diff(np.append(begin, a.size)))
                    mixed = mixed[low != high]
        return out

    def eligible(self, group: np.ndarray, groups: int) -> np.ndarray:
        """bool[groups]: which labels have an eligible set; rows labeled -1 are in none."""
        inside = group >= 0
        ones = np.ones(int(inside.sum()), np.int64)
        return groups_that_meet(self.histogram, self.need, self.cell[inside], group[inside], ones, groups)

    def cut(self, group: np.ndarray) -> np.ndarray:
        """Groups cut into as many eligible pieces as dealing allows; labels from 0, and rows labeled -1 stay so.

        Rows of a group are sorted by sensitive value, and among equals by quasi-identifiers. Without sensitive columns,
        consecutive rows stay together. With them, the rows are dealt so that each piece has about the group's share of
        each value. O(n log n).
        """
        out = np.full(group.size, -1, np.int64)
        inside = np.flatnonzero(group >= 0)
        if not inside.size:
            return out
        used = np.bincount(group[inside])
        label, cell = (np.cumsum(used > 0) - 1)[group[inside]], self.cell[inside]
        key = mixed_radix(
            np.column_stack([label, self.sensitive[cell]]),
            (used.size, *(int(column.max(initial=0)) + 1 for column in self.sensitive.T)),
        )
        order = np.argsort(key, kind="stable")  # equal rows by their cells, ascending
        inside, label, cell = inside[order], label[order], cell[order]
        rows = np.bincount(label)
        most = np.maximum(rows // self.k, 1)
        if self.need.rules:
            piece, pieces = self._dealt_by_rules(label, cell, most)
        elif self.frequency.size > 1:
            piece, pieces = self._eligible_pieces(label, cell, most, self._in_turn, 1 / 2)
        elif self.frequency.size == 1:
            piece, pieces = self._dealt_by_share(label, cell)
        else:
            rank = np.arange(label.size) - (np.cumsum(rows) - rows)[label]
            piece, pieces = rank * most[label] // rows[label], most
        out[inside] = (np.cumsum(pieces) - pieces)[label] + piece
        return out

    def _dealt_by_share(self, label: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(piece of each row in its group, pieces of each group), if one column's share and values are limited.

        Dealt in turn, a piece of q has at most ceil(c / q) rows of a value with c rows. If no value may exceed 1/l,
        dealing to places of l rows each, several of which make a piece, may give more pieces: no value has two rows in
        a place, so every union of places is eligible. Dealing in turn alone can't cut a value with a prime number of
        rows.
        """
        rows, ones = np.bincount(label), np.ones(label.size, np.int64)
        pieces = pieces_of(label, self.sensitive[cell, 0], ones, self.k, self.frequency[0], self.distinct[0])
        places = pieces
        if self.distinct[0] <= self.frequency[0]:
            unions = rows // self.frequency[0] // -(-self.k // self.frequency[0])
            places = np.where(unions > pieces, rows // self.frequency[0], places)
            pieces = np.maximum(unions, pieces)
        return self._in_turn(label, cell, places) * pieces[label] // places[label], pieces

    def _dealt_by_rules(self, label: np.ndarray, cell: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(piece of each row in its group, pieces of each group), with further models.

        Each value's rows are distributed in order, so that rows of a piece are near each other. If this gives less than
        1 / MANY of the pieces that sizes allow, the group's rows are also dealt in turn, which keeps shares more even,
        and the larger number of pieces wins. If there are still so few, pieces of one size that meets the share are
        searched.
        """
        piece, pieces = self._eligible_pieces(label, cell, most, self._along, NEXT)
        again = np.flatnonzero(MANY * pieces < most)
        if again.size:
            here = np.isin(label, again)
            other = np.searchsorted(again, label[here])
            turns, turned = self._eligible_pieces(other, cell[here], most[again], self._in_turn, NEXT)
            more = turned > pieces[again]
            piece[np.flatnonzero(here)[more[other]]] = turns[more[other]]
            pieces[again] = np.maximum(pieces[again], turned)
        for g in np.flatnonzero(MANY * pieces < most) if self.sensitive.shape[1] == 1 else ():
            inside = np.flatnonzero(label == g)
            sized, made = self._by_commonest(cell[inside], int(pieces[g]))
            if made > pieces[g]:
                piece[inside], pieces[g] = sized, made
        return piece, pieces

    def _by_commonest(self, cell: np.ndarray, known: int) -> tuple[np.ndarray, int]:
        """(piece of each row, pieces) of one group, with equally many rows of the most frequent value in each piece.

        A piece has a rows of the most frequent value, and as many others as the group has for each a of them, rounded
        down. If the group just meets a share, some sizes meet it, and adjacent sizes don't. So each a is tried, the
        smallest first. The last piece has the remaining rows. The other rows are taken first in the order of their
        cells, which keeps the loss of pieces low, and then in turn by their values, which mixes values best.
        Returns one piece if no more than the ``known`` pieces are found.
        """
        value = self.sensitive[cell, 0]
        common = value == np.bincount(value).argmax()
        others = np.flatnonzero(~common)
        many, rest, ones = int(common.sum()), others.size, np.ones(cell.size, np.int64)
        near = others[np.argsort(cell[others], kind="stable")]
        # The first piece decides whether the size is possible; then all pieces of this size, with both orders of the
        # others.
        for a in range(1, min(many // (known + 1), LARGEST_PIECE) + 1):
            full, b = many // a, rest * a // many
            spread = others[np.arange(b) * rest // max(b, 1)]  # with as many different values as possible
            one = np.append(np.flatnonzero(common)[:a], spread)
            alike = np.zeros(one.size, np.int64)
            if one.size < self.k or not groups_that_meet(self.histogram, self.need, cell[one], alike, ones[one], 1)[0]:
                continue
            upto = np.arange(rest + 1) * (b * full) // max(rest, 1)
            taken, rank = np.diff(upto) > 0, upto[:-1]  # remaining rows lie between the others
            for order, own in ((near, rank // max(b, 1)), (others, rank % full)):
                piece = np.full(cell.size, full, np.int64)
                piece[common] = np.minimum(np.arange(many) // a, full)
                piece[order[taken]] = own[taken]
                for most in (full, full - 1):  # the rest is a separate piece, or part of the last one
                    made = int(np.minimum(piece, most).max()) + 1
                    pieces = np.minimum(piece, most)
                    if made > known and groups_that_meet(self.histogram, self.need, cell, pieces, ones, made).all():
                        return pieces, made
        return np.zeros(cell.size, np.int64), 1

    def _eligible_pieces(
        self,
        label: np.ndarray,
        cell: np.ndarray,
        most: np.ndarray,
        deal: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
        following: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(piece of each row in its group, pieces of each group): ``most``, or fewer until all are eligible.

        deal       returns the piece of each row, (label, cell, pieces), label ascending from 0
        following  the share of a failed number of pieces that is tried next; an eligible group is one piece at the
                   latest
        """
        piece, made = np.zeros(label.size, np.int64), most.copy()
        here, waiting, pieces = np.arange(label.size), np.arange(most.size), most
        while waiting.size:
            dealt = deal(label, cell, pieces)
            first = np.cumsum(pieces) - pieces
            number = first[label] + dealt
            ones = np.ones(label.size, np.int64)
            good = groups_that_meet(self.histogram, self.need, cell, number, ones, int(pieces.sum()))
            done = np.logical_and.reduceat(good, first) | (pieces == 1)
            made[waiting[done]] = pieces[done]
            ready = done[label]
            piece[here[ready]] = dealt[ready]
            label, cell, here = (np.cumsum(~done) - 1)[label[~ready]], cell[~ready], here[~ready]
            waiting, pieces = waiting[~done], np.maximum((following * pieces[~done]).astype(np.int64), 1)
        return piece, made

    def _in_turn(self, label: np.ndarray, cell: np.ndarray, pieces: np.ndarray) -> np.ndarray:
        """The piece of each row if the rows of each group, sorted by values, are dealt to its pieces in turn."""
        rows = np.bincount(label)
        return np.asarray((np.arange(label.size) - (np.cumsum(rows) - rows)[label]) % pieces[label])

    def _along(self, label: np.ndarray, cell: np.ndarray, pieces: np.ndarray) -> np.ndarray:
        """The piece of each row if the rows of each value are distributed evenly over the pieces in order.

        Rows are sorted by (label, values, cell), so the rows of a piece are near each other. Its rows of a value are
        the group's share, rounded up or down.
        """
        values = self.sensitive[cell].astype(np.int64)
        new = np.ones(label.size, bool)
        new[1:] = (np.diff(label) != 0) | np.diff(values, axis=0).any(axis=1)
        begin = np.flatnonzero(new)
        held = np.diff(np.append(begin, label.size))
        run = np.cumsum(new) - 1
        rank = np.arange(label.size) - begin[run]
        shift = (np.arange(begin.size) * 0.6180339887498949) % 1.0  # so that different values are rounded differently
        return np.asarray(np.floor((rank + shift[run]) * pieces[label] / held[run])).astype(np.int64)

    def dealt_small(self, group: np.ndarray, most: int) -> np.ndarray:
        """Large groups, of more than ``most`` rows, dealt into eligible pieces of at most that size.

        They are dealt together with the groups that help them most. Groups of equal rows lose nothing and stay. A group
        that just meets the requirement can hardly be cut, but often can with a few others. About the least number joins
        (by doubling, then bisection). If not even all of them suffice, the groups stay the same. O(n log n
        log(groups)).
        """
        size = np.bincount(group)
        large = size > most
        if large.any():
            inside = np.flatnonzero(large[group])
            first = np.zeros(size.size, np.int64)
            first[group[inside]] = inside
            alike = self.leaf[self.cell[inside]] == self.leaf[self.cell[first[group[inside]]]]
            large[large] = (np.bincount(group[inside], ~alike.all(axis=1), size.size) > 0)[large]
        if not large.any():
            return group
        ones = np.ones(group.size, np.int64)
        pool = np.bincount(self.cell[large[group]], minlength=self.histogram.cells)
        order = by_spare(self.histogram, self.need, self.cell, group, ones, pool)
        order = order[~large[order]]

        def dealt(joined: int) -> np.ndarray | None:
            taken = large.copy()
            taken[order[:joined]] = True
            pieces = self.cut(np.where(taken[group], 0, -1))
            if np.bincount(pieces[pieces >= 0]).max() > most:
                return None
            return np.where(pieces >= 0, pieces + size.size, group)

        low, joined, found = -1, 0, dealt(0)
        while found is None and joined < order.size:
            low, joined = joined, min(max(1, 2 * joined), order.size)
            found = dealt(joined)
        if found is None:
            return group
        while joined - low > 1:
            middle = (low + joined) // 2
            fewer = dealt(middle)
            low, joined, found = (middle, joined, found) if fewer is None else (low, middle, fewer)
        return np.unique(found, return_inverse=True)[1].reshape(-1)

    def place(self, group: np.ndarray) -> np.ndarray:
        """Put every row labeled -1 into an eligible group where that costs least; labels from 0 without gaps.

        Values that are frequent among the unplaced rows come first. Rows that fit nowhere are pooled, and whole groups
        join the pool, those that help it most first, until it is eligible: at the latest with the whole table.
        """
        group = group.copy()
        waiting = np.flatnonzero(group < 0)
        if waiting.size and waiting.size < group.size:
            groups = int(group.max()) + 1
            inside = group >= 0
            order = np.argsort(group[inside], kind="stable")
            member = np.flatnonzero(inside)[order]
            label = group[member]
            size = np.bincount(label, minlength=groups)
            start = np.cumsum(size) - size
            following = np.full(group.size, -1, np.int64)
            following[member[:-1]] = np.where(np.diff(label) == 0, member[1:], -1)
            state = self.covers(self.cell[member], start)
            order = self._rising(size, state)
            if self.frequency.size:
                value = self.sensitive[self.cell[waiting], 0]
                waiting = waiting[np.argsort(-np.bincount(value)[value], kind="stable")]
            kinds = 1 + int(np.diff(state[order], axis=0).any(axis=1).sum())
            begin, candidate = self._near(waiting, member[start], kinds)
            sensitive = np.ascontiguousarray(self.sensitive[self.cell]) if self.frequency.size else self.sensitive[:0]
            head = member[start].copy()
            hosts = JoinableGroups(head, following, size, state, order)
            models = RowModels(sensitive, self.frequency, self.rules)
            steps = np.inf if self.rules is not None else float(waiting.size * size.size * self.leaf.shape[1])
            if begin.size:
                some = UngroupedRows(waiting, begin, candidate)
                waiting = waiting[~insert(self.slots, self.leaf, self.cell, models, hosts, some, steps)]
            waiting = self._anywhere(hosts, models, waiting, steps)
            if waiting.size and clock() > self.until:
                begin, candidate = self._near(waiting, member[start], kinds, 0)
                some = UngroupedRows(waiting, begin, candidate)
                waiting = waiting[~insert(self.slots, self.leaf, self.cell, models, hosts, some, steps)]
            for_head = head.copy()
            while (for_head >= 0).any():
                at = np.flatnonzero(for_head >= 0)
                group[for_head[at]] = at
                for_head[at] = following[for_head[at]]
        if waiting.size:
            group = self._pool(group, waiting)
        return np.unique(group, return_inverse=True)[1].reshape(-1)

    def _rising(self, size: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Groups by ascending price; those that publish the same are adjacent, the small ones first."""
        return np.lexsort((size, *state.T, quick(prices, state.size)(self.slots, state)))

    def _anywhere(self, hosts: JoinableGroups, models: RowModels, waiting: np.ndarray, steps: float) -> np.ndarray:
        """Put rows into any group, in turns until the time is over; returns the rows that are left."""
        left, none = [waiting[:0]], np.zeros(0, np.int64)
        each = waiting.size if self.until == np.inf else max(TURN, -(-waiting.size // TURNS))
        first = 0
        while first < waiting.size and (self.until == np.inf or clock() <= self.until):
            if first:
                hosts = hosts._replace(order=self._rising(hosts.size, hosts.state))
            part, first = waiting[first : first + each], first + each
            some = UngroupedRows(part, none, none)
            left.append(part[~insert(self.slots, self.leaf, self.cell, models, hosts, some, steps)])
        return np.concatenate([*left, waiting[first:]])

    def _near(
        self, waiting: np.ndarray, representative: np.ndarray, kinds: int, looks: int = LOOKS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidate groups for each waiting row: all, or if these are too many, neighbors in several sorted orders.

        kinds  number of groups, where groups that publish the same count once
        """
        none = np.zeros(0, np.int64)
        # rows of a cell are placed together, and equal groups are examined once
        alike = np.unique(self.cell[waiting]).size
        if alike * (kinds + min(waiting.size, representative.size) // 4) <= looks:
            return none, none
        quasi = self.histogram.quasi
        d, each = quasi.shape[1], 24
        found = []
        both = np.concatenate([quasi[self.cell[representative]], quasi[self.cell[waiting]]])
        sizes = np.array(self.histogram.quasi_sizes)
        by_size = np.argsort(sizes, kind="stable")
        for turn in range(min(d, 8)):
            columns = np.roll(by_size, -turn)
            order = np.argsort(mixed_radix(both[:, columns], [int(z) for z in sizes[columns]]), kind="stable")
            group_at = np.flatnonzero(order < representative.size)
            where = np.empty(both.shape[0], np.int64)
            where[order] = np.arange(order.size)
            middle = np.searchsorted(group_at, where[representative.size :])
            near = np.clip(middle[:, None] + np.arange(-each, each)[None, :], 0, group_at.size - 1)
            found.append(order[group_at[near]])
        candidate = np.sort(np.concatenate(found, axis=1), axis=1)
        start = np.arange(waiting.size + 1) * candidate.shape[1]
        return start, candidate.reshape(-1)

    def _pool(self, group: np.ndarray, waiting: np.ndarray) -> np.ndarray:
        """Merge group -1 with the groups that join it, then cut it again."""
        groups = int(group.max(initial=-1)) + 1
        if not groups:
            return self.cut(np.zeros_like(group))
        inside = group >= 0
        pool = np.bincount(self.cell[waiting], minlength=self.histogram.cells)
        ones = np.ones(int(inside.sum()), np.int64)
        joined = joining(self.histogram, self.need, self.cell[inside], group[inside], ones, pool)
        pooled = self.cut(np.where(np.append(joined, True)[group], 0, -1))  # -1, no group, is the last
        return np.where(pooled >= 0, pooled + groups, group)


def pieces_of(
    group: np.ndarray, value: np.ndarray, count: np.ndarray, least: int, frequency: int, distinct: int
) -> np.ndarray:
    """int64[g], at least 1: the largest number of eligible pieces of ``least`` rows into which each group can be dealt.

    Rows ``count`` of a value in a group, sorted by both; every group from 0 has some. A piece of P has at most c =
    ceil(n / P) rows of a value, so P fits if the most frequent has P <= rows // (c l). If P doesn't fit, no larger P
    does, because c doesn't decrease.
    """
    new = np.ones(group.size, bool)
    new[1:] = (np.diff(group) != 0) | (np.diff(value) != 0)
    begin = np.flatnonzero(new)
    held, owner = np.add.reduceat(count, begin), group[begin]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    rows, top = np.add.reduceat(held, first), np.maximum.reduceat(held, first)
    pieces = rows // least
    if distinct > 1:
        pieces = np.minimum(pieces, held[np.lexsort((-held, owner))][first + distinct - 1])
    while True:
        pieces = np.maximum(pieces, 1)
        most = rows // (-(-top // pieces) * frequency)
        if (pieces <= np.maximum(most, 1)).all():
            return pieces
        pieces = np.minimum(pieces, most)


ASKED = 2**18  # sets of areas whose weights are cached


def encode(recoding: Recoding, histogram: Histogram) -> tuple[Slots, np.ndarray]:
    """The recoding as slots, and the slots of every cell int64[m, t].

    Those of areas come last, because they take longest.
    """
    lines: list[tuple[int, int, int, int, float]] = []  # kind, base, table, width, unit
    parents, losses, tables, pairs, leaves, networks = [], [], [], [], [], []
    at = tables_at = networks_at = 0
    each = [(slot, j) for j, column in enumerate(recoding.columns) for slot in column.slots()]
    each.sort(key=lambda one: one[0].kind in AREA_SLOTS)
    for slot, j in each:
        leaves.append(slot.leaf[histogram.quasi[:, j]])
        if slot.kind in AREA_SLOTS:
            words = sum(other.kind in AREA_SLOTS and i == j for other, i in each)
            lines.append((SLOT_KINDS[slot.kind], networks_at, words, slot.apart.shape[0], slot.unit))
            if slot.apart.size:
                networks.append(slot)
                networks_at += slot.apart.size + 1
            continue
        nodes = 0 if slot.parent is None else slot.parent.size
        small = 0 < nodes <= SMALL_TREE
        kind = SLOT_KINDS[slot.kind] + (slot.kind == "tree" and not small)
        lines.append((kind, at, tables_at if small else int(_keeps_or_stars(slot)), nodes, slot.unit))
        losses.append(slot.loss)
        parents.append(np.zeros(slot.loss.size, np.int32) if slot.parent is None else slot.parent)
        at += slot.loss.size
        if small:
            tables.append(ancestors(parents[-1]).reshape(-1))
            pairs.append(slot.loss[tables[-1]])
            tables_at += nodes * nodes
    none = np.zeros(0)
    *whole, unit = zip(*lines, strict=True) if lines else ((),) * 5
    kinds, base, table, width = (np.array(x, np.int64) for x in whole)
    slots = Slots(
        kind=kinds,
        base=base,
        parent=np.concatenate([none, *parents]).astype(np.int32),
        loss=np.concatenate([none, *losses]),
        table=table,
        width=width,
        ancestor=np.concatenate([none, *tables]).astype(np.int16),
        pair=np.concatenate([none, *pairs]),
        unit=np.array(unit, np.float64),
        areas=_area_sets(networks),
    )
    leaf = np.stack(leaves, axis=1) if leaves else np.zeros((histogram.cells, 0), np.int64)
    return slots, np.ascontiguousarray(leaf, dtype=np.int64)


def _keeps_or_stars(slot: Slot) -> bool:
    """Whether a tree has only leaves without loss and a root, which is its last node."""
    return slot.parent is not None and bool((slot.parent == slot.parent.size - 1).all() and not slot.loss[:-1].any())


def _area_sets(networks: list[Slot]) -> AreaSets | None:
    """Columns of areas for the kernels, with an empty cache; None if there are none."""
    if not networks:
        return None
    return AreaSets(
        apart=np.concatenate([np.append(slot.apart.reshape(-1), slot.whole) for slot in networks]),
        ahead=np.concatenate([np.append(slot.ahead.reshape(-1), np.int32(0)) for slot in networks]),
        key=np.zeros(ASKED, np.uint64),
        weight=np.zeros(ASKED, np.int64),
        scratch=np.zeros((3, max(slot.apart.shape[0] for slot in networks)), np.int64),
    )


def of_thread(slots: Slots) -> Slots:
    """Slots with their own working arrays, so that several threads can use them."""
    areas = slots.areas
    return slots if areas is None else slots._replace(areas=areas._replace(scratch=np.zeros_like(areas.scratch)))


def ancestors(parent: np.ndarray) -> np.ndarray:
    """int16[n, n]: the lowest common ancestor of every pair of nodes of a tree numbered level by level."""
    n = parent.size
    a, b = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    while (a != b).any():
        a, b = np.where(a < b, parent[a], a), np.where(b < a, parent[b], b)
    return a.astype(np.int16)
