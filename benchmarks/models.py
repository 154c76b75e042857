"""What asking each model costs the search: processor seconds for the same number of steps, and the loss after them;
how near t-closeness comes to what it must lose; and answers if a common value is near its limit.

python benchmarks/models.py [costs|closeness|limits]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from record import record
from tables import DATA, Histogram, Ranges, Recoding, Sets, adult, adult_sets, read
from tables import histogram as of_columns

sys.path.insert(0, str(Path(__file__).parents[1]))

import shoal
from shoal.problems.tables import group, measures

STEPS, GOAL = 12_000, 1.5
K = shoal.KAnonymity(5)
MODELS: tuple[tuple[str, list[Any]], ...] = (
    ("k = 5", [K]),
    ("l = 2", [K, shoal.LDiversity(2)]),
    ("alpha = 0.5", [shoal.AlphaKAnonymity(0.5, 5)]),
    ("alpha = 0.6", [shoal.AlphaKAnonymity(0.6, 5)]),
    ("distinct l = 2", [K, shoal.DistinctLDiversity(2)]),
    ("entropy l = 2", [K, shoal.EntropyLDiversity(2)]),
    ("recursive (2, 2)", [K, shoal.RecursiveLDiversity(2.0, 2)]),
    ("simultaneous l = 2", [K, shoal.SimultaneousLDiversity(2)]),
    ("beta = 2", [K, shoal.BetaLikeness(2.0)]),
    ("t = 0.5, equal", [K, shoal.TCloseness(0.5)]),
    ("t = 0.3, ordered", [K, shoal.TCloseness(0.3, "ordered")]),
    ("delta = 2", [K, shoal.DeltaDisclosure(2.0)]),
)


def tried(privacy: list[Any]) -> tuple[float, float, int]:
    """(processor seconds of so many neighborhoods, NCP after those of a balanced effort, median rows of a group); the
    second of two runs, for the first may compile.

    The clock starts where the method says that it searches, after the cascade and the bounds.
    """
    histogram, recoding = adult(["occupation"])
    for _ in range(2):
        clock: list[float] = []

        def said(what: str, _share: float | None, clock: list[float] = clock) -> None:
            if what == "search" and not clock:
                clock.append(time.process_time())

        found = group(histogram, privacy, "improve", recoding=recoding, seed=1, progress=said)
        spent = time.process_time() - clock[0]
    steps = found.certificate.details["search"]["steps"]
    loss = measures(histogram, found.partition, recoding)["ncp"]
    return spent * STEPS / steps, loss, int(np.median(found.partition.sizes))


def costs() -> None:
    """All models, put on record."""
    found = {}
    for name, privacy in MODELS:
        found[name] = tried(privacy)
        print(name, *found[name], file=sys.stderr, flush=True)
    one = found["l = 2"][0]
    even = dict.fromkeys(range(found["l = 2"][2] + 1), one)
    for _, _, rows in found.values():
        if rows not in even:
            even[rows] = tried([shoal.KAnonymity(rows), shoal.LDiversity(2)])[0]
    lines = [
        {"model": name, "cpu seconds": round(cpu, 2), "beside l = 2": round(cpu / one, 2), "goal": GOAL,
         "met": "yes" if cpu <= GOAL * one else "no", "rows a group": rows,
         "beside l = 2 and so many rows": round(cpu / even[rows], 2), "NCP": loss}
        for name, (cpu, loss, rows) in found.items()
    ]  # fmt: skip
    cheaper = found["alpha = 0.6"][1] < found["alpha = 0.5"][1]
    notes = [
        f"Adult, eight quasi-identifiers, occupation sensitive, hierarchies, every group of at least 5 rows: {STEPS:,} "
        "neighborhoods from the groups of the cascade, counted up from a balanced effort's; both cores shared "
        "with other work.",
        "A step takes groups apart, so larger groups make dearer steps whatever is asked; the last ratio is to l = 2 "
        "with k the median rows of a group.",
        f"alpha = 0.6 costs {'less' if cheaper else 'no less'} than 0.5 after the same steps (goal: less).",
    ]
    record("Models: what asking costs the search", "python benchmarks/models.py costs", lines, notes)


def closeness() -> None:
    """The strict case of t-closeness, put on record."""
    histogram, recoding = adult(["occupation"])
    asked = [K, shoal.TCloseness(0.2)]
    group(histogram, asked, recoding=recoding, effort="fast", seed=0)  # compiles
    began, cpu = time.perf_counter(), time.process_time()
    found = group(histogram, asked, recoding=recoding, effort=60.0, seed=1)
    c = found.certificate
    lines = [{
        "model": "k = 5, t = 0.2, equal", "ARX, 5 % suppressed": 0.84, "NCP": c.cost, "goal": 0.2,
        "met": "yes" if c.cost <= 0.2 else "no", "bound": c.lower_bound, "ratio": round(c.cost / c.lower_bound, 3),
        "groups": found.partition.groups, "seconds": round(time.perf_counter() - began, 1),
        "cpu seconds": round(time.process_time() - cpu, 1),
    }]  # fmt: skip
    notes = ["Adult, eight quasi-identifiers, occupation sensitive, hierarchies; no row suppressed, 60 seconds asked."]
    record("Models: strict closeness", "python benchmarks/models.py closeness", lines, notes)


def limits() -> None:
    """Tables in which a value is nearly as common as a group may have it."""
    lines = []
    for name, table in (("hierarchies", adult), ("sets", adult_sets)):
        histogram, recoding = table(["salary-class"])
        for alpha in (0.76, 0.8, 0.9):
            for effort in ("fast", "balanced"):
                asked = [shoal.AlphaKAnonymity(alpha, 5)]
                lines.append({"table": f"Adult, {name}", "most": alpha} | answered(histogram, asked, recoding, effort))
    census = read(DATA / "census_income" / "census_income.csv.gz")
    quasi = ["Age", "Gender", "Race", "MaritalStatus", "BirthPlace", "Education", "WorkClass", "Occupation",
             "MajorOccupation", "Weight"]  # fmt: skip
    census["Weight"] = [str(round(float(x))) for x in census["Weight"]]
    sensitive = ["WagePerHour", "IncomeClass"]
    histogram, values = of_columns(census, quasi, sensitive)
    ordered = {"Age", "Occupation", "Weight"}
    columns = [
        Ranges.of(np.array([float(v) for v in own])) if c in ordered else Sets.of(len(own))
        for c, own in zip(quasi, values, strict=True)
    ]
    asked = [K, *(shoal.AlphaKAnonymity(0.95, 1, column=c) for c in sensitive)]
    found = answered(histogram, asked, Recoding(tuple(columns)), "fast")
    lines.append({"table": "census, 99,762 rows, ten columns, ranges and sets", "most": 0.95} | found)
    notes = [
        "Adult, eight quasi-identifiers, k = 5: 75.2 % of the rows have one of two salary classes, and at most the "
        "stated share of a group has it. Census: 94.4 and 93.8 % have one value in two sensitive columns.",
    ]
    record("Models: a value near its limit", "python benchmarks/models.py limits", lines, notes)


def answered(histogram: Histogram, asked: list[Any], recoding: Recoding, effort: str) -> dict[str, Any]:
    """Loss, bound, and time of one answer, after what it needs is compiled."""
    group(histogram, asked, recoding=recoding, effort="fast", seed=0)
    began, cpu = time.perf_counter(), time.process_time()
    found = group(histogram, asked, recoding=recoding, effort=effort, seed=1)
    return {
        "effort": effort, "NCP": found.certificate.cost, "bound": found.certificate.lower_bound,
        "groups": found.partition.groups, "seconds": round(time.perf_counter() - began, 1),
        "cpu seconds": round(time.process_time() - cpu, 1),
    }  # fmt: skip


if __name__ == "__main__":
    for each in sys.argv[1:] or ("costs", "closeness", "limits"):
        {"costs": costs, "closeness": closeness, "limits": limits}[each]()
