"""``Release``: the published table, its certificate, and its audit, which are written verified and atomically."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, overload

import polars as pl

from shoal.engines.atomic import publish_page
from shoal.engines.source import FilesOfTable
from shoal.engines.table import Expected, StoredFrame, Table, Tuples
from shoal.engines.unassigned import Unassigned
from shoal.errors import PolicyError, VerificationError
from shoal.judge.file import refuse_other
from shoal.judge.tables.large import refuse_unconnected
from shoal.judge.tables.population import Census, Covered, add_population, outside, reading_of
from shoal.judge.tables.shown import breach
from shoal.model.arguments import suggesting
from shoal.model.audit import Audit, Check, Composition, largest_share
from shoal.model.cards import Shown
from shoal.model.certificate import Certificate
from shoal.model.loss import View
from shoal.model.members import Members
from shoal.model.policy import Policy
from shoal.model.rule_books import SafeHarbor
from shoal.model.task import nothing
from shoal.paths import internal_path, is_server, usual_separator
from shoal.publishing.decode import Decoded
from shoal.publishing.tables import statement
from shoal.publishing.tables.limits import Exposed, graphs_of, scales_of
from shoal.watching import watched


class Persons(NamedTuple):
    """Figures about persons, counted before the person columns are removed.

    fewest  for each person column, the smallest number of persons in a class
    checks  the levels of the models that count persons
    """

    fewest: Mapping[str, int] = {}
    checks: tuple[Check, ...] = ()


class MissingValues(NamedTuple):
    """The treatment of missing values.

    apart   with missing="apart": the "rows" that lack a quasi-identifier, the "smallest" class of them, the
            "smallest_of_others", counted on the placed rows; and the "columns" that lack values
    filled  with missing="filled": the number of filled cells of each quasi-identifier
    """

    apart: Mapping[str, Any] | None = None
    filled: Mapping[str, int] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """The counts of a release.

    rows, groups  number of rows, and of classes of rows with equal published values
    cost          {"stars", "suppressed_tuples", "ncp"}; ``Release.loss`` also has the other measures
    stars         for each quasi-identifier, the number of starred cells
    changed       for each quasi-identifier, the number of coarser cells
    before        privacy figures of the original
    carried       the insensitive columns, and how many rows they single out
    persons, missing  figures on persons and on missing values, if requested
    limited       for each column with limits, the values and rows that reach them, and what lies beyond
    harbor        the changes of Safe Harbor by column, if requested
    exposed       the shares of groups that show a value of only one of their rows
    notes         sentences on what the published table can't show
    composition   what it reveals together with earlier releases, if these are given
    versions      SHA-256 of the files of earlier releases that are versions of a Delta or Iceberg table
    """

    rows: int
    groups: int
    cost: Mapping[str, float]
    stars: Mapping[str, int]
    changed: Mapping[str, int]
    before: Mapping[str, Any]
    carried: Unassigned = field(default_factory=Unassigned)
    persons: Persons = field(default_factory=Persons)
    missing: MissingValues = field(default_factory=MissingValues)
    limited: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    harbor: SafeHarbor | None = None
    exposed: Exposed = field(default_factory=lambda: Exposed({}))
    notes: tuple[str, ...] = ()
    composition: tuple[Composition, ...] = ()
    versions: tuple[str, ...] = ()


class TableOrigin(NamedTuple):
    """The source of a table: its file, its separator, and its parts if an engine read several."""

    path: str | None = None
    separator: str | None = None
    parts: FilesOfTable | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedRows:
    """The rows of a release, as a table or as the tuples from which it is made.

    table    the placed table; None if it can be made from ``tuples``: a CSV is written without it
    row_key  for an engine's table without insensitive columns: the key with which ``Placement.expected`` makes its rows
    slices   the rows of an engine's table, read fastest, see ``Placed``
    counts   the rows of an engine's table, counted fastest, see ``Placed``
    placed   whether these rows are those that were placed, and not a replacement table
    """

    table: Any
    tuples: Tuples | None = None
    row_key: bytes | None = None
    slices: Any = None
    counts: Any = None
    placed: bool = True

    @cached_property  # computed once on demand; this doesn't change the value
    def frame(self) -> Any:
        """The published table."""
        return self.tuples.frame() if self.table is None and self.tuples is not None else self.table


class Losses(NamedTuple):
    """Functions that give the input of the loss measures and their values."""

    view: Callable[[], View]
    measure: Callable[[], Mapping[str, float]]


class GivenPopulation(NamedTuple):
    """The population, and the weights of each class, if they are given."""

    census: Census | None = None
    people: Covered | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """The inputs and the placement of a release, which writing and judging need. They are never shown.

    expected   what the table must contain, from the partition alone
    order      source of the row order
    own        the table's own values for each quasi-identifier, in the histogram's order, for counts. A pickled release
               contains them and is as private as the original: publish only the output of ``write``
    published  the published texts of each quasi-identifier
    """

    expected: Expected
    order: str
    own: Mapping[str, Sequence[str | None]]
    published: Mapping[str, frozenset[str | None]]
    rows: ReleasedRows
    losses: Losses
    source: TableOrigin = field(default_factory=TableOrigin)
    population: GivenPopulation = field(default_factory=GivenPopulation)

    @property
    def orders(self) -> dict[str, list[str]]:
        """The values of each sensitive column with an explicit order, from lowest to highest."""
        return {c.name: [t for t in c.texts() if t is not None] for c in self.expected.sensitive if c.ordered}

    @property
    def texts(self) -> dict[str, Sequence[str | None]]:
        """The original values of every judged column."""
        return {**self.own, **{c.name: c.texts() for c in self.expected.sensitive}}

    def separator(self, path: Path) -> str:
        """The separator of a new file: that of the original, unless the file's ending determines another."""
        usual = usual_separator(path)
        return usual if usual != "," else self.source.separator or usual


@dataclass(eq=False)
class JudgedRelease:
    """What is computed after a release is made: the audit of its table or file, and the files."""

    audit: Audit | None = None
    written: Mapping[str, Any] | None = None


Frame = TypeVar("Frame", covariant=True)
Some = TypeVar("Some")
Files = str | Path | Sequence[str | Path]


class _Published:
    """The published table of a release, typed as the kind of frame that the user passed."""

    @overload
    def __get__(self, release: None, owner: type) -> _Published: ...
    @overload
    def __get__(self, release: Release[Files], owner: type) -> Any: ...
    @overload
    def __get__(self, release: Release[Some], owner: type) -> Some: ...

    def __get__(self, release: Any, owner: type) -> Any:
        return self if release is None else release._placement.rows.frame


@dataclass(frozen=True, eq=False, repr=False)
class Release(Shown, Generic[Frame]):
    """A release of a table, with its cost.

    policy       the request
    certificate  cost, lower bound, and the theorem behind each
    method       the method of the catalogue that gave the answer; attempts: every method that was tried
    facts        counts of it: rows, groups, stars, unassigned columns, notes
    seconds      the duration of each step
    table        the published table, the kind of frame that you passed (Polars for a path)
    audit        the published table, judged by code that shares nothing with the code that made it
    loss         every loss measure by its name; ``facts.cost`` has the main ones
    """

    policy: Policy
    certificate: Certificate
    method: str
    attempts: tuple[Mapping[str, Any], ...]
    facts: Facts
    _placement: Placement
    seconds: dict[str, float] = field(default_factory=dict)
    _judged: JudgedRelease = field(default_factory=JudgedRelease)

    table = _Published()

    def __reduce__(self) -> Any:
        """Pickle the release. A DuckDB relation is pickled as its rows, because a connection can't be pickled."""
        made = replace(self._placement, rows=ReleasedRows(None, placed=self._placement.rows.placed))
        known = (
            self.policy,
            self.certificate,
            self.method,
            self.attempts,
            self.facts,
            made,
            self.seconds,
            self._judged,
        )
        return _revived, (self._opened().picklable(), known)

    def __dir__(self) -> list[str]:
        return sorted(name for name in {*object.__dir__(self)} if not name.startswith("_") or name.startswith("__"))

    def with_table(self, table: Any) -> Release[Any]:
        """This release with another table; ``check`` tests whether that table keeps the promise."""
        made = replace(self._placement, rows=ReleasedRows(table, placed=False))
        return replace(self, _placement=made, _judged=JudgedRelease(), seconds=dict(self.seconds))

    @property
    def composition(self) -> tuple[Composition, ...]:
        """What this release and the earlier ones reveal together, for each sensitive column. Private."""
        return self.facts.composition

    def _in_memory(self) -> bool:
        """Whether the rows are in this process, or can be made in it."""
        return self._placement.rows.table is None or self._opened().in_memory

    def _opened(self) -> Table:
        from shoal.engines.open import open_table

        return open_table(self.table)

    @property
    def audit(self) -> Audit:
        """The published table, judged by code that shares nothing with the code that made it."""
        if self._judged.audit is None:
            self._judged.audit = self._audited()
        return self._judged.audit

    def _audited(self) -> Audit:
        """The audit of the table in memory, with its tuples compared with the expected ones."""
        from shoal.judge.tables.privacy import judge

        clock, policy = time.perf_counter(), self.policy
        names, dealt, expected = [*policy.grouped, *policy.sensitive], self._placement.rows, self._placement.expected
        few = dealt.tuples
        cells, counts = few.counts(names) if few is not None else (dealt.counts or self._opened().counts)(names)
        with ThreadPoolExecutor(1) as second:
            judged = second.submit(
                judge, cells, policy.grouped, policy.sensitive, policy.of_rows, counts=counts, **scales_of(policy)
            )
            refuse_other(expected.counts(text=() if few is None else names), (cells, counts))
            found = judged.result()
        refuse_unconnected(cells, graphs_of(policy), policy.star)
        if self.facts.harbor is not None or policy.population is not None or policy.weighed:
            opened = self._opened()
            beside = [n for n in policy.weighed if n in opened.columns]
            found = self._outside()(opened.polars([*names, *beside]), found)
        self.seconds["verify"] = time.perf_counter() - clock
        return self._with_exposed(found)

    def _with_exposed(self, audit: Audit) -> Audit:
        facts = self.facts
        return replace(
            audit, checks=(*audit.checks, *facts.persons.checks), exposed=dict(facts.exposed.columns),
            exposed_classes=facts.exposed.groups, notes=facts.notes,
        )  # fmt: skip

    @cached_property
    def loss(self) -> Mapping[str, float]:
        """Every loss measure by its name; computed on first access."""
        return {**self._placement.losses.measure(), **self.facts.cost}

    def _outside(self, blanks: Sequence[str] = (), sheet: bool = False) -> Callable[[pl.DataFrame, Audit], Audit]:
        """A function that adds the population's figures to an audit of the published table, or of the written one."""
        read = reading_of(self.policy, self.policy.publish, self.policy.hierarchies, self.facts.stars, blanks, sheet)

        census, people = self._placement.population

        def add(frame: pl.DataFrame, audit: Audit) -> Audit:
            wrong = None if self.facts.harbor is None else breach(frame, self.facts.harbor)
            if wrong is not None:
                raise VerificationError(f"{wrong}; nothing was published. This is a defect of shoal: please report it")
            found = outside(frame, self.policy, census, read, people)
            return audit if found is None else add_population(audit, found, self.policy.privacy)

        return add

    def check(self) -> None:
        """Raise VerificationError unless the published table meets every requested model and matches the partition.

        Every tuple of published and sensitive values must occur in as many rows as the partition states.
        """
        self._accept(self.audit)

    def _accept(self, audit: Audit) -> None:
        """VerificationError for an audit that violates the request."""
        if audit.rows != self.facts.rows:
            raise VerificationError(
                f"the release has {audit.rows} rows, the table {self.facts.rows}; nothing was published"
            )
        limit = self.policy.max_average_risk
        if limit is not None and audit.classes > limit * audit.rows + 1e-9:
            raise VerificationError(
                f"the release has a mean risk of {audit.classes / audit.rows:.6g} where {limit} was asked; nothing was "
                "published. This is a defect of shoal: please report it"
            )
        most, allowed = largest_share(audit), self.policy.minimality
        if allowed is not None and most > allowed + 1e-9:
            raise VerificationError(
                f"the release has a value on the share {most:.6g} of a group where ⟨minimality={allowed:g}⟩ was asked; "
                "nothing was published. This is a defect of shoal: please report it"
            )
        for found in audit.checks:
            if not found.passes:
                where = f" in column {found.column!r}" if found.column else ""
                raise VerificationError(
                    f"the release reaches only {found.level} where {found.model} asked for {dict(found.asked)}{where}; "
                    "nothing was published. This is a defect of shoal: please report it"
                )

    @watched
    @suggesting
    def write(
        self,
        path: str | Path,
        certificate: str | Path | None = None,
        *,
        table: str | None = None,
        sign: str | Path | None = None,
        overwrite: bool = True,
        parts: str | None = None,
        record: bool = True,
        bound: str | None = None,
        progress: Callable[[str, float | None], None] = nothing,
    ) -> Path:
        """Write the table in the format of the file's ending, verified on the written bytes, with certificate and
        record.

        The certificate may be published with the release: it contains what the released file shows, and one rounded
        ratio. The record contains what is known about the original. Only its owner may read it, and no receiver needs
        it.

        path         CSV (also .gz), Parquet, or Excel; for a DuckDB or Spark table also a folder, for parts with a
                     manifest that contains the hash of each; or the address of a server,
                     postgresql://user@host/database or mysql://..., without a password, which PGPASSWORD, ~/.pgpass, or
                     a service has, or MYSQL_PWD and ~/.my.cnf; or delta:FOLDER or iceberg:CATALOG.NAMESPACE.TABLE, for
                     a new version of a table. Older versions stay readable, so pass them to ``shoal.anonymize`` with
                     ``after``
        certificate  a JSON file; RELEASE.certificate.json if None, for a server TABLE.certificate.json in this folder
        table        for a server: the name of the table. It contains what a CSV would, and gets its name after its rows
                     are read back and judged. It replaces a release, but never another table
        sign         file of a private key, see ``shoal keygen``; its owner vouches for the whole certificate
        overwrite    False: refuse to replace existing files
        parts        "parquet" or "csv": write a folder of such files; None: by the path's ending, and without an ending
                     the format of the file that was read
        record       whether RELEASE.record.json is also written
        bound        "none": the certificate doesn't state the proved ratio; "ratio": it does; None: as in the policy
        progress     called with (step, share done or None)

        The files get their names only after the judge has read the table back. Otherwise raises VerificationError, and
        existing files are unchanged. Returns the certificate's path.
        """
        from shoal.engines import lakes
        from shoal.publishing.documents import Documents
        from shoal.publishing.tables.writing import write_lake, write_release, write_server

        served = is_server(path)
        if served and (table is None or parts is not None):
            raise PolicyError("a server of databases holds a table: say ⟨table=...⟩ and leave parts out")
        if not served and table is not None:
            raise PolicyError("⟨table=...⟩ names a table of a server of databases; the path is of a file")
        lake = lakes.is_target(path)
        target = lakes.folder_of(path) if lake else Path(str(table) if served else path)
        papers = Documents.next_to(target, certificate, record, sign, str(path) if served or lake else None)
        how: Any = {"bound": statement.states_bound(self.policy, bound), "overwrite": overwrite, "tell": progress}
        if served:
            return write_server(self, str(path), str(table), papers, **how)
        if lake:
            return write_lake(self, str(path), papers, **how)
        return write_release(self, target, papers, parts=parts, **how)

    def _read(self) -> list[str | Path]:
        """All files from which the release was made."""
        path, _, held = self._placement.source
        parts = () if held is None else (part.path for part in held.sources)
        return [p for p in (path, *parts, *self.policy.files) if p is not None]

    @watched
    @suggesting
    def report(
        self,
        path: str | Path,
        *,
        internal: bool = False,
        explored: Any = None,
        recipient: str = "",
        purpose: str = "",
        decided_by: str = "",
        overwrite: bool = True,
    ) -> Path:
        """One self-contained HTML page that opens offline; overwrite=False refuses to replace a file.

        internal  False: a public page, made from the published table and its certificate alone. True: the board's page,
                  with figures of the original, what was tried, and what was proved; its name then ends in
                  .internal.html, and you must not publish it
        explored  the result of ``shoal.explore``, for an internal page: what other choices would have cost
        recipient, purpose, decided_by  who gets the release, for what purpose, and who decided; lines to fill in if not
                                        given

        After ``write``, it names the file and its SHA-256. It contains all its figures as JSON too, and they are in a
        file of the same name that ends in .json. Returns the path of the page.
        """
        from shoal.report.page import release_page

        if explored is not None and not internal:
            raise PolicyError(
                "what explore found describes the original, so only an internal report shows it: say "
                "⟨internal=True⟩ too"
            )
        decision = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}

        def figures() -> dict[str, Any]:
            own = {**self.figures(), "internal": True} if internal else self.public_figures()
            return {**own, **statement.choices(explored, self.facts.rows), "decision": decision}

        path = internal_path(Path(path)) if internal else Path(path)
        return publish_page(path, figures, release_page, self._read(), overwrite=overwrite, private=internal)

    def figures(self) -> dict[str, Any]:
        """The figures of an internal report, as plain values; they include figures of the original."""
        from shoal.publishing.tables.figures import figures

        return figures(self)

    def public_figures(self) -> dict[str, Any]:
        """The figures of a public report, as plain values; the released table shows all of them."""
        from shoal.publishing.tables.written import public_figures

        opened = self._opened()
        content, audit = statement.shown_now(self)
        file = self._judged.written or {}
        file = {name: held for name, held in file.items() if name != "record"}
        return public_figures(opened.polars(opened.columns), content, audit, self.policy.privacy, file)

    @cached_property
    def decoded(self) -> Decoded:
        """The values that every cell can have, from the release alone."""
        return Decoded.of(self.table, self.policy, self.facts.stars)

    def numeric(self, columns: Sequence[str] | None = None) -> Any:
        """Low, high, and middle of every cell of the number and date columns; see ``Decoded.numeric``."""
        return self.decoded.numeric(columns)

    def members(self, column: str) -> list[Members]:
        """For each row, the values that its cell can have; see ``Decoded.members``."""
        return self.decoded.members(column)

    def one_hot(self, columns: Sequence[str] | None = None) -> Any:
        """A fraction for each known value; for each column, a row's fractions sum to 1; see ``Decoded.one_hot``."""
        return self.decoded.one_hot(columns)

    def sample(self, seed: int | None = None) -> Any:
        """The table with one value drawn for every cell; see ``Decoded.sample``."""
        return self.decoded.sample(seed)

    def _lines(self) -> list[str]:
        return statement.summary(self)

    def privacy(self) -> dict[str, Any]:
        """The level that each requested model reaches; with several sensitive columns, the weakest."""
        return statement.privacy(self)

    def as_dict(self) -> dict[str, Any]:
        """The facts of ``--json`` as plain values."""
        return statement.facts(self)


def _revived(stored: Any, known: tuple[Any, ...]) -> Release[Any]:
    """An unpickled release, whose table its engine restores."""
    policy, certificate, method, attempts, facts, made, seconds, judged = known
    table = stored.revive(stored.held) if isinstance(stored, StoredFrame) else stored
    made = replace(made, rows=replace(made.rows, table=table))
    return Release(policy, certificate, method, attempts, facts, made, seconds, judged)
