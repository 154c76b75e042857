"""The theorem of minimality, by every assignment of values to persons and every draw of decoys on small tables."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from shoal.errors import InfeasibleError
from shoal.publishing.tables import minimality


class Draws:
    """Draws in a given order: one permutation of the units, one of the families."""

    def __init__(self, *lines):
        self.lines = {len(line): np.array(line, float) for line in lines}

    def random(self, n):
        return self.lines[n]


def releases(unit, family, root, values, p, draws):
    """Chances of what is seen under each assignment: {release: Counter of assignments by number of draws}."""
    unit, family, root = (np.array(a) for a in (unit, family, root))
    n = unit.size
    seen = defaultdict(Counter)
    for row in product(range(values), repeat=n):
        held = np.array(row)

        def eligible(cell, group, groups, held=held):
            table = np.zeros((groups, values), int)
            np.add.at(table, (group, held[cell]), 1)
            return table.max(1) <= p * table.sum(1) + 1e-9

        for deal in draws:
            try:
                group, _ = minimality._merge(np.arange(n), unit, family, root, eligible, deal)
            except InfeasibleError:
                continue
            shown = tuple(tuple(sorted(held[group == g])) for g in range(group.max() + 1))
            seen[tuple(group), shown][row] += 1
    return seen


def worst(seen, values):
    """The largest difference between a posterior and the share of its value in the group, and the largest posterior."""
    far, high = Fraction(0), Fraction(0)
    for (group, shown), chances in seen.items():
        total = sum(chances.values())
        for person, g in enumerate(group):
            for v in range(values):
                after = Fraction(sum(c for row, c in chances.items() if row[person] == v), total)
                far = max(far, abs(after - Fraction(shown[g].count(v), len(shown[g]))))
                high = max(high, after)
    return far, high


CASES = [
    ([0, 0, 1, 1, 2, 2], [0, 0, 0], [0], 3, [Draws(a, (0,)) for a in permutations(range(3))]),
    ([0, 0, 0, 1, 1, 1], [0, 0], [0], 3, [Draws(a, (0,)) for a in permutations(range(2))]),
    (
        [0, 0, 1, 1, 2, 2, 3, 3],
        [0, 0, 1, 1],
        [0, 0],
        2,
        [Draws(a, b) for a in permutations(range(4)) for b in permutations(range(2))],
    ),
    ([0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0], [0], 2, [Draws(a, (0,)) for a in permutations(range(4))]),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("p", [0.5, 0.67])
def test_the_posterior_of_every_value_is_its_share_in_the_group(case, p):
    unit, family, root, values, draws = case
    seen = releases(unit, family, root, values, p, draws)
    assert any(len(set(group)) < max(unit) + 1 for group, _ in seen)  # something was merged
    far, high = worst(seen, values)
    assert (far, high <= Fraction(p).limit_denominator(100)) == (0, True)
