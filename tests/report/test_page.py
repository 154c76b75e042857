"""The report: one file, nothing fetched, everything that a review board asks for."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import shoal

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Nesting(HTMLParser):
    """Refuses tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(folder: Path, frame: pl.DataFrame, **asked: object) -> str:
    settings = {"quasi_identifiers": ["zip <b>", "age"], "k": 2, "effort": "fast"} | asked
    text = shoal.anonymize(frame, **settings).report(folder / "r.html").read_text(encoding="utf-8")
    parser = Nesting()
    parser.feed(text)
    assert parser.open == []
    return text


FRAME = pl.DataFrame(
    {
        "zip <b>": ["01234", "01234", "01299", "01236"],
        "age": [20, 20, 31, 44],
        "d": ["p", "q", "p", "q"],
        "name": ["<script>x", "b", "c", "d"],
    }
)


def test_it_opens_offline_and_says_everything(tmp_path: Path) -> None:
    text = page(tmp_path, FRAME, sensitive=["d"], l=2, identifiers=["name"], seed=11)
    assert not re.search(r"https?://|//[a-z]+\.|src=|@import|url\(|<link|<script", text)
    for wanted in (
        "What was asked",
        "What holds",
        "Before and after",
        "column by column",
        "The certificate",
        "How large the classes are",
        "What was assumed",
        "attacker",
        "missing value",
        "shuffled",
        "k-anonymity",
        "l-diversity",
        "prosecutor",
        "journalist",
        "marketer",
        "<svg",
        "11",
        "zip &lt;b&gt;",
    ):
        assert wanted in text, wanted
    assert "<b>" not in text


def test_no_value_of_a_row_is_in_it(tmp_path: Path) -> None:
    text = page(tmp_path, FRAME, sensitive=["d"], l=2, identifiers=["name"])
    for value in ("01234", "01299", "01236", "script"):
        assert value not in text


@pytest.mark.parametrize("rows", [0, 1])
def test_tiny_tables_have_a_report(tmp_path: Path, rows: int) -> None:
    text = page(tmp_path, FRAME.head(rows), insensitive=["d", "name"], k=1)
    assert "Release report" in text
    assert ("empty" in text) == (rows == 0)


def test_many_sizes_and_columns_still_fit(tmp_path: Path) -> None:
    values = [i for i in range(1, 80) for _ in range(i)]
    frame = pl.DataFrame({"zip <b>": values, "age": values})
    assert page(tmp_path, frame, k=1).count("<rect") < 60
