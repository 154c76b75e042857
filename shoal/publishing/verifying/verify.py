"""Recheck a release: without the original what it shows by itself, with the original everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines.source import is_server
from shoal.engines.targets import certificate_of
from shoal.errors import InputError, PolicyError
from shoal.judge.agreed import promised
from shoal.judge.classes import judge_classes
from shoal.judge.finding import STATED, Finding
from shoal.judge.originals.original import compare
from shoal.judge.tables.filled import filled
from shoal.judge.tables.parts import Held, count_release, read_rows
from shoal.model.audit import Audit
from shoal.model.cards import Shown
from shoal.model.certificate import Certificate, PublicCertificate
from shoal.model.hierarchy import Hierarchy
from shoal.publishing.signing import signature
from shoal.publishing.verifying.own_rows import own_findings
from shoal.publishing.verifying.recheck import ratio_stated, recheck
from shoal.publishing.verifying.recorded import Record, belongs, parsed, read_record
from shoal.publishing.verifying.served import as_file
from shoal.publishing.verifying.sources import hierarchies_of, left_as_they_were, original_of, population_beside
from shoal.publishing.verifying.stated import carried, filled_cells, incomplete
from shoal.watching import watched

_Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """What ``verify`` found.

    holds     every line of ``findings`` holds
    findings  ``Finding``s: (what was checked, whether it holds, a sentence, how that is known)
    audit     the release of a table judged by its own rows; None for a crosswalk
    certificate  what the certificate file states
    record       cost and bound as the private record has them; None where no record was handed over
    """

    holds: bool
    findings: tuple[Finding, ...]
    audit: Audit | None
    certificate: PublicCertificate
    record: Certificate | None = None

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
            **({} if self.record is None else {"record": self.record.as_dict()}),
        }


@watched
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
    signer: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    progress: _Progress = lambda _what, _share: None,
) -> Verdict:
    """Recheck a written release, of a table or of any other problem, against its certificate file.

    release      the file or the folder published, or the address of the server that holds the table it became; tuples
                 are counted where they stand, so a file may be larger than memory
    certificate  the JSON file beside it; RELEASE.certificate.json when None
    original     the table it was made from, a path or a frame; with it, every row is matched, and loss and cost are
                 recomputed, in memory.  Of a crosswalk the source or, in a list, the sources: of clusters
                 the table, then the coordinates of its codes
    record       the private record, RELEASE.record.json: what it says is held against release, certificate and, where
                 it is at hand, original
    separator, encoding, table, query  of an original, as in ``anonymize``
    hierarchies  per column its hierarchy, where the file is not beside the certificate
    signer       file of a public key: the certificate must be signed with the private key that belongs to it
    progress     called with (what is being done, share done or None)

    Shares no code with the solvers.  Returns a Verdict; raises InputError for files that are not what they should be.
    O(n) for n rows, and O(m) memory for m different ones; what is proved by it, and what not, is in docs/trust.md.

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
    if is_server(release):
        with as_file(str(release), certificate) as held_there:
            return verify(
                held_there, certificate, original, record=record, population=population, separator=separator,
                encoding=encoding, hierarchies=hierarchies, signer=signer, table=table, query=query, progress=progress,
            )  # fmt: skip
    path, beside_it = Path(release), certificate_of(release, certificate)
    given = (hierarchies or {}, beside_it.parent)
    named = table is not None or query is not None
    if original is None and named:
        raise PolicyError("table=... and query=... say which table the original is; say original=... beside them")
    if original is None and (separator is not None or encoding is not None):
        raise PolicyError("separator=... and encoding=... say how the original is read; say original=... beside them")
    progress("reading", None)
    raw = read_record(beside_it)
    audit, known = None, None
    kept = None if record is None else read_record(record, private=True)
    if raw.get("kind", "table") != "table":
        if named:
            raise PolicyError("table=... and query=... speak of the original of a release of a table; leave them out")
        findings, stated, known = recheck(path, raw, original, separator, encoding, given, kept)
    else:
        sheet = path.name.lower().endswith((".xlsx", ".xls", ".xlsb"))
        public = parsed(raw, sheet)
        private = None if kept is None else parsed(_of_table(kept), sheet)
        stated = _public(public)
        progress("judging the release", None)
        findings, audit = _alone(path, public, population, given)
        if private is not None and isinstance(private.stated, Certificate):
            known = private.stated
            more = _alone(path, private, population, given)[0]
            findings += [*belongs(public, private), *(_of_record(f) for f in more if f not in findings)]
        if original is not None:
            progress("reading the original", None)
            best = public if private is None else private
            source = original_of(original, best, (separator, encoding), (table, query))
            findings += _matched(path, best, source, given, progress)
        findings += [*promised(stated), *([] if private is not None else [ratio_stated(stated)])]
        if known is not None and original is None and known.lower_bound:
            text = f"{known.lower_bound:.9g} on record; the original would tell more"
            findings.append(Finding("bound", True, text, STATED))
    findings.append(signature(raw, signer))
    return Verdict(
        holds=all(f.holds for f in findings), findings=tuple(findings), audit=audit, certificate=stated, record=known
    )


def _public(record: Record) -> PublicCertificate:
    assert isinstance(record.stated, PublicCertificate)  # ``read_record`` refuses a record in place of a certificate
    return record.stated


def _of_table(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if record.get("kind", "table") != "table":
        raise InputError(
            "the record is of another kind of answer than the certificate; name the one that belongs to it"
        )
    return record


def _of_record(finding: Finding) -> Finding:
    """What the record says of the release, by a name of its own."""
    return finding._replace(check=f"record, {finding.check}")


def _alone(
    path: Path, record: Record, population: Any, given: tuple[Mapping[str, Any], Path]
) -> tuple[list[Finding], Audit]:
    """The release by itself and beside its population."""
    policy = record.policy
    held = count_release(path, [*policy.quasi_identifiers, *policy.sensitive], record.separator)
    try:
        outer = population_beside(record, population, *given)
        trees, used_by = hierarchies_of(record, *given, needed=policy.sensitive)
        findings, audit = own_findings(path, held, record, outer, trees)
    except PolicyError as error:
        raise InputError(f"the certificate file asks for what cannot be judged: {error!s}") from None
    except OverflowError:
        raise InputError("the certificate file asks for numbers that no table can have") from None
    findings += left_as_they_were(record, held.columns)
    if not record.private:
        return findings + used_by, audit
    return findings + (_classes(held, record, trees) if record.said.publish == "hierarchy" else []), audit


def _classes(held: Held, record: Record, trees: Mapping[str, Any]) -> list[Finding]:
    """What the hierarchies at hand tell of the classes that stand there, against the record."""
    said = record.said
    assert said.changed is not None and said.loss is not None  # noqa: PT018 - a record states both
    at_hand = {n: h for n, h in trees.items() if isinstance(h, Hierarchy) and n in said.stars and n not in said.blanks}
    every = set(at_hand) >= {n for n in record.hierarchies if n in said.stars}
    ncp = said.loss["ncp"] if every else None
    return judge_classes(held.cells, held.counts, at_hand, record.policy.star, said.stars, said.changed, ncp)


def _matched(
    path: Path, record: Record, source: pl.DataFrame, given: tuple[Mapping[str, Any], Path], progress: _Progress
) -> list[Finding]:
    """The release beside the original."""
    policy = record.policy
    used = hierarchies_of(record, *given, needed=tuple(record.hierarchies))[0]
    findings: list[Finding] = []
    complete = set(policy.quasi_identifiers) <= set(source.columns)
    if policy.missing == "apart" and complete and record.private:
        findings.append(incomplete(record, original=source))
    if policy.missing == "filled" and complete:
        source, cells = filled(source, policy.quasi_identifiers)
        findings += [filled_cells(record, cells)] if record.private else []
    findings.append(carried(record, source))
    return findings + compare(source, read_rows(path, record.separator), record.said, used, progress)
