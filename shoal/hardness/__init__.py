"""The papers' hardness proofs as generators of instances, each with a target cost and whether it can be reached.

| function | from | to | source |
|---|---|---|---|
| ``anonymity_27`` | 3DM, at most three triples per element | 3-anonymity, 27 columns | Blocki, Williams 2010, 1.2 |
| ``four_stars`` | 1-in-3 SAT | edges of a graph into 4-stars | the same, 1.5 |
| ``binary_anonymity`` | edges into triangles and 4-stars | 3-anonymity, binary columns | the same, Lemma 6 |
| ``diversity_three_columns`` | tripartite edges into triangles | 2-diversity, 3 sensitive columns | the same, 1.6 |
| ``diversity_one_column`` | tripartite edges into triangles | 3-diversity, 1 sensitive column | the same, 1.7 |
| ``diversity_by_matching`` | l-dimensional matching | l-diversity, any m >= l >= 3 | Xiao, Yi, Tao 2010, 4.7 |
| ``bin_covering`` | 3-Partition | min-max bin covering | Du et al. 2009, 5 |
| ``planar_regions`` | 3DM | regions of a planar graph, k = 3 | the same, section 2 |
| ``plane_tiles`` | 3DM | rectangles of points, k = 3 | the same, section 3 |
| ``gather`` | 3-SAT | r-gather, radius 1 or 2 | Aggarwal et al. 2006, 2.1 |
| ``cellular`` | dominating set | cellular clustering with set-up costs | the same, section 3 |
| ``bins_in_binary`` | Partition | min-max bin covering, k or 2 k | Du et al. 2009, Theorem 6 |
| ``bins_in_unary`` | 3-Partition | min-max bin covering, k or nearly 4/3 k | the same |
| ``rtile`` | 3DM | RTILE, 3 or 4 | the same, after Theorem 4 |

Each returns an ``Instance``: some answer costs at most its ``target`` if and only if ``answer`` is true. The sources
(``Formula``, ``Triples``, ``Tripartite``, ``ThreePartition``, ``TwoPartition``, ``DominatingSet``) solve themselves by
search, so keep them small.
"""

from shoal.hardness.instances import (
    DominatingSet,
    Formula,
    Graph,
    Grid,
    Instance,
    Metric,
    Points,
    Sizes,
    Table,
    ThreePartition,
    Tripartite,
    Triples,
    TwoPartition,
)
from shoal.hardness.planar import planar_regions, plane_tiles, rtile
from shoal.hardness.reductions import (
    anonymity_27,
    bin_covering,
    binary_anonymity,
    bins_in_binary,
    bins_in_unary,
    cellular,
    diversity_by_matching,
    diversity_one_column,
    diversity_three_columns,
    four_stars,
    gather,
)

__all__ = [
    "DominatingSet",
    "Formula",
    "Graph",
    "Grid",
    "Instance",
    "Metric",
    "Points",
    "Sizes",
    "Table",
    "ThreePartition",
    "Tripartite",
    "Triples",
    "TwoPartition",
    "anonymity_27",
    "bin_covering",
    "binary_anonymity",
    "bins_in_binary",
    "bins_in_unary",
    "cellular",
    "diversity_by_matching",
    "diversity_one_column",
    "diversity_three_columns",
    "four_stars",
    "gather",
    "planar_regions",
    "plane_tiles",
    "rtile",
]
