"""Linkage with a register: which row of a release belongs to a person, and what the row reveals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from shoal.attacks.reading import Figure, People, Reading, mean_interval, same, wilson

_PAIRS = 60_000_000  # (person, class) pairs per pass of the attack
_MOST = 5_000  # people linked; more would only narrow the interval to less than a percent
_PASS = 5_000_000_000  # pairs of the one pass that only tests which classes cover a tuple
_FAR = 12.0  # log likelihoods this far below the best are ignored
_SAME = 1e-4  # log likelihoods closer than this are equal
PAPER = "Samarati, Sweeney 1998; with errors Fellegi, Sunter 1969"
DEALT = "values dealt out at random among the rows, at most"
LOWERS = "a larger k, fewer quasi-identifiers, coarser publishing"


class Truth(NamedTuple):
    """The classes in which people of the original can be, as far as the two files determine it.

    original  the people
    column    the sensitive column that distinguishes their rows, None if there is none
    exact     int64[rows]: the class of each row if rows are in the order of the original; None if they aren't
    could     float32[classes, values]: people of the original that a class covers, by sensitive value
    have      float32[classes, values]: rows of the class, by sensitive value
    """

    original: People
    column: str | None
    exact: np.ndarray | None
    could: np.ndarray
    have: np.ndarray

    def placed(self, reading: Reading, person: np.ndarray) -> csr_matrix:
        """csr[person, classes]: the probability that each class has the person's row; each row sums to at most 1.

        If N people have a tuple and a value, and c such rows are published unchanged, each person has one of them with
        probability c/N. A row of a coarse class is equally likely to belong to each other person that the class covers
        and who has its sensitive value.
        """
        shape = (len(person), len(reading.size))
        if self.exact is not None:
            at = (np.arange(len(person)), self.exact[person])
            return csr_matrix((np.ones(len(person)), at), shape=shape)
        code = self.code(person)
        tuples, _, number = self.original.tuples
        wanted, where = np.unique(number[person], return_inverse=True)
        rate = self.have / self.could
        rows = [csr_matrix((0, shape[1]))]
        for _, held in reading.holding(tuples[wanted]):
            rows.append(held)
        out = vstack(rows, format="csr")[where.reshape(-1)].tocsr()
        who = np.repeat(np.arange(len(person)), np.diff(out.indptr))
        out.data = np.where(code[who] >= 0, rate[out.indices, code[who]], 0.0)
        plain = np.isin(out.indices, reading.points[0])
        own, rest = (np.bincount(who, weights=out.data * part, minlength=len(person)) for part in (plain, ~plain))
        out.data *= np.where(plain, 1.0, ((1 - np.minimum(own, 1.0)) / np.maximum(rest, 1e-30))[who])
        out.eliminate_zeros()
        return out

    def dealt(self, reading: Reading, seed: int) -> np.ndarray:
        """float32[classes, values]: rows of each class after the values are permuted at random among all rows."""
        if self.column is None:
            return self.have
        codes = np.random.default_rng(seed).permutation(reading.codes[self.column])
        return tally(reading, codes, self.have.shape[1])

    def code(self, person: np.ndarray) -> np.ndarray:
        """int64[person]: their sensitive values."""
        if self.column is None:
            return np.zeros(len(person), np.int64)
        return self.original.sensitive[self.column][person]


def tally(reading: Reading, codes: np.ndarray, values: int) -> np.ndarray:
    """float32[classes, values]: rows of every class with each value. codes: int64[rows], -1 for none"""
    known = codes >= 0
    flat = np.bincount(reading.group[known] * values + codes[known], minlength=len(reading.size) * values)
    return flat.reshape(len(reading.size), values).astype(np.float32)


def chance_of(reading: Reading, own: csr_matrix, dealt: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """float64[people]: the chance that a guess is right if the classes have the permuted values."""
    who = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    share = own.data * dealt[own.indices, guess[who]] / reading.size[own.indices]
    return np.bincount(who, weights=share, minlength=own.shape[0])


def truth_of(reading: Reading, original: People, seed: int) -> Truth:
    """The truth for the people of the original. O(tuples coarse classes); sampled beyond 5 10^9 pairs."""
    column = next((n for n in reading.sensitive if n in original.sensitive), None)
    have = reading.size[:, None].astype(np.float32) if column is None else reading.counts(column)
    fits = same_order(reading, original)
    if fits is not None and fits.all():
        return Truth(original, column, reading.group, have, have)
    code = np.zeros(original.rows, np.int64) if column is None else original.sensitive[column]
    tuples, _, number = original.tuples
    pairs, many = np.unique(np.column_stack([number, code]), axis=0, return_counts=True)
    could = np.maximum(have, 1e-9)
    plain, values, coarse = reading.points
    class_ = np.full(len(tuples), -1)
    place = same(tuples, values)
    class_[place[place >= 0]] = plain[place >= 0]
    there = (class_[pairs[:, 0]] >= 0) & (pairs[:, 1] >= 0)
    at = (class_[pairs[there, 0]], pairs[there, 1])
    could[at] = np.maximum(have[at], many[there])
    many[there] -= np.minimum(have[at], many[there]).astype(many.dtype)
    pairs, many = pairs[many > 0], many[many > 0]  # people in coarse classes
    pairs, many, scale = _sampled(pairs, many, len(coarse), seed)
    left = np.zeros_like(have)
    step = np.unique(pairs[:, 0])
    where = np.searchsorted(step, pairs[:, 0])
    for part, held in reading.holding(tuples[step]):
        inside = (where >= part.start) & (where < part.stop) & (pairs[:, 1] >= 0)
        at = (where[inside] - part.start, pairs[inside, 1])
        weights = csr_matrix((many[inside], at), shape=(part.stop - part.start, have.shape[1]))
        left += (held.T @ weights).toarray().astype(np.float32)
    could[coarse] = np.maximum(np.maximum(left * scale, have), 1e-9)[coarse]
    return Truth(original, column, None, could, have)


def _sampled(tuples: np.ndarray, many: np.ndarray, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The tuples that one pass can compare with the classes, their rows, and the factor by which they represent all."""
    allowed = max(_PASS // max(classes, 1), 1_000)
    if len(tuples) <= allowed:
        return tuples, many, 1.0
    kept = np.sort(np.random.default_rng(seed).permutation(len(tuples))[:allowed])
    return tuples[kept], many[kept], float(many.sum() / many[kept].sum())


def same_order(reading: Reading, original: People, shift: int = 0, rows: np.ndarray | None = None) -> np.ndarray | None:
    """bool[rows]: which rows of the release match the original's row at the same position.

    None if the row counts differ.

    shift  compare each row with the original's row this many positions later
    rows   the rows to compare; None: all
    """
    if original.rows != reading.rows:
        return None
    at = np.arange(reading.rows) if rows is None else rows
    there = (at + shift) % reading.rows
    fits = np.ones(len(at), bool)
    for c in range(len(reading.quasi)):
        fits &= reading.pairwise(c, reading.classes[reading.group[at], c], original.codes[there, c])
    for name, held in original.sensitive.items():
        fits &= held[there] == reading.codes[name][at]
    return fits


def sample(rows: int, classes: int, seed: int) -> np.ndarray:
    """int64[m]: random people, as many as the limit of pairs allows."""
    most = int(np.clip(_PAIRS // max(classes, 1), 500, _MOST))
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])


def with_errors(codes: np.ndarray, error: float, shares: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Tuples in which a share of the values is replaced with those of other people. codes: int32[rows, quasi]"""
    out = codes.copy()
    for c, p in enumerate(shares):
        hit = rng.random(len(out)) < error
        out[hit, c] = rng.choice(len(p), int(hit.sum()), p=p)
    return out


def linked(
    reading: Reading, truth: Truth, person: np.ndarray, own: csr_matrix, error: float, seed: int
) -> list[Figure]:
    """Linkage by a register with a share of wrong values, and inference of the sensitive value from the linked rows.

    person  int64[m]: people to link
    own     their ``Truth.placed``

    The intruder chooses the row with the highest likelihood, at random among ties, and the sensitive value with the
    highest total likelihood over all rows.
    """
    original = truth.original
    clean = original.codes[person]
    asked = with_errors(clean, error, reading.shares, np.random.default_rng(seed + 1)) if error else clean
    right = np.zeros(len(person))
    rows = np.zeros(len(person))
    guess = np.zeros(len(person), bool)
    belief = np.zeros(len(person))
    by_chance, own_code = np.zeros(len(person)), truth.code(person)
    dealt = truth.dealt(reading, seed)
    for part, like in reading.likelihoods(asked, error):
        best = like.max(axis=0)
        sane = np.isfinite(best)
        class_, who = np.nonzero((like > best - _FAR) & sane)
        gap = like[class_, who] - best[who]
        shape = (part.stop - part.start, len(reading.size))
        weight = csr_matrix((np.exp(gap), (who, class_)), shape=shape)
        near = gap >= -_SAME
        pool = csr_matrix((np.ones(int(near.sum())), (who[near], class_[near])), shape=shape)
        rows[part] = pool @ reading.size
        mine = own[part.start : part.stop]
        right[part] = np.asarray(pool.multiply(mine).sum(axis=1)).reshape(-1) / np.maximum(rows[part], 1)
        if truth.column is not None:
            say, there = weight @ truth.have, (weight @ dealt).argmax(axis=1)
            guess[part] = (say.argmax(axis=1) == own_code[part]) & sane
            belief[part] = say.max(axis=1) / np.maximum(weight @ reading.size, 1e-30)
            by_chance[part] = chance_of(reading, mine, dealt, there)
    mean, low, high = mean_interval(right)
    few = int(np.argmax(right))
    words = "exact" if not error else f"{100 * error:g} % of its values wrong"
    knows = f"the intruder has the quasi-identifiers of people who are in the table, {words}"
    out = [
        Figure(
            "linkage", f"register, {words}", PAPER, knows, "links that are right, expected", mean, low, high,
            {"a row at random": 1 / reading.rows}, 1 / reading.k if reading.k > 1 else None, len(person),
            float(right[few]),
            (f"the person linked best, among {int(rows[few]):,} rows", float(right[few])), LOWERS,
            {"rows_linked_to_mean": float(rows.mean())},
        )
    ]  # fmt: skip
    if truth.column is None:
        return out
    hit = float(guess.sum())
    more = max(1 / reading.l_of(truth.column), 0.5)
    sure = belief > more + 1e-6
    low, high = wilson(hit, len(person))
    marginal = reading.counts(truth.column).sum(axis=0)
    out.append(
        Figure(
            "inference", f"{truth.column} by a register, {words}", PAPER, knows,
            f"guesses of {truth.column} that are right", hit / len(person), low, high,
            {"the commonest value": float(marginal.max() / marginal.sum()),
             DEALT: wilson(by_chance.sum(), len(person))[1]}, None, len(person), hit / len(person),
            (f"{int(sure.sum()):,} people guessed with more than {more:.2f}",
             float(guess[sure].mean())) if sure.any() else None,
            "a larger l, t-closeness", {},
        )
    )  # fmt: skip
    return out


def unchecked(reading: Reading, register: People, seed: int) -> list[Figure]:
    """Linkage by a register if the truth is unknown: every row is linked to a random one of the people who match it.

    The share is over rows of the release: 1 / people of the register who match (the journalist's risk).
    """
    tuples, many, _ = register.tuples
    tuples, many, scale = _sampled(tuples, many, len(reading.points[2]), seed)
    fit = np.zeros(len(reading.size))
    for part, held in reading.holding(tuples):
        fit += held.T @ many[part]
    fit *= scale
    known = fit > 0
    weight = reading.size / reading.rows
    chance = np.where(known, 1 / np.maximum(fit, 1), 0.0)
    mean = float((weight * chance).sum())
    half = 1.96 * float(np.sqrt((weight * (chance - mean) ** 2).sum() / reading.rows))
    worst = int(np.argmax(chance))
    found = (float(chance[worst]), round(float(fit[worst])))
    return [
        Figure(
            "linkage", "register, nobody knows who is in the table", "Sweeney 2002; El Emam, Dankar 2008",
            "the intruder has a register and links every row to one of the people who fit it",
            "rows linked to the right person at most, expected", mean, max(mean - half, 0.0), min(mean + half, 1.0),
            {"a person of the register at random": 1 / max(register.rows, 1)},
            1 / reading.k if reading.k > 1 else None, reading.rows, found[0] if known.any() else 0.0,
            (f"rows that {found[1]:,} people of the register fit", found[0]) if known.any() else None, LOWERS,
            {"rows_that_nobody_fits": float(weight[~known].sum())},
        )
    ]  # fmt: skip


HOMOGENEITY = "Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007"
LEARNED = "Cormode 2011; members against strangers after Yeom, Giacomelli, Fredrikson, Jha 2018"
_WORST = 30  # least number of people in a worst group


def by_class(reading: Reading, column: str, seed: int) -> Figure:
    """Inference by the most frequent value of a person's class, compared with the same after values are permuted."""
    counts = reading.counts(column)
    most = counts.max(axis=1)
    right = float(most.sum())
    marginal = counts.sum(axis=0)
    rng = np.random.default_rng(seed)
    dealt = []
    for _ in range(5):
        codes = rng.permutation(reading.codes[column])
        dealt.append(tally(reading, codes, counts.shape[1]).max(axis=1).sum())
    low, high = wilson(right, reading.rows)
    share = most / reading.size
    worst = int(np.argmax(share * 1e6 + np.minimum(reading.size, 1e6) / 1e6))
    least = reading.l_of(column)
    disclosed = share > 1 / least + 1e-9 if least > 1 else share > 1 - 1e-9
    return Figure(
        "inference", f"{column} by class", HOMOGENEITY,
        "the intruder knows the class of a person", f"guesses of {column} that are right",
        right / reading.rows, low, high,
        {"the commonest value": float(marginal.max() / reading.rows),
         DEALT: wilson(float(max(dealt)), reading.rows)[1]},
        None, reading.rows, float(share[worst]),
        (f"a class of {int(reading.size[worst]):,} rows", float(share[worst])),
        "a larger l: no value may have more than 1/l of a class",
        {"rows_in_classes_of_one_value": float(reading.size[share > 1 - 1e-9].sum() / reading.rows),
         "rows_in_classes_above_the_promise": float(reading.size[disclosed].sum() / reading.rows)},
    )  # fmt: skip


class NaiveBayes:
    """Naive Bayes trained on a release.

    A coarse cell counts as each value that it covers, weighted by the value's frequency.

    It stores logarithms, float64[sensitive values, values] per quasi-identifier. O(rows + sensitive values (runs +
    values)).
    """

    def __init__(self, reading: Reading, counts: np.ndarray) -> None:
        self.prior = np.log(counts.sum(axis=0) + 1.0)
        self.tables = []
        for c, (s, p) in enumerate(zip(reading.spreads, reading.shares, strict=True)):
            wide = len(p)
            per = np.zeros((s.size.size, counts.shape[1]))
            np.add.at(per, reading.classes[:, c], counts)
            edges = np.zeros((wide + 1, counts.shape[1]))
            density = per / reading.mass[c][:, None]
            np.add.at(edges, s.start, density[s.cell])
            np.add.at(edges, s.stop, -density[s.cell])
            table = np.maximum(np.cumsum(edges, axis=0)[:-1] * p[:, None], 0.0).T + 0.1
            self.tables.append(np.log(table / table.sum(axis=1, keepdims=True)))

    def ask(self, codes: np.ndarray) -> np.ndarray:
        """float64[people, sensitive values]: posteriors. Values that don't occur in the release are ignored."""
        found = np.repeat(self.prior[None], len(codes), axis=0)
        for c, table in enumerate(self.tables):
            known = codes[:, c] >= 0
            found[known] += table[:, codes[known, c]].T
        found = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def by_classifier(
    reading: Reading, column: str, members: People, strangers: People | None, truth: Truth | None, seed: int
) -> list[Figure]:
    """Naive Bayes trained on the release, applied to members and to people who aren't in the table."""
    model = NaiveBayes(reading, reading.counts(column))
    marginal = reading.counts(column).sum(axis=0)
    base = float(marginal.max() / marginal.sum())
    out = []
    people = [("members", members), *([("strangers", strangers)] if strangers is not None else [])]
    for who, table in people:
        if column not in table.sensitive or not table.rows:
            continue
        asked = sample(table.rows, 1, seed)
        found = model.ask(table.codes[asked])
        value = table.sensitive[column][asked]
        hit = found.argmax(axis=1) == value
        low, high = wilson(float(hit.sum()), len(hit))
        guess = found.argmax(axis=1)
        groups = [
            (wilson(float(hit[guess == v].sum()), int((guess == v).sum()))[0], int((guess == v).sum()))
            for v in range(len(marginal))
            if (guess == v).sum() >= _WORST
        ]
        worst = max(groups, default=None)
        asked_about = "members of the table" if who == "members" else "people who are not in the table"
        out.append(
            Figure(
                "inference", f"{column} by a classifier, {who}", LEARNED,
                f"the intruder trains naive Bayes on the release and asks it about {asked_about}",
                f"guesses of {column} that are right", float(hit.mean()), low, high,
                {"the commonest value": base}, None, len(hit), float(hit.mean()) if who == "members" else None,
                None if worst is None else (f"{worst[1]:,} people guessed alike, at least", worst[0]),
                "t-closeness; what strangers are guessed by is a pattern of the population and no leak of a row",
                {"mean_posterior": float(found[np.arange(len(value)), value][value >= 0].mean()) if (value >= 0).any()
                 else 0.0},
            )
        )  # fmt: skip
    if out and truth is not None and truth.column == column:
        out[0] = replace(out[0], baselines={**out[0].baselines, DEALT: _by_chance(reading, truth, members, seed)})
    if len(out) == 2:
        baseline = {"strangers in place of members, at most": out[1].high or 0.0}
        out[0] = replace(out[0], baselines={**out[0].baselines, **baseline})
    return out


def _by_chance(reading: Reading, truth: Truth, members: People, seed: int) -> float:
    """The interval's upper end of the same share after values are permuted: what overfitting reaches."""
    dealt = truth.dealt(reading, seed)
    person = sample(members.rows, len(reading.size), seed)
    guess = NaiveBayes(reading, dealt).ask(members.codes[person]).argmax(axis=1)
    right = chance_of(reading, truth.placed(reading, person), dealt, guess).sum()
    return wilson(float(right), len(person))[1]
