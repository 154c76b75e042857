"""How hard to search: one word for every problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.errors import PolicyError

EFFORTS = ("fast", "balanced", "thorough")


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    name     "fast": no search beyond the constructive method; "balanced": a search counted in steps, so that a seed
             reproduces it; "thorough": a long one, likewise counted in steps; "seconds": until the clock says so
    seconds  wall-clock budget for name "seconds", from the moment the method starts
    """

    name: str = "balanced"
    seconds: float | None = None

    @classmethod
    def of(cls, effort: str | float | Effort) -> Effort:
        """From a name or a number of seconds; PolicyError for anything else."""
        if isinstance(effort, Effort):
            return effort
        if isinstance(effort, str) and effort in EFFORTS:
            return cls(effort)
        try:
            seconds = float(effort)
        except (TypeError, ValueError, OverflowError):
            raise PolicyError.unknown("effort (nor a number of seconds)", str(effort), EFFORTS) from None
        if isinstance(effort, bool) or not 0 < seconds < float("inf"):
            raise PolicyError(f"effort {effort!r}: seconds are a number above 0; or one of {', '.join(EFFORTS)}")
        return cls("seconds", seconds)

    @property
    def told(self) -> str | float:
        """As it is asked for, and put on record."""
        return self.name if self.seconds is None else self.seconds

    def among(self, named: Mapping[str, float]) -> float:
        """The seconds, or what the name stands for."""
        return named[self.name] if self.seconds is None else self.seconds
