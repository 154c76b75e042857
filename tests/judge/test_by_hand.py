"""Single rules of the judge against verdicts worked out by hand, at the ends where a verdict turns."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.errors import InputError
from shoal.judge import composition, series
from shoal.judge.crosswalk import StatedCrosswalk, group_sizes, judge_hierarchy
from shoal.judge.file import canonical, same_counts
from shoal.judge.finding import RECOMPUTED, STATED, pair
from shoal.judge.places.areas import NAMED, judge_regions, uncrossed
from shoal.judge.places.clusters import judge_clusters
from shoal.judge.tables.covering import ColumnNotation, column
from shoal.judge.tables.population import (
    Census,
    Covered,
    check_of,
    covered,
    foreign,
    numbers,
    presence,
    refuse_foreign,
    uniques,
)
from shoal.judge.tables.shown import breach
from shoal.model.privacy import DeltaPresence, KMap
from shoal.model.rule_books import SafeHarbor

# Three clusters of records at 0, 10 and 20; 3 is the farthest that a record lies from its center.
CENTERS = pl.DataFrame(
    {"cluster": [0, 1, 2], "x": [0.0, 10.0, 20.0], "records": [2, 2, 2], "distance": [1.0, 3.0, 2.0]}
)
FEATURE = {"kind": "number", "columns": ["x"], "name": "x", "scale": 1.0, "weight": 1.0, "unit": "", "levels": 1}


def width(center: str, diameter: float, met: bool, certified: float = 4.0, scale: float = 1.0) -> Any:
    """The finding about a maximum diameter of 4, where the distances are multiplied by ``scale``."""
    asked = {"features": [FEATURE], "center": center, "sensitive": [], "norm": "euclidean", "unit": "u", "r": 2,
             "l": [], "distinct_l": [], "epsilon": 0.0, "max_diameter": 4.0}  # fmt: skip
    facts = {"rows": 3, "points": 6, "left_out": 0, "may_be_left_out": 0, "smallest_group": 2, "largest_group": 2,
             "radius": 3.0, "centers_replaced": 0, "groups": 3, "records": 6}  # fmt: skip
    details = {"diameter": diameter, "cap_met": met, "max_diameter": certified}
    words = pl.format("within {} in x", pl.col("distance"))
    rows = CENTERS.with_columns(pl.col("distance") * scale).with_columns(radius=words)
    found = judge_clusters(rows, StatedCrosswalk(asked, facts, 3.0, 1.0, "u", details, "gather"), "frame")
    return next(f for f in found if f.check == "max diameter")


@pytest.mark.parametrize(
    ("center", "diameter", "met", "certified", "holds"),
    [
        ("record", 3.0, True, 4.0, True),  # no record is farther from the other than the diameter
        ("record", 2.99, True, 4.0, False),  # a radius of 3 is known
        ("mean", 2.99, True, 4.0, True),  # a mean is no record, so the radius is none of a pair's distances
        ("mean", 4.0, True, 4.0, True),
        ("mean", 4.0, False, 4.0, False),
        ("mean", 4.01, True, 4.0, False),
        ("mean", 4.01, False, 4.0, True),
        ("record", 4.01, False, 4.0, True),
        ("mean", 3.5, True, 5.0, False),  # it certifies another maximum than was asked for
        ("record", 3.5, True, 5.0, False),
    ],
)
def test_a_diameter_is_met_as_certified(center: str, diameter: float, met: bool, certified: float, holds: bool) -> None:
    found = width(center, diameter, met, certified)
    assert found.holds is holds
    assert (found.how == STATED) is holds


@pytest.mark.parametrize("scale", [0.0, 0.1])
def test_clusters_of_equal_or_close_records_have_the_diameter_of_their_radius(scale: float) -> None:
    assert width("record", 3.0 * scale, True, scale=scale).holds
    assert width("record", 3.0 * scale - 0.01, True, scale=scale).holds is False


def test_an_empty_file_of_centers_belongs_to_an_empty_table() -> None:
    asked = {"features": [FEATURE], "center": "record", "sensitive": [], "norm": "euclidean", "unit": "u", "r": 2,
             "l": [], "distinct_l": [], "epsilon": 0.0}  # fmt: skip
    facts = dict.fromkeys(["rows", "points", "left_out", "may_be_left_out", "smallest_group", "largest_group", "radius",
                           "centers_replaced", "groups", "records"], 0)  # fmt: skip
    details = {"clusters": 0, "left_out": 0, "may_be_left_out": 0, "r": 2}
    rows = CENTERS.with_columns(radius=pl.lit("exactly"))[:0]
    stated = StatedCrosswalk(asked, facts, 0.0, 0.0, "u", details, "gather")
    found = judge_clusters(rows, stated, "frame", CENTERS.select("x")[:0])
    assert [f.check for f in found][-4:] == ["centers", "distance", "records", "bound"]
    assert all(f.holds for f in found)


AREAS = pl.DataFrame({NAMED: ["a", "b", "c", "d", "e"], "people": [3, 9, 4, 4, 20], "homes": [1, 1, 1, 1, 50]})
PAIRS = pl.DataFrame({"u": ["a", "c"], "v": ["b", "d"]})


def bound(k: int, low: float) -> str:
    """How the lower bound of the heaviest region was judged: areas a to d in two regions, e in none."""
    rows = pl.DataFrame(
        {"area": ["a", "b", "c", "d", "e"], "region": ["p", "p", "q", "q", "*"],
         "region_weight": [12, 12, 8, 8, None], "region_homes": [2, 2, 2, 2, None],
         "region_areas": [2, 2, 2, 2, None], "bound_by": ["homes"] * 4 + [None]}
    )  # fmt: skip
    asked = {"weight": ["people", "homes"], "k": [k, 1], "objective": "max", "similar": []}
    facts = {
        "rows": 5,
        "groups": 2,
        "smallest_group": 8,
        "largest_group": 12,
        "left_out": 1,
        "regions_at_most": 2,
        "records": 20,
    }
    found = judge_regions(rows, StatedCrosswalk(asked, facts, 12, low, "people", {}, "regions"), "frame", AREAS, PAIRS)
    assert {f.check: f.found for f in found}["weight people"] == "every region's areas add up to its weight"
    return next(f.how for f in found if f.check == "bound")


@pytest.mark.parametrize(
    ("k", "low", "how"),
    [
        (5, 9, RECOMPUTED),  # the heaviest area in a region; the heavier one is in none
        (5, 10, STATED),
        (11, 11, RECOMPUTED),  # no region may be lighter than k
        (11, 12, STATED),
    ],
)
def test_no_heaviest_region_is_below_k_or_its_heaviest_area(k: int, low: int, how: str) -> None:
    assert bound(k, low) == how


def ledger_fault(folder: Path, mode: str, number: int, values: list[str], l: int = 2, copies: int = 1) -> str | None:
    """What is wrong with a ledger of two people in one class, whose table shows ``values``."""
    path = folder / "release.csv"
    pl.DataFrame({"q": ["1", "1"], "s": values}).write_csv(path)

    def code(what: str, text: str) -> str:
        data = json.dumps([what, text], ensure_ascii=False).encode()
        return hashlib.blake2b(data, key=b"k", digest_size=16).hexdigest()

    value = [code("value", v) for v in "ab"]
    persons = pl.DataFrame({"tuple": [code("tuple", "1")] * 2, "value": value, "possible": [" ".join(value)] * 2})
    about = {"mode": mode, "policy": {"privacy": [{"k": 2}, {"l": 1}, {"l": l}]}}
    content = {"units": [[code("tuple", "1"), " ".join(value), copies]]} if mode == "again" else {}
    return series._ledger_fault(path, content, persons, about, b"k", (["q"], ["s"]), number)


@pytest.mark.parametrize(
    ("mode", "number", "looked_at"),
    [
        ("views", 1, True), ("views", 2, False), ("views", 3, False),  # later views show less of the first part's rows
        ("increment", 1, True), ("increment", 2, True), ("again", 1, True), ("again", 2, True),
    ],
)  # fmt: skip
def test_the_table_of_every_part_but_a_view_stands_beside_its_ledger(
    tmp_path: Path, mode: str, number: int, looked_at: bool
) -> None:
    assert ledger_fault(tmp_path, mode, number, ["a", "b"]) is None
    assert (ledger_fault(tmp_path, mode, number, ["a", "c"]) is not None) is looked_at


def test_a_group_of_a_series_leaves_l_values_possible_and_shows_each_as_often(tmp_path: Path) -> None:
    assert "fewer values" in str(ledger_fault(tmp_path, "again", 1, ["a", "b"], l=3))
    assert "other rows" in str(ledger_fault(tmp_path, "again", 1, ["a", "b"], copies=2))


def test_an_empty_text_is_missing_in_a_file_of_text() -> None:
    assert canonical(pl.Series(["", "a", None]), "csv").to_list() == [None, "a", None]
    assert canonical(pl.Series([], dtype=pl.String), "csv").to_list() == []
    assert canonical(pl.Series(["", "a", None]), "frame").to_list() == ["", "a", None]
    nothing, numbers = pl.Series([], dtype=pl.String), pl.Series([1, 2, None])
    assert [s.to_list() for s in pair(pl.Series(["", "a"]), pl.Series(["a", None]))] == [[None, "a"], ["a", None]]
    assert [s.to_list() for s in pair(nothing, nothing)] == [[], []]
    assert [s.to_list() for s in pair(numbers, pl.Series(["2", "", "x"]))] == [["1", "2", None], ["2", None, "x"]]


def category(values: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical)})


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (["a", "b", None], ["b", None, "a"], True),
        (["a", "b", None], ["a", "b", "b"], False),
        (["a", "b", None], ["a", "a", "b"], False),
        (["a", None, "b"], ["a", "b", "b"], False),
        ([None, "b", "a"], ["a", "b", "a"], False),
        ([None, None], [None, None], True),
        ([None, None], [None, "a"], False),
        (["a", "b"], ["b", "a"], True),
    ],
)
def test_a_missing_category_is_no_other(left: list[str | None], right: list[str | None], same: bool) -> None:
    one = np.ones(len(left), np.int64)
    assert same_counts((category(left), one), (category(right), one)) is same


@pytest.mark.parametrize(
    ("ages", "seen"),
    [(["89", "20"], False), (["89.5"], True), (["90"], True), (["20", "90"], True), (["90", "20"], True)],
)
def test_safe_harbor_shows_no_age_above_89(ages: list[str], seen: bool) -> None:
    assert (breach(pl.DataFrame({"c": ages}), SafeHarbor({"c": "age"}, 1930)) is not None) is seen
    assert breach(pl.DataFrame({"c": ages}), SafeHarbor({"c": "date"}, 1930)) is None


NUMBERS, LARGE = pl.Series([5, 7, 10]), pl.Series([2**54, 2**54 + 8, 2**54 + 16])  # 2^54 + 1 is no float
DAYS = pl.Series(["2020-01-05", "2020-01-20", "2020-02-10"]).str.to_date()
SHOES, HALVES = pl.Series(["30", "10", "20"], dtype=pl.Enum(["30", "10", "20"])), pl.Series([0, 5, None])


@pytest.mark.parametrize(
    ("values", "step", "text", "inside", "loss"),
    [
        (NUMBERS, None, "[5, 7]", "110", 0.4),
        (NUMBERS, None, "[6, 8]", "010", 0.4),
        (NUMBERS, None, "[8, 9]", "000", 0.2),
        (NUMBERS, None, "[7, 5]", "000", 0.0),
        (NUMBERS, None, "[5, blue]", "000", 0.0),
        (LARGE, None, f"[{2**54 + 4}, {2**54 + 12}]", "010", 0.5),
        (DAYS, None, "[2020-01-05, 2020-01-20]", "110", 15 / 36),
        (DAYS, "month", "[2020-01-01, 2020-02-01]", "110", 31 / 36),
        (DAYS, None, "[2020-01-01, 2020-02-01]", "000", 0.0),  # without a grid, a range ends at values or numbers
        (SHOES, None, "[30, 10]", "110", 0.5),  # in the order of the column, whatever numbers they look like
        (SHOES, None, "[10, 20]", "011", 0.5),
        (SHOES, None, "[20, 30]", "000", 0.0),
        (HALVES, None, "[0, 5]", "110", 0.5),  # a missing value lies as far beyond the others as these are apart
        (HALVES, None, "[5, missing]", "011", 0.5),
        (HALVES, 6, "[5, missing]", "011", 0.5),
        (HALVES, 12, "[5, missing]", "011", 0.7),  # and beyond the end of every other range
        (HALVES, 12, "[0, missing]", "111", 1.0),
    ],
)
def test_a_range_holds_what_lies_between_its_ends(
    values: pl.Series, step: float | str | None, text: str, inside: str, loss: float
) -> None:
    found = column(values, pl.Series([text]), ColumnNotation("ranges", "*", False, step=step))
    assert "".join(str(int(x)) for x in found.covered(0)) == inside
    assert (found.least[0], found.most[0]) == pytest.approx((loss, loss))


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ("a;x;*\nb;x;*\n", True),
        ("a;x;*\nb;x\n", False),  # of two depths
        ("a;x\nc;x\n", False),  # as many rows, of another value
        ("a;*\nb;*\n", True),
    ],
)
def test_a_hierarchy_has_each_value_once_and_one_depth(tmp_path: Path, rows: str, holds: bool) -> None:
    path = tmp_path / "h.csv"
    path.write_text(rows)
    found = judge_hierarchy(path, {"a": 1, "b": 1}, 2)
    assert {f.check: f.holds for f in found} == (
        {"values": True, "k": True, "nested": True} if holds else {"values": False}
    )


def covering(rows: list[int], people: list[int]) -> Covered:
    """Classes of so many rows, each of which covers people of its own."""
    own = [(np.array([i]), np.array([i])) for i in range(len(rows))]
    return Covered(np.array(rows), np.array(people), sum(people), False, np.array(people), own)


@pytest.mark.parametrize(
    ("model", "rows", "people", "passes", "level"),
    [
        (KMap(5), [2, 1], [5, 9], True, 5),
        (KMap(5), [2, 1], [4, 9], False, 4),
        (DeltaPresence(0.25, 0.5), [2, 1], [4, 4], True, 0.5),
        (DeltaPresence(0.25, 0.5), [2, 1], [3, 4], False, 2 / 3),
        (DeltaPresence(0.25, 0.5), [2, 1], [4, 5], False, 0.2),  # the end that fails
        (DeltaPresence(0.6, 1.0), [1], [1], True, 1.0),
        (DeltaPresence(0.25, 0.5), [], [], True, None),
    ],
)
def test_a_model_of_the_population_holds_up_to_its_ends(
    model: KMap | DeltaPresence, rows: list[int], people: list[int], passes: bool, level: float | None
) -> None:
    found = check_of(model, covering(rows, people))
    assert (found.passes, found.level) == (passes, pytest.approx(level))


@pytest.mark.parametrize(
    ("rows", "people", "share"),
    [
        ([3, 2], [10, 2], 1.0),  # the largest share, not that of the most rows
        ([1, 3], [1, 4], 1.0),
        ([1], [0], 1.0),  # a class that covers nobody
    ],
)
def test_presence_of_classes_that_cover_different_people_is_the_largest_share(
    rows: list[int], people: list[int], share: float
) -> None:
    assert presence(covering(rows, people)) == share


def test_an_empty_cell_of_a_foreign_table_is_no_star() -> None:
    census = Census(pl.DataFrame({"a": ["x", "y", "v"]}), np.array([3, 4, 5]))
    levels = {"a": [["x", "z"], ["y", "z"], ["v", "v"]]}
    assert covered(pl.DataFrame({"a": ["x", "z", "*"]}), ["a"], census, foreign("*", levels)).people.tolist() == [
        3,
        7,
        12,
    ]
    for hierarchies in ({}, levels):
        with pytest.raises(InputError, match="no value of the population"):
            covered(pl.DataFrame({"a": ["x", None]}), ["a"], census, foreign("*", hierarchies))


def test_a_population_holds_its_sample() -> None:
    refuse_foreign(covering([2, 3], [2, 3]))
    with pytest.raises(InputError, match="1 of the 2 classes"):
        refuse_foreign(covering([2, 3], [2, 2]))
    census = Census(pl.DataFrame({"a": [1, 2]}), np.array([3, 4]))
    census.refuse_smaller(7)
    with pytest.raises(InputError, match="7 rows and the sample 8"):
        census.refuse_smaller(8)


@pytest.mark.parametrize("weights", [[1.0, None], [1.0, float("nan")], [1.0, float("inf")], ["1", "x"], [1, -1]])
def test_a_weight_is_a_number_from_0(weights: list[Any]) -> None:
    assert numbers(pl.Series([0.0, 2.5]), "w").to_list() == [0.0, 2.5]
    with pytest.raises(InputError, match="weight"):
        numbers(pl.Series(weights, strict=False), "w")


def test_a_tenth_of_the_population_decides_which_estimate_is_taken() -> None:
    sizes = {1: 300, 2: 90, 3: 40, 8: 10}  # 680 rows
    assert uniques(sizes, 6800).rule == "pitman"
    assert uniques(sizes, 6799).rule == "snb"
    assert uniques(sizes, 681).rule != "counted"
    assert uniques(sizes, 680) == (300, 300, 300, 300, "counted")
    assert uniques({2: 1}, 1000) == (0, 0, 0, 0, "counted")


def test_everybody_is_read_from_the_last_of_the_widest_originals_that_has_them() -> None:
    narrow = pl.DataFrame({"age": [1, 2, 3]})
    wide = pl.DataFrame({"age": [10, 20], "town": ["a", "b"]})
    wider = pl.DataFrame({"age": [100, 200], "town": ["c", "d"], "pay": [5, 6]})
    release = composition.ReleaseOfPeople(pl.DataFrame(), ["age", "town", "job"])
    rows = np.array([[0, 1, 2, -1], [-1, 0, 1, 1], [-1, -1, 0, 1]])  # of four people in each original
    at, table = composition._table_of_people(release, [narrow, wide, wider], rows)
    assert at.tolist() == [-1, 0, 2, 3]
    assert table.rows() == [("10", "a"), ("20", "b"), ("100", "c"), ("200", "d")]


def test_areas_in_no_region_cross_no_boundary() -> None:
    states = ["a", "b", "a", "b"]
    assert uncrossed(np.array([0, 1, 0, 1]), states).holds
    assert uncrossed(np.array([-1, -1, 0, 1]), states).holds
    assert not uncrossed(np.array([-1, 0, 0, 1]), states).holds


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"a": 5}, ["no group is below k = 5", "1 group, the smallest of 5 and the largest of 5; 1 certified"]),
        ({"a": 4, "b": 7}, ["1 group is below k = 5", "2 groups, the smallest of 4 and the largest of 7; 2 certified"]),
        (
            {"a": 4, "b": 3},
            ["2 groups are below k = 5", "2 groups, the smallest of 3 and the largest of 4; 2 certified"],
        ),
    ],
)
def test_sizes_of_groups_are_told_in_words(sizes: dict[str, int], said: list[str]) -> None:
    assert [f.found for f in group_sizes(sizes, {"groups": len(sizes)}, 5)] == said
