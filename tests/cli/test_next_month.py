"""A certificate as the policy of the next table: every place where that is done says what composition means."""

from pathlib import Path

import polars as pl

from shoal.report.sections import attacks
from tests.commands import run

ROOT = Path(__file__).parents[2]
FRAME = pl.DataFrame({"age": [30, 31, 30, 31] * 5, "ill": ["a", "b", "c", "d"] * 5})
BEGINS = "warning: this policy is the certificate of an earlier release"


def test_the_next_month_says_what_composition_means(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "may.csv")
    FRAME.write_csv(tmp_path / "june.csv")
    asked = ("--quasi", "age", "--sensitive", "ill", "--k", 5, "--effort", "fast")
    first = run("anonymize", "may.csv", *asked, cwd=tmp_path).ok()
    assert BEGINS not in first.said
    done = run("anonymize", "june.csv", "--policy", "may.release.certificate.json", cwd=tmp_path).ok()
    (said,) = [line for line in done.said.splitlines() if line.startswith(BEGINS)]
    assert "(composition)" in said
    assert "fewer than k" in said
    facts = run(
        "anonymize", "june.csv", "--policy", "may.release.certificate.json", "--force", "--json", cwd=tmp_path
    ).facts
    assert facts["warnings"] == [said]


def test_the_page_and_the_guide_say_it_too() -> None:
    policy = {"publish": "stars", "sensitive": [], "privacy": [], "hierarchies": {}}
    (said,) = [text for text in attacks(policy) if text.startswith("Composition")]
    assert "new people alone" in said
    for page in ("questions.md", "tables.md", "how-to/next-month.md"):
        assert "next month" in (ROOT / "docs" / page).read_text(encoding="utf-8"), page
