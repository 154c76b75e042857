"""Answers show themselves as a few lines and as a card, in words, without a record."""

import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.model.cards import floored, number, proof_lines
from shoal.model.certificate import Certificate, Guarantee

POINTS = np.random.default_rng(1).uniform(0, 1, (60, 2)).round(6)
PATH = [(i, i + 1) for i in range(11)]
ANSWERS = {
    "labels": lambda: shoal.labels.cover([3, 4, 5, 6], 7),
    "intervals": lambda: shoal.intervals.cut([1, 2, 3, 4, 5, 6, 7], None, 3),
    "regions": lambda: shoal.regions.merge(PATH, [4] * 12, 10),
    "nested": lambda: shoal.regions.nested(PATH, [4] * 12, [10, 20], effort="fast"),
    "tiles": lambda: shoal.tiles.split(POINTS, 10),
    "gather": lambda: shoal.gathering.gather(POINTS, 5, epsilon=0.05),
    "cellular": lambda: shoal.gathering.cellular(POINTS, setup_costs=0.1),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_shows_itself(name):
    answer = ANSWERS[name]()
    text = str(answer)
    assert 3 <= len(text.splitlines()) <= 8
    assert "array" not in text
    assert not any(repr(v) in text for v in POINTS.ravel().tolist())
    page = answer._repr_html_()
    assert page.startswith("<table>")
    assert text.splitlines()[0].replace("<", "&lt;") in page


def test_a_certificate_shows_itself_and_rounds_to_the_side_of_the_truth():
    found = Certificate(
        cost=0.24014, lower_bound=0.1, unit="ncp", guarantee=Guarantee(theorem="none"), bound="argument"
    )
    lines = str(found).splitlines()
    assert lines[0] == "Certificate"
    assert "proved least: 0.1 ncp" in lines
    assert "that is at most: 2.402 times the least" in lines  # 2.4014 or more
    assert found._repr_html_().count("<tr>") == len(lines) - 1


def test_an_audit_shows_itself():
    frame = pl.DataFrame({"age": [30, 30, 30, 41], "ill": ["a", "a", "b", "b"]})
    found = shoal.audit(frame, quasi_identifiers=["age"], sensitive=["ill"], k=2)
    assert str(found).splitlines()[1:6] == [
        "rows: 4", "groups of rows alike: 2", "smallest group: 1", "people alone: 1", "highest risk to be found: 1",
    ]  # fmt: skip
    assert "largest share of a value of ill in a group: 1" in str(found)
    assert str(found).splitlines()[-1] == "k-anonymity, k = 2: does not hold; the table reaches 1"
    assert found._repr_html_().count("<tr>") == len(str(found).splitlines()) - 1


def test_a_bound_shown_is_rounded_down():
    promise = Guarantee(factor=None, additive=None, theorem="none")
    found = Certificate(cost=1.0, lower_bound=0.12696, unit="units", guarantee=promise, bound="argument")
    assert "no answer below 0.1269" in proof_lines(found)[1]
    assert "at most 7.877 times the least" in proof_lines(found)[1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (9704, "9,704"), (9704.0, "9,704"), (2982.5, "2,982.5"), (-2982.5, "-2,982.5"), (9704.61, "9,704.6"),
        (9704.97, "9,705"), (999.96, "1,000"), (0.21784, "0.2178"), (1e15, "1e+15"),
    ],
)  # fmt: skip
def test_a_number_for_people_has_its_thousands_apart(value: float, shown: str) -> None:
    assert number(value) == shown


@settings(max_examples=300)
@given(st.one_of(st.integers(0, 10**18), st.floats(1e-300, 1e300)))
def test_a_bound_is_shown_with_its_thousands_apart_and_never_above_itself(value: float) -> None:
    shown = floored(value)
    assert 0.999 * Fraction(value) <= Fraction(shown.replace(",", "")) <= value
    if 1000 <= value < 10**15:
        assert re.fullmatch(r"\d{1,3}(,\d{3})+(\.[1-9])?", shown)


@pytest.mark.parametrize(
    ("value", "shown"), [(2982.5, "2,982.5"), (2983.0, "2,983"), (2983.99, "2,983.9"), (2983.04, "2,983")]
)
def test_a_bound_keeps_its_half(value: float, shown: str) -> None:
    assert floored(value) == shown
