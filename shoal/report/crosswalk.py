"""The report of a crosswalk: one HTML page that opens offline. It explains a release, and never recomputes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number, several
from shoal.model.conditions import CONDITIONS
from shoal.problems.catalogue import CATALOGUE
from shoal.report.parts import (
    again,
    code,
    decision,
    drawing,
    glossary,
    listed,
    paragraph,
    part,
    proof,
    released,
    table,
    term,
    whole,
)
from shoal.report.pictures import class_sizes, columns
from shoal.report.sections import risk_word
from shoal.report.words import as_sentence, proved, public_words

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


# display names of settings in the certificate; names that are clear enough aren't here
ASKED = {
    "drawn": "polygons",
    "k": "a group holds at least (k)",
    "r": "a cluster holds at least (r)",
    "objective": "aim",
    "weight": "what a group holds is counted by column",
    "count": "counts are in column",
    "x": "coordinate across, in column",
    "y": "coordinate up, in column",
    "place": "a place, in columns",
    "geographic": "coordinates are longitude and latitude",
    "decimal": "decimal marks of columns",
    "extent": "tiles cover the plane, or end with the data",
    "grid": "sides of tiles lie on steps of",
    "center": "what represents a group's place",
    "sparse": "records that fit no tile",
    "norm": "distances of columns are added up",
    "unit": "distances are in",
    "epsilon": "share of the records that may be left out",
    "setup_cost": "additional cost of a cluster",
    "eligible": "a condition of the caller's own",
    "improve": "improved until no step helps",
    "rule": "rule by which tiles are cut",
    "order": "order in which labels are taken",
}
# display names of further certificate entries; the others appear only in the figures
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
    """The objective in words."""
    kind, asked = figures["kind"], figures["parameters"]
    named = kind if kind in ("gather", "cellular") else str(asked["objective"])
    return "; ".join(_GOALS.get(name, name) for name in named.split(","))


def counted_in(figures: Mapping[str, Any]) -> str:
    """The unit of sizes: records, people, ..."""
    asked = figures["parameters"]
    if figures["kind"] == "regions":
        return str(asked["weight"][0])
    if figures["kind"] == "tiles":
        units = [f"{name}s" for name in ("person", "household") if asked.get(name)]
        return units[0] if units else "records"
    return "records"


def question(figures: Mapping[str, Any]) -> str:
    """The request in a sentence."""
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
    """The further conditions in sentences."""
    asked, group = figures["parameters"], CATALOGUE[figures["kind"]].group
    sentences = []
    weights = list(zip(asked.get("weight") or (), asked["k"], strict=True))[1:] if figures["kind"] == "regions" else ()
    sentences += [f"Each {group} holds at least {k:,} {name}." for name, k in weights]
    for condition in CONDITIONS.get(figures["kind"], {}).values():
        given = asked.get(condition.key)
        if not condition.sentence or not given or (condition.key == "l" and largest(given) <= 1):
            continue
        several = given if isinstance(given, Mapping) else {"": given}
        for name, value in several.items():
            shown = ", ".join(names(value)) if condition.names_columns and not name else largest(value)
            sentences.append(condition.sentence.format(group=group, name=name, value=shown))
    return " ".join(sentences)


def largest(given: Any) -> Any:
    """A number, or the largest of several."""
    return max((number for number in given if number), default=1) if isinstance(given, list) else given


def names(given: Any) -> list[str]:
    """A list of columns; a single column may be given without a list."""
    return [given] if isinstance(given, str) else list(given or ())


def answer(figures: Mapping[str, Any]) -> str:
    """The answer in one paragraph: the group sizes, what was left out, the cost, and the proof."""
    after, facts = figures["after"], figures["facts"]
    one, group = CATALOGUE[figures["kind"]].one, CATALOGUE[figures["kind"]].group
    unit = counted_in(figures)
    if not after["groups"]:
        return f"There is no {group}: everything was left out."
    parts = [
        f"Every {group} holds at least {after['smallest']:,} {unit}: someone who knows only a person's "
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
    """The certificate, with its unit in words that need no context."""
    unit = figures["certificate"]["unit"]
    if figures["kind"] == "regions" and figures["parameters"]["objective"] == "max":
        unit += " in the heaviest region"
    if figures["kind"] == "gather":
        unit += " from a center to the farthest record of its cluster"
    proof = {**figures["certificate"], "unit": unit}
    if figures["kind"] == "labels" and "bound" in proof:  # their bounds use the literature's terms: items in bins
        proof["bound"] = plain(proof["bound"])
    return proof


def plain(bound: str) -> str:
    """A bound on labels, reworded from items and bins to values and groups."""
    for pattern, meant in ((r"\ban item\b", "a label"), (r"\bitem(s?)\b", r"label\1"), (r"\bbin(s?)\b", r"group\1")):
        bound = re.sub(pattern, meant, bound)
    return bound


def assumptions(figures: Mapping[str, Any]) -> list[str]:
    """The assumptions of the promise."""
    kind, asked = figures["kind"], figures["parameters"]
    group = CATALOGUE[kind].group
    sentences = [
        f"The attacker knows in which {group} a person is and nothing else that is published with it. Other columns "
        "published with it single people out again; they need a release of their own (shoal anonymize)."
    ]
    if kind == "regions":
        sentences.append(
            f"Column {asked['weight'][0]} counts people, or other units among which each person hides; the numbers "
            "are used unchanged."
        )
        sentences.append("Areas are neighbors where the table of pairs or the polygons say so.")
    elif kind == "tiles" and not (asked.get("person") or asked.get("household")):
        sentences.append("One record is one person. Where a person has several, name the column that says so (person).")
    else:
        sentences.append("One record is one person.")
    if kind in ("gather", "cellular"):
        sentences.append(
            f"Distance is {asked['norm']} over the columns, measured in {asked['unit']}; the author of the request "
            "chose the scales" + (f": {_scales(asked['features'])}." if figures["internal"] else ".")
        )
    if kind == "tiles":
        sentences.append("The tiles are published, not the places: a row for each place is for the owner of the table.")
    if kind in ("labels", "intervals"):
        sentences.append(
            "A missing value is a value of its own." if kind == "labels" else "Every value has its place in order."
        )
    return sentences


def _scales(features: Sequence[Mapping[str, Any]]) -> str:
    """For each column, the difference between two records that counts as one unit of distance."""
    parts = []
    for f in features:
        if f["weight"] <= 0:
            parts.append(f"{f['name']} counts nothing")
        elif f["kind"] == "category":
            parts.append(f"another value of {f['name']} counts {f['weight']:g}")
        else:
            unit = f["unit"] or ("days" if f["kind"] == "date" else "units")
            parts.append(f"{f['scale'] / f['weight']:.4g} {unit} of {f['name']} count 1")
    return "; ".join(parts)


def limits(figures: Mapping[str, Any]) -> list[str]:
    """What such an answer can't promise."""
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
        article = "an" if group[0] in "aeiou" else "a"
        out.append(f"Homogeneity: everybody in {article} {group} may have something private in common; {keeps}")
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
            "Each center is a real record, published unchanged."
            if asked.get("center") == "record"
            else "Centers are averages or middle values; of few records they may still be those of one person."
        )
        out.append("Radius: it says how far the farthest record lies, which may be one person.")
    out.append(
        "For statistics rather than places or values, publication with noise (differential privacy) promises more."
    )
    return out


# stated elsewhere, or too long
_NOT_SAID = {"problem", "columns", "features", "hierarchies", "joined", "seam", "column"}
ROLES = {
    "value": "what was grouped, as in the table",
    "group": "number of its group",
    "group_label": "name of its group",
    "group_count": "records of its group",
    "area": "an area as it is named in the table",
    "diameter": "how far apart the ends of its region are",
    "polsby_popper": "how compact its region is, by its border: 1 is a circle",
    "reock": "how compact its region is, by the smallest circle around it: 1 is that circle",
    "center_x": "center of its region",
    "center_y": "center of its region",
    "weighted_x": "center of its region's weight",
    "weighted_y": "center of its region's weight",
    "region": "the region it is in; * is none",
    "region_weight": "weight of that region",
    "region_areas": "areas of that region",
    "bound_by": "the weight nearest its least",
    "tile": "number of the tile it is in",
    "records": "how many it holds",
    "persons": "how many persons it holds",
    "households": "how many households it holds",
    "cluster": "number of the cluster",
    "radius": "how far the farthest record of each kind of column lies",
    "distance": "how far the farthest record lies",
}


def answer_page(figures: Mapping[str, Any], pictures: Sequence[tuple[str, str]] = ()) -> str:
    """The report of an answer as a page.

    figures   the result of ``publishing.crosswalks.answer_figures``; the page contains them as JSON too
    pictures  (caption, SVG or image data, "" if it couldn't be drawn), in order
    """
    written = figures["written"] or {}
    files = [written.get("file"), *(part["file"] for part in written.get("also", ()))]
    name = next(filter(None, files), "an answer that is not written yet")
    below = f"{name}; {figures['title']}; {figures['made_at'][:10]}"
    certificate = proof(stated(figures), proof_words(figures), [CATALOGUE[figures["kind"]].proofs])
    sections = [
        ("Who decided", decision(figures, f"at least {figures['k']:,} {counted_in(figures)} in every group")),
        ("The request", paragraph(question(figures)) + _asked(figures)),
        *([("What to look at", listed([as_sentence(w) for w in figures["warnings"]]))] if figures["warnings"] else []),
        ("Privacy before and after" if figures["internal"] else "Privacy after", _before_after(figures)),
        *([("How it looks", Markup().join(_figure(*p) for p in pictures))] if pictures else []),
        ("The certificate", certificate + _details(figures)),
        ("What this does not promise", listed(limits(figures))),
    ]
    appendix = [
        ("What was released", _released(figures)),
        ("Sizes of the groups", _sizes(figures)),
        ("What it cost, group by group", _loss(figures)),
        *([("Published rows", _shown(figures))] if figures["shown"]["rows"] else []),
        ("What was assumed", listed(assumptions(figures))),
        ("How to make and check it again", again(figures, _command_to_repeat(figures))),
        ("Words", glossary(("prosecutor", "journalist", "marketer", "lower bound", "SHA-256"))),
    ]
    return whole(
        "Release report", name, below, answer(figures), sections, figures, verdict=_verdict(figures), appendix=appendix
    )


def _verdict(figures: Mapping[str, Any]) -> str:
    """One line: weak, fair, or strong, on the scale of tables and by the highest risk alone; and its basis."""
    after, group = figures["after"], CATALOGUE[figures["kind"]].group
    if not after["groups"]:
        return f"Verdict: there is no {group} to publish."
    size = f"the smallest {group} has {after['smallest']:,}, and at least {figures['k']:,} were requested"
    if after["below"]:
        return f"Verdict: not to be published. {size[:1].upper()}{size[1:]}."
    most = after["prosecutor_max"]
    return f"Verdict: {risk_word(most)}. The highest risk to be found by the {group} is {most:.3g}; {size}."


def _command_to_repeat(figures: Mapping[str, Any]) -> Markup:
    """The command that repeats the request."""
    sentence = (
        " with the request above, its method, effort and seed included, and the same table gives the same answer."
    )
    return " Ask for the same again: " + code(f"shoal {figures['kind']}") + sentence


def _asked(figures: Mapping[str, Any]) -> Markup:
    rows = [
        (ASKED.get(name, name.replace("_", " ")), _in_words(name, value, figures))
        for name, value in figures["parameters"].items()
        if name not in _NOT_SAID
        and value not in (None, [], {}, "", False)
        and (name not in ("l", "distinct_l") or value not in (1, [1]))
    ]
    if figures["method"]:
        rows.append(("method", figures["method"].replace("_", " ")))
    asked = figures["certificate"].get("details", {}).get("run") or {}
    rows += [
        (
            f"{name} asked for" if name == "method" else ASKED.get(name, name.replace("_", " ")),
            str(value) if name == "seed" else _text(value),
        )
        for name, value in asked.items()
        if value not in (None, False) and (name != "method" or value != figures["method"])
    ]
    return table(("", ""), rows, 2, "The request")


def _in_words(name: str, value: Any, figures: Mapping[str, Any]) -> str:
    if name == "objective":
        return goal(figures)
    if name == "drawn":  # data for the checker; readers need only the list of neighbors
        near, unit = value.get("tolerance"), value.get("unit")
        apart = f"{number(near)} {unit}" if unit == "km" else f"{number(near)} in the unit of the coordinates"
        return "neighbors share a part of their borders" + (f"; borders up to {apart} apart are one" if near else "")
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(held)}" for name, held in value.items() if held not in (None, "", [], {}))
    return number(value)


def _released(figures: Mapping[str, Any]) -> Markup:
    facts = figures["facts"]
    rows = [("rows", facts["rows"])] if "rows" in facts else []
    rows += [(what, facts[name]) for name, what in (("points", "records in the table"), ("left_out", "left out"),
                                                    ("rows_left_out", "rows left out"),
                                                    ("codes_left_out", "rows with codes for places, left out"))
             if facts.get(name) is not None]  # fmt: skip
    lines = [(name, _role(name, figures)) for name in figures["columns"]]
    return released(figures, rows) + table(("column", "what it holds"), lines, 2, "Its columns")


def _role(name: str, figures: Mapping[str, Any]) -> str:
    asked = figures["parameters"]
    if figures["kind"] == "tiles":
        for at in (asked["x"], asked["y"]):
            if name.startswith(f"{at}_"):
                return {"low": "where its tile begins", "high": "where its tile ends"}.get(
                    name.removeprefix(f"{at}_"), "a place in its tile that represents it"
                )
        if name in (asked["x"], asked["y"]):
            return "coordinate, as in the table"
    if name in names(asked.get("sensitive")):
        return "sensitive: the values of the cluster's records, with their counts"
    if name in (asked.get("columns") or ()) or name in (asked.get("place") or ()):
        return "of the cluster's center"
    if name.startswith(("sum_", "mean_")):
        return f"{name.partition('_')[0]} over the region"
    return ROLES.get(name, "of its group")


def _before_after(figures: Mapping[str, Any]) -> Markup:
    """A table of sizes and risks before and after."""
    before, after, unit = figures["before"], figures["after"], counted_in(figures)
    one, group = CATALOGUE[figures["kind"]].one, CATALOGUE[figures["kind"]].group
    names = (
        (f"{one}s before, {group}s after" if before is not None else f"{group}s", "groups"),
        (f"smallest, {unit}", "smallest"),
        (f"middle, {unit}", "median"),
        (f"largest, {unit}", "largest"),
        (f"with fewer than {figures['k']:,}", "below"),
        (f"{unit} in these", "below_records"),
    )
    head = ("", "before", "after")
    lines: list[tuple[Any, Any, Any]] = [(what, _of(before, key), after[key]) for what, key in names]
    risks = (
        ("highest risk to be found (" + term("prosecutor") + ")", "prosecutor_max"),
        ("mean risk (" + term("marketer") + ")", "marketer"),
    )
    lines += [(what, _of(before, key), float(after[key])) for what, key in risks]
    threshold = after["threshold"]
    at_risk = [None if b is None else f"{100 * b['records_at_risk']:.2f} %" for b in (before, after)]
    lines.append((f"{unit} at risk above {threshold}", at_risk[0] or "not known", at_risk[1]))
    known = before is not None
    shown = lines if known else [(what, found) for what, _, found in lines]
    return table(head if known else ("", "after"), shown, 1, "Sizes and risks") + paragraph(
        f"These risks are for someone who knows only the {group}, if each of the {unit} is one person. The risk from a "
        + term("journalist")
        + ", who doesn't know who is in the table, is at most the prosecutor's.",
        "soft",
    )


def _sizes(figures: Mapping[str, Any]) -> Markup:
    """A table of groups by size."""
    unit, group = counted_in(figures), CATALOGUE[figures["kind"]].group
    return drawing(class_sizes(figures["sizes"], what=(unit, group)), f"{unit} by size of their {group}")


def _of(before: Mapping[str, Any] | None, key: str) -> Any:
    return "not known" if before is None else before[key]


def _loss(figures: Mapping[str, Any]) -> Markup:
    """A table of the groups' widths."""
    found = figures["loss"]
    if found is None:
        return paragraph("There is nothing to measure.")
    head = ("", found["unit"])
    names = (("least", "least"), ("a quarter have at most", "quarter"), ("half have at most", "half"),
             ("three quarters have at most", "three_quarters"), ("most", "most"), ("mean", "mean"))  # fmt: skip
    lines = [(what, int(found[key]) if found[key] == int(found[key]) else found[key]) for what, key in names]
    more = Markup()
    if found["unbounded"]:
        more = paragraph(f"{found['unbounded']:,} without an end on some side are not among them.")
    if figures["kind"] in ("gather", "cellular") and figures["parameters"]["center"] != "record":
        more += paragraph(
            "Measured from the centers as they are published, rounded up; the certificate counts from the records that "
            "the clusters were built around."
        )
    group = CATALOGUE[figures["kind"]].group
    bars = columns(found["bars"], f"{group}s by {found['what']}, {found['unit']}")
    return table(head, lines, 1, as_sentence(found["what"])[:-1]) + more + part("parts.html", "titled", "", bars)


def _figure(what: str, drawn: str) -> Markup:
    """A drawing on a white background; if there is none, the reason."""
    if not drawn:
        return paragraph(f"{what}: not drawn without matplotlib; pip install 'shoal[plot]'.", "soft")
    if drawn.startswith("<svg"):
        return part("parts.html", "sheet", Markup(drawn), what)  # made by this package, with its texts escaped
    return part("parts.html", "image", drawn, what)


def _shown(figures: Mapping[str, Any]) -> Markup:
    found = figures["shown"]
    sentence = f"Each represents a {CATALOGUE[figures['kind']].group} of at least {figures['k']:,}."
    return paragraph(sentence, "soft") + table(
        found["columns"], found["rows"], len(found["columns"]), "Ten of them, spread over the file"
    )


def _details(figures: Mapping[str, Any]) -> Markup:
    """Further entries of the certificate that readers need; the figures contain all of them."""
    held = figures["certificate"].get("details", {})
    unit = f" ({held['unit_of_half_perimeter']})" if "unit_of_half_perimeter" in held else ""
    rows = [
        (RECORDED[name] + (unit if name == "half_perimeter" else ""), value)
        for name, value in held.items()
        if name in RECORDED and isinstance(value, (int, float)) and name not in figures["parameters"]
    ]
    return table(("", ""), rows, 2, "Also on record") if rows else Markup()
