"""A project: a folder with the request as TOML and its hierarchies, never the data; opened again where it was left."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import shoal
from shoal.workbench.repeat import toml
from shoal.workbench.task import Task

READING = ("separator", "encoding", "table", "query")
LEFT_OUT = "the query names values of the table, so the project does not keep it; opening the project asks for it"


def names_values(query: str) -> bool:
    """Whether anything in a query could be a value: a number, a text, or a name in quotes, which may be one, too."""
    parts = re.findall(r"[^\W\d]\w*|\S", query)
    return any(part.isdigit() or part in "'\"$" or part.lower() in ("true", "false") for part in parts)


def write_text(place: Path, text: str) -> None:
    """A file of this user alone, under its name only when it is whole."""
    part = place.with_name(f".{place.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    part.replace(place)


def with_hierarchies(settings: Mapping[str, Any], folder: Path, room: str = "hierarchies") -> dict[str, Any]:
    """The settings with every hierarchy's file copied into ``folder/room`` and named relative to ``folder``."""
    named: dict[str, Any] = {}
    for number, (column, source) in enumerate(settings.get("hierarchies", {}).items(), 1):
        if not Path(source).is_file():
            named[column] = source
            continue
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in column).strip("-") or "column"
        place = folder / room / f"{number}-{plain}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (place.exists() and place.samefile(source)):
            shutil.copyfile(source, place)
            place.chmod(0o600)
        named[column] = f"{room}/{place.name}"
    return {**settings, **({"hierarchies": named} if named else {})}


def handed_over(made: Path, place: Path, kept: str) -> None:
    """Copy all that was made into a folder; each file gets its name there only when every one is whole.

    kept  a file that may stand there already and is then left alone;  FileExistsError for any other
    """
    wanted = [p.relative_to(made) for p in sorted(made.rglob("*")) if p.is_file()]
    wanted = [name for name in wanted if not (str(name) == kept and (place / name).exists())]
    for name in wanted:
        if (place / name).exists():
            raise FileExistsError(str(name))
    parts: list[tuple[Path, Path]] = []
    named: list[Path] = []
    try:
        for name in wanted:
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            parts.append((target.with_name(f".{target.name}.part"), target))
            shutil.copy(made / name, parts[-1][0])
        for part, target in parts:
            part.replace(target)
            named.append(target)
    except OSError:
        for target in named:
            target.unlink(missing_ok=True)
        raise
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)


def save_project(task: Task, folder: Path, step: str) -> str:
    """Write the project of a task, and say what it does not keep.

    Files of an earlier save are replaced, all others in the folder are left alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request = with_hierarchies(task.settings, folder)
    write_text(folder / "policy.toml", toml(request, "What is asked of the release; shoal anonymize reads it."))
    where = {"table": task.source["path"], "step": step, "project": 1}
    reading = {n: task.source[n] for n in READING if task.source.get(n)}
    if names_values(reading.get("query", "")):
        del reading["query"]
        where["query_left_out"] = True
    where |= {f"reading_{n}": value for n, value in reading.items()}
    write_text(
        folder / "project.toml", toml(where, "A project of shoal workbench; the table itself stays where it is.")
    )
    task.project = folder
    return LEFT_OUT if "query_left_out" in where else ""


def read_project(folder: Path, query: str = "") -> tuple[dict[str, Any], dict[str, Any], str]:
    """(source, settings, step) of a saved project; InputError where it is none, or its table is gone.

    query  what the project does not keep, where it had one that names values
    """
    try:
        where = tomllib.loads((folder / "project.toml").read_text("utf-8"))
        settings = tomllib.loads((folder / "policy.toml").read_text("utf-8"))
        table = str(where["table"])
    except FileNotFoundError:
        raise shoal.InputError(f"{folder.name!r} is no project: it lacks project.toml or policy.toml") from None
    except (KeyError, ValueError):
        raise shoal.InputError(f"{folder.name!r} holds a project that cannot be read") from None
    if not Path(table).exists():
        raise shoal.InputError(
            f"the table of the project, {Path(table).name!r}, is no longer where it was; open it first"
        )
    held = settings.get("hierarchies", {})
    paths = {n: str(folder / h) if str(h).startswith("hierarchies/") else h for n, h in held.items()}
    source = {"path": table, **{n: where[f"reading_{n}"] for n in READING if f"reading_{n}" in where}}
    if where.get("query_left_out"):
        if not query:
            raise shoal.InputError(f"{LEFT_OUT}: write it under 'Reading it', beside the project's folder")
        source["query"] = query
    return source, {**settings, **({"hierarchies": paths} if paths else {})}, str(where.get("step", "Open"))
