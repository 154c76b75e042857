"""One vocabulary of refusals.

Every error shoal raises on purpose is a ``ShoalError``.  Its text is a sentence that names the
column, the value found and a way out, and it never holds a row of the user's table.  The class
decides the exit status of the command line: 1 a check failed, 2 bad usage or bad input,
3 no feasible answer exists, 4 an output exists already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module


class ShoalError(ValueError):
    """Base class of all refusals."""

    exit_status = 2


class InputError(ShoalError):
    """The data cannot be used as they are."""


class PolicyError(ShoalError):
    """The request contradicts itself, or names something that does not exist."""

    @classmethod
    def unknown(cls, what: str, name: str, available: Iterable[str]) -> PolicyError:
        """A name that is not among those available, with the nearest that is."""
        names = list(dict.fromkeys(str(a) for a in available))
        close = [a for a in names if len(str(name)) > 2 and a.startswith((f"{name}-", f"{name}_"))]
        close = close or get_close_matches(str(name), names, n=1)
        several = [part.strip() for part in re.split("[,;| ]", str(name)) if part.strip()]
        if len(several) > 1 and set(several) <= set(names):
            hint = f"it names {len(several)}, so give each by itself: {', '.join(several)}"
        elif what.startswith("column") and any(is_number(a) for a in names):
            hint = "the first line of the table holds numbers, as a row does; put the names of the columns above it"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        elif names:
            shown = ", ".join(repr(a) for a in names[:20]) + (" ..." if len(names) > 20 else "")
            hint = f"there is {shown}"
        else:
            hint = "there is none"
        article = "an" if what[:1].lower() in "aeio" else "a"
        return cls(f"{name!r} is not {article} {what}; {hint}")


def is_number(name: str) -> bool:
    """Whether a name of a column looks like a value of one: then the first row could stand where names should."""
    return re.fullmatch(r"\s*-?\d+([.,]\d+)?\s*", name) is not None


class UnaskedError(PolicyError):
    """A request lacks what no release can do without.  What is wrong in the rest of it is said first."""


class ExistsError(PolicyError):
    """An output exists already, and nobody said that it may be replaced: a job that runs again can tell."""

    exit_status = 4


@contextmanager
def within(where: str) -> Iterator[None]:
    """A PolicyError raised inside says of which of several tables it speaks."""
    try:
        yield
    except PolicyError as error:
        raise PolicyError(f"in {where}, {error}") from None


class MissingDependencyError(ShoalError):
    """An optional package is needed for what was asked."""

    @classmethod
    def needed(cls, package: str, purpose: str, extra: str) -> MissingDependencyError:
        """Names the package, what it is for and the line that installs it."""
        return cls(f"{purpose} needs the package {package}; install it with: pip install 'shoal[{extra}]'")

    @classmethod
    def unless(cls, package: str, purpose: str, extra: str) -> None:
        """Raises unless the package can be imported; call it before importing from the package."""
        try:
            import_module(package)
        except ImportError:
            raise cls.needed(package, purpose, extra) from None


class CertificateError(ShoalError):
    """A certificate contradicts itself, so its cost or its bound is wrong."""

    exit_status = 1


class VerificationError(ShoalError):
    """A finished release does not keep its promise. Nothing was published."""

    exit_status = 1


class InfeasibleError(ShoalError):
    """No answer exists. The message states why, and what would be possible."""

    exit_status = 3
