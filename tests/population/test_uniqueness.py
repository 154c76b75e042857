"""Estimates of population uniques and of individual risk against simulation and likelihoods worked out by hand."""

import itertools
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import hypergeom

import shoal
from shoal.judge.tables.population import classes, individual, pitman, snb, snb_sample, uniques, zayatz
from tests.commands import run


def sized(sizes: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    keys = sorted(sizes)
    return np.array(keys, float), np.array([sizes[k] for k in keys], float)


def sample_of(population: np.ndarray, share: float, seed: int) -> dict[int, int]:
    """Sizes of the classes of a simple random sample; population int64: the class of every person."""
    random = np.random.default_rng(seed)
    drawn = random.choice(population, int(share * population.size), replace=False)
    return dict(Counter(Counter(drawn.tolist()).values()))


@pytest.mark.parametrize(("rows", "people"), [(1, 10.0), (1, 2.5), (3, 40.0), (7, 7.0), (60, 900.0)])
def test_individual_risk_is_the_mean_of_one_over_the_population(rows: int, people: float) -> None:
    found = float(individual(np.array([rows]), np.array([people]))[0])
    p = rows / people
    if p == 1:
        assert found == pytest.approx(1 / rows)
        return
    random = np.random.default_rng(1)
    drawn = rows + random.negative_binomial(rows, p, 400_000)
    assert found == pytest.approx(float((1 / drawn).mean()), rel=0.01)
    if rows == 1:
        assert found == pytest.approx(p / (1 - p) * math.log(1 / p))  # Benedetti, Franconi 1998


def test_snb_expects_what_a_simulation_counts() -> None:
    k, alpha, beta, share = 200_000, 0.7, 0.3, 0.2
    random = np.random.default_rng(2)
    rows = random.binomial(1 + random.negative_binomial(alpha, beta, k), share)
    once, twice = snb_sample(k, alpha, beta, share)
    assert once == pytest.approx((rows == 1).sum(), rel=0.02)
    assert twice == pytest.approx((rows == 2).sum(), rel=0.02)


def test_snb_finds_the_uniques_of_its_own_model() -> None:
    random = np.random.default_rng(3)
    of = 1 + random.negative_binomial(0.8, 0.35, 20_000)
    population = np.repeat(np.arange(of.size), of)
    size, many = sized(sample_of(population, 0.4, 4))
    assert classes(size, many, 0.4) == pytest.approx(of.size, rel=0.15)
    assert snb(size, many, population.size) == pytest.approx((of == 1).sum(), rel=0.25)


def test_pitman_finds_the_uniques_of_its_own_model() -> None:
    """A population grown by Pitman's scheme: a new class with chance (theta + u alpha) / (theta + n)."""
    theta, alpha, people = 80.0, 0.5, 40_000
    random = np.random.default_rng(5)
    tables: list[int] = []
    seats = np.empty(people, np.int64)
    for i, draw in enumerate(random.random(people)):
        if draw * (theta + i) < theta + len(tables) * alpha:
            seats[i] = len(tables)
            tables.append(1)
            continue
        while True:  # a seated person's table, kept with chance (size - alpha) / size
            table = seats[random.integers(0, i)]
            if random.random() * tables[table] < tables[table] - alpha:
                break
        seats[i] = table
        tables[table] += 1
    true = tables.count(1)
    size, many = sized(sample_of(seats, 0.05, 6))
    assert pitman(size, many, people) == pytest.approx(true, rel=0.15)


def test_zayatz_is_bayes_formula() -> None:
    sizes = {1: 30, 2: 10, 5: 4}
    n, people = 70, 700
    size, many = sized(sizes)
    weights = {s: c * hypergeom.pmf(1, people, s, n) for s, c in sizes.items()}
    chance = weights[1] / sum(weights.values())
    assert zayatz(size, many, people) == pytest.approx(30 * chance * 10)


def test_the_rule_takes_pitman_below_a_tenth_and_the_lower_one_above() -> None:
    sizes = {1: 300, 2: 90, 3: 40, 8: 10}
    low, high = uniques(sizes, 20_000), uniques(sizes, 2_000)
    assert low.rule == "pitman"
    assert low.dankar == low.pitman
    assert high.dankar == min(v for v in (high.zayatz, high.snb) if v is not None)
    assert uniques({3: 5}, 1000).dankar == 0
    assert uniques({1: 4, 2: 1}, 6) == (4, 4, 4, 4, "counted")


def test_audit_tells_them(tmp_path) -> None:
    random = np.random.default_rng(7)
    population = pl.DataFrame({"a": random.zipf(1.3, 3000).clip(0, 400), "b": random.integers(0, 6, 3000)})
    sample = population.sample(600, seed=1).with_columns(w=5.0)
    known = {"quasi_identifiers": ["a", "b"]}
    for more in ({"population": population}, {"population_weights": "w"}, {"population_size": 3000}):
        table = sample if "population_weights" in more else sample.drop("w")
        found = shoal.audit(table, **known, **more)
        assert found.population["uniques"]["dankar"] > 0
        assert found.as_dict()["population"]["rows"] == 3000
    weighed = shoal.audit(sample, **known, population_weights="w")
    assert 1 / 5 < weighed.risk["individual_max"] < 1
    assert weighed.risk["individual_mean"] <= weighed.risk["individual_max"]
    with pytest.raises(shoal.PolicyError, match="population_size"):
        shoal.audit(sample, **known, population_size=10)


def test_the_order_of_the_rows_changes_no_digit() -> None:
    """Classes come in any order, and the mean of their risks is the same."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"q": rng.choice([*"abcdefghijk"], 40), "w": rng.integers(1, 9, 40)})
    shuffled = [table.sample(fraction=1, shuffle=True, seed=seed) for seed in range(20)]
    found = [shoal.audit(one, quasi_identifiers=["q"], population_weights="w").risk for one in shuffled]
    assert len(set(map(str, found))) == 1


def test_few_rows_at_the_ends_of_the_models_are_no_error() -> None:
    """Where the likeliest alpha is 0 or 1 the search for it runs off, and must not end in an overflow."""
    for sizes in ({9: 1, 5: 1, 1: 1, 4: 1}, {3: 1, 1: 1, 2: 1}, {2: 3, 1: 1}, {1: 2, 9: 3}, {1: 1, 2: 2, 5: 4}):
        rows = sum(size * many for size, many in sizes.items())
        for people in (rows + 1, rows + 100, rows + 10**6):
            found = uniques(sizes, people)
            assert 0 <= found.dankar <= people
            assert all(x is None or 0 <= x <= people for x in (found.zayatz, found.snb, found.pitman))


def test_pitman_of_small_tables_is_a_number_of_people_or_none() -> None:
    """Where the likeliest alpha is 0 or 1, the search runs off towards it."""
    for ones, twos, threes, people in itertools.product((0, 1, 3), (0, 2), range(2), (8, 60)):
        size, many = (np.array(v)[np.array([ones, twos, threes]) > 0] for v in ([1, 2, 3], [ones, twos, threes]))
        if size.size:
            found = pitman(size, many, people)
            assert found is None or 0 <= found <= people


def test_a_command_names_each_estimate_once(tmp_path) -> None:
    pl.DataFrame({"a": range(40), "b": [i % 3 for i in range(40)]}).write_csv(tmp_path / "t.csv")
    for column, says in (("a", "about 10,000 of 10,000 people (zayatz)"), ("b", "about 0 of 10,000 people (counted)")):
        assert says in run("audit", tmp_path / "t.csv", "--quasi", column, "--population-size", 10_000).stdout
    seen = [*range(10), *[100 + i // 2 for i in range(20)], *[200 + i // 3 for i in range(30)]]
    pl.DataFrame({"a": seen}).write_csv(tmp_path / "u.csv")
    said = run("audit", tmp_path / "u.csv", "--quasi", "a", "--population-size", 200).stdout
    assert "about 0 of 200 people (snb; zayatz 9)" in said
