"""The fence: which room may import what, no module that imports itself by way of others, no kernel of many arguments.

Run it; it prints breaches and circles and exits 1 when there are any, else the floors of the house.

The table is the architecture: a room may import the standard library, itself and what its line lists;
a name with a dot at its end is that module's own door, without the modules behind it.
The judge is no party: it may import neither problems nor kernels nor recoding; nor may what looks again at a release.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MODEL = {"numpy", "shoal.clock", "shoal.errors", "shoal.model", "shoal.paths"}
SOLVER = MODEL | {
    "scipy",
    "shoal.kernels",
    "shoal.problems.catalogue",
    "shoal.problems.programs",
    "shoal.threads",
    "shoal.watching",
}
BESIDES = {
    "tables": {"highspy", "networkx"},
    "regions": {"networkx"},
}
KERNEL = {"numpy", "numba", "shoal.kernels."}


def folders(room: str) -> list[str]:
    """The rooms inside a room: the problems, and the kernels of each."""
    return sorted(p.name for p in (Path(__file__).parent / "shoal" / room).iterdir() if (p / "__init__.py").exists())


ROOMS: dict[str, set[str]] = {
    "clock.py": set(),
    "errors.py": set(),
    "paths.py": {"shoal.errors"},
    "threads.py": {"numpy"},
    "version.py": set(),
    "watching.py": {"IPython"},
    "model": MODEL,
    "kernels": KERNEL | {"llvmlite", "shoal.clock", "shoal.kernels", "shoal.threads"},
    **{f"kernels/{name}": KERNEL | {f"shoal.kernels.{name}"} for name in folders("kernels")},
    "problems/catalogue.py": {"shoal.errors"},
    "problems/programs.py": {"numpy", "scipy", "highspy"},
    **{
        f"problems/{name}": SOLVER | BESIDES.get(name, set()) | {f"shoal.problems.{name}"}
        for name in folders("problems")
    },
    "hardness": MODEL | {"networkx", "shoal.hardness"},
    "judge": MODEL
    | {"polars", "pyarrow", "pyreadstat", "scipy", "shoal.judge"}
    | {"shoal.model.foreign"},  # reads cells of any tool
    "engines": MODEL
    | {
        "narwhals",
        "polars",
        "fastexcel",
        "xlsxwriter",
        "pyreadstat",
        "duckdb",
        "pyarrow",
        "pandas",
        "pyspark",
        "ibis",
        "psycopg",
        "MySQLdb",
        "shapely",
        "pyproj",
        "pyogrio",
        "deltalake",
        "pyiceberg",
        "shoal.engines",
    },
    "report": MODEL | {"matplotlib", "jinja2", "markupsafe", "shoal.report", "shoal.problems.catalogue"},
    "experiments": {"numpy", "matplotlib", "shoal"},
    "series.py": {"numpy", "polars", "shoal"},
    "pipeline.py": {"numpy", "narwhals", "polars", "shoal"},
    "publishing": {
        "numpy",
        "scipy",
        "polars",
        "cryptography",
        "shoal.errors",
        "shoal.model",
        "shoal.paths",
        "shoal.engines",
        "shoal.judge",
    }
    | {"shoal.problems", "shoal.report", "shoal.publishing", "shoal.version", "shoal.watching"},
    "publishing/series": {
        "numpy",
        "scipy",
        "polars",
        "shoal.errors",
        "shoal.model",
        "shoal.paths",
        "shoal.engines",
        "shoal.judge",
    }
    | {"shoal.publishing"},
    "publishing/crosswalks/centers.py": MODEL,
    "publishing/sources.py": MODEL | {"polars", "shoal.engines", "shoal.judge", "shoal.problems.catalogue"},
    "publishing/verifying": {
        "polars",
        "shoal.errors",
        "shoal.model",
        "shoal.paths",
        "shoal.judge",
        "shoal.engines",
        "shoal.watching",
    }
    | {"shoal.problems.catalogue", "shoal.publishing.sources", "shoal.publishing.documents"}
    | {"shoal.publishing.verifying"},
    "utility": {"numpy", "polars", "sklearn", "shoal"},
    "publishing/decode.py": {"numpy", "polars", "shoal.errors", "shoal.model", "shoal.paths", "shoal.engines"},
    "attacks": MODEL
    | {"polars", "pyarrow", "scipy", "shoal.attacks", "shoal.engines", "shoal.judge", "shoal.report", "shoal.watching"}
    | {"shoal.model.foreign"},
    "workbench": {
        "nicegui",
        "numpy",
        "polars",
        "fastapi",
        "starlette",
        "shoal.",
        "shoal.paths",
        "shoal.workbench",
    },  # the public interface, and what a path is
    "cli": {"numpy", "typer", "rich", "polars", "shoal"},
}


@cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a module, inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import; a relative import is a breach by itself."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif node.level:
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
            for line, module in imports(path):
                standard = module.split(".")[0] in sys.stdlib_module_names
                if not standard and not any(_covers(a, module) for a in allowed):
                    yield f"{path}:{line}: {room} may not import {module}"


ARGUMENTS = 8  # of a kernel, at most: who calls one of fourteen mixes up two


def crowded(root: Path) -> Iterator[str]:
    """Every kernel of more arguments than a reader keeps apart; those that belong together are one named tuple."""
    for path in sorted((root / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list):
                asked = node.args
                many = len(asked.posonlyargs) + len(asked.args) + len(asked.kwonlyargs)
                if many > ARGUMENTS:
                    yield f"{path}:{node.lineno}: {node.name} takes {many} arguments, more than {ARGUMENTS}"


def _covers(allowed: str, module: str) -> bool:
    return f"{module}." == allowed if allowed.endswith(".") else f"{module}.".startswith(f"{allowed}.")


def graph(root: Path) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports, anywhere in its text."""
    paths = {".".join(p.relative_to(root.parent).with_suffix("").parts): p for p in root.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    out: dict[str, set[str]] = {}
    for name, path in modules.items():
        seen = set()
        stub = path.with_suffix(".pyi")  # what is looked up when it is first used
        for node in nodes(path) + (nodes(stub) if stub.exists() else []):
            if isinstance(node, ast.Import):
                seen |= {alias.name for alias in node.names}
            elif node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                seen |= inner & set(modules) or {node.module}
        out[name] = (seen & set(modules)) - {name}
    return out


def folder_graph(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same of folders: one that has no folders in it stands for its modules, any other module for itself.

    What a package's own file imports is left out: it is the door to what lies behind it.
    """
    packages = {name.rpartition(".")[0] for name in imports} & set(imports)
    split = {name.rpartition(".")[0] for name in packages}

    def folder(module: str) -> str:
        inside = module.rpartition(".")[0]
        return module if inside in split else inside

    out: dict[str, set[str]] = {}
    for module, wants in imports.items():
        if module not in packages:
            here = folder(module)
            out.setdefault(here, set()).update({folder(w) for w in wants - packages} - {here})
    return {here: wants & set(out) for here, wants in out.items()}


def floors(imports: dict[str, set[str]]) -> tuple[list[list[str]], list[str]]:
    """Modules by floors, the lowest first, each importing from lower ones only; and what is left: the circles."""
    left = dict(imports)
    out: list[list[str]] = []
    while free := sorted(m for m, wants in left.items() if not wants & set(left)):
        out.append(free)
        for module in free:
            del left[module]
    while idle := [m for m in left if not any(m in wants for other, wants in left.items() if other != m)]:
        for module in idle:  # above a circle, in none
            del left[module]
    return out, sorted(left)


if __name__ == "__main__":
    house = Path(__file__).parent / "shoal"
    found = [*breaches(house), *crowded(house)]
    levels, circle = floors(graph(house))
    found += [f"{module}: in a circle of imports" for module in circle]
    found += [f"{folder}: in a circle of folders" for folder in floors(folder_graph(graph(house)))[1]]
    if not found:
        for number, modules in reversed(list(enumerate(levels))):
            rooms = sorted({".".join(m.split(".")[:3]) for m in modules})
            print(f"floor {number:>2}  {' '.join(room.removeprefix('shoal.') for room in rooms)}")
    print("\n".join(found) or f"fence: {len(ROOMS)} rooms, {len(levels)} floors, no breach, no circle")
    sys.exit(bool(found))
