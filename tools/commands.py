"""Writes docs/commands.md: the help of every command, from the program itself.

python tools/commands.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HEAD = """# Commands

What `shoal COMMAND --help` prints, on one page; `tools/commands.py` writes it. Exit status of each: 0 done, 1 a check
failed, 2 bad usage or input, 3 no answer exists, 4 an output exists already. `--json` prints one JSON object with all
figures; a refusal is `{"error": ..., "status": ...}` there.

`shoal --install-completion` makes the Tab key complete commands and options, in bash, zsh, fish and PowerShell;
`shoal --show-completion` prints the script instead.
"""


def page() -> str:
    """The whole page."""
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
