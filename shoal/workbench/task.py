"""What a window works on: a table's place, its columns, the request so far, what was done before it, and releases."""

from __future__ import annotations

import copy
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shoal

ROLES = {
    "quasi_identifiers": ("Quasi-identifier", "others may know it about a person; recoded"),
    "sensitive": ("Sensitive", "no one may learn it about a person; published as it is, protected by groups"),
    "identifiers": ("Identifier", "names a person; removed"),
    "insensitive": ("Insensitive", "published as it is"),
}
PEOPLE = ("person", "household", "population_weights")


@dataclass
class Task:
    """One piece of work, in one window or several of the same address.

    folder    private, of this piece of work alone; goes when the workbench ends
    source    {"path", "separator", "encoding", "table", "query"} of the table; {} before one is opened
    columns   what is known of every column;  rows number of rows;  dangerous what singles people out
    settings  the request: keywords of ``shoal.Policy``, plain values only
    releases  what was made, the newest last
    """

    folder: Path
    name: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    source: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    dangerous: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    releases: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    project: Path | None = None
    _undone: list[dict[str, Any]] = field(default_factory=list)
    _done: list[dict[str, Any]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The table's file name."""
        return Path(self.source["path"]).name if self.source else ""

    def opened(self, source: dict[str, Any], found: dict[str, Any]) -> None:
        """Take a table that was looked at, with the roles and models proposed."""
        self.source, self.rows = dict(source), found["rows"]
        self.columns, self.dangerous, self.why = found["columns"], found["dangerous"], found["why"]
        self.settings = {**found["settings"], "effort": "balanced", "seed": 0}
        self._done, self._undone, self.releases, self.points = [], [], [], []

    def role(self, column: str) -> str:
        """The role a column has now: a keyword of ``Policy``."""
        if any(self.settings.get(what) == column for what in PEOPLE):
            return "identifiers"
        return next((r for r in ROLES if column in self.settings.get(r, ())), "insensitive")

    def named(self, role: str) -> list[str]:
        """The columns with a role, in the table's order."""
        return [c["name"] for c in self.columns if self.role(c["name"]) == role]

    def change(self, **values: Any) -> None:
        """Set or, by None, take out settings; what stood there before can come back."""
        self._done.append(copy.deepcopy(self.settings))
        self._undone.clear()
        for name, value in values.items():
            if value is None or (value in ({}, []) and name not in ROLES):
                self.settings.pop(name, None)
            else:
                self.settings[name] = value

    def give_role(self, column: str, role: str) -> None:
        """One role for one column; what a former role brought with it goes."""
        values: dict[str, Any] = {
            r: [n for n in self._ordered({*self.settings.get(r, ()), *([column] if r == role else [])})
                if n != column or r == role]
            for r in ROLES
        }  # fmt: skip
        values |= {what: None for what in PEOPLE if self.settings.get(what) == column}
        for by_column in ("hierarchies", "weights", "max_level", "range_step"):
            held = self.settings.get(by_column)
            if held and column in held and role != "quasi_identifiers":
                values[by_column] = {n: v for n, v in held.items() if n != column}
        if role != "sensitive" and not values["sensitive"]:  # what speaks of sensitive columns has none to speak of
            known = shoal.choices()["models"]
            values |= {m: None for m in known if m in self.settings and known[m]["speaks"] in ("column", "tuples")}
        self.change(**values)

    def _ordered(self, names: set[str]) -> list[str]:
        return [c["name"] for c in self.columns if c["name"] in names]

    def undo(self) -> bool:
        """Back by one change; False where there is none."""
        if not self._done:
            return False
        self._undone.append(self.settings)
        self.settings = self._done.pop()
        return True

    def redo(self) -> bool:
        """Forward again."""
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
        """The request as ``Policy`` takes it; hierarchies that the way to publish cannot use are left out."""
        asked = dict(self.settings)
        if asked.get("publish") not in ("hierarchy", "centers"):
            kept = {n: h for n, h in asked.get("hierarchies", {}).items() if n in asked.get("sensitive", ())}
            asked.pop("hierarchies", None)
            if kept:
                asked["hierarchies"] = kept
        if asked.get("publish") != "ranges":
            asked.pop("range_step", None)
        return {n: v for n, v in asked.items() if v is not None}

    def sentence(self) -> str:
        """What has been chosen so far, in one sentence."""
        if not self.source:
            return "No table is open yet."
        quasi, sensitive = self.named("quasi_identifiers"), self.named("sensitive")
        removed = self.named("identifiers")
        if not quasi:
            return f"{self.title}: {self.rows:,} rows. No column is a quasi-identifier yet: what may others know?"
        try:
            policy = shoal.Policy.of(self.asked())
        except shoal.ShoalError as error:
            return f"{self.title}: {error}."
        words = [f"{m.words()}{f' of {m.column}' if m.column else ''}" for m in policy.privacy]
        models = "; ".join(w for w in words if not any(w != other and other.startswith(f"{w},") for other in words))
        way = shoal.choices()["publish"][policy.publish]
        parts = [f"{self.title}, {self.rows:,} rows, as {way} of {_listed(quasi)}, so that {models}"]
        if sensitive:
            parts.append(f"{_listed(sensitive)} {'are' if len(sensitive) > 1 else 'is'} sensitive")
        if removed:
            parts.append(f"{_listed(removed)} {'leave' if len(removed) > 1 else 'leaves'} the table")
        return "; ".join(parts) + "."


def unknown(settings: dict[str, Any], columns: list[str]) -> list[str]:
    """The columns that a request names and a table does not have."""
    named = [name for role in ROLES for name in settings.get(role, ())]
    named += [settings[what] for what in PEOPLE if settings.get(what)]
    return [name for name in dict.fromkeys(named) if name not in columns]


class Bench:
    """All pieces of work of one server, by their names, and where their files lie.

    folder  private to this user; removed when the server ends
    first   table or project that the first window opens with; demo: it opens with the survey
    """

    def __init__(self, folder: Path, first: str | None = None, demo: bool = False) -> None:
        self.folder, self.first, self.demo = folder, first, demo
        self.tasks: dict[str, Task] = {}

    def new(self) -> Task:
        """A piece of work of its own for a new window."""
        task = Task(self.folder)
        task.folder = self.folder / task.name
        task.folder.mkdir(mode=0o700)
        self.tasks[task.name] = task
        return task


def _listed(names: list[str]) -> str:
    """Names in a sentence: the first four, and how many more."""
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
