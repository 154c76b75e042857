"""Regions within regions: against exhaustive search with all options mixed, on the command line, under the judge."""

import csv
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.problems.regions import nested
from shoal.publishing.sources import findings
from tests.commands import run
from tests.oracles.regions import connected, meets
from tests.regions.test_options import asked, choices, dry, rank, rules


@st.composite
def towers(draw):
    """A small graph with options of every kind, thresholds of two levels, maxima and numbers by level."""
    case = draw(asked()) | {"widest": None}
    two = [k + draw(st.integers(0, 6)) for k in case["ks"]]
    maxima = [name for name in ("at_most", "areas") if case[name]]
    least = {"at_most": max(case["at_most"] or 0, two[0]), "areas": case["areas"]}
    top = {name: draw(st.none() | st.integers(least[name], 3 * least[name])) for name in maxima}
    return case | {"levels": [case["ks"], two], "top": top, "second": draw(st.none() | st.integers(1, 3))}


def by_level(case, options):
    """The options as ``nested`` takes them: maxima and numbers for each of two levels."""
    options = dict(options)
    if options["at_most"]:
        names = {"people": "at_most", "areas": "areas"}
        each = {n: (values, (limit, case["top"][names[n]])) for n, (values, limit) in options["at_most"].items()}
        options["at_most"] = each
    options["regions"] = (options["regions"], case["second"]) if options.get("regions") is not None else None
    return options


def second_rules(case, allowed, units):
    """Whether a set of areas may be a region of the second level, whose parts are ``units``."""
    top = case | {name: case["top"].get(name) for name in ("at_most", "areas")}
    within, _ = rules(top)

    def fine(r):
        inside = [u for u in units if u & set(r)]
        whole = set().union(*inside)
        if not inside or {v for v in whole if not (case["water"] and case["water"][v])} != set(r):
            return False
        if case["boundary"] and len({case["boundary"][v] for v in r}) > 1:
            return False
        return len(inside) == 1 or within(tuple(sorted(whole)), True)

    return fine


@settings(max_examples=50, deadline=None)
@given(case=towers())
def test_levels_with_options_mixed_against_every_choice(case):
    allowed, options = rules(case)
    two = len(case["ks"]) > 1
    weights = case["weights"] if two else [row[0] for row in case["weights"]]
    method = case["method"]
    try:
        found = nested(
            case["edges"], weights, [k if two else k[0] for k in case["levels"]], method, seed=1, effort="fast",
            **by_level(case, options),
        )  # fmt: skip
    except InfeasibleError:
        return  # each level by itself is tested with its refusals; here it matters that what is found holds
    fine, coarse = ([set(np.flatnonzero(level == r)) for r in range(level.max() + 1)] for level in found.labels.T)
    assert [len(fine), len(coarse)] == [level.regions for level in found.levels]
    assert all(u <= r or not u & r for u in fine for r in coarse)
    may = second_rules(case, allowed, fine)
    fine = dry(case, fine, allowed)
    coarse = [{v for v in r if not (case["water"] and case["water"][v])} for r in coarse]
    for regions, ks in zip((fine, coarse), case["levels"], strict=True):
        assert all(meets(tuple(r), case["weights"], ks) and connected(r, case["edges"]) for r in regions)
    assert all(allowed(tuple(sorted(r))) for r in fine)
    assert all(may(tuple(sorted(r))) for r in coarse)  # unions of the regions below, and whatever else was asked for
    every = [c for c in choices(case["n"], case["edges"], case["weights"], case["levels"][1], may) if c]
    upper = found.levels[1]
    assert upper.upper_bound >= max(map(len, every))
    held = {v for r in coarse for v in r}
    pair = [set(p) for p in [[v for v, x in enumerate(options["fixed"] or []) if x]] if p]

    def free(r):
        sides = case["boundary"]
        return (set(r) <= held and not (sides and len({sides[v] for v in r}) > 1)
                and all(len(p & set(r)) in (0, len(p)) for p in pair))  # fmt: skip

    most = max(map(len, choices(case["n"], case["edges"], case["weights"], case["levels"][1], free)))
    assert found.most[1] >= most
    number = by_level(case, options)["regions"]
    if number is not None and number[1] is not None:
        assert len(coarse) == number[1]
    elif method == "exact":
        out = lambda c: sum(1 for u in fine if not any(u <= r for r in c))  # noqa: E731
        key = lambda c: (rank(case, c)[0], out(c), rank(case, c)[2])  # noqa: E731
        assert key(coarse) == min(map(key, every))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A strip of 24 areas in two states, and an island that is large enough for the first level alone."""
    folder = tmp_path_factory.mktemp("levels")
    rows = [f"0{100 + i},{'west' if i < 12 else 'east'},{3 + i % 3},{1 + i % 2}" for i in range(24)]
    (folder / "areas.csv").write_text("\n".join(["zip,state,people,cases", *rows, "0900,east,9,3"]) + "\n")
    pairs = [f"0{100 + i},0{101 + i}" for i in range(23)]
    (folder / "pairs.csv").write_text("\n".join(["u,v", *pairs]) + "\n")
    return folder


def made(places, tmp_path, monkeypatch, capsys, *more):
    files = ("-o", tmp_path / "c.csv", "--hierarchy", tmp_path / "zip.csv")
    _, out, _ = run(
        "regions", places / "areas.csv", places / "pairs.csv", "--weight", "people", "--k", 8,
        "--levels", "16,30", "--seed", 1, *files, "--json", *more,
    ).ok()  # fmt: skip
    return json.loads(out)


def test_an_area_in_no_region_beside_two_weights_and_levels(places, tmp_path):
    """It has no sum of the second weight, and what would leave was taken for no whole number."""
    text = (places / "areas.csv").read_text().replace("0900,east,9,3", "0900,east,1,0")
    (tmp_path / "areas.csv").write_text(text)
    run(
        "regions", tmp_path / "areas.csv", places / "pairs.csv", "--weight", "people", "--weight", "cases", "--k", 8,
        "--k", 2, "--levels", "16", "--levels", "4", "--seed", 1, "-o", tmp_path / "c.csv",
    ).ok()  # fmt: skip


def test_the_command_writes_verifies_and_feeds_a_table(places, tmp_path, monkeypatch, capsys):
    said = made(places, tmp_path, monkeypatch, capsys, "--boundary", "state", "--at-most", "areas=3,6,99")
    assert [level["k"] for level in said["levels"]] == [[16], [30]]
    rows = list(csv.DictReader((tmp_path / "c.csv").open(encoding="utf-8")))
    assert list(rows[0]) == [
        "area", "region", "region_weight", "region_areas", "region2", "region2_weight", "region2_areas", "region3",
        "region3_weight", "region3_areas",
    ]  # fmt: skip
    assert [r["region2"] for r in rows][-1] == "*" != rows[-1]["region"]
    for level, least in (("region", 8), ("region2", 16), ("region3", 30)):
        assert all(int(r[f"{level}_weight"]) >= least for r in rows if r[level] != "*")
    tree = [line.split(";") for line in (tmp_path / "zip.csv").read_text().splitlines()]
    assert sorted(tree) == sorted([r["area"], r["region"], r["region2"], r["region3"], "*"] for r in rows)
    proof = tmp_path / "c.certificate.json"
    sources = ("--original", places / "areas.csv", "--original", places / "pairs.csv")
    for file in ("c.csv", "zip.csv"):
        for more in ((), sources):
            run("verify", tmp_path / file, proof, *more).ok()
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"zip": rng.choice([r["area"] for r in rows], 150), "age": rng.integers(20, 60, 150)})
    table.write_csv(tmp_path / "people.csv")
    run(
        "anonymize", tmp_path / "people.csv", "--quasi", "zip,age", "--k", 3, "--publish",
        "hierarchy", "--hierarchy", f"zip={tmp_path / 'zip.csv'}", "--effort", "fast", "--seed", 1,
        "-o", tmp_path / "release.csv",
    ).ok()  # fmt: skip
    published = pl.read_csv(tmp_path / "release.csv", infer_schema=False)["zip"].unique().to_list()
    assert set(published) <= {value for row in tree for value in row}
    assert set(published) & {value for row in tree for value in row[1:-1]}
    assert shoal.assign(tmp_path / "c.csv", pl.DataFrame({"area": ["0100", "0900"]})).outside == 0
    for lost in (["100", "0900", "5"], [100, 900, 5]):
        later = shoal.assign(tmp_path / "c.csv", pl.DataFrame({"area": lost}))
        assert (later.outside, later.zeros) == (1, 2 - ("0900" in lost))
        assert "leading zeros" in later.sentences()[0]


BENT = {
    "nested": lambda f: f.with_columns(region2=pl.when(pl.col("area") == "0101").then(pl.col("region2").last())
                                       .otherwise("region2")),
    "region2_weight": lambda f: f.with_columns(region2_weight=pl.col("region2_weight") + 1),
    "areas": lambda f: f.with_columns(region3_areas=pl.col("region3_areas") + 1),
    "groups": lambda f: f.with_columns(region3=pl.lit("all"), region3_weight=99, region3_areas=25),
}  # fmt: skip


@pytest.mark.parametrize("bend", ["", *BENT])
def test_the_judge_sees_a_bent_level(places, bend):
    areas = pl.read_csv(places / "areas.csv", schema_overrides={"zip": pl.String}).filter(pl.col("zip") != "0900")
    edges = np.column_stack([np.arange(23), np.arange(1, 24)])
    found = nested(edges, areas["people"].to_numpy(), [8, 16, 30], seed=1)
    out = shoal.release(found, areas, weight="people", id="zip", edges=edges)
    record = {"kind": "regions", "parameters": out.parameters, "facts": out.facts}
    content = BENT[bend](out.content) if bend else out.content
    wrong = {f.check for f in findings(record, out.certificate, content, "parquet", out.sources) if not f.holds}
    assert bool(wrong) == bool(bend)
    assert not bend or any(bend in check for check in wrong), wrong


def test_the_judge_walks_every_level(places, tmp_path):
    """Weights that the file and the certificate agree on, but not the areas; pieces; a crossed boundary; maxima; l."""
    areas = pl.read_csv(places / "areas.csv", schema_overrides={"zip": pl.String}).head(24)
    edges = np.column_stack([np.arange(23), np.arange(1, 24)])
    found = nested(edges, areas["people"].to_numpy(), [8, 16], seed=1)
    out = shoal.release(found, areas, weight="people", id="zip", edges=edges)
    upper = dict(out.parameters["levels"][0])
    table, pairs = out.sources.table, out.sources.pairs
    whole = areas.select(pl.exclude("zip").cast(pl.String))

    def wrong(parameters, table=table, pairs=pairs, part=None, held=out.content):
        record = {"kind": "regions", "parameters": out.parameters | parameters, "facts": out.facts}
        source = out.sources._replace(table=table, pairs=pairs)
        said = findings(record, out.certificate, held, "parquet", source, part)
        return {f.check for f in said if not f.holds}

    assert not wrong({})
    path = out.write(tmp_path / "c.csv", also={"hierarchy": tmp_path / "z.csv"}).parent / "z.csv"
    assert not wrong({}, part="hierarchy", held=path)
    rich = table.with_columns(whole["state"], whole["cases"])
    second = found.labels[:, 1]
    cut = int(np.flatnonzero(second[1:] != second[:-1])[0])
    for part, held in ((None, out.content), ("hierarchy", path)):
        assert "level 2 connected" in wrong({}, pairs=pairs.slice(1), part=part, held=held)
        light = table.with_columns(people=pl.lit("1"))
        assert "level 2 people" in wrong({}, light, part=part, held=held)
        sides = pl.Series("state", ["a"] * (cut - 1) + ["b"] * (25 - cut))
        assert "level 2 boundary" in wrong({"boundary": "state"}, rich.with_columns(sides), part=part, held=held)
        assert "level 2 apart" in wrong({"apart": "state"}, rich, part=part, held=held)
        bound = {"levels": [upper | {"at_most": {"areas": 2}}]}
        assert "level 2 at most areas" in wrong(bound, part=part, held=held)
        assert "level 2 l" in wrong({"sensitive": ["cases"], "l": 2}, rich, part=part, held=held)
    text = path.read_text().splitlines()
    for lines, check in ((text[1:], "values"), ([t.replace(";*", ";x") for t in text], "top"),
                         ([text[0].replace("+", "-"), *text[1:]], "level 1")):  # fmt: skip
        path.write_text("\n".join(lines) + "\n")
        assert check in wrong({}, part="hierarchy", held=path)


def test_what_cannot_be_asked():
    edges, weights = [(0, 1), (1, 2), (2, 3)], [5, 5, 5, 5]
    for none in ([], 5, "5"):
        with pytest.raises(PolicyError, match="thresholds of levels are a list that rises"):
            shoal.regions.nested([(0, 1)], [3, 4], none)
    with pytest.raises(PolicyError, match="max_diameter looks at single areas, so it goes with one threshold"):
        nested(edges, weights, [5, 10], max_diameter=3.0, coordinates=[[i, 0] for i in range(4)])
    with pytest.raises(PolicyError, match="give one for each"):
        nested(edges, weights, [5, 10], regions=2)
    with pytest.raises(PolicyError, match="has 3 values for 2 levels"):
        nested(edges, weights, [5, 10], at_most={"areas": ([1] * 4, (1, 2, 3))})
    with pytest.raises(PolicyError, match="start goes with one threshold"):
        nested(edges, weights, [5, 10], start=[0, 1, 2, 3])
    found = nested(edges, weights, [5, 10], regions=(None, 1), seed=1)
    assert [level.regions for level in found.levels] == [4, 1]
    with pytest.raises(InputError, match="does not belong"):
        shoal.release(found, pl.DataFrame({"id": list("abcd"), "w": [1, 2, 3, 4]}), weight="w", edges=edges)


def test_islands_joined_at_one_level_are_neighbors_above():
    weights, where = [5, 5, 5, 2, 9], [[0, 0], [1, 0], [2, 0], [4, 0], [50, 0]]
    found = nested([(0, 1), (1, 2)], weights, [5, 8, 20], coordinates=where, geographic=False, islands="join", seed=1)
    assert (found.labels >= 0).all()
    assert found.levels[0].joined.tolist() == [[2, 3]]
    assert [level.regions for level in found.levels] == [4, 2, 1]
    areas = pl.DataFrame({"id": list("abcde"), "w": weights})
    out = shoal.release(found, areas, weight="w", edges=[(0, 1), (1, 2)], geographic=False)
    record = {"kind": "regions", "parameters": out.parameters, "facts": out.facts}
    assert all(f.holds for f in findings(record, out.certificate, out.content, "parquet", out.sources))
    bare = [level | {"joined": []} for level in out.parameters["levels"]]
    said = findings(record | {"parameters": out.parameters | {"levels": bare}}, out.certificate, out.content, "parquet",
                    out.sources)  # fmt: skip
    assert {f.check for f in said if not f.holds} == {"level 3 connected"}


def test_two_bounds_where_the_level_below_is_in_the_way():
    """Six areas of 2 in a row: three regions of 4, which make one of at least 6, where the areas would make two."""
    edges = [(i, i + 1) for i in range(5)]
    found = nested(edges, [2] * 6, [4, 6], seed=1)
    assert [level.regions for level in found.levels] == [3, 1]
    assert found.levels[1].upper_bound >= 1
    assert found.most == (3, 2)


def test_water_counts_for_the_maxima_of_every_level():
    edges, weights, wet = [(0, 1), (0, 2)], [5, 5, 0], [False, False, True]
    for most in (2, 3):
        asked = {"water": wet, "at_most": {"areas": ([1, 1, 1], most)}, "seed": 1}
        if most == 2:
            with pytest.raises(InfeasibleError):
                nested(edges, weights, [5, 10], **asked)
            continue
        assert nested(edges, weights, [5, 10], **asked).labels.tolist() == [[0, 0], [1, 0], [0, 0]]
