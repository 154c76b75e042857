"""Privacy models, a line each: the keyword of a policy, which is also the key of its file and the flag, the type of its
number, and the file and class of the model in ``shoal.model.privacy``.  Light, so that flags cost nothing.

Ways to publish, a line each: the word of a policy, the file and class of the recoding in ``shoal.model.recoding``,
and what a report says of it.  Light, so that flags cost nothing.

Rules that are known by a name: what each asks of a table, who says so, and what it asks that no table shows.

HIPAA's Safe Harbor as far as a table goes: which three-digit zips may stand, and what a release says of its columns.

45 CFR 164.514(b)(2)(i)(B), (C): the first three digits of a zip stand where more than 20,000 people live in all zips
with these digits, else 000; of dates the year alone; ages above 89, and years that tell them, in one category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypedDict, get_type_hints

Pair = tuple[float, float] | Sequence[float]


class Shorthand(NamedTuple):
    """One keyword.

    file, model  where the model lies, and its class;  help one line
    fixed  parameters that go without saying
    kinds  the type of each number it takes, in the order of its parameters
    """

    file: str
    model: str
    help: str
    fixed: tuple[tuple[str, Any], ...] = ()
    kinds: tuple[type, ...] = ()


class SizeAndShare(TypedDict, total=False):
    """The two that ``explore`` varies."""

    k: Annotated[int, Shorthand("size", "KAnonymity", "At least k rows in every group.")]
    l: Annotated[int, Shorthand("diversity", "LDiversity", "At most 1/l of a group share a sensitive value.")]


class OtherModels(TypedDict, total=False):
    """All others."""

    distinct_l: Annotated[int, Shorthand("diversity", "DistinctLDiversity", "At least l different sensitive values.")]
    entropy_l: Annotated[float, Shorthand("diversity", "EntropyLDiversity", "Entropy of a group at least log l.")]
    recursive_cl: Annotated[
        Pair, Shorthand("diversity", "RecursiveLDiversity", "Recursive (c,l)-diversity, as c,l.", (), (float, int))
    ]
    alpha_k: Annotated[Pair, Shorthand("size", "AlphaKAnonymity", "(alpha,k)-anonymity, as alpha,k.", (), (float, int))]
    t: Annotated[float, Shorthand("closeness", "TCloseness", "Within t of the table's distribution (equal distance).")]
    t_ordered: Annotated[
        float,
        Shorthand(
            "closeness", "TCloseness", "The same by the earth mover's distance over the values' order.",
            (("distance", "ordered"),),
        ),
    ]  # fmt: skip
    t_hierarchical: Annotated[
        float,
        Shorthand(
            "closeness", "TCloseness", "The same by the hierarchy of the sensitive column; see --hierarchy.",
            (("distance", "hierarchical"),),
        ),
    ]  # fmt: skip
    beta: Annotated[float, Shorthand("closeness", "BetaLikeness", "Enhanced beta-likeness.")]
    beta_basic: Annotated[float, Shorthand("closeness", "BetaLikeness", "Basic beta-likeness.", (("enhanced", False),))]
    delta: Annotated[
        float,
        Shorthand("closeness", "DeltaDisclosure", "Delta-disclosure: |log(p / q)| < delta for every value."),
    ]
    simultaneous_l: Annotated[
        int,
        Shorthand(
            "diversity", "SimultaneousLDiversity",
            "Every row lies in l rows that differ in every sensitive column.",
        ),
    ]  # fmt: skip
    k_map: Annotated[
        int, Shorthand("population", "KMap", "Every group fits at least k rows of the population; see --population.")
    ]
    presence: Annotated[
        Pair,
        Shorthand(
            "population", "DeltaPresence", "Share of a group in the population it fits, as low,high.", (),
            (float, float),
        ),
    ]  # fmt: skip


def _shorthand(hint: Any) -> Shorthand:
    (short,) = hint.__metadata__
    return short if short.kinds else short._replace(kinds=(hint.__origin__,))  # type: ignore[no-any-return]


SHORTHANDS: dict[str, Shorthand] = {
    name: _shorthand(hint)
    for group in (SizeAndShare, OtherModels)
    for name, hint in get_type_hints(group, include_extras=True).items()
}


class RecodingEntry(NamedTuple):
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


RECODINGS: dict[str, RecodingEntry] = {
    "stars": RecodingEntry("levels", "Levels", "values hidden as stars"),
    "hierarchy": RecodingEntry("levels", "Levels", "classes of a hierarchy"),
    "ranges": RecodingEntry("ranges", "Ranges", "ranges"),
    "centers": RecodingEntry("", "", "one real record of each group, for all of its rows"),
}


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
