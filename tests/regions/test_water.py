"""Water connects no shores and counts as no isolated area; what stands apart is named."""

import json

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.adjacency import disconnected
from shoal.errors import InputError, PolicyError
from shoal.publishing.sources import findings
from tests.commands import run
from tests.kept import kept, prove, write_sealed

# shore a0 a1 | lake l0 l1 | shore b0 b1; an island with people, a rock and a reef without
AREAS = """id,people,lake
a0,5,no
a1,3,no
l0,0,yes
l1,0,yes
b0,3,no
b1,5,no
island,4,no
islet,4,no
rock,0,no
reef,0,yes
"""
PAIRS = "u,v\na0,a1\na1,l0\nl0,l1\nl1,b0\nb0,b1\nisland,islet\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("water")
    (place / "areas.csv").write_text(AREAS)
    (place / "pairs.csv").write_text(PAIRS)
    return place


def test_the_command_says_what_stands_apart_and_the_judge_walks_by_land(folder, tmp_path):
    asked = ("regions", folder / "areas.csv", folder / "pairs.csv", "--weight", "people", "--k", 6, "--seed", 1)
    _, out, _ = run(*asked, "--water", "lake", "--objective", "count", "-o", tmp_path / "c.csv").ok()
    for line in (
        "1 island, sets of areas apart from the largest, of 2 areas",
        "2 empty areas without a neighbor, left alone: rock, reef",
        "3 areas of water, which connects no others",
        "of the water, 2 areas in a neighboring region",
        "In no region, apart from all others: 1 empty area",
    ):
        assert line in out
    assert "too light" not in out
    rows = {r["area"]: r for r in pl.read_csv(tmp_path / "c.csv").iter_rows(named=True)}
    assert rows["l0"]["region"] == rows["a0"]["region"] == "a0+2"
    assert rows["l1"]["region"] == rows["b0"]["region"] != rows["a0"]["region"]
    assert rows["reef"]["region"] == rows["rock"]["region"] == "*"
    sources = ("--original", folder / "areas.csv", "--original", folder / "pairs.csv")
    _, out, _ = run("verify", tmp_path / "c.csv", tmp_path / "c.certificate.json", *sources).ok()
    assert "connected by land" in out
    drawn = run(*asked, "--water", "lake", "--levels", "8", "--json").facts["drawing"]
    assert (drawn["islands"], drawn["isolated"]["count"], drawn["isolated_empty"]["count"]) == (1, 0, 2)


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("Y", "n"), ("t", ""), ("True", "False")])
def test_a_region_of_two_shores_is_found_out(yes, no):
    edges = [(0, 1), (1, 2)]
    frame = pl.DataFrame({"id": ["a", "lake", "b"], "people": [5, 0, 5], "water": [no, yes, no]})
    found = shoal.regions.merge(edges, frame["people"].to_numpy(), 10, seed=1)
    assert found.regions == 1
    with pytest.raises(shoal.InfeasibleError):
        shoal.regions.merge(edges, frame["people"].to_numpy(), 10, water=[False, True, False], seed=1)
    for k, wrong in ((10, {"connected by land"}), ([[5], [10]], {"level 2 connected by land"})):
        several = isinstance(k, list)
        made = shoal.regions.nested if several else shoal.regions.merge
        answer = made(edges, frame["people"].to_numpy(), k, seed=1)
        out = shoal.release(answer, frame, weight="people", edges=edges, water="water")
        record = {"kind": "regions", "parameters": out.parameters, "facts": out.facts}
        said = findings(record, out.certificate, out.content, "parquet", out.sources)
        assert {f.check for f in said if not f.holds} == wrong


def test_water_keeps_boundaries_and_maxima_and_has_no_weight():
    edges, weights = [(0, 1), (1, 2), (2, 3)], [5, 0, 0, 5]
    wet = [False, True, True, False]
    found = shoal.regions.merge(edges, weights, 5, water=wet, boundary=list("abbb"), seed=1)
    assert found.labels.tolist() == [0, 1, 1, 1]
    found = shoal.regions.merge(edges, weights, 5, water=wet, at_most={"areas": ([1] * 4, 1)}, seed=1)
    assert found.labels.tolist() == [0, -1, -1, 1]
    assert found.certificate.details["water_attached"] == 0
    star = shoal.regions.merge([(0, 1), (0, 2)], [5, 0, 0], 5, water=[False, True, True],
                               at_most={"areas": ([1] * 3, 2)}, seed=1)  # fmt: skip
    assert sorted(star.labels.tolist()) == [-1, 0, 0]  # two at once would be one too many
    with pytest.raises(InputError, match="1 areas of water weigh"):
        shoal.regions.merge(edges, [5, 0, 1, 5], 5, water=wet, seed=1)
    with pytest.raises(PolicyError, match="value of fixed"):
        shoal.regions.merge(edges, weights, 5, water=wet, fixed=["x", "x", "", ""], seed=1)


def test_sets_of_empty_areas_are_no_islands():
    edges = np.array([[0, 1], [1, 2], [3, 4], [5, 6]])
    empty = np.array([False, False, False, True, True, False, True, True])
    found = disconnected([*"abcdefgh"], edges, empty=empty)
    assert found.facts["islands"] == 1
    assert found.facts["isolated_empty"]["first"] == ["h"]
    assert disconnected([*"abcdefgh"], edges).facts == {"islands": 2, "isolated": {"count": 1, "first": ["h"]}}


LAKES = pl.DataFrame({
    "id": [f"a{i}" for i in range(8)], "pop": [3, 2, 0, 2, 3, 4, 0, 5], "lake": [i in (2, 6) for i in range(8)],
})  # fmt: skip


@pytest.mark.parametrize("objective", ["count", "max"])
@pytest.mark.parametrize("most", [None, 4])
def test_the_bounds_of_levels_beside_water_are_proved_again(tmp_path, objective, most):
    edges = [(i, i + 1) for i in range(7)] + [(1, 3), (5, 7)]
    people, wet = LAKES["pop"].to_numpy(), LAKES["lake"].to_numpy()
    caps = {} if most is None else {"at_most": {"areas": (np.ones(8, np.int64), most)}}
    found = shoal.regions.nested(edges, people, [5, 9], water=wet, objective=objective, seed=1, **caps)
    named = {} if most is None else {"at_most": {"areas": most}}
    out = shoal.release(found, LAKES, weight="pop", edges=edges, id="id", water="lake", **named)
    record = kept(out.write(tmp_path / "c.csv"))
    sources = [LAKES, pl.DataFrame([(f"a{i}", f"a{j}") for i, j in edges], orient="row")]
    again = {f.check: f for f in prove(tmp_path / "c.csv", record, sources, effort="fast").findings}
    assert [again[name].how for name in ("bound", "level 2 bound")] == ["recomputed"] * 2
    facts = json.loads(record.read_text())
    facts["facts"]["levels"][0].update(cost=99, cost_at_least=99)
    write_sealed(record, facts)
    assert not {f.check: f for f in prove(tmp_path / "c.csv", record, sources, effort="fast").findings}[
        "level 2 bound"
    ].holds
