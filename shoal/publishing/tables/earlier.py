"""A release set against earlier ones of the same people: their figures, and a refusal where they break a promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines import lakes
from shoal.engines.atomic import certificate_path
from shoal.engines.table import Table
from shoal.errors import InputError, VerificationError
from shoal.judge.composition import Published, compose
from shoal.judge.tables.large import hash_of
from shoal.model.arguments import number
from shoal.model.audit import Composition
from shoal.model.certificate import read_json
from shoal.model.policy import Policy
from shoal.model.privacy import KAnonymity, LDiversity
from shoal.publishing.opening import opened
from shoal.publishing.series_folder import RELEASE, is_series, part_name, part_numbers
from shoal.publishing.tables.release import Release

MAX_COMPOSITION = 0.01
"""The share of the people in several releases for whom a promise may be broken, where nothing else is asked: the
posterior is that of a model, and a share below one in a hundred is within what other models would say of it."""


def several(data: Any) -> list[Any]:
    """One release or table, or several of them, as a list."""
    return list(data) if isinstance(data, (list, tuple)) else [data]


def published(
    release: Any,
    roles: Policy,
    hierarchies: Mapping[str, Any] | None = None,
    original: Any = None,
    placed: Any = None,
) -> Published:
    """A release for the judge.

    release      a Release, a path, by whose certificate it is read where one lies beside it, or a frame
    roles        quasi-identifiers and hierarchies of a release that has no certificate
    hierarchies  those that do not lie beside a certificate, or of a table that has none
    Raises InputError for a file that is not there, PolicyError for a hierarchy that its certificate names and that is
    not there.
    """
    asked, separator = roles, None
    given = dict(hierarchies or {})
    trees = dict(given)
    if isinstance(release, Release):
        asked, table = release.policy, opened(release.table)
        trees = {**(asked.hierarchies if asked.publish == "hierarchy" else {}), **given}
    else:
        if isinstance(release, (str, Path)):
            beside = certificate_path(Path(release))
            if beside.is_file():
                record = read_json(beside)
                asked = Policy.read(beside, **({"hierarchies": given} if given else {}))
                separator = record.get("separator") if isinstance(record.get("separator"), str) else None
                trees = dict(asked.hierarchies) if asked.publish == "hierarchy" else {}
        table = opened(release, separator)
    quasi = [q for q in asked.grouped if q in table.columns] or [q for q in roles.grouped if q in table.columns]
    if not quasi:
        raise InputError("an earlier release has none of the quasi-identifiers; hand it over with its certificate")
    whole = None if original is None else opened(original)
    return Published(table, quasi, {n: t for n, t in trees.items() if n in quasi}, whole, placed)


def parts_of(release: Any) -> list[Any]:
    """The releases that a name means: of a series the table of every part, of a table of a lake the file of every
    version that can be read, else what was given.

    Raises InputError for a series without a part, and for a lake without such a table.
    """
    if lakes.is_lake(release):
        versions = lakes.readable(release)
        if not versions:
            raise InputError(f"{str(release)!r} has no version yet, so there is nothing to set this release against")
        return list(versions)
    if not isinstance(release, (str, Path)) or not is_series(release):
        return [release]
    place = Path(release)
    found = [place / part_name(number) / RELEASE for number in part_numbers(place)]
    if not found:
        raise InputError(f"the series {place.name!r} has no part yet, so there is nothing to set this release against")
    return found


def set_against(
    releases: Sequence[Published], sensitive: Sequence[str], k: int, l: float | None, person: str | None = None
) -> tuple[Composition, ...]:
    """The figures for every sensitive column that all of the releases and their originals have; else without one.

    O(figures of one column) for each; see ``shoal.judge.composition.compose``.
    """
    tables: list[pl.DataFrame] = [r.table for r in releases]
    tables += [r.original for r in releases if r.original is not None]
    shared = [name for name in sensitive if all(name in t.columns for t in tables)]
    if not shared:
        return (compose(releases, k=k, person=person),)
    return tuple(compose(releases, sensitive=name, k=k, l=l, person=person) for name in shared)


def promises(asked: Policy) -> tuple[int, float | None]:
    """k and l of a policy: what figures are held against."""
    k = max((m.k for m in asked.privacy if isinstance(m, KAnonymity)), default=2)
    l = max((float(m.l) for m in asked.privacy if isinstance(m, LDiversity)), default=None)
    return k, l


def figures_after(release: Release[Any], table: Table, after: Any, most: float, *, force: bool) -> Release[Any]:
    """The release with what it tells beside earlier ones, of whose people nothing is known but that they may be alike.

    table  the one the new release was made from
    Raises VerificationError where a promise breaks for a larger share than ``most``, unless forced.
    """
    most = number("max_composition", most, "it is a share of people", lambda x: 0 <= x <= 1)
    k, l = promises(release.policy)
    old: list[Published] = []
    seen: list[str] = []
    for given in several(after):
        parts = parts_of(given)
        own = lakes.is_lake(given)  # no certificate says what its older versions were asked
        trees = release.policy.hierarchies if own and release.policy.publish == "hierarchy" else None
        old += [published(one, release.policy, trees) for one in parts]
        seen += [hash_of(one) for one in parts if own]
    names = {*release.policy.grouped, *release.policy.sensitive, *(q for one in old for q in one.quasi_identifiers)}
    whole = table.polars([n for n in table.columns if n in names])
    new = published(release, release.policy, original=whole)
    found = set_against([*old, new], release.policy.sensitive, k, l)
    if not force:
        refuse_composition(found, most)
    return replace(release, facts=replace(release.facts, composition=found, versions=tuple(seen)))


def refuse_composition(found: Sequence[Composition], most: float) -> None:
    """VerificationError where the figures pass what is allowed."""
    worst = max(found, key=lambda c: c.share)
    if worst.share > most:
        raise VerificationError(
            f"set against the earlier releases this one breaks a promise for {100 * worst.share:.1f} % of the people "
            f"who may be in several, {100 * most:g} % are allowed; nothing was published. {worst.sentence}. Publish "
            "a series (shoal series), new people alone, use a recoding that was fitted once (Recoder), or say "
            "⟨force_composition=True⟩"
        )
