"""A release beside the table it was made from: the same people, and nothing changed but what was recoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.model.policy import Policy

Finding = tuple[str, bool, str]
MOST_EDGES = 4_000_000


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
    if record["policy"]["publish"] == "centers":
        shown = after.select(quasi).unique()
        known = shown.join(before.select(quasi).unique(), on=quasi, how="semi").height == shown.height
        text = "every center is a record of the original" if known else "a center is no record of the original"
        return Comparison((*findings, ("centers", known, text)))
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

    A maximum flow between original cells and released cells, block by block of equal ``exact`` values.  Values that are
    neither the original nor a star (levels, ranges) are taken as covering anything.  Where a block has more than
    ``MOST_EDGES`` pairs, a necessary condition is checked instead, and the finding says so: of the rows published with
    given unstarred values there are no more than original rows with these values.
    """
    keys = list(exact)
    left = before.group_by([*quasi, *keys]).len()
    right = after.group_by([*quasi, *keys]).len()
    block_left, block_right = _blocks(left, right, keys)
    coded = [_number(left[n], right[n], set(before[n].to_list()), star) for n in quasi]
    a, b = np.column_stack([x for x, _ in coded]), np.column_stack([y for _, y in coded])
    supply = left["len"].to_numpy().astype(np.int64)
    demand = right["len"].to_numpy().astype(np.int64)
    order_l, order_r = np.argsort(block_left, kind="stable"), np.argsort(block_right, kind="stable")
    counted = False
    for block in np.union1d(block_left, block_right):
        l0, l1 = np.searchsorted(block_left[order_l], [block, block + 1])
        r0, r1 = np.searchsorted(block_right[order_r], [block, block + 1])
        rows, cols = order_l[l0:l1], order_r[r0:r1]
        if supply[rows].sum() != demand[cols].sum():
            return False, "rows with equal unchanged columns differ in number"
        if rows.size * cols.size <= MOST_EDGES:
            good = _saturates(a[rows], b[cols], supply[rows], demand[cols])
        else:
            good, counted = _room(a[rows], b[cols], supply[rows], demand[cols]), True
        if not good:
            return False, "some released row is no coarser form of an original row"
    if counted:
        return (
            True,
            "for all unstarred values there are enough original rows (counted, too many pairs to match one to one)",
        )
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
    """Whether original cells a, ``supply`` rows each, can become released cells b, ``demand`` rows each."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    if not supply.size:
        return not demand.size
    fits = np.ones((a.shape[0], b.shape[0]), bool)
    for j in range(a.shape[1]):
        want = b[:, j]
        fits &= (want < 0)[None, :] | (a[:, j][:, None] == want[None, :])
    i, k = np.nonzero(fits)
    rows, cols = a.shape[0], b.shape[0]
    source, sink = rows + cols, rows + cols + 1
    tail = np.concatenate([i, np.full(rows, source), rows + np.arange(cols)])
    head = np.concatenate([rows + k, np.arange(rows), np.full(cols, sink)])
    room = np.concatenate([np.minimum(supply[i], demand[k]), supply, demand]).astype(np.int32)
    graph = coo_matrix((room, (tail, head)), shape=(sink + 1, sink + 1)).tocsr()
    return bool(maximum_flow(graph, source, sink).flow_value == demand.sum())


def _room(a: np.ndarray, b: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> bool:
    """For every set of unstarred values published: no more released rows than original rows with these values."""
    masks, which = np.unique(b >= 0, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for number, mask in enumerate(masks):
        if not mask.any():
            continue
        here = which == number
        both = np.concatenate([a[:, mask], b[here][:, mask]])
        _, group = np.unique(both, axis=0, return_inverse=True)
        group = group.reshape(-1)
        groups = int(group.max()) + 1
        held = np.bincount(group[: a.shape[0]], weights=supply, minlength=groups)
        wanted = np.bincount(group[a.shape[0] :], weights=demand[here], minlength=groups)
        if (wanted > held).any():
            return False
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
