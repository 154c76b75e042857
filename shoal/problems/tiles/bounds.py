"""What no partition into tiles can beat: how many there can be, how light the heaviest, how small they are."""

from __future__ import annotations

import numpy as np

from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.places import Places

NEIGHBORS = 16  # places asked around each for how small a tile can be


def most_tiles(weight: np.ndarray, k: int) -> int:
    """At most this many tiles of weight at least k exist.

    Count each place with at most k.  A tile that holds a place of at least k still counts k by that place alone;
    any other tile counts all its weight, which is at least k.  So tiles number at most sum(min(w, k)) / k.
    """
    return int(np.minimum(weight, k).sum()) // k


def least_largest(weight: np.ndarray, k: int) -> tuple[int, str]:
    """No partition has a lighter heaviest tile; the bound and its argument.

    Counting: M tiles at most, so one holds W / M.  Crowding: if all tiles weigh at most U < 2 k, no tile holds two
    places heavier than U / 2, and each place x with U / 2 < x < k needs k - x more from the places of at most U / 2.
    When those have not so much, U is too small; a larger U only eases that, so the least fitting U is found by halving.
    """
    total, heaviest = int(weight.sum()), int(weight.max())
    counted = -(-total // most_tiles(weight, k))
    bound = max(k, heaviest, counted)
    why = (
        "the heaviest place"
        if bound == heaviest and heaviest > max(k, counted)
        else "counting: total weight over the most tiles there can be"
    )
    light = np.sort(weight[weight < k])
    sums = np.concatenate([[0], np.cumsum(light)])

    def fits(u: int) -> bool:
        cut = int(np.searchsorted(light, u // 2, side="right"))
        return k * (light.size - cut) - int(sums[-1] - sums[cut]) <= int(sums[cut])

    low, high = bound, 2 * k
    if low < high and not fits(low):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        bound, why = high, "crowding: two places of more than half that weight share no tile, and the rest fill too few"
    return bound, why


def most_under(places: Places, k: int) -> int:
    """At most this many eligible tiles of one side of a boundary exist, whatever their width.

    By weight as above.  A value that may be 1 / l of a tile leaves at least k - k / l of its weight to others, so the
    tiles number at most what the others weigh over that.  m tiles with d different values each need m d of them, and
    a value is in no more tiles than it has places, nor than there are tiles.
    """
    most = most_tiles(places.weight, k)
    if places.held is None or not places.x.size:
        return most
    held = places.held
    weight, spread = held.sums()
    for c in range(held.need.size):
        mine = held.column == c
        if held.share[c] > 1 and mine.any():
            others = max(1, int(np.ceil(k * (1 - 1 / held.share[c]) - 1e-9)))
            most = min(most, (places.total - int(weight[mine].max())) // others)
        low, high = 0, most
        while low < high:
            m = (low + high + 1) // 2
            fits = int(np.minimum(spread[mine], m).sum()) >= m * int(held.need[c])
            low, high = (m, high) if fits else (low, m - 1)
        most = low
    return most


def most_of_all(places: Places, k: int) -> int:
    """At most this many tiles exist, no tile on two sides of the boundary."""
    return sum(most_under(places.some(which), k) for which in places.sides())


def least_of_all(places: Places, k: int, leave_out: bool = False) -> tuple[int, str]:
    """No partition has a lighter heaviest tile, and why: the largest of the bounds of all sides of the boundary.

    leave_out  records may be left out, so that only k itself is sure
    """
    found = (k, "no tile weighs less than k")
    if leave_out:
        return found
    for which in places.sides():
        part = places.some(which)
        bound, why = least_largest(part.weight, k) if part.total >= k else found
        most = most_under(part, k)
        if most and -(-part.total // most) > bound:
            bound, why = -(-part.total // most), "counting: total weight over the most eligible tiles there can be"
        if bound > found[0]:
            found = (bound, why if places.side is None else f"on one side of the boundary, {why}")
        elif places.side is None:
            found = (bound, why)
    return found


def least_half_perimeter(places: Places, k: int) -> float:
    """No partition has a smaller mean half perimeter, weighted by records, of the tiles' tight boxes.

    A tile with place p weighs at least k, so it holds a place at least as far from p, in width plus height, as the
    place at which the weight around p reaches k.  Only the nearest ``NEIGHBORS`` places are looked at: farther ones
    could only raise the bound.  Degrees count as km, widths by the smallest cosine among the latitudes.
    """
    from scipy.spatial import cKDTree

    xy = np.stack([places.x, places.y], axis=1)
    if places.geographic:
        xy = xy * KM_PER_DEGREE
        xy[:, 0] *= max(0.0, float(np.cos(np.deg2rad(np.abs(places.y).max()))))
    count = min(NEIGHBORS, k, xy.shape[0])
    if count < 2:
        return 0.0
    distance, near = cKDTree(xy).query(xy, k=count, p=1)
    reached = np.cumsum(places.weight[near], axis=1) >= k
    last = np.where(reached.any(axis=1), reached.argmax(axis=1), count - 1)
    at = distance[np.arange(xy.shape[0]), last]
    mean = float((at * places.weight).sum() / max(places.total, 1))
    return mean * (1 - 1e-9)  # below any rounding of the sum
