"""Ordered values, cut into intervals.

Input     values with an order and how many records each has, and k >= 1
Feasible  a partition of the values into intervals that count at least k each, equal values together; one exists if
          and only if the total is at least k
Cost      the largest interval; or the sum over intervals of count squared, of range times count, or of any cost
          that a caller gives for an interval
Known     solved exactly by dynamic programming: O(n log T) for the largest interval (T the total), O(n log n) for
          squares and for range times count, O(n^2) for a caller's cost
Source    the remark in section 4 of Du, Eppstein, Goodrich, Lueker, arXiv:0904.3756, that ordered labels are
          polynomial; Galil and Park 1992 for programs with concave and convex costs
"""

from __future__ import annotations

from shoal.problems.intervals.cutting import Cut, cut, distinct
from shoal.problems.intervals.naming import interval_labels, levels

__all__ = ["Cut", "cut", "distinct", "interval_labels", "levels"]
