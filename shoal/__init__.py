"""shoal publishes tables about people so that each person is one of many, and proves what it cost.

``shoal.anonymize`` is the main call; ``shoal.labels``, ``shoal.intervals``, ``shoal.regions``,
``shoal.tiles``, ``shoal.gathering`` and ``shoal.tables`` are the problems by themselves.
Names are looked up when first used, so that ``import shoal`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    # problems, each a module with its own small interface
    "tables": "shoal.problems.tables",
    "labels": "shoal.problems.labels",
    "intervals": "shoal.problems.intervals",
    "regions": "shoal.problems.regions",
    "tiles": "shoal.problems.tiles",
    "gathering": "shoal.problems.gathering",
    "hardness": "shoal.hardness",
    # the main job
    "anonymize": "shoal.pipeline:anonymize",
    "audit": "shoal.pipeline:audit",
    "verify": "shoal.checking:verify",
    "Policy": "shoal.model.policy:Policy",
    "Hierarchy": "shoal.model.hierarchy:Hierarchy",
    "Release": "shoal.release:Release",
    "Audit": "shoal.model.audit:Audit",
    # privacy models
    "KAnonymity": "shoal.model.privacy:KAnonymity",
    "LDiversity": "shoal.model.privacy:LDiversity",
    "DistinctLDiversity": "shoal.model.privacy:DistinctLDiversity",
    "EntropyLDiversity": "shoal.model.privacy:EntropyLDiversity",
    "RecursiveLDiversity": "shoal.model.privacy:RecursiveLDiversity",
    "AlphaKAnonymity": "shoal.model.privacy:AlphaKAnonymity",
    "TCloseness": "shoal.model.privacy:TCloseness",
    "BetaLikeness": "shoal.model.privacy:BetaLikeness",
    "DeltaDisclosure": "shoal.model.privacy:DeltaDisclosure",
    "SimultaneousLDiversity": "shoal.model.privacy:SimultaneousLDiversity",
    # values
    "Certificate": "shoal.model.certificate:Certificate",
    "Guarantee": "shoal.model.certificate:Guarantee",
    # refusals
    "ShoalError": "shoal.errors:ShoalError",
    "InputError": "shoal.errors:InputError",
    "PolicyError": "shoal.errors:PolicyError",
    "InfeasibleError": "shoal.errors:InfeasibleError",
    "VerificationError": "shoal.errors:VerificationError",
    "CertificateError": "shoal.errors:CertificateError",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    module, _, attribute = where.partition(":")
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_WHERE))
