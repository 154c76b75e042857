"""What is packed and what comes out: counts checked once, labels certified once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import CertificateError, InfeasibleError, PolicyError
from shoal.model.arguments import seed_of
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.counts import threshold, whole

ORDERS = ("sorted", "given", "random")
UNITS = {
    "max": "records in the largest group",
    "count": "records above k, summed over groups",
    "squares": "squared records, summed over groups",
}


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """Positive counts in the order in which they are to be packed.

    sizes   int64[n], or Python integers in object[n] where the total reaches 2**62
    item    int64[n]  position of each in the caller's list
    nothing int64[z]  positions of the counts that are zero; they go anywhere
    k       int       least total of a bin, 1 <= k <= total
    total   int       sum of the sizes
    """

    sizes: np.ndarray
    item: np.ndarray
    nothing: np.ndarray
    k: int
    total: int

    @property
    def wide(self) -> bool:
        """The sizes are Python integers."""
        return self.sizes.dtype == object

    def run(self, kernel: Any, *arguments: Any) -> Any:
        """The compiled kernel, or its Python text where 64 bits do not hold the sizes."""
        from shoal.kernels.uncompiled import plain

        return (plain(kernel) if self.wide and hasattr(kernel, "py_func") else kernel)(*arguments)

    def levels(self, m: int) -> np.ndarray:
        """m loads of zero, of the sizes' type."""
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

    labels       int64[n]  bin of each item, 0 .. m - 1, numbered as they first appear
    loads        int64[m]  (object[m] beyond 64 bits) total of each bin
    k            int       the least load asked for
    method       str       what found it
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
        """The largest load, or what the objective counts instead."""
        return int(self.certificate.cost)

    @property
    def anonymous(self) -> bool:
        """Every bin holds at least k; False is possible with method "bicriteria" only."""
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


def instance(sizes: Iterable[Any], k: int, order: str = "sorted", seed: int | None = None) -> Instance:
    """Checked input, ordered "sorted" (decreasing), "given" or "random" (by ``seed``).

    Raises InfeasibleError when all sizes together stay below k, InputError and PolicyError for unusable values.
    """
    k = threshold(k)
    given = whole(sizes)
    total = sum(given.tolist()) if given.dtype == object else int(given.sum())
    if total < k:
        raise InfeasibleError(
            f"all {len(given)} labels together count {total}, below k = {k}: no group of k exists; "
            f"lower k to at most {total} or leave the column out"
        )
    positive = given > 0
    item = np.flatnonzero(positive)
    if order == "random":
        item = np.random.default_rng(seed_of(seed)).permutation(item)
    elif order == "sorted":
        item = item[np.argsort(-given[item], kind="stable")]
    elif order != "given":
        raise PolicyError.unknown("order", order, ORDERS)
    return Instance(given[item], item, np.flatnonzero(~positive), k, total)


def finish(
    given: Instance,
    label: np.ndarray,
    method: str,
    guarantee: Guarantee,
    lower_bound: int,
    bound: str,
    details: dict[str, Any] | None = None,
    objective: str = "max",
) -> Cover:
    """Labels of the packed order as a Cover of the caller's list, bins renumbered, cost and bound certified.

    Raises CertificateError should a method leave a bin below k (all but "bicriteria").
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
    """What groups of these loads cost: the largest, squared loads added up, or what they hold above k."""
    if objective == "max":
        return int(max(loads))
    return sum(int(x) ** 2 for x in loads) if objective == "squares" else sum(int(x) - k for x in loads)
