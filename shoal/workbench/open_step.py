"""The workbench's steps Open and Roles: the user selects a table, and gives each column its role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.workbench.projects import ROLES, existing, visible

PAGE = 20
KINDS = (
    ".csv,.tsv,.txt,.gz,.parquet,.pq,.xlsx,.xls,.xlsb,.sav,.zsav,.por,.dta,.sas7bdat,.xpt,.duckdb,.db,.sqlite,.sqlite3,"
    ".deid"
)


def draw(window: Any) -> None:
    """Draw the panel."""
    task = window.task
    ui.html("<h2>Open a table</h2>", sanitize=False)
    note("It stays on this machine: the page is served from here, and nothing is sent elsewhere.")
    with ui.row().classes("wb-wide").style("align-items: stretch; gap: 1rem"):
        _choose(window)
        _path(window)
        with ui.card().classes("wb-card").style("flex: 1 1 14rem; width: auto"):
            ui.html("<h3>A sample</h3>", sanitize=False)
            note("Fair's survey of 1974: 6,366 women, nine answers each.")
            ui.button("Open the sample", on_click=window.open_demo).props("no-caps outline")
    _reading(window)
    reads = ui.label().props("role=status").classes("wb-note")
    window.reads = lambda runs: None if reads.is_deleted else reads.set_text("reading the table" if runs else "")
    if not task.source:
        return
    same = ui.switch("Ask the same of the next table that is opened (next month's)", value=window.keep)
    same.on_value_change(lambda e: setattr(window, "keep", e.value))
    ui.html("<h2>First rows</h2>", sanitize=False)
    note(f"{task.title}: {counted(task.rows, 'row')}, {counted(len(task.columns), 'column')}")
    for said in task.notes:
        ui.label(said).classes("wb-warn")
    _rows(window)
    _columns(task)
    ui.button("Next: roles", on_click=lambda: window.go("Roles")).props("no-caps")


# the file is uploaded to this machine's server in the background; the page receives the name under which it is stored
SEND = """async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  emit({sent: false});
  const headers = {"X-File-Name": encodeURIComponent(file.name)};
  const answer = await fetch("/w/%s/upload", {method: "POST", body: file, headers: headers}).catch(() => null);
  event.target.value = "";
  emit({sent: true, name: answer && answer.ok ? await answer.text() : null});
}"""


async def _open(window: Any, place: Path, reading: dict[str, Any]) -> None:
    """Fields to open a project of ARX, or a table."""
    if place.suffix.lower() == ".deid":
        await window.open_arx(place)
    else:
        await window.open({"path": str(place), **reading})


def chooser(window: Any, label: str, kinds: str, then: Callable[[Path], Awaitable[None]]) -> None:
    """A field in which a file is chosen or dropped.

    kinds  endings of the files that it offers
    then   receives the copy in the private folder
    """

    async def came(event: Any) -> None:
        message = event.args if isinstance(event.args, dict) else {}
        doing.set_text("" if message.get("sent") else "copying the file into a private folder")
        if message.get("sent") and not message.get("name"):
            window.say("The file could not be copied.", bad=True)
        elif message.get("sent"):
            await then(window.task.folder / "upload" / message["name"])

    picked = ui.element("input").classes("wb-file")
    picked.props(f'type=file accept="{kinds}" aria-label="{label}"')
    picked.on("change", came, js_handler=SEND % window.task.name)
    doing = ui.label().props("role=status").classes("wb-note")


def _choose(window: Any) -> None:
    async def opens(place: Path) -> None:
        await _open(window, place, window.reading())
        if window.task.source.get("path") != str(place):  # it was refused, or is no table
            window.task.drop(str(place))

    with ui.card().classes("wb-card").style("flex: 1 1 18rem; width: auto"):
        ui.html("<h3>Choose a file, or drop it here</h3>", sanitize=False)
        note("CSV, Parquet, Excel, SPSS, Stata, SAS, DuckDB or SQLite; then, for its roles and models, an ARX project")
        chooser(window, "Choose a file, or drop it here", KINDS, opens)


def _path(window: Any) -> None:
    with ui.card().classes("wb-card").style("flex: 1 1 18rem; width: auto"):
        ui.html("<h3>Or give its path</h3>", sanitize=False)
        path = ui.input("Path of a table, or of a project's folder").classes("wb-wide")

        async def named() -> None:
            place = existing(path.value or "")
            if place is None:
                window.say("There is no file or folder of that name.", bad=True)
            elif (place / "project.toml").is_file():
                await window.open_project(place, window.reading().get("query", ""))
            else:
                await _open(window, place, window.reading())

        ui.button("Open", on_click=named).props("no-caps")
        path.on("keydown.enter", named)


def _reading(window: Any) -> None:
    """Settings for reading the next table, whether its file is chosen, dropped, or named by its path."""
    with ui.expansion("How it is read: separator and encoding, or table, layer, or query").classes("wb-wide"):
        note("Only if it cannot be found out, or a file holds several tables. Fill in before you open it.")
        separator = ui.input("Separator of a CSV (empty: found out)").classes("wb-wide")
        known = {"": "found out", "utf-8": "utf-8", "windows-1252": "windows-1252 (Excel on Windows)",
                 "latin-1": "latin-1"}  # fmt: skip
        encoding = ui.select(known, value="", label="Encoding").classes("wb-wide")
        table = ui.input("Table of a database (DuckDB, SQLite), sheet of Excel, or layer of a map").classes("wb-wide")
        query = ui.input("Or a query: SELECT ...").classes("wb-wide")
    given = {"separator": separator, "encoding": encoding, "table": table, "query": query}
    window.reading = lambda: {n: f.value for n, f in given.items() if f.value}


def _rows(window: Any) -> None:
    """Rows of the table; the browser has one page of them at a time."""
    task = window.task
    columns = [{"name": "_row", "label": "row", "field": "_row", "align": "right"}]
    columns += [
        {"name": f"c{i}", "label": c["name"], "field": f"c{i}", "align": "left"} for i, c in enumerate(task.columns)
    ]
    shown = {"rowsPerPage": PAGE, "rowsNumber": task.rows, "page": 1}
    with scrolling("Rows of the table"):
        table = ui.table(columns=columns, rows=[], row_key="_row", pagination=shown)
    table.classes("wb-wide").props('dense flat bordered :rows-per-page-options="[20, 50, 100]"')

    async def fill(asked: dict[str, Any]) -> None:
        size = int(asked.get("rowsPerPage") or PAGE)
        page = int(asked.get("page") or 1)
        rows = await window.ask("rows", source=task.source, offset=(page - 1) * size, limit=size)
        if rows is not None:
            table.rows = rows
            table.pagination = {"rowsPerPage": size, "rowsNumber": task.rows, "page": page}
            table.update()

    table.on("request", lambda e: fill(e.args["pagination"]))
    ui.timer(0.01, lambda: fill({"page": 1, "rowsPerPage": PAGE}), once=True)


def _columns(task: Any) -> None:
    columns = [
        {"name": n, "label": label, "field": n, "align": "left" if n in ("name", "kind") else "right", "sortable": True}
        for n, label in (("name", "column"), ("kind", "kind"), ("distinct", "different values"), ("missing", "missing"))
    ]
    with scrolling("Columns of the table"):
        table = ui.table(columns=columns, rows=task.columns, row_key="name", title="Columns", pagination=20)
    table.classes("wb-wide").props("dense flat bordered")


def note(text: str = "") -> Any:
    """A line that explains the element next to it."""
    return ui.label(text).classes("wb-note")


def counted(number: int, word: str) -> str:
    """A number with its word: 1 row, 2 rows."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def scrolling(name: str) -> Any:
    """A container for a table that may be wider than the window: it scrolls, also by the keyboard."""
    return ui.element("div").classes("wb-scroll").props(f'tabindex=0 role=region aria-label="{name}"')


def copied_out(text: str, language: str, name: str) -> None:
    """Text to copy. The button and the scrolling part have names for screen readers."""
    shown = ui.code(text, language=language).classes("wb-wide")
    shown.copy_button.props(f'aria-label="Copy: {name}"')
    shown.markdown.props(f'tabindex=0 role=region aria-label="{name}"')


def draw_roles(window: Any) -> None:
    """Draw the panel of the step Roles: the role of each column, and the columns that single people out."""
    task = window.task
    ui.html("<h2>What is each column for?</h2>", sanitize=False)
    if not task.source:
        ui.label("Open a table first.")
        return
    with ui.element("div"):
        for word, meaning in ROLES.values():
            ui.html(f"<span><b>{word}</b>: {meaning}.</span>", sanitize=False).classes("wb-note")
    live = _Live(window)
    for column in task.columns:
        _role(window, column, live)
    for what, words in COUNTED.items():
        _counted(window, what, words)
    ui.html("<h3>Who is singled out now</h3>", sanitize=False)
    live.draw()
    ui.button("Next: models", on_click=lambda: window.go("Models")).props("no-caps")


COUNTED = {
    "person": "If a person can have several rows, choose the column that tells whose row it is. The models then count "
    "persons, and the column is removed.",
    "household": "If a household can have several rows, choose the column that tells which one. The models then count "
    "households, and the column is removed.",
}


def _counted(window: Any, what: str, words: str) -> None:
    """Choose the column whose different values are counted instead of rows."""
    task = window.task

    def chosen(event: Any) -> None:
        task.count_by(what, event.value or None)
        window.changed("Roles", "Models", "Hierarchies", "Explore", "Release", "Intruder")

    columns = {"": "none", **{c["name"]: c["name"] for c in task.columns}}
    note(words)
    select = ui.select(columns, value=task.settings.get(what, ""), label=f"Column of the {what}", on_change=chosen)
    select.style("min-width: 16rem")


def _role(window: Any, column: dict[str, Any], live: _Live) -> None:
    task, name = window.task, column["name"]

    async def chosen(event: Any) -> None:
        task.give_role(name, event.value)
        window.changed("Models", "Hierarchies", "Explore", "Release", "Intruder")
        await live.ask()

    with ui.element("div").classes("wb-roles").props(f'role=group aria-label="{plain(name)}"'):
        with ui.column().style("gap: .1rem; min-width: 0"):
            ui.label(visible(name)).style("font-weight: 600; overflow-wrap: anywhere")
            missing = f", {column['missing']:,} missing" if column["missing"] else ""
            note(f"{column['kind']}, {counted(column['distinct'], 'different value')}{missing}")
            note(f"Proposed: {column['role']}, because {column['reason']}")
            for warning in column["warnings"]:
                ui.label(warning).classes("wb-warn")
        choice = ui.toggle({r: word for r, (word, _) in ROLES.items()}, value=task.role(name), on_change=chosen)
        choice.props("no-caps dense unelevated")


def plain(text: str) -> str:
    """A column's name, safe as an HTML attribute."""
    return "".join(c if c.isalnum() or c in " _-." else " " for c in text)


class _Live:
    """What the quasi-identifiers single out, recomputed after every change; outdated answers are ignored."""

    def __init__(self, window: Any) -> None:
        self.window, self.number = window, 0
        self.whole: Any = None
        self.parts: Any = None

    def draw(self) -> None:
        self.whole = ui.label("...").props("role=status")
        self.parts = ui.column().style("gap: .1rem")
        ui.timer(0.01, self.ask, once=True)

    async def ask(self) -> None:
        self.number += 1
        mine, task = self.number, self.window.task
        quasi = task.named("quasi_identifiers")
        if not quasi:
            self.whole.set_text("No quasi-identifier: nobody can be found by what others know.")
            self.parts.clear()
            return
        found = await self.window.ask("singled", source=task.source, columns=quasi)
        if found is None or mine != self.number:
            return
        self.whole.set_text(
            _singled(found, f"The {len(quasi)} quasi-identifiers together" if len(quasi) > 1 else quasi[0])
        )
        await asyncio.sleep(0.2)  # if another click follows soon, the pairs aren't needed
        if mine != self.number:
            return
        parts = await self.window.ask("pairs", source=task.source, columns=quasi)
        if parts is None or mine != self.number:
            return
        self.parts.clear()
        with self.parts:
            for part in parts:
                text = _singled({**part, "rows": task.rows}, " + ".join(part["columns"]))
                note(text)


def _singled(found: dict[str, Any], who: str) -> str:
    share = 100 * found["alone"] / max(found["rows"], 1)
    least = f"{found['smallest']:,} row{'s' * (found['smallest'] != 1)}"
    return (
        f"{who}: {found['combinations']:,} combinations; {found['alone']:,} of {found['rows']:,} rows ({share:.1f} %) "
        f"are unique; the smallest equivalence class has {least}."
    )
