"""From suppressed tuples to stars: Lemma 2 of Xiao, Yi, Tao 2010.

A tuple that is suppressed has at least one star and at most one for each of the d quasi-identifiers.  So for any
partition tuples <= stars <= d tuples; an optimum in tuples, or an answer within lambda of it, is within d, or lambda d,
of the fewest stars, and what no partition undercuts in tuples none undercuts in stars.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task

TUPLES = "suppressed tuples"


def plain_stars(recoding: Recoding) -> bool:
    """Whether every column is a value or a star, and every star counts one."""
    return recoding.unit == "stars" and all(c.levels == 2 and c.weight == 1 for c in recoding.columns)


def in_stars(promise: Guarantee, d: int) -> Guarantee:
    """A promise in suppressed tuples as one in stars, for d quasi-identifiers."""
    if promise.factor is None or not d:
        return Guarantee()
    return Guarantee(
        factor=promise.factor * d,
        additive=None if promise.additive is None else promise.additive * d,
        theorem=f"{promise.theorem}; a suppressed tuple has 1 to {d} stars (Xiao, Yi, Tao 2010, Lemma 2)",
    )


def stars_from_tuples(task: Task, grouping: Grouping) -> Grouping:
    """The same partition, certified in stars: cost, bound and promise of a grouping made to suppress few tuples.

    An optimum in tuples is within d times the fewest stars.  Raises PolicyError where the grouping was not certified in
    suppressed tuples, or something else than stars that count one each is published.  O(p d) for p triples.
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
