"""Spanning trees of low degree, cutting a tree into parts, and Hamiltonian paths.

Graphs are as in ``areas``. A forest is ``parent`` (-1 at a root) with ``order``, its vertices in preorder. Paths are
found by rotations, insertions, and exchanges.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.regions.areas import eligible, root_of, uniform

_WIDE = 64  # from a vertex with more neighbors, take the next free edge instead of the neighbor with fewest exits


@njit(cache=True, nogil=True)
def deep_tree(indptr, indices, first, seed):
    """A depth-first forest that goes to the free neighbor with the fewest free neighbors: long paths, low degree.

    indptr   int64[n + 1], indices int64[2m]: the graph
    first    int64: start vertex
    seed     uint64: breaks ties; 0 takes the first
    returns  parent int64[n], order int64[n]

    O(sum of min(degree, 64) * degree) time, O(n) space.
    """
    n = indptr.shape[0] - 1
    state = np.empty(1, np.uint64)
    state[0] = seed
    parent = np.full(n, -1, np.int64)
    order = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    free = np.empty(n, np.int64)
    for v in range(n):
        free[v] = indptr[v + 1] - indptr[v]
    at = indptr[:-1].copy()
    stack = np.empty(n, np.int64)
    done = 0
    for start in range(n):
        root = start if start else first
        if start and start == first:
            root = 0
        if seen[root]:
            continue
        top = 0
        stack[0] = root
        seen[root] = True
        order[done] = root
        done += 1
        for e in range(indptr[root], indptr[root + 1]):
            free[indices[e]] -= 1
        # Go to the neighbor with the fewest exits, so that dead ends are used early and paths become long. A vertex
        # with many neighbors takes its first free one.
        while top >= 0:
            v = stack[top]
            best = -1
            if free[v] > 0:
                if indptr[v + 1] - indptr[v] > _WIDE:
                    while seen[indices[at[v]]]:
                        at[v] += 1
                    best = indices[at[v]]
                else:
                    least = n + 1.0
                    for e in range(indptr[v], indptr[v + 1]):
                        u = indices[e]
                        if not seen[u]:
                            key = float(free[u])
                            if seed:
                                key += 0.9 * uniform(state)
                            if key < least:
                                least = key
                                best = u
            if best < 0:
                top -= 1
                continue
            seen[best] = True
            parent[best] = v
            order[done] = best
            done += 1
            for e in range(indptr[best], indptr[best + 1]):
                free[indices[e]] -= 1
            top += 1
            stack[top] = best
    return parent, order


@njit(cache=True)
def degrees(parent):
    """int64[n]: the degree of every vertex in a forest."""
    found = np.zeros(parent.shape[0], np.int64)
    for v in range(parent.shape[0]):
        if parent[v] >= 0:
            found[v] += 1
            found[parent[v]] += 1
    return found


@njit(cache=True)
def preorder(parent):
    """int64[n]: the vertices of a forest in preorder: parents before children, subtrees contiguous."""
    n = parent.shape[0]
    head = np.full(n + 1, -1, np.int64)
    after = np.empty(n, np.int64)
    for v in range(n - 1, -1, -1):
        p = parent[v] if parent[v] >= 0 else n
        after[v] = head[p]
        head[p] = v
    order = np.empty(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    top = 0
    stack[0] = head[n]
    done = 0
    while top >= 0:
        v = stack[top]
        if v < 0:
            top -= 1
            continue
        stack[top] = after[v]
        order[done] = v
        done += 1
        top += 1
        stack[top] = head[v]
    return order


@njit(cache=True, nogil=True)
def cut(parent, order, features, need, l):
    """Cut a forest into eligible parts that are inclusion-minimal, except those merged at the roots.

    From the leaves up, a subtree is cut off when its remainder is eligible. The remainder at a root joins parts cut off
    directly below it, the lightest first, until the union is eligible (one is enough if only thresholds count).

    parent, order   the forest
    features        int64[n, t + s]: as for ``eligible``
    returns         label int64[n]; -1 in each tree that isn't eligible as a whole

    O(n (t + s)) time and space.
    """
    n, width = features.shape
    rest = features.copy()
    head = np.zeros(n, np.bool_)
    for i in range(n - 1, -1, -1):
        v = order[i]
        if eligible(rest[v], need, l):
            head[v] = True
        elif parent[v] >= 0:
            for j in range(width):
                rest[parent[v], j] += rest[v, j]
    label = np.full(n, -1, np.int64)
    count = 0
    i = 0
    # Process the trees in turn, each a slice of the order. If the root's own part is too light, it first takes the
    # lightest part below it, then any.
    while i < n:
        root = order[i]
        end = i + 1
        while end < n and parent[order[end]] >= 0:
            end += 1
        if not head[root]:
            least = -1
            label[root] = 0  # temporarily, 0 marks the root's own part
            for j in range(i + 1, end):
                v = order[j]
                if label[parent[v]] == 0:
                    if not head[v]:
                        label[v] = 0
                    elif least < 0 or rest[v, 0] < rest[least, 0]:
                        least = v
            if least >= 0:
                head[least] = False
                for f in range(width):
                    rest[root, f] += rest[least, f]
                head[root] = eligible(rest[root], need, l)
            for j in range(i + 1, end):
                v = order[j]
                label[v] = -1
                if head[v] and not head[root]:  # in preorder, the first part found is a child of the root's own part
                    head[v] = False
                    for f in range(width):
                        rest[root, f] += rest[v, f]
                    head[root] = eligible(rest[root], need, l)
            label[root] = -1
        if head[root]:
            for j in range(i, end):
                v = order[j]
                if head[v]:
                    label[v] = count
                    count += 1
                else:
                    label[v] = label[parent[v]]
        i = end
    return label


@njit(**INNER)
def _swap(parent, degree, mark, stamp, u, a, b):
    """Insert (a, b) into the tree in place of a tree edge at u on the path between them.

    False without a change if u isn't on it.
    """
    x = a
    while x >= 0:
        mark[x] = stamp
        x = parent[x]
    y = b
    while y >= 0 and mark[y] != stamp:
        y = parent[y]
    meet = y
    # Go up from both ends to the common ancestor. At u, remove its edge and reverse the path below it.
    for side in range(2):
        low = a if side == 0 else b
        high = b if side == 0 else a
        x = low
        child = -1
        while x != meet:
            if x == u:
                child = x  # remove the edge above u
            if parent[x] == u:
                child = x  # remove the edge below u
            if child >= 0:
                break
            x = parent[x]
        if child >= 0:
            degree[child] -= 1
            degree[parent[child]] -= 1
            back = high
            v = low
            while True:  # re-root the subtree of ``child`` at ``low``
                above = parent[v]
                parent[v] = back
                if v == child:
                    break
                back = v
                v = above
            degree[a] += 1
            degree[b] += 1
            return True
    return False


@njit(**LEAN_INNER)
def _queued(via, todo, done):
    """List the exchanges from todo[0] on in ``done``, each before those that need a smaller degree at its ends.

    Returns their number.
    """
    count = 0
    have = 1
    while have > 0 and count < done.shape[0] - 4:
        have -= 1
        for j in range(3):
            done[count, j] = todo[have, j]
        for j in range(1, 3):
            end = done[count, j]
            if via[end, 0] >= 0:
                todo[have, 0] = end
                todo[have, 1] = via[end, 0]
                todo[have, 2] = via[end, 1]
                have += 1
                via[end, 0] = -1
        count += 1
    return count


@njit(cache=True, nogil=True)
def reduce_degree(indptr, indices, parent, phases):
    """Exchange edges until the forest's largest degree is within one of the least possible (Fuerer, Raghavachari).

    parent   int64[n]: a spanning forest, changed in place
    phases   int64: number of improvements to try, each O(m log n) plus the exchanges' paths
    returns  bool: whether it terminated; the largest degree is then at most the least possible plus one

    Vertices of degree at least D - 1 are bad. A non-tree edge between two components of good vertices closes a cycle.
    If a vertex of degree D is on the cycle, it is improved. Vertices of degree D - 1 on it become good, because that
    edge could improve them first.
    """
    n = parent.shape[0]
    degree = degrees(parent)
    depth = np.empty(n, np.int64)
    union = np.empty(n, np.int64)
    top = np.empty(n, np.int64)
    good = np.empty(n, np.bool_)
    via = np.empty((n, 2), np.int64)
    mark = np.zeros(n, np.int64)
    todo = np.empty((2 * n + 4, 3), np.int64)
    done = np.empty((2 * n + 4, 3), np.int64)
    stamp = 0
    # A phase improves one vertex of the largest degree. It searches for an exchange while edges between components make
    # bad vertices good, and then carries out the exchange after those on which it depends.
    for _ in range(phases):
        largest = 0
        for v in range(degree.shape[0]):
            largest = max(largest, degree[v])
        if largest <= 2:
            return True
        order = preorder(parent)
        for i in range(n):
            v = order[i]
            depth[v] = depth[parent[v]] + 1 if parent[v] >= 0 else 0
            good[v] = degree[v] < largest - 1
            via[v, 0] = -1
            union[v] = v
            top[v] = v
            if good[v] and parent[v] >= 0 and good[parent[v]]:
                r = root_of(union, parent[v])
                union[v] = r
        worst = -1
        p = -1
        q = -1
        moved = True
        while moved and worst < 0:
            moved = False
            for a in range(n):
                if not good[a] or worst >= 0:
                    continue
                for e in range(indptr[a], indptr[a + 1]):
                    b = indices[e]
                    if b <= a or not good[b] or root_of(union, a) == root_of(union, b):
                        continue
                    for sweep in range(2):  # first look for a vertex of degree D; only otherwise mark the path as good
                        x = top[root_of(union, a)]
                        y = top[root_of(union, b)]
                        # Go up from both ends to where the cycle closes, from the top of one component to the next.
                        while x != y:
                            if depth[x] < depth[y]:
                                x, y = y, x
                            up = parent[x]
                            if sweep == 0:
                                if degree[x] == largest:
                                    worst = x
                                elif degree[up] == largest:
                                    worst = up
                                if worst >= 0:
                                    break
                            else:
                                for v in (x, up):
                                    if not good[v]:
                                        good[v] = True
                                        via[v, 0] = a
                                        via[v, 1] = b
                                r = root_of(union, up)
                                union[root_of(union, x)] = r
                            x = top[root_of(union, up)]
                        if worst >= 0:
                            break
                    if worst >= 0:
                        p = a
                        q = b
                        break
                    moved = True
        if worst < 0:
            return True
        todo[0, 0] = worst
        todo[0, 1] = p
        todo[0, 2] = q
        count = _queued(via, todo, done)
        for i in range(count - 1, -1, -1):
            u = done[i, 0]
            a = done[i, 1]
            b = done[i, 2]
            stamp += 1
            if degree[a] > largest - 2 or degree[b] > largest - 2 or not _swap(parent, degree, mark, stamp, u, a, b):
                return False
    return False


@njit(**LEAN_INNER)
def _turned(seq, pos, first, end):
    """Reverse the part seq[first:end] of a path, and update the positions of its vertices."""
    i = first
    j = end - 1
    while i < j:
        x = seq[i]
        seq[i] = seq[j]
        seq[j] = x
        i += 1
        j -= 1
    for k in range(first, end):
        pos[seq[k]] = k


@njit(cache=True, nogil=True)
def long_path(indptr, indices, steps, state):
    """Extend one path until it visits every vertex, or the steps are used up.

    indptr, indices  a connected graph
    steps    int64, state uint64[1]
    returns  seq int64[]: the vertices in order; a Hamiltonian path if it has all n

    A step does the first of these that is possible: extend an end to an unvisited vertex; insert an unvisited vertex
    between two consecutive path vertices that are its neighbors; rotate (Posa): from the end t to a neighbor u on the
    path, reverse the part after u, so that u's successor is the new end; or exchange an inner vertex for an unvisited
    one. O(n) per step.
    """
    n = indptr.shape[0] - 1
    seq = np.empty(n, np.int64)
    pos = np.full(n, -1, np.int64)
    free = np.empty(n, np.int64)  # unvisited vertices in any order; where[v] is the index of v
    where = np.empty(n, np.int64)
    for v in range(n):
        free[v] = v
        where[v] = v
    left = n
    length = 0
    v = int(uniform(state) * n)
    at = 0
    # Each turn finds the position of a vertex, and the next turn inserts it. Turns without one exchange or rotate.
    for _ in range(steps + n):
        if v >= 0:  # insert v at position ``at``
            for i in range(length, at, -1):
                seq[i] = seq[i - 1]
                pos[seq[i]] = i
            seq[at] = v
            pos[v] = at
            length += 1
            left -= 1
            x = free[left]
            free[where[v]] = x
            where[x] = where[v]
            v = -1
        if left == 0:
            break
        if uniform(state) < 0.5:  # choose an end at random: reverse the path
            _turned(seq, pos, 0, length)
        tail = seq[length - 1]
        least = n + 1.0
        for e in range(indptr[tail], indptr[tail + 1]):
            u = indices[e]
            if pos[u] < 0:
                exits = 0.9 * uniform(state)
                for f in range(indptr[u], indptr[u + 1]):
                    exits += pos[indices[f]] < 0
                if exits < least:
                    least = exits
                    v = u
                    at = length
        if v >= 0:
            continue
        u = free[int(uniform(state) * left)]
        swap = -1
        many = 0
        for e in range(indptr[u], indptr[u + 1]):
            p = pos[indices[e]]
            if p < 0:
                continue
            for f in range(indptr[u], indptr[u + 1]):
                q = pos[indices[f]]
                if q == p + 1:
                    v = u
                    at = q
                elif q == p + 2:
                    many += 1
                    if uniform(state) * many < 1.0:
                        swap = p + 1
        if v >= 0:
            continue
        if swap >= 0 and uniform(state) < 0.5:
            x = seq[swap]
            seq[swap] = u
            pos[u] = swap
            pos[x] = -1
            free[where[u]] = x
            where[x] = where[u]
            continue
        turn, many = -1, 0
        for e in range(indptr[tail], indptr[tail + 1]):
            p = pos[indices[e]]
            if p < 0 or p >= length - 2:
                continue
            many += 1
            if uniform(state) * many < 1.0:
                turn = p
        for e in range(indptr[tail], indptr[tail + 1]):  # preferably a new end that can be extended
            p = pos[indices[e]]
            if p < 0 or p >= length - 2:
                continue
            x = seq[p + 1]
            for f in range(indptr[x], indptr[x + 1]):
                if pos[indices[f]] < 0:
                    turn = p
        if turn >= 0:
            _turned(seq, pos, turn + 1, length)
    return seq[:length]
