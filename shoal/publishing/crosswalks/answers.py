"""Releases of answers to all problems other than tables, and repeated solutions for ``shoal.prove``.

The second part solves the problem of a certificate again, from the sources of the answer. Each function takes the
certificate file, the sources, the certificate, and the search settings. It returns, by the name of a finding, the
certified figures and the certificate of the second answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.features import FeatureColumns, Features, codes_of
from shoal.engines.geography import Geography, geography
from shoal.engines.prepared import coded_places, sensitive_notes
from shoal.engines.store import integers, numbers
from shoal.engines.unassigned import named_sensitive
from shoal.errors import InputError, PolicyError, ShoalError
from shoal.judge.crosswalk import spelled
from shoal.judge.file import read_release
from shoal.judge.places.areas import CENTERS, NAMED, NOWHERE
from shoal.model.arguments import Effort, keywords, suggesting
from shoal.model.certificate import Certificate
from shoal.model.conditions import (
    AREA_CONDITIONS,
    CELLULAR_CONDITIONS,
    GATHER_CONDITIONS,
    INTERVAL_CONDITIONS,
    LABEL_CONDITIONS,
    TILE_CONDITIONS,
    Condition,
)
from shoal.model.metric import Category, Metric, Number, Place, codes
from shoal.model.notation import of_days
from shoal.paths import OUTLINES, ends, kind_of
from shoal.problems.catalogue import CATALOGUE, resolved
from shoal.publishing.crosswalks.answer_figures import tally
from shoal.publishing.crosswalks.areas import as_merged, maxima, measures_distance
from shoal.publishing.crosswalks.crosswalk import Crosswalk
from shoal.publishing.crosswalks.grouped import as_split, in_order
from shoal.publishing.sources import Sources, like, opened
from shoal.watching import watched


@watched
@suggesting
def release(
    answer: Any,
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    read: Sequence[str | Path | None] = (),
    **how: Any,
) -> Crosswalk:
    """A release of an answer: written, verified on its bytes, and certified like a table.

    answer  the result of ``shoal.labels.cover``, ``shoal.intervals.cut``, ``shoal.regions.merge`` or ``nested``,
            ``shoal.tiles.split``, ``shoal.gathering.gather``, or ``shoal.gathering.cellular``
    data    the data of the answer: a path, or a pandas, Polars, PyArrow, DuckDB, or Spark frame
    how     labels: label=column, count=column of records (without it, each row is one record), naming="ends",
            "largest", or "numbers", or your own names=[...]; intervals: value=column, count=, names=,
            dates={column: notation}, decimal={column: mark}; regions: weight=column or columns, edges=pairs of row
            numbers (a Geography has its own), id=column, and the columns of the request: boundary=, fixed=, apart=,
            sensitive=, l=, ...; tiles: x=column, y=column, weight=column, decimal=; clusters: columns=[...] in the
            order of the features, place=(latitude, longitude), coordinates={column: file}, hierarchies={column: file},
            dates=, decimal=, sensitive=[...], center="record", "mean", or "medoid"; for the assignments keep_order=,
            secret=
    separator, encoding  of data in a CSV; detected if None
    read    files from which the data came, which are never overwritten; if data is a path, it is one of them

    Returns a ``Crosswalk``: ``.table``, ``.certificate``, ``.write(path)``, ``.report(path)``, ``.plot(path)``,
    ``.map(path)``; for clusters also ``.assignments``, ``.geojson(path)``, and frames of the kind that you passed.

    Raises InputError if the answer does not belong to the data, PolicyError for an answer that must not be published.
    O(n log n) for n rows.

    Examples:
        >>> import polars as pl
        >>> import shoal
        >>> frame = pl.DataFrame({"name": ["Adams", "Baker", "Clark"], "people": [3, 2, 4]})
        >>> out = shoal.release(shoal.labels.cover(frame["people"], k=4), frame, label="name", count="people")
        >>> out.facts["smallest_group"]
        4
    """
    problem = next((p for p in CATALOGUE.values() if p.answered(answer)), None)
    if problem is None:
        raise InputError(
            f"a {type(answer).__name__} is no answer of a problem; tables of categories are released by shoal.anonymize"
        )
    make = resolved(problem.release)
    _refuse_arguments(make, how)
    from_path = [data] if isinstance(data, (str, Path)) else []
    files = tuple(p for p in (*from_path, *read) if p is not None)
    frame = data if isinstance(data, Geography) else opened(data, separator, encoding)
    made = _noted(make(answer, frame, files, **how))
    return replace(made, native=partial(like, data)) if problem.native else made


def _refuse_arguments(make: Callable[..., Crosswalk], how: Mapping[str, Any]) -> None:
    """PolicyError for an argument that the maker of a crosswalk doesn't accept, or for a missing one."""
    name, takes = make.__name__, signature(make).parameters.values()
    own = {p.name: p for p in takes if p.kind == p.KEYWORD_ONLY}
    # with ``**kwargs``, the maker checks names itself
    if not any(p.kind == p.VAR_KEYWORD for p in takes):
        keywords(f"argument of a release of {name}", how, own)
    lacking = [n for n, p in own.items() if p.default is p.empty and n not in how]
    if lacking:
        raise PolicyError(f"a release of {name} needs the names of columns: {', '.join(f'⟨{n}=...⟩' for n in lacking)}")


def _noted(made: Crosswalk) -> Crosswalk:
    """A crosswalk with warnings about its sensitive values and places."""
    given, table = made.parameters.get("sensitive") or (), made.sources.table
    if table is None:
        return made
    named = [given] if isinstance(given, str) else list(given)
    sentences = [*(note.removeprefix("warning: ") for note in named_sensitive(named)), *sensitive_notes(table, named)]
    for feature in made.parameters.get("features", ()):
        if feature["kind"] == "place" and feature["geometry"] == "great-circle":
            marks = dict.fromkeys(feature["columns"], feature["notation"]) if "notation" in feature else {}
            latitude, longitude = (numbers(table, name, marks) for name in feature["columns"])
            sentences += coded_places(np.column_stack([longitude, latitude]))
    return replace(made, warnings=(*made.warnings, *sentences))


SAME = "same"
Pairs = dict[str, tuple[Certificate, Certificate]]  # finding -> what is certified, what was found again


How = dict[str, Any]  # method, effort, seed: settings of a search as keyword arguments


def solved_again(path: Path, record: Mapping[str, Any], sources: Sources, effort: str | float) -> Pairs:
    """The second answer to any problem; InputError if the certificate doesn't contain the whole request.

    path    the crosswalk, or another output if the crosswalk isn't written
    effort  of the search, or "same": the method, effort, and seed of the first answer
    """
    hard = None if effort == SAME else Effort.of(effort)
    how = _as_made(record) if hard is None else {"effort": hard.recorded}
    stated = Certificate.from_dict(record["certificate"])
    try:
        return ASKED[record["kind"]](path, record, sources, stated, how)
    except ShoalError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError):
        raise InputError("the certificate file does not hold the whole question, so it cannot be put again") from None


def _as_made(record: Mapping[str, Any]) -> How:
    """The method, effort, and seed of the first answer."""
    how = record["certificate"]["details"].get("run", {} if record["kind"] == "intervals" else None)
    if not isinstance(how, Mapping):
        raise InputError("the certificate file does not say how the answer was made; name an effort")
    return dict(how)


def _read(how: How, **read: bool) -> How:
    """The settings without those that nothing reads, which older certificates state too. read: whether it is read"""
    return {name: value for name, value in how.items() if read.get(name, True)}


def _frame(sources: Sources) -> pl.DataFrame:
    assert sources.table is not None
    return sources.table


def _labels(_path: Path, record: Mapping[str, Any], sources: Sources, stated: Certificate, how: How) -> Pairs:
    from shoal.problems.labels import cover
    from shoal.problems.labels.covering import ORDERED

    asked, ordered = record["parameters"], how.get("method") in ORDERED
    how = _read(how, order=ordered, seed=ordered and how.get("order") == "random")
    counts = tally(_frame(sources), asked["column"], asked["count"])[1]
    return {"bound": (stated, cover(counts, **_plain(asked, LABEL_CONDITIONS), **how).certificate)}


def _intervals(_path: Path, record: Mapping[str, Any], sources: Sources, stated: Certificate, _how: How) -> Pairs:
    from shoal.problems.intervals import cut

    asked = record["parameters"]
    _, counts, ordered = in_order(_frame(sources), asked["column"], asked["count"], asked.get("notation"))
    return {"bound": (stated, cut(ordered, counts, **_plain(asked, INTERVAL_CONDITIONS)).certificate)}


def _plain(asked: Mapping[str, Any], table: Mapping[str, Condition]) -> dict[str, Any]:
    """The conditions of a certificate that name no column, as keyword arguments of the function that solves the
    problem."""
    stated = _stated(asked, table)
    return {entry.keyword: stated[entry.key] for entry in table.values() if not entry.names_columns}


def _stated(asked: Mapping[str, Any], table: Mapping[str, Condition]) -> dict[str, Any]:
    """The conditions that a certificate states; KeyError if it lacks one that every certificate has."""
    always = {entry.key: asked[entry.key] for entry in table.values() if entry.setting.stated == "always"}
    return {entry.key: asked.get(entry.key) for entry in table.values()} | always


def _tiles(_path: Path, record: Mapping[str, Any], sources: Sources, stated: Certificate, how: How) -> Pairs:
    from shoal.problems.tiles import split

    asked, frame = record["parameters"], _frame(sources)
    places = np.stack([numbers(frame, asked["x"]), numbers(frame, asked["y"])], axis=1)
    if record["facts"]["codes_left_out"]:
        kept = ~codes(places, asked["coordinates"] == "geographic")
        frame, places = frame.filter(kept), places[kept]
    weights = None if asked["weight"] is None else np.array(integers(frame, asked["weight"]))
    how = _read(how, rule=how.get("method") == "kd_tree")
    more = {
        "objective": asked["objective"],
        "coordinates": asked["coordinates"],
        **as_split(_stated(asked, TILE_CONDITIONS), frame),
    }
    return {"bound": (stated, split(places, asked["k"], weights, **how, **more).certificate)}


def _clusters(_path: Path, record: Mapping[str, Any], sources: Sources, stated: Certificate, how: How) -> Pairs:
    from shoal.problems.gathering import cellular, gather

    asked = record["parameters"]
    if asked["eligible"] or asked.get("setup_cost") == "per record":
        what = "a condition of the caller's own" if asked["eligible"] else "a set-up cost for each record"
        raise InputError(f"these clusters keep {what}, which the certificate does not hold; it cannot be asked again")
    features = features_asked(asked, sources)
    farthest = record["kind"] == "gather"
    same = _plain(asked, GATHER_CONDITIONS if farthest else CELLULAR_CONDITIONS) | {"metric": features.metric}
    if max([1, *asked["l"], *asked["distinct_l"]]) > 1:
        same["sensitive"] = codes_of(_frame(sources), asked["sensitive"])
    else:
        same |= {"sensitive": None, "l": None, "distinct_l": None}
    if farthest:
        same["centers"] = stated.details["centers"]
        searched = same["centers"] == "points" and same["sensitive"] is None and how.get("method") != "exact"
        # to be asked with seconds: they alone don't go on
        same["improve"] = searched and "method" not in how and not isinstance(how["effort"], str)
        how = _read(how, improve=searched)
    again = (gather if farthest else cellular)(tuple(features.values), **{**same, **how})
    found = again.certificate
    if found.details.get("cap_met") is False:  # an answer that is too wide refutes nothing
        found = replace(found, cost=max(found.cost, stated.lower_bound))
    return {"bound": (stated, found)}


def features_asked(asked: Mapping[str, Any], sources: Sources) -> Features:
    """The metric of the certificate on the table's columns."""
    made: list[Any] = []
    for feature in asked["features"]:
        name, kind = feature["name"], feature["kind"]
        if kind == "category":
            if feature["levels"] > 1 and name not in sources.trees:
                raise InputError(
                    f"distances of column {name!r} go by a hierarchy; name it, or put its file next to the release"
                )
            made.append(Category(name, values=1, weight=feature["weight"]))
            continue
        scale = {"scale": feature["scale"], "weight": feature["weight"], "unit": feature["unit"]}
        if kind == "coded place" and feature["columns"][0] not in sources.places:
            raise InputError(f"column {name!r} names places; pass the file of its coordinates after the table")
        if "place" in kind:
            made.append(Place(name, geometry=feature["geometry"], **scale))
        else:
            made.append(Number(name, date=kind == "date", period=feature.get("period", 0.0), **scale))
    notations = {name: f["notation"] for f in asked["features"] if "notation" in f for name in f["columns"]}
    columns = FeatureColumns(
        asked["columns"],
        place=asked["place"],
        hierarchies=sources.trees,
        coordinates=sources.places,
        dates={n: m for n, m in notations.items() if of_days(m)},
        decimal={n: m for n, m in notations.items() if not of_days(m)},
    )
    metric = Metric(features=tuple(made), norm=asked["norm"], unit=asked["unit"])
    return Features.again(_frame(sources), metric, columns)


def _regions(path: Path, record: Mapping[str, Any], sources: Sources, stated: Certificate, how: How) -> Pairs:
    """Each level separately, for the areas that the crosswalk keeps; higher levels merge the regions below."""
    from shoal.problems.regions import merge
    from shoal.problems.regions.merge import above, with_water

    asked, given = record["parameters"], _given(sources)
    part = ends(path, OUTLINES)
    shown = pl.DataFrame() if part else read_release(path, record["separator"])
    if "region" not in shown.columns:
        raise InputError("the crosswalk says which areas are kept; name that file to repeat the request")
    rows = {name: i for i, name in enumerate(spelled(shown["area"], kind_of(path)))}
    order = [rows[name] for name in given.ids]
    held = [[spelled(shown[c], kind_of(path))[i] for i in order] for c in _columns(shown.columns)]
    edges, found = given.edges, {}
    own = _asked_of_areas(asked, given, sources) | how
    levels = [asked, *asked.get("levels", ())]
    wet, below = own["water"], np.zeros(0, np.int64)
    place = {name: i for i, name in enumerate(given.ids)}
    weights = np.column_stack([given.whole(name) for name in asked["weight"]])
    facts = [None, *record["facts"].get("levels", ())]
    for i, (level, fact) in enumerate(zip(levels, facts, strict=True)):
        paid = stated if fact is None else Certificate(
            cost=fact["cost"], lower_bound=fact["cost_at_least"], unit=fact["unit"]
        )  # fmt: skip
        edges = np.concatenate([edges, np.array([[place[a], place[b]] for a, b in level["joined"]]).reshape(-1, 2)])
        out = np.array([name == NOWHERE for name in held[i]])
        now = own | {"regions": level["regions"], "at_most": maxima(level["at_most"], given) or None}
        now = above(now, below, wet) if i else now
        if out.any():
            now["exclude"] = out if now.get("exclude") is None else out | now["exclude"]
        again = merge(edges.astype(np.int64), weights, level["k"], unit=paid.unit.removeprefix("squared "), **now)
        if i and wet is not None:
            again = with_water(again, below, wet)
        below = np.where(out, -1, np.unique([str(name) for name in held[i]], return_inverse=True)[1])
        found["bound" if fact is None else f"level {i + 1} bound"] = (paid, again.certificate)
    return found


def _columns(names: list[str]) -> list[str]:
    """The columns with names of regions, the finest first."""
    return ["region", *(name for name in names if name.removeprefix("region").isdigit())]


def _given(sources: Sources) -> Geography:
    table, pairs = _frame(sources), sources.pairs
    assert pairs is not None
    return geography(table[NAMED], pairs.iter_rows(), {name: table[name].to_list() for name in table.columns})


def _asked_of_areas(asked: Mapping[str, Any], given: Geography, sources: Sources) -> dict[str, Any]:
    """The conditions on regions at every level, as arguments of ``merge``."""
    table, wanted = _frame(sources), asked["objective"].split(",")
    places = None
    if measures_distance(wanted, asked):
        places = table.select(CENTERS).to_numpy() if CENTERS[0] in table.columns else given.centers()
    return as_merged(_stated(asked, AREA_CONDITIONS), given) | {
        "objective": wanted[0] if len(wanted) == 1 else wanted, "geographic": asked["geographic"],
        "coordinates": None if places is None else np.nan_to_num(places),
    }  # fmt: skip


ASKED: dict[str, Callable[..., Pairs]] = {
    "labels": _labels, "intervals": _intervals, "regions": _regions, "tiles": _tiles,
    "gather": _clusters, "cellular": _clusters,
}  # fmt: skip
