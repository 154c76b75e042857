"""Levels of five tables against pycanon's; where the two disagree, the definition that decides is in docs/models.md."""

import math
import warnings

import polars as pl
import pytest

import shoal
from tests.data import drawn

anonymity = pytest.importorskip("pycanon.anonymity")
QUASI = ["a", "b"]


def table(seed: int) -> pl.DataFrame:
    values: list = ["x", "y", "z", "w"][: 2 + seed % 3] if seed != 3 else [0, 1, 2, 3]
    return drawn(60, seed, a=(0, 3), b="uv", s=values)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_the_same_levels(seed: int) -> None:
    ours = table(seed)
    theirs = ours.to_pandas()
    lenient = shoal.DeltaDisclosure(9, "ignored")
    found = shoal.audit(ours, quasi_identifiers=QUASI, sensitive=["s"], privacy=[lenient])
    levels = found.sensitive["s"]
    asked = (theirs, QUASI, ["s"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert anonymity.k_anonymity(theirs, QUASI) == found.k
        assert anonymity.l_diversity(*asked) == levels.distinct_l
        alpha, k = anonymity.alpha_k_anonymity(*asked)
        assert (alpha, k) == (pytest.approx(levels.alpha), found.k)
        assert anonymity.basic_beta_likeness(*asked) == pytest.approx(levels.beta)
        # theirs is the whole number below
        assert anonymity.entropy_l_diversity(*asked) == math.floor(levels.entropy_l)
        # the order for numbers, equal distance for text; here both are chosen by name
        assert anonymity.t_closeness(*asked) == pytest.approx(levels.t_ordered if seed == 3 else levels.t_equal)
        # an absent value is passed over by theirs, infinitely far by the definition
        assert anonymity.delta_disclosure(*asked) == pytest.approx(found.checks[0].level)
        assert math.isinf(levels.delta) is (ours.group_by(QUASI).agg(pl.col("s").n_unique())["s"].min()
                                            < ours["s"].n_unique())  # fmt: skip
