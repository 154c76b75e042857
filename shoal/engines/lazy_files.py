"""Files through DuckDB and Spark: their bytes checked first, then read with every option said, nothing sniffed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.engines.checked import Checked, look
from shoal.engines.duck import connect, quoted, relation, text
from shoal.engines.lazy import LazyTable
from shoal.engines.parts import is_several, parts_of, parts_of_one
from shoal.engines.scope import Scope
from shoal.engines.spark import read_parts
from shoal.errors import InputError


def open_file(
    path: str | Path | Sequence[str | Path],
    engine: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    scope: Scope | None = None,
) -> LazyTable:
    """CSV (text exactly as written) or Parquet, in one file or in parts, as a relation of DuckDB or a frame of Spark.

    engine  "duckdb" or "spark"

    The structure of a CSV is checked over its bytes in slices; the engine must then find as many records.  A column
    in the names of folders (key=value) is text.
    """
    scope = scope or Scope()
    parts = parts_of(path, pattern=scope.glob) if is_several(path, scope.glob) else parts_of_one(path)
    if parts.kind == "excel":
        raise InputError(f"Excel files are read by the Polars engine; leave --engine {engine} out")
    checked = look(parts, separator, encoding, {"duckdb": "DuckDB", "spark": "Spark"}[engine])
    native = (_duckdb if engine == "duckdb" else read_parts)(checked, scope)
    parts.refuse_change()
    records = sum(found.records for found in checked.found) if checked.found else None
    return LazyTable(native, source=parts.name, records=records, parts=parts, separator=checked.separator)


def _duckdb(checked: Checked, scope: Scope) -> Any:
    connection = connect(scope)
    sql = duckdb_sql(checked)
    if scope.query is not None:
        relation(connection, f"create view data as {sql}", checked.parts.name)
        return relation(connection, scope.query, "the query")
    return relation(connection, sql, checked.parts.name)


def duckdb_sql(checked: Checked) -> str:
    """The query that reads the parts, a call for all files that are read with the same options."""
    hive = f"hive_partitioning = {str(bool(checked.parts.keys)).lower()}"
    if checked.parts.keys:
        hive += ", hive_types_autocast = false"
    columns = ", ".join(map(quoted, checked.columns))
    calls: dict[str, list[str]] = {}
    for i, source in enumerate(checked.parts.sources):
        name = text(re.sub(r"([*?\[])", r"[\1]", str(source.path.absolute())))
        options = hive if not checked.found else _csv_options(checked, i) + ", " + hive
        calls.setdefault(options, []).append(name)
    reader = "read_csv" if checked.found else "read_parquet"
    made = [f"select {columns} from {reader}([{', '.join(names)}], {options})" for options, names in calls.items()]
    return " union all ".join(made)


def _csv_options(checked: Checked, i: int) -> str:
    found = checked.found[i]
    longest = max(*(f.longest + 2 for f in checked.found), 1 << 21)
    options = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{text(n)}: 'VARCHAR'" for n in checked.names) + "}",
        "header": "true",
        "skip": str(found.leading),
        "delim": text(checked.separator or ","),
        "quote": text('"'),
        "escape": text('"'),
        "comment": "''",
        "nullstr": "''",
        "allow_quoted_nulls": "false",
        "strict_mode": "true",
        "null_padding": "false",
        "ignore_errors": "false",
        "encoding": text("latin-1" if checked.latin else "utf-8"),
        "compression": text("gzip" if checked.parts.sources[i].packed else "none"),
        "max_line_size": str(longest),
        "buffer_size": str(max(1 << 25, 4 * longest)),
    }
    return ", ".join(f"{k} = {v}" for k, v in options.items())
