"""Merge the nodes of a (planar) graph into connected regions of weight at least k.

Input     areas 0..n-1 with whole weights of at least 0, pairs of neighbors, one threshold k or several; optionally
          boundaries that no region crosses, and counts of sensitive values with an l.
Answer    a partition of the areas into regions, each connected and eligible: every threshold is met, and no sensitive
          value has more than 1/l of the region's records. Components that aren't eligible as a whole are left out, or
          joined to the nearest component.
Cost      weight of the heaviest region (the paper's); or areas merged away, sum of squared weights, weight over
          max(k, heaviest area), moment of inertia, border edges, one after the other.
Promise   least maximum: factor 3 on 4-connected and 4 on 3-connected planar graphs, 1 + d if a spanning tree of
          degree d is known (Du, Eppstein, Goodrich, Lueker 2009, Theorem 3).
Hardness  strongly NP-hard on 3-regular planar graphs with unit weights and k = 3; no factor below 4/3 unless P = NP
          (the same).

Every algorithm has the signature ``(Districting, CountBound) -> RegionsFound``. ``merge`` is the main call, ``nested``
repeats it at rising thresholds, ``choices`` at falling numbers of regions.
"""

from __future__ import annotations

from shoal.problems.regions.merge import Choice, choices, merge, nested
from shoal.problems.regions.request import Conditions
from shoal.problems.regions.task import Nested, Regions, crosswalk, hierarchy_rows, region_names

__all__ = [
    "Choice",
    "Conditions",
    "Nested",
    "Regions",
    "choices",
    "crosswalk",
    "hierarchy_rows",
    "merge",
    "nested",
    "region_names",
]
