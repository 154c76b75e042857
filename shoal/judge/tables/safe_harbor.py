"""What a release under the Safe Harbor shows in its zips, ages and dates; shares no code with what recoded them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from shoal.model.safe_harbor import RESTRICTED, Harbor

_DAY = re.compile(r"\d{4}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")


def breach(frame: pl.DataFrame, harbor: Harbor) -> str | None:
    """Which column shows more than the rule lets stand, in words that show no value; None where none does."""
    for name, rule in harbor.columns.items():
        if name not in frame.columns:
            continue
        texts = [t for t in frame[name].cast(pl.String).unique().to_list() if t is not None]
        if rule == "zip" and any(_precise(t) for t in texts):
            return f"column {name!r} shows a zip more precisely than the Safe Harbor lets it stand"
        if rule == "age" and any(float(n) > 89 for n in _whole(texts)):
            return f"column {name!r} shows an age above 89"
        if rule in ("birth", "date") and any(_DAY.search(t) for t in texts):
            return f"column {name!r} shows more of a date than its year"
        if rule == "birth" and any(int(float(n)) <= harbor.born for n in _whole(texts)):
            return f"column {name!r} shows a year of birth that tells an age above 89"
    return None


def _precise(text: str) -> bool:
    return any(len(run) > 3 or run in RESTRICTED for run in re.findall(r"\d+", text))


def _whole(texts: Iterable[str]) -> list[str]:
    return [t for t in texts if re.fullmatch(r"\d+(?:\.\d+)?", t)]
