"""``shoal regions``: what it prints, what it writes, how it refuses."""

import csv
import importlib.util
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.judge.file import seal
from shoal.judge.tables.large import hash_of
from tests import commands
from tests.commands import Done
from tests.data import real
from tests.kept import forge, holding, verify
from tests.regions.test_geography import grid


def run(*arguments: object) -> Done:
    return commands.run("regions", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A strip of eight squares in two states, one island of weight 1 and one of weight 9; ids with leading zeros."""
    place = tmp_path_factory.mktemp("regions")
    held = grid(8, 1)
    for x in (11, 14):
        ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]
        held["features"].append(
            {"type": "Feature", "properties": {"id": f"{x}"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        )
    (place / "map.geojson").write_text(json.dumps(held))
    rows = [f"0{x},{'west' if x < 3 else 'east'},3,{x + 0.5},0.5" for x in range(8)]
    rows += ["11,east,1,11.5,0.5", "14,east,9,14.5,0.5"]
    (place / "nodes.csv").write_text("\n".join(["id,state,people,x,y", *rows]) + "\n")
    (place / "edges.csv").write_text("\n".join(["u,v", *(f"0{x},0{x + 1}" for x in range(7))]) + "\n")
    return place


@pytest.fixture(scope="module")
def everything(folder, tmp_path_factory):
    """One run that writes all there is to write."""
    out = tmp_path_factory.mktemp("out")
    done = run(
        folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6, "--boundary", "state",
        "--shapes", folder / "map.geojson", "-o", out / "crosswalk.csv", "--dissolved", out / "regions.geojson",
        "--map", out / "map.html", "--png", out / "map.png", "--certificate", out / "certificate.json",
        "--compare-prefix", 1, "--seed", 1, "--json",
    )  # fmt: skip
    return out, done.facts


def test_json_states_the_answer(everything):
    _, said = everything
    assert said["areas"] == 10
    assert said["regions"] == said["regions_at_most"] == 4  # one in the west, two in the east, one island
    assert said["largest"] == said["cost"] == 9
    assert said["smallest"] >= 6
    assert said["left_out"] == ["11"]
    assert said["light_components"] == [{"areas": ["11"], "weight": 1, "outcome": "left out"}]
    assert set(said["seconds"]) == {"read", "solve", "write"}
    assert said["certificate"]["lower_bound"] == 9


def test_crosswalk_keeps_ids_and_the_boundary(everything):
    out, _ = everything
    with open(out / "crosswalk.csv", encoding="utf-8") as file:
        rows = {row["area"]: row for row in csv.DictReader(file)}
    assert sorted(rows) == [*(f"0{x}" for x in range(8)), "11", "14"]
    plain = ["area", "region", "region_weight", "region_areas"]
    measured = ["diameter", "polsby_popper", "reock", "center_x", "center_y"]
    held = [*plain, *(measured if importlib.util.find_spec("shapely") else []), "weighted_x", "weighted_y"]
    assert list(rows["00"]) == held
    assert [rows["00"][name] for name in plain] == ["00", "00+2", "9", "3"]
    drawn = json.loads((out / "regions.geojson").read_text())["features"]
    own = {f["properties"]["region"]: f["properties"] for f in drawn}
    for row in rows.values():  # the same figures as at the outlines, none for what is left out
        said = [None if row["region"] == "*" else own[row["region"]][name] for name in held[4:]]
        assert [float(row[name]) if row[name] else None for name in held[4:]] == pytest.approx(said)
    assert rows["02"]["region"] == "00+2" != rows["03"]["region"]
    assert rows["11"]["region"] == "*"
    assert [rows["14"][name] for name in plain] == ["14", "14", "9", "1"]


@pytest.mark.skipif(not importlib.util.find_spec("shapely"), reason="measured with the extra geo")
def test_an_outline_of_many_corners_is_measured_all_the_same():
    from shoal.engines.shapes import measures

    turn = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    made = measures([[np.column_stack([np.cos(turn), np.sin(turn)])]], degrees=False)
    assert (made["diameter"], made["reock"], made["polsby_popper"]) == pytest.approx((2, 1, 1), rel=1e-5)


@pytest.mark.parametrize(("name", "value"), [("reock", 1.5), ("diameter", -1.0), ("weighted_x", 7.0)])
def test_measures_that_cannot_be_are_found(everything, name, value, tmp_path):
    out, _ = everything
    held = pl.read_csv(out / "crosswalk.csv", infer_schema=False)
    if name not in held.columns:
        pytest.skip("measured with the extra geo")
    bent = pl.when(pl.col("area") == "00").then(pl.lit(str(value))).otherwise(pl.col(name)).alias(name)
    held.with_columns(bent).write_csv(tmp_path / "bent.csv")
    found = shoal.verify(tmp_path / "bent.csv", out / "certificate.json").findings
    assert not next(f for f in found if f.check == "measures").holds


def test_dissolved_outlines_are_clean(everything):
    out, _ = everything
    made = json.loads((out / "regions.geojson").read_text())["features"]
    west = next(f for f in made if f["properties"]["region"] == "00+2")
    own = west["properties"]
    assert {name: own[name] for name in ("region", "people", "areas", "members")} == {
        "region": "00+2", "people": 9, "areas": 3, "members": ["00", "01", "02"],
    }  # fmt: skip
    if importlib.util.find_spec("shapely"):  # three squares of a degree at the equator, in a row
        assert own["diameter"] == pytest.approx(111.195 * 10**0.5, rel=1e-3)
        assert own["polsby_popper"] == pytest.approx(4 * np.pi * 3 / 64, rel=1e-3)
        assert own["reock"] == pytest.approx(3 / (np.pi * 2.5), rel=1e-3)
        assert (own["center_x"], own["center_y"]) == pytest.approx((1.5, 0.5))
    [[ring]] = west["geometry"]["coordinates"]
    assert ring[0] == ring[-1]
    assert {tuple(p) for p in ring} == {(x, y) for x in range(4) for y in (0, 1)}  # no inner border: 8 points around
    assert len(ring) == 9


def test_certificate_and_maps_are_written(everything):
    out, said = everything
    record = json.loads((out / "certificate.json").read_text())
    assert (record["kind"], record["certificate"]["cost"]) == ("regions", said["cost"])
    assert said["certificate_file"] == str(out / "certificate.json")
    assert (out / "map.png").read_bytes().startswith(b"\x89PNG")
    assert "00+2" in (out / "map.html").read_text()
    said = (out / "map.html").read_text()
    assert "areas by weight" not in said, "the crosswalk tells the weight of no area"
    assert "cannot exist" not in said, "bounds follow from weights that the crosswalk doesn't tell"


def test_comparison_with_truncation(everything):
    _, said = everything
    prefix, tree, ours = said["comparison"]
    assert [row["groups"] for row in said["comparison"]] == ["first 1 characters", "tree", "auto"]
    assert prefix == {
        "groups": "first 1 characters", "number": 2, "largest": 24, "smallest": 10, "below_k": 0, "areas_below_k": 0,
        "not_connected": 1, "areas_changed": 0, "areas_left_out": 0,
    }  # fmt: skip
    assert ours["number"] == 4
    assert ours["not_connected"] == tree["not_connected"] == 0
    assert ours["areas_left_out"] == 1


def test_areas_that_changed_group(tmp_path):
    """Four areas in a row, prefixes a b b b: one region of all changes one area."""
    (tmp_path / "n.csv").write_text("id,w\na1,1\nb1,1\nb2,1\nb3,1\n")
    (tmp_path / "e.csv").write_text("u,v\na1,b1\nb1,b2\nb2,b3\n")
    done = run(tmp_path / "n.csv", tmp_path / "e.csv", "--weight", "w", "--k", 4, "--compare-prefix", 1, "--json")
    rows = json.loads(done.stdout)["comparison"]
    assert [row["areas_changed"] for row in rows] == [0, 1, 1]
    assert [row["below_k"] for row in rows] == [2, 0, 0]
    assert rows[0]["areas_below_k"] == 4


def test_islands_join_the_nearest(folder):
    done = run(
        folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6, "--islands", "join",
        "--coordinates", "projected", "--seed", 1, "--json",
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["left_out"] == []
    assert said["joined"] == [["11", "14"]]
    assert said["light_components"] == [{"areas": ["11"], "weight": 1, "outcome": "joined"}]


def test_the_screen_reports_islands_and_the_table(folder):
    done = run(folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6, "--compare-prefix", 1).ok()
    assert "11: 1, left out" in done.stdout
    assert "--islands join" in done.stdout
    assert "areas changed" in done.stdout
    assert "5 regions of at least 6 people" in done.stdout
    assert "(--islands join makes each a neighbor of the nearest)" in done.stdout


def test_the_screen_says_what_joining_islands_needs_and_names_every_threshold(folder, tmp_path):
    table = pl.read_csv(folder / "nodes.csv", infer_schema=False)
    table.drop("x", "y").with_columns(pl.lit(2).alias("beds")).write_csv(tmp_path / "nodes.csv")
    asked = ["--weight", "people", "--k", 6, "--weight", "beds", "--k", 4]
    done = run(tmp_path / "nodes.csv", folder / "edges.csv", *asked).ok()
    assert "of at least 6 people and 4 beds (auto)" in done.stdout
    assert "of the nearest, once columns of longitude and latitude, or --shapes, say where areas lie)" in done.stdout


def test_a_table_whose_ids_have_spaces_finds_its_polygons_and_is_told_which_property_names_them(folder, tmp_path):
    (tmp_path / "areas.csv").write_text("zip,people\n" + "".join(f"0{x} ,3\n" for x in range(8)))
    held = json.loads((folder / "map.geojson").read_text())
    held["features"] = held["features"][:8]
    for feature in held["features"]:
        feature["properties"] = {"state": "09", "zcta": feature["properties"]["id"]}
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    asked = [tmp_path / "areas.csv", "--shapes", tmp_path / "map.geojson", "--weight", "people", "--k", 6, "--seed", 1]
    assert "name the one that does with --shape-id zcta" in run(*asked).stderr
    assert "(say which is with --shape-id NAME)" in run(*asked, "--id", "zip").stderr
    out = tmp_path / "c.csv"
    assert run(*asked, "--shape-id", "zcta", "-o", out).returncode == 0
    assert pl.read_csv(out, infer_schema=False)["area"].to_list() == [f"0{x}" for x in range(8)]
    table = pl.read_csv(tmp_path / "areas.csv", infer_schema=False)
    pairs = pl.DataFrame([(f"0{x}", f"0{x + 1}") for x in range(7)], schema=["u", "v"], orient="row")
    assert shoal.verify(out, tmp_path / "c.certificate.json", [tmp_path / "areas.csv", tmp_path / "map.geojson"]).holds
    assert shoal.verify(out, tmp_path / "c.certificate.json", [table, pairs]).holds


def test_polygons_alone_are_no_other_centers(folder, tmp_path):
    """The center of a region's weight is that of its areas' columns x and y, which the polygons do not have."""
    asked = [folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6, "--seed", 1, "--shapes"]
    asked += [folder / "map.geojson", "-o", tmp_path / "c.csv", "--dissolved", tmp_path / "r.geojson"]
    assert run(*asked).returncode == 0
    whole = {f["properties"]["id"]: f for f in json.loads((folder / "map.geojson").read_text())["features"]}
    for row in csv.DictReader((folder / "nodes.csv").read_text().splitlines()):
        if row["id"] in whole:
            whole[row["id"]]["properties"]["people"] = int(row["people"])
    held = {"type": "FeatureCollection", "features": list(whole.values())}
    (tmp_path / "people.geojson").write_text(json.dumps(held))
    proof = tmp_path / "c.certificate.json"
    alone = shoal.verify(tmp_path / "r.geojson", proof, tmp_path / "people.geojson")
    beside = shoal.verify(tmp_path / "r.geojson", proof, [folder / "nodes.csv", tmp_path / "people.geojson"])
    how = [{f.check: f.how for f in found.findings} for found in (alone, beside)]
    assert alone.holds
    assert beside.holds
    assert how[0]["weighted center"] == "stated"
    assert how[1]["weighted center"] == "recomputed"


def test_every_level_has_its_outlines_and_its_map(folder, tmp_path):
    asked = [
        folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6, "--levels", 12, "--seed", 1,
        "--shapes", folder / "map.geojson", "-o", tmp_path / "crosswalk.csv", "--dissolved", tmp_path / "r.geojson",
        "--map", tmp_path / "map.html", "--json",
    ]  # fmt: skip
    assert run(*asked).returncode == 0
    table = pl.read_csv(tmp_path / "crosswalk.csv", infer_schema=False)
    for level, ending in (("", ""), ("2", ".level2")):
        drawn = json.loads((tmp_path / f"r{ending}.geojson").read_text())["features"]
        named = {f["properties"]["region"]: f["properties"] for f in drawn}
        held = (
            table.filter(pl.col(f"region{level}") != "*")
            .group_by(f"region{level}")
            .agg("area", f"region{level}_weight")
        )
        assert set(named) == set(held[f"region{level}"])
        for name, members, weights in held.iter_rows():
            assert sorted(named[name]["members"]) == sorted(members)
            assert {str(named[name]["people"])} == set(weights)
        assert f"of at least {12 if level else 6}" in (tmp_path / f"map{ending}.html").read_text()
    (tmp_path / "map.html").unlink(), (tmp_path / "r.geojson").unlink(), (tmp_path / "crosswalk.csv").unlink()
    (tmp_path / "crosswalk.certificate.json").unlink()
    again = run(*asked)
    assert again.returncode == 4
    assert "level2" in json.loads(again.stdout)["error"]["message"]


def test_pairs_are_checked_with_polygons_and_polygons_with_pairs(folder, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text((folder / "edges.csv").read_text().replace("u,v", "one,other"))
    nodes, drawn, out = folder / "nodes.csv", folder / "map.geojson", tmp_path / "crosswalk.csv"
    columns, borders = ("--source", "one", "--target", "other"), ("--shapes", drawn, "--tolerance", 0.001)
    for made, checked in (((pairs, *columns), drawn), (borders, pairs)):
        done = run(nodes, *made, "--weight", "people", "--k", 6, "--seed", 1, "-o", out, "--force")
        assert done.returncode == 0, done.stderr
        done = commands.run("verify", out, "--original", nodes, "--original", checked)
        assert "everything checked holds" in done.stdout, done.stdout + done.stderr


def test_polygons_alone_and_several_thresholds(folder):
    done = run(folder / "map.geojson", "--weight", "population", "--weight", "population", "--k", 9, "--k", 4, "--json")
    assert done.returncode == 2
    assert "area '11' is empty; write 0" in json.loads(done.stdout)["error"]["message"]
    nodes = folder / "nodes.csv"
    several = ("--weight", "people", "--k", 3, "--weight", "people", "--k", 6)
    done = run(nodes, "--shapes", folder / "map.geojson", *several, "--json")
    assert json.loads(done.stdout)["regions"] == 5


def test_rhode_island():
    place = real("zip_graph_ri")
    done = run(
        place / "nodes.csv", place / "edges.csv", "--weight", "population", "--k", 20000, "--objective", "count",
        "--seed", 1, "--json",
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["regions"] == said["regions_at_most"]
    assert sorted(c["areas"] for c in said["light_components"]) == [["02807"], ["02835"], ["02872"]]


def test_options_are_obeyed_and_columns_summed(folder, tmp_path):
    nodes = (folder / "nodes.csv").read_text().splitlines()
    extra = [
        "cases,rate,town,closed",
        *(f"{i},{i / 2},{'t' if i in (2, 3) else ''},{'yes' if i == 0 else ''}" for i in range(10)),
    ]
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(f"{a},{b}" for a, b in zip(nodes, extra, strict=True)) + "\n")
    out = tmp_path / "crosswalk.csv"
    done = run(
        path, folder / "edges.csv", "--weight", "people", "--k", 6, "--weight", "cases", "--k", 1, "--at-most",
        "areas=3", "--at-most", "people=9", "--fixed", "town", "--exclude", "closed", "--soft-boundary", "state",
        "--sum", "cases", "--mean", "rate", "-o", out, "--seed", 1, "--json",
    )  # fmt: skip
    said = done.facts
    rows = {row["area"]: row for row in csv.DictReader(out.open(encoding="utf-8"))}
    assert rows["00"]["region"] == rows["11"]["region"] == "*"
    assert said["certificate"]["details"]["excluded"] == 1
    assert rows["02"]["region"] == rows["03"]["region"]
    held = {}
    for area, row in rows.items():
        if row["region"] != "*":
            held.setdefault(row["region"], []).append(area)
    numbers = [f"0{x}" for x in range(8)] + ["11", "14"]
    for areas in held.values():
        row = rows[areas[0]]
        assert len(areas) == int(row["region_areas"]) <= 3
        assert 6 <= int(row["region_weight"]) <= 9
        cases = [numbers.index(a) for a in areas]
        assert float(row["sum_cases"]) == sum(cases) == int(row["region_cases"]) >= 1
        assert row["bound_by"] == ("people" if int(row["region_weight"]) / 6 <= sum(cases) else "cases")
    assert rows["14"]["mean_rate"] == "4.5"
    sources = ("--original", path, "--original", folder / "edges.csv", "--json")
    whole = commands.run("verify", out, said["certificate_file"], *sources).ok()
    assert "sum of cases" in whole.stdout
    for column, other in (("sum_cases", "77.0"), ("mean_rate", "77.0"), ("mean_rate", "")):
        bent = {"text": out.read_text(), "facts": json.loads(Path(said["certificate_file"]).read_text())}
        lines = [dict(row) for row in rows.values()]
        for row in lines:
            if row["region"] == rows["14"]["region"]:
                row[column] = other
        with (tmp_path / "bent.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
        changed = tmp_path / "bent.csv"
        bent["facts"]["release"] |= {"sha256": hash_of(changed), "bytes": changed.stat().st_size}
        bent["facts"]["seal"] = seal(bent["facts"])
        (tmp_path / "bent.json").write_text(json.dumps(bent["facts"]))
        done = commands.run("verify", tmp_path / "bent.csv", tmp_path / "bent.json", *sources)
        failed = [f["check"] for f in json.loads(done.stdout)["findings"] if not f["holds"]]
        assert failed == [column.replace("_", " of ", 1)], failed
    tree = run(path, folder / "edges.csv", "--weight", "people", "--k", 6, "--at-most", "areas=3", "--method", "tree")
    assert tree.returncode == 2
    assert "keeps no maximum" in tree.stderr


@pytest.mark.parametrize("ending", ["gpkg", "shp", "kml"])
def test_outlines_in_the_format_of_the_ending(folder, tmp_path, ending):
    pyogrio = pytest.importorskip("pyogrio")
    path = tmp_path / f"regions.{ending}"
    common = (folder / "nodes.csv", folder / "edges.csv", "--weight", "people", "--k", 6)
    common += ("--shapes", folder / "map.geojson")
    run(*common, "--dissolved", path, "--seed", 1).ok()
    meta, _, geometry, _ = pyogrio.raw.read(path)
    assert len(geometry) == 5
    assert meta["crs"] == "EPSG:4326"
    assert {"Name" if ending == "kml" else "region"} <= set(meta["fields"])
    run(*common, "--dissolved", tmp_path / "regions.xyz").refused(2, ".geojson, .json, .gpkg, .shp or .kml")


def test_ids_without_a_partner_are_refused_until_left_out(folder, tmp_path):
    held = json.loads((folder / "map.geojson").read_text())
    held["features"] = held["features"][1:]
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    common = (folder / "nodes.csv", "--weight", "people", "--k", 6, "--shapes", tmp_path / "map.geojson", "--seed", 1)
    done = run(*common).refused(2, "1 area without a polygon: 00")
    done = run(*common, "--unmatched", "leave-out", "--json")
    said = json.loads(done.stdout)
    assert "00" in said["left_out"]
    assert said["drawing"]["areas_without_polygon"] == {"count": 1, "first": ["00"]}
    assert said["drawing"]["isolated"] == {"count": 2, "first": ["11", "14"]}


@pytest.fixture(scope="module")
def towns(folder):
    """The strip with an age for every area: young, old, young in turns of two."""
    rows = [f"0{x},3,{20 if x // 2 % 2 else 60},{x + 0.5},0.5" for x in range(8)]
    path = folder / "towns.csv"
    path.write_text("\n".join(["id,people,age,x,y", *rows]) + "\n")
    return path


def test_a_number_of_regions_of_like_areas_that_are_not_wide(folder, towns, tmp_path):
    common = (towns, folder / "edges.csv", "--weight", "people", "--k", 3, "--seed", 1, "--json")
    alike = run(*common, "--similar", "age", "--regions", 4, "-o", tmp_path / "a.csv")
    said = alike.facts
    assert said["regions"] == 4
    with (tmp_path / "a.csv").open() as file:
        assert [row["region"] for row in csv.DictReader(file)] == [f"0{x // 2 * 2}+1" for x in range(8)]
    check = ["verify", tmp_path / "a.csv", said["certificate_file"], "--record", said["record_file"], "--json"]
    done = commands.run(*check, "--original", towns, "--original", folder / "edges.csv").ok()
    assert "0.0000 of the variance is inside regions" in done.stdout
    run(*common, "--max-diameter", 1.2, "--coordinates", "projected", "-o", tmp_path / "b.csv").ok()
    assert max(int(row["region_areas"]) for row in csv.DictReader((tmp_path / "b.csv").open())) <= 2
    run(*common, "--max-diameter", 1.2, "--regions", 2).refused(2, "regions can't be combined with")
    run(*common, "--regions", 9).refused(3, "at most 8 regions reach the thresholds")


@pytest.mark.parametrize("people", [[0, 1, 0, 0, 1, 0, 0, 1, 0], [0, 50, 3, 200, 40, 0, 7, 90, 60]])
def test_the_variance_is_counted_again_where_areas_weigh_nothing(tmp_path, people):
    """An area without people counts a little, and more than a little where it is far from all others."""
    areas = [f"a{i},{n},{a},{b}" for i, (n, a, b) in enumerate(zip(people, AGES, RENTS, strict=True))]
    (tmp_path / "areas.csv").write_text("\n".join(["id,people,age,rent", *areas]))
    (tmp_path / "edges.csv").write_text("\n".join(["u,v", *(f"a{i},a{i + 1}" for i in range(8))]))
    k, out = max(max(people) // 4, 1), tmp_path / "c.csv"
    files = (tmp_path / "areas.csv", tmp_path / "edges.csv")
    run(*files, "--weight", "people", "--k", k, "--similar", "age,rent", "--seed", 1, "-o", out, "--json").ok()
    holding(shoal.verify(out, original=[*files]))
    mass = np.maximum(people, max(1.0, np.mean(people)) * 1e-6)
    scaled = []
    for column in (AGES, RENTS):
        middle = sum(m * c for m, c in zip(mass, column, strict=True)) / sum(mass)
        about = sum(m * (c - middle) ** 2 for m, c in zip(mass, column, strict=True)) / sum(mass)
        scaled.append([c / about**0.5 for c in column])
    label = [row["region"] for row in csv.DictReader(out.open())]
    inside = 0.0
    for region in set(label):
        here = [i for i, r in enumerate(label) if r == region]
        for column in scaled:
            middle = sum(mass[i] * column[i] for i in here) / sum(mass[i] for i in here)
            inside += sum(mass[i] * (column[i] - middle) ** 2 for i in here)
    record = tmp_path / "c.record.json"
    share = json.loads(record.read_text())["facts"]["variance_inside"]
    assert share == pytest.approx(inside / (2 * sum(mass)), rel=1e-6)
    forge(record, lambda held: held["facts"].update(variance_inside=share + 0.01))
    wrong = [f for f in verify(out, record, [*files]).findings if not f.holds]
    assert any("another share" in f.found for f in wrong), wrong


AGES, RENTS = [9e5, 31, 40, 42, 35, 70, 22, 28, 50], [5, 7, 1, 3, 9, 4e6, 8, 2, 6]


def wards(folder, beds):
    """Four areas in a row, the first two fixed together with 6 beds, the others with as many as are said."""
    (folder / "n.csv").write_text(f"id,people,beds,fix,one\na,5,3,x,y\nb,5,3,x,y\nc,5,{beds},,\nd,5,{beds},,\n")
    (folder / "e.csv").write_text("u,v\na,b\nb,c\nc,d\n")
    return folder / "n.csv", folder / "e.csv", "--weight", "people", "--fixed", "fix", "--seed", 1


def test_the_judge_keeps_maxima_beside_areas_fixed_together(tmp_path):
    """Areas fixed together may be above a maximum by themselves; other areas may not."""
    run(*wards(tmp_path, 1), "--k", 10, "--at-most", "beds=4", "-o", tmp_path / "c.csv").ok()
    check = ["verify", tmp_path / "c.csv", tmp_path / "c.certificate.json"]
    for beds, status in ((1, 0), (3, 1)):
        areas, pairs, *_ = wards(tmp_path, beds)
        said = commands.run(*check, "--original", areas, "--original", pairs)
        assert said.returncode == status, said.stdout
    assert "1 region of several areas is above 4" in said.stdout


def test_areas_fixed_together_and_apart_are_a_contradiction(tmp_path):
    done = run(*wards(tmp_path, 1), "--k", 5, "--apart", "one", "-o", tmp_path / "c.csv")
    assert done.returncode == 2, done.stdout
    assert "fixed together" in done.stderr
    assert "apart" in done.stderr


def test_the_weight_that_binds_is_judged(tmp_path):
    """The column bound_by names, of several weights, the one whose sum is nearest its threshold."""
    import polars as pl

    from shoal.judge.crosswalk import StatedCrosswalk
    from shoal.judge.places.areas import judge_regions

    run(*wards(tmp_path, 1), "--weight", "beds", "--k", 5, "--k", 1, "-o", tmp_path / "c.csv").ok()
    record = json.loads((tmp_path / "c.record.json").read_text())
    said = record["certificate"]
    known = StatedCrosswalk(record["parameters"], record["facts"], said["cost"], said["lower_bound"], said["unit"])
    frame = pl.read_csv(tmp_path / "c.csv", infer_schema=False)
    assert set(frame["bound_by"]) == {"people"}
    said = {f.check: f.found for f in judge_regions(frame, known, "csv")}
    assert said["levels"] == "1 level of regions, 1 asked for"
    for bent in ("people", "beds"):
        other = frame.with_columns(bound_by=pl.Series([bent, *frame["bound_by"][1:]]))
        wrong = [f.check for f in judge_regions(other, known, "csv") if not f.holds]
        assert wrong == (["bound_by"] if bent == "beds" else [])


def _square(x, **properties):
    ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


_FOUR = [_square(x, id=f"a{x}", people=5) for x in range(4)]
_POINT = {**_FOUR[0], "properties": {"id": "p", "people": 5}, "geometry": {"type": "Point", "coordinates": [0.5, 0.5]}}
_BOW = _square(4, id="b", people=5)
_BOW["geometry"]["coordinates"] = [[[4, 0], [5, 1], [5, 0], [4, 1], [4, 0]]]


def _named(code):
    return {"crs": {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{code}"}}}


@pytest.mark.parametrize(
    ("features", "more", "status", "says"),
    [
        ([*_FOUR, _POINT], {}, 0, "1 feature of areas.geojson is no polygon"),
        ([_POINT], {}, 2, "areas.geojson holds no polygons; areas need them"),
        (
            [_square(x, people=5) for x in range(4)],
            {},
            2,
            "does not tell them apart: 3 repeat another's; name the one that does with --id NAME",
        ),
        (
            [_square(x, state="09", zip=f"0{x}", people=5) for x in range(4)],
            {},
            2,
            "3 repeat another's; name the one that does with --id zip",
        ),
        ([*_FOUR, _square(4, id="a0", people=5)], {}, 0, "with another's id: pieces of that area\n"),
        ([*_FOUR, _square(4, id="a0", people=7)], {}, 0, "of people, where pieces differ, the first's value is taken"),
        ([*_FOUR, _square(3, id="b", people=5)], {}, 0, "1 pair overlapping"),
        ([*_FOUR, _square(3.5, id="b", people=5)], {}, 0, "1 pair overlapping"),
        (_FOUR, {}, 0, "0 pairs overlapping"),
        ([*_FOUR, _BOW], {}, 0, "1 area had rings that cross themselves, repaired"),
        (_FOUR, _named(999999), 2, "which is not known"),
        (_FOUR, _named(5070), 0, "NAD83 / Conus Albers (EPSG:5070); drawn in longitude and latitude"),
        ([*_FOUR[:3], _square(3, id="a3", people="many")], {}, 2, "column 'people' of area 'a3' is not a whole number"),
        ([*_FOUR[:3], _square(3, id="a3", people="1.5")], {}, 2, "or write it without marks between thousands"),
        ([*_FOUR[:3], _square(3, id="a3", people=-4)], {}, 2, "column 'people' of area 'a3' is below 0"),
        ([], {}, 2, "areas.geojson holds no features"),
        ([_FOUR[0], _POINT], {}, 3, "--islands join; 1 feature of areas.geojson is no polygon"),
    ],
)
def test_a_wrong_file_gets_one_clear_sentence(tmp_path, features, more, status, says):
    if status == 0:
        pytest.importorskip("shapely")
    if more:
        pytest.importorskip("pyproj")
    file = tmp_path / "areas.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    drawn = ("--dissolved", tmp_path / "regions.geojson", "-o", tmp_path / "crosswalk.csv") if status == 0 else ()
    done = run(file, "--weight", "people", "--k", 10, "--seed", 1, "--effort", "fast", *drawn)
    assert done.returncode == status, done.stderr
    assert says in (done.stdout if status == 0 else done.stderr)
    assert status == 0 or done.stderr.count("\n") <= 1


def test_a_polygon_of_very_many_corners(tmp_path):
    pytest.importorskip("shapely")
    turn = np.linspace(0, 2 * np.pi, 30_001)
    ring = np.column_stack([10 + np.cos(turn), np.sin(turn)]).round(6).tolist()
    large = {"type": "Feature", "properties": {"id": "m", "people": 10}}
    large["geometry"] = {"type": "Polygon", "coordinates": [[*ring[:-1], ring[0]]]}
    file = tmp_path / "areas.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [*_FOUR, large]}))
    done = run(file, "--weight", "people", "--k", 10, "--seed", 1, "--effort", "fast", "--json").ok()
    assert json.loads(done.stdout)["regions"] == 3


def test_the_judge_reads_polygons_as_they_were_read(tmp_path):
    """Two banks of a river that a tolerance crosses, in a plane whose numbers could be degrees."""
    held = grid(3, 2)
    for feature in held["features"]:
        own = feature["properties"].pop("id")
        feature["properties"] |= {"note": "none", "code": own}
        for point in feature["geometry"]["coordinates"][0]:
            point[1] += 0.2 * (own[0] == "1")
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    (tmp_path / "nodes.csv").write_text("id,people\n" + "".join(f"{y}{x},1\n" for y in (0, 1) for x in range(3)))
    files = (tmp_path / "nodes.csv", "--shapes", tmp_path / "map.geojson", "--shape-id", "code")
    asked = ("--weight", "people", "--k", 6, "--coordinates", "projected", "-o", tmp_path / "out.csv", "--json")
    done = run(*files, *asked, "--tolerance", 0.3)
    assert json.loads(done.stdout)["regions"] == 1, done.stderr
    sources = ("--original", tmp_path / "nodes.csv", "--original", tmp_path / "map.geojson")
    done = commands.run("verify", tmp_path / "out.csv", tmp_path / "out.certificate.json", *sources).ok()
    assert "every region is connected" in done.stdout
