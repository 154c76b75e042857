"""Writes docs/commands.md, the help of every command, and docs/settings.md, a row for every setting of a policy.

python tools/commands.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HEAD = """# Commands

This page has the help of every command, as `shoal COMMAND --help` prints it. `tools/commands.py` writes the page.
Exit statuses: 0 done, 1 a check failed, 2 bad usage or input, 3 no answer exists, 4 an output exists already. With
`--json`, a command prints one JSON object with all figures; a refusal is `{"error": ..., "status": ...}`.

With `shoal --install-completion`, the Tab key completes commands and options in bash, zsh, fish, and PowerShell.
`shoal --show-completion` prints the script instead.
"""


SETTINGS = """# Settings

This page lists every setting of a policy. `tools/commands.py` writes it. A setting has the same name as a keyword of
`shoal.anonymize` and `shoal.Policy`, and as a key of a policy file. [Publish a table](tables.md) explains what the
settings do together, and [models](models.md) explains the privacy models.
"""
KINDS = {
    "names": "names of columns", "mapping": "column to value", "switch": "true or false", "whole": "whole number",
    "number": "number", "numbers": "two numbers", "text": "text", "file": "path", "models": "models",
}  # fmt: skip
VALUES = {float: "number", str: "text", int: "whole number"}


def settings() -> str:
    """The page of settings: a table for each section, from the entries that everything else is read from."""
    from shoal.model.settings import SETTINGS as ENTRIES
    from shoal.model.settings import SHORTHANDS, entry_of

    entries = [entry for name in (*ENTRIES, *SHORTHANDS) if (entry := entry_of(name)) is not None]
    parts = [SETTINGS]
    for section in ("Columns", "Request", "Release", "Search", "Files"):
        parts += [f"## {section}", "", "| setting | option | value | default | what it does |", "|---|---|---|---|---|"]
        parts += [_row(entry) for entry in entries if entry.section == section] + [""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _row(entry: Any) -> str:
    value = " or ".join(f"`{word}`" for word in entry.words) if entry.words else KINDS[entry.kind]
    if entry.kind == "mapping" and set(entry.values) <= set(VALUES):
        value = f"column to {' or '.join(sorted(VALUES[kind] for kind in entry.values))}"
    default = "none" if entry.default in (None, (), {}) else f"`{_toml(entry.default)}`"
    option = f"`{entry.option}`" if entry.option else "none"
    what = _cell(f"{entry.help} {entry.more}".strip().replace("*", "\\*"))
    return f"| `{entry.name}` | {option} | {value} | {default} | {what} |"


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def page() -> str:
    """The whole page of commands."""
    from shoal.cli.app import PAGES
    from shoal.cli.commands import program

    built = program()
    listed = [f"| [`{name}`](#shoal-{name}) | {about.short} |" for name, about in PAGES.items()]
    parts = [HEAD, "| command | what it does |\n|---|---|\n" + "\n".join(listed) + "\n"]
    return "\n".join([*parts, *(_command(name, built.commands[name], built) for name in PAGES)])


def _command(name: str, command: Any, built: Any) -> str:
    import typer

    from shoal.cli.app import PAGES, sections

    context = typer.Context(command, info_name=name, parent=typer.Context(built, **built.context_settings))
    lines = [f"## shoal {name}", "", " ".join(command.help.split()), "", "```", *PAGES[name].examples, "```", ""]
    for title, rows in sections(command, context).items():
        rows = [(option, text) for option, text in rows if option != "-h, --help"]
        if rows:
            lines += [f"| {title.lower()} | what it says |", "|---|---|"]
            lines += [f"| `{_cell(option)}` | {_cell(text)} |" for option, text in rows] + [""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    (ROOT / "docs" / "commands.md").write_text(page(), encoding="utf-8")
    (ROOT / "docs" / "settings.md").write_text(settings(), encoding="utf-8")
