"""A project of the workbench: a folder with the request as TOML and its hierarchies, but never the data.

A ``WorkSession`` has a table's location, its columns, the request so far, the undo history, and releases; a ``Bench``
has all sessions. A project opens in the state in which it was saved. The request is also written as a policy in TOML, a
Python script, a notebook, and a command line. With the seed and the secret of the release, each reproduces the same
bytes.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pprint import pformat
from typing import Any

import shoal
from shoal.paths import named_after

ROLES = {
    "quasi_identifiers": ("Quasi-identifier", "others may know it about a person; recoded"),
    "sensitive": ("Sensitive", "no one may learn it about a person; published as it is, protected by groups"),
    "identifiers": ("Identifier", "names a person; removed"),
    "insensitive": ("Insensitive", "published as it is"),
}
PEOPLE = ("person", "household", "population_weights")
KNOWN_AGAIN = "Column by which a person is known again"
OTHER_PEOPLE = "They are other people, although rows or names look like those of an earlier month"


def in_fields(refusal: shoal.ShoalError) -> str:
    """A refusal in the words of the pages."""
    return worded(refusal.sentence)


def worded(sentence: Any) -> str:
    """A sentence in the words of the pages: a role by its label, other settings by the name of their field."""

    def field(named: Any) -> str:
        if named.name in ROLES:
            return f"the role {ROLES[named.name][0].lower()}"
        if named.name == "table" and named.value == "...":
            return "the field 'Table of a database' under 'How it is read'"
        if named.name == "other_people":
            return f"so with the switch '{OTHER_PEOPLE}'"
        if named.name == "person" and named.value == "COLUMN":
            return f"the field '{KNOWN_AGAIN}'"
        if named.name == "hierarchies" and named.value == "{column: ...}":
            return "a hierarchy (step Hierarchies)"
        value = "" if named.value is None or named.value in ("...", "[...]") else named.value.strip(chr(39))
        return named.text if named.column else f"{named.name}: {value}" if value else named.name

    return str(sentence.worded(field))


@dataclass
class WorkSession:
    """One session of work, in one window or in several with the same address.

    folder    private, for this session only; removed when the workbench ends
    source    {"path", "separator", "encoding", "table", "query"} of the table, and its "stamp" when it was opened;
              {} before one is opened
    columns   the description of every column
    rows      number of rows
    dangerous columns that single people out
    notes     what the reader of the file remarked
    settings  the request: keywords of ``shoal.Policy``, plain values only
    releases  the releases made, the newest last
    points    of the explored grid
    series    folder of the monthly releases
    months    the contents of this folder; None before it is examined
    placed    what the step Places showed last of the table's "points" and of "areas": its fields, and what was "found"
    running   labels of the buttons whose long work runs or waits, the one that runs first
    reported  what the running work does now, and the share of it that is done, None if that is unknown
    unsaid    messages, and whether each is a refusal, that no open window could show
    step      the step that was shown last: a page that is loaded again begins there
    """

    folder: Path
    name: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    source: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    dangerous: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    releases: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    project: Path | None = None
    series: str = ""
    months: dict[str, Any] | None = None
    placed: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    reported: tuple[str, float | None] = ("", None)
    unsaid: list[tuple[str, bool]] = field(default_factory=list)
    step: str = "Open"
    _undone: list[dict[str, Any]] = field(default_factory=list)
    _done: list[dict[str, Any]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The table's file name."""
        return Path(self.source["path"]).name if self.source else ""

    @property
    def table(self) -> str:
        """The table as a command names it; the location of an uploaded table is hidden from the user."""
        return self.title if self.uploaded else self.source["path"]

    @property
    def uploaded(self) -> bool:
        """Whether the table is a copy in the private folder, which goes when the workbench ends."""
        return self.folder in Path(self.source["path"]).parents

    def drop(self, path: str) -> None:
        """Delete a copy in the private folder that is no longer needed; other files stay."""
        own = Path(path).parent
        if own.parent == self.folder / "upload":
            shutil.rmtree(own, ignore_errors=True)

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the table, as far as specified."""
        return {n: self.source[n] for n in READING if self.source.get(n)}

    def opened(self, source: dict[str, Any], found: dict[str, Any]) -> None:
        """Set an examined table, with the proposed roles and models."""
        self.source, self.rows = {**source, "stamp": found["stamp"]}, found["rows"]
        self.columns, self.dangerous, self.why = found["columns"], found["dangerous"], found["why"]
        self.notes = found["notes"]
        self.settings = {**found["settings"], "effort": "balanced", "seed": 0}
        self._done, self._undone, self.releases, self.points = [], [], [], []
        self.placed.pop("points", None)

    def role(self, column: str) -> str:
        """The current role of a column: a keyword of ``Policy``."""
        if any(self.settings.get(what) == column for what in PEOPLE):
            return "identifiers"
        return next((r for r in ROLES if column in self.settings.get(r, ())), "insensitive")

    def named(self, role: str) -> list[str]:
        """The columns with a role, in the table's order."""
        return [c["name"] for c in self.columns if self.role(c["name"]) == role]

    def change(self, **values: Any) -> None:
        """Set settings, or remove them by None; the previous state can be restored by undo."""
        self._done.append(copy.deepcopy(self.settings))
        self._undone.clear()
        for name, value in values.items():
            if value is None or (value in ({}, []) and name not in ROLES):
                self.settings.pop(name, None)
            else:
                self.settings[name] = value

    def give_role(self, column: str, role: str) -> None:
        """Give a column one role; settings that belong to its former role are removed."""
        self.change(**self._with_role(column, role))

    def count_by(self, what: str, column: str | None) -> None:
        """Let the models count the different values of a column, which is removed, instead of rows; None ends this.

        what  "person" or "household"; the column that it named so far stays an identifier
        """
        before = self.settings.get(what)
        values = self._with_role(column, "identifiers") if column else {}
        kept = {*values.get("identifiers", self.settings.get("identifiers", ())), *([before] if before else [])}
        self.change(**{**values, "identifiers": self._ordered(kept - {column}), what: column})

    def _with_role(self, column: str, role: str) -> dict[str, Any]:
        """What changes in the settings when a column gets a role."""
        values: dict[str, Any] = {
            r: [n for n in self._ordered({*self.settings.get(r, ()), *([column] if r == role else [])})
                if n != column or r == role]
            for r in ROLES
        }  # fmt: skip
        values |= {what: None for what in PEOPLE if self.settings.get(what) == column}
        read = role in ("quasi_identifiers", "sensitive")  # in the column's notation
        for by_column in ("hierarchies", "weights", "max_level", "range_step", "top", "bottom", "dates", "decimal"):
            held = self.settings.get(by_column)
            kept = read if by_column in ("dates", "decimal") else role == "quasi_identifiers"
            if held and column in held and not kept:
                values[by_column] = {n: v for n, v in held.items() if n != column}
        noted: dict[str, str] = next((c.get("notation", {}) for c in self.columns if c["name"] == column), {})
        for setting, notation in noted.items() if read else ():
            values[setting] = {**self.settings.get(setting, {}), column: notation}
        if role != "sensitive" and not values["sensitive"]:  # settings about sensitive columns need one
            known = shoal.choices()["models"]
            values |= {m: None for m in known if m in self.settings and known[m]["applies_to"] in ("column", "tuples")}
        return values

    def _ordered(self, names: set[str]) -> list[str]:
        return [c["name"] for c in self.columns if c["name"] in names]

    def undo(self) -> bool:
        """Undo one change; False if there is none."""
        if not self._done:
            return False
        self._undone.append(self.settings)
        self.settings = self._done.pop()
        return True

    def redo(self) -> bool:
        """Redo one change; False if there is none."""
        if not self._undone:
            return False
        self._done.append(self.settings)
        self.settings = self._undone.pop()
        return True

    @property
    def can_undo(self) -> bool:
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        return bool(self._undone)

    def asked(self) -> dict[str, Any]:
        """The request as ``Policy`` takes it, without hierarchies that the way to publish can't use."""
        asked = dict(self.settings)
        if asked.get("publish") not in ("hierarchy", "centers"):
            kept = sensitive_trees(asked)
            asked.pop("hierarchies", None)
            if kept:
                asked["hierarchies"] = kept
        if asked.get("publish") != "ranges":
            asked.pop("range_step", None)
        return {n: v for n, v in asked.items() if v is not None}

    def sentence(self) -> str:
        """The request so far in one sentence."""
        if not self.source:
            return "No table is open yet."
        quasi, sensitive = self.named("quasi_identifiers"), self.named("sensitive")
        removed = self.named("identifiers")
        if not quasi:
            return f"{self.title}: {self.rows:,} rows. No column is a quasi-identifier yet: what may others know?"
        try:
            policy = shoal.Policy.of(self.asked())
        except shoal.ShoalError as error:
            return f"{self.title}: {in_fields(error)}."
        words = [f"{m.words()}{f' of {m.column}' if m.column else ''}" for m in policy.privacy]
        models = "; ".join(w for w in words if not any(w != other and other.startswith(f"{w},") for other in words))
        way = shoal.choices()["publish"][policy.publish]
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        parts = [f"{self.title}, {rows}: {_listed(quasi)} published as {way}, so that {models}"]
        if sensitive:
            parts.append(f"{_listed(sensitive)} {'are' if len(sensitive) > 1 else 'is'} sensitive")
        counted = [f"{what}s by {self.settings[what]}" for what in ("person", "household") if self.settings.get(what)]
        if counted:
            parts.append(f"the models count {' and '.join(counted)}, not rows")
        if removed:
            parts.append(f"{_listed(removed)} {'leave' if len(removed) > 1 else 'leaves'} the table")
        return "; ".join(parts) + "."


def sensitive_trees(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The hierarchies of sensitive columns in a request."""
    return {n: h for n, h in settings.get("hierarchies", {}).items() if n in settings.get("sensitive", ())}


def unknown(settings: dict[str, Any], columns: list[str]) -> dict[str, str]:
    """The columns that a request names and a table lacks, each with the setting that names it."""
    named = {settings[what]: what for what in PEOPLE if settings.get(what)}
    named |= {name: role for role in ROLES for name in settings.get(role, ())}
    return {name: setting for name, setting in named.items() if name not in columns}


class Bench:
    """All sessions of one server, by name, and the folder of their files.

    folder  private to this user; removed when the server ends
    first   table or project with which the first window opens
    demo    the first window opens with the survey
    """

    def __init__(self, folder: Path, first: str | None = None, demo: bool = False) -> None:
        self.folder, self.first, self.demo = folder, first, demo
        self.tasks: dict[str, WorkSession] = {}

    def new(self) -> WorkSession:
        """A new session for a new window."""
        task = WorkSession(self.folder)
        task.folder = self.folder / task.name
        task.folder.mkdir(mode=0o700)
        self.tasks[task.name] = task
        return task


def visible(name: str) -> str:
    """A column's name; in quotes if it begins or ends with a blank, which nobody would see."""
    return name if name == name.strip() else repr(name)


def _listed(names: list[str]) -> str:
    """Names in a sentence: the first four, and how many more."""
    names = [visible(name) for name in names]
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def toml(settings: Mapping[str, Any], title: str = "") -> str:
    """A policy file: plain settings first, then tables such as [hierarchies]."""
    plain = {n: v for n, v in settings.items() if not isinstance(v, Mapping)}
    nested = {n: v for n, v in settings.items() if isinstance(v, Mapping) and v}
    lines = [f"# {title}"] if title else []
    lines += [f"{_key(n)} = {_value(v)}" for n, v in plain.items() if v is not None]
    for name, held in nested.items():
        lines += ["", f"[{_key(name)}]", *(f"{_key(n)} = {_value(v)}" for n, v in held.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if bare else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(n)} = {_value(v)}" for n, v in value.items()) + "}"
    return _text(str(value))


def script(table: str, settings: Mapping[str, Any], output: str, secret: str | None, reading: Mapping[str, Any]) -> str:
    """A Python script that makes the release, its certificate, and its report."""
    given = "\n".join(
        f"    {name}={pformat(value, width=100, sort_dicts=False).replace(chr(10), chr(10) + '    ')},"
        for name, value in {**settings, **reading}.items()
    )
    key = "" if secret is None else f"    secret=Path({secret!r}).read_bytes(),  # the same rows in the same order\n"
    path = "from pathlib import Path\n\n" if secret is not None else ""
    stem = Path(output).stem
    trees = sensitive_trees(settings)
    close = f", hierarchies={trees!r}" if trees else ""  # the certificate only names their files
    return (
        f"{path}import shoal\n\n"
        f"release = shoal.anonymize(\n    {table!r},\n{given}\n{key})\n"
        f"certificate = release.write({output!r})\n"
        f"release.report({str(Path(output).with_name(f'{stem}.report.html'))!r})\n"
        f"print(shoal.verify({output!r}, certificate{close}))\n"
    )


def notebook(code: str) -> str:
    """The same script as a Jupyter notebook (nbformat 4.5), a cell for each step."""
    made, _, after = code.partition("certificate = ")
    words = "The release is made, checked on the bytes written, and checked again against its certificate."
    cells = [_cell("n0", "markdown", "# A release made with shoal\n\n" + words), _cell("n1", "code", made.strip())]
    cells.append(_cell("n2", "code", ("certificate = " + after).strip()))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": name, "cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def command(table: str, policy: str, output: str, secret: str | None, reading: Mapping[str, Any]) -> str:
    """The command line that makes the same release from the policy file."""
    stem = Path(output).stem
    words = ["shoal", "anonymize", table, "--policy", policy, "-o", output]
    words += [] if secret is None else ["--secret", secret]
    words += ["--report", str(Path(output).with_name(f"{stem}.report.html"))]
    for name, value in reading.items():
        words += [f"--{name}", str(value)]
    return shlex.join(words)


def placing(table: str, x: str, y: str, way: str, k: int, degrees: bool, reading: Mapping[str, Any]) -> str:
    """The command line that publishes tiles or clusters as the page Places draws them."""
    stem = f"{named_after(Path(table))}.{way}"
    if way == "tiles":
        words = ["tiles", table, "--x", x, "--y", y, "--k", str(k)]
        # without this option, -o contains the exact places
        words += ["--coordinates", "geographic" if degrees else "projected", "--tiles"]
    else:
        words = ["gather", table, "--longitude", x, "--latitude", y, *([] if degrees else ["--plane"])]
        words += ["--r", str(k), "-o"]
    words += [f"{stem}.csv", "--map", f"{stem}.html"]
    for name, value in reading.items():
        words += [f"--{name}", str(value)]
    return shlex.join(["shoal", *words])


READING = ("separator", "encoding", "table", "query")
NOT_KEPT = "it does not keep the file that you chose: to continue, choose the file again, then open the project"
LEFT_OUT = "the query names values of the table, so the project does not keep it; opening the project asks for it"


def names_values(query: str) -> bool:
    """Whether a query may contain a value: a number, a text, or a quoted name, which can be a text too."""
    parts = re.findall(r"[^\W\d]\w*|\S", query)
    return any(part.isdigit() or part in "'\"$" or part.lower() in ("true", "false") for part in parts)


def new_file(place: Path) -> int:
    """Open a new file for this user alone, in place of any existing one, so that its previous owner has no access."""
    place.unlink(missing_ok=True)
    return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def write_text(place: Path, text: str) -> None:
    """Write a file that only this user can read; it gets its name when it is complete."""
    part = place.with_name(f".{place.name}.part")
    with open(new_file(part), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    part.replace(place)


def copied(source: Path, place: Path) -> None:
    """Copy a file so that only this user can read it from the start.

    With the source's mode, others could open it meanwhile.
    """
    with open(source, "rb") as held, open(new_file(place), "wb") as file:
        shutil.copyfileobj(held, file)


def with_hierarchies(settings: Mapping[str, Any], folder: Path, subfolder: str = "hierarchies") -> dict[str, Any]:
    """The settings with every hierarchy's file copied into ``folder/subfolder`` and named relative to ``folder``."""
    named: dict[str, Any] = {}
    for number, (column, source) in enumerate(settings.get("hierarchies", {}).items(), 1):
        if not Path(source).is_file():
            named[column] = source
            continue
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in column).strip("-") or "column"
        place = folder / subfolder / f"{number}-{plain}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (place.exists() and place.samefile(source)):
            copied(Path(source), place)
        named[column] = f"{subfolder}/{place.name}"
    return {**settings, **({"hierarchies": named} if named else {})}


def place_of(text: str) -> Path:
    """The absolute path that a user wrote; OSError if no file can have it."""
    try:
        return Path(text.strip()).expanduser().resolve()
    except (RuntimeError, ValueError):  # ~nobody, or a NUL
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT)) from None


def existing(text: str) -> Path | None:
    """The absolute path of an existing file or folder that a user wrote; None if there is none that can be read."""
    try:
        place = place_of(text)
        place.stat()
    except OSError:
        return None
    return place if text.strip() else None


def digests(files: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of every file, by its kind. O(bytes)."""
    found = {}
    for kind, place in files.items():
        with open(place, "rb") as file:
            found[kind] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def handed_over(made: Path, place: Path, kept: str) -> None:
    """Copy all files of a folder into another. Each gets its name there only when all are complete.

    kept  a file that may already exist there, and then stays unchanged; FileExistsError for any other
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
            copied(made / name, parts[-1][0])
            shutil.copymode(made / name, parts[-1][0])
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


def save_project(task: WorkSession, folder: Path, step: str) -> str:
    """Write the project of a task, and return a sentence about what isn't saved.

    Files of an earlier save are replaced. All other files in the folder stay unchanged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request = with_hierarchies(task.settings, folder)
    write_text(folder / "policy.toml", toml(request, "What is asked of the release; shoal anonymize reads it."))
    where = {"table": task.table, "step": step, "project": 1}
    reading = task.reading
    if names_values(reading.get("query", "")):
        del reading["query"]
        where["query_left_out"] = True
    where |= {f"reading_{n}": value for n, value in reading.items()}
    if task.series:
        where["series"] = task.series
    write_text(
        folder / "project.toml", toml(where, "A project of shoal workbench; the table itself stays where it is.")
    )
    task.project = folder
    missing = [LEFT_OUT] * ("query_left_out" in where) + [NOT_KEPT] * task.uploaded
    return "; ".join(missing)


def read_project(
    folder: Path, query: str = "", opened: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """(source, settings, {"step", "series"}) of a saved project; InputError if it is invalid or its table is missing.

    query   replaces the query that the project doesn't save because it names values
    opened  the source of the open table, which replaces a table that is missing
    """
    try:
        where = tomllib.loads((folder / "project.toml").read_text("utf-8"))
        settings = tomllib.loads((folder / "policy.toml").read_text("utf-8"))
        table = str(where["table"])
    except FileNotFoundError:
        raise shoal.InputError(f"{folder.name!r} is no project: it lacks project.toml or policy.toml") from None
    except (KeyError, ValueError):
        raise shoal.InputError(f"{folder.name!r} holds a project that cannot be read") from None
    found = Path(table).is_absolute() and Path(table).exists()  # an uploaded table has no path
    if not found and not opened:
        raise shoal.InputError(
            f"the table of the project, {Path(table).name!r}, is not where it was: open the table, then the project"
        )
    held = settings.get("hierarchies", {})
    paths = {n: str(folder / h) if str(h).startswith("hierarchies/") else h for n, h in held.items()}
    source = {"path": table, **{n: where[f"reading_{n}"] for n in READING if f"reading_{n}" in where}}
    if not found:
        source = {n: v for n, v in (opened or {}).items() if n != "stamp"}
    elif where.get("query_left_out"):
        if not query:
            raise shoal.InputError(f"{LEFT_OUT}: write it under 'How it is read', below the project's folder")
        source["query"] = query
    left = {"step": str(where.get("step", "Open")), "series": str(where.get("series", ""))}
    return source, {**settings, **({"hierarchies": paths} if paths else {})}, left
