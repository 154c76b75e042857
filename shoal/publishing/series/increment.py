"""Mode "increment": every person appears once, and each part contains only new people.

Each part alone meets the models. A class of all parts together is a union of classes with the same published tuple. So
all parts together meet monotone models too. If an intruder knows in which part a person appeared, the person's class
in that part still meets the models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.store import sliced
from shoal.errors import InfeasibleError, InputError
from shoal.model.cards import several
from shoal.model.hierarchy import Hierarchy
from shoal.model.members import Members, of_ranges, place, ruler_of
from shoal.model.notation import RangeOf, SetOf, in_order, of_limits, parse, range_text, reader_of, set_text, single
from shoal.model.policy import Policy
from shoal.publishing.recodings import grid
from shoal.publishing.series_folder import SCHEMA, Keyed, Ledger

__all__ = ["ReleasedColumn", "Text", "Widening", "columns_of", "losses_of", "tuple_loss", "widened"]


Text = str | None


class ReleasedColumn:
    """The published form of one quasi-identifier.

    star    text of a suppressed value
    values  the values of the current table, which define the span of ranges
    """

    def __init__(self, name: str, policy: Policy, values: Sequence[Text]) -> None:
        self.name, self.star, self.publish = name, policy.star, policy.publish
        self.notation = policy.notations.get(name)
        self.values = sorted({v for v in values if v is not None})
        self.step = policy.range_step.get(name)
        tree = policy.hierarchies.get(name) if policy.publish == "hierarchy" else None
        self.tree = None if tree is None else Hierarchy.of(tree)
        self._loss: dict[Text, float] = {}
        self._fit: dict[tuple[Text, Text], bool] = {}

    @cached_property
    def paths(self) -> Mapping[Text, tuple[str, ...]]:
        """Value -> its labels, from itself to below the root."""
        return self._resolved([*self.values])

    def _resolved(self, values: list[str]) -> dict[Text, tuple[str, ...]]:
        if self.tree is None or not values:
            return {}
        found = self.tree.resolve(values, self.name, reader_of(self.notation), self.notation)
        return {v: found.path(i) for i, v in enumerate(values)}

    @cached_property
    def _leaves(self) -> Mapping[str, float]:
        """Label -> loss: (values of the table below it - 1) / (all values - 1)."""
        counts: dict[str, int] = {}
        for path in self.paths.values():
            for label in set(path):
                counts[label] = counts.get(label, 0) + 1
        most = max(len(self.values) - 1, 1)
        return {label: (n - 1) / most for label, n in counts.items()}

    def fits(self, text: Text, value: Text) -> bool:
        """Whether a published text covers a value."""
        key = (text, value)
        if key not in self._fit:
            self._fit[key] = self._fits(text, value)
        return self._fit[key]

    def _fits(self, text: Text, value: Text) -> bool:
        if text == self.star:
            return True
        if text is None or value is None:
            return text == value
        if self.tree is not None:
            return text in self.paths.get(value, (value,))
        if self.publish == "ranges":
            return value in self._members(text)
        return text == value

    def loss(self, text: Text) -> float:
        """The loss of a text, from 0 (a value) to 1 (a star)."""
        if text not in self._loss:
            self._loss[text] = self._lost(text)
        return self._loss[text]

    def _lost(self, text: Text) -> float:
        if text == self.star:
            return 1.0
        if text is None:
            return 0.0
        if self.tree is not None:
            return self._leaves.get(text, 0.0 if text in self.values else 1.0)
        if self.publish != "ranges":
            return 0.0
        ends = None if self._ruler == "band" else self._ends(text)  # of bands the release counts those in between
        if ends is not None:
            low, high = self._span
            return min((ends[1] - ends[0]) / (high - low), 1.0) if high > low else 0.0
        return (len(self._members(text).named) - 1) / max(len(self.values) - 1, 1)

    @cached_property
    def _ruler(self) -> str | None:
        """The ruler that orders the column's values; None if they have no order and are published as sets."""
        found = self.notation or ruler_of(self.values)
        return "band" if found is None and in_order(self.values) is not None else found

    @cached_property
    def _rounded(self) -> Mapping[Text, tuple[str, str]]:
        """Value -> the ends of the grid around it, if ranges end on a grid."""
        if self.step is None or not self.values:
            return {}
        column = encode(pl.Series(self.name, self.values, dtype=pl.String), self.notation)
        ends, names = grid(column, column.positions(), self.step)
        lows, highs = ([str(names[end]) for end in side.tolist()] for side in (ends.low, ends.high))
        return dict(zip(column.texts(), zip(lows, highs, strict=True), strict=True))

    @cached_property
    def _span(self) -> tuple[float, float]:
        """Lowest and highest value."""
        at = [p for p in (place(v, self._ruler) for v in self.values) if p is not None]
        return min(at, default=0.0), max(at, default=0.0)

    def _members(self, text: str) -> Members:
        """The members of a text of ranges or sets. The order of bands follows only from all of them."""
        beside = map(single, self.values) if self._ruler == "band" else ()
        return of_ranges([text, *beside], self.notation)[text]

    def _ends(self, text: str) -> tuple[float, float] | None:
        """The positions of the ends of a published value or range; None for a set, and if there are none."""
        held = parse(text)
        if isinstance(held, str):
            at = place(held, self._ruler)
            return None if at is None else (at, at)
        found = self._members(text)
        half = found.open and not of_limits(found.ruler)
        if found.low is None or found.high is None or half or found.ruler != self._ruler:
            return None
        return found.low, found.high

    def widened(self, text: Text, value: Text) -> Text:
        """The finest text that covers a text and one further value."""
        if self.fits(text, value):
            return text
        if text is None or value is None:
            return self.star
        if self.tree is not None:
            return self._common(text, value)
        if self.publish == "ranges":
            return self._hull(text, value)
        return self.star

    def _common(self, text: str, value: str) -> str:
        own = self.paths.get(value, (value,))
        above = next((p[p.index(text) :] for p in self.paths.values() if text in p), ())
        return next((label for label in above if label in own), self.star)

    def _hull(self, text: str, value: str) -> str:
        held, ends, more = parse(text), self._ends(text), place(value, self._ruler)
        if ends is not None and more is not None:
            low, high = (held.low, held.high) if isinstance(held, RangeOf) else (held, held)
            if not isinstance(low, str) or not isinstance(high, str):
                return self.star
            below, above = self._rounded.get(value, (value, value))
            # at an end itself lies what stands for all values beyond a limit, or the value would fit
            return range_text(below if more <= ends[0] else low, above if more >= ends[1] else high)
        if ends is None and more is None and not isinstance(held, RangeOf):
            old = set(held.values) if isinstance(held, SetOf) else {held if isinstance(held, str) else None}
            every = sorted({*old, value}, key=lambda v: (v is None, v))
            return self.star if len(every) >= len(self.values) else set_text(every)
        return self.star

    def own(self, value: Text) -> Text:
        """A single value as published; rounded if ranges end on a grid."""
        below, above = self._rounded.get(value, (value, value))
        if self.publish == "ranges" and below != above:
            return range_text(below, above)
        return single(value) if self.publish == "ranges" else value


class Widening:
    """Texts and values of a column by number, with a cache of the text that results from adding a value.

    texts, loss  of every text by its number
    star         the number of a star
    values       of the current table
    """

    def __init__(self, column: ReleasedColumn, values: Sequence[Text]) -> None:
        self.column = column
        self.values = list(dict.fromkeys(values))
        self._value = {v: i for i, v in enumerate(self.values)}
        self.texts: list[Text] = []
        self._text: dict[Text, int] = {}
        self.loss = np.zeros(16)
        self._wide = np.full((16, max(len(self.values), 1)), -1, np.int64)
        self._own: dict[int, int] = {}
        self.star = self.number(column.star)

    def numbers(self, values: Sequence[Text]) -> np.ndarray:
        """int64: the numbers of values of the table."""
        return np.array([self._value[v] for v in values], np.int64)

    def number(self, text: Text) -> int:
        """The number of a text."""
        if text not in self._text:
            self._text[text] = at = len(self.texts)
            self.texts.append(text)
            if at == self.loss.size:
                self.loss = np.concatenate([self.loss, np.zeros(at)])
                self._wide = np.concatenate([self._wide, np.full_like(self._wide, -1)])
            self.loss[at] = self.column.loss(text)
        return self._text[text]

    def own(self, value: int) -> int:
        """The text of a single value as published."""
        if value not in self._own:
            self._own[value] = self.number(self.column.own(self.values[value]))
        return self._own[value]

    def joined_one(self, text: int, value: int) -> int:
        """The text after one value is added."""
        at = int(self._wide[text, value])
        if at < 0:
            at = self.number(self.column.widened(self.texts[text], self.values[value]))
            self._wide[text, value] = at
        return at

    def joined(self, texts: np.ndarray, value: int) -> np.ndarray:
        """``joined_one`` for many texts."""
        out: np.ndarray = self._wide[texts, value]
        if out.size and out.min() < 0:
            for text in np.unique(texts[out < 0]).tolist():
                self.joined_one(text, value)
            out = self._wide[texts, value]
        return out

    def lost(self, texts: np.ndarray, value: int) -> np.ndarray:
        """float64: the loss of the texts after one value is added."""
        at = self.joined(texts, value)  # call this first, because it may extend the arrays for new texts
        found: np.ndarray = self.loss[at]
        return found


def columns_of(policy: Policy, values: Mapping[str, Sequence[Text]]) -> tuple[ReleasedColumn, ...]:
    """A ``ReleasedColumn`` for each quasi-identifier. values: of the current table, by column."""
    return tuple(ReleasedColumn(name, policy, values[name]) for name in policy.grouped)


def tuple_loss(columns: Sequence[ReleasedColumn], texts: Sequence[Text]) -> float:
    """The loss of a published row: the mean over the columns, from 0 to 1."""
    return sum(c.loss(t) for c, t in zip(columns, texts, strict=True)) / max(len(columns), 1)


def widened(columns: Sequence[ReleasedColumn], texts: Sequence[Text], values: Sequence[Text]) -> tuple[Text, ...]:
    """A published tuple after one row is added."""
    return tuple(c.widened(t, v) for c, t, v in zip(columns, texts, values, strict=True))


def losses_of(columns: Sequence[ReleasedColumn], rows: Sequence[tuple[Text, ...]]) -> np.ndarray:
    """float64[rows]: ``tuple_loss`` of every published row; equal rows are computed once."""
    known: dict[tuple[Text, ...], float] = {}
    return np.array([known[r] if r in known else known.setdefault(r, tuple_loss(columns, r)) for r in rows], float)


Search = Callable[[pl.DataFrame], pl.DataFrame]
_STAYS, _CELL = "shoal stays", "shoal cell"


class Added(NamedTuple):
    """The published rows of a part, in a secret order, with the ledger.

    frame     the published rows as text
    ledger    after this part
    waiting   rows that wait for the next part
    made_up   rows without a person
    held      rows of groups that are held back
    """

    frame: pl.LazyFrame
    ledger: Ledger
    waiting: int = 0
    made_up: int = 0
    held: int = 0


class NewPeople(NamedTuple):
    """The table of a part, in memory or in an engine.

    persons  keyed hash of every person, by number, sorted
    number   the column of numbers in the result of ``publish``
    values   gives the distinct values of a quasi-identifier
    publish  publishes a table that meets the models, as columns of text, with rows in a secret order
    """

    persons: pl.Series | None
    number: str
    values: Callable[[str], list[Text]]
    publish: Callable[[], pl.LazyFrame]


def numbered(hashed: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Keyed hashes of persons, sorted by their first 60 bits, and the position of each, which is the person's number.

    To someone without the key, the numbers are random.
    """
    order = np.argsort(hashed.str.head(15).str.to_integer(base=16).to_numpy())  # sorting texts takes ten times as long
    number = np.empty(order.size, np.uint32)
    number[order] = np.arange(order.size, dtype=np.uint32)
    return hashed.gather(order), pl.Series(number)


def add(
    new: NewPeople,
    ledger: Ledger,
    keyed: Keyed,
    policy: Policy,
    *,
    wait: int,
    wait_above: float,
    without_waiting: bool,
    scratch: Path,
) -> Added:
    """The next part of new people.

    wait, wait_above  a row whose loss exceeds this share waits, for at most this many parts
    without_waiting   whether people who wait may be absent; they are then never published
    scratch           a private folder for temporary files

    Raises InputError for a person who was published before, or who waits and is absent; InfeasibleError if the new
    people alone can't meet the models. The search, and O(n log n) in addition.
    """
    persons = new.persons
    if persons is not None:
        _refuse(persons, ledger, without_waiting)
    published = new.publish()
    if persons is None:
        many = int(published.select(pl.len()).collect().item())
        persons, number = numbered(keyed.column("row", unnamed(ledger.number + 1, many)))
        published = pl.concat([published, number.alias(new.number).to_frame().lazy()], how="horizontal")
    names, waiting = list(policy.grouped), dict[str, int]()
    if wait and new.persons is not None:
        waited = ledger.waiting
        here = persons.is_in(pl.Series([*waited], dtype=pl.String).implode()).arg_true()
        blocked = [n for n, p in zip(here, persons.gather(here), strict=True) if waited[p] >= wait]
        columns = columns_of(policy, {n: new.values(n) for n in names})
        waits = _waiting(published, names, new.number, blocked, columns, wait_above)
        stay = _of(published.select(new.number, *names), waits, "semi").select(new.number).collect()[new.number]
        if stay.len() == persons.len():
            raise InfeasibleError(
                f"all {stay.len():,} rows would lose more than {wait_above:g} and may still wait, so this part would "
                "be empty; add more people, or start the series with a larger ⟨wait_above=⟩"
            )
        waiting = {p: waited.get(p, 0) + 1 for p in persons.gather(stay)}
        published = _others(published, waits, scratch) if waiting else published
    lines = _entered(published, persons, new.number, ledger, keyed, names, list(policy.sensitive))
    return Added(published.drop(new.number), ledger.after(lines, waiting=waiting), waiting=len(waiting))


def unnamed(part: int, rows: int) -> pl.Series:
    """The names of the people of a part without a column of persons: the numbers of their rows."""
    return pl.Series([f"{part} {i}" for i in range(rows)], dtype=pl.String)


def _refuse(persons: pl.Series, ledger: Ledger, without_waiting: bool) -> None:
    refuse_twice(persons)
    before = ledger.known(persons).len()
    if before:
        who = f"{before:,} people of this table are" if before > 1 else "1 person of this table is"
        raise InputError(
            f"{who} in an earlier part, and mode 'increment' publishes everybody once; "
            "pass new people alone, or start a series of mode 'again'"
        )
    if not ledger.waiting or without_waiting:
        return
    waiting = pl.Series(list(ledger.waiting), dtype=pl.String)
    absent = int((~waiting.is_in(persons.implode())).sum())
    if absent:
        raise InputError(
            f"{several(absent, 'row')} of an earlier table {'waits' if absent == 1 else 'wait'} for this part and "
            f"{'is' if absent == 1 else 'are'} not in this table; add them to it "
            "(shoal series waiting finds them), or say ⟨without_waiting=True⟩, and they are never published"
        )


def refuse_twice(persons: pl.Series) -> None:
    """InputError for a table with two rows of a person."""
    twice = persons.len() - persons.n_unique()
    if twice:
        raise InputError(
            f"{several(twice, 'further row')} of the same people; a series takes one row a person, so put the rows of "
            "a person together first"
        )


_SPELLED = 20_000  # new people whose other spellings are looked up
_WIDEST = 20  # digits of the longest spelling with leading zeros


def refuse_respelled(persons: pl.Series, hashed: pl.Series, ledger: Ledger, keyed: Keyed) -> None:
    """InputError if people who seem new were published under another spelling: "00123" is "123" or "123.0" after a
    spreadsheet.

    persons  the texts of the people of a table
    hashed   their keyed hashes

    A ledger has hashes alone, so all spellings of a sample of the new people are looked up, except those that someone
    else has in this table. O(n) for n people, and about 20 hashes for each person of the sample.
    """
    if not ledger.lines:
        return
    new = persons.filter(~hashed.is_in(ledger.known(hashed).implode())).unique(maintain_order=True)
    new = new.gather_every(max(1, -(-new.len() // _SPELLED)))
    pairs = [(person, other) for person in new for other in spellings(person)]
    others = pl.DataFrame(pairs, schema={"person": pl.String, "other": pl.String}, orient="row")
    others = others.filter(~pl.col("other").is_in(persons.implode()))
    others = others.with_columns(keyed.column("person", others["other"]).alias("hash"))
    found = others.filter(pl.col("hash").is_in(ledger.known(others["hash"]).implode()))["person"].n_unique()
    if found:
        who = f"{found:,} people who seem" if found > 1 else "1 person who seems"
        raise InputError(
            f"column {persons.name!r} has {who} new, and whom an earlier part has under another "
            "spelling, such as one with leading zeros; write the people as in the earlier tables, or if they are "
            "other people, say ⟨other_people=True⟩"
        )


def spellings(text: str) -> list[str]:
    """Other spellings that a program may give the text: without blanks, and for a whole number, with other leading
    zeros and decimals."""
    bare = text.strip()
    found = {bare}
    if (number := re.fullmatch(r"0*([0-9]+?)(\.0+)?", bare)) is not None:
        found |= {number[1], f"{number[1]}.0", *(number[1].zfill(width) for width in range(1, _WIDEST + 1))}
    return sorted(found - {text})


def _waiting(
    published: pl.LazyFrame,
    names: list[str],
    number: str,
    blocked: Sequence[int],
    columns: Sequence[ReleasedColumn],
    wait_above: float,
) -> pl.LazyFrame:
    """The published tuples whose rows wait.

    Only complete classes wait, if their loss is too large and all their rows may still wait. So the others still meet
    the models.
    """
    barred = published.select(pl.col(number).is_in(pl.Series(blocked, dtype=pl.UInt32).implode()).alias(_STAYS), *names)
    classes = barred.group_by(names).agg(pl.col(_STAYS).any()).collect()
    loses = pl.Series(losses_of(columns, classes.select(names).rows()) > wait_above + 1e-12, dtype=pl.Boolean)
    return classes.filter(~pl.col(_STAYS) & loses).select(names).lazy()


def _of(rows: pl.LazyFrame, tuples: pl.LazyFrame, how: Literal["semi", "anti"]) -> pl.LazyFrame:
    """The rows with some published tuples, or all others, in their order."""
    names = tuples.collect_schema().names()
    return rows.join(tuples, on=names, how=how, nulls_equal=True, maintain_order="left")


def _others(published: pl.LazyFrame, waits: pl.LazyFrame, scratch: Path) -> pl.LazyFrame:
    """The rows that don't wait, written to files, as a frame that can be read in slices."""
    paths = list[Path]()
    for rows in sliced(published):
        paths.append(scratch / f"kept-{len(paths)}.parquet")
        _of(rows.lazy(), waits, "anti").collect().write_parquet(paths[-1], compression="zstd", compression_level=1)
    return pl.scan_parquet(paths, glob=False)


def _entered(
    out: pl.LazyFrame,
    persons: pl.Series,
    number: str,
    ledger: Ledger,
    keyed: Keyed,
    quasi: list[str],
    sensitive: list[str],
) -> pl.LazyFrame:
    """The ledger's lines for the people of a part, in the order of their hashes.

    Values that people share are computed once for each distinct published row, and joined when the lines are written.
    As texts, they would take several times the memory of the hashes.
    """
    names = [*quasi, *sensitive]
    cells = out.select(names).unique().collect(engine="streaming").with_row_index(_CELL)
    line = cells.select(
        _CELL,
        pl.lit(ledger.number + 1, pl.Int64).alias("part"),
        _hashed(cells, quasi, "tuple", keyed).alias("tuple"),
        _hashed(cells, sensitive, "value", keyed).alias("value"),
    ).with_columns(pl.col("value").unique().sort().str.join(" ").over("tuple").alias("possible"))
    where = np.full(persons.len(), line.height, np.uint32)  # no cell for a person who waits
    for rows in sliced(out.select(number, *names)):
        held = rows.join(cells, on=names, how="left", nulls_equal=True)
        where[held[number].to_numpy()] = held[_CELL].to_numpy()
    every = pl.LazyFrame([persons.alias("person"), pl.Series(_CELL, where)])
    return every.join(line.lazy(), on=_CELL, how="inner", maintain_order="left").select(*SCHEMA)


def _hashed(cells: pl.DataFrame, names: list[str], what: str, keyed: Keyed) -> pl.Series:
    """The keyed hash of each row's values in some columns."""
    rows = cells.select(names).rows() if names else [()] * cells.height
    known = {row: keyed.one(what, row) for row in dict.fromkeys(rows)}
    return pl.Series([known[row] for row in rows], dtype=pl.String)
