"""What the wheel carries: every file of the package, templates of the pages among them."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


def test_a_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    builders = pytest.importorskip("hatchling.builders.wheel")
    (made,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    carried = set(ZipFile(made).namelist())
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "shoal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "shoal/report/templates/base.html" in files
    assert files <= carried
