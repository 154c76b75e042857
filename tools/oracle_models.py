"""Every privacy model against exhaustive search: ``python tools/oracle_models.py TABLES [SEED] [MODEL ...]``.

Random tables of 2 to 7 rows, one of five with rows that must stay apart.  For each: a release exists exactly when some
partition meets the models; every method's groups meet them; no lower bound is above the least number of stars, and no
cost below it; the exact method finds it.  Every table is put to one method and one effort, in turn, the cheap methods
more often; models take turns too, so that a run that is stopped has tried all of them alike.  Tables beside a
population go as far as what a release would show, which may be a row wider than its group needs.

Beside a population, one table of 50 goes all the way to a release.
Prints the seed of every failure and exits 1 when there is one.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal.engines.codes import Coded
from shoal.errors import InfeasibleError, PolicyError
from shoal.judge.tables.population import Census
from shoal.model.histogram import Histogram
from shoal.model.policy import Policy
from shoal.model.privacy import MODELS, Model, requirement, restore
from shoal.model.task import Population, nothing, refuse_infeasible
from shoal.pipeline import _CountedTable, _solve
from shoal.problems.tables import group
from shoal.publishing.people import Sample
from tests.oracles.models import least_beside, least_columns, meets_population, prices

METHODS = (
    "auto", "three_phase", "cascade", "improve", "hilbert", "three_phase_hilbert", "mondrian", "top_down",
    "global_recoding", "optimal",
)  # fmt: skip
TURNS = ("three_phase",) * 5 + ("optimal",) + ("three_phase",) * 5 + ("optimal",)  # then one of the others
EFFORTS = ("fast", "balanced", "fast", 0.001, "fast", 0.01, "fast")
TURN = 1000  # tables of a model before the next one's
WHOLE = 50  # of so many tables beside a population one goes all the way to a release

Rows = Sequence[tuple[int, ...]]
Asked = Sequence[tuple[str, dict[str, Any], int]]


class Truth(NamedTuple):
    """Stars of every set of rows that may be a group, None for the others; the fewest of all partitions."""

    price: Sequence[int | None]
    least: int | None


def drawn(name: str, random: random.Random | np.random.Generator) -> dict[str, Any]:
    """Parameters of a model at which small tables fall on both sides."""
    pick = random.choice
    return {
        "KAnonymity": lambda: {"k": int(pick([1, 2, 3]))},
        "LDiversity": lambda: {"l": int(pick([1, 2, 3]))},
        "DistinctLDiversity": lambda: {"l": int(pick([1, 2, 3]))},
        "EntropyLDiversity": lambda: {"l": float(pick([1.0, 1.5, 1.75, 2.0, 2.5, 3.0]))},
        "RecursiveLDiversity": lambda: {"c": float(pick([0.5, 0.7, 1.0, 1.5, 2.0, 4.0])), "l": int(pick([1, 2, 3]))},
        "AlphaKAnonymity": lambda: {"alpha": float(pick([0.3, 0.4, 0.5, 0.6, 0.75, 0.9])), "k": int(pick([1, 2, 3]))},
        "TCloseness": lambda: {
            "t": float(pick([0.0, 0.1, 0.2, 0.25, 0.3, 0.5])),
            "distance": str(pick(["equal", "ordered", "hierarchical"])), "node": classes_of(random),
        },
        "BetaLikeness": lambda: {"beta": float(pick([0.2, 0.5, 1.0, 2.0])), "enhanced": bool(pick([True, False]))},
        "DeltaDisclosure": lambda: {"delta": float(pick([0.3, 0.7, 1.0, 1.5]))},
        "SimultaneousLDiversity": lambda: {"l": int(pick([1, 2, 3]))},
        "KMap": lambda: {"k": int(pick([1, 2, 3, 5, 8, 12]))},
        "DeltaPresence": lambda: {"low": 0.0, "high": float(pick([0.2, 0.3, 0.4, 0.5, 0.6, 0.75]))},
    }[name]()  # fmt: skip


def classes_of(random: random.Random | np.random.Generator) -> list[list[int]]:
    """A hierarchy of five values, one to three levels high: the class of each at every level."""
    node = [list(range(5))]
    for _ in range(int(random.choice([0, 1, 2]))):
        joined = [int(random.choice([0, 1, 2])) for _ in range(5)]
        node.append([joined[c] for c in node[-1]])
    return [*node, [0] * 5]


def made(name: str, values: dict[str, Any], size: int, column: str | None = None) -> Model:
    """The model with drawn parameters, for a column of so many values."""
    where = {} if column is None or name in ("KAnonymity", "SimultaneousLDiversity") else {"column": column}
    plain = {key: value for key, value in values.items() if key != "node"}
    model = restore({"model": name, **plain, **where})
    if model.unbound is None:
        return model
    return model.on(np.array(values["node"])[:, :size], column or "s0")


def chance(seed: int, name: str) -> random.Random:
    """The numbers that a case is drawn from."""
    return random.Random(seed * len(MODELS) + list(MODELS).index(name))


def table(seed: int, name: str) -> tuple[list, list, list, list[int]]:
    """(quasi-identifiers, sensitive values, models asked as (name, parameters, column), parts) of one case."""
    draw = chance(seed, name)
    n, values = draw.randint(2, 7), draw.randint(2, 4)
    s = 2 if name == "SimultaneousLDiversity" or draw.random() < 0.15 else 1
    quasi = [(draw.randrange(3), draw.randrange(3)) for _ in range(n)]
    sensitive = [tuple(draw.randrange(values) for _ in range(s)) for _ in range(n)]
    asked = [(name, drawn(name, draw), 0)]
    if draw.random() < 0.3:
        other = draw.choice([m for m in MODELS if MODELS[m].applies_to in ("rows", "column")])
        asked.append((other, drawn(other, draw), draw.randrange(s)))
    parted = draw.random() < 0.2
    return quasi, sensitive, asked, [int(parted and 0 in r) for r in quasi]


def check(
    seed: int, name: str, methods: tuple[str, ...] = METHODS, effort: str | float = "fast", whole: bool = False
) -> str | None:
    """What is wrong with one case, or None. whole: beside a population, whether to go all the way to a release."""
    if MODELS[name].applies_to == "population":
        return with_population(seed, name, tuple(m for m in methods if m != "optimal"), effort, whole)
    quasi, sensitive, asked, parts = table(seed, name)
    truth = Truth(*prices(quasi, sensitive, asked, parts))
    histogram = Histogram.from_rows(np.array(quasi), np.array(sensitive))
    models = [made(m, values, histogram.sensitive_sizes[column], f"s{column}") for m, values, column in asked]
    cells = [tuple(r) for r in np.hstack([histogram.quasi, histogram.sensitive]).tolist()]
    rows: list[list[int]] = [[] for _ in cells]  # of each cell
    for i, row in enumerate(zip(quasi, sensitive, strict=True)):
        rows[cells.index(row[0] + row[1])].append(i)
    apart = np.array([parts[of[0]] for of in rows]) if any(parts) else None
    for method in methods:
        try:
            found = group(histogram, models, method, seed=seed, effort=tried(method, effort), apart=apart)
        except InfeasibleError as error:
            if truth.least is not None:
                return f"{method} refuses, {truth.least} stars exist: {error}"
            continue
        except PolicyError as error:
            return f"{method}: {error}"
        wrong = judged(found, rows, truth, method)
        if wrong is not None:
            return wrong
    return None


def tried(method: str, effort: str | float) -> str | float:
    """The effort a method is asked for: seconds are not for the exact one, which may end without an answer."""
    return "fast" if method == "optimal" and not isinstance(effort, str) else effort


def judged(found: Any, rows: list[list[int]], truth: Truth, method: str) -> str | None:
    """What is wrong with an answer; rows of every cell."""
    least, certificate, partition = truth.least, found.certificate, found.partition
    if least is None:
        return f"{method} answers where no partition exists"
    left = [list(of) for of in rows]
    sets = [0] * partition.groups
    parted = zip(partition.cell.tolist(), partition.group.tolist(), partition.count.tolist(), strict=True)
    for cell, number, count in parted:
        for _ in range(count):
            sets[number] |= 1 << left[cell].pop()
    if any(left):
        return f"{method}: rows are in no group"
    paid = [truth.price[some] for some in sets]
    if None in paid:
        return f"{method}: a group does not meet the models, or mixes what is apart"
    stars = sum(p or 0 for p in paid)
    if stars < least:
        return f"{method}: {stars} stars, the oracle's least is {least}"
    if certificate.unit == "stars" and (certificate.lower_bound > least or certificate.cost != stars):
        return f"{method}: states {certificate.lower_bound}..{certificate.cost}; {stars} paid, least {least}"
    if method == "optimal" and stars != least:
        return f"optimal pays {stars}, least {least}"
    return None


class Beside(NamedTuple):
    """A sample of a population and what is asked of it."""

    quasi: list[tuple[int, ...]]
    population: list[tuple[int, ...]]
    name: str
    parameters: dict[str, Any]
    k: int

    @property
    def models(self) -> list[Model]:
        """The two models."""
        return [restore({"model": "KAnonymity", "k": self.k}), restore({"model": self.name, **self.parameters})]

    def least(self) -> tuple[float | None, int | None]:
        """Fewest stars, and where every column is starred for all rows or none; None where nothing holds."""
        asked = (self.quasi, self.population, self.name, self.parameters, self.k)
        return least_beside(*asked), least_columns(*asked)


def sampled(seed: int, name: str) -> Beside:
    """One case."""
    draw = chance(seed, name)
    width = draw.randint(2, 3)
    people = [(draw.randrange(width), draw.randrange(width)) for _ in range(draw.randint(3, 15))]
    quasi = draw.sample(people, draw.randint(2, min(6, len(people))))
    return Beside(quasi, people, name, drawn(name, draw), draw.choice([1, 1, 2, 3]))


def released(case: Beside, settings: dict[str, Any]) -> tuple[Counter[Any], Any]:
    """What a release shows with its rows, and its certificate: the whole way."""
    frames = [pl.DataFrame([[str(v) for v in row] for row in rows], schema=["a", "b"], orient="row")
              for rows in (case.quasi, case.population)]  # fmt: skip
    found = shoal.anonymize(frames[0], privacy=case.models, population=frames[1], **settings)
    return Counter(found.table.rows()), found.certificate


class Counted(NamedTuple):
    """Of a counted table what the middle of the way asks for."""

    histogram: Histogram
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...] = ()


def middle(case: Beside, settings: dict[str, Any]) -> tuple[Counter[Any], Any]:
    """What a release would show and its certificate, without a frame: nothing is read, placed or judged by shoal."""
    values, rows, codes = [], [], []
    for own, everyone in zip(zip(*case.quasi, strict=True), zip(*case.population, strict=True), strict=True):
        texts = sorted(set(own))
        texts += sorted(set(everyone) - set(texts))
        values.append([str(v) for v in texts])
        rows.append([texts.index(v) for v in own])
        codes.append([texts.index(v) for v in everyone])
    names = ["a", "b"]
    histogram = Histogram.from_rows(np.array(rows).T, quasi_names=names)
    people, often = np.unique(np.array(codes).T, axis=0, return_counts=True)
    shown = {n: [known[c] for c in column] for n, known, column in zip(names, values, people.T, strict=True)}
    census = Census(pl.DataFrame(shown), often.astype(np.int64))
    asked = Policy(privacy=case.models, population=census.tuples, **settings)
    own_texts = [known[:size] for known, size in zip(values, histogram.quasi_sizes, strict=True)]
    coded = zip(names, histogram.quasi.T, own_texts, strict=True)
    counted = Counted(histogram, tuple(Coded(n, own, pl.Series(texts)) for n, own, texts in coded))
    need = requirement([m for m in case.models if m.applies_to != "population"], (), histogram)
    refuse_infeasible(histogram, need)
    models = tuple(m for m in case.models if m.applies_to == "population")
    drawn_from = Sample(Population(models, people.astype(np.int64), census.rows), tuple(values), census)
    found = _solve(_CountedTable(counted, own_texts, need, need, drawn_from, None), asked, nothing, None, None)
    groups = zip(*([c.texts[i] for i in c.index] for c in found.columns), strict=True)
    classes: Counter[Any] = Counter()
    for group_, size in zip(groups, found.grouping.partition.sizes.tolist(), strict=True):
        classes[group_] += size
    return classes, found.grouping.certificate


def holds(case: Beside, classes: Counter[Any]) -> bool:
    """Whether classes meet what is asked, by the oracle's reading."""
    shown = {tuple(None if v == "*" else int(v) for v in c): n for c, n in classes.items()}
    return min(shown.values()) >= case.k and meets_population(case.name, case.parameters, shown, case.population)


def with_population(seed: int, name: str, methods: tuple[str, ...], effort: str | float, whole: bool) -> str | None:
    """What is wrong with one sample of a population, or None."""
    case = sampled(seed, name)
    anyhow, by_column = case.least()
    held = [stars for stars in (anyhow, by_column) if stars is not None]
    for method in methods:
        least = by_column if anyhow is not None and method == "global_recoding" else anyhow
        settings = {"quasi_identifiers": ["a", "b"], "method": method, "seed": seed, "effort": effort,
                    "global_recoding": method == "global_recoding"}  # fmt: skip
        try:
            classes, certificate = (released if whole else middle)(case, settings)
        except InfeasibleError as error:
            if least is not None:
                return f"{method} refuses, {least} stars exist: {error}"
            continue
        if least is None:
            return f"{method} answers where no release exists"
        if not holds(case, classes):
            return f"{method}: a class does not meet the models"
        stars = sum(rows * c.count("*") for c, rows in classes.items())
        if stars < least:
            return f"{method}: {stars} stars, the oracle's least is {least}"
        if not certificate.lower_bound <= min(held):
            return f"{method}: states {certificate.lower_bound}..{certificate.cost}; {stars} paid, least {least}"
    return None


def in_turn(seed: int, name: str) -> tuple[tuple[str, ...], str | float]:
    """The method that a table is put to, and the effort."""
    others = [m for m in METHODS if m not in TURNS]
    round_, place = divmod(seed, len(TURNS) + 1)
    method = TURNS[place] if place < len(TURNS) else others[round_ % len(others)]
    if method == "optimal" and MODELS[name].applies_to == "population":
        method = "three_phase"
    return (method,), EFFORTS[round_ // len(others) % len(EFFORTS)]


def run(cases: int, first: int, names: list[str]) -> int:
    """Number of failures."""
    wrong = dict.fromkeys(names, 0)
    for begin in range(first, first + cases, TURN):
        seeds = range(begin, min(begin + TURN, first + cases))
        for name in names:
            for seed in seeds:
                try:
                    says = check(seed, name, *in_turn(seed, name), seed % WHOLE == 0)
                except Exception as error:
                    says = f"ends in {type(error).__name__}: {error}"
                if says is not None:
                    wrong[name] += 1
                    print(f"{name}, seed {seed}, {in_turn(seed, name)}: {says}", flush=True)
        done = f"{time.strftime('%H:%M:%S')} {seeds.stop - first:,} tables of each of {len(names)} models"
        said = ", ".join(f"{n} {w}" for n, w in wrong.items() if w) or "none"
        print(f"{done}, {time.process_time():,.0f} s of processor; wrong: {said}", flush=True)
    return sum(wrong.values())


def main() -> int:
    """Run the cases of every model, or of some."""
    cases, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad: list[int] = []
    # not the main thread, from which every search would be started in a thread of its own
    worker = threading.Thread(target=lambda: bad.append(run(cases, first, sys.argv[3:] or list(MODELS))))
    worker.start()
    worker.join()
    return int(bad != [0])


if __name__ == "__main__":
    sys.exit(main())
