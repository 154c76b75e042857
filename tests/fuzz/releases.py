"""Releases without end: a table, a policy, an engine and a format at random, made, written and judged.

``tried(seed, folder)`` says what came of one; a finding that does not hold, or an error that is none of shoal's, is
raised.
"""

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

import shoal

NAMES = ["len", "count", "*", "age", "rows", "values", "0", "a b", "größe", "index", "group", "__index_level_0__"]
ENDINGS = [".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx", ".sav", ".dta"]
MODELS: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 3},
    {"l": 2},
    {"k": 2, "distinct_l": 2},
    {"k": 2, "entropy_l": 1.5},
    {"alpha_k": (0.8, 2)},
    {"k": 2, "recursive_cl": (2.0, 2)},
    {"k": 2, "t": 0.4},
    {"k": 2, "t_ordered": 0.4},
    {"k": 2, "t_hierarchical": 0.3},
    {"k": 2, "beta": 1.0},
    {"k": 2, "delta": 1.2},
    {"k": 2, "simultaneous_l": 2},
]
PUBLISH = ["stars", "ranges", "hierarchy", "centers"]
ENGINES = ["polars", "pandas", "arrow", "duckdb", "file", "file by duckdb"]
START = dt.datetime(2020, 1, 31, 5, 6)
POOLS: dict[str, list[Any]] = {
    "text": ["a", "b", "a, b", "c"],
    "blank": ["", " ", "a", "*", "missing"],
    "digits": ["7", "07", "8", "10"],
    "marks": ["missing", "{a, b}", "a .. b", "x (group 2)", '"a"', "'", "-", "=1+1", "two\nlines", "a\tb", "NA"],
    "numerals": ["1", "1.0", "+1", "1e3", "1,5", "nan", "Inf", "-0"],
    "days": ["2024-01-01", "2024-02-01", "2024-02-30", "01/02/2024"],
    "bands": ["20-24", "25-29", "30+", "<20", "2024-03", "[20, 25)"],
    "truth": ["True", "False"],
    "integer": [-3, 0, 20, 21, 400],
    "wide": [2**53 + 1, 2**53 + 3, 5],
    "float": [0.5, 1.0, 1e-7, 2.5e20, 0.1 + 0.2],
    "boolean": [True, False],
    "decimal": [Decimal("1.50"), Decimal("2.00"), Decimal("-0.25")],
    "date": [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(1950, 3, 4)],
    "moment": [START, START + dt.timedelta(days=3), START + dt.timedelta(microseconds=1)],
    "time": [dt.time(1, 2, 3), dt.time(23, 59, 59, 1), dt.time(0)],
    "category": ["x", "y", "z"],
}
TYPES: dict[str, Any] = {
    "integer": pl.Int64,
    "wide": pl.Int64,
    "float": pl.Float64,
    "decimal": pl.Decimal(10, 2),
    "boolean": pl.Boolean,
    "date": pl.Date,
    "moment": pl.Datetime("us"),
    "time": pl.Time,
}
SPARK = {
    "integer": "long", "wide": "long", "float": "double", "decimal": "decimal(10,2)", "boolean": "boolean",
    "date": "date", "moment": "timestamp_ntz",
}  # fmt: skip
SHEET = [kind for kind in POOLS if kind not in ("wide", "decimal", "moment", "time")]


def series(rng: random.Random, name: str, kind: str, n: int, gaps: bool) -> pl.Series:
    """A column of a kind, with missing values or without."""
    values = [rng.choice(POOLS[kind]) for _ in range(n)]
    if gaps:
        values = [None if rng.random() < 0.2 else v for v in values]
    found = pl.Series(name, values, dtype=TYPES.get(kind, pl.String))
    return found.cast(pl.Categorical) if kind == "category" else found


def drawn(rng: random.Random, sheet: bool, n: int) -> pl.DataFrame:
    """Five columns of odd names: two quasi-identifiers, a sensitive one, an identifier and one that is carried."""
    names = rng.sample(NAMES, 5)
    kinds = [rng.choice(SHEET if sheet else list(POOLS)) for _ in names]
    columns = [series(rng, x, kind, n, rng.random() < 0.3) for x, kind in zip(names, kinds, strict=True)]
    columns[2] = pl.Series(names[2], (["p", "q", "r"] * n)[:n])
    if columns[4].dtype == pl.Float64 and not sheet:
        columns[4] = columns[4].fill_null(float("nan"))
    return pl.DataFrame(columns)


def sparks(session: Any, frame: pl.DataFrame) -> Any:
    """The table as a Spark frame."""
    from pyspark.sql.types import StructType

    kinds = {TYPES[kind]: name for kind, name in SPARK.items()}
    schema = StructType()
    for name, kind in frame.schema.items():
        schema.add(name, kinds.get(kind, "string"))
    return session.createDataFrame(frame.rows(), schema)


def handed(rng: random.Random, frame: pl.DataFrame, engine: str, folder: Path) -> tuple[Any, Any]:
    """(what is handed to shoal, what keeps it alive)."""
    if engine == "pandas":
        return frame.to_pandas(), None
    if engine == "arrow":
        return frame.to_arrow(), None
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        return connection.from_arrow(frame.to_arrow()), connection
    if engine.startswith("file"):
        source = folder / rng.choice(["t.csv", "t.parquet"])
        if source.suffix == ".csv":
            frame.write_csv(source, separator=rng.choice(",;\t|"))
        else:
            frame.write_parquet(source)
        return source, None
    return frame, None


def asked(rng: random.Random, frame: pl.DataFrame, publish: str) -> tuple[dict[str, Any], Any]:
    """(settings, hierarchies) of a policy for a drawn table."""
    quasi = frame.columns[:2]
    settings: dict[str, Any] = dict(rng.choice(MODELS))
    hierarchies = None
    if publish == "hierarchy":
        texts = frame[quasi[0]].cast(pl.String).drop_nulls().unique().to_list()
        rows = [[t, "low" if t < "2" else "high"] for t in sorted(texts)]
        hierarchies = {quasi[0]: rng.choice([rows or "stars", "labels", "labels", "prefixes:2,1", "stars"])}
    if publish == "ranges" and rng.random() < 0.5:
        settings["weights"] = {quasi[1]: 5.0}
    if publish == "centers":
        settings = {"k": 2}
    elif rng.random() < 0.25:
        settings["missing"] = "apart"
    if "missing" not in settings and rng.random() < 0.25:
        settings["missing"] = "filled"
    if "t_hierarchical" in settings:
        tree = {frame.columns[2]: [["p", "x"], ["q", "x"], ["r", "y"]]}
        hierarchies = tree if hierarchies is None else hierarchies | tree
    return settings, hierarchies


def tried(seed: int, folder: Path, session: Any = None) -> str:
    """ "refused", or "verified" with and without the original; AssertionError where a verdict does not hold.

    session  of Spark, which is the engine then; it has no times of day
    """
    rng = random.Random(seed)
    ending, publish, engine = rng.choice(ENDINGS), rng.choice(PUBLISH), rng.choice(ENGINES)
    frame = drawn(rng, ending == ".xlsx", rng.randint(6, 14))
    if ending in (".sav", ".dta"):  # whose names of columns are plain
        frame.columns = [f"c{at}" for at in range(frame.width)]
    if session is None:
        source, held = handed(rng, frame, engine, folder)
    else:
        source, held = sparks(session, frame.cast({pl.Time: pl.String})), None
        engine = "spark"
    settings, hierarchies = asked(rng, frame, publish)
    out = folder / f"r{ending}"
    try:
        release = shoal.anonymize(
            source,
            engine="duckdb" if engine == "file by duckdb" else None,
            quasi_identifiers=frame.columns[:2],
            sensitive=[frame.columns[2]],
            identifiers=[frame.columns[3]],
            insensitive=[frame.columns[4]],
            publish=publish,
            hierarchies=hierarchies or {},
            star="#",
            effort="fast",
            **settings,
        )
        record = release.write(out, folder / "r.certificate.json")
    except (shoal.InfeasibleError, shoal.InputError, shoal.PolicyError):
        return "refused"
    except shoal.VerificationError:
        if ending == ".xlsx":  # what a sheet cannot hold is for the writer to refuse
            return "refused"
        raise
    json.loads(record.read_text())
    for original in (None, source):
        verdict = shoal.verify(out, record, original, hierarchies=hierarchies)
        assert verdict.holds, [f for f in verdict.findings if not f.holds]
    del held
    return "verified"
