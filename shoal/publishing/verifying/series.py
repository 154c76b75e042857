"""A whole series rechecked: every part against its certificate, and all of them as a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import InputError, ShoalError
from shoal.judge.finding import Finding
from shoal.judge.series import certificate_of, judge_series
from shoal.model.cards import Shown
from shoal.model.policy import Policy
from shoal.publishing.verifying.verify import verify

_Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, kw_only=True, repr=False)
class SeriesVerdict(Shown):
    """What verifying a series found.

    holds     every line of ``findings`` holds
    findings  as of ``shoal.verify``; those of part 3 begin with "part 3"
    parts     number of parts
    """

    holds: bool
    findings: tuple[Finding, ...]
    parts: int

    def _lines(self) -> list[str]:
        title = "Everything that was checked holds" if self.holds else "Not everything that was checked holds"
        return [title, *(f"{f.check}: {'' if f.holds else 'FAILS, '}{f.found} ({f.how})" for f in self.findings)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        findings = [{"check": f.check, "holds": f.holds, "found": f.found, "how": f.how} for f in self.findings]
        return {"holds": self.holds, "parts": self.parts, "findings": findings}


def verify_series(
    place: str | Path,
    *,
    signer: str | Path | None = None,
    progress: _Progress = lambda _what, _share: None,
) -> SeriesVerdict:
    """Recheck every part of a series and the chain; with the private folder there, the ledgers and the promise too.

    signer  file of a public key: every certificate must be signed with the private key that belongs to it

    Raises InputError for a folder that is no series.  O(rows of all parts).
    """
    place = Path(place)
    if not (place / "series.json").is_file():
        raise InputError(f"{str(place)!r} is no series; shoal series start makes one")
    policy = Policy.read(place / "series.json")
    numbers = sorted(int(p.name) for p in place.iterdir() if p.is_dir() and p.name.isdigit())
    if numbers != list(range(1, len(numbers) + 1)):
        wrong = Finding("chain", False, "a part is missing: the numbers of the parts have a gap")
        return SeriesVerdict(holds=False, findings=(wrong,), parts=len(numbers))
    findings: list[Finding] = []
    for number in numbers:
        progress(f"part {number}", number / max(len(numbers), 1))
        try:
            release, certificate = certificate_of(place, number)
            verdict = verify(release, certificate, hierarchies=dict(policy.hierarchies), signer=signer)
        except ShoalError as error:
            findings.append(Finding(f"part {number}", False, str(error)))
            continue
        failed = [f for f in verdict.findings if not f.holds]
        text = f"{len(verdict.findings)} checks"
        findings.append(
            Finding(f"part {number}", not failed, text if not failed else f"{failed[0].check}: {failed[0].found}")
        )
    if all(f.holds for f in findings):
        models = [m for m in policy.of_rows if m.speaks != "population"]
        findings += judge_series(place, models, len(numbers))
    return SeriesVerdict(holds=all(f.holds for f in findings), findings=tuple(findings), parts=len(numbers))
