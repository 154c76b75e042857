"""The paper's recursion by halves, and what carries optima back: from the kernel, and from tuples to stars.

Kernels keep the optimum, and what left them comes back.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.model.arguments import Effort
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.histogram import Histogram, distribute
from shoal.model.privacy import KAnonymity, LDiversity, Requirement
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables import group
from shoal.problems.tables.methods.kernelize import kernelize
from shoal.problems.tables.three_phase import in_stars, stars_from_tuples
from tests.oracles import tables as oracle
from tests.oracles.exact import partitions as every_partition
from tests.oracles.exact import recodings, rows_of


@settings(deadline=None, max_examples=15)
@given(rows=rows_of(4, 13, values=2, least=9), k=st.integers(3, 6))
def test_halving_against_the_other_exact_method(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    found = group(histogram, KAnonymity(k), "halving", seed=0)
    assert found.certificate.optimal
    assert found.certificate.cost == group(histogram, KAnonymity(k), "optimal", seed=0).certificate.cost
    assert found.certificate.details["stopped"] is None


def test_out_of_time_it_keeps_a_bound(ticking):
    rows = np.random.default_rng(1).integers(0, 9, (40, 6))
    found = group(Histogram.from_rows(rows), KAnonymity(3), "halving", effort=0.2).certificate
    assert found.details["stopped"] == "seconds"
    assert 0 < found.lower_bound < found.cost
    assert found.guarantee.factor is None


@settings(deadline=None, max_examples=25)
@given(data=st.data(), k=st.integers(2, 3), many=st.integers(1, 14), stars=st.booleans())
def test_an_optimum_of_the_kernel_is_carried_back(data, k, many, stars):
    counts = {(0, 0): many, **data.draw(st.dictionaries(st.tuples(*[st.integers(0, 1)] * 2), st.integers(1, 3)))}
    rows = [row for row, count in counts.items() for _ in range(count)]
    if len(rows) < k:
        return
    histogram = Histogram.from_rows(np.array(rows))
    recoding = Recoding.stars(histogram) if stars else data.draw(recodings(histogram.quasi_sizes, ("stars", "tree")))
    kernel = kernelize(histogram, k, recoding)
    for method in ("optimal", "forest"):
        inner = group(kernel.histogram, KAnonymity(k), method, recoding=recoding, seed=0)
        whole = kernel.solution(inner, recoding)
        whole.partition.check(histogram)
        assert (whole.partition.sizes >= k).all()
        best = group(histogram, KAnonymity(k), "optimal", recoding=recoding, seed=0).certificate
        assert whole.certificate.cost == pytest.approx(oracle.loss_of(histogram, recoding, whole.partition))
        assert whole.certificate.lower_bound <= best.cost + 1e-12
        if inner.certificate.optimal:
            assert whole.certificate.optimal
            assert whole.certificate.cost == pytest.approx(best.cost)
        assert (
            whole.certificate.lower_bound >= inner.certificate.lower_bound * (kernel.histogram.rows / len(rows)) - 1e-9
        )


def test_what_left_the_kernel_is_added_to_cost_and_bound():
    histogram = Histogram.from_rows(np.array([0] * 60 + [1] * 3 + [2] * 2))
    node = np.array([[0, 0, 1], [0, 0, 0]])  # already the lowest level holds two of three values: it loses 1/2
    recoding = Recoding((Levels.tree(node),))
    kernel = kernelize(histogram, 3, recoding)
    left, kept = int(kernel.emitted.sum()), kernel.histogram.rows
    assert left > 30
    inner = group(kernel.histogram, KAnonymity(3), "optimal", recoding=recoding)
    paid = inner.certificate.cost * kept
    whole = kernel.solution(inner, recoding).certificate
    assert whole.optimal
    assert whole.cost == pytest.approx((paid + left / 2) / 65)
    loose = replace(inner, certificate=replace(inner.certificate, lower_bound=inner.certificate.cost / 2))
    assert kernel.solution(loose, recoding).certificate.lower_bound == pytest.approx((paid / 2 + left / 2) / 65)


def test_of_equal_rows_the_first_go_into_a_part():
    histogram = Histogram.from_rows(np.repeat([[0, 0], [1, 1], [0, 1]], 5, axis=0))
    found = group(histogram, KAnonymity(4), "halving").certificate
    assert found.cost == 0
    odd = Histogram.from_rows(np.array([[0, 0]] * 7 + [[1, 1]] * 2 + [[0, 1]] * 2))
    assert group(odd, KAnonymity(3), "halving").certificate.details["parts"] < 1500


def test_a_kernel_carries_back_what_is_certified_in_its_unit_alone():
    kernel = kernelize(Histogram.from_rows(np.zeros((9, 1), int)), 2)
    inner = group(kernel.histogram, KAnonymity(2), "three_phase")
    with pytest.raises(PolicyError, match="certified in suppressed tuples"):
        kernel.solution(inner, Recoding.stars(kernel.original))


@settings(deadline=None, max_examples=40)
@given(rows=rows_of(3, 7, values=2, least=3), seed=st.integers(0, 10**6))
def test_fewest_tuples_are_within_d_times_the_fewest_stars(rows, seed):
    """An optimum in tuples by enumeration, turned into stars."""
    sensitive = np.random.default_rng(seed).integers(0, 3, len(rows))
    histogram = Histogram.from_rows(np.array(rows), sensitive)
    need = Requirement(1, (2,), (1,))

    def tuples(partition):
        return sum(len(g) for g in partition if len({rows[i] for i in g}) > 1)

    def stars(partition):
        return sum(len(g) * sum(len({rows[i][j] for i in g}) > 1 for j in range(3)) for g in partition)

    good = [
        p for p in every_partition(len(rows)) if all(2 * np.bincount(sensitive[list(g)]).max() <= len(g) for g in p)
    ]
    if not good:
        return
    task = Task(histogram, need, Recoding.stars(histogram), Effort.of("fast"), 0)
    fewest, least = min(map(tuples, good)), min(map(stars, good))
    found = stars_from_tuples(task, group(histogram, need, "three_phase", seed=0))
    assert found.certificate.unit == "stars"
    assert found.certificate.lower_bound <= least <= found.certificate.cost
    assert found.certificate.cost == oracle.loss_of(histogram, Recoding.stars(histogram), found.partition)
    promise = found.certificate.guarantee
    assert found.certificate.cost <= promise.factor * least + (promise.additive or 0)
    assert found.certificate.details["suppressed tuples"] >= fewest
    if found.certificate.details["suppressed tuples"] == found.certificate.lower_bound:
        assert promise.factor == 3
        assert found.certificate.cost <= 3 * least


def test_lemma_two_multiplies_factor_and_additive_term():
    promise = in_stars(Guarantee(factor=2, additive=5, theorem="here"), 4)
    assert (promise.factor, promise.additive) == (8, 20)
    assert promise.theorem.startswith("here; a suppressed tuple has 1 to 4 stars")
    assert in_stars(Guarantee(), 4).factor is None


def test_what_lemma_two_refuses():
    histogram = Histogram.from_rows(np.arange(4) // 2, np.arange(4) % 2)
    task = Task(histogram, Requirement(1, (2,), (1,)), Recoding.stars(histogram), Effort.of("fast"), 0)
    found = group(histogram, LDiversity(2), "three_phase")
    with pytest.raises(PolicyError, match="certified in stars"):
        stars_from_tuples(task, Grouping(found.partition, Certificate(cost=1, lower_bound=0, unit="stars"), "x"))
    weighted = Recoding((Levels.stars(2, 2.0),), "stars")
    with pytest.raises(PolicyError, match="counting one"):
        stars_from_tuples(replace(task, recoding=weighted), found)


def table(counts: dict[tuple[int, ...], int]) -> Histogram:
    return Histogram.from_rows(np.array([row for row, count in counts.items() for _ in range(count)]))


@settings(deadline=None, max_examples=80)
@given(
    data=st.data(),
    k=st.integers(2, 3),
    counts=st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.integers(1, 4), min_size=1, max_size=3),
    many=st.integers(1, 40),
)
def test_the_kernel_keeps_the_optimum(data, k, counts, many):
    first = next(iter(counts))
    histogram = table({**counts, first: many})
    if histogram.rows < k:
        return
    recoding = data.draw(recodings(histogram.quasi_sizes, ("stars", "tree")))
    least = oracle.least_loss_of_many(histogram, k, recoding)
    for threshold in ("linear", "paper"):
        kernel = kernelize(histogram, k, recoding, threshold=threshold)
        assert (kernel.emitted % k == 0).all()
        assert oracle.least_loss_of_many(kernel.histogram, k, recoding) == pytest.approx(least)
        types = np.bincount(kernel.histogram.types[0], weights=kernel.histogram.count)
        left = kernel.threshold[np.unique(histogram.types[0][kernel.cell])]
        assert (types <= left).all()


def test_the_thresholds_of_both_theorems():
    histogram = table({(0, 0): 500, (0, 1): 3, (1, 1): 2})
    paper = kernelize(histogram, 3, threshold="paper")
    assert paper.threshold.tolist() == [2 * 9 * 4] * 3
    # Closures over 00: with 01 a star in the second column, with 11 or both two stars.
    linear = kernelize(histogram, 3)
    assert linear.threshold[0] == 4 * 2 + 5
    assert linear.histogram.count.tolist() == [11, 3, 2]
    assert linear.emitted.tolist() == [489, 0, 0]
    # A type alone never meets another published row.
    assert kernelize(table({(0, 0): 500}), 3).threshold.tolist() == [5]


def test_emitted_groups_are_replayed_into_the_release():
    histogram = table({(0, 0): 500, (0, 1): 3, (1, 1): 2})
    kernel = kernelize(histogram, 3)
    inner = group(kernel.histogram, KAnonymity(3), "pattern_cover")
    whole = kernel.replay(inner.partition)
    whole.check(histogram)
    assert (whole.sizes >= 3).all()
    assert oracle.loss_of(histogram, Recoding.stars(histogram), whole) == inner.certificate.cost


def test_cells_that_differ_only_in_sensitive_values_share_their_type():
    rows = np.array([[0]] * 300 + [[1]] * 4)
    histogram = Histogram.from_rows(rows, np.arange(304) % 7)
    kernel = kernelize(histogram, 2)
    assert kernel.histogram.rows < 15
    whole = kernel.replay(group(kernel.histogram, KAnonymity(2), "forest").partition)
    whole.check(histogram)


def test_refusals():
    histogram = table({(0, 0): 5, (1, 0): 4})
    with pytest.raises(PolicyError, match="published as ranges"):
        kernelize(histogram, 2, Recoding((Ranges.of(np.array([0.0, 1.0])), Levels.stars(1))))
    with pytest.raises(PolicyError, match="paper"):
        kernelize(histogram, 2, threshold="papers")


@settings(deadline=None, max_examples=60)
@given(held=st.lists(st.integers(1, 6), min_size=1, max_size=6), data=st.data())
def test_dealing_places_every_row_once(held, data):
    kind_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(held), max_size=len(held))))
    kind_of = np.unique(kind_of, return_inverse=True)[1]
    rows = np.bincount(kind_of, weights=held).astype(int)
    kind, group_of, count = [], [], []
    for x, n in enumerate(rows.tolist()):
        cut = data.draw(st.integers(1, n))
        kind += [x, x]
        group_of += [x, 3]
        count += [cut, n - cut]
    found = distribute(np.array(held), kind_of, np.array(kind), np.array(group_of), np.array(count))
    assert np.bincount(found.cell, weights=found.count, minlength=len(held)).tolist() == held
    per_group = sorted(v for v in np.bincount(group_of, weights=count).astype(int).tolist() if v)
    assert sorted(found.sizes.tolist()) == per_group
