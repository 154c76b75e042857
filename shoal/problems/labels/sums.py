"""The other cost functions of Du, Eppstein, Goodrich and Lueker 2009, section 1: sums over the groups.

A group E costs the sum, or the largest, over its records of an error d; the groups' costs are added, or the largest is
taken.  The paper names d = 1 and d = |E| - k.  Of the eight costs that makes, d = 1 gives the largest group ("max"),
the number of records (the same for every answer), the number of groups (one group is best) and 1.  d = |E| - k gives

    sum of sums      |E| (|E| - k) added up: squares less k times all records        objective "squares"
    sum of largest   |E| - k added up: all records less k for every group            objective "count": most groups
    largest of either   rises with the largest group, so "max" answers them

Both sums are strongly NP-hard for labels: 3-Partition with k = B has a partition exactly if they are 0.
"""

from __future__ import annotations

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Guarantee
from shoal.problems.labels.balance import VISITS, auto_labels, balanced
from shoal.problems.labels.bounds import distinct, lower_bound, most_bins, up
from shoal.problems.labels.greedy import spread_labels
from shoal.problems.labels.instance import Cover, Instance, finish, paid

SMALL = 12  # labels up to which every grouping is looked at
TRIES = 40  # numbers of groups tried


def cover_sum(given: Instance, objective: str, method: str) -> Cover:
    """Groups with a small sum of squared sizes, or as many groups as are found; the optimum for up to 12 labels.

    method  "auto" or "exact"; PolicyError for others, which lower the largest group, and for "exact" beyond 12 labels
    """
    if method not in ("auto", "exact"):
        raise PolicyError(
            f"method {method!r} lowers the largest group; objective {objective!r} is for 'auto' or 'exact'"
        )
    n = len(given.sizes)
    if n <= SMALL:
        label = _best_of_all(given, objective)
        promise = Guarantee(factor=1, additive=0, theorem="every grouping was looked at")
        best = cost(given, label, objective)
        return finish(given, label, method, promise, best, "every grouping was looked at", objective=objective)
    if method == "exact":
        raise PolicyError(f"{n} labels are too many for an exact answer to {objective!r}, {SMALL} at most; use 'auto'")
    label = _tried(given, objective)
    low, why = least_sum(given, objective)
    return finish(given, label, method, Guarantee(), low, why, objective=objective)


def cost(given: Instance, label: np.ndarray, objective: str) -> int:
    """What a grouping costs, in whole numbers of any length."""
    loads = [load for load in given.loads(label, int(label.max()) + 1).tolist() if load]
    return paid(loads, given.k, objective)


def least_sum(given: Instance, objective: str) -> tuple[int, str]:
    """(no grouping costs less, because of this).

    At most M groups reach k.  So there are at least total - k M records above k.  And the loads, in falling order,
    start with sums no smaller than those of the largest labels, for the j largest lie in at most j groups; among M
    numbers of that kind, of the same sum, the squares are least where the large labels stand alone and the rest is
    level.
    """
    most = most_bins(*distinct(given.sizes), given.k)
    if objective == "count":
        return given.total - given.k * most, f"at most {most} groups reach {given.k}"
    rest, groups, low = given.total, most, 0
    for size in np.sort(given.sizes)[::-1].tolist():
        if groups == 1 or size * groups <= rest:
            break
        rest, groups, low = rest - size, groups - 1, low + size * size
    level, above = divmod(rest, groups)
    low += above * (level + 1) ** 2 + (groups - above) * level**2
    return low, f"at most {most} groups reach {given.k}, and none is smaller than its largest label"


def _tried(given: Instance, objective: str) -> np.ndarray:
    """The best of the packings made for the least largest group, and of level ones with as many groups as work."""
    found = [auto_labels(given, lower_bound(given.sizes, given.k)), spread_labels(given)]
    most = most_bins(*distinct(given.sizes), given.k)
    works, fails = 0, most + 1
    budget = VISITS // 100 if given.wide else VISITS
    for _ in range(TRIES):
        m = most if fails > most else (works + fails) // 2
        if m <= works:
            break
        label, least, _, budget = balanced(given, m, given.k, max(given.k, up(given.total, m)), budget)
        if least >= given.k:
            works = m
            found.append(label)
        else:
            fails = m
    return min(found, key=lambda label: (cost(given, label, objective), cost(given, label, "squares")))


def _best_of_all(given: Instance, objective: str) -> np.ndarray:
    """An optimum by dynamic programming over subsets of the labels; O(3^n)."""
    sizes, k = given.sizes.tolist(), given.k
    n = len(sizes)
    load = [0] * (1 << n)
    for mask in range(1, 1 << n):
        low = mask & -mask
        load[mask] = load[mask ^ low] + sizes[low.bit_length() - 1]
    best: list[tuple[int, int] | None] = [None] * (1 << n)  # (cost, the group of the first label left)
    best[0] = (0, 0)
    for mask in range(1, 1 << n):
        first = mask & -mask
        rest = mask ^ first
        sub = rest
        while True:
            group = sub | first
            before = best[mask ^ group]
            if load[group] >= k and before is not None:
                own = before[0] + (load[group] ** 2 if objective == "squares" else load[group] - k)
                now = best[mask]
                if now is None or own < now[0]:
                    best[mask] = (own, group)
            if not sub:
                break
            sub = (sub - 1) & rest
    label, mask, number = np.empty(n, np.int64), (1 << n) - 1, 0
    while mask:
        chosen = best[mask]
        assert chosen is not None
        label[[i for i in range(n) if chosen[1] >> i & 1]] = number
        mask, number = mask ^ chosen[1], number + 1
    return label
