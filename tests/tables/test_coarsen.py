"""Coarsened columns with stars: the oracle tries every choice of levels and every partition."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.catalogue import names
from shoal.problems.tables import coarsen, group
from tests.amount import thinned
from tests.commands import run
from tests.oracles.tables import eligible, least_total
from tests.tables.checks import all_eligible
from tests.tables.drawn import TREE


def shown_loss(recoding: Recoding, rows: list[tuple[int, ...]], levels: tuple[int, ...]) -> float | None:
    """What a row of a group loses that shows its columns' levels, or a star where its rows differ there."""
    total = 0.0
    for j, (column, level) in enumerate(zip(recoding.columns, levels, strict=True)):
        if len({int(column.node[level][r[j]]) for r in rows}) > 1:
            level = column.levels - 1
        if level > column.ceiling:
            return None
        total += column.weight * float(column.loss[level][rows[0][j]])
    return total


def by_hand(table: Histogram, need: Requirement, recoding: Recoding) -> dict[tuple[int, ...], float]:
    """For every choice of levels the least total over all partitions; infeasible choices are left out."""
    cells = np.repeat(np.arange(table.cells), table.count)
    quasi = [tuple(r) for r in table.quasi[cells].tolist()]
    sensitive = [tuple(r) for r in table.sensitive[cells].tolist()]
    out: dict[tuple[int, ...], float] = {}
    for levels in product(*(range(c.levels) for c in recoding.columns)):

        def price(group: list[int], levels: tuple[int, ...] = levels) -> float | None:
            if not eligible([sensitive[i] for i in group], need.k, need.frequency, need.distinct):
                return None
            loss = shown_loss(recoding, [quasi[i] for i in group], levels)
            return None if loss is None else len(group) * loss

        total = least_total(cells.size, price)
        if total is not None:
            out[levels] = total
    return out


@st.composite
def tables(draw: st.DrawFn) -> tuple[Histogram, Requirement, Recoding]:
    """Up to six rows of one or two columns, of trees with weights and ceilings, and a feasible requirement."""
    d, s = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    rows = np.array(draw(st.lists(st.tuples(*[st.integers(0, 3)] * (d + s)), min_size=2, max_size=6)))
    made = Histogram.from_rows(rows[:, :d], rows[:, d:])
    table = replace(made, quasi_sizes=(4,) * d, sensitive_sizes=(4,) * s)
    need = Requirement(draw(st.integers(1, 3)), (draw(st.integers(1, 3)),) * s, (draw(st.integers(1, 2)),) * s)
    if shortfall(table, need) is not None:
        need = Requirement(2, (1,) * s, (1,) * s)
    low = draw(st.sampled_from([2, 2, 2, 1]))
    columns = [Levels.tree(TREE, weight=draw(st.sampled_from([1.0, 2.5])), ceiling=low if j else 2)
               for j in range(d)]  # fmt: skip
    return table, need, Recoding(tuple(columns), "ncp")


def below_the_star() -> tuple[Histogram, Requirement, Recoding]:
    """Two rows that differ in both columns; with the second at its values, which forbids a star, they have no group."""
    table = replace(Histogram.from_rows(np.array([[0, 2], [2, 3]])), quasi_sizes=(4, 4))
    return table, Requirement(2), Recoding((Levels.tree(TREE), Levels.tree(TREE, ceiling=1)), "ncp")


@settings(deadline=None, max_examples=thinned(400))
@given(tables(), st.sampled_from(["fast", "balanced"]))
@example(below_the_star(), "balanced")
def test_levels_stars_and_bounds_against_every_choice_and_every_partition(asked, effort):
    table, need, recoding = asked
    least = by_hand(table, need, recoding)
    scale = table.rows * len(recoding.columns)
    try:
        found = group(table, need, "coarsen", recoding=recoding, effort=effort, seed=0)
    except InfeasibleError:
        assert not least
        return
    assert all_eligible(table, need, found.partition)
    facts = found.certificate.details
    levels = tuple(facts["levels"].values())
    shows = recoding.at_levels(table, found.partition, facts["levels"])
    paid = recoding.losses(table, found.partition, shows).sum(axis=1) @ found.partition.sizes
    assert facts["uniform_cost"] == pytest.approx(paid / scale, abs=1e-12)
    assert paid >= least[levels] - 1e-9
    assert facts["levels_bound"] <= least[levels] / scale + 1e-12
    assert facts["uniform_cost"] >= min(least.values()) / scale - 1e-9
    assert found.certificate.lower_bound <= min(least.values()) / scale + 1e-12
    assert facts["uniform_bound"] <= min(least.values()) / scale + 1e-12
    assert not facts["uniform_optimal"] or paid == pytest.approx(min(least.values()), abs=1e-9)
    if effort == "balanced":  # so few choices of so few rows are all decided
        assert paid == pytest.approx(min(least.values()), abs=1e-9)
        assert facts["uniform_optimal"] or any(column.held for column in recoding.columns)
    for point in facts["curve"]:
        here = tuple(point["levels"].values())
        assert point["loss"] >= least[here] / scale - 1e-9
    assert facts["levels"] in [p["levels"] for p in facts["curve"]]
    task = Task(table, need, recoding, Effort("fast"))
    for here, total in least.items():
        assert coarsen.least(coarsen.GeneralizedTable.of(task, here).task) <= total / scale + 1e-12


@settings(deadline=None, max_examples=40)
@given(tables(), st.data())
def test_every_method_knows_what_a_value_loses_by_itself(asked, data):
    """A coarser table's values lose their level's loss also where they stand alone."""
    table, need, recoding = asked
    least = by_hand(table, need, recoding)
    if not least:
        return
    levels = data.draw(st.sampled_from(sorted(least)))
    coarse = coarsen.GeneralizedTable.of(Task(table, need, recoding, Effort("balanced")), levels).task
    for method in ["auto", *names("tables")]:
        try:
            found = group(coarse.histogram, need, method, recoding=coarse.recoding, effort="balanced", seed=0)
        except (PolicyError, InfeasibleError):
            continue
        if found.certificate.unit == "ncp":
            scale = table.rows * len(recoding.columns)
            assert found.certificate.lower_bound <= least[levels] / scale + 1e-12
            assert found.certificate.cost >= least[levels] / scale - 1e-12


def table_of(n: int, seed: int) -> tuple[Histogram, Recoding]:
    rng = np.random.default_rng(seed)
    quasi = np.stack([np.minimum(rng.geometric(0.15, n), 16) - 1 for _ in range(4)], axis=1)
    node = np.stack([np.arange(16) >> level for level in range(5)])
    table = Histogram.from_rows(quasi, rng.integers(0, 8, n))
    wide = replace(table, quasi_sizes=(16,) * 4, sensitive_sizes=(8,))
    return wide, Recoding(tuple(Levels.tree(node) for _ in range(4)))


def test_it_beats_stars_alone_and_levels_alone_and_draws_the_curve():
    table, recoding = table_of(500, 2)
    need = Requirement(5, (2,), (1,))
    facts = group(table, need, "coarsen", recoding=recoding, effort="fast", seed=0).certificate.details
    curve = facts["curve"]
    ends = {tuple(p["levels"].values()): p for p in curve}
    assert ends[0, 0, 0, 0]["width"] == 0
    assert facts["uniform_cost"] < 0.9 * ends[0, 0, 0, 0]["loss"]
    alone = group(table, need, "global_recoding", recoding=recoding, effort="fast").certificate.details
    assert facts["uniform_cost"] < 0.9 * alone["uniform_cost"]
    assert curve[0]["stars"] <= sum(level == 4 for level in alone["levels"].values()) * table.rows
    for one, other in pairwise(curve):
        assert one["stars"] < other["stars"]
        assert one["width"] > other["width"] or facts["levels"] in (one["levels"], other["levels"])


def test_as_many_choices_as_an_effort_examines_are_all_examined(monkeypatch):
    """The limit of the choices doesn't end the search before the last one, even if no bound leaves one out."""
    monkeypatch.setattr(coarsen, "least", lambda coarse: 0.0)
    table, recoding = table_of(40, 5)
    two = replace(table, quasi=table.quasi[:, :1], quasi_names=table.quasi_names[:1], quasi_sizes=(16,))
    task = Task(two, Requirement(3), Recoding(recoding.columns[:1], "ncp"), Effort("fast"))
    for limit in range(1, 8):
        monkeypatch.setitem(coarsen.LOOKS, "fast", limit)
        walk = coarsen._LevelSearch(task)
        walk.run()
        assert walk.every == (limit >= 5)  # five levels


def test_an_effort_ends_the_looks_and_seconds_are_kept(monkeypatch, ticking):
    table, recoding = table_of(300, 3)
    monkeypatch.setitem(coarsen.LOOKS, "fast", 5)
    found = group(table, KAnonymity(4), "coarsen", recoding=recoding, effort="fast", seed=0).certificate.details
    assert found["levels_looked_at"] <= 5
    timed = group(table, KAnonymity(4), "coarsen", recoding=recoding, effort=0.5, seed=0).certificate.details
    assert timed["uniform_cost"] <= 1


QUASI = ["age", "town"]


def people(n: int = 150) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    towns = np.array(list("abcdefgh"))[np.minimum(rng.geometric(0.4, n), 8) - 1]
    return pl.DataFrame({"age": rng.integers(20, 80, n), "town": towns})


ASKED = {
    "quasi_identifiers": QUASI, "k": 6, "publish": "hierarchy",
    "hierarchies": {"age": "intervals:5,20", "town": "stars"}, "coarsen": "auto", "seed": 1, "effort": "fast",
}  # fmt: skip


def test_a_release_shows_one_level_or_a_star_and_is_judged(tmp_path):
    frame = people()
    made = shoal.anonymize(frame, **{**ASKED, "numeric_stars": "text"})
    facts = made.certificate.details
    beside = made.write(tmp_path / "out.csv")
    table = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    level = facts["levels"]["age"]
    shown = {t for t in table["age"] if t != "*"}
    lengths = {0: {1}, 1: {5}, 2: {20}}[level]
    assert {1 if "-" not in t else 1 + int(t.split("-")[1]) - int(t.split("-")[0]) for t in shown} <= lengths
    assert made.audit.k >= 6
    assert made.facts.cost["ncp"] == pytest.approx(facts["uniform_cost"])
    assert made.certificate.cost == facts["uniform_cost"]
    assert made.facts.cost["stars"] == sum((table[c] == "*").sum() for c in QUASI)
    assert shoal.verify(tmp_path / "out.csv", beside, frame, hierarchies=ASKED["hierarchies"]).holds
    again = shoal.anonymize(frame, shoal.Policy.read(beside), numeric_stars="text")
    assert again.certificate.details["levels"] == facts["levels"]
    made.report(tmp_path / "page.html", internal=True)
    assert "stars against width" in (tmp_path / "page.internal.html").read_text()


def test_a_highest_level_below_the_star_forbids_stars_and_people_are_counted():
    made = shoal.anonymize(people(), **{**ASKED, "max_level": {"age": 1}, "numeric_stars": "text"})
    assert "*" not in set(made.table["age"])
    assert made.certificate.details["levels"]["age"] <= 1
    twice = people().with_columns(who=pl.int_range(pl.len()) // 2)
    counted = shoal.anonymize(twice, **{**ASKED, "person": "who", "numeric_stars": "text"})
    assert counted.table.height == twice.height
    assert counted.audit.k >= 6


def test_explore_coarsens_where_levels_are_published():
    found = shoal.explore(people(), shoal.Policy.of(None, **ASKED), k=[4], publish=["stars", "hierarchy"]).points
    loss = dict(zip(found["publish"], found["loss"], strict=True))
    assert dict(zip(found["publish"], found["method"], strict=True))["hierarchy"] == "coarsen"
    assert loss["hierarchy"] < loss["stars"]


def test_the_command_prints_the_curve(tmp_path):
    people().write_csv(tmp_path / "in.csv")
    line = ["anonymize", tmp_path / "in.csv", "--quasi", "age,town", "--k", "6", "--effort", "fast"]
    line += ["--publish", "hierarchy", "--hierarchy", "age=intervals:5,20", "--hierarchy", "town=stars"]
    line += ["--coarsen", "auto", "-o", tmp_path / "out.csv"]
    assert "<- this release" in run(*line).stdout
    assert run(*line, "--json", "--force").facts["certificate"]["details"]["curve"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"coarsen": "yes"}, "coarsen='auto'"),
        ({"publish": "stars", "hierarchies": {}}, "publish='hierarchy'"),
        ({"global_recoding": True}, "two ways"),
        ({"method": "cascade"}, "method='cascade'"),
        ({"method": "coarsen", "coarsen": None}, "say coarsen='auto'"),
        ({"population": people()}, "population"),
    ],
)
def test_what_does_not_go_together_is_refused(more, says):
    with pytest.raises(PolicyError, match=says):
        shoal.Policy.of(None, **{**ASKED, **more})
