"""``shoal init``: look at a table and write a commented policy."""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, present
from shoal.cli.options import JSON_, flag
from shoal.errors import PolicyError, is_number


@app.command()
def init(
    table: Path = typer.Argument(
        help="CSV (also .gz), Parquet or Excel file; or an ARX project (.deid), whose roles and hierarchies are kept."
    ),
    output: Path | None = flag(None, "-o", "--output", "The policy; TABLE.policy.toml when not given."),
    k: int | None = flag(None, "--k", "The k to write into the policy; 5 when not given."),
    l: int | None = flag(None, "--l", "The l to write and to test sensitive columns against; 2 when not given."),
    separator: str | None = flag(None, "--separator", "Field separator of a CSV."),
    encoding: str | None = flag(None, "--encoding", "utf-8 or latin-1."),
    force: bool = flag(False, "--force", "Replace an existing policy."),
    as_json: bool = JSON_,
) -> None:
    """Look at a table, propose a role for every column and how to publish it, with reasons; write a policy to edit."""
    from shoal.engines.atomic import publish_text
    from shoal.engines.dangerous import foremost, words
    from shoal.engines.propose import looked_at, publishing, write_policy
    from shoal.engines.targets import POLICY, check_outputs, named_after

    for name, least in (("k", k), ("l", l)):
        if least is not None and least < 1:
            raise PolicyError(f"--{name} {least}: a whole number, at least 1")
    present(table, folders=True)
    if table.suffix.lower() == ".deid":
        if separator is not None or encoding is not None:
            raise PolicyError("--separator and --encoding read a CSV, and a project says itself how it is written")
        if l is not None:
            raise PolicyError("--l: a project says itself which models it asks for; change the policy made of it")
        _from_arx(table, output, k, force, as_json)
        return
    k, l = k or 5, l or 2
    target = output or table.with_name(f"{named_after(table)}.policy.toml")
    closed = check_outputs([(target, POLICY)], [table], overwrite=force)
    found, together, rows = looked_at(table, l=l, separator=separator, encoding=encoding)
    publish_text(target, write_policy(table.name, found, k=k, l=l, together=together, rows=rows), closed=closed)
    lines = [f"{c.name:<24} {c.role:<18} {c.distinct:>8,} values  {c.reason}" for c in found]
    if any(is_number(c.name) for c in found):
        lines.append("warning: a column's name is a number: if the first line is a row, add a line of names above it")
    lines += [f"warning: {c.name}: {w}" for c in found for w in c.warnings]
    lines += [f"together: {words(d, rows)}" for d in foremost(together)]
    way, why = publishing(found)
    lines += [f"publish {way}: {why}", f"policy  {target}"]
    lines.append(f"next    check the roles in it, then run: shoal anonymize {table} --policy {target}")
    facts = {
        "columns": [
            {"name": c.name, "role": c.role, "distinct": c.distinct, "reason": c.reason, "warnings": list(c.warnings)}
            for c in found
        ],
        "dangerous": [d.as_dict() for d in together],
        "publish": {"way": way, "reason": why},
        "output": str(target),
    }
    answer(facts, lines, as_json)


def _from_arx(project: Path, output: Path | None, k: int | None, force: bool, as_json: bool) -> None:
    """A policy and the hierarchies it names, from a project of ARX."""
    from tempfile import TemporaryDirectory

    from shoal.engines.arx import read_project
    from shoal.engines.arx_policy import hierarchy_files, policy_text
    from shoal.engines.atomic import publish_text
    from shoal.engines.targets import POLICY, TABLE, check_outputs
    from shoal.errors import ShoalError
    from shoal.model.hierarchy import Hierarchy

    found = read_project(project)
    if k is not None and found.k:
        raise PolicyError(f"--k {k}: the project asks for k = {found.k}; change that in the policy made of it")
    target = output or project.with_name(f"{project.stem}.policy.toml")
    folder = target.parent / f"{target.name.split('.')[0]}-hierarchies"
    files = hierarchy_files(found, folder.name)
    places = [target.parent / name for name in files.values()]
    with TemporaryDirectory() as trial:  # refused before anything is written, and not when the policy is used
        for name, held in found.hierarchies.items():
            Path(trial, Path(files[name]).name).write_bytes(held)
            Hierarchy.of(Path(trial, Path(files[name]).name))
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        closed = check_outputs([(target, POLICY), *((p, TABLE) for p in places)], [project], overwrite=force)
    except ShoalError:
        if made:
            folder.rmdir()
        raise
    for place, held in zip(places, found.hierarchies.values(), strict=True):
        try:
            text = held.decode("utf-8-sig")
        except UnicodeDecodeError:  # as the trial read it
            text = held.decode("latin-1")
        publish_text(place, text, closed=closed)
    publish_text(target, policy_text(found, project, files, k or 5), closed=closed)
    lines = [f"{name:<24} {role.replace('_', '-').removesuffix('s')}" for name, role in found.roles.items()]
    lines += [f"hierarchy {name:<14} {place}" for name, place in zip(files, places, strict=True)]
    lines += [f"not read: {text}" for text in found.unread]
    lines += [f"policy  {target}", f"next    shoal anonymize TABLE --policy {target}"]
    facts = {
        "columns": [{"name": name, "role": role} for name, role in found.roles.items()],
        "hierarchies": {name: str(place) for name, place in zip(files, places, strict=True)},
        "not_read": list(found.unread),
        "output": str(target),
    }
    answer(facts, lines, as_json)
