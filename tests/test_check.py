"""The fast check finds the tests of what changed, and fails where one of its steps does."""

import subprocess
import sys
from pathlib import Path

import pytest

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
    assert check.tests_of(tree, files) == [Path("tests/test_inside.py"), Path("tests/test_model.py")]
    (tree / "tests" / "test_new.py").write_text("")
    assert Path("tests/test_new.py") in check.tests_of(tree, check.changed(tree, None))


def test_a_step_that_fails_fails_the_check_and_says_why(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(check, "STEPS", (("step", (sys.executable, "-c", "print('a reason'); raise SystemExit(3)")),))
    assert not check.Check(tree, 60).all([])
    said = capsys.readouterr().out
    assert "step  FAILS" in said
    assert "a reason" in said


def test_a_test_that_fails_fails_the_check_and_what_is_not_reached_is_named(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(check, "STEPS", ())
    path = Path("tests/test_model.py")
    assert not check.Check(tree, 60).all([path])
    assert "assert 3 == 2" in capsys.readouterr().out
    assert check.Check(tree, 0).all([path])
    assert f"not reached: {path}" in capsys.readouterr().out
