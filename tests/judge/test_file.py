"""A release's file is the one that is named, whatever stands in the name.

What stands beside a crosswalk is judged too: a hierarchy's groups.
"""

from pathlib import Path

import polars as pl
import pytest

from shoal.judge.crosswalk import judge_hierarchy
from shoal.judge.file import read_release


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_brackets_and_stars_in_a_name_are_no_patterns(tmp_path: Path, ending: str) -> None:
    for number, name in enumerate(("p[1]", "p1", "p*")):
        frame, path = pl.DataFrame({"a": [str(number)]}), tmp_path / f"{name}.{ending}"
        frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    assert read_release(tmp_path / f"p[1].{ending}")["a"].to_list() == ["0"]
    assert read_release(tmp_path / f"p*.{ending}")["a"].to_list() == ["2"]


def test_a_folder_named_like_a_column_says_nothing_of_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "a=7").mkdir()
    pl.DataFrame({"b": ["x"]}).write_parquet(tmp_path / "a=7" / "p.parquet")
    assert read_release(tmp_path / "a=7" / "p.parquet").columns == ["b"]


COUNTS = {"a": 2, "b": 3, "c": 4, "d": 1}
ROWS = [["a", "a..b", "*"], ["b", "a..b", "*"], ["c", "c..d", "*"], ["d", "c..d", "*"]]


def failed(found):
    return {f.check for f in found if not f.holds}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows, set()),
        (lambda rows: rows[:3], {"values"}),
        (lambda rows: [*rows, rows[0]], {"values"}),
        (lambda rows: [[*rows[0][:2]], *rows[1:]], {"values"}),
        (lambda rows: [["a", "a", "*"], *rows[1:]], {"k"}),
        (lambda rows: [["a", "c..d", "*"], *rows[1:]], {"k"}),
        (lambda rows: [[*row, "*"] if i else ["a", "a..b", "!", "*"] for i, row in enumerate(rows)], {"k", "nested"}),
    ],
)
def test_a_hierarchy_is_counted_again(tmp_path, change, says):
    path = tmp_path / "h.csv"
    path.write_text("".join(";".join(row) + "\n" for row in change(ROWS)))
    assert failed(judge_hierarchy(path, COUNTS, 4)) == says
