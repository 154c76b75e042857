"""An instance of min-max bin covering, its answer with a certificate, and lower bounds of the largest bin.

Counts are checked once, labels certified once; every bound has its argument. Du, Eppstein, Goodrich, Lueker 2009 use
only max(k, largest item); the other bounds are stated and proved here. All are computed over the distinct sizes, in
integers of any length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import CertificateError, PolicyError
from shoal.model.arguments import seed_of, threshold, too_few, whole
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate, Guarantee

ORDERS = ("sorted", "given", "random")
UNITS = {
    "max": "records in the largest group",
    "count": "records above k, summed over groups",
    "squares": "squared records, summed over groups",
}


@dataclass(frozen=True, slots=True, eq=False)
class BinCoveringInstance:
    """Positive counts in the order in which they are packed.

    sizes   int64[n], or Python integers in object[n] if the total reaches 2**62
    item    int64[n]: index of each in the caller's list
    nothing int64[z]: indexes of zero counts; they can be in any bin
    k       int: least total of a bin, 1 <= k <= total
    total   int: sum of the sizes
    """

    sizes: np.ndarray
    item: np.ndarray
    nothing: np.ndarray
    k: int
    total: int

    @property
    def wide(self) -> bool:
        """Whether the sizes are Python integers."""
        return self.sizes.dtype == object

    def run(self, kernel: Any, *arguments: Any) -> Any:
        """Run a kernel: compiled, or as Python code if the sizes don't fit in 64 bits."""
        from shoal.kernels import plain

        return (plain(kernel) if self.wide and hasattr(kernel, "py_func") else kernel)(*arguments)

    def levels(self, m: int) -> np.ndarray:
        """m zero loads, of the sizes' type."""
        return np.zeros(m, self.sizes.dtype)

    def loads(self, label: np.ndarray, m: int) -> np.ndarray:
        """The load of each of m bins."""
        loads = self.levels(m)
        np.add.at(loads, label, self.sizes)
        return loads

    def cost(self, label: np.ndarray) -> int:
        """The largest load."""
        return max(self.loads(label, int(label.max()) + 1).tolist())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cover(Shown):
    """Items grouped into bins.

    labels       int64[n]: bin of each item, 0 .. m - 1, numbered by first item
    loads        int64[m] (object[m] beyond 64 bits): total of each bin
    k            int: requested least load
    method       str: the method that found it
    certificate  Certificate of the largest load
    """

    labels: np.ndarray
    loads: np.ndarray
    k: int
    method: str
    certificate: Certificate
    objective: str = "max"

    @property
    def cost(self) -> int:
        """The largest load, or the value of the objective."""
        return int(self.certificate.cost)

    @property
    def anonymous(self) -> bool:
        """Whether every bin has at least k; False is possible only with method "bicriteria"."""
        return bool(min(self.loads.tolist()) >= self.k)

    def _lines(self) -> list[str]:
        return [
            f"{several(len(self.labels), 'label')} in {several(len(self.loads), 'group')}",
            sizes_line("records in a group", self.loads.tolist(), f"at least k = {self.k:,} asked"),
            *proof_lines(self.certificate, self.method),
        ]

    def bins(self) -> list[np.ndarray]:
        """The items of each bin, ascending."""
        order = np.argsort(self.labels, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.labels, minlength=len(self.loads)))[:-1])


def instance(sizes: Iterable[Any], k: int, order: str = "sorted", seed: int | None = None) -> BinCoveringInstance:
    """The checked instance, ordered "sorted" (decreasing), "given", or "random" (by ``seed``).

    Raises InfeasibleError if the sum of all sizes is below k, InputError and PolicyError for invalid values.
    """
    k = threshold(k)
    given = whole(sizes)
    total = sum(given.tolist()) if given.dtype == object else int(given.sum())
    if total < k:
        raise too_few("labels", total, k, "group")
    positive = given > 0
    item = np.flatnonzero(positive)
    if order == "random":
        item = np.random.default_rng(seed_of(seed)).permutation(item)
    elif order == "sorted":
        item = item[np.argsort(-given[item], kind="stable")]
    elif order != "given":
        raise PolicyError.unknown("order", order, ORDERS)
    return BinCoveringInstance(given[item], item, np.flatnonzero(~positive), k, total)


def finish(
    given: BinCoveringInstance,
    label: np.ndarray,
    method: str,
    guarantee: Guarantee,
    lower_bound: int,
    bound: str,
    details: dict[str, Any] | None = None,
    objective: str = "max",
) -> Cover:
    """A packing as a Cover of the caller's list, with bins renumbered, and cost and bound certified.

    Raises CertificateError if a bin is below k (except for "bicriteria").
    """
    n = len(given.item) + len(given.nothing)
    used = np.bincount(label) > 0
    m = int(used.sum())
    label = (np.cumsum(used) - 1)[label]
    labels = np.empty(n, np.int64)
    labels[given.item] = label
    labels[given.nothing] = np.arange(len(given.nothing)) % m
    first = np.empty(m, np.int64)
    first[labels[::-1]] = np.arange(n)[::-1]
    rank = np.empty(m, np.int64)
    rank[np.argsort(first)] = np.arange(m)
    labels = rank[labels]
    loads = given.loads(rank[label], m)
    if method != "bicriteria" and min(loads.tolist()) < given.k:
        raise CertificateError(f"{method} left a bin of {min(loads.tolist())} below k = {given.k}")
    certificate = Certificate(
        cost=paid(loads.tolist(), given.k, objective),
        lower_bound=int(lower_bound),
        unit=UNITS[objective],
        guarantee=guarantee,
        bound=bound,
        details={"k": given.k, "groups": m, "smallest_group": int(min(loads.tolist())), **(details or {})},
    )
    return Cover(labels, loads, given.k, method, certificate, objective)


def paid(loads: list[int], k: int, objective: str) -> int:
    """The cost of groups with these loads: the largest, the sum of squares, or the records above k."""
    if objective == "max":
        return int(max(loads))
    return sum(int(x) ** 2 for x in loads) if objective == "squares" else sum(int(x) - k for x in loads)


BITS = 1 << 22  # the subset-sum bound is computed if twice k + largest item is below this number of bits
SHIFTS = 4000  # and if it needs at most this many shifts of such a number


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound of the largest bin over all feasible packings, with the argument that proves it."""

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
    return Bound(inner.value * g, f"{inner.argument}, with all counts and k divided by {g}")


def distinct(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sizes, descending, and the number of each, both of the sizes' type."""
    steps = np.diff(sizes)
    if (steps > 0).any():
        values, counts = np.unique(sizes, return_counts=True)
        return values[::-1], counts[::-1].astype(values.dtype)
    first = np.concatenate([[0], np.flatnonzero(steps) + 1])
    return sizes[first], np.diff(first, append=len(sizes)).astype(sizes.dtype)


def most_bins(values: np.ndarray, counts: np.ndarray, k: int) -> int:
    """An upper bound of the number of bins. ``values`` is distinct and descending.

    For every size v: at most h bins contain one of the h items larger than v. The others contain only items of at most
    v, of which there are N with sum R. So there are at most R / k such bins and, because each needs ceil(k / v) items,
    at most N / ceil(k / v).
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
    """A bound for large items that can't share a bin, so that the other items must complete their bins.

    Fix a size v, and let H be the h items of at least v. If the largest bin is below 2 v, no two items of H share a
    bin. The bins of the s items of H below k, with sum V, are completed from the other items, with sum R. So s k <= V +
    R, and at most (V + R) / k bins have no item of k or more. So the largest bin is at least 2 v, or s <= (V + R) // k
    and it is at least total / (h - s + (V + R) // k).
    """
    h = np.cumsum(counts)
    rest = total - np.cumsum(values * counts)
    short = np.cumsum(counts * (values < k))  # items of H below k
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
    """A bound by subset sums: the bin of the largest item below k has at least the least one that reaches k.

    This sum is below k plus the largest item, because a minimal set is. The result is empty if all items reach k, or if
    there are too many sums.
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
