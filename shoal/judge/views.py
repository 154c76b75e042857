"""Views of one partition judged: each is a coarser copy of the first part, row by row; imports no solver.

A view's text stands for the first part's text where it holds every value that the other may stand for, and no narrower
text of the view does.  The rows of the first part, written so, must be the rows of the view, as often as they stand
there.  Then the view is a function of the first part, and tells nothing that it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.judge.finding import Finding
from shoal.judge.tables.parts import count_release
from shoal.model.hierarchy import Hierarchy
from shoal.model.meaning import Members, known_values, meanings, places, ruler_of

Text = str | None


def judge_views(
    place: Path, about: Mapping[str, Any], certificates: Sequence[Mapping[str, Any]], hierarchies: Mapping[str, Any]
) -> list[Finding]:
    """A finding for all views of a series.

    hierarchies  of the series' policy, per column what ``Hierarchy.of`` takes

    O(rows + texts of the first part x texts of the view) for each view.
    """
    asked = about["policy"]
    for number, certificate in enumerate(certificates[1:], start=2):
        said = certificate["series"]
        view = said.get("view")
        if not isinstance(view, dict) or not isinstance(view.get("columns"), list):
            return [Finding("views", False, f"part {number} does not say what it is a view of")]
        own = certificate["policy"]
        columns = [*own["quasi_identifiers"], *own["sensitive"]]
        if sorted(columns) != sorted(view["columns"]) or own["publish"] != view.get("publish"):
            return [Finding("views", False, f"part {number} has other columns than its certificate says")]
        named = [o.get("number") for o in said.get("others", []) if isinstance(o, dict)]
        if named != list(range(1, number)):
            return [Finding("views", False, f"part {number} does not name the views before it")]
        wrong = _coarser(place, number, asked, own, hierarchies)
        if wrong is not None:
            return [Finding("views", False, f"part {number}: {wrong}")]
    text = f"{max(len(certificates) - 1, 0)} views, each row of them a row of part 1 with less in it"
    return [Finding("views", True, text)]


def _rows(path: Path, columns: list[str]) -> pl.DataFrame:
    held = count_release(path, columns)
    cells = held.cells.with_columns(pl.all().cast(pl.String))
    cells = cells.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
    return cells.with_columns(pl.Series("shoal rows", held.counts.astype(np.int64)))


def _coarser(
    place: Path, number: int, asked: Mapping[str, Any], own: Mapping[str, Any], hierarchies: Mapping[str, Any]
) -> str | None:
    """Why a view is no coarser copy of the first part; None where it is."""
    columns = [*own["quasi_identifiers"], *own["sensitive"]]
    if not {*own["quasi_identifiers"]} <= {*asked["quasi_identifiers"]} or not {*own["sensitive"]} <= {
        *asked["sensitive"]
    }:
        return "it has a column that the first part does not protect"
    first = _rows(place / "0001" / "release.csv", columns)
    view = _rows(place / f"{number:04d}" / "release.csv", columns)
    if place.joinpath(f"{number:04d}", "release.csv").open(encoding="utf-8").readline().count(",") != len(columns) - 1:
        return "it has columns that its certificate does not name"
    for name in own["quasi_identifiers"]:
        fine, coarse = first[name].unique().to_list(), view[name].unique().to_list()
        image = _images(fine, coarse, name, asked, own, hierarchies)
        lost = [t for t in fine if t not in image]
        if lost:
            return f"column {name!r} holds no text for what the first part shows there"
        first = first.with_columns(pl.Series(name, [image[t] for t in first[name].to_list()], dtype=pl.String))
    one, two = (t.group_by(columns).agg(pl.col("shoal rows").sum()) for t in (first, view))
    both = one.join(two, on=columns, how="full", nulls_equal=True)
    if both.filter(~pl.col("shoal rows").eq_missing(pl.col("shoal rows_right"))).height:
        return "its rows are not those of the first part"
    return None


def _images(
    fine: list[Text],
    coarse: list[Text],
    name: str,
    asked: Mapping[str, Any],
    own: Mapping[str, Any],
    hierarchies: Mapping[str, Any],
) -> dict[Text, Text]:
    """Text of the first part -> the narrowest text of the view that holds all it may stand for."""
    star = str(asked["star"])
    tree = hierarchies.get(name)
    a = meanings(fine, asked["publish"], tree, star)
    b = meanings(coarse, own["publish"], tree, star)
    known = known_values([*a, *b, *_leaves(tree)])
    ruler = ruler_of([v for v in known if v is not None]) if any(v is not None for v in known) else None
    at = places(known, ruler)
    inside = [m.held(known, at) for m in a]
    outside = [m.held(known, at) for m in b]
    holds = np.array(
        [[_within(x, y) and not (i & ~o).any() for y, o in zip(b, outside, strict=True)]
         for x, i in zip(a, inside, strict=True)]
    ).reshape(len(fine), len(coarse))  # fmt: skip
    many = holds.sum(axis=0)
    out: dict[Text, Text] = {}
    for text, row in zip(fine, holds, strict=True):
        found = np.flatnonzero(row)
        if found.size:
            out[text] = coarse[int(found[np.argmin(many[found])])]
    return out


def _leaves(tree: Any) -> list[Members]:
    rows = () if tree is None else Hierarchy.of(tree).rows
    return [Members(named=frozenset(row[0] for row in rows))] if rows else []


def _within(small: Members, large: Members) -> bool:
    """Whether what is no list of names lies inside: stars, ranges."""
    if large.everything:
        return True
    if small.everything:
        return False
    if small.low is None or large.low is None or small.high is None or large.high is None:
        return True  # told by the values themselves
    return large.low <= small.low and (small.high < large.high or (small.high <= large.high and not large.open)
                                       or (small.open and small.high <= large.high))  # fmt: skip
