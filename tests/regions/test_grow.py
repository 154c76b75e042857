"""Compact regions put together from those a search met and their neighbors, beside the best of all small regions.

The curve of an objective against the number of regions, beside exhaustive search.
"""

import json
from itertools import chain

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array, vstack

from shoal.errors import PolicyError
from shoal.problems.regions import choices, merge
from shoal.problems.regions.sets import grown
from shoal.problems.regions.task import Districting, SearchClock, graph
from tests.commands import run
from tests.oracles.regions import connected, meets, partitions

SIDE = 6


def field(seed):
    """Pairs, weights and places of six by six areas, and a threshold for some sixteen regions."""
    at = np.arange(SIDE**2).reshape(SIDE, SIDE)
    edges = [*zip(at[:, 1:].flat, at[:, :-1].flat, strict=True), *zip(at[1:].flat, at[:-1].flat, strict=True)]
    draws = np.random.default_rng(seed)
    weights = draws.integers(1, 60, SIDE**2)
    places = np.stack(np.divmod(np.arange(SIDE**2), SIDE), 1) + draws.uniform(-0.4, 0.4, (SIDE**2, 2))
    return [(int(a), int(b)) for a, b in edges], weights, places, int(weights.sum() // 16)


def squares(members, weights, places):
    """Weighted squared distances from the weighted mean."""
    w, x = weights[list(members)], places[list(members)]
    return float((w[:, None] * (x - np.average(x, axis=0, weights=w)) ** 2).sum())


def least(edges, weights, places, k, number, largest):
    """The least sum of squares of a partition into so many connected regions of at most so many areas."""
    n = len(weights)
    near = [{a + b - v for a, b in edges if v in (a, b)} for v in range(n)]
    layer, every = {frozenset([v]) for v in range(n)}, []
    for _ in range(largest):
        every += [s for s in layer if weights[list(s)].sum() >= k]
        layer = {s | {v} for s in layer for v in set(chain(*(near[x] for x in s))) - s}
    cost = [squares(s, weights, places) for s in every]
    start = np.cumsum([0, *(len(s) for s in every)])
    areas = [v for s in every for v in s]
    cover = csc_array((np.ones(len(areas)), areas, start), shape=(n, len(every)))
    rows = vstack([cover, csc_array(np.ones((1, len(every))))])
    need = np.append(np.ones(n), number)
    return milp(cost, constraints=LinearConstraint(rows, need, need), integrality=np.ones(len(every)),
                bounds=Bounds(0, 1)).fun  # fmt: skip


@pytest.mark.parametrize("seed", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 7))])
def test_compact_regions_are_nearly_the_best_there_are(seed):
    edges, weights, places, k = field(seed)
    found = merge(
        edges, weights, k, method="search", objective="compact", coordinates=places, geographic=False, seed=1,
        effort="fast", regions=11,
    )  # fmt: skip
    parts = [np.flatnonzero(found.labels == r) for r in range(11)]
    assert all(weights[p].sum() >= k and connected(tuple(p.tolist()), edges) for p in parts)
    assert sum(squares(p, weights, places) for p in parts) <= 1.005 * least(edges, weights, places, k, 11, 6)


def posed(seed, l):
    """The same as a task, with three sensitive values where two of them are asked for, and six rows to begin with."""
    edges, weights, places, k = field(seed)
    cases = np.random.default_rng(seed + 9).integers(1, 9, (SIDE**2, 3))
    mass = weights.astype(float)
    moments = np.column_stack([mass, mass[:, None] * places, mass * (places**2).sum(axis=1)])
    features = np.column_stack([weights, cases]) if l > 1 else weights[:, None]
    task = Districting(
        graph=graph(edges, SIDE**2), features=features, need=np.array([k]), l=l, geo=moments,
        objective=("compact",), start=None, effort=1.0, seconds=None, state=np.array([1], np.uint64),
        alike=np.zeros((0, 3)), regions=None,
    )  # fmt: skip
    return task, edges, cases.tolist(), [np.arange(SIDE * r, SIDE * (r + 1)) for r in range(SIDE)]


@pytest.mark.diagonal
@pytest.mark.parametrize("l", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_what_comes_in_is_new_connected_and_eligible(seed, l):
    task, edges, cases, rows = posed(seed, l)
    new = grown(task, rows, "compact", np.arange(SIDE**2) // SIDE, (1, SIDE**2), SearchClock.of(None))
    assert len(new) > 100
    assert len({tuple(s.tolist()) for s in [*rows, *new]}) == len(rows) + len(new)
    for s in (tuple(found.tolist()) for found in new):
        assert s == tuple(sorted(set(s)))
        assert connected(s, edges)
        assert meets(s, task.features.tolist(), (task.k,), cases, l)


def test_seconds_end_it():
    task, _, _, rows = posed(0, 1)
    assert grown(task, rows, "compact", np.arange(SIDE**2) // SIDE, (1, SIDE**2), SearchClock.of(0.0)) == []


EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 3), (2, 5)]
PLACES = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 2], [3, 1]], float)
WEIGHTS, VALUES = [3, 2, 4, 2, 5, 3], [1.0, 9, 2, 8, 3, 9]


def spread(region, columns):
    own, mass = columns[list(region)], np.array([WEIGHTS[v] for v in region], float)
    return float((mass[:, None] * (own - np.average(own, axis=0, weights=mass)) ** 2).sum())


def test_every_number_is_the_best_of_all_partitions():
    every = list(partitions(6, EDGES, [[w] for w in WEIGHTS], [4]))
    most = max(map(len, every))
    for name, columns in (("distance", PLACES), ("variance", np.array(VALUES)[:, None])):
        asked = {"similar": VALUES} if name == "variance" else {}
        found = choices(EDGES, WEIGHTS, 4, method="exact", coordinates=PLACES, geographic=False, seed=1, **asked)
        assert [c.regions for c in found] == sorted({c.regions for c in found}, reverse=True)
        assert found[0].regions == most <= found[0].at_most
        for choice in found:
            best = min(sum(spread(r, columns) for r in p) for p in every if len(p) == choice.regions)
            whole = sum(WEIGHTS) if name == "distance" else spread(range(6), columns)
            paid = choice.distance**2 if name == "distance" else choice.variance
            assert paid == pytest.approx(best / whole, abs=1e-9)
            assert choice.largest == choice.found.largest


def test_numbers_that_cannot_be_are_left_out_and_what_cannot_be_asked_is_refused():
    found = choices(EDGES, WEIGHTS, 4, [99, 2, 1], coordinates=PLACES, geographic=False, effort="fast", seed=1)
    assert [c.regions for c in found] == [2, 1]
    assert found[0].variance is None
    with pytest.raises(PolicyError, match="choices asks for every number of regions by itself; leave at_most out"):
        choices(EDGES, WEIGHTS, 4, coordinates=PLACES, at_most={"areas": ([1] * 6, 3)})
    with pytest.raises(PolicyError, match=r"similar values \(similar=\), or where areas lie: coordinates"):
        choices(EDGES, WEIGHTS, 4)


def test_the_command_draws_the_curve(tmp_path, monkeypatch):
    rows = [f"a{i},{w},{x:g},{y:g}" for i, (w, (x, y)) in enumerate(zip(WEIGHTS, PLACES.tolist(), strict=True))]
    (tmp_path / "areas.csv").write_text("\n".join(["id,people,x,y", *rows]) + "\n")
    (tmp_path / "pairs.csv").write_text("\n".join(["u,v", *(f"a{a},a{b}" for a, b in EDGES)]) + "\n")
    status, out, err = run(
        "regions", tmp_path / "areas.csv", tmp_path / "pairs.csv", "--weight", "people", "--k", 4,
        "--coordinates", "projected", "--effort", "fast", "--choices", tmp_path / "c.svg", "--seed", 1, "--json",
    ).ok()  # fmt: skip
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    assert "Do not publish it" in (tmp_path / "c.svg").read_text()
    assert (tmp_path / "c.svg").stat().st_mode & 0o077 == 0
    said = json.loads(out)["choices"]
    assert said[0]["distance"] < said[-1]["distance"]
    assert said[0]["regions"] > said[-1]["regions"]
    (tmp_path / "bare.csv").write_text("\n".join(["id,people", *(row.rsplit(",", 2)[0] for row in rows)]) + "\n")
    monkeypatch.setattr("shoal.problems.regions.nested", lambda *_, **__: pytest.fail("searched before it refused"))
    asked = ("--weight", "people", "--k", 4, "--effort", "fast", "--choices", tmp_path / "d.svg")
    status, _, err = run("regions", tmp_path / "bare.csv", tmp_path / "pairs.csv", *asked)
    assert status == 2
    assert "similar values (--similar), or where areas lie: coordinates, or a file of polygons (--shapes FILE)" in err
