"""Recheck a crosswalk: by itself, and with what it was made from everything that can be counted again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from shoal.errors import CertificateError, InputError, ShoalError, VerificationError
from shoal.judge.agreed import agreed
from shoal.judge.file import read_release, seal, stale
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.places.areas import NAMED
from shoal.judge.tables.parts import hash_of
from shoal.model.certificate import LADDER, MORE, Certificate, PublicCertificate, rung
from shoal.model.hierarchy import Hierarchy
from shoal.model.record import digest, source_of
from shoal.model.shown_facts import differs, stray
from shoal.problems.catalogue import kinds
from shoal.publishing.crosswalks.area_tables import outlined, tables
from shoal.publishing.crosswalks.judging import OUTLINES, Sources, findings, form_of
from shoal.publishing.opening import opened

Proof = TypeVar("Proof", Certificate, PublicCertificate)  # of a record, of a certificate file


def recheck(
    path: Path,
    record: Mapping[str, Any],
    source: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: tuple[Mapping[str, Any], Path] = ({}, Path()),
    kept: Mapping[str, Any] | None = None,
) -> tuple[list[Finding], PublicCertificate, Certificate | None]:
    """What is found in an output of a problem, what its certificate file states and, where it is at hand, its record.

    source               a path or a frame, or a list of them in the order of the command; None: without
    separator, encoding  of sources that are CSV files
    hierarchies          of clusters: those at hand by column, and the folder in which the others may lie
    kept                 the private record; with it, everything that it says is checked too

    Raises InputError for a certificate file that is none.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in kinds():
        raise InputError(
            f"the certificate file is of a kind that this version cannot check; it knows {', '.join(kinds())}"
        )
    own = hash_of(path) if path.is_file() else ""
    if stray(record):
        raise InputError(f"the certificate file holds {stray(record)[0]!r}, which no certificate of {kind} has")
    about, stated = _parts(record, path.name, own, PublicCertificate)
    part = about.get("part")
    drawn = isinstance(part, str) and part.startswith(OUTLINES)
    if drawn or part == "hierarchy":
        if not path.is_file():
            raise InputError(f"there is no release {str(path)!r}")
        held: Any = outlined(path) if drawn and kind == "regions" else path
    else:
        held = read_release(path, _one_character(about.get("separator")))
    found = [_file(path, own, about, held, record), _sealed(record, "certificate")]
    known: Certificate | None = None
    asked: Mapping[str, Any] = record
    proof: Certificate | PublicCertificate = stated
    try:
        if kept is not None:  # which says all that the certificate file says, and more
            asked, proof = kept, (known := _parts(kept, path.name, own, Certificate)[1])
            found += [_belongs(record, kept, stated, known), _sealed(kept, "record's seal")]
            found.append(_proportion(kept["certificate"], known))
        else:
            found.append(ratio_stated(stated))
        sources = sources_of(source, asked, separator, encoding, hierarchies)
        found += [*findings(asked, proof, held, form_of(path), sources, part), *agreed(asked, proof)]
    except VerificationError:
        if found[0].holds:
            raise
        return found, stated, known  # the certificate of something else: what it says of columns is no matter here
    except ShoalError:
        raise
    except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, pl.exceptions.PolarsError):
        raise InputError("the certificate file lacks something, or holds it in a wrong form") from None
    text = "that this is what was asked for, by what method and when, rests on the certificate"
    return [*found, Finding("what was asked", True, text, STATED)], stated, known


def _sealed(record: Mapping[str, Any], name: str) -> Finding:
    unchanged = record.get("seal") == seal(record)
    return Finding(name, unchanged, "unchanged" if unchanged else "it was changed after it was written", CONSISTENT)


def _belongs(
    record: Mapping[str, Any], kept: Mapping[str, Any], stated: PublicCertificate, known: Certificate
) -> Finding:
    """Whether a record is that of this certificate: of the same files and request, and of the ratio stated."""
    odd = differs(record, kept, ("kind", "release", "also", "separator"))
    step = rung(known.ratio)
    odd += [] if stated.ratio_at_most in (None, step) else ["ratio"]
    odd += [] if (stated.unit, stated.cost) in ((known.unit, None), (known.unit, known.cost)) else ["cost"]
    text = f"it says otherwise than the certificate about {odd[0]!r}" if odd else "it is the certificate's record"
    return Finding("record", not odd, text, CONSISTENT)


def ratio_stated(stated: PublicCertificate) -> Finding:
    """The proved ratio, which only the record and the source can confirm."""
    if stated.ratio_at_most is None:
        return Finding("ratio", True, "none is stated", STATED)
    most = f"more than {LADDER[-1]:g}" if stated.ratio_at_most == MORE else f"at most {stated.ratio_at_most:g}"
    return Finding("ratio", True, f"{most} times the least", STATED)


def _file(path: Path, own: str, about: Mapping[str, Any], held: Any, record: Mapping[str, Any]) -> Finding:
    """The file is the one certified, byte for byte, and as long as is said of it."""
    if own != about.get("sha256"):
        return Finding("file", False, stale(path, record))
    size = about.get("bytes") == path.stat().st_size
    rows = "rows" not in about or not isinstance(held, pl.DataFrame) or about["rows"] == held.height
    said = "the file is the one certified" if size and rows else "it has more or fewer bytes or rows than certified"
    return Finding("file", size and rows, said)


def _parts(record: Mapping[str, Any], name: str, own: str, form: type[Proof]) -> tuple[Mapping[str, Any], Proof]:
    """What is stated of the file with this hash, or else with this name, and the certificate."""
    also: Any = record.get("also", [])
    known: list[Mapping[str, Any]] = [
        a for a in (record.get("release"), *(also if isinstance(also, list) else [])) if isinstance(a, Mapping)
    ]
    of_hash: list[Mapping[str, Any]] = [a for a in known if a.get("sha256") == own]
    about = next(iter([*of_hash, *(a for a in known if a.get("file") == name), *known]), record.get("release"))
    if about is None:
        raise InputError("the certificate file is of an answer that was written nowhere, so there is no file to check")
    written = record.get("certificate")
    if not all(isinstance(part, Mapping) for part in (about, record.get("parameters"), record.get("facts"), written)):
        raise InputError("the certificate file lacks something, or holds it in a wrong form")
    try:
        return about, form.from_dict(written)  # type: ignore[arg-type]
    except CertificateError as error:
        raise InputError(f"the certificate file contradicts itself: {error!s}") from None


def _one_character(separator: Any) -> str | None:
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or not separator.isascii()):
        raise InputError("the certificate file names a separator that is not one character")
    return separator


def _proportion(written: Mapping[str, Any], stated: Certificate) -> Finding:
    """Cost over lower bound, as the file says it."""
    ratio, said = stated.ratio, written.get("ratio")
    number = isinstance(said, (int, float)) and not isinstance(said, bool)
    same = said is None if ratio is None else number and math.isclose(float(ratio), float(said or 0), rel_tol=1e-9)
    same = bool(same) and written.get("optimal") is stated.optimal
    text = "cost over lower bound, as stated" if same else "its ratio is not cost over lower bound"
    return Finding("ratio", same, text)


def sources_of(
    source: Any, record: Mapping[str, Any], separator: str | None, encoding: str | None,
    hierarchies: tuple[Mapping[str, Any], Path],
) -> Sources:  # fmt: skip
    """The sources as the judge takes them; arguments as of ``recheck``."""
    given = [] if source is None else list(source) if isinstance(source, (list, tuple)) else [source]
    if not given:
        return Sources()
    if record["kind"] == "regions":
        return _areas(given, record["parameters"])
    if record["kind"] in ("gather", "cellular"):
        return _points(given, record["parameters"], (separator, encoding), hierarchies)
    if len(given) > 1:
        raise InputError("this output was made of one source; name one")
    return Sources(opened(given[0], separator, encoding))


def _points(
    given: list[Any], asked: Mapping[str, Any], text: tuple[str | None, str | None],
    hierarchies: tuple[Mapping[str, Any], Path],
) -> Sources:  # fmt: skip
    """The table that was clustered, then the coordinates of its codes, in the order of the columns."""
    coded = [f["columns"][0] for f in asked["features"] if f["kind"] == "coded place"]
    if len(given) > 1 + len(coded):
        raise InputError("clusters are made of one table, and the coordinates of its codes; name no more")
    held, folder = hierarchies
    trees = {}
    for name, entry in dict(asked.get("hierarchies") or {}).items():
        source = held.get(name, entry["source"])
        if name not in held and source == "given":
            continue
        with suppress(InputError):
            tree = Hierarchy.of(source if name in held else source_of(name, str(source), folder))
            if digest(tree) != entry["sha256"]:
                raise VerificationError(f"the hierarchy of {name!r} is not the one certified")
            trees[name] = tree
    places = {name: opened(x) for name, x in zip(coded, given[1:], strict=False)}
    return Sources(opened(given[0], *text), trees=trees, places=places)


def _areas(given: list[Any], asked: Mapping[str, Any]) -> Sources:
    """Areas, pairs, polygons: files as ``shoal regions`` takes them (polygons in place of pairs too), or two frames."""
    from shoal.engines.geography import read
    from shoal.engines.vector import GDAL, JSON

    if len(given) > 3:
        raise InputError("regions are made of areas, pairs of neighbors and polygons; name a file of each at most")
    named = asked.get("column")
    if not all(isinstance(x, (str, Path)) for x in given):
        if len(given) != 2:
            raise InputError("regions of a frame are checked with two: the areas, and the pairs of their names")
        table, pairs = (opened(x) for x in given)
        name = named or ("id" if "id" in table.columns else table.columns[0])
        return Sources(table.with_columns(table[name].cast(pl.String).str.strip_chars().alias(NAMED)), pairs)
    first, second = given[0], given[1] if len(given) > 1 else None
    how = dict(asked.get("drawn") or {})
    drawn = second is not None and Path(second).suffix.lower() in (*JSON, *GDAL)
    shapes = second if drawn else given[2] if len(given) > 2 else None
    found = read(
        first, None if drawn else second, id=named, source=asked.get("source"), target=asked.get("target"),
        shapes=shapes, unmatched="leave-out", shape_id=how.get("shape_id"),
        tolerance=how.get("tolerance"), coordinates=how.get("coordinates") or "auto",
    )  # fmt: skip
    return Sources(*tables(found, list(found.columns), how.get("centers") or ()), shapes=found.shapes)
