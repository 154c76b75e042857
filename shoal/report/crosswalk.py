"""The report of a crosswalk: one HTML page that opens offline.  Explains a release, never recomputes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number
from shoal.problems.catalogue import CATALOGUE
from shoal.report.answer_words import (
    ASKED,
    RECORDED,
    answer,
    assumptions,
    counted_in,
    goal,
    limits,
    names,
    proof_words,
    question,
    stated,
)
from shoal.report.parts import (
    again,
    code,
    decision,
    drawing,
    glossary,
    listed,
    paragraph,
    proof,
    released,
    table,
    term,
    whole,
)
from shoal.report.pictures import class_sizes, columns
from shoal.report.rendering import part
from shoal.report.verdict import risk_word

_NOT_SAID = {"problem", "columns", "features", "hierarchies", "joined", "seam", "column"}  # said elsewhere, or long
ROLES = {
    "value": "what was grouped, as it stands in the table",
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


def page(figures: Mapping[str, Any], pictures: Sequence[tuple[str, str]] = ()) -> str:
    """The whole page.

    figures   what ``publishing.answer_figures`` gives; they stand in the page as JSON too
    pictures  (what it shows, SVG or the data of an image, "" where none could be drawn) in order
    """
    written = figures["written"]
    name = (written.get("file") or written["certificate"]) if written else "an answer that is not written yet"
    below = f"{name}; {figures['title']}; {figures['made_at'][:10]}"
    certificate = proof(stated(figures), proof_words(figures), [CATALOGUE[figures["kind"]].proofs])
    sections = [
        ("Who decided", decision(figures, f"at least {figures['k']:,} {counted_in(figures)} in every group")),
        ("What was asked", paragraph(question(figures)) + _asked(figures)),
        *([("What to look at", listed([_said(w) for w in figures["warnings"]]))] if figures["warnings"] else []),
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
        ("How to make and check it again", again(figures, _same(figures))),
        ("Words", glossary(("prosecutor", "journalist", "marketer", "lower bound", "SHA-256"))),
    ]
    return whole(
        "Release report", name, below, answer(figures), sections, figures, verdict=_verdict(figures), appendix=appendix
    )


def _verdict(figures: Mapping[str, Any]) -> str:
    """One line on the scale of tables, by the highest risk alone: weak, fair or strong; and what it rests on."""
    after, group = figures["after"], CATALOGUE[figures["kind"]].group
    if not after["groups"]:
        return f"Verdict: there is no {group} to publish."
    size = f"the smallest {group} has {after['smallest']:,}, and at least {figures['k']:,} were requested"
    if after["below"]:
        return f"Verdict: not to be published. {size[:1].upper()}{size[1:]}."
    most = after["prosecutor_max"]
    return f"Verdict: {risk_word(most)}. The highest risk to be found by the {group} is {most:.3g}; {size}."


def _same(figures: Mapping[str, Any]) -> Markup:
    """How to ask for the same once more."""
    said = " with the request above, its method, effort and seed included, and of the same table the same comes out."
    return " Ask for the same again: " + code(f"shoal {figures['kind']}") + said


def _said(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _asked(figures: Mapping[str, Any]) -> Markup:
    rows = [
        (ASKED.get(name, name.replace("_", " ")), goal(figures) if name == "objective" else _text(value))
        for name, value in figures["parameters"].items()
        if name not in _NOT_SAID
        and value not in (None, [], {}, "", False)
        and (name not in ("l", "distinct_l") or value not in (1, [1]))
    ]
    if figures["method"]:
        rows.append(("method", figures["method"].replace("_", " ")))
    asked = figures["certificate"].get("details", {}).get("run") or {}
    rows += [
        (f"{name} asked for" if name == "method" else ASKED.get(name, name.replace("_", " ")), _told(name, value))
        for name, value in asked.items()
        if value not in (None, False) and (name != "method" or value != figures["method"])
    ]
    return table(("", ""), rows, 2, "The request")


def _told(name: str, value: Any) -> str:
    """How it was made, a seed as it is typed."""
    return str(value) if name == "seed" else _text(value)


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
                    name.removeprefix(f"{at}_"), "a place in its tile, to stand for it"
                )
        if name in (asked["x"], asked["y"]):
            return "coordinate, as it stands in the table"
    if name in names(asked.get("sensitive")):
        return "sensitive: the values of the cluster's records, with their counts"
    if name in (asked.get("columns") or ()) or name in (asked.get("place") or ()):
        return "of the cluster's center"
    if name.startswith(("sum_", "mean_")):
        return f"{name.partition('_')[0]} over the region"
    return ROLES.get(name, "of its group")


def _before_after(figures: Mapping[str, Any]) -> Markup:
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
        f"For who knows only the {group}, if each of the {unit} is one person. The risk from a "
        + term("journalist")
        + ", who does not know who is in the table, is at most the prosecutor's.",
        "soft",
    )


def _sizes(figures: Mapping[str, Any]) -> Markup:
    """Groups by size."""
    unit, group = counted_in(figures), CATALOGUE[figures["kind"]].group
    return drawing(class_sizes(figures["sizes"], what=(unit, group)), f"{unit} by size of their {group}")


def _of(before: Mapping[str, Any] | None, key: str) -> Any:
    return "not known" if before is None else before[key]


def _loss(figures: Mapping[str, Any]) -> Markup:
    found = figures["loss"]
    if found is None:
        return paragraph("There is nothing to measure.")
    head = ("", found["unit"])
    names = (("least", "least"), ("a quarter have at most", "quarter"), ("half have at most", "half"),
             ("three quarters have at most", "three_quarters"), ("most", "most"), ("mean", "mean"))  # fmt: skip
    lines = [(what, _plain(found[key])) for what, key in names]
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
    return table(head, lines, 1, _said(found["what"])[:-1]) + more + part("parts.html", "titled", "", bars)


def _plain(value: float) -> Any:
    return int(value) if value == int(value) else value


def _figure(what: str, drawn: str) -> Markup:
    """A drawing as it is, on white as drawn; without one, why there is none."""
    if not drawn:
        return paragraph(f"{what}: not drawn, for want of matplotlib; pip install 'shoal[plot]'.", "soft")
    if drawn.startswith("<svg"):
        return part("parts.html", "sheet", Markup(drawn), what)  # drawn by this program, its texts escaped there
    return part("parts.html", "image", drawn, what)


def _shown(figures: Mapping[str, Any]) -> Markup:
    found = figures["shown"]
    said = f"Each stands for a {CATALOGUE[figures['kind']].group} of at least {figures['k']:,}."
    return paragraph(said, "soft") + table(
        found["columns"], found["rows"], len(found["columns"]), "Ten of them, spread over the file"
    )


def _details(figures: Mapping[str, Any]) -> Markup:
    """What else the certificate has on record and a reader would ask for; all of it stands in the figures."""
    held = figures["certificate"].get("details", {})
    unit = f" ({held['unit_of_half_perimeter']})" if "unit_of_half_perimeter" in held else ""
    rows = [
        (RECORDED[name] + (unit if name == "half_perimeter" else ""), value)
        for name, value in held.items()
        if name in RECORDED and isinstance(value, (int, float)) and name not in figures["parameters"]
    ]
    return table(("", ""), rows, 2, "Also on record") if rows else Markup()
