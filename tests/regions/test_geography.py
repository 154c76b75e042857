"""Areas and neighbors from tables, polygons, graphs and weights: all say the same of the same map."""

import json
import types
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.engines import geography as geo
from shoal.engines.adjacency import neighbors
from shoal.engines.shapes import center, features
from shoal.errors import InputError, MissingDependencyError, PolicyError
from tests.data import real
from tests.kept import holding


def square(x, y, side=1):
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def grid(width, height):
    """A GeoJSON of unit squares named 00, 01, ... row by row, with their number as population."""
    made = [
        {
            "type": "Feature",
            "properties": {"id": f"{y}{x}", "population": 10 * y + x},
            "geometry": {"type": "Polygon", "coordinates": [square(x, y)]},
        }
        for y in range(height)
        for x in range(width)
    ]
    return {"type": "FeatureCollection", "features": made}


def named(found):
    return {tuple(sorted((found.ids[a], found.ids[b]))) for a, b in found.edges.tolist()}


SIDES = {("00", "01"), ("00", "10"), ("01", "11"), ("10", "11")}


@pytest.mark.parametrize("ending", ["geojson", "json"])
def test_corners_are_no_borders(tmp_path, ending):
    path = tmp_path / f"map.{ending}"
    path.write_text(json.dumps(grid(2, 2)))
    found = geo.read(path)
    assert found.ids == ("00", "01", "10", "11")
    assert named(found) == SIDES
    assert found.whole("population").tolist() == [0, 1, 10, 11]
    assert found.centers().tolist() == [[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5]]


def test_a_plane_whose_numbers_could_be_degrees(tmp_path):
    """Two squares a hundredth apart: near each other in a plane's units, a kilometer apart as degrees."""
    pytest.importorskip("shapely")
    path = tmp_path / "map.geojson"
    made = grid(2, 1)
    made["features"][1]["geometry"]["coordinates"] = [square(1.01, 0)]
    path.write_text(json.dumps(made))
    told, plane = (geo.read(path, tolerance=0.02, coordinates=c) for c in ("auto", "projected"))
    assert (named(told), told.geographic(), told.facts["unit"]) == (set(), True, "km")
    assert (named(plane), plane.geographic(), plane.facts["unit"]) == ({("00", "01")}, False, "as the coordinates")
    (tmp_path / "n.csv").write_text("id,people\n00,5\n01,7\n")
    apart = geo.read(tmp_path / "n.csv", shapes=path, tolerance=0.02, coordinates="projected")
    assert named(apart) == {("00", "01")}


def test_tables_keep_leading_zeros(tmp_path):
    (tmp_path / "n.csv").write_text("zip,people,lng,lat\n00501,5,-73,41\n06001,7,-72,41\n")
    (tmp_path / "e.csv").write_text("a,b\n00501,06001\n06001,00501\n06001,06001\n")
    found = geo.read(tmp_path / "n.csv", tmp_path / "e.csv")
    assert found.ids == ("00501", "06001")
    assert found.edges.tolist() == [[0, 1]]
    assert found.whole("people").tolist() == [5, 7]
    assert found.centers().tolist() == [[-73, 41], [-72, 41]]


def test_lost_zeros_are_given_back_and_said(tmp_path):
    (tmp_path / "n.csv").write_text("id,w\n00501,1\n06001,2\n")
    (tmp_path / "e.csv").write_text("u,v\n501,6001\n")
    found = geo.read(tmp_path / "n.csv", tmp_path / "e.csv")
    assert found.ids == ("00501", "06001")
    assert found.edges.tolist() == [[0, 1]]
    assert any("leading zeros of 2 ids of the pairs restored" in said for said in found.notes)


def test_ids_that_are_nearly_alike_are_told(tmp_path):
    """One of two ids kept its zeros, or accents are characters of their own, as in files from macOS."""
    areas, pairs = tmp_path / "n.csv", tmp_path / "e.csv"
    areas.write_text("id,w\n00601,1\n601,2\n00602,3\n")
    pairs.write_text("u,v\n00601,00602\n")
    assert any(
        "differ only by leading zeros" in said and "'00601' and '601'" in said for said in geo.read(areas, pairs).notes
    )
    areas.write_text("id,w\n00601,1\n00602,3\n")
    assert not geo.read(areas, pairs).notes
    pairs.write_text("u,v\n00601,00602\n601,00602\n")
    with pytest.raises(
        InputError, match="an area: 601; 1 of them differs from an id of the other file only by leading zeros"
    ):
        geo.read(areas, pairs)
    names = ["Zürich", "Köln", "Bern"]
    areas.write_text("id,w\n" + "".join(f"{name},1\n" for name in names), encoding="utf-8")
    pairs.write_text("u,v\n" + unicodedata.normalize("NFD", "Zürich,Köln\nKöln,Bern\n"), encoding="utf-8")
    with pytest.raises(InputError, match=r"2 of them differ from an id of the other file only by .* accents"):
        geo.read(areas, pairs)


def test_columns_of_the_pairs_are_found_by_name(tmp_path):
    (tmp_path / "n.csv").write_text("id\nA\nB\nC\n")
    (tmp_path / "e.csv").write_text("border,v,u\n3,A,B\n4,B,C\n")
    assert geo.read(tmp_path / "n.csv", tmp_path / "e.csv").edges.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(PolicyError, match="did you mean 'border'"):
        geo.read(tmp_path / "n.csv", tmp_path / "e.csv", source="bordr", target="v")


def test_a_table_with_polygons_needs_no_pairs(tmp_path):
    (tmp_path / "map.geojson").write_text(json.dumps(grid(2, 2)))
    (tmp_path / "n.csv").write_text("id,w\n11,1\n10,2\n00,3\n99,4\n")
    with pytest.raises(InputError, match="1 area without a polygon: 99; 1 polygon without an area: 01") as caught:
        geo.read(tmp_path / "n.csv", shapes=tmp_path / "map.geojson")
    assert "unmatched='leave-out'" in str(caught.value)
    found = geo.read(tmp_path / "n.csv", shapes=tmp_path / "map.geojson", unmatched="leave-out")
    assert named(found) == {("00", "10"), ("10", "11")}
    assert found.outside == (3,)
    assert found.facts["areas_without_polygon"] == {"count": 1, "first": ["99"]}
    with pytest.raises(PolicyError, match="did you mean 'leave-out'"):
        geo.read(tmp_path / "n.csv", shapes=tmp_path / "map.geojson", unmatched="leave")
    with pytest.raises(PolicyError, match="polygons are needed"):
        geo.read(tmp_path / "n.csv")


def test_refusals_say_what_was_found(tmp_path):
    with pytest.raises(InputError, match=r"'a' occurs more than once; .* the areas before that of the pairs"):
        geo.geography(["a", "b", "a"], [])
    with pytest.raises(InputError, match="no areas"):
        geo.geography([], [])
    found = geo.geography(["a", "b"], [], {"w": ["3", "x"]})
    with pytest.raises(InputError, match="column 'w' of area 'b' is not a whole number"):
        found.whole("w")
    for empty in (None, ""):
        with pytest.raises(InputError, match="column 'w' of area 'b' is empty; write 0 where nobody is"):
            geo.geography(["a", "b"], [], {"w": ["3", empty]}).whole("w")
    with pytest.raises(PolicyError, match="not a column of the areas"):
        found.whole("v")
    assert found.centers() is None
    (tmp_path / "x.geojson").write_text("no")
    with pytest.raises(InputError, match="is no JSON"):
        geo.read(tmp_path / "x.geojson")
    with pytest.raises(InputError, match=r"neither a FeatureCollection nor a Topology; .* put all areas into a Fea"):
        features({"type": "Feature"})
    with pytest.raises(InputError, match="breaks the rules"):
        features({"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon"}}]})


def test_polygons_in_the_place_of_pairs_are_told_where_to_go(tmp_path):
    (tmp_path / "t.csv").write_text("id,p\na,1\nb,2\n")
    with pytest.raises(InputError, match=r"'p\.geojson' holds polygons .* shapes="):
        geo.read(tmp_path / "t.csv", tmp_path / "p.geojson")


def test_three_areas_on_one_side_are_all_neighbors():
    shape = [[np.array(square(0, 0)[:-1], float)]]
    assert neighbors([shape, shape, shape]).tolist() == [[0, 1], [0, 2], [1, 2]]


def test_center_of_a_ring_with_a_hole():
    outside, hole = np.array(square(0, 0, 4)[:-1], float), np.array(square(0, 0, 2)[:-1], float)
    assert center([[outside]]) == (2, 2)
    assert np.allclose(center([[outside, hole]]), (16 * 2 - 4 * 1) / 12)
    assert np.isnan(center([])).all()
    assert center([[np.array([[1.0, 2], [3, 2]])]]) == (2, 2)  # a line


def test_topology_shares_arcs():
    """Two squares around the arc between them, in quantized steps."""
    held = {
        "type": "Topology",
        "transform": {"scale": [0.1, 0.1], "translate": [-3.3, 7.7]},
        "objects": {
            "line": {"type": "LineString", "arcs": [0]},
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "arcs": [[0, 1]], "id": "01"},
                    {"type": "MultiPolygon", "arcs": [[[2, -1]]], "id": "02"},
                    {"type": None, "id": "03"},
                ],
            },
        },
        "arcs": [[[1, 0], [0, 1]], [[1, 1], [-1, 0], [0, -1], [1, 0]], [[1, 0], [1, 0], [0, 1], [-1, 0]]],
    }
    found = features(held)
    assert [properties["id"] for properties, _ in found] == ["01", "02", "03"]
    assert [len(shape) for _, shape in found] == [1, 1, 0]
    assert neighbors([shape for _, shape in found]).tolist() == [[0, 1]]
    assert np.allclose(center(found[0][1]), (-3.25, 7.75))


def test_networkx():
    nx = pytest.importorskip("networkx")
    made = nx.grid_2d_graph(2, 3)
    nx.set_node_attributes(made, 5, "people")
    made.nodes[0, 0]["state"] = "RI"
    found = geo.from_graph(made)
    assert found.ids[0] == "(0, 0)"
    assert len(found.edges) == 7
    assert found.whole("people").tolist() == [5] * 6
    assert found.column("state") == ["RI", None, None, None, None, None]
    doubled = nx.MultiDiGraph([("a", "b"), ("b", "a"), ("a", "b"), ("b", "b")])
    assert geo.from_graph(doubled).edges.tolist() == [[0, 1]]
    with pytest.raises(InputError, match="networkx graph"):
        geo.from_graph([1, 2])


def test_libpysal_by_its_shape():
    old = types.SimpleNamespace(neighbors={"06": ["07"], "07": ["06", "08"], "08": ["07"]}, id_order=["08", "07", "06"])
    found = geo.from_weights(old)
    assert found.ids == ("08", "07", "06")
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    pd = pytest.importorskip("pandas")
    index = pd.MultiIndex.from_tuples([("a", "b"), ("b", "a"), ("c", "c")], names=["focal", "neighbor"])
    new = types.SimpleNamespace(adjacency=pd.Series([1, 1, 0], index=index), unique_ids=pd.Index(["a", "b", "c"]))
    assert named(geo.from_weights(new)) == {("a", "b")}
    with pytest.raises(InputError, match="libpysal"):
        geo.from_weights(3)


def test_other_formats_need_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyogrio", None)
    with pytest.raises(MissingDependencyError, match=r"shoal\[geo\]"):
        geo.read(tmp_path / "map.gpkg")


def test_a_geodataframe():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame.from_features(grid(2, 2)["features"], crs=4326)
    found = geo.from_frame(frame)
    assert named(found) == SIDES
    assert found.whole("population").tolist() == [0, 1, 10, 11]
    assert found.centers().tolist()[3] == [1.5, 1.5]
    assert geo.from_frame(frame[["geometry"]]).ids == ("0", "1", "2", "3")
    assert named(geo.from_frame(frame.to_crs(3857))) == SIDES
    crossed = frame.set_index("id")
    crossed.loc["01", "geometry"] = shapely.Polygon([(1, 0), (2, 0), (1, 1), (2, 1)])  # its sides cross
    crossed.loc["10", "geometry"] = shapely.MultiPolygon([shapely.box(0, 1, 1, 2), shapely.box(5, 5, 6, 6)])
    crossed.loc["11", "geometry"] = None
    found = geo.from_frame(crossed)
    assert found.ids == ("00", "01", "10", "11")
    assert named(found) == {("00", "10")}
    assert found.notes[0] == "1 feature of the frame is no polygon"
    assert found.facts["repaired"] == 1
    frame.columns = pd.MultiIndex.from_product([frame.columns, [""]])
    assert len(geo.from_frame(frame, id="('id', '')").ids) == 4


class Frame:
    """As much of a GeoDataFrame as is read of one."""

    crs = None
    index = pd.RangeIndex(4)

    def __init__(self, held, east=0.0):
        """The features of a GeoJSON, the second one moved to the east."""
        rows = held["features"]
        rows[1]["geometry"]["coordinates"] = [[[x + east, y] for x, y in rows[1]["geometry"]["coordinates"][0]]]
        self.geometry = types.SimpleNamespace(name="geometry", __geo_interface__=held)
        self.columns = [*rows[0]["properties"], "geometry"]
        self.held = {name: np.array([row["properties"][name] for row in rows]) for name in rows[0]["properties"]}

    def __getitem__(self, name):
        return self.held[name]


def test_a_frame_names_areas_by_a_column_and_closes_gaps_within_a_tolerance():
    assert named(geo.from_frame(Frame(grid(2, 2)))) == SIDES
    assert geo.from_frame(Frame(grid(2, 2)), id="population").ids == ("0", "1", "10", "11")
    apart = Frame(grid(2, 1), east=0.01)  # about 1.1 km at the equator
    assert not named(geo.from_frame(apart))
    assert named(geo.from_frame(apart, tolerance=5.0)) == {("00", "01")}
    assert not named(geo.from_frame(apart, tolerance=0.5))


def test_an_index_with_a_name_names_the_areas_of_a_frame():
    frame = Frame(grid(2, 2))
    frame.index = pd.Index(["a", "b", "c", "d"], name="zip")
    assert geo.from_frame(frame).ids == ("00", "01", "10", "11")  # a column "id" comes first
    assert geo.from_frame(frame, id="zip").ids == ("a", "b", "c", "d")
    frame.columns.remove("id")
    assert geo.from_frame(frame).ids == ("a", "b", "c", "d")
    assert geo.from_frame(frame).whole("population").tolist() == [0, 1, 10, 11]


def test_a_frame_of_polygons_goes_where_files_of_polygons_go(tmp_path):
    frame, ids = Frame(grid(2, 2)), ["00", "01", "10", "11"]
    assert named(geo.read(frame)) == SIDES
    pairs = pl.DataFrame({"u": ["00"], "v": ["11"]})
    assert named(geo.read(frame, pairs)) == {("00", "11")}
    people = pl.DataFrame({"zip": ids, "people": [5, 5, 5, 5]})
    areas = geo.read(people, shapes=frame)
    assert named(areas) == SIDES
    found = shoal.regions.merge(areas.edges, areas.whole("people"), 10, seed=1)
    made = shoal.release(found, areas, weight="people")
    made.write(tmp_path / "c.csv", also={"outlines": tmp_path / "o.geojson"})
    for name in ("c.csv", "o.geojson"):
        holding(shoal.verify(tmp_path / name, tmp_path / "c.certificate.json", [people, frame]))
    other = people.with_columns(people=pl.Series([5, 5, 5, 6]))
    assert not shoal.verify(tmp_path / "c.csv", tmp_path / "c.certificate.json", [other, frame]).holds
    with pytest.raises(InputError, match="the areas given have no column 'people', by which the regions were weighed"):
        shoal.verify(tmp_path / "o.geojson", tmp_path / "c.certificate.json", frame)


@pytest.mark.parametrize("gone", [None, float("nan"), pd.NA])
def test_a_frame_whose_areas_lack_ids_is_refused_and_never_merges_them(gone):
    frame = Frame(grid(2, 2))
    frame.held["id"] = np.array(["00", gone, gone, "11"], object)
    with pytest.raises(shoal.InputError, match="property 'id' is empty in 2 features of the frame"):
        geo.from_frame(frame)


def test_what_is_no_frame_of_polygons_is_refused_by_name():
    for frame in (pd.DataFrame({"id": ["a"], "geometry": ["POINT (0 0)"]}), pl.DataFrame({"id": ["a"]})):
        with pytest.raises(shoal.InputError, match="from_frame needs a GeoDataFrame"):
            geo.from_frame(frame)
    frame = Frame(grid(2, 1))
    frame.columns.insert(0, "population")
    with pytest.raises(shoal.InputError, match="the frame has several columns 'population'"):
        geo.from_frame(frame)


def test_a_weight_that_no_sum_holds_is_not_called_a_fraction():
    held = geo.Geography(ids=("a", "b"), edges=np.zeros((0, 2), np.int64), columns={
        "large": ["5", "99999999999999999999"], "gone": [5.0, float("nan")], "out": [True, float("nan")]})  # fmt: skip
    with pytest.raises(shoal.InputError, match=r"column 'large' of area 'b' is 2\^53 or more"):
        held.whole("large")
    with pytest.raises(shoal.InputError, match="column 'gone' of area 'b' is empty"):
        held.whole("gone")
    assert held.says("out").tolist() == [True, False]


@pytest.mark.parametrize("state", ["ct", "ri"])
def test_simplified_borders_of_real_zip_codes_are_nearly_those_of_the_table(state):
    folder = real(f"zip_graph_{state}")
    table, drawn = geo.read(folder / "nodes.csv", folder / "edges.csv"), geo.read(folder / "boundaries.geojson")
    assert set(table.ids) == set(drawn.ids)
    assert len(named(table) ^ named(drawn)) <= 0.02 * len(table.edges)  # simplified: the shortest borders are lost


def test_a_column_of_yes_and_no_that_says_neither_is_refused():
    """Excluding nothing without a word would publish what was to stay out."""
    said = geo.Geography(ids=("a", "b", "c"), edges=np.zeros((0, 2), np.int64), columns={
        "out": ["Yes", " true", "1.0"], "in": ["no", None, ""], "odd": ["no", "closed", "yes"]})  # fmt: skip
    assert said.says("out").tolist() == [True] * 3
    assert said.says("in").tolist() == [False] * 3
    with pytest.raises(InputError, match=r"column 'odd' of area 'b' is neither yes nor no; write yes, true or 1"):
        said.says("odd")


@pytest.mark.parametrize("of", [lambda f: f, lambda f: f.to_pandas()])
def test_a_number_with_a_decimal_mark_may_be_missing_until_it_is_asked_for(of):
    """As a number without a mark may: only the area whose number is needed is named."""
    areas = of(pl.DataFrame({"id": ["a", "b", "c"], "rent": ["1,5", None, " "], "people": [5, 6, 7]}))
    pairs = pl.DataFrame({"u": ["a", "b"], "v": ["b", "c"]})
    found = geo.read(areas, pairs, decimal={"rent": ","})
    assert found.whole("people").tolist() == [5, 6, 7]
    with pytest.raises(InputError, match="column 'rent' of area 'b' is not a number"):
        found.number("rent")
    with pytest.raises(InputError, match="decimal mark ',' in 1 row, first in row 2"):
        geo.read(of(pl.DataFrame({"id": ["a", "b"], "rent": ["1,5", "1.5"]})), pairs[:1], decimal={"rent": ","})


def test_edges_that_name_areas_are_refused_where_row_numbers_are_meant():
    frame = pl.DataFrame({"id": ["a", "b", "c"], "people": [3, 3, 3]})
    found = shoal.regions.merge([(0, 1), (1, 2)], frame["people"], 6, seed=1)
    assert shoal.release(found, frame, weight="people", edges=[(0, 1), (1, 2)]).facts["groups"] == 1
    named = pl.DataFrame({"u": ["a", "b"], "v": ["b", "c"], "km": ["1.5", "2"]})
    for edges in (named, named[["u", "v"]], named.to_pandas(), [(1.5, 2.0)], [[0, 1, 2]]):
        with pytest.raises(InputError, match=r"edges are pairs of row numbers, and these are not; .*geography\.read"):
            shoal.release(found, frame, weight="people", edges=edges)
    with pytest.raises(InputError, match=r"the edges name rows that the table does not have; .*geography\.read"):
        shoal.release(found, frame, weight="people", edges=[(0, 7)])
