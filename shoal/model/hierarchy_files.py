"""Hierarchy files as others write them: value;class;...;* in rows, and Amnesia's text form."""

from __future__ import annotations

import csv
import io
from typing import Any

from shoal.errors import PolicyError
from shoal.model.hierarchy_steps import STAR


def fields(text: str, name: str) -> list[list[str]]:
    """Rows of a hierarchy file, by the separator under which all rows have the same number of fields."""
    found: list[list[list[str]]] = []
    for mark in (";", "\t", ","):
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        try:
            rows = [[row[0], *(x.strip() for x in row[1:])] for row in lines if any(x.strip() for x in row)]
        except csv.Error:
            continue
        if any("\n" in x or "\r" in x for row in rows for x in row):  # a quote left open swallows lines of values
            continue
        if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            heading = {row[-1] for row in rows[1:]} == {STAR} and rows[0][-1] != STAR
            return rows[heading:]
        if max(map(len, rows), default=0) > 1:
            found.append(rows)
    if not found:
        raise PolicyError(
            f"the hierarchy file {name!r} has no classes beside its values, or a quote in it is left open; "
            "write value;class;*"
        )
    return found[0]  # ragged: refused with the number of the row


def amnesia(text: str, name: str) -> dict[str, Any]:
    """Amnesia's text form: a heading, then "parent has child child ..." from the leaves' parents up to the root."""
    lines = text.strip().split("\n")
    if lines[0].strip() == "range":
        raise PolicyError(
            f"{name!r} is a range hierarchy of Amnesia; write its levels with Hierarchy.intervals instead"
        )
    children: dict[str, list[str]] = {}
    for line in lines[1:]:
        parts = line.split()
        if len(parts) > 2 and parts[1] == "has":
            children.setdefault(parts[0], []).extend(parts[2:])
    below = {c for kids in children.values() for c in kids}

    def grow(node: str, above: tuple[str, ...]) -> Any:
        if node in above:
            raise PolicyError(f"the hierarchy file {name!r} has {node!r} above itself")
        return {c: grow(c, (*above, node)) for c in children[node]} if node in children else None

    roots = [node for node in children if node not in below]
    if not roots:
        raise PolicyError(f"the hierarchy file {name!r} has no root; its last line should be: Any has ...")
    return {root: grow(root, ()) for root in roots}
