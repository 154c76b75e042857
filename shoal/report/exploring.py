"""Pages that compare: an exploration of a grid of requests, a comparison of releases, and an attack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from markupsafe import Markup

from shoal.errors import MissingDependencyError
from shoal.model.cards import number
from shoal.report.parts import listed, meanings, part, rendered, whole
from shoal.report.parts import table as table_of_rows

# Okabe and Ito's palette, which people with color vision deficiency can distinguish.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

_FRAME = (64, 16, 760, 360)  # left, top, width, height


def by_publishing(points: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The points for which a release exists, by way to publish and l, in the order of their risk."""
    out: dict[str, list[Mapping[str, Any]]] = {}
    for p in points:
        if p["loss"] is not None:
            out.setdefault(p["publish"] + (f", l = {p['l']}" if p["l"] > 1 else ""), []).append(p)
    return {name: sorted(held, key=lambda p: (p["risk"], p["loss"])) for name, held in out.items()}


def draw_exploration(points: Sequence[Mapping[str, Any]], axes: Any = None) -> Any:
    """Draw loss against risk on matplotlib axes (new ones if None), and return the axes."""
    if axes is None:
        axes = _figure().subplots()
    for i, (name, held) in enumerate(by_publishing(points).items()):
        color = COLORS[i % len(COLORS)]
        axes.plot([p["risk"] for p in held], [p["loss"] for p in held], "o-", color=color, label=name, markersize=4)
        for p in held:
            axes.annotate(f"k = {p['k']}", (p["risk"], p["loss"]), textcoords="offset points", xytext=(5, 4))
            if p["frontier"]:
                axes.plot(p["risk"], p["loss"], "o", markersize=11, fillstyle="none", color=color)
    axes.set_xlabel("highest risk to be found (one over the smallest group)")
    axes.set_ylabel("loss (NCP)")
    axes.margins(x=0.12, y=0.12)  # space for the labels of points
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _figure() -> Any:
    """A figure that notebooks display, whether or not pyplot was used before."""
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    return Picture(figsize=(7, 4.2), layout="constrained")


def exploration_table(points: Sequence[Mapping[str, Any]]) -> Markup:
    """An HTML table of all points, with the frontier marked."""
    return part("explore_table.html", "table", points)


def exploration_picture(points: Sequence[Mapping[str, Any]]) -> Markup:
    """Loss against risk as inline SVG, with rings around the points of the frontier."""
    held = [p for p in points if p["loss"] is not None]
    if not held:
        return part("parts.html", "paragraph", "No release exists at any point of the grid.", "")
    left, top, wide, high = _FRAME
    most_risk, most_loss = (_round_end(more * max(p[n] for p in held)) for n, more in (("risk", 1.1), ("loss", 1.15)))
    ticks = [
        (left + wide * i // 5, top + high - high * i // 5, f"{most_risk * i / 5:.3g}", f"{most_loss * i / 5:.3g}")
        for i in range(6)
    ]
    named: list[tuple[int, float, float]] = []  # points that almost coincide share a label
    lines = []
    for i, (name, line) in enumerate(by_publishing(points).items()):
        drawn = []
        for p in line:
            x, y = left + wide * p["risk"] / most_risk, top + high * (1 - p["loss"] / most_loss)
            sentence = f"{name}, k = {p['k']}: loss {p['loss']:.4f}, risk {p['risk']:.3f}, {p['groups']:,} groups"
            free = all(p["k"] != k or abs(x - a) + abs(y - b) > 20 for k, a, b in named)
            if free:
                named.append((p["k"], x, y))
            word = f"k = {p['k']}" if free else ""
            drawn.append({"at": (x, y), "said": sentence, "frontier": p["frontier"], "named": word})
        lines.append({"name": name, "color": COLORS[i % len(COLORS)], "points": drawn})
    return part("pictures.html", "grid", _FRAME, top + high + 60 + 18 * len(lines), ticks, lines)


def _round_end(most: float) -> float:
    """The least round end of an axis that is at least ``most``, with readable fifths; 1 if there is no data."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / 5))
    return 5 * power * next(m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if 5 * m * power >= most * (1 - 1e-9))


def exploration_page(explored: Mapping[str, Any]) -> str:
    """The page of an exploration. explored: ``Exploration.as_dict()``"""
    picture = exploration_picture(explored["points"])
    return rendered("explore.html", **explored, picture=picture, asked_words=_asked(explored))


def _asked(explored: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings common to all points, (name, value); empty if the figures of an older version lack them."""
    request = explored["request"]
    if not request:
        return []
    policy, grid = request["policy"], request["grid"]
    limits = {
        "one person": policy["person"] and f"the rows with one value of {policy['person']}",
        "mean risk": policy["max_average_risk"] and f"at most {policy['max_average_risk']:g}",
        "rows hidden whole": policy["max_suppressed"] and f"at most {100 * policy['max_suppressed']:g} %",
        "hierarchies": ", ".join(f"{name}: {held}" for name, held in policy["hierarchies"].items()),
        "weights": ", ".join(f"{name} {held:g}" for name, held in policy["weights"].items()),
        "range ends": ", ".join(f"{name} every {held}" for name, held in policy["range_step"].items()),
        "identifiers (left out)": ", ".join(policy["identifiers"]),
    }
    return [
        ("file", request["file"] or "a table in memory"),
        ("quasi-identifiers", ", ".join(policy["quasi_identifiers"])),
        ("sensitive", ", ".join(policy["sensitive"]) or "none"),
        ("tried", "; ".join(f"{name} = {', '.join(map(str, held))}" for name, held in grid.items())),
        ("also asked of every point", "; ".join(request["models"]) or "nothing: k and l alone"),
        *((what, how) for what, how in limits.items() if how),
        ("missing values", policy["missing"]),
        ("effort of each point", str(policy["effort"])),
    ]


def comparison_page(found: Mapping[str, Any], head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The page of a comparison.

    found       ``Comparison.as_dict()``
    head, rows  its main figures, a row for each release
    """
    kept = [i for i in range(len(head)) if any(row[i] is not None for row in rows)]
    lines = [[head[i], *("–" if row[i] is None else row[i] for row in rows)] for i in kept[1:]]
    readings = [f"{name.replace(chr(95), chr(32))}: {sentence}" for name, sentence in found["readings"].items()]
    lead = (
        f"{len(rows) - 1} {'release' if len(rows) == 2 else 'releases'} of a table of {found['rows']:,} rows, each "
        "judged and used in the same way, with the original. For k and l, more is better; for losses, errors, and "
        "distances less."
    )
    sections = [
        ("Side by side", table_of_rows(("", *(row[0] for row in rows)), lines, 1, "Releases of one table")),
        *([("What to look at", listed(found["notes"]))] if found["notes"] else []),
        ("How stars and missing values were read", listed(readings)),
        ("What the figures mean", meanings([(head[i], MEANINGS[head[i]]) for i in kept if head[i] in MEANINGS])),
    ]
    return whole(
        "Releases compared", ", ".join(str(row[0]) for row in rows[1:]), "Releases of one table", lead, sections, found
    )


MEANINGS = {
    "k": "rows of the smallest group of rows alike",
    "k by wildcards": "the same where a star or a missing value may be anything",
    "l": "one over the largest share of a sensitive value in a group",
    "simultaneous l": "rows that differ in every sensitive column and among which every row lies in its group",
    "k-map": "people of the population that the group which fits fewest fits",
    "presence": "the largest share of a group in the people that it fits",
    "loss (NCP)": "mean loss of a published value: 0 is the value itself, 1 is nothing left",
    "share of values hidden": "cells of which nothing is left",
    "query error, median": "counts of random ranges from the release against those from the original, half are nearer",
    "query error, p90": "the same, nine of ten are nearer",
    "distance of marginals": "how far each column's distribution moved, 0 not at all, 1 entirely",
    "change of correlations": "mean change of the correlations between numbers",
    "accuracy": "of a classifier that learned from the release, on rows of the original",
    "AUC": "the same by rank: 0.5 is a coin, 1 is perfect",
}


TITLES = {
    "linkage": "Linkage: whose row is this?",
    "inference": "Inference: what is this person's value?",
    "minimality": "Minimality: what was hidden because it had to be",
    "downcoding": "Downcoding: the value of a hidden cell",
    "composition": "Composition: one person in several releases",
    "files": "Files: order, metadata, and what is published with the release",
}


def attack_page(found: Mapping[str, Any]) -> str:
    """The page of an attack's figures, worst first. found: ``Attack.as_dict()``"""
    findings = sorted(found["findings"], key=_severity)
    gains = [f for f in findings if f["gain"]]
    rest = [f for f in findings if not f["gain"]]
    sections = []
    if gains:
        sections.append(("What an intruder reaches, worst first", _overview(gains)))
    if rest:
        sections.append(("Where nothing is gained", _overview(rest)))
    if lowers := _remedies(gains):
        sections.append(("What would lower it", table_of_rows(("what", "which attacks"), lowers, 2)))
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


def _severity(finding: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
    """The sort key, worst first: gains about a person, by risk, then by the excess over the promise."""
    allowed = max([*finding["baselines"].values(), finding["promise"] or 0.0])
    above = (finding["low"] or 0.0) - allowed
    risk = finding["risk"] or 0.0
    return not finding["gain"], finding["risk"] is None, -risk, -above


def _lead(found: Mapping[str, Any], gains: list[Mapping[str, Any]]) -> str:
    sentence = f"{len(found['findings'])} figures of attacks of the literature on a release of {found['rows']:,} rows. "
    if not gains:
        return (
            sentence + "In none of them does the intruder do better than without the release, or than its model allows."
        )
    return (
        f"{sentence}In {len(gains)} of them the intruder does better than without the release and than its privacy "
        f"model allows. The worst: {_sentence(gains[0])}"
    )


def _sentence(finding: Mapping[str, Any]) -> str:
    """A finding in a sentence."""
    base = _base(finding)
    without = "" if _is_found(finding) or not base else f", {_share(base)} without the release"
    people = "" if _is_found(finding) else f" of {finding['people']:,}"
    sentence = "found" if _is_found(finding) else f"{finding['measures']}, {_attack_figure(finding)}{people}"
    more = [v for n, v in finding["details"].items() if n in _TOLD and v not in ("none", "")]
    named = f" ({'; '.join(map(str, more))})" if _is_found(finding) and more else ""
    return f"{finding['attack']}, {finding['name']}: {sentence}{without}{named}."


_TOLD = ("columns", "order", "others", "files", "figures")


def _overview(findings: list[Mapping[str, Any]]) -> Markup:
    rows = [
        (
            f"{f['attack']}: {f['name']}",
            _attack_figure(f),
            _share(_base(f), "none"),
            _share(f["promise"], "–"),
            _share(f["risk"], "–"),
        )
        for f in findings
    ]
    return table_of_rows(("attack", "figure", "without the release", "allowed", "risk"), rows, 1)


def _remedies(findings: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Measures that lower the figures, each with the attacks that it affects."""
    out: dict[str, list[str]] = {}
    for f in findings:
        if f["lowers"] and f["risk"] is not None and f["attack"] not in out.setdefault(f["lowers"], []):
            out[f["lowers"]].append(f["attack"])
    return [(what, ", ".join(attacks)) for what, attacks in out.items()]


def _section(findings: list[Mapping[str, Any]]) -> Markup:
    """A table of every figure of an attack."""
    out = Markup("")
    for f in findings:
        spread = "" if _is_found(f) or f["low"] is None else f" ({_share(f['low'])} to {_share(f['high'])})"
        lines: list[tuple[Any, Any]] = [
            ("what the intruder knows", f["assumes"]),
            (f["measures"], f"{_attack_figure(f)}{spread}"),
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
        out += table_of_rows(("", ""), lines, 2, title)
    return out


def _base(finding: Mapping[str, Any]) -> float | None:
    return max(finding["baselines"].values(), default=None)


def _is_found(finding: Mapping[str, Any]) -> bool:
    """Whether the figure reports that something was found, instead of a share."""
    return bool(finding["measures"].startswith("1 where"))


def _attack_figure(finding: Mapping[str, Any]) -> str:
    if _is_found(finding):
        return "found" if finding["figure"] else "not found"
    return _share(finding["figure"], "unknown" if finding["people"] else "nothing to guess")


def _share(value: float | None, missing: str = "unknown") -> str:
    """A share as a percentage with three digits."""
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
