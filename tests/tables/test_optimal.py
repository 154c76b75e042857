"""The exact programs against every partition there is, and against each other."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.problems.tables import group
from shoal.problems.tables.exact import optimal, pattern_program
from tests.oracles.exact import divide_and_conquer, recodings, rows_of
from tests.oracles.tables import least_total, partitions
from tests.tables.checks import all_eligible, least_loss
from tests.tables.drawn import KINDS

VECTORS = mock.patch.object(optimal, "by_vectors", optimal.by_vectors)
PATTERNS = mock.patch.object(optimal, "by_vectors", return_value=None)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(0, 6), seed=st.integers(0, 10**6))
def test_the_oracle_itself_is_the_least_over_every_partition(n, seed):
    price = np.random.default_rng(seed).random(2**n)
    price[price < 0.4] = np.inf  # no group

    def of(group):
        found = price[sum(2**i for i in group)]
        return None if np.isinf(found) else found

    every = [[of(g) for g in partition] for partition in partitions(n)]
    sums = [sum(p) for p in every if None not in p]
    found = least_total(n, of)
    assert found == (pytest.approx(min(sums)) if sums else None)


def check(histogram, need, recoding, best):
    """Solve by both programs; same cost as `best` (summed loss, None: infeasible), and every group eligible."""
    levels = recoding is None or all(c.kind == "levels" for c in recoding.columns)
    for program in [VECTORS, PATTERNS] if levels else [VECTORS]:
        with program:
            if best is None:
                with pytest.raises(InfeasibleError):
                    group(histogram, need, "optimal", recoding=recoding, seed=0)
                continue
            found = group(histogram, need, "optimal", recoding=recoding, seed=0)
        certificate = found.certificate
        assert certificate.optimal
        assert certificate.details["stopped"] is None
        assert certificate.cost == pytest.approx(best, abs=1e-9)
        assert all_eligible(histogram, need, found.partition)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), rows=rows_of(2, 7, values=4, least=3), k=st.integers(2, 4))
def test_k_anonymity_by_any_recoding(data, rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    kinds = data.draw(st.sampled_from([("stars", "tree"), ("stars", "tree", "set", "range")]))
    recoding = data.draw(recodings(histogram.quasi_sizes, kinds))
    check(histogram, Requirement(k), recoding, least_loss(histogram, Requirement(k), recoding))


@settings(deadline=None, max_examples=80)
@given(
    data=st.data(),
    rows=rows_of(2, 7, least=1),
    k=st.integers(1, 3),
    f=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    u=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    columns=st.integers(1, 2),
)
def test_l_diversity_with_stars_and_hierarchies(data, rows, k, f, u, columns):
    values = st.tuples(*[st.integers(0, 2)] * columns)
    sensitive = data.draw(st.lists(values, min_size=len(rows), max_size=len(rows)))
    histogram = Histogram.from_rows(np.array(rows), np.array(sensitive))
    recoding = data.draw(recodings(histogram.quasi_sizes, ("stars", "tree")))
    need = Requirement(k, f[:columns], u[:columns])
    check(histogram, need, recoding, least_loss(histogram, need, recoding))


@settings(deadline=None, max_examples=15)
@given(rows=rows_of(3, 9, least=7), k=st.integers(3, 4))
def test_the_divide_and_conquer_of_the_paper(rows, k):
    assert group(Histogram.from_rows(np.array(rows)), KAnonymity(k), "optimal").certificate.cost == divide_and_conquer(
        rows, k
    )


@settings(deadline=None, max_examples=15)
@given(rows=rows_of(3, 16, values=2, least=10), k=st.integers(3, 4))
def test_both_programs_agree_beyond_brute_force(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    with PATTERNS:
        patterns = group(histogram, KAnonymity(k), "optimal").certificate
    vectors = group(histogram, KAnonymity(k), "optimal").certificate
    assert patterns.cost == vectors.cost == vectors.lower_bound == patterns.lower_bound
    assert vectors.details["program"] == "vectors"


def test_losses_too_small_to_be_told_apart_are_not_called_none():
    recoding = Recoding((replace(Levels.stars(2), weight=1e-15),) * 3, "ncp")
    rows = np.array([*[[1, 1, 1]] * 4, [0, 0, 0], [0, 0, 1], [1, 0, 1]])
    found = group(Histogram.from_rows(rows), Requirement(2), "optimal", recoding=recoding)
    assert found.certificate.lower_bound <= 1e-15 * 4 / 21


def test_figure_three_of_the_clustering_paper():
    # 1111, 0111, 1011, 1101, 1110 with k = 5: one group, all four columns differ.
    rows = np.array([(1, 1, 1, 1), (0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)])
    assert group(Histogram.from_rows(rows), KAnonymity(5), "optimal").certificate.cost == 20


def test_k4_partitions_into_a_triangle_and_a_star():
    # Theorem 1.5: rows are the edges of K4 by incidence; 3 stars each is the least there is, so 18 in all.
    rows = np.zeros((6, 4), int)
    for i, (a, b) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
        rows[i, [a, b]] = 1
    assert group(Histogram.from_rows(rows), KAnonymity(3), "optimal").certificate.cost == 18


def test_k_two_goes_to_the_pairs():
    found = group(Histogram.from_rows(np.array([(0, 0), (0, 1), (1, 1)])), KAnonymity(2), "optimal")
    assert found.method == "optimal"
    assert found.certificate.details["program"] == "pairs"
    assert found.certificate.cost == 6


def test_a_million_rows_of_sixteen_kinds_are_decided_on_their_kernel():
    count = np.array([600_000, 3, 1, 2, 120_000, 4, 9, 1, 80_000, 7, 2, 100_000, 1, 3, 2, 100_000])
    rows = np.array([[i >> j & 1 for j in range(4)] for i in range(16)])
    histogram = Histogram(rows.astype(np.int32), np.zeros((16, 0), np.int32), count, tuple("abcd"), (), (2,) * 4, ())
    found = group(histogram, KAnonymity(5), "optimal")
    assert found.certificate.optimal
    assert found.certificate.details["kernel_rows"] < 1500
    assert (found.partition.sizes >= 5).all()


def test_out_of_time_gives_an_answer_with_its_bound_and_says_so(monkeypatch):
    rows = np.random.default_rng(5).integers(0, 4, (120, 4))
    histogram = Histogram.from_rows(rows)
    with mock.patch.object(optimal, "ProgramLimits", lambda seconds: pattern_program.ProgramLimits(seconds, 10)):
        assert group(histogram, KAnonymity(4), "optimal").certificate.details["stopped"] == "memory"
    monkeypatch.setattr(optimal, "seconds_left", lambda _: 0.0)  # a fast machine would solve it in a second
    certificate = group(histogram, KAnonymity(4), "optimal", effort=0.2).certificate
    assert certificate.details["stopped"] == "seconds"
    assert 0 < certificate.lower_bound < certificate.cost
    assert certificate.guarantee.factor is None


@pytest.mark.parametrize(("kind", "longest"), [("stars", optimal.QUICK), ("sets", 600.0)])
def test_the_vector_program_takes_little_time_where_patterns_can_follow(kind, longest, monkeypatch) -> None:
    """On 21 rows, it takes minutes, and the program over patterns a second."""
    asked = []

    def vectors(*given):
        asked.append(given[4])
        return VECTORS.new(*given)

    monkeypatch.setattr(optimal, "by_vectors", vectors)
    table = Histogram.from_rows(np.random.default_rng(3).integers(0, 3, (12, 3)))
    sets = Recoding(tuple(KINDS["set"]() for _ in range(3)), "ncp")
    found = group(table, KAnonymity(3), "optimal", recoding=Recoding.stars(table) if kind == "stars" else sets)
    assert found.certificate.optimal
    assert asked == [longest]
