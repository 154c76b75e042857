"""Compares a table with the population from which its rows were drawn, or estimates the population from the sample.

With the population, it counts how many people each class covers, and the risk that follows. It shares no code with the
solvers. A class covers a row of the population if each of its published values can mean the row's value
(``shoal.judge.tables.covering``).

Without it, the module estimates the number of population uniques (four estimators from the sizes of the sample's
classes), and the risk of each class from weights. Estimates aren't guarantees: each assumes a sampling model (at
random, without replacement) and a distribution of class sizes. Published comparisons find errors of a factor of two and
more.

Zayatz 1991, Estimation of the number of unique population elements using a sample; Chen, Keller-McNulty 1998 (slide
negative binomial, SNB) with the number of classes after Shlosser as modified by Haas, Naughton, Seshadri, Stokes 1995;
Hoshino 2001 (Pitman's sampling formula); Dankar, El Emam, Neisa, Roffey 2012 (the decision rule); Benedetti, Franconi
1998, Polettini 2003 (individual risk).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InputError, PolicyError
from shoal.judge.tables.covering import ColumnNotation, ColumnPair, column
from shoal.model.audit import Audit, Check
from shoal.model.cards import several
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.policy import Policy
from shoal.model.privacy import DeltaPresence, KMap, Model


class Uniques(NamedTuple):
    """The estimated number of population uniques; None if an estimator has no solution.

    dankar  the estimate that the decision rule selects; rule: its name
    """

    zayatz: float | None
    snb: float | None
    pitman: float | None
    dankar: float
    rule: str


def uniques(sizes: Mapping[int, int], people: int) -> Uniques:
    """Population uniques from the sample's classes (size -> number of classes) and the size of the population.

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

    The chance follows from Bayes' theorem, with the sample's shares of class sizes as those of the population.
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
    """Expected classes of one and of two rows in a sample, if K classes have 1 + NB(alpha, beta) people each."""
    q = (1 - share) * (1 - beta)
    once = k * share * (beta / (1 - q)) ** alpha * (1 + alpha * q / (1 - q))
    twice = k * alpha * beta**alpha * share**2 * (1 - beta) / (2 * (1 - q) ** (alpha + 2)) * (2 - (1 - alpha) * q)
    return once, twice


def snb(size: np.ndarray, many: np.ndarray, people: int) -> float | None:
    """K beta^alpha, with alpha and beta fitted to the classes of one and two rows; None if no values fit."""
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
    """Gamma(theta + 1) / Gamma(theta + alpha) N^alpha at the maximum likelihood theta and alpha.

    None if alpha is at a limit.
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln

    n, u = float((size * many).sum()), float(many.sum())
    if u < 2 or u >= n:
        return None

    def parameters(x: np.ndarray) -> tuple[float, float]:
        """alpha and theta from unbounded variables; alpha is clipped where it is numerically equal to its limit."""
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
    """float64: the individual risk of a row of each class.

    rows    int64: rows of the class in the sample
    people  the sum of its weights

    The mean of 1 / F, where F is the size of the class in the population, given its rows: F - rows is negative binomial
    with p = rows / people. The result is p / rows times 2F1(1, 1; rows + 1; 1 - p), by Euler's transformation of
    Polettini's form.
    """
    from scipy.special import hyp2f1

    f = rows.astype(float)
    p = np.minimum(f / np.maximum(people, f), 1.0)
    return np.asarray(p / f * hyp2f1(1, 1, f + 1, 1 - p))


Reader = Callable[[str, pl.Series], ColumnNotation]
_TOLERANCE = 1e-9
EDGES = 20_000_000


@dataclass(frozen=True, eq=False)
class Census:
    """A population: its distinct tuples over the quasi-identifiers, and int64 rows of each."""

    tuples: pl.DataFrame
    rows: np.ndarray

    @property
    def size(self) -> int:
        """The number of people."""
        return int(self.rows.sum())

    def refuse_smaller(self, rows: int) -> None:
        """Raise InputError if so many rows can't have been drawn from this population."""
        if self.size < rows:
            raise InputError(
                f"the population has {several(self.size, 'row')} and the sample {rows:,}; pass the table that the "
                "sample was drawn from"
            )


@dataclass(frozen=True, eq=False)
class Covered:
    """The classes of a table: int64 rows of each, and the people of the population that it covers or represents.

    size       of the population
    estimated  whether people are sums of weights
    held       int64 rows of each tuple of the population
    fits       pairs of classes and the tuples that they cover
    """

    rows: np.ndarray
    people: np.ndarray
    size: float
    estimated: bool = True
    held: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    fits: Sequence[tuple[np.ndarray, np.ndarray]] = ()


def lacks(name: str) -> InputError:
    """The error for a hierarchy that lacks a value of the population."""
    return InputError(f"the hierarchy of {name!r} lacks a value of the population; add the population's values to it")


def covered(
    frame: pl.DataFrame, quasi: Sequence[str], census: Census, reading: Reader, often: np.ndarray | None = None
) -> Covered:
    """The people of a population that every class of a published table covers.

    frame    the published table; reading(name, values) returns how a column was published
    often    int64 for each line of the frame, if a line represents several rows
    Raises InputError for a published value that is neither a value of the population nor a coarser form of one.
    O(sum over prefixes of classes of the people they cover), at most classes times distinct tuples of the population.
    """
    plain = [c.cast(pl.String) if isinstance(c.dtype, (pl.Categorical, pl.Enum)) else c for c in frame[list(quasi)]]
    many = pl.Series("n", np.ones(frame.height, np.int64) if often is None else often)
    short = pl.DataFrame([*(c.alias(f"c{i}") for i, c in enumerate(plain)), many])
    held = short.group_by(short.columns[:-1], maintain_order=True).agg(pl.col("n").sum())
    columns = []
    for i, name in enumerate(quasi):
        try:
            found = column(census.tuples[name], held[f"c{i}"], reading(name, held[f"c{i}"]))
        except PolicyError:
            raise lacks(name) from None
        empty = (found.low > found.high) & ~np.isin(np.arange(found.low.size), found.keys // max(found.values, 1))
        if empty.any():
            raise InputError(
                f"column {name!r} has a value that is no value of the population and no coarser form of one"
            )
        columns.append(found)
    fits: list[tuple[np.ndarray, np.ndarray]] = []
    _fit(columns, 0, np.arange(held.height), np.arange(census.rows.size), fits)
    people = np.zeros(held.height, np.int64)
    for classes, inside in fits:
        people[classes] = census.rows[inside].sum()
    return Covered(held["n"].to_numpy().astype(np.int64), people, census.size, False, census.rows, fits)


def _fit(
    columns: list[ColumnPair],
    depth: int,
    classes: np.ndarray,
    inside: np.ndarray,
    out: list[tuple[np.ndarray, np.ndarray]],
) -> None:
    """The tuples of the population that classes cover which agree in the columns before ``depth``."""
    if depth == len(columns) or not classes.size:
        out.append((classes, inside))
        return
    here = columns[depth]
    token = here.after[classes]
    order = np.argsort(token, kind="stable")
    start = np.flatnonzero(np.diff(token[order], prepend=-1))
    for part in np.split(classes[order], start[1:]):
        if part.size:
            fits = here.covered(int(here.after[part[0]]))
            _fit(columns, depth + 1, part, inside[fits[here.before[inside]]], out)


def presence(found: Covered) -> float:
    """The largest chance of membership: the least share at which people can be assigned to classes that cover them.

    By Hall's theorem, it is the maximum of rows(S) / people(S) over sets S of classes, where people(S) are the people
    that a class of S covers. If no two classes cover the same people, single classes suffice. Otherwise each step finds
    a set that violates the current share by a maximum flow, and continues with its share (Dinkelbach 1967). The shares
    increase, so the loop ends.
    Raises InputError beyond ``EDGES`` pairs of class and tuple.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    at = np.concatenate([inside for _, inside in found.fits])
    level = int(np.argmax(found.rows / np.maximum(found.people, 1)))
    share = Fraction(int(found.rows[level]), max(int(found.people[level]), 1))
    if np.unique(at).size == at.size:
        return float(share)
    pairs = sum(classes.size * inside.size for classes, inside in found.fits)
    if pairs > EDGES:
        raise InputError(
            "too many classes cover the same people for delta-presence to be judged; publish one level per column "
            "(⟨global_recoding⟩), whose classes cover different people"
        )
    one = np.concatenate([np.repeat(classes, inside.size) for classes, inside in found.fits])
    other = np.concatenate([np.tile(inside, classes.size) for classes, inside in found.fits])
    c, p = found.rows.size, found.held.size
    source, sink = c + p, c + p + 1
    while True:
        # rows / people <= share, in whole numbers: for share a / b, a class supplies rows * b and a tuple has capacity
        # held * a
        supply, capacity = found.rows * share.denominator, found.held * share.numerator
        if int(supply.sum()) >= 2**31 or int(capacity.sum()) >= 2**31:
            raise InputError("the population is too large for delta-presence of classes that cover the same people")
        start = np.concatenate([np.full(c, source), one, np.arange(c, c + p)])
        end = np.concatenate([np.arange(c), c + other, np.full(p, sink)])
        most = np.concatenate([supply, supply[one], capacity]).astype(np.int32)
        graph = csr_matrix((most, (start, end)), shape=(c + p + 2, c + p + 2))
        flow = maximum_flow(graph, source, sink)
        if flow.flow_value == int(supply.sum()):
            return float(share)
        left = graph - flow.flow
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        reached = breadth_first_order(left, source, return_predecessors=False)
        inside = np.zeros(c + p + 2, bool)
        inside[reached] = True
        people = np.zeros(p, bool)
        people[other[inside[one]]] = True
        share = Fraction(int(found.rows[inside[:c]].sum()), int(found.held[people].sum()))


def weighed(frame: pl.DataFrame, quasi: Sequence[str], weights: str, often: np.ndarray | None = None) -> Covered:
    """The classes of a sample, each with the sum of its rows' weights, rounded down.

    often  int64 for each line of the frame, if a line represents several rows
    Raises InputError for a weight that is missing, no number, or below 0.
    """
    column = numbers(frame[weights], weights)
    many = pl.Series(np.ones(frame.height, np.int64) if often is None else often)
    short = pl.DataFrame(
        [*(frame[name].alias(f"c{i}") for i, name in enumerate(quasi)), many.alias("n"), (column * many).alias("w")]
    )
    held = short.group_by(short.columns[:-2]).agg(pl.col("n").sum(), pl.col("w").sum())
    people = np.floor(held["w"].to_numpy() + _TOLERANCE * np.maximum(held["w"].to_numpy(), 1))
    return Covered(held["n"].to_numpy().astype(np.int64), people.astype(np.int64), float((column * many).sum()))


def numbers(column: pl.Series, name: str) -> pl.Series:
    """A column of weights as float64; InputError unless each is finite and at least 0."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        column = column.cast(pl.String)
    try:
        found = column.cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError:
        found = pl.Series([None], dtype=pl.Float64)
    if found.null_count() or not found.is_finite().all():
        raise InputError(f"column {name!r} has a weight that is missing or no number; every row needs one")
    if len(found) and float(found.min()) < 0:  # type: ignore[arg-type]
        raise InputError(f"column {name!r} has a negative weight; a weight states how many people a row represents")
    return found


def reading_of(
    asked: Policy,
    publish: str,
    hierarchies: Mapping[str, Any],
    stars: Mapping[str, int],
    blanks: Collection[str],
    sheet: bool = False,
) -> Reader:
    """A reader that returns how each column of a release was published.

    blanks  text columns in which a star is written as a blank
    """

    def read(name: str, values: pl.Series) -> ColumnNotation:
        source = hierarchies.get(name) if publish == "hierarchy" else None
        known = source if source is None or (isinstance(source, str) and source in GENERATED) else Hierarchy.of(source)
        empty = values.dtype != pl.String or name in blanks or values.null_count() == len(values)
        blank, notation = bool(stars.get(name)) and empty, asked.notations.get(name)
        return ColumnNotation(publish, asked.star, blank, known, sheet, notation=notation)

    return read


def foreign(star: str, hierarchies: Mapping[str, Any]) -> Reader:
    """A reader for the columns of any table: classes of a hierarchy if given, else values, ranges, and sets."""

    def read(name: str, values: pl.Series) -> ColumnNotation:
        if name in hierarchies:
            return ColumnNotation("hierarchy", star, False, Hierarchy.of(hierarchies[name]))
        return ColumnNotation("ranges", star, False)

    return read


def outside(
    frame: pl.DataFrame, asked: Policy, census: Census | None, read: Reader, people: Covered | None
) -> Covered | None:
    """The people that a table's classes cover or represent; None if there is neither a population nor weights.

    people  as counted before the weights were removed from the table
    """
    if census is not None:
        return covered(frame, asked.grouped, census, read)
    if asked.weighed and asked.weighed[0] in frame.columns:
        return weighed(frame, asked.grouped, asked.weighed[0])
    return people


def refuse_foreign(found: Covered) -> None:
    """Raise InputError if the rows of a class can't have been drawn from the population."""
    lacking = int((found.people < found.rows).sum())
    if lacking:
        raise InputError(
            f"{lacking:,} of the {found.rows.size:,} classes have more rows than the population has people that they "
            "fit; a population holds its sample, and both tables must write values alike"
        )


def add_population(audit: Audit, found: Covered, models: Sequence[Model]) -> Audit:
    """The audit extended by the risks from the population, and a Check for k-map and delta-presence."""
    checks = tuple(check_of(m, found) for m in models if m.applies_to == "population")
    n = int(found.rows.sum())
    if not n:
        return replace(audit, checks=audit.checks + checks)
    people = np.maximum(found.people, 1)
    share, risk = found.rows / people, dict(audit.risk)
    risk["journalist_max"] = float(1 / people.min())
    risk["journalist_mean"] = math.fsum(share) / n  # classes have no order
    threshold = risk["threshold"]
    risk["journalist_at_risk"] = float(found.rows[people * threshold < 1 - _TOLERANCE].sum() / n)
    if found.estimated:
        each = individual(found.rows, found.people)
        risk["individual_max"] = float(each.max())
        risk["individual_mean"] = math.fsum(each * found.rows) / n
    population: dict[str, Any] = {
        "from": "weights" if found.estimated else "table",
        "rows": int(found.size + 1e-6),
        "k_map": int(found.people.min()),
        "presence": [float(share.min()), float(share.max())],
        "unique": int((found.people <= 1).sum()),
        "uniques": uniques(audit.sizes, int(found.size + 1e-6))._asdict(),
    }
    return replace(audit, checks=audit.checks + checks, risk=risk, population=population)


def sized(audit: Audit, people: int) -> Audit:
    """The audit extended by the population uniques, estimated from the population's size alone.

    Raises PolicyError for a population smaller than the table.
    """
    if isinstance(people, bool) or not isinstance(people, int) or people < max(audit.rows, 1):
        raise PolicyError(f"⟨population_size={people!r}⟩: a whole number, at least the {audit.rows} rows of the table")
    population = {"from": "size", "rows": people, "uniques": uniques(audit.sizes, people)._asdict()}
    return replace(audit, population=population)


def check_of(model: Model, found: Covered) -> Check:
    """Whether all classes together meet a model of the population."""
    assert isinstance(model, (KMap, DeltaPresence))
    asked: dict[str, Any] = {"k": model.k} if isinstance(model, KMap) else {"low": model.low, "high": model.high}
    level: float | None = None
    passes = True
    if found.rows.size and isinstance(model, KMap):
        level = int(found.people.min())
        passes = level >= model.k
    elif found.rows.size and isinstance(model, DeltaPresence):
        least, level = float((found.rows / np.maximum(found.people, 1)).min()), presence(found)
        passes = model.low - _TOLERANCE <= least and level <= model.high + _TOLERANCE
        if level <= model.high + _TOLERANCE and not passes:
            level = least  # the limit that is violated
    assert level is None or math.isfinite(level)
    return Check(model=model.name, short=model.short, asked=asked, column=None, level=level, passes=passes)
