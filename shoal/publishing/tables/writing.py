"""Writing a release: its rows at once or in slices, judged in the written file, which gets its name after verification.

A table in memory is written at once, a DuckDB table as a stream: only the histogram and a slice of rows are in memory
at a time. A folder of parts has a manifest with the hash of each part, and gets its name in one step.

A table on a database server is sent, read back, judged, and only then gets its name. It contains what a CSV of the
release would contain. It is read back as a CSV with rows sorted by their contents, and is judged like a file. The
certificate has the SHA-256 of this CSV, which anyone with access to the table can reproduce.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines import lakes, servers
from shoal.engines.atomic import Piece, Wanted, folder_next_to, named_errors, publish_file, publish_together
from shoal.engines.columns import one_zero, starred_text
from shoal.engines.open import open_table
from shoal.engines.order import ahead
from shoal.engines.source import MANIFEST, ending_of
from shoal.engines.statistics import text_in_statistics
from shoal.engines.store import (
    PART_ROWS,
    refuse_both,
    store,
    text_in_excel,
    write_folder,
    write_single,
)
from shoal.engines.table import Table, Workers
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.contents import beyond_rows
from shoal.judge.tables.large import (
    ReleaseContents,
    ReleaseRequirement,
    count_elsewhere,
    count_release,
    hash_of,
    judge_held,
    read_rows,
)
from shoal.paths import TABLE, certificate_path, is_sheet, is_table_name, kind_of, record_path
from shoal.publishing.documents import Documents
from shoal.publishing.tables import statement
from shoal.publishing.tables.limits import graphs_of, scales_of
from shoal.version import __version__

ENDINGS = ("parquet", "csv")
_EXAMINED = 3  # parts of an engine whose contents are examined
Tell = Callable[[str, float | None], None]


def is_folder(path: Path, parts: str | None, large: bool) -> bool:
    """Whether a release is written to a folder of parts: if parts are requested, or the name has no ending.

    large  whether the table is in an engine. Raises PolicyError if parts are requested and it isn't, or the name has
           the ending of a file
    """
    if parts is None:
        return large and (not path.suffix or (path.is_dir() and not is_table_name(path)))
    if parts not in ENDINGS:
        raise PolicyError.unknown("kind of parts", parts, ENDINGS)
    if not large:
        raise PolicyError(
            "a folder of parts is written with ⟨engine='duckdb'⟩ or ⟨engine='spark'⟩; for one file end the output's "
            "name in .csv or .parquet"
        )
    if is_table_name(path):
        raise PolicyError(f"⟨parts={parts!r}⟩ writes a folder, and {path.name!r} ends as a file does; name a folder")
    return True


def write_release(
    release: Any, path: Path, papers: Documents, *, bound: bool, overwrite: bool, parts: str | None, tell: Tell
) -> Path:
    """Write a release to a file or a folder of parts, with certificate and record; returns the certificate's path.

    For a table in an engine, only a slice of rows is in memory at a time, except for Excel. If the written table isn't
    the expected one, raises VerificationError, and existing files are unchanged.
    """
    large = not release._in_memory()
    folder = is_folder(path, parts, large)
    if release.policy.judge == "engine":
        refuse_here(release._opened(), folder=folder)
    wanted: list[Wanted] = [] if folder else [(path, TABLE)]
    closed = papers.check(wanted, release._read(), overwrite=overwrite, folder=path if folder else None)
    held = None if large and (folder or not is_sheet(path)) else WholeTable.of(release, path)
    work = _Writing.of(release, path, bound, parts if folder else "", held, tell)
    stated = work.stated
    papers.publish([Piece(path, work.fill, work.judge, folder)], stated.public, stated.private, closed=closed)
    release._judged.written = stated.files(papers)
    return papers.certificate


def refuse_here(table: Table, *, folder: bool = True) -> None:
    """PolicyError if no engine can judge what is written."""
    if table.workers() == Workers():
        raise PolicyError(
            "⟨judge='engine'⟩ has the workers of Spark, or DuckDB, count what was written, and neither holds this "
            "table; leave it out"
        )
    if not folder:
        raise PolicyError("⟨judge='engine'⟩ counts the parts of a folder; name a folder")


class WholeTable(NamedTuple):
    """A table in memory as a file can hold it.

    rows   the index into ``lines`` of each row of the file; None: the lines are the rows
    shown  the number of stars that each quasi-identifier then shows
    text   the columns that are written as text
    """

    lines: pl.DataFrame
    rows: np.ndarray | None
    shown: dict[str, int]
    text: Collection[str]

    @classmethod
    def of(cls, release: Any, path: Path) -> WholeTable:
        """The published table for the format of the file's ending."""
        kind, made, stars = kind_of(path), release._placement, release.facts.stars
        few = made.rows.tuples if kind == "csv" else None
        if few is None:
            opened = release._opened()
            lines = made.expected.typed(opened.polars(opened.columns))
        else:
            lines = made.expected.typed(few.tuples)
        if kind != "parquet":
            refuse_both(made.texts)
        star, sensitive = release.policy.star, release.policy.sensitive
        lines = one_zero(lines, [*made.published, *sensitive])
        if kind == "csv":
            lines, shown = starred_text(lines, stars, made.published, star, sensitive)
            return cls(lines, None if few is None else few.rows, shown, lines.columns)
        if kind == "parquet":
            return cls(lines, None, dict(stars), ())
        excel = kind == "excel"
        bare = excel and lines.height and lines.select(pl.all_horizontal(pl.all().is_null())).to_series().any()
        as_text = {c.name for c in lines if (text_in_excel if excel else text_in_statistics)(c)}
        hidden = {
            name: count
            for name, count in stars.items()
            if count and (bare or name in as_text or not lines[name].count())
        }
        # with unchanged missing values, a star stays missing and the column keeps its type, which would reveal stars
        alike = {name for name in hidden if None in made.published[name]}
        lines, shown = starred_text(lines, {n: c for n, c in hidden.items() if n not in alike}, made.published, star)
        return cls(lines, None, dict(stars) | shown | dict.fromkeys(alike, 0), as_text | (set(hidden) - alike))


@dataclass
class _Writing:
    """The writing of one release to a file, or with an ending to a folder of parts.

    held  the table in memory; None: it is written in slices
    text  the columns that are written as text
    """

    release: Any
    stated: statement.Statement
    ending: str
    separator: str
    held: WholeTable | None
    text: Collection[str]
    tell: Tell
    rows: dict[str, int] = field(default_factory=dict)
    clock: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(
        cls, release: Any, path: Path, bound: bool, parts: str | None, held: WholeTable | None, tell: Tell
    ) -> _Writing:
        """parts: "" for a file; for a folder, the format of its parts; None: the format of the file that was read."""
        read = release._placement.source.parts
        ending = (ending_of(read) if read is not None else "parquet") if parts is None else parts
        separator = release._placement.separator(path.with_name(f"part.{ending}") if ending else path)
        if held is not None:
            shown, text = held.shown, held.text
        else:
            as_text = (ending or kind_of(path)) == "csv"
            if as_text:
                refuse_both(release._placement.texts)
            shown, text = shown_stars(release, as_text), open_table(release.table).columns if as_text else ()
        stated = statement.Statement(release, path, shown, bound, {"folder": True} if ending else {})
        return cls(release, stated, ending, separator, held, text, tell)

    def frames(self, scratch: Path) -> Iterator[pl.DataFrame]:
        """The rows in slices, in the form of the file."""

        def count(done: int) -> None:
            self.tell("writing", min(done / max(self.release.facts.rows, 1), 1.0))

        for rows in ahead(rows_of(self.release, scratch, count)):
            frame = one_zero(rows, self.release.policy.sensitive)
            yield as_text_table(self.release, frame) if self.text else frame

    def fill(self, temporary: Path) -> None:
        """Write the release."""
        if self.held is not None:
            store(self.held.lines, temporary, self.separator, self.held.rows)
            self._took("write")
            return
        self.tell("writing", 0.0)
        if self.ending:
            dealt = self.release._placement.rows.row_key is not None
            there = not dealt or self.release.policy.judge == "engine"  # otherwise, making the rows here is faster
            floats = any(c.values.dtype.is_float() for c in self.release._placement.expected.sensitive)
            here = self.text or not there or floats  # the engine would write NaN beside missing values
            self.rows.update({} if here else open_table(self.release.table).parts(temporary))
            _refuse_beyond(temporary, [*self.rows])
            if not self.rows:
                self.rows.update(write_folder(self.frames(temporary), temporary, self.ending, self.separator))
        else:
            write_single(self.frames(temporary.parent), temporary, self.separator)
        self._took("write")

    def judge(self, temporary: Path) -> None:
        """Judge the written bytes; VerificationError unless they are the expected release."""
        facts, read = self.stated.facts, self.release._placement.source.parts
        if self.held is None:
            self.tell("reading back", None)
        with ThreadPoolExecutor(1) as second:  # the file is complete, and hashing uses a second core
            sealed = None if self.ending else second.submit(hash_of, temporary)
            held = read_back(self.release, temporary, self.separator)
            seen = second.submit(self.stated.seen, held)
            judge_written(self.release, held, temporary, self.separator, self.stated.stars, self.text)
            seen.result()
            if read is not None and self.held is None:
                read.refuse_change()
            if self.ending:
                facts["parts"] = write_manifest(temporary, self.rows, held.digests)
            facts["sha256"] = hash_of(temporary / MANIFEST) if sealed is None else sealed.result()
        facts["bytes"] = sum(p.stat().st_size for p in (temporary.iterdir() if self.ending else [temporary]))
        self._took("verify")

    def _took(self, step: str) -> None:
        now = time.perf_counter()
        self.release.seconds[step], self.clock = now - self.clock, now


def _refuse_beyond(folder: Path, parts: list[str]) -> None:
    """VerificationError if one of some parts, drawn at random, contains more than its rows: an engine wrote them."""
    for name in secrets.SystemRandom().sample(parts, min(len(parts), _EXAMINED)):
        more = beyond_rows(folder / name)
        if more is not None:
            raise VerificationError(f"{name!r}, which the engine wrote, contains {more}; nothing was published")


def rows_of(release: Any, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    """The rows of a release in slices: read from the engine, or made here if there are no insensitive columns.

    scratch  a folder for temporary parts of an engine
    """
    table = open_table(release.table)
    dealt = release._placement.rows
    if dealt.row_key is None:
        quicker = dealt.slices
        yield from table.slices(scratch, tell) if quicker is None else quicker(table.columns, scratch, tell)
        return
    done = 0
    for frame in release._placement.expected.slices(table.columns, dealt.row_key, PART_ROWS):
        yield frame
        done += frame.height
        tell(done)


def shown_stars(release: Any, text: bool) -> dict[str, int]:
    """The stars that every quasi-identifier shows: in a CSV none, if it has missing values of its own."""
    shown = dict(release.facts.stars)
    for column in release._placement.expected.columns if text else ():
        recoded = column.values.dtype == pl.String
        if shown[column.name] and not recoded and None in release._placement.published[column.name]:
            shown[column.name] = 0
    return shown


def as_text_table(release: Any, frame: pl.DataFrame) -> pl.DataFrame:
    """A slice in the form of a CSV: judged columns as text, starred numbers as stars."""
    text, _ = starred_text(
        frame, release.facts.stars, release._placement.published, release.policy.star, release.policy.sensitive
    )
    return text


def read_back(release: Any, path: Path, separator: str) -> ReleaseContents:
    """The counted content of the written file."""
    names = [*release.policy.grouped, *release.policy.sensitive]
    if release.policy.judge == "engine":
        return count_elsewhere(path, names, separator, *release._opened().workers())
    return count_release(path, names, separator)


def judge_written(
    release: Any, held: ReleaseContents, path: Path, separator: str, shown: Mapping[str, int], text: Collection[str]
) -> None:
    """Judge the content of the written file; VerificationError unless it is the expected release, row for row.

    held   the counted content
    shown  the number of stars that each quasi-identifier shows
    text   the columns that are written as text
    """
    policy = release.policy
    blank = [name for name, count in release.facts.stars.items() if count != shown[name]]
    form = ("csv" if text else "parquet") if path.is_dir() else kind_of(path)
    asked = ReleaseRequirement(
        quasi=policy.grouped,
        sensitive=policy.sensitive,
        models=policy.of_rows,
        star=policy.star if policy.publish != "centers" else None,
        stars=shown,
        expected=release._placement.expected.counts(text=text, blank=blank, categories=True),
        orders=release._placement.orders,
        graphs=graphs_of(policy),
        **scales_of(policy),
    )
    audit = judge_held(held, asked, form)
    if release.facts.harbor is not None:
        audit = release._outside(blank, form == "excel")(read_rows(path, separator), audit)
    elif policy.population is not None or policy.weighed:
        audit = release._outside(blank, form == "excel")(held.rows(), audit)
    release._accept(audit)
    release._judged.audit = release._with_exposed(audit)


def write_manifest(folder: Path, rows: dict[str, int], digests: Mapping[str, str]) -> int:
    """Write the names, rows, sizes, and hashes of all parts as JSON, and return the number of parts."""
    parts = [
        {"file": name, "rows": n, "bytes": (folder / name).stat().st_size, "sha256": digests[name]}
        for name, n in rows.items()
    ]
    if not parts:
        raise InputError("the release has no part")
    record = {"format": 1, "made_by": {"shoal": __version__}, "rows": sum(rows.values()), "parts": parts}
    (folder / MANIFEST).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return len(parts)


def write_server(
    release: Any, address: str, table: str, papers: Documents, *, bound: bool, overwrite: bool, tell: Tell
) -> Path:
    """Write a release to a new table on a server; returns the certificate's path.

    If the table that is read back isn't the expected one, raises VerificationError, and existing tables are unchanged.
    Raises InputError if the server refuses it.
    """
    if release.policy.judge == "engine":
        refuse_here(release._opened(), folder=False)
    closed = papers.check([], release._read(), overwrite=overwrite)
    frames, shown, text = _rows(release, table)
    stated = statement.Statement(release, Path(table), shown, bound)
    server = servers.connect(address)
    scratch = Path(tempfile.mkdtemp(prefix="shoal-"))  # only its owner can enter it
    clock = time.perf_counter()
    try:
        with servers.in_a_sentence(server):
            replace = servers.refuse_taken(server, table, overwrite)
            first = next(frames)
            stage = server.stage(servers.columns_of(server, first))
            sent = np.zeros(2, np.uint64)

            def passed() -> Iterator[pl.DataFrame]:
                for frame in chain([first], frames):
                    np.add(sent, _row_sum(frame), out=sent)
                    yield frame

            tell("writing", 0.0)
            servers.send(
                server, stage, passed(), lambda done: tell("writing", min(done / max(release.facts.rows, 1), 1.0))
            )
            release.seconds["write"], clock = time.perf_counter() - clock, time.perf_counter()
            tell("reading back", None)
            back = servers.held_there(server, stage)
            if not np.array_equal(_row_sum(back), sent):
                raise VerificationError(
                    "the table that was read back is not the one that was sent; nothing was published"
                )
            read = scratch / f"{table}.csv".replace("/", "_")
            separator = release._placement.separator(Path(table))
            store(back, read, separator)
            there = read_back(release, read, separator)
            judge_written(release, there, read, separator, shown, text)
            stated.seen(there)
            stated.facts |= {"sha256": hash_of(read), "bytes": read.stat().st_size, "table": table}
            release.seconds["verify"] = time.perf_counter() - clock
            certificate, *others = papers.pieces(stated.public, stated.private)
            pieces = [certificate._replace(judge=lambda made: server.certify(stage, made.read_text(encoding="utf-8")))]
            pieces += others
            judge_last = pieces[-1].judge

            def last(made: Path) -> None:
                if judge_last is not None:
                    judge_last(made)
                server.put_in_place(stage, table, replace)

            publish_together([*pieces[:-1], pieces[-1]._replace(judge=last)], closed=closed)
    finally:
        server.undo()
        server.close()
        shutil.rmtree(scratch, ignore_errors=True)
    release._judged.written = stated.files(papers)
    return papers.certificate


def write_lake(release: Any, place: str, papers: Documents, *, bound: bool, overwrite: bool, tell: Tell) -> Path:
    """Write a release as a new version of a Delta or Iceberg table; returns the certificate's path.

    It is written as a Parquet file with its certificate in a folder that only this user can enter, and judged there.
    The version consists only of this file. A process killed before the commit leaves an unused file. A process killed
    directly after the commit leaves the earlier certificate with the new version, which ``verify`` then refuses.
    """
    closed = papers.check([], release._read(), overwrite=overwrite)
    lake = lakes.opened(place)
    lakes.refuse_taken(lake, overwrite)
    _refuse_uncounted(release, lake, place)
    scratch = folder_next_to(papers.certificate)
    whole = scratch / lakes.new_name()
    try:
        beside = Documents.next_to(whole, None, papers.record is not None, papers.sign)
        with named_errors(lakes.folder_of(place)):
            write_release(release, whole, beside, bound=bound, overwrite=True, parts=None, tell=tell)
        written = release._judged.written
        tell("committing", None)
        with lakes.in_a_sentence(lake), lake.begun(whole):
            target = lake.folder / whole.name
            with named_errors(lakes.folder_of(place)):
                publish_file(target, partial(shutil.copyfile, whole), closed=closed)

            def commit(_: Path) -> None:
                if hash_of(target) != written["sha256"]:
                    raise VerificationError(
                        "the file in the table is not the one that was judged; nothing was published"
                    )
                _refuse_uncounted(release, lake, place)
                lake.commit(target, release.facts.rows, written["sha256"])

            proof = certificate_path(whole)
            pieces = [Piece(papers.certificate, partial(shutil.copyfile, proof))]
            if papers.record is not None:
                pieces.append(Piece(papers.record, partial(shutil.copyfile, record_path(proof)), private=True))
            try:
                publish_together([*pieces[:-1], pieces[-1]._replace(judge=commit)], closed=closed)
            except BaseException:
                if not lake.holds(target):
                    target.unlink(missing_ok=True)
                raise
            if not lake.holds(target):
                raise VerificationError(f"{lake.shown} does not show the release that was committed; look at it")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    facts = {name: held for name, held in written.items() if name in ("sha256", "bytes")}
    release._judged.written = statement.files_of(papers, written["file"], facts)
    return papers.certificate


def _refuse_uncounted(release: Any, lake: lakes.Lake, place: str) -> None:
    """VerificationError for a table with a readable version that wasn't compared with the release."""
    with lakes.in_a_sentence(lake):
        there = lake.readable()
    others = sum(hash_of(file) not in release.facts.versions for file in there)
    if others:
        raise VerificationError(
            f"{lake.shown} has {others} version{'s' * (others > 1)} that this release was not set against, and older "
            f"versions stay readable; nothing was published. Say ⟨after={place!r}⟩ where you anonymize, or name a new "
            "table"
        )


def refuse_unwritable(address: str, table: str, *, overwrite: bool) -> None:
    """InputError or ExistsError, before the search, if a release can't become this table."""
    server = servers.connect(address)
    try:
        with servers.in_a_sentence(server):
            servers.refuse_taken(server, table, overwrite)
            server.stage({"a": "int"})
    finally:
        server.undo()
        server.close()


def _rows(release: Any, table: str) -> tuple[Iterator[pl.DataFrame], dict[str, int], Any]:
    """The rows in the form of a CSV, the number of stars that each quasi-identifier shows, and the columns of text."""
    if release._in_memory():
        lines, rows, shown, text = WholeTable.of(release, Path(f"{table}.csv"))
        return iter([lines if rows is None else lines[rows]]), shown, text
    scratch = Path(tempfile.gettempdir())
    frames = (as_text_table(release, frame) for frame in rows_of(release, scratch, lambda _: None))
    return frames, shown_stars(release, True), open_table(release.table).columns


def _row_sum(frame: pl.DataFrame) -> np.ndarray:
    """uint64[2]: the number of rows, and an order-independent checksum, which is equal for equal rows, whatever types
    two systems store. The sums of slices add up to that of the table."""
    same = frame.select(_plain(column) for column in frame.iter_columns())
    return np.array([frame.height, same.hash_rows(seed=1).to_numpy().sum(dtype=np.uint64)], np.uint64)


def _plain(column: pl.Series) -> pl.Series:
    kind = column.dtype
    if kind.is_integer() or kind == pl.Boolean or (isinstance(kind, pl.Decimal) and not kind.scale):
        return column.cast(pl.Int128)
    if kind.is_float():
        return column.cast(pl.Float64) + 0.0
    if isinstance(kind, pl.Datetime):
        return column.dt.epoch("us")
    return column if kind in (pl.Date, pl.Time) or isinstance(kind, pl.Decimal) else column.cast(pl.String)
