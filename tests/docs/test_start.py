"""The first ten minutes run as they stand: Python and commands, in the order of the page, in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import run

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


def test_it_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    commands = 0
    for kind, text in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            assert line.startswith("$ shoal "), line
            done = run(*shlex.split(line.removeprefix("$ shoal ")))
            assert done.returncode == 0, (line, done)
            commands += 1
    assert commands >= 8
    for name in ("people.release.csv", "report.html", "explore.html", "tiles.html", "regions.csv", "visits-release"):
        assert (tmp_path / name).exists(), name
