"""What a row loses at least together with its nearest rows, as many as a group needs."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def nearest(losses, at, shape, width, code, first, last, count, value, kinds, group, out):
    """Bound by neighbors, for any recoding: a row loses at least what it loses together with its (K-1)-th nearest row.

    losses float64[..]  loss of publishing codes a and b of column j together, if they differ: for shape[j] == 0 at
                        at[j] + a * width[j] + b; for 1 |losses[at[j] + a] - losses[at[j] + b]|; for 2 losses[at[j]]
    code  int32[m, d], count int64[m]; first, last: the cells asked about
    value int64[m], kinds int64   at least this many different values are needed (1: no matter)
    group int64   K; out float64[m]
    O((last - first) m d).
    """
    m, d = code.shape
    near = np.empty(group + 1)
    values = np.int64(1)
    for i in range(m):
        values = max(values, value[i] + 1)
    best = np.empty(values)
    top = np.empty(kinds + 1)
    for i in range(first, last):
        held = 0
        for _ in range(min(count[i] - 1, group - 1)):
            near[held] = 0.0
            held += 1
        for w in range(values):
            best[w] = np.inf
        for q in range(1, 2 * m):
            c = i + (q + 1) // 2 if q % 2 else i - q // 2  # outwards from i: like cells stand near each other
            if c < 0 or c >= m:
                continue
            limit = near[group - 2] if held == group - 1 and group > 1 else np.inf
            if group == 1:
                limit = -1.0
            bar = max(limit, best[value[c]]) if kinds > 1 else limit
            far = 0.0
            for j in range(d):
                a, b = code[i, j], code[c, j]
                if a != b:
                    if shape[j] == 0:
                        far += losses[at[j] + a * width[j] + b]
                    elif shape[j] == 2:
                        far += losses[at[j]]
                    else:
                        far += abs(losses[at[j] + a] - losses[at[j] + b])
                    if far >= bar:
                        break
            if far < best[value[c]]:
                best[value[c]] = far
            if far < limit:
                for _ in range(min(count[c], group - 1)):
                    if held == group - 1 and far >= near[held - 1]:
                        break
                    y = held if held < group - 1 else held - 1
                    held = min(held + 1, group - 1)
                    while y > 0 and near[y - 1] > far:
                        near[y] = near[y - 1]
                        y -= 1
                    near[y] = far
        found = near[group - 2] if held == group - 1 and group > 1 else 0.0
        if kinds > 1:
            best[value[i]] = 0.0
            n = 0
            for w in range(values):
                u = best[w]
                if n == kinds and u >= top[n - 1]:
                    continue
                y = n if n < kinds else kinds - 1
                n = min(n + 1, kinds)
                while y > 0 and top[y - 1] > u:
                    top[y] = top[y - 1]
                    y -= 1
                top[y] = u
            found = max(found, top[kinds - 1])
        out[i] = found
