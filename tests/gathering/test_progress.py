"""The share that searches of points say is done, and when."""

import numpy as np
import pytest

from shoal.problems.gathering import cellular, gather
from shoal.watching import listening

POINTS = np.random.default_rng(5).normal(size=(6_000, 2))


@pytest.mark.parametrize(
    ("search", "options"),
    [
        (gather, {}),
        (gather, {"centers": "anywhere"}),
        (gather, {"epsilon": 0.01}),
        (cellular, {"seed": 1}),
        (cellular, {"seed": 1, "epsilon": 0.01}),
        (cellular, {"seed": 1, "effort": 1.0}),
    ],
)
def test_the_share_done_rises_from_the_lists_on(search, options):
    shares: list[float] = []
    with listening(shares.append):
        search(POINTS, 10, **options)
    assert all(type(share) is float and 0 < share <= 1 for share in shares)
    assert shares == sorted(shares)
    assert len(set(shares)) >= 2
    assert shares[0] < 0.5 <= shares[-1] or "effort" in options
