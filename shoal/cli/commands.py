"""All commands: each module puts its own on ``app`` when imported."""

from __future__ import annotations

import functools
from typing import Any

from shoal.cli import anonymize, apply, audit, explore, gather, labels, regions, tiles, verify
from shoal.cli.app import app, dress

dress(app)


@functools.cache
def program() -> Any:
    """The whole command line as the parser has it."""
    import typer
    from typer.utils import get_params_from_function

    built: Any = typer.main.get_command(app)
    for given in app.registered_commands:
        declared = get_params_from_function(given.callback)  # type: ignore[arg-type]
        name = given.name or given.callback.__name__  # type: ignore[union-attr]
        for parameter in built.commands[name].params:
            if parameter.param_type_name == "argument":  # some versions of the parser lose the help of arguments
                parameter.help = declared[parameter.name].default.help
    return built


__all__ = [
    "anonymize",
    "apply",
    "audit",
    "explore",
    "gather",
    "labels",
    "program",
    "regions",
    "tiles",
    "verify",
]
