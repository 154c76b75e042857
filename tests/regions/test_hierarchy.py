"""Regions within regions as a hierarchy, and a table with zip codes or places that is published over them."""

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.problems.regions import hierarchy_rows, nested
from tests.data import drawn, squares

SIDE = 6
EDGES = squares(SIDE, SIDE)
IDS = [f"0{6000 + i}" for i in range(SIDE * SIDE)]


def test_areas_left_out_are_starred_from_there_up():
    found = nested([(0, 1), (2, 3)], [5, 5, 2, 2], [3, 8], seed=1)
    assert found.labels[:, 0].min() == 0
    assert found.labels[:, 1].tolist() == [0, 0, -1, -1]
    assert [row[2:] for row in found.rows(["a", "b", "c", "d"])] == [["a+1", "*"]] * 2 + [["*", "*"]] * 2


def test_refusals():
    with pytest.raises(shoal.PolicyError, match="must rise"):
        nested([(0, 1)], [5, 5], [8, 3], seed=1)
    with pytest.raises(shoal.InputError, match="splits a region"):
        hierarchy_rows(["a", "b"], [np.array([0, 0]), np.array([0, 1])])
    with pytest.raises(shoal.InputError, match="repeat"):
        hierarchy_rows(["a", "a"], [np.array([0, 0])])


@pytest.fixture(scope="module")
def people():
    def tenths(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.integers(0, 300, n) / 10

    ills = ["flu", "gout", "asthma", "none"]
    return drawn(500, 4, zip=IDS, x=tenths, y=tenths, age=(20, 80), sex="fm", diagnosis=ills)


def test_a_table_with_zip_codes_is_anonymous_and_diverse_over_all_columns(people):
    weights = people["zip"].value_counts()
    count = dict(zip(weights["zip"].to_list(), weights["count"].to_list(), strict=True))
    levels = nested(EDGES, [count.get(i, 0) for i in IDS], [20, 80], effort="fast", seed=1)
    rows = levels.rows(IDS)
    release = shoal.anonymize(
        people.drop("x", "y"), quasi_identifiers=["zip", "age", "sex"], sensitive=["diagnosis"], k=5, l=2,
        publish="hierarchy", hierarchies={"zip": rows}, effort="fast", seed=1,
    )  # fmt: skip
    groups = release.table.group_by("zip", "age", "sex").agg(
        pl.len(), pl.col("diagnosis").value_counts().struct.field("count").max().alias("most")
    )
    assert groups["len"].min() >= 5
    assert (2 * groups["most"] <= groups["len"]).all()
    published = set(release.table["zip"].cast(pl.String))
    assert published <= {value for row in rows for value in row}
    assert published & {value for row in rows for value in row[:-1]}  # not all of them stars


def test_squares_of_a_grid_are_a_plain_hierarchy_of_places(people):
    squares = shoal.tiles.grid(people.select("x", "y").to_numpy(), [1, 5, 15])
    named = people.with_columns(place=pl.Series([f"{x!r} {y!r}" for x, y in people.select("x", "y").iter_rows()])).drop(
        "x", "y", "zip"
    )
    rows = [[f"{x!r} {y!r}", *names] for (x, y), names in squares.mapping().items()]
    release = shoal.anonymize(
        named, quasi_identifiers=["place", "sex"], k=5, publish="hierarchy", hierarchies={"place": rows},
        effort="fast", seed=1,
    )  # fmt: skip
    assert release.table.group_by("place", "sex").len()["len"].min() >= 5
    assert set(release.table["place"].cast(pl.String)) <= {value for row in rows for value in row}
