"""Recheck of a crosswalk, by itself and with its sources; and strict parsing of certificate files and records."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from shoal.errors import CertificateError, InputError, PolicyError, ShoalError, VerificationError
from shoal.judge.contents import beyond_parts, beyond_rows
from shoal.judge.crosswalk import agreed
from shoal.judge.file import read_release, seal, stale
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.tables.large import hash_of
from shoal.judge.tables.matching import Shares
from shoal.judge.tables.original import StatedRelease
from shoal.model.certificate import (
    CENTER_UNITS,
    FORMAT,
    LADDER,
    MORE,
    PRIVATE_SETTINGS,
    PROOF,
    RUN,
    UNITS,
    Certificate,
    PublicCertificate,
    differs,
    malformed,
    malformed_record,
    may_promise,
    may_record,
    ratio_step,
    read_json,
)
from shoal.model.conditions import (
    Each,
    is_above,
    is_flag,
    is_null,
    is_number,
    is_text,
    is_whole,
    misfit,
    misstated,
    refuse_misfit,
)
from shoal.model.hierarchy import REGIONS
from shoal.model.policy import Policy
from shoal.model.refusals import READINGS
from shoal.model.rule_books import NAME, RULE_BOOKS, RULES, SafeHarbor
from shoal.model.settings import RECODINGS, SETTINGS
from shoal.paths import kind_of
from shoal.problems.catalogue import CATALOGUE, crosswalk_problems
from shoal.publishing.sources import OUTLINES, findings, outlined, sources_of

Proof = TypeVar("Proof", Certificate, PublicCertificate)  # of a record, or of a certificate file


def recheck(
    path: Path,
    record: Mapping[str, Any],
    source: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: tuple[Mapping[str, Any], Path] = ({}, Path()),
    kept: Mapping[str, Any] | None = None,
    layer: str | None = None,
) -> tuple[list[Finding], PublicCertificate, Certificate | None]:
    """The findings on an output, the certificate file's content, and the record's, if it is given.

    source               a path or a frame, or a list of them in the order of the command; None: without
    separator, encoding  of sources that are CSV files
    hierarchies          for clusters: the given ones by column, and the folder with the others
    kept                 the private record, to check everything in it too
    layer                of a source that is a map of points with several

    Raises InputError for a file that isn't a certificate file.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in crosswalk_problems():
        raise InputError(
            f"the certificate file is of a kind that this version cannot check; it knows "
            f"{', '.join(crosswalk_problems())}"
        )
    own = hash_of(path) if path.is_file() else ""
    about, stated = _parts(record, path.name, own, PublicCertificate)
    _one_character(record.get("separator"))
    refuse_misfit(misstated(kind, record["parameters"]) or malformed(record), "certificate file", kind)
    part = about.get("part")
    drawn, more = isinstance(part, str) and part.startswith(OUTLINES), list[Finding]()
    if drawn or part == "hierarchy":
        if not path.is_file():
            raise InputError(f"there is no release {str(path)!r}")
        held: Any = outlined(path) if drawn and kind == "regions" else path
    else:
        more.append(contents(path, _one_character(about.get("separator"))))
        held = read_release(path, _one_character(about.get("separator")))
    if kept is not None and "sha256" not in about:
        about = _parts(kept, path.name, own, Certificate)[0]  # for a crosswalk of tiles, the record contains more
    found = [_file(path, own, about, held, record), *more, _sealed(record, "certificate")]
    if not may_promise(kind, stated, record["parameters"]):
        found.append(Finding("promise", False, "the certificate promises what no theorem does"))
    known: Certificate | None = None
    asked: Mapping[str, Any] = record
    proof: Certificate | PublicCertificate = stated
    try:
        if kept is not None:  # the record includes everything in the certificate file
            asked, proof = kept, (known := _parts(kept, path.name, own, Certificate)[1])
            refuse_misfit(malformed_record(kept), "record", kind)
            found += [_belongs(record, kept, stated, known), _sealed(kept, "record's seal")]
            if not may_record(kind, known, kept["parameters"]):
                found.append(Finding("promise on record", False, "the record promises what no method does"))
            found.append(_proportion(kept["certificate"], known))
        else:
            found.append(ratio_stated(stated))
        sources = sources_of(source, asked, separator, encoding, hierarchies, layer)
        found += [*findings(asked, proof, held, kind_of(path), sources, part), *agreed(asked, proof)]
    except VerificationError:
        if found[0].holds:
            raise
        # it is the certificate of another output, so what it states about columns doesn't matter
        return found, stated, known
    except ShoalError:
        raise
    except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, pl.exceptions.PolarsError):
        raise InputError("the certificate file lacks something, or holds it in a wrong form") from None
    text = "that this was the request, by what method and when, rests on the certificate"
    return [*found, Finding("request", True, text, STATED)], stated, known


def contents(path: Path, separator: str | None) -> Finding:
    """Whether a released file, or each part of a folder, contains nothing except its rows.

    Raises InputError if there is none, and VerificationError if it is damaged.
    """
    try:
        more = beyond_parts(path, separator) if path.is_dir() else beyond_rows(path, separator)
        if more is not None:
            return Finding("contents", False, f"{path.name!r} contains {more}")
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    return Finding("contents", True, "nothing beyond the rows")


def _sealed(record: Mapping[str, Any], name: str) -> Finding:
    unchanged = record.get("seal") == seal(record)
    return Finding(name, unchanged, "unchanged" if unchanged else "it was changed after it was written", CONSISTENT)


def _belongs(
    record: Mapping[str, Any], kept: Mapping[str, Any], stated: PublicCertificate, known: Certificate
) -> Finding:
    """Whether a record belongs to this certificate: the same files, request, and ratio."""
    odd = differs(record, kept, ("kind", "also", "separator"))
    public, private = record.get("release") or {}, kept.get("release") or {}
    if any(private.get(name) != held for name, held in public.items()) or bool(public) is not bool(private):
        odd.append("release")
    step = ratio_step(known.ratio)
    odd += [] if stated.ratio_at_most in (None, step) else ["ratio"]
    odd += [] if (stated.unit, stated.cost) in ((known.unit, None), (known.unit, known.cost)) else ["cost"]
    text = f"it says otherwise than the certificate about {odd[0]!r}" if odd else "it is the certificate's record"
    return Finding("record", not odd, text, CONSISTENT)


def ratio_stated(stated: PublicCertificate) -> Finding:
    """The proved ratio, which only the record and the source can confirm."""
    if stated.ratio_at_most is None:
        return Finding("ratio", True, "none is stated", STATED)
    most = f"more than {LADDER[-1]:g}" if stated.ratio_at_most == MORE else f"at most {stated.ratio_at_most:g}"
    return Finding("ratio", True, f"{most} times the least", STATED)


def _file(path: Path, own: str, about: Mapping[str, Any], held: Any, record: Mapping[str, Any]) -> Finding:
    """Whether the file is the certified one, byte for byte and in length."""
    if "sha256" not in about and record["kind"] == "tiles" and about is record.get("release") and record.get("also"):
        text = "the certificate states no SHA-256 of a crosswalk that was written with its tiles; the record does"
        return Finding("file", True, text, STATED)
    if own != about.get("sha256"):
        return Finding("file", False, stale(path, record))
    size = about.get("bytes") == path.stat().st_size
    rows = "rows" not in about or not isinstance(held, pl.DataFrame) or about["rows"] == held.height
    message = "the file is the one certified" if size and rows else "it has more or fewer bytes or rows than certified"
    return Finding("file", size and rows, message)


def _parts(record: Mapping[str, Any], name: str, own: str, form: type[Proof]) -> tuple[Mapping[str, Any], Proof]:
    """The certificate's entry for the file with this hash, otherwise with this name, and its figures."""
    also: Any = record.get("also", [])
    known: list[Mapping[str, Any]] = [
        a for a in (record.get("release"), *(also if isinstance(also, list) else [])) if isinstance(a, Mapping)
    ]
    of_hash: list[Mapping[str, Any]] = [a for a in known if a.get("sha256") == own]
    about = next(iter([*of_hash, *(a for a in known if a.get("file") == name), *known]), record.get("release"))
    if about is None:
        raise InputError("the certificate file is of an answer that was written nowhere, so there is no file to check")
    written = record.get("certificate")
    if not all(isinstance(part, Mapping) for part in (about, record.get("parameters"), record.get("facts"), written)):
        raise InputError("the certificate file lacks something, or holds it in a wrong form")
    try:
        return about, form.from_dict(written)  # type: ignore[arg-type]
    except CertificateError as error:
        raise InputError(f"the certificate file contradicts itself: {error!s}") from None


def _one_character(separator: Any) -> str | None:
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or not separator.isascii()):
        raise InputError("the certificate file names a separator that is not one character")
    return separator


def _proportion(written: Mapping[str, Any], stated: Certificate) -> Finding:
    """Whether the ratio in the file is cost divided by lower bound."""
    ratio, stated_ratio = stated.ratio, written.get("ratio")
    number = isinstance(stated_ratio, (int, float)) and not isinstance(stated_ratio, bool)
    same = (
        stated_ratio is None
        if ratio is None
        else number and math.isclose(float(ratio), float(stated_ratio or 0), rel_tol=1e-9)
    )
    same = bool(same) and written.get("optimal") is stated.optimal
    text = "cost over lower bound, as stated" if same else "its ratio is not cost over lower bound"
    return Finding("ratio", same, text)


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
PRIVATE = "private"  # an entry that a record has and a certificate hasn't


@dataclass(frozen=True, kw_only=True)
class Record:
    """A certificate file or a record, parsed into checked values.

    stated   the exact cost and bound of a record, or the public part in a certificate file
    release  what it states about the release
    """

    raw: Mapping[str, Any]
    policy: Policy
    stated: Certificate | PublicCertificate
    ratio: float | None
    release: StatedRelease
    sha256: str
    rows: int
    groups: int
    smallest: int
    levels: Mapping[str, float | None]
    separator: str | None
    orders: Mapping[str, list[str]]  # for sensitive columns with an explicit order
    hierarchies: Mapping[str, tuple[str, str | None]]  # column -> name of its source, hash
    harbor: SafeHarbor | None
    carried: frozenset[str]

    @property
    def private(self) -> bool:
        """Whether this is a record, which contains figures of the original."""
        return PRIVATE in self.raw


def read_record(path: str | Path, private: bool = False) -> dict[str, Any]:
    """The certificate file of a release, or its record; InputError if it isn't the wanted one."""
    path = Path(path)
    record = read_json(path)
    if record.get("kind", "table") == "table" and not set(record) >= PARTS:
        if "certificate" in record or "lower_bound" in record:
            raise InputError(
                f"{path.name!r} is a certificate, but not one of a release of a table: it says cost and bound, and not "
                "of which file"
            )
        raise InputError(f"{path.name!r} is not a certificate file of shoal (no release, policy, stars or certificate)")
    if record.get("format") != FORMAT or type(record["format"]) is not int:
        raise InputError(f"{path.name!r} has another format than this version reads; make the release again")
    refuse_other_stamp(record)
    if record.get(PRIVATE, False) is not private:
        kinds = ("a certificate", "a record")
        raise InputError(
            f"{path.name!r} is {kinds[not private]}, and {kinds[private]} is wanted here: a release is verified with "
            "its certificate, and with ⟨record=...⟩ against its original with the record too"
        )
    return record


_KNOWN_VERSIONS = {"shoal", "python", "polars"}
_NUMBER = re.compile(r"\d[\w.+-]{0,40}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\+00:00|Z)")


def refuse_other_stamp(record: Mapping[str, Any]) -> None:
    """InputError if a file states more about its making than versions and a time."""
    by, at = record.get("made_by"), record.get("made_at")
    versions = dict(by) if isinstance(by, dict) else {}
    if set(versions) != _KNOWN_VERSIONS or not all(
        isinstance(v, str) and _NUMBER.fullmatch(v) for v in versions.values()
    ):
        raise InputError("the certificate file states in 'made_by' what is no version")
    if not (isinstance(at, str) and _TIME.fullmatch(at)):
        raise InputError("the certificate file states in 'made_at' what is no time in UTC")


def parsed(record: Mapping[str, Any], sheet: bool) -> Record:
    """A certificate file or record with all parts checked; otherwise InputError or CertificateError."""
    try:
        asked, facts = record["policy"], record["release"]
        policy = _policy(asked)
        kind = Certificate if PRIVATE in record else PublicCertificate
        stated = kind.from_dict(record["certificate"])
        float(_number(stated.guarantee.factor or 1)), float(_number(stated.guarantee.additive or 0))
        release = _stated_release(record, policy, stated, sheet)
        given, hashes = dict(asked["hierarchies"]), dict(record.get("hierarchies") or {})
        named = {str(n): (str(s), str(hashes[n]["sha256"]) if n in hashes else None) for n, s in given.items()}
        pair = asked.get("coordinates")
        if pair is not None and len(_texts(pair)) != 2:
            raise TypeError
        _refuse_unasked(record, policy)
        return Record(
            raw=record,
            policy=policy,
            stated=stated,
            ratio=None if record["certificate"].get("ratio") is None else _number(record["certificate"]["ratio"]),
            release=release,
            sha256=str(facts["sha256"]),
            rows=_count(facts["rows"]),
            groups=_count(record["groups"]),
            smallest=_count(record["smallest_group"]),
            levels={str(n): None if v is None else _number(v) for n, v in dict(record["privacy"]).items()},
            separator=_one_character(record.get("separator")),
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
    """Whether a record belongs to this certificate: the same file, request, figures, and ratio."""
    stated, known = public.stated, private.stated
    assert isinstance(stated, PublicCertificate) and isinstance(known, Certificate)  # noqa: PT018
    asked = {name: value for name, value in private.raw["policy"].items() if name not in PRIVATE_SETTINGS}
    alike = ("hierarchies", "order", "shuffled", "orders", "groups", "smallest_group", "carried", "safe_harbor")
    odd = [name for name in alike if public.raw.get(name) != private.raw.get(name)]
    odd += [name for name, level in public.levels.items() if private.levels.get(name) != level]
    odd += [] if public.sha256 == private.sha256 else ["release"]
    odd += [] if asked == public.raw["policy"] else ["policy"]
    text = f"it says otherwise than the certificate about {odd[0]!r}" if odd else "it is the certificate's record"
    step = ratio_step(known.ratio)
    silent = stated.ratio_at_most is None
    right = silent or step == stated.ratio_at_most
    certified = "the certificate states no ratio" if silent else f"at most {stated.ratio_at_most} certified"
    shown = "none is proved" if known.ratio is None else f"{float(known.ratio):.6g} proved"
    return [
        Finding("record", not odd, text, CONSISTENT),
        _sealed(private.raw, "record's seal"),
        Finding("ratio", right, f"{shown}; {certified}", CONSISTENT),
    ]


def _policy(asked: Mapping[str, Any]) -> Policy:
    """The part of the request that the release can be checked against."""
    shown = {name: asked[name] for name, entry in SETTINGS.items() if entry.shown and entry.stated == "always"}
    shown |= {name: asked.get(name) for name, entry in SETTINGS.items() if entry.shown and entry.stated == "asked"}
    places = asked.get("coordinates") or ()  # in the release, they are one column
    shown["decimal"] = {n: mark for n, mark in dict(shown.get("decimal") or {}).items() if n not in places}
    trees = {n: h for n, h in dict(asked["hierarchies"]).items() if n in asked["sensitive"]}
    steps = {"publish": "ranges", "range_step": asked["range_step"]} if asked.get("range_step") else {}
    return Policy.of(None, **shown, hierarchies=trees, **steps)


def _refuse_unasked(record: Mapping[str, Any], policy: Policy) -> None:
    """InputError for a part about something that wasn't requested, which no check would read."""
    book = None if policy.preset is None else RULE_BOOKS[policy.preset]
    refuse_policy(record["policy"], private=PRIVATE in record)
    if PRIVATE in record:
        odd = misfit(record, _RECORD)
        if odd is None:
            before, judged = record["before"], {*policy.grouped, *policy.sensitive}
            together = {name for held in before["dangerous"] for name in held["columns"]}
            good = judged | together <= {*before["distinct_values"]} <= judged | {*record["carried"]["columns"]}
            odd = None if good else "before"
        refuse_misfit(odd, "record", "a table")
    else:
        odd = misfit(record, _TABLE)
        if odd is None and ("folder" in record["release"]) is not ("parts" in record["release"]):
            odd = "folder"
        refuse_misfit(odd, "certificate file", "a table")
    asked = {
        "persons": bool(policy.units),
        "population": policy.population is not None or bool(policy.weighed),
        "incomplete": policy.missing == "apart",
        "filled": policy.missing == "filled",
        "limited": bool(policy.limits),
        "rule_book": book is not None,
        "safe_harbor": policy.preset == NAME,
    }
    for name, wanted in asked.items():
        told = record.get(name) is not None if name in ("rule_book", "safe_harbor") else record.get(name)
        if told and not wanted:
            raise InputError(f"the certificate file tells of {name!r}, which its policy does not ask for")
    trees = record["policy"]["hierarchies"]
    known = {"policy": SETTINGS, "hierarchies": trees, "orders": policy.sensitive}
    for part, names in known.items():
        for name in sorted(set(record.get(part) or ()) - set(names)):
            raise InputError(f"the certificate file holds {name!r} in its {part}, where no certificate has it")
    if record.get("missing_values", READINGS[policy.missing]) != READINGS[policy.missing]:
        raise InputError("the certificate file tells of another reading of missing values than its policy asks for")
    highest = record["policy"].get("max_level", {})
    if not set(highest) <= set(policy.quasi_identifiers) or not all(
        type(x) is int and x >= 0 for x in highest.values()
    ):
        raise InputError("the certificate file states a highest level of no quasi-identifier, or one that is no level")
    if not set(policy.insensitive) <= set(record["carried"]["columns"]):
        raise InputError("the certificate file names an insensitive column that it does not list as unchanged")
    entry = record.get("rule_book")
    if book is not None and entry != {"name": policy.preset, **book.as_dict()}:
        raise InputError(f"the certificate file tells of another rule book than {policy.preset!r}, which was asked for")
    if policy.preset == NAME and record.get("safe_harbor") is None:
        raise InputError("the certificate file does not say which columns the Safe Harbor allowed, and how")


_FIGURE = (is_number, is_null)
_TABLE: dict[str, Any] = {  # a certificate file of a table; ``refuse_policy`` has the form of its policy
    "format": is_whole, "kind": is_text, "made_by": Each(is_text), "made_at": is_text,
    "release": {
        "file": is_text, "rows": is_whole, "sha256": is_text, "bytes": is_whole, "folder?": lambda held: held is True,
        "parts?": is_whole, "table?": is_text, "starred_as_missing?": [is_text],
    },
    "policy": Each(lambda _: True), "hierarchies": Each({"sha256": is_text}), "shuffled": is_flag, "order": is_text,
    "orders": Each([is_text]), "missing_values": is_text, "groups": is_whole, "smallest_group": is_whole,
    "privacy": Each(_FIGURE), "loss": {"stars": _FIGURE, "suppressed_tuples": _FIGURE, "ncp": _FIGURE},
    "stars": Each(is_whole), "changed": Each((is_whole, is_null)),
    "carried": {"columns": [is_text], "insensitive": [is_text], "alone": Each(is_whole), "together": is_whole},
    "rule_book": (Each(lambda _: True), is_null),
    "safe_harbor": ({"columns": Each(is_text), "born": is_whole}, is_null),
    "separator": is_text, "certificate": Each(lambda _: True), "seal": is_text, "signature?": Each(is_text),
    "series?": Each(lambda _: True),
}  # fmt: skip


_SHARE = {"above": is_number, "rows": is_number}
_BEFORE = {  # figures of the original
    "rows": is_whole, "classes": is_whole, "smallest_class": is_whole, "uniques": is_whole, "at_risk": [_SHARE],
    "distinct_values": Each(is_whole), "notes": [is_text],
    "dangerous": [{"columns": [is_text], "distinction": is_number, "separation": is_number}],
}  # fmt: skip
_POPULATION = {
    "from": is_text, "rows": is_whole, "k_map": is_whole, "presence": [is_number], "unique": is_whole,
    "uniques": {**dict.fromkeys(("zayatz", "snb", "pitman", "dankar"), _FIGURE), "rule": is_text},
}  # fmt: skip
_LOST = ("stars", "suppressed_tuples", "ncp", "weighted_ncp?", "ncp_with_filled?", "ncp_with_limits?")
_STEPS = ("read", "histogram", "solve", "recode", "compose", "write", "verify")
_RECORD: dict[str, Any] = {  # of a table; the details of its certificate are those of a method
    **{name: form for name, form in _TABLE.items() if name not in ("series?", "signature?")},
    "private": lambda held: held is True, "run?": RUN, "method": is_text, "persons": Each(is_whole),
    "loss": dict.fromkeys(_LOST, is_number),
    "incomplete": (
        {"rows": is_whole, "smallest": is_whole, "smallest_of_others": is_whole, "columns?": [is_text]}, is_null,
    ),
    "filled": (Each(lambda held: type(held) in (int, float)), is_null),
    "limited": Each(Each(is_number)), "population": (_POPULATION, is_null),
    "exposed": {"columns": Each(is_number), "groups": _FIGURE}, "before": _BEFORE,
    "attempts": [{"method": is_text, "cost": is_number, "seconds?": is_number}],
    "seconds": dict.fromkeys((f"{step}?" for step in _STEPS), is_number),
    "certificate": PROOF,
}  # fmt: skip


def refuse_policy(asked: Any, private: bool = False) -> None:
    """InputError for a policy on a certificate that lacks a setting, or has one that no certificate states so.

    private  whether it is the policy of a record
    """
    if not isinstance(asked, dict):
        raise InputError("the certificate file holds no policy")
    own = {
        name: entry for name, entry in SETTINGS.items() if entry.stated != "never" and (private or not entry.private)
    }
    lacking = [name for name, entry in own.items() if entry.stated == "always" and name not in asked]
    if lacking:
        raise InputError(f"the certificate file lacks {lacking[0]!r} of its policy")
    for name, value in asked.items():
        if name in own and not (_has_form(name, value) and own[name].is_stated(value)):
            raise InputError(f"the certificate file states {name!r} of its policy in a wrong form")


def _has_form(name: str, value: Any) -> bool:
    """Whether a setting of a table's policy has a form in which a certificate states it."""
    entry = SETTINGS[name]
    if value is None and entry.default is None:
        return True
    if name == "method":
        return isinstance(value, str) and value in CATALOGUE["tables"].methods
    if name == "effort":
        return value in entry.words or is_above(value)
    if entry.words:
        return value in (entry.default, *entry.words)
    if entry.kind == "names":
        return isinstance(value, list) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)
    kinds = {"switch": (bool,), "text": (str,), "file": (str,), "number": (int, float), "whole": (int,)}
    if entry.kind == "mapping":
        return misfit(value, Each((is_text, is_number, lambda held: type(held) in (int, float)))) is None
    return type(value) in kinds.get(entry.kind, (type(value),))


def _stated_release(
    record: Mapping[str, Any], policy: Policy, stated: Certificate | PublicCertificate, sheet: bool
) -> StatedRelease:
    """The file's statements about the release's cells."""
    publish = record["policy"]["publish"]
    if publish not in RECODINGS:
        raise PolicyError.unknown("way to publish", str(publish), RECODINGS)
    if stated.unit not in (CENTER_UNITS if publish == "centers" else UNITS):
        raise InputError("the certificate file counts the loss in a unit that no release of its kind has")
    private = isinstance(stated, Certificate)
    trees = dict(record["policy"]["hierarchies"])
    shows = publish not in ("stars", "hierarchy", "centers") or REGIONS in trees.values()
    stars = {str(n): _count(x) for n, x in dict(record["stars"]).items()}
    none = () if private else (None,)
    changed = {str(n): x if x in none else _count(x) for n, x in dict(record["changed"]).items()}
    if not set(stars) == set(changed) == set(policy.quasi_identifiers):
        raise InputError("the certificate file counts stars of other columns than its quasi-identifiers")
    blanks = frozenset(map(str, record["release"].get("starred_as_missing", ())))
    return StatedRelease(
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
        exposed=_exposed(record["exposed"], shows) if private else None,
        sheet=sheet,
        order=None if "table" in record["release"] else str(record.get("order")),
    )


def _exposed(entry: Any, shows: bool) -> Shares:
    """Shares of the groups, between 0 and 1; none if no range or set shows a value."""
    columns, groups = {str(n): _number(v) for n, v in dict(entry["columns"]).items()}, entry["groups"]
    shares = [*columns.values(), *([] if groups is None else [_number(groups)])]
    if not all(0 <= share <= 1 for share in shares) or (columns and not shows) or (groups is None) is bool(columns):
        raise TypeError
    return columns, groups


def _harbor(entry: Any) -> SafeHarbor | None:
    if entry is None:
        return None
    columns = {str(name): str(rule) for name, rule in dict(entry["columns"]).items()}
    if not set(columns.values()) <= set(RULES):
        raise TypeError
    return SafeHarbor(columns, _count(entry["born"]))


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
