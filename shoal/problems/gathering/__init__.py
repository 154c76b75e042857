"""Gathering: cluster points so that each cluster has at least r of them, and publish the centers.

Input           n points with a metric (columns of numbers, categories, places; a matrix; a function), r >= 1;
                optionally a share epsilon that may be left out, a largest number of clusters, sensitive values.
Feasible        a partition of all but floor(epsilon n) points into clusters of at least r, each with a center.
Cost            ``gather``: the largest radius.  ``cellular``: sum of size times radius, plus set-up costs.
Best guarantee  gather: factor 2 (Aggarwal et al. 2006, Theorem 2.2), and no better unless P = NP (section 2.1, r > 6).
                cellular with set-up costs: factor 3, with at least r each: factor 36 (docs/gathering.md, Theorems 5
                and 6; the paper has 4 in Theorem 3.3, and the proof of the 80 of its Theorem 3.6 has a gap).
Hardness        all NP-hard; on a line gather is polynomial.
"""

from __future__ import annotations

from shoal.model.metric import Category, Metric, Number, Place, project
from shoal.problems.gathering.cellular import cellular
from shoal.problems.gathering.gather import Gathering, gather

__all__ = ["Category", "Gathering", "Metric", "Number", "Place", "cellular", "gather", "project"]
