"""The tool that opens the pages says what it needs and installs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    words = [
        sys.executable,
        str(ROOT / "tools" / "pages.py"),
        "--modules",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
    ]
    env = {"PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2
    for needed in (
        "apt-get install chromium",
        "Node",
        "npm install playwright-core",
        "npm install axe-core",
        "Nothing was",
    ):
        assert needed in done.stderr
    assert list(tmp_path.iterdir()) == []
