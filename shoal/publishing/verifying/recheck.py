"""Recheck a crosswalk: by itself, and with what it was made from everything that can be counted again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import CertificateError, InputError, ShoalError, VerificationError
from shoal.judge.agreed import agreed
from shoal.judge.file import read_release, seal, stale
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.places.areas import NAMED
from shoal.judge.tables.parts import hash_of
from shoal.model.certificate import Certificate
from shoal.model.hierarchy import Hierarchy
from shoal.model.record import digest, source_of
from shoal.problems.catalogue import kinds
from shoal.publishing.crosswalks.area_tables import outlined, tables
from shoal.publishing.crosswalks.judging import OUTLINES, Sources, findings, form_of
from shoal.publishing.opening import opened


def recheck(
    path: Path,
    record: Mapping[str, Any],
    source: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: tuple[Mapping[str, Any], Path] = ({}, Path()),
) -> tuple[list[Finding], Certificate]:
    """What is found in an output of a problem, and its certificate.

    source               a path or a frame, or a list of them in the order of the command; None: without
    separator, encoding  of sources that are CSV files
    hierarchies          of clusters: those at hand by column, and the folder in which the others may lie

    Raises InputError for a certificate file that is none.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in kinds():
        raise InputError(
            f"the certificate file is of a kind that this version cannot check; it knows {', '.join(kinds())}"
        )
    own = hash_of(path) if path.is_file() else ""
    about, stated = _parts(record, path.name, own)
    part = about.get("part")
    drawn = isinstance(part, str) and part.startswith(OUTLINES)
    if drawn or part == "hierarchy":
        if not path.is_file():
            raise InputError(f"there is no release {str(path)!r}")
        held: Any = outlined(path) if drawn and kind == "regions" else path
    else:
        held = read_release(path, _one_character(about.get("separator")))
    found = [_file(path, own, about, held, record)]
    found.append(_proportion(record["certificate"], stated))
    unchanged = record.get("seal") == seal(record)
    found.append(
        Finding(
            "certificate", unchanged, "agrees with itself" if unchanged else "it was changed after it was written",
            CONSISTENT,
        )
    )  # fmt: skip
    try:
        sources = sources_of(source, record, separator, encoding, hierarchies)
        found += [*findings(record, stated, held, form_of(path), sources, part), *agreed(record, stated)]
    except VerificationError:
        if found[0].holds:
            raise
        return found, stated  # the certificate of something else: what it says of columns is no matter here
    except ShoalError:
        raise
    except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, pl.exceptions.PolarsError):
        raise InputError("the certificate file lacks something, or holds it in a wrong form") from None
    text = "that this is what was asked for, by what method and when, rests on the certificate"
    return [*found, Finding("what was asked", True, text, STATED)], stated


def _file(path: Path, own: str, about: Mapping[str, Any], held: Any, record: Mapping[str, Any]) -> Finding:
    """The file is the one certified, byte for byte, and as long as is said of it."""
    if own != about.get("sha256"):
        return Finding("file", False, stale(path, record))
    size = about.get("bytes") == path.stat().st_size
    rows = "rows" not in about or not isinstance(held, pl.DataFrame) or about["rows"] == held.height
    said = "the file is the one certified" if size and rows else "it has more or fewer bytes or rows than certified"
    return Finding("file", size and rows, said)


def _parts(record: Mapping[str, Any], name: str, own: str) -> tuple[Mapping[str, Any], Certificate]:
    """What is stated of the file with this hash, or else with this name, and the certificate."""
    also = record.get("also", [])
    known = [a for a in (record.get("release"), *(also if isinstance(also, list) else [])) if isinstance(a, Mapping)]
    of_hash = [a for a in known if a.get("sha256") == own]
    about = next(iter([*of_hash, *(a for a in known if a.get("file") == name), *known]), record.get("release"))
    if about is None:
        raise InputError("the certificate file is of an answer that was written nowhere, so there is no file to check")
    written = record.get("certificate")
    if not all(isinstance(part, Mapping) for part in (about, record.get("parameters"), record.get("facts"), written)):
        raise InputError("the certificate file lacks something, or holds it in a wrong form")
    try:
        return about, Certificate.from_dict(written)  # type: ignore[arg-type]
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
