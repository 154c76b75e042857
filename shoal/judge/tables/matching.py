"""Whether published rows match original rows one to one, by a maximum flow over distinct rows with counts.

Rows that must be equal in some columns form blocks. Within a block, an edge joins an original tuple with a published
tuple that covers it. Tuples with only one edge are matched first and removed. The rest is one maximum flow.

The module also decides whether rows stand in the order of the original, and computes the least number of groups that
must show a value of a single row, over all matchings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.tables.covering import ColumnPair

BY_CHANCE = 1e-9  # a row order that shuffled rows have more rarely is no order of shuffled rows
AT_ONCE = 4_000_000  # pairs in one batch
PAIR = 8  # work for a pair of a run, in looks of a bit set
SMALL = 1 << 18  # blocks of up to this many pairs are compared completely


@dataclass(frozen=True, eq=False)
class Side:
    """Distinct rows of one table: block int64[n], ascending; code int64[n, d]; count int64[n]."""

    block: np.ndarray
    code: np.ndarray
    count: np.ndarray


def side(block: np.ndarray, codes: Sequence[np.ndarray]) -> Side:
    """Distinct rows by block and codes."""
    key = dense([block, *codes])
    distinct, first, count = np.unique(key, return_index=True, return_counts=True)
    order = np.argsort(block[first], kind="stable")
    first, count = first[order], count[order]
    table = np.stack([c[first] for c in codes], axis=1) if codes else np.zeros((distinct.size, 0), np.int64)
    return Side(block[first], table, count.astype(np.int64))


def dense(columns: Sequence[np.ndarray]) -> np.ndarray:
    """int64[n] codes, equal exactly if all columns are."""
    key = np.zeros(columns[0].size if columns else 0, np.int64)
    span = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if span * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
            span = int(key.max(initial=0)) + 1
        if span * width >= 2**62:
            column = np.unique(column, return_inverse=True)[1].reshape(-1)
            width = int(column.max(initial=0)) + 1
        key = key * width + column
        span *= width
    return key


def pairs(left: Side, right: Side, columns: Sequence[ColumnPair]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All (original, published) pairs within a block in which the published tuple covers the original, in batches."""
    blocks = np.unique(right.block)
    l0, l1 = np.searchsorted(left.block, blocks), np.searchsorted(left.block, blocks, side="right")
    r0, r1 = np.searchsorted(right.block, blocks), np.searchsorted(right.block, blocks, side="right")
    size = (l1 - l0) * (r1 - r0)
    small = np.flatnonzero(size <= SMALL)
    part = np.cumsum(size[small]) // AT_ONCE
    for number in np.unique(part):
        here = small[part == number]
        yield _filter(*_product(l0[here], l1[here], r0[here], r1[here]), left, right, columns)
    for b in np.flatnonzero(size > SMALL).tolist():
        yield from _large(left, right, columns, (int(l0[b]), int(l1[b])), (int(r0[b]), int(r1[b])))


def _product(l0: np.ndarray, l1: np.ndarray, r0: np.ndarray, r1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every (i, k) with l0 <= i < l1 and r0 <= k < r1, block by block."""
    size, wide = (l1 - l0) * (r1 - r0), r1 - r0
    block = np.repeat(np.arange(size.size), size)
    at = np.arange(block.size) - np.repeat(np.cumsum(size) - size, size)
    return l0[block] + at // wide[block], r0[block] + at % wide[block]


def _filter(
    i: np.ndarray, k: np.ndarray, left: Side, right: Side, columns: Sequence[ColumnPair]
) -> tuple[np.ndarray, np.ndarray]:
    # columns with more values first, because they usually exclude more pairs
    for j in sorted(range(len(columns)), key=lambda j: -columns[j].values):
        good = columns[j].covers(right.code[:, j][k], left.code[:, j][i])
        i, k = i[good], k[good]
    return i, k


def _large(
    left: Side, right: Side, columns: Sequence[ColumnPair], mine: tuple[int, int], theirs: tuple[int, int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pairs of a large block: from a column in which a published tuple covers few original ones, or by bit sets."""
    run = _runs(left, right, columns, mine, theirs)
    size = run.end - run.begin
    tokens = sum(np.unique(right.code[theirs[0] : theirs[1], j]).size for j in range(len(columns)))
    # A bit set takes a look at every original tuple, once for each token; a pair of a run takes a few.
    few = size * (PAIR * (theirs[1] - theirs[0])) <= tokens * (mine[1] - mine[0])
    here = np.flatnonzero(few)
    for some in np.split(here, np.flatnonzero(np.diff(np.cumsum(size[here]) // AT_ONCE)) + 1):
        which = np.repeat(some, size[some])
        inside = np.arange(which.size) - np.repeat(np.cumsum(size[some]) - size[some], size[some])
        i = mine[0] + run.order[run.column[which], run.begin[which] + inside]
        yield _filter(i, theirs[0] + which, left, right, columns)
    yield from _by_bits(left, right, columns, mine, theirs[0] + np.flatnonzero(~few))


class _Runs(NamedTuple):
    """For each published tuple k of a block, the original tuples that one column leaves: those at
    order[column[k], begin[k]:end[k]].

    order  int64[d, n]  the original tuples of the block by their code in each column
    """

    order: np.ndarray
    column: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def _runs(
    left: Side, right: Side, columns: Sequence[ColumnPair], mine: tuple[int, int], theirs: tuple[int, int]
) -> _Runs:
    """The shortest runs, over the columns in which the token covers an interval alone. O(d (n + k) log n)."""
    code, token = left.code[mine[0] : mine[1]], right.code[theirs[0] : theirs[1]]
    n, many = code.shape[0], token.shape[0]
    order, none = np.argsort(code, axis=0, kind="stable").T, np.zeros(many, np.int64)
    best = _Runs(order, none, none.copy(), np.full(many, n))
    for j, c in enumerate(columns):
        rising = code[order[j], j]
        first, after = (np.searchsorted(c.keys, (token[:, j] + more) * np.int64(c.values)) for more in (0, 1))
        begin = np.searchsorted(rising, c.low[token[:, j]])
        end = np.maximum(np.searchsorted(rising, c.high[token[:, j]], "right"), begin)
        shorter = (first == after) & (end - begin < best.end - best.begin)
        best.column[shorter], best.begin[shorter], best.end[shorter] = j, begin[shorter], end[shorter]
    return best


def _by_bits(
    left: Side, right: Side, columns: Sequence[ColumnPair], mine: tuple[int, int], theirs: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pairs of some published tuples, int64[k], by bit sets of original tuples per token, intersected."""
    code = left.code[mine[0] : mine[1]]
    n = code.shape[0]
    masks: dict[tuple[int, int], np.ndarray] = {}
    trivial = [set(np.flatnonzero((c.low == 0) & (c.high == c.values - 1)).tolist()) for c in columns]

    def mask(j: int, token: int) -> np.ndarray:
        found = masks.get((j, token))
        if found is None:
            if len(masks) * n > 1 << 31:
                masks.clear()
            found = masks[j, token] = np.packbits(columns[j].covered(token)[code[:, j]])
        return found

    some: list[np.ndarray] = []
    whose: list[int] = []
    held = 0
    for k in theirs.tolist():
        bits: np.ndarray | None = None
        for j, token in enumerate(right.code[k].tolist()):
            if token not in trivial[j]:
                bits = mask(j, token) if bits is None else bits & mask(j, token)
        inside = np.arange(n) if bits is None else _set_bits(bits)
        some.append(mine[0] + inside)
        whose.append(k)
        held += inside.size
        if held > AT_ONCE:
            yield np.concatenate(some), np.repeat(whose, [s.size for s in some])
            some, whose, held = [], [], 0
    if some:
        yield np.concatenate(some), np.repeat(whose, [s.size for s in some])


def _set_bits(bits: np.ndarray) -> np.ndarray:
    """Ascending indexes of the set bits; only nonzero bytes are unpacked."""
    used = np.flatnonzero(bits.view(np.int8).astype(bool))
    at, bit = np.nonzero(np.unpackbits(bits[used]).reshape(-1, 8).view(bool))
    found: np.ndarray = used[at] * 8 + bit
    return found


def assignable(
    left: Side,
    right: Side,
    columns: Sequence[ColumnPair],
    keep: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> bool:
    """Whether every original row can be matched to a different published row of its block that covers it.

    keep  a further condition on (original tuples, published tuples): returns a bool for each pair
    Exact. O(edges) to build, then a maximum flow on the edges that forced choices leave.
    """
    if left.count.sum() != right.count.sum() or not np.array_equal(np.unique(left.block), np.unique(right.block)):
        return False
    found = list(pairs(left, right, columns))
    i = np.concatenate([f[0] for f in found]) if found else np.zeros(0, np.int64)
    k = np.concatenate([f[1] for f in found]) if found else np.zeros(0, np.int64)
    if keep is not None:
        good = keep(left.code[i], right.code[k])
        i, k = i[good], k[good]
    return flows(i, k, left.count, right.count)


def flows(i: np.ndarray, k: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> bool:
    """Whether supply int64[n] can flow to demand int64[m], of equal total, along edges (i, k).

    Method as in ``assignable``.
    """
    left = leaves_matched(i, k, supply.copy(), demand.copy())
    return left is not None and saturates(*left)


def leaves_matched(
    i: np.ndarray, k: np.ndarray, supply: np.ndarray, demand: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Remove tuples with one remaining edge, in rounds; None if a tuple can't be matched completely."""
    for _ in range(1000):
        live = (supply[i] > 0) & (demand[k] > 0)
        i, k = i[live], k[live]
        by_left = np.bincount(i, minlength=supply.size)
        by_right = np.bincount(k, minlength=demand.size)
        if (supply[by_left == 0] > 0).any() or (demand[by_right == 0] > 0).any():
            return None
        forced = by_right[k] == 1
        if forced.any():
            np.subtract.at(supply, i[forced], demand[k[forced]])
            demand[k[forced]] = 0
        else:
            forced = by_left[i] == 1
            if not forced.any():
                break
            np.subtract.at(demand, k[forced], supply[i[forced]])
            supply[i[forced]] = 0
        if (supply < 0).any() or (demand < 0).any():
            return None
    return i, k, supply, demand


def saturates(i: np.ndarray, k: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> bool:
    """Whether the maximum flow along edges (i, k) meets all demand."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    if not demand.any():
        return not supply.any()
    if int(demand.sum()) >= 2**31:
        raise OverflowError("a table of more than 2^31 rows")
    lefts, i = np.unique(i, return_inverse=True)
    rights, k = np.unique(k, return_inverse=True)
    if supply[lefts].sum() != supply.sum() or demand[rights].sum() != demand.sum():
        return False
    supply, demand = supply[lefts], demand[rights]
    n, m = lefts.size, rights.size
    source, sink = n + m, n + m + 1
    tail = np.concatenate([i.reshape(-1), np.full(n, source), n + np.arange(m)])
    head = np.concatenate([n + k.reshape(-1), np.arange(n), np.full(m, sink)])
    room = np.concatenate([np.minimum(supply[i], demand[k]).reshape(-1), supply, demand]).astype(np.int32)
    graph = coo_matrix((room, (tail, head)), shape=(sink + 1, sink + 1)).tocsr()
    return bool(maximum_flow(graph, source, sink).flow_value == demand.sum())


Shares = tuple[Mapping[str, float], float | None]  # per column of ranges or sets, and of any of them


def exposure(columns: Sequence[ColumnPair], claimed: Shares, widened: Collection[str]) -> Finding:
    """Whether the certified shares of exposed groups are possible: at least the minimum that the two tables imply.

    widened  columns whose ranges end on a grid, so that no row need have the end as its value

    A value of c rows that m groups show occurs in each at least once. So in at least 2 m - c groups, only one row has
    it. The release doesn't reveal which rows are in which group, so this is a lower bound. O(n log n) for n rows.
    """
    shares, anywhere = claimed
    _, at, group = np.unique(dense([c.after for c in columns]), return_index=True, return_inverse=True)
    groups = int(group.max()) + 1 if group.size else 0
    least = {c.name: _least(c, c.after[at]) for c in columns if c.name in shares and c.name not in widened}
    if shares and max(shares.values()) > (anywhere or 0.0) + 1e-9:
        return Finding("exposed", False, "one column is certified to expose more groups than all of them", CONSISTENT)
    for name, found in [*least.items(), ("", max(least.values(), default=0))]:
        stated = shares[name] if name else (anywhere or 0.0)
        if found > stated * groups + 1e-6:
            where = f" of column {name!r}" if name else ""
            text = f"at least {found} of {groups} groups show a value{where} that one of their rows holds"
            return Finding("exposed", False, f"{text}; {stated:.6g} certified")
    text = f"{max(least.values(), default=0)} groups at least show a value that one of their rows holds, as certified"
    return Finding("exposed", True, text if shares else "no range or set shows one", CONSISTENT)


def _least(column: ColumnPair, token: np.ndarray) -> int:
    """Least number of groups, by their tokens, that show a value that only one of their rows has."""
    held = np.bincount(column.before, minlength=column.values)
    read = ~(column.star | column.blank)[token]
    low, high = column.low[token], column.high[token]
    ranged = read & (low < high) & (column.same[token] < 0)
    shown = np.bincount(np.concatenate([low[ranged], high[ranged]]), minlength=column.values)
    most = 2
    if column.keys.size:
        listed = np.bincount(column.keys // column.values, minlength=column.star.size)
        sets = np.bincount(token[read & (listed[token] > 1)], minlength=column.star.size)
        shown = shown + np.bincount(
            column.keys % column.values, weights=sets[column.keys // column.values], minlength=column.values
        ).astype(np.int64)
        most = max(most, int(listed.max()))
    alone = int(np.maximum(2 * shown - held, 0)[shown > 0].sum())
    return math.ceil(alone / most)


def order_of_rows(mine: np.ndarray, theirs: np.ndarray, columns: Sequence[ColumnPair], order: str) -> Finding:
    """Whether the order of published rows agrees with a certificate that states that they were shuffled, or kept.

    mine, theirs  int64[n]: what rows of the original and of the release must have in common, in the order of each table
    columns       the other columns
    order         the certified one: "kept", or what shuffled the rows

    A published row fits at its place if it covers the original's row there. Shuffled rows fail if so many fit that a
    shuffle reaches this with a probability below ``BY_CHANCE``. O(n log n).
    """
    fits = mine == theirs
    for c in columns:
        fits &= c.covers(c.after, c.before)
    text = f"{int(fits.sum()):,} of {fits.size:,} rows fit the original's row at their place"
    if order == "kept":
        return Finding("order of the rows", True, f"kept, as certified; {text}", CONSISTENT if fits.all() else STATED)
    at = _exchangeable(dense([theirs, *(c.after for c in columns)]))
    most = np.bincount(theirs[at], minlength=int(mine.max(initial=-1)) + 1)[mine[at]]
    for c in columns:
        most = np.minimum(most, c.covering(c.after[at])[c.before[at]])
    if log_chance(int(fits[at].sum()), most) >= math.log(BY_CHANCE):
        return Finding("order of the rows", True, f"certified as shuffled; {text}, which can be chance", CONSISTENT)
    text += f", and of shuffled rows so many do less than once in {1 / BY_CHANCE:,.0f} times"
    return Finding("order of the rows", False, f"certified as shuffled, but {text}")


def _exchangeable(line: np.ndarray) -> np.ndarray:
    """Places whose rows are in an order that is as likely as any other, if rows were shuffled.

    line  int64[n]: a number for each row, the same for equal rows

    If equal rows are apart somewhere, each row was shuffled alone. Otherwise, an engine may have ordered rows by a hash
    of their contents. Then only those contents can change places that have equally many rows; the most frequent number
    is taken, and the first place of each content.
    """
    contents, first, rows = np.unique(line, return_index=True, return_counts=True)
    if np.count_nonzero(np.diff(line)) + 1 > contents.size:
        return np.arange(line.size)
    return np.sort(first[rows == np.bincount(rows).argmax()]) if line.size else first


def log_chance(fitting: int, most: np.ndarray) -> float:
    """An upper bound of the logarithm of the probability that at least so many rows fit if their order is random.

    most  int64[n]: for each place, at least as many rows as fit there

    Of the n! orders, at most the product of (r!)^(1/r) over some places, times (n!)^(1/n) for each other place, fit at
    all these places, if r of the rows fit at a place (Bregman 1973, of the permanent of a matrix of zeros and ones). So
    the probability that these places fit is at most the product of q = (r!)^(1/r) / (n!)^(1/n), as if each place fitted
    with probability q and alone. This bounds all moments, so Chernoff's bound for such places holds here, too.
    """
    n = most.size
    if not fitting:
        return 0.0
    mean = np.cumsum(np.log(np.arange(1, n + 1))) / np.arange(1, n + 1)  # ln(r!) / r
    q = float(np.where(most > 0, np.exp(mean[np.clip(most, 1, n) - 1] - mean[-1]), 0.0).mean())
    share = fitting / n
    if share <= q or not q:
        return 0.0 if q else -math.inf
    apart = share * math.log(share / q)
    return -n * (apart + (1 - share) * math.log((1 - share) / (1 - q)) if share < 1 else apart)
