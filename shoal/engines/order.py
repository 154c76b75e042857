"""Where rows go and in which order they leave: functions of a secret, never of anything that is published.

Without a secret of the caller's it is drawn afresh.  With one, a row's place is a keyed hash of the row alone, the same
function in memory, in DuckDB and in Spark, so that neither a task tried again nor a partition nor the engine changes
it: the first 16 digits of SHA-256 over the key and, for every column, "n" where the value is missing, else "v", the
length of its text, a colon and the text (``portable`` and ``payload_sql`` say which text).

With a secret the order comes from what is published of the rows and from nothing else: not from where a row stood, nor
from what is hidden of it.  Two releases of the same people under one secret then stand in unrelated orders.
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
DIGITS = 16  # of a hash, by which the rows of a cell stand in their order
_SECRET = f"any file of {LEAST} random bytes or more will do, which is then kept and kept secret"
WHOLE = 2**53
PARTS = 2**52
_SLICE = 1 << 18  # rows hashed at a time
_MANY = 1 << 16  # rows put aside that are read back at a time
_FINE = 1 << 16  # rows of a piece of all runs at most, about
_BITS = 12  # of the number of a piece at most
_WORDS = 14  # of 8 bytes that a row to be placed takes at most, beside two for each column of floats
_BATCHES = 256  # files of rows to be placed, which are open at the same time
_MOST_ROWS, _MOST_SLICE, _MOST_HELD = 1_000_000, 1 << 26, 1 << 31


@dataclass(frozen=True, repr=False)
class ShuffleKey:
    """Two keys, for the place of rows among a cell's groups and for their order.

    fresh  drawn for this release; otherwise derived from the caller's secret
    """

    place: bytes
    order: bytes
    fresh: bool

    @classmethod
    def of(cls, secret: bytes | None, context: bytes = b"") -> ShuffleKey:
        """The key of a caller's secret (at least 16 bytes), or of fresh randomness.

        context  what the release is of: with one secret, releases of other tables or policies are drawn apart, so that
                 two of them cannot be laid side by side row by row

        Raises PolicyError for a secret that is too short or no bytes.
        """
        if secret is not None and (not isinstance(secret, bytes) or len(secret) < LEAST):
            raise PolicyError(f"secret: give at least {LEAST} bytes, or None for fresh randomness")
        master = secrets.token_bytes(32) if secret is None else secret
        digest = hashlib.sha256(context).digest()
        place, order = (hmac.digest(master, word + digest, "sha256") for word in (b"place", b"order"))
        return cls(place, order, secret is None)

    @classmethod
    def given(cls, secret: bytes | str | Path | None) -> ShuffleKey:
        """The key of a secret, or of the file at a path that holds one."""
        return cls.of(read_secret(secret) if isinstance(secret, (str, Path)) else secret)

    @property
    def words(self) -> str:
        """Where the order comes from, for the certificate."""
        return "fresh secret" if self.fresh else "caller's secret"


def read_secret(path: str | Path) -> bytes:
    """The bytes of a secret's file; InputError when there are fewer than 16."""
    path = Path(path)
    try:
        found = path.read_bytes()
    except OSError:
        raise InputError(f"there is no secret {str(path)!r} to read; {_SECRET}") from None
    if len(found) < LEAST:
        raise InputError(f"{path.name!r} holds {len(found)} bytes and a secret at least {LEAST}; {_SECRET}")
    return found


def draws(n: int, key: bytes) -> np.ndarray:
    """uint64[n], uniform: SHAKE-256 of the key.  O(n)."""
    return np.frombuffer(hashlib.shake_256(key).digest(8 * n), np.uint64)


def permutation(n: int, key: bytes) -> np.ndarray:
    """int64[n]: 0 .. n - 1 in an order that only who has the key can know.  O(n log n)."""
    return np.argsort(draws(n, key))  # equal ones: less than 1 in 10^7 for a million rows


def dealer(key: bytes) -> np.random.Generator:
    """Draws for rows that are dealt out of tuples with counts, where no row of the original is looked at."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int.from_bytes(key, "big"))))


def shuffled(columns: Sequence[pl.Series], shuffle_key: ShuffleKey) -> np.ndarray:
    """int64[n]: the order in which rows leave that show these columns, all that is published of them.

    With a secret of the caller's the rows are laid out by their contents first, and then turned over by a key that is
    a hash of them all: whoever changes a row, or the name of a column, has another order.  O(n log n).
    """
    n = len(columns[0]) if columns else 0
    if shuffle_key.fresh or not n:
        return permutation(n, shuffle_key.order)
    line, key = laid_out(columns, np.ones(n, np.int64), shuffle_key.order)
    return line[permutation(n, key)]


def laid_out(columns: Sequence[pl.Series], rows: np.ndarray, key: bytes) -> tuple[np.ndarray, bytes]:
    """(int64[n]: lines in an order of their contents alone, a key of these contents and their ``rows`` alone)."""
    names = b"".join(hashlib.sha256(c.name.encode()).digest() for c in columns)
    hashes = row_hashes(columns, hmac.digest(key, names, "sha256"))
    order = np.lexsort((*beyond(columns), hashes))
    last = np.flatnonzero(np.append(np.diff(hashes[order]) != 0, True))
    held = hashes[order[last]].tobytes() + np.cumsum(rows[order])[last].astype("<i8").tobytes()
    return order, hmac.digest(key, names + held, "sha256")


def beyond(columns: Sequence[pl.Series]) -> list[np.ndarray]:
    """Columns of numbers by themselves, to tell those apart of which a payload holds the sign alone."""
    return [c.cast(pl.Float64).fill_nan(None).fill_null(0).to_numpy() for c in columns if c.dtype.is_float()]


def row_hashes(columns: Sequence[pl.Series], key: bytes) -> np.ndarray:
    """uint64[n]: the keyed hash of every row, a slice at a time.  O(n), about a second for a million rows."""
    start, sha = key.hex().encode(), hashlib.sha256
    raw = []
    for at in range(0, len(columns[0]), _SLICE):
        fields = []
        for series in columns:
            text = portable(series[at : at + _SLICE])
            fields.append(pl.select(pl.concat_str(pl.lit("v"), text.str.len_chars(), pl.lit(":"), text)).to_series())
        payload = pl.select(pl.concat_str(field.fill_null("n") for field in fields)).to_series()
        raw.append(b"".join([sha(start + row).digest()[:8] for row in payload.cast(pl.Binary).to_list()]))
    return np.frombuffer(b"".join(raw), ">u8")


class MemoryBounds(NamedTuple):
    """What laying rows in an order may take, in bytes: of ``held`` together, and of ``slice`` at a time."""

    held: int
    slice: int

    @classmethod
    def within(cls, limit: int) -> MemoryBounds:
        """Half of what an engine may take, and a slice that stays near a processor's cache."""
        return cls(min(limit // 2, _MOST_HELD), min(limit // 16, _MOST_SLICE))


@dataclass(frozen=True, repr=False, eq=False)
class LatePlacement:
    """What gives rows of cells that are split between groups their group, once all of them have passed.

    group, at  columns of a row: its group, or of a row to be placed -1 less its cell; the number by which it leaves, or
               the hash of what it shows beside its group
    names      by column of the table, the one that holds its values; those of other names do not leave
    key        of places
    cell, rows, to  int64, by cell: how many rows of a cell go to which group, in the order of places
    tag        int64[groups]  what stands for a group in ``at``
    number     ``at`` of tags and hashes
    most       rows that are placed at a time, or those of a cell where it has more
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
        """Rows that can be placed at a time in ``limit`` bytes; 0 if a cell, or the table, has too many for it.

        The values of the rows are on disk meanwhile; their places take memory.
        """
        most = limit // (8 * (_WORDS + 2 * floats))
        largest = int(np.add.reduceat(rows, np.unique(cell, return_index=True)[1]).max(initial=0)) if cell.size else 0
        return most // 2 if 0 < largest <= most // 2 and rows.sum() <= _BATCHES * (most // 2) else 0

    def through(self, frames: Iterator[pl.DataFrame], folder: Path) -> Iterator[pl.DataFrame]:
        """Rows that all have a group, in at least one frame; those that had none come last, from files in a folder."""
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
    """Some split cells, and the file that holds their rows until all of them are placed together."""

    def __init__(self, late: LatePlacement, path: Path, some: slice) -> None:
        self.late, self.path = late, path
        self.writer: Any = None
        self.cell, self.rows, self.to = late.cell[some], late.rows[some], late.to[some]

    def put_aside(self, frame: pl.DataFrame) -> None:
        """Rows to be placed."""
        import pyarrow as pa
        import pyarrow.ipc

        held = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
        if self.writer is None:
            self.writer = pa.ipc.new_stream(str(self.path), held.schema)
        self.writer.write_table(held)

    def close(self) -> None:
        """Ends the input."""
        if self.writer is not None:
            self.writer.close()

    def placed(self) -> Iterator[pl.DataFrame]:
        """The rows with their groups and the numbers by which they leave."""
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
        """int64[n]: the group of every row, by its cell, the last key, and within it by the others, the last first."""
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
    """The rows of a file of Arrow in frames of which each holds many."""
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
    """All rows as they rise by a column of keyed hashes, uint64, without that column, in slices; at least one.

    frames  at least one;  rows  how many there are in all, about
    scratch  a folder in which runs lie that do not fit into memory, for as long as it takes
    late     what gives a group to rows that have none yet

    Rows are gathered into runs, and a run is laid in pieces by the first bits of the numbers: within a piece rows stay
    as they came, which takes a third of the time of a sort.  Some pieces of all runs are a slice, once it is sorted.
    So the order is one of the numbers alone, whatever came first, no sort of all rows is made, and a row is moved
    twice.  O(n log n) time; memory within ``bounds``, beyond it the rest lies on disk.
    """
    staging = folder_next_to(scratch / "order")
    runs: list[_Run] = []
    frames = frames if late is None else late.through(frames, staging)
    try:
        held = taken = bits = 0
        empty: pl.DataFrame | None = None
        for run in ahead(_gathered(frames, bounds.slice)):  # the engine goes on while a run is laid in order
            size = _bytes_of(run)
            if empty is None:  # a piece for each slice, and up to twice as many: more of them take longer to put aside
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
    """Bytes of a frame.  Polars' estimate counts the letters of texts, not the 16 bytes that each also takes."""
    texts = sum(kind in (pl.String, pl.Binary) for kind in frame.dtypes)
    return int(frame.estimated_size()) + 16 * texts * frame.height


def _pieces(numbers: np.ndarray, bits: int) -> np.ndarray:
    """uint16[n]: so many first bits of 64."""
    return (numbers >> np.uint64(64 - bits)).astype(np.uint16) if bits else np.zeros(numbers.size, np.uint16)


class _Run(NamedTuple):
    """Rows in pieces, in memory or in a file; cuts: where each piece begins, and the last ends;  size  in memory."""

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
    """A run as a file of a record batch for each piece."""
    import pyarrow as pa
    import pyarrow.ipc

    table = laid.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    none = pa.RecordBatch.from_pylist([], schema=table.schema)
    with pa.ipc.new_file(str(path), table.schema) as file:
        for start, end in itertools.pairwise(cuts.tolist()):
            file.write_batch(table.slice(start, end - start).to_batches()[0] if end > start else none)


def _gathered(frames: Iterator[pl.DataFrame], most: int) -> Iterator[pl.DataFrame]:
    """Rows of many small frames in frames of about ``most`` bytes."""
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
    """Frames read ahead: a thread reads the next one while one is written, so two are in memory at a time."""
    with ThreadPoolExecutor(1) as thread:
        try:
            coming = thread.submit(next, frames, None)
            while (frame := coming.result()) is not None:
                coming = thread.submit(next, frames, None)
                yield frame
        finally:
            coming.cancel()
            thread.submit(_close, frames).result()  # by the thread that runs it, once it has come to its next frame


def _close(frames: Iterator[Any]) -> None:
    """What a generator leaves behind is taken away; any other iterator leaves nothing."""
    if isinstance(frames, Generator):
        frames.close()


def portable(series: pl.Series) -> pl.Series:
    """A column as text that every engine writes alike, missing and NaN as null.

    Whole numbers, truth values, dates, decimals and texts as they are; moments as microseconds since 1970; other
    numbers as their whole part and the 2^-52nds after it, beyond 2^53 by their sign alone.  Other types have a text of
    the engine's own.
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
    if kind.is_nested() or kind in (pl.Object, pl.Binary, pl.Unknown):
        return pl.Series([None if v is None else repr(v) for v in series.to_list()], dtype=pl.String)
    return as_text(series)


class Sql(NamedTuple):
    """How an engine writes what a payload needs.

    quote   around names;  text  its type of text;  moment  microseconds since 1970 of the column {}
    nan     whether the number {} is none;  local  ``moment`` of a column without a zone, read as UTC
    """

    quote: str
    text: str
    moment: str
    nan: str
    local: str

    def name(self, column: str) -> str:
        """A column in an expression."""
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote


def compared_sql(first: int | str, columns: Mapping[str, Any], sql: Sql) -> list[str]:
    """Expressions of a number and of columns of the given narwhals types, for a hash; nested values go as text."""
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
