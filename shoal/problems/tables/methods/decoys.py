"""Groups that tell nothing by having been formed: a release safe from whoever knows the method and has a register.

Who knows that a tool hides no more than it must learns from what is hidden (Wong, Fu, Wang, Pei 2007): in a search for
little loss, a tuple is merged because its rows shared a value.  The likelihood of a search cannot be bounded table by
table, so the one here is taken of a method for which it can be computed:

1. *Units.*  The search is run on the register: the quasi-identifiers alone.  Rows are dealt into its groups at random,
   and large groups are cut at random into units of few rows.  None of it looks at a sensitive value.
2. *Families.*  Near units of one size are put into families of ``FAMILY``, families of one shape into families of
   families, and so on.  None of it looks at a sensitive value either.
3. *Merging.*  A unit is settled where its rows meet what is asked of a group, no value with a share above p.  In a
   family with members that are not settled these are merged into one group, together with as few settled ones, drawn at
   random, as let the group meet it: the decoys.  Where even all members do not, the family is not settled, and is
   merged in the family above it.  Where there is none above, there is no release.

*Theorem.*  Let the intruder know all of it: the method, every person's quasi-identifiers, into which unit every person
was dealt, the families, and the release; of the draws for decoys their law alone.  Under the prior by which every
assignment of the sensitive values to the persons is equally likely, the probability that a person has value v is the
share of v in the person's group, hence at most p.  Who knows less has an average of such probabilities: at most p too.

*Proof.*  Let C be the members that are merged into a group, m its values.  A permutation of persons that maps members
of C onto members of C (they have one shape: the same number of members of the same shape, down to units of one size)
maps assignments to assignments.  It changes no condition of the rules: which members are settled is carried along, a
union meets the models or not by its values alone, decoys are drawn alike, and what lies outside C keeps its values.  So
an assignment and its image lead to this release with the same probability.  Such permutations carry any person of C to
any other.  So given the release all persons of C have the same probability of v, and their mean is the share of v.  The
same holds for a unit that stands by itself, where every permutation of its rows will do.  That a table is refused
weighs nothing: whether a root is settled follows from its own values, and in a release all are.

The likelihood of being hidden is thus what it should be for the proof, 1 where it has to be and the decoys' rate where
it need not, for any models of values, any recoding, any k and l, and for tuples that are hidden in part.  The price is
that the search may not pick neighbours by their values.  Source of the notion: Wong et al., m-confidentiality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.certificate import Certificate, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Decoys, Grouping, Task, nothing
from shoal.problems.tables.groups import good_groups

FAMILY = 16  # members of a family
LARGEST = 8  # rows of a unit, or what just cannot be cut in two
JOINED = 16  # what has no like is put together into one unit of at least so many rows times l squared

Solve = Callable[[Histogram, int, bool], Grouping]  # a register, the least rows of a group, in haste -> groups of it
Eligible = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # cell of rows, group of rows, groups -> bool[groups]


@dataclass(frozen=True, eq=False)
class Merged:
    """A partition that tells nothing by having been formed.

    partition  of the rows of the histogram
    found      the search's answer for the register, whose bound holds for every release
    decoys     rows that were merged though their unit was settled
    rows       cell int64[n], unit int64[n]; family int64[units], root int64[families]: what was there before merging
    """

    partition: Partition
    found: Grouping
    decoys: int
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def protected(task: Task, asked: Decoys, solve: Callable[[Task], Grouping]) -> Grouping:
    """Groups of which nobody's value is told with more than is asked, with their certificate.

    task   its requirement asks of every group what minimality does (``shoal.model.privacy.AlphaKAnonymity``)
    solve  the search, of a register

    The bound is that of the search on the quasi-identifiers alone, so that the proved ratio tells who has a register
    nothing of the values.
    """
    histogram, recoding, need = task.histogram, task.recoding, task.requirement

    def eligible(cell: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
        return good_groups(histogram, need, cell, group, np.ones(cell.size, np.int64), groups)

    def of_register(register: Histogram, smallest: int, haste: bool) -> Grouping:
        k = requirement([KAnonymity(smallest)], register.sensitive_names, register)
        effort, progress = (Effort.of("fast"), nothing) if haste else (task.effort, task.progress)
        return solve(Task(register, k, recoding, effort, task.seed, progress))

    joined = JOINED * max(need.frequency) ** 2
    made = merged(histogram, recoding, (need.smallest, joined), eligible, of_register, asked.deal)
    own = made.found.certificate
    cost = recoding.cost(histogram, made.partition)
    certificate = Certificate(
        cost=cost,
        lower_bound=tight(own.lower_bound, cost, recoding.unit, own.bound),
        unit=recoding.unit,
        bound=f"of the quasi-identifiers alone: {own.bound}",
        details={"minimality": {"asked": asked.most, "decoys": made.decoys, "cost_before_merging": own.cost}},
    )
    return Grouping(made.partition, certificate, "decoys", made.found.attempts)


def merged(
    histogram: Histogram, recoding: Recoding, least: tuple[int, int], eligible: Eligible, solve: Solve,
    deal: np.random.Generator,
) -> Merged:  # fmt: skip
    """Units of the register, and those merged that do not meet what is asked, with decoys.

    least     fewest rows of a group, and of the unit of all that has no like
    eligible  which groups of rows may be published
    solve     the search, on a register
    deal      draws that nobody else can repeat

    Raises InfeasibleError where all units of one size together do not meet it.  O(n log n) beside the searches.
    """
    register, of_cell = register_of(histogram)
    found = solve(register, least[0], False)
    cell = np.repeat(np.arange(histogram.cells), histogram.count)
    group = _dealt(_published_alike(register, recoding, found.partition), of_cell[cell], deal)
    cell = cell[np.lexsort((deal.random(cell.size), group))]  # rows by group, at random within: units are stretches
    unit, family, root = _families(register, of_cell[cell], np.bincount(group), least, solve)
    out, decoys = _merge(cell, unit, family, root, eligible, deal)
    partition = Partition.of(cell, out, np.ones(cell.size, np.int64))
    return Merged(partition, found, decoys, (cell, unit, family, root))


def register_of(histogram: Histogram) -> tuple[Histogram, np.ndarray]:
    """The quasi-identifiers alone, and int64[cells] the cell of the register of every cell."""
    of_cell, first = histogram.types
    count = np.bincount(of_cell, weights=histogram.count, minlength=first.size).astype(np.int64)
    nothing = np.zeros((first.size, 0), np.int32)
    held = replace(
        histogram, quasi=histogram.quasi[first], sensitive=nothing, count=count, sensitive_names=(), sensitive_sizes=()
    )
    return held, of_cell


def _published_alike(register: Histogram, recoding: Recoding, partition: Partition) -> Partition:
    """The groups that publish the same put together: to whoever reads the release they are one class anyway."""
    shows = recoding.publish(register, partition)
    both = np.concatenate([shows.first, shows.second], axis=1)
    _, number = np.unique(both, axis=0, return_inverse=True)
    return Partition.of(partition.cell, number.reshape(-1)[partition.group], partition.count)


def _dealt(partition: Partition, person: np.ndarray, deal: np.random.Generator) -> np.ndarray:
    """int64[n]: the group into which every row is dealt; person int64[n]: the tuple of every row."""
    slots = np.argsort(partition.cell, kind="stable")
    group = np.empty(person.size, np.int64)
    group[np.lexsort((deal.random(person.size), person))] = np.repeat(partition.group[slots], partition.count[slots])
    return group


def _families(
    register: Histogram, person: np.ndarray, sizes: np.ndarray, least: tuple[int, int], solve: Solve
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64[n] the unit of every row, int64[units] its family, int64[families] the root above it.

    person  int64[n] the tuple of every row, group by group; sizes int64[groups]

    From the largest size down: families of near units of one size; what is left over, and every size with fewer than
    two families, is cut into smaller units; at the end what cannot be cut is put together.  All of it goes by the
    register alone.
    """
    smallest, joined = least
    units: dict[int, list[np.ndarray]] = {}  # of every size, where its units begin
    begin = np.cumsum(sizes) - sizes
    for n in np.unique(sizes).tolist():
        _put(units, begin[sizes == n], _cut(n, smallest))
    if len(units) == 1 and sum(map(len, units[max(units)])) < 2 * FAMILY:  # one family of all of them
        n, whole = max(units), np.concatenate(units[max(units)])
        of_row = np.empty(person.size, np.int64)
        of_row[(whole[:, None] + np.arange(n)).reshape(-1)] = np.repeat(np.arange(whole.size), n)
        return of_row, np.zeros(whole.size, np.int64), np.zeros(1, np.int64)
    families: list[tuple[int, np.ndarray]] = []  # size of its units, where they begin
    alone: list[tuple[int, int]] = []
    while units:
        n = max(units)
        at = np.sort(np.concatenate(units.pop(n)))
        made, left = _near(register, person, at, n, solve) if at.size >= 2 * FAMILY else ([], at)
        families += [(n, family) for family in made]
        if n >= 2 * smallest:
            _put(units, left, [n - smallest, smallest])
        else:
            alone += [(n, one) for one in left.tolist()]
    while alone and sum(n for n, _ in alone) < joined and families:
        n, family = families.pop()
        alone += [(n, one) for one in family.tolist()]
        if families and families[-1][0] == n and sum(size == n for size, _ in families) == 1:
            alone += [(n, one) for one in families.pop()[1].tolist()]
    unit, count = np.zeros(person.size, np.int64), int(bool(alone))
    family_of, root_of, roots = [0] * count, [0] * count, {0: 0} if count else {}
    for n, family in families:
        for one in family.tolist():
            unit[one : one + n] = count
            count += 1
            family_of.append(len(root_of))
        root_of.append(roots.setdefault(n, len(roots)))
    return unit, np.array(family_of, np.int64), np.array(root_of, np.int64)


def _put(units: dict[int, list[np.ndarray]], begin: np.ndarray, parts: list[int]) -> None:
    """Stretches that begin at some rows, cut into parts, among the units of every size."""
    for n in parts if begin.size else ():
        units.setdefault(n, []).append(begin)
        begin = begin + n


def _near(
    register: Histogram, person: np.ndarray, begin: np.ndarray, size: int, solve: Solve
) -> tuple[list[np.ndarray], np.ndarray]:
    """Families of near units of one size, where the units of each begin, and the units that are left over."""
    left, made = begin, []
    someone = np.array([person[at : at + size].min() for at in begin.tolist()], np.int64)
    while left.size >= FAMILY:
        tuples, of_unit = np.unique(someone, return_inverse=True)
        held = replace(
            register, quasi=register.quasi[tuples], sensitive=register.sensitive[: tuples.size],
            count=np.bincount(of_unit.reshape(-1)).astype(np.int64),
        )  # fmt: skip
        found = solve(held, FAMILY, True).partition
        slots = np.argsort(found.cell, kind="stable")
        group = np.empty(left.size, np.int64)
        group[np.argsort(of_unit.reshape(-1), kind="stable")] = np.repeat(found.group[slots], found.count[slots])
        order = np.argsort(group, kind="stable")
        place = np.empty(left.size, np.int64)
        place[order] = np.arange(left.size) - np.repeat(np.cumsum(found.sizes) - found.sizes, found.sizes)
        full = place < (found.sizes // FAMILY * FAMILY)[group]
        inside = order[full[order]]
        made += list(left[inside].reshape(-1, FAMILY))
        left, someone = left[~full], someone[~full]
    return made, left


def _cut(n: int, smallest: int) -> list[int]:
    """A group's size as sizes of units: as large as may be, each with rows enough for a group."""
    most, out = max(LARGEST, 2 * smallest - 1), []
    while n > most:
        out.append(min(most, n - smallest))
        n -= out[-1]
    return [*out, n]


def _merge(
    cell: np.ndarray, unit: np.ndarray, family: np.ndarray, root: np.ndarray, eligible: Eligible,
    deal: np.random.Generator,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """int64[n] the group of every row, and how many rows are decoys."""
    settled = own = eligible(cell, unit, family.size)
    group, item, used = unit.copy(), unit, family.size
    for above in (family, root):
        if settled.all():
            break
        joined, settled = _drawn(cell, item, above, settled, eligible, deal)
        here = joined[item] >= 0
        group[here] = used + joined[item[here]]
        used, item = used + family.size, above[item]
    if not settled.all():
        raise InfeasibleError(
            "minimality merges groups by the quasi-identifiers alone, and all groups of one size together do not meet "
            "what is asked; ask for a larger k, a lower l or a higher minimality"
        )
    _, number = np.unique(group, return_inverse=True)
    return number.reshape(-1).astype(np.int64), int((own[unit] & (group != unit)).sum())


def _drawn(
    cell: np.ndarray, item: np.ndarray, family: np.ndarray, settled: np.ndarray, eligible: Eligible,
    deal: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """int64[items]: the group into which a member is merged, -1 for none; bool[families]: which are settled then.

    Members stand in a line, those that are not settled at random first, then the others at random.  From its head
    groups are closed as soon as they meet what is asked, until no member that is not settled is left.  Where the line
    ends before the last group is closed, all that were merged are one group.
    """
    many = np.bincount(family)
    bad = np.bincount(family, weights=~settled, minlength=many.size).astype(np.int64)
    line = np.lexsort((deal.random(family.size), settled, family))
    first = np.cumsum(many) - many
    place = np.empty(family.size, np.int64)
    place[line] = np.arange(family.size) - np.repeat(first, many)
    joined = np.full(family.size, -1, np.int64)
    start = np.zeros(many.size, np.int64)  # of the open group
    size = np.where(bad > 0, 1, 0)
    good = bad == 0
    order = np.argsort(item, kind="stable")  # rows by member
    rows = np.bincount(item, minlength=family.size)
    begin = np.cumsum(rows) - rows
    while (work := np.flatnonzero(size > 0)).size:
        members = line[np.repeat(first[work] + start[work], size[work]) + _runs(size[work])]
        here = order[np.repeat(begin[members], rows[members]) + _runs(rows[members])]
        of = np.repeat(np.repeat(np.arange(work.size), size[work]), rows[members])
        fits = eligible(cell[here], of, work.size)
        joined[members] = np.repeat(first[work] + start[work], size[work])
        shut = work[fits]
        start[shut] += size[shut]
        size[shut] = np.where(start[shut] < bad[shut], 1, 0)
        good[shut] |= size[shut] == 0
        wide = work[~fits]
        ends = start[wide] + size[wide] >= many[wide]
        size[wide[~ends]] += 1
        last = wide[ends & (start[wide] > 0)]  # all that were merged once more, as one group
        start[last], size[last] = 0, many[last]
        size[wide[ends & ~np.isin(wide, last)]] = 0
    return joined, good


def _runs(lengths: np.ndarray) -> np.ndarray:
    """0, 1, ... length - 1 for every length, one after another."""
    out: np.ndarray = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return out
