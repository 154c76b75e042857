"""Every method of every problem against exhaustive search: a method is tested here as soon as the catalogue lists it.

An answer is feasible, costs what its certificate states, and no less than the optimum; its lower bound is no higher;
the factor of its theorem holds; a seed gives it again; the order of the input makes no difference.  A refusal is right.
"""

import numpy as np
import pytest

import shoal
from shoal.model.histogram import Histogram
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.problems.catalogue import CATALOGUE, names
from shoal.problems.tables import group
from tests.amount import thinned
from tests.conformance.problems import PROBLEMS, kept

METHODS = [(problem, method) for problem in PROBLEMS for method in dict.fromkeys(["auto", *names(problem)])]


def test_no_problem_with_methods_is_left_out():
    assert set(PROBLEMS) == {problem for problem in CATALOGUE if names(problem)}


@pytest.mark.parametrize(("problem", "method"), METHODS)
def test_answers_and_refusals(problem, method):
    random, answered = np.random.default_rng(7), 0
    for number in range(thinned(120)):
        try:
            answered += kept(problem, method, PROBLEMS[problem].draw(random, method), random)
        except AssertionError as error:
            error.add_note(f"instance {number}")
            raise
    assert answered >= 5


@pytest.mark.parametrize("method", dict.fromkeys(["auto", *names("tables")]))
def test_without_rows_or_columns_nothing_is_lost(method):
    need = shoal.LDiversity(2) if method == "matching" else shoal.KAnonymity(2)
    bare = [(4, 0)] if method in ("auto", "coarsen", "global_recoding", "mondrian") else []
    for rows, columns in ((0, 2), *bare):
        table = Histogram.from_rows(np.zeros((rows, columns), int), np.arange(rows)[:, None] % 2)
        found = group(table, need, method, seed=0)
        assert found.certificate.cost == 0
        assert found.partition.sizes.sum() == rows
        assert (found.partition.sizes >= 2).all()


K, L = shoal.KAnonymity, shoal.LDiversity
PAIRS = np.array([0, 0, 1, 1])
CAPPED = Levels.tree(np.stack([np.arange(4), PAIRS, np.zeros(4, int)]), ceiling=1)
REFUSED = [
    *((method, L(2), PAIRS, None, "k-anonymity alone") for method in ("forest", "pattern_cover", "halving")),
    ("pattern_cover", K(2), PAIRS, Sets.of(4), "published as sets"),
    ("halving", K(3), np.arange(63) % 3, None, "at most 62 rows, and there are 63"),
    ("two_anonymity", K(3), PAIRS, None, "k = 3"),
    ("two_anonymity", [K(2), L(2)], PAIRS, None, "sensitive"),
    ("two_anonymity", K(2), PAIRS, CAPPED, "ceiling"),
    ("mondrian", K(3), PAIRS, CAPPED, "'zip'"),
    ("top_down", K(3), PAIRS, CAPPED, "levels allowed for zip"),
    ("global_recoding", K(2), PAIRS, Ranges.of(np.arange(4.0)), "'zip' is published as a range"),
    ("coarsen", K(2), PAIRS, Sets.of(4), "'zip' is published as a set"),
    ("fewest_tuples", shoal.TCloseness(0.5), PAIRS, None, "'three_phase' takes any model"),
    ("fewest_tuples", K(4), PAIRS, CAPPED, "ceiling"),
    ("optimal", K(3), np.arange(200) % 3, Sets.of(200), "too many for an exact answer"),
    ("matching", K(2), PAIRS, None, "one sensitive column"),
    ("matching", shoal.DistinctLDiversity(2), PAIRS, None, "one sensitive column"),
    ("matching", [K(4), L(2)], PAIRS, None, "k = 4"),
    ("matching", L(2), np.array([0, 1, 2, 1]), None, "'s0' has 3"),
    ("matching", L(2), PAIRS, CAPPED, "'zip' above level 1"),
]


@pytest.mark.parametrize(("method", "need", "values", "column", "says"), REFUSED)
def test_what_a_method_does_not_answer_is_refused_by_name(method, need, values, column, says):
    table = Histogram.from_rows(np.arange(values.size), values, quasi_names=["zip"])
    with pytest.raises(shoal.PolicyError, match=says):
        group(table, need, method, recoding=None if column is None else Recoding((column,)), seed=0)
