"""The workbench's step Places: tiles and clusters of points, and regions of areas, drawn without an external map."""

from __future__ import annotations

import html
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.workbench.models_step import whole
from shoal.workbench.open_step import copied_out, note
from shoal.workbench.projects import existing, placing


def draw(window: Any) -> None:
    """Draw the panel."""
    ui.html("<h2>Points: tiles or clusters</h2>", sanitize=False)
    _points(window)
    ui.html("<h2>Areas: zip codes or counties merged into regions</h2>", sanitize=False)
    areas(window)


def _last_result(
    window: Any,
    half: str,
    action: str,
    worded: Callable[[dict[str, Any]], str],
    drawn: Callable[[dict[str, Any]], None],
) -> tuple[Any, Callable[[dict[str, Any], dict[str, Any] | None], None]]:
    """The button that starts the work of one half of the page, and below it the last result, if there is one.

    half   its name in the task: "points" or "areas"
    worded   the result in a sentence;  drawn: draws it; both take the request with its answer as "found"

    Returns the work of the button, and a function that keeps and shows an answer, unless the work failed (None).
    """
    task, work = window.task, window.long_work(action)
    said = ui.label().props("role=status")
    place = ui.column().classes("wb-wide")

    def show() -> None:
        said.set_text(worded(task.placed[half]))
        place.clear()
        with place:
            drawn(task.placed[half])

    def keep(asked: dict[str, Any], found: dict[str, Any] | None) -> None:
        if found is None:
            return
        task.placed[half] = {**asked, "found": found}
        if not place.is_deleted:
            show()
        window.changed()  # other windows, and a page that was loaded again meanwhile, show it too

    if half in task.placed:
        show()
    return work, keep


def _points(window: Any) -> None:
    """Fields for two columns of coordinates of the open table."""
    task = window.task
    numbers = [c["name"] for c in task.columns if "number" in c["kind"] and c["distinct"] > 20] if task.source else []
    if len(numbers) < 2:
        ui.label("Open a table with two columns of coordinates, such as longitude and latitude.")
        return
    last = task.placed.get("points", {})
    x = last.get("x") or next((n for n in numbers if n.lower().startswith(("lon", "lng", "x"))), numbers[0])
    y = last.get("y") or next(
        (n for n in numbers if n.lower().startswith(("lat", "y")) and n != x),
        numbers[1] if numbers[1] != x else numbers[0],
    )
    with ui.row().classes("wb-wide").style("align-items: end"):
        xs = ui.select(numbers, value=x, label="x, or longitude").style("min-width: 10rem")
        ys = ui.select(numbers, value=y, label="y, or latitude").style("min-width: 10rem")
        ways = {"tiles": "Tiles (rectangles)", "clusters": "Clusters"}
        way = ui.toggle(ways, value=last.get("way", "tiles")).props("no-caps")
        k = ui.number(
            "At least so many points in each", value=last.get("k", task.settings.get("k", 5)), min=1, step=1,
            format="%d",
        ).style("width: 14rem")  # fmt: skip
        named = x.lower().startswith(("lon", "lng")) and y.lower().startswith("lat")
        degrees = ui.switch("Degrees of longitude and latitude: distances in km", value=last.get("degrees", named))
    work, keep = _last_result(
        window, "points", "Draw", lambda held: _outcome(held["found"], held["way"]), lambda held: _grouped(task, **held)
    )

    async def run() -> None:
        least = whole(k.value)
        if least is None or least < 1:
            window.say("The least number of points in each is a whole number, at least 1.", bad=True)
            return
        asked = {"x": xs.value, "y": ys.value, "way": way.value, "k": least, "degrees": degrees.value}
        with work.running("grouping the points"):
            keep(asked, await window.ask("places", long=True, source=task.source, **asked))

    work.start.on_click(run)


def _grouped(task: Any, x: str, y: str, way: str, k: int, degrees: bool, found: dict[str, Any]) -> None:
    """The picture of the points in tiles or clusters, and the command that publishes these."""
    picture = ui.echart(_picture(found, x, y)).style("height: 34rem; width: 100%")
    picture.props('role=img aria-label="Map of the points"')
    if found["shown"] < found["points"]:
        note(f"{found['shown']:,} of {found['points']:,} points are drawn.")
    of_database = {"table", "query"} & set(task.reading)
    _publish(None if of_database else placing(task.table, x, y, way, k, degrees, task.reading), way)


def _outcome(found: dict[str, Any], way: str) -> str:
    """The number of tiles or clusters, the worst of them, and whether a better one is possible."""
    cost, bound = found["cost"], found["bound"]
    unit = " km" if found["unit"] == "km" else ""
    worst = f"The largest tile has {cost:,.6g} points" if way == "tiles" else f"The widest radius is {cost:.4g}{unit}"
    best = "and nothing less is possible" if cost <= bound * (1 + 1e-9) else f"and less than {bound:,.4g} is impossible"
    return f"{found['groups']:,} {way}, the smallest of {found['smallest']:,} points. {worst}, {best}."


def _publish(command: str | None, what: str) -> None:
    """The command that makes the files; the page itself only draws a picture."""
    if command is None:
        note(f"To publish the {what}, first save the table of the database as a file.")
        return
    ui.label(f"This page draws the {what}. To publish them, with a certificate, run this command:")
    copied_out(command, "bash", f"Command for the {what}")


def areas(window: Any) -> None:
    """Fields for a file of areas; its regions as a map and, for a column with the areas' names, as a hierarchy."""
    task = window.task
    note("Neighboring areas are merged until every region has enough people. The areas come from a map (GeoJSON, "
             "GeoPackage, shapefile), or from a table with another of pairs of neighbors. The map is drawn from the "
             "file's own outlines; nothing is fetched.")  # fmt: skip
    last = task.placed.get("areas", {})
    path = ui.input("Path of the areas (map or table)", value=last.get("areas", "")).classes("wb-wide")
    with ui.row().classes("wb-wide").style("align-items: end"):
        weight = ui.input("Column with the people of an area", value=last.get("weight", "population"))
        weight.style("width: 16rem")
        name = ui.input("Column that names an area (empty: id)", value=last.get("name", "")).style("width: 19rem")
        k = ui.input(
            "Least people in a region; more numbers, more levels",
            value=", ".join(map(str, last.get("k", (5000, 20000)))),
        ).style("width: min(22rem, 100%)")
        layer = ui.input("Layer of the map, if it has several", value=last.get("layer", "")).style("width: 16rem")
    pairs = ui.input("Path of the pairs of neighbors, for a table", value=last.get("edges", "")).classes("wb-wide")
    work, keep = _last_result(
        window,
        "areas",
        "Merge the areas",
        lambda held: _sizes(held["found"]),
        lambda held: _merged(window, held["found"]),
    )

    async def run() -> None:
        try:
            least = [int(part) for part in (k.value or "").split(",")]
        except ValueError:
            least = []
        if not least or least[0] < 1 or least != sorted(set(least)):
            window.say("The least people in a region are whole numbers that rise, separated by commas: 5000, 20000.",
                       bad=True)  # fmt: skip
            return
        areas, neighbors = existing(path.value or ""), existing(pairs.value or "")
        if areas is None or not areas.is_file() or (pairs.value and (neighbors is None or not neighbors.is_file())):
            window.say("There is no file of that name.", bad=True)
            return
        asked = {
            "areas": str(areas), "edges": str(neighbors or ""), "weight": weight.value or "", "name": name.value or "",
            "layer": layer.value or "", "k": least,
        }  # fmt: skip
        with work.running("merging the areas"):
            made = {"folder": str(task.folder / "regions"), "stem": secrets.token_hex(4)}
            keep(asked, await window.ask("regions", long=True, **made, **asked))

    work.start.on_click(run)


def _sizes(found: dict[str, Any]) -> str:
    """The number of regions and their sizes."""
    out = f" {found['left_out']:,} areas are left out: alone, they are too small." if found["left_out"] else ""
    return (
        f"{found['areas']:,} areas become {found['regions']:,} regions, and more than {found['regions_at_most']:,} "
        f"cannot exist; the smallest has {found['smallest']:,}, the largest {found['largest']:,}.{out}"
    )


def _merged(window: Any, found: dict[str, Any]) -> None:
    """The map of each level of the regions, and a button that makes a hierarchy of them."""
    quasi = window.task.named("quasi_identifiers") if window.task.source else []
    if quasi:
        with ui.row().style("align-items: end"):
            column = ui.select(quasi, value=next((c for c in quasi if "zip" in c.lower()), quasi[0]),
                               label="Column with the areas").style("min-width: 14rem")  # fmt: skip
            ui.button("Use the regions as its hierarchy", on_click=lambda: use(window, column.value, found)).props(
                "no-caps outline"
            )
    for level, (page, least) in enumerate(zip(found["maps"], found["k"], strict=False), 1):
        ui.label(f"Level {level}: at least {least:,} in a region").style("font-weight: 600")
        text = html.escape(Path(page).read_text("utf-8"), quote=True)
        style = "width: 100%; height: 34rem; border: 1px solid #6d8790; background: white"
        ui.html(f'<iframe title="Map of the regions of level {level}" sandbox="allow-scripts" srcdoc="{text}" '
                f'style="{style}"></iframe>', sanitize=False).classes("wb-wide")  # fmt: skip
    _publish(found["command"], "regions")


def use(window: Any, column: str, found: dict[str, Any]) -> None:
    """Add the regions to the request as the classes of a column."""
    held = window.task.settings.get("hierarchies", {})
    window.say(f"The regions are the hierarchy of {column}, and values are published as its classes.")
    window.set("Hierarchies", "Models", "Release", publish="hierarchy",
               hierarchies={**held, column: found["hierarchy"]})  # fmt: skip


def _picture(found: dict[str, Any], x: str, y: str) -> dict[str, Any]:
    """Points, colored by group; tiles as areas."""
    areas = [[{"coord": [b[0], b[1]]}, {"coord": [b[2], b[3]]}] for b in found["boxes"]]
    groups: dict[int, list[list[float]]] = {}
    for px, py, label in found["sample"]:
        groups.setdefault(label % 12, []).append([px, py])
    style = {"color": "transparent", "borderColor": "#557", "borderWidth": 1}
    series = [
        {
            "type": "scatter",
            "large": True,
            "symbolSize": 4,
            "data": data,
            **({"markArea": {"silent": True, "itemStyle": style, "data": areas}} if i == 0 else {}),
        }
        for i, data in enumerate(groups.values())
    ]
    return {
        "animation": False, "aria": {"enabled": True}, "grid": {"left": 70, "right": 20, "top": 35, "bottom": 50},
        "xAxis": {"type": "value", "name": x, "scale": True, "nameLocation": "middle", "nameGap": 28},
        "yAxis": {"type": "value", "name": y, "scale": True},
        "dataZoom": [{"type": "inside"}, {"type": "inside", "orient": "vertical"}],
        "series": series,
    }  # fmt: skip
