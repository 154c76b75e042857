"""A second reading of missing values and stars: wildcards that are alike to every value.

Other tools count so (sdcMicro, ARX on request): a row's frequency is the number of rows that it could be.  Being alike
is then no equivalence, so there are no classes, and k means the least frequency.  It flatters: rows that hide in one
another's blanks are told apart by who knows the blanks.  Shares no code with the solvers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.judge.values import codes

_PATTERNS = 512


def frequencies(frame: pl.DataFrame, quasi: Sequence[str], star: str = "*") -> np.ndarray | None:
    """int64[n]: rows that each row could be, itself among them; None beyond 512 patterns of wildcards.

    Two rows are alike when they agree in every column in which neither has a wildcard: a missing value or a star.
    O(patterns^2 (t log t)) for t different tuples.
    """
    n = frame.height
    columns = []
    for name in quasi:
        series = frame[name]
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.dtype == pl.String:
            series = series.set((series == star).fill_null(False), None)
        columns.append(codes(series, series)[0])
    rows = np.column_stack(columns) if columns else np.zeros((n, 0), np.int64)
    tuples, of, held = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    wild = tuples == 0
    patterns, which = np.unique(wild, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) > _PATTERNS:
        return None
    found = np.zeros(len(tuples), np.int64)
    for p, here in enumerate(patterns):
        mine = np.flatnonzero(which == p)
        for q, there in enumerate(patterns):
            theirs = np.flatnonzero(which == q)
            known = ~(here | there)
            both = np.concatenate([tuples[mine][:, known], tuples[theirs][:, known]])
            number = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            total = np.bincount(number[mine.size :], weights=held[theirs], minlength=int(number.max(initial=0)) + 1)
            found[mine] += total[number[: mine.size]].astype(np.int64)
    out: np.ndarray = found[of.reshape(-1)]
    return out


def wildcards(frame: pl.DataFrame, quasi: Sequence[str], threshold: float, star: str = "*") -> dict[str, float] | None:
    """The risks by that reading: "k" the least frequency, "uniques", and the prosecutor's highest, mean and share."""
    found = frequencies(frame, quasi, star)
    if found is None or not found.size:
        return None
    return {
        "k": int(found.min()),
        "uniques": int((found == 1).sum()),
        "prosecutor_max": float(1 / found.min()),
        "prosecutor_mean": float((1 / found).mean()),
        "records_at_risk": float((found * threshold < 1 - 1e-9).mean()),
    }
