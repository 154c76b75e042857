"""``shoal labels`` and ``shoal intervals``: a column in, a crosswalk from values to groups out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, working

if TYPE_CHECKING:
    import polars as pl

    from shoal import Certificate


@dataclass(frozen=True, slots=True)
class Grouped:
    """Distinct values, the group of each, and for each group its name and its records."""

    title: str
    what: str
    values: list[Any]
    groups: list[int]
    shown: list[str]
    loads: list[int]
    k: int
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class Files:
    """What to write, where asked for."""

    crosswalk: Path | None
    hierarchy: Path | None
    certificate: Path | None
    picture: Path | None

    def check(self, read: Iterable[Path | None], force: bool) -> int:
        """Refuse targets that would do harm; returns the permission bits no output may have."""
        from shoal.engines.targets import DRAWING, JSON, TABLE, check_outputs

        wanted = [(self.crosswalk, TABLE), (self.hierarchy, TABLE), (self.certificate, JSON), (self.picture, DRAWING)]
        return check_outputs(wanted, read, overwrite=force)


INPUT = typer.Argument(..., help="CSV (also .gz), Parquet or Excel.")
COUNT = typer.Option(None, "--count", help="Column with the records of each line; without it every line is one record.")
LEAST = typer.Option(..., "--k", help="Least records of a group.")
NAMES = typer.Option(None, "--names", help="Your own group names, one per line of this file.")
LEVELS = typer.Option(None, "--levels", help="Further k for a hierarchy, ascending: 50,500.")
HIERARCHY = typer.Option(None, "--hierarchy", help="Write the groups of k and --levels as an ARX-style hierarchy.")
OUTPUT = typer.Option(None, "-o", "--output", help="Crosswalk: value, group, group_label, group_count.")
CERTIFICATE = typer.Option(None, "--certificate", help="Write the certificate as JSON.")
PICTURE = typer.Option(None, "--picture", help="Draw the groups against k, as SVG.")
SEPARATOR = typer.Option(None, "--separator", help="Column separator of a CSV, told by default.")
ENCODING = typer.Option(None, "--encoding", help="Of a CSV: utf-8 (default) or latin-1.")
FORCE = typer.Option(False, "--force", help="Replace outputs that exist.")
AS_JSON = typer.Option(False, "--json", help="One JSON object on standard output.")


@app.command()
def labels(
    table: Path = INPUT,
    label: str = typer.Option(..., "--label", help="Column of labels to group."),
    count: str | None = COUNT,
    k: int = LEAST,
    method: str = typer.Option("auto", help="auto, fold, spread, five_halves, scheme, bicriteria or exact."),
    order: str = typer.Option("sorted", help="Of fold and spread: sorted, given or random."),
    seed: int | None = typer.Option(None, help="For --order random."),
    epsilon: float = typer.Option(0.5, help="Of scheme and bicriteria."),
    time_limit: float = typer.Option(60.0, "--time-limit", help="Seconds for exact."),
    naming: str = typer.Option("ends", help="Group labels: ends, largest or numbers."),
    names: Path | None = NAMES,
    levels: str | None = LEVELS,
    hierarchy: Path | None = HIERARCHY,
    output: Path | None = OUTPUT,
    certificate: Path | None = CERTIFICATE,
    picture: Path | None = PICTURE,
    separator: str | None = SEPARATOR,
    encoding: str | None = ENCODING,
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Group labels so that each group counts at least k and the largest as little as possible."""
    import shoal

    begun = time.perf_counter()
    files = Files(output, hierarchy, certificate, picture)
    closed = files.check((table, names), force)
    values, counts = _tally(table, label, count, separator, encoding)
    read = time.perf_counter()
    if method == "bicriteria" and (output or hierarchy):
        raise shoal.PolicyError(
            "groups of method 'bicriteria' may be below k: not k-anonymous, so no crosswalk or hierarchy is written; "
            "use --method auto"
        )
    with working(f"grouping {len(values):,} labels"):
        found = shoal.labels.cover(counts, k, method, order=order, seed=seed, epsilon=epsilon, time_limit=time_limit)
    solved = time.perf_counter()
    shown = _own_names(names, len(found.loads)) or shoal.labels.group_labels(values, found.labels, counts, naming)
    rows = None
    if hierarchy:
        rows = shoal.labels.levels(values, counts, _ks(k, levels), method if method != "exact" else "auto", naming)
    payload = {"k_anonymous": found.anonymous, "method": method}
    groups = found.labels.tolist()
    loads = found.loads.tolist()
    grouped = Grouped(f"{label} in groups of {k:,}", "labels", values, groups, shown, loads, k, found.certificate)
    _finish(grouped, payload, (files, closed), rows, (begun, read, solved), as_json)


@app.command()
def intervals(
    table: Path = INPUT,
    value: str = typer.Option(
        ..., "--value", help="Column of ordered values: numbers, dates (year-month-day) or text."
    ),
    count: str | None = COUNT,
    k: int = LEAST,
    objective: str = typer.Option("max", help="max, squares or range."),
    names: Path | None = NAMES,
    levels: str | None = LEVELS,
    hierarchy: Path | None = HIERARCHY,
    output: Path | None = OUTPUT,
    certificate: Path | None = CERTIFICATE,
    picture: Path | None = PICTURE,
    separator: str | None = SEPARATOR,
    encoding: str | None = ENCODING,
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Cut ordered values into intervals of at least k records each, at the least possible cost."""
    import numpy as np

    import shoal

    begun = time.perf_counter()
    files = Files(output, hierarchy, certificate, picture)
    closed = files.check((table, names), force)
    values, counts = _tally(table, value, count, separator, encoding)
    if any(v is None for v in values):
        raise shoal.InputError(
            f"column {value!r} has missing values, which have no place in an order; fill or drop them"
        )
    ordered = _ordered(values, value)
    rank = np.argsort(ordered, kind="stable")
    values, counts, ordered = ([column[i] for i in rank.tolist()] for column in (values, counts, ordered))
    read = time.perf_counter()
    with working(f"cutting {len(values):,} values"):
        found = shoal.intervals.cut(ordered, counts, k, objective)
    solved = time.perf_counter()
    shown = _own_names(names, len(found.loads)) or shoal.intervals.interval_labels(found.lows, found.highs)
    rows = None
    if hierarchy:
        rows = shoal.intervals.levels(ordered, counts, _ks(k, levels), objective, [str(v) for v in values])
    payload = {"k_anonymous": True, "method": f"dynamic program for {objective}", "objective": objective}
    groups = found.labels.tolist()
    loads = found.loads.tolist()
    grouped = Grouped(f"{value} in intervals of {k:,}", "values", values, groups, shown, loads, k, found.certificate)
    _finish(grouped, payload, (files, closed), rows, (begun, read, solved), as_json)


def _tally(
    table: Path, name: str, count: str | None, separator: str | None, encoding: str | None
) -> tuple[list[Any], Any]:
    """Distinct values in order of appearance, and the records of each."""
    import polars as pl

    from shoal.engines.files import column, integers, read_table
    from shoal.errors import InputError

    frame = read_table(table, separator=separator, encoding=encoding)
    values = column(frame, name).alias("value")
    if count is None:
        found = values.to_frame().group_by("value", maintain_order=True).len()
        return found["value"].to_list(), found["len"].cast(pl.Int64).to_numpy()
    weights = column(frame, count)
    if weights.dtype == pl.String:
        weights = weights.str.strip_chars()
    numbers = weights.cast(pl.Int64, strict=False)
    exact = not numbers.is_null().any() and not (weights.dtype.is_float() and (weights != numbers).any())
    if exact and not (numbers < 0).any() and not (numbers > (1 << 62) // max(len(numbers), 1)).any():
        both = pl.DataFrame({"value": values, "count": numbers})
        found = both.group_by("value", maintain_order=True).agg(pl.col("count").sum())
        return found["value"].to_list(), found["count"].to_numpy()
    sums: dict[Any, int] = {}
    for value, number in zip(values.to_list(), integers(frame, count), strict=True):
        if number < 0:
            raise InputError(f"column {count!r} has a number below 0; a count is at least 0")
        sums[value] = sums.get(value, 0) + number
    return list(sums), list(sums.values())


def _ordered(values: list[Any], name: str) -> Any:
    """Text as numbers or dates where all of it is, other text as it stands; InputError where it is only mostly so."""
    import numpy as np

    from shoal.errors import InputError

    if not all(isinstance(v, str) for v in values):
        return values
    readers: list[tuple[str, Callable[[str], Any]]] = [
        ("numbers", int),
        ("numbers", float),
        ("dates", lambda v: np.datetime64(v.strip(), "D")),
    ]
    for kind, read in readers:
        found, odd = [], []
        for v in values:
            try:
                found.append(read(v))
            except ValueError:
                odd.append(v)
        if not odd:
            return found
        if read is not int and len(found) > len(odd):
            raise InputError(
                f"column {name!r} holds {kind}, and {len(odd):,} of its {len(values):,} different values are none; "
                "repair them or leave their rows out"
            )
    return values


def _ks(k: int, levels: str | None) -> list[int]:
    from shoal.errors import PolicyError

    try:
        return [k, *(int(part) for part in (levels or "").split(",") if part.strip())]
    except ValueError:
        raise PolicyError(f"--levels {levels!r} is not a list of whole numbers such as 50,500") from None


def _own_names(path: Path | None, groups: int) -> list[str]:
    from shoal.errors import InputError

    if path is None:
        return []
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(names) < groups or len(set(names[:groups])) < groups:
        raise InputError(f"{str(path)!r} has {len(set(names))} different names, {groups} groups need one each")
    return names[:groups]


def _finish(
    grouped: Grouped,
    payload: dict[str, Any],
    to: tuple[Files, int],
    rows: Iterable[list[str]] | None,
    clock: tuple[float, float, float],
    as_json: bool,
) -> None:
    """Write what was asked for and print the answer."""
    from shoal.cli.bins_picture import as_svg, as_text
    from shoal.engines.atomic import publish_text
    from shoal.engines.store import write_table

    (files, closed), loads, k, proof = to, grouped.loads, grouped.k, grouped.certificate
    if files.crosswalk:
        write_table(_crosswalk(grouped), files.crosswalk, closed=closed)
    if rows is not None and files.hierarchy:
        publish_text(files.hierarchy, _lines(sorted(rows)), closed=closed)
    if files.certificate:
        publish_text(files.certificate, proof.to_json() + "\n", closed=closed)
    if files.picture:
        bound = int(proof.lower_bound) if proof.unit.startswith("records in") else None
        publish_text(files.picture, as_svg(loads, k, bound, grouped.title), closed=closed)
    begun, read, solved = clock
    seconds = {"read": read - begun, "solve": solved - read, "write": time.perf_counter() - solved}
    size = f"{len(grouped.values):,} {grouped.what}, {sum(loads):,} records"
    payload = {
        grouped.what: len(grouped.values),
        "records": sum(loads),
        "groups": len(loads),
        "smallest_group": min(loads),
        "largest_group": max(loads),
        "k": k,
        **payload,
        "cost": proof.cost,
        "certificate": proof.as_dict(),
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "output": str(files.crosswalk) if files.crosswalk else None,
        **({"hierarchy": str(files.hierarchy)} if files.hierarchy else {}),
        **({"picture": str(files.picture)} if files.picture else {}),
    }
    proved = "the least possible" if proof.optimal else f"no answer costs less than {proof.lower_bound:,}"
    if proof.ratio is not None and not proof.optimal:
        proved += f", so at most {float(proof.ratio):.6g} times the least"
    lines = [
        f"{size}, {len(loads):,} groups of {min(loads):,} to {max(loads):,}",
        f"cost {proof.cost:,} {proof.unit}: {proved}",
        f"because {proof.bound}",
        *as_text(loads, k),
    ]
    if "warning" in proof.details:
        lines.append(str(proof.details["warning"]))
    written = (files.crosswalk, files.hierarchy, files.certificate, files.picture)
    answer(payload, [*lines, *(f"wrote {path}" for path in written if path)], as_json)


def _crosswalk(grouped: Grouped) -> pl.DataFrame:
    """One row per value, by group and value (values of an ordered column come in their order)."""
    import polars as pl

    loads: list[Any] = grouped.loads
    if max(loads) >= 1 << 63:
        loads = [str(load) for load in loads]
    index = pl.Series("group", grouped.groups, dtype=pl.Int64)
    frame = pl.DataFrame(
        {
            "value": grouped.values,
            "group": index,
            "group_label": pl.Series(grouped.shown, dtype=pl.String).gather(index),
            "group_count": pl.Series(loads).gather(index),
        }
    )
    return frame.sort("group", maintain_order=True) if grouped.what == "values" else frame.sort("group", "value")


def _lines(rows: Iterable[list[str]]) -> str:
    """Rows of an ARX-style hierarchy."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()
