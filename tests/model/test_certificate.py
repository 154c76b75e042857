"""A certificate cannot be built inconsistent, and survives the way to JSON and back."""

from fractions import Fraction

import pytest

from shoal import Certificate, CertificateError, Guarantee


def test_ratio_is_exact_for_counted_units():
    assert Certificate(cost=9, lower_bound=6, unit="stars").ratio == Fraction(3, 2)


def test_ratio_is_one_when_nothing_was_paid_and_unknown_when_the_bound_is_nothing():
    assert Certificate(cost=0, lower_bound=0, unit="stars").ratio == 1
    assert Certificate(cost=3, lower_bound=0, unit="stars").ratio is None


@pytest.mark.parametrize(("cost", "bound"), [(3, 4), (3, -1), (float("nan"), 0), (float("inf"), 0)])
def test_a_bound_outside_the_cost_is_refused(cost, bound):
    with pytest.raises(CertificateError):
        Certificate(cost=cost, lower_bound=bound, unit="stars")


def test_a_guarantee_below_one_is_refused():
    with pytest.raises(CertificateError):
        Guarantee(factor=0.5, theorem="none")


def test_json_and_back():
    made = Certificate(
        cost=8,
        lower_bound=4,
        unit="stars",
        guarantee=Guarantee(factor=2, theorem="T"),
        bound="b",
        details={"phase": 1},
    )
    assert Certificate.from_json(made.to_json()) == made


def test_json_that_is_no_certificate_is_refused():
    with pytest.raises(CertificateError):
        Certificate.from_json('{"cost": 1}')
