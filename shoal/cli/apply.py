"""Commands that use a former answer: ``shoal fit``, ``shoal apply`` and ``shoal assign``.

``fit`` finds one recoding for several tables, ``apply`` applies it to others, and ``assign`` gives new records the
groups of a former answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import typer

from shoal.cli.anonymize import After, release_lines
from shoal.cli.app import app
from shoal.cli.common import answer, in_flags, present, say, working
from shoal.cli.options import FORCE, JSON_, Order, OutputFiles, Text, asks, flag, with_options
from shoal.paths import POLICY, TABLE

LEARNED = (
    "quasi_identifiers", "sensitive", "identifiers", "insensitive", "hierarchies", "max_level", "dates",
    "decimal", "max_suppressed", "effort", "seed",
)  # fmt: skip


class RecoderGroups(NamedTuple):
    """What a recoder asks of every group."""

    k: int = flag(5, "--k", "Minimum number of rows in a group.")
    l: int | None = flag(None, "--l", "At most 1/l of a group share a sensitive value.")


@app.command()
@with_options
def fit(
    tables: list[Path] = typer.Argument(help="Tables from which levels are fitted; each must meet the models."),
    output: Path = flag(..., "-o", "--output", "The recoder: a TOML file, with hierarchies of rows as CSV next to it."),
    said: dict[str, Any] = asks(LEARNED, needed=["quasi_identifiers"]),
    groups: RecoderGroups = RecoderGroups(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Find one level of a hierarchy for each column, and save the levels for later tables; see apply."""
    import shoal
    from shoal.engines.atomic import check_outputs

    present(*tables, folders=True)
    check_outputs([(output, POLICY)], tables, overwrite=force)
    with working("finding one recoding"):
        recoder = shoal.Recoder(**said, **groups._asdict()).fit([*tables])
    recoder.save(output, overwrite=force)
    levels = ", ".join(f"{name} {level}" for name, level in recoder.levels_.items())
    lines = [f"levels: {levels}", f"recoder  {output}", f"next     shoal apply {output} NEW -o RELEASE"]
    answer({"levels": recoder.levels_, "columns": recoder.columns_, "output": str(output)}, lines, as_json)


@app.command()
@with_options
def apply(
    recoder: Path = typer.Argument(help="The file that fit or Recoder.save wrote."),
    new: Path = typer.Argument(help="The table to publish: CSV (also .gz), Parquet or Excel."),
    output: Path = flag(..., "-o", "--output", "The release; its certificate is written next to it."),
    certificate: Path | None = flag(None, "--certificate", "The certificate's file."),
    kept: OutputFiles = OutputFiles(),
    order: Order = Order(),
    after: After = After(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Publish another table at the levels that fit found, with a certificate. The written bytes are verified."""
    import shoal
    from shoal.cli.unchanged import repeated
    from shoal.engines.order import read_secret
    from shoal.publishing.documents import Documents

    present(recoder, new)
    known = shoal.Recoder.read(recoder)
    papers, read = Documents.next_to(output, certificate, not kept.no_record), [recoder, new, order.secret]
    trees = [p for p in sorted(recoder.parent.glob(f"{recoder.stem}.*.csv")) if p != output]  # save writes them there
    force = repeated([(output, TABLE), *papers.wanted()], [*read, *trees, *after.after], overwrite=force)
    papers.check([(output, TABLE)], read, overwrite=force)
    paper, record = papers.certificate, papers.record
    secret = None if order.secret is None else read_secret(order.secret)
    bound = "none" if kept.no_bound else None
    with working("applying the recoding"):
        release = known.apply(new, keep_order=order.keep_order, secret=secret, target=output, **after.settings())
        release.write(output, paper, record=record is not None, bound=bound)
    for told in release.composition:
        say(f"set against the earlier releases: {told.sentence}")
    facts = {**release.as_dict(), "output": str(output), "certificate_file": str(paper)}
    facts |= {} if record is None else {"record_file": str(record)}
    warnings = [in_flags(w) for w in (release.facts.carried.warning, *release.facts.notes) if w]
    answer(facts | ({"warnings": warnings} if warnings else {}), [*release_lines(facts), *warnings], as_json)


class ColumnsOfAnswer(NamedTuple):
    """Where the new records have what the answer groups by."""

    column: str | None = flag(None, "--column", "Column of the new areas, values, or labels.")
    x: str | None = flag(None, "--x", "Column of x of new points; by default the answer's.")
    y: str | None = flag(None, "--y", "Column of y of new points; by default the answer's.")
    boundary: str | None = flag(None, "--boundary", "Boundary column of new points, if the tiles have one.")


@app.command()
@with_options
def assign(
    answer: Path = typer.Argument(..., help="Crosswalk of tiles, regions, labels or intervals, or its certificate."),
    new: Path = typer.Argument(..., help="New records: CSV (also .gz), Parquet or Excel."),
    certificate: Path | None = flag(None, "--certificate", "Certificate of the crosswalk; next to it by default."),
    columns: ColumnsOfAnswer = ColumnsOfAnswer(),
    output: Path | None = flag(None, "-o", "--output", "The new records with their groups, shuffled."),
    order: Order = Order(),
    text: Text = Text(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Give new records the tile, region, interval, or label of an earlier answer. Reports records in none, or alone."""
    import shoal
    from shoal.cli.common import answer as said
    from shoal.engines.atomic import check_outputs

    check_outputs([(output, TABLE)], [answer, new, certificate, order.secret], overwrite=force)
    how = {**columns._asdict(), **order._asdict(), **text._asdict()}
    with working("placing the records"):
        found = shoal.assign(answer, new, certificate=certificate, **how)
    if output is not None:
        found.write(output)
    wrote = [] if output is None else [f"wrote {output}"]
    said({**found.as_dict(), "output": None if output is None else str(output)}, [*found.sentences(), *wrote], as_json)
