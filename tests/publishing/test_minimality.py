"""The theorem of minimality, by every assignment of values to persons and every draw of decoys on small tables."""

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.policy import Policy
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.problems import tables
from shoal.problems.tables.groups import good_groups
from shoal.problems.tables.methods import decoys
from shoal.publishing.tables.limits import share_models


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
                group, _ = decoys._merge(np.arange(n), unit, family, root, eligible, deal)
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


class Line:
    """Draws for rows in a fixed order, then for members in a given one; persons of different tuples, so that rows are
    persons."""

    def __init__(self, rows, members):
        self.rows, self.members = rows, members

    def random(self, n):
        line = self.rows if n == len(self.rows) else self.members[:n]
        return np.argsort(np.argsort(line)).astype(float)


def ranges(histogram):
    return Recoding(tuple(Ranges.of(np.arange(size)) for size in histogram.quasi_sizes))


@pytest.mark.parametrize("publish", [Recoding.stars, ranges])
def test_the_whole_way_from_a_register_tells_a_share_and_no_more(publish):
    quasi = [[0, 0], [0, 1], [1, 2], [1, 3], [2, 4], [2, 5]]
    rows, values = len(quasi), 2
    asked = Policy(quasi_identifiers=["a", "b"], sensitive=["s"], k=2, l=2, minimality=0.5)
    register = Histogram.from_rows(quasi)
    found = tables.group(register, KAnonymity(2), recoding=publish(register), effort="fast", seed=1)
    seen = defaultdict(Counter)
    for given in product(range(values), repeat=rows):
        table = Histogram.from_rows(quasi, [*given], sensitive_names=["s"])
        table = replace(table, sensitive_sizes=(values,))
        need = requirement([KAnonymity(2), *share_models(asked)], ("s",), table)

        def eligible(cell, group, groups, table=table, need=need):
            return good_groups(table, need, cell, group, np.ones(cell.size, np.int64), groups)

        for members in permutations(range(3)):
            try:
                draws = Line([3, 1, 0, 2, 5, 4], members)
                made = decoys.merged(table, publish(table), (2, 8), eligible, lambda *_: found, draws)
            except InfeasibleError:
                continue
            place, held = np.empty(rows, int), np.array(given)
            place[made.partition.cell] = made.partition.group
            shown = tuple(tuple(sorted(held[place == g])) for g in range(place.max() + 1))
            seen[tuple(place), shown][given] += 1
    assert len({len(shown) for _, shown in seen}) > 1  # some units were merged and some were not
    assert worst(seen, values) == (0, Fraction(1, 2))
