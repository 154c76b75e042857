"""The workbench's step Series: next month's table, as a part that keeps its promise beside the parts before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.workbench.open_step import scrolling

MODES = {
    "increment": "Each month has new people only (mode increment)",
    "again": "Each month has the whole table again: people stay, leave, and come (mode again)",
}
COLUMNS = {
    "number": "month", "rows": "rows", "groups": "groups", "smallest": "smallest group", "loss": "loss (NCP)",
    "made_up": "rows made up",
}  # fmt: skip
NOBODY = ""


def draw(window: Any) -> None:
    """The panel."""
    task = window.task
    ui.html("<h2>Next month's table</h2>", sanitize=False)
    ui.label(
        "Two releases about the same people tell more together than each alone. A series is a folder of monthly "
        "releases, called parts, that keep the request together. Open each month's table, then add it here."
    ).classes("wb-note")
    if not task.source:
        ui.label("Open a table first.")
        return
    place = ui.input("Folder of the series", value=task.series).classes("wb-wide")

    async def look() -> None:
        await _look(window, place.value or "")

    ui.button("Show the series, or begin one", on_click=look).props("no-caps outline")
    place.on("keydown.enter", look)
    if task.months is not None:
        _held(window)
    elif task.series and not begun(task.series):
        _begin(window)


def begun(folder: str) -> bool:
    """Whether a series stands in a folder."""
    return bool(folder) and (Path(folder) / "series.json").is_file()


async def _look(window: Any, folder: str) -> None:
    """What stands in a folder; one that is empty, or not there yet, can hold a new series."""
    task = window.task
    if not folder:
        window.say("Name a folder.", bad=True)
        return
    place = Path(folder).expanduser().resolve()
    months = None
    if begun(str(place)):
        months = await window.ask("months", long=True, folder=str(place))
        if months is None:
            return
    elif place.exists() and (not place.is_dir() or any(place.iterdir())):
        window.say(
            "This folder holds other files. Name a series, or a folder that is empty or not there yet.", bad=True
        )
        return
    task.series, task.months = str(place), months
    window.changed("Series")


def _begin(window: Any) -> None:
    """The question that a new series asks: who comes back."""
    task = window.task
    with ui.card().classes("wb-card"):
        ui.html("<h3 style='margin:0'>Begin a series in this folder</h3>", sanitize=False)
        ui.label(f"Every month is asked the same: {task.sentence()}").classes("wb-note")
        mode = ui.radio(MODES, value="increment").props('aria-label="Who is in the next month\'s table"')

        async def start() -> None:
            asked = {n: v for n, v in task.asked().items() if n != "seed"}
            months = await window.ask("begin", long=True, folder=task.series, settings=asked, mode=mode.value)
            if months is not None:
                task.months = months
                window.changed("Series")

        ui.button("Begin the series", on_click=start).props("no-caps")


def _held(window: Any) -> None:
    """The months so far, and the open table as the next."""
    task, held = window.task, window.task.months
    words = {1: "1 month"}.get(len(held["parts"]), f"{len(held['parts'])} months")
    ui.label(f"{words}, {held['people']:,} people. {MODES.get(held['mode'], held['mode'])}.")
    if held["parts"]:
        ui.label(
            "Verified: every month, and all together, were judged again and hold."
            if held["holds"] else "Not everything that was checked holds: see shoal verify."
        ).style("font-weight: 600")  # fmt: skip
        columns = [{"name": n, "label": label, "field": n, "align": "right"} for n, label in COLUMNS.items()]
        with scrolling("Months of the series"):
            table = ui.table(columns=columns, rows=held["parts"], row_key="number").classes("wb-wide")
        table.props("dense flat bordered")
        for number in range(1, len(held["parts"]) + 1):
            with ui.row():
                ui.label(f"Month {number}:")
                for kind, title in (("release", "release"), ("certificate", "certificate")):
                    ui.link(f"{title} {number}", f"/w/{task.name}/months/{number}/{kind}")
    if held["mode"] not in MODES:
        ui.label("A further reader's view of this series is made by the command: shoal series view.").classes("wb-note")
        return
    proposed = task.settings.get("person") or next(iter(task.named("identifiers")), NOBODY)
    who = {NOBODY: "nothing: every row is somebody new", **{c["name"]: c["name"] for c in task.columns}}
    person = ui.select(who, value=proposed, label="Column by which a person is known again").classes("wb-wide")
    with ui.row().style("align-items: center"):
        add = window.long_work(f"Add {task.title} as month {len(held['parts']) + 1}")
    doing = ui.label().props("role=status").classes("wb-note")

    async def run() -> None:
        with add.running(doing):
            months = await window.ask("add_month", lambda words, _share: doing.set_text(words), long=True,
                                      source=task.source, folder=task.series, person=person.value or None)  # fmt: skip
        if months is not None:
            task.months = months
            window.say(f"{task.title} is month {len(months['parts'])}.")
            window.changed("Series")

    add.start.on_click(run)
    ui.label("The folder 'private' in it is yours alone: keep it as you keep the table. All else may be sent.").classes(
        "wb-note"
    )
