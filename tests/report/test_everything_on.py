"""A report of a release with everything asked for: what was asked stands in it, and its figures are the file's."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.report.sections import warnings
from shoal.report.words import promise
from tests.report.test_page import figures_of

N = 600
RNG = np.random.default_rng(8)
FRAME = pl.DataFrame(
    {
        "age": RNG.integers(20, 60, N),
        "town": RNG.choice(["Ulm", "Bonn", None], N, p=[0.5, 0.4, 0.1]),
        "ill": RNG.choice(["flu", "gout", "cough", "none"], N),
        "who": [f"MARK{i}" for i in RNG.integers(0, 450, N)],
        "name": [f"MARKNAME{i}" for i in range(N)],
        "note": RNG.choice(["x", "y"], N),
    }
)
COLUMNS: dict[str, Any] = {
    "quasi_identifiers": ["age", "town"],
    "sensitive": ["ill"],
    "identifiers": ["name"],
    "insensitive": ["note"],
    "effort": "fast",
    "seed": 4,
}
PEOPLE = pl.concat([FRAME, FRAME]).select("age", "town")


def told(folder: Path, frame: pl.DataFrame, **asked: Any) -> tuple[str, dict[str, Any], pl.DataFrame]:
    """The page, its figures, the release file as text."""
    release = shoal.anonymize(frame, **{**COLUMNS, **asked})
    release.write(folder / "r.csv")
    text = release.report(folder / "r.html", internal=True).read_text(encoding="utf-8")
    return text.split("<script")[0], figures_of(text), pl.read_csv(folder / "r.csv", infer_schema=False)


def test_persons_levels_ceilings_and_hidden_rows(tmp_path: Path) -> None:
    trees = {"age": "intervals:10,20", "town": "stars"}
    asked = {"k": 4, "distinct_l": 2, "person": "who", "publish": "hierarchy", "hierarchies": trees,
             "max_level": {"age": 2}, "weights": {"age": 2}, "max_suppressed": 0.25, "missing": "apart"}  # fmt: skip
    page, figures, found = told(tmp_path, FRAME, **asked)
    assert "MARK" not in page
    for wanted in ("rows with one value of who", "who (names the person)", "at most 25 % of all", "level 2",
                   "among themselves", "k-anonymity by who", "intervals:10,20",
                   "rows with a missing value, grouped apart", "different persons"):  # fmt: skip
        assert wanted in page, wanted
    sizes = found.group_by("age", "town").len()["len"]
    told_sizes = re.findall("<tr>(.*?)</tr>", page.split("The smallest groups")[-1].split("</table>")[0])[1:]
    least = sorted(set(sizes))[:5]
    assert len(told_sizes) == len(least)
    for size, line in zip(least, told_sizes, strict=True):
        groups = int((sizes == size).sum())
        cells = re.findall("<t[dh][^>]*>(.*?)</t[dh]>", line)[:3]
        assert cells == [str(size), str(groups), f"{size * groups:,}"]
    before = FRAME.group_by("age", "town").len()["len"]
    for then, now in zip(figures["before"]["at_risk"], figures["at_risk"], strict=True):
        assert then["above"] == now["above"]
        assert then["rows"] == round(before.filter(before * then["above"] < 1 - 1e-9).sum() / N, 3)
        assert now["rows"] == pytest.approx(sizes.filter(sizes * now["above"] < 1 - 1e-9).sum() / N)
    assert figures["release"]["persons"]["who"] >= 4
    blank = FRAME["town"].is_null().sum()
    assert figures["release"]["incomplete"]["rows"] == blank


def test_population_steps_and_the_rule(tmp_path: Path) -> None:
    page, figures, found = told(
        tmp_path, FRAME.drop("who"), preset="k5", l=2, t=0.6, k_map=8, population=PEOPLE, publish="ranges",
        max_average_risk=0.2,
        range_step={"age": 5}, star="hidden",
    )  # fmt: skip
    for wanted in ("a table in memory", "5 in age", "a value of its own", "k5 (sizes in use",
                   "a hidden value is written", "k-map", "t-closeness", "population", "at most 0.2"):  # fmt: skip
        assert wanted in page, wanted
    worst = (
        found.group_by("age", "town", "ill")
        .len()
        .group_by("age", "town")
        .agg(pl.col("len").max() / pl.col("len").sum())
    )
    assert figures["audit"]["sensitive"]["ill"]["alpha"] == pytest.approx(worst["len"].max())


def test_filled_cells_and_levels_found_for_all_rows(tmp_path: Path) -> None:
    trees = {"age": "intervals:10,20", "town": "stars"}
    page, figures, _ = told(
        tmp_path, FRAME.drop("who"), k=3, publish="hierarchy", hierarchies=trees, coarsen="auto", missing="filled"
    )
    filled = FRAME["town"].is_null().sum()
    for wanted in (f"{filled} of town", "most frequent value", "found by the search"):
        assert wanted in page, wanted
    assert figures["release"]["filled"] == {"age": 0, "town": filled}


def test_a_signed_release_says_so(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from shoal.publishing.documents import make_key

    key, _ = make_key(tmp_path / "key")
    release = shoal.anonymize(FRAME.drop("who"), k=3, **COLUMNS)
    for signed in (None, key):
        release.write(tmp_path / "r.csv", sign=signed)
        text = release.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
        later = shoal.written(tmp_path / "r.csv", tmp_path / "r.certificate.json").report(tmp_path / "later.html")
        for page in (text, later.read_text(encoding="utf-8")):
            assert ("--signer PUBLIC" in page) is (signed is not None)


@pytest.mark.parametrize(
    ("alpha", "said"), [(0.5, "50"), (0.4004, "40.1"), (0.9995, "99.95"), (0.99999, "99.999"), (1 - 1e-7, "99.99999")]
)
def test_a_share_below_all_is_never_said_to_be_all(alpha: float, said: str) -> None:
    certificate = {"cost": 3, "lower_bound": 3, "unit": "stars", "ratio": 1.0, "optimal": True, "details": {}}
    release = {"rows": 10, "loss": {"suppressed_tuples": 2}, "stars": {"a": 3}, "certificate": certificate}
    audit = {"smallest_class": 5, "sensitive": {"d": {"alpha": alpha}}}
    carried = {"together": 0, "columns": []}
    figures = {"release": release | {"carried": carried}, "audit": audit}
    warned = warnings(figures)
    assert [f"In some group {said} % of the rows" in text for text in warned] == [True] * (alpha >= 0.9)
    assert (f"more than {said} % of the rows" in promise(figures)) is (alpha < 0.9), "a disclosure is no promise"
