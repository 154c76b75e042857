"""The made-up census keeps its domains, its seed and its skew."""

from __future__ import annotations

import numpy as np

from shoal.experiments.l_diversity import DOMAINS, SENSITIVE, census_like


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
