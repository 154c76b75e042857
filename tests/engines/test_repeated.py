"""A CSV of few different lines is counted by lines: the same release, byte for byte, and the same refusals."""

import csv
import io
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.engines import open
from shoal.engines.open import open_table
from shoal.engines.source import locate
from shoal.errors import InputError
from tests.fuzz import csv_bytes

SECRET = b"sixteen bytes or more"
ROLES: dict[str, Any] = {"quasi_identifiers": ["town", "age"], "sensitive": ["ill"]}
ASKED: dict[str, Any] = {**ROLES, "k": 3, "effort": "fast", "seed": 1, "secret": SECRET}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are small ones."""
    monkeypatch.setattr(open, "LEAST", 0)


@pytest.fixture
def by_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on every file is read row by row."""
    return lambda: monkeypatch.setattr(open, "LEAST", 1 << 60)


def people(separator: str = ",", end: str = "\n", rows: int = 300) -> str:
    """Rows of which many are alike; some values are missing, two are beyond ASCII."""
    draw = random.Random(3)
    towns, ills = ["Ulm", "Köln", "", "Bonn"], ["flu", "gout", "grippe é", ""]
    lines = [f"{draw.choice(towns)}{separator}{draw.randint(8, 12)}{separator}{draw.choice(ills)}" for _ in range(rows)]
    return end.join([separator.join(("town", "age", "ill")), *lines])


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def kind(path: Path, **more: Any) -> str:
    return type(open_table(path, coded=["town", "age", "ill"], **more)).__name__


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_every_line_is_counted(tmp_path: Path, separator: str, end: str) -> None:
    path = write(tmp_path / "t.csv", people(separator) + end)
    table = open_table(path, coded=["ill", "age", "town"])
    assert type(table).__name__ == "RepeatedTable"
    assert table.rows == 300
    rows = list(csv.reader(io.StringIO(people(separator)), delimiter=separator))[1:]
    for names, of in ((["town", "age", "ill"], (0, 1, 2)), (["ill", "town"], (2, 0)), (["age"], (1,))):
        frame, counts = table.counts(names)
        told = {tuple(v or "" for v in row): n for row, n in zip(frame.rows(), counts.tolist(), strict=True)}
        assert told == Counter(tuple(row[i] for i in of) for row in rows)
    assert table.polars(["age"])["age"].to_list() == [row[1] for row in rows], "row by row for whoever asks"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"publish": "ranges"},
        {"publish": "centers"},
        {"l": 2},
        {"missing": "filled"},
        {"missing": "apart"},
        {"keep_order": True},
        {"identifiers": ["town"], "quasi_identifiers": ["age"]},
        {"sensitive": [], "quasi_identifiers": ["ill", "age", "town"]},
    ],
)
def test_the_same_bytes_as_row_by_row(tmp_path: Path, more: dict[str, Any], by_rows: Callable[[], None]) -> None:
    path = write(tmp_path / "t.csv", people())
    first = shoal.anonymize(path, **{**ASKED, **more})
    first.write(tmp_path / "lines.csv")
    by_rows()
    shoal.anonymize(path, **{**ASKED, **more}).write(tmp_path / "rows.csv")
    assert (tmp_path / "lines.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
    assert shoal.verify(tmp_path / "lines.csv", original=path).holds


def test_a_population_is_counted_so_too(tmp_path: Path, by_rows: Callable[[], None]) -> None:
    path = write(tmp_path / "t.csv", people())
    whole = write(tmp_path / "all.csv", "\n".join(line.rpartition(",")[0] for line in people(rows=900).split("\n")))
    asked = {**ASKED, "population": whole, "presence": (0.0, 0.9)}
    first = shoal.anonymize(path, **asked)
    by_rows()
    assert first.audit == shoal.anonymize(path, **asked).audit


@pytest.mark.parametrize(
    "text",
    [
        people().replace("Ulm", '"Ulm"'),
        people(end="\r\n"),
        people() + "\n\n",
        people().replace("\n", "\n\n", 1),
        "\n" + people(),
        "\ufeff" + people(),
        people().replace("gout", "go\x01ut"),
        people().replace("flu", "\0"),
        "town,age,ill",
        "town,age,ill\n",
        people().replace(",8,", ",8,8,"),
        people().replace("\nUlm,", "\n", 1),
        people().replace("age", "town", 1),
    ],
)
def test_what_else_a_file_may_be_is_read_row_by_row(tmp_path: Path, text: str, by_rows: Callable[[], None]) -> None:
    path = write(tmp_path / "t.csv", text)

    def told() -> Any:
        try:
            table = open_table(path, coded=["town", "age", "ill"])
        except InputError as error:
            return str(error)
        assert type(table).__name__ == "FrameTable"
        return table.polars(table.columns).rows()

    first = told()
    by_rows()
    assert told() == first


CELLS = ["x", "", "é", "NA", "null", " ", "0", "1.0", "#a", "'", "\\", "\u2028", "\x0b", "\t", "*", "y" * 300]
BENT = [b"\n", b",", b'"', b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"\x01", b";"]


def test_lines_are_what_a_slow_reader_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open, "_SHARE", 2.0)
    path, counted = tmp_path / "t.csv", 0
    for seed in range(60):
        draw = random.Random(seed)
        width = draw.randint(1, 4)
        lines = [",".join(draw.choice(CELLS) for _ in range(width)) for _ in range(draw.randint(0, 9))]
        raw = ("\n".join([",".join("abcd"[:width]), *lines]) + draw.choice(["", "\n"])).encode()
        for _ in range(draw.choice([0, 0, 1, 2])):
            at = draw.randint(0, len(raw))
            raw = raw[:at] + draw.choice(BENT) + raw[at + draw.randint(0, 1) :]
        path.write_bytes(raw)
        told = csv_bytes.read(raw)
        table = open.read_repeated(locate(path), ",", None, told[0] if told else list("abcd"))
        if table is None:
            continue
        assert told is not None, raw
        frame, counts = table.counts(told[0])
        assert Counter(dict(zip(frame.rows(), counts.tolist(), strict=True))) == Counter(told[1]), raw
        counted += 1
    assert counted > 10


def test_bytes_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(people().encode("latin-1"))
    assert kind(path, encoding="latin-1") == "FrameTable"
    with pytest.raises(InputError, match="line 2, column 1: a byte that is not UTF-8"):
        kind(path)


def test_a_column_without_a_role_and_lines_that_differ(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", people())
    assert type(open_table(path, coded=["town", "age"])).__name__ == "FrameTable"
    unlike = write(tmp_path / "u.csv", "town,age,ill\n" + "\n".join(f"Ulm,{i},flu" for i in range(300)))
    assert kind(unlike) == "FrameTable"


def test_readers_that_count_other_lines_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", people())
    count = open._counted
    monkeypatch.setattr(open, "_counted", lambda *asked: (lambda f: (f[0], f[1] + (f[1] == 1)))(count(*asked)))
    assert kind(path) == "FrameTable"


def test_a_file_that_changes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", people())
    count = open._counted

    def meanwhile(*asked: Any) -> Any:
        found = count(*asked)
        write(path, people(rows=301))
        return found

    monkeypatch.setattr(open, "_counted", meanwhile)
    with pytest.raises(InputError, match="changed while it was read"):
        kind(path)
    monkeypatch.undo()
    monkeypatch.setattr(open, "LEAST", 0)
    table = open_table(path, coded=["town", "age", "ill"])
    write(path, people(rows=302))
    with pytest.raises(InputError, match="changed while it was read"):
        table.polars(["age"])
