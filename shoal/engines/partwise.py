"""A table that is never whole in memory, written slice by slice: one file, or a folder of parts."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.files import kind_of
from shoal.engines.memory import too_little
from shoal.engines.store import flat, store
from shoal.errors import InputError

if TYPE_CHECKING:
    import polars as pl

PART_ROWS = 1_000_000
PART_BYTES = 1 << 27
BATCH = 100_000


def slices(native: Any, tell: Callable[[int], None] = lambda _rows: None) -> Iterator[pl.DataFrame]:
    """A DuckDB relation as frames of about a million rows, fewer where rows are wide; at least one, empty if need be.

    tell  called with the number of rows seen so far
    """
    import polars as pl

    held: list[pl.DataFrame] = []
    rows = bytes_ = total = 0
    try:
        reader = native.to_arrow_reader(BATCH)
        empty = pl.from_arrow(reader.schema.empty_table())
        for batch in reader:
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            held.append(frame)
            rows, bytes_, total = rows + frame.height, bytes_ + int(frame.estimated_size()), total + frame.height
            tell(total)
            if rows >= PART_ROWS or bytes_ >= PART_BYTES:
                yield pl.concat(held, rechunk=True)
                held, rows, bytes_ = [], 0, 0
    except Exception as error:  # the engine's own message may quote rows
        if short := too_little(error):
            raise InputError(short) from None
        if not type(error).__module__.startswith(("duckdb", "_duckdb", "pyarrow")):
            raise
        raise InputError(f"the table cannot be read by the engine ({type(error).__name__})") from None
    if held or not total:
        yield pl.concat(held, rechunk=True) if held else empty  # type: ignore[misc]


def ahead(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same frames, the next one on its way in a thread while one is written; two are in memory at a time."""
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


def write_folder(frames: Iterable[pl.DataFrame], folder: Path, ending: str, separator: str) -> dict[str, int]:
    """Every frame as a file part-00000.ENDING of a folder that is there; the rows of each by its name."""
    rows = {}
    for number, frame in enumerate(frames):
        name = f"part-{number:05d}.{ending}"
        store(frame, folder / name, separator)
        rows[name] = frame.height
    return rows


def write_single(frames: Iterable[pl.DataFrame], path: Path, separator: str) -> None:
    """All frames as one CSV (also .gz) or Parquet file."""
    if kind_of(path) == "parquet":
        _single_parquet(frames, path)
        return
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "wb"))
        if path.name.lower().endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=file))
        for number, frame in enumerate(frames):
            text = flat(frame).write_csv(separator=separator, include_header=number == 0)
            file.write(text.encode())


def _single_parquet(frames: Iterable[pl.DataFrame], path: Path) -> None:
    from pyarrow import parquet

    writer: Any = None
    try:
        for frame in frames:
            arrow = frame.to_arrow()
            writer = parquet.ParquetWriter(path, arrow.schema, compression="zstd") if writer is None else writer
            writer.write_table(arrow)
    finally:
        if writer is not None:
            writer.close()
