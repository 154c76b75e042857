"""Privacy models: small values with a name, a statement on monotonicity and a source.

All are statements about one group of rows published alike.  A model is monotone when the union of two
groups that meet it meets it too; merging groups and publishing less can then never hurt.  Algorithms
see a model only as a ``Requirement``; ``shoal.judge`` knows the models themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

from shoal.errors import PolicyError


def _at_least(model: Any, name: str, low: float, *, whole: bool = False) -> None:
    value = getattr(model, name)
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)  # numpy's whole numbers too
        object.__setattr__(model, name, value)
    wrong_kind = isinstance(value, bool) or not isinstance(value, int if whole else (int, float))
    if wrong_kind or not value >= low or value == math.inf:
        kind = "a whole number" if whole else "a number"
        raise PolicyError(f"{type(model).__name__}({name}={value!r}): {name} is {kind}, at least {low}")


@dataclass(frozen=True)
class KAnonymity:
    """Every group has at least k rows."""

    k: int
    name: ClassVar[str] = "k-anonymity"
    short: ClassVar[str] = "k"
    monotone: ClassVar[str] = "monotone: sizes add up"
    source: ClassVar[str] = "Samarati, Sweeney 1998; Sweeney 2002"

    def __post_init__(self) -> None:
        _at_least(self, "k", 1, whole=True)


@dataclass(frozen=True)
class LDiversity:
    """At most 1/l of a group's rows share a sensitive value (frequency form)."""

    l: int
    column: str | None = None
    name: ClassVar[str] = "l-diversity"
    short: ClassVar[str] = "l"
    monotone: ClassVar[str] = "monotone: Xiao, Yi, Tao 2010, Lemma 1"
    source: ClassVar[str] = "Xiao, Yi, Tao 2010, Definition 2"

    def __post_init__(self) -> None:
        _at_least(self, "l", 1, whole=True)


@dataclass(frozen=True)
class DistinctLDiversity:
    """Every group has at least l different sensitive values."""

    l: int
    column: str | None = None
    name: ClassVar[str] = "distinct l-diversity"
    short: ClassVar[str] = "distinct_l"
    monotone: ClassVar[str] = "monotone: a union has every value of its parts"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"

    def __post_init__(self) -> None:
        _at_least(self, "l", 1, whole=True)


@dataclass(frozen=True)
class EntropyLDiversity:
    """The entropy of every group's sensitive values is at least log l."""

    l: float
    column: str | None = None
    name: ClassVar[str] = "entropy l-diversity"
    short: ClassVar[str] = "entropy_l"
    monotone: ClassVar[str] = "monotone: entropy is concave"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"

    def __post_init__(self) -> None:
        _at_least(self, "l", 1)


@dataclass(frozen=True)
class RecursiveLDiversity:
    """r1 < c (r_l + ... + r_m), r the falling counts of a group's sensitive values."""

    c: float
    l: int
    column: str | None = None
    name: ClassVar[str] = "recursive (c,l)-diversity"
    short: ClassVar[str] = "recursive_c"
    monotone: ClassVar[str] = "monotone: Machanavajjhala et al. 2007"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"

    def __post_init__(self) -> None:
        _at_least(self, "l", 1, whole=True)
        if isinstance(self.c, bool) or not isinstance(self.c, (int, float)) or not 0 < self.c < math.inf:
            raise PolicyError(f"RecursiveLDiversity(c={self.c!r}): c is a number above 0")


@dataclass(frozen=True)
class AlphaKAnonymity:
    """At least k rows, and no sensitive value on more than the share alpha of a group."""

    alpha: float
    k: int
    column: str | None = None
    name: ClassVar[str] = "(alpha,k)-anonymity"
    short: ClassVar[str] = "alpha"
    monotone: ClassVar[str] = "monotone: shares of a union are averages"
    source: ClassVar[str] = "Wong, Li, Fu, Wang 2006"

    def __post_init__(self) -> None:
        _at_least(self, "k", 1, whole=True)
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not 0 < self.alpha <= 1:
            raise PolicyError(f"AlphaKAnonymity(alpha={self.alpha!r}): alpha is a share, above 0 and at most 1")


@dataclass(frozen=True)
class TCloseness:
    """The distance between a group's distribution of a sensitive column and the table's is at most t.

    distance  "equal" (half the sum of differences) or "ordered" (earth mover's on ranks, over m - 1)
    """

    t: float
    distance: str = "equal"
    column: str | None = None
    name: ClassVar[str] = "t-closeness"
    short: ClassVar[str] = "t"
    monotone: ClassVar[str] = "monotone: the distance is convex (Li, Li, Venkatasubramanian 2007)"
    source: ClassVar[str] = "Li, Li, Venkatasubramanian 2007"

    def __post_init__(self) -> None:
        if isinstance(self.t, bool) or not isinstance(self.t, (int, float)) or not 0 <= self.t <= 1:
            raise PolicyError(f"TCloseness(t={self.t!r}): t is a distance, from 0 to 1")
        if self.distance not in ("equal", "ordered"):
            raise PolicyError.unknown("distance of TCloseness", self.distance, ["equal", "ordered"])


@dataclass(frozen=True)
class SimultaneousLDiversity:
    """Every group has l rows that differ pairwise in every sensitive column at once.

    The strict reading of Blocki and Williams' Definition 1.  Their Theorem 1.6 uses the weaker one, in which each
    column by itself has l different values; that is ``DistinctLDiversity`` on each column.
    """

    l: int
    name: ClassVar[str] = "simultaneous l-diversity"
    short: ClassVar[str] = "simultaneous_l"
    monotone: ClassVar[str] = "monotone: a union has the rows of its parts"
    source: ClassVar[str] = "Blocki, Williams 2010, Definition 1"

    def __post_init__(self) -> None:
        _at_least(self, "l", 1, whole=True)


PrivacyModel = (
    KAnonymity
    | LDiversity
    | DistinctLDiversity
    | EntropyLDiversity
    | RecursiveLDiversity
    | AlphaKAnonymity
    | TCloseness
    | SimultaneousLDiversity
)
MODELS: dict[str, type] = {
    c.__name__: c
    for c in (
        KAnonymity,
        LDiversity,
        DistinctLDiversity,
        EntropyLDiversity,
        RecursiveLDiversity,
        AlphaKAnonymity,
        TCloseness,
        SimultaneousLDiversity,
    )
}


def describe(model: PrivacyModel) -> dict[str, Any]:
    """A model as plain values, ready for JSON; ``restore`` is the way back."""
    values = {f.name: getattr(model, f.name) for f in fields(model)}
    return {"model": type(model).__name__, **{k: v for k, v in values.items() if v is not None}}


def restore(data: dict[str, Any]) -> PrivacyModel:
    """A model from ``describe`` or from a policy file; PolicyError for an unknown name or parameter."""
    values = dict(data)
    name = values.pop("model", None)
    if name not in MODELS:
        raise PolicyError.unknown("privacy model", str(name), MODELS)
    known = [f.name for f in fields(MODELS[name])]
    for key in values:
        if key not in known:
            raise PolicyError.unknown(f"parameter of {name}", key, known)
    try:
        return MODELS[name](**values)
    except TypeError as error:
        raise PolicyError(f"{name} needs {', '.join(known)}; given {', '.join(values) or 'none'}") from error


@dataclass(frozen=True)
class Requirement:
    """What the algorithms enforce on every group.

    k          at least this many rows
    frequency  per sensitive column: at most 1/l of the rows share a value; 1 asks nothing
    distinct   per sensitive column: at least this many different values; 1 asks nothing
    """

    k: int = 1
    frequency: tuple[int, ...] = ()
    distinct: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.frequency) != len(self.distinct):
            raise PolicyError("a requirement has one frequency and one distinct entry per sensitive column")

    @property
    def sensitive_columns(self) -> tuple[int, ...]:
        """Positions of the sensitive columns of which anything is asked."""
        return tuple(j for j, (f, u) in enumerate(zip(self.frequency, self.distinct, strict=True)) if f > 1 or u > 1)

    @property
    def smallest(self) -> int:
        """No group can have fewer rows than this."""
        return max((self.k, *self.frequency, *self.distinct))


def requirement(models: Sequence[PrivacyModel], sensitive: Sequence[str]) -> Requirement:
    """The conjunction of models as a Requirement.

    Entropy l, recursive (c,l) and (alpha,k) are enforced through a frequency form that implies them:
    shares of at most 1/L have entropy at least log L; r1 <= n/L gives (c,l) when L > l - 1 + 1/c; and alpha >= 1/L.
    t-closeness and simultaneous l-diversity of several columns can be audited, not enforced: PolicyError.
    """
    k = 1
    frequency, distinct = [1] * len(sensitive), [1] * len(sensitive)

    def places(column: str | None, model: PrivacyModel) -> list[int]:
        if not sensitive:
            raise PolicyError(f"{model.name} speaks of a sensitive column and none is given; set sensitive=[...]")
        if column is None:
            return list(range(len(sensitive)))
        if column not in sensitive:
            raise PolicyError.unknown("sensitive column", column, sensitive)
        return [list(sensitive).index(column)]

    for model in models:
        if isinstance(model, KAnonymity):
            k = max(k, model.k)
            continue
        if isinstance(model, SimultaneousLDiversity):
            if len(sensitive) > 1:
                raise PolicyError(
                    f"{model.name} over {len(sensitive)} sensitive columns can be audited but not enforced; "
                    "ask for LDiversity or DistinctLDiversity instead"
                )
            for j in places(None, model):
                distinct[j] = max(distinct[j], model.l)
            continue
        if isinstance(model, TCloseness):
            raise PolicyError("t-closeness can be audited but not enforced; ask for LDiversity and audit the release")
        for j in places(model.column, model):
            if isinstance(model, LDiversity):
                frequency[j] = max(frequency[j], model.l)
            elif isinstance(model, DistinctLDiversity):
                distinct[j] = max(distinct[j], model.l)
            elif isinstance(model, EntropyLDiversity):
                frequency[j] = max(frequency[j], math.ceil(model.l))
            elif isinstance(model, RecursiveLDiversity):
                frequency[j] = max(frequency[j], math.floor(model.l - 1 + 1 / model.c) + 1)
            elif isinstance(model, AlphaKAnonymity):
                k = max(k, model.k)
                frequency[j] = max(frequency[j], math.ceil(1 / model.alpha - 1e-12))
    return Requirement(k=k, frequency=tuple(frequency), distinct=tuple(distinct))
