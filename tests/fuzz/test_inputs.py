"""A bent policy, hierarchy or map is refused in words or read; its words hold no value of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import inputs


@pytest.mark.parametrize("kind", ["policy", "hierarchy", "geojson"])
def test_only_clear_refusals_come_back(tmp_path: Path, kind: str) -> None:
    came = [getattr(inputs, kind)(seed, tmp_path) for seed in range(60)]
    assert {"read", "refused"} == set(came)


def test_the_marker_would_be_seen() -> None:
    def tells() -> None:
        raise inputs.ShoalError(f"the value {inputs.MARKER}7 is odd")

    with pytest.raises(AssertionError):
        inputs.outcome(tells)
