"""A hierarchy as rows (value, class at level 1, ..., star), changed class by class so that it stays nested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Tree:
    """The hierarchy of one column while it is edited.

    rows    a list for each value: the value, its class at every level, the star;  counts: rows of the table with it
    total   rows of the table
    """

    rows: list[list[str]]
    counts: list[int]
    total: int

    @property
    def height(self) -> int:
        """Number of levels, the values and the star among them."""
        return len(self.rows[0]) if self.rows else 1

    def classes(self, level: int) -> dict[str, list[str]]:
        """Class of a level -> the classes of the level below that lie in it, in order."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            found.setdefault(row[level], {})[row[level - 1]] = None
        return {name: list(held) for name, held in found.items()}

    def share(self, level: int, name: str) -> float:
        """Share of the table's rows under a class."""
        held = sum(n for row, n in zip(self.rows, self.counts, strict=True) if row[level] == name)
        return held / self.total if self.total else 0.0

    def move(self, level: int, names: Sequence[str], target: str) -> None:
        """Put classes of the level below into a class; a new one lies where the first of them lay before."""
        wanted = set(names)
        above = next((row[level + 1 :] for row in self.rows if row[level] == target), None)
        for row in self.rows:
            if row[level - 1] in wanted:
                if above is None:
                    above = row[level + 1 :]
                row[level:] = [target, *above]

    def rename(self, level: int, old: str, new: str) -> bool:
        """Another name for a class; False where the level has that name already, or it is empty."""
        if not new or any(row[level] == new for row in self.rows) or level >= self.height - 1:
            return False
        for row in self.rows:
            if row[level] == old:
                row[level] = new
        return True

    def add_level(self) -> None:
        """One more level under the star, at first like the one below it."""
        for row in self.rows:
            row.insert(len(row) - 1, row[-2])

    def remove_level(self, level: int) -> None:
        """Without one of the levels between values and star."""
        if 0 < level < self.height - 1:
            for row in self.rows:
                del row[level]
