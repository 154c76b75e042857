"""The whole flow on one page: read, roles and policy, histogram, algorithm, partition, recoding, verify, release."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from shoal.engines.carried import look
from shoal.engines.dangerous import Danger, dangerous
from shoal.engines.expected import Expected
from shoal.engines.files import kind_of, one_character, separator_of
from shoal.engines.frames import Counted, Replacement, classes, require
from shoal.engines.oddities import notes
from shoal.engines.open import open_table
from shoal.engines.order import Lot
from shoal.engines.safe_harbor import harbored
from shoal.engines.scope import Scope
from shoal.engines.store import refuse_for_excel, refuse_sheet
from shoal.errors import InputError, PolicyError
from shoal.judge.population import beside, foreign, outside, sized
from shoal.judge.wildcards import wildcards
from shoal.model.audit import Audit
from shoal.model.loss import View, measures, ncp, stars, suppressed_tuples
from shoal.model.policy import Policy
from shoal.model.privacy import requirement
from shoal.model.recoding import Published
from shoal.model.safe_harbor import NAME
from shoal.model.settings import ModelSettings, Settings
from shoal.model.task import Effort, Grouping, nothing, refuse_infeasible
from shoal.publishing.average import within
from shoal.publishing.clustered import by_centers
from shoal.publishing.exposed import Exposed, exposed
from shoal.publishing.opening import read_census, with_place
from shoal.publishing.population import certified, refuse_uncovered, study
from shoal.publishing.recodings import one_level_per_column, recodings
from shoal.publishing.release import Release, audit_table
from shoal.publishing.text import ColumnText, column_text
from shoal.publishing.units import judged, models_of, refuse_missing, without_units


def anonymize(
    data: Any,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    secret: bytes | None = None,
    memory: str | None = None,
    threads: int | None = None,
    temporary: str | Path | None = None,
    glob: bool = False,
    table: str | None = None,
    query: str | None = None,
    master: str | None = None,
    progress: Callable[[str, float | None], None] = nothing,
    **settings: Unpack[Settings],
) -> Release:
    """A release of a table in which every group of rows meets the privacy models asked for, at little loss.

    data      a path (CSV, also .gz; Parquet; Excel), or a pandas / Polars / PyArrow / DuckDB / Spark frame; a folder
              or a list of Parquet or CSV files, also with columns in the names of folders (key=value), or a DuckDB or
              SQLite file
    policy    a Policy, or the same settings as keyword arguments: quasi_identifiers, sensitive, identifiers,
              insensitive, k, l, privacy, publish, hierarchies, weights, max_level, range_step, global_recoding,
              max_suppressed, method, effort, seed, keep_order; see ``Policy``
    engine    for a path: "polars", "duckdb" or "spark"; DuckDB for what is more than one file
    separator, encoding  of a CSV; found out when None
    memory, threads, temporary  of DuckDB: how much it holds, such as "2GB", before it spills to disk; how many threads
              it runs; the folder it spills into
    glob      the path is a pattern: ``*``, ``?``, ``[...]`` and ``**``
    table, query  what of a DuckDB or SQLite file; a query over files names them ``data``
    master    of Spark, such as "local[2]"
    secret    at least 16 bytes that nobody else has and that stand in no output: with them, the same data and policy
              give the same release again, on every engine the same multiset of rows.  None: fresh randomness.
              ``seed`` fixes the search alone
    progress  called with (what is being done, share done or None)

    The table is verified before it is returned: VerificationError, and no release, where it breaks its promise.
    Raises PolicyError and InputError for bad requests and bad data, InfeasibleError when no release can exist.
    A column without a role is carried along, and refused by name where it is a direct identifier or its values single
    out more than 5 % of the rows; ``insensitive`` carries it knowingly.  The data are never changed.
    """
    release = prepare(
        data,
        policy,
        engine=engine,
        separator=separator,
        encoding=encoding,
        secret=secret,
        scope=Scope(memory, threads, temporary, glob, table, query, master),
        progress=progress,
        **settings,
    )
    release.check()
    return release


def prepare(
    data: Any,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    secret: bytes | None = None,
    scope: Scope | None = None,
    target: Path | None = None,
    progress: Callable[[str, float | None], None] = nothing,
    **settings: Unpack[Settings],
) -> Release:
    """``anonymize`` without the last look; for callers that write the release, which looks at the bytes written.

    scope   what an engine may use, and what of the source it reads
    target  where it will be written: what its format cannot hold is refused before the work
    """
    from shoal.problems.tables import group

    asked = Policy.of(policy, **settings)
    models, counts = models_of(asked), (*asked.sensitive, *asked.beside)
    spoken = (*asked.sensitive, *asked.units)
    requirement(models, spoken)
    Lot.of(secret)  # one that is too short is refused before the work
    seconds: dict[str, float] = {}
    clock = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds[step], clock = now - clock, now

    progress("reading", None)
    roles = [*asked.quasi_identifiers, *counts]
    needed = [*roles, *asked.identifiers, *asked.insensitive, *(asked.coordinates or ())]
    table = open_table(data, engine, separator=separator, encoding=encoding, coded=roles, needed=needed, scope=scope)
    require(table.columns, needed)
    harbor = None
    if asked.preset == NAME:
        stays = [c for c in table.columns if c not in (*asked.identifiers, *asked.units)]
        table, harbor = harbored(table, stays, asked.insensitive)
    carried = look(table, asked)
    if target is not None:
        _refuse_target(table, asked, target)
    if asked.coordinates is not None:
        table = with_place(table, asked.coordinates)
    census = None
    if asked.population is not None:
        census = read_census(asked.population, asked.grouped, asked.coordinates, engine)
    lap("read")

    progress("counting", None)
    counted = table.count(asked.grouped, counts)
    if not counted.histogram.rows:
        name = repr(Path(data).name) if isinstance(data, (str, Path)) else "the table"
        raise InputError(f"{name} has a header and no rows, so there is nothing to publish")
    refuse_missing(counted, asked)
    texts = [column.texts() for column in counted.quasi]
    _refuse_stars(asked, {c.name: c.texts() for c in (*counted.quasi, *counted.sensitive)})
    need = requirement(models, spoken, counted.histogram)
    refuse_infeasible(counted.histogram, need, lambda j, code: counted.sensitive[j].texts()[code] or "missing")
    told = study(asked, counted, need, census)
    if census is None:
        refuse_infeasible(told.histogram, told.need)
    lap("histogram")

    progress("solving", None)
    seeds = np.random.SeedSequence(asked.seed)
    if asked.publish == "centers":
        grouping, recoding, columns = by_centers(asked, counted, texts, need)
        published = None
        lap("solve")
    else:
        recoding, labels = recodings(asked, counted, texts, need.smallest)

        def told_as(found: Grouping) -> tuple[Grouping, Published, list[ColumnText]]:
            made = (counted.histogram, found.partition, recoding)
            if asked.global_recoding:
                found, shows = one_level_per_column(found, *made)
            else:
                shows = recoding.publish(*made[:2])
            texted = [column_text(*made, shows, j, texts[j], labels[j], asked.star) for j in range(len(texts))]
            return found, shows, texted

        grouping = told.solve(
            lambda wants: within(
                asked.max_average_risk,
                counted.histogram.rows,
                wants,
                lambda asks: group(
                    told.histogram,
                    asks,
                    _method(asked),
                    recoding=recoding,
                    effort=Effort.of(asked.effort),
                    seed=int(seeds.generate_state(1)[0]),
                    max_suppressed=asked.max_suppressed,
                    progress=progress,
                ),
            ),
            lambda found: told.holds(asked, told_as(found)[2], found.partition.sizes),
        )
        grouping = certified(grouping, told, counted.histogram, recoding, asked)
        lap("solve")
        grouping, published, columns = told_as(grouping)

    progress("recoding", None)
    apart = target is not None and kind_of(target) == "csv"
    replacements = [_replace(c, counted, asked, apart) for c, counted in zip(columns, counted.quasi, strict=True)]
    lot = Lot.of(secret, _context(counted, asked))
    blurred = _blurred(columns, replacements)
    merged, replacements = classes(grouping.partition, replacements)
    dropped = [c for c in asked.identifiers if c not in asked.beside]
    placed = table.place(counted, merged, replacements, dropped, lot, asked.keep_order)
    out, persons, people = judged(placed, asked)
    _, merged = without_units(counted, merged, asked)
    counted, partition = without_units(counted, grouping.partition, asked)
    view = View(counted.histogram, partition, recoding, need.smallest, published)
    lap("recode")
    release = Release(
        table=out,
        policy=asked,
        certificate=grouping.certificate,
        method=grouping.method,
        attempts=grouping.attempts,
        cost={"stars": stars(view), "suppressed_tuples": suppressed_tuples(view), "ncp": ncp(view)},
        measure=partial(measures, counted.histogram, partition, recoding, need.smallest, published),
        groups=_classes(replacements) if partition.groups else 0,
        rows=counted.histogram.rows,
        carried=carried,
        persons=persons,
        census=census,
        people=people,
        harbor=harbor,
        notes=blurred,
        exposed=exposed(counted.histogram, merged, recoding, asked.range_step)
        if asked.publish == "ranges"
        else Exposed(),
        stars={c.name: int(partition.sizes[c.starred[c.index]].sum()) for c in columns},
        changed={c.name: int(partition.sizes[c.code[c.index] < 0].sum()) for c in columns},
        published={c.name: frozenset(c.texts) for c in columns},
        before=_before(counted),
        own={c.name: held for c, held in zip(counted.quasi, texts, strict=True)},
        from_path=_path(data),
        separator=one_character(separator) or _separator(table, data),
        parts=getattr(table, "parts", None),
        dealt=lot.order if _nothing_carried(table, asked) else None,
        expected=Expected(
            histogram=counted.histogram,
            partition=merged,
            columns=replacements,
            texts=[c.texts for c in columns],
            starred=[c.starred for c in columns],
            sensitive=counted.sensitive,
        ),
        order="kept" if asked.keep_order else lot.words,
        seconds=seconds,
    )
    if not told.strict:
        refuse_uncovered(release.audit)
    return release


def _path(data: Any) -> str | None:
    """What stands in the report as the source: a path, or of several the first."""
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (str, Path)):
        return str(data[0])
    return str(data) if isinstance(data, (str, Path)) else None


def _separator(table: Any, data: Any) -> str | None:
    found: str | None = getattr(table, "separator", None)
    if found is None and isinstance(data, (str, Path)) and not hasattr(table, "parts"):
        return separator_of(data)
    return found


def _nothing_carried(table: Any, asked: Policy) -> bool:
    """Whether an engine's table publishes judged columns alone, so that its rows follow from the partition."""
    judged = {*asked.grouped, *asked.sensitive, *asked.identifiers, *asked.units}
    return not hasattr(table, "polars") and set(table.columns) <= judged


def _refuse_target(table: Any, asked: Policy, target: Path) -> None:
    """InputError for a table that an Excel sheet could not hold."""
    if kind_of(target) != "excel":
        return
    kept = [c for c in table.columns if c not in asked.identifiers]
    refuse_sheet(table.rows, kept)
    frame = table.polars(kept) if hasattr(table, "polars") else table.frame.select(kept).collect("polars").to_native()
    refuse_for_excel(target, frame, asked.quasi_identifiers)


def _method(asked: Policy) -> str:
    return "global_recoding" if asked.global_recoding and asked.method == "auto" else asked.method


def _refuse_stars(asked: Policy, texts: Mapping[str, list[str | None]]) -> None:
    for name, values in texts.items():
        if asked.star in values:
            raise InputError(
                f"column {name!r} holds the value {asked.star!r}, which is how a suppressed value is written; "
                "choose another text with star='...'"
            )


def _replace(column: ColumnText, coded: Any, asked: Policy, apart: bool) -> Replacement:
    """The new values of a column: its own type where every published value is its own or missing, else text.

    apart  where stars stand beside missing values, keep them apart: as text
    """
    own = coded.values.dtype
    numeric = not (own == pl.String or isinstance(own, (pl.Categorical, pl.Enum)))
    coarser = (column.shows < 0) & ~column.starred
    null = asked.numeric_stars == "null" and not (apart and _both(column))
    if numeric and not coarser.any() and (null or not column.starred.any()):
        empty = coded.values.clear().extend_constant(None, 1)
        pool = pl.concat([coded.values, empty])
        values = pool.gather(np.where(column.shows < 0, len(coded.values), column.shows))
    else:
        values = pl.Series(column.name, column.texts, dtype=pl.String)
    return Replacement(column.name, values, column.index)


def _both(column: ColumnText) -> bool:
    """Whether stars stand beside missing values that are published as they are."""
    return bool(column.starred.any()) and any(t is None for t in column.texts)


def _blurred(columns: Sequence[ColumnText], replacements: Sequence[Replacement]) -> tuple[str, ...]:
    """A sentence for each column in which a star and a missing value are one."""
    return tuple(
        f"column {c.name!r}: stars and missing values are both published as missing, so nobody can tell them apart, "
        "and a CSV has empty fields for both; numeric_stars='text' writes stars"
        for c, r in zip(columns, replacements, strict=True)
        if r.values.dtype != pl.String and not r.values.dtype.is_nested() and _both(c)
    )


def _classes(replacements: list[Replacement]) -> int:
    """Number of classes as they will stand there: a starred number and a missing one are published alike."""
    seen = [r.values.rank("dense").fill_null(0).to_numpy()[r.index] for r in replacements]
    return int(np.unique(np.column_stack(seen), axis=0).shape[0])


def _context(counted: Counted, asked: Policy) -> bytes:
    """What a release is of: its policy and how many rows its cells have, alike on every engine."""
    told = json.dumps(asked.describe(), sort_keys=True, default=str).encode()
    return told + np.sort(counted.histogram.count).astype("<i8").tobytes()


def _before(counted: Counted) -> dict[str, Any]:
    """Privacy of the table as it came, from its cells: what the report sets beside the release."""
    of_type, first = counted.histogram.types
    sizes = np.bincount(of_type, weights=counted.histogram.count, minlength=first.size)
    return {
        "rows": counted.histogram.rows,
        "classes": int(first.size),
        "smallest_class": int(sizes.min()) if first.size else 0,
        "uniques": int((sizes == 1).sum()),
        "distinct_values": {c.name: c.size for c in [*counted.quasi, *counted.sensitive]},
        "notes": list(notes(counted)),
        "dangerous": [d.as_dict() for d in _dangerous(counted)],
    }


def _dangerous(counted: Counted) -> list[Danger]:
    """What the quasi-identifiers single out together, from the table as it came."""
    of_type, first = counted.histogram.types
    held = np.bincount(of_type, weights=counted.histogram.count, minlength=first.size).astype(np.int64)
    return dangerous(list(counted.histogram.quasi[first].T), [c.name for c in counted.quasi], held)


def audit(
    data: Any,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    person: str | None = None,
    household: str | None = None,
    population: Any = None,
    population_weights: str | None = None,
    population_size: int | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    missing: str = "category",
    threshold: float = 0.2,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    temporary: str | Path | None = None,
    glob: bool = False,
    table: str | None = None,
    query: str | None = None,
    master: str | None = None,
    **models: Unpack[ModelSettings],
) -> Audit:
    """Levels of every privacy model, risks and class sizes of any table, ours or not.

    person, household  columns that name who a row is about: their different values are counted, and k is judged on them
    population         the table the rows were drawn from: what every class covers of it is counted, for k-map,
                       delta-presence and the journalist's risk; population_weights: the column that says instead how
                       many people a row stands for; population_size: how many people there are, where no more is known
    hierarchies        per column the hierarchy its values are classes of; without one a published value is itself, a
                       star, or a range or set as this package writes them
    missing            "category": a missing value is a value of its own; "wildcard": beside that, ``wildcards`` of the
                       Audit has the risks with missing values and stars alike to every value
    models             k=5, l=3, privacy=[...]: what should hold; each becomes a check of the Audit
    memory, threads, temporary, glob, table, query, master  as in ``anonymize``: a folder is counted where it stands
    """
    if not 0 < threshold <= 1:
        raise PolicyError(f"threshold={threshold!r}: a risk is above 0 and at most 1")
    if missing not in ("category", "wildcard"):
        raise PolicyError.unknown("reading of missing values", str(missing), ("category", "wildcard"))
    names = Policy.of(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        person=person,
        household=household,
        population=population,
        population_weights=population_weights,
        **({"k": 1} | models),
    )
    needed = [*names.quasi_identifiers, *names.sensitive, *names.beside]
    scope = Scope(memory, threads, temporary, glob, table, query, master)
    opened = open_table(data, engine, separator=separator, encoding=encoding, needed=needed, scope=scope)
    require(opened.columns, needed)
    census = None if population is None else read_census(population, names.quasi_identifiers, engine=engine)
    asked = names.privacy if models else ()

    def beyond(frame: pl.DataFrame, judged: Audit) -> Audit:
        if missing == "wildcard":
            judged = replace(judged, wildcards=wildcards(frame, names.quasi_identifiers, threshold, names.star))
        people = outside(frame, names, census, foreign(names.star, hierarchies or {}), None)
        return judged if people is None else beside(judged, people, asked)

    rows = missing == "wildcard" or population is not None or bool(names.weighed)
    found = audit_table(opened, names, threshold, asked, names.units, beyond if rows else None)
    if population_size is not None and found.population is None:
        found = sized(found, population_size)
    return replace(found, notes=notes(opened.count(names.quasi_identifiers, names.sensitive)))
