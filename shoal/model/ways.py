"""Ways to publish, a line each: the word of a policy, the file and class of the recoding in ``shoal.model.recoding``,
and what a report says of it.  Light, so that flags cost nothing."""

from __future__ import annotations

from typing import Any, NamedTuple


class Way(NamedTuple):
    """One word.

    file, recoding  where the recoding of a column lies, and its class; the judge's reading is a file of the same name
                    in ``shoal.judge.recodings``; "" where rows are published as they are
    words           what it is, in a report
    """

    file: str
    recoding: str
    words: str

    def load(self) -> Any:
        """The class, a ``shoal.model.recoding.ColumnRecoding``."""
        from importlib import import_module

        return getattr(import_module(f"shoal.model.recoding.{self.file}"), self.recoding)


WAYS: dict[str, Way] = {
    "stars": Way("levels", "Levels", "values hidden as stars"),
    "hierarchy": Way("levels", "Levels", "classes of a hierarchy"),
    "ranges": Way("ranges", "Ranges", "ranges"),
    "centers": Way("", "", "one real record of each group, for all of its rows"),
}
