"""What a motivated intruder reaches on releases of Adult and of census workers, and how long the attack takes.

python benchmarks/attack.py adult
python benchmarks/attack.py census
python benchmarks/attack.py scale
python benchmarks/attack.py minimality

Seven in ten people are released; the register is everybody, so that three in ten are strangers.  "again" is a second
release of the same people with k + 2.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SETTINGS: tuple[dict[str, Any], ...] = (
    {"k": 2, "l": 2},
    {"k": 2, "l": 2, "minimality": 0.5},
    {"k": 5, "l": 2},
    {"k": 5, "l": 3},
    {"k": 5, "l": 5},
    {"k": 5, "l": 2, "publish": "ranges"},
)

DECOYS = (
    ("adult", 2, 2, 0.5), ("adult", 5, 2, 0.5), ("census", 2, 2, 0.5),
    ("adult, values dealt at random", 2, 2, 0.5), ("adult, values dealt at random", 5, 2, 0.5),
)  # fmt: skip


def table_of(name: str) -> tuple[pl.DataFrame, list[str], str]:
    """The table, its quasi-identifiers and its sensitive column."""
    if name == "adult":
        quasi = ["sex", "age", "race", "marital-status", "education"]
        return pl.read_csv(DATA / "adult" / "adult.csv", infer_schema=False), quasi, "occupation"
    table = pl.read_csv(DATA / "census_income" / "census_income.csv.gz", infer_schema=False)
    workers = table.filter((pl.col("Age").cast(pl.Int64) >= 16) & (pl.col("Occupation") != "0"))
    return workers, ["Gender", "Age", "Race", "MaritalStatus", "Education"], "Occupation"


def figure(found: dict[str, Any], name: str) -> Any:
    """A finding's figure, or nothing."""
    return "" if name not in found or found[name].figure is None else found[name].figure


def lines(name: str) -> list[dict[str, Any]]:
    """A row for each setting, the original first."""
    table, quasi, sensitive = table_of(name)
    table = table.select(*quasi, sensitive).sample(fraction=1.0, shuffle=True, seed=0)
    mine = table.head(table.height * 7 // 10)
    out = []
    for setting in ({}, *SETTINGS):
        given: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": [sensitive]}
        release: Any = mine.sample(fraction=1.0, shuffle=True, seed=1)
        again: Any = None
        if setting:
            release = shoal.anonymize(mine, **given, **setting, effort="fast", seed=1)
            again = shoal.anonymize(mine, **given, **{**setting, "k": setting["k"] + 2}, effort="fast", seed=1)
        begun = time.perf_counter()
        attack = shoal.attack(release, mine, table, [again] if setting else [], **given)
        seconds = time.perf_counter() - begun
        found = {f"{f.attack}, {f.name}": f for f in attack.findings}
        sure = found.get(f"minimality, {sensitive}, above 1/l")
        out.append(
            {
                "release": ", ".join(f"{n} {v}" for n, v in setting.items()) or "the original, shuffled",
                "links, exact": figure(found, "linkage, register, exact"),
                "5 % wrong": figure(found, "linkage, register, 5 % of its values wrong"),
                "15 % wrong": figure(found, "linkage, register, 15 % of its values wrong"),
                "value by register": figure(found, f"inference, {sensitive} by a register, exact"),
                "by class": figure(found, f"inference, {sensitive} by class"),
                "Bayes, members": figure(found, f"inference, {sensitive} by a classifier, members"),
                "strangers": figure(found, f"inference, {sensitive} by a classifier, strangers"),
                "commonest": found[f"inference, {sensitive} by class"].baselines["the commonest value"],
                "claims above 1/l": sure.people if sure else "",
                "right": figure(found, f"minimality, {sensitive}, above 1/l"),
                "of 0.8 and more": figure(found, f"minimality, {sensitive}, claims of 0.8 and more"),
                "cells downcoded": figure(found, "downcoding, coarsened cells by naive Bayes and minimality"),
                "marginal": found["downcoding, coarsened cells by naive Bayes"].baselines[
                    "the commonest value of the cell"
                ]
                if "downcoding, coarsened cells by naive Bayes" in found
                else "",
                "again: few": figure(found, "composition, few people, groups known"),
                "above 1/l": figure(found, "composition, above 1/l, groups known"),
                "groups unknown": figure(found, "composition, above 1/l, groups unknown"),
                "seconds": seconds,
            }
        )
        print(out[-1], file=sys.stderr)
    return out


def scale() -> list[dict[str, Any]]:
    """Adult drawn with repetition, a district beside: how long the attack takes."""
    table, quasi, sensitive = table_of("adult")
    out = []
    for rows in (30_000, 300_000, 1_000_000):
        rng = np.random.default_rng(rows)
        drawn = table.select(*quasi, sensitive)[rng.integers(0, table.height, rows)]
        drawn = drawn.with_columns(pl.Series("district", rng.integers(0, 40, rows).astype(str)))
        names = {"quasi_identifiers": [*quasi, "district"], "sensitive": [sensitive]}
        release = shoal.anonymize(drawn, **names, k=5, l=2, effort="fast", seed=1)
        begun = time.perf_counter()
        attack = shoal.attack(release, drawn)
        goal = 120 if rows > 30_000 else 20
        seconds = time.perf_counter() - begun
        held = {"classes": release.groups, "findings": len(attack.findings), "seconds": seconds}
        out.append({"rows": rows, **held, "goal": f"{goal} s {'met' if seconds <= goal else 'missed'}"})
        print(out[-1], file=sys.stderr)
    return out


def minimality() -> list[dict[str, Any]]:
    """The whole table with and without decoys: what they cost, and which claims of the attack are right."""
    out = []
    for name, k, l, p in DECOYS:
        table, quasi, sensitive = table_of(name.partition(",")[0])
        table = table.select(*quasi, sensitive)
        if "random" in name:
            table = table.with_columns(table[sensitive].shuffle(seed=0))
        given: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": [sensitive], "k": k, "l": l}
        plain = 0.0
        for asked in (None, p, p):
            begun = time.perf_counter()
            release = shoal.anonymize(table, **given, minimality=asked, effort="fast", seed=1)
            seconds, stars = time.perf_counter() - begun, release.loss["stars"]
            plain = plain or stars
            found = {
                f.name: f for f in shoal.attack(release, table, table, **given).findings if f.attack == "minimality"
            }
            over, sure = (found.get(f"{sensitive}, {name}") for name in ("above 1/l", "claims of 0.8 and more"))
            out.append(
                {
                    "table": name, "k": k, "l": l, "minimality": "" if asked is None else asked, "stars": int(stars),
                    "times without": stars / plain,
                    "claims above 1/l": over.people if over else "",
                    "right": over.figure if over and over.figure is not None else "",
                    "from": over.low if over and over.figure is not None else "",
                    "to": over.high if over and over.figure is not None else "",
                    "claims of 0.8 and more": sure.people if sure else "",
                    "of these right": sure.figure if sure and sure.figure is not None else "", "seconds": seconds,
                }
            )  # fmt: skip
            print(out[-1], file=sys.stderr)
    return out


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "adult"
    if asked == "scale":
        record("Attacks: how long they take", "python benchmarks/attack.py scale", scale(), [
            "Linkage at three rates of error, inference, minimality, downcoding and order, with the original at hand.",
        ])  # fmt: skip
    elif asked == "minimality":
        record("Minimality: decoys, and the attack on them", "python benchmarks/attack.py minimality", minimality(), [
            "Whole tables, effort fast; with decoys two releases, whose draws differ. The attack knows everybody's "
            "quasi-identifiers and takes it that nothing is hidden without need; from and to are the 95 % interval of "
            "the share of its claims that are right.",
            "Where the values are dealt at random, as the theorem has it, claims show what the forming of the groups "
            "tells. In the tables as they are, people of one tuple also have like values: that part no grouping hides, "
            "and on Adult it lifts claims above 1/2 though no group holds a value on more.",
            "The goal of 25 % more stars at k = l = 2 on Adult is missed: groups are formed without a look at the "
            "values, so that 23 % of the units of two rows and 44 % of those of three have a value too common, and "
            "each is merged with another whole unit. docs/attacks.md says why less does not keep the theorem.",
        ])  # fmt: skip
    else:
        record(f"Attacks on releases of {asked}", f"python benchmarks/attack.py {asked}", lines(asked), [
            "Links: right ones, expected. Values: right guesses. Claims: people, then the share that is right. Cells "
            "downcoded: guessed exactly by naive Bayes and minimality, beside the commonest value of the cell.",
            "Strangers are guessed nearly as well as members: that part is a pattern of the population. What is "
            "claimed above 1/l because the method hides as little as it can is right more often than 1/l.",
            "A second release breaks the promise of l for a part of the people whom each keeps it for.",
        ])  # fmt: skip
