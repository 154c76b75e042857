"""What may be asked of both problems."""

from __future__ import annotations

from typing import Any

from shoal.model.arguments import known, number, whole_number
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
