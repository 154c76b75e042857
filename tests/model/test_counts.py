"""Counts come in as people have them, and become whole numbers or a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import threshold, whole


@pytest.mark.parametrize(
    "values",
    [[3, 4], (3, 4), range(3, 5), iter([3, 4]), (x for x in (3.0, 4)), np.array([3.0, 4]), pd.Series([3, 4])],
)
def test_what_is_counted(values):
    found = whole(values)
    assert found.dtype == np.int64
    assert found.tolist() == [3, 4]


def test_frames_columns():
    assert whole(pl.Series([3, 4])).tolist() == [3, 4]


def test_no_unit_is_lost_to_floats_or_overflow():
    values = [2**63, 1.0, 2**53 + 1]
    assert whole(values).tolist() == [2**63, 1, 2**53 + 1]
    assert whole([2**61, 2**61 - 1]).dtype == np.int64
    assert whole([2**61, 2**61]).dtype == object
    assert whole(np.full(4, 2**62, dtype=np.uint64)).tolist() == [2**62] * 4


@pytest.mark.parametrize("values", [[True], [[1], [2, 3]], ["3"], [float("inf")], np.array([np.nan]), [-1]])
def test_what_is_no_count(values):
    with pytest.raises(InputError):
        whole(values)


def test_threshold():
    assert threshold(np.int32(3)) == threshold(3.0) == 3
    with pytest.raises(PolicyError, match="k=0"):
        threshold(0)
