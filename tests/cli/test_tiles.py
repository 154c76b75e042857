"""``shoal tiles``: what it prints, what it writes, how it refuses."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from tests import commands
from tests.commands import Done


def run(*arguments: object, cwd: Path | None = None) -> Done:
    return commands.run("tiles", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """300 rows near the date line, with weights and a column to keep."""
    rng = np.random.default_rng(4)
    lng = (180 + rng.normal(0, 2, 300)).round(3)
    path = tmp_path_factory.mktemp("tiles") / "points.csv"
    pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(300)],
            "lng": np.where(lng > 180, lng - 360, lng).round(3),
            "lat": rng.normal(-17, 1, 300).round(3),
            "count": rng.integers(1, 4, 300),
            "diagnosis": rng.choice(["flu", "gout"], 300),
        }
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def everything(points, tmp_path_factory):
    """One run that writes all there is to write."""
    folder = tmp_path_factory.mktemp("out")
    done = run(
        points, "--x", "lng", "--y", "lat", "--weight", "count", "--k", 20, "-o", folder / "crosswalk.csv",
        "--tiles", folder / "tiles.csv", "--table", folder / "table.csv", "--map", folder / "map.html",
        "--certificate", folder / "certificate.json", "--insensitive", "name", "--json",
    )  # fmt: skip
    return folder, done.facts


def test_json_states_the_answer(everything):
    folder, said = everything
    assert said["coordinates"] == "geographic"  # by the columns' names
    assert said["points"] == 300
    assert said["smallest"] >= 20
    assert said["cost"] == said["largest"] == said["certificate"]["cost"]
    assert said["tiles"] <= said["tiles_at_most"]
    assert set(said["seconds"]) == {"read", "solve", "write"}
    assert said["output"] == str(folder / "crosswalk.csv")
    kept, shown = json.loads((folder / "certificate.record.json").read_text())["certificate"], said["certificate"]
    assert kept["details"].items() <= shown["details"].items()  # without what follows from the facts
    assert {**shown, "details": kept["details"]} == kept
    public = json.loads((folder / "certificate.json").read_text())["certificate"]
    assert public["cost"] == said["cost"] <= public["ratio_at_most"] * said["certificate"]["lower_bound"]


def test_the_table_is_anonymous_and_holds_no_coordinate(everything, points):
    folder, said = everything
    table, source = pl.read_csv(folder / "table.csv"), pl.read_csv(points)
    assert "lng" not in table.columns
    assert "lat" not in table.columns
    assert table.columns[:2] == ["name", "tile"]
    assert table.columns[-2:] == ["count", "diagnosis"]
    sizes = table.group_by("tile").agg(pl.col("count").sum())
    assert len(sizes) == said["tiles"]
    assert sizes["count"].min() >= 20
    assert table["name"].to_list() != source["name"].to_list()  # shuffled
    assert Counter(table["name"]) == Counter(source["name"])
    joined = table.join(source, on="name")
    west, east = joined["lng_low"].fill_null(-999).to_numpy(), joined["lng_high"].fill_null(999).to_numpy()
    lng = joined["lng"].to_numpy()
    inside = np.where(west > east, (lng >= west) | (lng < east), (lng >= west) & (lng < east))
    assert inside.all()


def test_no_column_of_the_table_slips_through(points, tmp_path):
    asked = (points, "--x", "lng", "--y", "lat", "--k", 20, "--table", tmp_path / "t.csv")
    refused = run(*asked)
    assert (refused.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "'name': its name suggests" in refused.stderr
    assert "--quasi" not in refused.stderr
    assert run(*asked, "--identifiers", "name").returncode == 0
    table = pl.read_csv(tmp_path / "t.csv")
    assert "name" not in table.columns
    table.with_columns(name=pl.lit("n1")).write_csv(tmp_path / "t.csv")
    verdict = shoal.verify(tmp_path / "t.csv")
    assert "column 'name' should have left the table" in [f.found for f in verdict.findings if not f.holds]
    assert run(*asked, "--identifiers", "name,lat", "--force").returncode == 2


def test_the_table_is_looked_at_before_a_point_is_cut(points, tmp_path, monkeypatch):
    def cut(*_given, **_asked):
        raise AssertionError("cut first, looked later")

    monkeypatch.setattr("shoal.problems.tiles.split", cut)
    refused = run(points, "--x", "lng", "--y", "lat", "--k", 20, "--table", tmp_path / "t.csv")
    assert refused.returncode == 2
    assert "'name': its name suggests" in refused.stderr


def test_no_level_that_nobody_holds_stands_in_what_is_written(tmp_path):
    kind = pl.Enum(["flu", "gout", "unspoken"])
    frame = pl.DataFrame({"x": [0, 0, 5, 5], "y": [0, 1, 0, 1], "note": pl.Series(["flu", "gout"] * 2, dtype=kind)})
    made = shoal.release(shoal.tiles.split(frame[["x", "y"]], 2), frame, x="x", y="y")
    made.write(tmp_path / "c.parquet", also={"table": tmp_path / "t.parquet"})
    assert b"unspoken" not in (tmp_path / "t.parquet").read_bytes()
    found = shoal.tiles.split(frame[["x", "y"]], 2, boundary=frame["note"])
    assert "unspoken" not in repr(shoal.release(found, frame, x="x", y="y", boundary="note").table.schema)


def test_crosswalk_and_tiles_agree(everything, points):
    folder, said = everything
    crosswalk, tiles = pl.read_csv(folder / "crosswalk.csv"), pl.read_csv(folder / "tiles.csv")
    source = pl.read_csv(points)
    assert len(tiles) == said["tiles"]
    assert tiles["records"].sum() == said["records"] == source["count"].sum()
    assert len(crosswalk) == len(source.select("lng", "lat").unique())
    joined = source.join(crosswalk, on=["lng", "lat"], how="left")
    counted = joined.group_by("tile").agg(pl.col("count").sum()).sort("tile")
    assert counted["count"].to_list() == tiles["records"].to_list()


def test_the_map_needs_no_network(everything):
    folder, said = everything
    text = (folder / "map.html").read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "")
    assert f"{said['tiles']:,} tiles of at least 20 records" in text


def test_polygons_end_at_180_degrees(points, tmp_path):
    run(points, "--x", "lng", "--y", "lat", "--k", 20, "--tiles", tmp_path / "t.geojson").ok()
    collection = json.loads((tmp_path / "t.geojson").read_text())
    kinds = {f["geometry"]["type"] for f in collection["features"]}
    assert kinds == {"Polygon", "MultiPolygon"}
    area = 0.0
    for feature in collection["features"]:
        g = feature["geometry"]
        for polygon in g["coordinates"] if g["type"] == "MultiPolygon" else [g["coordinates"]]:
            (west, south), _, (east, north), *_ = polygon[0]
            assert -180 <= west < east <= 180
            area += (east - west) * (north - south)
    assert area == pytest.approx(360 * 180)  # the sphere, once


def test_order_is_secret_and_never_by_the_seed(points, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"sixteen bytes or more")
    chosen = ["--secret", secret]
    for name, more in (
        ("a", chosen),
        ("b", chosen),
        ("c", ["--keep-order"]),
        ("d", ["--center", "draw", "--seed", 1]),
        ("e", ["--center", "draw", "--seed", 1]),
    ):
        done = run(points, "--x", "lng", "--y", "lat", "--k", 20, "--table", tmp_path / f"{name}.csv",
                   "--insensitive", "name", *more).ok()  # fmt: skip
        assert "wrote" in done.stdout
    a, b, c, d, e = ((tmp_path / f"{n}.csv").read_text() for n in "abcde")
    assert a == b
    assert d != e
    assert d != a
    assert pl.read_csv(tmp_path / "c.csv")["name"].to_list() == pl.read_csv(points)["name"].to_list()
    assert sorted(a.splitlines()) == sorted(c.splitlines())


def test_a_column_in_the_way_is_named(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("x,y,tile\n" + "1,2,3\n" * 4)
    run(path, "--x", "x", "--y", "y", "--k", 2, "--table", tmp_path / "o.csv").refused(2, "'tile'")


@pytest.mark.parametrize(
    ("x", "y", "boundary", "says"),
    [
        ("x", "x", None, "named twice"),
        ("x", "y", "x", "named twice"),
        ("tile", "y", None, "rename it"),
        ("x", "records", None, "rename it"),
        ("x", "x_low", None, "rename it"),
        ("x_center", "x", None, "rename it"),
        ("x", "y", "tile", "rename it"),
        ("x", "y", "y_high", "rename it"),
    ],
)
def test_a_column_that_is_named_twice_or_as_one_of_the_tiles_is_refused(tmp_path, x, y, boundary, says):
    path, names = tmp_path / "p.csv", list(dict.fromkeys(n for n in (x, y, boundary) if n))
    path.write_text("".join(",".join(row[: len(names)]) + "\n" for row in (names, *["123", "123", "312", "312"] * 2)))
    asked = ("--x", x, "--y", y, "--k", 2, *(() if boundary is None else ("--boundary", boundary)))
    run(path, *asked, "-o", tmp_path / "o.csv").refused(2, says)
    assert not (tmp_path / "o.csv").exists()


def test_codes_for_coordinates_are_refused_until_dropped(tmp_path):
    rng = np.random.default_rng(2)
    rows = [f"{x:.4f},{y:.4f}" for x, y in rng.uniform([-73, 41], [-72, 42], (60, 2))]
    rows += ["777.7777,77.7777"] * 3 + ["999.9999,99.9999"] * 2 + ["0,0"]
    path = tmp_path / "crashes.csv"
    path.write_text("\n".join(["LONGITUD,LATITUDE", *rows]) + "\n")
    common = (path, "--x", "LONGITUD", "--y", "LATITUDE", "--k", 5)
    done = run(*common).refused(2, "6 of 66 rows have codes for coordinates", "--drop-codes")
    done = run(*common, "--drop-codes", "--table", tmp_path / "out.csv", "--json")
    said = json.loads(done.stdout)
    assert said["coordinates"] == "geographic"
    assert (said["codes_left_out"], said["points"], said["records"]) == (6, 60, 60)
    assert len(pl.read_csv(tmp_path / "out.csv")) == 60


def on_a_map(points, path):
    """The points of a CSV as GeoJSON, or by pyogrio; without the columns of coordinates."""
    frame = pl.read_csv(points)
    rows = frame.drop("lng", "lat").to_dicts()
    geometries = [{"type": "Point", "coordinates": [x, y]} for x, y in frame.select("lng", "lat").rows()]
    features = [{"type": "Feature", "properties": p, "geometry": g} for p, g in zip(rows, geometries, strict=True)]
    if path.suffix == ".geojson":
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return
    pyogrio, shapely = pytest.importorskip("pyogrio"), pytest.importorskip("shapely")
    names = frame.drop("lng", "lat").columns
    for layer, many in (("some", 40), ("all", 300))[path.suffix != ".gpkg" :]:
        made = shapely.to_wkb(shapely.points(frame.select("lng", "lat").to_numpy()[:many]))
        columns = [np.array(frame[c].to_list()[:many], object if frame[c].dtype == pl.String else None) for c in names]
        pyogrio.raw.write(
            path, made, columns, np.array(names, object), geometry_type="Point", crs="EPSG:4326",
            layer=layer, append=path.exists(),
        )  # fmt: skip


@pytest.mark.parametrize("ending", [".geojson", ".gpkg", ".shp"])
def test_a_map_of_points_is_a_table(tmp_path, points, ending):
    """The same tiles as of a CSV; a layer is named where there are several, and when it is verified too."""
    on_a_map(points, tmp_path / f"p{ending}")
    layer = ("--layer", "all") if ending == ".gpkg" else ()
    assert (
        run(points, "--x", "lng", "--y", "lat", "--k", 9, "-o", tmp_path / "a.csv", "--weight", "count").returncode == 0
    )
    run(tmp_path / f"p{ending}", "--k", 9, "-o", tmp_path / "b.csv", "--weight", "count", *layer).ok()
    a, b = (pl.read_csv(tmp_path / f"{name}.csv") for name in "ab")
    assert b.columns[:2] == ["longitude", "latitude"]
    assert sorted(a.rows()) == sorted(b.rows())
    checked = commands.run("verify", tmp_path / "b.csv", "--original", tmp_path / f"p{ending}", *layer)
    assert "everything checked holds" in checked.stdout, checked.stderr
    if layer:
        for refused in (
            run(tmp_path / "p.gpkg", "--k", 9, "-o", tmp_path / "c.csv"),
            commands.run("verify", tmp_path / "b.csv", "--original", tmp_path / "p.gpkg"),
        ):
            assert (refused.returncode, "2 layers of points: 'some', 'all'; name" in refused.stderr) == (2, True)
    table = shoal.anonymize(
        tmp_path / f"p{ending}", quasi_identifiers=["count"], identifiers=["longitude", "latitude", "name"], k=20,
        effort="fast", **({"table": "all"} if layer else {}),
    ).table  # fmt: skip
    assert (table.height, table.columns) == (300, ["count", "diagnosis"])


def test_a_map_of_anything_else_is_refused(tmp_path):
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    for geometry, says in [
        (square, "holds a Polygon where a point belongs; shoal regions reads areas"),
        ({"type": "MultiPoint", "coordinates": [[0, 0], [1, 1]]}, "holds a MultiPoint where a point belongs"),
        ({"type": "Point", "coordinates": [9]}, "is no FeatureCollection of points"),
        (None, "is empty; name a column of numbers"),
    ]:
        feature = {"type": "Feature", "properties": {"a": 1}, "geometry": geometry}
        (tmp_path / "p.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature] * 3}))
        run(tmp_path / "p.geojson", "--k", 2, "-o", tmp_path / "o.csv").refused(2, says)
    run(tmp_path / "p.csv", "--k", 2, "-o", tmp_path / "o.csv").refused(2, "--x and --y are missing")


def test_a_file_of_exact_places_is_warned_of(everything, points, tmp_path):
    said = everything[1]
    assert [w for w in said["warnings"] if w.startswith("crosswalk.csv has the exact places")]
    done = run(
        points, "--x", "lng", "--y", "lat", "--k", 20, "--table", tmp_path / "t.csv", "--tiles", tmp_path / "t.geojson",
        "--identifiers", "name", "--effort", "fast",
    ).ok()  # fmt: skip
    assert "exact places" not in done.said


def test_the_certificate_tells_nothing_of_the_exact_places(everything, points):
    folder, _ = everything
    public = json.loads((folder / "certificate.json").read_text())
    private = json.loads((folder / "certificate.record.json").read_text())
    crosswalk = folder / "crosswalk.csv"
    own = hashlib.sha256(crosswalk.read_bytes()).hexdigest()
    assert public["release"] == {"file": "crosswalk.csv", "separator": ","}
    assert own not in (folder / "certificate.json").read_text()
    assert set(public["facts"]) == {"groups", "smallest_group", "largest_group"}  # and no number of places
    assert private["release"]["sha256"] == own
    assert {about["part"] for about in public["also"] if about["sha256"]} == {"table", "tiles"}
    said = {f.check: f for f in shoal.verify(crosswalk, folder / "certificate.json").findings}
    assert "states no SHA-256" in said["file"].found
    for name in ("crosswalk.csv", "table.csv", "tiles.csv"):
        record = folder / "certificate.record.json"
        assert shoal.verify(folder / name, folder / "certificate.json", points, record=record).holds


def test_another_crosswalk_is_refused_by_the_record(everything, tmp_path):
    folder, _ = everything
    for name in ("crosswalk.csv", "certificate.json", "certificate.record.json"):
        shutil.copy(folder / name, tmp_path / name)
    lines = (tmp_path / "crosswalk.csv").read_text().splitlines()
    (tmp_path / "crosswalk.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")  # in another order
    public = tmp_path / "crosswalk.csv", tmp_path / "certificate.json"
    assert not shoal.verify(*public, record=tmp_path / "certificate.record.json").holds


def test_whoever_writes_exact_places_and_a_map_is_told_to_keep_the_certificate_too(points, tmp_path):
    """It states the SHA-256 of the exact places."""
    done = run(
        points, "--x", "lng", "--y", "lat", "--k", 20, "-o", tmp_path / "t.csv", "--map", tmp_path / "t.html",
        "--effort", "fast",
    )  # fmt: skip
    assert "keep it and its certificate and publish" in done.said


@pytest.mark.parametrize("objective", ["tiles", "max", "perimeter", "sumsq"])
def test_tiles_by_each_objective_are_verified(tmp_path, objective):
    rows = [f"{i % 17},{i % 13}.5" for i in range(120)]
    (tmp_path / "p.csv").write_text("\n".join(["x,y", *rows]))
    asked = ("--x", "x", "--y", "y", "--k", 5, "--objective", objective)
    run("p.csv", *asked, "--table", "t.csv", cwd=tmp_path).ok()
    files = ("t.csv", "t.certificate.json")
    commands.run("verify", *files, cwd=tmp_path).ok()
    commands.run("verify", *files, "--record", "t.record.json", cwd=tmp_path).ok()
