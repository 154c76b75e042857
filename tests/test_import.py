"""The front door is light, and what is listed can be reached."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_import_shoal_loads_none_of_the_heavy_libraries():
    code = "import sys, shoal; print([m for m in ('numba', 'polars', 'scipy', 'pandas', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    import shoal

    with pytest.raises(AttributeError, match="nonsense"):
        _ = shoal.nonsense
