"""Clusters with a small sum of size times radius: one function for all methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.arguments import Effort, coordinates, number, recorded, seed_of, suggesting
from shoal.model.cards import several
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.certificate import tight as agreed
from shoal.model.metric import Metric
from shoal.problems.gathering import cellular_methods as methods
from shoal.problems.gathering import exact
from shoal.problems.gathering.cellular_methods import CellularProblem, Distances, procedure_one, three_step, tight
from shoal.problems.gathering.diverse import Conditions, Diversity, conditions, repair
from shoal.problems.gathering.gather import SECONDS, Gathering, check
from shoal.problems.gathering.space import Space, space_of
from shoal.problems.gathering.threshold import Clusters
from shoal.threads import interruptible
from shoal.watching import watched, within

PAPER = "Aggarwal et al. 2006"
ALIKE = 1 - 1e-12  # sums that differ only by rounding
SAFE = 1 - 1e-9
EXACT = 1e-6  # a bound this close means that the integer program was solved
FEW = 20  # except with "fast", up to this many points "auto" uses the exact method: a second at most
LISTED = 0.25  # share of the time for lists of nearest points; the bound takes the same
VAIN = 20  # rounds without improvement after which a timed search ends early
SMALL = 1000  # up to this many points "auto" also starts from the method with a proved factor


def setup_of(setup_costs: Any, n: int) -> np.ndarray:
    """float64[n]: the cost of opening a cluster around each point; InputError for invalid costs."""
    if setup_costs is None:
        return np.zeros(n)
    setup = coordinates(setup_costs, "setup_costs")
    if setup.ndim and setup.shape != (n,):
        raise InputError(f"⟨setup_costs⟩ has shape {setup.shape}; one number, or one for each of the {n} points")
    setup = np.full(n, float(setup)) if not setup.ndim else setup.copy()
    bad = ~np.isfinite(setup) | (setup < 0)
    if bad.any():
        rule = "costs are finite and at least 0"
        if np.ndim(setup_costs):  # the message must not contain values of points
            raise InputError(f"⟨setup_costs⟩: {rule}, and {int(bad.sum()):,} are not")
        raise InputError(f"⟨setup_costs={float(setup_costs):g}⟩: {rule}")
    return setup


@dataclass(frozen=True, eq=False)
class CellularAsk:
    """The input of a method.

    effort   its name; "balanced" for an effort in seconds
    seconds  of the exact method
    until    clock reading after which no further round of the search begins; None: one round
    """

    problem: CellularProblem
    left_out: int
    effort: str
    improve: bool
    seed: int
    seconds: float
    until: float | None


@dataclass(frozen=True, eq=False)
class CellularAnswer:
    """Clusters, feasible prices if the method made some, its own bound, and the proved factor."""

    clusters: Clusters
    promise: Guarantee = field(default_factory=Guarantee)
    price: np.ndarray | None = None
    bound: float = 0.0


def by_search(ask: CellularAsk) -> CellularAnswer:
    """Greedy, then the search; if points may be left out, those with the highest prices first."""
    p, space = ask.problem, ask.problem.space
    if not ask.left_out:
        return CellularAnswer(_improved(ask, methods.greedy(p, np.zeros(space.n, np.bool_))))
    price, _ = methods.raised(p.near, p.far, p.r, p.setup)
    out = np.zeros(space.n, np.bool_)
    out[np.argsort(-price, kind="stable")[: min(ask.left_out, space.n - p.r)]] = True  # r points must remain
    with within(0.0, 0.4):
        best = _improved(ask, methods.greedy(p, out))
    return CellularAnswer(_exchange(ask, best))


def by_tight(ask: CellularAsk) -> CellularAnswer:
    """Set-up costs: clusters are frozen when they are paid, and the largest are kept."""
    p = _plain(ask, "tight")
    found = tight(Distances(p.space), 1, p.setup)
    start = methods.without_empty(p.space, found.labels, found.center)
    promise = Guarantee(factor=3.0, theorem="docs/gathering.md, Theorem 5: the largest of the paid clusters")
    return CellularAnswer(_improved(ask, start), promise, found.alpha)


def by_procedure_one(ask: CellularAsk) -> CellularAnswer:
    """Set-up costs: the paper's Procedure 1."""
    p = _plain(ask, "procedure_one")
    found = procedure_one(Distances(p.space), 1, p.setup)
    start = methods.without_empty(p.space, found.labels, found.center)
    return CellularAnswer(_improved(ask, start), Guarantee(factor=4.0, theorem=f"{PAPER}, Theorem 3.3"), found.alpha)


def by_three_step(ask: CellularAsk) -> CellularAnswer:
    """The three steps for clusters of at least r points: priced, shared, made disjoint."""
    p = ask.problem
    if p.setup.any() or p.diversity is not None:
        raise PolicyError("method 'three_step' takes r alone, no set-up costs and no condition; use 'search'")
    widest = np.inf if p.max_diameter is None else p.max_diameter
    found, alpha = three_step(Distances(p.space), p.r, ask.left_out, widest)
    if found is None:
        raise InfeasibleError(f"some point has no {p.r - 1} others within the largest diameter {widest:g}")
    factor, where = 36.0, "Theorem 6"
    if ask.left_out:
        factor, where = 63.0, "Theorem 7"
    if p.max_diameter is not None:
        where = "Theorem 8: against the optimum within the cap, which this may exceed up to 18 fold"
    promise = Guarantee(factor=factor, theorem=f"docs/gathering.md, {where}")
    if p.max_diameter is None:
        found = _improved(ask, found)
    elif ask.improve:
        found = _within_promise(ask, found, factor)
    whole = not ask.left_out and p.max_diameter is None
    return CellularAnswer(found, promise, alpha / 2 if whole else None)


def _within_promise(ask: CellularAsk, start: Clusters, factor: float) -> Clusters:
    """The search trades cost for diameter. Its answer is used only if cost and diameter still meet the guarantee."""
    p = ask.problem
    trial = methods.improve(p, start, ask.effort, ask.seed)
    price, _ = methods.raised(p.near, p.far, p.r, p.setup, left_out=ask.left_out)
    cheap = max(methods.cost(p, start), factor * methods.bound(price, ask.left_out) * SAFE)
    wide = max(float(methods.diameters(p.space, start).max(initial=0.0)), p.max_diameter or 0.0)
    kept = methods.cost(p, trial) <= cheap and float(methods.diameters(p.space, trial).max(initial=0.0)) <= wide
    return trial if kept else start


def by_exact(ask: CellularAsk) -> CellularAnswer:
    """The least cost for few points."""
    p = ask.problem
    if p.diversity is not None:
        raise PolicyError("method 'exact' does not look at sensitive values; use 'search'")
    found, bound = exact.cellular_exact(p.space, p.r, p.setup, ask.left_out, p.max_diameter, ask.seconds)
    if found is None and bound == np.inf:
        raise InfeasibleError(f"no clustering of r = {p.r} meets the largest diameter {p.max_diameter}")
    if found is not None and bound >= methods.cost(p, found) * (1 - EXACT):
        promise = Guarantee(factor=1.0, theorem="one integer program over all centers and radii")
        return CellularAnswer(found, promise, None, bound)
    searched = by_search(ask).clusters  # after a time-out, the program's answer can be worse than the search's
    if found is None or (_cap_met(p, searched) and methods.cost(p, searched) < methods.cost(p, found)):
        found = searched
    return CellularAnswer(found, bound=bound)


METHODS: dict[str, Callable[[CellularAsk], CellularAnswer]] = {
    "search": by_search,
    "tight": by_tight,
    "procedure_one": by_procedure_one,
    "three_step": by_three_step,
    "exact": by_exact,
}


def _plain(ask: CellularAsk, name: str) -> CellularProblem:
    p = ask.problem
    if p.r > 1 or ask.left_out or p.max_diameter is not None or p.diversity is not None:
        raise PolicyError(f"method {name!r} takes set-up costs alone; use 'search' or 'three_step' with r and the rest")
    return p


def _improved(ask: CellularAsk, found: Clusters) -> Clusters:
    p = ask.problem
    if p.diversity is not None:
        found = repair(p.space, found, p.r, p.diversity)
        if p.diversity.eligible is not None:  # the search supports only counts and shares
            return found
    return _searched_on(ask, found) if ask.improve else found


def _searched_on(ask: CellularAsk, found: Clusters) -> Clusters:
    """One round of the search; with an effort in seconds, rounds until the time is over, or until they gain nothing."""
    p, vain, turn, begun = ask.problem, 0, 1, clock()
    with within(0.0, 1.0 if ask.until is None else 0.1):
        best = methods.improve(p, found, ask.effort, ask.seed)
    while ask.until is not None and vain < VAIN and clock() < ask.until:
        share = max(0.1, (clock() - begun) / (ask.until - begun))
        with within(share, share):
            trial = methods.improve(p, best, ask.effort, ask.seed + turn)
        gains = methods.penalized(p, trial) < methods.penalized(p, best)
        best, vain, turn = (trial, 0, turn + 1) if gains else (best, vain + 1, turn + 1)
    return best


EXCHANGES = 3  # rounds of exchanges between points left out and others


def _exchange(ask: CellularAsk, found: Clusters) -> Clusters:
    """Exchange left-out points with others while this lowers the cost."""
    p = ask.problem
    best = found
    for i in range(EXCHANGES if ask.improve else 1):
        back = methods.admit(p.space, best.labels.copy(), best.center, np.flatnonzero(best.labels < 0))
        if p.diversity is not None:
            return best
        trial = methods.leave_out(p, back, ask.left_out)
        if ask.improve:
            with within(0.4 + 0.6 * i / EXCHANGES, 0.4 + 0.6 * (i + 1) / EXCHANGES):
                trial = methods.improve(p, trial, ask.effort, ask.seed)
        if methods.penalized(p, trial) >= methods.penalized(p, best):
            break
        best = trial
    return best


@watched
@suggesting
@interruptible
@recorded
def cellular(
    points: Any,
    r: int | None = None,
    setup_costs: Any = None,
    epsilon: float = 0.0,
    max_diameter: float | None = None,
    metric: str | Metric | Callable[..., Any] = "euclidean",
    *,
    cyclic: Mapping[Any, float] | None = None,
    decimal: Mapping[str, str] | None = None,
    method: str = "auto",
    effort: str | float = "balanced",
    seed: int | None = None,
    improve: bool = True,
    **values: Unpack[Conditions],
) -> Gathering:
    """Clusters with a small sum of size times radius (plus set-up costs), with centers at input points.

    points, metric, cyclic, decimal, epsilon, sensitive, l, distinct_l, eligible  as in ``gather``
    r               least number of points of a cluster; 1 if you set only set-up costs
    setup_costs     cost of opening a cluster: one number, or float[n], one for each center
    max_diameter    largest distance within a cluster. Meeting it is NP-hard, so it is searched for; the certificate's
                    details state if it is met ("cap_met")
    method          "auto", "search", "tight" (set-up costs, factor 3), "procedure_one" (the paper's, factor 4),
                    "three_step" (r, factor 36, with epsilon 63), "exact" (at most 40 points)
    effort          "fast", "balanced", or "thorough"; or seconds, during which the search continues in rounds of
                    "balanced" until many in a row gain nothing; "exact" (and "auto" for few points) ends after 2, 60,
                    600, or these
    seed            of the search: the same seed gives the same answer, except with an effort in seconds
    improve         False: the method's own clusters, without the search after it

    Returns a ``Gathering`` like ``gather``; its cost is points times the metric's unit. Raises what ``gather`` raises.
    "search" usually takes O(n r^2) time and O(n r) space. "tight", "procedure_one", and "three_step" store all
    distances: O(n^2 log n) time and O(n^2) space, for at most 8,000 points. Source: Aggarwal et al. 2006, section 3;
    docs/gathering.md proves the factors. It departs from the paper: "tight" has 3 instead of 4, and "three_step" 36
    instead of 80, whose proof has a gap.

    Examples:
        >>> found = cellular([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]], r=3, seed=1)
        >>> found.sizes.tolist(), found.cost, found.certificate.optimal
        ([3, 3], 6.0, True)
    """
    if r is None and setup_costs is None:
        raise PolicyError("give r, the least size of a cluster, or ⟨setup_costs⟩, or both")
    space = space_of(points, metric, cyclic, decimal)
    asked, epsilon, _ = check(1 if r is None else r, epsilon, None, "points", method, "cellular")
    hard, begun = Effort.of(effort), clock()
    level, until = ("balanced", begun + hard.seconds) if hard.seconds else (hard.name, None)
    diversity, left_out = Diversity.of(space.n, values), math.floor(epsilon * space.n + 1e-9)
    with within(0.0, LISTED):
        problem = _problem(space, asked, setup_costs, max_diameter, diversity, left_out, level)
    drawn = int(np.random.default_rng(seed_of(seed)).integers(1 << 31))
    ask = CellularAsk(problem, left_out, level, improve, drawn, hard.among(SECONDS), until)
    with within(LISTED, 1 - LISTED):
        name, answer = _solve(ask, method) if diversity is None else _diverse(ask, method)
    with within(1 - LISTED, 1.0):
        found = _result(ask, answer, name, *_bound(ask, answer))
    details = {
        "problem": "cellular", "r": asked, "epsilon": epsilon, "max_diameter": problem.max_diameter,
        "setup_cost": _paid(problem.setup), **conditions(diversity),
    }  # fmt: skip
    return replace(found, details=details)


def _problem(
    space: Space, r: int, setup_costs: Any, max_diameter: Any, diversity: Diversity | None, left_out: int, effort: str
) -> CellularProblem:
    """The request in the form of the methods; InfeasibleError if no clusters of that size or width exist."""
    least = max(r, diversity.smallest) if diversity is not None else r
    if space.n < least:
        raise InfeasibleError(
            f"no cluster of r = {least} exists among {several(space.n, 'point')}; the largest r possible is {space.n}"
        )
    setup = setup_of(setup_costs, space.n)
    near, far = space.nearest(methods.width(space, least, effort), tell=True)
    if max_diameter is not None:
        max_diameter = number("max_diameter", max_diameter, "a distance, at least 0", lambda x: x >= 0)
        _feasible_cap(max_diameter, far, least, left_out)
    return CellularProblem(space, least, setup, near, far, max_diameter, diversity)


def _paid(setup: np.ndarray) -> float | str:
    """The cost of opening a cluster, in words if it depends on the center."""
    if setup.size and not (setup == setup[0]).all():
        return "per record"
    return float(setup[0]) if setup.size else 0.0


def _bound(ask: CellularAsk, answer: CellularAnswer) -> tuple[float, str, float]:
    """The best proved bound, its argument, and the initial sum of tau from which prices were raised."""
    p, left_out = ask.problem, ask.left_out
    price, start = methods.raised(p.near, p.far, p.r, p.setup, answer.price, left_out, ask.effort)
    bound, why = methods.bound(price, left_out), "raised prices (docs/gathering.md, Lemma 3)"
    if answer.price is not None and not left_out and methods.bound(answer.price, 0) > bound:
        bound, why = methods.bound(answer.price, 0), "the dual of the primal-dual method"
    if answer.bound > bound and _cap_met(p, answer.clusters):  # the program's bound assumes that the cap is met
        bound, why = answer.bound, "integer program"
    return bound, why, start


def _diverse(ask: CellularAsk, method: str) -> tuple[str, CellularAnswer]:
    """A diverse clustering of all points, or of a largest set of points that can be diverse."""
    p = ask.problem
    assert p.diversity is not None
    space, left_out = p.space, ask.left_out
    kept = p.diversity.kept(p.r, left_out, p.far[:, p.r - 1])
    if kept.size == space.n:
        return _solve(ask, method)
    part = space.part(kept)
    near, far = part.nearest(methods.width(part, p.r, ask.effort))
    inner = replace(p, space=part, setup=p.setup[kept], near=near, far=far, diversity=p.diversity.part(kept))
    name, answer = _solve(replace(ask, problem=inner, left_out=left_out - (space.n - kept.size)), method)
    return name, replace(answer, clusters=answer.clusters.among(kept, space.n))


def _solve(ask: CellularAsk, method: str) -> tuple[str, CellularAnswer]:
    """A method's answer; for "auto" with few points, the optimum."""
    if method != "auto":
        return method, METHODS[method](ask)
    p = ask.problem
    name, answer = _searched(ask)
    if p.space.n > FEW or p.diversity is not None or not ask.improve or ask.effort == "fast":
        return name, answer
    if methods.cost(p, answer.clusters) == 0 and _cap_met(p, answer.clusters):  # no answer costs less
        return name, answer
    try:
        proved = by_exact(ask)
    except InfeasibleError:  # no answer meets the largest diameter; the current answer states this
        return name, answer
    dearer = methods.cost(p, proved.clusters) > methods.cost(p, answer.clusters)
    return (name, answer) if dearer and _cap_met(p, answer.clusters) else ("exact", proved)


def _searched(ask: CellularAsk) -> tuple[str, CellularAnswer]:
    p = ask.problem
    simple = not ask.left_out and p.max_diameter is None and p.diversity is None
    if simple and p.r == 1 and p.space.n <= methods.DENSE:
        return "tight", by_tight(ask)
    answer = by_search(ask)
    if simple and p.space.n <= SMALL and not p.setup.any() and p.r > 1 and methods.cost(p, answer.clusters) > 0:
        other = by_three_step(ask)
        better = methods.cost(p, other.clusters) < methods.cost(p, answer.clusters)
        return "search", CellularAnswer(other.clusters if better else answer.clusters, other.promise, other.price)
    return "search", answer


def _cap_met(p: CellularProblem, found: Clusters) -> bool:
    return p.max_diameter is None or float(methods.diameters(p.space, found).max(initial=0.0)) <= p.max_diameter


def _feasible_cap(cap: float, far: np.ndarray, r: int, left_out: int) -> None:
    alone = int((far[:, r - 1] > cap).sum())
    if alone > left_out:
        raise InfeasibleError(
            f"{alone} points have no {r - 1} others within the largest diameter {cap:g}, and {left_out} may be left "
            f"out; no clustering exists under {float(np.sort(far[:, r - 1])[-left_out - 1]):.6g}"
        )


def _result(ask: CellularAsk, answer: CellularAnswer, name: str, bound: float, why: str, start: float) -> Gathering:
    p, found = ask.problem, answer.clusters
    space = p.space
    kept = np.flatnonzero(found.labels >= 0)
    radii = methods.radii(found)
    sizes = np.bincount(found.labels[kept], minlength=found.center.size)
    service = math.fsum((sizes * radii).tolist())
    setup = math.fsum(p.setup[found.center].tolist())
    total = service + setup
    details: dict[str, Any] = {"r": p.r, "sum_of_tau": start, "effort": ask.effort}
    diameter = None
    if p.max_diameter is not None:
        diameter = float(methods.diameters(space, found).max(initial=0.0))
        details |= {"max_diameter": p.max_diameter, "diameter": diameter, "cap_met": diameter <= p.max_diameter}
    low = agreed(bound, total, f"points x {space.metric.unit}", why)
    mean = float(found.away[kept].mean()) if kept.size else 0.0
    details |= {
        "service": service, "setup": setup, "left_out": int(space.n - kept.size), "may_be_left_out": ask.left_out,
        "clusters": found.center.size, "mean_distance": mean, "radius": float(radii.max(initial=0.0)),
    }  # fmt: skip
    return Gathering(
        labels=found.labels, centers=found.center if space.numbers is None else space.numbers[found.center],
        center_rows=found.center, radii=radii, sizes=sizes, mean_distance=mean, method=name, metric=space.metric,
        diameter=diameter,
        certificate=Certificate(
            cost=total,
            lower_bound=total if low >= total * ALIKE else low * SAFE,
            unit=f"points x {space.metric.unit}",
            guarantee=answer.promise,
            bound=why,
            details=details,
        ),
    )  # fmt: skip
