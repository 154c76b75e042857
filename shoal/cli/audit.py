"""Commands that inspect a table: ``shoal audit``, ``shoal attack``, and ``shoal init``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, in_flags, listed, pairs, present, source_of, working
from shoal.cli.options import (
    FORCE,
    JSON_,
    LABELS,
    OF_DATABASE,
    QUERY,
    TABLES,
    SourceOptions,
    Text,
    asks,
    flag,
    with_options,
)
from shoal.errors import PolicyError, ShoalError, is_number, one_line
from shoal.model.cards import number, several
from shoal.model.settings import Measured as Judged
from shoal.paths import PAGE, POLICY, TABLE, internal_path, is_arx, is_server, named_after, without_secrets

if TYPE_CHECKING:
    from shoal.engines.propose import Proposal


class AuditOptions(NamedTuple):
    """How the table is measured."""

    population_size: int | None = flag(None, "--population-size", "Number of people in the population.")
    missing: str = flag(
        "category",
        "--missing",
        "How a missing value counts: as a value (category), also as any value (wildcard), or filled.",
    )
    threshold: float = flag(0.2, "--threshold", "Risk above which a record is at risk.")


class EarlierReleases(NamedTuple):
    """Earlier releases of the same people, and the original tables of those and of this release."""

    earlier: list[str] = flag([], "--with", "An earlier release of the same people, to compare with. Repeatable.")
    original: Path | None = flag(None, "--original", "With --with: the table from which this release was made.")
    with_original: list[Path] = flag(
        [], "--with-original", "Table from which the earlier release was made, if another. One for each --with."
    )

    def settings(self) -> dict[str, Any]:
        """These options as keyword arguments of ``shoal.audit``."""
        given = {"earlier": self.earlier, "original": self.original, "earlier_originals": self.with_original}
        return {name: value for name, value in given.items() if value}


@app.command()
@with_options
def audit(
    tables: list[str] = TABLES,
    policy: Path | None = flag(None, "--policy", "A TOML file, or a certificate: its roles, and its models as checks."),
    options: dict[str, Any] = asks(
        [*Judged.__annotations__], models=True, hierarchies="column=file.csv by which it was recoded. Repeatable."
    ),
    measured: AuditOptions = AuditOptions(),
    earlier: EarlierReleases = EarlierReleases(),
    source: SourceOptions = SourceOptions(),
    as_json: bool = JSON_,
) -> None:
    """Measure every privacy model and the risks of any table. Exits with status 1 if a requested model fails."""
    from shoal.model.policy import Policy
    from shoal.publishing.tables.audited import audit as look

    asked = None if policy is None else Policy.read(policy)
    how = {**options, **source._asdict(), **measured._asdict(), **earlier.settings()}
    with working("measuring"):
        found = look(source_of(tables, source.glob), asked, **how)
    met = found.passes is not False  # None: no model was requested
    answer(found.as_dict(), audit_lines(found.as_dict()), as_json, 0 if met else 1)


def audit_lines(found: dict[str, Any]) -> list[str]:
    """An audit as lines of text."""
    risk = found["risk"]
    lines = [
        f"rows                 {found['rows']:,}",
        f"groups               {found['classes']:,} (smallest {found['smallest_class']:,}, "
        f"mean {found['mean_class']:.1f}, largest {found['largest_class']:,})",
        f"k                    {found['k']:,}",
        *(f"different {name:<10} {fewest:,} in the group with fewest" for name, fewest in found["persons"].items()),
        f"alone in a group     {found['uniques']:,}",
        f"prosecutor risk      highest {risk['prosecutor_max']:.3f}, mean {risk['prosecutor_mean']:.3f}",
        _journalist_line(risk),
        f"marketer risk        {risk['marketer']:.3f}",
        f"records at risk      {100 * risk['records_at_risk']:.1f} % above {risk['threshold']}",
    ]
    lines += _population_lines(found["population"])
    if found["wildcards"] is not None:
        other = found["wildcards"]
        lines.append(
            f"as wildcards         k {other['k']:,}, uniques {other['uniques']:,}, prosecutor risk highest "
            f"{other['prosecutor_max']:.3f}, mean {other['prosecutor_mean']:.3f}"
        )
    for name, levels in found["sensitive"].items():
        shown = ", ".join(f"{_LEVELS[key]} {number(value)}" for key, value in levels.items() if value is not None)
        lines.append(f"{name:<20} {shown}")
    small = list(found["sizes"].items())[:12]
    lines.append(
        "sizes of groups      " + ", ".join(f"{size}: {count:,}" for size, count in small) + _further_sizes(found)
    )
    for composed in found.get("composition", ()):
        lines += composition_lines(composed)
    lines += [f"note: {in_flags(note)}" for note in found["notes"]]
    for check in found["checks"]:
        where = f" of {check['column']}" if check["column"] else ""
        wanted = ", ".join(f"{name} = {number(value)}" for name, value in dict(check["asked"]).items())
        verdict = "holds" if check["passes"] else "does NOT hold"
        # if a group has only one value, or lacks a value of the table, no finite level of the model suffices
        level = "no level holds" if check["level"] is None else number(check["level"])
        lines.append(f"{check['model']}{where}, {wanted}: {verdict}; the table reaches {level}")
    return lines


def composition_lines(composed: dict[str, Any]) -> list[str]:
    """What releases reveal in combination, as lines of text."""
    of = f" of {composed['sensitive']}" if composed["sensitive"] else ""
    alone = composed["rows_alone"]
    if alone is not None:
        lines = [f"with earlier ones    {alone['rows']:,} rows may be about somebody who is in an earlier release"]
        if alone["tell"] is not None:
            lines.append(
                f"  one value{of} is left: surely for {alone['tell']:,} of them, perhaps for {alone['may_tell']:,}"
            )
        return lines
    maybe = "may be" if "assumed" in composed["placed"] else "are"
    lines = [f"with earlier ones    {composed['people']:,} people {maybe} in several releases{of and ';' + of}"]
    for key, who in (("known", "groups known"), ("unknown", "a register")):
        learned = composed[key]
        if learned is not None:
            lines.append(f"  {who:<18} " + "; ".join(_composition_parts(learned, composed["k"], composed["l"])))
    if composed["unplaced"]:
        lines.append(
            f"  {composed['unplaced']:,} people have no published row that covers theirs, so are left out of the first"
        )
    return lines


def _composition_parts(found: dict[str, Any], k: int, l: float | None) -> list[str]:
    parts = []
    if found["fewer_than_k"] is not None:
        parts.append(f"{found['fewer_than_k']:,} share all groups with fewer than {k}")
    if found["one_value"] is not None:
        parts.append(f"one value is left for {found['one_value']:,}")
    if found["above"] is not None:
        right = "" if found["right"] is None else f" (right for {100 * found['right']:.0f} %)"
        parts.append(
            f"a value is likelier than 1/{l:g} for {found['above']:,}{right}, by one release {found['alone']:,}"
        )
    if found["worst"] is not None:
        worst = found["worst"]
        left = (
            "" if worst["values"] is None else f", {worst['values']:,} values, the likeliest {worst['posterior']:.2f}"
        )
        parts.append(f"the worst: {worst['people']:,} alike{left}")
    return parts


_LEVELS = {
    "l": "l", "distinct_l": "different values", "entropy_l": "entropy l", "recursive_c": "c (l = 2)",
    "alpha": "largest share of a value", "t_equal": "t", "t_ordered": "t of ordered values",
    "t_hierarchical": "t by the hierarchy", "beta": "beta", "delta": "delta",
}  # fmt: skip


def _journalist_line(risk: dict[str, Any]) -> str:
    if "journalist_mean" not in risk:
        return f"journalist risk      highest {risk['journalist_max']:.3f} (no population table: the prosecutor's)"
    out = (
        f"journalist risk      highest {risk['journalist_max']:.3g}, mean {risk['journalist_mean']:.3g}, "
        f"{100 * risk['journalist_at_risk']:.1f} % above {risk['threshold']}"
    )
    if "individual_max" in risk:
        out += f"; individual risk by weights at most {risk['individual_max']:.3g}, mean {risk['individual_mean']:.3g}"
    return out


def _population_lines(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    uniques = found["uniques"]
    others = [
        n for n in ("zayatz", "snb", "pitman") if uniques["rule"] not in (n, "counted") and uniques[n] is not None
    ]
    how = "; ".join([uniques["rule"], *([", ".join(f"{n} {uniques[n]:,.0f}" for n in others)] if others else [])])
    alone = f"population uniques   about {uniques['dankar']:,.0f} of {found['rows']:,} people ({how})"
    if "k_map" not in found:
        return [alone]
    least, most = found["presence"]
    return [
        alone,
        f"population           {found['rows']:,} people ({found['from']}), at least {found['k_map']:,} fit a group; "
        f"rows per person {least:.3g} to {most:.3g}",
    ]


def _further_sizes(found: dict[str, Any]) -> str:
    hidden = len(found["sizes"]) - 12
    return f" and {several(hidden, 'more size')}" if hidden > 0 else ""


class IntruderTables(NamedTuple):
    """Tables that the intruder has."""

    original: Path | None = flag(None, "--original", "Its original, to check guesses; makes the page internal.")
    register: Path | None = flag(None, "--register", "A table of people who might be in the release.")
    earlier: list[Path] = flag([], "--with", "Another release of the same people. Repeatable.")


class ColumnsOfRelease(NamedTuple):
    """Roles of the columns, if there is no certificate that states them."""

    quasi: str | None = flag(None, "--quasi", "Quasi-identifiers, separated by commas; the certificate's by default.")
    sensitive: str | None = flag(
        None, "--sensitive", "Sensitive columns, separated by commas; the certificate's by default."
    )
    certificate: Path | None = flag(None, "--certificate", "The release's certificate, if it is not next to it.")
    hierarchy: list[str] = LABELS
    k: int | None = flag(None, "--k", "The k that the release promises; the certificate's by default.")
    l: float | None = flag(None, "--l", "The l that the release promises; the certificate's by default.")


@app.command()
@with_options
def attack(
    release: Path = typer.Argument(
        help="A release from any tool: CSV, Parquet, Excel, or a file of SPSS, Stata, or SAS."
    ),
    known: IntruderTables = IntruderTables(),
    columns: ColumnsOfRelease = ColumnsOfRelease(),
    fail_above: float | None = flag(None, "--fail-above", "Exit 1 if a risk is above this share, such as 0.5."),
    text: Text = Text(),
    seed: int = flag(0, "--seed", "Seed of the samples of people."),
    output: Path | None = flag(
        None, "-o", "--output", "An HTML page; with --original its name ends in .internal.html."
    ),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Run the literature's attacks on a release. Reports what an intruder learns with it and without it."""
    from shoal.attacks.attack import attack as attacked
    from shoal.attacks.attack import line_of
    from shoal.engines.atomic import check_outputs

    read = [p for p in (release, known.original, known.register, *known.earlier, columns.certificate) if p is not None]
    if fail_above is not None and not 0 <= fail_above <= 1:
        raise PolicyError(f"--fail-above {fail_above:g}: a risk is a share, from 0 to 1, such as 0.5")
    target = internal_path(output) if output is not None and known.original is not None else output
    check_outputs([(target, PAGE)], read, overwrite=force)
    present(*read, folders=True)
    with working("attacking"):
        found = attacked(
            release, known.original, known.register, known.earlier,
            quasi_identifiers=listed(columns.quasi), sensitive=listed(columns.sensitive),
            certificate=columns.certificate, hierarchies=pairs(columns.hierarchy, "--hierarchy") or None,
            k=columns.k, l=columns.l, seed=seed, **text._asdict(),
        )  # fmt: skip
    page = {} if output is None else {"output": str(found.report(output))}
    failed = () if fail_above is None else found.above(fail_above)
    verdict = {} if fail_above is None else {
        "fail_above": fail_above, "failed": [f"{f.attack}, {f.name}" for f in failed],
    }  # fmt: skip
    lines = [*(line_of(f) for f in found.findings), *(f"note: {note}" for note in found.notes)]
    lines += [f"above {fail_above:g}: {f.attack}, {f.name}: {f.risk:.3f}" for f in failed]
    lines += [f"page  {name}" for name in page.values()]
    answer(found.as_dict() | page | verdict, lines, as_json, 1 if failed else 0)


@app.command()
@with_options
def init(
    table: str = typer.Argument(
        help="CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file; folder, DuckDB or SQLite file, or a server's "
        "address; or an ARX project (.deid), whose roles and hierarchies are kept.",
    ),
    output: Path | None = flag(None, "-o", "--output", "The policy; TABLE.policy.toml by default."),
    k: int | None = flag(None, "--k", "The k to write into the policy; 5 by default."),
    l: int | None = flag(None, "--l", "The l to write, and to test sensitive columns; 2 by default."),
    text: Text = Text(),
    of_database: str | None = OF_DATABASE,
    query: str | None = QUERY,
    force: bool = flag(False, "--force", "Replace an existing policy."),
    as_json: bool = JSON_,
) -> None:
    """Read a table, propose a role for each column and a way to publish, with reasons, and write a policy to edit."""
    from shoal.engines.atomic import SHARED, check_outputs, publish_text
    from shoal.engines.propose import looked_at, person_of, publishing, rounding, rounding_words, write_policy
    from shoal.engines.source import Scope
    from shoal.engines.store import unread_sheets
    from shoal.engines.unassigned import words, worst_sets

    for name, least in (("k", k), ("l", l)):
        if least is not None and least < 1:
            raise PolicyError(f"--{name} {least}: a whole number, at least 1")
    data = source_of([table], False)
    if is_arx(data):
        if text != Text(None, None):
            raise PolicyError("--separator and --encoding read a CSV, and a project says itself how it is written")
        if l is not None:
            raise PolicyError("--l: a project says itself which models it asks for; change the policy made of it")
        _policy_from_arx(Path(data), output, k, force, as_json)
        return
    k, l = k or 5, l or 2
    shown = without_secrets(str(data)) if is_server(data) else str(data)
    target = output or _policy_place(data, of_database, query)
    closed = check_outputs([(target, POLICY)], [data] if isinstance(data, Path) else [], overwrite=force)
    with working("looking at the columns"):
        look = looked_at(data, l=l, **text._asdict(), scope=Scope(table=of_database, query=query))
    found, together, rows, _ = look
    # the comments in the policy contain figures of the table
    publish_text(target, write_policy(of_database or Path(shown).name, look, k=k, l=l), closed=closed | SHARED)
    lines = [
        f"{one_line(c.name):<24} {c.role:<18} {c.distinct:>8,} {'value ' if c.distinct == 1 else 'values'}  {c.reason}"
        for c in found
    ]
    if any(is_number(c.name) for c in found):
        lines.append("warning: a column's name is a number: if the first line is a row, add a line of names above it")
    sheets = unread_sheets(data, of_database)
    lines += [f"warning: {in_flags(sentence)}" for sentence in (*sheets, *look.sampled)] + _warning_lines(found)
    lines += [f"together: {words(d, rows)}" for d in worst_sets(together)]
    way, why = publishing(found)
    lines.append(f"publish {way}: {why}")
    if steps := rounding(found):
        lines.append(
            f"round   the ends of ranges: {rounding_words(found)}; unrounded, they would be values of single rows"
        )
    if (who := person_of(found)) is not None:
        lines.append(f"person  {who}: k counts persons, not rows; remove this line of the policy if it names none")
    lines.append(f"policy  {target}")
    named = any(c.role == "quasi-identifier" for c in found)
    first = "check the roles in it" if named else "name in quasi_identifiers there what others may know of a person"
    given = {**text._asdict(), "table": of_database, "query": query}
    read = "".join(f" --{n} {quote(v)}" for n, v in given.items() if v is not None)
    again = "ADDRESS" if shown != str(data) else quote(shown)  # a server's address may contain a user's name
    lines.append(f"next    {first}, then run: shoal anonymize {again} --policy {quote(str(target))}{read}")
    facts = {
        "columns": [
            {"name": c.name, "role": c.role, "distinct": c.distinct, "reason": c.reason, "warnings": list(c.warnings)}
            for c in found
        ],
        "dangerous": [d.as_dict() for d in together],
        "publish": {"way": way, "reason": why, "range_step": steps},
        "rows": look.of,
        "looked_at": rows,
        "output": str(target),
    }
    answer(facts, lines, as_json)


def _policy_place(data: Any, table: str | None, query: str | None) -> Path:
    """Where a policy is written: next to a file, or, for tables elsewhere, in the current folder under the table's
    name."""
    if isinstance(data, Path) and table is None:
        return data.with_name(f"{named_after(data)}.policy.toml")
    if query is not None and is_server(data):
        raise PolicyError("a query has no name that its policy could have; name the policy with -o")
    from shoal.engines.lakes import folder_of

    return Path(f"{(table or folder_of(data).name).replace('/', '_')}.policy.toml")


def _warning_lines(found: list[Proposal]) -> list[str]:
    """One line for each kind of warning, with all columns that have it. Their row counts may differ."""
    alike: dict[str, list[tuple[str, int, str]]] = {}
    for column in found:
        for (rows, what), sentence in zip(column.notes, column.warnings, strict=True):
            alike.setdefault(what, []).append((column.name, rows, sentence))
    lines = []
    for what, of in alike.items():
        if of[0][1] and len(of) > 1:
            named = ", ".join(f"{name} ({several(rows, 'row')})" for name, rows, _ in of)
            lines.append(f"{named}: these rows contain {what}")
        else:
            lines.append(f"{', '.join(name for name, _, _ in of)}: {of[0][2]}")
    return [f"warning: {line}" for line in lines]


def _policy_from_arx(project: Path, output: Path | None, k: int | None, force: bool, as_json: bool) -> None:
    """Writes a policy, and the hierarchies that it names, from an ARX project."""
    from tempfile import TemporaryDirectory

    from shoal.engines.arx import hierarchy_files, policy_text, read_project
    from shoal.engines.atomic import check_outputs, publish_text
    from shoal.model.hierarchy import Hierarchy, decoded

    found = read_project(project)
    if k is not None and found.k:
        raise PolicyError(f"--k {k}: the project asks for k = {found.k}; change that in the policy made of it")
    target = output or project.with_name(f"{project.stem}.policy.toml")
    stem = target.name.removesuffix(".toml").removesuffix(".policy")
    folder = target.parent / f"{stem}-hierarchies"
    files = hierarchy_files(found, folder.name)
    places = [target.parent / name for name in files.values()]
    # a bad hierarchy is refused before anything is written, not when the policy is used
    with TemporaryDirectory() as trial:
        for name, held in found.hierarchies.items():
            Path(trial, Path(files[name]).name).write_bytes(held)
            Hierarchy.of(Path(trial, Path(files[name]).name))
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        closed = check_outputs([(target, POLICY), *((p, TABLE) for p in places)], [project], overwrite=force)
    except ShoalError:
        if made:
            folder.rmdir()
        raise
    for place, held in zip(places, found.hierarchies.values(), strict=True):
        publish_text(place, decoded(held, place.name), closed=closed)
    publish_text(target, policy_text(found, project, files, k or 5), closed=closed)
    lines = [f"{name:<24} {role.replace('_', '-').removesuffix('s')}" for name, role in found.roles.items()]
    lines += [f"hierarchy {name:<14} {place}" for name, place in zip(files, places, strict=True)]
    lines += [f"not read: {text}" for text in found.unread]
    lines += [f"policy  {target}", f"next    shoal anonymize TABLE --policy {quote(str(target))}"]
    facts = {
        "columns": [{"name": name, "role": role} for name, role in found.roles.items()],
        "hierarchies": {name: str(place) for name, place in zip(files, places, strict=True)},
        "not_read": list(found.unread),
        "output": str(target),
    }
    answer(facts, lines, as_json)
