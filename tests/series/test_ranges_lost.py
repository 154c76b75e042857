"""What a published text of a column in a series loses and takes in: as the release itself measures it."""

import polars as pl
import pytest

import shoal
from shoal.publishing.series.increment import columns_of, losses_of, widened

COLUMNS = {
    "number": ["20", "31", "31", "44", "58", "58", "70", "83"],
    "date": [f"2024-0{m}-11" for m in (1, 1, 2, 4, 5, 7, 8, 9)],
    "name": ["ab", "cd", "cd", "ef", "ef", "gh", "gh", "ij"],
    "band": ["<20", "20-24", "20-24", "25-29", "25-29", "30-39", "30-39", "40+"],
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_range_loses_what_the_release_says(column: str) -> None:
    table = pl.DataFrame({column: COLUMNS[column]})
    policy = shoal.Policy(quasi_identifiers=[column], k=3, publish="ranges", seed=1)
    release = shoal.anonymize(table, policy)
    columns = columns_of(policy, {column: COLUMNS[column]})
    lost = losses_of(columns, release.table.rows())
    assert lost.mean() == pytest.approx(release.loss["ncp"])
    assert lost.min() > 0


@pytest.mark.parametrize(
    ("column", "text", "value", "wide"),
    [
        ("number", "31", "58", "[31, 58]"),
        ("number", "[31, 58]", "20", "[20, 58]"),
        ("number", "[31, 58]", "83", "[31, 83]"),
        ("number", "[31, 58]", "44", "[31, 58]"),
        ("date", "2024-02-11", "2024-01-11", "[2024-01-11, 2024-02-11]"),
        ("name", "ab", "ij", "{ab, ij}"),
        ("name", "{ab, ij}", "cd", "{ab, cd, ij}"),
        ("name", "{ab, cd, ef, gh}", "ij", "*"),
    ],
)
def test_a_text_widens_to_the_finest_that_takes_both_in(column: str, text: str, value: str, wide: str) -> None:
    policy = shoal.Policy(quasi_identifiers=[column], k=3, publish="ranges", seed=1)
    assert widened(columns_of(policy, {column: COLUMNS[column]}), [text], [value]) == (wide,)


def test_a_band_widens_to_a_range_of_bands() -> None:
    bands = ["0-9", "10-19", "20-29", "30-39"]
    columns = columns_of(shoal.Policy(quasi_identifiers=["age"], k=3, publish="ranges", seed=1), {"age": bands})
    (wide,) = widened(columns, ["10-19"], ["20-29"])
    assert all(columns[0].fits(wide, band) == (band in bands[1:3]) for band in bands)


def test_a_class_of_a_hierarchy_loses_what_the_release_says() -> None:
    policy = shoal.Policy(
        quasi_identifiers=["number"], k=3, publish="hierarchy", hierarchies={"number": "intervals:10,40"}, seed=1
    )
    release = shoal.anonymize(pl.DataFrame({"number": COLUMNS["number"]}), policy)
    (column,) = columns_of(policy, {"number": COLUMNS["number"]})
    texts = release.table.to_series().to_list()
    assert any(text not in ("*", *COLUMNS["number"]) for text in texts)  # classes between a value and a star
    for text in set(texts) - {"*"}:
        below = {v for v in COLUMNS["number"] if column.fits(text, v)}
        assert column.loss(text) == pytest.approx((len(below) - 1) / (len(set(COLUMNS["number"])) - 1))


def test_what_is_missing_or_the_only_value_loses_nothing() -> None:
    policy = shoal.Policy(quasi_identifiers=["number"], k=1, publish="ranges", seed=1)
    (column,) = columns_of(policy, {"number": ["31", None]})
    assert (column.loss(None), column.loss("31"), column.loss("*")) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("column", "step", "text", "value", "wide"),
    [
        ("number", 10, "[30, 40]", "58", "[30, 60]"),
        ("number", 10, "[30, 40]", "31", "[30, 40]"),
        ("number", 10, "70", "83", "[70, 90]"),
        ("number", 10, "[40, 60]", "20", "[20, 60]"),
        ("date", "month", "[2024-02-01, 2024-03-01]", "2024-05-11", "[2024-02-01, 2024-06-01]"),
        ("date", "month", "[2024-02-01, 2024-03-01]", "2024-01-11", "[2024-01-01, 2024-03-01]"),
    ],
)
def test_a_rounded_range_widens_to_the_next_step(column: str, step: object, text: str, value: str, wide: str) -> None:
    policy = shoal.Policy(quasi_identifiers=[column], k=3, publish="ranges", range_step={column: step}, seed=1)
    columns = columns_of(policy, {column: COLUMNS[column]})
    assert widened(columns, [text], [value]) == (wide,)
    assert columns[0].own("31" if column == "number" else "2024-02-11").startswith("[")
