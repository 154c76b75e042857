"""A window: the page's frame, the line that summarizes the request, and the steps."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fastapi import Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from nicegui import app, ui

import shoal
from shoal.workbench import explore_step, hierarchies_step, models_step, open_step, places_step, release_step
from shoal.workbench.jobs import JobError, Worker
from shoal.workbench.projects import ROLES, Bench, WorkSession, digests, in_fields, read_project, unknown

STEPS: dict[str, Callable[[Any], None]] = {
    "Open": open_step.draw,
    "Roles": open_step.draw_roles,
    "Models": models_step.draw,
    "Hierarchies": hierarchies_step.draw,
    "Explore": explore_step.draw,
    "Release": release_step.draw,
    "Intruder": release_step.draw_intruder,
    "Series": release_step.draw_series,
    "Places": places_step.draw,
}

STYLE = """
.nicegui-content { padding: 0; gap: 0; }
.wb { width: 100%; max-width: 1180px; margin: 0 auto; padding: 1rem; box-sizing: border-box; }
.wb-head { padding: 0; gap: 0; flex-direction: column; }
.wb-bar { width: 100%; padding: .4rem 1rem; gap: .5rem; align-items: center; box-sizing: border-box; }
.wb-line { width: 100%; max-height: 30vh; overflow-y: auto; box-sizing: border-box; padding: .6rem 1rem;
  background: #e8f0f2; color: #10333c; border-bottom: 1px solid #b5ccd3; }
.body--dark .wb-line { background: #12343d; color: #e6f3f6; border-color: #31606d; }
.wb h2 { font-size: 1.35rem; font-weight: 600; line-height: 1.3; margin: .4rem 0; }
.wb h3 { font-size: 1.1rem; font-weight: 600; line-height: 1.3; margin: .8rem 0 .2rem; }
.wb-note { color: #4a5560; } .body--dark .wb-note { color: #b9c4ce; }
.wb-warn { color: #8a3b00; } .body--dark .wb-warn { color: #ffb98a; }
.wb-card { width: 100%; padding: .8rem 1rem; } .wb-wide { width: 100%; }
.wb-roles { display: grid; grid-template-columns: minmax(12rem, 1fr) auto; gap: .35rem 1rem; width: 100%;
  align-items: center; border-top: 1px solid #8886; padding: .45rem 0; }
.wb-file { width: 100%; box-sizing: border-box; padding: 1.6rem .8rem; border: 2px dashed #6d8790; border-radius: .3rem;
  font: inherit; color: inherit; }
.nicegui-link { color: #0b5d70; } .body--dark .nicegui-link { color: #8fd3e3; }
.body--dark .q-btn--outline, .body--dark .q-table .q-btn { --q-primary: #8fd3e3; --q-negative: #ff9d9d; }
.body--dark :is(.q-toggle, .q-checkbox, .q-radio, .q-linear-progress, .q-field) { --q-primary: #8fd3e3; }
.body--dark .nicegui-echart { background: #f4f6f7; border-radius: .3rem; }
.q-btn.bg-primary > .q-focus-helper { opacity: 0 !important; }
.q-btn.bg-primary:focus-visible { box-shadow: 0 0 0 3px #c96a00; }
.wb-scroll { overflow-x: auto; width: 100%; }
.wb-scroll .q-table__container { min-width: max-content; } .wb-scroll .q-table__middle { overflow: visible; }
.wb-roles .q-btn-group { border: 1px solid #6d8790; }
.wb .codehilite :is(.c, .c1) { color: #4a5560; } .body--dark .wb .codehilite :is(.c, .c1) { color: #b9c4ce; }
#popup { max-width: min(36rem, 75vw); }
.wb-node { padding: .15rem .4rem; border-radius: .25rem; width: 100%; }
@media (max-width: 700px) { .wb-steps > .q-tabs .q-tabs__content { flex-wrap: wrap; }
  .q-tabs__arrow { display: none; } .wb-bar { gap: 0; padding: .2rem .6rem; }
  .wb-bar .q-btn { padding: 4px 8px; } .wb-steps .q-tabs__content { justify-content: flex-start; }
  .wb-roles { grid-template-columns: 1fr; }
  .wb { padding: .6rem; } }
"""

FILLING = ("rows", "singled", "pairs")  # jobs that fill a page when it is drawn
CLOSING = "document.querySelectorAll('.wb-refusal-%s button').forEach(button => button.click())"


class LongWork:
    """The buttons that start and stop a long job, and how far it is.

    One long job runs at a time. Any window of the task shows and stops it, also a page that was loaded again: what the
    job reports is kept with the task, and each window looks there.

    bar  whether a bar shows the share that is done
    """

    def __init__(self, label: str, task: WorkSession, stop: Callable[[], Any], bar: bool) -> None:
        self.label, self.task, self.mine = label, task, False
        with ui.row().style("align-items: center"):
            self.start = ui.button(label).props("no-caps")
            self.stop = ui.button("Stop", on_click=stop).props("no-caps outline color=negative")
            self.elsewhere = ui.label("This runs already, and its result appears here.").classes("wb-note")
        self.bar = None
        if bar:
            self.bar = ui.linear_progress(value=0, show_value=False).props('aria-label="Progress"').classes("wb-wide")
        self.doing = ui.label().props("role=status").classes("wb-note")
        self._show()
        ui.timer(0.5, self._show)

    def _show(self) -> None:
        """Show whether the job can start or stop, and how far it is; other windows change it."""
        if self.start.is_deleted:
            return
        runs = self.task.running[:1] == [self.label]
        self.start.set_enabled(not self.task.running)
        self.stop.set_enabled(runs)
        self.elsewhere.visible = runs and not self.mine
        words, share = self.task.reported if runs else ("", None)
        self.doing.set_text(words)
        if self.bar is not None:
            self.bar.visible = runs
            self.bar.props(f"indeterminate={str(share is None).lower()}")
            self.bar.set_value(share or 0)

    def report(self, words: str, share: float | None = None) -> None:
        """Keep what the job does now, and the share of it that is done, for every window of the task."""
        self.task.reported = words, share

    @contextmanager
    def running(self, words: str) -> Iterator[None]:
        """One run: until it ends, the other button is disabled; ``words`` are shown until the job reports others."""
        self.task.running.append(self.label)
        self.mine = True
        self.report(words)
        self._show()
        try:
            yield
        finally:
            self.task.running.remove(self.label)
            self.mine = False
            self._show()


class Window:
    """The state of a page that shows a task; one worker answers short jobs, another runs long ones.

    windows  all windows of this task: a copied address opens another, and changes appear in all
    """

    def __init__(self, bench: Bench, task: WorkSession, asks: Worker, works: Worker, windows: list[Window]) -> None:
        self.bench, self.task, self.asks, self.works, self.windows = bench, task, asks, works, windows
        self.panels: dict[str, Any] = {}
        self.stale = set(STEPS)
        self.keep = False  # whether the next table keeps the request
        self.reading: Callable[[], dict[str, Any]] = dict  # how to read the next file
        self.reads: Callable[[bool], None] = lambda _runs: None  # shows that a table is read
        self.line: Any = None
        self.tabs: Any = None
        self.undo: Any = None
        self.redo: Any = None
        self.client: Any = None
        self.refusals = 0  # shown so far
        self.closed = 0  # of these, the ones that no longer matter

    async def ask(self, job: str, progress: Any = None, *, long: bool = False, **arguments: Any) -> Any:
        """The answer of a job; None if it is refused, with a message on the page.

        An answer closes the refusals that were shown when the job was asked, unless a page asks by itself.
        """
        shown = self.refusals
        try:
            answer = await (self.works if long else self.asks).ask(job, progress, **arguments)
        except JobError as error:
            self.say(str(error), bad=True)
            return None
        if self.refusals == shown and job not in FILLING:
            self.close_refusals()
        return answer

    def long_work(self, label: str, *, bar: bool = False) -> LongWork:
        """Buttons for a long job, drawn at the current position of the page."""
        return LongWork(label, self.task, self.works.stop, bar)

    def say(self, words: str, *, bad: bool = False, stays: bool = False) -> None:
        """Show a message; one that ``stays`` is visible until it is closed, and a refusal until that or a success.

        If this page was closed or loaded again, the other windows of the task show it; if there is none, the next one.
        """
        there = [window for window in self.windows if window.client.has_socket_connection]
        if not there:
            self.task.unsaid.append((words, bad))
        for window in [self] if self in there else there:
            window.close_refusals()
            window._notify(words, bad, bad or stays)

    def close_refusals(self) -> None:
        """Close the refusals on the page, because what was refused has succeeded, or another message follows.

        A script reaches the page after a message that follows it, so it names the refusals that it closes.
        """
        if self.closed < self.refusals:
            with self.client:
                ui.run_javascript(CLOSING % self.closed)
            self.closed = self.refusals

    def _notify(self, words: str, bad: bool, stays: bool) -> None:
        self.refusals += bad
        with self.client:
            ui.notify(words, type="negative" if bad else "positive", timeout=0 if stays else 3000,
                      multi_line=True, position="top", classes=f"wb-refusal-{self.closed}" if bad else "",
                      actions=[{"label": "Close", "color": "white", "noCaps": True}])  # fmt: skip

    def _say_the_rest(self) -> None:
        """Show the messages that came while no window was open; each stays, because nobody waits for it."""
        while self.task.unsaid:
            self._notify(*self.task.unsaid.pop(0), True)

    def _say_fault(self, error: Exception) -> None:
        """Show an unforeseen fault of the page without its text, which may contain a value of the table."""
        self.say(f"{type(error).__name__}: this is a defect of shoal, please report it", bad=True)

    def changed(self, *steps: str) -> None:
        """Redraw the summary line, and mark the panels of some steps to be redrawn when they are visible.

        In other windows of the task, any step may be outdated.
        """
        for window in [*self.windows]:
            window._catch_up(*(steps if window is self else STEPS))

    def _catch_up(self, *steps: str) -> None:
        self.line.set_text(self.task.sentence())
        self.undo.set_enabled(self.task.can_undo)
        self.redo.set_enabled(self.task.can_redo)
        self.stale |= set(steps)
        self.show()

    def show(self) -> None:
        """Redraw the visible panel if it is outdated."""
        step = self.task.step = self.tabs.value
        if step in self.stale:
            self.stale.discard(step)
            self.panels[step].clear()
            with self.panels[step]:
                STEPS[step](self)

    def set(self, *steps: str, **values: Any) -> None:
        """Change settings, and update the summary line."""
        self.close_refusals()
        self.task.change(**values)
        self.changed(*steps)

    def go(self, step: str) -> None:
        """Show a step."""
        self.tabs.set_value(step)

    def step_back(self, forward: bool = False) -> None:
        """Undo or redo one change."""
        if self.task.redo() if forward else self.task.undo():
            self.changed(*STEPS)

    async def open(
        self, source: dict[str, Any], settings: dict[str, Any] | None = None, file: str | None = None
    ) -> bool:
        """Open a table, propose roles, and show its first rows; returns whether it could be read.

        settings  the request; None: proposed. file: the policy file that holds it
        """
        if self._busy():
            return False
        self.reads(True)
        try:
            found = await self.ask("look", source=source)
        finally:
            self.reads(False)
        if found is None or self._busy():
            return False
        hint = ""
        if settings is None and self.keep and self.task.source:
            settings, hint = self.task.settings, " To open it afresh, switch off 'Ask the same of the next table'."
        missing = {} if settings is None else unknown(settings, [c["name"] for c in found["columns"]])
        if missing:
            lacks = ", ".join(map(repr, missing))
            where = "" if file is None else f" ({file}: {', '.join(dict.fromkeys(missing.values()))})"
            self.say(f"This table lacks {lacks}, which the request names{where}.{hint}", bad=True)
            return False
        before = self.task.source.get("path", "")
        self.task.opened(source, found)
        if before != self.task.source["path"]:
            self.task.drop(before)
        if settings is not None:
            self.task.settings = settings
        self.changed(*STEPS)
        return True

    def _busy(self) -> bool:
        """Whether long work on the open table runs, which another table would mix with its own; says so."""
        if self.task.running:
            self.say(f"{self.task.running[0]!r} still runs on {self.task.title}. Wait until it ends, or stop it, and "
                     "then open another table.", bad=True)  # fmt: skip
        return bool(self.task.running)

    async def open_demo(self) -> None:
        """Open the survey in the installed package."""
        place = self.task.folder / "survey.csv"
        if await self.ask("demo", path=str(place)) is not None:
            await self.open({"path": str(place)})

    async def open_first(self) -> None:
        """Open what the command named: the survey, a table, or a project."""
        first = self.bench.first
        if self.bench.demo:
            await self.open_demo()
        elif first is not None and Path(first, "project.toml").is_file():
            await self.open_project(Path(first))
        elif first is not None:
            await self.open({"path": str(Path(first).resolve())})

    async def open_arx(self, path: Path) -> None:
        """Load the roles, models, and hierarchies of an ARX project for the open table."""
        task = self.task
        if not task.source:
            self.say("Open the table of the ARX project first, then the project.", bad=True)
            return
        found = await self.ask("arx", path=str(path), folder=str(task.folder / f"arx-{secrets.token_hex(4)}"))
        if found is None:
            return
        missing = unknown(found["settings"], [c["name"] for c in task.columns])
        if missing:
            lacks = ", ".join(map(repr, missing))
            self.say(f"The open table lacks {lacks}, which the ARX project names. Open its table first.", bad=True)
            return
        left_out = "".join(f" Not read: {text}." for text in found["not_read"])
        self.say(f"Roles, models and hierarchies are those of the ARX project.{left_out}", stays=bool(left_out))
        kept = {name: task.settings[name] for name in ("effort", "seed") if name in task.settings}
        empty: dict[str, Any] = {role: [] for role in ROLES}
        self.set(*STEPS, **{**dict.fromkeys(task.settings), **empty, **found["settings"], **kept})

    async def open_project(self, folder: Path, query: str = "") -> None:
        """Open a saved project in its saved state; with the query, if it wasn't saved."""
        try:
            source, settings, left = read_project(folder, query, self.task.source)
        except (shoal.ShoalError, OSError) as error:
            self.say(in_fields(error) if isinstance(error, shoal.ShoalError) else str(error), bad=True)
            return
        if await self.open(source, settings, f"{folder.name}/policy.toml"):
            self.task.project, self.task.series = folder, left["series"]
            self.task.months = None
            self.changed(*STEPS)
            self.go(left["step"] if left["step"] in STEPS else "Open")
            if release_step.series_started(left["series"]):  # it is verified meanwhile
                months = await self.ask("months", long=True, folder=left["series"])
                if self.task.series == left["series"]:
                    self.task.months = months
                    self.changed("Series")

    def draw(self) -> None:
        """Draw the whole page."""
        self.client = ui.context.client
        ui.add_css(STYLE)
        ui.add_head_html("<script>document.documentElement.lang = 'en'</script>")
        ui.add_head_html(f"<script>{UNANSWERED}</script>")
        ui.colors(primary="#0b5d70", negative="#a4262c", positive="#1d6b34")
        dark = ui.dark_mode(None)  # the browser's preference, until the user clicks the button

        async def other() -> None:
            dark.set_value(not await ui.run_javascript("document.body.classList.contains('body--dark')"))

        with ui.header(elevated=False).classes("wb-head") as head, ui.row().classes("wb-bar"):
            ui.html("<h1 style='font-size:1.2rem;margin:0;line-height:1.2;font-weight:600'>shoal workbench</h1>",
                    sanitize=False)  # fmt: skip
            ui.space()
            self.undo = ui.button("Undo", on_click=lambda: self.step_back()).props("flat color=white no-caps")
            self.redo = ui.button("Redo", on_click=lambda: self.step_back(True)).props("flat color=white no-caps")
            ui.button("Light or dark", on_click=other).props("flat color=white no-caps")
        with head:  # it stays in place while the page scrolls
            self.line = ui.label(self.task.sentence()).classes("wb-line").props("role=status")
        with ui.element("div").classes("wb-wide wb-steps"):  # the surrounding page is the landmark
            self.tabs = ui.tabs().props('no-caps align=left outside-arrows mobile-arrows aria-label="Steps"')
            with self.tabs:
                for number, step in enumerate(STEPS, 1):
                    ui.tab(step, label=f"{number} {step}")
            self.tabs.set_value(self.task.step)
            with ui.tab_panels(self.tabs, value=self.task.step, animated=False).classes("wb-wide").props("keep-alive"):
                for step in STEPS:
                    with ui.tab_panel(step).style("padding: 0"):
                        self.panels[step] = ui.column().classes("wb")
            self.tabs.on_value_change(self.show)
        self.windows.append(self)
        self.client.on_delete(lambda: self.windows.remove(self))
        self.client.on_connect(self._say_the_rest)
        self.client.on_exception(self._say_fault)
        self._catch_up()
        if not self.task.source and (self.bench.demo or self.bench.first):
            ui.timer(0.05, self.open_first, once=True)


def _altered(place: Path, digest: str) -> Response | None:
    """The refusal of a file that is no longer the one that was verified; None if it is."""
    if not place.is_file():
        return Response("This file was moved or removed.", 404)
    if digests({"": str(place)})[""] != digest:
        return Response("This file has changed since it was verified. Make the release again.", 409)
    return None


ENDED = ("The workbench of this address has ended, and its work with it. Open your table again, or the folder of a "
         "saved project.")  # fmt: skip


UNANSWERED = """document.addEventListener('DOMContentLoaded', () => {
  const lines = ['The workbench does not answer.',
    'If it still runs, this page continues by itself. If it has ended, start it again with shoal workbench, and open ' +
    'your table or your saved project. What you did not save is gone.'];
  document.querySelectorAll('#popup > span').forEach((line, i) => { line.textContent = lines[i] });
  document.getElementById('popup').setAttribute('role', 'alert');
})"""  # in place of the words of NiceGUI, which only say that it tries to reconnect


def _plain_name(name: str) -> str:
    """A file name from the browser, without folders and invalid characters."""
    return "".join(c for c in name.replace("\\", "/").split("/")[-1] if c.isprintable()).lstrip(".") or "table.csv"


def pages(bench: Bench) -> None:
    """The routes of the workbench: a new window, a window of a task, and the files of a task."""
    held: dict[str, tuple[Worker, Worker, list[Window]]] = {}

    def shared(task: WorkSession) -> tuple[Worker, Worker, list[Window]]:
        return held.setdefault(task.name, (Worker(), Worker(), []))

    @app.get("/")
    def new() -> Response:
        return RedirectResponse(f"/w/{bench.new().name}", 303)

    @ui.page("/w/{name}", title="shoal workbench", response_timeout=30.0)
    def window(name: str) -> Response | None:
        if name not in bench.tasks:
            task = bench.new()
            task.unsaid.append((ENDED, True))
            return RedirectResponse(f"/w/{task.name}", 303)
        Window(bench, bench.tasks[name], *shared(bench.tasks[name])).draw()
        return None

    @app.get("/w/{name}/files/{number}/{kind}")
    def file(name: str, number: int, kind: str) -> Response:
        made = bench.tasks[name].releases if name in bench.tasks else []
        if not 0 <= number < len(made) or kind not in made[number]["files"]:
            return Response("There is no such file.", 404)
        place = Path(made[number]["files"][kind])
        if refusal := _altered(place, made[number]["digests"][kind]):
            return refusal
        if kind != "report":
            return FileResponse(place, filename=place.name)
        rules = {"content-security-policy": "sandbox allow-scripts"}  # a page of its own origin can't use the cookie
        return FileResponse(place, filename=place.name, content_disposition_type="inline", headers=rules)

    @app.get("/w/{name}/months/{number}/{kind}")
    def month(name: str, number: int, kind: str) -> Response:
        held = (bench.tasks[name].months or {"parts": []})["parts"] if name in bench.tasks else []
        if not 0 < number <= len(held) or kind not in ("release", "certificate"):
            return Response("There is no such file.", 404)
        place = Path(held[number - 1]["files"][kind])
        if refusal := _altered(place, held[number - 1]["digests"][kind]):
            return refusal
        return FileResponse(place, filename=f"month-{number}.{place.name}")

    @app.post("/w/{name}/upload")
    async def upload(name: str, request: Request) -> Response:
        if name not in bench.tasks:
            return Response("There is no such window.", 404)
        folder = bench.tasks[name].folder / "upload"
        folder.mkdir(mode=0o700, exist_ok=True)
        own = folder / secrets.token_hex(8)  # a file of the same name that is open stays as it is
        place = own / _plain_name(unquote(request.headers.get("x-file-name", "")))
        part = folder / f".{own.name}.part"
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                async for piece in request.stream():
                    file.write(piece)
            own.mkdir(mode=0o700)
            part.replace(place)
        except OSError:
            return Response("The file could not be kept.", 507)
        finally:
            part.unlink(missing_ok=True)
        return Response(place.relative_to(folder).as_posix(), media_type="text/plain")

    async def close() -> None:
        for asks, works, _ in held.values():
            await asks.close()
            await works.close()

    app.on_shutdown(close)
