"""Once a cost is its bound no further method is run; a table that loses nothing is counted and no more."""

import importlib
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.model.histogram import Histogram
from shoal.problems.catalogue import CATALOGUE
from shoal.problems.tables import auto
from shoal.problems.tables.bounds.bounds import Bounds


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a method was run though nothing can be below what was found")


LATER = ["start", "lower_bounds", "flow_start", "pattern_cover", "scarce_start", "guided", "open_close", "search",
         "open_and_search", "anneal_and_search", "decide_small", "_proved"]  # fmt: skip


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough", 1.0])
@pytest.mark.parametrize("more", [{}, {"l": 2, "sensitive": ["s"]}, {"publish": "ranges"}], ids=["k", "l", "ranges"])
def test_a_table_that_publishes_as_it_is_is_only_counted(
    effort: Any, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"a": [i // 20 for i in range(400)], "b": ["x", "y"] * 200, "s": ["p", "p", "q", "q"] * 100})
    for name in LATER:
        monkeypatch.setattr(auto, name, refuse)
    asked: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "k": 5, "effort": effort, **more}
    release = shoal.anonymize(frame if "sensitive" in more else frame.drop("s"), **asked)
    assert release.certificate.cost == 0
    assert release.certificate.optimal
    assert [attempt["method"] for attempt in release.attempts] == ["three_phase"]
    assert sorted(map(tuple, release.table.select("a", "b").group_by("a", "b").len().rows()))[0][2] == 10


WITHOUT = [(name, shoal.KAnonymity(2)) for name in CATALOGUE["tables"].methods if name != "matching"]
WITHOUT += [
    (name, model)
    for name in ("auto", "improve", "cascade", "three_phase")
    for model in (shoal.LDiversity(2), shoal.DistinctLDiversity(2), shoal.TCloseness(0.3))
]


@pytest.mark.parametrize(("method", "model"), WITHOUT)
def test_a_table_without_columns_costs_nothing_whatever_the_method(method: str, model: Any) -> None:
    table = Histogram.from_rows(np.zeros((6, 0), np.int64), np.array([0, 1, 2, 0, 1, 2]))
    found = shoal.tables.group(table, model, method)
    assert found.certificate.cost == found.certificate.lower_bound == 0
    assert sum(found.partition.sizes) == 6
    found.partition.check(table)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_no_method_follows_a_cost_that_is_its_bound(effort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The four rows of one value need a fifth: five stars, which the first methods find."""
    frame = pl.DataFrame({"a": [0] * 30 + [1] * 30 + [2] * 4, "b": [0] * 64})
    asked: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "k": 5}
    least = shoal.anonymize(frame, **asked, effort="thorough").certificate
    assert (least.cost, least.optimal) == (5, True)
    for name in LATER[2:]:
        monkeypatch.setattr(auto, name, refuse)
    monkeypatch.setattr(auto, "lower_bounds", lambda *_, **__: Bounds({"tuples": 5}))
    found = shoal.anonymize(frame, **asked, effort=effort)
    assert (found.certificate.cost, found.certificate.optimal) == (5, True)
    assert [attempt["method"] for attempt in found.attempts] == ["three_phase", "cascade"]
    monkeypatch.setattr(auto, "lower_bounds", lambda *_, **__: Bounds({"tuples": 4}))
    with pytest.raises(AssertionError, match="nothing can be below"):
        shoal.anonymize(frame, **asked, effort="balanced")


def test_clusters_of_points_that_coincide_cost_nothing_and_are_not_searched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = importlib.import_module("shoal.problems.gathering.cellular")
    monkeypatch.setattr(cells, "by_three_step", refuse)
    monkeypatch.setattr(cells, "by_exact", refuse)
    points = np.repeat(np.arange(4.0), 5)[:, None]
    assert shoal.gathering.cellular(points, r=5).cost == 0


@pytest.mark.parametrize("objective", ["squares", "count"])
def test_labels_whose_sum_is_its_bound_are_packed_once(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    covering = importlib.import_module("shoal.problems.labels.covering")
    sizes = [5] * 20
    known = importlib.import_module("shoal.problems.labels").cover(sizes, 5, objective=objective).certificate
    assert known.optimal
    for name in ("spread_labels", "balanced"):
        monkeypatch.setattr(covering, name, refuse)
    assert importlib.import_module("shoal.problems.labels").cover(sizes, 5, objective=objective).certificate.optimal


def test_labels_whose_largest_group_is_its_bound_are_not_searched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    balance = importlib.import_module("shoal.problems.labels.balance")
    for name in ("spread_labels", "balanced", "filled", "search"):
        monkeypatch.setattr(balance, name, refuse)
    assert importlib.import_module("shoal.problems.labels").cover([5] * 20, 5, effort="thorough").certificate.optimal


def test_areas_that_are_regions_by_themselves_are_not_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = importlib.import_module("shoal.problems.regions.answer")
    for name in ("price_out", "price_areas", "separated", "best_packing"):
        monkeypatch.setattr(answer, name, refuse)
    found = importlib.import_module("shoal.problems.regions").merge([(i, i + 1) for i in range(11)], [5] * 12, k=5)
    assert found.regions == 12
    assert found.certificate.optimal


def test_gathered_points_that_coincide_are_not_searched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = importlib.import_module("shoal.problems.gathering.gather")
    monkeypatch.setattr(gather, "better", refuse)
    monkeypatch.setattr(gather.exact, "exact", refuse, raising=False)
    points = np.repeat(np.arange(4.0), 5)[:, None]
    found = gather.gather(points, 5, effort="thorough")
    assert (found.cost, found.certificate.optimal) == (0, True)
