"""With the original: exactly the coarser forms of it pass.  The oracle tries every assignment of rows."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.judge.file import seal
from shoal.release import file_hash

TREE = [["a", "ab"], ["b", "ab"], ["c", "cd"], ["d", "cd"]]
ABOVE = {"ab": "ab", "cd": "cd", "*": "abcd"}
ASKED: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "k": 2, "effort": "fast", "seed": 1}


def inside(shown: str, value: str, column: str) -> bool:
    """Whether a published text may stand for a value; written for these tables alone."""
    if shown in (value, "*"):
        return True
    if shown.startswith("["):
        low, high = shown.strip("[]").split(", ")
        return column == "age" and float(low) <= float(value) <= float(high)
    if shown.startswith("{"):
        return value in shown.strip("{}").split(", ")
    return column == "town" and value in ABOVE.get(shown, "")


def possible(before: list[tuple[str, ...]], after: list[tuple[str, ...]]) -> bool:
    """Whether some order of the original makes every published row cover its own; all orders are tried."""

    def fits(row: tuple[str, ...], shown: tuple[str, ...]) -> bool:
        return row[2] == shown[2] and inside(shown[0], row[0], "age") and inside(shown[1], row[1], "town")

    return any(all(map(fits, order, after)) for order in itertools.permutations(before))


def resealed(release: Path, record: Path) -> None:
    """Make a certificate agree with a forged file, as far as that can be done without the original."""
    facts = json.loads(record.read_text())
    frame = pl.read_csv(release, infer_schema=False)
    facts["release"] |= {"sha256": file_hash(release), "rows": frame.height}
    sizes = frame.group_by("age", "town").len("rows")["rows"]
    facts |= {"groups": len(sizes), "smallest_group": sizes.min()}
    facts["privacy"]["k"] = sizes.min()
    if facts["policy"]["publish"] == "stars":
        stars = {c: int((frame[c] == "*").sum()) for c in ("age", "town")}
        total = sum(stars.values())
        facts |= {"stars": stars, "changed": stars}
        facts["loss"] |= {"stars": total, "ncp": total / (2 * frame.height)}
        facts["certificate"] |= {"cost": total, "lower_bound": 0, "ratio": None if total else 1.0, "optimal": not total}
    facts["seal"] = seal(facts)
    record.write_text(json.dumps(facts))


@given(st.integers(0, 10**9), st.sampled_from(["stars", "ranges", "hierarchy"]))
@settings(max_examples=60, deadline=None)
def test_a_release_matches_exactly_when_some_order_of_the_rows_does(
    tmp_path_factory: pytest.TempPathFactory, seed: int, publish: str
) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("r")
    n = rng.randint(2, 6)
    rows = [(str(rng.choice([20, 25, 31, 40])), rng.choice("abcd"), rng.choice("xy")) for _ in range(n)]
    original = folder / "t.csv"
    original.write_text("age,town,d\n" + "".join(",".join(r) + "\n" for r in rows))
    more = {"hierarchies": {"town": TREE}} if publish == "hierarchy" else {}
    out = folder / "r.csv"
    record = shoal.anonymize(original, publish=publish, sensitive=["d"], **more, **ASKED).write(out)
    genuine = shoal.verify(out, record, original, hierarchies=more.get("hierarchies"))
    assert genuine.holds, [f for f in genuine.findings if not f.holds]
    frame = pl.read_csv(out, infer_schema=False)
    table = [list(r) for r in frame.iter_rows()]
    for _ in range(rng.randint(1, 2)):
        i, j = rng.randrange(n), rng.randrange(3)
        if rng.random() < 0.5:
            other = rng.randrange(n)
            table[i][j], table[other][j] = table[other][j], table[i][j]
        else:
            table[i][j] = rng.choice([["20", "40", "*", "[20, 31]", "[35, 40]", "[900, 950]"],
                                      ["a", "d", "*", "ab", "cd", "{a, c}"], ["x", "y"]][j])  # fmt: skip
    coarse = {"stars": ("*",), "ranges": ("*", "[", "{"), "hierarchy": ("*", "ab", "cd")}[publish]
    after = [tuple(r) for r in table]
    known = [{r[j] for r in rows} for j in (0, 1)]
    allowed = all(r[j] in known[j] or r[j].startswith(coarse) for r in after for j in (0, 1))
    pl.DataFrame(table, schema=frame.columns, orient="row").write_csv(out)
    resealed(out, record)
    found = shoal.verify(out, record, original, hierarchies=more.get("hierarchies")).findings
    matches = all(f.holds for f in found if f.check in ("other columns", "published values", "rows match"))
    assert matches == (allowed and possible(rows, after))
