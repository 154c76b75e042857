"""NCP of a release from nothing but the published cells and the hierarchy as it was given.  Obviously right."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Leaves = list[list[str]]  # of every leaf, the labels from itself up


def from_file(path: Path) -> Leaves:
    """An ARX hierarchy: a line for each leaf, its labels separated by semicolons."""
    return [line.split(";") for line in path.read_text(encoding="utf-8").splitlines() if line]


def from_dict(nested: Mapping[str, Any]) -> Leaves:
    """A nested mapping down to lists."""
    out: Leaves = []

    def down(node: Any, above: list[str]) -> None:
        if isinstance(node, Mapping):
            for name, below in node.items():
                down(below, [name, *above])
        else:
            for leaf in node:
                down(leaf, above) if isinstance(leaf, Mapping) else out.append([leaf, *above])

    down(nested, [])
    return out


def loss(cell: str | None, leaves: Leaves) -> float:
    """Of one published cell: a missing value and a leaf as they are 0, a star 1, a label by the leaves under it."""
    if cell is None or any(line[0] == cell for line in leaves):
        return 0.0
    if cell == "*":
        return 1.0
    under = sum(cell in line for line in leaves)
    assert under
    return (under - 1) / (len(leaves) - 1)


def ncp(columns: Mapping[str, Sequence[str | None]], hierarchies: Mapping[str, Leaves]) -> float:
    """Mean over all cells; a column without a hierarchy is published as value or star."""
    total = cells = 0.0
    for name, column in columns.items():
        for cell in column:
            cells += 1
            total += loss(cell, hierarchies[name]) if name in hierarchies else float(cell == "*")
    return total / cells
