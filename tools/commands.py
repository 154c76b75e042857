"""Writes docs/commands.md, the help of every command, docs/settings.md, a row for every setting of a policy, and
docs/json.md, what the schema of --json says.

python tools/commands.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "shoal" / "cli" / "answers.schema.json"
HEAD = """# Commands

This page has the help of every command, as `shoal COMMAND --help` prints it. `tools/commands.py` writes the page.
Exit statuses: 0 done, 1 a check failed, 2 bad usage or input, 3 no answer exists, 4 an output exists already. With
`--json`, a command prints [one JSON object](json.md) with all figures, or the reason why there is no answer.

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


JSON_HEAD = """# JSON on standard output and in the log

`tools/commands.py` writes this page.

With `--json`, a command prints one JSON object on standard output, and nothing else there. Messages for people go to
standard error. Its JSON Schema is a file of the package:

```python
from importlib.resources import files

schema = files("shoal.cli").joinpath("answers.schema.json").read_text()
```

The object contains figures of the original, as the record does. Keep it private.

`schema` is the version of the schema, now 1. Within a version, keys are only added. If a key goes or changes its
meaning, the version changes.

If a command fails before it has an answer, the object contains the key `error`:

```json
{"schema": 1, "shoal": "0.1.0", "command": "anonymize", "status": 2,
 "error": {"kind": "PolicyError", "message": "'zpi' is not a column; did you mean 'zip'?",
           "marked": "'zpi' is not a column; did you mean 'zip'?", "setting": null, "column": "zpi",
           "exit_status": 2}}
```

A check that fails is an answer: `verify` prints its findings with `"status": 1`.

## Progress as JSON

With `--log-json`, progress and messages are lines of JSON on standard error. No line contains a row of the table.

```json
{"time": "2026-03-01T03:15:07.214+00:00", "level": "progress", "command": "anonymize", "step": "cascade",
 "share": 0.42, "seconds": 7.2, "message": "cascade, 42% done, about 9 s left in this step"}
```

| key | contents |
|---|---|
| `time` | the moment in UTC |
| `level` | `progress`, `info`, `warning`, or `error` |
| `command` | the command |
| `step` | what is being done; `done` in the last line; null in a message |
| `share` | the share of the step that is done, from 0 to 1, where that is known |
| `seconds` | seconds since the command began |
| `message` | the same for people |
"""


def json_page(schema: dict[str, Any]) -> str:
    """The page of what ``--json`` prints."""
    shared = schema["$defs"]
    named = {"proof": "certificate", "release": "Releases", "answer": "Answers to problems", "files": "Files"}
    parts = [JSON_HEAD, "## Every object\n", *_keys(schema), "## An error\n", *_keys(shared["error"])]
    for name in ("files", "release", "answer", "proof", "guarantee"):
        parts += [f"## {named.get(name, name).capitalize()}\n", *_keys(shared[name])]
    for branch in schema["else"]["allOf"]:
        command = branch["if"]["properties"]["command"]["const"]
        own = shared[branch["then"]["$ref"].rpartition("/")[2]]
        parts += [f"## shoal {command}\n", *_inside(own, shared), *_keys(own)]
    return "\n".join(parts)


def _inside(own: dict[str, Any], shared: dict[str, Any]) -> Iterator[str]:
    """What else an object has: keys of one that has a section, or the keys themselves."""
    for part in own.get("allOf", ()):
        name = part["$ref"].rpartition("/")[2]
        if name in ("files", "release", "answer"):
            words = {"files": "[files](#files)", "release": "[a release](#releases)"}
            yield f"The keys of {words.get(name, '[an answer to a problem](#answers-to-problems)')}.\n"
        else:
            yield from _inside(shared[name], shared)
            yield from _keys(shared[name])


def _keys(own: dict[str, Any]) -> list[str]:
    rows = own.get("properties", {})
    if not rows:
        return []
    needed = own.get("required", ())
    lines = [f"| `{n}` | {_kind(e)} | {'yes' if n in needed else ''} | {_cell(_said(e))} |" for n, e in rows.items()]
    return ["| key | type | always | contents |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"]


def _said(entry: dict[str, Any]) -> str:
    return str(entry.get("description", ""))


def _kind(entry: dict[str, Any]) -> str:
    kinds = entry.get("type", "object" if "$ref" in entry else "integer" if 0 in entry.get("enum", ()) else "string")
    kinds = "integer" if "const" in entry else kinds
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def schema() -> dict[str, Any]:
    """What the package says of ``--json``."""
    held: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return held


def page() -> str:
    """The whole page of commands."""
    from shoal.cli import program
    from shoal.cli.app import PAGES

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
    (ROOT / "docs" / "json.md").write_text(json_page(schema()), encoding="utf-8")
    (ROOT / "docs" / "settings.md").write_text(settings(), encoding="utf-8")
