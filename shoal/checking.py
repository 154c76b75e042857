"""Recheck a release: without the original what it shows by itself, with the original everything."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import CertificateError, InputError, VerificationError
from shoal.judge.file import judge_release, read_release, seal
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
    except (ValueError, RecursionError):
        raise InputError(f"{path.name!r} is not a certificate file of shoal (not JSON)") from None
    if not isinstance(record, Mapping) or not {"release", "policy", "certificate", "stars"} <= set(record):
        raise InputError(f"{path.name!r} is not a certificate file of shoal (no release, policy, stars or certificate)")
    return dict(record)


def _consistent(
    record: Mapping[str, Any],
    stated: Certificate,
    audit: Audit,
    stars: Mapping[str, int],
    changed: Mapping[str, int],
    loss: Mapping[str, float],
    levels: Mapping[str, Any],
    published: str,
) -> tuple[str, bool, str]:
    """Whether the certificate file agrees with itself and with the levels found in the release."""
    reached: dict[str, list[float | None]] = {"k": [audit.k]}
    for check in audit.checks:
        reached.setdefault(check.short, []).append(check.level)
    for name, level in levels.items():
        found = [v for v in reached.get(name, []) if v is not None and math.isfinite(v)]
        if level is not None and not any(math.isclose(float(level), v, rel_tol=1e-9) for v in found):
            return "certificate", False, f"it states {name} = {level}, which the release does not have"
    cost = {"stars": loss["stars"], "suppressed tuples": loss["suppressed_tuples"]}.get(stated.unit, stated.cost)
    if sum(stars.values()) != loss["stars"] or (published == "stars" and (cost != stated.cost or stars != changed)):
        return "certificate", False, "its cost, loss and stars contradict each other"
    ratio, written = stated.ratio, record["certificate"].get("ratio")
    if (ratio is None) != (written is None) or (ratio and not math.isclose(float(ratio), written, rel_tol=1e-9)):
        return "certificate", False, "its ratio is not cost over lower bound"
    if record.get("seal") != seal(record):
        return "certificate", False, "it was changed after it was written"
    return "certificate", True, "agrees with itself and with the release"


def _stale(path: Path, record: Mapping[str, Any]) -> str:
    """Which of release and certificate is the older, where they do not belong together."""
    said = "the file is not the one certified: the certificate belongs to another version of this release"
    try:
        made = datetime.datetime.fromisoformat(str(record["made_at"])).timestamp()
        written = path.stat().st_mtime
    except (KeyError, ValueError, OSError):
        return said
    older = "the certificate is the older" if written >= made + 1 else "the release is the older"
    return f"{said}; by their times {older}, so make both again"


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
        stars = {str(name): int(n) for name, n in record["stars"].items()}
        shown = stars | dict.fromkeys(facts.get("starred_as_missing", ()), 0)
        changed = {str(name): int(n) for name, n in record["changed"].items()}
        loss = {name: float(record["loss"][name]) for name in ("stars", "suppressed_tuples")}
        levels, published = dict(record["privacy"]), str(asked["publish"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, (CertificateError, InputError)):
            raise
        raise InputError(f"the certificate file lacks something, or holds it in a wrong form: {error!s}") from None

    path = Path(release)
    separator = record.get("separator")
    findings: list[tuple[str, bool, str]] = []
    frame = read_release(path, separator)
    absent = [n for n in (*policy.grouped, *policy.sensitive) if n not in frame.columns]
    if absent:
        raise VerificationError(f"the release has no column {absent[0]!r}, which its certificate names")
    try:
        audit, digest, _ = judge_release(
            path,
            policy.grouped,
            policy.sensitive,
            policy.privacy,
            star=policy.star,
            stars=shown,
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
    findings.insert(0, ("file", same, "the file is the one certified" if same else _stale(path, record)))
    findings.append(("rows", audit.rows == expected[1], f"{audit.rows} rows, {expected[1]} certified"))
    for check in audit.checks:
        where = f" of {check.column}" if check.column else ""
        findings.append((check.model, check.passes, f"asked {dict(check.asked)}{where}, reached {check.level}"))
    groups = audit.classes == expected[3] and audit.smallest_class == expected[2]
    found = f"{audit.classes} classes, the smallest of {audit.smallest_class} rows"
    findings.append(("groups", groups, f"{found}; {expected[3]} and {expected[2]} certified"))
    findings.append(_consistent(record, stated, audit, stars, changed, loss, levels, published))
    left = [name for name in policy.identifiers if name in frame.columns]
    findings.append(("identifiers", not left, f"column {left[0]!r} is still there" if left else "gone"))
    if original is not None:
        from shoal.engines.files import read_table

        source = read_table(original)
        pair = asked.get("coordinates")
        if pair and set(pair) <= set(source.columns):
            joined = pl.concat_str([pl.col(c).cast(pl.String) for c in pair], separator=" ").alias(PLACE)
            source = source.with_columns(joined).drop(pair)
        try:
            compared: Comparison = compare(source, frame, record, policy)
        except (KeyError, TypeError) as error:
            raise InputError(f"the certificate file lacks something, or holds it in a wrong form: {error!s}") from None
        findings.extend(compared.findings)
    return Verdict(holds=all(h for _, h, _ in findings), findings=tuple(findings), audit=audit, certificate=stated)
