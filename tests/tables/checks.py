"""What every method's tests ask: small random tables, and whether a grouping keeps its word on them."""

from itertools import product

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


def cheapest(histogram: Histogram, need: Requirement, recoding: Recoding, spare: int = 0) -> float | None:
    """Least total loss over every choice of levels and every set of groups starred whole; None without one."""
    rows = [
        (tuple(q), tuple(s))
        for q, s, n in zip(histogram.quasi.tolist(), histogram.sensitive.tolist(), histogram.count, strict=True)
        for _ in range(n)
    ]
    fine = lambda some: eligible([s for _, s in some], need.k, need.frequency, need.distinct)  # noqa: E731
    best = None
    for levels in product(*(range(c.ceiling + 1) for c in recoding.columns)):
        groups: dict[tuple[int, ...], list] = {}
        for row in rows:
            key = tuple(int(c.node[h][v]) for c, h, v in zip(recoding.columns, levels, row[0], strict=True))
            groups.setdefault(key, []).append(row)
        for out in product((False, True) if spare else (False,), repeat=len(groups)):
            block = [r for g, o in zip(groups.values(), out, strict=True) if o for r in g]
            kept = [g for g, o in zip(groups.values(), out, strict=True) if not o]
            if len(block) > spare or (block and not fine(block)) or not all(map(fine, kept)):
                continue
            loss = sum(
                c.weight * c.loss[h][v]
                for g in kept
                for row in g
                for c, h, v in zip(recoding.columns, levels, row[0], strict=True)
            )
            loss += sum(c.weight * c.loss[-1][v] for r in block for c, v in zip(recoding.columns, r[0], strict=True))
            best = loss if best is None else min(best, loss)
    return best


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
