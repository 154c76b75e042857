"""Files: levels, metadata and leaking reports, planted; clean ones tell nothing."""

import itertools
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks.public_files import fillings
from tests.attack.test_attack import QUASI, SENSITIVE, by_name, people

BESIDE, TOTALS = "files, what is next to the release", "files, hidden cells that totals tell"


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, shoal.Release]:
    table = people(400, 2)
    release = shoal.anonymize(table, quasi_identifiers=QUASI, sensitive=SENSITIVE, k=4, l=2, effort="fast", seed=1)
    release.write(tmp_path / "release.csv")
    release.report(tmp_path / "release.html")
    return tmp_path / "release.csv", release


def test_what_shoal_writes_tells_nothing(written) -> None:
    path, _ = written
    found = by_name(shoal.attack(path))
    assert found[BESIDE].risk == 0.0, found[BESIDE].details
    assert "release.record.json" in found[BESIDE].details["private_files_that_must_stay"]
    assert found[TOTALS].risk == 0.0


def test_leaking_report_is_found(written) -> None:
    path, release = written
    page = release.report(path.with_name("release.html"), internal=True)
    assert by_name(shoal.attack(path))[BESIDE].risk == 0.0, "its name says that it must stay"
    shutil.copy(page, path.with_name("release.page.html"))
    found = by_name(shoal.attack(path))[BESIDE]
    assert found.risk == 1.0
    assert found.gain
    assert "before" in found.details["figures"]
    assert found.details["files"] == "release.page.html"


def test_files_of_another_month_are_not_those_of_a_release(written) -> None:
    path, release = written
    january = path.with_name("visits.2024-01.release.csv")
    release.write(january)
    page = release.report(path.with_name("february.html"), internal=True)
    shutil.copy(page, path.with_name("visits.2024-02.release.html"))
    assert by_name(shoal.attack(january))[BESIDE].risk == 0.0
    for name in ("visits.2024-01.html", "visits.2024-01.release.page.html"):
        shutil.copy(page, path.with_name(name))
        assert by_name(shoal.attack(january))[BESIDE].details["files"] == name
        path.with_name(name).unlink()


def test_totals_tell_hidden_cells(tmp_path: Path) -> None:
    """Of three hidden cells one filling agrees with the pairs of rows that differ: 5 a, 3 b and 1 c."""
    release = pl.DataFrame({"q": ["a"] * 4 + ["b"] * 2 + ["*"] * 3})
    release.write_csv(tmp_path / "release.csv")
    alike, rows = 5 * 4 / 2 + 3 * 2 / 2, 9 * 8 / 2
    said = f'{{"before": {{"dangerous": [{{"columns": ["q"], "separation": {1 - alike / rows}}}]}}}}'
    (tmp_path / "release.json").write_text(said)
    found = by_name(shoal.attack(tmp_path / "release.csv", register=pl.DataFrame({"q": ["a", "b", "c"]}),
                                 quasi_identifiers=["q"]))  # fmt: skip
    assert found[TOTALS].figure == 1.0
    assert found[TOTALS].details["ways_to_fill_a_column"] == "q 10 to 1"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 10_000), st.booleans())
def test_fillings_are_all_that_agree(shown: list[int], hidden: int, seed: int, rounded: bool) -> None:
    rows = sum(shown) + hidden
    if rows < 2:
        return
    rng = np.random.default_rng(seed)
    whole = rows * (rows - 1) / 2

    def differ(counts: np.ndarray) -> float:
        return 1 - float((counts * (counts - 1) / 2).sum()) / whole

    truth = np.array(shown) + rng.multinomial(hidden, np.ones(len(shown)) / len(shown))
    half = 0.05 if rounded else 1e-12
    pairs = (differ(truth) - half, differ(truth) + half)
    every = [f for f in itertools.product(range(hidden + 1), repeat=len(shown)) if sum(f) == hidden]
    agree = [f for f in every if pairs[0] - 1e-9 <= differ(np.array(shown) + np.array(f)) <= pairs[1] + 1e-9]
    before, after = fillings(np.array(shown), hidden, None, pairs)
    assert before == len(every)
    assert after is not None
    assert abs(after - len(agree)) <= (0 if not rounded else len(every) // 10)
    assert fillings(np.array(shown), hidden, truth, None) == (len(every), 1)
