"""Privacy models: small values with a name, a statement on monotonicity and a source.

``MODELS`` has every model to which ``shoal.model.settings`` gives a keyword: a file here and a line there, and
policies, flags, audits and certificates know it.  Algorithms see models only as a ``Requirement``; the judge reads each
in a module of the same name in ``shoal.judge.models``, and shares no code with those here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from shoal.errors import PolicyError
from shoal.model.privacy.base import Model, describe
from shoal.model.privacy.closeness import BetaLikeness, DeltaDisclosure, TCloseness, TreeCloseness
from shoal.model.privacy.diversity import (
    DistinctLDiversity,
    EntropyLDiversity,
    LDiversity,
    RecursiveLDiversity,
    SimultaneousLDiversity,
)
from shoal.model.privacy.population import Charge, DeltaPresence, KMap, OfPersons
from shoal.model.privacy.requirement import Requirement, Rule, requirement
from shoal.model.privacy.size import AlphaKAnonymity, KAnonymity
from shoal.model.settings import SHORTHANDS

__all__ = [
    "MODELS",
    "AlphaKAnonymity",
    "BetaLikeness",
    "Charge",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "Model",
    "OfPersons",
    "PrivacyModel",
    "RecursiveLDiversity",
    "Requirement",
    "Rule",
    "SimultaneousLDiversity",
    "TCloseness",
    "TreeCloseness",
    "describe",
    "requirement",
    "restore",
]

PrivacyModel = Model


class _Models(Mapping[str, type[Model]]):
    """Name -> class, imported when asked for from the file that the model's keyword names."""

    def __getitem__(self, name: str) -> type[Model]:
        for short in SHORTHANDS.values():
            if short.model == name:
                return getattr(import_module(f"{__name__}.{short.file}"), name)  # type: ignore[no-any-return]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(short.model for short in SHORTHANDS.values()))

    def __len__(self) -> int:
        return len(list(iter(self)))


MODELS = _Models()


def restore(data: dict[str, Any]) -> Model:
    """A model from ``describe`` or from a policy file; PolicyError for an unknown name or parameter."""
    values = dict(data)
    name = values.pop("model", None)
    if not isinstance(name, str) or name not in MODELS:
        raise PolicyError.unknown("privacy model", str(name), MODELS)
    known = [f.name for f in fields(MODELS[name])]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise PolicyError.unknown(f"parameter of {name}", key, known)
    try:
        return MODELS[name](**values)
    except TypeError as error:
        raise PolicyError(f"{name} needs {', '.join(known)}; given {', '.join(values) or 'none'}") from error
