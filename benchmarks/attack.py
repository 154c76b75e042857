"""What a motivated intruder reaches on releases of Adult and of census workers, and how long the attack takes.

python benchmarks/attack.py adult
python benchmarks/attack.py census
python benchmarks/attack.py scale
python benchmarks/attack.py scale 1000000
python benchmarks/attack.py consistency
python benchmarks/attack.py totals
python benchmarks/attack.py worlds
python benchmarks/attack.py minimality

Seven in ten people are released; the register is everybody, so that three in ten are strangers.  "again" is a second
release of the same people with k + 2.
"""

from __future__ import annotations

import itertools
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SETTINGS: tuple[dict[str, Any], ...] = (
    {"k": 2, "l": 2},
    {"k": 3, "l": 3},
    {"k": 2, "l": 2, "minimality": 0.5},
    {"k": 5, "l": 2},
    {"k": 5, "l": 3},
    {"k": 5, "l": 5},
    {"k": 5, "l": 2, "publish": "ranges"},
)

SCALES = (30_000, False), (30_000, True), (1_000_000, False), (1_000_000, True)  # whether there is more to attack with
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
        most = found.get(f"minimality, {sensitive}, claims of 0.8 and more")
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
                "claimed": (sure.details["mean_of_these_claims"] or "") if sure else "",
                "right": figure(found, f"minimality, {sensitive}, above 1/l"),
                "of 0.8 and more": most.people if most else "",
                "right of these": figure(found, f"minimality, {sensitive}, claims of 0.8 and more"),
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


def scale(least: int = 0) -> list[dict[str, Any]]:
    """Adult drawn with repetition, a district beside: how long the whole command takes, with its page."""
    table, quasi, sensitive = table_of("adult")
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for rows, more in (one for one in SCALES if one[0] >= least):
            rng = np.random.default_rng(rows)
            drawn = table.select(*quasi, sensitive)[rng.integers(0, table.height, rows)]
            drawn = drawn.with_columns(pl.Series("district", rng.integers(0, 40, rows).astype(str)))
            names = {"quasi_identifiers": [*quasi, "district"], "sensitive": [sensitive], "effort": "fast", "seed": 1}
            paths = {name: Path(folder) / f"{name}.csv" for name in ("people", "release", "earlier")}
            drawn.write_csv(paths["people"])
            release = shoal.anonymize(drawn, **names, k=5, l=2)
            release.write(paths["release"], overwrite=True)
            asked = [sys.executable, "-m", "shoal", "attack", str(paths["release"]), "--original", str(paths["people"]),
                     "-o", str(Path(folder) / "attack.html"), "--force", "--json"]  # fmt: skip
            if more:
                shoal.anonymize(drawn, **names, k=7, l=2).write(paths["earlier"], overwrite=True)
                asked += ["--register", str(paths["people"]), "--with", str(paths["earlier"])]
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(asked, capture_output=True, text=True, check=True)
            seconds = time.perf_counter() - begun
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            goal = 120 if rows > 30_000 else 20
            held = {"classes": release.facts.groups, "findings": len(json.loads(done.stdout)["findings"])}
            out.append({
                "rows": rows, "given": "original, register, another release" if more else "original", **held,
                "seconds": seconds, "of the processor": used,
                "goal": f"{goal} s {'met' if seconds <= goal else 'missed'}",
            })  # fmt: skip
            print(out[-1], file=sys.stderr)
    return out


def worlds() -> list[dict[str, Any]]:
    """Every way to give the people of a small register values: what minimality claims beside the worlds that agree."""
    from shoal.attacks.minimality import claims
    from shoal.attacks.reading import read

    out = []
    for tuples, many, k in (([("1", "u"), ("1", "v"), ("2", "u"), ("2", "v")], 2, 2),
                            ([("1", "u"), ("1", "v"), ("2", "u")], 3, 3)):  # fmt: skip
        register = [t for t in tuples for _ in range(many)]
        people = pl.DataFrame(register, schema=["a", "b"], orient="row")
        known: dict[Any, list[tuple[Any, float]]] = {}
        for world in itertools.product(itertools.combinations_with_replacement("xyz", many), repeat=len(tuples)):
            table = people.with_columns(pl.Series("s", [v for own in world for v in own]))
            ways = math.prod(
                math.factorial(many) / math.prod(map(math.factorial, Counter(own).values())) for own in world
            )
            try:
                made = shoal.anonymize(table, quasi_identifiers=["a", "b"], sensitive=["s"], k=k, l=2, effort="fast",
                                       seed=1, bound="none")  # fmt: skip
            except shoal.InfeasibleError:
                continue
            known.setdefault(tuple(sorted(made.table.rows())), []).append((world, ways))
        far, weight = np.zeros(2), 0.0
        for rows, agree in known.items():
            shown = pl.DataFrame(list(rows), schema=["a", "b", "s"], orient="row")
            reading = read(shown, ["a", "b"], ["s"], [people], k=k, l=2)
            told = claims(reading, reading.people(people), "s")
            if told is None:
                continue
            each = np.array([ways for _, ways in agree])
            for i in np.flatnonzero(told.speaks):
                place = tuples.index(tuple(reading.domains[c].values[v] for c, v in enumerate(told.tuples[i])))
                exact = np.average([[w[place].count(x) for x in reading.values["s"]] for w, _ in agree], axis=0,
                                   weights=each) / many  # fmt: skip
                far += each.sum() * np.array([np.abs(b[i] - exact).sum() / 2 for b in (told.after, told.before)])
                weight += each.sum()
        out.append({"people": len(register), "tuples": len(tuples), "k": k, "l": 2,
                    "worlds": int(sum(w for agree in known.values() for _, w in agree)), "releases": len(known),
                    "distance of the claims": far[0] / weight, "of the compatible rows": far[1] / weight})  # fmt: skip
        print(out[-1], file=sys.stderr)
    return out


def consistency() -> list[dict[str, Any]]:
    """Every small original: how many agree with a release, and how many with what lies beside it as well."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from shoal.attacks.public_files import agreeing, neighbors
    from shoal.attacks.reading import read
    from shoal.paths import is_private
    from tests.consistency import FREE, TOWN_TREE, cases, shown

    asked = ("stars", "stars l", "ranges", "ranges step", "ranges l", "hierarchy", "stars risk", "stars no bound")
    out = []
    for case in (c for rows in (4, 5, 6) for c in cases(rows=rows, size=5)):
        if case.name not in asked:
            continue
        domain = pl.DataFrame(case.cells, schema=list(case.columns), orient="row")
        known: dict[str, list[tuple[str, str]]] = {}
        alone, beside = [], []
        for table in case.tables():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    certificate = case.release(table, Path(folder))
                except shoal.ShoalError:
                    continue
                file, entries = shown(certificate)
                path = Path(folder) / "out.csv"
                public = [held for one, held in neighbors(path) if not is_private(one)]
                public.append(json.loads((Path(folder) / "page.json").read_text()))
                trees = {"town": TOWN_TREE} if case.name == "hierarchy" else {}
                reading = read(
                    pl.read_csv(path, infer_schema=False), case.columns[:2], case.columns[2:], [domain], trees
                )
                if (counted := agreeing(reading, public)) is not None:
                    alone.append(counted[0])
                    beside.append(counted[1])
            told = {n: v for n, v in entries.items() if n not in FREE and "certificate.guarantee." not in n}
            known.setdefault(file, []).append((repr(sorted(told.items())), repr([entries.get(n) for n in FREE])))

        if not known:
            continue

        def bits(parts: list[Any], known: dict[str, list[tuple[str, str]]] = known) -> float:
            """Mean bits open where the parts are told besides the file."""
            total = sum(map(len, known.values()))
            left = 0.0
            for group in known.values():
                for same in Counter(tuple(one[p] for p in parts) for one in group).values():
                    left += same * math.log2(same)
            return left / total

        out.append(
            {
                "release": case.name,
                "rows": case.rows,
                "originals released": sum(map(len, known.values())),
                "agree with the rows, mean": float(np.mean(alone)),
                "and with all beside it": float(np.mean(beside)),
                "bits open: shoal run on each": bits([]),
                "with certificate and page": bits([0]),
                "taken beyond the rung": bits([]) - bits([0]),
                "with the rung": bits([0, 1]),
            }
        )
        print(out[-1], file=sys.stderr)
    return out


def totals() -> list[dict[str, Any]]:
    """Adult, k = 5, l = 2: fillings of hidden cells that agree; and the ages that ``range_step`` hides."""
    table, quasi, sensitive = table_of("adult")
    given: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": [sensitive], "effort": "fast", "seed": 1}
    release = shoal.anonymize(table.select(*quasi, sensitive), k=5, l=2, **given)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.csv"
        release.write(path)
        release.report(path.with_suffix(".html"))
        internal = release.report(Path(folder) / "board.html", internal=True)
        for name in ("certificate and public page", "the internal page too, under a public name"):
            if name.startswith("the"):
                shutil.copy(internal, path.with_suffix(".board.html"))
            found = {f.name: f for f in shoal.attack(path, register=table).findings}
            told = found["hidden cells that totals tell"]
            ways = {}
            for way in told.details["ways_to_fill_a_column"].split("; "):
                column, before, _, after = way.rsplit(" ", 3)
                ways[column] = f"{after} of {before}"
            out.append(
                {
                    "beside the release": name,
                    "fillings of race that agree": ways.get("race", ""),
                    "of sex": ways.get("sex", ""),
                    "hidden cells told exactly": told.figure,
                    "leaks": found["what is next to the release"].figure,
                }
            )
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
        plain, least = 0.0, least_of_whole_units(table, quasi, sensitive, k, l, p)
        for asked in (None, p, p):
            begun = time.perf_counter()
            release = shoal.anonymize(table, **given, minimality=asked, effort="fast", seed=1)
            seconds, stars = time.perf_counter() - begun, release.loss["stars"]
            plain = plain or stars
            own = release.certificate.details.get("minimality", {})
            found = {
                f.name: f for f in shoal.attack(release, table, table, **given).findings if f.attack == "minimality"
            }
            over, sure = (found.get(f"{sensitive}, {name}") for name in ("above 1/l", "claims of 0.8 and more"))
            out.append(
                {
                    "table": name, "k": k, "l": l, "minimality": "" if asked is None else asked, "stars": int(stars),
                    "times without": stars / plain,
                    "least of whole units": "" if asked is None else least / plain,
                    "before the attack": "" if asked is None else own["cost_before_the_attack"] / plain,
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


def least_of_whole_units(table: pl.DataFrame, quasi: list[str], sensitive: str, k: int, l: float, p: float) -> float:
    """Stars at the least where units are formed by the register and whole units are merged, for one draw of units.

    A unit that is not eligible is merged with another, so that every row of it loses what it loses beside the nearest
    other unit, and every other row what it loses in its unit.
    """
    from shoal.model.histogram import Histogram, Partition
    from shoal.model.privacy import AlphaKAnonymity, KAnonymity, LDiversity, requirement
    from shoal.model.recoding import Recoding
    from shoal.problems import tables
    from shoal.problems.tables.groups import groups_that_meet
    from shoal.problems.tables.methods import minimality_merge

    codes = np.column_stack([table[c].rank("dense").to_numpy() - 1 for c in (*quasi, sensitive)]).astype(np.int64)
    held = Histogram.from_rows(codes[:, :-1], codes[:, -1], sensitive_names=[sensitive])
    recoding = Recoding.stars(held)
    need = requirement([KAnonymity(k), LDiversity(l), AlphaKAnonymity(p, 1)], (sensitive,), held)

    def eligible(cell: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
        return groups_that_meet(held, need, cell, group, np.ones(cell.size, np.int64), groups)

    def solve(register: Histogram, smallest: int, haste: bool) -> Any:
        own = requirement([KAnonymity(smallest)], (), register)
        return tables.group(register, own, recoding=recoding, effort="fast", seed=1)

    few = need.smallest, minimality_merge.MANY * max(need.frequency) ** 2
    made = minimality_merge.merged(held, recoding, few, eligible, solve, np.random.default_rng(0))
    lengths = np.concatenate([np.full(len(rows), rows.shape[1]) for rows in made.units])
    cell = made.cell[np.concatenate([rows.reshape(-1) for rows in made.units])]
    unit = np.repeat(np.arange(lengths.size), lengths)
    good = eligible(cell, unit, lengths.size)
    partition = Partition.of(cell, unit, np.ones(cell.size, np.int64))
    shown, lost = recoding.publish(held, partition), recoding.losses(held, partition)
    someone = held.quasi[partition.cell[partition.start]]
    total = float(recoding.cost(held, partition))
    for u in np.flatnonzero(~good):
        beside = np.maximum(lost[u], (someone != someone[u]).astype(float))  # at the least: someone of each
        same = (shown.first == shown.first[u]).all(axis=1) & (shown.second == shown.second[u]).all(axis=1)
        more = np.where(same, 0.0, beside.sum(axis=1) - lost[u].sum())
        more[u] = np.inf
        total += lengths[u] * more.min()
    return float(total)


def spans() -> list[dict[str, Any]]:
    """``range_step`` hides the youngest and the oldest: is their distance told by the loss in the certificate?"""
    table, _, sensitive = table_of("adult")
    hit = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.csv"
        for seed in range(40):
            drawn = table.sample(200, seed=seed).select(pl.col("age").cast(pl.Int64), sensitive)
            release = shoal.anonymize(
                drawn, quasi_identifiers=["age"], sensitive=[sensitive], k=5, publish="ranges", range_step={"age": 10},
                effort="fast", seed=1,
            )  # fmt: skip
            release.write(path, overwrite=True)
            ncp = json.loads(path.with_suffix(".certificate.json").read_text())["loss"]["ncp"]
            ends = release.numeric(["age"])
            width = (ends["age_high"] - ends["age_low"]).to_numpy()
            agree = [d for d in range(20, 91) if abs(np.minimum(1, width / d).mean() - ncp) < 1e-9]
            tried += 1
            hit += agree == [drawn["age"].max() - drawn["age"].min()]
    return [{"tables of 200 people": tried, "distance told exactly": hit}]


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "adult"
    if asked == "scale":
        record("Attacks: how long they take", "python benchmarks/attack.py scale", scale(*map(int, sys.argv[2:])), [
            "The whole command from files to the page; with the original: linkage at three rates of error, inference, "
            "minimality, downcoding, files. "
            "Of the processor: seconds of one core. The goal is of the clock on the wall.",
        ])  # fmt: skip
    elif asked == "worlds":
        record("Attacks: minimality on every world", "python benchmarks/attack.py worlds", worlds(), [
            "Shoal releases every table that the people may have; the posterior of every tuple that minimality speaks "
            "of is held against the share among the worlds that agree, in total variation, by the compatible rows too.",
        ])  # fmt: skip
    elif asked == "consistency":
        record("Attacks: originals that agree", "python benchmarks/attack.py consistency", consistency(), [
            "Every table of four to six rows out of five different ones is released, where it can be. Agree with the "
            "rows: originals of which every row's values lie in what the cells of its row stand for; beside it lie "
            "the certificate and the public page.",
            "Bits open: among the tables for which shoal gives the same file, by those of them that have the same "
            "certificate and page. Beyond the rung of the proved ratio nothing is told: 0.0.",
        ])  # fmt: skip
    elif asked == "totals":
        record("Attacks: hidden cells that totals tell", "python benchmarks/attack.py totals", totals(), [
            "Adult, k = 5, l = 2, stars; ways to fill the hidden cells of a column by count. The second line is a "
            "planted leak: the board's page, copied to a public name.",
        ])  # fmt: skip
        record("Attacks: ends that range_step hides", "python benchmarks/attack.py totals", spans(), [
            "The distance from the youngest to the oldest, sought by the NCP of the certificate: goal 0.",
        ])  # fmt: skip
    elif asked == "minimality":
        record("Minimality: decoys, and the attack on them", "python benchmarks/attack.py minimality", minimality(), [
            "Whole tables, effort fast; with decoys two releases, whose draws differ. The attack knows everybody's "
            "quasi-identifiers and takes it that nothing is hidden without need; from and to are the 95 % interval of "
            "the share of its claims that are right.",
            "Where the values are dealt at random, as the theorem has it, claims show what the forming of the groups "
            "tells. In the tables as they are, people of one tuple also have like values: that part no grouping hides, "
            "and on Adult it lifts claims above 1/2 though no group holds a value on more.",
            "Least of whole units, in times without: what a release costs at the least that forms units by the "
            "register, as this one does, and merges whole units where a value is too common: what the units "
            "cost, and for every row of a unit that has to be merged what it loses at the least beside another tuple.",
            "The goal of 25 % more stars at k = l = 2 on Adult is missed: groups are formed without a look at the "
            "values, so that 23 % of the units of two rows and 44 % of those of three have a value too common, and "
            "each is merged with another whole unit. docs/attacks.md says why less does not keep the theorem.",
        ])  # fmt: skip
    elif asked not in ("adult", "census"):
        raise SystemExit(__doc__)
    else:
        record(f"Attacks on releases of {asked}", f"python benchmarks/attack.py {asked}", lines(asked), [
            "Links: right ones, expected. Values: right guesses. Claims above 1/l: people, what is claimed of them on "
            "the mean, and the share that is right; then those of 0.8 and more. Cells downcoded: guessed exactly "
            "by naive Bayes and minimality, beside the commonest value of the cell.",
            "Strangers are guessed nearly as well as members: that part is a pattern of the population. What is "
            "claimed above 1/l because the method hides as little as it can is right more often than 1/l.",
            "A second release breaks the promise of l for a part of the people whom each keeps it for.",
        ])  # fmt: skip
