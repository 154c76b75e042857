"""The theorem of minimality, by every assignment of values to persons and every draw of decoys on small tables."""

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram, Partition
from shoal.model.policy import Policy
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.problems import tables
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.methods import minimality_merge
from shoal.publishing.tables.limits import share_models
from tools import minimality_intruder


class Draws:
    """Every order of every draw in turn: ``random`` gives the next one, ``again`` goes on to what is not yet tried."""

    def __init__(self):
        self.path = []
        self.used = 0

    def random(self, n):
        if self.used == len(self.path):
            self.path.append([0, list(permutations(range(n)))])
        at, orders = self.path[self.used]
        self.used += 1
        return np.array(orders[at], float)

    @property
    def chance(self):
        return Fraction(1, prod(len(orders) for _, orders in self.path))

    def again(self):
        self.used = 0
        while self.path:
            self.path[-1][0] += 1
            if self.path[-1][0] < len(self.path[-1][1]):
                return True
            self.path.pop()
        return False


def in_turn(row):
    return np.arange(len(row)).reshape(-1, 2)


def releases(shape, values, most, near=in_turn):
    """Chances of what is seen under each assignment: {release: Counter of assignments by their chance of it}.

    shape  families, units of each, rows of each;  most: the largest share of a value in a group
    """
    families = np.arange(prod(shape)).reshape(shape)
    seen = defaultdict(Counter)
    for row in product(range(values), repeat=families.size):
        held = np.array(row)

        def eligible(cell, group, groups, held=held):
            table = np.zeros((groups, values), int)
            np.add.at(table, (group, held[cell]), 1)
            return table.max(1) <= most * table.sum(1) + 1e-9

        draws, more = Draws(), True
        while more:
            try:
                made = minimality_merge.merge(np.arange(families.size), families, eligible, near, draws)
            except InfeasibleError:
                break
            of = np.repeat(made, shape[2])
            shown = tuple((int(g), tuple(sorted(held[of == g]))) for g in np.unique(of))
            seen[tuple(of.tolist()), shown][row] += draws.chance
            more = draws.again()
    return seen


def worst(seen, values):
    """The largest difference between a posterior and the share of its value in the group, and the largest posterior."""
    far, high = Fraction(0), Fraction(0)
    for (group, shown), chances in seen.items():
        total, held = sum(chances.values()), dict(shown)
        for person, g in enumerate(group):
            for v in range(values):
                after = Fraction(sum(c for row, c in chances.items() if row[person] == v), total)
                far = max(far, abs(after - Fraction(held[g].count(v), len(held[g]))))
                high = max(high, after)
    return far, high


def crossed(row):
    """Pairs that lie apart."""
    return np.arange(len(row)).reshape(2, -1).T


CASES = [
    ((1, 3, 2), 3, 0.5, in_turn),
    ((1, 2, 3), 3, 0.67, in_turn),
    ((1, 4, 2), 2, 0.5, in_turn),
    ((1, 4, 2), 2, 0.5, crossed),
    ((2, 2, 2), 2, 0.5, in_turn),
]


@pytest.mark.parametrize("case", CASES)
def test_the_posterior_of_every_value_is_its_share_in_the_group(case):
    _, values, most, _ = case
    seen = releases(*case)
    groups = {len(set(group)) for group, _ in seen}
    assert len(groups) > 1  # something was merged, and something was not
    far, high = worst(seen, values)
    assert (far, high <= Fraction(most).limit_denominator(100)) == (0, True)


def test_pairs_that_do_not_meet_it_are_merged_once_more():
    seen = releases((1, 4, 2), 2, 0.5)
    ones = Counter(max(Counter(group).values()) // 2 for group, _ in seen)
    assert set(ones) == {1, 2, 4}


def test_people_of_one_tuple_are_dealt_into_groups_and_into_units_at_random():
    """19 people of one tuple: four are a group, and each of the others is in a group with one of another tuple."""
    table = Histogram.from_rows([[0]] * 19 + [[1]] * 15, [*range(19), *[0] * 15], sensitive_names=["s"])
    group = np.arange(16)
    found = Partition.of(np.repeat([0, 1], [16, 15]), np.append(group, group[1:]), np.append([4], np.ones(30, int)))

    def all_fit(cell, group, groups):
        return np.ones(groups, bool)

    of_four, first = Counter(), Counter()
    for seed in range(400):
        draws = np.random.default_rng(seed)
        of_four.update(np.flatnonzero(minimality_merge._dealt(found, np.repeat([0, 1], [19, 15]), draws) == 0).tolist())
        made = minimality_merge.merged(
            table, ranges(table), (2, 8), all_fit, lambda *_: SimpleNamespace(partition=found), draws
        )
        (units,) = made.units
        assert {(0, 1), (2, 3)} <= set(map(tuple, units.tolist()))  # of the four
        values = table.sensitive[made.cell[:4], 0]
        first[int((values < values[0]).sum())] += 1
    assert all(50 < of_four[person] < 125 for person in range(19)), "four of 19 in each of 400 draws"
    assert all(65 < first[place] < 140 for place in range(4)), (
        "the lowest of the four values is first as often as others"
    )


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


def whole_way(publish, after=lambda table, partition, eligible: partition):
    """Chances of what is seen of six persons under each assignment of two values, as ``releases`` has them.

    after  makes a coarser partition of the table, its partition, and what may be published
    """
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
            return groups_that_meet(table, need, cell, group, np.ones(cell.size, np.int64), groups)

        for members in permutations(range(3)):
            try:
                draws = Line([3, 1, 0, 2, 5, 4], members)
                made = minimality_merge.merged(table, publish(table), (2, 8), eligible, lambda *_: found, draws)
            except InfeasibleError:
                continue
            place, held = np.empty(rows, int), np.array(given)
            partition = after(table, made.partition, eligible)
            place[partition.cell] = partition.group
            shown = tuple((g, tuple(sorted(held[place == g]))) for g in range(place.max() + 1))
            seen[tuple(place), shown][given] += 1
    return seen


@pytest.mark.parametrize("publish", [Recoding.stars, ranges])
def test_the_whole_way_from_a_register_tells_a_share_and_no_more(publish):
    seen = whole_way(publish)
    assert len({len(shown) for _, shown in seen}) > 1  # some units were merged and some were not
    assert worst(seen, 2) == (0, Fraction(1, 2))


def merging(publish, claims):
    """Groups of which something is claimed merged; claims  what it is of a table and a partition: bool[groups]"""

    def after(table, partition, eligible):
        def claimed(partition):
            at = np.flatnonzero(claims(table, partition))
            return np.column_stack([np.arange(at.size), at])

        return minimality_merge.unclaimed(table, publish(table), partition, eligible, claimed)[0]

    return after


def by_what_groups_show(table, partition):
    """Of the second of three pairs."""
    return (np.arange(partition.groups) == 1) & (partition.groups == 3)


def by_who_has_what(table, partition):
    """Of a pair whose first person has the first value."""
    return (partition.sizes == 2) & (table.sensitive[partition.cell[partition.start], 0] == 0)


@pytest.mark.parametrize("publish", [Recoding.stars, ranges])
def test_groups_merged_after_an_attack_tell_no_more(publish):
    before, after = whole_way(publish), whole_way(publish, merging(publish, by_what_groups_show))
    assert len(after) < len(before)  # something was merged
    assert worst(after, 2)[1] <= Fraction(1, 2)


def test_groups_merged_by_what_is_not_shown_would_tell():
    assert worst(whole_way(Recoding.stars, merging(Recoding.stars, by_who_has_what)), 2)[1] > Fraction(1, 2)


def test_the_closer_a_share_is_to_what_is_asked_the_more_rows_have_one_size():
    def rows(values, l, n=40_000):
        table = Histogram.from_rows([[0]] * n, [i % values for i in range(n)], sensitive_names=["s"])
        return minimality_merge.rows_of_one_size(table, (l,))

    assert rows(20, 2) == 64  # what l alone asks
    assert rows(6, 5) == 2_500 == 40_000 // 16  # 1/5 and 1/6: no more than a part of the table
    assert 2_440 < rows(7, 5) < 2_460
    assert rows(7, 5, 1_000) == 400


def fits_of(most):
    """Whether rows with these values hold none with more than a share."""
    return lambda values: max(Counter(values).values()) <= most * len(values) + 1e-9


@pytest.mark.parametrize("case", [case for case in CASES if case[0][0] == 1])
def test_the_tool_knows_the_chance_of_every_merger(case) -> None:
    (_, units, size), _, most, near = case
    for (group, _), chances in releases(*case).items():
        of_unit = group[::size]
        groups = [frozenset(u for u in range(units) if of_unit[u] == g) for g in set(of_unit)]
        for row, chance in chances.items():

            def fit(some, row=row):
                return fits_of(most)([v for u in some for v in row[size * u : size * (u + 1)]])

            assert minimality_intruder.chance_merged(units, groups, lambda items: near(items).tolist(), fit) == chance


def far_of(value, groups, most=0.5):
    family = minimality_intruder.Family(
        np.array(value), [frozenset(g) for g in groups], lambda items: in_turn(items).tolist(), fits_of(most)
    )
    return [minimality_intruder.distance(family, g) for g in family.groups if len(g) > 1]


def test_the_tool_finds_shares_and_what_a_decoy_that_is_not_drawn_tells(monkeypatch) -> None:
    value = [[0, 0], [0, 1], [1, 2], [2, 1]]
    assert far_of(value, [{0, 2}, {1}, {3}]) == [0]
    assert far_of([[0, 0], [0, 0], [1, 2], [2, 1]], [{0, 1, 2, 3}]) == [0]

    def nearest(items, unsettled, taken, fit):
        """The last settled unit is the decoy."""
        return Fraction(taken == unsettled | {max(set(range(items)) - unsettled)})

    monkeypatch.setattr(minimality_intruder, "chance_taken", nearest)
    assert far_of(value, [{0, 3}, {1}, {2}])[0] > 0


def test_the_tool_tries_a_whole_release_and_sees_a_merger_by_who_has_what(monkeypatch) -> None:
    seed = 1, 200, minimality_intruder.DRAWN
    tried, odd = minimality_intruder.one(*seed)
    assert (tried["releases"], tried["values dealt to all"], odd) == (1, 1, [])
    assert tried["groups weighed"] > 2
    assert tried["groups merged by step 4"] > 0

    def by_first_person(histogram, recoding, partition, eligible, claimed):
        claimed(partition)
        label = np.arange(partition.groups)
        label[histogram.sensitive[partition.cell[partition.start], 0] == 0] = 0
        return Partition.of(
            partition.cell, np.unique(label, return_inverse=True)[1][partition.group], partition.count
        ), 0

    monkeypatch.setattr(minimality_merge, "unclaimed", by_first_person)
    assert minimality_intruder.one(*seed)[1] == ["step 4 depends on who has which value"]
