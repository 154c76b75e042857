"""Counts come in as people have them, and become whole numbers or a sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import threshold, whole
from shoal.model.histogram import Histogram


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


@pytest.mark.parametrize("seed", range(40))
def test_types_are_the_different_tuples_in_their_order(seed):
    """Of cells in the order of their codes, which need no sort, and of cells in any."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 3, (int(draw.integers(0, 12)), 2)).astype(np.int32)
    codes = codes[np.lexsort(codes.T[::-1])] if seed % 2 else codes
    none, one = np.zeros((len(codes), 0), np.int32), np.ones(len(codes), np.int64)
    of_type, first = Histogram(codes, none, one, ("a", "b"), (), (3, 3), ()).types
    tuples = sorted({tuple(row) for row in codes.tolist()})
    assert [tuple(row) for row in codes[first].tolist()] == tuples
    assert [tuples[t] for t in of_type] == [tuple(row) for row in codes.tolist()]
