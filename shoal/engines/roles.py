"""A table looked at before anything is asked of it: a proposed role for every column, and what singles people out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.dangerous import Danger, foremost, words
from shoal.engines.open import open_table
from shoal.engines.propose import SHARES, Proposal, looked_at, person_of, publishing
from shoal.engines.scope import Scope
from shoal.engines.table import require
from shoal.errors import InputError

_KEYWORDS = {
    "quasi-identifier": "quasi_identifiers",
    "sensitive": "sensitive",
    "identifier": "identifiers",
    "insensitive": "insensitive",
}


@dataclass(frozen=True, eq=False)
class Roles:
    """What ``shoal init`` proposes for a table, as values.

    columns    a ``Proposal`` for every column, in the table's order
    dangerous  sets of columns that single people out together, the worst of one, two, three and more columns
    rows       number of rows;  table: the table that was read, as a Polars frame
    """

    columns: tuple[Proposal, ...]
    dangerous: tuple[Danger, ...]
    rows: int
    table: pl.DataFrame = field(repr=False)

    @property
    def person(self) -> str | None:
        """The column that names persons who have several rows; None where there is none."""
        return person_of(self.columns)

    @property
    def publish(self) -> tuple[str, str]:
        """The proposed way to publish, and why."""
        return publishing(self.columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The worst set of two, three and more columns, each in a sentence."""
        return tuple(words(danger, self.rows) for danger in foremost(self.dangerous))

    def settings(self, *, k: int = 5, l: int = 2) -> dict[str, Any]:
        """The proposal as settings of a ``Policy``: roles, the way to publish, the person's column, and the models.

        k alone where no column is sensitive; l beside it where it is in reach for all of them, else the least share of
        one value, of a few, that is (alpha_k)
        """
        named: dict[str, Any] = {key: [c.name for c in self.columns if c.role == r] for r, key in _KEYWORDS.items()}
        if self.person is not None:
            named["person"] = self.person
        shares = [c.share for c in self.columns if c.role == "sensitive"]
        models: dict[str, Any] = {"k": k}
        if shares and max(shares) * l <= 1:
            models["l"] = l
        elif shares:
            models["alpha_k"] = [next(s for s in SHARES if max(shares) <= s), k]
        return {**named, **models, "publish": self.publish[0]}

    def singled_out(self, columns: Sequence[str]) -> dict[str, int]:
        """How far columns identify rows together: "combinations", "smallest" class, and rows that are "alone".

        Raises PolicyError for a column that is not there.  O(n) for few combinations, O(n log n) otherwise; the codes
        of a column are made once.
        """
        require(self.table.columns, columns)
        if not columns or not self.rows:
            return {"combinations": min(1, self.rows), "smallest": self.rows, "alone": int(self.rows == 1)}
        key, size = np.zeros(self.rows, np.int64), 1
        for name in columns:
            codes, many = self._codes(name)
            if size > 2**62 // max(many, 1):
                key = np.unique(key, return_inverse=True)[1].reshape(-1)
                size = int(key.max()) + 1
            key, size = key * many + codes, size * many
        if size <= max(1 << 20, 4 * self.rows):
            held = np.bincount(key)
            held = held[held > 0]
        else:
            ordered = np.sort(key)
            held = np.diff(np.flatnonzero(ordered[1:] != ordered[:-1]), prepend=-1, append=key.size - 1)
        return {"combinations": int(held.size), "smallest": int(held.min()), "alone": int((held == 1).sum())}

    def counts(self, column: str) -> list[tuple[str | None, int]]:
        """Every value of a column as text, in its order, with its number of rows; a missing value is None."""
        require(self.table.columns, [column])
        coded = encode(self.table[column])
        rows = np.bincount(coded.codes, minlength=coded.size)
        return list(zip(coded.texts(), rows.tolist(), strict=True))

    @cached_property
    def _coded(self) -> dict[str, tuple[np.ndarray, int]]:
        return {}

    def _codes(self, name: str) -> tuple[np.ndarray, int]:
        if name not in self._coded:
            codes = encode(self.table[name]).codes
            self._coded[name] = codes.astype(np.int64), int(codes.max(initial=0)) + 1
        return self._coded[name]


def roles(
    data: Any, *, l: int = 2, separator: str | None = None, encoding: str | None = None, table: str | None = None,
    query: str | None = None,
) -> Roles:  # fmt: skip
    """A proposed role for every column of a table, with its reason: what ``shoal init`` writes into a policy.

    data       a path or a frame, as for ``anonymize``; table, query: what of a DuckDB or SQLite file
    l          that sensitive columns are tested against
    separator, encoding  of a CSV; found out when None

    Raises InputError for what cannot be read or has no column.  O(n) for each column, and for each small set of them.

    Examples:
        >>> import polars as pl
        >>> found = roles(pl.DataFrame({"name": ["Ann", "Bo", "Cy"], "age": [34, 34, 61], "flu": ["y", "n", "n"]}))
        >>> [(c.name, c.role) for c in found.columns][:2], found.singled_out(["age"])["alone"]
        ([('name', 'identifier'), ('age', 'quasi-identifier')], 1)
    """
    if table is not None or query is not None:
        opened = open_table(data, scope=Scope(table=table, query=query))
    else:
        opened = open_table(data, separator=separator, encoding=encoding)
    frame = opened.polars(opened.columns)
    if not frame.width:
        what = f"{Path(data).name!r}" if isinstance(data, (str, Path)) else "the table"
        raise InputError(f"{what} has no column")
    found, together, rows = looked_at(frame, l=l)
    return Roles(tuple(found), tuple(together), rows, frame)
