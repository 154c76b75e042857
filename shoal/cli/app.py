"""The commands, one module each; a module imports nothing heavy until its command runs."""

from __future__ import annotations

import typer

from shoal.cli.examples import FIRST
from shoal.version import __version__

app = typer.Typer(
    name="shoal",
    help="Publish tables about people so that each person is one of many, and prove what it cost.",
    no_args_is_help=True,
    epilog=FIRST,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
