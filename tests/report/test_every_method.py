"""A release by any method of the catalogue can be reported, printed and shown, whatever its certificate says of it."""

import random

import polars as pl
import pytest

import shoal
from shoal.cli.anonymize import release_lines
from shoal.problems.catalogue import names
from shoal.report.page import release_page

DRAWN = random.Random(1)
FRAME = pl.DataFrame(
    {
        "age": [DRAWN.randrange(8) for _ in range(40)],
        "town": [DRAWN.choice("xyz") for _ in range(40)],
        "ill": [("flu", "gout")[i % 2] for i in range(40)],
    }
)
MORE = {
    "matching": {"l": 2, "k": 1},
    "global_recoding": {"publish": "hierarchy", "hierarchies": {"age": "intervals:2,4"}},
    "coarsen": {"publish": "hierarchy", "hierarchies": {"age": "intervals:2,4"}, "coarsen": "auto"},
}


@pytest.mark.parametrize("method", names("tables"))
def test_it_can_be_told(method):
    asked = {"k": 2, "effort": 0.2, "method": method, "seed": 1, **MORE.get(method, {})}
    if method == "coarsen":
        asked["method"] = "auto"  # what coarsen="auto" runs
    release = shoal.anonymize(FRAME, quasi_identifiers=["age", "town"], sensitive=["ill"], **asked)
    assert "<h1>" in release_page(release.figures())
    assert len(release_lines({**release.as_dict(), "output": "r.csv", "certificate_file": "c.json"})) > 5
    assert release._repr_html_()
    assert len(repr(release)) < 1000
