"""A release's certificate file or record as values: read, and refused where something is missing or of a wrong form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import CertificateError, InputError, PolicyError
from shoal.judge.file import seal
from shoal.judge.finding import CONSISTENT, Finding
from shoal.judge.originals.exposure import Shares
from shoal.judge.originals.original import Stated
from shoal.model.certificate import Certificate, PublicCertificate, rung
from shoal.model.policy import Policy
from shoal.model.record import FORMAT, PRIVATE_SETTINGS, read_json
from shoal.model.rule_books import RULE_BOOKS
from shoal.model.safe_harbor import NAME, RULES, Harbor
from shoal.model.ways import WAYS

PARTS = {
    "release",
    "policy",
    "certificate",
    "stars",
    "changed",
    "loss",
    "privacy",
    "groups",
    "smallest_group",
    "carried",
}
PUBLIC = PARTS | {  # all that a certificate file may hold
    *("format", "kind", "made_by", "made_at", "hierarchies", "shuffled", "order", "orders", "missing_values"),
    *("rule_book", "safe_harbor", "separator", "seal", "signature", "series"),
}
LOSSES = {"stars", "suppressed_tuples", "ncp"}
PRIVATE = "private"  # the key that a record has, and no certificate


@dataclass(frozen=True, kw_only=True)
class Record:
    """A certificate file or a record, every part of the form it should have.

    stated  of a record cost and bound as they are, of a certificate file what is public of them
    """

    raw: Mapping[str, Any]
    policy: Policy
    stated: Certificate | PublicCertificate
    ratio: float | None
    said: Stated
    sha256: str
    rows: int
    groups: int
    smallest: int
    levels: Mapping[str, float | None]
    separator: str | None
    orders: Mapping[str, list[str]]  # of sensitive columns with an order of their own
    hierarchies: Mapping[str, tuple[str, str | None]]  # column -> name of its source, hash
    harbor: Harbor | None
    carried: frozenset[str]

    @property
    def private(self) -> bool:
        """Whether this is a record, which tells figures of the original."""
        return PRIVATE in self.raw


def read_record(path: str | Path, private: bool = False) -> dict[str, Any]:
    """The certificate file written beside a release, or its record; InputError when it is not what was wanted."""
    path = Path(path)
    record = read_json(path)
    if record.get("kind", "table") == "table" and not set(record) >= PARTS:
        if "certificate" in record or "lower_bound" in record:
            raise InputError(
                f"{path.name!r} is a certificate, but not one of a release of a table: it says cost and bound, and not "
                "of which file"
            )
        raise InputError(f"{path.name!r} is not a certificate file of shoal (no release, policy, stars or certificate)")
    if record.get("format") != FORMAT:
        raise InputError(f"{path.name!r} has another format than this version reads; make the release again")
    if record.get(PRIVATE, False) is not private:
        kinds = ("a certificate", "a record")
        raise InputError(
            f"{path.name!r} is {kinds[not private]}, and {kinds[private]} is wanted here: a release is verified with "
            "its certificate, and with --record (record=...) beside its original with the record too"
        )
    return record


def parsed(record: Mapping[str, Any], sheet: bool) -> Record:
    """Every part in its place and of its type; InputError or CertificateError otherwise."""
    try:
        asked, facts = record["policy"], record["release"]
        policy = _policy(asked)
        kind = Certificate if PRIVATE in record else PublicCertificate
        stated = kind.from_dict(record["certificate"])
        float(_number(stated.guarantee.factor or 1)), float(_number(stated.guarantee.additive or 0))
        said = _said(record, policy, stated, sheet)
        given, hashes = dict(asked["hierarchies"]), dict(record.get("hierarchies") or {})
        named = {str(n): (str(s), str(hashes[n]["sha256"]) if n in hashes else None) for n, s in given.items()}
        pair = asked.get("coordinates")
        if pair is not None and len(_texts(pair)) != 2:
            raise TypeError
        _refuse_unasked(record, policy)
        separator = record.get("separator")
        if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or not separator.isascii()):
            raise InputError("the certificate file names a separator that is not one character")
        return Record(
            raw=record,
            policy=policy,
            stated=stated,
            ratio=None if record["certificate"].get("ratio") is None else _number(record["certificate"]["ratio"]),
            said=said,
            sha256=str(facts["sha256"]),
            rows=_count(facts["rows"]),
            groups=_count(record["groups"]),
            smallest=_count(record["smallest_group"]),
            levels={str(n): None if v is None else _number(v) for n, v in dict(record["privacy"]).items()},
            separator=separator,
            orders={c: _texts(order) for c, order in dict(record.get("orders") or {}).items() if c in policy.sensitive},
            hierarchies=named,
            harbor=_harbor(record.get("safe_harbor")),
            carried=frozenset(_texts(record["carried"]["columns"])),
        )
    except (InputError, CertificateError):
        raise
    except PolicyError as error:
        raise InputError(f"the certificate file holds a policy that cannot be: {error!s}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError):
        raise InputError("the certificate file lacks something, or holds it in a wrong form") from None


def belongs(public: Record, private: Record) -> list[Finding]:
    """Whether a record is that of this certificate: of the same file, request and figures, and of the ratio stated."""
    stated, known = public.stated, private.stated
    assert isinstance(stated, PublicCertificate) and isinstance(known, Certificate)  # noqa: PT018
    asked = {name: value for name, value in private.raw["policy"].items() if name not in PRIVATE_SETTINGS}
    alike = ("hierarchies", "order", "shuffled", "orders", "groups", "smallest_group", "carried", "safe_harbor")
    odd = [name for name in alike if public.raw.get(name) != private.raw.get(name)]
    odd += [name for name, level in public.levels.items() if private.levels.get(name) != level]
    odd += [] if public.sha256 == private.sha256 else ["release"]
    odd += [] if asked == public.raw["policy"] else ["policy"]
    text = f"it says otherwise than the certificate about {odd[0]!r}" if odd else "it is the certificate's record"
    step = rung(known.ratio)
    silent = stated.ratio_at_most is None
    right = silent or step == stated.ratio_at_most
    said = "the certificate states no ratio" if silent else f"at most {stated.ratio_at_most} certified"
    shown = "none is proved" if known.ratio is None else f"{float(known.ratio):.6g} proved"
    sealed = private.raw.get("seal") == seal(private.raw)
    return [
        Finding("record", not odd, text, CONSISTENT),
        Finding("record's seal", sealed, "unchanged" if sealed else "it was changed after it was written", CONSISTENT),
        Finding("ratio", right, f"{shown}; {said}", CONSISTENT),
    ]


def _policy(asked: Mapping[str, Any]) -> Policy:
    """What was asked, as far as the release shows whether it holds."""
    return Policy.of(
        quasi_identifiers=asked["quasi_identifiers"],
        sensitive=asked["sensitive"],
        identifiers=asked["identifiers"],
        insensitive=asked.get("insensitive", ()),
        population=asked.get("population"),
        population_weights=asked.get("population_weights"),
        person=asked.get("person"),
        household=asked.get("household"),
        max_average_risk=asked.get("max_average_risk"),
        minimality=asked.get("minimality"),
        privacy=asked["privacy"],
        star=asked["star"],
        missing=asked.get("missing", "category"),
        weights=asked["weights"],
        hierarchies={n: h for n, h in dict(asked["hierarchies"]).items() if n in asked["sensitive"]},
        **({"publish": "ranges", "range_step": asked["range_step"]} if asked.get("range_step") else {}),
        global_recoding=bool(asked.get("global_recoding", False)),
        max_suppressed=asked.get("max_suppressed", 0.0),
        preset=asked.get("preset"),
    )


def _refuse_unasked(record: Mapping[str, Any], policy: Policy) -> None:
    """InputError for a part that tells of what was not asked for, which nothing would look at."""
    book = None if policy.preset is None else RULE_BOOKS[policy.preset]
    if PRIVATE not in record:
        stray = sorted(
            {*(set(record) - PUBLIC), *(set(record["loss"]) - LOSSES if isinstance(record["loss"], dict) else {"loss"})}
        )
        if stray:
            raise InputError(f"the certificate file holds {stray[0]!r}, which no certificate of a table has")
    asked = {
        "persons": bool(policy.units),
        "population": policy.population is not None or bool(policy.weighed),
        "incomplete": policy.missing == "apart",
        "filled": policy.missing == "filled",
        "rule_book": book is not None,
        "safe_harbor": policy.preset == NAME,
    }
    for name, wanted in asked.items():
        if record.get(name) and not wanted:
            raise InputError(f"the certificate file tells of {name!r}, which its policy does not ask for")
    entry = record.get("rule_book")
    if book is not None and (
        not isinstance(entry, dict) or (entry.get("name"), entry.get("k")) != (policy.preset, book.k)
    ):
        raise InputError(f"the certificate file tells of another rule book than {policy.preset!r}, which was asked for")
    if policy.preset == NAME and record.get("safe_harbor") is None:
        raise InputError("the certificate file does not say which columns the Safe Harbor let stand, and how")


def _said(record: Mapping[str, Any], policy: Policy, stated: Certificate | PublicCertificate, sheet: bool) -> Stated:
    """What the file says of the release's cells."""
    publish = record["policy"]["publish"]
    if publish not in WAYS:
        raise PolicyError.unknown("way to publish", str(publish), WAYS)
    private = isinstance(stated, Certificate)
    stars = {str(n): _count(x) for n, x in dict(record["stars"]).items()}
    none = () if private else (None,)
    changed = {str(n): x if x in none else _count(x) for n, x in dict(record["changed"]).items()}
    if not set(stars) == set(changed) == set(policy.quasi_identifiers):
        raise InputError("the certificate file counts stars of other columns than its quasi-identifiers")
    blanks = frozenset(map(str, record["release"].get("starred_as_missing", ())))
    return Stated(
        policy=policy,
        publish=publish,
        weights=policy.weights,
        unit=str(stated.unit),
        cost=_number(stated.cost) if isinstance(stated, Certificate) else None,
        bound=_number(stated.lower_bound) if isinstance(stated, Certificate) else None,
        stars=stars,
        changed=changed if private else None,
        blanks=blanks & set(stars),
        loss={n: _number(record["loss"][n]) for n in ("stars", "suppressed_tuples", "ncp")} if private else None,
        exposed=_exposed(record["exposed"], publish not in ("stars", "hierarchy", "centers")) if private else None,
        sheet=sheet,
    )


def _exposed(entry: Any, shows: bool) -> Shares:
    """Shares of the groups, between 0 and 1; none where no range or set shows a value."""
    columns, groups = {str(n): _number(v) for n, v in dict(entry["columns"]).items()}, entry["groups"]
    shares = [*columns.values(), *([] if groups is None else [_number(groups)])]
    if not all(0 <= share <= 1 for share in shares) or (columns and not shows) or (groups is None) is bool(columns):
        raise TypeError
    return columns, groups


def _harbor(entry: Any) -> Harbor | None:
    if entry is None:
        return None
    columns = {str(name): str(rule) for name, rule in dict(entry["columns"]).items()}
    if not set(columns.values()) <= set(RULES):
        raise TypeError
    return Harbor(columns, _count(entry["born"]))


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value) or len(set(value)) < len(value):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError
    return value
