"""A search beside a population table: what is asked of it, and how wide every group is published in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.effort import Effort
from shoal.model.histogram import Histogram
from shoal.model.policy import Policy
from shoal.model.privacy import DeltaPresence, KMap
from shoal.model.privacy.base import CLOSE
from shoal.model.recoding import Published, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.exact.forms_program import SECONDS, least_forms
from shoal.problems.tables.others.forms import Forms, raised
from shoal.problems.tables.others.sharing import enough, shared
from shoal.publishing.people.forms import forms_of
from shoal.publishing.people.population import Study, cut, uncovered

Solve = Callable[..., Grouping]
Holds = Callable[[Grouping], bool]


class Beside(NamedTuple):
    """A grouping, and what its groups publish where that is not given by it; its loss summed over the rows.

    bound  no release loses less, summed over the rows as well
    """

    grouping: Grouping
    shows: Published | None = None
    loss: float = np.inf
    bound: float = 0.0


def solved(study: Study, histogram: Histogram, recoding: Recoding, asked: Policy, ask: Solve, holds: Holds) -> Beside:
    """A grouping that keeps what is asked of the population, and what its groups publish.

    ask    solves a requirement: ``ask(need)``, and as keywords what is otherwise the sample's and the policy's: held
           (a histogram), shown (a recoding), apart, method, effort, share (of the seconds) and admits
    holds  whether what a grouping publishes by itself covers enough people

    Raises InfeasibleError where even the widest forms cover too few.  Up to three searches.
    """
    if not study.asked:
        return Beside(ask(study.need))
    forms = forms_of(study, recoding, asked)
    if forms is None:
        return Beside(_by_larger(study, ask, holds))
    _refuse(study, histogram, forms, asked)
    free = cut(study.free, len(histogram.sensitive_names))

    def by_column(**how: str) -> Grouping:
        found = ask(free, held=histogram, admits=lambda levels: _admitted(study, histogram, forms, levels), **how)
        if forms.exact:
            return found
        facts = {n: v for n, v in found.certificate.details.items() if n != "proved"}
        certificate = replace(found.certificate, details=facts | {"uniform_bound": 0, "uniform_optimal": False})
        return replace(found, certificate=certificate)

    if asked.global_recoding:
        return Beside(by_column())
    tries = _tries(study, histogram, recoding, forms, asked, ask, by_column)
    made, failed = [], []
    for call in tries:
        try:
            made.append(call())
        except (InfeasibleError, PolicyError) as error:  # the one question may have no answer where the other has one
            failed.append(error)
    if tries and not made:
        raise failed[0]
    if not made:
        found = _by_larger(study, ask, holds)
        made.append((found, None if holds(found) else np.tile(forms.tops, (histogram.cells, 1))))
    best: Beside | None = None
    for found, floor in made:
        tried = _narrowest(study, forms, histogram, recoding, found, floor)
        if best is None or tried.loss < best.loss:
            best = tried
    assert best is not None
    return _proved(study, forms, histogram, asked, best)


def _tries(
    study: Study, histogram: Histogram, recoding: Recoding, forms: Forms, asked: Policy, ask: Solve, by_column: Solve
) -> list[Callable[[], tuple[Grouping, np.ndarray | None]]]:
    """Questions to put to a search: each gives a grouping and levels of the cells, at or above which it covers enough.

    None for the levels: what the groups' rows ask does.
    """
    tries: list[Callable[[], tuple[Grouping, np.ndarray | None]]] = []
    base = _base(study, histogram, forms)
    share = 1 / max(study.strict + (base is not None), 1)

    def raised_before(base: np.ndarray) -> tuple[Grouping, np.ndarray | None]:
        need = cut(study.free, len(histogram.sensitive_names))
        coarse = raised(Task(histogram, need, recoding, apart=study.apart), base)
        small = coarse.task
        found = ask(need, held=small.histogram, shown=small.recoding, apart=small.apart, share=share)
        return replace(found, partition=coarse.back(found.partition)), base

    def one_level() -> tuple[Grouping, np.ndarray | None]:
        found = by_column(method="global_recoding", effort="fast")
        levels = found.certificate.details["levels"]
        return found, np.tile([levels[n] for n in histogram.quasi_names], (histogram.cells, 1))

    if base is not None:
        tries.append(lambda: raised_before(base))
    if study.strict:
        tries.append(lambda: (ask(study.need, share=share), None))
    if asked.method == "auto" and forms.few(histogram.cells):
        tries.append(one_level)
    return tries


def _proved(study: Study, forms: Forms, histogram: Histogram, asked: Policy, best: Beside) -> Beside:
    """The best of all releases where the table is small enough to find it, else the one in hand; with its bound."""
    effort = Effort.of(asked.effort)
    other = asked.method != "auto" or asked.shards is not None or asked.max_average_risk is not None
    if other or effort.name == "fast" or study.apart is not None or not forms.exact:
        return best
    seconds = SECONDS[effort.name] if effort.seconds is None else 0.3 * effort.seconds
    need = cut(study.free, len(histogram.sensitive_names))
    found = least_forms(forms, histogram, need, study.k, study.high if study.shares else None, seconds)
    if found is None:
        return best
    best = best._replace(bound=found.bound)
    whole = effort.name != "balanced" or found.loss <= found.bound * (1 + CLOSE)  # else the clock would decide
    someone = histogram.quasi[found.partition.cell[found.partition.start]].astype(np.int64)
    if not whole or found.loss >= best.loss * (1 - CLOSE):
        return best
    if study.shares and not enough(forms, someone, found.partition.sizes, found.levels, study.high):
        return best  # a person too little, by rounding
    grouping = replace(best.grouping, partition=found.partition, method="optimal")
    return Beside(grouping, forms.published(someone, found.levels), found.loss, found.bound)


def _by_larger(study: Study, ask: Solve, holds: Holds) -> Grouping:
    """A grouping by what the search asks; where not even the whole table meets that, by larger and larger groups.

    The last try is one group of all rows, which covers most.  O(log rows) searches.
    """
    if study.strict:
        return ask(study.need)
    k, rows = 2 * max(study.free.smallest, 1), study.histogram.rows
    while k < rows:
        found = ask(replace(study.free, k=k))
        if holds(found):
            return found
        k *= 2
    return ask(replace(study.free, k=max(rows, 1)))


def _refuse(study: Study, histogram: Histogram, forms: Forms, asked: Policy) -> None:
    """InfeasibleError where the highest levels that may be published cover too few people."""
    whole, rows = int(forms.people.sum()), histogram.rows
    of_type, first = histogram.types
    codes = histogram.quasi[first].astype(np.int64)
    held = np.bincount(of_type, weights=histogram.count).astype(np.int64)
    least, share, where = whole, rows / whole, "all rows starred whole"
    if not forms.whole and forms.exact and not asked.max_suppressed:
        where = "the highest levels allowed"
        ours, theirs, size = forms.numbers(codes, forms.tops)
        people = np.bincount(theirs, weights=forms.people, minlength=size)[ours]
        least = int(people.min())
        share = float((np.bincount(ours, weights=held)[ours] / people).max())
    if study.k > least:
        raise uncovered(KMap.short, where, study.k, least)
    if study.shares and share > study.high + CLOSE:
        raise uncovered(DeltaPresence.short, where, study.high, share)


def _admitted(study: Study, histogram: Histogram, forms: Forms, levels: np.ndarray) -> np.ndarray:
    """bool[m]: whether the class of every cell, at levels int[d] for all of them, covers enough people."""
    ours, theirs, size = forms.numbers(histogram.quasi.astype(np.int64), levels)
    people = np.bincount(theirs, weights=forms.people, minlength=size)
    rows = np.bincount(ours, weights=histogram.count, minlength=size)
    return np.asarray(((people >= study.k) & (rows <= (study.high + CLOSE) * people))[ours])


def _base(study: Study, histogram: Histogram, forms: Forms) -> np.ndarray | None:
    """int64[m, d]: levels for every cell such that their forms, and so all coarser ones, cover enough people.

    None where that is not known.
    """
    of_type, first = histogram.types
    if not forms.few(first.size):
        return None
    codes = histogram.quasi[first].astype(np.int64)
    loss, levels = forms.cheapest(codes, np.zeros_like(codes), np.full(first.size, study.k))
    if not np.isfinite(loss).all():
        return None
    if study.shares:
        rows = np.bincount(of_type, weights=histogram.count).astype(np.int64)
        found = shared(forms, codes, rows, levels, study.high)
        if found is None:
            return None
        levels = found
    return levels[of_type]


def _narrowest(
    study: Study, forms: Forms, histogram: Histogram, recoding: Recoding, found: Grouping, floor: np.ndarray | None
) -> Beside:
    """Groups with the cheapest forms at or above what their rows ask that cover enough people.

    floor  int64[m, d]  levels of the cells at or above which what any groups publish covers enough; None: what the rows
           ask does
    """
    held = found.partition
    someone = histogram.quasi[held.cell[held.start]].astype(np.int64)
    asks = recoding.publish(histogram, held).first.astype(np.int64)
    tries = [asks if floor is None else np.maximum(asks, np.maximum.reduceat(floor[held.cell], held.start))]
    if forms.few(held.groups):
        loss, own = forms.cheapest(someone, asks, np.full(held.groups, study.k))
        dealt = shared(forms, someone, held.sizes, own, study.high) if study.shares else own
        if dealt is not None and np.isfinite(loss).all():
            tries.append(dealt)
    paid = [float(forms.loss(someone, levels) @ held.sizes) for levels in tries]
    least = int(np.argmin(paid))
    return Beside(found, forms.published(someone, tries[least]), paid[least])
