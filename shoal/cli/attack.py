"""``shoal attack``: what a motivated intruder learns from a release."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, listed, pairs, present, refuse_unmet, working
from shoal.cli.models import with_options
from shoal.cli.options import FORCE, JSON_, flag


class Known(NamedTuple):
    """What the intruder has."""

    original: Path | None = flag(None, "--original", "The table it was made of, to check guesses; makes it internal.")
    register: Path | None = flag(None, "--register", "A table of people who may be in the release.")
    earlier: list[Path] = flag([], "--with", "Another release of the same people; repeatable.")


class Columns(NamedTuple):
    """What the columns are, where no certificate says it."""

    quasi: str | None = flag(None, "--quasi", "Quasi-identifiers, separated by commas; else the certificate's.")
    sensitive: str | None = flag(None, "--sensitive", "Sensitive columns, separated by commas; else the certificate's.")
    certificate: Path | None = flag(None, "--certificate", "The release's certificate, if it is not next to it.")
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv, to read its labels; repeatable.")
    k: int | None = flag(None, "--k", "Rows of a class that the release promises; else the certificate's.")
    l: float | None = flag(None, "--l", "The l that the release promises; else the certificate's.")


@app.command()
@with_options
def attack(
    release: Path = typer.Argument(help="A release, of shoal, ARX, sdcMicro or others: CSV, Parquet or Excel."),
    known: Known = Known(),
    columns: Columns = Columns(),
    fail_above: float | None = flag(None, "--fail-above", "Exit 1 where a risk is above this share, such as 0.5."),
    separator: str | None = flag(None, "--separator", "Field separator of every CSV."),
    seed: int = flag(0, "--seed", "Of the samples of people."),
    output: Path | None = flag(
        None, "-o", "--output", "An HTML page; with --original its name ends in .internal.html."
    ),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Attack a release as the literature does, and say what an intruder reaches with it and without it."""
    from shoal.attacks.attack import attack as attacked
    from shoal.attacks.attack import line_of
    from shoal.engines.targets import PAGE, check_outputs, internal_path

    read = [p for p in (release, known.original, known.register, *known.earlier, columns.certificate) if p is not None]
    if fail_above is not None and not 0 <= fail_above <= 1:
        raise typer.BadParameter("a risk is a share from 0 to 1", param_hint="--fail-above")
    target = internal_path(output) if output is not None and known.original is not None else output
    check_outputs([(target, PAGE)], read, overwrite=force)
    present(*read)
    with working("attacking"):
        found = attacked(
            release, known.original, known.register, known.earlier,
            quasi_identifiers=listed(columns.quasi), sensitive=listed(columns.sensitive),
            certificate=columns.certificate, hierarchies=pairs(columns.hierarchy, "--hierarchy") or None,
            k=columns.k, l=columns.l, separator=separator, seed=seed,
        )  # fmt: skip
    page = {} if output is None else {"output": str(found.report(output))}
    failed = () if fail_above is None else found.above(fail_above)
    verdict = {} if fail_above is None else {
        "fail_above": fail_above, "failed": [f"{f.attack}, {f.name}" for f in failed],
    }  # fmt: skip
    lines = [*(line_of(f) for f in found.findings), *(f"note: {note}" for note in found.notes)]
    lines += [f"above {fail_above:g}: {f.attack}, {f.name}: {f.risk:.3f}" for f in failed]
    answer(found.as_dict() | page | verdict, [*lines, *(f"page  {name}" for name in page.values())], as_json)
    refuse_unmet(not failed)
