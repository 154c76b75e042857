"""The main job: ``anonymize``, ``audit``, ``verify`` and ``demo``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, listed, pairs, progress, refuse_unmet, step_of
from shoal.cli.models import with_models

_QUASI = typer.Option(None, "--quasi", help="Quasi-identifiers: columns others may know, separated by commas.")
_SENSITIVE = typer.Option(None, "--sensitive", help="Sensitive columns, separated by commas.")
_PERSON = typer.Option(None, "--person", help="Column that names who a row is about: k counts persons; it is left out.")
_HOUSEHOLD = typer.Option(None, "--household", help="The same for households.")
_POPULATION = typer.Option(None, "--population", help="Table the rows were drawn from, for --k-map and --presence.")
_WEIGHTS = typer.Option(None, "--population-weights", help="Column: how many people a row of a sample stands for.")
_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else.")
_SEPARATOR = typer.Option(None, "--separator", help="Field separator of a CSV; found out when not given.")
_ENCODING = typer.Option(None, "--encoding", help="utf-8 (default) or latin-1.")
_FORCE = typer.Option(False, "--force", help="Replace outputs that exist.")
_ENGINE = typer.Option(None, "--engine", help="polars (default of one file), duckdb (of folders and parts) or spark.")
_MEMORY = typer.Option(None, "--memory", help="Most memory of DuckDB before it spills to disk, such as 2GB.")
_THREADS = typer.Option(None, "--threads", help="Threads of DuckDB.")
_TEMPORARY = typer.Option(None, "--temporary", help="Folder that DuckDB spills into.")
_GLOB = typer.Option(False, "--glob", help="TABLE is a pattern: *, ?, [...] and ** stand for many files.")
_TABLE = typer.Option(None, "--table", help="Table of a DuckDB or SQLite file.")
_QUERY = typer.Option(None, "--query", help="SELECT over a DuckDB or SQLite file; over other files FROM data.")
_MASTER = typer.Option(None, "--master", help="Where Spark runs, such as local[2].")
_TABLES = typer.Argument(help="CSV (also .gz), Parquet or Excel file; folder, several parts, DuckDB or SQLite file.")


@app.command()
@with_models
def anonymize(
    tables: list[str] = _TABLES,
    policy: Path | None = typer.Option(None, "--policy", help="A TOML file with the same settings, or a certificate."),
    quasi: str | None = _QUASI,
    sensitive: str | None = _SENSITIVE,
    identifiers: str | None = typer.Option(None, "--identifiers", help="Columns to leave out."),
    person: str | None = _PERSON,
    household: str | None = _HOUSEHOLD,
    population: Path | None = _POPULATION,
    population_weights: str | None = _WEIGHTS,
    insensitive: str | None = typer.Option(
        None, "--insensitive", help="Columns to carry along as they are, though they single people out."
    ),
    preset: str | None = typer.Option(
        None, "--preset", help="A rule book: k3, k5, k11, k20, cms-11, ema-0.09, hipaa-safe-harbor."
    ),
    publish: str | None = typer.Option(None, "--publish", help="stars (default), hierarchy, ranges or centers."),
    coordinates: str | None = typer.Option(None, "--coordinates", help="x,y: two columns published as tiles."),
    hierarchy: list[str] = typer.Option(
        [], "--hierarchy", help="column=file.csv, =labels or =intervals; may be repeated."
    ),
    weight: list[str] = typer.Option([], "--weight", help="column=factor of its loss; may be repeated."),
    max_level: list[str] = typer.Option([], "--max-level", help="column=highest level; may be repeated."),
    range_step: list[str] = typer.Option(
        [], "--range-step", help="column=step (dates: days, month or year) at which ranges end; may be repeated."
    ),
    global_recoding: bool = typer.Option(False, "--global-recoding", help="One level per column for all rows."),
    max_average_risk: float | None = typer.Option(
        None, "--max-average-risk", help="Highest mean over the rows of 1 / (size of its class)."
    ),
    max_suppressed: float | None = typer.Option(
        None, "--max-suppressed", help="Share of rows that global recoding may star whole; 0 by default."
    ),
    output: Path | None = typer.Option(
        None,
        "-o",
        "--output",
        help="The release, a file or a folder; TABLE.release.EXT, of a folder TABLE-release, by default.",
    ),
    parts: str | None = typer.Option(None, "--parts", help="Write a folder of parts: parquet or csv."),
    certificate: Path | None = typer.Option(None, "--certificate", help="The certificate's file."),
    report: Path | None = typer.Option(None, "--report", help="An HTML report."),
    sign: Path | None = typer.Option(None, "--sign", help="Private key that signs the certificate; see keygen."),
    engine: str | None = _ENGINE,
    memory: str | None = _MEMORY,
    threads: int | None = _THREADS,
    temporary: Path | None = _TEMPORARY,
    glob: bool = _GLOB,
    table: str | None = _TABLE,
    query: str | None = _QUERY,
    master: str | None = _MASTER,
    method: str | None = typer.Option(None, "--method", help="A method of the catalogue; auto by default."),
    effort: str | None = typer.Option(None, "--effort", help="fast, balanced, thorough, or seconds."),
    seed: int | None = typer.Option(None, "--seed", help="Fixes the search; never the row order."),
    secret: Path | None = typer.Option(
        None, "--secret", help="File of 16 bytes or more that fixes placement and order of the rows; fresh by default."
    ),
    keep_order: bool = typer.Option(False, "--keep-order", help="Keep the row order, which is a leak."),
    star: str | None = typer.Option(None, "--star", help="Text of a suppressed value; * by default."),
    separator: str | None = _SEPARATOR,
    encoding: str | None = _ENCODING,
    force: bool = _FORCE,
    as_json: bool = _JSON,
    **models: Any,
) -> None:
    """Publish a table so that everyone in it is one of many; write release and certificate."""
    from shoal.engines.open import engine_of
    from shoal.engines.order import read_secret
    from shoal.engines.scope import Scope
    from shoal.engines.targets import PAGE, certificate_path
    from shoal.errors import PolicyError
    from shoal.model.policy import Policy
    from shoal.pipeline import prepare
    from shoal.publishing.partwise import check_target, is_folder

    settings: dict[str, Any] = {
        "quasi_identifiers": listed(quasi),
        "sensitive": listed(sensitive),
        "identifiers": listed(identifiers),
        "insensitive": listed(insensitive),
        "person": person,
        "household": household,
        "population": population,
        "population_weights": population_weights,
        **models,
        "preset": preset,
        "publish": publish,
        "coordinates": listed(coordinates),
        "hierarchies": pairs(hierarchy, "--hierarchy") or None,
        "weights": pairs(weight, "--weight", float) or None,
        "max_level": pairs(max_level, "--max-level", int) or None,
        "range_step": pairs(range_step, "--range-step", step_of) or None,
        "global_recoding": global_recoding or None,
        "max_suppressed": max_suppressed,
        "max_average_risk": max_average_risk,
        "method": method,
        "effort": effort,
        "seed": seed,
        "keep_order": keep_order or None,
        "star": star,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    asked = Policy.read(policy, **settings) if policy is not None else Policy.of(None, **settings)
    if hierarchy and asked.publish not in ("hierarchy", "centers"):
        raise PolicyError(f"--hierarchy has no effect with --publish {asked.publish}; say --publish hierarchy")
    data = source_of(tables, glob)
    target = output or _beside_table(data, glob)
    beside = certificate or certificate_path(target)
    here = [x for x in (data if isinstance(data, list) else [data]) if isinstance(x, Path) and not glob]
    read = [*here, policy, sign, secret, *asked.files]
    scope = Scope(memory, threads, temporary, glob, table, query, master)
    folder = is_folder(target, parts, engine_of(data, engine, scope) != "polars")
    aim = target if not folder else None if parts is None else target / f"part.{parts}"
    check_target(target, beside, [(report, PAGE)], read, overwrite=force, folder=folder)
    with progress() as told:
        release = prepare(
            data,
            asked,
            engine=engine,
            separator=separator,
            encoding=encoding,
            secret=None if secret is None else read_secret(secret),
            scope=scope,
            target=aim,
            progress=told,
        )
        told("writing and reading back", None)
        release.write(target, beside, sign=sign, parts=parts, progress=told)
        if report is not None:
            release.report(report)
    facts = {**release.as_dict(), "output": str(target), "certificate_file": str(beside)}
    if report is not None:
        facts["report"] = str(report)
    warnings = [w for w in (release.carried.warning, *release.notes) if w]
    answer(facts | ({"warnings": warnings} if warnings else {}), [*release_lines(facts), *warnings], as_json)


def source_of(tables: list[str], glob: bool) -> Any:
    """What was named on the command line: a path, or several; InputError for a name that nothing has."""
    from shoal.engines.source import is_remote
    from shoal.errors import InputError

    for path in tables if not glob else ():
        if not (is_remote(path) or Path(path).is_file() or Path(path).is_dir()):
            raise InputError(f"there is no file {path!r} to read")
    if glob and len(tables) > 1:
        raise InputError("--glob takes one pattern; put it in quotes, so that the shell leaves it alone")
    found = [path if is_remote(path) else Path(path) for path in tables]
    return found[0] if len(found) == 1 else found


def _beside_table(data: Any, glob: bool) -> Path:
    """Where a release goes that was given no name."""
    from shoal.errors import PolicyError

    if glob or not isinstance(data, Path):
        raise PolicyError("of several files, or of a place elsewhere: say with -o where the release goes")
    if data.is_dir():
        whole = data.resolve()
        return whole.with_name(f"{whole.name}-release")
    return data.with_name(_release_name(data.name))


def _release_name(name: str) -> str:
    """people.csv -> people.release.csv; people.csv.gz -> people.release.csv.gz."""
    packed = ".gz" if name.lower().endswith(".gz") else ""
    stem, ending = os.path.splitext(name[: len(name) - len(packed)])
    known = {".xls": ".xlsx", ".xlsb": ".xlsx"} | {e: e for e in (".xlsx", ".parquet", ".pq", ".tsv", ".txt")}
    return f"{stem}.release{known.get(ending.lower(), '.csv')}{packed}"


def release_lines(facts: dict[str, Any]) -> list[str]:
    """A release's facts for people."""
    certificate = facts["certificate"]
    lines = [
        f"{facts['rows']:,} rows in {facts['groups']:,} groups, the smallest of {facts['smallest_group']:,}.",
        "reached: " + ", ".join(f"{name} = {_short(value)}" for name, value in facts["privacy"].items()),
        *(f"at least {fewest:,} different {name} in every group" for name, fewest in facts["persons"].items()),
        *_people(facts["population"]),
        *_rule_book(facts["rule_book"]),
        f"loss: {sum(facts['stars'].values()):,} stars, {facts['loss']['suppressed_tuples']:,} rows changed, "
        f"NCP {facts['loss']['ncp']:.4f}",
        f"method {facts['method']}: {guarantee(certificate)}",
        *_full_domain(certificate["details"]),
        *_exposed(facts["exposed"]),
        f"took {sum(facts['seconds'].values()):.2f} s",
        f"release      {facts['output']}",
        f"certificate  {facts['certificate_file']}",
    ]
    if "report" in facts:
        lines.append(f"report       {facts['report']}")
    return lines


def _people(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    return [f"every group fits at least {found['k_map']:,} of {found['rows']:,} people of the population"]


def _rule_book(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    text = f"rule book {found['name']}: {found['why']} ({found['source']})"
    return [text, f"  it does not cover {found['does_not_cover']}"]


def _full_domain(details: dict[str, Any]) -> list[str]:
    """What one level per column adds: rows starred whole, and what is proved among recodings of this kind."""
    lines = []
    if "suppressed_rows" in details:
        lines.append(
            f"starred whole: {details['suppressed_rows']:,} rows, {details['max_suppressed_rows']:,} were allowed"
        )
    if "proved" in details:
        lines.append(f"one level per column: {details['proved']}")
    return lines


def _exposed(found: dict[str, Any]) -> list[str]:
    if not found["groups"]:
        return []
    return [
        f"{100 * found['groups']:.1f} % of the groups show a value that only one of their rows holds (see --range-step)"
    ]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def guarantee(certificate: dict[str, Any]) -> str:
    """A certificate in one sentence."""
    from shoal.model.cards import times

    unit, cost, bound = certificate["unit"], certificate["cost"], certificate["lower_bound"]
    shown = f"{_short(cost)} {unit}"
    if certificate["optimal"]:
        return f"{shown}, proved optimal: no valid release has less"
    if certificate["ratio"] is None:
        return f"{shown}; no lower bound above 0 is known for this table"
    within = f"this is {'within ' if certificate['ratio'] > 1 + 1e-9 else ''}{times(certificate['ratio'])}"
    return f"{shown}; every valid release has at least {_short(bound)}, so {within}"


@app.command()
@with_models
def audit(
    tables: list[str] = _TABLES,
    quasi: str = typer.Option(..., "--quasi", help="Quasi-identifiers, separated by commas."),
    sensitive: str | None = _SENSITIVE,
    person: str | None = _PERSON,
    household: str | None = _HOUSEHOLD,
    population: Path | None = _POPULATION,
    population_weights: str | None = _WEIGHTS,
    population_size: int | None = typer.Option(None, "--population-size", help="How many people there are at all."),
    hierarchy: list[str] = typer.Option([], "--hierarchy", help="column=file.csv by which it was recoded; repeatable."),
    missing: str = typer.Option("category", "--missing", help="wildcard: show that reading of blanks too."),
    threshold: float = typer.Option(0.2, "--threshold", help="A record is at risk above this."),
    engine: str | None = _ENGINE,
    memory: str | None = _MEMORY,
    threads: int | None = _THREADS,
    temporary: Path | None = _TEMPORARY,
    glob: bool = _GLOB,
    table: str | None = _TABLE,
    query: str | None = _QUERY,
    master: str | None = _MASTER,
    separator: str | None = _SEPARATOR,
    encoding: str | None = _ENCODING,
    as_json: bool = _JSON,
    **models: Any,
) -> None:
    """Measure every privacy model and the risks of any table, ours or not; exit 1 where a model given does not hold."""
    from shoal.pipeline import audit as look

    found = look(
        source_of(tables, glob),
        quasi_identifiers=listed(quasi) or [],
        sensitive=listed(sensitive) or [],
        threshold=threshold,
        engine=engine,
        separator=separator,
        encoding=encoding,
        person=person,
        household=household,
        memory=memory,
        threads=threads,
        temporary=temporary,
        glob=glob,
        table=table,
        query=query,
        master=master,
        population=population,
        population_weights=population_weights,
        population_size=population_size,
        missing=missing,
        hierarchies=pairs(hierarchy, "--hierarchy") or None,
        **models,
    )
    answer(found.as_dict(), audit_lines(found.as_dict()), as_json)
    refuse_unmet(found.passes)


def audit_lines(found: dict[str, Any]) -> list[str]:
    """An audit as a table for people."""
    risk = found["risk"]
    lines = [
        f"rows                 {found['rows']:,}",
        f"classes              {found['classes']:,} (smallest {found['smallest_class']:,}, "
        f"mean {found['mean_class']:.1f}, largest {found['largest_class']:,})",
        f"k                    {found['k']:,}",
        *(f"different {name:<10} {fewest:,} in the class with fewest" for name, fewest in found["persons"].items()),
        f"uniques              {found['uniques']:,}",
        f"prosecutor risk      highest {risk['prosecutor_max']:.3f}, mean {risk['prosecutor_mean']:.3f}",
        _journalist(risk),
        f"marketer risk        {risk['marketer']:.3f}",
        f"records at risk      {100 * risk['records_at_risk']:.1f} % above {risk['threshold']}",
    ]
    lines += _population(found["population"])
    if found["wildcards"] is not None:
        other = found["wildcards"]
        lines.append(
            f"as wildcards         k {other['k']:,}, uniques {other['uniques']:,}, prosecutor risk highest "
            f"{other['prosecutor_max']:.3f}, mean {other['prosecutor_mean']:.3f}"
        )
    for name, levels in found["sensitive"].items():
        shown = ", ".join(f"{key} {_short(value)}" for key, value in levels.items() if value is not None)
        lines.append(f"{name:<20} {shown}")
    small = list(found["sizes"].items())[:12]
    lines.append("class sizes          " + ", ".join(f"{size}: {number:,}" for size, number in small) + _more(found))
    lines += [f"note: {note}" for note in found["notes"]]
    for check in found["checks"]:
        where = f" of {check['column']}" if check["column"] else ""
        verdict = "holds" if check["passes"] else "DOES NOT HOLD"
        lines.append(f"{check['model']}{where} {dict(check['asked'])}: {verdict}, level {_short(check['level'])}")
    return lines


def _journalist(risk: dict[str, Any]) -> str:
    if "journalist_mean" not in risk:
        return f"journalist risk      highest {risk['journalist_max']:.3f} (no population table: the prosecutor's)"
    out = (
        f"journalist risk      highest {risk['journalist_max']:.3g}, mean {risk['journalist_mean']:.3g}, "
        f"{100 * risk['journalist_at_risk']:.1f} % above {risk['threshold']}"
    )
    if "individual_max" in risk:
        out += f"; individual risk by weights at most {risk['individual_max']:.3g}, mean {risk['individual_mean']:.3g}"
    return out


def _population(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    told = found["uniques"]
    shown = ", ".join(f"{n} {told[n]:,.0f}" for n in ("zayatz", "snb", "pitman") if told[n] is not None)
    alone = f"population uniques   about {told['dankar']:,.0f} of {found['rows']:,} people ({told['rule']}; {shown})"
    if "k_map" not in found:
        return [alone]
    least, most = found["presence"]
    return [
        alone,
        f"population           {found['rows']:,} people ({found['from']}), at least {found['k_map']:,} fit a class; "
        f"rows per person {least:.3g} to {most:.3g}",
    ]


def _more(found: dict[str, Any]) -> str:
    hidden = len(found["sizes"]) - 12
    return f" and {hidden} more sizes" if hidden > 0 else ""


@app.command()
def verify(
    release: Path = typer.Argument(help="The file that was written."),
    certificate: Path = typer.Argument(help="The certificate beside it."),
    original: list[Path] = typer.Option(
        [], "--original", help="The table it was made from; of regions the areas, then the pairs; repeatable."
    ),
    separator: str | None = typer.Option(None, "--separator", help="Field separator of an original CSV."),
    encoding: str | None = typer.Option(None, "--encoding", help="utf-8 or latin-1, of an original CSV."),
    hierarchy: list[str] = typer.Option([], "--hierarchy", help="column=file.csv, where it is elsewhere; repeatable."),
    population: Path | None = typer.Option(None, "--population", help="The population it was measured by."),
    signer: Path | None = typer.Option(None, "--signer", help="Public key whose owner must have signed."),
    as_json: bool = _JSON,
) -> None:
    """Recheck an output of any command against its certificate; with what it was made from, everything."""
    from shoal.publishing.verify import verify as check

    with progress() as told:
        verdict = check(
            release,
            certificate,
            (original[0] if len(original) == 1 else original) if original else None,
            separator=separator,
            encoding=encoding,
            hierarchies=pairs(hierarchy, "--hierarchy"),
            population=population,
            signer=signer,
            progress=told,
        )
    short = {"recomputed": "", "checked for consistency": " (consistent)", "stated": " (stated, not checked)"}
    lines = [f"{'ok  ' if f.holds else 'FAIL'}  {f.check:<18} {f.found}{short[f.how]}" for f in verdict.findings]
    lines.append("everything checked holds" if verdict.holds else "the release does not hold what its certificate says")
    answer(verdict.as_dict(), lines, as_json)
    refuse_unmet(verdict.holds)


@app.command()
def keygen(
    key: Path = typer.Argument(help="File of the private key; the public one is written beside it as KEY.pub."),
    as_json: bool = _JSON,
) -> None:
    """Make a pair of keys: sign certificates with the private one, hand the public one to who checks them."""
    from shoal.publishing.signing import make_key

    private, public = make_key(key)
    lines = [f"private key  {private}  (keep it; anonymize --sign)", f"public key   {public}  (verify --signer)"]
    answer({"private": str(private), "public": str(public)}, lines, as_json)


DEMO_QUASI = ["age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb"]


@app.command()
def demo(
    folder: Path = typer.Option(Path("shoal-demo"), "-o", "--output", help="Folder to write into."),
    force: bool = _FORCE,
    as_json: bool = _JSON,
) -> None:
    """Anonymize a real table that comes with an installed package; nothing to prepare."""
    import polars as pl

    from shoal.engines.records import fair_survey
    from shoal.engines.store import write_table
    from shoal.engines.targets import JSON, PAGE, TABLE, check_outputs
    from shoal.pipeline import prepare

    people = fair_survey()
    folder.mkdir(parents=True, exist_ok=True)
    source, target, page = folder / "people.csv", folder / "release.csv", folder / "report.html"
    beside = folder / "release.certificate.json"
    ours = source.is_file() and source.read_bytes() == people.write_csv().encode()  # an earlier demo's folder
    outputs = [(source, TABLE), (target, TABLE), (beside, JSON), (page, PAGE)]
    check_outputs(outputs, overwrite=force or ours)
    write_table(people, source)
    with progress() as told:
        release = prepare(
            source,
            quasi_identifiers=DEMO_QUASI,
            sensitive=["affairs"],
            k=5,
            distinct_l=2,
            seed=1974,
            effort="fast",
            progress=told,
        )
        release.write(target, beside)
        release.report(page)
    facts = {**release.as_dict(), "output": str(target), "certificate_file": str(beside), "report": str(page)}
    raw = release.before
    sentence = (
        f"Everyone in the release looks like at least {release.audit.k - 1} others on the seven columns, and no group "
        f"gives its members' answer away: {guarantee(facts['certificate'])}."
    )
    with pl.Config(
        tbl_rows=6, tbl_cols=9, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_width_chars=110
    ):
        shown = [*DEMO_QUASI, "affairs"]
        lines = [
            "Fair's survey of 1974 (public domain, from the package statsmodels): six of its rows before, six after.",
            str(people.select(shown).head(6)),
            str(release.table.select(shown).head(6)),
            "",
            f"before: {raw['classes']:,} classes, {raw['uniques']:,} people alone in theirs; "
            f"after: {facts['groups']:,} classes, the smallest of {facts['smallest_group']}.",
            sentence,
            "",
            *release_lines(facts)[2:],
        ]
    answer(facts, lines, as_json)
