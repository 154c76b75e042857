"""Row prices under conditions on shares: what they allow a class is what its groups may have, and they prove no more
than the optimum, for t-closeness by any distance and for largest shares, with whole rows or without."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from shoal.kernels import plain
from shoal.kernels.tables import close_sweep
from shoal.model.histogram import Histogram
from shoal.model.privacy import AlphaKAnonymity, KAnonymity, LDiversity, TCloseness, TreeCloseness, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.tables.bounds.bounds import Sweeper, close_shares
from shoal.problems.tables.losses import Lattice
from tests.amount import thinned
from tests.oracles.tables import least_loss
from tests.tables.drawn import KINDS, few

mean_of_close, mean_of_whole = plain(close_sweep._mean_of_close), plain(close_sweep._mean_of_whole)
mean_of_limited = plain(close_sweep._mean_of_limited)
MODELS: dict[str, Any] = {"LDiversity": LDiversity, "AlphaKAnonymity": AlphaKAnonymity}
TREES = ("stars", "tree", "tree", "heavy")
DISTANCES = ("equal", "ordered", "hierarchical")
NODE = ((0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0))


def model(distance: str, t: float) -> TCloseness | TreeCloseness:
    return TreeCloseness(t, NODE) if distance == "hierarchical" else TCloseness(t, distance)


def apart(distance: str, share: np.ndarray) -> np.ndarray:
    """How far values are from each other, by the definitions; values that the table lacks are no steps."""
    v = range(share.size)
    if distance == "ordered":
        place = np.cumsum(share > 0) - 1
        return np.array([[abs(place[a] - place[b]) / max(place[-1], 1) for a in v] for b in v], float)
    if distance == "hierarchical":
        return np.array([[sum(n[a] != n[b] for n in NODE[:-1]) / 2 for a in v] for b in v])
    return 1.0 - np.eye(share.size)


def drawn(random: np.random.Generator, distance: str) -> tuple[Task, str, float] | None:
    t = float(random.choice([0.1, 0.2, 0.3, 0.4]))
    task = few(
        random, (3, 8), (1, 2), 4,
        lambda table: requirement([KAnonymity(int(random.integers(1, 4))), model(distance, t)], ["s0"], table),
        TREES,
    )  # fmt: skip
    return task and (task, distance, t)


def least(task: Task, distance: str, t: float) -> float | None:
    """The least loss of all partitions, each group near the table by the model's definition."""
    asked = {"t": t, "distance": distance, "node": NODE}
    return least_loss(task.histogram, task.requirement, task.recoding, ("TCloseness", asked))


@pytest.mark.parametrize("distance", DISTANCES)
def test_no_prices_prove_more_than_the_optimum(distance: str) -> None:
    random = np.random.default_rng(5)
    tried = near = 0
    while tried < thinned(120):
        found = drawn(random, distance)
        if found is None:
            continue
        task, best = found[0], least(*found)
        sweeper, close = Sweeper(task, Lattice.of(task.recoding)), close_shares(task)
        assert best is not None
        assert close is not None
        assert close.apart.size == 0 or np.allclose(close.apart, apart(distance, close.share))
        for counted in (0, 3, 60):
            prices = np.zeros(task.histogram.cells)
            for _ in range(3):
                prices = sweeper.close(close._replace(counted=counted), prices, None)
                assert float(task.histogram.count @ prices) <= best + 1e-9
            near += float(task.histogram.count @ prices) >= 0.95 * best
            other = random.uniform(-0.5, 3.0, prices.size)
            assert float(task.histogram.count @ sweeper.close(close._replace(counted=counted), other, None)) <= best
        tried += 1
    assert near > tried / 3


def one_class(random: np.random.Generator, distance: str) -> tuple[close_sweep.CloseShares, np.ndarray]:
    """The cells of a class by falling price, with their shares in a larger table."""
    m, share = int(random.integers(2, 8)), random.dirichlet(np.ones(4)).round(2)
    share[0] += 1 - share.sum()
    between = apart(distance, share) if distance != "equal" else np.zeros((0, 0))
    value, count = random.integers(0, 4, m), random.integers(1, 3, m)
    t = float(random.choice([0.1, 0.25, 0.4, 0.6]))
    close = close_sweep.CloseShares(
        value, count, share, between, t, int(random.integers(1, 4)), 60, np.zeros(0, int), 0
    )
    return close, np.sort(random.uniform(-1, 2, m))[::-1].copy()


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_mean_of_shares_within_t_is_that_of_the_linear_program(distance: str) -> None:
    random = np.random.default_rng(11)
    for _ in range(thinned(200)):
        close, price = one_class(random, distance)
        between, pay = apart(distance, close.share), np.empty(4)
        mean, _ = mean_of_close(np.arange(price.size), 0, price.size, price, close, pay)
        # what is carried from each value of the table to each value of the class
        high = np.array([price[close.value == v].max(initial=-np.inf) for v in range(4)])
        gain = np.where(np.isfinite(high), high, 0.0)
        out_of = np.kron(np.eye(4), np.ones(4))
        most = np.tile(np.where(np.isfinite(high), 1.0, 0.0), 4)
        limits = np.stack([0 * most, most], axis=1)
        best = linprog(-np.tile(gain, 4), between.reshape(1, -1), [close.t], out_of, close.share, limits)
        assert (mean == np.inf) == (best.status == 2)
        if best.status == 0:
            assert -best.fun - 1e-7 <= mean <= -best.fun + 1e-3
            # a row of each value may pay so much: then the mean is the same
            assert (pay[close.value] >= price - 1e-12).all()
            again, _ = mean_of_close(*_sorted(close, pay[close.value]), np.empty(4))
            assert again <= mean + 1e-3


def _sorted(close: close_sweep.CloseShares, price: np.ndarray) -> tuple:
    order = np.argsort(-price, kind="stable")
    return order, 0, price.size, price, close


# Rows raised to the price that a row of a larger group may have would raise the mean of a smaller one.
FEW = (
    close_sweep.CloseShares(
        np.array([3, 2, 0, 2]),
        np.array([1, 2, 2, 2]),
        np.array([0.03, 0.14, 0.82, 0.01]),
        np.zeros((0, 0)),
        0.25,
        1,
        60,
        np.zeros(0, int),
        0,
    ),
    np.array([0.37990444, 0.25853279, -0.33710172, -0.39369035]),
)


def test_whole_rows_within_t_have_no_larger_mean() -> None:
    random = np.random.default_rng(13)
    below = exact = none = 0
    tries = thinned(300)
    for x in range(tries):
        close, price = one_class(random, "equal") if x else FEW
        rows = np.repeat(np.arange(price.size), close.count)
        best = -np.inf
        for n in range(close.least, rows.size + 1):
            for some in combinations(rows, n):
                held = np.bincount(close.value[list(some)], minlength=4)
                if np.maximum(held - close.share * n, 0.0).sum() <= close.t * n + 1e-12:
                    best = max(best, price[list(some)].mean())
        counted = int(random.choice([0, 2, rows.size - 1, 60])) if x else 60
        close = close._replace(counted=counted)
        pay, most = np.empty(4), max(counted + 1, close.least)
        mean, low = mean_of_close(np.arange(price.size), 0, price.size, price, close, pay)
        if mean == np.inf:
            assert best == -np.inf
            continue
        room = close_sweep._HighestPrices(pay, np.empty(4, int), np.empty(4, int), np.empty((4, most + 1)), np.empty(5))
        found, lowest = mean_of_whole(np.arange(price.size), 0, price.size, price, close, low, room)
        assert found >= best - 1e-9
        if best == -np.inf:
            none += 1
            assert counted < 60 or found == -np.inf
            continue
        below += found < mean - 1e-6
        exact += found <= best + 1e-6
        clipped = np.maximum(price, lowest)  # rows that pay so much raise no mean
        for n in range(close.least, rows.size + 1):
            for some in combinations(rows, n):
                held = np.bincount(close.value[list(some)], minlength=4)
                if np.maximum(held - close.share * n, 0.0).sum() <= close.t * n + 1e-12:
                    assert clipped[list(some)].mean() <= found + 1e-9
    assert below > tries / 10
    assert exact > tries / 20
    assert none > tries / 50


def limited_class(random: np.random.Generator) -> tuple[close_sweep.CloseShares, np.ndarray]:
    """The cells of a class by falling price, and largest shares of their values."""
    m, whole = int(random.integers(2, 8)), int(random.choice([2, 3, 10, 100]))
    weight = random.integers(0, whole + 1, 3)
    value, count = random.integers(0, 3, m), random.integers(1, 3, m)
    counted, least = int(random.choice([0, 2, 4, 60])), int(random.integers(1, 4))
    none = np.zeros((0, 0))
    close = close_sweep.CloseShares(value, count, weight / whole, none, 0.0, least, counted, weight, whole)
    return close, np.sort(random.uniform(-1, 2, m))[::-1].copy()


def eligible_means(close: close_sweep.CloseShares, price: np.ndarray) -> list[float]:
    """The mean price of every group in which no value exceeds its largest share, by the definition."""
    rows = np.repeat(np.arange(close.value.size), close.count)
    out = []
    for n in range(close.least, rows.size + 1):
        for some in combinations(rows, n):
            held = np.bincount(close.value[list(some)], minlength=3)
            if (held * close.whole <= close.weight * n).all():
                out.append(float(price[list(some)].mean()))
    return out


def test_groups_with_largest_shares_have_no_larger_mean() -> None:
    random = np.random.default_rng(17)
    exact = below = none = higher = 0
    tries = thinned(400)
    for _ in range(tries):
        close, price = limited_class(random)
        m, pay = price.size, np.empty(3)
        rows = close_sweep._LimitedRows(np.empty(m, int), np.empty(3, int), np.empty(3), np.empty(3))
        found = mean_of_limited(np.arange(m), 0, m, price, close, pay, rows)
        means = eligible_means(close, price)
        if not means:
            none += 1
            assert close.counted < 60 or found == -np.inf
            continue
        assert found >= max(means) - 1e-9
        if close.counted == 60:
            assert found == pytest.approx(max(means))
            exact += 1
        paid = np.maximum(price, np.minimum(pay[close.value], 9.0))  # rows that pay so much raise no mean
        higher += bool((paid > price).any())
        assert max(eligible_means(close, paid)) <= found + 1e-9
        by_shares, _ = mean_of_close(np.arange(m), 0, m, price, close, np.empty(3))
        assert found <= by_shares + 1e-9
        below += found < by_shares - 1e-6
    assert min(exact, below, none, higher) > tries / 20


def limited(random: np.random.Generator) -> tuple[Task, str, dict[str, Any]] | None:
    """A small table with diversity by frequency, or with a largest share of every value."""
    asked: dict[str, Any] = {"l": int(random.integers(2, 4))}
    model = "LDiversity" if random.random() < 0.5 else "AlphaKAnonymity"
    if model == "AlphaKAnonymity":
        asked = {"alpha": float(random.choice([0.5, 0.6, 0.7, 0.8])), "k": int(random.integers(1, 4))}
    made = MODELS[model](**asked)
    task = few(random, (3, 8), (1, 2), 4, lambda table: requirement([made], ["s0"], table), TREES)
    return task and (task, model, asked)


def test_largest_shares_prove_no_more_than_the_optimum() -> None:
    random = np.random.default_rng(19)
    tried = near = 0
    while tried < max(thinned(120), 40):
        found = limited(random)
        close = found and close_shares(found[0])
        if not found or close is None:  # nothing limits the shares
            continue
        task, count = found[0], found[0].histogram.count
        best = least_loss(task.histogram, task.requirement, task.recoding, found[1:])
        assert best is not None
        assert close.whole > 0
        sweeper = Sweeper(task, Lattice.of(task.recoding))
        for counted in (0, 3, 60):
            prices = np.zeros(count.size)
            for _ in range(3):
                prices = sweeper.close(close._replace(counted=counted), prices, None)
                assert float(count @ prices) <= best + 1e-9
            other = random.uniform(-0.5, 3.0, prices.size)
            assert float(count @ sweeper.close(close._replace(counted=counted), other, None)) <= best + 1e-9
        near += float(count @ prices) >= 0.95 * best
        tried += 1
    assert near > tried / 4


def test_all_of_what_a_table_has_counts() -> None:
    """A table of one column in which both rows of each value are needed: what is proved is what is lost."""
    table = Histogram.from_rows(np.array([[0], [1], [2], [3]]), np.array([0, 1, 0, 1]))
    task = Task(table, requirement([TCloseness(0.1)], ["s0"], table), Recoding((KINDS["tree"](),)), seed=1)
    close = close_shares(task)
    assert close is not None
    prices = Sweeper(task, Lattice.of(task.recoding)).close(close, np.zeros(4), None)
    best = least(task, "equal", 0.1)
    assert best == pytest.approx(float(table.count @ prices), abs=1e-9)
