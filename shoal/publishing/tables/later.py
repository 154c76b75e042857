"""A release read again with its certificate, for a report made later, without what it was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from shoal.engines.atomic import publish_page
from shoal.engines.targets import PAGE, certificate_of, check_outputs
from shoal.errors import InputError, VerificationError
from shoal.judge.tables.parts import read_rows
from shoal.model.task import nothing
from shoal.publishing.bins import distribution
from shoal.publishing.tables import statement
from shoal.publishing.tables.figures import least_rows, shown_rows
from shoal.publishing.tables.patterns import at_risk
from shoal.publishing.verifying.recorded import Record, parsed, read_record
from shoal.publishing.verifying.verify import Verdict, verify
from shoal.report.page import page
from shoal.report.rendering import as_json
from shoal.utility.decode import Decoded
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
        return f"Release {self.path.name} with {self.certificate.name}\n{self.verdict!r}"

    def figures(self) -> dict[str, Any]:
        """What the report says, as plain values: those of ``Release.figures``, what needs the original None or empty.

        ``checked`` has what was found.  O(rows).
        """
        return _figures(self)

    def report(self, path: str | Path, *, explored: Any = None, overwrite: bool = True) -> Path:
        """One self-contained HTML page, as ``Release.report``; overwrite=False refuses to replace a file."""
        path = Path(path)
        closed = check_outputs([(path, PAGE)], (self.path, self.certificate), overwrite=overwrite)
        figures = {**self.figures(), **statement.choices(explored, self.record.raw["release"]["rows"])}
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


def _figures(found: Written) -> dict[str, Any]:
    path, certificate, record, audit = found.path, found.certificate, found.record, found.verdict.audit
    assert audit is not None
    raw = record.raw
    asked = raw["policy"]
    names = tuple(asked["quasi_identifiers"])
    # labels of a hierarchy are shown as they stand; the files they come from need not be here
    form = "stars" if asked["publish"] == "hierarchy" else asked["publish"]
    reading: Any = SimpleNamespace(
        grouped=names, sensitive=tuple(asked["sensitive"]), star=asked["star"], publish=form, hierarchies={},
        privacy=record.policy.privacy,
    )  # fmt: skip
    release = SimpleNamespace(policy=reading, audit=audit, stars=record.said.stars)
    decoded = Decoded.shown(read_rows(path, record.separator), reading, record.said.stars)
    least = least_rows(release)
    facts = [name for name in (*statement.RECORDED, "certificate") if name in raw]
    written = {**raw["release"], "file": path.name, "certificate": certificate.name, "signed": "signature" in raw}
    return {
        "made_by": raw["made_by"],
        "made_at": raw["made_at"],
        "source": "not named in the certificate",
        "written": written,
        "release": {**{name: raw[name] for name in facts}, "rows": record.rows, "attempts": []},
        "audit": audit.as_dict(),
        "policy": asked,
        "hierarchies": raw.get("hierarchies"),
        "before": {},
        "least": least,
        "step": 0,
        "columns": [_column(decoded, name, record, least) for name in names],
        "together": None,
        "by_loss": None,
        "at_risk": at_risk(audit.sizes),
        "pairs": [],
        "shown": shown_rows(release, decoded.table, least),
        "checked": [{"check": f.check, "found": f.found, "how": f.how} for f in found.verdict.findings],
    }


def _column(decoded: Decoded, name: str, record: Record, least: int) -> dict[str, Any]:
    column, asked = decoded.columns[name], record.raw["policy"]
    rows = np.bincount(column.where, minlength=len(column.cells))
    nothing: tuple[Sequence[str | None], np.ndarray] = ((), np.zeros(0, np.int64))
    return {
        "name": name,
        "before_shown": False,
        "before": None,
        "after": len(column.cells),
        "changed": record.raw["changed"][name],
        "hidden": record.said.stars[name],
        "loss": None,
        "weight": float(asked["weights"].get(name, 1.0)),
        "ceiling": asked["max_level"].get(name),
        "distribution": distribution(column, rows, nothing, least, 0),
    }
