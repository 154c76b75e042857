"""The three-phase algorithm: fewest suppressed tuples under l-diversity, within a factor of l.

Xiao, Yi, Tao, "The hardness and approximation algorithms for l-diversity", EDBT 2010.

Terms of the paper: Q (here *type*, rows with equal quasi-identifiers), R (the residue), pillar, h, thin, fat, dead. Not
in the paper: phase one is a closed form on counts. A minimum group size k may be requested with l (the bound and the
guarantees of phases one and two remain valid, that of phase three doesn't). k-anonymity alone is solved exactly. For
other requirements (several sensitive columns, distinct values, all other models), whole types move until the residue is
eligible.

Lemma 2 of Xiao, Yi, Tao 2010 relates suppressed tuples and stars: a suppressed tuple has at least one star, and at most
one for each of the d quasi-identifiers. So for any partition tuples <= stars <= d tuples. An optimum in tuples, or an
answer within lambda of it, is within d, or lambda d, of the fewest stars; and a lower bound in tuples is a lower bound
in stars.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.groups import groups_that_meet, joining

SOURCE = "Xiao, Yi, Tao 2010"
WIDENED = "every row loses what the grid takes from its own values"


def three_phase(task: Task) -> Grouping:
    """TP: rows leave their type for one residue until all types and the residue are eligible.

    The certificate is in suppressed tuples; ``details`` has the phase reached, and the size and height of phase one's
    residue. If ranges are widened to a grid, no row is published unchanged, and the certificate counts the loss
    instead. Near-linear in cells; independent of rows.
    """
    partition, facts = residues(task)
    suppressed = facts.pop("suppressed")
    if task.recoding.alone(task.histogram):
        return by_loss(task, partition, "three_phase", {"phase": facts["phase"]})
    certificate = Certificate(
        cost=suppressed,
        lower_bound=tight(facts["bound"], suppressed, "suppressed tuples", facts["argument"]),
        unit="suppressed tuples",
        guarantee=facts["guarantee"],
        bound=facts["argument"],
        details={k: v for k, v in facts.items() if k not in ("guarantee", "argument", "bound")},
    )
    return Grouping(partition, certificate, "three_phase")


def by_loss(task: Task, partition: Partition, method: str, details: dict[str, Any]) -> Grouping:
    """A partition of a table in which publication changes every row, certified by its loss."""
    unit, cost = task.recoding.unit, task.recoding.cost(task.histogram, partition)
    bound = tight(task.recoding.alone(task.histogram), cost, unit, WIDENED)
    certificate = Certificate(cost=cost, lower_bound=bound, unit=unit, bound=WIDENED, details=details)
    return Grouping(partition, certificate, method)


def residues(task: Task) -> tuple[Partition, dict[str, Any]]:
    """The partition with details for the certificate, and its number of suppressed rows as "suppressed".

    If no level up to the ceilings makes two rows equal, they are never in one group. So each class of rows that the
    ceilings can join is a separate table with its own residue; optima, bounds, and suppressed rows add up.

    Raises InfeasibleError if such a class doesn't meet the requirement, because then no partition meets the ceilings.
    """
    histogram, need = task.histogram, task.requirement
    kind = ceiling_classes(task)
    classes = int(kind.max(initial=0)) + 1
    if classes == 1:
        taken, facts = residue(histogram, need)
        return split(histogram, taken), {**facts, "suppressed": suppressed(histogram, taken)}
    good = eligible_with(histogram, need, kind, classes, histogram.count)
    if not good.all():
        rows = int(histogram.count[~good[kind]].sum())
        raise InfeasibleError(
            f"{rows} rows cannot be placed with {' and '.join(_ceilings(task))} or below, so no table exists; "
            "raise its ceiling or leave the column out"
        )
    taken, group = np.zeros(histogram.cells, np.int64), histogram.types[0] + classes
    each = []
    for cells in np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1]):
        part = histogram.part(cells)
        taken[cells], facts = residue(part, need)
        each.append({**facts, "suppressed": suppressed(part, taken[cells])})
    cells = np.arange(histogram.cells)
    partition = Partition.of(
        np.concatenate([cells, cells]), np.concatenate([group, kind]), np.concatenate([histogram.count - taken, taken])
    )
    return partition, _combined_details(each)


def _combined_details(each: list[dict[str, Any]]) -> dict[str, Any]:
    """The details of tables that share no group, combined."""
    promises: list[Guarantee] = [facts["guarantee"] for facts in each]
    slack = sum(p.additive or 0 for p in promises)
    if any(p.factor is None for p in promises):
        guarantee = Guarantee()
    # at most l - 1 above an optimum of at least 1 is within l times it as well
    elif max(p.factor or 1 for p in promises) > 1:
        guarantee = next(p for p in promises if (p.factor or 1) > 1)
    else:
        guarantee = max(promises, key=lambda p: p.additive or 0)
        guarantee = replace(guarantee, additive=slack)
    whole = {key: sum(facts.get(key, 0) for facts in each) for key in each[0] if isinstance(each[0][key], int)}
    return {
        **whole,
        "phase": max(facts["phase"] for facts in each),
        "height_after_phase_one": max(facts.get("height_after_phase_one", 0) for facts in each),
        "argument": f"for each of {len(each)} classes of the highest levels allowed: {each[0]['argument']}",
        "guarantee": guarantee,
    }


def suppressed(histogram: Histogram, taken: np.ndarray) -> int:
    """Rows of the residue, or 0 if they are all of one type, because then nothing is starred."""
    gone = histogram.types[0][taken > 0]
    return int(taken.sum()) if gone.size and (gone != gone[0]).any() else 0


def _ceilings(task: Task) -> list[str]:
    return [
        f"{name!r} at {c.limit}"
        for name, c in zip(task.histogram.quasi_names, task.recoding.columns, strict=True)
        if c.held
    ]


def ceiling_classes(task: Task) -> np.ndarray:
    """int64[m], from 0: equal for cells that the ceilings allow in one group, those equal at the highest levels."""
    limited = [c.allowed()[task.histogram.quasi[:, j]] for j, c in enumerate(task.recoding.columns) if c.held]
    if not limited or not task.histogram.cells:
        return np.zeros(task.histogram.cells, np.int64)
    return np.unique(np.stack(limited, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def split(histogram: Histogram, taken: np.ndarray) -> Partition:
    """Types without their taken rows, and one group of all taken rows. taken: int64[m]."""
    of_type, first = histogram.types
    cells = np.arange(histogram.cells)
    group = np.concatenate([of_type, np.full(histogram.cells, first.size)])
    return Partition.of(np.concatenate([cells, cells]), group, np.concatenate([histogram.count - taken, taken]))


def residue(histogram: Histogram, need: Requirement) -> tuple[np.ndarray, dict[str, Any]]:
    """int64[m]: rows of each cell that leave their type, with the details for the certificate."""
    columns = need.sensitive_columns
    if not columns:
        return _by_size(histogram, need.k)
    if len(columns) == 1 and not need.rules:
        return _by_pillars(histogram, need, columns[0])
    return _by_types(histogram, need)


def _by_pillars(histogram: Histogram, need: Requirement, column: int) -> tuple[np.ndarray, dict[str, Any]]:
    """One sensitive column: phases one to three, with a minimum size k and a least number of values if requested."""
    from shoal.kernels import quick
    from shoal.kernels.tables.three_phase import later_phases, phase_one

    l, distinct = need.frequency[column], need.distinct[column]
    k = need.k if need.k > max(l, distinct) else 1
    start, order, value, count, back = _pillars(histogram, column)
    taken = np.zeros(count.size, np.int64)
    quick(phase_one, count.size * 3)(start, count, l, k, distinct, taken)
    size = int(taken.sum())
    height = int(np.bincount(value, weights=taken, minlength=1).max()) if size else 0
    facts: dict[str, Any] = {
        "phase": 1,
        "residue_after_phase_one": size,
        "height_after_phase_one": height,
        "bound": max(size, l * height, k if size else 0, distinct if size else 0),
        "argument": f"max(|R1|, l h(R1)) after phase one ({SOURCE}, Lemma 5.8, Corollary 5.10)",
    }
    out = np.zeros(histogram.cells, np.int64)
    if distinct <= l:
        steps = size + height * l * count.size / max(start.size - 1, 1) + 5 * count.size
        later = quick(later_phases, steps)
        facts["phase"], done = later(start, value, count, taken, histogram.sensitive_sizes[column], l, k)
    else:
        enough = size >= max(l * height, k) and np.unique(value[taken > 0]).size >= distinct
        done = size == 0 or enough
    _deal(histogram, order, back, taken, out)
    if not done:
        facts["phase"] = 4
        facts["guarantee"] = Guarantee()
        return _dissolve(histogram, need, out), facts
    facts["guarantee"] = {
        1: Guarantee(factor=1, additive=0, theorem=f"{SOURCE}, Corollary 5.9: fewest suppressed tuples"),
        2: Guarantee(factor=1, additive=l - 1, theorem=f"{SOURCE}, Corollary 5.13: at most l - 1 above the fewest"),
        3: Guarantee(factor=l, additive=0, theorem=f"{SOURCE}, Theorem 5.19: at most l times the fewest"),
    }[facts["phase"]]
    return out, facts


def _pillars(histogram: Histogram, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cells sorted by (type, descending count) for one sensitive column.

    Cells that differ only in other columns are added up.

    Returns start int64[t+1], cells sorted so that equal (type, value) are adjacent, value, count, and for each sorted
    cell the index of its pillar.
    """
    of_type, first = histogram.types
    sensitive = histogram.sensitive[:, column].astype(np.int64)
    key = of_type * max(histogram.sensitive_sizes[column], 1) + sensitive
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.ones(ordered.size, bool)
    new[1:] = np.diff(ordered) != 0
    begin = np.flatnonzero(new)
    count = np.add.reduceat(histogram.count[order], begin) if begin.size else np.zeros(0, np.int64)
    kind, value = of_type[order[begin]], sensitive[order[begin]]
    by_height = np.lexsort((value, -count, kind))
    place = np.empty(by_height.size, np.int64)
    place[by_height] = np.arange(by_height.size)
    back = place[np.cumsum(new) - 1]
    start = np.searchsorted(kind[by_height], np.arange(first.size + 1))
    return start.astype(np.int64), order, value[by_height], count[by_height], back


def _deal(histogram: Histogram, order: np.ndarray, back: np.ndarray, taken: np.ndarray, out: np.ndarray) -> None:
    """Distribute the rows taken from each pillar among its cells, first cells first."""
    held = histogram.count[order]
    new = np.ones(order.size, bool)
    new[1:] = np.diff(back) != 0
    begin = np.flatnonzero(new)
    before = np.cumsum(held) - held
    before -= np.repeat(before[begin], np.diff(np.append(begin, order.size)))
    out[order] = np.clip(taken[back] - before, 0, held)


def _by_size(histogram: Histogram, k: int) -> tuple[np.ndarray, dict[str, Any]]:
    """k-anonymity alone, exactly: the fewest tuples that leave their type.

    Types below k leave completely. If these are fewer than k rows, others join: first surplus rows of types above k. If
    the surplus doesn't suffice, one type is dissolved, the smallest; every answer must dissolve one.
    """
    of_type, first = histogram.types
    size = np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64)
    gone = size < k
    taken = np.where(gone[of_type], histogram.count, 0).astype(np.int64)
    total = int(taken.sum())
    forced = total
    if 0 < total < k:
        surplus = np.where(gone, 0, size - k)
        if surplus.sum() < k - total:
            smallest = int(np.where(gone, np.iinfo(np.int64).max, size).argmin())
            taken[of_type == smallest] = histogram.count[of_type == smallest]
        else:
            missing = k - total
            give = np.clip(missing - (np.cumsum(surplus) - surplus), 0, surplus)
            order = np.argsort(of_type, kind="stable")
            held = histogram.count[order]
            before = np.cumsum(held) - held
            begin = np.searchsorted(of_type[order], np.arange(first.size))
            before -= before[begin][of_type[order]]
            taken[order] += np.clip(give[of_type[order]] - before, 0, held) * ~gone[of_type[order]]
    total = int(taken.sum())
    return taken, {
        "phase": 1,
        "residue_after_phase_one": forced,
        "bound": total,
        "argument": "rows of types under k must leave; a residue under k needs the smallest addition there is",
        "guarantee": Guarantee(
            factor=1, additive=0, theorem="fewest suppressed tuples: types under k leave, see bound"
        ),
    }


def _by_types(histogram: Histogram, need: Requirement) -> tuple[np.ndarray, dict[str, Any]]:
    """Several sensitive columns, or other models: whole types stay or leave, and more leave until all is eligible.

    The bound is the largest of those for single columns, each of which is a weaker requirement, and that for sizes
    alone.
    """
    of_type, first = histogram.types
    ineligible = ~eligible_with(histogram, need, of_type, first.size, histogram.count)
    taken = np.where(ineligible[of_type], histogram.count, 0).astype(np.int64)
    bound = _by_size(histogram, need.k)[1]["bound"]
    for j in need.sensitive_columns:
        frequency, distinct = [1] * len(need.frequency), [1] * len(need.distinct)
        frequency[j], distinct[j] = need.frequency[j], need.distinct[j]
        relaxed = Requirement(k=need.k, frequency=tuple(frequency), distinct=tuple(distinct))
        bound = max(bound, _by_pillars(histogram, relaxed, j)[1]["bound"])
    facts: dict[str, Any] = {
        "phase": 1,
        "residue_after_phase_one": int(taken.sum()),
        "bound": bound,
        "argument": f"the largest over single sensitive columns of max(|R1|, l h(R1)) ({SOURCE}, Corollary 5.10)",
        "guarantee": Guarantee(),
    }
    if taken.any() and not eligible_with(histogram, need, np.zeros_like(of_type), 1, taken)[0]:
        facts["phase"] = 4
        taken = _dissolve(histogram, need, taken)
    return taken, facts


def _dissolve(histogram: Histogram, need: Requirement, taken: np.ndarray) -> np.ndarray:
    """Let whole eligible types join an ineligible residue until it is eligible; taken: int64[m]."""
    left = histogram.count - taken
    rest = np.flatnonzero(left)
    joined = np.zeros(histogram.types[1].size, bool)
    found = joining(histogram, need, rest, histogram.types[0][rest], left[rest], taken)
    joined[: found.size] = found
    return np.where(joined[histogram.types[0]], histogram.count, taken)


def eligible_with(
    histogram: Histogram, need: Requirement, group: np.ndarray, groups: int, count: np.ndarray
) -> np.ndarray:
    """bool[groups]: which groups of cells meet the requirement; group int64[m], count int64[m]. O(m log m)."""
    return groups_that_meet(histogram, need, np.arange(histogram.cells), group, count, groups)


TUPLES = "suppressed tuples"


def plain_stars(recoding: Recoding) -> bool:
    """Whether every column publishes a value or a star, and every star costs one."""
    return recoding.unit == "stars" and all(c.levels == 2 and c.weight == 1 for c in recoding.columns)


def in_stars(promise: Guarantee, d: int) -> Guarantee:
    """A guarantee in suppressed tuples, converted to stars for d quasi-identifiers."""
    if promise.factor is None or not d:
        return Guarantee()
    return Guarantee(
        factor=promise.factor * d,
        additive=None if promise.additive is None else promise.additive * d,
        theorem=f"{promise.theorem}; a suppressed tuple has 1 to {d} stars (Xiao, Yi, Tao 2010, Lemma 2)",
    )


def as_one_shard(task: Task, grouping: Grouping) -> Grouping:
    """A grouping certified like that of a table cut into shards: by its loss, and without a theorem's guarantee.

    Otherwise the certificate would reveal whether the table could be cut.
    """
    was = grouping.certificate
    if was.unit == TUPLES and plain_stars(task.recoding):
        grouping = stars_from_tuples(task, grouping)
    elif was.unit == TUPLES:
        grouping = by_loss(task, grouping.partition, grouping.method, dict(was.details))
    return replace(grouping, certificate=replace(grouping.certificate, guarantee=Guarantee()))


def stars_from_tuples(task: Task, grouping: Grouping) -> Grouping:
    """A grouping that was made to suppress few tuples, certified in stars: its cost, bound, and guarantee.

    An optimum in tuples is within d times the fewest stars. Raises PolicyError if the grouping wasn't certified in
    suppressed tuples, or if something other than stars of cost one is published. O(p d) for p triples.
    """
    was, d = grouping.certificate, len(task.recoding.columns)
    if was.unit != TUPLES:
        raise PolicyError(f"the grouping is certified in {was.unit}, not in {TUPLES}; give one of 'three_phase'")
    if not plain_stars(task.recoding):
        raise PolicyError("suppressed tuples are turned into plain stars alone, every star counting one")
    cost = task.recoding.cost(task.histogram, grouping.partition)
    promise = in_stars(
        Guarantee(factor=1, additive=0, theorem="fewest suppressed tuples, proved") if was.optimal else was.guarantee, d
    )
    return replace(
        grouping,
        certificate=Certificate(
            cost=cost,
            lower_bound=tight(was.lower_bound, cost, "stars", was.bound),
            unit="stars",
            guarantee=promise,
            bound=f"{was.bound}; each has at least one star",
            details={**was.details, TUPLES: was.cost},
        ),
    )
