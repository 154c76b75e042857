"""What may be asked of both problems, and set-up costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.arguments import coordinates, known, number, whole_number
from shoal.problems.catalogue import names

SECONDS = {"fast": 2.0, "balanced": 60.0, "thorough": 600.0}  # of the exact methods


def check(r: Any, epsilon: Any, most: Any, centers: str, method: str, problem: str) -> tuple[int, float, int | None]:
    """r, epsilon and max_clusters as numbers; PolicyError for what is none, or a word that is not known."""
    least = whole_number("r", r, "a cluster has a whole number of points, at least 1")
    says = "the share left out is at least 0 and under 1, or nothing would be left"
    share = number("epsilon", epsilon, says, lambda x: 0 <= x < 1)
    if most is not None:
        most = whole_number("max_clusters", most)
    known("place for centers", centers, ["points", "anywhere"])
    known(f"method for {problem}", method, ["auto", *names(problem)])
    return least, share, most


def setup_of(setup_costs: Any, n: int) -> np.ndarray:
    """float64[n]: what opening a cluster around each point costs; InputError for what is no cost."""
    if setup_costs is None:
        return np.zeros(n)
    setup = coordinates(setup_costs, "setup_costs")
    if setup.ndim and setup.shape != (n,):
        raise InputError(f"setup_costs has shape {setup.shape}; one number, or one for each of the {n} points")
    setup = np.full(n, float(setup)) if not setup.ndim else setup.copy()
    bad = ~np.isfinite(setup) | (setup < 0)
    if bad.any():
        said = "costs are finite and at least 0"
        if np.ndim(setup_costs):  # those of the points stay unsaid
            raise InputError(f"setup_costs: {said}, and {int(bad.sum()):,} are not")
        raise InputError(f"setup_costs {float(setup_costs):g}: {said}")
    return setup
