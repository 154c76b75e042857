"""Rule books: what each known rule requires of a table, its source, and what it requires beyond the table.

For HIPAA's Safe Harbor, the module has the three-digit zips that may be published, and ``SafeHarbor``, the changes to
the columns. 45 CFR 164.514(b)(2)(i)(B), (C): the first three digits of a zip are published if more than 20,000 people
live in all zips with these digits, otherwise 000. Of dates, only the year is published. Ages above 89, and years that
reveal such ages, form one category.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RuleBook:
    """A rule that is known by a name.

    k       minimum number of rows in every group
    source  the document that states the rule
    why     how k follows from it
    leaves  what the rule requires beyond k
    """

    k: int
    source: str
    why: str
    leaves: str

    def as_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {"k": self.k, "source": self.source, "why": self.why, "does_not_cover": self.leaves}


_JUDGEMENT = "which columns others may know, whether 1/k is low enough for this release, and what groups have in common"
_IN_USE = "sizes in use: El Emam, Malin 2015, in Institute of Medicine, Sharing Clinical Trial Data, Appendix B"
RULE_BOOKS: dict[str, RuleBook] = {
    "k3": RuleBook(3, _IN_USE, "no group under 3, a risk of at most 0.33", _JUDGEMENT),
    "k5": RuleBook(5, _IN_USE, "no group under 5, a risk of at most 0.2", _JUDGEMENT),
    "k11": RuleBook(11, _IN_USE, "no group under 11, a risk of at most 0.09", _JUDGEMENT),
    "k20": RuleBook(20, _IN_USE, "no group under 20, a risk of at most 0.05", _JUDGEMENT),
    "cms-11": RuleBook(
        11,
        "US Centers for Medicare and Medicaid Services, cell size suppression policy",
        "no cell of 1 to 10 may be shown",
        "tables made from the release, whose cells and percentages must again show none of 1 to 10, and a cell that "
        "follows from totals and the other cells",
    ),
    "ema-0.09": RuleBook(
        12,
        "EMA Policy 0070; Health Canada, Public Release of Clinical Information",
        "a risk of at most 0.09: 1/12 is the first share below it, for the highest risk, and so for the mean as well",
        "the risk of an attempt in this setting, which the policy multiplies in, several rows of one patient unless "
        "a column is named as the person, and free text",
    ),
    "hipaa-safe-harbor": RuleBook(
        1,
        "45 CFR 164.514(b)(2), US Department of Health and Human Services, guidance of 26 November 2012",
        "three-digit zips above 20,000 people, ages above 89 in one category, years of dates, no direct identifiers "
        "and no places below a state; it asks for no groups",
        "what the publisher actually knows, identifiers in free text or under names that nothing gives away, zips that "
        "fell to 20,000 people after the census of 2010, and anybody who is alone in what is left: ask for k as well",
    ),
}


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
class SafeHarbor:
    """The columns that Safe Harbor changed.

    columns  column -> "zip" (three digits), "age" (90+), "birth" (year, early years in one category), or "date" (year)
    born     the last year of birth in the category of the oldest
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    born: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": dict(self.columns), "born": self.born}
