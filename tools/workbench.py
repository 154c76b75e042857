"""Walks through the workbench in headless Chromium, pictures every step and looks for faults.

    python tools/workbench.py [--out FOLDER] [--axe FOLDER] [--keep]

On the survey that comes with an installed package; on a desktop and a narrow window, light and dark: a picture of every
step, errors on the console, requests to anywhere else, a page wider than its window, and what axe-core calls a serious
violation, where ``--axe`` names a folder in which ``npm install axe-core`` was run.  Exit status 1 where anything was
found.  It needs Chromium and its driver (Debian: apt-get install chromium chromium-driver), and shoal[workbench] and
selenium; it installs nothing.

``--keep`` puts the pictures of the desktop into the guide.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
GUIDE = ROOT / "docs" / "assets" / "pictures"
SIZES = {"desktop": (1280, 1000), "narrow": (390, 844)}
AXE = """const done = arguments[arguments.length - 1];
axe.run(document).then(found => done(JSON.stringify(found.violations)))"""


TOP = """const text = arguments[0]; window.scrollTo(0, 0);
const found = [...document.querySelectorAll('h2, h3')].find(e => e.innerText === text && e.offsetParent);
if (found) window.scrollTo(0, found.getBoundingClientRect().top - document.querySelector('header').offsetHeight - 8)"""
LOOKED_AT = {  # headings
    "hierarchies": "The tree", "sides": "Side by side", "regions": "Areas: zip codes or counties merged into regions",
}  # fmt: skip


def steps(page: Any, folder: Path) -> Iterator[str]:
    """Goes from step to step as a user does; gives the name of each when it is drawn."""
    from tests.workbench.browser import click, fill, see

    see(page, "survey.csv: 6,366 rows")
    see(page, "Columns")
    yield "open"
    click(page, "2 Roles")
    see(page, "quasi-identifiers together")
    see(page, "age + occupation_husb")
    yield "roles"
    click(page, "3 Models")
    see(page, "What are you worried about?")
    yield "models"
    click(page, "4 Hierarchies")
    click(page, "Show the tree")
    see(page, "of the rows")
    yield "hierarchies"
    click(page, "6 Release")
    click(page, "Make the release")
    see(page, "Verified: it was read back", 600)
    page.find_element(
        "xpath", "//*[contains(@class, 'q-item') and normalize-space(.)='Repeat it without this page']"
    ).click()
    see(page, "shoal anonymize")
    yield "release"
    click(page, "5 Explore")
    click(page, "Try the grid")
    see(page, "no other is better", 300)
    yield "explore"
    page.find_elements("css selector", "[aria-label^='Take k 11']")[0].click()
    click(page, "6 Release")
    click(page, "Make the release")
    click(page, "5 Explore")
    see(page, "Release 2: k = 11", 300)
    click(page, "Show")
    see(page, "The rows of one equivalence class", 60)
    yield "sides"
    click(page, "7 Intruder")
    click(page, "Attack the release")
    see(page, "without the release", 300)
    yield "intruder"
    click(page, "8 Series")
    fill(page, "Folder of the series", str(folder / "months"))
    click(page, "Show the series, or begin one")
    click(page, "Begin the series")
    click(page, "Add survey.csv as month 1")
    see(page, "1 month, 6,366 people", 300)
    yield "series"
    areas, points = places(folder)
    click(page, "1 Open")
    fill(page, "Path of a table, or of a project's folder", str(points))
    click(page, "Open")
    see(page, "visits.csv: 900 rows")
    click(page, "9 Places")
    click(page, "Draw")
    see(page, "the smallest of")
    yield "tiles"
    click(page, "Clusters")
    click(page, "Draw")
    see(page, " clusters, the smallest of")
    yield "clusters"
    fill(page, "Path of the areas (map or table)", str(areas))
    fill(page, "Least people in a region; more numbers, more levels", "5000, 20000")
    click(page, "Merge the areas")
    see(page, "cannot exist", 300)
    yield "regions"


def places(folder: Path) -> tuple[Path, Path]:
    """Made up: areas on a crooked grid with people in them, and visits with a place, a zip code and an illness."""
    rng = np.random.default_rng(4)
    side, features = 9, []
    corner = rng.normal(0, 0.18, (side + 1, side + 1, 2)) + np.stack(np.indices((side + 1, side + 1)), axis=-1)
    corner = corner * (0.05, 0.04) + (-72.0, 41.5)
    for i in range(side):
        for j in range(side):
            ring = [corner[a, b].round(5).tolist() for a, b in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1), (i, j))]
            about = {"id": f"0{6000 + side * i + j}", "population": int(rng.lognormal(7.8, 0.9))}
            shape = {"type": "Polygon", "coordinates": [ring]}
            features.append({"type": "Feature", "properties": about, "geometry": shape})
    areas, points = folder / "areas.geojson", folder / "visits.csv"
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    where = rng.normal((-71.78, 41.68), (0.09, 0.07), (900, 2)).round(4)
    lines = [
        f"{x},{y},0{6000 + rng.integers(side * side)},{rng.integers(18, 90)},{rng.choice(['flu', 'gout', 'burn'])}"
        for x, y in where
    ]
    points.write_text("longitude,latitude,zip,age,illness\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return areas, points


def looked(page: Any, axe: str | None) -> list[str]:
    """What is wrong with what the page shows now."""
    found = []
    wide = page.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        found.append(f"{wide} pixels wider than the window")
    found += [e["message"] for e in page.get_log("browser") if e["level"] == "SEVERE"]
    if axe is not None:
        page.execute_script(axe)
        for fault in json.loads(page.execute_async_script(AXE)):
            if fault["impact"] in ("serious", "critical"):
                places = "; ".join(node["html"][:160] for node in fault["nodes"][:3])
                found.append(f"{fault['impact']}: {fault['id']}, {len(fault['nodes'])} times: {places}")
    return found


def walk(size: str, dark: bool, out: Path, axe: str | None, kept: Callable[[str], Path] | None) -> list[str]:
    """The whole way in one window; what was found wrong."""
    from tests.workbench.browser import addresses, chromium, click, served, until

    found = []
    look = f"{size}-{'dark' if dark else 'light'}"
    with (
        tempfile.TemporaryDirectory() as folder,
        served("--demo", folder=Path(folder)) as address,
        chromium(None, SIZES[size]) as page,
    ):
        page.set_window_size(*SIZES[size])  # at its start Chromium makes no window narrower than 500 pixels
        page.set_script_timeout(60)
        page.get(address)
        here = address.split("//")[1].split("/")[0]
        if dark:
            click(page, "Light or dark")
            until(lambda: page.find_elements("css selector", "body.body--dark"), "it stays light")
        for name in steps(page, Path(folder)):
            time.sleep(1)
            close = page.find_elements("css selector", ".q-notification button")
            if close:
                close[0].click()
                time.sleep(1)
            page.execute_script(TOP, LOOKED_AT.get(name))
            time.sleep(0.3)
            page.save_screenshot(str(out / f"{name}-{look}.png"))
            if kept is not None and name != "clusters":  # the guide shows tiles
                page.save_screenshot(str(kept(name)))
            found += [f"{name}, {look}: {fault}" for fault in looked(page, axe)]
        local = (f"http://{here}/", f"ws://{here}/", "data:", "blob:")
        found += [f"{look}: asked {a}" for a in addresses(page) if not a.startswith(local)]
    return found


def main() -> int:
    """Every size and both colours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the pictures; a temporary one when not given")
    parser.add_argument("--axe", type=Path, help="folder in which npm install axe-core was run")
    parser.add_argument("--keep", action="store_true", help="pictures for the guide")
    parser.add_argument("--only", help="one look, such as narrow-dark")
    given = parser.parse_args()
    axe = None
    if given.axe is not None:
        axe = (given.axe / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        out = given.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        for size in SIZES:
            for dark in (False, True):
                look = f"{size}-{'dark' if dark else 'light'}"
                if given.only in (None, look):
                    keep = given.keep and look == "desktop-light"
                    found += walk(size, dark, out, axe, (lambda n: GUIDE / f"workbench-{n}.png") if keep else None)
                    print(f"{look}: walked", flush=True)
    print("\n".join(found) or "nothing found")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
