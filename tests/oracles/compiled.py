"""The search of ``models`` compiled, for millions of tables.  Shares no code with the product, nor with ``models``.

A table has at most 8 rows, quasi-identifiers and sensitive values of 0 to 4.  A set of rows is a number, bit i for row
i.  A condition is one line of float64[8]: its kind, the sensitive column, then parameters; fractions as two whole
numbers.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit

VALUES = 5
KINDS = (
    "KAnonymity", "LDiversity", "DistinctLDiversity", "EntropyLDiversity", "RecursiveLDiversity", "AlphaKAnonymity",
    "TCloseness equal", "TCloseness ordered", "TCloseness hierarchical", "BetaLikeness", "DeltaDisclosure",
    "SimultaneousLDiversity", "KMap", "DeltaPresence",
)  # fmt: skip


def line(name: str, parameters: dict[str, Any], column: int = 0) -> list[float]:
    """A condition as numbers."""

    def fraction(key: str) -> list[int]:
        exact = Fraction(str(parameters[key]))
        return [exact.numerator, exact.denominator]

    kind = KINDS.index(f"{name} {parameters['distance']}" if name == "TCloseness" else name)
    rest = {
        "RecursiveLDiversity": lambda: [*fraction("c"), parameters["l"]],
        "AlphaKAnonymity": lambda: [*fraction("alpha"), parameters["k"]],
        "TCloseness": lambda: [*fraction("t"), len(parameters["node"])],
        "BetaLikeness": lambda: [*fraction("beta"), int(parameters["enhanced"])],
        "DeltaDisclosure": lambda: [parameters["delta"]],
        "DeltaPresence": lambda: [*fraction("low"), *fraction("high")],
    }.get(name, lambda: [parameters["k" if "k" in parameters else "l"]])()
    return [kind, column, *rest, *[0] * (6 - len(rest))]


@njit(cache=True, nogil=True)
def _mates(some, sensitive, l):  # type: ignore[no-untyped-def]
    """Whether every row of a set lies in l rows of it, l up to 3, that differ pairwise in every column."""
    n, columns = sensitive.shape
    for i in range(n):
        if not some >> i & 1 or l < 2:
            continue
        found = False
        for a in range(n):
            for b in range(n):
                if not some >> a & 1 or not some >> b & 1:
                    continue
                good = True
                for c in range(columns):
                    if sensitive[i, c] == sensitive[a, c]:
                        good = False
                    if l == 3 and (sensitive[i, c] == sensitive[b, c] or sensitive[a, c] == sensitive[b, c]):
                        good = False
                found = found or good
        if not found:
            return False
    return True


@njit(cache=True, nogil=True)
def _close(kind, own, n, whole, rows, asked, node):  # type: ignore[no-untyped-def]
    """Whether counts are as close to the table's as asked, by the earth mover's distance of a kind."""
    moved, most = 0, 2 * n * rows
    if kind == 6:
        for v in range(VALUES):
            moved += abs(own[v] * rows - whole[v] * n)
    elif kind == 7:
        run, held = 0, 0
        for v in range(VALUES):
            if whole[v]:
                held += 1
                run += own[v] * rows - whole[v] * n
                moved += abs(run)
        if held < 2:
            return True
        most = (held - 1) * n * rows
    else:  # a unit of weight pays for every level at which it changes its class
        levels = int(asked[4])
        for h in range(levels):
            excess = np.zeros(VALUES, np.int64)
            for v in range(VALUES):
                excess[node[h, v]] += own[v] * rows - whole[v] * n
            moved += np.abs(excess).sum()
        most = 2 * (levels - 1) * n * rows
    return moved * asked[3] <= asked[2] * most


@njit(cache=True, nogil=True)
def _near(kind, own, n, whole, rows, asked):  # type: ignore[no-untyped-def]
    """Whether no value gains or loses more than beta-likeness or delta-disclosure allow."""
    for v in range(VALUES):
        if not whole[v]:
            continue
        share = whole[v] / rows
        gain = own[v] * rows - whole[v] * n  # of whole[v] * n
        if kind == 9 and gain > 0:
            if gain * asked[3] > asked[2] * whole[v] * n:
                return False
            if asked[4] and gain / (whole[v] * n) > -math.log(share) + 1e-9:
                return False
        if kind == 10 and (own[v] == 0 or abs(math.log(own[v] * rows / (whole[v] * n))) >= asked[2] - 1e-9):
            return False
    return True


@njit(cache=True, nogil=True)
def _meets(some, sensitive, asked, node):  # type: ignore[no-untyped-def]
    """Whether a set of rows meets one condition."""
    kind, column = int(asked[0]), int(asked[1])
    own, whole = np.zeros(VALUES, np.int64), np.zeros(VALUES, np.int64)
    rows, n = sensitive.shape[0], 0
    for i in range(rows):
        whole[sensitive[i, column]] += 1
        if some >> i & 1:
            own[sensitive[i, column]] += 1
            n += 1
    if kind == 0:
        return n >= asked[2]
    if kind == 1:
        return own.max() * asked[2] <= n
    if kind == 2:
        return (own > 0).sum() >= asked[2]
    if kind == 3:
        entropy = 0.0
        for v in range(VALUES):
            if own[v]:
                entropy -= own[v] / n * math.log(own[v] / n)
        return entropy >= math.log(asked[2]) - 1e-9
    if kind == 4:
        falling = np.sort(own)[::-1]
        return falling[0] * asked[3] < asked[2] * falling[int(asked[4]) - 1 :].sum()
    if kind == 5:
        return n >= asked[4] and own.max() * asked[3] <= asked[2] * n
    if kind <= 8:
        return _close(kind, own, n, whole, rows, asked, node)
    if kind <= 10:
        return _near(kind, own, n, whole, rows, asked)
    return _mates(some, sensitive, int(asked[2]))


@njit(cache=True, nogil=True)
def _stars(some, quasi):  # type: ignore[no-untyped-def]
    """Stars of a set of rows published as one group."""
    n, stars = 0, 0
    for i in range(quasi.shape[0]):
        n += some >> i & 1
    for c in range(quasi.shape[1]):
        seen = -1
        for i in range(quasi.shape[0]):
            if some >> i & 1:
                if seen >= 0 and quasi[i, c] != seen:
                    stars += n
                    break
                seen = quasi[i, c]
    return stars


@njit(cache=True, nogil=True)
def search(quasi, sensitive, parts, asked, nodes):  # type: ignore[no-untyped-def]
    """(int64[2^n] stars of every set of rows that may be a group, else -1; fewest stars of a partition, -1 for none).

    quasi, sensitive  int64[n, d], int64[n, s]
    parts  int64[n]  rows of different numbers never share a group
    asked  float64[c, 8]; nodes int64[c, levels, 5], the classes of the values for the hierarchical distance
    O(3^n).
    """
    n = quasi.shape[0]
    full = 1 << n
    price, least = np.full(full, -1), np.full(full, -1)
    least[0] = 0
    for some in range(1, full):
        good, part = True, -1
        for i in range(n):
            if some >> i & 1:
                good = good and (part < 0 or part == parts[i])
                part = parts[i]
        for c in range(asked.shape[0]):
            good = good and _meets(some, sensitive, asked[c], nodes[c])
        if good:
            price[some] = _stars(some, quasi)
        low = some & -some
        own = some  # every group that holds the lowest row, and the best of what it leaves
        while own:
            if own & low and price[own] >= 0 and least[some ^ own] >= 0:
                total = price[own] + least[some ^ own]
                if least[some] < 0 or total < least[some]:
                    least[some] = total
            own = (own - 1) & some
    return price, least[-1]


@njit(cache=True, nogil=True)
def _fitting(population):  # type: ignore[no-untyped-def]
    """int64[16]: for each pair that may be shown, 0 to 2 or 3 for a star, the people whom it fits, as bits."""
    out = np.zeros(16, np.int64)
    for shown in range(16):
        for i in range(population.shape[0]):
            first, second = shown // 4, shown % 4
            if (first == 3 or first == population[i, 0]) and (second == 3 or second == population[i, 1]):
                out[shown] |= 1 << i
    return out


@njit(cache=True, nogil=True)
def _bits(number):  # type: ignore[no-untyped-def]
    found = 0
    while number:
        found += number & 1
        number >>= 1
    return found


@njit(cache=True, nogil=True)
def covers(rows, fits, asked, k):  # type: ignore[no-untyped-def]
    """Whether classes, int64[16] rows of each pair shown, have k rows each and meet a model of the population."""
    held = np.flatnonzero(rows)
    for c in held:
        if rows[c] < k or (asked[0] == 12 and _bits(fits[c]) < asked[2]):
            return False
        if asked[0] == 13 and rows[c] * asked[3] < asked[2] * _bits(fits[c]):
            return False
    if asked[0] == 13:
        for some in range(1, 1 << held.size):
            own, people = 0, 0
            for i in range(held.size):
                if some >> i & 1:
                    own += rows[held[i]]
                    people |= fits[held[i]]
            if own * asked[5] > asked[4] * _bits(people):
                return False
    return True


@njit(cache=True, nogil=True)
def search_beside(quasi, population, asked, k):  # type: ignore[no-untyped-def]
    """(int64[16] people whom each pair fits, fewest stars, fewest where a column is starred whole or not); -1: none.

    A release shows every row in a form of its own, with stars or without; rows that show the same are a class.
    """
    n, fits = quasi.shape[0], _fitting(population)
    fewest = -1
    for forms in range(1 << 2 * n):
        rows, stars = np.zeros(16, np.int64), _bits(forms)
        if 0 <= fewest <= stars:
            continue
        for i in range(n):
            starred = forms >> 2 * i
            rows[(3 if starred & 1 else quasi[i, 0]) * 4 + (3 if starred & 2 else quasi[i, 1])] += 1
        if covers(rows, fits, asked, k):
            fewest = stars
    uniform = -1
    for starred in range(4):
        rows = np.zeros(16, np.int64)
        for i in range(n):
            rows[(3 if starred & 1 else quasi[i, 0]) * 4 + (3 if starred & 2 else quasi[i, 1])] += 1
        stars = n * _bits(starred)
        if (uniform < 0 or stars < uniform) and covers(rows, fits, asked, k):
            uniform = stars
    return fits, fewest, uniform


def conditions(asked: Sequence[tuple[str, dict[str, Any], int]]) -> tuple[np.ndarray, np.ndarray]:
    """Conditions for ``search``: lines, and the classes of values at every level, levels that are none after them."""
    nodes = np.zeros((len(asked), 5, VALUES), np.int64)
    for some, (_, values, _) in zip(nodes, asked, strict=True):
        given = values.get("node", [])
        some[: len(given)] = np.reshape(given, (-1, VALUES))
    return np.array([line(*each) for each in asked], np.float64), nodes
