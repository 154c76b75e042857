"""Every method of every problem against exhaustive search: a method is tested here as soon as the catalogue lists it.

An answer is feasible, costs what its certificate states, and no less than the optimum; its lower bound is no higher;
the factor of its theorem holds; a seed gives it again; the order of the input makes no difference.  A refusal is right.
"""

import numpy as np
import pytest

import shoal
from shoal.model.histogram import Histogram
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
def test_an_empty_table_has_no_groups(method):
    empty = Histogram.from_rows(np.zeros((0, 2), int), np.zeros((0, 1), int))
    need = shoal.LDiversity(2) if method == "matching" else shoal.KAnonymity(2)
    found = group(empty, need, method, seed=0)
    assert (found.partition.groups, found.certificate.cost) == (0, 0)
