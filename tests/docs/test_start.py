"""The first ten minutes and every tutorial run from top to bottom, Python and commands, in an empty folder.

A command whose line ends in ``# exit 3`` must leave with that status, every other with 0. A block of TOML that begins
with the name of a file, as ``# people.policy.toml``, is that file.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import run
from tests.docs.test_examples import TUTORIALS

LEFT = {
    "start.md": ["people.release.csv", "report.html", "explore.html", "tiles.html", "regions.csv", "visits-release"],
}
NEEDS = {"start.md": ["duckdb"], "pipeline.md": ["duckdb"], "survey.md": ["pandas", "statsmodels", "sklearn"]}


def commands(text: str) -> list[tuple[list[str], int]]:
    """(words, status) of every command of a block, whose lines may go on behind a backslash."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        assert line.startswith("$ shoal "), line
        status = re.search(r"# exit (\d)$", line)
        found.append((shlex.split(line.removeprefix("$ shoal "), comments=True), int(status[1]) if status else 0))
    return found


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.name)
def test_it_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(page.name, []):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": f"tutorial_{page.stem}"}
    ran = 0
    for kind, text in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, str(page), "exec"), names)
        elif kind == "toml" and (file := re.match(r"# (\S+\.toml)\n", text)):
            Path(file[1]).write_text(text, encoding="utf-8")
        elif not kind:
            for words, status in commands(text):
                done = run(*words)
                assert done.returncode == status, (words, done)
                ran += 1
    assert ran or "```python" in page.read_text(encoding="utf-8")
    for name in LEFT.get(page.name, []):
        assert (tmp_path / name).exists(), name
