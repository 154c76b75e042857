"""Privacy models by their definitions, in whole numbers and fractions, and the least loss under them.  Exponential.

Shares no code with the product: a model is a name with its parameters, a group a list of rows of sensitive values.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, combinations, product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

Rows = Sequence[tuple[int, ...]]
Row = tuple[Any, ...]


def _decimal(value: float) -> Fraction:
    """The fraction that was meant: 0.1 is a tenth, and 1 / 3 a third."""
    return Fraction(str(value)).limit_denominator(10**9)


def classes(rows: Sequence[Row], quasi: Sequence[int]) -> list[list[Row]]:
    """Rows with equal quasi-identifiers."""
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[j] for j in quasi), []).append(row)
    return list(found.values())


def level(name: str, asked: dict[str, Any], group: Sequence[Row], table: Sequence[Row], column: int = 0) -> Any:
    """What a group of a table reaches of a model of one column; a missing value is the last in an order."""
    n, whole = len(group), len(table)
    own, every = Counter(r[column] for r in group), Counter(r[column] for r in table)
    p, q = {v: Fraction(own[v], n) for v in every}, {v: Fraction(every[v], whole) for v in every}
    if name == "LDiversity":
        return Fraction(n, max(own.values()))
    if name == "DistinctLDiversity":
        return len(own)
    if name == "EntropyLDiversity":
        return math.exp(-sum(float(x) * math.log(x) for x in p.values() if x))
    if name == "AlphaKAnonymity":
        return max(p.values())
    if name == "TCloseness" and asked["distance"] == "equal":
        return sum(abs(p[v] - q[v]) for v in q) / 2
    if name == "TCloseness" and asked["distance"] == "hierarchical":
        return carried(own, every, asked["node"])
    if name == "TCloseness":
        order = sorted(q, key=lambda v: (v is None, 0 if v is None else v))
        sums = accumulate(p[v] - q[v] for v in order)
        return sum(map(abs, sums)) / (len(q) - 1) if len(q) > 1 else 0
    if name == "BetaLikeness":
        return max(0, *(p[v] / q[v] - 1 for v in q))
    assert name == "DeltaDisclosure"
    return max(abs(math.log(p[v] / q[v])) if p[v] else math.inf for v in q)


def meets(name: str, parameters: dict[str, Any], group: Rows, table: Rows, column: int = 0) -> bool:
    """Whether a group of a table meets a model."""
    if name == "KAnonymity":
        return len(group) >= parameters["k"]
    if name == "RecursiveLDiversity":
        falling = sorted(Counter(r[column] for r in group).values(), reverse=True)
        return falling[0] < _decimal(parameters["c"]) * sum(falling[parameters["l"] - 1 :])
    if name != "SimultaneousLDiversity":
        at = level(name, parameters, group, table, column)
        if name == "EntropyLDiversity":
            return math.log(at) >= math.log(parameters["l"]) - 1e-9
        if name in ("LDiversity", "DistinctLDiversity"):
            return at >= parameters["l"]
        if name == "DeltaDisclosure":
            return at < parameters["delta"] - 1e-9
        if name == "AlphaKAnonymity":
            return len(group) >= parameters["k"] and at <= _decimal(parameters["alpha"])
        if name == "TCloseness":
            return at <= _decimal(parameters["t"])
        often = [Counter(r[column] for r in rows) for rows in (group, table)]
        shares = [(Fraction(n, len(group)), Fraction(often[1][v], len(table))) for v, n in often[0].items()]
        limited = not parameters["enhanced"] or all(float(p / q - 1) <= -math.log(q) + 1e-9 for p, q in shares)
        return at <= _decimal(parameters["beta"]) and limited
    l = parameters["l"]

    def apart(rows: tuple[tuple[int, ...], ...]) -> bool:
        return all(x != y for a, b in combinations(rows, 2) for x, y in zip(a, b, strict=True))

    return all(
        any(apart((r, *others)) for others in combinations([*group[:i], *group[i + 1 :]], l - 1))
        for i, r in enumerate(group)
    )


def carried(own: Counter[int], whole: Counter[int], node: Sequence[Sequence[int]]) -> Fraction:
    """Earth mover's distance of two distributions, values being as far apart as the level at which they are one class.

    Both are cut into equally many equal bits, and each bit of the one is assigned a bit of the other, at the least cost
    in whole numbers.
    """
    n, m = own.total(), whole.total()
    mine, theirs = [v for v in own.elements() for _ in range(m)], [v for v in whole.elements() for _ in range(n)]
    values = range(len(node[0]))
    joined = [[[level[a] == level[b] for level in node].index(True) for b in values] for a in values]
    cost = np.array(joined)[np.ix_(mine, theirs)]
    return Fraction(int(cost[linear_sum_assignment(cost)].sum()), n * m * (len(node) - 1))


def published(group: Rows) -> tuple[int | None, ...]:
    """What rows of quasi-identifiers show in one group: common values, None for a star."""
    return tuple(values[0] if len(set(values)) == 1 else None for values in zip(*group, strict=True))


def fits(shown: tuple[int | None, ...], population: Rows) -> int:
    """Rows of a population for which what is shown may stand."""
    return sum(all(v is None or v == x for v, x in zip(shown, person, strict=True)) for person in population)


def meets_population(name: str, parameters: dict[str, Any], classes: dict[Any, int], population: Rows) -> bool:
    """Whether classes, what each shows with its rows, meet a model of the population.

    Delta-presence: no set of classes has more rows than the share ``high`` of the people that any of them fits.
    """
    if name == "KMap":
        return all(fits(shown, population) >= parameters["k"] for shown in classes)
    assert name == "DeltaPresence"
    for size in range(1, len(classes) + 1):
        for some in combinations(classes, size):
            people = sum(any(fits(shown, [person]) for shown in some) for person in population)
            if Fraction(sum(classes[c] for c in some), people) > _decimal(parameters["high"]):
                return False
    return all(Fraction(n, fits(c, population)) >= _decimal(parameters["low"]) for c, n in classes.items())


def least_beside(
    quasi: Rows,
    population: Rows,
    name: str,
    parameters: dict[str, Any],
    k: int,
    trees: Sequence[Sequence[Sequence[int]]] | None = None,
    holds: Callable[[list[int]], bool] = lambda _: True,
) -> float | None:
    """Least loss over all releases whose classes have k rows and meet a model of the population; None for none.

    A release is a form for every row, at any level of each column, whatever others show; rows that show the same are
    a class.  Forms are tried from the cheapest choice on.
    trees  per column the class of every value at every level, values 0, 1, ...; None: the value or a star.  The loss is
           the number of stars, or the sum over rows and columns of (values of the class - 1) / (values - 1).
    holds  what else is asked of the rows of a class
    """
    d = len(quasi[0])
    if trees is None:
        most = 1 + max(v for row in (*quasi, *population) for v in row)
        trees = [[list(range(most)), [0] * most]] * d
        losses = [[[0.0] * most, [1.0] * most]] * d
    else:
        losses = [[[(level.count(c) - 1) / (len(level) - 1) for c in level] for level in tree] for tree in trees]
    forms = list(product(*(range(len(tree)) for tree in trees)))
    shown = [[tuple((h, trees[j][h][row[j]]) for j, h in enumerate(f)) for f in forms] for row in quasi]
    paid = [np.array([sum(losses[j][h][row[j]] for j, h in enumerate(f)) for f in forms]) for row in quasi]
    total = np.zeros(1)
    for one in paid:
        total = (total[:, None] + one).reshape(-1)
    covers: dict[Any, frozenset[int]] = {}
    known: dict[Any, bool] = {}
    for at in np.argsort(total, kind="stable").tolist():
        choice, rest = [], at
        for _ in quasi:
            rest, f = divmod(rest, len(forms))
            choice.append(f)
        inside: dict[Any, list[int]] = {}
        for i, f in enumerate(reversed(choice)):
            inside.setdefault(shown[i][f], []).append(i)
        classes = {c: len(rows) for c, rows in inside.items()}
        if min(classes.values()) < k or not all(holds(rows) for rows in inside.values()):
            continue
        key = frozenset(classes.items())
        if key not in known:
            for c in classes:
                if c not in covers:
                    covers[c] = frozenset(
                        i for i, person in enumerate(population)
                        if all(trees[j][h][person[j]] == v for j, (h, v) in enumerate(c))
                    )  # fmt: skip
            known[key] = _meets_beside(name, parameters, classes, covers)
        if known[key]:
            return float(total[at])
    return None


def _meets_beside(
    name: str, parameters: dict[str, Any], classes: dict[Any, int], covers: dict[Any, frozenset[int]]
) -> bool:
    if name == "KMap":
        return all(len(covers[c]) >= parameters["k"] for c in classes)
    for size in range(1, len(classes) + 1):
        for some in combinations(classes, size):
            people = frozenset().union(*(covers[c] for c in some))
            if Fraction(sum(classes[c] for c in some), len(people)) > _decimal(parameters["high"]):
                return False
    return True


def least_columns(quasi: Rows, population: Rows, name: str, parameters: dict[str, Any], k: int) -> int | None:
    """The same where every column is starred for all rows or for none."""
    width, best = len(quasi[0]), None
    for starred in product((False, True), repeat=width):
        classes = Counter(tuple(None if s else v for s, v in zip(starred, row, strict=True)) for row in quasi)
        if min(classes.values()) >= k and meets_population(name, parameters, classes, population):
            stars = len(quasi) * sum(starred)
            best = stars if best is None else min(best, stars)
    return best


def prices(
    quasi: Rows, sensitive: Rows, asked: Sequence[tuple[str, dict[str, Any], int]], apart: Sequence[int]
) -> tuple[list[int | None], int | None]:
    """(Stars of every set of rows that meets every model, None for the others; the fewest over all partitions).

    apart  rows of different numbers never share a group
    Every set of rows, a number with a bit for each, is a group by itself or split into a group of some and a rest that
    is a set.
    """
    n = len(quasi)
    price: list[int | None] = [None] * 2**n
    known: dict[Any, bool] = {}
    for some in range(1, 2**n):
        rows = [i for i in range(n) if some >> i & 1]
        if len({apart[i] for i in rows}) > 1:
            continue
        held = tuple(sorted(sensitive[i] for i in rows))
        if held not in known:
            known[held] = all(meets(name, values, held, sensitive, column) for name, values, column in asked)
        if known[held]:
            price[some] = len(rows) * sum(v is None for v in published([quasi[i] for i in rows]))
    least: list[int | None] = [0, *price[1:]]
    for some in range(1, 2**n):
        others = some & (some - 1)  # without its first row
        rest = others
        while rest:  # every set without the first row may be the rest
            own, left = price[some ^ rest], least[rest]
            if own is not None and left is not None and (least[some] is None or own + left < (least[some] or 0)):
                least[some] = own + left
            rest = (rest - 1) & others
    return price, least[-1]
