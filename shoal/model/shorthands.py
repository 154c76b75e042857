"""Privacy models, a line each: the keyword of a policy, which is also the key of its file and the flag, the type of its
number, and the file and class of the model in ``shoal.model.privacy``.  Light, so that flags cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
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
    l: Annotated[int, Shorthand("frequency", "LDiversity", "At most 1/l of a group share a sensitive value.")]


class Others(TypedDict, total=False):
    """All others."""

    distinct_l: Annotated[int, Shorthand("distinct", "DistinctLDiversity", "At least l different sensitive values.")]
    entropy_l: Annotated[float, Shorthand("entropy", "EntropyLDiversity", "Entropy of a group at least log l.")]
    recursive_cl: Annotated[
        Pair, Shorthand("recursive", "RecursiveLDiversity", "Recursive (c,l)-diversity, as c,l.", (), (float, int))
    ]
    alpha_k: Annotated[
        Pair, Shorthand("share", "AlphaKAnonymity", "(alpha,k)-anonymity, as alpha,k.", (), (float, int))
    ]
    t: Annotated[
        float, Shorthand("t_closeness", "TCloseness", "Within t of the table's distribution (equal distance).")
    ]
    t_ordered: Annotated[
        float,
        Shorthand(
            "t_closeness", "TCloseness", "The same by the earth mover's distance over the values' order.",
            (("distance", "ordered"),),
        ),
    ]  # fmt: skip
    t_hierarchical: Annotated[
        float,
        Shorthand(
            "t_closeness", "TCloseness", "The same by the hierarchy of the sensitive column; see --hierarchy.",
            (("distance", "hierarchical"),),
        ),
    ]  # fmt: skip
    beta: Annotated[float, Shorthand("beta_likeness", "BetaLikeness", "Enhanced beta-likeness.")]
    beta_basic: Annotated[
        float, Shorthand("beta_likeness", "BetaLikeness", "Basic beta-likeness.", (("enhanced", False),))
    ]
    delta: Annotated[
        float,
        Shorthand("delta_disclosure", "DeltaDisclosure", "Delta-disclosure: |log(p / q)| < delta for every value."),
    ]
    simultaneous_l: Annotated[
        int,
        Shorthand(
            "simultaneous", "SimultaneousLDiversity",
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
    for group in (SizeAndShare, Others)
    for name, hint in get_type_hints(group, include_extras=True).items()
}
