"""Connected sets, each met once: a set grows from its first vertex by vertices of a frontier, level by level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import STEP, njit


class Frontier(NamedTuple):
    """Vertices that may be added, of all levels one after the other.

    place  int64[..]; those of a level are place[begin[level]:end[level]]
    stop   end of a level when it was made: what lies before still has to be given back
    fresh  how many of a level, at its beginning, that level marked
    """

    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    stop: np.ndarray
    fresh: np.ndarray


@njit(**STEP)
def opened(front, root):
    """The first level: the root alone."""
    front.begin[0] = 0
    front.end[0] = 1
    front.stop[0] = 1
    front.fresh[0] = 0
    front.place[0] = root


@njit(**STEP)
def given_back(front, level, taken):
    """Free what a level that is left had marked."""
    for i in range(front.fresh[level]):
        taken[front.place[front.begin[level] + i]] = False


@njit(**STEP)
def fits(indptr, front, level, u):
    """Whether there is room for a level below this one, when u is added."""
    most = front.end[level] - front.begin[level] + indptr[u + 1] - indptr[u]
    return front.stop[level] + most <= front.place.shape[0]


@njit(**STEP)
def grown(indptr, indices, front, level, u, taken):
    """The next level: first the neighbors of u that nobody took, so that they can be given back, then what is left."""
    start = front.stop[level]
    k = start
    for e in range(indptr[u], indptr[u + 1]):
        x = indices[e]
        if not taken[x]:
            taken[x] = True
            front.place[k] = x
            k += 1
    front.fresh[level + 1] = k - start
    for i in range(front.begin[level], front.end[level]):
        front.place[k] = front.place[i]
        k += 1
    front.begin[level + 1] = start
    front.end[level + 1] = k
    front.stop[level + 1] = k
