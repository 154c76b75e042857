"""Top-down specialization: eligible, single-dimensional, and specialized as far as it can be."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, LDiversity, Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.methods.top_down import as_published, refinements, specialize
from tests.tables.checks import columns_of, forms, least_loss, solved, tables
from tests.tables.drawn import TREE


@settings(deadline=None, max_examples=150)
@given(histogram=tables(d=2, s=1, most=10), form=forms, k=st.integers(1, 4), l=st.integers(1, 3), u=st.integers(1, 3))
def test_single_dimensional_eligible_and_finished(histogram, form, k, l, u):
    need = Requirement(k, (l,), (u,))
    recoding = columns_of(form, histogram.quasi_sizes)
    found = solved(histogram, need, recoding, "top_down")
    if found is None:
        return
    if histogram.rows <= 6:
        assert found.certificate.lower_bound <= least_loss(histogram, need, recoding) + 1e-12
    task = Task(histogram, need, recoding)
    label, cuts = specialize(task)
    classes = np.stack([cut[histogram.quasi[:, j]] for j, cut in enumerate(cuts)], axis=1)
    assert (
        len({(g, *c) for g, c in zip(label, classes, strict=True)}) == len(set(label)) == len(set(map(tuple, classes)))
    )
    everyone = np.arange(histogram.cells)
    for j, cut in enumerate(cuts):  # no class can be refined any more
        for name in np.unique(cut):
            codes = np.flatnonzero(cut == name)
            column = recoding.columns[j]
            level = 0
            while column.kind == "levels" and len(set(column.node[level][codes])) > 1:
                level += 1
            for _, part in refinements(task, j, level, codes):
                finer = cut.copy()
                finer[codes] = cut.max() + 1 + part
                new = np.unique(label * 100 + finer[histogram.quasi[:, j]], return_inverse=True)[1].reshape(-1)
                if len(set(new)) > len(set(label)):  # a cut between values that no row has refines nothing
                    assert not groups_that_meet(histogram, need, everyone, new).all()


def test_stars_of_the_column_that_tells_least_apart_go_first():
    # Both columns alone are fine, together they are not; the skewed one keeps its values at fewer bits.
    quasi = np.array([[0, i % 2] for i in range(8)] + [[1, 0]] * 2 + [[0, 1]] * 2)
    histogram = Histogram.from_rows(quasi)
    found = group(histogram, KAnonymity(2), "top_down")
    assert found.certificate.details["classes"] == {"q0": 2, "q1": 1} or found.certificate.cost == 0
    tight = group(histogram, KAnonymity(3), "top_down")
    assert tight.certificate.details["classes"] == {"q0": 1, "q1": 2}


def test_a_limit_on_levels_is_kept():
    limited = Recoding((Levels.tree(TREE, ceiling=1),))
    kept = Histogram.from_rows(np.array([0, 1, 2, 3]))
    assert group(kept, KAnonymity(2), "top_down", recoding=limited).partition.groups == 2


def test_the_published_form_spreads_a_value_over_its_class():
    recoding = as_published([np.array([0, 0, 1]), np.array([0, 1])])
    histogram = Histogram.from_rows(np.array([[0, 0], [1, 0], [2, 1]]))
    label, cuts = specialize(Task(histogram, Requirement(1), columns_of("range", (3, 2))))
    assert [c.size for c in cuts] == [3, 2]
    assert len(set(label)) == 3
    assert [c.levels for c in recoding.columns] == [2, 2]


def test_wide_ranges_are_cut_at_quantiles():
    rng = np.random.default_rng(0)
    histogram = Histogram.from_rows(np.arange(1000), rng.integers(0, 6, 1000))
    found = group(histogram, LDiversity(3), "top_down", recoding=columns_of("range", (1000,)), effort="fast")
    assert found.certificate.details["classes"]["q0"] > 100
