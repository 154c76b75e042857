"""A release as an intruder parses it: classes of rows, the values that each cell covers, and tables to link."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from shoal.engines.codes import as_text
from shoal.errors import InputError
from shoal.judge.file import set_bits
from shoal.model.foreign import STARS, Domain, Spread, domain_of, parsed, spread
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.histogram import Histogram, Partition
from shoal.model.members import from_to
from shoal.model.notation import RangeOf, SetOf
from shoal.model.recoding import Recoding

_BITS = 1 << 25  # pairs of a tuple and a coarse class in one batch
STEP = 256  # people linked in one batch
VALUES = 2_000  # most distinct sensitive values; rarer ones count as one value that is never guessed
_ENDS = re.compile(r"[\[\(]\s*(-?[\d.e+]+)\s*[,;]\s*(-?[\d.e+]+)\s*[\]\)\[]\Z|(-?[\d.]+) ?(?:-|\.\.) ?(-?[\d.]+)\Z")
_WIDE = 5_000  # whole numbers between the ends of ranges are added up to this many


@dataclass(frozen=True, eq=False)
class People:
    """A table of people, coded by the domains of a release.

    codes      int32[rows, quasi]: the index of every value in its column's domain, -1 if it isn't there
    sensitive  per sensitive column int32[rows]: the code of the value, -1 if the release lacks it
    """

    codes: np.ndarray
    sensitive: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """The number of people."""
        return len(self.codes)

    @cached_property
    def tuples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(int32[m, quasi] the distinct tuples, int64[m] people with each, int64[rows] the tuple of each person)."""
        number = numbered(self.codes)
        count = np.bincount(number)
        first = np.empty(len(count), np.int64)
        first[number[::-1]] = np.arange(len(number))[::-1]
        return self.codes[first], count, number


@dataclass(frozen=True, eq=False)
class Reading:
    """A parsed release.

    quasi, sensitive  its columns
    domains, spreads  per quasi-identifier its values, and the values that its cells cover
    group    int64[rows]: the equivalence class of every row
    classes  int64[classes, quasi]: the cell of every class per column; size: int64[classes] its rows
    values   per sensitive column its values; codes: int32[rows] likewise
    shares   per quasi-identifier float64[values]: the frequency of each value, in the register or else in the release
    k, l     the promises of the release, 1 if unknown; l is the largest of its columns
    promised  l of each sensitive column that has a promise of its own; {} if l is that of all
    """

    frame: pl.DataFrame
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    domains: list[Domain]
    spreads: list[Spread]
    group: np.ndarray
    classes: np.ndarray
    size: np.ndarray
    values: Mapping[str, tuple[str | None, ...]]
    codes: Mapping[str, np.ndarray]
    shares: list[np.ndarray]
    k: int = 1
    l: float = 1.0
    promised: Mapping[str, float] = field(default_factory=dict)

    def l_of(self, column: str | None) -> float:
        """The promised l of a sensitive column; 1 if none is promised, or if there is no column."""
        return self.promised.get(column or "", 1.0) if self.promised else self.l

    @property
    def rows(self) -> int:
        """The number of released rows."""
        return self.frame.height

    @cached_property
    def plain(self) -> np.ndarray:
        """bool[classes, quasi]: whether the cell covers only one value."""
        return np.column_stack(
            [(s.size == 1)[c] & ~s.wild[c] for s, c in zip(self.spreads, self.classes.T, strict=True)]
        )

    @cached_property
    def mass(self) -> list[np.ndarray]:
        """Per quasi-identifier float64[cells]: the share of people whose value the cell covers."""
        out = []
        for s, p in zip(self.spreads, self.shares, strict=True):
            upto = np.concatenate([[0.0], np.cumsum(p)])
            held = np.bincount(s.cell, weights=upto[s.stop] - upto[s.start], minlength=s.size.size)
            out.append(np.maximum(held, 1e-12))
        return out

    def counts(self, column: str) -> np.ndarray:
        """float32[classes, values]: rows of every class with each sensitive value."""
        many, held = len(self.values[column]), self.codes[column]
        flat = np.bincount(self.group[held >= 0] * many + held[held >= 0], minlength=len(self.size) * many)
        return flat.reshape(len(self.size), many).astype(np.float32)

    def held(self, column: int, wanted: np.ndarray) -> np.ndarray:
        """bool[cells, wanted]: whether each cell of a column covers each value.

        O(cells wanted) where each cell is one run of values; otherwise O(runs log wanted) and what is covered.
        """
        s = self.spreads[column]
        if len(s.cell) == s.size.size and (s.cell == np.arange(s.size.size)).all():
            return np.asarray((s.start[:, None] <= wanted[None]) & (wanted[None] < s.stop[:, None]))
        out = np.zeros((s.size.size, len(wanted)), bool)
        order = np.argsort(wanted, kind="stable")
        first, last = (np.searchsorted(wanted[order], ends) for ends in (s.start, s.stop))
        covered = last - first  # places in the order, one after the other
        place = np.arange(covered.sum()) + np.repeat(first - (np.cumsum(covered) - covered), covered)
        out[np.repeat(s.cell, covered), order[place]] = True
        return out

    def pairwise(self, column: int, cell: np.ndarray, value: np.ndarray) -> np.ndarray:
        """bool[n]: whether each cell of a column covers the value at the same index. O(n log runs)."""
        s = self.spreads[column]
        wide = len(self.domains[column].values) + 2
        order = np.argsort(s.cell * wide + s.start, kind="stable")
        run = order[np.searchsorted((s.cell * wide + s.start)[order], cell * wide + value, "right") - 1]
        return np.asarray((s.cell[run] == cell) & (value >= s.start[run]) & (value < s.stop[run]))

    @cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(int64[m] plain classes, int64[m, quasi] the tuple of each, int64[h] the other classes)."""
        whole = self.plain.all(axis=1)
        at, values = np.flatnonzero(whole), []
        for c, s in enumerate(self.spreads):
            first = np.zeros(s.size.size, np.int64)
            first[s.cell] = s.start
            values.append(first[self.classes[at, c]])
        return at, np.column_stack(values), np.flatnonzero(~whole)

    def _masks(self, column: int, coarse: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """uint8[wanted, coarse / 8]: as bits, whether the cell of each coarse class covers each wanted value, in order.

        Where a run of values begins or stops, the bit of its class changes. O(runs of the classes log wanted), and a
        pass over the bits.
        """
        s, cell = self.spreads[column], self.classes[coarse, column]
        runs = np.bincount(s.cell, minlength=s.size.size)
        many, order = runs[cell], np.argsort(s.cell, kind="stable")
        before = (np.cumsum(runs) - runs)[cell] - (np.cumsum(many) - many)
        run, class_ = order[np.arange(many.sum()) + np.repeat(before, many)], np.repeat(np.arange(len(cell)), many)
        masks = np.zeros((len(wanted) + 1, -(-len(cell) // 8)), np.uint8)
        for ends in (s.start[run], s.stop[run]):
            at = np.searchsorted(wanted, ends) * masks.shape[1] + class_ // 8
            np.bitwise_xor.at(masks.reshape(-1), at, (128 >> class_ % 8).astype(np.uint8))
        return np.asarray(np.bitwise_xor.accumulate(masks, axis=0, out=masks)[:-1])

    def holding(self, tuples: np.ndarray) -> Iterator[tuple[slice, csr_matrix]]:
        """(slice of the tuples, csr[slice, classes]): the classes that cover each distinct tuple.

        Plain classes are looked up, others are compared as bit sets: O(tuples coarse classes quasi / 8), for time and,
        of different values, for memory.
        """
        plain, values, coarse = self.points
        own = same(values, tuples)  # a plain tuple is one class
        bits = []
        for c in range(len(self.quasi)):
            wanted, where = np.unique(tuples[:, c], return_inverse=True)
            bits.append((self._masks(c, coarse, wanted), where.reshape(-1)))
        step = max(_BITS // max(coarse.size, 1), 1)
        for begin in range(0, len(tuples), step):
            part = slice(begin, min(begin + step, len(tuples)))
            whole = bits[0][0][bits[0][1][part]]
            for mask, where in bits[1:]:
                whole &= mask[where[part]]
            row, column = set_bits(whole)  # padding bits are never set, because packbits fills with zeros
            there = np.flatnonzero(own[part] >= 0)
            rows = np.concatenate([row, there])
            columns = np.concatenate([coarse[column], plain[own[part][there]]])
            shape = (part.stop - begin, len(self.size))
            yield part, csr_matrix((np.ones(rows.size, np.float32), (rows, columns)), shape=shape)

    def likelihoods(self, tuples: np.ndarray, error: float) -> Iterator[tuple[slice, np.ndarray]]:
        """(slice, float32[classes, slice]): log likelihood of each tuple for a row of each class.

        error  the share of register values that belong to someone else (Fellegi, Sunter 1969). For a value with share p
               of the people, the likelihood is (1 - error) p / P(cell) + error p if the cell covers it, otherwise error
               p; both are divided by p
        """
        for begin in range(0, len(tuples), STEP):
            part = slice(begin, min(begin + STEP, len(tuples)))
            found = np.zeros((len(self.classes), part.stop - begin), np.float32)
            for c in range(len(self.quasi)):
                good = np.log((1 - error) / self.mass[c] + error)[:, None]
                bad = np.log(error) if error else -np.inf
                found += np.where(self.held(c, tuples[part, c]), good, bad).astype(np.float32)[self.classes[:, c]]
            yield part, found

    def people(self, frame: pl.DataFrame) -> People:
        """A table of people, coded by the domains of the release; missing sensitive columns are left out."""
        codes = [coded(as_text(frame[n]), d.values) for n, d in zip(self.quasi, self.domains, strict=True)]
        own = {n: coded(as_text(frame[n]), self.values[n]) for n in self.sensitive if n in frame.columns}
        return People(np.column_stack(codes).astype(np.int32), own)


def read(
    frame: pl.DataFrame, quasi: Sequence[str], sensitive: Sequence[str], known: Sequence[pl.DataFrame] = (),
    hierarchies: Mapping[str, Any] | None = None, stars: Mapping[str, int] | None = None, k: int = 1,
    l: float | Mapping[str, float] = 1.0, notations: Mapping[str, str] | None = None,
) -> Reading:  # fmt: skip
    """Parse a release whose cells are text.

    known        tables with values that the cells may cover (the original, a register); the first gives the shares
    hierarchies  per column, to read labels that no notation explains
    stars        per column the number of starred cells, if known: a missing number may be a star
    k, l         the promises; l of all sensitive columns, or of each column that has one
    notations    per column the notation of its dates or numbers, if known

    Raises InputError for a missing column, or a release without rows. O(rows columns).
    """
    if not frame.height:
        raise InputError("the release has no rows; there is nothing to attack")
    trees = {n: h for n, h in (hierarchies or {}).items() if not (isinstance(h, str) and h in GENERATED)}
    domains, spreads, cells, shares = [], [], [], []
    for name in quasi:
        texts = as_text(frame[name])
        tables = [as_text(t[name]) for t in known]
        if (stars or {}).get(name) or (tables and not any(t.null_count() for t in tables)):
            texts = texts.fill_null("*")
        distinct = texts.unique(maintain_order=True).to_list()
        domain = _domain(distinct, tables, trees.get(name), (notations or {}).get(name))
        found = spread(distinct, domain, trees.get(name), name)
        where = coded(texts, distinct)
        domains.append(domain)
        spreads.append(found)
        cells.append(where)
        if tables:
            own = coded(tables[0], domain.values)
            held = np.bincount(own[own >= 0], minlength=len(domain.values)).astype(float)
        else:
            rows = np.bincount(where, weights=np.where(found.wild[where], 0, 1), minlength=found.size.size)
            held = found.marginal(rows, len(domain.values))
        shares.append((held + 1e-6) / (held + 1e-6).sum())
    group = numbered(np.column_stack(cells))
    size = np.bincount(group)
    classes = np.empty((len(size), len(quasi)), np.int64)
    classes[group] = np.column_stack(cells)
    values, codes = {}, {}
    for name in sensitive:
        texts = as_text(frame[name])
        ranked = texts.to_frame("x").group_by("x").len("n").sort(["n", "x"], descending=[True, False])["x"].to_list()
        values[name] = tuple(ranked[:VALUES])
        codes[name] = coded(texts, values[name])
    promised = dict(l) if isinstance(l, Mapping) else {}
    most = max(promised.values(), default=1.0) if isinstance(l, Mapping) else l
    return Reading(
        frame, tuple(quasi), tuple(sensitive), domains, spreads, group, classes, size, values, codes, shares, k, most,
        promised,
    )  # fmt: skip


def unwritten(histogram: Histogram, recoding: Recoding, partition: Partition, k: int, l: float) -> Reading:
    """A release before it is written, as a ``Reading``: values are codes, and cells cover what their groups publish.

    O(rows + groups columns + cells values), where cells are the distinct ones of a column.
    """
    published = recoding.publish(histogram, partition)
    domains, spreads, cells, shares = [], [], [], []
    for j, column in enumerate(recoding.columns):
        shown = recoding.shown(histogram, partition, published, j)
        _, representative, where = np.unique(column.numbers(shown), return_index=True, return_inverse=True)
        inside = np.pad(column.members(shown, representative).T.astype(np.int8), ((0, 0), (1, 1)))
        step = np.diff(inside, axis=1)
        cell, start = np.nonzero(step > 0)
        stop, size = np.nonzero(step < 0)[1], inside.sum(axis=1, dtype=np.int64)
        wild = column.starred(shown)[representative]
        spreads.append(Spread(cell, start, stop, np.maximum(size, 1), wild, 0, np.full(size.size, np.nan)))
        domains.append(Domain(tuple(map(str, range(column.size))), None, None, {}))
        cells.append(where.reshape(-1))
        held = np.bincount(histogram.quasi[:, j], weights=histogram.count, minlength=column.size)
        shares.append((held + 1e-6) / (held + 1e-6).sum())
    of_group = numbered(np.column_stack(cells))
    classes = np.empty((int(of_group.max()) + 1, len(cells)), np.int64)
    classes[of_group] = np.column_stack(cells)
    group = np.repeat(of_group[partition.group], partition.count)
    values, codes = {}, {}
    for j, name in enumerate(histogram.sensitive_names):
        own = np.repeat(histogram.sensitive[partition.cell, j], partition.count)
        ranked = np.argsort(-np.bincount(own, minlength=histogram.sensitive_sizes[j]), kind="stable")[:VALUES]
        place = np.full(histogram.sensitive_sizes[j], -1)
        place[ranked] = np.arange(ranked.size)
        values[name], codes[name] = tuple(map(str, ranked.tolist())), place[own]
    return Reading(
        pl.DataFrame(codes), histogram.quasi_names, histogram.sensitive_names, domains, spreads, group, classes,
        np.bincount(group), values, codes, shares, k, l,
    )  # fmt: skip


def coded(texts: pl.Series, values: Sequence[str | None]) -> np.ndarray:
    """int64[rows]: the index of every text among the values; -1 for others."""
    pool = pl.DataFrame({"x": pl.Series(list(values), dtype=pl.String), "i": np.arange(len(values))})
    joined = texts.alias("x").to_frame().join(pool, on="x", how="left", nulls_equal=True, maintain_order="left")
    return joined["i"].fill_null(-1).to_numpy().astype(np.int64)


def same(tuples: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """int64[asked]: the index of each among distinct tuples, -1 if absent."""
    both = numbered(np.concatenate([tuples.astype(np.int64), asked.astype(np.int64)]))
    place = np.full(int(both.max(initial=0)) + 1, -1)
    place[both[: len(tuples)]] = np.arange(len(tuples))
    return np.asarray(place[both[len(tuples) :]])


def numbered(codes: np.ndarray) -> np.ndarray:
    """int64[rows]: the index of every row's tuple among the distinct ones. codes: int[rows, columns]."""
    number = np.zeros(len(codes), np.int64)
    for column in codes.T:
        shifted = column.astype(np.int64) - int(column.min(initial=0))
        wide = int(shifted.max(initial=0)) + 1
        number = np.unique(number * wide + shifted, return_inverse=True)[1].reshape(-1)
    return number


def _domain(texts: Sequence[str | None], tables: Sequence[pl.Series], hierarchy: Any, notation: str | None) -> Domain:
    """The values that a column's cells can cover: those of the known tables, else those that occur in the release."""
    if tables:
        values = pl.concat([t.unique() for t in tables]).unique().to_list()
        leaves = _leaves(hierarchy)
        plain = {t for t in texts if t is not None and t not in STARS and not _coarse(t, notation)}
        held = _sorted({*values, *(t for t in plain if hierarchy is None or t in leaves)})
        return domain_of(held, notation=notation)
    named: set[str | None] = set()
    spans: list[tuple[str, str]] = []
    leaves = _leaves(hierarchy)
    for text in texts:
        if text is None:
            named.add(None)
        elif text in STARS or set(text) == {"*"} or (leaves and text not in leaves):
            continue
        elif from_to(text, notation or "moment"):
            named |= {*text.split(" .. ")}
        elif ends := _ENDS.match(text):
            spans.append((ends[1] or ends[3], ends[2] or ends[4]))
        else:
            found = parsed(text)
            if isinstance(found, SetOf):
                named |= set(found.values)
            elif isinstance(found, RangeOf):
                named |= {found.low, found.high}
            elif "*" not in text:
                named.add(text)
    named |= leaves
    for low, high in spans:
        named |= {low, high}
    whole = [v for v in named if v is not None and re.fullmatch(r"-?\d{1,9}", v)]
    if spans and len(whole) == len(named - {None}):
        at = [int(v) for v in whole]
        if max(at) - min(at) <= _WIDE and all(str(n) == v for n, v in zip(at, whole, strict=True)):
            named |= {str(v) for v in range(min(at), max(at) + 1)}
    return domain_of(_sorted(named), notation=notation)


def _sorted(values: set[str | None]) -> list[str | None]:
    """Values in text order, a missing one last, so that every run has the same order."""
    return sorted(values, key=lambda v: (v is None, v or ""))


def _coarse(text: str, notation: str | None) -> bool:
    if _ENDS.match(text) or "*" in text or from_to(text, notation or "moment"):
        return True
    return not isinstance(parsed(text), (str, type(None)))


def _leaves(hierarchy: Any) -> set[str | None]:
    if hierarchy is None:
        return set()
    rule = Hierarchy.of(hierarchy)
    return {row[0] for row in rule.rows} if rule.kind == "rows" else set()


@dataclass(frozen=True)
class Figure:
    """One figure of one attack.

    attack      "linkage", "inference", "minimality", "downcoding", "composition", or "files"
    name        the variant, unique within an attack
    paper       the source of the attack
    assumes     what the intruder knows
    measures    what the figure measures
    figure      a share from 0 to 1 (of right guesses, of people), None if unknown
    low, high   its 95 % interval: Wilson's for shares, normal for means
    baselines   the same figure without the release, by name
    promise     what the privacy model of the release allows, None if the model doesn't constrain the figure
    people      how many people or guesses the figure counts
    risk        what a threshold is compared with, None if the finding is about no person; see ``Attack.passes``
    worst       (group of people, its figure), None if there is none
    lowers      what would lower it
    details     further figures by name
    """

    attack: str
    name: str
    paper: str
    assumes: str
    measures: str
    figure: float | None
    low: float | None = None
    high: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    promise: float | None = None
    people: int = 0
    risk: float | None = None
    worst: tuple[str, float] | None = None
    lowers: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gain(self) -> bool:
        """Whether the whole interval lies above every baseline and above the promise."""
        if self.figure is None or self.low is None:
            return False
        return self.low > max([*self.baselines.values(), self.promise or 0.0]) + 1e-9

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **{
                n: getattr(self, n) for n in ("attack", "name", "paper", "assumes", "measures", "figure", "low", "high")
            },
            "baselines": dict(self.baselines),
            **{n: getattr(self, n) for n in ("promise", "people", "risk", "gain")},
            "worst": None if self.worst is None else {"group": self.worst[0], "figure": self.worst[1]},
            "lowers": self.lowers,
            "details": dict(self.details),
        }


def wilson(right: float, tried: float) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927); (0, 1) if nothing was tried."""
    if tried <= 0:
        return 0.0, 1.0
    z, share = 1.959964, min(max(right / tried, 0.0), 1.0)
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried)) / (1 + z * z / tried)
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    return float(low) if right > 0 else 0.0, float(high) if right < tried else 1.0


def mean_interval(values: Any) -> tuple[float, float, float]:
    """(mean, low, high): the mean of shares with its normal 95 % interval. values: float64[n], n at least 1."""
    mean = float(values.mean())
    half = 1.959964 * float(values.std()) / math.sqrt(len(values))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)
