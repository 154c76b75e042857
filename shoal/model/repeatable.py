"""How an answer was made, on record with it: who asks the same once more gets the same."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from shoal.model.effort import Effort

P = ParamSpec("P")
R = TypeVar("R")
HOW = ("method", "effort", "seed", "order", "rule", "improve")  # besides the question itself


def drawn() -> int:
    """A seed for who gave none: the search is as random as before, and its seed can be put on record."""
    return secrets.randbelow(2**32)


def recorded(call: Callable[P, R]) -> Callable[P, R]:
    """The same function; its answer's certificate says in ``details["run"]`` with which method, effort and seed."""
    asked = signature(call)
    names = [name for name in HOW if name in asked.parameters]

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = asked.bind(*args, **kwargs)
        except TypeError as wrong:  # as Python says it of a function that it calls itself
            raise TypeError(f"{call.__name__}() {wrong}") from None
        given.apply_defaults()
        if "seed" in names and given.arguments["seed"] is None:
            given.arguments["seed"] = drawn()
        answer: Any = call(*given.args, **given.kwargs)
        how = {name: given.arguments[name] for name in names}
        if "effort" in how:
            how["effort"] = Effort.of(how["effort"]).told
        proof = answer.certificate
        return replace(answer, certificate=replace(proof, details={**proof.details, "run": how}))  # type: ignore[no-any-return]

    return run
