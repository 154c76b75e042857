"""A release: the published table, its certificate and its audit; written whole and verified, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
import polars as pl

from shoal.engines.atomic import SHARED
from shoal.engines.source import Parts
from shoal.engines.table import Expected, Stored, Table, Tuples
from shoal.engines.unassigned import Unassigned
from shoal.errors import PolicyError, VerificationError
from shoal.judge.file import refuse_other
from shoal.judge.originals.population import Census, Covered, beside, outside, reading_of
from shoal.judge.tables.large import hash_of
from shoal.judge.tables.shown import breach
from shoal.model.audit import Audit, Check, Composition, told_at_most
from shoal.model.cards import in_one_line
from shoal.model.certificate import Certificate
from shoal.model.loss import View
from shoal.model.notation import Members
from shoal.model.policy import Policy
from shoal.model.rule_books import Harbor
from shoal.model.task import nothing
from shoal.publishing.decode import Decoded
from shoal.publishing.tables import statement
from shoal.publishing.tables.limits import Exposed, trees_of
from shoal.watching import watched


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """What is counted of a release.

    cost        {"stars", "suppressed_tuples", "ncp"}; ``Release.loss`` has the other measures too
    groups      number of classes of rows published alike; rows: number of rows
    stars       per quasi-identifier, the number of starred cells; changed: of cells published coarser
    before      privacy of the table as it came
    carried     the columns carried along, and how many rows they single out
    persons     per column that names persons, the fewest in a class, counted on the placed rows before it left them
    of_persons  of the models that count persons the levels, likewise counted
    incomplete  where missing="apart": "rows" that lack a quasi-identifier, the "smallest" class of them, the
                "smallest_of_others", counted on the placed rows; and the "columns" that lack values
    filled      where missing="filled": the cells of every quasi-identifier that were
    harbor      what the Safe Harbor did to which columns, where it was asked for
    exposed     shares of the groups that show a value which only one of their rows holds
    notes       sentences on what the published table cannot tell
    composition what it tells beside earlier releases, where these were named
    """

    cost: Mapping[str, float]
    groups: int
    rows: int
    stars: Mapping[str, int]
    changed: Mapping[str, int]
    before: Mapping[str, Any]
    carried: Unassigned = field(default_factory=Unassigned)
    persons: Mapping[str, int] = field(default_factory=dict)
    of_persons: tuple[Check, ...] = ()
    incomplete: Mapping[str, Any] | None = None
    filled: Mapping[str, int] | None = None
    harbor: Harbor | None = None
    exposed: Exposed = field(default_factory=lambda: Exposed({}))
    notes: tuple[str, ...] = ()
    composition: tuple[Composition, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """What a release was made from and how its rows were dealt out: what writing and judging it needs, never shown.

    expected   what must stand in the table, from the partition alone; order: where the row order comes from
    own        the table's own values per quasi-identifier, in the histogram's order; for counts.  A pickled release
               holds them and is as private as the original: only what ``write`` makes may leave
    published  the texts that stand in each quasi-identifier
    path       the file that was read, and its separator; parts: the files, where DuckDB or Spark read them
    census     the population, people what its weights say of each class, where they were given
    view       makes what the losses are computed from; measure computes them
    row_key    where an engine's table carries nothing along: the key by which ``expected`` deals its rows out
    slices     the rows of an engine's table as it gives them quickest, see ``Placed``
    tuples     what a table in memory is dealt out of, where it is, once it is asked for; a CSV is written without
    table      the placed table, None where it is dealt out of ``tuples``.  row_key, slices and tuples speak of it: of
               a table put in its stead they say nothing
    """

    expected: Expected
    order: str
    own: Mapping[str, Sequence[str | None]]
    published: Mapping[str, frozenset[str | None]]
    path: str | None
    separator: str | None
    view: Callable[[], View]
    measure: Callable[[], Mapping[str, float]]
    parts: Parts | None = None
    census: Census | None = None
    people: Covered | None = None
    row_key: bytes | None = None
    slices: Any = None
    tuples: Tuples | None = None
    table: Any = None


@dataclass(eq=False)
class Later:
    """What becomes known of a release after it is made: its table, the audit of what was written, and the files."""

    table: Any = None
    audit: Audit | None = None
    written: Mapping[str, Any] | None = None


Frame = TypeVar("Frame", covariant=True)
Some = TypeVar("Some")
Files = str | Path | Sequence[str | Path]


class _Published:
    """The published table of a release, dealt out when it is first asked for; typed as what the release was made of."""

    @overload
    def __get__(self, release: None, owner: type) -> _Published: ...
    @overload
    def __get__(self, release: Release[Files], owner: type) -> Any: ...
    @overload
    def __get__(self, release: Release[Some], owner: type) -> Some: ...

    def __get__(self, release: Any, owner: type) -> Any:
        if release is None:
            return self
        placed, later = release._placement, release._later
        if later.table is None:
            later.table = placed.table if release._instead is None else release._instead
        if later.table is None and placed.tuples is not None:
            later.table = placed.tuples.frame()
        return later.table


@dataclass(frozen=True, eq=False, repr=False)
class Release(Generic[Frame]):
    """A release of a table, with its cost.

    policy       the request
    certificate  cost, lower bound, and the theorem behind each
    method       the method of the catalogue that gave the answer; attempts: every method that was tried
    seconds      the duration of each step
    table        the published table, the kind of frame that you passed (Polars for a path)
    audit        the published table, judged by code that shares nothing with the code that made it
    loss         every loss measure by its name; ``cost`` has the main ones
    """

    policy: Policy
    certificate: Certificate
    method: str
    attempts: tuple[Mapping[str, Any], ...]
    _facts: Facts
    _placement: Placement
    _instead: Any = None  # a table put in the place of the one that was placed
    seconds: dict[str, float] = field(default_factory=dict)
    _later: Later = field(default_factory=Later)

    def __getstate__(self) -> dict[str, Any]:
        """A relation of DuckDB goes by its rows, since no connection leaves its process."""
        placement = replace(self._placement, slices=None, tuples=None, table=None)
        held, later = (self._opened().stored(), self._as_placed), replace(self._later, table=None)
        return {**self.__dict__, "_placement": placement, "_instead": None, "_later": later, "stored": held}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        state = dict(state)
        stored, placed = state.pop("stored")
        table = stored.revive(stored.held) if isinstance(stored, Stored) else stored
        where = {"_placement": replace(state["_placement"], table=table)} if placed else {"_instead": table}
        self.__dict__.update({**state, **where})

    def __dir__(self) -> list[str]:
        return sorted(name for name in {*object.__dir__(self)} if not name.startswith("_") or name.startswith("__"))

    table = _Published()

    def with_table(self, table: Any) -> Release[Any]:
        """The same release with another table; ``check`` tests whether that table keeps the promise."""
        return replace(self, _instead=table, _later=Later(), seconds=dict(self.seconds))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._facts.rows

    @property
    def groups(self) -> int:
        """Number of groups of rows that are published alike."""
        return self._facts.groups

    @property
    def cost(self) -> Mapping[str, float]:
        """The main losses: "stars", "suppressed_tuples" and "ncp"."""
        return self._facts.cost

    @property
    def stars(self) -> Mapping[str, int]:
        """Per quasi-identifier, the number of starred cells."""
        return self._facts.stars

    @property
    def changed(self) -> Mapping[str, int]:
        """Per quasi-identifier, the number of cells published coarser than they were."""
        return self._facts.changed

    @property
    def before(self) -> Mapping[str, Any]:
        """Privacy of the table as it came."""
        return self._facts.before

    @property
    def carried(self) -> Unassigned:
        """The insensitive columns, and how many rows they single out."""
        return self._facts.carried

    @property
    def persons(self) -> Mapping[str, int]:
        """Per column that names persons, the fewest in a group."""
        return self._facts.persons

    @property
    def incomplete(self) -> Mapping[str, Any] | None:
        """Where missing="apart": how many rows lack a quasi-identifier, and their smallest group."""
        return self._facts.incomplete

    @property
    def filled(self) -> Mapping[str, int] | None:
        """Where missing="filled": the number of cells of each quasi-identifier that were filled."""
        return self._facts.filled

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the published table cannot tell."""
        return self._facts.notes

    @property
    def composition(self) -> tuple[Composition, ...]:
        """What this and the named earlier releases reveal together, for each sensitive column; private."""
        return self._facts.composition

    @property
    def _in_memory(self) -> bool:
        """Whether the rows are in this process, or dealt out in it."""
        dealt = self._instead is None and self._placement.table is None
        return dealt or self._opened().in_memory

    @property
    def _as_placed(self) -> bool:
        """Whether the table is the one that was placed, and not another put in its stead."""
        return self._instead is None

    def _opened(self) -> Table:
        from shoal.engines.open import open_table

        return open_table(self.table)

    @property
    def audit(self) -> Audit:
        """The published table judged by code that shares nothing with what made it."""
        if self._later.audit is None:
            self._later.audit = self._judged()
        return self._later.audit

    def _judged(self) -> Audit:
        from shoal.judge.tables.privacy import judge

        clock, policy = time.perf_counter(), self.policy
        names, few = [*policy.grouped, *policy.sensitive], self._placement.tuples if self._as_placed else None
        cells, counts = (self._opened() if few is None else few).counts(names)
        refuse_other(self._placement.expected.counts(text=() if few is None else names), (cells, counts))
        found = judge(cells, policy.grouped, policy.sensitive, policy.of_rows, counts=counts, trees=trees_of(policy))
        if self._facts.harbor is not None or policy.population is not None or policy.weighed:
            opened = self._opened()
            beside = [n for n in policy.weighed if n in opened.columns]
            found = self._outside()(opened.polars([*names, *beside]), found)
        self.seconds["verify"] = time.perf_counter() - clock
        return self._with_exposed(found)

    def _with_exposed(self, audit: Audit) -> Audit:
        facts = self._facts
        return replace(
            audit, checks=(*audit.checks, *facts.of_persons), exposed=dict(facts.exposed.columns),
            exposed_classes=facts.exposed.groups, notes=facts.notes,
        )  # fmt: skip

    @cached_property
    def loss(self) -> Mapping[str, float]:
        """Every loss measure by its name; computed when first asked for."""
        return {**self._placement.measure(), **self.cost}

    def _outside(self, blanks: Sequence[str] = (), sheet: bool = False) -> Callable[[pl.DataFrame, Audit], Audit]:
        """What adds to an audit what the population tells of the table as it is published, or as it was written."""
        read = reading_of(self.policy, self.policy.publish, self.policy.hierarchies, self.stars, blanks, sheet)

        def add(frame: pl.DataFrame, audit: Audit) -> Audit:
            wrong = None if self._facts.harbor is None else breach(frame, self._facts.harbor)
            if wrong is not None:
                raise VerificationError(f"{wrong}; nothing was published. This is a defect of shoal: please report it")
            found = outside(frame, self.policy, self._placement.census, read, self._placement.people)
            return audit if found is None else beside(audit, found, self.policy.privacy)

        return add

    def check(self) -> None:
        """Raise VerificationError unless the published table meets every requested model and matches the partition.

        Every tuple of published and sensitive values must occur in as many rows as the partition states.
        """
        self._accept(self.audit)

    def _accept(self, audit: Audit) -> None:
        if audit.rows != self.rows:
            raise VerificationError(f"the release has {audit.rows} rows, the table {self.rows}; nothing was published")
        limit = self.policy.max_average_risk
        if limit is not None and audit.classes > limit * audit.rows + 1e-9:
            raise VerificationError(
                f"the release has a mean risk of {audit.classes / audit.rows:.6g} where {limit} was asked; nothing was "
                "published. This is a defect of shoal: please report it"
            )
        most, allowed = told_at_most(audit), self.policy.minimality
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
        """Write the table by the file's ending, verified on the bytes written, with its certificate and its record.

        The certificate is as public as the release: it holds what the released file shows, and one rounded ratio.  The
        record holds what is known of the original; only its owner may read it, and no receiver needs it.

        path         CSV (also .gz), Parquet or Excel; of a DuckDB or Spark table also a folder, for parts with a
                     manifest that holds the hash of each; or the address of a server, postgresql://user@host/database
                     or mysql://..., without a password: PGPASSWORD, ~/.pgpass or a service has it, or MYSQL_PWD and
                     ~/.my.cnf; or delta:FOLDER or iceberg:CATALOG.NAMESPACE.TABLE, a new version of a table
        certificate  a JSON file; RELEASE.certificate.json when None, of a server TABLE.certificate.json in this folder
        table        of a server: the table it becomes, which holds what a CSV would, and gets its name once the
                     rows read back are judged; it takes the place of a release, never of another table
        sign         file of a private key, see ``shoal keygen``; its owner vouches for the whole certificate
        overwrite    False: refuse to replace files that exist
        parts        "parquet" or "csv": write a folder of such files; None: what the path's ending says, and where it
                     has none the kind of file that was read
        record       whether RELEASE.record.json is written too
        bound        "none": the certificate does not state the proved ratio; "ratio": it does; None: as the policy says
        progress     called with (what is being done, share done or None)

        All files appear under their names only after the judge has read the table back; raises VerificationError
        otherwise, and then what was there before is still there.  Returns the certificate's path.
        """
        from shoal.engines import lakes
        from shoal.engines.atomic import TABLE, Piece, check_outputs, check_place, publish_together
        from shoal.engines.source import is_server
        from shoal.engines.store import store
        from shoal.publishing import signing
        from shoal.publishing.tables.partwise import is_partwise, judge_written, write_lake, write_partwise

        if is_server(path):
            if table is None or parts is not None:
                raise PolicyError("a server of databases holds a table: say ⟨table=...⟩ and leave parts out")
            from shoal.publishing.tables.partwise import write_server

            papers = statement.Papers.of(self, Path(table), certificate, record, bound, sign)
            return write_server(self, str(path), table, papers, overwrite=overwrite, tell=progress)
        if table is not None:
            raise PolicyError("⟨table=...⟩ names a table of a server of databases; the path is of a file")
        if lakes.is_target(path):
            papers = statement.Papers.of(self, lakes.folder_of(path), certificate, record, bound, sign)
            return write_lake(self, str(path), papers, overwrite=overwrite, tell=progress)
        path = Path(path)
        if is_partwise(self, path, parts):
            papers = statement.Papers.of(self, path, certificate, record, bound, sign)
            return write_partwise(self, path, papers, overwrite=overwrite, parts=parts, tell=progress)
        check_place(path)
        papers = statement.Papers.of(self, path, certificate, record, bound, sign)
        closed = check_outputs([(path, TABLE), *papers.wanted()], [*self._read(), sign], overwrite=overwrite)
        if sign is not None:
            signing.private_key(sign)  # refused before any work
        clock = time.perf_counter()
        content, rows, shown, text = self._content(path)
        facts: dict[str, Any] = {}

        def fill(temporary: Path) -> None:
            nonlocal clock
            store(content, temporary, self._separator(path), rows)
            self.seconds["write"] = time.perf_counter() - clock
            clock = time.perf_counter()

        def judge_bytes(temporary: Path) -> None:
            with ThreadPoolExecutor(1) as second:  # the bytes are there, and hashing needs one core alone
                sealed = second.submit(hash_of, temporary)
                papers.seen(judge_written(self, temporary, self._separator(path), shown, text))
                facts["sha256"], facts["bytes"] = sealed.result(), temporary.stat().st_size
            self.seconds["verify"] = time.perf_counter() - clock

        publish_together([Piece(path, fill, judge_bytes), *papers.pieces(facts, shown)], closed=closed)
        self._later.written = papers.files(facts)
        return papers.certificate

    def _read(self) -> list[str | Path]:
        """Every file the release was made from."""
        parts = () if self._placement.parts is None else (source.path for source in self._placement.parts.sources)
        return [p for p in (self._placement.path, *parts, *self.policy.files) if p is not None]

    def _content(self, path: Path) -> tuple[pl.DataFrame, np.ndarray | None, dict[str, int], Collection[str]]:
        """The table as the file can hold it, the stars each quasi-identifier then shows, and what stands as text.

        Of a CSV it may be the different rows alone, and then which of them stands in every row; else None.
        """
        from shoal.engines.columns import starred_text
        from shoal.engines.store import kind_of, refuse_both, text_in_excel

        kind = kind_of(path)
        few = self._placement.tuples if kind == "csv" and self._as_placed else None
        if few is None:
            opened = self._opened()
            content = self._placement.expected.typed(opened.polars(opened.columns))
        else:
            content = self._placement.expected.typed(few.tuples)
        if kind != "parquet":
            refuse_both({**self._placement.own, **{c.name: c.texts() for c in self._placement.expected.sensitive}})
        if kind == "csv":
            rows, shown = starred_text(
                content, self.stars, self._placement.published, self.policy.star, self.policy.sensitive
            )
            return rows, None if few is None else few.rows, shown, content.columns
        if kind == "parquet":
            return content, None, dict(self.stars), ()
        bare = content.height and content.select(pl.all_horizontal(pl.all().is_null())).to_series().any()
        as_text = {c.name for c in content if text_in_excel(c)}
        hidden = {
            name: count
            for name, count in self.stars.items()
            if count and (bare or name in as_text or not content[name].count())
        }
        content, shown = starred_text(content, hidden, self._placement.published, self.policy.star)
        return content, None, dict(self.stars) | shown, as_text | set(hidden)

    def _separator(self, path: Path) -> str:
        """As in the table that came, if the new file is not of another kind."""
        from shoal.engines.store import usual_separator

        usual = usual_separator(path)
        return usual if usual != "," else self._placement.separator or usual

    @property
    def orders(self) -> dict[str, list[str]]:
        """Values of each sensitive column that has an order of its own, from lowest to highest."""
        return {
            c.name: [t for t in c.texts() if t is not None] for c in self._placement.expected.sensitive if c.ordered
        }

    @watched
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
        from shoal.engines.atomic import PAGE, check_outputs, internal_path, publish_page
        from shoal.report.page import page
        from shoal.report.parts import as_json

        if explored is not None and not internal:
            raise PolicyError(
                "what explore found is told of the original, so it stands in an internal report alone: say "
                "internal=True (--internal) too"
            )
        path = internal_path(Path(path)) if internal else Path(path)
        closed = check_outputs([(path, PAGE)], self._read(), overwrite=overwrite)
        figures = {**self.figures(), "internal": True} if internal else self.public_figures()
        figures |= statement.choices(explored, self.rows)
        figures["decision"] = {"recipient": recipient, "purpose": purpose, "decided_by": decided_by}
        publish_page(path, page(figures), as_json(figures), closed=closed | (SHARED if internal else 0))
        return path

    def figures(self) -> dict[str, Any]:
        """What an internal report says, as plain values: it tells figures of the original."""
        from shoal.publishing.tables.figures import figures

        return figures(self)

    def public_figures(self) -> dict[str, Any]:
        """What a public report says, as plain values: nothing that the released table does not show."""
        from shoal.publishing.tables.written import public_figures

        opened = self._opened()
        content, audit = statement.shown_now(self)
        file = self._later.written or {}
        file = {name: held for name, held in file.items() if name != "record"}
        return public_figures(opened.polars(opened.columns), content, audit, self.policy.privacy, file)

    @cached_property
    def decoded(self) -> Decoded:
        """What every cell stands for, from what is published alone."""
        return Decoded.of(self.table, self.policy, self.stars)

    def numeric(self, columns: Sequence[str] | None = None) -> Any:
        """Low, high and middle of every cell of the number and date columns; see ``Decoded.numeric``."""
        return self.decoded.numeric(columns)

    def members(self, column: str) -> list[Members]:
        """Per row, the values its cell may stand for; see ``Decoded.members``."""
        return self.decoded.members(column)

    def one_hot(self, columns: Sequence[str] | None = None) -> Any:
        """A fraction per known value, a row's fractions summing to 1 per column; see ``Decoded.one_hot``."""
        return self.decoded.one_hot(columns)

    def sample(self, seed: int | None = None) -> Any:
        """The table with one value drawn for every cell; see ``Decoded.sample``."""
        return self.decoded.sample(seed)

    def __repr__(self) -> str:
        return in_one_line(statement.summary(self))

    def __str__(self) -> str:
        return "\n".join(statement.summary(self))

    def _repr_html_(self) -> str:
        from shoal.model.cards import card

        return card("Release", statement.summary(self)[1:])

    def privacy(self) -> dict[str, Any]:
        """Level reached by each model asked for; several sensitive columns: the weakest."""
        return statement.privacy(self)

    def as_dict(self) -> dict[str, Any]:
        """The facts of ``--json``: plain values only."""
        return statement.facts(self)
