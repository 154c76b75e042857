"""Assignment of new records to the regions, tiles, clusters, intervals, or labels of an earlier answer.

A record gets the group that its place or value has in the answer. The groups depend only on the answer, so they reveal
nothing about new records. They don't promise that k of the *new* records share a group: a group with k old records may
have a single new one, and someone who knows that a person is among the new records then finds them. So groups with
fewer than k new records are counted. The table isn't a release of its own, and the answer's certificate doesn't cover
it.
"""

from __future__ import annotations

import bisect
import datetime
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import check_outputs, publish_file
from shoal.engines.codes import as_text
from shoal.engines.order import ShuffleKey, shuffled
from shoal.engines.shapes import restored
from shoal.engines.store import column as column_of
from shoal.engines.store import in_plain, numbers, store
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.crosswalk import spelled
from shoal.judge.file import canonical, read_release
from shoal.model.arguments import suggesting
from shoal.model.cards import Shown, several
from shoal.model.certificate import read_json
from shoal.model.notation import MARKS, reader_of, refuse_notations
from shoal.paths import TABLE, certificate_path, is_json, is_map, kind_of, record_path, usual_separator
from shoal.problems.catalogue import CATALOGUE
from shoal.publishing.crosswalks.answers import features_asked
from shoal.publishing.crosswalks.crosswalk import Crosswalk
from shoal.publishing.crosswalks.grouped import in_order, marks_of_points, replaced
from shoal.publishing.sources import Sources, opened, sources_of
from shoal.publishing.verifying.recheck import recheck
from shoal.watching import watched

CLUSTERS = ("gather", "cellular")
_FAR = (
    "{} farther from the sides of the tiles than these are from each other. Check whether coordinates are exchanged or "
    "lack a minus sign: a tile without an end holds every point beyond its sides."
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Assigned(Shown):
    """New records with the groups of an earlier answer.

    table    the records with their groups instead of the grouped columns (coordinates, areas, values)
    groups   the name or number of each record's group, in the order of the data; None outside all groups
    outside  number of records in no group
    alone    number of groups with at least one but fewer than k of the new records
    rows_alone  number of records in such groups
    k        of the answer
    kind     of the answer: "tiles", "regions", "labels", "intervals", "gather", "cellular"
    far      number of new points farther from all sides of tiles than these sides span
    zeros    number of names of areas that differ from the answer's only by leading zeros and were matched
    """

    table: pl.DataFrame
    groups: list[Any]
    outside: int
    alone: int
    rows_alone: int
    k: int
    kind: str
    order: np.ndarray
    read: tuple[str | Path, ...] = ()
    zeros: int = 0
    far: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON."""
        return {
            "kind": self.kind, "rows": len(self.groups), "groups_met": len(set(self.groups) - {None}),
            "outside": self.outside, "groups_below_k": self.alone, "rows_in_groups_below_k": self.rows_alone,
            "k": self.k, "leading_zeros_restored": self.zeros, "far_away": self.far,
        }  # fmt: skip

    def _lines(self) -> list[str]:
        return ["New records with the groups of a former answer", *self.sentences()]

    def sentences(self) -> list[str]:
        """The result and its promise, as sentences."""
        what = CATALOGUE[self.kind].group if self.kind in CLUSTERS else self.kind.removesuffix("s")
        near = "A record is in none if every center is farther away than the published radius of its cluster."
        own = "by the weights of their areas" if self.kind == "regions" else "with its own records"
        given = f"leading zeros of {several(self.zeros, 'name')} read as the answer has them"
        return [
            *([given] if self.zeros else []),
            *([_FAR.format(several(self.far, "record"))] if self.far else []),
            f"{len(self.groups) - self.outside:,} of {len(self.groups):,} records are in {what}s of the answer, "
            f"{self.outside:,} in none.",
            *([near] if self.kind in CLUSTERS and self.outside else []),
            f"{several(self.alone, what)} with fewer than {self.k:,} of the new records, {self.rows_alone:,} in all: "
            f"the answer's groups are at least that large {own}, not with the new ones alone.",
        ]

    def write(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Write the table in the format of the file's ending, with shuffled rows, and check it before it gets its
        name."""
        path = Path(path)
        closed = check_outputs([(path, TABLE)], self.read, overwrite=overwrite)
        made = self.table[self.order]

        def judge(temporary: Path) -> None:
            form = kind_of(temporary)
            back = read_release(temporary, usual_separator(path))
            if back.columns != made.columns or any(
                canonical(back[n], form).to_list() != spelled(made[n], form, back[n]) for n in made.columns
            ):
                raise VerificationError("what was written is not what was assigned; nothing was published")

        publish_file(path, lambda temporary: store(made, temporary), judge, closed=closed)


@watched
@suggesting
def assign(
    answer: Any,
    data: Any,
    *,
    certificate: str | Path | None = None,
    column: str | None = None,
    x: str | None = None,
    y: str | None = None,
    boundary: str | None = None,
    decimal: Mapping[str, str] | None = None,
    secret: bytes | str | Path | None = None,
    keep_order: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
) -> Assigned:
    """New records with the tile, region, cluster, interval, or label that an earlier answer gives to their place or
    value.

    answer       a ``Crosswalk``, or the path of a written one or of its certificate; a file is verified first
    data         the new records: a path or a frame
    certificate  of a crosswalk's path; the file next to it if None
    column       of the new records' areas, values, or labels; by default the answer's, or "area" or "id"
    x, y, boundary   of new points; by default the names of the answer
    decimal      column of new points or of a distance whose numbers are texts -> its decimal mark; by default the
                 answer's marks
    secret       at least 16 bytes, or a file of them, that determine the order of rows in a written table; fresh by
                 default

    Of the clusters whose published radius reaches a record, the record gets the one with the nearest center. The
    columns of the distance have the answer's names. The scales of these columns are in the private record, which must
    be next to the certificate.

    A number or date between two values of one interval is in that interval; between two intervals, it is in none.
    Raises VerificationError for an answer that does not match its certificate. O(n log n) for n records; for tiles, the
    points at the height of each record come in addition; O(n m) for m clusters.
    """
    shuffle_key = ShuffleKey.unless_kept(secret, keep_order)
    record, content, read, sources = _answer(answer, certificate)
    asked, kind = record["parameters"], record["kind"]
    given = {"column": column, "x": x, "y": y, "boundary": boundary, "decimal": decimal}
    _refuse_unread(kind, asked, {name: value for name, value in given.items() if value})
    frame = opened(data, separator, encoding)
    files = (*read, *([data] if isinstance(data, (str, Path)) else []))
    zeros, far = 0, 0
    if kind == "tiles":
        names = (x or asked["x"], y or asked["y"], boundary or asked.get("boundary"))
        own = asked.get("decimal") or {}
        marks = {new: own[old] for old, new in zip((asked["x"], asked["y"]), names, strict=False) if old in own}
        frame = in_plain(frame, marks_of_points(marks if decimal is None else decimal, names[:2]))
        groups, table, far = _tiles(content, asked, frame, names)
    elif kind in CLUSTERS:
        groups, table = _clusters(content, asked, frame, sources, decimal)
    else:
        name = column or _column(kind, asked, frame)
        held = column_of(frame, name)
        if kind == "regions":
            held, zeros = _zeros_back(_texts(content["area"]), held)
            groups = _known(_regions(content), held)
        else:
            held = held.fill_nan(None) if held.dtype.is_float() else held  # one missing value, as in the answer
            groups = _valued(content, held, kind, name, asked.get("notation"))
        table = _in_place(frame, name, {"regions": "region"}.get(kind, "group_label"), groups)
    least = asked["r" if kind in CLUSTERS else "k"]
    k = least[0] if isinstance(least, list) else int(least)
    met: dict[Any, int] = {}
    for group in groups:
        met[group] = met.get(group, 0) + 1
    outside = met.pop(None, 0)
    few = [n for n in met.values() if n < k]
    order = np.arange(len(groups)) if shuffle_key is None else shuffled(table.get_columns(), shuffle_key)
    return Assigned(
        table=table, groups=groups, outside=outside, alone=len(few), rows_alone=sum(few), k=k, kind=kind, order=order,
        read=files, zeros=zeros, far=far,
    )  # fmt: skip


_READ = {"tiles": ("x", "y", "boundary", "decimal"), **dict.fromkeys(CLUSTERS, ("decimal",))}


def _refuse_unread(kind: str, asked: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """PolicyError for an argument that answers of this kind don't read."""
    for name, value in given.items():
        if name not in _READ.get(kind, ("column",)):
            of = "clusters" if kind in CLUSTERS else kind
            what = name if isinstance(value, Mapping) else f"{name}={value!r}"
            raise PolicyError(f"⟨{what}⟩ has no effect on an answer of {of}; leave it out")
    if "boundary" in given and asked.get("boundary") is None:
        raise PolicyError(f"⟨boundary={given['boundary']!r}⟩ has no effect, because the tiles have none; leave it out")


def _answer(
    answer: Any, certificate: str | Path | None
) -> tuple[Mapping[str, Any], pl.DataFrame, tuple[Path, ...], Sources]:
    """The certificate of an answer, its rows, the files that were read, and hierarchies and coordinates of codes."""
    if isinstance(answer, Crosswalk):
        return {"parameters": answer.parameters, "kind": answer.kind}, answer.content, (), answer.sources
    if not isinstance(answer, (str, Path)):
        raise InputError(
            f"a {type(answer).__name__} names no columns; pass shoal.release of it, or the file that was written"
        )
    path = Path(answer)
    if is_json(path) and certificate is None:
        proof, record = path, read_json(path)
        about = record.get("release") or next((a for a in record.get("also", []) if a.get("part") == "tiles"), None)
        if not isinstance(about, Mapping) or not isinstance(about.get("file"), str):
            raise InputError(f"{path.name!r} names no crosswalk; name the file that was written")
        path = path.parent / Path(about["file"]).name
    else:
        proof = certificate_path(path) if certificate is None else Path(certificate)
        if not proof.is_file():
            raise InputError(
                f"there is no certificate {str(proof)!r}; name first the file that tiles, regions, gather, labels or "
                "intervals wrote, and its certificate where that lies elsewhere (⟨certificate=...⟩)"
            )
        record = read_json(proof)
    if record.get("kind") not in ("tiles", "regions", "labels", "intervals", *CLUSTERS):
        raise InputError(
            f"{proof.name!r} is no certificate of tiles, regions, clusters, labels or intervals, so there is nothing "
            "to assign"
        )
    beside, release_entry = record_path(proof), record.get("release") or {}
    # for places, the record contains more
    clustered = record["kind"] in CLUSTERS
    if clustered and not beside.is_file():
        raise InputError(
            f"the private record {beside.name!r} is not next to the certificate, and only it has the scales of the "
            "columns; put it there"
        )
    kept = read_json(beside) if clustered or ("sha256" not in release_entry and beside.is_file()) else None
    for found in recheck(path, record, kept=kept)[0]:
        if not found.holds:
            raise VerificationError(f"the answer is not as certified ({found.check}: {found.found})")
    if is_map(path):
        raise InputError(f"{path.name!r} holds outlines; name the crosswalk")
    content = read_release(path, record.get("separator"))
    if not clustered:
        return record, content, (path, proof), Sources()
    assert kept is not None
    if "records" not in content.columns:
        raise InputError(f"{path.name!r} has a row for each record; name the file with a row for each cluster")
    held = sources_of(content, kept, None, None, ({}, path.parent))
    return kept, content, (path, proof, beside), held


def _refuse_no_degrees(points: np.ndarray, names: tuple[str, str, str | None]) -> None:
    """InputError for new points with a longitude or a latitude that no place has."""
    for name, what, least, most, at in zip(names, ("longitude", "latitude"), (-180, -90), (360, 90), points.T,
                                           strict=False):  # fmt: skip
        wrong = int(((at < least) | (at > most)).sum())
        if wrong:
            raise InputError(
                f"column {name!r} has no {what} within {least}..{most} in {wrong:,} of {len(at):,} rows; exchange ⟨x=⟩ "
                "and ⟨y=⟩ if they are exchanged, convert the coordinates to degrees, or remove these rows"
            )


def _column(kind: str, asked: Mapping[str, Any], frame: pl.DataFrame) -> str:
    """The column of the new records to look up, if none is named."""
    options = [asked.get("column"), *(("area", "id") if kind == "regions" else ())]
    found = next((name for name in options if name in frame.columns), None)
    if found is None:
        sought = " or ".join(repr(name) for name in options if name)
        there = ", ".join(map(repr, frame.columns[:10])) + (", and others" if len(frame.columns) > 10 else "")
        raise PolicyError(f"no column {sought} to look up in {kind}; say ⟨column=NAME⟩, one of theirs: {there}")
    return str(found)


def _texts(column: pl.Series) -> list[str | None]:
    """Values as a CSV shows them; empty texts and missing values stay different."""
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return column.cast(pl.String).to_list()
    return [None if v is None else str(v) for v in spelled(column, "csv")]


def _regions(content: pl.DataFrame) -> dict[Any, Any]:
    """Area -> region, without areas that are left out."""
    pairs = zip(_texts(content["area"]), _texts(content["region"]), strict=True)
    return {area: region for area, region in pairs if region != "*"}


def _zeros_back(areas: Sequence[str | None], column: pl.Series) -> tuple[pl.Series, int]:
    """The new names, spelled as the answer's if they differ only by leading zeros, and their number."""
    named = [None if text is None else text.strip() for text in _texts(column)]
    found = restored([a for a in areas if a is not None], [n for n in named if n])
    turned = {theirs: ours for ours, theirs in found.first.items()} | found.second
    if not turned:
        return column, 0
    return pl.Series(column.name, [turned.get(n or "", n) for n in named], dtype=pl.String), len(turned)


def _known(own: Mapping[Any, Any], column: pl.Series) -> list[Any]:
    """The group of each value: exact, or of a normalized value if this has a single group.

    Blanks around a text and empty texts are ignored; numbers are equal in every type.
    """
    number = column.dtype.is_numeric()
    loose: dict[Any, set[Any]] = {}
    for value, group in own.items():
        loose.setdefault(_plain(value, number), set()).add(group)
    out = []
    for value in _texts(column):
        near = loose.get(_plain(value, number), set())
        out.append(own[value] if value in own else next(iter(near)) if len(near) == 1 else None)
    return out


def _plain(text: str | None, number: bool) -> Any:
    bare = unicodedata.normalize("NFC", (text or "").strip()) or None
    if number and bare is not None and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", bare):
        return Fraction(bare)
    return bare


def _valued(content: pl.DataFrame, column: pl.Series, kind: str, name: str, notation: str | None = None) -> list[Any]:
    """The label of each value; for intervals also for values between two values of one interval.

    notation  of a column of texts that are dates or numbers
    """
    labels = content["group_label"].cast(pl.String).to_list()
    own = dict(zip(_texts(content["value"]), labels, strict=True))
    found = _known(own, column)
    if kind != "intervals" or content["value"].null_count() or not content.height:
        return found
    values, _, keys = in_order(content.select(pl.col("value").alias(name)), name, None, notation)
    read, zoned = reader_of(notation), _zoned(values[0])
    old = [_key(k, keys[0], _zoned(k)) for k in keys]
    names = [own[v] for v in _texts(pl.Series(values, dtype=content["value"].dtype))]
    between: dict[Any, Any] = {}
    for value in column.unique().to_list():
        key = _key(read(value) if read is not None and isinstance(value, str) else value, keys[0], zoned)
        i = -1 if key is None else bisect.bisect_right(old, key) - 1
        inside = i >= 0 and (old[i] == key or (i + 1 < len(old) and names[i] == names[i + 1]))
        between[value] = names[i] if inside else None
    return [between.get(v) if g is None else g for v, g in zip(column.to_list(), found, strict=True)]


def _zoned(value: Any) -> bool:
    """Whether a value is a moment with a time zone."""
    try:
        moment = datetime.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        return False
    return getattr(moment, "tzinfo", None) is not None


def _key(value: Any, like: Any, zoned: bool) -> Any:
    """A value that is comparable with another one: a number, moment, or text; None if they aren't comparable.

    zoned  whether moments must have a time zone, as those of the answer do
    """
    text = value.strip() if isinstance(value, str) else value
    try:
        if isinstance(like, (np.datetime64, datetime.date)):
            if not text or not isinstance(value, (str, np.datetime64, datetime.date)) or _zoned(value) != zoned:
                return None
            if zoned:
                text = datetime.datetime.fromisoformat(text) if isinstance(text, str) else text
                text = text.astimezone(datetime.UTC).replace(tzinfo=None)
            return np.datetime64(text, "us")
        if isinstance(like, str):
            return value if isinstance(value, str) else None
        if isinstance(value, bool) and not isinstance(like, bool):
            return None
        if isinstance(like, Number):
            return Fraction(text)  # exact, so that all types of numbers are comparable
        return value if type(value) is type(like) else None
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None


def _tiles(
    content: pl.DataFrame, asked: Mapping[str, Any], frame: pl.DataFrame, names: tuple[str, str, str | None]
) -> tuple[list[Any], pl.DataFrame, int]:
    """The tile of each point, the table with tiles instead of coordinates, and the number of points far away."""
    x, y, boundary = str(asked["x"]), str(asked["y"]), asked.get("boundary")
    kept = ["tile", *(f"{n}_{end}" for end in ("low", "high") for n in (x, y)), f"{x}_center", f"{y}_center"]
    sides = [boundary] if boundary else []
    own = content.select(*kept, *sides).with_columns(
        pl.col("tile").cast(pl.Int64), *(pl.col(n).cast(pl.Float64) for n in kept[1:])
    ).unique("tile", maintain_order=True)  # fmt: skip
    absent = next((n for n in names[:2] if n not in frame.columns), None)
    if absent is not None:
        refusal = PolicyError.unknown("column", absent, frame.columns)
        remedy = f"say ⟨{'xy'[names.index(absent)]}=NAME⟩, their column of it"
        raise PolicyError(f"in the new records, {refusal}; {remedy}")
    points = np.stack([numbers(frame, name, {}) for name in names[:2] if name is not None], axis=1)
    if asked.get("coordinates") == "geographic":
        _refuse_no_degrees(points, names)
    if boundary and names[2] not in frame.columns:
        raise PolicyError(f"the tiles keep to a boundary; say ⟨boundary=NAME⟩, the column that is {boundary!r} there")
    bounds, around = own.select(kept[1:5]).fill_null(np.nan).to_numpy(), asked.get("coordinates") == "geographic"
    label = locate(
        bounds, points, around=around,
        sides=(_texts(own[boundary]), _texts(frame[str(names[2])])) if boundary else None,
    )  # fmt: skip
    tile = own["tile"].to_numpy()[label]
    groups = [None if at < 0 else int(t) for at, t in zip(label.tolist(), tile.tolist(), strict=True)]
    given = [n for n in names if n is not None]
    shown = own.drop(sides).rename({f"{a}_{e}": f"{b}_{e}" for a, b in zip((x, y), given, strict=False) if a != b
                                    for e in ("low", "high", "center")})  # fmt: skip
    series = pl.Series("tile", groups, dtype=pl.Int64)
    return groups, replaced(frame, shown, series, (names[0], names[1])), _far(bounds, points, around)


def _clusters(
    content: pl.DataFrame,
    asked: Mapping[str, Any],
    frame: pl.DataFrame,
    held: Sources,
    decimal: Mapping[str, str] | None,
) -> tuple[list[Any], pl.DataFrame]:
    """The cluster of each record, and the table with the line of this cluster instead of the measured columns."""
    columns = [name for feature in asked["features"] for name in feature["columns"]]
    marks = {n: f["notation"] for f in asked["features"] if f.get("notation") in MARKS for n in f["columns"]}
    for name in columns:
        column_of(frame, name)
    theirs = marks if decimal is None else dict(decimal)
    refuse_notations({}, theirs)
    for name in theirs:
        if name not in columns:
            raise PolicyError.unknown("column of the distance", name, columns)
    own, new = (_measured(content, columns, marks, marks), _measured(frame, columns, theirs, {**marks, **theirs}))
    plain = [{k: v for k, v in f.items() if k != "notation" or v not in MARKS} for f in asked["features"]]
    asked = {**asked, "features": plain}
    features_asked(asked, held._replace(table=new))  # a message about a row counts the rows of the new records
    # together, so that both have the same codes of categories
    found = features_asked(asked, held._replace(table=pl.concat([own, new])))
    m, n = own.height, new.height
    radius = content["distance"].cast(pl.Float64).to_numpy()
    nearest = np.full(n, -1)
    for start in range(0, n if m else 0, max(1, _PAIRS // max(m, 1))):
        rows = np.arange(start, min(n, start + max(1, _PAIRS // m)))
        pairs = [
            (np.asarray(values)[m + np.repeat(rows, m)], np.asarray(values)[np.tile(np.arange(m), len(rows))])
            for values in found.values
        ]
        away = found.metric.between([a for a, _ in pairs], [b for _, b in pairs]).reshape(-1, m)
        away[away > radius * (1 + 1e-9) + 1e-12] = np.inf
        best = away.argmin(axis=1)
        nearest[rows] = np.where(np.isfinite(away[np.arange(len(rows)), best]), best, -1)
    number = content["cluster"].cast(pl.Int64)
    at = pl.Series([None if i < 0 else i for i in nearest.tolist()], dtype=pl.UInt32)
    labels = number.gather(at).alias("cluster")
    lines = content.with_columns(number).drop("records", *asked["sensitive"])
    return labels.to_list(), replaced(frame, lines, labels, columns)


_PAIRS = 2_000_000  # pairs of a record and a center that are measured at once


def _measured(
    table: pl.DataFrame, columns: Sequence[str], marks: Mapping[str, str], as_number: Mapping[str, str]
) -> pl.DataFrame:
    """The columns of the distance as texts, and as numbers those that have a decimal mark. marks: of this table."""
    return pl.DataFrame(
        pl.Series(n, numbers(table, n, marks)) if n in as_number else as_text(table[n]) for n in columns
    )


def _far(bounds: np.ndarray, points: np.ndarray, around: bool) -> int:
    """The number of points that are farther from all sides of the rectangles, on one axis, than these sides span.

    Arguments as for ``locate``. Longitudes start where the sides leave the widest gap.
    """
    beyond = np.zeros(len(points), np.bool_)
    for axis in (0, 1):
        sides, at = np.unique(bounds[:, [axis, axis + 2]]), points[:, axis]
        sides = sides[np.isfinite(sides)]
        if around and axis == 0 and sides.size:
            sides = np.unique(sides % 360)
            gaps = np.diff(sides, append=sides[0] + 360)
            start = sides[(int(gaps.argmax()) + 1) % sides.size]
            sides, at = np.sort((sides - start) % 360), (at - start) % 360
            at = np.where(at - 360 > sides[-1] - at, at - 360, at)  # to the nearer end of the sides
        if sides.size > 1:
            beyond |= np.maximum(sides[0] - at, at - sides[-1]) > sides[-1] - sides[0]
    return int(beyond.sum())


def locate(
    bounds: np.ndarray, points: np.ndarray, *, around: bool, sides: tuple[list[Any], list[Any]] | None = None
) -> np.ndarray:
    """The rectangle of each point, int64[n], -1 for none.

    bounds  float64[m, 4] x low, y low, x high, y high; NaN for an open end
    points  float64[n, 2]
    around  whether coordinates are degrees, so that a rectangle may cross 180 degrees
    sides   boundary values of the rectangles and of the points
    """
    found = np.full(len(points), -1)
    order = np.argsort(points[:, 1], kind="stable")
    height = points[order, 1]
    own, theirs = (None, None) if sides is None else (sides[0], np.array([s or "" for s in sides[1]], object))
    for i, (west, south, east, north) in enumerate(bounds.tolist()):
        low = 0 if np.isnan(south) else int(np.searchsorted(height, south, side="left"))
        high = len(points) if np.isnan(north) else int(np.searchsorted(height, north, side="left"))
        rows = order[low:high]
        at = points[rows, 0]
        if around and not np.isnan(west) and not np.isnan(east):
            inside = (at - west) % 360 < ((east - west) % 360 or 360.0)
        else:
            inside = ~(at < west) & ~(at >= east)
        if own is not None and theirs is not None:
            inside &= theirs[rows] == (own[i] or "")
        found[rows[inside]] = i
    return found


def _in_place(frame: pl.DataFrame, name: str, called: str, groups: list[Any]) -> pl.DataFrame:
    """The table with a column of groups instead of the column that was looked up."""
    if called in frame.columns and called != name:
        raise InputError(f"the table already has a column {called!r}, which its groups would be named; rename it")
    held = pl.Series(called, groups, dtype=pl.String)
    return pl.DataFrame([held if c.name == name else c for c in frame])
