"""A written release, read with its certificate for a later report, which can reveal nothing else about the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import publish_page
from shoal.engines.open import written_file
from shoal.errors import InputError, VerificationError
from shoal.judge.tables.large import read_rows
from shoal.model.arguments import suggesting
from shoal.model.audit import Audit
from shoal.model.notation import named_notations
from shoal.model.task import nothing
from shoal.paths import internal_path, is_server, kind_of
from shoal.publishing.decode import Decoded
from shoal.publishing.tables import statement
from shoal.publishing.tables.figures import at_risk, distribution, least_rows, listed, pictured, shown_rows, unique_ends
from shoal.publishing.verifying.recheck import Record, parsed, read_record
from shoal.publishing.verifying.verify import Verdict, verify
from shoal.report.page import release_page
from shoal.watching import watched


def public_figures(
    frame: pl.DataFrame, certificate: Mapping[str, Any], audit: Audit, models: Sequence[Any], file: Mapping[str, Any]
) -> dict[str, Any]:
    """Plain values for the page and for JSON. O(rows).

    frame        the released rows
    certificate  the content of the certificate file
    audit        of the released rows
    models       the requested privacy models
    file         the description of the written file, {} if it isn't written
    """
    asked = certificate["policy"]
    names = tuple(asked["quasi_identifiers"])
    # labels of a hierarchy are shown as they are, because their files may be missing
    form = "stars" if asked["publish"] == "hierarchy" else asked["publish"]
    reading: Any = SimpleNamespace(
        grouped=names, sensitive=tuple(asked["sensitive"]), star=asked["star"], publish=form, hierarchies={},
        privacy=tuple(models), notations=named_notations(asked), range_step=asked.get("range_step") or {},
    )  # fmt: skip
    stars = certificate["stars"]
    release = SimpleNamespace(policy=reading, audit=audit, facts=SimpleNamespace(stars=stars))
    decoded = Decoded.shown(frame, reading, stars)
    least = least_rows(release)
    facts = [name for name in (*statement.RECORDED, "certificate") if name in certificate]
    return {
        "internal": False,
        "made_by": certificate["made_by"],
        "made_at": certificate["made_at"],
        "source": "not stated",
        "written": dict(file) or None,
        "release": {**{name: certificate[name] for name in facts}, "rows": audit.rows, "attempts": []},
        "audit": {**audit.as_dict(), "exposed": {}, "exposed_classes": None, "notes": []},
        "policy": asked,
        "hierarchies": certificate.get("hierarchies"),
        "before": {},
        "least": least,
        "step": 0,
        "columns": [_column(decoded, name, certificate, least) for name in names],
        "together": None,
        "by_loss": None,
        "at_risk": at_risk(audit.sizes),
        "pairs": [],
        "shown": shown_rows(release, decoded.table, least),
        "listed": listed(decoded.table, reading),
        "sole_ends": unique_ends(decoded.table, reading, {*asked["range_step"], *asked["hierarchies"]}),
    }


def _column(decoded: Decoded, name: str, certificate: Mapping[str, Any], least: int) -> dict[str, Any]:
    column, asked = pictured(decoded.columns[name], name), certificate["policy"]
    rows = np.bincount(column.where, minlength=len(column.cells))
    nothing: tuple[Sequence[str | None], np.ndarray] = ((), np.zeros(0, np.int64))
    return {
        "name": name,
        "before_shown": False,
        "before": None,
        "after": len(column.cells),
        "changed": certificate["changed"][name],
        "hidden": certificate["stars"][name],
        "loss": None,
        "weight": float(asked["weights"].get(name, 1.0)),
        "ceiling": asked["max_level"].get(name),
        "distribution": distribution(column, rows, nothing, least, 0),
    }


@dataclass(frozen=True, repr=False)
class Written:
    """A written release of a table that matches its certificate.

    path, certificate  the files; the name of a table on a server
    record             the certificate's content
    verdict            the result of ``verify``
    rows               the released rows
    """

    path: Path
    certificate: Path
    record: Record
    verdict: Verdict
    rows: pl.DataFrame

    def __repr__(self) -> str:
        return f"<Release {self.path.name} with {self.certificate.name}>"

    def __str__(self) -> str:
        return f"Release {self.path.name} with {self.certificate.name}\n{self.verdict}"

    def figures(self) -> dict[str, Any]:
        """The content of the report: the figures of ``Release.public_figures`` and, as ``checked``, the findings."""
        audit, raw = self.verdict.audit, self.record.raw
        assert audit is not None
        file = {**raw["release"], "file": self.path.name, "certificate": self.certificate.name}
        file["signed"] = "signature" in raw
        shown = public_figures(self.rows, raw, audit, self.record.policy.privacy, file)
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

        explored  the result of ``shoal.explore``: it depends on the original, so the page is internal and has such a
                  name
        recipient, purpose, decided_by  who gets the release, for what purpose, and who decided; empty lines if not
                                        given
        """
        decision = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}
        internal, read = explored is not None, (self.path, self.certificate)

        def figures() -> dict[str, Any]:
            choices = statement.choices(explored, self.record.raw["release"]["rows"])
            return {**self.figures(), "internal": internal, **choices, "decision": decision}

        path = internal_path(Path(path)) if internal else Path(path)
        return publish_page(path, figures, release_page, read, overwrite=overwrite, private=internal)


@watched
@suggesting
def written(
    release: str | Path,
    certificate: str | Path | None = None,
    *,
    signer: str | Path | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Written:
    """A written release, verified again by ``verify`` without its original, for a report.

    release      a file or folder, a table of Delta or Iceberg, or the address of the server with the table
    certificate  RELEASE.certificate.json if None
    signer       file of a public key: the certificate must have a signature by the private key that belongs to it
    progress     called with (step, share done or None)

    Raises VerificationError for a release that does not match its certificate, InputError for anything except the
    release of a table. O(n) for n rows.
    """
    with written_file(release, certificate) as (path, beside):
        raw = read_record(beside)
        if raw.get("kind", "table") != "table":
            raise InputError(
                "a report is made later of the release of a table; of any other answer when it is written (⟨report=⟩)"
            )
        verdict = verify(path, beside, signer=signer, progress=progress)
        wrong = next((f for f in verdict.findings if not f.holds), None)
        if wrong is not None:
            raise VerificationError(
                f"the release does not hold what its certificate says ({wrong.check}: {wrong.found}), so there is no "
                "report of it"
            )
        record = parsed(raw, kind_of(path) == "excel")
        place = Path(raw["release"]["table"]) if is_server(release) else path
        return Written(place, beside, record, verdict, read_rows(path, record.separator))
