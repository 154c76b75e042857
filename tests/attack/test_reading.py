"""Classes that hold a tuple: bits that are set are found as a loop finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.judge.file import set_bits


@given(st.integers(0, 5), st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_bits_that_are_set_are_found_in_order(rows: int, columns: int, seed: int, share: float) -> None:
    held = np.random.default_rng(seed).random((rows, columns)) < share
    row, column = set_bits(np.packbits(held, axis=1))
    assert list(zip(row.tolist(), column.tolist(), strict=True)) == [
        (r, c) for r in range(rows) for c in range(columns) if held[r, c]
    ]
