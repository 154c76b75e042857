"""Journeys over places: a table of a database, a lake, a folder, or Spark is published as the same Polars frame is.

``tried(seed, folder)`` says what came of one, or which engine is absent.  The release has the loss and the rows of the
frame's, it verifies beside its original, and each refusal is one sentence that holds no value of a row and no password.
"""

import atexit
import csv
import datetime as dt
import gzip
import io
import os
import random
import shutil
import sqlite3
from contextlib import ExitStack, closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.paths import certificate_path
from tests.fuzz.journeys import HEARD, POOLS, SECRET, TYPES, Journey, listed
from tests.servers import PASSWORD, Server, postgres

NEEDS = {"spark": "pyspark", "executors": "pyspark", "delta": "deltalake", "iceberg": "pyiceberg", "ibis": "ibis"}
PLACES = ["relation", "duckdb", "sqlite", "folder", "keys", "packed", *NEEDS, "postgres"]
MORE: dict[str, tuple[Any, list[Any]]] = {  # types and values that these places hold and few files of people do
    "near": (pl.Float64, [0.3, 0.1 + 0.2, 0.0, 1e-300, -1e-300, float("nan")]),
    "half": (pl.Float16, [1.5, 2.5, 0.1, -0.0]),
    "nanos": (pl.Datetime("ns"), [dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(1960, 1, 2)]),
    "span": (pl.Duration("us"), [dt.timedelta(days=3), dt.timedelta(microseconds=1)]),
    "bytes": (pl.Binary, [b"a", b"\xff", b""]),
    "list": (pl.List(pl.Int64), [[1], [1, 2], []]),
}
PLAIN = ("integer", "year", "float")
OTHER = [kind for kind in (*TYPES, *MORE) if kind not in PLAIN]
UNKEPT = {
    "relation": ("half",), "duckdb": ("half",), "sqlite": tuple(OTHER), "packed": ("span", "bytes", "list"),
    "spark": ("time", "half", "nanos"), "delta": ("time", "half", "nanos", "span"),
    "iceberg": ("time", "half", "nanos", "span"),
    "postgres": ("half", "nanos", "list"), "ibis": ("half", "nanos", "list"),
}  # fmt: skip
ALONE = (
    "the dot of", "begins or ends with", "a column '*'", "back-tick", "line break", "as a variable", "write otherwise",
    "holds moments in nanoseconds", "holds times of day", "holds floats of 16 bits", "INTERVAL", "interval(",
)  # fmt: skip
KINDS = {
    pl.String: "text", pl.Int64: "bigint", pl.Float64: "double precision", pl.Boolean: "boolean", pl.Date: "date",
    pl.Time: "time", pl.Datetime: "timestamp", pl.Decimal: "numeric(10, 2)", pl.Binary: "bytea",
    pl.Duration: "interval",
}  # fmt: skip
SPARK = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}


@cache
def server() -> Server:
    """A PostgreSQL server until this process ends."""
    held = ExitStack()
    atexit.register(held.close)
    os.environ["PGPASSWORD"] = PASSWORD
    return held.enter_context(postgres())


@cache
def absent(place: str) -> str | None:
    """What a place lacks here; None if nothing."""
    if place in NEEDS and find_spec(NEEDS[place]) is None:
        return f"no package {NEEDS[place]}"
    if place in ("spark", "executors") and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "no Java"
    if place in ("postgres", "ibis"):
        try:
            server()
        except (pytest.skip.Exception, pytest.fail.Exception) as why:
            return f"no server of PostgreSQL: {why}"
    return None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Walk(Journey):
    """A table in a place, and the frame that is the same."""

    sources, unkept = PLACES, UNKEPT
    pools = POOLS | {kind: values for kind, (_, values) in MORE.items()}
    types = TYPES | {kind: held for kind, (held, _) in MORE.items()}

    def saved(self, frame: pl.DataFrame, name: str) -> Any:
        """The table in its place: what is handed to shoal, and in ``how`` the keywords that go with it."""
        self.same, self.how = frame, {}
        return getattr(self, f"in_{self.kind}")(frame, name)

    def silent(self, text: str, where: list[str]) -> None:
        super().silent(text, where)
        assert PASSWORD not in text, where
        assert not any(word in text for word in ("java.", "org.apache", "py4j")), (where, text)

    def in_relation(self, frame: pl.DataFrame, name: str) -> Any:
        import duckdb

        return duckdb.connect().from_arrow(frame.to_arrow())

    def in_duckdb(self, frame: pl.DataFrame, name: str) -> Any:
        import duckdb

        self.how = {"table": "t"}
        with duckdb.connect(str(self.folder / f"{name}.duckdb")) as made:
            made.register("held", frame.to_arrow())
            made.execute("create table t as select * from held")
        return self.folder / f"{name}.duckdb"

    def in_sqlite(self, frame: pl.DataFrame, name: str) -> Any:
        self.how, kinds = {"table": "t"}, {pl.String: "text", pl.Int64: "integer", pl.Float64: "real"}
        columns = ", ".join(f"{quoted(n)} {kinds[kind]}" for n, kind in frame.schema.items())  # type: ignore[index]
        with closing(sqlite3.connect(self.folder / f"{name}.sqlite")) as made:
            made.execute(f"create table t ({columns})")
            made.executemany(f"insert into t values ({', '.join('?' * frame.width)})", frame.rows())
            made.commit()
        return self.folder / f"{name}.sqlite"

    def in_folder(self, frame: pl.DataFrame, name: str) -> Any:
        (self.folder / name).mkdir()
        for i in range(3):
            part = frame[i * frame.height // 3 : (i + 1) * frame.height // 3]
            part.write_parquet(self.folder / name / f"{i}.parquet")
        return self.folder / name

    def in_keys(self, frame: pl.DataFrame, name: str) -> Any:
        for (ward,), part in frame.group_by(["ward"], maintain_order=True):
            place = self.folder / name / f"ward={ward}"
            place.mkdir(parents=True)
            part.drop("ward").write_parquet(place / "0.parquet")
        self.same = frame[[*(n for n in frame.columns if n != "ward"), "ward"]]
        return self.folder / name

    def in_packed(self, frame: pl.DataFrame, name: str) -> Any:
        text, self.how = frame.write_csv(), {"engine": "duckdb"}
        self.same = pl.read_csv(text.encode(), infer_schema=False).with_columns(pl.col(pl.String).replace("", None))
        self.same.columns = next(csv.reader(io.StringIO(text)))
        place = self.folder / f"{name} ü#?[x]*%20.csv.gz"
        place.write_bytes(gzip.compress(text.encode()))
        return place

    def session(self) -> Any:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]")
        for key, value in SPARK.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def in_spark(self, frame: pl.DataFrame, name: str) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        return self.session().createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))

    def in_executors(self, frame: pl.DataFrame, name: str) -> Any:
        self.session()
        self.how = {"engine": "spark"}
        frame.write_parquet(self.folder / f"{name}.parquet")
        return self.folder / f"{name}.parquet"

    def in_delta(self, frame: pl.DataFrame, name: str) -> Any:
        import deltalake

        deltalake.write_deltalake(str(self.folder / name), frame.to_arrow())
        return f"delta:{self.folder / name}"

    def in_iceberg(self, frame: pl.DataFrame, name: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("c", uri=f"sqlite:///{self.folder}/{name}.db", warehouse=f"file://{self.folder}/{name}")
        catalog.create_namespace_if_not_exists("n")
        held = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        catalog.create_table("n.t", schema=held.schema).append(held)
        return self.folder / name / "n" / "t"

    def in_postgres(self, frame: pl.DataFrame, name: str) -> Any:
        import psycopg

        self.how = {"table": name}
        columns = ", ".join(f"{quoted(n)} {KINDS[kind.base_type()]}" for n, kind in frame.schema.items())
        with psycopg.connect(server().address(), autocommit=True) as held:
            held.execute(f"drop table if exists {name}")  # type: ignore[call-overload]
            held.execute(f"create table {name} ({columns})".encode())
            with held.cursor() as cursor, cursor.copy(f"copy {name} from stdin") as copy:  # type: ignore[call-overload]
                for row in frame.iter_rows():
                    copy.write_row(row)
        return server().address(password=None)

    def in_ibis(self, frame: pl.DataFrame, name: str) -> Any:
        import ibis

        self.in_postgres(frame, name)
        self.how, port = {}, server().port
        own = ibis.postgres.connect(host="127.0.0.1", port=port, user="shoal", password=PASSWORD, database="test")
        return own.table(name)

    # the steps

    def published(self) -> str:
        """The release of the place and that of the frame; then what people do with it."""
        asked = self.settings()
        asked.pop("shards", None)
        given, how = self.source, self.how
        named = {key: value for key, value in how.items() if key == "table"}
        made = self.refusable(lambda: shoal.anonymize(given, secret=SECRET, **asked, **how))
        why = HEARD[-1][1] if made is None else ""
        twin = self.refusable(lambda: shoal.anonymize(self.same, secret=SECRET, **asked))
        self.refusable(lambda: shoal.roles(given, **named))
        if made is None:
            assert twin is None or any(words in why for words in ALONE), ("refused in its place alone", why)
            return "refused"
        assert twin is not None, ("refused as a frame alone", HEARD[-1])
        assert made.loss == pytest.approx(twin.loss), (self.kind, made.loss, twin.loss)
        outs = [self.folder / f"{name}.parquet" for name in ("r", "twin")]
        if any(
            self.refusable(lambda pair=pair: pair[0].write(pair[1])) is None
            for pair in zip((made, twin), outs, strict=True)
        ):
            return "unwritten"
        rows = [sorted(map(repr, pl.read_parquet(out).rows())) for out in outs]
        assert rows[0] == rows[1], (self.kind, "the rows differ")
        for original in (None, given):
            verdict = shoal.verify(outs[0], original=original, **(named if original is not None else {}))
            assert verdict.holds, (self.kind, [f for f in verdict.findings if not f.holds])
        self.refusable(lambda: shoal.audit(given, quasi_identifiers=asked["quasi_identifiers"], **how))
        for work in (
            lambda: made.report(self.folder / "r.html"),
            lambda: shoal.compare(given, {"r": outs[0]}, asked),
            lambda: shoal.attack(outs[0], original=given),
            lambda: shoal.anonymize(given, after=outs[0], force_composition=True, **asked, **how),
        ):
            self.refusable(work)
        return "released"

    def commands(self) -> str:
        """The same by command, where a place has a name."""
        if not isinstance(self.source, (str, Path)):
            return self.published()
        engine = ["--engine", self.how["engine"]] if "engine" in self.how else []
        words = [self.source, *(["--table", self.how["table"]] if "table" in self.how else [])]
        self.do("init", *words, "-o", self.folder / "p.toml", "--k", 2)
        out = self.folder / "r.csv"
        asked = ["anonymize", *words, *engine, "--policy", self.policy(self.settings()), "-o", out]
        if self.do(*asked, open_to=(out,)) is None:
            return "refused"
        assert self.do("verify", out) is not None
        assert self.do("verify", out, "--original", *words) is not None
        for further in (["compare", words[0], out, "--policy", certificate_path(out)],
                      ["attack", out, "--original", words[0]],
                      ["audit", *words, *engine, "--quasi", listed(self.roles["quasi_identifiers"])]):  # fmt: skip
            self.do(*further)
        return "released"

    def months(self) -> str:
        """Two months of a series."""
        kept = ("quasi_identifiers", "sensitive", "k", "l", "publish", "effort", "seed")
        asked = {key: value for key, value in self.settings().items() if key in kept and value != "hierarchy"}
        held = {*asked["quasi_identifiers"], *asked["sensitive"], "name"}
        series = self.refusable(lambda: shoal.Series.start(self.folder / "s", shoal.Policy.of(**asked)))
        left = [name for name in self.frame.columns if name not in held]
        for month in range(2 if series is not None else 0):
            given = self.saved(self.rows(self.frame.height), f"m{month}")
            part = self.refusable(lambda g=given: series.add(g, person="name", identifiers=left, **self.how))
            assert part is None or series.verify().holds, "a series"
        return "series"


def tried(seed: int, folder: Path, place: str | None = None) -> str:
    """What was walked, or what a place lacks here; whatever a user should not meet is raised."""
    place = random.Random(seed).choice(PLACES) if place is None else place
    if (why := absent(place)) is not None:
        return f"{place}: {why}"
    walk = type("There", (Walk,), {"sources": [place]})(seed, folder)
    step = walk.rng.choice([walk.published, walk.published, walk.commands, walk.months])
    return str(step())
