"""What stands beside a crosswalk is judged too: a hierarchy's groups."""

from __future__ import annotations

import pytest

from shoal.judge.crosswalk import judge_hierarchy

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
