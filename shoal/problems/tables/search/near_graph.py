"""Which cells are near which, for a search to look for near groups, and blocks of near groups to search apart."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np

from shoal.problems.interrupts import Workers, flag
from shoal.problems.tables.search.row_groups import Rows

WIDTH = 24  # neighbors kept of every cell
REACH = (10, 24)  # least and most places looked at on each side in an order
ORDERS = (2, 8)  # least and most orders
PASSES = 2  # of the descent, at most


def neighbor_graph(rows: Rows, seed: int, looks: float) -> np.ndarray:
    """Near cells of every cell, nearest first, int32[m, w], -1 after the last.

    looks  pairs of cells it should compare for every cell, about; at least those of two orders are

    Nearest neighbor descent (Dong, Moses, Li 2011) from cells that stand near each other when sorted by the columns
    in a few random orders.  O(m log m + m looks d).
    """
    from shoal.kernels.tables.near_graph import descend, windows

    leaf, quasi = rows.leaf, rows.histogram.quasi
    m, d = quasi.shape
    if not m:
        return np.zeros((0, 0), np.int32)
    random = np.random.default_rng([seed, 11])
    orders = int(np.clip(looks / (4 * REACH[1]), *ORDERS))
    reach = int(np.clip(looks / (2 * orders), *REACH))
    passes = int(np.clip((looks - 2 * reach * orders) / (WIDTH * WIDTH / 2), 0, PASSES))
    order = np.stack([np.lexsort([quasi[:, j] for j in random.permutation(d)]) for _ in range(orders)])
    rank = np.empty_like(order)
    for o in range(orders):
        rank[o, order[o]] = np.arange(m)
    near, far = np.empty((m, WIDTH), np.int32), np.empty((m, WIDTH))
    workers = os.cpu_count() or 1
    parts = list(pairwise(np.linspace(0, m, 4 * workers + 1).astype(np.int64)))

    stop = flag()

    def start(part: tuple[int, int]) -> None:
        if not stop.is_set():
            windows(rows.slots, leaf, order, rank, reach, part[0], part[1], near, far)

    def better(part: tuple[int, int]) -> None:
        if not stop.is_set():
            descend(rows.slots, leaf, old, part[0], part[1], near, far, np.full(m, -1, np.int32))

    with Workers(workers) as pool:
        list(pool.map(start, parts))
        for _ in range(passes):
            old = near.copy()
            list(pool.map(better, parts))
    return near


def deal(rows: Rows, group: np.ndarray, count: int, seed: list[int]) -> list[np.ndarray]:
    """Rows of each block, int64, rising: groups are halved by which of two random groups they are nearer to, again and
    again, until there are ``count`` blocks of about equal size."""
    from shoal.kernels.tables.near_graph import between

    if count == 1:
        return [np.arange(group.size)]
    random = np.random.default_rng(seed)
    state = rows.states(group)
    size = np.bincount(group, minlength=state.shape[0])
    block = np.empty(state.shape[0], np.int64)
    waiting, made = [(np.arange(state.shape[0]), count)], 0
    while waiting:
        groups, pieces = waiting.pop()
        if pieces == 1 or groups.size < 2:
            block[groups] = made
            made += 1
            continue
        one, other = random.choice(groups.size, 2, replace=False)
        nearer = between(rows.slots, state[groups], one, other)
        order = np.lexsort((random.random(groups.size), nearer))
        left = pieces // 2
        filled = np.cumsum(size[groups[order]])
        cut = int(np.clip(1 + np.searchsorted(filled, filled[-1] * left / pieces), 1, groups.size - 1))
        waiting.append((groups[order[:cut]], left))
        waiting.append((groups[order[cut:]], pieces - left))
    of_row = block[group]
    by_block = np.argsort(of_row, kind="stable")
    edges = np.searchsorted(of_row[by_block], np.arange(made + 1))
    return [by_block[a:b] for a, b in pairwise(edges) if b > a]
