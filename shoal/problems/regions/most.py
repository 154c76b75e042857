"""As many regions as any objective finds: a search for other ends sometimes meets more regions than one for many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shoal.problems.regions.bounds import CountBound
from shoal.problems.regions.search import improve
from shoal.problems.regions.task import CHAINS, Districting, Found
from shoal.problems.regions.value import value

OTHERS = ("sumsq", "excess", "max")


def most_regions(solve: Callable[[Districting, CountBound], Found], task: Districting, bound: CountBound) -> Found:
    """The method's answer for the task's objectives, "count" first, or that for another objective with more regions.

    Not asked by ``auto`` on large graphs, whose search is led by prices.  Every objective is asked with the same
    randomness, so the answer has as many regions as a call for that objective with the same seed.  Ends where the bound
    is reached; at most four times the work, or the same seconds in all.  Regions that are to be compact or alike too
    are made so again, for what is found for another end is neither: at most seven times the work.
    """
    again = not {"compact", "similar"}.isdisjoint(task.objective)
    seconds = None if task.seconds is None else task.seconds / (1 + (1 + again) * len(OTHERS))
    task = replace(task, seconds=seconds)
    begin = task.state.copy()
    best = solve(task, bound)
    for name in OTHERS:
        most = bound.value if best.most is None else min(best.most, bound.value)
        if int(best.label.max()) + 1 >= most:
            break
        other = solve(replace(task, objective=CHAINS[name], state=begin.copy()), bound)
        label = other.label
        if again and int(label.max()) >= int(best.label.max()):
            label = improve(task, bound, label)
        if value(task, label, task.objective) < value(task, best.label, task.objective):
            best = replace(best, label=label, details={**best.details, "found_for": name})
    return best
