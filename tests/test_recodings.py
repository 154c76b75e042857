"""Columns without a tree: groups of labels, intervals and tiles made from the table's own counts."""

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.frames import classes
from shoal.engines.table import Replacement
from shoal.errors import PolicyError
from shoal.model.histogram import Partition
from tests.data import drawn


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Four hundred made-up people with a town, an age, a place and a diagnosis."""
    places = {c: lambda rng, n, at=at: rng.normal(at, 1, n).round(2) for c, at in (("x", 0), ("y", 50))}
    return drawn(400, 3, town=[f"town {i}" for i in range(40)], age=(18, 90), **places, diagnosis="abcde")


@pytest.fixture(scope="module")
def placeless(people: pl.DataFrame) -> pl.DataFrame:
    """The same without the place, which would single people out."""
    return people.drop("x", "y")


ASKED = {"sensitive": ["diagnosis"], "l": 2, "effort": "fast", "seed": 1}


def test_unordered_and_ordered_columns_are_generalized_without_a_tree(placeless):
    asked = ASKED | {"quasi_identifiers": ["town", "age"], "k": 4}
    trees = {"town": "labels", "age": "intervals"}
    release = shoal.anonymize(placeless, **asked, publish="hierarchy", hierarchies=trees)
    assert release.audit.passes
    assert release.facts.cost["ncp"] < shoal.anonymize(placeless, **asked).facts.cost["ncp"]


def test_coordinates_become_one_quasi_identifier_published_as_tiles(people, tmp_path):
    source = tmp_path / "people.csv"
    people.write_csv(source)
    asked = ASKED | {"quasi_identifiers": ["age"], "coordinates": ["x", "y"], "k": 5, "publish": "hierarchy"}
    release = shoal.anonymize(source, **asked, hierarchies={"age": shoal.Hierarchy.intervals([10, 30])})
    assert release.audit.passes
    assert not {"x", "y"} & set(release.table.columns)
    exact = set(people.select(pl.concat_str(["x", "y"], separator=" ")).to_series())
    published = release.table.group_by("age", "place", "diagnosis").len()
    assert published["len"].sum() == 400
    lonely = [p for p in set(release.table["place"]) & exact if (release.table["place"] == p).sum() < 5]
    assert not lonely, "an exact place shows fewer than k people"
    certificate = release.write(tmp_path / "release.csv")
    assert shoal.verify(tmp_path / "release.csv", certificate, original=source).holds


def test_longitudes_are_tiled_across_the_date_line(tmp_path):
    islands = pl.DataFrame(
        {
            "lon": [179.98, 179.99, 179.97, -179.99, -179.98, *(20 + i / 100 for i in range(35))],
            "lat": [-16.0, -16.1, -16.2, -16.0, -16.1, *(45 + i / 100 for i in range(35))],
            "age": [40] * 40,
        }
    )
    for names, crossing in ((("lon", "lat"), 1), (("x", "y"), 0)):
        table = islands.rename(dict(zip(("lon", "lat"), names, strict=True)))
        release = shoal.anonymize(
            table, quasi_identifiers=["age"], coordinates=names, k=5, publish="hierarchy", effort="fast", seed=1
        )
        spans = {tuple(place.split(" ")[0].split("..")) for place in release.table["place"] if place.split("..")[0]}
        # A tile whose western side is the greater number reaches across the date line: the five islands are one.
        over = [(west, east) for west, east in spans if east and float(west) > float(east)]
        assert (len(over) > 0) == crossing


def test_a_coordinate_that_is_no_number_is_refused_by_its_column(people):
    broken = people.with_columns(pl.col("x").cast(pl.String).replace({str(people["x"][0]): "east"}))
    with pytest.raises(shoal.InputError, match="column 'x' has no finite number in"):
        shoal.anonymize(
            broken, quasi_identifiers=["age"], coordinates=["x", "y"], k=5, publish="hierarchy", effort="fast"
        )


def test_intervals_of_words_are_refused_with_a_way_out(placeless):
    with pytest.raises(shoal.PolicyError, match="labels"):
        shoal.anonymize(
            placeless, quasi_identifiers=["town"], k=5, publish="hierarchy", hierarchies={"town": "intervals"}
        )


def test_coordinates_need_a_hierarchy_to_be_published_in():
    with pytest.raises(shoal.PolicyError, match="hierarchy"):
        shoal.Policy.of(quasi_identifiers=["age"], coordinates=["x", "y"], k=5)


def test_rows_published_as_centers_are_records_of_the_table(people, tmp_path):
    source = tmp_path / "people.csv"
    people.write_csv(source)
    quasi = ["age", "x", "y"]
    release = shoal.anonymize(
        source, quasi_identifiers=quasi, sensitive=["diagnosis"], k=5, l=2, publish="centers", seed=1
    )
    assert release.audit.passes
    known = set(people.select(pl.col(quasi).cast(pl.String)).iter_rows())
    assert set(release.table.select(quasi).iter_rows()) <= known
    certificate = release.write(tmp_path / "release.csv")
    assert shoal.verify(tmp_path / "release.csv", certificate, original=source).holds


def test_a_center_shows_a_value_that_all_its_rows_have():
    frame = pl.DataFrame({"age": [20, 21, 22, 60, 61, 63], "kids": [0, 0, 0, 3, 3, 3]})
    made = shoal.anonymize(frame, quasi_identifiers=["age", "kids"], k=3, publish="centers", effort="fast", seed=1)
    assert sorted(made.table["kids"]) == [0, 0, 0, 3, 3, 3]
    assert set(made.table.rows()) <= set(frame.rows())
    assert made.facts.changed["kids"] == 0


def test_centers_keep_the_kind_of_a_numeric_column(placeless):
    release = shoal.anonymize(placeless, quasi_identifiers=["age", "town"], k=4, publish="centers", seed=1)
    assert release.table["age"].dtype == placeless["age"].dtype
    assert release.audit.k >= 4


def test_global_recoding_publishes_one_level_per_column(placeless, tmp_path):
    bands = shoal.Hierarchy.intervals([10, 30])
    asked = {"quasi_identifiers": ["age", "town"], "k": 4, "publish": "hierarchy", "global_recoding": True, "seed": 1}
    release = shoal.anonymize(placeless, **asked, hierarchies={"age": bands, "town": "labels"})
    assert release.audit.k >= 4
    levels = release.certificate.details["levels"]
    resolved = bands.resolve([str(a) for a in sorted(set(placeless["age"]))], "age")
    known = set(resolved.labels[levels["age"]]) if levels["age"] else {str(a) for a in placeless["age"]}
    assert set(release.table["age"].cast(pl.String)) <= known
    assert release.facts.cost["ncp"] == pytest.approx(release.certificate.cost)
    assert release.certificate.lower_bound <= release.certificate.details["uniform_bound"] <= release.certificate.cost
    release.write(tmp_path / "release.csv")


def test_a_level_above_the_ceiling_is_never_published(placeless):
    asked = {
        "publish": "hierarchy",
        "hierarchies": {"age": shoal.Hierarchy.intervals([2, 30])},
        "max_level": {"age": 1},
    }
    with pytest.raises(shoal.InfeasibleError, match="age"):
        shoal.anonymize(placeless, quasi_identifiers=["age"], k=40, **asked, method="three_phase")


def test_groups_that_are_published_alike_are_one_when_rows_are_placed():
    partition = Partition.of(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), np.array([3, 4, 2, 5]))
    columns = [Replacement("a", pl.Series(["x", "y"]), np.array([0, 0, 1]))]
    columns.append(Replacement("b", pl.Series(["u", "v"]), np.array([1, 1, 1])))
    merged, made = classes(partition, columns)
    assert [merged.cell.tolist(), merged.group.tolist(), merged.count.tolist()] == [[0, 1, 1], [0, 0, 1], [7, 2, 5]]
    assert [c.index.tolist() for c in made] == [[0, 1], [1, 1]]


def test_the_method_global_recoding_publishes_the_levels_that_its_certificate_names() -> None:
    tree = [["a", "g", "*"], ["b", "g", "*"], ["c", "h", "*"], ["d", "h", "*"]]
    random = np.random.default_rng(4)
    table = pl.DataFrame({name: random.choice(list("abcd"), 14) for name in ("y", "z")})
    asked = {"quasi_identifiers": ["y", "z"], "k": 2, "publish": "hierarchy", "hierarchies": {"y": tree, "z": tree}}
    release = shoal.anonymize(table, method="global_recoding", effort="fast", seed=0, **asked)
    for name, level in release.certificate.details["levels"].items():
        assert set(release.table[name]) <= {row[level] for row in tree}
    with pytest.raises(PolicyError, match="works on levels"):
        shoal.anonymize(table, method="global_recoding", **asked | {"publish": "ranges", "hierarchies": {}})


@pytest.mark.parametrize(("built", "said"), [("prefixes:4,3", True), ("prefixes:1", False), ("stars", False)])
def test_a_hierarchy_that_joins_nothing_is_said(built, said):
    table = pl.DataFrame({"age": [21, 22, 31, 32], "town": [*"aabb"]})
    release = shoal.anonymize(
        table, quasi_identifiers=["age", "town"], k=2, publish="hierarchy", hierarchies={"age": built}
    )
    assert any("'age' joins no two values below the star" in note for note in release.facts.notes) is said


@pytest.mark.parametrize(("label", "said"), [("3", True), ("low", False)])
def test_a_label_that_is_a_value_too_is_said(label, said):
    tree = [["1", label, "*"], ["2", label, "*"], ["3", "high", "*"], ["4", "high", "*"]]
    table = pl.DataFrame({"code": [1, 2, 3, 4], "town": [*"aabb"]})
    release = shoal.anonymize(
        table, quasi_identifiers=["code", "town"], k=2, publish="hierarchy", hierarchies={"code": tree}
    )
    assert any("'code': labels of the hierarchy are values of the table too" in n for n in release.facts.notes) is said
