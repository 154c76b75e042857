"""Approximation algorithms of min-max bin covering: factor 5/2, Fold and Spread, and the schemes of 1 + epsilon.

``five_halves`` covers greedily in decreasing order, and then spreads the leftover, or folds. Du, Eppstein, Goodrich,
Lueker 2009, Theorem 9 and Lemma 8. The paper omits Lemma 8's proof and the case of at most three bins, and misprints an
inequality (Opt >= 6/5 for <=); docs/labels.md has the completed proof.

Terms of the paper: large (above k / 2, below k), small (at most k / 2), f (largest item of the last bin), r (the rest
of the last bin), x_1 (first large item).
Difference: leftover small items go one by one to the least loaded bin, which needs no Lemma 8 and no case distinction
on the number of bins; ``leftover="thirds"`` follows the paper.

Fold and Spread make one pass and then distribute the leftover. Du, Eppstein, Goodrich, Lueker, "On the approximability
of geometric and geographic generalization and the min-max bin covering problem", arXiv:0904.3756: Fold is the algorithm
of Theorem 7, Spread the simplified form of Theorem 9's that their section 5 measures.

Difference: the paper merges Fold's leftover bin "with some other bin"; here it is the least loaded one, which the bound
allows and which Theorem 10's preprocessing needs.

The schemes are A_epsilon, and a bicriteria scheme with bins slightly below k. Du, Eppstein, Goodrich, Lueker 2009,
Theorems 10 and 11. The degree of the polynomial grows fast as epsilon decreases. The schemes are for small instances
and for completeness, and refuse if the enumeration would take too long.

Terms of the paper: nominal (below k), oversize (k or more), large (at least epsilon k), configuration (large items of
one bin, rounded down to epsilon (1 + epsilon)^j k, of at most 3 k), type (a multiset of configurations that uses every
large item, empty ones included), greedy completion.
Differences: epsilon is the exact decimal number that was written, and all comparisons are exact; a type has at most
``most_bins`` bins; if each bin contains exactly one oversize item, oversize and nominal items are rounded in separate
classes.
The paper only sketches Theorem 11; docs/labels.md proves it for the form used here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import product
from math import ceil, lcm, lgamma, log, log10, prod

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Guarantee
from shoal.problems.labels.instance import BinCoveringInstance, Cover, distinct, finish, lower_bound, most_bins, up

FACTOR_3 = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 7: at most max(k - 1 + largest item, 3k - 3)"


def bound_of_theorem_7(given: BinCoveringInstance) -> int:
    """The bound of Theorem 7: max(k - 1 + largest item, 3k - 3)."""
    return max(given.k - 1 + int(given.sizes.max()), 3 * given.k - 3)


def cover_greedily(given: BinCoveringInstance) -> tuple[np.ndarray, int, int]:
    """Next Fit for covering: (bin of each item, bins closed, bins begun); an open bin is the last one."""
    from shoal.kernels.labels import next_fit

    label = np.empty(len(given.sizes), np.int64)
    closed, begun, _ = given.run(next_fit, given.sizes, given.k, label)
    return label, closed, begun


def poured(given: BinCoveringInstance, label: np.ndarray, level: np.ndarray, most: int = -1) -> None:
    """Move the items of the open bin one by one to the least loaded closed bin.

    level  the loads of the closed bins

    most  once the least load would exceed it, the remaining items go to the bins in turn; -1: never. Changes label and
          level
    """
    from shoal.kernels.labels import pour

    left = np.flatnonzero(label == len(level))
    place = np.empty(len(left), np.int64)
    placed = given.run(pour, given.sizes[left], level, place, most)
    place[placed:] = np.arange(len(left) - placed) % len(level)
    label[left] = place


def fold_labels(given: BinCoveringInstance) -> np.ndarray:
    """Greedy covering; the leftover joins the least loaded bin as a whole."""
    label, closed, begun = cover_greedily(given)
    if begun > closed:
        label[label == closed] = int(np.argmin(given.loads(label, begun)[:closed]))
    return label


def spread_labels(given: BinCoveringInstance) -> np.ndarray:
    """Greedy covering.

    The leftover items go one by one into the least loaded bin while the largest load doesn't grow, and after that to
    the bins in turn.
    """
    label, closed, begun = cover_greedily(given)
    if begun > closed:
        level = given.loads(label, begun)[:closed]
        poured(given, label, level, max(level.tolist()))
    return label


def fold(given: BinCoveringInstance) -> Cover:
    """Theorem 7: at most max(k - 1 + largest item, 3k - 3), so at most 3 times the optimum; O(n) after sorting."""
    return _finish(given, fold_labels(given), "fold", FACTOR_3)


def spread(given: BinCoveringInstance) -> Cover:
    """The simplified Spread of section 5; O(n log n).

    Every bin gains at most the leftover, which is below k, so Fold's bound holds for it too.
    """
    return _finish(given, spread_labels(given), "spread", f"{FACTOR_3}, whose proof covers Spread")


def _finish(given: BinCoveringInstance, label: np.ndarray, method: str, theorem: str) -> Cover:
    bound = lower_bound(given.sizes, given.k)
    promise = Guarantee(factor=3, additive=0, theorem=theorem)
    details = {"theorem_at_most": bound_of_theorem_7(given)}
    return finish(given, label, method, promise, bound.value, bound.argument, details)


FACTOR_5_2 = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 9"


def three_parts(sizes: Sequence[int], k: int) -> list[int]:
    """Lemma 8: items of at most k / 2 with a sum of at most k, in three parts of at most k / 2 each.

    returns  part of each item, 0, 1, or 2

    Fill part 0 until an item doesn't fit. That item is part 1. Parts 0 and 1 together exceed k / 2, so the rest, part
    2, is below k / 2.
    """
    parts, level, over = [], 0, False
    for x in sizes:
        if over:
            parts.append(2)
        elif 2 * (level + x) <= k:
            level += x
            parts.append(0)
        else:
            over = True
            parts.append(1)
    return parts


def five_halves_labels(given: BinCoveringInstance, leftover: str = "least loaded") -> np.ndarray:
    """The better of Fold and the completed Theorem 9, for an instance in decreasing order.

    leftover  "least loaded": one by one;  "thirds": by Lemma 8 to the first three bins, as in the paper (needs three
              closed bins, else one by one)
    """
    label, closed, begun = cover_greedily(given)
    if begun == closed:
        return label  # every bin is covered and below 2k, or is a single item
    folded = fold_labels(given)
    left = np.flatnonzero(label == closed)
    sizes = given.sizes
    f = left[0]
    if 2 * sizes[f] <= given.k:  # case 1: all of the last bin is small
        level = given.loads(label, begun)[:closed]
        if leftover == "thirds" and closed >= 3:
            label[left] = three_parts(sizes[left].tolist(), given.k)
        else:
            poured(given, label, level)
    else:  # case 2: one large item is left, with all small ones
        large = np.flatnonzero(sizes < given.k)
        x_1 = large[0]
        r = sizes[left[1:]].sum()
        if x_1 == f or sizes[x_1] + r < given.k:
            return folded  # the only large item, or case 2.2: Opt > 3/2 k
        label[x_1], label[f] = label[f], label[x_1]  # case 2.1
    return min(label, folded, key=given.cost)


def five_halves(given: BinCoveringInstance) -> Cover:
    """Theorem 9, every case: at most 5/2 times the optimum; O(n log n)."""
    bound = lower_bound(given.sizes, given.k)
    promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    return finish(given, five_halves_labels(given), "five_halves", promise, bound.value, bound.argument)


TYPES = 200_000  # types that may be completed
PLACED = 20_000_000  # items that all completions together may place
CONFIGURATIONS = 3_000
COUNTING = 1_000_000  # steps for counting the types; with more, an upper bound is estimated


def scheme(given: BinCoveringInstance, epsilon: float) -> Cover:
    """Theorem 10: at most (1 + epsilon)(Opt + k).

    Raises PolicyError with the estimated number of types if there are more than TYPES, or if they place more than
    PLACED items.
    """
    eps = Fraction(str(epsilon))
    label = _preprocessed(given)
    if label is None:
        label = min(_packings(given, eps, given.k, merge=True), key=lambda found: found[0])[1]
    bound = lower_bound(given.sizes, given.k)
    factor = float(1 + eps)
    theorem = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 10: at most (1 + epsilon)(Opt + k)"
    promise = Guarantee(factor=factor, additive=factor * given.k, theorem=theorem)
    return finish(given, label, "scheme", promise, bound.value, bound.argument, {"epsilon": float(eps)})


def bicriteria(given: BinCoveringInstance, epsilon: float) -> Cover:
    """Theorem 11: at most (1 + epsilon) times the optimum, with bins of (1 - epsilon) k: NOT k-anonymous.

    The lower bound is that for bins of (1 - epsilon) k; the promise is relative to the optimum for bins of k.
    Raises PolicyError with the estimated number of types if there are more than TYPES, or if they place more than
    PLACED items.
    """
    eps = Fraction(str(epsilon))
    if eps == 1:
        raise PolicyError("epsilon = 1 would allow empty groups; method 'bicriteria' needs it below 1")
    short = up(given.k * (eps.denominator - eps.numerator), eps.denominator)
    label = _preprocessed(given)
    if label is None:
        found = (p for p in _packings(given, eps / 2, short, merge=False) if p[2] >= short)
        label = min(found, key=lambda p: p[0])[1]
    bound = lower_bound(given.sizes, short)
    theorem = "Du, Eppstein, Goodrich, Lueker 2009, Theorem 11: at most (1 + epsilon) Opt, groups of (1 - epsilon) k"
    promise = Guarantee(factor=float(1 + eps), additive=0, theorem=theorem)
    smallest = min(given.loads(label, int(label.max()) + 1).tolist())
    details = {
        "epsilon": float(eps),
        "allowed_smallest": short,
        "k_anonymous": smallest >= given.k,
        "warning": f"groups may hold as few as {short} of the k = {given.k} asked for: not k-anonymous, not a release",
    }
    argument = f"with groups of {short}: {bound.argument}"
    return finish(given, label, "bicriteria", promise, bound.value, argument, details)


def _preprocessed(given: BinCoveringInstance) -> np.ndarray | None:
    """Theorem 10's preprocessing if it gives an optimum at once, else None; sizes are in decreasing order.

    If items below k have total k or more and some item has at least 3k, then Fold costs that item, because its other
    bins are below 3k. If they have total below k, some optimum has one oversize item per bin. If these items differ by
    k or more, the rest fits with the least of them.
    """
    sizes, k = given.sizes, given.k
    oversize = int((sizes >= k).sum())
    nominal = int(sizes[oversize:].sum())
    if nominal >= k and sizes[0] >= 3 * k:
        return fold_labels(given)
    if nominal < k and sizes[0] - sizes[oversize - 1] >= k:
        return np.minimum(np.arange(len(sizes)), oversize - 1)
    return None


def _packings(
    given: BinCoveringInstance, eps: Fraction, least: int, merge: bool
) -> Iterator[tuple[int, np.ndarray, int]]:
    """(largest load, bin of each item, least load) for the greedy completion of every type.

    A type has at most as many bins as could have ``least`` each.
    """
    sizes, k = given.sizes.tolist(), given.k
    oversize = sum(x >= k for x in sizes)
    alone = sum(sizes[oversize:]) < k  # each bin has exactly one oversize item
    shift = sizes[oversize - 1] - k if alone else 0
    scaled = [x - shift * (i < oversize) for i, x in enumerate(sizes)]

    steps = [eps]
    while steps[-1] * (1 + eps) < 3:
        steps.append(steps[-1] * (1 + eps))
    marks = [up(k * s.numerator, s.denominator) for s in steps]  # the least size of each class
    large = [i for i, x in enumerate(scaled) if x >= marks[0]]
    key = {i: (alone and i < oversize, bisect_right(marks, scaled[i]) - 1) for i in large}
    classes = sorted(set(key.values()), reverse=True)
    members = [[i for i in large if key[i] == c] for c in classes]
    scale = lcm(*(s.denominator for s in steps))
    weight = [int(steps[c[1]] * scale) for c in classes]
    lead = [c[0] for c in classes]
    counts = [len(m) for m in members]
    configurations = _configurations(weight, counts, 3 * scale, lead if alone else None)
    bins = oversize if alone else most_bins(*distinct(given.sizes), least)
    _refuse_too_many_types(counts, weight, 3 * scale, configurations, bins, max(1, min(TYPES, PLACED // len(sizes))))
    small = [i for i, x in enumerate(scaled) if x < marks[0]]
    for chosen in types_of_bins(counts, configurations or [], bins):
        for empty in [0] if alone else range(bins - len(chosen) + 1):
            if not chosen and not empty:
                continue
            contents = _complete(chosen, empty, members, small, scaled)
            if merge:
                _merge_short(contents, scaled, k)
            label = np.empty(len(sizes), np.int64)
            for b, inside in enumerate(contents):
                label[inside] = b
            loads = [sum(sizes[i] for i in inside) for inside in contents]
            yield max(loads), label, min(loads)


def _configurations(
    weight: list[int], counts: list[int], most: int, lead: list[bool] | None
) -> list[tuple[int, ...]] | None:
    """Nonempty count vectors of rounded total at most ``most``, descending.

    With ``lead``, exactly one of the marked classes.

    None if there are more than CONFIGURATIONS.
    """
    found: list[tuple[int, ...]] = []

    def extend(vector: list[int], left: int) -> None:
        at = len(vector)
        if len(found) > CONFIGURATIONS:
            return
        if at == len(weight):
            if any(vector) and (
                lead is None or sum(v for v, is_lead in zip(vector, lead, strict=True) if is_lead) == 1
            ):
                found.append(tuple(vector))
            return
        for c in range(min(counts[at], left // weight[at]), -1, -1):
            extend([*vector, c], left - c * weight[at])

    extend([], most)
    return found if len(found) <= CONFIGURATIONS else None


def _refuse_too_many_types(
    counts: list[int],
    weight: list[int],
    most: int,
    configurations: list[tuple[int, ...]] | None,
    bins: int,
    allowed: int,
) -> None:
    """Raise PolicyError if there are too many types: counted if that is quick, else by an upper bound."""
    states = prod(c + 1 for c in counts)
    if configurations is not None and states * len(configurations) <= COUNTING:
        number: dict[tuple[int, ...], int] = {(0,) * len(counts): 1}
        for each in configurations:  # as in the change-making problem
            for state in product(*(range(w, c + 1) for w, c in zip(each, counts, strict=True))):
                before = tuple(s - w for s, w in zip(state, each, strict=True))
                if before in number:
                    number[state] = number.get(state, 0) + number[before]
        digits, shown = 0.0, number.get(tuple(counts), 0) * (bins + 1)
        about = f"about {shown:,}" if shown < 10**15 else f"about 10^{len(str(shown)) - 1}"
    else:  # multisets of at most ``bins`` configurations
        c = (
            len(configurations)
            if configurations is not None
            else prod(1 + min(n, most // w) for n, w in zip(counts, weight, strict=True))
        )
        digits, shown = bins * log10(c + bins) - lgamma(bins + 1) / log(10), 0
        about = f"at most 10^{ceil(digits)}"
    if shown > allowed or digits > log10(allowed) or configurations is None:
        raise PolicyError(
            f"there are {about} types to look at for this epsilon, more than the {allowed:,} that can be; "
            f"take a larger epsilon, or method 'auto' or 'exact'"
        )


def types_of_bins(
    counts: list[int], configurations: list[tuple[int, ...]], bins: int
) -> Iterator[list[tuple[int, ...]]]:
    """Multisets of at most ``bins`` configurations that use up the counts, each once, in descending order."""

    def extend(left: tuple[int, ...], start: int, chosen: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        first = next((t for t, c in enumerate(left) if c), None)
        if first is None:
            yield chosen
            return
        if len(chosen) == bins:
            return
        for j in range(start, len(configurations)):
            each = configurations[j]
            if not any(each[: first + 1]):
                return  # this and all later configurations lack the largest class left
            if all(w <= c for w, c in zip(each, left, strict=True)):
                rest = tuple(c - w for c, w in zip(left, each, strict=True))
                yield from extend(rest, j, [*chosen, each])

    yield from extend(tuple(counts), 0, [])


def _complete(
    chosen: list[tuple[int, ...]], empty: int, members: list[list[int]], small: list[int], sizes: list[int]
) -> list[list[int]]:
    """Replace rounded items with real ones, then put each small item into the least loaded bin."""
    following = [iter(m) for m in members]
    contents = [[next(following[t]) for t, c in enumerate(each) for _ in range(c)] for each in chosen]
    contents += [[] for _ in range(empty)]
    heap = [(sum(sizes[i] for i in inside), b) for b, inside in enumerate(contents)]
    heapify(heap)
    for i in small:
        load, b = heappop(heap)
        contents[b].append(i)
        heappush(heap, (load + sizes[i], b))
    return contents


def _merge_short(contents: list[list[int]], sizes: list[int], k: int) -> None:
    """While a bin is below k, merge the two least loaded bins."""
    contents.sort(key=lambda inside: -sum(sizes[i] for i in inside))
    while sum(sizes[i] for i in contents[-1]) < k:
        last = contents.pop()
        contents[-1] = contents[-1] + last
        contents.sort(key=lambda inside: -sum(sizes[i] for i in inside))
