"""What made something, and when: alike in every certificate and report."""

from __future__ import annotations

import datetime
import platform
from typing import Any

import polars as pl

from shoal.version import __version__


def made_now() -> dict[str, Any]:
    """{"made_by": versions, "made_at": the moment in UTC, to the second}."""
    return {
        "made_by": {"shoal": __version__, "python": platform.python_version(), "polars": pl.__version__},
        "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
