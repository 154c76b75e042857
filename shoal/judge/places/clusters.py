"""The judge of clusters: reads centers, counts, radii, and sensitive values from the files, and counts again.

A file of centers has a row per cluster. A file of assignments has a row per record, from which the clusters are
collected. The judge parses the texts of radii with its own grammar, and measures distances by its own formulas.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import StatedCrosswalk, columns_named, number_of, part, refuse_other_forms, spelled, whole
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.places.cluster_cover import OVER, Feature, StatedClusters, covered, features_of, measured, numbers_of

_NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?)"
_VALUE = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^;()"]*)) \((\d+)\)(?:; |\Z)')


def judge_clusters(
    frame: pl.DataFrame,
    stated: StatedCrosswalk,
    form: str,
    source: pl.DataFrame | None = None,
    known: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> list[Finding]:
    """Judge a file of centers or of assignments.

    source  the clustered table; if given, the judge checks whether its records can form these clusters
    known   hierarchies, and coordinates of codes, by column, if available

    Raises VerificationError if the file has another form. O(n log n + pairs) for n records and the pairs of a center
    and a record within its radius.
    """
    asked, facts = stated.parameters, stated.facts
    features = features_of(asked)
    if asked.get("center") not in ("record", "mean", "medoid"):
        raise VerificationError("the certificate file states a kind of center that is none")
    own = {"cluster", "records", "radius", "distance", *asked["sensitive"]}
    found = [columns_named(frame, own.union(*(feature.columns for feature in features)))]
    refuse_other_forms(frame, ("cluster", "records", "distance"), form)
    if "records" in frame.columns:
        numbers = whole(frame, "cluster")
        fits = len(set(numbers)) == len(numbers) == number_of(facts, "rows")
        text = f"{len(numbers)} rows, {number_of(facts, 'rows')} certified"
        found.append(Finding("one row each", fits, text if len(set(numbers)) == len(numbers) else "a cluster twice"))
        clusters = _read(frame, features, asked, form)
    else:
        clusters, mixed = _collected(frame, features, asked, form)
        found.append(Finding("assignments", not mixed, f"{mixed} clusters have two centers or radii" if mixed else
                             "every record of a cluster shows one center"))  # fmt: skip
    found += _sizes(clusters, stated)
    found += _values(clusters, asked)
    found.append(_words(clusters, features, asked, stated.public))
    if not stated.public:
        found.append(_agreed(clusters, stated))
    found.append(_cost(clusters, stated))
    text = "scales, weights and names of its features rest on the certificate"
    found.append(Finding("distance asked for", True, text, STATED))
    if asked.get("eligible"):
        found.append(Finding("eligible", True, "a condition of the caller's own rests on the certificate", STATED))
    if asked.get("max_diameter") is not None and not stated.public:
        found.append(_width(clusters, stated))
    if source is None:
        found.append(Finding("records they are", True, "the table would tell", STATED))
        return [*found, stated.bounded("and the table would tell more")]
    if stated.public:
        text = "the table would tell, with the record, which has the scales of its columns"
        return [*found, Finding("records they are", True, text, STATED), stated.bounded("")]
    return [*found, *covered(clusters, features, stated, form, source, known)]


def _read(frame: pl.DataFrame, features: Sequence[Feature], asked: Mapping[str, Any], form: str) -> StatedClusters:
    """Clusters from a table with a row per cluster."""
    words = [w or "" for w in spelled(part(frame, "radius"), form)]
    held = {name: [published_values(t, name) for t in part(frame, name).to_list()] for name in asked["sensitive"]}
    return StatedClusters(
        [_center(frame, f, form) for f in features],
        np.array(whole(frame, "records"), np.int64),
        numbers_of(frame, "distance"),
        spreads(words, features),
        {name: [_canonical(c, form) for c in counts] for name, counts in held.items()},
    )


def _collected(
    frame: pl.DataFrame, features: Sequence[Feature], asked: Mapping[str, Any], form: str
) -> tuple[StatedClusters, int]:
    """Clusters from a table with a row per record, and the number of clusters whose rows differ."""
    secret = list(asked["sensitive"])
    for name in secret:
        part(frame, name)
    index = pl.Series("row", np.arange(frame.height))
    lines = frame.drop(secret).with_columns(index).group_by(frame.drop(secret).columns).agg(pl.col("row").first())
    lines = lines.sort("row")
    firsts = {c: i for i, c in enumerate(whole(lines, "cluster"))}
    mixed = lines.height - len(firsts)
    own = np.array([firsts[c] for c in whole(frame, "cluster")], np.int64)
    held: dict[str, list[Counter[str | None]]] = {}
    for name in secret:
        held[name] = [Counter() for _ in range(lines.height)]
        for c, value in zip(own.tolist(), spelled(part(frame, name).cast(pl.String), form), strict=True):
            held[name][c][value] += 1
    words = [w or "" for w in spelled(part(lines, "radius"), form)]
    return StatedClusters(
        [_center(lines, f, form) for f in features], np.bincount(own, minlength=lines.height),
        numbers_of(lines, "distance"), spreads(words, features), held,
    ), mixed  # fmt: skip


def _center(frame: pl.DataFrame, feature: Feature, form: str) -> Any:
    if feature.kind in ("category", "coded place"):
        return spelled(part(frame, feature.columns[0]).cast(pl.String), form)
    return np.stack([numbers_of(frame, name, feature.notation) for name in feature.columns], axis=1)


def published_values(text: Any, name: str) -> Counter[str | None]:
    """The published values with their counts."""
    found: Counter[str | None] = Counter()
    at, text = 0, "" if text is None else str(text)
    while at < len(text):
        token = _VALUE.match(text, at)
        if token is None:
            raise VerificationError(f"column {name!r} of the file holds what is no list of values and counts")
        quoted, bare, count = token.groups()
        value = None if bare == "missing" else bare if quoted is None else json.loads(f'"{quoted}"', strict=False)
        found[value] += int(count)
        at = token.end()
    return found


def _canonical(counts: Counter[str | None], form: str) -> Counter[str | None]:
    """Counts in which empty and missing values are merged if the file format can't distinguish them."""
    if form == "parquet" or "" not in counts:
        return counts
    out = Counter(counts)
    out[None] += out.pop("")
    return out


def spreads(words: Sequence[str], features: Sequence[Feature]) -> np.ndarray:
    """float64[m, f]: the radii, parsed from texts; VerificationError for texts of another form."""
    units = Counter(f.unit for f in features)
    measured_ones = [f for f in features if f.kind != "category"]
    suffix = []
    for f in measured_ones:
        named = f" {f.unit}" if f.unit else ""
        suffix.append(re.escape(named + (f" in {f.name}" if not f.unit or units[f.unit] > 1 else "")))
    joined = ", ".join(_NUMBER + s for s in suffix[:-1]) + (" and " if suffix[1:] else "")
    first = [rf"(?:within {joined}{_NUMBER}{suffix[-1]})?"] if suffix else []
    for f in features:
        if f.kind == "category":
            most = "()" if f.levels == 1 else rf" up to level (\d+) of {f.levels}"
            first.append(rf"(?:(?:^|; ){re.escape(f.name)} may differ{most})?")
    grammar = re.compile("".join(first))
    out = np.zeros((len(words), len(features)))
    for i, text in enumerate(words):
        if text == "exactly":
            continue
        match = grammar.fullmatch(text)
        if not text or match is None:
            raise VerificationError("a radius of the file isn't written as its columns require")
        groups = list(match.groups())
        ahead, behind = groups[: len(measured_ones)], groups[len(measured_ones) :]
        for j, f in enumerate(features):
            if f.kind == "category":
                level = behind.pop(0)
                out[i, j] = 0 if level is None else int(level or 1)
            else:
                out[i, j] = float(ahead.pop(0) or 0)
    return out


def _sizes(clusters: StatedClusters, stated: StatedCrosswalk) -> list[Finding]:
    """Whether each cluster has r records, and the numbers of clusters and of records left out are as certified."""
    asked, facts = stated.parameters, stated.facts
    r, sizes = number_of(asked, "r"), clusters.records.tolist()
    under = sum(size < r for size in sizes)
    text = f"{under} clusters are below r = {r}" if under else f"no cluster is below r = {r}"
    expected = tuple(number_of(facts, n) for n in ("groups", "smallest_group", "largest_group"))
    seen = (len(sizes), min(sizes, default=0), max(sizes, default=0))
    sentence = (
        f"{seen[0]} clusters of {seen[1]} to {seen[2]}; {expected[0]} of {expected[1]} to {expected[2]} certified"
    )
    total, share = sum(sizes), asked.get("epsilon")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise VerificationError("the certificate file states no share that may be left out")
    fits, counted = total == number_of(facts, "records"), f"{total} records in all clusters"
    if not stated.public:
        points, out, allowed = (number_of(facts, n) for n in ("points", "left_out", "may_be_left_out"))
        fits = fits and total == points - out and 0 <= out <= allowed == math.floor(share * points + 1e-9)
        counted += f", {out} of {points} left out, {allowed} may be"
    found = [
        Finding("r", not under, text),
        Finding("groups", seen == expected, sentence),
        Finding("records", fits, counted),
    ]
    most = asked.get("max_clusters")
    if most is not None:
        most = number_of(asked, "max_clusters")
        found.append(Finding("max clusters", len(sizes) <= most, f"{len(sizes)} clusters, at most {most} asked"))
    return found


def _values(clusters: StatedClusters, asked: Mapping[str, Any]) -> list[Finding]:
    """Whether each cluster has as many values as records, and whether they are as diverse as requested."""
    found = []
    sizes = clusters.records.tolist()
    ls, distinct = ([int(x) for x in asked[n]] for n in ("l", "distinct_l"))
    if min([1, *ls, *distinct]) < 1:
        raise VerificationError("the certificate file asks for fewer than one value")
    for name, l, least in zip(asked["sensitive"], ls, distinct, strict=True):
        counts = clusters.held[name]
        odd = sum(sum(c.values()) != n for c, n in zip(counts, sizes, strict=True))
        text = f"{odd} clusters have more or fewer values than records" if odd else "as many values as records"
        found.append(Finding(f"values of {name}", not odd, text))
        often = sum(l * max(c.values(), default=0) > n for c, n in zip(counts, sizes, strict=True))
        few = sum(len(c) < least for c in counts)
        if l > 1:
            found.append(Finding(f"l of {name}", not often, f"one value is over 1/{l} of {often} clusters"))
        if least > 1:
            found.append(Finding(f"distinct l of {name}", not few, f"{few} clusters have under {least} values"))
    return found


def _words(clusters: StatedClusters, features: Sequence[Feature], asked: Mapping[str, Any], public: bool) -> Finding:
    """Whether the distance of the farthest member agrees with the radii stated column by column.

    public  whether scales are unknown. Then, scales must exist with which all clusters agree: if any do, the largest
            that keep every distance at least as large as each of its columns. Categories have no scale
    """
    spread, norm, d = clusters.spread, str(asked["norm"]), clusters.distance
    if public:
        largest = np.array([_largest_scale(f, spread[:, j], d) for j, f in enumerate(features)])
        spread = spread * largest
        features = [f if f.kind == "category" else f._replace(scale=1.0, weight=1.0) for f in features]
    most, each = measured(spread, features, norm)
    exact = asked["center"] == "record"
    wide = d > most * (1 + 1e-9) * (1.0 if exact else OVER) + 1e-9
    narrow = d < each * (1 - 1e-9) - 1e-9
    odd = int((wide | narrow | (d < 0)).sum())
    text = f"{odd} clusters' distances contradict their radii in words" if odd else "distances and words agree"
    return Finding("radius", not odd, text, CONSISTENT)


def _largest_scale(feature: Feature, spread: np.ndarray, distance: np.ndarray) -> float:
    """The largest factor of a column's radii that makes none larger than its cluster's distance; 1 for a category."""
    wide = spread > 0
    if feature.kind == "category" or not wide.any():
        return 1.0
    return float(((distance[wide] + 1e-9) / (spread[wide] / OVER)).min()) * (1 - 1e-9)


def same_distance(a: float, b: float) -> bool:
    """Equal up to the rounding errors of float sums, also if all distances are tiny."""
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _cost(clusters: StatedClusters, stated: StatedCrosswalk) -> Finding:
    """The recomputed cost, if the published centers are those that the cost counts."""
    asked, facts = stated.parameters, stated.facts
    largest = float(clusters.distance.max(initial=0.0))
    if not same_distance(largest, float(facts["radius"])):
        return Finding("cost", False, f"the largest radius is {largest:.9g}, {facts['radius']} certified")
    unit = str(asked["unit"])
    if stated.kind == "gather":
        paid, units = largest, unit
    else:
        paid, units = math.fsum((clusters.records * clusters.distance).tolist()), f"points x {unit}"
        setup = asked.get("setup_cost")
        if setup == "per record":
            return stated.unpaid("set-up costs of each record included")
        paid += float(setup) * len(clusters.records)  # type: ignore[arg-type]
    if stated.unit != units:
        return Finding("cost", False, f"counted in {stated.unit!r}, where the distance is in {unit!r}")
    if stated.public:
        if stated.cost is None:
            return stated.unpaid("of centers that the file need not show")
        return Finding("cost", same_distance(paid, stated.cost), f"{paid:.9g} {units}, {stated.cost:.9g} certified")
    assert stated.cost is not None
    replaced, m = number_of(facts, "centers_replaced"), len(clusters.records)
    if asked["center"] != "record" or replaced:
        # its clusters contain their own centers, so no radius is doubled
        least = largest / 2 if stated.kind == "gather" else paid / 2
        few = min(m, number_of(facts, "left_out"))  # centers that are left out aren't published
        fits = (
            0 < replaced <= few and least <= stated.cost * (1 + 1e-9) if asked["center"] == "record" else replaced == m
        )
        text = f"{stated.cost:.9g} {units}, of centers that are records, {replaced} of them not published"
        return Finding("cost", fits, text, STATED)
    return Finding("cost", same_distance(paid, stated.cost), f"{paid:.9g} {units}, {stated.cost:.9g} certified")


def _width(clusters: StatedClusters, stated: StatedCrosswalk) -> Finding:
    """Whether no cluster is wider than requested by its radius, or the certificate states that one is."""
    most, details = float(stated.parameters["max_diameter"]), stated.details
    wide, met = float(details["diameter"]), details["cap_met"]
    far = float(clusters.distance.max(initial=0.0))
    record = stated.parameters["center"] == "record"
    fits = met is (wide <= most) and details["max_diameter"] == most and (not record or far <= wide * (1 + 1e-9))
    text = f"the widest cluster spans {wide:.6g}, {most:g} asked, a radius of {far:.6g} known"
    return Finding("max diameter", fits, text, STATED if fits else CONSISTENT)


def _agreed(clusters: StatedClusters, stated: StatedCrosswalk) -> Finding:
    """Whether repeated statements of the certificate agree."""
    asked, facts, details = stated.parameters, stated.facts, stated.details
    least = max(map(int, [asked["r"], *asked["l"], *asked["distinct_l"]]))
    known: dict[str, Any] = {
        "clusters": len(clusters.records), "left_out": facts["left_out"], "may_be_left_out": facts["may_be_left_out"],
        "r": int(asked["r"]) if stated.kind == "gather" else least,
    }  # fmt: skip
    if stated.kind == "cellular":
        both = math.fsum(float(details[n]) for n in ("service", "setup"))
        known["service"] = details["service"] if same_distance(both, stated.cost or 0.0) else None
        setup, each = details["setup"], asked["setup_cost"]
        good = each == "per record" or same_distance(setup, float(each) * len(clusters.records))
        known["setup"] = setup if good else None
        if asked["center"] == "record" and not facts["centers_replaced"]:
            known["radius"] = details["radius"] if same_distance(details["radius"], facts["radius"]) else None
    odd = [name for name, value in known.items() if details.get(name) != value]
    text = f"its details contradict its facts about {odd[0]!r}" if odd else "its details and its facts agree"
    return Finding("details", not odd, text, CONSISTENT)
