"""Compiling is said once, and loading what was compiled before is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_kernel_that_is_compiled_is_named_and_one_that_is_loaded_is_not(tmp_path):
    code = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(name)s %(message)s')\n"
        "import shoal.kernels\n"
        "from numba import njit\n"
        "import one\n"
        "one.double(3)\n"
    )
    (tmp_path / "one.py").write_text(
        "from numba import njit\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n", encoding="utf-8"
    )
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    ]
    assert said == ["shoal.compiling compiling double, once per machine\n", ""]
