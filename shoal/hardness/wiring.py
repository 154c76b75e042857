"""How three-dimensional matching is drawn in the plane: wires from triples to elements, and where they cross.

Triples stand in a row above, each with three wires, one per element it holds; elements stand in a row below.  The wires
run straight down in tracks.  Neighboring tracks are exchanged, one pair at a time, until the wires of every element are
together: each exchange is a crossing.  Both reductions in the plane draw this diagram with gadgets of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import InputError
from shoal.hardness.sources import Triples


@dataclass(frozen=True)
class Wiring:
    """wires: the (triple, part) of each track at the top; swaps: tracks t whose wires t and t + 1 cross, from above;
    bottom: for each element (part, element) its tracks at the bottom, all neighbors."""

    wires: tuple[tuple[int, int], ...]
    swaps: tuple[int, ...]
    bottom: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]


def wiring(source: Triples) -> Wiring:
    """The diagram of an instance; elements are ordered by their wires' mean track, which keeps crossings few."""
    if source.dimension != 3:
        raise InputError(f"this reduction is from triples, not tuples of {source.dimension}")
    wires = [(i, part) for i in range(len(source.triples)) for part in range(3)]
    tracks: dict[tuple[int, int], list[int]] = {}
    for track, (i, part) in enumerate(wires):
        tracks.setdefault((part, source.triples[i][part]), []).append(track)
    missing = [(part, e) for part in range(3) for e in range(source.n) if (part, e) not in tracks]
    if missing:
        raise InputError(f"element {missing[0][1]} of set {missing[0][0]} is in no triple, so there is no matching")
    order = sorted(tracks, key=lambda e: sum(tracks[e]) / len(tracks[e]))
    goal, bottom, at = {}, [], 0
    for element in order:
        for track in tracks[element]:
            goal[wires[track]] = at
            at += 1
        bottom.append((element, tuple(range(at - len(tracks[element]), at))))
    swaps = []
    now = list(wires)
    for end in range(len(now) - 1, 0, -1):
        for t in range(end):
            if goal[now[t]] > goal[now[t + 1]]:
                now[t], now[t + 1] = now[t + 1], now[t]
                swaps.append(t)
    return Wiring(tuple(wires), tuple(swaps), tuple(bottom))
