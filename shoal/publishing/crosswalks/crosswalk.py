"""``Crosswalk``: the release of a problem other than tables, verified on its bytes, with its certificate."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.engines.atomic import Piece, Wanted, check_outputs, publish_file, publish_page, publish_together
from shoal.engines.columns import without_levels
from shoal.engines.store import refuse_both, store
from shoal.errors import PolicyError, VerificationError
from shoal.judge.file import read_release
from shoal.judge.finding import Finding, has_both
from shoal.judge.tables.large import hash_of
from shoal.model import certificate as shown_facts
from shoal.model.arguments import known, suggesting
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import FORMAT, Certificate
from shoal.model.policy import BOUNDS
from shoal.paths import JSON, TABLE, Form, internal_path, kind_of, sides_of, usual_separator
from shoal.publishing.documents import Documents, made_now, sealed
from shoal.publishing.sources import OUTLINES, Sources, findings, outlined
from shoal.watching import watched

PRIVATE = ("private", "method")  # entries of a record that its certificate file omits


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """A drawing of a release: its possible formats, and the function that fills a file.

    private  whether it shows more than the release, so that only the owner may read it
    order    source of the row order, if the certificate states it: a secret, or KEPT
    """

    form: Form
    fill: Callable[[Path], object]
    private: bool = False
    order: str | None = None


KEPT = "as in the table"


class GroupedRecords(NamedTuple):
    """A row for each record, with its group instead of its values.

    order  source of the row order: a secret, or KEPT
    """

    table: pl.DataFrame
    order: str


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Crosswalk(Shown):
    """An answer that can be published, with its cost.

    kind         "labels", "intervals", "regions", "tiles", "gather", or "cellular"
    content      what is written: a row for each value, area, place, or cluster
    certificate  cost, lower bound, and the theorem behind each
    parameters   the request;  facts: rows, groups, sizes: all that a certificate file states
    sources      the data from which it was made, for the judge, which counts it again
    read         the files among them, which are never overwritten
    title, note, groups   for the report: a heading, a line below it, and the size of each group
    picture, drawn_map, outlines   how it is drawn, if it can be
    companions   what can be written with it, by name: for tiles "tiles", "outlines", and "table"; for regions
                 "hierarchy", "outlines", and for the levels above "outlines2", "outlines3", ...
    rows         for clusters: a row for each record, with its cluster's center instead of its values; companion
                 "assignments"
    warnings     what you must know before you publish it
    native       makes the kind of frame that you passed
    refused      why it must not be written; empty if it may be
    written      the files of the last ``write``, with their hashes, for the report; empty before
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
    companions: Mapping[str, Drawing] = field(default_factory=dict, repr=False)
    rows: GroupedRecords | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    native: Callable[[pl.DataFrame], Any] = field(default=lambda frame: frame, repr=False)
    written: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def table(self) -> Any:
        """The published table."""
        return self.native(self.content.select(without_levels(c) for c in self.content.iter_columns()))

    def _lines(self) -> list[str]:
        lines = [
            f"Crosswalk of {self.kind}: {several(self.content.height, 'row')}, {', '.join(self.content.columns)}",
            sizes_line("size of a group", self.groups, f"{several(len(self.groups), 'group')}"),
            *proof_lines(self.certificate, self.method),
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return [*lines, f"may not be written: {self.refused}"] if self.refused else lines

    @property
    def assignments(self) -> Any:
        """A row for each record, with its group and only published values; PolicyError if there are none.

        The order is shuffled with a secret, unless the release was requested in the original order.
        """
        return self.native(self._rows().table)

    def _rows(self) -> GroupedRecords:
        if self.rows is None:
            raise PolicyError(f"there are no assignments of {self.kind} apart from the crosswalk itself")
        return self.rows

    @watched
    @suggesting
    def write(
        self,
        path: str | Path | None,
        certificate: str | Path | None = None,
        *,
        also: Mapping[str, str | Path] | None = None,
        assignments: str | Path | None = None,
        drawn: Sequence[tuple[str | Path, Drawing]] = (),
        overwrite: bool = True,
        sign: str | Path | None = None,
        record: bool = True,
        bound: str = "ratio",
    ) -> Path:
        """Write the crosswalk in the format of the file's ending, verified on the written bytes, with certificate and
        record.

        The certificate may be published with the output: it contains what the files show, and one rounded ratio. The
        record contains what is known about the source. Only its owner may read it, and no receiver needs it.

        path         CSV (also .gz), Parquet, or Excel; None: only what is named in ``also`` or ``assignments``
        certificate  a JSON file; OUTPUT.certificate.json if None
        also         name of a companion -> its path; it is judged and certified with the crosswalk
        drawn        maps and pictures, from ``drawing``, which are written together with it or not at all
        assignments  for clusters: the companion of that name, a table with a row for each record
        overwrite    False: refuse to replace existing files
        sign         file of a private key, see ``shoal keygen``
        record       whether OUTPUT.record.json is also written
        bound        "none": the certificate doesn't state the proved ratio

        The files get their names only after the judge has read them and recounted them from their source. Otherwise
        raises VerificationError, and existing files are unchanged. Returns the certificate's path.
        """
        if self.refused:
            raise PolicyError(self.refused)
        more = {name: Path(p) for name, p in (also or {}).items()}
        if assignments is not None:
            more["assignments"] = Path(assignments)
        known("choice for bound", bound, BOUNDS)
        for name in more:
            if name not in self._all_companions():
                raise PolicyError.unknown(f"companion of {self.kind}", name, self._all_companions())
        first = next((Path(p) for p in (path, *more.values()) if p is not None), None)
        if first is None:
            raise PolicyError("there is nothing to write; name a path")
        if any(kind_of(p) != "parquet" for p in (path, more.get("assignments"), more.get("table")) if p is not None):
            self._refuse_both()
        papers = Documents.next_to(first, certificate, record, sign)
        return self._write(None if path is None else Path(path), more, drawn, papers, overwrite, bound != "none")

    def _refuse_both(self) -> None:
        """InputError for a judged column with both empty texts and missing values."""
        asked, table = self.parameters, self.sources.table
        given = asked.get("sensitive") or ()
        named = [asked.get("boundary"), *([given] if isinstance(given, str) else given)]
        if self.kind in ("gather", "cellular"):
            named += asked["columns"]  # whose values are those of centers
        held = {name: table[name] for name in named if table is not None and name in table.columns}
        if self.kind in ("labels", "intervals"):
            held[asked["column"]] = self.content["value"]
        refuse_both({name: values.unique().to_list() for name, values in held.items() if has_both(values)})

    def _all_companions(self) -> Mapping[str, Drawing]:
        """The companions, including assignments."""
        if self.rows is None:
            return self.companions
        rows = self.rows.table
        return {**self.companions, "assignments": Drawing(form=TABLE, fill=lambda to: store(rows, to))}

    def _files(self, path: Path | None, more: Mapping[str, Path], abouts: list[dict[str, Any]]) -> list[Piece]:
        """The crosswalk and its companions; the description of each is added to ``abouts`` after it is judged."""
        companions = self._all_companions()

        def piece(place: Path, part: str | None, fill: Callable[[Path], object]) -> Piece:
            def judge_bytes(temporary: Path) -> None:
                self.judge(temporary, part)
                size = {"sha256": hash_of(temporary), "bytes": temporary.stat().st_size}
                abouts.append({**self._stated(part), "file": place.name, "separator": usual_separator(place), **size})

            return Piece(place, fill, judge_bytes, sides=tuple(side.suffix for side in sides_of(place)))

        main = [] if path is None else [piece(path, None, lambda temporary: store(self.content, temporary))]
        return [*main, *(piece(p, name, companions[name].fill) for name, p in more.items())]

    def _write(
        self, path: Path | None, more: Mapping[str, Path], drawn: Sequence[tuple[str | Path, Drawing]],
        papers: Documents, overwrite: bool, bound: bool,
    ) -> Path:  # fmt: skip
        """Write all files together after the judge has read them; returns the certificate's path."""
        companions = self._all_companions()
        wanted: list[Wanted] = [] if path is None else [(path, TABLE)]
        wanted += [(p, companions[name].form) for name, p in more.items()]
        closed = papers.check([*wanted, *((p, d.form) for p, d in drawn)], self.read, overwrite=overwrite)
        first, abouts = Path(str(wanted[0][0])), list[dict[str, Any]]()

        def private() -> dict[str, Any]:
            main = next(({**a, "rows": self.content.height} for a in abouts if "part" not in a), None)
            return self.record(main, usual_separator(first), [a for a in abouts if "part" in a])

        def public() -> dict[str, Any]:
            own = private()
            shown = self._shown_of(own["release"], more)
            whole = path is not None and shown is own["release"]
            return shown_facts.content({**own, "release": shown}, self.certificate, PRIVATE, whole, bound)

        if path is None:
            refuse_unless(self.findings_in(None, self.content, "parquet"))
        pictures = [Piece(p, drawing.fill, private=drawing.private) for p, drawing in drawn]
        pieces = [*self._files(path, more, abouts), *pictures]
        papers.publish(pieces, public, private, closed=closed)
        main, rest = next((a for a in abouts if "part" not in a), {}), [a for a in abouts if "part" in a]
        self.written.clear()
        self.written.update({"certificate": papers.certificate.name, "signed": papers.sign is not None})
        self.written.update({**(self._shown_of(main, more) or {}), "also": rest})
        return papers.certificate

    def _shown_of(self, about: Mapping[str, Any] | None, more: Collection[str]) -> Mapping[str, Any] | None:
        """What a public file may state about the crosswalk's file. more: the companions written with it.

        A crosswalk of tiles contains the exact places. If a receiver of the tiles knew its hash, or its number of bytes
        or rows, they could guess the last place that they don't know, and check each guess.
        """
        if about is None or self.kind != "tiles" or not more:
            return about
        return {name: held for name, held in about.items() if name in ("file", "separator")}

    def _stated(self, part: str | None) -> dict[str, Any]:
        """What the certificate states about a companion, other than its file."""
        if part is None:
            return {}
        if part == "assignments" and self.rows is not None:
            return {"part": part, "rows": self.rows.table.height, "order": self.rows.order}
        order = self._all_companions()[part].order
        return {"part": part} if order is None else {"part": part, "order": order}

    def certify(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Write only the record, for an answer without an output."""
        closed = check_outputs([(path, JSON)], self.read, overwrite=overwrite)
        text = sealed(self.record(None, None))
        publish_together([Piece(path, lambda to: to.write_text(text, encoding="utf-8"), private=True)], closed=closed)

    def judge(self, path: Path, part: str | None = None) -> list[Finding]:
        """The judge's findings on a file, the crosswalk or a companion; VerificationError unless all of them hold."""
        if self.kind == "regions" and part is not None and part.startswith(OUTLINES):
            found = self.findings_in(part, outlined(path), "")
        elif part in (OUTLINES, "hierarchy"):
            found = self.findings_in(part, path, "")
        else:
            found = self.findings_in(part, read_release(path, usual_separator(path)), kind_of(path))
        return refuse_unless(found)

    def findings_in(self, part: str | None, held: Any, form: str) -> list[Finding]:
        record = {"kind": self.kind, "parameters": self.parameters, "facts": self.facts}
        plain = json.loads(json.dumps(record, default=str))
        return findings(plain, self.certificate, held, form, self.sources, part)

    def record(
        self, about: Mapping[str, Any] | None, separator: str | None, also: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The content of the private record."""
        held, follow = self.certificate.details, shown_facts.FOLLOWING.get(self.kind, set())
        details = {name: detail for name, detail in held.items() if name not in follow}
        return {
            "format": FORMAT,
            "kind": self.kind,
            **made_now(),
            "private": True,  # it contains figures of the source
            "release": about,
            **({"also": list(also)} if also else {}),
            "parameters": dict(self.parameters),
            "facts": dict(self.facts),
            "method": self.method,
            "separator": separator,
            "certificate": {**self.certificate.as_dict(), "details": details},
        }

    @watched
    @suggesting
    def report(
        self,
        path: str | Path,
        *,
        internal: bool = False,
        recipient: str = "",
        purpose: str = "",
        decided_by: str = "",
        overwrite: bool = True,
    ) -> Path:
        """One self-contained HTML page that opens offline; overwrite=False refuses to replace a file.

        internal  False: a public page, made from the written files and their certificate alone. True: the board's page,
                  with figures of the source; its name then ends in .internal.html, and you must not publish it
        recipient, purpose, decided_by  who gets it, for what purpose, and who decided; lines to fill in if not given

        After ``write``, it names the files and their SHA-256. It contains all its figures as JSON too, and they are in
        a file of the same name that ends in .json. A picture other than the groups' own bars needs the extra plot.
        Returns the path of the page.
        """
        from shoal.publishing.crosswalks.answer_figures import pictures
        from shoal.report.crosswalk import answer_page

        decision = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}

        def figures() -> dict[str, Any]:
            return {**(self.figures() if internal else self.public_figures()), "decision": decision}

        def page(held: Mapping[str, Any]) -> str:
            return answer_page(held, pictures(self))

        path = internal_path(Path(path)) if internal else Path(path)
        return publish_page(path, figures, page, self.read, overwrite=overwrite, private=internal)

    def figures(self) -> dict[str, Any]:
        """The figures of an internal report, as plain values; they include figures of the source."""
        from shoal.publishing.crosswalks.answer_figures import figures

        return figures(self)

    def public_figures(self) -> dict[str, Any]:
        """The figures of a public report, as plain values; the written files show all of them."""
        from shoal.publishing.crosswalks.answer_figures import public_figures

        return public_figures(self)

    def plot(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """A picture of the groups; PolicyError if the problem has none."""
        return self._draw("picture", path, overwrite)

    def map(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """A map; PolicyError if there is nothing to draw."""
        return self._draw("map", path, overwrite)

    def geojson(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """The groups as GeoJSON; PolicyError if they have no places, or places that aren't degrees."""
        return self._draw("GeoJSON", path, overwrite)

    def drawing(self, what: str) -> Drawing:
        """The drawing: "map", "picture", or "GeoJSON"; PolicyError if there is nothing to draw."""
        found = {"map": self.drawn_map, "picture": self.picture, "GeoJSON": self.outlines}[what]
        if found is None:
            needs = {"map": "coordinates or polygons", "GeoJSON": "coordinates in degrees"}.get(what)
            raise PolicyError(
                f"a {what} needs {needs}, which this answer does not have; leave the {what} out"
                if needs
                else f"no {what} is drawn of {self.kind}; leave it out"
            )
        return found

    def _draw(self, what: str, path: str | Path, overwrite: bool) -> Path:
        drawing, path = self.drawing(what), Path(path)
        publish_file(path, drawing.fill, closed=check_outputs([(path, drawing.form)], self.read, overwrite=overwrite))
        return path


def refuse_unless(results: list[Finding]) -> list[Finding]:
    """The judge's findings, if all of them hold; otherwise VerificationError."""
    for found in results:
        if not found.holds:
            raise VerificationError(
                f"what would be written differs from what was decided ({found.check}: {found.found}); nothing was "
                "published. Pass the data that the answer was made of, with the same columns and rows in the same "
                "order; if these are the data, this is a defect of shoal: please report it"
            )
    return results
