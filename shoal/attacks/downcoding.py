"""Downcoding (Cohen 2022): guesses the original value of a coarsened cell from correlated columns and finer rows."""

from __future__ import annotations

import numpy as np

from shoal.attacks.linkage import Truth
from shoal.attacks.reading import Figure, People, Reading, numbered, wilson

PAPER = "Cohen 2022"
LOWERS = "a larger k; a method that does not coarsen as little as it can"
_TARGETS = 2_000
_WIDE = 1_500  # most values of a guessed column; wider columns are skipped
_LEAST = 1e-3  # candidates less likely than this are skipped


def found(reading: Reading, truth: Truth, seed: int) -> list[Figure]:
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
                "downcoding", f"coarsened cells by {name}", PAPER, knows, "coarsened cells guessed exactly", share[key],
                low, high, base, None, round(cells), share[key], shown if key == "minimal" else None, LOWERS,
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
