"""Words that the glossary retires name no module, class, function, argument, or field."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    "others",
    "papers",
    "before",
    "later",
    "apart",
    "carried",
    "ways",
    "beside",
    "going_around",
    "slender",
    "settling",
    "lending",
    "tolls",
    "told",
}
NAMES = {"Lot", "Told", "Room", "Asked", "Tolls", "Kinds", "Beside", "Carried", "Apart", "Kept", "Way", "WAYS"}

EVERYWHERE = {"beside", "told", "toll", "tolls", "room", "rooms", "ways", "going_around", "slender", "surroundings"}


def retired(path: Path, text: str) -> list[str]:
    """The retired words that a module has for itself, its folder or what it defines at its top."""
    tops = [n.name for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    tops += [
        n.target.id for n in ast.parse(text).body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    ]
    parts = [*path.parent.parts, path.stem]
    return [word for word in parts if word in MODULES] + [word for word in tops if word in NAMES]


def retired_names(text: str) -> list[str]:
    """The retired words that name a function, an argument, or a field; a leading underscore changes nothing."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.name, *(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))]
        elif isinstance(node, ast.ClassDef):
            fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            found += [field.id for field in fields if isinstance(field, ast.Name)]
    return [name for name in found if name.strip("_") in EVERYWHERE]


@pytest.mark.parametrize(
    "text",
    ["def _told(): ...", "def f(a, *, ways=1): ...", "class A:\n    room: int", "def beside(): ..."],
)
def test_a_retired_name_is_seen(text: str) -> None:
    assert len(retired_names(text)) == 1


def test_no_function_argument_or_field_has_a_retired_name() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / "shoal").rglob("*.py"))
        if (names := retired_names(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [("others/hilbert.py", ""), ("tables/carried.py", ""), ("a.py", "class Lot: ..."), ("a.py", "WAYS: dict = {}")],
)
def test_a_retired_word_is_seen(path: str, text: str) -> None:
    assert len(retired(Path(path), text)) == 1


def test_no_module_and_no_class_has_a_retired_name() -> None:
    found = {
        str(path.relative_to(ROOT)): words
        for path in sorted((ROOT / "shoal").rglob("*.py"))
        if (words := retired(path.relative_to(ROOT), path.read_text(encoding="utf-8")))
    }
    assert found == {}
