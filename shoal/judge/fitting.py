"""The posterior of an adversary to whom all ways to give people a group and a value that agree with every release are
equally likely, by iterative proportional fitting (Deming, Stephan 1940).

People are of one profile where the adversary knows the same of them.  The expected number of people of a profile t
with value v is a(t) S1(t, v) S2(t, v) ..., where Sr(t, v) adds up a factor A(g, v) of each group g of release r that a
person of the profile may stand in; the factors are fitted until every group has the values it shows and every profile
its people.  For few people it approximates the exact posterior, which is hard to count.  Of one release alone it is the
mean of its groups' shares, so that no value passes 1/l where every group meets l.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.sparse import csr_matrix

from shoal.errors import InputError

_STEPS = 300
_STILL = 1e-5  # the largest change of a posterior at which the fitting ends
_FEW = 1e-12
_DIGITS = 280  # decimal digits between the smallest and the largest product of factors


def fitted(
    people: np.ndarray,
    faces: Sequence[csr_matrix],
    there: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    twins: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """float64[profiles, values]: the posterior of each profile of people, by iterative proportional fitting.

    people  int64[profiles]: how many there are of each profile, alike in all that the adversary knows of them
    faces   per release csr[profiles, groups]: the groups in which they may stand;  there: bool[profiles], who is in it
    counts  per release int64[groups, values]
    twins   per release int64[s]: groups that every release shows alike, taken for the same people

    A row of a release that is nobody's of these is somebody's of whom nothing else is known.
    O(rounds (pairs of profile and group) values).
    """
    profiles, width = people.size, counts[0].shape[1]
    if profiles * width * (2 * len(faces) + 2) > LARGEST:
        raise InputError(
            f"{profiles:,} kinds of people with {width:,} sensitive values are more than can be set together"
        )
    strangers = [max(float(c.sum()) - float(people[t].sum()), 0.0) for c, t in zip(counts, there, strict=True)]
    factor = [c / np.maximum(f.T @ people.astype(float), 1)[:, None] for c, f in zip(counts, faces, strict=True)]
    own = twins or [np.zeros(0, np.int64) for _ in faces]
    full = np.logical_and.reduce(there)[:, None]  # only who is in every release is a twin in every release
    shared = faces[0][:, own[0]]
    single = [np.ones(c.shape[0], bool) for c in counts]
    for s, f, held in zip(single, faces, own, strict=True):
        s[held] = False
        shared = shared.minimum(f[:, held])

    def weighed(r: int) -> np.ndarray:
        """What a profile may be in one release alone: nothing of a twin where it is in every release."""
        alone = faces[r] @ (factor[r] * single[r][:, None])
        return np.where(there[r][:, None], np.where(full, alone, faces[r] @ factor[r]) if own[r].size else alone, 1.0)

    def twins_joint() -> np.ndarray | float:
        if not own[0].size:
            return 0.0
        together: np.ndarray = shared @ _product([f[o] for f, o in zip(factor, own, strict=True)])
        return np.where(full, together, 0.0)

    weight = [weighed(r) for r in range(len(faces))]
    joint = _product(weight) + twins_joint()
    posterior = np.zeros((profiles, width))
    least = 10.0 ** (-_DIGITS / len(faces))
    # A step fits the factors of one release after the other to its counts, and ends when the posterior stands still.
    for _ in range(_STEPS):
        later = [*itertools.accumulate(reversed(weight[1:]), np.multiply, initial=np.ones((1, 1)))][::-1]
        before = np.ones((1, 1))
        for r, (face, here) in enumerate(zip(faces, there, strict=True)):
            each = (people / np.maximum(joint.sum(axis=1), 1e-300))[:, None]
            elsewhere = before * later[r]
            load = face.T @ (here[:, None] * each * elsewhere)
            if own[r].size:
                beside = _product([f[o] for i, (f, o) in enumerate(zip(factor, own, strict=True)) if i != r])
                load[own[r]] = (face.T @ np.where(full, 0.0, here[:, None] * each * elsewhere))[own[r]]
                load[own[r]] += (shared.T @ np.where(full, each, 0.0)) * beside
            if strangers[r]:
                load = load + strangers[r] / max(float(factor[r].sum()), 1e-300)
            fit = np.where((counts[r] > 0) & (load > 0), counts[r] / np.maximum(load, 1e-300), 0.0)
            factor[r] = _scaled(fit, least)
            weight[r] = weighed(r)
            before = before * weight[r]
            joint = before * later[r] + twins_joint()
        whole = joint.sum(axis=1, keepdims=True)
        now = np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0)
        change = np.abs(now - posterior).max(initial=0)
        posterior = now
        if change < _STILL:
            break
    return posterior


def _scaled(factor: np.ndarray, least: float) -> np.ndarray:
    """Factors from ``least`` to 1, so that a product over all releases stays a number: their scale means nothing, and
    where no assignment agrees with every release they drift apart without end."""
    factor = factor / max(float(factor.max(initial=0)), 1e-300)
    out: np.ndarray = np.where(factor > 0, np.maximum(factor, least), 0.0)
    return out


def _product(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Of arrays of one shape; 1 of none."""
    return reduce(np.multiply, factors) if factors else np.ones((1, 1))


def fitted_places(people: np.ndarray, face: csr_matrix, size: np.ndarray) -> csr_matrix:
    """csr[profiles, groups]: the expected people of each profile in each group of one release."""
    strangers = max(float(size.sum() - people.sum()), 0.0)
    factor = size / np.maximum(face.T @ people.astype(float), 1)
    for _ in range(_STEPS):
        each = people / np.maximum(face @ factor, 1e-300)
        load = face.T @ each + strangers / max(float(factor.sum()), 1e-300)
        after = np.where(load > 0, size / np.maximum(load, 1e-300), 0.0)
        still = np.abs(after - factor).max(initial=0) <= _STILL * max(float(after.max(initial=0)), _FEW)
        factor = after
        if still:
            break
    each = people / np.maximum(face @ factor, 1e-300)
    out = face.copy()
    out.data = out.data * np.repeat(each, np.diff(out.indptr)) * factor[out.indices]
    return out


LARGEST = 400_000_000  # numbers that the fitting may hold


def fitted_alone(people: np.ndarray, face: csr_matrix, here: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The posterior by one release: the shares of its groups, each as likely as people are to stand in it."""
    size = counts.sum(axis=1)
    stood = fitted_places(people * here, face, size)
    share = counts / np.maximum(size, 1)[:, None]
    whole = np.asarray(stood.sum(axis=1)).reshape(-1, 1)
    out: np.ndarray = np.divide(stood @ share, whole, out=np.zeros((people.size, counts.shape[1])), where=whole > 0)
    return out
