"""Small changes that a test should see: ``python tools/mutate.py --room judge --count 40 --seed 1``.

Works in a temporary copy of the tree, so nothing has to be put back.  Each change is made alone, the room's tests run
in a process of their own until one fails, and the changes that none of them saw are printed with file and line.  A
change that does not come to an end within three times the honest run counts as seen.  ``--files`` narrows a room to
paths that contain one of the words given, ``--lines 90-120`` to lines, ``--tests`` runs other tests.

Rooms with kernels run without compilation, where a change costs no compile time.  Exits 1 when a change survived.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from uncompiled import TESTS as UNCOMPILED

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "shoal",
    "tests",
    "tools",
    "docs",
    "examples",
    "benchmarks",
    "fence.py",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)


class Room(NamedTuple):
    """Where changes are made, what runs, and whether kernels are compiled."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]
    compiled: bool = True


ROOMS = {
    "judge": Room(
        ("shoal/judge",),
        (
            *(f"tests/judge/test_{n}.py" for n in ("original", "privacy", "matching", "file", "forged")),
            *(f"tests/publishing/test_{n}.py" for n in ("clusters", "crosswalk", "range_step")),
            *(f"tests/regions/test_{n}.py" for n in ("commands", "levels", "outlines")),
        ),
    ),
    "model": Room(("shoal/model",), ("tests/model",)),
    "recoding": Room(
        ("shoal/model/recoding",),
        (
            "tests/model/test_loss.py",
            "tests/test_recodings.py",
            "tests/publishing/test_range_step.py",
            "tests/publishing/test_ncp.py",
            "tests/tables/test_global_recoding.py",
            "tests/tables/test_coarsen.py",
        ),
    ),
    "privacy": Room(("shoal/model/privacy",), ("tests/tables/test_models.py", "tests/population/test_models.py")),
    "engines": Room(("shoal/engines",), ("tests/engines", "tests/test_release.py")),
    "publishing": Room(("shoal/publishing",), ("tests/publishing", "tests/test_recodings.py", "tests/judge")),
    "bounds": Room(
        (
            "shoal/problems/tables/bounds/bounds.py",
            "shoal/problems/tables/bounds/__init__.py",
            "shoal/problems/tables/losses.py",
        ),
        ("tests/tables/test_bounds.py", "tests/tables/test_certify.py", "tests/tables/test_three_phase.py"),
    ),
    "papers": Room(
        ("shoal/problems/tables/three_phase.py", "shoal/problems/tables/methods", "shoal/problems/tables/exact"),
        (
            *(f"tests/tables/test_{n}.py" for n in ("three_phase", "matching", "halving", "simplex_matching")),
            "tests/conformance/test_every_method.py",
        ),
    ),
    "attacks": Room(("shoal/attacks",), ("tests/attack",)),
    "regions": Room(
        ("shoal/problems/regions",),
        tuple(
            f"tests/regions/test_{n}.py" for n in ("options", "merge", "tree", "water", "levels", "bounds", "prices")
        ),
    ),
    "clusters": Room(("shoal/problems/gathering",), ("tests/gathering",)),
    "tiles": Room(("shoal/problems/tiles",), ("tests/tiles",)),
    "labels": Room(("shoal/problems/labels", "shoal/problems/intervals"), ("tests/labels", "tests/intervals")),
    "series": Room(
        ("shoal/publishing/series", "shoal/publishing/series_folder.py", "shoal/series.py"),
        tuple(
            f"tests/series/test_{n}.py"
            for n in ("published", "increment", "ranges_lost", "again", "views", "chain", "forged")
        ),
    ),
    "cli": Room(("shoal/cli",), ("tests/cli", "tests/regions/test_commands.py", "tests/gathering/test_commands.py")),
    "report": Room(("shoal/report",), ("tests/report", "tests/attack/test_page.py", "tests/regions/test_maps.py")),
    "utility": Room(("shoal/utility",), ("tests/utility",)),
    "kernels": Room(("shoal/kernels",), UNCOMPILED, compiled=False),
}

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
NO_TESTS = 5  # pytest's status
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


class Change(NamedTuple):
    """Bytes ``start`` to ``end`` of a file become ``new``."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.path}:{self.line}: {old[:90]}  ->  {new[:90]}"


def variants(node: ast.AST) -> Iterator[str]:
    """Sources that may stand for a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARED[type(node.ops[0])]:
            yield ast.unparse(ast.Compare(node.left, [other()], node.comparators))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from (repr(node.value + 1), f"({node.value - 1!r})")
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield repr(not node.value)
    elif isinstance(node, ast.BoolOp):
        yield ast.unparse(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        if not any(isinstance(x, ast.JoinedStr | ast.List | ast.Tuple) for x in (node.left, node.right)):
            yield ast.unparse(
                ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
            )
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in SWAPPED:
            swapped = ast.unparse(node.func).removesuffix(name) + SWAPPED[name]
            yield ast.unparse(ast.Call(ast.parse(swapped, mode="eval").body, node.args, node.keywords))
    elif isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom)
    ):
        yield "pass"


def looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes below one that say what a program does: no annotation, no sentence of an error, no text."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom):
                continue
            yield child
            if not isinstance(child, ast.Raise | ast.JoinedStr):
                yield from looked_at(child)


def changes(path: Path, name: str) -> Iterator[Change]:
    """All changes of a file."""
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def change(node: ast.AST, new: str) -> Change:
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return Change(name, node.lineno, start, end, text[start:end].decode(), new)  # type: ignore[attr-defined]

    for node in looked_at(ast.parse(text)):
        for new in variants(node):
            yield change(
                node, new if new == "pass" else f"({new})" if isinstance(node, ast.Compare | ast.BinOp) else new
            )
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
            yield change(node.test, f"(not ({ast.unparse(node.test)}))")
        if isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield change(test, "True")


def drawn(room: Room, words: list[str], lines: range | None, count: int, seed: int) -> list[Change]:
    """``count`` changes of a room, at random."""
    files = []
    for given in room.paths:
        path = ROOT / given
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    found = []
    for path in files:
        name = str(path.relative_to(ROOT))
        if not words or any(word in name for word in words):
            found += [c for c in changes(path, name) if lines is None or c.line in lines]
    random.Random(seed).shuffle(found)
    print(f"{len(found):,} changes are possible; {min(count, len(found)):,} are tried, seed {seed}", flush=True)
    return found[:count]


def ordered(tests: tuple[str, ...], changed: str | None) -> list[str]:
    """The tests, those named like the changed file first."""
    if changed is None or any("::" in t for t in tests):
        return list(tests)
    stem = Path(changed).stem
    single = [str(p.relative_to(ROOT)) for t in tests for p in ([ROOT / t] if t.endswith(".py") else
              sorted((ROOT / t).rglob("test_*.py")))]  # fmt: skip
    return sorted(single, key=lambda t: stem not in t)


def preloaded() -> None:
    """Import what does not change, so that every run is a fork that has it; nothing of it starts a thread."""
    for name in ("numpy", "numba", "scipy.sparse", "scipy.optimize", "polars", "pandas", "pyarrow", "duckdb", "pytest",
                 "typer", "jinja2", "narwhals", "highspy"):  # fmt: skip
        importlib.import_module(name)


def tests_of(tree: Path, room: Room, changed: str | None) -> int:
    """Run the tests in this process, which is a fork made for it: pytest's status."""
    os.setsid()
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(tree), *(p for p in sys.path if Path(p).resolve() not in (ROOT, ROOT / "tools"))]
    if not room.compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(quiet, number)
    import pytest

    given = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    return int(pytest.main([*given, *ordered(room.tests, changed)]))


def run(tree: Path, room: Room, limit: float | None, changed: str | None = None) -> str:
    """ "green", "red", "late", or "none" where every test was skipped, as when a package is absent."""
    process = os.fork()
    if not process:
        status = 1
        try:
            status = tests_of(tree, room, changed)
        finally:
            os._exit(status)
    until = None if limit is None else time.monotonic() + limit
    try:
        while until is None or time.monotonic() < until:
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                process = 0
                status = os.waitstatus_to_exitcode(status)
                return {0: "green", NO_TESTS: "none"}.get(status, "red")
            time.sleep(0.05)
        return "late"
    finally:
        if process:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)


def tried(tree: Path, room: Room, chosen: list[Change], seconds: float) -> tuple[list[Change], int]:
    """(changes that no test saw, changes tried); ``seconds`` ends the run between two changes."""
    began = time.monotonic()
    unchanged = run(tree, room, None)
    if unchanged == "none":
        sys.exit("no test ran without any change: a package that they need may be absent")
    if unchanged != "green":
        sys.exit("the tests fail without any change")
    honest = time.monotonic() - began
    print(f"the tests take {honest:.0f} s without a change", flush=True)
    survived, done = [], 0
    for change in chosen:
        if time.monotonic() - began > seconds:
            break
        target = tree / change.path
        text = target.read_bytes()
        target.write_bytes(text[: change.start] + change.new.encode() + text[change.end :])
        came = run(tree, room, 3 * honest + 30, change.path)
        shutil.copy2(ROOT / change.path, target)
        done += 1
        if came == "green":
            survived.append(change)
            print(f"survived  {change}", flush=True)
    return survived, done


def main() -> int:
    """Make the changes of one room."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--room", choices=sorted(ROOMS), required=True)
    asked.add_argument("--count", type=int, default=40)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--seconds", type=float, default=float("inf"))
    asked.add_argument("--files", nargs="*", default=[])
    asked.add_argument("--lines", help="as 90-120")
    asked.add_argument("--tests", nargs="*")
    given = asked.parse_args()
    room = ROOMS[given.room]
    if room.compiled:
        preloaded()
    if given.tests:
        room = room._replace(tests=tuple(given.tests))
    first, _, last = (given.lines or "").partition("-")
    lines = range(int(first), int(last or first) + 1) if first else None
    with tempfile.TemporaryDirectory(prefix="shoal-mutants-") as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name)
            elif source.exists():
                shutil.copy2(source, tree / name)
        chosen = drawn(room, given.files, lines, given.count, given.seed)
        survived, done = tried(tree, room, chosen, given.seconds)
    print(f"{given.room}: {done} changes, {done - len(survived)} seen, {len(survived)} survived")
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main())
