"""CSV bytes bent at random, and a slow reader of RFC 4180 that says what each of them is.

``python -m tests.fuzz.csv_bytes [COUNT] [FIRST_SEED] [polars|duckdb]`` tries COUNT of them and prints what came of it.
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from shoal.errors import InputError

MARKER = "MRK"
Table = tuple[list[str], list[tuple[str | None, ...]]]

_PIECES = [b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"\0", b"\xe9", b"\xef\xbb\xbf"]
_PIECES += [b";", b"#", b" ", b"\n\n", b'",', b',"']


def bent(seed: int) -> bytes:
    """A valid CSV whose cells hold the marker, with none to three bytes or pieces of it changed."""
    draw = random.Random(seed)
    width, height = draw.randint(1, 4), draw.randint(0, 6)
    end = draw.choice(["\n", "\n", "\r\n"])

    def cell(i: int) -> str:
        text = f"{MARKER}{i}" + draw.choice(["", "", "", "é", ",x", "\n", ' "y" ', "\r\n", "👩‍👧", "#"])
        if draw.random() < 0.15:
            return draw.choice(["", '""'])
        if any(c in text for c in ',"\r\n') or draw.random() < 0.2:
            return '"' + text.replace('"', '""') + '"'
        return text

    names = [draw.choice(["{}", '"{}"', "c {}"]).format(chr(97 + j)) for j in range(width)]
    lines = [",".join(names)] + [",".join(cell(i * width + j) for j in range(width)) for i in range(height)]
    if draw.random() < 0.2:
        lines.insert(draw.randint(0, len(lines)), "")
    raw = (draw.choice(["", "", "\ufeff"]) + end.join(lines) + draw.choice(["", end])).encode()
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        at = draw.randint(0, len(raw))
        what = draw.random()
        if what < 0.45:
            raw = raw[:at] + draw.choice(_PIECES) + raw[at:]
        elif what < 0.7:
            raw = raw[:at] + raw[at + 1 :]
        elif what < 0.85:
            raw = raw[:at] + draw.choice(_PIECES) + raw[at + 1 :]
        elif what < 0.95:
            other = draw.randint(at, len(raw))
            raw = raw[:other] + raw[at:other] + raw[other:]
        else:
            raw = raw[:at]
    return raw


def read(raw: bytes) -> Table | None:
    """(names, rows) of a CSV with commas, None for what shoal must refuse: one character after the other."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    records: list[list[str | None]] = []
    record: list[str | None] = []
    i = 0
    while i < len(text):
        value: str | None
        if text[i] == '"':
            value, i = "", i + 1
            while True:
                if i >= len(text):
                    return None
                if text[i] != '"':
                    value, i = value + text[i], i + 1
                elif text[i + 1 : i + 2] == '"':
                    value, i = value + '"', i + 2
                else:
                    i += 1
                    break
        else:
            start = i
            while i < len(text) and text[i] not in ',\r\n"':
                i += 1
            value = text[start:i] or None
        record.append(value)
        if i < len(text) and text[i] == ",":
            i += 1
            if i < len(text):
                continue
            record.append(None)
        elif text[i : i + 2] == "\r\n":
            i += 2
        elif text[i : i + 1] == "\n":
            i += 1
        elif i < len(text):
            return None
        records.append(record)
        record = []
    while records and records[0] == [None]:
        records.pop(0)
    if not records:
        return None
    names = records.pop(0)
    if len(names) > 1:
        records = [r for r in records if r != [None]]
    if not records or any(len(r) != len(names) for r in records):
        return None
    if any(not (n or "").strip() for n in names) or len(set(names)) < len(names):
        return None
    if len(names) == 1 and any(s in (names[0] or "") for s in ";\t|"):
        return None
    return [n or "" for n in names], [tuple(v or None for v in r) for r in records]


def outcome(raw: bytes, path: Path, engine: str = "polars") -> str:
    """ "read" or "refused"; AssertionError where shoal and the slow reader differ, or a message shows a cell."""
    path.write_bytes(raw)
    expected = read(raw)
    found, refusal = _found(path, engine)
    if found is None:
        assert MARKER not in refusal, raw
        words = "CR LF", "by case alone", "a line break", "ends with a space"
        more = engine != "polars" and any(word in refusal for word in words)
        assert expected is None or more, (raw, refusal)
        return "refused"
    assert found == expected, raw
    return "read"


def _found(path: Path, engine: str) -> tuple[Table | None, str]:
    try:
        if engine == "polars":
            from shoal.engines.store import read_table

            frame = read_table(path, separator=",")
            return (frame.columns, frame.rows()), ""
        from shoal.engines.open import open_file

        table = open_file(path, engine, separator=",")
        return (table.columns, table.native.fetchall()), ""
    except InputError as error:
        return None, str(error)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    by = sys.argv[3] if len(sys.argv) > 3 else "polars"
    with tempfile.TemporaryDirectory() as folder:
        seen = Counter(outcome(bent(first + i), Path(folder) / "t.csv", by) for i in range(count))
        print(count, "files from seed", first, by, dict(seen))
