"""The judge of crosswalks: reads values and their groups from the files, and recomputes every count independently.

With the source table, sums over records are also recomputed. The values of a crosswalk are published names of groups,
so messages must not contain them.
"""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from shoal.errors import VerificationError
from shoal.judge.file import canonical
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding, unmarked
from shoal.model.cards import several
from shoal.model.certificate import FOLLOWING, Certificate, PublicCertificate
from shoal.model.notation import MARKS, is_notation

__all__ = ["CONSISTENT", "StatedCrosswalk", "group_sizes", "judge_groups", "one_row_each", "spelled", "tally", "whole"]


UNITS = {
    "max": "records in the largest group",
    "count": "records above k, summed over groups",
    "squares": "squared records, summed over groups",
    "range": "range times records, summed over groups",
}
OWN = "the given cost"  # unit of a cost that a function of the caller computes
_PLAIN = r"^(0|-?[1-9][0-9]*)$"
_SHORT = r"^ *[+-]?[0-9]{1,18} *$"  # a whole number that fits in 64 bits
SMALL = 300  # up to this many distinct values, the best cut is found again by dynamic programming over all cuts


class StatedCrosswalk(NamedTuple):
    """The statements of a certificate file about a crosswalk.

    parameters   the request: columns, k, objective, ...
    facts        rows, groups, smallest and largest group, records
    cost, lower_bound, unit   as certified
    details      of the certificate
    kind         of the crosswalk

    A public certificate file has no lower bound and no details. It has only the facts that the files show, and the cost
    only if they show it. If an entry is None or missing, the judge reports its own count and compares it with nothing.
    """

    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    cost: float | None
    lower_bound: float | None
    unit: str
    details: Mapping[str, Any] = MappingProxyType({})
    kind: str = ""

    @property
    def public(self) -> bool:
        """Whether the certificate file is public, so that it contains nothing that depends on the source."""
        return self.lower_bound is None

    def paid(self, cost: float, unit: str | None = None) -> Finding:
        """A finding for a recomputed cost, compared with the certified cost if there is one."""
        unit = self.unit if unit is None else unit
        if self.cost is None:
            return Finding("cost", True, f"{cost:,} {unit}, which the certificate does not state")
        return Finding("cost", same(cost, self.cost), f"{cost:,} {unit}, {self.cost:,} certified")

    def unpaid(self, why: str) -> Finding:
        """A finding for a cost that the judge can't recompute."""
        sentence = "the certificate states none" if self.cost is None else f"{self.cost:,} {self.unit}"
        return Finding("cost", True, f"{sentence}, {why}", STATED)

    def bounded(self, text: str) -> Finding:
        """A finding for a lower bound that the judge can't recompute."""
        sentence = "the record states it" if self.lower_bound is None else f"{self.lower_bound:,} certified, {text}"
        return Finding("bound", True, sentence, STATED)


def spelled(column: pl.Series, form: str, shown: pl.Series | None = None) -> list[str | None]:
    """Values as the file format writes them: text in a CSV, elsewhere text without artifacts of the type.

    shown  the file's own column of these values; a sheet stores values as text if its cell types can't hold them
    """
    if column.dtype.is_float():
        column = column.set(column == 0, 0.0)  # no file has a negative zero
    if form in ("excel", "statistics") and shown is not None and shown.dtype == pl.String:
        column = _in_words(column)
    if form == "csv" and column.dtype != pl.String:
        if column.dtype == pl.Duration:
            column = column.dt.to_string("iso")
        both = pl.DataFrame([column.alias("v"), pl.Series("n", range(len(column)))])
        column = pl.read_csv(io.BytesIO(both.write_csv().encode()), infer_schema=False)["v"] if len(column) else column
    return canonical(column, form).to_list()


def _in_words(column: pl.Series) -> pl.Series:
    """Values in the form that a sheet stores as text."""
    kind = column.dtype
    if kind.is_float():
        return canonical(column).set(column.is_nan().fill_null(False), "NaN")
    if kind == pl.Time:
        return column.dt.to_string("%H:%M:%S%.f").str.replace(r"(\.\d*[1-9])0+$", "$1")
    if kind == pl.Duration:
        return column.dt.to_string("iso")
    if isinstance(kind, pl.Datetime):  # without trailing zeros in fractions of a second
        text = column.cast(pl.String).str.replace(r"\.(\d*[1-9])?0+([^.\d]|$)", ".$1$2")
        return text.str.replace(r"\.([^\d]|$)", "$1")
    return column.cast(pl.String)


def whole(frame: pl.DataFrame, name: str) -> list[int]:
    """A column of whole numbers of any length; VerificationError if a cell is no whole number."""
    column, found = part(frame, name), []
    if column.dtype == pl.String and column.str.contains(_SHORT).all(ignore_nulls=False):
        column = column.str.strip_chars(" ").cast(pl.Int64)
    if column.dtype.is_integer() and not column.null_count():
        return column.to_list()
    for value in column.to_list():
        try:
            exact = Fraction(value.strip() if isinstance(value, str) else value)
            if exact.denominator != 1:
                raise ValueError
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise VerificationError(f"column {name!r} of the file holds something that is no whole number") from None
        found.append(exact.numerator)
    return found


def refuse_other_forms(frame: pl.DataFrame, names: Iterable[str], form: str) -> None:
    """Raise VerificationError if one of these columns, which shoal computes, has a number in a form of its own: "2.0"
    beside "2" would mark a row."""
    for name in names:
        if name not in frame.columns or frame[name].dtype != pl.String:
            continue
        texts = frame[name].drop_nulls()
        if texts.str.contains(_PLAIN).all():
            continue
        if texts.to_list() != spelled(texts.cast(pl.Float64, strict=False), form, texts):
            raise VerificationError(f"column {name!r} of the file has a number in a form that no release has")


def part(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column of the frame; VerificationError if it is missing."""
    if name not in frame.columns:
        raise VerificationError(f"the file has no column {name!r}")
    return frame[name]


def same(a: float, b: float) -> bool:
    """Whether two numbers are equal up to the rounding errors of float sums."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def number_of(stated: Mapping[str, Any], name: str) -> int:
    """A whole number of the certificate file; VerificationError if it is none."""
    value = stated.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise VerificationError(f"the certificate file states no whole number for {name!r}")
    return value


def one_row_each(named: Sequence[Any], stated: Mapping[str, Any], what: str) -> Finding:
    """Whether each row has a different name, and whether there are as many rows as certified."""
    twice = len(named) - len(set(named))
    if twice:
        return Finding("one row each", False, f"{twice} rows name a {what} that another row names too")
    if what == "place" and "rows" not in stated:  # certified with the tiles, whose readers may lack the places
        return Finding("one row each", True, f"{len(named)} rows, a number that is not certified")
    rows = number_of(stated, "rows")
    return Finding("one row each", len(named) == rows, f"{len(named)} rows, {rows} certified")


def columns_named(frame: pl.DataFrame, known: Iterable[str]) -> Finding:
    """Whether the file has no column other than those that a release of its kind has."""
    stray = sorted({*frame.columns} - {*known})
    text = f"column {stray[0]!r} is there, and the request has none of that name" if stray else "as requested"
    return Finding("columns named", not stray, text)


def group_sizes(groups: Mapping[Any, int], stated: Mapping[str, Any], k: int) -> list[Finding]:
    """Whether every group is large enough, and whether the number of groups and the extreme sizes are as certified."""
    sizes = list(groups.values())
    if not sizes:
        return [Finding("k", False, "the file has no group")]
    under = sum(size < k for size in sizes)
    found = {"groups": len(sizes), "smallest_group": min(sizes), "largest_group": max(sizes)}
    below = f"{several(under, 'group')} {'is' if under == 1 else 'are'} below k = {k}"
    least = Finding("k", not under, below if under else f"no group is below k = {k}")
    expected = {name: number_of(stated, name) for name in found if name in stated}
    if "groups" not in expected:
        raise VerificationError("the certificate file states no whole number for 'groups'")
    good = all(found[name] == value for name, value in expected.items())
    counted = f"{several(len(sizes), 'group')}, the smallest of {min(sizes):,} and the largest of {max(sizes):,}"
    certified = ", ".join(f"{value:,}" for value in expected.values())
    return [least, Finding("groups", good, f"{counted}; {certified} certified")]


def judge_groups(
    kind: str, frame: pl.DataFrame, stated: StatedCrosswalk, form: str, source: pl.DataFrame | None
) -> list[Finding]:
    """Judge labels or intervals: one row for each value, with its group, the group's name, and the group's records.

    source  the table with the grouped column; if given, every group is counted again

    Raises VerificationError if the file has another form. O(n log n) for n values.
    """
    asked = stated.parameters
    k = number_of(asked, "k")
    values = spelled(part(frame, "value"), form)
    refuse_other_forms(frame, ("group", "group_count"), form)
    group, count = whole(frame, "group"), whole(frame, "group_count")
    name = spelled(part(frame, "group_label"), form)
    sizes: dict[int, int] = {}
    names: dict[int, str | None] = {}
    mixed = 0
    for g, n, text in zip(group, count, name, strict=True):
        mixed += sizes.setdefault(g, n) != n or names.setdefault(g, text) != text
    clear = not mixed and len(set(names.values())) == len(names)
    found = [
        one_row_each(values, stated.facts, "value"),
        columns_named(frame, ("value", "group", "group_label", "group_count")),
        Finding("names", clear, "each group has one name and one count" if clear else "a group has two, or shares one"),
        *group_sizes(sizes, stated.facts, k),
    ]
    total, records = sum(sizes.values()), number_of(stated.facts, "records")
    found.append(Finding("records", total == records, f"{total} records in all groups, {records} certified"))
    keys = None
    if kind == "intervals":
        keys, reading = _in_order(values, asked.get("notation"))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        runs = 1 + sum(group[a] != group[b] for a, b in itertools.pairwise(order))
        found.append(
            Finding("intervals", runs == len(sizes), f"{len(sizes)} groups in {runs} runs of the values in order")
        )
        found.append(_cost_of_cut(stated, sizes, group, keys if reading in ("numbers", "days") else None))
    else:
        found.append(_cost_of_cut(stated, sizes, group, None))
    if source is None:
        counts = Finding("counts", True, "of each value: the source would tell", STATED)
        return [*found, counts, stated.bounded("and the source would tell more")]
    held = tally(source, asked, form, frame["value"])
    return [*found, *_counted(held, values, group, sizes), _bound(kind, stated, held, k, keys, values)]


def tally(source: pl.DataFrame, asked: Mapping[str, Any], form: str, shown: pl.Series) -> dict[str | None, int]:
    """Records of each value of a source column, keyed by the value's text in the file."""
    column = part(source, str(asked.get("column")))
    if column.dtype.is_float():
        column = column.set(column == 0, 0.0).fill_nan(None)  # the zeros are one value, and so are NaN and null
    values = spelled(column, form, shown)
    if asked.get("count") is None:
        return dict(Counter(values))
    found: dict[str | None, int] = {}
    for value, number in zip(values, whole(source, str(asked["count"])), strict=True):
        found[value] = found.get(value, 0) + number
    return found


def _counted(
    held: Mapping[str | None, int], values: Sequence[str | None], group: Sequence[int], sizes: Mapping[int, int]
) -> list[Finding]:
    """Whether the source has the same values as the file, and whether its records add up to the stated group sizes."""
    absent, foreign = len(set(held) - set(values)), len(set(values) - set(held))
    cover = Finding(
        "values", not absent and not foreign,
        f"{absent} values of the source are in no row, {foreign} rows name none of its values"
        if absent or foreign else "every value of the source has its row, and no other",
    )  # fmt: skip
    sums = dict.fromkeys(sizes, 0)
    for value, g in zip(values, group, strict=True):
        sums[g] += held.get(value, 0)
    wrong = sum(sums[g] != sizes[g] for g in sizes)
    sentence = f"{wrong} groups count another number than stated" if wrong else "every group counts what is stated"
    return [cover, Finding("counts", not wrong, sentence, RECOMPUTED)]


def _in_order(values: Sequence[str | None], notation: str | None = None) -> tuple[list[Any], str]:
    """Texts as numbers, days, or moments if all of them are, else unchanged; and which of these it is.

    notation  of texts that are dates or numbers
    """
    if any(v is None for v in values):
        raise VerificationError("a missing value is among ordered ones, where it has no place")
    texts = [str(v) for v in values]
    readers: list[tuple[str, Any]] = [
        ("numbers", Fraction),
        ("days", lambda v: datetime.date.fromisoformat(v.strip()).toordinal()),
        ("moments", datetime.datetime.fromisoformat),
    ]
    if notation is not None and not (isinstance(notation, str) and (notation in MARKS or is_notation(notation))):
        raise VerificationError("the certificate file states a notation of the values that is none")
    if notation is not None and notation not in MARKS:
        readers = [("days", lambda v: datetime.datetime.strptime(v, notation).toordinal())]
    elif notation is not None:
        readers = [("numbers", lambda v: Fraction(unmarked(v, notation)))]
    for name, read in readers:
        try:
            keys = [read(v) for v in texts]
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        if name == "moments" and len({key.tzinfo is None for key in keys}) > 1:
            raise VerificationError("times with a time zone and times without one have no common order")
        return keys, name
    return texts, "text"


def _cost_of_cut(
    stated: StatedCrosswalk, sizes: Mapping[int, int], group: Sequence[int], keys: Sequence[Any] | None
) -> Finding:
    """Whether the certified cost equals the cost of the groups by the requested objective."""
    objective = stated.parameters.get("objective")
    if stated.kind == "intervals" and stated.unit == OWN:
        return stated.unpaid("by a measure of the caller's own")
    if UNITS.get(str(objective)) != stated.unit:
        return Finding("cost", False, f"counted in {stated.unit!r}, which is not the unit of the request")
    paid: float | None = None
    if objective == "max":
        paid = max(sizes.values(), default=0)
    elif objective == "squares":
        paid = sum(size**2 for size in sizes.values())
    elif objective == "count":
        paid = sum(sizes.values()) - int(stated.parameters["k"]) * len(sizes)
    elif objective == "range" and keys is not None:
        low: dict[int, Any] = {}
        high: dict[int, Any] = {}
        for g, key in zip(group, keys, strict=True):
            low[g], high[g] = min(low.get(g, key), key), max(high.get(g, key), key)
        paid = float(sum((high[g] - low[g]) * sizes[g] for g in sizes))
    return stated.unpaid("of values that are no numbers") if paid is None else stated.paid(paid)


def _bound(
    kind: str,
    stated: StatedCrosswalk,
    held: Mapping[str | None, int],
    k: int,
    keys: Sequence[Any] | None,
    values: Sequence[str | None],
) -> Finding:
    """The certified bound, compared with a bound that is computed again."""
    bound = stated.lower_bound
    total, most = sum(held.values()), max(held.values(), default=0)
    if total < k:
        return Finding("bound", False, "the source has fewer records than k, so that no group exists")
    if bound is None or stated.cost is None:
        return stated.bounded("")
    objective = stated.parameters.get("objective") if stated.unit != OWN else None
    if (
        kind == "intervals"
        and objective in ("max", "count", "squares", "range")
        and keys is not None
        and len(keys) <= SMALL
    ):
        rank = sorted(range(len(keys)), key=keys.__getitem__)
        if objective != "range" or not isinstance(keys[0], (str, datetime.datetime)):
            counts: dict[Any, int] = {}  # equal values in several spellings stay together
            for i in rank:
                counts[keys[i]] = counts.get(keys[i], 0) + held.get(values[i], 0)
            best = _best_cut([*counts], [*counts.values()], k, str(objective))
            holds = bound <= best or same(bound, best)
            return Finding("bound", holds, f"the best of all cuts costs {best:,}; {bound:,} certified", RECOMPUTED)
    groups = total // k  # at most this many groups can reach k
    easy = max(k, most, -(-total // groups))
    if objective == "max" and bound <= easy:
        return Finding("bound", True, f"no group's largest is below {easy:,}; {bound:,} certified", RECOMPUTED)
    sums = {"count": total - k * groups, "squares": -(-(total**2) // groups)}
    if objective in sums and bound <= sums[objective]:
        text = f"{groups:,} groups, no more, cost {sums[objective]:,} at least; {bound:,} certified"
        return Finding("bound", True, text, RECOMPUTED)
    return Finding("bound", bound <= stated.cost, f"{bound:,} certified, by an argument not repeated here", STATED)


def _best_cut(keys: Sequence[Any], counts: Sequence[int], k: int, objective: str) -> float:
    """The least cost of all partitions into runs of at least k records.

    Dynamic programming over the last run, O(n^2).
    """
    total = [0]
    for count in counts:
        total.append(total[-1] + count)
    best: list[Any] = [0] + [math.inf] * len(keys)
    for end in range(1, len(keys) + 1):
        for start in range(end):
            load = total[end] - total[start]
            if load < k:
                break
            if objective == "max":
                cost = max(best[start], load)
            else:
                own = {"squares": load**2, "count": load - k}.get(objective)
                cost = best[start] + ((keys[end - 1] - keys[start]) * load if own is None else own)
            best[end] = min(best[end], cost)
    found = best[-1]
    return float(found) if isinstance(found, Fraction) else found


def judge_hierarchy(path: Path, counts: Mapping[str, int], k: int) -> list[Finding]:
    """Judge a hierarchy file: a row per value, with its groups from the finest level to the root.

    counts  records of each value
    k       least records of a group, at every level
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    values = [row[0] for row in rows]
    depth = {len(row) for row in rows}
    same = sorted(values) == sorted(counts) and len(depth) == 1
    found = [Finding("values", same, f"{len(rows)} rows for {len(counts)} values, each of one depth")]
    if not same:
        return found
    light = loose = 0
    for level in range(1, depth.pop()):
        sums: dict[str, int] = {}
        parent: dict[str, str] = {}
        for row in rows:
            sums[row[level]] = sums.get(row[level], 0) + counts[row[0]]
            loose += level > 1 and parent.setdefault(row[level - 1], row[level]) != row[level]
        light += sum(n < k for n in sums.values())
    return [
        *found,
        Finding("k", not light, f"{light} groups of the hierarchy are below k = {k}"),
        Finding("nested", not loose, f"{loose} values leave the group of their finer group"),
    ]


_SUMS = {"clusters", "left_out", "may_be_left_out", "r"}
# units whose costs are recomputed where sums are checked
ELSEWHERE = {"gather": _SUMS, "cellular": _SUMS | {"service", "setup", "radius"}}
NORMS = ("euclidean", "manhattan", "chebyshev")
WORDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "labels": {"objective": ("max", "count", "squares")},
    "regions": {"geographic": (True, False)},
    "tiles": {
        "objective": ("tiles", "max", "perimeter", "sumsq"), "coordinates": ("geographic", "projected"),
        "extent": ("plane", "data"), "center": ("mean", "draw"), "sparse": ("refuse", "leave-out"),
    },
    "gather": {"problem": ("gather",), "norm": NORMS, "eligible": (True, False)},
    "cellular": {"problem": ("cellular",), "norm": NORMS, "eligible": (True, False)},
}  # fmt: skip
ROUGH = 2e-6  # relative tolerance of costs from integer programs
ORDERS = ("as in the table", "fresh secret", "caller's secret")  # of the rows of a table that is written beside
OBJECTIVES = ("max", "count", "sumsq", "excess", "compact", "similar")


def agreed(record: Mapping[str, Any], stated: Certificate | PublicCertificate) -> list[Finding]:
    """Findings about details that contradict the request, and about statements that nobody recomputes.

    Raises VerificationError for a word outside its list.
    """
    kind, asked, facts = record["kind"], record["parameters"], record["facts"]
    for name, known in WORDS.get(kind, {}).items():
        if asked.get(name) not in known:
            raise VerificationError(f"the certificate file states no {name} that there is")
    if any(part.get("order", ORDERS[0]) not in ORDERS for part in record.get("also", ())):
        raise VerificationError("the certificate file states no order of rows that there is")
    if kind == "regions" and not set(str(asked.get("objective")).split(",")) <= set(OBJECTIVES):
        raise VerificationError("the certificate file states no objective that there is")
    if kind in ELSEWHERE:
        columns = [*asked["columns"], *(asked["place"] or ())]
        if sorted(name for f in asked["features"] for name in f["columns"]) != sorted(columns):
            raise VerificationError("the certificate file names other columns than those of its features")
    if kind == "regions" and asked["l"] > 1 and not asked["sensitive"]:
        raise VerificationError("the certificate file asks for diverse regions, and names no sensitive column")
    if isinstance(stated, PublicCertificate):
        return promised(stated)
    odd = sorted(FOLLOWING.get(kind, set()) & set(stated.details))
    odd += unmet(asked, stated.details) if kind == "regions" else []
    text = f"they tell of {odd[0]!r} what its facts tell, or otherwise" if odd else "none that its facts tell too"
    found = [Finding("details", not odd, text, CONSISTENT)]
    if kind == "tiles":
        most, there = stated.details.get("tiles_at_most"), facts["groups"]
        fits = type(most) is int and type(there) is int and most >= there
        found.append(Finding("tiles at most", fits, f"{there} tiles, at most {most} certified", CONSISTENT))
    run = stated.details.get("run")
    told_apart = {"run"} if isinstance(run, Mapping) else set()
    rest = sorted(set(stated.details) - ELSEWHERE.get(kind, set()) - told_apart)
    if rest:
        found.append(Finding("other details", True, f"{', '.join(rest)} rest on the certificate", STATED))
    if isinstance(run, Mapping):
        how = ", ".join(f"{name} {held}" for name, held in run.items())
        found.append(Finding("how it was made", True, f"{how}: rests on the certificate", STATED))
    return [*found, *promised(stated)]


def unmet(asked: Mapping[str, Any], details: Mapping[str, Any]) -> list[str]:
    """Conditions on regions that only one of the request and the certificate's details has."""
    odd = []
    if (asked.get("soft_boundary") is not None) != ("regions_across_soft_boundaries" in details):
        odd.append("soft_boundary")
    sums, diameter = dict(asked.get("at_most") or {}), asked.get("max_diameter")
    capped, known = bool(sums) or diameter is not None, "left_out_by_maxima" in details
    if (capped and not known) or (known and not capped and asked.get("apart") is None):
        odd.append("at_most, max_diameter or apart")
    own = {"sums": sorted(sums.values()), "diameter": diameter}
    if details.get("maxima", own) != own:  # old certificates don't contain these details
        odd.append("at_most or max_diameter")
    return odd


def promised(stated: Certificate | PublicCertificate) -> list[Finding]:
    """Whether the theorem's guarantee agrees with cost and bound: it can't be optimal if they differ."""
    promise = stated.guarantee
    if promise.factor is None and promise.additive is None:
        return []
    if promise.factor is None:
        return [Finding("guarantee", False, "it promises a term without a factor")]
    if isinstance(stated, PublicCertificate):
        proved = stated.ratio_at_most in (None, 1)  # without a ratio nothing contradicts the theorem
    else:
        proved = stated.cost <= stated.lower_bound * (1 + ROUGH)
    if promise.factor == 1 and not promise.additive and not proved:
        return [Finding("guarantee", False, "its theorem makes the answer optimal, its cost and lower bound do not")]
    more = f" plus {promise.additive:g}" if promise.additive else ""
    bare = promise.factor == 1 and not promise.additive
    text = promise.theorem if bare else f"{promise.factor:g} times the least{more}: {promise.theorem}"
    return [Finding("guarantee", True, text, STATED)]
