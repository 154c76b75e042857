"""Lower bounds on the largest bin, each with its argument.

Du, Eppstein, Goodrich, Lueker 2009 use max(k, largest item) only; the others are stated and proved here.
All are evaluated over the distinct sizes in whole numbers, of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BITS = 1 << 22  # the subset-sum bound is computed while twice k + largest item stays below this many bits
SHIFTS = 4000  # and while it takes at most this many shifts of such a number


@dataclass(frozen=True, slots=True)
class Bound:
    """No feasible packing has a largest bin below ``value``; ``argument`` says why."""

    value: int
    argument: str


def up(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def lower_bound(sizes: np.ndarray, k: int) -> Bound:
    """The strongest of the bounds below, for positive sizes and 1 <= k <= their sum.

    O(n log n) time, and at most SHIFTS shifts of BITS bits.
    """
    values, counts = distinct(sizes)
    g = int(np.gcd.reduce(values))
    if g == 1:
        return _bound(values, counts, k)
    inner = _bound(values // g, counts, up(k, g))
    return Bound(inner.value * g, f"{inner.argument} ({g} divides every size)")


def distinct(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sizes, descending, and how often each occurs, both of the sizes' type."""
    steps = np.diff(sizes)
    if (steps > 0).any():
        values, counts = np.unique(sizes, return_counts=True)
        return values[::-1], counts[::-1].astype(values.dtype)
    first = np.concatenate([[0], np.flatnonzero(steps) + 1])
    return sizes[first], np.diff(first, append=len(sizes)).astype(sizes.dtype)


def most_bins(values: np.ndarray, counts: np.ndarray, k: int) -> int:
    """No packing has more bins than this.  ``values`` distinct and descending.

    For every size v: at most h bins hold one of the h items larger than v.  The others hold only items of at most
    v, which number N and sum to R: such bins are at most R / k and, needing ceil(k / v) items each, at most
    N / ceil(k / v).
    """
    h = np.cumsum(counts) - counts
    mass = np.cumsum(values * counts) - values * counts
    rest = (values * counts).sum() - mass
    number = counts.sum() - h
    bins = h + np.minimum(rest // k, number // -(-k // values))
    return int(min(bins.min(), counts.sum()))


def _bound(values: np.ndarray, counts: np.ndarray, k: int) -> Bound:
    total, largest = int((values * counts).sum()), int(values[0])
    bins = most_bins(values, counts, k)
    found = [
        Bound(largest, f"the largest item, {largest}, lies in some bin"),
        Bound(up(total, bins), f"at most {bins} bins reach {k}, so the largest holds {total} / {bins} or more"),
        _halves(values, counts, k, total),
        *_companions(values, counts, k),
    ]
    return max(found, key=lambda b: b.value)


def _halves(values: np.ndarray, counts: np.ndarray, k: int, total: int) -> Bound:
    """Items that cannot share a bin need company from the rest.

    Fix a size v and let H be the h items of at least v.  While the largest bin is below 2 v no two of H share a bin,
    so the bins of those below k, s in number and V in total, are completed from the remaining items, of total R:
    s k <= V + R, and all bins without an item of k or more number at most (V + R) / k.  Hence the largest bin is at
    least 2 v, or else s <= (V + R) // k and it is at least total / (h - s + (V + R) // k).
    """
    h = np.cumsum(counts)
    rest = total - np.cumsum(values * counts)
    short = np.cumsum(counts * (values < k))  # those of H below k
    full = (rest + np.cumsum(values * counts * (values < k))) // k  # bins that they and the rest can fill
    bins = h - short + full
    value = np.where(short > full, 2 * values, np.minimum(2 * values, -(-total // np.maximum(bins, 1))))
    at = int(np.argmax(value))
    v = int(values[at])
    if short[at] > full[at]:
        why = f"the {h[at]} items of {v} or more cannot each fill a bin, for the rest is {rest[at]}: two share one"
    else:
        why = f"either two items of {v} or more share a bin, or at most {bins[at]} bins can be full"
    return Bound(int(value[at]), why)


def _companions(values: np.ndarray, counts: np.ndarray, k: int) -> list[Bound]:
    """The bin of the largest item below k has a subset sum as its load: the least that reaches k.

    Such a sum is below k plus the largest item, since a set without a superfluous member is.
    Nothing (an empty list) where all items reach k or where the sums would be too long to list.
    """
    below = int(np.searchsorted(-values, -k, side="right"))
    limit = k + int(values[0])
    shifts = sum(int(c).bit_length() for c in counts) if len(counts) <= SHIFTS else SHIFTS + 1
    if below == len(values) or limit > BITS or shifts > SHIFTS or shifts * limit > 1 << 31:
        return []
    first = int(values[below])
    sums, mask = 1, (1 << limit) - 1
    for i, (v, c) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
        left, step = c - (i == below), 1
        while left > 0:  # copies as 1, 2, 4, ... and the remainder
            step = min(step, left)
            sums |= (sums << (v * step)) & mask
            left, step = left - step, 2 * step
    reach = sums >> (k - first)
    least = k + (reach & -reach).bit_length() - 1
    return [Bound(least, f"no selection that holds an item of {first} has a sum in {k}..{least - 1}")]
