"""The exceptions of shoal.

Every error that shoal raises on purpose is a ``ShoalError``. Its text is a sentence that names the column, the value
found, and a way out. It never contains a row of the user's table. The class determines the exit status of the command
line: 1 a check failed, 2 bad usage or bad input, 3 no feasible answer exists, 4 an output exists already.

A sentence marks the settings that it names: ``⟨k=5⟩``. Each front end replaces the mark by its own form: Python writes
``k=5``, the command line ``--k 5``, and the workbench the label of the field. No front end searches the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple

_MENTION = re.compile(r"⟨([a-z_]+)(?:\[([^⟨⟩]*?)\])?(?: ?= ?([^⟨⟩]*))?⟩")
# control characters, separators of lines, and characters that change the order of what follows
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """A text as one line of a terminal, in which a name from a file can't end the line, or hide or reorder another.

    Line breaks and other control characters are written as Python writes them.
    """
    return _UNSHOWN.sub(lambda found: repr(found[0])[1:-1], text)


class Mention(NamedTuple):
    """A setting that a sentence names.

    name    keyword of the setting
    column  the column that it applies to, as Python writes it
    value   as Python writes it: ``5``, ``'ranges'``, ``[...]``, TABLE; "" if any value fits; None if there is none
    text    the whole setting, as Python writes it
    """

    name: str
    column: str | None
    value: str | None
    text: str


class Sentence(str):
    """A sentence that may name settings: as a string in Python's form, by ``worded`` in that of another front end."""

    marked: str

    def __new__(cls, marked: str) -> Sentence:
        if isinstance(marked, Sentence):
            return marked
        marked = one_line(marked)  # names of columns can have line breaks
        made = super().__new__(cls, _MENTION.sub(lambda found: found[0][1:-1], marked))
        made.marked = marked
        return made

    def worded(self, words: Callable[[Mention], str]) -> str:
        """The sentence, with each setting written by ``words``."""
        return _MENTION.sub(lambda found: words(Mention(found[1], found[2], found[3], found[0][1:-1])), self.marked)

    @property
    def settings(self) -> tuple[str, ...]:
        """The keywords of the settings that the sentence names, each once, in order of occurrence."""
        return tuple(dict.fromkeys(found[1] for found in _MENTION.finditer(self.marked)))


class ShoalError(ValueError):
    """Base class of all errors that shoal raises on purpose.

    keys    the settings of the policy file that was read; messages name these by their keys in the file
    column  the column that was refused, if the error is about a column that doesn't exist
    """

    exit_status = 2
    column: str | None = None
    keys: Collection[str] = ()

    def __init__(self, sentence: str = "") -> None:
        super().__init__(Sentence(sentence))

    @property
    def sentence(self) -> Sentence:
        """The message, with its marked settings."""
        sentence: Sentence = self.args[0]
        return sentence

    @property
    def settings(self) -> tuple[str, ...]:
        """The keywords of the settings that the message names."""
        return self.sentence.settings


class InputError(ShoalError):
    """The data cannot be used as they are."""


class PolicyError(ShoalError):
    """The request contradicts itself, or names something that does not exist."""

    @classmethod
    def unknown(
        cls, what: str, name: str, available: Iterable[str], meanings: Mapping[str, str] | None = None
    ) -> PolicyError:
        """A PolicyError for a name that is not available, with the most similar available name.

        what       what the name stands for, such as "column"
        meanings   what each available name means; if no name is similar enough, all are listed
        """
        names = list(dict.fromkeys(str(a) for a in available))
        close = [a for a in names if a.casefold() == str(name).casefold()]
        close = close or [a for a in names if len(str(name)) > 2 and a.startswith((f"{name}-", f"{name}_"))]
        close = close or [a for a in names if len(a) > 2 and str(name).casefold().startswith(a.casefold())]
        close = close or get_close_matches(str(name), names, n=1, cutoff=0.8 if meanings else 0.65)
        several = [part.strip() for part in re.split("[,;| ]", str(name)) if part.strip()]
        if len(several) > 1 and set(several) <= set(names):
            hint = f"it names {len(several)}, so give each by itself: {several}"
        elif what.startswith("column") and any(is_number(a) for a in names):
            hint = "the first line of the table holds numbers, as a row does; put the names of the columns above it"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        elif meanings:
            hint = "there is " + ", ".join(f"{a!r} ({meanings[a]})" for a in names)
        elif names:
            shown = ", ".join(repr(a) for a in names[:20]) + (" ..." if len(names) > 20 else "")
            hint = f"there is {shown}"
        else:
            hint = "there is none"
        article = "an" if what[:1].lower() in "aeio" else "a"
        refused = cls(f"{name!r} is not {article} {what}; {hint}")
        refused.column = str(name) if what.split()[0] == "column" else None
        return refused


def is_number(name: str) -> bool:
    """Whether a column name looks like a number. If so, the first row of the file may be data instead of a header."""
    return re.fullmatch(r"\s*-?\d+([.,]\d+)?\s*", name) is not None


class UnaskedError(PolicyError):
    """A request lacks a required setting. Errors in the settings that are given are reported first."""


class UncoveredError(PolicyError):
    """A hierarchy lacks values of its column."""


class ExistsError(PolicyError):
    """An output exists already and may not be replaced. Its own exit status lets a repeated job detect this."""

    exit_status = 4


@contextmanager
def within(where: str, *others: type[ShoalError]) -> Iterator[None]:
    """Add to a PolicyError, or to one of other kinds, to which of several tables, columns, or settings it applies."""
    kinds: tuple[type[ShoalError], ...] = (PolicyError, *others)
    try:
        yield
    except kinds as error:
        error.args = (Sentence(f"in {where}, {error.sentence.marked}"),)
        raise


class MissingDependencyError(ShoalError):
    """The request needs an optional package that isn't installed."""

    @classmethod
    def needed(cls, package: str, purpose: str, extra: str) -> MissingDependencyError:
        """An error with the package, its purpose, and the command that installs it."""
        return cls(f"{purpose} needs the package {package}; install it with: pip install 'shoal[{extra}]'")

    @classmethod
    def unless(cls, package: str, purpose: str, extra: str) -> None:
        """Raise the error if the package can't be imported. Call this before importing from the package."""
        try:
            import_module(package)
        except ImportError:
            raise cls.needed(package, purpose, extra) from None


class CertificateError(ShoalError):
    """A certificate contradicts itself, so its cost or its bound is wrong."""

    exit_status = 1


class VerificationError(ShoalError):
    """A finished release breaks its promise. Nothing was published."""

    exit_status = 1


class InfeasibleError(ShoalError):
    """No answer exists. The message states why, and what would be possible."""

    exit_status = 3
