"""What every method's tests ask: small random tables, and whether a grouping keeps its word on them."""

import numpy as np
import pytest
from hypothesis import strategies as st

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from shoal.model.task import Grouping
from shoal.problems.tables import group
from tests.oracles import tables as oracle
from tests.oracles.tables import eligible


def all_eligible(histogram: Histogram, need: Requirement, partition: Partition) -> bool:
    """Row by row: every group meets the requirement, and every row has one group."""
    return all(eligible(rows, need.k, need.frequency, need.distinct) for rows in oracle.held(histogram, partition))


def least_loss(histogram: Histogram, need: Requirement, recoding: Recoding) -> float | None:
    """The optimum over all partitions of the rows, in the recoding's unit, priced by the oracle; None without one."""
    best = oracle.least_loss(histogram, need, recoding)
    return None if best is None else oracle.in_unit(best, histogram, recoding)


def columns_of(form: str, sizes: tuple[int, ...]) -> Recoding:
    """Every column published in one form; "tree" is values, pairs, all."""
    make = {
        "stars": Levels.stars,
        "tree": lambda n: Levels.tree(np.stack([np.arange(n), np.arange(n) // 2, np.zeros(n, int)])),
        "set": Sets.of,
        "range": lambda n: Ranges.of(np.arange(n) ** 1.5),
    }[form]
    return Recoding(tuple(make(n) for n in sizes), "stars" if form == "stars" else "ncp")


forms = st.sampled_from(["stars", "tree", "set", "range"])


@st.composite
def tables(draw: st.DrawFn, d: int = 2, s: int = 1, most: int = 8, values: int = 3) -> Histogram:
    """1 to ``most`` rows with d quasi-identifiers and s sensitive columns."""
    n = draw(st.integers(1, most))
    rows = draw(st.lists(st.tuples(*[st.integers(0, values)] * (d + s)), min_size=n, max_size=n))
    array = np.array(rows)
    return Histogram.from_rows(array[:, :d], array[:, d:])


def solved(histogram: Histogram, need: Requirement, recoding: Recoding, method: str, **how: object) -> Grouping | None:
    """The method's grouping after the checks that hold for all; None, and a refusal seen, when no partition exists.

    All models here are monotone, so one exists exactly when the table as a whole is eligible: asked of the oracle.
    """
    rows = np.repeat(histogram.sensitive, histogram.count, axis=0)
    if not eligible([tuple(r) for r in rows.tolist()], need.k, need.frequency, need.distinct):
        with pytest.raises(InfeasibleError):
            group(histogram, need, method, recoding=recoding, seed=0, **how)  # type: ignore[arg-type]
        return None
    found = group(histogram, need, method, recoding=recoding, seed=0, **how)  # type: ignore[arg-type]
    assert all_eligible(histogram, need, found.partition)
    assert found.method == method
    if found.certificate.unit == recoding.unit:
        price = oracle.paid(histogram, recoding, found.partition)
        assert price is not None
        assert abs(found.certificate.cost - oracle.in_unit(price, histogram, recoding)) < 1e-9
    return found
