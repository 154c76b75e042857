"""A packing of disjoint connected sets that meet the thresholds, by column generation: how many sets fit in a graph.

Maximize sum y_R over connected sets R, minimal among those that meet the thresholds, with every vertex in at most one.
Pricing enumerates all connected sets that cost less than one (``connected_sets``), so the program is solved over all of
them. The bound is computed in whole numbers from the rounded prices, so the solver's rounding can't affect it.

Subset-row cuts (Jepsen, Petersen, Spoorendonk, Pisinger 2008): at most one of the sets that contain two or more of
three vertices can be chosen. Their dual prices only increase a set's price, so the same enumeration prices them.

A packing comes from the linear program by dives, which fix sets one after another. As many dives run at a time as there
are cores. The next set of a dive is drawn at random, so dives end in different places. Every other dive starts from
another optimal solution of the program, with the objective coefficients drawn close to one, because from some solutions
no dive succeeds. Each dive has its own random state, and the first successful one in order is the answer, so the answer
doesn't depend on the number of cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from shoal.problems.regions.task import Contiguity, SearchClock, graph
from shoal.threads import BackgroundCalls

_WHOLE = 1e-7  # tolerance of a share that counts as zero or one
_SHORT = 1e-6  # tolerance of the required sum of shares
_OFF = 0.02  # largest deviation of a random objective coefficient from one


class _Dive(NamedTuple):
    """float64[c]: the shares if the dive succeeded; and the number of linear programs that it solved."""

    shares: np.ndarray | None
    programs: int


def whole(shares: np.ndarray) -> bool:
    """Whether every share is zero or one."""
    return len(shares) > 0 and bool((np.minimum(shares, np.abs(1 - shares)) < _WHOLE).all())


def dived(solved: Any, wanted: int, most: int) -> np.ndarray | None:
    """float64[c] of zeros and ones with a sum of at least ``wanted``, or None.

    solved  a solved program: minimize the sum of - y under rows, y >= 0
    most    approximate limit of linear programs
    """
    model, basis = solved.getModel(), solved.getBasis()
    ahead: deque[Future[_Dive]] = deque()
    begun = programs = 0
    with BackgroundCalls() as calls:
        while programs <= most:
            while sum(not dive.done() for dive in ahead) < calls.cores:
                ahead.append(calls.start(partial(_dive, model, basis, wanted, begun)))
                begun += 1
            if not ahead[0].done():
                calls.first(*(dive for dive in ahead if not dive.done()))
                continue
            dive = ahead.popleft().result()
            if dive.shares is not None:
                return dive.shares
            programs += dive.programs
    return None


def _dive(model: Any, basis: Any, wanted: int, number: int, stop: Event) -> _Dive:
    """One dive.

    If fixing a set at one leaves too little, it is fixed at zero instead. If that leaves too little too, the dive ends.
    """
    from shoal.problems.programs import Solver

    least = wanted - _SHORT
    highs = Solver(dual_simplex_cost_perturbation_multiplier=0.0)
    highs.passModel(model)
    highs.setBasis(basis)
    draws, programs, count = np.random.default_rng(number), 0, model.lp_.num_col_
    if number % 2:
        highs.changeColsCost(count, np.arange(count, dtype=np.int32), -draws.uniform(1 - _OFF, 1 + _OFF, count))
    else:
        highs.setOptionValue("objective_bound", -least)  # the program ends early if it can't reach the required sum

    def shares() -> np.ndarray | None:
        nonlocal programs
        programs += 1
        optimal, found = highs.solved(), highs.x
        return found if optimal and found.sum() > least else None

    held = shares()
    while held is not None and not whole(held) and not stop.is_set():
        open_ = np.flatnonzero((held > _WHOLE) & (held < 1 - _WHOLE))
        taken = int(open_[np.argmax(held[open_] * draws.random(len(open_)))])
        for bound in (1.0, 0.0):
            highs.changeColBounds(taken, bound, bound)
            held = shares()
            if held is not None:
                break
    return _Dive(held if held is not None and whole(held) else None, programs)


UNIT = 10**9  # prices are whole multiples of 1 / UNIT
_NEAR = 30  # rounding uses sets that cost up to 1 + 1 / _NEAR
_ROUNDED = 3_000  # unless there are more than this
CUTS = 40  # default number of subset-row cuts added at once
_PROGRAMS = 600  # most linear programs in dives
_CUTS_BEFORE = 320  # subset-row cuts before the dives
_AT_ONCE = 80  # and added at once
_LOOSE = 10**3  # a set becomes a column if it costs at least this much less than UNIT


@dataclass(slots=True)
class Packing:
    """A bound on the number of disjoint sets, the packing found, and whether the proof is complete."""

    bound: int
    sets: list[np.ndarray] = field(default_factory=list)
    rounds: int = 0
    columns: int = 0
    cuts: int = 0
    finished: bool = False  # the program was solved over all sets (before or after subset-row cuts)

    @property
    def proved(self) -> bool:
        """Whether the packing has as many sets as the bound."""
        return len(self.sets) == self.bound


def pack(
    g: Contiguity,
    weights: np.ndarray,
    need: np.ndarray,
    *,
    known: Sequence[np.ndarray] = (),
    more: Sequence[np.ndarray] = (),
    bound: int,
    nodes: int = 3_000_000,
    clock: SearchClock | None = None,
    cuts: int = 400,
    rounding: bool = False,
    integer: bool = False,
) -> Packing:
    """Bound the number of disjoint connected sets that meet ``need``, and with ``integer`` find the most.

    g, weights, need  a graph, int64[n, t], int64[t]
    known             disjoint sets already found (vertex numbers);  bound: an upper bound already proved
    more              further initial sets, which may overlap
    nodes             most connected sets examined in one pricing; if it is exceeded, the bound so far is kept
    cuts              most subset-row cuts
    rounding          finish with dives, then a short integer program over the sets that cost little more than the
                      cheapest; they can find a packing, and prove nothing (not together with ``integer``)
    integer           finish with an integer program over every set that a better packing could contain

    Exponential in the worst case; quick for sets of up to about 15 vertices.
    """
    search = _Search.of(
        g, weights, need, nodes, clock or SearchClock.of(None), Packing(bound, [np.sort(s) for s in known])
    )
    search.take([np.sort(search.rank[found]) for found in (*known, *more)])
    price, cut_price = search.program(bool(known), cuts)
    left = search.clock.left > 0
    answer = search.answer
    if answer.finished and not answer.proved and left:
        if integer:
            search.choose(price, cut_price)
        elif rounding:
            search.round(price, cut_price)
    return answer


class _Search(NamedTuple):
    """The state of a packing search: vertices by descending weight (``order``, ``rank``), program, best packing."""

    graph: Contiguity
    features: np.ndarray
    need: np.ndarray
    order: np.ndarray
    rank: np.ndarray
    nodes: int
    clock: SearchClock
    master: _Master
    answer: Packing

    @classmethod
    def of(
        cls, g: Contiguity, weights: np.ndarray, need: np.ndarray, nodes: int, clock: SearchClock, answer: Packing
    ) -> _Search:
        order = np.argsort(-weights[:, 0], kind="stable")
        rank = np.empty(g.n, np.int64)
        rank[order] = np.arange(g.n)
        ends = g.edges()
        turned = graph(rank[ends] if len(ends) else ends, g.n)
        features = np.ascontiguousarray(weights[order])
        return cls(turned, features, need, order, rank, nodes, clock, _Master(g.n), answer)

    def take(self, sets: Iterable[np.ndarray]) -> int:
        """Add columns for sets; returns how many are new."""
        return sum(map(self.master.add_set, sets))

    def priced(self, price: np.ndarray, cut_price: np.ndarray, limit: int, every: int) -> Any:
        """The sets of cost at most ``limit``, minimal ones or ``every``: members, ends, costs, number examined."""
        from shoal.kernels.regions.areas import Areas
        from shoal.kernels.regions.connected import Listing, SetPrices, connected_sets

        areas = Areas(self.graph.indptr, self.graph.indices, self.features, self.need, 1)
        most = self.nodes if self.clock.left > 0 else 0
        prices = SetPrices(price, cut_price, *self.master.cuts_of(self.graph.n))
        return connected_sets(areas, prices, Listing(limit, 2**62, every, most, 4_000_000))

    def better(self, sets: list[np.ndarray] | None) -> None:
        """Keep a packing if it has more sets."""
        if sets is not None and len(sets) > len(self.answer.sets):
            self.answer.sets = [np.sort(self.order[s]) for s in sets]

    def program(self, known: bool, cuts: int, at_once: int = CUTS) -> tuple[np.ndarray, np.ndarray]:
        """Solve over all sets, with subset-row cuts while the solution is fractional; returns the last prices."""
        master, answer = self.master, self.answer
        price, cut_price = np.zeros(self.graph.n, np.int64), np.zeros(0, np.int64)
        if known:
            master.solve()
            price, cut_price = master.prices()
        # Columns are priced at these duals; any duals prove a bound. Without a new column the program is solved, and
        # cuts follow if the solution is fractional.
        while not answer.proved:
            answer.rounds += 1
            members, stops, costs, looked = self.priced(price, cut_price, UNIT - _LOOSE, 0)
            if looked < 0:
                break
            cheapest = int(costs.min()) if len(costs) else UNIT - _LOOSE
            if cheapest > 0:
                answer.bound = min(answer.bound, (sum(price.tolist()) + sum(cut_price.tolist())) // cheapest)
            new = self.take(np.split(members, stops)[:-1])
            if answer.proved:
                break
            if new == 0 and answer.rounds > 1:
                answer.finished = True
                if master.integral() or len(master.triples) >= cuts or not master.add_cuts(at_once):
                    break
            master.solve()
            if master.integral() and master.value > len(answer.sets):
                self.better(master.chosen())
            price, cut_price = master.prices()
        answer.columns, answer.cuts = len(master.sets), len(master.triples)
        return price, cut_price

    def near(self, price: np.ndarray, cut_price: np.ndarray) -> None:
        """Add columns for the sets that cost little more than the cheapest, unless they are too many."""
        members, stops, _, looked = self.priced(price, cut_price, UNIT + UNIT // _NEAR, 1)
        if looked >= 0 and len(stops) <= _ROUNDED:
            self.take(np.split(members, stops)[:-1])

    def round(self, price: np.ndarray, cut_price: np.ndarray) -> None:
        """Dives, and a short integer program, over the sets that cost little more than the cheapest.

        Subset-row cuts come first, because every packing may need a set that only cuts make cheap.
        """
        self.near(price, cut_price)
        plain = self.master.model()
        self.near(*self.program(True, _CUTS_BEFORE, _AT_ONCE))
        if not self.answer.proved:
            self.better(self.master.dived(self.answer.bound, _PROGRAMS))
        if not self.answer.proved:
            self.better(self.master.rounded(plain, self.answer.bound))
        self.answer.columns = len(self.master.sets)

    def choose(self, price: np.ndarray, cut_price: np.ndarray) -> None:
        """An integer program over every set that a better packing could contain.

        Every set costs at least UNIT - _LOOSE, and a packing costs at most the total. So a packing with one set more
        than the best known contains no set that costs more than the remainder.
        """
        answer = self.answer
        total = sum(price.tolist()) + sum(cut_price.tolist())
        members, stops, _, looked = self.priced(price, cut_price, total - len(answer.sets) * (UNIT - _LOOSE) + 1, 1)
        if looked < 0:
            return
        self.take(np.split(members, stops)[:-1])
        chosen, most = self.master.choose(len(answer.sets) + 1, min(self.clock.left, 600.0))
        answer.bound = min(answer.bound, most)
        self.better(chosen)
        answer.columns = len(self.master.sets)


class _Master:
    """The restricted master program: the linear program over the columns so far."""

    def __init__(self, n: int) -> None:
        from shoal.problems.programs import Solver

        self.highs = Solver(dual_simplex_cost_perturbation_multiplier=0.0)  # with this setting, dives end sooner
        self.n = n
        self.sets: list[np.ndarray] = []
        self.seen: set[bytes] = set()
        self.triples: list[tuple[int, int, int]] = []
        self.value = 0.0
        self.y = np.zeros(0)
        self.dual = np.zeros(n)
        self.highs.add_rows(np.full(n, -np.inf), np.ones(n))

    def add_set(self, members: np.ndarray) -> bool:
        """Add a column for a set of vertices; False if it exists already."""
        key = np.sort(members).astype(np.int32)
        if key.tobytes() in self.seen:
            return False
        self.seen.add(key.tobytes())
        self.sets.append(key)
        inside = set(key.tolist())
        rows = [*key.tolist(), *(self.n + i for i, t in enumerate(self.triples) if len(inside.intersection(t)) >= 2)]
        self.highs.add_columns(np.full(1, -1.0), np.full(1, np.inf), [np.array(rows)])
        return True

    def solve(self) -> None:
        """Solve, and store the value (0 if infeasible), the weights, and the duals."""
        self.highs.run()
        self.y, self.dual = self.highs.x, np.maximum(0.0, -self.highs.duals)
        self.value = 0.0 if self.highs.infeasible else float(self.y.sum())

    def integral(self) -> bool:
        """Whether the solution is a packing."""
        return whole(self.y)

    def chosen(self) -> list[np.ndarray]:
        """The sets with value one in an integral solution."""
        return [self.sets[i] for i in np.flatnonzero(self.y > 0.5)]

    def prices(self) -> tuple[np.ndarray, np.ndarray]:
        """Duals of the vertices and of the triples, as whole multiples of 1 / UNIT."""
        whole = np.rint(self.dual * UNIT).astype(np.int64)
        return whole[: self.n].copy(), whole[self.n :].copy()

    def cuts_of(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The triples of every vertex in compressed rows."""
        flat = np.array(self.triples, np.int64).reshape(-1)
        order = np.argsort(flat, kind="stable")
        at = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(flat, minlength=n), out=at[1:])
        return at, order // 3

    def add_cuts(self, most: int) -> int:
        """Add the most violated subset-row cuts; returns how many were added."""
        live = np.flatnonzero((self.y > 1e-7) & (self.y < 1 - 1e-7))
        member = np.zeros((len(live), self.n))
        for i, j in enumerate(live):
            member[i, self.sets[j]] = 1.0
        weighted = member * self.y[live, None]
        both = weighted.T @ member
        found: list[tuple[float, tuple[int, int, int]]] = []
        for a in np.flatnonzero(both.sum(axis=1) > 0).tolist():
            # Sets that contain two of three vertices: if no set contains a and c, all of them contain b.
            near = a + 1 + np.flatnonzero(both[a, a + 1 :] > 0)
            holds = member[:, a] > 0
            with_a = weighted[np.ix_(holds, near)].T @ member[np.ix_(holds, near)]
            value = both[a, near][:, None] + both[a, near] + both[np.ix_(near, near)] - 2 * with_a
            b, c = np.nonzero(np.triu(value, 1) > 1 + 1e-4)
            found += [(float(value[i, j]), (a, int(near[i]), int(near[j]))) for i, j in zip(b, c, strict=True)]
        found.sort(key=lambda pair: (-pair[0], pair[1]))
        old = set(self.triples)
        fresh = [t for _, t in found if t not in old][:most]
        inside = np.zeros((len(self.sets), self.n), np.int8)
        for i, members in enumerate(self.sets):
            inside[i, members] = 1
        if fresh:
            columns = [np.flatnonzero(inside[:, list(triple)].sum(axis=1) >= 2) for triple in fresh]
            self.highs.add_rows(np.full(len(fresh), -np.inf), np.ones(len(fresh)), columns)
            self.triples += fresh
        return len(fresh)

    def model(self) -> Any:
        """The current program."""
        return self.highs.getModel()

    def dived(self, wanted: int, most: int) -> list[np.ndarray] | None:
        """A packing of ``wanted`` sets or more, or None, by subset-row cuts and then dives.

        most  approximate limit of linear programs in dives
        """
        self.solve()
        for _ in range(3):
            if not self.add_cuts(80):
                break
            self.solve()
        if self.value <= wanted - 1e-6:  # these sets can't contain so many disjoint ones
            return None
        shares = dived(self.highs, wanted, most)
        return None if shares is None else [self.sets[i] for i in np.flatnonzero(shares > 0.5)]

    def rounded(self, plain: Any, wanted: int) -> list[np.ndarray] | None:
        """A packing by an integer program over the columns that stops at its root, or at ``wanted`` sets; or None."""
        from shoal.problems.programs import Solver

        highs = Solver(mip_max_nodes=1, mip_abs_gap=0.99, objective_target=-float(wanted))
        highs.passModel(plain)
        highs.make_whole()
        highs.run()
        return [self.sets[i] for i in np.flatnonzero(highs.x > 0.5)] if highs.feasible else None

    def choose(self, wanted: int, seconds: float) -> tuple[list[np.ndarray] | None, int]:
        """An integer packing of ``wanted`` sets or more over the columns, or None.

        And an upper bound of its number of sets.
        """
        self.highs.make_whole()
        self.highs.limit(seconds)
        self.highs.setOptionValue("mip_abs_gap", 0.99)
        optimal, y = self.highs.solved(), self.highs.x
        feasible = self.highs.feasible and len(y) == len(self.sets)
        sets = [self.sets[i] for i in np.flatnonzero(y > 0.5)] if feasible else None
        if optimal and sets is not None:
            return sets, max(len(sets), wanted - 1)
        bound = self.highs.getInfo().mip_dual_bound
        most = int(np.floor(-bound + 1e-6)) if np.isfinite(bound) else 2**31
        return sets, max(most, wanted - 1)
