"""Files through an engine that holds them elsewhere: their bytes checked first, then read by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

from shoal.engines.checked import look
from shoal.engines.parts import is_several, parts_of, parts_of_one
from shoal.engines.scope import Scope
from shoal.engines.table import Home, Origin, Table
from shoal.errors import InputError


class Engine(NamedTuple):
    """An engine that holds tables outside of this process.

    title   what messages call it
    frames  the packages whose frames it takes
    home    the module with its ``read`` and ``table_of``
    """

    title: str
    frames: tuple[str, ...]
    home: str

    def opened(self) -> Home:
        """Its module, imported when it is needed."""
        return cast(Home, import_module(self.home))


ENGINES = {
    "duckdb": Engine("DuckDB", ("duckdb", "_duckdb"), "shoal.engines.duck"),
    "spark": Engine("Spark", ("pyspark",), "shoal.engines.spark"),
    "ibis": Engine("Ibis", ("ibis",), "shoal.engines.ibis"),
}


def open_file(
    path: str | Path | Sequence[str | Path],
    engine: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    scope: Scope | None = None,
) -> Table:
    """CSV (text exactly as written) or Parquet, in one file or in parts, as a table of an engine.

    engine  one of ``ENGINES``

    The structure of a CSV is checked over its bytes in slices; the engine must then find as many records.  A column
    in the names of folders (key=value) is text.
    """
    scope = scope or Scope()
    parts = parts_of(path, pattern=scope.glob) if is_several(path, scope.glob) else parts_of_one(path)
    if parts.kind == "excel":
        raise InputError(f"Excel files are read by the Polars engine; leave --engine {engine} out")
    known = ENGINES[engine]
    checked = look(parts, separator, encoding, known.title)
    home = known.opened()
    native = home.read(checked, scope)
    parts.refuse_change()
    records = checked.records if scope.query is None else None  # a query was counted before it ran
    return home.table_of(native, Origin(parts.name, records, checked.parts, checked.separator))
