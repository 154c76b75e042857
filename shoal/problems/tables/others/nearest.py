"""Each row's nearest other rows, and the bound on the loss of k-anonymity that follows from them."""

from __future__ import annotations

import numpy as np

from shoal.problems.tables.costs import Costs

NEAREST = "every row pays at least its loss beside its (k-1)-th nearest other row"


def nearest_bound(costs: Costs, k: int) -> int:
    """No partition costs less (whole numbers): see NEAREST.  O(t^2 d)."""
    return int(kth(costs, k, *neighbors(costs, k)) @ costs.count)


def neighbors(costs: Costs, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k - 1 nearest other types of each type, int32[t, m] and int64[t, m]; -1 where there are fewer."""
    from shoal.kernels.tables.pricing import nearest

    m = max(1, min(k - 1, costs.types - 1))
    index, distance = np.full((costs.types, m), -1, np.int32), np.zeros((costs.types, m), np.int64)
    nearest(costs.in_kernels(), index, distance)
    return index, distance


def kth(costs: Costs, k: int, index: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """int64[t]: loss beside the (k-1)-th nearest other row, a type's own other rows being nearest."""
    pure = np.array([costs.loss([t]) for t in range(costs.types)], np.int64)
    out = pure.copy()
    near = costs.count - 1
    for x in range(index.shape[1]):
        further = (near < k - 1) & (index[:, x] >= 0)
        out[further] = distance[further, x]
        near = near + np.where(index[:, x] >= 0, costs.count[index[:, x]], 0)
    return out
