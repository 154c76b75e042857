"""HIPAA's Safe Harbor as far as a table goes: which three-digit zips may stand, and what a release says of its columns.

45 CFR 164.514(b)(2)(i)(B), (C): the first three digits of a zip stand where more than 20,000 people live in all zips
with these digits, else 000; of dates the year alone; ages above 89, and years that tell them, in one category.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAME = "hipaa-safe-harbor"
RULES = ("zip", "age", "birth", "date")
CENSUS_2000 = "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893"
CENSUS_2010 = "036 059 102 202 203 204 205 369 556 692 753 772 821 823 878 879 884 893"
RESTRICTED = frozenset((CENSUS_2000 + " " + CENSUS_2010).split())
"""Three-digit zips of 20,000 people or fewer by the census of 2000 (US Department of Health and Human Services,
guidance regarding methods for de-identification, 26 November 2012) or by the ZIP
code tabulation areas of the census of 2010."""
OLDEST = 89


@dataclass(frozen=True)
class Harbor:
    """What was done to which columns.

    columns  column -> "zip" (three digits), "age" (90+), "birth" (year, early years in one) or "date" (year)
    born     the last year of birth in the category of the oldest
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    born: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": dict(self.columns), "born": self.born}
