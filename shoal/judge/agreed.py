"""What the certificate file of a crosswalk says twice, or in words of which there are few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.errors import VerificationError
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.model.certificate import Certificate, PublicCertificate

# of the certificate's details, those that are facts or parameters in other words
TWICE: dict[str, dict[str, str]] = {
    "labels": {"k": "k", "groups": "groups", "smallest_group": "smallest_group"},
    "intervals": {n: n for n in ("k", "groups", "smallest_group", "largest_group")},
    "regions": {
        "regions": "groups", "upper_bound": "regions_at_most", "largest": "largest_group", "l": "l", "k": "k",
        "areas": "rows", "left_out": "left_out",
    },
    "tiles": {"tiles": "groups", "smallest": "smallest_group"},
}  # fmt: skip
_SUMS = {"clusters", "left_out", "may_be_left_out", "r"}
ELSEWHERE = {"gather": _SUMS, "cellular": _SUMS | {"service", "setup", "radius"}}  # compared where costs are added up
WORDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "labels": {"objective": ("max", "count", "squares")},
    "regions": {"geographic": (True, False)},
    "tiles": {
        "objective": ("tiles", "max", "perimeter"), "coordinates": ("geographic", "projected"),
        "extent": ("plane", "data"), "center": ("mean", "draw"), "sparse": ("refuse", "leave-out"),
    },
    "gather": {"problem": ("gather",)},
    "cellular": {"problem": ("cellular",)},
}  # fmt: skip
ROUGH = 2e-6  # what integer programs solve to
OBJECTIVES = ("max", "count", "sumsq", "excess", "compact", "similar")


def agreed(record: Mapping[str, Any], stated: Certificate | PublicCertificate) -> list[Finding]:
    """Details that contradict the facts, words that are none, and what of the certificate nobody recomputes.

    Raises VerificationError for a word that is none.
    """
    kind, asked, facts = record["kind"], record["parameters"], record["facts"]
    for name, known in WORDS.get(kind, {}).items():
        if asked.get(name) not in known:
            raise VerificationError(f"the certificate file states no {name} that there is")
    if kind == "regions" and not set(str(asked.get("objective")).split(",")) <= set(OBJECTIVES):
        raise VerificationError("the certificate file states no objective that there is")
    if kind in ELSEWHERE:
        columns = [*asked["columns"], *(asked["place"] or ())]
        if sorted(name for f in asked["features"] for name in f["columns"]) != sorted(columns):
            raise VerificationError("the certificate file names other columns than those of its features")
    if kind == "regions" and asked["l"] > 1 and not asked["sensitive"]:
        raise VerificationError("the certificate file asks for diverse regions, and names no sensitive column")
    if isinstance(stated, PublicCertificate):
        return promised(stated)
    twice = TWICE.get(kind, {})
    expected = {detail: facts[name] if name in facts else asked[name] for detail, name in twice.items()}
    odd = [detail for detail, value in expected.items() if stated.details.get(detail) != value]
    if kind == "regions":
        odd += unmet(asked, stated.details)
    found = []
    if twice:
        text = f"its details contradict its facts about {odd[0]!r}" if odd else "its details and its facts agree"
        found.append(Finding("details", not odd, text, CONSISTENT))
    if kind == "tiles":
        most, there = stated.details.get("tiles_at_most"), facts["groups"]
        fits = type(most) is int and type(there) is int and most >= there
        found.append(Finding("tiles at most", fits, f"{there} tiles, at most {most} certified", CONSISTENT))
    run = stated.details.get("run")
    told_apart = {"run"} if isinstance(run, Mapping) else set()
    rest = sorted(set(stated.details) - set(twice) - ELSEWHERE.get(kind, set()) - told_apart)
    if rest:
        found.append(Finding("other details", True, f"{', '.join(rest)} rest on the certificate", STATED))
    if isinstance(run, Mapping):
        how = ", ".join(f"{name} {held}" for name, held in run.items())
        found.append(Finding("how it was made", True, f"{how}: rests on the certificate", STATED))
    return [*found, *promised(stated)]


def unmet(asked: Mapping[str, Any], details: Mapping[str, Any]) -> list[str]:
    """Conditions on regions that the details of their certificate do not speak of, or speak of though nobody asked."""
    odd = []
    if (asked.get("soft_boundary") is not None) != ("regions_across_soft_boundaries" in details):
        odd.append("soft_boundary")
    sums, diameter = dict(asked.get("at_most") or {}), asked.get("max_diameter")
    capped, known = bool(sums) or diameter is not None, "left_out_by_maxima" in details
    if (capped and not known) or (known and not capped and asked.get("apart") is None):
        odd.append("at_most, max_diameter or apart")
    own = {"sums": sorted(sums.values()), "diameter": diameter}
    if details.get("maxima", own) != own:  # certificates of old say nothing of them
        odd.append("at_most or max_diameter")
    return odd


def promised(stated: Certificate | PublicCertificate) -> list[Finding]:
    """What a theorem promises, where one does; it cannot promise an optimum that cost and bound leave open."""
    promise = stated.guarantee
    if promise.factor is None and promise.additive is None:
        return []
    if promise.factor is None:
        return [Finding("guarantee", False, "it promises a term without a factor")]
    if isinstance(stated, PublicCertificate):
        proved = stated.ratio_at_most == 1
    else:
        proved = stated.cost <= stated.lower_bound * (1 + ROUGH)
    if promise.factor == 1 and not promise.additive and not proved:
        return [Finding("guarantee", False, "its theorem makes the answer optimal, its cost and lower bound do not")]
    more = f" plus {promise.additive:g}" if promise.additive else ""
    text = f"{promise.factor:g} times the least{more}: {promise.theorem}"
    return [Finding("guarantee", True, text, STATED)]
