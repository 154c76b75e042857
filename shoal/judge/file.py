"""The judge of files: a release as it stands on disk, read again with a reader of its own."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InputError, VerificationError
from shoal.judge.multiset import Counts, same_counts


def read_release(path: Path, separator: str | None = None) -> pl.DataFrame:
    """A released file as written: CSV as text (an empty field is missing), Parquet and Excel with their types."""
    name = path.name.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            return pl.read_parquet(path, glob=False, hive_partitioning=False)
        if name.endswith((".xlsx", ".xls", ".xlsb")):
            return _read_excel(path)
        frame = pl.read_csv(path, infer_schema=False, separator=separator or ",", glob=False)
        return frame.rename(dict(zip(frame.columns, unquoted(frame.columns), strict=True)))
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        raise VerificationError(f"{path.name!r} cannot be read back ({type(error).__name__})") from None


def unquoted(names: Sequence[str]) -> list[str]:
    """The names of a CSV's header as they were meant: Polars leaves quotes in them doubled."""
    return [name.replace('""', '"') for name in names]


def _read_excel(path: Path) -> pl.DataFrame:
    try:
        return pl.read_excel(path, infer_schema_length=None, drop_empty_rows=False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise VerificationError(f"{path.name!r} cannot be read back ({type(error).__name__})") from None


def seal(record: Mapping[str, Any]) -> str:
    """SHA-256 over a certificate file's content, the seal and a signature left out: an edit by hand shows."""
    kept = {k: v for k, v in record.items() if k not in ("seal", "signature")}
    content = json.dumps(kept, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()


def refuse_other(expected: Counts, found: Counts, form: str = "frame") -> None:
    """VerificationError unless both are the same tuples, each as often."""
    if not same_counts(expected, found, form=form):
        raise VerificationError(
            "what would leave is not what was decided: some tuple of published and sensitive values stands there more "
            "or less often than it should; nothing was published. This is a defect of shoal: please report it"
        )


def stale(path: Path, raw: Mapping[str, Any]) -> str:
    """Which of a file and its certificate is the older, where they do not belong together."""
    said = (
        "the file is not the one certified: the certificate belongs to another file, or to another version of this "
        "release"
    )
    try:
        made = datetime.datetime.fromisoformat(str(raw["made_at"])).timestamp()
        written = path.stat().st_mtime
    except (KeyError, ValueError, OSError):
        return said
    older = "the certificate is the older" if written >= made + 1 else "the release is the older"
    return f"{said}; by their times {older}, so make both again"
