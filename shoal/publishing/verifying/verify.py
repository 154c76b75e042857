"""``verify``: checks a release again, by itself and, if given, with its original.

Hierarchies, original, and population are inputs from the caller. A series is checked part by part, each against its
certificate, and as a chain. A release in a table of a database server is read as the file of its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.engines.open import written_file
from shoal.engines.prepared import recoded
from shoal.engines.recognize import by_name
from shoal.engines.source import Scope
from shoal.engines.store import joined_coordinates
from shoal.errors import InputError, PolicyError, ShoalError
from shoal.judge.crosswalk import promised
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding, has_two_kinds
from shoal.judge.series import certificate_of as part_of_series
from shoal.judge.series import judge_series, refuse_malformed, refuse_other
from shoal.judge.tables.large import ReleaseContents, count_release, is_parquet, read_rows
from shoal.judge.tables.original import compare
from shoal.judge.tables.population import add_population, outside, reading_of
from shoal.judge.tables.privacy import filled, limited
from shoal.judge.tables.shown import judge_classes
from shoal.model.arguments import suggesting
from shoal.model.audit import Audit
from shoal.model.cards import Shown
from shoal.model.certificate import Certificate, PublicCertificate, digest, read_json, source_of
from shoal.model.hierarchy import GENERATED, REGIONS, Hierarchy
from shoal.model.policy import PLACE, Policy
from shoal.model.rule_books import OLDEST
from shoal.model.settings import SETTINGS
from shoal.paths import MAP, ends, has_tables, kind_of
from shoal.publishing.documents import read_key, signature
from shoal.publishing.sources import opened, read_census, region_tree
from shoal.publishing.verifying.own_rows import (
    Outer,
    filled_cells,
    incomplete,
    least_suppressed_rows,
    limited_cells,
    own_findings,
    unchanged_columns,
)
from shoal.publishing.verifying.recheck import (
    Record,
    belongs,
    contents,
    parsed,
    ratio_stated,
    read_record,
    recheck,
    refuse_other_stamp,
    refuse_policy,
)
from shoal.watching import watched

RULED = ("a zip code", "a birth date or age")  # columns that Safe Harbor recodes, as recognized by name


def hierarchies_of(
    record: Record, given: Mapping[str, Any], folder: Path, needed: Sequence[str]
) -> tuple[dict[str, Any], list[Finding]]:
    """The hierarchies of a release: given, or found by name next to the certificate or in this folder.

    needed  columns whose hierarchy must be found; for other columns, a missing one is reported
    """
    out: dict[str, Any] = {}
    findings: list[Finding] = []
    for name in given:
        if name not in record.hierarchies:
            raise InputError(f"the certificate names no hierarchy of a column {name!r}")
    areas = [n for n, (source, _) in record.hierarchies.items() if source == REGIONS and n not in given]
    given = {**given, **dict.fromkeys(areas, _areas_near_certificate(record, folder))} if areas else given
    for name, (source, expected) in record.hierarchies.items():
        if source == REGIONS and given[name] is None:
            if name in needed:
                raise InputError(f"the areas of {name!r} are neither next to the certificate nor here; name them")
            text = "the graph of areas is not known, so it is not checked; name it: ⟨areas=FILE⟩ and ⟨edges=FILE⟩"
            findings.append(Finding(f"hierarchy of {name}", True, text, STATED))
            continue
        if source not in GENERATED and expected is None:
            findings.append(Finding(f"hierarchy of {name}", False, "the certificate names it without its hash"))
            continue
        if source in GENERATED:
            out[name] = source
            text = f"generated ({source}); a label is read by what it says"
            findings.append(Finding(f"hierarchy of {name}", True, text, CONSISTENT))
            continue
        try:
            found = Hierarchy.of(given[name] if name in given else source_of(name, source, folder))
        except InputError:
            if name in needed or name in given:
                raise
            text = "not given; pass it to have it checked"
            findings.append(Finding(f"hierarchy of {name}", True, text, STATED))
            continue
        except PolicyError as error:
            raise InputError(f"the hierarchy of {name!r} cannot be used: {error!s}") from None
        out[name] = found
        same = digest(found) == expected
        text = "the one certified" if same else "not the one certified"
        findings.append(Finding(f"hierarchy of {name}", same, text, RECOMPUTED))
    return out, findings


def _areas_near_certificate(record: Record, folder: Path) -> Hierarchy | None:
    """The graph of areas in the certificate, if its files are next to it or in this folder."""
    asked = record.raw["policy"]
    names = [Path(str(asked[what])).name for what in ("areas", "edges") if asked.get(what) is not None]
    found = [p for name in names for p in [next(filter(Path.is_file, (folder / name, Path(name))), None)] if p]
    if not found or len(found) < len(names):
        return None
    return region_tree(found[0], found[1] if len(found) > 1 else None, _by(asked))


def _by(asked: Mapping[str, Any]) -> str:
    """The column of the areas that defines the loss of regions."""
    return str(asked.get("region_loss") or SETTINGS["region_loss"].default)


def with_areas(given: Mapping[str, Any] | None, areas: Any, edges: Any, certificate: Path) -> Mapping[str, Any]:
    """The given hierarchies, and the graph of areas for the columns that the certificate has as regions."""
    if areas is None:
        if edges is not None:
            raise PolicyError("⟨edges⟩ are pairs of areas; name the areas, too: ⟨areas=FILE⟩")
        return given or {}
    asked = read_record(certificate).get("policy")
    asked = asked if isinstance(asked, Mapping) else {}
    trees = asked.get("hierarchies")
    names = [str(n) for n, h in trees.items() if h == REGIONS] if isinstance(trees, Mapping) else []
    if not names:
        raise InputError("the certificate has no column published as regions; leave the areas out")
    tree = region_tree(areas, edges, _by(asked))
    return {**dict.fromkeys(names, tree), **(given or {})}


def not_recoded_by_harbor(record: Record, columns: Sequence[str]) -> list[Finding]:
    """Whether Safe Harbor omitted a column whose name indicates zip codes, ages, or birth dates."""
    if record.harbor is None:
        return []
    recognized = ((name, by_name(name)) for name in columns if name not in record.harbor.columns)
    bare = [(name, found.what) for name, found in recognized if found is not None and found.what in RULED]
    text = f"column {bare[0][0]!r} is called {bare[0][1]}, and it was not recoded" if bare else "none was passed over"
    year = str(record.raw.get("made_at"))[:4]
    if not bare and not (year.isdigit() and int(year) - OLDEST - record.harbor.born in (1, 2)):  # made around New Year
        return [Finding("recoded columns", False, "another year is certified than that of the oldest when it was made")]
    return [Finding("recoded columns", not bare, text, RECOMPUTED if bare else CONSISTENT)]


class _Original(NamedTuple):
    """The original, a path, a frame, or None, and how to read it, as in ``anonymize``."""

    data: Any
    separator: str | None
    encoding: str | None
    table: str | None
    query: str | None

    def refuse_without_data(self) -> None:
        """PolicyError for settings of an original without an original."""
        if self.data is not None:
            return
        if self.table is not None or self.query is not None:
            raise PolicyError("⟨table=...⟩ and ⟨query=...⟩ say which table the original is; say ⟨original=...⟩ too")
        if self.separator is not None or self.encoding is not None:
            raise PolicyError("⟨separator=...⟩ and ⟨encoding=...⟩ say how the original is read; say ⟨original=...⟩ too")

    def refuse_for_crosswalk(self) -> None:
        """PolicyError for a table of a database if a crosswalk is checked; a layer or sheet has the same option."""
        first = self.data[0] if isinstance(self.data, (list, tuple)) and self.data else self.data
        if self.query is not None or (self.table is not None and not has_tables(first)):
            raise PolicyError("⟨table=...⟩ and ⟨query=...⟩ name the original of a release of a table; leave them out")

    def read(self, record: Record) -> pl.DataFrame:
        """Its rows, with coordinates joined as in the release, and columns recoded by Safe Harbor."""
        pair = record.raw["policy"].get("coordinates")
        recoded_there = {} if record.harbor is None else record.harbor.columns
        read = {*recoded_there, *(pair if isinstance(pair, list) else ())}
        gone = {*record.policy.identifiers} - read
        source = opened(self.data, self.separator, self.encoding, Scope(table=self.table, query=self.query), gone)
        if record.harbor is not None:
            rules = {n: rule for n, rule in record.harbor.columns.items() if n in source.columns}
            source = source.with_columns(recoded(source[n], rule, record.harbor.born) for n, rule in rules.items())
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(c, str) and c in source.columns for c in pair):
            joined = joined_coordinates(source, pair, record.raw["policy"].get("decimal")).alias(PLACE)
            source = source.with_columns(joined).drop(pair)
        return source


def read_population(record: Record, population: Any, given: Mapping[str, Any], folder: Path) -> Outer:
    """A function that adds the population's figures to the audit of a release."""
    policy, census = record.policy, None
    sources: dict[str, Any] = {}
    if population is not None:
        if policy.population is None:
            raise InputError("the certificate names no population; leave it out")
        pair = record.raw["policy"].get("coordinates")
        census = read_census(
            population, policy.quasi_identifiers, tuple(pair) if pair else None,
            marks=record.raw["policy"].get("decimal"),
        )  # fmt: skip
        sources = hierarchies_of(record, given, folder, tuple(record.hierarchies))[0]
    release = record.release
    read = reading_of(policy, release.publish, sources, release.stars, release.blanks, release.sheet)

    def add(frame: pl.DataFrame, audit: Audit) -> Audit:
        found = outside(frame, policy, census, read, None)
        return audit if found is None else add_population(audit, found, policy.privacy)

    return add


_Progress = Callable[[str, float | None], None]


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A title, and a line for each finding."""
    whole = "Everything" if all(f.holds for f in findings) else "Not everything"
    lines = (f"{f.check}: {'' if f.holds else 'FAILS, '}{f.found} ({f.how})" for f in findings)
    return [f"{whole} that was checked holds", *lines]


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """The result of ``verify``.

    holds        whether every line of ``findings`` holds
    findings     ``Finding``s: (what was checked, whether it holds, a sentence, how this is known)
    audit        the release of a table, judged by its own rows; None for a crosswalk
    certificate  the content of the certificate file
    record       cost and bound in the private record; None without a record
    """

    holds: bool
    findings: tuple[Finding, ...]
    audit: Audit | None
    certificate: PublicCertificate
    record: Certificate | None = None

    def _lines(self) -> list[str]:
        return _finding_lines(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "holds": self.holds,
            "findings": [f._asdict() for f in self.findings],
            "audit": None if self.audit is None else self.audit.as_dict(),
            "certificate": self.certificate.as_dict(),
            **({} if self.record is None else {"record": self.record.as_dict()}),
        }


@watched
@suggesting
def verify(
    release: str | Path,
    certificate: str | Path | None = None,
    original: Any = None,
    *,
    record: str | Path | None = None,
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    areas: Any = None,
    edges: str | Path | None = None,
    signer: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    progress: _Progress = lambda _what, _share: None,
) -> Verdict:
    """Check a written release, of a table or of any other problem, against its certificate.

    release      the published file or folder, the address of the server with the table that it became, or the table
                 of Delta or Iceberg. Tuples are counted where they are, so a file can be larger than memory
    certificate  the JSON file next to it; RELEASE.certificate.json if None
    original     the table from which it was made, a path or a frame. With it, every row is matched, and loss and cost
                 are computed again, in memory. For a crosswalk, the source or a list of sources; for clusters, the
                 table and then the coordinates of its codes
    record       the private record, RELEASE.record.json: compared with release, certificate, and, if you pass it,
                 original
    separator, encoding, table, query  of an original, as in ``anonymize``
    hierarchies  for each column, its hierarchy, if the file is not next to the certificate
    areas, edges  of columns published as regions: the graph, if its files are not next to the certificate
    signer       file of a public key: the certificate must have a signature by the private key that belongs to it
    progress     called with (step, share done or None)

    Shares no code with the solvers. Returns a Verdict; raises InputError for files of the wrong kind.
    O(n) for n rows, and O(m) memory for m different ones. docs/trust.md lists what this proves and what it does not.

    Examples:
        >>> import polars as pl, shoal, tempfile, pathlib
        >>> people = pl.DataFrame({"age": [34, 34, 35, 61, 61, 62]})
        >>> place = pathlib.Path(tempfile.mkdtemp()) / "release.csv"
        >>> beside = shoal.anonymize(people, quasi_identifiers=["age"], k=3, publish="ranges").write(place)
        >>> verify(place).holds, verify(place, beside, original=people).holds
        (True, True)
        >>> verify(place, original=people, record=place.with_name("release.record.json")).record.cost
        0.03571428571428571
    """
    if not isinstance(release, (str, PathLike)):
        raise InputError(
            f"verify reads a release that was written, and this is of type {type(release).__name__}; write it with "
            "release.write(), or look at release.audit, which was counted from the table itself"
        )
    if ends(release, MAP.endings):
        name = Path(release).name
        raise InputError(
            f"{name!r} is a page or a picture, which no certificate covers; name the release that it shows"
        )
    source = _Original(original, separator, encoding, table, query)
    source.refuse_without_data()
    progress("reading", None)
    with written_file(release, certificate) as (path, beside_it):
        given = (with_areas(hierarchies, areas, edges, beside_it), beside_it.parent)
        raw = read_record(beside_it)
        kept = None if record is None else read_record(record, private=True)
        audit = None
        if raw.get("kind", "table") == "table":
            findings, audit, stated, known = _of_table(path, raw, kept, population, given, source, progress)
        else:
            source.refuse_for_crosswalk()
            findings, stated, known = recheck(path, raw, original, separator, encoding, given, kept, table)
    findings.append(signature(raw, signer))
    return Verdict(
        holds=all(f.holds for f in findings), findings=tuple(findings), audit=audit, certificate=stated, record=known
    )


def _of_table(
    path: Path, raw: Mapping[str, Any], kept: Mapping[str, Any] | None, population: Any,
    given: tuple[Mapping[str, Any], Path], source: _Original, progress: _Progress,
) -> tuple[list[Finding], Audit, PublicCertificate, Certificate | None]:  # fmt: skip
    """The findings on a release of a table: by itself, and if given with its private record and its original.

    raw, kept  certificate file and private record
    given      hierarchies, and the folder with the others

    Returns the findings, the release's audit, the certificate's figures, and the record's.
    """
    sheet = kind_of(path) == "excel"
    public = parsed(raw, sheet)
    assert isinstance(public.stated, PublicCertificate)  # ``read_record`` refuses a record in place of a certificate
    progress("judging the release", None)
    findings, audit = _alone(path, public, population, given)
    best, known = public, None
    if kept is not None:
        if kept.get("kind", "table") != "table":
            raise InputError(
                "the record is of another kind of answer than the certificate; name the one that belongs to it"
            )
        best = parsed(kept, sheet)
        known = best.stated if isinstance(best.stated, Certificate) else None
        more = [f for f in _alone(path, best, population, given)[0] if f not in findings]
        findings += [*belongs(public, best), *(f._replace(check=f"record, {f.check}") for f in more)]
    if source.data is not None:
        progress("reading the original", None)
        findings += _matched(path, best, source.read(best), given, progress)
    findings += [*promised(public.stated), *([] if kept is not None else [ratio_stated(public.stated)])]
    if known is not None and source.data is None and known.lower_bound:
        text = f"{known.lower_bound:.9g} on record; the original would tell more"
        findings.append(Finding("bound", True, text, STATED))
    return findings, audit, public.stated, known


def _alone(
    path: Path, record: Record, population: Any, given: tuple[Mapping[str, Any], Path]
) -> tuple[list[Finding], Audit]:
    """The findings on the release by itself and with its population."""
    policy = record.policy
    beyond = [] if record.private else [contents(path, record.separator)]
    held = count_release(path, [*policy.quasi_identifiers, *policy.sensitive], record.separator)
    both = [c.name for c in held.cells if has_two_kinds(c, is_parquet(path))]
    if both and beyond and beyond[0].holds:
        beyond = [Finding("contents", False, f"column {both[0]!r} has two kinds of missing values")]
    try:
        outer = read_population(record, population, *given)
        trees, used_by = hierarchies_of(record, *given, needed=policy.sensitive)
        findings, audit = own_findings(path, held, record, outer, trees)
    except PolicyError as error:
        raise InputError(f"the certificate file asks for what cannot be judged: {error!s}") from None
    except OverflowError:
        raise InputError("the certificate file asks for numbers that no table can have") from None
    findings += [*beyond, *not_recoded_by_harbor(record, held.columns)]
    if not record.private:
        return findings + used_by, audit
    return findings + (_classes(held, record, trees) if record.release.publish == "hierarchy" else []), audit


def _classes(held: ReleaseContents, record: Record, trees: Mapping[str, Any]) -> list[Finding]:
    """The findings on the classes of given hierarchies, compared with the record."""
    release = record.release
    assert release.changed is not None and release.loss is not None  # noqa: PT018 - a record states both
    at_hand = {
        n: h for n, h in trees.items() if isinstance(h, Hierarchy) and n in release.stars and n not in release.blanks
    }
    every = set(at_hand) >= {n for n in record.hierarchies if n in release.stars}
    ncp = release.loss["ncp"] if every else None
    return judge_classes(held.cells, held.counts, at_hand, record.policy.star, release.stars, release.changed, ncp)


def _matched(
    path: Path, record: Record, source: pl.DataFrame, given: tuple[Mapping[str, Any], Path], progress: _Progress
) -> list[Finding]:
    """The findings on the release with the original."""
    policy = record.policy
    used = hierarchies_of(record, *given, needed=tuple(record.hierarchies))[0]
    findings: list[Finding] = []
    complete = set(policy.quasi_identifiers) <= set(source.columns)
    if policy.missing == "apart" and complete and record.private:
        findings.append(incomplete(record, original=source))
    if policy.missing == "filled" and complete:
        source, cells = filled(source, policy.quasi_identifiers, policy.limits)
        findings += [filled_cells(record, cells)] if record.private else []
    if policy.max_suppressed and complete and not record.private:
        held = count_release(path, [*policy.quasi_identifiers, *policy.sensitive], record.separator)
        findings.append(least_suppressed_rows(held, record, source))
    if policy.limits and complete:
        source, seen = limited(source, policy.limits)
        findings += [limited_cells(record, seen)] if record.private else []
    findings.append(unchanged_columns(record, source))
    return findings + compare(source, read_rows(path, record.separator), record.release, used, progress)


@dataclass(frozen=True, kw_only=True, repr=False)
class SeriesVerdict(Shown):
    """The result of verifying a series.

    holds     whether every line of ``findings`` holds
    findings  as in ``shoal.verify``; those of part 3 begin with "part 3"
    parts     number of parts
    """

    holds: bool
    findings: tuple[Finding, ...]
    parts: int

    def _lines(self) -> list[str]:
        return _finding_lines(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"holds": self.holds, "parts": self.parts, "findings": [f._asdict() for f in self.findings]}


def verify_series(
    place: str | Path, *, signer: str | Path | None = None, progress: _Progress = lambda _what, _share: None
) -> SeriesVerdict:
    """Check every part of a series and the chain again; if the private folder is there, also the ledgers and the
    promise.

    signer  file of a public key: every certificate must be signed with its private key

    Raises InputError for a folder that isn't a series, and for a key that is none. O(rows of all parts).
    """
    place = Path(place)
    refuse_other(place)
    if signer is not None:
        read_key(signer, "public")
    about = read_json(place / "series.json", "series")
    numbers = sorted(int(p.name) for p in place.iterdir() if p.is_dir() and p.name.isdigit())
    try:
        refuse_malformed(about)
        refuse_other_stamp(about)
        refuse_policy(about["policy"])
    except InputError as error:
        return SeriesVerdict(holds=False, findings=(Finding("series", False, str(error)),), parts=len(numbers))
    policy = Policy.read(place / "series.json")
    if numbers != list(range(1, len(numbers) + 1)):
        wrong = Finding("chain", False, "a part is missing: the numbers of the parts have a gap")
        return SeriesVerdict(holds=False, findings=(wrong,), parts=len(numbers))
    findings: list[Finding] = []
    for number in numbers:
        progress(f"part {number}", number / max(len(numbers), 1))
        try:
            release, certificate = part_of_series(place, number)
            named = read_json(certificate).get("hierarchies") or {}  # a view has hierarchies of its own columns
            trees = {n: h for n, h in policy.hierarchies.items() if n in named}
            verdict = verify(release, certificate, hierarchies=trees, signer=signer)
        except ShoalError as error:
            findings.append(Finding(f"part {number}", False, str(error)))
            continue
        failed = [f for f in verdict.findings if not f.holds]
        text = f"{len(verdict.findings)} checks"
        findings.append(
            Finding(f"part {number}", not failed, text if not failed else f"{failed[0].check}: {failed[0].found}")
        )
    if all(f.holds for f in findings):
        everybody = replace(policy, person=None)  # each person has one row, so rows count as persons
        models = [m for m in everybody.of_rows if m.applies_to != "population"]
        findings += judge_series(place, models, len(numbers), dict(policy.hierarchies))
    return SeriesVerdict(holds=all(f.holds for f in findings), findings=tuple(findings), parts=len(numbers))
