"""A column of a table published as connected sets of areas: the tree, its loss and bound, the judge, the way there."""

import dataclasses
import itertools
import json
import math
import pickle
import random
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines.geography import read
from shoal.errors import InputError, PolicyError
from shoal.judge.recodings.levels import AreaGraph
from shoal.kernels import plain
from shoal.kernels.tables.connected_sets import (
    OWN,
    AreaColumn,
    begin_areas,
    put_area_back,
    take_area,
    taken_areas,
)
from shoal.kernels.tables.eligible import joined
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Histogram
from shoal.model.notation import SetOf, parse
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from shoal.model.recoding.regions import FEW, Network
from shoal.problems.tables.bounds import boxes, near_cells
from shoal.problems.tables.groups import encode
from shoal.report.sections import attacks
from tests.amount import thinned
from tests.commands import run
from tests.oracles.regions import connected
from tests.oracles.tables import least_total
from tests.tables.drawn import Graph as SmallGraph
from tests.tables.drawn import graph_task, lost_in
from tools import oracle_bounds

# a ring of six areas with a tail:  a-b-c-d-e-f-a, d-g;  and h apart
PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "a"), ("d", "g")]
PEOPLE = {"a": 10, "b": 20, "c": 0, "d": 40, "e": 5, "f": 15, "g": 7, "h": 3}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]], list[int]]:
    n = draw(st.integers(1, 9))
    names = [f"{i:02}" for i in range(n)]
    pairs = [p for p in itertools.combinations(names, 2) if draw(st.booleans())]
    return names, pairs, [draw(st.integers(0, 9)) for _ in names]


def shown(text: str) -> set[str]:
    found = parse(text)
    return set(found.values) if isinstance(found, SetOf) else {text}  # type: ignore[arg-type]


@given(graphs())
def test_every_class_is_connected_holds_its_areas_and_weighs_their_share(given: Any) -> None:
    names, pairs, weights = given
    tree = Hierarchy.regions(names, pairs, weights)
    found, graph = tree.resolve(names), AreaGraph(tree)
    weights = [max(w, 1) for w in weights]  # an area without people counts as one
    whole = sum(weights)
    assert len(found.node) <= 3 + 4 * len(names).bit_length()
    for level in range(1, len(found.node) - 1):
        assert len(set(found.labels[level])) > 1 or len(names) == 1
        for i, name in enumerate(names):
            members = shown(found.labels[level][found.node[level][i]])
            assert name in members
            assert connected(members, pairs)
            people = sum(w for n, w in zip(names, weights, strict=True) if n in members)
            leaves = 1 if len(members) == 1 else people
            assert found.leaves[level][i] == leaves
            assert graph.lost(frozenset(members)) == pytest.approx((leaves - 1) / max(whole - 1, 1))


@given(graphs(), st.data())
def test_the_judge_tells_which_sets_hang_together(given: Any, data: st.DataObject) -> None:
    names, pairs, weights = given
    members = set(data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
    graph = AreaGraph(Hierarchy.regions(names, pairs, weights))
    assert graph.connected(frozenset(members)) == connected(members, pairs)


def test_the_judge_says_what_is_wrong() -> None:
    graph = AreaGraph(Hierarchy.regions([*PEOPLE], PAIRS))
    assert graph.wrong(["a", "{a, b}", "*", None, "{d, g}"], "*") is None
    assert graph.wrong(["{a, c}"], "*") == "a published set of areas is not connected"
    for text in ("x", "{a, x}", "{a, a}", "{a", "[a, b]"):
        assert graph.wrong([text], "*") == "a published value is no set of areas"


def test_a_star_of_areas_has_few_levels() -> None:
    tree = Hierarchy.regions([str(i) for i in range(300)], [("0", str(i)) for i in range(1, 300)])
    assert len(tree.resolve(["0", "1"]).node) < 5


@cache
def cheapest(zips: frozenset[str]) -> float:
    """Loss of the cheapest connected set with some areas; a star loses 1."""
    number = {name: i for i, name in enumerate(PEOPLE)}
    edges = [(number[a], number[b]) for a, b in PAIRS]
    graph = SmallGraph(len(number), [max(w, 1) for w in PEOPLE.values()], edges, missing=False)
    return graph.lost({number[z] for z in zips})


@pytest.mark.diagonal
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("effort", ["fast", "thorough"])
def test_the_bound_is_never_above_the_cheapest_partition_of_all(seed: int, effort: str) -> None:
    chance = random.Random(seed)
    names, k = [*PEOPLE], 2 + seed % 2
    columns = {"zip": [chance.choice(names) for _ in range(7)], "sex": [chance.choice("mf") for _ in range(7)]}
    table = pl.DataFrame(columns)
    tree = Hierarchy.regions(names, PAIRS, [PEOPLE[n] for n in names])
    asked = {"quasi_identifiers": ["zip", "sex"], "k": k, "publish": "hierarchy", "hierarchies": {"zip": tree}}
    release = shoal.anonymize(table, **asked, seed=1, keep_order=True, effort=effort)

    def lost(group: list[int]) -> float:
        sexes = {columns["sex"][r] for r in group}
        return len(group) * (cheapest(frozenset(columns["zip"][r] for r in group)) + (len(sexes) > 1))

    least = (least_total(7, lambda group: lost(group) if len(group) >= k else None) or 0) / 14
    assert release.certificate.lower_bound <= least + 1e-9
    assert least - 1e-9 <= release.certificate.cost
    graph = AreaGraph(tree)
    for text, sex in release.table.unique().rows():
        inside = {z for z, *shows in zip(columns["zip"], *release.table, strict=True) if shows == [text, sex]}
        own = 1.0 if text == "*" else graph.lost(graph.members(text) or frozenset())
        assert inside == {text} or own == pytest.approx(cheapest(frozenset(inside)))


@given(graphs(), st.data())
def test_the_cheapest_set_is_found_and_more_areas_still_hang_together(given: Any, data: st.DataObject) -> None:
    names, pairs, weights = given
    ends = data.draw(st.lists(st.sampled_from(range(len(names))), min_size=1, unique=True))
    weight = np.array([max(w, 1) for w in weights], float)
    network = Network.of(weight, [(int(a), int(b)) for a, b in pairs])
    others = [i for i in range(len(names)) if i not in ends]
    every = ({*ends, *more} for r in range(len(others) + 1) for more in itertools.combinations(others, r))
    sums = [network.total(s) for s in every if connected({names[i] for i in s}, pairs)]
    if not sums:
        assert not np.isfinite(network.apart[ends[0], ends]).all()
        return
    found = network.cheapest(ends)
    assert set(ends) <= found
    assert connected({names[i] for i in found}, pairs)
    assert len(ends) > FEW or network.total(found) == pytest.approx(min(sums))
    for a, b in itertools.pairwise(ends):
        assert network.apart[a, b] == pytest.approx(network.total(network.way(a, b)))


@pytest.mark.parametrize("seed", range(thinned(60)))
def test_the_cheapest_set_of_a_grid_branches_anywhere(seed: int) -> None:
    random = np.random.default_rng(seed)
    high, wide = 3, 4
    weight = random.integers(1, 12, high * wide).astype(float)
    cells = [(r, c) for r in range(high) for c in range(wide)]
    pairs = [(i, j) for i, a in enumerate(cells) for j, b in enumerate(cells) if i < j and math.dist(a, b) == 1]
    network = Network.of(weight, pairs)
    ends = random.choice(weight.size, int(random.integers(3, FEW + 1)), replace=False).tolist()
    names, others = [str(i) for i in range(weight.size)], [i for i in range(weight.size) if i not in ends]
    every = ({*ends, *more} for r in range(len(others) + 1) for more in itertools.combinations(others, r))
    linked = [(names[i], names[j]) for i, j in pairs]
    least = min(network.total(s) for s in every if connected({names[i] for i in s}, linked))
    found = network.cheapest(ends)
    assert set(ends) <= found
    assert network.connected(found)
    assert network.total(found) == least


@pytest.mark.parametrize("seed", range(8))
def test_a_search_prices_connected_sets_and_a_bound_counts_the_cheapest(seed: int) -> None:
    random = np.random.default_rng(seed)
    areas = int(random.integers(4, 10))
    pairs = [pair for pair in itertools.combinations(range(areas), 2) if random.random() < 0.35]
    graph = SmallGraph(areas, [int(w) for w in random.integers(1, 10, areas)], pairs, bool(seed % 2))
    recoding = Recoding((graph.column(2.0),), "ncp")
    table = Histogram.from_rows(np.arange(areas)[:, None], np.zeros((areas, 0)))
    slots, leaf = encode(recoding, table)
    areas_of = near_cells._areas(recoding.columns[0], table.quasi[:, 0], 0)
    cells = Code(table.quasi)
    for _ in range(20):
        codes = random.choice(areas, int(random.integers(1, areas + 1)), replace=False)
        truth = 2.0 * graph.lost(set(codes.tolist()))
        state = np.bitwise_or.reduce(leaf[codes], axis=0)
        first, rest = leaf[codes[0]], np.bitwise_or.reduce(leaf[codes[1:]], axis=0, initial=0)
        believed = [plain(joined)(slots, *pair, np.inf) for pair in ((rest, first), (first, rest), (state, state))]
        assert believed[0] == believed[1] == believed[2] >= truth - 1e-9  # the first looked for, the others kept
        early = plain(joined)(slots, rest, first, 0.4)  # may stop at anything above the limit
        assert early == believed[0] or (0.4 < early <= believed[0])
        assert codes.size > 3 or believed[0] == pytest.approx(truth, rel=0.3)
        limit = float(random.choice([0.3, 1.0, 9.0]))
        counted = level_of(areas_of, cells, codes, limit)
        if truth < limit:
            assert counted <= truth + 1e-9
            assert codes.size > OWN + 1 or counted == pytest.approx(truth)
        else:
            assert codes.size > OWN + 1 or counted >= limit


class Code(NamedTuple):
    """As much of cells as a bound asks of areas."""

    code: np.ndarray


def level_of(areas: AreaColumn, cells: Code, codes: np.ndarray, limit: float) -> float:
    """What a bound counts for a group of cells, again the same after all but the first were put back."""
    taken = plain(taken_areas)(areas, codes.size)
    plain(begin_areas)(areas, taken, cells, codes[0])
    levels = []
    for _ in range(2):
        for x in range(1, codes.size):
            plain(take_area)(areas, taken, cells, x, codes[x], limit)
        levels.append(float(taken.level[0]))
        for x in range(codes.size - 1, 0, -1):
            plain(put_area_back)(areas, taken, x)
        assert taken.level[0] == 0.0
    assert levels[0] == levels[1]
    return levels[0]


@pytest.mark.parametrize("seed", range(12))
def test_the_most_violated_group_of_every_anchor_is_the_worst_of_all(seed: int) -> None:
    drawing = None
    while drawing is None or sum(g is not None for g in drawing[1]) > 1:
        seed += 100
        random = np.random.default_rng(seed)
        drawing = graph_task(random)
    task, graphs = drawing
    plain_k = Requirement(task.requirement.k, *[(1,) * len(task.requirement.distinct)] * 2)
    task = dataclasses.replace(task, requirement=plain_k)
    p, h, k = near_cells.Pairs.of(task), task.histogram, task.requirement.k
    at = random.uniform(0, 1.5, h.cells)
    excess = boxes._sweep(p, at, None)[0]
    rows, worst = np.repeat(np.arange(h.cells), p.cells.count), np.zeros(h.cells)
    for group in map(list, itertools.combinations(range(rows.size), k)):
        cells = rows[group]
        anchor = max(cells, key=lambda c: at[c])
        worst[anchor] = max(worst[anchor], at[cells].sum() - k * lost_in(task, graphs, p.order[cells]))
    assert excess == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_bound_of_small_tables_on_graphs_is_above_the_least_loss(seed: int) -> None:
    assert oracle_bounds.main(15, 1000 * seed, regions=True) == 0


def test_columns_of_the_bound_are_a_start_of_the_search(place: Path) -> None:
    chance = random.Random(2)
    rows = [(chance.choice([*PEOPLE]), chance.choice("mf"), chance.randint(20, 60)) for _ in range(120)]
    pl.DataFrame(rows, schema=["zip", "sex", "age"], orient="row").write_csv(place / "people.csv")
    release = released(place, effort="balanced")
    costs = {line["method"]: line["cost"] for line in release.attempts}
    assert release.certificate.cost <= costs["columns"] < costs["cascade"]
    assert release.audit.passes
    roles = {"quasi_identifiers": ["zip", "sex"], "sensitive": ["age"], "hierarchies": {}}
    asked = released(place, effort="balanced", **roles, l=2)
    assert "columns" not in [line["method"] for line in asked.attempts]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table, its areas and their neighbors as files."""
    chance = random.Random(5)
    rows = [(chance.choice([*PEOPLE]), chance.choice("mf"), chance.randint(20, 60)) for _ in range(60)]
    pl.DataFrame(rows, schema=["zip", "sex", "age"], orient="row").write_csv(tmp_path / "people.csv")
    pl.DataFrame({"id": [*PEOPLE], "population": [*PEOPLE.values()], "land": range(8)}).write_csv(
        tmp_path / "towns.csv"
    )
    pl.DataFrame(PAIRS, schema=["u", "v"], orient="row").write_csv(tmp_path / "pairs.csv")
    return tmp_path


ASKED: dict[str, Any] = {"quasi_identifiers": ["zip", "sex", "age"], "k": 3, "seed": 4}


def released(place: Path, **more: Any) -> Any:
    own = {"publish": {"zip": "regions"}, "hierarchies": {"age": "intervals:5,10,20"}, "effort": "fast"}
    files = {"areas": place / "towns.csv", "edges": place / "pairs.csv"}
    return shoal.anonymize(place / "people.csv", **{**ASKED, **own, **files, **more})


def test_files_go_the_whole_way_and_verify_asks_the_graph(place: Path) -> None:
    release = released(place)
    graph = AreaGraph(release.policy.hierarchies["zip"])
    assert graph.wrong(release.table["zip"].unique(), "*") is None
    assert any("{" in text for text in release.table["zip"])
    beside = release.write(place / "release.csv")
    alone = released(place, k=12, quasi_identifiers=["zip"], insensitive=["sex", "age"], hierarchies={})
    assert any("{" in text for text in alone.table["zip"])
    lost = json.loads(alone.write(place / "zips.csv").read_text())["loss"]["ncp"]
    assert lost == pytest.approx(alone.certificate.cost)
    stated = json.loads(beside.read_text())["policy"]
    assert (stated["hierarchies"]["zip"], stated["areas"], stated["edges"]) == ("regions", "towns.csv", "pairs.csv")
    verdict = shoal.verify(place / "release.csv", original=place / "people.csv", record=place / "release.record.json")
    assert verdict.holds, str(verdict)
    said = {f.check: f for f in verdict.findings}
    assert said["hierarchy of zip"].how == "recomputed"
    assert said["regions of zip"].holds
    assert said["cost"].how == "recomputed"
    page = release.report(place / "report.html")
    assert "regions" in Path(page).read_text()
    again = shoal.Policy.read(beside)
    assert again.describe() == shoal.Policy.of(release.policy, areas=place / "towns.csv").describe() | {
        "seed": again.seed
    }
    twice = shoal.prove(place / "release.csv", original=place / "people.csv", effort="same")
    assert twice.holds, str(twice)


def test_a_certificate_is_asked_again_with_its_own_graph_alone(place: Path) -> None:
    beside = released(place).write(place / "release.csv")
    pl.DataFrame(PAIRS[1:], schema=["u", "v"], orient="row").write_csv(place / "few.csv")
    policy = shoal.Policy.read(beside, effort="fast")
    other = shoal.Policy.read(beside, effort="fast", edges=place / "few.csv")
    again = shoal.anonymize(place / "people.csv", policy)
    assert again.certificate.cost == pytest.approx(released(place).certificate.cost)
    for asked in (other, dataclasses.replace(policy, areas=place / "towns.csv", edges=place / "few.csv")):
        with pytest.raises(InputError, match="neighbors of 'zip' are not the ones certified"):
            shoal.anonymize(place / "people.csv", asked)
    said = json.loads(beside.read_text())
    said["hierarchies"]["zip"] = None
    beside.write_text(json.dumps(said))
    kept = pickle.loads(pickle.dumps(again))
    assert kept.table.equals(again.table)
    assert kept.loss == again.loss
    with pytest.raises(InputError, match="areas of 'zip' without their hash"):
        shoal.Policy.read(beside)
    (place / "policy.toml").write_text("certified = 1\n")
    with pytest.raises(PolicyError, match="'certified'"):
        shoal.Policy.read(place / "policy.toml")


@pytest.mark.parametrize("k", [2, 3])
def test_the_audit_counts_groups_in_which_an_end_of_a_set_is_one_row(place: Path, k: int) -> None:
    release = released(place, k=k, keep_order=True)
    table, zips = release.table, pl.read_csv(place / "people.csv")["zip"].to_list()
    alone = []
    for published in table.unique().rows():
        inside = [z for z, row in zip(zips, table.rows(), strict=True) if row == published]
        members = shown(published[0]) if published[0] != "*" else set()
        ends = [z for z in members if connected(members - {z}, PAIRS)]
        alone.append(any(inside.count(z) == 1 for z in ends))
    assert release.audit.exposed == {"zip": pytest.approx(sum(alone) / len(alone))}
    assert any(alone)
    release.write(place / "release.csv")
    verdict = shoal.verify(place / "release.csv", original=place / "people.csv", record=place / "release.record.json")
    assert verdict.holds, str(verdict)
    said = attacks(release.policy.describe(), release.audit.exposed_classes)
    assert any(text.startswith("Ends of regions") for text in said)


def test_a_recoder_takes_a_graph_as_a_hierarchy_and_no_areas(place: Path) -> None:
    table = pl.read_csv(place / "people.csv").drop("age")
    tree = Hierarchy.regions([*PEOPLE], PAIRS, [*PEOPLE.values()])
    made = shoal.Recoder(["zip", "sex"], k=3, hierarchies={"zip": tree}, effort="fast", seed=1).fit(table)
    out = made.transform(table)
    assert AreaGraph(tree).wrong(out["zip"].unique(), "*") is None
    assert shoal.Recoder.read(made.save(place / "recoder.toml")).transform(table).equals(out)
    with pytest.raises(PolicyError, match="does not cover 1"):
        made.transform(table.with_columns(zip=pl.when(pl.col("zip") == "a").then(pl.lit("z")).otherwise("zip")))
    with pytest.raises(PolicyError, match="reads no areas"):
        shoal.Recoder(["zip", "sex"], k=3, hierarchies={"zip": "regions"}).fit(table)


def test_another_graph_or_another_set_of_areas_does_not_hold(place: Path) -> None:
    release = released(place)
    release.write(place / "release.csv")
    pl.DataFrame(PAIRS[:1], schema=["u", "v"], orient="row").write_csv(place / "few.csv")
    areas = {"areas": place / "towns.csv", "edges": place / "few.csv"}
    said = {f.check: f.holds for f in shoal.verify(place / "release.csv", **areas).findings}
    assert (said["hierarchy of zip"], said["regions of zip"]) == (False, False)
    away = place / "away"
    away.mkdir()
    for name in ("release.csv", "release.certificate.json"):
        (away / name).write_bytes((place / name).read_bytes())
    alone = shoal.verify(away / "release.csv")
    assert alone.holds
    assert next(f.how for f in alone.findings if f.check == "hierarchy of zip") == "stated"
    with pytest.raises(InputError, match="name them"):
        shoal.verify(away / "release.csv", original=place / "people.csv")
    with pytest.raises(PolicyError, match="name the areas"):
        shoal.verify(away / "release.csv", edges=place / "pairs.csv")


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_frames_and_a_graph_in_memory(place: Path, kind: str) -> None:
    given = read(place / "towns.csv", place / "pairs.csv")
    frame: Any = pl.read_csv(place / "people.csv")
    frame = frame.to_pandas() if kind == "pandas" else frame
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        frame = duckdb.sql(f"FROM '{place / 'people.csv'}'")
    release = shoal.anonymize(
        frame, **ASKED, publish={"zip": "regions", "sex": "stars"}, areas=given, region_loss="land", effort="fast"
    )
    tree = release.policy.hierarchies["zip"]
    assert dict(zip(*tree.steps[:2], strict=True)) == dict(zip(PEOPLE, [1, *range(1, 8)], strict=True))
    release.check()
    release.write(place / "release.parquet")
    assert shoal.verify(place / "release.parquet", areas=given).holds


def test_policy_file_and_command_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    Path("policy.toml").write_text(
        'quasi_identifiers = ["zip", "sex", "age"]\nk = 3\nseed = 4\neffort = "fast"\nareas = "towns.csv"\n'
        'edges = "pairs.csv"\n[publish]\nzip = "regions"\n[hierarchies]\nage = "intervals:5,10,20"\n'
    )
    assert shoal.anonymize("people.csv", shoal.Policy.read("policy.toml")).certificate.cost == pytest.approx(
        released(place).certificate.cost
    )
    words = ["anonymize", "people.csv", "-o", "out.csv", "--quasi", "zip,sex,age", "--k", "3", "--publish",
             "zip=regions", "--areas", "towns.csv", "--edges", "pairs.csv", "--effort", "fast"]  # fmt: skip
    done = run(*words).ok()
    for more in ([], ["--areas", "towns.csv", "--edges", "pairs.csv"]):
        done = run("verify", "out.csv", "--original", "people.csv", *more).ok()
        assert "regions of zip" in done.said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"publish": {"zip": "regions"}}, "name the areas"),
        ({"publish": {"zip": "ranges"}, "areas": "x"}, "by columns, a way is"),
        ({"publish": {"zip": "regions", "age": "ranges"}, "areas": "x"}, "by columns, a way is"),
        ({"publish": {"town": "regions"}, "areas": "x"}, "town"),
        ({"publish": {"zip": "regions", "age": "hierarchy"}, "areas": "x"}, "say which"),
        ({"publish": {"zip": "regions"}, "hierarchies": {"zip": "prefixes:3"}, "areas": "x"}, "otherwise"),
        ({"areas": "x"}, "no effect"),
        ({"edges": "x"}, "name the areas"),
        ({"publish": {"zip": "regions"}, "areas": "x", "region_loss": ""}, "name one column"),
    ],
)
def test_what_cannot_be_meant_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        shoal.Policy(**ASKED, **more)


def test_a_graph_that_does_not_fit_is_refused(place: Path) -> None:
    with pytest.raises(PolicyError, match=r"no column 'lives' .* region_loss=COLUMN, .* one of: .*'population'"):
        released(place, region_loss="lives")
    pl.DataFrame({"zip": ["a", "a", "x", "b"]}).write_csv(place / "people.csv")
    with pytest.raises(PolicyError, match="does not cover 1 of the column's values"):
        released(place, quasi_identifiers=["zip"], hierarchies={})
    with pytest.raises(PolicyError, match=r"it has 1 of them but for .* accents"):
        Hierarchy.regions(["Köln", "Bern"], []).resolve(["Bern", "Ko\u0308ln"], "town")
    for names in (["a", "a"], ["a, b"], [""], ["missing"], ["*"], [" a"]):
        with pytest.raises(PolicyError, match="area"):
            Hierarchy.regions(names, [])
    with pytest.raises(PolicyError, match="no area"):
        Hierarchy.regions(["a"], [("a", "b")])
    with pytest.raises(PolicyError, match="whole numbers"):
        Hierarchy.regions(["a"], [], [-1])


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_areas_and_pairs_in_frames_are_those_of_their_files(place: Path, kind: str) -> None:
    tables = [pl.read_csv(place / name, infer_schema=False) for name in ("towns.csv", "pairs.csv")]
    frames: list[Any] = [table.to_pandas() if kind == "pandas" else table for table in tables]
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        frames = [
            duckdb.sql(f"FROM read_csv('{place / name}', all_varchar=true)") for name in ("towns.csv", "pairs.csv")
        ]
    areas, edges = frames
    given, read_back = read(areas, edges), read(place / "towns.csv", place / "pairs.csv")
    assert (given.ids, given.edges.tolist()) == (read_back.ids, read_back.edges.tolist())
    release = released(place, areas=areas, edges=edges)
    assert release.certificate.cost == released(place).certificate.cost
    release.write(place / "of_frames.csv")
    assert shoal.verify(place / "of_frames.csv", areas=areas, edges=edges).holds
    with pytest.raises(InputError, match="type int"):
        released(place, areas=areas, edges=tables[1].with_columns(pl.lit(1).alias("extra")).width)


def test_a_grid_is_explored_with_regions_and_a_series_refuses_them(place: Path) -> None:
    graph = {"publish": {"zip": "regions"}, "areas": place / "towns.csv", "edges": place / "pairs.csv"}
    found = shoal.explore(place / "people.csv", quasi_identifiers=["zip", "sex", "age"], k=[2, 3], **graph)
    assert found.points["publish"].to_list() == ["hierarchy", "hierarchy"]
    assert found.points["loss"].is_not_null().all()
    policy = shoal.Policy(**{**ASKED, **graph})
    with pytest.raises(PolicyError, match="cannot keep regions of a graph"):
        shoal.Series.start(place / "series", policy, mode="increment")


def test_a_bound_for_classes_of_the_hierarchy_alone_says_so(place: Path) -> None:
    said = "the lower bound counts only releases that do so"
    assert not any(said in note for note in released(place).audit.notes)
    assert any(said in note for note in released(place, global_recoding=True).audit.notes)
