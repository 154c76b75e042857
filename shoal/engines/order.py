"""The assignment of rows to groups and the order of rows: functions of a secret, and of nothing that is published.

Without the caller's secret, a random one is drawn. With one, a row's place is a keyed hash of the row alone. It is the
same function in memory, in DuckDB, and in Spark, so it depends neither on repeated tasks nor on partitions nor on the
engine: the first 16 digits of SHA-256 of the key and, for every column, "n" if the value is missing, otherwise "v", the
length of its text, a colon, and the text (``portable`` and ``payload_sql`` define the text).

With a secret, the order of rows depends only on what is published of them, not on their original order or on hidden
values. So two releases of the same people with one secret have unrelated orders.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import secrets
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.atomic import folder_next_to
from shoal.engines.codes import as_text
from shoal.errors import InputError, PolicyError

LEAST = 16
DIGITS = 16  # digits of a hash, which orders the rows of a cell
_SECRET = f"any file of {LEAST} random bytes or more will do, which is then kept and kept secret"
WHOLE = 2**53
PARTS = 2**52
_SLICE = 1 << 18  # rows hashed at a time
_MANY = 1 << 16  # rows read back from disk at a time
_FINE = 1 << 16  # approximate maximum number of rows in a piece of all runs
_BITS = 12  # maximum number of bits of a piece's number
_WORDS = 14  # maximum number of 8-byte words of a row to be placed, in addition to two for each column of floats
_BATCHES = 256  # maximum number of open files with rows to be placed
_MOST_ROWS, _MOST_SLICE, _MOST_HELD = 1_000_000, 1 << 26, 1 << 31


@dataclass(frozen=True, repr=False)
class ShuffleKey:
    """Two keys: for the assignment of rows to a cell's groups, and for the order of rows.

    fresh  whether it was drawn for this release; otherwise it is derived from the caller's secret
    """

    place: bytes
    order: bytes
    fresh: bool

    @classmethod
    def of(cls, secret: bytes | None, context: bytes = b"") -> ShuffleKey:
        """The key from a caller's secret (at least 16 bytes), or from fresh randomness.

        context  identifies the release: with one secret, releases of other tables or policies get independent keys, so
                 that their rows can't be matched by position

        Raises PolicyError for a secret that is too short or isn't bytes.
        """
        if secret is not None and (not isinstance(secret, bytes) or len(secret) < LEAST):
            raise PolicyError(f"secret: give at least {LEAST} bytes, or None for fresh randomness")
        master = secrets.token_bytes(32) if secret is None else secret
        digest = hashlib.sha256(context).digest()
        place, order = (hmac.digest(master, word + digest, "sha256") for word in (b"place", b"order"))
        return cls(place, order, secret is None)

    @classmethod
    def given(cls, secret: bytes | str | Path | None) -> ShuffleKey:
        """The key from a secret, or from a file that contains one."""
        return cls.of(read_secret(secret) if isinstance(secret, (str, Path)) else secret)

    @classmethod
    def unless_kept(cls, secret: bytes | str | Path | None, keep_order: bool) -> ShuffleKey | None:
        """The key that shuffles rows, or None if they keep their order; PolicyError for a secret that then has no
        effect."""
        if not keep_order:
            return cls.given(secret)
        if secret is not None:
            raise PolicyError("⟨secret⟩ fixes the order of shuffled rows, and ⟨keep_order⟩ keeps theirs; leave one out")
        return None

    @property
    def words(self) -> str:
        """The source of the order, as text for the certificate."""
        return "fresh secret" if self.fresh else "caller's secret"


def read_secret(path: str | Path) -> bytes:
    """The bytes of a secret's file; InputError if there are fewer than 16."""
    path = Path(path)
    try:
        found = path.read_bytes()
    except OSError:
        raise InputError(f"there is no secret {str(path)!r} to read; {_SECRET}") from None
    if len(found) < LEAST:
        raise InputError(f"{path.name!r} holds {len(found)} bytes and a secret at least {LEAST}; {_SECRET}")
    return found


def draws(n: int, key: bytes) -> np.ndarray:
    """uint64[n], uniform: SHAKE-256 of the key. O(n)."""
    return np.frombuffer(hashlib.shake_256(key).digest(8 * n), np.uint64)


def permutation(n: int, key: bytes) -> np.ndarray:
    """int64[n]: 0 .. n - 1 in an order that only the owner of the key can compute. O(n log n)."""
    return np.argsort(draws(n, key))  # probability of equal numbers: less than 1 in 10^7 for a million rows


def generator_of(key: bytes) -> np.random.Generator:
    """A random generator for rows that are assigned from tuples with counts, without reading rows of the original."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int.from_bytes(key, "big"))))


def shuffled(columns: Sequence[pl.Series], shuffle_key: ShuffleKey) -> np.ndarray:
    """int64[n]: the order of rows that publish these columns.

    With the caller's secret, rows are first sorted by their contents, and then permuted with a key that is a hash of
    all contents. So any change of a row or a column name changes the order. O(n log n).
    """
    n = len(columns[0]) if columns else 0
    if shuffle_key.fresh or not n:
        return permutation(n, shuffle_key.order)
    line, key = laid_out(columns, np.ones(n, np.int64), shuffle_key.order)
    return line[permutation(n, key)]


def laid_out(columns: Sequence[pl.Series], rows: np.ndarray, key: bytes) -> tuple[np.ndarray, bytes]:
    """(int64[n]: lines sorted by their contents alone, a key that depends only on these contents and on ``rows``)."""
    names = b"".join(hashlib.sha256(c.name.encode()).digest() for c in columns)
    hashes = row_hashes(columns, hmac.digest(key, names, "sha256"))
    order = np.lexsort((*beyond(columns), hashes))
    last = np.flatnonzero(np.append(np.diff(hashes[order]) != 0, True))
    held = hashes[order[last]].tobytes() + np.cumsum(rows[order])[last].astype("<i8").tobytes()
    return order, hmac.digest(key, names + held, "sha256")


def beyond(columns: Sequence[pl.Series]) -> list[np.ndarray]:
    """Columns of floats as numbers, to distinguish large values, of which the payload only contains the sign."""
    return [c.cast(pl.Float64).fill_nan(None).fill_null(0).to_numpy() for c in columns if c.dtype.is_float()]


def row_hashes(columns: Sequence[pl.Series], key: bytes) -> np.ndarray:
    """uint64[n]: the keyed hash of every row, computed in slices. O(n), about a second for a million rows."""
    start, sha = key.hex().encode(), hashlib.sha256
    raw = []
    for at in range(0, len(columns[0]), _SLICE):
        texts = pl.DataFrame([portable(c[at : at + _SLICE]).alias(str(i)) for i, c in enumerate(columns)])
        cells = [pl.col(str(i)) for i in range(len(columns))]
        fields = (pl.concat_str(pl.lit("v"), cell.str.len_chars(), pl.lit(":"), cell).fill_null("n") for cell in cells)
        payload = texts.select(pl.concat_str(fields)).to_series()
        raw.append(b"".join([sha(start + row).digest()[:8] for row in payload.cast(pl.Binary).to_list()]))
    return np.frombuffer(b"".join(raw), ">u8")


class MemoryBounds(NamedTuple):
    """The memory for sorting rows, in bytes: ``held`` in total, and ``slice`` at a time."""

    held: int
    slice: int

    @classmethod
    def within(cls, limit: int) -> MemoryBounds:
        """Half of an engine's memory, and a slice that fits well in a processor's cache."""
        return cls(min(limit // 2, _MOST_HELD), min(limit // 16, _MOST_SLICE))


@dataclass(frozen=True, repr=False, eq=False)
class LatePlacement:
    """Assigns rows of split cells to groups after all rows have passed.

    group, at  columns of a row: its group, or -1 minus its cell if it has none yet; its order number, or the hash of
               the values that it publishes other than its group's
    names      for each column of the table, the column with its values; the others aren't published
    key        the key for places
    cell, rows, to  int64, by cell: the number of rows of a cell for each group, in the order of places
    tag        int64[groups]  the number of a group in ``at``
    number     computes ``at`` from tags and hashes
    most       number of rows that are placed at a time; a larger cell is placed alone
    """

    group: str
    at: str
    names: Mapping[str, str]
    key: bytes
    cell: np.ndarray
    rows: np.ndarray
    to: np.ndarray
    tag: np.ndarray
    number: Callable[[np.ndarray, np.ndarray], np.ndarray]
    most: int

    @staticmethod
    def fits(cell: np.ndarray, rows: np.ndarray, floats: int, limit: int) -> int:
        """The number of rows that can be placed at a time in ``limit`` bytes; 0 if a cell or the table has too many
        rows.

        The values of the rows are on disk in the meantime; their places are in memory.
        """
        most = limit // (8 * (_WORDS + 2 * floats))
        largest = int(np.add.reduceat(rows, np.unique(cell, return_index=True)[1]).max(initial=0)) if cell.size else 0
        return most // 2 if 0 < largest <= most // 2 and rows.sum() <= _BATCHES * (most // 2) else 0

    def through(self, frames: Iterator[pl.DataFrame], folder: Path) -> Iterator[pl.DataFrame]:
        """Rows with groups, in at least one frame. Rows without a group come last, from files in a folder."""
        batches = [
            _Batch(self, folder / f"late-{number}.arrow", some)
            for number, some in enumerate(_batches(self.cell, self.rows, self.most))
        ]
        ends = np.array([batch.cell[-1] for batch in batches])
        beside = [new for name, new in self.names.items() if new != name]
        try:
            for frame in frames:
                late = frame[self.group] < 0
                if late.any():
                    held = frame.filter(late)
                    of = np.searchsorted(ends[:-1], -1 - held[self.group].to_numpy())
                    for number in np.unique(of):
                        batches[number].put_aside(held.filter(of == number))
                    frame = frame.filter(~late)
                yield frame.drop(beside)
        finally:
            for batch in batches:
                batch.close()
        for batch in batches:
            for frame in batch.placed():
                yield frame.drop(beside)


class _Batch:
    """Some split cells, and the file with their rows until all of them are placed together."""

    def __init__(self, late: LatePlacement, path: Path, some: slice) -> None:
        self.late, self.path = late, path
        self.writer: Any = None
        self.cell, self.rows, self.to = late.cell[some], late.rows[some], late.to[some]

    def put_aside(self, frame: pl.DataFrame) -> None:
        """Write rows to be placed."""
        import pyarrow as pa
        import pyarrow.ipc

        held = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
        if self.writer is None:
            self.writer = pa.ipc.new_stream(str(self.path), held.schema)
        self.writer.write_table(held)

    def close(self) -> None:
        """Close the file after all rows are written."""
        if self.writer is not None:
            self.writer.close()

    def placed(self) -> Iterator[pl.DataFrame]:
        """The rows with their groups and order numbers."""
        late, keys, hashed = self.late, list[tuple[np.ndarray, ...]](), list[np.ndarray]()
        for some in _read_back(self.path) if self.writer is not None else ():
            values = [some[new].alias(name) for name, new in late.names.items()]
            place = (*reversed(beyond(values)), row_hashes(values, late.key))
            keys.append((*place, -1 - some[late.group].to_numpy()))
            hashed.append(some[late.at].to_numpy())
        group = self._groups([np.concatenate(key) for key in zip(*keys, strict=True)])
        at = late.number(late.tag[group], np.concatenate(hashed))
        start = 0
        for some in _read_back(self.path):
            own = slice(start, start + some.height)
            new = {late.group: group[own].astype(np.int32), late.at: at[own]}
            yield some.with_columns(pl.Series(name, values) for name, values in new.items())
            start += some.height
        self.path.unlink()

    def _groups(self, keys: Sequence[np.ndarray]) -> np.ndarray:
        """int64[n]: the group of every row, by its cell, which is the last key, then by the other keys, last first."""
        cells, first = np.unique(self.cell, return_index=True)
        found, rows = np.unique(keys[-1], return_counts=True) if keys else (cells[:0], cells[:0])
        if not (np.array_equal(found, cells) and np.array_equal(rows, np.add.reduceat(self.rows, first))):
            raise InputError("the table changed while it was read; read it again when it is complete")
        group = np.empty(keys[-1].size, np.int64)
        group[np.lexsort(keys)] = np.repeat(self.to, self.rows)
        return group


def _batches(cell: np.ndarray, rows: np.ndarray, most: int) -> list[slice]:
    """Consecutive cells in batches of at most ``most`` rows; a cell with more rows is a batch of its own."""
    first = np.append(np.unique(cell, return_index=True)[1], cell.size)
    ends = np.cumsum(rows)[first[1:] - 1]
    out, start = [], 0
    while start < ends.size:
        before = ends[start - 1] if start else 0
        end = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        out.append(slice(int(first[start]), int(first[end])))
        start = end
    return out


def _read_back(path: Path) -> Iterator[pl.DataFrame]:
    """The rows of an Arrow file in frames of many rows."""
    import pyarrow as pa
    import pyarrow.ipc

    with pa.ipc.open_stream(str(path)) as stream:
        batches, rows = [], 0
        for batch in itertools.chain(stream, [None]):
            if batch is not None:
                batches.append(batch)
                rows += batch.num_rows
            if batches and (batch is None or rows >= _MANY):
                found = pl.from_arrow(pa.Table.from_batches(batches))
                assert isinstance(found, pl.DataFrame)
                yield found
                batches, rows = [], 0


def laid_in_order(
    frames: Iterator[pl.DataFrame],
    by: str,
    rows: int,
    scratch: Path,
    bounds: MemoryBounds,
    late: LatePlacement | None = None,
) -> Iterator[pl.DataFrame]:
    """All rows in rising order of a column of keyed hashes, uint64, without that column, in slices; at least one.

    frames   at least one
    rows     approximate total number of rows
    scratch  a folder for runs that don't fit in memory
    late     assigns groups to rows that have none yet

    This is a bucket sort on disk. Rows are gathered into runs, and each run is divided into pieces by the first bits of
    the numbers, which takes a third of the time of a sort. A slice consists of some pieces of all runs, and is then
    sorted. So the order depends on the numbers alone, no sort of all rows is needed, and each row is moved twice. O(n
    log n) time; memory within ``bounds``, and the rest on disk.
    """
    staging = folder_next_to(scratch / "order")
    runs: list[_Run] = []
    frames = frames if late is None else late.through(frames, staging)
    try:
        held = taken = bits = 0
        empty: pl.DataFrame | None = None
        for run in ahead(_gathered(frames, bounds.slice)):  # the engine continues while a run is sorted
            size = _bytes_of(run)
            # at least one piece for each slice, at most twice as many, because more pieces take longer to write
            if empty is None:
                empty = run.clear()
                slices = max(rows * size // (max(run.height, 1) * bounds.slice), rows // _MOST_ROWS)
                bits = min(slices.bit_length(), (rows // _FINE).bit_length(), _BITS)
            piece = _pieces(run[by].to_numpy(), bits)
            laid = run[np.argsort(piece, kind="stable")]
            cuts = np.concatenate([[0], np.cumsum(np.bincount(piece, minlength=1 << bits))])
            held, taken = held + size, taken + laid.height
            path = None
            if held > bounds.held:
                path, held = staging / f"{len(runs)}.arrow", held - size
                _put_aside(laid, path, cuts)
            runs.append(_Run(None if path else laid, path, cuts, size))
            del run, laid, piece
        if not taken:
            assert empty is not None
            yield empty.drop(by)
            return
        total = sum(run.size for run in runs)
        slices = max(1, -(-total // bounds.slice), -(-taken // _MOST_ROWS))
        ends = np.cumsum(np.sum([np.diff(run.cuts) for run in runs], axis=0))
        last = np.unique(np.searchsorted(ends, [-(-taken * (i + 1) // slices) for i in range(slices)]))
        for first, end in zip([0, *(last[:-1] + 1)], last + 1, strict=True):
            slice_ = pl.concat([run.between(first, end) for run in runs], rechunk=True)
            yield slice_[np.argsort(slice_[by].to_numpy())].drop(by)
    finally:
        runs.clear()
        shutil.rmtree(staging, ignore_errors=True)


def _bytes_of(frame: pl.DataFrame) -> int:
    """Bytes of a frame, with the 16 bytes of each text that Polars' estimate doesn't count."""
    texts = sum(kind in (pl.String, pl.Binary) for kind in frame.dtypes)
    return int(frame.estimated_size()) + 16 * texts * frame.height


def _pieces(numbers: np.ndarray, bits: int) -> np.ndarray:
    """uint16[n]: the first ``bits`` bits of 64-bit numbers."""
    return (numbers >> np.uint64(64 - bits)).astype(np.uint16) if bits else np.zeros(numbers.size, np.uint16)


class _Run(NamedTuple):
    """Rows in pieces, in memory or in a file. cuts: the start of each piece, and the end; size: bytes in memory."""

    frame: pl.DataFrame | None
    path: Path | None
    cuts: np.ndarray
    size: int

    def between(self, first: int, end: int) -> pl.DataFrame:
        """The rows of some pieces."""
        start, length = int(self.cuts[first]), int(self.cuts[end] - self.cuts[first])
        if self.frame is not None:
            return self.frame.slice(start, length)
        assert self.path is not None
        import pyarrow as pa
        import pyarrow.ipc

        with pa.OSFile(str(self.path)) as file:
            held = pa.ipc.open_file(file)
            pieces = [held.get_batch(i) for i in range(first, end)]
            found = pl.from_arrow(pa.Table.from_batches(pieces).combine_chunks())
        assert isinstance(found, pl.DataFrame)
        return found


def _put_aside(laid: pl.DataFrame, path: Path, cuts: np.ndarray) -> None:
    """Write a run to a file, with a record batch for each piece."""
    import pyarrow as pa
    import pyarrow.ipc

    table = laid.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    none = pa.RecordBatch.from_pylist([], schema=table.schema)
    with pa.ipc.new_file(str(path), table.schema) as file:
        for start, end in itertools.pairwise(cuts.tolist()):
            file.write_batch(table.slice(start, end - start).to_batches()[0] if end > start else none)


def _gathered(frames: Iterator[pl.DataFrame], most: int) -> Iterator[pl.DataFrame]:
    """The rows of many small frames in frames of about ``most`` bytes."""
    some: list[pl.DataFrame] = []
    size = 0
    for frame in frames:
        some.append(frame)
        size += _bytes_of(frame)
        if size >= most:
            yield pl.concat(some, rechunk=True)
            some, size = [], 0
    if some:
        yield pl.concat(some, rechunk=True)


def ahead(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Frames with read-ahead: a thread reads the next frame while one is used, so two are in memory at a time."""
    with ThreadPoolExecutor(1) as thread:
        try:
            coming = thread.submit(next, frames, None)
            while (frame := coming.result()) is not None:
                coming = thread.submit(next, frames, None)
                yield frame
        finally:
            coming.cancel()
            # in the thread that runs the generator, after it reaches its next frame
            thread.submit(_close, frames).result()


def _close(frames: Iterator[Any]) -> None:
    """Close a generator, so that it removes its files; other iterators need no closing."""
    if isinstance(frames, Generator):
        frames.close()


def portable(series: pl.Series) -> pl.Series:
    """A column as text that is the same in every engine, with null for missing values and NaN.

    Integers, booleans, dates, decimals, times of day, and texts are unchanged; moments are microseconds since 1970;
    bytes are hexadecimal digits. Floats are their whole part and their fraction in units of 2^-52, and above 2^53 only
    their sign. For lists, structures, and spans of time, the text depends on the engine.
    """
    kind = series.dtype
    if kind.is_float():
        wide = series.cast(pl.Float64).fill_nan(None)
        whole = wide.floor()
        near = (wide.abs() < WHOLE).fill_null(False)
        parts = ((wide - whole) * PARTS).floor()
        exact = pl.concat_str(
            *(part.set(~near, 0.0).cast(pl.Int64).cast(pl.String) for part in (whole, parts)), separator="."
        )
        far = pl.when(wide > 0).then(pl.lit("far")).otherwise(pl.lit("-far"))
        return pl.select(pl.when(wide.is_null()).then(None).when(near).then(exact).otherwise(far)).to_series()
    if isinstance(kind, pl.Datetime):
        return series.dt.epoch("us").cast(pl.String)
    if kind == pl.Binary:
        return series.bin.encode("hex").str.to_uppercase()
    if kind.is_nested() or kind in (pl.Object, pl.Unknown):
        return pl.Series([None if v is None else repr(v) for v in series.to_list()], dtype=pl.String)
    return as_text(series)


def quoted(name: str, mark: str = '"') -> str:
    """A quoted identifier in SQL."""
    return mark + name.replace(mark, mark * 2) + mark


class Sql(NamedTuple):
    """An engine's SQL for the parts of a payload.

    quote   quotation mark of names
    text    its type of text
    moment  microseconds since 1970 of the column {}
    nan     whether the number {} is NaN
    local   ``moment`` of a column without a time zone, read as UTC
    """

    quote: str
    text: str
    moment: str
    nan: str
    local: str

    def name(self, column: str) -> str:
        """A column in an expression."""
        return quoted(column, self.quote)


def compared_sql(first: int | str, columns: Mapping[str, Any], sql: Sql) -> list[str]:
    """Expressions of a number and of columns of the given narwhals types, for a hash; nested values as text."""
    shown = [str(first) if isinstance(first, int) else sql.name(first)]
    for name, kind in columns.items():
        plain = not kind.is_nested() and str(kind) != "Unknown"
        shown.append(sql.name(name) if plain else f"cast({sql.name(name)} as {sql.text})")
    return shown


def payload_sql(columns: Mapping[str, Any], sql: Sql) -> str:
    """The payload of ``row_hashes`` as an engine's expression over columns of the given narwhals types."""
    fields = []
    for name, kind in columns.items():
        shown = _text_sql(sql.name(name), kind, sql)
        fields.append(f"coalesce('v' || length({shown}) || ':' || ({shown}), 'n')")
    return " || ".join(fields)


def _text_sql(column: str, kind: Any, sql: Sql) -> str:
    text = sql.text
    if kind.is_float():
        wide = f"cast({column} as double)"
        parts = f"cast(floor(({wide} - floor({wide})) * {PARTS}) as bigint)"
        near = f"cast(cast(floor({wide}) as bigint) as {text}) || '.' || cast({parts} as {text})"
        return (
            f"case when {wide} is null or {sql.nan.format(wide)} then null when abs({wide}) < {WHOLE} then {near} "
            f"when {wide} > 0 then 'far' else '-far' end"
        )
    if str(kind).startswith("Datetime"):
        moment = sql.moment if kind.time_zone else sql.local
        return f"cast({moment.format(column)} as {text})"
    if str(kind) == "Binary":
        return f"hex({column})"
    return f"cast({column} as {text})"
