"""Cells of the plane, and bounds on tiles: on their number, size, and the weight of the heaviest.

A cell is a slice of the places sorted by x and by y, bounded by numbered cuts, gaps between two coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.places import Places, lines_of

LOW, HIGH, WEIGHT, EDGES = 0, 1, 2, slice(3, 7)  # columns of TileCells.cells


@dataclass(frozen=True, eq=False)
class TileCells:
    """A partition of the places into cells.

    by_x, by_y  int64[p]: the places by x and by y, cell after cell
    cells       int64[m, 7]: slice low and high, weight, cuts at x low, y low, x high, y high (-1: unbounded)
    cuts        float64[c, 3]: axis of each cut and the coordinates next to it; the line may be anywhere between them
    """

    by_x: np.ndarray
    by_y: np.ndarray
    cells: np.ndarray
    cuts: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """int64[p]: the cell of each place, -1 if no cell contains it."""
        found = np.full(self.by_x.size, -1)
        low, size = self.cells[:, LOW], self.cells[:, HIGH] - self.cells[:, LOW]
        at = np.repeat(low - np.cumsum(size) + size, size) + np.arange(size.sum())
        found[self.by_x[at]] = np.repeat(np.arange(len(self.cells)), size)
        return found

    def distinct(self, places: Places) -> tuple[np.ndarray, np.ndarray]:
        """int64[m] each: the numbers of distinct x and of distinct y in each cell."""
        found = []
        for order, c in ((self.by_x, places.x), (self.by_y, places.y)):
            new = np.ones(order.size + 1, np.int64)
            new[1:-1] = c[order[1:]] != c[order[:-1]]
            low, high = self.cells[:, LOW], self.cells[:, HIGH]
            new[low] = 1
            sums = np.concatenate([[0], np.cumsum(new)])
            found.append(sums[high] - sums[low])
        return found[0], found[1]

    @classmethod
    def whole(cls, places: Places) -> TileCells:
        """One cell with all places, which are sorted by x already."""
        p = places.x.size
        cell = np.array([[0, p, places.total, -1, -1, -1, -1]], dtype=np.int64)
        return cls(np.arange(p), np.argsort(places.y, kind="stable"), cell, np.zeros((0, 3)))

    @classmethod
    def sides(cls, places: Places) -> TileCells:
        """One cell for each side of the boundary, or the whole plane without a boundary."""
        if places.side is None:
            return cls.whole(places)
        q = int(places.side.max()) + 1
        return cls.of(places, places.side, np.full((q, 4), -1), np.zeros((0, 3)))

    @classmethod
    def of(cls, places: Places, labels: np.ndarray, edges: np.ndarray, cuts: np.ndarray) -> TileCells:
        """Cells from the places' labels 0 .. m - 1, and the cells' edges int64[m, 4]."""
        m = edges.shape[0]
        by_x = np.argsort(labels, kind="stable")  # places are sorted by x
        by_y = np.argsort(places.y, kind="stable")
        by_y = by_y[np.argsort(labels[by_y], kind="stable")]
        ends = np.cumsum(np.bincount(labels, minlength=m))
        cells = np.empty((m, 7), np.int64)
        cells[:, LOW], cells[:, HIGH] = ends - np.diff(ends, prepend=0), ends
        cells[:, WEIGHT] = np.add.reduceat(places.weight[by_x], cells[:, LOW]) if m else 0
        cells[:, EDGES] = edges
        return cls(by_x, by_y, cells, cuts)


def round_cuts(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """For each gap, the number in (below, above] with the fewest decimals, closest to the middle.

    A round number is shorter to write. Unlike a coordinate or the middle of two coordinates, it reveals little about
    the position of the closest person.
    """
    middle = below + (above - below) / 2
    found = above.copy()
    open_ = np.ones(below.size, bool)
    for digits in range(-12, 18):
        with np.errstate(over="ignore", invalid="ignore"):
            if digits < 0:
                c = np.round(middle / 10.0**-digits) * 10.0**-digits
            else:
                c = np.round(middle * 10.0**digits) / 10.0**digits
        fits = open_ & (below < c) & (c <= above)
        found[fits] = c[fits] + 0.0
        open_ &= ~fits
        if not open_.any():
            break
    return found


def boxes_of(places: Places, cells: TileCells) -> np.ndarray:
    """float64[m, 4]: the bounding box of each cell's places."""
    low, high = cells.cells[:, LOW], cells.cells[:, HIGH] - 1
    x, y = places.x[cells.by_x], places.y[cells.by_y]
    return np.stack([x[low], y[low], x[high], y[high]], axis=1)


@dataclass(frozen=True, eq=False)
class TilePartition:
    """A complete partition: the result of every algorithm.

    labels  int64[p]: part of each place
    weight  int64[m]: records in each part
    boxes   float64[m, 4]: bounding box of its places: x low, y low, x high, y high
    edges   int64[m, 4]: its bounding cuts in the same order, -1 if unbounded
    cuts    float64[c, 3]: as in ``TileCells``
    """

    labels: np.ndarray
    weight: np.ndarray
    boxes: np.ndarray
    edges: np.ndarray
    cuts: np.ndarray

    @classmethod
    def of(cls, places: Places, labels: np.ndarray, edges: np.ndarray, cuts: np.ndarray) -> TilePartition:
        """Parts from the places' labels 0 .. m - 1, -1 for a place in no part. O(p)."""
        weight = np.zeros(edges.shape[0], np.int64)
        held = labels >= 0
        np.add.at(weight, labels[held], places.weight[held])
        return cls(labels, weight, boxes_around(labels, places.x, places.y, edges.shape[0]), edges, cuts)

    @classmethod
    def of_bins(
        cls, places: Places, rects: np.ndarray, bins: tuple[np.ndarray, np.ndarray], ends: Sequence[np.ndarray]
    ) -> TilePartition:
        """Parts from rectangles int64[m, 4] of bins: x low, x high, y low, y high, both ends included.

        bins  int64[p] twice: bin of each place by x and by y
        ends  first and last coordinate of every bin by x, then by y
        """
        nx, ny = ends[0].size, ends[2].size
        tile = np.full((nx, ny), -1)
        for i, (x1, x2, y1, y2) in enumerate(rects.tolist()):
            tile[x1 : x2 + 1, y1 : y2 + 1] = i
        # cut i < nx - 1 is right of column i, the others are above the rows
        axis = np.repeat([0.0, 1.0], [nx - 1, ny - 1])
        below, above = np.concatenate([ends[1][:-1], ends[3][:-1]]), np.concatenate([ends[0][1:], ends[2][1:]])
        x1, x2, y1, y2 = rects.T
        west, south = x1 - 1, np.where(y1 > 0, nx - 2 + y1, -1)
        east, north = np.where(x2 < nx - 1, x2, -1), np.where(y2 < ny - 1, nx - 1 + y2, -1)
        edges = np.stack([west, south, east, north], axis=1)
        return cls.of(places, tile[bins], edges, np.stack([axis, below, above], axis=1))

    def bounds(self, grid: Fraction | None = None) -> np.ndarray:
        """float64[m, 4]: x low, y low, x high, y high, infinite if unbounded; low is closed, high is open.

        grid  cuts are on its lines: on the middle one of each gap
        """
        if grid is None:
            lines = round_cuts(self.cuts[:, 1], self.cuts[:, 2])
        else:
            low, high = (np.round(self.cuts[:, i] / float(grid)).astype(np.int64) for i in (1, 2))
            lines = lines_of((low + high + 1) // 2, grid)
        lines = np.append(lines, np.nan)
        unbounded = np.broadcast_to([-np.inf, -np.inf, np.inf, np.inf], self.edges.shape)
        return np.where(self.edges < 0, unbounded, lines[self.edges])

    @classmethod
    def together(cls, places: Places, parts: list[TilePartition], which: list[np.ndarray]) -> TilePartition:
        """The parts of several sides of a boundary as one partition of all places."""
        labels, m, c = np.full(places.x.size, -1), 0, 0
        edges = []
        for part, own in zip(parts, which, strict=True):
            labels[own] = np.where(part.labels < 0, -1, part.labels + m)
            edges.append(np.where(part.edges < 0, -1, part.edges + c))
            m, c = m + len(part.edges), c + len(part.cuts)
        return cls.of(places, labels, np.concatenate(edges), np.concatenate([part.cuts for part in parts]))

    def sizes(self, geographic: bool) -> np.ndarray:
        """Width plus height of each part's bounding box: in km if geographic, else in the coordinates' unit."""
        return spans(self.boxes, geographic).sum(axis=1)


def boxes_around(labels: np.ndarray, x: np.ndarray, y: np.ndarray, m: int) -> np.ndarray:
    """float64[m, 4]: the bounding box of the points with each label; -1 is no label."""
    held = labels >= 0
    boxes = np.empty((m, 4))
    boxes[:, :2], boxes[:, 2:] = np.inf, -np.inf
    for axis, c in enumerate((x, y)):
        for side, extreme in ((axis, np.minimum), (axis + 2, np.maximum)):
            found = boxes[:, side].copy()
            extreme.at(found, labels[held], c[held])
            boxes[:, side] = found
    return boxes


def spans(boxes: np.ndarray, geographic: bool) -> np.ndarray:
    """float64[m, 2]: width and height of boxes; degrees become km at each box's middle latitude."""
    size = boxes[:, 2:] - boxes[:, :2]
    if geographic:
        size = size * KM_PER_DEGREE
        size[:, 0] *= np.cos(np.deg2rad((boxes[:, 1] + boxes[:, 3]) / 2))
    return size


NEIGHBORS = 16  # neighbors of each place that the bound on a tile's size uses


def most_tiles(weight: np.ndarray, k: int) -> int:
    """An upper bound of the number of tiles of weight at least k.

    Count each place with at most k. A tile with a place of at least k still counts at least k because of that place.
    Any other tile counts all its weight, which is at least k. So there are at most sum(min(w, k)) / k tiles.
    """
    return int(np.minimum(weight, k).sum()) // k


def least_largest(weight: np.ndarray, k: int) -> tuple[int, str]:
    """A lower bound of the heaviest tile's weight over all partitions, and its argument.

    Counting: with at most M tiles, one has at least W / M. Crowding: if all tiles have weight at most U < 2 k, no tile
    contains two places heavier than U / 2, and each place x with U / 2 < x < k needs k - x more from the places of at
    most U / 2. If those have less in total, U is too small. The condition is monotone in U, so bisection finds the
    least valid U.
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
    """An upper bound of the number of eligible tiles on one side of a boundary, for any width.

    By weight as above. If a value may be 1 / l of a tile, the other values have at least k - k / l of the tile's
    weight, so the number of tiles is at most the others' weight divided by that. m tiles with d different values each
    need m d of them, and a value is in at most as many tiles as it has places, and as there are tiles.
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
    """An upper bound of the number of tiles, none of them on two sides of the boundary."""
    return sum(most_under(places.some(which), k) for which in places.sides())


def least_of_all(places: Places, k: int, leave_out: bool = False) -> tuple[int, str]:
    """A lower bound of the heaviest tile's weight, and its argument: the largest over the sides of the boundary.

    leave_out  records may be left out, so the only bound is k
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
    """A lower bound of the mean half perimeter of the tiles' bounding boxes, weighted by records.

    A tile with place p has weight at least k. So it contains a place at least as far from p, in width plus height, as
    the place at which the weight around p reaches k. Only the ``NEIGHBORS`` closest places are examined, because
    farther ones could only raise the bound. Degrees are converted to km, widths with the smallest cosine among the
    latitudes.
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
    return mean * (1 - 1e-9)  # below any rounding error of the sum
