"""The three-phase algorithm against its paper's examples and an exhaustive oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, LDiversity, Requirement
from shoal.problems.tables import group
from shoal.problems.tables.three_phase import residue
from tests.oracles.tables import fewest_suppressed
from tests.tables.checks import all_eligible


def by_vectors(*types: tuple[int, ...]) -> Histogram:
    """One quasi-identifier; type i has types[i][v] rows of sensitive value v, as the paper writes its examples."""
    quasi = [i for i, t in enumerate(types) for c in t for _ in range(c)]
    sensitive = [v for t in types for v, c in enumerate(t) for _ in range(c)]
    return Histogram.from_rows(np.array(quasi), np.array(sensitive))


def left_over(histogram: Histogram, l: int) -> list[int]:
    taken, _ = residue(histogram, Requirement(1, (l,), (1,)))
    return (
        np.bincount(histogram.sensitive[:, 0], weights=taken, minlength=histogram.sensitive_sizes[0])
        .astype(int)
        .tolist()
    )


def test_table_one_of_the_paper():
    # Types {1,2}, {3}, {4}, {5..8}, {9,10}; the residue is HIV, HIV, pneumonia, bronchitis: the first four rows.
    hiv, pneumonia, bronchitis = 0, 1, 2
    types = [0, 0, 1, 2, 3, 3, 3, 3, 4, 4]
    disease = [hiv, hiv, pneumonia, bronchitis, bronchitis, pneumonia, bronchitis, pneumonia, pneumonia, bronchitis]
    histogram = Histogram.from_rows(np.array(types), np.array(disease))
    taken, facts = residue(histogram, Requirement(1, (2,), (1,)))
    assert facts["phase"] == 1
    assert sorted(np.repeat(histogram.quasi[:, 0], taken)) == [0, 0, 1, 2]
    assert left_over(histogram, 2) == [2, 1, 1]


def test_phase_two_example_ends_with_at_most_l_minus_one_more_than_the_bound():
    histogram = by_vectors((3, 1, 1, 2, 3), (0, 2, 2, 4, 4), (4, 4, 0, 0, 0))
    found = group(histogram, LDiversity(3), "three_phase").certificate
    assert found.details["phase"] == 2
    assert found.lower_bound == 12
    assert 12 <= found.cost <= 14
    assert (found.guarantee.factor, found.guarantee.additive) == (1, 2)
    assert left_over(histogram, 3)[:2] == [4, 4]


def test_phase_three_example():
    # The paper starts phase three from Q1 = (3,1,2,3,3), Q2 = (1,3,2,3,3), R = (4,4,4,0,0) with l = 4.
    histogram = by_vectors((3, 1, 2, 3, 3), (1, 3, 2, 3, 3), (4, 0, 0, 0, 0), (0, 4, 0, 0, 0), (0, 0, 4, 0, 0))
    found = group(histogram, LDiversity(4), "three_phase").certificate
    assert found.details["phase"] == 3
    assert found.cost == 20
    assert (found.guarantee.factor, found.guarantee.additive) == (4, 0)
    assert sum(left_over(histogram, 4)) == 20
    assert max(left_over(histogram, 4)) == 5


tables = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=9)


@settings(deadline=None, max_examples=300)
@given(rows=tables, l=st.integers(1, 4), k=st.integers(1, 4), distinct=st.integers(1, 3))
def test_against_every_residue_there_is(rows, l, k, distinct):
    types, values = [a for a, _ in rows], [b for _, b in rows]
    histogram = Histogram.from_rows(np.array(types), np.array(values))
    need = Requirement(k, (l,), (distinct,))
    best = fewest_suppressed(types, values, l, k, distinct)
    if best is None:
        with pytest.raises(InfeasibleError):
            group(histogram, need, "three_phase")
        return
    found = group(histogram, need, "three_phase")
    assert all_eligible(histogram, need, found.partition)
    certificate = found.certificate
    taken = int(residue(histogram, need)[0].sum())
    assert certificate.lower_bound <= best <= taken
    assert certificate.cost <= taken
    promise = certificate.guarantee
    if promise.factor is not None:
        assert taken <= promise.factor * best + promise.additive
    phase = certificate.details["phase"]
    if phase == 1:
        assert taken == best
    assert (promise.factor, promise.additive) == {1: (1, 0), 2: (1, l - 1), 3: (l, 0), 4: (None, None)}[phase]


@settings(deadline=None, max_examples=100)
@given(rows=st.lists(st.integers(0, 3), min_size=1, max_size=9), k=st.integers(1, 5))
def test_k_anonymity_alone_suppresses_the_fewest_tuples(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    best = fewest_suppressed(rows, list(range(len(rows))), 1, k)
    if len(rows) < k:
        with pytest.raises(InfeasibleError):
            group(histogram, KAnonymity(k), "three_phase")
    else:
        assert int(residue(histogram, Requirement(k))[0].sum()) == best


def test_an_infeasible_request_names_the_column_the_share_and_the_largest_l():
    histogram = Histogram.from_rows(np.zeros(10, int), np.array([0] * 6 + [1] * 4), sensitive_names=["disease"])
    with pytest.raises(InfeasibleError, match=r"disease .*60\.0 %.*l = 2.*largest l possible is 1"):
        group(histogram, LDiversity(2))


def test_distinct_diversity_asks_for_values_that_exist():
    histogram = Histogram.from_rows(np.zeros(4, int), np.array([0, 0, 1, 1]), sensitive_names=["disease"])
    with pytest.raises(InfeasibleError, match="2 different values"):
        group(histogram, DistinctLDiversity(3))
