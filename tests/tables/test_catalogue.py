"""Every method of the catalogue on the same small tables: nothing false in any answer, refusal or certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import shortfall
from shoal.problems.tables import group
from tests.oracles.tables_loss import in_unit, least_loss, paid
from tests.tables.checks import all_eligible
from tests.tables.drawn import TREE


def drawn(random: np.random.Generator) -> tuple[Histogram, Requirement]:
    """A feasible table of 2 to 6 rows; one in three is made for the methods that take two values or pairs alone."""
    while True:
        n, d = int(random.integers(2, 7)), int(random.integers(1, 4))
        special = int(random.integers(0, 6))
        s = {0: 1, 1: 0}.get(special, int(random.integers(0, 3)))
        values = 2 if special == 0 else 3
        rows = Histogram.from_rows(random.integers(0, 4, (n, d)), random.integers(0, values, (n, s)))
        table = replace(rows, quasi_sizes=(4,) * d, sensitive_sizes=(3,) * s)
        ask = [tuple(int(v) for v in random.integers(1, 4, s)) for _ in range(2)]
        need = {0: Requirement(2, (2,), (2,)), 1: Requirement(2)}.get(
            special, Requirement(int(random.integers(1, 4)), *ask)
        )
        if shortfall(table, need) is None:
            return table, need


@pytest.mark.parametrize("method", ["auto", "cascade", "three_phase"])
def test_under_the_highest_levels_allowed_only_what_is_infeasible_is_refused(method):
    random, refused = np.random.default_rng(2), 0
    for _ in range(60):
        table, need = drawn(random)
        columns = tuple(Levels.tree(TREE, ceiling=int(random.integers(1, 3))) for _ in table.quasi_names)
        recoding = Recoding(columns, "ncp")
        best = least_loss(table, need, recoding)
        if best is None:
            refused += 1
            with pytest.raises(InfeasibleError, match="raise its ceiling"):
                group(table, need, method, recoding=recoding, seed=0)
            continue
        found = group(table, need, method, recoding=recoding, seed=0)
        assert all_eligible(table, need, found.partition)
        price = paid(table, recoding, found.partition)
        assert price is not None
        if found.certificate.unit == "ncp":
            assert found.certificate.lower_bound <= in_unit(best, table, recoding) + 1e-9
    assert 5 < refused < 55


def test_nothing_lost_ends_the_search_at_once(monkeypatch):
    from shoal.problems.tables.exact import optimal

    def never(*_: object) -> None:
        raise AssertionError("a search begins although nothing is lost")

    monkeypatch.setattr(optimal, "by_vectors", never)
    table = Histogram.from_rows(np.zeros(40, int), np.arange(40) % 7)
    for method in ("auto", "optimal"):
        found = group(table, Requirement(3, (1,), (2,)), method, seed=0)
        assert found.certificate.cost == 0
        assert found.certificate.optimal
