"""Privacy models by one keyword of a policy, one key of its file and one flag; light, so that flags cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shorthand:
    """One keyword.

    model  the class, a name of ``MODELS``; kinds the type of each number it takes, in the order of its parameters
    fixed  parameters that go without saying; help one line
    """

    model: str
    kinds: tuple[type, ...]
    help: str
    fixed: tuple[tuple[str, Any], ...] = ()


SHORTHANDS: dict[str, Shorthand] = {
    "k": Shorthand("KAnonymity", (int,), "At least k rows in every group."),
    "l": Shorthand("LDiversity", (int,), "At most 1/l of a group share a sensitive value."),
    "distinct_l": Shorthand("DistinctLDiversity", (int,), "At least l different sensitive values."),
    "entropy_l": Shorthand("EntropyLDiversity", (float,), "Entropy of a group at least log l."),
    "recursive_cl": Shorthand("RecursiveLDiversity", (float, int), "Recursive (c,l)-diversity, as c,l."),
    "alpha_k": Shorthand("AlphaKAnonymity", (float, int), "(alpha,k)-anonymity, as alpha,k."),
    "t": Shorthand("TCloseness", (float,), "Within t of the table's distribution (equal distance)."),
    "t_ordered": Shorthand(
        "TCloseness", (float,), "The same by the earth mover's distance over the values' order.",
        (("distance", "ordered"),),
    ),
    "t_hierarchical": Shorthand(
        "TCloseness", (float,), "The same by the hierarchy of the sensitive column; see --hierarchy.",
        (("distance", "hierarchical"),),
    ),
    "beta": Shorthand("BetaLikeness", (float,), "Enhanced beta-likeness."),
    "beta_basic": Shorthand("BetaLikeness", (float,), "Basic beta-likeness.", (("enhanced", False),)),
    "delta": Shorthand("DeltaDisclosure", (float,), "Delta-disclosure: |log(p / q)| < delta for every value."),
    "simultaneous_l": Shorthand(
        "SimultaneousLDiversity", (int,), "Every row lies in l rows that differ in every sensitive column."
    ),
    "k_map": Shorthand("KMap", (int,), "Every group fits at least k rows of the population; see --population."),
    "presence": Shorthand("DeltaPresence", (float, float), "Share of a group in the population it fits, as low,high."),
}  # fmt: skip
