"""Connected sets of areas: a tree of regions, and the cheapest set that contains some areas.

The tree merges areas with neighbors, and these again, until a component is one region.  The cheapest connected sets are
Steiner trees with weights of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

FEW = 7  # areas for which the cheapest connected set is found
ROOTS = 8  # areas from which sets are grown


class Area(NamedTuple):
    """A region: its text, and how many leaves it counts as: the weight of its areas; one area is one leaf."""

    text: str
    leaves: int


def nested_regions(
    names: Sequence[str], weights: Sequence[int], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Area]]:
    """The region of every area, level by level: connected, and a union of regions of the level before.

    At every level the lightest region joins its lightest neighbor that has not joined another.  A region without such
    a neighbor stays as it is.  If fewer than a fifth of the regions go that way, those that stayed join, too, so that
    there are O(log n) levels.  A last level of one region is left out: it is the root.  O((n + pairs) log n).
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
    """The next level, a number for each area; None where no region has a neighbor."""
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
    """Areas, and the cheapest connected sets with any two of them.

    weight  float64[n]     of every area
    apart   float64[n, n]  weight of the cheapest connected set with both areas; inf where there is none
    ahead   int32[n, n]    the area after the first on the way to the second, in that set
    near    of every area its neighbors, a bit for each
    """

    weight: np.ndarray
    apart: np.ndarray
    ahead: np.ndarray
    near: Sequence[int]

    @classmethod
    def of(cls, weight: np.ndarray, ends: Sequence[tuple[int, int]]) -> Network:
        """Floyd and Warshall with weights of nodes.  O(n^3)."""
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
        """The cheapest connected set with two areas."""
        out = {a}
        while a != b:
            a = int(self.ahead[a, b])
            out.add(a)
        return out

    def cheapest(self, ends: Sequence[int]) -> set[int]:
        """A connected set with some areas, two or more with ways between them; the cheapest if they are ``FEW``.

        Up to ``FEW``: Dreyfus and Wagner (1971), over areas where a cheapest set can branch.  O(3^t n + 2^t n^2).
        Beyond: the next area by the cheapest way, again and again, from each area in turn (Takahashi and Matsuyama
        1980); then areas that the set does not need are left out, the heaviest first.
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
        """Whether areas are connected; so are no areas."""
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
        """The areas, and those where a cheapest connected set with three or more areas can branch, rising.

        Where it branches in three, what leads to the farthest area weighs as much as the cheapest set with this area,
        and the two other branches have areas of their own.  Together they weigh no more than a set in hand: the ways
        from the areas to any one area, or from each to the nearest that is there already.
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
        """Dreyfus and Wagner: for every set of ends and every area, the cheapest connected set with all of them."""
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
