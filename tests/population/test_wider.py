"""Groups published wider than their rows ask: whom the wider form covers, what it costs, and when there is none."""

import math
import re
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement, restore
from shoal.model.privacy.base import level_text
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Task
from shoal.problems.tables.generalizations import Forms, Sharing, enough, raised, shared
from tests.amount import ALL
from tests.oracles.models import least_beside
from tools.oracle_models import drawn

TREES = [[[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]], [[0, 1, 2, 3], [0, 1, 1, 1], [0, 0, 0, 0]]]
NAMES = ["a", "b"]
GIVEN = {n: [[str(v), f"{n}{c}", "*"] for v, c in enumerate(tree[1])] for n, tree in zip(NAMES, TREES, strict=True)}


def case(name: str, seed: int) -> tuple[list, list, dict, int]:
    """(sample, population, parameters of the model, k): tuples of two columns of values 0 to 3."""
    random = np.random.default_rng([seed, len(name)])
    people = random.integers(0, 4, (int(random.integers(4, 14)), 2))
    some = random.permutation(len(people))[: int(random.integers(2, 5))]
    return ([tuple(r) for r in people[some].tolist()], [tuple(r) for r in people.tolist()], drawn(name, random),
            int(random.choice([1, 1, 2])))  # fmt: skip


def framed(rows: list) -> pl.DataFrame:
    return pl.DataFrame([(str(x), str(y)) for x, y in rows], schema=NAMES, orient="row")


@pytest.mark.diagonal
@pytest.mark.parametrize("name", ["KMap", "DeltaPresence"])
@pytest.mark.parametrize("publish", ["stars", "hierarchy"])
def test_the_default_finds_the_least_of_all_releases(name: str, publish: str) -> None:
    """Every row at any form: all partitions, all ways to publish more than a group asks."""
    found = 0
    for seed in range(8 if ALL else 4):
        quasi, population, parameters, k = case(name, seed)
        least = least_beside(quasi, population, name, parameters, k, TREES if publish == "hierarchy" else None)
        asked = {
            "quasi_identifiers": NAMES, "population": framed(population), "publish": publish, "seed": seed,
            "privacy": [shoal.KAnonymity(k), restore({"model": name, **parameters})],
            "hierarchies": GIVEN if publish == "hierarchy" else {},
        }  # fmt: skip
        for more in ({}, {"method": "cascade"}, {"effort": "fast"}, {"global_recoding": True}):
            if least is None:
                with pytest.raises(InfeasibleError):
                    shoal.anonymize(framed(quasi), **asked, **more)
                continue
            release = shoal.anonymize(framed(quasi), **asked, **more)
            scale = 1 if publish == "stars" else 2 * len(quasi)
            paid, bound = release.certificate.cost * scale, release.certificate.lower_bound * scale
            assert bound <= least + 1e-9 <= paid + 2e-9, seed
            if not more:
                assert paid == pytest.approx(least), seed
                assert bound == pytest.approx(least), seed
            found += 1
    assert found > 8


def differ(values: list[int], times: int, rows: list[int]) -> bool:
    """Whether some rows have two values at least, and none of them on more than one of so many rows."""
    own = Counter(values[i] for i in rows)
    return len(own) > 1 and times * max(own.values()) <= len(rows)


@pytest.mark.parametrize("name", ["KMap", "DeltaPresence"])
def test_the_least_with_a_sensitive_column(name: str) -> None:
    """Frequency l beside the population: the integer program knows it, and other models of the column do not harm."""
    found = 0
    for seed in range(12):
        quasi, population, parameters, _ = case(name, seed)
        disease = [int(v) for v in np.random.default_rng(seed).integers(0, 3, len(quasi))]
        if not seed:  # alike rows have one disease, so that two and two cannot stay together
            quasi, disease = [(0, 0), (0, 0), (0, 1), (0, 1)], [0, 0, 1, 1]
            population = [*quasi, (0, 2), (1, 1)]
        asked = {"quasi_identifiers": NAMES, "population": framed(population), "sensitive": ["s"], "seed": 1}
        sample = framed(quasi).with_columns(s=pl.Series([f"d{v}" for v in disease]))
        for more in ({"l": 2}, {"distinct_l": 2}):
            holds = partial(differ, disease, 2 if "l" in more else 1)
            least = least_beside(quasi, population, name, parameters, 1, holds=holds)
            if least is None:
                with pytest.raises(InfeasibleError):
                    shoal.anonymize(sample, **asked, **more, privacy=[restore({"model": name, **parameters})])
                continue
            made = shoal.anonymize(sample, **asked, **more, privacy=[restore({"model": name, **parameters})])
            assert made.certificate.lower_bound <= least <= made.certificate.cost, seed
            assert "l" not in more or made.certificate.cost == least, seed
            found += 1
    assert found > 3


def test_a_star_that_no_row_needs() -> None:
    """All rows agree in both columns; only wider groups fit five people, and the other column covers more."""
    sample = pl.DataFrame({"a": ["x"] * 2, "b": ["u"] * 2})
    population = pl.DataFrame({"a": ["x"] * 4 + ["y"] * 4, "b": ["u", "u", "v", "w", "u", "u", "u", "z"]})
    asked = {"quasi_identifiers": ["a", "b"], "population": population}
    release = shoal.anonymize(sample, **asked, k_map=5)
    assert release.table.rows() == [("*", "u")] * 2
    assert (release.certificate.cost, release.certificate.lower_bound) == (2, 2)
    assert release.loss["stars"] == 2
    assert shoal.anonymize(sample, **asked, k_map=8).table.rows() == [("*", "*")] * 2
    with pytest.raises(InfeasibleError, match="the largest k_map possible is 8"):
        shoal.anonymize(sample, **asked, k_map=9)
    apart = shoal.anonymize(sample, **asked, presence=(0, 0.25))  # one row takes the four x, the other all the rest
    assert (apart.certificate.cost, apart.audit.classes) == (3, 2)
    with pytest.raises(InfeasibleError, match=r"ask for 0\.25 at the least"):
        shoal.anonymize(sample, **asked, presence=(0, 0.2))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wider_release_is_verified(tmp_path, ending: str) -> None:
    random = np.random.default_rng(3)
    population = pl.DataFrame(
        {"a": random.integers(0, 4, 200).astype(str), "b": random.integers(0, 4, 200).astype(str)}
    )
    sample = population.sample(30, seed=1).with_columns(s=pl.Series(random.choice(["p", "q", "r"], 30)))
    asked = {"quasi_identifiers": NAMES, "sensitive": ["s"], "population": population, "seed": 1}
    asked |= {"publish": "hierarchy", "hierarchies": GIVEN, "k_map": 25}
    one = shoal.anonymize(sample, **asked)
    assert one.certificate.ratio < 1 + 1e-6  # nothing but the population is asked: every row takes its cheapest form
    for more in ({"k": 3}, {"distinct_l": 2}, {"k": 3, "global_recoding": True}, {"k": 2, "entropy_l": 1.5}):
        release = shoal.anonymize(sample, **asked, **more)
        assert release.certificate.cost >= one.certificate.cost
        release.write(tmp_path / f"out.{ending}", overwrite=True)
        for original in (None, sample):
            verdict = shoal.verify(
                tmp_path / f"out.{ending}", tmp_path / "out.certificate.json", original, population=population,
                hierarchies=GIVEN,
            )  # fmt: skip
            assert verdict.holds, [f for f in verdict.findings if not f.holds]


def test_ceilings_say_what_would_pass() -> None:
    """Where the star is forbidden the highest level decides, for every row by itself."""
    sample, population = framed([(0, 0), (2, 1)]), framed([(0, 0), (1, 0), (2, 1), (3, 1), (3, 3)])
    asked = {"quasi_identifiers": NAMES, "population": population, "publish": "hierarchy", "hierarchies": GIVEN}
    held = asked | {"max_level": {"a": 1, "b": 1}}
    assert shoal.anonymize(sample, **held, k_map=2).audit.population["k_map"] == 2
    with pytest.raises(InfeasibleError, match=r"highest levels allowed cover 2 rows.*the largest k_map possible is 2"):
        shoal.anonymize(sample, **held, k_map=3)
    assert shoal.anonymize(sample, **asked, k_map=3).audit.population["k_map"] >= 3


def test_a_budget_lets_rare_rows_be_starred_whole() -> None:
    """One level per column: a row that few people fit is starred, the rest stay as they are."""
    sample = pl.DataFrame({"a": ["0"] * 9 + ["3"]})
    population = pl.DataFrame({"a": ["0"] * 30 + ["3"]})
    asked = {"quasi_identifiers": ["a"], "population": population, "global_recoding": True, "k_map": 5}
    assert shoal.anonymize(sample, **asked).certificate.cost == 10
    assert Counter(shoal.anonymize(sample, **asked, max_suppressed=0.1).table["a"]) == {"0": 9, "*": 1}


@pytest.mark.parametrize("source", ["labels", [["0", "l"], ["1", "l"], ["2", "h"], ["3", "h"]]])
def test_values_that_only_the_population_has(source) -> None:
    """Of a generated hierarchy they are under the star alone; the judge agrees."""
    random = np.random.default_rng(5)
    population = pl.DataFrame({"a": random.choice(["0", "1", "2", "3"], 80), "b": random.choice(["x", "y"], 80)})
    sample = population.filter(pl.col("a") != "3").head(12)
    asked = {"quasi_identifiers": ["a", "b"], "population": population, "publish": "hierarchy", "seed": 1}
    for model in ({"k_map": 30}, {"k_map": 80}, {"presence": (0, 0.15)}):
        for way in ({}, {"global_recoding": True}):
            assert shoal.anonymize(sample, **asked, **model, **way, hierarchies={"a": source}).audit.passes


def test_more_nodes_than_may_be_looked_at(monkeypatch) -> None:
    """A table too large for its forms falls back on larger groups, and on the highest levels in the end."""
    monkeypatch.setattr(Forms, "few", lambda *_: False)
    sample, population = framed([(0, 0), (0, 0)]), framed([(0, 0), (0, 0), (0, 1), (2, 1)])
    asked = {"quasi_identifiers": NAMES, "population": population}
    assert shoal.anonymize(sample, **asked, k_map=2).certificate.cost == 0
    release = shoal.anonymize(sample, **asked, k_map=3)
    assert (release.certificate.cost, release.audit.population["k_map"]) == (4, 4)
    assert release.certificate.lower_bound == 2


def test_cells_raised_beforehand_cost_what_they_are_raised_to() -> None:
    tree = Levels.tree(np.array(TREES[0]))
    histogram = Histogram.from_rows(np.array([[0], [0], [1], [2], [3]]))
    coarse = raised(Task(histogram, Requirement(1), Recoding((tree,))), np.array([[0], [1], [1], [2]]))
    column, codes = coarse.task.recoding.columns[0], coarse.task.histogram.quasi[coarse.of_cell, 0]
    assert column.pure[codes].tolist() == [0, 1 / 3, 1 / 3, 1]
    both = column.pair(codes[:, None], codes[None, :])
    assert both.tolist() == [[0, 1 / 3, 1, 1], [1 / 3, 1 / 3, 1, 1], [1, 1, 1 / 3, 1], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("level", "up", "down"),
    [(1 / 3, "0.334", "0.333"), (0.1, "0.1", "0.1"), (123456.7, "123457", "123456"), (1e-7 / 3, "3.34e-08", "3.33e-08"),
     (7.0, "7", "7"), (3.73207, "3.74", "3.73"), (0.999612345, "0.999613", "0.999612"), (0.951, "0.951", "0.951"),
     (0.1 + 0.2, "0.3", "0.3"), (math.inf, "inf", "inf"), (0.0, "0", "0")],
)  # fmt: skip
def test_what_is_said_can_be_asked_for(level: float, up: str, down: str) -> None:
    """With as few digits as people need, and never as 1 if it is less."""
    assert (level_text(level, up=True), level_text(level, up=False)) == (up, down)


def drawn_forms(seed: int) -> tuple[Forms, np.ndarray, np.ndarray]:
    """Stars in two columns, a small population, and tuples of it with their rows."""
    random = np.random.default_rng(seed)
    codes = np.array([(x, y) for x in range(3) for y in range(2)], np.int64)
    people = random.integers(1, 6, len(codes))
    columns = (Levels.stars(3), Levels.stars(2))
    forms = Forms(columns, tuple(c.node for c in columns), codes, people, np.array([1, 1]))
    at = np.sort(random.permutation(len(codes))[: random.integers(1, 5)])
    return forms, codes[at], random.integers(1, people[at] + 1)


def people_suffice(forms: Forms, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, high: float) -> bool:
    """Hall's condition, set by set."""
    fits = [
        [all(h or c == v for h, c, v in zip(level, code, person, strict=True)) for person in forms.codes.tolist()]
        for level, code in zip(levels.tolist(), codes.tolist(), strict=True)
    ]
    sets = (s for n in range(1, len(codes) + 1) for s in combinations(range(len(codes)), n))
    return all(
        sum(rows[i] for i in s) <= high * forms.people[[any(f) for f in zip(*(fits[i] for i in s), strict=True)]].sum()
        for s in sets
    )


@pytest.mark.parametrize("seed", range(24))
def test_people_are_shared_out_as_hall_says(seed: int) -> None:
    forms, codes, rows = drawn_forms(seed)
    high = [0.25, 0.5, 0.75, 1.0][seed % 4]
    least = np.zeros_like(codes)
    possible = []
    for choice in product(forms.lattice.tolist(), repeat=len(codes)):
        levels = np.array(choice)
        held = people_suffice(forms, codes, rows, levels, high)
        assert enough(forms, codes, rows, levels, high) == held
        possible += [float(forms.loss(codes, levels) @ rows)] if held else []
    found = shared(forms, codes, rows, least, high)
    assert (found is None) == (not possible)
    if found is not None:
        assert people_suffice(forms, codes, rows, found, high)
        assert float(forms.loss(codes, found) @ rows) <= 1.5 * min(possible)


def test_as_many_tuples_are_raised_as_lack_people() -> None:
    codes = np.arange(20).reshape(-1, 1)
    column = Levels.stars(40)
    forms = Forms((column,), (column.node,), np.arange(40).reshape(-1, 1), np.ones(40, np.int64), np.array([1]))
    sharing = Sharing(forms, codes, np.ones(20, np.int64), Fraction(1, 2))
    levels = np.zeros_like(codes)
    lack = sharing.lack(levels)
    assert lack is not None
    assert (lack.people, int(lack.wanting.sum())) == (20, 20)
    assert sharing.raised(levels, lack)
    assert int(levels.sum()) == 10  # a star needs two people and leaves its own to nobody
    assert shared(forms, codes, np.ones(20, np.int64), np.zeros_like(codes), 0.5) is not None


def test_whoever_needs_no_wider_form_is_lowered() -> None:
    codes = np.arange(6).reshape(-1, 1)
    column = Levels.stars(12)
    people = np.array([2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    forms = Forms((column,), (column.node,), np.arange(12).reshape(-1, 1), people, np.array([1]))
    sharing = Sharing(forms, codes, np.ones(6, np.int64), Fraction(1, 2))
    lowered = sharing.lowered(np.zeros_like(codes), np.ones_like(codes))
    assert lowered.ravel().tolist() == [0, 0, 0, 1, 1, 1]


def test_a_group_is_asked_by_itself_how_wide_it_must_be() -> None:
    """Rows raised before the search make groups wider than these need, once they share their people."""
    rows = ["22", "30", "40", "02", "40", "34", "12", "02", "34", "02"]
    people = [*rows, "22", "42", "02", "02", "30", "34", "40", "12", "14", "02"]
    release = shoal.anonymize(
        framed(rows), quasi_identifiers=NAMES, population=framed(people), presence=(0.0, 0.5), method="hilbert",
        effort="fast", seed=1,
    )  # fmt: skip
    coded = [[tuple(map(int, row)) for row in rows_] for rows_ in (rows, people)]
    least = least_beside(*coded, "DeltaPresence", {"low": 0.0, "high": 0.5}, 1)
    assert release.loss["stars"] == least == 2


def test_a_level_that_is_kept_is_told_with_four_digits(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"age": [20 + i % 3 for i in range(33)], "ill": [("a", "b", "b", "c")[i % 4] for i in range(33)]}
    )
    release = shoal.anonymize(frame, quasi_identifiers=["age"], sensitive=["ill"], k=2, delta=3, t=0.9, effort="fast")
    told = [f.found for f in shoal.verify(tmp_path / "r.csv", release.write(tmp_path / "r.csv"), frame).findings]
    levels = [word for text in told if "reached" in text or "t = " in text for word in re.findall(r"\d+\.(\d+)", text)]
    assert len(levels) > 3
    assert all(len(digits.lstrip("0")) <= 4 for digits in levels), told
