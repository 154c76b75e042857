"""What lies beside a release tells nothing of the original that the release does not tell."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import shoal
from shoal.publishing.tables import statement
from tests.consistency import SECRET, cases, tell_apart
from tests.consistency_drawn import drawn_answer, drawn_case

CASES = {case.name: case for case in cases(rows=4, size=4)}


# files are read anew for each table, or a kind of file that shares all but its last step with another
SLOW = {"regions", "hierarchy labels", "hierarchy intervals", "ranges .parquet", "ranges .xlsx", "ranges .csv.gz"}
SLOW |= {"recoder fitted", "hierarchy tiles", "regions count", "regions sumsq", "regions excess", "tiles max"}
SLOW |= {"regions land", "ranges keep order", "ranges population weights", "stars strict roles"}  # like others
SLOW |= {"centers top", "hierarchy bottom"}  # like others by another way to publish
SLOW |= {"tiles perimeter", "intervals count", "intervals squares"}  # like others by another objective
SLOW |= {name for name in CASES if "duckdb" in name or "parts" in name}

# 91: categories in Parquet; 131: numbers that are all missing, or hidden beside missing ones, in a sheet
DRAWN = (0, 8, 91, 131)
# labels in a given order; regions under a maximum, of similar areas; clusters of distinct values
ANSWERS = (202, 205, 206)


Compare = Callable[[str], tuple[set[str], int, int]]


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    """What ``tell_apart`` finds for the case of a name, once for all tests."""
    return cache(lambda name: tell_apart(CASES[name], tmp_path_factory.mktemp("case")))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_originals_of_one_release_have_one_certificate(name: str, compare: Compare) -> None:
    odd, tried, _ = compare(name)
    assert tried, "no table of this case could be released"
    assert not odd


@pytest.mark.parametrize(
    ("draw", "seed"),
    [*((lambda seed: drawn_case(seed, rows=4 + seed % 2), s) for s in DRAWN), *((drawn_answer, s) for s in ANSWERS)],
)
def test_of_requests_drawn_at_random_too(draw: Callable[[int], Any], seed: int, tmp_path: Path) -> None:
    """Columns of every kind, models, ways to publish, and files as they may be combined; and the other problems."""
    case = draw(seed)
    odd, _, shared = tell_apart(case, tmp_path)
    assert shared, f"no two tables share a file: {case.note}"
    assert not odd, case.note


def test_among_them_are_originals_that_give_the_same_release(compare: Compare) -> None:
    """Otherwise the tests above would compare nothing."""
    shared = {name: compare(name)[2] for name in ("stars", "ranges", "hierarchy", "labels")}
    assert all(shared.values()), shared


def test_a_figure_of_the_original_would_be_seen(tmp_path: Path, monkeypatch: Any) -> None:
    honest = statement.certificate_file

    def telling(release: Any, *given: Any) -> dict[str, Any]:
        more = {
            "uniques": release.facts.before["uniques"],
            "distinct_values": dict(release.facts.before["distinct_values"]),
            "bound": release.certificate.lower_bound,
            "exposed": release.facts.exposed.as_dict(),
            "kl": release.loss["kl_divergence"],
        }
        return {**honest(release, *given), "extra": more}

    monkeypatch.setattr(statement, "certificate_file", telling)
    seen: set[str] = set()
    for name in ("stars", "ranges", "ranges step"):
        seen |= tell_apart(CASES[name], tmp_path)[0]
    told = {name.split(".")[1] for name in seen if name.startswith("extra.")}
    assert told == {"uniques", "distinct_values", "bound", "exposed", "kl"}


def test_a_column_that_shows_no_value_may_have_been_suppressed_whatever_pandas_takes_it_for(tmp_path: Path) -> None:
    def written(smokes: list[bool | None]) -> tuple[str, dict[str, Any]]:
        table = pd.DataFrame({"smokes": pd.Series(smokes, dtype=object), "ill": ["flu"] * 2 + ["gout"] * 3})
        asked = {"quasi_identifiers": ["smokes"], "sensitive": ["ill"], "alpha_k": (0.7, 2), "publish": "centers"}
        beside = shoal.anonymize(table, secret=SECRET, **asked).write(tmp_path / "out.csv")
        assert shoal.verify(tmp_path / "out.csv", beside).holds
        told = json.loads(beside.read_text())
        return (tmp_path / "out.csv").read_text(), {name: told[name] for name in ("release", "loss", "stars")}

    suppressed, empty = written([True, True, None, None, None]), written([None] * 5)
    assert suppressed == empty
    assert suppressed[1]["release"]["starred_as_missing"] == ["smokes"]
