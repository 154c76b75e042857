"""Columns with more values than a table of pairs holds: the loss of two rows published together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels import njit
from shoal.kernels.tables.eligible import joined
from shoal.model.histogram import Histogram
from shoal.model.recoding import Levels, Recoding
from shoal.problems.tables.groups import SMALL_TREE, encode

VALUES = SMALL_TREE + 40


@njit(nogil=True)
def together(slots, one, other):
    """The loss per row of two rows of slots in one group."""
    return joined(slots, one, other, np.inf)


@pytest.mark.parametrize("losses", [(0, 1), (0.1, 1), (0, 0, 1), (0, 0.2, 1), (0, 0.1, 0.4, 1)])
@given(pairs=st.data())
def test_large_trees_lose_what_their_levels_say(losses, pairs):
    """Trees of one to three levels above the values; on each level, every node loses the same."""
    high = len(losses) - 1
    node = np.stack([np.arange(VALUES) // (VALUES + 1 if h == high else 5**h) for h in range(high + 1)])
    loss = np.repeat(np.array(losses, float)[:, None], VALUES, axis=1)
    column = Levels(size=VALUES, weight=1.0, node=node.astype(np.int32), loss=loss, ceiling=high)
    slots, leaf = encode(Recoding((column,), "ncp"), Histogram.from_rows(np.arange(VALUES)[:, None]))
    one = pairs.draw(st.integers(0, VALUES - 1))
    for other in (one, max(one - 1, 0), pairs.draw(st.integers(0, VALUES - 1))):
        level = next(h for h in range(high + 1) if node[h, one] == node[h, other])
        assert together(slots, leaf[one], leaf[other]) == pytest.approx(losses[level])
    root = slots.width - 1
    assert together(slots, leaf[one], root) == together(slots, root, root) == pytest.approx(1.0)
