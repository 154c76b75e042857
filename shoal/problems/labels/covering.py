"""The front door: one call, one signature for every method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shoal.model.arguments import known, number, renamed
from shoal.model.effort import Effort
from shoal.model.repeatable import recorded
from shoal.problems.catalogue import algorithm
from shoal.problems.interrupts import heard
from shoal.problems.labels.balance import auto
from shoal.problems.labels.instance import ORDERS, UNITS, Cover, instance
from shoal.problems.labels.sums import cover_sum
from shoal.watching import watched

ORDERED = ("fold", "spread")  # the methods whose answer depends on the order asked for


@renamed(time_limit="effort")
@watched
@heard
@recorded
def cover(
    sizes: Iterable[Any],
    k: int,
    method: str = "auto",
    *,
    effort: str | float = "balanced",
    seed: int | None = None,
    order: str = "sorted",
    epsilon: float = 0.5,
    objective: str = "max",
) -> Cover:
    """Group labels so that every group counts at least k and the largest as little as possible.

    sizes       how many records each label has: whole numbers of at least 0, of any length in digits
    k           least total of a group
    method      "auto", "fold", "spread", "five_halves", "scheme", "bicriteria", "exact"
    effort      of "auto": "fast" does not search, "balanced" searches a counted share, "thorough" and seconds (up to so
                many) as "exact" does, which ends after 2, 60 or 600 seconds; what is polynomial is the same at any
    seed        of order="random"; None: fresh
    order       of "fold" and "spread": "sorted" (decreasing), "given", or "random" by ``seed``
    epsilon     of "scheme" and "bicriteria", above 0 and at most 1
    objective   "max": the largest group; "count": as many groups as possible (what they hold above k, added up);
                "squares": squared sizes added up, which is |E| (|E| - k) added up and k times all records.  The last
                two take methods "auto" and "exact" alone, the latter for up to 12 labels

    Returns a ``Cover``: ``.labels`` (group of each label), ``.loads``, ``.cost``, ``.certificate``, ``.bins()``.
    Labels that count 0 are dealt out to the groups in turn.

    Raises InfeasibleError when all sizes together are below k, InputError for sizes that are no counts, PolicyError
    for unknown methods and orders, and when "scheme" or "bicriteria" would have to look at too many types.

    "fold", "spread" and "five_halves" take O(n log n) for n labels, "scheme" and "bicriteria" a polynomial whose degree
    grows with 1 / epsilon, "exact" has no polynomial bound.  Source: Du, Eppstein, Goodrich, Lueker 2009, section 5:
    factors 3 (Theorem 7), 5/2 (Theorem 9) and the schemes (Theorems 10 and 11).

    Examples:
        >>> found = cover([7, 5, 4, 3, 2], k=6)
        >>> found.loads.tolist(), found.cost, found.certificate.optimal
        ([7, 7, 7], 7, True)
    """
    known("order", order, ORDERS)
    known("objective", objective, UNITS)
    number("epsilon", epsilon, "a number above 0 and at most 1", lambda x: 0 < x <= 1)
    asked = Effort.of(effort)
    solve: Callable[..., Cover] = auto if method == "auto" else algorithm("labels", method)
    given = instance(sizes, k, order if method in ORDERED else "sorted", seed)
    if objective != "max":
        return cover_sum(given, objective, method)
    if method in ("scheme", "bicriteria"):
        return solve(given, epsilon)
    return solve(given, asked) if method in ("auto", "exact") else solve(given)
