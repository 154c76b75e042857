"""The judge of files: a release as it stands on disk, read again with a reader of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, VerificationError
from shoal.judge.multiset import Counts, same_counts
from shoal.judge.privacy import judge
from shoal.model.audit import Audit
from shoal.model.hierarchy import Hierarchy
from shoal.model.privacy import PrivacyModel


def read_release(path: Path, separator: str | None = None, grouped: Sequence[str] = ()) -> pl.DataFrame:
    """A released file as written: CSV as text (an empty field is missing), Parquet and Excel with their types.

    grouped  columns of a CSV that will be grouped; read as categories
    """
    name = path.name.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            return pl.read_parquet(path)
        if name.endswith((".xlsx", ".xls", ".xlsb")):
            return _read_excel(path)
        kinds = {name: pl.Categorical(pl.Categories.random()) for name in grouped}
        return pl.read_csv(path, infer_schema=False, separator=separator or ",", schema_overrides=kinds)
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        raise VerificationError(f"{path.name!r} cannot be read back ({type(error).__name__})") from None


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


def judge_release(
    path: Path,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    models: Sequence[PrivacyModel],
    *,
    star: str | None,
    stars: Mapping[str, int],
    expected: Counts | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    separator: str | None = None,
    outside: Callable[[pl.DataFrame, Audit], Audit] | None = None,
    trees: Mapping[str, Hierarchy] | None = None,
) -> tuple[Audit, str, int]:
    """Audit, SHA-256 and size of a released file.

    star     text of a star; None where every text is a value, as in a release of centers
    stars    number of starred cells each quasi-identifier must have, counted where a star is written as text
    expected every tuple of quasi-identifiers and sensitive values with its number of rows; None: not checked
    outside  adds what a population tells to the audit of the table read
    orders   of sensitive columns with an order of their own, the values from lowest to highest
    trees    of sensitive columns their hierarchies, where they have some

    Raises VerificationError for another number of stars, or where a tuple stands there more or less often than it
    should.  The message never holds a value.
    """
    names = [*quasi, *sensitive]
    frame = read_release(path, separator, names)
    for name in names:
        if name not in frame.columns:
            raise VerificationError(f"the released file has no column {name!r}")
    for name in quasi if star is not None else ():
        held = _texts(frame[name])
        if held is None:
            continue
        found = held.get(star, 0)
        if found != stars.get(name, 0):
            raise VerificationError(
                f"column {name!r} has {found} stars in the file, {stars.get(name, 0)} were certified"
            )
    if expected is not None:
        refuse_other(expected, tuples(frame, names), _form(path))
    for name, levels in (orders or {}).items():
        frame = frame.with_columns(pl.col(name).cast(pl.String).cast(pl.Enum(levels)))
    audit = judge(frame, quasi, sensitive, models, trees=trees)
    if outside is not None:
        audit = outside(frame, audit)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return audit, digest, path.stat().st_size


def _form(path: Path) -> str:
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "excel" if name.endswith((".xlsx", ".xls", ".xlsb")) else "csv"


def tuples(frame: pl.DataFrame, names: Sequence[str]) -> Counts:
    """The distinct tuples over some columns and the rows of each."""
    short = pl.DataFrame([frame[name].alias(f"c{i}") for i, name in enumerate(names)])
    held = short.group_by(short.columns).len("n")
    return held.drop("n").rename({f"c{i}": name for i, name in enumerate(names)}), held["n"].to_numpy()


def refuse_other(expected: Counts, found: Counts, form: str = "frame") -> None:
    """VerificationError unless both are the same tuples, each as often."""
    if not same_counts(expected, found, form=form):
        raise VerificationError(
            "what would leave is not what was decided: some tuple of published and sensitive values stands there more "
            "or less often than it should; nothing was published. This is a defect of shoal: please report it"
        )


def _texts(column: pl.Series) -> dict[str | None, int] | None:
    """How often each text stands in a column; None for a column of numbers, where a star is a missing value."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical(pl.Categories.random()))
    if not isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        return None
    missing = column.null_count()
    present = column.drop_nulls()
    codes = present.to_physical().to_numpy()
    counts = np.bincount(codes) if codes.size else np.zeros(0, np.int64)
    somewhere = np.zeros(counts.size, np.int64)
    somewhere[codes] = np.arange(codes.size)
    seen = np.flatnonzero(counts)
    texts = present.gather(somewhere[seen]).cast(pl.String).to_list()
    held: dict[str | None, int] = dict(zip(texts, counts[seen].tolist(), strict=True))
    return held | {None: missing} if missing else held
