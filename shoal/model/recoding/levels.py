"""Generalization: values are replaced by the lowest hierarchy class that contains them all.

All leaves of a hierarchy have the same depth. Suppression is the hierarchy of height one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.members import Members
from shoal.model.recoding.column import ColumnRecoding, Labels, Line, PublishedColumn, Slot

FORBIDDEN = float(2**20)  # loss of a level above its ceiling: larger than any other loss of a row


@dataclass(frozen=True, eq=False, kw_only=True)
class Levels(ColumnRecoding):
    """The levels of a hierarchy over a column of codes.

    node     int32[h, size]    class of each code at each level; node[0] numbers the codes themselves, classes at level
                               i + 1 are unions of classes at level i
    loss     float64[h, size]  loss of publishing a code's class at that level, rising with the level
    ceiling  highest level that may be published (h - 1 unless the user forbids it)
    leaves   number of leaves of the hierarchy; 0 for a star alone
    """

    kind: ClassVar[str] = "levels"
    shape: ClassVar[str | None] = "tree"
    node: np.ndarray
    loss: np.ndarray
    ceiling: int
    leaves: int = 0

    @classmethod
    def stars(cls, size: int, weight: float = 1.0) -> Levels:
        """The hierarchy of value and star; a star has loss 1."""
        node = np.stack([np.arange(size), np.zeros(size, int)]).astype(np.int32)
        loss = np.stack([np.zeros(size), np.ones(size)])
        return cls(size=size, weight=weight, node=node, loss=loss, ceiling=1)

    @classmethod
    def tree(
        cls, node: np.ndarray, weight: float = 1.0, ceiling: int | None = None, leaves: np.ndarray | None = None
    ) -> Levels:
        """A hierarchy, node int[h, size] as above. The loss is NCP: (leaves under the class - 1) / (leaves - 1).

        leaves  int[h, size]  leaves of the class of each code in the given hierarchy, its root last; None: the codes
        """
        node = np.ascontiguousarray(node, dtype=np.int32)
        h, size = node.shape
        for low, high in pairwise(node):
            order = np.lexsort((high, low))
            same = low[order][1:] == low[order][:-1]
            if (same & (high[order][1:] != high[order][:-1])).any():
                raise PolicyError(
                    "a hierarchy's levels are not nested: one class lies in two classes of the next level"
                )
        if leaves is None:
            leaves = np.array([np.bincount(level, minlength=1)[level] if size else level for level in node])
        total = int(leaves[-1].max(initial=1))
        loss = (leaves - 1) / max(total - 1, 1)
        if h > 1 and size and (node[-1] == node[-1][0]).all():  # a star is a star, even above a single leaf
            loss[-1] = 1.0
        top = h - 1 if ceiling is None else min(ceiling, h - 1)
        return cls(size=size, weight=weight, node=node, loss=loss.astype(np.float64), ceiling=top, leaves=total)

    @classmethod
    def of_column(cls, size: int, line: Line, weight: float) -> Levels:
        """The hierarchy of value and star."""
        return cls.stars(size, weight)

    @classmethod
    def meanings(cls, texts: Sequence[str], notation: str | None = None) -> Mapping[str, Members]:
        """Each text stands for itself: without a hierarchy, every text except the star is a value."""
        return {t: Members(named=frozenset([t])) for t in texts}

    @property
    def levels(self) -> int:
        """Number of levels, including the values themselves."""
        return int(self.node.shape[0])

    @property
    def held(self) -> bool:
        """Whether some level may not be published."""
        return self.ceiling < self.levels - 1

    @property
    def limit(self) -> str:
        """The ceiling as text."""
        return f"level {self.ceiling} of {self.levels - 1}"

    def top(self) -> tuple[int, np.ndarray]:
        """The highest level that may be published, and the class of each code there."""
        return self.ceiling, self.node[self.ceiling].astype(np.int64)

    def classes(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """The class of each code at a level of the hierarchy."""
        return np.asarray(self.node[level, code])

    def lifted(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """The loss of the level."""
        return np.asarray(self.loss[level, code])

    def order(self) -> np.ndarray:
        """The order of the values by class, from the top level down."""
        return np.argsort(np.lexsort(self.node))

    def allowed(self) -> np.ndarray:
        """The class of each code at the ceiling: codes of one class may be published together."""
        return np.asarray(self.node[self.ceiling])

    def above(self, first: np.ndarray) -> np.ndarray:
        """Whether a group is published above the ceiling."""
        return np.asarray(first > self.ceiling)

    def raised(self) -> np.ndarray | None:
        """The loss of a code one level up."""
        return self.loss[1] if self.levels > 1 else None

    @property
    def pure(self) -> np.ndarray:
        """The loss of level 0: above 0 if codes are classes of values."""
        found: np.ndarray = self.loss[0] if self.levels else np.zeros(self.size)
        return found

    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The lowest level at which the codes of a group are in one class, and that class."""
        first, second = np.zeros(start.size, np.int32), np.zeros(start.size, np.int32)
        done = np.zeros(start.size, bool)
        for level, node in enumerate(self.node):
            if done.all():
                break
            if (node == node[0]).all():
                first[~done], second[~done], done[:] = level, node[0], True
                break
            at = node[code]
            low, high = np.minimum.reduceat(at, start), np.maximum.reduceat(at, start)
            now = ~done & (low == high)
            first[now], second[now] = level, low[now]
            done |= now
        return (first, second) if done.all() else None

    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """The loss of the class."""
        out: np.ndarray = self.loss[shown.first, someone]
        return out

    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """Whether a group is published at level 0."""
        return np.asarray(shown.first == 0)

    def starred(self, shown: PublishedColumn) -> np.ndarray:
        """Whether a group is published at the last level, if it is above the values."""
        return np.asarray(shown.first == self.levels - 1) & (self.levels > 1)

    def height(self, shown: PublishedColumn) -> np.ndarray:
        """The level divided by the number of levels above the values."""
        return np.asarray(shown.first / max(self.levels - 1, 1))

    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """A number for each pair of level and class."""
        return shown.first.astype(np.int64) * max(self.size, 1) + shown.second

    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """The rows of the class."""
        out = np.zeros(shown.groups)
        for level in range(self.levels):
            here = shown.first == level
            out[here] = np.bincount(self.node[level], weights=held)[shown.second[here]]
        return out

    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """The codes of the class."""
        out = np.zeros((self.size, of.size), bool)
        for level in range(self.levels):
            here = np.flatnonzero(shown.first[of] == level)
            out[:, here] = self.node[level][:, None] == shown.second[of[here]]
        return out

    def steps(self) -> np.ndarray:
        """The loss of a code's lowest class with at least two codes."""
        out = np.full(self.size, np.inf)
        for level in range(self.levels):
            wide = np.bincount(self.node[level])[self.node[level]] > 1
            out = np.where(wide, np.minimum(out, self.loss[level]), out)
        return out

    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The loss of the lowest common class."""
        out = np.full(np.broadcast_shapes(first.shape, second.shape), np.nan)
        for level in range(self.levels - 1, -1, -1):
            joined = self.node[level][first] == self.node[level][second]
            out = np.where(joined, self.loss[level][first], out)
        return out

    def pair_table(self) -> np.ndarray:
        """float64[h, size]: the loss of each class."""
        return self.loss * self.weight

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """The loss of each class as a fraction."""
        values, inverse = np.unique(self.loss, return_inverse=True)
        known = [read(float(v)) for v in values]
        return [known[i] for i in inverse.reshape(-1)]

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The loss of the lowest common class."""
        out = np.broadcast_to(table[0][first], np.broadcast_shapes(first.shape, second.shape))
        for level in range(self.levels - 1):
            out = np.where(self.node[level][first] != self.node[level][second], table[level + 1][first], out)
        return out

    def beyond(self, present: np.ndarray) -> np.ndarray:
        """The loss of the lowest class with a present code; 0 if there is none."""
        out = np.zeros(self.size)
        for level in range(self.levels - 1, -1, -1):
            held = np.zeros(int(self.node[level].max(initial=0)) + 1, bool)
            held[self.node[level][present]] = True
            out = np.where(held[self.node[level]], self.loss[level], out)
        return out

    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels up to the ceiling, with classes numbered 0, 1, 2, ..."""
        top = self.ceiling + 1
        numbered = [np.unique(level, return_inverse=True)[1].reshape(-1) for level in self.node[:top]]
        return np.stack(numbered), self.loss[:top]

    def nodes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nodes of the tree, numbered level by level: parent int32, weighted loss float64, node of each code
        int64[size].

        Levels above the ceiling have the loss ``FORBIDDEN``, and so has a root that is added to a hierarchy without
        one.
        """
        of, first, loss = [], [], []
        total = 0
        for level in range(self.levels):
            names, at, inverse = np.unique(self.node[level], return_index=True, return_inverse=True)
            of.append(inverse.reshape(-1) + total)
            first.append(at)
            loss.append(self.loss[level][at] * self.weight + (FORBIDDEN if level > self.ceiling else 0.0))
            total += names.size
        if first and first[-1].size > 1:
            of.append(np.full(self.size, total))
            first.append(np.zeros(1, np.int64))
            loss.append(np.full(1, FORBIDDEN))
            total += 1
        parent = np.concatenate([high[at] for high, at in zip([*of[1:], of[-1]], first, strict=True)])
        return parent.astype(np.int32), np.concatenate(loss), of[0].astype(np.int64)

    def slots(self) -> list[Slot]:
        """One slot: a node of the tree for each code."""
        parent, loss, of = self.nodes()
        return [Slot("tree", of, loss, parent)]

    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """Values unchanged, classes as their labels, the root as a star."""
        width = max(self.size, int(shown.second.max(initial=0)) + 1)
        distinct, index = np.unique(shown.first.astype(np.int64) * width + shown.second, return_inverse=True)
        texts: list[str | None] = []
        plain: list[int] = []
        for pair in distinct.tolist():
            level, class_ = divmod(pair, width)
            text = values[class_] if level == 0 else labels[level - 1][class_] if labels is not None else "*"
            texts.append(star if level and text == "*" else text)
            plain.append(class_ if level == 0 else -1)
        return index.reshape(-1), texts, plain
