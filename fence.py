"""The fence: which room may import what.  Run it; it prints breaches and exits 1 when there are any.

The table is the architecture: a room may import the standard library, itself and what its line lists.
The judge is no party: it may import neither problems nor kernels nor recoding.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODEL = {"numpy", "shoal.errors", "shoal.model"}
SOLVER = MODEL | {"scipy", "shoal.kernels", "shoal.problems.interrupts", "shoal.problems.programs"}
ROOMS: dict[str, set[str]] = {
    "errors.py": set(),
    "model": MODEL,
    "kernels": {"numpy", "numba", "shoal.kernels"},
    "problems/catalogue.py": {"shoal.errors"},
    "problems/interrupts.py": set(),
    "problems/programs.py": {"numpy", "scipy", "highspy"},
    "problems/tables": SOLVER | {"highspy", "networkx", "shoal.problems.tables", "shoal.problems.catalogue"},
    "problems/gathering": SOLVER | {"highspy", "shoal.problems.gathering", "shoal.problems.catalogue"},
    "problems/regions": SOLVER | {"highspy", "networkx", "shoal.problems.regions", "shoal.problems.catalogue"},
    "problems/tiles": SOLVER | {"shoal.problems.tiles", "shoal.problems.catalogue"},
    "problems/labels": SOLVER | {"highspy", "shoal.problems.labels", "shoal.problems.catalogue"},
    "problems/intervals": SOLVER | {"shoal.problems.intervals", "shoal.problems.catalogue"},
    "hardness": MODEL | {"networkx", "shoal.hardness"},
    "recoding": MODEL | {"shoal.recoding"},
    "judge": MODEL | {"polars", "scipy", "shoal.judge"},
    "engines": MODEL
    | {
        "narwhals",
        "polars",
        "fastexcel",
        "xlsxwriter",
        "duckdb",
        "pyarrow",
        "pandas",
        "pyspark",
        "shapely",
        "pyproj",
        "pyogrio",
        "shoal.engines",
    },
    "report": MODEL | {"matplotlib", "shoal.report"},
    "experiments": {"numpy", "matplotlib", "shoal"},
    "recodings.py": {"numpy", "shoal"},
    "centers.py": {"numpy", "shoal"},
    "pipeline.py": {"numpy", "narwhals", "polars", "shoal"},
    "release.py": {"polars", "shoal"},
    "signing.py": {"cryptography", "shoal.errors", "shoal.model"},
    "checking.py": {
        "polars",
        "shoal.errors",
        "shoal.model",
        "shoal.judge",
        "shoal.engines",
        "shoal.release",
        "shoal.signing",
    },
    "utility": {"numpy", "polars", "shoal"},
    "cli": {"numpy", "typer", "rich", "polars", "shoal"},
}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, inside functions too; a relative import is a breach by itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
            elif node.module == "shoal":
                for alias in node.names:
                    yield node.lineno, f"shoal.{alias.name}"
            else:
                yield node.lineno, node.module or ""


def breaches(root: Path) -> Iterator[str]:
    """Every import that its room may not make."""
    for room, allowed in ROOMS.items():
        place = root / room
        for path in [place] if place.suffix == ".py" else sorted(place.rglob("*.py")):
            if not path.exists():
                continue
            for line, module in imports(ast.parse(path.read_text(encoding="utf-8"))):
                standard = module.split(".")[0] in sys.stdlib_module_names
                if not standard and not any(f"{module}.".startswith(f"{a}.") for a in allowed):
                    yield f"{path}:{line}: {room} may not import {module}"


if __name__ == "__main__":
    found = list(breaches(Path(__file__).parent / "shoal"))
    print("\n".join(found) or f"fence: {len(ROOMS)} rooms, no breach")
    sys.exit(bool(found))
