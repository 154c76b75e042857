"""Tuple minimization by its integer program, against every way to choose the rows that leave."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.tables import group
from tests.data import drawn
from tests.oracles.tables import eligible
from tests.tables.checks import least_loss


def fewest(quasi: np.ndarray, sensitive: np.ndarray, need: Requirement) -> int | None:
    """Rows changed by the best of all choices of rows that leave their type; None where no choice will do."""
    n = len(quasi)
    types = [[i for i in range(n) if (quasi[i] == kind).all()] for kind in np.unique(quasi, axis=0)]
    found = []
    for chosen in range(1 << n):
        leave = [i for i in range(n) if chosen >> i & 1]
        stay = [[i for i in kind if not chosen >> i & 1] for kind in types]
        parts = ([tuple(sensitive[i]) for i in part] for part in (*stay, leave) if part)
        if all(eligible(part, need.k, need.frequency, need.distinct) for part in parts):
            changed = len({tuple(quasi[i]) for i in leave}) > 1
            found.append(len(leave) if changed else 0)
    return min(found, default=None)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Requirement]:
    n, s = draw(st.integers(3, 9)), draw(st.integers(0, 2))
    values = draw(st.integers(1, 4))
    quasi = draw(st.lists(st.integers(0, draw(st.integers(1, 3))), min_size=n, max_size=n))
    sensitive = draw(st.lists(st.tuples(*[st.integers(0, values)] * s), min_size=n, max_size=n))
    asked = [tuple(draw(st.integers(1, 3)) for _ in range(s)) for _ in range(2)]
    return np.array(quasi)[:, None], np.array(sensitive).reshape(n, s), Requirement(draw(st.integers(1, 4)), *asked)


@settings(deadline=None, max_examples=150)
@given(table=tables())
def test_no_choice_of_rows_suppresses_fewer(table):
    quasi, sensitive, need = table
    histogram = Histogram.from_rows(quasi, sensitive)
    best = fewest(quasi, sensitive, need)
    if best is None:
        with pytest.raises(InfeasibleError):
            group(histogram, need, "fewest_tuples")
        return
    found = group(histogram, need, "fewest_tuples", seed=0)  # which checks every group against the models
    assert found.certificate.cost == best
    assert found.certificate.optimal
    assert found.certificate.guarantee.factor == 1
    quick = group(histogram, need, "three_phase", seed=0).certificate
    assert quick.lower_bound <= best <= quick.cost
    if quick.guarantee.factor is not None:
        assert quick.cost <= quick.guarantee.factor * best + (quick.guarantee.additive or 0)


def test_two_sensitive_columns_where_whole_types_leave_too_many():
    """Types stay in part: three_phase moves them whole where more than one column is sensitive."""
    kinds = np.repeat([0, 1], 5)[:, None]
    sensitive = np.array([[0, 0], [1, 1], [0, 1], [1, 0], [0, 0], [0, 0], [1, 1], [0, 1], [1, 0], [1, 1]])
    histogram, need = Histogram.from_rows(kinds, sensitive), Requirement(2, (2, 2), (1, 1))
    assert group(histogram, need, "three_phase").certificate.cost == 10
    found = group(histogram, need, "fewest_tuples")
    assert found.certificate.cost == 2 == fewest(kinds, sensitive, need)
    assert found.certificate.optimal


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=4, max_size=7),
    values=st.lists(st.integers(0, 3), min_size=7, max_size=7),
)
def test_an_optimum_in_tuples_is_within_d_of_the_fewest_stars(rows, values):
    """Lemma 2 of the paper; the stars' bound is the proved number of tuples."""
    quasi, sensitive = np.array(rows), np.array(values[: len(rows)])[:, None]
    histogram, need = Histogram.from_rows(quasi, sensitive), Requirement(2)
    recoding = Recoding.stars(histogram)
    asked = Task(histogram, need, recoding)
    found = group(histogram, need, "fewest_tuples", seed=0)
    stars = shoal.tables.stars_from_tuples(asked, found).certificate
    best = least_loss(histogram, need, recoding)
    assert stars.unit == "stars"
    assert stars.lower_bound <= best <= stars.cost <= 3 * best
    assert stars.guarantee.factor == 3


def test_a_search_that_is_stopped_keeps_the_quick_answer_and_its_bound(monkeypatch):
    from shoal.problems.tables.exact import fewest_tuples

    random = np.random.default_rng(2)
    histogram = Histogram.from_rows(random.integers(0, 3, (60, 1)), random.integers(0, 3, (60, 2)))
    need = Requirement(4, (2, 2), (1, 1))
    quick = group(histogram, need, "three_phase").certificate
    assert quick.lower_bound < quick.cost
    monkeypatch.setattr(fewest_tuples, "_solved", lambda *_: (None, -np.inf))
    stopped = group(histogram, need, "fewest_tuples").certificate
    assert (stopped.cost, stopped.lower_bound) == (quick.cost, quick.lower_bound)
    assert not stopped.optimal
    monkeypatch.undo()
    assert group(histogram, need, "fewest_tuples").certificate.cost <= quick.cost


def test_a_table_of_two_sensitive_columns_is_released_and_verified(tmp_path):
    table = drawn(80, 5, age=(20, 26), zip=(0, 2), job=(0, 4), illness=(0, 4))
    release = shoal.anonymize(
        table, quasi_identifiers=["age", "zip"], sensitive=["job", "illness"], k=3, l=2, method="fewest_tuples", seed=1
    )
    assert release.certificate.optimal
    release.write(tmp_path / "out.csv")
    assert shoal.verify(tmp_path / "out.csv").holds
