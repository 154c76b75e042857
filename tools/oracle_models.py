"""Every privacy model against exhaustive search: ``python tools/oracle_models.py TABLES [SEED] [MODEL ...]``.

Random tables of 2 to 7 rows, one of five with rows that must stay apart.  For each: a release exists exactly when some
partition meets the models; every method's groups meet them; no lower bound is above the least number of stars, and no
cost below it; the exact method finds it.  Every table is put to one method, in turn; models take turns too, so that a
run that is stopped has tried all of them alike.  Prints the seed of every failure and exits 1 when there is one.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.histogram import Histogram
from shoal.model.privacy import MODELS, Model, restore
from shoal.problems.tables import group
from tests.oracles.models import least_beside, least_columns, least_stars, meets, meets_population

METHODS = (
    "auto", "three_phase", "cascade", "improve", "hilbert", "three_phase_hilbert", "mondrian", "top_down",
    "global_recoding", "optimal",
)  # fmt: skip


TURN = 200  # tables of a model before the next one's


def drawn(name: str, random: np.random.Generator) -> dict[str, object]:
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


def classes_of(random: np.random.Generator) -> list[list[int]]:
    """A hierarchy of five values, one to three levels high: the class of each at every level."""
    node = [list(range(5))]
    for _ in range(int(random.integers(0, 3))):
        joined = random.integers(0, 3, 5)
        node.append([int(joined[c]) for c in node[-1]])
    return [*node, [0] * 5]


def made(name: str, values: dict[str, object], size: int, column: str | None = None) -> Model:
    """The model with drawn parameters, for a column of so many values."""
    where = {} if column is None or name in ("KAnonymity", "SimultaneousLDiversity") else {"column": column}
    plain = {key: value for key, value in values.items() if key != "node"}
    model = restore({"model": name, **plain, **where})
    if model.unbound is None:
        return model
    return model.on(np.array(values["node"])[:, :size], column or "s0")


def table(seed: int, name: str) -> tuple[list, list, list, list | None]:
    """(quasi-identifiers, sensitive values, models asked as (name, parameters, column), parts) of one case."""
    random = np.random.default_rng([seed, list(MODELS).index(name)])
    n, values = int(random.integers(2, 8)), int(random.integers(2, 5))
    s = 2 if name == "SimultaneousLDiversity" or random.random() < 0.15 else 1
    quasi = [tuple(r) for r in random.integers(0, 3, (n, 2)).tolist()]
    sensitive = [tuple(r) for r in random.integers(0, values, (n, s)).tolist()]
    asked = [(name, drawn(name, random), 0)]
    if random.random() < 0.3:
        other = str(random.choice([m for m in MODELS if MODELS[m].speaks in ("rows", "column")]))
        asked.append((other, drawn(other, random), int(random.integers(0, s))))
    apart = [int(0 in r) for r in quasi] if random.random() < 0.2 else None
    return quasi, sensitive, asked, apart


def beside_population(seed: int, name: str, methods: tuple[str, ...], effort: str) -> str | None:
    """What is wrong with one sample of a population, or None."""
    random = np.random.default_rng([seed, list(MODELS).index(name)])
    people = random.integers(0, int(random.integers(2, 4)), (int(random.integers(3, 16)), 2))
    chosen = random.permutation(len(people))[: int(random.integers(2, min(7, len(people)) + 1))]
    population, quasi = [tuple(r) for r in people.tolist()], [tuple(r) for r in people[chosen].tolist()]
    parameters, k = drawn(name, random), int(random.choice([1, 1, 2, 3]))
    by_group = least_beside(quasi, population, name, parameters, k)
    by_column = least_columns(quasi, population, name, parameters, k)
    held = [stars for stars in (by_group, by_column) if stars is not None]
    names = ["a", "b"]
    frames = [pl.DataFrame([(str(x), str(y)) for x, y in rows], schema=names, orient="row")
              for rows in (quasi, population)]  # fmt: skip
    asked = [restore({"model": "KAnonymity", "k": k}), restore({"model": name, **parameters})]
    for method in methods:
        least = by_column if by_group is not None and method == "global_recoding" else by_group
        try:
            found = shoal.anonymize(
                frames[0], quasi_identifiers=names, privacy=asked, population=frames[1], method=method, seed=seed,
                effort="balanced" if method == "auto" else effort, global_recoding=method == "global_recoding",
            )  # fmt: skip
        except InfeasibleError as error:
            if least is not None:
                return f"{method} refuses, {least} stars exist: {error}"
            continue
        if least is None:
            return f"{method} answers where no release exists"
        classes = Counter(found.table.rows())
        shown = {tuple(None if v == "*" else int(v) for v in c): n for c, n in classes.items()}
        if min(classes.values()) < k or not meets_population(name, parameters, shown, population):
            return f"{method}: a class does not meet the models"
        stars = sum(rows * c.count("*") for c, rows in classes.items())
        certificate = found.certificate
        if method == "auto" and stars > least:
            return f"auto pays {stars}, least {least}"
        if stars < least or not certificate.lower_bound <= min(held):
            return f"{method}: states {certificate.lower_bound}..{certificate.cost}; {stars} paid, least {least}"
    return None


def check(seed: int, name: str, methods: tuple[str, ...] = METHODS, effort: str = "fast") -> str | None:
    """What is wrong with one case, or None."""
    if MODELS[name].speaks == "population":
        return beside_population(seed, name, tuple(m for m in methods if m != "optimal"), effort)
    quasi, sensitive, asked, parts = table(seed, name)
    histogram = Histogram.from_rows(np.array(quasi), np.array(sensitive))
    models = [made(m, values, histogram.sensitive_sizes[column], f"s{column}") for m, values, column in asked]
    apart = None if parts is None else (histogram.quasi == 0).any(axis=1).astype(np.int64)
    least = least_stars(quasi, sensitive, asked, parts)
    for method in methods:
        tried = "balanced" if method == "auto" else effort
        try:
            found = group(histogram, models, method, seed=seed, effort=tried, apart=apart)
        except InfeasibleError as error:
            if least is not None:
                return f"{method} refuses, {least} stars exist: {error}"
            continue
        except PolicyError as error:
            return f"{method}: {error}"
        if least is None:
            return f"{method} answers where no partition exists"
        partition, certificate = found.partition, found.certificate
        partition.check(histogram)
        stars = 0
        for g in range(partition.groups):
            here = partition.group == g
            cells = np.repeat(partition.cell[here], partition.count[here])
            if apart is not None and np.unique(apart[cells]).size > 1:
                return f"{method}: a group mixes what is apart"
            rows = [tuple(r) for r in histogram.sensitive[cells].tolist()]
            if not all(meets(m, values, rows, sensitive, column) for m, values, column in asked):
                return f"{method}: a group does not meet the models"
            stars += cells.size * sum(len(set(c)) > 1 for c in histogram.quasi[cells].T.tolist())
        if stars < least:
            return f"{method}: {stars} stars, the oracle's least is {least}"
        if certificate.unit == "stars" and (certificate.lower_bound > least or certificate.cost != stars):
            return f"{method}: states {certificate.lower_bound}..{certificate.cost}; {stars} paid, least {least}"
        if method == "optimal" and stars != least:
            return f"optimal pays {stars}, least {least}"
    return None


def in_turn(seed: int, name: str) -> tuple[str, ...]:
    """The method that a table is put to."""
    known = METHODS if MODELS[name].speaks != "population" else tuple(m for m in METHODS if m != "optimal")
    return (known[seed % len(known)],)


def run(cases: int, first: int, names: list[str]) -> int:
    """Number of failures."""
    wrong = dict.fromkeys(names, 0)
    for begin in range(first, first + cases, TURN):
        seeds = range(begin, min(begin + TURN, first + cases))
        for name in names:
            for seed in seeds:
                says = check(seed, name, in_turn(seed, name))
                if says is not None:
                    wrong[name] += 1
                    print(f"{name}, seed {seed}: {says}", flush=True)
        done = f"{seeds.stop - first:,} tables of each of {len(names)} models"
        print(f"{done}; wrong: {', '.join(f'{n} {w}' for n, w in wrong.items() if w) or 'none'}", flush=True)
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
