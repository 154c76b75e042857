"""Without the original but with the hierarchies: classes that stand in a release are theirs, and lose what is said."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.judge.file import seal
from shoal.judge.tables.parts import hash_of

WORK = [
    ["clerk", "paid"],
    ["smith", "paid"],
    ["nurse", "public"],
    ["judge", "public"],
    ["mayor", "public"],
    ["none", "unpaid"],
]
MIXED = [
    ["a", "a"],
    ["b", "a"],
    ["c", "c"],
    ["d", "e"],
    ["f", "e"],
]  # a is a value and a class, c is both and one value


def made(folder: Path, seed: int, tree: list[list[str]], ending: str, **more: Any) -> tuple[Path, Path]:
    rng = random.Random(seed)
    rows = [(rng.choice(tree)[0], rng.choice("fm"), rng.choice("xyz")) for _ in range(60)]
    frame = pl.DataFrame(rows, schema=["work", "sex", "d"], orient="row")
    asked: dict[str, Any] = {
        "k": 4,
        "publish": "hierarchy",
        "hierarchies": {"work": tree},
        "effort": "fast",
        "seed": seed,
    }
    out = folder / f"r{ending}"
    release = shoal.anonymize(frame, quasi_identifiers=["work", "sex"], sensitive=["d"], **(asked | more))
    return out, release.write(out)


def bent(out: Path, record: Path, old: str, new: str) -> None:
    """Every ``old`` of the column made ``new``, and the certificate sealed again."""
    frame = pl.read_csv(out).with_columns(pl.col("work").replace(old, new))
    frame.write_csv(out)
    facts = json.loads(record.read_text())
    facts["release"] |= {"sha256": hash_of(out), "bytes": out.stat().st_size}
    facts["seal"] = seal(facts)
    record.write_text(json.dumps(facts))


def wrong(out: Path, record: Path, tree: Any) -> set[str]:
    verdict = shoal.verify(out, record, hierarchies={"work": tree})
    assert verdict.holds == all(f.holds for f in verdict.findings)
    return {f.check for f in verdict.findings if not f.holds}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize(
    "more", [{}, {"global_recoding": True}, {"coarsen": "auto"}, {"star": "#"}, {"weights": {"work": 3.0}}]
)
@pytest.mark.parametrize("tree", [WORK, MIXED])
def test_a_genuine_release_has_its_classes(
    tmp_path: Path, tree: list[list[str]], more: dict[str, Any], ending: str
) -> None:
    for seed in range(4):
        out, record = made(tmp_path, seed, tree, ending, **more)
        verdict = shoal.verify(out, record, hierarchies={"work": tree})
        assert verdict.holds, verdict
        assert {"classes of work", "loss of the classes"} <= {f.check for f in verdict.findings}


@pytest.mark.parametrize(
    ("new", "seen"),
    [
        ("unpaid", {"loss of the classes"}),  # a class of another branch, with fewer values under it
        ("mayor", {"classes of work", "loss of the classes"}),  # a value where a class was
        ("nobody", {"classes of work"}),
    ],
)
def test_a_class_made_another_is_seen(tmp_path: Path, new: str, seen: set[str]) -> None:
    out, record = made(tmp_path, 1, WORK, ".csv", k=9)
    assert "public" in pl.read_csv(out)["work"]
    assert not wrong(out, record, WORK)
    bent(out, record, "public", new)
    assert shoal.verify(out, record).holds  # without the hierarchy nothing tells
    assert wrong(out, record, WORK) == seen
