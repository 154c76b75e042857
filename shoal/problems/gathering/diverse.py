"""Clusters that have at least r points and diverse sensitive values.

All models here are monotone: a union of eligible clusters is eligible, so merging succeeds at the latest with one
cluster of all points. Cores are eligible at the start. Joining and recentering can only violate the frequency form.
This is then repaired by points from nearby clusters that can spare them, or by merging.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from scipy.sparse import csr_array

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.kernels.gathering import clusters as kernels
from shoal.model.arguments import array_of, whole_number
from shoal.problems.gathering.space import Space
from shoal.problems.gathering.threshold import Clusters, Lists
from shoal.problems.programs import LinearConstraints, solve

LONGEST = 64  # lists for cores are lengthened up to this multiple of the core's size


class Conditions(TypedDict, total=False):
    """Keywords of ``gather`` and ``cellular`` about sensitive values; see ``gather``."""

    sensitive: Any
    l: int | Sequence[int] | None
    distinct_l: int | Sequence[int] | None
    eligible: Callable[..., bool] | None


@dataclass(frozen=True, eq=False)
class Diversity:
    """The condition on every cluster's sensitive values.

    codes      int64[n, s]: sensitive values as codes, one column each
    frequency  per column: at most 1/l of a cluster share a value; 1 requires nothing
    distinct   per column: at least this many different values; 1 requires nothing
    eligible   or a function of the counts of the values (one int64 array per column) that is monotone under union
    """

    codes: np.ndarray
    frequency: tuple[int, ...]
    distinct: tuple[int, ...]
    eligible: Callable[..., bool] | None = None

    @classmethod
    def of(cls, n: int, asked: Conditions) -> Diversity | None:
        """The condition that the arguments of ``gather`` request; None if they request none."""
        sensitive, l, distinct_l = asked.get("sensitive"), asked.get("l"), asked.get("distinct_l")
        eligible = asked.get("eligible")
        if l is None and distinct_l is None and eligible is None:
            if sensitive is not None:
                raise PolicyError(
                    "⟨sensitive=⟩ has no effect without ⟨l=⟩, ⟨distinct_l=⟩ or eligible; say one of them, or leave it "
                    "out: shoal.release publishes sensitive columns"
                )
            return None
        if sensitive is None:
            raise PolicyError("l, ⟨distinct_l⟩ and eligible need sensitive values; give them as ⟨sensitive=⟩")
        table = array_of(sensitive, "sensitive", "one value, or as many, for each point")
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != n:
            raise InputError(f"sensitive has shape {table.shape}; one line for each of the {n} points is needed")
        codes = np.stack([_coded(c) for c in table.T], axis=1).astype(np.int64)
        least = []
        for name, value in (("l", l), ("distinct_l", distinct_l)):
            each = [1 if value is None else value] * codes.shape[1] if not isinstance(value, Sequence) else list(value)
            says = "a whole number of at least 1 (or one per sensitive column)"
            if len(each) != codes.shape[1]:
                raise PolicyError(f"⟨{name}={value!r}⟩: {says}")
            least.append(tuple(whole_number(name, v, says) for v in each))
        return cls(codes, least[0], least[1], eligible)

    @property
    def smallest(self) -> int:
        """A lower bound of the size of a cluster."""
        return max((1, *self.frequency, *self.distinct))

    @property
    def adding_is_safe(self) -> bool:
        """Whether adding a point never violates the condition: only distinct values are required."""
        return self.eligible is None and all(f == 1 for f in self.frequency)

    def holds(self, rows: np.ndarray) -> bool:
        """Whether a cluster of these rows is eligible. O(rows)."""
        counts = [np.bincount(self.codes[rows, c]) for c in range(self.codes.shape[1])]
        for count, frequency, distinct in zip(counts, self.frequency, self.distinct, strict=True):
            if frequency * int(count.max(initial=0)) > rows.size or int((count > 0).sum()) < distinct:
                return False
        return self.eligible is None or bool(self.eligible(*counts))

    def kept(self, r: int, left_out: int, remote: np.ndarray) -> np.ndarray:
        """int64[kept], ascending: a largest set of points that is eligible as a whole.

        The most remote points are left out first.

        r       at least so many are kept
        remote  float64[n]: among points with the same sensitive values, those with larger values are left out first

        Raises InfeasibleError if no n - left_out points are eligible together, because then no clustering is. A
        function is evaluated only on all points. So if points may be left out, its refusal is a PolicyError: another
        selection might be eligible.
        """
        n = len(self.codes)
        if self.holds(np.arange(n)):
            return np.arange(n)
        if not left_out:
            self.refuse_infeasible()
        if self.eligible is not None:
            raise PolicyError(
                "all points together do not meet the condition given, and of a function nobody can tell which points "
                "to leave out; leave them out yourself, or ask for l or ⟨distinct_l⟩"
            )
        rows, of, count = np.unique(self.codes, axis=0, return_inverse=True, return_counts=True)
        stay = most_kept(rows, count, self.frequency, self.distinct)
        if stay is None or stay.sum() < max(n - left_out, r):
            self.refuse_infeasible(left_out)
        assert stay is not None
        order = np.lexsort((remote, of.reshape(-1)))  # by values, the least remote first
        rank = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
        return np.sort(order[rank < np.repeat(stay, count)])

    def part(self, rows: np.ndarray) -> Diversity:
        """This condition restricted to some of the points."""
        return replace(self, codes=self.codes[rows])

    def refuse_infeasible(self, left_out: int = 0) -> None:
        """Raise InfeasibleError if all points together, or all but any ``left_out`` of them, aren't eligible."""
        n = len(self.codes)
        if left_out:
            raise InfeasibleError(
                f"whichever {left_out} points are left out, the rest together do not meet the condition on the "
                "sensitive values, so no clustering does; leave out more, or lower l"
            )
        for c, (frequency, distinct) in enumerate(zip(self.frequency, self.distinct, strict=True)):
            count = np.bincount(self.codes[:, c])
            top = int(count.max(initial=0))
            named = f"sensitive column number {c + 1}" if len(self.frequency) > 1 else "the sensitive column"
            if frequency * top > n:
                raise InfeasibleError(
                    f"one value of {named} is {100 * top / n:.1f} % of the points, so no clustering with "
                    f"l = {frequency} exists; the largest l possible is {n // top}"
                )
            if count.size < distinct:
                raise InfeasibleError(f"{named} has {count.size} different values, so no cluster can have {distinct}")
        raise InfeasibleError("all points together do not meet the condition given, so no clustering does")

    def sizes(self, r: int) -> list[int]:
        """Sizes of cores to try: r, and the next multiple of each l, where 1/l is a whole number of points."""
        r = max(r, self.smallest)
        return sorted({r, *(l * -(-r // l) for l in self.frequency)})

    def only(self, column: int) -> Diversity:
        """This condition on one column alone."""
        return Diversity(self.codes[:, [column]], (self.frequency[column],), (self.distinct[column],))


def _coded(values: np.ndarray) -> np.ndarray:
    """int[n]: codes of values; a missing value has its own code, also among texts."""
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:
        number: dict[Any, int] = {}
        try:
            return np.array([number.setdefault(None if v != v else v, len(number)) for v in values.tolist()])
        except TypeError:
            raise InputError("sensitive values must be numbers or texts, one for each point") from None


def conditions(asked: Diversity | None) -> dict[str, Any]:
    """The requested condition in plain values."""
    if asked is None:
        return {"l": [], "distinct_l": [], "eligible": False}
    return {"l": list(asked.frequency), "distinct_l": list(asked.distinct), "eligible": asked.eligible is not None}


def most_kept(
    rows: np.ndarray, count: np.ndarray, frequency: Sequence[int], distinct: Sequence[int]
) -> np.ndarray | None:
    """int64[t]: how many points of each kind to keep so that they are eligible together, as many as possible.

    None if no selection is.

    rows   int64[t, s]: sensitive values of the kinds
    count  int64[t]: points of each kind
    An integer program: the number of each kind, the total, and whether a value is present if values are counted.
    """
    t = len(count)
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray | float]] = [
        (np.zeros(t + 1, np.int64), np.arange(t + 1), np.append(np.ones(t), -1.0))
    ]
    low, high = [0.0], [0.0]
    line, column = 1, t + 1
    upper = [count.astype(float), np.array([float(count.sum())])]
    for j, (f, u) in enumerate(zip(frequency, distinct, strict=True)):
        names, of = np.unique(rows[:, j], return_inverse=True)
        v = names.size
        if f > 1:  # f times the points of a value is at most the total
            entries += [(line + of, np.arange(t), float(f)), (line + np.arange(v), np.full(v, t), -1.0)]
            low, high, line = low + [-np.inf] * v, high + [0.0] * v, line + v
        if u > 1:  # present only with a point, and u of them
            entries += [
                (line + of, np.arange(t), -1.0),
                (line + np.arange(v), column + np.arange(v), 1.0),
                (np.full(v, line + v), column + np.arange(v), 1.0),
            ]
            low, high = low + [-np.inf] * v + [float(u)], high + [0.0] * v + [np.inf]
            line, column = line + v + 1, column + v
            upper.append(np.ones(v))
    where, which, value = (np.concatenate([np.broadcast_to(e[i], e[0].shape) for e in entries]) for i in range(3))
    matrix = csr_array((value, (where, which)), shape=(line, column))
    goal = np.zeros(column)
    goal[t] = -1.0
    limits = LinearConstraints(matrix, np.array(low), np.array(high))
    found = solve(goal, limits, np.zeros(column), np.concatenate(upper), whole=True)
    return None if found.x is None else np.rint(found.x[:t]).astype(np.int64)


def cores(space: Space, r: int, diversity: Diversity) -> tuple[Lists, np.ndarray, float]:
    """(lists with rho and tau of diverse cores, core int64[n, s], share of points without a core).

    For one column and built-in models, rho(v) is the least radius at which a diverse cluster of r fits around v. So the
    largest tau is a lower bound for all answers with centers at points.
    """
    sizes = diversity.sizes(r)
    widest = max(sizes)
    core, core_far = np.full((space.n, widest), -1, np.int64), np.full((space.n, widest), np.inf)
    reached = np.full(space.n, np.inf)
    todo, width = np.arange(space.n), min(2 * widest, space.n)
    near0, far0 = space.nearest(width)
    # Double the lists of points without a core, and on each list search one core of every requested size. The nearest
    # one counts.
    while todo.size:
        near, far = (near0, far0) if todo.size == space.n else space.nearest(width, rows=todo)
        for size in sizes:
            cap = np.array([size // l for l in diversity.frequency], np.int64)
            part, part_far = np.full((todo.size, size), -1, np.int64), np.full((todo.size, size), np.inf)
            done = kernels.diverse_cores(
                near, far, diversity.codes, cap, np.array(diversity.distinct, np.int64), size, part, part_far
            )
            better = np.flatnonzero(done & (part_far[:, -1] < reached[todo]))
            reached[todo[better]] = part_far[better, -1]
            core[todo[better]], core_far[todo[better]] = -1, np.inf
            core[todo[better], :size], core_far[todo[better], :size] = part[better], part_far[better]
        # a core that ends inside the list is final; another size could only be better within the list
        todo = todo[~np.isfinite(reached[todo])]
        if width >= min(LONGEST * widest, space.n):
            break
        width = min(2 * width, space.n)
    missing = float((~np.isfinite(reached)).mean())
    return Lists(near0, far0, reached, _tau(space, reached, near0, far0, widest)), core, missing


def _tau(space: Space, rho: np.ndarray, near: np.ndarray, far: np.ndarray, widest: int) -> np.ndarray:
    """float64[n]: min over v of max(d(p, v), rho(v)), or the extent of the search if that is less."""
    tau = np.maximum(far, rho[near]).min(axis=1)
    width = near.shape[1]
    todo = np.flatnonzero(tau > far[:, -1]) if width < space.n else np.zeros(0, np.int64)
    edge = far[:, -1].copy()
    while todo.size and width < min(LONGEST * widest, space.n):
        width = min(2 * width, space.n)
        near, far = space.nearest(width, rows=todo)
        tau[todo] = np.maximum(far, rho[near]).min(axis=1)
        edge[todo] = far[:, -1] if width < space.n else np.inf
        todo = todo[tau[todo] > edge[todo]]
    tau[todo] = np.minimum(tau[todo], edge[todo])
    return tau


def repair(space: Space, found: Clusters, r: int, diversity: Diversity) -> Clusters:
    """Clusters that all meet the condition with at least r points each; ``found`` must have at least r in each.

    O(failing clusters * (n_nearby + merges)) time.
    """
    labels, center = found.labels.copy(), found.center.copy()
    members = _members(labels, center.size)
    bad = {c for c in range(center.size) if not diversity.holds(members[c])}
    if not bad:
        return found
    around = np.arange(center.size)
    # The smallest failing cluster first takes points from others. If these can't spare enough, it merges with the
    # nearby cluster that costs least.
    while bad:
        c = min(bad, key=lambda k: members[k].size)
        bad.discard(c)
        if _call_in(space, c, labels, center, members, r, diversity):
            continue
        others = around[(around != c) & np.array([m.size > 0 for m in members])]
        if not others.size:  # all points together are eligible, including those left out
            members[c], labels[:] = np.arange(space.n), c
            break
        gap = space.between(center[others], np.full(others.size, center[c]))
        near = others[np.argsort(gap, kind="stable")[:8]]
        best = min(near, key=lambda b: _merged(space, members[c], members[b], center[c], center[b], diversity))
        union = np.concatenate([members[c], members[best]])
        labels[union] = best
        far = [float(space.between(union, np.full(union.size, v)).max()) for v in (center[best], center[c])]
        center[best] = center[best] if far[0] <= far[1] else center[c]
        members[best], members[c] = union, np.zeros(0, np.int64)
        bad.discard(int(best))
        if not diversity.holds(union):
            bad.add(int(best))
    return recentered(space, labels, center)


def _members(labels: np.ndarray, m: int) -> list[np.ndarray]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(m + 1)))[1:-1]


def _merged(space, mine, other, a, b, diversity) -> tuple[bool, float]:  # type: ignore[no-untyped-def]
    """(not eligible, radius around the better of the two centers): the result of a merge."""
    union = np.concatenate([mine, other])
    radius = min(float(space.between(union, np.full(union.size, v)).max()) for v in (a, b))
    return not diversity.holds(union), radius


def _call_in(space, c, labels, center, members, r, diversity) -> bool:  # type: ignore[no-untyped-def]
    """Take points from other clusters that can spare them, until cluster c is eligible; all or nothing."""
    width = min(8 * r + members[c].size, space.n)
    near, _ = space.nearest(width, rows=center[[c]])
    mine = members[c]
    moved: list[tuple[int, int]] = []
    lost: dict[int, np.ndarray] = {}
    worst = [int(np.bincount(diversity.codes[mine, j]).argmax()) for j in range(diversity.codes.shape[1])]
    # Nearest points first. A point helps if its value isn't the most frequent, and if it adds a value where distinct
    # values are lacking.
    for u in near[0]:
        if len(moved) > 2 * r:
            break
        b = int(labels[u]) if u >= 0 else -1
        if b < 0 or b == c:
            continue
        code = diversity.codes[u]
        crowded = any(f > 1 and code[j] == worst[j] for j, f in enumerate(diversity.frequency))
        known = any(d > 1 and (diversity.codes[mine, j] == code[j]).any() for j, d in enumerate(diversity.distinct))
        if crowded or (known and diversity.adding_is_safe):
            continue
        rest = lost.get(b, members[b])
        rest = rest[rest != u]
        if rest.size < r or not diversity.holds(rest):
            continue
        lost[b] = rest
        mine = np.append(mine, u)
        moved.append((int(u), b))
        if diversity.holds(mine):
            for b, rest in lost.items():
                members[b] = rest
            members[c] = mine
            labels[mine] = c
            return True
    return False


def recentered(space: Space, labels: np.ndarray, center: np.ndarray) -> Clusters:
    """Clusters renumbered without empty ones, with every center at its best member."""
    used, fresh = np.unique(labels[labels >= 0], return_inverse=True)
    labels = labels.copy()
    labels[labels >= 0] = fresh
    center = center[used].copy()
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(used.size + 1)).astype(np.int64)
    kernels.one_centers(space.coded, start, order, center, np.empty(used.size))
    return Clusters.around(space, labels, center)
