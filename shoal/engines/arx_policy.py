"""A policy from a project of ARX, and the hierarchies beside it."""

from __future__ import annotations

import re
from pathlib import Path

from shoal.engines.arx import Project
from shoal.engines.propose import quoted

_WORDS = {
    "quasi_identifiers": "Columns that others may know about a person; they are recoded.",
    "sensitive": "Columns that nobody may learn about a person; published as they are.",
    "identifiers": "Columns that leave the table.",
    "insensitive": "Columns carried along unchanged.",
}


def hierarchy_files(project: Project, folder: str) -> dict[str, str]:
    """Column -> path of its hierarchy, relative to the policy; names of columns may be no names of files."""
    return {
        name: f"{folder}/{i:02}-{re.sub(r'[^0-9A-Za-z_-]+', '_', name)[:40]}.csv"
        for i, name in enumerate(project.hierarchies, 1)
    }


def policy_text(project: Project, path: Path, files: dict[str, str], k: int) -> str:
    """The policy as TOML; ``k`` where the project asks for none."""
    lines = [f"# From the ARX project {path.name!r}. Read it: the words mean the same, the recoding does not.", ""]
    for role, said in _WORDS.items():
        names = [name for name, own in project.roles.items() if own == role]
        lines += [f"# {said}", f"{role} = [{', '.join(map(quoted, names))}]", ""]
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
