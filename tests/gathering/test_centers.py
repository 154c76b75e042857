"""The published form: centers, radii in words, multisets, and the check before anything is written."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.model.metric import Category, Metric, Number, Place
from shoal.publishing.crosswalks.centers import multiset, publish, rounded_up, texts

METRIC = Metric(
    features=(Number("age", unit="years"), Place("place"), Category("sex", values=2)),
)
AGE = np.array([30.0, 33.0, 31.0, 60.0, 60.0, 99.0])
PLACE = np.array([[51.5, 0.0], [51.5, 0.05], [51.5, 0.02], [40.0, 3.0], [40.0, 3.0], [0.0, 0.0]])
SEX = np.array([0, 1, 0, 1, 1, 0])
LABELS = np.array([0, 0, 0, 1, 1, -1])
DISEASE = ["flu", "gout", "flu", "flu", None, "plague"]


def form(center="record"):
    rows = np.array([0, 3])
    return publish(LABELS, rows, METRIC, (AGE, PLACE, SEX), {"disease": DISEASE}, center)


def test_records_as_centers_with_words_and_multisets():
    p = form()
    assert p.records.tolist() == [3, 2]
    assert p.radius == ["within 3 years and 3.5 km; sex may differ", "exactly"]  # 0.05 degrees are 3.461 km there
    assert p.multisets("disease") == ["flu (2); gout (1)", "flu (1); missing (1)"]
    assert texts(p.centers[0]) == [["30", "60"]]
    assert texts(p.centers[1]) == [["51.5", "40"], ["0", "3"]]
    assert texts(p.centers[2], ["F", "M"]) == [["F", "M"]]


def test_the_left_out_are_nowhere():
    p = form()
    assert p.records.sum() == 5
    assert "plague" not in str(p.sensitive)


def test_a_left_out_record_is_no_published_center_the_nearest_member_is():
    p = publish(LABELS, np.array([5, 3]), METRIC, (AGE, PLACE, SEX))
    assert p.centers[0].value[0] == 33  # 99 years old is the one left out
    assert p.radius[0] == "within 3 years and 3.5 km; sex may differ"


def test_means_and_medoids():
    mean, medoid = form("mean"), form("medoid")
    assert mean.centers[0].value == pytest.approx([94 / 3, 60], abs=0.01)
    assert mean.centers[1].value[0] == pytest.approx([51.5, 0.07 / 3], abs=1e-3)
    assert mean.centers[2].value.tolist() == [0, 1]
    assert medoid.centers[0].value.tolist() == [31, 60]
    assert medoid.centers[1].value.tolist() == [[51.5, 0.02], [40.0, 3.0]]
    assert medoid.radius[0] == "within 2 years and 2.1 km; sex may differ"


def test_a_mean_across_the_date_line_stays_there():
    metric = Metric(features=(Place("place"),))
    where = np.array([[0.0, 179.0], [0.0, -179.0]])
    p = publish(np.zeros(2, np.int64), np.zeros(1, np.int64), metric, (where,), center="mean")
    assert abs(p.centers[0].value[0, 1]) == pytest.approx(180)
    assert p.radius == ["within 120 km"]


def test_a_mean_is_not_told_to_the_last_digit():
    ages = np.array([20.0, 31.0, 47.0])
    metric = Metric(features=(Number("age"),))
    p = publish(np.zeros(3, np.int64), np.zeros(1, np.int64), metric, (ages,), center="mean")
    assert texts(p.centers[0]) == [["32.7"]]
    assert p.radius == ["within 15 in age"]


def test_levels_of_a_hierarchy_are_named():
    levels = np.array([[0, 0], [0, 0], [1, 0]])
    metric = Metric(features=(Category("job", values=3, levels=levels),))
    p = publish(np.array([0, 0, 1, 1]), np.array([0, 3]), metric, (np.array([0, 1, 0, 2]),))
    assert p.radius == ["job may differ up to level 1 of 2", "job may differ up to level 2 of 2"]


def test_dates_are_days_from_a_date():
    day = np.array([737425.0, 737428.0])  # 2020-01-01 and three days later
    metric = Metric(features=(Number("seen", date=True),))
    p = publish(np.zeros(2, np.int64), np.zeros(1, np.int64), metric, (day,))
    assert texts(p.centers[0]) == [["2020-01-01"]]
    assert p.radius == ["within 3 days"]


@given(st.floats(1e-9, 1e12))
@settings(max_examples=100, deadline=None)
def test_a_radius_is_never_told_smaller_than_it_is(value):
    up = rounded_up(value)
    assert value * (1 - 1e-9) <= up <= 1.11 * value
    assert float(f"{up:.12g}") >= value * (1 - 1e-9)
    assert len(re.sub(r"e.*|\.|-", "", f"{up:.12g}").strip("0")) <= 2


@pytest.mark.parametrize("center", ["record", "mean", "medoid"])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_spreads_hold_every_member(center, data):
    n = data.draw(st.integers(2, 12))
    x = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=n, max_size=n)), float)
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    rows = np.array([np.flatnonzero(labels == c)[0] for c in range(labels.max() + 1)])
    p = publish(labels, rows, Metric(features=(Number("x"),)), (x,), center=center)
    for i in range(n):
        told = p.radius[labels[i]]
        reach = 0.0 if told == "exactly" else float(told.split()[1])
        assert abs(x[i] - float(texts(p.centers[0])[0][labels[i]])) <= reach + 1e-9


def test_refusals():
    with pytest.raises(PolicyError, match="kind of center"):
        form("median")
    with pytest.raises(PolicyError, match="no records"):
        publish(LABELS, np.array([-1, 3]), METRIC, (AGE, PLACE, SEX))
    with pytest.raises(PolicyError, match="column by column"):
        publish(LABELS, np.array([0, 3]), Metric.matrix(np.zeros((6, 6))), ())


def test_a_value_that_could_be_misread_is_quoted():
    assert multiset({"a (2); b": 1, "c": 2}) == 'c (2); "a (2); b" (1)'
