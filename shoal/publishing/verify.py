"""Recheck a release: without the original what it shows by itself, with the original everything."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines.safe_harbor import recoded
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.file import seal
from shoal.judge.filled import filled
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding
from shoal.judge.grid import range_steps
from shoal.judge.original import compare
from shoal.judge.parts import Asked, Held, count_release, digest_of, judge_held, read_rows
from shoal.judge.population import beside, outside, reading_of
from shoal.judge.safe_harbor import breach
from shoal.model.audit import Audit
from shoal.model.cards import Shown
from shoal.model.certificate import Certificate
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.policy import PLACE
from shoal.model.record import digest, source_of
from shoal.publishing.opening import opened, read_census
from shoal.publishing.recheck import recheck
from shoal.publishing.recorded import Record, parsed, read_record
from shoal.publishing.signing import signature
from shoal.publishing.unseen import filled_cells, incomplete, lacking, persons, population_of
from shoal.watching import watched

_Outer = Callable[[pl.DataFrame, Audit], Audit]


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """What ``verify`` found.

    holds     every line of ``findings`` holds
    findings  ``Finding``s: (what was checked, whether it holds, a sentence, how that is known)
    audit     the release of a table judged by its own rows; None for a crosswalk
    """

    holds: bool
    findings: tuple[Finding, ...]
    audit: Audit | None
    certificate: Certificate

    def _lines(self) -> list[str]:
        title = "Everything that was checked holds" if self.holds else "Not everything that was checked holds"
        return [title, *(f"{f.check}: {'' if f.holds else 'FAILS, '}{f.found} ({f.how})" for f in self.findings)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "holds": self.holds,
            "findings": [{"check": f.check, "holds": f.holds, "found": f.found, "how": f.how} for f in self.findings],
            "audit": None if self.audit is None else self.audit.as_dict(),
            "certificate": self.certificate.as_dict(),
        }


def _stale(path: Path, raw: Mapping[str, Any]) -> str:
    """Which of release and certificate is the older, where they do not belong together."""
    said = (
        "the file is not the one certified: the certificate belongs to another file, or to another version of this "
        "release"
    )
    try:
        made = datetime.datetime.fromisoformat(str(raw["made_at"])).timestamp()
        written = path.stat().st_mtime
    except (KeyError, ValueError, OSError):
        return said
    older = "the certificate is the older" if written >= made + 1 else "the release is the older"
    return f"{said}; by their times {older}, so make both again"


def _levels(record: Record, audit: Audit) -> Finding:
    """The levels certified against those reached; every model asked for has its level."""
    reached: dict[str, list[float | None]] = {"k": [audit.k]}
    for check in audit.checks:
        reached.setdefault(check.short, []).append(check.level)
    apart = {m.short for m in record.policy.privacy if m.speaks == "population"} - set(reached)
    lacking = sorted((set(reached) | apart) - set(record.levels))
    if audit.rows and lacking:
        return Finding("levels", False, f"it does not state {lacking[0]}")
    for name, level in record.levels.items():
        if name in apart:  # not without the population; ``population_of`` says what is stated
            continue
        found = [v for v in reached.get(name, []) if v is not None and math.isfinite(v)]
        if level is not None and not any(math.isclose(level, v, rel_tol=1e-9) for v in found):
            return Finding("levels", False, f"it states {name} = {level}, which the release does not have")
    return Finding("levels", True, ", ".join(f"{n} = {v:.6g}" for n, v in record.levels.items() if v is not None))


def _consistent(record: Record) -> Finding:
    """Whether the certificate file agrees with itself."""

    def no(why: str) -> Finding:
        return Finding("certificate", False, why, CONSISTENT)

    said, stated, written = record.said, record.stated, record.raw["certificate"]
    total = sum(said.stars.values())
    starred = said.publish == "stars"
    most = total if said.publish != "centers" else 0
    if (
        total > most
        or said.loss["stars"] > most
        or (starred and (said.loss["stars"] != total or said.stars != said.changed))
    ):
        return no("its loss and its stars contradict each other")
    cells = max(record.rows * len(said.stars), 1)
    if starred and not math.isclose(said.loss["ncp"], total / cells, rel_tol=1e-9, abs_tol=1e-12):
        return no("its stars and its NCP contradict each other")
    known = {"stars": said.loss["stars"], "suppressed tuples": said.loss["suppressed_tuples"]}
    if said.unit == "ncp" and not said.weights:
        known["ncp"] = said.loss["ncp"]
    if said.publish != "centers" and said.unit not in (*known, "ncp"):
        return no("its unit is none of a table's")
    if said.publish != "centers" and not math.isclose(known.get(said.unit, said.cost), said.cost, rel_tol=1e-9):
        return no("its cost and its loss contradict each other")
    ratio, number = stated.ratio, record.ratio
    if (ratio is None) != (number is None) or not math.isclose(float(ratio or 0), number or 0, rel_tol=1e-9):
        return no("its ratio is not cost over lower bound")
    if "optimal" in written and written["optimal"] is not stated.optimal:
        return no("it says optimal where cost and lower bound do not")
    if record.raw.get("seal") != seal(record.raw):
        return no("it was changed after it was written")
    return Finding("certificate", True, "agrees with itself", CONSISTENT)


def _own(
    path: Path, held: Held, record: Record, outer: _Outer, trees: Mapping[str, Hierarchy]
) -> tuple[list[Finding], Audit]:
    """What a release shows by itself, and beside its population where that is at hand.

    trees  the hierarchies of its sensitive columns
    """
    policy, said = record.policy, record.said
    audit, stars = _judged(held, record, trees)
    if policy.population is not None or policy.weighed:
        # weights that were carried stand row by row, outside the tuples counted
        audit = outer(read_rows(path, record.separator) if policy.weighed else held.rows(), audit)
    findings = [*_same_file(path, record), stars]
    findings.append(Finding("rows", audit.rows == record.rows, f"{audit.rows} rows, {record.rows} certified"))
    for check in audit.checks:
        where = f" of {check.column}" if check.column else ""
        wanted = ", ".join(f"{name} = {value}" for name, value in check.asked.items())
        findings.append(Finding(check.model, check.passes, f"asked {wanted}{where}, reached {check.level}"))
    groups = audit.classes == record.groups and audit.smallest_class == record.smallest
    seen = f"{audit.classes} classes, the smallest of {audit.smallest_class} rows"
    findings.append(Finding("groups", groups, f"{seen}; {record.groups} and {record.smallest} certified"))
    findings += [_levels(record, audit), _consistent(record)]
    if policy.range_step:
        findings.append(range_steps(held.cells, policy.range_step))
    if policy.max_suppressed:
        findings.append(_suppressed(held, record))
    if said.publish == "ranges":
        findings.append(_coarser(held, record))
    limit = policy.max_average_risk
    if limit is not None:
        mean = audit.risk["prosecutor_mean"]
        findings.append(Finding("mean risk", mean <= limit + 1e-9, f"asked at most {limit}, reached {mean:.6g}"))
    if policy.units:
        findings.append(persons(record))
    if policy.missing == "apart":
        findings.append(incomplete(record, lacking(path, held, record)))
    if policy.missing == "filled":
        findings.append(filled_cells(record))
    if policy.population is not None or policy.weighed:
        findings.append(population_of(record, audit))
    if record.harbor is not None:
        wrong = breach(read_rows(path, record.separator), record.harbor)
        text = wrong or f"{', '.join(record.harbor.columns) or 'no column'} shown as the rule lets them stand"
        findings.append(Finding("safe harbor", wrong is None, text))
    return [*findings, *_columns(held, record)], audit


def _judged(held: Held, record: Record, trees: Mapping[str, Hierarchy]) -> tuple[Audit, Finding]:
    """The audit of what stands there, and whether its stars are those certified."""
    policy, said = record.policy, record.said
    wanted = Asked(
        quasi=policy.quasi_identifiers,
        sensitive=policy.sensitive,
        models=policy.privacy,
        star=policy.star if said.publish != "centers" else None,
        stars=dict(said.stars) | dict.fromkeys(said.blanks, 0),
        orders=record.orders,
        trees=trees,
    )
    try:
        audit = judge_held(held, wanted, "")
    except VerificationError as error:
        return judge_held(held, wanted._replace(star=None, orders={}), ""), Finding("stars", False, str(error))
    return audit, Finding("stars", True, f"{sum(said.stars.values())} starred cells, as certified")


def _same_file(path: Path, record: Record) -> list[Finding]:
    """Whether the bytes are the ones certified, and of a folder which part is not."""
    try:
        same, parts = digest_of(path) == record.sha256, []
    except VerificationError as error:
        same, parts = False, [Finding("parts", False, str(error))]
    return [Finding("file", same, "the file is the one certified" if same else _stale(path, record.raw)), *parts]


def _columns(held: Held, record: Record) -> list[Finding]:
    """The columns that stand there: none that names people, and which of them nothing is promised of."""
    policy = record.policy
    left = [name for name in policy.identifiers if name in held.columns]
    others = [c for c in held.columns if c not in policy.quasi_identifiers and c not in policy.sensitive]
    asked = "that this is what was asked for, and of these columns, rests on the certificate"
    listed = ", ".join(map(repr, others)) or "none"
    return [
        Finding("identifiers", not left, f"column {left[0]!r} is still there" if left else "gone"),
        Finding("what was asked", True, f"columns without a promise: {listed}; {asked}", STATED),
    ]


def _coarser(held: Held, record: Record) -> Finding:
    """Sets, ranges and stars of every column of text: where values by themselves are quoted, these tell themselves."""
    for name in record.policy.quasi_identifiers:
        column = held.cells[name]
        column = column.cast(pl.String) if isinstance(column.dtype, pl.Categorical) else column
        if column.dtype != pl.String or name in record.said.blanks:
            continue
        joined = column.str.starts_with("[") | column.str.starts_with("{") | (column == record.policy.star)
        found = int(held.counts[joined.fill_null(False).to_numpy()].sum())
        if found != record.said.changed[name]:
            text = f"column {name!r} has {found} sets, ranges and stars, {record.said.changed[name]} were certified"
            return Finding("coarser values", False, text)
    return Finding("coarser values", True, "sets, ranges and stars of every column of text, as certified")


def _suppressed(held: Held, record: Record) -> Finding:
    """Rows starred whole: as many as certified are there, and the certificate keeps the budget."""
    said = record.stated.details.get("suppressed_rows", 0)
    if isinstance(said, bool) or not isinstance(said, int):
        return Finding("suppressed rows", False, "the certificate names no whole number of rows starred whole")
    policy = record.policy
    allowed = int(policy.max_suppressed * record.rows + 1e-9)
    whole, twofold = pl.Series([True]).new_from_index(0, held.cells.height), False
    for name in policy.quasi_identifiers:
        column, stars = held.cells[name], record.said.stars[name]
        starred = (column.cast(pl.String) == policy.star).fill_null(False)
        blank = column.is_null()
        whole = whole & (starred | blank if stars else starred)
        typed = column.dtype != pl.String or name in record.said.blanks
        twofold = twofold or (typed and int(held.counts[blank.to_numpy()].sum()) > stars)
    there = int(held.counts[whole.to_numpy()].sum())
    text = f"{there} rows starred whole, {said} certified, {allowed} allowed"
    exact = there == said
    # a star of a typed column is a missing value, so beside rows that lack one more may seem to be starred whole
    return Finding("suppressed rows", said <= allowed and (exact or (twofold and there > said)), text,
                   RECOMPUTED if exact else CONSISTENT)  # fmt: skip


def _sources(
    record: Record, folder: Path, given: Mapping[str, Any], only: Sequence[str] | None = None
) -> tuple[dict[str, Any], list[Finding]]:
    """The hierarchies a release was published by: handed over, or found by name beside the certificate or here.

    only  of these columns; of the others is said that nobody looked at theirs.  None: all
    """
    out: dict[str, Any] = {}
    findings: list[Finding] = []
    for name in given:
        if name not in record.hierarchies:
            raise InputError(f"the certificate names no hierarchy of a column {name!r}")
    for name, (source, expected) in record.hierarchies.items():
        if source not in GENERATED and expected is None:
            findings.append(Finding(f"hierarchy of {name}", False, "the certificate names it without its hash"))
            continue
        if only is not None and name not in only:
            text = "what the certificate says it is; hand it over to have that checked"
            findings.append(Finding(f"hierarchy of {name}", True, text, STATED))
            continue
        if source in GENERATED:
            out[name] = source
            text = f"generated ({source}); a label is read by what it says"
            findings.append(Finding(f"hierarchy of {name}", True, text, CONSISTENT))
            continue
        try:
            out[name] = found = Hierarchy.of(given[name] if name in given else source_of(name, source, folder))
        except PolicyError as error:
            raise InputError(f"the hierarchy of {name!r} cannot be used: {error!s}") from None
        same = digest(found) == expected
        text = "the one certified" if same else "not the one certified"
        findings.append(Finding(f"hierarchy of {name}", same, text, RECOMPUTED))
    return out, findings


def _opened(original: Any, record: Record, separator: str | None, encoding: str | None) -> pl.DataFrame:
    """The original as a frame, its coordinates joined as the release shows them."""
    source = opened(original, separator, encoding)
    if record.harbor is not None:
        rules = {n: rule for n, rule in record.harbor.columns.items() if n in source.columns}
        source = source.with_columns(recoded(source[n], rule, record.harbor.born) for n, rule in rules.items())
    pair = record.raw["policy"].get("coordinates")
    if isinstance(pair, list) and len(pair) == 2 and all(isinstance(c, str) and c in source.columns for c in pair):
        joined = pl.concat_str([pl.col(c).cast(pl.String) for c in pair], separator=" ").alias(PLACE)
        source = source.with_columns(joined).drop(pair)
    return source


def _outer(record: Record, population: Any, given: Mapping[str, Any], folder: Path) -> _Outer:
    """What adds to the audit of a release what its population tells."""
    policy, census = record.policy, None
    sources: dict[str, Any] = {}
    if population is not None:
        if policy.population is None:
            raise InputError("the certificate names no population; leave it out")
        pair = record.raw["policy"].get("coordinates")
        census = read_census(population, policy.quasi_identifiers, tuple(pair) if pair else None)
        sources = _sources(record, folder, given)[0]
    said = record.said
    read = reading_of(policy, said.publish, sources, said.stars, said.blanks, said.sheet)

    def add(frame: pl.DataFrame, audit: Audit) -> Audit:
        found = outside(frame, policy, census, read, None)
        return audit if found is None else beside(audit, found, policy.privacy)

    return add


@watched
def verify(
    release: str | Path,
    certificate: str | Path,
    original: Any = None,
    *,
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    signer: str | Path | None = None,
    progress: Callable[[str, float | None], None] = lambda _what, _share: None,
) -> Verdict:
    """Recheck a written release, of a table or of any other problem, against its certificate file.

    release      the file or the folder published; tuples are counted where they stand, so it may be larger than memory
    certificate  the JSON file beside it
    original     the table it was made from, a path or a frame; with it, every row is matched, and loss, cost and a
                 bound are recomputed, in memory.  Of a crosswalk the source or, in a list, the sources: of clusters
                 the table, then the coordinates of its codes
    separator, encoding  of an original that is a CSV; found out when None
    hierarchies  per column its hierarchy, where the file is not beside the certificate
    signer       file of a public key: the certificate must be signed with the private key that belongs to it
    progress     called with (what is being done, share done or None)

    Shares no code with the solvers.  Returns a Verdict; raises InputError for files that are not what they should be.
    """
    path, beside_it = Path(release), Path(certificate)
    progress("reading", None)
    raw = read_record(beside_it)
    if raw.get("kind", "table") != "table":
        found, stated = recheck(path, raw, original, separator, encoding, (hierarchies or {}, beside_it.parent))
        found.append(signature(raw, signer))
        return Verdict(holds=all(f.holds for f in found), findings=tuple(found), audit=None, certificate=stated)
    record = parsed(raw, path.name.lower().endswith((".xlsx", ".xls", ".xlsb")))
    held = count_release(path, [*record.policy.quasi_identifiers, *record.policy.sensitive], record.separator)
    progress("judging the release", None)
    try:
        outer = _outer(record, population, hierarchies or {}, beside_it.parent)
        distances = [n for n in record.hierarchies if n in record.policy.sensitive or n in (hierarchies or {})]
        trees, used_by = _sources(record, beside_it.parent, hierarchies or {}, distances)
        findings, audit = _own(path, held, record, outer, trees)
        findings += used_by if original is None else []
    except PolicyError as error:
        raise InputError(f"the certificate file asks for what cannot be judged: {error!s}") from None
    except OverflowError:
        raise InputError("the certificate file asks for numbers that no table can have") from None
    if original is not None:
        progress("reading the original", None)
        source = _opened(original, record, separator, encoding)
        used, found = _sources(record, beside_it.parent, hierarchies or {})
        findings += found
        if record.policy.missing == "apart" and set(record.policy.quasi_identifiers) <= set(source.columns):
            findings.append(incomplete(record, original=source))
        if record.policy.missing == "filled" and set(record.policy.quasi_identifiers) <= set(source.columns):
            source, cells = filled(source, record.policy.quasi_identifiers)
            findings.append(filled_cells(record, cells))
        findings += compare(source, read_rows(path, record.separator), record.said, used, progress)
    elif record.stated.lower_bound:
        text = f"{record.stated.lower_bound:.9g} certified; the original would tell more"
        findings.append(Finding("bound", True, text, STATED))
    factor = record.stated.guarantee.factor
    if factor is not None:
        findings.append(
            Finding("guarantee", True, f"{factor:g} times the least: {record.stated.guarantee.theorem}", STATED)
        )
    findings.append(signature(record.raw, signer))
    done = tuple(findings)
    return Verdict(holds=all(f.holds for f in done), findings=done, audit=audit, certificate=record.stated)
