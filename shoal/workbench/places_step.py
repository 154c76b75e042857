"""Places and points: tiles and clusters of two columns of numbers, drawn without a map from the network."""

from __future__ import annotations

from typing import Any

from nicegui import ui


def draw(window: Any) -> None:
    """The panel."""
    task = window.task
    ui.html("<h2>Places and points</h2>", sanitize=False)
    numbers = [c["name"] for c in task.columns if "number" in c["kind"] and c["distinct"] > 20] if task.source else []
    if len(numbers) < 2:
        ui.label("Open a table with two columns of coordinates, such as longitude and latitude.")
        return
    x = next((n for n in numbers if n.lower().startswith(("lon", "lng", "x"))), numbers[0])
    y = next(
        (n for n in numbers if n.lower().startswith(("lat", "y")) and n != x),
        numbers[1] if numbers[1] != x else numbers[0],
    )
    with ui.row().style("align-items: end"):
        xs = ui.select(numbers, value=x, label="x, or longitude").style("min-width: 10rem")
        ys = ui.select(numbers, value=y, label="y, or latitude").style("min-width: 10rem")
        way = ui.toggle({"tiles": "Tiles (rectangles)", "clusters": "Clusters"}, value="tiles").props("no-caps")
        k = ui.number(
            "At least so many points in each", value=task.settings.get("k", 5), min=1, step=1, format="%d"
        ).style("width: 14rem")
    with ui.row():
        start = ui.button("Draw").props("no-caps")
        ui.button("Stop", on_click=window.works.stop).props("no-caps outline color=negative")
    said = ui.label().props("role=status")
    place = ui.column().classes("wb-wide")

    async def run() -> None:
        start.disable()
        said.set_text("working")
        try:
            found = await window.ask(
                "places", long=True, source=task.source, x=xs.value, y=ys.value, way=way.value, k=int(k.value or 1)
            )
        finally:
            start.enable()
            said.set_text("")
        if found is None:
            return
        said.set_text(
            f"{found['groups']:,} {way.value}, the smallest of {found['smallest']:,} points; cost {found['cost']:.6g} "
            f"{found['unit']}, at least {found['bound']:.6g} is needed."
        )
        place.clear()
        with place:
            ui.echart(_picture(found, xs.value, ys.value)).style("height: 34rem; width: 100%").props(
                'role=img aria-label="Map of the points"'
            )
        if found["shown"] < found["points"]:
            with place:
                ui.label(f"{found['shown']:,} of {found['points']:,} points are drawn.").classes("wb-note")

    start.on_click(run)


def _picture(found: dict[str, Any], x: str, y: str) -> dict[str, Any]:
    """Points, those of one group in one colour; tiles as areas."""
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
        "animation": False, "aria": {"enabled": True}, "grid": {"left": 70, "right": 20, "top": 20, "bottom": 50},
        "xAxis": {"type": "value", "name": x, "scale": True, "nameLocation": "middle", "nameGap": 28},
        "yAxis": {"type": "value", "name": y, "scale": True},
        "dataZoom": [{"type": "inside"}, {"type": "inside", "orient": "vertical"}],
        "series": series,
    }  # fmt: skip
