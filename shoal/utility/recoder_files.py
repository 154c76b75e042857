"""A recoder as files: what was asked and found as TOML, each hierarchy of rows as a CSV beside it."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.engines.atomic import Piece, publish_together
from shoal.engines.targets import POLICY, TABLE, check_outputs
from shoal.errors import PolicyError
from shoal.model.hierarchy import Hierarchy
from shoal.model.hierarchy_steps import exact

FORMAT = 1
_ASKED = ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "k", "l", "max_suppressed", "effort", "seed")


class Kept(NamedTuple):
    """What a file holds of a recoder.

    asked        the arguments but for hierarchies and highest levels;
    hierarchies  per column, as ``Hierarchy.of`` takes them
    levels       found for every quasi-identifier;  columns: those that come out
    forms        per quasi-identifier the levels of its hierarchy and how it writes a whole number
    """

    asked: Mapping[str, Any]
    hierarchies: Mapping[str, Any]
    max_level: Mapping[str, int]
    levels: Mapping[str, int]
    columns: Sequence[str]
    forms: Mapping[str, tuple[int, str]]


def write(kept: Kept, path: Path, *, overwrite: bool) -> Path:
    """All files together or none; the file of a hierarchy that was read from beside the recoder stays as it is."""
    beside: dict[Path, str] = {}
    trees: dict[str, Any] = {}
    for name, source in kept.hierarchies.items():
        tree = Hierarchy.of(source)
        if tree.kind == "rows":
            file = path.with_name(f"{path.stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.csv")
            if file in beside:
                file = file.with_name(f"{file.stem}.{len(beside)}.csv")
            beside[file] = _rows(tree)
            trees[name] = file.name
        else:
            trees[name] = tree.builder or _steps(tree)
    top = {"recoder": FORMAT, **{n: kept.asked[n] for n in _ASKED}, "columns": list(kept.columns)}
    tables = {
        "levels": kept.levels,
        "max_level": kept.max_level,
        "hierarchies": trees,
        "forms": {name: {"levels": height, "whole": shown} for name, (height, shown) in kept.forms.items()},
    }
    lines = ["# A recoding for shoal apply: the levels may be raised by hand.", *_lines(top)]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *_lines(table)]
    new = {file: text for file, text in beside.items() if not (file.is_file() and file.read_text("utf-8") == text)}
    closed = check_outputs([(path, POLICY), *((file, TABLE) for file in new)], [], overwrite=overwrite)
    texts = {path: "\n".join(lines) + "\n", **new}
    publish_together([Piece(file, _filler(text)) for file, text in texts.items()], closed=closed)
    return path


def _filler(text: str) -> Any:
    return lambda temporary: temporary.write_text(text, encoding="utf-8")


def read(path: Path) -> Kept:
    """What ``write`` wrote.  Raises PolicyError for a file that is no recoder."""
    try:
        with open(path, "rb") as file:
            held = tomllib.load(file)
    except FileNotFoundError:
        raise PolicyError(f"there is no recoder {str(path)!r}; Recoder.save or shoal fit writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError):
        raise PolicyError(f"{path.name!r} is not TOML, so it is no recoder; Recoder.save writes one") from None
    if held.get("recoder") != FORMAT:
        raise PolicyError(f"{path.name!r} is no recoder of format {FORMAT}; Recoder.save writes one")
    odd = set(held) - {*_ASKED, "recoder", "columns", "levels", "max_level", "hierarchies", "forms"}
    if odd:
        raise PolicyError.unknown("setting of a recoder", min(odd), [*_ASKED, "columns", "levels", "hierarchies"])
    trees = {name: _tree(source, path.parent) for name, source in _table(held, "hierarchies", path).items()}
    levels, forms = _table(held, "levels", path), {}
    for name, form in _table(held, "forms", path).items():
        level = levels.get(name)
        if type(level) is not int or not isinstance(form, Mapping) or not 0 <= level < form.get("levels", 0):
            raise PolicyError(f"{path.name!r} has no level of {name!r} that its hierarchy has")
        forms[name] = (form["levels"], str(form.get("whole", "")))
    asked = {name: held[name] for name in _ASKED if name in held}
    if set(levels) != set(forms) or set(levels) != set(asked.get("quasi_identifiers", ())):
        raise PolicyError(f"{path.name!r} has other levels than quasi-identifiers")
    return Kept(asked, trees, _table(held, "max_level", path), levels, held.get("columns", ()), forms)


def _table(held: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    found = held.get(name, {})
    if not isinstance(found, Mapping):
        raise PolicyError(f"{path.name!r} has no table [{name}]")
    return found


def _rows(tree: Hierarchy) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=";", lineterminator="\n").writerows([*row, "*"] for row in tree.rows)
    return out.getvalue()


def _steps(tree: Hierarchy) -> dict[str, Any]:
    """What no builder's text says: cuts, an origin, another filling."""
    cuts = [[str(c) for c in step] if isinstance(step, tuple) else str(step) for step in tree.steps]
    return {"kind": tree.kind, "steps": cuts, "origin": str(tree.origin), "fill": tree.fill}


def _tree(source: Any, folder: Path) -> Any:
    if isinstance(source, Mapping):
        kind, steps = source.get("kind"), list(source.get("steps", ()))
        if kind == "intervals":
            cuts = [[exact(c) for c in step] if isinstance(step, list) else exact(step) for step in steps]
            return Hierarchy.intervals(cuts, exact(source.get("origin", "0")))  # type: ignore[arg-type]
        if kind == "prefixes":
            return Hierarchy.prefixes([int(s) for s in steps] or None, str(source.get("fill", "*")))
        raise PolicyError(f"a hierarchy of kind {kind!r} is none that a recoder holds")
    return str(folder / source) if isinstance(source, str) and source.endswith(".csv") else source


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_toml(value)}" for name, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """A value in TOML: JSON's strings, numbers and lists are TOML's as well."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_lines(value)) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return _text(str(value))


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
