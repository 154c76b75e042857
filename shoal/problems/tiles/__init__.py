"""Points in the plane cut into rectangles, so that each person's position is one of at least k.

Input            n points (x, y) with weights, and k; coincident points stay together.
Feasible answer  axis-parallel rectangles that cover the plane without overlap, closed below and on the left, open above
                 and on the right, each with points of total weight at least k.
Cost             the weight of the heaviest rectangle (the paper's); the number of rectangles and their size on the map
                 are objectives too.
Best guarantee   factor 5 by any kd-tree that cuts as long as both sides keep k: Du, Eppstein, Goodrich, Lueker 2009,
                 Theorem 4.  With all x (or all y) distinct, cutting at multiples of the least cost is optimal.
Hardness         no factor below 4/3 in polynomial time unless P = NP (Theorem 4), already for k = 3.

Every algorithm is ``f(places, k, objective, **options) -> (TilePartition, details)``.
"""

from shoal.model.metric import kind_of
from shoal.problems.tiles.result import Conditions, Tiles
from shoal.problems.tiles.split import PlaceLevels, grid, levels, split

__all__ = ["Conditions", "PlaceLevels", "Tiles", "grid", "kind_of", "levels", "split"]
