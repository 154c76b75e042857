"""Tables: group the cells of a table so that every group meets a privacy model, at the least loss.

*Input*: a ``Histogram``, privacy models (k-anonymity, l-diversity, ...), a ``Recoding``.
*Feasible answer*: a ``Partition`` of all rows into groups that each meet every model.
*Cost*: the loss of publishing: stars, suppressed tuples, or NCP, summed over the rows.
*Guarantees*: l times the fewest suppressed tuples (Xiao, Yi, Tao 2010, Theorem 5.19), and so l d times the fewest
stars.
*Hardness*: NP-hard for l >= 3 with three sensitive values (ibid.), and for k >= 3 (Blocki, Williams 2010); polynomial
for k = 2 and for two sensitive values with l = 2.

Every algorithm has the signature ``algorithm(task: Task) -> Grouping``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import Effort, seed_of, suggesting
from shoal.model.histogram import Histogram, Partition
from shoal.model.loss import measures
from shoal.model.privacy import PrivacyModel, Requirement, requirement
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Recoding, Sets
from shoal.model.task import Constraints, Decoys, Grouping, Population, Task, nothing, refuse_infeasible, shortfall
from shoal.problems.tables.constraints import solve
from shoal.problems.tables.three_phase import stars_from_tuples
from shoal.threads import interruptible
from shoal.watching import watched

__all__ = [
    "ColumnRecoding",
    "Constraints",
    "Decoys",
    "Effort",
    "Grouping",
    "Histogram",
    "Levels",
    "Partition",
    "Population",
    "Ranges",
    "Recoding",
    "Requirement",
    "Sets",
    "Task",
    "group",
    "measures",
    "requirement",
    "shortfall",
    "stars_from_tuples",
]


@watched
@suggesting
@interruptible
def group(
    histogram: Histogram,
    privacy: PrivacyModel | Sequence[PrivacyModel] | Requirement,
    method: str = "auto",
    *,
    recoding: Recoding | None = None,
    effort: str | float | Effort = "balanced",
    seed: int | None = None,
    max_suppressed: float = 0.0,
    apart: np.ndarray | None = None,
    admits: Callable[[np.ndarray], np.ndarray] | None = None,
    constraints: Constraints | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Grouping:
    """A partition of the rows of a histogram into groups that meet privacy models.

    histogram  the cells, for example ``Histogram.from_rows(codes, sensitive_codes)``
    privacy    one model, several, or a Requirement
    method     "auto" or a name of the catalogue
    recoding   how groups are published; suppression with stars if None
    effort     "fast", "balanced", "thorough", or seconds
    seed       None: fresh randomness; an int: reproducible
    max_suppressed  share of the rows that global recoding may star completely; the block that they form meets the
                    models too
    apart      int64[cells]  cells with different numbers never share a group; None: no restriction. If a Requirement
               asks for more rows than such a part has, the whole part is enough
    admits     a further condition of global recoding on a choice of levels: int64[d] levels to bool[cells]; see
               ``Task``
    constraints  what the groups keep in addition: a population, a mean risk, ...; see ``Constraints``

    Returns a ``Grouping``: partition (cell, group, and count, int64 each), certificate, method. Raises
    InfeasibleError if no partition exists, PolicyError for a model that the method cannot enforce. "three_phase" takes
    O(m log m) for m cells. Searches take the time that the effort allows. Exact methods have no polynomial bound.
    Sources: docs/methods.md, for each method; Xiao, Yi, Tao 2010, Theorem 5.19, for "three_phase".

    Examples:
        >>> from shoal import KAnonymity
        >>> found = group(Histogram.from_rows([[0, 0], [0, 0], [0, 1], [1, 1]]), KAnonymity(2))
        >>> found.certificate.cost, found.partition.sizes.tolist(), found.certificate.optimal
        (2, [2, 2], True)
    """
    need = _models(histogram, privacy, apart)
    if max_suppressed and method != "global_recoding":
        raise PolicyError(
            f"⟨max_suppressed⟩ is a budget of 'global_recoding'; {method!r} may star any row whole where "
            "this loses least"
        )
    given = Constraints() if constraints is None else constraints
    if given.shards is not None and apart is not None:
        raise PolicyError("shards and rows kept apart both cut the table in parts; leave one of them out")
    task = Task(
        histogram=histogram, requirement=need, recoding=recoding or Recoding.stars(histogram), seed=_seed(seed),
        effort=Effort.of(effort), progress=progress, spare=int(max_suppressed * histogram.rows + 1e-9),
        apart=None if apart is None or np.unique(apart).size < 2 else apart, admits=admits, constraints=given,
    )  # fmt: skip
    return solve(task, method)


def _models(
    histogram: Histogram, privacy: PrivacyModel | Sequence[PrivacyModel] | Requirement, apart: np.ndarray | None
) -> Requirement:
    """The requirement of every group.

    InputError for anything but a histogram, InfeasibleError for a part without groups.

    A given Requirement is relaxed for parts with too few rows.
    """
    if not isinstance(histogram, Histogram):
        raise InputError(
            f"a histogram of cells is grouped here, and this is one {type(histogram).__name__}; shoal.anonymize takes "
            "files and frames, Histogram.from_rows arrays of codes"
        )
    if isinstance(privacy, Requirement):
        return privacy
    models = list(privacy) if isinstance(privacy, Sequence) else [privacy]
    need = requirement(models, histogram.sensitive_names, histogram)
    for number in () if apart is None else np.unique(apart).tolist():
        refuse_infeasible(histogram.part(np.flatnonzero(apart == number)), need)
    return need


def _seed(given: int | None) -> int:
    seed = seed_of(given)
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
