"""The paper's figures run end to end on a small table, and their sentences follow from their numbers.

The made-up census keeps its domains, its seed and its skew.
"""

import csv

import numpy as np

from shoal.experiments import l_diversity
from shoal.experiments.l_diversity import DOMAINS, SENSITIVE, census_like


def test_figures_as_csv_and_png_with_a_sentence_each(tmp_path):
    said = l_diversity.run(tmp_path, rows=200, subsets=1)
    assert len(said) == 8
    for number in range(2, 9):
        assert said[number - 2].startswith(f"Figure {number} (")
        assert (tmp_path / f"figure_{number}.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "figure_2.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {r["table"] for r in rows} == {"census-like"}
    assert [int(r["l"]) for r in rows][:3] == [2, 3, 4]
    for r in rows:
        assert float(r["TP+"]) <= float(r["TP"])
    with (tmp_path / "figure_7.csv").open(encoding="utf-8") as file:
        assert all(float(r["TP+"]) > 0 and float(r["TDS"]) > 0 for r in csv.DictReader(file))
    with (tmp_path / "phases.csv").open(encoding="utf-8") as file:
        assert all(1 <= int(r["phase"]) <= 4 for r in csv.DictReader(file))


def test_a_sentence_says_where_a_finding_fails():
    mean = [
        {"table": "a", "l": 2, "Hilbert": 3.0, "TP": 2.0, "TP+": 1.0},
        {"table": "a", "l": 3, "Hilbert": 4.0, "TP": 3.0, "TP+": 1.0},
        {"table": "b", "l": 2, "Hilbert": 3.0, "TP": 2.0, "TP+": 2.5},
        {"table": "b", "l": 3, "Hilbert": 2.0, "TP": 3.0, "TP+": 1.0},
    ]
    said = l_diversity.stars_by_l(mean, "l")
    assert "TP+ is best at every l is confirmed on a, refuted on b" in said
    assert "TP beats Hilbert is confirmed on a, refuted on b" in said
    assert "stars rise with l is confirmed on a, refuted on b" in said
    assert "is refuted" in l_diversity.stars_by_l(mean[2:], "l")
    assert "cascade has 0.50 of TP+" in l_diversity.stars_by_l([{**r, "cascade": r["TP+"] / 2} for r in mean], "l")


def test_every_value_of_every_domain_occurs_and_no_other():
    table = census_like(60_000, seed=1)
    assert list(table) == list(DOMAINS)
    for name, size in DOMAINS.items():
        assert np.array_equal(np.unique(table[name]), np.arange(size)), name


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    a, b, c = census_like(500, seed=3), census_like(500, seed=3), census_like(500, seed=4)
    assert all(np.array_equal(a[name], b[name]) for name in DOMAINS)
    assert any((a[name] != c[name]).any() for name in DOMAINS)


def test_ten_diversity_is_possible_and_columns_depend_on_one_another():
    table = census_like(60_000, seed=1)
    assert np.bincount(table[SENSITIVE]).max() * 10 <= 60_000
    native = table["BirthPlace"] == 0
    assert native[table["Race"] == 0].mean() > native[table["Race"] == 8].mean() + 0.3
    assert table["Age"][table["MaritalStatus"] == 2].mean() < table["Age"].mean() - 5


def test_no_rows_give_empty_columns():
    assert all(column.shape == (0,) for column in census_like(0).values())
