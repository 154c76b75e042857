"""The fast check: linter, type checker, fence, and the tests of what changed, within a minute on two cores.

    python -m tools.check [--seconds 57] [--since REVISION]

What changed is what differs from the last commit; without such a file, what the last commit changed; with ``--since``
what differs from a revision.  Its tests are the changed test files and those that import a changed module by name; then
those that import a module which imports a changed one; then those of its room, in the folder of the same name.  Of
each, the quickest by what they took the last time come first.  What the seconds do not reach is named.  It ends with
status 1 where anything fails.  ``.ci/run`` runs everything.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(".pytest_cache") / "seconds_of_files.json"
USUAL = 8.0  # seconds taken to be those of a file that nobody has run here
LISTED = 10  # files that were not reached are named up to so many; of more, how many each folder has
STEPS = (
    ("types", ("mypy",)),
    ("lint", ("ruff", "check", ".")),
    ("format", ("ruff", "format", "--check", ".")),
    ("fence", (sys.executable, "fence.py")),
)


def changed(root: Path, since: str | None) -> list[Path]:
    """Python files that changed, relative to the root."""

    def git(*words: str) -> list[str]:
        said = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout
        return [line for line in said.splitlines() if line.endswith(".py")]

    found = git("diff", "--name-only", since or "HEAD") + git("ls-files", "--others", "--exclude-standard")
    if not found and since is None:
        found = git("diff", "--name-only", "HEAD~1", "HEAD")
    return sorted({Path(name) for name in found})


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Dotted names that a file imports: modules, and what it takes from them, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def tests_of(root: Path, files: Iterable[Path]) -> dict[Path, int]:
    """Test files by how near they are to what changed.

    0  changed, named like a changed module, or importing one;  1  importing a module that imports a changed one;
    2  in the folder of tests that is named like a folder of a changed module
    """
    files = set(files)
    modules = {module_of(path) for path in files}
    around = {
        module_of(path.relative_to(root)) for path in sorted((root / "shoal").rglob("*.py")) if imported(path) & modules
    }
    rooms = {part for path in files if path.parts[0] == "shoal" for part in path.parts[1:-1]}
    found: dict[Path, int] = {}
    for test in sorted((root / "tests").rglob("test_*.py")):
        path, names = test.relative_to(root), imported(test)
        if path in files or names & modules or path.stem.removeprefix("test_") in {file.stem for file in files}:
            found[path] = 0
        elif names & around:
            found[path] = 1
        elif path.parts[1] in rooms:
            found[path] = 2
    return found


class Check:
    """Steps and test files, done by two lanes; each prints what it took."""

    def __init__(self, root: Path, seconds: float) -> None:
        self.root, self.end, self.failed = root, time.monotonic() + seconds, False
        self.unreached: list[Path] = []
        self.lock = threading.Lock()
        kept = root / KEPT
        self.took: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}

    def run(self, name: str, words: Sequence[str]) -> float:
        """Run one command; its output is printed where it fails."""
        began = time.monotonic()
        done = subprocess.run(words, cwd=self.root, capture_output=True, text=True)
        took = time.monotonic() - began
        bad = done.returncode not in (0, 5) if words[0] == sys.executable and "pytest" in words else done.returncode
        with self.lock:
            self.failed |= bool(bad)
            print(f"{took:6.1f} s  {name}{'  FAILS' if bad else ''}", flush=True)
            if bad:
                print(done.stdout + done.stderr, flush=True)
        return took

    def lane(self, steps: list[tuple[str, tuple[str, ...]]], tests: list[Path]) -> None:
        """Take steps, then test files, until none are left or the seconds are over."""
        while True:
            with self.lock:
                step = steps.pop(0) if steps else None
                test = tests.pop(0) if step is None and tests else None
            if step is not None:
                self.run(*step)
            elif test is None:
                return
            elif time.monotonic() + self.took.get(str(test), USUAL) > self.end:
                with self.lock:
                    self.unreached.append(test)
            else:
                self.took[str(test)] = self.run(str(test), (sys.executable, "-m", "pytest", "-q", str(test)))

    def ordered(self, tests: Mapping[Path, int]) -> list[Path]:
        """The nearest tests first, of these the quickest."""
        return sorted(tests, key=lambda path: (tests[path], self.took.get(str(path), USUAL)))

    def all(self, tests: Mapping[Path, int]) -> bool:
        """Whether everything that was reached is well."""
        steps, todo = list(STEPS), self.ordered(tests)
        lanes = [threading.Thread(target=self.lane, args=(steps, todo)) for _ in range(2)]
        for each in lanes:
            each.start()
        for each in lanes:
            each.join()
        kept = self.root / KEPT
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(self.took, indent=0, sort_keys=True))
        if len(self.unreached) <= LISTED:
            for path in sorted(self.unreached):
                print(f"not reached: {path}")
        else:
            for folder, many in sorted(Counter(path.parent for path in self.unreached).items()):
                print(f"not reached: {many} of {folder}")
        return not self.failed


def main(words: Sequence[str] | None = None) -> int:
    """Run the check; the status of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=57.0, help="a file may take a little longer than before")
    parser.add_argument("--since", help="a revision that files are compared with")
    asked = parser.parse_args(words)
    began = time.monotonic()
    tests = tests_of(ROOT, changed(ROOT, asked.since))
    good = Check(ROOT, asked.seconds).all(tests)
    print(f"{time.monotonic() - began:6.1f} s  in all: {'well' if good else 'NOT well'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
