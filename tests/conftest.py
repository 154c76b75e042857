"""Rules for every test: instances come from Hypothesis or a seeded generator, and no test measures time.

A busy machine draws slowly; that is no failure of what is tested, so Hypothesis may take as long as it needs.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")
