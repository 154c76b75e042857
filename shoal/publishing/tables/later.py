"""A release read again with its certificate, for a report made later, without what it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.engines.atomic import publish_page
from shoal.engines.targets import PAGE, certificate_of, check_outputs, internal_path
from shoal.errors import InputError, VerificationError
from shoal.judge.tables.parts import read_rows
from shoal.model.task import nothing
from shoal.publishing.tables import statement
from shoal.publishing.tables.public import public_figures
from shoal.publishing.verifying.recorded import Record, parsed, read_record
from shoal.publishing.verifying.verify import Verdict, verify
from shoal.report.page import page
from shoal.report.rendering import as_json
from shoal.watching import watched


@dataclass(frozen=True, repr=False)
class Written:
    """A written release of a table that holds what its certificate says.

    path, certificate  the files;  record: the certificate, read;  verdict: what ``verify`` found
    """

    path: Path
    certificate: Path
    record: Record
    verdict: Verdict

    def __repr__(self) -> str:
        return f"<Release {self.path.name} with {self.certificate.name}>"

    def __str__(self) -> str:
        return f"Release {self.path.name} with {self.certificate.name}\n{self.verdict}"

    def figures(self) -> dict[str, Any]:
        """What the report says: the figures of ``Release.public_figures`` and, as ``checked``, what was found."""
        audit, raw = self.verdict.audit, self.record.raw
        assert audit is not None
        file = {**raw["release"], "file": self.path.name, "certificate": self.certificate.name}
        file["signed"] = "signature" in raw
        shown = public_figures(
            read_rows(self.path, self.record.separator), raw, audit, self.record.policy.privacy, file
        )
        checked = [{"check": f.check, "found": f.found, "how": f.how} for f in self.verdict.findings]
        return {**shown, "checked": checked}

    def report(
        self,
        path: str | Path,
        *,
        explored: Any = None,
        recipient: str = "",
        purpose: str = "",
        decided_by: str = "",
        overwrite: bool = True,
    ) -> Path:
        """One self-contained HTML page, as ``Release.report``; overwrite=False refuses to replace a file.

        explored  what ``shoal.explore`` found: it tells of the original, so the page is internal and named so
        recipient, purpose, decided_by  who gets the release, what for, and who decided; empty lines where not given
        """
        path = Path(path) if explored is None else internal_path(Path(path))
        closed = check_outputs([(path, PAGE)], (self.path, self.certificate), overwrite=overwrite)
        figures = {
            **self.figures(),
            "internal": explored is not None,
            **statement.choices(explored, self.record.raw["release"]["rows"]),
        }
        figures["decision"] = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}
        publish_page(path, page(figures), as_json(figures), closed=closed)
        return path


@watched
def written(
    release: str | Path,
    certificate: str | Path | None = None,
    *,
    signer: str | Path | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Written:
    """A release that was written, verified again by ``verify`` without its original, to be reported.

    certificate  RELEASE.certificate.json when None
    signer       file of a public key: the certificate must be signed with the private key that belongs to it
    progress     called with (what is being done, share done or None)

    Raises VerificationError for a release that does not hold what its certificate says, InputError for anything but the
    release of a table.
    """
    path, beside = Path(release), certificate_of(release, certificate)
    raw = read_record(beside)
    if raw.get("kind", "table") != "table":
        raise InputError(
            "a report is made later of the release of a table; of any other answer when it is written (--report)"
        )
    verdict = verify(path, beside, signer=signer, progress=progress)
    wrong = next((f for f in verdict.findings if not f.holds), None)
    if wrong is not None:
        raise VerificationError(
            f"the release does not hold what its certificate says ({wrong.check}: {wrong.found}), so there is no "
            "report of it"
        )
    return Written(path, beside, parsed(raw, path.name.lower().endswith((".xlsx", ".xls", ".xlsb"))), verdict)
