"""What an engine may use and what of a source it reads: the settings of tables larger than memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from shoal.errors import InputError, PolicyError

_SIZE = re.compile(r"(?i)^\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)\s*$")
_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}
LEAST = 100 * 10**6


class ScopeSettings(TypedDict, total=False):
    """The fields of ``Scope`` as keywords."""

    memory: str | None
    threads: int | None
    temporary: str | Path | None
    glob: bool
    table: str | None
    query: str | None
    master: str | None


class Scope(NamedTuple):
    """Settings of an engine; all of them may be left out.

    memory     most memory DuckDB holds before it writes to disk, such as "2GB"; shoal itself needs some beside it
    threads    threads of DuckDB
    temporary  folder that DuckDB spills into, in a folder of its own that only this user can read
    glob       whether the path is a pattern in which ``*``, ``?``, ``[`` and ``**`` stand for more than themselves
    table      table or view of a DuckDB or SQLite file, or of a server of databases
    query      one SELECT over a DuckDB or SQLite file or a server; over other files, which are the table ``data`` there
    master     where Spark runs, such as "local[2]"
    """

    memory: str | None = None
    threads: int | None = None
    temporary: str | Path | None = None
    glob: bool = False
    table: str | None = None
    query: str | None = None
    master: str | None = None

    @classmethod
    def among(cls, settings: Mapping[str, Any]) -> tuple[Scope, dict[str, Any]]:
        """Those among other settings, and the others."""
        own = {name: value for name, value in settings.items() if name in cls._fields}
        return cls(**own), {name: value for name, value in settings.items() if name not in own}

    def as_asked(self, data: Any, engine: str | None, asked: Any) -> tuple[Scope, str | None]:
        """With what a policy says of reading where the call says nothing; a frame has been read already.

        asked  a ``Policy``
        """
        if not isinstance(data, (str, Path, list, tuple)):
            return self, engine
        own = {name: getattr(asked, name) for name in ("memory", "threads", "temporary") if getattr(self, name) is None}
        return self._replace(**own), engine or asked.engine

    def check(self, engine: str | None) -> None:
        """PolicyError or InputError for settings that cannot be met, or that the engine does not have.

        engine  "polars", "duckdb", "spark", "ibis"; None where a frame was handed over, whose engine its owner set up
        """
        mine = {
            "memory": "duckdb",
            "threads": "duckdb",
            "temporary": "duckdb",
            "table": "duckdb",
            "query": "duckdb",
            "master": "spark",
        }
        for name, owner in mine.items():
            given = getattr(self, name)
            if given is not None and engine != owner and not (engine == "ibis" and name in ("table", "query")):
                said = f"engine={engine!r}; say engine='{owner}' beside it" if engine else "a frame"
                raise PolicyError(f"{name}={str(given)!r} is a setting of engine='{owner}'; it has no effect on {said}")
        if self.glob and engine in (None, "polars"):
            raise PolicyError("glob=True reads the parts of a table; say engine='duckdb' or engine='spark'")
        if self.table is not None and self.query is not None:
            raise PolicyError("give table=... or query=..., not both; a query names its tables itself")
        if self.threads is not None and (isinstance(self.threads, bool) or self.threads < 1):
            raise PolicyError(f"threads={self.threads!r}: give a whole number from 1 up")
        if self.memory is not None:
            size(self.memory)
        if self.temporary is not None and not Path(self.temporary).is_dir():
            raise InputError(f"there is no folder {str(self.temporary)!r} to spill into; make it first")


def size(text: str) -> int:
    """Bytes of "2GB", "512MiB"; PolicyError for anything else and for less than 100 MB."""
    found = _SIZE.match(text) if isinstance(text, str) else None
    if found is None:
        raise PolicyError(f"memory={str(text)!r}: write a size such as '2GB' or '512MiB'")
    unit = found[2].lower()
    bytes_ = int(float(found[1]) * (1024 if "i" in unit else 1000) ** _UNITS[unit[0]])
    if bytes_ < LEAST:
        raise PolicyError(f"memory={text!r} is too little to work with; give 100MB or more")
    return bytes_
