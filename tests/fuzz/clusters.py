"""Clusters without end: a table, a problem, a distance, a way to publish and a format at random, made, written, judged.

``tried(seed, folder)`` says what came of one; a genuine release that does not verify, or an error that is none of
shoal's, is raised.  ``bent_one(seed, folder)`` bends a statement of a genuine certificate, seals it again, and raises
where that passes as something that was recomputed.
"""

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import polars as pl

import shoal
from shoal.engines.features import FeatureColumns, Features
from tests.fuzz.certificates import bent
from tests.kept import kept, verify

TREE = [["nurse", "health"], ["doctor", "health"], ["smith", "metal"], ["welder", "metal"]]
ENDINGS = [".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx", ".sav", ".dta"]
KINDS = ["integer", "hour", "float", "date", "word", "tree", "sphere", "plane"]
# nobody but the certificate says these, and the judge says so: what was asked, by whom, when, by which method
STATED = {
    ("method",), ("made_at",), ("format",), ("certificate", "bound"), ("certificate", "guarantee"), ("made_by",),
    ("certificate", "details", "mean_distance"), ("certificate", "details", "effort"), ("release", "file"),
    ("certificate", "details", "sum_of_tau"), ("certificate", "details", "repaired"), ("release", "bytes"),
    ("certificate", "details", "centers"), ("parameters", "problem"), ("parameters", "eligible"),
    ("parameters", "max_diameter"), ("certificate", "details", "max_diameter"), ("certificate", "details", "diameter"),
    ("certificate", "details", "cap_met"), ("parameters", "columns"), ("parameters", "place"), ("release", "rows"),
    ("parameters", "hierarchies"), ("parameters", "max_clusters"), ("parameters", "r"), ("parameters", "epsilon"),
    ("parameters", "l"), ("parameters", "distinct_l"), ("parameters", "features"), ("separator",), ("signature",),
    ("seal",), ("certificate", "details", "run"),
}  # fmt: skip


def column(rng: random.Random, kind: str, n: int) -> list[pl.Series]:
    """The column or two of a feature."""
    if kind == "integer":
        return [pl.Series("age", [rng.randint(18, 60) for _ in range(n)])]
    if kind == "hour":
        return [pl.Series("hour", [rng.choice([rng.randint(20, 24), rng.randint(0, 3), 12]) for _ in range(n)])]
    if kind == "float":
        return [pl.Series("pay", [rng.choice([0.1, 1e-3, 17.25, 3e5]) * rng.randint(1, 9) for _ in range(n)])]
    if kind == "date":
        return [pl.Series("seen", [dt.date(2020, 1, 1) + dt.timedelta(days=rng.randint(0, 400)) for _ in range(n)])]
    if kind == "word":
        none = rng.choice([[None], [""], [None], [""], [None, ""]])  # both are for Parquet alone
        words = ["F", "M", *none, "x; y (2)", 'a "b"', "missing", "=1+1"]
        return [pl.Series("sex", [rng.choice(words) for _ in range(n)], dtype=pl.String)]
    if kind == "tree":
        return [pl.Series("job", [rng.choice(TREE)[0] for _ in range(n)])]
    east = rng.choice([0.0, 179.5, -60.0])
    first = [round(rng.gauss(rng.choice([60.0, -10.0]), 1.0), rng.choice([1, 3])) for _ in range(n)]
    second = [round((east + rng.gauss(0, 2.0) + 180) % 360 - 180, rng.choice([1, 3])) for _ in range(n)]
    return [pl.Series("lat", first), pl.Series("lng", second)]


def drawn(rng: random.Random) -> tuple[shoal.Crosswalk, pl.DataFrame]:
    """A release of clusters, and its table."""
    n, kinds = rng.randint(6, 40), rng.sample(KINDS, rng.randint(1, 3))
    if "sphere" in kinds and "plane" in kinds:
        kinds.remove("plane")
    series = [s for kind in kinds for s in column(rng, kind, n)]
    ills = ["flu", "gout", "missing", "a (1); b", "*", rng.choice([None, ""]), rng.choice([None, "asthma"])]
    secret = [pl.Series(name, [rng.choice(ills) for _ in range(n)], dtype=pl.String)
              for name in ["d", "e"][: rng.choice([0, 1, 1, 2])]]  # fmt: skip
    ids = pl.Series("id", [f"person-{i}" for i in range(n)])
    frame = pl.DataFrame([*series, *secret, ids])
    place = ("lat", "lng") if {"sphere", "plane"} & set(kinds) else None
    columns = [s.name for s in series if s.name not in ("lat", "lng")]
    trees = {"job": TREE} if "tree" in kinds else {}
    features = Features.of(
        frame,
        FeatureColumns(
            columns,
            place=place,
            hierarchies=trees,
            plane="plane" in kinds,
            cyclic={"hour": 24} if "hour" in kinds else {},
        ),
    )
    codes = frame.select(pl.col(s.name).rank("dense").fill_null(0) for s in secret).to_numpy() if secret else None
    asked: dict[str, Any] = {"r": rng.randint(1, 6), "epsilon": rng.choice([0.0, 0.0, 0.1, 0.3])}
    if codes is not None and rng.random() < 0.6:
        asked |= {"sensitive": codes, rng.choice(["l", "distinct_l"]): 2}
    if rng.random() < 0.5:
        if rng.random() < 0.3 and "sensitive" not in asked:
            asked["max_clusters"] = rng.randint(1, 5)
        found = shoal.gathering.gather(tuple(features.values), metric=features.metric, **asked)
    else:
        setup = rng.choice([None, 0.0, 0.5])
        found = shoal.gathering.cellular(
            tuple(features.values), metric=features.metric, setup_costs=setup, seed=rng.randint(0, 9), effort="fast",
            **asked,
        )  # fmt: skip
    made = shoal.release(
        found, frame, columns=columns, place=place, hierarchies=trees, sensitive=[s.name for s in secret],
        center=rng.choice(["record", "record", "mean", "medoid"]), keep_order=rng.random() < 0.2,
    )  # fmt: skip
    return made, frame


def tried(seed: int, folder: Path) -> str:
    """What came of one: "verified" or "refused"."""
    rng = random.Random(f"clusters {seed}")
    try:
        made, frame = drawn(rng)
        out, rows = (folder / f"{name}{rng.choice(ENDINGS)}" for name in ("centers", "rows"))
        record = kept(made.write(out, folder / "centers.certificate.json", assignments=rows))
    except (shoal.InfeasibleError, shoal.PolicyError, shoal.InputError):
        return "refused"
    trees = {"job": TREE} if made.parameters["hierarchies"] else {}
    for path in (out, rows):
        for original in (None, frame):
            verdict = verify(path, record, original, hierarchies=trees)
            if not verdict.holds:
                raise AssertionError(f"genuine, and does not verify: {[f for f in verdict.findings if not f.holds]}")
            if b"person-" in path.read_bytes() or "person-" in record.read_text():
                raise AssertionError("a column without a role is in an output")
    return "verified"


def by_one(value: Any) -> list[Any]:
    """A statement bent by as little as can be."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [x for x in (value + 1, max(value - 1, value / 2), value * (1 + 1e-6)) if x != value]
    if isinstance(value, str):
        return [value + "x"]
    return [1, [1]]


def caught(out: Path, record: Path, frame: pl.DataFrame, trees: dict[str, Any], way: tuple[Any, ...]) -> bool:
    """Whether a bent record is refused, found out, or its statement one that nobody recomputes."""
    try:
        verdict = verify(out, record, frame, hierarchies=trees)
    except shoal.ShoalError:
        return True
    if not verdict.holds or any(way[:i] in STATED for i in range(1, len(way) + 1)):
        return True
    how = {f.check: f.how for f in verdict.findings}
    if way[:2] == ("certificate", "lower_bound"):
        return how["bound"] == "stated"
    if way in (("certificate", "cost"), ("facts", "centers_replaced")) or way == ("certificate", "details", "radius"):
        return how["cost"] == "stated"
    return False


def bent_one(seed: int, folder: Path) -> str:
    """What came of bending one genuine record: "caught", "passed" where nobody recomputes, or "refused"."""
    rng = random.Random(f"bent {seed}")
    try:
        made, frame = drawn(rng)
        record = kept(made.write(folder / "c.csv"))
    except (shoal.InfeasibleError, shoal.PolicyError, shoal.InputError):
        return "refused"
    genuine = json.loads(record.read_text())
    record.write_bytes(bent(genuine, rng))
    trees = {"job": TREE} if made.parameters["hierarchies"] else {}
    try:
        verdict = verify(folder / "c.csv", record, frame if seed % 2 else None, hierarchies=trees)
    except shoal.ShoalError:
        return "caught"
    json.dumps(verdict.as_dict(), allow_nan=False)
    if not verdict.holds:
        return "caught"
    now, how = json.loads(record.read_text()), {f.check: f.how for f in verdict.findings}
    if how["cost"] == "stated":  # how many centers are not published goes with it
        now["facts"]["centers_replaced"] = genuine["facts"]["centers_replaced"]
    if now["facts"] != genuine["facts"] or now["release"]["sha256"] != genuine["release"]["sha256"]:
        raise AssertionError("another fact passes")
    if how["cost"] == "recomputed" and abs(now["certificate"]["cost"] - genuine["certificate"]["cost"]) > 1e-6:
        raise AssertionError("another cost passes as recomputed")
    return "passed"
