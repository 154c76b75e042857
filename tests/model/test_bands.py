"""Texts that are bands of numbers have an order, in every engine, for the judge and for whoever reads a release."""

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines.codes import encode
from shoal.judge.models import _natural_order
from shoal.judge.tables.covering import _line
from shoal.model.notation import ends, in_order
from tests.commands import run

DECADES = [f"[{10 * i}-{10 * i + 10})" for i in range(12)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[70-80)", (70, 80)), ("65-69", (65, 69)), ("65 - 69", (65, 69)), ("0.5–1.5", (0.5, 1.5)), ("(1, 2]", (1, 2)),
        ("-5-5", (-5, 5)), ("1..3", (1, 3)), ("1 to 3", (1, 3)), ("85+", (85, np.inf)), (">=85", (85, np.inf)),
        ("<18", (-np.inf, 18)), ("7", (7, 7)),
    ],
)  # fmt: skip
def test_a_band_has_two_ends(text: str, expected: tuple[float, float]) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize("text", ["80-70", "[70-80", "70-80)", "a-b", "", "05-07", "1-2-3", "2020-01-31", "-", "70-"])
def test_what_is_no_band_has_none(text: str) -> None:
    assert ends(text) is None


def test_bands_lie_in_the_order_of_their_numbers() -> None:
    assert in_order(["[10-20)", "[100-110)", "[20-30)"]) == [0, 2, 1]
    assert in_order(["65+", "<18", "18-64"]) == [1, 2, 0]
    assert in_order(["0", "1-4", "5-9"]) == [0, 1, 2]


@pytest.mark.parametrize(
    "texts", [["1-3", "2-4", "5-6"], ["1-2", "3-4"], ["1-2", "3-4", "?"], ["1", "2", "3"], ["<1", "1", ">=2"], []]
)
def test_what_overlaps_or_is_mixed_has_no_order(texts: list[str]) -> None:
    assert in_order(texts) is None


@given(st.permutations(DECADES), st.integers(3, 12), st.booleans())
def test_engine_and_judge_read_one_order(texts: list[str], many: int, missing: bool) -> None:
    column = pl.Series("age", [*texts[:many], *([None] if missing else [])], dtype=pl.String)
    coded = encode(column)
    expected = sorted(texts[:many], key=DECADES.index)
    assert coded.texts()[:many] == expected
    assert coded.positions()[:many].tolist() == list(range(many))
    line = _line(column.drop_nulls())
    assert line is not None
    assert column.drop_nulls().gather(np.argsort(line[0])).to_list() == expected
    assert column.gather(_natural_order(column)).to_list()[:many] == expected


@pytest.fixture
def visits() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    decade = rng.choice(11, 400, p=np.array([1, 2, 4, 8, 16, 24, 30, 20, 10, 4, 1]) / 120)
    return pl.DataFrame(
        {
            "age": [DECADES[i] for i in decade],
            "sex": rng.choice(["f", "m"], 400),
            "ill": rng.choice(["flu", "gout", "burn"], 400),
        }
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_release_of_bands_shows_ranges_and_verifies(visits: pl.DataFrame, tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    visits.write_csv(tmp_path / "visits.csv")
    asked = ("--quasi", "age,sex", "--sensitive", "ill", "--k", 9, "--t-ordered", 0.9, "--publish", "ranges")
    run(
        "anonymize", "visits.csv", *asked, "--effort", "fast", "--engine", engine, "--report", "r.html", cwd=tmp_path
    ).ok()
    run(
        "verify", "visits.release.csv", "visits.release.certificate.json", "--original", "visits.csv", cwd=tmp_path
    ).ok()
    shown = pl.read_csv(tmp_path / "visits.release.csv")["age"].to_list()
    assert any(text.startswith('["') for text in shown), "ends of a range of bands are quoted"
    assert not any(text.startswith("{") for text in shown)
    assert set(shown) & set(DECADES), "a band by itself is written as it came"


def test_a_range_of_bands_means_the_bands_between(visits: pl.DataFrame) -> None:
    release = shoal.anonymize(visits, quasi_identifiers=["age", "sex"], k=9, publish="ranges", effort="fast", seed=1)
    members = release.members("age")
    text = next(t for t in release.table["age"] if t.startswith('["'))
    cell = next(m for t, m in zip(release.table["age"], members, strict=True) if t == text)
    low, high = (DECADES.index(e.strip('"')) for e in text[1:-1].split(", "))
    assert [b for b in DECADES if b in cell] == DECADES[low : high + 1]
    shares = release.one_hot(["age"])
    assert np.allclose(shares.to_numpy().sum(axis=1), 1)
    assert set(release.sample(seed=1)["age"]) <= set(DECADES)
    assert pickle.loads(pickle.dumps(release)).table.equals(release.table)


def test_ranges_of_bands_lose_less_than_sets(visits: pl.DataFrame) -> None:
    """The same bands in words without an order become sets, which cost at least as much here."""
    words = visits.with_columns(pl.col("age").replace_strict({d: f"decade {d}" for d in DECADES}))
    asked = {"quasi_identifiers": ["age", "sex"], "k": 9, "publish": "ranges", "effort": "fast", "seed": 1}
    bands, sets = (shoal.anonymize(frame, **asked) for frame in (visits, words))
    assert all(not t.startswith("{") for t in bands.table["age"])
    assert any(t.startswith("{") for t in sets.table["age"])


def test_a_grid_and_intervals_are_refused_for_bands(visits: pl.DataFrame) -> None:
    with pytest.raises(shoal.PolicyError, match="range_step"):
        shoal.anonymize(visits, quasi_identifiers=["age"], k=9, publish="ranges", range_step={"age": 5})
    with pytest.raises(shoal.PolicyError, match="intervals"):
        shoal.anonymize(visits, quasi_identifiers=["age"], k=9, publish="hierarchy", hierarchies={"age": "intervals"})


def test_init_says_that_bands_are_ordered(visits: pl.DataFrame, tmp_path: Path) -> None:
    visits.write_csv(tmp_path / "visits.csv")
    done = run("init", "visits.csv", cwd=tmp_path)
    assert "its bands of numbers are ordered" in done.said
    assert "publish ranges: ranges of" in done.said
    assert "are they codes" not in done.said
