"""Group names a person can read, and hierarchies without a tree drawn."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import shoal
from tests.commands import run

names = ["Clark", "Adams", "Baker", "Zoe", "Quinn", "Kim"]


def test_ends_largest_and_numbers():
    labels = np.array([0, 0, 0, 0, 1, 2])
    assert shoal.labels.group_labels(names, labels) == ["Adams .. Zoe and 2 more", "Quinn", "Kim"]
    assert shoal.labels.group_labels(names, labels, [5, 1, 2, 9, 1, 1], "largest")[0] == "Zoe, Clark and 2 more"
    assert shoal.labels.group_labels(names, labels, style="numbers") == ["group 1", "group 2", "group 3"]
    assert shoal.labels.group_labels(names[:2], labels[:2]) == ["Adams, Clark"]


def test_names_stay_different_whatever_the_labels_are_called():
    tricky = ["a", "b", "a, b", None, ""]
    found = shoal.labels.group_labels(tricky, np.array([0, 0, 1, 2, 3]))
    assert len(set(found)) == 4


def test_a_missing_label_is_called_missing_and_nothing_else_is():
    found = shoal.labels.group_labels(["c", None, "b", "", "missing", "d"], np.array([0, 0, 1, 1, 2, 3]))
    assert found == ["missing, c", '"", b', '"missing"', "d"]
    assert shoal.labels.group_labels([None, 1.5, 2.0], np.array([0, 1, 1])) == ["missing", "1.5, 2.0"]
    assert shoal.labels.group_labels([float("nan"), 1.5], np.zeros(2, int)) == ["missing, 1.5"]
    largest = shoal.labels.group_labels(["c", None, "b"], np.zeros(3, int), [1, 3, 2], "largest")
    assert largest == ["missing, b and 1 more"]
    assert shoal.labels.levels([None, "b", "c"], [2, 1, 1], [2]) == [
        ["", "missing", "*"], ["b", "b, c", "*"], ["c", "b, c", "*"]
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "pandas"])
def test_a_crosswalk_calls_a_missing_label_missing(kind, tmp_path):
    frame = pl.DataFrame({"name": ["c", None, "d"], "people": [2, 1, 3]})
    out, proof = tmp_path / f"out.{'csv' if kind == 'csv' else 'parquet'}", tmp_path / "out.certificate.json"
    source = tmp_path / f"names.{kind}"
    if kind in ("csv", "parquet"):
        frame.write_csv(source) if kind == "csv" else frame.write_parquet(source)
        asked = ["labels", source, "--label", "name", "--count", "people", "--k", 3, "-o", out, "--json"]
        run(*asked, "--report", tmp_path / "out.html")
    else:
        source = frame if kind == "polars" else frame.to_pandas()
        made = shoal.release(shoal.labels.cover(source["people"], k=3), source, label="name", count="people")
        made.write(out)
        made.report(tmp_path / "out.html")
    written = pl.read_csv(out) if kind == "csv" else pl.read_parquet(out)
    assert dict(written.select("value", "group_label").iter_rows()) == {None: "missing, c", "c": "missing, c", "d": "d"}
    assert shoal.verify(out, proof, source).holds


def test_nan_and_null_are_one_missing_label(tmp_path):
    frame = pl.DataFrame({"wage": [None, float("nan"), 1.5, 2.0]})
    made = shoal.release(shoal.labels.cover([2, 1, 1], k=2), frame, label="wage")
    made.write(tmp_path / "out.csv")
    assert dict(made.table.select("value", "group_label").iter_rows()) == {
        None: "missing", 1.5: "1.5, 2.0", 2.0: "1.5, 2.0"
    }  # fmt: skip
    assert shoal.verify(tmp_path / "out.csv", tmp_path / "out.certificate.json", frame).holds
    assert shoal.assign(made, frame).table["group_label"].to_list() == ["missing"] * 2 + ["1.5, 2.0"] * 2


def test_unknown_style_and_missing_counts():
    with pytest.raises(shoal.PolicyError, match="style of group labels"):
        shoal.labels.group_labels(names, np.zeros(6, int), style="end")
    with pytest.raises(shoal.PolicyError, match="needs the counts"):
        shoal.labels.group_labels(names, np.zeros(6, int), style="largest")


def check_hierarchy(rows: list[list[str]], counts: list[int], ks: list[int]) -> None:
    """Each level is a coarsening of the one below, its groups count k, and the last is one."""
    columns = list(zip(*rows, strict=True))
    assert set(columns[-1]) == {"*"}
    for below, above in pairwise(columns):
        assert len(set(zip(below, above, strict=True))) == len(set(below))
    for column, k in zip(columns[1:-1], ks, strict=False):
        loads: dict[str, int] = {}
        for name, count in zip(column, counts, strict=True):
            loads[name] = loads.get(name, 0) + count
        assert min(loads.values()) >= k


@pytest.mark.parametrize("method", ["auto", "fold", "spread", "five_halves", "exact"])
def test_levels_are_nested_and_full(method):
    values = [f"name {i}" for i in range(40)]
    counts = [1 + 60 // (i + 1) for i in range(40)]
    ks = [5, 20, 70]
    rows = shoal.labels.levels(values, counts, ks, method)
    assert [row[0] for row in rows] == values
    assert len(rows[0]) == 5
    check_hierarchy(rows, counts, ks)


def test_levels_end_where_the_total_ends():
    assert shoal.labels.levels(["a", "b"], [3, 4], [5, 8, 100]) == [["a", "a, b", "*"], ["b", "a, b", "*"]]
    assert shoal.labels.levels(["a", "b"], [3, 4], [8]) == [["a", "*"], ["b", "*"]]
    assert shoal.labels.levels([], [], [8]) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a", "a"], [1, 2], [2]), "must all differ"),
        ((["a", "b"], [1], [2]), "2 names and 1 counts"),
        ((["a", "b"], [1, 2], [2, 2]), "increasing order"),
        ((["a", "b"], [1, 2], [2], "bicriteria"), "cannot become a hierarchy"),
    ],
)
def test_what_is_no_hierarchy(arguments, words):
    with pytest.raises(shoal.ShoalError, match=words):
        shoal.labels.levels(*arguments)
