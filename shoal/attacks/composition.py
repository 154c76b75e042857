"""Composition: findings about people in several releases, with the figures of ``shoal.judge.composition``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import polars as pl

from shoal.attacks.reading import Figure, Reading, wilson
from shoal.engines.codes import as_text
from shoal.errors import InputError
from shoal.judge.composition import Composition, Learned, ReleaseOfPeople, compose

PAPER = "Ganta, Kasiviswanathan, Smith 2008"
TIED = "\x1fall sensitive columns"  # no table has a column of this name
LOWERS = (
    "publish once, or let the second release keep the groups of the first (m-invariance, Xiao, Tao 2007; a recoder "
    "fitted once)"
)


def found(
    reading: Reading, frames: Sequence[pl.DataFrame], people: pl.DataFrame | None, hierarchies: Mapping[str, Any]
) -> tuple[list[Figure], list[str]]:
    """The findings, and notes on what can't be composed.

    frames  the other releases
    people  the original, or a register of everyone

    This release is composed with each other release, then with all of them. This is done for every sensitive column,
    and then for the combination of all, because a row reveals the values that occur together. A register without
    sensitive values shows what an intruder claims, but not whether it is right.
    """
    out: list[Figure] = []
    notes: list[str] = []
    own = [n for n in reading.sensitive if any(n in f.columns for f in frames)]
    columns: list[str | None] = [*own] or [None]
    for column in columns:
        have = [i for i, f in enumerate(frames) if column is None or column in f.columns]
        if lack := [str(i + 1) for i in range(len(frames)) if i not in have]:
            notes.append(f"composition by {column!r}: release {', '.join(lack)} has no such column")
        named = f", {column}" if len(own) > 1 else ""
        _sets(_Setting(reading, frames, people, hierarchies, column, named), have, out, notes)
    both = [i for i, f in enumerate(frames) if len(own) > 1 and set(own) <= {*f.columns}]
    if both and people is not None and set(own) <= {*people.columns}:
        tied = [_with_combined_column(f, own) for f in frames]
        whole = replace(reading, frame=_with_combined_column(reading.frame, own))
        setting = _Setting(
            whole, tied, _with_combined_column(people, own), hierarchies, TIED, ", all sensitive columns at once"
        )
        _sets(setting, both, out, notes)
    kept = {f.name: f for f in reversed(out)}  # the sizes of intersections are the same for every column
    return [f for f in out if kept[f.name] is f], list(dict.fromkeys(notes))


class _Setting(NamedTuple):
    """One composition: the release, the others, the people, hierarchies, the sensitive column, and its display name."""

    reading: Reading
    frames: Sequence[pl.DataFrame]
    people: pl.DataFrame | None
    hierarchies: Mapping[str, Any]
    column: str | None
    named: str


def _with_combined_column(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """A frame with one more column: the combination of several columns."""
    if not set(columns) <= {*frame.columns}:
        return frame
    texts = [as_text(frame[n]).fill_null("").str.len_chars().cast(pl.String) + ":" + as_text(frame[n]).fill_null("")
             for n in columns]  # fmt: skip
    return frame.with_columns(reduce(lambda a, b: a + b, texts).alias(TIED))


def _sets(setting: _Setting, have: Sequence[int], out: list[Figure], notes: list[str]) -> None:
    """Add figures and notes of this release composed with each of the others, then with all of them."""
    many = len(setting.frames)
    sets = [[i] for i in have] + ([list(have)] if len(have) > 1 else [])
    for chosen in sets:
        which = "" if many == 1 else f", release {chosen[0] + 1}" if len(chosen) == 1 else f", all {len(chosen) + 1}"
        try:
            composed, checked = _composed(setting, [setting.frames[i] for i in chosen])
        except InputError as error:
            notes.append(f"composition with release {', '.join(str(i + 1) for i in chosen)}: {error}")
            continue
        l = setting.reading.l_of(setting.column)
        out += _findings(composed, l, (setting.named, which), checked=checked, tied=setting.column == TIED)
        if setting.people is not None and "matched" in composed.placed:
            notes.append("the files do not reveal which row is whose: groups are known up to one placement that agrees")


def _composed(setting: _Setting, frames: Sequence[pl.DataFrame]) -> tuple[Composition, bool]:
    """The figures, and whether the sensitive values of the people are known, so that claims can be checked."""
    reading, column, people = setting.reading, setting.column, setting.people
    checked = people is None or column is None or column in people.columns
    own = None
    if people is not None:
        own = people[[*reading.quasi, *([column] if column in people.columns else [])]]  # "*" would select all columns
        if not checked:
            own = own.with_columns(pl.lit(None, pl.String).alias(str(column)))
    trees = {n: h for n, h in setting.hierarchies.items() if n in reading.quasi}
    given = [
        ReleaseOfPeople(table, reading.quasi, trees, own)
        if table is reading.frame or (own is not None and checked and table.height == own.height)
        else ReleaseOfPeople(table, [q for q in reading.quasi if q in table.columns], {})
        for table in (*frames, reading.frame)
    ]
    asked = None if column == TIED or reading.l_of(column) <= 1 else reading.l_of(column)
    return compose(given, sensitive=column, k=max(reading.k, 2), l=asked), checked


def _findings(
    composed: Composition, l: float, which: tuple[str, str], *, checked: bool = True, tied: bool = False
) -> list[Figure]:
    """Findings for the adversary who knows the groups, and for the one who doesn't.

    l        the promise of the column, 1 if there is none
    which    display names of the column and of the releases
    checked  whether the truth is known
    tied     whether the values combine several columns
    """
    if composed.rows_alone is not None:
        alone = composed.rows_alone
        if alone.tell is None:
            return []
        low, high = wilson(alone.tell, alone.rows)
        return [
            Figure(
                "composition", f"rows alone{''.join(which)}", PAPER,
                "the intruder has both releases and no register", "rows for which one value is left by all groups they "
                "may meet", alone.tell / max(alone.rows, 1), low, high, {"one release": 0.0}, None, alone.rows,
                alone.tell / max(alone.rows, 1), None, LOWERS,
                {"rows_for_which_some_group_leaves_one": alone.may_tell},
            )
        ]  # fmt: skip
    out: list[Figure] = []
    for learned, name, assumes in (
        (composed.known, "groups known", "the intruder knows the class of a person in each release"),
        (composed.unknown, "groups unknown", "the intruder has a register and knows who is in both releases"),
    ):
        if learned is not None and (checked or learned is composed.unknown):
            known = learned if checked else replace(learned, right=None, truth=None, truth_alone=None)
            out += _of(known, name, which, assumes, composed, l)
    return [f for f in out if not (tied and f.name.startswith("few people"))]


def _of(
    learned: Learned, name: str, which: tuple[str, str], assumes: str, composed: Composition, l: float
) -> list[Figure]:
    """The findings of one sensitive column and one set of releases."""
    people, (column, releases) = max(composed.people, 1), which
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
        worst = (f"{learned.worst.people:,} people with the same known values", float(learned.worst.posterior))
    out = []

    def add(what: str, measures: str, many: int, base: Mapping[str, float], risk: float | None, more: Any) -> None:
        low, high = wilson(many, people)
        valued = what != "few people"
        out.append(
            Figure(
                "composition", f"{what}, {name}{column if valued else ''}{releases}", PAPER, assumes, measures,
                many / people, low, high, base, None, composed.people, risk, worst if valued else None, LOWERS, more,
            )
        )  # fmt: skip

    if learned.fewer_than_k is not None:
        measures = f"people who share all their classes with fewer than {composed.k}"
        few = learned.fewer_than_k
        met = learned.worst.people if learned.worst is not None else composed.k
        chance = 1 / max(min(met, composed.k - 1), 1) if few else 0.0  # at most k - 1 people are in the intersection
        add("few people", measures, few, {"one release": 0.0}, chance, {})
    if learned.one_value is not None:
        risk = 1.0 if learned.one_value else 0.0
        add("one value", "people for whom one value is left", learned.one_value, {"one release": 0.0}, risk, details)
    if learned.above is not None:
        base = {"the better of the releases alone": (learned.alone or 0) / people}
        measures = f"people of whom some value is likelier than 1/l = {1 / l:.3g}"
        more = {**details, "share_of_these_claims_that_is_right": learned.right}
        claimed = learned.highest if learned.right is None else learned.right
        add("above 1/l", measures, learned.above, base, claimed if learned.above else 0.0, more)
    return out
