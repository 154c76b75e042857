"""Mode "increment": every person appears once, and a part holds new people alone.

Each part meets the models by itself.  A class of the union of parts is a union of classes of parts with the same
published tuple, so by monotony of the models everything together meets them too; an intruder who knows the part that
somebody came in with is left with that part's class, which meets them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InfeasibleError, InputError
from shoal.publishing.series.cells import columns_of, losses_of
from shoal.publishing.series.ledger import SCHEMA, Keyed, Ledger

Search = Callable[[pl.DataFrame], pl.DataFrame]


class Added(NamedTuple):
    """What a part publishes, in the order of its people, and the ledger that goes with it.

    frame     the published rows, text;  ledger: after this part
    waiting   rows that wait for the next part;  made_up: rows without a person;  held: rows of groups held back
    """

    frame: pl.DataFrame
    ledger: Ledger
    waiting: int = 0
    made_up: int = 0
    held: int = 0


def add(
    frame: pl.DataFrame,
    persons: Sequence[str] | None,
    ledger: Ledger,
    keyed: Keyed,
    search: Search,
    policy: object,
    *,
    wait: int,
    wait_above: float,
    without_waiting: bool,
) -> Added:
    """The next part of new people.

    frame    the table's columns as text;  persons: keyed hash of each row's person, None where all rows are new
    search   publishes a table so that it meets the models, rows in their order
    wait, wait_above  a row that would lose more than this share waits, at most so many parts
    without_waiting   whether those who wait may be absent now; they are then never published

    Raises InputError for somebody who was published before, or who waits and is absent; InfeasibleError where the new
    people alone cannot meet the models.  The search, and O(n) beside it.
    """
    if persons is None:
        persons = keyed.column("row", [f"{ledger.number + 1} {i}" for i in range(frame.height)])
    _refuse(persons, ledger, without_waiting)
    published = search(frame)
    stays = np.zeros(frame.height, bool)
    waited = np.array([ledger.waiting.get(p, 0) for p in persons], int)
    names = list(policy.grouped)  # type: ignore[attr-defined]
    if wait:
        rows = published.select(names).rows()
        columns = columns_of(policy, {n: frame[n].to_list() for n in names})  # type: ignore[arg-type]
        loses = losses_of(columns, rows) > wait_above + 1e-12
        stays = _waits(rows, loses, waited < wait)
        if stays.all():
            raise InfeasibleError(
                f"all {frame.height:,} rows would lose more than {wait_above:g} and may still wait, so this part would "
                "be empty; add more people, or start the series with a larger --wait-above"
            )
    out = published.filter(~stays)
    kept = [p for p, s in zip(persons, stays, strict=True) if not s]
    lines = _entered(out, kept, ledger, keyed, names, list(policy.sensitive))  # type: ignore[attr-defined]
    waiting = {p: int(n) + 1 for p, n, s in zip(persons, waited, stays, strict=True) if s}
    after = Ledger(number=ledger.number + 1, persons=lines, waiting=waiting)
    return Added(out, after, waiting=len(waiting))


def _refuse(persons: Sequence[str], ledger: Ledger, without_waiting: bool) -> None:
    twice = len(persons) - len(set(persons))
    if twice:
        raise InputError(
            f"{twice:,} rows are a second row of a person; a series of this mode takes one row a person, so put a "
            "person's rows together first"
        )
    new = pl.DataFrame({"person": list(persons)}, schema={"person": pl.String})
    before = new.join(ledger.persons, on="person", how="semi").height
    if before:
        raise InputError(
            f"{before:,} people of this table stand in an earlier part, and mode 'increment' publishes everybody "
            "once; hand over new people alone, or start a series of mode 'again'"
        )
    absent = set(ledger.waiting) - set(persons)
    if absent and not without_waiting:
        raise InputError(
            f"{len(absent):,} rows of an earlier table wait for this part and are not in this table; add them to it, "
            "or say --without-waiting (without_waiting=True), and they are never published"
        )


def _waits(rows: Sequence[tuple[str | None, ...]], loses: np.ndarray, may: np.ndarray) -> np.ndarray:
    """bool[rows]: whole classes wait whose rows lose too much and may all wait still, so that the others meet the
    models as they did."""
    number: dict[tuple[str | None, ...], int] = {}
    of = np.array([number.setdefault(r, len(number)) for r in rows], int)
    blocked = np.bincount(of, weights=~may, minlength=len(number)) > 0
    return loses & ~blocked[of]


def _entered(
    out: pl.DataFrame, persons: Sequence[str], ledger: Ledger, keyed: Keyed, quasi: list[str], sensitive: list[str]
) -> pl.DataFrame:
    """The ledger's lines with those of a part added."""
    at = _hashed(out.select(quasi), "tuple", keyed)
    of = _hashed(out.select(sensitive), "value", keyed) if sensitive else [keyed.one("value", [])] * out.height
    new = pl.DataFrame(
        {"person": list(persons), "tuple": at, "value": of},
        schema=dict.fromkeys(("person", "tuple", "value"), pl.String),
    ).with_columns(part=pl.lit(ledger.number + 1, pl.Int64))
    possible = new.group_by("tuple").agg(pl.col("value").unique().sort().str.join(" ").alias("possible"))
    new = new.join(possible, on="tuple", how="left", maintain_order="left").select(*SCHEMA)
    return pl.concat([ledger.persons, new])


def _hashed(rows: pl.DataFrame, what: str, keyed: Keyed) -> pl.Series:
    """The keyed hash of every row; equal rows are hashed once."""
    distinct = rows.unique()
    named = distinct.with_columns(pl.Series("shoal hash", [keyed.one(what, row) for row in distinct.rows()], pl.String))
    both = rows.join(named, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")
    return both["shoal hash"]
