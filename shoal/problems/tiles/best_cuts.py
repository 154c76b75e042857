"""The best guillotine partition, exact, for places on few distinct coordinates."""

from __future__ import annotations

import numpy as np

from shoal.errors import PolicyError
from shoal.problems.tiles.cells import Parts
from shoal.problems.tiles.places import Places

RECTANGLES = 12_000_000  # 18 bytes each


def rectangles(places: Places) -> int:
    """How many rectangles between the distinct coordinates there are: the size of the dynamic program."""
    nx, ny = (np.unique(c).size for c in (places.x, places.y))
    return nx * (nx + 1) // 2 * (ny * (ny + 1) // 2)


def best_cuts(places: Places, k: int, objective: str, **_: object) -> tuple[Parts, dict]:
    """The best of all guillotine partitions: those that cut straight across, then each part again, and so on.

    objective  "tiles": most tiles, then least size; "max": least heaviest tile, then most tiles, then least size;
               "perimeter": least size; where size is half perimeter times weight, summed over the tiles

    O(X^2 Y^2 (X + Y)) time for X and Y distinct coordinates; refuses more than twelve million rectangles.
    Partitions that no straight cut divides (five tiles around a pinwheel) are not among those searched.
    """
    size = rectangles(places)
    if size > RECTANGLES:
        raise PolicyError(
            f"method 'best_cuts' would look at {size:,} rectangles between the distinct coordinates, over its limit "
            f"of {RECTANGLES:,}; use method 'auto', or fewer points"
        )
    from shoal.kernels.tiles.guillotine import MAX, PERIMETER, TILES

    if objective == "max":
        heaviest = _program(places, k, MAX, 0)[1]
        return _program(places, k, TILES, heaviest)[0], {"exact_among": "guillotine partitions"}
    found = _program(places, k, TILES if objective == "tiles" else PERIMETER, places.total)[0]
    return found, {"exact_among": "guillotine partitions"}


def _program(places: Places, k: int, objective: int, cap: int) -> tuple[Parts, int]:
    from shoal.kernels.tiles.guillotine import Program, guillotine
    from shoal.kernels.tiles.orders import Points

    n = places.x.size
    nx, ny = (np.unique(c).size for c in (places.x, places.y))
    room = Program.of(n, nx, ny)
    points = Points(
        places.x, places.y, places.weight, np.arange(n), np.argsort(places.y, kind="stable"), places.geographic
    )
    m, nx, ny, heaviest, _ = guillotine(points, 0, n, k, cap, objective, max(nx, ny), room)
    ends = [room.ends[0, :nx], room.ends[1, :nx], room.ends[2, :ny], room.ends[3, :ny]]
    return Parts.of_bins(places, room.rects[:m], (room.bx, room.by), ends), int(heaviest)
