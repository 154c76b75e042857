"""Hierarchies: the classes of a value from the value itself to the root, read from files or built.

A ``Hierarchy`` doesn't depend on the data; ``resolve`` applies it to the distinct values of a column. A file has rows
value;class;...;*, or Amnesia's text form. Numbers and dates in built hierarchies are read exactly, and their classes
are written as they are published.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError, UncoveredError, within
from shoal.model.notation import of_limits

STAR = "*"
PERIODS: dict[str, Callable[[int, int, int], str]] = {
    "day": lambda y, m, d: f"{y:04d}-{m:02d}-{d:02d}",
    "month": lambda y, m, d: f"{y:04d}-{m:02d}",
    "quarter": lambda y, m, d: f"{y:04d}-Q{(m + 2) // 3}",
    "year": lambda y, m, d: f"{y:04d}",
    "decade": lambda y, m, d: f"{y - y % 10:04d}s",
    "century": lambda y, m, d: f"{y - y % 100:04d}-{y - y % 100 + 99:04d}",
}


_FURTHEST = 10**150  # ``shoal.model.arguments.FAR``


def exact(value: Any) -> Fraction:
    """The exact value of a number, without rounding."""
    try:
        return Fraction(value.strip() if isinstance(value, str) else str(value))
    except (ValueError, ZeroDivisionError):
        raise PolicyError(f"{value!r} is not a number") from None


def written(x: Fraction) -> str:
    """A number as text with at most twelve digits."""
    return str(x.numerator) if x.denominator == 1 else format(float(x), ".12g")


def span(low: Fraction, high: Fraction, whole: bool) -> str:
    """The text of an interval: ``[low, high)``; for whole numbers ``low-last``, or the number itself."""
    if whole and low.denominator == high.denominator == 1 and low >= 0:
        return written(low) if high - low == 1 else f"{written(low)}-{written(high - 1)}"
    return f"[{written(low)}, {written(high)})"


def date_of(value: str, column: str) -> tuple[int, ...]:
    """(year,), (year, month), or (year, month, day) of an ISO date; a time of day is ignored."""
    found = re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ].*)?)?)?", value.strip())
    try:
        if found:
            parts = tuple(int(x) for x in found.groups() if x)
            date(*(*parts, 1, 1)[:3])
            return parts
    except ValueError:
        pass
    raise PolicyError(
        f"column {column!r} has a value that is not a date; write dates as 2024-03-05, name their notation "
        f"(⟨dates[{column!r}] = '%d.%m.%Y'⟩), or leave it empty"
    )


def period(value: str, parts: tuple[int, ...], name: str) -> str:
    """The period of a date. If the date is less exact than the period, the date itself."""
    needed = {"day": 3, "month": 2, "quarter": 2}.get(name, 1)
    if len(parts) < needed:
        return value.strip()
    year, month, day = (*parts, 1, 1)[:3]
    return PERIODS[name](year, month, day)


def fields(text: str, name: str) -> list[list[str]]:
    """Rows of a hierarchy file, split by the separator that gives all rows the same number of fields."""
    found: list[list[list[str]]] = []
    for mark in (";", "\t", ","):
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        try:
            rows = [[row[0], *(x.strip() for x in row[1:])] for row in lines if any(x.strip() for x in row)]
        except csv.Error:
            continue
        if any("\n" in x or "\r" in x for row in rows for x in row):  # an unclosed quote joins lines with values
            continue
        if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            heading = {row[-1] for row in rows[1:]} == {STAR} and rows[0][-1] != STAR
            return rows[heading:]
        if max(map(len, rows), default=0) > 1:
            found.append(rows)
    if not found:
        raise PolicyError(
            f"the hierarchy file {name!r} has no classes next to its values, or a quote in it is left open; "
            "write value;class;*"
        )
    return found[0]  # rows of different lengths: refused later with the row's number


def decoded(raw: bytes, name: str) -> str:
    """The text of a hierarchy file in UTF-8 or Windows-1252, which includes all letters of Latin-1.

    Raises PolicyError for bytes that are no text in either encoding.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start
    try:
        if b"\0" not in raw:
            return raw.decode("cp1252")
    except UnicodeDecodeError as error:
        start = error.start
    line = raw.count(b"\n", 0, start) + 1
    raise PolicyError(
        f"the hierarchy file {name!r} has a byte in line {line:,} that is no text in UTF-8 or Windows-1252; save it as "
        "UTF-8"
    )


def amnesia(text: str, name: str) -> dict[str, Any]:
    """Amnesia's text form: a heading, then lines "parent has child child ..." from the lowest parents up to the
    root."""
    lines = text.strip().split("\n")
    if lines[0].strip() == "range":
        raise PolicyError(
            f"{name!r} is a range hierarchy of Amnesia; write its levels with Hierarchy.intervals instead"
        )
    children: dict[str, list[str]] = {}
    for line in lines[1:]:
        parts = line.split()
        if len(parts) > 2 and parts[1] == "has":
            children.setdefault(parts[0], []).extend(parts[2:])
    below = {c for kids in children.values() for c in kids}

    def grow(node: str, above: tuple[str, ...]) -> Any:
        if node in above:
            raise PolicyError(f"the hierarchy file {name!r} has {node!r} above itself")
        return {c: grow(c, (*above, node)) for c in children[node]} if node in children else None

    roots = [node for node in children if node not in below]
    if not roots:
        raise PolicyError(f"the hierarchy file {name!r} has no root; its last line should be: Any has ...")
    return {root: grow(root, ()) for root in roots}


BUILDERS = ("intervals", "prefixes", "dates", "stars")
_PLAIN = re.compile(r'[^\x00-\x1f\x7f,{}\[\]"\\*]+\Z')
REGIONS = "regions"  # the name in a policy for connected regions of its graph of areas
GENERATED = ("labels", "intervals", "tiles")  # names of hierarchies that are built from a table's counts


def is_built(source: Any) -> bool:
    """Whether the source is a builder with its levels, such as "intervals:5,10", and not the path of a file."""
    return isinstance(source, str) and source.partition(":")[0] in BUILDERS and not Path(source).exists()


class Area(NamedTuple):
    """A region: its text, and its number of leaves, which is the weight of its areas. A single area is one leaf."""

    text: str
    leaves: int


def nested_regions(
    names: Sequence[str], weights: Sequence[int], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Area]]:
    """The region of every area at each level: connected, and a union of regions of the level below.

    At every level, the regions are paired in rising order of weight: each region that has no partner yet joins its
    lightest neighbor without one. A region without such a neighbor stays unchanged. If there are fewer pairs than a
    fifth of the regions, the remaining regions join neighboring pairs, so there are O(log n) levels. A last level of
    one region is omitted, because it is the root. O((n + pairs) log n).
    """
    place = {name: i for i, name in enumerate(names)}
    ends = [(place[a], place[b]) for a, b in pairs]
    region = list(range(len(names)))
    out: list[dict[str, Area]] = []
    while True:
        merged = _merged(region, weights, ends)
        if merged is None:
            break
        region = merged
        inside: dict[int, list[int]] = {}
        for i, r in enumerate(region):
            inside.setdefault(r, []).append(i)
        if len(inside) == 1:
            break
        shown = {r: _area([names[i] for i in own], sum(weights[i] for i in own)) for r, own in inside.items()}
        out.append({name: shown[r] for name, r in zip(names, region, strict=True)})
    return out


def _area(members: Sequence[str], weight: int) -> Area:
    if len(members) == 1:
        return Area(members[0], 1)
    return Area("{" + ", ".join(sorted(members)) + "}", weight)


def _merged(region: Sequence[int], weights: Sequence[float], ends: Sequence[tuple[int, int]]) -> list[int] | None:
    """The region of each area at the next level; None if no region has a neighbor."""
    near: dict[int, set[int]] = {r: set() for r in region}
    weight = dict.fromkeys(near, 0.0)
    for i, r in enumerate(region):
        weight[r] += weights[i]
    for a, b in ends:
        if region[a] != region[b]:
            near[region[a]].add(region[b])
            near[region[b]].add(region[a])
    order = sorted(near, key=lambda r: (weight[r], r))
    into: dict[int, int] = {}
    for r in order:
        free = [o for o in near[r] if o not in into]
        if r not in into and free:
            other = min(free, key=lambda o: (weight[o], o))
            into[r] = into[other] = min(r, other)
    stayed = [r for r in order if r not in into]
    if len({*into.values()}) * 5 < len(near):
        for r in stayed:
            if near[r]:
                into[r] = into[min((o for o in near[r] if o in into), key=lambda o: (weight[o], o))]
    return [into.get(r, r) for r in region] if into else None


@dataclass(frozen=True, eq=False)
class Resolved:
    """A hierarchy applied to the distinct values of a column.

    node    int32[h, size]  class of each value at each level; node[0] is the values themselves, the last level is one
            class, and each class lies in one class of the next level
    labels  labels[level][class] is the published text; ``*`` for the root, empty for a missing value
    leaves  int64[h, size]  number of leaves in the class of each value at each level: for rows, all values that they
            list; otherwise, the given values. A missing value is not a leaf; as its own class it counts as one
    """

    node: np.ndarray
    labels: tuple[tuple[str, ...], ...]
    leaves: np.ndarray

    def path(self, i: int) -> tuple[str, ...]:
        """The labels of a value, from itself to below the root."""
        return tuple(named[node] for named, node in zip(self.labels[:-1], self.node[:-1, i], strict=True))


@dataclass(frozen=True)
class Hierarchy:
    """The classes to which the values of one column can be generalized; use one of the constructors.

    kind    "rows", "intervals", "prefixes", "dates", "stars", or "regions"
    rows    rows: (value, class at level 1, ..., class at the last level before the root)
    steps   intervals: the cuts of each level, or one width for each level; prefixes: lengths; dates: names of periods;
            regions: names of the areas, their weights, and the two ends of every pair of neighbors
    origin  intervals of a width: a point at which one interval begins
    fill    prefixes: the character that replaces each omitted character
    """

    kind: str
    rows: tuple[tuple[str, ...], ...] = ()
    steps: tuple[Any, ...] = ()
    origin: Fraction = Fraction(0)
    fill: str = STAR

    @classmethod
    def of(cls, source: Any) -> Hierarchy:
        """A hierarchy from any form in which a caller may pass it.

        A Hierarchy; the path of an ARX or Amnesia file; "stars"; a builder with its levels, such as
        "intervals:5,10,20", "prefixes:4,3,2", or "dates:month,year"; a nested mapping (``tree``); a mapping 0, 1, ...
        -> column of a level; or a sequence of rows.
        """
        if isinstance(source, Hierarchy):
            return source
        if isinstance(source, (str, Path)):
            name, _, levels = str(source).partition(":")
            if is_built(str(source)):
                with within(f"the hierarchy {str(source)!r}"):
                    return cls._built(name, [x.strip() for x in levels.split(",") if x.strip()])
            return cls.from_csv(source)
        if isinstance(source, Mapping):
            if source and all(isinstance(k, int) for k in source):
                columns = [list(source[k]) for k in sorted(source)]
                if len({len(c) for c in columns}) > 1:
                    raise PolicyError("the levels of a hierarchy given as columns differ in length")
                return cls.from_rows(list(zip(*columns, strict=True)))
            return cls.tree(source)
        if isinstance(source, Sequence):
            return cls.from_rows(source)
        raise PolicyError(
            f"a hierarchy cannot be made from {type(source).__name__}; give a path, rows or a nested mapping"
        )

    @classmethod
    def _built(cls, name: str, levels: list[str]) -> Hierarchy:
        if name == "stars":
            return cls.stars()
        if name == "dates":
            return cls.dates(levels or ("month", "year"))
        numbers = [exact(x) for x in levels]
        if name == "intervals":
            return cls.intervals(numbers)
        return cls.prefixes([int(x) for x in numbers] or None)

    @classmethod
    def from_csv(cls, path: str | Path) -> Hierarchy:
        """A hierarchy from an ARX file (a row for each value, followed by its classes, no header) or an Amnesia "has"
        file.

        The text is UTF-8 or Windows-1252, which has all letters of Latin-1. The separator is ``;``, tab, or ``,``: the
        one that gives all rows the same number of fields. A byte order mark, quotes, and blank lines are allowed. A
        heading over an otherwise uniform last column ``*`` is ignored.
        """
        path = Path(path)
        if not path.is_file():
            name, colon, levels = path.name.partition(":")
            near = get_close_matches(name, BUILDERS, n=1) if colon else []
            hint = f"; did you mean {near[0] + colon + levels!r}?" if near else ""
            raise InputError(f"there is no hierarchy file {str(path)!r}{hint}")
        text = decoded(path.read_bytes(), path.name)
        if text.split(None, 1)[:1] in (["distinct"], ["range"]):
            return cls.tree(amnesia(text, path.name))
        return cls._checked(fields(text, path.name), f"the hierarchy file {path.name!r}")

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]]) -> Hierarchy:
        """A hierarchy from one row for each value: the value, then its class at each level. The root may be omitted."""
        if any(not isinstance(row, Sequence) or isinstance(row, (str, bytes)) or not row for row in rows):
            raise PolicyError("a row of a hierarchy is a sequence: the value, then its class at each level")
        return cls._checked([[str(x) for x in row] for row in rows], "the hierarchy")

    @classmethod
    def _checked(cls, rows: list[list[str]], where: str) -> Hierarchy:
        if not rows:
            raise PolicyError(f"{where} is empty; give one row per value")
        width = len(rows[0])
        for number, row in enumerate(rows, 1):
            if len(row) != width:
                raise PolicyError(f"{where} has {width} fields in row 1 and {len(row)} in row {number}; fill the gaps")
        if len(rows) > 2 and width > 1 and rows[0][-1] != STAR and all(row[-1] == STAR for row in rows[1:]):
            raise PolicyError(
                f"{where} ends every row with {STAR!r} but row 1; if row 1 is a heading, leave it out, for a hierarchy "
                "has none"
            )
        if len(rows) > 1 and width > 1 and all(row[0] == STAR for row in rows):
            raise PolicyError(
                f"{where} begins every row with {STAR!r}; turn the order of its columns round: the value comes first, "
                f"{STAR!r} last"
            )
        seen: dict[str, int] = {}
        for number, row in enumerate(rows, 1):
            if row[0] in seen:
                raise PolicyError(f"{where} has one value in rows {seen[row[0]]} and {number}; remove one of the two")
            seen[row[0]] = number
        while width > 1 and not any(row[width - 1] for row in rows):  # separators at the ends of lines
            width -= 1
        if width > 1 and len({row[width - 1] for row in rows}) == 1:  # the root
            width -= 1
        while width > 1 and all(row[width - 1] == STAR for row in rows):
            width -= 1
        kept = tuple(tuple(row[:width]) for row in rows)
        _nested(list(zip(*kept, strict=True)), where, rows=where != "the tree")
        return cls("rows", rows=kept)

    @property
    def file(self) -> str:
        """The rows as an ARX file; ``from_csv`` reads it as the same hierarchy."""
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=";", lineterminator="\n").writerows([*row, STAR] for row in self.rows)
        return out.getvalue()

    @classmethod
    def tree(cls, nested: Mapping[str, Any]) -> Hierarchy:
        """A hierarchy from a nested mapping of classes to lists of values, such as {"Asia": {"East": ["China",
        "Japan"]}, ...}.

        A single class at the top is the root. If a value is nearer to the root than others, it also fills the levels
        between.
        """
        paths: list[list[str]] = []

        def walk(node: Any, above: list[str]) -> None:
            if isinstance(node, Mapping):
                for name, below in node.items():
                    walk(below, [*above, str(name)])
            elif isinstance(node, (list, tuple)):
                for value in node:
                    walk(value, above) if isinstance(value, Mapping) else paths.append([*above, str(value)])
            elif node is None:
                paths.append(above)
            else:
                paths.append([*above, str(node)])

        walk(nested, [])
        paths = [p for p in paths if p]
        if paths and len({p[0] for p in paths}) == 1 and min(map(len, paths)) > 1:
            paths = [p[1:] for p in paths]
        depth = max(map(len, paths), default=0)
        rows = [[p[-1]] + [p[at] if at < len(p) else p[-1] for at in range(depth - 2, -1, -1)] for p in paths]
        return cls._checked([[*row, STAR] for row in rows], "the tree")

    @classmethod
    def intervals(cls, steps: Sequence[Any], origin: float = 0) -> Hierarchy:
        """Intervals of numbers: widths, each a multiple of the previous one, or a list of cuts for each level.

        ``[5, 10, 20]``: [0, 5), [5, 10) ... from ``origin``, then intervals of 10, then of 20.
        ``[[18, 30, 65], [18, 65]]``: below 18, 18 to 29, 30 to 64, 65 and above; then without the cut at 30.
        Whole numbers are published as 20-24, other numbers as [20, 25).
        """
        if not steps:
            raise PolicyError("intervals need at least one width, or one list of cuts; for example [5, 10, 20]")
        if any(isinstance(s, Sequence) and not isinstance(s, str) for s in steps):
            if not all(isinstance(s, Sequence) and not isinstance(s, str) for s in steps):
                raise PolicyError("intervals are given by widths or by lists of cuts, not by both")
            cuts = [sorted({exact(c) for c in level}) for level in steps]
            if not all(cuts):
                raise PolicyError("a level of intervals has no cut; leave it out, the star above is always there")
            for finer, coarser in pairwise(cuts):
                for cut in coarser:
                    if cut not in finer:
                        raise PolicyError(
                            f"the cut at {written(cut)} is missing from the level below it, so the levels are not "
                            "nested"
                        )
            return cls("intervals", steps=tuple(tuple(c) for c in cuts))
        widths = [exact(s) for s in steps]
        if min(widths) <= 0:
            raise PolicyError(f"a width of {written(min(widths))} is no interval; widths are above 0")
        for below, above in pairwise(widths):
            if above % below or above == below:
                near = below * max(2, round(above / below))
                raise PolicyError(
                    f"width {written(above)} is no multiple of the width {written(below)} below it, so the levels are "
                    f"not nested; take {written(near)}"
                )
        return cls("intervals", steps=tuple(widths), origin=exact(origin))

    @classmethod
    def prefixes(cls, lengths: Sequence[int] | None = None, fill: str = STAR) -> Hierarchy:
        """Prefixes of decreasing length, for example of zip codes: 47677, 4767*, 476**.

        lengths  number of characters kept at each level, decreasing; None: one character less at each level
        fill     replaces each omitted character; "": omitted characters are not replaced
        """
        if lengths is not None:
            lengths = [int(x) for x in lengths]
            if not lengths or min(lengths) < 1 or any(b >= a for a, b in pairwise(lengths)):
                raise PolicyError(f"prefix lengths {list(lengths)} must fall from level to level and stay at least 1")
        return cls("prefixes", steps=tuple(lengths or ()), fill=fill)

    @classmethod
    def dates(cls, levels: Sequence[str] = ("month", "year")) -> Hierarchy:
        """Periods of dates such as 2024-03-05: day, month, quarter, year, decade, century, in this order."""
        names = list(PERIODS)
        for level in levels:
            if level not in names:
                raise PolicyError.unknown("period of a date", str(level), names)
        if not levels or any(names.index(b) <= names.index(a) for a, b in pairwise(levels)):
            raise PolicyError(f"periods {', '.join(levels) or '(none)'} must rise in the order {', '.join(names)}")
        return cls("dates", steps=tuple(levels))

    @classmethod
    def stars(cls) -> Hierarchy:
        """A hierarchy with two levels: the value, or a star."""
        return cls("stars")

    @classmethod
    def regions(
        cls, areas: Sequence[str], pairs: Sequence[tuple[str, str]], weights: Sequence[int] | None = None
    ) -> Hierarchy:
        """Connected regions of areas: at each level, neighboring classes merge, and every class is a connected set.

        areas    their names, which are the values of the column
        pairs    names of neighbors
        weights  whole numbers of at least 0, such as people. The loss of a class is its share of their sum; a single
                 area loses nothing. Every area weighs at least 1. None: 1 each

        A class is written as the set of its areas, such as ``{06001, 06002}``. Above the last level is the star.

        Examples:
            >>> tree = Hierarchy.regions(["a", "b", "c"], [("a", "b"), ("b", "c")], [10, 20, 70])
            >>> tree.resolve(["a", "b", "c"]).labels[1]
            ('{a, b}', 'c')
        """
        names = [str(a) for a in areas]
        sizes = [1] * len(names) if weights is None else list(weights)
        known = dict(zip(names, sizes, strict=True))
        if len(known) < len(names):
            raise PolicyError("the areas of a graph are not distinct; give one row for each")
        if any(not _PLAIN.match(name) or name != name.strip() or name == "missing" for name in known):
            raise PolicyError("the name of an area is empty, or has a comma, bracket, quote or star in it; rename it")
        if any(isinstance(w, bool) or int(w) != w or w < 0 for w in sizes):
            raise PolicyError("the weights of areas are whole numbers from 0")
        ends = sorted({(min(str(a), str(b)), max(str(a), str(b))) for a, b in pairs if str(a) != str(b)})
        if any(end not in known for pair in ends for end in pair):
            raise PolicyError("a pair of neighbors names what is no area; drop the pair, or add the area")
        order = sorted(known)
        whole = tuple(max(int(known[name]), 1) for name in order)
        return cls(REGIONS, steps=(tuple(order), whole, tuple(a for a, _ in ends), tuple(b for _, b in ends)))

    @cached_property
    def _regions(self) -> list[dict[str, Area]]:
        """The region of each area at each level between the areas and the root."""
        names, weights, first, second = self.steps
        return nested_regions(names, weights, list(zip(first, second, strict=True)))

    @property
    def builder(self) -> str | None:
        """The text from which ``of`` builds the same hierarchy; None for rows, for cuts, and for intervals with an
        origin."""
        if self.kind not in BUILDERS or any(isinstance(s, tuple) for s in self.steps):
            return None
        text = self.kind + (":" + ",".join(map(str, self.steps)) if self.steps else "")
        name, _, levels = text.partition(":")
        try:
            return text if Hierarchy._built(name, levels.split(",") if levels else []) == self else None
        except PolicyError:
            return None

    def resolve(
        self,
        values: Sequence[str | None],
        column: str = "",
        read: Callable[[str], str | None] | None = None,
        notation: str | None = None,
    ) -> Resolved:
        """Classes and labels for the distinct values of a column.

        values    the distinct values as text; None is a missing value, which is a class of its own directly below
                  the root
        column    name of the column, for messages
        read      converts a date of the column to 2024-12-31, or a number to 1234.5; None if they are written so
        notation  of the column: if it has limits, an interval that contains one contains all values beyond it

        Raises PolicyError with the column's name. It shows no value, because few rows may have it. O(values levels).
        """
        present = [v for v in values if v is not None]
        if len(set(values)) < len(values):
            raise PolicyError(f"the values of column {column!r} are not distinct")
        if read is not None and self.kind in ("dates", "intervals"):
            levels = [present, *self._levels([read(v) or v for v in present], column, notation)]
        else:
            levels = [present, *self._levels(present, column)]
        where = f"the hierarchy of {column!r}"
        _nested(levels, where, rows=False)
        node, labels = [], []
        for level in levels:
            text = iter(level)
            number: dict[str | None, int] = {}  # classes are numbered by first occurrence; None is a missing value
            names = [None if v is None else next(text) for v in values]
            node.append(np.array([number.setdefault(name, len(number)) for name in names], np.int64))
            labels.append(tuple(name or "" for name in number))
        node.append(np.zeros(len(values), np.int64))
        labels.append((STAR,))
        return Resolved(np.stack(node).astype(np.int32), tuple(labels), self._leaves(levels, values))

    def lacks(self, values: Iterable[str]) -> list[str]:
        """The values that no class holds, in their order, so that you can add them.

        Only hierarchies of rows and of regions list their values; the others hold every value, and the answer is [].
        O(values and rows).
        """
        if self.kind not in ("rows", REGIONS):
            return []
        known = {row[0] for row in self.rows} if self.kind == "rows" else set(self.steps[0])
        return [v for v in values if v not in known]

    def _leaves(self, levels: Sequence[Sequence[str]], values: Sequence[str | None]) -> np.ndarray:
        """``Resolved.leaves``, from the texts of the present values at every level except the root."""
        if self.kind == REGIONS:
            people = [[1] * len(values), *([1 if v is None else at[v].leaves for v in values] for at in self._regions)]
            return np.array([*people, [sum(self.steps[1])] * len(values)], np.int64)
        given = list(zip(*self.rows, strict=True)) if self.kind == "rows" else levels
        out = []
        for level, whole in zip(levels, given, strict=True):
            under = Counter(whole)
            text = iter(level)
            out.append([1 if v is None else under[next(text)] for v in values])
        out.append([len(given[0])] * len(values))
        return np.array(out, np.int64).reshape(len(out), len(values))

    def _levels(self, values: list[str], column: str, notation: str | None = None) -> list[list[str]]:
        """Texts of every value at levels 1 .. h - 2, without the root."""
        if self.kind == "stars":
            return []
        if self.kind == "rows":
            known = {row[0]: row[1:] for row in self.rows}
            if lost := self.lacks(values):
                raise UncoveredError(_uncovered(column, lost, known))
            return [[known[v][i] for v in values] for i in range(len(self.rows[0]) - 1)]
        if self.kind == REGIONS:
            if lost := self.lacks(values):
                raise UncoveredError(_uncovered(column, lost, dict.fromkeys(self.steps[0])))
            return [[at[v].text for v in values] for at in self._regions]
        if self.kind == "prefixes":
            longest = max(map(len, values), default=0)
            lengths = self.steps or range(longest - 1, 0, -1)
            return [[v[:n] + self.fill * max(len(v) - n, 0) for v in values] for n in lengths]
        if self.kind == "dates":
            parts = [date_of(v, column) for v in values]
            return [[period(v, p, name) for v, p in zip(values, parts, strict=True)] for name in self.steps]
        numbers = []
        for v in values:
            try:
                numbers.append(exact(v))
            except PolicyError:
                raise PolicyError(
                    f"column {column!r} has a value that is not a number; repair it or leave it empty, name the "
                    f"decimal mark (⟨decimal[{column!r}] = ','⟩), or give the column another hierarchy than intervals"
                ) from None
        if any(abs(x) > _FURTHEST for x in numbers):
            raise PolicyError(
                f"column {column!r} has a number beyond 1e150, which is too far for intervals; correct it, or empty it "
                "if it stands for a missing one"
            )
        whole = all(x.denominator == 1 for x in numbers)
        limits = {text[0]: exact(text[2:]) for text in str(notation).split()} if of_limits(notation) else {}
        found = [[self._interval(x, step, whole, limits) for x in numbers] for step in self.steps]
        if any(STAR in level for level in found):
            raise PolicyError(f"one interval of column {column!r} holds both its limits; leave that width out")
        return found

    def _interval(self, x: Fraction, step: Any, whole: bool, limits: Mapping[str, Fraction]) -> str:
        """The interval around a number; one that holds a limit has no end there."""
        if isinstance(step, Fraction):
            low: Fraction | None = self.origin + (x - self.origin) // step * step
            high: Fraction | None = (low or Fraction(0)) + step
        else:
            at = bisect_right(step, x)
            low, high = step[at - 1] if at else None, step[at] if at < len(step) else None
        low = None if low is None or low <= limits.get("<", low - 1) else low
        high = None if high is None or high > limits.get(">", high) else high
        if low is None or high is None:
            return f">={written(low)}" if low is not None else STAR if high is None else f"<{written(high)}"
        return span(low, high, whole)


def _nested(levels: Sequence[Sequence[str]], where: str, rows: bool = True) -> None:
    """Check that each text of a level lies below one text of the next. rows: whether a user can look up these rows."""
    for number, (low, high) in enumerate(pairwise(levels)):
        parent: dict[str, tuple[str, int]] = {}
        for row, (a, b) in enumerate(zip(low, high, strict=True), 1):
            above, first = parent.setdefault(a, (b, row))
            if above != b:  # a class may have the name of a value in the table, so the message names rows
                below = "one class" if number else "one value"
                raise PolicyError(
                    f"{where} is not nested: {below} at level {number} lies in two classes at level {number + 1}"
                    f"{f', see rows {first} and {row}' if rows else ''}; give the two different names, or one class "
                    "above"
                )


def _uncovered(column: str, lost: list[str], known: Mapping[str, Any]) -> str:
    def bare(text: str) -> str:
        text = unicodedata.normalize("NFC", text.strip().casefold())
        return re.sub(r"\.0+$", "", text.lstrip("0")) or "0"

    alike = {bare(k): k for k in known}
    near = sum(bare(value) in alike for value in lost)
    hint = (
        f"it has {near} of them but for blanks, case, zeros at the ends, or accents as characters of their own, so "
        "write both alike"
        if near
        else "a hierarchy lists every value of its column"
    )
    if any(f"{value}.0" in known for value in lost):
        hint = "list a whole number without a point, as 34 and not 34.0"
    return f"the hierarchy of {column!r} does not cover {len(lost)} of the column's values; {hint}"
