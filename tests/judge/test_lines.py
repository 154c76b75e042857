"""Tuples of a released CSV, counted line by line where lines are rows: what Python's own reader of CSV counts.

Whole numbers as a file spells them: read as Python reads them one by one, at any length; nothing else is one.
"""

import csv
import io
import random
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.errors import VerificationError
from shoal.judge.crosswalk import whole
from shoal.judge.file import codes, same_counts
from shoal.judge.models import ClassCounts
from shoal.judge.models.size_and_diversity import recursive_level
from shoal.judge.tables import large
from shoal.judge.tables.large import count_release
from tests.amount import thinned

PIECES = ["x", "y", "z", "é", "", " ", "*", "7", "07", "a\x01b", "a,b", 'a"b', "a\nb", "a\r\nb", "#"]


def counted(path: Path, names: list[str], separator: str = ",") -> Counter:
    held = count_release(path, names, separator)
    found: Counter = Counter()
    for row, n in zip(held.cells.select(pl.all().cast(pl.String)).rows(), held.counts.tolist(), strict=True):
        found[tuple(v or "" for v in row)] += n
    return found


def by_hand(text: str, names: list[str], separator: str) -> Counter:
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    at = [rows[0].index(n) for n in names]
    return Counter(tuple(row[i] for i in at) for row in rows[1:])


@pytest.mark.parametrize("seed", range(thinned(60)))
def test_as_often_as_another_reader_counts(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    separator, width = draw.choice(",;\t"), draw.randint(2, 4)
    pieces = draw.sample(PIECES, 4) if seed % 2 else PIECES[:9]
    names = [f"c{i}" for i in range(width)]
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, lineterminator=draw.choice(["\n", "\n", "\r\n"]))
    writer.writerows([names, *([draw.choice(pieces) for _ in names] for _ in range(draw.randint(1, 60)))])
    text = file.getvalue() if draw.random() < 0.8 else file.getvalue().rstrip("\r\n")
    if text.count("\n") == 0:
        return
    path = tmp_path / "out.csv"
    path.write_bytes(text.encode())
    draw.shuffle(names)
    assert counted(path, names, separator) == by_hand(text, names, separator)
    assert counted(path, names[:1], separator) == by_hand(text, names[:1], separator)


def test_lines_are_counted_where_lines_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files go that way; a quote, a carriage return or a header in another form keeps one from it."""
    found: list[bool] = []
    own = large._count_lines
    monkeypatch.setattr(large, "_count_lines", lambda *a: found.append((held := own(*a)) is not None) or held)
    for text in ("a,b\n1,x\n1,x\n,\n", 'a,b\n"1",x\n', "a,b\r\n1,x\r\n", '"a",b\n1,x\n', "a,b\n1\x01,x\n"):
        (tmp_path / "t.csv").write_text(text, newline="")
        assert count_release(tmp_path / "t.csv", ["b", "a"]).counts.sum() == text.count("\n") - 1
    assert found == [True, False, False, False, False]


def test_a_folder_is_counted_as_one(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"part-{i}.csv").write_text(f"a,b\nx,{i % 2}\nx,0\n")
    assert counted(tmp_path, ["a", "b"]) == {("x", "0"): 5, ("x", "1"): 1}


def test_any_separator_and_no_rows(tmp_path: Path) -> None:
    for separator in (",", "\x01"):
        (tmp_path / "t.csv").write_text(f"a{separator}b\n")
        assert not counted(tmp_path / "t.csv", ["a", "b"], separator)


def test_a_line_with_a_field_too_many_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n1,x,y\n")
    with pytest.raises(Exception, match="cannot be read back"):
        count_release(tmp_path / "t.csv", ["a", "b"])


@pytest.mark.parametrize("seed", range(thinned(40)))
def test_categories_are_compared_by_their_texts(seed: int) -> None:
    """Whatever number a category has on either side, and however a tuple is spread over lines."""
    draw = random.Random(seed)
    words = ["x", "y", "", None, "*", "10"]
    rows = [(draw.choice(words), draw.choice(words)) for _ in range(draw.randint(1, 8))]
    other = list(rows)
    draw.shuffle(other)
    if seed % 2:
        other[0] = (draw.choice(words), draw.choice(words))

    def frame(held: list) -> pl.DataFrame:
        text = pl.DataFrame(held, schema={"a": pl.String, "b": pl.String}, orient="row")
        return text.select(pl.col(n).cast(pl.Categorical(pl.Categories.random())) for n in text.columns)

    def count(held: list) -> Counter:
        return Counter(tuple(v or "" for v in row) for row in held)

    one = np.ones(len(rows), np.int64)
    empty, missing = (frame([("x", ""), *rows]), frame([("x", None), *rows]))
    two = np.ones(len(rows) + 1, np.int64)
    assert same_counts((empty, two), (missing, two), form="csv")
    assert not same_counts((empty, two), (missing, two))
    assert same_counts((frame(rows), one), (frame(other), one), form="csv") == (count(rows) == count(other))


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64])
@pytest.mark.parametrize("missing", [False, True])
def test_codes_are_equal_where_cells_are(kind: type[pl.DataType], missing: bool) -> None:
    """At both ends of a type, whose difference the type itself may not hold."""
    ends = [pl.select(end).item() for end in (kind.min(), kind.max())]  # type: ignore[attr-defined]
    for low in ends if kind in (pl.Int64, pl.UInt64) else ends[:1]:
        step = 1 if low == ends[0] else -1
        cells = [low, low + step, low, low + 100 * step, *([None] if missing else [])]
        cells += [] if kind in (pl.Int64, pl.UInt64) else [ends[1]]
        found = codes(pl.Series(cells, dtype=kind)).tolist()
        assert [[a == b for b in found] for a in found] == [[a == b for b in cells] for a in cells]
        assert min(found) == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_behind_the_most_frequent_value(seed: int) -> None:
    """Counted at once where one value is left out, and in falling order where more are."""
    draw = np.random.default_rng(seed)
    group, value = draw.integers(0, 4, 30), draw.integers(0, 5, 30)
    group = np.unique(group, return_inverse=True)[1]
    column = ClassCounts(group, pl.Series(value), np.bincount(group), None, None)
    for l in (2, 3):
        each = [sorted(Counter(value[group == g].tolist()).values(), reverse=True) for g in range(group.max() + 1)]
        ratio = [held[0] / sum(held[l - 1 :]) if held[l - 1 :] else np.inf for held in each]
        assert recursive_level(column, l) == max(ratio)


HUGE = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["12", " 7 ", "-3", "+4", "007"], [12, 7, -3, 4, 7]),
        (["999999999999999999", "1"], [10**18 - 1, 1]),
        ([HUGE, "1"], [int(HUGE), 1]),
        (["12.0", "1e3"], [12, 1000]),
        ([3, 4], [3, 4]),
        ([3.0, 4.0], [3, 4]),
        ([], []),
    ],
)
def test_numbers_of_any_spelling(values, numbers):
    dtype = pl.String if not values or isinstance(values[0], str) else None
    assert whole(pl.DataFrame({"n": pl.Series(values, dtype=dtype)}), "n") == numbers


@pytest.mark.parametrize("values", [["1", None], [1, None], ["1", ""], ["1.5"], [1.5], ["1", "2 3"], ["x"], ["1\n2"]])
def test_what_is_none_is_refused(values):
    with pytest.raises(VerificationError, match="no whole number"):
        whole(pl.DataFrame({"n": values}), "n")
