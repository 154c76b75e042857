"""Every recoding, frame and kind of column: promises that hold are found to hold, in files and in frames."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from tests.attack.test_attack import by_name

QUASI, SENSITIVE = ["age", "town", "born"], ["disease", "salary"]
TREE = [["Ulm", "south", "*"], ["Jena", "east", "*"], ["Bonn", "west", "*"], ["Bern", "south", "*"]]


def table(rows: int = 300, missing: float = 0.05) -> pl.DataFrame:
    """Numbers, texts, dates and missing values."""
    rng = np.random.default_rng(8)
    age = rng.integers(20, 60, rows)
    born = [f"{y}-0{m}-01" for y, m in zip(rng.integers(1960, 1964, rows), rng.integers(1, 9, rows), strict=True)]
    frame = pl.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Ulm", "Jena", "Bonn", "Bern"], rows),
            "born": pl.Series(born).str.to_date(),
            "disease": rng.choice(["flu", "gout", "burn", "cold"], rows),
            "salary": rng.choice([100, 200, 300, 400, 500], rows),
        }
    )
    lost = pl.Series(rng.random(rows) < missing)
    return frame.with_columns(pl.when(lost).then(None).otherwise("age").alias("age"))


KINDS: dict[str, dict[str, Any]] = {
    "stars": {},
    "ranges": {"publish": "ranges"},
    "ranges with a step": {"publish": "ranges", "range_step": {"age": 10}},
    "hierarchy": {
        "publish": "hierarchy",
        "hierarchies": {"town": TREE, "age": "intervals:5,10,20,40", "born": "dates"},
    },
    "two sensitive": {"sensitive": SENSITIVE},
    "no sensitive": {"sensitive": []},
}


@pytest.mark.diagonal
@pytest.mark.parametrize("frame", ["polars", "pandas", "file", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_promises_that_hold_are_found_to_hold(kind: str, frame: str, tmp_path: Path) -> None:
    original: Any = table()
    given = {"quasi_identifiers": QUASI, "sensitive": ["disease"], "k": 4, "effort": "fast", "seed": 1, **KINDS[kind]}
    if given["sensitive"]:
        given["l"] = 2
    if frame == "pandas":
        pytest.importorskip("pandas")
        original = original.to_pandas()
    release: Any = shoal.anonymize(original, **given)
    if frame in ("file", "parquet"):
        ending = "csv" if frame == "file" else "parquet"
        original.write_csv(tmp_path / "people.csv")
        release.write(tmp_path / f"release.{ending}")
        release, original = tmp_path / f"release.{ending}", tmp_path / "people.csv"
    found = shoal.attack(release, original, original, hierarchies=given.get("hierarchies"))
    assert not [n for n in found.notes if "not understood" in n]
    assert (found.k, found.l) == (4, 2 if given["sensitive"] else 1)
    for f in found.findings:
        assert f.figure is None or 0 <= f.figure <= 1, f
        assert f.low is None or f.high is None or f.low <= f.high, f
        if f.attack == "linkage":
            assert f.risk is not None
            assert f.risk <= 1 / 4 + 1e-6, f
            assert f.people
        if f.name.endswith("by class"):
            assert f.risk is not None
            assert f.risk <= 1 / 2 + 1e-9, f
    exact = by_name(found)["linkage, register, exact"]
    assert exact.figure is not None
    assert exact.figure > exact.baselines["a row at random"], "members are found"


def test_centers_stand_for_themselves() -> None:
    numbers = pl.DataFrame({"age": list(range(20, 60)), "s": ["x", "y"] * 20})
    release = shoal.anonymize(numbers, quasi_identifiers=["age"], sensitive=["s"], k=4, publish="centers", seed=1)
    found = shoal.attack(release, numbers)
    assert by_name(found)["linkage, register, exact"].risk <= 1 / 4 + 1e-6
    assert any("centers" in note for note in found.notes)


def test_a_value_nobody_has_links_to_nobody() -> None:
    release = pl.DataFrame({"a": ["1", "1", "*", "*"], "s": list("xyxy")})
    register = pl.DataFrame({"a": ["1", "1", "1", "7", "8"]})
    found = by_name(shoal.attack(release, register=register, quasi_identifiers=["a"], sensitive=["s"]))
    journalist = found["linkage, register, nobody knows who is in the table"]
    assert journalist.figure == pytest.approx((2 / 3 + 2 / 5) / 4)
    assert journalist.worst == ("rows that 3 people of the register fit", pytest.approx(1 / 3))
