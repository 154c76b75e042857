"""Lists of groups: all groups of a small table whose reduced cost is below a limit, under prices of rows and of sets.

Prices prove a bound on the cost of every partition. A partition costs at least this bound plus the reduced costs of its
groups. So if its cost is at most a limit, each of its groups has a reduced cost of at most the limit minus the bound.
If that difference is small, few groups remain, and all of them are listed (Baldacci, Christofides, Mingozzi, "An exact
algorithm for the vehicle routing problem based on the set partitioning formulation with additional cuts", Mathematical
Programming 2008, lists routes in this way).

A set of rows has a price, too: at most |S| / m groups, rounded down, can have m rows of the set S. A group with 2m of
them counts twice, and a row can count several times. A group pays the price of the set as often as it counts. So the
reduced cost of a group is no sum over its rows. The lists are found depth first, row by row, and a set's price is added
as soon as it is due (Jepsen, Petersen, Spoorendonk, Pisinger, "Subset-row inequalities applied to the vehicle-routing
problem with time windows", Operations Research 2008, price routes under such sets with m = 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from shoal.model.privacy import Requirement
from shoal.problems.tables.exact.pattern_model import (
    PatternFits,
    PatternModel,
    RowClasses,
    SharedPrices,
    ValueLimits,
    conditions_of,
    group_sorts,
    least_groups,
    part_sizes,
)
from shoal.problems.tables.exact.pattern_relaxation import shared
from shoal.problems.tables.methods.pattern_cover import Patterns

if TYPE_CHECKING:
    from shoal.kernels.tables.subsets import PricedSets

MOST_GROUPS, MOST_ROWS = 1_000_000, 10_000_000  # limits of a list: groups, and rows in all of them together
TRIED = 40_000_000  # limit of the rows tried
MOST_CLASSES = 1000  # limit of the row classes, because the rows of sets are searched among all of them
TINY = 1e-7  # reduced costs and values within it of 0 count as 0


def largest(need: Requirement, rows: int) -> int:
    """A number of rows that no group of some optimal partition exceeds, for a single condition.

    Larger groups can be split without loss (``part_sizes``).
    """
    ((column, _, sorts),) = conditions_of(need)
    if column < 0:
        return min(2 * need.k - 1, rows)
    l = need.frequency[need.sensitive_columns[column]]
    return min(2 * l * -(-need.k // l) - 1, rows) if sorts[0].values == 1 else rows


class RowSet(NamedTuple):
    """A set of rows, with the m of its constraint: how many groups can have m of its rows.

    times  int64[r]: how often a row of each row class counts, 0 if it isn't in the set
    """

    m: int
    times: np.ndarray


class GroupPrices(NamedTuple):
    """Prices, and the bound that they prove.

    proved  a lower bound on the cost of every partition
    row     float64[r]  price of a row of each class, of either sign
    shared  prices of the program's constraints over several patterns
    lines   int64[..]  which of these constraints the program keeps
    sets    the sets of rows with a price, and their prices, float64[s], above 0
    """

    proved: float
    row: np.ndarray
    shared: SharedPrices
    lines: np.ndarray
    sets: tuple[RowSet, ...] = ()
    of_sets: np.ndarray = np.zeros(0)


class ListLimits(NamedTuple):
    """The limits of a list: groups in all, groups of each pattern, and rows tried."""

    groups: int = MOST_GROUPS
    each: int = MOST_GROUPS
    tried: int = TRIED


EVERY = ListLimits()


class Listed(NamedTuple):
    """Groups, csc_array[n, c] with the rows of each place in a group; their reduced costs, float64[c]; and whether no
    limit left some of them out."""

    at: csc_array
    reduced: np.ndarray
    all: bool


def in_classes(at: csc_array, places: PatternFits, classes: int) -> csc_array:
    """The rows of each row class in groups, csc_array[r, c], from those of places: a group has one for each class."""
    return csc_array((at.data, places.row_class[at.indices], at.indptr), shape=(classes, at.shape[1]))


def of_classes(sets: Sequence[RowSet], price: np.ndarray, row_class: np.ndarray) -> PricedSets:
    """The sets with these prices, float64[s], as kernels read them, by places with these row classes, int64[n]."""
    from shoal.kernels.tables.subsets import PricedSets

    times = [one.times for one in sets] or [np.zeros(int(row_class.max(initial=0)) + 1, np.int64)]
    held = csr_array(np.stack(times, axis=1)[row_class][:, : len(sets)])
    m = np.array([one.m for one in sets], np.int64)
    start, set_, of_row = (part.astype(np.int64) for part in (held.indptr, held.indices, held.data))
    return PricedSets(start, set_, of_row, m, price)


def below(first: csc_array, more: csc_array) -> csc_array:
    """Two matrices with the same columns, csc_array[.., c], one below the other."""
    from shoal.kernels.tables.subsets import stacked_columns

    index, value = np.empty(first.nnz + more.nnz, np.int32), np.empty(first.nnz + more.nnz)
    stacked_columns(
        first.indptr, first.indices, first.data, more.indptr, more.indices + first.shape[0], more.data, index, value
    )
    shape = first.shape[0] + more.shape[0], first.shape[1]
    return csc_array((value, index, first.indptr + more.indptr), shape=shape)


def counts_of(rows: csc_array, sets: Sequence[RowSet]) -> csc_array:
    """How often groups count for sets, csc_array[s, c]; ``rows`` has the rows of each row class in a group."""
    from shoal.kernels.tables.subsets import counted_sets

    classes, groups = rows.shape
    counts = np.zeros(groups + 1, np.int32)
    priced = of_classes(sets, np.zeros(len(sets)), np.arange(classes))
    set_, often = counted_sets(rows.indptr, rows.indices, rows.data, priced, counts)
    return csc_array((often, set_, counts), shape=(len(sets), groups))


@dataclass(frozen=True, eq=False)
class GroupList:
    """The groups of a small table with a single condition; each is published as the cheapest pattern that fits it.

    rank    int64[q]  patterns by rising loss
    within  uint64[t, w]  for each type, a bit for each pattern that fits it, by rank
    value   int64[n]  sensitive value of each place, 0 without a condition on one
    share   int       at most 1/share of the rows of a group have one value
    """

    row_classes: RowClasses
    places: PatternFits
    need: Requirement
    loss: np.ndarray
    model: PatternModel
    rank: np.ndarray
    within: np.ndarray
    value: np.ndarray
    share: int

    @classmethod
    def of(
        cls,
        row_classes: RowClasses,
        places: PatternFits,
        found: Patterns,
        need: Requirement,
        loss: np.ndarray,
        model: PatternModel,
    ) -> GroupList | None:
        """None for several conditions, and for too many row classes.

        loss   float64[q]: loss of a row in each pattern
        model  the program over patterns, whose constraints over several patterns hold for the groups, too
        """
        if len(conditions_of(need)) > 1 or need.rules or row_classes.count.size > MOST_CLASSES:
            return None
        ((column, _, sorts),) = conditions_of(need)
        rank = np.empty(places.patterns, np.int64)
        rank[np.argsort(loss, kind="stable")] = np.arange(places.patterns)
        within = np.zeros((int(row_classes.type.max()) + 1, -(-places.patterns // 64)), np.uint64)
        bit = rank[np.repeat(np.arange(places.patterns), np.diff(found.start))]
        np.bitwise_or.at(within, (found.member, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
        value = row_classes.value[places.row_class, column] if column >= 0 else np.zeros(places.row_class.size, int)
        share = need.frequency[need.sensitive_columns[column]] if column >= 0 and sorts[0].values == 1 else 1
        return cls(row_classes, places, need, loss, model, rank, within, value, share)

    @property
    def _rows(self) -> np.ndarray:
        """Rows of each place, int64[n]."""
        return self.row_classes.count[self.places.row_class]

    def _reduced(self, prices: GroupPrices) -> np.ndarray:
        """What a row of each place adds to a bound, without sets, float64[n]."""
        return self.loss[self.places.pattern] - prices.row[self.places.row_class] + prices.shared.rows

    def proved(self, row: np.ndarray, shared: SharedPrices) -> GroupPrices:
        """These prices of rows, float64[r], and of shared constraints, with the bound that they prove.

        A pattern can have several groups, each with a negative reduced cost.
        """
        ((_, _, sorts),) = conditions_of(self.need)
        prices = GroupPrices(0.0, row, shared, np.arange(self.number_of_lines))
        size = np.bincount(self.places.pattern, weights=self._rows, minlength=self.places.patterns)
        least = least_groups(self.places, self._rows, self.value, self._reduced(prices), sorts, shared.uses).cost
        below = float((size // self.need.smallest) @ np.minimum(least, 0.0))
        return prices._replace(proved=shared.proved + float(row @ self.row_classes.count) + below)

    def additions(self, prices: GroupPrices) -> tuple[np.ndarray, np.ndarray]:
        """The least reduced cost of a group of each pattern, float64[q], and of one with a row of each place.

        The second is float64[n]. Both are without prices of sets, which only add to them.
        """
        ((_, _, sorts),) = conditions_of(self.need)
        places, reduced, uses = self.places, self._reduced(prices), prices.shared.uses
        table = places, self._rows, self.value, reduced
        less = [ValueLimits(c.cap, c.rows - 1, c.values - 1) for c in sorts]
        whole, rest = least_groups(*table, sorts, uses).cost, least_groups(*table, less, uses).cost
        return whole, np.maximum(whole[places.pattern], rest[places.pattern] + reduced)

    def small(self, at: csc_array) -> csc_array:
        """Those of these groups, csc_array[n, c], that have at most as many rows as listed ones."""
        most = largest(self.need, int(self.row_classes.count.sum()))
        return csc_array(at[:, np.asarray(at.sum(axis=0)).reshape(-1) <= most])

    def listed(self, prices: GroupPrices, most: float, limits: ListLimits = EVERY) -> Listed:
        """The groups with a reduced cost of at most ``most``."""
        from shoal.kernels.tables.subsets import FoundGroups, GroupsAsked, PatternRows, few_groups

        ((_, _, sorts),) = conditions_of(self.need)
        places, reduced, rank = self.places, self._reduced(prices), self.rank
        order = np.lexsort((reduced, rank[places.pattern]))
        order = order[self.additions(prices)[1][order] <= most]
        start = np.searchsorted(rank[places.pattern][order], np.arange(places.patterns + 1))
        largest_group = largest(self.need, int(self.row_classes.count.sum()))
        asked = GroupsAsked(
            self.need.smallest, largest_group, self.share, group_sorts(sorts), most, limits.each, limits.tried
        )
        space = min(MOST_ROWS, limits.groups * largest_group)
        out = FoundGroups(np.zeros(limits.groups + 1, np.int64), np.empty(space, np.int32), np.empty(limits.groups))
        uses, kind = prices.shared.uses.min(axis=0)[np.argsort(rank)], self.row_classes.type[places.row_class]
        sets = of_classes(prices.sets, prices.of_sets, places.row_class)
        rows = PatternRows(start, order, self._rows, self.value, reduced)
        many, complete = few_groups(rows, asked, uses, kind, self.within, sets, out)
        place = out.place[: out.start[many]]
        ends = out.start[: many + 1].astype(np.int32)
        at = csc_array((np.ones(place.size), place, ends), shape=(self.value.size, many))
        at.sum_duplicates()
        return Listed(at, out.cost[:many].copy(), bool(complete))

    def shared(self, price: np.ndarray) -> SharedPrices:
        """What prices of the constraints over several patterns, float64[..], add."""
        every = np.zeros(self.model.owner.size)
        every[self.model.owner >= self.model.patterns] = price
        return shared(self.model, every)

    @property
    def number_of_lines(self) -> int:
        """The number of constraints over several patterns."""
        return int((self.model.owner >= self.model.patterns).sum())

    def line_limits(self, which: np.ndarray) -> np.ndarray:
        """The right sides of some of these constraints, float64[..]."""
        out: np.ndarray = -self.model.low[self.model.owner >= self.model.patterns][which]
        return out

    def shared_lines(self, at: csc_array, which: np.ndarray) -> csc_array:
        """The coefficients of groups in some of these constraints, csc_array[.., c]; their sum has a limit."""
        several_of = np.flatnonzero(self.model.owner >= self.model.patterns)[which]
        if not several_of.size or not at.shape[1]:
            return csc_array((several_of.size, at.shape[1]))
        lines, use = csc_array(self.model.lines[several_of]), self.model.uses.column.reshape(-1, self.places.patterns)
        return csc_array(-(lines[:, : self.model.n] @ at + lines[:, use[self._uses(at)]]))

    def shared_costs(self, at: csc_array, which: np.ndarray, price: np.ndarray) -> np.ndarray:
        """What prices of some of these constraints, float64[..], add to the reduced costs of groups, float64[c]."""
        every = np.zeros(self.number_of_lines)
        every[which] = price
        added = self.shared(every)
        out: np.ndarray = at.T @ added.rows + added.uses[self._uses(at)]
        return out

    def _uses(self, at: csc_array) -> tuple[np.ndarray | int, np.ndarray]:
        """The sort and the pattern of each group, int64[c]."""
        size = np.asarray(at.sum(axis=0)).reshape(-1).astype(np.int64)
        sort = size // self.share - part_sizes(self.need.k, self.share)[0] if self.share > 1 else 0
        return sort, self.places.pattern[at.indices[at.indptr[:-1]]]
