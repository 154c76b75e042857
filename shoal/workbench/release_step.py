"""The workbench's steps Release, Intruder, and Series: makes a release, attacks it, and adds parts to a series."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.paths import named_after
from shoal.workbench.models_step import request_in_words
from shoal.workbench.open_step import copied_out, note, scrolling
from shoal.workbench.projects import (
    KNOWN_AGAIN,
    OTHER_PEOPLE,
    command,
    digests,
    handed_over,
    notebook,
    place_of,
    save_project,
    script,
    toml,
    with_hierarchies,
    write_text,
)

SECRET = "secret.key"
LONGEST = 200  # bytes of a table's name that the files of its release repeat


def draw(window: Any) -> None:
    """Draw the panel."""
    task = window.task
    ui.html("<h2>Make the release</h2>", sanitize=False)
    if not task.source:
        ui.label("Open a table first.")
        return
    note(task.sentence())
    folder = ui.input("Folder to keep it in (empty: download the files below)").classes("wb-wide")
    make = window.long_work("Make the release", bar=True)

    async def run() -> None:
        with make.running("making the release"):
            made = await _make(window, make.report, (folder.value or "").strip())
        if made:
            window.changed("Release", "Explore", "Intruder")
            holds = task.releases[-1]["verified"]
            window.say("The release is made and verified." if holds else "The release does not verify.", bad=not holds)

    make.start.on_click(run)
    if task.releases:
        _made(window, len(task.releases) - 1)
    for number in reversed(range(len(task.releases) - 1)):
        with ui.expansion(f"Release {number + 1}: {request_in_words(task.releases[number]['settings'])}"):
            _files(window, number)
    _project(window)


async def _make(window: Any, report: Any, folder: str) -> bool:
    """Make one release with its files; False if it was refused or stopped, and then no file remains.

    Everything is made in the private folder of the task, where a stop may leave incomplete files, and copied when
    complete.
    """
    task = window.task
    made_in = task.folder / f"release-{secrets.token_hex(4)}"
    stem = f"{short(named_after(Path(task.title)))}.release"
    try:
        place = place_of(folder) if folder else made_in
        if folder and (place / f"{stem}.csv").exists():
            window.say(f"{stem}.csv is already in that folder; choose another.", bad=True)
            return False
        made_in.mkdir(mode=0o700)
        place.mkdir(parents=True, exist_ok=True)
        secret = _secret(made_in, place)
    except OSError as error:
        window.say(f"This folder cannot be used: {error.strerror}.", bad=True)
        return False
    settings, files = task.asked(), {}
    try:
        named = with_hierarchies(settings, made_in, f"{stem}.hierarchies")
        found = await window.ask(
            "release", report, long=True, source=task.source, settings=_placed(named, made_in), folder=str(made_in),
            name=f"{stem}.csv", secret=str(secret),
        )  # fmt: skip
        if found is None:
            return False
        files = _papers(task, {**named, "seed": found["seed"]}, made_in, stem, found, secret)
        if folder:
            handed_over(made_in, place, SECRET)
            files = {kind: str(place / Path(path).relative_to(made_in)) for kind, path in files.items()}
        kept = digests(files)
    except FileExistsError as error:
        window.say(f"{error} is already in that folder; choose another.", bad=True)
        return False
    except OSError as error:
        window.say(f"The files could not be put there: {error.strerror}.", bad=True)
        return False
    finally:
        if folder or not files:
            shutil.rmtree(made_in, ignore_errors=True)
    task.releases.append({**found, "output": files["release"], "settings": settings, "files": files, "digests": kept})
    return True


def short(stem: str) -> str:
    """The beginning of a file's name that leaves room for the endings of a release: names have at most 255 bytes."""
    return stem.encode()[:LONGEST].decode(errors="ignore")


def _secret(made_in: Path, place: Path) -> Path:
    """The file of the secret: the existing one in the release's folder, or a new one."""
    secret = made_in / SECRET
    held = place / SECRET
    key = held.read_bytes() if held.exists() else secrets.token_bytes(32)
    with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    return secret


def _placed(named: dict[str, Any], place: Path) -> dict[str, Any]:
    """The settings with the paths of the copied hierarchies, because the row order depends on file names."""
    held = named.get("hierarchies", {})
    return {**named, "hierarchies": {n: str(place / h) if (place / h).is_file() else h for n, h in held.items()}}


def _papers(
    task: Any, named: dict[str, Any], place: Path, stem: str, found: dict[str, Any], secret: Path
) -> dict[str, str]:
    """Write the files that repeat the release next to it; kind -> path of every written file."""
    output = Path(found["output"]).name
    code = script(task.table, named, output, secret.name, task.reading)
    line = command(task.table, f"{stem}.policy.toml", output, secret.name, task.reading)
    texts = {
        "policy": (f"{stem}.policy.toml", toml(named, "The request of the release; shoal anonymize reads it.")),
        "script": (f"{stem}.py", code),
        "notebook": (f"{stem}.ipynb", notebook(code)),
        "command": (f"{stem}.sh", line + "\n"),
    }
    for file, text in texts.values():
        write_text(place / file, text)
    record = place / f"{stem}.record.json"
    files = {"release": found["output"], "certificate": found["certificate"], "report": found["report"]}
    files |= {kind: str(place / file) for kind, (file, _) in texts.items()} | {"secret": str(secret)}
    return files | ({"record": str(record)} if record.exists() else {})


TITLES = {
    "release": "Release", "certificate": "Certificate", "report": "Report", "policy": "Policy (TOML)",
    "script": "Python script", "notebook": "Notebook", "command": "Command line", "secret": "Secret (private)",
    "record": "Record (private)",
}  # fmt: skip


def _made(window: Any, number: int) -> None:
    """One release: its figures, its files, and how to repeat it."""
    made = window.task.releases[number]
    facts = made["facts"]
    with ui.card().classes("wb-card").props('aria-label="The release"'):
        ui.html(f"<h3 style='margin:0'>Release {number + 1}</h3>", sanitize=False)
        note(f"Request: {request_in_words(made['settings'])}.")
        if made["settings"] != window.task.asked():
            ui.label("You have changed the request since.").classes("wb-warn")
        good = "Verified: it was read back, judged again and holds." if made["verified"] else "It does not verify."
        ui.label(good).style("font-weight: 600").mark("verdict")
        for line in lines(facts):
            ui.label(line)
        for said in made["notes"]:
            note(said)
        _files(window, number)
        note("The secret and the record are private: with the secret, the same rows come in the same order.")
        with ui.row():
            for words, step in (
                ("Compare it with the table", "Explore"),
                ("Attack it as an intruder would", "Intruder"),
            ):
                ui.button(words, on_click=lambda to=step: window.go(to)).props("no-caps outline")
        with ui.expansion("Repeat it without this page").classes("wb-wide"):
            for kind in ("command", "policy", "script"):
                ui.label(TITLES[kind]).style("font-weight: 600")
                language = {"command": "bash", "policy": "toml", "script": "python"}[kind]
                copied_out(Path(made["files"][kind]).read_text("utf-8"), language, TITLES[kind])


def _files(window: Any, number: int) -> None:
    """Links to the files of a release."""
    with ui.row():
        for kind, title in TITLES.items():
            if kind in window.task.releases[number]["files"]:
                ui.link(title, f"/w/{window.task.name}/files/{number}/{kind}", new_tab=kind == "report")


def lines(facts: dict[str, Any]) -> list[str]:
    """The figures of a release in plain words."""
    loss, certificate = facts["loss"], facts["certificate"]
    reached = ", ".join(f"{name} = {value:.4g}" for name, value in facts["privacy"].items())
    paid = certificate["cost"]
    text = f"{paid:,.4g}" if isinstance(paid, float) and abs(paid) < 1000 else f"{paid:,.1f}".removesuffix(".0")
    cost = f"{text} {certificate['unit']}"
    if certificate["optimal"]:
        proof = f"Cost: {cost}, proved optimal."
    elif certificate["ratio"] is None:
        proof = f"Cost: {cost}; no lower bound above 0 is known."
    else:
        ratio = math.ceil(certificate["ratio"] * 1000) / 1000  # rounded up, so that it stays an upper bound
        proof = f"Cost: {cost}, at most {ratio:.7g} times the least possible."
    return [
        f"{facts['rows']:,} rows in {facts['groups']:,} groups, the smallest of {facts['smallest_group']:,}.",
        f"Reached: {reached}.",
        f"Loss: {100 * loss['ncp']:.2f} % (NCP), {loss['suppressed_tuples']:,.0f} rows changed.",
        f"{proof} Method: {facts['method']}; {sum(facts['seconds'].values()):.1f} s.",
    ]


def _project(window: Any) -> None:
    ui.html("<h2>Keep the project</h2>", sanitize=False)
    note("A folder with the policy and the hierarchies, which list values as ARX's do; no row of the table is kept.")
    known = "" if window.task.project is None else str(window.task.project)
    place = ui.input("Folder of the project", value=known).classes("wb-wide")

    def save() -> None:
        if not (place.value or "").strip():
            window.say("Name a folder.", bad=True)
            return
        try:
            missing = save_project(window.task, place_of(place.value), window.tabs.value)
        except OSError as error:
            window.say(f"It could not be saved: {error.strerror}.", bad=True)
            return
        window.say(f"The project is saved; {missing}." if missing else "The project is saved.", stays=bool(missing))

    ui.button("Save the project", on_click=save).props("no-caps outline")


def draw_intruder(window: Any) -> None:
    """Draw the panel of attacks on the last release: what someone learns with the release and without it."""
    task = window.task
    ui.html("<h2>What does an intruder reach?</h2>", sanitize=False)
    if not task.releases:
        ui.label("Make a release first.")
        return
    note("Known attacks are run on the last release, and their guesses are checked against the table. The figures "
             "are of the table: keep them to yourself.")  # fmt: skip
    attack = window.long_work("Attack the release", bar=True)

    async def run() -> None:
        last = task.releases[-1]
        with attack.running("attacking the release"):
            found = await window.ask(
                "attack", attack.report, long=True, source=task.source, release=last["output"],
                settings=last["settings"],
            )  # fmt: skip
        if found is not None:
            last["attack"] = found
            window.changed("Intruder")

    attack.start.on_click(run)
    if "attack" in task.releases[-1]:
        with ui.column().classes("wb-wide"):
            _shown(task.releases[-1]["attack"])


def _shown(found: dict[str, Any]) -> None:
    chart = ui.echart(_reached(found["findings"])).classes("wb-wide")
    chart.style(f"height: {7 + 3 * len(found['findings'])}rem")
    chart.props('role=img aria-label="What an intruder reaches with the release and without it, as in the cards"')
    for finding in found["findings"]:
        with ui.card().classes("wb-card"):
            ui.label(f"{finding['attack']}: {finding['name']}").style("font-weight: 600")
            ui.label(_sentence(finding))
            note(f"Who: {finding['assumes']}. Figure: {finding['measures']}. Source: {finding['paper']}.")
            if finding.get("lowers"):
                note(f"What would lower it: {finding['lowers']}.")
    for said in found.get("notes", ()):
        note(said)


def _is_found(finding: dict[str, Any]) -> bool:
    """Whether the figure reports that something was found, instead of a share."""
    return bool(finding["measures"].startswith("1 where"))


def _sentence(finding: dict[str, Any]) -> str:
    if _is_found(finding):
        return "Found." if finding["figure"] else "Not found."
    if finding["figure"] is None:
        return "It is unknown." if finding["people"] else "This attack finds nothing to guess in this release."
    text = f"{100 * finding['figure']:.1f} %"
    if finding["low"] is not None:
        text += f" (95 % interval {100 * finding['low']:.1f} to {100 * finding['high']:.1f} %)"
    base = "; ".join(f"{name} {100 * value:.1f} %" for name, value in finding["baselines"].items())
    text += f"; without the release: {base}" if base else ""
    text += f"; promised: at most {100 * finding['promise']:.1f} %" if finding["promise"] is not None else ""
    return text + "."


def _reached(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Bars in percent: each attack with the release, and by the best guess without it; of figures that are shares."""
    known = [f for f in findings if f["figure"] is not None and not _is_found(f)]
    known.reverse()  # the chart draws from bottom to top
    bars = {
        "with the release": [round(100 * f["figure"], 2) for f in known],
        "without it": [round(100 * max(f["baselines"].values()), 2) if f["baselines"] else None for f in known],
    }
    return {
        "animation": False, "aria": {"enabled": True}, "legend": {"top": 0}, "tooltip": {"trigger": "axis"},
        "grid": {"left": 10, "right": 40, "top": 35, "bottom": 45, "containLabel": True},
        "xAxis": {"type": "value", "min": 0, "max": 100, "name": "percent", "nameLocation": "middle", "nameGap": 28},
        "yAxis": {"type": "category", "data": [f"{f['attack']}: {f['name']}" for f in known],
                  "axisLabel": {"width": 220, "overflow": "break", "lineHeight": 14}},
        "series": [{"type": "bar", "name": name, "data": data} for name, data in bars.items()],
    }  # fmt: skip


MODES = {
    "increment": "Each month has new people only (mode increment)",
    "again": "Each month has the whole table again: people stay, leave, and come (mode again)",
}
COLUMNS = {
    "number": "month", "rows": "rows", "groups": "groups", "smallest": "smallest group", "loss": "loss (NCP)",
    "made_up": "rows made up",
}  # fmt: skip
NOBODY = ""


def draw_series(window: Any) -> None:
    """Draw the panel."""
    task = window.task
    ui.html("<h2>Next month's table</h2>", sanitize=False)
    note(
        "Two releases about the same people tell more together than each alone. A series is a folder of monthly "
        "releases, called parts, that keep the request together. Open each month's table, then add it here."
    )
    if not task.source:
        ui.label("Open a table first.")
        return
    place = ui.input("Folder of the series", value=task.series).classes("wb-wide")

    async def look() -> None:
        await _look(window, (place.value or "").strip())

    ui.button("Show the series, or begin one", on_click=look).props("no-caps outline")
    place.on("keydown.enter", look)
    if task.months is not None:
        _held(window)
    elif task.series and not series_started(task.series):
        _begin(window)


def series_started(folder: str) -> bool:
    """Whether a folder contains a series."""
    return bool(folder) and (Path(folder) / "series.json").is_file()


async def _look(window: Any, folder: str) -> None:
    """Examine a folder; if it is empty or missing, a new series can start in it."""
    task = window.task
    if not folder:
        window.say("Name a folder.", bad=True)
        return
    months = None
    try:
        place = place_of(folder)
        begun = series_started(str(place))
        other = not begun and place.exists() and (not place.is_dir() or any(place.iterdir()))
    except OSError as error:
        window.say(f"This folder cannot be used: {error.strerror}.", bad=True)
        return
    if other:
        window.say(
            "This folder holds other files. Name a series, or a folder that is empty or not there yet.", bad=True
        )
        return
    if begun:
        months = await window.ask("months", long=True, folder=str(place))
        if months is None:
            return
    task.series, task.months = str(place), months
    window.changed("Series")


def _begin(window: Any) -> None:
    """The question before a new series: which people can return."""
    task = window.task
    with ui.card().classes("wb-card"):
        ui.html("<h3 style='margin:0'>Begin a series in this folder</h3>", sanitize=False)
        note(f"Every month is asked the same: {task.sentence()}")
        mode = ui.radio(MODES, value="increment").props('aria-label="Who is in the next month\'s table"')

        async def start() -> None:
            asked = {n: v for n, v in task.asked().items() if n != "seed"}
            months = await window.ask("begin", long=True, folder=task.series, settings=asked, mode=mode.value)
            if months is not None:
                task.months = months
                window.changed("Series")

        ui.button("Begin the series", on_click=start).props("no-caps")


def _held(window: Any) -> None:
    """The months so far, and the open table as the next one."""
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
        note("A further reader's view of this series is made by the command: shoal series view.")
        return
    proposed = task.settings.get("person") or next(iter(task.named("identifiers")), NOBODY)
    who = {NOBODY: "nothing: every row is somebody new", **{c["name"]: c["name"] for c in task.columns}}
    person = ui.select(who, value=proposed, label=KNOWN_AGAIN).classes("wb-wide")
    with ui.column().classes("wb-wide") as earlier:
        others = ui.switch(OTHER_PEOPLE)
        note("Only if you know it: the promise of the series then relies on it. It counts for this month alone.")
    earlier.set_visibility(bool(held["parts"]))
    add = window.long_work(f"Add {task.title} as month {len(held['parts']) + 1}", bar=True)

    async def run() -> None:
        with add.running("adding the month"):
            months = await window.ask("add_month", add.report, long=True,
                                      source=task.source, folder=task.series, person=person.value or None,
                                      other_people=others.value)  # fmt: skip
        if months is not None:
            task.months = months
            window.changed("Series")
            window.say(f"{task.title} is month {len(months['parts'])}.")

    add.start.on_click(run)
    # no link copies it: a ledger that is older than the last part is of no use, and each copy of the key is a risk
    private = str(Path(task.series) / "private")
    note(f"The folder {private!r} is yours alone: keep it as you keep the table, and save it after each month. "
         "All else in the series may be sent.")  # fmt: skip
