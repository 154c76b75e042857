"""The checklist before a release: builds what would be uploaded, checks it, and runs it alone in an empty environment.

    python tools/release.py [--python python3.14 ...] [--keep DIR] [--final]

Each line is a check; the first that fails ends it with status 1.  ``--final`` asks for what only a release has: a dated
changelog and the address of the source.  It needs the extra ``release`` and installs from the package index.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*words: object, cwd: Path | None = None) -> str:
    """A command that must succeed; what it printed."""
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"FAIL  {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def versions() -> dict[str, str]:
    """The version as each file states it."""

    def said(path: str, rule: str) -> str:
        found = re.search(rule, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else "none"

    return {
        "shoal/version.py": said("shoal/version.py", r'^__version__ = "([^"]+)"'),
        "CITATION.cff": said("CITATION.cff", r"^version: (\S+)$"),
        "CHANGELOG.md": said("CHANGELOG.md", r"^## (\S+)"),
        "conda/meta.yaml": said("conda/meta.yaml", r'set version = "([^"]+)"'),
    }


def final() -> list[str]:
    """What is still to be done by hand before the files are uploaded."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    todo = [f"[project.urls] has no {n}" for n in ("Source", "Issues") if n not in project.get("urls", {})]
    first = re.search(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if first is None or not re.search(r"\d{4}-\d\d-\d\d", first[0]):
        todo.append("the changelog has no date for this version")
    if "date-released:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        todo.append("CITATION.cff has no date-released")
    return todo


def alone(python: str, wheel: Path, folder: Path) -> str:
    """The wheel in an empty environment of this Python: the smoke run's last line."""
    run(python, "-m", "venv", folder)
    inside = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(inside, "-m", "pip", "install", "--quiet", f"{wheel}[demo]")
    return run(inside, "-I", ROOT / "tools" / "smoke.py", cwd=folder).strip().splitlines()[-1]


def main() -> None:
    """All checks, a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="*", default=[sys.executable], help="interpreters to run the wheel with")
    parser.add_argument("--keep", type=Path, help="folder for the files built")
    parser.add_argument("--final", action="store_true", help="fail where something is left to be done by hand")
    given = parser.parse_args()
    stated = versions()
    if len(set(stated.values())) != 1:
        sys.exit(f"FAIL  versions differ: {stated}")
    print(f"ok    version {stated['CITATION.cff']} in {', '.join(stated)}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        built = given.keep or Path(scratch, "dist")
        run(sys.executable, "-m", "build", "--outdir", built, ROOT)
        files = sorted([*built.glob("*.tar.gz"), *built.glob("*.whl")])
        print(f"ok    built {', '.join(p.name for p in files)}", flush=True)
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        print("ok    twine check --strict", flush=True)
        (wheel,) = (p for p in files if p.suffix == ".whl")
        run(sys.executable, "-m", "check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel)
        print("ok    check-wheel-contents", flush=True)
        run(
            sys.executable, "-c", "from cffconvert.cli.cli import cli; cli()", "--validate", "-i", ROOT / "CITATION.cff"
        )
        print("ok    CITATION.cff is valid", flush=True)
        for number, python in enumerate(given.python):
            print(f"ok    the wheel alone, {alone(python, wheel, Path(scratch, str(number)))}", flush=True)
    todo = final()
    for text in todo:
        print(f"todo  {text}")
    if todo and given.final:
        sys.exit(1)


if __name__ == "__main__":
    main()
