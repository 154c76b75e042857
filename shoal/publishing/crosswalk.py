"""What leaves of a problem that is no table of categories: a crosswalk, verified on its bytes, with its certificate."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.engines.atomic import Piece, publish_file, publish_text, publish_together
from shoal.engines.store import store, usual_separator
from shoal.engines.targets import JSON, PAGE, TABLE, Form, Wanted, certificate_path, check_outputs, check_place
from shoal.errors import PolicyError, VerificationError
from shoal.judge.file import read_release, seal
from shoal.judge.finding import Finding
from shoal.model.certificate import Certificate
from shoal.publishing import signing
from shoal.publishing.judging import Sources, findings, form_of
from shoal.publishing.release import file_hash
from shoal.version import __version__


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """How a release is drawn: the forms it may have, and what fills a file."""

    form: Form
    fill: Callable[[Path], object]


class Rows(NamedTuple):
    """A row per record, its group in place of its values.

    order  where the order of the rows comes from: a secret, or "as in the table"
    """

    table: pl.DataFrame
    order: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Crosswalk:
    """An answer that may be published, with what it cost.

    kind         "labels", "intervals", "regions", "tiles", "gather" or "cellular"
    content      what is written: a row per value, area, place or cluster
    certificate  cost, lower bound and the theorem behind each
    parameters   what was asked for;  facts: rows, groups, sizes: all that a certificate file states
    sources      what it was made from, for the judge, who counts it again
    read         the files among them, which are never written over
    title, note, groups   for the report: a heading, a line below it, and the size of every group
    picture, drawn_map, outlines   how it is drawn, where it can be
    rows         of clusters: a row per record, its cluster's center in place of its values
    warnings     what whoever publishes it should know
    native       makes the kind of frame that came in
    refused      why it may not be written; empty where it may
    """

    kind: str
    content: pl.DataFrame
    certificate: Certificate
    method: str
    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    sources: Sources = field(repr=False)
    read: tuple[str | Path, ...] = ()
    title: str = ""
    note: str = ""
    refused: str = ""
    groups: Sequence[int] = field(default=(), repr=False)
    picture: Drawing | None = field(default=None, repr=False)
    drawn_map: Drawing | None = field(default=None, repr=False)
    outlines: Drawing | None = field(default=None, repr=False)
    rows: Rows | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    native: Callable[[pl.DataFrame], Any] = field(default=lambda frame: frame, repr=False)

    @property
    def table(self) -> Any:
        """What is written."""
        return self.native(self.content)

    @property
    def assignments(self) -> Any:
        """A row per record: its group, and nothing that is not published; PolicyError where there are none.

        In an order that only a secret tells, unless the release was asked to keep it.
        """
        return self.native(self._rows().table)

    def _rows(self) -> Rows:
        if self.rows is None:
            raise PolicyError(f"there are no assignments of {self.kind} apart from the crosswalk itself")
        return self.rows

    def write(
        self,
        path: str | Path | None,
        certificate: str | Path | None = None,
        *,
        assignments: str | Path | None = None,
        overwrite: bool = True,
        sign: str | Path | None = None,
    ) -> Path:
        """Write the crosswalk by the file's ending, verified on the bytes written, and its certificate beside it.

        path         CSV (also .gz), Parquet or Excel; None: the assignments alone
        certificate  a JSON file; OUTPUT.certificate.json when None
        assignments  of clusters: a table with a row per record as well, under the same certificate
        overwrite    False: refuse to replace files that exist
        sign         file of a private key, see ``shoal keygen``

        The files appear under their names only after the judge has read them back and counted them again from their
        source; raises VerificationError otherwise, and then what was there before is still there.  Returns the
        certificate's path.
        """
        if self.refused:
            raise PolicyError(self.refused)
        first = path if path is not None else assignments
        if first is None:
            raise PolicyError("there is nothing to write; name a file")
        check_place(Path(first))
        beside = certificate_path(Path(first)) if certificate is None else Path(certificate)
        wanted: list[Wanted] = [(path, TABLE), (assignments, TABLE), (beside, JSON)]
        closed = check_outputs(wanted, [*self.read, sign], overwrite=overwrite)
        if sign is not None:
            signing.private_key(sign)  # refused before any work
        about: dict[str, Any] = {}
        pieces = []
        if path is not None:
            about["file"] = Path(path).name
            pieces.append(self._piece(Path(path), self.content, about))
        if assignments is not None:
            rows, also = self._rows(), about.setdefault("assignments", {"file": Path(assignments).name})
            also.update(order=rows.order, separator=usual_separator(assignments))
            pieces.append(self._piece(Path(assignments), rows.table, also))

        def certify(temporary: Path) -> None:
            temporary.write_text(self._text(about, usual_separator(first), sign), encoding="utf-8")

        publish_together([*pieces, Piece(beside, certify)], closed=closed)
        return beside

    def _piece(self, path: Path, table: pl.DataFrame, about: dict[str, Any]) -> Piece:
        """One table, judged as it stands on disk."""

        def judge_bytes(temporary: Path) -> None:
            self.judge(temporary)
            about.update(rows=table.height, sha256=file_hash(temporary), bytes=temporary.stat().st_size)

        return Piece(path, lambda temporary: store(table, temporary), judge_bytes)

    def certify(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Write the certificate alone, of an answer that is written nowhere."""
        closed = check_outputs([(path, JSON)], self.read, overwrite=overwrite)
        publish_text(path, self._text(None, None, None), closed=closed)

    def judge(self, path: Path) -> list[Finding]:
        """What the judge finds in a file; VerificationError unless all of it holds."""
        frame = read_release(path, usual_separator(path))
        record = {"kind": self.kind, "parameters": self.parameters, "facts": self.facts}
        said = findings(json.loads(json.dumps(record, default=str)), self.certificate, frame, form_of(path),
                        self.sources)  # fmt: skip
        for found in said:
            if not found.holds:
                raise VerificationError(
                    f"what would leave is not what was decided ({found.check}: {found.found}); nothing was published. "
                    "This is a defect of shoal: please report it"
                )
        return said

    def record(self, about: Mapping[str, Any] | None, separator: str | None) -> dict[str, Any]:
        """What the certificate file holds."""
        return {
            "format": 1,
            "kind": self.kind,
            "made_by": {"shoal": __version__, "python": platform.python_version(), "polars": pl.__version__},
            "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "release": about,
            "parameters": dict(self.parameters),
            "facts": dict(self.facts),
            "method": self.method,
            "separator": separator,
            "certificate": self.certificate.as_dict(),
        }

    def _text(self, about: Mapping[str, Any] | None, separator: str | None, sign: str | Path | None) -> str:
        record = json.loads(json.dumps(self.record(about, separator), default=_plain))
        record["seal"] = seal(record)
        if sign is not None:
            record = signing.sign(record, sign)
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"

    def report(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """One self-contained HTML page that opens offline."""
        from shoal.report.crosswalk import page

        path = Path(path)
        closed = check_outputs([(path, PAGE)], self.read, overwrite=overwrite)
        held = {"kind": self.kind, "method": self.method, "parameters": self.parameters, "facts": self.facts}
        publish_text(
            path, page(self.title, held, self.certificate.as_dict(), list(self.groups), self.warnings), closed=closed
        )
        return path

    def plot(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """A picture of the groups; PolicyError where the problem has none."""
        return self._draw(self.picture, path, "picture", overwrite)

    def map(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """A map; PolicyError where there is nothing to draw on one."""
        return self._draw(self.drawn_map, path, "map", overwrite)

    def geojson(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """The groups as GeoJSON; PolicyError where they have no places, or places that are no degrees."""
        return self._draw(self.outlines, path, "GeoJSON", overwrite)

    def _draw(self, drawing: Drawing | None, path: str | Path, what: str, overwrite: bool) -> Path:
        if drawing is None:
            raise PolicyError(f"there is no {what} of {self.kind} made from these data")
        path = Path(path)
        publish_file(path, drawing.fill, closed=check_outputs([(path, drawing.form)], self.read, overwrite=overwrite))
        return path


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
