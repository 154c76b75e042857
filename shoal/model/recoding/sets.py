"""Values replaced by the set of values present in the group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shoal.model.notation import set_text, single
from shoal.model.recoding.column import ColumnRecoding, Labels, Shown, Slot

BITS = 60  # of a slot


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets(ColumnRecoding):
    """Loss (values of the set - 1) / (size - 1)."""

    kind: ClassVar[str] = "set"
    shape: ClassVar[str | None] = "set"

    @classmethod
    def of(cls, size: int, weight: float = 1.0) -> Sets:
        """Sets of ``size`` codes."""
        return cls(size=size, weight=weight)

    @property
    def step(self) -> float:
        """Loss of one value more."""
        return 1 / max(self.size - 1, 1)

    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Number of values, and -1."""
        pair = np.unique(group * np.int64(self.size) + code)
        first = np.bincount(pair // max(self.size, 1), minlength=start.size)
        return first, np.full(start.size, -1)

    def lost(self, shown: Shown, someone: np.ndarray) -> np.ndarray:
        """Values beyond the first."""
        return np.asarray((shown.first - 1) / max(self.size - 1, 1))

    def exact(self, shown: Shown) -> np.ndarray:
        """One value."""
        return np.asarray(shown.first == 1)

    def starred(self, shown: Shown) -> np.ndarray:
        """The full set, which is published as a star."""
        return np.asarray((shown.first == self.size) & (self.size > 1))

    def numbers(self, shown: Shown) -> np.ndarray:
        """Equal exactly for equal sets.  Refined by one element at a time; O(total size log groups)."""
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

    def inside(self, shown: Shown, held: np.ndarray) -> np.ndarray:
        """Rows of the values of the set."""
        group, code = shown.present
        return np.bincount(group, weights=held[code], minlength=shown.groups)

    def members(self, shown: Shown, of: np.ndarray) -> np.ndarray:
        """Values of the set."""
        out = np.zeros((self.size, of.size), bool)
        groups, code = shown.present
        start = np.searchsorted(groups, np.arange(shown.groups + 1))
        length = start[of + 1] - start[of]
        at = np.repeat(start[of] - (np.cumsum(length) - length), length) + np.arange(length.sum())
        out[code[at], np.repeat(np.arange(of.size), length)] = True
        return out

    def steps(self) -> np.ndarray:
        """One value more."""
        return np.full(self.size, self.step if self.size > 1 else np.inf)

    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """One value more, for any two."""
        return np.asarray((first != second) * self.step)

    def pair_table(self) -> np.ndarray:
        """[1]: any two values."""
        return np.array([self.weight / max(self.size - 1, 1)])

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """One step of as many as there are."""
        return [Fraction(1, max(self.size - 1, 1))]

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The one number of the table, where they differ."""
        return (first != second) * table[0]

    def beyond(self, present: np.ndarray) -> np.ndarray:
        """One value more, but for those present themselves."""
        return np.asarray(~present * self.step)

    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """One value or all."""
        size = max(self.size, 1)
        classes = np.stack([np.arange(size), np.zeros(size, np.int64)])
        return classes, np.stack([np.zeros(size), np.full(size, float(size > 1))])

    def quanta(self) -> np.ndarray | None:
        """One value more."""
        return np.unique(self.together() * self.weight)

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray | None:
        """Every one, but of the full set, which is a star."""
        return np.repeat(np.diff(border) < self.size, np.diff(border))

    def slots(self) -> list[Slot]:
        """A bit for each value; many take several slots."""
        slot, bit = np.divmod(np.arange(self.size, dtype=np.int64), BITS)
        unit = self.weight * self.step
        leaves = [np.where(slot == i, np.int64(1) << bit, 0) for i in range(max(-(-self.size // BITS), 1))]
        return [Slot("set", leaf, unit=unit) for leaf in leaves]

    def texts(
        self, shown: Shown, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """Each group's set, as ``model.notation`` writes it; the full set is a star."""
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
