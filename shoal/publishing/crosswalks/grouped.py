"""Labels and intervals on their way out: the column tallied, its groups named, a row per value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.targets import DRAWING
from shoal.errors import InputError
from shoal.publishing.crosswalks.crosswalk import Crosswalk, Drawing
from shoal.publishing.crosswalks.judging import Sources
from shoal.publishing.crosswalks.tallied import tally

SHORT = (
    "groups of method 'bicriteria' may be below k: not k-anonymous, so no crosswalk or hierarchy is written; "
    "use method='auto'"
)


def in_order(frame: pl.DataFrame, name: str, count: str | None = None) -> tuple[list[Any], Any, list[Any]]:
    """Distinct values in their order, the records of each, and what each stands for (a number, a date or itself)."""
    values, counts = tally(frame, name, count)
    if any(v is None for v in values):
        raise InputError(f"column {name!r} has missing values, which have no place in an order; fill or drop them")
    ordered = _ordered(values, name)
    rank = np.argsort(ordered, kind="stable").tolist()
    return [values[i] for i in rank], [counts[i] for i in rank], [ordered[i] for i in rank]


def _ordered(values: list[Any], name: str) -> Any:
    """Text as numbers or dates where all of it is, other text as it stands; InputError where it is only mostly so."""
    if not all(isinstance(v, str) for v in values):
        return values
    readers: list[tuple[str, Callable[[str], Any]]] = [
        ("numbers", int),
        ("numbers", float),
        ("dates", lambda v: np.datetime64(v.strip(), "D")),
    ]
    for kind, read in readers:
        found, odd = [], []
        for v in values:
            try:
                found.append(read(v))
            except ValueError:
                odd.append(v)
        if not odd:
            return found
        if read is not int and len(found) > len(odd):
            raise InputError(
                f"column {name!r} holds {kind}, and {len(odd):,} of its {len(values):,} different values are none; "
                "repair them or leave their rows out"
            )
    return values


def labels(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    label: str,
    count: str | None = None,
    naming: str = "ends",
    names: Sequence[str] | None = None,
) -> Crosswalk:
    """A ``Cover`` of the labels in a column, in their order of appearance."""
    from shoal.problems.labels import group_labels

    values, counts = tally(frame, label, count)
    _belongs(answer.labels, counts, answer.loads, label)
    shown = _names(names, len(answer.loads)) or group_labels(values, answer.labels, counts, naming)
    content = _content(values, answer.labels, shown, answer.loads).sort("group", "value")
    asked = {"column": label, "count": count, "k": int(answer.k), "objective": answer.objective}
    bound = int(answer.certificate.lower_bound) if answer.objective == "max" else None
    title = f"{label} in groups of {answer.k:,}"
    made = _made("labels", answer, answer.method, content, asked, frame, read, title, bound)
    return replace(made, refused=SHORT) if answer.method == "bicriteria" else made


def intervals(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    value: str,
    count: str | None = None,
    names: Sequence[str] | None = None,
) -> Crosswalk:
    """A ``Cut`` of the values in a column."""
    from shoal.problems.intervals import distinct, interval_labels

    values, counts, ordered = in_order(frame, value, count)
    found = distinct(ordered)[0]
    try:
        group = np.searchsorted(answer.lows, found, side="right") - 1
        inside = len(found) == len(values) and bool((group >= 0).all()) and bool((found <= answer.highs[group]).all())
    except TypeError:
        inside = False
    if not inside:
        raise InputError(f"the answer is none of column {value!r} of these data; hand over what was cut")
    _belongs(group, counts, answer.loads, value)
    shown = _names(names, len(answer.loads)) or interval_labels(answer.lows, answer.highs)
    content = _content(values, group, shown, answer.loads).sort("group", maintain_order=True)
    k = int(answer.certificate.details["k"])
    asked = {"column": value, "count": count, "k": k, "objective": answer.objective}
    bound = int(answer.certificate.lower_bound) if answer.objective == "max" else None
    method = f"dynamic program for {answer.objective}"
    return _made("intervals", answer, method, content, asked, frame, read, f"{value} in intervals of {k:,}", bound)


def _belongs(group: np.ndarray, counts: Any, loads: np.ndarray, name: str) -> None:
    """InputError unless the answer's groups count these records."""
    sums = [0] * len(loads)
    if len(group) == len(counts):
        for g, n in zip(group.tolist(), np.asarray(counts).tolist(), strict=True):
            sums[g] += n
    if len(group) != len(counts) or sums != [int(x) for x in loads.tolist()]:
        raise InputError(
            f"the answer does not belong to column {name!r}: its groups count other records; hand over the table whose "
            "values were grouped, in their order of appearance"
        )


def _names(names: Sequence[str] | None, groups: int) -> list[str]:
    if names is None:
        return []
    if len(names) < groups or len(set(names[:groups])) < groups:
        raise InputError(f"there are {len(set(names))} different names, {groups} groups need one each")
    return list(names[:groups])


def _content(values: list[Any], group: np.ndarray, shown: list[str], loads: np.ndarray) -> pl.DataFrame:
    held: list[Any] = loads.tolist()
    if max(held) >= 1 << 63:
        held = [str(load) for load in held]
    index = pl.Series("group", group, dtype=pl.Int64)
    return pl.DataFrame(
        {
            "value": values,
            "group": index,
            "group_label": pl.Series(shown, dtype=pl.String).gather(index),
            "group_count": pl.Series(held).gather(index),
        }
    )


def _made(
    kind: str, answer: Any, method: str, content: pl.DataFrame, asked: dict[str, Any], frame: pl.DataFrame,
    read: tuple[str | Path, ...], title: str, bound: int | None,
) -> Crosswalk:  # fmt: skip
    loads = [int(x) for x in answer.loads.tolist()]
    facts = {
        "rows": content.height,
        "records": sum(loads),
        "groups": len(loads),
        "smallest_group": min(loads),
        "largest_group": max(loads),
    }

    def draw(path: Path) -> None:
        from shoal.report.bins_picture import as_svg

        path.write_text(as_svg(loads, asked["k"], bound, title), encoding="utf-8")

    needed = [name for name in (asked["column"], asked["count"]) if name is not None]
    again = frame.height - content.height if asked["count"] is not None else 0
    repeated = (
        f"column {asked['column']!r} names {again:,} of its {frame.height:,} values again on a later line; their "
        "counts are added up",
    )
    return Crosswalk(
        kind=kind,
        content=content,
        certificate=answer.certificate,
        method=method,
        parameters=asked,
        facts=facts,
        sources=Sources(frame.select(list(dict.fromkeys(needed)))),
        read=read,
        title=title,
        groups=loads,
        picture=Drawing(form=DRAWING, fill=draw),
        warnings=repeated if again else (),
    )
