"""The literature's methods on real tables: what each loses, what any must, and how long it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from record import record

from shoal import DistinctLDiversity, Hierarchy, KAnonymity, LDiversity
from shoal.experiments.l_diversity import DOMAINS, QUASI, SENSITIVE, census_income, census_like, run
from shoal.problems.tables import Histogram, Levels, Ranges, Recoding, Sets, group, measures

DATA = Path(__file__).parents[1].parent / "shared" / "data"
COMMAND = "python benchmarks/methods.py"
LOAD = "Seconds are wall-clock, kernels compiled; the machine (2 cores) was shared with other work."


def adult(sensitive: Sequence[str], leave: Sequence[str] = (), form: str = "levels") -> tuple[Histogram, Recoding]:
    """Adult with ARX's hierarchies, or with a range of ages and sets of all else."""
    frame = pl.read_csv(DATA / "adult/adult.csv", infer_schema=False)
    names = [c for c in frame.columns if c not in sensitive and c not in leave]
    codes, columns = [], []
    for name in names:
        values = sorted(set(frame[name].to_list()), key=int if name == "age" else str)
        number = {v: i for i, v in enumerate(values)}
        codes.append([number[v] for v in frame[name].to_list()])
        if form == "levels":
            found = Hierarchy.of(DATA / f"adult/hierarchies/adult_hierarchy_{name}.csv").resolve(values, name)
            columns.append(Levels.tree(found.node, leaves=found.leaves))
        elif name == "age":
            columns.append(Ranges.of(np.array([float(v) for v in values])))
        else:
            columns.append(Sets.of(len(values)))
    second = [np.unique(np.array(frame[c].to_list()), return_inverse=True)[1] for c in sensitive]
    hidden = np.stack(second, axis=1) if second else None
    made = Histogram.from_rows(np.array(codes).T, hidden, quasi_names=names, sensitive_names=list(sensitive))
    return made, Recoding(tuple(columns))


def line(
    case: str,
    histogram: Histogram,
    privacy: Any,
    recoding: Recoding,
    method: str,
    effort: str,
) -> dict[str, Any]:
    """One run as a line of the table."""
    started = time.perf_counter()
    found = group(histogram, privacy, method, recoding=recoding, effort=effort, seed=0)
    seconds = time.perf_counter() - started
    certificate = found.certificate
    cost, bound = certificate.cost, certificate.lower_bound
    if recoding.unit == "stars":
        cost = recoding.cost(histogram, found.partition)
    ratio = float(cost / bound) if bound and certificate.unit == recoding.unit else "in tuples"
    return {
        "case": case,
        "method": f"{method} ({effort})",
        "cost": cost,
        "bound": bound,
        "ratio": ratio,
        "seconds": seconds,
    }


def stars() -> None:
    path = DATA / "census_income/census_income.csv.gz"
    if not path.exists():
        print(f"skipped: no {path.name}")
        return
    table = census_income(path)
    lines = []
    for d, l in ((4, 2), (4, 6), (4, 10), (7, 2), (7, 6), (7, 10)):
        quasi = np.stack([table[c] for c in QUASI[:d]], axis=1)
        histogram = Histogram.from_rows(quasi, table[SENSITIVE])
        for method, effort in (
            ("three_phase", "fast"),
            ("hilbert", "fast"),
            ("hilbert", "balanced"),
            ("three_phase_hilbert", "fast"),
            ("three_phase_hilbert", "balanced"),
            ("mondrian", "fast"),
            ("top_down", "fast"),
        ):
            lines.append(line(f"d={d} l={l}", histogram, LDiversity(l), Recoding.stars(histogram), method, effort))
    notes = [
        LOAD,
        "census_income, 49,303 people at work, Occupation sensitive, stars; three_phase's bound counts tuples.",
        "The goals for this table (half of TP+ in 1 s) are the cascade's; these lines are what it is measured against.",
    ]
    record("Methods of the literature: stars", COMMAND, lines, notes)


def losses() -> None:
    if not (DATA / "adult/adult.csv").exists():
        print("skipped: no adult.csv")
        return
    five, two = KAnonymity(5), DistinctLDiversity(2)
    lines = []
    cases: list[tuple[str, tuple[Histogram, Recoding], Any]] = [
        ("hierarchies q9 k=5", adult([]), five),
        ("hierarchies q8o k=5 l=2", adult(["occupation"]), [five, two]),
        ("hierarchies q8s k=5 l=2", adult(["salary-class"]), [five, two]),
        ("ranges q8 k=5", adult([], ["salary-class"], "ranges"), five),
        ("ranges q8 k=5 l=2", adult(["salary-class"], form="ranges"), [five, two]),
    ]
    for case, (histogram, recoding), privacy in cases:
        methods = ["hilbert", "three_phase_hilbert", "mondrian", "top_down"]
        methods += ["global_recoding"] if "hier" in case else []
        lines += [line(case, histogram, privacy, recoding, m, "balanced") for m in methods]
    histogram, recoding = cases[0][1]
    started = time.perf_counter()
    measures(histogram, group(histogram, five, "hilbert", recoding=recoding).partition, recoding, 5)
    notes = [
        LOAD,
        "Adult, 30,162 rows, NCP; l is distinct. anonypy's Mondrian with sets: 0.032 in 56 s, with l=2 0.070 in 30 s.",
        "global_recoding suppresses no row; its choice of levels is proved best among all of the lattice.",
        f"All loss measures of one such release, its making included: {time.perf_counter() - started:.2f} s.",
    ]
    record("Methods of the literature: hierarchies and ranges", COMMAND, lines, notes)


def full_domain() -> None:
    """One level per column of Adult, k = 5, with a budget of rows starred whole; leaves as in the hierarchy files."""
    import tables

    tables.DATA = DATA
    histogram, recoding = tables.adult([])
    lines = []
    for share in (0.0, 0.01, 0.02, 0.05, 0.1):
        started = time.process_time()
        made = group(histogram, KAnonymity(5), "global_recoding", recoding=recoding, seed=0, max_suppressed=share)
        seconds = time.process_time() - started
        facts = made.certificate.details
        lines.append(
            {
                "rows allowed": f"{100 * share:g} %",
                "starred whole": facts.get("suppressed_rows", 0),
                "loss": facts["uniform_cost"],
                "bound": facts["uniform_bound"],
                "proved": facts["uniform_optimal"],
                "choices looked at": facts["nodes_looked_at"],
                "CPU seconds": seconds,
            }
        )
    notes = [
        "Adult, 30,162 rows, nine columns, k = 5: mean of (leaves under the value - 1) / (leaves - 1), a star 1.",
        "ARX's optimum with 5 % loses 0.2696 by this measure, in about 5 CPU seconds. Seconds here are CPU time.",
    ]
    record("Full-domain recoding with rows starred whole", "python benchmarks/methods.py full_domain", lines, notes)


def pairs_and_size() -> None:
    lines = []
    for rows in (5_000, 10_000, 20_000):
        table = census_like(rows, 0)
        quasi = np.stack([table[c] for c in list(DOMAINS)[:7]], axis=1)
        half = np.zeros(rows, np.int64)
        half[np.argsort(table[SENSITIVE], kind="stable")[rows // 2 :]] = 1
        histogram = Histogram.from_rows(quasi, half)
        for method in ("matching", "three_phase_hilbert"):
            case = f"two values, l=2, {rows:,} rows, {histogram.types[1].size:,} types"
            lines.append(line(case, histogram, LDiversity(2), Recoding.stars(histogram), method, "balanced"))
    for rows in (250_000, 500_000, 1_000_000):
        table = census_like(rows, 0)
        quasi = np.stack([table[c] for c in list(DOMAINS)[:7]], axis=1)
        histogram = Histogram.from_rows(quasi, table[SENSITIVE])
        for method in ("three_phase_hilbert", "mondrian"):
            case = f"l=6, {rows:,} rows, {histogram.types[1].size:,} types"
            lines.append(line(case, histogram, LDiversity(6), Recoding.stars(histogram), method, "fast"))
    record(
        "Methods of the literature: two values, and size",
        COMMAND,
        lines,
        [LOAD, "census-like table, seven quasi-identifiers, stars; matching is proved optimal (ratio 1)."],
    )


def figures() -> None:
    with TemporaryDirectory() as folder:
        said = run(Path(folder), rows=60_000, subsets=7, data=DATA / "census_income")
    lines = [dict(zip(("figure", "does the paper's finding hold?"), s.split(": ", 1), strict=True)) for s in said]
    notes = ["census-like with 60,000 rows, census_income with 49,303; means over at most 7 choices of columns.", LOAD]
    record("Xiao, Yi, Tao 2010: Figures 2 to 8", COMMAND, lines, notes)


if __name__ == "__main__":
    if sys.argv[1:] == ["full_domain"]:
        full_domain()
        sys.exit()
    tiny = Histogram.from_rows(np.arange(40) % 7, np.arange(40) % 2)
    for name in ("hilbert", "three_phase_hilbert", "matching"):
        group(tiny, LDiversity(2), name)  # compile before the clock runs
    group(tiny, KAnonymity(2), "hilbert")
    stars()
    losses()
    full_domain()
    pairs_and_size()
    figures()
