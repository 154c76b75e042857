"""A release beside the table it was made from: the same people, and nothing changed but what was recoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from shoal.model.policy import Policy

Finding = tuple[str, bool, str]


@dataclass(frozen=True)
class Comparison:
    """What a comparison with the original found."""

    findings: tuple[Finding, ...]


def compare(original: pl.DataFrame, release: pl.DataFrame, record: Mapping[str, Any], policy: Policy) -> Comparison:
    """Match the rows of a release with those of the original.

    Checks that columns outside the quasi-identifiers hold the same rows; that the rows can be matched one to one so
    that every published value is the original one or coarser (stars; for other forms, unchanged values only); that no
    value was invented; and recomputes stars and suppressed tuples and, for l-diversity, the bound.
    """
    findings: list[Finding] = []
    quasi, sensitive = list(policy.quasi_identifiers), list(policy.sensitive)
    absent = [n for n in [*quasi, *sensitive] if n not in original.columns]
    if absent:
        return Comparison((("original", False, f"the original has no column {absent[0]!r}"),))
    before, after = _as_text(original, release), _as_text(release, original)
    same_rows = before.height == after.height
    findings.append(("original rows", same_rows, f"{before.height} in the original, {after.height} in the release"))
    carried = [c for c in before.columns if c not in quasi and c not in policy.identifiers]
    kept = [c for c in carried if c in after.columns]
    equal = kept == carried and _multiset(before, carried) == _multiset(after, carried)
    findings.append(("other columns", equal, "unchanged, row by row" if equal else "changed"))
    blank = record["release"].get("starred_as_missing", ())  # there a missing value may stand for a star
    if not same_rows:
        return Comparison(tuple(findings))
    silent = [n for n in quasi if record["stars"].get(n) and (release[n].dtype != pl.String or n in blank)]
    covered = after.with_columns(pl.col(n).replace("", policy.star) for n in silent)
    matched, why = _match(before, covered, quasi, carried if equal else sensitive, policy.star)
    findings.append(("rows match", matched, why))
    stated = record["loss"]
    changed = sum(record["changed"].values())
    if record["policy"]["publish"] == "stars":
        stars = _stars(before, after, quasi)
        good = stars == int(stated["stars"]) == changed
        findings.append(("loss", good, f"{stars} stars found, {stated['stars']} certified"))
    bound = record["certificate"]
    if bound["unit"] == "suppressed tuples":
        models = [m for m in record["policy"]["privacy"] if m["model"] == "LDiversity"]
        if models and len(sensitive) == 1:
            own = fewest_tuples(before, quasi, sensitive[0], max(m["l"] for m in models))
            good = own <= int(bound["cost"])
            findings.append(("bound", good, f"recomputed {own} for l-diversity, {bound['lower_bound']} certified"))
    return Comparison(tuple(findings))


def _as_text(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Every column as text that does not depend on the file's kind; missing, NaN and empty are one.

    Where the other table holds the column as numbers, text is read as numbers first (``1.0`` and ``1`` are one).
    """
    out = []
    for column in frame.get_columns():
        kind = column.dtype
        beside = other.schema.get(column.name, kind)
        if isinstance(kind, (pl.Categorical, pl.Enum)):
            column = column.cast(pl.String)
        if kind.is_temporal() or (beside.is_temporal() and column.dtype == pl.String):
            out.append(_moment(column).fill_null(""))
            continue
        text = _plain(column)
        if column.dtype == pl.String and beside.is_numeric():
            number = column.cast(beside if beside.is_decimal() or beside.is_integer() else pl.Float64, strict=False)
            text = pl.select(pl.coalesce(_plain(number), text)).to_series()
        out.append(text.fill_null("").rename(column.name))
    return pl.DataFrame(out)


def _plain(column: pl.Series) -> pl.Series:
    """Numbers as text, whole ones without a point."""
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        return pl.Series(column.name, [None if v is None else repr(v) for v in column.to_list()], dtype=pl.String)
    if not column.dtype.is_float():
        return column.cast(pl.String, strict=False)
    column = column.fill_nan(None)
    whole = (column == column.round()) & (column.abs() < 2.0**53)
    shown = pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(column.cast(pl.String))
    return pl.select(shown).to_series()


def _moment(column: pl.Series) -> pl.Series:
    """Dates and times as text in one form: microseconds, a blank before the time, no zeros at the end."""
    if isinstance(column.dtype, pl.Duration):
        return column.dt.to_string("iso")
    if isinstance(column.dtype, pl.Datetime):
        column = column.cast(pl.Datetime("us", column.dtype.time_zone))
    text = column.cast(pl.String).str.replace(r"^(\d{4}-\d\d-\d\d)T", "$1 ")
    text = text.str.replace(r"([+-]\d\d)(\d\d)$", "$1:$2").str.replace(r"(\.\d*?)0+([+-].*)?$", "$1$2")
    return text.str.replace(r"\.([+-].*)?$", "$1")


def _multiset(frame: pl.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    if not columns:
        return [(frame.height,)]
    return sorted(frame.group_by(list(columns)).len().rows())


def _stars(before: pl.DataFrame, after: pl.DataFrame, quasi: Sequence[str]) -> int:
    """Cells that lost their value: per column and value, how many fewer there are."""
    total = 0
    for name in quasi:
        held = dict(before[name].value_counts().iter_rows())
        now = dict(after[name].value_counts().iter_rows())
        total += sum(max(n - now.get(v, 0), 0) for v, n in held.items())
    return total


def _match(
    before: pl.DataFrame, after: pl.DataFrame, quasi: Sequence[str], exact: Sequence[str], star: str
) -> tuple[bool, str]:
    """Whether released rows and original rows pair up: equal on ``exact``, and on unstarred quasi-identifiers.

    A flow between original cells and released cells, block by block of equal ``exact`` values.  Values that are neither
    the original nor a star (levels, ranges) are taken as covering anything.
    """
    keys = list(exact)
    left = before.group_by([*quasi, *keys]).len()
    right = after.group_by([*quasi, *keys]).len()
    block_left, block_right = _blocks(left, right, keys)
    values = {name: set(before[name].to_list()) for name in quasi}
    a = np.column_stack([_number(left[n], right[n], values[n], star)[0] for n in quasi])
    b = np.column_stack([_number(left[n], right[n], values[n], star)[1] for n in quasi])
    supply, demand = left["len"].to_numpy(), right["len"].to_numpy()
    order_l, order_r = np.argsort(block_left, kind="stable"), np.argsort(block_right, kind="stable")
    ids = np.union1d(block_left, block_right)
    for block in ids:
        l0, l1 = np.searchsorted(block_left[order_l], [block, block + 1])
        r0, r1 = np.searchsorted(block_right[order_r], [block, block + 1])
        rows, cols = order_l[l0:l1], order_r[r0:r1]
        if supply[rows].sum() != demand[cols].sum():
            return False, "rows with equal unchanged columns differ in number"
        if not _saturates(a[rows], b[cols], supply[rows].astype(np.int64), demand[cols].astype(np.int64)):
            return False, "some released row is no coarser form of an original row"
    return True, "every released row is an original row or a coarser form of one, one to one"


def _blocks(left: pl.DataFrame, right: pl.DataFrame, keys: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if not keys:
        return np.zeros(left.height, np.int64), np.zeros(right.height, np.int64)
    both = pl.concat([left.select(keys), right.select(keys)])
    number = both.select(pl.struct(keys).rank("dense")).to_series().to_numpy().astype(np.int64)
    return number[: left.height], number[left.height :]


def _number(left: pl.Series, right: pl.Series, known: set[str], star: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes of both sides; -1 on the released side covers anything."""
    place = {text: i for i, text in enumerate(sorted(known))}
    a = np.array([place[t] for t in left.to_list()], np.int64)
    b = np.array([-1 if t == star else place.get(t, -1) for t in right.to_list()], np.int64)
    return a, b


def _saturates(a: np.ndarray, b: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> bool:
    """Whether all demand can be met: exact cells first, then augmenting paths between what is left."""
    supply, demand = supply.copy(), demand.copy()
    whole = {tuple(row): i for i, row in enumerate(a.tolist())}
    for j, row in enumerate(b.tolist()):
        i = whole.get(tuple(row))
        if i is not None:
            moved = min(supply[i], demand[j])
            if moved < demand[j]:
                return False
            supply[i] -= moved
            demand[j] -= moved
    rows, cols = np.flatnonzero(supply), np.flatnonzero(demand)
    if not rows.size:
        return not cols.size
    fits = np.ones((rows.size, cols.size), bool)
    for j in range(a.shape[1]):
        want = b[cols, j]
        fits &= (want < 0)[None, :] | (a[rows, j][:, None] == want[None, :])
    return _flow(fits, supply[rows], demand[cols])


def _flow(fits: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> bool:
    """Transportation by augmenting paths: all demand met.  O(paths x edges) on what exact matches leave."""
    sent = np.zeros(fits.shape, np.int64)
    supply, demand = supply.copy(), demand.copy()
    for i in range(fits.shape[0]):  # greedy start: the pickiest columns first
        for j in np.flatnonzero(fits[i] & (demand > 0))[np.argsort(fits[:, fits[i] & (demand > 0)].sum(axis=0))]:
            moved = min(supply[i], demand[j])
            sent[i, j] += moved
            supply[i] -= moved
            demand[j] -= moved
            if not supply[i]:
                break
    while demand.sum() > 0:
        start = int(np.flatnonzero(demand > 0)[0])
        from_col = np.full(fits.shape[0], -1)
        from_row = np.full(fits.shape[1], -1)
        queue, seen = [start], {start}
        end = -1
        while queue and end < 0:
            j = queue.pop(0)
            for i in np.flatnonzero(fits[:, j] & (from_col < 0)).tolist():
                from_col[i] = j
                if supply[i] > 0:
                    end = int(i)
                    break
                for other in np.flatnonzero(sent[i] > 0):
                    if other not in seen:
                        seen.add(int(other))
                        from_row[other] = i
                        queue.append(int(other))
        if end < 0:
            return False
        path, i = [], end
        while True:
            j = int(from_col[i])
            path.append((i, j))
            if j == start:
                break
            i = int(from_row[j])
        amount = min(int(supply[end]), int(demand[start]))
        for (_, j), (i2, _) in pairwise(path):
            amount = min(amount, int(sent[i2, j]))
        for place, (i, j) in enumerate(path):
            sent[i, j] += amount
            if place + 1 < len(path):
                sent[path[place + 1][0], j] -= amount
        supply[end] -= amount
        demand[start] -= amount
    return True


def fewest_tuples(frame: pl.DataFrame, quasi: Sequence[str], sensitive: str, l: int) -> int:
    """max(|R1|, l h(R1)) of Xiao, Yi, Tao 2010 by their own loop: lower the tallest pillar until a type is eligible."""
    counts: dict[tuple[Any, ...], dict[Any, int]] = {}
    for *key, value, n in frame.group_by([*quasi, sensitive]).len().iter_rows():
        counts.setdefault(tuple(key), {})[value] = n
    removed: dict[Any, int] = {}
    for held in counts.values():
        height = max(held.values())
        while height and l * height > sum(min(n, height) for n in held.values()):
            height -= 1
        for value, n in held.items():
            removed[value] = removed.get(value, 0) + max(n - height, 0)
    return max(sum(removed.values()), l * max(removed.values(), default=0))
