"""The curve of an objective against the number of regions, beside exhaustive search."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shoal.errors import PolicyError
from shoal.problems.regions import choices
from tests.commands import run
from tests.oracles.regions import partitions

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
    with pytest.raises(PolicyError, match="leave maxima"):
        choices(EDGES, WEIGHTS, 4, coordinates=PLACES, at_most={"areas": ([1] * 6, 3)})
    with pytest.raises(PolicyError, match=r"alike in \(similar=\), or where areas lie: coordinates"):
        choices(EDGES, WEIGHTS, 4)


def test_the_command_draws_the_curve(tmp_path, monkeypatch):
    rows = [f"a{i},{w},{x:g},{y:g}" for i, (w, (x, y)) in enumerate(zip(WEIGHTS, PLACES.tolist(), strict=True))]
    (tmp_path / "areas.csv").write_text("\n".join(["id,people,x,y", *rows]) + "\n")
    (tmp_path / "pairs.csv").write_text("\n".join(["u,v", *(f"a{a},a{b}" for a, b in EDGES)]) + "\n")
    status, out, err = run(
        "regions", tmp_path / "areas.csv", tmp_path / "pairs.csv", "--weight", "people", "--k", 4,
        "--coordinates", "projected", "--effort", "fast", "--choices", tmp_path / "c.svg", "--seed", 1, "--json",
    )  # fmt: skip
    assert status == 0, err
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    said = json.loads(out)["choices"]
    assert said[0]["distance"] < said[-1]["distance"]
    assert said[0]["regions"] > said[-1]["regions"]
    (tmp_path / "bare.csv").write_text("\n".join(["id,people", *(row.rsplit(",", 2)[0] for row in rows)]) + "\n")
    monkeypatch.setattr("shoal.problems.regions.nested", lambda *_, **__: pytest.fail("searched before it refused"))
    asked = ("--weight", "people", "--k", 4, "--effort", "fast", "--choices", tmp_path / "d.svg")
    status, _, err = run("regions", tmp_path / "bare.csv", tmp_path / "pairs.csv", *asked)
    assert status == 2
    assert "alike in (--similar), or where areas lie: coordinates, or a file of polygons (--shapes FILE)" in err
