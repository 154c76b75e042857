"""``shoal verify`` and ``shoal keygen``: certificates rechecked, and the keys that sign them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, exploration, pairs, progress, refuse_unmet, reported
from shoal.cli.models import with_options
from shoal.cli.options import DECIDED_BY, EXPLORED, FORCE, JSON_, PURPOSE, RECIPIENT, Text, flag

CERTIFICATE = typer.Argument(None, help="The certificate; RELEASE.certificate.json by default.")


@app.command()
@with_options
def verify(
    release: str = typer.Argument(
        help="The file that was written, or the folder of a series, or the server whose table the certificate names."
    ),
    certificate: Path | None = CERTIFICATE,
    original: list[Path] = flag(
        [], "--original", "The table it was made from; of regions the areas, the pairs, the polygons; repeatable."
    ),
    text: Text = Text(),
    record: Path | None = flag(
        None, "--record", "The private record, RELEASE.record.json: held against release, certificate and original."
    ),
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv, where it is elsewhere; repeatable."),
    population: Path | None = flag(None, "--population", "The population it was measured by."),
    signer: Path | None = flag(None, "--signer", "Public key whose owner must have signed."),
    table: str | None = flag(None, "--table", "Table of an original that is a DuckDB or SQLite file."),
    query: str | None = flag(None, "--query", "SELECT that gave the original; over files FROM data."),
    prove: str | None = flag(
        None,
        "--prove",
        "Search again: fast, balanced, thorough, seconds, or same (as made). A cheaper answer refutes the bound.",
    ),
    as_json: bool = JSON_,
) -> None:
    """Recheck an output of any command against its certificate; with what it was made from, everything."""
    import shoal

    if (Path(release) / "series.json").is_file():
        from shoal.publishing.verifying.series import verify_series

        with progress() as listener:
            found = verify_series(Path(release), signer=signer, progress=listener)
        print_verdict(found, as_json)
        return
    how: dict[str, Any] = {} if prove is None else {"effort": prove}
    with progress() as listener:
        verdict = (shoal.verify if prove is None else shoal.prove)(
            release,
            certificate,
            (original[0] if len(original) == 1 else original) if original else None,
            **how,
            record=record,
            **text._asdict(),
            hierarchies=pairs(hierarchy, "--hierarchy"),
            population=population,
            signer=signer,
            table=table,
            query=query,
            progress=listener,
        )
    print_verdict(verdict, as_json)


def print_verdict(verdict: Any, as_json: bool) -> None:
    """A verdict line by line; leaves with status 1 where it does not hold."""
    short = {"recomputed": "", "checked for consistency": " (consistent)", "stated": " (stated, not checked)"}
    lines = [f"{'ok  ' if f.holds else 'FAIL'}  {f.check:<18} {f.found}{short[f.how]}" for f in verdict.findings]
    lines.append("everything checked holds" if verdict.holds else "the release does not hold what its certificate says")
    answer(verdict.as_dict(), lines, as_json)
    refuse_unmet(verdict.holds)


@app.command()
def report(
    release: Path = typer.Argument(help="The release that was written."),
    certificate: Path | None = CERTIFICATE,
    output: Path | None = flag(None, "-o", "--output", "The page; RELEASE.report.html by default."),
    explored: Path | None = EXPLORED,
    signer: Path | None = flag(None, "--signer", "Public key whose owner must have signed."),
    recipient: str = RECIPIENT,
    purpose: str = PURPOSE,
    decided_by: str = DECIDED_BY,
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Make the report of a release later, from it and its certificate; what needs the original is left out."""
    from shoal.engines.targets import PAGE, check_outputs, named_after
    from shoal.publishing.tables.later import written

    target = output or release.with_name(f"{named_after(release)}.report.html")
    check_outputs([(target, PAGE)], [release, certificate, signer, explored], overwrite=force)
    tried = exploration(explored, target)
    with progress() as listener:
        made = written(release, certificate, signer=signer, progress=listener)
        decided = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}
        page = reported(made, target, explored=tried, **decided)
    answer(page, [f"report  {target}, its figures in {page['figures_file']}"], as_json)


@app.command()
def keygen(
    key: Path = typer.Argument(help="File of the private key; the public one is written next to it as KEY.pub."),
    as_json: bool = JSON_,
) -> None:
    """Make a pair of keys: sign certificates with the private one, hand the public one to who checks them."""
    from shoal.publishing.signing import make_key

    private, public = make_key(key)
    lines = [f"private key  {private}  (keep it; anonymize --sign)", f"public key   {public}  (verify --signer)"]
    answer({"private": str(private), "public": str(public)}, lines, as_json)
