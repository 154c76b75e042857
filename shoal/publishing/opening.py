"""Whatever a user hands over: as one frame in memory, or counted as a population."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.frames import FrameTable
from shoal.engines.open import open_table
from shoal.engines.source import Scope
from shoal.engines.table import Table, require
from shoal.errors import PolicyError, within
from shoal.judge.originals.population import Census
from shoal.model.policy import PLACE


def opened(
    data: Any, separator: str | None = None, encoding: str | None = None, scope: Scope | None = None
) -> pl.DataFrame:
    """Any table as a Polars frame, the text of a CSV as it stands; scope: which table or query of a database."""
    if isinstance(data, pl.DataFrame) and not any(scope or ()):
        return data
    table = open_table(data, separator=separator, encoding=encoding, scope=scope)
    return table.polars(table.columns)


def like(data: Any, frame: pl.DataFrame) -> Any:
    """A Polars frame as the kind of frame that data are; of a path it stays one."""
    if isinstance(data, (str, Path)):
        return frame
    return frame.lazy() if isinstance(data, pl.LazyFrame) else open_table(data).bring(frame)


def with_place(table: Table, coordinates: tuple[str, str]) -> Table:
    """A table in which the two coordinate columns are one column ``PLACE``, "x y"."""
    if not isinstance(table, FrameTable):
        raise PolicyError("coordinates are tiled in memory; read the table with the Polars engine")
    return table.joined(coordinates, PLACE)


def read_census(
    given: Any, quasi: Sequence[str], coordinates: tuple[str, str] | None = None, engine: str | None = None
) -> Census:
    """A population from a path or a frame, counted by its engine.

    Raises PolicyError for a column that it lacks.
    """
    if isinstance(given, Census):
        return given
    from_path = isinstance(given, str) or hasattr(given, "__fspath__")
    needed = [*(n for n in quasi if coordinates is None or n != quasi[-1]), *(coordinates or ())]
    with within("the population"):
        table = open_table(given, engine if from_path else None, coded=quasi, needed=needed)
        require(table.columns, needed)
    if coordinates is not None:
        table = with_place(table, coordinates)
    tuples, rows = table.counts(list(quasi))
    kept = [c.cast(pl.String) if isinstance(c.dtype, pl.Categorical) else c for c in tuples.iter_columns()]
    return Census(pl.DataFrame(kept), np.asarray(rows, np.int64))
