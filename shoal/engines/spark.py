"""Apache Spark, classic and Connect: its dialect, and files that executors read in place.

A session that is started here, on this machine, hides its rows from other users: see ``_private_session_settings``.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from shoal.engines.atomic import clear_stale, folder_next_to
from shoal.engines.lazy import Dialect, LazyTable, signed
from shoal.engines.order import DIGITS, LatePlacement, Sql, compared_sql, payload_sql
from shoal.engines.source import Scope, too_little
from shoal.engines.table import CheckedFiles, Origin, Workers
from shoal.errors import InputError, MissingDependencyError, VerificationError
from shoal.paths import without_secrets

OLDEST = 4
_ANSWER = "number int, held binary"
_ILLEGAL = {  # types of Parquet in Spark's words -> the type in Arrow's words, and in ours, and a way out
    "TIMESTAMP(NANOS": ("timestamp[ns", "moments in nanoseconds", "save them in microseconds"),
    "TIME(": ("time64", "times of day", "cast them to text"),
    "FLOAT16": ("halffloat", "floats of 16 bits", "save them with 32 bits"),
}
_SENT = 1 << 20  # bytes of tasks in one frame that is sent to the executors; Spark sends at most 128 MB at once
_OPAQUE = ("time", "interval")  # suffixes of the names of types that other tables can't group
_JOBS = 4  # jobs that run on executors at the same time
_FIRST = 8  # lots of the first job
_TRIES = 2  # attempts of a job whose process was lost, if Spark itself doesn't repeat it
_SET_UP = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE")


class _Spark:
    """The dialect of Spark; see ``Dialect``. Expressions are text, which both classic and Connect sessions accept."""

    name = "Spark"
    sql = Sql(
        "`",
        "string",
        "unix_micros({})",
        "isnan({})",
        "unix_micros(cast(cast({} as string) || '+00:00' as timestamp))",  # independent of the session's time zone
    )

    def number(self, first: int | str, columns: Mapping[str, Any]) -> str:
        shown = compared_sql(first, columns, self.sql)
        return f"xxhash64({', '.join(f'{c}, {c} is null' for c in shown)})"  # the hash ignores missing values

    def placement_hash(self, salt: str, columns: Mapping[str, Any]) -> str:
        return f"substr(sha2({self.sql.name(salt)} || {payload_sql(columns, self.sql)}, 256), 1, {DIGITS})"

    def with_columns(self, native: Any, made: Mapping[str, str]) -> Any:
        return native.selectExpr("*", *(f"{how} as {self.sql.name(name)}" for name, how in made.items()))

    def opaque(self, native: Any) -> Mapping[str, str]:
        """Times of day can't be grouped by any version yet; intervals would be fetched as integers."""
        kinds = {field.name: field.dataType.typeName() for field in native.schema}
        return {n: "TIME" if kind == "time" else "INTERVAL" for n, kind in kinds.items() if kind.endswith(_OPAQUE)}

    def from_polars(self, native: Any, frame: pl.DataFrame) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        table = signed(frame).to_arrow(compat_level=pl.CompatLevel.oldest())
        # without an explicit schema, a moment without a zone would get the session's zone
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        return native.sparkSession.createDataFrame(table, schema)

    def ordered(self, native: Any, by: str) -> Any:
        """Sorted within partitions by hash; to sort all rows, Spark would run the whole plan twice."""
        return native.repartition(by).sortWithinPartitions(by)

    def in_order(
        self, native: Any, by: str, rows: int, scratch: Path, tell: Callable[[int], None], late: LatePlacement | None
    ) -> Iterator[pl.DataFrame]:
        return self.slices(self.ordered(native, by).drop(by), scratch, tell)

    def row_memory(self, native: Any) -> int:
        return 0

    def parts(self, native: Any, folder: Path) -> dict[str, int]:
        """Parts that executors write in their final form, if no column has fields whose type may contain unused levels.

        Spark would write moments in a deprecated form that other readers no longer support.
        """
        kinds = nw.from_native(native).collect_schema()
        if any(kind.is_nested() or kind == nw.Unknown or isinstance(kind, nw.Datetime) for kind in kinds.values()):
            return {}
        for name in native.columns:
            native = native.withMetadata(name, {})
        # Spark 4.0 writes the metadata that was there before, unless the column is computed
        native = native.selectExpr(
            *(
                f"{q} + cast(0 as {kind}) as {q}" if kind in ("float", "double") else f"coalesce({q}, {q}) as {q}"
                for q, kind in ((self.sql.name(n), kind) for n, kind in native.dtypes)
            )
        )
        rows: dict[str, int] = {}
        staging = folder_next_to(folder / "staging")
        try:
            for part in write_parts(native, staging):
                name = f"part-{len(rows):05d}.parquet"
                rows[name] = _read_part(part, native.columns, rows=True).item()
                part.rename(folder / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return rows

    def slices(self, native: Any, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """The parts that executors wrote; each is removed after it is read.

        Moments with a zone are written as integers, because the deprecated form in which Spark writes them has no zone.
        """
        staging, done = folder_next_to(scratch / "staging"), 0
        kinds = nw.from_native(native).collect_schema()
        zoned = {n for n, kind in kinds.items() if isinstance(kind, nw.Datetime) and kind.time_zone}
        own = {name: self.sql.name(name) for name in native.columns}
        columns = [f"{self.sql.moment.format(q)} as {q}" if n in zoned else q for n, q in own.items()]
        try:
            for part in write_parts(native.selectExpr(*columns), staging):
                frame = _read_part(part, native.columns)
                frame = frame.with_columns(pl.col(n).cast(pl.Datetime("us", "UTC")) for n in sorted(zoned))
                yield frame
                part.unlink()
                done += frame.height
                tell(done)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def picklable(self, native: Any) -> Any:
        return native

    def workers(self, native: Any) -> Workers:
        return Workers(spread=partial(spread, native.sparkSession))


SPARK: Dialect = _Spark()


def table_of(native: Any, origin: Origin = Origin()) -> LazyTable:
    """A frame of Spark as a table; InputError for a session that is too old."""
    if int(native.sparkSession.version.split(".")[0]) < OLDEST:
        raise InputError(
            f"Spark {native.sparkSession.version} loses the types of small tables; use Spark 4: "
            "pip install 'pyspark>=4'"
        )
    if named := [name for name in native.columns if "`" in name]:
        raise InputError(f"column {named[0]!r} has a back-tick, which Spark reads as the end of a name; rename it")
    if named := [name for name in native.columns if "${" in name]:
        raise InputError(f"column {named[0]!r} has a '$' before a brace, which Spark reads as a variable; rename it")
    if any(field.dataType.typeName() == "void" for field in native.schema):  # no reader supports files with this type
        quoted = [(field.dataType.typeName(), _Spark.sql.name(field.name)) for field in native.schema]
        native = native.selectExpr(*(f"cast({q} as string) as {q}" if kind == "void" else q for kind, q in quoted))
    table = LazyTable(native, SPARK, origin)
    table.refuse_fields(table.columns)  # Spark reads a dot so in every plan
    return table


def session(scope: Scope) -> Any:
    """The running session, or a new one; MissingDependencyError or InputError if requirements are missing."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependencyError.needed("pyspark", "the Spark engine", "spark") from None
    remote = (scope.master or os.environ.get("SPARK_REMOTE", "")).startswith("sc://")
    if not (remote or shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise InputError("Spark needs Java 17 or later, and there is none; install it, or leave ⟨engine='spark'⟩ out")
    if scope.master is None and (running := SparkSession.getActiveSession()) is not None:
        return running  # also for Connect, where the builder would require an address
    builder = SparkSession.builder
    if scope.master is not None:
        builder = builder.remote(scope.master) if remote else builder.master(scope.master)
    master = scope.master or ("" if any(name in os.environ for name in _SET_UP) else "local")
    for name, value in (_private_session_settings() if re.match(r"local(\[|$)", master) else {}).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except ImportError:  # if packages for Connect are missing
        raise MissingDependencyError(
            "Spark Connect needs packages that are not here; install them with: pip install 'pyspark[connect]'"
        ) from None
    except Exception as error:
        place = "" if scope.master is None else f" at {scope.master!r}"
        raise InputError(
            f"no session of Spark begins{place} ({type(error).__name__}); name a master such as 'local[2]', "
            "'spark://host:7077' or 'sc://host:15002', and see what Spark itself says"
        ) from None


def _private_session_settings() -> dict[str, str]:
    """Settings of a session whose executors belong to this process.

    By default, Spark would write rows to temporary files that every user of the machine can read, and accept
    connections from the network. The folder's content is removed with this process, or after a kill by the next
    session.
    """
    parent = Path(tempfile.gettempdir())
    clear_stale(parent)
    spill = folder_next_to(parent / "spark")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    here = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
    return {"spark.local.dir": str(spill), "spark.ui.enabled": "false", "spark.authenticate": "true", **here}


def read(checked: CheckedFiles, scope: Scope) -> Any:
    """The files of a table as a frame of Spark, with all options of reading explicit."""
    running = session(scope)
    from pyspark.sql.functions import expr
    from pyspark.sql.types import StringType, StructField, StructType

    parts = checked.parts
    connect = type(running).__module__.startswith("pyspark.sql.connect")
    for source, found in zip(parts.sources, checked.found or [None] * len(parts.sources), strict=True):
        if source.name.startswith((".", "_")) or ":" in str(source.path.absolute()):
            raise InputError(
                f"Spark does not read {source.name!r}: a colon in the path, or a dot or an underscore before the name; "
                "rename it, or leave ⟨engine='spark'⟩ out"
            )
        if connect and re.search(r"[*?\\\[\]{}]", str(source.path.absolute())):
            raise InputError(  # the option for literal names doesn't reach the server
                f"Spark Connect takes the path of {source.name!r} for a pattern; rename it, or leave "
                "⟨engine='spark'⟩ out"
            )
        if found is not None and found.crlf and (found.lf - found.leading > 0 or found.inner):
            raise InputError(
                f"{source.name!r} ends lines in CR LF and has line feeds of another kind, too, which Spark would "
                "change; give all lines LF, or leave ⟨engine='spark'⟩ out"
            )
    if parts.keys:
        raise InputError(f"{parts.name!r}: columns in the names of folders are read by ⟨engine='duckdb'⟩")
    reader = running.read.option("__globPaths__", "false")
    paths = [str(source.path.absolute()) for source in parts.sources]
    if not checked.found:
        try:
            frame = reader.parquet(*paths)
            columns = frame.columns  # a server of Connect reads the types only now
        except Exception as error:  # Spark's own message may quote the path
            raise _illegal(checked, error) from None
        parts_of_a_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        for name in filter(checked.durations.get, columns):
            seconds = f"{_Spark.sql.name(name)} / {parts_of_a_second[checked.durations[name]]}"
            frame = frame.withColumn(name, expr(f"make_dt_interval(0, 0, 0, {seconds})"))
        return frame
    return reader.schema(StructType([StructField(name, StringType()) for name in checked.names])).csv(
        paths,
        header=True,
        enforceSchema=True,
        multiLine=True,
        mode="FAILFAST",
        sep=checked.separator,
        quote='"',
        escape='"',
        encoding={"latin-1": "ISO-8859-1", "cp1252": "windows-1252"}.get(checked.codec, "UTF-8"),
        nullValue="",  # also for a quoted empty text, which is read as the value of the next line
        emptyValue="",
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
        maxCharsPerColumn=-1,
        maxColumns=max(20_480, len(checked.names) + 1),
    )


def _illegal(checked: CheckedFiles, error: Exception) -> InputError:
    """The error for Parquet that Spark doesn't read, with the first column of a type that this version lacks."""
    name, out = checked.parts.name, "or leave ⟨engine='spark'⟩ out"
    for word, (kind, what, way) in _ILLEGAL.items():
        columns = [column for column, own in checked.kinds.items() if own.startswith(kind)]
        if word in str(error) and columns:
            return InputError(f"{name!r}: column {columns[0]!r} holds {what}, which Spark does not read; {way}, {out}")
    return InputError(f"Spark cannot read {name!r} as Parquet ({type(error).__name__}); save it as CSV, {out}")


def read_remote(path: str, scope: Scope) -> Any:
    """Parquet at any address that Spark reads: s3a://, hdfs://, gs://. Spark decides which parts belong to it.

    Raises InputError for other formats, because the bytes of a CSV can only be checked if this process can read them.
    """
    running = session(scope)
    try:
        return running.read.parquet(path)
    except Exception as error:
        raise InputError(
            f"Spark cannot read {without_secrets(path)!r} as Parquet ({type(error).__name__}); a CSV elsewhere is made "
            "Parquet first"
        ) from None


def _read_part(part: Path, columns: Sequence[str], rows: bool = False) -> pl.DataFrame:
    """A part that executors wrote, or its number of rows; VerificationError if it is missing, damaged, or different."""
    try:
        query = pl.scan_parquet(part, glob=False, hive_partitioning=False).select(columns)
        return (query.select(pl.len()) if rows else query).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise VerificationError(
            f"a part that executors wrote cannot be read back ({type(error).__name__}); nothing was published"
        ) from None


def write_parts(native: Any, folder: Path) -> list[Path]:
    """The parts that executors wrote to a folder that this process can read, in order; at least one, possibly empty.

    A lost executor or a repeated task leaves no part, because Spark names a task's files when it is committed.
    """
    try:
        native.write.mode("overwrite").parquet(folder.absolute().as_uri())
    except Exception as error:  # Spark's own message may quote rows
        if short := too_little(error):
            raise InputError(short) from None
        raise InputError(f"Spark could not write the release ({type(error).__name__}); see its own log") from None
    found = sorted(p for p in folder.rglob("*.parquet") if not p.name.startswith("."))
    if not found:
        raise InputError("executors wrote where this process cannot look; name a folder that all of them share")
    return found


def spread(
    running: Any,
    each: Callable[[bytes], Iterator[tuple[int, bytes]]],
    tasks: Iterable[bytes],
    together: Callable[[Sequence[bytes]], bytes] | None = None,
) -> Iterator[tuple[int, bytes]]:
    """See ``shoal.engines.table:Workers``. Executors run the functions in Python processes, and return answers in
    Arrow.

    Spark repeats a task whose process is lost, except in a local session, where the job is repeated here.
    """
    work = partial(_each, each)
    if together is not None:
        found = _brought(running, _lots(tasks)).mapInArrow(work, _ANSWER)
        return _answers(found.repartition("number").mapInArrow(partial(_together, together), _ANSWER))
    with ThreadPoolExecutor(_JOBS) as jobs:  # executors start with the first lots while the others are made
        begun = [jobs.submit(_answers, _brought(running, some).mapInArrow(work, _ANSWER)) for some in _jobs(tasks)]
    return chain.from_iterable([job.result() for job in begun])


def _brought(running: Any, lots: Iterable[list[bytes]]) -> Any:
    """A frame of tasks, each in its own partition. Each lot is sent before the next is made."""
    import pyarrow

    frames = []
    for lot in lots:
        frame = running.createDataFrame(pyarrow.table({"task": pyarrow.array(lot, pyarrow.binary())}))
        # a large lot has one task and needs no shuffle
        frames.append(frame.coalesce(1) if len(lot) == 1 else frame.repartition(len(lot)))
    while len(frames) > 1:  # join pairs repeatedly, because the plan of a long chain would be too deep
        frames = [reduce(lambda one, other: one.union(other), frames[i : i + 2]) for i in range(0, len(frames), 2)]
    return frames[0]


def _answers(asked: Any) -> Iterator[tuple[int, bytes]]:
    """The answers of a job; InputError if the executors fail."""
    for attempt in range(_TRIES):
        try:
            answers = asked.toArrow()
        except Exception as error:  # Spark's own message may quote the tasks
            message = str(error)
            if "crashed" in message and attempt < _TRIES - 1:
                continue
            if "ModuleNotFoundError" in message:
                raise InputError(
                    "the workers of Spark lack a package: install shoal on them, in the version that runs here"
                ) from None
            raise InputError(
                too_little(error) or f"the workers of Spark failed ({type(error).__name__}); see its own log"
            ) from None
        return zip(answers["number"].to_pylist(), answers["held"].to_pylist(), strict=True)
    raise AssertionError


def _jobs(tasks: Iterable[bytes]) -> Iterator[list[list[bytes]]]:
    """Lots of tasks grouped into jobs: first a few lots, then each time as many as in all previous jobs; at least one
    job."""
    job: list[list[bytes]] = []
    most = _FIRST
    for lot in _lots(tasks):
        job.append(lot)
        if len(job) == most:
            yield job
            job, most = [], 2 * most
    if job:
        yield job


def _lots(tasks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Tasks in lots that fit in one frame; at least one."""
    lot: list[bytes] = []
    size = 0
    for task in tasks:
        if size + len(task) > _SENT and lot:
            yield lot
            lot, size = [], 0
        lot.append(task)
        size += len(task)
    yield lot


def _each(each: Callable[[bytes], Iterator[tuple[int, bytes]]], batches: Iterable[Any]) -> Iterator[Any]:
    """Map batches of tasks to one batch for each answer; runs in a process of an executor."""
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield from (_answer(*answer) for answer in each(task))


def _together(together: Callable[[Sequence[bytes]], bytes], batches: Iterable[Any]) -> Iterator[Any]:
    """Combine all answers of each number; runs in a process of an executor, which gets all answers of its numbers."""
    answers: dict[int, list[bytes]] = {}
    for batch in batches:
        for number, held in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True):
            answers.setdefault(number, []).append(held)
    yield from (_answer(number, together(held)) for number, held in answers.items())


def _answer(number: int, held: bytes) -> Any:
    import pyarrow

    kinds = {"number": pyarrow.int32(), "held": pyarrow.binary()}
    return pyarrow.RecordBatch.from_pydict({"number": [number], "held": [held]}, schema=pyarrow.schema(kinds))
