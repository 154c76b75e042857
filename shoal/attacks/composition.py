"""One person in several releases: the figures of ``shoal.judge.composition`` as findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from shoal.attacks.finding import Finding, wilson
from shoal.attacks.reading import Reading
from shoal.errors import InputError
from shoal.judge.composition import Composition, Learned, Published, compose

PAPER = "Ganta, Kasiviswanathan, Smith 2008"
LOWERS = (
    "publish once, or let the second release keep the groups of the first (m-invariance, Xiao, Tao 2007; a recoder "
    "fitted once)"
)


def found(
    reading: Reading, frames: Sequence[pl.DataFrame], people: pl.DataFrame | None, hierarchies: Mapping[str, Any]
) -> tuple[list[Finding], list[str]]:
    """Findings, and notes on what could not be set together.

    frames  the other releases;  people: the original, or a register of everybody
    """
    column = reading.sensitive[0] if reading.sensitive else None
    out: list[Finding] = []
    notes: list[str] = []
    kept = [*reading.quasi, *([column] if column and people is not None and column in people.columns else [])]
    own = None if people is None else people.select(kept)
    valued = column if own is None or column in own.columns else None
    for number, frame in enumerate(frames, 1):
        given = [
            Published(table, reading.quasi, {n: h for n, h in hierarchies.items() if n in reading.quasi}, own)
            if table is reading.frame or (own is not None and table.height == own.height)
            else Published(table, [q for q in reading.quasi if q in table.columns], {})
            for table in (frame, reading.frame)
        ]
        try:
            said = compose(given, sensitive=valued, k=max(reading.k, 2), l=reading.l if reading.l > 1 else None)
        except InputError as error:
            notes.append(f"composition with release {number}: {error}")
            continue
        out += _findings(said, reading, "" if len(frames) == 1 else f", release {number}")
        if people is not None and "matched" in said.placed:
            notes.append(
                "which row is whose is not told by the files: groups are known up to one placement that agrees"
            )
    return out, list(dict.fromkeys(notes))


def _findings(said: Composition, reading: Reading, which: str) -> list[Finding]:
    """Whoever knows the groups, and whoever does not."""
    if said.rows_alone is not None:
        alone = said.rows_alone
        if alone.tell is None:
            return []
        low, high = wilson(alone.tell, alone.rows)
        return [
            Finding(
                "composition", f"rows alone{which}", PAPER,
                "the intruder has both releases and no register", "rows for which one value is left by all groups they "
                "may meet", alone.tell / max(alone.rows, 1), low, high, {"one release": 0.0}, None, alone.rows,
                alone.tell / max(alone.rows, 1), None, LOWERS,
                {"rows_for_which_some_group_leaves_one": alone.may_tell},
            )
        ]  # fmt: skip
    out: list[Finding] = []
    for learned, name, assumes in (
        (said.known, "groups known", "the intruder knows in which class of each release a person stands"),
        (said.unknown, "groups unknown", "the intruder has a register and knows who is in both releases"),
    ):
        if learned is not None:
            out += _of(learned, name + which, assumes, said, reading)
    return out


def _of(learned: Learned, name: str, assumes: str, said: Composition, reading: Reading) -> list[Finding]:
    people = max(said.people, 1)
    details = {
        key: value
        for key, value in (
            ("mean_posterior_of_the_truth", learned.truth), ("by_one_release", learned.truth_alone),
            ("highest_posterior", learned.highest), ("people_with_a_contradiction", learned.contradicted),
        )
        if value is not None
    }  # fmt: skip
    worst = None
    if learned.worst is not None and learned.worst.posterior is not None:
        worst = (f"{learned.worst.people:,} people alike in all that is known", float(learned.worst.posterior))
    out = []

    def add(what: str, measures: str, many: int, base: Mapping[str, float], risk: float | None, more: Any) -> None:
        low, high = wilson(many, people)
        out.append(
            Finding(
                "composition", f"{what}, {name}", PAPER, assumes, measures, many / people, low, high, base, None,
                said.people, risk, worst if what != "few people" else None, LOWERS, more,
            )
        )  # fmt: skip

    if learned.fewer_than_k is not None:
        measures = f"people who share all their classes with fewer than {said.k}"
        few = learned.fewer_than_k
        met = learned.worst.people if learned.worst is not None else said.k
        chance = 1 / max(min(met, said.k - 1), 1) if few else 0.0  # at most k - 1 of them are together
        add("few people", measures, few, {"one release": 0.0}, chance, {})
    if learned.one_value is not None:
        risk = 1.0 if learned.one_value else 0.0
        add("one value", "people for whom one value is left", learned.one_value, {"one release": 0.0}, risk, details)
    if learned.above is not None:
        base = {"the better of the releases alone": (learned.alone or 0) / people}
        measures = f"people of whom some value is likelier than 1/l = {1 / reading.l:.3g}"
        more = {**details, "share_of_these_claims_that_is_right": learned.right}
        add("above 1/l", measures, learned.above, base, learned.right if learned.above else 0.0, more)
    return out
