"""A crosswalk in sentences: the question, the answer, what it rests on and what it does not promise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.model.cards import several
from shoal.problems.catalogue import CATALOGUE
from shoal.report.words import proved, public_words

_GOALS = {
    "max": "the largest as small as can be",
    "count": "as many as can be",
    "squares": "their squared sizes as small as can be",
    "sumsq": "their squared weights as small as can be",
    "excess": "none much heavier than it must be",
    "compact": "each as compact as can be",
    "similar": "the areas in each as alike as can be",
    "range": "the values in each as close as can be",
    "tiles": "as many as can be",
    "perimeter": "their sides as short as can be",
    "gather": "the widest as narrow as can be",
    "cellular": "records times radius as little as can be",
}


# what was asked, by its name in the certificate; names that say it themselves are not here
ASKED = {
    "drawn": "polygons",
    "k": "a group holds at least (k)",
    "r": "a cluster holds at least (r)",
    "objective": "aim",
    "weight": "what a group holds is counted by column",
    "count": "counts stand in column",
    "x": "coordinate across, in column",
    "y": "coordinate up, in column",
    "place": "a place, in columns",
    "geographic": "coordinates are longitude and latitude",
    "extent": "tiles cover the plane, or end with the data",
    "grid": "sides of tiles lie on steps of",
    "center": "what stands for a group's place",
    "sparse": "records that fit no tile",
    "norm": "distances of columns are added up",
    "unit": "distances are in",
    "epsilon": "share of the records that may be left out",
    "setup_cost": "cost of a cluster besides",
    "max_diameter": "no group is wider than",
    "max_width": "no side is longer than",
    "eligible": "a condition of the caller's own",
    "improve": "improved until no step helps",
    "rule": "rule by which tiles are cut",
    "order": "order in which labels are taken",
}
# what a certificate holds besides, for people; the rest is in the figures alone
RECORDED = {
    "groups": "groups",
    "smallest_group": "smallest group",
    "upper_bound": "no answer has more regions than",
    "largest": "heaviest region",
    "largest_bound": "no answer's heaviest region is below",
    "excess": "heaviest region, times the least asked for",
    "squares": "squared weights added up",
    "squares_bound": "no answer's squared weights add up to less than",
    "tiles": "tiles",
    "tiles_at_most": "no answer has more tiles than",
    "half_perimeter": "width plus height of a tile, on the mean",
    "clusters": "clusters",
    "mean_distance": "mean distance of a record from its center",
    "radius": "widest cluster, from its center to its farthest record",
}


def goal(figures: Mapping[str, Any]) -> str:
    """What was to be as small, or as many, as can be."""
    kind, asked = figures["kind"], figures["parameters"]
    named = kind if kind in ("gather", "cellular") else str(asked["objective"])
    return "; ".join(_GOALS.get(name, name) for name in named.split(","))


def counted_in(figures: Mapping[str, Any]) -> str:
    """What sizes count: records, people, ..."""
    asked = figures["parameters"]
    if figures["kind"] == "regions":
        return str(asked["weight"][0])
    if figures["kind"] == "tiles":
        units = [f"{name}s" for name in ("person", "household") if asked.get(name)]
        return units[0] if units else "records"
    return "records"


def question(figures: Mapping[str, Any]) -> str:
    """What was asked, in a sentence."""
    kind, asked, k = figures["kind"], figures["parameters"], figures["k"]
    one, group = CATALOGUE[kind].one, CATALOGUE[kind].group
    of = f" of column {asked['column']}" if asked.get("column") and kind in ("labels", "intervals") else ""
    if kind in ("gather", "cellular"):
        named = ", ".join([*asked["columns"], *(asked["place"] or ())])
        of = f" by their distance in {named}"
    aim = goal(figures)
    held = f"at least {k:,} {counted_in(figures)}"
    also = _also(figures)
    return f"Put the {one}s{of} into {group}s of {held} each, {aim}.{f' {also}' if also else ''}"


def _also(figures: Mapping[str, Any]) -> str:
    """The further conditions, in sentences."""
    asked, group = figures["parameters"], CATALOGUE[figures["kind"]].group
    said = []
    weights = list(zip(asked.get("weight") or (), asked["k"], strict=True))[1:] if figures["kind"] == "regions" else ()
    said += [f"Each {group} holds at least {k:,} {name}." for name, k in weights]
    for name in ("boundary", "soft_boundary", "fixed", "apart"):
        if asked.get(name):
            said.append(_CONDITIONS[name].format(group=group, column=asked[name]))
    said += [f"No {group} has more than {most:,} {name}." for name, most in (asked.get("at_most") or {}).items()]
    said += [f"The sensitive values are those of {', '.join(names(asked.get('sensitive')))}."] * bool(
        asked.get("sensitive")
    )
    shares = asked.get("l") if isinstance(asked.get("l"), list) else [asked.get("l")]
    most = max((l for l in shares or () if l), default=1)
    if most > 1:
        said.append(f"At most one in {most:g} of a {group}'s records share a sensitive value.")
    if asked.get("max_diameter"):
        said.append(f"No {group} is wider than {asked['max_diameter']:g}.")
    if asked.get("max_width"):
        said.append(f"No side of a {group} is longer than {asked['max_width']:g}.")
    return " ".join(said)


_CONDITIONS = {
    "boundary": "No {group} mixes values of {column}.",
    "soft_boundary": "A {group} mixes values of {column} only where it must.",
    "fixed": "What has the same value of {column} stays together.",
    "apart": "What has the same value of {column} shares no {group}.",
}


def names(given: Any) -> list[str]:
    """Columns, of which one may stand without a list."""
    return [given] if isinstance(given, str) else list(given or ())


def answer(figures: Mapping[str, Any]) -> str:
    """The answer in one paragraph: among how many each hides, what was left out, the cost and what is proved."""
    after, facts = figures["after"], figures["facts"]
    one, group = CATALOGUE[figures["kind"]].one, CATALOGUE[figures["kind"]].group
    unit = counted_in(figures)
    if not after["groups"]:
        return f"There is no {group}: everything was left out."
    parts = [
        f"Every {group} holds at least {after['smallest']:,} {unit}: whoever knows no more of somebody than the "
        f"{group} has {several(after['smallest'] - 1, 'other')} to choose from"
    ]
    before = figures["before"]
    if before is not None and figures["kind"] not in ("gather", "cellular"):
        parts.append(
            f"{several(before['groups'], one)} became {several(after['groups'], group)}, the largest of "
            f"{after['largest']:,}"
        )
    else:
        parts.append(f"there are {several(after['groups'], group)}, the largest of {after['largest']:,}")
    out = facts.get("left_out") or facts.get("rows_left_out") or 0
    if out:
        what = one if figures["kind"] != "tiles" else "row"
        parts.append(f"{several(out, what)} {'is' if out == 1 else 'are'} in none and left out")
    return "; ".join(parts) + ". " + proof_words(figures)


def proof_words(figures: Mapping[str, Any]) -> str:
    """The certificate in words."""
    if not figures["internal"]:
        return public_words(stated(figures))
    return proved(stated(figures), "every answer to this question", begins="The cost is")


def stated(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate, its unit in words that stand alone."""
    unit = figures["certificate"]["unit"]
    if figures["kind"] == "regions" and figures["parameters"]["objective"] == "max":
        unit += " in the heaviest region"
    if figures["kind"] == "gather":
        unit += " from a center to the farthest record of its cluster"
    proof = {**figures["certificate"], "unit": unit}
    if figures["kind"] == "labels" and "bound" in proof:  # whose bounds speak as the literature does: items in bins
        proof["bound"] = plain(proof["bound"])
    return proof


def plain(bound: str) -> str:
    """A bound on labels, which speaks as the literature does of items in bins, in the reader's words."""
    for said, meant in ((r"\ban item\b", "a label"), (r"\bitem(s?)\b", r"label\1"), (r"\bbin(s?)\b", r"group\1")):
        bound = re.sub(said, meant, bound)
    return bound


def assumptions(figures: Mapping[str, Any]) -> list[str]:
    """What the promise rests on."""
    kind, asked = figures["kind"], figures["parameters"]
    group = CATALOGUE[kind].group
    said = [
        f"The attacker knows in which {group} somebody is and nothing else that is published with it. Other columns "
        "published beside it single people out again; they need a release of their own (shoal anonymize).",
    ]
    if kind == "regions":
        said.append(
            f"Column {asked['weight'][0]} counts people, or whatever each person should be hidden among; the numbers "
            "are taken as they came."
        )
        said.append("Areas are neighbors where the table of pairs or the polygons say so.")
    elif kind == "tiles" and not (asked.get("person") or asked.get("household")):
        said.append("One record is one person. Where a person has several, name the column that says so (person).")
    else:
        said.append("One record is one person.")
    if kind in ("gather", "cellular"):
        said.append(
            f"Distance is {asked['norm']} over the columns, measured in {asked['unit']}; whoever asked chose the scales"
            + (f": {_scales(asked['features'])}." if figures["internal"] else ".")
        )
    if kind == "tiles":
        said.append("The tiles are published, not the places: a row per place is for whoever holds the table.")
    if kind in ("labels", "intervals"):
        said.append(
            "A missing value is a value of its own." if kind == "labels" else "Every value has its place in order."
        )
    return said


def _a(word: str) -> str:
    return ("an " if word[0] in "aeiou" else "a ") + word


def _scales(features: Sequence[Mapping[str, Any]]) -> str:
    """How far apart two records are in one column where it counts as one unit."""
    said = []
    for f in features:
        if f["weight"] <= 0:
            said.append(f"{f['name']} counts nothing")
        elif f["kind"] == "category":
            said.append(f"another value of {f['name']} counts {f['weight']:g}")
        else:
            unit = f["unit"] or ("days" if f["kind"] == "date" else "units")
            said.append(f"{f['scale'] / f['weight']:.4g} {unit} of {f['name']} count 1")
    return "; ".join(said)


def limits(figures: Mapping[str, Any]) -> list[str]:
    """What such an answer cannot promise."""
    kind, asked = figures["kind"], figures["parameters"]
    group = CATALOGUE[kind].group
    shares = asked.get("l") if isinstance(asked.get("l"), list) else [asked.get("l")]
    guarded = any((l or 0) > 1 for l in shares or ()) or bool(asked.get("distinct_l") not in (None, [], [1]))
    out = []
    if not guarded:
        keeps = (
            "in a release of the whole table (shoal anonymize) l keeps sensitive values apart."
            if kind in ("labels", "intervals")
            else "only l (--l) with a sensitive column keeps its values apart."
        )
        out.append(f"Homogeneity: everybody in {_a(group)} may have something private in common; {keeps}")
    out += [
        f"Two answers for the same people: a person's {group} in one and in the other together may hold fewer than "
        f"{figures['k']:,}. Publish one, or the same again.",
        "Background knowledge: who knows more of a person than this answer shows may find more.",
    ]
    if kind == "intervals":
        out.append("End points: an interval begins and ends at values that somebody has.")
    if kind == "tiles" and not asked.get("grid"):
        out.append("Sides of tiles lie between places; a grid (--grid) puts them at round coordinates.")
    if kind in ("gather", "cellular"):
        out.append(
            "Each center is a real record, published as it stands."
            if asked.get("center") == "record"
            else "Centers are averages or middle values; of few records they may still be somebody's."
        )
        out.append("Radius: it says how far the farthest record lies, which may be one person.")
    out.append(
        "For statistics rather than places or values, publication with noise (differential privacy) promises more."
    )
    return out
