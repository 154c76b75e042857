"""What a release says of the sensitive value: by the class of a person, and by what a classifier learns from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.attacks.finding import Finding, wilson
from shoal.attacks.linkage import DEALT, Truth, chance_of, sample, tally
from shoal.attacks.reading import People, Reading

HOMOGENEITY = "Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007"
LEARNED = "Cormode 2011; members against strangers after Yeom, Giacomelli, Fredrikson, Jha 2018"
_WORST = 30  # people a worst group has at least


def by_class(reading: Reading, column: str, seed: int) -> Finding:
    """The commonest value of a person's class, guessed; beside it the same with the values dealt out at random."""
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
    told = share > 1 / reading.l + 1e-9 if reading.l > 1 else share > 1 - 1e-9
    return Finding(
        "inference", f"{column} by class", HOMOGENEITY,
        "the intruder knows which class a person stands in", f"guesses of {column} that are right",
        right / reading.rows, low, high,
        {"the commonest value": float(marginal.max() / reading.rows),
         DEALT: wilson(float(max(dealt)), reading.rows)[1]},
        None, reading.rows, float(share[worst]),
        (f"a class of {int(reading.size[worst]):,} rows", float(share[worst])),
        "a larger l: no value may have more than 1/l of a class",
        {"rows_in_classes_of_one_value": float(reading.size[share > 1 - 1e-9].sum() / reading.rows),
         "rows_in_classes_above_the_promise": float(reading.size[told].sum() / reading.rows)},
    )  # fmt: skip


class Learned:
    """Naive Bayes trained on a release: a coarse cell counts for each of its values as common as they are.

    Logarithms float64[sensitive values, values] per quasi-identifier.  O(rows + sensitive values (runs + values)).
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
        """float64[people, sensitive values]: posteriors.  A value the release does not know tells nothing."""
        found = np.repeat(self.prior[None], len(codes), axis=0)
        for c, table in enumerate(self.tables):
            known = codes[:, c] >= 0
            found[known] += table[:, codes[known, c]].T
        found = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def by_classifier(
    reading: Reading, column: str, members: People, strangers: People | None, truth: Truth | None, seed: int
) -> list[Finding]:
    """Naive Bayes trained on the release, asked about members and about people who are not in the table."""
    model = Learned(reading, reading.counts(column))
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
        said = "members of the table" if who == "members" else "people who are not in the table"
        out.append(
            Finding(
                "inference", f"{column} by a classifier, {who}", LEARNED,
                f"the intruder trains naive Bayes on the release and asks it about {said}",
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
        beside = {"strangers in place of members, at most": out[1].high or 0.0}
        out[0] = replace(out[0], baselines={**out[0].baselines, **beside})
    return out


def _by_chance(reading: Reading, truth: Truth, members: People, seed: int) -> float:
    """The most of the same share's interval where values are dealt out at random: what a classifier learns by heart."""
    dealt = truth.dealt(reading, seed)
    person = sample(members.rows, len(reading.size), seed)
    guess = Learned(reading, dealt).ask(members.codes[person]).argmax(axis=1)
    right = chance_of(reading, truth.placed(reading, person), dealt, guess).sum()
    return wilson(float(right), len(person))[1]
