"""Privacy models: small values with a name, a statement on monotonicity and a source, one file each.

``MODELS`` is the registry: policies, flags, audits, certificates and the judge know a model by being listed here.
Algorithms see models only as a ``Requirement``; ``shoal.judge`` knows the models by name and shares no code with them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from shoal.errors import PolicyError
from shoal.model.privacy.base import Model, describe
from shoal.model.privacy.beta_likeness import BetaLikeness
from shoal.model.privacy.delta_disclosure import DeltaDisclosure
from shoal.model.privacy.distinct import DistinctLDiversity
from shoal.model.privacy.entropy import EntropyLDiversity
from shoal.model.privacy.frequency import LDiversity
from shoal.model.privacy.recursive import RecursiveLDiversity
from shoal.model.privacy.requirement import Requirement, Rule, requirement
from shoal.model.privacy.share import AlphaKAnonymity
from shoal.model.privacy.simultaneous import SimultaneousLDiversity
from shoal.model.privacy.size import KAnonymity
from shoal.model.privacy.t_closeness import TCloseness

__all__ = [
    "MODELS",
    "SHORTHANDS",
    "AlphaKAnonymity",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "LDiversity",
    "Model",
    "PrivacyModel",
    "RecursiveLDiversity",
    "Requirement",
    "Rule",
    "Shorthand",
    "SimultaneousLDiversity",
    "TCloseness",
    "describe",
    "requirement",
    "restore",
]

PrivacyModel = Model
MODELS: dict[str, type[Model]] = {
    c.__name__: c
    for c in (
        KAnonymity,
        LDiversity,
        DistinctLDiversity,
        EntropyLDiversity,
        RecursiveLDiversity,
        AlphaKAnonymity,
        TCloseness,
        BetaLikeness,
        DeltaDisclosure,
        SimultaneousLDiversity,
    )
}


@dataclass(frozen=True)
class Shorthand:
    """A model by one keyword of a policy, one key of its file and one flag.

    kinds  the type of each number the flag takes, separated by commas; fixed: parameters that go without saying
    """

    model: type[Model]
    kinds: tuple[type, ...]
    help: str
    fixed: tuple[tuple[str, Any], ...] = ()

    def make(self, name: str, value: Any) -> Model:
        """The model a shorthand stands for; PolicyError for the wrong number of values."""
        if len(self.kinds) == 1:
            return self.model(value, **dict(self.fixed))  # type: ignore[call-arg]
        if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != len(self.kinds):
            raise PolicyError(f"{name}={value!r}: give {('one', 'two', 'three')[len(self.kinds) - 1]} numbers")
        return self.model(*value, **dict(self.fixed))


SHORTHANDS: dict[str, Shorthand] = {
    "k": Shorthand(KAnonymity, (int,), "At least k rows in every group."),
    "l": Shorthand(LDiversity, (int,), "At most 1/l of a group share a sensitive value."),
    "distinct_l": Shorthand(DistinctLDiversity, (int,), "At least l different sensitive values."),
    "entropy_l": Shorthand(EntropyLDiversity, (float,), "Entropy of a group at least log l."),
    "recursive_cl": Shorthand(RecursiveLDiversity, (float, int), "Recursive (c,l)-diversity, as c,l."),
    "alpha_k": Shorthand(AlphaKAnonymity, (float, int), "(alpha,k)-anonymity, as alpha,k."),
    "t": Shorthand(TCloseness, (float,), "Within t of the table's distribution (equal distance)."),
    "t_ordered": Shorthand(
        TCloseness, (float,), "Within t by the earth mover's distance over the values' order.", (("distance", "ordered"),)
    ),
    "beta": Shorthand(BetaLikeness, (float,), "Enhanced beta-likeness."),
    "beta_basic": Shorthand(BetaLikeness, (float,), "Basic beta-likeness.", (("enhanced", False),)),
    "delta": Shorthand(DeltaDisclosure, (float,), "Delta-disclosure: |log(p / q)| < delta for every value."),
    "simultaneous_l": Shorthand(
        SimultaneousLDiversity, (int,), "Every row lies in l rows that differ in every sensitive column."
    ),
}


def restore(data: dict[str, Any]) -> Model:
    """A model from ``describe`` or from a policy file; PolicyError for an unknown name or parameter."""
    values = dict(data)
    name = values.pop("model", None)
    if name not in MODELS:
        raise PolicyError.unknown("privacy model", str(name), MODELS)
    known = [f.name for f in fields(MODELS[name])]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise PolicyError.unknown(f"parameter of {name}", key, known)
    try:
        return MODELS[name](**values)
    except TypeError as error:
        raise PolicyError(f"{name} needs {', '.join(known)}; given {', '.join(values) or 'none'}") from error
