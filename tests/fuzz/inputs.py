"""Policies, hierarchies and maps bent at random; only clear refusals come back, and no value of a table in any word.

Each function tries one seed and says "read" or "refused"; what is neither is raised.  Tables, hierarchies and maps hold
``MARKER`` in every value that a single row or area has; it may stand in no message and no log.
"""

import copy
import json
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import shoal
from shoal.errors import ShoalError
from tests.fuzz.certificates import bend
from tests.fuzz.csv_bytes import MARKER

FRAME = pl.DataFrame(
    {
        "age": [20 + i for i in range(12)],
        "zip": [f"{MARKER}{i}" for i in range(12)],
        "d": ["p", "q", "r"] * 4,
        "name": [f"{MARKER} name {i}" for i in range(12)],
    }
)
POLICY: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip"],
    "sensitive": ["d"],
    "identifiers": ["name"],
    "privacy": [{"model": "KAnonymity", "k": 2}, {"model": "LDiversity", "l": 2, "column": "d"}],
    "publish": "hierarchy",
    "hierarchies": {"age": "intervals:5,10", "zip": "stars"},
    "weights": {"age": 2.0},
    "max_level": {"zip": 1},
    "global_recoding": False,
    "method": "cascade",
    "effort": "fast",
    "seed": 1,
    "keep_order": False,
    "star": "*",
}
ROWS = [[f"{MARKER}{i}", f"half {i // 6}", "any"] for i in range(12)]


class _Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(0)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def listening() -> Iterator[list[str]]:
    """Everything that is logged meanwhile."""
    ear, root = _Heard(), logging.getLogger()
    root.addHandler(ear)
    try:
        yield ear.said
    finally:
        root.removeHandler(ear)


def outcome(work: Callable[[], object]) -> str:
    """ "read" or "refused"; AssertionError where a message or a log shows the marker."""
    with listening() as said:
        try:
            work()
            came = "read"
        except ShoalError as error:
            came, said = "refused", [*said, str(error)]
    assert not any(MARKER in text for text in said), next(text for text in said if MARKER in text)
    return came


def bent(facts: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy with one to three parts bent."""
    out = copy.deepcopy(facts)
    for _ in range(rng.choice([1, 1, 2, 3])):
        bend(out, rng)
    return out


def torn(raw: bytes, rng: random.Random) -> bytes:
    """Bytes with none to three of them changed, dropped or doubled."""
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at = rng.randrange(len(raw) + 1)
        what = rng.random()
        if what < 0.5:
            raw = raw[:at] + rng.choice([b'"', b",", b"\n", b"\0", b"\xe9", b"[", b"=", b"'", b";", b"*"]) + raw[at:]
        elif what < 0.8:
            raw = raw[:at] + raw[at + rng.randint(1, 6) :]
        else:
            raw = raw[:at] + raw[rng.randrange(len(raw) + 1) :]
    return raw


def toml(facts: dict[str, Any]) -> str:
    """Settings as TOML, whose lists, texts and numbers are JSON's; what has no form in it is left as JSON writes it."""

    def said(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(str(k))} = {said(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(said(v) for v in value) + "]"
        return json.dumps(value)

    return "".join(f"{json.dumps(str(k))} = {said(v)}\n" for k, v in facts.items())


def policy(seed: int, folder: Path) -> str:
    """A policy as a dict or a file, and the table anonymized by it."""
    rng = random.Random(f"policy {seed}")
    facts = bent(POLICY, rng)
    if isinstance(facts.get("effort"), (int, float)):
        facts["effort"] = "fast"  # a number of seconds is taken at its word
    if rng.random() < 0.5:
        return outcome(lambda: shoal.anonymize(FRAME, facts))
    path = folder / "p.toml"
    path.write_bytes(torn(toml(facts).encode("utf-8", "surrogatepass"), rng))

    def work() -> None:
        found = shoal.Policy.read(path)
        if isinstance(found.effort, str) and found.effort == "fast":
            shoal.anonymize(FRAME, found)

    return outcome(work)


def hierarchy(seed: int, folder: Path) -> str:
    """A hierarchy as rows, a nested dict or a file, and the table anonymized by it."""
    rng = random.Random(f"hierarchy {seed}")
    given: Any
    how = rng.random()
    if how < 0.4:
        given = bent({"rows": ROWS}, rng).get("rows")
    elif how < 0.6:
        given = bent({"any": {f"half {h}": [r[0] for r in ROWS if r[1].endswith(str(h))] for h in range(2)}}, rng)
    else:
        given = folder / "h.csv"
        lines = rng.choice([",", ";"])
        given.write_bytes(torn("".join(lines.join(row) + "\n" for row in ROWS).encode(), rng))
    asked: dict[str, Any] = {"quasi_identifiers": ["zip"], "sensitive": ["d"], "identifiers": ["name"], "k": 2}
    frame = FRAME.drop("age")
    return outcome(
        lambda: shoal.anonymize(frame, publish="hierarchy", hierarchies={"zip": given}, effort="fast", **asked)
    )


def geojson(seed: int, folder: Path) -> str:
    """A map of twelve squares, read as areas and neighbors."""
    from shoal.engines import geography

    rng = random.Random(f"map {seed}")
    features = [
        {
            "type": "Feature",
            "properties": {"id": str(i), "people": i, "note": f"{MARKER}{i}"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]],
            },
        }
        for i in range(12)
        for x, y in [(i % 4, i // 4)]
    ]
    facts = bent({"type": "FeatureCollection", "features": features}, rng)
    raw = json.dumps(facts).encode("utf-8", "surrogatepass")
    path = folder / "m.geojson"
    path.write_bytes(torn(raw, rng) if rng.random() < 0.4 else raw)

    def work() -> None:
        found = geography.read(path)
        found.whole("people")
        found.centers()

    return outcome(work)
