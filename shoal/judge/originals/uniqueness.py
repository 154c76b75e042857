"""How many people are alone in the population, and how likely a row is found, estimated from a sample.

Four estimates of population uniques from the sizes of the sample's classes, and the risk of each class from weights.
Estimates, never promises: each rests on a model of how the sample was drawn (at random, without replacement) and of
how class sizes are spread, and published comparisons find errors of a factor of two and more.

Zayatz 1991, Estimation of the number of unique population elements using a sample; Chen, Keller-McNulty 1998 (slide
negative binomial, SNB) with the number of classes after Shlosser as modified by Haas, Naughton, Seshadri, Stokes 1995;
Hoshino 2001 (Pitman's sampling formula); Dankar, El Emam, Neisa, Roffey 2012 (which one to believe);
Benedetti, Franconi 1998, Polettini 2003 (individual risk).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Uniques(NamedTuple):
    """Estimated number of people who are alone in the population; None where an estimate has no solution.

    dankar  the one that the decision rule takes, rule its name
    """

    zayatz: float | None
    snb: float | None
    pitman: float | None
    dankar: float
    rule: str


def uniques(sizes: Mapping[int, int], people: int) -> Uniques:
    """Population uniques from the sample's classes, size -> number of classes, and the size of the population.

    O(different sizes) for each step of a solver.
    """
    size = np.array(sorted(sizes), float)
    many = np.array([sizes[int(s)] for s in size], float)
    n = float((size * many).sum())
    alone = float(sizes.get(1, 0))
    if not alone or people <= n:
        return Uniques(alone, alone, alone, alone, "counted")
    first, second, third = zayatz(size, many, people), snb(size, many, people), pitman(size, many, people)
    if n / people <= 0.1:
        return Uniques(first, second, third, *((third, "pitman") if third is not None else (first, "zayatz")))
    least = min((first, "zayatz"), (math.inf if second is None else second, "snb"))
    return Uniques(first, second, third, *least)


def zayatz(size: np.ndarray, many: np.ndarray, people: int) -> float:
    """Sample uniques over the sampling fraction, times the chance that a sample unique is a population unique.

    The chance is Bayes' with the shares of class sizes in the population taken from the sample.
    """
    from scipy.stats import hypergeom

    n = int((size * many).sum())
    once = hypergeom.pmf(1, people, size.astype(np.int64), n)
    alone = many[size == 1].sum()
    chance = alone * once[size == 1].sum() / (many * once).sum()
    return float(alone * chance * people / n)


def classes(size: np.ndarray, many: np.ndarray, share: float) -> float:
    """Classes in the population, after Shlosser as modified by Haas et al. (their Sh2); share: people in the sample."""
    out = 1 - share
    a = (size * share**2 * (1 - share**2) ** (size - 1) * many).sum()
    b = (out**size * ((1 + share) ** size - 1) * many).sum()
    c = (out**size * many).sum()
    d = (size * share * out ** (size - 1) * many).sum()
    return float(many.sum() + many[size == 1].sum() * (a / b) * (c / d) ** 2)


def snb_sample(k: float, alpha: float, beta: float, share: float) -> tuple[float, float]:
    """Expected classes of one and of two rows in a sample, where K classes have 1 + NB(alpha, beta) people each."""
    q = (1 - share) * (1 - beta)
    once = k * share * (beta / (1 - q)) ** alpha * (1 + alpha * q / (1 - q))
    twice = k * alpha * beta**alpha * share**2 * (1 - beta) / (2 * (1 - q) ** (alpha + 2)) * (2 - (1 - alpha) * q)
    return once, twice


def snb(size: np.ndarray, many: np.ndarray, people: int) -> float | None:
    """K beta^alpha, with alpha and beta from the classes of one and two rows; None where none fits them."""
    from scipy.optimize import least_squares

    share = float((size * many).sum()) / people
    k = classes(size, many, share)
    wanted = np.array([many[size == 1].sum(), many[size == 2].sum()])
    if not math.isfinite(k) or not wanted.all():
        return None

    def away(x: np.ndarray) -> np.ndarray:
        alpha, beta = math.exp(x[0]), 1 / (1 + math.exp(-x[1]))
        return np.array(snb_sample(k, alpha, beta, share)) / wanted - 1

    for start in ((0.0, 0.0), (-2.0, -2.0), (1.0, -3.0), (-4.0, -5.0), (-1.0, 2.0)):
        found = least_squares(away, start, bounds=([-15, -15], [6, 15]), xtol=1e-12, ftol=1e-12)
        if np.abs(found.fun).max() < 1e-6:
            return float(k * (1 / (1 + math.exp(-found.x[1]))) ** math.exp(found.x[0]))
    return None


def pitman(size: np.ndarray, many: np.ndarray, people: int) -> float | None:
    """Gamma(theta + 1) / Gamma(theta + alpha) N^alpha at the likeliest theta and alpha; None at the ends of alpha."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    n, u = float((size * many).sum()), float(many.sum())
    if u < 2 or u >= n:
        return None

    def parameters(x: np.ndarray) -> tuple[float, float]:
        """alpha and theta, whose ends the search may run off to: held where they are told from the ends no more."""
        alpha = 1 / (1 + math.exp(-min(max(x[0], -20.0), 20.0)))
        return alpha, math.exp(min(max(x[1], -20.0), 60.0)) - alpha

    def unlikely(x: np.ndarray) -> float:
        alpha, theta = parameters(x)
        joined = u * math.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1) - math.log(alpha)
        drawn = gammaln(theta + n) - gammaln(theta + 1)
        inside = (many * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        return float(-(joined - drawn + inside))

    tries = [
        minimize(unlikely, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000})
        for start in ((0.0, 1.0), (-2.0, 4.0), (2.0, 0.0))
    ]
    found = min(tries, key=lambda t: float(t.fun))
    alpha, theta = parameters(found.x)
    if not 1e-6 < alpha < 1 - 1e-6:
        return None
    return float(min(math.exp(gammaln(theta + 1) - gammaln(theta + alpha) + alpha * math.log(people)), people))


def individual(rows: np.ndarray, people: np.ndarray) -> np.ndarray:
    """float64: the risk of a row of each class, rows int64 of it in the sample, people the sum of its weights.

    The mean of 1 / F, F the class's size in the population, given its rows: F - rows is negative binomial with
    p = rows / people.  p / rows times 2F1(1, 1; rows + 1; 1 - p), by Euler's transformation of Polettini's form.
    """
    from scipy.special import hyp2f1

    f = rows.astype(float)
    p = np.minimum(f / np.maximum(people, f), 1.0)
    return np.asarray(p / f * hyp2f1(1, 1, f + 1, 1 - p))
