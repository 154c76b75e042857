"""What a path is, by its name alone."""

from pathlib import Path

import pytest

from shoal import paths


@pytest.mark.parametrize(
    ("name", "kind", "table", "part", "packed", "separator"),
    [
        ("a.csv", "csv", True, True, False, ","),
        ("A.CSV.GZ", "csv", True, True, True, ","),
        ("a.tsv", "csv", True, True, False, "\t"),
        ("a.TSV.gz", "csv", True, True, True, "\t"),
        ("a.txt", "csv", True, True, False, ","),
        ("a.pq", "parquet", True, True, False, ","),
        ("a.Parquet", "parquet", True, True, False, ","),
        ("a.xlsx", "excel", True, False, False, ","),
        ("a.xlsb", "excel", True, False, False, ","),
        ("a.SAV", "statistics", True, False, False, ","),
        ("a.sas7bdat", "statistics", True, False, False, ","),
        ("a.json", "csv", False, False, False, ","),
        ("csv", "csv", False, False, False, ","),
    ],
)
def test_tables(name, kind, table, part, packed, separator):
    found = paths.kind_of(name), paths.is_table_name(Path(name)), paths.is_part_name(name), paths.is_packed(name)
    assert found == (kind, table, part, packed)
    assert paths.usual_separator(f"folder.tsv/{name}") == separator


@pytest.mark.parametrize(
    ("name", "is_map", "is_drawing", "has_layers"),
    [
        ("a.geojson", True, True, False),
        ("a.topojson", True, True, False),
        ("a.json", False, True, False),
        ("a.GPKG", True, True, True),
        ("a.shp", True, True, True),
        ("a.zip", False, True, True),
        ("a.csv", False, False, True),
        ("a.geojson.gz", False, False, True),
    ],
)
def test_maps(name, is_map, is_drawing, has_layers):
    assert (paths.is_map(name), paths.is_drawing(name), paths.has_layers(name)) == (is_map, is_drawing, has_layers)
    assert paths.is_map(f"{name}.gz", packed=True) == is_map
    assert not paths.is_map([name])


def test_pages_pictures_and_what_belongs_to_them():
    assert [name for name in ("a.HTM", "a.html", "a.png", "a.json", "a.deid") if paths.is_page(name)] == [
        "a.HTM", "a.html",
    ]  # fmt: skip
    assert [name for name in ("a.html", "a.PDF", "a.svg", "a.jpg") if paths.is_picture(name)] == ["a.PDF", "a.svg"]
    assert (paths.is_json("a.JSON"), paths.is_json("a.geojson"), paths.is_arx("a.deid")) == (True, False, True)
    assert [p.name for p in paths.sides_of(Path("a.shp"))] == ["a.dbf", "a.shx", "a.cpg", "a.prj"]
    assert paths.sides_of(Path("a.gpkg")) == []
    assert paths.PAGE.next_to(Path("a.html")) == [Path("a.json")]
    assert [p.name for p in map(Path, ("a.record.json", "a.internal.html", "a.policy.toml", "a.json"))
            if not paths.is_private(p)] == ["a.json"]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "release", "certificate"),
    [
        ("people.csv", "people.release.csv", "people.certificate.json"),
        ("people.csv.gz", "people.csv.gz.release.csv.gz", "people.certificate.json"),
        ("people.tsv.gz", "people.tsv.gz.release.tsv.gz", "people.certificate.json"),
        ("people.PQ", "people.PQ.release.pq", "people.certificate.json"),
        ("people.xls", "people.xls.release.xlsx", "people.certificate.json"),
        ("people.dat", "people.dat.release.csv", "people.certificate.json"),
        ("people", "people.release.csv", "people.certificate.json"),
        (".csv", ".csv.release.csv", ".csv.certificate.json"),
    ],
)
def test_what_lies_beside_a_table(table, release, certificate):
    assert paths.release_name(Path(table)) == release
    assert paths.certificate_path(Path("in") / table) == Path("in") / certificate
    assert paths.certified_name(Path(certificate)) == certificate.removesuffix(".certificate.json")
    assert paths.record_path(Path(certificate)).name == certificate.replace("certificate", "record")


def test_levels_and_internal_pages_have_names_of_their_own():
    assert [paths.level_file(Path("a/map.html"), i).name for i in range(3)] == [
        "map.html", "map.level2.html", "map.level3.html",
    ]  # fmt: skip
    assert (
        paths.internal_path(Path("a.html")) == paths.internal_path(Path("a.internal.html")) == Path("a.internal.html")
    )


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("visits.csv", "visits"),
        ("VISITS.CSV", "VISITS"),
        ("visits.csv.gz", "visits.csv.gz"),
        ("my.visits.csv", "my.visits"),
        ("visits.tsv", "visits.tsv"),
        ("folder/visits", "visits"),
        (".csv", ".csv"),
    ],
)
def test_only_csv_goes(table: str, name: str) -> None:
    assert paths.named_after(Path(table)) == name
