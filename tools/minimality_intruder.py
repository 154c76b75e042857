"""What someone who knows the code concludes from releases of hundreds of rows, with and without ``minimality``.

``python tools/minimality_intruder.py RELEASES [FIRST_SEED]``. Each seed draws a table of 200 to 1,000 rows (a part of
Adult if its file is there, or a drawn one) and a request. The reader knows everyone's quasi-identifiers, who was dealt
into which unit, the families, the groups of step 3 with their values, and the code; of the draws of decoys, the
distribution. What this reader may conclude is proved in docs/attacks.md ("Groups that don't reveal why they were
formed"). The tool tries it on the steps as they run:

- Steps 1 and 2: if all values are dealt to other people, the same draws make the same families.
- Step 3: for each group of units of one family, each way to give its values to its units is weighted with the exact
  chance that the code merges these units, unless there are too many ways. The posterior of every value must be its
  share in the group, for the values that all others have.
- Step 4: if the values of each group of step 3 are dealt to other people of the group, the same groups are merged.

``python tools/minimality_intruder.py without RELEASES [FIRST_SEED]`` measures releases of 150 rows without
``minimality``, at k = l = 2 and the effort "fast". Each way to give the values of a group of two or three people to
them counts if the method, run again, makes the same release. One reader knows the values outside the group. Another
one doesn't: Gibbs sampling, which starts at the true values and exchanges values within one group after another.

Prints every seed at which a reader of ``minimality`` concludes more than is proved, and exits 1 if there is one.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal import pipeline
from shoal.attacks.minimality import claimed
from shoal.model.histogram import Partition
from shoal.problems.tables.methods import minimality_merge
from shoal.publishing.tables import limits

ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult" / "adult.csv"
WAYS = 2_000  # ways to give a group's values to its people that are weighted; larger groups are left out
ROWS = 3  # most people of a group that is looked at without minimality
SECRET = b"sixteen bytes or more"

# The chance of what is taken


def chance_taken(
    items: int, unsettled: frozenset[int], taken: frozenset[int], fit: Callable[[Sequence[int]], bool]
) -> Fraction:
    """The chance that exactly these items are taken: the unsettled ones, and decoys in random order until all fit.

    fit  whether some items together meet the conditions
    """
    if not unsettled <= taken:
        return Fraction(0)
    decoys, size = taken - unsettled, len(taken)

    @cache
    def fits(some: frozenset[int]) -> bool:
        return fit([*unsettled, *some])

    @cache
    def orders(some: frozenset[int]) -> int:
        """The orders of some decoys in which all of them are drawn."""
        return sum(orders(some - {last}) for last in some if not fits(some - {last})) if some else 1

    found = orders(decoys) if fits(decoys) and (size % 2 == 0 or size == items) else 0
    if size % 2 == 0:  # one more decoy makes their number even
        found += sum(orders(decoys - {last}) for last in decoys if fits(decoys - {last}))
    return Fraction(found, math.perm(items - len(unsettled), len(decoys)))


def chance_merged(
    units: int, groups: Sequence[frozenset[int]], pairs: Callable[[Sequence[tuple[int, ...]]], list[list[int]]],
    fit: Callable[[Sequence[int]], bool],
) -> Fraction:  # fmt: skip
    """The chance that the units of a family, numbered from 0, are merged into these groups.

    pairs  the units of each of some items -> the places of each pair of these items
    """
    items: list[tuple[int, ...]] = [(unit,) for unit in range(units)]
    chance = Fraction(1)
    while True:
        unsettled = frozenset(i for i, item in enumerate(items) if not fit(item))
        taken = frozenset(i for i, item in enumerate(items) if frozenset(item) not in groups)
        if not unsettled:
            return chance if not taken else Fraction(0)

        def together(some: Sequence[int], items: list[tuple[int, ...]] = items) -> bool:
            return fit([unit for i in some for unit in items[i]])

        chance *= chance_taken(len(items), unsettled, taken, together)
        if not chance:
            return chance
        here = [items[i] for i in sorted(taken)]
        joined = [list(range(len(here)))] if len(here) % 2 else pairs(here)
        items = [tuple(unit for place in places for unit in here[place]) for places in joined]


# What the reader of a family concludes


def splits(held: Counter[int], size: int, parts: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to deal some values to parts of so many rows: the sorted values of each part."""
    if not parts:
        yield []
        return
    for part in sorted(set(itertools.combinations(sorted(held.elements()), size))):
        for rest in splits(held - Counter(part), size, parts - 1):
            yield [part, *rest]


def ways(part: Sequence[int]) -> int:
    """The number of ways to give these values to as many people."""
    many = math.factorial(len(part))
    for held in Counter(part).values():
        many //= math.factorial(held)
    return many


class Family(NamedTuple):
    """The units of a family after step 3.

    value   int[units, size]: a number for the sensitive values of each row
    groups  the units of every group
    pairs   as in ``chance_merged``
    fit     whether rows with these sorted values meet the conditions
    """

    value: np.ndarray
    groups: list[frozenset[int]]
    pairs: Callable[[Sequence[tuple[int, ...]]], list[list[int]]]
    fit: Callable[[tuple[int, ...]], bool]


def distance(family: Family, group: frozenset[int]) -> Fraction | None:
    """The largest distance of a person's posterior from the value's share in the group, given the values of all others.

    None if there are more than ``WAYS`` ways to deal the values to the units.
    """
    units, (_, size) = sorted(group), family.value.shape
    held = Counter(family.value[units].reshape(-1).tolist())
    many = Fraction(math.factorial(size * len(units)))
    for n in held.values():
        many /= math.factorial(n)
    if size > 12 or many > WAYS * WAYS:
        return None
    found = list(itertools.islice(splits(held, size, len(units)), WAYS + 1))
    if len(found) > WAYS:
        return None
    total, of_unit = Fraction(0), [Counter() for _ in units]
    values = {unit: tuple(sorted(own)) for unit, own in enumerate(family.value.tolist())}
    for parts in found:
        values |= dict(zip(units, parts, strict=True))

        def fit(some: Sequence[int], values: dict[int, tuple[int, ...]] = values) -> bool:
            return family.fit(tuple(sorted(v for unit in some for v in values[unit])))

        weight = chance_merged(len(family.value), family.groups, family.pairs, fit) * math.prod(map(ways, parts))
        total += weight
        for own, part in zip(of_unit, parts, strict=True):
            for v in part:
                own[v] += weight / size
    assert total, "the values as they are lead to these groups"
    rows = size * len(units)
    return max(abs(own[v] / total - Fraction(n, rows)) for own in of_unit for v, n in held.items())


# The steps of a release


class Call(NamedTuple):
    """What ``merge`` is asked, and what it answers: the group of every unit, int64[families, units]."""

    cell: np.ndarray
    families: np.ndarray
    eligible: minimality_merge.Eligible
    near: minimality_merge.Near
    group: list[np.ndarray]


class Steps(NamedTuple):
    """The steps of a release: the calls of ``merge``, the arguments of ``unclaimed``, and those of the attack."""

    calls: list[Call]
    merged: list[tuple[Any, ...]]
    attacked: list[tuple[Any, ...]]


@contextmanager
def watching(seed: int) -> Iterator[Steps]:
    """The steps of the releases made in the block, with the draws of a seed."""
    steps = Steps([], [], [])
    merge, unclaimed, claimed = minimality_merge.merge, minimality_merge.unclaimed, pipeline.claimed

    def merging(cell: Any, families: Any, eligible: Any, near: Any, deal: Any) -> np.ndarray:
        steps.calls.append(Call(cell, families, eligible, near, []))
        steps.calls[-1].group.append(merge(cell, families, eligible, near, deal))
        return steps.calls[-1].group[0]

    def joining(*asked: Any) -> Any:
        answer = unclaimed(*asked)
        steps.merged.append((*asked, answer[0]))
        return answer

    def attack(*asked: Any) -> Any:
        steps.attacked.append(asked)
        return claimed(*asked)

    with (
        mock.patch.object(minimality_merge, "merge", merging),
        mock.patch.object(minimality_merge, "unclaimed", joining),
        mock.patch.object(pipeline, "claimed", attack),
        mock.patch.object(limits, "generator_of", side_effect=lambda key: np.random.default_rng(seed)),
    ):
        yield steps


def families_of(steps: Steps, histogram: Any) -> list[Any]:
    """The tuples of the people of every unit, by call and family."""
    of_cell, _ = histogram.types
    return [np.sort(of_cell[call.cell[call.families]], axis=2).tolist() for call in steps.calls]


def numbers_of(histogram: Any) -> tuple[np.ndarray, np.ndarray]:
    """(a number for the sensitive values of each cell, a cell of each number)."""
    _, first, number = np.unique(histogram.sensitive, axis=0, return_index=True, return_inverse=True)
    return number.reshape(-1), first


def of_families(call: Call, histogram: Any) -> Iterator[Family]:
    """The families of a call that aren't merged with others."""
    number, first = numbers_of(histogram)
    fits: dict[tuple[int, ...], bool] = {}

    def fit(values: tuple[int, ...]) -> bool:
        if values not in fits:
            fits[values] = bool(call.eligible(first[list(values)], np.zeros(len(values), np.int64), 1)[0])
        return fits[values]

    for rows, group in zip(call.families, call.group[0], strict=True):
        if not fit(tuple(sorted(number[call.cell[rows]].reshape(-1).tolist()))):
            continue
        if not set(group.tolist()) <= set(rows[:, 0].tolist()):
            continue
        if (call.group[0] == group[0]).sum() > len(group):
            continue

        @cache  # a search for each set of items
        def near(some: tuple[int, ...]) -> list[list[int]]:
            return call.near(np.array(some)).tolist()

        def pairs(
            items: Sequence[tuple[int, ...]], rows: np.ndarray = rows, near: Callable[..., list[list[int]]] = near
        ) -> list[list[int]]:
            return near(tuple(int(rows[item[0], 0]) for item in items))

        groups = [frozenset(np.flatnonzero(group == g).tolist()) for g in np.unique(group)]
        yield Family(number[call.cell[rows]], groups, pairs, fit)


def contents(histogram: Any, partition: Any, number: np.ndarray) -> Counter[Any]:
    """The tuples and the values of every group, each sorted."""
    of_cell, _ = histogram.types
    cell, group = np.repeat([partition.cell, partition.group], partition.count, axis=1)
    rows = [(of_cell[cell[group == g]], number[cell[group == g]]) for g in range(partition.groups)]
    return Counter((tuple(sorted(a.tolist())), tuple(sorted(b.tolist()))) for a, b in rows)


def step_4_again(steps: Steps, random: np.random.Generator) -> bool:
    """Whether step 4 merges the same groups if the values in each group of step 3 are dealt to other people of it."""
    histogram, recoding, partition, eligible, _, answer = steps.merged[0]
    number, first = numbers_of(histogram)
    of_cell, of_tuple = histogram.types
    cell, group = np.repeat([partition.cell, partition.group], partition.count, axis=1)
    value = number[cell][np.lexsort((random.random(cell.size), group))]  # rows are sorted by group
    pairs, back, count = np.unique(
        np.column_stack([of_cell[cell], value]), axis=0, return_inverse=True, return_counts=True
    )
    other = replace(
        histogram, quasi=histogram.quasi[of_tuple[pairs[:, 0]]], sensitive=histogram.sensitive[first[pairs[:, 1]]],
        count=count,
    )  # fmt: skip
    *_, most, promises = steps.attacked[0]
    again, _ = minimality_merge.unclaimed(
        other, recoding, Partition.of(back.reshape(-1), group, np.ones(cell.size, np.int64)),
        lambda cell, group, groups: eligible(first[pairs[cell, 1]], group, groups),
        lambda partition: claimed(other, recoding, partition, most, promises),
    )  # fmt: skip
    return contents(histogram, answer, number) == contents(other, again, pairs[:, 1])


# Tables and requests

DRAWN = ("rare", "two columns", "like neighbors")
KINDS = (*DRAWN, "adult") if ADULT.is_file() else DRAWN


def table_of(
    random: np.random.Generator, most: int = 1000, kinds: Sequence[str] = KINDS
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """A table of 200 rows or more, its quasi-identifiers, and its sensitive columns."""
    rows, kind = int(random.integers(200, most + 1)), str(random.choice(kinds))
    if kind == "adult":
        quasi, sensitive = ["age", "sex", "race", "marital-status"], "occupation"
        table = pl.read_csv(ADULT, infer_schema=False).select(*quasi, sensitive)
        table = table.sample(rows, seed=int(random.integers(2**31))).with_columns(pl.col("age").cast(pl.Int64))
        return table, quasi, [sensitive]
    age, town, sex = random.integers(20, 60, rows), random.integers(0, 6, rows), random.integers(0, 2, rows)
    odds = np.array([0.3, 0.25, 0.2, 0.15, 0.095, 0.005] if kind == "rare" else [0.2] * 5 + [0.0])
    ill = random.choice(6, rows, p=odds)
    if kind == "like neighbors":
        ill = np.where(random.random(rows) < 0.5, town, ill)
    texts = [None if random.random() < 0.03 else f"t{t}" for t in town]
    held = {"age": age, "town": texts, "sex": [f"s{s}" for s in sex], "ill": [f"d{d}" for d in ill]}
    if kind == "two columns":
        held["pay"] = [f"p{p}" for p in random.integers(0, 5, rows)]
    return pl.DataFrame(held), ["age", "town", "sex"], [name for name in ("ill", "pay") if name in held]


def request_of(random: np.random.Generator, quasi: list[str], sensitive: list[str]) -> dict[str, Any]:
    """A request with ``minimality``."""
    asked: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": sensitive, "effort": "fast", "seed": 1}
    asked |= {"k": int(random.integers(2, 6)), "minimality": float(random.choice([0.4, 0.5, 0.6]))}
    if random.random() < 0.6:
        asked["l"] = 2
    if random.random() < 0.2:
        asked["t"] = 0.7
    asked |= [
        {}, {"publish": "ranges", "range_step": {"age": 5}},
        {"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10"}},
        {"missing": "filled", "max_suppressed": 1.0}, {"top": {"age": 55}, "weights": {"age": 2.0}},
    ][random.integers(5)]  # fmt: skip
    return asked


def one(seed: int, most: int = 1000, kinds: Sequence[str] = KINDS) -> tuple[Counter[str], list[str]]:
    """What was tried with a table of at most so many rows, and what tells the reader more than is proved."""
    random = np.random.default_rng(seed)
    table, quasi, sensitive = table_of(random, most, kinds)
    asked, tried, odd = request_of(random, quasi, sensitive), Counter(), []
    try:
        with watching(seed) as steps:
            shoal.anonymize(table, **asked, secret=SECRET)
    except shoal.InfeasibleError:
        return Counter(refused=1), []
    histogram = steps.merged[0][0]
    tried.update({"releases": 1, "groups merged by step 4": steps.merged[0][2].groups - steps.merged[0][5].groups})
    dealt = table.with_columns(table.select(sensitive).sample(fraction=1.0, shuffle=True, seed=seed))
    with suppress(shoal.InfeasibleError), watching(seed) as others:
        shoal.anonymize(dealt, **asked, secret=SECRET)
    if others.merged:
        tried["values dealt to all"] += 1
        if families_of(others, others.merged[0][0]) != families_of(steps, histogram):
            odd.append("steps 1 and 2 depend on the values")
    for call in steps.calls:
        tried["families left out"] += len(call.families)
        for family in of_families(call, histogram):
            tried["families left out"] -= 1
            for group in family.groups:
                far = distance(family, group) if len(group) > 1 else None
                tried["groups weighed" if far is not None else "groups left out"] += len(group) > 1
                if far:
                    odd.append(f"step 3: {float(far):.3g} from the share")
    if not step_4_again(steps, random):
        odd.append("step 4 depends on who has which value")
    return tried, odd


# Without minimality


def without(seed: int, sweeps: int = 3) -> Counter[str]:
    """How many people of a release without ``minimality`` have a value with more than 1/l, for two readers."""
    random = np.random.default_rng(seed)
    table, quasi, sensitive = table_of(random)
    table, asked = table.head(150), {"quasi_identifiers": quasi, "sensitive": sensitive[:1], "k": 2, "l": 2}
    asked |= {"effort": "fast", "seed": 1, "secret": SECRET}

    def made(values: list[Any]) -> list[Any]:
        release = shoal.anonymize(table.with_columns(pl.Series(sensitive[0], values)), **asked)
        return sorted(map(repr, release.table.rows()))

    values = table[sensitive[0]].to_list()
    kept = shoal.anonymize(table, **asked, keep_order=True).table.select(quasi).rows()
    groups, seen = defaultdict(list), made(values)
    for row, shown in enumerate(kept):
        groups[shown].append(row)
    small = [rows for rows in groups.values() if len(rows) <= ROWS]
    first, mean = {}, defaultdict(Counter)
    for _ in range(sweeps):
        for rows in small:
            agree = []
            for held in sorted(set(itertools.permutations([values[row] for row in rows]))):
                now = list(values)
                for row, value in zip(rows, held, strict=True):
                    now[row] = value
                if now == values or made(now) == seen:
                    agree.append(held)
            for place, row in enumerate(rows):
                share = Counter(held[place] for held in agree)
                first.setdefault(row, max(share.values()) / len(agree))
                for value, n in share.items():
                    mean[row][value] += n / len(agree) / sweeps
            for row, value in zip(rows, agree[random.integers(len(agree))], strict=True):
                values[row] = value
    most = {row: max(found.values()) for row, found in mean.items()}
    found = Counter(people=table.height, weighed=len(first))
    for name, claims in (("others known", first), ("others unknown", most)):
        over = [p for p in claims.values() if p > 0.5 + 1e-9]
        found[f"{name}, above 1/2"], found[f"{name}, sum of these"] = len(over), sum(over)
        found[f"{name}, 0.99 and more"] = sum(p >= 0.99 for p in over)
    return found


def main() -> int:
    """Run the seeds."""
    given = sys.argv[1:]
    plain = given[:1] == ["without"]
    count, first = int(given[plain]), int(given[plain + 1]) if len(given) > plain + 1 else 0
    total, wrong = Counter(), 0
    for seed in range(first, first + count):
        tried, odd = (without(seed), []) if plain else one(seed)
        total.update(tried)
        wrong += len(odd)
        print(f"seed {seed}: {dict(tried)} {'; '.join(odd)}", flush=True)
    print(f"{dict(total)}, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
