"""Whole numbers as a file spells them: read as Python reads them one by one, at any length; nothing else is one."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.errors import VerificationError
from shoal.judge.crosswalk import whole

HUGE = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["12", " 7 ", "-3", "+4", "007"], [12, 7, -3, 4, 7]),
        (["999999999999999999", "1"], [10**18 - 1, 1]),
        ([HUGE, "1"], [int(HUGE), 1]),
        (["12.0", "1e3"], [12, 1000]),
        ([3, 4], [3, 4]),
        ([3.0, 4.0], [3, 4]),
        ([], []),
    ],
)
def test_numbers_of_any_spelling(values, numbers):
    dtype = pl.String if not values or isinstance(values[0], str) else None
    assert whole(pl.DataFrame({"n": pl.Series(values, dtype=dtype)}), "n") == numbers


@pytest.mark.parametrize("values", [["1", None], [1, None], ["1", ""], ["1.5"], [1.5], ["1", "2 3"], ["x"], ["1\n2"]])
def test_what_is_none_is_refused(values):
    with pytest.raises(VerificationError, match="no whole number"):
        whole(pl.DataFrame({"n": values}), "n")
