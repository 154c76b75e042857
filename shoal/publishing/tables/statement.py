"""The statements about a release: for the caller, in the public certificate file, in the private record, and as text.

The certificate file is published with the release. It contains what the released file shows, the request, a theorem's
guarantee for every input, and a single figure that depends on the original: the proved ratio, rounded up to one of a
few steps. The record contains everything else: figures of the original, bounds, method, attempts, seed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import PolicyError
from shoal.judge.tables.large import ReleaseContents
from shoal.judge.tables.privacy import judge
from shoal.judge.tables.shown import ColumnRecodings, ShownFigures, shown_loss
from shoal.model.arguments import known
from shoal.model.audit import Audit, finite
from shoal.model.cards import several
from shoal.model.certificate import FORMAT, PRIVATE_SETTINGS, PROVED, PublicCertificate, digest, promised, ratio_step
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.policy import BOUNDS
from shoal.model.refusals import READINGS
from shoal.model.rule_books import RULE_BOOKS
from shoal.publishing.documents import Documents, made_now
from shoal.publishing.tables.limits import scales_of
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
    "limited",
    "population",
    "exposed",
    "rule_book",
    "safe_harbor",
)


def privacy(release: Any) -> dict[str, Any]:
    """The level that each requested model reaches; with several sensitive columns, the weakest."""
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
    """The facts of ``--json`` as plain values."""
    return {
        "rows": release.facts.rows,
        "groups": release.audit.classes,
        "smallest_group": release.audit.smallest_class,
        "privacy": privacy(release),
        "loss": {**release.facts.cost, **_weighted(release)},
        "stars": dict(release.facts.stars),
        "changed": dict(release.facts.changed),
        "carried": release.facts.carried.as_dict(),
        "persons": dict(release.facts.persons.fewest),
        "incomplete": _plain(release.facts.missing.apart),
        "filled": _plain(release.facts.missing.filled),
        "limited": {name: dict(held) for name, held in release.facts.limited.items()},
        "population": None if release.audit.population is None else dict(release.audit.population),
        "exposed": release.facts.exposed.as_dict(),
        "rule_book": _rule_book(release),
        "safe_harbor": None if release.facts.harbor is None else release.facts.harbor.as_dict(),
        "certificate": release.certificate.as_dict(),
        "method": release.method,
        "attempts": [dict(a) for a in release.attempts],
        "seconds": {k: round(v, 4) for k, v in release.seconds.items()},
        **({"composition": [c.as_dict() for c in release.composition]} if release.composition else {}),
    }


def _plain(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)


def _weighted(release: Any) -> dict[str, float]:
    """The weighted loss that the search minimizes and the certificate counts, if columns have weights."""
    weighted = release.certificate.unit == "ncp" and any(w != 1 for w in release.policy.weights.values())
    return {"weighted_ncp": float(release.certificate.cost)} if weighted else {}


def _rule_book(release: Any) -> dict[str, Any] | None:
    """The requested rule book, with its source and what it doesn't cover."""
    name = release.policy.preset
    rows = [getattr(m, "k", 0) for m in release.policy.privacy if m.applies_to != "population"]
    if name is None or max(rows, default=0) < RULE_BOOKS[name].k:
        return None
    return {"name": name, **RULE_BOOKS[name].as_dict()}


def hierarchies(release: Any) -> dict[str, dict[str, str]]:
    """SHA-256 of the content of every hierarchy, except generated ones."""
    given = {n: h for n, h in release.policy.hierarchies.items() if not (isinstance(h, str) and h in GENERATED)}
    return {name: {"sha256": digest(Hierarchy.of(source))} for name, source in given.items()}


def blanks(release: Any, held: ReleaseContents) -> list[str]:
    """The columns of a written file in which a missing value may be a suppressed one.

    This includes each column of numbers, dates, or booleans with missing cells, whether or not it has stars: the file
    would be the same, so readers can't distinguish them. It also includes columns with only missing cells, because
    pandas stores no type for a column without values, but stores one if the values were suppressed.
    """
    cells = held.cells
    gone = {c.name: cells[c.name].null_count() for c in release._placement.expected.columns if c.name in cells}
    typed = {c.name for c in release._placement.expected.columns if c.values.dtype != pl.String}
    return [name for name, count in gone.items() if count and (name in typed or count == cells.height)]


def starred_as_missing(release: Any, shown: Mapping[str, int]) -> list[str]:
    """The columns whose stars are published as missing values. shown: the number of stars that each column shows."""
    return [name for name, count in release.facts.stars.items() if count != shown[name]]


def published(release: Any, hidden: Collection[str]) -> ColumnRecodings:
    """The recodings of the columns, for readers of the file alone. hidden: the columns of ``blanks``."""
    policy = release.policy
    trees = {
        name: tree if isinstance(tree, str) and tree in GENERATED else Hierarchy.of(tree)
        for name, tree in policy.hierarchies.items()
        if name in policy.grouped
    }
    held = (policy.publish, policy.star, frozenset(hidden), trees, policy.weights, policy.notations)
    return ColumnRecodings(policy.grouped, *held)


def certificate_file(
    release: Any, path: Path, written: Mapping[str, Any], shown: ShownFigures, hidden: Collection[str], bound: bool
) -> dict[str, Any]:
    """The content of the public certificate file: a function of the released file, the request, and the rounded ratio.

    written  hash and size of the file
    shown    its figures, read from the file
    hidden   the columns of ``blanks``
    bound    whether the rounded ratio is stated
    """
    policy, proof = release.policy, release.certificate
    asked = {name: value for name, value in policy.describe().items() if name not in PRIVATE_SETTINGS}
    levels = {m.short for m in policy.of_rows if m.applies_to != "population"}
    reached = {short: level for short, level in privacy(release).items() if short in levels | {"k"}}
    if not any(m.short == "k" for m in policy.of_rows):
        reached["k"] = release.audit.k
    step = ratio_step(proof.ratio) if bound else None
    return {
        "format": FORMAT,
        "kind": "table",
        **made_now(),
        "release": {
            "file": path.name,
            "rows": release.facts.rows,
            **written,
            **({"starred_as_missing": list(hidden)} if hidden else {}),
        },
        "policy": asked,
        "hierarchies": hierarchies(release),
        "shuffled": not policy.keep_order,
        "order": release._placement.order,
        "orders": release._placement.orders,
        "missing_values": READINGS[policy.missing],
        "groups": release.audit.classes,
        "smallest_group": release.audit.smallest_class,
        "privacy": reached,
        "loss": shown.loss,
        "stars": shown.stars,
        "changed": shown.changed,
        "carried": release.facts.carried.as_dict(),
        "rule_book": _rule_book(release),
        "safe_harbor": None if release.facts.harbor is None else release.facts.harbor.as_dict(),
        "separator": release._placement.separator(path),
        "certificate": PublicCertificate(
            unit=proof.unit,
            cost=shown.cost(proof.unit, bool(policy.weights)),
            ratio_at_most=step,
            guarantee=PROVED if step == 1 else promised(asked),
        ).as_dict(),
    }


def shown_now(release: Any) -> tuple[dict[str, Any], Audit]:
    """The content of a release's certificate file, whether or not it is written, and an audit of the published rows
    alone."""
    policy, opened = release.policy, release._opened()
    cells, counts = opened.counts([*policy.grouped, *policy.sensitive])
    held = ReleaseContents(cells, counts, tuple(opened.columns))
    hidden = blanks(release, held)
    shown = shown_loss(held.cells, held.counts, published(release, hidden))
    written = release._judged.written or {"file": "release.csv"}
    about = {name: held_ for name, held_ in written.items() if name in ("sha256", "bytes", "parts", "folder")}
    content = certificate_file(release, Path(written["file"]), about, shown, hidden, policy.bound != "none")
    models = [m for m in policy.of_rows if m.applies_to != "population"]
    audit = judge(held.cells, policy.grouped, policy.sensitive, models, counts=held.counts, **scales_of(policy))
    return json.loads(json.dumps(content, default=str)), audit


def record(release: Any, path: Path, written: Mapping[str, Any], public: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the private record: everything known about the release, to check it with its original."""
    inside = facts(release)
    return {
        **{name: public[name] for name in ("format", "kind", "made_by", "made_at")},
        "private": True,  # it contains figures of the original
        "release": {"file": path.name, "rows": release.facts.rows, **written},
        "policy": release.policy.describe(),
        **{name: public[name] for name in ("hierarchies", "shuffled", "order", "orders", "missing_values")},
        **{k: inside[k] for k in RECORDED},
        "separator": release._placement.separator(path),
        "before": dict(release.facts.before),
        "attempts": inside["attempts"],
        "seconds": inside["seconds"],
        "certificate": inside["certificate"],
    }


@dataclass
class Statement:
    """The content of the certificate and the record of a written release; the judge fills it in.

    path    the file or folder
    stars   the number of stars that each column shows there
    bound   whether the certificate states the rounded ratio
    facts   hash and size of the file
    shown, hidden  what the judge read in the file, see ``ShownFigures`` and ``blanks``
    """

    release: Any
    path: Path
    stars: Mapping[str, int]
    bound: bool
    facts: dict[str, Any] = field(default_factory=dict)
    shown: ShownFigures | None = None
    hidden: Sequence[str] = ()

    def seen(self, held: ReleaseContents) -> None:
        """Count what the written file shows."""
        self.hidden = blanks(self.release, held)
        self.shown = shown_loss(held.cells, held.counts, published(self.release, self.hidden))

    def public(self) -> dict[str, Any]:
        """The content of the certificate."""
        assert self.shown is not None
        return certificate_file(self.release, self.path, self.facts, self.shown, self.hidden, self.bound)

    def private(self) -> dict[str, Any]:
        """The content of the record."""
        hidden = starred_as_missing(self.release, self.stars)
        written = {**self.facts, **({"starred_as_missing": hidden} if hidden else {})}
        return record(self.release, self.path, written, self.public())

    def files(self, papers: Documents) -> dict[str, Any]:
        """The description of the written files in a report."""
        return files_of(papers, self.path.name, self.facts)


def files_of(papers: Documents, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the written files in a report. name, facts: of the table."""
    record = {} if papers.record is None else {"record": papers.record.name}
    return {"file": name, "certificate": papers.certificate.name, **record, "signed": papers.sign is not None, **facts}


def states_bound(policy: Any, bound: str | None) -> bool:
    """Whether a certificate states the rounded ratio: by ``bound``, by default by the policy."""
    word = policy.bound if bound is None else bound
    known("choice for bound", word, BOUNDS)
    return bool(word != "none")


def choices(explored: Any, rows: int) -> dict[str, Any]:
    """The description of an explored grid in a report; {} if there is none."""
    if explored is None:
        return {}
    if not hasattr(explored, "found"):
        raise PolicyError(f"explored is one {type(explored).__name__}; pass what shoal.explore(...) returned")
    if explored.rows not in (0, rows):  # 0: no request had an answer
        raise PolicyError(
            f"what was explored is a table of {explored.rows:,} rows, and the release has {rows:,}; explore its table"
        )
    return {"explored": explored.as_dict()}


def summary(release: Any) -> list[str]:
    """Five lines about a release."""
    facts = {"certificate": release.certificate.as_dict()}
    reached = ", ".join(f"{name} = {level:.4g}" for name, level in privacy(release).items() if level is not None)
    cost, carried = release.facts.cost, ", ".join(release.facts.carried.columns)
    return [
        f"Release of {several(release.facts.rows, 'row')} in {several(release.facts.groups, 'group')}, "
        f"published as {release.policy.publish}",
        f"reached: {reached}",
        f"loss: NCP {cost['ncp']:.4g}, {cost['suppressed_tuples']:,} rows changed, "
        f"{sum(release.facts.stars.values()):,} values hidden",
        f"method {release.method}: {certificate_words(facts)}",
        "columns: "
        + ", ".join(release.policy.grouped)
        + " (recoded)"
        + (f"; {', '.join(release.policy.sensitive)} (sensitive)" if release.policy.sensitive else "")
        + (f"; {carried} (insensitive)" if carried else ""),
    ]
