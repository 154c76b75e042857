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

CATALOGUE: dict[str, dict[str, str]] = {
    "tables": {},
    "labels": {},
    "regions": {},
    "tiles": {},
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
    found = CATALOGUE[problem].get(name)
    if found is None:
        raise PolicyError.unknown(f"method for {problem}", name, ["auto", *names(problem)])
    module, _, function = found.partition(":")
    return getattr(import_module(module), function)
