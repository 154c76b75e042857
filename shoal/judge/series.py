"""The judge of a series of releases: it checks the folder, the hashes, and the ledgers without code of the solvers.

Without the private folder, it checks what a receiver can check: the parts are a hash chain that begins with
series.json, all parts promise the same, and in mode "increment" all parts together meet the models. With the private
folder, it also checks that every ledger belongs to its part and agrees with the part's published classes, that each
step keeps the mode's promise about persons, and that nobody waited for more parts than requested.

In mode "views", each view must be a coarser copy of the first part, row by row. Each text of the first part is replaced
with the narrowest text of the view that contains all its possible values. The result must be the rows of the view, with
the same multiplicities. So the view is a function of the first part and reveals nothing more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, VerificationError
from shoal.judge.file import UNREADABLE, seal
from shoal.judge.finding import STATED, Finding
from shoal.judge.tables.large import ReleaseContents, count_release
from shoal.judge.tables.privacy import judge
from shoal.model.cards import several
from shoal.model.certificate import read_json
from shoal.model.conditions import Each, is_flag, is_null, is_number, is_positive, is_text, is_whole, misfit
from shoal.model.hierarchy import Hierarchy
from shoal.model.members import Members, known_values, meanings, places, ruler_of
from shoal.model.notation import named_notations

Text = str | None
RELEASE, CERTIFICATE = "release.csv", "release.certificate.json"


def judge_views(
    place: Path, about: Mapping[str, Any], certificates: Sequence[Mapping[str, Any]], hierarchies: Mapping[str, Any]
) -> list[Finding]:
    """One finding for all views of a series.

    hierarchies  from the series' policy, per column what ``Hierarchy.of`` takes

    O(rows + texts of the first part x texts of the view) for each view.
    """
    asked = about["policy"]
    for number, certificate in enumerate(certificates[1:], start=2):
        stated = certificate["series"]
        view = stated.get("view")
        if not _is_view(view):
            return [Finding("views", False, f"part {number} does not say what it is a view of")]
        own = certificate["policy"]
        columns = [*own["quasi_identifiers"], *own["sensitive"]]
        if sorted(columns) != sorted(view["columns"]) or own["publish"] != view.get("publish"):
            return [Finding("views", False, f"part {number} has other columns than its certificate says")]
        if stated.get("others") != [
            _shown(place, i, held) for i, held in enumerate(certificates[: number - 1], start=1)
        ]:
            return [Finding("views", False, f"part {number} does not name the views before it")]
        wrong = _coarser(place, number, asked, own, hierarchies)
        if wrong is not None:
            return [Finding("views", False, f"part {number}: {wrong}")]
    text = f"{max(len(certificates) - 1, 0)} views, each row of them a row of part 1 with less in it"
    return [Finding("views", True, text)]


def _is_view(stated: Any) -> bool:
    """Whether a certificate describes a view in the right form."""
    if not isinstance(stated, dict) or set(stated) != {"columns", "publish", "levels"}:
        return False
    columns, levels = stated["columns"], stated["levels"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        return False
    if not isinstance(levels, dict) or (levels and stated["publish"] != "hierarchy"):
        return False
    return set(levels) <= set(columns) and all(type(level) is int and level >= 0 for level in levels.values())


def _shown(place: Path, number: int, certificate: Mapping[str, Any]) -> dict[str, Any]:
    """What later views state about a part."""
    own = certificate["policy"]
    columns = [*own["quasi_identifiers"], *own["sensitive"]]
    shown = certificate["series"].get("view") or {"columns": columns, "publish": own["publish"]}
    own_hash = hashlib.sha256((place / f"{number:04d}" / CERTIFICATE).read_bytes()).hexdigest()
    return {"number": number, "certificate": own_hash, **shown}


def _rows(held: ReleaseContents) -> pl.DataFrame:
    cells = held.cells.with_columns(pl.all().cast(pl.String))
    cells = cells.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
    return cells.with_columns(pl.Series("shoal rows", held.counts.astype(np.int64)))


def _coarser(
    place: Path, number: int, asked: Mapping[str, Any], own: Mapping[str, Any], hierarchies: Mapping[str, Any]
) -> str | None:
    """The reason why a view is not a coarser copy of the first part; None if it is."""
    columns = [*own["quasi_identifiers"], *own["sensitive"]]
    if not {*own["quasi_identifiers"]} <= {*asked["quasi_identifiers"]} or not {*own["sensitive"]} <= {
        *asked["sensitive"]
    }:
        return "it has a column that the first part does not protect"
    contents = count_release(place / f"{number:04d}" / RELEASE, columns)
    if len(contents.columns) != len(columns):
        return "it has columns that its certificate does not name"
    first, view = _rows(count_release(place / "0001" / RELEASE, columns)), _rows(contents)
    for name in own["quasi_identifiers"]:
        fine, coarse = first[name].unique().to_list(), view[name].unique().to_list()
        image = _images(fine, coarse, name, asked, own, hierarchies)
        lost = [t for t in fine if t not in image]
        if lost:
            return f"column {name!r} holds no text for what the first part shows there"
        first = first.with_columns(pl.Series(name, [image[t] for t in first[name].to_list()], dtype=pl.String))
    one, two = (t.group_by(columns).agg(pl.col("shoal rows").sum()) for t in (first, view))
    both = one.join(two, on=columns, how="full", nulls_equal=True)
    if both.filter(~pl.col("shoal rows").eq_missing(pl.col("shoal rows_right"))).height:
        return "its rows are not those of the first part"
    return None


def _images(
    fine: list[Text],
    coarse: list[Text],
    name: str,
    asked: Mapping[str, Any],
    own: Mapping[str, Any],
    hierarchies: Mapping[str, Any],
) -> dict[Text, Text]:
    """Text of the first part -> the narrowest text of the view that contains all values that it can mean."""
    star = str(asked["star"])
    tree = hierarchies.get(name)
    notation = named_notations(asked).get(name)
    a = meanings(fine, asked["publish"], tree, star, notation=notation)
    b = meanings(coarse, own["publish"], tree, star, notation=notation)
    known = known_values([*a, *b, *_leaves(tree)])
    ruler = notation or ruler_of(known)
    at = places(known, ruler)
    inside = [m.held(known, at) for m in a]
    outside = [m.held(known, at) for m in b]
    holds = np.array(
        [[_within(x, y) and not (i & ~o).any() for y, o in zip(b, outside, strict=True)]
         for x, i in zip(a, inside, strict=True)]
    ).reshape(len(fine), len(coarse))  # fmt: skip
    many = holds.sum(axis=0)
    out: dict[Text, Text] = {}
    for text, row in zip(fine, holds, strict=True):
        found = np.flatnonzero(row)
        if found.size:
            out[text] = coarse[int(found[np.argmin(many[found])])]
    return out


def _leaves(tree: Any) -> list[Members]:
    rows = () if tree is None else Hierarchy.of(tree).rows
    return [Members(named=frozenset(row[0] for row in rows))] if rows else []


def _within(small: Members, large: Members) -> bool:
    """Whether one star or range contains another; True for other texts, which ``_images`` compares by values."""
    if large.everything:
        return True
    if small.everything:
        return False
    if small.low is None or large.low is None or small.high is None or large.high is None:
        return True
    after = small.begins_after or not large.begins_after
    begins = large.low < small.low or (large.low == small.low and after)
    return begins and (small.high < large.high or (small.high <= large.high and not large.open)
                                       or (small.open and small.high <= large.high))  # fmt: skip


_OWN = {"identifiers"}  # settings that a part may add to: the column of persons, and others of its table
_OF_VIEW = {  # settings that a view has of its own
    *("quasi_identifiers", "sensitive", "privacy", "publish", "hierarchies", "weights", "range_step", "dates"),
    *("decimal", "top", "bottom"),
}
_UNASKED_OF_VIEW: dict[str, Any] = {  # settings that every view has
    "insensitive": [], "max_level": {}, "global_recoding": False, "coarsen": None, "max_suppressed": 0.0,
    "max_average_risk": None, "preset": None,
}  # fmt: skip


def judge_series(
    place: Path, models: Sequence[Any], number: int, hierarchies: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Findings about the folder of a series with ``number`` parts, in addition to those about each part.

    models       the privacy models in series.json
    hierarchies  from the series' policy

    O(rows of all parts).
    """
    about = read_json(place / "series.json", "series")
    certificates = [read_json(place / f"{i:04d}" / CERTIFICATE) for i in range(1, number + 1)]
    found = [
        _sealed(about),
        *chain(place, about, certificates),
        _one_request(about, certificates),
        _only_published(place, about, number),
    ]
    if not all(f.holds for f in found):
        return found  # the checks below assume that the parts belong to one series
    if about.get("mode") == "increment" and number:
        files = [place / f"{i:04d}" / RELEASE for i in range(1, number + 1)]
        found.append(judge_together(files, about["policy"], models, hierarchies or {}))
    if about.get("mode") == "views":
        found += judge_views(place, about, certificates, hierarchies or {})
    if not (place / "private" / "key").is_file():
        here = (place / "private").is_dir()
        what = "the ledger has lost its key" if here else "the ledger is private and not here"
        text = f"{what}; only its owner can state the promise about persons"
        return [*found, Finding("persons", True, text, STATED)]
    return [*found, *_ledgers(place, about, certificates)]


def chain(place: Path, about: Mapping[str, Any], certificates: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Whether each certificate has the SHA-256 of the file before it, and its own number in this series."""
    before = hashlib.sha256((place / "series.json").read_bytes()).hexdigest()
    wrong = []
    for i, certificate in enumerate(certificates, start=1):
        stated = certificate.get("series")
        good = isinstance(stated, dict) and [stated.get(name) for name in ("id", "mode", "number", "previous")]
        same = good == [about.get("id"), about.get("mode"), i, before]
        named = certificate["release"]["file"] == RELEASE
        if not same or not named or not _states_a_part(stated, about, int(certificate["release"]["rows"])):
            wrong.append(i)
        before = hashlib.sha256((place / f"{i:04d}" / CERTIFICATE).read_bytes()).hexdigest()
    text = f"{several(len(certificates), 'part')}, each names the one before; the last certificate is {before}"
    if wrong:
        text = f"part {wrong[0]} does not follow the one before: one of the two was changed, exchanged or left out"
    return [Finding("chain", not wrong, text)]


def _states_a_part(stated: Any, about: Mapping[str, Any], rows: int) -> bool:
    """Whether a certificate's entry about its series has the form of a part. Only mode "again" has made-up rows, fewer
    than all, if the series has not refused them.
    """
    form: dict[str, Any] = {
        "id": is_text,
        "mode": is_text,
        "number": is_positive,
        "previous": is_text,
        "made_up": is_whole,
    }
    if about["mode"] == "views" and stated["number"] != 1:
        form |= {"view": Each(lambda _: True), "others": [{**_VIEW, "number": is_positive, "certificate": is_text}]}
    return misfit(stated, form) is None and stated["made_up"] < (rows if about.get("counterfeits") else 1)


def _is_hash(digits: int) -> Callable[[Any], bool]:
    return lambda held: is_text(held) and re.fullmatch(f"[0-9a-f]{{{digits}}}", held) is not None


_VIEW = {"columns": [is_text], "publish": is_text, "levels?": Each(is_whole)}
_STATED_SERIES: dict[str, Any] = {  # ``refuse_policy`` has the form of the policy
    "format": lambda held: type(held) is int and held == 1, "kind": lambda held: held == "series",
    "made_by": Each(is_text), "made_at": is_text, "seal": is_text,
    "id": _is_hash(32),
    "mode": lambda held: held in [*_SETTINGS], "policy": Each(lambda _: True), "hierarchies": Each({"sha256": is_text}),
}  # fmt: skip
_WAITING = {"wait": is_whole, "wait_above": lambda held: is_number(held) and held <= 1}
_SETTINGS: dict[str, dict[str, Any]] = {  # of each mode
    "increment": _WAITING,
    "again": {**_WAITING, "counterfeits": is_flag, "signatures": (is_positive, is_null)},
    "views": {},
}


_LEDGER: dict[str, Any] = {  # of a part; hashes are of persons, tuples, and values
    "series": _is_hash(32), "number": is_positive, "certificate": _is_hash(64), "persons": _is_hash(64),
    "previous": (_is_hash(64), lambda held: held == ""), "table": (_is_hash(32), lambda held: held == ""),
    "waiting": lambda held: misfit(held, Each(is_whole)) is None and all(map(_is_hash(32), held)),
    "units": [lambda held: isinstance(held, list) and [type(x) for x in held] == [str, str, int]], "mac": _is_hash(64),
}  # fmt: skip
_HEAD = {"number": is_whole, "certificate": _is_hash(64), "mac": _is_hash(64)}


def refuse_malformed(about: Mapping[str, Any]) -> None:
    """InputError for a series.json that lacks an entry, or has one that no series has."""
    odd = misfit(about, {**_STATED_SERIES, **_SETTINGS.get(str(about.get("mode")), {})})
    if odd is not None:
        raise InputError(f"'series.json' lacks {odd!r}, or states it in a wrong form")


def _sealed(about: Mapping[str, Any]) -> Finding:
    good = about.get("seal") == seal(about)
    return Finding("series", good, f"mode {about.get('mode')}" if good else "series.json was changed after it was made")


def _one_request(about: Mapping[str, Any], certificates: Sequence[Mapping[str, Any]]) -> Finding:
    """Whether all parts promise what series.json requests."""
    asked = {**about["policy"], "person": None}  # each person has one row, so a part's rows are persons
    # views after the first part promise less: only about the columns that they show
    views = about.get("mode") == "views"
    odd = [
        (i, n)
        for i, c in enumerate(certificates, start=1)
        for n in sorted({*asked, *c["policy"]} - _OWN - (_OF_VIEW if views and i > 1 else set()))
        if c["policy"].get(n) != (asked | _UNASKED_OF_VIEW if views and i > 1 else asked).get(n)
    ]
    gone = {*asked["identifiers"], about["policy"]["person"]} - {None}
    odd += [(i, "identifiers") for i, c in enumerate(certificates, start=1)
            if not (views and i > 1) and not gone <= set(c["policy"]["identifiers"])]  # fmt: skip
    if views:
        odd += [
            (i, "privacy")
            for i, c in enumerate(certificates, start=1)
            for m in asked["privacy"]
            if m not in c["policy"]["privacy"] and (c["policy"]["sensitive"] or m.get("model") == "KAnonymity")
        ]
    text = f"part {odd[0][0]} has another {odd[0][1]!r}" if odd else "every part promises what the series asks"
    return Finding("request", not odd, text)


def _only_published(place: Path, about: Mapping[str, Any], parts: int) -> Finding:
    """Whether the folder has nothing but series.json, its hierarchies, the parts, and the private folder, and each
    part nothing but its table and its certificate, and none of them is a link. Files that begin with a dot are those
    of the file system's own tools.
    """
    folders = [place / f"{i:04d}" for i in range(1, parts + 1)]
    own = {"series.json", "private", *dict(about["policy"]["hierarchies"]).values(), *(part.name for part in folders)}
    for folder, known in ((place, own), *((part, {RELEASE, CERTIFICATE}) for part in folders)):
        there = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
        foreign = [name for name in there if name not in known]
        if foreign:
            named = foreign[0] if folder == place else f"{folder.name}/{foreign[0]}"
            text = (
                f"{named} is not part of the series, and nothing shows what it tells about people; "
                "move it out of this folder, which is published"
            )
            return Finding("files", False, text)
        links = [name for name in there if (folder / name).is_symlink() and name != "private"]
        if links:
            named = links[0] if folder == place else f"{folder.name}/{links[0]}"
            text = (
                f"{named} is a link, and the file that it names can change after this check; put the file in its place"
            )
            return Finding("files", False, text)
    return Finding("files", True, "each part is its table and its certificate, and no other file")


def judge_together(
    parts: Sequence[Path], asked: Mapping[str, Any], models: Sequence[Any], hierarchies: Mapping[str, Any]
) -> Finding:
    """All parts as one table. A reader who doesn't know when a person was added sees this table.

    asked        the policy as a certificate has it
    hierarchies  of its columns

    O(rows of all parts).
    """
    quasi, sensitive = asked["quasi_identifiers"], asked["sensitive"]
    frames = []
    for part in parts:
        held = count_release(part, [*quasi, *sensitive])
        cells = held.cells.with_columns(pl.all().cast(pl.String))
        frames.append(cells.with_columns(pl.Series("shoal rows", held.counts)))
    every = pl.concat(frames).group_by([*quasi, *sensitive]).agg(pl.col("shoal rows").sum())
    how: dict[str, Any] = {"counts": every["shoal rows"].to_numpy(), "notations": named_notations(asked)}
    how["trees"] = {name: Hierarchy.of(hierarchies[name]) for name in sensitive if name in hierarchies}
    audit = judge(every.select([*quasi, *sensitive]), quasi, sensitive, models, **how)
    failed = next((c for c in audit.checks if not c.passes), None)
    if failed is not None:
        of = "" if failed.column is None else f" of {failed.column!r}"
        reached = "" if failed.level is None else f" ({failed.short} = {failed.level:.4g} reached)"
        return Finding("all parts together", False, f"{failed.model}{of} is not met{reached}")
    text = (
        f"{several(audit.rows, 'row')} of {several(len(parts), 'part')} in {audit.classes} "
        f"class{'' if audit.classes == 1 else 'es'}, the smallest of {audit.smallest_class}"
    )
    return Finding("all parts together", True, text)


def _hash(key: bytes, what: str, texts: Sequence[str | None]) -> str:
    data = json.dumps([what, *texts], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=key, digest_size=16).hexdigest()


def _ledgers(place: Path, about: Mapping[str, Any], certificates: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Check every ledger against its part and against the ledger before it."""
    key = (place / "private" / "key").read_bytes()
    wrong = _head_fault(place, key, len(certificates))
    if wrong is not None:
        return [Finding("ledger", False, wrong)]
    names = [*about["policy"]["quasi_identifiers"]], [*about["policy"]["sensitive"]]
    before: pl.DataFrame | None = None
    waited: Mapping[str, int] = {}
    sealed = ""
    # First authenticate each ledger by its MAC and by the hash of the one before it. Then compare it with its part and
    # with earlier parts.
    for i in range(1, len(certificates) + 1):
        folder = place / "private" / f"ledger-{i:04d}"
        try:
            content = read_json(folder / "ledger.json", "ledger")
            data = (folder / "persons.parquet").read_bytes()
            persons = pl.read_parquet(data)
        except (InputError, OSError, *UNREADABLE):
            return [Finding("ledger", False, f"the ledger of part {i} is lost or cannot be read")]
        own = hashlib.sha256((place / f"{i:04d}" / CERTIFICATE).read_bytes()).hexdigest()
        good = (
            content.get("mac") == _mac(key, content)
            and misfit(content, _LEDGER) is None
            and content["units"] == (sorted(content["units"]) if about["mode"] == "again" else [])
            and sorted(persons.columns) == ["part", "person", "possible", "tuple", "value"]
            and content.get("persons") == hashlib.sha256(data).hexdigest()
            and (content.get("series"), content.get("number"), content.get("certificate")) == (about["id"], i, own)
            and content.get("previous") == sealed
        )
        if not good:
            return [Finding("ledger", False, f"the ledger of part {i} was changed, or belongs to another part")]
        wrong = _ledger_fault(place / f"{i:04d}" / RELEASE, content, persons, about, key, names, i)
        wrong = wrong or _continuity_fault(before, persons, about["mode"], i)
        wrong = wrong or _waiting_fault(waited, content["waiting"], before, persons, about)
        if wrong is not None:
            return [Finding("persons", False, f"part {i}: {wrong}")]
        now = persons if about["mode"] == "again" else persons.select("person")  # the other modes need only the persons
        before = now if before is None else pl.concat([before.join(now, on="person", how="anti"), now])
        waited = content["waiting"]
        sealed = hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest()
    text = {
        "increment": "every person is in one part, in a class whose rows the ledger states",
        "again": "a person who stayed keeps the possible values, all of them equally often in the group",
        "views": "the ledger of every view says what the first part showed, and no more",
    }
    return [Finding("persons", True, text[about["mode"]])]


def _mac(key: bytes, content: Mapping[str, Any]) -> str:
    body = {k: v for k, v in content.items() if k != "mac"}
    data = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    return hmac.new(key, data, "sha256").hexdigest()


def _head_fault(place: Path, key: bytes, parts: int) -> str | None:
    """What contradicts the head of the ledger, which names the last part; None if nothing does.

    Public files alone don't show that the last part was removed, and the head shows it. A stop between the last part
    and its head leaves the head one part behind.
    """
    path = place / "private" / "head.json"
    head = read_json(path, "head") if path.is_file() else {}
    if head.get("mac") != _mac(key, head) or misfit(head, _HEAD) is not None:
        return "the head of the ledger is lost or was changed"
    last = head["number"]
    if last > parts:
        return f"the ledger knows {last} parts, and the folder has {parts}; put back the parts that were published"
    named = place / f"{last:04d}" / CERTIFICATE if last else place / "series.json"
    if last < parts - 1 or head["certificate"] != hashlib.sha256(named.read_bytes()).hexdigest():
        return f"the ledger is older than the series: it ends with part {last}, and the folder has {parts}"
    return None


def _ledger_fault(
    path: Path,
    content: Mapping[str, Any],
    persons: pl.DataFrame,
    about: Mapping[str, Any],
    key: bytes,
    names: tuple[list[str], list[str]],
    number: int,
) -> str | None:
    """The first contradiction between a ledger and the table of its part; None if there is none."""
    quasi, sensitive = names
    if about["mode"] == "views" and number > 1:
        return None  # judged with the first part
    held = count_release(path, [*quasi, *sensitive])
    cells = held.cells.with_columns(pl.all().cast(pl.String))
    cells = cells.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    of_tuple: dict[tuple[Any, ...], str] = {}
    of_value: dict[tuple[Any, ...], str] = {}
    for row, count in zip(cells.select([*quasi, *sensitive]).rows(), held.counts.tolist(), strict=True):
        t, v = row[: len(quasi)], row[len(quasi) :]
        if t not in of_tuple:
            of_tuple[t] = _hash(key, "tuple", t)
        if v not in of_value:
            of_value[v] = _hash(key, "value", v)
        counted[of_tuple[t]][of_value[v]] += count
    known: dict[str, Counter[str]] = defaultdict(Counter)
    lines = persons.group_by("tuple", "value", "possible").len().rows()
    for t, v, possible, n in lines:
        known[t][v] += n
        if v not in possible.split():
            return "a person's value is none of those that remain possible"
    if about["mode"] in ("increment", "views"):
        if {t: dict(c) for t, c in counted.items()} != {t: dict(c) for t, c in known.items()}:
            return "the table holds other rows than the ledger says"
        return None
    least = max(m["l"] for m in about["policy"]["privacy"] if m.get("l"))
    units: dict[str, Counter[str]] = defaultdict(Counter)
    copies: dict[tuple[str, str], int] = {}
    for t, possible, n in content["units"]:
        if len(set(possible.split())) < least:
            return "a group leaves fewer values possible than l"
        copies[t, possible] = n
        for v in possible.split():
            units[t][v] += n
    if {t: dict(c) for t, c in counted.items()} != {t: dict(c) for t, c in units.items()}:
        return "the table holds other rows than the groups of the ledger"
    for t, _, possible, n in lines:
        if n > copies.get((t, possible), 0):
            return "a value occurs more often in a group than the others"
    return None


def _continuity_fault(before: pl.DataFrame | None, persons: pl.DataFrame, mode: str, number: int) -> str | None:
    """The first contradiction between the persons of a part and those of the parts before it; None if there is none.

    before  the last record of each person in the parts before
    """
    if persons["person"].n_unique() < persons.height:
        return "a person is in the ledger twice"
    if not (persons["part"] == number).all():
        return "the ledger belongs to another part"
    if before is None:
        return None
    if mode == "views":
        return "a view has people whom the first part does not have" if persons.height else None
    both = before.join(persons, on="person", suffix="_now")
    if mode == "increment":
        return None if both.is_empty() else "a person is published a second time"
    same = both.filter((pl.col("value") == pl.col("value_now")) & (pl.col("possible") != pl.col("possible_now")))
    return None if same.is_empty() else "somebody who stayed has other possible values than before"


def _waiting_fault(
    before: Mapping[str, int],
    waiting: Mapping[str, int],
    former: pl.DataFrame | None,
    persons: pl.DataFrame,
    about: Mapping[str, Any],
) -> str | None:
    """The first contradiction in the number of parts for which people waited; None if there is none.

    before, waiting  person -> number of parts waited for, after the part before and after this part
    former           all persons of the parts before
    persons          the persons of this part
    """
    if any(n != before.get(p, 0) + 1 for p, n in waiting.items()):
        return "the parts that somebody has waited for are counted wrong"
    most = about.get("wait", 0)
    if any(n > most for n in waiting.values()):
        return f"somebody waits for more than {most} parts"
    if about["mode"] == "again" and former is None and waiting:
        return "somebody waits in the first part"
    shown = persons["person"]
    if about["mode"] == "increment" and former is not None:
        shown = pl.concat([shown, former["person"]])
    if shown.is_in(list(waiting)).any():
        return "a person on the waiting list is published"
    return None


def refuse_other(place: Path) -> None:
    """InputError for a folder without series.json: it is no series, or that file is lost."""
    if (place / "series.json").is_file():
        return
    if (place / "0001").is_dir():
        raise InputError(f"{str(place)!r} has parts of a series, but not 'series.json'; put this file back from a copy")
    raise InputError(f"{str(place)!r} is no series; shoal series start makes one")


def certificate_of(place: Path, number: int) -> tuple[Path, Path]:
    """Table and certificate of a part; VerificationError if one is missing."""
    folder = place / f"{number:04d}"
    for path in (folder / RELEASE, folder / CERTIFICATE):
        if not path.is_file():
            raise VerificationError(f"part {number} of the series lacks {path.name!r}")
    return folder / RELEASE, folder / CERTIFICATE
