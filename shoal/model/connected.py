"""A tree of connected regions: areas merged with neighbors, and these again, until a component is one region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Area(NamedTuple):
    """A region: its text, and how many leaves it counts as: the weight of its areas; one area is one leaf."""

    text: str
    leaves: int


def nested_regions(
    names: Sequence[str], weights: Sequence[int], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Area]]:
    """Of every area its region, level by level, each a union of regions of the level before; all of them connected.

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
    return Area("{" + ", ".join(sorted(members)) + "}", max(weight, len(members)))


def _merged(region: Sequence[int], weights: Sequence[int], ends: Sequence[tuple[int, int]]) -> list[int] | None:
    """The next level, a number for each area; None where no region has a neighbor."""
    near: dict[int, set[int]] = {r: set() for r in region}
    weight = dict.fromkeys(near, 0)
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
