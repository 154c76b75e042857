"""The loss that a released table shows: its stars, its coarser cells, and its NCP, computed from the file alone.

Nothing here needs the original. A certificate file states only these figures, so it reveals nothing about the original
that the release doesn't. Values and spans are those of the release: a range is measured against the span from the
lowest to the highest published end, a set against the values that occur in the column, and a class of a hierarchy
against the leaves of that hierarchy.

Without the original, the module also checks that every published class is in its hierarchy, and whether zips, ages, and
dates of a release under Safe Harbor are coarse enough.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.judge.file import codes, numbered
from shoal.judge.finding import STATED, Finding
from shoal.judge.finding import shown as texts_of
from shoal.judge.recodings.levels import AreaGraph
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.members import Members, meanings_of_classes, of_ranges
from shoal.model.notation import of_days
from shoal.model.rule_books import RESTRICTED, SafeHarbor

NOT_GIVEN = "not given"  # in place of a hierarchy that the judge doesn't have
_SILENT = ("labels", "tiles", NOT_GIVEN)  # hierarchies whose labels don't list their values


class ShownFigures(NamedTuple):
    """The figures of a release; each is None if the release doesn't show it.

    stars    per quasi-identifier the cells that show a star; absent if a star would be written as an empty cell
    changed  per quasi-identifier the cells that show something coarser than a value
    loss     "stars", "suppressed_tuples" (rows with a changed cell), and "ncp" (mean loss of a cell, from 0 to 1)
    weighted NCP with the columns' weights
    """

    stars: dict[str, int]
    changed: dict[str, int | None]
    loss: dict[str, float | None]
    weighted: float | None

    def cost(self, unit: str, weighted: bool) -> float | None:
        """The loss in a certificate's unit; None for a unit that the file doesn't show."""
        if unit == "ncp":
            return self.weighted if weighted else self.loss["ncp"]
        return {"stars": self.loss["stars"], "suppressed tuples": self.loss["suppressed_tuples"]}.get(unit)


class ColumnRecodings(NamedTuple):
    """How the columns of a release were published.

    names      its quasi-identifiers
    publish    a word of ``shoal.model.settings``
    star       text of a suppressed value
    blanks     columns in which a suppressed value is written as a missing one
    trees      per column its hierarchy, the name of a generated one, or NOT_GIVEN
    weights    per column, 1 if not given
    notations  per column of dates or numbers in a notation, that notation
    """

    names: Sequence[str]
    publish: str
    star: str
    blanks: frozenset[str]
    trees: Mapping[str, Any]
    weights: Mapping[str, float]
    notations: Mapping[str, str]


def shown_loss(cells: pl.DataFrame, counts: np.ndarray, how: ColumnRecodings) -> ShownFigures:
    """The figures of a release. cells, counts: its tuples and the rows of each. O(cells + size of hierarchies)."""
    rows = int(counts.sum())
    stars: dict[str, int] = {}
    changed: dict[str, int | None] = {}
    lost: list[tuple[float, float]] = []
    anything = np.zeros(counts.size, bool)
    known = how.publish != "centers"
    for name in how.names:
        read = None if how.publish == "centers" else _read(cells[name], name, how)
        stars[name] = 0 if read is None else int(counts[read.star].sum())
        if read is None or read.loss is None:
            changed[name], known = None if read is not None else 0, False
            continue
        coarse = read.changed
        changed[name] = int(counts[coarse].sum())
        anything |= coarse
        lost.append((how.weights.get(name, 1.0), math.fsum(read.loss * np.bincount(read.where, weights=counts))))
    total = sum(stars.values())
    ncp = math.fsum(x for _, x in lost) / max(rows * len(how.names), 1)
    weighted = math.fsum(w * x for w, x in lost) / max(rows * len(how.names), 1)
    loss: dict[str, float | None] = {
        "stars": total,
        "suppressed_tuples": int(counts[anything].sum()) if known else None,
        "ncp": ncp if known else None,
    }
    return ShownFigures(stars, changed, loss, weighted if known else None)


class _ShownCells(NamedTuple):
    """A column: for each line bool star, bool changed, and the index of its text; float64 loss of each text.

    loss  None if labels don't list their values
    """

    star: np.ndarray
    changed: np.ndarray
    where: np.ndarray
    loss: np.ndarray | None


def _read(column: pl.Series, name: str, how: ColumnRecodings) -> _ShownCells:
    """Read a column; every distinct text is parsed once."""
    where, first = numbered(codes(column))
    texts = [t if t != "" else None for t in texts_of(column.gather(first))]
    written = column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum))
    hidden = name in how.blanks or not written
    star = np.array([t == how.star or (t is None and hidden) for t in texts], bool)[where]
    tree = how.trees.get(name)
    if how.publish == "hierarchy" and isinstance(tree, str) and tree in _SILENT:
        return _ShownCells(star, star, where, None)
    plain = [t for t in texts if t is not None and t != how.star]
    losses = _losses(plain, how.publish, tree, how.notations.get(name))
    losses[how.star] = (1.0, True)
    none = (1.0, True) if hidden else (0.0, False)
    each = [none if t is None else losses[t] for t in texts]
    return _ShownCells(star, np.array([c for _, c in each], bool)[where], where, np.array([x for x, _ in each], float))


def _losses(texts: Sequence[str], publish: str, tree: Any, notation: str | None) -> dict[str, tuple[float, bool]]:
    """For each published text, the loss of its cell, and whether it is coarser than a value."""
    if publish == "hierarchy" and isinstance(tree, Hierarchy) and tree.kind == REGIONS:
        graph = AreaGraph(tree)
        areas = {t: graph.members(t) for t in texts}
        return {t: (1.0, True) if own is None else (graph.lost(own), len(own) > 1) for t, own in areas.items()}
    if publish == "hierarchy" and isinstance(tree, Hierarchy) and tree.kind == "rows":
        return _of_rows(texts, tree)
    if publish == "hierarchy" and tree is not None:
        return _measured(meanings_of_classes(texts, tree, notation))
    if publish == "ranges":
        return _measured(of_ranges(texts, notation))
    return dict.fromkeys(texts, (0.0, False))


def _of_rows(texts: Sequence[str], tree: Hierarchy) -> dict[str, tuple[float, bool]]:
    """Losses by a hierarchy that lists its leaves; a label of several classes counts as their union."""
    below: dict[str, set[str]] = {}
    for row in tree.rows:
        for label in set(row):
            below.setdefault(label, set()).add(row[0])
    most = max(len(tree.rows) - 1, 1)
    return {t: ((len(below[t]) - 1) / most, below[t] != {t}) if t in below else (1.0, True) for t in texts}


def _measured(found: Mapping[str, Members]) -> dict[str, tuple[float, bool]]:
    """Losses: of ranges by the published span, of sets by the values that occur, of prefixes by hidden characters."""
    day = {t: 1.0 if m.open and (m.ruler == "moment" or of_days(m.ruler)) else 0.0 for t, m in found.items()}
    ends = [(m.low, m.high - day[t]) for t, m in found.items() if m.low is not None and m.high is not None]
    low = min((a for a, _ in ends if math.isfinite(a)), default=0.0)
    high = max((b for _, b in ends if math.isfinite(b)), default=0.0)
    named = {v for m in found.values() for v in m.named if m.low is None}
    longest = max(map(len, found), default=0)
    out = {}
    for text, m in found.items():
        if m.everything:
            out[text] = (1.0, True)
        elif m.low is not None and m.high is not None:
            width = m.high - day[text] - m.low
            out[text] = (min(width / (high - low), 1.0) if high > low else float(width > 0), width > 0)
        elif m.pattern is not None:
            hides = _hidden(text, m.pattern, longest)
            out[text] = (hides, hides > 0)
        else:
            out[text] = ((len(m.named) - 1) / max(len(named) - 1, 1), len(m.named) > 1)
    return out


def _hidden(text: str, pattern: str, longest: int) -> float:
    """The share of characters that a prefix hides.

    Without a fill character, the length is that of the longest text published.
    """
    if pattern.endswith(".*"):
        return 1 - len(text) / max(longest, 1)
    return int(pattern.rpartition("{")[2].rstrip("}")) / max(len(text), 1)


def levels_kept(cells: pl.DataFrame, how: ColumnRecodings, single: bool, highest: Mapping[str, int]) -> Finding:
    """Whether the published classes keep the requested levels of each column.

    single   whether each column has one level in all rows that aren't starred completely
    highest  of some columns, the highest level

    Levels of a hierarchy of rows are read from it. Of a built hierarchy, two levels are recognized by intervals that
    overlap, prefixes of different lengths, and dates of different forms. Without a hierarchy, a level is all values, or
    all stars.
    O(cells + size of hierarchies).
    """
    starred = [_read(cells[name], name, how).star for name in how.names]
    rest, unread = ~np.logical_and.reduce(starred), list[str]()
    for name, star in zip(how.names, starred, strict=True):
        tree = how.trees.get(name) if how.publish == "hierarchy" else None
        plain = [t for t in texts_of(cells[name].filter(pl.Series(rest & ~star)).unique()) if t not in (None, "")]
        written = cells[name].dtype == pl.String or isinstance(cells[name].dtype, (pl.Categorical, pl.Enum))
        certain = written and name not in how.blanks  # elsewhere, a star may be a missing value
        mixed = certain and bool((star & rest).any()) and bool(plain)
        if isinstance(tree, Hierarchy) and tree.kind == "rows":
            levels = _levels_of(plain, tree)
            mixed = mixed or (bool(levels) and not set.intersection(*levels))
            if any(min(own) > highest.get(name, len(tree.rows[0])) for own in levels):
                return Finding("levels of columns", False, f"column {name!r} shows a class above its highest level")
        elif isinstance(tree, Hierarchy) and tree.kind in ("intervals", "prefixes", "dates"):
            mixed = mixed or _overlap(meanings_of_classes(plain, tree, how.notations.get(name)), tree.kind)
            unread += [name] if name in highest else []
        elif tree is not None and not (isinstance(tree, Hierarchy) and tree.kind == "stars"):
            unread.append(name)
        if single and mixed:
            return Finding("levels of columns", False, f"column {name!r} shows classes of different levels")
    if unread:
        text = f"those of {', '.join(map(repr, unread))} rest on the certificate, or on a hierarchy that was not given"
        return Finding("levels of columns", True, text, STATED)
    return Finding("levels of columns", True, "one of each column" if single else "none above the highest")


def _levels_of(texts: Iterable[str], tree: Hierarchy) -> list[set[int]]:
    """For each text of a hierarchy of rows, the levels at which it is a class; 0 is the value itself."""
    levels: dict[str, set[int]] = {}
    for number, column in enumerate(zip(*tree.rows, strict=True)):
        for label in set(column):
            levels.setdefault(label, set()).add(number)
    return [levels[text] for text in texts if text in levels]


def _overlap(found: Mapping[str, Members], kind: str) -> bool:
    """Whether classes of a built hierarchy are of two levels: intervals overlap, prefixes show different numbers of
    characters, or dates have two forms."""
    if kind == "dates":
        return len({re.sub(r"\d+", "9", text) for text in found}) > 1
    if kind == "prefixes":  # a value that is no longer than the prefixes of a level stays as it is
        filled = {t: m.pattern for t, m in found.items() if m.pattern is not None and not m.pattern.endswith(".*")}
        hidden = {text: round(_hidden(text, pattern, len(text)) * len(text)) for text, pattern in filled.items()}
        shown = {len(text) - characters for text, characters in hidden.items() if characters}
        whole = (len(text) for text, characters in hidden.items() if not characters)
        return len(shown) > 1 or (bool(shown) and any(length > max(shown) for length in whole))
    spans = sorted((m.low, m.high) for m in found.values() if m.low is not None and m.high is not None)
    return any(a[1] > b[0] for a, b in itertools.pairwise(spans))


_ROUNDING = 1e-9


class Span(NamedTuple):
    """Fewest and most. They differ if a text is both a value and a class, or a class of two levels."""

    least: float
    most: float


class ColumnSums(NamedTuple):
    """Sums of a column: whether all its texts are known, its changed cells, and its total loss."""

    known: bool
    changed: Span
    loss: Span


def counted(column: pl.Series, counts: np.ndarray, hierarchy: Hierarchy, star: str) -> ColumnSums | None:
    """Sums of a column published by a hierarchy of rows.

    None for a builder, which lists no values, or if there are no texts.

    counts  int64[n]: rows of each cell

    O(n + rows of the hierarchy).
    """
    column = column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column
    if not hierarchy.rows or column.dtype != pl.String:
        return None
    leaves = {row[0] for row in hierarchy.rows}
    losses: dict[str, list[float]] = {text: [0.0] for text in leaves}
    for level in zip(*(row[1:] for row in hierarchy.rows), strict=True):
        for text, under in Counter(level).items():
            losses.setdefault(text, []).append((under - 1) / max(len(hierarchy.rows) - 1, 1))
    losses[star] = [1.0]
    held = pl.DataFrame({"text": column, "rows": counts}).drop_nulls("text").filter(pl.col("text") != "")
    known, bounds = True, np.zeros(4)
    for text, rows in held.group_by("text").agg(pl.col("rows").sum()).iter_rows():
        if text not in losses:
            known = False
            continue
        own = losses[text]
        surely, maybe = text not in leaves or text == star, max(own) > 0 or text not in leaves
        bounds += rows * np.array([surely, maybe, min(own), max(own)])
    return ColumnSums(known, Span(*bounds[:2]), Span(*bounds[2:]))


def judge_classes(
    cells: pl.DataFrame,
    counts: np.ndarray,
    trees: Mapping[str, Hierarchy],
    star: str,
    stars: Mapping[str, int],
    changed: Mapping[str, int],
    ncp: float | None,
) -> list[Finding]:
    """Findings about each column whose hierarchy is available, and about the loss if every hierarchy is.

    stars, changed  certified cells of every quasi-identifier
    ncp             the certified loss; None if some hierarchy isn't available
    """
    found = {name: counted(cells[name], counts, tree, star) for name, tree in trees.items() if name in changed}
    findings = []
    for name, column in found.items():
        if column is None:
            continue
        if not column.known:
            text = f"column {name!r} shows what is neither a value nor a class of its hierarchy"
            findings.append(Finding(f"classes of {name}", False, text))
            continue
        right = bool(column.changed.least <= changed[name] <= column.changed.most)
        text = f"{column.changed.least:.0f} cells are classes or stars, {changed[name]} certified as changed"
        findings.append(Finding(f"classes of {name}", right, text))
    judged = [c for c in found.values() if c is not None and c.known]
    bare = sum(stars[name] for name in changed if name not in found)
    cells_of_all = max(int(counts.sum()) * len(changed), 1)
    if ncp is not None and judged and len(judged) == len(found):
        least, most = ((sum(c.loss[i] for c in judged) + bare) / cells_of_all for i in (0, 1))
        right = bool(least - _ROUNDING <= ncp <= most + _ROUNDING)
        findings.append(Finding("loss of the classes", right, f"NCP {least:.6g}, {ncp:.6g} certified"))
    return findings


_DAY = re.compile(r"\d{4}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")


def breach(frame: pl.DataFrame, harbor: SafeHarbor) -> str | None:
    """The column that shows more than the rule allows, in words without values; None if there is none."""
    for name, rule in harbor.columns.items():
        if name not in frame.columns:
            continue
        texts = [t for t in frame[name].cast(pl.String).unique().to_list() if t is not None]
        if rule == "zip" and any(_precise(t) for t in texts):
            return f"column {name!r} shows a zip more precisely than the Safe Harbor allows"
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
