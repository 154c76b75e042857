"""Compiling is said once, and loading what was compiled before is not."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from tests.commands import python


def test_a_kernel_that_is_compiled_is_named_and_one_that_is_loaded_is_not(tmp_path):
    code = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(name)s %(message)s')\n"
        "import shoal.kernels\n"
        "import one\n"
        "one.double(3)\n"
    )
    (tmp_path / "one.py").write_text(
        "from shoal.kernels import njit\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n", encoding="utf-8"
    )
    said = [python("-c", code, cwd=tmp_path).said for _ in range(2)]
    assert said == ["shoal.compiling compiling double, once per machine\n", ""]


def test_a_kernel_without_counts_of_references_can_neither_make_nor_keep_an_array():
    from shoal.kernels import LEAN, njit

    plain = {name: value for name, value in LEAN.items() if name != "cache"}
    made, cut, summed = (njit(**plain)(f) for f in (lambda a: np.zeros(a.size), lambda a: a[1:], lambda a: a[1:][0]))
    for kernel in (made, cut):
        with pytest.raises(TypingError):
            kernel(np.arange(3.0))
    assert summed(np.arange(3.0)) == 1.0
