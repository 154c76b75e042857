"""What a release's words warn of."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.model.policy import Policy
from shoal.report.words import attacks, promise


def warned(**asked: Any) -> bool:
    policy = Policy.of(quasi_identifiers=["age"], **asked).describe()
    return any(text.startswith("Homogeneity") for text in attacks(policy))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"k": 2}, True),
        ({"k": 2, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 1, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 2, "sensitive": ["hiv"]}, False),
        ({"alpha_k": (0.5, 2), "sensitive": ["hiv"]}, False),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d", "hiv"]}, True),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d"]}, False),
    ],
)
def test_a_sensitive_column_without_a_model_does_not_silence_the_warning(asked: dict[str, Any], expected: bool) -> None:
    assert warned(**asked) == expected


def test_a_group_that_agrees_is_said_to() -> None:
    audit = {"smallest_class": 5, "sensitive": {"hiv": {"alpha": 1.0}, "d": {"alpha": 0.4}}}
    text = promise({"rows": 10}, audit)
    assert "100" not in text
    assert "agrees on hiv" in text
    assert "no value of d is held by more than 40.0 %" in text
