"""Neighbors of polygons that were simplified one by one, and the systems their coordinates are in."""

import json
from itertools import pairwise

import numpy as np
import pytest

from shoal.engines import geography as geo
from shoal.engines.adjacency import adjacency, neighbors
from shoal.errors import InputError, PolicyError
from tests.commands import run
from tests.data import real
from tests.regions.test_geography import grid, named, square

shapely = pytest.importorskip("shapely")


def bricks(width, height, seed):
    """Shapes of a wall of bricks whose shared borders wind, their rings of shared points; and who is next to whom."""
    rng = np.random.default_rng(seed)
    lines = {}

    def line(a, b):
        """Points from corner a to corner b, the same both ways."""
        if (a, b) not in lines:
            t = np.linspace(0, 1, 41)[:, None]
            bend = np.cumsum(rng.normal(0, 0.006, (41, 2)), axis=0)
            bend = (bend - t * bend[-1] - (1 - t) * bend[0]) * np.sin(np.pi * t) ** 2
            lines[a, b] = np.array(a) * (1 - t) + np.array(b) * t + bend
            lines[b, a] = lines[a, b][::-1]
        return lines[a, b][:-1]

    shapes, corners = [], {}
    for y in range(height):
        for x in range(width):
            at = 2 * x + y % 2
            around = [(at, y), (at + 1, y), (at + 2, y), (at + 2, y + 1), (at + 1, y + 1), (at, y + 1), (at, y)]
            ring = np.concatenate([line(a, b) for a, b in pairwise(around)])
            for a, b in pairwise(around):
                corners.setdefault(frozenset((a, b)), []).append(len(shapes))
            shapes.append([[np.roll(ring, int(rng.integers(len(ring))), axis=0)]])
    return shapes, {tuple(areas) for areas in corners.values() if len(areas) == 2}


def simplified(shapes, tolerance):
    """Each polygon by itself, as a careless export does."""
    made = []
    for shape in shapes:
        ring = shapely.simplify(shapely.Polygon(shape[0][0]), tolerance).exterior
        made.append([[np.array(ring.coords)[:-1]]])
    return made


def pairs_of(found):
    return {tuple(pair) for pair in found.pairs.tolist()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tolerance", [0.02, 0.04])
def test_polygons_simplified_alone_keep_all_their_neighbors(seed, tolerance):
    shapes, truth = bricks(9, 8, seed)
    drawn = simplified(shapes, tolerance)
    assert len(neighbors(drawn)) < 0.7 * len(truth)  # sides in common are lost
    found = adjacency(drawn, geographic=False)
    assert pairs_of(found) == truth
    assert 0 < found.tolerance <= 4 * tolerance
    assert found.overlaps > 0
    assert found.slivers > 0


def test_degrees_far_north_are_as_wide_as_they_are():
    """The same map in km and in degrees around 60 degrees north, where a degree of longitude is half as long."""
    drawn = simplified(bricks(9, 8, 0)[0], 0.03)
    corners = np.concatenate([ring for shape in drawn for polygon in shape for ring in polygon])
    middle, degree = (corners[:, 1].min() + corners[:, 1].max()) / 2, 2 * np.pi * 6371.0088 / 360

    def north(ring):
        return np.stack([ring[:, 0] / degree / 0.5, 60 + (ring[:, 1] - middle) / degree], axis=1)

    plane = adjacency(drawn, geographic=False)
    globe = adjacency([[[north(ring) for ring in polygon] for polygon in shape] for shape in drawn], geographic=True)
    assert pairs_of(globe) == pairs_of(plane)
    assert globe.tolerance == pytest.approx(plane.tolerance, rel=1e-3)


def test_borders_of_one_set_of_lines_need_no_tolerance():
    shapes, truth = bricks(5, 4, 7)
    found = adjacency(shapes, geographic=False)
    assert pairs_of(found) == truth
    assert found.tolerance == 0
    assert found[2:] == (0, 0, 0, 0, 0, 0.0)


def test_a_river_wider_than_the_tolerance_is_not_crossed():
    shapes, truth = bricks(6, 6, 1)
    east = {i for i in range(36) if i % 6 >= 3}
    apart = [
        [[ring + np.array([1.5, 0.0]) if i in east else ring for ring in shape[0]]] for i, shape in enumerate(shapes)
    ]
    found = adjacency(simplified(apart, 0.02), geographic=False)
    assert found.tolerance < 0.5
    assert pairs_of(found) == {(a, b) for a, b in truth if (a in east) == (b in east)}
    joined = adjacency(simplified(apart, 0.02), geographic=False, tolerance=1.6)
    assert any((a in east) != (b in east) for a, b in pairs_of(joined))


def test_corners_beside_an_empty_place_are_no_borders():
    """Three squares around a missing fourth: those across meet in a point."""
    ring = lambda x, y: [[np.array(square(x, y)[:-1], float)]]  # noqa: E731
    shapes = [ring(0, 0), ring(1, 0), ring(0, 1)]
    assert pairs_of(adjacency(shapes, geographic=False)) == {(0, 1), (0, 2)}
    assert pairs_of(adjacency(shapes, geographic=False, tolerance=0.05)) == {(0, 1), (0, 2)}


def test_sides_that_meet_at_another_area_s_corner():
    """A long side beside two short ones: no side in common, all the same a border."""
    long = [[np.array([[0, 0], [2, 0], [2, 1], [0, 1]], float)]]
    short = [[[np.array(square(x, 1)[:-1], float)]] for x in (0, 1)]
    assert pairs_of(adjacency([long, *short], geographic=False)) == {(0, 1), (0, 2), (1, 2)}


def test_a_town_drawn_over_its_county_is_told_and_moves_no_border():
    county, town = [[np.array(square(0, 0, 10)[:-1], float)]], [[np.array(square(4, 4)[:-1], float)]]
    beside = [[np.array([[11, 0], [20, 0], [20, 10], [11, 10]], float)]]
    found = adjacency([county, town, beside], geographic=False)
    assert found.overlaps == 1
    assert found.tolerance == 0
    assert pairs_of(found) <= {(0, 1)}


def test_holes_and_crossed_rings_are_counted():
    frame = [[np.array(square(0, 0, 3)[:-1], float), np.array(square(1, 1)[:-1], float)]]
    bow = [[np.array([[3, 0], [4, 1], [4, 0], [3, 1]], float)]]
    found = adjacency([frame, bow], geographic=False)
    assert (found.holes, found.repaired) == (1, 1)


def test_many_corners_of_one_area_are_looked_at_once():
    """A circle of ten thousand corners over two squares: what is inside the other is found, and every pair is."""
    turn = np.linspace(0, 2 * np.pi, 10_001)[:-1]
    circle = [[np.column_stack([0.98 + 0.999 * np.cos(turn), 0.5 + 0.999 * np.sin(turn)])]]
    square = lambda x: [[np.array([[x, 0.0], [x + 1, 0], [x + 1, 1], [x, 1]])]]  # noqa: E731
    found = adjacency([square(1.97), square(-1.01), circle], geographic=False)
    assert found.pairs.tolist() == [[0, 2], [1, 2]]
    assert found.overlaps == 2


def around(path, many, low, high):
    """So many areas all around the globe, from one latitude to another, read from a file."""
    held, width = grid(many, 1), 360 // many
    for i, feature in enumerate(held["features"]):
        x = -180 + width * i
        feature["properties"]["id"] = f"{i:02}"
        feature["geometry"]["coordinates"] = [[[x, low], [x + width, low], [x + width, high], [x, high], [x, low]]]
    path.write_text(json.dumps(held))
    return geo.read(path)


def test_a_hundred_and_eighty_degrees_is_no_border(tmp_path):
    """The last square is next to the first, and an area on both sides lies between them."""
    path = tmp_path / "globe.geojson"
    found = around(path, 36, 60, 70)
    assert len(found.edges) == 36
    assert ("00", "35") in named(found)
    both = grid(1, 1)
    both["features"][0]["geometry"] = {
        "type": "MultiPolygon",
        "coordinates": [[[[179, 51], [180, 51], [180, 52], [179, 52], [179, 51]]],
                        [[[-180, 51], [-176, 51], [-176, 52], [-180, 52], [-180, 51]]]],
    }  # fmt: skip
    path.write_text(json.dumps(both))
    assert np.allclose(geo.read(path).centers(), [[-178.5, 51.5]])


def test_sectors_at_a_pole_have_two_neighbors_each(tmp_path):
    assert np.bincount(around(tmp_path / "pole.geojson", 12, 80, 90).edges.ravel()).tolist() == [2] * 12


def in_albers(held):
    """A GeoJSON in EPSG:5070, metres, that says so."""
    import pyproj

    turn = pyproj.Transformer.from_crs(4326, 5070, always_xy=True)
    moved = json.loads(json.dumps(held))
    for feature in moved["features"]:
        feature["geometry"]["coordinates"] = [
            [list(turn.transform(x - 80, y + 40)) for x, y in ring] for ring in feature["geometry"]["coordinates"]
        ]
    moved["crs"] = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::5070"}}
    return moved


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "shp"])
def test_the_stated_system_is_honored(tmp_path, ending):
    pytest.importorskip("pyproj")
    pyogrio = pytest.importorskip("pyogrio")
    held = in_albers(grid(3, 2))
    path = tmp_path / f"map.{ending}"
    if ending == "geojson":
        path.write_text(json.dumps(held))
    else:
        pyogrio.raw.write(
            path, shapely.to_wkb(shapely.from_geojson([json.dumps(f["geometry"]) for f in held["features"]])),
            [np.array([f["properties"]["id"] for f in held["features"]], object)], np.array(["id"], object),
            geometry_type="Polygon", crs="EPSG:5070",
        )  # fmt: skip
    found = geo.read(path)
    assert found.degrees is True
    assert found.geographic()
    assert len(found.edges) == 7
    assert np.allclose(found.centers()[0], [-79.5, 40.5], atol=1e-2)
    assert any("EPSG:5070" in said for said in found.notes)


def write_layer(path, geometries, kind, layer=None):
    """Shapes, or None, with the ids 00, 01, ..., as one more layer of a file."""
    pyogrio = pytest.importorskip("pyogrio")
    ids = np.array([f"0{i}" for i in range(len(geometries))], object)
    pyogrio.raw.write(
        path, shapely.to_wkb(np.array(geometries, object)), [ids],
        np.array(["id"], object), geometry_type=kind, crs="EPSG:4326", layer=layer, append=path.exists(),
    )  # fmt: skip


@pytest.mark.parametrize(("gap", "said"), [(0.0, False), (0.00002, True), (0.05, False)])
def test_gaps_at_borders_are_said_with_the_tolerance_that_closes_them(gap, said):
    """Polygons that were shrunk have no side in common, and islands that lie far apart are no fault of the drawing."""
    rings = [square(9 + 0.1 * x, 45 + 0.1 * y, 0.1 - gap)[:4] for x in range(4) for y in range(3)]
    shapes = [[[np.array(ring)]] for ring in rings]
    found = adjacency(shapes, True)
    assert (found.alone > 0) == said
    if said:
        assert (found.alone, len(found.pairs)) == (12, 0)
        closed = adjacency(shapes, True, found.gap)
        assert (len(closed.pairs), closed.alone) == (17, 0)


def test_an_area_without_an_outline_is_told_and_stays(tmp_path):
    """A file of GDAL holds nothing there, GeoJSON a null."""
    write_layer(tmp_path / "map.gpkg", [shapely.box(i, 0, i + 1, 1) for i in range(3)] + [None], "Polygon")
    found = geo.read(tmp_path / "map.gpkg")
    assert found.ids == ("00", "01", "02", "03")
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert any("1 feature of map.gpkg is no polygon" in said for said in found.notes)


def test_of_several_layers_the_one_of_polygons_is_read(tmp_path):
    path = tmp_path / "map.gpkg"
    boxes = [shapely.box(i, 0, i + 1, 1) for i in range(3)]
    write_layer(path, [box.centroid for box in boxes], "Point", "towns")
    write_layer(path, boxes, "Polygon", "districts")
    found = geo.read(path)
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.notes[0] == "of 2 layers of map.gpkg, 'districts' has the polygons"
    write_layer(path, boxes, "Polygon", "counties")
    with pytest.raises(InputError, match="2 layers of polygons: 'districts', 'counties'; name the one you want"):
        geo.read(path)
    write_layer(path, [*boxes, shapely.box(3, 0, 4, 1)], "Polygon", "wards")
    assert len(geo.read(path, layer="wards").ids) == 4
    with pytest.raises(PolicyError, match="'ward' is not a layer; did you mean 'wards'"):
        geo.read(path, layer="ward")
    (tmp_path / "areas.csv").write_text("id,people\n00,9\n01,9\n02,9\n03,9\n")
    with pytest.raises(PolicyError, match="names a layer of a file of polygons, and no such file is given"):
        geo.read(tmp_path / "areas.csv", tmp_path / "areas.csv", layer="wards")
    assert len(geo.read(tmp_path / "areas.csv", shapes=path, layer="wards").shapes) == 4


def test_regions_of_a_layer_are_verified_from_the_same_layer(tmp_path):
    path = tmp_path / "map.gpkg"
    write_layer(path, [shapely.box(i, 0, i + 1, 1) for i in range(6)], "Polygon", "wards")
    write_layer(path, [shapely.box(i, 5, i + 2, 6) for i in range(0, 12, 2)], "Polygon", "counties")
    areas = tmp_path / "areas.csv"
    areas.write_text("id,people\n" + "".join(f"0{i},{5 + i}\n" for i in range(6)))
    how = ("--shapes", path, "--layer", "wards", "--weight", "people", "--k", 12, "-o", tmp_path / "r.csv")
    assert run("regions", areas, *how).returncode == 0
    done = run("verify", tmp_path / "r.csv", "--original", areas, "--original", path)
    assert "everything checked holds" in done.stdout


def test_a_shapefile_without_its_other_files_names_them(tmp_path):
    path = tmp_path / "map.shp"
    write_layer(path, [shapely.box(i, 0, i + 1, 1) for i in range(3)], "Polygon")
    (tmp_path / "map.shx").unlink()
    with pytest.raises(InputError, match=r"map\.shx is not in its folder; copy all files of this name"):
        geo.read(path)


def test_systems_that_cannot_be_are_refused(tmp_path):
    pytest.importorskip("pyproj")
    path = tmp_path / "map.geojson"
    path.write_text(json.dumps(grid(2, 2) | {"crs": {"type": "name", "properties": {"name": "EPSG:99999"}}}))
    with pytest.raises(InputError, match="'EPSG:99999', which is not known"):
        geo.read(path)
    held = in_albers(grid(2, 2))
    path.write_text(
        json.dumps(held | {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}})
    )
    with pytest.raises(InputError, match="states degrees"):
        geo.read(path)
    del held["crs"]
    path.write_text(json.dumps(held))
    found = geo.read(path)
    assert not found.geographic()
    assert "taken as a plane" in found.notes[0]


def test_real_zip_codes_simplified_alone():
    folder = real("zip_graph_ri")
    table, drawn = geo.read(folder / "nodes.csv", folder / "edges.csv"), geo.read(folder / "boundaries.geojson")
    rough = []
    for name in drawn.ids:
        whole = shapely.MultiPolygon([(p[0], p[1:]) for p in drawn.shapes[name]]).simplify(0.001)
        parts = getattr(whole, "geoms", [whole])
        rough.append([[np.array(r.coords)[:-1] for r in (p.exterior, *p.interiors)] for p in parts])
    found = {tuple(sorted((drawn.ids[a], drawn.ids[b]))) for a, b in adjacency(rough, geographic=True).pairs.tolist()}
    assert len(neighbors(rough)) < 0.8 * len(table.edges)
    assert len(named(table) ^ found) <= 0.03 * len(table.edges)


def test_lost_zeros_of_a_table_beside_polygons(tmp_path):
    held = grid(3, 1)
    for feature in held["features"]:
        feature["properties"]["id"] = "0" + str(int(feature["properties"]["id"]) + 1)
    (tmp_path / "map.geojson").write_text(json.dumps(held))
    (tmp_path / "n.csv").write_text("id,w\n1,1\n2,1\n3,1\n")
    found = geo.read(tmp_path / "n.csv", shapes=tmp_path / "map.geojson")
    assert found.ids == ("01", "02", "03")
    assert len(found.edges) == 2
    assert any("leading zeros of 3 ids of the areas restored" in said for said in found.notes)
    with pytest.raises(PolicyError, match="did you mean 'leave-out'"):
        geo.read(tmp_path / "n.csv", shapes=tmp_path / "map.geojson", unmatched="leaveout")
