"""How much the suite tries: a part of what ``python tools/whole_suite.py`` tries, which sets SHOAL_TEST_ALL.

Drawn cases: a fifth. Tests marked ``diagonal``: as many cases as their longest parameter has values.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from hypothesis import settings

ALL = os.environ.get("SHOAL_TEST_ALL") == "1"
LEAST = 10


def thinned(cases: int) -> int:
    """How many of the cases that are drawn are tried."""
    return cases if ALL else max(cases // 5, min(cases, LEAST))


def diagonal(cases: Sequence[Mapping[str, Any]]) -> list[int]:
    """The cases of a full grid of parameters that lie on its diagonal: each value of each parameter occurs.

    The diagonal begins again at a parameter's first value after its last. With 4 kinds and 17 settings, each setting
    is tried with one kind, and each kind with 4 or 5 settings. Cases that are no full grid, such as those named on a
    command line, are all tried.
    """
    values: dict[str, list[str]] = {}  # of each parameter, in the order of the cases
    for case in cases:
        for name, value in case.items():
            if repr(value) not in values.setdefault(name, []):
                values[name].append(repr(value))
    if len(cases) != prod(len(v) for v in values.values()):
        return list(range(len(cases)))
    longest = max(len(v) for v in values.values())
    wanted = [{name: v[i % len(v)] for name, v in values.items()} for i in range(longest)]
    return [i for i, case in enumerate(cases) if {name: repr(value) for name, value in case.items()} in wanted]


def thin(test: Callable[..., Any] | None) -> None:
    """As many examples of a Hypothesis test, for which settings have no public name once a test is made."""
    own: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and not hasattr(test, "is_thin"):
        test._hypothesis_internal_use_settings = settings(own, max_examples=thinned(own.max_examples))  # type: ignore[attr-defined]
        test.is_thin = True  # type: ignore[attr-defined]
