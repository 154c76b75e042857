"""Clusters of at least r points with a small largest radius: one function for all methods, and its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import Effort, known, recorded, suggesting, whole_number
from shoal.model.arguments import number as number_of
from shoal.model.cards import Shown, number, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.metric import Metric
from shoal.problems.catalogue import names
from shoal.problems.gathering import exact, local_search
from shoal.problems.gathering.diverse import Conditions, Diversity, conditions, cores, repair
from shoal.problems.gathering.local_search import better, local, nearer, rejoin, trimmed
from shoal.problems.gathering.space import SAFE, Space, space_of
from shoal.problems.gathering.threshold import (
    COARSE,
    FINE,
    Clusters,
    Lists,
    disjoint,
    peeling,
    quantile,
    rounds,
    threshold,
)
from shoal.threads import interruptible
from shoal.watching import watched, within

PAPER = "Aggarwal et al. 2006"
SECONDS = {"fast": 2.0, "balanced": 60.0, "thorough": 600.0}  # time limits of the exact methods
FEW = 30  # up to this many points, "auto" uses the exact method if nothing else is proved optimal: a tenth of a second
_LISTED = 0.4  # share of the time for lists of nearest points
THEOREMS = {
    "disjoint": (3.0, 4.0, "docs/gathering.md, Theorem 1: disjoint nearest-r balls"),
    "local": (3.0, 4.0, "docs/gathering.md, Theorem 1: never wider than disjoint nearest-r balls"),
    "threshold": (2.0, 2.0, f"{PAPER}, Theorem 2.2"),
    "peeling": (4.0, 4.0, f"{PAPER}, Theorem 2.3"),
    "rounds": (5.0, 6.0, "docs/gathering.md, Theorem 3: the (k, r, epsilon)-center announced in " + PAPER),
    "exact": (1.0, 1.0, "bisection over integer programs"),
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Gathering(Shown):
    """A clustering with its certificate.

    labels         int64[n]    cluster of each point, -1 if it is left out
    centers        float64[m, d] coordinates of the centers; int64[m] rows if the metric is a matrix, a function, or
                   has columns that are not plain numbers
    center_rows    int64[m]    the input point at each center, -1 if the center is not an input point
    radii          float64[m]  largest distance of a member from its center
    sizes          int64[m]    members
    mean_distance  mean over the clustered points of the distance to their center
    certificate    cost (largest radius, or cellular cost) and bound
    details        the request: problem ("gather" or "cellular"), r, epsilon, max_clusters, l and distinct_l (one for
                   each sensitive column), eligible (whether a function was passed), setup_cost, max_diameter
    """

    labels: np.ndarray
    centers: np.ndarray
    center_rows: np.ndarray
    radii: np.ndarray
    sizes: np.ndarray
    mean_distance: float
    certificate: Certificate
    method: str
    metric: Metric
    diameter: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def of_rows(self, rows: np.ndarray) -> Gathering:
        """These clusters for reordered points: point i of the result is row rows[i]."""
        labels = np.empty_like(self.labels)
        labels[rows] = self.labels
        center = np.where(self.center_rows < 0, -1, rows[self.center_rows])
        return replace(
            self, labels=labels, center_rows=center, centers=center if self.centers.ndim == 1 else self.centers
        )

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return int(self.sizes.size)

    @property
    def radius(self) -> float:
        """The largest radius."""
        return float(self.radii.max(initial=0.0))

    @property
    def left_out(self) -> int:
        """The number of points in no cluster."""
        return int((self.labels < 0).sum())

    @property
    def cost(self) -> float:
        """The certified cost."""
        return self.certificate.cost

    def _lines(self) -> list[str]:
        r, unit = self.details.get("r"), self.metric.unit
        asked = f"at least r = {r:,} asked" if r else "no least number asked"
        lines = [
            f"{several(len(self.labels) - self.left_out, 'point')} in {several(self.clusters, 'cluster')}",
            sizes_line("points in a cluster", self.sizes.tolist(), asked),
            f"distance from the center: largest {number(self.radius)}, mean {number(float(self.mean_distance))} {unit}",
            *proof_lines(self.certificate, self.method),
        ]
        return [*lines, f"left out: {several(self.left_out, 'point')}"] if self.left_out else lines

    def as_dict(self) -> dict[str, Any]:
        """Sizes and figures for JSON, without any point."""
        return {
            "points": int(self.labels.size),
            "clusters": self.clusters,
            "left_out": self.left_out,
            "smallest_cluster": int(self.sizes.min()) if self.sizes.size else 0,
            "largest_cluster": int(self.sizes.max(initial=0)),
            "radius": self.radius,
            "median_radius": float(np.median(self.radii)) if self.clusters else 0.0,
            "mean_distance": self.mean_distance,
            "cost": self.certificate.cost,
            "certificate": self.certificate.as_dict(),
            "method": self.method,
            "metric": self.metric.as_dict(),
        }


def check(r: Any, epsilon: Any, most: Any, centers: str, method: str, problem: str) -> tuple[int, float, int | None]:
    """r, epsilon, and max_clusters as numbers; PolicyError for invalid values or unknown words."""
    least = whole_number("r", r, "a cluster has a whole number of points, at least 1")
    says = "the share left out is at least 0 and under 1, or nothing would be left"
    share = number_of("epsilon", epsilon, says, lambda x: 0 <= x < 1)
    if most is not None:
        most = whole_number("max_clusters", most)
    known("place for centers", centers, ["points", "anywhere"])
    known(f"method for {problem}", method, ["auto", *names(problem)])
    return least, share, most


@dataclass(frozen=True, eq=False)
class GatherAsk:
    """The input of a method: the points, r, how many may be left out, the most clusters, and where centers may be."""

    space: Space
    r: int
    left_out: int
    most: int | None
    at_points: bool
    lists: Lists
    seconds: float


@dataclass(frozen=True, eq=False)
class GatherAnswer:
    """Clusters, a bound for the requested kind of centers, and coordinates if the exact method has free centers.

    proved  False if a search ended early: the bound holds, the method's factor doesn't
    loose   the share by which the method's factor increases: the width of the last bisection step
    """

    clusters: Clusters
    bound: float = 0.0
    why: str = ""
    center: np.ndarray | None = None
    proved: bool = True
    loose: float = 0.0


def _bisected(ask: GatherAsk, name: str, found: Clusters, bound: float, why: str, fine: float) -> GatherAnswer:
    """An answer within its factor of a bound, up to the width of the bisection that found it."""
    at, free, _ = THEOREMS[name]
    over = found.radius > (at if ask.at_points else free) * bound
    near = found.radius <= (at if ask.at_points else free) * bound * (1 + 2 * fine)
    return GatherAnswer(found, bound, why, proved=near, loose=2 * fine if over else 0.0)


def by_local(ask: GatherAsk) -> GatherAnswer:
    """Nearest-r balls, where remote points are served first."""
    return GatherAnswer(local(ask.space, ask.r, ask.left_out, ask.lists, anywhere=not ask.at_points))


def by_disjoint(ask: GatherAsk) -> GatherAnswer:
    """Disjoint nearest-r balls."""
    return GatherAnswer(disjoint(ask.space, ask.r, ask.left_out, ask.lists, anywhere=not ask.at_points))


def by_threshold(ask: GatherAsk) -> GatherAnswer:
    """The paper's r-gather, or (k, r)-center."""
    found, bound = threshold(ask.space, ask.r, ask.lists.rho, ask.most)
    why = "half the largest threshold whose test failed (Aggarwal et al. 2006, Lemma 2.1)"
    return _bisected(ask, "threshold", found, bound, why, FINE)


def by_peeling(ask: GatherAsk) -> GatherAnswer:
    """The paper's (r, epsilon)-gather."""
    found, bound = peeling(ask.space, ask.r, ask.left_out, ask.lists.rho)
    why = "half the least threshold with a core large enough (Aggarwal et al. 2006, section 2.3)"
    return _bisected(ask, "peeling", found, bound, why, FINE)


def by_rounds(ask: GatherAsk) -> GatherAnswer:
    """(k, r, epsilon)-center in k rounds."""
    low = quantile(ask.lists.tau if ask.at_points else ask.lists.rho / 2, ask.left_out)
    most = ask.most if ask.most is not None else ask.space.n // ask.r
    first = None if ask.most is None else _by_thresholds(ask, most)
    known = np.inf if first is None else first.radius
    found, bound = rounds(ask.space, ask.r, ask.left_out, most, low, ask.at_points, known)
    if first is not None and first.radius < found.radius:
        found = first
    why = "the largest radius whose rounds failed (docs/gathering.md, Theorem 3)"
    return _bisected(ask, "rounds", found, bound, why, COARSE)


def _by_thresholds(ask: GatherAsk, most: int) -> Clusters:
    """The narrower of two answers of the threshold method, improved: of all points, and of all but those of the largest
    tau, as many as can be left out.

    If few points are remote, these clusters are much narrower than those of the rounds. No factor is proved for them.
    """
    everyone = np.arange(ask.space.n)
    near = np.sort(np.argsort(ask.lists.tau, kind="stable")[: ask.space.n - ask.left_out])
    found = []
    for kept in (everyone, near) if near.size >= ask.r else (everyone,):
        part = ask.space.part(kept)
        lists = ask.lists if kept is everyone else Lists.of(part, ask.r)
        clusters, _ = threshold(part, ask.r, lists.rho, most)
        found.append(better(part, clusters, ask.r).among(kept, ask.space.n))
    return min(found, key=lambda clusters: clusters.radius)


def by_exact(ask: GatherAsk) -> GatherAnswer:
    """The least radius for few points."""
    if ask.at_points:
        first = by_local(ask) if ask.most is None else by_threshold(ask) if not ask.left_out else by_rounds(ask)
        low = quantile(ask.lists.tau, ask.left_out)
        found, bound = exact.gather_exact(ask.space, ask.r, ask.left_out, ask.most, first.clusters, low, ask.seconds)
        done = bound >= found.radius * (1 - 1e-9)
        found = nearer(ask.space, found, ask.r, np.flatnonzero(found.labels >= 0))
        return GatherAnswer(found, bound, "integer programs for every smaller radius have no answer", proved=done)
    x = ask.space.coordinates
    assert x is not None
    labels, center, bound, done = exact.gather_exact_anywhere(x, ask.r, ask.left_out, ask.most, ask.seconds)
    kept = labels >= 0
    radius = np.zeros(len(center))
    np.maximum.at(radius, labels[kept], np.sqrt(((x[kept] - center[labels[kept]]) ** 2).sum(axis=1)))
    rows = np.array([np.flatnonzero(labels == c)[0] for c in range(len(center))], np.int64)
    # the width of the other clusters wasn't minimized
    middle, other = local_search.recenter(x, labels, len(center), rows)
    center = np.where((other < radius)[:, None], middle, center)
    away = np.zeros(ask.space.n)
    away[kept] = np.sqrt(((x[kept] - center[labels[kept]]) ** 2).sum(axis=1))
    why = "integer programs over all smallest balls of few points"
    return GatherAnswer(Clusters(labels, rows, away), bound, why, center, done)


METHODS: dict[str, Callable[[GatherAsk], GatherAnswer]] = {
    "local": by_local,
    "disjoint": by_disjoint,
    "threshold": by_threshold,
    "peeling": by_peeling,
    "rounds": by_rounds,
    "exact": by_exact,
}


@watched
@suggesting
@interruptible
@recorded
def gather(
    points: Any,
    r: int,
    epsilon: float = 0.0,
    max_clusters: int | None = None,
    metric: str | Metric | Callable[..., Any] = "euclidean",
    *,
    cyclic: Mapping[Any, float] | None = None,
    decimal: Mapping[str, str] | None = None,
    method: str = "auto",
    effort: str | float = "balanced",
    centers: str = "points",
    improve: bool = False,
    **values: Unpack[Conditions],
) -> Gathering:
    """Clusters of at least r points each, with a small largest radius.

    points        float[n, d] in one unit, a frame of numbers, a tuple of columns as a Metric requires (float[n],
                  int codes[n], float[n, 2] for a place), or float[n, n] distances for metric="precomputed"
    r             least number of points of a cluster
    epsilon       share of the points that can be left out (label -1), 0 <= epsilon < 1
    max_clusters  at most this many clusters
    metric        "euclidean", "manhattan", "chebyshev", "great-circle", "precomputed", a function, or a Metric
    cyclic        {"hour": 24}: columns, by name or number, whose values are on a circle of that length; the shorter way
                  round counts. For coordinates; in a Metric, use Number("hour", period=24)
    decimal       {"weight": ","}: columns of a pandas or Polars frame whose numbers are texts, with their decimal mark
    method        "auto" or a name of the catalogue: "local" (factor 3, 4 with centers anywhere), "disjoint" (the same,
                  simpler), "threshold" (factor 2, few large clusters), "peeling" (factor 4, with epsilon), "rounds"
                  (factor 5 or 6, with epsilon and max_clusters), "exact" (few points)
    centers       "points": centers are input points; "anywhere": smallest enclosing balls, only for plain Euclidean
                  numbers
    effort        "thorough" continues to search after the method, like improve; "exact" (and "auto" for few points)
                  ends after 2, 60, or 600 seconds, or after the number that you set; nothing else depends on it. No
                  choice is random
    improve       continue to search after the method: better centers, points moved out of the widest cluster
    sensitive     values whose diversity every cluster must keep: l (at most 1/l of a cluster share a value),
                  distinct_l (that many different values), or eligible, a monotone function of the counts

    Returns a ``Gathering``: labels int64[n], centers, radii float64[m] in the metric's unit (km for "great-circle",
    otherwise that of the points), sizes int64[m], certificate. ``shoal.release(answer, table, ...)`` publishes it.
    Raises InputError for points that are not finite numbers, PolicyError for a request that contradicts itself,
    InfeasibleError if no clustering exists. "local" takes O(n r log n) time in low dimension and O(n r) space.
    "threshold" and "peeling" take a logarithmic number of tests more, "rounds" max_clusters passes over the balls for
    each test. "exact" has no polynomial bound. Source: Aggarwal et al. 2006, section 2; docs/gathering.md proves the
    factors. The factors 3, 4, 5, and 6 are proved there; the paper announces 3 and 6 without a proof.

    Examples:
        >>> found = gather([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]], r=3)
        >>> found.sizes.tolist(), found.radius, found.certificate.optimal
        ([3, 3], 1.0, True)
    """
    space = space_of(points, metric, cyclic, decimal)
    r, epsilon, max_clusters = check(r, epsilon, max_clusters, centers, method, "gather")
    asked = Effort.of(effort)
    at_points = centers == "points"
    if not at_points and space.coordinates is None:
        raise PolicyError("⟨centers='anywhere'⟩ needs plain numbers and the Euclidean metric; use ⟨centers='points'⟩")
    diversity = Diversity.of(space.n, values)
    unread = {
        "⟨centers='anywhere'⟩": not at_points, "⟨method='exact'⟩": method == "exact",
        "a condition on sensitive values": diversity is not None,
    }  # fmt: skip
    if improve and (beside := [what for what, there in unread.items() if there]):
        raise PolicyError(f"⟨improve=True⟩ has no effect with {beside[0]}; leave one of them out")
    improve = improve or asked.name == "thorough"
    order = space.along()  # neighbors in space are adjacent in memory, which halves the time for a million points
    part = None if diversity is None else diversity.part(order)
    found = _gathered(
        space.part(order), r, epsilon, max_clusters, method, at_points, improve, part, asked.among(SECONDS)
    )
    details = {
        "problem": "gather", "r": r, "epsilon": epsilon, "max_clusters": max_clusters,
        **conditions(diversity),
    }  # fmt: skip
    return replace(found.of_rows(order), details=details)


def _gathered(
    space: Space, r: int, epsilon: float, max_clusters: int | None, method: str, at_points: bool, improve: bool,
    diversity: Diversity | None, seconds: float,
) -> Gathering:  # fmt: skip
    """The answer to a checked request."""
    asked = r
    if diversity is not None:
        r = max(r, diversity.smallest)
        if max_clusters is not None:
            raise PolicyError("⟨max_clusters⟩ together with a condition on sensitive values is not offered; drop one")
    if space.n < r:
        raise InfeasibleError(
            f"no cluster of r = {r} exists among {several(space.n, 'point')}; the largest r possible is {space.n}"
        )
    left_out = math.floor(epsilon * space.n + 1e-9)
    with within(0.0, _LISTED):
        lists = Lists.of(space, r)
    ask = GatherAsk(space, r, left_out, max_clusters, at_points, lists, seconds)
    name = _choose(ask, method)
    if diversity is not None:
        return _diverse(ask, name, diversity, asked)
    if method != "auto":
        return _answered(ask, name, improve)
    found = _answered(ask, name, improve)
    if max_clusters is not None and found.clusters > max_clusters:
        found = _answered(ask, "rounds" if left_out else "threshold", True)
    flat = space.coordinates is not None and space.coordinates.shape[1] <= exact.DIMENSIONS
    if space.n <= FEW and not found.certificate.optimal and (at_points or flat):
        proved = _answered(ask, "exact", False)
        found = proved if proved.cost <= found.cost else found
    return found


def _answered(ask: GatherAsk, name: str, improve: bool) -> Gathering:
    """A method's answer, with the radius reduced by search if requested."""
    space, at_points = ask.space, ask.at_points
    answer = METHODS[name](ask)
    bound, why = _bound(ask, answer)
    found = rejoin(space, answer.clusters) if ask.left_out and answer.center is None else answer.clusters
    if at_points:
        if improve and name != "exact" and found.radius > bound:
            found = trimmed(space, better(space, found, ask.r), ask.r, ask.left_out)
        return _result(ask, found, name, bound, why, proved=answer.proved, loose=answer.loose)
    if answer.center is not None:
        return _result(ask, found, name, bound, why, answer.center, proved=answer.proved)
    found, middle, disc_bound = _free(ask, found, name)
    if disc_bound > bound:
        bound, why = disc_bound, "some point lies in no smaller disc with r - 1 others (docs/gathering.md, Theorem 2)"
    return _result(ask, found, name, bound, why, middle, proved=answer.proved, loose=answer.loose)


def _choose(ask: GatherAsk, method: str) -> str:
    if method == "auto":
        return "local"
    if method == "threshold" and ask.left_out:
        raise PolicyError("method 'threshold' leaves nobody out; use 'local', 'peeling' or 'rounds' with epsilon")
    if method in ("local", "disjoint", "peeling") and ask.most is not None:
        raise PolicyError(f"method {method!r} does not limit the clusters; use 'threshold', or 'rounds' with epsilon")
    return method


def _bound(ask: GatherAsk, answer: GatherAnswer) -> tuple[float, str]:
    """The best of the bounds that hold for the requested kind of centers."""
    if ask.at_points:
        bound, why = quantile(ask.lists.tau, ask.left_out), "largest tau (docs/gathering.md, Lemma 1)"
    else:
        bound, why = quantile(ask.lists.rho, ask.left_out) / 2, "half the largest distance to an r-th nearest point"
    return (answer.bound, answer.why) if answer.bound > bound else (bound, why)


def _free(ask: GatherAsk, found: Clusters, name: str) -> tuple[Clusters, np.ndarray, float]:
    """Free centers: the widest balls are made smaller, from this answer and from one that starts at the best discs."""
    bound, discs = local_search.bound_anywhere(ask.space, ask.r, ask.left_out, ask.lists)
    goal = bound * (1 + 1e-9)
    best, middle = local_search.polish(ask.space, found, ask.r, goal)
    if discs and name == "local" and best.radius > goal * 1.0001:
        again = local(ask.space, ask.r, ask.left_out, ask.lists, preset=local_search.preset(ask.space, ask.r, discs))
        other, other_middle = local_search.polish(ask.space, again, ask.r, goal)
        allowed = ask.most is None or other.center.size <= ask.most
        if allowed and other.radius < best.radius:
            best, middle = other, other_middle
    return best, middle, bound


def _diverse(ask: GatherAsk, name: str, diversity: Diversity, asked: int) -> Gathering:
    """Diverse clusters of all points, or of a largest set of points that can be diverse."""
    space = ask.space
    if name not in ("local", "disjoint"):
        raise PolicyError(f"method {name!r} does not look at sensitive values; use 'local'")
    kept = diversity.kept(ask.r, ask.left_out, ask.lists.tau)
    whole = kept.size == space.n
    if whole:
        best, lists, missing = _from_cores(ask, name, diversity)
    else:
        part = space.part(kept)
        inner = replace(ask, space=part, left_out=ask.left_out - (space.n - kept.size), lists=Lists.of(part, ask.r))
        found, lists, missing = _from_cores(inner, name, diversity.part(kept))
        best = found.among(kept, space.n)
    single = whole and len(diversity.frequency) == 1 and diversity.eligible is None
    bound, why = quantile(ask.lists.tau, ask.left_out), "largest tau (docs/gathering.md, Lemma 1)"
    if single and quantile(lists.tau, ask.left_out) > bound and np.isfinite(lists.tau).all():
        bound, why = quantile(lists.tau, ask.left_out), "largest tau with diverse cores (docs/gathering.md, Lemma 1)"
    if not ask.at_points:
        bound, why = quantile(ask.lists.rho, ask.left_out) / 2, "half the largest distance to an r-th nearest point"
    proved = single and diversity.adding_is_safe and not missing
    middle = None
    if not ask.at_points:
        x = space.coordinates
        assert x is not None
        middle, _ = local_search.recenter(x, best.labels, best.center.size, best.center)
    return _result(ask, best, name, bound, why, middle, proved=proved, extra={"r": asked, "repaired": missing})


def _from_cores(ask: GatherAsk, name: str, diversity: Diversity) -> tuple[Clusters, Lists, float]:
    """Diverse cores first, then repair after joining. (clusters, lists of the cores, share of points without a core)"""
    space, r = ask.space, ask.r
    lists, core, missing = cores(space, r, diversity)
    trials: list[Clusters] = []
    if not missing or quantile(lists.rho, ask.left_out) < np.inf:
        start = disjoint(space, r, ask.left_out, lists, core, anywhere=not ask.at_points)
        if start.center.size:
            trials.append(repair(space, start, r, diversity))
    trials.append(repair(space, METHODS[name](ask).clusters, r, diversity))
    return min(trials, key=lambda c: (c.radius, float(c.away.sum()))), lists, missing


def _result(
    ask: GatherAsk, found: Clusters, name: str, bound: float, why: str, middle: np.ndarray | None = None,
    *, proved: bool = True, loose: float = 0.0, extra: dict[str, Any] | None = None,
) -> Gathering:  # fmt: skip
    space = ask.space
    kept = np.flatnonzero(found.labels >= 0)
    m = found.center.size
    if middle is None:
        away = space.between(kept, found.center[found.labels[kept]])
        rows = found.center
        centers = rows if space.numbers is None else space.numbers[rows]
    else:
        x = space.coordinates
        assert x is not None
        away = np.sqrt(((x[kept] - middle[found.labels[kept]]) ** 2).sum(axis=1))
        rows = np.full(m, -1)
        centers = middle * space.units
    radii = np.zeros(m)
    np.maximum.at(radii, found.labels[kept], away)
    sizes = np.bincount(found.labels[kept], minlength=m)
    cost = float(radii.max(initial=0.0))
    low = tight(bound, cost, space.metric.unit, why)
    low = low if low == cost else low * SAFE
    at, free, theorem = THEOREMS[name]
    factor = (at if ask.at_points else free) * (1 + loose) if proved else None
    promise = Guarantee(factor=factor, theorem=theorem) if factor is not None else Guarantee()
    details = {
        "r": ask.r, "left_out": int((found.labels < 0).sum()), "may_be_left_out": ask.left_out, "clusters": m,
        "centers": "points" if ask.at_points else "anywhere", "mean_distance": float(away.mean()) if away.size else 0.0,
        **(extra or {}),
    }  # fmt: skip
    return Gathering(
        labels=found.labels, centers=centers, center_rows=rows, radii=radii, sizes=sizes,
        mean_distance=details["mean_distance"], method=name, metric=space.metric,
        certificate=Certificate(
            cost=cost, lower_bound=low, unit=space.metric.unit, guarantee=promise, bound=why, details=details
        ),
    )  # fmt: skip
