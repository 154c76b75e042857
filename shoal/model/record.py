"""Certificate files as they stand on disk: read strictly, sealed, and taken as the recipe of a release."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from shoal.errors import InputError
from shoal.model.hierarchy import BUILDERS, Hierarchy

FORMAT = 2  # of certificate files and records; format 1 had both in one file
PRIVATE_SETTINGS = ("seed",)  # of a policy, what no receiver needs: with it the search could be made again
DEEPEST = 40
LARGEST = 64 << 20


def read_json(path: str | Path, what: str = "certificate file of shoal") -> dict[str, Any]:
    """The JSON object in a file.

    InputError for anything a reader could take in two ways: a key twice, NaN or an infinite number, text that is no
    Unicode, an object or list nested more than 40 deep, a file of more than 64 MB.
    """
    path = Path(path)

    def no(why: str) -> NoReturn:
        raise InputError(f"{path.name!r} is not a {what} ({why})")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            no("it names a key twice")
        return found

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            no("it holds a number that is not finite")
        return value

    try:
        if path.is_file() and path.stat().st_size > LARGEST:
            no("it is larger than 64 MB")
        found = json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=once, parse_float=number, parse_constant=number
        )
    except FileNotFoundError:
        raise InputError(f"there is no {what.split(' of ')[0].removesuffix(' file')} {str(path)!r}") from None
    except InputError:
        raise
    except (ValueError, RecursionError, OSError):
        no("not JSON")
    if not isinstance(found, dict):
        no("no object")
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and any("\ud800" <= c <= "\udfff" for c in item):
                no("it holds text that is not Unicode")
        level = below
        if not level:
            return found
    no("it is nested too deep")


def canonical(record: Mapping[str, Any], without: tuple[str, ...] = ()) -> bytes:
    """A record as bytes: keys sorted, some left out."""
    kept = {k: v for k, v in record.items() if k not in without}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest(hierarchy: Hierarchy) -> str:
    """SHA-256 of a hierarchy's content: the same for a file and the rows in it, whatever the order of the rows."""
    content = [
        hierarchy.kind,
        sorted(map(list, hierarchy.rows)),
        [str(s) if not isinstance(s, tuple) else [str(x) for x in s] for s in hierarchy.steps],
        str(hierarchy.origin),
        hierarchy.fill,
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def recipe(path: str | Path, generated: Collection[str], place: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings a certificate file records, ready for ``Policy.of``: the same again.

    generated  names that stand for hierarchies made from the table; place: the column that coordinates become
    given      hierarchies handed over, which need not be found

    A hierarchy that was a file is looked for beside the certificate, then in the working folder, and must be the one
    certified.  Raises InputError where it is missing or another.
    """
    path = Path(path)
    record = read_json(path)
    asked, hashes = record.get("policy"), record.get("hierarchies")
    if not isinstance(asked, dict) or not isinstance(asked.get("quasi_identifiers"), list):
        raise InputError(f"{path.name!r} is no certificate of a release: it records no policy")
    values = {name: value for name, value in asked.items() if value is not None}
    people = values.pop("population", None)
    found = [p for p in (path.parent / str(people), Path(str(people))) if people is not None and p.is_file()]
    if found:
        values["population"] = str(found[0])
    if "coordinates" in values:
        values["quasi_identifiers"] = [name for name in values["quasi_identifiers"] if name != place]
    sources = values.get("hierarchies", {})
    if not isinstance(sources, dict) or not isinstance(hashes, dict):
        raise InputError(f"{path.name!r} does not say which hierarchies were used")
    values["hierarchies"] = {
        name: given[name]
        if name in given
        else source
        if source in generated
        else source_of(name, str(source), path.parent)
        for name, source in sources.items()
        if not ("coordinates" in values and name == place)
    }
    for name, source in values["hierarchies"].items():
        if isinstance(source, str) and source in generated:
            continue
        said = hashes.get(name)
        if not isinstance(said, dict) or digest(Hierarchy.of(source)) != said.get("sha256"):
            raise InputError(f"the hierarchy of {name!r} is not the one certified")
    return values


def source_of(column: str, source: str, folder: Path) -> str:
    """A recorded hierarchy as something to read: a builder as it is, a file beside the certificate or here."""
    if source.partition(":")[0] in BUILDERS:
        return source
    name = Path(source).name
    for place in (folder / name, Path(name)):
        if name and place.is_file():
            return str(place)
    raise InputError(
        f"the hierarchy of {column!r} ({source}) is neither beside the certificate nor here; put it there, or hand it "
        f"over: hierarchies[{column!r}]=FILE"
    )
