"""``shoal series``: releases one after another that together keep what each promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, progress, short
from shoal.cli.models import with_options
from shoal.cli.options import JSON_, Text, flag

ACTIONS = ("start", "add", "status")


@app.command()
@with_options
def series(
    action: str = typer.Argument(help=f"{', '.join(ACTIONS)}; shoal verify DIR checks it."),
    folder: Path = typer.Argument(help="The folder of the series."),
    table: Path | None = typer.Argument(None, help="Of add: the table of the next part."),
    policy: Path | None = flag(None, "--policy", "Of start: a TOML file of settings, or a certificate."),
    mode: str | None = flag(
        None, "--mode", "Of start: increment (everybody once; the default), again (the whole table each time)."
    ),
    wait: int | None = flag(None, "--wait", "Of start: how many parts a row may wait that would lose too much."),
    wait_above: float | None = flag(None, "--wait-above", "Of start: the loss, from 0 to 1, above which rows wait."),
    no_counterfeits: bool = flag(
        False, "--no-counterfeits", "Of start, mode again: hold a group back rather than make up rows."
    ),
    person: str | None = flag(None, "--person", "Of add: column that names who a row is about; it is left out."),
    without_waiting: bool = flag(
        False, "--without-waiting", "Of add: rows that wait may be absent, and are then never published."
    ),
    sign: Path | None = flag(None, "--sign", "Of add: private key that signs the certificate; see keygen."),
    text: Text = Text(),
    as_json: bool = JSON_,
) -> None:
    """Publish releases one after another: months and corrections."""
    import shoal
    from shoal.errors import PolicyError
    from shoal.publishing.series.folder import RELEASE, part_name

    given: dict[str, Any] = {"policy": policy, "mode": mode, "wait": wait, "wait_above": wait_above}
    begins = {name: value for name, value in given.items() if value is not None}
    begins |= {"counterfeits": False} if no_counterfeits else {}
    if action not in ACTIONS:
        raise PolicyError.unknown("action of shoal series", action, ACTIONS)
    if begins and action != "start":
        raise PolicyError(f"--{next(iter(begins)).replace('_', '-')} is decided once, by shoal series start")
    if (table is None) is (action == "add"):
        raise PolicyError(
            f"shoal series add takes a table: shoal series add {folder} TABLE"
            if table is None
            else f"shoal series {action} takes no table"
        )
    if action == "start":
        if policy is None:
            raise PolicyError("say with --policy FILE what every part is asked; shoal init TABLE writes one")
        made = shoal.Series.start(folder, begins.pop("policy"), **begins)
        answer(
            made.status(), [f"series  {folder}, mode {made.mode}", f"ledger  {folder / 'private'} (keep it)"], as_json
        )
        return
    held = shoal.Series(folder)
    if action == "status":
        facts = held.status()
        answer(facts, [f"{name}  {value}" for name, value in facts.items()], as_json)
        return
    with progress() as listener:
        part = held.add(
            table, person=person, without_waiting=without_waiting, sign=sign, progress=listener, **text._asdict()
        )
    facts = {**part.as_dict(), **{n: v for n, v in held.status().items() if n != "waiting"}}
    lines = [
        f"part {facts['parts']}: {part.rows:,} rows in {part.groups:,} groups, the smallest of {part.smallest:,}.",
        "reached: " + ", ".join(f"{name} = {short(value)}" for name, value in part.privacy.items()),
        f"loss: NCP {part.loss['ncp']:.4f}" if part.loss["ncp"] is not None else "loss: as the hierarchies say",
        f"made up: {part.made_up:,} rows; waiting: {part.waiting:,} rows; held back: {part.held_back:,} rows",
        f"release  {folder / part_name(facts['parts']) / RELEASE}",
    ]
    answer(facts, lines, as_json)
