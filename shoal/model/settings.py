"""The keywords of a policy for a type checker: a typo or a wrong kind of value is seen before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.model.privacy import PrivacyModel
from shoal.model.shorthands import Others, SizeAndShare

Names = Sequence[str] | str


class OtherModels(Others, total=False):
    """Privacy models by keyword beside k and l; see ``shoal.model.shorthands``."""

    privacy: PrivacyModel | Sequence[PrivacyModel | str | Mapping[str, Any]] | str
    preset: str


class ModelSettings(OtherModels, SizeAndShare, total=False):
    """Privacy models by keyword."""


class OtherSettings(OtherModels, total=False):
    """The keywords of ``Policy`` that ``explore`` does not vary; its docstring says what they mean."""

    quasi_identifiers: Names
    sensitive: Names
    identifiers: Names
    insensitive: Names
    person: str | None
    household: str | None
    population: Any
    population_weights: str | None
    coordinates: tuple[str, str] | Sequence[str] | None
    hierarchies: Mapping[str, Any]
    weights: Mapping[str, float]
    max_level: Mapping[str, int]
    range_step: Mapping[str, float | str]
    global_recoding: bool
    coarsen: str | None
    max_suppressed: float
    minimality: float | None
    max_average_risk: float | None
    effort: str | float
    shards: int | None
    seed: int | None
    keep_order: bool
    missing: str
    star: str
    numeric_stars: str
    bound: str
    strict_roles: bool


class Settings(OtherSettings, ModelSettings, total=False):
    """Every keyword of ``Policy`` that says what is published."""

    publish: str
    method: str


class PolicySettings(Settings, total=False):
    """Every keyword of ``Policy``: those of reading a file, too."""

    engine: str | None
    memory: str | None
    threads: int | None
    temporary: str | Path | None
