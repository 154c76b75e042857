"""Every algorithm by problem and name: what the command line, the report and the tests list.

An entry is "module:function", resolved by ``algorithm`` when it is first asked for, so that listing
costs nothing.  All algorithms of one problem have one signature, stated in that problem's docstring.
Being listed here is what makes an algorithm selectable and tested.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shoal.errors import PolicyError

__all__ = ["CATALOGUE", "algorithm"]

CATALOGUE: dict[str, dict[str, str]] = {
    "tables": {
        "auto": "shoal.problems.tables.auto:auto",
        "improve": "shoal.problems.tables.search.neighborhood:improve",
        "cascade": "shoal.problems.tables.search.cascade:cascade",
        "three_phase": "shoal.problems.tables.papers.three_phase:three_phase",
        "hilbert": "shoal.problems.tables.others.hilbert:hilbert",
        "three_phase_hilbert": "shoal.problems.tables.others.hilbert:three_phase_hilbert",
        "two_anonymity": "shoal.problems.tables.papers.two_anonymity:two_anonymity",
        "matching": "shoal.problems.tables.papers.matching:matching",
        "top_down": "shoal.problems.tables.others.top_down:top_down",
        "mondrian": "shoal.problems.tables.others.mondrian:mondrian",
        "global_recoding": "shoal.problems.tables.others.global_recoding:global_recoding",
        "coarsen": "shoal.problems.tables.search.coarsen:coarsen",
        "optimal": "shoal.problems.tables.exact.optimal:optimal",
        "halving": "shoal.problems.tables.exact.halving:halving",
        "forest": "shoal.problems.tables.others.forest:forest",
        "pattern_cover": "shoal.problems.tables.others.pattern_cover:pattern_cover",
    },
    "labels": {
        "fold": "shoal.problems.labels.greedy:fold",
        "spread": "shoal.problems.labels.greedy:spread",
        "five_halves": "shoal.problems.labels.five_halves:five_halves",
        "scheme": "shoal.problems.labels.scheme:scheme",
        "bicriteria": "shoal.problems.labels.scheme:bicriteria",
        "exact": "shoal.problems.labels.exact:exact",
    },
    "regions": {
        "auto": "shoal.problems.regions.auto:auto",
        "tree": "shoal.problems.regions.tree:tree",
        "search": "shoal.problems.regions.search:search",
        "exact": "shoal.problems.regions.exact:exact",
    },
    "tiles": {
        "kd_tree": "shoal.problems.tiles.kd_tree:kd_tree",
        "least_waste": "shoal.problems.tiles.search:least_waste",
        "proportional": "shoal.problems.tiles.search:proportional",
        "best_cuts": "shoal.problems.tiles.best_cuts:best_cuts",
        "mondrian": "shoal.problems.tiles.kd_tree:mondrian",
    },
    "gather": {
        "local": "shoal.problems.gathering.gather:by_local",
        "disjoint": "shoal.problems.gathering.gather:by_disjoint",
        "threshold": "shoal.problems.gathering.gather:by_threshold",
        "peeling": "shoal.problems.gathering.gather:by_peeling",
        "rounds": "shoal.problems.gathering.gather:by_rounds",
        "exact": "shoal.problems.gathering.gather:by_exact",
    },
    "cellular": {
        "search": "shoal.problems.gathering.cellular:by_search",
        "tight": "shoal.problems.gathering.cellular:by_tight",
        "procedure_one": "shoal.problems.gathering.cellular:by_procedure_one",
        "three_step": "shoal.problems.gathering.cellular:by_three_step",
        "exact": "shoal.problems.gathering.cellular:by_exact",
    },
}


def names(problem: str) -> list[str]:
    """The methods of one problem, in the order listed."""
    return list(CATALOGUE[problem])


def algorithm(problem: str, name: str) -> Callable[..., Any]:
    """The function behind a name; PolicyError with the nearest name when there is none."""
    found = CATALOGUE[problem].get(name) if isinstance(name, str) else None
    if found is None:
        raise PolicyError.unknown(f"method for {problem}", str(name), ["auto", *names(problem)])
    module, _, function = found.partition(":")
    return getattr(import_module(module), function)
