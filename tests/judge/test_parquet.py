"""A Parquet file holds its rows alone: what a forger adds to the footer, an index, a page, or a dictionary is seen.

Files are taken apart and put together here by a reader and a writer of Thrift's compact notation of their own.
"""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import MissingDependencyError, VerificationError
from shoal.judge.contents import beyond_rows

TRUE, FALSE, BYTE, SHORT, LONG, TEXT, LIST, STRUCT = 1, 2, 3, 5, 6, 8, 9, 12
Tree = dict[int, tuple[int, Any]]  # for each entry its kind and its value; a list has the kind of its items, and them


def unsigned(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value, byte, at, shift = value | (raw[at] & 127) << shift, raw[at], at + 1, shift + 7
        if byte < 128:
            return value, at


def taken(raw: bytes, at: int, kind: int = STRUCT) -> tuple[Any, int]:
    """A value of a kind, and the place after it."""
    if kind in (TRUE, FALSE):
        return None, at
    if kind == BYTE:
        return raw[at], at + 1
    if kind in (SHORT, LONG):
        return unsigned(raw, at)
    if kind == TEXT:
        size, at = unsigned(raw, at)
        return raw[at : at + size], at + size
    if kind == LIST:
        own, size, at, items = raw[at] & 15, raw[at] >> 4, at + 1, []
        if size == 15:
            size, at = unsigned(raw, at)
        for _ in range(size):
            item, at = (raw[at], at + 1) if own in (TRUE, FALSE) else taken(raw, at, own)
            items.append(item)
        return (own, items), at
    found: Tree = {}
    last = 0
    while head := raw[at]:
        last, at = last + (head >> 4), at + 1
        value, at = taken(raw, at, head & 15)
        found[last] = (head & 15, value)
    return found, at + 1


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def put(kind: int, value: Any) -> bytes:
    """A value of a kind in the compact notation."""
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind in (SHORT, LONG):
        return varint(value)
    if kind == TEXT:
        return varint(len(value)) + value
    if kind == LIST:
        own, items = value
        body = bytes(items) if own in (TRUE, FALSE) else b"".join(put(own, item) for item in items)
        return (
            bytes([len(items) << 4 | own]) if len(items) < 15 else bytes([15 << 4 | own]) + varint(len(items))
        ) + body
    raw, last = b"", 0
    for number, (own, item) in sorted(value.items()):
        raw += (bytes([number - last << 4 | own]) if number - last < 16 else bytes([own]) + varint(number << 1)) + put(
            own, item
        )
        last = number
    return raw + b"\0"


def number(value: int, kind: int = LONG) -> tuple[int, int]:
    """A whole number as an entry."""
    return kind, value << 1 if value >= 0 else (-value << 1) - 1


def footer_of(raw: bytes) -> tuple[bytes, Tree]:
    """What is before the footer, and the footer."""
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    return raw[:end], taken(raw, end)[0]


def whole(before: bytes, footer: Tree) -> bytes:
    raw = put(STRUCT, footer)
    return before + raw + len(raw).to_bytes(4, "little") + b"PAR1"


FRAME = pl.DataFrame({"n": [3, 5, None, 3] * 9, "s": ["a", "b", "b", "a"] * 9}).with_columns(
    long=pl.concat_str(pl.lit("a text of more than thirty bytes "), "s")
)
ANN = (TEXT, b"Ann has flu")


def plain() -> bytes:
    """A file of these rows by pyarrow, which states each thing once."""
    made = io.BytesIO()
    pq.write_table(FRAME.to_arrow(), made, compression="none", write_page_index=True)
    return made.getvalue()


def found_in(folder: Path, raw: bytes) -> str | None:
    """What the judge finds beyond the rows; a refusal shows no value."""
    path = folder / "r.parquet"
    path.write_bytes(raw)
    try:
        found = beyond_rows(path)
    except VerificationError as error:
        found = str(error)
    assert found is None or "Ann" not in found
    return found


def group(footer: Tree) -> Tree:
    return footer[4][1][1][0]


def chunk(footer: Tree, at: int = 0) -> Tree:
    return group(footer)[1][1][1][at]


def meta(footer: Tree, at: int = 0) -> Tree:
    return chunk(footer, at)[3][1]


def element(footer: Tree, at: int) -> Tree:
    return footer[2][1][1][at]


def also(tree: Tree, at: int = 15, what: Any = ANN) -> None:
    tree[at] = what


FOOTERS: dict[str, Callable[[Tree], Any]] = {
    "an entry of the file": also,
    "an entry of a group": lambda f: also(group(f)),
    "an entry of a chunk": lambda f: also(chunk(f)),
    "another file": lambda f: also(chunk(f), 1),
    "an entry of a column": lambda f: also(meta(f), 40),
    "keys of a column": lambda f: also(meta(f), 8, (LIST, (STRUCT, [{1: ANN, 2: ANN}]))),
    "an entry of statistics": lambda f: also(meta(f)[12][1]),
    "an entry of a type": lambda f: also(element(f, 2)[10][1][1][1]),
    "a length of a type without one": lambda f: also(element(f, 1), 2, number(77, SHORT)),
    "an entry of an element": lambda f: also(element(f, 1)),
    "a number of a column": lambda f: also(element(f, 1), 9, number(19870523, SHORT)),
    "an entry of a key": lambda f: also(f[5][1][1][0]),
    "a key": lambda f: f[5][1][1].append({1: ANN, 2: ANN}),
    "a key twice": lambda f: f[5][1][1].append(dict(f[5][1][1][0])),
    "a writer": lambda f: also(f, 6),
    "the table's name": lambda f: also(element(f, 0), 4),
    "an order of columns": lambda f: f[7][1][1][0].update({1: (STRUCT, {1: ANN})}),
    "a lowest text": lambda f: meta(f, 1)[12][1].update({6: (TEXT, b"Ann")}),
    "a highest long text": lambda f: meta(f, 2)[12][1].update({5: (TEXT, b"b text that says that Ann has flu")}),
    "a lowest long text": lambda f: meta(f, 2)[12][1].update({6: (TEXT, b"a text of less: that Ann has flu...")}),
    "a lowest number": lambda f: meta(f)[12][1].update({6: (TEXT, (7).to_bytes(8, "little"))}),
    "a number by the old order": lambda f: meta(f)[12][1].update({2: (TEXT, (7).to_bytes(8, "little"))}),
    "missing values": lambda f: meta(f)[12][1].update({3: number(7)}),
    "different values": lambda f: meta(f)[12][1].update({4: number(7)}),
    "sizes of texts": lambda f: also(meta(f, 1), 16, (STRUCT, {1: number(77)})),
    "counts of missing values": lambda f: also(meta(f), 16, (STRUCT, {3: (LIST, (LONG, [14, 22]))})),
    "counts of lists": lambda f: also(meta(f), 16, (STRUCT, {2: (LIST, (LONG, [70]))})),
    "bytes of a column": lambda f: also(meta(f), 6, number(19870523)),
    "bytes of a group": lambda f: also(group(f), 2, number(19870523)),
    "packed bytes of a group": lambda f: also(group(f), 6, number(19870523)),
    "a place of a group": lambda f: also(group(f), 5, number(19870523)),
    "a place of a chunk": lambda f: also(chunk(f), 2, number(19870523)),
    "numbers of pages": lambda f: also(meta(f), 13, (LIST, (STRUCT, [{1: number(0), 2: number(0), 3: number(77)}]))),
    "an order": lambda f: also(
        group(f), 4, (LIST, (STRUCT, [{1: number(0, SHORT), 2: (TRUE, None), 3: (TRUE, None)}]))
    ),
    "a Bloom filter": lambda f: also(meta(f), 14, number(4)),
    "no index": lambda f: [chunk(f).pop(at) for at in (4, 5)],
}


@pytest.mark.parametrize("how", FOOTERS)
def test_a_footer_states_what_a_writer_states(tmp_path: Path, how: str) -> None:
    raw = plain()
    before, footer = footer_of(raw)
    assert found_in(tmp_path, whole(before, footer)) is None
    FOOTERS[how](footer)
    assert found_in(tmp_path, whole(before, footer)) is not None


def test_a_writer_may_state_that_no_value_is_in_a_list(tmp_path: Path) -> None:
    """As Spark does: each of the 36 rows has a value of its own."""
    before, footer = footer_of(plain())
    also(meta(footer), 16, (STRUCT, {2: (LIST, (LONG, [72]))}))
    assert found_in(tmp_path, whole(before, footer)) is None


@pytest.mark.parametrize("by", ["polars", "pyarrow", "pages of pyarrow"])
def test_pages_and_indexes_state_what_is_true_of_their_rows(tmp_path: Path, by: str) -> None:
    """Each place where an end stands is another copy of it: all are changed, one at a time, in the same length."""
    made = io.BytesIO()
    end = (1234567).to_bytes(8, "little")
    frame = pl.DataFrame({"n": [1234567, None, 1234567, 7654321] * 5})
    if by == "polars":
        frame.write_parquet(made, compression="uncompressed")
    else:
        pages = by != "pyarrow"
        pq.write_table(
            frame.to_arrow(), made, compression="none", use_dictionary=False, write_page_index=pages,
            data_page_version="2.0" if pages else "1.0", column_encoding={"n": "DELTA_BINARY_PACKED"},
        )  # fmt: skip
    raw = made.getvalue()
    assert found_in(tmp_path, raw) is None
    places = [at for at in range(len(raw)) if raw.startswith(end, at)]
    assert len(places) > 1
    for at in places:
        forged = raw[:at] + (1234568).to_bytes(8, "little") + raw[at + 8 :]
        path = tmp_path / "o.parquet"
        path.write_bytes(forged)
        if by == "polars" and at == places[0]:
            continue  # the value itself, in the dictionary or a page
        assert found_in(tmp_path, forged) is not None, at


def page(kind: int, content: bytes, own: Tree, at: int, **more: Any) -> bytes:
    head: Tree = {
        1: number(kind, SHORT),
        2: number(len(content), SHORT),
        3: number(len(content), SHORT),
        at: (STRUCT, own),
    }
    return put(STRUCT, head | {int(n[1:]): x for n, x in more.items()}) + content


def dictionary_file(
    entries: bytes, count: int, kind: int, data: tuple[bytes, int], rows: int, element: Tree | None = None, **more: Any
) -> bytes:
    """A file with a column ``c``: a dictionary page, and a page with (content, encoding)."""
    first = page(2, entries, {1: number(count, SHORT), 2: number(0, SHORT)}, 7, **more)
    own = {1: number(rows, SHORT), 2: number(data[1], SHORT), 3: number(3, SHORT), 4: number(3, SHORT)}
    pages = first + page(0, data[0], own, 5)
    column: Tree = {
        1: number(kind, SHORT), 2: (LIST, (SHORT, [0, 16])), 3: (LIST, (TEXT, [b"c"])), 4: number(0, SHORT),
        5: number(rows), 6: number(len(pages)), 7: number(len(pages)), 9: number(4 + len(first)), 11: number(4),
    }  # fmt: skip
    leaf: Tree = {1: number(kind, SHORT), 3: number(0, SHORT), 4: (TEXT, b"c")} | (element or {})
    owner: Tree = {1: (LIST, (STRUCT, [{2: number(0), 3: (STRUCT, column)}])), 2: number(len(pages)), 3: number(rows)}
    footer: Tree = {
        1: number(1, SHORT), 2: (LIST, (STRUCT, [{4: (TEXT, b"root"), 5: number(1, SHORT)}, leaf])),
        3: number(rows), 4: (LIST, (STRUCT, [owner])),
    }  # fmt: skip
    return whole(b"PAR1" + pages, footer)


def numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in values)


def texts(*values: str) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value.encode() for value in values)


CODED = (bytes([2, 3, 0b00_01_01_00, 0]), 8)  # of two bits each, in a group of eight: 0, 1, 1, 0
TEXTS: Tree = {6: number(0, SHORT), 10: (STRUCT, {1: (STRUCT, {})})}


@pytest.mark.parametrize(
    ("raw", "values", "holds"),
    [
        (dictionary_file(numbers(5, 7), 2, 2, CODED, 4), [5, 7, 7, 5], True),
        (dictionary_file(numbers(5, 7, 7), 3, 2, CODED, 4), [5, 7, 7, 5], False),
        (dictionary_file(numbers(5, 7, 19870523), 3, 2, CODED, 4), [5, 7, 7, 5], False),
        (dictionary_file(numbers(5, 7, 19870523), 2, 2, CODED, 4), [5, 7, 7, 5], False),
        (dictionary_file(numbers(5, 7), 2, 2, CODED, 4, _4=number(77, SHORT)), [5, 7, 7, 5], False),
        (dictionary_file(numbers(5, 7), 2, 2, (numbers(5, 7, 5), 0), 3), [5, 7, 5], True),
        (dictionary_file(numbers(5, 8), 2, 2, (numbers(5, 7, 5), 0), 3), [5, 7, 5], False),
        (dictionary_file(texts("x", "y"), 2, 6, CODED, 4, TEXTS), ["x", "y", "y", "x"], True),
        (dictionary_file(texts("x", "y", "Ann"), 3, 6, CODED, 4, TEXTS), ["x", "y", "y", "x"], False),
        (dictionary_file(texts("x", "y") + b"Ann", 2, 6, CODED, 4, TEXTS), ["x", "y", "y", "x"], False),
        (dictionary_file(texts("x", "Ann"), 2, 6, (texts("x", "y"), 0), 2, TEXTS), ["x", "y"], False),
    ],
)
def test_a_dictionary_has_values_of_rows_alone(tmp_path: Path, raw: bytes, values: list[Any], holds: bool) -> None:
    """Also if the pages of data don't use it."""
    assert (found_in(tmp_path, raw) is None) is holds
    if holds or b"Ann" in raw[-60:]:
        assert pl.read_parquet(tmp_path / "r.parquet", glob=False)["c"].to_list() == values


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_a_column_of_wide_numbers_hides_nothing_else(tmp_path: Path, kind: Any) -> None:
    """pyarrow doesn't read it, so the judge doesn't ask pyarrow."""
    made, table = io.BytesIO(), pl.DataFrame({"w": pl.Series([2**70, 1, None], dtype=kind), "s": ["a", "b", "a"]})
    table.write_parquet(made)
    assert found_in(tmp_path, made.getvalue()) is None
    table.with_columns(pl.col("s").cast(pl.Enum(["a", "b", "Ann"]))).write_parquet(made := io.BytesIO())
    assert found_in(tmp_path, made.getvalue()) is not None
    before, footer = footer_of(made.getvalue())
    assert found_in(tmp_path, whole(before + b"Ann", footer)) is not None
    table.write_parquet(made := io.BytesIO())
    ends = (2**70).to_bytes(16, "big")
    assert (ends in made.getvalue()) is (kind == pl.UInt128)
    forged = made.getvalue().replace(ends, (2**70 + 1).to_bytes(16, "big"))
    assert (found_in(tmp_path, forged) is not None) is (kind == pl.UInt128)


def test_nothing_is_believed_where_pyarrow_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Polars states about the types needs no pyarrow, and what pyarrow states can't be read without it."""
    raw, made = plain(), io.BytesIO()
    FRAME.write_parquet(made)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert found_in(tmp_path, made.getvalue()) is None
    before, footer = footer_of(made.getvalue())
    also(footer)
    assert found_in(tmp_path, whole(before, footer)) is not None
    with pytest.raises(MissingDependencyError, match="needs the package pyarrow"):
        found_in(tmp_path, raw)


def test_a_release_of_plain_types_that_duckdb_counts_is_verified_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"age": [i % 7 for i in range(70)], "sex": ["f", "m"] * 35, "pay": [i / 2 for i in range(70)]}
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    release = shoal.anonymize(
        tmp_path / "t.csv", quasi_identifiers=["age", "sex"], insensitive=["pay"], k=3, engine="duckdb", effort="fast"
    )
    release.write(tmp_path / "r.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert shoal.verify(tmp_path / "r.parquet", tmp_path / "r.certificate.json").holds


SPARK = b"org.apache.spark.sql.parquet.row.metadata"
FIELD = b'{"name":"n","type":"long","nullable":true,"metadata":{}}'
STATED = {
    b'{"type":"struct","fields":[' + FIELD + b"]}": True,
    b'{"type":"struct","fields":[' + FIELD + b'],"who":"Ann"}': False,
    b'{"type":"struct","fields":"Ann","fields":[' + FIELD + b"]}": False,
    b'{"type":"struct","fields":[' + FIELD.replace(b"long", b"Ann") + b"]}": False,
    b'{"type":"struct","fields":[' + FIELD.replace(b"true", b'"Ann"') + b"]}": False,
    b'{"type":"struct","fields": [' + FIELD + b"]}": False,
}


@pytest.mark.parametrize("stated", STATED)
def test_spark_states_names_and_types_alone(tmp_path: Path, stated: bytes) -> None:
    made = io.BytesIO()
    FRAME.select("n").write_parquet(made)
    before, footer = footer_of(made.getvalue())
    footer[5] = (LIST, (STRUCT, [{1: (TEXT, SPARK), 2: (TEXT, stated)}]))
    assert (found_in(tmp_path, whole(before, footer)) is None) is STATED[stated]


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Every byte is changed, one at a time; a file is never read without end, and never ends in a traceback."""
    raw = plain()
    for at in range(0, len(raw), 3):
        for byte in (0, 255, raw[at] ^ 1):
            found_in(tmp_path, raw[:at] + bytes([byte]) + raw[at + 1 :])
    for size in (0, 3, 11, 12, 200):
        assert found_in(tmp_path, raw[:size]) is not None
