"""A finding: what one attack reaches on one release, beside what is reached without it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One figure of one attack.

    attack      "linkage", "inference", "minimality", "downcoding", "composition" or "files"
    name        the variant, unique in an attack;  paper: whose attack it is
    assumes     who knows what;  measures: what the figure is
    figure      a share from 0 to 1 (of guesses that are right, of people concerned), None where it cannot be told
    low, high   its 95 % interval: Wilson's for shares, normal for means
    baselines   the same figure without the release, by name
    promise     what the privacy model of the release allows, None where it speaks of something else
    people      how many people or guesses the figure is over
    risk        what a threshold is compared with, None where the finding is about no person; see ``Attack.passes``
    worst       (group of people, its figure), None where there is none
    lowers      what would lower it
    details     further figures by name
    """

    attack: str
    name: str
    paper: str
    assumes: str
    measures: str
    figure: float | None
    low: float | None = None
    high: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    promise: float | None = None
    people: int = 0
    risk: float | None = None
    worst: tuple[str, float] | None = None
    lowers: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gain(self) -> bool:
        """Whether the whole interval lies above every baseline and above the promise."""
        if self.figure is None or self.low is None:
            return False
        return self.low > max([*self.baselines.values(), self.promise or 0.0]) + 1e-9

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **{
                n: getattr(self, n) for n in ("attack", "name", "paper", "assumes", "measures", "figure", "low", "high")
            },
            "baselines": dict(self.baselines),
            **{n: getattr(self, n) for n in ("promise", "people", "risk", "gain")},
            "worst": None if self.worst is None else {"group": self.worst[0], "figure": self.worst[1]},
            "lowers": self.lowers,
            "details": dict(self.details),
        }


def wilson(right: float, tried: float) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927); (0, 1) where nothing was tried."""
    if tried <= 0:
        return 0.0, 1.0
    z, share = 1.959964, min(max(right / tried, 0.0), 1.0)
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried)) / (1 + z * z / tried)
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    return float(low) if right > 0 else 0.0, float(high) if right < tried else 1.0


def mean_interval(values: Any) -> tuple[float, float, float]:
    """(mean, low, high): a mean of shares with its normal 95 % interval.  values: float64[n], n at least 1."""
    mean = float(values.mean())
    half = 1.959964 * float(values.std()) / math.sqrt(len(values))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)
