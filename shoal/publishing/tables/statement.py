"""What a release says of itself: plain facts, the record that is its certificate file, five lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import PolicyError
from shoal.judge.file import seal
from shoal.model.audit import finite
from shoal.model.cards import several
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.missing import missing_words
from shoal.model.record import digest
from shoal.model.rule_books import RULE_BOOKS
from shoal.publishing import signing
from shoal.publishing.origin import made_now
from shoal.report.words import certificate_words

RECORDED = (
    "groups",
    "smallest_group",
    "privacy",
    "loss",
    "stars",
    "changed",
    "carried",
    "method",
    "persons",
    "incomplete",
    "filled",
    "population",
    "exposed",
    "rule_book",
    "safe_harbor",
)


def privacy(release: Any) -> dict[str, Any]:
    """Level reached by each model asked for; several sensitive columns: the weakest."""
    out: dict[str, Any] = {}
    weaker_of = {model.short: model.weaker for model in release.policy.privacy}
    for found in release.audit.checks:
        weaker = weaker_of[found.short]
        known = out.get(found.short)
        level = finite(found.level)
        out[found.short] = level if known is None or level is None else weaker(known, level)
    if "k" not in out:
        out["k"] = release.audit.k
    return out


def facts(release: Any) -> dict[str, Any]:
    """The facts of ``--json``: plain values only."""
    return {
        "rows": release.rows,
        "groups": release.audit.classes,
        "smallest_group": release.audit.smallest_class,
        "privacy": privacy(release),
        "loss": {**release.cost, **_weighted(release)},
        "stars": dict(release.stars),
        "changed": dict(release.changed),
        "carried": release.carried.as_dict(),
        "persons": dict(release.persons),
        "incomplete": None if release.incomplete is None else dict(release.incomplete),
        "filled": None if release.filled is None else dict(release.filled),
        "population": None if release.audit.population is None else dict(release.audit.population),
        "exposed": release.exposed.as_dict(),
        "rule_book": _rule_book(release),
        "safe_harbor": None if release.harbor is None else release.harbor.as_dict(),
        "certificate": release.certificate.as_dict(),
        "method": release.method,
        "attempts": [dict(a) for a in release.attempts],
        "seconds": {k: round(v, 4) for k, v in release.seconds.items()},
    }


def _weighted(release: Any) -> dict[str, float]:
    """The loss that was searched down where columns count by weights: what the certificate counts, told by its name."""
    weighted = release.certificate.unit == "ncp" and any(w != 1 for w in release.policy.weights.values())
    return {"weighted_ncp": float(release.certificate.cost)} if weighted else {}


def _rule_book(release: Any) -> dict[str, Any] | None:
    """The rule asked for by name, where it comes from and what it leaves to others."""
    name = release.policy.preset
    rows = [getattr(m, "k", 0) for m in release.policy.privacy if m.speaks != "population"]
    if name is None or max(rows, default=0) < RULE_BOOKS[name].k:
        return None
    return {"name": name, **RULE_BOOKS[name].as_dict()}


def hierarchies(release: Any) -> dict[str, dict[str, str]]:
    """SHA-256 of every hierarchy's content as it was given; generated ones are left out."""
    given = {n: h for n, h in release.policy.hierarchies.items() if not (isinstance(h, str) and h in GENERATED)}
    return {name: {"sha256": digest(Hierarchy.of(source))} for name, source in given.items()}


def shown_facts(release: Any, shown: Mapping[str, int]) -> dict[str, Any]:
    """The columns whose stars stand as missing values; shown: the stars each column shows."""
    hidden = [name for name, count in release.stars.items() if count != shown[name]]
    return {"starred_as_missing": hidden} if hidden else {}


def record(release: Any, path: Path, written: Mapping[str, Any]) -> dict[str, Any]:
    """What the certificate file holds."""
    inside = facts(release)
    return {
        "format": 1,
        "kind": "table",
        **made_now(),
        "release": {"file": path.name, "rows": release.rows, **written},
        "policy": release.policy.describe(),
        "hierarchies": hierarchies(release),
        "shuffled": not release.policy.keep_order,
        "order": release.order,
        "orders": release.orders,
        "missing_values": missing_words(release.policy.missing),
        **{k: inside[k] for k in RECORDED},
        "separator": release._separator(path),
        "certificate": inside["certificate"],
    }


def certify(release: Any, path: Path, written: Mapping[str, Any], sign: str | Path | None, temporary: Path) -> None:
    """Write the certificate file of a release that stands at ``path``."""
    made = json.loads(json.dumps(record(release, path, written), default=str))
    made["seal"] = seal(made)
    if sign is not None:
        made = signing.sign(made, sign)
    text = json.dumps(made, indent=2, ensure_ascii=False)
    temporary.write_text(text + "\n", encoding="utf-8")


def files(path: Path, beside: Path, sign: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says of the files that left."""
    return {"file": path.name, "certificate": beside.name, "signed": sign is not None, **facts}


def choices(explored: Any, rows: int) -> dict[str, Any]:
    """What a report says of the grid that was tried before; {} where none is handed over."""
    if explored is None:
        return {}
    if not hasattr(explored, "found"):
        raise PolicyError(f"explored is one {type(explored).__name__}; hand over what shoal.explore(...) returned")
    if explored.rows not in (0, rows):  # 0: no request had an answer
        raise PolicyError(
            f"what was explored is a table of {explored.rows:,} rows, and the release has {rows:,}; explore its table"
        )
    return {"explored": explored.as_dict()}


def summary(release: Any) -> list[str]:
    """Five lines about a release."""
    facts = {"certificate": release.certificate.as_dict()}
    reached = ", ".join(f"{name} = {level:.4g}" for name, level in privacy(release).items() if level is not None)
    cost = release.cost
    return [
        f"Release of {several(release.rows, 'row')} in {several(release.groups, 'group')}, "
        f"published as {release.policy.publish}",
        f"reached: {reached}",
        f"loss: NCP {cost['ncp']:.4g}, {cost['suppressed_tuples']:,} rows changed, "
        f"{sum(release.stars.values()):,} values hidden",
        f"method {release.method}: {certificate_words(facts)}",
        "columns: "
        + ", ".join(release.policy.grouped)
        + " (recoded); "
        + (", ".join(release.policy.sensitive) or "none")
        + " (sensitive)"
        + ("; " + ", ".join(release.carried.columns) + " (carried untouched)" if release.carried.columns else ""),
    ]
