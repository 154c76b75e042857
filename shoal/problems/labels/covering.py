"""The public functions for labels: ``cover`` with one signature for every method, names for groups, and a hierarchy.

``group_labels`` names groups. ``levels`` groups groups, which gives a hierarchy for a column without one. ``cover_sum``
is for the other cost functions of Du, Eppstein, Goodrich, Lueker 2009, section 1, which are sums over the groups.

In these, each record of a group E has an error d. A group's cost is the sum or the largest of its records' errors, and
the total cost is the sum or the largest of the groups' costs. The paper has d = 1 and d = |E| - k. Of the eight
resulting costs, d = 1 gives the largest group ("max"), the number of records (the same for every answer), the number of
groups (one group is best), and 1. d = |E| - k gives

    sum of sums      sum of |E| (|E| - k): squares minus k times all records         objective "squares"
    sum of largest   sum of |E| - k: all records minus k for every group             objective "count": most groups
    largest of either   increases with the largest group, so "max" solves them

Both sums are strongly NP-hard for labels: 3-Partition with k = B has a partition if and only if they are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import Effort, known, no_effect, number, recorded, seed_of, suggesting, whole
from shoal.model.certificate import Guarantee
from shoal.model.loss import parts_bounds
from shoal.model.notation import MISSING, element
from shoal.problems.catalogue import algorithm
from shoal.problems.labels.approximations import spread_labels
from shoal.problems.labels.balance import VISITS, auto, auto_labels, balanced
from shoal.problems.labels.instance import (
    ORDERS,
    UNITS,
    BinCoveringInstance,
    Cover,
    distinct,
    finish,
    instance,
    lower_bound,
    most_bins,
    paid,
    up,
)
from shoal.threads import interruptible
from shoal.watching import watched

SMALL = 12  # up to this many labels, all groupings are searched
TRIES = 40  # numbers of groups that are tried


def cover_sum(given: BinCoveringInstance, objective: str, method: str) -> Cover:
    """Groups with a small sum of squared sizes, or as many groups as possible; the optimum for up to 12 labels.

    method  "auto" or "exact"; PolicyError for others, which minimize the largest group, and for "exact" beyond 12
            labels
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
    low, why = least_sum(given, objective)
    label = _tried(given, objective, low)
    return finish(given, label, method, Guarantee(), low, why, objective=objective)


def cost(given: BinCoveringInstance, label: np.ndarray, objective: str) -> int:
    """The cost of a grouping, an integer of any length."""
    loads = [load for load in given.loads(label, int(label.max()) + 1).tolist() if load]
    return paid(loads, given.k, objective)


def least_sum(given: BinCoveringInstance, objective: str) -> tuple[int, str]:
    """(a lower bound of the cost of every grouping, its argument).

    At most M groups reach k. So at least total - k M records are above k, and the squares of M loads are bounded.
    """
    most = most_bins(*distinct(given.sizes), given.k)
    if objective == "count":
        return given.total - given.k * most, f"at most {most} groups reach {given.k}"
    low = parts_bounds(given.sizes, most)[1]
    return low, f"at most {most} groups reach {given.k}, and none is smaller than its largest label"


def _tried(given: BinCoveringInstance, objective: str, low: int) -> np.ndarray:
    """The best of the packings made for the least largest group, and of balanced ones with as many groups as possible.

    low  a lower bound of the cost; the first packing that reaches it is returned
    """
    found = [auto_labels(given, lower_bound(given.sizes, given.k))]
    if cost(given, found[0], objective) == low:
        return found[0]
    found.append(spread_labels(given))
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
            if cost(given, label, objective) == low:
                break
        else:
            fails = m
    return min(found, key=lambda label: (cost(given, label, objective), cost(given, label, "squares")))


def _best_of_all(given: BinCoveringInstance, objective: str) -> np.ndarray:
    """An optimum by dynamic programming over subsets of the labels; O(3^n)."""
    sizes, k = given.sizes.tolist(), given.k
    n = len(sizes)
    load = [0] * (1 << n)
    for mask in range(1, 1 << n):
        low = mask & -mask
        load[mask] = load[mask ^ low] + sizes[low.bit_length() - 1]
    best: list[tuple[int, int] | None] = [None] * (1 << n)  # (cost, the group of the first remaining label)
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


ORDERED = ("fold", "spread")  # the methods whose result depends on the requested order
SCHEMES = ("scheme", "bicriteria")  # the methods with a precision
EPSILON = 0.5


@watched
@suggesting
@interruptible
@recorded
def cover(
    sizes: Iterable[Any],
    k: int,
    method: str = "auto",
    *,
    effort: str | float = "balanced",
    seed: int | None = None,
    order: str = "sorted",
    epsilon: float = EPSILON,
    objective: str = "max",
) -> Cover:
    """Groups of labels that each count at least k, with the largest group as small as possible.

    sizes       the number of records of each label: whole numbers of at least 0, of any length in digits
    k           least total of a group
    method      "auto", "fold", "spread", "five_halves", "scheme", "bicriteria", "exact"
    effort      for "auto": "fast" does not search, "balanced" searches a counted share, "thorough" and seconds (up to
                that many) work as "exact" does, which ends after 2, 60, or 600 seconds; polynomial methods ignore it
    seed        for order="random"; None: fresh
    order       for "fold" and "spread": "sorted" (decreasing), "given", or "random" by ``seed``
    epsilon     for "scheme" and "bicriteria", above 0 and at most 1
    objective   "max": the largest group; "count": as many groups as possible (the sum of what they have above k);
                "squares": the sum of squared sizes, which is the sum of |E| (|E| - k) plus k times all records. The
                last two accept only the methods "auto" and "exact", the latter for up to 12 labels

    Returns a ``Cover``: ``.labels`` (group of each label), ``.loads``, ``.cost``, ``.certificate``, ``.bins()``.
    Labels that count 0 are dealt to the groups in turn.

    Raises InfeasibleError if all sizes together are below k, InputError for sizes that are not counts, PolicyError
    for unknown methods and orders, and if "scheme" or "bicriteria" would have to try too many types.

    "fold", "spread", and "five_halves" take O(n log n) for n labels, "scheme" and "bicriteria" a polynomial whose
    degree grows with 1 / epsilon; "exact" has no polynomial bound. Source: Du, Eppstein, Goodrich, Lueker 2009, section
    5: factors 3 (Theorem 7), 5/2 (Theorem 9), and the schemes (Theorems 10 and 11). docs/labels.md has the proofs that
    the paper leaves out.

    Examples:
        >>> found = cover([7, 5, 4, 3, 2], k=6)
        >>> found.loads.tolist(), found.cost, found.certificate.optimal
        ([7, 7, 7], 7, True)
    """
    known("order", order, ORDERS)
    known("objective", objective, UNITS)
    number("epsilon", epsilon, "a number above 0 and at most 1", lambda x: 0 < x <= 1)
    asked, seed = Effort.of(effort), seed_of(seed)
    solve: Callable[..., Cover] = auto if method == "auto" else algorithm("labels", method)
    if order != "sorted" and method not in ORDERED:
        raise no_effect(f"order={order!r}", *(f"⟨method={name!r}⟩" for name in ORDERED))
    if seed is not None and order != "random":
        raise no_effect(f"seed={seed}", "⟨order='random'⟩")
    if epsilon != EPSILON and method not in SCHEMES:
        raise no_effect(f"epsilon={epsilon}", *(f"⟨method={name!r}⟩" for name in SCHEMES))
    given = instance(sizes, k, order, seed)
    if objective != "max":
        return cover_sum(given, objective, method)
    if method in SCHEMES:
        return solve(given, epsilon)
    return solve(given, asked) if method in ("auto", "exact") else solve(given)


STYLES = ("ends", "largest", "numbers")


@suggesting
def group_labels(
    names: Sequence[Any], labels: np.ndarray, counts: Sequence[int] | np.ndarray | None = None, style: str = "ends"
) -> list[str]:
    """One readable name per group, no two alike.

    names    the labels that were grouped, all different
    labels   int64[n]  group of each
    counts   needed for style "largest"
    style    "ends": first and last in sorted order, "Adams .. Baker and 12 more";
             "largest": the two most frequent, "Smith, Jones and 12 more"; "numbers": "group 1"

    A group of one carries that label's own name. A missing label is called missing, as in sets; the empty text and the
    text "missing" are in quotes, so that each differs from it.  O(n log n).
    """
    text = ["" if name is None or name != name else str(name) for name in names]
    return _named(_shown(names), _ranked(text, counts, style), np.asarray(labels), style)


def _shown(names: Sequence[Any]) -> list[str]:
    """The labels as the name of a group shows them."""
    apart = {"": element(""), MISSING: element(MISSING)}
    return [MISSING if name is None or name != name else apart.get(str(name), str(name)) for name in names]


def _ranked(text: list[str], counts: Sequence[int] | np.ndarray | None, style: str) -> np.ndarray:
    """The names in the order in which a group shows them."""
    known("style of group labels", style, STYLES)
    rank = np.array(sorted(range(len(text)), key=text.__getitem__), dtype=np.int64)
    if style != "largest":
        return rank
    if counts is None:
        raise PolicyError('style "largest" needs the counts')
    return rank[np.argsort(-whole(counts, "count")[rank], kind="stable")]


def _named(text: list[str], rank: np.ndarray, labels: np.ndarray, style: str) -> list[str]:
    """One name per group from the ranked names."""
    m = int(labels.max()) + 1 if len(labels) else 0
    if style == "numbers":
        return [f"group {g + 1}" for g in range(m)]
    by_group = rank[np.argsort(labels[rank], kind="stable")]
    number = np.bincount(labels, minlength=m)
    start = np.cumsum(number) - number
    found = []
    for at, c in zip(start.tolist(), number.tolist(), strict=True):
        first = text[by_group[at]]
        if c == 1:
            found.append(first)
            continue
        second = text[by_group[at + (c - 1 if style == "ends" else 1)]]
        joined = f"{first}, {second}" if c == 2 or style == "largest" else f"{first} .. {second}"
        found.append(joined if c == 2 else f"{joined} and {c - 2:,} more")
    if len(set(found)) < m:  # different labels with equal names
        found = [f"{name} (group {g + 1})" for g, name in enumerate(found)]
    return found


@suggesting
def levels(
    names: Sequence[Any],
    counts: Sequence[int] | np.ndarray,
    ks: Sequence[int],
    method: str = "auto",
    style: str = "ends",
) -> list[list[str]]:
    """A generalization hierarchy for labels: groups at each k, and groups of those at the next.

    names   distinct values of the column
    counts  records of each
    ks      increasing; every level groups the groups of the level below to at least its k
    method  of ``cover``; "bicriteria" is refused, because its groups can be below k

    Returns one row for each name, in the order given: [name, group at ks[0], ..., "*"], the form of an ARX hierarchy
    file. The last level is one group. Levels that the total cannot fill are left out.

    Raises InputError if names repeat or counts differ in length, PolicyError for ks that do not increase.
    """
    if method == "bicriteria":
        raise PolicyError("groups of method 'bicriteria' may be below k and cannot become a hierarchy; use 'auto'")
    text = ["" if name is None else str(name) for name in names]
    sizes = whole(counts, "count")
    if len(text) != len(sizes):
        raise InputError(f"there are {len(text)} names and {len(sizes)} counts")
    if len(set(text)) < len(text):
        raise InputError("the names of a hierarchy's values must all differ; add up the counts of equal ones first")
    steps = [int(k) for k in ks]
    if any(b <= a for a, b in pairwise(steps)):
        raise PolicyError(f"the levels' k are {steps}; give them in increasing order")
    columns: list[list[str]] = [text]
    group, loads = np.arange(len(text)), sizes
    total, rank, spelled = sum(sizes.tolist()), _ranked(text, sizes, style), _shown(names)
    for k in steps:
        if k > total:
            break
        found = cover(loads, k, method)
        group, loads = found.labels[group], found.loads
        shown = _named(spelled, rank, group, style)
        columns.append([shown[g] for g in group.tolist()])
        if len(loads) == 1:
            break
    columns.append(["*"] * len(text))
    return [list(row) for row in zip(*columns, strict=True)]
