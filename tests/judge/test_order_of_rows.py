"""The order of a release's rows beside that of its original: a kept order is told from a shuffle, never the reverse."""

import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.judge.tables.large import hash_of
from shoal.judge.tables.matching import log_chance, order_of_rows
from tests.kept import failing, forge, holding, kept, write_sealed

TREE = [[f"t{i}", "low" if i < 6 else "high"] for i in range(12)]
ASKED: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "sensitive": ["d"], "k": 3, "effort": "fast", "seed": 1}


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    draw = random.Random(seed)
    return pl.DataFrame(
        [(draw.randrange(20, 60), f"t{draw.randrange(12)}", f"d{draw.randrange(7)}") for _ in range(rows)],
        schema=["age", "town", "d"], orient="row",
    )  # fmt: skip


def as_shuffled(facts: dict[str, Any]) -> None:
    """What a certificate of shuffled rows states."""
    facts |= {"shuffled": True, "order": "fresh secret"}
    facts["policy"]["keep_order"] = False


def claiming(folder: Path, table: pl.DataFrame, form: str, publish: str) -> tuple[Path, Path]:
    """A release in the order of its table, and a certificate and record that state shuffled rows."""
    trees = {"hierarchies": {"town": TREE}} if publish == "hierarchy" else {}
    out = folder / f"r.{form}"
    made = shoal.anonymize(table, publish=publish, keep_order=True, **trees, **ASKED)
    certificate = Path(made.write(out))
    for paper in (certificate, kept(certificate)):
        forge(paper, as_shuffled)
    return out, certificate


def verdict(out: Path, original: Any, publish: str = "stars", **more: Any) -> Any:
    trees = {"town": TREE} if publish == "hierarchy" else None
    return shoal.verify(out, original=original, hierarchies=trees, **more)


@pytest.mark.parametrize(
    ("form", "publish"),
    [("csv", "stars"), ("csv", "ranges"), ("csv", "hierarchy"), ("csv", "centers"), ("parquet", "ranges"),
     ("xlsx", "stars")],
)  # fmt: skip
def test_rows_in_the_order_of_the_original_are_no_shuffled_ones(tmp_path: Path, form: str, publish: str) -> None:
    table = people(300)
    out, certificate = claiming(tmp_path, table, form, publish)
    assert failing(verdict(out, table, publish)) == ["order of the rows"]
    with_record = verdict(out, table, publish, record=kept(certificate))
    assert failing(with_record) == ["order of the rows"]
    holding(verdict(out, table.sample(fraction=1.0, shuffle=True, seed=2), publish))


def test_a_release_whose_certificate_says_that_it_kept_the_order_holds(tmp_path: Path) -> None:
    table = people(300)
    shoal.anonymize(table, keep_order=True, **ASKED).write(tmp_path / "r.csv")
    found = {f.check: f for f in holding(shoal.verify(tmp_path / "r.csv", original=table)).findings}
    assert found["order of the rows"].how == "checked for consistency"
    assert "300 of 300 rows" in found["order of the rows"].found
    other = table.reverse()  # the same people, but nothing tells in which order the table was
    found = {f.check: f for f in holding(shoal.verify(tmp_path / "r.csv", original=other)).findings}
    assert found["order of the rows"].how == "stated"


def test_ranges_alone_tell_an_order(tmp_path: Path) -> None:
    """No other column has to be equal, so only what each range covers tells that the rows stand in order."""
    table = people(80).select("age", "town")
    asked = ASKED | {"sensitive": []}
    made = shoal.anonymize(table, publish="ranges", keep_order=True, **asked)
    certificate = Path(made.write(tmp_path / "r.csv"))
    forge(certificate, as_shuffled)
    assert failing(verdict(tmp_path / "r.csv", table)) == ["order of the rows"]


def reordered(out: Path, order: list[int]) -> None:
    """The rows of a release in another order, and its certificate with their hash."""
    frame = pl.read_csv(out, infer_schema=False)
    frame[order].write_csv(out)
    paper = out.with_name("r.certificate.json")
    facts = json.loads(paper.read_text())
    facts["release"]["sha256"] = hash_of(out)
    write_sealed(paper, facts)


@pytest.mark.parametrize(("share", "fails"), [(0.9, True), (0.6, True), (0.0, False)])
def test_a_part_of_the_rows_that_stays_in_order_is_found(tmp_path: Path, share: float, fails: bool) -> None:
    table, draw = people(600), random.Random(3)
    out, _ = claiming(tmp_path, table, "csv", "ranges")
    moved = draw.sample(range(600), round(600 * (1 - share)))
    order = list(range(600))
    for i, j in zip(moved, draw.sample(moved, len(moved)), strict=True):
        order[i] = j
    reordered(out, order)
    assert failing(verdict(out, table)) == (["order of the rows"] if fails else [])


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("secret", [None, b"sixteen bytes or more"])
@pytest.mark.parametrize("by", [None, "age", ["age", "town", "d"]])
def test_a_shuffled_release_never_fails(tmp_path: Path, engine: str, secret: bytes | None, by: Any) -> None:
    """Also one of a sorted table, and one of an engine that puts equal rows together."""
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    for spread in (1, 40):
        table = people(200).with_columns(age=pl.col("age") // spread * spread)
        table = table if by is None else table.sort(by)
        source, out = tmp_path / f"t{spread}.csv", tmp_path / f"r{spread}.csv"
        table.write_csv(source)
        shoal.anonymize(source, publish="ranges", engine=engine, secret=secret, **ASKED).write(out)
        holding(shoal.verify(out, original=source))


def test_equal_rows_stay_where_they_are_however_they_are_shuffled(tmp_path: Path) -> None:
    table = pl.DataFrame({"age": [30] * 300, "town": ["t1"] * 300, "d": ["d1"] * 300})
    out, _ = claiming(tmp_path, table, "csv", "stars")
    holding(verdict(out, table))


def test_too_few_rows_tell_nothing(tmp_path: Path) -> None:
    table = people(9)
    out, _ = claiming(tmp_path, table, "csv", "ranges")
    found = {f.check: f for f in holding(verdict(out, table)).findings}
    assert "which can be chance" in found["order of the rows"].found


def chance(fits: Callable[[int, int], bool], n: int, least: int) -> float:
    """The share of all orders in which so many rows fit, counted one by one."""
    orders = list(itertools.permutations(range(n)))
    return sum(sum(map(fits, range(n), order)) >= least for order in orders) / len(orders)


@pytest.mark.parametrize("seed", range(60))
def test_no_chance_is_underestimated(seed: int) -> None:
    """Against every order of up to six rows, for every number of rows that fit."""
    draw = random.Random(seed)
    n = draw.randint(1, 6)
    table = np.array([[draw.random() < draw.choice([0.2, 0.5, 0.9]) for _ in range(n)] for _ in range(n)])
    for least in range(n + 1):
        bound = math.exp(log_chance(least, table.sum(axis=1)))
        assert bound <= 1 + 1e-9
        assert chance(lambda i, j: bool(table[i, j]), n, least) <= bound + 1e-9, (table, least)


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_an_engine_keeps_together_are_counted_once(seed: int) -> None:
    """Among all orders of a release's distinct rows, no more fail than the bound allows: with few of them, none."""
    draw = random.Random(seed)
    sizes = [draw.choice([1, 4, 40]) for _ in range(5)]
    mine = np.repeat(np.arange(5), sizes)  # sorted by content, as a table may be
    for order in itertools.permutations(range(5)):
        theirs = np.concatenate([np.full(sizes[i], i) for i in order])
        assert order_of_rows(mine, theirs, [], "fresh secret").holds


def test_no_rows_have_an_order() -> None:
    none = np.zeros(0, np.int64)
    assert order_of_rows(none, none, [], "fresh secret").holds
