"""The fast check finds the tests of what changed, and fails where one of its steps does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.amount import diagonal
from tools import check


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small checkout with one commit."""
    files = {
        "shoal/__init__.py": "",
        "shoal/model.py": "K = 2\n",
        "shoal/other.py": "",
        "tests/test_model.py": "from shoal.model import K\n\n\ndef test_k():\n    assert K == 2\n",
        "tests/test_other.py": "import shoal.other\n",
        "tests/test_inside.py": "def test():\n    from shoal import model\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "shoal" / "model.py").write_text("K = 3\n")
    return tmp_path


def test_tests_are_those_that_import_a_changed_module_or_changed(tree: Path) -> None:
    files = check.changed(tree, None)
    assert files == [Path("shoal/model.py")]
    assert check.tests_of(tree, files) == {Path("tests/test_inside.py"): 0, Path("tests/test_model.py"): 0}
    (tree / "tests" / "test_new.py").write_text("")
    assert check.tests_of(tree, check.changed(tree, None))[Path("tests/test_new.py")] == 0


def test_tests_farther_away_are_of_modules_around_and_of_the_room(tree: Path) -> None:
    made = {
        "shoal/tiles/cut.py": "", "shoal/tiles/front.py": "from shoal.tiles.cut import x\n",
        "tests/test_front.py": "from shoal.tiles import front\n", "tests/tiles/test_maps.py": "",
        "tests/labels/test_cut.py": "", "tests/labels/test_else.py": "",
    }  # fmt: skip
    for name, text in made.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(text)
    near = {Path("tests/labels/test_cut.py"): 0, Path("tests/test_front.py"): 1, Path("tests/tiles/test_maps.py"): 2}
    assert check.tests_of(tree, [Path("shoal/tiles/cut.py")]) == near


def test_the_nearest_tests_run_first_and_of_many_not_reached_folders_are_named(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(check, "STEPS", ())
    many = {Path(f"tests/tables/test_{i}.py"): 2 for i in range(12)}
    fast = check.Check(tree, 0)
    far, near, slow = Path("tests/test_other.py"), Path("tests/test_model.py"), Path("tests/test_inside.py")
    fast.took = {str(slow): 20.0}
    assert fast.ordered({far: 2, slow: 0, near: 0}) == [near, slow, far]
    assert check.Check(tree, 0).all(many)
    assert "not reached: 12 of tests/tables" in capsys.readouterr().out


def test_a_step_that_fails_fails_the_check_and_says_why(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(check, "STEPS", (("step", (sys.executable, "-c", "print('a reason'); raise SystemExit(3)")),))
    assert not check.Check(tree, 60).all({})
    said = capsys.readouterr().out
    assert "step  FAILS" in said
    assert "a reason" in said


def test_a_test_that_fails_fails_the_check_and_what_is_not_reached_is_named(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(check, "STEPS", ())
    path = Path("tests/test_model.py")
    assert not check.Check(tree, 60).all({path: 0})
    assert "assert 3 == 2" in capsys.readouterr().out
    assert check.Check(tree, 0).all({path: 0})
    assert f"not reached: {path}" in capsys.readouterr().out


def test_the_diagonal_of_a_grid_has_each_value_of_each_parameter() -> None:
    grid = [{"kind": kind, "name": name, "on": on} for kind in "abc" for name in range(7) for on in (False, True)]
    kept = [grid[i] for i in diagonal(grid)]
    assert len(kept) == 7
    assert all({case[p] for case in kept} == {case[p] for case in grid} for p in ("kind", "name", "on"))
    assert diagonal(grid[:20]) == [*range(20)]  # no full grid, such as cases named on a command line
