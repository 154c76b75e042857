"""Crosswalks without end: points, areas, labels or ordered values, options and formats at random, by the command line.

``tried(seed, folder)`` says what came of one: ``refused``, or ``verified`` where ``shoal verify`` accepts what was
written, alone and with its original; whatever else came is raised.
"""

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from tests.commands import run
from tests.fuzz.releases import POOLS

ENDINGS = [".csv", ".csv", ".parquet", ".xlsx", ".sav"]
ZONE = dt.timezone(dt.timedelta(hours=2))
REFUSED = (2, 3)
Words = list[Any]


def tried(seed: int, folder: Path) -> str:
    """What came of one."""
    rng = random.Random(seed)
    drawn = rng.choice([tiles, regions, labels, intervals])
    command, sources, options = drawn(rng, rng.choice([6, 15, 40]), folder)
    out = folder / f"out{rng.choice(ENDINGS)}"
    asked = [command, *sources, *options, "--effort", rng.choice(["fast", "fast", "balanced"]), "-o", out]
    asked += [word for word in ("--json", "--no-bound") if rng.random() < 0.15]
    done = run(*asked)
    if done.returncode in REFUSED:
        return "refused"
    original = [word for source in sources for word in ("--original", source)]
    for words in (asked, ["verify", out], ["verify", out, *original]):
        done = done if words is asked else run(*words)
        if done.returncode:
            raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}: {done.said[-600:]}")
    return "verified"


def some(rng: random.Random, share: float, *options: Words) -> Words:
    """Each of the options with this probability."""
    return [word for option in options if rng.random() < share for word in option]


def saved(rng: random.Random, table: dict[str, Any], path: Path) -> Path:
    """The table in a file of some kind."""
    frame, path = pl.DataFrame(table, strict=False), path.with_suffix(rng.choice(ENDINGS))
    if any(kind == pl.Duration or getattr(kind, "time_zone", None) for kind in frame.schema.values()):
        path = path.with_suffix(".parquet")
    if path.suffix == ".xlsx":
        frame.write_excel(path)
    elif path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    return path


def tiles(rng: random.Random, n: int, folder: Path) -> tuple[str, Words, Words]:
    """Points of a town, or of the whole world."""
    west, east = rng.choice([(-180, 180), (-72, -71), (178, 182)])
    table = {
        "lng": [(rng.uniform(west, east) + 180) % 360 - 180 for _ in range(n)],
        "lat": [rng.uniform(40, 42) for _ in range(n)],
        "state": [rng.choice("ab") for _ in range(n)],
        "illness": [rng.choice("fgh") for _ in range(n)],
        "person": [rng.randint(0, n) for _ in range(n)],
        "records": [rng.randint(1, 4) for _ in range(n)],
        "name": [f"n{i}" for i in range(n)],
    }
    source = saved(rng, table, folder / "points")
    own = ["--table", folder / "places.csv", "--identifiers", "name,person", "--insensitive", "state,records,illness"]
    return "tiles", [source], [
        "--x", "lng", "--y", "lat", "--k", rng.choice([2, 3, 5]),
        *some(
            rng, 0.2,
            ["--weight", "records"], ["--boundary", "state"], ["--person", "person"], ["--grid", 0.5],
            ["--sensitive", "illness", *rng.choice([["--l", 2], ["--distinct-l", 2]])],
            ["--max-width", rng.choice([50, 5000])], ["--extent", "data"], ["--center", "draw"],
            ["--sparse", "leave-out"], ["--objective", rng.choice(["max", "perimeter", "sumsq"])],
            ["--method", rng.choice(["kd_tree", "mondrian", "best_cuts"])],
            ["--map", folder / "map.html"], ["--tiles", folder / "tiles.csv"], own, ["--report", folder / "page.html"],
        ),
    ]  # fmt: skip


def regions(rng: random.Random, n: int, folder: Path) -> tuple[str, Words, Words]:
    """Areas that are nearly a tree, with some further neighbors."""
    names = [f"{rng.choice(['z', 'a, b', '; ', '0', '{'])}{i:03d}" for i in range(n)]
    areas = {
        "id": names,
        "people": [rng.choice([0, rng.randint(1, 50)]) for _ in names],
        "jobs": [rng.randint(0, 9) for _ in names],
        "state": [rng.choice("ab") for _ in names],
        "x": [rng.uniform(0, 9) for _ in names],
        "y": [rng.uniform(0, 9) for _ in names],
        "few": [rng.choice(["no", "no", "no", "yes"]) for _ in names],
        "ill": [rng.randint(0, 3) for _ in names],
        "well": [rng.randint(0, 3) for _ in names],
        "pair": [rng.choice([*[None] * 6, "p", "q"]) for _ in names],
    }
    pairs = [(names[i], names[rng.randrange(i)]) for i in range(1, n) if rng.random() < 0.95]
    pairs += [(one, other) for one, other in zip(rng.choices(names, k=n), rng.choices(names, k=n), strict=True)]
    pairs = [(one, other) for one, other in pairs if one != other]
    edges = {"u": [one for one, _ in pairs], "v": [other for _, other in pairs]}
    sources = [saved(rng, areas, folder / "areas"), saved(rng, edges, folder / "edges")]
    return "regions", sources, [
        "--weight", "people", "--k", rng.choice([10, 60, 150]),
        *some(
            rng, 0.15,
            ["--boundary", "state"], ["--soft-boundary", "state"], ["--fixed", "pair"], ["--apart", "pair"],
            ["--sensitive", "ill,well", "--l", 1], ["--similar", "x"], ["--sum", "jobs"], ["--mean", "jobs"],
            ["--exclude", "few"], ["--compare-prefix", 2], ["--at-most", "areas=6"], ["--regions", 2],
            ["--max-diameter", 6, "--coordinates", "projected"], ["--islands", "join"],
            ["--levels", "300", "--hierarchy", folder / "h.csv"], ["--weight", "jobs", "--k", 5],
            ["--map", folder / "map.html"], ["--report", folder / "page.html"],
        ),
    ]  # fmt: skip


def labels(rng: random.Random, n: int, folder: Path) -> tuple[str, Words, Words]:
    """Names with counts; numbers and moments are names too."""
    source = saved(rng, {"v": values(rng, n), "n": [rng.choice([1, 2, 5, 30]) for _ in range(n)]}, folder / "labels")
    methods = ["fold", "spread", "five_halves", "scheme", "exact"]
    return "labels", [source], [
        "--label", "v", "--k", rng.choice([2, 5, 20]), *some(rng, 0.6, ["--count", "n"]),
        *some(
            rng, 0.2, ["--levels", "30,60", "--hierarchy", folder / "h.csv"],
            ["--method", method := rng.choice(methods), *(["--order", "given"] if method in methods[:2] else [])],
            ["--objective", rng.choice(["count", "squares"])], ["--naming", rng.choice(["largest", "numbers"])],
            ["--plot", folder / "p.svg"], ["--report", folder / "page.html"],
        ),
    ]  # fmt: skip


def intervals(rng: random.Random, n: int, folder: Path) -> tuple[str, Words, Words]:
    """Values in an order."""
    source = saved(rng, {"v": values(rng, n), "n": [rng.choice([1, 2, 5]) for _ in range(n)]}, folder / "values")
    return "intervals", [source], [
        "--value", "v", "--k", rng.choice([2, 5, 20]), *some(rng, 0.6, ["--count", "n"]),
        *some(
            rng, 0.2, ["--levels", "30,60", "--hierarchy", folder / "h.csv"],
            ["--objective", rng.choice(["count", "squares"])], ["--plot", folder / "p.svg"],
            ["--report", folder / "page.html"],
        ),
    ]  # fmt: skip


def values(rng: random.Random, n: int) -> list[Any]:
    """Values of one type, some of which no cell of a sheet gives back."""
    start = dt.datetime(2020, 1, 31, 5, 6)
    kinds: list[Callable[[], Any]] = [
        lambda: rng.randint(0, 99),
        lambda: 2**60 + rng.randint(0, 99),
        lambda: rng.uniform(0, 1) * 10.0 ** rng.choice([0, 17, -9]),
        lambda: Decimal(rng.randint(0, 10**6)) / 1000,
        lambda: dt.date(1850, 1, 1) + dt.timedelta(days=rng.randint(0, 60_000)),
        lambda: str(dt.date(1950, 1, 1) + dt.timedelta(days=rng.randint(0, 9999))),
        lambda: start + dt.timedelta(microseconds=rng.randint(0, 10**14)),
        lambda: start.replace(tzinfo=ZONE) + dt.timedelta(seconds=rng.randint(0, 10**7)),
        lambda: dt.time(rng.randint(0, 23), rng.randint(0, 59), 0, rng.randint(0, 999_999)),
        lambda: dt.timedelta(seconds=rng.randint(0, 10**6)),
        lambda: rng.choice("abcdefgh") + str(rng.randint(0, 9)),
        lambda: rng.choice([*POOLS["marks"], *POOLS["blank"], *POOLS["numerals"], "b", "c", "d, e", "f; g (2)", None]),
        lambda: rng.choice([*POOLS["digits"], *POOLS["bands"], *POOLS["days"], "10.0", "1,000"]),
    ]
    kind = rng.choice(kinds)
    return [kind() for _ in range(n)]
