"""The workbench's step Roles: what each column is for, as proposed or clicked, and which single people out."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import ui

from shoal.workbench.projects import ROLES


def draw(window: Any) -> None:
    """The panel."""
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
        _column(window, column, live)
    ui.html("<h3>Who is singled out now</h3>", sanitize=False)
    live.draw()
    ui.button("Next: models", on_click=lambda: window.go("Models")).props("no-caps")


def _column(window: Any, column: dict[str, Any], live: _Live) -> None:
    task, name = window.task, column["name"]

    async def chosen(event: Any) -> None:
        task.give_role(name, event.value)
        window.changed("Models", "Hierarchies", "Explore", "Release", "Intruder")
        await live.ask()

    with ui.element("div").classes("wb-roles").props(f'role=group aria-label="{_safe(name)}"'):
        with ui.column().style("gap: .1rem; min-width: 0"):
            ui.label(name).style("font-weight: 600; overflow-wrap: anywhere")
            missing = f", {column['missing']:,} missing" if column["missing"] else ""
            ui.label(f"{column['kind']}, {column['distinct']:,} different values{missing}").classes("wb-note")
            ui.label(f"Proposed: {column['role']}, because {column['reason']}").classes("wb-note")
            for warning in column["warnings"]:
                ui.label(warning).classes("wb-warn")
        choice = ui.toggle({r: word for r, (word, _) in ROLES.items()}, value=task.role(name), on_change=chosen)
        choice.props("no-caps dense unelevated")


def _safe(text: str) -> str:
    return "".join(c if c.isalnum() or c in " _-." else " " for c in text)


class _Live:
    """What the quasi-identifiers single out, asked after every change; late answers to older questions are dropped."""

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
            _words(found, f"The {len(quasi)} quasi-identifiers together" if len(quasi) > 1 else quasi[0])
        )
        await asyncio.sleep(0.2)  # a second click soon after needs no pairs
        if mine != self.number:
            return
        parts = await self.window.ask("pairs", source=task.source, columns=quasi)
        if parts is None or mine != self.number:
            return
        self.parts.clear()
        with self.parts:
            for part in parts:
                text = _words({**part, "rows": task.rows}, " + ".join(part["columns"]))
                ui.label(text).classes("wb-note")


def _words(found: dict[str, Any], who: str) -> str:
    share = 100 * found["alone"] / max(found["rows"], 1)
    return (
        f"{who}: {found['combinations']:,} combinations; {found['alone']:,} rows ({share:.1f} %) are the only ones of "
        f"theirs; the smallest equivalence class has {found['smallest']:,}."
    )
