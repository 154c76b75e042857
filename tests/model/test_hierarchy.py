"""Hierarchies: files as their makers write them, builders, and refusals that name the column and the value."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.model.hierarchy import Hierarchy, Resolved
from shoal.model.recoding import Levels
from tests.data import real

WORK = "Private;Paid;*\nSelf-emp;Paid;*\nState-gov;Government;*\nNever-worked;Unpaid;*\n"


def texts(found: Resolved, level: int) -> list[str]:
    """What every value is published as at a level."""
    return [found.labels[level][c] for c in found.node[level]]


def well_formed(found: Resolved, size: int) -> None:
    h = found.node.shape[0]
    assert found.node.dtype == np.int32
    assert found.node.shape == (h, size)
    assert len(found.labels) == h
    assert found.node[0].tolist() == list(range(size))
    assert found.labels[-1] == ("*",)
    assert not found.node[-1].any()
    for level in range(h):
        assert set(found.node[level].tolist()) == set(range(len(found.labels[level]))) or size == 0
    Levels.tree(found.node)  # refuses levels that are not nested


@pytest.mark.parametrize("mark", [";", ",", "\t"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_an_arx_file_is_read_as_it_stands(tmp_path, mark, bom):
    path = tmp_path / "work.csv"
    path.write_text(bom + WORK.replace(";", mark) + "\n\n", encoding="utf-8")
    found = Hierarchy.from_csv(path).resolve(["Never-worked", "Private", "Self-emp"], "work")
    well_formed(found, 3)
    assert texts(found, 1) == ["Unpaid", "Paid", "Paid"]
    assert found.labels[0] == ("Never-worked", "Private", "Self-emp")


def test_a_file_of_windows_is_read_and_no_other_bytes(tmp_path):
    path = tmp_path / "h.csv"
    path.write_bytes("Köln;€ 10–20;*\nUlm;€ 20–30;*\n".encode("cp1252"))
    assert Hierarchy.from_csv(path).resolve(["Köln", "Ulm"]).labels[1] == ("€ 10–20", "€ 20–30")
    for odd, line in ((b"Ulm;a;*\nK\x81ln;a;*\n", 2), ("Ulm;Süd;*\n".encode("utf-16"), 1)):
        path.write_bytes(odd)
        with pytest.raises(PolicyError, match=f"has a byte in line {line} that is no text in UTF-8 or Windows-1252"):
            Hierarchy.from_csv(path)


def test_quotes_a_heading_and_a_separator_inside_a_value(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text('value;kind;top\n"a;b";X;*\n"c, d";Y;*\n', encoding="utf-8")
    found = Hierarchy.of(str(path)).resolve(["a;b", "c, d"])
    assert texts(found, 1) == ["X", "Y"]


def test_separators_at_the_ends_of_lines_and_a_missing_root_change_nothing():
    plain = Hierarchy.from_rows([["a", "X"], ["b", "X"], ["c", "Y"]])
    assert plain == Hierarchy.from_rows([["a", "X", "*"], ["b", "X", "*"], ["c", "Y", "*"]])
    assert plain == Hierarchy.from_rows([["a", "X", "*", ""], ["b", "X", "*", ""], ["c", "Y", "*", ""]])
    assert plain == Hierarchy.from_rows([["a", "X", "Any"], ["b", "X", "Any"], ["c", "Y", "Any"]])


def test_one_value_and_no_class_is_a_hierarchy_of_that_value():
    found = Hierarchy.from_rows([["a"]]).resolve(["a"])
    assert found.labels == (("a",), ("*",))


def test_levels_keep_the_file_s_numbers_when_only_one_class_occurs():
    found = Hierarchy.from_rows([["a", "X", "*"], ["b", "X", "*"], ["c", "Y", "*"]]).resolve(["a", "b"])
    assert found.labels == (("a", "b"), ("X",), ("*",))


def test_missing_is_a_value_of_its_own_under_the_root():
    found = Hierarchy.from_rows([["a", "X"], ["b", "X"], ["c", "Y"]]).resolve(["a", None, "b"])
    well_formed(found, 3)
    assert found.node[1].tolist() == [0, 1, 0]
    assert found.labels[1] == ("X", "")


def test_a_file_of_amnesia(tmp_path):
    path = tmp_path / "work.txt"
    path.write_text(
        "distinct\nname workclass_hier\ntype string\nheight 3\n\nNon-Gov has Private Self-emp \n"
        "Gov has Federal Local State \n\nAny has Non-Gov Gov \n\n",
        encoding="utf-8",
    )
    found = Hierarchy.of(path).resolve(["State", "Private", "Local"])
    well_formed(found, 3)
    assert texts(found, 1) == ["Gov", "Non-Gov", "Gov"]
    assert len(found.labels) == 3
    path.write_text("range\nname age\n", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"Hierarchy\.intervals"):
        Hierarchy.of(path)


def test_a_tree_of_unequal_depth_repeats_the_shallow_value():
    tree = Hierarchy.of({"World": {"Asia": {"East": ["China", "Japan"], "West": ["Iran"]}, "Europe": ["France"]}})
    found = tree.resolve(["China", "Japan", "Iran", "France"])
    well_formed(found, 4)
    assert texts(found, 1) == ["East", "East", "West", "France"]
    assert texts(found, 2) == ["Asia", "Asia", "Asia", "Europe"]
    assert tree == Hierarchy.tree({"Asia": {"East": ["China", "Japan"], "West": ["Iran"]}, "Europe": ["France"]})


def test_columns_of_levels_are_rows_read_downwards():
    assert Hierarchy.of({0: ["a", "b"], 1: ["X", "Y"]}) == Hierarchy.from_rows([["a", "X"], ["b", "Y"]])


def test_intervals_by_widths():
    found = Hierarchy.intervals([5, 10]).resolve(["3", "7", "12", "10"], "age")
    well_formed(found, 4)
    assert texts(found, 1) == ["0-4", "5-9", "10-14", "10-14"]
    assert texts(found, 2) == ["0-9", "0-9", "10-19", "10-19"]
    assert texts(Hierarchy.intervals([5], origin=1).resolve(["5", "6"]), 1) == ["1-5", "6-10"]
    assert texts(Hierarchy.intervals([0.5]).resolve(["0.25", "0.5", "1e0"]), 1) == ["[0, 0.5)", "[0.5, 1)", "[1, 1.5)"]
    assert texts(Hierarchy.intervals([10]).resolve(["-3", "4"]), 1) == ["[-10, 0)", "0-9"]
    assert texts(Hierarchy.intervals([0.1]).resolve(["0.3", "0.29"]), 1) == ["[0.3, 0.4)", "[0.2, 0.3)"]


def test_intervals_by_cuts():
    found = Hierarchy.intervals([[18, 30, 65], [18, 65]]).resolve(["17", "18", "29", "30", "64", "65"])
    well_formed(found, 6)
    assert texts(found, 1) == ["<18", "18-29", "18-29", "30-64", "30-64", ">=65"]
    assert texts(found, 2) == ["<18", "18-64", "18-64", "18-64", "18-64", ">=65"]


def test_prefixes_of_zip_codes():
    found = Hierarchy.prefixes([4, 3]).resolve(["47677", "47602", "47678", "0123"])
    well_formed(found, 4)
    assert texts(found, 1) == ["4767*", "4760*", "4767*", "0123"]
    assert texts(found, 2) == ["476**", "476**", "476**", "012*"]
    assert Hierarchy.of("prefixes:4,3") == Hierarchy.prefixes([4, 3])
    assert Hierarchy.prefixes().resolve(["abc", "abd"]).node.shape == (4, 2)
    assert texts(Hierarchy.prefixes([1], fill="").resolve(["ab", "ac"]), 1) == ["a", "a"]


def test_dates():
    found = Hierarchy.dates(["month", "quarter", "year", "decade"]).resolve(["2024-03-05", "2024-01-09", "1999", None])
    well_formed(found, 4)
    assert texts(found, 1) == ["2024-03", "2024-01", "1999", ""]
    assert texts(found, 2) == ["2024-Q1", "2024-Q1", "1999", ""]
    assert texts(found, 4) == ["2020s", "2020s", "1990s", ""]
    assert texts(Hierarchy.of("dates:year").resolve(["2024-03-05T10:00:00"]), 1) == ["2024"]


def test_stars_are_the_hierarchy_of_height_one():
    found = Hierarchy.of("stars").resolve(["x", "y"])
    assert found.node.tolist() == [[0, 1], [0, 0]]
    assert Hierarchy.stars().resolve([]).node.shape == (2, 0)


@pytest.mark.parametrize(
    ("make", "values", "says"),
    [
        (
            lambda: Hierarchy.from_rows([["a", "X"], ["b", "Y"]]),
            ["a", "q"],
            "'col' does not cover 1 of the column's values",
        ),
        (
            lambda: Hierarchy.from_rows([["1234", "X"], ["b", "Y"]]),
            ["01234"],
            "it has 1 of them but for blanks.*write both alike",
        ),
        (lambda: Hierarchy.from_rows([["39", "X"], ["b", "Y"]]), ["39.0"], "it has 1 of them"),
        (lambda: Hierarchy.intervals([5]), ["4", "many"], "'col' has a value that is not a number"),
        (lambda: Hierarchy.intervals([5]), ["nan"], "not a number"),
        (lambda: Hierarchy.dates(), ["05/03/2024"], "'col' has a value that is not a date.*2024-03-05"),
        (lambda: Hierarchy.dates(), ["2024-02-30"], "is not a date"),
        (lambda: Hierarchy.stars(), ["a", "a"], "not distinct"),
    ],
)
def test_a_value_that_is_not_covered_is_refused_by_its_column_alone(make, values, says):
    """Few rows may share the value."""
    with pytest.raises(PolicyError, match=says) as told:
        make().resolve(values, "col")
    assert not any(repr(v) in str(told.value) for v in values)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Hierarchy.from_rows([["a", "X"], ["a", "Y"]]), "one value in rows 1 and 2"),
        (
            lambda: Hierarchy.from_rows([["a", "X", "M"], ["b", "X", "N"]]),
            "one class at level 1 lies in two classes at level 2, see rows 1 and 2",
        ),
        (lambda: Hierarchy.from_rows([["a", "X"], ["b"]]), "1 in row 2"),
        (lambda: Hierarchy.from_rows([]), "empty"),
        (lambda: Hierarchy.from_rows(["ab"]), "sequence"),
        (lambda: Hierarchy.from_rows([["a", "X"], 7]), "sequence"),
        (lambda: Hierarchy.from_rows([[]]), "sequence"),
        (lambda: Hierarchy.tree({}), "empty"),
        (lambda: Hierarchy.tree({"A": ["x"], "B": ["x"]}), "one value in rows 1 and 2"),
        (lambda: Hierarchy.intervals([5, 12]), "12 is no multiple of the width 5"),
        (lambda: Hierarchy.intervals([0]), "above 0"),
        (lambda: Hierarchy.intervals([]), "at least one"),
        (lambda: Hierarchy.intervals([5, [1, 2]]), "not by both"),
        (lambda: Hierarchy.intervals([[1, 2], [3]]), "cut at 3"),
        (lambda: Hierarchy.prefixes([3, 4]), "fall"),
        (lambda: Hierarchy.dates(["year", "month"]), "rise"),
        (lambda: Hierarchy.dates(["yaer"]), "did you mean 'year'"),
        (lambda: Hierarchy.of(7), "int"),
        (lambda: Hierarchy.of({0: ["a"], 1: []}), "differ in length"),
        (lambda: Hierarchy.of("intervals:5,x"), "'x' is not a number"),
    ],
)
def test_a_hierarchy_that_is_none_is_refused(make, says):
    with pytest.raises(PolicyError, match=says):
        make()


def test_a_heading_is_no_value() -> None:
    """Taken for one, it would be a leaf too many, and '*' a class of its own: the loss would be too small."""
    rows = [["34", "<50", "*"], ["45", "<50", "*"], ["66", ">=50", "*"]]
    with pytest.raises(PolicyError, match=r"ends every row with '\*' but row 1; if row 1 is a heading, leave it out"):
        Hierarchy.from_rows([["value", "level1", "level2"], *rows])
    assert Hierarchy.from_rows(rows).resolve(["34", "66"]).labels[1] == ("<50", ">=50")


def test_columns_in_the_wrong_order_are_refused_by_that():
    with pytest.raises(PolicyError, match=r"begins every row with '\*'; turn the order of its columns round"):
        Hierarchy.of([["*", "north", "a"], ["*", "north", "b"], ["*", "south", "c"]])
    assert Hierarchy.of([["*", "*"]]).rows == Hierarchy.of([["*", "*"]]).rows  # a value may be the star


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match="no hierarchy file"):
        Hierarchy.of(tmp_path / "none.csv")
    path = tmp_path / "h.csv"
    path.write_text("a;X;*\nb;*\n", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"'h\.csv' has 3 fields in row 1 and 2 in row 2"):
        Hierarchy.of(path)
    path.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(PolicyError, match="no classes"):
        Hierarchy.of(path)


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.one_of(st.none(), st.integers(0, 200).map(str)), unique=True, max_size=12),
    which=st.sampled_from(["intervals:3,6,60", "prefixes", "prefixes:2,1", "stars"]),
)
def test_every_builder_gives_nested_levels_and_values_of_their_own(values, which):
    found = Hierarchy.of(which).resolve(values)
    well_formed(found, len(values))
    for low, high in pairwise(found.node):
        assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == len(set(low.tolist()))
    if None in values:
        at = values.index(None)
        for level in found.node[:-1]:
            assert level.tolist().count(level[at]) == 1


def test_the_hierarchies_of_adult_cover_adult():
    import polars as pl

    folder = real("adult")
    table = pl.read_csv(folder / "adult.csv", infer_schema=False)
    for name in table.columns:
        values = table[name].unique().sort().to_list()
        path = folder / "hierarchies" / f"adult_hierarchy_{name}.csv"
        found = Hierarchy.of(path).resolve(values, name)
        well_formed(found, len(values))
        lines = {line.split(";")[0]: line.split(";") for line in path.read_text().splitlines()}
        for code, value in enumerate(values):
            shown = [labels[node[code]] for node, labels in zip(found.node, found.labels, strict=True)]
            assert shown == lines[value]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Hierarchy.intervals([5, 10]), "intervals:5,10"),
        (Hierarchy.intervals([0.5, 2]), "intervals:1/2,2"),
        (Hierarchy.intervals([5], origin=3), None),
        (Hierarchy.intervals([[18, 65]]), None),
        (Hierarchy.prefixes([4, 2]), "prefixes:4,2"),
        (Hierarchy.prefixes([4, 2], fill=""), None),
        (Hierarchy.prefixes(), "prefixes"),
        (Hierarchy.dates(["year"]), "dates:year"),
        (Hierarchy.stars(), "stars"),
        (Hierarchy.from_rows([["a", "*"]]), None),
    ],
)
def test_a_builder_is_the_text_that_makes_the_same_hierarchy(made, text):
    assert made.builder == text
    if text is not None:
        assert Hierarchy.of(text) == made


def test_a_quote_left_open_in_a_file_shows_no_value(tmp_path):
    """Neither where the file ends inside it nor where another one closes it."""
    path = tmp_path / "h.csv"
    for text in ('zq1,low,any\nzq2,low,"any\nzq3,high,any\n', 'zq1,low,any\nzq2,low,"any\nzq3,high,any"\n'):
        path.write_text(text)
        with pytest.raises(PolicyError, match="left open") as told:
            Hierarchy.from_csv(path)
        assert "zq" not in str(told.value)


def test_a_whole_number_listed_with_a_point_is_refused_with_a_way_out():
    """A column of floats has the value 34 for 34.0, which pandas shows."""
    listed = Hierarchy.from_rows([["34.0", "30s", "*"], ["41.5", "40s", "*"]])
    with pytest.raises(
        PolicyError, match="does not cover 1 of the column's values; list a whole number without a point"
    ):
        listed.resolve(["34", "41.5", None], "age")
