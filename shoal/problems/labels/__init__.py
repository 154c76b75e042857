"""Labels without order, grouped: min-max bin covering.

Input     counts x_1 .. x_n >= 0, one per label, and k >= 1
Feasible  a partition of the labels into groups with a count of at least k each; one exists if and only if the total
          is at least k
Cost      the largest group
Known     strongly NP-hard (3-Partition); no factor below 2 in polynomial time with counts in binary, none below 4/3
          in unary, unless P = NP; 5/2 by Theorem 9 and (1 + epsilon)(Opt + k) by Theorem 10 of Du, Eppstein,
          Goodrich, Lueker, "On the approximability of geometric and geographic generalization and the min-max bin
          covering problem", arXiv:0904.3756
Practice  real lists of counts have many small labels, and "auto" packs those to proved optimality

Every algorithm takes a ``BinCoveringInstance`` (see ``instance.py``) and returns a ``Cover``; "scheme" and "bicriteria"
take epsilon as well, "exact" an effort.
"""

from __future__ import annotations

from shoal.problems.labels.balance import Sweep, sweep
from shoal.problems.labels.covering import cover, group_labels, levels
from shoal.problems.labels.instance import Bound, Cover, lower_bound

__all__ = ["Bound", "Cover", "Sweep", "cover", "group_labels", "levels", "lower_bound", "sweep"]
