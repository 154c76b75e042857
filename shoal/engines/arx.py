"""A project file of ARX (.deid), read as a policy with its hierarchies. No row of the project is read.

The file is a zip archive. ``input/definition.xml`` has an entry for each column, ``input/config.xml`` has weights and
models, and each ``input/hierarchies/COLUMN.csv`` is a hierarchy. Tables and serialized Java objects aren't read.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from shoal.engines.propose import quoted
from shoal.errors import InputError

MOST = 200 << 20  # bytes of an unpacked entry
ROLES = {
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi_identifiers",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "IDENTIFYING_ATTRIBUTE": "identifiers",
    "INSENSITIVE_ATTRIBUTE": "insensitive",
}
_K = re.compile(r"(\d+)-anonymity", re.IGNORECASE)
_DISTINCT = re.compile(r"distinct-(\d+)-diversity for attribute '(.*)'", re.IGNORECASE | re.DOTALL)


class Project(NamedTuple):
    """The request of a project.

    roles        column -> "quasi_identifiers", "sensitive", "identifiers", or "insensitive", in the table's order
    hierarchies  column -> the bytes of its CSV
    ceilings     column -> highest level
    weights      column -> weight
    k            None if the project has no k-anonymity
    distinct     column -> minimum number of different values
    unread       sentences on what was not read
    """

    roles: Mapping[str, str]
    hierarchies: Mapping[str, bytes]
    ceilings: Mapping[str, int]
    weights: Mapping[str, float]
    k: int | None
    distinct: Mapping[str, int]
    unread: tuple[str, ...]


def read_project(path: str | Path) -> Project:
    """Read a project; InputError for another file."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as held:
            names = set(held.namelist())
            if "input/definition.xml" not in names:
                raise InputError(f"{path.name!r} is no ARX project: it has no input/definition.xml; save it with ARX 3")
            definition = _xml(held, "input/definition.xml", path)
            config = _xml(held, "input/config.xml", path) if "input/config.xml" in names else None
            roles, ceilings, unread = _columns(definition, path)
            trees = {}
            for name in roles:
                entry = f"input/hierarchies/{name}.csv"
                if entry in names:
                    trees[name] = _bytes(held, entry, path)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError(f"there is no file {str(path)!r} to read") from None
        raise InputError(f"{path.name!r} is no ARX project: it is not a zip that can be read") from None
    k, distinct, weights, others = _asked(config)
    ceilings = {name: level for name, level in ceilings.items() if name in trees}
    quasi = {name for name, role in roles.items() if role == "quasi_identifiers"}
    return Project(
        roles, {n: t for n, t in trees.items() if n in quasi}, {n: c for n, c in ceilings.items() if n in quasi},
        {n: w for n, w in weights.items() if n in quasi and w > 0}, k, distinct, (*unread, *others),
    )  # fmt: skip


def _bytes(held: zipfile.ZipFile, entry: str, path: Path) -> bytes:
    if held.getinfo(entry).file_size > MOST:
        raise InputError(f"{path.name!r} holds {entry.rpartition('/')[2]!r} of more than {MOST >> 20} MB unpacked")
    return held.read(entry)


def _xml(held: zipfile.ZipFile, entry: str, path: Path) -> ElementTree.Element:
    """The XML tree of an entry. Entity definitions are refused, because they can expand without limit."""
    text = _bytes(held, entry, path)
    plain = text.replace(b"\x00", b"")  # the words also match in UTF-16
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise InputError(f"{path.name!r}: {entry} defines entities, which ARX does not; it is not read")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        raise InputError(f"{path.name!r}: {entry} is not XML that can be read") from None


def _columns(definition: ElementTree.Element, path: Path) -> tuple[dict[str, str], dict[str, int], list[str]]:
    """Role and ceiling of every column, and sentences on what was not read."""
    roles: dict[str, str] = {}
    ceilings: dict[str, int] = {}
    unread = []
    for given in definition.iter("assigment"):  # the format spells it so
        name, kind = given.findtext("name") or "", (given.findtext("type") or "").strip()
        if kind not in ROLES or not name:
            raise InputError(f"{path.name!r} gives a column no role that is known; open and save it with ARX 3")
        roles[name] = ROLES[kind]
        least, most = ((given.findtext(tag) or "All").strip() for tag in ("min", "max"))
        if most.isdecimal():
            ceilings[name] = int(most)
        if least.isdecimal() and int(least) > 0:
            unread.append(f"column {name!r} has a least level of {least}; here a value may stay as it is")
        if given.findtext("microaggregationfunction"):
            unread.append(f"column {name!r} is microaggregated; publish ranges or centers instead")
    if not roles:
        raise InputError(f"{path.name!r} is an ARX project without columns")
    return roles, ceilings, unread


def _asked(config: ElementTree.Element | None) -> tuple[int | None, dict[str, int], dict[str, float], list[str]]:
    """k, distinct l for each column, weights, and the models that are not read."""
    if config is None:
        return None, {}, {}, ["the project has no input/config.xml, so its models are not known"]
    k, distinct, unread = None, {}, []
    for given in config.iter("criterion"):
        text = (given.text or "").strip()
        if found := _K.fullmatch(text):
            k = max(k or 0, int(found[1]))
        elif found := _DISTINCT.fullmatch(text):
            distinct[found[2]] = int(found[1])
        else:
            unread.append(f"the model {text!r} is not read; add it to the policy (docs/models.md has the names)")
    weights = {}
    for pair in config.iter():
        name, weight = pair.findtext("attribute"), pair.findtext("weight")
        if name is not None and weight is not None:
            weights[name] = _number(weight)
    share = next((e.text for e in config.iter() if e.tag.lower() == "relativemaxoutliers"), None)
    if share is not None and _number(share) > 0:
        unread.append(
            f"up to {100 * _number(share):g} % of the rows may be suppressed; here they are starred as it pays"
        )
    return k, distinct, weights, unread


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) else 0.0


_WORDS = {
    "quasi_identifiers": "Columns that others may know about a person; they are recoded.",
    "sensitive": "Columns that nobody may learn about a person; published as they are.",
    "identifiers": "Columns that leave the table.",
    "insensitive": "Columns kept unchanged.",
}


def hierarchy_files(project: Project, folder: str) -> dict[str, str]:
    """Column -> path of its hierarchy, relative to the policy. Column names may not be valid file names."""
    return {
        name: f"{folder}/{i:02}-{re.sub(r'[^0-9A-Za-z_-]+', '_', name)[:40]}.csv"
        for i, name in enumerate(project.hierarchies, 1)
    }


def policy_text(project: Project, path: Path, files: dict[str, str], k: int) -> str:
    """The policy as TOML. ``k`` is used if the project has none."""
    lines = [f"# From the ARX project {path.name!r}. Read it: the words mean the same, the recoding does not.", ""]
    for role, comment in _WORDS.items():
        names = [name for name, own in project.roles.items() if own == role]
        lines += [f"# {comment}", f"{role} = [{', '.join(map(quoted, names))}]", ""]
    lines += [f"# not read: {text}".replace("\n", " ") for text in project.unread]
    least = project.k or k
    models = [f'{{model = "KAnonymity", k = {least}}}']
    models += [
        f'{{model = "DistinctLDiversity", l = {l}, column = {quoted(name)}}}' for name, l in project.distinct.items()
    ]
    lines += ["privacy = [", *(f"    {model}," for model in models), "]"]
    lines += [
        'publish = "hierarchy"',
        'effort = "balanced"',
        "# global_recoding = true  # one level a column, as there",
    ]
    for title, values in (("hierarchies", {n: quoted(f) for n, f in files.items()}), ("max_level", project.ceilings),
                          ("weights", {n: w for n, w in project.weights.items() if w != 0.5})):  # fmt: skip
        if values:
            lines += ["", f"[{title}]", *(f"{quoted(name)} = {value}" for name, value in values.items())]
    return "\n".join(lines) + "\n"
