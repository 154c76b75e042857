"""What hidden rows were: against every set that could stand, every world of a minimal method, and shoal itself."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shoal.attacks.minimality import HiddenTuples, concentration, posterior, rates, weigh


def could_stand(rows: Counter[int], k: int, l: float) -> bool:
    return sum(rows.values()) >= k and max(rows.values()) * l <= sum(rows.values()) + 1e-9


def parts(rows: list[int]) -> Iterator[list[int]]:
    """Every composition that is part of another."""
    return (list(part) for part in itertools.product(*(range(n + 1) for n in rows)))


def is_forced(have: list[int], hidden: list[int], k: int, l: float) -> bool:
    """No rows of the hidden ones could stand beside the plain ones: every set is tried."""
    return not any(
        could_stand(Counter({v: h + s for v, (h, s) in enumerate(zip(have, part, strict=True))}), k, l)
        for part in parts(hidden)
        if any(part)
    )


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from([1.5, 2.0, 2.5, 3.0, 4.0]),
    st.sampled_from([math.inf, 4.0]),
)
def test_weights_and_means_are_those_of_every_composition(
    pool: list[int], plain: list[int], hidden: int, k: int, l: float, alike: float
) -> None:
    have = plain[: len(pool)]
    if not any(have) or not could_stand(Counter(dict(enumerate(have))), k, l):
        have = [0] * len(pool)  # all are hidden
    m, hidden = sum(have), min(hidden, sum(pool))
    k = min(k, m + hidden)
    assume(hidden and m + hidden >= 2)
    share = np.array(pool, float) / sum(pool)
    tuples = HiddenTuples(np.array([have], float), np.array([m + hidden]), np.array([pool], float), share[None])
    found = weigh(tuples, k, l, alike)

    def drawn(v: int, j: int) -> float:
        polya = math.prod(1 + (have[v] + i) / (alike * share[v]) for i in range(j)) if j else 1.0
        return math.perm(pool[v], j) / pool[v] ** j * share[v] ** j * polya if j else 1.0

    ways = [c for c in parts(pool) if sum(c) == hidden]
    chance = [math.prod(drawn(v, j) for v, j in enumerate(c)) for c in ways]
    forced = [
        b * math.prod(math.factorial(h) / math.factorial(h + j) for h, j in zip(have, c, strict=True))
        * is_forced(have, c, k, l)
        for c, b in zip(ways, chance, strict=True)
    ]  # fmt: skip
    free = [
        b / math.prod(map(math.factorial, c)) / math.comb(m + hidden, m) * (not is_forced(have, c, k, l))
        for c, b in zip(ways, chance, strict=True)
    ]
    assert found.asked[0] == (sum(forced) > 0)
    if not found.asked[0]:
        return
    assert found.free[0] / found.forced[0] == pytest.approx(sum(free) / sum(forced), abs=1e-9)
    for mean, weights in ((found.of_forced, forced), (found.of_free, free)):
        if not sum(weights):
            continue
        expected = np.average(np.array(ways, float), axis=0, weights=weights) / hidden
        assert mean[0] == pytest.approx(expected)
    told = posterior(found, np.array([0.3]))[0]
    both = [f + 0.3 * u for f, u in zip(forced, free, strict=True)]
    assert told == pytest.approx(np.average(np.array(ways, float), axis=0, weights=both) / hidden)


def fewest_hidden(rows: Counter[str], k: int, l: float) -> Counter[str]:
    """The most rows of a tuple that may stand plainly, of all sets."""
    values = sorted(rows)
    sets = [Counter(dict(zip(values, part, strict=True))) for part in parts([rows[v] for v in values])]
    return max((s for s in sets if s.total() and could_stand(Counter(s), k, l)), key=Counter.total, default=Counter())


@pytest.mark.parametrize(("k", "l"), [(2, 2.0), (3, 2.0), (3, 3.0), (4, 3.0), (4, 2.0)])
def test_posterior_of_a_minimal_method_is_that_of_all_its_worlds(k: int, l: float) -> None:
    """Five people of one tuple, three of whom each is alone; everybody may have each of three values."""
    people, others = 5, 3
    seen: dict[tuple[tuple[tuple[str, int], ...], ...], list[Counter[str]]] = {}
    for world in itertools.product("xyz", repeat=people + others):
        own = Counter(world[:people])
        plain = fewest_hidden(own, k, l)
        starred = Counter(world) - plain
        key = (tuple(sorted(plain.items())), tuple(sorted(starred.items())))
        seen.setdefault(key, []).append(own)
    checked = 0
    for (plain_, starred_), worlds in seen.items():
        plain, starred = Counter(dict(plain_)), Counter(dict(starred_))
        left = people - plain.total()
        if not left:
            continue
        values = "xyz"
        have = np.array([[plain[v] for v in values]], float)
        pool = np.array([[starred[v] for v in values]], float)
        found = weigh(HiddenTuples(have, np.array([people]), pool, pool / pool.sum()), k, l)
        assert found.asked[0]
        after = (have[0] + left * posterior(found, np.zeros(1))[0]) / people
        exact = np.array([np.mean([own[v] for own in worlds]) for v in values]) / people
        assert after == pytest.approx(exact)
        checked += 1
    assert checked > 20


def test_rate_of_needless_hiding_is_found() -> None:
    """Pairs of a minimal method, and pairs of which every fifth is hidden though it need not be."""
    rng = np.random.default_rng(2)
    values, many = 6, 4000
    pairs = rng.integers(0, values, (many, 2))
    alike = pairs[:, 0] == pairs[:, 1]
    for needless in (0.0, 0.2):
        gone = alike | (rng.random(many) < needless)
        pool = np.bincount(pairs[gone].ravel(), minlength=values).astype(float)
        here = int(gone.sum())
        hidden = HiddenTuples(np.zeros((here, values)), np.full(here, 2), np.tile(pool, (here, 1)),
                        np.tile(pool / pool.sum(), (here, 1)))  # fmt: skip
        found = weigh(hidden, 2, 2.0)
        rate = rates(found, np.ones(here, bool), (many - here, many - here))
        assert rate[0] == pytest.approx(needless, abs=0.03)


def test_concentration_is_found() -> None:
    rng = np.random.default_rng(4)
    share = np.array([0.4, 0.3, 0.2, 0.1])
    drawn = rng.dirichlet(10 * share, 3000)
    counts = np.array([rng.multinomial(8, p) for p in drawn], float)
    assert concentration(counts, share) == pytest.approx(10, rel=0.15)
    assert concentration(np.array([rng.multinomial(8, share) for _ in range(3000)], float), share) > 200
    assert concentration(np.zeros((0, 4)), share) == math.inf
