"""Files through DuckDB and Spark: their bytes checked first, then read with every option said, nothing sniffed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from shoal.engines.csv import one_character, structure_of
from shoal.engines.lazy import LazyTable
from shoal.engines.source import Source, is_latin, locate
from shoal.engines.structure import Structure
from shoal.errors import InputError, MissingDependencyError


def open_file(path: str | Path, engine: str, *, separator: str | None = None, encoding: str | None = None) -> LazyTable:
    """A CSV (text exactly as written) or a Parquet file as a relation of DuckDB or a frame of Spark.

    engine  "duckdb" or "spark"

    The structure of a CSV is checked over its bytes in slices; the engine must then find as many records.
    """
    source = locate(path)
    if source.kind == "excel":
        raise InputError(f"Excel files are read by the Polars engine; leave --engine {engine} out")
    found = None
    if source.kind == "csv":
        found, separator = structure_of(source, one_character(separator), encoding)
    opened = (_duckdb if engine == "duckdb" else _spark)(source, found, separator or ",", is_latin(encoding))
    source.refuse_change()
    return opened


def _refuse_alike(names: tuple[str, ...] | list[str], file: str, engine: str) -> None:
    """Neither engine tells names apart that differ by case alone."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        other = first.setdefault(name.casefold(), number)
        if other != number:
            raise InputError(
                f"{file!r}: the names of columns {other} and {number} are the same or differ by case alone, which "
                f"{engine} does not tell apart; rename one of them"
            )
        if not name.strip():
            raise InputError(f"{file!r}: column {number} has no name; name it")
        if "\n" in name or "\r" in name:
            raise InputError(
                f"{file!r}: the name of column {number} has a line break, over which {engine} loses rows; rename it"
            )


def _parquet_names(source: Source) -> list[str]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError.needed("pyarrow", "Parquet through an engine", "duckdb") from None
    try:
        return list(parquet.read_schema(source.path).names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{source.name!r} cannot be read as Parquet ({type(error).__name__})") from None


def _duckdb(source: Source, found: Structure | None, separator: str, latin: bool) -> LazyTable:
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.needed("duckdb", "the DuckDB engine", "duckdb") from None

    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    name = re.sub(r"([*?\[])", r"[\1]", str(source.path.absolute()))
    if found is None:
        _refuse_alike(_parquet_names(source), source.name, "DuckDB")
        call = f"read_parquet({text(name)}, hive_partitioning = false)"
        rows = None
    else:
        _refuse_alike(found.names, source.name, "DuckDB")
        if found.crlf and found.lf - found.leading > 0:
            raise InputError(
                f"{source.name!r} ends {found.crlf:,} lines in CR LF and {found.lf:,} in LF alone, which DuckDB does "
                "not read; give all lines the same end, or leave --engine out"
            )
        longest = max(found.longest + 2, 1 << 21)
        options = {
            "auto_detect": "false",
            "columns": "{" + ", ".join(f"{text(n)}: 'VARCHAR'" for n in found.names) + "}",
            "header": "true",
            "skip": str(found.leading),
            "delim": text(separator),
            "quote": text('"'),
            "escape": text('"'),
            "comment": "''",
            "nullstr": "''",
            "allow_quoted_nulls": "false",
            "strict_mode": "true",
            "null_padding": "false",
            "ignore_errors": "false",
            "encoding": text("latin-1" if latin else "utf-8"),
            "compression": text("gzip" if source.packed else "none"),
            "hive_partitioning": "false",
            "max_line_size": str(longest),
            "buffer_size": str(max(1 << 25, 4 * longest)),
        }
        call = f"read_csv({text(name)}, " + ", ".join(f"{k} = {v}" for k, v in options.items()) + ")"
        rows = found.records
    try:
        native: Any = duckdb.sql(f"from {call}")
    except duckdb.Error as error:
        raise InputError(f"{source.name!r} cannot be read by DuckDB ({type(error).__name__})") from None
    return LazyTable(native, source=source.name, records=rows)


def _spark(source: Source, found: Structure | None, separator: str, latin: bool) -> LazyTable:
    try:
        from pyspark.sql import SparkSession
        from pyspark.sql.types import StringType, StructField, StructType
    except ImportError:
        raise MissingDependencyError.needed("pyspark", "the Spark engine", "spark") from None
    if source.name.startswith((".", "_")) or ":" in str(source.path.absolute()):
        raise InputError(
            f"Spark does not read {source.name!r}: a colon in the path, or a dot or an underscore before the name; "
            "rename it, or leave --engine out"
        )
    names = _parquet_names(source) if found is None else found.names
    _refuse_alike(names, source.name, "Spark")
    if found is not None and found.crlf and (found.lf - found.leading > 0 or found.inner):
        raise InputError(
            f"{source.name!r} ends lines in CR LF and has line feeds of another kind, too, which Spark would change; "
            "give all lines LF, or leave --engine out"
        )
    session = SparkSession.builder.getOrCreate()
    reader = session.read.option("__globPaths__", "false")
    path = str(source.path.absolute())
    if found is None:
        return LazyTable(reader.parquet(path), source=source.name)
    native = reader.schema(StructType([StructField(name, StringType()) for name in found.names])).csv(
        path,
        header=True,
        enforceSchema=True,
        multiLine=True,
        mode="FAILFAST",
        sep=separator,
        quote='"',
        escape='"',
        encoding="ISO-8859-1" if latin else "UTF-8",
        nullValue="\0",  # no file has it, so that an empty text in quotes is not taken for a missing value
        emptyValue="",
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
        maxCharsPerColumn=-1,
        maxColumns=max(20_480, len(found.names) + 1),
    )
    return LazyTable(native, source=source.name, records=found.records)
