"""The guide's path of a steward on a hospital's table of visits, in a size that runs in seconds."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from tests.commands import run
from tests.data import real

ROWS = 8000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("hospital")
    with gzip.open(real("diabetes_hospital/diabetic_data.csv.gz"), "rt", encoding="utf-8") as file:
        (where / "visits.csv").write_text("".join(next(file) for _ in range(ROWS + 1)), encoding="utf-8")
    assert run("init", "visits.csv", cwd=where).returncode == 0
    return where


def test_what_cannot_be_is_refused_by_the_column_farthest_from_it(folder: Path) -> None:
    words = ("anonymize", "visits.csv", "--policy", "visits.policy.toml", "--k", 5, "--l", 2, "--report", "report.html")
    done = run(*words, cwd=folder)
    assert done.returncode == 3
    assert done.said.startswith("shoal: A1Cresult 'None' is held by")
    asked = ("--quasi", "race,gender,age", "--sensitive", "readmitted,A1Cresult", "--person", "patient_nbr")
    more = ("--identifiers", "encounter_id", "--insensitive", "diag_1,num_medications", "--k", 5, "--l", 2)
    done = run("anonymize", "visits.csv", *asked, *more, cwd=folder)
    assert done.returncode == 3
    assert done.said.startswith("shoal: A1Cresult 'None' is held by")


def test_what_is_proposed_ends_in_a_release_whose_page_begins_with_the_worst(folder: Path) -> None:
    words = ("anonymize", "visits.csv", "--policy", "visits.policy.toml", "--effort", "fast", "--report", "worst.html")
    done = run(*words, "--recipient", "The registry", "--json", "-o", "proposed.csv", cwd=folder).ok()
    assert min(done.facts["persons"].values()) >= 5
    carried = done.facts["carried"]
    assert carried["together"] <= 0.05 * ROWS, "init leaves out what would single out more"
    page = (folder / "worst.html").read_text(encoding="utf-8").split("<script")[0]
    assert page.index('class="alarm"') < page.index('class="verdict"') < page.index('class="lead"')
    if carried["together"]:
        assert f"single out {carried['together']:,} of {ROWS:,} rows" in page[: page.index('class="verdict"')]
    kept = pl.read_csv(folder / "proposed.csv", infer_schema=False)
    assert "patient_nbr" not in kept.columns
    assert "stated, not judged" in page, "models that count persons are stated: who they count left the table"
