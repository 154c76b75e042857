"""Regions: areas are replaced by a connected set of areas of a graph.

The cheapest connected sets are node-weighted Steiner trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.model.hierarchy import Hierarchy
from shoal.model.notation import set_text
from shoal.model.recoding.column import ColumnRecoding, Labels, PublishedColumn, Slot
from shoal.model.recoding.levels import Levels
from shoal.model.recoding.ranges import BITS

AREAS = 1000  # up to this many areas, the cheapest sets are searched; above, groups publish classes of the tree
NONE = 2**60  # weight of a set that isn't connected
FEW = 7  # up to this many areas, the cheapest connected set is found exactly
ROOTS = 8  # number of areas from which the heuristic starts


class Network(NamedTuple):
    """A graph of areas with its all-pairs cheapest connected sets.

    weight  float64[n]     weight of each area
    apart   float64[n, n]  weight of the cheapest connected set with both areas; inf if there is none
    ahead   int32[n, n]    in that set, the second area on the path from the first area to the other
    near    for each area, its neighbors as a bit mask
    """

    weight: np.ndarray
    apart: np.ndarray
    ahead: np.ndarray
    near: Sequence[int]

    @classmethod
    def of(cls, weight: np.ndarray, ends: Sequence[tuple[int, int]]) -> Network:
        """All pairs by the Floyd-Warshall algorithm with node weights. O(n^3)."""
        n = weight.size
        apart, ahead = np.full((n, n), np.inf), np.tile(np.arange(n, dtype=np.int32), (n, 1))
        near = [0] * n
        for a, b in ends:
            apart[a, b] = apart[b, a] = weight[a] + weight[b]
            near[a] |= 1 << b
            near[b] |= 1 << a
        apart[np.arange(n), np.arange(n)] = weight
        for k in range(n):
            over = apart[:, k, None] + (apart[k] - weight[k])
            better = over < apart
            apart[better] = over[better]
            ahead = np.where(better, ahead[:, k, None], ahead)
        return cls(weight, apart, ahead, near)

    def way(self, a: int, b: int) -> set[int]:
        """The cheapest connected set with two areas: the areas of the path between them."""
        out = {a}
        while a != b:
            a = int(self.ahead[a, b])
            out.add(a)
        return out

    def cheapest(self, ends: Sequence[int]) -> set[int]:
        """A connected set that contains the given areas, at least two that are connected.

        Up to ``FEW`` areas, it is the cheapest such set: Dreyfus and Wagner (1971), restricted to areas where a
        cheapest set can branch. O(3^t n + 2^t n^2). Above that, a heuristic adds the remaining area with the cheapest
        path, from several start areas (Takahashi and Matsuyama 1980), and then removes areas that the set doesn't need,
        the heaviest first.
        """
        if len(ends) < 3:
            return self.way(ends[0], ends[-1])
        if len(ends) <= FEW:
            return self._least(ends)
        return min((self._grown(ends, a) for a in ends[:ROOTS]), key=self.total)

    def total(self, members: set[int]) -> float:
        """The weight of a set."""
        return float(self.weight[sorted(members)].sum())

    def _grown(self, ends: Sequence[int], root: int) -> set[int]:
        out, left = {root}, np.array([e for e in ends if e != root])
        least, source = self.apart[root, left] - self.weight[root], np.full(left.size, root)
        while left.size:
            i = int(np.argmin(least))
            new = self.way(int(source[i]), int(left[i])) - out
            out |= new
            have = np.array(sorted(new))
            keep = ~np.isin(left, have)
            left, least, source = left[keep], least[keep], source[keep]
            ways = self.apart[np.ix_(have, left)] - self.weight[have][:, None]
            best = np.argmin(ways, axis=0)
            own = ways[best, np.arange(left.size)]
            source, least = np.where(own < least, have[best], source), np.minimum(own, least)
        for area in sorted(out - set(ends), key=lambda a: (-self.weight[a], a)):
            if self.connected(out - {area}):
                out.discard(area)
        return out

    def connected(self, members: Iterable[int]) -> bool:
        """Whether areas are connected. The empty set is connected."""
        left = 0
        for area in members:
            left |= 1 << area
        new = left & -left
        left ^= new
        while new:
            low = new & -new
            more = self.near[low.bit_length() - 1] & left
            left ^= more
            new ^= low | more
        return not left

    def _branching(self, ends: Sequence[int]) -> np.ndarray:
        """The given areas, and those where a cheapest connected set with three or more of them can branch, in rising
        order.

        If such a set has three branches at an area, the branch to the farthest given area weighs at least as much as
        the cheapest set with this area, and the other two branches contain further given areas. Their total is at most
        the weight of a known set: all paths to one area, or paths from each area to the nearest one already in the set.
        """
        apart = self.apart[list(ends)]
        most = float((apart.sum(axis=0) - (len(ends) - 1) * self.weight).min())
        among, own = apart[:, list(ends)], self.weight[list(ends)]
        grown, least = own[0], among[0] - own[0]
        there = np.zeros(len(ends), bool)
        there[0] = True
        for _ in ends[1:]:
            i = int(np.argmin(np.where(there, np.inf, least)))
            grown, least, there[i] = grown + least[i], np.minimum(least, among[i] - own[i]), True
        far = np.sort(apart, axis=0)
        can = far[0] + far[1] + far[-1] - 2 * self.weight <= min(most, grown) * (1 + 1e-9)
        can[list(ends)] = True
        return np.flatnonzero(can)

    def _least(self, ends: Sequence[int]) -> set[int]:
        """Dreyfus and Wagner: the cheapest connected set for every subset of ``ends`` and every further area."""
        some = self._branching(ends)
        at, weight, apart = {int(a): i for i, a in enumerate(some)}, self.weight[some], self.apart[np.ix_(some, some)]
        *first, root = (at[e] for e in ends)
        whole = (1 << len(first)) - 1
        cost, split, source = {}, {}, {}
        for mask in range(1, whole + 1):
            low = mask & -mask
            if mask == low:
                cost[mask] = apart[first[low.bit_length() - 1]]
                continue
            parts = [s for s in range(1, mask) if s & mask == s and s & low and s != mask]
            sums = np.array([cost[s] + cost[mask ^ s] for s in parts]) - weight
            best = np.argmin(sums, axis=0)
            own = sums[best, np.arange(some.size)]
            over = (own - weight)[:, None] + apart
            source[mask] = np.argmin(over, axis=0)
            cost[mask] = over[source[mask], np.arange(some.size)]
            split[mask] = np.array(parts)[best]
        out: set[int] = set()
        todo = [(whole, root)]
        while todo:
            mask, v = todo.pop()
            if mask not in split:
                out |= self.way(int(some[first[mask.bit_length() - 1]]), int(some[v]))
                continue
            u = int(source[mask][v])
            out |= self.way(int(some[u]), int(some[v]))
            part = int(split[mask][u])
            todo += [(part, u), (mask ^ part, u)]
        return out


class AreaSet(NamedTuple):
    """A published set of areas, empty for a star, and the loss of each row of the group."""

    loss: float
    areas: frozenset[int]


class Covers:
    """The sets that groups publish. Each is computed when a group of its codes first occurs, and gets the next number.

    found  the sets by number
    """

    def __init__(self, network: Network, place: np.ndarray) -> None:
        self.found: list[AreaSet] = []
        self._network, self._place, self._lock = network, place, Lock()
        self._whole = max(float(network.weight.sum()) - 1, 1)
        self._of_codes: dict[bytes, int] = {}
        self._numbers: dict[int | frozenset[int], int] = {}
        self._ends: dict[int, frozenset[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, held: dict[str, Any]) -> None:
        vars(self).update(held, _lock=Lock())

    def number(self, codes: np.ndarray) -> int:
        """The number of the set that a group of codes publishes. codes: rising and distinct."""
        key = np.asarray(codes, np.int64).tobytes()
        with self._lock:
            if key not in self._of_codes:
                areas = self._areas(codes)
                own = (self._network.total(set(areas)) - 1) / self._whole if areas else 1.0
                name = int(codes[0]) if codes.size == 1 else areas
                self._of_codes[key] = self._numbers.setdefault(name, len(self.found))
                if self._of_codes[key] == len(self.found):
                    self.found.append(AreaSet(0.0 if codes.size == 1 else own, areas))
            return self._of_codes[key]

    def ends(self, number: int) -> frozenset[int]:
        """The areas that can be removed separately while the set stays connected."""
        if number not in self._ends:
            areas = set(self.found[number].areas)
            self._ends[number] = frozenset(a for a in areas if self._network.connected(areas - {a}))
        return self._ends[number]

    def _areas(self, codes: np.ndarray) -> frozenset[int]:
        place = self._place[codes]
        if codes.size == 1:
            return frozenset(place[place >= 0].tolist())
        if (place < 0).any() or not np.isfinite(self._network.apart[place[0], place]).all():
            return frozenset()
        found = self._network.cheapest(place.tolist())
        return frozenset() if len(found) == self._network.weight.size else frozenset(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class Regions(ColumnRecoding):
    """Areas of a graph: a group publishes a connected set that contains its areas, or a star.

    tree     levels of nested regions, from which a search starts
    network  the cheapest connected sets
    names    of all areas
    place    int64[size]: the area of each code, -1 for a missing value
    whole    weight of all areas
    near     float64[size, size]: loss of two codes together, for the cheapest connected set with both, or for a star
    covers   the sets that groups publish

    The loss is (weight - 1) / (weight of all areas - 1), as if every person were a leaf of a hierarchy; 0 for a single
    area.
    """

    kind: ClassVar[str] = "region"
    bares: ClassVar[bool] = True
    tree: Levels
    network: Network
    names: Sequence[str]
    place: np.ndarray
    whole: float
    near: np.ndarray
    covers: Covers

    @classmethod
    def of(cls, hierarchy: Hierarchy, values: Sequence[str | None], tree: Levels) -> Regions:
        """The column of these values for a hierarchy of regions. tree: its levels. O(areas^3)."""
        names, weights, first, second = hierarchy.steps
        number = {name: i for i, name in enumerate(names)}
        network = Network.of(
            np.array(weights, float), [(number[a], number[b]) for a, b in zip(first, second, strict=True)]
        )
        place = np.array([-1 if v is None else number[v] for v in values], np.int64)
        whole = float(sum(weights))
        near = np.minimum((network.apart[np.ix_(place, place)] - 1) / max(whole - 1, 1), 1.0)
        near[place < 0] = near[:, place < 0] = 1.0
        np.fill_diagonal(near, 0.0)
        return cls(
            size=len(values), weight=tree.weight, tree=tree, network=network, names=names, place=place,
            whole=whole, near=near, covers=Covers(network, place),
        )  # fmt: skip

    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers in ``covers``, and -1."""
        pair = np.unique(group * np.int64(max(self.size, 1)) + code)
        at = np.searchsorted(pair // max(self.size, 1), group[start])
        first = [self.covers.number(codes) for codes in np.split(pair % max(self.size, 1), at[1:])]
        return np.array(first, np.int32), np.full(start.size, -1)

    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """The loss of the set."""
        return np.array([cover.loss for cover in self.covers.found])[shown.first]

    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """Whether a group has a single code."""
        return np.bincount(shown.present[0], minlength=shown.groups) == 1

    def starred(self, shown: PublishedColumn) -> np.ndarray:
        """Whether no set except that of all areas contains a group's areas."""
        return np.array([not cover.areas for cover in self.covers.found])[shown.first] & ~self.exact(shown)

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
        """The areas that can be removed while the set stays connected: the set contains them only because of a row."""
        out = np.zeros(group.size, bool)
        for first, last in zip(border[:-1].tolist(), border[1:].tolist(), strict=True):
            ends = self.covers.ends(self.covers.number(code[first:last]))
            out[first:last] = [area in ends for area in self.place[code[first:last]].tolist()]
        return out

    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """The numbers of the sets."""
        return shown.first.astype(np.int64)

    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """The rows of the areas of the set."""
        return np.asarray(held @ self.members(shown, np.arange(shown.groups)))

    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """The codes of the areas of the set."""
        used, inverse = np.unique(shown.first[of], return_inverse=True)
        areas = np.zeros((len(self.names) + 1, used.size), bool)  # the last row is a missing value
        for i, number in enumerate(used.tolist()):
            areas[sorted(self.covers.found[number].areas), i] = True
        out = areas[self.place][:, inverse.reshape(-1)]
        out[:, self.starred(shown)[of]] = True
        alone = self.exact(shown)[of]
        groups, code = shown.present
        out[code[np.searchsorted(groups, of[alone])], np.flatnonzero(alone)] = True
        return out

    def order(self) -> np.ndarray:
        """The order of the values in the hierarchy."""
        return self.tree.order()

    def steps(self) -> np.ndarray:
        """The loss of the cheapest set with another code."""
        return np.min(self.near, axis=1, where=~np.eye(self.size, dtype=bool), initial=np.inf)

    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The loss of the cheapest connected set with both codes."""
        return np.asarray(self.near[first, second])

    def beyond(self, present: np.ndarray) -> np.ndarray:
        """The loss of the cheapest set with a present code."""
        return np.asarray(self.near[:, present].min(axis=1))

    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels of the tree. No class of it has a smaller loss than the cheapest set."""
        return self.tree.ladder()

    @property
    def unit(self) -> float:
        """The weighted loss of each unit of weight beyond the first."""
        return self.weight / max(self.whole - 1, 1)

    @cached_property
    def numbered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Areas renumbered so that those of the codes come first: int64[size], of each code; apart and ahead as in
        ``Network``.

        A missing value is a further area without neighbors.
        """
        n = len(self.names)
        apart, ahead = np.full((n + 1, n + 1), np.inf), np.tile(np.arange(n + 1), (n + 1, 1))
        apart[:n, :n], ahead[:n, :n], apart[n, n] = self.network.apart, self.network.ahead, 1.0
        place = np.where(self.place < 0, n, self.place)
        order = np.argsort(~np.isin(np.arange(n + 1), place), kind="stable")
        rank = np.empty(n + 1, np.int64)
        rank[order] = np.arange(n + 1)
        return rank[place], apart[np.ix_(order, order)], rank[ahead[np.ix_(order, order)]]

    def slots(self) -> list[Slot]:
        """One bit for each area of a code; columns with many areas need several slots."""
        area, apart, ahead = self.numbered
        word, bit = np.divmod(area, BITS)
        leaves = [np.where(word == i, np.int64(1) << bit, 0) for i in range(max(-(-self.size // BITS), 1))]
        first = Slot(
            "areas", leaves[0], unit=self.unit, apart=np.minimum(apart, NONE).astype(np.int64),
            ahead=ahead.astype(np.int32), whole=int(self.whole),
        )  # fmt: skip
        return [first, *(Slot("further areas", leaf) for leaf in leaves[1:])]

    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """The set of areas, a single value unchanged, or a star."""
        distinct, at, index = np.unique(shown.first, return_index=True, return_inverse=True)
        alone = self.exact(shown)
        begin = np.searchsorted(shown.present[0], np.arange(shown.groups))
        texts: list[str | None] = []
        plain: list[int] = []
        for number, g in zip(distinct.tolist(), at.tolist(), strict=True):
            areas = self.covers.found[number].areas
            code = int(shown.present[1][begin[g]]) if alone[g] else -1
            texts.append(values[code] if code >= 0 else set_text(self.names[a] for a in areas) if areas else star)
            plain.append(code)
        return index.reshape(-1), texts, plain
