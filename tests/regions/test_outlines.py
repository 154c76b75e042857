"""Outlines of regions: whole, certified with the crosswalk, read back and found out where they were changed."""

import json
import shutil
import tracemalloc

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import geography
from shoal.engines.shapes import measures
from shoal.errors import PolicyError
from shoal.judge.places import outline_measures as judged
from shoal.judge.tables.large import hash_of
from shoal.report.outlines import dissolve
from tests import commands
from tests.kept import resealed, verify
from tests.regions.test_geography import grid

LEVELS = ("o.geojson", "o.level2.geojson")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Six squares by two, in regions of two and of four levels of weight; outlines of both levels."""
    place = tmp_path_factory.mktemp("outlines")
    held = grid(6, 2)
    for feature in held["features"]:
        feature["properties"]["people"] = 2
    (place / "map.geojson").write_text(json.dumps(held))
    commands.run(
        "regions", place / "map.geojson", "--weight", "people", "--k", 4, "--levels", 8, "--dissolved",
        place / "o.geojson", "--seed", 1, "--json",
    ).ok()  # fmt: skip
    return place


def failed(place, name, *sources):
    """Checks of an outline that do not hold."""
    given = [x for source in sources for x in ("--original", source)]
    done = commands.run(
        "verify", place / name, place / "o.certificate.json", "--record", place / "o.record.json", *given, "--json"
    )
    return [f["check"] for f in json.loads(done.stdout)["findings"] if not f["holds"]]


@pytest.mark.parametrize("name", LEVELS)
def test_outlines_are_certified_and_read_back(made, name):
    assert failed(made, name) == []
    assert failed(made, name, made / "map.geojson") == []


def _swapped_members(rows):
    a, b = rows[0]["properties"], rows[1]["properties"]
    a["members"][0], b["members"][0] = b["members"][0], a["members"][0]


def _heavier(rows):
    rows[0]["properties"]["people"] += 2


def _light(rows):
    rows[0]["properties"]["people"] = 2


def _one_less(rows):
    del rows[0]


def _twice(rows):
    rows[1]["properties"]["members"][0] = rows[0]["properties"]["members"][0]


def _elsewhere(rows):
    rows[0]["geometry"], rows[1]["geometry"] = rows[1]["geometry"], rows[0]["geometry"]


def _over_another(rows):
    rows[0]["geometry"]["coordinates"] += rows[1]["geometry"]["coordinates"]


def _stated(name, by):
    def change(rows):
        rows[0]["properties"][name] += by

    return change


CHANGES = [
    (_swapped_members, [], ["connected", "laid", "weighted center"]),
    (_heavier, ["groups"], ["groups", "weight people"]),
    (_light, ["k", "groups"], ["k", "groups", "weight people"]),
    (_one_less, ["outlines"], ["outlines"]),
    (_twice, ["members"], ["members"]),
    (_elsewhere, ["measures"], ["laid", "measures"]),
    (_over_another, ["measures"], ["laid", "measures"]),
    *((_stated(name, by), ["measures"], ["measures"]) for name, by in (
        ("diameter", 0.01), ("reock", -0.01), ("polsby_popper", -1e-5), ("center_x", 1e-3))),
    (_stated("weighted_y", 1e-3), [], ["weighted center"]),
]  # fmt: skip


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize(("change", "alone", "beside"), CHANGES)
def test_a_changed_outline_is_found_out(made, tmp_path, name, change, alone, beside):
    """Also where whoever changed it wrote its hash into the certificate."""
    held = json.loads((made / name).read_text())
    change(held["features"])
    (tmp_path / name).write_text(json.dumps(held))
    of_it = {"sha256": hash_of(tmp_path / name), "bytes": (tmp_path / name).stat().st_size}
    for paper in ("o.certificate.json", "o.record.json"):
        shutil.copy(made / paper, tmp_path / paper)
        also = json.loads((tmp_path / paper).read_text())["also"]
        resealed(tmp_path / paper, also=[about | (of_it if about["file"] == name else {}) for about in also])
    assert failed(tmp_path, name) == alone
    assert set(failed(tmp_path, name, made / "map.geojson")) <= set(beside)
    assert failed(tmp_path, name, made / "map.geojson")


@pytest.mark.parametrize("name", ["diameter", "polsby_popper", "reock", "center_y", "weighted_x"])
def test_a_changed_measure_of_the_crosswalk_is_found_out(made, name):
    areas = geography.read(made / "map.geojson")
    out = shoal.release(shoal.regions.merge(areas.edges, areas.whole("people"), 4, seed=1), areas, weight="people")
    checks = {f.check: f.how for f in out.findings_in(None, out.content, "parquet") if f.holds}
    assert checks["measures"] == checks["weighted center"] == "recomputed"
    changed = out.content.with_columns(pl.col(name) * 0.999)
    wrong = [f.check for f in out.findings_in(None, changed, "parquet") if not f.holds]
    assert wrong == ["weighted center" if name == "weighted_x" else "measures"]


@pytest.mark.parametrize("name", ["area", "region", "members", "center_x"])
def test_columns_may_be_called_as_what_outlines_say(tmp_path, name):
    held = grid(4, 1)
    for feature in held["features"]:
        feature["properties"][name] = 2
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    areas = geography.read(tmp_path / "map.geojson")
    found = shoal.regions.merge(areas.edges, areas.whole(name), 4, boundary=areas.column(name), seed=1)
    out = shoal.release(found, areas, weight=name, boundary=name)
    out.write(tmp_path / "c.csv", also={"outlines": tmp_path / "o.geojson"})
    for file in ("c.csv", "o.geojson"):
        assert verify(tmp_path / file, tmp_path / "c.certificate.json", tmp_path / "map.geojson").holds


def test_the_judge_measures_by_formulas_of_its_own():
    """A square, and crooked rings with holes in any direction, on both sides of 180 degrees too."""
    pytest.importorskip("shapely")
    square = [[np.array([[0.0, 0], [0, 2], [2, 2], [2, 0]])]]
    own = judged.measured([square], False).figures
    wanted = {"area": 4, "perimeter": 8, "diameter": 8**0.5, "polsby_popper": np.pi / 4, "reock": 2 / np.pi}
    assert own == pytest.approx({**wanted, "center_x": 1, "center_y": 1}, rel=2e-5)
    rng = np.random.default_rng(5)
    for n in (3, 4, 9, 60):
        turn = np.sort(rng.uniform(0, 2 * np.pi, n))
        turn[:3] = (0.1, 2.2, 4.3)
        ring = np.column_stack([np.cos(np.sort(turn)), np.sin(np.sort(turn))]) * rng.uniform(1, 3, (n, 1)) + [179, 60]
        ring[:, 0] -= np.where(ring[:, 0] > 180, 360, 0)
        shape = [[ring[:: rng.choice([-1, 1])], np.array([[178.9, 60], [179, 60.1], [179.1, 60]])]]
        said = measures(shape, True)
        found = judged.measured([shape], True)
        assert judged.differing(said, found) == []
        assert judged.differing({**said, "area": said["area"] * 1.001}, found) == ["area"]
        assert not judged.crosses_itself(found.a, found.b)
    west, east, next_ = (np.array([[x, 0.0], [x + 2, 0], [x + 2, 2], [x, 2]]) for x in (0, 1, 2))
    shared = np.vstack([next_, [[2, 1]]])  # a corner on the other's side, so that the two sides are not one
    for other, expected in ((east, True), (west / 2, True), (shared, True), (next_, False)):
        found = judged.measured([[[west]], [[other]]], False)
        assert judged.crosses_itself(found.a, found.b) == expected
    beside = next_ + 1e-14 * np.arange(8).reshape(4, 2)
    assert judged.measured([[[west]], [[beside]]], False).figures["perimeter"] == pytest.approx(12)
    assert measures(dissolve([[[west]], [[beside]]]), False)["perimeter"] == pytest.approx(12)


def test_an_area_in_anothers_hole_and_over_its_border_stays_in_the_outline(tmp_path):
    """A town simplified by itself, four of its eight corners where its county has them: it was taken out as a hole."""
    pytest.importorskip("shapely")
    side = [[3, 3], [5, 3], [6, 5], [5, 7], [3, 7], [2, 5], [3, 3]]
    town = [[3, 3], [5, 3], [6.2, 5], [5, 7], [3, 7], [1.9, 5], [3, 3]]
    outer = [[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]
    rings = {"county": [outer, side[::-1]], "town": [town], "east": [[[9, 0], [12, 0], [12, 9], [9, 9], [9, 0]]]}
    held = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"id": name, "people": 1},
                "geometry": {"type": "Polygon", "coordinates": r},
            }
            for name, r in rings.items()
        ],
    }
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    areas = geography.read(tmp_path / "map.geojson", tolerance=0.3, coordinates="projected")
    found = shoal.regions.merge(areas.edges, areas.whole("people"), 3, seed=1)
    out = shoal.release(found, areas, weight="people", geographic=False)
    out.write(None, tmp_path / "c.json", also={"outlines": tmp_path / "o.geojson"})
    [feature] = json.loads((tmp_path / "o.geojson").read_text())["features"]
    assert feature["properties"]["area"] == pytest.approx(12 * 9, rel=0.01)
    assert len(feature["geometry"]["coordinates"]) == len(feature["geometry"]["coordinates"][0]) == 1


def test_the_center_of_the_weight(tmp_path):
    """Two areas of weight 1 and 3 on both sides of 180 degrees."""
    held = grid(2, 1)
    for feature, west, people in zip(held["features"], (179, -180), (1, 3), strict=True):
        feature["geometry"]["coordinates"] = [[[west + x, y] for x, y in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))]]
        feature["properties"]["people"] = people
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    areas = geography.read(tmp_path / "map.geojson")
    found = shoal.regions.merge(areas.edges, areas.whole("people"), 4, seed=1)
    out = shoal.release(found, areas, weight="people")
    out.write(None, tmp_path / "c.json", also={"outlines": tmp_path / "o.geojson"})
    [feature] = json.loads((tmp_path / "o.geojson").read_text())["features"]
    assert (feature["properties"]["weighted_x"], feature["properties"]["weighted_y"]) == pytest.approx((-179.75, 0.5))


def test_what_cannot_be_drawn_leaves_nothing(made, tmp_path, monkeypatch):
    areas = geography.read(made / "map.geojson", coordinates="projected")
    found = shoal.regions.merge(areas.edges, areas.whole("people"), 4, seed=1)
    out = shoal.release(found, areas, weight="people")

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.report.maps.draw_regions", fails)
    with pytest.raises(OSError, match=r"map.html"):
        out.write(
            tmp_path / "c.csv", also={"outlines": tmp_path / "o.shp"},
            drawn=[(tmp_path / "map.html", out.drawing("map"))],
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_shapefile_is_replaced_whole(made, tmp_path):
    """Written over one in degrees, a plane without a system leaves no statement of degrees beside it."""
    pyogrio = pytest.importorskip("pyogrio")
    for coordinates in ("auto", "projected"):
        areas = geography.read(made / "map.geojson", coordinates=coordinates)
        found = shoal.regions.merge(areas.edges, areas.whole("people"), 4, seed=1)
        out = shoal.release(found, areas, weight="people", geographic=coordinates == "auto")
        out.write(tmp_path / "c.csv", also={"outlines": tmp_path / "o.shp"})
        assert (tmp_path / "o.prj").exists() == (coordinates == "auto")
        assert verify(tmp_path / "o.shp", tmp_path / "c.certificate.json", made / "map.geojson").holds
    assert len(pyogrio.raw.read(tmp_path / "o.shp")[2]) == found.regions
    with pytest.raises(PolicyError, match="exists already"):
        out.write(tmp_path / "d.csv", also={"outlines": tmp_path / "o.shp"}, overwrite=False)
    with pytest.raises(PolicyError, match="KML holds longitude and latitude"):
        out.write(tmp_path / "d.csv", also={"outlines": tmp_path / "o.kml"})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "c.certificate.json", "c.csv", "c.record.json", "o.cpg", "o.dbf", "o.shp", "o.shx",
    ]  # fmt: skip


def test_areas_left_out_are_in_no_outline(tmp_path):
    held = grid(3, 1)
    held["features"][2]["geometry"]["coordinates"] = [[[7, 0], [8, 0], [8, 1], [7, 1], [7, 0]]]
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    areas = geography.read(tmp_path / "map.geojson", coordinates="projected")
    found = shoal.regions.merge(areas.edges, np.array([3, 3, 3]), 6, seed=1)
    areas.columns["people"] = [3, 3, 3]
    shoal.release(found, areas, weight="people").write(
        tmp_path / "c.csv", tmp_path / "o.certificate.json", also={"outlines": tmp_path / "o.geojson"}
    )
    assert verify(tmp_path / "o.geojson", tmp_path / "o.certificate.json").holds
    [feature] = json.loads((tmp_path / "o.geojson").read_text())["features"]
    assert feature["properties"]["members"] == ["00", "01"]


def test_sides_are_looked_at_beside_those_that_lie_where_they_do():
    """A polygon of a hundred thousand corners took minutes: each of its sides was held against every other."""
    turn = np.linspace(0, 2 * np.pi, 20_001)
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    looped = ring.copy()
    looped[[9_000, 9_001]] = looped[[9_001, 9_000]]
    for corners, expected in ((ring, False), (looped, True)):
        tracemalloc.start()
        found = judged.crosses_itself(corners[:-1], corners[1:])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == expected
        assert most < 40e6
