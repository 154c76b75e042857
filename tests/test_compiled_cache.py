"""Compiled code kept on disk is that of the sources as they are now, those of other modules included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import shoal.clock
import shoal.kernels
import shoal.kernels.parts

INNER = """from shoal.kernels import INNER, njit

@njit(**INNER)
def asked():
    return {}
"""
OUTER = """from shoal.kernels import INNER, njit
from shoal.kernels.room.{} import {}

@njit({})
def whole():
    return {}()
"""


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    """Otherwise the exact program goes on asking what an older version of a model asked, and calls it optimal."""
    room = tmp_path / "shoal" / "kernels" / "room"
    room.mkdir(parents=True)
    (tmp_path / "shoal" / "__init__.py").write_text("")
    shutil.copy(shoal.kernels.__file__, room.parent / "__init__.py")
    shutil.copy(shoal.kernels.parts.__file__, room.parent / "parts.py")
    shutil.copy(shoal.clock.__file__, tmp_path / "shoal" / "clock.py")
    (room / "__init__.py").write_text("")
    (room / "between.py").write_text(OUTER.format("inner", "asked", "**INNER", "asked"))
    (room / "outer.py").write_text(OUTER.format("between", "whole as inside", "cache=True", "inside"))

    def said() -> tuple[str, bool]:
        """What the kernel returns in a fresh process, and whether it came from disk."""
        ask = "from shoal.kernels.room.outer import whole as w; print(w(), sum(w.stats.cache_hits.values()))"
        without = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}
        out = subprocess.run([sys.executable, "-c", ask], env=without, cwd=tmp_path, capture_output=True, text=True)
        assert not out.returncode, out.stderr
        value, hits = out.stdout.split()
        return value, hits == "1"

    (room / "inner.py").write_text(INNER.format(1))
    assert said() == ("1", False)
    assert said() == ("1", True)
    (room / "inner.py").write_text(INNER.format(2))
    assert said() == ("2", False)
