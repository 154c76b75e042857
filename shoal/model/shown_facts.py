"""What the public certificate file of a crosswalk holds: what the files written show, what was asked, and one rung.

The record beside it holds the rest: seed, method, bounds, and every figure that the files do not show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shoal.model.certificate import Certificate, Guarantee, PublicCertificate, rung
from shoal.model.promised import PROVED

_SIZES = ("groups", "smallest_group", "largest_group")
USUAL = ("rows", *_SIZES)  # of a kind that is not listed
FACTS: dict[str, tuple[str, ...]] = {  # figures that the crosswalk itself shows
    "labels": ("rows", "records", *_SIZES),
    "intervals": ("rows", "records", *_SIZES),
    "regions": ("rows", "left_out", *_SIZES),
    "tiles": ("rows", "records", *_SIZES),
    "gather": ("rows", "records", "radius", *_SIZES),
    "cellular": ("rows", "records", "radius", *_SIZES),
}
COMPANIONS: dict[str, tuple[str, ...]] = {  # figures that a companion shows where the crosswalk is not written
    "regions": ("rows", "groups", "left_out"),
    "tiles": _SIZES,
    "gather": FACTS["gather"],
    "cellular": FACTS["cellular"],
}
LEVEL = ("left_out", *_SIZES)  # figures of a further level of regions
_OF_LEVEL = {"regions": ("groups", "left_out")}
_BY_SIZE = ("max", "count", "squares", "sumsq")  # objectives whose cost follows from the sizes of the groups
ENTRIES = {  # all that a certificate file may hold
    *("format", "kind", "made_by", "made_at", "release", "also", "parameters", "facts", "separator", "certificate"),
    *("seal", "signature"),
}
FIXED = ("labels", "intervals", "tiles")  # kinds whose promise depends on what was asked alone


def facts(kind: str, known: Mapping[str, Any], whole: bool) -> dict[str, Any]:
    """The figures that the files show; whole: whether the crosswalk itself is among them."""
    names = FACTS.get(kind, USUAL) if whole else COMPANIONS.get(kind, ())
    found = {name: known[name] for name in names}
    if known.get("levels"):
        own = LEVEL if whole else _OF_LEVEL.get(kind, ())
        found["levels"] = [{name: level[name] for name in own} for level in known["levels"]]
    return found


def parameters(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, without the scales of features, which are spans of the original's columns."""
    if "features" not in asked:
        return dict(asked)
    features = [{name: held for name, held in f.items() if name != "scale"} for f in asked["features"]]
    return {**asked, "features": features}


def shows_cost(kind: str, asked: Mapping[str, Any], whole: bool) -> bool:
    """Whether the files show what the answer costs; whole: as of ``facts``."""
    if kind in ("gather", "cellular"):
        own = asked["center"] == "record" and not asked["epsilon"]
        return own and asked.get("setup_cost") != "per record"
    first = str(asked.get("objective")).split(",")[0]
    if kind == "tiles":
        return True
    if kind == "regions":
        plain = not (asked.get("fixed") or asked.get("soft_boundary"))
        return whole and (first in ("max", "sumsq") or (first == "count" and plain))
    return first in _BY_SIZE


def certificate(kind: str, asked: Mapping[str, Any], known: Certificate, whole: bool, bound: bool) -> PublicCertificate:
    """Cost where the files show it, the rung of the ratio where it is wanted, and what is promised of every input."""
    step = rung(known.ratio) if bound else None
    promise = known.guarantee if kind in FIXED else Guarantee()
    if kind == "labels" and promise.factor == 1:  # a search that was finished: the rung says so
        promise = Guarantee()
    return PublicCertificate(
        unit=known.unit,
        cost=known.cost if shows_cost(kind, asked, whole) else None,
        ratio_at_most=step,
        guarantee=PROVED if step == 1 else promise,
    )


def content(
    record: Mapping[str, Any], known: Certificate, hidden: Collection[str], whole: bool, bound: bool
) -> dict[str, Any]:
    """The certificate file, made of the record; hidden: the record's entries that it leaves out."""
    kind, asked = record["kind"], record["parameters"]
    return {
        **{name: held for name, held in record.items() if name not in hidden},
        "parameters": parameters(asked),
        "facts": facts(kind, record["facts"], whole),
        "certificate": certificate(kind, asked, known, whole, bound).as_dict(),
    }


def stray(public: Mapping[str, Any]) -> list[str]:
    """What a certificate file holds that none of its kind does."""
    known, found = public.get("facts"), public.get("certificate")
    odd = sorted(set(public) - ENTRIES)
    if isinstance(known, Mapping):
        odd += sorted(
            set(known) - {*FACTS.get(str(public["kind"]), USUAL), *COMPANIONS.get(str(public["kind"]), ()), "levels"}
        )
        for level in known.get("levels") or []:
            odd += sorted(set(level) - set(LEVEL)) if isinstance(level, Mapping) else ["levels"]
    return odd if isinstance(found, Mapping) else [*odd, "certificate"]


def differs(public: Mapping[str, Any], private: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What a record says otherwise than its certificate file; names: entries of both that are the same."""
    odd = [name for name in names if public.get(name) != private.get(name)]
    odd += [] if public.get("parameters") == parameters(private["parameters"]) else ["parameters"]
    stated = dict(public.get("facts") or {})
    levels = stated.pop("levels", [])
    odd += [name for name, held in stated.items() if private["facts"].get(name) != held]
    own = private["facts"].get("levels") or levels
    pairs = [(a, b) for a, b in zip(levels, own, strict=False)]
    odd += ["levels"] if len(levels) != len(own) or any(b.get(n) != v for a, b in pairs for n, v in a.items()) else []
    return odd
