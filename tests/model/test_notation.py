"""Sets and ranges are read back exactly, whatever their values hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.model.notation import RangeOf, SetOf, element, parse, range_text, set_text, single

AWKWARD = [
    "[1-2)",
    "{a",
    "a, b",
    "c",
    "{",
    "}",
    "[1, 2]",
    '"',
    "\\",
    "*",
    " x",
    "x ",
    "",
    "missing",
    None,
    "\n",
    "\u2028",
    ",",
    ", ",
]
VALUES = st.one_of(st.none(), st.sampled_from(AWKWARD), st.text(max_size=6))


@given(st.lists(VALUES, min_size=2, max_size=5))
def test_a_set_is_read_back(values: list[str | None]) -> None:
    assert parse(set_text(values)) == SetOf(tuple(values))


@given(VALUES, VALUES)
def test_a_range_is_read_back(low: str | None, high: str | None) -> None:
    assert parse(range_text(low, high)) == RangeOf(low, high)


@given(VALUES)
def test_a_single_value_is_read_back_as_itself(value: str | None) -> None:
    assert parse(single(value)) == value


@given(st.lists(VALUES, min_size=2, max_size=4), st.lists(VALUES, min_size=2, max_size=4))
def test_different_sets_are_written_differently(one: list[str | None], other: list[str | None]) -> None:
    assert (set_text(one) == set_text(other)) == (one == other)


def test_plain_values_stay_plain() -> None:
    assert set_text(["flu", "heart attack", None, "missing"]) == '{flu, heart attack, missing, "missing"}'
    assert set_text(["a, b", "c"]) == '{"a, b", c}'
    assert range_text("1.5", None) == "[1.5, missing]"
    assert single("{a, b}") == '"{a, b}"'
    assert single("a, b") == "a, b"
    assert single("[70-80)") == "[70-80)"
    assert parse('"[70-80)"') == "[70-80)", "as older releases have it"
    assert element("") == '""'


@pytest.mark.parametrize("text", ["{a}", "[a]", "[a, b, c]", '"a', '"a" b', '{"a"b, c}', '{a"b, c}', "{a,b}", "{a, }"])
def test_what_is_never_written_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)
