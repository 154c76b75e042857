"""A flag for every privacy model that the registry gives a shorthand, on every command that takes models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import typer

from shoal.model.shorthands import SHORTHANDS


def with_models(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for each shorthand that it lacks; it receives those given as ``**models``, ready for
    a Policy."""
    hints = get_type_hints(command, include_extras=True)
    plain = [
        p.replace(annotation=hints[p.name])
        for p in inspect.signature(command).parameters.values()
        if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    place = next((i for i, p in enumerate(plain) if p.name in ("preset", "threshold")), len(plain))
    names = [name for name in SHORTHANDS if name not in {p.name for p in plain}]
    added = [_parameter(name) for name in names]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        models = {name: _read(name, given.pop(name)) for name in names}
        command(**given, **{name: value for name, value in models.items() if value is not None})

    run.__signature__ = inspect.Signature([*plain[:place], *added, *plain[place:]])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*plain, *added]}
    return run


def _parameter(name: str) -> inspect.Parameter:
    shorthand = SHORTHANDS[name]
    kind = shorthand.kinds[0] if len(shorthand.kinds) == 1 else str
    option = typer.Option(None, f"--{name.replace('_', '-')}", help=shorthand.help)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=option, annotation=kind | None)


def _read(name: str, given: Any) -> Any:
    """The value of a flag: a number, or several from text with commas."""
    from shoal.errors import PolicyError

    kinds = SHORTHANDS[name].kinds
    if given is None or len(kinds) == 1:
        return given
    parts = given.split(",")
    try:
        if len(parts) != len(kinds):
            raise ValueError
        return tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
    except ValueError:
        flag = f"--{name.replace('_', '-')}"
        raise PolicyError(f"{flag} {given!r}: give two numbers separated by a comma") from None
