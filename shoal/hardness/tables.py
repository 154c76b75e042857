"""Tables whose least number of stars answers a hard question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError
from shoal.hardness.instances import Sizes, Table
from shoal.hardness.sources import ThreePartition, Tripartite, Triples, TwoPartition, exact_cover


def anonymity_27(source: Triples) -> Table:
    """Max 3DM with at most three tuples per element to 3-anonymity over 27 columns.

    Blocki and Williams 2010, Theorem 1.2.  A row per element, a column per (i, j, k) in 1..3 cubed: a row of the first
    set carries its i-th tuple there, one of the second its j-th, one of the third its k-th; fresh symbols fill up
    elements of fewer tuples.  Three rows share a symbol in one column exactly when they are a tuple, other groups in
    none, so every tuple of a matching saves three stars: the least number is 81 n - 3 times the largest matching.
    (The paper allows sets of different sizes and then leaves one or two rows over; here all have n elements.)
    """
    if source.dimension != 3:
        raise InputError(f"this reduction is from triples, not tuples of {source.dimension}")
    fresh = len(source.triples)
    rows = []
    for part in range(3):
        for element in range(source.n):
            own = source.occurrences(part, element)
            if len(own) > 3:
                raise InputError(f"element {element} of set {part} is in {len(own)} triples, more than three")
            while len(own) < 3:
                own.append(fresh)
                fresh += 1
            rows.append([own[(i, j, k)[part]] for i in range(3) for j in range(3) for k in range(3)])
    size = len(source.largest_matching())
    return Table(
        rows=np.array(rows, np.int64),
        sensitive=np.zeros((3 * source.n, 0), np.int64),
        k=3,
        target=78 * source.n,
        optimum=81 * source.n - 3 * size,
        answer=size == source.n,
        source=source,
    )


def incidence(edges: Sequence[tuple[int, int]], vertices: int) -> np.ndarray:
    """A row per edge, a column per vertex, 1 where the edge ends there: int64[m, n]."""
    table = np.zeros((len(edges), vertices), np.int64)
    for row, (u, v) in enumerate(edges):
        table[row, [u, v]] = 1
    return table


def binary_anonymity(edges: Sequence[tuple[int, int]]) -> Table:
    """Partition of a graph's edges into triangles and 4-stars to 3-anonymity over binary columns.

    Blocki and Williams 2010, Appendix C, after Aggarwal et al. 2005: the incidence matrix.  Three edges of a simple
    graph disagree on three vertices if they form a triangle or share one end (a 4-star has four vertices, three edges),
    on more otherwise, and larger groups on more still: 3 m stars are enough exactly if the edges can be split so.
    """
    listed = [(int(u), int(v)) for u, v in edges]
    if len({frozenset(e) for e in listed}) != len(listed) or any(u == v for u, v in listed):
        raise InputError("the graph must be simple: no loops and no edge twice")
    parts = exact_cover(len(listed), triples_of_edges(listed))
    return Table(
        rows=incidence(listed, 1 + max(max(e) for e in listed)),
        sensitive=np.zeros((len(listed), 0), np.int64),
        k=3,
        target=3 * len(listed),
        answer=parts is not None,
        source=tuple(listed),
    )


def triples_of_edges(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """All triples of edges (as indices) that share an end, and all that form a triangle."""
    at: dict[int, list[int]] = {}
    number = {frozenset(e): i for i, e in enumerate(edges)}
    for i, (u, v) in enumerate(edges):
        at.setdefault(u, []).append(i)
        at.setdefault(v, []).append(i)
    found: set[tuple[int, int, int]] = set()
    for own in at.values():
        for a, i in enumerate(own):
            for b, j in enumerate(own[a + 1 :], a + 1):
                found.update((i, j, k) for k in own[b + 1 :])
                third = number.get(frozenset(edges[i]) ^ frozenset(edges[j]))
                if third is not None:
                    found.add(tuple(sorted((i, j, third))))  # type: ignore[arg-type]
    return sorted(found)


def diversity_three_columns(source: Tripartite) -> Table:
    """Triangle partition of a tripartite graph to 2-diversity over binary columns with three binary sensitive columns.

    Blocki and Williams 2010, Theorem 1.6: the incidence matrix, and sensitive column j tells whether the edge has an
    end in part j.  Three stars a row suffice exactly for triangles.  The paper's Definition 1 asks that l rows of a
    group pairwise differ in all sensitive columns, which no triangle's do; the theorem holds for the reading that each
    sensitive column by itself has l values in every group, and that is the reading meant here.
    """
    m = len(source.edges)
    has = [[int(j in (source.part[u], source.part[v])) for j in range(3)] for u, v in source.edges]
    return Table(
        rows=incidence(source.edges, len(source.part)),
        sensitive=np.array(has, np.int64).reshape(m, 3),
        l=2,
        target=3 * m,
        answer=source.triangles() is not None,
        source=source,
    )


def diversity_one_column(source: Tripartite) -> Table:
    """Triangle partition of a tripartite graph to 3-diversity over binary columns with one ternary sensitive column.

    Blocki and Williams 2010, Theorem 1.7: as above, and the sensitive value is the part in which the edge has no end.
    """
    m = len(source.edges)
    missed = [3 - source.part[u] - source.part[v] for u, v in source.edges]
    return Table(
        rows=incidence(source.edges, len(source.part)),
        sensitive=np.array(missed, np.int64).reshape(m, 1),
        l=3,
        target=3 * m,
        answer=source.triangles() is not None,
        source=source,
    )


def diversity_by_matching(source: Triples, m: int) -> Table:
    """l-dimensional matching to frequency l-diversity with m sensitive values, any l n >= m >= l >= 3.

    Xiao, Yi, Tao 2010, Theorem 4.7.  A row per element and a column per tuple: 0 where the tuple holds the element, the
    row's sensitive value elsewhere.  Rows of different sets have different sensitive values.  A column that a group
    keeps must be 0 throughout, so the group is one tuple: l n (d - 1) stars are enough exactly for a perfect matching.
    The paper spells l = 3 out; here set 1, then 2, ... gets as many values as m allows, the rest of a set shares one.
    """
    l, n, d = source.dimension, source.n, len(source.triples)
    if not l <= m <= l * n:
        raise InputError(f"m is {m}; with {l} sets of {n} elements it must lie within {l}..{l * n}")
    rows, sensitive, used = [], [], 0
    for part in range(l):
        distinct = min(n, m - used - (l - 1 - part))
        for element in range(n):
            value = 1 + used + min(element, distinct - 1)
            sensitive.append(value)
            rows.append([0 if t[part] == element else value for t in source.triples])
        used += distinct
    return Table(
        rows=np.array(rows, np.int64),
        sensitive=np.array(sensitive, np.int64)[:, None],
        l=l,
        target=l * n * (d - 1),
        answer=len(source.largest_matching()) == n,
        source=source,
    )


def bin_covering(source: ThreePartition) -> Sizes:
    """3-Partition to min-max bin covering with k = B: Du, Eppstein, Goodrich, Lueker 2009, Theorem 5.

    All bins weigh B exactly if there is a partition, and then m bins do; otherwise the largest bin is above B.
    """
    return Sizes(
        sizes=np.array(source.weights, np.int64),
        k=source.bound,
        target=source.bound,
        answer=source.solution() is not None,
        source=source,
    )


def bins_in_binary(source: TwoPartition) -> Sizes:
    """Partition to min-max bin covering with k half the sum: k if the weights can be halved, else one bin of 2 k.

    So no factor below 2 is polynomial where sizes are written in binary, unless P = NP: the first half of Theorem 6 of
    Du, Eppstein, Goodrich, Lueker 2009, which leaves the proof to a preprint.  Two bins of at least half the sum hold
    half the sum each.
    """
    k = sum(source.weights) // 2
    answer = source.solution() is not None
    return Sizes(
        sizes=np.array(source.weights, np.int64),
        k=k,
        target=k,
        answer=answer,
        optimum=k if answer else 2 * k,
        otherwise=2 * k,
        source=source,
    )


def bins_in_unary(source: ThreePartition, lift: int = 25) -> Sizes:
    """3-Partition to min-max bin covering with every weight lifted by M = ``lift`` B, and k = 3 M + B.

    If there is a partition the largest bin holds k, else at least 4 M and the four least weights: 4 lift / (3 lift + 1)
    times k, which is as near to 4/3 as one likes.  3-Partition being strongly NP-hard, no smaller factor is polynomial
    even where sizes are written in unary, unless P = NP: the second half of Theorem 6 of Du, Eppstein, Goodrich, Lueker
    2009, which leaves the proof to a preprint.  Two items never fill a bin: 2 M + B < k.  So if no bin holds four, all
    hold three, and there are m of them, whose sum is m k and each of which is at least k: each is k.
    """
    if lift < 1:
        raise InputError(f"lift is {lift}; two items must not fill a bin, so it is at least 1")
    high = lift * source.bound
    sizes = np.array(source.weights, np.int64) + high
    return Sizes(
        sizes=sizes,
        k=3 * high + source.bound,
        target=3 * high + source.bound,
        answer=source.solution() is not None,
        otherwise=int(np.sort(sizes)[:4].sum()),
        source=source,
    )
