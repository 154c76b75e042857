"""Neighborhood search: near groups are dissolved and regrouped, and results that don't cost more are kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit
from shoal.kernels.tables.eligible import Slots, join, joined
from shoal.kernels.tables.near_groups import (
    GroupRequirement,
    Near,
    draw,
    drop,
    few,
    fits,
    forget,
    grow,
    number,
    put,
    refresh,
)

TINY = 1e-10  # relative tolerance of compared sums
DRAWS = 200  # rows drawn until one loses anything
PLAIN = 0.3  # share of neighborhoods that start anywhere, because a group without loss may have what others lack
NO_LOSS = 1e-12  # losses below this are zero up to rounding
AT_ONCE = 12  # near groups searched for; between one and all of them are dissolved with the first


@njit(**LEAN_INNER)
def to_a_local_optimum(slots, near, groups):
    """Move or swap rows between groups while that lowers the loss; every group stays eligible.

    The loss of a group without a row is a lower bound of its loss with another row instead, so most pairs of rows need
    no join. Two rows that were examined are examined again only if one of their groups has changed.
    """
    r = near.group.size
    near.looked[:] = 0
    near.changed[:groups] = 1
    quiet, x = 0, 0
    # For each row x: the best move to another group, then the best swap with another row, until a full round finds
    # nothing.
    for turn in range(2, 200 * r + 2):
        if quiet >= r:
            break
        a = near.group[x]
        n, old = near.size[a], near.price[a]
        before, rest = near.looked[x], n * near.without[x]
        near.looked[x] = turn
        best, partner, target = 0.0, -1, -1
        if n > near.k[0] and fits(near, near.rules, a, x, -1):
            gain = n * old - (n - 1) * near.without[x]
            for b in range(groups):
                if b == a or before > max(near.changed[a], near.changed[b]):
                    continue
                m = near.size[b]
                if near.price[b] - gain >= best:
                    continue
                limit = (best + gain + m * near.price[b]) / (m + 1)
                change = (m + 1) * joined(slots, near.state[b], near.leaf[x], limit) - m * near.price[b] - gain
                if change < best - TINY * (1.0 + gain) and fits(near, near.rules, b, -1, x):
                    best, partner, target = change, -1, b
        for y in range(r):
            b = near.group[y]
            if b == a:
                continue
            m = near.size[b]
            work = best + n * old + m * near.price[b]
            work -= TINY * (1.0 + work)  # partial sums may round to the limit itself
            other = m * near.without[y]
            if rest + other >= work or max(before, near.looked[y]) > max(near.changed[a], near.changed[b]):
                continue
            change = n * joined(slots, near.rest[x], near.leaf[y], (work - other) / n)
            if change + other >= work:
                continue
            change += m * joined(slots, near.rest[y], near.leaf[x], (work - change) / m)
            if change < work and fits(near, near.rules, a, x, y) and fits(near, near.rules, b, y, x):
                best, partner, target = change - n * old - m * near.price[b], y, b
        if target < 0:
            quiet += 1
        else:
            quiet = 0
            drop(near, x)
            if partner >= 0:
                drop(near, partner)
                put(near, partner, a)
            put(near, x, target)
            for g in (a, target):
                refresh(slots, near, g)
                forget(near, near.rules, g)
                near.changed[g] = turn
        x = x + 1 if x + 1 < r else 0


class RowsByCell(NamedTuple):
    """The rows of the table, cell after cell.

    leaf int64[n, t]; cell int64[n]: ascending from 0, first int64[cells + 1]: the first row of each cell
    near_cell int32[cells, w]: other cells, nearest first, -1 for none: candidates for near groups
    sensitive int64[n, s]: numbered 0 .. n-1 at most, or as rules number them
    """

    leaf: np.ndarray
    cell: np.ndarray
    first: np.ndarray
    near_cell: np.ndarray
    sensitive: np.ndarray


class SearchWorkspace(NamedTuple):
    """Working arrays of the search, for n rows and at most g groups, with ``most`` rows dissolved at once.

    group int64[n]: label of each row;  head, size int64[g], following int64[n]: the rows of each group as a linked list
    state int64[g, t]; price float64[g]: loss of one row
    chosen int64[c + 1], distance float64[c]: the nearest groups; who, before int64[most]: the dissolved rows and the
    group of each; random uint64[1]
    """

    group: np.ndarray
    head: np.ndarray
    following: np.ndarray
    size: np.ndarray
    state: np.ndarray
    price: np.ndarray
    chosen: np.ndarray
    distance: np.ndarray
    who: np.ndarray
    before: np.ndarray
    random: np.ndarray
    heat: np.ndarray


class Turns(NamedTuple):
    """The neighborhoods that a search tries.

    steps int64, seed uint64: their number, the random seed
    most  int64: rows dissolved at once; larger groups aren't dissolved
    heat  float64: temperature: an increase of the loss by this much is accepted with probability 1/e
    """

    steps: int
    seed: np.uint64
    most: int
    heat: float


def improve(
    slots: Slots,
    rows: RowsByCell,
    asked: GroupRequirement,
    group: np.ndarray,
    groups: int,
    turns: Turns,
) -> float:
    """Neighborhood search by simulated annealing: dissolve near groups, regroup their rows, and descend.

    group int64[n]: labels below groups, updated; every given group must meet the requirement, and so does every result
    returns the change of the loss, at most 0 if heat is 0. Space O(n t), time O(steps (n + most^2) t).

    Python allocates the working arrays, because a kernel without allocations compiles in three quarters of the time.
    """
    n, width = rows.leaf.shape
    need = int(max([asked.k, *asked.frequency, *asked.distinct]))
    held, most = groups + n // need + 1, turns.most
    work = SearchWorkspace(
        group, np.full(held, -1, np.int64), np.empty(n, np.int64), np.zeros(held, np.int64),
        np.empty((held, width), np.int64), np.zeros(held), np.empty(AT_ONCE + 1, np.int64), np.empty(AT_ONCE),
        np.empty(most, np.int64), np.empty(most, np.int64), np.array([turns.seed | np.uint64(1)], np.uint64),
        np.array([turns.heat]),
    )  # fmt: skip
    big = few(most, max(AT_ONCE, most // need) + 1, width, asked)
    return _improve(slots, rows, need, turns.steps, work, big)


@njit(**LEAN_INNER)
def _chained(slots, rows, work):
    """Compute linked lists, states, and prices of the given groups."""
    for x in range(work.group.size):
        g = work.group[x]
        for t in range(rows.leaf.shape[1]):
            a = rows.leaf[x, t]
            work.state[g, t] = a if work.size[g] == 0 else join(slots, t, work.state[g, t], a)
        work.following[x] = work.head[g]
        work.head[g] = x
        work.size[g] += 1
    for g in range(work.size.size):
        if work.size[g]:
            work.price[g] = joined(slots, work.state[g], work.state[g], np.inf)


@njit(**LEAN_INNER)
def _keep(work, found, g, far):
    """Insert group g among the nearest found, sorted; returns their number. O(nearest)."""
    y = -1
    for z in range(found):
        if work.chosen[z] == g:
            y = z
            break
    if y >= 0:
        if work.distance[y] <= far:
            return found
    elif found < work.distance.size:
        y = found
        found += 1
    else:
        y = found - 1
    while y > 0 and work.distance[y - 1] > far:
        work.distance[y], work.chosen[y] = work.distance[y - 1], work.chosen[y - 1]
        y -= 1
    work.distance[y], work.chosen[y] = far, g
    return found


@njit(**LEAN_INNER)
def _nearest(slots, rows, work, x0, largest):
    """The nearest groups to that of row x0, with at most ``largest`` rows each; returns their number.

    Distance is the loss together, randomly increased by up to 30 %. It is computed between two rows, a group and a row,
    or two groups, at random. Candidates are the cells near the row's own, or near all rows of its group.
    """
    g0, random = work.group[x0], work.random
    found = 0
    kind = draw(random)
    by_rows, wide = kind < 0.5, kind > 0.75
    middle = work.state[g0] if wide else rows.leaf[x0]
    source = work.head[g0] if wide else x0
    # The groups of rows in the cells near the row's cell, or near those of all rows in its group; the nearest are kept.
    while source >= 0:
        for q in range(-1, rows.near_cell.shape[1]):
            c = rows.cell[source] if q < 0 else np.int64(rows.near_cell[rows.cell[source], q])
            if c < 0:
                continue
            held = rows.first[c + 1] - rows.first[c]
            x = rows.first[c] + (int(draw(random) * held) if held > 4 else 0)
            for _ in range(min(held, 4)):
                g = work.group[x]
                far_of = x
                x = x + 1 if x + 1 < rows.first[c + 1] else rows.first[c]
                if g == g0 or work.size[g] > largest:
                    continue
                limit = work.distance[found - 1] if found == work.distance.size else np.inf
                far = joined(slots, rows.leaf[far_of] if by_rows else work.state[g], middle, limit)
                if far > limit:
                    continue
                far *= 1.0 + 0.3 * draw(random)
                if far < limit:
                    found = _keep(work, found, g, far)
        source = work.following[source] if wide else -1
    return found


@njit(**LEAN_INNER)
def _ungrouped(work, near_by, most):
    """The rows of the groups listed in ``near_by``, of the first groups with at most ``most`` rows in total.

    near_by int64[p]: groups; those taken are moved to its beginning
    returns (rows, groups, their loss)
    """
    r, taken, old = 0, 0, 0.0
    for z in range(near_by.size):
        g = near_by[z]
        if r + work.size[g] > most:
            continue
        near_by[taken] = g
        old += work.size[g] * work.price[g]
        x = work.head[g]
        while x >= 0:
            work.who[r] = x
            work.before[r] = taken
            r += 1
            x = work.following[x]
        taken += 1
    return r, taken, old


@njit(**LEAN_INNER)
def _read(rows, near, who):
    """The published values and sensitive values of the dissolved rows, renumbered. O(r (t + r s))."""
    for x in range(near.group.size):
        for t in range(near.leaf.shape[1]):
            near.leaf[x, t] = rows.leaf[who[x], t]
        for j in range(near.code.shape[1]):
            near.code[x, j] = rows.sensitive[who[x], j]
            near.value[x, j] = x
            for y in range(x):
                if near.code[y, j] == near.code[x, j]:
                    near.value[x, j] = near.value[y, j]
                    break
    number(near, near.rules)


@njit(**LEAN_INNER)
def _exchange(near, before, groups, random):
    """The original groups with one to four pairs of rows exchanged."""
    r = near.group.size
    for g in range(groups):
        near.size[g] = 0
        for j in range(near.frequency.size):
            for x in range(r):
                near.held[g, j, x] = 0
        forget(near, near.rules, g)
    for x in range(r):
        put(near, x, before[x])
    swaps = 1 + int(draw(random) * 4)
    for _ in range(4 * swaps):
        x, y = int(draw(random) * r), int(draw(random) * r)
        a, b = near.group[x], near.group[y]
        if a != b and fits(near, near.rules, a, x, y) and fits(near, near.rules, b, y, x):
            drop(near, x)
            drop(near, y)
            put(near, x, b)
            put(near, y, a)
            forget(near, near.rules, a)
            forget(near, near.rules, b)
            swaps -= 1
            if swaps == 0:
                break


@njit(**LEAN_INNER)
def _put_back(near, work, taken, made):
    """Store the new groups under the labels of the dissolved ones, then under free labels."""
    free = 0
    for z in range(taken.size):
        work.size[taken[z]] = 0
        work.head[taken[z]] = -1
    for g in range(made):
        if g < taken.size:
            label = taken[g]
        else:
            while work.size[free] > 0:
                free += 1
            label = free
        work.size[label] = near.size[g]
        work.price[label] = near.price[g]
        for t in range(near.leaf.shape[1]):
            work.state[label, t] = near.state[g, t]
        for i in range(near.size[g]):
            x = work.who[near.member[g, i]]
            work.group[x] = label
            work.following[x] = work.head[label]
            work.head[label] = x


@njit(**LEAN_INNER)
def _row_with_large_loss(slots, rows, work):
    """Of three random rows the one with the largest loss; if none loses anything, draw until one does.

    A slot may have a loss of its own, such as a set of one value. A row's loss is the group's loss above that.
    """
    random, best, most = work.random, 0, -np.inf
    draws = 3 if draw(random) < PLAIN else DRAWS
    for y in range(draws):
        x = int(draw(random) * work.group.size)
        lost = work.price[work.group[x]] - joined(slots, rows.leaf[x], rows.leaf[x], np.inf)
        if lost > most:
            best, most = x, lost
        if y >= 2 and most > NO_LOSS:
            break
    return best


@njit(**LEAN)
def _improve(slots, rows, need, steps, work, big):
    """Dissolve and regroup neighborhoods of random groups, as ``improve`` documents; returns the change of the loss.

    need int64: rows of the least group;  work: ``SearchWorkspace``;  big: ``Near`` for ``most`` rows
    """
    most, random = big.group.size, work.random
    for _ in range(8):
        draw(random)
    _chained(slots, rows, work)
    gained = 0.0
    # A neighborhood is a group with a large loss and some near groups. It is regrouped from scratch or perturbed,
    # brought to a local optimum, and stored if annealing accepts it.
    for _ in range(steps):
        x0 = _row_with_large_loss(slots, rows, work)
        g0 = work.group[x0]
        if work.size[g0] > most - need:
            continue
        found = _nearest(slots, rows, work, x0, most - need)
        if found == 0:
            continue
        near_by = work.chosen[: 1 + min(found, 1 + int(draw(random) * AT_ONCE))]
        for z in range(near_by.size - 1, 0, -1):
            near_by[z] = near_by[z - 1]
        near_by[0] = g0
        r, taken, old = _ungrouped(work, near_by, most)
        if taken < 2:
            continue
        near = Near(
            big.leaf[:r], big.value[:r], big.group[:r], big.member, big.size, big.held, big.state, big.price,
            big.rest[:r], big.without[:r], big.looked[:r], big.changed, big.k, big.frequency, big.distinct, big.rules,
            big.code, big.who, big.count, big.seen, big.value_class, big.value_classes, big.known, big.far,
        )  # fmt: skip
        _read(rows, near, work.who)
        made = -1
        if draw(random) < 0.9:
            target = need
            if near.rules is not None:  # with the least size, some models leave no choice
                target += int(draw(random) * (need // 2 + 1))
            if draw(random) < 0.5:  # a multiple of l uses the full share
                for j in range(near.frequency.size):
                    target = -(-target // near.frequency[j]) * near.frequency[j]
            made = grow(slots, near, min(r // need, near.size.size), target, random)
        if made < 0:
            made = taken
            _exchange(near, work.before, taken, random)
        new = 0.0
        for g in range(made):
            refresh(slots, near, g)
            forget(near, near.rules, g)
        to_a_local_optimum(slots, near, made)
        for g in range(made):
            new += near.size[g] * near.price[g]
        more = 1e-12 if work.heat[0] <= 0.0 else -work.heat[0] * np.log(max(draw(random), 1e-300))
        if new <= old + more:
            gained += new - old
            _put_back(near, work, near_by[:taken], made)
    return gained
