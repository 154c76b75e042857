"""The paper's algorithm: cut as long as both sides keep at least k; and Mondrian, which looks at one cut per side.

Du, Eppstein, Goodrich, Lueker 2009, section 3.  The proof of Theorem 4 needs nothing about the order of the cuts, so
it leaves the rule open; here it is nearest the median.  Not in the paper: cuts lie between distinct coordinates only.
"""

from __future__ import annotations

import numpy as np

from shoal.errors import PolicyError
from shoal.problems.tiles.cells import Parts
from shoal.problems.tiles.places import Places

RULES = ("widest", "median", "least_waste")


def kd_tree(places: Places, k: int, objective: str, *, rule: str = "widest", **_: object) -> tuple[Parts, dict]:
    """Cut every cell that can be cut, nearest its weighted median.

    rule  "widest": the wider side first, the other if no cut leaves k on both sides; "median": the side whose cut
          balances better, the wider one when they differ by at most a record; "least_waste": see ``least_waste``

    A cell is left whole only when no cut of either axis leaves k on both sides; then fewer than k records lie on each
    of the four sides of its median point, so it weighs at most 4 (k - 1) plus the weight of that one place.
    O(n log(n / k)) expected time.
    """
    from shoal.kernels.tiles.selection import MEDIAN, WIDEST

    if rule == "least_waste":
        from shoal.problems.tiles.search import plain

        return plain(places, k), {"rule": rule}
    if rule not in RULES:
        raise PolicyError.unknown("cut rule", rule, RULES)
    return _select(places, k, WIDEST if rule == "widest" else MEDIAN), {"rule": rule}


def mondrian(places: Places, k: int, objective: str, **_: object) -> tuple[Parts, dict]:
    """LeFevre, DeWitt, Ramakrishnan 2006, for comparison: only the cut right above the median, wider side first.

    Stops at cells that other cuts could still divide, so Theorem 4 says nothing about it.
    """
    from shoal.kernels.tiles.selection import MONDRIAN

    return _select(places, k, MONDRIAN), {}


def proportional_tree(places: Places, k: int) -> Parts:
    """The kd-tree whose cuts aim at a whole number of k on each side."""
    from shoal.kernels.tiles.selection import PROPORTIONAL

    return _select(places, k, PROPORTIONAL)


def _select(places: Places, k: int, rule: int) -> Parts:
    from shoal.kernels.tiles.selection import select_tree

    x, y, w = places.x.copy(), places.y.copy(), places.weight.copy()
    ids, starts, edges, axis, below, above = select_tree(x, y, w, k, rule, places.geographic)
    labels = np.empty(ids.size, np.int64)
    labels[ids] = np.repeat(np.arange(edges.shape[0]), np.diff(starts))
    at = starts[:-1]
    boxes = np.stack([f.reduceat(c, at) for f in (np.minimum, np.maximum) for c in (x, y)], axis=1)
    cuts = np.stack([axis.astype(np.float64), below, above], axis=1)
    return Parts(labels, np.add.reduceat(w, at), boxes, edges, cuts)
