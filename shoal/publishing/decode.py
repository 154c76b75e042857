"""Decoding of releases: numbers, possible values, fractions, and random draws, from the release alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.engines.csv import where_needed
from shoal.engines.open import open_table, written_file
from shoal.errors import InputError, PolicyError
from shoal.model.arguments import column_names, seed_of, suggesting
from shoal.model.certificate import read_json
from shoal.model.foreign import parsed
from shoal.model.hierarchy import Hierarchy
from shoal.model.members import Members, known_values, meanings, places, ruler_of
from shoal.model.notation import RangeOf, numeral, of_days, of_limits, of_numbers
from shoal.model.policy import Policy

_OF_INTEGERS = re.compile(r"\d+-\d+")  # intervals of a hierarchy; below zero, both kinds are written alike
_OF_FLOATS = re.compile(r"\[\d[\d.e+-]*, [\d.e+-]+\)")


@dataclass(frozen=True, eq=False)
class DecodedColumn:
    """One quasi-identifier.

    cells    the values that each distinct published text may stand for
    labels   these texts
    where    int64[rows], the text of each row
    known    every value in the release, in order
    ruler    "number", "date", "moment", or a notation, if all values have this type
    at       float64[known], their positions
    classes  whether it is published by labels of a hierarchy; then its values are categories, even if they are numbers
    rounded  whether ranges end at steps, so that their ends need not be values
    """

    cells: list[Members]
    labels: list[str | None]
    where: np.ndarray
    known: tuple[str | None, ...]
    ruler: str | None
    at: np.ndarray
    classes: bool = False
    rounded: bool = False

    @property
    def measured(self) -> bool:
        """Whether it has amounts, with a low and a high end, and not categories."""
        return self.ruler is not None and not self.classes

    @cached_property
    def whole(self) -> bool:
        """Whether every known value is an integer; 34.0 is one, because pandas writes integers so if a value is
        missing. Intervals tell it too: those of integers are called 40-44, others [40, 45)."""
        present = self.at[~np.isnan(self.at)]
        if not of_numbers(self.ruler):
            return False
        names = [text for text in self.labels if text]
        if any(_OF_INTEGERS.fullmatch(text) for text in names):
            return True
        if not present.size or any(_OF_FLOATS.fullmatch(text) for text in names):
            return False
        plain = [v if self.ruler == "number" else numeral(v, str(self.ruler)) or v for v in self.known if v]
        if not self.rounded and self.ruler == "number":
            plain = [v.removesuffix(".0") for v in plain]
        return not any("." in v or "e" in v for v in plain)

    @property
    def unread(self) -> bool:
        """Whether a cell is a range without a known scale, so that every value may be between its ends."""
        return any(
            cell.everything and text is not None and isinstance(parsed(text), RangeOf)
            for cell, text in zip(self.cells, self.labels, strict=True)
        )

    @cached_property
    def ends(self) -> np.ndarray:
        """float64[cells, 3]: lowest, highest, and middle value of every cell; NaN if there is none. O(named)."""
        present = self.at[~np.isnan(self.at)]
        least, most = (float(present.min()), float(present.max())) if present.size else (np.nan, np.nan)
        of = dict(zip(self.known, self.at.tolist(), strict=True))
        low, high = (np.full(len(self.cells), np.nan) for _ in range(2))
        for i, cell in enumerate(self.cells):
            if cell.everything:
                continue
            if cell.low is None or cell.high is None:
                at = [x for x in (of[v] for v in cell.named) if x == x]
                low[i], high[i] = (min(at), max(at)) if at else (np.nan, np.nan)
                continue
            top = cell.high
            if cell.open and math.isfinite(top):
                top = top - 1 if of_days(self.ruler) or (self.whole and top == int(top)) else top
            first = cell.low + 1 if cell.begins_after and self.whole and cell.low == int(cell.low) else cell.low
            low[i] = first if math.isfinite(first) else np.fmin(least, top)
            high[i] = top if math.isfinite(top) else np.fmax(most, low[i])
        return np.column_stack([low, high, low / 2 + high / 2])  # the sum can exceed the largest number

    @property
    def known_ends(self) -> np.ndarray:
        """The ends that the cells state themselves: NaN for an open end, and for the middle of such a cell."""
        found = self.ends.copy()
        for i, cell in enumerate(self.cells):
            for side, end in enumerate((cell.low, cell.high)):
                if end is not None and not math.isfinite(end):
                    found[i, [side, 2]] = np.nan
        if of_limits(self.ruler):  # a value at a limit stands for all values beyond it
            for text in str(self.ruler).split():
                there = [text in cell.named for cell in self.cells]
                found[there, 0 if text[0] == "<" else 1] = found[there, 2] = np.nan
        return found


_WHOLE = 2.0**62  # from here on, a column of integers is drawn as floats


@dataclass(frozen=True, eq=False)
class Decoded:
    """A published table with the meaning of each cell.

    table    the published rows
    columns  the quasi-identifiers
    give     converts a Polars frame to the kind of frame that the user passed

    Each result has the rows of the table in their order, and is a frame of the kind that the user passed; a path gives
    Polars. A star may stand for any value, so only the rest of its column limits its value.
    """

    table: pl.DataFrame
    columns: Mapping[str, DecodedColumn]
    give: Callable[[pl.DataFrame], Any] = lambda frame: frame

    def __repr__(self) -> str:
        return (
            f"A release of {self.table.height:,} rows, understood: numeric(), one_hot(), sample(), "
            f"and members() of {', '.join(self.columns)}"
        )

    @classmethod
    def of(cls, data: Any, policy: Policy, stars: Mapping[str, int], separator: str | None = None) -> Decoded:
        """Decode a published table by its policy. stars: number of stars by column, to distinguish them from missing
        numbers."""
        if policy.publish == "centers":
            raise PolicyError(
                "a release of centers shows one record for each cluster and does not state what a cell can be; "
                "publish stars, ranges or a hierarchy"
            )
        return cls.shown(data, policy, stars, separator)

    @classmethod
    def shown(cls, data: Any, policy: Policy, stars: Mapping[str, int], separator: str | None = None) -> Decoded:
        """Decode a release of any kind; a center stands for itself."""
        separator, _ = where_needed(data, separator, None)  # a certificate states one also beside a file that is no CSV
        opened = open_table(data, separator=separator)
        frame = opened.polars(opened.columns)
        found = {}
        for name in policy.grouped:
            if name not in frame.columns:
                raise InputError(f"the release has no column {name!r}")
            texts = as_text(frame[name])
            labels = texts.unique(maintain_order=True)
            index = texts.to_frame("x").join(
                pl.DataFrame({"x": labels, "i": np.arange(len(labels))}), on="x", how="left", nulls_equal=True,
                maintain_order="left",
            )["i"]  # fmt: skip
            cells = meanings(
                labels.to_list(),
                policy.publish,
                policy.hierarchies.get(name),
                policy.star,
                stars.get(name, 0) > 0,
                policy.notations.get(name),
            )
            made = _column(cells, labels.to_list(), index.to_numpy(), frame.schema[name], policy.notations.get(name))
            classes = policy.publish == "hierarchy" and _of_labels(policy.hierarchies.get(name))
            found[name] = replace(made, classes=classes, rounded=name in policy.range_step)
        return cls(frame, found, opened.from_polars_rows)

    def members(self, column: str) -> list[Members]:
        """For each row, the values that its cell stands for: ``"34" in release.members("age")[0]``. O(rows)."""
        found = self._of(column)
        return [found.cells[i] for i in found.where.tolist()]

    def numeric(self, columns: Sequence[str] | None = None) -> Any:
        """Low, high, and middle of every cell: ``age_low``, ``age_high``, ``age_mid``.

        columns  quasi-identifiers of numbers or dates; None: all, except those published by a hierarchy of labels or
                 prefixes, which are categories (name them to get numbers)

        A starred cell has none of them: the release doesn't show the range of the column's values, so a mean of the
        middles describes only the other rows. A cell with an open end, such as ``>=65`` or ``[60, missing]``, has
        neither that end nor a middle. Raises PolicyError for a column of neither numbers nor dates, and if there is no
        such column. O(rows).
        """
        names = self._chosen(columns, [n for n, c in self.columns.items() if c.measured], "numbers or dates", "one_hot")
        out: list[pl.Series] = []
        for name in names:
            found = self._of(name)
            if found.ruler is None:
                raise PolicyError(f"column {name!r} holds neither numbers nor dates; one_hot() decodes it")
            ends = found.known_ends[found.where]
            out += [_typed(ends[:, i], found.ruler, f"{name}_{part}") for i, part in enumerate(("low", "high", "mid"))]
        return self.give(pl.DataFrame(out))

    def one_hot(self, columns: Sequence[str] | None = None) -> Any:
        """Fractions: one column, such as ``town=Ulm``, for each known value; a cell of three values gives each a third.

        columns  quasi-identifiers; None: those with categories, which are neither numbers nor dates, or are published
                 by a hierarchy of labels or prefixes

        For each column, the fractions of a row sum to 1; a star is spread over all known values. Raises PolicyError if
        no column has categories. O(rows values).
        """
        names = self._chosen(columns, [n for n, c in self.columns.items() if not c.measured], "categories", "numeric")
        out: list[pl.Series] = []
        for name in names:
            found = self._of(name)
            shares, labels = _shares(found)
            for j, label in enumerate(labels):
                shown = "missing" if label is None else label
                out.append(pl.Series(f"{name}={shown}", shares[found.where, j]))
        return self.give(pl.DataFrame(out))

    def sample(self, seed: int | None = None) -> Any:
        """The table with one value drawn for every cell; all of its values are equally likely.

        Integers, numbers, and days are drawn from the whole range; for a star, from the known values. In ``[60,
        missing]``, a missing value is one further value. One draw understates the uncertainty of the release; repeat it
        with other seeds. Raises PolicyError for a column with ranges of other values, such as ordered categories,
        moments with a time zone, durations, and times of day: which values lie between their ends isn't known, because
        a release doesn't name a category that no row shows. O(rows).
        """
        odd = next((name for name, found in self.columns.items() if found.unread), None)
        if odd is not None:
            raise PolicyError(
                f"column {odd!r} has ranges of values that are neither numbers nor dates, and it isn't known which "
                "values lie between their ends; before anonymize, turn ordered categories, durations, and times of day "
                "into numbers, such as ranks or minutes, and moments with a time zone into moments without one"
            )
        rng = np.random.default_rng(seed_of(seed))
        drawn = [_draw(self.table[name], found, rng) for name, found in self.columns.items()]
        return self.give(self.table.with_columns(drawn))

    def _chosen(self, columns: Sequence[str] | None, usual: list[str], what: str, other: str) -> Sequence[str]:
        """The given columns, by default the usual ones; PolicyError if there are none."""
        names = usual if columns is None else column_names("columns", columns)
        if not names:
            raise PolicyError(
                f"no quasi-identifier of this release holds {what}; {other}() decodes {', '.join(self.columns)}, or "
                "name the columns you mean"
            )
        return names

    def _of(self, column: str) -> DecodedColumn:
        if column not in self.columns:
            raise PolicyError.unknown("quasi-identifier", str(column), list(self.columns))
        return self.columns[column]


@suggesting
def decode(
    release: str | Path, certificate: str | Path | None = None, *, hierarchies: Mapping[str, Any] | None = None
) -> Decoded:
    """A written release, read with its certificate: ``numeric()``, ``members()``, ``one_hot()``, and ``sample()``.

    release      a file, a table of Delta or Iceberg, or the address of the server with the table that it became
    certificate  RELEASE.certificate.json if None
    hierarchies  for each column, a hierarchy that isn't next to the certificate

    Raises InputError if the certificate is missing or names other columns. This call does not verify the certificate;
    ``shoal.verify`` does. O(n) for n rows. See docs/using.md.
    """
    with written_file(release, certificate) as (path, beside):
        record = read_json(beside)
        asked = Policy.read(beside, **({"hierarchies": dict(hierarchies)} if hierarchies else {}))
        stars = record.get("stars")
        return Decoded.of(path, asked, stars if isinstance(stars, dict) else {}, record.get("separator"))


def _column(
    cells: list[Members], labels: list[str | None], index: np.ndarray, kind: pl.DataType, notation: str | None
) -> DecodedColumn:
    known = known_values(cells)
    rulers = {c.ruler for c in cells if c.ruler not in (None, "band")}  # bands are ordered categories
    own = "number" if kind.is_numeric() else "date" if kind == pl.Date else None  # if all cells are starred
    ruler = notation or (ruler_of(known) if any(v is not None for v in known) else own)
    if rulers:
        ruler = next(iter(rulers)) if ruler is None or ruler in rulers else "moment" if "moment" in rulers else ruler
    return DecodedColumn(cells, labels, index, known, ruler, places(known, ruler))


def _of_labels(hierarchy: Any) -> bool:
    """Whether a hierarchy publishes labels or prefixes, so that these are categories."""
    if hierarchy is None or (isinstance(hierarchy, str) and hierarchy in ("intervals", "labels", "tiles")):
        return hierarchy == "labels"
    return Hierarchy.of(hierarchy).kind in ("rows", "prefixes")


def _typed(values: np.ndarray, ruler: str, name: str) -> pl.Series:
    """Numbers unchanged, days since 1970 as dates (the middle of a day becomes its start) or moments."""
    found = pl.Series(name, values, dtype=pl.Float64, nan_to_null=True).fill_nan(None)
    if of_numbers(ruler):
        return found
    if of_days(ruler):
        return found.floor().cast(pl.Int32).cast(pl.Date)
    return (found * 86_400e6).round().cast(pl.Int64).cast(pl.Datetime("us"))


def _shares(column: DecodedColumn) -> tuple[np.ndarray, list[str | None]]:
    """float64[cells, labels]: shares of the known values, then of the texts of cells without known values."""
    held = np.array([c.held(column.known, column.at) for c in column.cells]).reshape(len(column.cells), -1)
    number = held.sum(axis=1)
    lost = np.flatnonzero(number == 0)
    own = np.zeros((len(column.cells), lost.size))
    own[lost, np.arange(lost.size)] = 1.0
    shares = np.hstack([held / np.maximum(number, 1)[:, None], own])
    return shares, [*column.known, *(column.labels[i] for i in lost.tolist())]


def _draw(published: pl.Series, column: DecodedColumn, rng: np.random.Generator) -> pl.Series:
    """One value for each row of a column."""
    order = np.argsort(column.where, kind="stable")
    parts = np.split(order, np.searchsorted(column.where[order], np.arange(1, len(column.cells))))
    numbers = np.full(len(column.where), np.nan)
    texts = np.full(len(column.where), None, object)
    for cell, label, (low, high, _), rows in zip(
        column.cells, column.labels, column.ends.tolist(), parts, strict=False
    ):
        if not rows.size:
            continue
        if column.ruler is not None and not cell.everything and cell.low is not None and np.isfinite(low + high):
            exact = (column.whole or of_days(column.ruler)) and max(-low, high) < _WHOLE
            numbers[rows] = (
                rng.integers(int(low), int(high) + 1, rows.size) if exact else rng.uniform(low, high, rows.size)
            )
            # one further value: in addition to all numbers if they are integers, otherwise to the known values
            if None in cell.named:
                others = (
                    int(high) - int(low) + 1 if exact else max(int(cell.held(column.known, column.at).sum()) - 1, 1)
                )
                numbers[rows[rng.random(rows.size) * (others + 1) < 1]] = np.nan
            continue
        held = np.flatnonzero(cell.held(column.known, column.at))
        if held.size:
            pick = held[rng.integers(0, held.size, rows.size)]
            numbers[rows] = column.at[pick]
            texts[rows] = np.array(column.known, object)[pick]
        elif not cell.everything:
            texts[rows] = label
    if column.ruler is not None:
        found = _typed(numbers, column.ruler, published.name)
        return found.cast(pl.Int64) if column.whole and not (np.abs(numbers) >= _WHOLE).any() else found
    drawn = pl.Series(published.name, texts.tolist(), dtype=pl.String)
    if published.dtype.is_temporal():  # each value drawn is one of the column, so it can have the column's type
        own = pl.DataFrame({"text": as_text(published), "value": published}).drop_nulls().unique("text")
        return drawn.replace_strict(own["text"], own["value"], default=None, return_dtype=published.dtype)
    return (drawn == "true") if published.dtype == pl.Boolean else drawn
