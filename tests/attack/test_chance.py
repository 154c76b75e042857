"""Weak releases that were planted are found by the command; over many seeds, chance shows no more gains than chance."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import shoal
from tests.amount import thinned
from tests.attack.test_attack import QUASI, SENSITIVE, by_name, leaning, people, published
from tests.commands import run

SEEDS = thinned(48)
SIDE = 0.025  # of an interval of 95 %, on the side of a gain


def hidden_by_chance(seed: int, wholly: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(table, release): values without any pattern; cells, or all cells of whole tuples, are starred at random."""
    rng = np.random.default_rng(seed)
    table = people(1500, seed, chance=True).with_columns(pl.Series("age", rng.integers(20, 40, 1500).astype(str)))
    if wholly:
        tuples = table.select(QUASI).unique(maintain_order=True)
        gone = tuples.with_columns(pl.Series("gone", rng.random(tuples.height) < 0.3))
        gone_ = table.join(gone, on=QUASI, how="left", maintain_order="left")["gone"]
        hide = [pl.when(gone_).then(pl.lit("*")).otherwise(c).alias(c) for c in QUASI]
    else:
        hide = [pl.when(pl.Series(rng.random(1500) < 0.2)).then(pl.lit("*")).otherwise(c).alias(c) for c in QUASI]
    return table, table.with_columns(hide).sample(fraction=1.0, shuffle=True, seed=seed)


@pytest.mark.parametrize("wholly", [False, True])
def test_chance_shows_no_more_gains_than_chance(wholly: bool) -> None:
    """Each finding gains with a probability of at most SIDE; how many do is bounded by the binomial's tail of 1e-4."""
    gains, tried = [], 0
    for seed in range(SEEDS):
        table, release = hidden_by_chance(seed, wholly)
        found = shoal.attack(release, table, quasi_identifiers=QUASI, sensitive=SENSITIVE, k=2, l=2, seed=seed)
        assert wholly or "downcoding, coarsened cells by naive Bayes" in by_name(found)
        for name, f in by_name(found).items():
            if f.attack in ("linkage", "files"):
                continue  # a table that is published nearly as it is links people, whatever its values are
            tried += 1
            gains += [f"{seed}: {name}"] * f.gain
    assert tried > 5 * SEEDS
    assert len(gains) <= binom.ppf(1 - 1e-4, tried, SIDE), gains


def test_order_of_chance_is_found_no_more_often_than_said() -> None:
    """The limit of the order test is passed by chance once in a million releases: never in these."""
    rng = np.random.default_rng(9)
    for _ in range(60):
        rows = int(rng.integers(20, 300))
        release = pl.DataFrame({"a": rng.integers(0, 4, rows).astype(str), "s": rng.choice(list("xyz"), rows)})
        found = by_name(shoal.attack(release, quasi_identifiers=["a"], sensitive=["s"]))
        assert found["files, order of the rows"].risk == 0.0


def _written(folder: Path, table: pl.DataFrame, **more: Any) -> list[str | Path]:
    published(table, **more).write(folder / "release.csv")
    table.write_csv(folder / "people.csv")
    return ["--original", folder / "people.csv"]


def _unshuffled(folder: Path, table: pl.DataFrame) -> list[str | Path]:
    return _written(folder, table, keep_order=True)


def _minimal(folder: Path, _: pl.DataFrame) -> list[str | Path]:
    return _written(folder, leaning(), quasi_identifiers=["age", "town"], k=2)


def _two(folder: Path, table: pl.DataFrame) -> list[str | Path]:
    published(table, publish="ranges").write(folder / "earlier.csv")
    return [*_written(folder, table), "--with", folder / "earlier.csv"]


def _leaking(folder: Path, table: pl.DataFrame) -> list[str | Path]:
    release = published(table)
    release.write(folder / "release.csv")
    shutil.copy(release.report(folder / "board.html", internal=True), folder / "release.board.html")
    return []


PLANTED: dict[str, tuple[Callable[[Path, pl.DataFrame], list[str | Path]], str]] = {
    "unshuffled": (_unshuffled, "files, order against the original"),
    "minimal at k = l = 2": (_minimal, "minimality, disease, above 1/l"),
    "two releases": (_two, "composition, one value, groups known"),
    "leaking report": (_leaking, "files, what is next to the release"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_releases_fail_the_command(name: str, tmp_path: Path) -> None:
    """The exit status is 1, and the line says which attack is above the threshold, beside one that is not."""
    write, said = PLANTED[name]
    asked = write(tmp_path, people(1200, 4))
    done = run("attack", tmp_path / "release.csv", *asked, "--fail-above", "0.55")
    assert done.returncode == 1, done.stderr
    assert f"above 0.55: {said}" in done.stdout
    assert run("attack", tmp_path / "release.csv", *asked, "--fail-above", "1").returncode == 0
