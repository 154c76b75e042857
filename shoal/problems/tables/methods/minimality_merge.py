"""Groups whose formation reveals nothing: a release that is safe from someone who knows the method and has a register.

Someone who knows that a tool hides no more than necessary learns from what is hidden (Wong, Fu, Wang, Pei 2007; the
notion is theirs, m-confidentiality). The likelihood of a search can't be bounded table by table, so the groups are
formed in a way for which it can be computed:

1. *Units.* The search runs on the register: the quasi-identifiers alone. Rows are assigned to its groups at random.
2. *Families.* Near units of one size are put into families with equal numbers of units.
3. *Merging.* In a family, the units that don't meet the conditions are paired with each other and with decoys: units
   that meet them, drawn at random. Pairs that don't meet the conditions are paired again.
4. *After the attack.* Groups with people about whom the minimality attack still claims a value are merged
   (``unclaimed``).

docs/attacks.md ("Groups that don't reveal why they were formed") states the theorem, with its proof: no one who knows
the method, everyone's quasi-identifiers, and the groups can infer a person's value with a probability above p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.certificate import Certificate, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Claimed, Decoys, Grouping, Task, nothing
from shoal.problems.tables.groups import groups_that_meet

FAMILY = 8  # least number of units of a family; a few more if they don't divide evenly
MANY = 16  # least number of units of one size, and least rows as a multiple of l squared
CLOSE = 8  # least rows of one size, times one by the square of the share's distance from 1/l
PATIENCE = 8  # rounds after an attack before a claimed group is merged with twice as many

# a register, least rows of a group, whether to be quick -> groups of it
Solve = Callable[[Histogram, int, bool], Grouping]
Near = Callable[[np.ndarray], np.ndarray]  # a row of each of an even number of items -> int[items / 2, 2]: pairs
Eligible = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # cell of rows, group of rows, groups -> bool[groups]


@dataclass(frozen=True, eq=False)
class MergedPartition:
    """A partition whose formation reveals nothing.

    partition  of the rows of the histogram
    found      the search's answer for the register; its bound holds for every release
    decoys     rows that were merged although their unit was settled
    cell       int64[n], of every row
    units      per size int64[units, size]: the rows of each unit, before merging
    """

    partition: Partition
    found: Grouping
    decoys: int
    cell: np.ndarray
    units: list[np.ndarray]


def protected(task: Task, asked: Decoys, solve: Callable[[Task], Grouping]) -> Grouping:
    """Groups from which nobody's value is inferred with more than the requested probability, with their certificate.

    task   its requirement demands from every group what minimality does (``shoal.model.privacy.AlphaKAnonymity``)
    solve  the search, of a register

    The bound is that of the search on the quasi-identifiers alone, so the proved ratio reveals nothing about the values
    to someone who has a register.
    """
    histogram, recoding, need = task.histogram, task.recoding, task.requirement

    def eligible(cell: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
        return groups_that_meet(histogram, need, cell, group, np.ones(cell.size, np.int64), groups)

    def of_register(register: Histogram, smallest: int, fast: bool) -> Grouping:
        k = requirement([KAnonymity(smallest)], register.sensitive_names, register)
        effort, progress = (Effort.of("fast"), nothing) if fast else (task.effort, task.progress)
        return solve(Task(register, k, recoding, effort, task.seed, progress))

    least = need.smallest, rows_of_one_size(histogram, need.frequency)
    made = merged(histogram, recoding, least, eligible, of_register, asked.deal)
    partition, left = unclaimed(histogram, recoding, made.partition, eligible, asked.claimed)
    own = made.found.certificate
    cost = recoding.cost(histogram, partition)
    certificate = Certificate(
        cost=cost,
        lower_bound=tight(own.lower_bound, cost, recoding.unit, own.bound),
        unit=recoding.unit,
        bound=f"of the quasi-identifiers alone: {own.bound}",
        details={
            "minimality": {
                "asked": asked.most, "decoys": made.decoys, "cost_before_merging": own.cost,
                "cost_before_the_attack": recoding.cost(histogram, made.partition), "claims_left": left,
            }
        },
    )  # fmt: skip
    return Grouping(partition, certificate, "decoys", made.found.attempts)


def rows_of_one_size(histogram: Histogram, frequency: Sequence[float]) -> int:
    """The least number of rows that units of one size have in total: so many that they almost always meet l.

    The share of their most frequent value is close to that in the whole table, and must be at most 1/l: the closer the
    two are, the more rows are necessary, if the table has them. The table's shares are the same for every assignment of
    its values to people.

    frequency  l of every sensitive column
    """
    enough = 0.0
    for codes, l in zip(histogram.sensitive.T, frequency, strict=True):
        share = np.bincount(codes, weights=histogram.count).max() / histogram.rows
        enough = max(enough, CLOSE / max(1 / l - share, 1e-9) ** 2)
    return int(max(MANY * max(frequency) ** 2, min(enough, histogram.rows / MANY)))


def merged(
    histogram: Histogram, recoding: Recoding, least: tuple[int, int], eligible: Eligible,
    solve: Solve, deal: np.random.Generator,
) -> MergedPartition:  # fmt: skip
    """Units of the register; those that don't meet the conditions are merged, with decoys.

    least     fewest rows of a group, and of all units of one size together
    eligible  which groups of rows may be published
    solve     the search, on a register
    deal      a random generator that nobody else can reproduce

    Raises InfeasibleError if all units of one size together don't meet the conditions. O(n log n) plus the searches.
    """
    register, of_cell = register_of(histogram)
    found = solve(register, least[0], False)
    cell = np.repeat(np.arange(histogram.cells), histogram.count)
    group = _dealt(_published_alike(register, recoding, found.partition), of_cell[cell], deal)
    # rows by group, in random order within a group, so that units are contiguous
    cell = cell[np.lexsort((deal.random(cell.size), group))]
    units = _units(np.bincount(group), *least)
    out, decoys, person = np.empty(cell.size, np.int64), 0, of_cell[cell]

    def near(row: np.ndarray) -> np.ndarray:
        return _near(register, person[row], 2, solve)

    for rows in units:
        families = rows[_families(register, person[rows[:, 0]], solve)]
        group = merge(cell, families, eligible, near, deal)
        out[families] = group[..., None]
        settled = eligible(cell[families].reshape(-1), np.repeat(np.arange(len(rows)), rows.shape[1]), len(rows))
        first, of = np.unique(group, return_inverse=True)
        alone = np.bincount(of.reshape(-1), minlength=first.size)[of.reshape(-1)] == 1
        decoys += rows.shape[1] * int((settled & ~alone).sum())
    _, number = np.unique(out, return_inverse=True)
    partition = Partition.of(cell, number.reshape(-1), np.ones(cell.size, np.int64))
    return MergedPartition(partition, found, decoys, cell, units)


def register_of(histogram: Histogram) -> tuple[Histogram, np.ndarray]:
    """The quasi-identifiers alone, and int64[cells]: the cell of the register for every cell."""
    of_cell, first = histogram.types
    count = np.bincount(of_cell, weights=histogram.count, minlength=first.size).astype(np.int64)
    nothing = np.zeros((first.size, 0), np.int32)
    held = replace(
        histogram, quasi=histogram.quasi[first], sensitive=nothing, count=count, sensitive_names=(), sensitive_sizes=()
    )
    return held, of_cell


def _published_alike(register: Histogram, recoding: Recoding, partition: Partition) -> Partition:
    """Merge the groups that publish the same, because readers of the release see one class anyway."""
    shows = recoding.publish(register, partition)
    both = np.concatenate([shows.first, shows.second], axis=1)
    _, number = np.unique(both, axis=0, return_inverse=True)
    return Partition.of(partition.cell, number.reshape(-1)[partition.group], partition.count)


def _dealt(partition: Partition, person: np.ndarray, deal: np.random.Generator) -> np.ndarray:
    """int64[n]: the group to which every row is randomly assigned; person int64[n]: the tuple of every row."""
    slots = np.argsort(partition.cell, kind="stable")
    group = np.empty(person.size, np.int64)
    group[np.lexsort((deal.random(person.size), person))] = np.repeat(partition.group[slots], partition.count[slots])
    return group


def _units(sizes: np.ndarray, smallest: int, least: int) -> list[np.ndarray]:
    """int64[units, size] per size of a unit: the rows of its units; rows are sorted by group.

    sizes  int64[groups]

    If there are few units of a size, they are cut in two, into even parts if possible: with an even number of rows, it
    is rarer that one value has more than half. Finally, a unit that can't be cut stays whole.
    """
    begin = np.cumsum(sizes) - sizes
    units = {n: [begin[sizes == n]] for n in np.unique(sizes).tolist()}
    if len(units) == 1:
        return [begin[:, None] + np.arange(sizes[0])]
    kept: list[np.ndarray] = []
    alone: list[np.ndarray] = []
    while units:
        n = max(units)
        at = np.sort(np.concatenate(units.pop(n)))
        if at.size >= MANY and at.size * n >= least:
            kept.append(at[:, None] + np.arange(n))
        elif n >= 2 * smallest:
            first = max(n // 2 - n // 2 % 2, smallest)
            for part, where in ((n - first, at), (first, at + n - first)):
                units.setdefault(part, []).append(where)
        else:
            alone.append((at[:, None] + np.arange(n)).reshape(-1))
    while alone and kept and sum(map(len, alone)) < least:
        rows = kept.pop()
        few = -(-(least - sum(map(len, alone))) // rows.shape[1])
        if len(rows) - few >= MANY and (len(rows) - few) * rows.shape[1] >= least:
            kept.append(rows[:-few])
            rows = rows[-few:]
        alone.append(rows.reshape(-1))
    return [*kept, np.concatenate(alone)[None]] if alone else kept


def _families(register: Histogram, person: np.ndarray, solve: Solve) -> np.ndarray:
    """int64[families, units]: families of near units; person int64[units]: a tuple of each.

    All families have the same number of units, the least from ``FAMILY`` on that divides their number.
    """
    many = next(f for f in range(min(FAMILY, person.size), person.size + 1) if person.size % f == 0)
    return _near(register, person, many, solve)


def _near(register: Histogram, person: np.ndarray, many: int, solve: Solve) -> np.ndarray:
    """int64[items / many, many]: items grouped with near ones, by the register alone.

    person  int64[items]: a tuple of each; their number is a multiple of ``many``
    """
    left, made = np.arange(person.size), []
    # Groups of a grouping with k = many, cut into full parts; remaining items are grouped again.
    while left.size > many:
        tuples, of_item = np.unique(person[left], return_inverse=True)
        of_item = of_item.reshape(-1)
        held = replace(
            register, quasi=register.quasi[tuples], sensitive=register.sensitive[: tuples.size],
            count=np.bincount(of_item).astype(np.int64),
        )  # fmt: skip
        found = solve(held, many, True).partition
        slots = np.argsort(found.cell, kind="stable")
        group = np.empty(left.size, np.int64)
        group[np.argsort(of_item, kind="stable")] = np.repeat(found.group[slots], found.count[slots])
        order = np.argsort(group, kind="stable")
        place = np.arange(left.size) - np.repeat(np.cumsum(found.sizes) - found.sizes, found.sizes)
        full = place < (found.sizes // many * many)[group[order]]
        made.append(left[order[full]].reshape(-1, many))
        left = np.sort(left[order[~full]])
    return np.concatenate([*made, left.reshape(-1, many)])


def merge(
    cell: np.ndarray, families: np.ndarray, eligible: Eligible, near: Near, deal: np.random.Generator
) -> np.ndarray:
    """int64[families, units]: the group of every unit of one size, identified by the first row of one of its units.

    families  int64[families, units, size]: the rows of each
    eligible  which groups of rows may be published
    """

    def fits(items: np.ndarray) -> np.ndarray:
        return eligible(cell[items].reshape(-1), np.repeat(np.arange(len(items)), items.shape[1]), len(items))

    if not fits(families.reshape(1, -1))[0]:
        raise InfeasibleError(
            "minimality merges groups by the quasi-identifiers alone, and all groups of one size together do not meet "
            "what is asked; ask for a larger k, a lower l or a higher minimality"
        )
    group = families[:, :, 0].copy()

    def merged_into(rows: np.ndarray) -> np.ndarray:
        """int64[items]: the item into which each is merged; rows int64[items, size], eligible together."""
        items = np.arange(len(rows))[:, None]
        into = np.arange(len(rows))
        good = fits(rows)
        while not good.all():
            line = np.lexsort((deal.random(len(items)), good))
            taken = len(items) - int(good.sum())
            while not fits(rows[items[line[:taken]]].reshape(1, -1))[0]:
                taken += 1
            items = items[np.sort(line[: taken + taken % 2])]
            if len(items) % 2:  # merge all of them
                items = items.reshape(1, -1)
            else:
                items = items[near(rows[items[:, 0], 0])].reshape(len(items) // 2, -1)
            into[items] = items.min(axis=1, keepdims=True)
            good = fits(rows[items].reshape(len(items), -1))
        return into

    of_family = merged_into(families.reshape(len(families), -1))
    for one, into in enumerate(of_family):
        if (of_family == into).sum() > 1:
            group[one] = group[into, 0]
        else:
            group[one] = group[one][merged_into(families[one])]
    return group


def unclaimed(
    histogram: Histogram, recoding: Recoding, partition: Partition, eligible: Eligible, claimed: Claimed
) -> tuple[Partition, int | None]:
    """Groups merged until an attack claims nothing, and the number of claims left; None: the attack wasn't possible.

    If a claim is about people in several groups, these are merged. If it is about people in a single group, that group
    is merged with the one that loses least; after ``PATIENCE`` rounds with the two nearest, then with four, and so on.
    Claims remain if the models refuse a union, or if only one group is left.
    O(PATIENCE log(groups) rounds of claims groups columns) plus the attacks.
    """
    many = 0
    while (pairs := claimed(partition)) is not None and len(pairs) and partition.groups > 1:
        alone = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
        first = pairs[np.searchsorted(pairs[:, 0], pairs[:, 0]), 1]
        dilute = np.unique(pairs[alone, 1])
        joins = _cheapest(histogram, recoding, partition, dilute, 2 ** (many // PATIENCE))
        a, b = np.append(first, np.repeat(dilute, joins.shape[1])), np.append(pairs[:, 1], joins)
        net = coo_matrix((np.ones(a.size, bool), (a, b)), shape=(partition.groups, partition.groups))
        label = connected_components(net, directed=False)[1]
        coarser = Partition.of(partition.cell, label[partition.group], partition.count)
        cell, group = np.repeat([coarser.cell, coarser.group], coarser.count, axis=1)
        if not eligible(cell, group, coarser.groups).all():
            break
        partition, many = coarser, many + 1
    return partition, None if pairs is None else np.unique(pairs[:, 0]).size


def _cheapest(
    histogram: Histogram, recoding: Recoding, partition: Partition, groups: np.ndarray, many: int
) -> np.ndarray:
    """int64[groups, many]: for each of some groups, the others with which it loses least.

    All others if there are no more.

    A lower bound of a union's loss in a column is that of either group, or of a row of one with a row of the other.
    """
    size, loss = partition.sizes, recoding.losses(histogram, partition)
    # the lowest tuple of a group, so that the choice doesn't depend on who has which value
    of_cell, first = histogram.types
    representative = histogram.quasi[first[np.minimum.reduceat(of_cell[partition.cell], partition.start)]]
    out = np.empty((groups.size, min(many, size.size - 1)), np.int64)
    for i, g in enumerate(groups.tolist()):
        joint = np.maximum(loss, loss[g])
        for j, column in enumerate(recoding.columns):
            joint[:, j] = np.fmax(joint[:, j], column.pair(representative[g, j], representative[:, j]) * column.weight)
        more = (size + size[g]) * joint.sum(axis=1) - size * loss.sum(axis=1) - size[g] * loss[g].sum()
        more[g] = np.inf
        out[i] = np.argsort(more, kind="stable")[: out.shape[1]]
    return out
