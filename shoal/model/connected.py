"""Connected sets of areas: a hierarchy of regions, and the cheapest connected set that contains given areas.

The hierarchy merges areas with neighbors repeatedly until each component is one region. The cheapest connected sets
are node-weighted Steiner trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

FEW = 7  # up to this many areas, the cheapest connected set is found exactly
ROOTS = 8  # number of areas from which the heuristic starts


class Area(NamedTuple):
    """A region: its text, and its number of leaves, which is the weight of its areas. A single area is one leaf."""

    text: str
    leaves: int


def nested_regions(
    names: Sequence[str], weights: Sequence[int], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Area]]:
    """The region of every area at each level: connected, and a union of regions of the level below.

    At every level, the regions are paired in rising order of weight: each region that has no partner yet joins its
    lightest neighbor without one. A region without such a neighbor stays unchanged. If there are fewer pairs than a
    fifth of the regions, the remaining regions join neighboring pairs, so there are O(log n) levels. A last level of
    one region is omitted, because it is the root. O((n + pairs) log n).
    """
    place = {name: i for i, name in enumerate(names)}
    ends = [(place[a], place[b]) for a, b in pairs]
    region = list(range(len(names)))
    out: list[dict[str, Area]] = []
    while True:
        merged = _merged(region, weights, ends)
        if merged is None:
            break
        region = merged
        inside: dict[int, list[int]] = {}
        for i, r in enumerate(region):
            inside.setdefault(r, []).append(i)
        if len(inside) == 1:
            break
        shown = {r: _area([names[i] for i in own], sum(weights[i] for i in own)) for r, own in inside.items()}
        out.append({name: shown[r] for name, r in zip(names, region, strict=True)})
    return out


def _area(members: Sequence[str], weight: int) -> Area:
    if len(members) == 1:
        return Area(members[0], 1)
    return Area("{" + ", ".join(sorted(members)) + "}", weight)


def _merged(region: Sequence[int], weights: Sequence[float], ends: Sequence[tuple[int, int]]) -> list[int] | None:
    """The region of each area at the next level; None if no region has a neighbor."""
    near: dict[int, set[int]] = {r: set() for r in region}
    weight = dict.fromkeys(near, 0.0)
    for i, r in enumerate(region):
        weight[r] += weights[i]
    for a, b in ends:
        if region[a] != region[b]:
            near[region[a]].add(region[b])
            near[region[b]].add(region[a])
    order = sorted(near, key=lambda r: (weight[r], r))
    into: dict[int, int] = {}
    for r in order:
        free = [o for o in near[r] if o not in into]
        if r not in into and free:
            other = min(free, key=lambda o: (weight[o], o))
            into[r] = into[other] = min(r, other)
    stayed = [r for r in order if r not in into]
    if len({*into.values()}) * 5 < len(near):
        for r in stayed:
            if near[r]:
                into[r] = into[min((o for o in near[r] if o in into), key=lambda o: (weight[o], o))]
    return [into.get(r, r) for r in region] if into else None


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
