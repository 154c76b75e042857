"""Tiles of real points: how many, how large, how small on the map, how fast; and ten million points.

python benchmarks/tiles.py          everything, two to three minutes
python benchmarks/tiles.py real     only the real points
python benchmarks/tiles.py states   only points drawn around the counties, no tile in two states
python benchmarks/tiles.py large    only the large random ones
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal
from shoal.problems.tiles import split

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "gps"
TILES_GOAL = {
    ("UK", 5): 27_900, ("UK", 50): 2_795, ("UK", 500): 280, ("NYC", 5): 41_600, ("NYC", 50): 5_860, ("NYC", 500): 585,
}  # fmt: skip


def real_points() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Road accidents in Great Britain, and pick-ups around New York with their counts."""
    uk = pl.read_csv(DATA / "uk_road_accidents.csv.gz")
    nyc = pl.read_csv(DATA / "nyc_uber_pickups.csv.gz")
    return {
        "UK": (uk.select("lng", "lat").to_numpy(), None),
        "NYC": (nyc.select("lng", "lat").to_numpy(), nyc["count"].to_numpy()),
    }


def timed(*arguments: Any, **options: Any) -> tuple[Any, float, float]:
    """The tiles, seconds by the clock, and seconds of the processor, which other work on the machine disturbs less."""
    clock, processor = time.perf_counter(), time.process_time()
    found = split(*arguments, **options)
    return found, time.perf_counter() - clock, time.process_time() - processor


def real() -> None:
    if not DATA.is_dir():
        print(f"skipped: the points are not at {DATA}")
        return
    split(np.random.default_rng(0).normal(size=(500, 2)), 5, method="least_waste")  # compile
    split(np.random.default_rng(0).normal(size=(500, 2)), 5, method="kd_tree")
    rows, short = [], []
    for name, (points, weights) in real_points().items():
        for k in (5, 50, 500):
            half = {}
            for method, objective in (
                ("mondrian", "tiles"), ("kd_tree", "tiles"), ("proportional", "max"),
                ("auto", "tiles"), ("auto", "max"), ("auto", "perimeter"), ("auto", "sumsq"),
            ):  # fmt: skip
                found, clock, processor = timed(
                    points, k, weights, method, objective=objective, coordinates="geographic"
                )
                facts = found.certificate.details
                half[method, objective] = facts["half_perimeter"]
                rows.append(
                    {
                        "points": name,
                        "k": k,
                        "method": method if method != "auto" else f"auto, {objective}",
                        "tiles": len(found),
                        "at most": facts["tiles_at_most"],
                        "largest": found.cost,
                        "at least": int(found.certificate.lower_bound),
                        "squares / k^2": facts["squares"] / k**2,
                        "squares at least": facts["squares_bound"] / k**2,
                        "half perimeter, km": facts["half_perimeter"],
                        "against Mondrian": f"{100 * (facts['half_perimeter'] / half['mondrian', 'tiles'] - 1):+.0f} %",
                        "seconds": clock,
                        "processor": processor,
                    }
                )
                if method == "auto" and processor > 5:
                    short.append(f"{name}, k = {k}, {objective}: {processor:.1f} processor seconds, over 5.")
                if method == "auto" and objective == "tiles" and len(found) < TILES_GOAL[name, k]:
                    short.append(f"{name}, k = {k}: {len(found):,} tiles, under the goal of {TILES_GOAL[name, k]:,}.")
    record(
        "Tiles of real points",
        "python benchmarks/tiles.py real",
        rows,
        [
            "at most: tiles that can exist, by counting; at least: no partition has a lighter largest tile. "
            "Half perimeter: of the tight boxes, averaged over the records.",
            "Goals: UK 27,900, 2,795 and 280 tiles (k = 500: largest 501), NYC 41,600, 5,860 and 585; half perimeters "
            "below Mondrian's; each in at most 5 s.",
            *(short or ["All goals are met, in processor seconds; the clock's include waiting for other work."]),
        ],
    )


def states() -> None:
    nodes = pl.read_csv(DATA.parent / "us_counties" / "nodes.csv")
    random, people = np.random.default_rng(1), nodes["population"].to_numpy()
    home = random.choice(len(people), 91_702, p=people / people.sum())
    scattered = nodes.select("lng", "lat").to_numpy()[home] + random.normal(scale=0.15, size=(len(home), 2))
    state = nodes["state"].to_numpy()[home]
    asked = {"coordinates": "geographic", "boundary": state}
    split(scattered, 50, **asked)  # compile
    rows = []
    for digits in (5, 3, 2):
        for k in (5, 50):
            found, clock, processor = timed(np.round(scattered, digits), k, **asked)
            rows.append(
                {
                    "digits": digits,
                    "k": k,
                    "tiles": len(found),
                    "at most": found.certificate.details["tiles_at_most"],
                    "largest": found.cost,
                    "seconds": clock,
                    "processor": processor,
                }
            )
    short = [r for r in rows if r["digits"] > 2 and (r["tiles"] < 0.98 * r["at most"] or r["processor"] > 5)]
    record(
        "Tiles within states",
        "python benchmarks/tiles.py states",
        rows,
        [
            "91,702 points drawn around the counties' centers by population (deviation 0.15 degrees), rounded to so "
            "many digits of a degree, and the state of the county: no tile holds points of two. At most: by counting, "
            "state by state.",
            f"Goal: within 2 % of it in 5 processor seconds with 3 digits or more; {len(short) or 'no'} rows miss it.",
        ],
    )


def large() -> None:
    rng = np.random.default_rng(1)
    rows = []
    for n, method in ((1_000_000, "auto"), (1_000_000, "kd_tree"), (10_000_000, "kd_tree")):
        points = rng.normal(size=(n, 2))
        split(points[:3000], 10, method="kd_tree" if method == "kd_tree" else "least_waste")  # compile
        found, clock, processor = timed(points, 10, method=method)
        rows.append(
            {
                "points": n,
                "method": method,
                "k": 10,
                "tiles": len(found),
                "at most": found.certificate.details["tiles_at_most"],
                "largest": found.cost,
                "seconds": clock,
                "processor": processor,
            }
        )
    record(
        "Tiles of many points",
        "python benchmarks/tiles.py large",
        rows,
        ["Normal random points, all distinct. Goal: ten million by kd_tree in at most 20 s."],
    )


if __name__ == "__main__":
    print("shoal", shoal.__version__)
    asked = sys.argv[1:] or ["real", "states", "large"]
    for part in asked:
        {"real": real, "states": states, "large": large}[part]()
