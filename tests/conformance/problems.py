"""Small instances of every problem of the catalogue, each with what exhaustive search and a recount know of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import shoal
from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import MODELS
from shoal.model.recoding import Levels, Recoding
from shoal.problems.tables import group
from tests.oracles import gathering, labels, models, regions, tables, tiles
from tests.oracles.tables import least_total
from tests.tables.drawn import KINDS, TREE
from tools.oracle_models import drawn, made

Random = np.random.Generator


class Instance(NamedTuple):
    """One question, put to one method.

    items   what is put into groups, as many as a permutation of the input has
    solve   (seed, order of the input) -> answer
    best    the optimum in the unit of the certificates; None where nothing will do
    recount (answer) -> its cost, after every condition is looked at; None where the certificate counts otherwise
    labels  (answer) -> what a seed must give again
    """

    items: int
    solve: Callable[[int, np.ndarray], Any]
    best: float | None
    recount: Callable[[Any], float | None]
    labels: Callable[[Any], list[Any]]


class Tested(NamedTuple):
    """How the methods of a problem are tested.

    draw    (random, method) -> an instance
    exact   methods that prove an optimum on instances this small
    stable  methods whose cost depends on the order of the input in no way; None: all
    every   methods that answer every instance, or say that none has an answer
    """

    draw: Callable[[Random, str], Instance]
    exact: tuple[str, ...]
    stable: tuple[str, ...] | None = None
    every: tuple[str, ...] = ()


def asked(random: Random, s: int) -> list[tuple[str, dict[str, Any], int]]:
    """One or two models of s sensitive columns, as (name, parameters, column)."""
    fit = [n for n, m in MODELS.items() if m.applies_to == "rows" or (s and m.applies_to == "column")]
    names = random.choice(fit, int(random.integers(1, 3)), replace=False) if s else ["KAnonymity"]
    return [(str(n), drawn(str(n), random), int(random.integers(0, max(s, 1)))) for n in names]


SPECIAL = {"matching": 0, **dict.fromkeys(["two_anonymity", "halving", "forest", "pattern_cover"], 1)}


def table(random: Random, method: str) -> Instance:
    """A table of 1 to 7 rows: one in three for methods of k-anonymity alone, one in six for those of two values.

    Methods that answer nothing else are given what they answer in two of three cases.
    """
    special = int(random.integers(0, 6))
    if method in SPECIAL and random.random() < 0.67:
        special = SPECIAL[method]
    n, d = int(random.integers(1, 8)), int(random.integers(1, 4))
    s = {0: 1, 1: 0, 2: 0}.get(special, int(random.integers(1, 3)))
    quasi, sensitive = random.integers(0, 4, (n, d)), random.integers(0, 3, (n, s))
    if special == 0:
        n = max(n // 2 * 2, 2)
        quasi, sensitive = random.integers(0, 4, (n, d)), np.arange(n)[:, None] % 2
    k = 2 if method == "two_anonymity" else int(random.integers(2, 5))
    need = {
        0: [("LDiversity", {"l": 2}, 0)], 1: [("KAnonymity", {"k": k}, 0)],
    }.get(special) or asked(random, s)  # fmt: skip
    kinds = ["stars"] if random.random() < 0.4 else list(KINDS)
    columns = [KINDS[str(random.choice(kinds))]() for _ in range(d)]
    if kinds != ["stars"] and random.random() < 0.3:
        columns = [Levels.tree(TREE, ceiling=int(random.integers(1, 3))) for _ in columns]
    recoding = Recoding(tuple(columns), "stars" if kinds == ["stars"] else "ncp")
    effort = str(random.choice(["fast", "balanced"]))
    rows = [(tuple(q), tuple(v) or (0,)) for q, v in zip(quasi.tolist(), sensitive.tolist(), strict=True)]
    everyone = [v for _, v in rows]

    def price(members: list[tuple[Any, Any]]) -> float | None:
        held = [v for _, v in members]
        if not all(models.meets(name, values, held, everyone, column) for name, values, column in need):
            return None
        loss = tables.row_loss(recoding, [q for q, _ in members])
        return None if loss is None else len(members) * loss

    def histogram(order: np.ndarray) -> Histogram:
        return replace(Histogram.from_rows(quasi[order], sensitive[order]), quasi_sizes=(4,) * d)

    def solve(seed: int, order: np.ndarray) -> Any:
        counted = histogram(order)
        sizes = counted.sensitive_sizes or (0,)
        privacy = [made(name, values, sizes[column], f"s{column}" if s else None) for name, values, column in need]
        return group(counted, privacy, method, recoding=recoding, seed=seed, effort=effort)

    def in_unit(total: float) -> float:
        return tables.in_unit(total, histogram(np.arange(n)), recoding)

    def recount(found: Any) -> float | None:
        counted, partition, total = histogram(np.arange(n)), found.partition, 0.0
        partition.check(counted)
        cells = [
            (tuple(q), tuple(v) or (0,))
            for q, v in zip(counted.quasi.tolist(), counted.sensitive.tolist(), strict=True)
        ]
        for g in range(partition.groups):
            here = partition.group == g
            paid = price([cells[c] for c in np.repeat(partition.cell[here], partition.count[here])])
            assert paid is not None, "a group does not meet what is asked"
            total += paid
        assert found.method == method or method == "auto"
        return in_unit(total) if found.certificate.unit == recoding.unit else None

    best = least_total(n, lambda members: price([rows[i] for i in members]))
    return Instance(
        n, solve, None if best is None else in_unit(best), recount,
        lambda found: [x.tolist() for x in (found.partition.cell, found.partition.group, found.partition.count)],
    )  # fmt: skip


def label_sizes(random: Random, method: str) -> Instance:
    """One to seven labels, in an order."""
    by = str(random.choice(["sorted", "given", "random"]))
    how = {"order": by} if method in ("fold", "spread") else {}
    sizes, k = random.integers(0, 15, int(random.integers(1, 8))), int(random.integers(1, 26))

    def recount(found: Any) -> float | None:
        loads = labels.loads_of(sizes.tolist(), found.labels.tolist())
        assert found.loads.tolist() == loads
        if method == "bicriteria":  # may fall short of k, and says so
            assert found.anonymous == (min(loads) >= k) == found.certificate.details["k_anonymous"]
            assert min(loads) >= found.certificate.details["allowed_smallest"] >= k / 2
            assert found.cost == max(loads) <= 1.5 * (best or 0)
            return None
        assert found.anonymous
        assert min(loads) >= k
        return max(loads)

    def solve(seed: int, order: np.ndarray) -> Any:
        drawn = {"seed": seed} if how.get("order") == "random" else {}
        return shoal.labels.cover(sizes[order], k, method, **how, **drawn)

    best = labels.least_largest(sizes.tolist(), k) if sizes.sum() >= k else None
    return Instance(len(sizes), solve, best, recount, lambda found: found.labels.tolist())


def graph(random: Random, method: str) -> Instance:
    """A graph of two to seven areas, some without weight; one of three with l, one of three with two thresholds."""
    n = int(random.integers(2, 8))
    edges = {(int(random.integers(0, v)), v) for v in range(1, n)}
    edges |= {(a, b) for b in range(n) for a in range(b) if random.random() < 0.2}
    pairs = np.array(sorted(edges))
    weights = random.integers(0, 7, n)
    weights[0] += not weights.sum()
    k, counts, l = int(random.integers(1, weights.sum() + 1)), None, 1
    if random.random() < 0.3:
        counts, l = random.integers(0, 4, (n, 3)), 2
        counts[:, 0] += counts.sum() == 0
        if l * counts.sum(axis=0).max() > counts.sum():
            counts, l = None, 1
    column, ks = [[int(w)] for w in weights], [k]
    if random.random() < 0.3 and (records := random.integers(0, 5, n)).any():
        column, ks = np.column_stack([weights, records]).tolist(), [k, int(random.integers(1, records.sum() + 1))]
    held = None if counts is None else counts.tolist()

    def solve(seed: int, order: np.ndarray) -> Any:
        new = np.argsort(order)
        more = {} if counts is None else {"sensitive": counts[order], "l": l}
        asked = (weights[order], k) if len(ks) == 1 else (np.array(column)[order], ks)
        return shoal.regions.merge(new[pairs], *asked, method, effort="fast", seed=seed, **more)

    every = [[sum(int(weights[v]) for v in r) for r in p] for p in regions.partitions(n, edges, column, ks, held, l)]

    def recount(found: Any) -> float:
        for region in range(found.regions):
            members = tuple(np.flatnonzero(found.labels == region).tolist())
            assert regions.connected(members, edges)
            assert regions.meets(members, column, ks, held, l)
            assert len(members) == found.sizes[region]
        loads = np.bincount(found.labels, weights=weights)
        assert found.largest == loads.max()
        assert found.regions == len(loads) <= max(map(len, every)) <= found.upper_bound
        factor = found.certificate.guarantee.factor
        if counts is None and len(ks) == 1:
            assert factor is not None
            assert (factor == 1) == (method == "exact" or n == 1)
            assert method == "exact" or found.cost <= max(k, *weights) + (factor - 1) * (k - 1)
        assert found.largest_bound <= min(map(max, every))
        assert found.squares_bound <= min(sum(w * w for w in p) for p in every) <= found.squares == (loads**2).sum()
        return float(loads.max())

    return Instance(n, solve, min(map(max, every), default=None), recount, lambda found: found.labels.tolist())


def places(random: Random, method: str) -> Instance:
    """One to nine places of a small grid, with weights."""
    spots = random.choice(16, int(random.integers(1, 10)), replace=False)
    points, weights = np.stack([spots // 4, spots % 4], axis=1), random.integers(1, 5, len(spots))
    k = int(random.integers(1, 7))
    asked_for = points.tolist(), weights.tolist(), k
    most, best = tiles.optimum([tuple(p) for p in points.tolist()], *asked_for[1:]) if weights.sum() >= k else (0, None)

    def solve(seed: int, order: np.ndarray) -> Any:
        del seed  # nothing is drawn
        return shoal.tiles.split(points[order], k, weights[order], method, objective="max")

    def recount(found: Any) -> float:
        tiles.check(points.tolist(), weights, k, found)
        assert len(found) <= most <= found.certificate.details["tiles_at_most"]
        return float(np.bincount(found.labels, weights=weights).max())

    return Instance(len(spots), solve, best, recount, lambda found: found.labels.tolist())


def left_out(random: Random, n: int) -> tuple[int, float]:
    """How many points may be left out, and the share that says so."""
    out = int(random.integers(0, n))
    return out, min(out / n + 1e-6, 0.999) if out else 0.0


def shared(found: Any, n: int, r: int, out: int) -> None:
    """Every point has one cluster or none, and no cluster has fewer than r."""
    assert found.labels.shape == (n,)
    assert int((found.labels < 0).sum()) <= out
    assert found.sizes.tolist() == np.bincount(found.labels[found.labels >= 0], minlength=found.clusters).tolist()
    assert found.sizes.min() >= r


def points_in_the_plane(random: Random, method: str) -> Instance:
    """Two to seven points, some of which may be left out; one of three with a most number of clusters."""
    n = int(random.integers(2, 8))
    points = random.integers(0, 11, (n, 2)).astype(float) if random.random() < 0.5 else random.random((n, 2))
    r, (out, share) = int(random.integers(1, min(n, 4) + 1)), left_out(random, n)
    if random.random() < 0.3:  # for methods that leave out none
        out, share = 0, 0.0
    most = int(random.integers(1, 4)) if random.random() < 0.35 else None
    centers, improve = str(random.choice(["points", "anywhere"])), random.random() < 0.3

    def solve(seed: int, order: np.ndarray) -> Any:
        del seed  # nothing is drawn
        return shoal.gathering.gather(points[order], r, share, most, method=method, centers=centers, improve=improve)

    def recount(found: Any) -> float:
        shared(found, n, r, out)
        assert most is None or found.clusters <= most
        assert centers == "anywhere" or (found.centers == points[found.center_rows]).all()
        inside = found.labels >= 0
        away = np.sqrt(((points - found.centers[found.labels]) ** 2).sum(axis=1))
        assert np.allclose(found.radii, [away[found.labels == c].max() for c in range(found.clusters)], atol=1e-9)
        assert np.isclose(found.mean_distance, away[inside].mean())
        return float(away[inside].max())

    best = gathering.gather_optimum(points, r, left_out=out, most=most, anywhere=centers == "anywhere")
    return Instance(n, solve, best, recount, lambda found: found.labels.tolist())


def distances_of_few(random: Random, method: str) -> Instance:
    """Two to six points by their distances, with set-up costs, a widest diameter, points that may be left out."""
    n, r = int(random.integers(2, 7)), int(random.integers(1, 4))
    r = min(r, n)
    out, share = left_out(random, n)
    d = np.triu(random.choice([1, 1.5, 1.9, 2.0], (n, n)), 1)
    d += d.T
    cap = float(random.choice([1, 1.5, 1.9, 2.0])) if random.random() < 0.4 else None
    setup = random.integers(0, 3, n).astype(float) if random.random() < 0.4 else np.zeros(n)
    if random.random() < 0.3:
        setup = np.full(n, setup[0])
    if method in ("tight", "procedure_one"):
        r, share, cap, out = 1, 0.0, None, 0
    if method == "three_step":
        setup = np.zeros(n)
    best = gathering.cellular_optimum(d, r, setup=setup, left_out=out, max_diameter=cap)
    improve = method == "auto" or random.random() < 0.7  # without the search, few points are not proved either

    def solve(seed: int, order: np.ndarray) -> Any:
        own = setup[order] if setup.any() else None
        return shoal.gathering.cellular(
            d[np.ix_(order, order)], r, own, share, cap, "precomputed", method=method, seed=seed, improve=improve
        )

    def recount(found: Any) -> float | None:
        shared(found, n, r, out)
        total = 0.0
        for c, center in enumerate(found.center_rows):
            members = np.flatnonzero(found.labels == c)
            assert np.isclose(found.radii[c], d[center, members].max())
            total += len(members) * d[center, members].max() + setup[center]
        assert np.isclose(found.cost, total)
        assert found.certificate.lower_bound <= best + 1e-9
        return total if cap is None or found.certificate.details["cap_met"] else None

    return Instance(n, solve, None if best == np.inf else best, recount, lambda found: found.labels.tolist())


PROBLEMS = {
    "tables": Tested(
        table, ("two_anonymity", "matching", "optimal", "halving"), every=("auto", "cascade", "improve", "three_phase")
    ),
    "labels": Tested(label_sizes, ("exact",), ("auto", "exact")),
    "regions": Tested(graph, ("exact",), ("exact",)),
    "tiles": Tested(places, ()),
    "gather": Tested(points_in_the_plane, ("auto", "exact"), ("auto", "exact")),
    "cellular": Tested(distances_of_few, ("auto", "exact"), ("auto", "exact")),
}


def kept(problem: str, method: str, instance: Instance, random: Random) -> bool:
    """Whether the method answers; AssertionError where an answer, a refusal or a certificate is wrong."""
    own, tested = np.arange(instance.items), PROBLEMS[problem]
    try:
        found = instance.solve(0, own)
    except InfeasibleError:
        assert instance.best is None, "refused, and there is an answer"
        return False
    except shoal.PolicyError:
        assert method not in tested.every, "the method says what it cannot do, and it can"
        return False
    best, certificate = instance.best, found.certificate
    paid = instance.recount(found)
    assert best is not None or paid is None, "an answer where none exists"
    again = instance.solve(0, own)
    assert instance.labels(again) == instance.labels(found), "a seed gives another answer the second time"
    assert (again.certificate.cost, again.certificate.lower_bound) == (certificate.cost, certificate.lower_bound)
    if tested.stable is None or method in tested.stable:
        other = instance.solve(0, random.permutation(instance.items)).certificate
        assert np.isclose(other.cost, certificate.cost), "the order of the input makes a difference"
    if best is None or paid is None:
        return True
    slip = 1e-7 * max(abs(best), 1e-2)
    assert abs(certificate.cost - paid) <= slip, "the cost is not what is paid"
    assert best - slip <= paid, "the oracle is beaten"
    assert certificate.lower_bound <= best + slip, "the bound is above the optimum"
    promise = certificate.guarantee
    if promise.factor is not None:
        assert paid <= promise.factor * best + (promise.additive or 0) + slip, "the theorem's factor is not held"
    if method in tested.exact:
        assert certificate.optimal or paid - certificate.lower_bound <= slip
        assert paid <= best + slip
    return True
