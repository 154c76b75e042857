"""What stands in several files for whoever installs, cites or builds shoal is the same in all of them.

What the wheel carries: every file of the package, templates of the pages among them.

The versions that ``.ci/oldest`` tries are the least that pyproject.toml allows.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tools import release

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]


def name_of(requirement: str) -> tuple[str, str]:
    """(package, versions) without blanks."""
    found = re.match(r"([A-Za-z0-9_.-]+)\s*(.*)", requirement)
    assert found, requirement
    return found[1].lower(), found[2].replace(" ", "")


def test_the_version_is_the_same_everywhere() -> None:
    assert len(set(release.versions().values())) == 1, release.versions()
    assert "none" not in release.versions().values()


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = text.split("  run:\n")[1].split("\n\n")[0]
    recipe = dict(name_of(line) for line in re.findall(r"- (.+)", run))
    assert recipe.pop("python") == PROJECT["requires-python"]
    assert recipe == dict(map(name_of, PROJECT["dependencies"]))
    assert f"    - shoal = {PROJECT['scripts']['shoal']}\n" in text


def test_every_python_that_is_allowed_is_named_and_tried() -> None:
    assert PROJECT["requires-python"] == ">=3.11", "an upper limit only where something is known to break"
    named = [c.removeprefix("Programming Language :: Python :: ") for c in PROJECT["classifiers"]]
    assert [n for n in named if re.fullmatch(r"3\.\d+", n)] == PYTHONS
    flow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert f"python: [{', '.join(map(repr, PYTHONS))}]".replace("'", '"') in flow
    assert "windows-latest" in flow
    assert "macos-latest" in flow
    for tool in ("build", "twine", "check-wheel-contents", "cffconvert"):
        assert tool in flow
        assert any(name_of(r)[0] == tool for r in PROJECT["optional-dependencies"]["release"])


def test_the_checklist_knows_what_is_left_to_do_by_hand() -> None:
    dated = re.search(r"^## 0\.1\.0 \(\d{4}-", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert ("the changelog has no date for this version" in release.final()) == (dated is None)


def test_what_a_source_archive_needs_is_in_it() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = whole["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in ("CITATION.cff", "SECURITY.md", "CONTRIBUTING.md", "mkdocs.yml", "tools", "tests", "docs", "conda"):
        assert name in carried
        assert (ROOT / name).exists()


def test_the_smoke_run_fails_where_a_command_does(tmp_path: Path) -> None:
    """Without the package there is nothing to run, and the run says so."""
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(ROOT / "tools" / "smoke.py")], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "passed" not in done.stdout


@pytest.mark.parametrize("name", ["defect.yml", "request.yml", "config.yml"])
def test_templates_are_there(name: str) -> None:
    assert (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8").strip()
    assert (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").exists()


def test_the_changelog_of_a_first_version_is_a_page() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## 0.1.0")[1].split("\n## ")[0]
    assert len(text.splitlines()) <= 30


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


# extras that no test of the run of least versions needs
ELSEWHERE = {"spark", "ibis", "delta", "iceberg", "workbench", "learn", "docs", "dev", "release"}


def test_each_least_version_is_the_one_tried() -> None:
    tried = dict(re.findall(r"^([a-z0-9]+)==(\S+)$", (ROOT / ".ci" / "oldest.txt").read_text("utf-8"), re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = [
        *project["dependencies"],
        *(line for name in extras if name not in ELSEWHERE | {"test"} for line in extras[name]),
    ]
    least = dict(re.match(r"([a-z0-9]+)>=([\d.]+)", line).groups() for line in own)  # type: ignore[union-attr]
    least |= {"pandas": "2.1"}  # of the tests
    assert set(tried) == set(least)
    assert [n for n, v in least.items() if f"{tried[n]}.".split(".")[: v.count(".") + 1] != v.split(".")] == []
