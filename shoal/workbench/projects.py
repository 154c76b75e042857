"""A project: a folder with the request as TOML and its hierarchies, never the data; opened again where it was left."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import shoal
from shoal.workbench.repeat import toml
from shoal.workbench.task import Task

READING = ("separator", "encoding", "table", "query")


def write_text(place: Path, text: str) -> None:
    """A file of this user alone, under its name only when it is whole."""
    part = place.with_name(f".{place.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    part.replace(place)


def with_hierarchies(settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings with every hierarchy's file copied into ``folder/hierarchies`` and named relative to ``folder``."""
    named: dict[str, Any] = {}
    for number, (column, source) in enumerate(settings.get("hierarchies", {}).items(), 1):
        if not Path(source).is_file():
            named[column] = source
            continue
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in column).strip("-") or "column"
        place = folder / "hierarchies" / f"{number}-{plain}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (place.exists() and place.samefile(source)):
            shutil.copyfile(source, place)
            place.chmod(0o600)
        named[column] = f"hierarchies/{place.name}"
    return {**settings, **({"hierarchies": named} if named else {})}


def save_project(task: Task, folder: Path, step: str) -> Path:
    """Write the project of a task; files of an earlier save are replaced, all others in the folder are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    request = with_hierarchies(task.settings, folder)
    write_text(folder / "policy.toml", toml(request, "What is asked of the release; shoal anonymize reads it."))
    where = {"table": task.source["path"], "step": step, "project": 1}
    where |= {f"reading_{n}": task.source[n] for n in READING if task.source.get(n)}
    write_text(
        folder / "project.toml", toml(where, "A project of shoal workbench; the table itself stays where it is.")
    )
    task.project = folder
    return folder


def read_project(folder: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """(source, settings, step) of a saved project; InputError where it is none, or its table is gone."""
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
    return source, {**settings, **({"hierarchies": paths} if paths else {})}, str(where.get("step", "Open"))
