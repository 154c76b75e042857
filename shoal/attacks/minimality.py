"""Minimality (Wong, Fu, Wang, Pei 2007): a value was hidden only because it had to be, which tells why.

The intruder has a register of everybody's quasi-identifiers and knows that the maker hides no more than the model asks.
Of the N people of a tuple m stand plainly in the release with known values; the others are in coarser classes, and
their values are draws from the rows of those that hold the tuple.  ``shoal.attacks.forced`` has the likelihood of what
they are, for any k and l.  Who of a tuple stands plainly is not known: claims are about the composition of the tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from shoal.attacks.finding import Finding, wilson
from shoal.attacks.forced import Hidden, concentration, posterior, rates, weigh
from shoal.attacks.reading import People, Reading, same

PAPER = "Wong, Fu, Wang, Pei 2007"
LOWERS = "decoys (m-confidentiality, Wong et al.), a larger l; a method that does not hide as little as it can"
_SURE = 0.8
_PAIRS = 10_000_000_000


class Claims(NamedTuple):
    """What an intruder believes of the tuples that do not wholly stand plainly.

    tuples         int[asked, quasi];  people: int64[asked] of each;  number: int64[people of the register] their tuple
                   among all;  asked: int64[asked] which of all these are
    after, before  float64[asked, values]: the share of each value among the people of the tuple, by whoever knows that
                   the maker hides no more than it must, and by the compatible rows alone
    speaks         bool[asked]: whether minimality says something of the tuple
    rates          chances that a tuple, or a part of one, is hidden without need, by name
    """

    tuples: np.ndarray
    people: np.ndarray
    number: np.ndarray
    asked: np.ndarray
    after: np.ndarray
    before: np.ndarray
    speaks: np.ndarray
    rates: Mapping[str, float]


def claims(reading: Reading, register: People, column: str) -> Claims | None:
    """Beliefs about a sensitive value of everybody in a register of exactly the people of the release.

    None where nothing is hidden, or the pairs of a tuple and a class are too many to look at.
    O(tuples coarse classes / 8) in bit operations, and what ``forced.weigh`` takes.
    """
    hidden = reading.points[2]
    tuples, people, number = register.tuples
    have = _plainly(reading, tuples, column)
    shown = have.sum(axis=1)
    left = people - shown
    asked = np.flatnonzero(left > 0)
    if not hidden.size or not asked.size or asked.size * hidden.size > _PAIRS:
        return None
    pool, weighed = _pool(reading, tuples[asked], left[asked], column)
    kept = pool.sum(axis=1) > 0
    asked, pool, weighed = asked[kept], pool[kept], weighed[kept]
    share = weighed / weighed.sum(axis=1, keepdims=True)
    own = reading.counts(column).astype(float)
    alike = concentration(own[reading.points[0]], own.sum(axis=0) / max(own.sum(), 1.0))
    weights = weigh(Hidden(have[asked].astype(float), people[asked], pool, share), reading.k, reading.l, alike)
    wholly, could = shown[asked] == 0, people >= max(reading.k, 2)
    rate = rates(weights, wholly, (int((could & (shown > 0)).sum()), int((could & (left == 0)).sum())))
    rest = left[asked][:, None]
    after, before = ((have[asked] + rest * told) / people[asked][:, None] for told in (posterior(weights, rate), share))
    named = {
        f"rate_of_hiding_{name}_without_need": float(rate[part][0])
        for name, part in (("a_tuple", wholly), ("a_part_of_one", ~wholly)) if part.any()
    }  # fmt: skip
    return Claims(tuples[asked], people[asked], number, asked, after, before, weights.asked, named)


def found(reading: Reading, register: People, original: People | None, column: str) -> list[Finding]:
    """Claims about a sensitive value above 1/l, with and without knowing that the maker hides no more than it must.

    register  everybody's quasi-identifiers;  original: to check the claims, None without it
    """
    told = claims(reading, register, column) if reading.l > 1 else None
    if told is None:
        return []
    truth = None
    if original is not None and column in original.sensitive:
        tuples, values = len(register.tuples[0]), told.after.shape[1]
        truth = _composition(register, original, told.number, tuples, values, column)[told.asked]
    return _findings(reading, column, told, truth)


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


def _composition(
    register: People, original: People, number: np.ndarray, tuples: int, values: int, column: str
) -> np.ndarray:
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
    told: Claims,
    truth: np.ndarray | None,
) -> list[Finding]:
    people, speaks, before, after = told.people, told.speaks, told.before, told.after
    speaking = int(people[speaks].sum())
    details: dict[str, object] = {
        "people_whose_tuple_is_not_wholly_published": int(people.sum()),
        "people_of_whom_minimality_speaks": speaking,
        "people_claimed_by_the_compatible_rows": int(people[before.max(axis=1) > 1 / reading.l + 1e-9].sum()),
        **told.rates,
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
                LOWERS, {"share_of_the_people": claimed / reading.rows,
                         "mean_of_these_claims": _mean(people, after, among), **details},
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
