"""Commands after a release: ``verify``, ``report``, ``keygen``, ``series``, ``fit``, ``apply``, and ``assign``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import typer

from shoal.cli.anonymize import After, answer_release
from shoal.cli.app import app
from shoal.cli.common import answer, exploration, in_flags, listed, pairs, present, progress, reported, working
from shoal.cli.options import (
    DECIDED_BY,
    DECIMAL,
    EXPLORED,
    FORCE,
    JSON_,
    PURPOSE,
    RECIPIENT,
    Order,
    OutputFiles,
    SourceOptions,
    Text,
    asks,
    flag,
    refuse_idle,
    with_options,
)
from shoal.errors import PolicyError
from shoal.model.cards import number, several
from shoal.paths import PAGE, POLICY, TABLE, certified_name, internal_path, is_server, named_after

SIGNER = flag(None, "--signer", "Public key of the person who must have signed.")
CERTIFICATE = typer.Argument(None, help="The certificate; RELEASE.certificate.json by default.")


@app.command()
@with_options
def verify(
    release: str = typer.Argument(
        help="The written file, the folder of a series, or the server with the table that the certificate names."
    ),
    certificate: Path | None = CERTIFICATE,
    original: list[str] = flag(
        [], "--original", "Table from which it was made; for regions areas, pairs, and polygons. Repeatable."
    ),
    text: Text = Text(),
    record: Path | None = flag(
        None, "--record", "The private record, RELEASE.record.json, to compare with release, certificate, and original."
    ),
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv, if it is in another place. Repeatable."),
    areas: Path | None = flag(None, "--areas", "Areas of a column published as regions, if they are in another place."),
    edges: Path | None = flag(None, "--edges", "Pairs of neighbors among the areas."),
    population: Path | None = flag(None, "--population", "Population of the release."),
    signer: Path | None = SIGNER,
    table: str | None = flag(
        None,
        "--table",
        "--layer",
        "Table of an original that is in a database; sheet of an Excel file; layer of a map of points.",
    ),
    query: str | None = flag(
        None, "--query", "SELECT statement that returns the original; of files, select FROM data."
    ),
    prove: str | None = flag(
        None,
        "--prove",
        "Search again: fast, balanced, thorough, seconds, or same (as made). A cheaper answer refutes the bound.",
    ),
    as_json: bool = JSON_,
) -> None:
    """Check the output of any command against its certificate. With the original, check everything."""
    import shoal
    from shoal.engines.store import unread_sheets

    if any((Path(release) / name).exists() for name in ("series.json", "0001")):  # a series, or what is left of one
        from shoal.publishing.verifying.verify import verify_series

        others = {"a certificate": certificate, "--original": original, "--record": record, "--hierarchy": hierarchy,
                  "--areas": areas, "--edges": edges, "--population": population, "--table": table, "--query": query,
                  "--prove": prove, "--separator": text.separator, "--encoding": text.encoding}  # fmt: skip
        unused = next((name for name, value in others.items() if value), None)
        if unused is not None:
            raise PolicyError(
                f"a series is verified without {unused}; to use it, name the release of one part instead of the folder"
            )
        with progress() as listener:
            found = verify_series(Path(release), signer=signer, progress=listener)
        print_verdict(found, as_json, "series", "it promises")
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
            areas=areas,
            edges=edges,
            population=population,
            signer=signer,
            table=table,
            query=query,
            progress=listener,
        )
    unread = [] if verdict.holds else [note for one in original for note in unread_sheets(one, table)]
    notes = [f"note: of the original, {in_flags(note)}" for note in unread]
    failed = {f.check for f in verdict.findings if not f.holds}
    if original and "file" not in failed and failed & {"original", "original rows", "rows match"}:
        notes.append(
            "note: --original names the table as it was when the release was made; if this is another one, name that"
        )
    print_verdict(verdict, as_json, notes=notes)


def print_verdict(
    verdict: Any, as_json: bool, what: str = "release", says: str = "its certificate says", notes: Sequence[str] = ()
) -> None:
    """A verdict line by line, and notes; leaves with status 1 where it does not hold."""
    short = {"recomputed": "", "checked for consistency": " (consistent)", "stated": " (stated, not checked)"}
    lines = [f"{'ok  ' if f.holds else 'FAIL'}  {f.check:<18} {f.found}{short[f.how]}" for f in verdict.findings]
    lines += ["everything checked holds" if verdict.holds else f"the {what} does not hold what {says}", *notes]
    answer(verdict.as_dict(), lines, as_json, 0 if verdict.holds else 1)


@app.command()
def report(
    release: str = typer.Argument(
        help="The written file or table, or the server with the table that the certificate names."
    ),
    certificate: Path | None = CERTIFICATE,
    output: Path | None = flag(None, "-o", "--output", "The page; RELEASE.report.html by default."),
    explored: Path | None = EXPLORED,
    signer: Path | None = SIGNER,
    recipient: str = RECIPIENT,
    purpose: str = PURPOSE,
    decided_by: str = DECIDED_BY,
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Make the report of a release later, from the release and its certificate, without figures of the original."""
    from shoal.engines.atomic import check_outputs
    from shoal.engines.lakes import folder_of
    from shoal.publishing.tables.written import written

    held = (certificate or Path("release")) if is_server(release) else folder_of(release)
    held = held if held.name else held.resolve()
    target = output or held.with_name(f"{named_after(Path(certified_name(held)))}.report.html")
    target = target if explored is None else internal_path(target)
    check_outputs([(target, PAGE)], [held, certificate, signer, explored], overwrite=force)
    tried = exploration(explored, target)
    with progress() as listener:
        made = written(release, certificate, signer=signer, progress=listener)
        decided = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}
        page = reported(made, target, after="", explored=tried, **decided)
    answer(page, [f"report  {page['report']}, its figures in {page['figures_file']}"], as_json)


@app.command()
def keygen(
    key: Path = typer.Argument(help="File of the private key; the public one is written next to it as KEY.pub."),
    as_json: bool = JSON_,
) -> None:
    """Make a pair of keys. Sign certificates with the private key, and give the public key to recipients."""
    from shoal.publishing.documents import make_key

    private, public = make_key(key)
    lines = [f"private key  {private}  (keep it; anonymize --sign)", f"public key   {public}  (verify --signer)"]
    answer({"private": str(private), "public": str(public)}, lines, as_json)


ACTIONS = {
    "start": "begin the folder",
    "add": "publish the next part",
    "waiting": "write the rows that wait",
    "view": "publish the table for another reader",
    "status": "print what the series holds",
}


class SeriesSettings(NamedTuple):
    """Settings that are fixed when a series starts."""

    policy: Path | None = flag(None, "--policy", "For start: a TOML file of settings, or a certificate.")
    mode: str | None = flag(
        None,
        "--mode",
        "For start: increment (each person once; default), again (the whole table), views (one table, many readers).",
    )
    wait: int | None = flag(
        None, "--wait", "For start: how many parts a row that would lose too much may wait; 0 by default."
    )
    wait_above: float | None = flag(
        None, "--wait-above", "For start: the loss, from 0 to 1, above which rows wait; 0.3 by default."
    )
    no_counterfeits: bool = flag(
        False, "--no-counterfeits", "For start, mode again: hold back a group instead of making up rows."
    )
    signatures: int | None = flag(
        None,
        "--signatures",
        "For start, mode again: about how many signatures (sets of possible values) newcomers have; any number by "
        "default. With few, later parts have fewer made-up rows, and the first parts lose more.",
    )

    def given(self) -> dict[str, Any]:
        """The options given, as keyword arguments of ``shoal.Series.start``."""
        settings = {name: value for name, value in self._asdict().items() if value is not None}
        return settings | {"counterfeits": False} if settings.pop("no_counterfeits") else settings


class PartRows(NamedTuple):
    """How the rows of a part are read."""

    person: str | None = flag(
        None, "--person", "For add and waiting: column that identifies the person of a row. It is removed."
    )
    identifiers: str | None = flag(None, "--identifiers", "For add: further columns to remove.")
    without_waiting: bool = flag(
        False, "--without-waiting", "For add: waiting rows can be absent from the table; they are then never published."
    )
    other_people: bool = flag(
        False, "--other-people", "For add: rows and ids that look like those of an earlier part are of other people."
    )


class ViewColumns(NamedTuple):
    """What a view shows."""

    columns: str | None = flag(None, "--columns", "For view: columns that it keeps; all by default.")
    publish: str | None = flag(
        None, "--publish", "For view: stars, hierarchy, or ranges; as the first part or coarser."
    )
    level: list[str] = flag([], "--level", "For view: COLUMN=LEVEL, the lowest level that it shows. Repeatable.")


@app.command()
@with_options
def series(
    action: str = typer.Argument(
        help=f"{'; '.join(': '.join(a) for a in ACTIONS.items())}. shoal verify FOLDER checks it."
    ),
    folder: Path = typer.Argument(help="The folder of the series."),
    data: str | None = typer.Argument(
        None, help="For add: the table of the next part, as for anonymize. For waiting: the earlier tables."
    ),
    settings: SeriesSettings = SeriesSettings(),
    rows: PartRows = PartRows(),
    view: ViewColumns = ViewColumns(),
    output: Path | None = flag(None, "-o", "--output", "For waiting: file for the rows that wait."),
    force: bool = FORCE,
    sign: Path | None = flag(None, "--sign", "For add and view: private key that signs the certificate; see keygen."),
    source: SourceOptions = SourceOptions(),
    as_json: bool = JSON_,
) -> None:
    """Publish a series of releases: months and corrections."""
    import shoal

    if action == "verify":
        raise PolicyError(f"a series is checked as a release is: shoal verify {shlex.quote(str(folder))}")
    if action not in ACTIONS:
        raise PolicyError.unknown("action of shoal series", action, ACTIONS)
    _refuse_options_of_others(action, settings, rows, view, output)
    _refuse_unread(action, {"person": rows.person, "sign": sign, "force": force, **source._asdict()})
    if (data is None) is (action in ("add", "waiting")):
        raise PolicyError(
            f"shoal series {action} takes a table: shoal series {action} {shlex.quote(str(folder))} TABLE"
            if data is None
            else f"shoal series {action} takes no table"
        )
    if action == "start":
        _start(folder, settings, as_json)
        return
    held = shoal.Series(folder)
    if action == "status":
        facts = held.status()
        answer(facts, [f"{name}  {value}" for name, value in facts.items()], as_json)
    elif output is not None:
        _write_waiting(held, data, rows.person, source, output, force, as_json)
    else:
        with progress() as listener:
            if action == "view":
                part = held.view(
                    listed(view.columns), publish=view.publish, levels=pairs(view.level, "--level", int), sign=sign,
                    progress=listener,
                )  # fmt: skip
            else:
                part = held.add(
                    data, person=rows.person, identifiers=listed(rows.identifiers) or (),
                    without_waiting=rows.without_waiting, other_people=rows.other_people, sign=sign, progress=listener,
                    **source._asdict(),
                )  # fmt: skip
        _print_part(held, part, folder, as_json)


def _refuse_options_of_others(
    action: str, settings: SeriesSettings, rows: PartRows, view: ViewColumns, output: Path | None
) -> None:
    """PolicyError for an option that belongs to another action, or if waiting rows have no output file."""
    shown = view._asdict()
    begins = [name for name, value in settings._asdict().items() if value is not None and value is not False]
    if action != "view" and any(shown.values()):
        raise PolicyError(f"--{next(n for n, v in shown.items() if v)} belongs to shoal series view")
    if begins and action != "start":
        raise PolicyError(f"--{begins[0].replace('_', '-')} is decided once, by shoal series start")
    if rows.identifiers and action != "add":
        raise PolicyError("--identifiers belongs to shoal series add; a policy has its own")
    for name in ("without_waiting", "other_people"):
        if getattr(rows, name) and action != "add":
            raise PolicyError(f"--{name.replace('_', '-')} belongs to shoal series add")
    if action == "waiting" and output is None:
        raise PolicyError("say with -o FILE where the rows that wait are written")
    if action != "waiting" and output is not None:
        raise PolicyError("--output belongs to shoal series waiting")


def _refuse_unread(action: str, given: Mapping[str, Any]) -> None:
    """PolicyError for an option that an action doesn't read."""
    read = {"sign": ("add", "view"), "force": ("waiting",)}
    for name, value in given.items():
        known = read.get(name, ("add", "waiting"))
        if value and action not in known:
            raise PolicyError(f"--{name} has no effect on shoal series {action}; it belongs to {' and '.join(known)}")


def _start(folder: Path, settings: SeriesSettings, as_json: bool) -> None:
    import shoal

    if settings.policy is None:
        raise PolicyError("say with --policy FILE what every part is asked; shoal init TABLE writes one")
    made = shoal.Series.start(folder, **settings.given())
    facts = made.status()
    lines = [f"series  {folder}, mode {made.mode}", f"ledger  {folder / 'private'} (keep it)"]
    if settings.wait:
        parts = several(facts["wait"], "part")
        lines.append(f"wait    rows that would lose more than {facts['wait_above']:g}, for at most {parts}")
    answer(facts, lines, as_json)


def _write_waiting(
    held: Any, data: str | None, person: str | None, source: SourceOptions, output: Path, force: bool, as_json: bool
) -> None:
    """Writes the waiting rows to a private file."""
    from shoal.engines.atomic import Piece, check_outputs, publish_together
    from shoal.engines.store import store

    closed = check_outputs([(output, TABLE)], [data], overwrite=force)
    rows = held.waiting(data, person=person, **source._asdict())
    publish_together([Piece(output, lambda path: store(rows, path), private=True)], closed=closed)
    answer({"rows": rows.height, "output": str(output)}, [f"{rows.height:,} rows wait  {output}"], as_json)


def _print_part(held: Any, part: Any, folder: Path, as_json: bool) -> None:
    """Prints what the new part promises and loses, and where it is."""
    from shoal.publishing.series_folder import RELEASE, part_name

    facts = {**part.as_dict(), **{n: v for n, v in held.status().items() if n != "waiting"}}
    lines = [
        f"part {facts['parts']}: {several(part.rows, 'row')} in {several(part.groups, 'group')}, "
        f"the smallest of {part.smallest:,}.",
        "reached: " + ", ".join(f"{name} = {number(value)}" for name, value in part.privacy.items()),
        f"loss: NCP {part.loss['ncp']:.4f}" if part.loss["ncp"] is not None else "loss: as the hierarchies say",
        f"made up: {part.made_up:,} rows; waiting: {part.waiting:,} rows; held back: {part.held_back:,} rows",
        *(f"warning: {text}" for text in part.warnings),
        f"release  {folder / part_name(facts['parts']) / RELEASE}",
    ]
    answer(facts, lines, as_json)


LEARNED = (
    "quasi_identifiers", "sensitive", "identifiers", "insensitive", "hierarchies", "max_level", "dates",
    "decimal", "bottom", "top", "max_suppressed", "effort", "seed",
)  # fmt: skip


class RecoderGroups(NamedTuple):
    """What a recoder requires of every group."""

    k: int = flag(5, "--k", "Minimum number of rows in a group.")
    l: int | None = flag(None, "--l", "At most 1/l of a group share a sensitive value.")


@app.command()
@with_options
def fit(
    tables: list[Path] = typer.Argument(help="Tables from which levels are fitted; each must meet the models."),
    output: Path = flag(..., "-o", "--output", "The recoder: a TOML file, with hierarchies of rows as CSV next to it."),
    options: dict[str, Any] = asks(LEARNED, needed=["quasi_identifiers"]),
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
        recoder = shoal.Recoder(**options, **groups._asdict()).fit([*tables])
    recoder.save(output, overwrite=force)
    levels = ", ".join(f"{name} {level}" for name, level in recoder.levels_.items())
    lines = [
        f"levels: {levels}",
        f"recoder  {output}",
        f"next     shoal apply {shlex.quote(str(output))} NEW -o RELEASE",
    ]
    answer({"levels": recoder.levels_, "columns": recoder.columns_, "output": str(output)}, lines, as_json)


@app.command()
@with_options
def apply(
    recoder: Path = typer.Argument(help="The file that fit or Recoder.save wrote."),
    new: Path = typer.Argument(help="The table to publish: CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS."),
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

    present(recoder)
    present(new, folders=True)
    known = shoal.Recoder.read(recoder)
    papers, read = Documents.next_to(output, certificate, not kept.no_record), [recoder, new, order.secret]
    near = sorted(recoder.parent.glob(f"{escape(recoder.stem)}.*.csv"))  # where save writes hierarchies
    trees = [p for p in near if p != output]
    force = repeated([(output, TABLE), *papers.wanted()], [*read, *trees, *after.after], overwrite=force)
    papers.check([(output, TABLE)], read, overwrite=force)
    secret = None if order.secret is None else read_secret(order.secret)
    bound = "none" if kept.no_bound else None
    with working("applying the recoding"):
        how = {"keep_order": order.keep_order, "secret": secret, **after.settings(unnamed=False)}
        release = known.apply(new, target=output, **how)
        release.write(output, papers.certificate, record=not kept.no_record, bound=bound)
    answer_release(release, str(output), papers, {}, None, as_json)


class ColumnsOfAnswer(NamedTuple):
    """Which columns of the new records have what the answer groups by."""

    column: str | None = flag(None, "--column", "Column of the new areas, values, or labels.")
    x: str | None = flag(None, "--x", "Column of x of new points; by default the answer's.")
    y: str | None = flag(None, "--y", "Column of y of new points; by default the answer's.")
    boundary: str | None = flag(None, "--boundary", "Boundary column of new points, if the tiles have one.")
    decimal: list[str] = DECIMAL

    def read(self) -> dict[str, Any]:
        """The columns as keyword arguments of ``shoal.assign``."""
        from shoal.cli.common import pairs

        return {**self._asdict(), "decimal": pairs(self.decimal, "--decimal") if self.decimal else None}


@app.command()
@with_options
def assign(
    answer: Path = typer.Argument(
        ..., help="Crosswalk of tiles, regions, clusters, labels or intervals, or its certificate."
    ),
    new: Path = typer.Argument(..., help="New records: CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS."),
    certificate: Path | None = flag(None, "--certificate", "Certificate of the crosswalk; next to it by default."),
    columns: ColumnsOfAnswer = ColumnsOfAnswer(),
    output: Path | None = flag(None, "-o", "--output", "The new records with their groups, shuffled."),
    order: Order = Order(),
    text: Text = Text(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Give new records the tile, region, cluster, interval, or label of an answer. Reports those in none, or alone."""
    import shoal
    from shoal.cli.common import answer as print_answer
    from shoal.engines.atomic import check_outputs

    refuse_idle(output, "-o", **order._asdict())
    check_outputs([(output, TABLE)], [answer, new, certificate, order.secret], overwrite=force)
    how = {**columns.read(), **order._asdict(), **text._asdict()}
    with working("placing the records"):
        found = shoal.assign(answer, new, certificate=certificate, **how)
    if output is not None:
        found.write(output)
    wrote = [] if output is None else [f"wrote {output}"]
    print_answer(
        {**found.as_dict(), "output": None if output is None else str(output)}, [*found.sentences(), *wrote], as_json
    )
