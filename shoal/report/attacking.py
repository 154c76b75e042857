"""The page of an attack: what a motivated intruder reaches on a release, beside what is reached without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number
from shoal.report.parts import listed, meanings, table, whole

TITLES = {
    "linkage": "Linkage: whose row is this?",
    "inference": "Inference: what is this person's value?",
    "minimality": "Minimality: what was hidden because it had to be",
    "downcoding": "Downcoding: what stood in a hidden cell",
    "composition": "Composition: one person in several releases",
    "files": "Files: order, metadata and what lies beside the release",
}


def page(found: Mapping[str, Any]) -> str:
    """The whole page, worst first.  found: ``Attack.as_dict()``"""
    findings = sorted(found["findings"], key=_how_bad)
    gains = [f for f in findings if f["gain"]]
    rest = [f for f in findings if not f["gain"]]
    sections = []
    if gains:
        sections.append(("What an intruder reaches, worst first", _overview(gains)))
    if rest:
        sections.append(("Where nothing is gained", _overview(rest)))
    if lowers := _lowers(gains):
        sections.append(("What would lower it", table(("what", "which attacks"), lowers, 2)))
    if found["notes"]:
        sections.append(("What to know of these figures", listed(found["notes"])))
    order = list(dict.fromkeys(f["attack"] for f in findings))
    appendix = [(TITLES[attack], _section([f for f in findings if f["attack"] == attack])) for attack in order]
    appendix.append(("What the figures mean", meanings(_MEANINGS)))
    below = (
        f"quasi-identifiers {', '.join(found['quasi_identifiers'])}"
        + (f"; sensitive {', '.join(found['sensitive'])}" if found["sensitive"] else "")
        + (f"; k = {found['k']}" if found["k"] > 1 else "")
        + (f", l = {found['l']:g}" if found["l"] > 1 else "")
    )
    leaks = [_sentence(f) for f in gains if f["attack"] == "files"]
    return whole(
        "Attacks on a release", f"{found['rows']:,} rows", below, _lead(found, gains), sections, found, first=leaks,
        appendix=appendix,
    )  # fmt: skip


def _how_bad(finding: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
    """For sorting, the worst first: gains about a person, by risk, then by how far above what is allowed."""
    allowed = max([*finding["baselines"].values(), finding["promise"] or 0.0])
    above = (finding["low"] or 0.0) - allowed
    risk = finding["risk"] or 0.0
    return not finding["gain"], finding["risk"] is None, -risk, -above


def _lead(found: Mapping[str, Any], gains: list[Mapping[str, Any]]) -> str:
    said = f"{len(found['findings'])} figures of attacks of the literature on a release of {found['rows']:,} rows. "
    if not gains:
        return said + "In none of them does the intruder do better than without the release, or than its model allows."
    return (
        f"{said}In {len(gains)} of them the intruder does better than without the release and than its privacy model "
        f"allows. The worst: {_sentence(gains[0])}"
    )


def _sentence(finding: Mapping[str, Any]) -> str:
    """A finding in a sentence."""
    base = _base(finding)
    without = "" if _is_found(finding) or not base else f", {_share(base)} without the release"
    people = "" if _is_found(finding) else f" of {finding['people']:,}"
    said = "found" if _is_found(finding) else f"{finding['measures']}, {_figure(finding)}{people}"
    more = [v for n, v in finding["details"].items() if n in _TOLD and v not in ("none", "")]
    named = f" ({'; '.join(map(str, more))})" if _is_found(finding) and more else ""
    return f"{finding['attack']}, {finding['name']}: {said}{without}{named}."


_TOLD = ("columns", "order", "others", "files", "figures")


def _overview(findings: list[Mapping[str, Any]]) -> Markup:
    rows = [
        (
            f"{f['attack']}: {f['name']}",
            _figure(f),
            _share(_base(f), "none"),
            _share(f["promise"], "–"),
            _share(f["risk"], "–"),
        )
        for f in findings
    ]
    return table(("attack", "figure", "without the release", "allowed", "risk"), rows, 1)


def _lowers(findings: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What would lower the figures, with the attacks it would lower."""
    out: dict[str, list[str]] = {}
    for f in findings:
        if f["lowers"] and f["risk"] is not None and f["attack"] not in out.setdefault(f["lowers"], []):
            out[f["lowers"]].append(f["attack"])
    return [(what, ", ".join(attacks)) for what, attacks in out.items()]


def _section(findings: list[Mapping[str, Any]]) -> Markup:
    out = Markup("")
    for f in findings:
        spread = "" if _is_found(f) or f["low"] is None else f" ({_share(f['low'])} to {_share(f['high'])})"
        lines: list[tuple[Any, Any]] = [
            ("what the intruder knows", f["assumes"]),
            (f["measures"], f"{_figure(f)}{spread}"),
            *((f"without it: {name}", _share(value)) for name, value in f["baselines"].items() if not _is_found(f)),
        ]
        if f["promise"] is not None:
            lines.append(("what the privacy model allows", _share(f["promise"])))
        if f["worst"] is not None:
            lines.append((f"worst: {f['worst']['group']}", _share(f["worst"]["figure"])))
        lines += [(name.replace("_", " "), _shown(value)) for name, value in f["details"].items()]
        lines += [
            ("better than without the release and than allowed", "yes" if f["gain"] else "no"),
            ("people or guesses", f"{f['people']:,}"),
            ("what would lower it", f["lowers"]),
            ("paper", f["paper"]),
        ]
        title = f["name"][:1].upper() + f["name"][1:]
        out += table(("", ""), lines, 2, title)
    return out


def _base(finding: Mapping[str, Any]) -> float | None:
    return max(finding["baselines"].values(), default=None)


def _is_found(finding: Mapping[str, Any]) -> bool:
    """Whether the figure says that something is there, and is no share."""
    return bool(finding["measures"].startswith("1 where"))


def _figure(finding: Mapping[str, Any]) -> str:
    if _is_found(finding):
        return "found" if finding["figure"] else "not found"
    return _share(finding["figure"])


def _share(value: float | None, missing: str = "cannot be told") -> str:
    """A share as a percentage of three digits."""
    return missing if value is None else f"{100 * value:.3g}\u00a0%"


def _shown(value: Any) -> str:
    return "–" if value is None else str(number(value)) if isinstance(value, (int, float)) else str(value)


_MEANINGS = [
    ("figure", "the share of guesses that are right, or of people concerned; of files whether something is found"),
    ("95 % interval", "where the share lies that a sample of people leaves open"),
    ("without the release", "the same share for an intruder who has no release; the highest of several"),
    ("allowed", "the share that the privacy model of the release allows: 1/k, 1/l"),
    ("risk", "of the person it is worst for, or the share of claims that is right; what a threshold is compared with"),
    ("gain", "the whole interval lies above all that is reached without the release, and above what is allowed"),
]
