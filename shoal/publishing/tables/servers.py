"""A release as a table of a server of databases: sent, read back, judged, and only then given its name.

The table holds what a CSV of the release would.  It is read back as one, its rows laid out by their contents, and
judged as a file is; the certificate holds the SHA-256 of this CSV, which anybody makes again who can read the table.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines import servers
from shoal.engines.atomic import publish_together
from shoal.engines.open import open_table
from shoal.engines.store import store
from shoal.engines.targets import check_outputs
from shoal.errors import VerificationError
from shoal.judge.tables.parts import hash_of
from shoal.publishing import signing
from shoal.publishing.tables import statement
from shoal.publishing.tables.partwise import as_text_table, judge_written, rows_of, shown_stars


def write_server(
    release: Any, address: str, table: str, papers: statement.Papers, *, overwrite: bool,
    tell: Callable[[str, float | None], None],
) -> Path:  # fmt: skip
    """Write a release into a new table of a server; returns the certificate's path.

    Raises VerificationError, and leaves there what was there before, unless what was read back is what was decided;
    InputError where the server does not take it.
    """
    closed = check_outputs(papers.wanted(), [*release._read(), papers.sign], overwrite=overwrite)
    if papers.sign is not None:
        signing.private_key(papers.sign)  # refused before any work
    frames, shown, text = _rows(release, table)
    server = servers.connect(address)
    room = Path(tempfile.mkdtemp(prefix="shoal-"))  # its owner's alone
    clock, facts = time.perf_counter(), dict[str, Any]()
    try:
        with servers.in_a_sentence(server):
            replace = servers.refuse_taken(server, table, overwrite)
            first = next(frames)
            stage = server.stage(servers.columns_of(server, first))
            sent = _Sum()
            tell("writing", 0.0)
            passed = (sent.seen(frame) for frame in _both(first, frames))
            servers.send(server, stage, passed, lambda done: tell("writing", min(done / max(release.rows, 1), 1.0)))
            release.seconds["write"], clock = time.perf_counter() - clock, time.perf_counter()
            tell("reading back", None)
            back = servers.held_there(server, stage)
            held = _Sum()
            held.seen(back)
            if held != sent:
                raise VerificationError(
                    "the table that was read back is not the one that was sent; nothing was published"
                )
            read = room / f"{table}.csv".replace("/", "_")
            separator = release._separator(Path(table))
            store(back, read, separator)
            papers.seen(judge_written(release, read, separator, shown, text))
            facts |= {"sha256": hash_of(read), "bytes": read.stat().st_size, "table": table}
            release.seconds["verify"] = time.perf_counter() - clock
            certificate, *others = papers.pieces(facts, shown)
            pieces = [certificate._replace(judge=lambda made: server.certify(stage, made.read_text(encoding="utf-8")))]
            pieces += others
            settle = pieces[-1].judge

            def last(made: Path) -> None:
                if settle is not None:
                    settle(made)
                server.settle(stage, table, replace)

            publish_together([*pieces[:-1], pieces[-1]._replace(judge=last)], closed=closed)
    finally:
        server.undo()
        server.close()
        shutil.rmtree(room, ignore_errors=True)
    release._later.written = papers.files(facts)
    return papers.certificate


def refuse_unwritable(address: str, table: str, *, overwrite: bool) -> None:
    """InputError or ExistsError, before any work, where a release could not become this table."""
    server = servers.connect(address)
    try:
        with servers.in_a_sentence(server):
            servers.refuse_taken(server, table, overwrite)
            server.stage({"a": "int"})
    finally:
        server.undo()
        server.close()


def _both(first: pl.DataFrame, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    yield first
    yield from frames


def _rows(release: Any, table: str) -> tuple[Iterator[pl.DataFrame], dict[str, int], Any]:
    """The rows as a CSV shows them, the stars each quasi-identifier then shows, and what stands as text."""
    if release._in_memory:
        content, rows, shown, text = release._content(Path(f"{table}.csv"))
        return iter([content if rows is None else content[rows]]), shown, text
    room = Path(tempfile.gettempdir())
    frames = (as_text_table(release, frame) for frame in rows_of(release, room, lambda _: None))
    return frames, shown_stars(release, True), open_table(release.table).columns


class _Sum:
    """A number of rows in any order: equal where the rows are, whatever types two systems hold them in."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sum) and (self.rows, self.total) == (other.rows, other.total)

    __hash__ = None  # type: ignore[assignment]

    def seen(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the rows of a frame; gives it back."""
        same = frame.select(_plain(column) for column in frame.iter_columns())
        self.total = (self.total + sum(same.hash_rows(seed=1).to_list())) % 2**64
        self.rows += frame.height
        return frame


def _plain(column: pl.Series) -> pl.Series:
    kind = column.dtype
    if kind.is_integer() or kind == pl.Boolean or (isinstance(kind, pl.Decimal) and not kind.scale):
        return column.cast(pl.Int128)
    if kind.is_float():
        return column.cast(pl.Float64) + 0.0
    if isinstance(kind, pl.Datetime):
        return column.dt.epoch("us")
    return column if kind in (pl.Date, pl.Time) or isinstance(kind, pl.Decimal) else column.cast(pl.String)
