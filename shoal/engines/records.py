"""Real records about people that installed packages carry."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import polars as pl

from shoal.engines.files import read_table
from shoal.errors import MissingDependencyError


def fair_survey() -> pl.DataFrame:
    """Fair's survey of 1974 (Redbook): 6,366 women, nine answers each, all text.

    Public domain; read from the file that the package statsmodels carries, without importing it.
    """
    found = find_spec("statsmodels")
    path = (
        Path(next(iter(found.submodule_search_locations or []))) / "datasets" / "fair" / "fair.csv" if found else None
    )
    if path is None or not path.exists():
        raise MissingDependencyError.needed("statsmodels", "the survey of the demo", "demo")
    return read_table(path)
