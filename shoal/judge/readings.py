"""The judge's own readings: a file for each model and each way to publish, found by its name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shoal.errors import PolicyError


def reading(name: str, what: str) -> Any:
    """The function ``found`` of a module of the judge's; PolicyError, which says what is read, where there is none."""
    try:
        return import_module(name).found
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise PolicyError(
            f"the judge has no reading of its own of {what}, and what it cannot judge is not published; put one into "
            f"{name}"
        ) from None
