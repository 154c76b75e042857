"""Proved optima: the best heuristic answer, then a search for a smaller largest bin until none is left."""

from __future__ import annotations

from shoal.model.certificate import Guarantee
from shoal.problems.labels.balance import auto_labels
from shoal.problems.labels.bounds import lower_bound
from shoal.problems.labels.five_halves import FACTOR_5_2
from shoal.problems.labels.instance import Cover, Instance, finish
from shoal.problems.labels.packing import Limits, search


def exact(given: Instance, time_limit: float = 60.0) -> Cover:
    """The optimum, unless ``time_limit`` seconds pass first; then the best packing found, with the bound reached.

    Exponential time.  ``certificate.details["stopped"]`` names the limit that ended the search, if one did.
    """
    bound = lower_bound(given.sizes, given.k)
    label = auto_labels(given, bound)
    limits = Limits(fillings=300_000, steps=20_000_000, nodes=None, seconds=float(time_limit))
    label, bound, stopped = search(given, label, bound, limits)
    if stopped:
        promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    else:
        promise = Guarantee(factor=1, additive=0, theorem="exhaustive search, finished")
    details = {"stopped": stopped} if stopped else {}
    return finish(given, label, "exact", promise, bound.value, bound.argument, details)
