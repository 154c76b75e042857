"""Series: successive releases of the same kind of table that keep their promises together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from shoal.engines.atomic import closed_to
from shoal.engines.codes import as_text, encode, refuse_opaque
from shoal.engines.lazy import DistinctValues
from shoal.engines.open import open_table
from shoal.engines.source import Scope, ScopeSettings, size
from shoal.engines.table import Table, refuse_other_count, require
from shoal.engines.unassigned import Unassigned, look
from shoal.errors import InputError, PolicyError, UncoveredError
from shoal.judge.file import canonical, read_release, unquoted
from shoal.model.arguments import column_names, drawn, number, suggesting
from shoal.model.cards import Shown, several
from shoal.model.certificate import read_json
from shoal.model.policy import Policy
from shoal.model.task import nothing
from shoal.pipeline import prepare
from shoal.publishing import series_folder
from shoal.publishing.series import (
    NewPart,
    again,
    increment,
    judged_bytes,
    make_part,
    of_other_kind,
    refuse_together,
    shuffled,
    views,
)
from shoal.publishing.verifying.verify import SeriesVerdict, verify_series
from shoal.watching import watched

__all__ = ["Series"]

Progress = Callable[[str, float | None], None]


class Series(Shown):
    """A folder of releases, each with a certificate that names the previous one, and a private ledger.

    ``Series.start`` creates one, and ``Series(place)`` opens one. ``add`` publishes the next part completely or not at
    all. ``verify`` checks everything again. docs/series.md explains the modes and what each promises.

    place   the folder
    policy  the request that every part must meet, without what is chosen again for each part (a seed)
    mode    "increment", "again", or "views"

    Raises InputError for a folder that is not a series, VerificationError if a part or the ledger is missing, changed,
    or older than what was published.

    Examples:
        >>> import polars as pl, shoal, tempfile, pathlib
        >>> place = pathlib.Path(tempfile.mkdtemp()) / "cases"
        >>> series = shoal.Series.start(place, shoal.Policy(quasi_identifiers=["age"], sensitive="ill", k=2, l=2))
        >>> month = pl.DataFrame({"id": ["a", "b", "c", "d"], "age": [34, 34, 61, 61], "ill": list("ynyn")})
        >>> series.add(month, person="id").rows, series.parts, series.verify().holds
        (4, 1, True)
    """

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)
        held = series_folder.open_series(self.place)
        self.policy, self.mode = held.policy, str(held.about["mode"])

    @classmethod
    @suggesting
    def start(
        cls,
        place: str | Path,
        policy: Policy | str | Path,
        *,
        mode: str = "increment",
        wait: int = 0,
        wait_above: float | None = None,
        counterfeits: bool = True,
        signatures: int | None = None,
    ) -> Series:
        """Make the folder of a new series.

        policy        the request that every part must meet: a Policy or its file
        wait          of "increment" and "again": for how many parts a row may wait if it would lose more than
                      ``wait_above`` (share of its cells' information, from 0 to 1; 0.3 if None) in this part; in
                      "again", only newcomers wait, and not in the first part
        counterfeits  of "again": whether a made-up row may replace a person who left; False: that person's group isn't
                      published
        signatures    of "again": about how many signatures (sets of possible values) newcomers have. With few, the
                      first parts lose more, and fewer rows are made up later; None: any number

        Raises PolicyError for a request that no series can keep, ExistsError for a folder that is not empty.
        """
        asked = Policy.read(policy) if isinstance(policy, (str, Path)) else Policy.of(policy)
        if isinstance(wait, bool) or not isinstance(wait, int) or wait < 0:
            raise PolicyError(f"⟨wait={wait!r}⟩: say how many parts a row may wait, a whole number from 0")
        if mode == "views" and (wait or wait_above is not None):
            name = "wait" if wait else "wait_above"
            raise PolicyError(f"a view shows what was published, and no row waits; leave ⟨{name}=⟩ out of mode 'views'")
        if wait_above is not None and not wait:
            raise PolicyError(
                "⟨wait_above=⟩ counts only if rows may wait; say for how many parts, such as ⟨wait=2⟩, or leave it out"
            )
        share = 0.3 if wait_above is None else wait_above
        above = number("wait_above", share, "it is a share from 0 to 1", lambda x: 0 <= x <= 1)
        if not counterfeits and mode != "again":
            raise PolicyError(f"made-up rows belong to mode 'again' alone; leave ⟨counterfeits=⟩ out of mode {mode!r}")
        if signatures is not None and (
            isinstance(signatures, bool) or not isinstance(signatures, int) or signatures < 1
        ):
            raise PolicyError(f"⟨signatures={signatures!r}⟩: say how many newcomers may have, a whole number from 1")
        if signatures is not None and mode != "again":
            raise PolicyError(f"signatures belong to mode 'again' alone; leave ⟨signatures=⟩ out of mode {mode!r}")
        settings: dict[str, Any] = {} if mode == "views" else {"wait": wait, "wait_above": above}
        if mode == "again":
            settings |= {"counterfeits": bool(counterfeits), "signatures": signatures}
        series_folder.start(Path(place), asked, mode, settings)
        return cls(place)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(series_folder.part_numbers(self.place))

    @watched
    @suggesting
    def add(
        self,
        table: Any,
        /,
        *,
        person: str | None = None,
        identifiers: Sequence[str] | str = (),
        without_waiting: bool = False,
        other_people: bool = False,
        engine: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        sign: str | Path | None = None,
        progress: Callable[[str, float | None], None] = nothing,
        **settings: Unpack[ScopeSettings],
    ) -> NewPart:
        """Publish the next part from a table.

        table   a path or a frame, read as ``anonymize`` reads it, with engine, memory, separator, and so on; mode
                "again" reads it into memory
        person  the column that identifies the person of a row, which is removed; None: the policy's. Without a person
                column, every row counts as a new person
        identifiers  further columns to remove from this table, in addition to the policy's
        without_waiting  whether rows that wait for this part may be absent; they are then never published
        other_people  whether rows that equal those of an earlier part, and people whose ids are other spellings of
                earlier ones, are other people; you know it, and the promise relies on it
        sign    file of a private key, see ``shoal keygen``

        Raises InputError for people who may not appear, InfeasibleError if no part can exist. If the process is killed
        at any moment, the series is unchanged or has one complete part more.
        """
        progress("reading", None)
        scope, _ = Scope.among(settings)
        with series_folder.held(self.place) as held, held.scratch() as scratch:
            progress("reading", None)
            _refuse_without_effect(held, without_waiting, other_people)
            person = person or held.policy.person
            policy, about = self._asked(held.policy, person, column_names("identifiers", identifiers)), held.about
            scope, engine = scope.as_asked(table, engine, held.policy)
            read = open_table(table, engine, separator=separator, encoding=encoding, scope=scope)
            named = [*policy.grouped, *policy.sensitive, *policy.insensitive, *([] if person is None else [person])]
            require(read.columns, named)
            _refuse(read, policy, person, held)
            carried = look(read, policy)
            if held.about["mode"] == "again":
                _refuse_beyond(scope.memory, read)
            seen = _seen(read, policy, person, held, other_people) if held.about["mode"] == "increment" else ""
            try:
                added = _added(read, policy, (person, other_people), held, scratch, without_waiting, carried, progress)
            except UncoveredError as error:
                if not held.parts:
                    raise
                raise UncoveredError(f"{error.sentence.marked}; {_HIERARCHIES_STAY}") from None
            statement = {
                "id": about["id"], "mode": about["mode"], "number": held.parts + 1, "previous": held.digests[-1],
                "made_up": added.made_up,
            }  # fmt: skip
            part = make_part(
                added.frame, policy, statement, scratch, carried=carried, sign=sign, made_up=added.made_up,
                waiting=added.waiting, held_back=added.held,
            )  # fmt: skip
            if held.parts:
                kinds = of_other_kind(held.release(held.parts), part.release, policy)
                part = replace(part, other_kind=kinds)
            if self.mode == "increment":
                refuse_together([held.release(i + 1) for i in range(held.parts)], part, policy)
            progress("writing and reading back", None)
            ledger = added.ledger.of_table(seen)
            held.add(part.release, part.certificate, ledger, judged_bytes(policy), closed=closed_to([table]))
        return part

    @watched
    @suggesting
    def view(
        self,
        columns: Sequence[str] | str | None = None,
        *,
        publish: str | None = None,
        levels: Mapping[str, int] | None = None,
        sign: str | Path | None = None,
        progress: Callable[[str, float | None], None] = nothing,
    ) -> NewPart:
        """Publish a coarser copy of the first part for another reader, in mode "views".

        columns  the columns that it keeps; None: all
        publish  "stars", "hierarchy" or "ranges", if the first part is at least as fine; None: as the first part
        levels   for each column with a hierarchy, the lowest level that it may show; 0 is the value itself
        sign     file of a private key, see ``shoal keygen``

        Every row of a view is a coarser row of the first part, so all views together reveal no more than the first
        part.
        Raises PolicyError for a request that the first part can't show, InputError if there is no first part.  O(rows).
        """
        with series_folder.held(self.place) as held, held.scratch() as scratch:
            if self.mode != "views":
                raise PolicyError(f"a series of mode {self.mode!r} has no views; start one of mode 'views'")
            if not held.parts:
                raise InputError("there is nothing to see yet; shoal series add publishes the table that views show")
            asked = views.ReaderView.of(held.policy, columns, publish, levels)
            policy = replace(asked.policy(self._asked(held.policy, None)), identifiers=())
            progress("reading the first part", None)
            first = read_release(held.release(1))
            statement = {
                "id": held.about["id"], "mode": "views", "number": held.parts + 1, "previous": held.digests[-1],
                "made_up": 0, "view": asked.as_dict(),
                "others": [_shown(held, number) for number in range(1, held.parts + 1)],
            }  # fmt: skip
            part = make_part(shuffled(views.view(first, asked, held.policy)), policy, statement, scratch, sign=sign)
            progress("writing and reading back", None)
            after = held.ledger.after(pl.LazyFrame(schema=series_folder.SCHEMA))
            held.add(part.release, part.certificate, after, judged_bytes(policy))
        return part

    @suggesting
    def waiting(
        self,
        table: Any,
        /,
        *,
        person: str | None = None,
        engine: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        **settings: Unpack[ScopeSettings],
    ) -> pl.DataFrame:
        """The rows of an earlier table that wait for the next part. That part's table must contain them again.

        table  as in ``add``; the ledger has hashes of persons but no values, so the rows are taken from here

        Raises InputError if a waiting person is not in the table. O(rows), in memory.
        """
        scope, _ = Scope.among(settings)
        held = series_folder.open_series(self.place)
        person = person or held.policy.person
        if person is None:
            raise InputError("rows wait by their person; name the column of persons with ⟨person=...⟩")
        read = open_table(table, engine, separator=separator, encoding=encoding, scope=scope)
        require(read.columns, [person])
        whole, known = read.polars(read.columns), list(held.ledger.waiting)
        waits = _persons(_as_text(whole[person]), held).is_in(known)
        found = whole.filter(waits)
        if lost := len(known) - found[person].n_unique():
            raise InputError(
                f"{len(known):,} rows wait for the next part, and {lost:,} of them are not in this table; put the "
                "tables of the earlier parts together"
            )
        return found

    @staticmethod
    def _asked(policy: Policy, person: str | None, more: Sequence[str] = ()) -> Policy:
        """The policy of a part. Each person has one row, so rows count as persons, and the person column is removed."""
        leave = tuple(dict.fromkeys([*policy.identifiers, *more, *([] if person is None else [person])]))
        return replace(policy, person=None, identifiers=leave, engine=None).seeded(drawn())

    def status(self) -> dict[str, Any]:
        """The state of the series as plain values: mode, parts, people published, rows that wait.

        If rows can wait, also for how many parts, and above which loss.
        """
        held = series_folder.open_series(self.place)
        wait = held.about.get("wait", 0)
        return {
            "series": str(self.place),
            "mode": self.mode,
            **({"wait": wait, "wait_above": held.about["wait_above"]} if wait else {}),
            "parts": held.parts,
            "people": held.ledger.people,
            "waiting": len(held.ledger.waiting),
            "head": held.digests[-1],
        }

    def verify(self, *, signer: str | Path | None = None) -> SeriesVerdict:
        """Check every part, the chain, and the ledger, by code that shares nothing with their making."""
        return verify_series(self.place, signer=signer)

    @staticmethod
    def verify_folder(place: str | Path, *, signer: str | Path | None = None) -> SeriesVerdict:
        """``verify`` for a receiver, who has neither key nor ledger. The folder needs only the public files."""
        return verify_series(place, signer=signer)

    def _lines(self) -> list[str]:
        facts = self.status()
        return [f"Series, mode {self.mode}", *(f"{name}: {value}" for name, value in facts.items() if name != "mode")]


def _shown(held: series_folder.Folder, number: int) -> dict[str, Any]:
    """The description of a part in the certificates of later views."""
    certificate = read_json(held.release(number).with_name(series_folder.CERTIFICATE))
    quasi, sensitive = certificate["policy"]["quasi_identifiers"], certificate["policy"]["sensitive"]
    shown = certificate["series"].get("view") or {
        "columns": [*quasi, *sensitive],
        "publish": certificate["policy"]["publish"],
    }
    return {"number": number, "certificate": held.digests[number], **shown}


def _refuse_without_effect(held: series_folder.Folder, without_waiting: bool, other_people: bool) -> None:
    """PolicyError for an option of ``Series.add`` that has no effect in this series."""
    mode = held.about["mode"]
    if without_waiting and (mode != "increment" or not held.about.get("wait")):
        why = {
            "increment": "a series that was started without ⟨wait=⟩, as no row waits",
            "again": "mode 'again', where people who wait may leave as all others may",
            "views": "mode 'views', as no row waits",
        }[mode]
        raise PolicyError(f"⟨without_waiting=⟩ has no effect in {why}; leave it out")
    if other_people and mode == "views":
        raise PolicyError("⟨other_people=⟩ has no effect in mode 'views', which has one table; leave it out")


def _refuse(read: Table, policy: Policy, person: str | None, held: series_folder.Folder) -> None:
    """InputError for a table that can't be the next part of a series in its mode."""
    mode = held.about["mode"]
    if "*" in read.columns:
        raise InputError("the column name '*' is a pattern of other names to Polars; rename it")
    if mode == "views" and held.parts:
        raise InputError(
            "mode 'views' has one table, and it is published; a further reader gets a view of it: "
            "shoal series view (Series.view)"
        )
    if person is None and held.about.get("wait"):
        raise InputError("rows can wait only when they are known again; name the column of persons with ⟨person=...⟩")
    if person is None and mode == "again":
        raise InputError("mode 'again' recognizes people; name the column of persons with ⟨person=...⟩")
    if held.parts:
        _refuse_other_columns(read, policy, held)


Person = tuple[str | None, bool]  # the column of persons, and whether those who look like earlier ones are others


def _seen(read: Table, policy: Policy, person: str | None, held: series_folder.Folder, other_people: bool) -> str:
    """The keyed hash of a table's quasi-identifiers and sensitive values, without the order of its rows.

    InputError if an earlier part is of the same rows, and this table or that part has no column that tells who they
    are: they are probably the same people, unless the caller knows that they are others.
    """
    tuples, rows = read.counts([*policy.grouped, *policy.sensitive])
    texts = tuples.with_columns(_as_text(column) for column in tuples)
    seen = held.keyed.table(
        texts.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep()), rows
    )
    for part in (i for i, table in enumerate(held.ledger.tables, 1) if table == seen and not other_people):
        if person is None:
            raise InputError(
                f"this table has the rows of part {part}, and without a column of persons they would count as new "
                "people; name the column with ⟨person=COLUMN⟩, or if they are others, say ⟨other_people=True⟩"
            )
        if held.ledger.known(held.keyed.column("row", increment.unnamed(part, 1))).len():
            raise InputError(
                f"this table has the rows of part {part}, which had no column of persons, so nobody in it is known "
                "again; publish new people alone, or if they are others, say ⟨other_people=True⟩"
            )
    return seen


def _added(
    read: Table, policy: Policy, person: Person, held: series_folder.Folder, scratch: Path, without_waiting: bool,
    looked: Unassigned, progress: Progress,
) -> increment.Added:  # fmt: skip
    """The rows of the next part and the ledger after it, computed by the mode of the series."""
    wait = {"wait": held.about.get("wait", 0), "wait_above": held.about.get("wait_above", 0.0)}
    if held.about["mode"] == "again":
        frame, persons = _texts(read, policy, person, held)
        kept = [c for c in frame.columns if c not in policy.identifiers]
        return again.add(
            frame.select(kept), persons, held.ledger, held.keyed, _search(policy, progress), policy, shown=held.shown,
            counterfeits=held.about["counterfeits"], signatures=held.about.get("signatures"), **wait,
        )  # fmt: skip
    if read.in_memory:
        new = _new_here(read, policy, person, held, progress)
    else:
        new = _new_elsewhere(read, policy, person, held, scratch, looked, progress)
    return increment.add(new, held.ledger, held.keyed, policy, **wait, without_waiting=without_waiting, scratch=scratch)


def _refuse_other_columns(read: Table, policy: Policy, held: series_folder.Folder) -> None:
    """InputError for a table whose part would not have the columns of the part before."""
    part = pl.scan_csv(held.release(held.parts), infer_schema=False, glob=False, with_column_names=unquoted)
    before = part.collect_schema().names()
    now = [c for c in read.columns if c not in policy.identifiers]
    if new := [c for c in now if c not in before]:
        raise InputError(
            f"column {new[0]!r} is not in the part before, and all parts have the same columns; leave it out with "
            f"⟨identifiers={new}⟩, or publish it in a new series"
        )
    if gone := [c for c in before if c not in now]:
        raise InputError(f"column {gone[0]!r} is in the part before and not in this table; add it")


def _texts(
    read: Table, policy: Policy, person: Person, held: series_folder.Folder
) -> tuple[pl.DataFrame, pl.Series | None]:
    """The table in memory as text, with one text for all values beyond a limit, and the keyed hash of each row's
    person."""
    whole = read.polars([c for c in read.columns if c == person[0] or c not in policy.identifiers])
    if not whole.height:
        raise InputError(_EMPTY)
    limited = (encode(whole[name], notation) for name, notation in policy.limits.items())
    whole = whole.with_columns(column.values.gather(column.codes) for column in limited)
    texts = whole.with_columns(_as_text(column) for column in whole)
    texts = texts.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
    return texts, None if person[0] is None else _persons(texts[person[0]], held, person[1])


def _as_text(column: pl.Series) -> pl.Series:
    """A column as the texts of a file, so that a float 29.0 is 29; InputError for a type without text."""
    refuse_opaque(column, ", or name it in ⟨identifiers=[...]⟩ to leave it out")
    if isinstance(column.dtype, (pl.Duration, pl.Time)):
        return as_text(column)
    return canonical(column) if column.dtype.is_float() else column.cast(pl.String)


def _refuse_beyond(memory: str | None, read: Table) -> None:
    """InputError for a table that doesn't fit in the allowed memory in mode "again"."""
    if memory is None or (takes := read.rows * AGAIN_BYTES) <= size(memory):
        return
    raise InputError(
        f"mode 'again' holds the whole table in memory, and {read.rows:,} rows take about {takes / 1e9:.1f} GB; "
        f"⟨memory={memory!r}⟩ does not leave that. Allow as much, or start a series of mode 'increment', which can be "
        "larger than memory and takes new people alone"
    )


AGAIN_BYTES = 2_500  # bytes for each row in mode "again", measured with 400,000 rows of six columns
_HIERARCHIES_STAY = (
    "a series keeps the hierarchies with which it was started, so write these values as ones that the hierarchy has, "
    "leave their rows out, or start a new series with the longer hierarchy"
)
_EMPTY = "the table has a header and no rows, so there is nothing to publish"
_NUMBER = "shoal number"  # name of the column of person numbers while a part is made


def _persons(column: pl.Series, held: series_folder.Folder, other_people: bool = False) -> pl.Series:
    """The keyed hash of each row's person; InputError for a missing person, or one with another spelling before, unless
    the caller knows that these are other people."""
    if missing := column.null_count():
        raise InputError(f"column {column.name!r} has no value in {several(missing, 'row')}; fill it in")
    hashed = held.keyed.column("person", column)
    if not other_people:
        increment.refuse_respelled(column, hashed, held.ledger, held.keyed)
    return hashed


def _new_here(
    read: Table, policy: Policy, person: Person, held: series_folder.Folder, progress: Progress
) -> increment.NewPeople:
    """The new people of a table in memory. The search gets only the columns that it judges."""
    texts, persons = _texts(read, policy, person, held)
    ordered, number = (None, None) if persons is None else increment.numbered(persons)
    judged = [*policy.grouped, *policy.sensitive]
    kept = [c for c in texts.columns if c not in policy.identifiers]

    def publish() -> pl.LazyFrame:
        found = texts.select(kept).with_columns(_search(policy, progress)(texts.select(judged)).get_columns())
        return shuffled(found if number is None else found.with_columns(number.alias(_NUMBER)))

    return increment.NewPeople(ordered, _NUMBER, lambda name: texts[name].unique().to_list(), publish)


def _new_elsewhere(
    read: Table, policy: Policy, who: Person, held: series_folder.Folder, scratch: Path, looked: Unassigned,
    progress: Progress,
) -> increment.NewPeople:  # fmt: skip
    """The new people of a table that may be larger than memory and is read in slices.

    Every row is published into the scratch folder with the number of its person. Hashes would take most of the memory
    that the engine is allowed.
    """
    data, persons, many, (person, other_people) = read.without([]), None, None, who
    if person is not None:
        progress("looking people up", None)
        found = DistinctValues.of(read, person)
        many = int(found.rows.sum())
        texts = _as_text(found.values)
        texts = texts.set(texts == "", None)
        if many > texts.len():
            increment.refuse_twice(texts.gather(np.repeat(np.arange(texts.len()), found.rows)))
        persons, number = increment.numbered(_persons(texts.alias(person), held, other_people))
        data = found.exchanged(number.alias(_NUMBER))
    # the search gets a frame, which has no source file to compare the row count with
    if read.origin.records is not None:
        refuse_other_count(str(read.origin.source), read.rows if many is None else many, read.origin.records)
    left = tuple(c for c in policy.identifiers if c != person)
    carried = tuple(c for c in read.columns if c not in (*policy.grouped, *policy.sensitive, *policy.identifiers)) + (
        () if persons is None else (_NUMBER,)
    )

    def publish() -> pl.LazyFrame:
        path = scratch / "published.parquet"
        asked = replace(policy, identifiers=left, insensitive=carried, numeric_stars="text")
        prepare(data, asked, target=path, carried=looked, progress=progress).write(path, record=False)
        shown, made = pl.exclude(_NUMBER), pl.scan_parquet(path, glob=False)
        for name, kind in made.collect_schema().items():
            _as_text(pl.Series(name, dtype=kind))  # refuses; inside the plan, Polars would add words of its own
        texts = shown.map_batches(_as_text, return_dtype=pl.String, is_elementwise=True)
        return made.with_columns(texts).with_columns(pl.when(shown == "").then(None).otherwise(shown).name.keep())

    def values(name: str) -> list[str | None]:
        return _as_text(read.counts([name])[0].to_series()).to_list()

    return increment.NewPeople(persons, _NUMBER, values, publish)


def _search(policy: Policy, progress: Progress) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function that publishes a table of text under the policy and keeps the order of its rows."""

    def search(frame: pl.DataFrame) -> pl.DataFrame:
        names = frame.columns
        here = tuple(c for c in policy.identifiers if c in names)
        beside = tuple(c for c in names if c not in (*policy.grouped, *policy.sensitive))
        asked = replace(policy, identifiers=here, insensitive=beside, keep_order=True, numeric_stars="text")
        # ``table`` is judged when the part is written
        found: pl.DataFrame = prepare(frame, asked, progress=progress).table
        return found.select(pl.all().cast(pl.String))

    return search
