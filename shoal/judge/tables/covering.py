"""What a published value can mean: itself, a star, an ancestor in a hierarchy, a range, or a set.

``Values`` are the distinct original values of a quasi-identifier, numbered in order (numbers and dates by size). The
distinct published values, called *tokens*, are numbered in any order. A token covers an interval of the values, a list
of values, or both. ``column`` parses every token.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from shoal.judge import recodings
from shoal.judge.finding import (
    as_number,
    has_both,
    is_number,
    moment_of,
    pair,
    parsed,
    reading,
    shown,
    unmarked,
    with_empty,
)
from shoal.judge.recodings.levels import AreaGraph
from shoal.model.hierarchy import REGIONS, Hierarchy, Resolved
from shoal.model.notation import in_one_form, in_order
from shoal.model.settings import RECODINGS


class Values:
    """The distinct values of an original column, in order."""

    def __init__(
        self, column: pl.Series, like: pl.Series, ranges: bool, sheet: bool, apart: bool, notation: str | None = None
    ) -> None:
        if ranges and like.dtype == pl.String:  # a single value may be quoted
            read = [parsed(t) if t else t for t in like.to_list()]
            like = pl.Series([r if isinstance(r, str) else t for r, t in zip(read, like.to_list(), strict=True)],
                             dtype=pl.String)  # fmt: skip
        if isinstance(column.dtype, pl.Categorical):
            column = column.cast(pl.String)
        if column.dtype.is_float():
            column = column.fill_nan(None)
        empty = bool((column == "").any()) if column.dtype == pl.String else False
        if empty and not apart:
            column = column.set(column == "", None)
        found = column.unique().drop_nulls()
        lies = _line(found, notation)
        order = np.argsort(lies[0], kind="stable") if lies is not None else found.arg_sort().to_numpy()
        found = found.gather(order)
        self.missing = column.null_count() > 0
        self.position: np.ndarray | None = None if lies is None else lies[0][order]
        self.zero = 0.0 if lies is None else lies[1]
        unit = getattr(found.dtype, "time_unit", None)
        self.day = 1.0 if unit is None else 86400e3 * {"ms": 1, "us": 1e3, "ns": 1e6}[unit]
        self.texts = [*shown(found), *(["" if empty and not apart else None] if self.missing else [])]
        if self.position is not None and self.missing:
            low, high = float(self.position[0]), float(self.position[-1])
            far = high + max(high - low, 1.0, abs(high) * 1e-9)
            self.position = np.append(self.position, far) if far - low < math.inf else None
        self.size = len(self.texts)
        plain, tokens = pair(found, like, sheet)
        if apart:
            plain, tokens = with_empty(found, plain), with_empty(like, tokens)
        number = {text: i for i, text in enumerate(plain.to_list())}
        if len(number) < len(found):  # a form that merges two values is unusable
            number = {text: i for i, text in enumerate(shown(found))}
            tokens = pl.Series(shown(like))
        self.number: dict[str | None, int] = number | ({None: self.size - 1} if self.missing else {})
        self.tokens = tokens.to_list()
        self.codes = column.replace_strict(found, np.arange(len(found)), default=None, return_dtype=pl.Int64)
        self.by_text = {text: i for i, text in enumerate(self.texts) if text is not None}


def _plain(notation: str, text: str) -> str | None:
    """A date in ISO format (2024-12-31), or a number in Python's notation; None for other texts."""
    if notation[0] != "%":
        return unmarked(text, notation) or None
    at = moment_of(text, notation)
    return None if at is None else at.date().isoformat()


def _line(values: pl.Series, notation: str | None = None) -> tuple[np.ndarray, float] | None:
    """float64 positions of distinct values, and the offset subtracted from all of them; None if they have no positions.

    Texts count as numbers, days, or bands if every text is one, or as days in a given notation. If two values have
    equal or nearly equal positions, or numbers have no distances in floating point, the result is None.
    """
    if not len(values):
        return None
    zero = 0.0
    if isinstance(values.dtype, pl.Enum):
        line = values.to_physical().cast(pl.Float64).rank("dense").cast(pl.Float64).to_numpy() - 1
    elif values.dtype == pl.String:
        texts = values.to_list()
        found = [as_number(t, notation) if is_number(t, notation) else None for t in texts]
        if notation is not None and notation[0] == "%":
            found = [None if (at := moment_of(t, notation)) is None else float(at.toordinal() - 719163) for t in texts]
        if any(x is None for x in found):
            found = [_as_day(text) for text in texts]
        if any(x is None for x in found) and in_one_form(texts[0], {*map(len, texts)}, {t[10:11] for t in texts}):
            found = [_as_moment(text) for text in texts]
        if any(x is None for x in found) and (bands := in_order(texts)) is not None:
            found = [float(x) for x in np.argsort(bands)]
        if any(x is None for x in found):
            return None
        line = np.array(found, float)
    elif values.dtype.is_temporal() or values.dtype.is_integer():
        whole = values.to_physical().to_list()
        if values.dtype.is_integer() and max(map(abs, whole)) > 2**53:
            zero = float(min(whole))
            whole = [v - min(whole) for v in whole]
        line = np.array(whole, float)
    elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
        line = values.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    else:
        return None
    span = float(line.max()) - float(line.min())  # NaN if a value is infinite or none
    usable = span == 0 or _NEAREST <= span < math.inf
    return (line, zero) if usable and np.unique(line).size == line.size else None


_NEAREST = 1e-290  # values that lie closer together, or infinitely far apart, have no positions


def _as_day(text: str) -> float | None:
    try:
        return float(datetime.date.fromisoformat(text).toordinal() - 719163) if len(text) == 10 else None
    except ValueError:
        return None


def _as_moment(text: str) -> float | None:
    try:
        return (datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    except (ValueError, TypeError):
        return None


LARGEST_TABLE = 1 << 24


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """One quasi-identifier in the original and in the release.

    before  int64[n]       value of each original row; values: the number of distinct values
    after   int64[m]       token of each published row
    low, high              int64[tokens]: first and last value covered; low > high if there is no interval
    keys    int64[p]       token * values + value, sorted: values covered in addition to the interval
    same    int64[tokens]  the value that the token publishes unchanged, -1 if none
    star    bool[tokens]   the token is certainly a star
    blank   bool[tokens]   the token is a missing value, which can mean a star
    coarse  bool[tokens]   the text can be parsed as a label, a range, or a set
    least, most            float64[tokens]: loss between 0 and 1; they differ if a text has two meanings
    position               float64[values], None if the values have no positions
    node                   int32[h, values] of a hierarchy, or None; loss float64[h, values] at its levels
    how     "recomputed", or "checked for consistency" if a text doesn't list all that it means
    """

    name: str
    before: np.ndarray
    after: np.ndarray
    values: int
    low: np.ndarray
    high: np.ndarray
    keys: np.ndarray
    same: np.ndarray
    star: np.ndarray
    blank: np.ndarray
    coarse: np.ndarray
    least: np.ndarray
    most: np.ndarray
    position: np.ndarray | None
    node: np.ndarray | None
    loss: np.ndarray
    how: str

    @cached_property
    def table(self) -> np.ndarray | None:
        """bool[tokens, values]: which token covers which value; None if the array would be large."""
        if self.low.size * self.values > LARGEST_TABLE:
            return None
        at = np.arange(self.values)
        out: np.ndarray = (self.low[:, None] <= at) & (at <= self.high[:, None])
        out.reshape(-1)[self.keys] = True
        return out

    def covers(self, token: np.ndarray, value: np.ndarray) -> np.ndarray:
        """bool: whether token[i] covers value[i]."""
        if self.table is not None:
            return self.table[token, value]
        good = (self.low[token] <= value) & (value <= self.high[token])
        if self.keys.size:
            wanted = token * np.int64(self.values) + value
            at = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
            good |= self.keys[at] == wanted
        return good

    def covered(self, token: int) -> np.ndarray:
        """bool[values]: the values that one token covers."""
        out = np.zeros(self.values, bool)
        if self.low[token] <= self.high[token]:
            out[self.low[token] : self.high[token] + 1] = True
        start, end = np.searchsorted(self.keys, [token * self.values, (token + 1) * self.values])
        out[self.keys[start:end] - token * self.values] = True
        return out

    def covering(self, token: np.ndarray) -> np.ndarray:
        """int64[values]: how many of some published values, int64[m], cover each value."""
        rows = np.bincount(token, minlength=self.low.size)
        spans = self.low <= self.high
        inside = np.zeros(self.values + 1, np.int64)
        np.add.at(inside, self.low[spans], rows[spans])
        np.add.at(inside, self.high[spans] + 1, -rows[spans])
        of, value = np.divmod(self.keys, max(self.values, 1))
        beside = (value < self.low[of]) | (value > self.high[of])
        return np.cumsum(inside)[:-1] + np.bincount(value[beside], rows[of[beside]], self.values).astype(np.int64)


@dataclass(frozen=True)
class ColumnNotation:
    """How a column was published.

    kind       a word of ``shoal.model.settings``
    star       text of a suppressed value; blank: a missing value can mean one
    hierarchy  of the column; "labels", "intervals", or "tiles" if it was generated; None if there is none
    sheet      the release is an Excel sheet
    step       of the grid to which ranges are widened, or None
    notation   of texts that are dates or numbers, or None
    """

    kind: str
    star: str
    blank: bool
    hierarchy: Hierarchy | str | None = None
    sheet: bool = False
    step: float | str | None = None
    notation: str | None = None


def column(before: pl.Series, after: pl.Series, how: ColumnNotation) -> ColumnPair:
    """Decode one quasi-identifier. O(rows + tokens + the members of all sets and classes).

    An empty text is a missing value unless the original has both in one column.
    """
    if isinstance(after.dtype, (pl.Categorical, pl.Enum)):
        after = after.cast(pl.String)
    if after.dtype.is_float():
        after = after.fill_nan(None)
    apart = has_both(before)
    if after.dtype == pl.String and len(after) and not apart:
        after = after.set(after == "", None)
    tokens = after.unique(maintain_order=True)
    values = Values(before, tokens, how.kind == "ranges", how.sheet, apart, how.notation)
    place = pl.Series(np.arange(len(tokens)))
    present = tokens.is_not_null()
    row = after.replace_strict(tokens.filter(present), place.filter(present), default=None, return_dtype=pl.Int64)
    none = int(np.flatnonzero(~present.to_numpy())[0]) if not present.all() else 0
    decoder = Decoder(values, how)
    for i, (raw, plain) in enumerate(zip(shown(tokens), values.tokens, strict=True)):
        decoder.read(i, raw, plain)
    return decoder.done(before.name, values.codes.fill_null(values.size - 1).to_numpy(), row.fill_null(none).to_numpy())


def reader(publish: str) -> Callable[[str, Any], tuple[int, int, np.ndarray, list[float]] | None]:
    """The judge's own parser of one way to publish, found by the name of its file.

    Raises PolicyError if there is no such parser.
    """
    if not RECODINGS[publish].file:
        return lambda raw, column: None
    found = reading(f"{recodings.__name__}.{RECODINGS[publish].file}", f"what is published as {publish!r}")
    return found  # type: ignore[no-any-return]


class Decoder:
    """Parses tokens one by one.

    values, how  of the column
    node, loss   as in ``ColumnPair``
    labels       label -> (level, class) with this label
    span         length of the interval of the values' positions
    certain      whether every parsed text determines its loss
    """

    def __init__(self, values: Values, how: ColumnNotation) -> None:
        self.values, self.how, self._found = values, how, reader(how.kind)
        self.low: list[int] = []
        self.high: list[int] = []
        self.keys: list[np.ndarray] = []
        self.facts: list[tuple[int, bool, bool, bool, float, float]] = []  # same, star, blank, coarse, losses
        self.node: np.ndarray | None = None
        self.loss = np.zeros((0, values.size))
        self.labels: dict[str, list[tuple[int, int]]] = {}
        self.certain = True
        self.span = 1.0
        if values.position is not None and values.size > 1:
            self.span = float(values.position[-1] - values.position[0]) or 1.0
        if isinstance(how.hierarchy, Hierarchy):
            found = how.hierarchy.resolve(
                values.texts, "", None if how.notation is None else partial(_plain, how.notation), how.notation
            )
            self.node = found.node
            self.loss = _level_losses(how.hierarchy, [t for t in values.texts if t], found)
            for level in range(1, found.node.shape[0]):
                for number, text in enumerate(found.labels[level]):
                    if text:
                        self.labels.setdefault(text, []).append((level, number))

    def read(self, token: int, raw: str | None, plain: str | None) -> None:
        """Parse one token and merge all its meanings."""
        known = self.values.number.get(plain, -1)
        low, high, members = 0, -1, np.zeros(0, np.int64)
        losses = [0.0] if known >= 0 else []
        coarse = False
        if known >= 0:
            low = high = known
        everything = raw == self.how.star and self.how.kind != "centers"
        blank = raw is None and self.how.blank
        if everything or blank:
            low, high = 0, self.values.size - 1
            losses = [1.0] if everything or known < 0 else [0.0, 1.0]
            known = -1 if everything else known
        elif raw is not None and raw != "":
            found = self._found(raw, self)
            if found is not None:
                a, b, members, more = found
                losses, coarse = [*losses, *more], True
                if known >= 0:
                    members = np.unique(np.concatenate([members, [known]]))
                low, high = a, b
        self.low.append(low)
        self.high.append(high)
        if members.size:
            self.keys.append(token * np.int64(self.values.size) + np.sort(members))
        self.facts.append((known, everything, blank, coarse, min(losses, default=0.0), max(losses, default=0.0)))

    def done(self, name: str, before: np.ndarray, after: np.ndarray) -> ColumnPair:
        """The column after all tokens are parsed."""
        same, star, blank, coarse, least, most = zip(*self.facts, strict=True) if self.facts else ((),) * 6
        return ColumnPair(
            name=name,
            before=before,
            after=after,
            values=self.values.size,
            low=np.array(self.low, np.int64),
            high=np.array(self.high, np.int64),
            keys=np.concatenate(self.keys) if self.keys else np.zeros(0, np.int64),
            same=np.array(same, np.int64),
            star=np.array(star, bool),
            blank=np.array(blank, bool),
            coarse=np.array(coarse, bool),
            least=np.array(least, float),
            most=np.array(most, float),
            position=self.values.position,
            node=self.node,
            loss=self.loss,
            how="recomputed" if self.certain else "checked for consistency",
        )


def _level_losses(hierarchy: Hierarchy, present: list[str], found: Resolved) -> np.ndarray:
    """float64[h, values]: (leaves under the class - 1) / (leaves - 1). Leaves are rows of the hierarchy, or values."""
    node, labels = found.node, found.labels
    height, size = node.shape
    out = np.zeros((height, size))
    if hierarchy.kind == REGIONS:
        graph = AreaGraph(hierarchy)
        for level in range(1, height - 1):
            areas = [graph.members(text) for text in labels[level]]  # a missing value has no areas
            out[level] = np.array([graph.lost(own) if own else 0.0 for own in areas])[node[level]]
        out[-1] = 1.0
        return out
    whole = len(hierarchy.rows) if hierarchy.rows else len(present)
    out[-1] = 1.0
    for level in range(1, height - 1):
        below: dict[str, int] = {}
        for text in [row[level] for row in hierarchy.rows] if hierarchy.rows else []:
            below[text] = below.get(text, 0) + 1
        for number, text in enumerate(labels[level]):
            inside = node[level] == number
            leaves = below.get(text, 1) if hierarchy.rows else max(int(inside.sum()), 1)
            out[level][inside] = (leaves - 1) / max(whole - 1, 1)
    return out
