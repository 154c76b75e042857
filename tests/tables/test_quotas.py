"""Small groups near a table's shares: eligible, cheaper than what the cascade finds, and every method has its bound."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.tables.eligible import GroupTriples
from shoal.kernels.tables.eligible_parts import Quotas, deal
from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, LDiversity, TCloseness, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.tables.groups import Rows
from shoal.problems.tables.search.cascade import by_quotas, publish_classes, rank, start
from tests.oracles.models import meets
from tests.oracles.tables import held
from tests.tables.drawn import census_like


@settings(deadline=None, max_examples=150)
@given(
    held=st.lists(st.integers(0, 12), min_size=2, max_size=5).filter(any),
    t=st.sampled_from([0.0, 0.1, 0.25, 0.4]),
    k=st.integers(1, 6),
)
def test_groups_dealt_are_close_disjoint_and_of_the_sizes_asked(held: list[int], t: float, k: int) -> None:
    whole = np.array(held, np.int64)
    share, left = np.array([3, 3, 2, 1, 1][: whole.size], float), whole.copy()
    share /= share.sum()
    cells = np.arange(whole.size)
    out = GroupTriples.empty(int(whole.sum()) + 1)
    groups, written = deal(cells, np.array([0, whole.size]), cells, left, Quotas(share, t, k, 3 * k), 0, out)
    cell, label, count = (a[:written] for a in out)
    assert (np.bincount(cell, weights=count, minlength=whole.size) + left == whole).all()
    assert (left >= 0).all()
    assert (count > 0).all()
    for g in range(groups):
        own = np.bincount(cell[label == g], weights=count[label == g], minlength=whole.size)
        assert k <= own.sum() <= 3 * k
        assert np.abs(own / own.sum() - share).sum() / 2 <= t + 1e-8
    near = np.abs(whole / whole.sum() - share).sum() / 2 <= min(t, 0.5 * t)
    assert groups or not (near and whole.sum() == k)  # a class that is a group is found


def closeness(t: float, *others) -> Task:
    histogram = census_like(1200, 4, columns=4)
    need = requirement([KAnonymity(5), TCloseness(t), *others], histogram.sensitive_names, histogram)
    return Task(histogram, need, Recoding.stars(histogram), seed=1)


def test_the_cascade_is_cheaper_with_them_and_all_models_hold() -> None:
    task = closeness(0.2, DistinctLDiversity(4))
    rows = Rows.of(task)
    labels = by_quotas(task, rows)
    sizes = np.bincount(labels[labels >= 0])
    assert sizes[sizes > 0].min() >= rows.k
    assert sizes.max() <= 3 * rows.k
    found = start(task, rows)
    before = rank(task, rows.partition(rows.place(rows.cut(rows.spread(*publish_classes(task))))))
    assert rank(task, found) < before
    table = [(int(v),) for v in np.repeat(task.histogram.sensitive[:, 0], task.histogram.count)]
    for rows_of in held(task.histogram, found):
        assert len(rows_of) >= 5
        assert len(set(rows_of)) >= 4
        assert meets("TCloseness", {"t": 0.2, "distance": "equal"}, rows_of, table)


def test_without_closeness_there_is_nothing_to_deal() -> None:
    histogram = census_like(200, 4, columns=2)
    need = requirement([LDiversity(3)], histogram.sensitive_names, histogram)
    task = Task(histogram, need, Recoding.stars(histogram))
    assert by_quotas(task, Rows.of(task)) is None


def test_a_table_of_one_row_and_none() -> None:
    for n in (0, 1):
        histogram = Histogram.from_rows(np.zeros((n, 1), int), np.zeros(n, int))
        need = requirement([TCloseness(0.2)], histogram.sensitive_names, histogram)
        task = Task(histogram, need, Recoding.stars(histogram))
        assert start(task, Rows.of(task)).count.tolist() == [1] * n
