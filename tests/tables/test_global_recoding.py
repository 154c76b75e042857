"""Global recoding against every node of the lattice."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, LDiversity, Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.methods import global_recoding
from tests.amount import ALL
from tests.oracles.tables import in_unit
from tests.tables.checks import cheapest, columns_of, least_loss, solved, tables
from tests.tables.drawn import TREE, halved


def every_node(histogram: Histogram, need: Requirement, recoding: Recoding) -> float | None:
    """Least loss over all choices of one level per column, in the unit of the recoding."""
    best = cheapest(histogram, need, recoding)
    return None if best is None else in_unit(best, histogram, recoding)


@settings(deadline=None, max_examples=120)
@given(
    histogram=tables(d=3, s=1, most=9),
    form=st.sampled_from(["stars", "tree"]),
    k=st.integers(1, 4),
    l=st.integers(1, 3),
    u=st.integers(1, 3),
)
def test_the_cheapest_node_of_all(histogram, form, k, l, u):
    need = Requirement(k, (l,), (u,))
    recoding = columns_of(form, histogram.quasi_sizes)
    found = solved(histogram, need, recoding, "global_recoding")
    if found is None:
        return
    facts = found.certificate.details
    assert facts["uniform_optimal"]
    assert facts["uniform_cost"] == pytest.approx(every_node(histogram, need, recoding))
    assert facts["uniform_bound"] == facts["uniform_cost"]
    assert found.certificate.cost <= facts["uniform_cost"] + 1e-12
    if histogram.rows <= 6:
        assert found.certificate.lower_bound <= least_loss(histogram, need, recoding) + 1e-12
    task = Task(histogram, need, recoding)
    uniform = task.recoding.at_levels(histogram, found.partition, facts["levels"])
    total = float((recoding.losses(histogram, found.partition, uniform).sum(axis=1) * found.partition.sizes).sum())
    scale = 1 if form == "stars" else histogram.rows * 3
    assert total / scale == pytest.approx(facts["uniform_cost"])
    for j, name in enumerate(histogram.quasi_names):
        assert set(uniform.first[:, j]) == {facts["levels"][name]}


@pytest.mark.parametrize("seed", range(12 if ALL else 4))
def test_the_cheapest_node_of_a_larger_lattice(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, 8, 60) * rng.integers(0, 2, 60) for _ in range(4)], axis=1)
    histogram = Histogram.from_rows(quasi, rng.integers(0, 4, 60))
    recoding = Recoding(tuple(halved(8, float(w)) for w in rng.integers(1, 5, 4)))
    need = Requirement(int(rng.integers(1, 4)), (2,), (1,))
    best = every_node(histogram, need, recoding)
    for pairs in (True, False):
        if not pairs:  # the chains alone decide
            monkeypatch.setattr(global_recoding.Nodes, "pair", lambda *_: True)
        found = group(histogram, need, "global_recoding", recoding=recoding).certificate.details
        assert found["uniform_cost"] == pytest.approx(best)


@settings(deadline=None, max_examples=40)
@given(histogram=tables(d=3, s=1, most=12), k=st.integers(1, 3), looks=st.integers(1, 6))
def test_a_search_cut_short_says_how_far_it_may_be_off(histogram, k, looks):
    need = Requirement(k, (1,), (2,))
    recoding = columns_of("tree", histogram.quasi_sizes)
    best = every_node(histogram, need, recoding)
    if best is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(global_recoding.LOOKS, "fast", looks)
        found = group(histogram, need, "global_recoding", recoding=recoding, effort="fast")
        facts = found.certificate.details
        assert facts["uniform_bound"] <= best + 1e-12 <= facts["uniform_cost"] + 2e-12
        patch.setattr(global_recoding, "MOST_NODES", 1)
        walked = group(histogram, need, "global_recoding", recoding=recoding).certificate.details
    assert walked["uniform_cost"] >= best - 1e-12
    assert walked["uniform_optimal"] is (walked["uniform_cost"] == 0)


def test_a_limit_is_kept_and_an_impossible_one_refused():
    limited = Recoding((Levels.tree(TREE, ceiling=1),))
    histogram = Histogram.from_rows(np.array([0, 1, 2, 3]))
    found = group(histogram, KAnonymity(2), "global_recoding", recoding=limited)
    assert found.certificate.details["levels"] == {"q0": 1}
    with pytest.raises(InfeasibleError, match="q0"):
        group(histogram, KAnonymity(3), "global_recoding", recoding=limited)


@pytest.mark.parametrize("effort", ["fast", pytest.param(5.0, marks=pytest.mark.slow)])
def test_a_lattice_beyond_the_oracle_is_decided_by_few_looks(effort):
    rng = np.random.default_rng(3)
    quasi = np.stack([rng.integers(0, 8, 800) * rng.integers(0, 2, 800) for _ in range(6)], axis=1)
    histogram = Histogram.from_rows(quasi, rng.integers(0, 6, 800))
    recoding = Recoding((halved(8),) * 6)
    found = group(histogram, [KAnonymity(5), LDiversity(2)], "global_recoding", recoding=recoding, effort=effort)
    assert found.certificate.details["uniform_optimal"]
    assert found.certificate.details["nodes_looked_at"] < 4**6 / 8
    assert Effort.of(effort).name in ("fast", "seconds")


@pytest.mark.parametrize(("rows", "weight"), [(6, 0.1), (7, 0.7), (9, 1.1), (13, 0.3)])
def test_a_bound_and_a_cost_that_differ_by_rounding_alone_are_one(rows, weight):
    table = pl.DataFrame({"a": [str(i) for i in range(rows)], "b": [str(i) for i in range(rows)]})
    asked = {"quasi_identifiers": ["a", "b"], "k": rows, "global_recoding": True, "weights": {"a": weight}, "seed": 1}
    certificate = shoal.anonymize(table, **asked).certificate
    assert certificate.optimal
    assert certificate.cost == pytest.approx((weight + 1) / 2)
