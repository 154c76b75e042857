"""Figures 2 to 8 of Xiao, Yi, Tao, "The hardness and approximation algorithms for l-diversity" (EDBT 2010), reproduced.

Their tables SAL and OCC (600,000 American records each) are not public. Substitutes: the census-like generator with the
same domain sizes and, if available, the UCI census-income table restricted to people at work. A point is a mean over
tables with d of the seven quasi-identifiers, as in the paper.

Differences: TDS refines intervals of codes instead of the paper's unpublished taxonomies; the caption of Figure 5 has l
= 4 and its text l = 6, and 6 is used; rows are counted in cells, so the time grows with distinct tuples.

``census_like`` generates a census with the eight columns and domain sizes of OCC, skewed and correlated, of any size.
Its shares are invented from general facts of censuses (most people are natives, few are widowed at twenty), so it
contains no real person's record.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import MissingDependencyError
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram, Partition
from shoal.model.loss import View, kl_divergence
from shoal.model.privacy import LDiversity, Requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.tables import group
from shoal.problems.tables.methods.top_down import as_published, specialize

DOMAINS: dict[str, int] = {
    "Age": 79,
    "Gender": 2,
    "Race": 9,
    "MaritalStatus": 6,
    "BirthPlace": 56,
    "Education": 17,
    "WorkClass": 9,
    "Occupation": 50,
}
SENSITIVE = "Occupation"
_SLOTS = 1 << 12


def census_like(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Column name -> int32[rows] of codes 0 .. size - 1; sizes in ``DOMAINS``; Occupation is the sensitive column.

    Age represents 17 .. 95 and Education years of schooling, so their codes are ordered. Race, birth place, education,
    class of work, and occupation depend on one another; no occupation has more than a tenth of the rows. The same seed
    gives the same rows; a longer table doesn't begin with a shorter one. O(rows).
    """
    rng = np.random.default_rng(seed)
    age_of = np.arange(79)
    by_age = np.minimum(age_of // 8, 8)  # nine bands

    age = _drawn_column(rng, _age_shares()[None], np.zeros(rows, np.int32))
    gender = _drawn_column(rng, np.array([[0.52, 0.48]]), np.zeros(rows, np.int32))
    race = _drawn_column(
        rng, np.array([[0.81, 0.09, 0.04, 0.03, 0.012, 0.008, 0.005, 0.003, 0.002]]), np.zeros(rows, np.int32)
    )
    marital = _drawn_column(rng, _marital_shares(), by_age[age] * 2 + gender)
    birth = _drawn_column(rng, _birth_shares(), race)
    native = (birth > 0).astype(np.int32)
    education = _drawn_column(rng, _education_shares(), by_age[age] * 2 + native)
    work = _drawn_column(rng, _work_shares(), education * 2 + (age > 48))
    occupation = _drawn_column(rng, _occupation_shares(), (education * 9 + work) * 2 + gender)
    columns = (age, gender, race, marital, birth, education, work, occupation)
    return dict(zip(DOMAINS, columns, strict=True))


def _drawn_column(rng: np.random.Generator, shares: np.ndarray, given: np.ndarray) -> np.ndarray:
    """One code per row from shares float[c, v], where given int[n] selects the row's distribution.

    By lookup in 4096 equal slots.
    """
    shares = shares / shares.sum(axis=1, keepdims=True)
    least = 1.0 / _SLOTS  # every value has at least one slot
    shares = (1 - least * shares.shape[1]) * shares + least
    middle = (np.arange(_SLOTS) + 0.5) / _SLOTS
    slots = np.stack([np.searchsorted(np.cumsum(line), middle) for line in shares])
    slots = np.minimum(slots, shares.shape[1] - 1).astype(np.int32)
    pick = rng.integers(0, _SLOTS, size=given.size, dtype=np.int32)
    return slots.reshape(-1)[given.astype(np.int32) * np.int32(_SLOTS) + pick]


def _bump(size: int, at: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((np.arange(size) - at) / width) ** 2)


def _age_shares() -> np.ndarray:
    years = np.arange(79)
    return np.where(years < 30, 1.0, np.exp(-(years - 30) / 18.0))


def _marital_shares() -> np.ndarray:
    """By age band and gender: married, divorced, never married, separated, widowed, spouse absent."""
    out = np.zeros((9, 2, 6))
    for band in range(9):
        for gender in range(2):
            single = float(np.exp(-band / 1.3))
            widowed = 0.01 + 0.04 * max(band - 3, 0) * (1.6 if gender == 0 else 0.6)
            out[band, gender] = [0.9 * (1 - single), 0.10 + 0.01 * band, 0.05 + single, 0.03, widowed, 0.015]
    return out.reshape(18, 6)


def _birth_shares() -> np.ndarray:
    """By race: mostly code 0 (native), the rest decreasing from a code that depends on the race."""
    out = np.zeros((9, 56))
    for race in range(9):
        rank = (np.arange(56) - 1 - 6 * race) % 55
        out[race] = 1.0 / (1.0 + rank) ** 1.3
        out[race, 0] = 0.0
        out[race] *= (0.05 + 0.09 * race) / out[race].sum()
        out[race, 0] = 1 - out[race].sum()
    return out


def _education_shares() -> np.ndarray:
    """By age band and foreign birth: peaks at the end of high school and at a degree, lower for old people."""
    out = np.zeros((9, 2, 17))
    for band in range(9):
        for foreign in range(2):
            school = _bump(17, 8.5 - 0.3 * band, 0.6 + 0.8 * foreign)
            degree = _bump(17, 12.5, 0.8) * (0.15 if band == 0 else 0.6 - 0.04 * band)
            out[band, foreign] = school + degree + 0.004 + 0.02 * foreign
    return out.reshape(18, 17)


def _work_shares() -> np.ndarray:
    """By education and being over 65: private, three governments, two self-employed, unpaid, none, other."""
    out = np.zeros((17, 2, 9))
    for education in range(17):
        learned = education / 16
        for old in range(2):
            state = 0.01 + 0.10 * learned
            self_employed = 0.02 + 0.05 * learned
            none = 0.02 + 0.4 * old
            out[education, old] = [0.78, state, state, self_employed, 0.06, self_employed, 0.005, none, 0.01]
    return out.reshape(34, 9)


def _occupation_shares() -> np.ndarray:
    """By education, class of work, and gender: a common decreasing sequence, weighted towards typical occupations."""
    common = 1.0 / (4.0 + np.arange(50)) ** 0.9
    out = np.zeros((17, 9, 2, 50))
    for education in range(17):
        tilt = _bump(50, 3 * ((education * 7) % 17), 5.0)
        for work in range(9):
            trade = _bump(50, (work * 11) % 50, 3.0)
            for gender in range(2):
                kind = np.where(np.arange(50) % 2 == gender, 1.3, 0.7)
                out[education, work, gender] = common * kind * (1 + 1.2 * tilt + 0.8 * trade)
    return out.reshape(-1, 50)


QUASI = ("Age", "Gender", "Race", "MaritalStatus", "BirthPlace", "Education", "WorkClass")
METHODS = {"Hilbert": "hilbert", "TP": "three_phase", "TP+": "three_phase_hilbert"}
TODAY = {"cascade": "cascade"}  # not in the paper: shoal's default starting point
MARKS = {"Hilbert": "s", "TP": "^", "TP+": "o", "TDS": "x", "cascade": "D"}
CENSUS = "census_income.csv.gz"
FILES = (*(f"figure_{i}.{kind}" for i in range(2, 9) for kind in ("csv", "png")), "phases.csv", "runs.csv")
Table = Mapping[str, np.ndarray]
Row = dict[str, Any]


def reproduce(output: Path, data: Path | None = None) -> dict[str, Any]:
    """Figures 2 to 8 of Xiao, Yi, Tao 2010: stars, time and KL divergence against l, d and n; runs of phase three."""
    observations = run(output, data=data)
    return {"files": sorted(str(p) for p in Path(output).glob("*.*")), "observations": observations}


def run(output: Path, rows: int = 60_000, subsets: int = 7, seed: int = 0, data: Path | None = None) -> list[str]:
    """Write Figures 2 to 8 as CSV and PNG in the folder ``output``.

    For each, a sentence confirms or refutes the finding.

    rows     size of the census-like table
    subsets  tables per number of quasi-identifiers (the paper uses all, at most 35)
    data     folder with census_income.csv.gz; None: without it
    """
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    observations: list[str] = []
    by_l: list[Row] = []
    by_d: list[Row] = []
    by_n: list[Row] = []
    for name, table in _tables(rows, seed, data):
        _measure(_histogram(table, QUASI[:2]), 2, kl=True)  # compile before the time is measured
        for columns in _subsets(4, subsets, seed):
            histogram = _histogram(table, columns)
            for l in range(2, 11):
                by_l += _labelled(_measure(histogram, l, kl=True), table=name, columns=" ".join(columns), d=4, l=l)
        for d in range(1, 8):
            for columns in _subsets(d, subsets, seed):
                found = _measure(_histogram(table, columns), 6, kl=True)
                by_d += _labelled(found, table=name, columns=" ".join(columns), d=d, l=6)
        whole = len(table[SENSITIVE])
        order = np.random.default_rng(seed).permutation(whole)
        for sixth in range(1, 7):
            some = order[: whole * sixth // 6]
            part = {c: v[some] for c, v in table.items()}
            for columns in _subsets(4, subsets, seed):
                found = _measure(_histogram(part, columns), 6, kl=False)
                by_n += _labelled(found, table=name, columns=" ".join(columns), d=4, l=6, n=some.size)
    three = (*METHODS, *TODAY)
    for number, rows_, x, y, methods, judge in (
        (2, by_l, "l", "stars", three, stars_by_l),
        (3, by_d, "d", "stars", three, _stars_by_d),
        (4, by_l, "l", "seconds", three, _seconds_by_l),
        (5, by_d, "d", "seconds", three, _seconds_by_d),
        (6, by_n, "n", "seconds", three, _seconds_by_n),
        (7, by_l, "l", "kl_divergence", ("TP+", "TDS", *TODAY), _divergence),
        (8, by_d, "d", "kl_divergence", ("TP+", "TDS", *TODAY), _divergence),
    ):
        mean = _means(rows_, x, y, methods)
        _write(output / f"figure_{number}.csv", mean)
        _draw(output / f"figure_{number}.png", mean, x, y, methods, f"Figure {number}")
        observations.append(f"Figure {number} ({y.replace('_', ' ')} against {x}): {judge(mean, x)}")
    phases = [r for r in by_l + by_d if r["method"] == "TP"]
    _write(output / "phases.csv", [{k: r[k] for k in ("table", "columns", "d", "l", "phase")} for r in phases])
    late = sum(r["phase"] >= 3 for r in phases)
    first = sum(r["phase"] == 1 for r in phases)
    verdict = "that it never runs is confirmed" if not late else f"that it never runs is refuted, it ran in {late}"
    observations.append(f"Phase three: {len(phases)} runs of TP; {verdict}; in {first} the first phase was enough.")
    _write(output / "runs.csv", by_l + by_d + by_n)
    return observations


def _tables(rows: int, seed: int, data: Path | None) -> Iterable[tuple[str, Table]]:
    yield "census-like", census_like(rows, seed)
    if data is not None:
        yield "census_income", census_income(data / CENSUS)


def census_income(path: Path) -> Table:
    """The OCC-like part of UCI census-income: people of 16 or more with an occupation; codes in the order of values."""
    from shoal.engines.store import column, numbers, read_table

    frame = read_table(path)
    age = numbers(frame, "Age")
    occupation = np.asarray(column(frame, SENSITIVE).to_list())
    kept = (age >= 16) & (occupation != "0")
    out = {}
    for name in (*QUASI, SENSITIVE):
        values = age if name == "Age" else np.asarray(column(frame, name).to_list())
        out[name] = np.unique(values[kept], return_inverse=True)[1].reshape(-1)
    return out


def _subsets(d: int, most: int, seed: int) -> list[tuple[str, ...]]:
    every = list(combinations(QUASI, d))
    if len(every) <= most:
        return every
    chosen = np.random.default_rng([seed, d]).choice(len(every), most, replace=False)
    return [every[i] for i in sorted(chosen)]


def _histogram(table: Table, columns: Sequence[str]) -> Histogram:
    quasi = np.stack([table[c] for c in columns], axis=1)
    return Histogram.from_rows(quasi, table[SENSITIVE], quasi_names=columns, sensitive_names=[SENSITIVE])


def _measure(histogram: Histogram, l: int, kl: bool) -> list[Row]:
    """One row per method; empty if the table as a whole isn't l-diverse."""
    if shortfall(histogram, Requirement(1, (l,), (1,))) is not None:
        return []
    stars = Recoding.stars(histogram)
    out: list[Row] = []
    for name, method in {**METHODS, **TODAY}.items():
        started = time.perf_counter()
        found = group(histogram, LDiversity(l), method, recoding=stars, effort="fast", seed=0)
        row: Row = {"method": name, "seconds": time.perf_counter() - started}
        row["stars"] = stars.cost(histogram, found.partition)
        row["phase"] = found.certificate.details["phase"] if name == "TP" else ""
        row["kl_divergence"] = (
            kl_divergence(View(histogram, found.partition, stars)) if kl and name in ("TP+", *TODAY) else ""
        )
        out.append(row)
    if kl:
        started = time.perf_counter()
        ranges = Recoding(tuple(Ranges.of(np.arange(n)) for n in histogram.quasi_sizes))
        task = Task(histogram, Requirement(1, (l,), (1,)), ranges, Effort("fast"))
        label, cuts = specialize(task)
        seconds = time.perf_counter() - started
        partition = Partition.of(np.arange(histogram.cells), label, histogram.count)
        divergence = kl_divergence(View(histogram, partition, as_published(cuts)))
        out.append({"method": "TDS", "seconds": seconds, "stars": "", "phase": "", "kl_divergence": divergence})
    return out


def _labelled(found: list[Row], **labels: Any) -> list[Row]:
    return [{**labels, **row} for row in found]


def _means(rows: Sequence[Row], x: str, y: str, methods: Sequence[str]) -> list[Row]:
    out = []
    for table in dict.fromkeys(r["table"] for r in rows):
        for at in sorted({r[x] for r in rows if r["table"] == table}):
            here: Row = {"table": table, x: at}
            for m in methods:
                some = [r[y] for r in rows if r["table"] == table and r[x] == at and r["method"] == m]
                here[m] = float(np.mean(some)) if some else ""
            out.append(here)
    return out


def _write(path: Path, rows: Sequence[Row]) -> None:
    keys = list(dict.fromkeys(k for r in rows for k in r))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _draw(path: Path, mean: Sequence[Row], x: str, y: str, methods: Sequence[str], title: str) -> None:
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(r["table"] for r in mean))
    figure = Figure(figsize=(5 * len(names), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        here = [r for r in mean if r["table"] == name]
        for m in methods:
            axes.plot([r[x] for r in here], [r[m] for r in here], marker=MARKS[m], label=m)
        axes.set(xlabel=x, ylabel=y.replace("_", " "), title=f"{title}: {name}", ylim=(0, None))
        axes.legend()
    figure.savefig(path, dpi=110)


def _each(mean: Sequence[Row], claim: Callable[[list[Row]], bool]) -> str:
    """The tables for which a claim holds, in words."""
    names = list(dict.fromkeys(r["table"] for r in mean))
    good = [n for n in names if claim([r for r in mean if r["table"] == n])]
    if len(good) == len(names):
        return "is confirmed"
    bad = [n for n in names if n not in good]
    return f"is confirmed on {', '.join(good)}, refuted on {', '.join(bad)}" if good else "is refuted"


def _rises(values: Iterable[float]) -> bool:
    return all(b >= a for a, b in pairwise(values))


def stars_by_l(mean: Sequence[Row], x: str) -> str:
    """Figure 2 of Xiao, Yi, Tao 2010 compared with ours: a sentence on stars by l. mean: a row for each x."""
    best = _each(mean, lambda rows: all(r["TP+"] <= min(r["TP"], r["Hilbert"]) for r in rows))
    order = _each(mean, lambda rows: all(r["TP"] <= r["Hilbert"] for r in rows))
    rise = _each(mean, lambda rows: all(_rises(r[m] for r in rows) for m in METHODS))
    return (
        f"that TP+ is best at every l {best}; that TP beats Hilbert {order}; that stars rise with l {rise}. "
        f"{_current_method(mean)}"
    )


def _current_method(mean: Sequence[Row]) -> str:
    """Shoal's current method compared with the paper's best."""
    share = [r["cascade"] / r["TP+"] for r in mean if r.get("cascade") not in (None, "") and r["TP+"] > 1e-6]
    return f"Today's cascade has {np.mean(share):.2f} of TP+ on average." if share else ""


def _stars_by_d(mean: Sequence[Row], x: str) -> str:
    best = _each(mean, lambda rows: all(r["TP+"] <= min(r["TP"], r["Hilbert"]) for r in rows))
    where = []
    for name in dict.fromkeys(r["table"] for r in mean):
        last = max((r["d"] for r in mean if r["table"] == name and r["TP"] <= r["Hilbert"]), default=0)
        where.append(f"{last} on {name}")
    return (
        f"that TP+ is best at every d {best}; TP beats Hilbert up to d = {', '.join(where)} "
        f"(paper: 4 on SAL, 6 on OCC), and loses beyond. {_current_method(mean)}"
    )


def _ends(mean: Sequence[Row], method: str) -> Callable[[list[Row]], bool]:
    return lambda rows: rows[-1][method] > rows[0][method]


def _seconds_by_l(mean: Sequence[Row], x: str) -> str:
    falls = _each(mean, lambda rows: rows[-1]["Hilbert"] < rows[0]["Hilbert"])
    return (
        f"that Hilbert gets faster with l {falls}; that TP gets slower {_each(mean, _ends(mean, 'TP'))} and TP+ "
        f"{_each(mean, _ends(mean, 'TP+'))}; the slowest point takes {_slowest(mean):.3g} s."
    )


def _seconds_by_d(mean: Sequence[Row], x: str) -> str:
    return (
        f"that TP gets slower with d {_each(mean, _ends(mean, 'TP'))} and TP+ {_each(mean, _ends(mean, 'TP+'))}; "
        f"the slowest point takes {_slowest(mean):.3g} s."
    )


def _seconds_by_n(mean: Sequence[Row], x: str) -> str:
    def linear(rows: list[Row]) -> bool:
        return all(rows[-1][m] <= 1.5 * rows[0][m] * rows[-1]["n"] / rows[0]["n"] for m in METHODS)

    return f"that seconds grow no faster than linearly in n {_each(mean, linear)}; slowest {_slowest(mean):.3g} s."


def _slowest(mean: Sequence[Row]) -> float:
    return max(r[m] for r in mean for m in METHODS)


def _divergence(mean: Sequence[Row], x: str) -> str:
    below = _each(mean, lambda rows: all(r["TP+"] <= r["TDS"] for r in rows))
    rise = _each(mean, lambda rows: _rises(r["TP+"] for r in rows))
    factor = np.mean([r["TDS"] / max(r["TP+"], 1e-9) for r in mean if r["TP+"] > 1e-6])
    return (
        f"that TP+ stays below TDS at every {x} {below} (TDS is {factor:.1f} times as far on average); "
        f"that it rises with {x} {rise}. {_current_method(mean)}"
    )
