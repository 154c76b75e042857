"""The keywords that a type checker knows are those that a policy takes."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

from shoal.model.policy import ModelSettings, Policy, PolicySettings, Settings
from shoal.model.shorthands import SHORTHANDS


def test_a_type_checker_knows_every_keyword_and_no_other():
    of_models = {*SHORTHANDS, "preset", "privacy"}
    assert set(get_type_hints(ModelSettings)) == of_models
    keywords = of_models | {f.name for f in fields(Policy)} - {"source"}
    assert set(get_type_hints(PolicySettings)) == keywords
    assert set(get_type_hints(Settings)) == keywords - {"engine", "memory", "threads", "temporary"}
