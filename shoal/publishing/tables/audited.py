"""The audit of any table: levels of each privacy model, risks, and class sizes.

The second part of the module compares a release with earlier ones of the same people. It computes what all of them
reveal together, and refuses a release that breaks a promise in combination with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from shoal.engines import lakes
from shoal.engines.csv import where_needed
from shoal.engines.open import open_table
from shoal.engines.prepared import codes_for_missing, filled, notes, starred_whole
from shoal.engines.source import Scope, ScopeSettings
from shoal.engines.store import unread_sheets
from shoal.engines.table import Counted, Table, require
from shoal.errors import InputError, PolicyError, Sentence, VerificationError
from shoal.judge.composition import ReleaseOfPeople, compose
from shoal.judge.tables.large import hash_of
from shoal.judge.tables.population import add_population, foreign, outside, refuse_foreign, sized
from shoal.judge.tables.privacy import judge, wildcards
from shoal.model.arguments import known, mapping, number, suggesting
from shoal.model.audit import Audit, Check, Composition
from shoal.model.cards import several
from shoal.model.certificate import read_json
from shoal.model.foreign import unfit_hierarchy
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.policy import PLACE, Policy
from shoal.model.privacy import KAnonymity, LDiversity, PrivacyModel
from shoal.model.privacy.base import CLOSE
from shoal.model.refusals import filled_words
from shoal.model.settings import Measured, ModelSettings
from shoal.paths import certificate_path
from shoal.publishing.series_folder import RELEASE, is_series, part_name, part_numbers
from shoal.publishing.sources import opened, read_census
from shoal.publishing.tables.limits import scales_of
from shoal.publishing.tables.release import Release
from shoal.watching import watched


class AuditSettings(Measured, ModelSettings, ScopeSettings, total=False):
    """The keywords of ``audit`` that are also keywords of a policy or an engine."""


@watched
@suggesting
def audit(
    data: Any,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    missing: str = "category",
    population_size: int | None = None,
    threshold: float = 0.2,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    earlier: Any = None,
    original: Any = None,
    earlier_originals: Any = None,
    **settings: Unpack[AuditSettings],
) -> Audit:
    """Levels of every privacy model, risks, and class sizes of any table.

    policy             roles, and models as checks, as in the request for a release; keywords override it. If it names a
                       column of persons, households, or weights that the table still has, that column is counted
    person, household  columns that identify the person or household of a row: their different values are counted, and k
                       is judged on them
    population         the table from which the rows were drawn. The people that each class fits are counted, for k-map,
                       delta-presence, and the journalist's risk. population_weights: instead, the column that states
                       how many people a row represents. population_size: only the number of people, if no more is known
    hierarchies        for each column, the hierarchy of its values. Without one, a published value is itself, a star,
                       or a range or set as this package writes them. For a sensitive column: the distances between its
                       values, for t-closeness by the hierarchical distance
    missing            "category": a missing value is a value of its own; "wildcard": in addition, ``wildcards`` of the
                       Audit has the risks if missing values and stars match every value; "filled": the missing values
                       of each quasi-identifier are first replaced by its most frequent value, as in ``anonymize``
    models             k=5, l=3, privacy=[...], max_average_risk=0.05: what must hold; each becomes a check of the Audit
    earlier            an earlier release of the same people, or several: paths with certificates next to them, frames,
                       or Releases. ``composition`` of the Audit then has what all of them reveal together. original:
                       the table from which this one was made; earlier_originals: those of the earlier ones, if they
                       were made from other tables; ``person`` is a column of these. Without an original, rows are
                       compared as anyone could compare them
    memory, threads, temporary, glob, table, query, master  as in ``anonymize``; a folder is counted without loading it

    Raises PolicyError and InputError for missing columns and for settings that contradict each other. If a model does
    not hold, this is a failed check, not an error. O(n) for n rows, then O(m) for m different ones and each model.
    Sources: ``shoal.model.privacy``, a file for each model.

    Examples:
        >>> import polars as pl
        >>> found = audit(pl.DataFrame({"age": [34, 34, 35, 61, 61, 62]}), quasi_identifiers=["age"], k=2)
        >>> found.k, found.uniques, found.passes
        (1, 2, False)
    """
    threshold = number("threshold", threshold, "a risk is above 0 and at most 1", lambda x: 0 < x <= 1)
    known("reading of missing values", missing, ("category", "filled", "wildcard"))
    scope, given = Scope.among(settings)
    person = None
    if earlier is not None:
        person = given.pop("person", None) or (policy.person if isinstance(policy, Policy) else None)
    elif original is not None or earlier_originals is not None:
        raise PolicyError("an original matters only for an audit with an earlier release; name one by ⟨earlier=...⟩")
    asked, trees, wanted = _asked(policy, given)
    scope, engine = scope.as_asked(data, engine, asked)
    named = [given.get(role) for role in ("person", "household", "population_weights")]
    needed = [*asked.quasi_identifiers, *asked.sensitive, *(n for n in asked.counting if n in named)]
    with asked.naming():
        opened = open_table(data, engine, separator=separator, encoding=encoding, needed=needed, scope=scope)
        require(opened.columns, needed)
    names = _held(asked, opened.columns, trees)
    opened, cells = filled(opened, names.grouped) if missing == "filled" else (opened, None)
    found = _judged(opened, names, wanted, threshold, trees, missing, engine)
    if asked.max_average_risk is not None:
        found = replace(found, checks=(*found.checks, _mean(found, asked.max_average_risk)))
    if population_size is not None and found.population is None:
        found = sized(found, population_size)
    if earlier is not None:
        own = opened.polars([n for n in opened.columns if n in needed])
        beside_them = (as_list(earlier), original, earlier_originals, person)
        found = replace(found, composition=_composed(own, data, asked, trees, found, *beside_them))
    counted = opened.count(names.quasi_identifiers, names.sensitive)
    read_for = asked.population is not None or earlier is not None
    seen = (
        *notes(counted),
        *_unread_hierarchies(given.get("hierarchies"), counted, trees, read_for),
        *(codes_for_missing(counted) if missing != "category" else ()),
    )
    seen += () if names.units else starred_whole(counted, names.star)
    seen += tuple(unread_sheets(data, scope.table))
    return replace(found, notes=(*seen, *_nobody(opened, names.units), *filled_words(cells)))


def _asked(
    policy: Policy | Mapping[str, Any] | None, given: Mapping[str, Any]
) -> tuple[Policy, dict[str, Any], tuple[PrivacyModel, ...]]:
    """The roles, the hierarchies by column, and the models to check."""
    asks = policy.hierarchies if isinstance(policy, Policy) else mapping("the policy", policy).get("hierarchies", {})
    own = mapping("hierarchies", given.get("hierarchies"))
    read = {n: h if isinstance(h, str) and h in GENERATED else Hierarchy.of(h) for n, h in own.items()}
    trees = {**asks, **read}
    asked = Policy.of(policy, **{**({"k": 1} if policy is None else {}), **given, "hierarchies": trees})
    if policy is not None:
        return asked, trees, asked.privacy
    models = [name for name in given if name not in Measured.__annotations__]
    given_k = "k" in models  # k = 1 was added above, not requested
    return asked, trees, tuple(m for m in asked.privacy if given_k or m != KAnonymity(1)) if models else ()


def _unread_hierarchies(
    given: Mapping[str, Any] | None, counted: Counted, trees: Mapping[str, Any], read_for: bool
) -> list[str]:
    """A sentence for each given hierarchy of a quasi-identifier that has none of its values, or that changes no figure.

    read_for  whether there is a table with which labels are compared
    """
    found = []
    for column in counted.quasi:
        tree = trees.get(column.name)
        if column.name not in (given or {}) or not isinstance(tree, Hierarchy):
            continue
        idle = Sentence(
            f"the hierarchy of {column.name!r} changes no figure: labels are read only to compare them with "
            "⟨population⟩ or ⟨earlier⟩"
        )
        found.append(unfit_hierarchy(column.name, column.texts(), tree) or ("" if read_for else idle))
    return [note for note in found if note]


def _composed(
    table: pl.DataFrame,
    data: Any,
    asked: Policy,
    trees: Mapping[str, Any],
    found: Audit,
    earlier: Sequence[Any],
    original: Any,
    originals: Any,
    person: str | None,
) -> tuple[Composition, ...]:
    """What a table and earlier releases reveal together, for the requested k and l, or those that it reaches."""
    k, l = promises(asked)
    k = k if any(isinstance(m, KAnonymity) and m.k > 1 for m in asked.privacy) else max(found.k, 2)
    if l is None:
        reached = [v.l for v in found.sensitive.values() if v.l is not None]
        l = min(reached) if reached else None
    tables = as_list(originals) if originals is not None else [original] * len(earlier)
    if len(tables) != len(earlier):
        raise PolicyError(
            f"there are {len(earlier)} earlier releases and {len(tables)} ⟨earlier_originals⟩; give one for each, in "
            "the same order"
        )
    given = {n: h for n, h in trees.items() if n not in asked.sensitive}
    old = [published(one, asked, given, o) for one, o in zip(earlier, tables, strict=True)]
    new = published(data if isinstance(data, (str, Path)) else table, asked, given, original)
    for i, one in enumerate(old, 1):
        if originals is None and one.original is not None and one.original.height != one.table.height:
            raise InputError(
                f"the earlier release {i} has {one.table.height:,} rows and the original {one.original.height:,}; "
                "give the table that it was made from as ⟨earlier_originals=...⟩"
            )
    return set_against([*old, new], asked.sensitive, k, l, person)


def _judged(
    opened: Table,
    names: Policy,
    wanted: tuple[PrivacyModel, ...],
    threshold: float,
    trees: Mapping[str, Any],
    missing: str,
    engine: str | None,
) -> Audit:
    """The judge's findings on a table, row by row if a population or wildcards need it."""
    people = names.population
    census = None if people is None else read_census(people, names.quasi_identifiers, engine=engine)

    def beyond(frame: pl.DataFrame, judged: Audit) -> Audit:
        if missing == "wildcard":
            judged = replace(judged, wildcards=wildcards(frame, names.quasi_identifiers, threshold, names.star))
        if census is not None:
            census.refuse_smaller(frame.height)
        fits = outside(frame, names, census, foreign(names.star, trees), None)
        if fits is None:
            return judged
        if census is not None:
            refuse_foreign(fits)
        return add_population(judged, fits, wanted)

    rows = missing == "wildcard" or census is not None or bool(names.weighed)
    return audit_table(opened, names, threshold, wanted, names.units, beyond if rows else None)


def _nobody(table: Table, units: Sequence[str]) -> list[str]:
    """A sentence for each column that doesn't identify a person in every row."""
    found = []
    for name in units:
        counted = table.count([name], [])
        missing = counted.quasi[0].values.is_null().to_numpy()[counted.histogram.quasi[:, 0]]
        rows = int(counted.histogram.count[missing].sum())
        if rows:
            found.append(f"column {name!r} has no value in {several(rows, 'row')}, counted for no person")
    return found


def _held(asked: Policy, columns: Sequence[str], trees: Mapping[str, Any]) -> Policy:
    """The part of a policy that applies to a table: persons and weights only if the columns exist, and coordinates as
    tiles if the table has these."""
    quasi = asked.quasi_identifiers
    if asked.coordinates is not None:
        quasi = asked.grouped if PLACE in columns else (*quasi, *asked.coordinates)
    beside = {role: getattr(asked, role) for role in ("person", "household", "population_weights")}
    return Policy(
        quasi_identifiers=quasi,
        sensitive=asked.sensitive,
        privacy=asked.privacy,
        population=asked.population,
        hierarchies={n: h for n, h in trees.items() if n in asked.sensitive},
        dates={n: d for n, d in asked.dates.items() if n in asked.sensitive},
        decimal={n: d for n, d in asked.decimal.items() if n in asked.sensitive},
        star=asked.star,
        **{role: name for role, name in beside.items() if name in columns},
    )


def _mean(found: Audit, most: float) -> Check:
    """The mean prosecutor risk as a check against its requested limit."""
    level = found.risk["prosecutor_mean"]
    return Check(
        model="mean risk", short="max_average_risk", asked={"max_average_risk": most}, column=None, level=level,
        passes=level <= most + CLOSE,
    )  # fmt: skip


def audit_table(
    table: Table,
    policy: Policy,
    threshold: float,
    models: Sequence[PrivacyModel],
    units: Sequence[str],
    outside: Callable[[pl.DataFrame, Audit], Audit] | None,
) -> Audit:
    """Judge an opened table; an engine only returns cells and counts. units: columns that identify persons."""
    how = scales_of(policy)
    names = [*policy.grouped, *policy.sensitive, *units]
    names += [n for n in policy.weighed if n in table.columns]
    if not table.in_memory and outside is None:
        cells, counts = table.counts(names)
        return judge(cells, policy.grouped, policy.sensitive, models, threshold, units, counts, **how)
    frame = table.polars(names)  # with a population, rows are counted one by one
    audit = judge(frame, policy.grouped, policy.sensitive, models, threshold, units, **how)
    return audit if outside is None else outside(frame, audit)


MAX_COMPOSITION = 0.01
"""The share of the people in several releases for whom a promise may be broken, where nothing else is asked: the
posterior is that of a model, and a share below one in a hundred is within what other models would say of it."""


def as_list(data: Any) -> list[Any]:
    """One release or table, or several of them, as a list."""
    return list(data) if isinstance(data, (list, tuple)) else [data]


def published(
    release: Any, roles: Policy, hierarchies: Mapping[str, Any] | None = None, original: Any = None
) -> ReleaseOfPeople:
    """A release for the judge.

    release      a Release, a path (read with its certificate if one is next to it), or a frame
    roles        quasi-identifiers and hierarchies of a release without a certificate
    hierarchies  those that aren't next to a certificate, or of a table without one

    Raises InputError for a missing file, PolicyError for a missing hierarchy that the certificate names.
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
                stated = record.get("separator")  # also beside a file that is no CSV
                separator, _ = where_needed(release, stated if isinstance(stated, str) else None, None)
                trees = dict(asked.hierarchies) if asked.publish == "hierarchy" else {}
        table = opened(release, separator)
    quasi = [q for q in asked.grouped if q in table.columns] or [q for q in roles.grouped if q in table.columns]
    if not quasi:
        raise InputError("an earlier release has none of the quasi-identifiers; hand it over with its certificate")
    whole = None if original is None else opened(original)
    return ReleaseOfPeople(
        table, quasi, {n: t for n, t in trees.items() if n in quasi}, whole, notations=asked.notations
    )


def parts_of(release: Any) -> list[Any]:
    """The releases of a path: for a series the table of every part, for a Delta or Iceberg table the file of every
    readable version, otherwise the argument.

    Raises InputError for a series without parts, and for a Delta or Iceberg table that doesn't exist.
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
    releases: Sequence[ReleaseOfPeople], sensitive: Sequence[str], k: int, l: float | None, person: str | None = None
) -> tuple[Composition, ...]:
    """The figures for every sensitive column that all releases and originals have; if there is none, without a
    sensitive column.

    O(figures of one column) for each; see ``shoal.judge.composition.compose``.
    """
    tables: list[pl.DataFrame] = [r.table for r in releases]
    tables += [r.original for r in releases if r.original is not None]
    shared = [name for name in sensitive if all(name in t.columns for t in tables)]
    if not shared:
        return (compose(releases, k=k, person=person),)
    return tuple(compose(releases, sensitive=name, k=k, l=l, person=person) for name in shared)


def promises(asked: Policy) -> tuple[int, float | None]:
    """k and l of a policy, as thresholds for the figures."""
    k = max((m.k for m in asked.privacy if isinstance(m, KAnonymity)), default=2)
    l = max((float(m.l) for m in asked.privacy if isinstance(m, LDiversity)), default=None)
    return k, l


def with_composition(release: Release[Any], table: Table, after: Any, most: float, *, force: bool) -> Release[Any]:
    """The release with the figures of what it and earlier ones reveal together. The earlier originals are unknown.

    table  the table from which the new release was made

    Raises VerificationError if a promise breaks for a larger share than ``most``, unless forced.
    """
    most = number("max_composition", most, "it is a share of people", lambda x: 0 <= x <= 1)
    k, l = promises(release.policy)
    old: list[ReleaseOfPeople] = []
    seen: list[str] = []
    for given in as_list(after):
        parts = parts_of(given)
        own = lakes.is_lake(given)  # no certificate has the policy of its older versions
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
    """VerificationError if the figures exceed the allowed share."""
    worst = max(found, key=lambda c: c.share)
    if worst.share > most:
        raise VerificationError(
            f"together with the earlier releases, this one breaks a promise for {100 * worst.share:.1f} % of the "
            f"people who may be in several, and at most {100 * most:g} % are allowed; nothing was published. "
            f"{worst.sentence}. Publish a series (shoal series) or new people alone, use one recoding for all tables "
            "(Recoder), or say ⟨force_composition=True⟩"
        )
