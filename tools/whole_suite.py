"""The suite with all that an ordinary run leaves out: ``python tools/whole_suite.py``, more arguments go to pytest.

An ordinary run takes a fifth of the drawn cases, the diagonal of grids (``tests/amount.py``), and no test marked
``slow``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run it."""
    command = [sys.executable, "-m", "pytest", "-m", "", *(sys.argv[1:] or ["-n", "2", "--dist", "loadfile"])]
    here = Path(__file__).resolve().parent.parent
    return subprocess.run(command, cwd=here, env=os.environ | {"SHOAL_TEST_ALL": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
