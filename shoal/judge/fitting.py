"""The posterior of an adversary, by iterative proportional fitting (Deming, Stephan 1940).

The adversary considers all assignments of people to groups and values that agree with every release equally likely.

People have one profile if the adversary knows the same about them. The expected number of people of profile t with
value v is a(t) S1(t, v) S2(t, v) ..., where Sr(t, v) is the sum of a factor A(g, v) over the groups g of release r that
the profile can be in. The factors are fitted until every group has its published values and every profile has its
number of people. For few people this approximates the exact posterior, which is hard to count. For one release, it is
the mean of the shares in its groups, so no value exceeds 1/l if every group is l-diverse.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.sparse import csr_matrix

from shoal.errors import InputError

_STEPS = 300
_STILL = 1e-5  # the fitting ends if no posterior changes by more than this in a step
_FEW = 1e-12
_DIGITS = 280  # decimal digits between the smallest and the largest product of factors


def fitted(
    people: np.ndarray,
    faces: Sequence[csr_matrix],
    there: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    identical: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """float64[profiles, values]: the posterior of each profile, by iterative proportional fitting.

    people  int64[profiles]: the number of people with each profile
    faces   per release csr[profiles, groups]: the groups that a profile can be in
    there   per release bool[profiles]: whether the profile is in the release
    counts  per release int64[groups, values]
    identical  per release int64[s]: groups that are identical in every release, taken for the same people

    Rows of a release that belong to no profile belong to people about whom nothing else is known.
    O(rounds (pairs of profile and group) values).
    """
    profiles, width = people.size, counts[0].shape[1]
    if profiles * width * (2 * len(faces) + 2) > LARGEST:
        raise InputError(f"{profiles:,} kinds of people with {width:,} sensitive values are too many to compare")
    strangers = [max(float(c.sum()) - float(people[t].sum()), 0.0) for c, t in zip(counts, there, strict=True)]
    factor = [c / np.maximum(f.T @ people.astype(float), 1)[:, None] for c, f in zip(counts, faces, strict=True)]
    own = identical or [np.zeros(0, np.int64) for _ in faces]
    # only people in every release can be in an identical group of every release
    full = np.logical_and.reduce(there)[:, None]
    shared = faces[0][:, own[0]]
    single = [np.ones(c.shape[0], bool) for c in counts]
    for s, f, held in zip(single, faces, own, strict=True):
        s[held] = False
        shared = shared.minimum(f[:, held])

    def weighed(r: int) -> np.ndarray:
        """Weights of a profile in one release alone; identical groups are excluded for profiles in every release."""
        alone = faces[r] @ (factor[r] * single[r][:, None])
        return np.where(there[r][:, None], np.where(full, alone, faces[r] @ factor[r]) if own[r].size else alone, 1.0)

    def identical_joint() -> np.ndarray | float:
        if not own[0].size:
            return 0.0
        together: np.ndarray = shared @ _product([f[o] for f, o in zip(factor, own, strict=True)])
        return np.where(full, together, 0.0)

    weight = [weighed(r) for r in range(len(faces))]
    joint = _product(weight) + identical_joint()
    posterior = np.zeros((profiles, width))
    least = 10.0 ** (-_DIGITS / len(faces))
    # Each step fits the factors of one release after the other to its counts. The loop ends when the posterior
    # converges.
    for _ in range(_STEPS):
        later = [*itertools.accumulate(reversed(weight[1:]), np.multiply, initial=np.ones((1, 1)))][::-1]
        before = np.ones((1, 1))
        for r, (face, here) in enumerate(zip(faces, there, strict=True)):
            each = (people / np.maximum(joint.sum(axis=1), 1e-300))[:, None]
            elsewhere = before * later[r]
            load = face.T @ (here[:, None] * each * elsewhere)
            if own[r].size:
                others = _product([f[o] for i, (f, o) in enumerate(zip(factor, own, strict=True)) if i != r])
                load[own[r]] = (face.T @ np.where(full, 0.0, here[:, None] * each * elsewhere))[own[r]]
                load[own[r]] += (shared.T @ np.where(full, each, 0.0)) * others
            if strangers[r]:
                load = load + strangers[r] / max(float(factor[r].sum()), 1e-300)
            fit = np.where((counts[r] > 0) & (load > 0), counts[r] / np.maximum(load, 1e-300), 0.0)
            factor[r] = _scaled(fit, least)
            weight[r] = weighed(r)
            before = before * weight[r]
            joint = before * later[r] + identical_joint()
        whole = joint.sum(axis=1, keepdims=True)
        now = np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0)
        change = np.abs(now - posterior).max(initial=0)
        posterior = now
        if change < _STILL:
            break
    return posterior


def _scaled(factor: np.ndarray, least: float) -> np.ndarray:
    """Factors rescaled to at most 1 and bounded from below by ``least``.

    A product over all releases then doesn't overflow. Only ratios of factors matter. If no assignment agrees with every
    release, the factors diverge.
    """
    factor = factor / max(float(factor.max(initial=0)), 1e-300)
    out: np.ndarray = np.where(factor > 0, np.maximum(factor, least), 0.0)
    return out


def _product(factors: Sequence[np.ndarray]) -> np.ndarray:
    """The product of arrays of one shape; 1 for no arrays."""
    return reduce(np.multiply, factors) if factors else np.ones((1, 1))


def fitted_places(people: np.ndarray, face: csr_matrix, size: np.ndarray) -> csr_matrix:
    """csr[profiles, groups]: the expected number of people of each profile in each group of one release."""
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


LARGEST = 400_000_000  # float64 numbers that the fitting may allocate


def fitted_alone(people: np.ndarray, face: csr_matrix, here: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The posterior by one release: shares in its groups, weighted by the expected number of people in each group."""
    size = counts.sum(axis=1)
    stood = fitted_places(people * here, face, size)
    share = counts / np.maximum(size, 1)[:, None]
    whole = np.asarray(stood.sum(axis=1)).reshape(-1, 1)
    out: np.ndarray = np.divide(stood @ share, whole, out=np.zeros((people.size, counts.shape[1])), where=whole > 0)
    return out
