"""How many different persons stand in a class, and what values they have there, counted from the tuples themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.judge.readings import reading
from shoal.judge.tables.counted import Column
from shoal.judge.tuples import codes, number
from shoal.model.privacy import Model


def fewest(tuples: pl.DataFrame, quasi: Sequence[str], person: str) -> int | None:
    """The fewest different persons in a class; None for an empty table.

    tuples  published quasi-identifiers and the column that names persons, each pair at least once; other columns are
            not looked at.  A missing person is nobody.  O(t log t).
    """
    short = pl.DataFrame([tuples[n].alias(f"c{i}") for i, n in enumerate([*quasi, person])])
    last = short.columns[-1]
    found = short.group_by(short.columns[:-1]).agg(pl.col(last).drop_nulls().n_unique())[last].min()
    return None if found is None else int(found)  # type: ignore[arg-type]


def by_persons(
    tuples: pl.DataFrame, quasi: Sequence[str], columns: Sequence[str], person: str, model: Model, tree: Any = None
) -> tuple[float | None, bool]:
    """The level that a model reaches in some sensitive columns when each person counts once for each of its values.

    A row of a missing person is nobody's.  A share of l-diversity and alpha is one of the persons of a class.
    O(t log t).
    """
    held = tuples.filter(tuples[person].is_not_null())
    if not held.height:
        return None, True
    group = number([codes(held[c]) for c in quasi], held.height)
    who = codes(held[person])
    found = reading(f"shoal.judge.models.{type(model).__module__.rpartition('.')[2]}", model.name)
    if model.speaks == "tuples":
        return found(model, (np.column_stack([who, *(codes(held[c]) for c in columns)]), group))  # type: ignore[no-any-return]
    name = columns[0]
    once = np.unique(number([group, who, codes(held[name])], held.height), return_index=True)[1]
    members = group[once]
    if model.short in ("l", "alpha"):
        members = group[np.unique(number([group, who], held.height), return_index=True)[1]]
    ever = np.unique(number([who, codes(held[name])], held.height), return_index=True)[1]
    whole = Column(np.zeros(ever.size, np.int64), held[name].gather(ever), np.array([ever.size]), None, None)
    # a person of several classes is one of the table
    return found(model, Column(group[once], held[name].gather(once), np.bincount(members), None, tree, whole.table))  # type: ignore[no-any-return]
