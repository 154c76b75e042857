"""The jobs that pages request: functions of plain values that run in a separate process.

A job takes a ``source`` (path of the table, how to read it, and its stamp when it was opened) and returns plain values
that a page shows. A job refuses a file that has changed since it was opened. It runs in another process, so that the
page stays responsive and can stop it. Parent and child exchange one JSON text per line through the child's standard
input and output. If the parent ends, the child reads the end of its input and exits. Only answers are written, so
values of a table never get into a log.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import shoal
from shoal.workbench.projects import digests, in_fields, new_file, sensitive_trees, worded

Tell = Callable[[str, float | None], None]
Progress = Callable[[str, Any], None]
_looked: dict[str, Any] = {}  # the table that was examined last
ONE_TABLE = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".pq", ".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
DATABASES = (".duckdb", ".db", ".sqlite", ".sqlite3")
TEXTS = {r"^\s*[-+]?\d+(\.\d+)?\s*$": "numbers", r"^\d{4}-\d\d-\d\d": "dates"}  # what a column of texts contains
TREE_ROWS = 2000  # most values of a hierarchy that are sent to a page


def _stamp(path: str) -> list[int]:
    """What changes when a file changes: its time, its size, and which file has the name; [] if there is none."""
    try:
        held = os.stat(path)
    except OSError:
        return []
    return [held.st_mtime_ns, held.st_size, held.st_ino]


def _refuse_changed(source: Mapping[str, Any]) -> None:
    """InputError if the file isn't the one that was opened: its columns may be others than those with roles."""
    if "stamp" in source and _stamp(source["path"]) != source["stamp"]:
        raise shoal.InputError(f"{Path(source['path']).name!r} has changed or moved since you opened it: open it again")


def _roles(source: Mapping[str, Any]) -> Any:
    """The examined table of a source; cached until the file changes."""
    _refuse_changed(source)
    key = repr((source["path"], sorted(_reading(source).items()), _stamp(source["path"])))
    if _looked.get("key") != key:
        _looked.clear()
        _looked.update(key=key, roles=shoal.roles(source["path"], **_reading(source)))
    return _looked["roles"]


def _reading(source: Mapping[str, Any]) -> dict[str, Any]:
    """How to read the file, as keywords."""
    return {n: source[n] for n in ("separator", "encoding", "table", "query") if source.get(n)}


def _data(source: Mapping[str, Any]) -> Any:
    """The path of the file, or its contents if a call can't read it with these options."""
    _refuse_changed(source)
    return _roles(source).table if _reading(source) else source["path"]


def look(tell: Tell, source: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with kind, missing values, number of values, proposed role, and reason.

    And the columns that single people out.
    """
    tell("reading the table", None)
    if Path(source["path"]).suffix.lower() in DATABASES and not (source.get("table") or source.get("query")):
        name = Path(source["path"]).name
        raise shoal.InputError(f"{name!r} is a database: say which table, or give a query, under 'How it is read'")
    if Path(source["path"]).suffix.lower() in ONE_TABLE and source.get("table"):
        name = Path(source["path"]).name
        raise shoal.InputError(f"{name!r} is one table: empty the field 'Table of a database' under 'How it is read'")
    stamp = _stamp(source["path"])
    found = _roles(source)
    columns = [
        {
            "name": c.name, "kind": _kind(found.table[c.name], _notation(c)), "distinct": c.distinct,
            "missing": c.missing, "role": c.role, "reason": c.reason, "warnings": list(c.warnings),
            "measured": c.measured,
            "widths": _widths(found.table[c.name], _notation(c)), "notation": _notation(c),
        }
        for c in found.columns
    ]  # fmt: skip
    pairs = [
        {"columns": list(d.columns), "distinction": d.distinction, "separation": d.separation} for d in found.dangerous
    ]
    return {
        "rows": found.rows, "columns": columns, "dangerous": pairs, "settings": found.settings(),
        "notes": [worded(note) for note in found.notes], "why": found.publish[1], "stamp": stamp,
    }  # fmt: skip


def _kind(series: Any, notation: Mapping[str, str] | None = None) -> str:
    """A column's kind in one word.

    notation  {"decimal": ...} or {"dates": ...} of a column whose texts are numbers or dates in this notation
    """
    kind = str(series.dtype)
    if notation:
        return "numbers as text" if "decimal" in notation else "dates as text"
    if kind.startswith(("Int", "UInt")):
        return "whole numbers"
    if kind.startswith(("Float", "Decimal")):
        return "numbers"
    if kind.startswith("Date"):
        return "dates"
    if kind == "Boolean":
        return "true or false"
    some = series.drop_nulls().head(1000)
    for pattern, word in TEXTS.items():
        if len(some) and some.cast(str, strict=False).str.contains(pattern).all():
            return f"{word} as text"
    return "text"


def _notation(column: Any) -> dict[str, str]:
    """The notation in which a column of texts holds dates or numbers, as settings; {} if it holds none."""
    return {n: v for n, v in (("dates", column.dates), ("decimal", column.decimal)) if v is not None}


def _widths(series: Any, notation: Mapping[str, str] | None = None) -> str:
    """Interval widths for a column of numbers: about sixteen classes, half as many, a quarter; '' for other columns."""
    if "number" not in _kind(series, notation):
        return ""
    if notation:
        series = series.str.replace(notation["decimal"], ".", literal=True)
    numbers = series.cast(float, strict=False).drop_nulls().drop_nans()
    span = numbers.max() - numbers.min() if len(numbers) else 0.0
    if not 1e-9 < span < 1e15:
        return ""
    power = 10.0 ** math.floor(math.log10(span / 16))
    width = next(m * power for m in (1, 2, 5, 10) if m * power >= span / 16)
    if (numbers == numbers.round()).all():
        width = max(width, 2.0)
    widths = [w for w in (width, 2 * width, 4 * width) if w <= max(span, width)]
    return ", ".join(f"{w:.12f}".rstrip("0").rstrip(".") for w in widths)


def rows(tell: Tell, source: Mapping[str, Any], offset: int, limit: int) -> list[dict[str, str]]:
    """Some rows of the table as texts, keyed by the index of the column."""
    part = _roles(source).table.slice(offset, min(limit, 200))
    return [
        {"_row": str(offset + i + 1), **{f"c{j}": "" if v is None else str(v) for j, v in enumerate(row)}}
        for i, row in enumerate(part.iter_rows())
    ]


def singled(tell: Tell, source: Mapping[str, Any], columns: list[str]) -> dict[str, Any]:
    """How many rows the quasi-identifiers identify together."""
    found = _roles(source)
    return {"rows": found.rows, **found.singled_out(columns)}


def pairs(tell: Tell, source: Mapping[str, Any], columns: list[str]) -> list[dict[str, Any]]:
    """Columns, and pairs of the ten columns with most values, that make most rows unique."""
    found = _roles(source)
    many = {c.name: c.distinct for c in found.columns}
    widest = sorted(columns, key=lambda c: -many[c])[:10]
    some = [[c] for c in columns] + [[a, b] for i, a in enumerate(widest) for b in widest[i + 1 :]]
    figures = [{"columns": names, **found.singled_out(names)} for names in some]
    return sorted(figures, key=lambda f: (-f["alone"], -f["combinations"]))[:8]


def counts(tell: Tell, source: Mapping[str, Any], column: str) -> list[list[Any]]:
    """Every value of a column with its number of rows."""
    return [[value, many] for value, many in _roles(source).counts(column)]


def tree(tell: Tell, source: Mapping[str, Any], column: str, hierarchy: Any) -> dict[str, Any]:
    """A hierarchy of a column's values: its rows (value, class, ...), and the table's rows with each value.

    If it lacks values of the column: these, for the page, and the refusal, which shows none.
    """
    try:
        table, held = _tree(source, column, hierarchy)
    except shoal.ShoalError as error:
        values = [(v, n) for v, n in _roles(source).counts(column) if v is not None]
        lost = _hierarchy(hierarchy, values).lacks([v for v, _ in values])
        if not lost:
            raise
        return {"rows": [], "lacks": lost[:TREE_ROWS], "all": len(lost), "refused": in_fields(error)}
    return {
        "rows": table[:TREE_ROWS], "counts": held[:TREE_ROWS], "all": len(table), "total": _roles(source).rows,
    }  # fmt: skip


def _tree(source: Mapping[str, Any], column: str, hierarchy: Any) -> tuple[list[list[str]], list[int]]:
    """The rows of a hierarchy for a column's values, and the number of the table's rows with each value."""
    found = _roles(source)
    values = found.counts(column)
    made = _hierarchy(hierarchy, [(v, n) for v, n in values if v is not None])
    read = next(c.read for c in found.columns if c.name == column)
    resolved = made.resolve([v for v, _ in values], column, read)
    present = [(i, n) for i, (v, n) in enumerate(values) if v is not None]
    table = [[resolved.labels[h][resolved.node[h][i]] for h in range(len(resolved.labels))] for i, _ in present]
    return table, [n for _, n in present]


def save_tree(
    tell: Tell, path: str, rows: list[list[str]] | None, source: Mapping[str, Any], column: str, hierarchy: Any
) -> dict[str, Any]:
    """Write a hierarchy as an ARX file, and check that it reads back unchanged.

    rows  the edited rows; None for the complete hierarchy of the column, also if the page shows only a part of it
    """
    rows = _tree(source, column, hierarchy)[0] if rows is None else rows
    made = shoal.Hierarchy.of([list(row) for row in rows])
    text = "".join(";".join(_field(x) for x in row) + "\n" for row in rows)
    place = Path(path)
    closed = place.with_name(f".{place.name}.part")
    with open(new_file(closed), "w", encoding="utf-8") as file:
        file.write(text)
    if shoal.Hierarchy.of(closed) != made:
        closed.unlink()
        raise shoal.InputError("this hierarchy cannot be written as a file: a label holds a line break")
    closed.replace(place)
    return {"path": str(place), "levels": len(rows[0]) if rows else 0}


def _field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if any(c in text for c in ';",\t\n\r') or text != text.strip() else text


def _hierarchy(asked: Any, values: list[tuple[str, int]]) -> Any:
    """A hierarchy from a wizard's settings: a path or builder, rows, or a builder that uses the counts."""
    if isinstance(asked, Mapping) and asked.get("by") == "bins":
        return shoal.Hierarchy.of(_bins(values, int(asked["k"])))
    if isinstance(asked, Mapping) and asked.get("by") == "frequency":
        return shoal.Hierarchy.of(_by_frequency(values, float(asked["share"])))
    if isinstance(asked, Mapping) and asked.get("by") == "order":
        return shoal.Hierarchy.of(_by_order(values, int(asked["size"])))
    return shoal.Hierarchy.of(asked)


def _bins(values: list[tuple[str, int]], k: int) -> list[list[str]]:
    """Values in classes of at least k rows with the least possible largest class (min-max bin covering)."""
    answer = shoal.labels.cover([n for _, n in values], k)
    names: dict[int, list[str]] = {}
    for (value, _), label in zip(values, answer.labels, strict=True):
        names.setdefault(int(label), []).append(value)
    titles = {label: _title(held) for label, held in names.items()}
    return [[v, titles[int(label)], "*"] for (v, _), label in zip(values, answer.labels, strict=True)]


def _by_frequency(values: list[tuple[str, int]], share: float) -> list[list[str]]:
    """Values with less than a share of the rows become one class; the others stay unchanged."""
    total = sum(n for _, n in values)
    rare = {v for v, n in values if n < share * total}
    name = "other"
    while name in {v for v, _ in values}:
        name += "_"
    return [[v, name if v in rare else v, "*"] for v, _ in values]


def _by_order(values: list[tuple[str, int]], size: int) -> list[list[str]]:
    """Classes of ``size`` consecutive values in the values' own order."""
    blocks = [values[i : i + size] for i in range(0, len(values), size)]
    titles = [b[0][0] if len(b) == 1 else f"{b[0][0]} to {b[-1][0]}" for b in blocks]
    return [[v, title, "*"] for block, title in zip(blocks, titles, strict=True) for v, _ in block]


def _title(held: list[str]) -> str:
    return " | ".join(held) if len(held) <= 3 else f"{held[0]} and {len(held) - 1} more"


def release(
    tell: Tell, source: Mapping[str, Any], settings: Mapping[str, Any], folder: str, name: str, secret: str | None
) -> dict[str, Any]:
    """Make a release, verify the written bytes, and verify the files again; with certificate, record, and report."""
    given = {**settings}
    key = None if secret is None else Path(secret).read_bytes()
    _refuse_changed(source)
    made = shoal.anonymize(source["path"], given, secret=key, progress=tell, **_reading(source))
    _refuse_changed(source)  # it could change while it was read
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    out = place / name
    tell("writing and reading back", None)
    certificate = made.write(out)
    page = made.report(place / f"{out.stem}.report.html")
    tell("verifying once more", None)
    again = shoal.verify(out, certificate, hierarchies=_close(settings))
    facts = made.as_dict()
    changed = {n: int(made.facts.changed[n]) for n in made.facts.changed}
    return {
        "facts": facts, "changed": changed, "seed": made.policy.seed, "output": str(out),
        "certificate": str(certificate), "report": str(page), "verified": bool(again.holds),
        "before": dict(made.facts.before), "notes": [*made.facts.notes],
    }  # fmt: skip


def _trees(settings: Mapping[str, Any]) -> Any:
    """The hierarchies needed to read a release; their files aren't next to its certificate."""
    return settings.get("hierarchies") if settings.get("publish") == "hierarchy" else _close(settings)


def _close(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The hierarchies that say which sensitive values are close; a certificate only names their files."""
    return sensitive_trees(settings) or None


def groups(
    tell: Tell, source: Mapping[str, Any], release: str, settings: Mapping[str, Any], number: int
) -> dict[str, Any]:
    """One equivalence class of a release, by its rank in ascending size, and the table's rows that fit it.

    before   rows of the table whose values the class's cells cover: its own rows, and possibly others
    """
    import polars as pl

    found, table = shoal.roles(release).table, _roles(source).table
    key = [c for c in settings["quasi_identifiers"] if c in found.columns]
    short = [f"c{i}" for i in range(len(key))]  # "*" would select all columns
    shown = pl.DataFrame([found[n].alias(c) for n, c in zip(key, short, strict=True)])
    sizes = shown.group_by(short).agg(pl.len().alias("_rows")).sort("_rows", *short)
    at = max(0, min(number, sizes.height - 1))
    one = sizes.slice(at, 1).drop("_rows")
    rows = shown.with_row_index("_row").join(one, on=short, how="semi", nulls_equal=True)["_row"]
    held, first = found[rows.head(50)], rows[0]
    decoded = shoal.decode(release, hierarchies=_trees(settings))
    for column in key:
        members = decoded.members(column)[first]
        values = table[column].cast(pl.String).unique()
        fits = [value for value in values.to_list() if value in members]
        table = table.filter(table[column].cast(pl.String).is_in(fits, nulls_equal=True))
    before = table[[c for c in found.columns if c in table.columns]]
    return {
        "columns": held.columns, "rows": _texts(held), "number": at, "classes": sizes.height,
        "size": int(sizes["_rows"][at]), "fit": before.height, "before": _texts(before.head(50)),
        "before_columns": before.columns,
    }  # fmt: skip


def _texts(frame: Any) -> list[list[str]]:
    return [["" if v is None else str(v) for v in row] for row in frame.iter_rows()]


def distributions(tell: Tell, source: Mapping[str, Any], release: str, column: str) -> dict[str, Any]:
    """The frequency of every text of a column before and after, the most frequent first."""
    import polars as pl

    def held(table: pl.DataFrame) -> list[list[Any]]:
        texts = table[column].cast(pl.String).fill_null("missing").alias("text").value_counts(sort=True).head(40)
        return [[str(v), int(n)] for v, n in texts.iter_rows()]

    after = shoal.roles(release).table
    return {"before": held(_roles(source).table), "after": held(after) if column in after.columns else []}


def heat(tell: Tell, source: Mapping[str, Any], release: str | None, columns: list[str]) -> dict[str, Any]:
    """Rows for each pair of texts of two columns, the 20 most frequent of each; in the table, or in a release."""
    import polars as pl

    table = _roles(source).table if release is None else shoal.roles(release).table
    if lacks := [c for c in columns if c not in table.columns]:
        raise shoal.InputError(f"the release has no column {lacks[0]!r}: it was removed; choose another column")
    a, b = columns
    pair = pl.DataFrame({n: table[c].cast(pl.String).fill_null("missing") for n, c in (("a", a), ("b", b))})
    tops = [pair[n].value_counts(sort=True).head(20)[n].to_list() for n in ("a", "b")]
    kept = pair.filter(pl.col("a").is_in(tops[0]) & pl.col("b").is_in(tops[1])).group_by("a", "b").len()
    at = [{v: i for i, v in enumerate(top)} for top in tops]
    return {"a": tops[0], "b": tops[1], "cells": [[at[0][x], at[1][y], int(n)] for x, y, n in kept.iter_rows()]}


def explore(tell: Tell, source: Mapping[str, Any], settings: Mapping[str, Any], grid: Mapping[str, Any]) -> Any:
    """Explore a grid of requests; every point is sent when it is found, so that a stop loses none."""
    from dataclasses import asdict

    def each(point: Any) -> None:
        tell("point", asdict(point))  # type: ignore[arg-type]

    given = {name: value for name, value in settings.items() if name not in ("k", "l", "publish", "seed")}
    given = {**given, "effort": "fast", "k": grid["k"][0]}
    if "alpha_k" in given:  # the grid's k replaces the k of (alpha,k)-anonymity
        given["alpha_k"] = [given["alpha_k"][0], 1]
    steps = given.pop("range_step", None)
    if "ranges" in grid["publish"] and steps:
        given["range_step"] = steps
    if "hierarchy" in grid["publish"]:
        given["publish"] = "hierarchy"
    else:
        given.pop("hierarchies", None)
    range_step = {"range_step": given.pop("range_step")} if "range_step" in given else {}
    found = shoal.explore(
        _data(source), given, **grid, **range_step, progress=tell, each=each
    )  # fmt: skip
    return found.as_dict()


def attack(tell: Tell, source: Mapping[str, Any], release: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an intruder reaches on a release, compared with what is possible without it; figures of the original."""
    tell("attacking the release", None)
    return shoal.attack(release, _data(source), hierarchies=_trees(settings)).as_dict()


def places(tell: Tell, source: Mapping[str, Any], x: str, y: str, way: str, k: int, degrees: bool) -> dict[str, Any]:
    """Tiles or clusters of points: how many, their cost, and up to 4,000 points to draw.

    degrees  whether x and y are longitude and latitude, so that distances are kilometers
    """
    import numpy as np
    import polars as pl

    tell("grouping the points", None)
    columns = [_roles(source).table[n].cast(pl.Float64, strict=False) for n in (x, y)]
    points = np.stack([c.to_numpy() for c in columns], axis=1)
    points = points[np.isfinite(points).all(axis=1)]
    boxes: list[list[float]] = []
    answer: Any
    if way == "tiles":
        answer = shoal.tiles.split(points, k, coordinates="geographic" if degrees else "projected")
        boxes = np.asarray(answer.bounds).tolist()
    else:
        answer = shoal.gathering.gather(points[:, ::-1], k, metric="great-circle" if degrees else "euclidean")
    labels = np.asarray(answer.labels)
    held = np.bincount(labels[labels >= 0])
    drawn = np.random.default_rng(0).permutation(len(points))[:4000]
    return {
        "groups": int((held > 0).sum()), "smallest": int(held[held > 0].min()), "points": len(points),
        "cost": float(answer.certificate.cost), "bound": float(answer.certificate.lower_bound),
        "unit": answer.certificate.unit, "boxes": boxes[:3000], "shown": len(drawn),
        "sample": [[float(points[i, 0]), float(points[i, 1]), int(labels[i])] for i in drawn],
    }  # fmt: skip


def regions(
    tell: Tell, areas: str, folder: str, weight: str, name: str, layer: str, k: list[int], edges: str, stem: str
) -> dict[str, Any]:
    """Merge neighboring areas as ``shoal regions`` does: figures, maps that open offline, and the hierarchy.

    areas   polygons, or a table with a row per area and a file of ``edges``
    k       least weights, ascending
    """
    tell("merging the areas", None)
    place = Path(folder)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    tree, page = place / f"{stem}.hierarchy.csv", place / f"{stem}.map.html"
    words = ["regions", areas, *([edges] if edges else []), "--weight", weight, "--k", str(k[0]), "--seed", "0"]
    words += ["--id", name] if name else []
    words += ["--layer", layer] if layer else []
    words += ["--levels", ",".join(map(str, k[1:]))] if k[1:] else []

    def into(*files: str) -> list[str]:
        return ["-o", files[0], "--hierarchy", files[1], *([] if edges else ["--map", files[2]])]

    try:
        facts = _command([*words, *into(str(place / f"{stem}.csv"), str(tree), str(page))])
    except shoal.InputError as error:
        raise shoal.InputError(error.sentence.worded(_of_areas)) from None
    pages = [page, *(place / f"{stem}.map.level{i}.html" for i in range(2, len(k) + 1))]
    found = {n: facts[n] for n in ("areas", "regions", "regions_at_most", "smallest", "largest")}
    maps = [str(p) for p in pages if p.is_file()]
    again = shlex.join(["shoal", *words, *into("regions.csv", "regions.hierarchy.csv", "regions.html")])
    return {**found, "left_out": len(facts["left_out"]), "hierarchy": str(tree), "maps": maps, "k": k, "command": again}


FIELDS = {  # a setting of the command that the page runs -> the field for it
    "id": "the field 'Column that names an area'", "weight": "the field 'Column with the people of an area'",
    "k": "the field 'Least people in a region'", "layer": "the field 'Layer of the map'",
    "shapes": "a map in the field 'Path of the areas'",
}  # fmt: skip


def _of_areas(named: Any) -> str:
    """A setting of the command as a field of the page, with the value that the sentence proposes."""
    value = named.value or ""
    return FIELDS.get(named.name, named.text) + (f": {value.strip(value[0])}" if value[:1] in ("'", '"') else "")


def _command(words: list[str]) -> Any:
    """A command's JSON output; InputError with its sentence and the settings marked in it, if it refuses."""
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *words, "--json"], capture_output=True, text=True, check=False
    )
    facts = json.loads(done.stdout)
    if done.returncode:
        raise shoal.InputError(facts["error"]["marked"])
    return facts


def months(tell: Tell, folder: str) -> dict[str, Any]:
    """The contents of a series: its mode, its people, whether verification passes, and the figures of every part."""
    series = shoal.Series(folder)
    facts = series.status()
    tell("verifying every month", None)
    holds = bool(series.verify().holds) if facts["parts"] else True
    parts = []
    for number in range(1, facts["parts"] + 1):
        place = Path(folder, f"{number:04}")
        files = {"release": str(place / "release.csv"), "certificate": str(place / "release.certificate.json")}
        held = json.loads(Path(files["certificate"]).read_text("utf-8"))
        parts.append({
            "number": number, "files": files, "digests": digests(files), "rows": held["release"]["rows"],
            "groups": held["groups"], "smallest": held["smallest_group"], "loss": round(held["loss"]["ncp"], 4),
            "made_up": held["series"]["made_up"],
        })  # fmt: skip
    return {
        "mode": facts["mode"],
        "people": facts["people"],
        "waiting": facts["waiting"],
        "holds": holds,
        "parts": parts,
    }


def begin(tell: Tell, folder: str, settings: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Start a new series that requests for every month what was requested for this table."""
    shoal.Series.start(folder, shoal.Policy.of(settings), mode=mode)
    return months(tell, folder)


def add_month(
    tell: Tell, source: Mapping[str, Any], folder: str, person: str | None, other_people: bool = False
) -> dict[str, Any]:
    """Add the table as the next part of a series; completely or not at all."""
    named = {n: v for n, v in _reading(source).items() if n in ("separator", "encoding")}
    _refuse_changed(source)
    data = _roles(source).table if source.get("table") or source.get("query") else source["path"]
    shoal.Series(folder).add(data, person=person, other_people=other_people, progress=tell, **named)
    return months(tell, folder)


def arx(tell: Tell, path: str, folder: str) -> dict[str, Any]:
    """The request of an ARX project as ``shoal init`` reads it; its hierarchies are written into a folder."""
    policy = Path(folder, "policy.toml")
    policy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = _command(["init", path, "-o", str(policy)])
    settings = tomllib.loads(policy.read_text("utf-8"))
    held = settings.get("hierarchies", {})
    settings["hierarchies"] = {name: str(policy.parent / file) for name, file in held.items()}
    models = settings.pop("privacy")
    settings["k"] = next(m["k"] for m in models if m["model"] == "KAnonymity")
    by_column = {m["column"]: m["l"] for m in models if m["model"] == "DistinctLDiversity"}
    if set(by_column) == set(settings["sensitive"]) and len(set(by_column.values())) == 1:
        settings["distinct_l"] = next(iter(by_column.values()))  # the same for every sensitive column
    else:
        settings["privacy"] = [m for m in models if m["model"] != "KAnonymity"]
    return {"settings": {n: v for n, v in settings.items() if v not in ([], {})}, "not_read": facts["not_read"]}


def demo(tell: Tell, path: str) -> dict[str, Any]:
    """Write the survey that the installed package contains as a CSV."""
    shoal.fair_survey().write_csv(path)
    return {"path": path}


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (
        look, rows, singled, pairs, counts, tree, save_tree, release, groups, distributions, heat, explore, attack,
        places, regions, months, begin, add_month, arx, demo,
    )
}  # fmt: skip


class JobError(Exception):
    """A job was refused. The message states the reason to the user; status is the exit status of the command line."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Stopped(JobError):
    """A job was stopped by the user."""

    def __init__(self) -> None:
        super().__init__("stopped; nothing was written", 130)


class Worker:
    """One child process, which starts at the first job and again after every stop. It runs one job at a time.

    Temporary files of a job are in the server's private folder, which is removed also after a stop.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._stopped = False
        self._asked = 0

    async def start(self) -> asyncio.subprocess.Process:
        """The running child process."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "shoal.workbench.jobs",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                limit=1 << 28, start_new_session=True,
                env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), tempfile.gettempdir())},
            )  # fmt: skip
        return self._process

    async def ask(self, job: str, progress: Progress | None = None, **arguments: Any) -> Any:
        """The answer of a job; JobError if it is refused, Stopped if it is stopped."""
        async with self._lock:
            self._stopped = False
            self._asked += 1
            child = await self.start()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(json.dumps([self._asked, job, arguments]).encode() + b"\n")
                await child.stdin.drain()
                while line := await child.stdout.readline():
                    number, what, value = json.loads(line)
                    if number != self._asked:  # the answer to a job whose window was closed
                        continue
                    if what == "told":
                        if progress is not None:
                            progress(*value)
                    elif what == "answer":
                        return value
                    else:
                        raise JobError(*value)
            except (BrokenPipeError, ConnectionResetError):
                pass
            if self._stopped:
                raise Stopped
            raise JobError("the process that did the work ended; nothing was written. Perhaps memory ran out", 1)

    def stop(self) -> None:
        """End the running job at once; the next job starts a new child."""
        if self._process is not None and self._process.returncode is None:
            self._stopped = True
            self._process.kill()

    async def close(self) -> None:
        """End the child and wait for it."""
        self.stop()
        if self._process is not None:
            await self._process.wait()


def _plain(value: Any) -> Any:
    """Convert values that JSON can't represent: numpy numbers, paths, tuples as keys."""
    return value.item() if hasattr(value, "item") else str(value)


def _serve() -> None:
    """The child's main loop: one job per line, until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output of libraries must not mix with the answers

    def send(what: str, value: Any) -> None:
        out.write(json.dumps([number, what, value], default=_plain) + "\n")
        out.flush()

    for line in sys.stdin:
        number, job, arguments = json.loads(line)
        try:
            send("answer", JOBS[job](lambda words, share=None: send("told", [words, share]), **arguments))
        except Exception as error:  # the page shows it; our messages contain no rows, and others are withheld
            if isinstance(error, shoal.ShoalError):
                send("refused", [in_fields(error), error.exit_status])
            elif isinstance(error, OSError):
                send("refused", [error.strerror or type(error).__name__, 2])
            elif type(error).__module__.startswith(("duckdb", "_duckdb")):  # its message may quote a value
                send("refused", [f"DuckDB cannot answer the query ({type(error).__name__}): correct the query under "
                                 "'How it is read', and open the table again", 2])  # fmt: skip
            else:
                send("refused", [f"{type(error).__name__}: this is a defect of shoal, please report it", 1])


if __name__ == "__main__":
    _serve()
