"""The options of a command that its arguments stand for: fields of tuples that commands share, and a flag for every
privacy model to which the registry gives a shorthand."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import typer

from shoal.model.shorthands import SHORTHANDS


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for each field of the tuples it takes and, where it takes ``**models``, one for each
    shorthand that it lacks; it receives tuples, and the models given ready for a Policy."""
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    tuples = {p.name: hints[p.name] for p in parameters if hasattr(hints[p.name], "_fields")}
    plain: list[inspect.Parameter] = []
    for p in parameters:
        if p.name in tuples:
            plain += _fields(tuples[p.name])
        elif p.kind is not inspect.Parameter.VAR_KEYWORD:
            plain.append(p.replace(annotation=hints[p.name]))
    place = next((i for i, p in enumerate(plain) if p.name in ("preset", "threshold")), len(plain))
    own = {p.name for p in plain}
    takes = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    names = [name for name in SHORTHANDS if takes and name not in own]
    added = [_parameter(name) for name in names]

    signature = inspect.Signature([*plain[:place], *added, *plain[place:]])

    @functools.wraps(command)
    def run(*values: Any, **named: Any) -> None:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        models = {name: _read(name, given.pop(name)) for name in names}
        for name, kind in tuples.items():
            given[name] = kind(**{field: given.pop(field) for field in kind._fields})
        command(**given, **{name: value for name, value in models.items() if value is not None})

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*plain, *added]}
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    """The fields of a tuple as arguments."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=kind._field_defaults[name], annotation=annotation
        )
        for name, annotation in get_type_hints(kind, include_extras=True).items()
    ]


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
        said = ", then ".join({int: "a whole number", float: "a number"}[kind] for kind in kinds)
        raise PolicyError(f"{flag} {given!r}: give two numbers separated by a comma, {said}") from None
