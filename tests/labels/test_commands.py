"""``shoal labels``, ``shoal intervals`` and ``shoal reproduce names`` from the outside."""

import json
from datetime import date
from importlib.util import find_spec

import polars as pl
import pytest

import shoal
from shoal.errors import InputError
from shoal.report.pictures import as_svg, as_text
from tests.commands import run, told

ROWS = [("Smith", 9), ("Ng", 2), ("Adams", 3), ("Baker", 3), ("Ng", 1), ("", 2), ("Zoe", 0)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("name,count,age\n" + "".join(f"{n},{c},{i % 4}\n" for i, (n, c) in enumerate(ROWS)))
    return path


def test_labels_writes_all_it_is_asked_for(table, tmp_path):
    cross, proof, picture, tree = (tmp_path / n for n in ("c.csv", "c.json", "p.svg", "h.csv"))
    status, out, _ = run(
        "labels", table, "--label", "name", "--count", "count", "--k", 5, "-o", cross, "--certificate", proof,
        "--plot", picture, "--hierarchy", tree, "--levels", "10", "--json",
    )  # fmt: skip
    answer = json.loads(out)
    assert status == 0
    assert (answer["labels"], answer["records"], answer["cost"], answer["k_anonymous"]) == (6, 20, 9, True)
    kept, shown = json.loads((tmp_path / "c.record.json").read_text())["certificate"], answer["certificate"]
    assert kept["details"].items() <= shown["details"].items()  # without what follows from the facts
    assert {**shown, "details": kept["details"]} == kept
    assert json.loads(proof.read_text())["certificate"]["ratio_at_most"] == 1
    assert answer["certificate"]["optimal"]
    found = pl.read_csv(cross, infer_schema=False).fill_null("")
    assert found.columns == ["value", "group", "group_label", "group_count"]
    assert found["group"].n_unique() == answer["groups"] == found["group_label"].n_unique()
    counts = {"Smith": 9, "Ng": 3, "Adams": 3, "Baker": 3, "": 2, "Zoe": 0}
    for (_, size), part in found.group_by("group", "group_count"):
        assert sum(counts[value] for value in part["value"]) == int(size) >= 5
    assert picture.read_text().startswith("<svg")
    rows = [line.split(";") for line in tree.read_text().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(counts)
    assert {row[-1] for row in rows} == {"*"}


@pytest.mark.parametrize("command", [("labels", "--label", "name"), ("intervals", "--value", "count")])
def test_a_level_that_all_records_together_do_not_reach_is_said_to_be_missing(command, table, tmp_path):
    asked = (command[0], table, *command[1:], "--k", 2, "--levels", "4,4000", "--json")
    answer = run(*asked, "--count", "count", "--hierarchy", tmp_path / "h.csv").facts
    assert any("are fewer than 4,000, so the hierarchy has no level of that many" in w for w in answer["warnings"])
    assert not any("than 4, so" in w for w in answer["warnings"])
    assert {line.count(";") for line in (tmp_path / "h.csv").read_text().splitlines()} == {3}


def test_rows_are_counted_where_no_count_is_given(table):
    facts = run("labels", table, "--label", "name", "--k", 2, "--json").facts
    assert facts["records"] == len(ROWS)
    assert "warnings" not in facts


def test_counts_of_a_value_on_several_lines_are_said_to_be_added_up(table, tmp_path):
    asked = ("--label", "name", "--count", "count", "--k", 5)
    said = "column 'name' names 1 of its 7 values again on a later line; their counts are added up"
    report = tmp_path / "report.html"
    _, out, _ = run("labels", table, *asked, "--report", report, "--internal", "--json")
    assert json.loads(out)["warnings"] == [said]
    assert "counts are added up" in (tmp_path / "report.internal.html").read_text()
    assert f"warning: {said}" in run("labels", table, *asked)[1]
    table.write_text("name,count\na,5\nb,6\n")
    assert "warning" not in run("labels", table, *asked)[1]


def test_people_read_lines(table):
    _, out, _ = run("labels", table, "--label", "name", "--count", "count", "--k", 5).ok()
    assert "6 labels, 20 records, 3 groups of 5 to 9" in out
    assert "the least possible" in out
    assert "Smith" not in out


def test_own_names(table, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("north\nsouth\neast\n")
    cross = tmp_path / "c.csv"
    asked = ("labels", table, "--label", "name", "--count", "count", "--k", 5, "--names", own)
    run(*asked, "-o", cross).ok()
    assert set(pl.read_csv(cross)["group_label"]) == {"north", "south", "east"}
    own.write_text("north\nnorth\n")
    run(*asked).refused(2, "3 groups need one each")


def test_own_names_and_a_style_for_the_groups_of_the_hierarchy(table, tmp_path):
    own, tree = tmp_path / "own.txt", tmp_path / "h.csv"
    own.write_text("".join(f"name {i}\n" for i in range(9)))
    asked = ("labels", table, "--label", "name", "--count", "count", "--k", 5, "--names", own, "-o", tmp_path / "c.csv")
    run(*asked, "--naming", "numbers", "--hierarchy", tree).ok()
    assert set(pl.read_csv(tmp_path / "c.csv")["group_label"]) <= {f"name {i}" for i in range(9)}
    assert "group 1" in tree.read_text()


def test_own_names_without_the_crosswalk_that_has_them_are_refused(table, tmp_path):
    own, tree = tmp_path / "own.txt", tmp_path / "h.csv"
    own.write_text("".join(f"name {i}\n" for i in range(9)))
    labels = ("labels", table, "--label", "name", "--count", "count")
    for asked in (labels, ("intervals", table, "--value", "count")):
        asked = (*asked, "--k", 2, "--names", own, "--hierarchy", tree)
        run(*asked).refused(2, "--names names the groups of the crosswalk", "-o FILE")
        assert not tree.exists()
        run(*asked, "-o", tmp_path / "c.csv", "--force").ok()
        tree.unlink()


def test_bicriteria_cannot_become_a_release(table, tmp_path):
    cross = tmp_path / "c.csv"
    asked = ("labels", table, "--label", "name", "--count", "count", "--k", 5, "--method", "bicriteria")
    status, out, _ = run(*asked, "--json").ok()
    assert "not k-anonymous" in json.loads(out)["certificate"]["details"]["warning"]
    status, _, err = run(*asked, "-o", cross)
    assert (status, cross.exists()) == (2, False)
    assert "not k-anonymous" in err


@pytest.mark.parametrize("name", ["*", "^n$"])
def test_a_name_that_is_a_pattern_of_others_is_refused(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},n\n1,5\n2,6\n")
    for given in (("labels", path, "--label", name), ("labels", path, "--label", "n", "--count", name),
                  ("intervals", path, "--value", name), ("gather", path, "--columns", name)):  # fmt: skip
        run(*given, "--r" if given[0] == "gather" else "--k", 2).refused(2, "rename it")


def test_counts_beyond_64_bits(tmp_path):
    path = tmp_path / "big.csv"
    path.write_text(f"name,count\na,{10**30}\nb,{10**30 - 1}\nc,1\n")
    cross = tmp_path / "c.csv"
    asked = ("labels", path, "--label", "name", "--count", "count", "--k", 10**30, "-o", cross, "--json")
    assert run(*asked).facts["cost"] == 10**30
    assert set(pl.read_csv(cross, infer_schema=False)["group_count"]) == {str(10**30)}


def test_intervals(table, tmp_path):
    cross, tree, picture = tmp_path / "c.csv", tmp_path / "h.csv", tmp_path / "p.svg"
    status, out, _ = run(
        "intervals", table, "--value", "age", "--count", "count", "--k", 5, "--objective", "range", "-o", cross,
        "--hierarchy", tree, "--levels", "8,15", "--picture", picture, "--json",
    )  # fmt: skip
    answer = json.loads(out)
    assert status == 0
    assert (answer["values"], answer["records"], answer["cost"]) == (4, 20, 20)
    assert pl.read_csv(cross, infer_schema=False)["group_label"].to_list() in (
        ["0", "1 .. 3", "1 .. 3", "1 .. 3"],
        ["0 .. 1", "0 .. 1", "2 .. 3", "2 .. 3"],
    )
    assert len(tree.read_text().splitlines()) == 4
    assert picture.exists()


def test_intervals_of_dates_and_of_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("day,word\n2020-01-01,b\n2020-01-02,a\n2020-03-01,c\n2020-03-02,d\n")
    assert run("intervals", path, "--value", "day", "--k", 2, "--objective", "range", "--json").facts["cost"] == 4
    assert run("intervals", path, "--value", "word", "--k", 2, "--json").facts["groups"] == 2


def test_intervals_of_typed_columns_come_in_their_order(tmp_path):
    path, cross = tmp_path / "t.parquet", tmp_path / "c.csv"
    days = [date(2020, 3, 1), date(2020, 1, 9), date(2020, 1, 10), date(2019, 12, 1)]
    pl.DataFrame({"day": days, "age": [10, 9, 100, 11]}).write_parquet(path)
    facts = run("intervals", path, "--value", "day", "--k", 2, "--objective", "range", "--json").facts
    assert facts["cost"] == 2 * 39 + 2 * 51
    status, _, _ = run("intervals", path, "--value", "age", "--k", 2, "-o", cross)
    assert (status, pl.read_csv(cross)["value"].to_list()) == (0, [9, 10, 11, 100])


def test_pictures():
    loads = [10, 12, 15, 40]
    assert sum(int(line.split()[-1]) for line in as_text(loads, 10)) == 4
    assert as_svg(loads, 10, 40, "a <b>").count("<rect") == 5
    assert "a &lt;b&gt;" in as_svg(loads, 10, None, "a <b>")
    assert as_svg(list(range(10, 5000)), 10, 5000, "many").count("<rect") <= 401


@pytest.mark.slow
@pytest.mark.skipif(find_spec("names") is None, reason="the package names, which carries the lists, is not installed")
def test_figure_7(tmp_path):
    status, out, _ = run("reproduce", "names", "-o", tmp_path, "--json")
    answer = told(out)
    assert status == 0
    assert set(answer["proved_optimal"].values()) == {1.0}
    assert len(answer["observations"]) == 15
    found = pl.read_csv(tmp_path / "MALE-1990.csv")
    assert (found["k"][0], found["k"][-1], len(found)) == (3318, 45026, 41709)
    assert (found["lower_bound"] <= found["optimum"]).all()
    for curve in ("fold_random", "fold_sorted", "spread_random", "spread_sorted"):
        assert (found["optimum"] <= found[curve]).all()
    worst = pl.read_csv(tmp_path / "MALE-1990-subranges.csv")
    ratio = (found["fold_sorted"] / found["k"]).filter(found["k"].is_between(worst["from_k"][3], worst["to_k"][3]))
    assert worst["fold_sorted"][3] == pytest.approx(ratio.max(), abs=1e-6)
    assert (tmp_path / "names.png").read_bytes().startswith(b"\x89PNG")


def test_empty_and_missing_labels_are_one_label(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('code,n\na,5\n,2\nc,3\n"",2\n')
    asked = ("labels", path, "--label", "code", "--count", "n", "--k", 5)
    run(*asked, "-o", tmp_path / "c.csv", "--hierarchy", tmp_path / "h.csv").ok()
    assert set(pl.read_csv(tmp_path / "c.csv", infer_schema=False)["value"]) == {None, "a", "c"}
    run("verify", tmp_path / "c.csv", "--original", path).ok()
    run(*asked, "-o", tmp_path / "p.parquet").ok()
    run("verify", tmp_path / "p.parquet", "--original", path).ok()
    frame = pl.DataFrame({"code": ["a", None, ""]})
    made = shoal.release(shoal.labels.cover([1, 1, 1], 1), frame, label="code")
    with pytest.raises(InputError, match="column 'code' has empty texts and missing values"):
        made.write(tmp_path / "f.csv")
    made.write(tmp_path / "f.parquet")
    assert shoal.verify(tmp_path / "f.parquet", original=frame).holds


@pytest.mark.parametrize(
    ("count", "said"),
    [
        ("", "column 'n' is empty in row 2; write a whole number"),
        ("2.5", "column 'n' holds what is not a whole number in row 2"),
        ("6/3", "column 'n' holds what is not a whole number in row 2"),
        ("-4", "column 'n' has a number below 0 in row 2"),
    ],
)
def test_a_count_that_is_none_is_named_by_its_row(count, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"code,n\na,5\nb,{count}\nc,3\n")
    refused = run("labels", path, "--label", "code", "--count", "n", "--k", 5)
    refused.refused(2, said)
    if count not in ("", "6/3"):
        frame = pl.DataFrame({"code": ["a", "b", "c"], "n": [5.0, float(count), 3.0]})
        frame.write_parquet(tmp_path / "t.parquet")
        run("labels", tmp_path / "t.parquet", "--label", "code", "--count", "n", "--k", 5).refused(2, said)


def test_counts_with_decimals_that_are_zero(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,n\na,5.0\nb, 2.\nc,3.00\n")
    _, out, _ = run("labels", path, "--label", "code", "--count", "n", "--k", 5, "-o", tmp_path / "c.csv").ok()
    assert "3 labels, 10 records, 2 groups of 5 to 5" in out
    run("verify", tmp_path / "c.csv", "--original", path).ok()


def test_a_bound_of_divided_counts_says_so():
    assert shoal.labels.cover([5], 5).certificate.bound == (
        "the largest item, 1, lies in some bin, with all counts and k divided by 5"
    )
