"""Makes every page that shoal writes from generated data, opens each in headless Chromium and looks for faults.

    python tools/pages.py --modules FOLDER [--out FOLDER] [--only report,tiles] [--site FOLDER] [--keep]

At desktop, phone and print size, in light and dark: a screenshot, errors on the console, requests to anywhere, a page
wider than its window, and what axe-core calls a violation.  Exit status 1 where anything was found, 2 where something
that it needs is missing; it installs nothing.  It needs Chromium (Debian: apt-get install chromium), Node, and a folder
in which `npm install playwright-core axe-core` was run; of shoal the extras plot and geo.

``--keep`` puts what the first window shows of some pages into the guide.  The people, places and names on the pages are
drawn at random, and say so.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl

import shoal

SCRIPT = Path(__file__).with_name("pages.mjs")
ROWS = 2000
KEPT = ("report-ranges", "explore", "map-tiles", "map-regions")  # pages that the guide shows
GUIDE = Path(__file__).parents[1] / "docs" / "assets" / "pictures"


def people(rng: np.random.Generator) -> pl.DataFrame:
    """A table of people who do not exist."""
    age = np.clip(rng.normal(45, 18, ROWS), 18, 90).astype(int)
    town = rng.choice(["Ulmhausen", "Bonnheim", "Kielstadt", "Trierberg"], ROWS, p=[0.4, 0.3, 0.2, 0.1])
    job = np.where(rng.random(ROWS) < 0.6, np.char.add(town, " mill"), rng.choice(["inn", "school", "farm"], ROWS))
    ill = rng.choice(["flu (generated)", "gout (generated)", "asthma (generated)", "none (generated)"], ROWS)
    note = rng.choice(["generated row, first kind", "generated row, second kind"], ROWS)
    return pl.DataFrame({"age": age, "town": town, "job": job, "illness": ill, "note": note})


def tables(folder: Path, rng: np.random.Generator) -> None:
    """Reports of tables, the grid of choices and the comparison."""
    frame = people(rng)
    source = folder / "generated-people.csv"
    frame.write_csv(source)
    asked = {
        "quasi_identifiers": ["age", "town", "job"],
        "sensitive": ["illness"],
        "insensitive": ["note"],
        "k": 5,
        "l": 2,
    }
    made = {}
    for publish, more in (
        ("stars", {}),
        ("ranges", {"range_step": {"age": 5}}),
        ("hierarchy", {"hierarchies": {"age": "intervals:5,10,20", "town": "stars", "job": "stars"}}),
    ):
        made[publish] = shoal.anonymize(source, publish=publish, effort="fast", seed=1, **asked, **more)
        made[publish].write(folder / f"{publish}.csv")
        made[publish].report(folder / f"report-{publish}.html")
    grid = {name: value for name, value in asked.items() if name not in ("k", "l")}
    found = shoal.explore(
        source, {**grid, "k": 3, "effort": "fast", "seed": 1}, k=[3, 5, 11], l=[1, 2], publish=["stars", "ranges"]
    )
    found.report(folder / "explore.html")
    held = {name: grid[name] for name in ("quasi_identifiers", "sensitive")}
    shoal.compare(source, {n: made[n] for n in ("stars", "ranges")}, **held).report(folder / "compare.html")


def points(folder: Path, rng: np.random.Generator) -> None:
    """Reports and maps of tiles and clusters."""
    frame = pl.DataFrame(
        {"lng": 9 + rng.normal(size=900) / 5, "lat": 48 + rng.normal(size=900) / 7, "age": rng.integers(18, 90, 900)}
    )
    frame.write_csv(folder / "generated-points.csv")
    at = frame.select("lng", "lat").to_numpy()
    made = shoal.release(shoal.tiles.split(at, 12, coordinates="geographic", effort="fast"), frame, x="lng", y="lat")
    made.write(folder / "tiles.csv")
    made.report(folder / "report-tiles.html")
    made.map(folder / "map-tiles.html")
    from shoal.model.metric import Metric, Number, Place

    metric = Metric(features=(Place("place"), Number("age", scale=72.0, unit="years")))
    given = (frame.select("lat", "lng").to_numpy(), frame["age"].to_numpy())
    for name in ("gather", "cellular"):
        answer = getattr(shoal.gathering, name)(given, 10, metric=metric)
        made = shoal.release(answer, frame, columns=["age"], place=("lat", "lng"), center="mean")
        made.write(folder / f"{name}.csv")
        made.report(folder / f"report-{name}.html")
        made.map(folder / f"map-{name}.html")


def areas(folder: Path, rng: np.random.Generator) -> None:
    """The report and the map of regions, from squares of a made-up country."""
    from shoal.engines.geography import read

    side, features = 12, []
    for i in range(side * side):
        x, y = 9 + (i % side) / 10, 48 + (i // side) / 10
        ring = [[x, y], [x + 0.1, y], [x + 0.1, y + 0.1], [x, y + 0.1], [x, y]]
        own = {"id": f"g{i:03}", "name": f"Generated {i}", "people": int(rng.integers(100, 2000))}
        features.append({"type": "Feature", "properties": own, "geometry": {"type": "Polygon", "coordinates": [ring]}})
    source = folder / "generated-areas.geojson"
    source.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    given = read(source, id="id")
    answer = shoal.regions.merge(given.edges, given.whole("people"), 8000, effort="fast", seed=1, unit="people")
    made = shoal.release(answer, given, weight="people", id="id")
    made.write(folder / "regions.csv")
    made.report(folder / "report-regions.html")
    made.map(folder / "map-regions.html")


def names(folder: Path, rng: np.random.Generator) -> None:
    """Reports of labels and intervals."""
    frame = pl.DataFrame(
        {"name": [f"Generated {i}" for i in range(200)], "people": np.minimum(rng.zipf(1.6, 200), 2000)}
    )
    made = shoal.release(shoal.labels.cover(frame["people"], 60), frame, label="name", count="people")
    made.write(folder / "labels.csv")
    made.report(folder / "report-labels.html")
    ages = pl.DataFrame({"age": rng.integers(0, 100, 1500)})
    made = shoal.release(shoal.intervals.cut(ages["age"], None, 40, "range"), ages, value="age")
    made.write(folder / "intervals.csv")
    made.report(folder / "report-intervals.html")


MAKERS: tuple[Callable[[Path, np.random.Generator], None], ...] = (tables, names, areas, points)


def served(site: Path) -> list[dict[str, str]]:
    """The pages of a guide, by the addresses under which this process serves them to this machine alone."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Every request is the browser's."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    found = [p.parent.relative_to(site).as_posix() for p in sorted(site.rglob("index.html"))]
    return [
        {"name": f"site-{name.replace('/', '-').strip('.') or 'home'}", "url": f"{home}{name.strip('.')}", "site": home}
        for name in found
    ]


def needed(modules: Path) -> tuple[list[str], str]:
    """What is missing, in words, and the path of Chromium."""
    chromium = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    missing = []
    if chromium is None:
        missing.append("Chromium: on Debian, apt-get install chromium")
    if shutil.which("node") is None:
        missing.append("Node: on Debian, apt-get install nodejs")
    there = modules / "node_modules"
    packages = [name for name in ("playwright-core", "axe-core") if not (there / name).is_dir()]
    missing += [f"{name}: in the folder of --modules, npm install {name}" for name in packages]
    return missing, chromium or ""


def main() -> int:
    """Make, open, look; print a line for each look that found something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, default=Path(), help="folder with node_modules")
    parser.add_argument("--out", type=Path, help="folder of the pages and pictures; a new one when not given")
    parser.add_argument("--only", default="", help="pages whose names begin so, separated by commas")
    parser.add_argument("--site", type=Path, help="folder of a guide that was built")
    parser.add_argument("--keep", action="store_true", help="pictures for the guide")
    given = parser.parse_args()
    missing, chromium = needed(given.modules)
    if missing:
        print("this needs " + "; ".join(missing) + ". Nothing was installed.", file=sys.stderr)
        return 2
    out = given.out or Path(tempfile.mkdtemp(prefix="shoal-pages-"))
    shots = out / "shots"
    shots.mkdir(parents=True, exist_ok=True)
    for make in MAKERS:
        make(out, np.random.default_rng(7))
    pages = [{"name": p.stem, "path": str(p.resolve())} for p in sorted(out.glob("*.html"))]
    if given.keep:
        pages = [{**p, "keep": str(GUIDE / f"{p['name']}.png")} if p["name"] in KEPT else p for p in pages]
    if given.site is not None:
        pages += served(given.site.resolve())
    wanted = tuple(given.only.split(",")) if given.only else ("",)
    pages = [p for p in pages if p["name"].startswith(wanted)]
    task = out / "task.json"
    places = {"modules": str(given.modules.resolve()), "shots": str(shots.resolve())}
    task.write_text(json.dumps({"chromium": chromium, **places, "pages": pages}))
    looks = faults = 0
    with subprocess.Popen(["node", str(SCRIPT), str(task)], stdout=subprocess.PIPE, text=True) as node:
        for line in node.stdout or ():  # told as they are found: a long run may be stopped
            look = json.loads(line)
            looks, faults = looks + 1, faults + len(look["faults"])
            for fault in look["faults"]:
                print(f"{look['page']} {look['size']} {look['scheme']}: {fault}", flush=True)
    if node.returncode or looks != 5 * len(pages):
        return 1
    print(f"{len(pages)} pages, {looks} looks, {faults} faults; pictures in {shots}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
