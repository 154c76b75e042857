"""The pictures of a crosswalk for its report, as text that stands in a page."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

from shoal.errors import MissingDependencyError


def pictures(made: Any) -> list[tuple[str, str]]:
    """(what it shows, SVG or an image as data): the map, the scatter or the bars, as far as each can be drawn.

    made  a ``Crosswalk``.  Without matplotlib the text of a map or a scatter is empty: the page says so.
    """
    wanted = [(f"Map: {made.title}", made.drawn_map), (f"Groups: {made.title}", made.picture)]
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for what, drawing in wanted:
            if drawing is None or not made.groups:
                continue
            ending = ".png" if ".png" in drawing.form.endings else ".svg"
            place = Path(folder) / f"drawn{ending}"
            try:
                drawing.fill(place)
            except MissingDependencyError:
                out.append((what, ""))
                continue
            data = place.read_bytes()
            shown = data.decode() if ending == ".svg" else f"data:image/png;base64,{base64.b64encode(data).decode()}"
            out.append((what, shown))
    return out
