"""Ranges and sets: numbers and dates from lowest to highest, or the values of a group.

If requested, ranges are widened to a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.model.members import Members, of_ranges
from shoal.model.notation import range_text, set_text, single
from shoal.model.recoding.column import ColumnRecoding, Labels, Line, PublishedColumn, Slot

BITS = 60  # bits of a slot


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets(ColumnRecoding):
    """Sets of a column's codes. The loss is (values of the set - 1) / (size - 1)."""

    kind: ClassVar[str] = "set"
    shape: ClassVar[str | None] = "set"
    bares: ClassVar[bool] = True

    @classmethod
    def of(cls, size: int, weight: float = 1.0) -> Sets:
        """Sets of ``size`` codes."""
        return cls(size=size, weight=weight)

    @property
    def step(self) -> float:
        """The loss of each further value."""
        return 1 / max(self.size - 1, 1)

    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Number of values, and -1."""
        pair = np.unique(group * np.int64(self.size) + code)
        first = np.bincount(pair // max(self.size, 1), minlength=start.size)
        return first, np.full(start.size, -1)

    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """The loss of the values beyond the first."""
        return np.asarray((shown.first - 1) / max(self.size - 1, 1))

    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """Whether a set has one value."""
        return np.asarray(shown.first == 1)

    def starred(self, shown: PublishedColumn) -> np.ndarray:
        """Whether a set has all values: it is published as a star."""
        return np.asarray((shown.first == self.size) & (self.size > 1))

    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """A number for each set, equal for equal sets. Refined by one element at a time; O(total size log groups)."""
        group, code = shown.present
        groups = shown.groups
        size = np.bincount(group, minlength=groups)
        start = np.cumsum(size) - size
        number = size.astype(np.int64)
        for at in range(int(size.max(initial=0))):
            longer = np.flatnonzero(size > at)
            pair = number[longer] * np.int64(self.size) + code[start[longer] + at]
            fresh = np.unique(pair, return_inverse=True)[1].reshape(-1)
            number[longer] = groups + fresh + int(number.max()) + 1
        return np.unique(number, return_inverse=True)[1].reshape(-1)

    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """The rows of the values of the set."""
        group, code = shown.present
        return np.bincount(group, weights=held[code], minlength=shown.groups)

    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """The values of the set."""
        out = np.zeros((self.size, of.size), bool)
        groups, code = shown.present
        start = np.searchsorted(groups, np.arange(shown.groups + 1))
        length = start[of + 1] - start[of]
        at = np.repeat(start[of] - (np.cumsum(length) - length), length) + np.arange(length.sum())
        out[code[at], np.repeat(np.arange(of.size), length)] = True
        return out

    def steps(self) -> np.ndarray:
        """The loss of one further value."""
        return np.full(self.size, self.step if self.size > 1 else np.inf)

    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The loss of one further value, the same for any two codes."""
        return np.asarray((first != second) * self.step)

    def pair_table(self) -> np.ndarray:
        """float64[1]: the loss of any two values."""
        return np.array([self.weight / max(self.size - 1, 1)])

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """The loss of one further value as a fraction."""
        return [Fraction(1, max(self.size - 1, 1))]

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The number in the table for different codes, 0 for equal ones."""
        return (first != second) * table[0]

    def beyond(self, present: np.ndarray) -> np.ndarray:
        """The loss of one further value; 0 for present codes."""
        return np.asarray(~present * self.step)

    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels of a search: single values, then all values together."""
        size = max(self.size, 1)
        classes = np.stack([np.arange(size), np.zeros(size, np.int64)])
        return classes, np.stack([np.zeros(size), np.full(size, float(size > 1))])

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
        """Whether a set shows its members: every set does, except the full one, which is a star."""
        return np.repeat(np.diff(border) < self.size, np.diff(border))

    def slots(self) -> list[Slot]:
        """One bit for each value; columns with many values need several slots."""
        slot, bit = np.divmod(np.arange(self.size, dtype=np.int64), BITS)
        unit = self.weight * self.step
        leaves = [np.where(slot == i, np.int64(1) << bit, 0) for i in range(max(-(-self.size // BITS), 1))]
        return [Slot("set", leaf, unit=unit) for leaf in leaves]

    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """Each group's set in the notation of ``model.notation``; the full set is a star."""
        group, code = shown.present
        start = np.searchsorted(group, np.arange(shown.groups))
        known: dict[bytes, int] = {}
        texts: list[str | None] = []
        plain: list[int] = []
        index = np.zeros(shown.groups, np.int64)
        for g, codes in enumerate(np.split(code, start[1:]) if shown.groups else []):
            key = codes.tobytes()
            if key not in known:
                known[key] = len(texts)
                if codes.size == 1:
                    texts.append(single(values[int(codes[0])]))
                    plain.append(int(codes[0]))
                else:
                    texts.append(star if codes.size == self.size else set_text(values[c] for c in codes.tolist()))
                    plain.append(-1)
            index[g] = known[key]
        return index, texts, plain


class RangeGrid(NamedTuple):
    """The ends to which ranges are widened outward.

    ends       float64[e], rising; an end and the text for all values beyond a limit at it have the same position
    low, high  int32[size]: index of the last end at or below a code's position, and of the first end at or above it
    """

    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranges(ColumnRecoding):
    """Ranges of a column's codes, which have positions on a line. The loss is (high - low) / (max - min), at most 1.

    position   float64[size]  position of each code, rising with the code
    ends       float64[e]     positions at which a published range may end, rising; without a grid, ``position``
    low, high  int32[size]    indices of the ends that are published for a code alone, around its position
    """

    kind: ClassVar[str] = "range"
    bares: ClassVar[bool] = True
    shape: ClassVar[str | None] = "line"
    position: np.ndarray
    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, position: np.ndarray, weight: float = 1.0, grid: RangeGrid | None = None) -> Ranges:
        """Ranges with positions float[size], rising. grid None: ranges end at the positions themselves."""
        position = np.asarray(position, dtype=np.float64)
        codes = np.arange(position.size, dtype=np.int32)
        ends, low, high = grid or RangeGrid(position, codes, codes)
        return cls(size=position.size, weight=weight, position=position, ends=ends, low=low, high=high)

    @classmethod
    def of_column(cls, size: int, line: Line, weight: float) -> ColumnRecoding:
        """Ranges if the codes have positions, otherwise sets."""
        position = line()
        return Sets.of(size, weight) if position is None else cls.of(position, weight)

    @classmethod
    def meanings(cls, texts: Sequence[str], notation: str | None = None) -> Mapping[str, Members]:
        """The values that each text stands for, by ``shoal.model.notation``. A column of ranges may show sets."""
        return of_ranges(texts, notation)

    @property
    def span(self) -> float:
        """The length of the line; 1 for at most one code."""
        return float(self.position[-1] - self.position[0]) if self.size > 1 else 1.0

    def width(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """float64: the loss of publishing codes ``low`` to ``high`` as a range; shapes broadcast."""
        return self.between(self.low[low], self.high[high])

    spread = width

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64: the same for ends, given as indices. A range wider than the column's span has loss 1."""
        return np.minimum((self.ends[second] - self.ends[first]) / self.span, 1.0)

    def codes(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """int64: the lowest and the highest code between two ends, given as indices."""
        return np.searchsorted(self.low, first, "left"), np.searchsorted(self.high, second, "right") - 1

    @property
    def pure(self) -> np.ndarray:
        """The loss of a code alone, which a grid widens."""
        codes = np.arange(self.size)
        return self.width(codes, codes)

    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The ends around the lowest and the highest code of each group."""
        return self.low[np.minimum.reduceat(code, start)], self.high[np.maximum.reduceat(code, start)]

    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """The loss by the width of the range."""
        return self.between(shown.first, shown.second)

    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """Whether both ends of a range are equal."""
        return np.asarray(shown.first == shown.second)

    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """A number for each pair of ends."""
        return shown.first.astype(np.int64) * max(self.ends.size, 1) + shown.second

    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """The rows of the codes between the ends."""
        upto = np.concatenate([[0.0], np.cumsum(held)])
        low, high = self.codes(shown.first, shown.second)
        return np.asarray(upto[high + 1] - upto[low])

    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """The codes between the ends."""
        code = np.arange(self.size)[:, None]
        low, high = self.codes(shown.first[of], shown.second[of])
        return np.asarray((low <= code) & (code <= high))

    def steps(self) -> np.ndarray:
        """The loss of a range to the nearer neighbor."""
        if self.size < 2:
            return np.full(self.size, np.inf)
        gap = self.width(np.arange(self.size - 1), np.arange(1, self.size))
        return np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))

    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The loss of the range from one code to the other."""
        return self.width(np.minimum(first, second), np.maximum(first, second))

    def pair_table(self) -> np.ndarray:
        """[3, size]: start and end of each code's range, measured from the first start, and the maximum loss."""
        ends = (self.ends - self.ends[self.low[:1]]) / self.span * self.weight
        return np.stack([ends[self.low], ends[self.high], np.full(self.size, self.weight)])

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """Positions as the decimals that they print as."""
        at = [Fraction(repr(float(x))) for x in self.position[[0, -1]]]
        span = at[1] - at[0] if self.size > 1 else Fraction(1)
        ends = [Fraction(repr(float(x))) / span for x in self.ends]
        low, high = self.low.tolist(), self.high.tolist()
        return [*(ends[i] - ends[low[0]] for i in [*low, *high]), *[Fraction(1)] * self.size]

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Losses of pairs: from the start of the lower code to the end of the higher code."""
        return np.minimum(table[1][np.maximum(first, second)] - table[0][np.minimum(first, second)], table[2, 0])

    def beyond(self, present: np.ndarray) -> np.ndarray:
        """The loss of a range to the nearest present code; 0 for a present code."""
        codes, there = np.arange(self.size), np.flatnonzero(present)
        place = np.searchsorted(there, codes)
        below, above = there[np.maximum(place - 1, 0)], there[np.minimum(place, there.size - 1)]
        out = np.minimum(self.pair(codes, below), self.pair(codes, above))
        return np.where(present, 0.0, out)

    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels of a search: codes, pairs of neighboring codes, fours, ..., all."""
        size = max(self.size, 1)
        chain = [np.arange(size)]
        while chain[-1][-1] > 0:
            chain.append(chain[-1] // 2)
        losses = []
        for level in chain:
            new = np.flatnonzero(np.diff(level, prepend=-1))
            last = np.append(new[1:], size) - 1
            losses.append((self.width(new, last) if self.size else np.zeros(1))[level])
        return np.stack(chain), np.stack(losses)

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
        """Whether a code is an end of its group's range."""
        out = np.zeros(group.size, bool)
        out[border[:-1]] = out[border[1:] - 1] = True
        return out

    def slots(self) -> list[Slot]:
        """One slot: the two ends of each code."""
        leaf = self.low.astype(np.int64) | (self.high.astype(np.int64) << 32)
        ends = self.ends if self.ends.size else np.zeros(1)
        return [Slot("line", leaf, ends, unit=self.weight / self.span)]

    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """Both ends in the notation of ``model.notation``; a single value if they are equal."""
        width = max(self.size, int(shown.second.max(initial=0)) + 1)
        ends = values if labels is None else labels[0]
        at_end = {int(a): code for code, (a, b) in enumerate(zip(self.low, self.high, strict=True)) if a == b}
        distinct, index = np.unique(shown.first.astype(np.int64) * width + shown.second, return_inverse=True)
        texts: list[str | None] = []
        plain: list[int] = []
        for pair in distinct.tolist():
            a, b = divmod(pair, width)
            texts.append(single(ends[a]) if a == b else range_text(ends[a], ends[b]))
            plain.append(at_end[a] if a == b else -1)
        return index.reshape(-1), texts, plain
