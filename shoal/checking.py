"""Recheck a release: without the original what it shows by itself, with the original everything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InputError, PolicyError
from shoal.judge.file import judge_release, read_release
from shoal.judge.original import Comparison, compare
from shoal.model.audit import Audit
from shoal.model.certificate import Certificate
from shoal.model.policy import PLACE, Policy


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What ``verify`` found.

    holds     every line of ``findings`` holds
    findings  (what was checked, whether it holds, a sentence)
    audit     the release judged by its own rows
    """

    holds: bool
    findings: tuple[tuple[str, bool, str], ...]
    audit: Audit
    certificate: Certificate

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "holds": self.holds,
            "findings": [{"check": c, "holds": h, "found": text} for c, h, text in self.findings],
            "audit": self.audit.as_dict(),
            "certificate": self.certificate.as_dict(),
        }


def read_record(path: str | Path) -> dict[str, Any]:
    """The certificate file written beside a release; InputError when it is not one."""
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no certificate {str(path)!r}") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise InputError(f"{path.name!r} is not a certificate file of shoal (not JSON)") from None
    if not isinstance(record, Mapping) or not {"release", "policy", "certificate", "stars"} <= set(record):
        raise InputError(f"{path.name!r} is not a certificate file of shoal (no release, policy, stars or certificate)")
    return dict(record)


def verify(release: str | Path, certificate: str | Path, original: str | Path | None = None) -> Verdict:
    """Recheck a written release against its certificate file.

    release      the file published
    certificate  the JSON file beside it
    original     the table it was made from; with it, every row is matched and the loss and the bound recomputed

    Shares no code with the solvers.  Returns a Verdict; raises InputError for files that are not what they should be.
    """
    record = read_record(certificate)
    asked = record["policy"]
    try:
        policy = Policy.of(
            quasi_identifiers=asked["quasi_identifiers"],
            sensitive=asked["sensitive"],
            identifiers=asked["identifiers"],
            privacy=asked["privacy"],
            star=asked["star"],
        )
        stated = Certificate.from_dict(record["certificate"])
        facts = record["release"]
        expected = (facts["sha256"], int(facts["rows"]), int(record["smallest_group"]), int(record["groups"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"the certificate file lacks {error!s}") from None
    from shoal.errors import VerificationError

    path = Path(release)
    separator = record.get("separator")
    findings: list[tuple[str, bool, str]] = []
    frame = read_release(path, separator)
    absent = [n for n in (*policy.grouped, *policy.sensitive) if n not in frame.columns]
    if absent:
        raise PolicyError.unknown("column of the release", absent[0], frame.columns)
    try:
        audit, digest, _ = judge_release(
            path,
            policy.grouped,
            policy.sensitive,
            policy.privacy,
            star=policy.star,
            stars=record["stars"],
            separator=separator,
        )
        findings.append(("stars", True, f"{sum(record['stars'].values())} starred cells, as certified"))
    except VerificationError as error:
        from shoal.judge.privacy import judge
        from shoal.release import file_hash

        audit = judge(frame, policy.grouped, policy.sensitive, policy.privacy)
        digest = file_hash(path)
        findings.append(("stars", False, str(error)))
    same = digest == expected[0]
    findings.insert(0, ("file", same, "the file is the one certified" if same else "the file is not the one certified"))
    findings.append(("rows", audit.rows == expected[1], f"{audit.rows} rows, {expected[1]} certified"))
    for check in audit.checks:
        where = f" of {check.column}" if check.column else ""
        findings.append((check.model, check.passes, f"asked {dict(check.asked)}{where}, reached {check.level}"))
    groups = audit.classes == expected[3] and audit.smallest_class == expected[2]
    found = f"{audit.classes} classes, the smallest of {audit.smallest_class} rows"
    findings.append(("groups", groups, f"{found}; {expected[3]} and {expected[2]} certified"))
    left = [name for name in policy.identifiers if name in frame.columns]
    findings.append(("identifiers", not left, f"column {left[0]!r} is still there" if left else "gone"))
    if original is not None:
        from shoal.engines.files import read_table

        source = read_table(original)
        pair = asked.get("coordinates")
        if pair and set(pair) <= set(source.columns):
            joined = pl.concat_str([pl.col(c).cast(pl.String) for c in pair], separator=" ").alias(PLACE)
            source = source.with_columns(joined).drop(pair)
        compared: Comparison = compare(source, frame, record, policy)
        findings.extend(compared.findings)
    return Verdict(holds=all(h for _, h, _ in findings), findings=tuple(findings), audit=audit, certificate=stated)
