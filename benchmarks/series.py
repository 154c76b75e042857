"""A series of twelve months: what each mode loses, makes up and tells an intruder, on Adult and census.

python benchmarks/series.py again adult 2
python benchmarks/series.py again census 5
python benchmarks/series.py again adult 2 0.1      newcomers who would lose more wait two parts at most
python benchmarks/series.py signatures census 5    few signatures against many
python benchmarks/series.py increment adult stars
python benchmarks/series.py increment adult ranges
python benchmarks/series.py month 8000000 12
python benchmarks/series.py month 8000000 12 duckdb
python benchmarks/series.py memory 2000000 1GB     a month larger than memory, and a release of the same rows
python benchmarks/series.py optimum stars 2        small series against the least loss that the promise allows
python benchmarks/series.py optimum ranges 2

A month brings 10 % newcomers, 5 % of the people leave and 3 % change, one half of them a quasi-identifier, the other
half the sensitive value.  Everybody is a record of the data set and appears once.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from composition import DATA, load
from record import record

import shoal
from shoal.judge.composition import ReleaseOfPeople, compose
from shoal.publishing.series.increment import columns_of, losses_of
from shoal.publishing.series_folder import open_series, part_name

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.oracles.series import Month, Signature, fewest_stars, least

K, MONTHS = 5, 12
MOST_STARS = 1  # tuples with more are held possible for everybody in that bound: the program stays small
BOUND_SECONDS = 150
BOUNDED = (2, 6, MONTHS)  # the months of mode "again" whose least loss is bounded
COME, LEAVE, CHANGE = 0.10, 0.05, 0.03


def months(table: pl.DataFrame, quasi: Sequence[str], sensitive: str, parts: int = MONTHS) -> list[pl.DataFrame]:
    """The table of every month, with a column ``person``.

    parts  how many months, each as large as the records allow
    """
    rng = np.random.default_rng(0)
    n = table.height
    grown = sum((1 + COME - LEAVE) ** i for i in range(parts - 1))
    start = int(n / (1 + COME * grown)) - parts
    order = rng.permutation(n)
    here, used = order[:start], start
    values = {c: table[c].to_numpy().copy() for c in table.columns}
    out = []
    for month in range(parts):
        if month:
            stay = here[rng.random(here.size) >= LEAVE]
            changed = rng.permutation(stay)[: int(CHANGE * stay.size)]
            for i in changed[: changed.size // 2]:
                column = quasi[rng.integers(len(quasi))]
                values[column][i] = values[column][rng.integers(n)]
            for i in changed[changed.size // 2 :]:
                values[sensitive][i] = values[sensitive][rng.integers(n)]
            come = int(COME * here.size)
            here = np.concatenate([stay, order[used : used + come]])
            used += come
        now = pl.DataFrame({c: v[here] for c, v in values.items()})
        out.append(now.with_columns(pl.Series("person", here).cast(pl.String)))
    return out


def placed(series: shoal.Series, number: int, table: pl.DataFrame, policy: shoal.Policy) -> np.ndarray:
    """int64[people]: a published row of everybody's class, as the ledger knows it."""
    held = open_series(series.place)
    lines = pl.read_parquet(series.place / "private" / f"ledger-{number:04d}" / "persons.parquet")
    of = dict(lines.filter(pl.col("part") == number).select("person", "tuple").rows())
    release = pl.read_csv(held.release(number), infer_schema=False)
    at = {held.keyed.one("tuple", t): i for i, t in enumerate(release.select(policy.grouped).rows())}
    return np.array([at[of[held.keyed.one("person", [p])]] for p in table["person"].to_list()])


def broken(given: Sequence[ReleaseOfPeople], sensitive: str, l: int) -> str:
    """Of the people in several releases: for how many the attack's model has a value above 1/l, the highest, how many
    of these claims are right."""
    found = compose(given, sensitive=sensitive, k=K, l=l, person="person", known_alone=True)
    assert found.known is not None
    right = "" if found.known.right is None else f", {100 * found.known.right:.0f} % right"
    return f"{100 * (found.known.above or 0) / max(found.people, 1):.2f} ({found.known.highest:.2f}{right})"


def again(name: str, l: int, wait_above: float | None = None) -> None:
    """Twelve months of the whole table, each against a release that knows no past and of the people published alone."""
    tables, quasi, sensitive = _months_of(name)
    policy = _asked(quasi, sensitive, l)
    place = Path(tempfile.mkdtemp()) / "s"
    waits = {} if wait_above is None else {"wait": 2, "wait_above": wait_above}
    series = shoal.Series.start(place, policy, mode="again", **waits)
    rows: list[dict[str, Any]] = []
    given: list[ReleaseOfPeople] = []
    words = pl.concat([now[sensitive] for now in tables]).unique().to_list()
    bounded = BOUNDED if name == "adult" else ()  # of the census the program takes longer than its time
    for number, now in enumerate(tables, start=1):
        kept = _kept(series, _month(now, quasi, sensitive), words) if number in bounded else {}
        clock = time.perf_counter()
        part = series.add(now, person="person")
        seconds = time.perf_counter() - clock
        waiting = open_series(place).ledger.waiting
        now = now.filter(~open_series(place).keyed.column("person", now["person"]).is_in(list(waiting)))
        free = shoal.anonymize(now.drop("person"), policy, keep_order=True)
        stars = free.loss["stars"]
        release = pl.read_csv(place / part_name(number) / "release.csv", infer_schema=False)
        given.append(ReleaseOfPeople(release, quasi, {}, now, placed(series, number, now, policy)))
        least_stars = at_least(now, quasi, sensitive, kept, l, part.made_up) if number in bounded else None
        rows.append(
            {
                "month": number,
                "people": now.height,
                **({} if wait_above is None else {"wait": part.waiting}),
                "stars": part.loss["stars"],
                "without a past": stars,
                "more, %": 100 * (part.loss["stars"] / stars - 1),
                "at least": "" if least_stars is None else least_stars,
                "at least, more, %": "" if least_stars is None else 100 * (least_stars / stars - 1),
                "made up": part.made_up,
                "made up, %": 100 * part.made_up / now.height,
                "above 1/l with the month before, % (highest)": "" if number == 1 else broken(given[-2:], sensitive, l),
                "seconds": seconds,
                "seconds without a past": sum(free.seconds.values()),
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    notes = [f"k = {K}, l = {l}, effort fast; a month: 10 % come, 5 % leave, 3 % change."]
    if wait_above is not None:
        notes.append(
            f"Newcomers who would lose more than {wait_above:g} of their cells wait, two parts at most; people, and "
            "the release without a past, are those published."
        )
    if any(row["at least"] for row in rows):
        notes.append("At least: no month after those that were published has fewer stars, with as many made-up rows.")
    if bounded and (few_made := at_least(now, quasi, sensitive, kept, l, now.height // 100)) is not None:
        more_stars = 100 * (few_made / stars - 1)
        notes.append(
            f"With 1 % made-up rows, month {MONTHS} has at least {few_made:,} stars ({more_stars:.1f} % more)."
        )
    pairs = [(0, MONTHS - 1), (0, 5), (5, MONTHS - 1)]
    for one, two in pairs:
        notes.append(
            f"Months {one + 1} and {two + 1}, classes known: {broken([given[one], given[two]], sensitive, l)} % of the "
            "people in both above 1/l (highest posterior)."
        )
    try:
        notes.append(f"All twelve, classes known: {broken(given, sensitive, l)} % above 1/l (highest posterior).")
    except shoal.InputError as error:
        notes.append(f"All twelve: {error}")
    notes.append(
        f"`Series.verify` holds: {series.verify().holds}; it proves 1/l for whoever knows the groups as well. The "
        "attack's model does not know of groups: it counts all assignments to classes alike."
    )
    more = "" if wait_above is None else f" {wait_above:g}"
    title = f"Series, again: {name}, l = {l}" + (f", wait 2 above{more}" if more else "")
    record(title, f"python benchmarks/series.py again {name} {l}{more}", rows, notes)
    shutil.rmtree(place.parent)


SIGNATURES = (None, 8_000, 2_000, 500)


def signatures(name: str, l: int) -> None:
    """Twelve months of the whole table by how many signatures newcomers may have."""
    tables, quasi, sensitive = _months_of(name)
    rows: list[dict[str, Any]] = []
    free = [shoal.anonymize(now.drop("person"), _asked(quasi, sensitive, l)).loss["stars"] for now in tables]
    for most in SIGNATURES:
        place, busy = Path(tempfile.mkdtemp()) / "s", time.process_time()
        series = shoal.Series.start(place, _asked(quasi, sensitive, l), mode="again", signatures=most)
        parts = [series.add(now, person="person") for now in tables]
        busy = time.process_time() - busy
        held = open_series(place).ledger.persons["possible"].n_unique()
        stars, made = [part.loss["stars"] or 0 for part in parts], [part.made_up for part in parts]
        rows.append(
            {
                "signatures asked": "any" if most is None else most,
                **{f"stars, month {m}": stars[m - 1] for m in (1, 2, 6, MONTHS)},
                "stars, all months": sum(stars),
                "more than without a past, month 12, %": 100 * (stars[-1] / free[-1] - 1),
                **{f"made up, month {m}, %": 100 * made[m - 1] / tables[m - 1].height for m in (2, 6, MONTHS)},
                "signatures, month 12": held,
                "processor s": busy,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
        assert series.verify().holds
        shutil.rmtree(place.parent)
    free_of = ", ".join(f"{free[m - 1]:,} in month {m}" for m in (1, 2, 6, MONTHS))
    record(
        f"Series, again: few signatures, {name}, l = {l}",
        f"python benchmarks/series.py signatures {name} {l}",
        rows,
        [
            f"k = {K}, l = {l}, effort fast; a month: 10 % come, 5 % leave, 3 % change; {tables[0].height:,} people in "
            f"the first month, {tables[-1].height:,} in the last.",
            f"Stars of releases without a past: {free_of}.",
        ],
    )


def _months_of(name: str) -> tuple[list[pl.DataFrame], list[str], str]:
    """The tables of all months, the quasi-identifiers and the sensitive column."""
    table, quasi, sensitive, _ = load(name)
    if name == "census":
        table = table.sample(40_000, seed=0)
    return months(table, quasi, sensitive), quasi, sensitive


def _asked(quasi: Sequence[str], sensitive: str, l: int) -> shoal.Policy:
    return shoal.Policy(quasi_identifiers=quasi, sensitive=sensitive, k=K, l=l, effort="fast", seed=1)


def at_least(
    now: pl.DataFrame, quasi: Sequence[str], sensitive: str, kept: Mapping[str, Signature], l: int, made_up: int
) -> int | None:
    """A lower bound of a month's stars after the months that were published; kept: person -> signature.

    None where the time ended before prices were found that prove one.
    """
    people = [(texts, value, kept.get(p)) for p, (texts, value) in _month(now, quasi, sensitive).items()]
    clock = time.perf_counter()
    found = fewest_stars(people, K, l, made_up, most=MOST_STARS, seconds=BOUND_SECONDS)
    print(found, f"{time.perf_counter() - clock:.0f} s", file=sys.stderr, flush=True)
    return math.ceil(found.stars - 1e-6) if found.stars > 0 else None


def increment(name: str, publish: str, wait: int = 2) -> None:
    """A twelfth of the people each month; rows wait; the mean loss of a row against all people at once."""
    table, quasi, sensitive, _ = load(name)
    order = np.random.default_rng(0).permutation(table.height)
    table = table.with_row_index("person").with_columns(pl.col("person").cast(pl.String))
    parts = [table[np.sort(p)] for p in np.array_split(order, MONTHS)]
    policy = shoal.Policy(
        quasi_identifiers=quasi, sensitive=sensitive, k=K, l=2, effort="fast", seed=1, publish=publish
    )
    columns = columns_of(policy, {q: table[q].to_list() for q in quasi})
    clock = time.perf_counter()
    whole = shoal.anonymize(table.drop("person"), policy, keep_order=True).table.select(pl.all().cast(pl.String))
    alone = losses_of(columns, whole.select(quasi).rows()).mean()
    rows: list[dict[str, Any]] = [
        {"parts": "all at once", "rows": table.height, "mean loss": alone, "against all at once": 1.0, "waited": 0,
         "seconds": time.perf_counter() - clock}
    ]  # fmt: skip
    settings = [(0, 0.3), *itertools.product([wait], [0.01, 0.03, 0.1, 0.2, 0.3])]
    for waits, above in settings:
        clock = time.perf_counter()
        place = Path(tempfile.mkdtemp()) / "s"
        series = shoal.Series.start(place, policy, wait=waits, wait_above=above if waits else None)
        waiting, total, many, waited, last = table.clear(), 0.0, 0, 0, 0
        queue = list(parts)
        while queue or waiting.height:
            now = pl.concat([waiting, queue.pop(0)]) if queue else waiting
            try:
                part = series.add(now, person="person")
            except shoal.InfeasibleError:
                break
            held = open_series(place)
            known = held.keyed.column("person", now["person"])
            waiting = now.filter(pl.Series([p in held.ledger.waiting for p in known]))
            waited += part.waiting
            shown = pl.read_csv(held.release(held.parts), infer_schema=False).select(quasi)
            lost = losses_of(columns, shown.rows())
            total, many, last = total + lost.sum(), many + lost.size, held.parts
        rows.append(
            {
                "parts": f"{last}, wait {waits}" + (f" above {above:g}" if waits else ""),
                "rows": many,
                "mean loss": total / many,
                "against all at once": total / many / alone,
                "waited": waited,
                "seconds": time.perf_counter() - clock,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
        shutil.rmtree(place.parent)
    record(
        f"Series, increment: {name}, {publish}",
        f"python benchmarks/series.py increment {name} {publish}",
        rows,
        [
            f"k = {K}, l = 2, effort fast; loss of a row: mean over the columns from 0, a value, to 1, a star, "
            "measured by the values of the whole table; who waits after month 12 comes out in parts of its own.",
        ],
    )


SERIES, PARTS, PEOPLE, OTHERS, LEAST, SECONDS = 6, 3, 24, 8, 3, 25


def optimum(publish: str, l: int) -> None:
    """Small series of three months against the exact program of ``tests.oracles.series``: of each month alone with the
    past that it had, of all three together for whoever knows the future, and of each month without a past.

    Each optimum may have as many made-up rows in a month as the series has.
    """
    names = {
        "series": "the series", "past": "least after the past that it had",
        "foresight": "least of all months, by whoever knows them", "free": "least without a past",
    }  # fmt: skip
    total = {name: np.zeros(PARTS) for name in names}
    people = made = proved = 0
    for seed in range(SERIES):
        tables, quasi = few(publish, l, seed)
        policy = shoal.Policy(quasi_identifiers=quasi, sensitive="job", k=LEAST, l=l, publish=publish, seed=seed)
        series = shoal.Series.start(Path(tempfile.mkdtemp()) / "s", policy, mode="again")
        values = sorted(set(pl.concat(tables)["job"]))
        given = [_month(table, quasi, "job", publish) for table in tables]
        more = []
        for i, (table, month) in enumerate(zip(tables, given, strict=True)):
            kept = _kept(series, month, values)
            part = series.add(table, person="person")
            more.append(part.made_up)
            columns = columns_of(policy, {q: table[q].to_list() for q in quasi})
            shown = pl.read_csv(open_series(series.place).release(i + 1), infer_schema=False).select(quasi)
            total["series"][i] += losses_of(columns, shown.rows()).sum()
            for name, known in (("past", kept), ("free", {})):
                best = least([month], publish, LEAST, l, kept=known, made_up=more[-1:], values=values, seconds=SECONDS)
                assert best is not None
                total[name][i] += best.bound
        joint = least(given, publish, LEAST, l, made_up=more, values=values, seconds=SECONDS)
        assert joint is not None
        total["foresight"][0] += joint.bound
        proved += joint.loss <= joint.bound + 1e-4
        people, made = people + sum(map(len, given)), made + sum(more)
        print(
            seed, {name: of.round(2).tolist() for name, of in total.items()}, more, joint, file=sys.stderr, flush=True
        )
        shutil.rmtree(series.place.parent)
    rows = [
        {"what": names[name], **({f"month {i + 1}": float(of[i]) for i in range(PARTS)} if all(of) else {}),
         "all months": float(of.sum()), "against no past": float(of.sum() / total["free"].sum())}
        for name, of in total.items()
    ]  # fmt: skip
    record(
        f"Series, again: small series against the least loss, {publish}, l = {l}",
        f"python benchmarks/series.py optimum {publish} {l}",
        rows,
        [
            f"Loss of all rows, each from 0 to 1, of {SERIES} series of {PARTS} months with {people:,} people in all; "
            f"k = {LEAST}.  Every optimum may have the made-up rows of the series, month by month: {made:,} in all.",
            f"The least losses are lower bounds, which each month reaches; all months together are known to reach "
            f"theirs in {proved} of {SERIES} series.",
        ],
    )


def few(publish: str, l: int, seed: int) -> tuple[list[pl.DataFrame], list[str]]:
    """Months of a few people of the census with coarse columns, and the quasi-identifiers."""
    table = pl.read_csv(DATA / "census_income/census_income.csv.gz", infer_schema=False)
    age, weeks = (pl.col(c).cast(pl.Int64) for c in ("Age", "WeeksWorked"))
    table = table.filter((age >= 16) & (pl.col("Occupation") != "0"))
    common = table["Occupation"].value_counts(sort=True)["Occupation"].head(l + 2).to_list()
    table = table.filter(pl.col("Occupation").is_in(common)).rename({"Occupation": "job"})
    if publish == "stars":
        table, quasi = table.with_columns((age // 20).cast(pl.String)), ["Gender", "MaritalStatus", "Age"]
    else:
        wide = (age // 20 * 20).cast(pl.String), (weeks // 18 * 18).cast(pl.String)
        table, quasi = table.with_columns(*wide), ["Age", "WeeksWorked"]
    return months(table.select(*quasi, "job").sample(PEOPLE + OTHERS, seed=seed), quasi, "job", PARTS), quasi


def _month(table: pl.DataFrame, quasi: Sequence[str], sensitive: str, publish: str = "stars") -> Month:
    def read(text: str) -> Any:
        return text if publish == "stars" else int(text)

    rows = table.select("person", sensitive, *quasi).rows()
    return {person: (tuple(map(read, texts)), job) for person, job, *texts in rows}


def _kept(series: shoal.Series, month: Month, values: Sequence[str]) -> dict[str, Signature]:
    """The signatures of people who stay, as the ledger of the series has them."""
    held = open_series(series.place)
    words = {held.keyed.one("value", [v]): v for v in values}
    lines = held.ledger.persons.select("person", "value", "possible").rows()
    known = {person: (words[value], tuple(sorted(words[p] for p in of.split()))) for person, value, of in lines}
    hashed = {person: held.keyed.one("person", [person]) for person in month}
    return {p: known[h][1] for p, h in hashed.items() if h in known and known[h][0] == month[p][1]}


def cases(rows: int, month: int) -> pl.DataFrame:
    """Case records of one month as health departments report them: 19 columns of categories and a person."""
    rng = np.random.default_rng(month)

    def drawn(values: Sequence[str], skew: float = 1.0) -> np.ndarray:
        weight = 1 / np.arange(1, len(values) + 1) ** skew
        return np.array(values)[rng.choice(len(values), rows, p=weight / weight.sum())]

    county = rng.zipf(1.3, rows) % 3000
    yes = ["No", "Yes", "Unknown", "Missing"]
    answers = [f"{name}_yn" for name in ("exposure", "symptoms", "hospital", "icu", "death", "conditions")]
    answers += [f"{name}_yn" for name in ("pregnant", "vaccinated", "travel", "process")]
    return pl.DataFrame(
        {
            "person": np.char.add(f"{month}-", np.arange(rows).astype(str)),
            "case_month": np.full(rows, f"2021-{month:02}"),
            "res_state": (county % 50).astype(str),
            "res_county": county.astype(str),
            "age_group": drawn(["18-49", "50-64", "65+", "0-17", "Missing"]),
            "sex": drawn(["Female", "Male", "Unknown"], 0.3),
            "race": drawn(["White", "Black", "Asian", "Multiple", "Native", "Islander", "Unknown"]),
            "ethnicity": drawn(["Non-Hispanic", "Hispanic", "Unknown"]),
            "current_status": drawn(["confirmed", "probable"]),
            "outcome": drawn(["recovered", "ill", "in hospital", "in intensive care", "dead"], 0.8),
            **{name: drawn(yes) for name in answers},
        }
    )


CASES = ["res_county", "age_group", "sex", "race", "ethnicity"]


def month(rows: int, parts: int = 12, engine: str | None = None) -> None:
    """So many cases in so many months, one month after the other added to a series; the last against a release of
    that month alone, by the same engine.  Each in a process of its own, which has compiled before the clock starts."""
    place = Path(tempfile.mkdtemp())
    series = shoal.Series.start(place / "s", shoal.Policy(**asked_of_cases()))
    found: list[dict[str, Any]] = []
    for number in range(1, parts + 1):
        path = place / f"{number}.parquet"
        cases(rows // parts, number).write_parquet(path)
        if number == parts:
            found.append(_line("alone", rows // parts, _apart(_alone, place, path, engine)))
        told = _apart(_added, place, path, engine)
        if number in (1, 2, parts // 2, parts):
            found.append(_line(f"part {number}", number * (rows // parts), told))
            print(found[-1], file=sys.stderr, flush=True)
        path.unlink()
    alone = next(line["processor"] for line in found if line["what"] == "alone")
    how = "the engine that shoal takes by itself" if engine is None else f"{engine} with 4 GB"
    disk = sum(p.stat().st_size for p in series.place.rglob("*") if p.is_file())
    shutil.rmtree(place)
    notes = [
        "19 columns, of which five are quasi-identifiers; k = 5, l = 2, effort fast.",
        f"With {how}, the last month costs {found[-1]['processor'] / alone:.2f} times the processor seconds of its "
        f"release alone.  The folder has {disk / 1e6:,.0f} MB.",
    ]
    asked = f"python benchmarks/series.py month {rows} {parts}" + (f" {engine}" if engine else "")
    record(f"Series: adding a month, {rows:,} cases" + (f", {engine}" if engine else ""), asked, found, notes)


def memory(rows: int, allowed: str) -> None:
    """A month of so many cases added by DuckDB within a memory, beside a release of the same rows, each in a process of
    its own: the most memory of this process, without the pages of files that the system holds for it."""
    place = Path(tempfile.mkdtemp())
    cases(rows, 1).write_parquet(place / "1.parquet")
    shoal.Series.start(place / "s", shoal.Policy(**asked_of_cases()))
    found = []
    for what, work in (("release alone", _alone), ("month of a series", _added)):
        told, peak = _apart(_watched, work, place, place / "1.parquet", "duckdb", allowed)
        found.append({"what": what, "rows": rows, "seconds": told[0], "processor": told[1], "peak, GiB": peak})
        print(found[-1], file=sys.stderr, flush=True)
    shutil.rmtree(place)
    record(
        f"Series: memory of a month, {rows:,} cases, {allowed}",
        f"python benchmarks/series.py memory {rows} {allowed}",
        found,
        [
            "19 columns, of which five are quasi-identifiers; k = 5, l = 2, effort fast; "
            "DuckDB gets half of the memory.",
            "Peak: the most memory of the process at any moment, without pages of files mapped into it.",
        ],
    )


def _watched(work: Any, *args: Any) -> tuple[Any, float]:
    """What work gives, and the most GiB that this process had meanwhile, without mapped files."""
    peak, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
            peak[0] = max(peak[0], resident - shared)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        told = work(*args)
    finally:
        done.set()
        watcher.join()
    return told, peak[0] * resource.getpagesize() / 2**30


def asked_of_cases() -> dict[str, Any]:
    """What is asked of a release of cases."""
    others = [c for c in cases(10, 1).columns if c not in (*CASES, "person", "outcome")]
    return {
        "quasi_identifiers": CASES, "sensitive": ["outcome"], "insensitive": others, "k": K, "l": 2, "effort": "fast",
    }  # fmt: skip


def _line(what: str, rows: int, told: tuple[float, float, float, float]) -> dict[str, Any]:
    return {"what": what, "rows so far": rows, "seconds": told[0], "processor": told[1], "NCP": told[2],
            "peak, GB": told[3]}  # fmt: skip


def _apart(work: Any, *args: Any) -> Any:
    """What work gives in a process of its own: seconds, processor seconds, loss and peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, args)


def _alone(place: Path, path: Path, engine: str | None, memory: str = "4GB") -> tuple[float, float, float, float]:
    settings = asked_of_cases() | {"identifiers": ["person"]} | _reading(engine, memory)
    small = place / "small.parquet"
    cases(2000, 13).write_parquet(small)
    shoal.anonymize(small, **settings).write(place / "small.csv")
    clock, busy = time.perf_counter(), time.process_time()
    release = shoal.anonymize(path, **settings)
    release.write(place / "alone.csv")
    return _told(clock, busy, release.facts.cost["ncp"])


def _reading(engine: str | None, memory: str) -> dict[str, Any]:
    return {} if engine is None else {"engine": engine, "memory": memory}


def _added(place: Path, path: Path, engine: str | None, memory: str = "4GB") -> tuple[float, float, float, float]:
    warm = Path(tempfile.mkdtemp()) / "warm"
    cases(2000, 13).write_parquet(warm.with_suffix(".parquet"))
    first = shoal.Series.start(warm, shoal.Policy(**asked_of_cases()))
    first.add(warm.with_suffix(".parquet"), person="person", **_reading(engine, memory))
    clock, busy = time.perf_counter(), time.process_time()
    part = shoal.Series(place / "s").add(path, person="person", **_reading(engine, memory))
    told = _told(clock, busy, part.loss["ncp"] or 0.0)
    shutil.rmtree(warm.parent)
    return told


def _told(clock: float, busy: float, loss: float) -> tuple[float, float, float, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return time.perf_counter() - clock, time.process_time() - busy, loss, peak


if __name__ == "__main__":
    what, *more = sys.argv[1:]
    if what == "again":
        again(more[0], int(more[1]), float(more[2]) if more[2:] else None)
    elif what == "signatures":
        signatures(more[0], int(more[1]))
    elif what == "increment":
        increment(more[0], more[1])
    elif what == "optimum":
        optimum(more[0], int(more[1]))
    elif what == "month":
        month(int(more[0]), int((more[1:] or ["12"])[0]), *more[2:])
    elif what == "memory":
        memory(int(more[0]), more[1])
    else:
        raise SystemExit(__doc__)
