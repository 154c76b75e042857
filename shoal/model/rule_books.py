"""Rules that are known by a name: what each asks of a table, who says so, and what it asks that no table shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuleBook:
    """One rule.

    k       rows in every group; source who says so; why how k follows; leaves what the rule asks beyond it
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
        "a risk of at most 0.09: 1/12 is the first share below it, for the highest risk, hence for the mean as well",
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
