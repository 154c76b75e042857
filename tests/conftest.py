"""Rules for every test: instances come from Hypothesis or a seeded generator, and no test measures time.

A busy machine draws slowly; that is no failure of what is tested, so Hypothesis may take as long as it needs.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")

# Hashes and draws of pseudo-random numbers wrap around on purpose; without compilation NumPy says so of scalars.
WRAPPING = ("tables.lattice", "tables.regrow", "gathering.dissolve", "regions.spanning", "tiles.selection")


def pytest_configure(config: pytest.Config) -> None:
    """Without compilation every other overflow is an error."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for name in WRAPPING:
            rule = f"ignore:overflow encountered in scalar:RuntimeWarning:shoal.kernels.{name}"
            config.addinivalue_line("filterwarnings", rule)
