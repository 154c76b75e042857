"""Privacy levels written out as the papers define them: loops over rows, no cleverness."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]


def classes(rows: Sequence[Row], quasi: Sequence[int]) -> list[list[Row]]:
    """Rows with equal quasi-identifiers."""
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[j] for j in quasi), []).append(row)
    return list(found.values())


def frequency_l(groups: list[list[Row]], s: int) -> float:
    """Least size over count of the commonest value."""
    return min(len(g) / max(Counter(r[s] for r in g).values()) for g in groups)


def distinct_l(groups: list[list[Row]], s: int) -> int:
    """Fewest different values."""
    return min(len({r[s] for r in g}) for g in groups)


def entropy_l(groups: list[list[Row]], s: int) -> float:
    """exp of the least entropy."""
    least = math.inf
    for g in groups:
        shares = [n / len(g) for n in Counter(r[s] for r in g).values()]
        least = min(least, -sum(p * math.log(p) for p in shares))
    return math.exp(least)


def alpha(groups: list[list[Row]], s: int) -> float:
    """Largest share of a value."""
    return max(n / len(g) for g in groups for n in Counter(r[s] for r in g).values())


def t_equal(rows: Sequence[Row], groups: list[list[Row]], s: int) -> float:
    """Largest half sum of |p - q|."""
    whole = Counter(r[s] for r in rows)
    worst = 0.0
    for g in groups:
        own = Counter(r[s] for r in g)
        worst = max(worst, sum(abs(own[v] / len(g) - whole[v] / len(rows)) for v in whole) / 2)
    return worst


def t_ordered(rows: Sequence[Row], groups: list[list[Row]], s: int) -> float:
    """Largest 1/(m-1) times the sum of |P - Q| over the values in rising order, a missing value last."""
    whole = Counter(r[s] for r in rows)
    order = sorted(whole, key=lambda v: (v is None, v if v is not None else 0))
    if len(order) < 2:
        return 0.0
    worst = 0.0
    for g in groups:
        own = Counter(r[s] for r in g)
        carried, total = 0.0, 0.0
        for v in order:
            carried += own[v] / len(g) - whole[v] / len(rows)
            total += abs(carried)
        worst = max(worst, total / (len(order) - 1))
    return worst


def beta(rows: Sequence[Row], groups: list[list[Row]], s: int) -> float:
    """Largest (p - q) / q of a value in a group."""
    whole = Counter(r[s] for r in rows)
    return max(
        max(0.0, n / len(g) / (whole[v] / len(rows)) - 1) for g in groups for v, n in Counter(r[s] for r in g).items()
    )


def delta(rows: Sequence[Row], groups: list[list[Row]], s: int) -> float:
    """Largest |log(p / q)| over groups and values of the table; infinite where a group lacks one."""
    whole = Counter(r[s] for r in rows)
    worst = 0.0
    for g in groups:
        own = Counter(r[s] for r in g)
        for v, n in whole.items():
            worst = max(worst, math.inf if not own[v] else abs(math.log(own[v] / len(g) / (n / len(rows)))))
    return worst
