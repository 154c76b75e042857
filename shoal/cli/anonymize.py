"""``shoal anonymize``, and ``shoal demo``, which anonymizes a table that comes with a package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.cli.app import app
from shoal.cli.common import answer, exploration, in_flags, progress, reported, say, source_of
from shoal.cli.options import (
    EXPLORED,
    FORCE,
    JSON_,
    METHODS,
    NO_RECORD,
    PUBLISHED,
    TABLES,
    Decision,
    SourceOptions,
    asks,
    flag,
    with_options,
)
from shoal.errors import PolicyError
from shoal.model.cards import floored, number, several, times
from shoal.paths import JSON, PAGE, TABLE, certified_name, is_json, is_page, is_server, release_name, without_secrets

if TYPE_CHECKING:
    from shoal.engines.atomic import Wanted
    from shoal.model.policy import Policy
    from shoal.publishing.documents import Documents


class ReleaseFiles(NamedTuple):
    """The files of a release, and the keys that sign and shuffle it."""

    output: str | None = flag(
        None,
        "-o",
        "--output",
        "The release, a file or a folder; by default people.release.csv of people.csv, people.xlsx.release.xlsx of "
        "people.xlsx, and TABLE-release of a folder; or a server, postgresql://user@host/database.",
    )
    output_table: str | None = flag(None, "--output-table", "Name of the table to create if -o is a server.")
    parts: str | None = flag(None, "--parts", "Write a folder of parts: parquet or csv.")
    certificate: Path | None = flag(None, "--certificate", "The certificate's file.")
    no_record: bool = NO_RECORD
    report: Path | None = flag(None, "--report", "An HTML report, with its figures as JSON next to it.")
    explored: Path | None = EXPLORED
    sign: Path | None = flag(None, "--sign", "Private key that signs the certificate; see keygen.")
    secret: Path | None = flag(
        None, "--secret", "File of at least 16 bytes that fixes placement and order of the rows; fresh by default."
    )


class After(NamedTuple):
    """Earlier releases of the same people, and how much the releases may reveal in combination."""

    after: list[str] = flag(
        [],
        "--after",
        "An earlier release of the same people, the folder of a series, or a table of Delta or Iceberg. Repeatable.",
    )
    max_composition: float | None = flag(
        None,
        "--max-composition",
        "Share of the people in several releases for whom a promise may break; 0.01 by default.",
    )
    force_composition: bool = flag(
        False, "--force-composition", "Write the release even if the releases together reveal too much."
    )

    def settings(self, *, unnamed: bool) -> dict[str, Any]:
        """These options as keyword arguments of ``shoal.anonymize``.

        unnamed  whether earlier releases were sought that aren't named; if there is none yet, the options still have
                 their place in a job that runs every month
        """
        if unnamed and not self.after:
            return {}
        given: dict[str, Any] = {"after": self.after or None, "force_composition": self.force_composition}
        return given if self.max_composition is None else {**given, "max_composition": self.max_composition}

    def with_others(self, place: Destination, earlier: list[Path], in_memory: bool) -> After:
        """These options, plus earlier releases that are not named: a target's older versions, and the policy's
        release."""
        from shoal.engines import lakes

        found = list(self.after)
        if place.lake and lakes.readable(place.lake) and place.lake not in found:
            found.append(place.lake)
        if len(earlier) == 1 and not self.force_composition and in_memory:
            found.append(str(earlier[0]))
        return self._replace(after=found)


@app.command()
@with_options
def anonymize(
    tables: list[str] = TABLES,
    policy: Path | None = flag(
        None,
        "--policy",
        "A TOML file with the same settings; or a certificate, for the next table: people in both are less protected.",
    ),
    options: dict[str, Any] = asks(PUBLISHED, models=True, method=f"One of {METHODS}; auto by default."),
    files: ReleaseFiles = ReleaseFiles(),
    decision: Decision = Decision(),
    source: SourceOptions = SourceOptions(),
    after: After = After(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Publish a table so that everyone in it is one of many; write release and certificate."""
    from shoal.cli.unchanged import matching
    from shoal.engines.open import engine_of, open_table
    from shoal.engines.order import read_secret
    from shoal.pipeline import misspelled_first, prepare
    from shoal.publishing.documents import Documents

    files = files._replace(report=decision.page(files.report))
    data = source_of(tables, source.glob)
    with misspelled_first(data, None, options, lambda table: open_table(table, source.engine, scope=source.scope())):
        asked = _policy_with_options(policy, options)
    scope, engine = source.scope().as_asked(data, source.engine, asked)
    in_memory = not is_server(data) and engine_of(data, engine, scope) == "polars"
    place = Destination.of(files, data, source.glob, in_memory)
    address = place.server[0] if place.server else place.lake
    papers = Documents.next_to(place.path, files.certificate, not files.no_record, files.sign, address)
    here = [x for x in (data if isinstance(data, list) else [data]) if isinstance(x, Path) and not source.glob]
    read = [*here, policy, files.sign, files.secret, files.explored, *asked.files]
    tried = exploration(files.explored, files.report, decision.internal)
    repeated = policy is not None and is_json(policy) and not after.after
    earlier = _releases_of(policy) if repeated and policy is not None else []
    found = matching(str(data)) if source.glob else [] if here else [data]
    force = _unless_unchanged(place, papers, files, [*read, *earlier, *after.after, *found], force, data, source.query)
    pages = [*place.wanted(), (files.report, PAGE)]
    papers.check(pages, read, overwrite=force, folder=place.path if place.folder else None)
    place.refuse_taken(force)
    after = after.with_others(place, earlier, in_memory)
    again = _reuse_warning(earlier, counted=bool(after.after)) if repeated else None
    with asked.naming(), progress() as listener:
        release = prepare(
            data, asked, **source._asdict(), **after.settings(unnamed=repeated or bool(place.lake)),
            target=place.readable_as(files.parts), progress=listener,
            secret=None if files.secret is None else read_secret(files.secret),
        )  # fmt: skip
        listener("writing and reading back", None)
        place.write(release, papers, parts=files.parts, overwrite=force, progress=listener)
        page = reported(release, files.report, after="a release", explored=tried, **decision._asdict())
    answer_release(release, place.words(), papers, page, again, as_json)


def _unless_unchanged(
    place: Destination, papers: Documents, files: ReleaseFiles, read: list[Any], force: bool, data: Any,
    query: str | None,
) -> bool:  # fmt: skip
    """Whether outputs may be overwritten. Ends the command if ``--if-changed`` finds that nothing changed."""
    from shoal.cli.unchanged import repeated

    alone = [] if place.folder or place.lake else [(place.path, TABLE)]
    return repeated(
        [*papers.wanted(), (files.report, PAGE), *alone], read, overwrite=force,
        folder=place.path if place.folder or place.lake else None,
        refused="it compares files, and the release goes to a server" if place.server
        else "it compares files, and a catalog says which these are" if "iceberg:" in f"{files.output} {data}"
        else "it compares files, and --query may read others" if query else None,
    )  # fmt: skip


class Destination(NamedTuple):
    """Where a release is written: a file, a folder of parts, a server's table, or a version of a Delta or Iceberg
    table.

    path    the file or folder, after which the certificate and the record are named
    server  address and table of a server;  lake: address of a Delta or Iceberg table;  folder: whether of parts
    """

    path: Path
    server: tuple[str, str] | None
    lake: str | None
    folder: bool

    @classmethod
    def of(cls, files: ReleaseFiles, data: Any, glob: bool, in_memory: bool) -> Destination:
        """The destination given by the options; PolicyError for options that need another kind of destination."""
        from shoal.engines import lakes
        from shoal.publishing.tables.writing import is_folder

        server = _server_of(files)
        if server:
            return cls(Path(server[1]), server, None, False)
        path = Path(files.output or _default_output(data, glob))
        if files.output is not None and lakes.is_target(files.output):
            return cls(lakes.folder_of(path), None, files.output, False)
        return cls(path, None, None, is_folder(path, files.parts, not in_memory))

    def readable_as(self, parts: str | None) -> Path | None:
        """A path with the file extension of the output; None for a folder if its parts can be of either format."""
        if self.server or self.lake:
            return Path(f"{self.path}.csv" if self.server else f"{self.path}.parquet")
        if self.folder:
            return None if parts is None else self.path / f"part.{parts}"
        return self.path

    def wanted(self) -> list[Wanted]:
        """The table's file, if it is one of the files that are checked before the work starts."""
        return [] if self.server or self.lake or self.folder else [(self.path, TABLE)]

    def refuse_taken(self, force: bool) -> None:
        """InputError if a server's or a lake's table has this name and may not be overwritten."""
        from shoal.engines import lakes
        from shoal.publishing.tables.writing import refuse_unwritable

        if self.server:
            refuse_unwritable(*self.server, overwrite=force)
        elif self.lake:
            lakes.refuse_taken(lakes.opened(self.lake), force)

    def write(self, release: Any, papers: Documents, *, parts: str | None, overwrite: bool, progress: Any) -> None:
        """Writes the release with its certificate and record."""
        how: dict[str, Any] = {"sign": papers.sign, "record": papers.record is not None, "progress": progress}
        if self.server:
            release.write(self.server[0], papers.certificate, table=self.server[1], overwrite=overwrite, **how)
        elif self.lake:
            release.write(self.lake, papers.certificate, overwrite=overwrite, **how)
        else:
            release.write(self.path, papers.certificate, parts=parts, **how)

    def words(self) -> str:
        """The destination for messages, without the passwords of an address."""
        if self.server:
            return f"{without_secrets(self.server[0])}, table {self.path}"
        return self.lake or str(self.path)


def _server_of(files: ReleaseFiles) -> tuple[str, str] | None:
    """Address and table of the server to write to; None if the release goes to a file."""
    if files.output is None or not is_server(files.output):
        if files.output_table is not None:
            raise PolicyError("--output-table names a table of a server: say -o postgresql://user@host/database too")
        return None
    if files.output_table is None:
        raise PolicyError("-o is a server of databases: say with --output-table which table the release becomes")
    if files.parts is not None:
        raise PolicyError("--parts writes a folder, and -o is a server of databases; leave one of them out")
    return files.output, files.output_table


def _policy_with_options(policy: Path | None, settings: dict[str, Any]) -> Policy:
    """The file's policy, with the values of the options in it; PolicyError for hierarchies that have no effect."""
    from shoal.model.policy import Policy
    from shoal.model.refusals import refuse_idle_hierarchies

    asked = Policy.read(policy, **settings) if policy is not None else Policy.of(None, **settings)
    refuse_idle_hierarchies(asked, settings.get("hierarchies", ()))
    return asked


def _releases_of(certificate: Path) -> list[Path]:
    """Releases next to a certificate that share its name; for a series.json with parts, the folder of the series."""
    from shoal.publishing.series_folder import SERIES, part_numbers

    if certificate.name == SERIES:
        return [certificate.parent] if part_numbers(certificate.parent) else []
    near = sorted(certificate.parent.glob(f"{escape(certified_name(certificate))}.*"))
    return [p for p in near if not (is_json(p) or is_page(p)) and p.is_file()]


def _reuse_warning(earlier: list[Path], *, counted: bool) -> str:
    """Warning about a second release with the same policy.

    counted  whether this run counts what the releases reveal in combination
    """
    named = shlex.quote(earlier[0].name) if len(earlier) == 1 else "RELEASE"
    count = (
        "This run counted what they reveal together."
        if counted
        else f"To count for how many people, add --after {named}."
    )
    return (
        "warning: this policy is the certificate of an earlier release. Someone who is in both tables can be looked "
        "for in both releases: the rows that fit in each may have fewer than k people in common (composition). "
        f"{count} To avoid it, publish a series (shoal series), new people only, or the earlier release again"
    )


def _default_output(data: Any, glob: bool) -> Path:
    """Where a release is written if no output is named."""
    if glob or not isinstance(data, Path):
        raise PolicyError("a release of several files, or of a place elsewhere, needs a name: say with -o which")
    if data.is_dir():
        whole = data.resolve()
        return whole.with_name(f"{whole.name}-release")
    return data.with_name(release_name(data))


def answer_release(
    release: Any, output: str, papers: Documents, page: dict[str, Any], again: str | None, as_json: bool
) -> None:
    """Prints the facts of a written release. page: of its report; again: a warning about its policy."""
    facts = {**release.as_dict(), "output": output, "certificate_file": str(papers.certificate), **page}
    facts |= {} if papers.record is None else {"record_file": str(papers.record)}
    warnings = [in_flags(w) for w in (release.facts.carried.warning, *release.facts.notes, again) if w]
    for told in release.composition:
        say(f"together with the earlier releases: {told.sentence}")
    answer(facts | ({"warnings": warnings} if warnings else {}), [*release_lines(facts), *warnings], as_json)


def release_lines(facts: dict[str, Any]) -> list[str]:
    """The facts of a release as lines of text."""
    certificate, weighted = facts["certificate"], "weighted_ncp" in facts["loss"]
    lines = [
        f"{several(facts['rows'], 'row')} in {several(facts['groups'], 'group')}, the smallest of "
        f"{facts['smallest_group']:,}.",
        "reached: " + ", ".join(f"{name} = {number(value)}" for name, value in facts["privacy"].items()),
        *(
            f"at least {fewest:,} different values of {name} in every group"
            for name, fewest in facts["persons"].items()
        ),
        *_apart(facts),
        f"loss: {sum(facts['stars'].values()):,} stars, {facts['loss']['suppressed_tuples']:,} rows changed, "
        f"NCP {facts['loss']['ncp']:.4f}" + (f", {facts['loss']['weighted_ncp']:.4f} weighted" if weighted else ""),
        f"method {facts['method']}: {guarantee(certificate | ({'unit': 'weighted ncp'} if weighted else {}))}",
        *_full_domain(certificate["details"]),
        *_coarsened(certificate["details"]),
        *_exposed(facts["exposed"]),
        f"took {sum(facts['seconds'].values()):.2f} s",
        f"release      {facts['output']}",
        f"certificate  {facts['certificate_file']}",
    ]
    if "record_file" in facts:
        lines.append(f"record       {facts['record_file']} (private: figures of the original)")
    if "report" in facts:
        lines.append(f"report       {facts['report']}, its figures in {facts['figures_file']}")
    return lines


def _apart(facts: dict[str, Any]) -> Iterator[str]:
    """Lines about rows that are grouped apart, the population, and the rule book, for those that the request has."""
    if (found := facts["incomplete"]) is not None:
        yield f"{found['rows']:,} rows with a missing quasi-identifier are grouped apart"
    if (found := facts["population"]) is not None:
        yield f"every group fits at least {found['k_map']:,} of {found['rows']:,} people of the population"
    if (found := facts["rule_book"]) is not None:
        yield f"rule book {found['name']}: {found['why']} ({found['source']})"
        yield f"  it does not cover {found['does_not_cover']}"


def _full_domain(details: dict[str, Any]) -> list[str]:
    """Lines about full-domain recoding: how many rows were starred, and what is proved among recodings of this kind."""
    lines = []
    if "suppressed_rows" in details:
        lines.append(
            f"starred whole: {details['suppressed_rows']:,} rows, {details['max_suppressed_rows']:,} were allowed"
        )
    if "proved" in details:
        lines.append(f"one level per column: {details['proved']}")
    return lines


def _coarsened(details: dict[str, Any]) -> list[str]:
    """Lines about the levels of coarsened columns, and the curve of stars against width."""
    if "curve" not in details:
        return []

    def named(levels: dict[str, int]) -> str:
        return ", ".join(f"{name} {level}" for name, level in levels.items())

    lines = [f"levels: {named(details['levels'])}; stars against width of what is no star:"]
    for point in details["curve"]:
        kept = "  <- this release" if point["levels"] == details["levels"] else ""
        lines.append(
            f"  {point['stars']:>9,} stars, width {point['width']:.4f}, loss {number(point['loss'])} "
            f"({named(point['levels'])}){kept}"
        )
    return lines


def _exposed(found: dict[str, Any]) -> list[str]:
    if not found["groups"]:
        return []
    most = max(found["columns"], key=found["columns"].__getitem__)
    return [
        f"{100 * found['groups']:.1f} % of the groups show a value that only one of their rows holds, most of them in "
        f"{most}: for numbers and dates see --range-step, for others use a hierarchy or stars"
    ]


def guarantee(certificate: dict[str, Any]) -> str:
    """The guarantee of a certificate, in one sentence."""
    unit, cost, bound = certificate["unit"], certificate["cost"], certificate["lower_bound"]
    shown = f"{number(cost)} {unit}"
    if certificate["optimal"]:
        return f"{shown}, proved optimal: no valid release has less"
    if certificate["ratio"] is None:
        return f"{shown}; no lower bound above 0 is known for this table"
    within = f"this is {'within ' if certificate['ratio'] > 1 + 1e-9 else ''}{times(certificate['ratio'])}"
    return f"{shown}; every valid release has at least {floored(bound)}, so {within}"


DEMO_QUASI = ["age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb"]


@app.command()
def demo(
    folder: Path = flag(Path("shoal-demo"), "-o", "--output", "Output folder."),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Anonymize a real table that comes with an installed package; nothing to prepare."""
    import polars as pl

    from shoal.engines.atomic import check_outputs
    from shoal.engines.store import fair_survey, write_table
    from shoal.pipeline import prepare

    people = fair_survey()
    folder.mkdir(parents=True, exist_ok=True)
    source, target, page = folder / "people.csv", folder / "release.csv", folder / "report.html"
    beside = folder / "release.certificate.json"
    ours = source.is_file() and source.read_bytes() == people.write_csv().encode()  # the folder of an earlier demo
    outputs = [(source, TABLE), (target, TABLE), (beside, JSON), (page, PAGE)]
    check_outputs(outputs, overwrite=force or ours)
    write_table(people, source)
    with progress() as listener:
        release = prepare(
            source,
            quasi_identifiers=DEMO_QUASI,
            sensitive=["affairs"],
            k=5,
            distinct_l=2,
            seed=1974,
            effort="fast",
            progress=listener,
        )
        release.write(target, beside)
        release.report(page)
    places = {"output": target, "certificate_file": beside, "report": page, "figures_file": page.with_suffix(".json")}
    facts = {**release.as_dict(), **{name: str(path) for name, path in places.items()}}
    raw = release.facts.before
    sentence = (
        f"Everyone in the release looks like at least {release.audit.k - 1} others on the seven columns, and each "
        "group has at least two different answers about affairs."
    )
    with pl.Config(
        tbl_rows=6, tbl_cols=9, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_width_chars=110
    ):
        shown = [*DEMO_QUASI, "affairs"]
        lines = [
            "Fair's survey of 1974 (public domain, from the package statsmodels): six of its rows before, six after.",
            *str(people.select(shown).head(6)).splitlines(),
            *str(release.table.select(shown).head(6)).splitlines(),
            "",
            f"before: {raw['classes']:,} classes, {raw['uniques']:,} people alone in theirs; "
            f"after: {facts['groups']:,} classes, the smallest of {facts['smallest_group']}.",
            sentence,
            "",
            *release_lines(facts)[2:],
        ]
    answer(facts, lines, as_json)
