"""Releases of clusters: a row for each cluster with its center, and optionally a row for each record; or a table in
which every row shows its cluster's center (``by_centers``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import SHARED, check_outputs, publish_file
from shoal.engines.features import FeatureColumns, Features
from shoal.engines.order import ShuffleKey, shuffled
from shoal.engines.store import column
from shoal.engines.table import Counted
from shoal.errors import InputError, PolicyError, Sentence
from shoal.model.certificate import Certificate, digest
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Partition
from shoal.model.metric import Category, Feature, Metric, Number, Place
from shoal.model.notation import reader_of, writer_of
from shoal.model.policy import Policy
from shoal.model.privacy import Requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.model.task import Grouping
from shoal.paths import CIRCLES, MAP, PICTURE
from shoal.publishing.crosswalks.centers import Center, Centers, publish, texts
from shoal.publishing.crosswalks.crosswalk import KEPT, Crosswalk, Drawing, GroupedRecords
from shoal.publishing.recodings import ColumnText
from shoal.publishing.sources import Sources, opened

ADDED = ("cluster", "records", "radius", "distance")
REAL = Sentence(
    "each center is the unchanged row of a real person or thing; ⟨center='mean'⟩ publishes averages instead"
)


def clusters(
    answer: Any,
    frame: pl.DataFrame,
    read: tuple[str | Path, ...],
    *,
    columns: Sequence[str] | None = None,
    place: tuple[str, str] | None = None,
    coordinates: Mapping[str, Any] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    dates: Mapping[str, str] | None = None,
    decimal: Mapping[str, str] | None = None,
    sensitive: Sequence[str] = (),
    center: str = "record",
    keep_order: bool = False,
    secret: bytes | str | Path | None = None,
) -> Crosswalk:
    """A crosswalk of a ``Gathering`` of the records in a frame, one row each."""
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    trees = {name: Hierarchy.of(tree) for name, tree in (hierarchies or {}).items()}
    tables = {name: opened(table) for name, table in (coordinates or {}).items()}
    more = FeatureColumns(hierarchies=trees, coordinates=tables, dates=dates or {}, decimal=decimal or {})
    request = _feature_columns(answer, frame, columns, place, names, more)
    request.check()
    _check(answer, frame, request, names)
    features = _belongs(answer, frame, request)
    if tables and center == "mean":
        raise PolicyError("the mean of places is no code; publish ⟨center='record'⟩ or 'medoid'")
    held = {name: _plain_texts(frame, name) for name in names}
    texts_of = {name: own.to_list() for name, own in held.items()}
    form = publish(answer.labels, answer.center_rows, features.metric, features.values, texts_of, center)
    form, labels = _in_order(form, answer.labels, features)
    content = _content(form, features, frame, request.notations)
    parameters = _parameters(answer, request, features, names) | {
        "hierarchies": {n: {"source": _source(hierarchies, n), "sha256": digest(tree)} for n, tree in trees.items()},
        "center": center,
    }
    title, note = f"{answer.clusters:,} clusters of at least {answer.details['r']:,} records", _note(answer)
    needed = list(dict.fromkeys([*request.columns, *(request.place or ()), *names]))
    return Crosswalk(
        kind=answer.details["problem"],
        content=content,
        certificate=answer.certificate,
        method=answer.method,
        parameters=parameters,
        facts=_facts(answer, form, center),
        sources=Sources(frame.select(needed), trees=trees, places=tables),
        read=read,
        title=title,
        note=note,
        warnings=(REAL,) if center == "record" and answer.clusters else (),
        groups=form.records.tolist(),
        rows=_rows(labels, content.drop("records", *names), held, keep_order, secret),
        picture=_picture(form, features, title),
        drawn_map=_map(form, features, title),
        outlines=_outlines(form, content),
    )


def _check(answer: Any, frame: pl.DataFrame, request: FeatureColumns, sensitive: Sequence[str]) -> None:
    """Check that every column exists and is named once, and that all sensitive columns of the answer's conditions are
    named."""
    names = [*request.columns, *(request.place or ()), *sensitive]
    distinct_names(names)
    for name in names:
        column(frame, name)
    wanted = len(answer.details["l"])
    if wanted > len(sensitive):
        raise PolicyError(
            f"the answer keeps a condition on {wanted} columns of sensitive values; name them with ⟨sensitive=⟩"
        )


def _parameters(answer: Any, request: FeatureColumns, features: Features, sensitive: Sequence[str]) -> dict[str, Any]:
    """The request, and the features from which the judge measures distances again."""
    asked = dict(answer.details)
    described = zip(features.metric.features, features.names, features.codes, strict=True)
    rest = [1] * (len(sensitive) - len(asked["l"]))
    return {
        **asked,
        "columns": list(request.columns),
        "place": None if request.place is None else list(request.place),
        "features": [_described(feature, names, bool(codes), request.notations) for feature, names, codes in described],
        "norm": features.metric.norm,
        "unit": features.metric.unit,
        "sensitive": list(sensitive),
        "l": [*asked["l"], *rest],
        "distinct_l": [*asked["distinct_l"], *rest],
    }


def _rows(
    labels: np.ndarray,
    lines: pl.DataFrame,
    held: Mapping[str, pl.Series],
    keep_order: bool,
    secret: bytes | str | Path | None,
) -> GroupedRecords:
    """A row for each kept record: its cluster's row and its own sensitive values, and nothing else of the record."""
    kept = np.flatnonzero(labels >= 0)
    own = pl.DataFrame([pl.Series(name, texts)[kept] for name, texts in held.items()])
    rows = pl.concat([lines[labels[kept]], own], how="horizontal")
    shuffle_key = ShuffleKey.unless_kept(secret, keep_order)
    if shuffle_key is None:
        return GroupedRecords(rows, KEPT)
    return GroupedRecords(rows[shuffled(rows.get_columns(), shuffle_key)], shuffle_key.words)


def _feature_columns(
    answer: Any, frame: pl.DataFrame, columns: Sequence[str] | None, place: tuple[str, str] | None,
    sensitive: Sequence[str], more: FeatureColumns,
) -> FeatureColumns:  # fmt: skip
    """The columns of the features: as named, otherwise by the features' names, otherwise all in order if their number
    fits."""
    features = answer.metric.features
    if not features:
        raise PolicyError("centers are published column by column; a matrix or a function of distances has no columns")
    if columns is None and place is None:
        named = [f.name for f in features]
        others = [c for c in frame.columns if c not in sensitive]
        wide = [2 if isinstance(f, Place) and f.name not in more.coordinates else 1 for f in features]
        if all(n in frame.columns for n in named) and sum(wide) == len(wide):
            columns = named
        elif sum(wide) == len(others) and wide.count(2) <= 1:
            at = sum(wide[: wide.index(2)]) if 2 in wide else len(others)
            place = (others[at], others[at + 1]) if 2 in wide else None
            columns = [*others[:at], *others[at + 2 :]]
        else:
            raise PolicyError(
                "say which columns were clustered: ⟨columns=[...]⟩, for coordinates ⟨place=(first, second)⟩"
            )
    names = [columns] if isinstance(columns, str) else list(columns or ())
    pair = None if place is None else (str(place[0]), str(place[1]))
    return replace(more, columns=names, place=pair)


def _belongs(answer: Any, frame: pl.DataFrame, request: FeatureColumns) -> Features:
    """The features of the frame; InputError unless the answer's radii are those of the frame's records."""
    if len(answer.labels) != frame.height:
        raise InputError(
            f"the answer clusters {len(answer.labels):,} records, the data have {frame.height:,}; pass what was "
            "clustered, row by row"
        )
    features = Features.again(frame, answer.metric, request)
    member = np.flatnonzero(answer.labels >= 0)
    own = answer.center_rows[answer.labels[member]]
    if answer.clusters and (own >= 0).all():
        sides = [[np.asarray(x)[rows] for x in features.values] for rows in (member, own)]
        far = np.zeros(answer.clusters)
        np.maximum.at(far, answer.labels[member], features.metric.between(*sides))
        if not np.allclose(far, answer.radii, rtol=1e-6, atol=1e-6 * max(answer.radius, 1e-9)):
            raise InputError(
                "the answer does not belong to these columns: its clusters are wider or narrower here; pass what "
                "was clustered, row by row, and its columns in their order"
            )
    return features


def distinct_names(names: Sequence[str]) -> None:
    """PolicyError for a column that is named twice, or that has the name of an added column."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise PolicyError(f"column {name!r} is named twice among columns, coordinates and sensitive ones")
        if name in ADDED:
            raise PolicyError(f"column {name!r} has the name of one that is added; rename it")


def _plain_texts(frame: pl.DataFrame, name: str) -> pl.Series:
    held = frame[name]
    if held.dtype.is_nested() or held.dtype in (pl.Object, pl.Binary):
        raise InputError(f"column {name!r} holds {held.dtype}, which has no text; leave it out or make it text")
    return held.cast(pl.String)


def _in_order(form: Centers, labels: np.ndarray, features: Features) -> tuple[Centers, np.ndarray]:
    """Clusters renumbered by their centers, so that the numbers don't reveal the original order of rows."""
    keys: list[np.ndarray] = [form.distance, -form.records]
    for center, values in zip(reversed(form.centers), reversed(features.texts), strict=True):
        if center.value.ndim == 2:
            keys += [center.value[:, 1], center.value[:, 0]]
        elif values:
            rank = np.argsort(np.argsort(np.array([v or "" for v in values]), kind="stable"))
            keys.append(rank[center.value])
        else:
            keys.append(center.value)
    multisets = [form.multisets(name) for name in form.sensitive]
    keys = [np.array(t) for t in reversed(multisets)] + keys
    order = np.lexsort(keys) if form.records.size else np.zeros(0, np.int64)
    number = np.argsort(order)
    return Centers(
        tuple(Center(c.feature, c.value[order], c.spread[order]) for c in form.centers),
        form.records[order],
        [form.radius[i] for i in order.tolist()],
        form.distance[order],
        {name: [held[i] for i in order.tolist()] for name, held in form.sensitive.items()},
    ), np.where(labels >= 0, number[labels] if number.size else labels, -1)


def _content(form: Centers, features: Features, frame: pl.DataFrame, notations: Mapping[str, str]) -> pl.DataFrame:
    """A row for each cluster. Numbers and dates keep their types, and notations are kept."""
    out: dict[str, Any] = {"cluster": np.arange(form.records.size)}
    shown: Sequence[Sequence[Any]]
    for center, names, values, codes in zip(form.centers, features.names, features.texts, features.codes, strict=True):
        shown = [[codes[x, y] for x, y in center.value.tolist()]] if codes else texts(center, values)
        for name, one in zip(names, shown, strict=True):
            if name in notations:
                write = writer_of(frame[name].cast(pl.String).unique().to_list(), notations[name])
                out[name] = pl.Series(name, [write(text) for text in one], dtype=pl.String)
                continue
            out[name] = _typed(pl.Series(name, one, dtype=pl.String), frame[name].dtype, center.feature, bool(codes))
    out |= {"records": form.records, "radius": pl.Series(form.radius, dtype=pl.String), "distance": form.distance}
    return pl.DataFrame(out | {name: pl.Series(form.multisets(name), dtype=pl.String) for name in form.sensitive})


def _typed(shown: pl.Series, kind: pl.DataType, feature: Any, coded: bool) -> pl.Series:
    if coded or isinstance(feature, Category) or kind == pl.String:
        return shown
    if isinstance(feature, Number) and feature.date:
        return shown.str.to_date("%Y-%m-%d")
    numbers = shown.cast(pl.Float64)
    whole = bool((numbers == numbers.floor()).all()) and bool((numbers.abs() < 2.0**53).all())
    return numbers.cast(pl.Int64) if whole and kind.is_integer() else numbers


def _described(feature: Any, names: tuple[str, ...], coded: bool, notations: Mapping[str, str]) -> dict[str, Any]:
    """The description of a feature from which the judge reads it again."""
    record = {"columns": list(names), "name": feature.name, "weight": feature.weight}
    if isinstance(feature, Category):
        return {**record, "kind": "category", "levels": feature.depth - 1}
    record |= {"scale": feature.scale, "unit": feature.unit}
    record |= {"notation": notations[names[0]]} if names[0] in notations else {}
    if isinstance(feature, Place):
        return {**record, "kind": "coded place" if coded else "place", "geometry": feature.geometry}
    record |= {"period": feature.period} if feature.period else {}
    return {**record, "kind": "date" if feature.date else "number"}


def _source(given: Mapping[str, Any] | None, name: str) -> str:
    """A hierarchy as the name of its file, or as its builder."""
    source = (given or {})[name]
    return Path(source).name if isinstance(source, Path) or (isinstance(source, str) and Path(source).exists()) else (
        source if isinstance(source, str) else "given"
    )  # fmt: skip


def _facts(answer: Any, form: Centers, center: str) -> dict[str, Any]:
    points, left_out = len(answer.labels), answer.left_out
    shown = answer.center_rows[answer.center_rows >= 0]
    sizes = form.records.tolist()
    return {
        "rows": len(sizes), "points": points, "records": points - left_out, "left_out": left_out,
        "may_be_left_out": int(answer.certificate.details["may_be_left_out"]), "groups": len(sizes),
        "smallest_group": min(sizes, default=0), "largest_group": max(sizes, default=0),
        "radius": float(form.distance.max(initial=0.0)),
        "centers_replaced": int((answer.labels[shown] < 0).sum()) if center == "record" else len(sizes),
    }  # fmt: skip


def _widest(form: Centers, unit: str) -> str:
    """A note for pictures of a release, which shows no more than the release."""
    return f"largest radius {form.distance.max(initial=0.0):.4g} {unit}"


def _note(answer: Any) -> str:
    """A note for the owner of the table, with the bound."""
    unit = answer.metric.unit
    proof = answer.certificate
    low = f"no answer below {proof.lower_bound:.4g}"
    if proof.unit == unit:
        return f"largest radius {answer.radius:.4g} {unit}, {low}; mean distance {answer.mean_distance:.4g}"
    wide = f"largest radius {answer.radius:.4g} {unit}, mean distance {answer.mean_distance:.4g}"
    return f"cost {answer.cost:.4g}, {low}; {wide}"


def _picture(form: Centers, features: Features, title: str) -> Drawing:
    def fill(path: Path) -> None:
        from shoal.report.clusters import draw_clusters

        unit = features.metric.unit
        draw_clusters(path, form, form.distance, unit, title=title, note=_widest(form, unit), texts=features.texts)

    return Drawing(form=PICTURE, fill=fill)


def _place_of(form: Centers) -> Center | None:
    return next((c for c in form.centers if isinstance(c.feature, Place)), None)


def _map(form: Centers, features: Features, title: str) -> Drawing | None:
    place = _place_of(form)
    if place is None or not form.records.size:
        return None

    def fill(path: Path) -> None:
        from shoal.report.clusters import draw_circles

        geographic = place.feature.geometry == "great-circle"  # type: ignore[union-attr]
        captions = [f"{n:,} records, {words}" for n, words in zip(form.records.tolist(), form.radius, strict=True)]
        note = _widest(form, features.metric.unit)
        draw_circles(path, place.value, place.spread, captions, geographic=geographic, title=title, note=note)

    return Drawing(form=MAP, fill=fill)


def _outlines(form: Centers, content: pl.DataFrame) -> Drawing | None:
    place = _place_of(form)
    if place is None:
        return None

    def fill(path: Path) -> None:
        from shoal.report.clusters import geojson

        geographic = place.feature.geometry == "great-circle"  # type: ignore[union-attr]
        own = content.with_columns(pl.col(pl.Date).cast(pl.String)).to_dicts()
        path.write_text(geojson(place.value, place.spread, own, geographic=geographic), encoding="utf-8")

    return Drawing(form=CIRCLES, fill=fill)


Trial = tuple[int, float, float, float, float]  # r, epsilon, cost, lower bound, mean distance


def choices(
    path: str | Path, solve: Callable[[int, float], Any], records: int, r: int, epsilon: float = 0.0,
    read: Sequence[str | Path] = (),
) -> None:  # fmt: skip
    """Write a picture of the costs for other r and epsilon near the requested ones. It is private, so only its owner
    may read it.

    solve    gives the answer for an r and an epsilon
    records  number of records of the table: no larger r is tried
    read     the files from which it is made; it replaces none of them, and has the same readers at most
    """
    from shoal.report.clusters import draw_choices

    trials: list[Trial] = []
    unit = cost_unit = ""
    for least in sorted({max(2, r // 2), r, 2 * r, 4 * r}):
        for share in sorted({0.0, 0.01, 0.05, epsilon}):
            if least <= records:
                found = solve(least, share)
                unit, cost_unit = found.metric.unit, found.certificate.unit
                trials.append((least, share, found.cost, found.certificate.lower_bound, found.mean_distance))
    path = Path(path)
    closed = check_outputs([(path, PICTURE)], read)
    publish_file(path, lambda to: draw_choices(to, trials, unit, cost_unit), closed=closed | SHARED)


def metric_of(
    asked: Policy, counted: Counted, texts: list[list[str | None]], cell: np.ndarray
) -> tuple[Metric, list[np.ndarray]]:
    """A Metric over the quasi-identifiers, and for each a position or code for the row of every ``cell``.

    Numbers and dates are scaled to a span of 1. Other values have distance 1, or the distance of their hierarchy.
    """
    features: list[Feature] = []
    columns: list[np.ndarray] = []
    for j, (quasi, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        codes = counted.histogram.quasi[cell, j]
        weight = float(asked.weights.get(quasi.name, 1.0))
        position = None if quasi.name in asked.hierarchies else quasi.positions()
        if position is not None:
            span = float(position[-1] - position[0])
            features.append(Number(quasi.name, scale=max(span, 1e-12), weight=weight))
            columns.append(position[codes] if span else np.zeros(len(codes)))
            continue
        levels = None
        if quasi.name in asked.hierarchies:
            tree = Hierarchy.of(asked.hierarchies[quasi.name])
            levels = tree.resolve(values, quasi.name, reader_of(quasi.notation)).node.T
        features.append(Category(quasi.name, values=max(quasi.size, 1), weight=weight, levels=levels))
        columns.append(codes.astype(np.int64))
    return Metric(features=tuple(features)), columns


def _other_models(need: Requirement, counted: Counted) -> Callable[..., bool] | None:
    """A test of the models that shares and numbers of values don't express, from a cluster's counts by column."""
    if not need.rules:
        return None
    wanted = list(need.sensitive_columns)
    for rule in need.rules:
        if rule.model.applies_to == "tuples":
            raise PolicyError(
                f"⟨publish='centers'⟩ cannot keep {rule.model.name}; publish stars, ranges or a hierarchy"
            )
    present = [np.unique(counted.histogram.sensitive[:, j]) for j in wanted]

    def holds(*counts: np.ndarray) -> bool:
        for rule in need.rules:
            at = wanted.index(rule.columns[0])
            full = np.zeros(len(rule.table), np.int64)
            full[present[at][: counts[at].size]] = counts[at]
            if not rule.model.holds(full, np.array(rule.table)):
                return False
        return True

    return holds


def by_centers(
    asked: Policy, counted: Counted, texts: list[list[str | None]], need: Requirement
) -> tuple[Grouping, Recoding, list[ColumnText]]:
    """Cluster the rows into diverse clusters of at least ``need.k``, and publish each cluster's center record.

    The certificate counts the largest radius. The recoding is that of ranges and sets, only for the loss measures.
    """
    from shoal.problems.gathering import gather

    if asked.method not in ("auto", "local", "disjoint", "threshold"):
        raise PolicyError.unknown("method for ⟨publish='centers'⟩", asked.method, ["local", "disjoint", "threshold"])
    histogram = counted.histogram
    loss = Recoding(tuple(Ranges.of_column(c.size, c.positions, 1.0) for c in counted.quasi))
    # rows of a cell have the same position on every engine
    cell = np.repeat(np.arange(histogram.cells), histogram.count)
    metric, columns = metric_of(asked, counted, texts, cell)
    if not histogram.rows:
        nothing = Partition.of(*(np.zeros(0, np.int64),) * 3)
        empty = Grouping(nothing, Certificate(cost=0.0, lower_bound=0.0, unit="distance"), "gather")
        none = np.zeros(0, np.int64)
        return empty, loss, [ColumnText(c.name, [], none, none, none.astype(bool), none) for c in counted.quasi]
    wanted = list(need.sensitive_columns)
    found = gather(
        tuple(columns),
        r=max(need.smallest, 1),
        metric=metric,
        method=asked.method,
        effort=asked.effort,
        sensitive=histogram.sensitive[cell][:, wanted] if wanted else None,
        l=[need.frequency[j] for j in wanted] if wanted else None,
        distinct_l=[need.distinct[j] for j in wanted] if wanted else None,
        eligible=_other_models(need, counted),
    )
    partition = Partition.of(cell, found.labels, np.ones(found.labels.size, np.int64))
    out: list[ColumnText] = []
    for j, (quasi, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        code = histogram.quasi[cell[found.center_rows], j].astype(np.int64)
        mine = histogram.quasi[partition.cell, j]
        same = np.minimum.reduceat(mine == code[partition.group], partition.start)
        key = code * 2 + same
        distinct, index = np.unique(key, return_inverse=True)
        shown = [values[int(k) // 2] for k in distinct]
        plain = np.where(distinct % 2 == 1, distinct // 2, -1)
        stars = np.zeros(len(shown), bool)
        out.append(ColumnText(quasi.name, shown, index.reshape(-1), plain, stars, distinct // 2))
    return Grouping(partition, found.certificate, found.method), loss, out
