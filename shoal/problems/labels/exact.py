"""Proved optima: the best heuristic answer, then a search for a smaller largest bin until none is left."""

from __future__ import annotations

from shoal.model.certificate import Guarantee
from shoal.model.effort import Effort
from shoal.problems.labels.balance import auto_labels
from shoal.problems.labels.bounds import lower_bound
from shoal.problems.labels.five_halves import FACTOR_5_2
from shoal.problems.labels.instance import Cover, Instance, finish
from shoal.problems.labels.packing import hard, search


def exact(given: Instance, effort: Effort = Effort()) -> Cover:
    """The optimum, unless the seconds of the effort pass first; then the best packing found, with the bound reached.

    Exponential time.  ``certificate.details["stopped"]`` names the limit that ended the search, if one did.
    """
    bound = lower_bound(given.sizes, given.k)
    label = auto_labels(given, bound)
    label, bound, stopped = search(given, label, bound, hard(effort))
    if stopped:
        promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    else:
        promise = Guarantee(factor=1, additive=0, theorem="exhaustive search, finished")
    details = {"stopped": stopped} if stopped else {}
    return finish(given, label, "exact", promise, bound.value, bound.argument, details)
