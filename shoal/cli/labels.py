"""``shoal labels`` and ``shoal intervals``: read a column, and write a crosswalk from its values to groups."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, further_levels, pairs, put, reported, seconds, working
from shoal.cli.options import (
    DATES,
    DECIMAL,
    FORCE,
    JSON_,
    REPORT,
    Decision,
    OutputFiles,
    Text,
    conditions,
    flag,
    keywords,
    with_options,
)
from shoal.errors import InputError, PolicyError, within
from shoal.model.cards import floored, number, several, times
from shoal.model.conditions import INTERVAL_CONDITIONS, LABEL_CONDITIONS
from shoal.paths import DRAWING, PAGE, TABLE, kind_of

if TYPE_CHECKING:
    import polars as pl

    from shoal import Crosswalk


class GroupingFiles(NamedTuple):
    """The files to write; levels are those of the hierarchy."""

    output: Path | None = flag(None, "-o", "--output", "Crosswalk: value, group, group_label, group_count.")
    certificate: Path | None = flag(None, "--certificate", "Its certificate; next to the crosswalk by default.")
    hierarchy: Path | None = flag(None, "--hierarchy", "Output file: groups of --k and --levels as an ARX hierarchy.")
    levels: str | None = flag(None, "--levels", "Further k for a hierarchy, ascending: 50,500.")
    picture: Path | None = flag(None, "--plot", "--picture", "Draw the groups against k, as SVG.")
    report: Path | None = REPORT
    force: bool = FORCE

    def reads(self, table: Path, names: Path | None, text: Text, kept: OutputFiles) -> pl.DataFrame:
        """Refuses harmful output paths, and options without the file that they are about; then reads the table."""
        from shoal.cli.unchanged import check_files
        from shoal.engines.store import read_table

        if self.levels is not None and self.hierarchy is None:
            raise PolicyError("--levels needs --hierarchy FILE, the file to which the levels are written")
        wanted = [(self.output, TABLE), (self.hierarchy, TABLE), (self.picture, DRAWING), (self.report, PAGE)]
        check_files(wanted, self.output, self.certificate, (table, names), kept, self.force)
        if names is not None and self.hierarchy is not None and self.output is None and self.report is None:
            raise PolicyError(
                "--names names the groups of the crosswalk, and a hierarchy names its groups by their values; write "
                "the crosswalk too, with -o FILE, or leave --names out"
            )
        return read_table(table, **text._asdict())


INPUT = typer.Argument(..., help="CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS.")
NAMES = flag(None, "--names", "File with your own group names, one in each line.")


class LabelSearch(NamedTuple):
    """How labels are grouped; see ``shoal.labels.cover``."""

    method: str = flag("auto", "auto, fold, spread, five_halves, scheme, bicriteria or exact.")
    order: str = flag("sorted", "For fold and spread: sorted, given, or random.")
    seed: int | None = flag(None, "Seed for --order random.")
    epsilon: float = flag(0.5, "Precision of the methods scheme and bicriteria.")
    effort: str = flag("balanced", "For auto and exact: fast, balanced, thorough, or seconds at most.")


@app.command()
@with_options
def labels(
    table: Path = INPUT,
    label: str = flag(..., "--label", "Column of labels to group."),
    asked: dict[str, Any] = conditions(LABEL_CONDITIONS, "k"),
    names: Path | None = NAMES,
    how: LabelSearch = LabelSearch(),
    naming: str = flag("ends", "Group labels: ends, largest or numbers."),
    files: GroupingFiles = GroupingFiles(),
    kept: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    text: Text = Text(),
    as_json: bool = JSON_,
) -> None:
    """Group labels so that each group counts at least k and the largest group is as small as possible."""
    import shoal
    from shoal.publishing.crosswalks.grouped import tally

    clock, files = [time.perf_counter()], files._replace(report=decision.page(files.report))
    frame = files.reads(table, names, text, kept)
    if files.output is None or kind_of(files.output) != "parquet":
        frame = _one_empty(frame, label)
    values, counts = tally(frame, label, asked.get("count"))
    clock.append(time.perf_counter())
    with working(f"grouping {len(values):,} labels"):
        found = shoal.labels.cover(counts, **keywords(LABEL_CONDITIONS, asked), **how._asdict())
    clock.append(time.perf_counter())
    made = shoal.release(
        found,
        frame,
        read=(table, names),
        label=label,
        naming=naming if names is None or files.hierarchy is None else "ends",  # that of the hierarchy's groups
        count=asked.get("count"),
        names=_read_lines(names),
    )

    def tree(ks: list[int]) -> Iterable[list[str]]:
        return shoal.labels.levels(values, counts, ks, how.method if how.method != "exact" else "auto", naming)

    more = {"k_anonymous": found.anonymous, "method": how.method, "objective": found.objective}
    _finish(made, "labels", more, files, kept, decision, (values, counts, tree), clock, as_json)


def _one_empty(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """The table with empty labels as missing ones: no output but Parquet can tell them apart."""
    import polars as pl

    texts = label in frame.columns and frame[label].dtype == pl.String
    return frame.with_columns(pl.col(label).replace("", None)) if texts else frame


class ValueNotation(NamedTuple):
    """How the values of intervals are written in the table."""

    date: list[str] = DATES
    decimal: list[str] = DECIMAL

    def read(self) -> dict[str, dict[str, str]]:
        """These options as arguments of ``shoal.release``."""
        return {"dates": pairs(self.date, "--date"), "decimal": pairs(self.decimal, "--decimal")}


@app.command()
@with_options
def intervals(
    table: Path = INPUT,
    value: str = flag(..., "--value", "Column of ordered values: numbers, dates (year-month-day) or text."),
    noted: ValueNotation = ValueNotation(),
    asked: dict[str, Any] = conditions(INTERVAL_CONDITIONS, "k"),
    names: Path | None = NAMES,
    effort: str = flag("balanced", "--effort", "Accepted as in other commands; the cut is optimal with any value."),
    files: GroupingFiles = GroupingFiles(),
    kept: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    text: Text = Text(),
    as_json: bool = JSON_,
) -> None:
    """Cut ordered values into intervals of at least k records each, at the least possible cost."""
    import shoal
    from shoal.engines.features import noted_as
    from shoal.model.notation import of_days
    from shoal.publishing.crosswalks.grouped import in_order, notation_of

    clock, files = [time.perf_counter()], files._replace(report=decision.page(files.report))
    frame = files.reads(table, names, text, kept)
    notations: dict[str, Any] = noted.read()
    values, counts, ordered = in_order(frame, value, asked.get("count"), notation_of(value, **notations))
    clock.append(time.perf_counter())
    with working(f"cutting {len(values):,} values"), within(f"column {value!r}", InputError):
        found = shoal.intervals.cut(ordered, counts, **keywords(INTERVAL_CONDITIONS, asked), effort=effort)
    clock.append(time.perf_counter())
    made = shoal.release(
        found, frame, read=(table, names), value=value, count=asked.get("count"), names=_read_lines(names), **notations
    )
    payload = {"k_anonymous": True, "method": made.method, "objective": found.objective}
    if len(ordered) and isinstance(ordered[0], str):
        likely = noted_as(frame[value])
        way = "shoal labels groups values without an order"
        if likely is not None:
            option = f"{'--date' if of_days(likely) else '--decimal'} {shlex.quote(f'{value}={likely}')}"
            way = f"{option} orders them as what they are"
        payload["warnings"] = [
            f"column {value!r} holds text that is neither numbers nor dates: it was cut in the order of its "
            f"characters; {way}"
        ]

    def tree(ks: list[int]) -> Iterable[list[str]]:
        return shoal.intervals.levels(ordered, counts, ks, found.objective, [str(v) for v in values])

    _finish(made, "values", payload, files, kept, decision, (values, counts, tree), clock, as_json)


def _read_lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _finish(
    made: Crosswalk,
    what: str,
    payload: dict[str, Any],
    files: GroupingFiles,
    kept: OutputFiles,
    decision: Decision,
    given: tuple[Iterable[Any], Iterable[Any], Callable[[list[int]], Iterable[list[str]]]],
    clock: list[float],
    as_json: bool,
) -> None:
    """Writes the requested files, and prints the answer.

    given  values, their counts, and a function that makes the rows of a hierarchy for ascending thresholds
    """
    from shoal.publishing.crosswalks.grouped import write_hierarchy
    from shoal.report.crosswalk import plain
    from shoal.report.pictures import as_text

    tree = _hierarchy_rows(made, files, *given)
    picture = (files.picture, lambda: made.drawing("picture"))
    wrote = put(made, files.output, files.certificate, drawn=[picture], kept=kept)
    if tree is not None and files.hierarchy:
        write_hierarchy(made, files.hierarchy, *tree)
    unfilled = [least for least in further_levels(files.levels) if least > made.facts["records"]]
    warnings = [*made.warnings, *payload.pop("warnings", [])] + [
        f"all {several(made.facts['records'], 'record')} together are fewer than {least:,}, so the hierarchy has no "
        "level of that many"
        for least in unfilled
    ]
    proof, facts, loads, k = made.certificate, made.facts, list(made.groups), made.parameters["k"]
    payload = {
        what: facts["rows"],
        "records": facts["records"],
        "groups": facts["groups"],
        "smallest_group": facts["smallest_group"],
        "largest_group": facts["largest_group"],
        "k": k,
        **payload,
        **({"warnings": warnings} if warnings else {}),
        "cost": proof.cost,
        "certificate": proof.as_dict(),
        "seconds": seconds(*clock),
        **wrote,
        **({"hierarchy": str(files.hierarchy)} if files.hierarchy else {}),
        **({"picture": str(files.picture)} if files.picture else {}),
        **reported(made, files.report, **decision._asdict()),
    }
    proved = "the least possible" if proof.optimal else f"no answer costs less than {floored(proof.lower_bound)}"
    if proof.ratio is not None and not proof.optimal:
        proved += f", so at most {times(float(proof.ratio))}"
    lines = [
        f"{several(facts['rows'], what[:-1])}, {several(sum(loads), 'record')}, {several(len(loads), 'group')} of "
        f"{min(loads):,} to {max(loads):,}",
        f"cost {number(proof.cost)} {proof.unit}: {proved}",
        f"because {plain(proof.bound)}",
        *as_text(loads, k),
    ]
    lines += [f"warning: {text}" for text in warnings]
    if "warning" in proof.details:
        lines.append(str(proof.details["warning"]))
    written = (files.output, files.hierarchy, wrote["certificate_file"], files.picture, files.report)
    answer(payload, [*lines, *(f"wrote {path}" for path in written if path)], as_json)


def _hierarchy_rows(
    made: Crosswalk,
    files: GroupingFiles,
    values: Iterable[Any],
    counts: Iterable[Any],
    rows: Callable[[list[int]], Any],
) -> tuple[Iterable[list[str]], dict[str, int]] | None:
    """Rows of the hierarchy, if one is requested, and the count of each value by its text, to check it."""
    if files.hierarchy is None:
        return None
    if made.refused:
        raise PolicyError(made.refused)
    held = {"" if v is None else str(v): int(n) for v, n in zip(values, counts, strict=True)}
    return rows([int(made.parameters["k"]), *further_levels(files.levels)]), held
