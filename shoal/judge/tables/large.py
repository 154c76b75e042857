"""The judge of releases larger than memory: it counts tuples by its own queries, without loading the rows.

Polars scans a file or a folder of parts in batches, whichever engine wrote it. The result is every tuple of published
and sensitive values with its number of rows, and the hash of all bytes.

The workers of the engine that wrote the parts can also count them (``count_elsewhere``). Their answers are checked as
far as possible without reading every part: each part is reported once, the tuples add up to the reported rows of the
parts, and some parts, drawn at random after all answers arrived, are read again here.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InputError, VerificationError
from shoal.judge.file import UNREADABLE, Counts, canonical, read_release, refuse_other, unquoted, unreadable
from shoal.judge.finding import shown
from shoal.judge.recodings.levels import AreaGraph
from shoal.judge.tables.privacy import judge
from shoal.model.audit import Audit
from shoal.model.hierarchy import Hierarchy
from shoal.model.privacy import PrivacyModel
from shoal.paths import is_sheet, kind_of

MANIFEST = "manifest.json"
_WHOLE = 1 << 28  # bytes of the largest part that is read at once
_SEVERAL = 1 << 20  # tuples of several parts that are collected before they are aggregated
_HASHES = 1 << 24  # hashes of values held at once
_FEW = 4  # a column is grouped as categories if there are at least so many tuples per distinct text
_AGAIN = 3  # least number of workers' parts that are read again here
_BUCKETS = 64
_NOWHERE = "\x01"  # a separator that occurs in no file, so that lines are read whole


class ReleaseContents(NamedTuple):
    """What a release contains.

    cells    its tuples over the requested columns
    counts   int64[tuples]: the rows of each tuple
    columns  all its columns
    digests  of a folder, the SHA-256 of every part, from the bytes that were counted
    """

    cells: pl.DataFrame
    counts: np.ndarray
    columns: tuple[str, ...]
    digests: Mapping[str, str] = MappingProxyType({})

    def rows(self) -> pl.DataFrame:
        """A line per row, in memory, to compare rows with a population."""
        return self.cells[np.repeat(np.arange(self.counts.size), self.counts)]


def count_release(path: Path, names: Sequence[str], separator: str | None = None) -> ReleaseContents:
    """All tuples over some columns of a released file or folder; VerificationError if a column is missing.

    A CSV is read as text, or as categories of these texts.

    O(rows) time, and memory for the tuples only. An Excel file is read whole.
    """
    if is_sheet(path):
        frame = read_release(path)
        query, columns = frame.lazy(), tuple(frame.columns)
    else:
        query, columns = _scan(path, separator)
    for name in names:
        if name not in columns:
            raise VerificationError(
                f"{path.name!r} is not the release of the certificate: it has no column {name!r}; name the "
                "file that the certificate was written with"
            )
    if set(names) == set(columns):
        found = _count_lines(path, names, columns, separator or ",")
        if found is not None:
            return found._replace(
                digests={file.name: hash_of(file) for file in files_in(path)} if path.is_dir() else {}
            )
    try:
        if path.is_dir():
            held, digests = _count_parts(path, names, columns, separator)
        else:
            held, digests = _grouped(query, names), {}
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    shown = held.select(pl.col(c).alias(n) for n, c in zip(names, held.columns, strict=False))
    return ReleaseContents(shown, held["n"].to_numpy(), columns, digests)


def _grouped(query: pl.LazyFrame, names: Sequence[str]) -> pl.DataFrame:
    """The tuples over some columns, renamed by the judge, with their number of rows in the column ``n``."""
    short = [f"c{i}" for i in range(len(names))]
    picked = query.select(pl.col(f"^{_literal(n)}$").alias(c) for n, c in zip(names, short, strict=True))
    return picked.group_by(short).agg(pl.len().alias("n")).collect(engine="streaming")


def _count_parts(
    folder: Path, names: Sequence[str], columns: tuple[str, ...], separator: str | None
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The tuples of a folder's parts, and the SHA-256 of each part.

    Each part is read once, two at a time, so the counted bytes are the hashed bytes.
    """
    digests: dict[str, str] = {}
    held: list[pl.DataFrame] = []
    files = files_in(folder)
    with ThreadPoolExecutor(2) as threads:
        for file, (cells, digest) in zip(
            files, threads.map(partial(_count_part, names, columns, separator), files), strict=True
        ):
            digests[file.name] = digest
            held.append(cells)
            if len(held) > 1 and sum(part.height for part in held[1:]) > max(held[0].height, _SEVERAL):
                held = [_added_up(held)]
    return _added_up(held), digests


def _count_part(
    names: Sequence[str], columns: Sequence[str], separator: str | None, file: Path
) -> tuple[pl.DataFrame, str]:
    """The tuples of one part, and its SHA-256, both from the same bytes."""
    large = file.stat().st_size > _WHOLE
    content = b"" if large else file.read_bytes()
    query = _query([file] if large else io.BytesIO(content), is_parquet(file), separator)
    if tuple(query.collect_schema()) != tuple(columns):
        raise VerificationError(f"the part {file.name!r} has other columns than the first")
    return _grouped(query, names), hash_of(file) if large else hashlib.sha256(content).hexdigest()


def _added_up(held: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The tuples of several parts, each once, with the sum of their rows.

    Texts with few distinct values are grouped as categories. As texts, a group of ten columns needs about 500 bytes
    more.
    """
    largest = max(held, key=lambda part: part.height)
    few = [c.name for c in largest if c.dtype == pl.String and _FEW * c.n_unique() < largest.height]
    same = pl.Categorical(pl.Categories.random())
    together = pl.concat([part.with_columns(pl.col(few).cast(same)) for part in held], how="vertical")
    added = together.group_by(together.columns[:-1]).agg(pl.col("n").sum())
    return added.with_columns(pl.col(few).cast(pl.String))


class _PartReport(NamedTuple):
    """The report on a part: its SHA-256, its rows, and the sum of its tuples' keyed hashes."""

    file: str
    sha256: str
    rows: int
    mark: int


class _CountJob(NamedTuple):
    """The parameters with which a worker counts a part.

    key      of the hashes, drawn for each run, so that no file can be fitted to them
    buckets  number of hash buckets; equal tuples of several parts are in one bucket
    """

    folder: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    separator: str | None
    key: bytes
    buckets: int


Spread = Callable[[Callable[..., Any], Sequence[bytes], Callable[..., Any]], Iterable[tuple[int, bytes]]]


def count_elsewhere(
    folder: Path, names: Sequence[str], separator: str, spread: Spread | None, ask: Callable[[str], Any] | None
) -> ReleaseContents:
    """``count_release`` of a folder of parts, each counted by a worker of the engine that wrote it.

    spread  runs this module's code where the parts are: ``spread(each, tasks, together)`` returns numbered answers. The
            engine receives only the code and the key
    ask     returns an engine's answer to an SQL query that this module writes, for one part at a time

    A few parts are read again here. Raises VerificationError if anything differs.

    O(rows) time among the workers, about one percent of it here; memory here for the tuples.
    """
    columns = _scan(folder, separator)[1]
    for name in names:
        if name not in columns:
            raise VerificationError(f"the parts have no column {name!r}; nothing was published")
    job = _CountJob(str(folder.absolute()), tuple(names), columns, separator, secrets.token_bytes(16), 1)
    files = [file.name for file in files_in(folder)]
    try:
        if spread is not None:
            job = job._replace(buckets=min(len(files), _BUCKETS))
            answers = spread(partial(_count_in_worker, job), [name.encode() for name in files], _merged_answers)
            frames = [*_with_categories(pl.read_ipc(io.BytesIO(held)) for _, held in answers)]
            reports = [_PartReport(*row) for frame in frames if frame.columns[0] == "file" for row in frame.rows()]
            held = [frame for frame in frames if frame.columns[0] != "file"]
        else:
            assert ask is not None
            found = [_counted_by_engine(job, name, ask) for name in files]
            reports, held = [report for report, _ in found], [_added_up([cells for _, cells in found])]
        whole = pl.concat(held) if held else pl.DataFrame()
    except (*UNREADABLE, OSError) as error:
        raise VerificationError(f"{folder.name!r} cannot be read back ({type(error).__name__})") from None
    for report in reports:
        if not report.sha256:
            raise VerificationError(
                f"the part {report.file!r} cannot be read back, or has other columns than the first"
            )
    if sorted(report.file for report in reports) != sorted(files) or not whole.height:
        raise VerificationError("the workers did not count each part once; nothing was published")
    total = _part_report(job, "", "", whole)
    if (
        total.rows != sum(report.rows for report in reports)
        or total.mark != sum(report.mark for report in reports) % 2**64
    ):
        raise VerificationError("what the workers counted is not what the parts hold together; nothing was published")
    drawn = secrets.SystemRandom().sample(reports, min(len(reports), max(_AGAIN, len(reports) // 100)))
    for report in drawn:
        cells, digest = _count_part(names, columns, separator, folder / report.file)
        if _part_report(job, report.file, digest, cells) != report:
            raise VerificationError(
                f"the part {report.file!r} is not what the workers reported of it; nothing was published"
            )
    shown = whole.select(pl.col(c).alias(n) for n, c in zip(names, whole.columns, strict=False))
    return ReleaseContents(shown, whole["n"].to_numpy(), columns, {report.file: report.sha256 for report in reports})


def _with_categories(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The frames of workers with common categories for texts with few distinct values.

    They need a quarter of the memory, and are comparable without conversion.
    """
    same = pl.Categorical(pl.Categories.random())
    few: list[str] | None = None
    for frame in frames:
        if frame.columns[:1] == ["file"]:
            yield frame
            continue
        if few is None:
            few = [c.name for c in frame if c.dtype == pl.String and _FEW * c.n_unique() < frame.height]
        yield frame.with_columns(pl.col(few).cast(same))


def _count_in_worker(job: _CountJob, task: bytes) -> Iterator[tuple[int, bytes]]:
    """A worker's answers about the part named by the task: its tuples by bucket, and finally the report on it."""
    name = task.decode()
    try:
        cells, digest = _count_part(job.names, job.columns, job.separator, Path(job.folder) / name)
    except (VerificationError, *UNREADABLE, OSError):
        cells, digest = pl.DataFrame(), ""
    marks = _tuple_hashes(job, cells) if digest else np.zeros(0, np.uint64)
    bucket = marks % np.uint64(job.buckets)
    for number in np.unique(bucket).tolist():
        yield number, _packed(cells.filter(pl.Series(bucket == number)))
    report = _part_report(job, name, digest, cells, marks) if digest else _PartReport(name, "", 0, 0)
    kinds = {"file": pl.String, "sha256": pl.String, "rows": pl.Int64, "mark": pl.UInt64}
    yield -1, _packed(pl.DataFrame([report], schema=kinds, orient="row"))


def _merged_answers(answers: Sequence[bytes]) -> bytes:
    """One bucket's answers merged into one: equal tuples of several parts are added up."""
    frames = [pl.read_ipc(io.BytesIO(held)) for held in answers]
    return _packed(pl.concat(frames) if frames[0].columns[0] == "file" else _added_up(frames))


def _packed(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_ipc(content, compression="lz4")
    return content.getvalue()


def _counted_by_engine(job: _CountJob, name: str, ask: Callable[[str], Any]) -> tuple[_PartReport, pl.DataFrame]:
    """An engine's count of a part, and the part's SHA-256, which is computed here."""
    file = Path(job.folder) / name
    place = _quoted("".join(f"[{c}]" if c in "*?[" else c for c in str(file)), "'")
    if is_parquet(file):
        source = f"read_parquet({place}, hive_partitioning = false)"
    else:
        kinds = ", ".join(f"{_quoted(c, chr(39))}: 'VARCHAR'" for c in job.columns)
        source = (
            f"read_csv({place}, columns = {{{kinds}}}, auto_detect = false, header = true, nullstr = '', "
            f"delim = {_quoted(job.separator or ',', chr(39))}, quote = '\"', escape = '\"', "
            "hive_partitioning = false)"
        )
    if tuple(ask(f"select * from {source} limit 0").columns) != job.columns:
        return _PartReport(name, "", 0, 0), pl.DataFrame()
    picked = ", ".join(f'{_quoted(n, chr(34))} as "c{i}"' for i, n in enumerate(job.names))
    cells = ask(f'select {picked}, count(*)::bigint as "n" from {source} group by all')
    return _part_report(job, name, hash_of(file), cells), cells


def _quoted(text: str, mark: str) -> str:
    """A name or a literal in SQL quotes."""
    return mark + text.replace(mark, mark * 2) + mark


def _part_report(
    job: _CountJob, name: str, digest: str, cells: pl.DataFrame, marks: np.ndarray | None = None
) -> _PartReport:
    """The report on counted tuples; it doesn't depend on the reader that counted them."""
    counts = cells["n"].to_numpy()
    marks = _tuple_hashes(job, cells) if marks is None else marks
    return _PartReport(name, digest, int(counts.sum()), int((marks * counts.astype(np.uint64)).sum(dtype=np.uint64)))


def _tuple_hashes(job: _CountJob, cells: pl.DataFrame) -> np.ndarray:
    """uint64[tuples]: a keyed hash of the texts of every tuple, without the column ``n``."""
    form = "parquet" if is_parquet(Path(job.folder)) else "csv"
    made = np.zeros(cells.height, np.uint64)
    for column in cells.drop("n").iter_columns():
        texts = canonical(column, form).rename("text")
        distinct = texts.unique()
        own = [
            hashlib.blake2b((t or "").encode(), digest_size=8, key=job.key, salt=b"missing" if t is None else b"")
            for t in distinct.to_list()
        ]
        numbers = pl.Series("mark", [int.from_bytes(o.digest()) for o in own], dtype=pl.UInt64)
        known = pl.DataFrame([distinct, numbers])
        found = texts.to_frame().join(known, on="text", how="left", nulls_equal=True, maintain_order="left")
        made = (made ^ found["mark"].to_numpy()) * np.uint64(0x9E3779B97F4A7C15)
        made ^= made >> np.uint64(29)  # otherwise rows that swap a value could leave the sum unchanged
    return made


def _count_lines(path: Path, names: Sequence[str], columns: tuple[str, ...], separator: str) -> ReleaseContents | None:
    """``count_release`` of a CSV in which every line is a row.

    It counts equal lines, and parses each distinct line once.

    None if lines may not be rows: the file has a quote, a carriage return, or another header.
    """
    head = separator.join(columns).encode() + b"\n"
    files = files_in(path)
    if len(columns) < 2 or separator == _NOWHERE or not all(_is_plain(file, head) for file in files):
        return None
    query = pl.scan_csv(
        files, infer_schema=False, separator=_NOWHERE, quote_char=None, glob=False, with_column_names=lambda _: ["line"]
    )
    try:
        held = query.group_by("line").agg(pl.len().alias("n")).collect(engine="streaming")
        lines = io.BytesIO(head)
        lines.seek(0, io.SEEK_END)
        held.select("line").write_csv(lines, include_header=False, quote_style="never")
        kinds = {name: pl.Categorical(pl.Categories.random()) for name in columns}
        cells = pl.read_csv(lines.getvalue(), schema_overrides=kinds, separator=separator)
    except pl.exceptions.PolarsError:
        return None
    if cells.height != held.height:
        return None
    return ReleaseContents(pl.DataFrame([cells[n] for n in names]), held["n"].to_numpy(), columns)


def _is_plain(file: Path, head: bytes) -> bool:
    """Whether a file begins with these bytes and each line is a record: no quotes, and only line feeds end lines."""
    with open(file, "rb") as stream:
        if stream.read(len(head)) != head:
            return False
        while slice_ := stream.read(1 << 20):
            if any(mark in slice_ for mark in (b'"', b"\r", _NOWHERE.encode())):
                return False
    return True


class SampleUniques(NamedTuple):
    """Rows of a release that are unique in the columns published unchanged.

    alone     per column, the rows with a value that no other row has
    together  the rows with a combination of values in all these columns that no other row has
    """

    alone: Mapping[str, int]
    together: int


def sample_uniques(
    path: Path, names: Sequence[str], rows: int, separator: str | None = None, *, zeros: bool = False
) -> SampleUniques:
    """Sample uniques of a released file or folder in these columns, by 64-bit hashes.

    rows   the number of rows, which limits how many hashes are held at a time
    zeros  read "-0.0" in a text file as "0.0", because a table of numbers doesn't distinguish them

    One pass over the file for every ``_HASHES`` hashes; O(rows log rows) time for a column.
    """
    if not names:
        return SampleUniques({}, 0)
    sheet = is_sheet(path)
    query = read_release(path).lazy() if sheet else _scan(path, separator)[0]
    zeros = zeros and not sheet and not is_parquet(path)
    columns = [pl.col(f"^{_literal(n)}$").alias(f"c{i}") for i, n in enumerate(names)]
    if zeros:
        columns = [c.replace("-0.0", "0.0") for c in columns]
    hashes = [pl.struct(some).hash().alias(f"h{i}") for i, some in enumerate([*([c] for c in columns), columns])]
    at_once, alone = max(_HASHES // max(rows, 1), 1), list[int]()
    try:
        for start in range(0, len(hashes), at_once):
            held = query.select(hashes[start : start + at_once]).collect(engine="streaming")
            alone += [int((np.unique(h.to_numpy(), return_counts=True)[1] == 1).sum()) for h in held]
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    return SampleUniques(dict(zip(names, alone[:-1], strict=True)), alone[-1])


def read_rows(path: Path, separator: str | None) -> pl.DataFrame:
    """Every row of a released file or folder, in memory."""
    if not path.is_dir():
        return read_release(path, separator)
    try:
        return _scan(path, separator)[0].collect()
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def rows_in(file: Path, separator: str | None) -> int:
    """The number of rows of a file or of a part."""
    try:
        query = _query([file], kind_of(file) == "parquet", separator)
        return int(query.select(pl.len()).collect(engine="streaming").item())
    except FileNotFoundError:
        raise VerificationError(f"the part {file.name!r} is missing") from None
    except UNREADABLE as error:
        raise unreadable(file, error) from None


def _literal(name: str) -> str:
    """A column name as a regular expression that matches only it. Polars reads a plain ``*`` as all columns."""
    return "".join(c if c.isalnum() or c == "_" else f"\\x{{{ord(c):x}}}" for c in name)


def files_in(path: Path) -> list[Path]:
    """The file itself, or the parts of a folder."""
    return [path / name for name in parts_in(path)] if path.is_dir() else [path]


def is_parquet(path: Path) -> bool:
    """Whether a file, or each part of a folder, has typed columns, so that empty and missing texts differ."""
    return kind_of(files_in(path)[0]) == "parquet"


def _scan(path: Path, separator: str | None) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    files = files_in(path)
    try:
        query = _query(files, is_parquet(path), separator)
        return query, tuple(query.collect_schema())
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    except pl.exceptions.NoDataError:
        return pl.LazyFrame(), ()
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def _query(content: Any, parquet: bool, separator: str | None) -> pl.LazyFrame:
    """The rows of files, or of the bytes of one file; CSV as text."""
    if parquet:
        return pl.scan_parquet(content, glob=False, hive_partitioning=False)
    return pl.scan_csv(content, infer_schema=False, separator=separator or ",", glob=False, with_column_names=unquoted)


def parts_in(folder: Path) -> list[str]:
    """The parts that a folder's manifest names, or without a manifest every file; InputError if there is none."""
    if (folder / MANIFEST).is_file():
        found = [str(part["file"]) for part in read_manifest(folder)["parts"]]
    else:
        found = sorted(p.name for p in folder.iterdir() if not p.name.startswith((".", "_")))
    if not found:
        raise InputError(f"there is no part in {str(folder)!r}")
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder; VerificationError if it is invalid, or names a file outside the folder."""
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for part in record["parts"]:
            name = part["file"]
            if not isinstance(name, str) or Path(name).name != name or name in (".", "..", MANIFEST):
                raise ValueError
            if not isinstance(part["sha256"], str) or (folder / name).is_dir():
                raise ValueError
            int(part["rows"]), int(part["bytes"])
        if len({part["file"] for part in record["parts"]}) < len(record["parts"]):
            raise ValueError  # the rows of a part that is named twice would count twice
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise VerificationError(f"{str(folder)!r} has no manifest of shoal, or one that cannot be read") from None
    return record  # type: ignore[no-any-return]


def digest_of(path: Path) -> str:
    """SHA-256 of a file.

    For a folder, that of its manifest, after every part's bytes are checked against the hash in it.

    Raises VerificationError with the name of a part that is missing, differs, is a link, or isn't in the manifest.
    """
    if not path.is_dir():
        return hash_of(path)
    record = read_manifest(path)
    named = {part["file"]: part for part in record["parts"]}
    there = {p.name for p in path.iterdir() if p.name != MANIFEST}
    for name in sorted(there ^ set(named)):
        raise VerificationError(f"the part {name!r} is {'not named in the manifest' if name in there else 'missing'}")
    for name in (MANIFEST, *named):
        if (path / name).is_symlink():
            raise VerificationError(
                f"{name!r} is a link, and the file that it names can change after this check; put the file in its place"
            )
    for name, part in named.items():
        if hash_of(path / name) != part["sha256"]:
            raise VerificationError(f"the part {name!r} is not the one that the manifest names: changed, or another")
    return hash_of(path / MANIFEST)


def hash_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ReleaseRequirement(NamedTuple):
    """The requirements that a release must meet.

    star      text of a star; None if every text is a value, as in a release of centers
    stars     starred cells that each quasi-identifier must have, if a star is written as text
    expected  every tuple of quasi-identifiers and sensitive values with its rows; None: not checked
    orders    of ordered sensitive columns, the values from lowest to highest
    trees     hierarchies of sensitive columns that have one
    notations of sensitive columns that are dates or numbers in a notation
    """

    quasi: Sequence[str]
    sensitive: Sequence[str]
    models: Sequence[PrivacyModel]
    star: str | None
    stars: Mapping[str, int]
    expected: Counts | None = None
    orders: Mapping[str, Sequence[str]] = {}
    trees: Mapping[str, Hierarchy] = {}
    notations: Mapping[str, str] = {}
    graphs: Mapping[str, Hierarchy] = {}


def refuse_unconnected(cells: pl.DataFrame, graphs: Mapping[str, Hierarchy], star: str) -> None:
    """Raise VerificationError if a text in a column of regions of a graph is no connected region."""
    for name, tree in graphs.items():
        wrong = AreaGraph(tree).wrong(shown(cells[name].unique()), star)
        if wrong is not None:
            raise VerificationError(f"column {name!r}: {wrong}")


def judge_held(held: ReleaseContents, asked: ReleaseRequirement, form: str) -> Audit:
    """The audit of a release's contents; form: "csv", "parquet", "excel", or "statistics".

    Raises VerificationError if the number of stars differs, or if a tuple occurs more or less often than expected. The
    message never contains a value.
    """
    cells = held.cells
    for name in asked.quasi if asked.star is not None else ():
        column = cells[name]
        if not (column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum))):
            continue  # in a column of numbers, a star is a missing value
        found = int(held.counts[(column.cast(pl.String) == asked.star).fill_null(False).to_numpy()].sum())
        if found != asked.stars.get(name, 0):
            raise VerificationError(
                f"column {name!r} has {found} stars in the file, {asked.stars.get(name, 0)} were certified"
            )
    refuse_unconnected(cells, asked.graphs, asked.star or "")
    with ThreadPoolExecutor(1) as second:
        judged = second.submit(_judged, held, asked)
        if asked.expected is not None:
            # this comparison has the more informative message, so it comes first
            refuse_other(asked.expected, (cells, held.counts), form)
        return judged.result()


def _judged(held: ReleaseContents, asked: ReleaseRequirement) -> Audit:
    cells = held.cells
    for name, levels in asked.orders.items():
        cells = cells.with_columns(cells[name].cast(pl.String).cast(pl.Enum(levels)))
    how: dict[str, Any] = {"counts": held.counts, "trees": asked.trees, "notations": asked.notations}
    return judge(cells, asked.quasi, asked.sensitive, asked.models, **how)
