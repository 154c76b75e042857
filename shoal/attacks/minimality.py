"""Minimality (Wong, Fu, Wang, Pei 2007): a value was hidden only because it had to be, which tells why.

The intruder has a register of everybody's quasi-identifiers and knows that the maker hides no more than the model asks.
Of the N people of a tuple m stand plainly in the release with known values; the others are in coarser classes.

* m = 0 and N >= k: together they did not meet l, so some value has more than N/l of them.
* m > 0: a hidden row was of a value v that the plain class could not take, (have_v + 1) l > m + 1.

Before that knowledge the values of hidden people are draws from the rows of the coarse classes that hold
their tuple.  Who of a tuple stands plainly is not known, so that claims are about the composition of the tuple.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from shoal.attacks.finding import Finding, wilson
from shoal.attacks.reading import People, Reading, same

PAPER = "Wong, Fu, Wang, Pei 2007"
LOWERS = "decoys (m-confidentiality, Wong et al.), a larger l; a method that does not hide as little as it can"
_SURE = 0.8
_MANY = 400  # people of a wholly hidden tuple; the majority of more tells what their pool tells
_PAIRS = 10_000_000_000


def found(reading: Reading, register: People, original: People | None, column: str) -> list[Finding]:
    """Claims about a sensitive value above 1/l, with and without knowing that the maker hides no more than it must.

    register  everybody's quasi-identifiers;  original: to check the claims, None without it
    """
    if reading.l <= 1:
        return []
    hidden = reading.points[2]
    tuples, people, number = register.tuples
    have = _plainly(reading, tuples, column)
    shown = have.sum(axis=1)
    left = people - shown
    asked = np.flatnonzero(left > 0)
    if not hidden.size or not asked.size or asked.size * hidden.size > _PAIRS:
        return []
    pool, weighed = _pool(reading, tuples[asked], left[asked], column)
    kept = pool.sum(axis=1) > 0
    asked, pool, weighed = asked[kept], pool[kept], weighed[kept]
    share = weighed / weighed.sum(axis=1, keepdims=True)
    told, speaks = _told(have[asked], people[asked], pool, share, reading.k, reading.l)
    rest = left[asked][:, None]
    after = (have[asked] + rest * told) / people[asked][:, None]
    before = (have[asked] + rest * share) / people[asked][:, None]
    truth = None
    if original is not None and column in original.sensitive:
        truth = _composition(register, original, number, len(tuples), have.shape[1], column)
        truth = None if truth is None else truth[asked]
    return _findings(reading, column, people[asked], speaks, (before, after), truth)


def _plainly(reading: Reading, tuples: np.ndarray, column: str) -> np.ndarray:
    """float32[tuples, values]: rows that stand plainly with each tuple."""
    counts = reading.counts(column)
    plain, values, _ = reading.points
    out = np.zeros((len(tuples), counts.shape[1]), np.float32)
    if plain.size:
        place = same(tuples, values)
        np.add.at(out, place[place >= 0], counts[plain[place >= 0]])
    return out


def _pool(reading: Reading, tuples: np.ndarray, left: np.ndarray, column: str) -> tuple[np.ndarray, np.ndarray]:
    """(float64[tuples, values] rows of the coarse classes that hold each tuple, the same over the people of a class).

    left  people of each tuple who do not stand plainly
    """
    counts = reading.counts(column)
    counts[reading.points[0]] = 0.0
    could = np.zeros(len(counts))
    for part, held in reading.holding(tuples):
        could += held.T @ left[part]
    weighed = counts / np.maximum(could, 1)[:, None]
    rows, out = np.zeros((len(tuples), counts.shape[1])), np.zeros((len(tuples), counts.shape[1]))
    for part, held in reading.holding(tuples):
        rows[part] = held @ counts
        out[part] = held @ weighed
    return rows, out


def _told(
    have: np.ndarray,
    people: np.ndarray,
    pool: np.ndarray,
    share: np.ndarray,
    k: int,
    l: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(float64[tuples, values] of a hidden row's value, bool[tuples] whether minimality speaks of the tuple)."""
    shown = have.sum(axis=1)
    out, speaks = share.copy(), np.zeros(len(share), bool)
    some = shown > 0
    allowed = (have + 1) * l > shown[:, None] + 1 + 1e-9
    barred = np.where(allowed, share, 0.0)
    mass = barred.sum(axis=1)
    partly = some & (mass > 0) & (mass < share.sum(axis=1) - 1e-9)
    out[partly] = barred[partly] / mass[partly, None]
    speaks |= partly
    for many in np.unique(people[~some]).tolist():
        if many < max(k, 2) or many > _MANY:
            continue
        rows = np.flatnonzero(~some & (people == many))
        found = majority(pool[rows], share[rows], many, l)
        known = found.sum(axis=1) > 0
        out[rows[known]] = found[known]
        speaks[rows[known]] = True
    return out, speaks


def majority(pool: np.ndarray, share: np.ndarray, many: int, l: float) -> np.ndarray:
    """float64[tuples, values]: the mean composition of many rows of a pool of which some value has more than many/l.

    pool   float64[tuples, values], the rows to draw from, each at most once
    share  float64[tuples, values], the chance of each value in the first draw; zero where the pool has none

    Fisher's noncentral hypergeometric distribution of one value against the rest.  Exact for equal weights where two
    values cannot both have so many (l at most 2); else the cases in which both have count twice.
    A row of zeros where no such draw exists.  O(tuples values many).
    """
    least = int(np.floor(many / l + 1e-9)) + 1
    rest = pool.sum(axis=1, keepdims=True) - pool
    with np.errstate(divide="ignore", invalid="ignore"):
        own, other = (np.log(np.where(n > 0, s / n, 1.0)) for n, s in ((pool, share), (rest, 1 - share)))
    logs = np.stack(
        [
            np.where(
                (pool >= j) & (rest >= many - j),
                _choose(pool, j) + j * own + _choose(rest, many - j) + (many - j) * other,
                -np.inf,
            )
            for j in range(least, many + 1)
        ]
    )
    top = logs.max(axis=(0, 2), keepdims=True, initial=-np.inf)
    mass = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    chance = mass.sum(axis=0)
    drawn = (mass * np.arange(least, many + 1)[:, None, None]).sum(axis=0)
    others = np.where(share < 1, (many * chance - drawn) / np.maximum(1 - share, 1e-12), 0.0)  # of all other values
    total = chance.sum(axis=1, keepdims=True)
    mean = drawn + share * (others.sum(axis=1, keepdims=True) - others)
    return np.asarray(np.divide(mean, many * total, out=np.zeros_like(mean), where=total > 0))


def _choose(n: np.ndarray, j: int) -> np.ndarray:
    """Logarithms of binomial coefficients, of 0 below j where they do not count."""
    n = np.maximum(n, j)
    return np.asarray(gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1))


def _composition(
    register: People, original: People, number: np.ndarray, tuples: int, values: int, column: str
) -> np.ndarray | None:
    """float64[tuples, values]: people of each tuple of the register with each value in the original."""
    held = original.sensitive[column]
    if original is register:
        place = number
    else:
        place = same(register.tuples[0], original.codes)
    known = (held >= 0) & (place >= 0)
    flat = np.bincount(place[known] * values + held[known], minlength=tuples * values)
    return flat.reshape(tuples, values).astype(float)


def _findings(
    reading: Reading,
    column: str,
    people: np.ndarray,
    speaks: np.ndarray,
    beliefs: tuple[np.ndarray, np.ndarray],
    truth: np.ndarray | None,
) -> list[Finding]:
    before, after = beliefs
    speaking = int(people[speaks].sum())
    details: dict[str, object] = {
        "people_whose_tuple_is_not_wholly_published": int(people.sum()),
        "people_of_whom_minimality_speaks": speaking,
        "people_claimed_by_the_compatible_rows": int(people[before.max(axis=1) > 1 / reading.l + 1e-9].sum()),
    }
    if truth is not None and speaking:
        weight = truth[speaks] / speaking
        details |= {
            "posterior_of_the_truth": float((weight * after[speaks]).sum()),
            "posterior_of_the_truth_by_compatible_rows": float((weight * before[speaks]).sum()),
        }
    out = []
    for least, name in ((1 / reading.l + 1e-9, "above 1/l"), (_SURE, f"claims of {_SURE:g} and more")):
        among = speaks & (after.max(axis=1) >= least)
        claimed = float(people[among].sum())
        right = _right(truth, people, after, among)
        figure = right if truth is not None else _mean(people, after, among)
        low, high = wilson((figure or 0.0) * claimed, claimed)
        certain = among & (after.max(axis=1) >= 0.95)
        best = _right(truth, people, after, certain)
        out.append(
            Finding(
                "minimality", f"{column}, {name}", PAPER,
                "the intruder has the quasi-identifiers of everybody in the table, and knows that the maker hides no "
                "more than the model asks",
                "claims that are right" if truth is not None else "mean of the claims, which nothing here can check",
                figure, low if claimed else 0.0, high if claimed else 0.0,
                {"what the compatible rows alone let one claim of them": _mean(people, before, among) or 0.0},
                1 / reading.l, int(claimed), low if claimed else 0.0,
                None if best is None else (f"{int(people[certain].sum()):,} people claimed with 0.95 and more", best),
                LOWERS, {"share_of_the_people": claimed / reading.rows, **details},
            )
        )  # fmt: skip
    return out


def _mean(people: np.ndarray, belief: np.ndarray, among: np.ndarray) -> float | None:
    """The mean of the likeliest values' posteriors over the people of some tuples."""
    return float((people[among] * belief[among].max(axis=1)).sum() / people[among].sum()) if among.any() else None


def _right(truth: np.ndarray | None, people: np.ndarray, belief: np.ndarray, among: np.ndarray) -> float | None:
    """The share of people of some tuples whose value is the likeliest one; None where it cannot be told."""
    if truth is None or not among.any():
        return None
    best = belief[among].argmax(axis=1)
    return float(truth[among][np.arange(int(among.sum())), best].sum() / people[among].sum())
