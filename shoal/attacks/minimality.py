"""Attacks by minimality: the maker hides a value only if the model requires it (Wong, Fu, Wang, Pei 2007).

The intruder has a register of everyone's quasi-identifiers, and knows that the maker hides no more than the model
requires. This module has the likelihood of a tuple's hidden rows for any k and l. It is unknown which persons of a
tuple have the plain (unchanged) rows, so claims are about the composition of the tuple.

Of the N rows of a tuple, m are plain, with ``have`` rows of each sensitive value. The n = N - m others are hidden.

*Forced.* A method that hides as few rows of a tuple as possible leaves no set S of hidden rows that could be published
with the plain ones. So for every s from max(k, m + 1) to N, there are no s rows of which no value has more than f =
floor(s / l). At most the sum over the values of min(T_v, f) rows of the tuple fit under f, where T_v is the number of
the tuple's rows with value v. So a composition c of the hidden rows is forced exactly if, for every such f,

    sum over v of min(have_v + c_v, f)  <  the least s with floor(s / l) = f, at least max(k, m + 1).

If m = 0, this is a condition on the multiplicities of values. If m > 0, the first f allows only values of which the
plain rows have the maximum. All of these have the same have_v, so this is again a condition on their multiplicities.
For k = l = 2 and m = 0: all rows have one value.

*Weights.* In a world with T_v rows of each value, there are N! / product of T_v! equally likely ways to assign the
values to the persons. A forced world gives this release with certainty. A world that isn't forced gives it only if the
method hides more than the tuple requires, because other rows needed it. This has probability epsilon, and each set of m
of the N rows is equally likely to be plain. Values come from the rows of the classes that cover the tuple, each at most
once. So c has the weight

    forced      product of b_v(c_v) have_v! / (have_v + c_v)!
    not forced  epsilon m! n! / N!  product of b_v(c_v) / c_v!

where b_v(j) is the chance of drawing j rows of v. epsilon is unknown and is fitted to the release (``rates``). The
values of a tuple needn't be independent draws: with ``alike``, their shares differ between tuples as in Dirichlet draws
(Polya's urn), so that plain rows give information about hidden ones.

Source: Wong, Fu, Wang, Pei 2007; their credibility is the case of equally likely worlds.

*Downcoding* (Cohen 2022) guesses the original value of a coarsened cell from correlated columns, and from finer rows: a
class that hides no more than it must doesn't have a value that a finer row shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from shoal.attacks.linkage import Truth
from shoal.attacks.reading import Figure, People, Reading, numbered, same, unwritten, wilson
from shoal.model.histogram import Histogram, Partition
from shoal.model.recoding import Recoding

MANY = 20  # most hidden rows of a tuple; with more, minimality is treated as uninformative
_STATES = 1_500  # largest number of states of the dynamic program
_ROUNDS = 60
_BELIEF = 1.0, 2.0  # prior counts of tuples hidden unnecessarily, and of tuples that needn't be hidden
_HELD = 1 << 24  # float64 numbers held at once


class HiddenTuples(NamedTuple):
    """Tuples with hidden rows.

    have    float64[tuples, values]: their plain rows
    people  int64[tuples]: all their rows
    pool    float64[tuples, values]: rows of the coarse classes that cover each tuple
    share   float64[tuples, values]: the chance of each value in one draw. Rows sum to 1; zero if the pool lacks the
            value
    """

    have: np.ndarray
    people: np.ndarray
    pool: np.ndarray
    share: np.ndarray


class WeighedTuples(NamedTuple):
    """For each tuple, the weights of the compositions of its hidden rows.

    forced, free            float64[tuples]: the total weight of forced compositions, and of the others for epsilon = 1
    of_forced, of_free      float64[tuples, values]: the mean share of each value among the hidden rows
    asked                   bool[tuples]: whether the rows could be forced, so that minimality is informative
    """

    forced: np.ndarray
    free: np.ndarray
    of_forced: np.ndarray
    of_free: np.ndarray
    asked: np.ndarray


def limits(people: int, plain: int, k: int, l: float) -> tuple[int, ...]:
    """h_1, h_2, ...: hidden rows are forced if the sum over the values of min(c_v, g) is below h_g for every g.

    If a tuple has plain rows, c counts only the values of which the plain rows have the maximum. A limit above the
    number of hidden rows never binds.
    """
    hidden = people - plain
    base = floored((plain + 1) / l) if plain else 0
    out = []
    for g in range(1, floored(people / l) - base + 1):
        least = max(k, plain + 1, math.ceil(l * (base + g) - 1e-9))
        binds = floored(least / l) == base + g and least <= people
        out.append(least - plain if binds else hidden + 1)
    return tuple(out)


def floored(x: float) -> int:
    """The floor of a quotient, corrected for rounding just below a whole number."""
    return math.floor(x + 1e-9)


@lru_cache(maxsize=256)
def _moves(
    hidden: int, above: tuple[int, ...]
) -> tuple[int, list[tuple[int, np.ndarray, np.ndarray]], np.ndarray] | None:
    """(states, for each j the states from and to which j more rows of a value lead, final states).

    None if there are too many.

    A state is the number of used rows and, for each limit that may bind, its sum so far.
    """
    binding = [(g, h) for g, h in enumerate(above, 1) if h <= hidden]
    start = (0, *([0] * len(binding)))
    number = {start: 0}
    line = [start]
    moves: list[tuple[list[int], list[int]]] = [([], []) for _ in range(hidden + 1)]
    for state in line:
        for j in range(1, hidden - state[0] + 1):
            after = (state[0] + j, *(s + min(j, g) for s, (g, _) in zip(state[1:], binding, strict=True)))
            if any(s >= h for s, (_, h) in zip(after[1:], binding, strict=True)):
                break  # more rows of one value only increase the sums
            if after not in number:
                if len(line) >= _STATES:
                    return None
                number[after] = len(line)
                line.append(after)
            moves[j][0].append(number[state])
            moves[j][1].append(number[after])
    steps = [(j, np.array(a), np.array(b)) for j, (a, b) in enumerate(moves) if a]
    return len(line), steps, np.array([number[s] for s in line if s[0] == hidden], np.int64)


def weighed(terms: np.ndarray, above: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray] | None:
    """(float64[tuples] total weight, float64[tuples, values] mean rows of each value) of compositions within limits.

    terms  float64[tuples, values, n + 1]: the weight of j rows of a value, 1 for none
    above  h_1, h_2, ...: only compositions whose sum of min(c_v, g) is below h_g for every g count

    The mean is 0 if no composition counts. The result is None if the dynamic program has too many states.
    O(tuples values n states): a forward pass for the totals, a backward pass for their derivatives.
    """
    tuples, values, rows = terms.shape
    found = _moves(rows - 1, above)
    if found is None:
        return None
    states, steps, ends = found
    total, mean = np.zeros(tuples), np.zeros((tuples, values))
    size = max(_HELD // (states * (values + 1)), 1)
    # Tuples are processed in batches that fit in memory.
    for begin in range(0, tuples, size):
        part = slice(begin, min(begin + size, tuples))
        term = terms[part]
        before = np.zeros((values + 1, len(term), states))
        before[0, :, 0] = 1.0
        for v in range(values):
            before[v + 1] = before[v]
            for j, a, b in steps:
                before[v + 1][:, b] += before[v][:, a] * term[:, v, j, None]
        after = np.zeros((len(term), states))
        after[:, ends] = 1.0
        total[part] = before[values][:, ends].sum(axis=1)
        for v in reversed(range(values)):
            back = after.copy()
            for j, a, b in steps:
                step = after[:, b] * term[:, v, j, None]
                mean[part, v] += j * (before[v][:, a] * step).sum(axis=1)
                back[:, a] += step
            after = back
    return total, np.divide(mean, total[:, None], out=np.zeros_like(mean), where=total[:, None] > 0)


def weigh(hidden: HiddenTuples, k: int, l: float, alike: float = math.inf) -> WeighedTuples:
    """Weights and mean shares of the possible hidden rows of every tuple.

    alike  Polya's concentration: how similar the shares of values are between tuples; infinite: the same for all

    O(tuples values n states), n at most ``MANY`` hidden rows.
    """
    have, people, _, share = hidden
    plain = have.sum(axis=1).round().astype(np.int64)
    left = people - plain
    out = WeighedTuples(
        np.zeros(len(people)), np.ones(len(people)), share.copy(), share.copy(), np.zeros(len(people), bool)
    )
    # Tuples with equal numbers of hidden and plain rows are weighed together: first all compositions, then the forced
    # ones. The difference is the weight of the free ones.
    for n, m in np.unique(np.column_stack([left, plain]), axis=0).tolist():
        if not 1 <= n <= MANY or n + m < max(k, 2):
            continue
        rows = np.flatnonzero((left == n) & (plain == m))
        top = share[rows].max(axis=1, keepdims=True)
        draw = _draws(hidden, rows, n, alike, top)
        upto = np.arange(n + 1)
        ours = have[rows][..., None]
        free = weighed(draw * np.exp(-gammaln(upto + 1)))
        full = ours >= floored((m + 1) / l) if m else np.ones_like(ours, bool)
        counted = np.where(full | (upto == 0), draw, 0.0)
        above = limits(n + m, m, k, l)
        forced = _of_few(counted * np.exp(gammaln(ours + 1) - gammaln(ours + upto + 1)), above)
        barred = forced if not m else _of_few(counted * np.exp(-gammaln(upto + 1)), above)
        if free is None or forced is None or barred is None:
            continue
        known = free[0] > 0
        loose = np.where(free[0] > barred[0] * (1 + 1e-9), free[0] - barred[0], 0.0)
        alone = math.exp(gammaln(m + 1) + gammaln(n + 1) - gammaln(n + m + 1))
        out.forced[rows] = np.where(known, forced[0], 0.0)
        out.free[rows] = np.where(known, loose * alone, 1.0)
        out.of_forced[rows] = forced[1] / n
        mean = np.maximum(free[0][:, None] * free[1] - barred[0][:, None] * barred[1], 0.0)
        mean = np.divide(mean, loose[:, None] * n, out=np.zeros_like(mean), where=loose[:, None] > 0)
        out.of_free[rows[known]] = mean[known]
        out.asked[rows] = known & (forced[0] > 0)
    return out


def _of_few(terms: np.ndarray, above: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """``weighed`` if some values have no rows; the arrays have only as many values as the widest tuple."""
    order = np.argsort(terms[..., 1] <= 0, axis=1, kind="stable")
    order = order[:, : max(int((terms[..., 1] > 0).sum(axis=1).max(initial=0)), 1)]
    found = weighed(np.take_along_axis(terms, order[..., None], axis=1), above)
    if found is None:
        return None
    mean = np.zeros(terms.shape[:2])
    np.put_along_axis(mean, order, found[1], axis=1)
    return found[0], mean


def _draws(hidden: HiddenTuples, rows: np.ndarray, n: int, alike: float, top: np.ndarray) -> np.ndarray:
    """float64[rows, values, n + 1]: b_v(j) / top ** j. The scaling prevents overflow."""
    have, pool, share = hidden.have[rows], hidden.pool[rows], hidden.share[rows]
    out = np.ones((*share.shape, n + 1))
    for j in range(1, n + 1):
        left = np.clip(1 - (j - 1) / np.maximum(pool, 1e-300), 0.0, 1.0)
        out[..., j] = out[..., j - 1] * left * (share + (have + j - 1) / alike * (share > 0)) / top
    return out


def concentration(counts: np.ndarray, share: np.ndarray) -> float:
    """Polya's concentration of the values within a class, by how often two of its rows have one value.

    counts  float64[classes, values]
    share   float64[values]: each value's share in the table

    The result is math.inf if two rows of a class have one value no more often than two rows of the table.
    """
    size = counts.sum(axis=1)
    pairs = float((size * (size - 1)).sum())
    by_chance = float((share**2).sum())
    if pairs <= 0 or by_chance >= 1:
        return math.inf
    more = (float((counts * (counts - 1)).sum()) / pairs - by_chance) / (1 - by_chance)
    return 1 / more - 1 if more > 1e-6 else math.inf


def rates(found: WeighedTuples, wholly: np.ndarray, others: tuple[int, int]) -> np.ndarray:
    """float64[tuples]: epsilon of each tuple; one rate for wholly hidden tuples, and one for partly hidden tuples.

    wholly  bool[tuples]: whether no row is plain
    others  tuples of at least k people that are hidden less: (in part or not at all, not at all)

    The rates have the maximum likelihood, by expectation maximization: the expected number of hidden tuples that aren't
    forced, over all tuples that needn't be hidden.
    """
    out = np.zeros(len(wholly))
    for kind, beside in ((wholly, others[0]), (~wholly, others[1])):
        here = kind & found.asked
        rate = 0.1
        for _ in range(_ROUNDS):
            loose = rate * found.free[here]
            needless = float((loose / np.maximum(loose + found.forced[here], 1e-300)).sum())
            rate = (needless + _BELIEF[0]) / (needless + beside + _BELIEF[1])
        out[kind] = rate
    return out


def posterior(found: WeighedTuples, rate: np.ndarray) -> np.ndarray:
    """float64[tuples, values]: the expected share of each value among the hidden rows. rate: epsilon of each tuple"""
    free = rate * found.free
    whole = found.forced + free
    mixed = found.forced[:, None] * found.of_forced + free[:, None] * found.of_free
    return np.where(found.asked[:, None], mixed / np.maximum(whole, 1e-300)[:, None], found.of_free)


PAPER = "Wong, Fu, Wang, Pei 2007"
LOWERS = "decoys (m-confidentiality, Wong et al.), a larger l; a method that does not hide as little as it can"
_SURE = 0.8
_PAIRS = 10_000_000_000


class Claims(NamedTuple):
    """The posterior of an intruder about tuples that aren't completely plain.

    tuples         int[asked, quasi]
    people         int64[asked]: people of each tuple
    number         int64[people of the register]: their tuple among all
    asked          int64[asked]: the indexes of these tuples among all
    after, before  float64[asked, values]: the share of each value among the people of the tuple, with and without the
                   knowledge that the maker hides no more than necessary
    informative    bool[asked]: whether minimality is informative for the tuple
    rates          name -> probability that a tuple, or a part of one, is hidden unnecessarily
    """

    tuples: np.ndarray
    people: np.ndarray
    number: np.ndarray
    asked: np.ndarray
    after: np.ndarray
    before: np.ndarray
    informative: np.ndarray
    rates: Mapping[str, float]


def claims(reading: Reading, register: People, column: str) -> Claims | None:
    """Posteriors of a sensitive value for all people in a register that has exactly the people of the release.

    None if nothing is hidden, or if there are too many pairs of a tuple and a class.
    O(tuples coarse classes / 8) bit operations, plus the time of ``weigh``.
    """
    hidden = reading.points[2]
    tuples, people, number = register.tuples
    have = _plain_rows(reading, tuples, column)
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
    weights = weigh(
        HiddenTuples(have[asked].astype(float), people[asked], pool, share), reading.k, reading.l_of(column), alike
    )
    wholly, could = shown[asked] == 0, people >= max(reading.k, 2)
    rate = rates(weights, wholly, (int((could & (shown > 0)).sum()), int((could & (left == 0)).sum())))
    rest = left[asked][:, None]
    after, before = (
        (have[asked] + rest * expected) / people[asked][:, None] for expected in (posterior(weights, rate), share)
    )
    named = {
        f"rate_of_hiding_{name}_without_need": float(rate[part][0])
        for name, part in (("a_tuple", wholly), ("a_part_of_one", ~wholly)) if part.any()
    }  # fmt: skip
    return Claims(tuples[asked], people[asked], number, asked, after, before, weights.asked, named)


def found(reading: Reading, register: People, original: People | None, column: str) -> list[Figure]:
    """Claims about a sensitive value above 1/l, with and without knowledge of the maker's minimality.

    register  everyone's quasi-identifiers
    original  to check the claims, or None
    """
    by_tuple = claims(reading, register, column) if reading.l_of(column) > 1 else None
    if by_tuple is None:
        return []
    truth = None
    if original is not None and column in original.sensitive:
        tuples, values = len(register.tuples[0]), by_tuple.after.shape[1]
        truth = _composition(register, original, by_tuple.number, tuples, values, column)[by_tuple.asked]
    return _findings(reading, column, by_tuple, truth)


def claimed(
    histogram: Histogram, recoding: Recoding, partition: Partition, most: float, promises: Iterable[tuple[int, float]]
) -> np.ndarray | None:
    """int64[n, 2]: claims of a value above ``most``, each with a group that contains people of the claimed tuple.

    promises  (k, l) pairs of models for which the method is assumed to hide as little as possible

    The result depends only on the groups and on everyone's quasi-identifiers. It is None if there are too many pairs.
    """
    of_cell, first = histogram.types
    people = np.bincount(of_cell, weights=histogram.count, minlength=first.size).astype(np.int64)
    register = People(np.repeat(histogram.quasi[first], people, axis=0), {})
    tuple_of = register.tuples[2][np.cumsum(people) - 1][of_cell[partition.cell]]
    pairs, many = [np.zeros((0, 2), np.int64)], 0
    for k, l in promises:
        reading = unwritten(histogram, recoding, partition, k, l)
        for column in reading.sensitive:
            beliefs = claims(reading, register, column)
            if beliefs is None:
                if reading.points[2].size:
                    return None
                continue
            over = beliefs.asked[beliefs.informative & (beliefs.after.max(axis=1, initial=0.0) > most)]
            claim = np.full(len(register.tuples[0]), -1)
            claim[over] = many + np.arange(over.size)
            at = np.flatnonzero(claim[tuple_of] >= 0)
            pairs.append(np.column_stack([claim[tuple_of[at]], partition.group[at]]))
            many += over.size
    return np.unique(np.concatenate(pairs), axis=0)


def _plain_rows(reading: Reading, tuples: np.ndarray, column: str) -> np.ndarray:
    """float32[tuples, values]: the plain rows of each tuple."""
    counts = reading.counts(column)
    plain, values, _ = reading.points
    out = np.zeros((len(tuples), counts.shape[1]), np.float32)
    if plain.size:
        place = same(tuples, values)
        np.add.at(out, place[place >= 0], counts[plain[place >= 0]])
    return out


def _pool(reading: Reading, tuples: np.ndarray, left: np.ndarray, column: str) -> tuple[np.ndarray, np.ndarray]:
    """(float64[tuples, values] rows of the coarse classes that cover each tuple, the same per person of a class).

    left  people of each tuple without a plain row
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


def _findings(reading: Reading, column: str, by_tuple: Claims, truth: np.ndarray | None) -> list[Figure]:
    """The findings of a sensitive column: claims above 1/l, and the most certain claims."""
    people, informative, before, after = by_tuple.people, by_tuple.informative, by_tuple.before, by_tuple.after
    promise = 1 / reading.l_of(column)
    informed = int(people[informative].sum())
    details: dict[str, object] = {
        "people_whose_tuple_is_not_wholly_published": int(people.sum()),
        "people_for_whom_minimality_is_informative": informed,
        "people_claimed_by_the_compatible_rows": int(people[before.max(axis=1) > promise + 1e-9].sum()),
        **by_tuple.rates,
    }
    if truth is not None and informed:
        weight = truth[informative] / informed
        details |= {
            "posterior_of_the_truth": float((weight * after[informative]).sum()),
            "posterior_of_the_truth_by_compatible_rows": float((weight * before[informative]).sum()),
        }
    out = []
    for least, name in ((promise + 1e-9, "above 1/l"), (_SURE, f"claims of {_SURE:g} and more")):
        among = informative & (after.max(axis=1) >= least)
        claimed = float(people[among].sum())
        right = _right(truth, people, after, among)
        figure = right if truth is not None else _mean(people, after, among)
        low, high = wilson((figure or 0.0) * claimed, claimed)
        certain = among & (after.max(axis=1) >= 0.95)
        best = _right(truth, people, after, certain)
        out.append(
            Figure(
                "minimality", f"{column}, {name}", PAPER,
                "the intruder has the quasi-identifiers of everybody in the table, and knows that the maker hides no "
                "more than the model asks",
                "claims that are right" if truth is not None else "mean of the claims, which nothing here can check",
                figure, low if claimed else 0.0, high if claimed else 0.0,
                {"what the compatible rows alone let one claim of them": _mean(people, before, among) or 0.0},
                promise, int(claimed), low if claimed else 0.0,
                None if best is None else (f"{int(people[certain].sum()):,} people claimed with 0.95 and more", best),
                LOWERS, {"share_of_the_people": claimed / reading.rows,
                         "mean_of_these_claims": _mean(people, after, among), **details},
            )
        )  # fmt: skip
    return out


def _mean(people: np.ndarray, belief: np.ndarray, among: np.ndarray) -> float | None:
    """The mean of the highest posterior over the people of some tuples."""
    return float((people[among] * belief[among].max(axis=1)).sum() / people[among].sum()) if among.any() else None


def _right(truth: np.ndarray | None, people: np.ndarray, belief: np.ndarray, among: np.ndarray) -> float | None:
    """The share of people of some tuples who have the most likely value; None if unknown."""
    if truth is None or not among.any():
        return None
    best = belief[among].argmax(axis=1)
    return float(truth[among][np.arange(int(among.sum())), best].sum() / people[among].sum())


DOWNCODING = "Cohen 2022"
FEWER = "a larger k; a method that does not coarsen as little as it can"
_TARGETS = 2_000
_WIDE = 1_500  # most values of a guessed column; wider columns are skipped
_LEAST = 1e-3  # candidates less likely than this are skipped


def downcoded(reading: Reading, truth: Truth, seed: int) -> list[Figure]:
    """Coarsened cells guessed by naive Bayes, and by naive Bayes without the values that finer classes show.

    Half of the original is the intruder's sample of the population. The guessed cells are those of the other half.
    O(cells guessed values columns).
    """
    original = truth.original
    rng = np.random.default_rng(seed + 2)
    order = rng.permutation(original.rows)
    known, targets = order[: original.rows // 2], np.sort(order[original.rows // 2 :][:_TARGETS])
    own = truth.placed(reading, targets).tocoo()
    coarse = np.logical_not(np.asarray(reading.plain).min(axis=1))
    kept = (own.data > _LEAST) & coarse[own.col]
    who, where, much = targets[own.row[kept]], own.col[kept].astype(np.int64), own.data[kept]
    if not who.size:
        return []
    value = truth.code(who)
    cells = 0.0
    sums = dict.fromkeys(("uniform", "marginal", "bayes", "minimal"), 0.0)
    columns: list[tuple[float, str, float]] = []
    for c, name in enumerate(reading.quasi):
        coarse = ~reading.plain[where, c]
        if not coarse.any() or len(reading.shares[c]) > _WIDE:
            continue
        right = _guessed(reading, truth, original, known, c, where[coarse], value[coarse], who[coarse])
        amount = much[coarse]
        cells += float(amount.sum())
        for key, hit in right.items():
            sums[key] += float((amount * hit).sum())
        columns.append((float((amount * right["minimal"]).sum() / amount.sum()), name, float(amount.sum())))
    if cells < 1:
        return []
    share = {key: total / cells for key, total in sums.items()}
    worst = max((c for c in columns if c[2] >= 30), default=None)
    shown = None if worst is None else (f"cells of {worst[1]}", worst[0])
    knows = "the intruder has half of the original as a sample of the population, and the rows are of the other half"
    out = []
    base = {"the commonest value of the cell": share["marginal"], "a value of the cell by chance": share["uniform"]}
    for key, name in (("bayes", "naive Bayes"), ("minimal", "naive Bayes and minimality")):
        low, high = wilson(sums[key], cells)
        out.append(
            Figure(
                "downcoding", f"coarsened cells by {name}", DOWNCODING, knows, "coarsened cells guessed exactly",
                share[key], low, high, base, None, round(cells), share[key], shown if key == "minimal" else None, FEWER,
                {"naive_bayes_without_minimality": share["bayes"]} if key == "minimal" else {},
            )
        )  # fmt: skip
    return out


def _guessed(
    reading: Reading, truth: Truth, original: People, known: np.ndarray, column: int, where: np.ndarray,
    value: np.ndarray, who: np.ndarray,
) -> dict[str, np.ndarray]:  # fmt: skip
    """For each guesser float64[tries]: whether the guess is right.

    where  int64[tries]: the class
    value  its sensitive value
    who    the person whose row it is
    """
    pairs, row = np.unique(np.column_stack([where, value]), axis=0, return_inverse=True)
    row = row.reshape(-1)
    classes, wide = pairs[:, 0], len(reading.shares[column])
    own = original.codes[known, column].astype(np.int64)
    there = own >= 0
    once = np.bincount(own[there], minlength=wide).astype(float)
    score = np.log(once + 0.5)[None].repeat(len(pairs), axis=0)
    for o in range(len(reading.quasi)):
        if o == column:
            continue
        chance = _given(reading, o, own[there], original.codes[known, o][there].astype(np.int64), once)
        score += chance[reading.classes[classes, o]]
    if truth.column is not None:
        values = truth.have.shape[1]
        codes = original.sensitive[truth.column][known][there].astype(np.int64)
        both = np.bincount(own[there][codes >= 0] * values + codes[codes >= 0], minlength=wide * values)
        table = np.log((both.reshape(wide, values).T + 0.3) / (once + 3)[None])
        score += table[np.maximum(pairs[:, 1], 0)]
    cell = reading.classes[classes, column]
    inside = reading.held(column, np.arange(wide))[cell]
    open_ = inside & ~_finer(reading, column, classes)
    open_ = np.where(open_.any(axis=1, keepdims=True), open_, inside)
    truths = original.codes[who, column]
    marginal = np.where(inside, once[None], -1.0).argmax(axis=1)
    bayes = np.where(inside, score, -np.inf).argmax(axis=1)
    minimal = np.where(open_, score, -np.inf).argmax(axis=1)
    return {
        "uniform": 1.0 / np.maximum(inside.sum(axis=1), 1)[row],
        "marginal": (marginal[row] == truths).astype(float),
        "bayes": (bayes[row] == truths).astype(float),
        "minimal": (minimal[row] == truths).astype(float),
    }


def _given(reading: Reading, other: int, own: np.ndarray, other_codes: np.ndarray, once: np.ndarray) -> np.ndarray:
    """float64[cells of the other column, values]: log of the share of a value's people that each cell covers."""
    s, wide, far = reading.spreads[other], len(once), len(reading.shares[other])
    kept = other_codes >= 0
    table = np.zeros((far + 1, wide))
    np.add.at(table, (other_codes[kept] + 1, own[kept]), 1.0)
    upto = np.cumsum(table, axis=0)
    held = np.zeros((s.size.size, wide))
    np.add.at(held, s.cell, upto[s.stop] - upto[s.start])
    return np.asarray(np.log((held + 0.3) / (once + 3)[None]))


def _finer(reading: Reading, column: int, classes: np.ndarray) -> np.ndarray:
    """bool[classes asked, values]: values that are published with the same uncoarsened values in all other columns.

    Such a tuple could be published unchanged, so one more row of it would have been published unchanged too.
    """
    s, wide = reading.spreads[column], len(reading.shares[column])
    rest = [c for c in range(len(reading.quasi)) if c != column]
    key = numbered(reading.classes[:, rest]) if rest else np.zeros(len(reading.size), np.int64)
    plain = np.flatnonzero(reading.plain.all(axis=1))  # so its other values are uncoarsened too
    asked, place = np.unique(key[classes], return_inverse=True)
    slot = np.full(int(key.max(initial=0)) + 1, -1)
    slot[asked] = np.arange(len(asked))
    plain = plain[slot[key[plain]] >= 0]
    value = np.zeros(s.size.size, np.int64)
    value[s.cell] = s.start
    out = np.zeros((len(asked), wide), bool)
    out[slot[key[plain]], value[reading.classes[plain, column]]] = True
    return out[place.reshape(-1)]
