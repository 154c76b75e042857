"""``shoal init``: look at a table and write a commented policy."""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, present


@app.command()
def init(
    table: Path = typer.Argument(help="CSV (also .gz), Parquet or Excel file."),
    output: Path | None = typer.Option(None, "-o", "--output", help="The policy; TABLE.policy.toml when not given."),
    k: int = typer.Option(5, "--k", help="The k to write into the policy."),
    l: int = typer.Option(2, "--l", help="The l to write and to test sensitive columns against."),
    separator: str | None = typer.Option(None, "--separator", help="Field separator of a CSV."),
    encoding: str | None = typer.Option(None, "--encoding", help="utf-8 or latin-1."),
    force: bool = typer.Option(False, "--force", help="Replace an existing policy."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
) -> None:
    """Look at a table, propose a role for every column with the reason, and write a policy to edit."""
    from shoal.engines.atomic import publish_text
    from shoal.engines.dangerous import foremost, words
    from shoal.engines.propose import looked_at, write_policy
    from shoal.engines.targets import POLICY, check_outputs

    present(table)
    target = output or table.with_name(f"{table.name.split('.')[0]}.policy.toml")
    closed = check_outputs([(target, POLICY)], [table], overwrite=force)
    found, together, rows = looked_at(table, l=l, separator=separator, encoding=encoding)
    publish_text(target, write_policy(table.name, found, k=k, l=l, together=together, rows=rows), closed=closed)
    lines = [f"{c.name:<24} {c.role:<18} {c.distinct:>8,} values  {c.reason}" for c in found]
    lines += [f"warning: {c.name}: {w}" for c in found for w in c.warnings]
    lines += [f"together: {words(d, rows)}" for d in foremost(together)]
    lines.append(f"policy  {target}")
    lines.append(f"next    read it, correct the roles, then: shoal anonymize {table} --policy {target}")
    facts = {
        "columns": [
            {"name": c.name, "role": c.role, "distinct": c.distinct, "reason": c.reason, "warnings": list(c.warnings)}
            for c in found
        ],
        "dangerous": [d.as_dict() for d in together],
        "output": str(target),
    }
    answer(facts, lines, as_json)
