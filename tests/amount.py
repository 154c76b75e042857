"""How much the suite tries: a third of what ``python tools/whole_suite.py`` tries, which sets SHOAL_TEST_ALL."""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings

ALL = os.environ.get("SHOAL_TEST_ALL") == "1"
LEAST = 12


def thinned(cases: int) -> int:
    """How many of the cases that are drawn are tried."""
    return cases if ALL else max(cases // 3, min(cases, LEAST))


def thin(test: Callable[..., Any] | None) -> None:
    """As many examples of a Hypothesis test, for which settings have no public name once a test is made."""
    own: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and not hasattr(test, "is_thin"):
        test._hypothesis_internal_use_settings = settings(own, max_examples=thinned(own.max_examples))  # type: ignore[attr-defined]
        test.is_thin = True  # type: ignore[attr-defined]
