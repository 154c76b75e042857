"""What stands beside a crosswalk is judged too: a hierarchy's groups, the outlines of regions."""

from __future__ import annotations

import pytest

from shoal.judge.nested import judge_hierarchy, judge_regions_drawn

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


def test_outlines_are_the_regions():
    drawn = [{"region": "x", "people": 5}, {"region": "y", "people": 7.0}]
    assert failed(judge_regions_drawn(drawn, {"x": 5, "y": 7}, "people")) == set()
    assert failed(judge_regions_drawn(drawn, {"x": 5, "y": 8}, "people")) == {"weights"}
    assert failed(judge_regions_drawn(drawn[:1], {"x": 5, "y": 7}, "people")) == {"outlines"}
    assert failed(judge_regions_drawn([*drawn, drawn[0]], {"x": 5, "y": 7}, "people")) == {"outlines"}
