"""Intruder: what someone learns from a release, beside what they learn without it."""

from __future__ import annotations

from typing import Any

from nicegui import ui


def draw(window: Any) -> None:
    """The panel."""
    task = window.task
    ui.html("<h2>What does an intruder reach?</h2>", sanitize=False)
    if not task.releases:
        ui.label("Make a release first.")
        return
    ui.label("Known attacks are run on the last release, and their guesses are checked against the table. The figures "
             "are of the table: keep them to yourself.").classes("wb-note")  # fmt: skip
    with ui.row():
        start = ui.button("Attack the release").props("no-caps")
        stop = ui.button("Stop", on_click=window.works.stop).props("no-caps outline color=negative")
    stop.disable()
    waiting = ui.spinner(size="lg")
    waiting.visible = False
    place = ui.column().classes("wb-wide")

    async def run() -> None:
        start.disable()
        stop.enable()
        waiting.visible = True
        try:
            found = await window.ask("attack", long=True, source=task.source, release=task.releases[-1]["output"])
        finally:
            start.enable()
            stop.disable()
            waiting.visible = False
        if found is not None:
            task.releases[-1]["attack"] = found
            _shown(place, found)

    start.on_click(run)
    if "attack" in task.releases[-1]:
        _shown(place, task.releases[-1]["attack"])


def _shown(place: Any, found: dict[str, Any]) -> None:
    place.clear()
    with place:
        for finding in found["findings"]:
            with ui.card().classes("wb-card"):
                ui.label(f"{finding['attack']}: {finding['name']}").style("font-weight: 600")
                ui.label(_sentence(finding))
                ui.label(
                    f"Who: {finding['assumes']}. Figure: {finding['measures']}. Source: {finding['paper']}."
                ).classes("wb-note")
                if finding.get("lowers"):
                    ui.label(f"What would lower it: {finding['lowers']}.").classes("wb-note")
        for note in found.get("notes", ()):
            ui.label(note).classes("wb-note")


def _sentence(finding: dict[str, Any]) -> str:
    if finding["figure"] is None:
        return "It cannot be told."
    text = f"{100 * finding['figure']:.1f} %"
    if finding["low"] is not None:
        text += f" (95 % interval {100 * finding['low']:.1f} to {100 * finding['high']:.1f} %)"
    base = "; ".join(f"{name} {100 * value:.1f} %" for name, value in finding["baselines"].items())
    text += f"; without the release: {base}" if base else ""
    text += f"; promised: at most {100 * finding['promise']:.1f} %" if finding["promise"] is not None else ""
    return text + "."
