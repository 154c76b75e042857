"""The page of an attack: what a motivated intruder reaches on a release, beside what is reached without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number
from shoal.report.parts import listed, meanings, paragraph, table, whole

TITLES = {
    "linkage": "Linkage: whose row is this?",
    "inference": "Inference: what is this person's value?",
    "minimality": "Minimality: what was hidden because it had to be",
    "downcoding": "Downcoding: what stood in a hidden cell",
    "composition": "Composition: one person in several releases",
    "files": "Files: order, metadata and what lies beside the release",
}


def page(found: Mapping[str, Any]) -> str:
    """The whole page.  found: ``Attack.as_dict()``"""
    findings = found["findings"]
    gains = [f for f in findings if f["gain"]]
    lead = f"{len(findings)} figures of attacks of the literature on a release of {found['rows']:,} rows. " + (
        f"In {len(gains)} of them the intruder does better than without the release and than its privacy model allows."
        if gains
        else "In none of them does the intruder do better than without the release, or than its privacy model allows."
    )
    sections = [("The findings", _overview(findings))]
    for attack, title in TITLES.items():
        mine = [f for f in findings if f["attack"] == attack]
        if mine:
            sections.append((title, _section(mine)))
    if found["notes"]:
        sections.append(("What was not tried", listed(found["notes"])))
    sections.append(("What the figures mean", meanings(_MEANINGS)))
    below = (
        f"quasi-identifiers {', '.join(found['quasi_identifiers'])}"
        + (f"; sensitive {', '.join(found['sensitive'])}" if found["sensitive"] else "")
        + (f"; k = {found['k']}" if found["k"] > 1 else "")
        + (f", l = {found['l']:g}" if found["l"] > 1 else "")
    )
    return whole("Attacks on a release", f"{found['rows']:,} rows", below, lead, sections, found)


def _overview(findings: list[Mapping[str, Any]]) -> Markup:
    rows = [
        (f"{f['attack']}: {f['name']}", _shown(f["figure"]), _shown(_base(f)), "yes" if f["gain"] else "no")
        for f in findings
    ]
    return table(("attack", "figure", "baseline", "gain"), rows, 1, "All findings")


def _section(findings: list[Mapping[str, Any]]) -> Markup:
    out = Markup("")
    for f in findings:
        lines: list[tuple[Any, Any]] = [
            ("what the intruder knows", f["assumes"]),
            (f["measures"], f"{_shown(f['figure'])} ({_shown(f['low'])} to {_shown(f['high'])})"),
            *((f"without it: {name}", _shown(value)) for name, value in f["baselines"].items()),
        ]
        if f["promise"] is not None:
            lines.append(("what the privacy model allows", _shown(f["promise"])))
        if f["worst"] is not None:
            lines.append((f"worst: {f['worst']['group']}", _shown(f["worst"]["figure"])))
        lines += [(name.replace("_", " "), _shown(value)) for name, value in f["details"].items()]
        lines += [
            ("people or guesses", f"{f['people']:,}"),
            ("what would lower it", f["lowers"]),
            ("paper", f["paper"]),
        ]
        title = f["name"][:1].upper() + f["name"][1:]
        out += paragraph(title + (": better than without the release" if f["gain"] else ""), "bad" if f["gain"] else "")
        out += table(("", ""), lines, 2, title)
    return out


def _base(finding: Mapping[str, Any]) -> float | None:
    return max(finding["baselines"].values(), default=None)


def _shown(value: Any) -> str:
    return "–" if value is None else str(number(value)) if isinstance(value, (int, float)) else str(value)


_MEANINGS = [
    ("figure", "a share from 0 to 1: of guesses that are right, or of people concerned"),
    ("95 % interval", "where the share lies that a sample of people leaves open"),
    ("baseline", "the same share for an intruder who has no release; the highest of several"),
    ("promise", "the share that the privacy model of the release allows: 1/k, 1/l"),
    ("gain", "the whole interval lies above every baseline and above the promise"),
]
