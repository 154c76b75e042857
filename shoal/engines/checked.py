"""The parts of a table looked at before an engine reads them: their columns, structure and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import polars as pl

from shoal.engines.csv import one_character, structure_of
from shoal.engines.parts import Parts
from shoal.engines.source import Source, is_latin, spoiled
from shoal.engines.structure import Structure
from shoal.errors import InputError, MissingDependencyError


class Checked(NamedTuple):
    """The parts of a table after a look at their bytes.

    names      the columns in the files
    found      of CSV parts the structure of each; empty for Parquet
    separator  of CSV parts
    """

    parts: Parts
    names: tuple[str, ...]
    found: tuple[Structure, ...]
    separator: str | None
    latin: bool

    @property
    def columns(self) -> list[str]:
        """All columns, those in the names of folders last."""
        return [*self.names, *self.parts.keys]

    @property
    def records(self) -> int | None:
        """How many rows a second parser found in CSV parts; None of Parquet."""
        return sum(found.records for found in self.found) if self.found else None


def refuse_other_count(name: str, held: int, records: int) -> None:
    """InputError where an engine finds another number of rows than the second parser of a file's bytes."""
    if held != records:
        raise InputError(f"two readers do not agree on {name!r}: {held:,} rows and {records:,}; leave --engine out")


def look(parts: Parts, separator: str | None, encoding: str | None, engine: str) -> Checked:
    """Every part looked at; InputError where one has other columns, or its bytes break the rules."""
    names: tuple[str, ...] | None = None
    given = one_character(separator)
    found: list[Structure] = []
    kinds: Any = None
    for source in parts.sources:
        if parts.kind == "csv":
            structure, given = structure_of(source, given, encoding)
            found.append(structure)
            here = structure.names
            if engine == "DuckDB" and structure.crlf and structure.lf - structure.leading > 0:
                raise InputError(
                    f"{source.name!r} ends {structure.crlf:,} lines in CR LF and {structure.lf:,} in LF alone, which "
                    "DuckDB does not read; give all lines the same end, or leave --engine out"
                )
        else:
            schema = _parquet_schema(source)
            here = tuple(schema.names)
            types = [str(kind) for kind in schema.types]
            if kinds is not None and here == names and types != kinds:
                other = next(n for n, a, b in zip(here, types, kinds, strict=True) if a != b)
                raise InputError(f"{source.name!r}: column {other!r} is of another type than in the first part")
            kinds = types
        if names is None:
            if repeated := [key for key in parts.keys if key in here]:
                parts = _once(parts, repeated)
            _refuse_alike((*here, *parts.keys), source.name, engine)
            names = here
        elif here != names:
            raise InputError(f"{source.name!r} has other columns, or in another order, than the first part")
    assert names is not None
    return Checked(parts, names, tuple(found), given if found else None, is_latin(encoding))


def _once(parts: Parts, repeated: Sequence[str]) -> Parts:
    """Parts whose files hold the columns in the names of their folders, too, as some writers leave them.

    The files are believed once every value in them is the one its folder says; InputError where one is not.
    """
    if parts.kind != "parquet" or len(repeated) < len(parts.keys):
        raise InputError(
            f"{parts.name!r}: column {repeated[0]!r} stands in the files and in the names of their folders; rename it "
            "in the one or the other"
        )
    for source in parts.sources:
        by_key = dict(name.split("=", 1) for name in source.path.absolute().parts[:-1] if "=" in name)
        wanted = [
            pl.col(key).cast(pl.String).fill_null("__HIVE_DEFAULT_PARTITION__").eq(unquote(by_key[key])).all()
            for key in parts.keys
        ]
        held = pl.scan_parquet(source.path, glob=False, hive_partitioning=False)
        try:
            agree = held.select(wanted).collect().row(0)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise spoiled(source.name, "Parquet", error) from None
        for key, same in zip(parts.keys, agree, strict=True):
            if not same:
                raise InputError(
                    f"{source.name!r}: column {key!r} holds other values than its folder is named by; rename it "
                    "in the one or the other"
                )
    return parts._replace(keys=())


def _refuse_alike(names: Sequence[str], file: str, engine: str) -> None:
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


def _parquet_schema(source: Source) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError.needed("pyarrow", "Parquet through an engine", "duckdb") from None
    try:
        return parquet.read_schema(source.path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise spoiled(source.name, "Parquet", error) from None
