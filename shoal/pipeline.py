"""The path of a table to its release: read, count, solve, recode, place rows, judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np

from shoal.attacks.minimality import claimed
from shoal.engines.columns import one_zero, row_numbers
from shoal.engines.csv import one_character, separator_of
from shoal.engines.frames import classes
from shoal.engines.open import open_table
from shoal.engines.order import ShuffleKey
from shoal.engines.prepared import beyond, filled, safe_harbor
from shoal.engines.recognize import ages_revealed
from shoal.engines.source import Scope, ScopeSettings, SearchSize, refuse_too_many
from shoal.engines.statistics import refuse_for_statistics
from shoal.engines.store import refuse_both, refuse_for_excel, refuse_sheet, unread_sheets
from shoal.engines.table import Counted, Expected, Placed, PlacementRequest, Replacement, Table, require
from shoal.engines.unassigned import Unassigned, look, named_sensitive
from shoal.errors import InputError, PolicyError, Sentence, UnaskedError
from shoal.judge.tables.population import Covered
from shoal.model.arguments import column_names, drawn, no_effect, suggesting
from shoal.model.audit import Check
from shoal.model.histogram import Partition
from shoal.model.loss import View, measures, ncp, stars, suppressed_tuples
from shoal.model.policy import Policy
from shoal.model.privacy import Requirement, requirement
from shoal.model.recoding import PublishedCodes
from shoal.model.refusals import filled_words, limit_words, refuse_stars, with_filled, with_limits, without_k
from shoal.model.rule_books import NAME
from shoal.model.settings import Settings
from shoal.model.task import Constraints, Grouping, Spread, nothing, refuse_infeasible
from shoal.paths import is_remote, is_sheet, is_table_name, kind_of, without_secrets
from shoal.publishing.people import (
    FLAG,
    Sample,
    flagged,
    judged,
    judged_by_part,
    models_of,
    parts_of,
    refuse_missing,
    refuse_uncovered,
    sample_of,
    weighed_need,
    without_units,
)
from shoal.publishing.recodings import (
    ColumnText,
    at_limits,
    of_columns,
    ordered_as_equal,
    published_classes,
    recodings,
    replacement,
    shown,
    stars_published_as_missing,
)
from shoal.publishing.sources import read_census, with_place, with_regions
from shoal.publishing.tables.audited import MAX_COMPOSITION, with_composition
from shoal.publishing.tables.figures import figures_of_original
from shoal.publishing.tables.limits import decoys_of, exposed, on_trees, refuse_common, share_models, within_budget
from shoal.publishing.tables.release import (
    Facts,
    GivenPopulation,
    Losses,
    MissingValues,
    Persons,
    Placement,
    Release,
    ReleasedRows,
    TableOrigin,
)
from shoal.publishing.tables.writing import refuse_here
from shoal.watching import StepClock, watched

__all__ = ["anonymize", "prepare"]

Frame = TypeVar("Frame")


class TableSettings(Settings, ScopeSettings, total=False):
    """The keywords of ``Policy`` and of the engines."""


@watched
@suggesting
def anonymize(
    data: Frame,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    secret: bytes | None = None,
    after: Any = None,
    max_composition: float = MAX_COMPOSITION,
    force_composition: bool = False,
    progress: Callable[[str, float | None], None] = nothing,
    **settings: Unpack[TableSettings],
) -> Release[Frame]:
    """A release of a table in which every group of rows meets the requested privacy models, with little loss.

    data      a path (CSV, also .gz; Parquet; Excel), or a pandas, Polars, PyArrow, DuckDB, Spark, or Ibis frame; a
              folder or a list of Parquet or CSV files, also with columns in the names of folders (key=value); or a
              DuckDB or SQLite file
    policy    a Policy, or the same settings as keyword arguments: quasi_identifiers, sensitive, identifiers,
              insensitive, k, l, privacy, publish, hierarchies, weights, max_level, range_step, global_recoding,
              coarsen, max_suppressed, method, effort, shards, seed, keep_order; see ``Policy``
    engine    for a path: "polars", "duckdb", or "spark"; DuckDB by default for more than one file
    separator, encoding  of a CSV; detected if None
    memory, threads, temporary  with DuckDB: how much memory the work takes, such as "2GB", before it writes to disk;
              the number of its threads; the folder to which it writes
    glob      whether the path is a pattern: ``*``, ``?``, ``[...]``, and ``**``
    table, query  the part of a DuckDB or SQLite file; a query over files refers to them as ``data``
    master    of Spark, such as "local[2]"
    secret    at least 16 bytes that no one else has; no output contains them. With a secret, the same data and policy
              give the same release again: on every engine the same multiset of rows. (A search limited by seconds can
              end with another partition. Rows are then in another order.) None: fresh randomness. ``seed`` fixes only
              the search. Without a seed, one is drawn, or it is 0 if there is a secret; ``release.policy`` and the
              certificate contain it
    after     an earlier release of the same people, or several: paths (read with the certificates next to them; of a
              series every part, of a table of Delta or Iceberg every version that can be read),
              frames, or Releases. ``release.composition`` counts what all of them reveal together about the people of
              this table. Raises VerificationError if that breaks a promise for more than ``max_composition`` of the
              people who might be in several, unless ``force_composition``; see ``shoal.judge.composition``
    progress  called with (step, share done or None)

    The table is verified before it is returned. If it breaks its promise, VerificationError is raised and there is no
    release. Raises PolicyError and InputError for bad requests and bad data, InfeasibleError if no release can exist.
    A column without a role is published unchanged. It is refused by name if it is a direct identifier or if its values
    single out more than 5 % of the rows; to publish it anyway, name it in ``insensitive``. The data are never changed.

    O(n) for n rows: one pass to count the m different rows, and one to place them. The search takes at least O(m log
    m), and as long as ``effort`` allows. Sources: each model names its own; docs/tables.md and docs/cascade.md explain
    methods and bounds.

    Examples:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [34, 34, 35, 61, 61, 62], "flu": list("ynynyn")})
        >>> release = anonymize(people, quasi_identifiers=["age"], sensitive=["flu"], k=3, publish="ranges")
        >>> sorted(set(release.table["age"])), release.audit.k, release.certificate.optimal
        (['[34, 35]', '[61, 62]'], 3, True)
    """
    return prepare(
        data,
        policy,
        engine=engine,
        separator=separator,
        encoding=encoding,
        secret=secret,
        after=after,
        max_composition=max_composition,
        force_composition=force_composition,
        progress=progress,
        check=True,
        **settings,
    )


def prepare(
    data: Any,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    secret: bytes | None = None,
    after: Any = None,
    max_composition: float = MAX_COMPOSITION,
    force_composition: bool = False,
    target: Path | None = None,
    fixed: FixedLevels | None = None,
    carried: Unassigned | None = None,
    progress: Callable[[str, float | None], None] = nothing,
    check: bool = False,
    **settings: Unpack[TableSettings],
) -> Release[Any]:
    """A release that may not be judged yet, for callers that write it: ``Release.write`` judges the written bytes.

    The arguments are those of ``anonymize``, and these:

    target  the path of the output; tables that its format can't hold are refused before the search
    fixed   the levels of a known global recoding; None: the search finds them
    carried the result of ``look`` for the columns without a role; None: computed here
    check   whether to judge the table in memory, as ``anonymize`` does
    """
    scope, wanted = Scope.among(settings)
    with misspelled_first(data, policy, wanted, lambda table: open_table(table, engine, scope=scope)):
        # the same secret must give the same release
        asked = Policy.of(policy, **wanted).seeded(drawn() if secret is None else 0)
    if after is None and (force_composition or max_composition != MAX_COMPOSITION):
        named = "force_composition=True" if force_composition else f"max_composition={max_composition}"
        raise no_effect(named, "⟨after=...⟩")
    if after is not None and asked.minimality is not None:
        raise PolicyError(
            "minimality is proved of one release alone, and ⟨after=...⟩ sets it against an earlier one; leave one of "
            "them out"
        )
    scope, engine = scope.as_asked(data, engine, asked)
    asked = with_regions(asked)
    requirement(models_of(asked), (*asked.sensitive, *asked.units))
    ShuffleKey.of(secret)  # refuses a secret that is too short, before the search
    clock = StepClock(progress)
    with clock.step("reading", "read"):
        read = _read(data, asked, engine, (separator, encoding), scope, target, carried)
    with clock.step("counting", "histogram"):
        cells = _count(read, asked, data)
        if target is not None and is_table_name(target) and kind_of(target) != "parquet":
            refuse_both({c.name: c.texts() for c in (*cells.counted.quasi, *cells.counted.sensitive)})
    with ThreadPoolExecutor(1) as meanwhile:  # the figures of the original need no partition
        original_figures = meanwhile.submit(
            figures_of_original, replace(cells.counted, sensitive=cells.counted.sensitive[: len(asked.sensitive)])
        )
        with clock.step("solving", "solve"):
            workers = read.table.workers().spread if asked.shards else None
            searched = SearchSize(cells.counted.histogram.cells, asked.shards or 0, workers is not None)
            refuse_too_many(searched, progress, memory=scope.memory)
            solved = _solve(cells, asked, progress, fixed, secret, workers)
        with clock.step("recoding", "recode"):
            release = _recode(read, cells, solved, asked, secret, target)
        if check:  # the judge doesn't read the figures of the original, so it doesn't wait for them
            release.audit  # noqa: B018  (kept until it is asked for)
        release = replace(release, facts=replace(release.facts, before=original_figures.result()))
    if after is not None:
        with clock.step("setting releases against each other", "compose"):
            release = with_composition(release, read.table, after, max_composition, force=force_composition)
    release.seconds.update(clock.seconds)
    if cells.sample is not None and not cells.decided:
        refuse_uncovered(release.audit)
    if check:
        release.check()
    return release


@contextmanager
def misspelled_first(
    data: Any, policy: Any, settings: Mapping[str, Any], opened: Callable[[Any], Table]
) -> Iterator[None]:
    """Inside the block, report a missing file or column before a request without models or quasi-identifiers."""
    try:
        yield
    except UnaskedError:
        given = {**(policy if isinstance(policy, Mapping) else {}), **settings}
        roles = [given.get(role) for role in ("quasi_identifiers", "sensitive", "identifiers", "insensitive")]
        named = [name for role in roles if role is not None for name in column_names("columns", role)]
        require(opened(data).columns, named)
        raise


class _OpenedTable(NamedTuple):
    """An opened table, and what the later steps need to know about its source.

    source     the path for the report
    separator  the field separator of a CSV
    carried    what ``look`` found in the columns without a role
    harbor     what the Safe Harbor preset changed
    census     the population's table
    filled     number of missing values that were filled, by column
    beyond     for each column with a limit, figures of the values beyond it
    sheets     sentences about sheets that are not read
    """

    table: Table
    source: str | None
    separator: str | None
    carried: Any
    harbor: Any
    census: Any
    filled: Mapping[str, int] | None
    beyond: Mapping[str, Mapping[str, float]]
    sheets: list[Sentence]


class FixedLevels(NamedTuple):
    """A known global recoding: the level of each quasi-identifier.

    starred  columns whose missing values also stand for values outside the hierarchy. Rows with such a value are
             starred completely, unless the column is at its top level, where all values are equal
    """

    levels: Mapping[str, int]
    starred: frozenset[str] = frozenset()


class _CountedTable(NamedTuple):
    """A table as histogram cells, with the conditions for its groups. No later search step reads a row.

    counted  the histogram and the columns' codes
    texts    for each quasi-identifier, the text of each code
    need     the requirement for the rows of each group
    wanted   ``need``, also for the people whom the rows represent by their weights
    sample   the table with its population; None if no model refers to a population
    apart    int64[cells]: cells with different numbers never share a group; None: any cells may
    """

    counted: Counted
    texts: list[list[str | None]]
    need: Requirement
    wanted: Requirement
    sample: Sample | None
    apart: np.ndarray | None

    @property
    def decided(self) -> bool:
        """Whether the whole table meets the condition that replaces the population's. If not, one group decides."""
        assert self.sample is not None
        return self.sample.population.decides(self.counted.histogram, self.need, self.apart)


class _Solved(NamedTuple):
    """A partition with its certificate, the recoding, the published codes, and what each column publishes."""

    grouping: Grouping
    recoding: Any
    published: PublishedCodes | None
    columns: list[ColumnText]


def _read(
    data: Any, asked: Policy, engine: str | None, text: tuple[str | None, str | None], scope: Scope,
    target: Path | None, carried: Unassigned | None,
) -> _OpenedTable:  # fmt: skip
    """Open the table, and refuse what can't be published before the search."""
    roles = [*asked.quasi_identifiers, *asked.sensitive, *asked.counting]
    needed = [*roles, *asked.identifiers, *asked.insensitive, *(asked.coordinates or ())]
    with asked.naming():
        table = open_table(data, engine, separator=text[0], encoding=text[1], coded=roles, needed=needed, scope=scope)
        require(table.columns, needed)
    if asked.judge == "engine":
        refuse_here(table)
    harbor = None
    if asked.preset == NAME:
        stays = [c for c in table.columns if c not in (*asked.identifiers, *asked.units)]
        table, harbor = safe_harbor(table, stays, asked.insensitive)
    carried = look(table, asked) if carried is None else carried
    if asked.keep_order:
        row_numbers(data)
    if target is not None:
        _refuse_target(table, asked, target)
    if asked.coordinates is not None:
        table = with_place(table, asked.coordinates, asked.decimal)
    cells = None
    if asked.missing == "filled":
        table, cells = filled(table, asked.grouped, asked.limits)
    else:
        table = flagged(table, asked)
    census = None
    if asked.population is not None:
        census = read_census(asked.population, asked.grouped, asked.coordinates, engine, asked.decimal)
    separator = one_character(text[0]) or _separator(table, data)
    sheets = unread_sheets(data, scope.table)
    return _OpenedTable(
        table, _path(data), separator, carried, harbor, census, cells, beyond(table, asked.limits), sheets
    )


def _count(read: _OpenedTable, asked: Policy, data: Any) -> _CountedTable:
    """Count the rows into cells, and refuse requests that no release can meet."""
    counted = read.table.count(asked.grouped, (*asked.sensitive, *asked.counting), asked.notations)
    if not counted.histogram.rows:
        name = repr(Path(data).name) if isinstance(data, (str, Path)) else "the table"
        raise InputError(f"{name} has a header and no rows, so there is nothing to publish")
    refuse_missing(counted, asked)
    texts = [column.texts() for column in counted.quasi]
    refuse_stars(asked, {c.name: c.texts() for c in (*counted.quasi, *counted.sensitive)})
    refuse_common(counted.histogram, asked)
    models = on_trees([*models_of(asked), *share_models(asked)], asked, counted.sensitive)
    need = requirement(models, (*asked.sensitive, *asked.units), counted.histogram)
    refuse_infeasible(counted.histogram, need, lambda j, code: counted.sensitive[j].texts()[code] or "missing")
    apart = parts_of(counted, asked, need)
    wanted = weighed_need(asked, counted, need)
    refuse_infeasible(counted.histogram, wanted)
    return _CountedTable(counted, texts, need, wanted, sample_of(asked, counted, read.census), apart)


def _solve(
    cells: _CountedTable, asked: Policy, progress: Callable[[str, float | None], None], fixed: FixedLevels | None,
    secret: bytes | None, workers: Spread | None = None,
) -> _Solved:  # fmt: skip
    """A partition of low loss, and what its groups publish.

    workers  the engine's workers, if these search the shards
    """
    from shoal.problems.tables import group

    histogram, texts = cells.counted.histogram, cells.texts
    if asked.publish == "centers":
        from shoal.publishing.crosswalks.clusters import by_centers

        grouping, recoding, columns = by_centers(asked, cells.counted, texts, cells.wanted)
        return _Solved(within_budget(grouping, columns, asked), recoding, None, columns)
    recoding, labels = recodings(asked, cells.counted, texts, cells.need.smallest)
    sample = cells.sample
    grouping = group(
        histogram, cells.wanted, _method(asked), recoding=recoding, effort=asked.effort,
        seed=int(np.random.SeedSequence(asked.seed).generate_state(1)[0]), progress=progress,
        max_suppressed=asked.max_suppressed if asked.global_recoding else 0.0, apart=cells.apart,
        admits=None if fixed is None else _admitted_cells(fixed, cells),
        constraints=Constraints(
            population=None if sample is None else sample.bound(asked, histogram, recoding, texts, labels),
            max_average_risk=asked.max_average_risk,
            decoys=decoys_of(asked, histogram, secret, partial(claimed, histogram, recoding)),
            levels=None if fixed is None else fixed.levels,
            shards=asked.shards,
            workers=workers,
        ),
    )  # fmt: skip
    grouping, published, columns = shown(grouping, histogram, recoding, asked, texts, labels)
    return _Solved(within_budget(grouping, columns, asked), recoding, published, columns)


def _admitted_cells(fixed: FixedLevels, cells: _CountedTable) -> Callable[[np.ndarray], np.ndarray] | None:
    """The function from levels to the cells that may be published at them (bool[cells]); None: all cells."""
    if not fixed.starred:
        return None
    quasi = cells.counted.histogram.quasi
    starred = np.zeros(len(quasi), bool)
    for j, (column, texts) in enumerate(zip(cells.counted.quasi, cells.texts, strict=True)):
        if column.name in fixed.starred and None in texts:
            starred |= quasi[:, j] == texts.index(None)
    return lambda levels: ~starred


def _recode(
    read: _OpenedTable, cells: _CountedTable, solved: _Solved, asked: Policy, secret: bytes | None, target: Path | None
) -> Release[Any]:
    """Place every row into a group of its cell, recode its values, and attach what the judge expects.

    ``Facts.before``, the figures of the original, is empty here and set later.
    """
    counted, (grouping, recoding, codes, columns) = cells.counted, solved
    as_text = target is not None and kind_of(target) == "csv"
    replacements = [
        replacement(c, q, asked.numeric_stars, as_text) for c, q in zip(columns, counted.quasi, strict=True)
    ]
    blurred = stars_published_as_missing(columns, replacements)
    merged, replacements = classes(grouping.partition, replacements)
    left, left_merged = without_units(counted, merged, asked)  # person columns must not influence the order of rows
    expected = Expected(
        histogram=left.histogram, partition=left_merged, columns=replacements, texts=[c.texts for c in columns],
        starred=[c.starred for c in columns], sensitive=left.sensitive, plain=[c.code >= 0 for c in columns],
    )  # fmt: skip
    shuffle_key = ShuffleKey.of(secret, b"" if secret is None else _shuffle_context(expected, asked))
    placed = _placed(read.table, counted, merged, replacements, shuffle_key, asked)
    _, partition = without_units(counted, grouping.partition, asked)
    loss_inputs = (left.histogram, partition, recoding, cells.need.smallest, codes)
    limited = {name: {**held, **at_limits(columns, partition.sizes, asked.limits[name], name)}
               for name, held in read.beyond.items()}  # fmt: skip
    facts = Facts(
        rows=left.histogram.rows,
        groups=published_classes(replacements) if partition.groups else 0,
        cost=_cost(View(*loss_inputs), read.filled, asked.publish == "centers")
        | with_limits(ncp(View(*loss_inputs)), limited, left.histogram.rows, len(columns)),
        stars={c.name: int(partition.sizes[c.starred[c.index]].sum()) for c in columns},
        changed={c.name: int(partition.sizes[c.code[c.index] < 0].sum()) for c in columns},
        before={},
        carried=read.carried,
        persons=Persons(*placed.persons),
        missing=MissingValues(placed.incomplete, read.filled),
        limited=limited,
        harbor=read.harbor,
        # centers show one complete row by design
        exposed=exposed(left.histogram, left_merged, () if codes is None else recoding.columns, asked.range_step),
        notes=(
            *read.sheets,
            *without_k(asked, cells.need.smallest), *named_sensitive(asked.sensitive), *blurred,
            *ordered_as_equal(left.sensitive, asked.privacy),
            *filled_words(read.filled), *limit_words(asked.limits, limited),
            *_revealed_beyond_limits(read.table, asked), *of_columns(left, columns, cells.texts, recoding, asked),
        ),
    )  # fmt: skip
    frame, slices, tuples, row_counts = placed.rows
    row_key = shuffle_key.order if _only_judged_columns(read.table, asked) else None
    placement = Placement(
        expected=expected,
        order="kept" if asked.keep_order else shuffle_key.words,
        own={c.name: held for c, held in zip(left.quasi, cells.texts, strict=True)},
        published={c.name: frozenset(c.texts) for c in columns},
        rows=ReleasedRows(frame, tuples, row_key, slices, row_counts),
        losses=Losses(partial(View, *loss_inputs), partial(measures, *loss_inputs)),
        source=TableOrigin(read.source, read.separator, read.table.origin.parts),
        population=GivenPopulation(read.census, placed.people),
    )
    return Release(asked, grouping.certificate, grouping.method, grouping.attempts, facts, placement)


class _RowsOfPersons(NamedTuple):
    """The placed rows without identifiers, and the figures about persons that were counted before their removal.

    incomplete  figures of the rows that lack a value, if these form groups of their own
    persons     the smallest number of persons in a class, and the models that count persons
    people      the persons of the population whom the classes cover, if rows have weights
    """

    rows: Placed
    incomplete: Mapping[str, Any] | None
    persons: tuple[dict[str, int], tuple[Check, ...]]
    people: Covered | None


def _placed(
    table: Table, counted: Counted, partition: Partition, replacements: list[Replacement], shuffle_key: ShuffleKey,
    asked: Policy,
) -> _RowsOfPersons:  # fmt: skip
    """Assign each row to a group of its cell, and check the conditions on persons, whom the release doesn't show."""
    dropped, aside = [c for c in asked.identifiers if c not in asked.counting], [*asked.identifiers, FLAG]
    how = PlacementRequest(partition, replacements, dropped, aside, shuffle_key, asked.keep_order)
    rows = table.place(counted, how)
    if rows.tuples is not None and (asked.counting or asked.missing == "apart"):
        rows = rows._replace(frame=rows.tuples.frame(), tuples=None)
    frame, incomplete = judged_by_part(rows.frame, counted, asked)
    frame, persons, people = judged(frame, asked)
    return _RowsOfPersons(rows._replace(frame=frame), incomplete, persons, people)


def _cost(view: View, filled: Mapping[str, int] | None, centers: bool) -> dict[str, Any]:
    """The loss in the measures of every report. For centers, stars are 0 even if a center's row contains some."""
    lost = ncp(view)
    cost = {"stars": 0 if centers else stars(view), "suppressed_tuples": suppressed_tuples(view), "ncp": lost}
    return cost | with_filled(lost, filled, view.histogram.rows)


def _path(data: Any) -> str | None:
    """The source in the report: the path, or the first of several paths."""
    one = data[0] if isinstance(data, (list, tuple)) and data else data
    return (without_secrets if is_remote(one) else str)(str(one)) if isinstance(one, (str, Path)) else None


def _separator(table: Table, data: Any) -> str | None:
    if table.in_memory and isinstance(data, (str, Path)):
        return separator_of(data)
    return table.origin.separator


def _only_judged_columns(table: Table, asked: Policy) -> bool:
    """Whether the table is outside this process and publishes only judged columns. The partition then determines its
    rows."""
    judged = {*asked.grouped, *asked.sensitive, *asked.identifiers, *asked.units}
    return not table.in_memory and set(table.columns) <= judged


def _revealed_beyond_limits(table: Table, asked: Policy) -> list[Sentence]:
    """A sentence for each column without limits that tells the values beyond another column's limits."""
    published = [c for c in table.columns if c not in (*asked.identifiers, *asked.units)]
    return [
        Sentence(
            f"column {one!r} tells what the limit of column {name!r} hides: who knows the one can compute the other. "
            f"Remove {one!r} (⟨identifiers⟩), or give it a limit too (⟨top⟩, ⟨bottom⟩); a birth date can have a limit "
            "if it is a year alone"
        )
        for name, one in (ages_revealed(asked.limits, published) if asked.limits else ())
    ]


def _refuse_target(table: Table, asked: Policy, target: Path) -> None:
    """InputError for a table that the target's format (Excel, SPSS, Stata) can't hold."""
    if not is_sheet(target):
        return
    kept = [c for c in table.columns if c not in asked.identifiers]
    if kind_of(target) == "excel":
        refuse_sheet(table.rows, kept)
    held = one_zero(table.polars(kept), [*asked.quasi_identifiers, *asked.sensitive])
    held = held.cast(dict.fromkeys(asked.limits, str))  # as what they are published
    refuse_for_excel(target, held, asked.quasi_identifiers)
    refuse_for_statistics(target, held, asked.quasi_identifiers)


def _method(asked: Policy) -> str:
    if asked.method != "auto":
        return asked.method
    return "global_recoding" if asked.global_recoding else "coarsen" if asked.coarsen else "auto"


def _shuffle_context(published: Expected, asked: Policy) -> bytes:
    """The context of a shuffle key: the policy and the published tuples. It is equal on every engine and contains no
    secret.

    The tuples are included because two searches limited by seconds can end with different partitions. If both releases
    had the same order, their rows could be matched by position, and each row would reveal both of its groups.
    """
    # who judges the rows doesn't change the release
    request = {name: value for name, value in asked.describe().items() if name != "judge"}
    described = json.dumps(request, sort_keys=True, default=str).encode()
    return described + published.digest()
