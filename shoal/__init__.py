"""shoal publishes tables about people so that each person is one of many, and proves what it cost.

``shoal.anonymize`` is the main call; ``shoal.labels``, ``shoal.intervals``, ``shoal.regions``,
``shoal.tiles``, ``shoal.gathering`` and ``shoal.tables`` are the problems by themselves.
Names are looked up when first used, so that ``import shoal`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.model.shorthands import SHORTHANDS
from shoal.version import __version__

if TYPE_CHECKING:  # what a type checker and an editor see; ``_WHERE`` finds the same names when they are used
    from shoal import hardness as hardness
    from shoal.errors import CertificateError as CertificateError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import InputError as InputError
    from shoal.errors import PolicyError as PolicyError
    from shoal.errors import ShoalError as ShoalError
    from shoal.errors import VerificationError as VerificationError
    from shoal.model.audit import Audit as Audit
    from shoal.model.certificate import Certificate as Certificate
    from shoal.model.certificate import Guarantee as Guarantee
    from shoal.model.hierarchy import Hierarchy as Hierarchy
    from shoal.model.policy import Policy as Policy
    from shoal.model.privacy.beta_likeness import BetaLikeness as BetaLikeness
    from shoal.model.privacy.delta_disclosure import DeltaDisclosure as DeltaDisclosure
    from shoal.model.privacy.distinct import DistinctLDiversity as DistinctLDiversity
    from shoal.model.privacy.entropy import EntropyLDiversity as EntropyLDiversity
    from shoal.model.privacy.frequency import LDiversity as LDiversity
    from shoal.model.privacy.population import DeltaPresence as DeltaPresence
    from shoal.model.privacy.population import KMap as KMap
    from shoal.model.privacy.recursive import RecursiveLDiversity as RecursiveLDiversity
    from shoal.model.privacy.share import AlphaKAnonymity as AlphaKAnonymity
    from shoal.model.privacy.simultaneous import SimultaneousLDiversity as SimultaneousLDiversity
    from shoal.model.privacy.size import KAnonymity as KAnonymity
    from shoal.model.privacy.t_closeness import TCloseness as TCloseness
    from shoal.pipeline import anonymize as anonymize
    from shoal.problems import gathering as gathering
    from shoal.problems import intervals as intervals
    from shoal.problems import labels as labels
    from shoal.problems import regions as regions
    from shoal.problems import tables as tables
    from shoal.problems import tiles as tiles
    from shoal.publishing.crosswalks.answers import release as release
    from shoal.publishing.crosswalks.assigned import assign as assign
    from shoal.publishing.crosswalks.crosswalk import Crosswalk as Crosswalk
    from shoal.publishing.tables.audited import audit as audit
    from shoal.publishing.tables.later import written as written
    from shoal.publishing.tables.release import Release as Release
    from shoal.publishing.verifying.verify import verify as verify
    from shoal.utility.compare import compare as compare
    from shoal.utility.decode import decode as decode
    from shoal.utility.explore import explore as explore
    from shoal.utility.proving import prove as prove
    from shoal.utility.recoder import Recoder as Recoder

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
    "audit": "shoal.publishing.tables.audited:audit",
    "verify": "shoal.publishing.verifying.verify:verify",
    "written": "shoal.publishing.tables.later:written",
    "compare": "shoal.utility.compare:compare",
    "decode": "shoal.utility.decode:decode",
    "release": "shoal.publishing.crosswalks.answers:release",
    "assign": "shoal.publishing.crosswalks.assigned:assign",
    "Crosswalk": "shoal.publishing.crosswalks.crosswalk:Crosswalk",
    "explore": "shoal.utility.explore:explore",
    "prove": "shoal.utility.proving:prove",
    "Recoder": "shoal.utility.recoder:Recoder",
    "Policy": "shoal.model.policy:Policy",
    "Hierarchy": "shoal.model.hierarchy:Hierarchy",
    "Release": "shoal.publishing.tables.release:Release",
    "Audit": "shoal.model.audit:Audit",
    # privacy models
    **{short.model: f"shoal.model.privacy.{short.file}:{short.model}" for short in SHORTHANDS.values()},
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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

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
