"""The workbench's step Explore: a grid of requests, drawn as risk against loss; a click adopts one."""

from __future__ import annotations

from typing import Any

from nicegui import ui

import shoal
from shoal.workbench.models_step import in_words, request_in_words
from shoal.workbench.open_step import note, scrolling

TAKE = """<q-td :props="props"><q-btn v-if="props.row.loss !== null" dense flat no-caps color="primary" label="Take"
  :aria-label="'Take k ' + props.row.k + ', l ' + props.row.l + ', ' + props.row.publish"
  @click="$parent.$emit('take', props.row.id)" /></q-td>"""


def draw(window: Any) -> None:
    """Draw the panel."""
    task = window.task
    ui.html("<h2>What does protection cost?</h2>", sanitize=False)
    if not task.source:
        ui.label("Open a table first.")
        return
    _Grid(window).draw()
    if task.releases:
        ui.html("<h2>Side by side</h2>", sanitize=False)
        _SideBySide(window).draw()


class _Grid:
    """The grid's fields, its points as they arrive, and their picture."""

    def __init__(self, window: Any) -> None:
        self.window = window

    def draw(self) -> None:
        """Draw fields, buttons, picture, and table."""
        task = self.window.task
        ways = shoal.choices()["publish"]
        with ui.row().classes("wb-wide").style("align-items: end"):
            self.k = ui.input("k, separated by commas", value="3, 5, 11")
            self.l = ui.input(
                "l, separated by commas (1 asks nothing)", value="1, 2" if task.settings.get("sensitive") else "1"
            ).style("width: 19rem")
            now = task.settings.get("publish", "stars")
            usable = {n: w for n, w in ways.items() if n != "hierarchy" or task.settings.get("hierarchies")}
            self.ways = ui.select(
                usable, value=[now] if now in usable else ["stars"], multiple=True, label="Published as"
            ).style("min-width: 16rem")
        kept = [n for n in shoal.choices()["models"] if n not in ("k", "l") and task.settings.get(n) is not None]
        if kept:
            also = ", ".join(in_words({n: task.settings[n] for n in kept}, but=("k",)))
            note(f"Every point also keeps what you chose under Models: {also}.")
        note("The grid searches fast; a release of the same request can search longer and lose less.")
        self.work = self.window.long_work("Try the grid", bar=True)
        self.work.start.on_click(self.run)
        self.outcome = ui.label().props("role=status").classes("wb-note")
        self.chart = ui.echart(_picture(task.points), on_point_click=self.clicked).style("height: 22rem; width: 100%")
        self.chart.props('role=img aria-label="Loss against risk of every point"')
        note(
            "Click a point, or Take in its row, to ask for the same. Low and left is better: little risk, little loss. "
            "A loss (NCP) of 0 keeps every value, and one of 1 keeps none."
        )
        columns = [
            {"name": n, "label": label, "field": n, "align": "left", "sortable": True}
            for n, label in (("k", "k"), ("l", "l"), ("publish", "published as"), ("loss", "loss (NCP)"),
                             ("risk", "highest risk"), ("groups", "groups"), ("note", "remark"), ("take", "choose"))
        ]  # fmt: skip
        with scrolling("Points of the grid"):
            self.table = ui.table(columns=columns, rows=_rows(task.points), row_key="id", pagination=20)
        self.table.add_slot("body-cell-take", TAKE)
        self.table.on("take", lambda e: self.take(task.points[int(e.args)]))
        self.table.classes("wb-wide").props('dense flat bordered no-data-label="No point yet"').mark("points")

    async def run(self) -> None:
        """Explore the grid; if it is stopped, the points found so far remain."""
        task = self.window.task
        try:
            grid = {"k": _numbers(self.k.value), "l": _numbers(self.l.value), "publish": list(self.ways.value)}
        except ValueError:
            self.window.say("k and l are whole numbers, separated by commas.", bad=True)
            return
        if not grid["publish"] or not grid["k"] or not grid["l"]:
            self.window.say("Choose at least one k, one l and one way to publish.", bad=True)
            return
        task.points = []
        self.outcome.set_text("")
        many, found = len(grid["k"]) * len(grid["l"]) * len(grid["publish"]), 0

        def report(words: Any, share: Any) -> None:
            nonlocal found
            if words == "point":
                task.points.append(share)
                found += 1
                self.work.report(f"{found} of {many} points", found / many)
                self._shown()

        with self.work.running("trying the grid"):
            answer = await self.window.ask(
                "explore", report, long=True, source=task.source, settings=task.asked(), grid=grid
            )
        if answer is not None:
            task.points = answer["points"]
            refused = sum(p["loss"] is None for p in task.points)
            self._shown(f"{found} of {many} points" + (
                f"; no release can meet {refused} of them, and the table says why" if refused else ""))  # fmt: skip
        self.window.changed()  # the other windows show the points, too

    def _shown(self, outcome: str = "") -> None:
        if self.chart.is_deleted:  # this page was loaded again
            return
        self.outcome.set_text(outcome)
        picture = _picture(self.window.task.points)
        self.chart.options.clear()
        self.chart.options.update(picture)
        self.chart.update()
        self.table.rows = _rows(self.window.task.points)
        self.table.update()

    def clicked(self, event: Any) -> None:
        """Adopt the clicked point; the third number of its data is its index."""
        data = event.data if isinstance(event.data, list) else (event.data or {}).get("value", [])
        if len(data) > 2:
            self.take(self.window.task.points[int(data[2])])

    def take(self, point: dict[str, Any]) -> None:
        """Adopt the request of a point."""
        values: dict[str, Any] = {
            "k": point["k"],
            "l": point["l"] if point["l"] > 1 else None,
            "publish": point["publish"],
        }
        if held := self.window.task.settings.get("alpha_k"):
            values["alpha_k"] = [held[0], point["k"]]
        self.window.set("Models", "Hierarchies", "Release", **values)
        self.window.say(f"Taken: k = {point['k']}, l = {point['l']}, {point['publish']}.")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in (text or "").split(",") if part.strip()]


def _rows(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": i, "k": p["k"], "l": p["l"], "publish": p["publish"], "groups": p["groups"],
            "loss": None if p["loss"] is None else round(p["loss"], 4),
            "risk": None if p["risk"] is None else round(p["risk"], 4),
            "note": p["reason"] or ("no other is better in all" if p["frontier"] else ""),
        }
        for i, p in enumerate(points)
    ]  # fmt: skip


def _picture(points: list[dict[str, Any]]) -> dict[str, Any]:
    """A scatter plot of loss against highest risk, with a series for each way to publish and l."""
    series: dict[str, list[dict[str, Any]]] = {}
    for i, p in enumerate(points):
        if p["loss"] is not None:
            series.setdefault(f"{p['publish']}, l = {p['l']}", []).append(
                {"name": f"k = {p['k']}", "value": [p["risk"], p["loss"], i]}
            )
    shapes = ("circle", "rect", "triangle", "diamond", "pin", "arrow")
    return {
        "animation": False, "aria": {"enabled": True}, "legend": {"top": 0}, "tooltip": {"trigger": "item"},
        "grid": {"left": 60, "right": 20, "top": 40, "bottom": 45},
        "xAxis": {"type": "value", "name": "highest risk that a row is found", "nameLocation": "middle",
                  "nameGap": 28},
        "yAxis": {"type": "value", "name": "loss (NCP)"},
        "series": [
            {"type": "scatter", "name": name, "data": data, "symbolSize": 14, "symbol": shapes[i % len(shapes)],
             "label": {"show": True, "position": "top", "formatter": "{b}"}}
            for i, (name, data) in enumerate(series.items())
        ],
    }  # fmt: skip


class _SideBySide:
    """A comparison of releases with the table: figures, distributions, heat maps of two columns, rows of a group."""

    def __init__(self, window: Any) -> None:
        self.window = window

    def draw(self) -> None:
        """Draw the choices, then the comparison."""
        task = self.window.task
        names = {i: f"Release {i + 1}: {request_in_words(r['settings'])}" for i, r in enumerate(task.releases)}
        asked = [r["settings"] for r in task.releases]
        named = {n for settings in asked for role in ("quasi_identifiers", "sensitive") for n in settings.get(role, ())}
        columns = [c["name"] for c in task.columns if c["name"] in named]
        last = len(names) - 1
        with ui.row().classes("wb-wide"):
            self.a = ui.select(names, value=max(last - 1, 0), label="One release").style("min-width: 18rem")
            self.b = ui.select(names, value=last, label="Another").style("min-width: 18rem")
            self.column = ui.select(columns, value=columns[0], label="Column").style("min-width: 10rem")
            other = columns[1] if len(columns) > 1 else columns[0]
            self.other = ui.select(columns, value=other, label="Heat map with").style("min-width: 10rem")
            self.number = ui.number("Equivalence class, the smallest is 1", value=1, min=1, step=1, format="%d").style(
                "width: 16rem"
            )
        ui.button("Show", on_click=self.show).props("no-caps outline")
        self.place = ui.column().classes("wb-wide")

    async def show(self) -> None:
        """Run all jobs of the comparison and draw the results."""
        task, ask = self.window.task, self.window.ask
        chosen = sorted({self.a.value, self.b.value})
        made = [(i, task.releases[i]) for i in chosen]
        self.place.clear()
        bars: dict[str, list[list[Any]]] = {}
        for i, one in made:
            found = await ask("distributions", source=task.source, release=one["output"], column=self.column.value)
            if found is None:
                return
            bars |= {"the table": found["before"], f"release {i + 1}": found["after"]}
        pair = [self.column.value, self.other.value]
        heats = [("the table", None)] + [(f"release {i + 1}", one["output"]) for i, one in made]
        maps = (
            {n: await ask("heat", source=task.source, release=r, columns=pair) for n, r in heats}
            if pair[0] != pair[1]
            else {}
        )
        last = made[-1][1]
        group = await ask("groups", source=task.source, release=last["output"], settings=last["settings"],
                          number=int(self.number.value or 1) - 1)  # fmt: skip
        with self.place:
            with ui.row().classes("wb-wide"):
                for i, one in made:
                    _figures(f"Release {i + 1}", one)
            with ui.row().classes("wb-wide"):
                for name, held in bars.items():
                    chart = ui.echart(_bars(f"{self.column.value}: {name}", held))
                    chart.style("height: 16rem; flex: 1 1 22rem; min-width: 0")
            with ui.row().classes("wb-wide"):
                for name, heat in maps.items():
                    if heat is not None:
                        chart = ui.echart(_heat(f"{pair[0]} and {pair[1]}: {name}", heat))
                        chart.style("height: 22rem; flex: 1 1 22rem; min-width: 0")
            if group is not None:
                _group(group)


def _figures(title: str, made: dict[str, Any]) -> None:
    from shoal.workbench.release_step import lines

    with ui.card().classes("wb-card").style("flex: 1 1 20rem; width: auto"):
        ui.label(title).style("font-weight: 600")
        for line in lines(made["facts"]):
            ui.label(line)


def _bars(title: str, held: list[list[Any]]) -> dict[str, Any]:
    return {
        "animation": False, "title": {"text": title, "textStyle": {"fontSize": 14}}, "aria": {"enabled": True},
        "tooltip": {"trigger": "axis"}, "grid": {"left": 60, "right": 20, "top": 40, "bottom": 60},
        "xAxis": {"type": "category", "data": [v for v, _ in held], "axisLabel": {"rotate": 40}},
        "yAxis": {"type": "value", "name": "rows"}, "series": [{"type": "bar", "data": [n for _, n in held]}],
    }  # fmt: skip


def _heat(title: str, heat: dict[str, Any]) -> dict[str, Any]:
    most = max((n for *_, n in heat["cells"]), default=1)
    return {
        "animation": False, "title": {"text": title, "textStyle": {"fontSize": 14}}, "aria": {"enabled": True},
        "tooltip": {}, "grid": {"left": 110, "right": 20, "top": 40, "bottom": 90},
        "xAxis": {"type": "category", "data": heat["a"], "axisLabel": {"rotate": 40}},
        "yAxis": {"type": "category", "data": heat["b"]},
        "visualMap": {"min": 0, "max": most, "calculable": True, "orient": "horizontal", "left": "center", "bottom": 0},
        "series": [{"type": "heatmap", "data": heat["cells"]}],
    }  # fmt: skip


def _group(group: dict[str, Any]) -> None:
    ui.html("<h3>The rows of one equivalence class</h3>", sanitize=False)
    note(f"Class {group['number'] + 1:,} of {group['classes']:,}, from the smallest; the last release.")
    fits = f"{group['fit']:,} row{'s' if group['fit'] != 1 else ''} of the table fit what it publishes"
    with ui.row().classes("wb-wide").style("align-items: start"):
        _rows_of(f"Before: {fits}", group["before_columns"], group["before"])
        _rows_of(f"After: the {group['size']:,} rows of the class", group["columns"], group["rows"])


def _rows_of(title: str, columns: list[str], held: list[list[str]]) -> None:
    """Up to 50 rows under a title."""
    named = [{"name": f"c{i}", "label": c, "field": f"c{i}", "align": "left"} for i, c in enumerate(columns)]
    rows = [{"id": n, **{f"c{i}": v for i, v in enumerate(row)}} for n, row in enumerate(held)]
    with ui.column().style("flex: 1 1 24rem; min-width: 0"):
        ui.label(title).style("font-weight: 600")
        with scrolling(title):
            ui.table(columns=named, rows=rows, row_key="id", pagination=10).props("dense flat bordered")
