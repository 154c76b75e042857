"""Regions cut from a spanning tree of low degree.

Du, Eppstein, Goodrich, Lueker, "On the approximability of geometric and geographic generalization and the min-max bin
covering problem", WADS 2009, arXiv:0904.3756, section 2: with kappa = max(k, heaviest area), a spanning tree of
degree d gives regions of at most kappa + d (k - 1) (Lemmas 1 and 2), hence 3 times the least possible on 4-connected
planar graphs (d = 2) and 4 times on 3-connected ones (d = 3, Theorem 3).

Departures.  The paper cuts off the lightest side of weight at least k in the whole tree, again and again; here any side
that has no smaller side of weight at least k within it, found going up from the leaves, so that one pass is enough.
Lemma 2 uses no more than that.  What is left at the root weighs less than k; it joins a part next to it, which Lemma
2 bounds by kappa + (d - 1)(k - 1), so the union keeps Lemma 1's bound.  Areas of weight 0 need no tie-break: a
vertex is cut off where the sum first reaches k.  The tree is not chosen by connectivity alone: depth-first trees
that keep to long paths, then exchanges of edges; the degree reached enters the certificate, whatever the graph is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.regions.bounds import CountBound
from shoal.problems.regions.graph import Structure, structure
from shoal.problems.regions.task import Districting, Found
from shoal.problems.regions.value import value

_STARTS = 20


def tree(task: Districting, bound: CountBound) -> Found:
    """The paper's algorithm from several spanning trees; the first of the best partitions.

    O((m log n) * exchanges) time a tree, usually linear; several trees where the graph is small.
    """
    from shoal.kernels.regions import spanning
    from shoal.kernels.uncompiled import quick

    g = task.graph
    starts = int(np.clip(400_000 * task.effort // max(task.n, 1), 1, _STARTS))
    every, ends = starts * task.n, starts * len(g.indices)
    cut, degrees = quick(spanning.cut, every * task.features.shape[1]), quick(spanning.degrees, 2 * every)
    preorder, deep_tree = quick(spanning.preorder, every), quick(spanning.deep_tree, 4 * ends)
    reduce_degree = quick(spanning.reduce_degree, 4 * ends)
    known = structure(g) if _worth_asking(task, bound) else None
    wanted = _promised(known)
    best: tuple[Any, ...] | None = None
    label = np.zeros(task.n, np.int64)
    least = task.n
    ended = False
    for attempt in range(starts):
        seed = np.uint64((int(task.state[0]) + attempt * 0x9E3779B97F4A7C15) % 2**64 | 1)
        first = int(seed) % task.n if attempt else 0
        parent, order = deep_tree(g.indptr, g.indices, first, seed)
        if degrees(parent).max(initial=0) > 2:
            ended |= reduce_degree(g.indptr, g.indices, parent, max(8, 2_000_000 // max(task.n, 1)))
            order = preorder(parent)
        least = min(least, int(degrees(parent).max(initial=0)))
        found = cut(parent, order, task.features, task.need, task.ways)
        cost = value(task, found, task.objective)
        if best is None or cost < best:
            best, label = cost, found
    if known is not None and wanted is not None and least > wanted:
        from shoal.problems.regions.slender import slender_tree

        better = slender_tree(g, wanted, task.state)
        if better is not None:
            least = int(degrees(better).max(initial=0))
            found = cut(better, preorder(better), task.features, task.need, task.ways)
            cost = value(task, found, task.objective)
            if best is None or cost < best:
                best, label = cost, found
    details: dict[str, Any] = {"tree_degree": least}
    if ended and least > 2:
        details["least_tree_degree"] = f"at least {least - 1}"
    if known is not None:
        details |= {"connectivity": f"{known.connectivity}{'+' * (known.connectivity == 4)}", "planar": known.planar}
    return Found(label, promise(task, least), details=details)


def promise(task: Districting, degree: int) -> Guarantee:
    """What Lemmas 1 and 2 promise for a spanning tree of this degree; nothing beyond one threshold."""
    if not task.plain:
        return Guarantee()
    theorem = "Du, Eppstein, Goodrich, Lueker 2009, Lemmas 1 and 2"
    if degree <= 3:
        theorem += " (Theorem 3)"
    theorem += f": a spanning tree of degree {degree} gives at most kappa + {degree} (k - 1)"
    return Guarantee(factor=1 + degree, additive=0, theorem=theorem)


def ceiling(task: Districting, degree: int) -> int:
    """kappa + d (k - 1)."""
    return max(task.k, int(task.features[:, 0].max(initial=0))) + degree * (task.k - 1)


def _worth_asking(task: Districting, bound: CountBound) -> bool:
    """A connected graph all of whose areas have three neighbors may be 3-connected; others are not."""
    return task.n > 3 and int(bound.component.max()) == 0 and int(np.diff(task.graph.indptr).min()) >= 3


def _promised(known: Structure | None) -> int | None:
    """The degree that connectivity promises planar graphs: Tutte 1956 if 4-connected, Barnette 1966 if 3-connected."""
    if known is None or not known.planar or known.connectivity < 3:
        return None
    return 2 if known.connectivity == 4 else 3
