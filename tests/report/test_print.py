"""A page on paper: wide tables go on below themselves, codes have bars of their own, two pages and an appendix."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.publishing.decode import Decoded
from shoal.publishing.tables.figures import pictured
from shoal.report.parts import ACROSS, table

RNG = np.random.default_rng(3)
CODES = [1, 2, 3, 6, 18, 22, 28]


def release(rows: int = 400) -> shoal.Release:
    frame = pl.DataFrame(
        {
            "discharge_id": RNG.choice(CODES, rows),
            "age": RNG.integers(20, 90, rows),
            **{f"region_{i}": RNG.choice(["north", "south"], rows) for i in range(7)},
            "ill": RNG.choice(["flu", "gout", "none"], rows),
        }
    )
    quasi = [c for c in frame.columns if c != "ill"]
    return shoal.anonymize(
        frame, quasi_identifiers=quasi, sensitive=["ill"], k=5, l=2, publish="ranges", effort="fast", seed=1
    )


@pytest.fixture(scope="module")
def made() -> shoal.Release:
    return release()


@pytest.mark.parametrize("columns", [2, ACROSS, ACROSS + 1, 3 * ACROSS])
def test_no_table_is_wider_than_a_sheet_and_no_column_is_lost(columns: int) -> None:
    head = [f"h{i}" for i in range(columns)]
    text = str(table(head, [[f"{j}v{i}" for i in range(columns)] for j in range(2)], 1, "wide"))
    parts = text.split("</table>")[:-1]
    heads = [re.findall(r"<th[^>]*>(h\d+)</th>", part) for part in parts]
    assert all(len(found) <= ACROSS for found in heads)
    assert [found[0] for found in heads] == ["h0"] * len(parts), "each part is named by the first column"
    assert [name for i, found in enumerate(heads) for name in found[bool(i) :]] == head
    for j in range(2):
        assert re.findall(rf">({j}v[1-9]\d*)<", text) == [f"{j}v{i}" for i in range(1, columns)]


def test_codes_are_never_binned_as_numbers(made: shoal.Release) -> None:
    for figures in (made.figures(), made.public_figures()):
        (codes, age, *_) = figures["columns"]
        labels = [b["label"] for b in codes["distribution"] if b["label"] != "all other values"]
        assert labels
        assert set(labels) <= {str(code) for code in CODES}
        assert labels == sorted(labels, key=int), "in their order"
        assert any(" to " in b["label"] for b in age["distribution"]), "a measure is"


def test_few_numbers_that_lie_far_apart_are_codes_too() -> None:
    frame = pl.DataFrame({"ward": [10, 250, 7000] * 4, "years": [1, 2, 3] * 4})
    policy = shoal.Policy(quasi_identifiers=["ward", "years"], k=2, publish="stars")
    found = Decoded.of(frame, policy, {}).columns
    assert pictured(found["ward"], "ward").ruler is None
    assert pictured(found["years"], "years").ruler == "number"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="printing needs chromium")
def test_it_prints_on_two_pages_before_the_appendix(made: shoal.Release, tmp_path: Path) -> None:
    for internal in (False, True):
        page = made.report(tmp_path / "r.html", internal=internal)
        text = page.read_text(encoding="utf-8")
        front = tmp_path / "front.html"
        front.write_text(text.split('<h1 class="appendix">')[0] + "</main></body></html>", encoding="utf-8")
        pdf = tmp_path / "r.pdf"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", f"--print-to-pdf={pdf}", str(front)],
            check=True, capture_output=True, timeout=200,
        )  # fmt: skip
        assert len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())) == 2
